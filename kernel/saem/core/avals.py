"""What does the engine know of a value before it is computed?

Its *abstract value*: shape, dtype, and whether the dtype is weak (came from a Python scalar and so
gives way in promotion).  Tracers carry avals instead of data; typing rules map avals to avals.
Where a value is not placed as usual, its aval has a ``Placement``: a sharding along Explicit mesh
axes, the mesh axes along which it varies inside ``shard_map``, the memory that holds it.

Read before: ``core.dtypes``, ``core.placement_types``.
Read after: ``core.primitive``, ``core.infer``.
Invariant: equal avals mean that one compiled program serves both values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from saem import _jaxlib
from saem.core import config, dtypes
from saem.core.dimensions import Dim
from saem.core.errors import NotAValue
from saem.core.placement_types import (
    NO_SUMS,
    NOWHERE,
    ManualAxisType,
    MemorySpace,
    Placement,
    Sums,
    axes_text,
    entry_text,
    explicit_sharding,
    placement_of,
    shifted_sharding,
    split_sums,
    with_entries,
)


class ShapedArray:
    """The abstract value of an array: ``shape``, ``dtype``, ``weak_type`` and ``placement``.

    ``placement`` is None for a value that is placed as usual.
    """

    __slots__ = ("shape", "dtype", "weak_type", "placement", "_hash", "_mlir_type")
    # Whether values change while a program runs, as references do.
    changes: ClassVar[bool] = False
    # The name of the type in StableHLO, once it is known (``compile.text``).
    _mlir_type: str
    # The sharding of a type that names no mesh axis; set by ``placement.shardings``.
    unsharded: ClassVar[Callable[[int], Any]]

    def __init__(self, shape, dtype, weak_type: bool = False,
                 placement: Placement | None = None, *, sharding: Any = None,
                 vma: frozenset | None = None, memory_space: MemorySpace | None = None,
                 manual_axis_type: Any = None):
        """Make an aval; ``sharding``, ``vma`` and ``memory_space`` are JAX's words for placement.

        Of a ``sharding`` only entries along Explicit mesh axes belong to a type;
        ``manual_axis_type`` has the axes inside ``shard_map``.
        """
        self.shape = shape if type(shape) is tuple else tuple(shape)
        known = isinstance(dtype, (np.dtype, dtypes.ExtendedDType))
        self.dtype = dtype if known else np.dtype(dtype)
        self.weak_type = weak_type
        if (sharding is not None or vma is not None or memory_space is not None
                or manual_axis_type is not None):
            manual = manual_axis_type
            placement = placement_of(
                explicit_sharding(sharding, len(self.shape)),
                frozenset(vma or ()) if manual is None else manual.varying,
                memory_space or MemorySpace.Device,
                NO_SUMS if manual is None else Sums(manual.unreduced, manual.reduced))
        self.placement = placement

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def explicit(self) -> Any:
        """The sharding along Explicit mesh axes, None if there is none."""
        return None if self.placement is None else self.placement.sharding

    @property
    def sharding(self) -> Any:
        """The sharding as a type names it: along Explicit mesh axes, else along none."""
        found = self.explicit
        return ShapedArray.unsharded(len(self.shape)) if found is None else found

    @property
    def vma(self) -> frozenset:
        """The mesh axes along which the value varies inside ``shard_map``."""
        return NOWHERE if self.placement is None else self.placement.vma

    @property
    def sums(self) -> Sums:
        """The mesh axes along which the value is unreduced or reduced."""
        if self.placement is None:
            return NO_SUMS
        sharding, _, _, sums = self.placement
        if sharding is None:
            return sums
        spec = sharding.spec
        return Sums(spec.unreduced | sums.unreduced, spec.reduced | sums.reduced)

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """The mesh axes along which the value varies or is a sum inside ``shard_map``."""
        _, vma, _, sums = self.placement or Placement()
        return ManualAxisType(varying=vma, unreduced=sums.unreduced, reduced=sums.reduced)

    mat = manual_axis_type

    @property
    def memory_space(self) -> MemorySpace:
        """The memory that holds the value."""
        return MemorySpace.Device if self.placement is None else self.placement.memory

    def __eq__(self, other):
        return self is other or (
            type(other) is ShapedArray
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak_type == other.weak_type
            and self.placement == other.placement
        )

    def __hash__(self):
        try:
            return self._hash
        except AttributeError:
            self._hash = hash((self.shape, self.dtype, self.weak_type, self.placement))
            return self._hash

    def update(self, **changes) -> ShapedArray:
        """Return this aval with some of its fields replaced.

        With one axis more or fewer in front the other axes keep their sharding; a value of any
        other shape has none.
        """
        aval = ShapedArray(
            changes.get("shape", self.shape),
            changes.get("dtype", self.dtype),
            changes.get("weak_type", self.weak_type),
        )
        if self.placement is not None or not changes.keys().isdisjoint(Placement._fields):
            sharding, vma, memory, sums = self.placement or Placement()
            if "sharding" in changes:
                sharding = explicit_sharding(changes["sharding"], len(aval.shape))
            elif sharding is not None and aval.shape != self.shape:
                sharding = shifted_sharding(sharding, self.shape, aval.shape)
            aval.placement = placement_of(
                sharding, changes.get("vma", vma), changes.get("memory", memory),
                changes.get("sums", sums))
        return aval

    def strip_weak_type(self) -> ShapedArray:
        if not self.weak_type:
            return self
        return ShapedArray(self.shape, self.dtype, False, self.placement)

    def to_tangent_aval(self) -> ShapedArray:
        """Return the aval of this value's tangent: ``float0`` for integers and booleans."""
        tangent = dtypes.to_tangent_dtype(self.dtype)
        if tangent == self.dtype:
            return self
        return ShapedArray(self.shape, tangent, False, self.placement)

    # Its older name, which rules of libraries still use.
    at_least_vspace = to_tangent_aval

    # -- a type of arrays among those that programs define (``core.hi_types``) --
    is_high: ClassVar[bool] = False
    has_qdd: ClassVar[bool] = False

    def lo_ty(self) -> list[ShapedArray]:
        """Return the types of the arrays that hold a value: this one."""
        return [self]

    def lower_val(self, hi_val: Any) -> list[Any]:
        """Return the arrays that hold ``hi_val``, which is one."""
        return [hi_val]

    def raise_val(self, *lo_vals: Any) -> Any:
        """Return the value that arrays hold, of which there is one."""
        (lo_val,) = lo_vals
        return lo_val

    def normalize(self) -> ShapedArray:
        """Return this type without weakness: what two of them must have in common to be joined."""
        return self.strip_weak_type()

    def to_ct_aval(self) -> ShapedArray:
        """Return the aval of this value's cotangent: unreduced where the value is reduced."""
        aval = self.to_tangent_aval()
        return aval if aval.placement is None else aval.with_sums(aval.sums.dual)

    def stacked(self, size: int) -> ShapedArray:
        """Return the type of a stack of ``size`` values of this type, along a new first axis."""
        return self.update(shape=(size, *self.shape))

    def row(self, size: int) -> ShapedArray:
        """Return the type of a value of which this is the type of a stack of ``size``."""
        return self.update(shape=self.shape[1:])

    def with_sums(self, sums: Sums, like: Any = None) -> ShapedArray:
        """Return this aval unreduced and reduced along exactly these axes.

        Those that are Explicit are axes of the mesh of ``like``, a sharding, if the aval has none.
        """
        if sums == self.sums:
            return self
        sharding, vma, memory, _ = self.placement or Placement()
        mesh_of = like if sharding is None else sharding
        explicit = () if mesh_of is None else mesh_of.mesh.explicit_axes
        typed, manual = split_sums(sums, explicit)
        if mesh_of is not None:
            entries = () if sharding is None else sharding.spec._partitions
            sharding = with_entries(mesh_of, entries, len(self.shape), typed)
        return ShapedArray(self.shape, self.dtype, self.weak_type,
                           placement_of(sharding, vma, memory, manual))

    def str_short(self, short_dtypes: bool = False) -> str:
        """Return ``f32[2,3]``, the notation of jaxprs.

        With a placement: ``f32[8@x,2]`` (sharded along ``x``), ``f32[2]{V:i}`` (varying along
        ``i``), ``f32[2]{U:x}`` (unreduced along ``x``; ``R``: reduced), ``f32<host>[2]`` (in the
        memory of the host).
        """
        short = short_dtypes or self.dtype == dtypes.float0
        name = dtypes.short_name(self.dtype) if short else str(self.dtype)
        if self.placement is None:
            return f"{name}[{','.join(map(str, self.shape))}]"
        sharding, vma, memory, _ = self.placement
        entries = (None,) * len(self.shape) if sharding is None else sharding.spec._partitions
        sizes = [f"{n}{entry_text(e)}" for n, e in zip(self.shape, entries)]
        where = "<host>" if memory is MemorySpace.Host else ""
        unreduced, reduced = self.sums
        return f"{name}{where}[{','.join(sizes)}]{axes_text(V=vma, U=unreduced, R=reduced)}"

    def __str__(self) -> str:
        return "~" * self.weak_type + self.str_short()

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]


