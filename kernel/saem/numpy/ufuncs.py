"""Which elementwise functions does ``jax.numpy`` offer?

Each is a function of a module nearby, made one compiled call for use outside traces.  The binary
ones that NumPy calls ufuncs also reduce, accumulate, update and pair: ``jnp.add.reduce(x)``.

Read before: ``numpy.arithmetic`` and related functions.  Read after: ``numpy.ufunc_methods``.
Invariant: a function here and the one it is made of give the same result.
"""

from __future__ import annotations

import functools
import math
import types
from typing import Any

from saem.core import lazy
from saem.jit.jitted import composite
from saem.numpy import arithmetic, complex_numbers, floating_point, logic, selection, transcendental
from saem.numpy.arithmetic import integer_power, is_constant_integer
from saem.numpy.selection import choose, piecewise

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "allclose",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "around",
    "array_equal",
    "array_equiv",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "choose",
    "clip",
    "conj",
    "conjugate",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "divide",
    "divmod",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "i0",
    "imag",
    "invert",
    "isclose",
    "iscomplex",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "modf",
    "multiply",
    "nan_to_num",
    "negative",
    "nextafter",
    "not_equal",
    "piecewise",
    "positive",
    "pow",
    "power",
    "rad2deg",
    "radians",
    "real",
    "reciprocal",
    "remainder",
    "right_shift",
    "rint",
    "round",
    "select",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "spacing",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
]  # fmt: skip



def called(name: str, function: Any) -> Any:
    """Return a function that does the same under another name, with signature and docstring."""
    same = types.FunctionType(function.__code__, function.__globals__, name,
                              function.__defaults__, function.__closure__)
    functools.update_wrapper(same, function)
    del same.__wrapped__
    same.__kwdefaults__ = function.__kwdefaults__
    same.__name__ = same.__qualname__ = name
    return same


# -- arithmetic ------------------------------------------------------------------------------------

add = composite(arithmetic.add)
subtract = composite(arithmetic.subtract)
multiply = composite(arithmetic.multiply)
divide = composite(arithmetic.divide)
true_divide = composite(called("true_divide", arithmetic.divide))
negative = composite(arithmetic.negative)
positive = composite(arithmetic.positive)
absolute = composite(arithmetic.absolute)
abs = composite(called("abs", arithmetic.absolute))
fabs = composite(arithmetic.fabs)
sign = composite(arithmetic.sign)
floor_divide = composite(arithmetic.floor_divide)
remainder = composite(arithmetic.remainder)
mod = composite(called("mod", arithmetic.remainder))
divmod = composite(arithmetic.divmod)
fmod = composite(arithmetic.fmod)
float_power = composite(arithmetic.float_power)
square = composite(arithmetic.square)
reciprocal = composite(arithmetic.reciprocal)
deg2rad = composite(arithmetic.deg2rad)
radians = composite(called("radians", arithmetic.deg2rad))
rad2deg = composite(arithmetic.rad2deg)
degrees = composite(called("degrees", arithmetic.rad2deg))

_general_power = composite(arithmetic.power)
_constant_power = composite(integer_power, static_argnums=1)


def power(x1: Any, x2: Any, /) -> Any:
    """Return x1 ** x2.

    A Python int exponent is a constant of the program: ``x ** 2`` is a multiplication.
    Raises: TypeError for integers to negative constant powers.
    """
    if is_constant_integer(x2):
        return _constant_power(x1, int(x2))
    return _general_power(x1, x2)


pow = called("pow", power)

# -- comparisons, truth values and bits ------------------------------------------------------------

equal = composite(logic.equal)
not_equal = composite(logic.not_equal)
less = composite(logic.less)
less_equal = composite(logic.less_equal)
greater = composite(logic.greater)
greater_equal = composite(logic.greater_equal)
logical_and = composite(logic.logical_and)
logical_or = composite(logic.logical_or)
logical_xor = composite(logic.logical_xor)
logical_not = composite(logic.logical_not)
bitwise_and = composite(logic.bitwise_and)
bitwise_or = composite(logic.bitwise_or)
bitwise_xor = composite(logic.bitwise_xor)
bitwise_not = composite(logic.bitwise_not)
bitwise_invert = composite(called("bitwise_invert", logic.bitwise_not))
invert = composite(called("invert", logic.bitwise_not))
left_shift = composite(logic.left_shift)
bitwise_left_shift = composite(called("bitwise_left_shift", logic.left_shift))
right_shift = composite(logic.right_shift)
bitwise_right_shift = composite(called("bitwise_right_shift", logic.right_shift))
bitwise_count = composite(logic.bitwise_count)
array_equal = logic.array_equal
array_equiv = logic.array_equiv

