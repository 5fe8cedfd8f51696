"""How are arrays multiplied along axes?

Everything here is ``dot_general`` with the right axes: ``dot``, ``matmul``, ``tensordot``,
``einsum``, for which opt_einsum finds the order of contraction.

Read before: ``ops.contract``, ``numpy.promote``.
Invariant: operands meet in one dtype before they are multiplied, and the result has that dtype.
Source: documentation of numpy.matmul, numpy.einsum; opt_einsum.
"""

from __future__ import annotations

import collections
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of, represented_aval
from saem.core.dimensions import Dim
from saem.core.lazy import later
from saem.core.trace import bind
from saem.jit.library import library_function
from saem.numpy.arithmetic import multiply
from saem.numpy.axes import refuse_out
from saem.numpy.promote import (
    as_value,
    check_arraylike,
    convert_value,
    join_types,
    promote_dtypes,
)
from saem.ops.arithmetic import mul
from saem.ops.compare import bitwise_and, eq
from saem.ops.contract import PrecisionLike, dot_general, product_dtype
from saem.ops.convert import convert
from saem.ops.filling import broadcasted_iota
from saem.ops.linear import (
    BroadcastInDim,
    broadcast_in_dim,
    moveaxis,
    permute,
    reduce_sum,
    zeros_of,
)
from saem.ops.numbers import conj
from saem.ops.reduce import reduce_or
from saem.ops.reshard import reshard_to, with_rank
from saem.ops.select import select_n
from saem.ops.shape import canonical_axis, expand_dims, reshape, squeeze
from saem.placement.shardings import check_requested, named_sharding, requested_sharding
from saem.typing import Array, ArrayLike, DTypeLike

opt_einsum: Any = later("opt_einsum")  # expensive to load, and only einsum needs it

_STATIC = ("precision", "preferred_element_type", "out_sharding")


def _shape(x: Any) -> tuple[int, ...]:
    return represented_aval(x).shape


def _contract(x: Any, y: Any, contract: tuple, batch: tuple = ((), ()), *, precision: Any = None,
              preferred: Any = None, out_sharding: Any = None, dot: Callable = dot_general) -> Any:
    """Return dot_general of ``x`` and ``y`` in the dtype (and weakness) in which they meet.

    Operands of two dtypes are multiplied as they are: no wider copy of one is made before.
    """
    (x, y), dtype, weak = _meeting((x, y), preferred)
    given = {} if out_sharding is None else {"out_sharding": out_sharding}
    out = dot(x, y, (contract, batch), precision, preferred_element_type=dtype, **given)
    return convert(out, aval_of(out).dtype, weak)


def _meeting(values: Sequence, preferred: Any) -> tuple[list, Any, bool]:
    """Return the operands of a product, and the dtype and weakness of its result.

    A weakly typed operand, which may be of a wider dtype than the result, is converted to it.
    """
    if preferred is not None:
        return [as_value(x) for x in values], preferred, False
    dtype, weak = join_types(values)
    values = [as_value(x) for x in values]
    return [convert_value(x, dtype, weak) if aval_of(x).weak_type else x
            for x in values], dtype, weak


def _check_sizes(name: str, x: Any, y: Any, left: Sequence[int], right: Sequence[int]) -> None:
    """Refuse operands of ``name`` whose axes that are summed over have other sizes."""
    a, b = (tuple(_shape(v)[i] for i in axes) for v, axes in ((x, left), (y, right)))
    if a != b:
        raise errors.explained(
            errors.ShapeError, f"{name}.C2",
            "dot_general requires contracting dimensions to have the same shape, got "
            f"{a} and {b}.\n{name} was given operands of shapes {_shape(x)} and {_shape(y)}.",
            advice="Transpose one operand (x.T), or check which axis should be summed over.")


