"""How do neighbours differ, and what lies between them?

Differences, gradients, sums of trapezoids, interpolation, convolution, covariance, and products of
vectors in space.

Read before: ``numpy.sorting``, ``numpy.products``.
Invariant: values are NumPy's, dtypes JAX's (tests/kernel/numpy/test_calculus.py).
Source: the NumPy reference of the functions of these names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import dtypes, errors, promotion
from saem.core.avals import aval_of
from saem.core.dimensions import larger, smaller, unwrapped
from saem.core.lazy import later
from saem.jit.library import library_function
from saem.numpy import reductions
from saem.numpy.arithmetic import remainder
from saem.numpy.axes import array_argument, as_array, canonical_axes
from saem.numpy.indexing import getitem
from saem.numpy.joining import concatenate
from saem.numpy.manipulation import moveaxis, ravel
from saem.numpy.products import dot
from saem.numpy.promote import (
    broadcast_shapes,
    broadcast_to,
    check_arraylike,
    if_else,
    promote_dtypes,
    promote_dtypes_inexact,
    scalar,
    weakly_like,
)
from saem.numpy.reductions import requested_dtype
from saem.numpy.sorting import argsort, searchsorted
from saem.ops import arithmetic as ops
from saem.ops import compare, maths, numbers, select, shape, slicing
from saem.ops.convert import convert
from saem.ops.linear import broadcast_in_dim, permute
from saem.ops.shape import canonical_axis
from saem.typing import Array, ArrayLike, DTypeLike

convolutions: Any = later("saem.signal.convolve")

# -- differences -----------------------------------------------------------------------------------


@library_function(static_argnames=("n", "axis"))
def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None,
         append: ArrayLike | None = None) -> Array:
    """Return each element minus the one before along ``axis``, ``n`` times over.

    Raises: ValueError for a scalar or negative ``n``.

    >>> jnp.diff(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    a = array_argument("diff", a)
    if n == 0:
        return a
    if n < 0:
        raise errors.explained(errors.ArgumentError, "diff.C1",
                               f"order must be non-negative but got {n}",
                               advice="n counts how often differences are taken.")
    if a.ndim == 0:
        raise errors.explained(
            errors.ArgumentError, "diff.C2",
            f"diff requires input that is at least one dimensional; got {aval_of(a)}",
            advice="A scalar has no neighbours.")
    axis = canonical_axis(axis, a.ndim)
    parts = [_edge_of(x, a, axis) for x in (prepend,) if x is not None] + [a]
    parts += [_edge_of(x, a, axis) for x in (append,) if x is not None]
    if len(parts) > 1:
        a = concatenate(parts, axis)
    for _ in range(n):
        size = a.shape[axis]
        later = slicing.slice_in_dim(a, smaller(1, size), size, axis=axis)
        earlier = slicing.slice_in_dim(a, 0, larger(size - 1, 0), axis=axis)
        a = compare.ne(later, earlier) if dtypes.is_bool(a.dtype) else ops.sub(later, earlier)
    return a


def _edge_of(x: Any, a: Any, axis: int) -> Any:
    x = array_argument("diff", x)
    if x.ndim:
        return x
    return broadcast_in_dim(x, tuple([1 if i == axis else n for i, n in enumerate(a.shape)]), ())


@library_function(whole=True)
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None,
            to_begin: ArrayLike | None = None) -> Array:
    """Return the differences of the raveled array, ``to_begin`` before, ``to_end`` after.

    >>> jnp.ediff1d(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    flat = ravel(array_argument("ediff1d", ary))
    out = ops.sub(flat[1:], flat[:-1])
    ends = [None if x is None else ravel(array_argument("ediff1d", x).astype(flat.dtype))
            for x in (to_begin, to_end)]
    parts = [x for x in (ends[0], out, ends[1]) if x is not None]
    return concatenate(parts) if len(parts) > 1 else out


def gradient(f: ArrayLike, *varargs: Any, axis: int | Sequence[int] | None = None,
             edge_order: int | None = None) -> Array | list[Array]:
    """Return the slope at each element along ``axis``: central differences, one-sided at the ends.

    ``varargs``: no spacing (1), one for all axes, or one for each, a number or coordinates.
    Raises: ValueError for fewer than two elements along an axis; TypeError for too many spacings.

    >>> jnp.gradient(jnp.array([1., 4., 9., 16.]))
    Array([3., 4., 6., 7.], dtype=float32)
    """
    return _gradient(f, *varargs, axis=tuple(axis) if isinstance(axis, list) else axis,
                     edge_order=edge_order)


@library_function(static_argnames=("axis", "edge_order"), whole=True)
def _gradient(f: Any, *varargs: Any, axis: Any, edge_order: Any) -> Any:
    if edge_order is not None:
        raise errors.explained(
            NotImplementedError, "gradient.edge_order",
            "The 'edge_order' argument to jnp.gradient is not supported.",
            advice="The ends are of first order.")
    f = array_argument("gradient", f)
    _check_dtypes(f, *varargs)
    (f,) = promote_dtypes_inexact(f)
    axes = canonical_axes(axis, f.ndim)
    if any(f.shape[i] < 2 for i in axes):
        raise errors.explained(
            errors.ArgumentError, "gradient.C1",
            "Shape of array too small to calculate a numerical gradient, at least 2 elements are "
            "required.", advice=f"Got shape {f.shape}.")
    steps = varargs or (1.0,) * len(axes)
    if len(steps) == 1:
        steps = steps * len(axes)
    _check_steps(f, steps, axes)
    if len(steps) != len(axes):
        raise errors.explained(
            errors.ArgumentTypeError, "gradient.C2",
            f"Invalid number of spacing arguments {len(steps)} for axis={axis}",
            advice=f"Give none, one, or {len(axes)}.")
    weak = aval_of(f).weak_type and all(aval_of(step).weak_type for step in steps)
    outs = [convert(_slope(f, step, axis=i), f.dtype, weak) for i, step in zip(axes, steps)]
    return outs[0] if len(outs) == 1 else outs


def _check_dtypes(*values: Any) -> None:
    """Refuse values that do not meet in one dtype.  Raises: TypePromotionError under 'strict'."""
    promotion.lattice_join(*map(promotion.typed, values))


def _check_steps(f: Any, steps: tuple[Any, ...], axes: tuple[int, ...]) -> None:
    """Refuse distances that do not stand between the elements of ``f``.  Raises: ArgumentError."""
    for i, step in zip(axes, steps):
        if np.ndim(step) > 1:
            raise errors.explained(errors.ArgumentError, "gradient.C3",
                                   "Spacing arrays must be 1D arrays or scalars.",
                                   advice=f"Got shape {np.shape(step)}.")
        if np.ndim(step) and np.shape(step)[0] != f.shape[i]:
            raise errors.explained(
                errors.ArgumentError, "gradient.C4", "Spacing arrays must have the same length as "
                "the dimension along which the gradient is calculated.",
                advice=f"Got {np.shape(step)[0]} places for {f.shape[i]} elements.")


def _slope(f: Any, step: Any, axis: int) -> Any:
    size = f.shape[axis]
    step = as_array(step)
    rows = moveaxis(f, axis, -1)
    if step.ndim == 0:
        step = step.astype(rows.dtype)
        middle = ops.mul(ops.sub(_part(rows, 2, size), _part(rows, 0, size - 2)),
                         scalar(0.5, rows.dtype))
        low = ops.sub(_part(rows, 1, 2), _part(rows, 0, 1))
        high = ops.sub(_part(rows, size - 1, size), _part(rows, size - 2, size - 1))
        parts = [ops.div(p, step) for p in (low, middle, high)]
    else:
        gaps = diff(step).astype(rows.dtype)
        slopes = ops.div(diff(rows), broadcast_to(gaps, (*rows.shape[:-1], size - 1)))
        before = broadcast_to(_part(gaps, 0, size - 2), (*rows.shape[:-1], size - 2))
        after = broadcast_to(_part(gaps, 1, size - 1), before.shape)
        weighted = ops.add(ops.mul(_part(slopes, 0, size - 2), after),
                           ops.mul(_part(slopes, 1, size - 1), before))
        parts = [_part(slopes, 0, 1), ops.div(weighted, ops.add(before, after)),
                 _part(slopes, size - 2, size - 1)]
    return moveaxis(concatenate(parts, -1), -1, axis)


def _part(x: Any, start: int, stop: int) -> Any:
    return slicing.slice_in_dim(x, start, max(start, stop), axis=x.ndim - 1)


@library_function(static_argnames=("axis",), whole=True)
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0,
              axis: int = -1) -> Array:
    """Return the area under ``y`` along ``axis``, by trapezoids at ``x`` or of width ``dx``.

    >>> jnp.trapezoid(jnp.array([1., 2., 3.]))
    Array(4., dtype=float32)
    """
    y = array_argument("trapezoid", y)
    if x is not None:
        check_arraylike("trapezoid", x, position=1)
        y, x = promote_dtypes_inexact(y, as_array(x))
        widths = diff(x) if x.ndim == 1 else moveaxis(diff(x, axis=axis), axis, -1)
    else:
        y, widths = promote_dtypes_inexact(*promote_dtypes_inexact(y), as_array(dx))
    rows = moveaxis(y, axis, -1)
    size = rows.shape[-1]
    if x is None and not widths.ndim and size:  # each inner value counts twice
        ends = ops.add(*[slicing.index_in_dim(rows, i, rows.ndim - 1, False) for i in (0, -1)])
        whole = ops.sub(reductions.sum(rows, axis=-1), ops.mul(scalar(0.5, rows.dtype), ends))
        return ops.mul(broadcast_to(widths, whole.shape), whole)
    sums = ops.add(_part(rows, min(1, size), size), _part(rows, 0, max(size - 1, 0)))
    widths = broadcast_to(widths, sums.shape)
    return ops.mul(scalar(0.5, rows.dtype), reductions.sum(ops.mul(widths, sums), axis=-1))


# -- between ---------------------------------------------------------------------------------------


def interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | str | None = None,
           right: ArrayLike | str | None = None, period: ArrayLike | None = None) -> Array:
    """Return at ``x`` the value of straight lines through the points (xp, fp), xp ascending.

    Outside: ``left`` and ``right``, by default the first and last value, or 'extrapolate'.
    Raises: ValueError if ``xp`` and ``fp`` are not vectors of one length.

    >>> jnp.interp(jnp.array([0.5, 1.5]), jnp.array([0., 1., 2.]), jnp.array([0., 10., 30.]))
    Array([ 5., 20.], dtype=float32)
    """
    check_arraylike("interp", x, xp, fp)
    x, xp, fp, period = unwrapped(x), unwrapped(xp), unwrapped(fp), unwrapped(period)
    if aval_of(xp).ndim != 1 or aval_of(xp).shape != aval_of(fp).shape:
        raise errors.explained(
            errors.ArgumentError, "interp.C1",
            "xp and fp must be one-dimensional arrays of equal size",
            advice=f"Got shapes {aval_of(xp).shape} and {aval_of(fp).shape}.")
    if not aval_of(xp).size:
        raise errors.explained(
            errors.ArgumentError, "interp.C4", "array of sample points is empty",
            advice="Give at least one point.")
    if any(dtypes.is_complex(aval_of(v).dtype) for v in (x, xp)):
        raise errors.explained(
            errors.ArgumentError, "interp.C5",
            "jnp.interp: complex x values not supported.",
            advice="Complex numbers have no order; only fp may be complex.")
    ways = tuple("extrapolate" if isinstance(v, str) else "given" if v is not None else "edge"
                 for v in (left, right))
    for side, v in (("left", left), ("right", right)):
        if isinstance(v, str) and v != "extrapolate":
            raise errors.explained(
                errors.ArgumentError, "interp.C2",
                f"the only valid string value of `{side}` is 'extrapolate', but got: {v!r}",
                advice="Or pass a number.")
    if period is not None and aval_of(period).ndim:
        raise errors.explained(errors.ArgumentError, "interp.C3",
                               f"period must be a scalar; got {period}", advice="See NumPy.")
    return _interp(x, xp, fp, left if ways[0] == "given" else None,
                   right if ways[1] == "given" else None, period, ways=ways)


@library_function(static_argnames=("ways",), whole=True)
def _interp(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any,
            ways: tuple[str, str]) -> Any:
    x, xp = promote_dtypes_inexact(*array_argument("interp", x, xp))
    (fp,) = promote_dtypes_inexact(array_argument("interp", fp))
    dtype = xp.dtype
    if period is not None:
        period = numbers.abs(as_array(period).astype(dtype))
        x, xp = remainder(x, period), remainder(xp, period)
        order = argsort(xp)
        xp, fp = getitem(xp, order), getitem(fp, order)
        xp = concatenate([ops.sub(_part(xp, xp.shape[0] - 1, xp.shape[0]), period), xp,
                          ops.add(_part(xp, 0, 1), period)])
        fp = concatenate([_part(fp, fp.shape[0] - 1, fp.shape[0]), fp, _part(fp, 0, 1)])
    size = xp.shape[0]
    places = searchsorted(xp, x, side="right")
    index = places.dtype
    i = select.clamp(scalar(1, index), places, scalar(size - 1, index))
    before = ops.sub(i, scalar(1, index))
    options = {"mode": "promise_in_bounds"}
    low, high = getitem(fp, before, **options), getitem(fp, i, **options)
    start = getitem(xp, before, **options)
    width = ops.sub(getitem(xp, i, **options), start)
    tiny = compare.le(numbers.abs(width), scalar(np.spacing(dtypes.finfo(dtype).eps), dtype))
    share = ops.div(ops.sub(x, start), if_else(tiny, weakly_like(width, 1), width))
    share, rise, low = promote_dtypes(share, ops.sub(high, low), low)
    out = if_else(tiny, low, ops.add(low, ops.mul(share, rise)))
    if period is not None:
        return out
    for side, value, way in ((0, left, ways[0]), (size - 1, right, ways[1])):
        if way != "extrapolate":
            edge = getitem(xp, side)
            outside = compare.lt(x, edge) if side == 0 else compare.gt(x, edge)
            held = getitem(fp, side) if value is None else as_array(value)
            out, held = promote_dtypes(out, held)
            out = if_else(outside, held, out)
    return out


# -- windows that slide ----------------------------------------------------------------------------


def _sliding(name: str, a: Any, v: Any, mode: str, precision: Any, preferred: Any) -> Any:
    """Return the products of ``v`` with the windows of ``a``: full, same, or valid."""
    a, v = promote_dtypes_inexact(*array_argument(name, a, v))
    if a.ndim != 1 or v.ndim != 1:
        raise errors.explained(errors.ArgumentError, f"{name}.C1",
                               f"{name}() only support 1-dimensional inputs.",
                               advice="Use lax.conv for more axes, or vmap over rows.")
    if not a.shape[0] or not v.shape[0]:
        raise errors.explained(
            errors.ArgumentError, f"{name}.C2",
            f"{name}: inputs cannot be empty, got shapes {a.shape} and {v.shape}.",
            advice="Check x.size first.")
    m = v.shape[0]
    margins = {"full": (m - 1, m - 1), "same": (m // 2, m - m // 2 - 1), "valid": (0, 0)}
    if mode not in margins:
        raise errors.explained(errors.ArgumentError, f"{name}.mode",
                               "mode must be one of ['full', 'same', 'valid']",
                               advice=f"Got {mode!r}.")
    out = convolutions.conv_general_dilated(
        shape.expand_dims(a, (0, 1)), shape.expand_dims(v, (0, 1)), (1,), (margins[mode],),
        precision=precision, preferred_element_type=preferred)
    return shape.squeeze(out, (0, 1))


@library_function(static_argnames=("mode", "precision", "preferred_element_type"), whole=True)
def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: Any = None,
             preferred_element_type: DTypeLike | None = None) -> Array:
    """Return the convolution of two vectors: the products of polynomials of these coefficients.

    ``mode``: 'full' all overlaps, 'same' the length of the longer, 'valid' whole overlaps.
    Raises: ValueError for arrays that are no vectors, or empty.

    >>> jnp.convolve(jnp.array([1, 2, 3]), jnp.array([1, 1]))
    Array([1., 3., 5., 3.], dtype=float32)
    """
    a, v = array_argument("convolve", a, v)
    if a.ndim == 1 and v.ndim == 1 and 0 < a.shape[0] < v.shape[0]:
        a, v = v, a
    v = shape.rev(v, (0,)) if v.ndim == 1 else v
    return _sliding("convolve", a, v, mode, precision, preferred_element_type)


@library_function(static_argnames=("mode", "precision", "preferred_element_type"), whole=True)
def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: Any = None,
              preferred_element_type: DTypeLike | None = None) -> Array:
    """Return the correlation of two vectors: their inner product at each shift.

    Raises: ValueError for arrays that are no vectors, or empty.

    >>> jnp.correlate(jnp.array([1, 2, 3]), jnp.array([0, 1]))
    Array([2., 3.], dtype=float32)
    """
    a, v = promote_dtypes(*array_argument("correlate", a, v))
    if dtypes.is_complex(v.dtype):
        v = numbers.conj(v)
    if a.ndim == 1 and v.ndim == 1 and a.shape[0] < v.shape[0]:
        out = _sliding("correlate", v, a, mode, precision, preferred_element_type)
        return shape.rev(out, (0,))
    return _sliding("correlate", a, v, mode, precision, preferred_element_type)


# -- covariance ------------------------------------------------------------------------------------


@library_function(static_argnames=("rowvar", "bias", "ddof", "dtype"), whole=True)
def cov(m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False,
        ddof: int | None = None, fweights: ArrayLike | None = None,
        aweights: ArrayLike | None = None, dtype: DTypeLike | None = None) -> Array:
    """Return the covariances of variables (rows, unless ``rowvar`` is False) over observations.

    Raises: ValueError for more than two axes; TypeError for weights that do not fit.

    >>> jnp.cov(jnp.array([[1., 2., 3.], [3., 2., 1.]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    x = _variables("cov", m, y, rowvar, dtype)
    if ddof is None:
        ddof = 0 if bias else 1
    real = dtypes.real_dtype(x.dtype)
    weights = None
    for kind, w in (("fweights", fweights), ("aweights", aweights)):
        if w is not None:
            w = _checked_weights(kind, w, x.shape[1])
            _check_dtypes(x, w)
            w = w.astype(real)
            weights = w if weights is None else ops.mul(weights, w)
    center = average_over(x, weights)
    x = ops.sub(x, broadcast_in_dim(center, x.shape, (0,)))
    if weights is None:
        factor: Any = scalar(x.shape[1] - ddof if x.shape[1] else np.nan, real)
        weighted = x
    else:
        total = reductions.sum(weights)
        if aweights is None or ddof == 0:
            factor = ops.sub(total, scalar(ddof, real))
        else:
            squares = reductions.sum(ops.mul(weights, array_argument("cov", aweights).astype(real)))
            factor = ops.sub(total, ops.div(ops.mul(scalar(ddof, real), squares), total))
        weighted = ops.mul(x, broadcast_in_dim(weights.astype(x.dtype), x.shape, (1,)))
    other = permute(numbers.conj(weighted) if dtypes.is_complex(x.dtype) else weighted, (1, 0))
    out = ops.div(dot(x, other), factor.astype(x.dtype))
    return shape.squeeze(out, [i for i, n in enumerate(out.shape) if n == 1])


def _checked_weights(kind: str, w: Any, count: int) -> Any:
    """Return the weights of ``count`` observations.

    Raises: RuntimeError if they are not so many; TypeError for frequencies that are no integers.
    """
    w = array_argument("cov", w)
    if kind == "fweights" and not dtypes.is_integer(w.dtype):
        raise errors.explained(errors.DTypeError, "cov.C3", "fweights must be integer.",
                               advice="They are how often each observation was made.")
    if w.shape != (count,):
        said = f"cannot handle multidimensional {kind}" if w.ndim > 1 else \
            f"incompatible numbers of samples and {kind}"
        raise errors.explained(RuntimeError, "cov.C2", said,
                               advice=f"Got {w.shape} for {count} observations.")
    return w


def _variables(name: str, m: Any, y: Any, rowvar: bool, dtype: Any) -> Any:
    """Return the observations as a matrix with one row for each variable."""
    arrays = [array_argument(name, m)] + ([] if y is None else [array_argument(name, y)])
    for a in arrays:
        if a.ndim > 2:
            raise errors.explained(
                errors.ArgumentError, f"{name}.C1",
                f"{'m' if a is arrays[0] else 'y'} has more than 2 dimensions",
                advice=f"Got shape {a.shape}.")
    requested = requested_dtype(name, dtype)
    if requested is not None and not dtypes.is_inexact(requested):
        raise errors.explained(
            errors.ArgumentError, f"{name}.C5",
            f"{name}: dtype must be a subclass of float or complex; got dtype={dtype!r}",
            advice="Leave dtype out, or pass jnp.float32.")
    arrays = promote_dtypes_inexact(*arrays)
    if requested is not None:
        arrays = [a.astype(requested) for a in arrays]
    rows = []
    for a in arrays:
        matrix = shape.expand_dims(a, tuple(range(2 - a.ndim)))
        rows.append(permute(matrix, (1, 0)) if not rowvar and a.ndim == 2 else matrix)
    return concatenate(rows, 0) if len(rows) > 1 else rows[0]


def average_over(x: Any, weights: Any) -> Any:
    """Return the mean of each row of ``x``."""
    return reductions.mean(x, axis=1) if weights is None else reductions.average(
        x, axis=1, weights=weights.astype(x.dtype))


@library_function(static_argnames=("rowvar", "dtype"), whole=True)
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True,
             dtype: DTypeLike | None = None) -> Array:
    """Return the correlation coefficients of variables: covariances over standard deviations.

    >>> jnp.corrcoef(jnp.array([[1., 2., 3.], [3., 2., 1.]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return ops.div(c, c)
    scale = maths.sqrt(numbers.real(c.diagonal()) if dtypes.is_complex(c.dtype) else c.diagonal())
    scale = scale.astype(c.dtype)
    c = ops.div(c, broadcast_in_dim(scale, c.shape, (0,)))
    c = ops.div(c, broadcast_in_dim(scale, c.shape, (1,)))
    if dtypes.is_complex(c.dtype):
        return numbers.complex(_within(numbers.real(c)), _within(numbers.imag(c)))
    return _within(c)


def _within(x: Any) -> Any:
    return select.clamp(scalar(-1, x.dtype), x, scalar(1, x.dtype))


# -- space -----------------------------------------------------------------------------------------


@library_function(static_argnames=("axisa", "axisb", "axisc", "axis"), whole=True)
def cross(a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: int | None = None) -> Any:
    """Return the cross products of vectors of 2 or 3 components along an axis.

    Raises: ValueError for other sizes.

    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promote_dtypes(*array_argument("cross", a, b))
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise errors.explained(errors.ArgumentError, "cross.C1",
                               "Dimension must be either 2 or 3 for cross product",
                               advice=f"Got {a.shape[-1]} and {b.shape[-1]} components.")
    lead = broadcast_shapes(a.shape[:-1], b.shape[:-1])
    x, y = (_components(v, lead) for v in (a, b))
    z = ops.sub(ops.mul(x[0], y[1]), ops.mul(x[1], y[0]))
    if a.shape[-1] == b.shape[-1] == 2:
        return z
    zero = broadcast_in_dim(scalar(0, a.dtype), lead, ())
    x, y = (v if len(v) == 3 else [*v, zero] for v in (x, y))
    parts = [ops.sub(ops.mul(x[1], y[2]), ops.mul(x[2], y[1])),
             ops.sub(ops.mul(x[2], y[0]), ops.mul(x[0], y[2])), z]
    out = concatenate([shape.expand_dims(p, (p.ndim,)) for p in parts], -1)
    return moveaxis(out, -1, axisc)


def _components(v: Any, lead: tuple[int, ...]) -> list[Any]:
    return [broadcast_to(slicing.index_in_dim(v, i, v.ndim - 1, False), lead)
            for i in range(v.shape[-1])]


@library_function(static_argnames=("axis",), whole=True)
def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1,
           period: ArrayLike = 2 * np.pi) -> Array:
    """Return ``p`` with jumps beyond half of ``period`` along ``axis`` taken away.

    >>> jnp.unwrap(jnp.array([0., 3., 6.5]))
    Array([0.      , 3.      , 0.216815], dtype=float32)
    """
    p = array_argument("unwrap", p)
    if dtypes.is_complex(p.dtype):
        raise errors.explained(errors.ArgumentError, "unwrap.C1",
                               "jnp.unwrap does not support complex inputs.",
                               advice="Unwrap jnp.angle(p).")
    if not p.shape[canonical_axis(axis, p.ndim)]:
        return p
    whole = dtypes.is_integer(p.dtype) and dtypes.is_integer(aval_of(period).dtype)
    p, period = (promote_dtypes if whole else promote_dtypes_inexact)(p, period)
    rows, period = moveaxis(p, axis, -1), as_array(period)
    half = ops.div(period, scalar(2, p.dtype))
    step = diff(rows)
    folded = ops.sub(remainder(ops.add(step, half), period), half)
    at_end = compare.bitwise_and(compare.eq(folded, broadcast_to(ops.neg(half), step.shape)),
                                 compare.gt(step, scalar(0, p.dtype)))
    folded = if_else(at_end, half, folded)
    if discont is not None:
        _check_dtypes(p, discont)
    limit = half if discont is None else as_array(discont).astype(p.dtype)
    small = compare.lt(numbers.abs(step), broadcast_to(limit, step.shape))
    correction = if_else(small, scalar(0, p.dtype), ops.sub(folded, step))
    moved = ops.add(_part(rows, 1, rows.shape[-1]), correction.cumsum(axis=-1))
    return moveaxis(concatenate([_part(rows, 0, 1), moved], -1), -1, axis)
