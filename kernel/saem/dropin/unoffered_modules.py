"""Which modules can be imported although next to nothing in them is offered, and for whom?

Some libraries import a module at their top that they use on TPUs or GPUs only.  Where JAX has no
such device the import works nevertheless, and so it does here for the modules of this table; code
that then uses a name of theirs gets an error that explains why it is not there.

Read before: ``dropin.finder``.
Invariant: asking a module of the table for a name that its row does not offer raises AttributeError
with the reason, and so does the use of one that a library takes at its top
(tests/kernel/test_dropin.py).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from saem.core.lazy import Importable
from saem.experimental import PALLAS


class UnofferedModule(NamedTuple):
    """One row: ``jax.<name>`` can be imported.

    ``taken`` are names that a library takes then, and uses on other devices only.  ``offered`` are
    names of objects that Saem has, each with its place ("module:attribute").
    """

    name: str
    instead: str
    needed_by: str
    taken: tuple[str, ...] = ()
    offered: Mapping[str, str] = {}


_SPLASH = ("experimental.pallas.ops", "experimental.pallas.ops.tpu",
           "experimental.pallas.ops.tpu.splash_attention",
           "experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel",
           "experimental.pallas.ops.tpu.splash_attention.splash_attention_mask")

TABLE = (
    UnofferedModule("experimental.pallas", PALLAS, "keras 3.15, jax-md 0.2, haliax 0.2, e3j 0.1",
                    ("BlockSpec", "MemoryRef"),
                    {"Slice": "saem.core.dynamic_slices:Slice", "ds": "saem:ds",
                     "dslice": "saem:ds"}),
    UnofferedModule("experimental.pallas.triton", PALLAS,
                    "jax-md 0.2, cryojax 0.6 (kernels for GPUs)", ("CompilerParams",)),
    UnofferedModule("experimental.pallas.tpu", PALLAS,
                    "e3j 0.1, atomic-ops 0.2 (kernels for TPUs)", ("SemaphoreType",)),
    UnofferedModule("experimental.pallas.mosaic_gpu", PALLAS, "e3j 0.1 (kernels for GPUs)",
                    ("BlockSpec",)),
    UnofferedModule("experimental.pallas.ops.tpu.megablox", "call jax.lax.ragged_dot",
                    "haliax 1.4 (grouped products on TPUs)", ("gmm",)),
    *(UnofferedModule(name, "call jax.nn.dot_product_attention", "keras 3.15 (attention on TPUs)")
      for name in _SPLASH),
)

_rows = {row.name: row for row in TABLE}


class EmptyModule(Importable):
    """A module that can be imported; names that its row does not offer raise with the reason."""

    def __init__(self, fullname: str, row: UnofferedModule):
        super().__init__(fullname, f"{fullname} is not offered. Instead: {row.instead}.")
        self.__path__: list[str] = []
        self._row = row

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._row.offered:
            home, _, attribute = self._row.offered[name].partition(":")
            return getattr(importlib.import_module(home), attribute)
        error = f"module {self.__name__!r} has no attribute {name!r}. {self.__doc__}"
        if name in self._row.taken:
            return Unoffered(error)
        raise AttributeError(error)


class Unoffered:
    """What a library takes at its top and needs on other devices only: any use raises ``error``."""

    def __init__(self, error: str):
        self._error = error

    def __call__(self, *args: Any, **kw: Any) -> Any:
        raise AttributeError(self._error)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(self._error)


def is_listed(fullname: str) -> bool:
    """Return whether the table has ``fullname`` ("jax.…")."""
    return _name(fullname) in _rows


def make_module(fullname: str) -> EmptyModule:
    """Return the empty module ``fullname``, which is listed."""
    return EmptyModule(fullname, _rows[_name(fullname)])


def _name(fullname: str) -> str:
    return fullname.partition(".")[2]
