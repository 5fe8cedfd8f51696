"""In which dtype, rank and shape do the operands of a jax.numpy function meet?

Primitives need operands of one dtype and one rank; functions of NumPy take any.  The functions here
make the one from the other: they refuse a non-array, convert to the join of the dtypes, and add
leading axes of size 1.  Python numbers become NumPy scalars, which a jaxpr shows as literals.

Read before: ``core.promotion``, ``ops.convert``.  Read after: ``numpy.arithmetic``.
Invariant: operands that already agree come back as they are, and nothing is recorded for them.
Source: "Type promotion semantics", JAX documentation; "Broadcasting", NumPy documentation.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from saem.core import config, dtypes, errors, promotion
from saem.core.avals import aval_functions, aval_of, is_array_like, kept, own_aval
from saem.core.dimensions import Dim, as_shape
from saem.core.placement_types import NO_SUMS, Seen, with_entries
from saem.core.sharded import ShardingTypeError, agreed, entries_of
from saem.core.trace import bind
from saem.ops.convert import cast, convert, warn_of_imaginary_part, weak_scalar
from saem.ops.linear import BroadcastInDim
from saem.ops.reshard import reshard_like
from saem.ops.select import select_n

BOOL = np.dtype(bool)
INT32, FLOAT32 = np.dtype("int32"), np.dtype("float32")
RANK_HELP = "https://docs.jax.dev/en/latest/rank_promotion_warning.html"


# -- what is an array ------------------------------------------------------------------------------


def check_arraylike(name: str, *args: Any, position: int = 0, allow_none: bool = False) -> None:
    """Refuse arguments of ``name`` that are no arrays, such as lists.

    Raises: TypeError naming the type and position.
    """
    for i, x in enumerate(args, position):
        if type(x) in aval_functions or (allow_none and x is None) or is_array_like(x):
            continue
        if isinstance(x, (str, bytes)):
            raise not_numeric(f"{name}.C1", x, np.asarray(x).dtype)
        raise errors.explained(
            errors.ArgumentTypeError, f"{name}.C1",
            f"{name} requires ndarray or scalar arguments, got {type(x)} at position {i}.",
            advice="Convert it first: jnp.asarray(...). A list is not converted silently, because "
            "each of its elements would be a separate array.")


def listed(parts: Any) -> Any:
    """Return the elements of any sequence (a deque, the values of a dict) in a list.

    Arrays, lists, tuples, texts and what can be gone through only once stay as they are.
    """
    if isinstance(parts, (list, tuple, str, bytes, Iterator)) or is_array_like(parts):
        return parts
    try:
        return list(parts)
    except TypeError:
        return parts


def not_numeric(tag: str, x: Any, dtype: Any) -> Exception:
    """Return the error for data that no array can hold, such as text."""
    return errors.explained(
        errors.ArgumentTypeError, tag,
        f"Value '{x}' with dtype {dtype} is not a valid JAX array type. Only arrays of numeric "
        "types are supported by JAX.",
        advice="Keep text and objects in Python lists, or number them first.")


def as_value(x: Any) -> Any:
    """Return ``x`` unwrapped: ``__jax_array__`` is called, an IntEnum member becomes its int."""
    while hasattr(type(x), "__jax_array__"):
        x = x.__jax_array__()
    if type(x) in dtypes.PYTHON_NUMBERS:
        return x
    for number in dtypes.PYTHON_NUMBERS:
        if isinstance(x, number) and not isinstance(x, np.generic):
            return number(x)
    return x


def dtype_of(x: Any) -> Any:
    """Return the canonical dtype of ``x``."""
    return aval_of(x).dtype


def is_boolean(x: Any) -> bool:
    """Return whether a promoted operand is boolean; a weak Python number never is."""
    aval = getattr(x, "aval", None)
    return (getattr(x, "dtype", None) if aval is None else aval.dtype) is BOOL


def scalar(value: Any, dtype: Any) -> Any:
    """Return the Python or NumPy number ``value`` as a NumPy scalar of ``dtype``."""
    if type(value) is Dim:
        return convert(value.__jax_array__(), dtype)
    return kept(cast(np.asarray(value), dtype)[()])


def like(x: Any, value: Any) -> Any:
    """Return the Python number ``value`` in the dtype of ``x``: weak if ``x`` is a weak scalar.

    Beside a weak array of higher rank it is strong, and so is what is computed of both.
    """
    return scalar(value, aval_of(x).dtype) if aval_of(x).shape else weakly_like(x, value)


def weakly_like(x: Any, value: Any) -> Any:
    """Return the Python number ``value`` in the dtype of ``x``, as weak as ``x``."""
    aval = aval_of(x)
    weak = aval.weak_type and not dtypes.is_bool(aval.dtype)
    return weak_scalar(value, aval.dtype) if weak else scalar(value, aval.dtype)


# -- dtypes ----------------------------------------------------------------------------------------


def convert_value(x: Any, dtype: Any, weak: bool) -> Any:
    """Return ``x`` in ``dtype`` and weakness; numbers known in Python stay literals.

    It warns if a complex number loses its imaginary part.
    """
    kind = type(x)
    if kind in dtypes.PYTHON_NUMBERS:
        if kind is complex:
            warn_of_imaginary_part(dtype)
        return weak_scalar(x, dtype) if weak else scalar(x, dtype)
    if isinstance(x, np.generic) or (kind is np.ndarray and not x.shape):
        if x.dtype.kind == "c":
            warn_of_imaginary_part(dtype)
        if weak:
            return weak_scalar(in_bits(x), dtype)
        return kept(x) if x.dtype == dtype else scalar(in_bits(x), dtype)
    aval = aval_of(x)
    if aval.dtype == dtype and aval.weak_type == weak:
        return x
    if dtypes.is_complex(aval.dtype):
        warn_of_imaginary_part(dtype)
    return convert(x, dtype, weak)


def in_bits(x: Any) -> Any:
    """Return a NumPy number as arrays hold it: of a 64-bit integer the low 32 bits, without x64."""
    return x.astype(dtypes.canonicalize(x.dtype)) if x.dtype.kind in "iu" else x


def _types(args: Sequence[Any]) -> list[tuple[Any, bool]]:
    return [(a.dtype, a.weak_type) for a in map(aval_of, args)]


def join_types(args: Sequence[Any], name: str = "") -> tuple[Any, bool]:
    """Return the (dtype, weak) in which ``args`` meet; extended dtypes meet only their like.

    Raises: TypeError that names the function ``name``, if one is given, where an extended dtype
    meets another; TypePromotionError.
    """
    types = _types(args)
    first = types[0]
    if name and dtypes.float0 in (dtype for dtype, _ in types):
        raise promotion.no_numbers(name)
    if len(types) == 1:
        return first
    if name and len(set(types)) > 1 and any(dtypes.is_extended(dtype) for dtype, _ in types):
        shown = ", ".join(dtypes.short_name(d) if dtypes.is_extended(d) else d.name
                          for d, _ in types)
        raise errors.explained(
            errors.DTypeError, f"{name}.C3", f"{name} does not accept dtypes {shown}.",
            advice="PRNG keys take part in no arithmetic; use their numbers: random.key_data(key).")
    return promotion.lattice_join(*types)


def promote_dtypes(*args: Any, name: str = "") -> list[Any]:
    """Return ``args`` in the one dtype in which they meet; ``name`` is of the calling function.

    Raises: TypePromotionError where no implicit conversion is allowed.
    """
    dtype, weak = join_types(args, name)
    return [convert_value(x, dtype, weak) for x in args]


def promote_dtypes_inexact(*args: Any, name: str = "") -> list[Any]:
    """Return ``args`` in the one floating or complex dtype in which they meet."""
    dtype, weak = join_types(args, name)
    if dtypes.is_extended(dtype):
        return list(args)
    weak = weak and not dtypes.is_bool(dtype)
    dtype = dtypes.to_inexact(dtype)
    return [convert_value(x, dtype, weak) for x in args]


# -- shapes ----------------------------------------------------------------------------------------


def promote_shapes(name: str, *args: Any) -> list[Any]:
    """Return ``args`` with leading axes of size 1 up to one rank; scalars stay scalars.

    Raises: ShapeError if the shapes do not fit; ValueError where rank promotion is off.
    """
    shapes = [np.shape(x) if type(x) in dtypes.PYTHON_NUMBERS else aval_of(x).shape for x in args]
    ranks = {len(s) for s in shapes if s}
    if len(ranks) <= 1:
        return list(args)
    joined = broadcast_shapes(*shapes)
    mode = config.numpy_rank_promotion.value
    if mode != "allow":
        _forbid_rank_promotion(name, shapes, mode)
    return [with_rank(x, s, len(joined)) for x, s in zip(args, shapes)]


def with_rank(x: Any, shape: tuple[int, ...], rank: int) -> Any:
    """Return ``x``, of ``shape``, with leading axes of size 1 up to ``rank``, unless a scalar."""
    missing = rank - len(shape)
    if not shape or not missing:
        return x
    return bind(BroadcastInDim((1,) * missing + shape, tuple(range(missing, rank))), x)


def broadcast_given(shapes: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape to which ``shapes``, as a user wrote them, broadcast.

    Raises: ShapeError if there is none, or a size is negative.
    """
    sizes = [as_shape(shape) for shape in shapes]
    for shape in sizes:
        if any(type(n) is int and n < 0 for n in shape):
            raise errors.explained(
                errors.ShapeError, "broadcast.C2", "Only non-negative indices are allowed when "
                f"broadcasting static shapes, but got shape {shape}.",
                advice="A size of 0 gives an empty array.")
    return broadcast_shapes(*sizes)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which ``shapes`` broadcast, trailing axes aligned.

    Raises: ShapeError if two sizes of an axis differ and neither is 1.
    """
    if not shapes:
        return ()
    rank = max(map(len, shapes))
    out = []
    for axis in range(-rank, 0):
        sizes = {s[axis] for s in shapes if len(s) >= -axis} - {1}
        if len(sizes) > 1:
            raise errors.explained(
                errors.ShapeError, "broadcast.C1",
                f"Incompatible shapes for broadcasting: shapes={list(shapes)}",
                advice="Trailing axes are aligned; their sizes must be equal, or 1. Add an axis "
                "with x[:, None], or reshape.")
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def broadcast_to(x: Any, shape: tuple[int, ...], sharding: Any = None) -> Any:
    """Return ``x`` broadcast to ``shape``, trailing axes aligned; ``x`` itself if it has it.

    ``sharding`` is that of its type, along Explicit mesh axes, or None.
    """
    have = aval_of(x).shape
    if have == shape:
        return x
    trailing = tuple(range(len(shape) - len(have), len(shape)))
    try:
        return bind(BroadcastInDim(shape, trailing, sharding), x)
    except errors.ShapeError:
        check_broadcast("broadcast", aval_of(x), shape)
        raise


def broadcasts(have: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether a value of shape ``have`` broadcasts to ``shape``."""
    return len(have) <= len(shape) and all(n in (1, m) for n, m in zip(have[::-1], shape[::-1]))


