"""What is the value of an image between its pixels?

The public namespace ``jax.scipy.ndimage``.

Read before: ``saem.numpy``.
Invariant: as SciPy's function of this name, for orders 0 and 1 (tests/kernel/scipy/test_small.py).
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import dtypes, errors
from saem.jit.library import library_function
from saem.numpy.axes import array_argument
from saem.typing import Array, ArrayLike

__all__ = ["map_coordinates"]


def _mirror(place: Array, size: int) -> Array:
    """Return places reflected at the centres of the first and last pixel."""
    last = max(size - 1, 1)
    return jnp.abs((place + last) % (2 * last) - last) if size > 1 else place * 0


# How a place outside of 0 … size - 1 becomes one inside.
INSIDE = {
    "constant": lambda place, size: place,
    "nearest": lambda place, size: jnp.clip(place, 0, size - 1),
    "wrap": lambda place, size: place % size,
    "mirror": _mirror,
    "reflect": lambda place, size: jnp.floor_divide(_mirror(2 * place + 1, 2 * size + 1), 2),
}


@library_function(static_argnames=("order", "mode"), whole=True)
def _map(values, coordinates, order, mode, cval):
    fill = jnp.asarray(cval, values.dtype)
    axes: list[Any] = []
    for at, size in zip(coordinates, values.shape):
        at = jnp.asarray(at)
        if order == 0:
            nearest = lax.round(at) if dtypes.is_inexact(at.dtype) else at
            neighbours = [(nearest.astype(np.int32), 1)]
        else:
            low = jnp.floor(at)
            part = at - low
            place = low.astype(np.int32)
            neighbours = [(place, 1 - part), (place + 1, part)]
        axes.append([(INSIDE[mode](p, size), (p >= 0) & (p < size), w) for p, w in neighbours])
    total: Any = 0
    for corner in itertools.product(*axes):
        places, valid, parts = zip(*corner)
        found = values[tuple(places)]
        if mode == "constant":
            found = jnp.where(functools.reduce(operator.and_, valid), found, fill)
        total = total + found * functools.reduce(operator.mul, parts)
    if dtypes.is_integer(values.dtype):
        total = lax.round(total) if dtypes.is_inexact(total.dtype) else total
    return total.astype(values.dtype)


def map_coordinates(input: ArrayLike, coordinates: Sequence[ArrayLike], order: int,
                    mode: str = "constant", cval: ArrayLike = 0.0) -> Array:
    """Return the values of ``input`` at ``coordinates``, one array of places for each axis.

    order: 0 takes the nearest pixel, 1 interpolates between neighbours.
    mode: what is outside: 'constant' is ``cval``, 'nearest' the last pixel, 'wrap' the other end,
    'mirror' and 'reflect' the image turned round at the last pixel's centre or edge.
    Raises: NotImplementedError for other orders and modes; ValueError unless each axis has places;
    ShapeError where there are no pixels.

    >>> map_coordinates(jnp.array([0., 10.]), [jnp.array([0.25, 3.])], 1)
    Array([2.5, 0. ], dtype=float32)
    """
    input = array_argument("map_coordinates", input)
    if getattr(cval, "ndim", 0) or isinstance(cval, (list, tuple, set, dict)):
        raise errors.explained(
            errors.ArgumentError, "map_coordinates.cval",
            f"cval must be a number, got {cval!r}", advice="One value is outside everywhere.")
    if len(coordinates) != input.ndim:
        raise errors.explained(
            errors.ArgumentError, "map_coordinates.C1",
            "coordinates must be a sequence of length input.ndim, but "
            f"{len(coordinates)} != {input.ndim}", advice="One array for each axis.")
    if input.ndim == 0 or (input.size == 0 and any(map(jnp.size, coordinates))):
        raise errors.explained(
            errors.ShapeError, "map_coordinates.pixels",
            f"map_coordinates needs an array with pixels along its axes, got shape {input.shape}",
            advice="There is no pixel to take a value from.")
    if mode not in INSIDE:
        raise errors.explained(
            NotImplementedError, "map_coordinates.mode",
            f"jax.scipy.ndimage.map_coordinates does not yet support mode {mode}. Currently "
            f"supported modes are {set(INSIDE)}.", advice="Pad the image first.")
    if order not in (0, 1):
        raise errors.explained(
            NotImplementedError, "map_coordinates.order",
            "jax.scipy.ndimage.map_coordinates currently requires order<=1",
            advice="Order 1 is linear.")
    return _map(input, tuple(coordinates), order=order, mode=mode, cval=cval)
