"""What is in ``jax.numpy``?  NumPy's functions on arrays that XLA computes.

This file only lists; each line names the module that has the names, loaded now or when one is first
used.

Read before: ``numpy.promote``.
Invariant: signatures and results are those of jax.numpy 0.10.2.
"""

# ruff: noqa: F401 - every import here is a public name, and some are Python's too

import typing as _typing
from typing import Any as _Any

import numpy as _np

from saem._jaxlib import Array as ndarray
from saem.core import lazy as _lazy
from saem.numpy.array_api import VERSION as __array_api_version__
from saem.numpy.array_api import namespace_info as __array_namespace_info__
from saem.numpy.array_properties import index_exp, ndim, s_, shape, size
from saem.numpy.constants import e, euler_gamma, inf, nan, newaxis, pi
from saem.numpy.creation import (
    array,
    asarray,
    astype,
    copy,
    from_dlpack,
    frombuffer,
    fromfile,
    fromiter,
    fromstring,
    load,
)
from saem.numpy.dtypes import (
    bfloat16,
    bool_,
    can_cast,
    complex64,
    complex128,
    dtype,
    finfo,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    iinfo,
    int1,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    iscomplexobj,
    isdtype,
    isrealobj,
    isscalar,
    issubdtype,
    promote_types,
    result_type,
    uint1,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from saem.numpy.filling import (
    arange,
    empty,
    empty_like,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from saem.numpy.manipulation import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    expand_dims,
    matrix_transpose,
    moveaxis,
    permute_dims,
    ravel,
    reshape,
    resize,
    rollaxis,
    squeeze,
    swapaxes,
    transpose,
)
from saem.numpy.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    average,
    count_nonzero,
    max,
    mean,
    min,
    prod,
    ptp,
    std,
    sum,
    var,
)
from saem.numpy.ufuncs import *  # noqa: F403 - its __all__ is the list

if _typing.TYPE_CHECKING:  # many programs use these, but not all: they are in the table, too
    from saem.numpy.cumulative import (
        cumprod,
        cumsum,
        cumulative_prod,
        cumulative_sum,
        nanargmax,
        nanargmin,
        nancumprod,
        nancumsum,
        nanmax,
        nanmean,
        nanmin,
        nanprod,
        nanstd,
        nansum,
        nanvar,
    )
    from saem.numpy.diagonals import diagonal, trace
    from saem.numpy.float_ufuncs import (
        allclose,
        angle,
        around,
        ceil,
        conj,
        conjugate,
        copysign,
        floor,
        frexp,
        heaviside,
        imag,
        isclose,
        iscomplex,
        isfinite,
        isinf,
        isnan,
        isneginf,
        isposinf,
        isreal,
        ldexp,
        modf,
        nan_to_num,
        nextafter,
        real,
        rint,
        round,
        signbit,
        spacing,
        trunc,
    )
    from saem.numpy.joining import (
        append,
        block,
        column_stack,
        concat,
        concatenate,
        delete,
        dstack,
        hstack,
        insert,
        stack,
        vstack,
    )
    from saem.numpy.own_derivatives import i0, logaddexp, logaddexp2
    from saem.numpy.products import (
        dot,
        einsum,
        einsum_path,
        inner,
        kron,
        matmul,
        matvec,
        outer,
        tensordot,
        vdot,
        vecdot,
        vecmat,
    )
    from saem.numpy.rearranging import flip, fliplr, flipud, repeat, roll, rot90, tile
    from saem.numpy.searching import argwhere, flatnonzero, nonzero, where
    from saem.numpy.sorting import (
        argpartition,
        argsort,
        digitize,
        lexsort,
        partition,
        searchsorted,
        sort,
        sort_complex,
    )
    from saem.numpy.splitting import array_split, dsplit, hsplit, split, unstack, vsplit
    from saem.numpy.take_and_put import (
        apply_along_axis,
        apply_over_axes,
        compress,
        extract,
        place,
        put,
        put_along_axis,
        ravel_multi_index,
        take,
        take_along_axis,
        unravel_index,
    )

