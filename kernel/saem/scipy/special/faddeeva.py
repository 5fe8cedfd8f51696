"""How is the error function computed in the complex plane?

All through Faddeeva's w(z) = exp(-z²) erfc(-iz), which neither overflows nor vanishes in the upper
half plane: a rational function with one pole there, whose coefficients are a Fourier series.

Read before: ``special.operands``.  Read after: ``special.normal``.
Invariant: in the upper half plane the relative error is below 1e-13 in double precision
(tests/kernel/scipy/test_special.py).
Source: Weideman 1994, "Computation of the complex error function" (equations 33 to 38); DLMF 7.6.3
(series of Dawson's integral), 7.10 (derivatives).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import dtypes
from saem.custom_derivatives import custom_jvp
from saem.scipy.special.operands import elementwise, horner
from saem.typing import Array, ArrayLike

ROOT_PI = float(np.sqrt(np.pi))


@functools.cache
def weideman(n: int) -> tuple[float, np.ndarray]:
    """Return the scale L and the ``n`` coefficients of Weideman's series, highest first."""
    scale = float(np.sqrt(n / np.sqrt(2)))
    angles = np.arange(-2 * n + 1, 2 * n) * (np.pi / (2 * n))
    t = scale * np.tan(angles / 2)
    samples = np.concatenate([[0.0], np.exp(-t * t) * (scale * scale + t * t)])
    fourier = np.real(np.fft.fft(np.fft.fftshift(samples))) / (4 * n)
    return scale, fourier[1:n + 1][::-1]


def terms(dtype: Any) -> int:
    """Return how many coefficients give the precision of ``dtype``."""
    return 48 if dtypes.itemsize_bits(dtypes.real_dtype(dtype)) == 64 else 20


def of_upper(z: Array) -> Array:
    """Return w(z) for z of the closed upper half plane."""
    scale, coefficients = weideman(terms(z.dtype))
    turned = 1j * z
    bottom = scale - turned
    series = horner(coefficients, (scale + turned) / bottom)
    return 2 * series / (bottom * bottom) + (1 / ROOT_PI) / bottom


@custom_jvp
def faddeeva(z: Array) -> Array:
    """Return w(z) of complex z, by reflection in the lower half plane (DLMF 7.4.3)."""
    below = z.imag < 0
    out = of_upper(jnp.where(below, -z, z))
    reflected = 2 * jnp.exp(-jnp.where(below, z, 0) ** 2) - out
    return jnp.where(below, reflected, out)


faddeeva.defjvps(lambda dz, out, z: dz * (-2 * z * out + 2j / ROOT_PI))


@elementwise(complex_too=True)
def wofz(z: ArrayLike) -> Array:
    """Return Faddeeva's function exp(-z²) erfc(-i z), complex for real z too.

    >>> wofz(0.0).shape
    ()
    """
    return faddeeva(z if dtypes.is_complex(z.dtype) else lax.complex(z, lax.full_like(z, 0)))


@custom_jvp
def _erfcx(x: Array) -> Array:
    """Return exp(x²) erfc(x) of real x; w(ix), where all of Weideman's formula is real."""
    scale, coefficients = weideman(terms(x.dtype))
    size = jnp.abs(x)
    bottom = scale + size
    # Far out the ratio below tends to -1 and the two terms cancel: there 1 / (x sqrt(pi)) is it.
    far = size > 1e4 if terms(x.dtype) == 20 else size > 1e7
    near = jnp.where(far, 1, size)
    series = horner(coefficients, (scale - near) / (scale + near))
    out = 2 * series / (bottom * bottom) + (1 / ROOT_PI) / bottom
    out = jnp.where(far, (1 / ROOT_PI) / jnp.where(far, size, 1), out)
    return jnp.where(x < 0, 2 * jnp.exp(x * x) - out, out)


_erfcx.defjvps(lambda dx, out, x: dx * (2 * x * out - 2 / ROOT_PI))


@elementwise(complex_too=True)
def erfcx(x: ArrayLike) -> Array:
    """Return exp(x²) erfc(x), which does not vanish where erfc does.

    >>> erfcx(0.0)
    Array(1., dtype=float32)
    """
    return faddeeva(1j * x) if dtypes.is_complex(x.dtype) else _erfcx(x)


# Coefficients of x, x³, … of Dawson's integral: (-2)^k / (1 · 3 · 5 … (2k + 1)).
DAWSON = [float(np.prod([-2.0 / (2 * j + 1) for j in range(1, k + 1)])) for k in range(22)]


@custom_jvp
def _dawsn(x: Array) -> Array:
    small = jnp.abs(x) < 1
    near = jnp.where(small, x, 0)
    series = near * horner(DAWSON[::-1], near * near)
    # Where the imaginary part is not small beside the real one, w has it to full precision.
    beyond = jnp.where(small, 1, x)
    far = (ROOT_PI / 2) * faddeeva(lax.complex(beyond, lax.full_like(beyond, 0))).imag
    return jnp.where(small, series, jnp.where(jnp.isinf(x), 0, far))


_dawsn.defjvps(lambda dx, out, x: dx * (1 - 2 * x * out))


@elementwise
def dawsn(x: ArrayLike) -> Array:
    """Return Dawson's integral, exp(-x²) times the integral of exp(t²) from 0 to x.

    >>> dawsn(0.0)
    Array(0., dtype=float32)
    """
    return _dawsn(x)