def _rearranged(sharding: Any, labels: Sequence, order: Sequence) -> Any:
    """Return a sharding of axes ``labels`` as one of the same axes in ``order``."""
    explicit = requested_sharding(sharding, len(labels), "dot_general")
    if explicit is None:
        return None
    spec = with_rank(explicit, len(labels)).spec
    entries = dict(zip(labels, spec.partitions))
    return explicit.update(spec=spec.update(partitions=[entries[label] for label in order]))


@library_function(static_argnames=_STATIC)
def dot(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None,
        out_sharding: Any = None) -> Any:
    """Return the sum over the last axis of ``a`` and the second to last (or only) axis of ``b``.

    >>> jnp.dot(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    check_arraylike("dot", a, b)
    m, n = len(_shape(a)), len(_shape(b))
    if not m or not n:
        return _contract(a, b, ((), ()), precision=precision, preferred=preferred_element_type,
                         out_sharding=out_sharding)
    axes = ((m - 1,), (max(n - 2, 0),))
    _check_sizes("dot", a, b, *axes)
    return _contract(a, b, axes, precision=precision, preferred=preferred_element_type,
                     out_sharding=out_sharding)


@library_function(static_argnames=_STATIC)
def matmul(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None,
           out_sharding: Any = None) -> Any:
    """Return the matrix product over the last two axes; leading axes broadcast.

    Raises: ValueError for scalars, TypeError if the inner sizes differ.

    >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    check_arraylike("matmul", a, b)
    for position, x in enumerate((a, b)):
        if not _shape(x):
            raise errors.explained(
                errors.ArgumentError, "matmul.C1",
                f"matmul input operand {position} must have ndim at least 1, but it has ndim 0",
                advice="Use * to multiply by a scalar.")
    row, column = len(_shape(a)) == 1, len(_shape(b)) == 1
    inner = len(_shape(b)) - (1 if column else 2)
    _check_sizes("matmul", a, b, (-1,), (inner,))
    lead_a = _shape(a)[:-1] if row else _shape(a)[:-2]
    lead_b = _shape(b)[:-1] if column else _shape(b)[:-2]
    lead_a, lead_b = (() if row else lead_a), (() if column else lead_b)
    options = {"precision": precision, "preferred": preferred_element_type,
               "out_sharding": out_sharding}
    return _matmul(a, b, row, column, lead_a, lead_b, options)


def _matmul(a: Any, b: Any, row: bool, column: bool, lead_a: tuple, lead_b: tuple,
            options: dict[str, Any]) -> Any:
    """Multiply with leading axes: those both operands have are batch axes, others are free."""
    for n, m in zip(reversed(lead_a), reversed(lead_b)):
        if n != m and 1 not in (n, m):
            raise errors.explained(
                errors.ShapeError, "matmul.C3",
                f"Incompatible types for matmul arguments: {aval_of(a).str_short()} and "
                f"{aval_of(b).str_short()}", advice="The leading axes must broadcast.")
    axes = _matmul_axes(row, column, lead_a, lead_b)
    a = squeeze(a, axes.drop_a) if axes.drop_a else a
    b = squeeze(b, axes.drop_b) if axes.drop_b else b
    options["out_sharding"] = _rearranged(options["out_sharding"], axes.labels, axes.order)
    out = permute(_contract(a, b, axes.summed, axes.batch, **options), axes.permutation)
    return expand_dims(out, axes.missing) if axes.missing else out


class _Axes(NamedTuple):
    """How a product of stacks of matrices is one ``dot_general``.

    Axes of size 1 that stretch are dropped from the operands; the ``summed`` and the ``batch`` axes
    are those of what remains.  The result has its axes in ``order`` of ``labels``; ``permutation``
    sorts them, and ``missing`` ones are then added.
    """

    drop_a: tuple[int, ...]
    drop_b: tuple[int, ...]
    summed: tuple
    batch: tuple
    labels: tuple
    order: tuple
    permutation: tuple[int, ...]
    missing: tuple[int, ...]


