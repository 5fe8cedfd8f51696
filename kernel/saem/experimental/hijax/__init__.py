"""How does a program define types and operations of its own?  (``jax.experimental.hijax``)

``VJPHiPrimitive`` is the base of operations that bring their derivatives (``vjp_primitive``);
``HiType`` and ``HiPrimitive`` are those of values that are no arrays and of operations on them
(``types``), which become arrays when a program is lowered (``lowered``).  Values of a
``MutableHiType`` change while a program runs, as a box of arrays does.

Read before: ``interpreters.ad``, ``core.refs``.
Invariant: what a program of such values computes is what Python computes with them outside of
traces (tests/kernel/test_hijax.py).
"""

from __future__ import annotations

from typing import Any

from saem.core import AbstractValue, ShapedArray
from saem.core.hi_types import aval_method, aval_property
from saem.core.refs import AbstractRef
from saem.experimental.hijax.types import (
    AvalMutableQDD,
    AvalQDD,
    HiPrimitive,
    HiPspec,
    HiType,
    MutableHiType,
    register_hitype,
)
from saem.experimental.hijax.vjp_primitive import VJPHiPrimitive
from saem.interpreters.ad import Zero, instantiate_zeros, is_undefined_primal


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

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiPspec",
    "HiType", "MutableHiType", "ShapedArray", "VJPHiPrimitive", "Zero", "aval_method",
    "aval_property", "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal",
    "register_hitype",
]
