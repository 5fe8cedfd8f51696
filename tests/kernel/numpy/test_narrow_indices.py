"""Do places in int8 mean what they mean in int32, along axes longer than int8 counts?

Wrapping around, counting from the end and clamping compute with the length of the axis, which a
narrow dtype lacks.  NumPy's answer for the same places in int64 is the measure.

Read before: ``saem.ops.convert`` (``holding``).
"""

from __future__ import annotations

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import lax

N = 300
X = np.arange(N, dtype=np.float32)
M = np.arange(2 * N, dtype=np.float32).reshape(N, 2)


def written(x, places, value):
    out = np.array(x)
    out[places] = value
    return out


def from_end(i, room):
    """Where a dynamic slice begins: negative starts count from the end, all are clamped."""
    return np.clip(np.where(i < 0, i + N, i), 0, room)


# How Saem is called with places in a narrow dtype, and what NumPy says of them in int64.
CALLS = {
    "x[i]": (lambda i: jnp.asarray(X)[i], lambda i: X[i]),
    "x[i0]": (lambda i: jnp.asarray(X)[i[0]], lambda i: X[i[0]]),
    "at.set": (lambda i: jnp.asarray(X).at[i].set(-1), lambda i: written(X, i, -1)),
    "take": (lambda i: jnp.take(X, i), lambda i: np.take(X, i)),
    "take wrap": (lambda i: jnp.take(X, i, mode="wrap"), lambda i: np.take(X, i, mode="wrap")),
    "take wrap rows": (lambda i: jnp.take(M, i, axis=0, mode="wrap"),
                       lambda i: np.take(M, i, axis=0, mode="wrap")),
    "take_along_axis": (lambda i: jnp.take_along_axis(X, i, 0),
                        lambda i: np.take_along_axis(X, i, 0)),
    "take_along_axis rows": (lambda i: jnp.take_along_axis(M, i[:, None], 0),
                             lambda i: np.take_along_axis(M, i[:, None], 0)),
    "take_along_axis one_hot": (lambda i: jnp.take_along_axis(X, i, 0, mode="one_hot"),
                                lambda i: np.take_along_axis(X, i, 0)),
    "put wrap": (lambda i: jnp.put(X, i, -1, mode="wrap", inplace=False),
                 lambda i: written(X, i, -1)),
    "put_along_axis": (lambda i: jnp.put_along_axis(X, i, -1., 0, inplace=False),
                       lambda i: written(X, i, -1)),
    "unravel_index": (lambda i: jnp.stack(jnp.unravel_index(i, (20, 15))),
                      lambda i: np.stack(np.unravel_index(i % N, (20, 15)))),
    "unravel_index of one axis": (lambda i: jnp.unravel_index(i, (N,))[0], lambda i: i % N),
    "one_hot": (lambda i: jax.nn.one_hot(i, N),
                lambda i: (i[:, None] == np.arange(N)).astype(np.float32)),
    "segment_sum": (lambda i: jax.ops.segment_sum(X[1:4], abs(i), N),
                    lambda i: np.bincount(abs(i), X[1:4], N)),
    "index_take": (lambda i: lax.index_take(jnp.asarray(X), (jnp.asarray(i),), (0,)),
                   lambda i: X[i]),
    "dynamic_slice": (lambda i: jnp.stack([lax.dynamic_slice(X, (p,), (3,)) for p in i]),
                      lambda i: np.stack([X[p:p + 3] for p in from_end(i, N - 3)])),
    "dynamic_slice of rows": (lambda i: lax.dynamic_slice(M, (i[2], i[1]), (3, 1)),
                              lambda i: M[(p := from_end(i, N - 3)[2]):p + 3, 1:]),
    "dynamic_update_slice": (
        lambda i: jnp.stack([lax.dynamic_update_slice(X, -X[:3], (p,)) for p in i]),
        lambda i: np.stack([written(X, slice(p, p + 3), -X[:3]) for p in from_end(i, N - 3)])),
    "dynamic_index_in_dim": (lambda i: lax.dynamic_index_in_dim(X, i[0]), lambda i: X[i[:1]]),
    "dynamic_update_index_in_dim": (
        lambda i: lax.dynamic_update_index_in_dim(X, -1., i[0], 0),
        lambda i: written(X, i[0], -1)),
}
KNOWN = {  # places must be known
    "insert": (lambda i: jnp.insert(X, i, -1.), lambda i: np.insert(X, i, -1.)),
    "insert one": (lambda i: jnp.insert(X, i[0], -1.), lambda i: np.insert(X, i[0], -1.)),
    "delete": (lambda i: jnp.delete(X, i), lambda i: np.delete(X, i)),
    "repeat": (lambda i: jnp.repeat(X[:3], abs(i)), lambda i: np.repeat(X[:3], abs(i))),
    "roll": (lambda i: jnp.roll(X, i[0]), lambda i: np.roll(X, i[0])),
    "split": (lambda i: jnp.array_split(X, abs(i)[1:])[1], lambda i: np.split(X, abs(i)[1:])[1]),
}
DTYPES = [np.int8, np.uint8, np.int16, np.uint16]


