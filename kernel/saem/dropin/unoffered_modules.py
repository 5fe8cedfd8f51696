"""Which modules can be imported although nothing in them is offered, and for whom?

Some libraries import a module at their top that they use on TPUs or GPUs only.  Where JAX has no
such device the import works nevertheless, and so it does here for the modules of this table; code
that then uses a name of theirs gets an error that explains why it is not there.

Read before: ``dropin.finder``.
Invariant: a module of the table offers nothing; asking it for a name raises AttributeError with the
reason, and so does the use of a name that a library takes at its top (tests/kernel/test_dropin.py).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

from saem.experimental import PALLAS


class UnofferedModule(NamedTuple):
    """One row: ``jax.<name>`` can be imported; ``taken`` are names that a library takes then."""

    name: str
    instead: str
    needed_by: str
    taken: tuple[str, ...] = ()


_SPLASH = ("experimental.pallas.ops", "experimental.pallas.ops.tpu",
           "experimental.pallas.ops.tpu.splash_attention",
           "experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel",
           "experimental.pallas.ops.tpu.splash_attention.splash_attention_mask")

TABLE = (
    UnofferedModule("experimental.pallas", PALLAS, "keras 3.15, jax-md 0.2"),
    UnofferedModule("experimental.pallas.triton", PALLAS,
                    "jax-md 0.2, cryojax 0.6 (kernels for GPUs)", ("CompilerParams",)),
    *(UnofferedModule(name, "call jax.nn.dot_product_attention", "keras 3.15 (attention on TPUs)")
      for name in _SPLASH),
)

_rows = {row.name: row for row in TABLE}


class EmptyModule(ModuleType):
    """A module that can be imported, whose names raise with the reason."""

    def __init__(self, fullname: str, row: UnofferedModule):
        super().__init__(fullname, f"Nothing of {fullname} is offered. Instead: {row.instead}.")
        self.__path__: list[str] = []
        self._taken = row.taken

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        error = f"module {self.__name__!r} has no attribute {name!r}. {self.__doc__}"
        if name in self._taken:
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
