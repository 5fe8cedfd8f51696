"""What do primitives on matrices share?

Each works on the last axes of its operands and does so for all matrices that stand side by side
over the leading axes.  So a batch is more matrices: one batch rule serves all.

Read before: ``linalg.algebra``.  Read after: ``linalg.cholesky``, the plainest member.
Invariant: the leading axes of all operands are equal; they lead in every result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import NOT_LINEAR, Primitive
from saem.core.trace import bind
from saem.ops import sharding_rules
from saem.ops.linear import stacked


class MatrixOperation(Primitive):
    """Works on the last axes of each operand; ``cores`` has the number of these for each."""

    __slots__ = ()
    folds_many = True
    takes_matrices = True
    cores: ClassVar[tuple[int, ...]] = (2,)
    shard_results = sharding_rules.decomposition
    # Whether complex numbers are accepted.
    complex_too: ClassVar[bool] = True

    def check(self, *avals: ShapedArray) -> tuple[int, ...]:
        """Refuse operands of other dtypes or too few axes; return the sizes of the leading axes."""
        kinds = "floating, complexfloating" if self.complex_too else "floating"
        for place, (aval, core) in enumerate(zip(avals, self.cores)):
            if aval.ndim < core:
                raise errors.explained(
                    errors.ShapeError, f"{self.name}.rank",
                    f"Input {place} to {self.name} must have rank at least {core}, but got "
                    f"shape={aval.shape}", advice="Give a matrix, or a stack of them.")
            fits = dtypes.is_float(aval.dtype) or (
                self.complex_too and dtypes.is_complex(aval.dtype))
            if not fits:
                raise errors.explained(
                    errors.DTypeError, f"{self.name}.dtype",
                    f"{self.name} does not accept dtype {aval.dtype.name} at position {place}. "
                    f"Accepted dtypes at position {place} are subtypes of {kinds}.",
                    advice="Convert first, for example with x.astype(jnp.float32).")
        if any(a.dtype != avals[0].dtype for a in avals):
            names = ", ".join(a.dtype.name for a in avals)
            raise errors.explained(
                errors.DTypeError, f"{self.name}.dtypes",
                f"lax.{self.name} requires arguments to have the same dtypes, got {names}.",
                advice="Convert one of them.")
        leading = [a.shape[: a.ndim - core] for a, core in zip(avals, self.cores)]
        if any(shape != leading[0] for shape in leading):
            raise errors.explained(
                errors.ShapeError, f"{self.name}.leading",
                f"{self.name} requires operands with equal leading axes, got shapes "
                f"{', '.join(str(a.shape) for a in avals)}.",
                advice="Broadcast the leading axes to one shape.")
        return leading[0]

    def check_square(self, x: ShapedArray, what: str = "The input to {}") -> int:
        """Return the size of the square matrices ``x``.  Raises: ValueError if they are not."""
        if x.shape[-1] != x.shape[-2]:
            raise errors.explained(
                errors.ShapeError, f"{self.name}.square",
                f"{what.format(self.name)} must be a square matrix. Got shape {x.shape[-2:]}.",
                advice=f"The operand is {x.str_short(True)}.")
        return x.shape[-1]

    def batch(self, size, xs, dims):
        # One more axis would make a matrix of a vector: the operands of one example are checked.
        shapes = [tuple([n for i, n in enumerate(aval_of(x).shape) if i != d])
                  for x, d in zip(xs, dims)]
        self.typing(*[ShapedArray(shape, aval_of(x).dtype) for shape, x in zip(shapes, xs)])
        outs = bind(self, *stacked(size, xs, dims))
        return (outs, [0] * len(outs)) if self.multiple_results else (outs, 0)


class NoDerivative(MatrixOperation):
    """A decomposition whose derivative is not defined, in JAX neither."""

    __slots__ = ()

    def jvp(self, primals, tangents):
        if all(t is None for t in tangents):
            outs = bind(self, *primals)
            return outs, [None] * len(outs) if self.multiple_results else None
        raise errors.explained(
            NotImplementedError, f"{self.name}.jvp",
            f"Differentiation rule for '{self.name}' not implemented",
            advice="Differentiate through qr, eigh, svd or solve instead.")

    transpose = NOT_LINEAR


def part_of(prim: Any, count: int) -> tuple[int, int]:
    """Return from and up to which of ``count`` values ``subset_by_index`` of ``prim`` asks."""
    return prim.subset_by_index or (0, count)


def checked_part(prim: Any, count: int) -> tuple[int, int]:
    """Return the same where parts are computed.  Raises: ValueError if there are no such values."""
    start, stop = part_of(prim, count)
    if not 0 <= start <= stop <= count:
        raise errors.explained(
            errors.ArgumentError, f"{prim.name}.C1",
            f"subset_by_index must be within 0..{count}, got {prim.subset_by_index}",
            advice="It is (start, stop): which values, in the order in which they come.")
    return start, stop


def refuse_part(prim: Any, count: int, refusal: str) -> None:
    """Raises: NotImplementedError with the sentence ``refusal`` if only some values are asked."""
    if prim.subset_by_index not in (None, (0, count)):
        raise errors.explained(
            NotImplementedError, f"{prim.name}.subset", refusal,
            advice="Compute all of them and take a slice.")


def real_aval(shape: Sequence[int], dtype: Any) -> ShapedArray:
    """Return the aval of real numbers as wide as ``dtype``."""
    return ShapedArray(tuple(shape), dtypes.real_dtype(dtype))


def weak_as_operands(typing: Callable) -> Callable:
    """Let the results of a typing rule be weak where all operands are."""

    @functools.wraps(typing)
    def typed(self: Any, *avals: ShapedArray) -> Any:
        outs = typing(self, *avals)
        if not all(aval.weak_type for aval in avals):
            return outs
        if isinstance(outs, ShapedArray):
            return outs.update(weak_type=True)
        return [out.update(weak_type=True) for out in outs]

    return typed


def each_matrix(*cores: int) -> Callable[[Callable], Callable]:
    """Let a NumPy function of single matrices work on stacks, as ``evaluate`` rules must.

    ``cores`` are the ranks of its operands; results may have any rank.
    """

    def decorate(function: Callable) -> Callable:

        @functools.wraps(function)
        def stacked(self: Any, *xs: np.ndarray) -> Any:
            leading = xs[0].shape[: xs[0].ndim - cores[0]]
            if not leading:
                return function(self, *xs)
            if 0 in leading:  # nothing to compute: shapes are those of the typing rule
                avals = self.typing(*(ShapedArray(x.shape, x.dtype) for x in xs))
                made = [np.zeros(a.shape, a.dtype)
                        for a in (avals if self.multiple_results else [avals])]
                return made if self.multiple_results else made[0]
            parts = [function(self, *(x[place] for x in xs)) for place in np.ndindex(*leading)]
            if not self.multiple_results:
                return np.stack(parts).reshape(*leading, *parts[0].shape)
            return [np.stack(column).reshape(*leading, *column[0].shape)
                    for column in zip(*parts)]

        return stacked

    return decorate
