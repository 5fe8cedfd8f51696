"""How is a jaxpr printed?

In JAX's notation, which learners meet everywhere: ``{ lambda ; a:f32[3]. let b:f32[3] = sin a in
(b,) }``, on one line when it fits in 80 columns.  Variables are named a, b, …, z, ba, … in the
order they appear; the inputs of a nested program take the names of what is passed to them.

Read before: ``core.jaxpr``.  Read after: ``saem.observe.jaxpr_model``, which reuses ``Namer``.
Invariant: printing never fails and never runs user code but ``repr`` of parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saem.core.jaxpr import Atom, ClosedJaxpr, DropVar, Eqn, Jaxpr, Literal, Var

WIDTH = 80


class Namer:
    """Gives variables their letters."""

    def __init__(self) -> None:
        self.names: dict[Var, str] = {}
        self.count = 0
        self.unread: set[Var] = set()

    def enter(self, jaxpr: Jaxpr) -> None:
        """Note which variables of ``jaxpr``, the outermost, nobody reads: they print as ``_``."""
        read = {a for eqn in jaxpr.eqns for a in eqn.invars} | set(jaxpr.outvars)
        self.unread.update(v for eqn in jaxpr.eqns for v in eqn.outvars if v not in read)

    def name(self, var: Var) -> str:
        if isinstance(var, DropVar) or var in self.unread:
            return "_"
        if var not in self.names:
            self.names[var] = self._letters(self.count)
            self.count += 1
        return self.names[var]

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
        if isinstance(outer, Var) and self.name(outer) != "_":
            self.names.setdefault(inner, self.name(outer))

    def adopt_all(self, eqn: Eqn) -> None:
        """Let the inputs and outputs of a jitted program carry the names of those of ``eqn``."""
        if eqn.operation.name != "jit":
            return
        for inner in (v.jaxpr for v in eqn.params.values() if isinstance(v, ClosedJaxpr)):
            if len(inner.invars) == len(eqn.invars):
                for inside, outside in zip(inner.invars, eqn.invars):
                    self.adopt(inside, outside)
            if len(inner.outvars) == len(eqn.outvars):
                for inside, outside in zip(inner.outvars, eqn.outvars):
                    if isinstance(inside, Var) and inside not in inner.constvars:
                        self.adopt(inside, outside)

    def atom(self, atom: Atom) -> str:
        if isinstance(atom, Literal):
            return f"{literal_text(atom)}:{atom.aval.str_short()}"
        return self.name(atom)

    def binder(self, var: Var) -> str:
        return f"{self.name(var)}:{var.aval.str_short()}"


def literal_text(literal: Literal) -> str:
    """Return the value of a scalar constant as a jaxpr shows it."""
    value = np.asarray(literal.val)
    if value.ndim:
        return "[…]"
    item = value.item()
    return str(item) if not isinstance(item, bytes) else repr(item)


def param_text(value: Any, namer: Namer, indent: int, before: int = 0) -> str:
    """Return how a parameter prints, starting ``before`` characters after ``indent``."""
    if isinstance(value, ClosedJaxpr):
        return jaxpr_text(value.jaxpr, namer, indent, before)
    if isinstance(value, Jaxpr):
        return jaxpr_text(value, namer, indent, before)
    if isinstance(value, tuple) and any(isinstance(v, (ClosedJaxpr, Jaxpr)) for v in value):
        inner = (" " * (indent + 2)).join(
            "\n" + " " * (indent + 2) + param_text(v, namer, indent + 2) for v in value)
        return f"({inner}\n{' ' * indent})"
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, type):
        return value.__name__
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return str(value)


def eqn_text(eqn: Eqn, namer: Namer, indent: int = 4) -> str:
    """Return one equation, continued lines indented below ``indent``."""
    inputs = " ".join(namer.atom(a) for a in eqn.invars)
    outputs = " ".join(namer.binder(v) for v in eqn.outvars)
    namer.adopt_all(eqn)
    params = eqn.operation.printed_params()
    head = f"{outputs} = {eqn.operation.name}" if outputs else eqn.operation.name
    if not params:
        return f"{head} {inputs}".rstrip() if inputs else f"{head} "
    texts = {name: param_text(value, namer, indent + 2, len(name) + 1)
             for name, value in params.items()}
    flat = " ".join(f"{name}={text}" for name, text in texts.items())
    line = f"{head}[{flat}]"
    if "\n" not in flat and indent + len(line) <= WIDTH:  # what follows may stand out
        return f"{line} {inputs}"
    pad = " " * (indent + 2)
    lines = [f"{head}["]
    lines += [f"{pad}{name}={text}" for name, text in texts.items()]
    return "\n".join([*lines, f"{' ' * indent}] {inputs}"])


def jaxpr_text(jaxpr: Jaxpr, namer: Namer | None = None, indent: int = 0, before: int = 0) -> str:
    """Return ``jaxpr`` in JAX's notation; ``indent`` is where its last line goes.

    Its first line starts ``before`` characters after that.
    """
    if namer is None:
        namer = Namer()
        namer.enter(jaxpr)
    consts = " ".join(namer.binder(v) for v in jaxpr.constvars)
    inputs = " ".join(namer.binder(v) for v in jaxpr.invars)
    head = f"{{ lambda {consts}; {inputs}. let"
    body = [eqn_text(eqn, namer, indent + 4) for eqn in jaxpr.eqns]
    outs = ", ".join(namer.atom(a) for a in jaxpr.outvars)
    tail = f"in ({outs},)" if len(jaxpr.outvars) == 1 else f"in ({outs})"
    one_line = f"{head} {'; '.join(body)} {tail} }}"
    if "\n" not in one_line and indent + before + len(one_line) <= WIDTH:
        return one_line
    pad = " " * (indent + 4)
    lines = [head, *(pad + line for line in body), f"{' ' * (indent + 2)}{tail} }}"]
    return "\n".join(lines)


def _print(self: Jaxpr | ClosedJaxpr) -> str:
    return jaxpr_text(self.jaxpr if isinstance(self, ClosedJaxpr) else self)


# The printer is wired onto the classes here so that ``core.jaxpr`` stays free of text.
for _class in (Jaxpr, ClosedJaxpr):
    _class.__str__ = _print  # type: ignore[method-assign, assignment]
    _class.__repr__ = _print  # type: ignore[method-assign, assignment]
    _class.pretty_print = lambda self, **_ignored: _print(self)  # type: ignore[union-attr]
