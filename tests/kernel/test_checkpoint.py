"""Does checkpoint keep what its policy allows, no more, and change no number?

Values, printed programs and the list of saved residuals against real JAX; that XLA does not undo
the second computation is read in the optimised program.

Read before: ``both.py``, ``saem.derivatives.checkpoint``.
"""

from __future__ import annotations

import contextlib
import io
import re

import numpy as np
import pytest
from both import ours, same, same_error, source_of

import saem as jax
from saem import ad_checkpoint, lax
from saem import numpy as jnp
from saem.ad_checkpoint import checkpoint_name
from saem.core.infer import check_jaxpr

pytestmark = pytest.mark.usefixtures("little_effort")

cp = jax.checkpoint_policies
scan = lax.scan


def q(x):
    return jnp.sin(jnp.sin(x))


def f(x, w):
    y = checkpoint_name(jnp.sin(x @ w), "a")
    z = checkpoint_name(jnp.cos(y @ w), "b")
    return jnp.tanh(z).sum()


def step(c, _):
    return q(c), None


def short(x, w):
    y = checkpoint_name(jnp.sin(x @ w), "a")
    return jnp.sin(y @ w).sum()


POLICIES = {
    "none": "None",
    "everything": "cp.everything_saveable",
    "nothing": "cp.nothing_saveable",
    "dots": "cp.dots_saveable",
    "dots without batch": "cp.dots_with_no_batch_dims_saveable",
    "only a": "cp.save_only_these_names('a')",
    "names but a": "cp.save_any_names_but_these('a')",
    "all but a": "cp.save_anything_except_these_names('a')",
    "either": "cp.save_from_both_policies(cp.dots_saveable, cp.save_only_these_names('b'))",
}
X = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(3, 3)).astype(np.float32)


def agree(oracle, program, rtol=2e-5, **arguments):
    """Assert one value of both, up to weak types."""
    mine = ours(program, __name__, **arguments)
    theirs = oracle.run(source_of(program, __name__, arguments), **arguments).value
    for m, t in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        assert m.dtype == t.dtype and m.shape == t.shape
        np.testing.assert_allclose(m, t, rtol=rtol, atol=rtol)


def derived(c, x, w):
    """Return the derivatives of ``c``, of one example and of two, in and out of ``jit``."""
    gradient = jax.grad(c, (0, 1))
    xs = jnp.stack([x, 2 * x])
    many = lambda xs, w: jax.vmap(c, (0, None))(xs, w).sum()
    return [
        c(x, w),
        gradient(x, w),
        jax.jit(gradient)(x, w),
        jax.jit(jax.grad(jax.jit(c)))(x, w),
        jax.vmap(gradient, (0, None))(xs, w),
        jax.jit(jax.grad(many, (0, 1)))(xs, w),
        jax.jvp(c, (x, w), (w[:2], w)),
        jax.jit(jax.hessian(c))(x, w),
        jax.jit(jax.jacrev(jax.grad(c)))(x, w),
    ]


@pytest.mark.parametrize("name", ["none", "everything", "dots", "only a", "either"])
def test_values_and_derivatives_are_those_of_the_function(jax_oracle, name):
    agree(jax_oracle, f"derived(jax.checkpoint(f, policy={POLICIES[name]}), x, w)", x=X, w=W)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_what_is_kept_is_what_jax_keeps(jax_oracle, policy):
    same(jax_oracle, f"saved(f, {policy}, x, w)", within=__name__, x=X, w=W)


def saved(f, policy, x, w):
    """Return what is saved, with the line (from the first of ``f``) and column that made it."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        jax.ad_checkpoint.print_saved_residuals(jax.checkpoint(f, policy=policy), x, w)
    first = f.__code__.co_firstlineno
    place = lambda found: f" at {int(found[1]) - first}:{found[2]}"
    return [re.sub(r" from [^ ]*:(\d+):(\d+) .*", place, line)
            for line in out.getvalue().splitlines()]


def kept(function, *args) -> int:
    """Return the number of array elements a function's pullback holds, arguments included."""
    pullback = jax.vjp(function, *args)[1]
    return sum(np.size(leaf) for leaf in jax.tree.leaves(pullback))