@functools.lru_cache(4096)
def _matmul_axes(row: bool, column: bool, lead_a: tuple, lead_b: tuple) -> _Axes:
    """Return the axes of the product of a row or matrices and a column or matrices."""
    rank = max(len(lead_a), len(lead_b))
    sizes_a = (1,) * (rank - len(lead_a)) + lead_a
    sizes_b = (1,) * (rank - len(lead_b)) + lead_b
    both = [i for i in range(rank) if sizes_a[i] == sizes_b[i] != 1
            or (sizes_a[i] == sizes_b[i] == 1 and i >= rank - min(len(lead_a), len(lead_b)))]
    drop_a = [i - rank + len(lead_a) for i in range(rank)
              if i not in both and sizes_a[i] == 1 and i >= rank - len(lead_a)]
    drop_b = [i - rank + len(lead_b) for i in range(rank)
              if i not in both and sizes_b[i] == 1 and i >= rank - len(lead_b)]
    places_a = [i for i in range(rank) if i >= rank - len(lead_a)
                and i - rank + len(lead_a) not in drop_a]
    places_b = [i for i in range(rank) if i >= rank - len(lead_b)
                and i - rank + len(lead_b) not in drop_b]
    batch = (tuple(places_a.index(i) for i in both), tuple(places_b.index(i) for i in both))
    inner_a = len(places_a) + (0 if row else 1)
    # dot_general gives: batch axes, free axes of a, free axes of b.
    order: list[Any] = [*both, *(i for i in places_a if i not in both)]
    order += [] if row else ["row"]
    order += [i for i in places_b if i not in both]
    order += [] if column else ["column"]
    wanted: list[Any] = [i for i in range(rank) if i in order]
    wanted += [] if row else ["row"]
    wanted += [] if column else ["column"]
    missing = [i for i in range(rank) if i not in wanted]
    whole = (*range(rank), *(name for name in wanted if isinstance(name, str)))
    return _Axes(tuple(drop_a), tuple(drop_b), ((inner_a,), (len(places_b),)), batch, whole,
                 tuple(order), tuple([order.index(i) for i in wanted]), tuple(missing))


@library_function(static_argnames=("precision", "preferred_element_type"))
def vdot(a: ArrayLike, b: ArrayLike, *, precision: Any = None,
         preferred_element_type: Any = None) -> Any:
    """Return the sum of conj(a) * b over all elements.

    >>> jnp.vdot(jnp.array([1j, 2]), jnp.array([1j, 2]))
    Array(5.+0.j, dtype=complex64)
    """
    check_arraylike("vdot", a, b)
    flat = [reshape(x, (math.prod(_shape(x)),)) for x in (a, b)]
    if aval_of(a).dtype.kind == "c":
        flat[0] = conj(flat[0])
    _check_sizes("vdot", *flat, (0,), (0,))
    return _contract(*flat, ((0,), (0,)), precision=precision, preferred=preferred_element_type)


@library_function(static_argnames=("precision", "preferred_element_type"))
def inner(a: ArrayLike, b: ArrayLike, *, precision: Any = None,
          preferred_element_type: Any = None) -> Any:
    """Return the sum over the last axes of both.

    >>> jnp.inner(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    check_arraylike("inner", a, b)
    if not _shape(a) or not _shape(b):
        if preferred_element_type is not None:
            dtype = dtypes.canonicalize(preferred_element_type, explicit=True, where="inner")
            a, b = convert(a, dtype), convert(b, dtype)
        return multiply(a, b)
    _check_sizes("inner", a, b, (-1,), (-1,))
    return _contract(a, b, ((len(_shape(a)) - 1,), (len(_shape(b)) - 1,)), precision=precision,
                     preferred=preferred_element_type)


@library_function
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Any:
    """Return all products of an element of ``a`` with one of ``b``, both flattened.

    >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    refuse_out("outer", out)
    check_arraylike("outer", a, b)
    a, b = promote_dtypes(a, b)
    a, b = (reshape(x, (math.prod(_shape(x)),)) for x in (a, b))
    n, m = _shape(a)[0], _shape(b)[0]
    return multiply(broadcast_in_dim(a, (n, 1), (0,)), broadcast_in_dim(b, (1, m), (1,)))


