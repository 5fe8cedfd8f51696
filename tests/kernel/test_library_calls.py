"""Is a function of the library one call in interpreters outside programs, with the same results?

``vmap`` and ``jvp`` interpret each function of the library as one call, ``grad`` those that are
``whole``; what has no tracer is run as if no interpreter were there.  Values are compared with one
call for each example, with programs, and with differences.
"""

from __future__ import annotations

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
import saem.scipy.linalg
import saem.scipy.special
import saem.scipy.stats
from saem.core.placement_types import Seen
from saem.core.trace import eval_trace, state
from saem.transform import known_paths
from saem.transform.jvp import JVPTrace
from saem.transform.vmap import BatchTrace

MATRICES = np.random.default_rng(0).uniform(0.2, 1.0, (3, 4, 4)) + 3 * np.eye(4)
ROWS = MATRICES[:, 0]

# Functions of many operations, ``whole``, and of few.
WHOLE = {
    "median": (jnp.median, ROWS), "quantile": (lambda x: jnp.quantile(x, 0.3), ROWS),
    "inv": (jnp.linalg.inv, MATRICES), "det": (jnp.linalg.det, MATRICES),
    "solve": (lambda m: jnp.linalg.solve(m, m[0]), MATRICES),
    "slogdet": (lambda m: jnp.linalg.slogdet(m)[1], MATRICES),
    "eigvalsh": (lambda m: jnp.linalg.eigvalsh(m @ m.T), MATRICES),
    "interp": (lambda x: jnp.interp(x, jnp.arange(5.0), jnp.arange(5.0) ** 2), ROWS),
    "prod": (jnp.prod, ROWS), "cumprod": (jnp.cumprod, ROWS), "sinc": (jnp.sinc, ROWS),
    "polyval": (lambda x: jnp.polyval(x, 0.3), ROWS), "hypot": (lambda x: jnp.hypot(x, 2.0), ROWS),
    "cross": (lambda x: jnp.cross(x[:3], x[1:]), ROWS),
    "convolve": (lambda x: jnp.convolve(x, x), ROWS),
    "logaddexp": (lambda x: jnp.logaddexp(x, x[0]), ROWS), "softplus": (jax.nn.softplus, ROWS),
    "expm": (jax.scipy.linalg.expm, MATRICES / 9), "gammaln": (jax.scipy.special.gammaln, ROWS),
    "entr": (jax.scipy.special.entr, ROWS), "logpdf": (jax.scipy.stats.norm.logpdf, ROWS),
    "beta": (lambda x: jax.scipy.stats.beta.logpdf(0.4, x, 2.0), ROWS),
    "cov": (jnp.cov, MATRICES), "standardize": (jax.nn.standardize, ROWS),
    "trapezoid": (lambda x: jnp.trapezoid(x, x * x), ROWS), "ediff1d": (jnp.ediff1d, ROWS),
    "geomspace": (lambda x: jnp.geomspace(x[0], x[1], 5), ROWS),
    "logspace": (lambda x: jnp.logspace(x[0], x[1], 5), ROWS / 9),
    "toeplitz": (jax.scipy.linalg.toeplitz, ROWS), "companion": (
        jax.scipy.linalg.companion, ROWS),
    "hankel": (lambda x: jax.scipy.linalg.hankel(x, x[::-1]), ROWS), "expm_frechet": (
        lambda m: jax.scipy.linalg.expm_frechet(m, m.T, compute_expm=False), MATRICES / 9),
}
FEW = {
    "sin": (jnp.sin, ROWS), "silu": (jax.nn.silu, ROWS), "cumsum": (jnp.cumsum, ROWS),
    "std": (jnp.std, ROWS), "var": (jnp.var, ROWS), "ptp": (jnp.ptp, ROWS),
    "softmax": (jax.nn.softmax, ROWS), "log_softmax": (jax.nn.log_softmax, ROWS),
    "logsumexp": (jax.nn.logsumexp, ROWS), "gelu": (jax.nn.gelu, ROWS),
    "elu": (lambda x: jax.nn.elu(x - 0.5), ROWS), "selu": (jax.nn.selu, ROWS - 0.5),
    "linspace": (lambda x: jnp.linspace(x[0], x[1], 5), ROWS), "nanmax": (jnp.nanmax, ROWS),
    "searchsorted": (lambda x: jnp.searchsorted(jnp.sort(x), x), ROWS),
    "where": (lambda x: jnp.where(x > 0.5, x, 0.0), ROWS), "sort": (jnp.sort, ROWS),
    "take": (lambda x: jnp.take(x, jnp.array([2, 0])), ROWS), "clip": (
        lambda x: x.clip(0.3, max=0.8), ROWS),
    "concatenate": (lambda x: jnp.concatenate([x, jnp.ones(2)]), ROWS),
    "one_hot": (lambda x: jax.nn.one_hot(x.astype(int), 4), ROWS),
}
ALL = {**WHOLE, **FEW}


