"""Do lowering rules that build MLIR operations give what they give in JAX?

Read before: ``interpreters.mlir``.
Invariant: expected answers are JAX's.
"""

from __future__ import annotations

import numpy as np
import pytest
from both import same
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func
from jaxlib.mlir.dialects import stablehlo as hlo

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.extend import core
from saem.interpreters import ad, batching, mlir

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def defined(name, rule, abstract=lambda x, **params: x, several=False, platform=None):
    """Return a primitive that is compiled by ``rule`` alone."""
    p = core.Primitive(name)
    p.multiple_results = several
    p.def_abstract_eval(abstract)
    mlir.register_lowering(p, rule, platform=platform)
    return p


def fused(ctx, x, y, z):
    return [hlo.AddOp(hlo.MulOp(x, y).result, z).result]


def test_the_tutorial_on_primitives(jax_oracle):
    """One primitive with all its rules, and what is made of it."""
    def program():
        p = core.Primitive("multiply_add")
        p.def_impl(lambda x, y, z: jnp.add(jnp.multiply(x, y), z))
        p.def_abstract_eval(lambda x, y, z: jax.core.ShapedArray(x.shape, x.dtype))
        mlir.register_lowering(p, fused, platform="cpu")

        def jvp(primals, tangents):
            (x, y, z), (xt, yt, zt) = primals, [
                jnp.zeros_like(jnp.asarray(x)) if type(t) is ad.Zero else t
                for x, t in zip(primals, tangents)]
            return p.bind(x, y, z), p.bind(xt, y, p.bind(x, yt, zt))

        def transpose(ct, x, y, z):
            zero = jnp.zeros_like(ct)
            if not ad.is_undefined_primal(x):
                return None, p.bind(x, ct, zero), ct
            return p.bind(ct, y, zero), None, ct

        def batch(args, dims):
            assert dims[0] == dims[1] == dims[2]
            return p.bind(*args), dims[0]

        ad.primitive_jvps[p] = jvp
        ad.primitive_transposes[p] = transpose
        batching.primitive_batchers[p] = batch

        def square_add(a, b):
            return p.bind(a, a, b)

        return [
            float(square_add(2.0, 10.0)), jax.jit(square_add)(2.0, 10.0),
            jax.jvp(square_add, (2.0, 10.0), (1.0, 1.0)),
            jax.jit(lambda args, tangents: jax.jvp(square_add, args, tangents))(
                (2.0, 10.0), (1.0, 1.0)),
            jax.grad(square_add)(2.0, 10.0), jax.jit(jax.grad(square_add))(2.0, 10.0),
            jax.vmap(square_add)(np.array([2.0, 3.0]), np.array([10.0, 20.0])),
            jax.jit(jax.vmap(square_add))(np.array([2.0, 3.0]), np.array([10.0, 20.0])),
            str(jax.make_jaxpr(square_add)(2.0, 10.0))]

    same(jax_oracle, program)


def scaled(ctx, x, *, by):
    [aval] = ctx.avals_out
    assert tuple(ctx.module_context.platforms) == ("cpu",)
    assert mlir.aval_to_ir_type(ctx.module_context, aval) == x.type
    return hlo.MulOp(x, mlir.ir_constant(np.full(aval.shape, by, aval.dtype))).results


def summed(ctx, x):
    """A region of its own."""
    zero = mlir.ir_constant(np.float32(0))
    op = hlo.ReduceOp([zero.type], [x], [zero], mlir.dense_int_array([0, 1]))
    block = op.regions[0].blocks.append(zero.type, zero.type)
    with ir.InsertionPoint(block):
        hlo.return_([hlo.AddOp(*block.arguments).result])
    return op.results


def through_function(ctx, x):
    """Calls a function of the rule's own, whose name others have."""
    module = ctx.module_context
    with module.ip:
        helper = func.FuncOp("main_1", ([x.type], [x.type]), visibility="private")
    module.symbol_table.insert(helper)
    with ir.InsertionPoint(helper.add_entry_block()):
        func.ReturnOp([hlo.NegOp(helper.arguments[0]).result])
    once = func.CallOp(helper, [x]).results[0]
    return func.CallOp(helper, [hlo.AddOp(once, once).result]).results


