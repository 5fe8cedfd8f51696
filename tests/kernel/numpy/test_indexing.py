"""Do ``x[idx]`` and ``x.at[idx]`` mean what NumPy means, with derivatives to match?

NumPy is the oracle for values: every form of index that hypothesis can mix.  Derivatives of reading
are held against ``np.add.at``, those of writing against masks; JAX itself, in a second process,
says what happens outside the array and which errors are raised.
"""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saem import _wiring  # noqa: F401 - lets operations run
from saem.compile.dispatch import put
from saem.core.infer import check_jaxpr
from saem.core.jaxpr import evaluate
from saem.core.trace import Tracer
from saem.numpy import indexing
from saem.numpy.indexing import getitem, scatter_apply, scatter_update
from saem.transform.jvp import instantiate
from saem.transform.linearize import linearize_flat
from saem.transform.staging import trace_flat
from saem.transform.vmap import match_dim, vmap_flat

pytestmark = pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types")


# -- indices ---------------------------------------------------------------------------------------


@st.composite
def slices(draw, n):
    bound = st.none() | st.integers(-n - 2, n + 2)
    step = draw(st.none() | st.sampled_from([1, 2, 3, -1, -2, -3]))
    return slice(draw(bound), draw(bound), step)


def positions(n, shapes, unique=False):
    """Return arrays of positions along an axis of size ``n``, negative ones too."""

    def make(shape, seed):
        rng = np.random.default_rng(seed)
        size = int(np.prod(shape))
        flat = rng.permutation(n)[:size] if unique else rng.integers(-n, n, size)
        return flat.reshape(shape).astype(rng.choice(["int8", "int32", "int64"]))

    return st.builds(make, shapes, st.integers(0, 10**6))


@st.composite
def indexed(draw, min_size=1):
    """Return (array, index): any mix of integers, slices, None, Ellipsis, arrays and masks."""
    shape = tuple(draw(st.lists(st.integers(min_size, 4), min_size=0, max_size=4)))
    x = np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.float32).reshape(shape)
    used = draw(st.integers(0, len(shape)))
    base = draw(st.lists(st.integers(1, 3), max_size=2))
    array_shapes = st.sampled_from([tuple(base), tuple(base[1:]), (1,) * len(base), ()])
    entries = []
    first = draw(st.sampled_from([0, len(shape) - used]))  # dots may stand before the last axes
    axis = first
    while axis < first + used:
        n = shape[axis]
        kinds = ["slice", "slice", "int", "array"] if n else ["slice", "array0"]
        kind = draw(st.sampled_from([*kinds, "mask", "none"]))
        if kind == "none":
            entries.append(None)
            continue
        if kind == "mask":
            count = draw(st.integers(1, min(2, first + used - axis)))
            rng = np.random.default_rng(draw(st.integers(0, 10**6)))
            mask = rng.integers(0, 2, shape[axis:axis + count]).astype(bool)
            # At most one element keeps all arrays broadcastable with the others.
            keep = np.flatnonzero(mask)[:1]
            mask = np.zeros(mask.size, bool)
            mask[keep] = True
            entries.append(mask.reshape(shape[axis:axis + count]))
            axis += count
            continue
        entries.append(draw(
            slices(n) if kind == "slice" else st.integers(-n, n - 1) if kind == "int" else
            positions(n, array_shapes) if kind == "array" else st.just(np.zeros(0, int))))
        axis += 1
    if draw(st.booleans()):
        entries.append(None)
    if used == len(shape):
        dots = draw(st.none() | st.integers(0, len(entries)))
    elif first:
        dots = 0
    else:
        dots = draw(st.sampled_from([None, len(entries)]))
    if dots is not None:
        entries.insert(dots, ...)
    index = tuple(entries)
    return x, index[0] if len(index) == 1 and draw(st.booleans()) else index


def numpy_reads(x, idx):
    """Return x[idx] by NumPy, or None if NumPy refuses it (arrays that do not broadcast)."""
    try:
        return np.asarray(x[idx])
    except IndexError as error:
        if "broadcast" in str(error) or "out of bounds" in str(error):
            return None
        raise


def staged(fun, *arrays):
    """Return the outputs of ``fun``, traced, checked and run on NumPy."""
    from_avals = [saem_aval(a) for a in arrays]
    closed = trace_flat(lambda *xs: [fun(*xs)], from_avals)
    check_jaxpr(closed)
    return evaluate(closed, *arrays)[0]


def saem_aval(x):
    return put(x).aval


# -- reading ---------------------------------------------------------------------------------------


