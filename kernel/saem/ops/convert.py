"""How does a value change its dtype, its bits' meaning or its precision?

``convert_element_type`` keeps the number as well as the new dtype can; ``bitcast_convert_type``
keeps the bits; ``reduce_precision`` keeps the dtype and drops bits of the number.

Read before: ``ops.families``.  Read after: ``ops.maths``.
Invariant: converting saturates: a float too large for an integer becomes the largest, NaN 0.
Source: StableHLO specification: convert, bitcast_convert, reduce_precision.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from saem.compile.dispatch import put
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of, kept
from saem.core.dimensions import Size, is_static
from saem.core.dtypes import PYTHON_NUMBERS, ExtendedDType
from saem.core.primitive import NOT_LINEAR, Primitive, primitive
from saem.core.trace import bind, eval_trace, state
from saem.ops import sharding_rules, sum_rules
from saem.ops.extended import convert_extended
from saem.ops.families import Unary, check_example
from saem.ops.linear import Linear, moveaxis, unchanged
from saem.typing import Array, ArrayLike, DTypeLike


def cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return ``x`` converted to ``dtype`` as XLA converts.

    Floats out of an integer's range give its nearest limit, NaN gives 0; complex numbers keep their
    real part; what is not 0 is True.
    """
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(dtype):
        x = x.real
    if dtypes.is_bool(dtype):
        return x != 0
    with np.errstate(all="ignore"):
        if dtypes.is_float(x.dtype) and dtypes.is_integer(dtype):
            info, wide = dtypes.iinfo(dtype), np.trunc(np.nan_to_num(
                x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
            low, high = int(info.min), int(info.max)
            inside = np.where((wide > low) & (wide < high), wide, 0).astype(dtype)
            out = np.where(wide >= high, np.asarray(high).astype(dtype), inside)
            return np.where(wide <= low, np.asarray(low).astype(dtype), out)
        return x.astype(dtype)


@primitive("convert_element_type")
class ConvertElementType(Primitive):
    """The same numbers in another dtype."""

    new_dtype: Any
    weak_type: bool = False
    sharding: Any = None

    passes_nan = True
    linear = True
    shard_results = sharding_rules.elementwise
    sum_results = sum_rules.unchanged
    requested_sharding = property(operator.attrgetter("sharding"))

    def printed_params(self):
        return {"new_dtype": self.new_dtype, "weak_type": self.weak_type}

    def typing(self, x):
        if dtypes.is_extended(x.dtype) or dtypes.is_extended(self.new_dtype):
            raise errors.explained(
                errors.ArgumentError, "convert_element_type.C1",
                f"Cannot convert_element_type from {x.dtype.name} to {self.new_dtype.name}: "
                "extended dtypes hold no numbers.",
                advice="For PRNG keys, use random.key_data and random.wrap_key_data.")
        return ShapedArray(x.shape, self.new_dtype, self.weak_type)

    def evaluate(self, x):
        return cast(x, self.new_dtype)

    def lower(self, ctx, x):
        aval = ctx.in_avals[0]
        if dtypes.is_complex(aval.dtype) and not dtypes.is_complex(self.new_dtype):
            aval = ShapedArray(aval.shape, dtypes.real_dtype(aval.dtype))
            x = ctx.emit(f"stablehlo.real {x}", x, out=aval)
        if dtypes.is_bool(self.new_dtype) and not dtypes.is_bool(aval.dtype):
            return ctx.compare("NE", x, ctx.constant(0, aval))
        return ctx.convert(x, self.new_dtype)

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        moves = t is not None and dtypes.is_inexact(self.new_dtype)
        return bind(self, x), bind(self, t) if moves else None

    def transpose(self, ct, x):
        return [convert(ct, x.dtype, x.aval.weak_type)]

    def batch(self, size, xs, dims):
        return bind(self, xs[0]), dims[0]


@primitive("bitcast_convert_type")
class BitcastConvertType(Primitive):
    """The same bits in another dtype; a last axis appears or goes where the widths differ."""

    new_dtype: Any

    passes_nan = True
    shard_results = sharding_rules.bitcast

    def typing(self, x):
        new, old = self.new_dtype, x.dtype
        if old == new:
            return x.strip_weak_type()
        narrow, wide = dtypes.itemsize_bits(new), dtypes.itemsize_bits(old)
        if narrow > wide and (not x.shape or x.shape[-1] * wide != narrow):
            last = x.shape[-1] if x.shape else 1
            raise errors.explained(
                errors.ArgumentError, "bitcast_convert_type.C2",
                f"Attempting to convert array of shape {x.shape} from {old.name} of size {wide} "
                f"bits to {new.name} of size {narrow} bits, but {last} * {wide} != {narrow}.",
                advice=f"The last axis must have size {narrow // wide}: it is folded into one.")
        if any(dtypes.scalar_kind(d) not in ("int", "uint", "float") for d in (old, new)):
            raise errors.explained(
                errors.DTypeError, "bitcast_convert_type.C1",
                "lax.bitcast_convert_type does not support bool or complex values unless the "
                f"operand and destination types match. Got operand dtype={old}, new_dtype={new}.",
                advice="Use the arr.view() method instead.")
        if narrow <= wide:
            return ShapedArray(x.shape if narrow == wide else (*x.shape, wide // narrow), new)
        return ShapedArray(x.shape[:-1], new)

    def evaluate(self, x):
        shape = self.typing(ShapedArray(x.shape, x.dtype)).shape
        return np.ascontiguousarray(x).reshape(-1).view(self.new_dtype).reshape(shape)

    def lower(self, ctx, x):
        return ctx.emit(f"stablehlo.bitcast_convert {x}", x)

    def jvp(self, primals, tangents):
        return bind(self, *primals), None

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        check_example(self, xs, dims)
        return bind(self, moveaxis(xs[0], dims[0], 0)), 0


@primitive("reduce_precision")
class ReducePrecision(Linear):
    """Round as a float of fewer bits would; what is too small becomes 0, too large infinity."""

    exponent_bits: int
    mantissa_bits: int

    passes_nan = True
    shard_results = sharding_rules.elementwise
    sum_results = sum_rules.unchanged

    @property
    def quick_code(self) -> bool:
        """Of a NaN without mantissa the older generator makes an infinity."""
        return self.mantissa_bits > 0

    def typing(self, x):
        if self.exponent_bits < 1 or self.mantissa_bits < 0:
            name, value, need = (
                ("exponent_bits", self.exponent_bits, "positive") if self.exponent_bits < 1
                else ("mantissa_bits", self.mantissa_bits, "non-negative"))
            raise errors.explained(
                errors.ArgumentError, "reduce_precision.C1",
                f"reduce_precision: {name} must be {need}; got {value}.",
                advice="float16 is exponent_bits=5, mantissa_bits=10.")
        if not dtypes.is_float(x.dtype):
            raise errors.explained(
                errors.DTypeError, "reduce_precision.C3",
                f"reduce_precision does not accept dtype {x.dtype.name}. "
                "Accepted dtypes are subtypes of floating.",
                advice="Convert the operand first.")
        return x

    def evaluate(self, x):
        info = dtypes.finfo(x.dtype)
        kind = np.dtype(f"u{x.dtype.itemsize}")
        sign = kind.type(1 << (info.bits - 1))
        bits = np.asarray(x).view(kind)
        magnitude = bits & ~sign
        drop = info.nmant - self.mantissa_bits
        if drop > 0:
            odd = (magnitude >> kind.type(drop)) & kind.type(1)
            magnitude = magnitude + odd + kind.type((1 << (drop - 1)) - 1)
            magnitude &= ~kind.type((1 << drop) - 1)
        bias, small = (1 << (info.bits - info.nmant - 2)) - 1, (1 << (self.exponent_bits - 1)) - 1
        if small < bias:
            exponent = (magnitude >> kind.type(info.nmant)).astype(np.int64)
            infinity = kind.type(((1 << (info.bits - info.nmant - 1)) - 1) << info.nmant)
            magnitude = np.where(exponent > bias + small, infinity, magnitude)
            magnitude = np.where(exponent <= bias - small, kind.type(0), magnitude)
        return np.where(np.isnan(x), x, np.asarray(magnitude | (bits & sign)).view(x.dtype))

    def lower(self, ctx, x):
        return ctx.emit(
            f'"stablehlo.reduce_precision"({x}) <{{exponent_bits = {self.exponent_bits} : i32, '
            f"mantissa_bits = {self.mantissa_bits} : i32}}>", x)

    def transpose(self, ct, x):
        return [bind(self, ct)]

    def batch(self, size, xs, dims):
        return bind(self, xs[0]), dims[0]


@primitive("copy")
class Copy(Unary):
    """The same value in memory of its own."""

    passes_nan = True
    shard_results = sharding_rules.unchanged
    sum_results = sum_rules.unchanged

    def evaluate(self, x):
        return np.array(x)

    def lower(self, ctx, x):
        return x

    def tangent(self, t, x, out):
        return copy(t)

    def transpose(self, ct, x):
        return [copy(ct)]


def weak_scalar(number: Any, dtype: Any) -> Any:
    """Return a Python or NumPy number as a weak scalar of ``dtype``, cast as arrays are.

    It is a Python number, if that has this dtype in programs: a float with all of its digits, which
    a jaxpr prints.  Else ``enable_x64`` was changed after the array was made beside which it is
    used.
    """
    if type(number) in (float, complex) and aval_of(number).dtype == dtype:
        return number
    number = cast(np.asarray(number), dtype)[()].item()
    return number if aval_of(number).dtype == dtype else convert(number, dtype, True)


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """Return ``x`` as ``dtype`` with the given weakness; ``x`` itself if it is so already.

    A number known in Python is converted there, so it stays a literal of the program.
    """
    aval = aval_of(x)
    if type(x) in PYTHON_NUMBERS and not weak_type \
            and not isinstance(dtype, ExtendedDType):
        number = cast(np.asarray(x), dtype)
        return put(kept(number[()])) if state.trace is eval_trace else kept(number[()])
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x
    if isinstance(dtype, ExtendedDType) or isinstance(aval.dtype, ExtendedDType):
        return convert_extended(x, dtype)
    return bind(ConvertElementType(dtype, weak_type), x)


def convert_element_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """Return ``operand`` as ``new_dtype``; a complex number loses its imaginary part.

    Shapes: any.  Raises: DTypeError for extended dtypes; ArgumentError for None.
    Source: StableHLO specification, convert.
    """
    if new_dtype is None:
        raise errors.explained(
            errors.ArgumentError, "convert_element_type.C2", "dtype must be specified.",
            advice="Pass a dtype such as jnp.float32.")
    if not isinstance(new_dtype, ExtendedDType):
        new_dtype = dtypes.canonicalize(new_dtype, explicit=True, where="convert_element_type")
    if type(operand) in (int, complex):
        operand = _known_number(operand, new_dtype)
    elif hasattr(type(operand), "__jax_array__"):
        operand = operand.__jax_array__()
    if isinstance(operand, (np.ndarray, np.generic)) and operand.dtype.kind in "iu" \
            and operand.dtype.itemsize == 8 and isinstance(new_dtype, np.dtype):
        operand = cast(np.asarray(operand), new_dtype)  # before its high bits are lost
    if dtypes.is_complex(aval_of(operand).dtype):
        warn_of_imaginary_part(new_dtype, stacklevel=3)
    return unchanged(convert(operand, new_dtype))


def holds(dtype: np.dtype, n: Size) -> bool:
    """Whether the integers of ``dtype`` reach up to ``n``.

    Those of 32 bits are taken to hold any size, and a dtype of other numbers is not judged.
    """
    return dtypes.itemsize_bits(dtype) >= 32 or not dtypes.is_integer(dtype) or (
        is_static((n,)) and dtypes.iinfo(dtype).max >= n)


def holding(index: Any, n: Size) -> Any:
    """Return the integers ``index`` in a dtype that holds ``n``: int32 where theirs does not.

    Places along an axis of 300 wrap around, count from the end and are clamped by numbers that
    int8 lacks.
    """
    return index if holds(aval_of(index).dtype, n) else convert_element_type(index, np.int32)


def warn_of_imaginary_part(dtype: Any, stacklevel: int = 4) -> None:
    """Warn, as NumPy does, unless complex numbers that become ``dtype`` stay complex."""
    if not (dtypes.is_complex(dtype) or dtypes.is_extended(dtype)):
        warnings.warn("Casting complex values to real discards the imaginary part",
                      np.exceptions.ComplexWarning, stacklevel=stacklevel)


def _known_number(value: Any, dtype: Any) -> Any:
    """Return a Python number as what is converted to ``dtype``: a large integer keeps its low bits.

    Raises: TypeError for a complex number that is to be real; OverflowError beyond 64 bits.
    """
    if type(value) is complex:
        if dtypes.is_bool(dtype):
            return value != 0
        if dtypes.scalar_kind(dtype) in ("float", "int", "uint"):
            raise errors.explained(
                errors.DTypeError, "convert_element_type.C3",
                f"the Python number {value} is complex and cannot be converted to {dtype.name}.",
                advice="Convert its real part: (...).real.")
        return value
    if -1 << 31 <= value < 1 << 31:
        return value
    wide = np.int64(value)
    return wide.astype(dtype) if dtypes.scalar_kind(dtype) in ("int", "uint") else float(wide)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Return the bits of ``operand`` read as ``new_dtype``.

    Shapes: to a narrower dtype a last axis is added; to a wider one the last axis is folded.
    Raises: ShapeError, DTypeError.  Source: StableHLO specification, bitcast_convert.

    >>> lax.bitcast_convert_type(jnp.float32(1), jnp.int32)
    Array(1065353216, dtype=int32)
    """
    return bind(BitcastConvertType(dtypes.canonicalize(
        new_dtype, explicit=True, where="bitcast_convert_type")), operand)


def reduce_precision(operand: float | ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Return ``operand`` rounded to a float of the given bits, in its own dtype.

    Raises: ArgumentError, DTypeError.  Source: StableHLO specification, reduce_precision.

    >>> lax.reduce_precision(jnp.array([1.2345678]), exponent_bits=8, mantissa_bits=7)
    Array([1.234375], dtype=float32)
    """
    bits = operator.index(exponent_bits), operator.index(mantissa_bits)
    return bind(ReducePrecision(*bits), operand)


def copy(x: Any) -> Any:
    """Return ``x`` in memory of its own.  Shapes: any."""
    return bind(Copy(), x)
