"""How does a jaxpr become a model that can be drawn?

The printed text is the printer's own (``core.pretty``), here cut into tokens that know their
variable and lines that know their equation, so that a pointer on one finds the other.

Read before: ``core.pretty``, ``saem.observe.schema``.  Read after: ``saem.observe.graph``.
Invariant: the model's lines, joined, are ``str(jaxpr)`` (tests/lens/test_jaxpr_model.py).
"""

from __future__ import annotations

import linecache
import math
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal as OneOf

from saem.core import source
from saem.core.events import Position
from saem.core.jaxpr import Atom as CoreAtom
from saem.core.jaxpr import ClosedJaxpr, DropVar, Eqn, Jaxpr, Literal, Var
from saem.core.pretty import WIDTH, Namer, open_program, param_text, shown_params
from saem.observe import schema
from saem.observe.environment import environment
from saem.observe.places import Places, places

Kind = OneOf["variable", "type", "primitive", "parameter", "literal", "keyword", "plain"]
# Python's own library, whose calls (contextlib, functools) explain nothing.
_STANDARD = sysconfig.get_path("stdlib")
_PACKAGES = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
_CONTEXT = 3
_WHOLE = 80


def jaxpr_model(
    program: ClosedJaxpr | Jaxpr,
    title: str = "",
    stablehlo: tuple[schema.ProgramLine, ...] | None = None,
    kernels: tuple[schema.Kernel, ...] | None = None,
    flops: Mapping[str, float] | None = None,
    named: Places = places,
) -> schema.JaxprModel:
    """The model of ``program``: text, structure, graph and the source it came from.

    ``flops`` are those of equations by their ids.
    """
    jaxpr = open_program(program)
    words = _Words()
    lines = _Printer(words).whole(jaxpr)
    structure = _Structure(words, named, flops or {})
    body = structure.body(jaxpr, "")
    return schema.JaxprModel(
        kind="jaxpr",
        version=schema.VERSION,
        title=title or jaxpr.debug_name or "jaxpr",
        body=body,
        lines=tuple(line.finished() for line in lines),
        places=tuple(structure.places),
        callers=tuple(structure.callers),
        sources=_sources(tuple(structure.written), named),
        program=stablehlo,
        kernels=kernels,
        environment=environment(),
    )


def nested_of(eqn: Eqn) -> list[tuple[str, Jaxpr]]:
    """The (label, jaxpr) pairs in an equation's parameters: ``jaxpr``, ``branches[0]``."""
    found: list[tuple[str, Jaxpr]] = []
    for name, value in eqn.operation.printed_params().items():
        several = isinstance(value, tuple)
        for index, item in enumerate(value if several else (value,)):
            if isinstance(item, (ClosedJaxpr, Jaxpr)):
                label = f"{name}[{index}]" if several else name
                found.append((label, open_program(item)))
    return found


def numbered(jaxpr: Jaxpr, path: str = "") -> Iterator[tuple[str, Eqn]]:
    """Every equation of a program and of those inside it, with its id in the model."""
    for index, eqn in enumerate(jaxpr.eqns):
        yield f"e{path}{index}", eqn
        for number, (_, inner) in enumerate(nested_of(eqn)):
            yield from numbered(inner, f"{path}{index}.{number}.")


def _first_places(jaxpr: Jaxpr, path: str, found: dict[Jaxpr, tuple[str | None, str]]) -> None:
    """Add to ``found``, for each program inside ``jaxpr``, its first path and its equation's id.

    A program that is only shown, as that of a scatter, has no path: its lines are its equation's.
    """
    for index, eqn in enumerate(jaxpr.eqns):
        for value in eqn.derived_params().values():
            if isinstance(value, Jaxpr):
                found.setdefault(value, (None, f"e{path}{index}"))
        for number, (_, inner) in enumerate(nested_of(eqn)):
            if inner not in found:
                here = f"{path}{index}.{number}."
                found[inner] = here, f"e{path}{index}"
                _first_places(inner, here, found)


def bytes_of(atom: CoreAtom) -> int:
    """The bytes that a value takes; 0 where its size is not a number."""
    shape = getattr(atom.aval, "shape", ())
    if not all(isinstance(size, int) for size in shape):
        return 0
    return math.prod(shape) * getattr(getattr(atom.aval, "dtype", None), "itemsize", 0)