class ShapeDtypeStruct:
    """A shape and dtype without data: what ``eval_shape`` returns and ``lower`` accepts.

    Source: the documentation of jax.ShapeDtypeStruct.

    >>> jax.ShapeDtypeStruct((2, 3), jnp.float32)
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    shape: tuple
    dtype: Any
    weak_type: bool
    sharding: Any
    manual_axis_type: Any
    _layout: Any
    _aval: ShapedArray
    # The type of a reference to a value of an aval; set by ``core.refs``.
    reference: Callable[[ShapedArray], ShapedArray]
    # The sharding and the layout of what a caller gave, and both as one; set by
    # ``placement.layouts``.
    place: Callable[[Any, tuple], tuple[Any, Any]]
    formatted: Callable[[Any, Any], Any]

    def __init__(self, shape, dtype, *, sharding=None, weak_type: bool = False,
                 manual_axis_type=None, is_ref: bool = False):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        shape = tuple([int(n) if isinstance(n, np.integer) else n for n in shape])
        dtype = dtype if isinstance(dtype, dtypes.ExtendedDType) else np.dtype(dtype)
        sharding, layout = (
            (None, None) if sharding is None else ShapeDtypeStruct.place(sharding, shape))
        aval = ShapedArray(shape, dtype, weak_type, manual_axis_type=manual_axis_type)
        self.__dict__.update(
            shape=shape, dtype=dtype, weak_type=weak_type, sharding=sharding,
            manual_axis_type=manual_axis_type, _layout=layout,
            _aval=ShapeDtypeStruct.reference(aval) if is_ref else aval)

    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError(f"Cannot reassign attributes ({name}) of immutable ShapeDtypeStruct "
                           f"objects. Make another one: struct.update({name}=…).")

    @staticmethod
    def like(x: Any) -> ShapeDtypeStruct:
        """Return the struct of an array: its type, and its sharding if it was placed."""
        aval = aval_of(x)
        sharding = x.sharding if getattr(x, "_committed", False) else None
        return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding,
                                weak_type=aval.weak_type)

    is_ref = property(lambda self: type(self._aval) is not ShapedArray)
    size = property(lambda self: math.prod(self.shape))
    ndim = property(lambda self: len(self.shape))

    @property
    def format(self) -> Any:
        """The layout and the sharding; each is None where it is not given."""
        return ShapeDtypeStruct.formatted(self._layout, self.sharding)

    def __len__(self) -> int:
        return len(self._aval)

    def __repr__(self) -> str:
        sharding = f", sharding={self.sharding}" if self.sharding is not None else ""
        if self._layout is not None:
            sharding += f", format={self._layout}"
        weak = ", weak_type=True" if self.weak_type else ""
        ref = ", is_ref=True" if self.is_ref else ""
        manual = "" if self.manual_axis_type is None else (
            f", manual_axis_type={self.manual_axis_type}")
        return (f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{sharding}{weak}"
                f"{manual}{ref})")

    def __eq__(self, other):
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _key(self) -> tuple:
        return self._aval, self.sharding, self._layout

    def update(self, **changes) -> ShapeDtypeStruct:
        """Return this struct with some of shape, dtype, sharding, weak_type replaced.

        Raises: ValueError if it has a layout and another sharding is given, but no Format.
        """
        sharding = changes.get("sharding")
        if self._layout is not None and isinstance(sharding, _jaxlib.Sharding):
            raise ValueError(f"ShapeDtypeStruct.update got the sharding {sharding}, but the struct "
                             f"has the layout {self._layout}. Give a Format, or make a new "
                             "struct.")
        return ShapeDtypeStruct(
            changes.get("shape", self.shape),
            changes.get("dtype", self.dtype),
            sharding=changes.get(
                "sharding", self.sharding if self._layout is None else self.format),
            weak_type=changes.get("weak_type", self.weak_type),
            manual_axis_type=changes.get("manual_axis_type", self.manual_axis_type),
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
            f"Python int {x} too large to convert to {aval.dtype.name}. Wrap it in a wider "
            "NumPy type such as np.uint32, or set jax_enable_x64."
        )
    return aval


def _fits(x: int, dtype: np.dtype) -> bool:
    limits = dtypes.iinfo(dtype)
    return int(limits.min) <= x <= int(limits.max)


def not_a_value(x: Any, reason: str) -> NotAValue:
    """Return the error for ``x``, which is neither an array nor convertible to one."""
    error = NotAValue(f"Argument {x!r} of type {type(x)} is not a valid JAX type: {reason}")
    error.value = x
    return error


_NO_NUMBERS = "USOMmV"  # texts, bytes, objects, times, records
_TOO_WIDE = "gG"  # NumPy's longdouble and clongdouble


def _numpy_aval(x: np.ndarray | np.generic) -> ShapedArray:
    if x.dtype not in dtypes.ARRAY_DTYPES and (
            x.dtype.kind in _NO_NUMBERS or x.dtype.char in _TOO_WIDE or not x.dtype.isnative):
        if not x.dtype.isnative:
            raise not_a_value(
                x, f"its dtype is {x.dtype}, and this machine orders bytes the other way. Try: "
                f"x.astype({x.dtype.newbyteorder('=').name!r})")
        if x.dtype.char in _TOO_WIDE:
            raise not_a_value(
                x, f"its dtype is {x.dtype}, wider than arrays can hold. Try: "
                f"x.astype({'float64' if x.dtype.kind == 'f' else 'complex128'!r})")
        raise not_a_value(
            x, f"Dtype {x.dtype} is not a valid JAX array type. Only arrays of numeric types are "
            "supported by JAX.")
    return ShapedArray(x.shape, dtypes.canonicalize(x.dtype))


class Kept:
    """A NumPy scalar or array that a program holds in its own dtype, which has 64 bits.

    It is no subclass of NumPy's types: by those jaxlib's C++ would know it, and take 32 bits.
    """

    __slots__ = ("numbers",)

    def __init__(self, numbers: np.ndarray | np.generic):
        self.numbers = numbers

    @property
    def dtype(self) -> np.dtype:
        return self.numbers.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.numbers.shape

    @property
    def ndim(self) -> int:
        return self.numbers.ndim

    def astype(self, dtype: Any) -> Any:
        """Return the numbers in ``dtype``, which a program holds, too."""
        return kept(self.numbers.astype(dtype))

    def item(self) -> Any:
        """Return a scalar as a Python number."""
        return self.numbers.item()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numbers, dtype, copy=copy)

    def __repr__(self) -> str:
        return repr(self.numbers)

    def __str__(self) -> str:
        return str(self.numbers)


def kept(x: np.ndarray | np.generic) -> Any:
    """Return the NumPy scalar or array ``x`` so that a program holds it in its own dtype.

    It is for numbers whose dtype the engine has chosen.  Those of a user, as ``np.float64(1)``,
    have 32 bits in a program unless ``enable_x64``.
    """
    return x if x.dtype not in dtypes.TO_32_BITS or config.enable_x64.value else Kept(x)


def is_masked(x: Any) -> bool:
    """Return whether ``x`` is a NumPy array with a mask; loads ``numpy.ma`` for subclasses only."""
    return (type(x) is not np.ndarray and isinstance(x, np.ndarray)
            and isinstance(x, np.ma.MaskedArray))


def masked_array() -> ValueError:
    """Return the error for a NumPy array with a mask."""
    return ValueError(
        "numpy masked arrays are not supported as direct inputs to JAX functions: arrays have no "
        "mask. Use arr.filled() to convert the value to a standard numpy array.")


def _refuse_masked(x: np.ma.MaskedArray) -> ShapedArray:
    raise masked_array()


def own_aval(x: Any) -> ShapedArray:
    """Return the aval that ``x`` holds: an array or a tracer."""
    return x.aval


# From the type of a value to the function that gives its aval; arrays, tracers and keys add theirs.
aval_functions: dict[type, Callable[[Any], ShapedArray]] = {
    _jaxlib.ArrayImpl: own_aval,
    np.ndarray: _numpy_aval,
    bool: _scalar_aval, int: _scalar_aval, float: _scalar_aval, complex: _scalar_aval,
    ShapeDtypeStruct: lambda x: x._aval.update(dtype=dtypes.canonicalize(x.dtype)),
    Dim: lambda size: aval_of(size.__jax_array__()),
    Kept: lambda x: ShapedArray(x.shape, x.dtype),
}


def aval_of(x: Any) -> ShapedArray:
    """Return the abstract value of ``x``: an array, tracer, NumPy value or Python number.

    Raises: TypeError if ``x`` is nothing an array program can hold.
    """
    function = aval_functions.get(type(x))
    if function is own_aval:  # arrays and tracers: one call less, of thousands
        return x.aval
    if function is None:
        function = _find_aval_function(x)
    return function(x)


def _find_aval_function(x: Any) -> Callable[[Any], ShapedArray]:
    if isinstance(x, np.generic):  # before the search: np.float64 is a float, but not weak
        aval_functions[type(x)] = _numpy_aval
        return _numpy_aval
    if is_masked(x):
        aval_functions[type(x)] = _refuse_masked
        return _refuse_masked
    for cls in type(x).__mro__:
        if cls in aval_functions:
            break
    else:
        if hasattr(type(x), "__jax_array__"):
            raise ValueError(
                "Triggering __jax_array__() during abstractification is no longer supported. To "
                "avoid this error, either explicitly convert your object using "
                "jax.numpy.array(), or register your object as a pytree.")
        raise not_a_value(
            x, "needed an array, a NumPy array or scalar, or a Python number. Convert it with "
            "jnp.asarray, or mark it static.")
    function = aval_functions[cls]
    if cls in (int, float, complex):  # a member of an IntEnum is the number that it stands for
        function = lambda x: _scalar_aval(cls(x))
    aval_functions[type(x)] = function
    return function


def represented_aval(x: Any) -> Any:
    """Return the aval of ``x``, or of the array that ``x.__jax_array__`` gives.

    A library function takes such objects; ``aval_of`` refuses them, as functions of users are not
    traced for them.
    """
    plain = type(x) in aval_functions or not hasattr(type(x), "__jax_array__")
    return aval_of(x if plain else x.__jax_array__())


def is_array_like(x: Any) -> bool:
    """Return whether ``x`` has an abstract value (whether ``aval_of`` accepts it)."""
    if type(x) in aval_functions or hasattr(type(x), "__jax_array__"):
        return True
    return isinstance(x, np.generic) or any(c in aval_functions for c in type(x).__mro__)
