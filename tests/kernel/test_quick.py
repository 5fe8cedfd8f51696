"""Do XLA's quick settings give the same bits as the full ones, where they are used?

Every case of the matrix whose program is compiled quickly is compiled both ways and compared bit by
bit, and so are random programs of many operations, forwards and backwards, on arrays of many
shapes.  Then: which programs are compiled quickly at all.

Read before: ``compile.quick``, ``matrix``.
"""

from __future__ import annotations

import collections
import os

import matrix
import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import _jaxlib, lax
from saem.compile import dispatch, executables
from saem.compile.lowering import lower, one_equation
from saem.compile.quick import MOST_EQUATIONS, MOST_NUMBERS, quick_options
from saem.core import config, dtypes
from saem.core.avals import aval_of
from saem.jit import jitted
from saem.ops import maths, reduce
from saem.ops.families import Elementwise, Unary
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
    if not options_of(closed):
        return None
    results = [[np.asarray(x) for x in program.run(args)] for program in both_ways(closed)]
    return [(full, quick) for full, quick in zip(*results) if not same_bits(full, quick)]


def both_ways(closed):
    """Return the program compiled with XLA's full settings, and with the quick ones."""
    device = default_device()
    lowered = lower(closed, name="quick")
    programs = []
    for options in ({}, _jaxlib.QUICK_OPTIONS):
        with config.enable_compilation_cache(False):
            executable, _ = executables.load_or_compile("", lowered, (device,), options)
        programs.append(dispatch.Program(executable, lowered, device, False))
    return programs


def same_bits(full, quick):
    if full.dtype.kind != "f":
        return np.array_equal(full, quick)
    zero = full == 0
    return (np.array_equal(full, quick, equal_nan=True)
            and np.array_equal(np.signbit(full)[zero], np.signbit(quick)[zero]))


ALL = os.environ.get("SAEM_SWEEP") == "all"


