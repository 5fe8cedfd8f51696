"""What kinds of numbers can an array hold, and how wide are they here?

NumPy's dtypes, the narrow ones of ``ml_dtypes`` (bfloat16, float8…, int4…), ``float0`` (the
tangent of what has no derivative) and *extended* dtypes such as PRNG keys.  Unless ``enable_x64``
is on, 64-bit dtypes become their 32-bit counterparts: ``canonicalize``.

Read before: ``core.config``.  Read after: ``core.promotion``, ``core.avals``.
Invariant: every dtype inside the engine is a ``numpy.dtype`` or an ``ExtendedDType``, canonical
for the ``enable_x64`` under which it entered (tests/kernel/test_dtypes.py).
"""

from __future__ import annotations

import functools
import math
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from saem.core.config import enable_x64, explicit_x64_dtypes

finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo
bfloat16 = ml_dtypes.bfloat16

float0 = np.dtype([("float0", np.void, 0)])

NARROW_FLOATS = tuple(
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        "bfloat16", "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
        "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    )
)  # fmt: skip
NARROW_SIGNED = tuple(np.dtype(getattr(ml_dtypes, name)) for name in ("int1", "int2", "int4"))
NARROW_UNSIGNED = tuple(np.dtype(getattr(ml_dtypes, name)) for name in ("uint1", "uint2", "uint4"))
_NARROW_BASE = {
    **dict.fromkeys(NARROW_FLOATS, np.floating),
    **dict.fromkeys(NARROW_SIGNED, np.signedinteger),
    **dict.fromkeys(NARROW_UNSIGNED, np.unsignedinteger),
}

_STANDARD = tuple(
    np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "complex64", "complex128",
    )
)  # fmt: skip
ARRAY_DTYPES = frozenset((*_STANDARD, *_NARROW_BASE, float0))

