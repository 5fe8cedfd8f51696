"""What is built of ``scan``, or does its work in parallel?

``map`` goes through rows one after another, or in batches; ``associative_scan`` gives all partial
results of an associative operation in a number of rounds that grows as the logarithm of the length.

Read before: ``loops.scan``.
Invariant: both give what the Python loop gives, to the rounding of the dtype.
Source: the documentation of jax.lax.map and jax.lax.associative_scan; Blelloch 1990, "Prefix Sums
and Their Applications".
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from saem.compile.dispatch import put
from saem.core import config, dtypes, errors, tree
from saem.core.avals import aval_of
from saem.core.dimensions import is_static
from saem.core.frames import boundary
from saem.core.trace import eval_trace, state
from saem.jit.call import JitCall
from saem.loops.carry import check_callable, run_at_once, trace_body
from saem.loops.scan import bind_scan, scan_in_python
from saem.ops.arithmetic import add
from saem.ops.compare import bitwise_or
from saem.ops.linear import literal
from saem.ops.shape import canonical_axis, concatenate, reshape, rev
from saem.ops.slicing import pad, slice_in_dim
from saem.ops.slicing import slice as slice_
from saem.transform.mapping import vmap


@boundary
def map_(f: Callable, xs: Any, *, batch_size: int | None = None) -> Any:
    """Return the stack of ``f(x)`` for each row ``x`` of ``xs``, in order.

    With ``batch_size``, so many rows at a time go through ``vmap(f)``; what is left over goes last.
    Raises: ValueError for stacks of different lengths.

    >>> lax.map(lambda x: x * x, jnp.array([1, 2, 3]))
    Array([1, 4, 9], dtype=int32)
    """
    if batch_size:  # 0 is as None
        return _in_batches(f, xs, batch_size)
    check_callable("map", "f argument", f)

    def step(_: Any, x: Any) -> Any:
        return (), f(x)

    if config.disable_jit.value:
        return scan_in_python("map", step, (), xs, None, False)[1]
    return bind_scan("map", step, step, (), xs, None)[1]


def _in_batches(f: Callable, xs: Any, batch_size: int) -> Any:
    leaves, structure = tree.flatten(xs)
    size = operator.index(batch_size)
    length = min((aval_of(x).shape[0] for x in leaves if aval_of(x).shape), default=0)
    done = length // size * size
    parts = []
    if done:
        blocks = [reshape(_rows(x, 0, done), (done // size, size, *aval_of(x).shape[1:]))
                  for x in leaves]
        out = map_(vmap(f), structure.unflatten(blocks))
        parts.append(tree.map_(lambda y: reshape(y, (done, *aval_of(y).shape[2:])), out))
    if length > done or not parts:
        parts.append(vmap(f)(structure.unflatten([_rows(x, done, length) for x in leaves])))
    if len(parts) == 1:
        return parts[0]
    return tree.map_(lambda *pieces: concatenate(list(pieces), 0), *parts)


def _rows(x: Any, start: int, stop: int) -> Any:
    """Return rows ``start`` to ``stop`` of ``x``; ``x`` itself if that is all of it."""
    return x if (start, stop) == (0, aval_of(x).shape[0]) else slice_in_dim(x, start, stop)


@boundary
def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Return all partial results of the associative ``fn`` along ``axis`` of ``elems``.

    ``fn(a, b)`` takes and returns pytrees like ``elems`` (stacks of any length along ``axis``), and
    combines them row by row.  With ``reverse`` it starts from the last row.
    Raises: TypeError if ``fn`` cannot be called; ValueError for stacks of different lengths.

    >>> lax.associative_scan(jnp.add, jnp.array([1, 2, 3, 4]))
    Array([ 1,  3,  6, 10], dtype=int32)
    """
    check_callable("associative_scan", "fn argument", fn)
    leaves, structure = tree.flatten(elems)
    if not leaves:
        return elems
    place = _axis_of_stacks(leaves, axis)
    if not is_static(aval_of(leaves[0]).shape[place:place + 1]):
        raise errors.explained(
            NotImplementedError, "associative_scan.open",
            f"associative scan over axis of non-constant size: {aval_of(leaves[0]).shape[place]}.",
            advice="Its steps depend on how many rows there are; lax.scan takes any number.")

    def scan(leaves: list[Any]) -> Any:
        if reverse:
            leaves = [rev(x, (place,)) for x in leaves]
        scanned = _partial_results(_on_leaves(fn, structure), leaves, place)
        if reverse:
            scanned = [rev(x, (place,)) for x in scanned]
        return structure.unflatten(scanned)

    if state.trace is not eval_trace or config.disable_jit.value:
        return scan(leaves)
    # Outside any trace all of it is one program, found by content: not one for each slice.
    try:
        body = trace_body(
            lambda xs: scan(tree.leaves(xs)), tree.structure((elems,)),
            [aval_of(x) for x in leaves], "associative_scan", fn, (place, bool(reverse)))
    except errors.ConcretizationTypeError:  # ``fn`` looks at the numbers it is given
        return scan([put(x) for x in leaves])
    prim = JitCall(body.closed, "associative_scan")
    return body.out_tree.unflatten(run_at_once((body.closed,), (), prim, [*body.consts, *leaves]))


