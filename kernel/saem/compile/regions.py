"""How are loops and branches written in StableHLO?

Every loop of the engine is one ``stablehlo.while``, every choice one ``stablehlo.case``.  Regions
see the values of the function around them, so what a loop only reads is not part of its state.

Read before: ``compile.text``.  Read after: ``loops.conditional``, ``loops.while_loop``.
Invariant: a region's text depends on its program alone, as that of the whole module does.
Source: StableHLO specification: while, case, dynamic_slice, dynamic_update_slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem.compile.text import physical_aval
from saem.core.avals import ShapedArray
from saem.core.dimensions import is_static

COUNTER = ShapedArray((), np.dtype("int32"))
FLAG = ShapedArray((), np.dtype(bool))


def write_while(ctx: Any, starts: Sequence[str], avals: Sequence[ShapedArray],
                test: Callable[..., str], step: Callable[..., Sequence[str]]) -> list[str]:
    """Write: while ``test(*state)``, state is ``step(*state)``, from ``starts`` of ``avals``."""
    if not starts:  # XLA's loops have a state: here, what the condition said
        write_while(ctx, [test()], [FLAG], lambda flag: flag, lambda _: [*step(), test()])
        return []
    regions = [ctx.region(avals, lambda *state: [test(*state)], name="cond"),
               ctx.region(avals, step, name="body")]
    return ctx.emit_many(f'"stablehlo.while"({", ".join(starts)})', *starts, outs=avals,
                         regions=regions)


def write_case(ctx: Any, index: str, avals: Sequence[ShapedArray],
               branches: Sequence[Callable[[], Sequence[str]]]) -> list[str]:
    """Write the results of the branch whose number is ``index``, of the last if there is none."""
    return ctx.emit_many(f'"stablehlo.case"({index})', index, outs=avals,
                         regions=[ctx.region((), branch, name=f"branch_{number}_fun")
                                  for number, branch in enumerate(branches)])


def any_true(ctx: Any, flags: str) -> str:
    """Write whether one of ``flags`` is true; nothing if it is a single flag."""
    rank = len(ctx.avals[flags].shape)
    return ctx.reduce("or", flags, False, range(rank), out=FLAG) if rank else flags


def choose_rows(ctx: Any, flags: str, new: str, old: str) -> str:
    """Write ``new`` where the flag of its leading axes is true, else ``old``.

    What has fewer axes is of no example (the token of ordered effects): it is ``new``.
    """
    held = physical_aval(ctx.avals[new])
    rank = len(ctx.avals[flags].shape)
    if rank > len(held.shape):
        return new
    if rank and rank != len(held.shape):
        flags = ctx.broadcast(flags, held.shape, range(rank))
    return ctx.choose(flags, new, old)


def _starts(ctx: Any, place: str, rank: int) -> list[str]:
    zero = ctx.constant(0, COUNTER) if rank else ""
    return [place, *[zero] * rank]


def read_row(ctx: Any, x: str, place: str) -> str:
    """Write element ``place`` of ``x`` along its first axis."""
    aval = ctx.avals[x]
    held = physical_aval(aval)
    starts = _starts(ctx, place, len(held.shape) - 1)
    sizes = [1, *held.shape[1:]]
    out = ShapedArray(tuple(sizes), held.dtype)
    row = read_part(ctx, x, starts, out)
    return ctx.reshape_as(row, aval.update(shape=aval.shape[1:]))


def read_part(ctx: Any, x: str, starts: Sequence[str], out: ShapedArray) -> str:
    """Write the part of ``x`` of the shape of ``out`` at ``starts``."""
    if is_static(out.shape):
        return ctx.emit(f"stablehlo.dynamic_slice {x}, {', '.join(starts)}, sizes = "
                        f"{list(out.shape)}", x, *starts, out=out)
    sizes = ctx.module.sizes
    room = [n - m for n, m in zip(physical_aval(ctx.avals[x]).shape, out.shape)]
    rank = ShapedArray((len(room),), np.dtype("int32"))
    one = ShapedArray((1,), np.dtype("int32"))
    rows = [ctx.reshape_as(ctx.convert(s, np.dtype("int32")), one) for s in starts]
    joined = ctx.emit(f"stablehlo.concatenate {', '.join(rows)}, dim = 0", *rows, out=rank)
    places = []
    for shape in (room, out.shape, [0] * len(room), [1] * len(room)):
        name, _ = sizes.vector(shape)
        ctx.avals[name] = rank
        places.append(name)
    high, size, zero, strides = places
    low = ctx.emit(f"stablehlo.clamp {zero}, {joined}, {high}", zero, joined, high, out=rank)
    limits = ctx.elementwise("stablehlo.add", low, size, out=rank)
    return ctx.emit(f"stablehlo.real_dynamic_slice {x}, {low}, {limits}, {strides}",
                    x, low, limits, strides, out=out)


def write_row(ctx: Any, x: str, row: str, place: str) -> str:
    """Write ``x`` with ``row`` at element ``place`` of its first axis."""
    aval = ctx.avals[x]
    held = physical_aval(aval)
    starts = _starts(ctx, place, len(held.shape) - 1)
    row = ctx.reshape_as(row, ShapedArray((1, *held.shape[1:]), held.dtype))
    return ctx.emit(f"stablehlo.dynamic_update_slice {x}, {row}, {', '.join(starts)}", x, row,
                    *starts, out=aval)


def zeros(ctx: Any, aval: ShapedArray) -> str:
    """Write zeros of ``aval``, named by it even if another array holds it."""
    name = ctx.constant(0, physical_aval(aval))
    ctx.avals[name] = aval
    return name
