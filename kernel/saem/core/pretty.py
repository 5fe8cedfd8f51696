"""How is a jaxpr printed?

In JAX's notation, which learners meet everywhere: ``{ lambda ; a:f32[3]. let b:f32[3] = sin a in
(b,) }``, on one line when it fits in 80 columns.  Variables are named a, b, …, z, ba, … in the
order they appear; the inputs of a nested program take the names of what is passed to them.
A nested program that is used in several places, or is long, is written once in front, as
``let name = {…} in``, and then called by that name.

Read before: ``core.jaxpr``.  Read after: ``saem.observe.jaxpr_model``, which reuses ``Namer``.
Invariant: printing never fails and never runs user code but ``repr`` of parameters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from saem.core import lazy
from saem.core.jaxpr import Atom, ClosedJaxpr, DropVar, Eqn, Jaxpr, Literal, Var, sub_jaxprs
from saem.core.record import Record

provenance: Any = lazy.later("saem.core.provenance")
WIDTH = 80
LONG = 10  # a nested program of more equations is written in front
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")


class Style(Record):
    """What ``pretty_print`` shows or leaves out."""

    source_info: bool = False
    print_shapes: bool = True
    name_stack: bool = False
    custom_pp_eqn_rules: bool = True
    print_effects: bool = False


PLAIN = Style()
# Until all is written, a note is one of these characters of no width in the text.
_FIRST_NOTE = 0xF0000
_NOTES = re.compile("[\U000f0000-\U000ffffd]")


def width(text: str) -> int:
    """Return how many columns ``text`` takes."""
    return len(text) if text.isascii() else len(_NOTES.sub("", text))


class Namer:
    """Gives variables their letters, and programs written in front their names."""

    def __init__(self, style: Style = PLAIN) -> None:
        self.style = style
        self.notes: list[str] = []
        self.names: dict[Var, str] = {}
        self.count = 0
        self.unread: set[Var] = set()
        self.programs: dict[Jaxpr, str] = {}
        self._taken: set[str] = set()

    def enter(self, jaxpr: Jaxpr) -> None:
        """Begin with ``jaxpr``, the outermost: variables that nothing reads print as ``_``.

        The programs inside it that are written in front are named, in their order.
        """
        read = jaxpr.reads()
        self.unread.update(v for eqn in jaxpr.eqns for v in eqn.outvars if v not in read)
        known: dict[str, int] = {}
        for program, word in in_front(jaxpr):
            number = known[word] = known.get(word, -1) + 1
            self.programs[program] = f"{word}{number or ''}"
        self._taken.update(self.programs.values())

    def is_unread(self, var: Var) -> bool:
        return isinstance(var, DropVar) or var in self.unread

    def name(self, var: Var) -> str:
        if self.is_unread(var):
            return "_"
        if var not in self.names:
            self.names[var] = self._next()
            while self.names[var] in self._taken:
                self.names[var] = self._next()
        return self.names[var]

    def _next(self) -> str:
        self.count += 1
        return self._letters(self.count - 1)

    @staticmethod
    def _letters(n: int) -> str:
        n, digit = divmod(n, 26)
        letters = chr(ord("a") + digit)
        while n:
            n, digit = divmod(n, 26)
            letters = chr(ord("a") + digit) + letters
        return letters

    def adopt(self, inner: Var, outer: Atom) -> None:
        """Let ``inner``, bound by a nested program, carry the name of ``outer``."""
        if isinstance(outer, Var):
            self.names.setdefault(inner, self.name(outer))

    def adopt_all(self, eqn: Eqn) -> None:
        """Let the inputs and outputs of a jitted program carry the names of those of ``eqn``."""
        if not eqn.operation.called or not self.style.custom_pp_eqn_rules:
            return
        for inner in (v.jaxpr for v in eqn.params.values() if isinstance(v, ClosedJaxpr)):
            if inner in self.programs:
                continue
            if len(inner.invars) == len(eqn.invars):
                self._adopt_inputs(inner, eqn)
            if len(inner.outvars) == len(eqn.outvars):
                self._adopt_outputs(inner, eqn)

    def _adopt_inputs(self, inner: ClosedJaxpr, eqn: Eqn) -> None:
        """Name inputs after operands; of an operand that is passed twice, only the first input."""
        given: set[Atom] = set()
        for inside, outside in zip(inner.invars, eqn.invars):
            if outside not in given:
                self.adopt(inside, outside)
            given.add(outside)

    def _adopt_outputs(self, inner: ClosedJaxpr, eqn: Eqn) -> None:
        """Name outputs after results, of several that are one variable after one that is read."""
        pairs = list(zip(inner.outvars, eqn.outvars))
        pairs.sort(key=lambda pair: self.is_unread(pair[1]))
        for inside, outside in pairs:
            if (isinstance(inside, Var) and inside not in self.names
                    and inside not in inner.constvars):
                self.adopt(inside, outside)

    def atom(self, atom: Atom) -> str:
        if isinstance(atom, Literal):
            return f"{literal_text(atom)}:{atom.aval.str_short(True)}"
        return self.name(atom)

    def binder(self, var: Var) -> str:
        shapes = self.style.print_shapes
        return f"{self.name(var)}:{var.aval.str_short(True)}" if shapes else self.name(var)

    def note(self, eqn: Eqn) -> str:
        """Keep the notes on ``eqn``; return the characters that mark their places in the text."""
        style, before = self.style, len(self.notes)
        if style.source_info:
            self.notes.append(provenance.summary(eqn.source))
        if style.name_stack:
            self.notes.append(f"[{provenance.name_stack(eqn.stack)}]")
        return "".join(chr(_FIRST_NOTE + n) for n in range(before, len(self.notes)))

    def with_notes(self, text: str) -> str:
        """Return the finished ``text`` with its notes to the right, all in one column."""
        if not self.notes:
            return text
        lines = text.split("\n")
        column = max(map(width, lines)) + 1
        finished = []
        for line in lines:
            bare = _NOTES.sub("", line)
            for mark in _NOTES.findall(line) or [""]:
                note = f"# {self.notes[ord(mark) - _FIRST_NOTE]}" if mark else ""
                finished.append(f"{bare:{column}}{note}" if mark else bare)
                bare = ""
        return "\n".join(finished)


def open_program(program: ClosedJaxpr | Jaxpr) -> Jaxpr:
    """Return ``program`` without the values of its constants."""
    return program.jaxpr if isinstance(program, ClosedJaxpr) else program


def programs_of(eqn: Eqn) -> list[ClosedJaxpr | Jaxpr]:
    """Return the programs inside ``eqn``: those of its primitive, then those made for its print."""
    derived = [v for v in eqn.derived_params().values() if isinstance(v, Jaxpr)]
    return [program for _, program in sub_jaxprs(eqn.operation)] + derived


def in_front(jaxpr: Jaxpr) -> list[tuple[Jaxpr, str]]:
    """Return the programs inside ``jaxpr`` to be written before it, each with a word to name it.

    Those met first come first, level by level.  A program inside one that is used twice is met
    twice itself.
    """
    words: dict[Jaxpr, str] = {}
    met: Counter[Jaxpr] = Counter()
    level = [jaxpr]
    while level:
        inside: list[Jaxpr] = []
        for eqn in (eqn for program in level for eqn in program.eqns):
            for program in programs_of(eqn):
                nested = open_program(program)
                called = eqn.operation.called or "jaxpr"
                words.setdefault(nested, called.strip("<>"))
                met[nested] += 1
                if met[nested] <= 2:  # a third time changes nothing
                    inside.append(nested)
        level = inside
    return [(program, word) for program, word in words.items()
            if met[program] > 1 or len(program.eqns) > LONG]


def literal_text(literal: Literal) -> str:
    """Return the value of a scalar constant as a jaxpr shows it."""
    value = np.asarray(literal.val)
    if value.ndim:
        return "[…]"
    item = value.item()
    return str(item) if not isinstance(item, bytes) else repr(item)


def param_text(value: Any, namer: Namer, indent: int, before: int = 0) -> str:
    """Return how a parameter prints, starting ``before`` characters after ``indent``."""
    if isinstance(value, (ClosedJaxpr, Jaxpr)):
        program = open_program(value)
        return namer.programs.get(program) or _braces(program, namer, indent, before)
    if isinstance(value, tuple) and any(isinstance(v, (ClosedJaxpr, Jaxpr)) for v in value):
        if type(value) is not tuple:  # a record, which prints by itself
            return str(value)
        texts = [param_text(v, namer, indent + 2) for v in value]
        flat = f"({' '.join(texts)})"
        if "\n" not in flat and indent + before + width(flat) <= WIDTH:
            return flat
        return "\n".join(["(", *(" " * (indent + 2) + text for text in texts), " " * indent + ")"])
    if isinstance(value, frozenset) and not value:
        return "frozenset({})"
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, type):
        return value.__name__
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return _ADDRESS.sub("0x" + "X" * 12, str(value))


def fill(words: Iterable[str], column: int, pad: int) -> str:
    """Return ``words`` side by side from ``column`` on; full lines go on ``pad`` to the right."""
    text = ""
    for number, word in enumerate(words):
        if number and column >= WIDTH:
            text, column = f"{text}\n{' ' * pad}", pad
        elif number:
            text, column = f"{text} ", column + 1
        text, column = text + word, column + len(word)
    return text


def _column(text: str, start: int) -> int:
    """Return where ``text`` ends if its first line begins at ``start``."""
    *before, last = text.rsplit("\n", 1)
    return width(last) + (0 if before else start)


def shown_params(eqn: Eqn) -> dict[str, Any]:
    """Return the parameters of ``eqn`` as a jaxpr shows them: also those that follow from types."""
    shown = eqn.operation.printed_params()
    derived = eqn.derived_params()
    return dict(sorted({**shown, **derived}.items())) if derived else shown


def eqn_text(eqn: Eqn, namer: Namer, indent: int = 4) -> str:
    """Return one equation, continued lines indented below ``indent``."""
    namer.adopt_all(eqn)
    for var in eqn.outvars:
        namer.name(var)
    mark = namer.note(eqn) if namer.style is not PLAIN else ""
    own_words = namer.style.custom_pp_eqn_rules
    special = eqn.operation.print_equation
    text = own_words and special and special(eqn, namer)
    if text:
        return mark + text
    shown = shown_params(eqn) if own_words else dict(sorted(eqn.params.items()))
    texts = [f"{name}={param_text(value, namer, indent + 2, len(name) + 1)}"
             for name, value in shown.items()]
    outputs = mark + fill(map(namer.binder, eqn.outvars), indent, indent + 2)
    head = f"{outputs} = {eqn.operation.name}" if outputs else eqn.operation.name
    if texts:
        flat = f"{head}[{' '.join(texts)}]"
        if "\n" in "".join(texts) or _column(flat, indent) > WIDTH:  # without operands
            pad = " " * (indent + 2)
            head = "\n".join([f"{head}[", *(pad + text for text in texts), " " * indent + "]"])
        else:
            head = flat
    return f"{head} {fill(map(namer.atom, eqn.invars), _column(head, indent) + 1, indent + 2)}"


def jaxpr_text(jaxpr: Jaxpr, style: Style = PLAIN) -> str:
    """Return ``jaxpr`` in JAX's notation, programs that repeat or are long in front of it."""
    namer = Namer(style)
    namer.enter(jaxpr)
    front = [f"let {name} = {_braces(program, namer, 0, len(name) + 7)} in"
             for program, name in namer.programs.items()]
    return namer.with_notes("\n".join([*front, _braces(jaxpr, namer)]))


