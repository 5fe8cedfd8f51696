"""What can libraries name of JAX's hijax?  (``jax.experimental.hijax``)

Hijax lets users define types of values whose operations are primitives of Python, lowered to arrays
later.  Saem has no such types.  Libraries (flax.nnx) define classes for them when they are imported
and use them only if they are switched on, so the base classes are here; an operation on such a type
raises and names what to use instead.  The names that mean something without hijax (``Zero``,
``AbstractRef`` …) are Saem's own.

Read before: ``interpreters.ad``, ``core.refs``.
Invariant: a class can be derived from each base, and nothing computes wrongly: an operation of such
a primitive raises NotImplementedError (tests/kernel/test_hijax.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from saem.core import AbstractValue, ShapedArray
from saem.core.refs import AbstractRef
from saem.experimental.hijax.vjp_primitive import VJPHiPrimitive
from saem.interpreters.ad import Zero, instantiate_zeros, is_undefined_primal


def _refuse(what: str) -> NoReturn:
    raise NotImplementedError(
        f"{what} needs the types of hijax, which Saem does not have. Keep such state in arrays and "
        "pytrees, or in references (jax.new_ref); in flax.nnx leave flax_hijax_variable off.")


class HiType:
    """Base of the types of values that are no arrays."""


class MutableHiType(HiType):
    """Base of the types of values that are no arrays and change."""


class HiPspec:
    """Base of how values of a ``HiType`` are sharded."""


class HiPrimitive:
    """Base of operations on values of a ``HiType``; to bind one raises NotImplementedError."""

    multiple_results = False

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def bind(self, *args: Any, **params: Any) -> NoReturn:
        """Raise: NotImplementedError, since Saem has no such types."""
        _refuse(f"the operation {self.name!r}")


class AvalQDD(NamedTuple):
    """A type, and what of it changes while the program runs."""

    aval: Any
    qdd: Any


class AvalMutableQDD(NamedTuple):
    """A type, and a cell that holds what of it changes."""

    aval: Any
    mutable_qdd: Any


class aval_property(property):
    """A property that a type gives to its values."""


class aval_method(NamedTuple):
    """A method that a type gives to its values."""

    fun: Callable[..., Any]


class _EffectTypes:
    """A set of classes of effects."""

    def __init__(self) -> None:
        self._types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        """Add a class; its subclasses are in the set too."""
        self._types.add(effect_type)

    def contains(self, effect: Any) -> bool:
        """Return whether ``effect`` is of one of the classes."""
        return isinstance(effect, tuple(self._types))


# Saem lets every effect into loops and branches, so this set is kept for libraries that read it.
control_flow_allowed_effects = _EffectTypes()

hitypes: dict[type, Callable[[Any], Any]] = {}


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Note that values of ``val_cls`` have the type ``typeof_fn(value)``."""
    hitypes[val_cls] = typeof_fn


def cur_qdd(x: Any) -> NoReturn:
    """Raise: NotImplementedError, since no value of Saem's has such a state."""
    _refuse("cur_qdd")


__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiPspec",
    "HiType", "MutableHiType", "ShapedArray", "VJPHiPrimitive", "Zero", "aval_method",
    "aval_property", "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal",
    "register_hitype",
]
