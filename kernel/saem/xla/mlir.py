"""How does the text of a program become a module in memory?

The compiler takes text too, but prepares a context with all its dialects for each; one kept here
saves two milliseconds of every compilation.  And only a parsed module takes Python functions along.

Read before: ``xla.text``.  Read after: ``xla.compile``.
Invariant: a context, which never forgets a type or constant it has seen, is left after some uses.
"""

from __future__ import annotations

import threading
from typing import Any

from saem import _jaxlib

USES = 200
_lock = threading.Lock()
_kept: list[Any] = [None, 0]


def context() -> Any:
    """Return an MLIR context that knows every dialect our programs are written in."""
    with _lock:
        if _kept[0] is None or _kept[1] >= USES:
            _kept[:] = [_new_context(), 0]
        _kept[1] += 1
        return _kept[0]


def _new_context() -> Any:
    registry = _jaxlib.ir.DialectRegistry()
    _jaxlib.mlir_extension.register_dialects(registry)
    made = _jaxlib.ir.Context()
    made.append_dialect_registry(registry)
    for dialect in (_jaxlib.stablehlo, _jaxlib.chlo, _jaxlib.sdy):
        dialect.register_dialect(made)
    return made


def parse(text: str) -> Any:
    """Return the module that ``text`` says.

    Raises: MLIRError if it is no module.
    """
    with context():
        return _jaxlib.ir.Module.parse(text)