def close(some, others):
    for a, b in zip(jax.tree.leaves(some), jax.tree.leaves(others), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.weak_type == b.weak_type
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.fixture
def processed(monkeypatch):
    """Return the names of the operations that batch and jvp interpreters of tests process."""
    names = []
    for kind in (BatchTrace, JVPTrace):
        def process(self, prim, args, original=kind.process):
            names.append(prim.name)
            return original(self, prim, args)
        monkeypatch.setattr(kind, "process", process)
    return names


@pytest.mark.parametrize("name", ALL)
@pytest.mark.usefixtures("little_effort")
def test_vmap_is_a_call_for_each_example(name):
    function, xs = ALL[name]
    xs = jnp.asarray(xs)
    each = [function(x) for x in xs]
    close(jax.vmap(function)(xs), jnp.stack(each))
    close(jax.vmap(function, in_axes=1)(jnp.moveaxis(xs, 0, 1)), jnp.stack(each))
    close(jax.vmap(lambda x: jax.vmap(function)(x))(xs[None]), jnp.stack(each)[None])


@pytest.mark.parametrize("name", ALL)
@pytest.mark.usefixtures("little_effort")
def test_derivatives_are_those_of_programs(name):
    function, xs = ALL[name]
    x = jnp.asarray(xs[0])
    dx = jnp.cos(jnp.arange(x.size * 1.0)).reshape(x.shape)

    def total(x):
        out = function(x)
        return jnp.sum(out * jnp.arange(1.0, out.size + 1).reshape(out.shape))

    close(jax.jvp(function, (x,), (dx,))[0], jax.jit(lambda x, dx: jax.jvp(
        function, (x,), (dx,))[0])(x, dx))
    gradient = jax.grad(total)(x)
    close(gradient, jax.jit(jax.grad(total))(x))
    close(jax.jvp(total, (x,), (dx,))[1], jnp.sum(gradient * dx))
    close(jax.vmap(jax.grad(total))(jnp.stack([x, x]))[1], gradient)
    close(jax.jacfwd(total)(x), gradient)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.usefixtures("little_effort")
def test_gradient_of_one_call_is_a_limit_of_differences(name):
    function, xs = WHOLE[name]
    with jax.enable_x64(True):
        x = jnp.asarray(xs[0])
        at = jnp.cos(jnp.arange(x.size * 1.0)).reshape(x.shape)
        total = lambda x: jnp.sum(jnp.sin(function(x)))
        step = 1e-6
        slope = (total(x + step * at) - total(x - step * at)) / (2 * step)
        np.testing.assert_allclose(jnp.sum(jax.grad(total)(x) * at), slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("transform", "called", "inlined"), [
    (lambda f, x: jax.vmap(f)(x[None]), {"jit"}, set()),
    (lambda f, x: jax.jvp(f, (x,), (x,)), {"jit"}, set()),
    (lambda f, x: jax.vmap(lambda x: jax.jvp(f, (x,), (x,)))(x[None]), {"jit"}, set()),
    (lambda f, x: jax.vjp(f, x), set(), {"jit"}),
    (lambda f, x: jax.jit(jax.vmap(f))(x[None]), set(), {"jit"}),
    (lambda f, x: jax.make_jaxpr(jax.vmap(f))(x[None]), set(), {"jit"}),
])
def test_what_an_interpreter_is_given(processed, transform, called, inlined):
    transform(jax.nn.softmax, jnp.asarray(ROWS[0], np.float32))
    assert called <= set(processed) and not inlined & set(processed)
    assert called or "exp" in processed


@pytest.mark.parametrize("function", [jnp.prod, jax.nn.softplus, jnp.i0], ids=lambda f: f.__name__)
@pytest.mark.parametrize("transform", [
    lambda f, x: jax.vmap(f)(x[None]), lambda f, x: jax.jvp(f, (x,), (x,)),
], ids=["vmap", "jvp"])
def test_a_function_of_one_operation_is_a_call_too(processed, function, transform):
    """Its rule may take dozens of operations, which are one program here."""
    x = jnp.asarray(ROWS[0], np.float32)
    transform(function, x)
    processed.clear()  # the program of the rule was made
    transform(function, x)
    assert processed == ["jit"]


def test_a_whole_function_is_one_operation_of_a_gradient(processed):
    jax.vjp(jnp.median, jnp.asarray(ROWS[0]))
    processed.clear()  # the derivative of the program was made
    jax.vjp(jnp.median, jnp.asarray(ROWS[0]))
    assert processed == ["jit"]
    processed.clear()
    with jax.disable_jit():
        jax.vjp(jnp.median, jnp.asarray(ROWS[0]))
    assert "sort" in processed and "jit" not in processed


def test_rules_of_a_function_of_one_operation_are_not_run_at_each_gradient(processed):
    x = jnp.asarray(ROWS[0], np.float32)
    jax.vjp(jax.scipy.special.expi, x)
    processed.clear()  # the derivative of the program was made
    jax.vjp(jax.scipy.special.expi, x)
    assert processed == ["jit"]
    processed.clear()
    jax.vjp(jnp.prod, x)
    assert processed[0] == "reduce_prod"  # which a known path follows


def test_a_gradient_of_a_mapped_function_is_followed(monkeypatch):
    monkeypatch.setattr(Seen, "placements", False)
    x = jnp.asarray(ROWS)
    total = lambda x: jax.vmap(lambda r: jnp.sum(r * r))(x).sum()
    for _ in range(known_paths.SEEN_BEFORE + 1):
        np.testing.assert_array_equal(jax.grad(total)(x), 2 * x)
    (start,) = [s for key, s in known_paths.starts.items() if key[0][0] is total.__code__]
    assert start.followed


@pytest.mark.parametrize("inside", [
    lambda f: jax.grad(lambda z: (f(), z)[1])(1.0), lambda f: jax.vmap(f)(jnp.ones(2)),
    lambda f: jax.jvp(lambda z: (f(), z)[1], (1.0,), (1.0,)),
], ids=["grad", "vmap", "jvp"])
@pytest.mark.parametrize("what", [
    lambda: jnp.median(jnp.arange(7.0)), lambda: jnp.linspace(0.0, 1.0, 5),
    lambda: jax.nn.one_hot(jnp.arange(3), 4), lambda: jnp.concatenate([jnp.ones(2), np.zeros(3)]),
    lambda: jax.random.normal(jax.random.key(1), (5,)), lambda: jnp.arange(9.0)[jnp.array([1, 4])],
    lambda: jax.random.split(jax.random.PRNGKey(3)), lambda: jax.random.key_data(
        jax.random.fold_in(jax.random.key(0), 7)), lambda: jnp.arange(9.0).at[2].add(1.0),
    lambda: jax.random.permutation(jax.random.key(2), 6), lambda: jnp.arange(6).reshape(2, 3)[1],
])
def test_what_is_no_tracers_runs_outside(processed, inside, what):
    wanted, found = what(), []

    def look(*_):
        found.append(what())
        assert state.trace is not eval_trace
        return jnp.float32(0)

    what()
    processed.clear()
    inside(look)
    assert set(processed) <= {"convert_element_type"}
    assert type(found[0]) is type(wanted) and found[0].aval == wanted.aval
    np.testing.assert_array_equal(found[0], wanted)


def test_a_function_first_called_inside_is_compiled_for_later_calls():
    shape = (5, 3, 7)
    jax.grad(lambda z: z * jnp.sum(jnp.nanmedian(jnp.ones(shape), axis=1)))(1.0)
    before = jnp.nanmedian._cache_size()
    jnp.nanmedian(jnp.ones(shape), axis=1)
    assert jnp.nanmedian._cache_size() == before


class Held:
    """An object that gives an array when a function of the library asks for it."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


def test_tracers_inside_other_objects_are_found():
    x = jnp.asarray(ROWS[0])
    close(jax.grad(lambda x: jnp.sum(jnp.sin(Held(x))))(x), jnp.cos(x))
    close(jax.vmap(lambda x: jnp.concatenate([x, jnp.ones(1)]))(x[None])[0],
          jnp.concatenate([x, jnp.ones(1)]))
    close(jax.grad(lambda x: jnp.stack([jnp.ones(4), x])[1, 2])(x), jnp.eye(4)[2])
    close(jax.vmap(lambda i: jnp.arange(4.0)[i])(jnp.array([2, 0])), jnp.array([2.0, 0.0]))
    close(jax.vmap(lambda i: jnp.zeros(3).at[i].set(1.0))(jnp.arange(3)), jnp.eye(3))


@pytest.mark.parametrize("draw", [
    lambda k: jax.random.normal(k, (3,)), jax.random.uniform, lambda k: jax.random.randint(
        k, (2,), 0, 9), lambda k: jax.random.gamma(k, 2.0), lambda k: jax.random.poisson(k, 3.0),
    lambda k: jax.random.choice(k, 10), lambda k: jax.random.key_data(jax.random.split(k)),
    lambda k: jax.random.permutation(k, 5), lambda k: jax.random.categorical(k, jnp.zeros(4)),
    lambda k: jax.random.key_data(jax.random.fold_in(k, 3)) if k.ndim == 0 else
        jax.random.fold_in(k, 3),
])
@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
@pytest.mark.usefixtures("little_effort")
def test_mapped_samplers_draw_what_each_key_draws(draw, make):
    keys = jax.random.split(make(4), 3)
    if make is jax.random.PRNGKey:
        draw = lambda k, typed=draw: typed(jax.random.wrap_key_data(k))
    np.testing.assert_array_equal(jax.vmap(draw)(keys), jnp.stack([draw(k) for k in keys]))


def test_derivatives_in_parameters_of_samplers():
    key = jax.random.key(0)
    eager = jax.grad(lambda a: jax.random.gamma(key, a, (3,)).sum())(2.0)
    close(eager, jax.jit(jax.grad(lambda a: jax.random.gamma(key, a, (3,)).sum()))(2.0))
    indices = jnp.arange(3)
    folded = jax.vmap(lambda i: jax.random.fold_in(key, i))(indices)
    assert [jax.random.key_data(k).tolist() for k in folded] == [
        jax.random.key_data(jax.random.fold_in(key, i)).tolist() for i in range(3)]


def test_references_inside_interpreters():
    def counted(x):
        ref = jax.new_ref(jnp.zeros(3))
        ref[1] = x
        return jnp.sum(jnp.sin(ref[...]))

    close(jax.grad(counted)(0.3), jnp.cos(0.3))
    close(jax.vmap(counted)(jnp.array([0.3, 0.4])), jnp.sin(jnp.array([0.3, 0.4])))


def test_axes_that_are_no_static_values_are_refused_as_before():
    with pytest.raises(TypeError):
        jax.vmap(lambda i: jnp.sum(jnp.ones((2, 2)), axis=i))(jnp.arange(2))
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.vmap(lambda n: jnp.arange(n))(jnp.arange(2))
