"""Do XLA's quick settings give the same bits as the full ones, where they are used?

Every case of the matrix whose program is compiled quickly is compiled both ways and compared bit by
bit, and so are random programs of many operations, forwards and backwards, on arrays of many
shapes.  Then: which programs are compiled quickly at all.

Read before: ``compile.quick``, ``matrix``.
"""

from __future__ import annotations

import collections

import matrix
import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import _jaxlib, lax
from saem.compile import dispatch, executables
from saem.compile.lowering import lower, one_equation
from saem.compile.quick import MOST_EQUATIONS, MOST_NUMBERS, quick_options
from saem.core import config
from saem.core.avals import aval_of
from saem.ops import maths, reduce
from saem.placement.devices import default_device
from saem.transform.jvp import with_tangent

pytestmark = pytest.mark.skipif(
    not _jaxlib.QUICK_OPTIONS, reason="this jaxlib has one code generator, so nothing to choose")

CASES = collections.defaultdict(list)
for _case in matrix.case_ids().values():
    if _case.prim.quick_code:
        CASES[_case.prim.name].append(_case)


def options_of(closed):
    return quick_options(closed, (default_device(),))


def differences(closed, args):
    """Return the results of ``closed`` that differ between the settings; None if it gets full ones.

    Every NaN counts as the same one; zeros differ by their sign.
    """
    options = options_of(closed)
    if not options:
        return None
    device = default_device()
    lowered = lower(closed, name="quick")
    results = []
    for chosen in ({}, options):
        with config.enable_compilation_cache(False):
            executable, _ = executables.load_or_compile("", lowered, (device,), chosen)
        program = dispatch.Program(executable, lowered, device, False)
        results.append([np.asarray(x) for x in program.run(args)])
    return [(full, quick) for full, quick in zip(*results) if not same_bits(full, quick)]


def same_bits(full, quick):
    if full.dtype.kind != "f":
        return np.array_equal(full, quick)
    zero = full == 0
    return (np.array_equal(full, quick, equal_nan=True)
            and np.array_equal(np.signbit(full)[zero], np.signbit(quick)[zero]))


@pytest.mark.parametrize("name", sorted(CASES))
def test_one_operation(name):
    for case in CASES[name]:
        operands = matrix.Operands(case)
        closed = one_equation(case.prim, tuple(operands.avals))
        assert not differences(closed, [dispatch.put(x) for x in operands.arrays]), case


# -- random programs -------------------------------------------------------------------------------

ONE = (
    lambda x: -x, jnp.sin, jnp.cos, jnp.tanh, jax.nn.sigmoid, jax.nn.relu, jax.nn.gelu,
    lambda x: jnp.exp(-jnp.abs(x)), lambda x: jnp.log(jnp.abs(x) + 1.5),
    lambda x: jnp.sqrt(jnp.abs(x) + 0.1), lambda x: x ** 2, lambda x: x ** 3, jnp.square,
    lambda x: x * 0.5 + 1.0, lambda x: x - jnp.sum(x), lambda x: x - jnp.max(x),
    lambda x: x / (jnp.std(x) + 0.3), lambda x: x - jax.nn.logsumexp(x), lambda x: jnp.roll(x, 1),
    lambda x: jnp.where(x > 0, x, x * 0.1), lambda x: (x * 7).astype(int).astype(x.dtype) * 0.3,
    lambda x: x - jnp.floor(x), lambda x: jnp.expm1(x * 0.1), lambda x: jnp.log1p(jnp.abs(x)),
    lambda x: x.T.reshape(x.shape) * 1.5, jax.scipy.special.erf, lambda x: x / jnp.linalg.norm(x),
)
ROWS = (
    lambda x: jax.nn.softmax(x, axis=-1), lambda x: jnp.cumsum(x, -1) * 0.1,
    lambda x: x / (1 + jnp.abs(jnp.mean(x, axis=-1, keepdims=True))), lambda x: jnp.sort(x, -1),
    lambda x: x[::-1], lambda x: x.at[0].add(x[-1]), lambda x: x + jnp.sum(x, axis=0),
    lambda x: x + 0.1 * jnp.sum(x @ x.T), lambda x: x + jnp.max(x, axis=0), lambda x: x / x.size,
)
TWO = (
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x * y + x,
    lambda x, y: x * x - y * y, lambda x, y: x / (jnp.abs(y) + 1), jnp.maximum, jnp.hypot,
    lambda x, y: jnp.where(x > y, x, y), jnp.logaddexp,
)
SHAPES = ((), (3,), (7,), (17,), (64,), (100,), (1000,), (16384,), (4, 5), (10, 33), (128, 128),
          (2, 3), (5, 1), (1, 9))