# -- maths -----------------------------------------------------------------------------------------

exp = composite(transcendental.exp)
exp2 = composite(transcendental.exp2)
expm1 = composite(transcendental.expm1)
log = composite(transcendental.log)
log1p = composite(transcendental.log1p)
log2 = composite(transcendental.log2)
log10 = composite(transcendental.log10)
sqrt = composite(transcendental.sqrt)
cbrt = composite(transcendental.cbrt)
sin = composite(transcendental.sin)
cos = composite(transcendental.cos)
tan = composite(transcendental.tan)
arcsin = composite(transcendental.arcsin)
asin = composite(called("asin", transcendental.arcsin))
arccos = composite(transcendental.arccos)
acos = composite(called("acos", transcendental.arccos))
arctan = composite(transcendental.arctan)
atan = composite(called("atan", transcendental.arctan))
arctan2 = composite(transcendental.arctan2)
atan2 = composite(called("atan2", transcendental.arctan2))
sinh = composite(transcendental.sinh)
cosh = composite(transcendental.cosh)
tanh = composite(transcendental.tanh)
arcsinh = composite(transcendental.arcsinh)
asinh = composite(called("asinh", transcendental.arcsinh))
arccosh = composite(transcendental.arccosh)
acosh = composite(called("acosh", transcendental.arccosh))
arctanh = composite(transcendental.arctanh)
atanh = composite(called("atanh", transcendental.arctanh))
hypot = composite(transcendental.hypot)
logaddexp = composite(transcendental.logaddexp)
logaddexp2 = composite(transcendental.logaddexp2)
sinc = composite(transcendental.sinc)
i0 = composite(transcendental.i0)

# -- floating point and complex numbers ------------------------------------------------------------

isnan = composite(floating_point.isnan)
isinf = composite(floating_point.isinf)
isfinite = composite(floating_point.isfinite)
isposinf = composite(floating_point.isposinf)
isneginf = composite(floating_point.isneginf)
signbit = composite(floating_point.signbit)
copysign = composite(floating_point.copysign)
nextafter = composite(floating_point.nextafter)
spacing = composite(floating_point.spacing)
frexp = composite(floating_point.frexp)
ldexp = composite(floating_point.ldexp)
modf = composite(floating_point.modf)
floor = composite(floating_point.floor)
ceil = composite(floating_point.ceil)
trunc = composite(floating_point.trunc)
rint = composite(floating_point.rint)
round = composite(floating_point.round, static_argnames="decimals")
around = composite(called("around", floating_point.round), static_argnames="decimals")
nan_to_num = composite(floating_point.nan_to_num, static_argnames="copy")
isclose = composite(floating_point.isclose, static_argnames="equal_nan")
allclose = composite(floating_point.allclose, static_argnames="equal_nan")
heaviside = composite(floating_point.heaviside)
real = composite(complex_numbers.real)
imag = composite(complex_numbers.imag)
conjugate = composite(complex_numbers.conjugate)
conj = composite(called("conj", complex_numbers.conjugate))
angle = composite(complex_numbers.angle, static_argnames="deg")
iscomplex = composite(complex_numbers.iscomplex)
isreal = composite(complex_numbers.isreal)

# -- choosing --------------------------------------------------------------------------------------

maximum = composite(selection.maximum)
minimum = composite(selection.minimum)
fmax = composite(selection.fmax)
fmin = composite(selection.fmin)
clip = composite(selection.clip)
select = composite(selection.select)
choose_where = composite(selection.choose_where)

# -- methods ---------------------------------------------------------------------------------------

_methods = lazy.later("saem.numpy.ufunc_methods")


def _method(name: str, function: Any, *args: Any, **kwargs: Any) -> Any:
    return getattr(_methods, name)(function, *args, **kwargs)


def _give_methods(function: Any, nin: int, identity: Any) -> None:
    """Let ``function.reduce(x)`` and its like be what NumPy says of them."""
    function.nin = function.nargs = nin
    function.nout, function.identity, function.special = 1, identity, True
    for name in ("reduce", "accumulate", "at", "outer", "reduceat"):
        setattr(function, name, functools.partial(_method, name, function))


_give_methods(negative, 1, None)
for _function, _identity in (
        (add, 0), (subtract, None), (multiply, 1), (maximum, None), (minimum, None),
        (bitwise_and, -1), (bitwise_or, 0), (bitwise_xor, 0), (logical_and, True),
        (logical_or, False), (logical_xor, False), (logaddexp, -math.inf), (logaddexp2, -math.inf)):
    _give_methods(_function, 2, _identity)