def test_fewer_residuals():
    def deep(x):
        for _ in range(6):
            x = jnp.sin(x)
        return x

    x = jnp.ones(100)
    assert kept(deep, x) == 600
    assert kept(jax.checkpoint(deep), x) == 100
    assert kept(jax.checkpoint(deep, policy=jax.checkpoint_policies.everything_saveable), x) == 600
    assert kept(jax.jit(jax.checkpoint(deep)), x) == 100
    # A loop keeps its carries, one for every step, instead of six values for each.
    looped = lambda body: lambda x: lax.scan(lambda c, _: (body(c), None), x, None, length=5)[0]
    assert kept(looped(deep), x) == 3000
    assert kept(looped(jax.checkpoint(deep)), x) == 500
    assert kept(jax.checkpoint(looped(deep)), x) == 100
    everything = jax.checkpoint_policies.everything_saveable
    assert kept(jax.checkpoint(looped(deep), policy=everything), x) == 3000
    wanted = jax.grad(lambda x: looped(deep)(x).sum())(x)
    for policy in (None, everything):
        c = jax.checkpoint(looped(deep), policy=policy)
        got = jax.jit(jax.grad(lambda x, c=c: c(x).sum()))(x)
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


PRINTED = """
jax.make_jaxpr(jax.checkpoint(q))(1.)
jax.make_jaxpr(jax.grad(jax.checkpoint(q)))(1.)
jax.make_jaxpr(lambda x: jax.jvp(jax.checkpoint(q), (x,), (x,)))(1.)
jax.make_jaxpr(jax.vmap(jax.grad(jax.checkpoint(q))))(x[0])
jax.make_jaxpr(lambda y: jax.checkpoint(lambda x: x * y * jnp.arange(3.))(1.))(1.)
jax.make_jaxpr(jax.grad(lambda y: jax.checkpoint(lambda x: jnp.sin(x * y).sum())(x)))(1.)
jax.make_jaxpr(jax.grad(jax.checkpoint(lambda x, y: q(x * y), prevent_cse=(True, False))))(1., 2.)
jax.make_jaxpr(jax.grad(jax.checkpoint(short, policy=cp.dots_saveable)))(x, w)
jax.make_jaxpr(jax.grad(jax.checkpoint(short, policy=cp.save_only_these_names("a"))))(x, w)
jax.make_jaxpr(lambda x: checkpoint_name({"a": x, "b": 2.}, "foo"))(1.)
jax.make_jaxpr(lambda x: jax.jvp(lambda x: checkpoint_name(x, "foo"), (x,), (x,)))(1.)
jax.make_jaxpr(lambda x: lax.optimization_barrier((x, {"b": x})))(1.)
jax.make_jaxpr(jax.vmap(lambda x: lax.optimization_barrier((x, 3.))[0]))(x)
jax.make_jaxpr(jax.grad(lambda x: scan(jax.checkpoint(step), x, None, length=3)[0]))(1.)
""".strip().splitlines()


def test_programs_print_as_jax_prints_them(jax_oracle):
    source = "[" + ", ".join(f"str({line})" for line in PRINTED) + "]"
    same(jax_oracle, source, within=__name__, x=X, w=W)


def test_jitted_functions_inside_are_seen_by_policies():
    w = jnp.asarray(W)
    inner = jax.jit(lambda y: jnp.sin(jnp.sin(y @ w)))
    c = jax.checkpoint(lambda x: jnp.sin(inner(x)).sum(),
                       policy=jax.checkpoint_policies.dots_saveable)
    found = [source.split(" from")[0] for _, source in ad_checkpoint.saved_residuals(c, X)]
    assert found.count("output of dot_general") == 1 and "output of sin" not in found
    wanted = jax.grad(lambda x: jnp.sin(jnp.sin(jnp.sin(x @ w))).sum())(X)
    np.testing.assert_allclose(jax.grad(c)(X), wanted, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.grad(c))(X), wanted, rtol=1e-5)


