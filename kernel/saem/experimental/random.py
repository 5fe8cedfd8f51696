"""What is a random generator that remembers where it is?  (``jax.experimental.random``)

A key and a counter in a mutable array: each draw folds the count into the key and adds one.  So
draws differ though nothing is handed back, under jit and in loops, too.

Read before: ``saem.random``, ``refs.arrays``.
Invariant: draw number n of a generator is that of ``fold_in(key, n)`` (tests/kernel/test_refs.py).
Source: the documentation of jax.experimental.random; JEP 28845 (stateful randomness).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem import numpy as jnp
from saem import random
from saem.core import containers, dtypes, errors, tree
from saem.core.trace import eval_trace, state
from saem.random.keys import is_typed
from saem.refs.arrays import Ref, addupdate, get, new_ref

__all__ = ["StatefulPRNG", "stateful_rng"]


class StatefulPRNG:
    """A random generator; ``stateful_rng`` makes one.

    ``_base_key`` is a typed key, ``_counter`` a reference to the number of draws so far.
    """

    __slots__ = ("_base_key", "_counter")

    def __init__(self, _base_key: Any, _counter: Any):
        if not is_typed(_base_key):
            raise errors.explained(
                errors.ArgumentError, "stateful_rng.C1",
                f"Expected base_key to be a typed PRNG key; got {_base_key}",
                advice="Make the generator with stateful_rng(seed), or the key with random.key.")
        if not (isinstance(_counter, Ref) and dtypes.is_integer(_counter.dtype)):
            raise errors.explained(
                errors.ArgumentError, "stateful_rng.C3",
                f"Expected counter to be a scalar integer ref; got {_counter}",
                advice="Make the generator with stateful_rng(seed).")
        self._base_key = _base_key
        self._counter = _counter

    def __repr__(self) -> str:
        return f"StatefulPRNG(_base_key={self._base_key!r}, _counter={self._counter!r})"

    def key(self, shape: Any = ()) -> Any:
        """Return a new key, or an array of keys of ``shape``, and count this draw."""
        key = random.fold_in(self._base_key, get(self._counter))
        addupdate(self._counter, ..., 1)
        return key if shape == () else random.split(key, shape)

    def random(self, size: Any = None, dtype: Any = float) -> Any:
        """Return floats spread evenly over [0, 1)."""
        return self.uniform(0.0, 1.0, size, dtype=dtype)

    def uniform(self, low: Any = 0, high: Any = 1, size: Any = None, *, dtype: Any = float) -> Any:
        """Return floats spread evenly over [low, high)."""
        return random.uniform(self.key(), _shape(size, low, high), dtype, low, high)

    def normal(self, loc: Any = 0, scale: Any = 1, size: Any = None, *, dtype: Any = float) -> Any:
        """Return normal numbers of mean ``loc`` and standard deviation ``scale``."""
        drawn = random.normal(self.key(), _shape(size, loc, scale), dtype)
        return jnp.add(_as(loc, drawn), jnp.multiply(_as(scale, drawn), drawn))

    def integers(self, low: Any, high: Any = None, size: Any = None, *, dtype: Any = int) -> Any:
        """Return integers spread evenly over low, …, high - 1; over 0, …, low - 1 without high."""
        if high is None:
            low, high = 0, low
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Return one generator whose key and counter are arrays of shape ``num``, for ``vmap``."""
        shape = (num,) if isinstance(num, (int, np.integer)) else tuple(num)
        return StatefulPRNG(self.key(shape), new_ref(jnp.zeros(shape, int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Return ``n_children`` independent generators."""
        count = operator.index(n_children)
        keys = self.key((count,)) if count else ()
        return [StatefulPRNG(key, new_ref(0)) for key in keys]


def _shape(size: Any, *parameters: Any) -> tuple[int, ...]:
    """Return the shape of a draw: ``size``, or that to which its parameters broadcast."""
    if size is None:
        return np.broadcast_shapes(*(np.shape(p) for p in parameters))
    return (operator.index(size),) if isinstance(size, (int, np.integer)) else tuple(size)


def _as(parameter: Any, drawn: Any) -> Any:
    return parameter if hasattr(parameter, "dtype") else jnp.asarray(parameter, drawn.dtype)


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """Return a generator seeded by an integer; outside programs by the system if ``seed`` is None.

    Raises: TypeError for a ``seed`` that is no integer scalar, or none inside a program.
    """
    if seed is None:
        if state.trace is not eval_trace:
            raise errors.explained(
                errors.ArgumentTypeError, "stateful_rng.C2",
                "When used within transformed code, jax.experimental.random.stateful_rng() "
                "requires an explicit seed to be set.",
                advice="Else the program would draw the same numbers at each call: pass a seed.")
        seed = math.floor(np.random.SeedSequence().generate_state(1)[0] // 2)
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))


def _rebuilt(_: None, parts: Sequence[Any]) -> StatefulPRNG:
    rng = object.__new__(StatefulPRNG)  # of whatever stands in the places of leaves
    rng._base_key, rng._counter = parts
    return rng


containers.register_pytree_with_keys(
    StatefulPRNG,
    lambda rng: (((tree.GetAttrKey("_base_key"), rng._base_key),
                  (tree.GetAttrKey("_counter"), rng._counter)), None), _rebuilt)
