"""What are the parts, the angle and the conjugate of complex numbers?

Real arrays are answered too: they are their own real part, and their imaginary part is zero.

Read before: ``numpy.promote``.  Read after: ``numpy.selection``.
Invariant: real arrays stay real (tests/kernel/numpy/test_elementwise.py).
"""

from __future__ import annotations

import numpy as np

from saem.core import dtypes
from saem.core.avals import aval_of
from saem.numpy.promote import (
    as_value,
    check_arraylike,
    convert_value,
    dtype_of,
    like,
    promote_args,
)
from saem.ops import arithmetic as ops
from saem.ops import compare, filling, numbers
from saem.typing import Array, ArrayLike


def real(val: ArrayLike, /) -> Array:
    """Return the real part; a real array is itself.

    >>> jnp.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    (val,) = promote_args("real", val)
    return numbers.real(val) if dtypes.is_complex(dtype_of(val)) else val


def imag(val: ArrayLike, /) -> Array:
    """Return the imaginary part; zeros for a real array.

    >>> jnp.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    (val,) = promote_args("imag", val)
    return numbers.imag(val) if dtypes.is_complex(dtype_of(val)) else filling.full_like(val, 0)


def conjugate(x: ArrayLike, /) -> Array:
    """Return the complex conjugate; a real array is itself.

    >>> jnp.conjugate(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    (x,) = promote_args("conjugate", x)
    return numbers.conj(x) if dtypes.is_complex(dtype_of(x)) else x


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Return the angle in -pi..pi of complex numbers, in degrees if ``deg``.

    >>> jnp.angle(jnp.array([1, 1j, -1]))
    Array([0.       , 1.5707964, 3.1415927], dtype=float32)
    """
    check_arraylike("angle", z)
    aval = aval_of(z)
    if not dtypes.is_complex(aval.dtype) and not (aval.shape and dtypes.is_inexact(aval.dtype)):
        z = convert_value(as_value(z), dtypes.default_dtype(float), False)  # strong, as in JAX
    out = numbers.atan2(imag(z), real(z))
    return ops.mul(out, like(out, 180 / np.pi)) if deg else out


def iscomplex(x: ArrayLike) -> Array:
    """Return where the imaginary part is not zero.

    >>> jnp.iscomplex(jnp.array([1, 1j]))
    Array([False,  True], dtype=bool)
    """
    i = imag(x)
    return compare.ne(i, like(i, 0))


def isreal(x: ArrayLike) -> Array:
    """Return where the imaginary part is zero.

    >>> jnp.isreal(jnp.array([1, 1j]))
    Array([ True, False], dtype=bool)
    """
    i = imag(x)
    return compare.eq(i, like(i, 0))
