"""Which Python is in a code cell, once IPython's magics are taken for calls?

Read before: nothing.  Read after: ``saem.l10n.units``.
Invariant: the Python given back has the same lines as the cell (tests/notebooks/test_units.py).
"""

from __future__ import annotations

import ast
import io
import re
import tokenize

_PYTHON_CELL_MAGICS = ("%%time", "%%timeit", "%%capture")
_NOT_PROSE = re.compile(r"\s*(noqa|type:|ruff:|fmt:|pragma|%%|\||!)")


def python(source: str) -> str:
    """The cell with every magic or shell line replaced by a call ``_magic_('…')``."""
    lines = source.split("\n")
    first = lines[0].strip()
    if first.startswith("%%") and not first.startswith(_PYTHON_CELL_MAGICS):
        return f"_magic_({source!r})" + "\n" * (len(lines) - 1)
    return "\n".join(_line(line) for line in lines)


def _line(line: str) -> str:
    bare = line.lstrip()
    if bare.startswith(("%", "!")):
        return line[: len(line) - len(bare)] + f"_magic_({bare!r})"
    return line


def shape(source: str) -> str:
    """The syntax tree of a cell as text; comments and layout do not show in it.

    Raises SyntaxError.
    """
    return ast.dump(ast.parse(python(source)))


def comments(source: str) -> list[tuple[int, int, str]]:
    """Every comment meant for readers: line (from 0), column, text after the ``#``."""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(python(source) + "\n").readline):
        if token.type == tokenize.COMMENT and not _NOT_PROSE.match(token.string[1:]):
            found.append((token.start[0] - 1, token.start[1], token.string[1:].strip()))
    return found


def strings(source: str) -> list[str]:
    """Every string that goes through ``t("…")``, in order.

    Raises SyntaxError, also for a ``t(…)`` whose argument is not one plain string.
    """
    found = []
    for node in ast.walk(ast.parse(python(source))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        if node.func.id == "t":
            given = node.args[0] if len(node.args) == 1 and not node.keywords else None
            if not (isinstance(given, ast.Constant) and isinstance(given.value, str)):
                raise SyntaxError(
                    f"line {node.lineno}: t(…) needs one plain string, so that it can be "
                    'translated; write t("… {x}").format(x=x) to fill something in.'
                )
            found.append((node.lineno, node.col_offset, given.value))
    return [text for _, _, text in sorted(found)]