def check_broadcast(tag: str, aval: Any, shape: tuple[int, ...]) -> None:
    """Refuse a value of type ``aval`` that does not broadcast to ``shape``.

    Raises: ShapeError if the sizes of an axis differ, or there are too few axes.
    """
    have = aval.shape
    if len(shape) < len(have):
        raise errors.explained(
            errors.ShapeError, f"{tag}.C2",
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={have} shape={shape}",
            advice="Broadcasting adds axes; to remove some, use reshape or squeeze.")
    if not broadcasts(have, shape):
        sizes = ",".join(map(str, shape))
        raise errors.explained(
            errors.ShapeError, f"{tag}.C1",
            f"Incompatible types for broadcasting: input type={aval.str_short()} and requested "
            f"type={aval.dtype.name}[{sizes}]",
            advice="Only axes of size 1 are repeated.")


def broadcast_together(*args: Any, own: int = 0) -> list[Any]:
    """Return ``args`` all broadcast to the shape in which they meet, sharded as they agree.

    own: how many of its last axes each keeps as they are.
    Raises: ValueError for shapes that do not broadcast, ShardingTypeError for such shardings.
    """
    avals = [aval_of(x) for x in args]
    met = [len(a.shape) - own for a in avals]
    batch = broadcast_shapes(*[a.shape[:n] for a, n in zip(avals, met)])
    shapes = [(*batch, *a.shape[n:]) for a, n in zip(avals, met)]
    if not Seen.placements or all(a.shape == shape for a, shape in zip(avals, shapes)):
        return [broadcast_to(x, shape) for x, shape in zip(args, shapes)]
    entries = agreed([entries_of(a)[:n] for a, n in zip(avals, met)], len(batch))
    if entries is None:
        raise errors.explained(
            ShardingTypeError, "broadcast.S1",
            "broadcast_shardings got incompatible shardings for broadcasting: "
            f"{', '.join(str(entries_of(a)) for a in avals)}.",
            advice="Reshard one of them as the other is: jax.reshard(x, P(...)).")
    like = next((a.explicit for a in avals if a.explicit is not None), None)
    sums = next((a.sums for a in avals if a.sums.any), NO_SUMS)
    found = []
    for x, aval, n, shape in zip(args, avals, met, shapes):
        wanted = (*entries, *entries_of(aval)[n:])
        if aval.shape != shape or entries_of(aval) != wanted:
            sharding = like and with_entries(like, wanted, len(shape), sums)
            axes = tuple(range(len(shape) - len(aval.shape), len(shape)))
            x = bind(BroadcastInDim(shape, axes, sharding), x)
        found.append(x)
    return found


