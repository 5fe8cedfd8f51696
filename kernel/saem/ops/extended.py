"""How do values of a dtype that NumPy cannot describe come to be, and where do their numbers lie?

In an array of numbers: an element of such a dtype is a small array (two words for a PRNG key),
often one number, as of flax's ``fp32_max_grad``, whose derivatives are added in another way.
``to_edtype`` sees the array of numbers as values of the dtype, ``from_edtype`` is the way back, and
``lax.convert_element_type`` is either.  Outside of programs such values are arrays of class EArray.

Read before: ``core.dtypes``, ``ops.linear``.  Read after: ``ops.keys``.
Invariant: the tangent of a value has the dtype that its dtype names; tangents are added as that
says (tests/kernel/test_extended_dtypes.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile.device_assignment import held_as
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_functions, aval_of
from saem.core.lazy import later
from saem.core.primitive import Primitive, primitive
from saem.core.sharded import without_axis
from saem.core.trace import bind
from saem.ops import sharding_rules
from saem.ops.linear import held_dims, moveaxis

convert: Any = later("saem.ops.convert")  # which is made of this file


class HeldArray(_jaxlib.Array):
    """Values of an extended dtype on a device: an array of numbers, seen as them."""

    __slots__ = ("_base", "dtype", "_aval", "__weakref__")
    __array_priority__ = 100

    def __init__(self, base: Any, dtype: Any):
        self._base = base
        self.dtype = dtype
        self._aval: ShapedArray | None = None

    @property
    def aval(self) -> ShapedArray:
        aval = self._aval
        if aval is None:
            held = self._base.aval
            for _ in self.dtype.physical[0]:
                held = without_axis(held, -1)
            aval = self._aval = held.update(dtype=self.dtype, weak_type=False)
        return aval

    shape = property(lambda self: self.aval.shape)
    ndim = property(lambda self: len(self.aval.shape))
    size = property(lambda self: math.prod(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.itemsize * self.size)
    weak_type = False
    committed = property(lambda self: self._base.committed)
    _committed = property(lambda self: self._base._committed)
    is_fully_addressable = property(lambda self: self._base.is_fully_addressable)
    is_fully_replicated = property(lambda self: self._base.is_fully_replicated)
    device = property(lambda self: self._base.device)

    @property
    def sharding(self) -> Any:
        """That of the numbers, without the axes of an element."""
        held = self._base.sharding
        spec = getattr(held, "spec", None)
        if spec is None or len(spec) <= self.ndim:
            return held
        return held.update(spec=spec.update(partitions=spec.partitions[:self.ndim]))

    def _seen(self, base: Any) -> Any:
        """Return the values that another array of numbers holds."""
        return type(self)(base, self.dtype)

    def devices(self) -> set:
        return self._base.devices()

    def block_until_ready(self) -> Any:
        self._base.block_until_ready()
        return self

    def copy_to_host_async(self) -> None:
        self._base.copy_to_host_async()

    def delete(self) -> None:
        self._base.delete()

    def is_deleted(self) -> bool:
        return self._base.is_deleted()

    def copy(self) -> Any:
        return self._seen(self._base.copy())

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def on_device_size_in_bytes(self) -> int:
        return self._base.on_device_size_in_bytes()

    def unsafe_buffer_pointer(self) -> int:
        return self._base.unsafe_buffer_pointer()

    def addressable_data(self, index: int) -> Any:
        return self._seen(self._base.addressable_data(index))

    @property
    def addressable_shards(self) -> list[Any]:
        return [self._shard(shard) for shard in self._base.addressable_shards]

    @property
    def global_shards(self) -> list[Any]:
        return [self._shard(shard) for shard in self._base.global_shards]

    def _shard(self, shard: Any) -> Any:
        """Return a shard of the numbers as one of the values: the last axes are not theirs."""
        return type(shard)(shard.device, shard.index[:self.ndim], shard.replica_id,
                           self._seen(shard.data))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __hash__(self) -> int:
        raise TypeError(f"unhashable type: {type(self).__name__!r}")


class EArray(HeldArray):
    """Values of a dtype that a program defines."""

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise errors.explained(
            errors.ArgumentTypeError, "extended.numpy",
            f"An array of the extended dtype {self.dtype.name} cannot be converted to a NumPy "
            "array.",
            advice="Convert it to its numbers: jax.lax.convert_element_type(x, dtype).")

    def __repr__(self) -> str:
        return f"E{self._base!r}"

    __str__ = __repr__


aval_functions[EArray] = lambda x: x.aval
held_as[EArray] = lambda x: x._base


class Seen(Primitive):
    """The same numbers, seen as values of another dtype."""

    __slots__ = ()
    passes_nan = True
    linear = True
    shard_results = sharding_rules.keys

    def evaluate(self, x):
        return x

    def lower(self, ctx, x):
        return ctx.reshape_as(x, ctx.out_avals[0])

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        out = bind(self, x)
        tangent = dtypes.to_tangent_dtype(aval_of(out).dtype)
        moves = t is not None and tangent != dtypes.float0
        return out, convert_extended(t, tangent) if moves else None

    def transpose(self, ct, x):
        return [convert_extended(ct, x.dtype)]

    def batch(self, size, xs, dims):
        return bind(self, moveaxis(xs[0], dims[0], 0)), 0


@primitive("to_edtype")
class ToEdtype(Seen):
    """See an array of numbers as values of the extended dtype ``edtype``."""

    edtype: Any

    def typing(self, x):
        trailing, dtype = self.edtype.physical
        if x.dtype != dtype:
            raise errors.explained(
                errors.ArgumentError, "to_edtype.C1",
                "can only convert to extended dtype from its representation dtype, but tried to "
                f"convert from {x.dtype.name} to {self.edtype.name} which doesn't match the "
                f"representation type {dtype.name}.",
                advice=f"Convert to {dtype.name} first.")
        rank = len(x.shape) - len(trailing)
        if rank < 0 or x.shape[rank:] != trailing:
            raise errors.explained(
                errors.ArgumentError, "to_edtype.C2",
                "can only convert to extended dtype from an array of its representation type, but "
                f"the extended dtype {self.edtype.name} has a representation shape {trailing} "
                f"while the given representation array has shape {x.shape}, so the shape suffix "
                f"does not match: given {x.shape[max(rank, 0):]} but required {trailing}.",
                advice="The last axes hold one element.")
        return ShapedArray(x.shape[:rank], self.edtype)


@primitive("from_edtype")
class FromEdtype(Seen):
    """See values of an extended dtype as the array of numbers, of ``dtype``, that holds them."""

    dtype: Any

    def typing(self, x):
        _, dtype = x.dtype.physical
        if self.dtype != dtype:
            raise errors.explained(
                errors.ArgumentError, "from_edtype.C1",
                "can only convert from extended dtype to its representation dtype, but tried to "
                f"convert from {x.dtype.name} to {self.dtype.name} which doesn't match the "
                f"representation type {dtype.name}.",
                advice=f"Convert to {dtype.name} first.")
        return ShapedArray((*x.shape, *held_dims(x)), dtype)


def convert_extended(x: Any, dtype: Any) -> Any:
    """Return ``x`` as ``dtype``, one of which may be extended.

    Raises: ArgumentError if the extended dtype does not allow it.
    """
    have = aval_of(x).dtype
    if have == dtype:
        return x
    ins, out = dtypes.is_extended(have), dtypes.is_extended(dtype)
    if not (ins or out):
        return bind(convert.ConvertElementType(dtype), x)
    if (ins and out) or not (have.takes(dtype, back=True) if ins else dtype.takes(have)):
        raise errors.explained(
            errors.ArgumentError, "convert_element_type.C1",
            f"Cannot convert_element_type from {have.name} to {dtype.name}: the extended dtype "
            "does not allow it.",
            advice="For PRNG keys, use random.key_data and random.wrap_key_data.")
    return bind(FromEdtype(dtype) if ins else ToEdtype(dtype), x)