class _Words:
    """Names and ids of variables, the same in the text and in the structure."""

    def __init__(self) -> None:
        self.namer = Namer()
        self.ids: dict[Var, str] = {}

    def id(self, atom: CoreAtom) -> str | None:
        if isinstance(atom, (Literal, DropVar)):
            return None
        return self.ids.setdefault(atom, f"v{len(self.ids)}")

    def atom(self, atom: CoreAtom) -> schema.Atom:
        return schema.Atom(self.id(atom), self.namer.atom(atom), atom.aval.str_short(True))


class _Line:
    """One line being written."""

    def __init__(self, indent: int, equation: str | None) -> None:
        self.indent = indent
        self.equation = equation
        self.tokens: list[schema.Token] = []

    def add(self, text: str, kind: Kind = "plain", id: str | None = None) -> _Line:
        if text:
            self.tokens.append(schema.Token(text, kind, id))
        return self

    def __len__(self) -> int:
        return self.indent + sum(len(token.text) for token in self.tokens)

    def finished(self) -> schema.Line:
        return schema.Line(self.indent, tuple(self.tokens), self.equation)


class _Printer:
    """Lays a jaxpr out as ``core.pretty`` does, in tokens, but never two equations on a line."""

    def __init__(self, words: _Words) -> None:
        self.words = words
        self.namer = words.namer

    def _binder(self, line: _Line, var: Var) -> None:
        line.add(self.namer.name(var), "variable", self.words.id(var))
        line.add(":").add(var.aval.str_short(True), "type")

    def _atom(self, line: _Line, atom: CoreAtom) -> None:
        kind: Kind = "literal" if isinstance(atom, Literal) else "variable"
        line.add(self.namer.atom(atom), kind, self.words.id(atom))

    def _head(self, jaxpr: Jaxpr, indent: int, owner: str | None) -> _Line:
        line = _Line(indent, owner).add("{ ").add("lambda", "keyword").add(" ")
        self._spaced(line, jaxpr.constvars)
        line.add("; ")
        self._spaced(line, jaxpr.invars)
        return line.add(". ").add("let", "keyword")

    def _spaced(self, line: _Line, variables: list[Var]) -> None:
        for index, var in enumerate(variables):
            line.add(" " if index else "")
            self._binder(line, var)

    def _tail(self, jaxpr: Jaxpr, indent: int, owner: str | None) -> _Line:
        line = _Line(indent, owner).add("in", "keyword").add(" (")
        for index, atom in enumerate(jaxpr.outvars):
            line.add(", " if index else "")
            self._atom(line, atom)
        return line.add(",)" if len(jaxpr.outvars) == 1 else ")").add(" }")

    def whole(self, jaxpr: Jaxpr) -> list[_Line]:
        """The lines of ``jaxpr`` and, in front, of the programs that repeat or are long.

        A line of such a program belongs to the equation that uses it first.
        """
        self.namer.enter(jaxpr)
        places: dict[Jaxpr, tuple[str | None, str]] = {}
        _first_places(jaxpr, "", places)
        lines = []
        for program, name in self.namer.programs.items():
            path, owner = places[program]
            before = _Line(0, owner).add("let", "keyword").add(f" {name} = ")
            inner = self._lines_of(program, 0, path, owner, len(before))
            inner[0].tokens[:0] = before.tokens
            inner[-1].add(" ").add("in", "keyword")
            lines += inner
        return [*lines, *self.jaxpr(jaxpr, 0, "", None)]

    def _lines_of(self, program: Jaxpr, indent: int, path: str | None, owner: str | None,
                  before: int) -> list[_Line]:
        """The lines of a program inside ``owner``; without a path all are lines of ``owner``.

        Such lines are only read: nothing in them is pointed at.
        """
        lines = self.jaxpr(program, indent, path or "", owner, before)
        if path is None:
            for line in lines:
                line.equation = owner
                line.tokens = [
                    schema.Token(t.text, "plain" if t.kind == "primitive" else t.kind, None)
                    for t in line.tokens]
        return lines

    def jaxpr(self, jaxpr: Jaxpr, indent: int, path: str, owner: str | None, before: int = 0
              ) -> list[_Line]:
        """The lines of a jaxpr whose last line goes to ``indent``, its first ``before`` after."""
        head = self._head(jaxpr, indent, owner)
        body = [
            line
            for index, eqn in enumerate(jaxpr.eqns)
            for line in self.equation(eqn, indent + 4, f"{path}{index}")
        ]
        tail = self._tail(jaxpr, indent + 2, owner)
        if len(jaxpr.eqns) <= 1 and len(body) == len(jaxpr.eqns):
            spaced = sum(len(line) - line.indent + 1 for line in (*body, tail))
            if before + len(head) + spaced + (not body) <= WIDTH:
                head.equation = body[0].equation if body else owner
                head.add("" if body else " ")
                for line in (*body, tail):
                    head.add(" ").tokens.extend(line.tokens)
                return [head]
        return [head, *body, tail]

    def equation(self, eqn: Eqn, indent: int, path: str) -> list[_Line]:
        """The lines of one equation."""
        owner = f"e{path}"
        inputs = _Line(0, None)
        for index, atom in enumerate(eqn.invars):
            inputs.add(" " if index else "")
            self._atom(inputs, atom)
        line = _Line(indent, owner)
        self.namer.adopt_all(eqn)
        special = eqn.operation.print_equation
        own_form = special and special(eqn, self.namer)
        if own_form:  # what reads and writes references looks as in Python
            return self._text(line, own_form, owner)
        self._spaced(line, list(eqn.outvars))
        line.add(" = " if eqn.outvars else "").add(eqn.operation.name, "primitive")
        if not shown_params(eqn):
            line.add(" ").tokens.extend(inputs.tokens)
            return [line]
        blocks = self._parameters(eqn, indent + 2, path)
        flat = sum(len(block[0]) - block[0].indent + 1 for block in blocks) + 1
        if all(len(block) == 1 for block in blocks) and len(line) + flat <= WIDTH:
            line.add("[")
            for index, block in enumerate(blocks):
                line.add(" " if index else "").tokens.extend(block[0].tokens)
            line.add("] ").tokens.extend(inputs.tokens)
            return [line]
        last = _Line(indent, owner).add("] ")
        last.tokens.extend(inputs.tokens)
        return [line.add("["), *(inner for block in blocks for inner in block), last]

    def _parameters(self, eqn: Eqn, indent: int, path: str) -> list[list[_Line]]:
        """For each parameter, the lines of ``name=value``."""
        blocks = []
        number = 0
        owner = f"e{path}"
        derived = eqn.derived_params()
        for name, value in shown_params(eqn).items():
            first = _Line(indent, owner).add(name, "parameter").add("=")
            if isinstance(value, (ClosedJaxpr, Jaxpr)):
                inside = None if name in derived else f"{path}.{number}."
                lines = self._program(value, indent, inside, owner, len(name) + 1)
                number += name not in derived
                first.tokens.extend(lines[0].tokens)
                blocks.append([first, *lines[1:]])
            elif type(value) is tuple and any(
                isinstance(item, (ClosedJaxpr, Jaxpr)) for item in value
            ):
                groups = []
                for item in value:
                    if isinstance(item, (ClosedJaxpr, Jaxpr)):
                        groups.append(
                            self._program(item, indent + 2, f"{path}.{number}.", owner))
                        number += 1
                    else:
                        text = param_text(item, self.namer, indent + 2)
                        groups.append([_Line(indent + 2, owner).add(text)])
                blocks.append(self._several(first.add("("), groups, owner))
            else:
                blocks.append(self._text(first, param_text(value, self.namer, indent), owner))
        return blocks

    def _program(self, program: ClosedJaxpr | Jaxpr, indent: int, path: str | None, owner: str,
                 before: int = 0) -> list[_Line]:
        """The lines of a nested program: its name, if it is written in front."""
        jaxpr = open_program(program)
        if jaxpr in self.namer.programs:
            return [_Line(indent, owner).add(self.namer.programs[jaxpr])]
        return self._lines_of(jaxpr, indent, path, owner, before)

    @staticmethod
    def _several(first: _Line, groups: list[list[_Line]], owner: str) -> list[_Line]:
        """The lines of a tuple that begins with ``first``: one, if all of it fits there."""
        room = WIDTH - len(first) - 1
        if sum(len(g[0]) - g[0].indent + 1 for g in groups) - 1 <= room and all(
            len(g) == 1 for g in groups
        ):
            for index, (line,) in enumerate(groups):
                first.add(" " if index else "").tokens.extend(line.tokens)
            return [first.add(")")]
        return [first, *(line for g in groups for line in g), _Line(first.indent, owner).add(")")]

    @staticmethod
    def _text(first: _Line, text: str, owner: str) -> list[_Line]:
        """The lines of a printed value, which may have several."""
        head, *rest = text.split("\n")
        lines = [first.add(head)]
        for line in rest:
            bare = line.lstrip(" ")
            lines.append(_Line(len(line) - len(bare), owner).add(bare))
        return lines


