"""How do arrays come to be, from data: lists, NumPy arrays, buffers, arrays of other libraries?

Numbers that are known are put together on the host and sent to the device; traced ones among them
are stacked by primitives.

Read before: ``numpy.promote``, ``compile.dispatch``.  Read after: ``numpy.filling``.
Invariant: data given as NumPy arrays is copied, so changing it later changes no array.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile.arrays import of_dlpack, only_device
from saem.compile.dispatch import put_made, put_value
from saem.core import config, dtypes, errors, finite, promotion, tree
from saem.core.arguments import is_integer
from saem.core.avals import ShapeDtypeStruct, aval_functions, aval_of, is_masked, kept, masked_array
from saem.core.dimensions import Dim, as_size
from saem.core.placement_types import Seen
from saem.core.refs import is_ref
from saem.core.trace import Tracer
from saem.jit.library import library_function
from saem.jit.transfers import device_put
from saem.numpy.promote import (
    as_value,
    broadcast_to,
    check_arraylike,
    convert_value,
    not_numeric,
    scalar,
)
from saem.ops import compare
from saem.ops import shape as shaping
from saem.ops.convert import convert
from saem.ops.convert import copy as copy_array
from saem.ops.reshard import reshard_to
from saem.placement.devices import SingleDeviceSharding
from saem.placement.meshes import mesh_context
from saem.placement.shardings import check_requested, named_sharding
from saem.typing import Array, ArrayLike, DTypeLike

# Up to so many elements, an array of known numbers is cheaper to send than to compute.
SMALL = 1 << 14
FLOAT = np.dtype("float64")


def on_host(size: int) -> bool:
    """Return whether ``size`` known numbers are best made on the host, here and now."""
    return (not config.staging.value and size <= SMALL and config.shortcuts.value
            and mesh_context.value is None)


def made(x: Any) -> Any:
    """Return a number or NumPy array as an array, of the program that is being staged if any."""
    return put_value(x if type(x) in dtypes.PYTHON_NUMBERS else kept(x), put_made)


def given_place(name: str, device: Any, out_sharding: Any) -> Any:
    """Return where the user of ``name`` wants its result, None if that was not said.

    Raises: TypeError and ValueError for an ``out_sharding`` that cannot be followed.
    """
    if device is not None:
        return device
    if out_sharding is not None:
        check_requested(out_sharding, f"jnp.{name}")
    return out_sharding


def placed(x: Any, where: Any) -> Any:
    """Return ``x`` committed to ``where``, a device or a sharding, if one is given."""
    if where is None or getattr(getattr(where, "mesh", None), "empty", False):
        return x  # the sharding of a type that names no mesh is no place
    if isinstance(where, _jaxlib.Device):  # which a program heeds in a sharding alone
        where = SingleDeviceSharding(where)
    explicit = named_sharding(where, len(aval_of(x).shape)) if Seen.placements else None
    return device_put(x, where) if explicit is None else reshard_to(x, explicit)


def check_dtype(name: str, dtype: Any) -> Any:
    """Return the canonical dtype that the user of ``name`` gave.

    Raises: TypeError for a non-dtype of arrays.
    """
    canonical = dtypes.canonicalize(dtype, explicit=True, where=name)
    if canonical in dtypes.ARRAY_DTYPES or dtypes.is_extended(canonical):
        return canonical
    raise errors.explained(
        errors.DTypeError, f"{name}.dtype",
        f"JAX only supports number, bool, and string dtypes, got dtype {dtype} in {name}",
        advice="Use a numeric dtype such as jnp.float32.")


def canonical_shape(shape: Any) -> tuple[int, ...]:
    """Return ``shape``, a number or a sequence of them, as a tuple of Python ints.

    Raises: TypeError for sizes that are not known integers; ShapeError for negative ones.
    """
    try:
        if isinstance(shape, Dim):
            sizes: tuple[int, ...] = (shape,)
        elif type(shape) is not tuple and is_integer(shape):
            sizes = (operator.index(shape),)
        else:
            sizes = tuple([as_size(n) for n in shape])
    except TypeError as error:
        traced = isinstance(shape, Tracer) or (
            isinstance(shape, (tuple, list)) and any(isinstance(n, Tracer) for n in shape))
        shown = tuple(shape) if isinstance(shape, (tuple, list, str)) else (shape,)
        raise errors.explained(
            errors.ArgumentTypeError, "shape.C1",
            "Shapes must be 1D sequences of concrete values of integer type, got "
            f"{shown}.", advice="If using `jit`, try using `static_argnums` or applying `jit` to "
            "smaller subfunctions." if traced else "Use Python ints.") from error
    if any(n < 0 for n in sizes):
        raise errors.explained(
            errors.ShapeError, "shape.C2",
            f"broadcast_in_dim shape must have every element be nonnegative, got {sizes}.",
            advice="A size of 0 gives an empty array.")
    return sizes


def array(object: Any, dtype: DTypeLike | None = None, *args: Any, copy: bool = True,
          order: str | None = "K", ndmin: int = 0, device: Any = None,
          out_sharding: Any = None) -> Any:
    """Return ``object`` (a number, an array, or nested sequences of them) as an array.

    A Python number without ``dtype`` stays weakly typed; a list of them does not.  Further
    arguments by position are copy, order and ndmin; JAX deprecated them.
    Raises: TypeError for what is not numeric; OverflowError for integers that do not fit;
    ValueError for None and ragged lists.

    >>> jnp.array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    if args:
        copy, order, ndmin = positional(args, (copy, order, ndmin))
    return _array("array", object, dtype, copy, order, ndmin,
                  given_place("array", device, out_sharding))