def tensordot(a: ArrayLike, b: ArrayLike, axes: Any = 2, *, precision: Any = None,
              preferred_element_type: Any = None, out_sharding: Any = None) -> Any:
    """Return the sum over ``axes``: a number of trailing and leading axes, or two lists of axes.

    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), 1).shape
    (2, 4)
    """
    check_arraylike("tensordot", a, b)
    m, n = len(_shape(a)), len(_shape(b))
    if isinstance(axes, int):
        if axes > min(m, n):
            raise errors.explained(
                errors.ShapeError, "tensordot.C1",
                f"Number of tensordot axes (axes {axes}) exceeds input ranks ({_shape(a)} and "
                f"{_shape(b)})", advice="Give at most the smaller rank.")
        pair = (tuple(range(m - axes, m)), tuple(range(axes)))
    else:
        if not isinstance(axes, (tuple, list)) or len(axes) != 2:
            raise errors.explained(
                errors.ArgumentTypeError, "tensordot.C2",
                "tensordot axes argument must be an int, a pair of ints, or a pair of lists/tuples "
                f"of ints. Got {axes}", advice="For example axes=1, or axes=((0, 1), (1, 0)).")
        as_list = [(x,) if isinstance(x, int) else tuple(x) for x in axes]
        if len(as_list[0]) != len(as_list[1]):
            raise errors.explained(
                errors.ShapeError, "tensordot.C3",
                f"tensordot requires axes lists to have equal length, got {axes[0]} and {axes[1]}.",
                advice="Each axis of the first list is summed with that of the second.")
        pair = (tuple(canonical_axis(i, m) for i in as_list[0]),
                tuple(canonical_axis(i, n) for i in as_list[1]))
    _check_sizes("tensordot", a, b, *pair)
    return _tensordot(a, b, axes=pair, precision=precision, preferred=preferred_element_type,
                      out_sharding=out_sharding)


@library_function(static_argnames=("axes", "precision", "preferred", "out_sharding"))
def _tensordot(a: Any, b: Any, *, axes: Any, precision: Any, preferred: Any, out_sharding: Any
               ) -> Any:
    return _contract(a, b, axes, precision=precision, preferred=preferred,
                     out_sharding=out_sharding)


