"""How is an image made larger or smaller?

Along each axis by a matrix: each output pixel is a weighted mean of the input pixels around the
place that it stands for, with a kernel that is widened where the image shrinks.

Read before: ``saem.numpy``.
Invariant: weights of a pixel sum to 1, so constants stay; values are those of jax.image
(tests/kernel/test_image.py).
Source: Keys 1981, "Cubic convolution interpolation for digital image processing"; Duchon 1979,
"Lanczos filtering in one and two dimensions".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import errors
from saem.core.dtypes import finfo
from saem.jit.library import library_function
from saem.numpy.axes import array_argument, canonical_axes
from saem.numpy.creation import canonical_shape
from saem.numpy.promote import promote_dtypes_inexact
from saem.ops.contract import product_dtype
from saem.typing import Array, Shape

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


def _triangle(x: Array) -> Array:
    return jnp.maximum(0, 1 - jnp.abs(x))


def _keys(a: float) -> Callable:
    """Return the cubic kernel of Keys (equation 4) with slope ``a`` at distance 1."""
    def kernel(x: Array) -> Array:
        x = jnp.abs(x)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return jnp.where(x < 1, near, jnp.where(x < 2, far, 0))
    return kernel


def _lanczos(radius: int) -> Callable:
    """Return a sinc that a wider sinc ends at distance ``radius``."""
    def kernel(x: Array) -> Array:
        return jnp.where(jnp.abs(x) < radius, jnp.sinc(x) * jnp.sinc(x / radius), 0)
    return kernel


class ResizeMethod(enum.Enum):
    """The kernel by which input pixels are weighted.

    ``from_string`` finds one by its name: 'nearest', 'linear' (also 'bilinear', 'trilinear',
    'triangle'), 'cubic' (also 'bicubic', 'tricubic'), 'lanczos3', 'lanczos5', 'cubic-pytorch',
    'area'.

    >>> jax.image.ResizeMethod.from_string("bilinear")
    <ResizeMethod.LINEAR: 1>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """Return the method called ``s``.  Raises: ValueError if there is none."""
        for method, names in NAMES.items():
            if s in names.split():
                return method
        raise errors.explained(
            errors.ArgumentError, "resize.method", f'Unknown resize method "{s}"',
            advice="For example 'linear' or 'cubic'.")


NAMES = {
    ResizeMethod.NEAREST: "nearest", ResizeMethod.LINEAR: "linear bilinear trilinear triangle",
    ResizeMethod.CUBIC: "cubic bicubic tricubic", ResizeMethod.LANCZOS3: "lanczos3",
    ResizeMethod.LANCZOS5: "lanczos5", ResizeMethod.AREA: "area",
    ResizeMethod.CUBIC_PYTORCH: "cubic-pytorch bicubic-pytorch tricubic-pytorch",
}
KERNELS = {
    ResizeMethod.LINEAR: _triangle, ResizeMethod.CUBIC: _keys(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _keys(-0.75), ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5),
}


def weights(size: int, out_size: int, scale: Any, translation: Any, kernel: Callable,
            antialias: bool, dtype: Any) -> Array:
    """Return the matrix [size, out_size] of one axis, computed in float32 at least."""
    out_dtype, dtype = dtype, product_dtype(dtype, np.dtype("float32"))
    step, translation = 1 / jnp.asarray(scale, dtype), jnp.asarray(translation, dtype)
    # Where the image shrinks a kernel that reaches over one pixel would leave pixels out.
    width = jnp.maximum(step, 1) if antialias else jnp.ones((), dtype)
    at = (jnp.arange(out_size, dtype=dtype) + 0.5) * step - translation * step - 0.5
    at = at[None]
    distance = jnp.abs(at - jnp.arange(size, dtype=dtype)[:, None]).astype(dtype) / width
    found = kernel(distance)
    total = jnp.sum(found, 0, keepdims=True)
    found = jnp.where(jnp.abs(total) > 1000 * float(finfo(np.float32).eps),
                      found / jnp.where(total != 0, total, 1), 0)
    inside = (at >= -0.5) & (at <= size - 0.5)
    return jnp.where(inside, found, 0).astype(out_dtype)


def overlaps(size: int, out_size: int, dtype: Any) -> Array:
    """Return the matrix [size, out_size] of the parts of output pixels that input pixels cover."""
    edges = np.arange(out_size + 1) * (size / out_size)
    low, high = edges[:-1], edges[1:]
    pixels = np.arange(size)[:, None]
    covered = np.minimum(high, pixels + 1) - np.maximum(low, pixels)
    return jnp.asarray(np.maximum(covered, 0) * (out_size / size), dtype)


def _along(x: Array, axis: int, matrix: Array, precision: Any) -> Array:
    if axis == x.ndim - 1:  # the product has it last already
        return jnp.tensordot(x, matrix, ((axis,), (0,)), precision=precision)
    out = jnp.tensordot(matrix, x, ((0,), (axis,)), precision=precision)
    return jnp.moveaxis(out, 0, axis)


