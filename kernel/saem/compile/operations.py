"""What is a StableHLO program before it is text?

A list of ``Operation``s: nodes with a result, attributes, regions and a place in user code.
Lowering rules make nodes; only ``print_operations`` knows how they are written.

Read before: the StableHLO specification, "Programs".  Read after: ``compile.text``.
Invariant: text without places is the same for the same program: it is the key of the compile
cache (tests/kernel/test_lowering.py).
Source: MLIR language reference, "Operations" and "Regions".
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence

from saem.core.source import Source, position

# The attribute that XLA passes on as it is: a dictionary of strings.
FRONTEND = "mhlo.frontend_attributes"

# The value of an attribute: its text, or a dictionary of strings.
Attribute = str | Mapping[str, str]

# The location of what no line of the user's made.
NOWHERE = " loc(unknown)"

# Where an operation comes from: the user's line, if known, and the name of the primitive there.
Place = tuple[Source | None, str]


class Operation:
    """One operation: ``result`` names its ``count`` results, ``text`` holds name and operands.

    ``types`` is its type, ``place`` where it comes from, None if that is no place in user code.
    """

    __slots__ = ("attributes", "count", "place", "regions", "result", "text", "types")

    def __init__(self, result: str, count: int, text: str, types: str,
                 place: Place | None = None, attributes: dict[str, Attribute] | None = None,
                 regions: Sequence[Region] = ()):
        self.result = result
        self.count = count
        self.text = text
        self.types = types
        self.place = place
        self.attributes = attributes
        self.regions = regions

    def add_frontend(self, attributes: Mapping[str, str]) -> None:
        """Add frontend attributes; constants and annotations of shardings take none."""
        if attributes and not self.text.startswith(("stablehlo.constant", "sdy.")):
            own = dict(self.attributes or {})
            own[FRONTEND] = {**attributes, **dict(own.get(FRONTEND, {}))}
            self.attributes = own


class Region:
    """A block of operations inside an operation, with typed arguments.

    ``shardy`` regions are written in the form of that dialect.
    """

    __slots__ = ("arguments", "operations", "result_types", "results", "shardy")

    def __init__(self, arguments: Sequence[tuple[str, str]], operations: Sequence[Operation],
                 results: Sequence[str], result_types: str, shardy: bool = False):
        self.arguments = list(arguments)
        self.operations = operations
        self.results = results
        self.result_types = result_types
        self.shardy = shardy

    def ending(self) -> str:
        """Return the operation that ends a region and returns its results."""
        verb = "sdy.return" if self.shardy else "stablehlo.return"
        return f"{verb} {', '.join(self.results)} : {self.result_types}" if self.results else verb


def quoted(text: str) -> str:
    """Return ``text`` as it is written between the quotes of an MLIR string."""
    text = text.encode("utf-8", "backslashreplace").decode()  # bytes that are not UTF-8
    return "".join(f"\\{ord(c):02X}" if c < " " or c in '"\\\x7f' else c for c in text)


def attribute_text(attributes: Mapping[str, Attribute]) -> str:
    """Return ``{name = value, …}``; a dictionary of strings is written with quotes."""
    shown = []
    for name, value in attributes.items():
        if not isinstance(value, str):
            pairs = ", ".join(f'{key} = "{quoted(word)}"' for key, word in value.items())
            value = f"{{{pairs}}}"
        shown.append(f"{name} = {value}")
    return f"{{{', '.join(shown)}}}"


@functools.lru_cache(16384)
def location(place: Place | None) -> str:
    """Return the MLIR location of a place, after a space: the primitive, at line and column."""
    if place is None:
        return NOWHERE
    source, name = place
    where = position(source)
    name = quoted(name)
    if where is None:
        return f' loc("{name}")'
    return f' loc("{name}"("{quoted(where.file)}":{where.line}:{where.column + 1}))'


def print_operations(operations: Iterable[Operation], pad: str, places: bool) -> list[str]:
    """Return the lines of ``operations``, each after ``pad``; with their ``places`` if wanted."""
    lines: list[str] = []
    place, where = None, NOWHERE if places else ""  # most places have several operations
    for op in operations:
        count = op.count
        if count == 1 and not places and not op.regions and op.attributes is None:  # most are
            lines.append(f"{pad}{op.result} = {op.text} : {op.types}")
            continue
        line = f"{pad}{op.result} = {op.text}" if count == 1 else (
            f"{pad}{op.result}:{count} = {op.text}" if count else f"{pad}{op.text}")
        if op.regions:
            line = print_regions(line, op.regions, pad, places, lines)
        if op.attributes:
            line += f" {attribute_text(op.attributes)}"
        if places and op.place is not place:
            place = op.place
            where = location(place)
        lines.append(f"{line} : {op.types}{where}")
    return lines


def print_regions(line: str, regions: Sequence[Region], pad: str, places: bool,
                  lines: list[str]) -> str:
    """Append ``line`` and the regions after it to ``lines``; return the line that closes them."""
    inner = pad + "  "
    for number, region in enumerate(regions):
        nowhere = NOWHERE if places else ""
        given = ", ".join(f"{name}: {kind}{nowhere}" for name, kind in region.arguments)
        if region.shardy:
            lines.append(f"{line} ({given}) {{")
        else:
            lines.append(f"{pad}}}, {{" if number else f"{line} ({{")
            if given:
                lines.append(f"{pad}^bb0({given}):")
        lines += print_operations(region.operations, inner, places)
        lines.append(f"{inner}{region.ending()}{nowhere}")
    return f"{pad}}}" if regions[0].shardy else f"{pad}}})"


class Function:
    """A function of a module: its ``arguments`` and ``result_types``, each with its attributes.

    ``results`` are the names that its ``operations`` give to what it returns.
    """

    __slots__ = ("arguments", "name", "operations", "result_types", "results", "types",
                 "visibility")

    def __init__(self, visibility: str, name: str):
        self.visibility = visibility
        self.name = name

    def define(self, arguments: Sequence[str], operations: Sequence[Operation],
               results: Sequence[str], types: str, result_types: str) -> None:
        """Say what it computes; ``types`` are those of its results without attributes."""
        self.arguments = arguments
        self.operations = operations
        self.results = results
        self.types = types
        self.result_types = result_types

    def lines(self, places: bool) -> list[str]:
        """Return it as text."""
        nowhere = NOWHERE if places else ""
        given = ", ".join([argument + nowhere for argument in self.arguments])
        returned = f" {', '.join(self.results)} : {self.types}" if self.results else ""
        return [f"  func.func {self.visibility} @{self.name}({given}) -> ({self.result_types}) {{",
                *print_operations(self.operations, "    ", places),
                f"    return{returned}{nowhere}", f"  }}{nowhere}"]