@settings(max_examples=400, deadline=None)
@given(indexed())
def test_reading_is_numpys(case):
    x, idx = case
    want = numpy_reads(x, idx)
    if want is not None:
        got = staged(lambda x: getitem(x, idx), x)
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)


@settings(max_examples=60, deadline=None)
@given(indexed(min_size=0))
def test_reading_outside_a_trace_is_numpys(case):
    x, idx = case
    want = numpy_reads(x, idx)
    if want is not None:
        np.testing.assert_array_equal(np.asarray(getitem(put(x), idx)), want)


@settings(max_examples=150, deadline=None)
@given(indexed())
def test_traced_positions_read_what_known_ones_do(case):
    x, idx = case
    want = numpy_reads(x, idx)
    if want is None:
        return
    entries = idx if isinstance(idx, tuple) else (idx,)
    moving = [n for n, e in enumerate(entries) if type(e) is int or (
        isinstance(e, np.ndarray) and e.dtype != bool)]

    def read(x, *traced):
        assert all(isinstance(t, Tracer) for t in traced)
        new = list(entries)
        for n, t in zip(moving, traced):
            new[n] = t
        return getitem(x, tuple(new))

    arrays = [np.asarray(entries[n], np.int32) for n in moving]
    np.testing.assert_array_equal(staged(read, x, *arrays), want)


@settings(max_examples=150, deadline=None)
@given(indexed())
def test_cotangents_go_back_to_where_values_came_from(case):
    x, idx = case
    want = numpy_reads(x, idx)
    if want is None:
        return
    ct = np.random.default_rng(0).normal(size=want.shape).astype(np.float32)
    expected = np.zeros_like(x)
    np.add.at(expected, idx, ct)

    def pull(x, ct):
        _, linear = linearize_flat(lambda x: [getitem(x, idx)], [x], [True])
        return instantiate(linear.backward([ct])[0], x)

    got = staged(lambda x, ct: pull(x, ct), x, ct)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("idx", [
    0, (slice(None), -1), (slice(None, None, -1), None), ([0, 2],), (..., np.array([1, 0])),
    (np.array([[0], [1]]), np.array([2, 3])), (np.array([0, 1]), slice(1, 3)), (1, ..., 2)])
def test_a_stack_is_read_as_each_of_its_examples(idx):
    stack = np.random.default_rng(1).normal(size=(5, 3, 4)).astype(np.float32)

    def mapped(xs):
        outs, dims = vmap_flat(lambda x: [getitem(x, idx)], 5, [xs], [0])
        return match_dim(outs[0], dims[0], 0, 5)

    np.testing.assert_array_equal(staged(mapped, stack), np.stack([x[idx] for x in stack]))


def test_one_program_serves_all_positions():
    # Nine columns: no other test of this process reads parts of that size.
    x = put(np.arange(110, dtype=np.float32).reshape(10, 11))
    getitem(x, (4, slice(0, 9)))
    before = indexing._reader.cache_info().currsize
    for i in range(10):
        np.testing.assert_array_equal(np.asarray(getitem(x, (i, slice(1, 10)))),
                                      np.arange(110).reshape(10, 11)[i, 1:10])
    assert indexing._reader.cache_info().currsize == before
    reader = indexing._reader(("int", ("part", 9, 1, 9)), indexing.DEFAULT)
    assert len(reader.info.entries) == 1


def test_constants_of_a_program_come_with_every_call():
    x = put(np.arange(12, dtype=np.float32).reshape(3, 4))
    for _ in range(3):  # the second call is answered by jaxlib's C++
        got = getitem(x, (np.array([0, 2]), slice(None, None, 2)))
        np.testing.assert_array_equal(np.asarray(got), [[0, 2], [8, 10]])


# -- writing ---------------------------------------------------------------------------------------

KINDS = {"set": None, "add": np.add, "subtract": np.subtract, "multiply": np.multiply,
         "min": np.minimum, "max": np.maximum}


@settings(max_examples=400, deadline=None)
@given(indexed(), st.sampled_from(sorted(KINDS)), st.booleans())
def test_writing_is_numpys(case, kind, scalar):
    x, idx = case
    part = numpy_reads(x, idx)
    if part is None:
        return
    shape = () if scalar else part.shape
    y = np.random.default_rng(2).integers(-40, 40, shape).astype(np.float32)
    want = x.copy()
    if kind == "set":
        want[idx] = y
        if not scalar and not _distinct(x, idx):
            return  # of several numbers written to one place, which one stays is not promised
    else:
        KINDS[kind].at(want, idx, y)
    got = staged(lambda x, y: scatter_update(x, idx, y, kind), x, y)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def _distinct(x, idx):
    places = np.arange(x.size).reshape(x.shape)[idx]
    return np.unique(places).size == places.size