def mixed(ctx, x, y):
    """Built operations around what the engine writes."""
    table = jnp.arange(6.0).reshape(2, 3)
    [sine] = mlir.lower_fun(lambda x: jnp.sin(x) @ table.T, multiple_results=False)(
        ctx.replace(avals_in=[ctx.avals_in[0]], avals_out=[ctx.avals_out[1]], primitive=None),
        hlo.AddOp(x, x).result)
    return [[hlo.MulOp(x, x).result], hlo.AddOp(sine, y).result]


def test_rules_that_build(jax_oracle):
    def program(x):
        times = defined("times", scaled)
        total = defined("total", summed, lambda x: jax.core.ShapedArray((), x.dtype))
        calls = defined("calls", through_function)
        both = defined("both", mixed, lambda x, y: [x, y], several=True)
        y = jnp.ones((2, 2))
        return [
            jax.jit(lambda x: times.bind(x, by=3.0) + 1)(x),
            jax.jit(lambda x: times.bind(times.bind(x, by=3.0), by=2.0))(x),
            jax.jit(lambda x: times.bind(x, by=2))(jnp.arange(3)),
            jax.jit(lambda x: times.bind(x, by=2))(x.astype(jnp.bfloat16)),
            jax.jit(lambda x: times.bind(x, by=1j))(x + 1j),
            jax.jit(lambda x: total.bind(jnp.sin(x)))(x),
            jax.jit(lambda x: calls.bind(x) + calls.bind(x * 2))(x),
            jax.jit(lambda x: both.bind(x, y))(x),
            jax.jit(lambda x: lax.scan(lambda c, i: (times.bind(c, by=0.5), total.bind(c)), x,
                                       jnp.arange(3)))(x),
            jax.jit(lambda x: lax.cond(x[0, 1] > 0, calls.bind, lambda x: x, x))(x),
            jax.jit(lambda x: lax.while_loop(lambda c: total.bind(c) < 50,
                                             lambda c: times.bind(c, by=2.0), x))(x),
        ]

    same(jax_oracle, program, x=X)


def test_rules_that_build_on_several_devices(jax_oracle):
    def program(x):
        times = defined("times_here", scaled)
        mesh = jax.make_mesh((2,), ("i",), (jax.sharding.AxisType.Auto,))
        placed = jax.device_put(x, jax.NamedSharding(mesh, jax.P("i")))
        inside = jax.shard_map(lambda x: lax.psum(times.bind(x, by=2.0), "i"), mesh=mesh,
                               in_specs=jax.P("i"), out_specs=jax.P())
        return [jax.jit(lambda x: times.bind(x, by=3.0))(placed), jax.jit(inside)(placed)]

    same(jax_oracle, program, x=X)


def test_exported_programs_hold_what_rules_built():
    p, q = defined("scaled_there", scaled), defined("called_there", through_function)
    exported = jax.export.export(jax.jit(lambda x: q.bind(p.bind(x, by=3.0))))(X)
    read = jax.export.deserialize(exported.serialize())
    np.testing.assert_array_equal(jax.jit(lambda x: read.call(x) + q.bind(x))(X), X * 6 + X * 2)


def test_keys_and_numbers_of_few_bits(jax_oracle):
    """The values of a rule are the arrays by which others are held."""
    def program():
        key = defined("same_key", lambda ctx, k: [hlo.AddOp(k, k).result])
        bits = defined("same_bits", lambda ctx, x: [hlo.XorOp(x, x).result])
        return [jax.random.key_data(jax.jit(key.bind)(jax.random.key(3))),
                jax.jit(bits.bind)(jnp.arange(4) > 1),
                jax.jit(bits.bind)(jnp.arange(4).astype(jnp.int4)).astype(int)]

    same(jax_oracle, program)


