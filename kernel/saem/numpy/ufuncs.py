"""Which elementwise functions does ``jax.numpy`` offer to every program?

Each is a function of a module nearby, made one compiled call for use outside traces.  The binary
ones that NumPy calls ufuncs also reduce, accumulate, update and pair: ``jnp.add.reduce(x)``; they
know NumPy's arguments ``out`` and ``where``, and refuse them.

Read before: ``numpy.arithmetic`` and related functions.  Read after: ``numpy.float_ufuncs``,
``numpy.ufunc_methods``.
Invariant: a function here and the one it is made of give the same result.
"""

from __future__ import annotations

import functools
from typing import Any, NoReturn

from saem.core import errors, lazy
from saem.core.naming import called
from saem.jit.library import library_function
from saem.numpy import arithmetic, logic, selection, transcendental
from saem.numpy.arithmetic import integer_power, is_constant_integer
from saem.numpy.promote import listed
from saem.numpy.selection import choose, piecewise
from saem.typing import Array, ArrayLike

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
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
    "choose",
    "clip",
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
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "greater",
    "greater_equal",
    "hypot",
    "invert",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "not_equal",
    "piecewise",
    "positive",
    "pow",
    "power",
    "rad2deg",
    "radians",
    "reciprocal",
    "remainder",
    "right_shift",
    "select",
    "sign",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
]  # fmt: skip


