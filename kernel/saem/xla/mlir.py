"""How does the text of a program become a module in memory?

Most programs go to the compiler as text.  One that calls Python must be handed over parsed, because
only then does the compiler take the Python functions along.

Read before: ``xla.text``.  Read after: ``xla.compile``.
Invariant: MLIR's bindings are loaded only when the first such program is compiled.
"""

from __future__ import annotations

from typing import Any

from saem import _jaxlib


def context() -> Any:
    """Return a new MLIR context that knows every dialect our programs are written in.

    New, since threads that compile in one context at once end the process.
    """
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
