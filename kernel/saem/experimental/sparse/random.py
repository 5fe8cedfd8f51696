"""How is a random sparse array made?  (``jax.experimental.sparse.random``)

Read before: ``bcoo_format``.
Invariant: the same key gives JAX's places and elements (tests/kernel/test_sparse.py).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import saem.numpy as jnp
from saem import random
from saem.core import dtypes
from saem.experimental.sparse.base import nfold_vmap
from saem.experimental.sparse.bcoo_format import BCOO, split
from saem.typing import Array, DTypeLike


def random_bcoo(key: Array, shape: Sequence[int], *, dtype: DTypeLike = np.float64,
                indices_dtype: DTypeLike | None = None, nse: float | int = 0.2, n_batch: int = 0,
                n_dense: int = 0, unique_indices: bool = True, sorted_indices: bool = False,
                generator: Callable[..., Array] = random.uniform, **kwds: Any) -> BCOO:
    """Return a BCOO array with random elements at random places.

    ``nse`` is their number, or below 1 the fraction of all places; ``generator(key, shape, dtype,
    **kwds)`` makes the elements.

    Raises: ValueError for numbers of axes or elements that do not fit.

    >>> sparse.random_bcoo(jax.random.key(0), (4, 4), nse=0.5, dtype=jnp.float32).nse
    8
    """
    shape = tuple(map(operator.index, shape))
    n_sparse = len(shape) - n_batch - n_dense
    if min(n_sparse, n_batch, n_dense) < 0:
        raise ValueError(f"Invalid parameters: n_batch={n_batch}, n_dense={n_dense} for "
                         f"shape={shape}")
    batch, sparse, dense = split(shape, n_batch, n_sparse)
    places = math.prod(sparse)
    if not 0 <= nse < 1 and not (isinstance(nse, int) or float(nse).is_integer()):
        raise ValueError(f"got nse={nse}, expected to be between 0 and {places}")
    count = math.ceil(nse * places) if 0 < nse < 1 else int(nse)
    if indices_dtype is None:
        indices_dtype = dtypes.canonicalize_dtype(np.int64)
    keys = random.split(key, 1 + math.prod(batch))

    def place(key: Array) -> Array:
        if not sparse:
            return jnp.empty((count, 0), indices_dtype)
        flat = random.choice(key, places, shape=(count,), replace=not unique_indices)
        return jnp.stack(jnp.unravel_index(flat, sparse), 1).astype(indices_dtype)

    indices = nfold_vmap(place, n_batch)(keys[1:].reshape(*batch, *keys.shape[1:]))
    data = generator(keys[0], shape=(*batch, count, *dense), dtype=dtype, **kwds)
    out = BCOO((data, indices), shape=shape, unique_indices=unique_indices)
    return out.sort_indices() if sorted_indices else out