class _Structure:
    """Makes the tree of equations."""

    def __init__(self, words: _Words, named: Places, flops: Mapping[str, float]) -> None:
        self.words = words
        self.named = named
        self.flops = flops
        self.seen: set[Jaxpr] = set()
        # Equations written at one place and called from the same places share a number.
        self.places: list[schema.Place] = []
        self.callers: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[schema.Place, tuple[int, ...]], int] = {}
        # The places at which equations were written; others only called.
        self.written: dict[schema.Place, None] = {}

    def place(self, eqn: Eqn) -> int | None:
        """The number of the equation's place."""
        numbers: list[int] = []
        for caller in reversed(source.callers_of(eqn.source)):
            if not caller[2].startswith(_STANDARD) or caller[2].startswith(_PACKAGES):
                numbers += [n for n in (self._number(source.position(caller)),) if n is not None]
        number = self._number(eqn.position(), tuple(reversed(numbers)))
        if number is not None:
            self.written.setdefault(self.places[number])
        return number

    def _number(self, position: Position | None, callers: tuple[int, ...] = ()) -> int | None:
        found = self.named.place(position)
        if found is None:
            return None
        number = self._numbers.setdefault((found, callers), len(self.places))
        if number == len(self.places):
            self.places.append(found)
            self.callers.append(callers)
        return number

    def body(self, jaxpr: Jaxpr, path: str) -> schema.Body:
        atom = self.words.atom
        return schema.Body(
            constants=tuple(map(atom, jaxpr.constvars)),
            inputs=tuple(map(atom, jaxpr.invars)),
            equations=tuple(self.equation(e, f"{path}{i}") for i, e in enumerate(jaxpr.eqns)),
            outputs=tuple(map(atom, jaxpr.outvars)),
        )

    def equation(self, eqn: Eqn, path: str) -> schema.Equation:
        nested = nested_of(eqn)
        in_front = self.words.namer.programs
        held = {label.partition("[")[0] for label, inner in nested if inner not in in_front}
        held |= {name for name, inner in eqn.derived_params().items()
                 if isinstance(inner, Jaxpr) and inner not in in_front}
        parameters = (
            (name, "{ … }" if name in held else param_text(value, self.words.namer, 0))
            for name, value in shown_params(eqn).items()
        )
        backward = any("transpose" in name for name in eqn.stack)
        return schema.Equation(
            id=f"e{path}",
            primitive=eqn.operation.name,
            parameters=tuple(schema.Parameter(name, value) for name, value in parameters),
            inputs=tuple(map(self.words.atom, eqn.invars)),
            outputs=tuple(map(self.words.atom, eqn.outvars)),
            place=self.place(eqn),
            stack=tuple(map(str, eqn.stack)),
            colour="backward" if backward else "forward",
            bytes=sum(bytes_of(atom) for atom in (*eqn.invars, *eqn.outvars)),
            flops=self.flops.get(f"e{path}"),
            nested=tuple(
                schema.Nested(label, self.body(inner, f"{path}.{index}."))
                for index, (label, inner) in enumerate(nested) if self._first(inner)
            ),
        )

    def _first(self, inner: Jaxpr) -> bool:
        """Whether ``inner`` is met first: what is written once is opened once."""
        new = inner not in self.seen
        self.seen.add(inner)
        return new


def _sources(found: Sequence[schema.Place], named: Places) -> tuple[schema.SourceBlock, ...]:
    """The source lines that equations point into: a short cell whole, else what is around them."""
    spans: dict[str, list[int]] = {}
    for place in found:
        spans.setdefault(place.file, []).extend((place.line, place.end_line))
    blocks = []
    for file, numbers in spans.items():
        lines = [line.rstrip("\n") for line in linecache.getlines(file)]
        if named.cell(file) is not None and len(lines) <= _WHOLE:
            first, last = 1, len(lines)
        else:
            first = max(1, min(numbers) - _CONTEXT)
            last = min(len(lines), max(numbers) + _CONTEXT, first + 4 * _WHOLE)
        if lines:
            label = named.block_label(file)
            blocks.append(schema.SourceBlock(file, label, first, tuple(lines[first - 1 : last])))
    return tuple(blocks)