def _braces(jaxpr: Jaxpr, namer: Namer, indent: int = 0, before: int = 0) -> str:
    """Return ``{ lambda … }``; ``indent`` is where its last line goes.

    Its first line starts ``before`` characters after that.
    """
    start = indent + before + len("{ lambda ")
    consts = fill(map(namer.binder, jaxpr.constvars), start, indent + 4)
    start = _column(consts, start) + 2
    head = f"{{ lambda {consts}; {fill(map(namer.binder, jaxpr.invars), start, indent + 4)}. let"
    body = [eqn_text(eqn, namer, indent + 4) for eqn in jaxpr.eqns]
    outs = [namer.atom(a) + "," for a in jaxpr.outvars]
    if len(outs) > 1:
        outs[-1] = outs[-1][:-1]
    tail = f"in ({fill(outs, indent + len('  in ('), indent + 4)})"
    if namer.style.print_effects:
        tail += f" : {{ {', '.join(sorted(map(str, jaxpr.effects)))} }}"
    one_line = f"{head} {'; '.join(body)} {tail} }}"
    if "\n" not in one_line and indent + before + width(one_line) <= WIDTH:
        return one_line
    pad = " " * (indent + 4)
    body = [pad + line for line in body or [""]]
    return "\n".join([head, *body, f"{' ' * (indent + 2)}{tail} }}"])


def program_text(program: Jaxpr | ClosedJaxpr, style: Style = PLAIN) -> str:
    """Return ``program`` as text, with what ``style`` asks for beside each equation."""
    return jaxpr_text(open_program(program), style)
