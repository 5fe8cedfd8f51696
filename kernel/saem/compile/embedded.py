"""How do functions that come as text get into a module?

Those of an exported program, and those that a user's lowering rule built with MLIR's own objects:
each gets a symbol that is free in the module.

Read before: ``compile.text``.  Read after: ``export.exported``, ``interpreters.mlir``.
Invariant: what the module had keeps its symbols.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from saem.compile.libraries import libraries_of
from saem.compile.text import Module

# In MLIR's text: a quoted string, which is left alone, or a symbol.
_SYMBOL = re.compile(r'"(?:[^"\\]|\\.)*"|@([A-Za-z_][\w$.]*)')
_CALLED = re.compile(r"stablehlo\.custom_call @([\w.$]+)")
_DEFINED = re.compile(
    r"^  (func\.func (?:public |private )?|sdy\.mesh )@([A-Za-z_][\w$.]*)", re.MULTILINE)


def targets_in(text: str) -> list[str]:
    """Return the names of the routines that the program ``text`` calls."""
    return _CALLED.findall(text)


def embed(text: str, module: Module, name: str, head: Callable[[str], str] | None = None) -> str:
    """Write the functions of the module ``text``, as MLIR prints it, into ``module``.

    Its ``main`` gets a symbol like ``name``, which is returned; ``head`` of it is its first line,
    where another one is needed.
    """
    names = {}
    for kind, defined in _DEFINED.findall(text):
        wanted = name if defined == "main" else defined
        # The module numbers its own meshes by itself.
        names[defined] = module.unique_name(f"exported_{defined}" if "mesh" in kind else wanted)

    def renamed(match: re.Match) -> str:
        return f"@{names[match[1]]}" if match[1] in names else match[0]

    lines = _SYMBOL.sub(renamed, text[text.index("\n") + 1:text.rindex("\n}")]).split("\n")
    main = names["main"]
    module.libraries |= libraries_of(targets_in(text))
    for block in top_level(lines):
        if block[0].startswith("  sdy.mesh"):
            module.header.append(block[0])
            continue
        if head is not None and f"@{main}(" in block[0]:
            block = [head(main), *block[1:]]
        module.written += block
    return main


def top_level(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the operations of a module as MLIR prints them: indented by two, closed the same."""
    block: list[str] = []
    for line in lines:
        block.append(line)
        if line.startswith("  }") or (len(block) == 1 and not line.endswith("{")):
            yield block
            block = []
