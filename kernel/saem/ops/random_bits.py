"""How does a key become random bits?

By counting: Threefry scrambles a 64-bit counter under a 64-bit key, so bit block i of a key can be
computed by itself, anywhere, in any order.  ``random_bits`` scrambles 0, 1, 2, …; ``random_split``
scrambles the same counters into new keys; ``random_fold_in`` scrambles the number it is given.

Read before: ``ops.keys``.  Read after: ``saem.random``.
Invariant: the same key gives the same bits on every device and in every layout, and they are those
of JAX's partitionable threefry2x32 (tests/kernel/test_random.py).
Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3" (SC'11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem.compile import dispatch
from saem.core import config, dtypes, errors
from saem.core.avals import ShapedArray
from saem.core.dimensions import Dim
from saem.core.primitive import NOT_LINEAR, Primitive, primitive
from saem.core.trace import bind
from saem.ops import sharding_rules
from saem.ops.families import align_batch, check_example
from saem.ops.keys import Generator, KeyDType, key_dtype, key_watch
from saem.ops.linear import broadcast_in_dim, moveaxis

U32, U64 = np.dtype("uint32"), np.dtype("uint64")

# Twenty rounds: five times four rotations, these and those in turn; after each four, the key.
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def scramble(add: Callable, xor: Callable, rotate: Callable, number: Callable,
             key: tuple[Any, Any], block: tuple[Any, Any]) -> tuple[Any, Any]:
    """Encrypt ``block`` under ``key`` by Threefry-2x32 with 20 rounds.

    The arithmetic is given, so that NumPy and StableHLO text run the one definition.
    """
    schedule = (*key, xor(xor(*key), number(PARITY)))
    a, b = add(block[0], key[0]), add(block[1], key[1])
    for step in range(5):
        for distance in ROTATIONS[step % 2]:
            a = add(a, b)
            b = xor(a, rotate(b, distance))
        a = add(a, schedule[(step + 1) % 3])
        b = add(add(b, schedule[(step + 2) % 3]), number(step + 1))
    return a, b


def scramble_numpy(key: tuple[np.ndarray, np.ndarray], block: tuple[np.ndarray, np.ndarray]
                   ) -> tuple[np.ndarray, np.ndarray]:
    """Encrypt uint32 arrays; shapes broadcast."""
    def rotate(x: np.ndarray, n: int) -> np.ndarray:
        return (x << np.uint32(n)) | (x >> np.uint32(32 - n))

    with np.errstate(over="ignore"):
        return scramble(np.add, np.bitwise_xor, rotate, np.uint32, key, block)


def scramble_text(ctx: Any, key: tuple[str, str], block: tuple[str, str], shape: tuple[int, ...]
                  ) -> tuple[str, str]:
    """Write the encryption of named values that broadcast to ``shape``."""
    numbers: dict[int, str] = {}

    def number(value: int) -> str:
        if value not in numbers:
            numbers[value] = ctx.constant(value, ShapedArray((), U32))
        return numbers[value]

    def binary(name: str) -> Callable[[str, str], str]:
        def write(x: str, y: str) -> str:
            joined = ctx.joined(x, y)
            return ctx.elementwise(f"stablehlo.{name}", x, y, out=ShapedArray(joined, U32))
        return write

    left, right, either = map(binary, ("shift_left", "shift_right_logical", "or"))

    def rotate(x: str, n: int) -> str:
        return either(left(x, number(n)), right(x, number(32 - n)))

    # All lines have the full shape, so that XLA makes one loop of them.
    block = tuple(ctx.stretch(x, shape) for x in block)
    return scramble(binary("add"), binary("xor"), rotate, number, key, block)


@primitive("threefry2x32")
class Threefry2x32(Primitive):
    """Encrypt the block (x1, x2) under the key (k1, k2); four uint32 operands, two results."""

    multiple_results = True

    shard_results = sharding_rules.elementwise

    def typing(self, *avals):
        if any(a.dtype != U32 for a in avals):
            got = ", ".join(a.str_short(True) for a in avals)
            raise errors.explained(
                errors.DTypeError, "threefry2x32.C1",
                f"Arguments to threefry2x32 must have uint32 type, got {got}",
                advice="Convert them with x.astype(jnp.uint32).")
        return [ShapedArray(np.broadcast_shapes(*(a.shape for a in avals)), U32)] * 2

    def evaluate(self, k1, k2, x1, x2):
        return [*scramble_numpy((k1, k2), (x1, x2))]

    def lower(self, ctx, k1, k2, x1, x2):
        return [*scramble_text(ctx, (k1, k2), (x1, x2), ctx.out_avals[0].shape)]

    def jvp(self, primals, tangents):
        return bind(self, *primals), [None, None]

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        xs, dim = align_batch(size, xs, dims)
        return bind(self, *xs), [dim, dim]


def watched(self: Primitive, keys: Any, *more: Any) -> Any:
    """Run a primitive on keys outside traces; ``debug_key_reuse`` may follow the keys."""
    return key_watch.applied(self, dispatch.primitive_callable(self), keys, *more)


class OnKeys(Primitive):
    """Discrete, and mapped over the leading axes of its one operand."""

    __slots__ = ()

    def jvp(self, primals, tangents):
        return bind(self, *primals), None

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        return bind(self, moveaxis(x, d, 0)), 0


def key_aval(prim: Primitive, aval: ShapedArray) -> KeyDType:
    """Return the dtype of keys ``aval``, refusing a non-key (C1)."""
    if not isinstance(aval.dtype, KeyDType):
        raise errors.explained(
            errors.DTypeError, f"{prim.name}.C1",
            f"{prim.name} requires PRNG key operands, got {aval.str_short(True)}.",
            advice="Make a key with jax.random.key(seed).")
    return aval.dtype


def as_held(ctx: Any, x: str, aval: ShapedArray) -> str:
    """Write ``x`` again under the aval of the array that holds it; XLA drops the reshape."""
    return ctx.reshape_as(x, aval)


@primitive("random_seed")
class RandomSeed(OnKeys):
    """Make a key of an integer: its high and low 32 bits."""

    makes_keys = "key"

    impl: Generator

    shard_results = sharding_rules.keys

    def physical(self, in_avals, out_avals):
        return self.impl.seeding(self)

    def typing(self, seeds):
        if not dtypes.is_integer(seeds.dtype):
            raise errors.explained(
                errors.DTypeError, "random_seed.C1",
                f"PRNG key seed must be an integer; got {seeds.str_short(True)}",
                advice="Use an int, such as jax.random.key(0).")
        return ShapedArray(seeds.shape, key_dtype(self.impl))

    def evaluate(self, seeds):
        wide = seeds.astype(np.int64 if seeds.dtype.kind == "i" else np.uint64)
        high = (wide >> 32 if seeds.dtype.itemsize == 8 else np.zeros_like(wide)).astype(U32)
        return np.stack([high, wide.astype(U32)], axis=-1)

    def lower(self, ctx, seeds):
        return pair(ctx, *seed_words_text(ctx, seeds), ctx.out_avals[0])


def seed_words_text(ctx: Any, seeds: str) -> tuple[str, str]:
    """Write the high and low 32 bits of integers."""
    shape, dtype = ctx.avals[seeds].shape, ctx.avals[seeds].dtype
    low = ctx.convert(seeds, U32)
    if dtypes.itemsize_bits(dtype) == 64:
        half = ctx.constant(32, ShapedArray((), dtype))
        high = ctx.convert(ctx.elementwise(
            "stablehlo.shift_right_logical", seeds, half, out=ShapedArray(shape, dtype)), U32)
    else:
        high = ctx.constant(0, ShapedArray(shape, U32))
    return high, low


def pair(ctx: Any, a: str, b: str, out: ShapedArray) -> str:
    """Write the two words of keys side by side along a new last axis."""
    shape = ctx.avals[a].shape
    words = [ctx.reshape(x, (*shape, 1)) for x in (a, b)]
    joined = f"stablehlo.concatenate {', '.join(words)}, dim = {len(shape)}"
    return ctx.emit(joined, *words, out=out)


def new_keys(ctx: Any, a: str, b: str, out: ShapedArray) -> str:
    """Write keys of their words, and keep XLA from making them once more wherever they are used.

    Else a loop that draws numbers makes its key for each number, and the key that one came from:
    a program of twenty draws took six times as long to compile.
    """
    return ctx.barrier([pair(ctx, a, b, out)])[0]


def words(ctx: Any, key: str, shape: tuple[int, ...]) -> tuple[str, str]:
    """Write the two words of keys held as u32[*keys, 2], each reshaped to ``shape``."""
    held = ctx.in_avals[0].shape
    base = as_held(ctx, key, ShapedArray((*held, 2), U32))
    found = []
    for word in (0, 1):
        part = ctx.slice(base, (*[0] * len(held), word), (*held, word + 1))
        found.append(ctx.reshape(part, shape))
    return found[0], found[1]


@primitive("random_wrap")
class RandomWrap(OnKeys):
    """See uint32 words as keys."""

    makes_keys = "wrap_key_data"

    impl: Generator

    shard_results = sharding_rules.keys

    def typing(self, base):
        if base.dtype != U32:
            raise errors.explained(
                errors.DTypeError, "random_wrap.C1",
                "JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; "
                f"got dtype={base.dtype.name}", advice="Use the data of jax.random.key_data(key).")
        if base.shape[-1:] != self.impl.key_shape:
            raise errors.explained(
                errors.ShapeError, "random_wrap.C2",
                "JAX encountered invalid PRNG key data: expected key_data.shape to end with "
                f"{self.impl.key_shape}; got shape={base.shape} for impl={self.impl.name}",
                advice=f"A {self.impl.name} key is {self.impl.key_shape[0]} words.")
        return ShapedArray(base.shape[:-1], key_dtype(self.impl))

    def batch(self, size, xs, dims):
        check_example(self, xs, dims)
        return super().batch(size, xs, dims)

    def evaluate(self, base):
        return base

    def lower(self, ctx, base):
        return as_held(ctx, base, ctx.out_avals[0])


@primitive("random_unwrap")
class RandomUnwrap(OnKeys):
    """See keys as the uint32 words that hold them."""

    shard_results = sharding_rules.keys

    def typing(self, keys):
        trailing, dtype = key_aval(self, keys).physical
        return ShapedArray((*keys.shape, *trailing), dtype)

    def evaluate(self, keys):
        return keys

    def lower(self, ctx, keys):
        return as_held(ctx, keys, ctx.out_avals[0])


@primitive("random_clone")
class RandomClone(OnKeys):
    """The same key under a new name, for reuse that is meant."""

    makes_keys = "clone"
    eager = watched

    shard_results = sharding_rules.elementwise

    def typing(self, keys):
        key_aval(self, keys)
        return keys

    def evaluate(self, keys):
        return keys

    def lower(self, ctx, keys):
        return as_held(ctx, keys, ctx.out_avals[0])


def counters_numpy(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 0, 1, 2, …, each as its high and low 32 bits."""
    wide = np.arange(count, dtype=U64)
    return (wide >> U64.type(32)).astype(U32), wide.astype(U32)


