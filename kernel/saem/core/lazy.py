"""How does a namespace offer more than it loads?

What every program uses is imported with ``saem``; what some programs use is loaded when they first
name it.  A namespace lists its later names in a table and takes its ``__getattr__`` from here; a
module that needs a library only for one of its functions gets it by ``later``.

Read before: nothing.
Invariant: a listed name is found by ``getattr``, ``dir`` and ``import *`` as any other is,
and costs nothing more once it was named (tests/kernel/test_lazy.py).
Source: PEP 562.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def public_name(module: str) -> str:
    """Return the name under which a namespace imports ``module``, which it offers.

    The drop-in puts its own function here, for there the module is one of JAX's.
    """
    return module


def namespace(package: str, modules: Mapping[str, str]
              ) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of the module called ``package``.

    ``modules`` lists what is loaded later: from the name of a module to the names in it that
    ``package`` offers, separated by spaces; no names means that the module itself is offered, under
    the last part of its name.
    """
    homes: dict[str, tuple[str, bool]] = {}
    for home, offered in modules.items():
        homes.update((name, (home, True)) for name in offered.split())
        if not offered:
            homes[home.rpartition(".")[2]] = (home, False)

    def find(name: str) -> Any:
        if name in homes:
            home, inside = homes[name]
            if inside:
                found = getattr(importlib.import_module(home), name)
            else:
                found = importlib.import_module(public_name(home))
            setattr(sys.modules[package], name, found)  # the next look-up does not come here
            return found
        if name == "__all__":
            return public()
        raise missing(package, name)

    def names() -> list[str]:
        return sorted({*loaded(sys.modules[package]), *homes})

    def public() -> list[str]:
        own = loaded(sys.modules[package])
        return [name for name in names()
                if name[0] != "_" and not (name in own and isinstance(own[name], ModuleType))]

    return find, names


class LeftOut(AttributeError):
    """A module has no such name on purpose; the message says why, or what to use instead."""


def missing(package: str, name: str) -> AttributeError:
    """Return the error that a module has no such name; it says why, if that is on purpose."""
    why = left_out.reason(package, name)
    text = f"module {public_name(package)!r} has no attribute {name!r}"
    return LeftOut(f"{text}: left out, because {why}") if why else AttributeError(text)


def says_what_is_left_out(package: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module that offers nothing later."""
    def refuse(name: str) -> Any:
        raise missing(package, name)

    return refuse


# The names that a module has at the moment, and what they mean.
loaded = vars(ModuleType)["__dict__"].__get__


class Importable(ModuleType):
    """A module of a class of its own, which other processes import by its name.

    Libraries that send functions to other processes know modules by their exact class.
    """

    def __reduce__(self) -> tuple[Callable, tuple[str]]:
        return importlib.import_module, (self.__name__,)


class Whole(Importable):
    """A namespace in whose ``vars`` all that it offers is found, for it is loaded then.

    The drop-in's modules are such, since JAX's hold at once what these load later.  Afterwards they
    are modules like others, whose names Python finds a little faster.
    """

    def __dir__(self) -> list[str]:
        return loaded(self)["__dir__"]()

    @property
    def __dict__(self) -> dict[str, Any]:
        own = loaded(self)
        offered = own["__dir__"]()
        self.__class__ = ModuleType
        for name in offered:
            own[name] = getattr(self, name)
        return own


class later(Importable):
    """``opt_einsum = later("opt_einsum")`` is that module, loaded when something of it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__.update(vars(importlib.import_module(self.__name__)))
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None


left_out = later("saem.core.left_out")
