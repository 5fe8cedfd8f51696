"""Are results on several devices those of one, where XLA's partitioner needs help?

It refuses folds that no collective does, and leaves starts out of range as they are.

Read before: ``test_shardings.py``.
Invariant: every expected value is NumPy's.
"""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.sharding import AxisType, NamedSharding
from saem.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
INTEGERS = np.random.default_rng(0).integers(-100, 100, (8, 4)).astype("int32")
SPECS = [("x", "y"), (None, "y"), (("x", "y"), None), ("y", None)]

FOLDS = {
    "and": (lax.reduce_and, INTEGERS, np.bitwise_and.reduce),
    "or": (lax.reduce_or, INTEGERS, np.bitwise_or.reduce),
    "xor": (lax.reduce_xor, INTEGERS, np.bitwise_xor.reduce),
    "xor of truth": (lax.reduce_xor, INTEGERS > 0, np.logical_xor.reduce),
    "all": (lax.reduce_and, INTEGERS > -90, np.logical_and.reduce),
    "complex max": (lambda x, axes: jnp.max(x, axes), INTEGERS + 1j * INTEGERS[::-1],
                    lambda x, axis: np.max(x, axis)),
    "complex min": (lambda x, axes: jnp.min(x, axes), INTEGERS + 1j * INTEGERS[::-1],
                    lambda x, axis: np.min(x, axis)),
    "complex product": (lambda x, axes: jnp.prod(x, axes), (INTEGERS > 0) * 0.5 + 1j,
                        lambda x, axis: np.prod(x, axis)),
    "product of remainders": (
        lambda x, axes: lax.reduce(x, 1, lambda a, b: a * b % 251, axes), abs(INTEGERS) + 1,
        lambda x, axis: (np.multiply.reduce(x.astype(object), axis) % 251).astype("int32")
        if len(axis) == 1 else math.prod(x.ravel().tolist()) % 251),
}


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("name", FOLDS)
def test_folds_along_sharded_axes_are_numpys(name, spec, axes):
    fold, values, numpys = FOLDS[name]
    placed = jax.device_put(jnp.asarray(values), NamedSharding(mesh, P(*spec)))
    wanted = numpys(values, axis=axes)
    for program in (fold, jax.jit(fold, static_argnums=1)):
        np.testing.assert_allclose(program(placed, axes), wanted, rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("start", [-20, -3, -1, 0, 2, 7, 8, 100])
@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_an_update_that_begins_out_of_range_is_moved_inside(spec, start, axis):
    placed = jax.device_put(INTEGERS, NamedSharding(mesh, P(*spec)))
    row = np.arange(INTEGERS.shape[1 - axis], dtype="int32")
    size = INTEGERS.shape[axis]
    at = operator.index(np.clip(start + size * (start < 0), 0, size - 1))
    wanted = INTEGERS.copy()
    wanted[(slice(None),) * axis + (at,)] = row
    for dtype in (np.int32, np.int8):
        program = jax.jit(lambda x, i: lax.dynamic_update_index_in_dim(x, row, i, axis))
        np.testing.assert_array_equal(program(placed, dtype(start)), wanted)