def test_attributes_and_types(jax_oracle):
    def program():
        values = [True, 3, 2.5, "a", np.int8(3), np.uint32(3), np.float32(1.5), np.float64(2),
                  np.bool_(True), np.arange(3), np.arange(3, dtype=np.float32), [1, 2.5], (1, "x"),
                  {"a": 1, "b": "c"}, np.dtype("float32"), np.array([True, False])]
        names = ["float32", "int8", "uint8", "bool", "complex64", "bfloat16", "float16", "int4"]
        with mlir.make_ir_context(), ir.Location.unknown():
            found = [str(mlir.ir_attribute(v)) for v in values]
            found += [str(x) for x in (
                mlir.i32_attr(3), mlir.i64_attr(-3), mlir.dense_int_elements([1, 2, 3]),
                mlir.dense_int_array([1, 2]), mlir.dense_int_elements([]))]
            found += [str(mlir.dtype_to_ir_type(np.dtype(name))) for name in names]
            module = ir.Module.create()
            with ir.InsertionPoint(module.body):
                made = [mlir.ir_constant(v) for v in (
                    np.int8(3), np.float64(2), np.arange(3), np.zeros((2, 2), np.float32),
                    np.array([True, False]), jnp.arange(2), jnp.bfloat16(1.5),
                    np.zeros(0, np.float32), np.complex64(1j))]
            found += [str(x.type) for x in made]
            found += [str(x.owner.attributes["value"]) for x in made[:-1]]
        return found

    same(jax_oracle, program)


def test_what_the_engine_writes_takes_any_values():
    """Values of other types than the rule's own, without saying so."""
    def rule(ctx, x, y):
        row = hlo.reduce_precision(hlo.slice(x, [0, 0], [1, 3], [1, 1]), 8, 23)
        return mlir.lower_fun(lambda row: jnp.sin(row).sum(0), multiple_results=False)(ctx, row)

    p = defined("first_row", rule, lambda x, y: jax.core.ShapedArray((3,), x.dtype))
    np.testing.assert_allclose(jax.jit(p.bind)(X, jnp.arange(2)), np.sin(X[0]), rtol=1e-6)
    with pytest.raises(TypeError, match=r"(?s)ctx\.replace got tokens_in\..*avals_in, avals_out"):
        jax.jit(defined("other", lambda ctx, x: ctx.replace(tokens_in=None)).bind)(X)


def test_zeros_of_a_rule_are_made(jax_oracle):
    def program():
        zeros = [ad.Zero(jax.core.ShapedArray(shape, dtype))
                 for shape, dtype in [((2,), "float32"), ((), "int32")]]
        return [*(z.instantiate() for z in zeros), str(jax.tree.structure(zeros)),
                jax.tree.leaves(zeros), str(jax.vmap(lambda x: (x, zeros[0]))(jnp.ones(3))[1])]

    same(jax_oracle, program)


def test_what_a_rule_raises_is_raised():
    def rule(ctx, x):
        raise ValueError("only on Tuesdays")

    with pytest.raises(ValueError, match="only on Tuesdays"):
        jax.jit(defined("raises", rule).bind)(1.0)
    wrong = defined("wrong", lambda ctx, x: [mlir.ir_constant(np.int32(1))])
    with pytest.raises(TypeError, match=r"returned \[tensor<i32>\], which are not 1 val"):
        jax.jit(wrong.bind)(1.0)


def test_sizes_are_written_as_an_array():
    def rule(ctx, x):
        size = hlo.get_dimension_size(x, 1)
        sizes = mlir.shape_tensor(ctx.module_context, [2, size])
        assert str(sizes.type) == "tensor<2xi32>"
        assert str(mlir.shape_tensor(ctx.module_context, [2, 3]).type) == "tensor<2xi32>"
        return [hlo.dynamic_reshape(x.type, x, sizes)]

    np.testing.assert_array_equal(jax.jit(defined("reshaped", rule).bind)(X), X)