TO_32_BITS: dict[Any, np.dtype] = {
    np.dtype("int64"): np.dtype("int32"),
    np.dtype("uint64"): np.dtype("uint32"),
    np.dtype("float64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("complex64"),
}
PYTHON_SCALARS = {
    bool: np.dtype("bool"),
    int: np.dtype("int64"),
    float: np.dtype("float64"),
    complex: np.dtype("complex128"),
}
PYTHON_NUMBERS: tuple[Any, ...] = tuple(PYTHON_SCALARS)
# The types of numbers that no device holds.
HOST_NUMBERS: tuple[Any, ...] = (*PYTHON_NUMBERS, np.generic, np.ndarray)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class extended(np.generic):
    """The scalar type above all extended dtypes; it has no instances."""


class prng_key(extended):
    """The scalar type of typed PRNG keys; it has no instances."""


extended.__module__ = prng_key.__module__ = "saem.dtypes"


class ExtendedDType:
    """A dtype NumPy cannot describe: its elements are themselves small arrays, as a PRNG key is.

    A subclass gives ``type`` (a subclass of ``extended``), ``name`` (printed as NumPy's would be,
    ``key<fry>``) and the rest below.  For the dtype of a program the rest follows from ``_rules``,
    an object of functions of the dtype: ``physical_element_aval`` (the type that holds an element),
    ``tangent_dtype``, ``convert_to``, ``convert_from``, ``zero``, ``add`` and ``full``.
    Equal ones must have equal hashes.

    It is not an abc.ABC: ``isinstance`` on it is on the path of every operation.
    """

    type: type
    name: str
    _rules: Any = None
    # The value that an array holds, and the operation that adds two tangents of an aval.  Set by
    # ``_wiring``, since types come before arrays and operations.
    wrap: Any
    addition: Any

    @property
    def physical(self) -> tuple[tuple[int, ...], np.dtype]:
        """How one element is held: the trailing shape and the NumPy dtype."""
        aval = self._rules.physical_element_aval(self)
        return aval.shape, aval.dtype

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        trailing, dtype = self.physical
        return math.prod(trailing) * dtype.itemsize

    @property
    def tangent(self) -> DType:
        """The dtype of derivatives with respect to values of this one; without rules, none."""
        return float0 if self._rules is None else self._rules.tangent_dtype(self)

    def held(self, value: Any) -> Any:
        """Return the array that holds ``value``."""
        return value._base

    def filled(self, shape: Sequence[int], value: Any) -> Any:
        """Return a value of ``shape`` that is ``value``, a number, throughout."""
        return self._rules.full(tuple(shape), value, self)

    def zero(self) -> Any:
        """Return the scalar that changes nothing when it is added."""
        return self._rules.zero(self)

    def takes(self, other: DType, back: bool = False) -> bool:
        """Return whether values of ``other`` may become values of this dtype, or these those."""
        if back and hasattr(self._rules, "convert_from"):
            return self._rules.convert_from(self, other)
        if not back and hasattr(self._rules, "convert_to"):
            return self._rules.convert_to(other, self)
        return getattr(self._rules, "allow_conversion", False)

    @property
    def _short_name(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


class primal_tangent_dtype_scalar(extended):
    """The scalar type of dtypes made by ``primal_tangent_dtype``; it has no instances."""


class PrimalTangentDType(ExtendedDType):
    """Numbers of one dtype whose derivatives have another."""

    type = primal_tangent_dtype_scalar

    def __init__(self, primal_dtype: np.dtype, tangent_dtype: np.dtype, name: str):
        self.primal_dtype = primal_dtype
        self.tangent_dtype = tangent_dtype
        self.name = name

    physical = property(lambda self: ((), self.primal_dtype))
    tangent = property(lambda self: self.tangent_dtype)

    def takes(self, other: DType, back: bool = False) -> bool:
        """Return True: whether ``other`` is the dtype that holds the numbers is checked later."""
        return True

    def filled(self, shape: Sequence[int], value: Any) -> Any:
        raise TypeError(f"{self.name} has no number of its own. Try: lax.convert_element_type("
                        f"jnp.full({tuple(shape)}, {value}, {self.primal_dtype.name!r}), dtype)")

    def _key(self) -> tuple:
        return self.primal_dtype, self.tangent_dtype, self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrimalTangentDType) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def primal_tangent_dtype(primal_dtype: Any, tangent_dtype: Any, name: str | None = None
                         ) -> ExtendedDType:
    """Return the dtype of numbers of ``primal_dtype`` whose derivatives have ``tangent_dtype``.

    ``lax.convert_element_type`` converts to and from ``primal_dtype``.  So a function with a
    derivative of its own (``custom_vjp``) may give floating gradients to integers.

    Raises: TypeError for extended dtypes.
    """
    primal, tangent = (canonicalize(as_dtype(d)) for d in (primal_dtype, tangent_dtype))
    if isinstance(primal, ExtendedDType) or isinstance(tangent, ExtendedDType):
        raise TypeError(f"primal_tangent_dtype needs NumPy dtypes, got {primal}, {tangent}")
    shown = f"PrimalTangentDType{{{short_name(primal)}/{short_name(tangent)}}}"
    return PrimalTangentDType(primal, tangent, shown if name is None else name)


DType = np.dtype | ExtendedDType


def as_dtype(dtype: Any) -> DType:
    """Return ``dtype`` (a name, a scalar type, a dtype) as a dtype, not yet canonical.

    Raises: TypeError for what names no dtype.
    """
    if isinstance(dtype, (np.dtype, ExtendedDType)):
        return dtype
    if isinstance(dtype, str):
        return _named_dtype(dtype)
    if isinstance(dtype, type) and dtype in PYTHON_SCALARS:
        return PYTHON_SCALARS[dtype]
    return np.dtype(dtype)


@functools.cache
def _named_dtype(name: str) -> np.dtype:
    return np.dtype(name)


def is_foreign(dtype: DType) -> bool:
    """Return whether ``dtype`` is NumPy's for objects, texts or times, which no array has."""
    return isinstance(dtype, np.dtype) and dtype.kind in "OSUMm"


def canonicalize(dtype: Any, explicit: bool = False, where: str = "") -> DType:
    """Return the dtype the engine holds for ``dtype``: 32-bit unless ``enable_x64``.

    ``explicit``: the user wrote this dtype, so say when it is narrowed; ``where`` names the
    function asked (``zeros``).  A Python type (``float``) asks for no width and is never explicit.

    Raises: TypeError for a non-dtype, and for an explicit one that no array has, as object;
    ValueError where ``explicit_x64_dtypes`` is 'error', and for an explicit one that is an array.
    """
    if explicit and isinstance(dtype, type):
        explicit = dtype not in PYTHON_SCALARS
    elif explicit and hasattr(dtype, "aval"):
        raise ValueError("Passing an array as a dtype argument is no longer supported; instead of "
                         "dtype=arr use dtype=arr.dtype.")
    wanted = as_dtype(dtype)
    narrow = TO_32_BITS.get(wanted)
    if narrow is None or enable_x64.value:
        if explicit and is_foreign(wanted):
            raise TypeError("JAX only supports number, bool, and string dtypes, got dtype "
                            f"{dtype}{where and ' in ' + where}")
        return wanted
    if not explicit:
        return narrow
    mode = explicit_x64_dtypes.value
    if mode == "allow":
        return wanted
    asked = f"requested in {where} " if where else ""
    advice = (
        'To have it, call config.update("jax_enable_x64", True), or set the environment variable '
        "JAX_ENABLE_X64=1 before Python starts."
    )
    if mode == "error":
        raise ValueError(
            f"Explicitly requested dtype {wanted.name} {asked}is not available. {advice}"
        )
    warnings.warn(
        f"Explicitly requested dtype {wanted.name} {asked}is not available, "
        f"and will be truncated to dtype {narrow.name}. {advice}",
        UserWarning,
        stacklevel=depth_of_caller(),
    )
    return narrow


def computed(dtype: DType, weak: bool = False) -> DType:
    """Return the dtype in which functions compute on operands of ``dtype``.

    An array of 64 bits may come to them while ``enable_x64`` is off: one that was requested, where
    that is allowed, or that was made before.  Python numbers, which are weak, have 32 bits then.
    """
    narrow = TO_32_BITS.get(dtype)
    if narrow is None or enable_x64.value or (not weak and explicit_x64_dtypes.value == "allow"):
        return dtype
    return narrow


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> DType:
    """Return ``dtype`` narrowed to 32 bits unless ``enable_x64``.

    Raises: ValueError for an extended dtype unless ``allow_extended_dtype``.

    >>> jax.dtypes.canonicalize_dtype(np.float64)
    dtype('float32')
    """
    if isinstance(dtype, ExtendedDType) and not allow_extended_dtype:
        raise ValueError(
            f"canonicalize_dtype needs a NumPy dtype, got the extended dtype {dtype.name}. "
            "Try: allow_extended_dtype=True"
        )
    return canonicalize(dtype)


def depth_of_caller() -> int:
    """Return the ``stacklevel`` at which a warning points at the first frame outside saem."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, depth = frame.f_back, depth + 1
    return depth


def default_dtype(kind: type) -> np.dtype:
    """Return the canonical dtype of Python's ``bool``, ``int``, ``float`` or ``complex``."""
    wide = PYTHON_SCALARS[kind]
    return wide if enable_x64.value else TO_32_BITS.get(wide, wide)


def to_inexact(dtype: DType) -> DType:
    """Return the floating or complex dtype in which functions of ``dtype`` give results."""
    if is_inexact(dtype):
        return computed(dtype)
    wide = scalar_kind(dtype) in ("int", "uint") and itemsize_bits(dtype) == 64
    return computed(np.dtype("float64")) if wide else np.dtype("float32")


# -- what kind of number ---------------------------------------------------------------------------


@functools.cache
def scalar_kind(dtype: DType) -> str:
    """Return 'bool', 'int', 'uint', 'float', 'complex', 'float0', 'extended' or 'other'."""
    if isinstance(dtype, ExtendedDType):
        return "extended"
    if dtype == float0:
        return "float0"
    base = _NARROW_BASE.get(dtype, dtype.type)
    for parent, kind in (
        (np.bool_, "bool"),
        (np.signedinteger, "int"),
        (np.unsignedinteger, "uint"),
        (np.floating, "float"),
        (np.complexfloating, "complex"),
    ):
        if issubclass(base, parent) and dtype in ARRAY_DTYPES:
            return kind
    return "other"


@functools.cache
def is_float(dtype: DType) -> bool:
    """Return whether ``dtype`` is real floating point (bfloat16 and float8 included)."""
    return scalar_kind(dtype) == "float"


def is_float4(dtype: DType) -> bool:
    """Return whether ``dtype`` is floating point of four bits, of which the largest is 6."""
    return dtype == ml_dtypes.float4_e2m1fn


@functools.cache
def is_complex(dtype: DType) -> bool:
    """Return whether ``dtype`` is complex."""
    return scalar_kind(dtype) == "complex"


@functools.cache
def is_inexact(dtype: DType) -> bool:
    """Return whether ``dtype`` is real floating point or complex: what has derivatives."""
    return scalar_kind(dtype) in ("float", "complex")


@functools.cache
def is_integer(dtype: DType) -> bool:
    """Return whether ``dtype`` is a signed or unsigned integer (bool is not one)."""
    return scalar_kind(dtype) in ("int", "uint")


@functools.cache
def is_unsigned(dtype: DType) -> bool:
    """Return whether ``dtype`` is an unsigned integer."""
    return scalar_kind(dtype) == "uint"


@functools.cache
def is_bool(dtype: DType) -> bool:
    """Return whether ``dtype`` is bool."""
    return scalar_kind(dtype) == "bool"


def is_extended(dtype: DType) -> bool:
    """Return whether ``dtype`` is one NumPy cannot describe."""
    return isinstance(dtype, ExtendedDType)


@functools.cache
def to_tangent_dtype(dtype: DType) -> DType:
    """Return the dtype of derivatives with respect to ``dtype``: itself, or float0."""
    if isinstance(dtype, ExtendedDType):
        return dtype.tangent
    return dtype if is_inexact(dtype) else float0


@functools.cache
def real_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the real part: complex64 → float32; a real dtype is itself."""
    if not is_complex(dtype):
        return dtype
    return np.dtype("float32") if dtype == np.dtype("complex64") else np.dtype("float64")


@functools.cache
def complex_dtype(dtype: np.dtype) -> np.dtype:
    """Return the complex dtype whose parts hold ``dtype``: float64 → complex128, else complex64."""
    if is_complex(dtype):
        return dtype
    return np.dtype("complex128") if dtype == np.dtype("float64") else np.dtype("complex64")


# -- names -----------------------------------------------------------------------------------------


@functools.cache
def short_name(dtype: DType) -> str:
    """Return the name a jaxpr prints: ``f32``, ``bf16``, ``u8``, ``bool``, ``f8_e4m3fn``."""
    if isinstance(dtype, ExtendedDType):
        return dtype._short_name
    if dtype == float0:
        return "float0"
    for long, short in (
        ("bfloat", "bf"),
        ("float", "f"),
        ("uint", "u"),
        ("int", "i"),
        ("complex", "c"),
    ):
        if dtype.name.startswith(long):
            return short + dtype.name.removeprefix(long)
    return dtype.name


def itemsize_bits(dtype: Any) -> int:
    """Return how many bits one element holds: 4 for int4, 8 for bool.

    Raises: ValueError for None and for extended dtypes.

    >>> jax.dtypes.itemsize_bits(jnp.int4)
    4
    """
    if dtype is None:
        raise ValueError("dtype cannot be None. Name one, such as 'float32'.")
    dtype = as_dtype(dtype)
    if isinstance(dtype, ExtendedDType):
        raise ValueError(f"itemsize_bits needs a NumPy dtype, got {dtype.name}")
    kind = scalar_kind(dtype)
    if dtype in _NARROW_BASE:
        return finfo(dtype).bits if kind == "float" else iinfo(dtype).bits
    return 8 * dtype.itemsize


# -- subtypes --------------------------------------------------------------------------------------


def issubdtype(a: Any, b: Any) -> bool:
    """Return whether ``a`` is at or below ``b`` among scalar types, narrow and extended ones too.

    Raises: TypeError for what names no dtype.

    >>> jax.dtypes.issubdtype(jnp.bfloat16, np.floating)
    True
    """
    try:
        return _issubdtype(a, b)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return _issubdtype.__wrapped__(a, b)


@functools.cache
def _issubdtype(a: Any, b: Any) -> bool:
    lower, upper = _scalar_type(a), _scalar_type(b)
    base = _NARROW_BASE.get(np.dtype(lower)) if _is_concrete(lower) else None
    if base is not None:
        return upper is lower or issubclass(base, upper)
    return issubclass(lower, upper)


def _is_concrete(scalar: type) -> bool:
    return scalar.__module__ == bfloat16.__module__


def _scalar_type(dtype: Any) -> type:
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        return dtype
    return as_dtype(dtype).type
