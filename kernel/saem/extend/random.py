"""Which generators of random bits are there?  (``jax.extend.random``)

Read before: ``random.keys``, ``ops.random_bits``.
Invariant: a key made here is the one that ``jax.random.key`` makes.
Source: the documentation of jax.extend.random.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from saem import lax
from saem import numpy as jnp
from saem.generators.defined import Defined, Name
from saem.generators.rbg import RBG, UNSAFE_RBG
from saem.ops.keys import THREEFRY, Generator
from saem.ops.random_bits import random_seed as seeded
from saem.ops.random_bits import threefry2x32
from saem.random.keys import key
from saem.typing import Array

threefry_prng_impl, rbg_prng_impl, unsafe_rbg_prng_impl = THREEFRY, RBG, UNSAFE_RBG
threefry2x32_p = lax.threefry2x32_p


def seed_with_impl(impl: Generator, seed: Any) -> Any:
    """Return the key that ``seed`` makes for the generator ``impl``."""
    return key(seed, impl=impl)


def random_seed(seeds: Any, impl: Generator) -> Any:
    """Return the keys that the integers ``seeds`` make for the generator ``impl``, in their shape.
    """
    return seeded(jnp.asarray(seeds), impl)


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """Return the words that the cipher makes of the words ``count`` under a key of two words.

    Raises: TypeError if they are not uint32.
    """
    keypair, count = jnp.asarray(keypair), jnp.asarray(count)
    if keypair.dtype != jnp.uint32 or count.dtype != jnp.uint32:
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {keypair.dtype} and "
                        f"{count.dtype}")
    flat = jnp.ravel(count)
    odd = flat.size % 2
    flat = jnp.concatenate([flat, jnp.zeros(odd, jnp.uint32)])
    half = flat.size // 2
    made = jnp.concatenate(threefry2x32(keypair[0], keypair[1], flat[:half], flat[half:]))
    return made[:made.size - odd].reshape(count.shape)


def define_prng_impl(*, key_shape: Sequence[int], seed: Callable[[Array], Array],
                     split: Callable[[Array, tuple[int, ...]], Array],
                     random_bits: Callable[[Array, int, tuple[int, ...]], Array],
                     fold_in: Callable[[Array, Array], Array], name: str = "<unnamed>",
                     tag: str = "?") -> Hashable:
    """Return a generator of random bits for ``jax.random.key(…, impl=…)``.

    ``key_shape``: that of the uint32 words of a key.  ``seed(integer)`` and
    ``fold_in(words, number)`` return the words of a key, ``split(words, shape)`` those of the keys
    of ``shape``, ``random_bits(words, bits, shape)`` unsigned integers of so many bits.  ``tag``:
    what the dtype of its keys shows.

    >>> counting = define_prng_impl(
    ...     key_shape=(1,), seed=lambda n: jnp.uint32(n)[None],
    ...     split=lambda words, shape: words + jnp.arange(
    ...         np.prod(shape), dtype=jnp.uint32).reshape(*shape, 1),
    ...     random_bits=lambda words, bits, shape: jnp.full(shape, words[0], f"uint{bits}"),
    ...     fold_in=lambda words, number: words + number, tag="count")
    >>> key = jax.random.key(7, impl=counting)
    >>> key.dtype, int(jax.random.bits(jax.random.split(key)[1]))
    (key<count>, 8)
    """
    return Defined(Name(name), tag, tuple(key_shape), seed, split, random_bits, fold_in)


__all__ = [
    "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p",
    "threefry_2x32", "threefry_prng_impl", "unsafe_rbg_prng_impl",
]