def test_the_second_computation_stands_behind_a_barrier(jax_oracle):
    """XLA is told to compute twice; its CPU compiler removes barriers early, for JAX as well."""
    def program(x, w):
        def counts(**options):
            step = jax.value_and_grad(jax.checkpoint(short, **options))
            text = jax.jit(step).lower(x, w).as_text()
            return [text.count(f"stablehlo.{name}")
                    for name in ("dot_general", "optimization_barrier")]

        return [counts(), counts(prevent_cse=False), counts(prevent_cse=(True, False))]

    same(jax_oracle, program, x=X, w=W)
    assert program(X, W) == [[6, 1], [6, 0], [6, 1]]


def test_nesting_and_control_flow(jax_oracle):
    def program(x, w):
        def body(c, y):
            return jax.checkpoint(lambda c, y: (jnp.sin(c @ y), c.sum()))(c, y)

        def loop(c, ys):
            c, outs = jax.checkpoint(lambda c: jax.lax.scan(body, c, ys))(c)
            last = jax.lax.cond(c.sum() > 0, jax.checkpoint(jnp.sin), jnp.cos, c)
            return last.sum() + outs.sum()

        r = jax.checkpoint(lambda x: jax.checkpoint(q)(jax.checkpoint(q)(x)))
        ys = jnp.stack([w, w + 1, w - 1])
        g = jax.grad(loop, (0, 1))
        return [
            jax.grad(r)(1.0),
            jax.grad(jax.grad(r))(1.0),
            jax.jacfwd(jax.grad(r))(1.0),
            jax.jit(jax.grad(jax.jit(jax.grad(jax.grad(r)))))(1.0),
            jax.jit(jax.vmap(jax.grad(jax.grad(r))))(x[0]),
            g(x, ys),
            jax.jit(g)(x, ys),
            jax.jit(jax.vmap(g, (0, None)))(jnp.stack([x, -x]), ys),
            jax.jit(jax.hessian(lambda x: loop(x, ys)))(x),
        ]

    agree(jax_oracle, program, rtol=2e-4, x=X, w=W)


def test_loops_inside_are_split_as_the_policy_says(jax_oracle):
    def program(x):
        ys = x[0]

        def loops(a):
            c, outs = lax.scan(lambda c, y: (jnp.sin(c * y), (c * 2, y)), a, ys)
            d = lax.cond(c.sum() > 0, lambda c: jnp.sin(c) * 2, lambda c: c * c, c)
            e = lax.fori_loop(0, 3, lambda i, c: jnp.sin(c), d)
            n = lax.while_loop(lambda t: t[0] < 3, lambda t: (t[0] + 1, t[1] + 1.0),
                               (0, ys.sum()))[1]
            return e * outs[0].sum() * n

        result = []
        for policy in (None, cp.everything_saveable):
            c = jax.checkpoint(loops, policy=policy)
            result += [jax.grad(c)(0.7), jax.jit(jax.grad(c))(0.7),
                       jax.jit(jax.grad(jax.grad(c)))(0.7), jax.jit(jax.vmap(jax.grad(c)))(ys)]
        return result

    agree(jax_oracle, program, rtol=1e-4, x=X + 1)


def test_rules_of_a_function_inside_are_used():
    @jax.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * 7 * x,))
    c = jax.checkpoint(lambda x: f(jnp.sin(x)))
    wanted = 7 * np.sin(2.) * np.cos(2.)
    for g in (jax.grad(c), jax.jit(jax.grad(c)), jax.grad(jax.jit(c))):
        np.testing.assert_allclose(g(2.), wanted, rtol=1e-6)
    doubled = jax.vmap(jax.grad(c))(jnp.full(2, 2.))
    np.testing.assert_allclose(doubled, np.full(2, wanted), rtol=1e-6)


