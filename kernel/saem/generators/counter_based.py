"""How do keys of Philox and of the wide Threefry split and make bits?

These generators encrypt counters: ``philox2x32`` blocks of two words under a key of one,
``philox4x32`` blocks of four under two, ``threefry4x32`` blocks of four under four.  A key is what
a counter becomes under another key.  Bits of a number are the words of one block, folded by xor.

Read before: ``ops.random_bits``, ``generators.rbg``.  Read after: ``random.keys``.
Invariant: keys and bits are those of JAX (tests/kernel/test_random_keys.py).
Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel Random Numbers: As Easy as 1, 2, 3"; the
programs that JAX writes for these keys.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core.avals import ShapedArray
from saem.generators.rbg import RBG, UNSAFE_RBG, Rule, filled
from saem.ops.keys import THREEFRY, Generator
from saem.ops.random_bits import U32, counters_numpy, counters_text, seed_words_text

U64 = np.dtype("uint64")
GOLDEN, ROOT = 0x9E3779B9, 0xBB67AE85  # what the words of a Philox key grow by
PHILOX_ROUNDS = 10
PHILOX2_MULTIPLIER = 0xD256D193
PHILOX4_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
SKEIN_PARITY = 0x1BD11BDA
ROTATIONS = (10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20)


class OnNumbers:
    """Arithmetic of uint32 arrays of NumPy."""

    @staticmethod
    def number(value: int) -> np.ndarray:
        return np.asarray(value, U32)

    @staticmethod
    def add(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.add(x, y, dtype=U32)

    xor = staticmethod(np.bitwise_xor)

    @staticmethod
    def rotate(x: np.ndarray, n: int) -> np.ndarray:
        return (x << np.uint32(n)) | (x >> np.uint32(32 - n))

    @staticmethod
    def product(x: np.ndarray, factor: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the high and the low word of a product."""
        wide = x.astype(U64) * np.uint64(factor)
        return (wide >> np.uint64(32)).astype(U32), wide.astype(U32)


class InText:
    """The same arithmetic, written into the text of a program."""

    def __init__(self, ctx: Any):
        self.ctx = ctx

    @functools.cache  # noqa: B019  (lives as long as one rule runs)
    def number(self, value: int) -> str:
        return self.ctx.constant(value, ShapedArray((), U32))

    def binary(self, name: str, x: str, y: str) -> str:
        shape = self.ctx.joined(x, y)
        return self.ctx.elementwise(f"stablehlo.{name}", x, y, out=ShapedArray(shape, U32))

    def add(self, x: str, y: str) -> str:
        return self.binary("add", x, y)

    def xor(self, x: str, y: str) -> str:
        return self.binary("xor", x, y)

    def rotate(self, x: str, n: int) -> str:
        left = self.binary("shift_left", x, self.number(n))
        return self.binary("or", left, self.binary(
            "shift_right_logical", x, self.number(32 - n)))

    def product(self, x: str, factor: int) -> tuple[str, str]:
        """Write the high and the low word of a product."""
        ctx, wide = self.ctx, ShapedArray(self.ctx.avals[x].shape, U64)
        made = ctx.elementwise("stablehlo.multiply", ctx.convert(x, U64), ctx.constant(
            factor, ShapedArray((), U64)), out=wide)
        high = ctx.elementwise("stablehlo.shift_right_logical", made, ctx.constant(
            32, ShapedArray((), U64)), out=wide)
        return ctx.convert(high, U32), ctx.convert(made, U32)


def philox2(on: Any, key: Sequence[Any], block: Sequence[Any]) -> list[Any]:
    """Encrypt a block of two words."""
    (k,), (a, b) = key, block
    for step in range(PHILOX_ROUNDS):
        k = on.add(k, on.number(GOLDEN)) if step else k
        high, low = on.product(a, PHILOX2_MULTIPLIER)
        a, b = on.xor(on.xor(high, b), k), low
    return [a, b]


def philox4(on: Any, key: Sequence[Any], block: Sequence[Any]) -> list[Any]:
    """Encrypt a block of four words."""
    (k, m), (a, b, c, d) = key, block
    for step in range(PHILOX_ROUNDS):
        if step:
            k, m = on.add(k, on.number(GOLDEN)), on.add(m, on.number(ROOT))
        first, second = PHILOX4_MULTIPLIERS
        (high, low), (high2, low2) = on.product(a, first), on.product(c, second)
        a, b, c, d = on.xor(on.xor(high2, b), k), low2, on.xor(on.xor(high, d), m), low
    return [a, b, c, d]


