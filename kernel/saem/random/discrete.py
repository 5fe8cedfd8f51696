"""How are things picked and shuffled?

A shuffle sorts by random bits.  A pick by weight is the argmax of logits with Gumbel noise, or a
search among running sums.

Read before: ``random.continuous``.  Read after: ``saem.random``.
Invariant: same key gives the picks of JAX (test_random.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saem import lax
from saem.core import dtypes, errors
from saem.core.avals import aval_of
from saem.core.dimensions import Dim, bit_length, is_static, unwrapped
from saem.numpy.index_plan import as_index
from saem.ops.linear import literal
from saem.ops.random_bits import random_bits
from saem.ops.shape import canonical_axis
from saem.random.basic import mode_of_gumbel, standard, two_keys, uniform_integers
from saem.random.continuous import standard_gumbel, to_rank_of
from saem.random.keys import as_dtype, as_shape, joined_shape, placed, takes_any_key, used
from saem.typing import Array, ArrayLike, DTypeLike, Shape

I32, U32 = np.dtype("int32"), np.dtype("uint32")


def take(x: Any, places: Any, axis: int) -> Any:
    """Return ``x`` at ``places`` (of any shape, known to be inside) along ``axis``."""
    shape, where = aval_of(x).shape, aval_of(places).shape
    rank = len(where)
    offsets = tuple(i if i < axis else i + rank - 1 for i in range(len(shape)) if i != axis)
    numbers = lax.GatherDimensionNumbers(offsets, (axis,), (axis,))
    sizes = tuple(1 if i == axis else n for i, n in enumerate(shape))
    starts = lax.broadcast_in_dim(places, (*where, 1), tuple(range(rank)))
    return lax.gather(x, starts, numbers, sizes,
                      mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


# -- shuffling -------------------------------------------------------------------------------------


def shuffled(key: Any, x: Any, axis: int) -> Any:
    """Return ``x`` shuffled along ``axis``, every line by itself, of typed ``key``.

    One sort by 32 random bits leaves ties unshuffled; enough sorts make them improbable.
    """
    size = aval_of(x).size
    if not is_static((size,)):
        raise NotImplementedError("permutation: how often numbers are shuffled depends on how many "
                                  f"there are, and the size {size} is not known")
    size = max(1, size)
    for _ in range(math.ceil(3 * math.log(size) / math.log(0xFFFFFFFF))):
        key, used_up = two_keys(key)
        by = random_bits(used_up, 32, aval_of(x).shape)
        x = lax.sort_key_val(by, x, axis)[1]
    return x


@takes_any_key(2, called="permutation")
def _permuted_range(key, n, dtype):
    return shuffled(key, lax.iota(dtype, n), 0)


@takes_any_key(2)
def _permutation(key, axis, independent, x):
    shape = aval_of(x).shape
    if independent or len(shape) == 1:
        return shuffled(key, x, axis)
    return take(x, shuffled(key, lax.iota(dtypes.default_dtype(int), shape[axis]), 0), axis)


def permutation(key: ArrayLike, x: int | ArrayLike, axis: int = 0, independent: bool = False, *,
                out_sharding: Any = None) -> Array:
    """Return ``x`` shuffled along ``axis``, or a shuffled range if ``x`` is an integer.

    ``independent``: shuffle every line by itself instead of moving whole slices.

    Raises: TypeError if ``x`` is a scalar that is not an integer.

    >>> jax.random.permutation(jax.random.key(0), 5)
    Array([0, 1, 4, 3, 2], dtype=int32)
    """
    if out_sharding is not None:
        return placed(permutation, out_sharding, key, x, axis, independent)
    aval = aval_of(x)
    canonical_axis(axis, max(aval.ndim, 1))
    used(key)
    if aval.ndim and not aval.size:
        return lax.full_like(x, 0)
    if aval.ndim:
        return _permutation(key, canonical_axis(axis, aval.ndim), bool(independent), x)
    if not dtypes.is_integer(aval.dtype):
        raise errors.explained(
            errors.ArgumentTypeError, "permutation.C1",
            "x must be an integer or at least 1-dimensional",
            advice="Pass the number of elements, or an array of them.")
    return _permuted_range(key, max(0, int(x)), dtypes.default_dtype(int))


# -- picking ---------------------------------------------------------------------------------------


def first_at_least(sums: Any, wanted: Any) -> Any:
    """Return the first place in ascending ``sums`` that is at least each of ``wanted``."""
    n = aval_of(sums).shape[0]
    low = lax.full_like(wanted, 0, U32)
    high, last = lax.add(low, as_index(n, U32)), as_index(n - 1, U32)
    for _ in range(bit_length(n)):
        middle = lax.add(low, lax.div(lax.sub(high, low), literal(2, "uint32")))
        inside = lax.min(middle, last)
        reached = lax.le(wanted, take(sums, inside, 0))
        low, high = lax.select_n(reached, middle, low), lax.select_n(reached, high, middle)
    return lax.convert_element_type(high, I32)


@takes_any_key(5)
def _choice(key, n, shape, replace, axis, mode, a, p):
    draws = math.prod(shape)
    if p is None and replace:
        dtype = dtypes.default_dtype(int)
        end = n.__jax_array__() if isinstance(n, Dim) else literal(n, dtype)
        places = uniform_integers(key, shape, dtype, literal(0, dtype), end)
    elif p is None:
        order = shuffled(key, lax.iota(dtypes.default_dtype(int), n), 0)
        places = lax.slice(order, (0,), (draws,))
    elif replace:
        sums = lax.cumsum(p)
        total = lax.squeeze(lax.slice(sums, (n - 1,), (n,)), (0,))
        even = standard(key, shape, aval_of(sums).dtype)
        wanted = lax.mul(total, lax.sub(literal(1, aval_of(even).dtype), even))
        places = first_at_least(sums, wanted)
    else:
        noise = standard_gumbel(key, (n,), aval_of(p).dtype, mode)
        places = lax.top_k(lax.add(noise, lax.log(p)), draws)[1]
    places = lax.convert_element_type(places, dtypes.default_dtype(int))
    places = lax.reshape(places, shape)
    return places if a is None else take(a, places, axis)


def choice(key: ArrayLike, a: int | ArrayLike, shape: Shape = (), replace: bool = True,
           p: ArrayLike | None = None, axis: int = 0, mode: str | None = None) -> Array:
    """Return elements of ``a`` (or of 0, …, a-1) along ``axis``, with probabilities ``p``.

    Raises: ValueError if there is nothing to pick, or too few without replacement, or ``p`` does
    not fit; TypeError if ``shape`` is not a sequence.

    >>> jax.random.choice(jax.random.key(0), jnp.array([5, 6, 7]), (4,))
    Array([6, 5, 7, 6], dtype=int32)
    """
    if isinstance(shape, int):
        raise errors.explained(
            errors.ArgumentTypeError, "choice.C2",
            f"shape argument of jax.random.choice must be a sequence, got {shape}",
            advice=f"Write ({shape},).")
    a, p = unwrapped(a), unwrapped(p)
    shape, aval = as_shape(shape), aval_of(a)
    single = not aval.ndim
    axis = 0 if single else canonical_axis(axis, aval.ndim)
    n = int(a) if single else aval.shape[axis]
    check_choice(n, math.prod(shape), replace, p)
    used(key)
    if not math.prod(shape):
        kept = () if single else (*aval.shape[:axis], *aval.shape[axis + 1:])
        out = shape if single else (*kept[:axis], *shape, *kept[axis:])
        return lax.full(out, 0, aval.dtype)
    if p is not None:
        p = lax.convert_element_type(p, dtypes.to_inexact(aval_of(p).dtype))
    mode = mode_of_gumbel("choice", None if p is None or replace else mode)
    return _choice(key, n, shape, bool(replace), axis, mode, None if single else a, p)


def check_choice(n: int, draws: int, replace: bool, p: Any) -> None:
    """Refuse picks that cannot be made."""
    sentence = ""
    if n <= 0 and draws:
        sentence = "a must be greater than 0 unless no samples are taken"
    elif not replace and draws > n:
        sentence = (f"Cannot take a larger sample (size {draws}) than population (size {n}) "
                    "when 'replace=False'")
    elif p is not None and aval_of(p).shape != (n,):
        sentence = ("p must be None or a 1D vector with the same size as a.shape[axis]. "
                    f"p has shape {aval_of(p).shape} and a.shape[axis] is {n}.")
    if sentence:
        raise errors.explained(
            errors.ArgumentError, "choice.C1", sentence,
            advice="Check the number of elements and of draws.")


def _place(axis: int, shape: tuple[Any, ...], logits: Any) -> int:
    """Return which axis of the scores is ``axis`` of the logits, where ``shape`` is picked."""
    return axis + len(shape) - (aval_of(logits).ndim - 1)


def _scores(key, shape, axis, mode, logits):
    """Return logits with Gumbel noise: their largest is a pick by weight."""
    aval = aval_of(logits)
    place = _place(axis, shape, logits)
    full = (*shape[:place], aval.shape[axis], *shape[place:])
    noise = standard_gumbel(key, full, aval.dtype, mode)
    return lax.add(noise, lax.broadcast_to_rank(logits, len(full)))


def _largest(scores, shape, axis, logits):
    return lax.argmax(scores, _place(axis, shape, logits), dtypes.default_dtype(int))


@takes_any_key(3)
def _categorical(key, shape, axis, mode, logits):
    return _largest(_scores(key, shape, axis, mode, logits), shape, axis, logits)


_apart = takes_any_key(3, called="categorical")(_scores)
# From this many scores on they are an array of their own outside of programs: XLA on CPU draws
# number by number inside the search for a maximum, in four times the time.
_MANY = 4096


@takes_any_key(3)
def _categorical_without(key, shape, axis, mode, logits):
    dtype, whole = aval_of(logits).dtype, aval_of(logits).shape
    sample = len(shape) - (len(whole) - 1)
    draws = math.prod(shape[:sample])
    noise = standard_gumbel(key, whole, dtype, mode)
    places = lax.top_k(lax.add(logits, noise), draws, axis=axis)[1]
    order = (axis, *(i for i in range(len(whole)) if i != axis))
    return lax.reshape(lax.transpose(places, order), shape)


def categorical(key: ArrayLike, logits: ArrayLike, axis: int = -1, shape: Shape | None = None,
                replace: bool = True, mode: str | None = None, *,
                out_sharding: Any = None) -> Array:
    """Return places along ``axis`` of ``logits``, with probabilities softmax(logits).

    ``shape`` ends with the shape of ``logits`` without ``axis``; the axes before are draws.

    Raises: ValueError if ``shape`` does not, or for too many draws without replacement.

    >>> jax.random.categorical(jax.random.key(0), jnp.log(jnp.array([0.1, 0.9])), shape=(4,))
    Array([1, 1, 1, 1], dtype=int32)
    """
    if out_sharding is not None:
        return placed(categorical, out_sharding, key, logits, axis, shape, replace, mode)
    logits = unwrapped(logits)
    aval = aval_of(logits)
    axis = canonical_axis(axis, aval.ndim)
    if not dtypes.is_float(aval.dtype):
        raise errors.explained(
            errors.ArgumentError, "categorical.C2",
            f"categorical requires logits of a float dtype, got {aval.dtype.name}.",
            advice="Logits are logarithms: jnp.log(weights).")
    mode = mode_of_gumbel("categorical", mode)
    shape, logits = _shapes_joined(logits, axis, shape, replace)
    used(key)
    if not replace:
        return _categorical_without(key, shape, axis, mode, logits)
    count = aval.shape[axis]
    if is_static((*shape, count)) and math.prod(shape) * count >= _MANY:
        return _largest(_apart(key, shape, axis, mode, logits), shape, axis, logits)
    return _categorical(key, shape, axis, mode, logits)


def _shapes_joined(logits: Any, axis: int, shape: Shape | None, replace: bool
                   ) -> tuple[tuple[Any, ...], Any]:
    """Return the shape of the picks, and the logits broadcast to it where it is larger.

    Raises: ValueError for a shape that does not fit, or too many draws without replacement.
    """
    aval = aval_of(logits)
    rest = (*aval.shape[:axis], *aval.shape[axis + 1:])
    shape = rest if shape is None else as_shape(shape)
    ends = shape[len(shape) - len(rest):] if len(shape) >= len(rest) else None
    if replace and ends is not None and ends != rest and all(
            size in (1, end) for size, end in zip(rest, ends)):
        sizes = (*ends[:axis], aval.shape[axis], *ends[axis:])
        logits, rest = lax.broadcast_in_dim(logits, sizes, range(aval.ndim)), ends
    if ends != rest:
        raise errors.explained(
            errors.ArgumentError, "categorical.shape",
            f"categorical got shape {shape}, which must end with {rest}, the shape of the logits "
            "without the axis.", advice="Put the numbers of draws in front.")
    draws = math.prod(shape[: len(shape) - len(rest)])
    if not replace and draws > aval.shape[axis]:
        raise errors.explained(
            errors.ArgumentError, "categorical.C1",
            f"Number of samples without replacement ({draws}) cannot exceed number of categories "
            f"({aval.shape[axis]}).", advice="Draw fewer, or with replacement.")
    return shape, logits


@takes_any_key(2)
def _geometric(key, shape, dtype, p):
    part = aval_of(p).dtype
    even = standard(key, shape, part)
    even = lax.select_n(lax.eq(even, literal(0, part)), even, lax.full_like(even, 1))
    tail = to_rank_of(lax.log1p(lax.neg(p)), shape, part)
    trials = lax.floor(lax.div(lax.log(even), tail))
    return lax.convert_element_type(lax.add(trials, literal(1, part)), dtype)


def geometric(key: ArrayLike, p: ArrayLike, shape: Shape | None = None,
              dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Return how many trials of probability ``p`` it takes to the first success.

    >>> jax.random.geometric(jax.random.key(0), 0.5, (3,))
    Array([1, 1, 2], dtype=int32)
    """
    if out_sharding is not None:
        return placed(geometric, out_sharding, key, p, shape, dtype)
    dtype = as_dtype("geometric", dtype, int, dtypes.is_integer, "an int")
    if dtypes.is_complex(aval_of(p).dtype):
        raise errors.explained(
            errors.ArgumentError, "geometric.C1",
            f"geometric got a complex probability, of dtype {aval_of(p).dtype.name}.",
            advice="Complex numbers have no order: use p.real.")
    if not dtypes.is_float(aval_of(p).dtype):
        p = lax.convert_element_type(p, dtypes.default_dtype(float))
    shape = joined_shape("geometric", shape, p)
    used(key)
    return _geometric(key, shape, dtype, p)