def test_closed_over_values_statics_and_integers(jax_oracle):
    def program():
        c = jnp.arange(3.0)
        outer = lambda y: jax.checkpoint(lambda x: jnp.sin(x * y * c).sum())(2.0)
        by_name = jax.checkpoint(lambda x, f: f(x), static_argnums=(-1,))
        mixed = jax.checkpoint(lambda x, i: (jnp.sin(x) * i, i + 1))
        return [
            jax.grad(outer)(1.5),
            jax.jit(jax.grad(outer))(1.5),
            jax.vmap(jax.grad(outer))(c),
            by_name(1.0, jnp.sin),
            jax.grad(by_name)(1.0, jnp.sin),
            by_name(1.0, jnp.cos),
            jax.grad(lambda x: mixed(x, 3)[0])(1.0),
            jax.checkpoint(lambda d, *, k: d["a"] * k)({"a": c}, k=2.0),
            jax.remat(q)(1.0),
        ]

    agree(jax_oracle, program)


def test_programs_are_kept_between_calls():
    traced = []

    @jax.checkpoint
    def f(x):
        traced.append(x.shape)
        return jnp.sin(x)

    for x in (1., 2., jnp.ones(2), jnp.zeros(2)):
        jax.grad(lambda x: f(x).sum())(x)
    assert traced == [(), (2,)]


@pytest.mark.parametrize(("source", "sentence"), [
    ("jax.checkpoint(lambda x, f: x, static_argnums=5)(1., 2.)", "can only take integer values"),
    ("jax.checkpoint(lambda x: x if x > 0 else -x)(1.)", "Attempted boolean conversion of traced"),
    ("jax.checkpoint(lambda x: x, concrete=True)(1.)", "The `concrete` option to `jax.checkpoint`"),
    ("jax.checkpoint(lambda x: x)('s')", "Argument 's' of type <class 'str'> is not a valid JAX"),
    ("jax.checkpoint(lambda x: 's')(1.)", "is not a valid JAX type"),
    ("jax.grad(jax.checkpoint(jax.numpy.sin, policy=lambda *a, **k: 3))(1.)",
     "Value returned by a remat policy should be a bool"),
    ("jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=['a'], "
     "names_which_can_be_offloaded=['a'], offload_src='device', offload_dst='pinned_host')",
     "The names should be exclusive and should not intersect"),
])
def test_wrong_uses_are_refused_with_jax_s_classes(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence)


def test_offloading_saves_here(jax_oracle):
    """On a CPU there is no other memory: the values are kept where they are."""
    names = ("cp.save_and_offload_only_these_names(names_which_can_be_saved=['a'], "
             "names_which_can_be_offloaded=['b'], offload_src='device', offload_dst='pinned_host')")
    dots = "cp.offload_dot_with_no_batch_dims('device', 'pinned_host')"
    agree(jax_oracle, "[jax.jit(jax.grad(jax.checkpoint(f, policy=p)))(x, w) "
          f"for p in ({names}, {dots})]", x=X, w=W)


def test_barrier_derivatives(jax_oracle):
    def program(x):
        jnp = jax.numpy

        def f(x, y):
            return jax.lax.optimization_barrier((jnp.sin(x), {"i": y}))[0] * 2.0

        x = jnp.asarray(x)
        return [
            f(x, 3),
            jax.grad(lambda x: f(x, 3).sum())(x),
            jax.jvp(f, (x, x), (x, x)),
            jax.jit(jax.vmap(f))(x, x),
        ]

    same(jax_oracle, program, x=X)


def test_programs_are_well_formed():
    c = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    for function in (c, jax.grad(c), jax.grad(jax.grad(c)), jax.jit(jax.grad(jax.jit(c))),
                     lambda x: jax.vmap(jax.grad(c))(x[None]),
                     lambda x: jax.jvp(jax.grad(c), (x,), (x,))):
        check_jaxpr(jax.make_jaxpr(function)(jnp.float32(1.)))
