"""What is ``jnp.float32``, and how are dtypes compared, converted and classified?

``jnp.float32`` is a class that is a dtype (it equals ``np.float32``) and makes arrays when called:
``jnp.float32(1)``.

Read before: ``core.dtypes``, ``numpy.creation``.  Read after: nothing.
Invariant: wherever a dtype is wanted, these classes serve (tests/kernel/numpy/test_creation.py).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from saem.core import dtypes, promotion
from saem.core.avals import aval_functions, represented_aval
from saem.numpy.creation import asarray
from saem.typing import ArrayLike, DTypeLike

# Kinds of numbers in NumPy's hierarchy of types, for which there is no dtype.
ABSTRACT = frozenset({
    np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact,
    np.floating, np.complexfloating, np.flexible, np.character})


class _ScalarMeta(type):
    """The class of ``jnp.float32`` and its like; libraries know it by its name, which is JAX's."""

    dtype: np.dtype

    def __call__(cls, x: Any) -> Any:
        """Return ``x`` as an array of this dtype; a text is read as NumPy reads it."""
        return asarray(x, cls.dtype)

    def __eq__(cls, other: Any) -> bool:
        return cls is other or (
            not isinstance(other, str) and _dtype_or_none(other) == cls.dtype)

    def __ne__(cls, other: Any) -> bool:
        return not cls == other

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, _instance: Any) -> bool:
        return isinstance(_instance, cls.dtype.type)


def _dtype_or_none(other: Any) -> np.dtype | None:
    if isinstance(other, _ScalarMeta):
        return other.dtype
    if isinstance(other, np.dtype):
        return other
    if isinstance(other, type) and issubclass(other, np.generic) and other not in ABSTRACT:
        return np.dtype(other)
    return None


