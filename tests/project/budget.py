"""Is every file, function and line short enough to be read?

At most 600 lines a file, 60 a function, 100 characters a line, for Python and TypeScript. What is
generated is not counted.

Read before: CONTRIBUTING.md.  Read after: ``functions.mjs``, which measures TypeScript functions.
`make sizes` prints it as advice: a file is one idea at the size the idea has.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("kernel", "extension", "tests")
SUFFIXES = (".py", ".ts", ".tsx", ".mjs")
# Built, fetched or generated: not written by anyone.
SKIPPED = {"node_modules", "lib", "build", "static", "labextension", "__pycache__"}
GENERATED = {"extension/src/schema.ts"}
LINES, FUNCTION_LINES, CHARACTERS = 600, 60, 100


def sources(root: Path) -> Iterator[Path]:
    """The files that the budget holds for."""
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            inside = path.relative_to(root)
            if path.suffix not in SUFFIXES or SKIPPED & set(inside.parts):
                continue
            if inside.as_posix() not in GENERATED and path.is_file():
                yield path


def over_budget(name: str, text: str) -> Iterator[str]:
    """What is too long in one file, as "name:line: reason"."""
    lines = text.splitlines()
    if len(lines) > LINES:
        yield f"{name}:{LINES + 1}: {len(lines)} lines, at most {LINES}"
    for number, line in enumerate(lines, 1):
        if len(line) > CHARACTERS:
            yield f"{name}:{number}: {len(line)} characters, at most {CHARACTERS}"
    if name.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LINES:
                    yield f"{name}:{node.lineno}: {node.name} has {length} lines, at most 60"


def long_typescript_functions(root: Path, paths: list[Path]) -> Iterator[str]:
    """The same for functions in TypeScript, read with the extension's own compiler."""
    compiler = root / "extension" / "node_modules" / "typescript"
    node = shutil.which("node")
    if not paths or node is None or not compiler.is_dir():
        return
    script = Path(__file__).with_name("functions.mjs")
    done = subprocess.run(
        [node, str(script), str(compiler), *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
    )
    for path, line, name, length in json.loads(done.stdout):
        if length > FUNCTION_LINES:
            inside = Path(path).relative_to(root).as_posix()
            yield f"{inside}:{line}: {name} has {length} lines, at most {FUNCTION_LINES}"


def main() -> int:
    """Print every excess; returns 1 when there is one."""
    paths = list(sources(ROOT))
    found = [
        excess
        for path in paths
        for excess in over_budget(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))
    ]
    found += long_typescript_functions(ROOT, [p for p in paths if p.suffix != ".py"])
    print("\n".join([*found, f"{len(paths)} files, {len(found)} over budget"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