def _along(name: str, a: Any, b: Any, axis: int, precision: Any, preferred: Any) -> Any:
    """Return the sum of conj(a) * b over ``axis``, other axes broadcast."""
    if not _shape(a) or not _shape(b):
        raise errors.explained(
            errors.JAXIndexError, f"{name}.C1", "tuple index out of range: "
            f"{name} needs axes to sum over, got shapes {_shape(a)} and {_shape(b)}.",
            advice="Use * to multiply by a scalar.")
    places = [canonical_axis(axis, len(_shape(x))) for x in (a, b)]
    if _shape(a)[places[0]] != _shape(b)[places[1]]:
        raise errors.explained(
            errors.ShapeError, f"{name}.C2",
            f"axes must match; got shapes {_shape(a)} and {_shape(b)} with axis={axis}",
            advice="The vectors to be multiplied must have one length.")
    a, b = [moveaxis(x, i, len(_shape(x)) - 1) for x, i in zip((a, b), places)]
    if aval_of(a).dtype.kind == "c":
        a = conj(a)
    return _matmul(a, b, True, True, _shape(a)[:-1], _shape(b)[:-1],
                   {"precision": precision, "preferred": preferred, "out_sharding": None})


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """Return the dot products of the vectors along ``axis`` of ``x1``, conjugated, and of ``x2``.

    The other axes broadcast: (…, n) and (…, n) give (…).
    Raises: ShapeError if the vectors differ in length.

    >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    check_arraylike("vecdot", x1, x2)
    return _along("vecdot", as_value(x1), as_value(x2), axis, precision, preferred_element_type)


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return the products of matrices (last two axes) with vectors (last axis).

    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    check_arraylike("matvec", x1, x2)
    _check_ranks("matvec", x1, x2, 2, 1)
    _check_sizes("matvec", x1, x2, (-1,), (-1,))
    return _stacked_product(x1, x2, row=False, column=True)


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Any:
    """Return the products of conjugated vectors (last axis) with matrices (last two axes).

    >>> jnp.vecmat(jnp.array([1, 1]), jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    check_arraylike("vecmat", x1, x2)
    _check_ranks("vecmat", x1, x2, 1, 2)
    _check_sizes("vecmat", x1, x2, (-1,), (-2,))
    rows = conj(x1) if represented_aval(x1).dtype.kind == "c" else x1
    return _stacked_product(rows, x2, row=True, column=False)


def _check_ranks(name: str, x1: Any, x2: Any, least: int, other: int) -> None:
    if len(_shape(x1)) < least or len(_shape(x2)) < other:
        raise errors.explained(
            errors.ArgumentError, f"{name}.C1",
            f"{name} needs operands of at least {least} and {other} axes, got shapes "
            f"{_shape(x1)} and {_shape(x2)}.", advice="For two vectors use jnp.vecdot.")


@library_function(static_argnames=("row", "column"))
def _stacked_product(a: Any, b: Any, *, row: bool, column: bool) -> Any:
    """Return products of matrices, of which ``a`` may hold rows instead, ``b`` columns."""
    lead_a, lead_b = _shape(a)[:-1 if row else -2], _shape(b)[:-1 if column else -2]
    return _matmul(a, b, row, column, lead_a, lead_b,
                   {"precision": None, "preferred": None, "out_sharding": None})


@library_function
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the Kronecker product: every element of ``a`` times ``b``.

    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)
    """
    check_arraylike("kron", a, b)
    a, b = promote_dtypes(a, b)
    rank = max(len(_shape(a)), len(_shape(b)))
    sizes = [(1,) * (rank - len(_shape(x))) + _shape(x) for x in (a, b)]
    a, b = (reshape(x, size) for x, size in zip((a, b), sizes))
    spread_a = [n for size in sizes[0] for n in (size, 1)]
    spread_b = [n for size in sizes[1] for n in (1, size)]
    out = mul(broadcast_in_dim(a, spread_a, tuple(range(0, 2 * rank, 2))),
              broadcast_in_dim(b, spread_b, tuple(range(1, 2 * rank, 2))))
    return reshape(out, tuple(n * m for n, m in zip(*sizes)))


# -- einsum ----------------------------------------------------------------------------------------


def einsum(subscripts: Any, /, *operands: Any, out: None = None, optimize: Any = "auto",
           precision: Any = None, preferred_element_type: Any = None,
           _dot_general: Callable = dot_general, out_sharding: Any = None) -> Any:
    """Return the sum of products that ``subscripts`` describes, as ``'ij,jk->ik'``.

    ``_dot_general`` may be another function that contracts two operands, as libraries pass one.
    Raises: ValueError for subscripts that do not fit the operands.

    >>> jnp.einsum("ij,j->i", jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.einsum is not supported: arrays do "
                                  "not change; use the result.")
    if out_sharding is not None:
        check_requested(out_sharding, "einsum")
    order = {True: "optimal", False: None}.get(optimize, optimize) \
        if isinstance(optimize, bool) else optimize
    check_arraylike("einsum", *_arrays(subscripts, operands))
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonicalize(preferred_element_type, explicit=True,
                                                     where="einsum")
    if isinstance(subscripts, str):
        text, values = subscripts, operands
    else:
        text, values = opt_einsum.parser.convert_interleaved_input((subscripts, *operands))
    # The order is chosen as if open sizes were 8.
    shapes = tuple([tuple([8 if isinstance(n, Dim) else n for n in _shape(x)]) for x in values])
    path = order or _from_left(len(values))
    if isinstance(path, list):
        path = tuple([tuple(places) if isinstance(places, list) else places for places in path])
    return _einsum([as_value(x) for x in values], contractions=_contractions(text, shapes, path),
                   precision=precision, preferred=preferred_element_type,
                   out_sharding=out_sharding, dot=_dot_general)


