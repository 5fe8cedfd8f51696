"""What does the engine know of a value before it is computed?

Its *abstract value*: shape, dtype, and whether the dtype is weak (came from a Python scalar and so
gives way in promotion).  Tracers carry avals instead of data; typing rules map avals to avals.

Read before: ``core.dtypes``.  Read after: ``core.primitive``.
Invariant: equal avals mean that one compiled program serves both values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.core import config, dtypes


class ShapedArray:
    """The abstract value of an array: ``shape``, ``dtype`` and ``weak_type``."""

    __slots__ = ("shape", "dtype", "weak_type", "_hash", "_mlir_type")
    # What the StableHLO writer calls the type, once it has been asked for.
    _mlir_type: str
    # The mesh axes along which it varies inside shard_map; see core.varying.
    vma: frozenset = frozenset()
    # In which memory of its device it lies; core.memory_spaces says what there is.
    memory_space: Any

    def __init__(self, shape, dtype, weak_type: bool = False, *, sharding: Any = None,
                 vma: frozenset = frozenset(), memory_space: Any = None):
        """Make the aval of an array that is not cut: ``sharding`` may say so, in libraries' words.

        Raises: TypeError if ``sharding`` or ``vma`` name mesh axes.
        """
        if vma or (sharding is not None and any(sharding.spec)):
            raise TypeError(f"ShapedArray: the aval of an array cut as {sharding} or varying along "
                            f"{set(vma)} comes from jax.typeof(x) or jax.ShapeDtypeStruct("
                            "shape, dtype, sharding=...), not from here.")
        self.shape = shape if type(shape) is tuple else tuple(shape)
        known = isinstance(dtype, (np.dtype, dtypes.ExtendedDType))
        self.dtype = dtype if known else np.dtype(dtype)
        self.weak_type = weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __eq__(self, other):
        return self is other or (
            type(other) is ShapedArray
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak_type == other.weak_type
        )

    def __hash__(self):
        try:
            return self._hash
        except AttributeError:
            self._hash = hash((self.shape, self.dtype, self.weak_type))
            return self._hash

    def update(self, **changes) -> ShapedArray:
        """Return this aval with some of ``shape``, ``dtype``, ``weak_type`` replaced."""
        return ShapedArray(
            changes.get("shape", self.shape),
            changes.get("dtype", self.dtype),
            changes.get("weak_type", self.weak_type),
        )

    def strip_weak_type(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """Return the aval of this value's tangent: ``float0`` for integers and booleans."""
        tangent = dtypes.to_tangent_dtype(self.dtype)
        return self if tangent == self.dtype else ShapedArray(self.shape, tangent)

    def str_short(self, short_dtypes: bool = True) -> str:
        """Return ``f32[2,3]``, the notation of jaxprs."""
        name = dtypes.short_name(self.dtype) if short_dtypes else str(self.dtype)
        return f"{name}[{','.join(map(str, self.shape))}]"

    def __str__(self) -> str:
        return "~" * self.weak_type + self.str_short(short_dtypes=False)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short(short_dtypes=False)}{weak})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    @property
    def sharding(self):
        return None


class ShapeDtypeStruct:
    """A shape and dtype without data: what ``eval_shape`` returns and ``lower`` accepts.

    Source: the documentation of jax.ShapeDtypeStruct.
    """

    __slots__ = ("shape", "dtype", "weak_type", "sharding", "_aval")
    manual_axis_type = None
    # The type of a reference to a value of an aval; core.refs says it.
    reference: Callable[[ShapedArray], ShapedArray]

    def __init__(self, shape, dtype, *, sharding=None, weak_type: bool = False,
                 manual_axis_type=None, is_ref: bool = False):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        if sharding is not None and not isinstance(sharding, _jaxlib.Sharding) and not (
                hasattr(sharding, "_partitions") or hasattr(sharding, "layout")):
            raise ValueError(
                "sharding should be an instance of `jax.sharding.Sharding`, "
                "`jax.sharding.PartitionSpec` or `jax.experimental.layout.Format`. Got "
                f"{sharding} of type {type(sharding)}.")
        if manual_axis_type is not None:
            raise ValueError("ShapeDtypeStruct: manual_axis_type is not accepted here.")
        self.shape = tuple(shape)
        self.dtype = dtype if isinstance(dtype, dtypes.ExtendedDType) else np.dtype(dtype)
        self.weak_type = weak_type
        self.sharding = sharding
        self._aval = ShapedArray(self.shape, self.dtype, weak_type)
        if is_ref:
            self._aval = ShapeDtypeStruct.reference(self._aval)

    is_ref = property(lambda self: type(self._aval) is not ShapedArray)
    size = property(lambda self: math.prod(self.shape))
    ndim = property(lambda self: len(self.shape))

    def __len__(self) -> int:
        return len(self._aval)

    def __repr__(self) -> str:
        sharding = f", sharding={self.sharding}" if self.sharding is not None else ""
        weak = ", weak_type=True" if self.weak_type else ""
        ref = ", is_ref=True" if self.is_ref else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype}{sharding}{weak}{ref})"

    def __eq__(self, other):
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return (self._aval, self.sharding) == (other._aval, other.sharding)

    def __hash__(self):
        return hash((self._aval, self.sharding))

    def update(self, **changes) -> ShapeDtypeStruct:
        """Return this struct with some of shape, dtype, sharding, weak_type replaced."""
        return ShapeDtypeStruct(
            changes.get("shape", self.shape),
            changes.get("dtype", self.dtype),
            sharding=changes.get("sharding", self.sharding),
            weak_type=changes.get("weak_type", self.weak_type),
            is_ref=changes.get("is_ref", self.is_ref),
        )


