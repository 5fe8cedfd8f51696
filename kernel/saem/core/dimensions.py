"""What is a size that is not known yet?

A ``Dim`` is a polynomial with integer coefficients in dimension variables and in the operations
``floordiv``, ``mod``, ``max`` and ``min`` of other dimensions.  Every variable is at least 1, and a
``SymbolicScope`` may hold further constraints.  A comparison is answered if it has one answer for
all sizes; else it raises InconclusiveDimensionOperation.

Read before: ``core.errors``.  Read after: ``compile.sizes``, ``export.symbolic``.
Invariant: a constant is a Python int, never a Dim; equal polynomials of one scope are equal Dims
(tests/kernel/test_export_symbolic.py).
Source: the documentation of jax.export (shape polymorphism); interval arithmetic.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Union

import numpy as np

from saem.core.errors import (
    ArgumentTypeError,
    InconclusiveDimensionOperation,
    TracerIntegerConversionError,
    explained,
)
from saem.core.lazy import later

if TYPE_CHECKING:
    from fractions import Fraction

fractions: Any = later("fractions")  # only bounds of symbolic sizes need it

Size = Union[int, "Dim"]
# A product of powers: ((factor, power), …) in the order of factors; () is the constant 1.
Monomial = tuple
Terms = dict[Monomial, int]
Bound = Union["Fraction", float]
HOW_DEEP = 4  # how many constraints are combined to decide one comparison


class Operation(NamedTuple):
    """``name`` applied to two dimensions, where that is not a polynomial."""

    name: str
    left: Any
    right: Any

    def __str__(self) -> str:
        return f"{self.name}({self.left}, {self.right})"


def extent(factor: str | Operation) -> int:
    """Return how long a factor is: 1 for a variable, more for an operation.

    Longer factors and monomials come first, as JAX prints them.
    """
    if isinstance(factor, str):
        return 1
    return 1 + sum([sum([1 + monomial_extent(m) for m, _ in terms_in(size)])
                    for size in (factor.left, factor.right)])


def monomial_extent(monomial: Monomial) -> int:
    return sum([1 + power * extent(factor) for factor, power in monomial])


def terms_in(size: Size) -> Sequence[tuple[Monomial, int]]:
    return size.terms if isinstance(size, Dim) else (((), size),)


def factor_key(factor: str | Operation) -> tuple:
    """Return the key by which factors are ordered: variables first, by name."""
    if isinstance(factor, str):
        return (1, factor)
    return (extent(factor), factor.name, size_key(factor.left), size_key(factor.right))


def size_key(size: Size) -> tuple:
    return tuple([(count, monomial_key(m)) for m, count in terms_in(size)])


@functools.lru_cache(4096)
def monomial_key(monomial: Monomial) -> tuple:
    """Return the key by which monomials are ordered: by their length, then by the largest factor.
    """
    factors = sorted([(factor_key(f), power) for f, power in monomial], reverse=True)
    return (monomial_extent(monomial), tuple(factors))


class Constraint(NamedTuple):
    """``text`` as the user wrote it: ``left - right`` is at least 0, or exactly 0."""

    text: str
    difference: Size
    equal: bool


class Scope:
    """The constraints that hold of the variables made in it."""

    def __init__(self) -> None:
        self.constraints: list[Constraint] = []
        # What is at least 0 by the constraints, as it was before their rules.
        self.facts: list[Dim] = []
        # By equalities among the constraints: how often which monomial is which size.
        self.rules: list[tuple[Monomial, int, Size]] = []

    def __str__(self) -> str:
        head = f"{id(self)}"
        if not self.constraints:
            return head
        return head + " with constraints:" + "".join(f"\n  {c.text}" for c in self.constraints)

    __repr__ = __str__

    def add(self, text: str, left: Size, right: Size, equal: bool) -> None:
        """Add the constraint ``left >= right``, or ``left == right``.

        Where a remainder is known, the quotient times the divisor is, too.
        Raises: ValueError if it never holds, or is an equality whose left side is no one term.
        """
        difference = left - right
        self.constraints.append(Constraint(text, difference, equal))
        self._add_fact(difference, equal)
        lower.cache_clear()
        if not isinstance(difference, Dim):
            if difference < 0 or (equal and difference != 0):
                raise ValueError(f"Unsatisfiable explicit constraint: {text}")
            return
        if equal:
            if not isinstance(left, Dim) or len(left.terms) != 1:
                raise ValueError(
                    f"Invalid equality constraint: {text}. The left-hand-side must be of the "
                    "form `term * coefficient`. A term is a variable, a product or an operation.")
            monomial, count = left.terms[0]
            self.rules.append((monomial, count, right))
            (factor, power), *more = monomial
            if isinstance(factor, Operation) and factor.name == "mod" and not more \
                    and count == power == 1:
                self._add_quotient(factor.left, factor.right, right)

    def _add_fact(self, difference: Size, equal: bool) -> None:
        signs = (1, -1) if equal else (1,)
        self.facts += [d for d in (sign * difference for sign in signs) if isinstance(d, Dim)]

    def _add_quotient(self, dividend: Size, divisor: Size, rest: Size) -> None:
        """Add that the quotient times ``divisor`` is ``dividend`` without ``rest``."""
        times = divisor * operation("floordiv", dividend, divisor, self)
        self._add_fact(times - dividend + rest, True)
        if isinstance(times, Dim) and len(times.terms) == 1:
            self.rules.append((*times.terms[0], dividend - rest))


class Dim:
    """A size that depends on dimension variables."""

    __slots__ = ("terms", "scope", "_hash")
    __array_priority__ = 1000  # an array of NumPy leaves its operators to a dimension
    # Makes a rank-0 array of a dimension while a program is recorded (``export.dimension``).
    as_array: ClassVar[Callable[[Dim], Any]]

    def __init__(self, terms: tuple[tuple[Monomial, int], ...], scope: Scope):
        self.terms = terms
        self.scope = scope
        self._hash = hash(terms)

    @staticmethod
    def variable(name: str, scope: Scope) -> Size:
        """Return the variable ``name``, or what an equality puts in its place."""
        return made({((name, 1),): 1}, scope)

    # -- arithmetic -------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if not is_size(other):
            return self._as_number(operator.add, other)
        terms = dict(self.terms)
        for monomial, count in terms_of(other, self.scope):
            terms[monomial] = terms.get(monomial, 0) + count
        return made(terms, self.scope)

    __radd__ = __add__

    def __neg__(self) -> Size:
        return made({m: -c for m, c in self.terms}, self.scope)

    def __sub__(self, other: Any) -> Any:
        return self + -other if is_size(other) else self._as_number(operator.sub, other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other if is_size(other) else self._as_number(operator.sub, other, True)

    def __mul__(self, other: Any) -> Any:
        if not is_size(other):
            return self._as_number(operator.mul, other)
        terms: Terms = {}
        for left, a in self.terms:
            for right, b in terms_of(other, self.scope):
                monomial = product(left, right)
                terms[monomial] = terms.get(monomial, 0) + a * b
        return made(terms, self.scope)

    __rmul__ = __mul__

    def __pow__(self, power: Any, modulo: Any = None) -> Any:
        if not isinstance(power, int):
            return self._as_number(operator.pow, power)
        if power < 0:
            raise ValueError("Symbolic dimension cannot be raised to negative powers: "
                             f"'{self}' ** '{power}'")
        return math.prod([self] * power)

    def __rpow__(self, base: Any) -> Any:
        return self._as_number(operator.pow, base, True)

    def __floordiv__(self, divisor: Any) -> Any:
        return self.__divmod__(divisor)[0] if is_size(divisor) else (
            self._as_number(operator.floordiv, divisor))

    def __rfloordiv__(self, dividend: Any) -> Any:
        return divided(dividend, self, self.scope)[0] if is_size(dividend) else (
            self._as_number(operator.floordiv, dividend, True))

    def __mod__(self, divisor: Any) -> Any:
        return self.__divmod__(divisor)[1] if is_size(divisor) else (
            self._as_number(operator.mod, divisor))

    def __rmod__(self, dividend: Any) -> Any:
        return divided(dividend, self, self.scope)[1] if is_size(dividend) else (
            self._as_number(operator.mod, dividend, True))

    def __divmod__(self, divisor: Any) -> tuple[Size, Size]:
        return divided(self, divisor, self.scope)

    def __rdivmod__(self, dividend: Any) -> tuple[Size, Size]:
        return divided(dividend, self, self.scope)

    def __truediv__(self, other: Any) -> Any:
        return self._as_number(operator.truediv, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._as_number(operator.truediv, other, True)

    def _as_number(self, apply: Callable, other: Any, swapped: bool = False) -> Any:
        """Compute with the dimension as an array, where ``other`` is not a size."""
        own = (int, float, np.ndarray, np.generic)
        if hasattr(other, "dtype") and not isinstance(other, own) and not swapped:
            return NotImplemented  # the array's own operator takes the dimension
        here = self.__jax_array__()
        there = other.__jax_array__() if isinstance(other, Dim) else other
        return apply(there, here) if swapped else apply(here, there)

    def __jax_array__(self) -> Any:
        """Return the dimension as an array of rank 0 and the default integer type."""
        return Dim.as_array(self)

    # -- comparison -------------------------------------------------------------------------------

    def __eq__(self, other: Any) -> bool:
        return type(other) is Dim and self.terms == other.terms and self.scope is other.scope

    def __hash__(self) -> int:
        return self._hash

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, ">=", self - other)

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, ">", self - other - 1)

    def __le__(self, other: Any) -> bool:
        return self._compared(other, "<=", other - self)

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, "<", other - self - 1)

    def _compared(self, other: Any, sign: str, difference: Size) -> bool:
        answer = is_nonnegative(difference)
        if answer is None:
            raise inconclusive(
                f"Symbolic dimension comparison '{self}' {sign} '{other}' is inconclusive.",
                f"Using symbolic scope {self.scope}. " if self.scope.constraints else "")
        return answer

    def __int__(self) -> int:
        raise inconclusive(f"Symbolic dimension '{self}' used in a context that requires a "
                           "constant.")

    def __bool__(self) -> bool:
        return self != 0

    # -- text -------------------------------------------------------------------------------------

    def __str__(self) -> str:
        text = ""
        for monomial, count in self.terms:
            factors = [str(f) if power == 1 else f"{f}^{power}" for f, power in monomial]
            number = [str(abs(count))] if abs(count) != 1 or not factors else []
            sign = "- " if count < 0 else "+ " if text else ""
            text += (" " if text else "") + sign + "*".join([*number, *factors])
        return text

    __repr__ = __str__

    # -- comparisons and conversions -------------------------------------------------------------

    def variables(self) -> set[str]:
        """Return the names of the variables that the dimension depends on."""
        names: set[str] = set()
        for monomial, _ in self.terms:
            for factor, _ in monomial:
                if isinstance(factor, str):
                    names.add(factor)
                else:
                    names |= variables(factor.left) | variables(factor.right)
        return names

    def evaluate(self, sizes: Mapping[str, Any]) -> Any:
        """Return the value where variables are ``sizes``, which may be dimensions again."""
        total: Any = 0
        for monomial, count in self.terms:
            value: Any = count
            for factor, power in monomial:
                value = value * evaluated_factor(factor, sizes) ** power
            total = total + value
        return total


def evaluated_factor(factor: str | Operation, sizes: Mapping[str, Any]) -> Any:
    if isinstance(factor, str):
        return sizes[factor]
    left, right = evaluated(factor.left, sizes), evaluated(factor.right, sizes)
    return APPLY[factor.name](left, right)


def evaluated(size: Size, sizes: Mapping[str, Any]) -> Any:
    """Return ``size`` where variables are ``sizes``."""
    return size.evaluate(sizes) if isinstance(size, Dim) else size


def variables(size: Size) -> set[str]:
    return size.variables() if isinstance(size, Dim) else set()


def is_size(x: Any) -> bool:
    """Return whether ``x`` is an integer or a dimension."""
    return isinstance(x, Dim) or (hasattr(type(x), "__index__") and not hasattr(x, "aval")
                                  and not getattr(x, "shape", ()))


def unwrapped(x: Any) -> Any:
    """Return the array that ``x.__jax_array__`` gives; a dimension size stays what it is."""
    return x.__jax_array__() if hasattr(type(x), "__jax_array__") and type(x) is not Dim else x


def as_size(x: Any) -> Any:
    """Return ``x``, an integer or a dimension, as a Python int or as it is.

    Raises: TypeError for anything else.
    """
    return x if type(x) is Dim else operator.index(x)


def as_shape(shape: Iterable[Any]) -> tuple[Any, ...]:
    """Return ``shape``, whose sizes are integers or dimensions, as a tuple of them.

    Raises: TypeError for anything else.
    """
    try:
        return tuple([n if type(n) is Dim else operator.index(n) for n in shape])
    except TypeError as error:
        traced = isinstance(error, TracerIntegerConversionError)
        raise explained(
            ArgumentTypeError, "shape.C1",
            f"Shapes must be 1D sequences of concrete values of integer type, got {shape}.",
            advice="If using `jit`, try using `static_argnums` or applying `jit` to smaller "
            "subfunctions." if traced else "Use Python ints.") from error


def bit_length(size: Size) -> int:
    """Return how many bits a size has; an open one is held in 32, as arrays count their places."""
    return 32 if isinstance(size, Dim) else size.bit_length()


def is_static(shape: Sequence[Any]) -> bool:
    """Return whether every size of ``shape`` is a number."""
    return not any(type(n) is Dim for n in shape)


def known_count(size: Any) -> int:
    """Return a size that Python counts up to.

    Raises: InconclusiveDimensionOperation for a size that is open.
    """
    if isinstance(size, Dim):
        raise inconclusive(f"Python cannot go through {size} rows.", "")
    return size


def inconclusive(what: str, more: str = "") -> Exception:
    return explained(
        InconclusiveDimensionOperation, "dimension.C1",
        f"{what} {more}It has no one answer for all values of the dimension variables.",
        advice="Compare sizes that differ by a known amount, or give a constraint: "
        "symbolic_shape('a', constraints=['a >= 4']).")


# -- making dimensions ----------------------------------------------------------------------------


def terms_of(size: Any, scope: Scope) -> Sequence[tuple[Monomial, int]]:
    """Return the terms of a size.  Raises: ValueError if it belongs to another scope."""
    if isinstance(size, Dim):
        if size.scope is not scope:
            raise ValueError(
                f"Invalid mixing of symbolic scopes for linear combination. Expected scope {scope} "
                f"and found for '{size}' scope {size.scope}. Make both in one scope: "
                "symbolic_shape(…, scope=scope).")
        return size.terms
    return (((), operator.index(size)),) if size else ()


def product(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for factor, power in right:
        powers[factor] = powers.get(factor, 0) + power
    return tuple(sorted(powers.items(), key=lambda pair: factor_key(pair[0])))


def made(terms: Terms, scope: Scope) -> Size:
    """Return the size with these terms: an int if it is constant."""
    for known, step, instead in scope.rules:
        for monomial, count in terms.items():
            if count and count % step == 0 and set(known) <= set(monomial):
                others = tuple(pair for pair in monomial if pair not in known)
                rest = {m: c for m, c in terms.items() if m != monomial}
                return made(rest, scope) + made({others: count // step}, scope) * instead
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    order = sorted(kept, key=monomial_key, reverse=True)
    return Dim(tuple((m, kept[m]) for m in order), scope)


def operation(name: str, left: Size, right: Size, scope: Scope) -> Size:
    return made({((Operation(name, left, right), 1),): 1}, scope)


def divided(dividend: Any, divisor: Any, scope: Scope) -> tuple[Size, Size]:
    """Return the floor of the quotient and the remainder of two sizes."""
    if divisor == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    if dividend == 0:
        return 0, 0
    quotient, rest = long_division(dividend, divisor, scope)
    if rest == 0:
        return quotient, 0
    if isinstance(rest, int) and isinstance(divisor, int):
        more, left = divmod(rest, divisor)
        return quotient + more, left
    return (operation("floordiv", dividend, divisor, scope),
            operation("mod", dividend, divisor, scope))


def long_division(dividend: Size, divisor: Size, scope: Scope) -> tuple[Size, Size]:
    """Divide polynomials: return quotient and rest, which no term of the divisor divides."""
    (lead, count), *_ = terms_of(divisor, scope)
    quotient: Size = 0
    rest: Terms = {}
    terms = list(terms_of(dividend, scope))
    while terms:
        monomial, times = terms[0]
        part = without(monomial, lead)
        if part is None or times % count:
            rest[monomial] = times
            terms.pop(0)
            continue
        found = made({part: times // count}, scope)
        quotient = quotient + found
        left = made(dict(terms), scope) - found * divisor
        terms = list(terms_of(left, scope))
    return quotient, made(rest, scope)


def without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    powers = dict(monomial)
    for factor, power in divisor:
        if powers.get(factor, 0) < power:
            return None
        powers[factor] -= power
    return tuple((f, p) for f, p in powers.items() if p)


def larger(left: Any, right: Any) -> Any:
    """Return the larger of two sizes."""
    return chosen("max", left, right)


def smaller(left: Any, right: Any) -> Any:
    """Return the smaller of two sizes."""
    return chosen("min", left, right)


def chosen(name: str, left: Any, right: Any) -> Any:
    if not isinstance(left, Dim) and not isinstance(right, Dim):
        return max(left, right) if name == "max" else min(left, right)
    first = is_nonnegative(left - right)
    if first is None:
        second = is_nonnegative(right - left)
        if second is None:
            scope = left.scope if isinstance(left, Dim) else right.scope
            return operation(name, left, right, scope)
        first = not second
    return left if first == (name == "max") else right


APPLY: dict[str, Callable] = {"floordiv": operator.floordiv, "mod": operator.mod,
                              "max": larger, "min": smaller}


# -- deciding comparisons -------------------------------------------------------------------------


def is_nonnegative(size: Size) -> bool | None:
    """Return whether ``size`` is at least 0 for all values of its variables.

    None if that depends on them, or is not found out.
    """
    if not isinstance(size, Dim):
        return size >= 0
    if lower(size) >= 0:
        return True
    return False if lower(-size - 1) >= 0 else None


def differ(left: Size, right: Size) -> bool:
    """Return whether two sizes are different for all values of their variables.

    What is not found out is checked when a program is called with sizes.
    """
    gap = left - right
    if not isinstance(gap, Dim):
        return gap != 0
    return is_nonnegative(gap - 1) is True or is_nonnegative(-gap - 1) is True


@functools.lru_cache(4096)
def lower(size: Size, depth: int = HOW_DEEP) -> float:
    """Return an integer that ``size`` never falls below; -inf if none is found.

    Where it is at least 0, there may be a larger one.  ``depth`` is how many constraints may be
    combined.
    """
    if not isinstance(size, Dim):
        return size
    terms = tuple((m, fractions.Fraction(c)) for m, c in size.terms)
    least_known = least(terms, size.scope, depth)
    return least_known if least_known == -math.inf else math.ceil(least_known)


def least(terms: tuple[tuple[Monomial, Fraction], ...], scope: Scope, depth: int) -> Bound:
    """Return a lower bound of a sum of terms: the best that facts known of them give.

    One above -1 is good enough: the sum, or what it is a bound of, is an integer.
    """
    best: Bound = sum((times_interval(c, interval(m, scope, depth)) for m, c in terms),
                      fractions.Fraction(0))
    if best > -1 or not depth:
        return best
    counts = dict(terms)
    for monomial, count in terms:  # a maximum is one of two, and so is a minimum
        if len(monomial) == 1 and monomial[0][1] == 1 and isinstance(monomial[0][0], Operation):
            factor = monomial[0][0]
            if factor.name == ("max" if count < 0 else "min"):
                rest = {m: c for m, c in counts.items() if m != monomial}
                best = max(best, min(least(plus(rest, count, part, scope), scope, depth - 1)
                                     for part in (factor.left, factor.right)))
                if best > -1:
                    return best
    for fact in facts(counts, scope, depth):
        known = dict(terms_of(fact, scope))
        for monomial, count in counts.items():
            if monomial and known.get(monomial, 0) * count > 0:
                scale = count / known[monomial]
                rest = {m: counts.get(m, fractions.Fraction(0)) - scale * known.get(m, 0)
                        for m in {**counts, **known}}
                left = tuple((m, c) for m, c in rest.items() if c)
                best = max(best, least(left, scope, depth - 1))
                if best > -1:
                    return best
    return best


def plus(counts: Mapping[Monomial, Fraction], scale: Fraction, size: Size, scope: Scope
         ) -> tuple[tuple[Monomial, Fraction], ...]:
    """Return the terms of a sum and ``scale`` times ``size``."""
    total = dict(counts)
    for monomial, count in terms_of(size, scope):
        total[monomial] = total.get(monomial, fractions.Fraction(0)) + scale * count
    return tuple((m, c) for m, c in total.items() if c)


def times_interval(count: Fraction, bounds: tuple[float, float]) -> Bound:
    """Return the least of ``count`` times an integer within ``bounds``."""
    end = bounds[0] if count > 0 else bounds[1]
    return -math.inf if math.isinf(end) else count * int(end)


def facts(counts: Mapping[Monomial, Fraction], scope: Scope, depth: int) -> Iterator[Size]:
    """Yield sizes that are at least 0: the constraints, and what operations in ``counts`` mean."""
    named = list(counts)
    for fact in scope.facts:
        yield fact
        named += [m for m, _ in fact.terms if m not in counts]
    for monomial in named:
        for factor, _ in monomial:
            if isinstance(factor, Operation):
                yield from meaning(factor, scope, depth)


def meaning(factor: Operation, scope: Scope, depth: int) -> Iterator[Size]:
    """Yield sizes that are at least 0 since ``factor`` is what it is."""
    left, right = factor.left, factor.right
    value: Any = made({((factor, 1),): 1}, scope)
    if factor.name == "max":
        yield from (value - left, value - right)
    elif factor.name == "min":
        yield from (left - value, right - value)
    else:
        sign = next((sign for sign in (1, -1) if lower(sign * right - 1, depth - 1) >= 0), 0)
        rest = value if factor.name == "mod" else left - right * value
        if sign:  # the remainder is between 0 and the divisor
            yield from (sign * rest, sign * (right - rest) - 1)
        if sign > 0 and factor.name == "mod" and lower(left, depth - 1) >= 0:
            yield left - value


def interval(monomial: Monomial, scope: Scope, depth: int) -> tuple[float, float]:
    """Return bounds of a product of factors."""
    low, high = 1.0, 1.0
    for factor, power in monomial:
        a, b = factor_interval(factor, scope, depth)
        for _ in range(power):
            ends = [x * y if x and y else 0.0 for x in (low, high) for y in (a, b)]
            low, high = min(ends), max(ends)
        if power % 2 == 0:
            low = max(low, 0.0)
    return low, high


def factor_interval(factor: str | Operation, scope: Scope, depth: int) -> tuple[float, float]:
    if isinstance(factor, str):
        return variable_interval(factor, scope)
    less = max(0, depth - 1)
    (a, b), (c, d) = bounds(factor.left, less), bounds(factor.right, less)
    if factor.name == "max":
        return max(a, c), max(b, d)
    if factor.name == "min":
        return min(a, c), min(b, d)
    if factor.name == "mod":
        return (0.0, d - 1) if c > 0 else (c + 1, 0.0) if d < 0 else (-math.inf, math.inf)
    if d < 0:  # the quotient of the opposite numbers
        (a, b), (c, d) = (-b, -a), (-d, -c)
    if c <= 0:
        return -math.inf, math.inf
    return (math.floor(a / (c if a < 0 else d)) if a > -math.inf else a,
            math.floor(b / (d if b < 0 else c)) if b < math.inf else b)


def variable_interval(name: str, scope: Scope) -> tuple[float, float]:
    """Return bounds of a variable: those of the constraints on it alone."""
    low, high = 1.0, math.inf
    for constraint in scope.constraints:
        terms = dict(terms_of(constraint.difference, scope))
        constant, count = terms.pop((), 0), terms.pop(((name, 1),), 0)
        if terms or not count:
            continue
        end = -constant / count  # count * (variable - end) >= 0
        if count > 0 or constraint.equal:
            low = max(low, float(math.ceil(end)))
        if count < 0 or constraint.equal:
            high = min(high, float(math.floor(end)))
    return low, high


def bounds(size: Size, depth: int) -> tuple[float, float]:
    """Return numbers between which ``size`` is."""
    return (float(lower(size, depth)), -float(lower(-size, depth))) if isinstance(size, Dim) else (
        float(size), float(size))