def _arrays(subscripts: Any, operands: tuple) -> tuple:
    """Return the arrays among the arguments of einsum: "ij,jk", x, y or x, [0, 1], y, [1, 2]."""
    everything = (subscripts, *operands)
    return operands if isinstance(subscripts, str) else everything[:len(everything) // 2 * 2:2]


def _from_left(count: int) -> Any:
    """Return the order of contraction in which ``count`` operands meet from left to right."""
    return [(0, 1)] * (count - 1) or [(0,)]


@functools.lru_cache(1024)
def _contractions(text: str, shapes: tuple, path: Any) -> tuple[tuple[tuple[int, ...], str], ...]:
    """Return the steps of an einsum: which operands meet, and the subscripts of their product."""
    chosen = list(path) if isinstance(path, tuple) else path
    _, steps = opt_einsum.contract_path(text, *shapes, shapes=True, optimize=chosen)
    return tuple((tuple(step[0]), step[2]) for step in steps.contraction_list)


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> Any:
    """Return the order of contraction that opt_einsum chooses, and a description of it.

    With optimize=False the operands meet from left to right.

    >>> jnp.einsum_path("ij,jk", jnp.ones((2, 3)), jnp.ones((3, 2)))[0]
    [(0, 1)]
    """
    if isinstance(optimize, bool):
        optimize = "optimal" if optimize else _from_left(len(_arrays(subscripts, operands)))
    return opt_einsum.contract_path(subscripts, *operands, optimize=optimize)


def contract_in_turn(values: list, *, contractions: Any, precision: Any, preferred: Any,
                     out_sharding: Any, dot: Callable) -> Any:
    """Return the einsum of ``values`` by its steps (see ``_contractions``)."""
    values, dtype, weak = _meeting(values, preferred)
    options = {"precision": precision, "preferred": dtype, "dot": dot}
    for count, (places, step) in enumerate(contractions, 1):
        if count == len(contractions):
            options["out_sharding"] = out_sharding
        terms, result = step.split("->")
        names = terms.split(",")
        chosen = [values.pop(i) for i in sorted(places, reverse=True)]
        pairs = list(zip(chosen, names))
        if len(pairs) == 1:
            out = _single(*pairs[0], result, dtype)
            explicit = named_sharding(options.get("out_sharding"), len(result))
            values.append(out if explicit is None else reshard_to(out, explicit))
            continue
        x, name = pairs[0]
        for number, (y, other) in enumerate(pairs[1:], 2):
            later = set(result).union(*(n for _, n in pairs[number:]))
            left = result if number == len(pairs) else "".join(
                dict.fromkeys(c for c in name + other if c in later))
            x, name = _pair(x, name, y, other, left, options), left
        values.append(x)
    (out,) = values
    return convert(out, dtype, weak)


@library_function(static_argnames=("contractions", "precision", "preferred", "out_sharding", "dot"))
def _einsum(values: list, **options: Any) -> Any:
    return contract_in_turn(values, **options)


def _total(x: Any, axes: tuple[int, ...], dtype: Any) -> Any:
    """Return the sum over ``axes``, at least in ``dtype``; of booleans whether any is true."""
    aval = aval_of(x)
    if not axes:
        return x
    if dtypes.is_bool(aval.dtype) and dtypes.is_bool(dtype):
        return reduce_or(x, axes)
    return reduce_sum(convert(x, product_dtype(aval.dtype, dtype), aval.weak_type), axes)


def _single(x: Any, name: str, result: str, dtype: Any) -> Any:
    """Return one operand with repeated labels on their diagonal, others summed, in order."""
    x, name = _plain(x, name, result, dtype)
    return permute(x, tuple(name.index(c) for c in result))


def _plain(x: Any, name: str, kept: str, dtype: Any) -> tuple[Any, str]:
    """Return ``x`` with each label of ``kept`` on one axis, the others summed in ``dtype``.

    Of axes with one label the diagonal is taken: what stands elsewhere is 0 before their sum.
    """
    counts = collections.Counter(name)
    x, name = _summed(x, name, [name.index(c) for c in name if counts[c] == 1 and c not in kept],
                      dtype)
    for label, count in counts.items():
        if count > 1:
            axes = [i for i, c in enumerate(name) if c == label]
            aval = aval_of(x)
            x = select_n(_diagonal(aval, axes), zeros_of(aval.strip_weak_type()), x)
            x, name = _summed(x, name, axes[:-1] if label in kept else axes, dtype)
    return x, name


def _summed(x: Any, name: str, gone: Sequence[int], dtype: Any) -> tuple[Any, str]:
    return _total(x, tuple(gone), dtype), "".join(c for i, c in enumerate(name) if i not in gone)


def _diagonal(aval: ShapedArray, axes: Sequence[int]) -> Any:
    """Return where in an array of ``aval`` the indices along ``axes`` are equal, sharded as it."""
    shape = aval.shape
    sizes = tuple(shape[i] for i in axes)
    counts = [broadcasted_iota("int32", sizes, i) for i in range(len(axes))]
    same = functools.reduce(bitwise_and, [eq(a, b) for a, b in itertools.pairwise(counts)])
    if aval.explicit is None:
        return broadcast_in_dim(same, shape, axes)
    return bind(BroadcastInDim(shape, tuple(axes), aval.explicit), same)


def _pair(x: Any, a: str, y: Any, b: str, result: str, options: dict[str, Any]) -> Any:
    """Return the contraction of two operands with labels ``a`` and ``b`` to labels ``result``."""
    x, a = _drop_thin(x, a, y, b)
    y, b = _drop_thin(y, b, x, a)
    x, a = _plain(x, a, b + result, options["preferred"])
    y, b = _plain(y, b, a + result, options["preferred"])
    batch = [c for c in result if c in a and c in b]
    summed = sorted(c for c in a if c in b and c not in result)
    pick = (tuple(a.index(c) for c in summed), tuple(b.index(c) for c in summed))
    shared = (tuple(a.index(c) for c in batch), tuple(b.index(c) for c in batch))
    for c in (*batch, *summed):
        if _shape(x)[a.index(c)] != _shape(y)[b.index(c)]:
            raise errors.explained(
                errors.ShapeError, "einsum.C1",
                f"einsum: label {c!r} has sizes {_shape(x)[a.index(c)]} and "
                f"{_shape(y)[b.index(c)]}.", advice="Axes with one label must have one size.")
    free_a = [c for c in a if c not in b]
    free_b = [c for c in b if c not in a]
    requested = options.get("out_sharding")
    order = [*batch, *free_b, *free_a]
    if order == list(result):  # then the product needs no transpose
        x, y, pick, shared = y, x, pick[::-1], shared[::-1]
    else:
        order = [*batch, *free_a, *free_b]
    if requested is not None:
        options = {**options, "out_sharding": _rearranged(requested, list(result), order)}
    out = _contract(x, y, pick, shared, **options)
    return permute(out, tuple(order.index(c) for c in result))


def _drop_thin(x: Any, name: str, y: Sequence, other: str) -> tuple[Any, str]:
    """Drop axes of size 1 that stand against a wider axis of the other operand."""
    thin = [i for i, c in enumerate(name) if c in other and _shape(x)[i] == 1
            and _shape(y)[other.index(c)] != 1]
    if not thin:
        return x, name
    return squeeze(x, thin), "".join(c for i, c in enumerate(name) if i not in thin)