def _array(name: str, object: Any, dtype: Any, copy: bool, order: str | None, ndmin: int,
           where: Any) -> Any:
    """Return ``array(object, …)``; ``name`` is of the function that a warning names."""
    if order not in ("K", None):
        raise NotImplementedError("Only implemented for order='K'")
    if dtype is not None:
        dtype = check_dtype(name, dtype)
    out = _from_object(as_value(object), dtype, copy)
    if finite.wanted() and not isinstance(out, Tracer):
        finite.check_made(out)
    if ndmin > (have := len(aval_of(out).shape)):
        out = shaping.expand_dims(out, tuple(range(ndmin - have)))
    return placed(out, where)


def positional(given: tuple, rest: tuple) -> tuple:
    """Return ``given`` followed by those of ``rest`` that it lacks, and warn.  Raises: TypeError.
    """
    if len(given) > len(rest):
        raise TypeError(f"array: takes at most {2 + len(rest)} positional arguments, "
                        f"got {2 + len(given)}.")
    warnings.warn("jnp.array: give copy, order and ndmin by keyword; by position they are "
                  "deprecated.", DeprecationWarning, stacklevel=3)
    return (*given, *rest[len(given):])


def asarray(a: ArrayLike, dtype: DTypeLike | None = None, order: str | None = None, *,
            copy: bool | None = None, device: Any = None, out_sharding: Any = None) -> Any:
    """Return ``a`` as an array: itself if it is one of that dtype and no copy is requested.

    Raises: as ``array``.

    >>> jnp.asarray([1., 2.])
    Array([1., 2.], dtype=float32)
    """
    return _array("asarray", a, dtype, bool(copy), order, 0,
                  given_place("asarray", device, out_sharding))


def _from_object(x: Any, dtype: Any, copy: bool) -> Any:
    kind = type(x)
    if kind in dtypes.PYTHON_NUMBERS:
        return made(x if dtype is None else np.asarray(x, dtype))
    if isinstance(x, (np.ndarray, np.generic)):
        if not copy and is_masked(x):
            raise masked_array()
        x = _numeric(x, dtype)
        return made(x)
    if kind in aval_functions or isinstance(x, Tracer):
        aval = aval_of(x)
        if isinstance(x, ShapeDtypeStruct):
            raise TypeError(f"array: {x!r} is a type without numbers. Use jnp.zeros_like or "
                            "jnp.empty_like for an array of that type.")
        if is_ref(aval):
            raise ValueError(f"array: {x!r} is a reference, not an array. Read it: ref[...].")
        x = copy_array(x) if copy else x
        return x if dtype is None or (aval.dtype == dtype and not aval.weak_type) \
            else convert_value(x, dtype, False)
    if isinstance(x, (list, tuple)) and len(x):
        return _from_sequence(x, dtype)
    value = _as_numpy(x, dtype)
    if dtype is None and not value.size and not isinstance(x, memoryview):
        dtype = dtypes.canonicalize(FLOAT)  # an empty list says no type
    return made(_numeric(value, dtype))


_TEXTS = "OSU"  # NumPy reads numbers in texts and objects, where a dtype is given