@settings(max_examples=40, deadline=None)
@given(indexed(), st.sampled_from(sorted(KINDS)))
def test_writing_outside_a_trace_is_numpys(case, kind):
    x, idx = case
    if numpy_reads(x, idx) is None:
        return
    want = x.copy()
    if kind == "set":
        want[idx] = 7
    else:
        KINDS[kind].at(want, idx, 7)
    np.testing.assert_allclose(np.asarray(scatter_update(put(x), idx, 7, kind)), want, rtol=1e-6)


@settings(max_examples=100, deadline=None)
@given(indexed())
def test_what_is_overwritten_has_no_derivative(case):
    x, idx = case
    part = numpy_reads(x, idx)
    if part is None or not _distinct(x, idx):
        return
    y = np.ones_like(part)
    ct = np.random.default_rng(3).normal(size=x.shape).astype(np.float32)
    mask = np.ones_like(x)
    mask[idx] = 0

    def pull(which):
        def run(x, y, ct):
            _, linear = linearize_flat(
                lambda x, y: [scatter_update(x, idx, y, "set")], [x, y], [True, True])
            return instantiate(linear.backward([ct])[which], (x, y)[which])
        return run

    np.testing.assert_allclose(staged(pull(0), x, y, ct), ct * mask, rtol=1e-6)
    np.testing.assert_allclose(staged(pull(1), x, y, ct), ct[idx], rtol=1e-6)


def test_apply_applies_again_where_an_index_repeats():
    x = np.arange(4, dtype=np.float32)
    got = scatter_apply(put(x), np.array([1, 1, 3]), lambda v: scatter_update(v, (), 2, "multiply"))
    np.testing.assert_array_equal(np.asarray(got), [0, 4, 2, 6])


# -- outside the array, dtypes and errors: as JAX --------------------------------------------------

OUTSIDE = [
    ("x[7]", lambda x: getitem(x, 7)), ("x[-9]", lambda x: getitem(x, -9)),
    ("x[np.array([7, -9, 2])]", lambda x: getitem(x, np.array([7, -9, 2]))),
    ("x[jnp.array(7)]", lambda x: getitem(x, put(np.int32(7)))),
    ("x[jnp.array(-9)]", lambda x: getitem(x, put(np.int32(-9)))),
    ("x.at[np.array([7, 0])].get(mode='fill')",
     lambda x: getitem(x, np.array([7, 0]), mode="fill")),
    ("x.at[7].get(mode='fill', fill_value=-1)",
     lambda x: getitem(x, 7, mode="fill", fill_value=-1)),
    ("x.at[7].get(mode='fill', fill_value=float('nan'))",
     lambda x: getitem(x, 7, mode="fill", fill_value=float("nan"))),
    ("x.at[np.array([7, -9])].get(mode='clip')",
     lambda x: getitem(x, np.array([7, -9]), mode="clip")),
    ("x.at[np.array([-1])].get(wrap_negative_indices=False)",
     lambda x: getitem(x, np.array([-1]), wrap_negative_indices=False)),
    ("x.at[7].set(5)", lambda x: scatter_update(x, 7, 5, "set")),
    ("x.at[-9].set(5)", lambda x: scatter_update(x, -9, 5, "set")),
    ("x.at[-1].set(5, wrap_negative_indices=False)",
     lambda x: scatter_update(x, -1, 5, "set", wrap_negative_indices=False)),
    ("x.at[np.array([7, 0])].add(5)", lambda x: scatter_update(x, np.array([7, 0]), 5, "add")),
    ("x.at[np.array([7, -9])].set(5, mode='clip')",
     lambda x: scatter_update(x, np.array([7, -9]), 5, "set", mode="clip")),
    ("x.at[7].multiply(5, mode='drop')",
     lambda x: scatter_update(x, 7, 5, "multiply", mode="drop")),
    ("x.at[np.array([0, 2])].divide(2)",
     lambda x: scatter_update(x, np.array([0, 2]), 2, "divide")),
    ("x.at[np.array([0, 2])].power(2)", lambda x: scatter_update(x, np.array([0, 2]), 2, "power")),
    ("x.at[0].set(1.5)", lambda x: scatter_update(x, 0, 1.5, "set")),
    ("x.at[0].set(300)", lambda x: scatter_update(x, 0, 300, "set")),
    ("x.at[0].set(True)", lambda x: scatter_update(x, 0, True, "set")),
    ("x.at[0].add(jnp.float32(1.5))", lambda x: scatter_update(x, 0, np.float32(1.5), "add")),
    ("x[True, :, None]", lambda x: getitem(x, (True, slice(None), None))),
    ("x.at[False].set(1)", lambda x: scatter_update(x, False, 1, "set")),
]


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "int8"])
@pytest.mark.parametrize(("source", "ours"), OUTSIDE, ids=[s for s, _ in OUTSIDE])
def test_outside_and_dtypes_are_as_in_jax(jax_oracle, source, ours, dtype):
    x = np.arange(12).reshape(3, 4).astype(dtype)
    want = jax_oracle.run(f"import warnings; warnings.simplefilter('ignore'); x = jnp.asarray(x); "
                          f"result = {source}", x=x)
    got = ours(put(x))
    assert got.aval.dtype == want.value.dtype
    np.testing.assert_array_equal(np.asarray(got), want.value)
    traced = staged(ours, x)
    np.testing.assert_array_equal(traced, want.value)


