"""How does a pytree of arrays become one vector, and back?  (``jax.flatten_util``)

Read before: ``core.tree``.
Invariant: ``unravel(ravel_pytree(t)[0])`` is ``t``, dtypes and all.
Source: the documentation of jax.flatten_util.ravel_pytree.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import errors, tree
from saem.core.avals import ShapedArray, aval_of
from saem.core.record import Record


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the leaves of ``pytree`` as one vector of their common dtype, and the way back.

    Without leaves the vector is empty and float32.

    >>> flat, unravel = jax.flatten_util.ravel_pytree({"a": jnp.array([1., 2.]),
    ...     "b": jnp.array(3.)})
    >>> flat
    Array([1., 2., 3.], dtype=float32)
    >>> unravel(flat * 10)
    {'a': Array([10., 20.], dtype=float32), 'b': Array(30., dtype=float32)}
    """
    leaves, structure = tree.flatten(pytree)
    if not leaves:
        return jnp.zeros(0, np.float32), lambda _: structure.unflatten([])
    avals = [aval_of(x) for x in leaves]
    common: Any = jnp.result_type(*[aval.dtype for aval in avals])  # numbers of Python count fully
    if all(aval.dtype == common for aval in avals):
        vector = jnp.concatenate([jnp.ravel(x) for x in leaves])
        common = None  # the vector may come back as any dtype, all leaves then being of it
    else:
        vector = jnp.concatenate([jnp.ravel(x).astype(common) for x in leaves])
    types = tuple([ShapedArray(aval.shape, aval.dtype) for aval in avals])
    return vector, _Unravel(structure, types, common)


class _Unravel(Record):
    """The way from a vector back to the pytree that ``ravel_pytree`` was given."""

    structure: Any
    avals: tuple[Any, ...]
    common: Any

    def __call__(self, vector: Any) -> Any:
        """Return the pytree.  Raises: TypeError, ValueError for a vector of another type."""
        aval = aval_of(vector)
        if self.common is not None and aval.dtype != self.common:
            raise errors.explained(
                errors.ArgumentTypeError, "ravel_pytree.C1",
                f"unravel function given array of dtype {aval.dtype}, but expected dtype "
                f"{self.common}", advice="The leaves had several dtypes, which come back by "
                "conversion from their common one: convert the vector to that first.")
        sizes = [math.prod(a.shape) for a in self.avals]
        if aval.shape != (sum(sizes),):
            raise errors.explained(
                errors.ArgumentError, "ravel_pytree.C2",
                f"Sum of sizes {sum(sizes)} must be equal to dimension 0 of the operand shape "
                f"{list(aval.shape)}", advice="Give back a vector of the length that ravel_pytree "
                "returned.")
        parts = lax.split(vector, sizes)
        leaves = [lax.reshape(part, a.shape) for part, a in zip(parts, self.avals)]
        if self.common is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # complex to real is what was asked for
                leaves = [lax.convert_element_type(x, a.dtype)
                          for x, a in zip(leaves, self.avals)]
        return self.structure.unflatten(leaves)


__all__ = ["ravel_pytree"]
