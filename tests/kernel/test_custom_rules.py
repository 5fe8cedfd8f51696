"""Does a function with rules of its own do what JAX's does, under every transformation?

``custom_jvp`` and ``custom_vjp``: values, printed programs and errors against real JAX; rules that
lie about their derivative show that it is they who are asked.

Read before: ``both.py``, ``saem.derivatives.custom_jvp``, ``saem.derivatives.custom_vjp``.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from both import same, same_error

import saem as jax
from saem import lax
from saem import numpy as jnp
from saem.core.infer import check_jaxpr

pytestmark = pytest.mark.usefixtures("little_effort")

# f has a rule in forward mode, v one in reverse mode; both say 3 times the derivative in x.


@jax.custom_jvp
def f(x, y):
    return jnp.sin(x) * y


@f.defjvp
def f_jvp(primals, tangents):
    x, y = primals
    dx, dy = tangents
    return f(x, y), 3 * jnp.cos(x) * y * dx + jnp.sin(x) * dy


@jax.custom_vjp
def v(x, y):
    return jnp.sin(x) * y


def v_fwd(x, y):
    return v(x, y), (x, y)


def v_bwd(r, g):
    return 3 * jnp.cos(r[0]) * r[1] * g, jnp.sin(r[0]) * g


v.defvjp(v_fwd, v_bwd)
X = np.linspace(-1, 1, 5, dtype=np.float32)


def derived(function, axes, args):
    """Return derivatives of stacks, and stacks of derivatives, of ``function``."""
    def total(a, b):
        return jax.vmap(function, axes)(a, b).sum()

    gradient = jax.grad(total, (0, 1))
    each = jax.vmap(jax.grad(function, (0, 1)), axes)
    second = jax.jit(jax.vmap(jax.jacrev(jax.grad(function), (0, 1)), axes))
    return [jax.vmap(function, axes)(*args), gradient(*args), jax.jit(gradient)(*args), each(*args),
            jax.jit(each)(*args), second(*args), jax.jit(jax.jacrev(gradient, (0, 1)))(*args)]


@pytest.mark.parametrize("function", ["f", "v", "jax.jit(f)", "jax.jit(v)"])
@pytest.mark.parametrize("axes", ["(0, 0)", "(0, None)", "(None, 0)"])
def test_derivatives_and_stacks_nest_in_any_order(jax_oracle, function, axes):
    a, b = ("x" if axis == "0" else "jnp.float32(0.7)" for axis in axes[1:-1].split(", "))
    same(jax_oracle, f"derived({function}, {axes}, ({a}, {b}))", within=__name__, x=X)


def test_forward_mode_of_a_forward_rule(jax_oracle):
    def program(x):
        def g(x):
            return f(x, x) * 2.0

        return [
            jax.jvp(g, (x,), (x,)),
            jax.jvp(jax.jit(g), (x,), (x,)),
            jax.jacfwd(g)(x),
            jax.hessian(lambda x: g(x).sum())(x),
            jax.jacfwd(jax.jacfwd(jax.jit(g)))(x[0]),
            jax.linearize(g, x)[1](x),
            jax.jvp(jax.vmap(g), (x,), (x,)),
            jax.grad(lambda x: jax.vmap(lambda a: jax.vmap(lambda b: f(a, b))(x))(x).sum())(x),
            jax.grad(lambda x: jax.vmap(lambda a: jax.vmap(lambda b: v(a, b))(x))(x).sum())(x),
        ]

    same(jax_oracle, program, x=X)


PRINTED = """
jax.make_jaxpr(f)(1., 2.)
jax.make_jaxpr(jax.jit(f))(1., 2.)
jax.make_jaxpr(lambda x: jax.jvp(lambda x: f(x, 2.), (x,), (x,)))(1.)
jax.make_jaxpr(jax.grad(f))(1., 2.)
jax.make_jaxpr(jax.vmap(f))(x, x)
jax.make_jaxpr(lambda c: f(c, jnp.arange(3.)))(1.)
jax.make_jaxpr(v)(1., 2.)
jax.make_jaxpr(jax.grad(v))(1., 2.)
jax.make_jaxpr(jax.vmap(v))(x, x)
jax.make_jaxpr(jax.vmap(v, (0, None)))(x, 1.)
jax.make_jaxpr(jax.vmap(jax.grad(v, (0, 1)), (0, None)))(x, 1.)
jax.make_jaxpr(jax.grad(lambda x, y: jax.vmap(v, (0, None))(x, y).sum(), (0, 1)))(x, 1.)
""".strip().splitlines()


def test_programs_print_as_jax_prints_them(jax_oracle):
    source = "[" + ", ".join(f"str({line})" for line in PRINTED) + "]"
    same(jax_oracle, source, within=__name__, x=X)


def closing_jvp(c):
    @jax.custom_jvp
    def g(x):
        return x * c + jnp.arange(3.0)

    g.defjvp(lambda p, t: (g(p[0]), t[0] * jnp.ones(3)))
    return g(2.0 * c)


def closing_vjp(c):
    @jax.custom_vjp
    def g(x):
        return x * c + jnp.arange(3.0)

    g.defvjp(lambda x: (g(x), None), lambda r, ct: (ct.sum(),))
    return g(2.0 * c)


@pytest.mark.parametrize("outer", ["closing_jvp", "closing_vjp"])
def test_closed_over_values_are_operands(jax_oracle, outer):
    same(jax_oracle, f"[str(jax.make_jaxpr({outer})(1.)), jax.vmap({outer})(x), "
         f"jax.jit(jax.vmap({outer}))(x), jax.vmap(jax.jit({outer}))(x)]", within=__name__, x=X)


def closing_unseen(c):
    @jax.custom_vjp
    def g(x):
        return x * c

    g.defvjp(lambda x: (x * c, None), lambda r, ct: (ct,))
    return g(2.0)


def test_derivatives_in_closed_over_values_are_refused(jax_oracle):
    same_error(jax_oracle, "jax.grad(jax.jit(closing_unseen))(1.)",
               "Detected differentiation of a custom_vjp function with respect to a closed-over",
               within=__name__)
    same_error(jax_oracle, "jax.grad(closing_unseen)(1.)", "unexpected tracer",
               within=__name__)


@pytest.mark.parametrize("call", [
    "jax.jvp(v, (1., 2.), (1., 1.))", "jax.jvp(jax.jit(v), (1., 2.), (1., 1.))",
    "jax.jit(jax.jacfwd(v))(1., 2.)", "jax.hessian(v)(1., 2.)"])
def test_forward_mode_of_a_backward_rule_is_refused(jax_oracle, call):
    same_error(jax_oracle, call,
               "can't apply forward-mode autodiff (jvp) to a custom_vjp function.",
               within=__name__)


def test_rules_run_on_numbers_outside_jit():
    seen = []

    @jax.custom_jvp
    def f(x):
        return x if x > 0 else -x

    @f.defjvp
    def rule(primals, tangents):
        seen.append(float(primals[0]))
        return f(*primals), tangents[0] * (1. if primals[0] > 0 else -1.)

    @jax.custom_vjp
    def v(x):
        return x if x > 0 else -x

    v.defvjp(lambda x: (v(x), x), lambda x, ct: (seen.append(float(x)) or (ct if x > 0 else -ct),))
    assert [float(jax.grad(g)(x)) for g in (f, v) for x in (2., -3.)] == [1., -1., 1., -1.]
    assert seen == [2., -3., 2., -3.]
    assert float(f(-3.)) == 3.


def test_symbolic_zeros(jax_oracle):
    def program(x):
        Zero = jax.custom_derivatives.SymbolicZero
        seen = []

        @jax.custom_jvp
        def g(x, y):
            return x * y

        def rule(primals, tangents):
            seen.append([type(t) is Zero for t in tangents])
            return primals[0] * primals[1], tangents[0]

        g.defjvp(rule, symbolic_zeros=True)

        @jax.custom_vjp
        def h(x, y):
            return x * y, x

        def fwd(x, y):
            seen.append([x.perturbed, y.perturbed])
            return (x.value * y.value, x.value), (x.value, y.value)

        def bwd(r, cts):
            seen.append([type(ct) is Zero for ct in cts])
            return cts[0] * r[1], None

        h.defvjp(fwd, bwd, symbolic_zeros=True)
        x = jnp.asarray(x)
        values = [
            jax.jvp(lambda x: g(x, 2.0), (x,), (x,)),
            jax.jvp(lambda x: g(jnp.float32(2.0), x), (x[0],), (x[0],)),
            jax.grad(jax.jit(lambda x: g(x, 2.0)))(x[0]),
            jax.grad(lambda x: h(x, 2.0)[0])(x[0]),
            jax.grad(jax.jit(lambda x: h(x, 2.0)[0]))(x[0]),
        ]
        return [values, seen, str(jax.make_jaxpr(h)(1.0, 2.0)), repr(Zero.from_primal_value(1.0))]

    same(jax_oracle, program, x=X)


def test_trees_defaults_and_static_arguments(jax_oracle):
    def program(x):
        @functools.partial(jax.custom_vjp, nondiff_argnames=("n",))
        def g(x, n=3):
            return {"o": x["a"] * n + x["b"]}

        g.defvjp(lambda x, n: (g(x, n), x["a"]), lambda n, r, ct: ({"a": ct["o"] * n, "b": None},))

        @functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
        def h(fun, x):
            return fun(x)

        h.defjvp(lambda fun, p, t: (fun(p[0]), 5 * t[0]))

        @functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
        def k(n, x):
            return x * n

        k.defjvp(lambda n, p, t: (p[0] * n, t[0] * n))

        @jax.custom_jvp
        def d(x, y=2.0):
            return x * y

        d.defjvp(lambda p, t: (d(*p), t[0] + 10 * t[1]))
        x = jnp.asarray(x)
        xs = {"a": x, "b": x}
        return [
            jax.grad(lambda t: g(t, 4)["o"].sum())(xs),
            jax.grad(lambda t: g(t)["o"].sum())(xs),
            jax.jit(jax.grad(lambda t: g(x=t)["o"].sum()))(xs),
            jax.grad(h, 1)(jnp.sin, x[0]),
            jax.jit(jax.grad(lambda x: h(jnp.sin, x)))(x[0]),
            jax.grad(k, (0, 1))(x[0], x[1]),
            jax.jit(k)(x[0], x[1]),
            d(x, y=3.0),
            jax.grad(d)(x[0]),
            jax.grad(d, (0, 1))(x[0], x[1]),
        ]

    same(jax_oracle, program, x=X)


def test_integers_and_partial_rules(jax_oracle):
    def program(x):
        @jax.custom_vjp
        def g(x, i):
            return x * i

        g.defvjp(lambda x, i: (x * i, i), lambda r, ct: (ct * r, None))

        @jax.custom_jvp
        def h(x, i):
            return x, i

        h.defjvp(lambda p, t: ((p[0], p[1]), (2 * t[0], t[1])))

        @jax.custom_jvp
        def s(x, y):
            return x * y

        s.defjvps(lambda t, ans, x, y: t * ans, None)
        i = jnp.int32(3)
        return [
            jax.grad(g)(x[0], i),
            jax.grad(g, (0, 1), allow_int=True)(x[0], i),
            jax.jit(jax.grad(jax.jit(g)))(x[0], i),
            jax.jvp(lambda x: h(x, i), (x,), (x,)),
            jax.grad(s, (0, 1))(x[0], x[1]),
            jax.jvp(s, (x, x), (x, x)),
        ]

    same(jax_oracle, program, x=X)


def test_residuals_of_all_kinds(jax_oracle):
    def program(x):
        x = jnp.asarray(x)

        @jax.custom_vjp
        def kinds(x):
            return x * 2

        kinds.defvjp(
            lambda x: (x * 2, {"a": x, "n": None, "i": 3, "t": (np.float32(2.0), jnp.arange(2))}),
            lambda r, g: (g * r["a"] * r["i"] * r["t"][0] * r["t"][1].sum(),),
        )
        return [
            jax.grad(kinds)(2.0),
            jax.jit(jax.grad(jax.jit(kinds)))(2.0),
            jax.vmap(jax.grad(kinds))(x),
        ]

    same(jax_oracle, program, x=X)


def test_no_residual_and_an_argument_that_is_none(jax_oracle):
    def program():
        @jax.custom_vjp
        def none(x, y):
            return x * 2

        none.defvjp(lambda x, y: (x * 2, None), lambda r, g: (g * 3, None))
        return [
            jax.grad(none)(2.0, None),
            jax.jit(jax.grad(lambda x: jax.jit(none)(x, None)))(2.0),
        ]

    same(jax_oracle, program)


def test_arguments_of_complex_and_narrow_types(jax_oracle):
    def program(x):
        x = jnp.asarray(x)

        @jax.custom_vjp
        def square(z):
            return z * z

        square.defvjp(lambda z: (z * z, z), lambda z, g: (3 * z * g,))
        z, b = x + 1j * x[::-1], x.astype(jnp.bfloat16)
        return [
            jax.grad(lambda z: square(z).real.sum())(z),
            jax.grad(lambda z: square(z).sum(), holomorphic=True)(z),
            jax.grad(lambda b: v(b, b).sum())(b),
        ]

    same(jax_oracle, program, x=X)


def test_an_argument_that_is_a_key(jax_oracle):
    def program():
        @jax.custom_vjp
        def noisy(key, x):
            return jax.random.normal(key) * x

        noisy.defvjp(
            lambda k, x: (noisy(k, x), k), lambda k, g: (None, jax.random.normal(k) * g * 5)
        )
        key = jax.random.key(0)
        return [
            jax.grad(noisy, 1)(key, 2.0),
            jax.jit(jax.grad(jax.jit(noisy), 1))(key, 2.0),
            jax.vmap(jax.grad(noisy, 1), (0, None))(jax.random.split(key, 2), 2.0),
        ]

    same(jax_oracle, program)


def test_rules_inside_loops_and_named_axes(jax_oracle):
    def program(x):
        x = jnp.asarray(x)

        def loop(a, ys):
            c, outs = jax.lax.scan(lambda c, y: (v(f(c, y), 2.0), c * 2), a, ys)
            return outs.sum() + jax.lax.cond(c > 0, lambda c: v(c, c), lambda c: f(c, 2.0), c)

        @jax.custom_vjp
        def total(x):
            return jax.lax.psum(x, "i")

        total.defvjp(
            lambda x: (total(x), jax.lax.axis_index("i")),
            lambda i, g: (jax.lax.pmean(g * 2, "i") + i,),
        )
        a = x[4]
        return [
            jax.grad(loop, (0, 1))(a, x),
            jax.jit(jax.vmap(jax.grad(loop), (0, None)))(x, x),
            jax.vmap(total, axis_name="i")(x),
            jax.vmap(jax.grad(total), axis_name="i")(x),
            jax.jit(jax.vmap(jax.grad(jax.jit(total)), axis_name="i"))(x),
        ]

    same(jax_oracle, program, rtol=1e-5, x=X)


def test_implicit_differentiation_of_a_fixed_point(jax_oracle):
    def program(x):
        @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
        def fixed_point(step, a, start):

            def body(pair):
                return pair[1], step(a, pair[1])

            return jax.lax.while_loop(
                lambda pair: jnp.abs(pair[0] - pair[1]) > 1e-06, body, (start, step(a, start))
            )[1]

        def fwd(step, a, start):
            point = fixed_point(step, a, start)
            return point, (a, point)

        def bwd(step, residuals, ct):
            a, point = residuals

            def back(given, u):
                a, point, ct = given
                return ct + jax.vjp(lambda p: step(a, p), point)[1](u)[0]

            u = fixed_point(back, (a, point, ct), ct)
            return jax.vjp(lambda a: step(a, point), a)[1](u)[0], jnp.zeros_like(point)

        fixed_point.defvjp(fwd, bwd)

        def root(a):
            return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)

        g = jax.grad(root)
        return [
            root(2.0),
            g(2.0),
            jax.grad(g)(2.0),
            jax.jit(g)(2.0),
            jax.vmap(g)(jnp.asarray(x) + 2),
        ]

    same(jax_oracle, program, rtol=1e-05, x=X)


def rule_errors():
    jvps = {
        "p[0]": "must produce a pair (list or tuple of length two) representing primal and tangent",
        "(p[0], (t[0],))": "must produce primal and tangent outputs with equal container (pytree)",
        "(p[0], t[0].sum())": "Expected float32[5] (tangent type of float32[5]) but got float32[].",
        "(p[0], t[0].astype('float16'))": "Expected float32[5] (tangent type of float32[5]) but",
    }
    vjps = {
        ("x", "(ct,)"): "must produce a pair (list or tuple of length two)",
        ("(x, None)", "ct"): "Custom VJP bwd rule must produce an output with the same container",
        ("(x, None)", "(ct, ct)"): "Custom VJP bwd rule must produce an output with the same cont",
        ("(x, None)", "None"): "Custom VJP bwd rule must produce an output with the same container",
        ("(x, None)", "(ct.sum(),)"): "at output[0] the bwd rule produced an output of type float",
    }
    for jitted in ("", "jax.jit"):
        for rule, sentence in jvps.items():
            yield f"jax.jvp({jitted}(mk(lambda p, t: {rule})), (x,), (x,))", sentence
        for (fwd, bwd), sentence in vjps.items():
            made = f"mkv(lambda x: {fwd}, lambda r, ct: {bwd})"
            yield f"jax.vjp({jitted}({made}), x)[1](x)", sentence
    yield ("jax.jvp(jax.jit(mk(lambda p, t: ((p[0],), (t[0],)))), (x,), (x,))",
           "container/pytree structure")
    yield ("jax.vjp(jax.jit(mkv(lambda x: (x.sum(), 0), lambda r, ct: (ct,))), x)[1](x)",
           "must produce a pair")
    yield ("jax.grad(mkv(lambda x: (x, 'kept'), lambda r, ct: (ct,)))(x[0])",
           "of type <class 'str'> is not a valid JAX type")
    yield "jax.custom_jvp(jnp.sin)(x)", "No JVP defined for custom_jvp function sin"
    yield "jax.custom_vjp(mk)(x)", "No VJP defined for custom_vjp function mk"
    yield "with_keyword(x, y=3.)", "could not be resolved to positional-only arguments"
    yield ("jax.jit(with_fixed)(x, x)",
           "Found a JAX Tracer object passed as an argument to a custom_vjp function")


def mk(rule):
    h = jax.custom_jvp(lambda x: jnp.sin(x))
    h.defjvp(rule)
    return h


def mkv(fwd, bwd):
    h = jax.custom_vjp(lambda x: jnp.sin(x))
    h.defvjp(fwd, bwd)
    return h


with_keyword = jax.custom_jvp(lambda x, *, y=2.0: x * y)
with_keyword.defjvp(lambda p, t: (p[0], t[0]))
with_fixed = jax.custom_vjp(lambda n, x: x, nondiff_argnums=(0,))
with_fixed.defvjp(lambda n, x: (x, None), lambda n, r, ct: (ct,))


@pytest.mark.parametrize(("source", "sentence"), list(rule_errors()))
def test_wrong_rules_are_refused_with_jax_s_classes(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence, within=__name__, x=X)


def remembering():
    """Return a function whose residuals are computed only where a derivative reads them."""
    f = jax.custom_vjp(lambda x: jnp.sin(x))
    f.defvjp(lambda x: (jnp.sin(x), jnp.cos(x) * scale), lambda r, ct: (ct * r * 2,),
             optimize_remat=True)
    scale = jnp.float32(3.0)
    return f


def test_the_function_runs_where_nobody_reads_the_residuals(jax_oracle):
    def program(x):
        f = remembering()
        scalars = (f, jax.jit(f), jax.checkpoint(f), jax.jit(jax.checkpoint(f)))
        return [
            *[jax.grad(g)(0.5) for g in scalars],
            jax.vmap(jax.grad(f))(x),
            jax.jit(jax.vmap(jax.grad(f)))(x),
            jax.grad(lambda x: jax.jit(jax.vmap(f))(x).sum())(x),
            jax.grad(lambda x: jax.lax.scan(lambda c, a: (f(c) + a, a), 0.0, x)[0])(x),
        ]

    def refused():
        remembering().defvjp(
            lambda x: x, lambda r, c: c, symbolic_zeros=True, optimize_remat=True)

    same(jax_oracle, program, x=X)
    same_error(jax_oracle, refused, "does not support symbolic zeros")
    f = remembering()
    first, second = jax.make_jaxpr(jax.grad(jax.checkpoint(f)))(1.).eqns[:2]
    assert first.primitive.name == "jit" and "cos" not in str(first)
    assert second.primitive.name == "remat2" and "remat_opt" in str(second)
    kept = jax.make_jaxpr(lambda x: jax.vjp(f, x)[0])(1.).eqns[0]
    assert kept.primitive is jax.custom_derivatives.remat_opt_p and kept.params["num_res"] == 1
    check_jaxpr(jax.make_jaxpr(jax.grad(jax.checkpoint(f)))(1.))


def ruled(bwd, out=lambda x, y: x * y):
    h = jax.custom_vjp(lambda x, y: out(x, y))
    h.defvjp(lambda x, y: (h(x, y), (x, y)), bwd)
    return h


plain = ruled(lambda r, ct: (ct * r[1], ct * r[0]))


def test_what_examples_share_gets_the_cotangents_that_jax_gives_it(jax_oracle):
    """A shared input gets the sum, a shared output's cotangent is given to each undivided.

    Where a rule makes a constant, which no derivative does, JAX looks at what is a stack.
    """
    def program(x):
        def gradients(h, axis=0):
            def stacked(x, y):
                return jax.vmap(h, in_axes=(0, None), out_axes=axis)(x, y)

            mapped = jax.vmap(jax.jit(h), in_axes=(0, None), out_axes=axis)
            ways = (stacked, jax.jit(stacked), mapped)
            found = [jax.grad(lambda x, y, w=w: w(x, y).sum(), (0, 1))(x, 2.0) for w in ways]
            return [*found, jax.jit(jax.grad(lambda x, y: stacked(x, y).sum(), (0, 1)))(x, 2.0)]

        two = jax.custom_vjp(lambda x, y: (x * 2, y * 3))
        two.defvjp(lambda x, y: (two(x, y), (x, y)), lambda r, ct: (ct[0] * 10, ct[1] * 100))

        def of_two(x, y, axis):
            a, b = jax.vmap(two, in_axes=(0, None), out_axes=(0, axis))(x, y)
            return a.sum() + jnp.sum(b)

        def of_pairs(x, y):
            return jax.vmap(jax.vmap(plain, (None, 0)), (0, None))(x, y).sum()

        thrice = lambda x, y: y * 3
        return [
            gradients(plain),
            gradients(ruled(lambda r, ct: (None, None))),
            gradients(ruled(lambda r, ct: (ct, jnp.float32(7.0)))),
            gradients(ruled(lambda r, ct: (jnp.float32(7.0), ct))),
            gradients(ruled(lambda r, ct: (ct, ct * r[0]), thrice), None),
            gradients(ruled(lambda r, ct: (jnp.float32(5.0), ct), thrice), None),
            gradients(ruled(lambda r, ct: (ct * r[0], ct * 3), thrice), 0),
            jax.grad(of_two, (0, 1))(x, 2.0, 0),
            jax.grad(of_two, (0, 1))(x, 2.0, None),
            jax.grad(of_pairs, (0, 1))(x, x),
            jax.vmap(jax.grad(plain, (0, 1)), (0, None))(x, 2.0),
        ]

    same(jax_oracle, program, x=X)
    got = jax.grad(lambda y: jax.vmap(plain, (0, None))(jnp.ones(4), y).sum())(2.)
    assert float(got) == 4.  # as in a loop over the four examples


def test_programs_are_well_formed():
    x = jnp.ones(3)
    stacks = [jax.vmap(v, (0, None)), jax.vmap(jax.grad(jax.jit(v)), (0, None)),
              lambda x, y: jax.jvp(jax.vmap(f, (0, None)), (x, y), (x, y)),
              lambda x, y: jax.vjp(jax.vmap(v, (0, None)), x, y)[1](x)]
    for function in (f, v, jax.grad(f), jax.grad(v), jax.grad(jax.jit(v), (0, 1))):
        check_jaxpr(jax.make_jaxpr(function)(1., 2.))
    for function in stacks:
        check_jaxpr(jax.make_jaxpr(function)(x, 2.))


def test_python_numbers_among_residuals_reach_bwd_as_they_are(jax_oracle):
    def program():
        kinds = []

        @jax.custom_vjp
        def f(x):
            return jnp.sin(x)

        def fwd(x):
            return jnp.sin(x), {"flip": True, "n": 3, "scale": 2.5, "x": x}

        def bwd(kept, ct):
            kinds.append(
                [isinstance(kept[k], t) for k, t in (("flip", bool), ("n", int), ("scale", float))]
            )
            for _ in range(kept["n"]):
                ct = ct * kept["scale"]
            return -ct if kept["flip"] is True else ct,

        f.defvjp(fwd, bwd)
        x = jnp.arange(2.0)
        return [
            [
                jax.grad(f)(1.0),
                jax.grad(jax.jit(f))(1.0),
                jax.jit(jax.grad(f))(1.0),
                jax.vmap(jax.grad(f))(x),
                jax.grad(lambda x: jax.vmap(f)(x).sum())(x),
                jax.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 3)[0])(1.0),
                jax.grad(jax.checkpoint(f))(1.0),
            ],
            kinds,
        ]

    same(jax_oracle, program)


def test_a_keyword_after_a_default_that_is_left_out_has_a_position(jax_oracle):
    same(jax_oracle, """
