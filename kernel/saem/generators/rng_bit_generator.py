"""How does XLA itself make random bits from a counter?

``rng_bit_generator`` takes a state of four uint32 words and gives a new state and bits: Philox
(XLA's default on CPU) scrambles a 128-bit counter under a 64-bit key, Threefry a 64-bit one.
``rng_uniform`` is XLA's generator with a state of its own, different at every call.

Read before: ``ops.random_bits`` (Threefry).  Read after: ``generators.rbg``, its keys.
Invariant: the NumPy rule gives the bits of XLA's CPU, of any width and shape
(tests/kernel/test_random_keys.py).
Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3" (SC'11);
StableHLO specification, rng_bit_generator; where bits stand in an array, by observation.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray
from saem.core.dimensions import is_static
from saem.core.primitive import NOT_LINEAR, Primitive, absent, primitive
from saem.core.trace import bind
from saem.ops import sharding_rules
from saem.ops.dynamic_slicing import dynamic_update_index_in_dim
from saem.ops.linear import moveaxis
from saem.ops.random_bits import scramble_numpy
from saem.ops.reshard import reshard_to
from saem.ops.shape import squeeze
from saem.ops.slicing import slice_in_dim
from saem.placement.shardings import requested_sharding
from saem.typing import DTypeLike

U32, U64 = np.dtype("uint32"), np.dtype("uint64")
WIDTHS = (8, 16, 32, 64)

PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
PHILOX_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
PHILOX_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


class RandomAlgorithm(enum.IntEnum):
    """Which generator ``rng_bit_generator`` uses."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


# -- the specification, in NumPy -------------------------------------------------------------------


def philox_numpy(counter: Sequence[np.ndarray], key: tuple[int, int]) -> np.ndarray:
    """Encrypt 128-bit counters, four uint64 arrays of 32-bit words, lowest first.

    Returns uint32 words of shape (count, 4).
    """
    a, b, c, d = counter
    for step in range(PHILOX_ROUNDS):
        k, l = (np.uint64((word + step * more) & 0xFFFFFFFF)
                for word, more in zip(key, PHILOX_KEY_STEPS))
        first, second = (x * np.uint64(m) for x, m in zip((a, c), PHILOX_MULTIPLIERS))
        a, b, c, d = ((second >> _HALF) ^ b ^ k, second & _LOW, (first >> _HALF) ^ d ^ l,
                      first & _LOW)
    return np.stack([a, b, c, d], axis=-1).astype(U32)


