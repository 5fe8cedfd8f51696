"""Do the tools that libraries wrap functions with do here what they do in JAX?

Layers around flat functions, partial evaluation, descriptions of functions, batching rules that
know their axis: what libraries of layers and solvers are built of.
"""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem import api_util as api
from saem.core import source
from saem.extend import core, source_info_util
from saem.extend import linear_util as lu
from saem.interpreters import ad, batching, mlir
from saem.interpreters import partial_eval as pe


def info(f, args, **kwargs):
    return api.debug_info("test", f, args, kwargs)


def wrap(f, args, **kwargs):
    return lu.wrap_init(f, debug_info=info(f, args, **kwargs))


def unknown(*shape):
    return pe.PartialVal.unknown(jax.core.ShapedArray(shape, jnp.float32))


def test_layers_run_outermost_first(jax_oracle):
    def program():
        seen = []

        @lu.transformation
        def scaled(k, *args):
            seen.append(("in", k))
            outs = yield (args, {})
            seen.append(("out", k))
            yield [x * k for x in outs]

        @lu.transformation_with_aux
        def counted(*args):
            outs = yield (args, {"z": 5})
            yield (outs, len(outs))

        @lu.transformation2
        def shifted(f, k, *args):
            return [x + k for x in f(*args)]

        @lu.transformation_with_aux2
        def noted(f, store, *args):
            outs = f(*args)
            store.store("noted")
            return outs

        f = wrap(lambda x, y, z=0: [x + y + z, x * y], (1, 2))
        g, count = counted(f)
        h, note = noted(shifted(scaled(scaled(g, 2), 3), 100))
        return [h.call_wrapped(3, 4), count(), note(), seen]

    same(jax_oracle, program)


def test_stores_refuse(jax_oracle):
    def early():
        _, count = api.flatten_fun_nokwargs(wrap(lambda x: x, (1.0,)), jax.tree.structure((1.0,)))
        return count()

    def late():
        g, count = api.flatten_fun_nokwargs(wrap(lambda x: x, (1.0,)), jax.tree.structure((1.0,)))
        return (g.call_wrapped(1.0), g.call_wrapped([1.0]), count())[2]

    def program():
        def pair():
            f = wrap(lambda x: x, (1.0,))
            return api.flatten_fun_nokwargs(f, jax.tree.structure((1.0,)))

        (f, first), (_, second) = pair(), pair()
        f.call_wrapped(1.0)
        return [lu.merge_linear_aux(first, second)[0], lu.merge_linear_aux(second, first)[0]]

    same_error(jax_oracle, early, "Store empty")
    same_error(jax_oracle, late, "Store occupied")
    same(jax_oracle, program)


def test_functions_wrapped_alike_are_equal_and_remembered(jax_oracle):
    def program():
        calls = []

        @lu.cache
        def traced(f, n):
            calls.append(n)
            return f.call_wrapped(*range(n))

        def add(x, y):
            return {"sum": x + y}

        tree = jax.tree.structure((1, 2))
        dbg = info(add, (1, 2))

        def flat():
            return api.flatten_fun_nokwargs(lu.wrap_init(add, debug_info=dbg), tree)

        (f, ft), (g, gt) = flat(), flat()
        return [f == g, hash(f) == hash(g), traced(f, 2), traced(g, 2), calls, str(ft()), str(gt())]

    same(jax_oracle, program)


def test_flat_functions_and_descriptions(jax_oracle):
    def program():
        def f(x, y, *rest, scale):
            return {"a": x * scale, "b": [y["q"] + rest[0]]}

        args, kwargs = (1.0, {"q": 2.0}, 3.0), {"scale": 4.0}
        leaves, tree = jax.tree.flatten((args, kwargs))
        flat, out_tree = api.flatten_fun(wrap(f, args, **kwargs), tree)
        part, dyn = api.argnums_partial(
            wrap(lambda x, n, y: x * n + y, (1, 2, 3)), (0, 2), (1.0, 7, 2.0)
        )
        first, one = api.argnums_partial(wrap(lambda x, n: x * n, (1, 2)), 0, (5.0, 3))
        d = info(f, args, **kwargs)
        return [
            flat.call_wrapped(*leaves),
            str(out_tree()),
            part.call_wrapped(*dyn),
            list(dyn),
            first.call_wrapped(*one),
            d.traced_for,
            d.arg_names,
            d.func_src_info.split(" ")[0],
            api.donation_vector((0,), ("scale",), tree),
            api.donation_vector((1,), (), tree),
            api.donation_vector((1,), (), jax.tree.structure((1.0, [2.0, 3.0])), False),
        ]

    same(jax_oracle, program)

    def refused():
        return api.argnums_partial(wrap(lambda x, n: x, (1, [2])), 0, (1.0, [2]))

    same_error(jax_oracle, refused, "Non-hashable static arguments")