import functools
@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 3))
def total(x, axis=None, scale=None, twice=False):
    return x.sum(axis) * (2.0 if twice else 1.0) * (1.0 if scale is None else scale)
@total.defjvp
def rule(axis, twice, primals, tangents):
    return total(primals[0], axis, primals[1], twice), tangents[0].sum(axis) * 7.0
@jax.custom_vjp
def line(x, slope=2.0, shift=3.0): return x * slope + shift
line.defvjp(lambda *xs: (line(*xs), len(xs)), lambda n, ct: (ct * n,) + (None,) * (n - 1))
x = jnp.arange(6.0).reshape(2, 3)
result = [total(x, twice=True), total(x, scale=3.0, axis=0), line(1.0, shift=4.0),
          line(shift=1.0, x=2.0), jax.grad(lambda x: total(x, twice=True))(x),
          jax.grad(lambda x: line(x, shift=1.0))(1.0)]
""")


def test_a_function_without_a_signature_takes_its_arguments_by_position():
    larger = jax.custom_jvp(max)
    larger.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    assert larger(1.0, 2.0) == 2.0


def test_a_cotangent_that_is_none_is_zeros_for_the_rules_before(jax_oracle):
    """As in flax's fp8 layers, whose rules return new scales whatever the cotangent is."""
    def program():
        jnp, zero = jax.numpy, jax.custom_derivatives.SymbolicZero
        marked = jax.custom_vjp(lambda w: w * 2)
        marked.defvjp(lambda w: (w * 2, w), lambda w, ct: (ct * 0 + 7,))

        def product(rule, **options):
            f = jax.custom_vjp(lambda x, y: x * y)
            f.defvjp(lambda x, y: (f(getattr(x, "value", x), getattr(y, "value", y)), None),
                     lambda _, ct: rule(ct), **options)
            return f

        none = product(lambda ct: (None, ct))
        functions = [
            lambda w, y: none(marked(w), y),
            lambda w, y: none(marked(w) * 3, y),
            lambda w, y: none(jnp.sin(w), y),
            lambda w, y: jax.jit(none)(marked(w), y),
            lambda w, y: none(marked(w), marked(y)),
            lambda w, y: product(lambda ct: (None, ct), symbolic_zeros=True)(marked(w), y),
            lambda w, y: product(lambda ct: (zero(jax.typeof(y)), ct))(marked(w), y),
            lambda w, y: product(lambda ct: (None, None))(marked(w), y),
            lambda w, y: jax.lax.scan(lambda c, _: (none(marked(c), y), c), w, None, length=2)[0],
            lambda w, y: jax.lax.cond(y > 0, lambda: none(marked(w), y), lambda: y),
            lambda w, y: jax.checkpoint(lambda w: none(marked(w), y))(w),
            lambda w, y: (marked(w), y)[1],
        ]
        one = jnp.float32(1)
        return [[jax.grad(f, (0, 1))(one, one), jax.jit(jax.grad(f, (0, 1)))(one, one)]
                for f in functions]

    same(jax_oracle, program)