# What some programs use: loaded when first named.
__getattr__, __dir__ = _lazy.namespace(__name__, {
    "saem.numpy.fft": "",
    "saem.numpy.linalg": "",
    "saem.numpy.bits": "packbits unpackbits",
    "saem.numpy.calculus":
        "convolve corrcoef correlate cov cross diff ediff1d gradient interp trapezoid "
        "unwrap",
    "saem.numpy.histograms":
        "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "saem.numpy.matrices":
        "diag diagflat eye fromfunction identity indices ix_ meshgrid mgrid ogrid tri "
        "tril triu vander",
    "saem.numpy.padding": "pad",
    "saem.numpy.triangular_indices":
        "diag_indices diag_indices_from fill_diagonal mask_indices tril_indices "
        "tril_indices_from triu_indices triu_indices_from",
    "saem.numpy.fitting": "polyfit roots",
    "saem.numpy.polynomials":
        "bartlett blackman hamming hanning kaiser poly polyadd polyder polydiv polyint "
        "polymul polysub polyval trim_zeros",
    "saem.numpy.quantiles":
        "median nanmedian nanpercentile nanquantile percentile quantile",
    "saem.numpy.sets":
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts "
        "unique_inverse unique_values",
    "saem.numpy.ranges": "geomspace linspace logspace",
    "saem.numpy.index_tricks": "c_ r_",
    "saem.numpy.ufunc_methods": "frompyfunc ufunc",
    "saem.numpy.float_ufuncs":
        "isnan isinf isfinite isposinf isneginf signbit copysign nextafter "
        "spacing frexp ldexp modf floor ceil trunc rint round around nan_to_num "
        "isclose allclose heaviside real imag conjugate conj angle iscomplex "
        "isreal",
    "saem.numpy.cumulative":
        "cumprod cumsum cumulative_prod cumulative_sum nanargmax nanargmin "
        "nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar",
    "saem.numpy.diagonals": "diagonal trace",
    "saem.numpy.joining":
        "append block column_stack concat concatenate delete dstack hstack insert stack "
        "vstack",
    "saem.numpy.splitting":
        "array_split dsplit hsplit split unstack vsplit",
    "saem.numpy.products":
        "dot einsum einsum_path inner kron matmul matvec outer tensordot vdot "
        "vecdot vecmat",
    "saem.numpy.rearranging": "flip fliplr flipud repeat roll rot90 tile",
    "saem.numpy.searching": "argwhere flatnonzero nonzero where",
    "saem.numpy.sorting":
        "argpartition argsort digitize lexsort partition searchsorted sort "
        "sort_complex",
    "saem.numpy.take_and_put":
        "apply_along_axis apply_over_axes compress extract place put "
        "put_along_axis ravel_multi_index take take_along_axis unravel_index",
    "saem.numpy.functional": "vectorize",
    "saem.numpy.own_derivatives": "i0 logaddexp logaddexp2",
    "saem.numpy.rational": "gcd lcm",
})

bool = bool_
int_, uint, float_, complex_ = int64, uint64, float64, complex128
single, double, csingle, cdouble = float32, float64, complex64, complex128

# NumPy's own names for what dtypes have in common, and how arrays print.
character = _np.character
complexfloating = _np.complexfloating
flexible = _np.flexible
floating = _np.floating
generic = _np.generic
inexact = _np.inexact
integer = _np.integer
number = _np.number
object_ = _np.object_
signedinteger = _np.signedinteger
unsignedinteger = _np.unsignedinteger
ComplexWarning = _np.exceptions.ComplexWarning
printoptions = _np.printoptions


def set_printoptions(*args: _Any, **kwargs: _Any) -> None:
    """Set how NumPy and Saem print arrays: what ``numpy.set_printoptions`` takes."""
    _np.set_printoptions(*args, **kwargs)

get_printoptions = _np.get_printoptions
array_repr, array_str = _np.array_repr, _np.array_str
save, savez = _np.save, _np.savez
iterable = _np.iterable
