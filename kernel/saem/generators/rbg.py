"""How do keys of XLA's own generator (``rbg``, ``unsafe_rbg``) split and make bits?

A key is four words.  Both make bits by ``rng_bit_generator``, which is fast where the platform is;
``rbg`` splits and folds by Threefry, on each half of the key, ``unsafe_rbg`` by the generator
itself, whose quality is not proved.  Of a stack of keys only the first makes bits.

Read before: ``generators.rng_bit_generator``, ``ops.random_bits``.  Read after: ``random.keys``.
Invariant: keys and bits are those of JAX on CPU (tests/kernel/test_random_keys.py).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from saem.core.avals import ShapedArray
from saem.generators.rng_bit_generator import U64, bits_numpy, bits_text
from saem.ops.keys import Generator
from saem.ops.random_bits import (
    U32,
    blocks_numpy,
    counters_text,
    scramble_numpy,
    scramble_text,
    seed_words_text,
    sequence_numpy,
)

# Of so many blocks of bits one becomes a key of ``unsafe_rbg``.
STRIDE = 10


@dataclasses.dataclass(frozen=True)
class Rule:
    """What runs in place of ``prim`` on keys of this generator."""

    prim: Any
    multiple_results = False


def first_numpy(keys: np.ndarray) -> np.ndarray:
    """Return the first of key words (*keys, 4) as two uint64; zeros if there is none."""
    flat = keys.reshape(-1, 4)
    return np.ascontiguousarray(flat[0] if len(flat) else np.zeros(4, U32)).view(U64)


def first_text(ctx: Any, keys: str) -> str:
    """Write the first of key words (*keys, 4)."""
    shape = ctx.avals[keys].shape
    if len(shape) == 1:
        return keys
    if 0 in shape:
        return ctx.constant(0, ShapedArray((4,), U32))
    one = ctx.slice(keys, [0] * len(shape), [*(1 for _ in shape[:-1]), 4])
    return ctx.reshape(one, (4,))


def held(ctx: Any, keys: str) -> str:
    """Write keys as the array that holds them; XLA drops the reshape."""
    return ctx.emit(f"stablehlo.reshape {keys}", keys,
                    out=ShapedArray((*ctx.in_avals[0].shape, 4), U32))


def filled(shape: tuple[int, ...], out: tuple[int, ...]) -> tuple[int, ...]:
    """Return ``shape`` with leading sizes of 1, up to the rank of ``out``."""
    return (*(1 for _ in range(len(out) - len(shape))), *shape)


class Seed(Rule):
    """The two words of an integer, twice."""

    def evaluate(self, seeds):
        words = self.prim.evaluate(seeds)
        return np.concatenate([words, words], axis=-1)

    def lower(self, ctx, seeds):
        shape = ctx.avals[seeds].shape
        high, low = (ctx.reshape(w, (*shape, 1)) for w in seed_words_text(ctx, seeds))
        return ctx.emit(
            f"stablehlo.concatenate {high}, {low}, {high}, {low}, dim = {len(shape)}",
            high, low, high, low, out=ctx.out_avals[0])


class Bits(Rule):
    """Bits of all keys, by the first."""

    def evaluate(self, keys):
        shape = (*keys.shape[:-1], *self.prim.shape)
        return bits_numpy(first_numpy(keys), shape, self.prim.dtype)[1]

    def lower(self, ctx, keys):
        return bits_text(ctx, first_text(ctx, held(ctx, keys)), ctx.out_avals[0])[1]


class HalvesSplit(Rule):
    """Threefry's split of each half of the key."""

    def evaluate(self, keys):
        count = math.prod(self.prim.shape)
        halves = keys.reshape(*keys.shape[:-1], 2, 2)
        if self.prim.partitionable:
            words = np.stack(blocks_numpy(halves, count), axis=-1)
        else:
            words = sequence_numpy(halves, 2 * count).reshape(*halves.shape[:-1], count, 2)
        return np.swapaxes(words, -3, -2).reshape(*keys.shape[:-1], *self.prim.shape, 4)

    def lower(self, ctx, keys):
        lead, count = ctx.in_avals[0].shape, math.prod(self.prim.shape)
        high, low = counters_text(ctx, count)
        if not self.prim.partitionable:  # blocks (i, count + i)
            row = ShapedArray((count,), U32)
            high = low
            low = ctx.elementwise("stablehlo.add", low, ctx.constant(count, row), out=row)
        block = (*filled((count,), (*lead, count)), 1)
        low = ctx.reshape(low, block)
        if ctx.avals[high].shape:
            high = ctx.reshape(high, block)
        return halves_text(ctx, keys, (*lead, 1, 2), (high, low), (*lead, count, 2),
                           not self.prim.partitionable)


