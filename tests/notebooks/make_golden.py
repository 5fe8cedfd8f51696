"""What does the real JAX print when it runs a lesson?

Run by an interpreter that has ``jax`` (never in the process of Saem)::

    python tests/notebooks/make_golden.py 01-arrays CELLS.json > …/golden/01-arrays.json

``CELLS.json`` is a list of ``[id, tags, source]``, one for each code cell of the lesson (what
``saem.l10n.source.read`` gives).  Saem's names are replaced by JAX's; gates and the lens become
silent; plots go nowhere.  For each cell the result is what it printed, the text of its last
expression, and the type and first line of its error.

Read before: nothing.  Read after: ``tests/notebooks/test_lessons.py``.
Invariant: no code of Saem runs here, so the golden outputs owe Saem nothing.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import io
import json
import re
import sys
import types
from pathlib import Path
from unittest import mock

# JAX prints this on the way to the error about a NaN; it is no output of the lesson.
NOTICE = re.compile(r"^Invalid (?:nan|inf) value encountered .*\n", re.M)


class Gate:
    """Accepts every judgement and keeps silent."""

    def judge(self, value):
        pass

    @contextlib.contextmanager
    def watch(self, what, of=None):
        yield


class Check:
    """Lets every exercise pass, answered or not."""

    @contextlib.contextmanager
    def hint(self, text):
        with contextlib.suppress(Exception):
            yield

    @contextlib.contextmanager
    def watch(self, what, of=None):
        yield self

    count = None


@contextlib.contextmanager
def check(name):
    """Judge nothing."""
    yield Check()


def todo():
    """Stand where an answer belongs."""
    raise NotImplementedError


def stand_ins() -> None:
    """Put the modules of which no output is compared in place."""
    lesson = types.ModuleType("lesson")
    predict = types.SimpleNamespace(
        **{kind: lambda *a, **k: Gate() for kind in ("choice", "number", "text")}
    )
    lesson.t, lesson.predict = (lambda text: text), predict
    lesson.exercise = types.SimpleNamespace(check=check, todo=todo)
    sys.modules["lesson"] = lesson
    sys.modules["matplotlib"] = mock.MagicMock()
    sys.modules["matplotlib.pyplot"] = sys.modules["matplotlib"].pyplot


def translated(source: str) -> str:
    """The cell for JAX: magics dropped, imports changed."""
    lines = [line for line in source.split("\n") if not line.lstrip().startswith(("%", "!"))]
    text = "\n".join(lines)
    text = text.replace("from saem.lesson import", "from lesson import")
    return re.sub(r"\bsaem\b", "jax", text)


def run(source: str, names: dict) -> dict:
    """Run one cell; what it printed, its value, its error."""
    tree = ast.parse(translated(source))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out, value, error = io.StringIO(), None, None
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(tree, "<cell>", "exec"), names)
            if last is not None:
                result = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
                value = None if result is None else repr(result)
        except Exception as raised:
            first_line = str(raised).split("\n")[0]
            error = [type(raised).__name__, re.sub(r"\b0x[0-9a-f]{6,}", "0x…", first_line)]
    if value and "mock" in value.lower():
        value = None
    return {"printed": NOTICE.sub("", out.getvalue()), "value": value, "error": error}


def main() -> None:
    cells = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    stand_ins()
    names: dict = {}
    golden = {}
    for identity, tags, source in cells:
        result = run(source, names)
        if "nondeterministic" not in tags:
            golden[identity] = result
    version = importlib.metadata.version("jax")
    print(json.dumps({"lesson": sys.argv[1], "jax": version, "cells": golden}, indent=1))


if __name__ == "__main__":
    main()