def test_partial_evaluation_computes_what_is_known(jax_oracle):
    def program():
        ran = []

        def f(x, y):
            z = jnp.sin(y)
            ran.append(isinstance(z, jax.core.Tracer))
            return x * z, z + 1.0, jnp.float32(3.0)

        jaxpr, pvals, consts = pe.trace_to_jaxpr_nounits(
            wrap(f, (1.0, 2.0)), [unknown(3), pe.PartialVal.known(jnp.float32(2.0))]
        )
        x = jnp.arange(3.0)
        return [
            [p.is_known() for p in pvals],
            [p.get_known() for p in pvals],
            [str(p.get_aval()) for p in pvals[:1]],
            ran,
            len(jaxpr.outvars),
            jax.core.eval_jaxpr(jaxpr, consts, x),
        ]

    same(jax_oracle, program)

    def program():
        x = jnp.arange(2.0)
        outs = []
        for inst in (True, [False, True]):
            jaxpr, pvals, consts = pe.trace_to_jaxpr_nounits(
                wrap(lambda x, y: (y, y + 1.0), (x, x)), [unknown(2), pe.PartialVal.known(x)], inst
            )
            outs.append([[p.is_known() for p in pvals], jax.core.eval_jaxpr(jaxpr, consts, x)])
        jaxpr, avals, consts = pe.trace_to_jaxpr_dynamic(
            wrap(lambda x: [jnp.cos(x) * 2.0], (x,)), [jax.core.ShapedArray((2,), jnp.float32)]
        )
        return [outs, [str(a) for a in avals], jax.core.eval_jaxpr(jaxpr, consts, x)]

    same(jax_oracle, program)


def test_batching_rules_that_know_their_axis(jax_oracle):
    def program():
        seen = []
        p, q = core.Primitive("with_axis"), core.Primitive("with_axis_data")
        for prim in (p, q):
            prim.def_impl(lambda x, *, k: x * k)
            prim.def_abstract_eval(lambda x, *, k: x)

        def first(size, name, trace_type, args, dims, *, k):
            seen.append((size, name, dims))
            return args[0] * k, dims[0]

        def second(axis, args, dims, *, k):
            seen.append((axis.size, axis.name, axis.spmd_name, dims))
            return args[0] * k, dims[0]

        batching.axis_primitive_batchers[p] = first
        batching.fancy_primitive_batchers[q] = second
        x = jnp.arange(6.0).reshape(2, 3)
        outs = [
            jax.vmap(lambda x, r=r: r.bind(x, k=2.0), in_axes=1, axis_name="i")(x) for r in (p, q)
        ]
        outs.append(jax.vmap(lambda x: q.bind(x, k=2.0), axis_name="i", spmd_axis_name="m")(x))
        outs.append(
            jax.vmap(jax.vmap(lambda x: p.bind(x, k=2.0), axis_name="inner"), axis_name="outer")(x)
        )
        return [outs, seen]

    same(jax_oracle, program)


def test_the_smaller_rule_makers(jax_oracle):
    def program():
        p, r = core.Primitive("times"), core.Primitive("fold")
        p.def_impl(lambda x, y: x * y)
        p.def_abstract_eval(lambda x, y: x)
        mlir.register_lowering(p, mlir.lower_fun(lambda x, y: x * y, multiple_results=False))
        ad.defbilinear(p, lambda ct, x, y: p.bind(ct, y), lambda ct, x, y: p.bind(x, ct))
        s = core.Primitive("root")
        s.def_impl(lambda x: jnp.sqrt(x))
        s.def_abstract_eval(lambda x: x)
        ad.defjvp2(s, lambda t, ans, x: t / (2.0 * ans))
        r.def_impl(lambda x, *, axes: jnp.sum(x, axes))
        batching.defreducer(r)
        x = jnp.arange(24.0).reshape(2, 3, 4)
        return [
            jax.grad(lambda x, y: p.bind(x, y), (0, 1))(3.0, 4.0),
            jax.jvp(lambda x: p.bind(x, x), (3.0,), (1.0,)),
            jax.jvp(s.bind, (9.0,), (1.0,)),
            [jax.vmap(lambda x: r.bind(x, axes=(0,)), in_axes=d)(x) for d in range(3)],
            batching.broadcast(jnp.arange(2.0), 3, 1, None),
        ]

    same(jax_oracle, program)


