"""What is the value of a function between the points of a grid where it is known?

The public namespace ``jax.scipy.interpolate``.

Read before: ``saem.numpy``.
Invariant: as SciPy's class of this name (tests/kernel/scipy/test_small.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from saem import numpy as jnp
from saem.core import errors
from saem.core.trace import Tracer
from saem.numpy.axes import array_argument
from saem.numpy.promote import promote_dtypes_inexact
from saem.typing import Array, ArrayLike

__all__ = ["RegularGridInterpolator"]


def _refused(message: str, advice: str) -> Exception:
    return errors.explained(errors.ArgumentError, "RegularGridInterpolator", message, advice=advice)


class RegularGridInterpolator:
    """A function known on a grid: ``points`` are its ticks along each axis, ``values`` on them.

    points: ascending or descending vectors, ascending where they are traced.
    values: [len(points[0]), …, *rest].
    method: 'linear' or 'nearest'.  bounds_error: not supported, since arrays raise nothing.
    fill_value: what the function is outside; None extrapolates.
    Raises: ValueError for other methods, and ticks that do not fit ``values``.

    >>> f = RegularGridInterpolator((jnp.array([0., 1.]),), jnp.array([0., 10.]))
    >>> f(jnp.array([[0.25]]))
    Array([2.5], dtype=float32)
    """

    def __init__(self, points: Sequence[ArrayLike], values: ArrayLike, method: str = "linear",
                 bounds_error: bool = False, fill_value: ArrayLike | None = np.nan):
        if method not in ("linear", "nearest"):
            raise _refused(f"method {method!r} is not defined", "Use 'linear' or 'nearest'.")
        if bounds_error:
            raise errors.explained(NotImplementedError, "RegularGridInterpolator.bounds_error",
                                   "`bounds_error` takes no effect under JIT",
                                   advice="Check the coordinates before, or look for fill_value.")
        ticks = [array_argument("RegularGridInterpolator", p) for p in points]
        values = array_argument("RegularGridInterpolator", values)
        if len(ticks) > values.ndim:
            raise _refused(f"there are {len(ticks)} point arrays, but values has {values.ndim} "
                           "dimensions", "One vector of ticks for each of the first axes.")
        (self.values,) = promote_dtypes_inexact(values)
        self.grid: tuple[Array, ...] = ()
        for axis, x in enumerate(ticks):
            # The order of ticks that are traced is not known: they must ascend.
            steps = np.zeros(0) if isinstance(x, Tracer) else np.diff(np.asarray(x))
            self._add_axis(axis, steps, jnp.real(promote_dtypes_inexact(x)[0]))
        self.method, self.bounds_error = method, bounds_error
        self.fill_value: Array | None = None if fill_value is None else array_argument(
            "RegularGridInterpolator", fill_value)

    def _add_axis(self, axis: int, steps: np.ndarray, ticks: Array) -> None:
        """Check the ticks of an axis and add them to the grid, turned to ascend with the values."""
        if not (np.all(steps > 0) or np.all(steps < 0)):
            raise _refused(f"the points in dimension {axis} must be strictly ascending or "
                           "descending", "Sort them, and the values with them.")
        if ticks.ndim != 1:
            raise _refused(f"the points in dimension {axis} must be 1-dimensional",
                           "One vector for each axis.")
        if self.values.shape[axis] != ticks.shape[0]:
            raise _refused(f"there are {ticks.shape[0]} points and {self.values.shape[axis]} "
                           f"values in dimension {axis}", "One tick for each value.")
        if steps.size and steps[0] < 0:
            ticks, self.values = ticks[::-1], jnp.flip(self.values, axis)
        self.grid += (ticks,)

    def __call__(self, xi: ArrayLike, method: str | None = None) -> Array:
        """Return the values at the points ``xi`` [..., d], as [..., *rest].

        Raises: ValueError for another method or dimension.
        """
        method = self.method if method is None else method
        if method not in ("linear", "nearest"):
            raise _refused(f"method {method!r} is not defined", "Use 'linear' or 'nearest'.")
        points, batch = self._points(xi)
        out = self._at(list(points.T), method)
        per_value = (points.shape[0],) + (1,) * (out.ndim - 1)
        if self.fill_value is not None:
            outside = jnp.zeros(points.shape[0], bool)
            for x, ticks in zip(points.T, self.grid):
                outside = outside | (x < ticks[0]) | (x > ticks[-1])
            out = jnp.where(outside.reshape(per_value), self.fill_value, out)
        missing = jnp.any(jnp.isnan(points), -1)
        out = jnp.where(missing.reshape(per_value), np.nan, out)
        return out.reshape(*batch, *out.shape[1:])

    def _points(self, xi: ArrayLike) -> tuple[Array, tuple[int, ...]]:
        """Return the points as rows [n, d], and the shape that they had before their last axis."""
        d = len(self.grid)
        stacked = isinstance(xi, tuple)
        if isinstance(xi, tuple):
            xi = jnp.stack(jnp.broadcast_arrays(*xi), -1)
        xi = array_argument("RegularGridInterpolator", xi)
        if xi.ndim == 1 and not (stacked and d > 1):
            xi = xi.reshape(-1, d)
        if xi.shape[-1] != d:
            raise _refused(f"the requested sample points xi have dimension {xi.shape[-1]}, but "
                           f"this RegularGridInterpolator has dimension {d}",
                           "Coordinates are the last axis.")
        return xi.reshape(-1, d), xi.shape[:-1]

    def _at(self, xs: list[Array], method: str) -> Array:
        """Return the values at points whose coordinates are ``xs``."""
        lows, parts = [], []
        for x, ticks in zip(xs, self.grid):
            low = jnp.clip(jnp.searchsorted(ticks, x, "right") - 1, 0, max(len(ticks) - 2, 0))
            lows.append(low)
            parts.append(jnp.zeros_like(x) if len(ticks) == 1 else
                         (x - ticks[low]) / (ticks[low + 1] - ticks[low]))
        rest = (1,) * (self.values.ndim - len(xs))
        if method == "nearest":
            return self.values[tuple(jnp.where(part <= 0.5, low, low + 1)
                                     for low, part in zip(lows, parts))]
        total = 0
        for corner in itertools.product((0, 1), repeat=len(xs)):
            weight, places = 1, []
            for side, low, part, ticks in zip(corner, lows, parts, self.grid):
                weight = weight * (part if side else 1 - part)
                places.append(jnp.minimum(low + side, len(ticks) - 1))
            total = total + jnp.asarray(weight).reshape(-1, *rest) * self.values[tuple(places)]
        return total
