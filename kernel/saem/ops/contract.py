"""How are axes of two arrays multiplied and summed away?

``dot_general`` is every matrix product: *contracting* axes are summed, *batch* axes run side by
side, the others stay.  It is bilinear, so its derivative and its transposes are products again.

Read before: ``ops.linear``.  Read after: ``saem.numpy`` (matmul, einsum, tensordot).
Invariant: output axes are the batch axes, then the free axes of lhs, then those of rhs, each in
their own order.
Source: StableHLO specification, dot_general.
"""

from __future__ import annotations

import enum
import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import config, dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.axes import batch_entry
from saem.core.primitive import Primitive, UndefinedPrimal, equal_one, primitive, remembered
from saem.core.sharded import like_type, with_entry
from saem.core.trace import bind
from saem.ops import sharding_rules, sum_rules
from saem.ops.convert import convert_element_type
from saem.ops.dot_algorithms import DotAlgorithm, DotAlgorithmPreset, check_platform
from saem.ops.linear import add_cotangents, inverse_order, permute, shift_axes
from saem.placement.shardings import requested_sharding
from saem.typing import Array, ArrayLike, DTypeLike

Axes = tuple[int, ...]
DimensionNumbers = tuple[tuple[Axes, Axes], tuple[Axes, Axes]]


