"""Which function does ``x + y`` call?

A table from the names of Python's operators to two functions: for arrays, jaxlib's C++ callable,
which answers without Python once it has seen such operands; for tracers, a Python function, because
C++ would only hand tracers on.  Both return ``NotImplemented`` for a non-array, so that the other
operand gets its turn and Python raises its own ``TypeError``.  Of a value of a type that a program
defines that type is asked.

Read before: ``numpy.arithmetic``, ``numpy.logic``.  Read after: ``saem._wiring``, which puts the
functions on the classes.
Invariant: both functions of a row give the same result (tests/kernel/numpy/test_operators.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saem.core import config
from saem.core.avals import aval_functions, is_array_like
from saem.core.hi_types import AbstractHigh, operator_of
from saem.core.lazy import later
from saem.core.record import Record
from saem.jit.library import library_function
from saem.numpy import arithmetic, logic
from saem.numpy.arithmetic import integer_power, is_constant_integer

products: Any = later("saem.numpy.products")

# Containers of arrays are no arrays: they are refused at once, by whichever operand comes first.
REFUSED = (list, tuple, set, dict)


class Operator(Record):
    """What one operator does on arrays, and on tracers."""

    array: Callable
    tracer: Callable


constant_power = library_function(integer_power, static_argnums=1)


def unary(name: str, fun: Callable) -> Operator:
    def method(self):
        return operator_of(self.aval, name)(self) if type(self.aval) is AbstractHigh else fun(self)

    method.__name__ = fun.__name__
    return Operator(library_function(fun), method)


def binary(name: str, fun: Callable, symbol: str) -> Operator:
    """Return the row for ``x symbol y``."""
    accepts = _accepts(symbol, False)

    def method(self, other):
        if type(self.aval) is AbstractHigh:
            return operator_of(self.aval, name)(self, other)
        if type(other) in aval_functions or accepts(self, other):
            return fun(self, other)
        return NotImplemented

    method.__name__ = fun.__name__
    return Operator(library_function(fun, accepts=accepts), method)


def reflected(name: str, fun: Callable, symbol: str) -> Operator:
    """Return the row for ``y symbol x``, where y is no array class of ours."""
    accepts = _accepts(symbol, True)

    def method(self, other):
        if type(self.aval) is AbstractHigh:
            return operator_of(self.aval, name)(self, other)
        if type(other) in aval_functions or accepts(self, other):
            return fun(other, self)
        return NotImplemented

    def swapped(x, y):
        return fun(y, x)

    method.__name__ = swapped.__name__ = fun.__name__
    return Operator(library_function(swapped, accepts=accepts), method)


def _accepts(symbol: str, swap: bool) -> Callable[[Any, Any], bool]:
    """Return the test of whether ``other`` can be an operand."""

    def accepts(self: Any, other: Any) -> bool:
        if is_array_like(other):
            return True
        if type(other) in REFUSED:  # a class derived from them may have operators of its own
            left, right = (other, self) if swap else (self, other)
            raise TypeError(
                f"unsupported operand type(s) for {symbol}: {type(left).__name__!r} and "
                f"{type(right).__name__!r}")
        return False

    return accepts


def matmul(x: Any, y: Any) -> Any:
    return products.matmul(x, y)


def _power_row() -> Operator:
    """Return the row for ``x ** y``, where a constant y is part of the program."""
    general = binary("__pow__", arithmetic.power, "**")

    def power(self, other):
        if type(other) is int or is_constant_integer(other):
            return constant_power(self, int(other))
        return general.array(self, other)

    def tracer_power(self, other):
        plain = type(other) is int and type(self.aval) is not AbstractHigh
        return integer_power(self, other) if plain else general.tracer(self, other)

    return Operator(power, tracer_power)


def _reflected_power_row() -> Operator:
    """Return the row for ``y ** x``, where an integer x that is known is a constant, too.

    So the result has the type of y: ``10 ** x`` of an int8 array x is no int8.
    """
    general = reflected("__rpow__", arithmetic.power, "**")
    accepts = _accepts("**", True)

    def power(self, other):
        if not config.staging.value and is_constant_integer(self) and accepts(self, other):
            return constant_power(other, int(self))
        return general.array(self, other)

    return Operator(power, general.tracer)


OPERATORS: dict[str, Operator] = {
    "__pow__": _power_row(),
    "__rpow__": _reflected_power_row(),
}

_UNARY = {
    "neg": arithmetic.negative,
    "pos": arithmetic.positive,
    "abs": arithmetic.absolute,
    "invert": logic.bitwise_not,
}

_BINARY = {
    "add": (arithmetic.add, "+"),
    "sub": (arithmetic.subtract, "-"),
    "mul": (arithmetic.multiply, "*"),
    "matmul": (matmul, "@"),
    "truediv": (arithmetic.divide, "/"),
    "floordiv": (arithmetic.floor_divide, "//"),
    "mod": (arithmetic.remainder, "%"),
    "divmod": (arithmetic.divmod, "divmod"),
    "and": (logic.bitwise_and, "&"),
    "or": (logic.bitwise_or, "|"),
    "xor": (logic.bitwise_xor, "^"),
    "lshift": (logic.left_shift, "<<"),
    "rshift": (logic.right_shift, ">>"),
}
_COMPARISONS = {
    "eq": (logic.equal, "=="),
    "ne": (logic.not_equal, "!="),
    "lt": (logic.less, "<"),
    "le": (logic.less_equal, "<="),
    "gt": (logic.greater, ">"),
    "ge": (logic.greater_equal, ">="),
}
for _name, _fun in _UNARY.items():
    OPERATORS[f"__{_name}__"] = unary(f"__{_name}__", _fun)
for _name, (_fun, _symbol) in _BINARY.items():
    OPERATORS[f"__{_name}__"] = binary(f"__{_name}__", _fun, _symbol)
    OPERATORS[f"__r{_name}__"] = reflected(f"__r{_name}__", _fun, _symbol)
for _name, (_fun, _symbol) in _COMPARISONS.items():
    OPERATORS[f"__{_name}__"] = binary(f"__{_name}__", _fun, _symbol)
