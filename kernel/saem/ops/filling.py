"""How does a program make an array of nothing but a shape: counting, or filled with one number?

``iota`` is a primitive.  ``full`` broadcasts a number, and places the result where it is asked for.

Read before: ``ops.shape``, ``placement.spread``.  Read after: ``numpy.filling``.
Invariant: a filled array is no larger in the program than its number.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.core import config, dtypes, errors
from saem.core.avals import ShapedArray, aval_of, kept
from saem.core.dimensions import as_shape, is_static, unwrapped
from saem.core.primitive import NOT_LINEAR, Primitive, primitive
from saem.core.refs import is_ref
from saem.core.trace import bind
from saem.ops import sharding_rules, sum_rules
from saem.ops.convert import convert_element_type, weak_scalar
from saem.ops.linear import (
    BroadcastInDim,
    unchanged,
    varying_as,
)
from saem.ops.shape import sizes_of
from saem.placement.meshes import Mesh
from saem.placement.partition_spec import PartitionSpec
from saem.placement.shardings import named_sharding, on_devices, requested_sharding, required_mesh
from saem.placement.spread import place_like
from saem.typing import Array, ArrayLike, DTypeLike


@primitive("iota")
class Iota(Primitive):
    """Count 0, 1, 2, … along axis ``dimension`` of ``shape``.

    Source: StableHLO specification, iota.
    """

    dtype: Any
    shape: tuple[int, ...]
    dimension: int = 0
    sharding: Any = None

    passes_nan = True
    shard_results = sharding_rules.iota
    sum_results = sum_rules.wanted
    requested_sharding = property(operator.attrgetter("sharding"))

    def typing(self):
        if any(n < 0 for n in self.shape):
            raise errors.explained(
                errors.ShapeError, "iota.C1",
                f"iota shape must have every element be nonnegative, got {self.shape}.",
                advice="A size of 0 gives an empty array.")
        if not dtypes.is_inexact(self.dtype) and not dtypes.is_integer(self.dtype):
            raise errors.explained(
                errors.DTypeError, "iota.C2",
                f"iota does not accept dtype {self.dtype.name}. Accepted dtypes are subtypes of "
                "integer, floating, complexfloating.", advice="Count in integers, then convert.")
        if not 0 <= self.dimension < len(self.shape):
            raise errors.explained(
                errors.ArgumentError, "iota.C3",
                "iota dimension must be between 0 and len(shape), got dimension="
                f"{self.dimension} for shape={self.shape}",
                advice="Name the axis along which to count.")
        return ShapedArray(self.shape, self.dtype)

    def evaluate(self):
        count = np.arange(self.shape[self.dimension]).astype(self.dtype)
        column = [1] * len(self.shape)
        column[self.dimension] = -1
        return np.broadcast_to(count.reshape(column), self.shape)

    def lower(self, ctx):
        if not is_static(self.shape):
            return ctx.iota(self.dimension, ctx.out_avals[0])
        return ctx.emit(f'"stablehlo.iota"() <{{iota_dimension = {self.dimension} : i64}}>')

    def jvp(self, primals, tangents):
        return bind(self), None

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        return bind(self), None


def iota(dtype: DTypeLike, size: int) -> Array:
    """Return 0, 1, …, size - 1.

    >>> lax.iota(jnp.int32, 3)
    Array([0, 1, 2], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int, *,
                     out_sharding: Any = None) -> Array:
    """Return an array of ``shape`` that counts along axis ``dimension``.

    >>> lax.broadcasted_iota(jnp.int32, (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    shape = as_shape(shape)
    dtype = dtypes.canonicalize(dtype, explicit=True, where="broadcasted_iota")
    return bind(Iota(dtype, shape, operator.index(dimension),
                     requested_sharding(out_sharding, len(shape), "broadcasted_iota")))


def full(shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None = None, *,
         sharding: Any = None) -> Array:
    """Return an array of ``shape`` filled with ``fill_value``, weakly typed as that is.

    What is put at a place outside traces is not weak.

    Raises: ShapeError if the value is no scalar or a size is negative; TypeError for a complex
    number in a real ``dtype``.

    >>> lax.full((2,), 7)
    Array([7, 7], dtype=int32, weak_type=True)
    """
    if dtype is not None:
        dtype = dtypes.canonicalize(dtype, explicit=True, where="full")
    elif sharding is not None and not config.staging.value:
        dtype = aval_of(fill_value).dtype
    _check_place("full", sharding)
    return full_of(shape, fill_value, dtype, sharding)


def _check_place(name: str, sharding: Any) -> None:
    """Refuse what no array can be placed by.

    Raises: TypeError unless it is a sharding, ValueError for a spec without a mesh.
    """
    if isinstance(sharding, PartitionSpec):
        required_mesh(sharding)
    elif sharding is not None and not isinstance(sharding, _jaxlib.Sharding):
        raise errors.explained(
            errors.ArgumentTypeError, f"{name}.C4",
            f"sharding of {name} must be a jax.sharding.Sharding, got {sharding} of type: "
            f"{type(sharding)}",
            advice="For one device: jax.sharding.SingleDeviceSharding(device).")


def full_of(shape: Sequence[int], fill_value: ArrayLike, dtype: Any, sharding: Any) -> Array:
    """Return what ``full`` returns, in ``dtype`` as it is: also of 64 bits where those are off."""
    shape = as_shape(sizes_of(shape))
    aval = aval_of(fill_value)
    if aval.shape:
        raise errors.explained(
            errors.ShapeError, "full.C1",
            f"full must be called with scalar fill_value, got fill_value.shape {aval.shape}.",
            advice="To stretch an array, use jnp.broadcast_to.")
    if any(n < 0 for n in shape):
        raise errors.explained(
            errors.ShapeError, "full.C2",
            f"broadcast_in_dim shape must have every element be nonnegative, got {shape}.",
            advice="A size of 0 gives an empty array.")
    if dtype is not None:
        if dtype == dtypes.float0:  # the tangents of integers hold no numbers
            return np.zeros(shape, dtype)
        if type(fill_value) is complex and dtypes.scalar_kind(dtype) in ("int", "uint", "float"):
            raise errors.explained(
                errors.ArgumentTypeError, "full.C3",
                f"full cannot hold the complex number {fill_value} as {dtype.name}.",
                advice="Give its real part, or dtype=complex.")
        if not dtypes.is_extended(dtype):
            fill_value = scalar_as(fill_value, dtype)
    explicit = named_sharding(sharding, len(shape))
    if dtypes.is_extended(dtype) and not dtypes.is_extended(aval.dtype):
        out = dtype.filled(shape, fill_value)  # a key whose words are all that number
    elif shape or explicit is not None or not config.staging.value:
        out = bind(BroadcastInDim(shape, (), explicit), fill_value)
    else:
        out = unchanged(fill_value)
    if explicit is not None or sharding is None or type(out) is not _jaxlib.ArrayImpl:
        return out
    where = on_devices(sharding)
    mesh = getattr(where, "mesh", None)
    named = mesh is None or (isinstance(mesh, Mesh) and not mesh.empty)
    # The sharding of a type that names no mesh is no place.
    return place_like(out, where) if named and isinstance(where, _jaxlib.Sharding) else out


def scalar_as(value: Any, dtype: Any) -> Any:
    """Return the scalar ``value``, which may be a Python number, in ``dtype`` and not weak."""
    if isinstance(value, dtypes.HOST_NUMBERS):
        with np.errstate(all="ignore"):
            if dtypes.is_complex(np.asarray(value).dtype) and not (
                    dtypes.is_complex(dtype) or dtypes.is_bool(dtype)):
                value = np.real(value)
            return kept(np.asarray(value).astype(dtype)[()])
    return convert_element_type(value, dtype)


def place_like_that_of(x: Any, shape: Sequence[int]) -> Any:
    """Return the sharding of an array like ``x`` that is made outside traces, None if none is said.

    It is that of a committed array; for another shape, if each device holds the whole array.
    """
    if type(x) is not _jaxlib.ArrayImpl or not x.committed or config.staging.value:
        return None
    own = x.sharding
    if tuple(shape) == x.shape:
        return own
    if not own.is_fully_replicated:
        return None
    spec = getattr(own, "spec", ())
    return own if len(spec) <= len(shape) else own.update(spec=())


def full_like(x: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None,
              shape: Sequence[int] | None = None, sharding: Any = None) -> Array:
    """Return an array like ``x`` in all that is not given, filled with ``fill_value``.

    Like a weak array it is weak, and then lies on the default device.  Inside ``shard_map`` it
    varies along the mesh axes along which ``x`` does.

    >>> lax.full_like(jnp.array([1., 2.]), 7)
    Array([7., 7.], dtype=float32)
    """
    _check_place("full_like", sharding)
    x = unwrapped(x)
    aval = aval_of(x)
    if is_ref(aval):  # what it holds is not read
        aval = aval.inner_aval
    if shape is None and sharding is None and aval.explicit is not None:
        # An array knows the devices of its mesh, its type only the mesh's shape.
        sharding = x.sharding if type(x) is _jaxlib.ArrayImpl else aval.explicit
    shape = aval.shape if shape is None else shape
    if dtype is sharding is None and aval.weak_type:
        filled = scalar_as(fill_value, aval.dtype)
        if isinstance(filled, np.generic):
            return varying_as(full(shape, weak_scalar(filled.item(), aval.dtype)), aval)
    sharding = place_like_that_of(x, shape) if sharding is None else sharding
    dtype = aval.dtype if dtype is None else dtypes.canonicalize(dtype, explicit=True,
                                                                 where="full_like")
    return varying_as(full_of(shape, fill_value, dtype, sharding), aval)