def with_out_and_where(function: Any) -> Any:
    """Return ``function``, of two operands, with NumPy's arguments that it cannot honour."""

    def ufunc(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            refuse_ufunc_arguments(f"<jnp.ufunc {function.__name__!r}>", out)
        return function(x, y)

    signature = ufunc.__annotations__
    functools.update_wrapper(ufunc, function)
    del ufunc.__wrapped__  # type: ignore[attr-defined]
    ufunc.__annotations__ = signature
    return ufunc


def refuse_ufunc_arguments(ufunc: str, out: Any) -> NoReturn:
    """Refuse ``out``, or else ``where``, of a ufunc.  Raises: NotImplementedError."""
    if out is not None:
        raise errors.explained(NotImplementedError, "ufunc.out", f"out argument of {ufunc}",
                               advice="Arrays are immutable: use the result.")
    raise errors.explained(NotImplementedError, "ufunc.where", f"where argument of {ufunc}",
                           advice="Choose afterwards: jnp.where(mask, result, other).")


# -- arithmetic ------------------------------------------------------------------------------------

add = library_function(with_out_and_where(arithmetic.add))
subtract = library_function(with_out_and_where(arithmetic.subtract))
multiply = library_function(with_out_and_where(arithmetic.multiply))
divide = library_function(arithmetic.divide)
true_divide = library_function(called("true_divide", arithmetic.divide))
negative = library_function(arithmetic.negative)
positive = library_function(arithmetic.positive)
absolute = library_function(arithmetic.absolute)
abs = library_function(called("abs", arithmetic.absolute))
fabs = library_function(arithmetic.fabs)
sign = library_function(arithmetic.sign)
floor_divide = library_function(arithmetic.floor_divide, whole=True)
remainder = library_function(arithmetic.remainder, whole=True)
mod = library_function(called("mod", arithmetic.remainder), whole=True)
divmod = library_function(arithmetic.divmod, whole=True)
fmod = library_function(arithmetic.fmod)
float_power = library_function(arithmetic.float_power)
square = library_function(arithmetic.square)
reciprocal = library_function(arithmetic.reciprocal)
deg2rad = library_function(arithmetic.deg2rad)
radians = library_function(called("radians", arithmetic.deg2rad))
rad2deg = library_function(arithmetic.rad2deg)
degrees = library_function(called("degrees", arithmetic.rad2deg))

_general_power = library_function(arithmetic.power)
_constant_power = library_function(integer_power, static_argnums=1)


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return x1 ** x2.

    A Python int exponent is a constant of the program: ``x ** 2`` is a multiplication.
    Raises: TypeError for integers to negative constant powers.

    >>> jnp.power(jnp.array([2, 3]), 2)
    Array([4, 9], dtype=int32)
    """
    if is_constant_integer(x2):
        return _constant_power(x1, int(x2))
    return _general_power(x1, x2)


pow = called("pow", power)

# -- comparisons, truth values and bits ------------------------------------------------------------

equal = library_function(logic.equal)
not_equal = library_function(logic.not_equal)
less = library_function(logic.less)
less_equal = library_function(logic.less_equal)
greater = library_function(logic.greater)
greater_equal = library_function(logic.greater_equal)
logical_and = library_function(with_out_and_where(logic.logical_and))
logical_or = library_function(with_out_and_where(logic.logical_or))
logical_xor = library_function(with_out_and_where(logic.logical_xor))
logical_not = library_function(logic.logical_not)
bitwise_and = library_function(with_out_and_where(logic.bitwise_and))
bitwise_or = library_function(with_out_and_where(logic.bitwise_or))
bitwise_xor = library_function(with_out_and_where(logic.bitwise_xor))
bitwise_not = library_function(logic.bitwise_not)
bitwise_invert = library_function(called("bitwise_invert", logic.bitwise_not))
invert = library_function(called("invert", logic.bitwise_not))
left_shift = library_function(logic.left_shift)
bitwise_left_shift = library_function(called("bitwise_left_shift", logic.left_shift))
right_shift = library_function(logic.right_shift)
bitwise_right_shift = library_function(called("bitwise_right_shift", logic.right_shift))
bitwise_count = library_function(logic.bitwise_count)
array_equal = logic.array_equal
array_equiv = logic.array_equiv

# -- maths -----------------------------------------------------------------------------------------

exp = library_function(transcendental.exp)
exp2 = library_function(transcendental.exp2)
expm1 = library_function(transcendental.expm1)
log = library_function(transcendental.log)
log1p = library_function(transcendental.log1p)
log2 = library_function(transcendental.log2)
log10 = library_function(transcendental.log10)
sqrt = library_function(transcendental.sqrt)
cbrt = library_function(transcendental.cbrt)
sin = library_function(transcendental.sin)
cos = library_function(transcendental.cos)
tan = library_function(transcendental.tan)
arcsin = library_function(transcendental.arcsin)
asin = library_function(called("asin", transcendental.arcsin))
arccos = library_function(transcendental.arccos)
acos = library_function(called("acos", transcendental.arccos))
arctan = library_function(transcendental.arctan)
atan = library_function(called("atan", transcendental.arctan))
arctan2 = library_function(transcendental.arctan2)
atan2 = library_function(called("atan2", transcendental.arctan2))
sinh = library_function(transcendental.sinh)
cosh = library_function(transcendental.cosh)
tanh = library_function(transcendental.tanh)
arcsinh = library_function(transcendental.arcsinh)
asinh = library_function(called("asinh", transcendental.arcsinh))
arccosh = library_function(transcendental.arccosh)
acosh = library_function(called("acosh", transcendental.arccosh))
arctanh = library_function(transcendental.arctanh)
atanh = library_function(called("atanh", transcendental.arctanh))
hypot = library_function(transcendental.hypot, whole=True)
sinc = library_function(transcendental.sinc, whole=True)

# -- choosing --------------------------------------------------------------------------------------

maximum = library_function(with_out_and_where(selection.maximum))
minimum = library_function(with_out_and_where(selection.minimum))
fmax = library_function(selection.fmax)
fmin = library_function(selection.fmin)
clip = library_function(selection.clip)
_select = library_function(selection.select)
choose_where = library_function(selection.choose_where)


@functools.wraps(selection.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    return _select(listed(condlist), listed(choicelist), default)


# -- methods ---------------------------------------------------------------------------------------

_methods = lazy.later("saem.numpy.ufunc_methods")


def _method(name: str, function: Any, *args: Any, **kwargs: Any) -> Any:
    return getattr(_methods, name)(function, *args, **kwargs)


def give_methods(function: Any, nin: int, identity: Any) -> None:
    """Give ``function`` NumPy's methods of binary ufuncs, as ``reduce``.

    Its home is this module, where ``copy`` and ``pickle`` find it with them.
    """
    function.__module__ = __name__
    function.nin = function.nargs = nin
    function.nout, function.identity, function.special = 1, identity, True
    for name in ("reduce", "accumulate", "at", "outer", "reduceat"):
        setattr(function, name, functools.partial(_method, name, function))


give_methods(negative, 1, None)
for _function, _identity in (
        (add, 0), (subtract, None), (multiply, 1), (maximum, None), (minimum, None),
        (bitwise_and, -1), (bitwise_or, 0), (bitwise_xor, 0), (logical_and, True),
        (logical_or, False), (logical_xor, False)):
    give_methods(_function, 2, _identity)