def philox_words(state: np.ndarray, count: int) -> tuple[np.ndarray, int]:
    """Return ``count`` uint32 words from a state of two uint64, and by how much it moves on."""
    blocks = -(-count // 4)
    key, low = int(state[0]), int(state[1])
    steps = np.arange(blocks, dtype=U64)
    with np.errstate(over="ignore"):
        lows = steps + np.uint64(low)
        highs = np.uint64(key) + (lows < np.uint64(low)).astype(U64)
        counter = (lows & _LOW, lows >> _HALF, highs & _LOW, highs >> _HALF)
        words = philox_numpy(counter, (key & 0xFFFFFFFF, key >> 32))
    return words.reshape(-1)[:count], blocks


def paired_axis(shape: tuple[int, ...]) -> int:
    """Return the axis along which the two words of Threefry blocks alternate.

    It is the first of even size; without one the longest, which is filled up.
    """
    even = [axis for axis, size in enumerate(shape) if size % 2 == 0]
    return even[0] if even else int(np.argmax(shape))


def threefry_words(state: np.ndarray, shape: tuple[int, ...], wide: bool
                   ) -> tuple[np.ndarray, int]:
    """Return uint32 (or, if ``wide``, uint64) numbers of ``shape``, and how far the state moves."""
    sizes = shape or (1,)
    axis = 0 if wide else paired_axis(sizes)
    pairs = list(sizes)
    if not wide:
        pairs[axis] = -(-sizes[axis] // 2)
    blocks = math.prod(pairs)
    key = (state[0] & _LOW).astype(U32), (state[0] >> _HALF).astype(U32)
    with np.errstate(over="ignore"):
        counter = np.arange(blocks, dtype=U64) + state[1]
    first, second = scramble_numpy(
        key, ((counter & _LOW).astype(U32), (counter >> _HALF).astype(U32)))
    if wide:
        return (first.astype(U64) | second.astype(U64) << _HALF).reshape(shape), blocks
    both = np.stack([first.reshape(pairs), second.reshape(pairs)], axis=axis + 1)
    pairs[axis] *= 2
    whole = both.reshape(pairs)
    return np.take(whole, np.arange(sizes[axis]), axis).reshape(shape), blocks


def bits_numpy(state: np.ndarray, shape: tuple[int, ...], dtype: np.dtype,
               algorithm: int = RandomAlgorithm.RNG_DEFAULT) -> tuple[np.ndarray, np.ndarray]:
    """Return the new state (two uint64) and bits of ``shape``."""
    count, wide = math.prod(shape), dtype.itemsize == 8
    if algorithm == RandomAlgorithm.RNG_THREE_FRY:
        words, moved = threefry_words(state, shape, wide)
    else:
        flat, moved = philox_words(state, count * (2 if wide else 1))
        words = flat.reshape(-1, 2).astype(U64) @ np.array([1, 1 << 32], U64) if wide else flat
    with np.errstate(over="ignore"):
        after = np.stack([state[0], state[1] + np.uint64(moved)])
    return after, words.astype(dtype).reshape(shape)


# -- the same as StableHLO -------------------------------------------------------------------------


def bits_text(ctx: Any, state: str, out: ShapedArray,
              algorithm: int = RandomAlgorithm.RNG_DEFAULT) -> tuple[str, str]:
    """Write bits of ``out`` from a state of four uint32 or two uint64; returns state and bits."""
    words = ctx.avals[state]
    pair = ShapedArray((2,), U64)
    if words.dtype == U32:
        halves = ctx.reshape(state, (2, 2))
        state = ctx.emit(f"stablehlo.bitcast_convert {halves}", halves, out=pair)
    name = RandomAlgorithm(algorithm).name.removeprefix("RNG_")
    if is_static(out.shape):
        after, bits = ctx.emit_many(
            f"stablehlo.rng_bit_generator {state}, algorithm = {name}", state, outs=[pair, out])
    else:
        sizes = ctx.vector(out.shape, np.dtype("int32"))
        after, bits = ctx.emit_many(
            f"stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator({state}, {sizes})", state,
            sizes, outs=[pair, out], attributes={
                "api_version": "2 : i32",
                "rng_algorithm": f"#stablehlo<rng_algorithm {name}>"})
    if words.dtype == U32:
        halves = ctx.emit(f"stablehlo.bitcast_convert {after}", after,
                          out=ShapedArray((2, 2), U32))
        after = ctx.reshape(halves, (4,))
    return after, bits


# -- the primitives --------------------------------------------------------------------------------


@primitive("rng_bit_generator")
class RngBitGenerator(Primitive):
    """Bits of ``shape`` from a state; batched, the first state makes the bits of the whole stack.

    That is what JAX does, and why ``unsafe_rbg`` is called so.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    algorithm: int

    multiple_results = True

    shard_results = sharding_rules.rng_bit_generator

    @property
    def params(self):
        return {"algorithm": self.algorithm, "dtype": self.dtype, "out_sharding": None,
                "shape": self.shape}

    def typing(self, state):
        if (state.shape, state.dtype) not in (((4,), U32), ((2,), U64)):
            raise errors.explained(
                errors.ArgumentTypeError, "rng_bit_generator.C1",
                "rng_bit_generator needs a key of type u32[4] or u64[2], got "
                f"{state.str_short(True)}.",
                advice="jax.random.key_data(jax.random.key(0, impl='rbg')) is one.")
        if dtypes.scalar_kind(self.dtype) != "uint" or self.dtype.itemsize * 8 not in WIDTHS:
            raise errors.explained(
                errors.DTypeError, "rng_bit_generator.C2",
                f"rng_bit_generator: unsupported dtype {self.dtype.name}",
                advice="Ask for uint8, uint16, uint32 or uint64.")
        if any(n < 0 for n in self.shape):
            raise errors.explained(
                errors.ShapeError, "rng_bit_generator.C3",
                f"rng_bit_generator needs sizes of zero or more, got shape {self.shape}.",
                advice="Sizes cannot be negative.")
        return [state, ShapedArray(self.shape, self.dtype)]

    def evaluate(self, state):
        pair = state.view(U64) if state.dtype == U32 else state
        after, bits = bits_numpy(pair, self.shape, self.dtype, self.algorithm)
        return [after.view(state.dtype), bits]

    def lower(self, ctx, state):
        return [*bits_text(ctx, state, ctx.out_avals[1], self.algorithm)]

    def jvp(self, primals, tangents):
        return bind(self, *primals), [None, None]

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        states = moveaxis(xs[0], dims[0], 0)
        stacked = RngBitGenerator((size, *self.shape), self.dtype, self.algorithm)
        after, bits = bind(stacked, squeeze(slice_in_dim(states, 0, 1, axis=0), (0,)))
        return [dynamic_update_index_in_dim(states, after, 0, 0), bits], [0, 0]


class StateOfItsOwn(str):
    """The effect of a generator whose state XLA keeps: two equal calls differ, so both are run."""

    __slots__ = ()


@primitive("rng_uniform")
class RngUniform(Primitive):
    """Numbers in [a, b) from XLA's own state."""

    shape: tuple[int, ...]

    effects = frozenset({StateOfItsOwn("rng_uniform")})

    shard_results = sharding_rules.elementwise

    def typing(self, a, b):
        if a.dtype != b.dtype:
            raise errors.explained(
                errors.ArgumentError, "rng_uniform.C1",
                "Arguments to rng_uniform must have identical dtypes, got "
                f"{a.dtype.name} and {b.dtype.name}.", advice="Convert one of them with astype.")
        if a.shape or b.shape:
            raise errors.explained(
                errors.ArgumentError, "rng_uniform.C2",
                f"Arguments to rng_uniform must be scalars; got shapes {a.shape} and {b.shape}.",
                advice="Scale the numbers afterwards.")
        return ShapedArray(self.shape, a.dtype, a.weak_type and b.weak_type)

    def evaluate(self, a, b):
        unit = np.random.default_rng().random(self.shape)
        return np.asarray(a + unit * (b.astype(np.float64) - a)).astype(a.dtype)

    def lower(self, ctx, a, b):
        sizes = ctx.constant(np.asarray(self.shape, np.int64),
                             ShapedArray((len(self.shape),), np.dtype("int64")))
        return ctx.emit_many(f"stablehlo.rng {a}, {b}, {sizes}, distribution = UNIFORM",
                             a, b, sizes, outs=ctx.out_avals)[0]

    jvp = absent("its numbers change from call to call", NotImplementedError)
    transpose = NOT_LINEAR
    batch = absent("its numbers change from call to call; use jax.random", NotImplementedError)


def rng_bit_generator(key: Any, shape: Sequence[int], dtype: DTypeLike | None = np.uint32,
                      algorithm: Any = RandomAlgorithm.RNG_DEFAULT, *, out_sharding: Any = None
                      ) -> tuple[Any, Any]:
    """Return a new state and unsigned bits of ``shape``, made by XLA from the state ``key``.

    Raises: TypeError for a state that is not u32[4] (or u64[2]) or a dtype that is not unsigned.
    """
    wanted = dtypes.canonicalize(dtype, explicit=True, where="rng_bit_generator")
    state, bits = bind(RngBitGenerator(tuple(shape), wanted, algorithm), key)
    sharding = requested_sharding(out_sharding, len(tuple(shape)), "rng_bit_generator")
    return state, bits if sharding is None else reshard_to(bits, sharding)


def rng_uniform(a: Any, b: Any, shape: Sequence[int]) -> Any:
    """Return numbers between scalars ``a`` and ``b``, other ones at every call.

    Raises: ValueError if ``a`` and ``b`` are no scalars of one dtype.

    >>> lax.rng_uniform(0., 1., (2,)).shape
    (2,)
    """
    return bind(RngUniform(tuple(shape)), a, b)