def test_frames_of_an_excluded_library_are_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "_excluded", [*source._excluded])
    monkeypatch.setattr(source, "_internal", {})
    library = tmp_path / "wrapping.py"
    library.write_text("def doubled(x):\n    return x * 2\n")
    names: dict = {}
    exec(compile(library.read_text(), str(library), "exec"), names)

    def place():
        closed = jax.make_jaxpr(lambda x: names["doubled"](x))(jnp.ones(2))
        return closed.jaxpr.eqns[0].position().file

    assert place() == str(library)
    source_info_util.register_exclusion(str(tmp_path))
    assert place() == __file__


def test_a_store_is_read_only_when_it_is_full():
    store = lu.Store()
    with pytest.raises(lu.StoreException, match="has not run"):
        _ = store.val


def test_programs_among_the_parameters_of_a_users_primitive(jax_oracle):
    def program():
        inner = jax.make_jaxpr(jnp.sin)(1.0).jaxpr
        p = core.Primitive("holding")
        run = lambda x, *, jaxpr: jax.core.eval_jaxpr(jaxpr, [], x)[0]
        p.def_impl(run)
        p.def_abstract_eval(lambda x, *, jaxpr: x)
        mlir.register_lowering(p, mlir.lower_fun(run, multiple_results=False))
        ad.primitive_jvps[p] = lambda xs, ts, *, jaxpr: jax.jvp(
            lambda x: run(x, jaxpr=jaxpr), xs, ts
        )
        f = lambda x: p.bind(x, jaxpr=inner)
        seen = []

        def watched(x):
            seen.append(x._trace.main is x._trace.main)
            return x

        jax.jvp(watched, (1.0,), (1.0,))
        return [jax.jit(f)(2.0), jax.jit(jax.grad(f))(2.0), jax.grad(jax.jit(f))(2.0), seen]

    same(jax_oracle, program)


def test_zeros_and_transposes_of_what_libraries_hand_over(jax_oracle):
    def program():
        zero = jax.custom_derivatives.zero_from_primal
        value = {"a": jnp.ones(2), "b": [3.0, jnp.arange(2)]}
        f = jax.linear_transpose(lambda x: 2.0 * x, jax.core.ShapedArray((2,), jnp.float32))
        plain = zero(value)
        return [
            plain["a"],
            plain["b"][0],
            str(plain["b"][1].dtype),
            [
                type(x).__name__
                for x in jax.tree.leaves(
                    zero(value, symbolic_zeros=True), is_leaf=lambda x: hasattr(x, "shape")
                )
            ],
            f(jnp.arange(2.0)),
        ]

    same(jax_oracle, program)


def test_a_rule_that_removes_dead_code(jax_oracle):
    def program():
        p = core.Primitive("two")
        p.multiple_results = True

        def pair(x, y, keep=(True, True)):
            return [a for a, kept in zip((jnp.sin(x), jnp.cos(y)), keep) if kept]

        p.def_abstract_eval(lambda x, y, keep=(True, True): [
            a for a, kept in zip((x, y), keep) if kept])
        mlir.register_lowering(p, mlir.lower_fun(pair, multiple_results=True))

        def rule(used, eqn):
            if all(used):
                return [True, True], eqn
            if used[0]:
                return [True, True], eqn.replace(
                    params={**eqn.params, "keep": tuple(used)}, outvars=eqn.outvars[:1])
            return [False, False], None

        pe.dce_rules[p] = rule
        j = jax.make_jaxpr(lambda x: p.bind(x, x * 2))(1.0).jaxpr
        in_scan = jax.make_jaxpr(lambda x: jax.lax.scan(
            lambda c, _: (c, tuple(p.bind(c, c))), x, None, length=2))(1.0).jaxpr
        pruned = pe.dce_jaxpr(in_scan, [True, True, False])
        asked = [True, True], [True, False], [False, True]
        return [str(pe.dce_jaxpr(j, used)) for used in asked] + [
            "keep=(True, False)" in str(pruned), jax.jit(lambda x: p.bind(x, x * 2)[0])(1.0),
            jax.jit(core.jaxpr_as_fun(core.ClosedJaxpr(
                pe.dce_jaxpr(j, [True, False])[0], ())))(1.0)]

    same(jax_oracle, program)