def if_else(condition: Any, yes: Any, no: Any) -> Any:
    """Return ``yes`` where ``condition``, else ``no``: operands of one dtype, broadcast.

    Where one of them is weak and the other is not, both are made strong.
    """
    a, b = aval_of(yes), aval_of(no)
    if a.weak_type != b.weak_type:
        yes, no = convert(yes, a.dtype), convert(no, b.dtype)
    if aval_of(condition).shape:
        condition, yes, no = broadcast_together(condition, yes, no)
    else:
        yes, no = broadcast_together(yes, no)
    if Seen.placements:  # a mask made of counted places has no sharding
        given = [aval_of(x) for x in (yes, no, condition)]
        found = next((a for a in given if a.explicit is not None), None)
        if found is not None:
            condition, yes, no = (reshard_like(x, found) for x in (condition, yes, no))
    return select_n(condition, no, yes)


def _forbid_rank_promotion(name: str, shapes: Sequence[tuple[int, ...]], mode: str) -> None:
    shown = " ".join(str(s) for s in shapes)
    refuse_rank_promotion(
        f"Following NumPy automatic rank promotion for {name} on shapes {shown}." if mode == "warn"
        else f"Operands could not be broadcast together for {name} on shapes {shown} and with the "
        "config option jax_numpy_rank_promotion='raise'.", stacklevel=6)


