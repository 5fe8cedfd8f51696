"""How does the text of a program become a module in memory?

The compiler takes text too, but prepares a context with every dialect for each text: 2.5 ms, as
much as compiling a small program.  So a thread parses into a context that it keeps.

Read before: ``compile.text``.  Read after: ``compile.executables``.
Invariant: a context belongs to one thread, since threads that compile in one context at once end
the process; and it is left behind before what it remembers (every type and constant that it ever
parsed) grows large.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from saem import _jaxlib

# A kept context never forgets a constant. Above this a text has a context of its own.
LONG = 1 << 20
# What one context may have parsed, in characters.
FULL = 1 << 25


class _Kept(threading.local):
    """The context of this thread, and how many characters it has parsed."""

    context: Any = None
    parsed = FULL


_kept = _Kept()


def new_context() -> Any:
    """Return an MLIR context that has every dialect of our programs."""
    registry = _jaxlib.ir.DialectRegistry()
    _jaxlib.mlir_extension.register_dialects(registry)
    made = _jaxlib.ir.Context()
    made.append_dialect_registry(registry)
    for dialect in (_jaxlib.stablehlo, _jaxlib.chlo, _jaxlib.sdy):
        dialect.register_dialect(made)
    return made


def context_for(text: str) -> Any:
    """Return the context to parse ``text`` into: this thread's, or a new one for a long text.

    A thread that is not Python's own, as that of a callback, keeps none: what it kept would be
    taken down with its thread, by then too late.
    """
    if len(text) > LONG or isinstance(threading.current_thread(), threading._DummyThread):
        return new_context()
    if _kept.parsed + len(text) > FULL:
        _kept.context = new_context()
        _kept.parsed = 0
    _kept.parsed += len(text)
    return _kept.context


def context_to_build() -> Any:
    """Return a context to build operations in: this thread's, with every dialect loaded."""
    context = context_for(" ")
    context.load_all_available_dialects()
    return context


def parse(text: str) -> Any:
    """Return the module that ``text`` spells.

    Raises: MLIRError if it is not a module.
    """
    with context_for(text):
        return _jaxlib.ir.Module.parse(text)


def name_values(module: Any, arguments: Sequence[str], results: Sequence[str]) -> None:
    """Give the last inputs of ``main`` their names as locations, and its results ``result_info``.

    What has no name among the ``arguments`` and ``results`` of the user's function, as a token, is
    named "".
    """
    ir = _jaxlib.ir
    main = next(op for op in module.body.operations
                if getattr(op, "sym_name", None) is not None and op.sym_name.value == "main")
    with module.context:
        inputs = main.regions[0].blocks[0].arguments
        for value, name in zip(list(inputs)[len(inputs) - len(arguments):], arguments):
            if name:
                value.set_location(ir.Location.name(name))
        if not results:
            return
        said = ([{each.name: each.attr for each in one} for one in main.attributes["res_attrs"]]
                if "res_attrs" in main.attributes else [{} for _ in results])
        for attributes, name in zip(said, results):
            if name:
                attributes["jax.result_info"] = ir.StringAttr.get(name)
        main.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in said])