def test_a_rule_that_calls_python(jax_oracle):
    def program():
        def defined(name, effect):
            seen = []

            def twice(x, y):
                seen.append(float(np.asarray(x)))
                return np.asarray(x) * 2, np.asarray(y) + 1

            def write(ctx, x, y):
                outs, _, keep = mlir.emit_python_callback(
                    ctx, twice, None, [x, y], ctx.avals_in, ctx.avals_out, has_side_effect=effect)
                ctx.module_context.add_keepalive(keep)
                return outs

            p = core.Primitive(name)
            p.multiple_results = True
            p.def_impl(lambda x, y: [x * 2, y + 1])
            p.def_abstract_eval(lambda x, y: [x, y])
            mlir.register_lowering(p, write)
            return p, seen

        result = []
        for name, effect in (("pure", False), ("acting", True)):
            p, seen = defined(name, effect)
            f = jax.jit(lambda x, y, p=p: p.bind(jnp.sin(x), y))
            g = jax.jit(lambda x, p=p: jax.lax.scan(
                lambda c, i: (p.bind(c, i)[0], c), x, jnp.arange(3.0)))
            result.append([f(1.0, jnp.arange(3)), f(2.0, jnp.arange(3)), g(0.5), seen])
        return result

    same(jax_oracle, program)


def test_a_rule_that_calls_python_with_a_token_is_refused():
    context = mlir.LoweringRuleContext(None, None, [], [])
    with pytest.raises(TypeError, match=r"(?s)without a token.*io_callback"):
        mlir.emit_python_callback(context, len, "token", [], [], [], has_side_effect=True)


def test_tracers_may_be_referred_to_weakly(jax_oracle):
    def program():
        kept = []

        def f(x):
            kept.append(weakref.ref(x)() is x)
            return x * 2

        jax.jit(f)(1.0), jax.vmap(f)(jnp.ones(2)), jax.grad(f)(1.0), jax.linearize(f, 1.0)
        return kept

    same(jax_oracle, program)


def test_a_function_inlined_is_traced_all_the_same(jax_oracle):
    def program():
        seen = []

        def f(a, b=2.0):
            seen.append((isinstance(a, jax.core.Tracer), a.dtype, a.weak_type))
            return {"out": a * b}, a

        g = jax.jit(f, inline=True)
        outs = [jax.jit(lambda x: g(3.0, x))(2.0), jax.vmap(lambda x: g(2, x))(jnp.ones(3)),
                jax.grad(lambda x: g(x)[0]["out"])(3.0), g(1.0)]
        printed = [str(jax.make_jaxpr(h)(1.0)) for h in (
            lambda x: g(2.0, x), lambda x: (g(x), g(x)), lambda x: g(np.ones(2), b=x))]
        return outs, printed, seen

    same(jax_oracle, program)


def test_an_inlined_function_knows_no_numbers(jax_oracle):
    same_error(jax_oracle, """
f = jax.jit(lambda x, y: y if x > 0 else -y, inline=True)
result = jax.jit(lambda y: f(2.0, y))(1.0)
""", "Attempted boolean conversion of traced array with shape bool[].")


def test_shapes_that_do_not_broadcast_are_named(jax_oracle):
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        jax.lax.broadcast_shapes((1, 2), (3, 1, 4))
    same(jax_oracle, "[jax.lax.broadcast_shapes((2, 1), (3,)), jax.lax.broadcast_shapes(())]")


def test_a_callable_objects_name_may_be_anything(jax_oracle):
    def program():
        class Scaled:
            __name__, __annotations__ = 3, ()

            def __call__(self, x):
                return x * 2

        f, x = Scaled(), jnp.ones(2)
        return [jax.vmap(f)(x), jax.grad(f)(1.0), jax.value_and_grad(f)(1.0)[1], jax.jacfwd(f)(x),
                jax.jacrev(f)(x), jax.checkpoint(f)(x), jax.hessian(lambda x: f(x).sum())(x)]

    same(jax_oracle, program)


def test_derivatives_go_through_views(jax_oracle):
    def program():
        x, z = jnp.arange(4.0), jnp.arange(2.0) + 1j
        made = (lambda x: x.view(x.dtype), lambda x: x.view("float32"), lambda x: x.view(float),
                lambda x: x.view(), lambda x: x.view(jnp.complex64),
                lambda x: x.view(jnp.int32).view(jnp.float32))
        found = [jax.jvp(f, (x,), (x,)) for f in made]
        found += [jax.jvp(f, (z,), (z,)) for f in (
            lambda z: z.view(jnp.float32), lambda z: z.view(z.dtype))]
        found.append(jax.grad(lambda x: (x.view(x.dtype) ** 2).sum())(x))
        return found, str(jax.make_jaxpr(made[0])(x))

    same(jax_oracle, program)


def test_categories_are_drawn_for_rows_that_broadcast(jax_oracle):
    def program():
        key, logits = jax.random.key(0), jnp.sin(jnp.arange(12.0)).reshape(3, 4)
        return [jax.random.categorical(key, logits[..., None], shape=(3, 5), axis=1),
                jax.random.categorical(key, logits[:1], shape=(2, 6)),
                jax.random.categorical(key, logits[:1], shape=(3,), axis=1)]

    same(jax_oracle, program)