def refuse_rank_promotion(sentence: str, stacklevel: int = 5) -> None:
    """Warn or raise with ``sentence`` as ``numpy_rank_promotion`` says; pass where it allows.

    Raises: ValueError under 'raise'.
    """
    mode = config.numpy_rank_promotion.value
    if mode == "warn":
        warnings.warn(
            f"{sentence} Set the jax_numpy_rank_promotion config option to 'allow' to disable this "
            f"warning; for more information, see {RANK_HELP}.", stacklevel=stacklevel)
    elif mode == "raise":
        raise errors.explained(
            errors.ArgumentError, "broadcast.C2", sentence,
            advice=f"Add the missing axes yourself: x[None]. See {RANK_HELP}.")


# -- both at once ----------------------------------------------------------------------------------


def agree(args: Sequence[Any]) -> bool:
    """Return whether all of ``args`` are arrays of one shape, dtype and weakness.

    Two weak booleans do not agree: they meet in the strong one.  Nor do weak numbers of 64 bits
    while ``enable_x64`` is off: they meet in 32.
    """
    for x in args:  # a class with ``__jax_array__`` may have the attributes of its array, too
        if aval_functions.get(type(x)) is not own_aval:
            return False
    a = args[0].aval
    for x in args[1:]:
        b = x.aval
        if a is not b and (a.shape != b.shape or a.dtype is not b.dtype
                           or a.weak_type is not b.weak_type):
            return False
    return len(args) == 1 or not a.weak_type or (
        a.dtype is not BOOL and dtypes.computed(a.dtype, True) is a.dtype)