def threefry4(on: Any, key: Sequence[Any], block: Sequence[Any]) -> list[Any]:
    """Encrypt a block of four words."""
    keys = [*key, functools.reduce(on.xor, key, on.number(SKEIN_PARITY))]
    x = [on.add(word, k) for word, k in zip(block, keys)]
    for step in range(20):
        odd = 2 * (step % 2)
        for into, other, turn in zip((0, 2), (1 + odd, 3 - odd), ROTATIONS[step % 8]):
            x[into] = on.add(x[into], x[other])
            x[other] = on.xor(on.rotate(x[other], turn), x[into])
        if step % 4 == 3:
            count = step // 4 + 1
            x = [on.add(word, keys[(count + i) % 5]) for i, word in enumerate(x)]
            x[3] = on.add(x[3], on.number(count))
    return x


@dataclasses.dataclass(frozen=True)
class Blocks(Rule):
    """What all rules share: the words of keys, and blocks under them."""

    impl: Any

    def split(self, keys: np.ndarray, rank: int) -> list[np.ndarray]:
        """Return the words of keys, stretched over ``rank`` further axes."""
        shape = (*keys.shape[:-1], *[1] * rank)
        return [keys[..., i].reshape(shape) for i in range(keys.shape[-1])]

    def split_text(self, ctx: Any, keys: str, shape: tuple[int, ...]) -> list[str]:
        """Write the words of keys, in ``shape``."""
        lead, size = ctx.in_avals[0].shape, math.prod(self.impl.key_shape)
        words = ctx.emit(f"stablehlo.reshape {keys}", keys, out=ShapedArray((*lead, size), U32))
        return [ctx.reshape(ctx.slice(words, [*(0 for _ in lead), i], [*lead, i + 1]), shape)
                for i in range(size)]

    def joined_text(self, ctx: Any, words: Sequence[str], shape: tuple[int, ...]) -> str:
        """Write keys of their words."""
        words = [ctx.reshape(ctx.stretch(w, shape), (*shape, 1)) for w in words]
        made = words[0]
        if len(words) > 1:
            made = ctx.emit(f"stablehlo.concatenate {', '.join(words)}, dim = {len(shape)}",
                            *words, out=ShapedArray((*shape, len(words)), U32))
        return ctx.emit(f"stablehlo.reshape {made}", made, out=ctx.out_avals[0])


class Seed(Blocks):
    """The two words of an integer, encrypted."""

    def evaluate(self, seeds):
        words = np.asarray(seeds).astype(U64) if seeds.dtype.itemsize == 8 else seeds.astype(U32)
        high = (words >> np.uint64(32)).astype(U32) if words.dtype == U64 else np.zeros_like(words)
        return np.stack(self.impl.seeded(OnNumbers, high, words.astype(U32)), axis=-1)

    def lower(self, ctx, seeds):
        high, low = seed_words_text(ctx, seeds)
        made = self.impl.seeded(InText(ctx), high, low)
        return self.joined_text(ctx, made, ctx.avals[seeds].shape)


class Bits(Blocks):
    """One block for each number, folded."""

    def evaluate(self, keys):
        shape = self.prim.shape
        high, low = counters_numpy(math.prod(shape))
        block = self.impl.leading(OnNumbers, high, low)
        words = self.impl.encrypt(OnNumbers, self.split(keys, 1), block)
        if np.dtype(self.prim.dtype).itemsize == 8:
            first, second = (w.astype(U64) for w in self.impl.pair(OnNumbers, words))
            made = (first << np.uint64(32)) | second
        else:
            made = functools.reduce(np.bitwise_xor, words)
        return made.astype(self.prim.dtype).reshape(*keys.shape[:-1], *shape)

    def lower(self, ctx, keys):
        lead, count = ctx.in_avals[0].shape, math.prod(self.prim.shape)
        on, shape = InText(ctx), (*lead, count)
        high, low = counters_text(ctx, count)
        low = ctx.stretch(ctx.reshape(low, filled((count,), shape)), shape)
        if ctx.avals[high].shape:
            high = ctx.reshape(high, filled((count,), shape))
        words = self.impl.encrypt(on, self.split_text(ctx, keys, (*lead, 1)),
                                  self.impl.leading(on, high, low))
        if np.dtype(self.prim.dtype).itemsize == 8:
            wide = ShapedArray(shape, U64)
            first, second = (ctx.convert(w, U64) for w in self.impl.pair(on, words))
            half = ctx.constant(32, ShapedArray((), U64))
            first = ctx.elementwise("stablehlo.shift_left", first, half, out=wide)
            made = ctx.elementwise("stablehlo.or", first, second, out=wide)
        else:
            made = ctx.convert(functools.reduce(on.xor, words), self.prim.dtype)
        return ctx.emit(f"stablehlo.reshape {made}", made, out=ctx.out_avals[0])


