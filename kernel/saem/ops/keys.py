"""What is a typed PRNG key?

An element of an extended dtype, ``key<fry>``: a key array has a shape like any array, and beneath
it lies an array of uint32 words with one more axis.  Keys cannot be added by accident; what moves
elements (indexing, reshaping, stacking) moves whole keys.

Read before: ``core.dtypes``.  Read after: ``ops.random_bits``.
Invariant: ``key._base`` is uint32 of shape ``(*key.shape, 2)`` (4 for ``rbg``) and never changes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from saem import _jaxlib
from saem.compile.device_assignment import held_as
from saem.core import dtypes, errors
from saem.core.avals import aval_functions, aval_of, is_array_like
from saem.core.jaxpr import ClosedJaxpr
from saem.core.record import Record
from saem.core.trace import Tracer, eval_trace, state
from saem.ops.compare import bitwise_not, eq
from saem.ops.extended import HeldArray
from saem.ops.linear import broadcast_in_dim, permute
from saem.ops.reduce import reduce_and
from saem.ops.shape import reshape, squeeze


class KeyWatch:
    """What ``debug_key_reuse`` does with programs and operations on keys: nothing, until
    ``random.reuse`` is imported and replaces these functions.
    """

    traced: Callable[[ClosedJaxpr], None] = staticmethod(lambda closed: None)
    called: Callable[..., list[Any]] = staticmethod(lambda closed, leaves, name, run: run())
    applied: Callable[..., Any] = staticmethod(lambda prim, call, keys, *more: call(keys, *more))


key_watch = KeyWatch()


class Generator(Record):
    """A family of random bits: its name, the short ``tag`` that dtypes print, words of a key."""

    name: str
    tag: str
    key_shape: tuple[int, ...]

    # How often the words of an integer stand in the key of it; 0 if they are encrypted.
    seed_copies: ClassVar[int] = 1
    # Whether ``jax.random.key`` finds it by its name.
    listed: ClassVar[bool] = True

    def __str__(self) -> str:
        return self.tag

    # What runs on the words of keys in place of a primitive; for Threefry, the primitive itself.

    def seeding(self, prim: Any) -> Any:
        """Return what makes the words of a key of an integer."""
        return prim

    def bits(self, prim: Any) -> Any:
        """Return what makes bits of the words of a key."""
        return prim

    def splitting(self, prim: Any) -> Any:
        """Return what makes the words of several keys of those of one."""
        return prim

    def folding(self, prim: Any) -> Any:
        """Return what makes the words of a key of those of another and a number."""
        return prim


THREEFRY = Generator("threefry2x32", "fry", (2,))


class KeyDType(dtypes.ExtendedDType):
    """The dtype of keys of one generator."""

    type = dtypes.prng_key
    kind = "V"
    name = property(lambda self: f"key<{self.impl.tag}>")
    physical = property(lambda self: (self.impl.key_shape, np.dtype("uint32")))

    def __init__(self, impl: Generator):
        self.impl = impl

    def wrap(self, base: Any) -> PRNGKeyArray:
        """Return the keys held by ``base``."""
        return PRNGKeyArray(base, self)

    def zero(self) -> Any:
        """Return a key whose words are 0, which stands where no key is read."""
        return self.filled((), 0)

    def takes(self, other: Any, back: bool = False) -> bool:
        """Return False: words become keys by ``random.wrap_key_data`` only."""
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDType) and self.impl == other.impl

    def __hash__(self) -> int:
        return hash((KeyDType, self.impl))


@functools.cache
def key_dtype(impl: Generator) -> KeyDType:
    """Return the one dtype of keys of ``impl``."""
    return KeyDType(impl)


class PRNGKeyArray(HeldArray):
    """Keys on a device, with the methods of arrays that move elements and those about devices.

    ``random.keys`` gives it those that stand on functions of arrays, such as ``traced_item``.
    """

    # They are there while key reuse is watched; see ``random.reuse``.
    __slots__ = ("_family", "_places")

    # Keys have one axis of words, which is quicker to take off than the axes of any dtype.
    shape = property(lambda self: self._base.aval.shape[:-1])
    ndim = property(lambda self: len(self._base.aval.shape) - 1)

    def __getitem__(self, index: Any) -> PRNGKeyArray:
        """Return the keys at ``index``, any index of an array of this shape."""
        if state.trace is not eval_trace:
            return self.traced_item(index)
        parts = index if isinstance(index, tuple) else (index,)
        count = sum(part is not None and part is not Ellipsis for part in parts)
        if count > self.ndim:  # else the axis of words would be indexed
            raise IndexError(f"Too many indices: array is {self.ndim}-dimensional, but {count} "
                             "were indexed")
        if not any(part is Ellipsis for part in parts):
            parts = (*parts, Ellipsis)
        made = PRNGKeyArray(self._base[(*parts, slice(None))], self.dtype)
        return self._followed(made, lambda places: places[tuple(map(_host_index, parts))])

    def _followed(self, made: PRNGKeyArray, move: Any) -> PRNGKeyArray:
        """Return ``made``, a view of these keys, as of their family; ``move`` gives its places."""
        family = getattr(self, "_family", None)
        if family is not None and type(made) is PRNGKeyArray:
            made._family, made._places = family, np.asarray(move(self._places))
        return made

    def __iter__(self) -> Any:
        if not self.shape:
            raise TypeError("iteration over a 0-d key array")
        if state.trace is not eval_trace:
            return (self[i] for i in range(self.shape[0]))
        return (self._followed(PRNGKeyArray(base, self.dtype), lambda places, i=i: places[i])
                for i, base in enumerate(self._base))

    def reshape(self, *shape: Any) -> Any:
        """Return the keys in another shape; one size may be -1."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        known = math.prod(n for n in sizes if n != -1)
        made = reshape(self, [self.size // max(known, 1) if n == -1 else n for n in sizes])
        return self._followed(made, lambda places: places.reshape(made.shape))

    def ravel(self) -> Any:
        return self.reshape(self.size)

    flatten = ravel

    def squeeze(self, axis: Any = None) -> Any:
        """Return the keys without axes of size 1, or without ``axis``."""
        every = tuple(i for i, n in enumerate(self.shape) if n == 1)
        axes = every if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        return self._followed(squeeze(self, axes), lambda places: places.squeeze(axes))

    def transpose(self, *axes: Any) -> Any:
        """Return the keys with their axes permuted, reversed unless given."""
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        order = tuple(order) or tuple(reversed(range(self.ndim)))
        return self._followed(permute(self, order), lambda places: places.transpose(order))

    T = property(lambda self: self.transpose())

    def __pos__(self) -> Any:
        return self

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, PRNGKeyArray) or other.dtype != self.dtype:
            traced = isinstance(other, Tracer) and other.dtype == self.dtype
            if traced or not is_array_like(other):
                return NotImplemented
            raise errors.explained(
                errors.DTypeError, "key.equal",
                f"equal does not accept dtypes {self.dtype.name}, {aval_of(other).dtype.name}.",
                advice="Compare the words: jax.random.key_data(key).")
        shape = np.broadcast_shapes(self.shape, other.shape)
        words = [_words(keys, shape) for keys in (self, other)]
        return reduce_and(eq(*words), (len(shape),))

    def __ne__(self, other: object) -> Any:
        same = self.__eq__(other)
        return same if same is NotImplemented else bitwise_not(same)

    def __bool__(self) -> bool:
        raise TypeError("key array cannot be converted to boolean.")

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise errors.explained(
            errors.ArgumentTypeError, "key.numpy",
            "JAX array with PRNGKey dtype cannot be converted to a NumPy array.",
            advice="Use jax.random.key_data(arr) if you wish to extract the underlying integer "
            "array.")

    __hash__ = HeldArray.__hash__

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{np.asarray(self._base)}"

    __str__ = __repr__


def _host_index(part: Any) -> Any:
    """Return a part of an index as NumPy takes it."""
    return np.asarray(part) if isinstance(part, _jaxlib.Array) else part


def _words(keys: PRNGKeyArray, shape: tuple[int, ...]) -> Any:
    """Return the words of ``keys`` stretched to keys of ``shape``."""
    held = keys._base.aval.shape
    wide = (*shape, held[-1])
    return broadcast_in_dim(keys._base, wide, tuple(range(len(wide) - len(held), len(wide))))


aval_functions[PRNGKeyArray] = lambda keys: keys.aval
held_as[PRNGKeyArray] = lambda keys: keys._base
