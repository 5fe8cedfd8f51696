"""Which generators of random bits are there?  (``jax.extend.random``)

Read before: ``random.keys``, ``ops.random_bits``.
Invariant: a key made here is the one that ``jax.random.key`` makes.
Source: the documentation of jax.extend.random.
"""

from __future__ import annotations

from typing import Any

from saem import lax
from saem import numpy as jnp
from saem.core import errors
from saem.generators.rbg import RBG, UNSAFE_RBG
from saem.ops.keys import THREEFRY, Generator
from saem.ops.random_bits import threefry2x32
from saem.random.keys import key

threefry_prng_impl, rbg_prng_impl, unsafe_rbg_prng_impl = THREEFRY, RBG, UNSAFE_RBG
threefry2x32_p = lax.threefry2x32_p


def seed_with_impl(impl: Generator, seed: Any) -> Any:
    """Return the key that ``seed`` makes for the generator ``impl``."""
    return key(seed, impl=impl.name)


def random_seed(seeds: Any, impl: Generator) -> Any:
    """Return the key that ``seeds``, a number, makes for the generator ``impl``."""
    return key(seeds, impl=impl.name)


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


def define_prng_impl(**_given: Any) -> Any:
    """Refuse: samplers here know their generators.

    Raises: NotImplementedError.
    """
    raise errors.explained(
        NotImplementedError, "random.impl",
        "define_prng_impl: there are the generators of jax.random.key, and no way "
        "to add one.", advice="Carry words of your own, and make bits of them by functions of "
        "arrays.")


__all__ = [
    "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p",
    "threefry_2x32", "threefry_prng_impl", "unsafe_rbg_prng_impl",
]