class Split(Blocks):
    """The first words of one block for each new key."""

    def evaluate(self, keys):
        high, low = counters_numpy(math.prod(self.prim.shape))
        block = self.impl.trailing(OnNumbers, high, low)
        words = self.impl.encrypt(OnNumbers, self.split(keys, 1), block)
        made = np.stack(words[:keys.shape[-1]], axis=-1)
        return made.reshape(*keys.shape[:-1], *self.prim.shape, keys.shape[-1])

    def lower(self, ctx, keys):
        lead, count = ctx.in_avals[0].shape, math.prod(self.prim.shape)
        on, shape = InText(ctx), (*lead, count)
        high, low = counters_text(ctx, count)
        low = ctx.stretch(ctx.reshape(low, filled((count,), shape)), shape)
        if ctx.avals[high].shape:
            high = ctx.reshape(high, filled((count,), shape))
        words = self.impl.encrypt(on, self.split_text(ctx, keys, (*lead, 1)),
                                  self.impl.trailing(on, high, low))
        return self.joined_text(ctx, words[:math.prod(self.impl.key_shape)], shape)


class Fold(Blocks):
    """The first words of the block that a number makes."""

    def evaluate(self, keys, numbers):
        block = self.impl.trailing(OnNumbers, np.zeros_like(numbers), numbers)
        words = self.impl.encrypt(OnNumbers, self.split(keys, 0), block)
        return np.stack(words[:keys.shape[-1]], axis=-1)

    def lower(self, ctx, keys, numbers):
        on, out = InText(ctx), ctx.out_avals[0].shape
        data = ctx.stretch(ctx.reshape(numbers, filled(ctx.avals[numbers].shape, out)), out)
        words = self.impl.encrypt(
            on, self.split_text(ctx, keys, filled(ctx.in_avals[0].shape, out)),
            self.impl.trailing(on, on.number(0), data))
        return self.joined_text(ctx, words[:math.prod(self.impl.key_shape)], out)


class Encrypting(Generator):
    """A generator that encrypts blocks of four words; counters stand first or last in them."""

    seed_copies = 0

    def seeding(self, prim):
        return Seed(prim, self)

    def bits(self, prim):
        return Bits(prim, self)

    def splitting(self, prim):
        return Split(prim, self)

    def folding(self, prim):
        return Fold(prim, self)

    def encrypt(self, on: Any, key: Sequence[Any], block: Sequence[Any]) -> list[Any]:
        return philox4(on, key, block)

    def leading(self, on: Any, high: Any, low: Any) -> tuple[Any, ...]:
        """Return the block of a counter that is to become bits."""
        return high, low, on.number(0), on.number(0)

    def trailing(self, on: Any, high: Any, low: Any) -> tuple[Any, ...]:
        """Return the block of a counter that is to become a key."""
        return on.number(0), on.number(0), high, low

    def seeded(self, on: Any, high: Any, low: Any) -> list[Any]:
        """Return the words of the key of an integer."""
        zero = on.number(0)
        return self.encrypt(on, (zero, zero), (high, low, zero, zero))[:2]

    def pair(self, on: Any, words: list[Any]) -> list[Any]:
        """Return the high and the low word of 64 bits."""
        return words[:2]


class Philox2(Encrypting):
    """Philox with blocks of two words."""

    def encrypt(self, on, key, block):
        return philox2(on, key, block)

    def leading(self, on, high, low):
        return high, low

    trailing = leading

    def seeded(self, on, high, low):
        return self.encrypt(on, (on.number(0),), (high, low))[:1]


class Threefry4(Encrypting):
    """Threefry with blocks of four words; an integer is the key that makes its own."""

    def encrypt(self, on, key, block):
        return threefry4(on, key, block)

    def seeded(self, on, high, low):
        zero = on.number(0)
        return self.encrypt(on, (high, low, zero, zero), (zero, zero, zero, zero))

    def pair(self, on, words):
        a, b, c, d = words
        return [on.xor(a, c), on.xor(b, d)]


THREEFRY4 = Threefry4("threefry4x32", "fry4", (4,))
PHILOX2 = Philox2("philox2x32", "phx2", (1,))
PHILOX4 = Encrypting("philox4x32", "phx4", (2,))
GENERATORS: dict[str, Generator] = {impl.name: impl for impl in (
    THREEFRY, THREEFRY4, RBG, UNSAFE_RBG, PHILOX2, PHILOX4)}
