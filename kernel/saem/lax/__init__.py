"""What are the operations under ``saem.numpy``, with strict types and no promotion?

The public names of ``jax.lax``: each is one primitive (or a few), defined in ``saem.ops`` under the
same name, which is the place to read.

Read before: ``saem.ops.arithmetic``.
Invariant: nothing is defined here but other names for what the rooms of operations have.
"""

# ruff: noqa: F401 - every import here is a public name

from __future__ import annotations

import importlib as _importlib
import sys as _sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import errors, promotion
from saem.core import lazy as _lazy
from saem.core import sharded as _sharded
from saem.core.avals import aval_of
from saem.core.dimensions import as_shape
from saem.core.handles import primitive_called, primitive_names
from saem.core.naming import called
from saem.derivatives.implicit_solve import custom_linear_solve, custom_root
from saem.derivatives.stop_gradient import stop_gradient
from saem.effects.barrier import dce_sink, optimization_barrier, stage
from saem.effects.tokens import after_all, create_token, precv, psend
from saem.export.composite import composite
from saem.generators.rng_bit_generator import RandomAlgorithm, rng_bit_generator, rng_uniform
from saem.jit.library import library_function
from saem.loops.conditional import cond, switch
from saem.loops.map import associative_scan
from saem.loops.map import map_ as _map
from saem.loops.platforms import platform_dependent
from saem.loops.reduce_by_function import reduce, reduce_window, scatter_apply
from saem.loops.scan import scan
from saem.loops.while_loop import fori_loop, while_loop
from saem.numpy import promote as _promote
from saem.ops import dynamic_slicing as _dynamic_slicing
from saem.ops import reshard as _reshard
from saem.ops.arithmetic import add, div, integer_pow, mul, mulhi, neg, sub
from saem.ops.collectives import (
    axis_index,
    axis_size,
    pbroadcast,
    pcast,
    pmax,
    pmean,
    pmin,
    psum,
)
from saem.ops.compare import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    clz,
    eq,
    ge,
    gt,
    le,
    lt,
    ne,
    population_count,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from saem.ops.constraints import with_sharding_constraint
