"""Are axes that do not exist, and dtypes that make no sense, refused as on JAX?

Read before: ``library.py``, ``saem.numpy.axes``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from library import check

import saem.numpy as jnp

AXIS = ["argmax", "argmin", "nanargmax", "mean", "std", "var", "sum", "max", "cumsum", "sort",
        "median", "diff", "flip", "ptp", "count_nonzero", "trapezoid", "unique", "nanmean",
        "average"]
ROWS = [
    *(f"jnp.{name}(jnp.ones((2, 3)), axis={axis})" for name in AXIS for axis in (5, -3)),
    "jnp.array_split(jnp.ones(3), 2, axis=5)", "jnp.dsplit(jnp.ones((3, 2)), 2)",
    "jnp.delete(jnp.ones(3), 0, axis=5)", "jnp.delete(jnp.ones(3), 7)",
    "jnp.split(jnp.ones(4), 2, axis=5)", "jnp.hsplit(jnp.float32(1), 2)",
    "jnp.swapaxes(jnp.ones(3), 0, 5)", "jnp.packbits(jnp.ones(8, bool), axis=5)",
    "jnp.tensordot(jnp.ones(3), jnp.ones(3), axes=([5], [0]))",
    "jnp.tensordot(jnp.ones((3, 2)), jnp.ones((2, 3)), axes=([-1, 0], [0, -1]))",
    "jnp.vecdot(jnp.ones(3), jnp.ones(3), axis=5)", "jnp.transpose(jnp.ones((2, 2)), (0, 5))",
    "jnp.flip(jnp.ones((2, 3)), axis=(0, 0))", "jnp.flip(jnp.ones((2, 3)), axis=(0, -2))",
    "jnp.flip(jnp.arange(6).reshape(2, 3), axis=(0, -1))",
    *(f"jnp.{name}(jnp.ones(3, 'complex64'))" for name in ("argmax", "argmin")),
    *(f"jnp.{name}(jnp.arange(6.).reshape(2, 3), dtype={dtype})"
      for name in ("cov", "corrcoef", "mean", "cumsum", "cumprod", "sum", "prod", "nansum")
      for dtype in ("bool", "'int8'", "'float16'", "'complex64'")),
    *(f"jnp.{name}(jnp.array([1, 4]), dtype={dtype})" for name in ("var", "std")
      for dtype in ("bool", "'float16'", "'complex64'")),
    "jnp.ediff1d(jnp.array([True, False]))",
    "jnp.ediff1d(jnp.array([1, 4, 9]), to_end=jnp.array(0))",
]
# The mode that multiplies instead of gathering: a place outside gives 0.
ONE_HOT = [
    *(f"jnp.take_along_axis(jnp.arange(6).reshape(2, 3).astype('{dtype}'),"
      f" jnp.array([[0, 2], [{place}, -1]]), axis=1, mode='one_hot')"
      for dtype in ("float32", "int32", "bfloat16") for place in (1, 5)),
    "jnp.take_along_axis(jnp.arange(6.), jnp.array([0, 4]), axis=0, mode='one_hot')",
    "jnp.take_along_axis(jnp.arange(6.).reshape(2, 3), jnp.array([[0], [1]]), axis=1,"
    " mode='one_hot')",
]


def test_axes_and_dtypes(jax_oracle):
    check(jax_oracle, [*ROWS, *ONE_HOT])


@pytest.mark.parametrize("kind", [ValueError, IndexError])
def test_an_axis_out_of_bounds_is_both_errors_as_in_numpy(kind):
    with pytest.raises(kind, match="axis 3 is out of bounds"):
        jnp.sum(jnp.ones(2), axis=3)