def scalar_type(name: str) -> _ScalarMeta:
    """Return the class ``jnp.<name>``."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    return _ScalarMeta(name, (), {
        "dtype": dtype, "__module__": "saem.numpy",
        "__doc__": f"The dtype {dtype.name}: ``jnp.{name}(1)`` makes an array of it."})


bool_ = scalar_type("bool")
int1 = scalar_type("int1")
int2 = scalar_type("int2")
int4 = scalar_type("int4")
int8 = scalar_type("int8")
int16 = scalar_type("int16")
int32 = scalar_type("int32")
int64 = scalar_type("int64")
uint1 = scalar_type("uint1")
uint2 = scalar_type("uint2")
uint4 = scalar_type("uint4")
uint8 = scalar_type("uint8")
uint16 = scalar_type("uint16")
uint32 = scalar_type("uint32")
uint64 = scalar_type("uint64")
bfloat16 = scalar_type("bfloat16")
float4_e2m1fn = scalar_type("float4_e2m1fn")
float6_e2m3fn = scalar_type("float6_e2m3fn")
float6_e3m2fn = scalar_type("float6_e3m2fn")
float8_e3m4 = scalar_type("float8_e3m4")
float8_e4m3 = scalar_type("float8_e4m3")
float8_e4m3b11fnuz = scalar_type("float8_e4m3b11fnuz")
float8_e4m3fn = scalar_type("float8_e4m3fn")
float8_e4m3fnuz = scalar_type("float8_e4m3fnuz")
float8_e5m2 = scalar_type("float8_e5m2")
float8_e5m2fnuz = scalar_type("float8_e5m2fnuz")
float8_e8m0fnu = scalar_type("float8_e8m0fnu")
float16 = scalar_type("float16")
float32 = scalar_type("float32")
float64 = scalar_type("float64")
complex64 = scalar_type("complex64")
complex128 = scalar_type("complex128")


# -- questions about dtypes ------------------------------------------------------------------------


dtype = np.dtype
finfo = dtypes.finfo
iinfo = dtypes.iinfo


def _with_dtype(x: Any) -> Any:
    """Return the dtype of an array or number, or what names a dtype as it is."""
    if isinstance(x, (type, str, np.dtype)) or x is None:
        return x
    return np.dtype(type(x)) if type(x) in dtypes.PYTHON_SCALARS else getattr(x, "dtype", x)


def result_type(*args: Any) -> np.dtype:
    """Return the dtype in which arrays, numbers and dtypes meet.

    >>> jnp.result_type(jnp.int32, jnp.float16)
    dtype('float16')
    """
    return promotion.result_type(*args)


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype:
    """Return the dtype in which two dtypes meet.  Raises: TypePromotionError if they do not.

    >>> jnp.promote_types(jnp.int32, jnp.float16)
    dtype('float16')
    """
    return promotion.promote_types(a, b)


def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Return whether dtype ``arg1`` is at or below ``arg2`` among the scalar types.

    >>> jnp.issubdtype(jnp.float32, jnp.floating)
    True
    """
    return dtypes.issubdtype(arg1, arg2)


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Return whether a cast keeps what ``casting`` requires to be kept, by NumPy's rules.

    Raises: TypeError for a Python number.

    >>> jnp.can_cast(jnp.int32, jnp.float64)
    True
    """
    if type(to) in dtypes.PYTHON_NUMBERS:
        raise TypeError(f"Cannot interpret '{to!r}' as a data type. Pass a dtype or an array.")
    if type(from_) in dtypes.PYTHON_NUMBERS:
        raise TypeError("can_cast() does not support Python ints, floats, and complex because the "
                        "result used to depend on the value. Pass a dtype or an array.")
    return np.can_cast(_with_dtype(from_), _with_dtype(to), casting)


_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int",),
    "unsigned integer": ("uint",),
    "integral": ("int", "uint"),
    "real floating": ("float",),
    "complex floating": ("complex",),
    "numeric": ("int", "uint", "float", "complex"),
}


def isdtype(dtype: DTypeLike, kind: str | DTypeLike | tuple[str | DTypeLike, ...]) -> bool:
    """Return whether ``dtype`` is of a kind, a name of the array API or a dtype, or one of several.

    Raises: ValueError for an unknown name of a kind; TypeError for another non-dtype.

    >>> jnp.isdtype(jnp.float32, "real floating")
    True
    """
    requested = dtypes.as_dtype(_with_dtype(dtype))
    for one in kind if isinstance(kind, tuple) else (kind,):
        if not isinstance(one, (str, type)) and (hasattr(one, "shape") or not hasattr(one, "kind")):
            raise TypeError(f"Expected kind to be a dtype, string, or tuple; got {kind=}")
        if isinstance(one, str) and one in _KINDS:
            if dtypes.scalar_kind(requested) in _KINDS[one]:
                return True
            continue
        try:
            named = dtypes.as_dtype(one)
        except TypeError as error:
            raise (ValueError if isinstance(one, str) else TypeError)(
                f"Unrecognized kind={one!r} expected one of {list(_KINDS)}, or a compatible input "
                "for jnp.dtype()") from error
        if named == requested:
            return True
    return False


def iscomplexobj(x: ArrayLike) -> bool:
    """Return whether ``x`` is of a complex dtype, whatever its numbers.

    >>> jnp.iscomplexobj(jnp.array([1, 1j]))
    True
    """
    if type(x) is np.ndarray:
        return x.dtype.kind == "c"
    if type(x) in aval_functions or hasattr(type(x), "__jax_array__"):
        return dtypes.is_complex(represented_aval(x).dtype)
    return x is not None and bool(np.iscomplexobj(x))


def isrealobj(x: ArrayLike) -> bool:
    """Return whether ``x`` is not of a complex dtype.

    >>> jnp.isrealobj(jnp.array([1, 2]))
    True
    """
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Return whether ``element`` is a number, or an array of rank 0.

    >>> jnp.isscalar(3.0)
    True
    """
    if type(element) is np.ndarray:
        return not element.shape
    if isinstance(element, int):  # also one that no dtype holds
        return True
    if type(element) in aval_functions or hasattr(type(element), "__jax_array__"):
        return not represented_aval(element).shape
    return bool(np.isscalar(element)) or getattr(element, "shape", None) == ()