_scalar_avals: dict[tuple[type, bool], ShapedArray] = {}


def _scalar_aval(x: Any) -> ShapedArray:
    kind = type(x)
    aval = _scalar_avals.get((kind, config.enable_x64.value))
    if aval is None:
        aval = ShapedArray((), dtypes.default_dtype(kind), kind is not bool)
        _scalar_avals[kind, config.enable_x64.value] = aval
    if kind is int and not -0x80000000 <= x <= 0x7FFFFFFF and not _fits(x, aval.dtype):
        raise OverflowError(
            f"Python int {x} is too large to convert to {aval.dtype.name}. Wrap it in a wider "
            "NumPy type such as np.uint32, or set jax_enable_x64."
        )
    return aval


def _fits(x: int, dtype: np.dtype) -> bool:
    limits = dtypes.iinfo(dtype)
    return int(limits.min) <= x <= int(limits.max)


_NO_NUMBERS = "USOMm"  # texts, bytes, objects, times


def _numpy_aval(x: np.ndarray | np.generic) -> ShapedArray:
    if x.dtype.kind in _NO_NUMBERS:
        raise TypeError(f"Argument {x!r} of type {type(x)} is not a valid JAX type: its dtype is "
                        f"{x.dtype}, and arrays hold numbers and truth values only.")
    return ShapedArray(x.shape, dtypes.canonicalize(x.dtype))


def _own_aval(x: Any) -> ShapedArray:
    return x.aval


# From the type of a value to the function that gives its aval; arrays, tracers and keys add theirs.
aval_functions: dict[type, Callable[[Any], ShapedArray]] = {
    _jaxlib.ArrayImpl: _own_aval,
    np.ndarray: _numpy_aval,
    bool: _scalar_aval, int: _scalar_aval, float: _scalar_aval, complex: _scalar_aval,
    ShapeDtypeStruct: lambda x: x._aval.update(dtype=dtypes.canonicalize(x.dtype)),
}


def aval_of(x: Any) -> ShapedArray:
    """Return the abstract value of ``x``: an array, tracer, NumPy value or Python number.

    Raises: TypeError if ``x`` is nothing an array program can hold.
    """
    function = aval_functions.get(type(x))
    if function is None:
        function = _find_aval_function(x)
    return function(x)


def _find_aval_function(x: Any) -> Callable[[Any], ShapedArray]:
    if isinstance(x, np.generic):  # before the search: np.float64 is a float, but not weak
        aval_functions[type(x)] = _numpy_aval
        return _numpy_aval
    for cls in type(x).__mro__:
        if cls in aval_functions:
            break
    else:
        if hasattr(type(x), "__jax_array__"):
            return lambda x: aval_of(x.__jax_array__())
        raise TypeError(
            f"Argument {x!r} of type {type(x)} is not a valid JAX type: needed an array, a NumPy "
            "array or scalar, or a Python number. Convert it with jnp.asarray, or mark it static."
        )
    aval_functions[type(x)] = aval_functions[cls]
    return aval_functions[cls]


def is_array_like(x: Any) -> bool:
    """Return whether ``x`` has an abstract value (whether ``aval_of`` accepts it)."""
    if type(x) in aval_functions or hasattr(type(x), "__jax_array__"):
        return True
    return isinstance(x, np.generic) or any(c in aval_functions for c in type(x).__mro__)
