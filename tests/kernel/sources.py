"""What text makes a function of a test run in another process?

A program may use what its module defines at the top level, and what that module imports from other
modules of the tests: the statements that define those names go before it.  Imports of ``saem``
become imports of ``jax``: ``from saem.experimental import checkify`` names one place on both sides.

Read before: nothing.  Read after: ``both.py``.
Invariant: the text holds the statements that the program needs, as they are written, in their order
(tests/kernel/test_sources.py).
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import symtable
import sys
import textwrap
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
# The names that the other process gives to every program.
GIVEN = frozenset({"jax", "jnp", "lax", "np", "ml_dtypes"})


@dataclasses.dataclass(frozen=True)
class Statement:
    """A statement at the top of a module: the names it binds, completes (as ``f.defjvp(rule)``
    completes ``f``) and uses, and its text."""

    node: ast.stmt
    binds: frozenset[str]
    completes: frozenset[str]
    uses: frozenset[str]
    text: str


def function_text(program: Callable[..., Any]) -> str:
    """Return the definition of ``program``, without the decorators that collect it."""
    text = textwrap.dedent(inspect.getsource(program))
    (node,) = ast.parse(text).body
    return "\n".join(text.split("\n")[node.lineno - 1:])


def definitions(text: str, module: types.ModuleType, given: frozenset[str] = GIVEN) -> list[str]:
    """Return the statements that define what ``text`` uses of ``module``, in their order.

    Names of ``given`` are there already.
    """
    return _defining(set(global_names(text)) - given, module, given)


def global_names(text: str) -> frozenset[str]:
    """Return the names that ``text`` takes from its module or leaves there."""
    return frozenset(_used(symtable.symtable(text, "<program>", "exec")))


def _used(table: symtable.SymbolTable) -> set[str]:
    is_module = table.get_type() == "module"
    names = {symbol.get_name() for symbol in table.get_symbols()
             if symbol.is_referenced() and (is_module or symbol.is_global())}
    return names.union(*map(_used, table.get_children()))


def _defining(names: set[str], module: types.ModuleType, given: frozenset[str]) -> list[str]:
    chosen: set[int] = set()
    statements = _statements(module)
    before = -1
    while len(chosen) > before:
        before = len(chosen)
        for i, statement in enumerate(statements):
            if i not in chosen and names & (statement.binds | statement.completes):
                chosen.add(i)
                names |= statement.uses - given
    lines: list[str] = []
    for i in sorted(chosen):
        node = statements[i].node
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if (alias.asname or alias.name) in names:
                    lines += _imported(node, alias, given)
        else:
            lines.append(statements[i].text)
    return lines


def _imported(node: ast.Import | ast.ImportFrom, alias: ast.alias,
              given: frozenset[str]) -> list[str]:
    """Return what stands there for one imported name: an import, or the definition in a test."""
    if isinstance(node, ast.ImportFrom):
        module = sys.modules.get(node.module or "")
        place = getattr(module, "__file__", None)
        if place is not None and TESTS in Path(place).resolve().parents:
            renamed = [f"{alias.asname} = {alias.name}"] if alias.asname else []
            return _defining({alias.name}, module, given) + renamed
        node = ast.ImportFrom(_theirs(node.module), [alias], node.level)
    else:
        node = ast.Import([ast.alias(_theirs(alias.name), alias.asname)])
    return [ast.unparse(node)]


def _theirs(name: str) -> str:
    return "jax" + name[len("saem"):] if name.split(".")[0] == "saem" else name


@functools.cache
def _statements(module: types.ModuleType) -> list[Statement]:
    """Return the statements at the top of a module."""
    text = inspect.getsource(module)
    lines = text.split("\n")
    found = []
    for node in ast.parse(text).body:
        starts = [node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]
        piece = "\n".join(lines[min(starts) - 1:node.end_lineno])
        found.append(Statement(node, frozenset(_bound(node)), frozenset(_completed(node)),
                               global_names(piece), piece))
    return found


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    return {part.id for part in ast.walk(node)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def _completed(node: ast.stmt) -> set[str]:
    """Return the names whose methods a statement calls, or decorates a function with."""
    parts = getattr(node, "decorator_list", [])
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        parts = [node.value.func]
    return {part.value.id for part in parts
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)}
