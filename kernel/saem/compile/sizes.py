"""How does a program find the sizes that its types leave open?

Types of a program with symbolic dimensions have ``?`` for them.  ``plan`` finds how the dimension
variables follow from the shapes of the arguments; ``Sizes`` writes that, and every further size
that an operation needs, as operations on 32-bit integers at the beginning of ``main``.

Read before: ``core.dimensions``, ``compile.operations``.  Read after: ``compile.text``.
Invariant: a size is written once, before everything that uses it.
Source: StableHLO specification (get_dimension_size); the documentation of jax.export.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from saem.compile.operations import Operation
from saem.core.dimensions import Dim, Size, evaluated, is_static, variables
from saem.core.dimensions import Operation as Factor
from saem.core.record import Record

NUMBER = "tensor<i32>"
WRITTEN = {"max": "maximum", "min": "minimum"}


class Step(Record):
    """Variable ``name`` is (size of ``axis`` of argument ``number`` - ``rest``) / ``factor``."""

    name: str
    number: int
    axis: int
    factor: int
    rest: Any
    size: Any


def open_sizes(shapes: Sequence[Sequence[Size]]) -> Iterator[tuple[int, int, Dim]]:
    """Yield (argument, axis, size) for each dimension that is not a number."""
    for number, shape in enumerate(shapes):
        for axis, size in enumerate(shape):
            if isinstance(size, Dim):
                yield number, axis, size


def plan(shapes: Sequence[Sequence[Size]], names: Callable[[int], str]) -> list[Step]:
    """Return how each dimension variable follows from the shapes of arguments.

    Raises: ValueError if one does not: sizes must be linear in one unknown variable.
    """
    waiting = list(open_sizes(shapes))
    steps: list[Step] = []
    known: set[str] = set()
    while waiting:
        found = next(((s, unknown) for s in waiting
                      if (unknown := unknown_factor(s[2], known)) is not None), None)
        if found is None:
            break
        (number, axis, size), (name, factor) = found
        if name:
            rest = size - factor * Dim.variable(name, size.scope)
            steps.append(Step(name, number, axis, factor, rest, size))
            known.add(name)
        waiting.remove(found[0])
    if waiting:
        missing = sorted(set().union(*(variables(s) for _, _, s in waiting)) - known)
        shown = ", ".join(f"{names(i)}.shape = {tuple(s)}" for i, s in enumerate(shapes))
        left = ", ".join(f"'{s}' for {names(i)}.shape[{a}]" for i, a, s in waiting)
        raise ValueError(
            f"Cannot solve for values of dimension variables {missing}. We can only solve linear "
            f"uni-variate constraints. The arguments have {shown}; not used: {left}. Pass an "
            "argument one of whose sizes is the variable itself.")
    return steps


def unknown_factor(size: Dim, known: set[str]) -> tuple[str, int] | None:
    """Return the one unknown variable of ``size`` and its factor, ('', 0) if all are known.

    None if there are several, or if ``size`` is not linear in it.
    """
    unknown = size.variables() - known
    if not unknown:
        return "", 0
    if len(unknown) > 1:
        return None
    (name,) = unknown
    factor = dict(size.terms).get(((name, 1),), 0)
    rest = size - factor * Dim.variable(name, size.scope)
    return None if not factor or name in variables(rest) else (name, factor)


class Sizes:
    """Writes the sizes of a program whose arguments have symbolic dimensions."""

    def __init__(self, arguments: Sequence[tuple[str, str, Sequence[Size]]]):
        """``arguments`` are (name, type, shape)."""
        self.operations: list[Operation] = []
        self.known: dict[Any, str] = {}
        self.count = 0
        for step in plan([shape for _, _, shape in arguments], lambda i: arguments[i][0]):
            name, kind, _ = arguments[step.number]
            value = self.write(f"stablehlo.get_dimension_size {name}, dim = {step.axis}",
                               f"({kind}) -> {NUMBER}")
            if step.rest != 0:
                value = self.apply("subtract", value, self.number(step.rest))
            if step.factor != 1:
                value = self.apply("divide", value, self.number(step.factor))
            self.known[step.name] = value

    def write(self, text: str, types: str) -> str:
        name = f"%s{self.count}"
        self.count += 1
        self.operations.append(Operation(name, 1, text, types))
        return name

    def apply(self, verb: str, left: str, right: str) -> str:
        return self.write(f"stablehlo.{verb} {left}, {right}", NUMBER)

    def number(self, size: Size) -> str:
        """Return the name of ``size`` as a 32-bit integer of rank 0."""
        if size in self.known:
            return self.known[size]
        if not isinstance(size, Dim):
            made = self.write(f"stablehlo.constant dense<{int(size)}>", NUMBER)
        else:
            made = ""
            for monomial, count in size.terms:
                part = "" if count == 1 and monomial else self.number(count)
                for factor, power in monomial:
                    for _ in range(power):
                        value = self.factor(factor)
                        part = self.apply("multiply", part, value) if part else value
                made = self.apply("add", made, part) if made else part
        self.known[size] = made
        return made

    def factor(self, factor: str | Factor) -> str:
        if factor in self.known or isinstance(factor, str):
            return self.known[factor]
        left, right = self.number(factor.left), self.number(factor.right)
        if factor.name in WRITTEN:
            made = self.apply(WRITTEN[factor.name], left, right)
        else:
            made = self.floored(factor.name, left, right)
        self.known[factor] = made
        return made

    def floored(self, name: str, left: str, right: str) -> str:
        """Write Python's quotient or remainder, whose sign is the divisor's."""
        rest = self.apply("remainder", left, right)
        rest = self.apply("remainder", self.apply("add", rest, right), right)
        return rest if name == "mod" else self.apply(
            "divide", self.apply("subtract", left, rest), right)

    def vector(self, sizes: Sequence[Size]) -> tuple[str, str]:
        """Return the name and the type of an array of ``sizes``."""
        key = ("vector", *sizes)
        kind = f"tensor<{len(sizes)}xi32>"
        if key not in self.known:
            if is_static(sizes):
                self.known[key] = self.write(
                    f"stablehlo.constant dense<{list(map(int, sizes))}>", kind)
                return self.known[key], kind
            rows = [self.write(f"stablehlo.reshape {self.number(n)}",
                               f"({NUMBER}) -> tensor<1xi32>") for n in sizes]
            types = ", ".join(["tensor<1xi32>"] * len(rows))
            self.known[key] = self.write(
                f"stablehlo.concatenate {', '.join(rows)}, dim = 0", f"({types}) -> {kind}")
        return self.known[key], kind


def solved(steps: Sequence[Step], shapes: Sequence[Sequence[Any]],
           refuse: Callable[[str, dict], Exception]) -> dict[str, Any]:
    """Return the values of the variables where arguments have ``shapes``.

    ``refuse(what, values)`` makes the error for sizes that do not fit.
    """
    values: dict[str, Any] = {}
    for step in steps:
        size = shapes[step.number][step.axis] - evaluated(step.rest, values)
        value, rest = divmod(size, step.factor)
        if rest != 0:
            raise refuse(f"Division had remainder {rest} when computing the value of "
                         f"'{step.name}'.", values)
        values[step.name] = value
    return values