from saem.ops.contract import (
    DotDimensionNumbers,
    Precision,
    PrecisionLike,
    batch_matmul,
    dot,
    dot_general,
)
from saem.ops.convert import bitcast_convert_type, convert_element_type, reduce_precision
from saem.ops.convert import holding as _holding
from saem.ops.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum
from saem.ops.dot_algorithms import DotAlgorithm, DotAlgorithmPreset
from saem.ops.dynamic_slicing import (
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
)
from saem.ops.filling import broadcasted_iota, full, full_like, iota
from saem.ops.gather import gather
from saem.ops.linear import broadcast_in_dim, reduce_sum, unchanged
from saem.ops.linear import permute as _permute
from saem.ops.maths import (
    AccuracyMode,
    Tolerance,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    cbrt,
    cos,
    cosh,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    logistic,
    rsqrt,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
)
from saem.ops.numbers import (
    RoundingMethod,
    abs,
    atan2,
    ceil,
    complex,
    conj,
    floor,
    imag,
    is_finite,
    max,
    min,
    nextafter,
    pow,
    real,
    rem,
    round,
    sign,
)
from saem.ops.reduce import (
    argmax,
    argmin,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_xor,
)
from saem.ops.scatter import (
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from saem.ops.select import clamp, select_n
from saem.ops.shape import (
    broadcast,
    broadcast_to_rank,
    collapse,
    concatenate,
    expand_dims,
    reshape,
    rev,
    split,
    squeeze,
    tile,
)
from saem.ops.slicing import index_in_dim, pad, slice, slice_in_dim
from saem.ops.sort import sort, top_k
from saem.ops.stacking import stack, unstack
from saem.ops.windows import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from saem.parallel.exchanges import (
    all_gather,
    all_to_all,
    ppermute,
    pshuffle,
    psum_scatter,
    pswapaxes,
)
from saem.parallel.ragged import ragged_all_to_all
from saem.signal.pooling import padtype_to_pads, reduce_window_shape_tuple
from saem.special.functions import (
    bessel_i0e,
    bessel_i1e,
    digamma,
    erf,
    erf_inv,
    erfc,
    lgamma,
    polygamma,
    zeta,
)
from saem.special.incomplete import betainc, igamma, igamma_grad_a, igammac, random_gamma_grad
from saem.typing import Array, ArrayLike, DTypeLike


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which arrays of ``shapes`` stretch.

    Raises: ValueError if there is none.

    >>> import saem as jax
    >>> jax.lax.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return _promote.broadcast_given(shapes)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Return ``arr`` in the shape and sharding of ``like_arr``; trailing axes are aligned."""
    have, like = aval_of(arr).shape, aval_of(like_arr)
    if have == like.shape:
        return _reshard.reshard_like(unchanged(arr), like)
    axes = tuple(range(like.ndim - len(have), like.ndim))
    return broadcast_in_dim(arr, like.shape, axes, out_sharding=_sharded.sharding_of(like))


def empty(shape: Any, dtype: DTypeLike | None, *, out_sharding: Any = None) -> Any:
    """Return an array of ``shape``; of zeros, since there are no arrays without values.

    >>> lax.empty((2,), jnp.float32).shape
    (2,)
    """
    return full(shape, 0, dtype, sharding=out_sharding)


def index_take(src: Array, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """Return the slices of ``src`` at the places that the vectors ``idxs`` name along ``axes``.

    Negative places count from the end, and those outside wrap around.

    >>> lax.index_take(jnp.array([[1, 2], [3, 4]]), (jnp.array([1]),), (0,))
    Array([[3, 4]], dtype=int32)
    """
    shape = aval_of(src).shape
    columns = [broadcast_in_dim(x, (*aval_of(x).shape, 1), (0,)) for x in idxs]
    longest = int(np.max([shape[a] for a in axes], initial=0))
    places = _holding(concatenate(columns, 1), longest)
    sizes = np.asarray([shape[a] for a in axes], aval_of(places).dtype)[None]
    places = rem(add(rem(places, sizes), sizes), sizes)
    windows = [1 if i in axes else n for i, n in enumerate(shape)]
    kept = tuple(range(1, 1 + len(shape) - len(axes)))
    numbers = GatherDimensionNumbers(kept, tuple(sorted(axes)), tuple(axes))
    return gather(src, places, numbers, tuple(windows), mode="promise_in_bounds")


def shape_as_value(shape: Sequence[int]) -> Any:
    """Return ``shape`` as a NumPy array of its sizes.

    >>> lax.shape_as_value((2, 3))
    array([2, 3], dtype=int32)
    """
    return np.asarray(shape, np.int32)


def dtype(x: Any) -> np.dtype:
    """Return the canonical dtype of a value, or of what names a dtype.

    Raises: ValueError for None, TypeError for what has no dtype.

    >>> lax.dtype(jnp.array([1., 2.]))
    dtype('float32')
    """
    if x is None:
        raise ValueError("Invalid argument to dtype: None. Pass an array, a number or a dtype.")
    return promotion.typed(x)[0]


def reciprocal(x: ArrayLike) -> Array:
    """Return 1 / x elementwise.

    >>> lax.reciprocal(jnp.array([2., 4.]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return integer_pow(x, -1)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Return the elements of ``on_true`` where ``pred`` is true, those of ``on_false`` elsewhere.

    ``on_true`` and ``on_false`` have one shape and dtype; ``pred`` has that shape or is a scalar.
    Raises: TypeError if they do not.

    >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
    return select_n(pred, on_false, on_true)


def sort_key_val(keys: Array, values: ArrayLike, dimension: int = -1,
                 is_stable: bool = True) -> tuple[Array, Array]:
    """Return ``keys`` sorted along ``dimension``, and ``values`` in the same order.

    >>> lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([30, 10, 20]))
    (Array([1, 2, 3], dtype=int32), Array([10, 20, 30], dtype=int32))
    """
    ordered = sort((keys, values), dimension=dimension, is_stable=is_stable, num_keys=1)
    return ordered[0], ordered[1]


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Return ``operand`` with axes in the order ``permutation``.

    >>> lax.transpose(jnp.array([[1, 2], [3, 4]]), (1, 0))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return _permute(operand, tuple(int(p) for p in permutation))


map = called("map", _map)  # the public name hides Python's own

# One compiled call: the start that is wrapped, the part and its shape are three operations.
dynamic_index_in_dim = library_function(
    _dynamic_slicing.dynamic_index_in_dim,
    static_argnames=("axis", "keepdims", "allow_negative_indices"))


# What some programs use: loaded when first named.
_find, _names = _lazy.namespace(__name__, {
    "saem.lax.linalg": "",
    "saem.ops.approx_top_k": "approx_max_k approx_min_k",
    "saem.signal.convolution_shapes":
        "ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv_dimension_numbers "
        "conv_general_permutations conv_general_shape_tuple conv_shape_tuple "
        "conv_transpose_shape_tuple",
    "saem.signal.convolve":
        "conv conv_general_dilated conv_general_dilated_local conv_general_dilated_patches "
        "conv_transpose conv_with_general_padding",
    "saem.signal.fft": "FftType fft",
    "saem.linalg.ragged_products": "RaggedDotDimensionNumbers ragged_dot ragged_dot_general",
    "saem.linalg.scaled_products": "scaled_dot",
})


# Primitives that are registered where a later name is loaded.
_HOMES = {"approx_top_k_p": "saem.ops.approx_top_k",
          "conv_general_dilated_p": "saem.signal.convolve",
          "fft_p": "saem.signal.fft",
          "select_and_scatter_p": "saem.loops.select_and_scatter"}


def __getattr__(name: str) -> Any:
    """Return a later name, or the primitive ``lax.exp_p`` (see ``saem.core.handles``)."""
    if name in _HOMES:
        _importlib.import_module(_HOMES[name])
    handle = primitive_called(name) if name.endswith("_p") else None
    return _find(name) if handle is None else handle


def __dir__() -> list[str]:
    """Return the names of functions and of primitives; all are loaded, to know the latter."""
    names = _names()
    for name in (*names, *_HOMES):
        getattr(_sys.modules[__name__], name)
    return sorted({*names, *primitive_names()})