def _as_numpy(x: Any, dtype: Any) -> np.ndarray:
    """Return what NumPy makes of an object of a foreign class, a memoryview, a range or a text.

    Raises: TypeError, ValueError if that is not numeric.
    """
    if x is None:
        raise ValueError("None is not a valid value for jnp.array. Pass a number or an array.")
    made = np.asarray(x)
    if made.dtype.kind in "OSUMmV" and made.dtype not in dtypes.ARRAY_DTYPES:
        if dtype is None or made.dtype.kind not in _TEXTS:
            raise not_numeric("array.C1", x, made.dtype)
        return np.asarray(x, dtype)
    return made


def _numeric(x: Any, dtype: Any) -> np.ndarray:
    """Return NumPy data in ``dtype``, its own canonical one if None."""
    if x.dtype not in dtypes.ARRAY_DTYPES and (
            dtype is None or (x.dtype.char not in "gG" and x.dtype.kind not in _TEXTS)):
        raise not_numeric("array.C1", x, x.dtype)
    return np.asarray(x).astype(dtypes.canonicalize(x.dtype) if dtype is None else dtype)


_BY_KIND = (complex, float, int, bool)


def _from_sequence(x: Sequence[Any], dtype: Any) -> Any:
    """Return an array of nested lists and tuples that hold at least one thing."""
    leaves = tree.leaves(x, is_leaf=lambda v: v is None)
    kinds = set(map(type, leaves))
    if kinds <= {bool, int, float, complex}:
        if dtype is None:
            if bool in kinds and len(kinds) > 1:  # which strict promotion refuses
                promotion.lattice_join(*[promotion.typed(kind()) for kind in kinds])
            dtype = dtypes.default_dtype(next((k for k in _BY_KIND if k in kinds), float))
        return made(np.array(x, dtype))
    leaves = [_leaf(v, dtype) for v in leaves]
    if dtype is None:
        dtype, _ = promotion.lattice_join(*map(promotion.typed, leaves))
    if not (any(isinstance(v, (Tracer, _jaxlib.ArrayImpl)) for v in leaves)
            or dtypes.is_extended(dtype)):
        return made(np.array(_numpy_leaves(x), dtype))
    return _stack(x, dtype=dtype) if not config.staging.value else stack_nested(x, dtype)


def _leaf(v: Any, dtype: Any) -> Any:
    v = as_value(v)
    if type(v) in aval_functions or isinstance(v, (Tracer, np.generic)):
        return v
    return _as_numpy(v, dtype)


def _numpy_leaves(x: Any) -> Any:
    return [_numpy_leaves(v) for v in x] if isinstance(x, (list, tuple)) else as_value(x)


def stack_nested(x: Any, dtype: Any) -> Any:
    """Return nested sequences of arrays as one array of ``dtype``, by joining along new axes.

    Raises: ValueError where the shapes differ.
    """
    if not isinstance(x, (list, tuple)):
        x = as_value(x)
        return convert_value(x if type(x) in aval_functions or isinstance(x, Tracer)
                             else _as_numpy(x, dtype), dtype, False)
    if not x:
        return np.zeros((0,), dtype)
    parts = [stack_nested(v, dtype) for v in x]
    shapes = {aval_of(p).shape for p in parts}
    if len(shapes) > 1:
        raise errors.explained(
            errors.ShapeError, "array.C2",
            "setting an array element with a sequence. The requested array has an inhomogeneous "
            f"shape: it holds parts of shapes {sorted(shapes)}.",
            advice="All parts of an array have one shape; pad them, or keep a list.")
    return shaping.concatenate([shaping.expand_dims(p, (0,)) for p in parts], 0)


_stack = library_function(stack_nested, static_argnames="dtype")


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Return a copy of ``a`` in memory of its own.

    >>> jnp.copy(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False,
           device: Any = None) -> Array:
    """Return ``x`` in ``dtype``; complex numbers lose their imaginary part, but not as booleans.

    >>> jnp.astype(jnp.array([1.7, 2.2]), jnp.int32)
    Array([1, 2], dtype=int32)
    """
    check_arraylike("astype", x)
    out = as_value(x)
    wanted = dtypes.default_dtype(float) if dtype is None else check_dtype("astype", dtype)
    if type(out) in dtypes.PYTHON_NUMBERS or isinstance(out, (np.ndarray, np.generic)):
        out = made(out)
    converted = _convert(out, dtype=wanted)
    if copy and converted is out:
        converted = copy_array(out)
    return placed(converted, device)