def random_program(rng, shape):
    """Return a function of one array: up to 12 steps, each on results of earlier ones."""
    one = ONE + ROWS if shape else ONE
    steps = []
    for count in range(1, rng.integers(2, 14)):
        which = one if rng.random() < 0.6 else TWO
        given = rng.integers(0, count, 1 + (which is TWO))
        steps.append((which[rng.integers(len(which))], given))

    def program(x):
        values = [x]
        for function, given in steps:
            values.append(function(*[values[i] for i in given]))
        return values[-1]

    return jax.grad(lambda x: jnp.sum(program(x) * 0.5)) if rng.random() < 0.4 else program


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed):
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    x = jnp.asarray(rng.normal(size=shape).astype(np.float32))
    assert not differences(jax.make_jaxpr(random_program(rng, shape))(x), [x])


# -- where the border lies -------------------------------------------------------------------------

X = jnp.ones(3)


def options(fun, *args):
    return options_of(jax.make_jaxpr(fun)(*args))


def test_small_programs_are_compiled_quickly():
    def many(count):
        return lambda x: [x := x + 1 for _ in range(count)][-1]

    assert options(lambda x: x + 1, X) == _jaxlib.QUICK_OPTIONS
    assert options(lambda x: jnp.tanh(x) ** 2 * jnp.sin(x) - jnp.max(x), X)
    assert options(jax.grad(lambda x: x[0] * jnp.exp(x[1])), X)
    assert options(lambda key: jax.random.normal(key, (3,)), jax.random.key(0))
    assert options(many(MOST_EQUATIONS), X)
    assert not options(many(MOST_EQUATIONS + 1), X)
    assert not options(lambda x: jax.jit(many(MOST_EQUATIONS))(x) + 1, X)
    assert not options(jnp.sum, X)  # floats are added in another order
    assert options(jnp.sum, jnp.arange(3))
    assert options(lambda x: x + 1, np.zeros(MOST_NUMBERS, np.float32))
    assert not options(lambda x: x + 1, np.zeros(MOST_NUMBERS + 1, np.float32))


@pytest.mark.parametrize("fun", [
    lambda x: lax.scan(lambda c, row: (c + row, c), 0.0, x), lambda x: jnp.tan(x),
    lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: c + 1, x),
    lambda x: lax.cond(x[0] > 0, lambda: lax.fori_loop(0, 3, lambda i, c: c + i, x), lambda: x),
    lambda x: x * 1j, lambda x: x.astype(jnp.bfloat16) * 2,
])
def test_others_are_compiled_in_full(fun):
    assert not options(fun, X)


def test_derivatives_in_one_call_are_looked_into():
    def of(prim, *operands):
        joint = with_tangent(prim, (True,) * (len(operands) // 2))
        return options_of(one_equation(joint, tuple([aval_of(x) for x in operands])))

    assert of(maths.Sin(), X, X)
    assert not of(reduce.ReduceMax((0,)), X, X)  # it counts the largest, and adds tangents there
    assert not of(maths.Tan(), X, X)


def test_settings_that_choose_the_full_settings(monkeypatch):
    with config.shortcuts(False):
        assert not options(lambda x: x + 1, X)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=true")
    assert not options(lambda x: x + 1, X)


def test_settings_are_part_of_what_a_program_is_found_by():
    compiled = jax.jit(lambda x: x + 1).lower(X)
    quick = compiled.compile().runtime_executable()
    assert compiled.compile().runtime_executable() is quick
    full = compiled.compile({"xla_cpu_use_fusion_emitters": True}).runtime_executable()
    assert full is not quick
