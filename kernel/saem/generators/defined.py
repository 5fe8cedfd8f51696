"""How does a program define a generator of random bits of its own?

By four functions of arrays, of one key each: what key an integer makes, which keys one key splits
into, which bits it makes, and what key it becomes with a number.  They are mapped over stacks of
keys and written into the program where a key is used.

Read before: ``generators.rbg``, ``transform.mapping``.  Read after: ``saem.extend.random``.
Invariant: a generator is equal to itself alone, whatever its functions and its name are.
Source: the documentation of jax.extend.random.define_prng_impl.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from saem.core import errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.jaxpr import evaluate
from saem.core.record import Record
from saem.ops.keys import Generator
from saem.ops.linear import broadcast_in_dim
from saem.ops.random_bits import U32
from saem.ops.shape import reshape
from saem.transform.mapping import vmap
from saem.transform.staging import trace_flat, write_function


class Name(str):
    """A name that is equal to itself alone: two generators may have the same."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class Defined(Generator, eq=False):
    """A generator by the functions of a program."""

    seed: Callable[..., Any]
    split: Callable[..., Any]
    random_bits: Callable[..., Any]
    fold_in: Callable[..., Any]

    seed_copies = 0
    listed: ClassVar[bool] = False

    def seeding(self, prim):
        return Traced(prim, self, "seed", self.seed, self.key_shape)

    def bits(self, prim):
        width, shape = prim.bit_width, prim.shape
        return Traced(prim, self, "random_bits", lambda key: self.random_bits(key, width, shape),
                      shape, prim.dtype)

    def splitting(self, prim):
        return Traced(prim, self, "split", lambda key: self.split(key, prim.shape),
                      (*prim.shape, *self.key_shape))

    def folding(self, prim):
        return Traced(prim, self, "fold_in", self.fold_in, self.key_shape)


class Traced(Record):
    """What runs in place of ``prim``: ``function`` of each key, whose result has ``shape``."""

    prim: Any
    impl: Defined
    role: str
    function: Callable[..., Any]
    shape: tuple[int, ...]
    dtype: Any = U32

    multiple_results = False

    def evaluate(self, *xs: np.ndarray) -> np.ndarray:
        avals = [aval_of(x) for x in xs]
        return evaluate(trace_flat(self.on_stacks(avals), avals), *xs)[0]

    def lower(self, ctx: Any, *xs: str) -> str:
        given = []
        for x, aval in zip(xs, ctx.in_avals):
            keys = getattr(aval.dtype, "impl", None) is self.impl
            words = ShapedArray((*aval.shape, *self.impl.key_shape), U32)
            given.append(ctx.reshape_as(x, words) if keys else x)
        (made,) = write_function(ctx, self.on_stacks([ctx.avals[x] for x in given]), *given)
        return ctx.reshape_as(made, ctx.out_avals[0])

    def on_stacks(self, avals: list[ShapedArray]) -> Callable[..., list[Any]]:
        """Return the function on stacks of keys of ``avals``, which arrays of words hold."""
        words = len(self.impl.key_shape)
        # A seed has no words; a number that is folded in stands behind its key.
        ranks = [0] if self.role == "seed" else [words, 0][:len(avals)]
        leads = [aval.shape[:aval.ndim - rank] for aval, rank in zip(avals, ranks)]
        lead = np.broadcast_shapes(*leads)
        count = math.prod(lead)

        def rows(*xs: Any) -> list[Any]:
            if not lead:
                return [self.checked(self.function(*xs))]
            flat = []
            for x, one in zip(xs, leads):
                own = aval_of(x).shape[len(one):]
                missing = len(lead) - len(one)
                places = (*range(missing, len(lead)), *range(len(lead), len(lead) + len(own)))
                flat.append(reshape(broadcast_in_dim(x, (*lead, *own), places), (count, *own)))
            made = vmap(lambda *one: self.checked(self.function(*one)))(*flat)
            return [reshape(made, (*lead, *self.shape))]

        return rows

    def checked(self, made: Any) -> Any:
        """Return what the function returned.

        Raises: TypeError if it is not of the shape and dtype that it was to have.
        """
        aval = aval_of(made)
        if aval.shape != self.shape or aval.dtype != self.dtype:
            raise errors.explained(
                errors.ArgumentTypeError, "generator.result",
                f"the function {self.role} of the generator {self.impl.name!r} has to return "
                f"{ShapedArray(self.shape, self.dtype).str_short()}, got {aval.str_short()}.",
                advice="seed and fold_in return the words of one key, split those of the keys of "
                "a shape, random_bits unsigned integers as wide as they are asked.")
        return made