def _convert(x: Any, dtype: Any) -> Any:
    aval = aval_of(x)
    if dtypes.is_complex(aval.dtype) and dtypes.is_bool(dtype):
        return compare.ne(x, broadcast_to(scalar(0, aval.dtype), aval.shape))
    if dtypes.is_complex(aval.dtype) and not dtypes.is_complex(dtype):
        warnings.warn(
            "Casting from complex to real dtypes will soon raise a ValueError. Please first use "
            "jnp.real or jnp.imag to take the real/imaginary component of your input.",
            DeprecationWarning, stacklevel=3)
        return convert(x, dtype)
    return convert_value(x, dtype, False)


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """Return the bytes of ``buffer`` read as ``dtype``.

    >>> jnp.frombuffer(b"\\x01\\x02", dtype=jnp.uint8)
    Array([1, 2], dtype=uint8)
    """
    return asarray(np.frombuffer(buffer, dtype=np.dtype(dtype), count=count, offset=offset))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Return the numbers in ``string``, separated by ``sep``.

    >>> jnp.fromstring("1 2 3", sep=" ", dtype=jnp.int32)
    Array([1, 2, 3], dtype=int32)
    """
    return asarray(np.fromstring(string, dtype=np.dtype(dtype), count=count, sep=sep))


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Refuse: reading a file is no pure function.  Raises: NotImplementedError."""
    raise NotImplementedError(_impure("fromfile"))


def fromiter(*args: Any, **kwargs: Any) -> Any:
    """Refuse: consuming an iterator is no pure function.  Raises: NotImplementedError."""
    raise NotImplementedError(_impure("fromiter"))


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the array that ``save`` wrote to ``file``; of other files what ``np.load`` returns.

    So it does for arrays of a dtype that is NumPy's alone: objects, texts, dates, records.

    >>> import io, numpy
    >>> file = io.BytesIO()
    >>> numpy.save(file, numpy.array([1, 2], dtype=numpy.int32))
    >>> position = file.seek(0)
    >>> jnp.load(file)
    Array([1, 2], dtype=int32)
    """
    out = np.load(file, *args, **kwargs)
    if not isinstance(out, np.ndarray):
        return out
    # NumPy's format has no name for bfloat16: it writes two bytes of nothing in particular.
    out = out.view(dtypes.bfloat16) if out.dtype == "V2" else out
    return asarray(out) if out.dtype.isnative and out.dtype in dtypes.ARRAY_DTYPES else out


def _impure(name: str) -> str:
    return (f"jnp.{name}() is not implemented because it may be non-pure and thus unsafe for use "
            f"with JIT and other JAX transformations. Use jnp.asarray(np.{name}(...)), outside of "
            "traced functions.")


def from_dlpack(x: ArrayLike, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Return as an array what another library offers through ``__dlpack__``.

    The array shares the memory of ``x`` where it can: what is written into ``x`` later is seen in
    the array.  ``copy=True`` copies always, ``copy=False`` never.

    Raises: TypeError if ``x`` has no such method; BufferError if it lies on several devices;
    ValueError if ``copy`` is False and the numbers must be copied.

    >>> jnp.from_dlpack(np.array([1, 2], dtype=np.int32))
    Array([1, 2], dtype=int32)
    """
    if isinstance(x, _jaxlib.ArrayImpl):
        only_device(x)
        return placed(copy_array(x) if copy else x, device or x.sharding)
    if not hasattr(x, "__dlpack__"):
        raise TypeError("The array passed to from_dlpack must have __dlpack__ and "
                        f"__dlpack_device__ methods. Got a {type(x)}. Try: jnp.asarray(x)")
    array = of_dlpack(x, copy)
    if array is None:
        if copy is False:
            raise ValueError("from_dlpack(copy=False) needs memory that may be written and whose "
                             "numbers lie side by side. Set copy=True or copy=None.")
        only_read = isinstance(x, np.ndarray) and not x.flags.writeable  # NumPy 2.0 refuses these
        array = asarray(x if only_read else np.from_dlpack(x))
    elif copy or dtypes.canonicalize(array.dtype) != array.dtype:
        array = copy_array(array).astype(dtypes.canonicalize(array.dtype))
    return placed(array, device or array.sharding)
