"""How does a size that is not known yet become a number of the program?

``dim_as_value`` is an operation without operands: its result is the size, as an integer array of
rank 0.  It comes into being where a dimension meets arithmetic on arrays.

Read before: ``core.dimensions``, ``core.primitive``.  Read after: ``compile.sizes``.
Invariant: it stands only in programs whose arguments have symbolic dimensions.
"""

from __future__ import annotations

from typing import Any

from saem.core import dtypes
from saem.core.avals import ShapedArray
from saem.core.dimensions import Dim
from saem.core.primitive import NOT_LINEAR, Primitive, primitive
from saem.core.trace import bind


@primitive("dim_as_value")
class DimAsValue(Primitive):
    """The size ``dim`` as an integer array of rank 0."""

    dim: Any

    def typing(self):
        return ShapedArray((), dtypes.default_dtype(int), True)

    def evaluate(self):
        raise NotImplementedError(
            f"The dimension '{self.dim}' has no value outside an exported program. Compute with "
            "it inside the function that jax.export exports.")

    def lower(self, ctx):
        return ctx.dimension(self.dim)

    def jvp(self, primals, tangents):
        return bind(self), None

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        return bind(self), None


def dim_as_value(dim: Dim) -> Any:
    """Return a dimension as an array of rank 0."""
    return bind(DimAsValue(dim))


Dim.as_array = staticmethod(dim_as_value)
