"""Which dtype do operands of different dtypes meet in?

In the least one above both in the *promotion lattice*: bool, integers, floats and complexes, with
three *weak* nodes, ``i*``, ``f*`` and ``c*``, for Python numbers, which have a kind but no width.
A path upwards is an implicit conversion; where two nodes have no least common one above them,
promotion is refused.

Source: "Type promotion semantics", JAX documentation (the published lattice).
Read before: ``core.dtypes``.  Read after: ``numpy`` (operators promote before they bind).
Invariant: ``join`` is commutative, and agrees with JAX on every pair of dtypes, weak and strong
(tests/kernel/test_dtypes.py).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from saem.core import dtypes
from saem.core.config import enable_x64, explicit_x64_dtypes, numpy_dtype_promotion
from saem.core.dtypes import NARROW_FLOATS, NARROW_SIGNED, NARROW_UNSIGNED, DType
from saem.core.errors import DTypeError, TypePromotionError, explained

WeakNode = str
Node = DType | WeakNode

TINY_INTEGERS = NARROW_SIGNED + NARROW_UNSIGNED
TINY_FLOATS = tuple(dtype for dtype in NARROW_FLOATS if dtype != np.dtype(dtypes.bfloat16))


def _nodes(*names: str) -> tuple[Node, ...]:
    weak_or_dtype = (n if n.endswith("*") else dtypes.as_dtype(n) for n in names)
    return tuple(weak_or_dtype)


def _edges(table: str) -> dict[Node, tuple[Node, ...]]:
    """Read lines ``a -> b c`` as {a: (b, c)}."""
    rows = (line.split("->") for line in table.strip().splitlines())
    return {_nodes(left.strip())[0]: _nodes(*right.split()) for left, right in rows}


# The lattice: from each node, the nodes directly above it.
STANDARD = _edges(
    """
    bool -> i*
    i* -> uint8 int8
    uint8 -> int16 uint16
    uint16 -> int32 uint32
    uint32 -> int64 uint64
    uint64 -> f*
    int8 -> int16
    int16 -> int32
    int32 -> int64
    int64 -> f*
    f* -> bfloat16 float16 c*
    bfloat16 -> float32
    float16 -> float32
    float32 -> float64 complex64
    float64 -> complex128
    c* -> complex64
    complex64 -> complex128
    complex128 ->
    """
)
STANDARD["i*"] += TINY_INTEGERS
STANDARD["f*"] += TINY_FLOATS
STANDARD.update(dict.fromkeys(TINY_INTEGERS + TINY_FLOATS, ()))

# Under numpy_dtype_promotion='strict' only weak nodes have anything above them.
_DTYPES = tuple(node for node in STANDARD if isinstance(node, np.dtype))
STRICT: dict[Node, tuple[Node, ...]] = {
    **dict.fromkeys(_DTYPES, ()),
    "i*": ("f*", *(d for d in _DTYPES if dtypes.is_integer(d))),
    "f*": ("c*", *(d for d in _DTYPES if dtypes.is_float(d))),
    "c*": tuple(d for d in _DTYPES if dtypes.is_complex(d)),
}
LATTICES = {"standard": STANDARD, "strict": STRICT}

_WEAK_NODE = {"int": "i*", "uint": "i*", "float": "f*", "complex": "c*"}
_WEAK_DTYPE = {"i*": np.dtype("int64"), "f*": np.dtype("float64"), "c*": np.dtype("complex128")}
_WIDEST = {
    "int": np.dtype("int64"),
    "uint": np.dtype("uint64"),
    "float": np.dtype("float64"),
    "complex": np.dtype("complex128"),
}

Typed = tuple[DType, bool]


@functools.cache
def _above(mode: str, node: Node) -> frozenset[Node]:
    """Return ``node`` and all nodes reachable upwards from it."""
    return frozenset((node,)).union(*(_above(mode, up) for up in LATTICES[mode][node]))


@functools.cache
def _least_above(mode: str, nodes: frozenset[Node]) -> Node | None:
    """Return the least node above all ``nodes``, None if there is none."""
    common = frozenset.intersection(*(_above(mode, node) for node in nodes))
    for node in common:
        if _above(mode, node) == common:
            return node
    return None


def _node(mode: str, dtype: DType, weak: bool) -> Node:
    """Return the lattice node of a dtype.

    Raises: ValueError for float0 and extended dtypes, TypeError for what no array can hold.
    """
    if dtype not in LATTICES[mode]:
        name = dtypes.short_name(dtype)
        if dtypes.scalar_kind(dtype) in ("extended", "float0"):
            raise explained(
                TypePromotionError,
                "promote.C1",
                f"dtype={name} is not a valid dtype for JAX type promotion.",
                advice="PRNG keys and float0 tangents take part in no arithmetic.",
            )
        raise explained(
            DTypeError,
            "promote.C2",
            f"dtype {name} is not a valid JAX array type. "
            "Only arrays of numeric types are supported by JAX.",
        )
    return _WEAK_NODE.get(dtypes.scalar_kind(dtype), dtype) if weak else dtype


@functools.cache
def _join(types: tuple[Typed, ...], mode: str) -> Typed:
    """Return the wide (not yet canonical) dtype and weakness in which ``types`` meet."""
    kinds = [dtypes.scalar_kind(dtype) for dtype, _ in types]
    if kinds[0] in ("extended", "float0") and len(set(types)) == 1:
        return types[0]
    weak = all(w for _, w in types)
    if mode == "standard" and weak:
        # All weak: their widths count among themselves.
        least = _least_above(mode, frozenset(_node(mode, d, False) for d, _ in types))
        if isinstance(least, np.dtype) and least in TINY_INTEGERS:
            least = None
    else:
        least = _least_above(mode, frozenset(_node(mode, d, w) for d, w in types))
    if least is None:
        raise _no_path(types, mode)
    if isinstance(least, str):
        return _WEAK_DTYPE[least], True
    return least, weak and dtypes.scalar_kind(least) != "bool"


def _no_path(types: tuple[Typed, ...], mode: str) -> Exception:
    names = ", ".join(repr(dtype.name + ("*" if weak else "")) for dtype, weak in types)
    sentence = f"Input dtypes ({names}) have no available implicit dtype promotion path"
    if mode == "strict":
        tag = "promote.C4"
        sentence += " when jax_numpy_dtype_promotion=strict"
        advice = "Try x.astype(...), or set jax_numpy_dtype_promotion to 'standard'."
    else:
        tag = "promote.C3"
        tiny = any(dtype in TINY_INTEGERS for dtype, _ in types)
        narrow = "integers of 1, 2 and 4 bits" if tiny else "floats of 4 and 8 bits"
        to = "int32" if tiny else "float32"
        advice = f"No {narrow} are converted implicitly. Try: x.astype('{to}')"
    if any(weak for _, weak in types):
        advice += "\nA star marks a weak type: that of a Python number, or of what came from one."
    return explained(TypePromotionError, tag, sentence + ".", advice=advice)


@functools.cache
def _canonical_join(a: Typed, b: Typed, x64: bool, explicit_x64: str, mode: str) -> Typed:
    dtype, weak = _join((a, b), mode)  # under these settings, which are the key
    return dtypes.computed(dtype, weak), weak


def join(a: Typed, b: Typed) -> Typed:
    """Return the canonical (dtype, weak) in which two operands meet; one look-up when seen before.

    Weak values that were made under another setting of ``enable_x64`` keep their widths.

    Raises: TypePromotionError where no implicit conversion is allowed.
    """
    return _canonical_join(a, b, enable_x64.value, explicit_x64_dtypes.value,
                           numpy_dtype_promotion.value)


def lattice_join(*types: Typed) -> Typed:
    """Return the canonical (dtype, weak) in which all ``types`` meet.

    Strong ones of 64 bits that are all the same stay so while those are off.

    Raises: TypePromotionError where no implicit conversion is allowed; ValueError for no types.
    """
    if not types:
        raise ValueError("at least one array or dtype is required")
    first = types[0]
    if first[0] in dtypes.TO_32_BITS and not first[1] and types.count(first) == len(types):
        return first
    if len(types) == 2:
        return join(*types)
    dtype, weak = _join(types, numpy_dtype_promotion.value)
    return dtypes.computed(dtype, weak), weak


def no_numbers(name: str = "") -> Exception:
    """Return the error of a function, called ``name``, that is given a float0 array."""
    return explained(
        DTypeError, "promote.C5",
        f"Called {name or 'a function'} with a float0 array. float0s do not support any operations "
        "by design because they are not compatible with non-trivial vector spaces. No implicit "
        "dtype conversion is done.",
        advice="Zeros of another dtype: jnp.zeros(x.shape, dtype).")


def promote_types(a: Any, b: Any) -> DType:
    """Return the dtype in which ``a`` and ``b`` meet, as wide as the wider of them.

    Without ``enable_x64`` it is 64 bits wide only where ``a`` or ``b`` is.  ``int``, ``float`` and
    ``complex`` themselves count as weak.
    Raises: TypePromotionError where no implicit conversion is allowed.
    """
    # By identity: NumPy's dtype float64 is equal to the class float.
    types = tuple((dtypes.as_dtype(t), t is int or t is float or t is complex) for t in (a, b))
    for dtype, _ in types:
        if dtypes.is_foreign(dtype):
            raise explained(TypePromotionError, "promote.C1",
                            f"{dtype=} is not a valid dtype for JAX type promotion.",
                            advice="Only arrays of numeric types are supported by JAX.")
    dtype = _join(types, numpy_dtype_promotion.value)[0]
    asked_wide = any(given != dtypes.canonicalize(given) for given, _ in types)
    return dtype if asked_wide else dtypes.computed(dtype)


def at_least(dtype: Any, least: Any) -> DType:
    """Return the dtype in which those two meet, also where types of arrays do not promote.

    It is for steps inside a library function: they raise no warning about the types of its user.
    Raises: TypePromotionError where the lattice has none, as for floats of 8 bits.
    """
    types = (dtypes.as_dtype(dtype), False), (dtypes.as_dtype(least), False)
    return _join(types, "standard")[0]


# -- values ----------------------------------------------------------------------------------------


def typed(value: Any) -> Typed:
    """Return the canonical (dtype, weak) of a number, an array, a tracer or a dtype.

    Raises: TypeError for a non-array, number or dtype.
    """
    kind = type(value)
    if kind in dtypes.PYTHON_SCALARS:
        return dtypes.default_dtype(kind), kind is not bool
    aval = getattr(value, "aval", None)
    if aval is not None and not callable(aval):  # a method, of arrays of libraries
        return aval.dtype, getattr(getattr(aval, "inner_aval", aval), "weak_type", False)
    dtype = getattr(value, "dtype", None)
    # a type of numbers that has a dtype, such as jnp.float64, is narrowed without a word
    typeless = not isinstance(dtype, np.dtype) and isinstance(
        value, (str, type, np.dtype, dtypes.ExtendedDType))
    if value is None or typeless:
        if isinstance(value, type) and value in dtypes.PYTHON_SCALARS:
            return dtypes.default_dtype(value), value is not bool
        value = dtypes.default_dtype(float) if value is None else value
        foreign = dtypes.is_foreign(dtypes.as_dtype(value))  # no node of the lattice: refused there
        return dtypes.canonicalize(value, explicit=not foreign, where="dtype"), False
    if dtype is not None:
        return dtypes.canonicalize(dtype), bool(getattr(value, "weak_type", False))
    for base in dtypes.PYTHON_NUMBERS:  # subclasses: IntEnum members, numpy's none
        if isinstance(value, base):
            return typed(base(value))
    raise TypeError(
        f"Cannot determine dtype of {value!r}: it is a {kind.__name__}, not an array, a number or "
        "a dtype. Try: jnp.asarray(...)"
    )


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Return the canonical dtype (and whether it is weak) in which all ``args`` meet.

    Weak ones alone meet in the dtype of a Python number.

    Raises: TypePromotionError where no implicit conversion is allowed; ValueError for no argument;
    TypeError for what has no dtype.

    >>> jax.dtypes.result_type(jnp.int32, jnp.float16)
    dtype('float16')
    """
    if not args:
        raise ValueError("at least one array or dtype is required")
    dtype, weak = lattice_join(*(typed(arg) for arg in args))
    kind = dtypes.scalar_kind(dtype)
    weak = weak and kind in _WIDEST
    if weak:  # of weak values only the kind counts
        dtype = dtypes.computed(_WIDEST[kind], True)
    return (dtype, weak) if return_weak_type_flag else dtype


def scalar_type_of(x: Any) -> type:
    """Return ``bool``, ``int``, ``float`` or ``complex``: what one element of ``x`` is.

    Raises: TypeError for what has no such type.

    >>> jax.dtypes.scalar_type_of(1.0)
    <class 'float'>
    """
    dtype, _ = typed(x)
    kinds = {"bool": bool, "int": int, "uint": int, "float": float, "complex": complex}
    kind = dtypes.scalar_kind(dtype)
    if kind not in kinds:
        raise TypeError(f"Invalid scalar value {x!r}: its dtype is {dtypes.short_name(dtype)}")
    return kinds[kind]