@library_function(static_argnames=("shape", "method", "antialias", "precision"), whole=True)
def _resize(image, shape, method, antialias, precision):
    image = array_argument("resize", image)
    changed = [i for i, (n, m) in enumerate(zip(image.shape, shape)) if n != m]
    if method is ResizeMethod.NEAREST:
        for i in changed:
            n, m = image.shape[i], shape[i]
            at = jnp.floor((jnp.arange(m, dtype=np.float32) + 0.5) * n / m).astype(np.int32)
            image = jnp.take(image, at, axis=i)
        return image
    (image,) = promote_dtypes_inexact(image)
    for i in changed:
        n, m = image.shape[i], shape[i]
        matrix = overlaps(n, m, image.dtype) if method is ResizeMethod.AREA else weights(
            n, m, m / n, 0.0, KERNELS[method], antialias, image.dtype)
        image = _along(image, i, matrix, precision)
    return image


def _method(method: str | ResizeMethod) -> ResizeMethod:
    method = ResizeMethod.from_string(method) if isinstance(method, str) else method
    assert isinstance(method, ResizeMethod), f"method is a ResizeMethod or its name, got {method!r}"
    return method


def _sizes(name: str, image: Array, shape: Shape) -> tuple[int, ...]:
    """Return the sizes that are wished for, one for each axis of ``image``."""
    sizes = canonical_shape(shape)
    if len(sizes) != jnp.ndim(image):
        raise errors.explained(
            errors.ArgumentError, f"{name}.shape",
            "shape must have length equal to the number of dimensions of x;  "
            f"{sizes} vs {jnp.shape(image)}", advice="Axes that stay keep their size.")
    return sizes


def resize(image: Array, shape: Shape, method: str | ResizeMethod, antialias: bool = True,
           precision: Any = lax.Precision.HIGHEST) -> Array:
    """Return ``image`` resampled to ``shape``, which has as many axes.

    method: a ``ResizeMethod`` or its name.  antialias: widen the kernel where the image shrinks.
    Returns: of a floating dtype, unless the method is 'nearest'.
    Raises: ValueError for another number of axes or an unknown method; TypeError for sizes that
    are no integers; ShapeError or ZeroDivisionError for an image without pixels.

    >>> resize(jnp.array([0., 2.]), (4,), 'linear')
    Array([0. , 0.5, 1.5, 2. ], dtype=float32)
    """
    shape, method = _sizes("resize", image, shape), _method(method)
    if any(n == 0 != m for n, m in zip(jnp.shape(image), shape)):
        raise errors.explained(
            errors.ShapeError if method is ResizeMethod.NEAREST else ZeroDivisionError,
            "resize.pixels", f"an image of shape {jnp.shape(image)} has no pixels to make {shape} "
            "of", advice="Check image.shape first.")
    return _resize(image, shape, method, antialias, precision)


@library_function(static_argnames=("shape", "spatial_dims", "method", "antialias", "precision"),
                  whole=True)
def _scale_and_translate(image, shape, spatial_dims, scale, translation, method, antialias,
                         precision):
    (image,) = promote_dtypes_inexact(array_argument("scale_and_translate", image))
    for i, axis in enumerate(spatial_dims):
        matrix = weights(image.shape[axis], shape[axis], scale[i], translation[i], KERNELS[method],
                         antialias, image.dtype)
        image = _along(image, axis, matrix, precision)
    return image


def scale_and_translate(image: Array, shape: Shape, spatial_dims: Sequence[int], scale: Any,
                        translation: Any, method: str | ResizeMethod, antialias: bool = True,
                        precision: Any = lax.Precision.HIGHEST) -> Array:
    """Return ``image`` stretched by ``scale``, then moved by ``translation`` pixels.

    spatial_dims: the axes that ``scale`` [k] and ``translation`` [k] are for; the others stay.
    shape: that of the result.  Pixels that no input pixel reaches are 0.
    Raises: ValueError for another number of axes, and for the methods 'nearest' and 'area';
    ShapeError for a number as ``scale`` or ``translation``.

    >>> scale_and_translate(jnp.array([1., 3.]), (2,), (0,), jnp.array([1.]), jnp.array([1.]),
    ...                     'linear')
    Array([0., 1.], dtype=float32)
    """
    shape = _sizes("scale_and_translate", image, shape)
    method = _method(method)
    if method not in KERNELS:
        word = "Nearest neighbor" if method is ResizeMethod.NEAREST else "Area"
        raise errors.explained(
            errors.ArgumentError, "scale_and_translate.method",
            f"{word} resampling is not currently supported for scale_and_translate.",
            advice="Use 'linear' or 'cubic'.")
    dims = tuple(spatial_dims)
    scale, translation = array_argument("scale_and_translate", scale, translation)
    for name, x in (("scale", scale), ("translation", translation)):
        if x.ndim == 0:
            raise errors.explained(
                errors.ShapeError, f"scale_and_translate.{name}",
                f"{name} needs one number for each of {dims}, got a number",
                advice="Make it a vector.")
        assert x.shape == (len(dims),), f"{name} needs one number for each of {dims}"
    dims = canonical_axes(dims, len(shape))
    return _scale_and_translate(image, shape, dims, scale, translation, method, antialias,
                                precision)