def counters_text(ctx: Any, count: int) -> tuple[str, str]:
    """Write 0, 1, 2, … (shape (count,)), each as its high and low 32 bits."""
    if isinstance(count, Dim) or count <= 1 << 32:
        return ctx.constant(0, ShapedArray((), U32)), ctx.iota(0, ShapedArray((count,), U32))
    wide = ShapedArray((count,), U64)
    number = ctx.iota(0, wide)
    half = ctx.constant(32, ShapedArray((), U64))
    high = ctx.elementwise("stablehlo.shift_right_logical", number, half, out=wide)
    return ctx.convert(high, U32), ctx.convert(number, U32)


def blocks_numpy(keys: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return blocks 0…count-1 of each key, two arrays of shape (*keys, count)."""
    return scramble_numpy((keys[..., :1], keys[..., 1:]), counters_numpy(count))


def blocks_text(ctx: Any, keys: str, count: int) -> tuple[str, str]:
    """Write blocks 0…count-1 of each key, two values of shape (keys, count); (count,) for one."""
    held = ctx.in_avals[0].shape
    number = math.prod(held)
    key = words(ctx, keys, (number, 1) if held else ())
    high, low = counters_text(ctx, count)
    if held:
        low = ctx.reshape(low, (1, count))
        high = high if isinstance(count, Dim) or count <= 1 << 32 else ctx.reshape(high, (1, count))
    return scramble_text(ctx, key, (high, low), (number, count) if held else (count,))


# -- without ``threefry_partitionable``: one sequence of words for all that a key makes ------------


def sequence_numpy(keys: np.ndarray, count: int) -> np.ndarray:
    """Return ``count`` words of each key: its blocks (i, half + i), all first words before all
    second ones.  Source: observed behaviour of jax_threefry_partitionable=False.
    """
    half = (count + 1) // 2
    first = np.arange(half, dtype=U32)
    second = first + U32.type(half)
    if count % 2:
        second[-1] = 0
    a, b = scramble_numpy((keys[..., :1], keys[..., 1:]), (first, second))
    return np.concatenate([a, b], -1)[..., :count]


def sequence_text(ctx: Any, keys: str, count: int) -> str:
    """Write ``sequence_numpy``: a value of shape (keys, count); (count,) for one key."""
    held = ctx.in_avals[0].shape
    number, half = math.prod(held), (count + 1) // 2
    lead: tuple[int, ...] = (number,) if held else ()
    key = words(ctx, keys, (number, 1) if held else ())
    row = ShapedArray((half,), U32)
    first = ctx.iota(0, row)
    second = ctx.elementwise("stablehlo.add", first, ctx.constant(half, row), out=row)
    if count % 2:
        last = ctx.compare("EQ", first, ctx.constant(half - 1, row))
        second = ctx.choose(last, ctx.constant(0, row), second)
    if held:
        first, second = ctx.reshape(first, (1, half)), ctx.reshape(second, (1, half))
    a, b = scramble_text(ctx, key, (first, second), (*lead, half))
    whole = ctx.emit(f"stablehlo.concatenate {a}, {b}, dim = {len(lead)}", a, b,
                     out=ShapedArray((*lead, 2 * half), U32))
    return cut_text(ctx, whole, count)


def cut_text(ctx: Any, x: str, count: int) -> str:
    """Write the first ``count`` elements along the last axis of ``x``."""
    have = ctx.avals[x].shape
    shape = (*have[:-1], count)
    return x if shape == have else ctx.slice(x, (0,) * len(shape), shape)


def sequential_bits_numpy(prim: RandomBits, keys: np.ndarray) -> np.ndarray:
    """Return the integers that ``prim`` makes of one sequence of words."""
    size, width = math.prod(prim.shape), prim.bit_width
    found = sequence_numpy(keys, -(-width * size // 32))
    if width == 64:
        high, low = found[..., :size].astype(U64), found[..., size:].astype(U64)
        found = (high << U64.type(32)) | low
    elif width < 32:
        places = np.arange(32 // width, dtype=U32) * U32.type(width)
        found = (found[..., None] >> places).reshape(*found.shape[:-1], -1)[..., :size]
    return found.astype(prim.dtype)


def sequential_bits_text(ctx: Any, prim: RandomBits, keys: str) -> str:
    """Write ``sequential_bits_numpy``."""
    size, width = math.prod(prim.shape), prim.bit_width
    found = sequence_text(ctx, keys, -(-width * size // 32))
    shape = ctx.avals[found].shape
    if width == 64:
        high = ctx.convert(cut_text(ctx, found, size), U64)
        low = ctx.convert(ctx.slice(found, (*[0] * (len(shape) - 1), size), shape), U64)
        wide = ShapedArray((*shape[:-1], size), U64)
        half = ctx.constant(32, wide)
        high = ctx.elementwise("stablehlo.shift_left", high, half, out=wide)
        return ctx.elementwise("stablehlo.or", high, low, out=wide)
    if width < 32:
        parts = ShapedArray((*shape, 32 // width), U32)
        places = ctx.elementwise("stablehlo.multiply", ctx.iota(len(shape), parts),
                                 ctx.constant(width, parts), out=parts)
        found = ctx.broadcast(found, parts.shape, range(len(shape)))
        found = ctx.elementwise("stablehlo.shift_right_logical", found, places, out=parts)
        found = cut_text(ctx, ctx.reshape(found, (*shape[:-1], parts.shape[-1] * shape[-1])), size)
    return ctx.convert(found, prim.dtype)


def _checked_shape(prim: Primitive, shape: tuple[int, ...]) -> None:
    if any(n < 0 for n in shape):
        raise errors.explained(
            errors.ShapeError, f"{prim.name}.C2",
            f"{prim.name} needs sizes of zero or more, got shape {shape}.",
            advice="Sizes cannot be negative.")


@primitive("random_split")
class RandomSplit(OnKeys):
    """Make ``shape`` new keys of each key."""

    consumes_key = True
    makes_keys = "split"
    eager = watched

    shape: tuple[int, ...]
    partitionable: bool = True  # a setting; equations do not show it

    shard_results = sharding_rules.keys
    params = property(lambda self: {"shape": self.shape})

    def physical(self, in_avals, out_avals):
        return in_avals[0].dtype.impl.splitting(self)

    def typing(self, keys):
        _checked_shape(self, self.shape)
        return ShapedArray((*keys.shape, *self.shape), key_aval(self, keys))

    def evaluate(self, keys):
        if not self.partitionable:
            return sequence_numpy(keys, 2 * math.prod(self.shape)).reshape(
                *keys.shape[:-1], *self.shape, 2)
        a, b = blocks_numpy(keys, math.prod(self.shape))
        return np.stack([a, b], axis=-1).reshape(*keys.shape[:-1], *self.shape, 2)

    def lower(self, ctx, keys):
        out = ctx.out_avals[0]
        if not self.partitionable:
            found = sequence_text(ctx, keys, 2 * math.prod(self.shape))
            return ctx.emit(f"stablehlo.reshape {found}", found, out=out)
        a, b = blocks_text(ctx, keys, math.prod(self.shape))
        return new_keys(ctx, ctx.reshape(a, out.shape), ctx.reshape(b, out.shape), out)


@primitive("random_bits")
class RandomBits(OnKeys):
    """Make unsigned integers of ``bit_width`` bits and of ``shape`` from each key."""

    consumes_key = True
    eager = watched

    bit_width: int
    shape: tuple[int, ...]
    partitionable: bool = True  # a setting; equations do not show it

    shard_results = sharding_rules.keys
    params = property(lambda self: {"bit_width": self.bit_width, "shape": self.shape})

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(f"uint{self.bit_width}")

    def physical(self, in_avals, out_avals):
        return in_avals[0].dtype.impl.bits(self)

    def typing(self, keys):
        key_aval(self, keys)
        _checked_shape(self, self.shape)
        if self.bit_width not in (8, 16, 32, 64):
            raise errors.explained(
                errors.ArgumentError, "random_bits.C3",
                f"random_bits makes 8, 16, 32 or 64 bits, got bit_width={self.bit_width}.",
                advice="Ask for a wider unsigned dtype and shift.")
        return ShapedArray((*keys.shape, *self.shape), self.dtype)

    def evaluate(self, keys):
        if not self.partitionable:
            return sequential_bits_numpy(self, keys).reshape(*keys.shape[:-1], *self.shape)
        a, b = blocks_numpy(keys, math.prod(self.shape))
        both = (a.astype(U64) << U64.type(32)) | b if self.bit_width == 64 else a ^ b
        return both.astype(self.dtype).reshape(*keys.shape[:-1], *self.shape)

    def lower(self, ctx, keys):
        return ctx.apart("random_bits", self, self.write, keys)

    def write(self, ctx, keys):
        if not self.partitionable:
            return ctx.reshape(sequential_bits_text(ctx, self, keys), ctx.out_avals[0].shape)
        a, b = blocks_text(ctx, keys, math.prod(self.shape))
        if self.bit_width == 64:
            wide = ctx.avals[a].update(dtype=U64)
            half = ctx.constant(32, ShapedArray((), U64))
            high = ctx.elementwise("stablehlo.shift_left", ctx.convert(a, U64), half, out=wide)
            bits = ctx.elementwise("stablehlo.or", high, ctx.convert(b, U64), out=wide)
        else:
            bits = ctx.elementwise("stablehlo.xor", a, b, out=ctx.avals[a])
        return ctx.reshape(ctx.convert(bits, self.dtype), ctx.out_avals[0].shape)


@primitive("random_fold_in")
class RandomFoldIn(Primitive):
    """Make a new key of a key and a number (uint32); shapes broadcast."""

    makes_keys = "fold_in"
    eager = watched

    shard_results = sharding_rules.elementwise

    def physical(self, in_avals, out_avals):
        return in_avals[0].dtype.impl.folding(self)

    def typing(self, keys, numbers):
        dtype = key_aval(self, keys)
        if numbers.dtype != U32:
            raise errors.explained(
                errors.DTypeError, "random_fold_in.C2",
                f"random_fold_in needs uint32 data, got {numbers.str_short(True)}.",
                advice="jax.random.fold_in converts integers.")
        return ShapedArray(np.broadcast_shapes(keys.shape, numbers.shape), dtype)

    def evaluate(self, keys, numbers):
        a, b = scramble_numpy((keys[..., 0], keys[..., 1]), (np.zeros_like(numbers), numbers))
        return np.stack([a, b], axis=-1)

    def lower(self, ctx, keys, numbers):
        out = ctx.out_avals[0]
        key = words(ctx, keys, ctx.in_avals[0].shape)
        zero = ctx.constant(0, ShapedArray((), U32))
        a, b = scramble_text(ctx, key, (zero, numbers), out.shape)
        return new_keys(ctx, a, b, out)

    def jvp(self, primals, tangents):
        return bind(self, *primals), None

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        xs, dim = align_batch(size, xs, dims)
        return bind(self, *xs), dim


def random_seed(seeds: Any, impl: Generator) -> Any:
    """Return keys of integers."""
    return bind(RandomSeed(impl), seeds)


def random_wrap(base: Any, impl: Generator) -> Any:
    """Return the keys that uint32 words stand for."""
    return bind(RandomWrap(impl), base)


def keys_filled(dtype: KeyDType, shape: Sequence[int], word: int) -> Any:
    """Return keys of ``shape`` whose words are all ``word``."""
    words = broadcast_in_dim(np.uint32(word), (*shape, *dtype.impl.key_shape), ())
    return random_wrap(words, dtype.impl)


def random_unwrap(keys: Any) -> Any:
    """Return the uint32 words of keys."""
    return bind(RandomUnwrap(), keys)


def random_clone(keys: Any) -> Any:
    """Return the same keys under a new name."""
    return bind(RandomClone(), keys)


def random_split(keys: Any, shape: Sequence[int]) -> Any:
    """Return ``shape`` new keys of each of ``keys``."""
    return bind(RandomSplit(tuple(shape), config.threefry_partitionable.value), keys)


def random_bits(keys: Any, bit_width: int, shape: Sequence[int]) -> Any:
    """Return unsigned integers of ``shape`` from each of ``keys``."""
    return bind(RandomBits(bit_width, tuple(shape), config.threefry_partitionable.value), keys)


def random_fold_in(keys: Any, numbers: Any) -> Any:
    """Return new keys of ``keys`` and uint32 ``numbers``, whose shapes broadcast."""
    return bind(RandomFoldIn(), keys, numbers)


def threefry2x32(k1: Any, k2: Any, x1: Any, x2: Any) -> list[Any]:
    """Return the encryption of (x1, x2) under (k1, k2), uint32 arrays whose shapes broadcast."""
    return bind(Threefry2x32(), k1, k2, x1, x2)