def promoted_quickly(args: Sequence[Any]) -> Sequence[Any] | None:
    """Return the promoted ``args`` where that needs no lattice; None: go the long way.

    They are arrays of one type, which stay as they are, or an array and a Python number.
    """
    if not config.shortcuts.value:
        return None
    return args if agree(args) else with_number(args)


def promote_args(name: str, *args: Any) -> Sequence[Any]:
    """Return the operands of ``name`` in one dtype and rank.

    Raises: TypeError for lists and other non-arrays; TypePromotionError; ShapeError.
    """
    quick = promoted_quickly(args)
    if quick is not None:
        return quick
    check_arraylike(name, *args)
    values = [as_value(x) for x in args]
    return promote_shapes(name, *promote_dtypes(*values, name=name))


# The dtypes that a Python number joins without changing them, and how it becomes a scalar of one.
_TAKES_INT = {np.dtype(t): t for t in (np.int32, np.int64, np.float32, np.float64)}
_TAKES_FLOAT = {np.dtype(t): t for t in (np.float32, np.float64)}


def with_number(args: Sequence[Any]) -> Sequence[Any] | None:
    """Return ``args`` if they are an array and a Python number it can take, else None.

    The commonest case, ``x * 2``, without the lattice: the number becomes a scalar of x's dtype.
    """
    if len(args) != 2:
        return None
    x, y = args
    number, array = (x, y) if type(x) is int or type(x) is float else (y, x)
    table = _TAKES_INT if type(number) is int else _TAKES_FLOAT if type(number) is float else None
    if table is None or aval_functions.get(type(array)) is not own_aval or not -1e9 < number < 1e9:
        return None
    aval = array.aval
    if aval.weak_type:  # two weak ones of one dtype, as a loop's counter and its step
        return args if aval_of(number).dtype == aval.dtype else None
    make = table.get(aval.dtype)
    if make in (np.int64, np.float64) and not config.enable_x64.value:
        return None  # an array that was made while 64-bit types were on
    if make is None or config.numpy_dtype_promotion.value != "standard":
        return None
    return (make(x), y) if number is x else (x, make(y))


def promote_args_inexact(name: str, *args: Any) -> Sequence[Any]:
    """Return the operands of ``name`` in one floating or complex dtype and one rank.

    Raises: as ``promote_args``.
    """
    quick = promoted_quickly(args)
    if quick is not None and dtypes.is_inexact(dtype_of(quick[0])):
        return quick
    check_arraylike(name, *args)
    values = [as_value(x) for x in args]
    return promote_shapes(name, *promote_dtypes_inexact(*values, name=name))


def promote_args_numeric(name: str, *args: Any) -> Sequence[Any]:
    """Return the operands of ``name`` in one dtype and one rank; booleans become int32.

    Raises: as ``promote_args``.
    """
    args = tuple(promote_args(name, *args))
    if not is_boolean(args[0]):
        return args
    return [convert_value(x, INT32, False) for x in args]