class Precision(enum.Enum):
    """How exactly a backend must multiply; XLA on CPU is always exact.

    ``Precision("float32")`` is the member that a name means where a precision is taken, None the
    default one.

    >>> lax.dot(jnp.ones(2), jnp.ones(2), precision=lax.Precision.HIGHEST)
    Array(2., dtype=float32)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        return cls.DEFAULT if value is None else _PRECISION_NAMES.get(value)  # type: ignore[call-overload]

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


_PRECISION_NAMES = {
    "highest": Precision.HIGHEST, "float32": Precision.HIGHEST, "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH, "tensorfloat32": Precision.HIGH, "default": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT, "fastest": Precision.DEFAULT,
}


def canonicalize_precision(precision: Any) -> Any:
    """Return ``precision`` as None, a pair of ``Precision``, or an algorithm.

    None means the setting ``default_matmul_precision``.

    Raises: ValueError for anything else.
    """
    if precision is None:
        precision = config.default_matmul_precision.value
        if precision is None:
            return None
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    found = [p if isinstance(p, Precision) else
             _PRECISION_NAMES.get(p) if isinstance(p, str) else None for p in pair]
    if len(found) == 2 and None not in found:
        return tuple(found)
    raise errors.explained(
        errors.ArgumentError, "dot_general.precision",
        f"Precision argument must be one of:\n- None,\n- a string in {sorted(_PRECISION_NAMES)},\n"
        "- a lax.Precision value,\n- a tuple of two lax.Precision values or strings,\n"
        f"- a lax.DotAlgorithm, a lax.DotAlgorithmPreset or the name of one;\nbut got {precision}.",
        advice="On CPU every precision is exact; leave it out.")


# What ``precision`` and ``dimension_numbers`` may be.
PrecisionLike = (str | Precision | tuple[str, str] | tuple[Precision, Precision]
                 | DotAlgorithm | DotAlgorithmPreset | None)
DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]],
                            tuple[Sequence[int], Sequence[int]]]


@primitive("dot_general")
class DotGeneral(Primitive):
    """Multiply, summing contracting axes, side by side over batch axes.

    ``dimension_numbers`` is ((lhs contracting, rhs contracting), (lhs batch, rhs batch)).
    """

    dimension_numbers: DimensionNumbers
    precision: Any = None
    preferred_element_type: Any = None
    out_sharding: Any = None

    folds_many = True
    bilinear = True
    is_product = True
    shard_results = sharding_rules.dot_general
    sum_results = sum_rules.dot_general
    handed_on = ("precision",)
    requested_sharding = property(operator.attrgetter("out_sharding"))

    def printed_params(self):
        shown = {"dimension_numbers": tuple(
            tuple(list(axes) for axes in pair) for pair in self.dimension_numbers)}
        if self.precision is not None:
            shown["precision"] = self.precision
        if self.preferred_element_type is not None:
            shown["preferred_element_type"] = np.dtype(self.preferred_element_type).name
        return shown

    @remembered
    def typing(self, x, y):
        check_dimensions(self.dimension_numbers, x, y)
        batch, left, right = self.axes(x.ndim, y.ndim)
        shape = (*(x.shape[a] for a in (*batch, *left)), *(y.shape[a] for a in right))
        for aval in (x, y):
            if dtypes.scalar_kind(aval.dtype) in ("extended", "float0", "other"):
                raise errors.explained(
                    errors.DTypeError, "dot_general.C7",
                    f"dot_general does not accept dtype {aval.dtype.name}.",
                    advice="Multiply numbers.")
        dtype = x.dtype if x.dtype == y.dtype else product_dtype(x.dtype, y.dtype)
        if self.preferred_element_type is not None:
            check_preferred(dtype, np.dtype(self.preferred_element_type))
            dtype = self.preferred_element_type
        return ShapedArray(shape, dtype, x.weak_type and y.weak_type)

    def axes(self, x_ndim: int, y_ndim: int) -> tuple[Axes, Axes, Axes]:
        """Return the batch axes of lhs, the free axes of lhs, and the free axes of rhs."""
        (xc, yc), (xb, yb) = self.dimension_numbers
        return (xb, tuple([a for a in range(x_ndim) if a not in xc and a not in xb]),
                tuple([a for a in range(y_ndim) if a not in yc and a not in yb]))

    def evaluate(self, x, y):
        (xc, yc), (xb, yb) = self.dimension_numbers
        aval = self.typing(ShapedArray(x.shape, x.dtype), ShapedArray(y.shape, y.dtype))
        _, left, right = self.axes(x.ndim, y.ndim)
        wide = np.result_type(*(np.float32 if dtypes.itemsize_bits(d) < 32
                                and dtypes.is_float(d) else d for d in (x.dtype, y.dtype)))
        if not dtypes.is_float(x.dtype) and dtypes.is_integer(aval.dtype):
            wide = aval.dtype
        sizes = [math.prod(a.shape[i] for i in axes)
                 for a, axes in ((x, xb), (x, left), (x, xc), (y, right))]
        n, rows, depth, columns = sizes
        a = np.transpose(x, (*xb, *left, *xc)).astype(wide).reshape(n, rows, depth)
        b = np.transpose(y, (*yb, *yc, *right)).astype(wide).reshape(n, depth, columns)
        out = np.matmul(a, b).reshape(aval.shape)
        same_kind = dtypes.scalar_kind(out.dtype) == dtypes.scalar_kind(aval.dtype)
        return out if same_kind else out.astype(aval.dtype)

    def lower(self, ctx, x, y):
        (xc, yc), (xb, yb) = self.dimension_numbers
        out = ctx.out_avals[0]
        x, y = self.operands(ctx, x, y, out)
        batching = f"batching_dims = {list(xb)} x {list(yb)}, " if xb else ""
        precision, algorithm = self.precision, ""
        made = out
        if self.algorithm is not None:
            check_platform(self.algorithm, ctx.module.platform)
            a, b = ctx.avals[x].dtype, ctx.avals[y].dtype
            algorithm = self.algorithm.attribute(a, b)
            made = out.update(dtype=self.algorithm.result_type(a, b, out.dtype))
        elif narrows(ctx.avals[x].dtype, out.dtype):
            made = out.update(dtype=ctx.avals[x].dtype)
        if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
            precision = None
        names = ", ".join(p.name for p in precision or (Precision.DEFAULT,) * 2)
        result = ctx.emit(
            f"stablehlo.dot_general {x}, {y}, {batching}"
            f"contracting_dims = {list(xc)} x {list(yc)}, "
            f"precision = [{names}]{algorithm}", x, y, out=made)
        return ctx.convert(result, out.dtype)

    @property
    def algorithm(self) -> DotAlgorithm | DotAlgorithmPreset | None:
        """The algorithm that was asked for, None where the backend chooses."""
        asked = self.precision
        if asked is DotAlgorithmPreset.DEFAULT:
            return None
        return asked if isinstance(asked, (DotAlgorithm, DotAlgorithmPreset)) else None

    def operands(self, ctx: Any, x: str, y: str, out: ShapedArray) -> tuple[str, str]:
        """Return the operands in dtypes that XLA multiplies: one, or that of the algorithm."""
        a, b = ctx.avals[x].dtype, ctx.avals[y].dtype
        if self.algorithm is not None:
            left, right = self.algorithm.operand_types(a, b)
            return ctx.convert(x, left), ctx.convert(y, right)
        if a != b and not (is_octet(a) and is_octet(b)):
            asked = self.preferred_element_type
            both = product_dtype(a, b) if asked is None else np.dtype(asked)
            return ctx.convert(x, both), ctx.convert(y, both)
        if dtypes.scalar_kind(a) != dtypes.scalar_kind(out.dtype) and not narrows(a, out.dtype):
            return ctx.convert(x, out.dtype), ctx.convert(y, out.dtype)
        return x, y

    def jvp(self, primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        if self.preferred_element_type is not None and not dtypes.is_inexact(
                np.dtype(self.preferred_element_type)):
            return bind(self, x, y), None  # whole numbers do not vary
        from_x = None if tx is None else bind(self, tx, y)
        from_y = None if ty is None else bind(self, x, ty)
        return bind(self, x, y), add_cotangents(from_x, from_y)

    def transpose(self, ct, x, y):
        if isinstance(x, UndefinedPrimal):
            return [self.pull_left(ct, x, y), None]
        return [None, self.pull_right(ct, x, y)]

    def pull_left(self, ct: Any, x: UndefinedPrimal, y: Any) -> Any:
        """Return the cotangent of lhs: ct times rhs, summed over the free axes of rhs."""
        (xc, yc), (xb, yb) = self.dimension_numbers
        y_ndim = len(aval_of(y).shape)
        _, left, right = self.axes(x.ndim, y_ndim)
        first = len(xb) + len(left)
        numbers = ((tuple(range(first, first + len(right))), right),
                   (tuple(range(len(xb))), yb))
        # Last axes of the product are the contracting axes of rhs, in the order they have there.
        contracted = tuple([xc[i] for i in inverse_order(yc)])
        places = (*xb, *left, *contracted)
        return self.cotangent(numbers, places, x.aval, ct, y)

    def pull_right(self, ct: Any, x: Any, y: UndefinedPrimal) -> Any:
        """Return the cotangent of rhs: ct times lhs, summed over the free axes of lhs."""
        (xc, yc), (xb, yb) = self.dimension_numbers
        _, left, right = self.axes(len(aval_of(x).shape), y.ndim)
        numbers = ((tuple(range(len(xb), len(xb) + len(left))), left),
                   (tuple(range(len(xb))), xb))
        contracted = tuple([yc[i] for i in inverse_order(xc)])
        places = (*yb, *right, *contracted)
        return self.cotangent(numbers, places, y.aval, ct, x)

    def cotangent(self, numbers: DimensionNumbers, places: Axes, aval: ShapedArray, ct: Any,
                  other: Any) -> Any:
        """Return the cotangent of an operand of ``aval``: the product of ``ct`` and ``other``.

        Axis i of the product by ``numbers`` is axis ``places[i]`` of the operand.
        """
        sharding = like_type(aval.to_ct_aval(), aval_of(ct), aval_of(other))
        if sharding is not None:
            entries = sharding.spec.partitions
            sharding = sharding.update(
                spec=sharding.spec.update(partitions=[entries[p] for p in places]))
        return as_operand(bind(self.with_numbers(numbers, sharding), ct, other), places, aval)

    def with_numbers(self, numbers: DimensionNumbers, out_sharding: Any = None) -> DotGeneral:
        return equal_one(DotGeneral, numbers, self.precision, self.preferred_element_type,
                         out_sharding)

    def stacked(self, numbers: DimensionNumbers, place: int) -> DotGeneral:
        """Return the product whose result has a batch axis at ``place``."""
        return self.with_numbers(numbers, with_entry(self.out_sharding, place, batch_entry()))

    def batch(self, size, xs, dims):
        (x, y), (dx, dy) = xs, dims
        (xc, yc), (xb, yb) = self.dimension_numbers
        if dx is not None and dy is not None:
            numbers = ((shift_axes(xc, dx), shift_axes(yc, dy)),
                       ((dx, *shift_axes(xb, dx)), (dy, *shift_axes(yb, dy))))
            return bind(self.stacked(numbers, 0), x, y), 0
        # A stack of one operand has one more free axis, which stays where it stands among them.
        if dx is not None:
            numbers = ((shift_axes(xc, dx), yc), (shift_axes(xb, dx), yb))
            _, left, _ = self.with_numbers(numbers).axes(
                len(aval_of(x).shape), len(aval_of(y).shape))
            place = len(xb) + left.index(dx)
            return bind(self.stacked(numbers, place), x, y), place
        numbers = ((xc, shift_axes(yc, dy)), (xb, shift_axes(yb, dy)))
        _, left, right = self.with_numbers(numbers).axes(
            len(aval_of(x).shape), len(aval_of(y).shape))
        place = len(xb) + len(left) + right.index(dy)
        return bind(self.stacked(numbers, place), x, y), place


def is_octet(dtype: np.dtype) -> bool:
    """Return whether ``dtype`` is a float of 8 bits; XLA multiplies any two of those."""
    return dtypes.is_float(dtype) and dtype.itemsize == 1 and dtypes.itemsize_bits(dtype) == 8


@functools.cache
def product_dtype(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the dtype of products of two dtypes: that of the two which holds larger numbers.

    A complex one holds more than a floating one, and that more than an integer.  It is one of the
    two, where numbers added are promoted.  Raises: DTypeError if neither holds more.
    """
    def reach(dtype: np.dtype) -> tuple:
        kind = dtypes.scalar_kind(dtype)
        if kind == "float":
            return 2, float(dtypes.finfo(dtype).max)
        if kind in ("int", "uint"):
            return 1, dtypes.itemsize_bits(dtype), kind == "int"
        return (3, dtype.itemsize) if kind == "complex" else (0,)

    if a != b and reach(a) == reach(b):
        raise errors.explained(
            errors.DTypeError, "dot_general.C11",
            f"lax.dot_general argument type error: {a.name}, {b.name}",
            advice="Convert one to the dtype of the other first.")
    return max(a, b, key=reach)