def test_a_linear_function_that_is_its_own_rule_is_transposed_around_what_is_known(jax_oracle):
    def program(x):
        jnp, lax = jax.numpy, jax.lax

        def diagonal(x):  # which elements are taken is computed in the function
            return jnp.where(jnp.eye(4) == 1, x, 0.).sum()

        def several(x):
            index = jnp.argsort(jnp.arange(4) % 3)
            return jnp.take(x, index, axis=0) * jnp.cos(jnp.arange(4.)) + x[jnp.arange(4), index]

        def every_way(function, ct):
            f = jax.custom_jvp(function)
            f.defjvp(lambda p, t: (f(*p), f(*t)))
            pulled = lambda x: jax.vjp(f, x)[1](ct)
            summed = jax.grad(lambda x: f(x).sum())
            return [
                pulled(x), jax.jit(pulled)(x), jax.jvp(pulled, (x,), (x,)), summed(x),
                jax.linear_transpose(f, x)(ct), jax.vmap(summed)(jnp.stack([x, 2 * x])),
                jax.grad(lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])).sum())(x),
                jax.grad(lambda x: lax.scan(lambda c, _: (c + f(x).sum(), None), 0., None,
                                            length=2)[0])(x),
                jax.jacrev(f)(x), jax.hessian(lambda x: f(x * x).sum())(x)]

        return every_way(diagonal, jnp.float32(1)), every_way(several, jnp.ones((4, 4)))

    same(jax_oracle, program, x=np.arange(16, dtype=np.float32).reshape(4, 4))