def _axis_of_stacks(leaves: Sequence[Any], axis: int) -> int:
    """Return ``axis`` counted from the front; the leaves must have one size along it."""
    place = canonical_axis(axis, aval_of(leaves[0]).ndim)
    shapes = [aval_of(x).shape for x in leaves]
    if any(len(s) <= place or s[place] != shapes[0][place] for s in shapes):
        raise errors.explained(
            errors.ArgumentError, "associative_scan.C1",
            "Array inputs to associative_scan must have the same first dimension. "
            f"(saw: {shapes})", advice=f"All must have one size along axis {axis}.")
    return place


def _on_leaves(fn: Callable, structure: Any) -> Callable:
    """Return ``fn``, which combines two trees of ``structure``, as a function of their leaves.

    What ``fn`` returns may have other containers: only the number of leaves matters, as in JAX.
    """

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        out, out_tree = tree.flatten(fn(structure.unflatten(a), structure.unflatten(b)))
        if len(out) != structure.num_leaves:
            few = "few" if len(out) < structure.num_leaves else "many"
            raise errors.explained(
                errors.ArgumentError, "associative_scan.C2",
                f"Too {few} leaves for {structure}: fn must return as many arrays as it is given "
                f"in one argument, {structure.num_leaves}, but gave {len(out)}, {out_tree}.",
                advice="Return a pytree like one of the arguments.")
        return out

    return combine


def _partial_results(combine: Callable, xs: list[Any], axis: int) -> list[Any]:
    """Return partial results by halving: those of neighbours joined give every second one."""
    length = aval_of(xs[0]).shape[axis]
    if length < 2:
        return xs
    joined = combine([_along(x, axis, 0, length - 1, 2) for x in xs],
                     [_along(x, axis, 1, length, 2) for x in xs])
    odd = _partial_results(combine, joined, axis)
    count = aval_of(odd[0]).shape[axis]
    before = odd if length % 2 else [_along(x, axis, 0, count - 1) for x in odd]
    even = combine(before, [_along(x, axis, 2, length, 2) for x in xs])
    even = [concatenate([_along(x, axis, 0, 1), y], axis) for x, y in zip(xs, even)]
    return [_interleaved(a, b, axis) for a, b in zip(even, odd)]


def _along(x: Any, axis: int, start: int, stop: int, step: int = 1) -> Any:
    shape = aval_of(x).shape
    starts, stops, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], stops[axis], steps[axis] = min(start, shape[axis]), max(stop, start), step
    stops[axis] = min(stops[axis], shape[axis])
    return slice_(x, tuple(starts), tuple(stops), tuple(steps))


def _interleaved(a: Any, b: Any, axis: int) -> Any:
    """Return a[0], b[0], a[1], b[1], …; ``a`` is as long as ``b`` or longer by one."""
    aval = aval_of(a)
    n, m = aval.shape[axis], aval_of(b).shape[axis]
    zero = literal(0, aval.dtype)

    def spread(x: Any, before: int, after: int) -> Any:
        config = [(0, 0, 0)] * aval.ndim
        config[axis] = (before, after, 1)
        return pad(x, zero, config)

    join = bitwise_or if dtypes.is_bool(aval.dtype) else add
    return join(spread(a, 0, 1 if n == m else 0), spread(b, 1, 0 if n == m else 1))