@pytest.mark.parametrize("name", sorted(CASES))
def test_one_operation(name):
    """Cases in which some number is rounded, a part of them where they are many.

    All of them, those on integers alone too, with SAEM_SWEEP=all.
    """
    cases = CASES[name]
    for case in cases if ALL else cases[::1 + len(cases) // 8]:
        operands = matrix.Operands(case)
        closed = one_equation(case.prim, tuple(operands.avals))
        rounds = any(dtypes.is_inexact(a.dtype) for a in (*closed.in_avals, *closed.out_avals))
        if not rounds and not ALL:
            continue
        assert not differences(closed, [dispatch.put(x) for x in operands.arrays]), case


# Operations of one float without parameters, each by the first of its cases on floats.
UNARY = {case.prim.name: case.prim for cases in CASES.values() for case in cases
         if isinstance(case.prim, Unary) and case.specs[0].dtype == np.float32}


@pytest.mark.parametrize("name", sorted(UNARY))
def test_many_values(name):
    """Where an array fills no whole vector of the processor, each number may be computed alone."""
    rng = np.random.default_rng(0)
    for shape in ((), (1,), (3,), (7,)) + ((5,), (9,)) * ALL:
        programs = both_ways(one_equation(UNARY[name], (aval_of(np.zeros(shape, np.float32)),)))
        for scale in (0.1, 1.0, 3.0, 20.0) * 40:
            x = dispatch.put((rng.normal(size=shape) * scale).astype(np.float32))
            full, quick = [np.asarray(program.run([x])[0]) for program in programs]
            assert same_bits(full, quick), (shape, np.asarray(x))


# Operations of several floats, and how many: series and quadratures among them multiply and add.
SEVERAL = {case.prim.name: (case.prim, len(case.specs)) for cases in CASES.values()
           for case in cases if isinstance(case.prim, Elementwise) and len(case.specs) > 1
           and {spec.dtype for spec in case.specs} == {np.dtype(np.float32)}}


@pytest.mark.parametrize("name", sorted(SEVERAL))
def test_many_values_of_several_operands(name):
    rng = np.random.default_rng(0)
    prim, count = SEVERAL[name]
    compared = 0
    for shape in ((3,), (7,)):
        closed = one_equation(prim, (aval_of(np.zeros(shape, np.float32)),) * count)
        programs = both_ways(closed) if options_of(closed) else []
        for positive in (False, True) * 40 if programs else ():
            scale = rng.choice([0.1, 1.0, 3.0, 20.0])
            given = [rng.normal(size=shape).astype(np.float32) * scale for _ in range(count)]
            args = [dispatch.put(np.abs(x) if positive else x) for x in given]
            full, quick = [np.asarray(program.run(args)[0]) for program in programs]
            assert same_bits(full, quick), given
            compared += 1
    assert compared or name == "complex"


# -- random programs -------------------------------------------------------------------------------

NEITHER = (
    lambda x: -x, jnp.sin, jnp.cos, jnp.tanh, jax.nn.sigmoid, jax.nn.relu, jnp.abs, jnp.sign,
    lambda x: jnp.where(x > 0, x, 0.1), lambda x: jnp.roll(x, 1), lambda x: jnp.expm1(x),
    lambda x: jnp.sqrt(jnp.abs(x)), lambda x: x.T.reshape(x.shape), jnp.floor,
    lambda x: jnp.maximum(x, jnp.max(x)), lambda x: x.astype(int).astype(x.dtype),
)
ONE_AXIS = NEITHER[:12] + NEITHER[13:]  # without a transpose
ROWS = (lambda x: jnp.sort(x, -1), lambda x: x[::-1], lambda x: jnp.flip(x, -1),
        lambda x: jnp.maximum(x, jnp.max(x, axis=0)), lambda x: x.at[0].set(x[-1]))
SUMS = (lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x + y - 0.3, lambda x, y: 1 - x)
PRODUCTS = (lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x * x, lambda x, y: y ** 3,
            lambda x, y: x * 1.7, lambda x, y: y / 1.3)
SHAPES = ((), (3,), (7,), (17,), (64,), (100,), (1000,), (16384,), (4, 5), (10, 33), (128, 128),
          (2, 3), (5, 1), (1, 9))


def random_program(rng, shape, two, one):
    """Return a function of one array: up to 12 steps, each on results of earlier ones."""
    steps = []
    for count in range(1, rng.integers(2, 14)):
        which = one if rng.random() < 0.5 else two
        given = rng.integers(0, count, 1 + (which is two))
        steps.append((which[rng.integers(len(which))], given))

    def program(x):
        values = [x]
        for function, given in steps:
            values.append(function(*[values[i] for i in given]))
        return values[-1]

    return program


@pytest.mark.parametrize("two", [SUMS, PRODUCTS], ids=["sums", "products"])
@pytest.mark.parametrize("seed", range(30))
def test_random_program(seed, two):
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    x = jnp.asarray(rng.normal(size=shape).astype(np.float32))
    program = random_program(rng, shape, two, NEITHER + ROWS if shape else NEITHER)
    assert differences(jax.make_jaxpr(program)(x), [x]) == []


FOLDS_AND_PRODUCTS = (
    lambda x: x * jnp.sum(x), lambda x: jnp.mean(x) * x, lambda x: x / jnp.sum(x),
    lambda x: jnp.sum(x * x) * x, lambda x: jnp.where(x > jnp.sum(x), x, jnp.mean(x)),
    lambda x: jnp.tanh(jnp.sum(x)) * x)
FOLDS_AND_SUMS = (
    lambda x: x + jnp.sum(x), lambda x: x - jnp.sum(x), lambda x: jnp.sin(jnp.sum(x)) + x,
    lambda x: jnp.sum(x + x) - x, lambda x: jnp.where(x > jnp.sum(x), x, jnp.sum(x)))


@pytest.mark.parametrize(
    ("folds", "two"), [(FOLDS_AND_PRODUCTS, PRODUCTS), (FOLDS_AND_SUMS, SUMS)],
    ids=["products", "sums"])
@pytest.mark.parametrize("seed", range(20))
def test_folds_over_the_only_axis(seed, folds, two):
    rng = np.random.default_rng(seed)
    length = (1, 3, 7, 9, 17, 33, 64, 100, 333, 1000, 4099, 16384)[seed % 12]
    inner = random_program(rng, (length,), two, ONE_AXIS)
    fold = folds[rng.integers(len(folds))]
    x = jnp.asarray(rng.normal(size=length).astype(np.float32))
    closed = jax.make_jaxpr(lambda x: jnp.sum(inner(fold(x))))(x)
    assert options_of(closed)
    assert differences(closed, [x]) == []


def of_key(fun):
    """Return ``fun``, and how its operand is made: a new key each time."""
    return fun, lambda rng, shape: (jax.random.key(int(rng.integers(1 << 30))),)


def of_numbers(fun):
    """Return ``fun`` of an array of normal numbers, and how that is made."""
    return fun, lambda rng, shape: (rng.normal(size=shape).astype(np.float32),)


def of_share(fun):
    """Return ``fun`` of an array, NaN in some, and of a share between 0 and 1; and both."""
    def operands(rng, shape):
        x = rng.normal(size=shape).astype(np.float32)
        x.flat[0] = rng.choice([x.flat[0], np.nan], p=[0.8, 0.2])
        return x, np.float32(rng.random())

    return fun, operands


def shares(name):
    """Return calls of a function of an array and a share, or hundredths."""
    quantile = getattr(jnp, name)
    size = 100 if "percentile" in name else 1
    return [
        lambda s: of_share(lambda x, q: quantile(x, q * size)),
        lambda s: of_share(lambda x, q: quantile(x, jnp.stack([q, q / 3, 1 - q]) * size, axis=-1)),
        *[lambda s, m=method: of_share(lambda x, q: quantile(x, q * size, axis=0, method=m))
          for method in ("lower", "higher", "midpoint", "nearest", "inverted_cdf")],
        lambda s: of_share(lambda x, q: quantile(
            x, q * size, method="inverted_cdf", weights=jnp.abs(x))),
    ]


def middles(name):
    median = getattr(jnp, name)
    return [lambda s: of_share(lambda x, q: median(x)),
            lambda s: of_share(lambda x, q: median(x, axis=0, keepdims=True))]


# For each function of the library that states ``same_rounding``: calls with its parameters, as a
# function of shape that returns the program and how its operands are made.
SAME_ROUNDING = {
    "standard_normal": [lambda s: of_key(lambda key: jax.random.normal(key, s))],
    "standard": [lambda s: of_key(lambda key: jax.random.uniform(key, s))],
    "_uniform": [
        lambda s: of_key(lambda key: jax.random.uniform(key, s, minval=-0.3, maxval=1.7)),
        lambda s: (lambda key, low: jax.random.uniform(key, s, minval=low, maxval=low + 1.1),
                   lambda rng, shape: (jax.random.key(1), rng.normal(size=s).astype(np.float32))),
    ],
    "coins": [lambda s: of_key(lambda key: jax.random.bernoulli(key, 0.3, s))],
    "var": [
        lambda s: of_numbers(jnp.var), lambda s: of_numbers(lambda x: jnp.var(x, ddof=1)),
        lambda s: of_numbers(lambda x: jnp.var(x, where=x > -1)),
        lambda s: of_numbers(lambda x: jnp.var(x, mean=0.2)),
    ],
    "std": [
        lambda s: of_numbers(jnp.std), lambda s: of_numbers(lambda x: jnp.std(x, ddof=1)),
        lambda s: of_numbers(lambda x: jnp.std(x, where=x > -1, keepdims=True)),
    ],
    **{name: shares(name)
       for name in ("quantile", "percentile", "nanquantile", "nanpercentile")},
    "median": middles("median"), "nanmedian": middles("nanmedian"),
    "gelu": [
        lambda s: of_numbers(jax.nn.gelu),
        lambda s: of_numbers(lambda x: jax.nn.gelu(x, approximate=False)),
    ],
}
STATED = {name: "scalars" if "tile" in name else True for name in SAME_ROUNDING}
LENGTHS = [(n,) for n in (*range(1, 18), 31, 32, 33, 64, 100, 127, 333, 1000, 4099, 16384)]
MORE_AXES = [(1, 1), (2, 3), (5, 1), (16, 4), (10, 33), (128, 128), (2, 3, 4)]


@pytest.mark.parametrize("name", SAME_ROUNDING)
def test_functions_that_state_same_rounding(name):
    """A shape in eight by default, all of them with SAEM_SWEEP=all."""
    rng = np.random.default_rng(0)
    step = 1 if ALL else 8
    compared = 0
    for number, call in enumerate(SAME_ROUNDING[name]):
        for shape in (LENGTHS + MORE_AXES)[number % step::step]:
            fun, operands = call(shape)
            closed = jax.make_jaxpr(fun)(*operands(rng, shape))
            if not quick_options(closed, (default_device(),), STATED[name]):
                continue  # a fold over several axes, or no scalar
            compared += 1
            programs = both_ways(closed)
            for _ in range(4):
                args = [dispatch.put(x) if isinstance(x, np.ndarray) else x
                        for x in operands(rng, shape)][:len(closed.jaxpr.invars)]
                full, quick = [np.asarray(program.run(args)[0]) for program in programs]
                assert same_bits(full, quick), (name, number, shape)
    assert compared >= 4


def test_every_function_that_states_same_rounding_is_compared():
    key = jax.random.key(0)
    for sample in (jax.random.normal, jax.random.uniform, jax.random.bernoulli):
        sample(key)
    jax.random.uniform(key, maxval=2.0)
    assert {f.info.name: f.info.same_rounding
            for f in jitted._all_jits if f.info.same_rounding} == STATED


# -- where the border lies -------------------------------------------------------------------------

X = jnp.ones(3)


def options(fun, *args):
    return options_of(jax.make_jaxpr(fun)(*args))


def test_small_programs_are_compiled_quickly():
    def many(count):
        return lambda x: [x := x + 1 for _ in range(count)][-1]

    assert options(lambda x: x + 1, X) == _jaxlib.QUICK_OPTIONS
    assert options(lambda x: jnp.tanh(x) ** 2 * jnp.sin(x) / jnp.max(x), X)
    assert options(lambda x: jnp.tanh(x) - jnp.sin(x) + jnp.max(x), X)
    assert not options(lambda x: x * x - 1, X)  # a product and a sum may be rounded once
    assert options(lambda x: x * x - 1, jnp.arange(3))
    assert options(lambda key: jax.random.bits(key, (3,)), jax.random.key(0))
    assert options(many(MOST_EQUATIONS), X)
    assert not options(many(MOST_EQUATIONS + 1), X)
    assert not options(lambda x: jax.jit(many(MOST_EQUATIONS))(x) + 1, X)
    assert options(lambda x: jnp.sum(jnp.sin(x)) + 1, X)
    assert not options(jnp.sum, jnp.ones((2, 3)))  # floats are added in another order
    assert not options(lambda x: jnp.sum(x.reshape(3, 1)[:, 0]), X)  # XLA may join the two
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
    assert of(reduce.ReduceMax((0,)), X, X)
    table = jnp.ones((2, 3))
    assert not of(reduce.ReduceMax((0,)), table, table)  # counts the largest, adds tangents there
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