REFUSED = [
    ("x[0, 0, 0]", lambda x: getitem(x, (0, 0, 0))),
    ("x[[0, 1]]", lambda x: getitem(x, [0, 1])),
    ("x[[slice(0, 1), None]]", lambda x: getitem(x, [slice(0, 1), None])),
    ("x[1.0]", lambda x: getitem(x, 1.0)),
    ("x[np.float32(1)]", lambda x: getitem(x, np.float32(1))),
    ("x[jnp.ones(2)]", lambda x: getitem(x, put(np.ones(2, np.float32)))),
    ("x['a']", lambda x: getitem(x, "a")),
    ("x[..., ...]", lambda x: getitem(x, (..., ...))),
    ("x[{}]", lambda x: getitem(x, {})),
    ("x[::0]", lambda x: getitem(x, slice(None, None, 0))),
    ("x[1.0:]", lambda x: getitem(x, slice(1.0, None))),
    ("x[np.ones(4, bool)]", lambda x: getitem(x, np.ones(4, bool))),
    ("x[0, np.ones(3, bool)]", lambda x: getitem(x, (0, np.ones(3, bool)))),
    ("x[np.array([0, 1]), np.array([0, 1, 2])]",
     lambda x: getitem(x, (np.array([0, 1]), np.array([0, 1, 2])))),
    ("x.at[0].get(mode='foo')", lambda x: getitem(x, 0, mode="foo")),
    ("x.at[0].set(jnp.ones(3))", lambda x: scatter_update(x, 0, np.ones(3, np.float32), "set")),
    ("x.at[0, 0].set(jnp.ones((1, 1)))",
     lambda x: scatter_update(x, (0, 0), np.ones((1, 1), np.float32), "set")),
    ("x.at[0].set(None)", lambda x: scatter_update(x, 0, None, "set")),
    ("x.at[0].set('a')", lambda x: scatter_update(x, 0, "a", "set")),
    ("(x > 0).at[0].add(True)",
     lambda x: scatter_update(put(np.ones((3, 4), bool)), 0, True, "add")),
    ("jnp.zeros((0, 3))[0]", lambda x: getitem(put(np.zeros((0, 3), np.float32)), 0)),
    ("jax.jit(lambda x, i: x[i:])(x, 1)", lambda x: staged(
        lambda x, i: getitem(x, slice(i, None)), np.asarray(x), np.int32(1))),
    ("jax.jit(lambda x, m: x[m])(x, x > 0)", lambda x: staged(
        lambda x, m: getitem(x, m), np.asarray(x), np.ones((3, 4), bool))),
]


@pytest.mark.parametrize(("source", "ours"), REFUSED, ids=[s for s, _ in REFUSED])
def test_what_jax_refuses_is_refused_with_its_words(jax_oracle, source, ours):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with pytest.raises(oracle.JaxError) as theirs:
        jax_oracle.run(f"x = jnp.asarray(x); result = {source}", x=x)
    with pytest.raises(Exception) as caught:  # the type is compared below
        ours(put(x))
    names = [cls.__name__ for cls in type(caught.value).__mro__]
    assert theirs.value.kind in names, (theirs.value, names)
    words = theirs.value.message.split("\n")[0].split(" See ")[0]
    if "JitTracer" in words:
        words = words.split("Got")[0]
    assert words.rstrip(" .") in str(caught.value)