def narrows(dtype: np.dtype, out: np.dtype) -> bool:
    """Return whether a product is computed in ``dtype`` first, and only its sums converted.

    So are the real part of a complex product and the whole part of a floating one.
    """
    return (dtypes.is_complex(dtype) and not dtypes.is_complex(out)) or (
        dtypes.is_float(dtype) and not dtypes.is_inexact(out))


def check_preferred(dtype: np.dtype, preferred: np.dtype) -> None:
    """Refuse ``preferred`` where its numbers have fewer bits than products of ``dtype``."""
    def bits(d: np.dtype) -> int:  # of a real number
        whole = 1 if dtypes.is_bool(d) else dtypes.itemsize_bits(d)
        return whole // 2 if dtypes.is_complex(d) else whole

    if not dtypes.is_float(dtype) and bits(preferred) < bits(dtype):
        raise errors.explained(
            errors.ArgumentTypeError, "dot_general.C10",
            "`preferred_element_type` must not be narrower than the original type, got "
            f"preferred_element_type of {preferred.name} for result type of {dtype.name}.",
            advice="Convert the result.")


def as_operand(product: Any, places: Axes, aval: ShapedArray) -> Any:
    """Return ``product``, whose axis i belongs at ``places[i]``, as a value of ``aval``."""
    out = permute(product, inverse_order(places))
    return out if aval_of(out).dtype == aval.dtype else convert_element_type(out, aval.dtype)


