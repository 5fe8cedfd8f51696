"""Which elementwise functions read or round floats, or take complex numbers apart?

Read before: ``numpy.ufuncs``, ``numpy.floating_point``, ``numpy.complex_numbers``.
Invariant: a function here and the one it is made of give the same result.
"""

from __future__ import annotations

from saem.core.naming import called
from saem.jit.library import library_function
from saem.numpy import complex_numbers, floating_point

isnan = library_function(floating_point.isnan)
isinf = library_function(floating_point.isinf)
isfinite = library_function(floating_point.isfinite)
isposinf = library_function(floating_point.isposinf)
isneginf = library_function(floating_point.isneginf)
signbit = library_function(floating_point.signbit)
copysign = library_function(floating_point.copysign)
nextafter = library_function(floating_point.nextafter)
spacing = library_function(floating_point.spacing, whole=True)
frexp = library_function(floating_point.frexp, whole=True)
ldexp = library_function(floating_point.ldexp, whole=True)
modf = library_function(floating_point.modf)
floor = library_function(floating_point.floor)
ceil = library_function(floating_point.ceil)
trunc = library_function(floating_point.trunc)
rint = library_function(floating_point.rint)
round = library_function(floating_point.round, static_argnames="decimals")
around = library_function(called("around", floating_point.round), static_argnames="decimals")
nan_to_num = library_function(floating_point.nan_to_num, static_argnames="copy")
isclose = library_function(floating_point.isclose, static_argnames="equal_nan")
allclose = library_function(floating_point.allclose, static_argnames="equal_nan")
heaviside = library_function(floating_point.heaviside)
real = library_function(complex_numbers.real)
imag = library_function(complex_numbers.imag)
conjugate = library_function(complex_numbers.conjugate)
conj = library_function(called("conj", complex_numbers.conjugate))
angle = library_function(complex_numbers.angle, static_argnames="deg")
iscomplex = library_function(complex_numbers.iscomplex)
isreal = library_function(complex_numbers.isreal)