def places(dtype):
    return np.array([1 if np.dtype(dtype).kind == "u" else -1, 100, 127], dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", [*CALLS, *KNOWN])
def test_narrow_places_are_numpys_wide_ones(name, dtype):
    call, numpys = {**CALLS, **KNOWN}[name]
    narrow = places(dtype)
    want = numpys(narrow.astype(np.int64))
    np.testing.assert_array_equal(call(narrow), want)
    np.testing.assert_array_equal(call(jnp.asarray(narrow)), want)
    if name in CALLS:
        np.testing.assert_array_equal(jax.jit(call)(narrow), want)
        batch = np.stack([narrow, narrow[::-1]])
        mapped = jax.vmap(call)(batch)
        for row, one in zip(mapped, batch):
            np.testing.assert_array_equal(row, numpys(one.astype(np.int64)))


def test_where_all_sizes_fit_the_dtype_stays():
    i = np.array([3, 100], np.int8)
    assert {part.dtype for part in jnp.unravel_index(i, (20, 15))} == {np.dtype(np.int8)}
    assert jnp.unravel_index(i, (N,))[0].dtype == np.int32


def test_a_flat_place_that_no_dtype_here_holds_is_refused():
    one = np.array([3])
    for mode in ("raise", "clip", "wrap"):
        with pytest.raises(ValueError, match="not large enough to hold flattened index"):
            jnp.ravel_multi_index((one, one), (2**20, 2**20), mode=mode)
    with pytest.raises(ValueError, match=r"dims=\(129,\)"):
        jnp.ravel_multi_index((one.astype(np.int8),), (129,))
    assert jnp.ravel_multi_index((np.array([127], np.int8),), (128,))[0] == 127


def test_places_in_an_array_larger_than_int32_counts():
    rows, columns = jnp.unravel_index(np.array([3, 2**20 + 5, -1]), (2**20, 2**20))
    np.testing.assert_array_equal(rows, [0, 1, 2**20 - 1])
    np.testing.assert_array_equal(columns, [3, 5, 2**20 - 1])


def test_places_outside_are_moved_inside():
    i = np.array([-301, -300, -1, 0, 299, 300])
    rows, columns = jnp.unravel_index(i, (20, 15))
    inside = np.stack(np.unravel_index([0, 0, 299, 0, 299, 299], (20, 15)))
    np.testing.assert_array_equal(np.stack([rows, columns]), inside)


def test_a_boolean_is_the_place_0_or_1():
    np.testing.assert_array_equal(jnp.unravel_index(True, (2, 3)), [0, 1])


def test_counts_in_uint64_and_sizes_in_int8():
    np.testing.assert_array_equal(jnp.repeat(X[:3], np.array([2, 0, 1], np.uint64)), [0, 0, 2])
    assert jax.ShapeDtypeStruct((np.int8(100), np.int8(100)), np.float32).size == 10_000


def test_places_along_an_axis_that_int32_does_not_count_are_refused():
    x = jax.ShapeDtypeStruct((2**31 + 10,), np.int8)
    with pytest.raises(OverflowError, match="axis of 2147483658 are out of bounds for int32"):
        jax.eval_shape(lambda x: x[np.array([5, -1])], x)
    with pytest.raises(OverflowError, match="jax_enable_x64"):
        jax.eval_shape(lambda x, i: x[i], x, np.array([5, -1]))
    with jax.enable_x64(True):
        assert jax.eval_shape(lambda x, i: x[i], x, np.array([5, -1])).shape == (2,)
    longest = jax.ShapeDtypeStruct((2**31,), np.int8)
    assert jax.eval_shape(lambda x, i: x[i], longest, np.array([5, -1])).shape == (2,)