def check_dimensions(numbers: DimensionNumbers, x: ShapedArray, y: ShapedArray) -> None:
    """Refuse dimension numbers that do not fit operands of avals ``x`` and ``y``."""
    (xc, yc), (xb, yb) = numbers

    def refuse(number: int, sentence: str) -> None:
        raise errors.explained(
            errors.ShapeError, f"dot_general.C{number}", f"dot_general requires {sentence}.",
            advice=f"The operands are {x.str_short(True)} and {y.str_short(True)}. For a product "
            "the inner sizes must agree: (n, k) @ (k, m); transpose one if they are the other way.")

    for side, aval, contract, batch in (("lhs", x, xc, xb), ("rhs", y, yc, yb)):
        if not all(0 <= d < aval.ndim for d in (*contract, *batch)):
            refuse(1, f"{side} dimension numbers to be nonnegative and less than the number of "
                   f"axes of the {side} value, "
                   f"got {side}_batch of {batch} and {side}_contracting of "
                   f"{contract} for {side} of rank {aval.ndim}")
        for kind, axes in (("batch", batch), ("contracting", contract)):
            if len(set(axes)) != len(axes):
                refuse(2, f"{side} {kind} dimensions to be distinct, got {side}_{kind} {axes}")
        if set(contract) & set(batch):
            refuse(3, f"{side} batch dimensions to be disjoint from contracting dimensions, got "
                   f"{side}_batch {batch} and {side}_contracting {contract}")
    for number, kind, a, b in ((4, "batch", xb, yb), (5, "contracting", xc, yc)):
        left, right = tuple(x.shape[d] for d in a), tuple(y.shape[d] for d in b)
        if kind == "batch" and len(a) != len(b):
            refuse(number, "equal numbers of lhs_batch and rhs_batch dimensions, got lhs_batch "
                   f"{a} and rhs_batch {b}")
        if left != right:
            lead = f"lhs {kind} dimensions and rhs {kind} dimensions" if kind == "batch" \
                else f"{kind} dimensions"
            refuse(number, f"{lead} to have the same shape, got {left} and {right}")


def dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: Any, precision: Any = None,
                preferred_element_type: DTypeLike | None = None, *,
                out_sharding: Any = None) -> Array:
    """Return the general product: batch axes, then free axes of lhs, then of rhs.

    ``dimension_numbers`` is ((lhs contracting, rhs contracting), (lhs batch, rhs batch)).

    Raises: TypeError where the axes do not fit.  Source: StableHLO, dot_general.

    >>> lax.dot_general(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4)), (((2,), (1,)), ((0,), (0,
    ...     )))).shape
    (5, 2, 4)
    """
    contracting, batch_axes = dimension_numbers
    numbers = tuple([tuple([tuple(map(int, axes)) for axes in pair])
                     for pair in (contracting, batch_axes)])
    preferred = None if preferred_element_type is None else dtypes.canonicalize(
        preferred_element_type, explicit=True, where="dot")
    prim = equal_one(DotGeneral, numbers, canonicalize_precision(precision), preferred, None)
    if out_sharding is not None:
        rank = sum(map(len, prim.axes(aval_of(lhs).ndim, aval_of(rhs).ndim)))
        prim = prim.with_numbers(numbers, requested_sharding(out_sharding, rank, "dot_general"))
    return bind(prim, lhs, rhs)


def dot(lhs: ArrayLike, rhs: ArrayLike, *, dimension_numbers: Any = None, precision: Any = None,
        preferred_element_type: DTypeLike | None = None, out_sharding: Any = None) -> Array:
    """Return the product of vectors and matrices; with ``dimension_numbers``, the general one.

    Raises: ValueError for other ranks or unequal inner sizes.

    >>> lax.dot(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    x, y = aval_of(lhs), aval_of(rhs)
    if dimension_numbers is None:
        if not (1 <= x.ndim <= 2 and 1 <= y.ndim <= 2 and x.shape[-1] == y.shape[0]):
            raise errors.explained(
                errors.ShapeError, "dot.C1",
                "jax.lax.dot: dimension_numbers must be specified when not performing simple "
                "un-batched matrix-matrix, matrix-vector, or vector-vector products; got "
                f"lhs_shape={x.shape} rhs_shape={y.shape}",
                advice="The last axis of lhs and the first of rhs must have one size.")
        dimension_numbers = (((x.ndim - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type,
                       out_sharding=out_sharding)


def batch_matmul(lhs: Array, rhs: Array, precision: Any = None) -> Array:
    """Return matrix products side by side: (…, n, k) times (…, k, m) is (…, n, m).

    Raises: ValueError if ranks differ or are below 2.

    >>> lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    n, m = aval_of(lhs).ndim, aval_of(rhs).ndim
    if n != m or n < 2:
        raise errors.explained(
            errors.ArgumentError, "batch_matmul.C1",
            f"Arguments to batch_matmul must have same ndim, got {n}, {m}" if n != m else
            f"Arguments to batch_matmul must be at least 2D, got {n}, {m}",
            advice="jnp.matmul broadcasts leading axes.")
    batch: Sequence[int] = tuple(range(n - 2))
    return dot_general(lhs, rhs, (((n - 1,), (n - 2,)), (batch, batch)), precision)