def halves_text(ctx: Any, keys: str, key_shape: tuple[int, ...], block: tuple[str, str],
                shape: tuple[int, ...], sequential: bool = False) -> str:
    """Write Threefry of ``block`` under both halves of each key, along the last axis of shape.

    With ``sequential`` all first words of a half stand before all its second ones.
    """
    lead = ctx.in_avals[0].shape
    halves = ctx.emit(f"stablehlo.reshape {keys}", keys, out=ShapedArray((*lead, 2, 2), U32))
    words = []
    for word in (0, 1):
        part = ctx.slice(halves, [*(0 for _ in lead), 0, word], [*lead, 2, word + 1])
        words.append(ctx.reshape(part, key_shape))
    scrambled = scramble_text(ctx, (words[0], words[1]), block, shape)
    if sequential:
        rank, count = len(lead), shape[-2]
        joined = ctx.emit(f"stablehlo.concatenate {', '.join(scrambled)}, dim = {rank}",
                          *scrambled, out=ShapedArray((*lead, 2 * count, 2), U32))
        paired = ctx.reshape(joined, (*lead, count, 2, 2))
        turned = ctx.emit(
            f"stablehlo.transpose {paired}, dims = {[*range(rank + 1), rank + 2, rank + 1]}",
            paired, out=ShapedArray((*lead, count, 2, 2), U32))
        return ctx.emit(f"stablehlo.reshape {turned}", turned, out=ctx.out_avals[0])
    made = [ctx.reshape(x, (*shape, 1)) for x in scrambled]
    pairs = ctx.emit(f"stablehlo.concatenate {', '.join(made)}, dim = {len(shape)}", *made,
                     out=ShapedArray((*shape, 2), U32))
    return ctx.emit(f"stablehlo.reshape {pairs}", pairs, out=ctx.out_avals[0])


class HalvesFold(Rule):
    """Threefry's fold of a number into each half of the key."""

    def evaluate(self, keys, numbers):
        halves = keys.reshape(*keys.shape[:-1], 2, 2)
        data = numbers[..., None]
        words = scramble_numpy((halves[..., 0], halves[..., 1]), (np.zeros_like(data), data))
        out = np.stack(words, axis=-1)
        return out.reshape(*out.shape[:-2], 4)

    def lower(self, ctx, keys, numbers):
        lead, out = ctx.in_avals[0].shape, ctx.out_avals[0].shape
        data_shape = ctx.avals[numbers].shape
        zero = ctx.constant(0, ShapedArray((), U32))
        data = ctx.reshape(numbers, (*filled(data_shape, out), 1))
        return halves_text(ctx, keys, (*filled(lead, out), 2), (zero, data), (*out, 2))


class GeneratedSplit(Rule):
    """Every tenth block of the generator's bits."""

    def evaluate(self, keys):
        count = math.prod(self.prim.shape)
        shape = (*keys.shape[:-1], STRIDE * count, 4)
        made = bits_numpy(first_numpy(keys), shape, U32)[1][..., ::STRIDE, :]
        return made.reshape(*keys.shape[:-1], *self.prim.shape, 4)

    def lower(self, ctx, keys):
        lead, count = ctx.in_avals[0].shape, math.prod(self.prim.shape)
        aval = ShapedArray((*lead, STRIDE * count, 4), U32)
        made = bits_text(ctx, first_text(ctx, held(ctx, keys)), aval)[1]
        each = [1 for _ in lead]
        kept = ctx.slice(made, [0] * len(aval.shape), aval.shape, [*each, STRIDE, 1])
        return ctx.emit(f"stablehlo.reshape {kept}", kept, out=ctx.out_avals[0])


class GeneratedFold(Rule):
    """The key, changed by the tenth block of the bits that the number makes as a state."""

    def evaluate(self, keys, numbers):
        first = numbers.reshape(-1)[:1].astype(U64) << np.uint64(32)
        state = np.concatenate([first, first]) if first.size else np.zeros(2, U64)
        made = bits_numpy(state, (*numbers.shape, STRIDE, 4), U32)[1]
        return keys ^ made[..., -1, :]

    def lower(self, ctx, keys, numbers):
        shape = ctx.avals[numbers].shape
        one = numbers
        if shape:
            one = ctx.slice(numbers, [0] * len(shape), [1] * len(shape))
        one = ctx.reshape(one, (1,))
        zero = ctx.constant(0, ShapedArray((1,), U32))
        state = ctx.emit(f"stablehlo.concatenate {zero}, {one}, {zero}, {one}, dim = 0",
                         zero, one, zero, one, out=ShapedArray((4,), U32))
        made = bits_text(ctx, state, ShapedArray((*shape, STRIDE, 4), U32))[1]
        last = ctx.slice(made, [*(0 for _ in shape), STRIDE - 1, 0], [*shape, STRIDE, 4])
        out = (*ctx.out_avals[0].shape, 4)
        parts = []
        for x, sizes in ((held(ctx, keys), ctx.in_avals[0].shape), (last, shape)):
            parts.append(ctx.stretch(ctx.reshape(x, (*filled(sizes, out[:-1]), 4)), out))
        mixed = ctx.elementwise("stablehlo.xor", *parts, out=ShapedArray(out, U32))
        return ctx.emit(f"stablehlo.reshape {mixed}", mixed, out=ctx.out_avals[0])


class Rbg(Generator):
    """XLA's generator; keys are split by Threefry, each half by itself."""

    seed_copies = 2

    def seeding(self, prim):
        return Seed(prim)

    def bits(self, prim):
        return Bits(prim)

    def splitting(self, prim):
        return HalvesSplit(prim)

    def folding(self, prim):
        return HalvesFold(prim)


class UnsafeRbg(Rbg):
    """XLA's generator, by which keys are split, too."""

    def splitting(self, prim):
        return GeneratedSplit(prim)

    def folding(self, prim):
        return GeneratedFold(prim)


RBG = Rbg("rbg", "rbg", (4,))
UNSAFE_RBG = UnsafeRbg("unsafe_rbg", "urbg", (4,))
