"""Do programs that walk jaxprs, and primitives of users, do here what they do in JAX?"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.extend import core
from saem.interpreters import ad, batching, mlir
from saem.interpreters import partial_eval as pe

registry = {lax.exp_p: jnp.log, lax.tanh_p: jnp.arctanh, lax.neg_p: lambda y: -y}


def inverse_jaxpr(jaxpr, consts, *args):
    env = {}

    def read(var):
        return var.val if type(var) is core.Literal else env[var]

    def write(var, val):
        env[var] = val

    for var, val in zip(jaxpr.outvars, args):
        write(var, val)
    for var, val in zip(jaxpr.constvars, consts):
        write(var, val)
    for eqn in jaxpr.eqns[::-1]:
        invals = [read(v) for v in eqn.outvars]
        if eqn.primitive not in registry:
            raise NotImplementedError(f"{eqn.primitive} does not have registered inverse.")
        outval = registry[eqn.primitive](*invals)
        for v, val in zip(eqn.invars, [outval]):
            write(v, val)
    return [read(v) for v in jaxpr.invars]


def inverse(fun):
    def wrapped(*args):
        closed = jax.make_jaxpr(fun)(*args)
        out = inverse_jaxpr(closed.jaxpr, closed.literals, *args)
        return out[0]

    return wrapped


def test_the_inverse_interpreter(jax_oracle):
    def program():
        f = lambda x: jnp.exp(jnp.tanh(-x))
        g = inverse(f)
        x = jnp.linspace(0.1, 0.7, 5)
        return [g(f(x)), jax.jit(jax.vmap(jax.grad(g)))(f(x)), str(jax.make_jaxpr(g)(f(x)))]

    same(jax_oracle, program, rtol=1e-5)

    def refused():
        return inverse(lambda x: jnp.sin(x))(1.0)

    same_error(jax_oracle, refused, "sin does not have registered inverse.")


def test_an_interpreter_that_binds_every_equation(jax_oracle):
    """Parameters come back as ``bind`` takes them, of programs inside as well."""
    def program():
        def run(closed, *args):
            env = dict(zip(closed.jaxpr.constvars, closed.consts))
            env.update(zip(closed.jaxpr.invars, args))
            get = lambda a: a.val if isinstance(a, core.Literal) else env[a]
            for eqn in closed.jaxpr.eqns:
                params = eqn.primitive.get_bind_params(eqn.params)
                out = eqn.primitive.bind(*map(get, eqn.invars), **params)
                env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out]))
            return [get(a) for a in closed.jaxpr.outvars]

        def f(x, i):
            y = jax.jit(lambda a: jnp.sort(a, axis=0).sum(0))(x) @ jnp.ones((3, 2))
            y = lax.cond(i > 0, jnp.sin, jnp.cos, y).reshape(1, 2)
            y = lax.scan(lambda c, a: (c * a, c[0]), y, jnp.arange(3.0))[1]
            y = jnp.concatenate([y, y]).at[1].add(2.0).astype(jnp.float16)
            return lax.fori_loop(0, i, lambda _, a: a[::-1], y)

        x = jnp.arange(12.0, dtype=jnp.float32).reshape(4, 3)
        return run(jax.make_jaxpr(f)(x, 1), x, 1)

    same(jax_oracle, program)


def test_primitives_bind_by_name(jax_oracle):
    def program():
        x = jnp.arange(6.0).reshape(2, 3)
        return [
            lax.add_p.bind(x, x),
            lax.exp_p.bind(x, accuracy=None),
            str(lax.scatter_add_p),
            lax.reduce_sum_p.bind(x, axes=(0,), out_sharding=None),
            lax.broadcast_in_dim_p.bind(
                x, shape=(2, 2, 3), broadcast_dimensions=(1, 2), sharding=None
            ),
            core.primitives.add_p is lax.add_p,
            core.primitives.remat_p.name,
            core.primitives.linear_solve_p.name,
            isinstance(lax.exp_p, core.Primitive),
            str(jax.make_jaxpr(lambda x: lax.add_p.bind(x, x))(x)),
        ]

    same(jax_oracle, program)


def test_what_readers_ask(jax_oracle):
    def program():
        closed = jax.make_jaxpr(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, jax.jit(jnp.exp)(x)))(
            1.0
        )
        aval = jax.core.ShapedArray((3, 4), jnp.float32)
        eqn = closed.jaxpr.eqns[0]
        state = core.get_opaque_trace_state()
        seen = []

        def f(x):
            seen.append(core.get_opaque_trace_state() == state)
            with jax.core.eval_context():
                seen.append(isinstance(jnp.sin(1.0), jax.core.Tracer))
            seen.append(isinstance(jnp.sin(x), jax.core.Tracer))
            return core.concrete_or_error(int, 3.5) + x

        jax.jit(f)(1.0)
        small = closed.jaxpr.replace(eqns=closed.jaxpr.eqns[:1], outvars=[eqn.outvars[0]])
        turned = closed.jaxpr.eqns[1].replace(primitive=lax.log_p, params={"accuracy": None})
        return [
            [str(j) for j in core.subjaxprs(closed.jaxpr)],
            seen,
            str(small),
            turned.primitive.name,
            core.mapped_aval(3, 0, aval).str_short(True),
            core.unmapped_aval(5, 1, aval).str_short(True),
            core.jaxpr_as_fun(closed)(2.0),
            jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 2.0),
            core.valid_jaxtype(1),
            core.valid_jaxtype("a"),
            np.float32 in core.array_types,
            core.get_opaque_trace_state() == state,
            jax.core.max_dim(2, 3),
            core.no_effects == set(),
        ]

    same(jax_oracle, program)


MOVED = (
    "CallPrimitive DebugInfo DropVar Effect Effects InconclusiveDimensionOperation JaxprTypeError "
    "check_jaxpr concrete_or_error find_top_trace gensym get_opaque_trace_state jaxprs_in_params "
    "new_jaxpr_eqn no_effects nonempty_axis_env_DO_NOT_USE primal_dtype_to_tangent_dtype "
    "unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE "
    "unsafe_get_axis_names_DO_NOT_USE valid_jaxtype").split()


@pytest.mark.filterwarnings("ignore:jax.core.is_con:DeprecationWarning")
def test_what_is_known_while_tracing(jax_oracle):
    def program():
        is_concrete, is_constant_dim = jax.core.is_concrete, jax.core.is_constant_dim
        found = [is_concrete(x) for x in (1, 1.0, np.ones(2), jnp.ones(2), "a", None)]

        def f(x):
            found.append(is_concrete(x))
            return x * 2.0

        jax.jit(f)(1.0), jax.grad(f)(1.0), jax.vmap(f)(jnp.ones(2)), jax.jvp(f, (1.0,), (1.0,))
        jax.linearize(f, 1.0), jax.vjp(f, 1.0), jax.jit(jax.grad(f))(1.0)
        jax.vmap(jax.grad(f))(jnp.ones(2)), jax.grad(jax.grad(f))(1.0)
        jax.eval_shape(lambda x: f(x), 1.0)
        found += [is_constant_dim(d) for d in (3, "a", np.int32(3), 3.0)]
        return found + [jax.core.is_constant_shape(s) for s in ((2, 3), (2, "a"), ())]

    same(jax_oracle, program)


def test_which_transformations_a_function_is_under(jax_oracle):
    def program():
        found = []

        def f(x):
            found.append((core.unsafe_am_i_under_a_jit_DO_NOT_USE(),
                          core.unsafe_am_i_under_a_vmap_DO_NOT_USE()))
            return x * 2.0

        x = jnp.ones(2)
        f(x), jax.jit(f)(x), jax.vmap(f)(x), jax.jvp(f, (x,), (x,)), jax.linearize(f, x)
        jax.jit(jax.grad(lambda x: f(x).sum()))(x), jax.vmap(jax.jit(f))(x)
        jax.jit(jax.vmap(f))(x), jax.checkpoint(f)(x), jax.eval_shape(lambda x: f(x), x)
        jax.lax.scan(lambda c, y: (c, f(y)), 0.0, x), jax.lax.cond(True, f, lambda x: x, x)
        jax.lax.map(f, x), jax.make_jaxpr(lambda x: f(x))(x), f(x)
        with jax.disable_jit():
            jax.jit(f)(x)
        return found

    same(jax_oracle, program)


def test_names_that_moved_from_core(jax_oracle):
    def program():
        found = []
        for name in MOVED:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                same = getattr(jax.core, name) is getattr(core, name)
                found.append((same, [(w.category.__name__, str(w.message)) for w in seen]))
        return found

    same(jax_oracle, program)

    def refused():
        return jax.jit(lambda x: core.concrete_or_error(int, x, "as I said"))(1.0)

    same_error(jax_oracle, refused, "as I said")


def square_add(p):
    """Return a * a + b by a primitive that multiplies and adds."""
    return lambda a, b: p.bind(a, a, b)


def with_rules():
    """Return the primitive x * y + z with the rules of the tutorial."""
    p = core.Primitive("multiply_add")
    fma = p.bind
    p.def_impl(lambda x, y, z: jnp.asarray(np.add(np.multiply(x, y), z), "float32"))
    p.def_abstract_eval(lambda x, y, z: jax.core.ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(p, mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False))

    def value_and_jvp(args, tangents):
        x, y, z = args
        dx, dy, dz = tangents
        zero = lambda t, x: lax.full_like(x, 0) if type(t) is ad.Zero else t
        return fma(x, y, z), fma(zero(dx, x), y, fma(x, zero(dy, y), zero(dz, z)))

    def transpose(ct, x, y, z):
        if not ad.is_undefined_primal(x):
            assert ad.is_undefined_primal(y)
            return None, fma(ct, x, lax.full_like(x, 0)), ct
        return fma(ct, y, lax.full_like(y, 0)), None, ct

    def batch(args, dims):
        size = next(x.shape[d] for x, d in zip(args, dims) if d is not None)
        return fma(*(batching.bdim_at_front(x, d, size) for x, d in zip(args, dims))), 0

    ad.primitive_jvps[p] = value_and_jvp
    ad.primitive_transposes[p] = transpose
    batching.primitive_batchers[p] = batch
    return p


def test_a_primitive_of_the_users(jax_oracle):
    """The steps of the tutorial: each rule makes one more transformation work."""
    def program():
        f = square_add(with_rules())
        x = jnp.array([1.0, 2.0])
        return [
            f(2.0, 10.0),
            jax.jit(f)(2.0, 10.0),
            jax.jvp(f, (2.0, 10.0), (1.0, 1.0)),
            jax.grad(f)(2.0, 10.0),
            jax.jit(jax.grad(f))(2.0, 10.0),
            jax.jit(jax.vmap(f))(x, x),
            jax.jit(jax.vmap(jax.grad(f)))(x, x),
            str(jax.make_jaxpr(f)(2.0, 10.0)),
        ]

    same(jax_oracle, program)


def without_value():
    return square_add(core.Primitive("multiply_add"))(2.0, 10.0)


def without_type():
    return jax.jit(square_add(core.Primitive("multiply_add")))(2.0, 10.0)


def without_lowering():
    p = core.Primitive("multiply_add")
    p.def_abstract_eval(lambda x, *_: x)
    return jax.jit(square_add(p))(2.0, 10.0)


def without_derivative():
    p = core.Primitive("multiply_add")
    p.def_impl(lambda x, y, z: x * y + z)
    return jax.jvp(square_add(p), (2.0, 10.0), (1.0, 1.0))


def without_transpose():
    p = with_rules()
    del ad.primitive_transposes[p]
    return jax.grad(square_add(p))(2.0, 10.0)


def without_batching():
    p = with_rules()
    del batching.primitive_batchers[p]
    return jax.vmap(square_add(p))(jnp.ones(2), jnp.ones(2))


@pytest.mark.parametrize(("program", "sentence"), [
    (without_value, "Evaluation rule for 'multiply_add' not implemented"),
    (without_type, "Abstract evaluation for 'multiply_add' not implemented"),
    (without_lowering,
     "translation rule for primitive 'multiply_add' not found for platform cpu"),
    (without_derivative, "Differentiation rule for 'multiply_add' not implemented"),
    (without_transpose,
     "Transpose rule (for reverse-mode differentiation) for 'multiply_add' not implemented"),
    (without_batching, "Batching rule for 'multiply_add' not implemented"),
], ids=lambda value: getattr(value, "__name__", ""))
def test_a_rule_that_is_missing_is_named(jax_oracle, program, sentence):
    same_error(jax_oracle, program, sentence)


def test_a_class_of_primitives_with_rules_of_its_own(jax_oracle):
    def program():
        class Tag(core.Primitive):
            multiple_results = True

            def impl(self, *xs, scale):
                return [x * scale for x in xs]

            def abstract_eval(self, *avals, scale):
                return avals, core.no_effects

        tag = Tag("tag")
        mlir.register_lowering(tag, mlir.lower_fun(
            lambda *xs, scale: [x * scale for x in xs], True))
        f = lambda x, y: tag.bind(x, y, scale=2.0)
        closed = jax.make_jaxpr(f)(1.0, jnp.ones(3))
        return [f(1.0, jnp.arange(3.0)), jax.jit(f)(1.0, jnp.arange(3.0)), str(closed),
                [str(v) for v in tag.abstract_eval(*closed.in_avals, scale=1.0)[0]]]

    same(jax_oracle, program)


def test_several_results_and_linear_rules(jax_oracle):
    def program():
        two = core.Primitive("two")
        two.multiple_results = True
        two.def_impl(lambda x, *, k: [x * k, x + k])
        two.def_abstract_eval(lambda x, *, k: [x, x])
        mlir.register_lowering(two, mlir.lower_fun(lambda x, *, k: [x * k, x + k]))

        def jvp(primals, tangents, *, k):
            return two.bind(*primals, k=k), [tangents[0] * k, tangents[0]]

        ad.primitive_jvps[two] = jvp
        twice = core.Primitive("twice")
        twice.def_impl(lambda x: x * 2)
        twice.def_abstract_eval(lambda x: x)
        mlir.register_lowering(twice, mlir.lower_fun(lambda x: x * 2, False))
        ad.deflinear2(twice, lambda ct, x: [twice.bind(ct)])
        batching.defvectorized(twice)
        f = lambda x: two.bind(twice.bind(x), k=3.0)
        return [
            f(2.0),
            jax.jit(f)(2.0),
            jax.grad(lambda x: sum(f(x)))(2.0),
            jax.jvp(f, (2.0,), (1.0,)),
            str(jax.make_jaxpr(f)(2.0)),
            jax.jit(jax.vmap(jax.grad(lambda x: twice.bind(x))))(jnp.ones(3)),
        ]

    same(jax_oracle, program)


@pytest.mark.parametrize(("rule", "why"), [
    (lambda ctx, x: [x.type], r"returned \[RankedTensorType\(tensor<f32>\)\], which are not 1 val"),
    (lambda ctx, x: [ctx.tokens_in], "no ctx.tokens_in here, only avals_in"),
    (lambda ctx, x: [3], r"returned \[3\], which are not 1 values of types \[tensor<f32>\]"),
    (lambda ctx, x: [x, x], r"returned \[tensor<f32>, tensor<f32>\], which are not 1 values")])
def test_a_rule_that_returns_something_else_is_refused(rule, why):
    p = jax.extend.core.Primitive("built")
    p.def_abstract_eval(lambda x: x)
    jax.interpreters.mlir.register_lowering(p, rule)
    with pytest.raises((TypeError, AttributeError), match=why):
        jax.jit(p.bind)(1.0)


def test_rules_may_be_functions_around_lower_fun(jax_oracle):
    def program():
        p = core.Primitive("scaled")
        p.def_abstract_eval(lambda x, *, k: x)

        def rule(ctx, x, *, k):
            [aval] = ctx.avals_in
            return mlir.lower_fun(lambda x: x * k + aval.size, multiple_results=False)(ctx, x)

        mlir.register_lowering(p, rule)
        same = core.Primitive("same")
        same.def_abstract_eval(lambda x: x)
        mlir.register_lowering(same, lambda ctx, x: [x])
        return [jax.jit(lambda x: p.bind(x, k=3.0))(jnp.ones(4)), jax.jit(same.bind)(jnp.ones(2))]

    same(jax_oracle, program)


def test_one_handle_whatever_the_parameters():
    closed = jax.make_jaxpr(lambda x: x.sum(0) + x.sum(1))(jnp.ones((2, 2)))
    first, second, _ = closed.jaxpr.eqns
    assert first.primitive is second.primitive is lax.reduce_sum_p
    assert first.operation != second.operation


def test_dead_code(jax_oracle):
    def program():
        jaxpr = jax.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y), x * y))(1.0, 2.0).jaxpr
        small, kept = pe.dce_jaxpr(jaxpr, [True, False, False])
        return [str(small), kept]

    same(jax_oracle, program)


def test_the_state_of_tracing_is_the_interpreter_alone(jax_oracle):
    def program():
        mesh = jax.make_mesh((1,), ("a",), axis_types=(jax.sharding.AxisType.Auto,))
        before, found = core.get_opaque_trace_state(), []
        for context in (jax.set_mesh(mesh), jax.default_matmul_precision("float32"),
                        jax.enable_x64(True), jax.disable_jit(), jax.named_scope("a"),
                        jax.core.eval_context()):
            with context:
                found.append(core.get_opaque_trace_state() == before)

        def f(x):
            inside = core.get_opaque_trace_state()
            with jax.default_matmul_precision("float32"):
                found.append(core.get_opaque_trace_state() == inside)
            found.append(inside == before)
            return x

        jax.vmap(f)(jnp.ones(2)), jax.jit(f)(1.0), jax.grad(f)(1.0)
        return found

    same(jax_oracle, program)
    same_error(jax_oracle, "hash(core.get_opaque_trace_state())", "unhashable", within=__name__)
