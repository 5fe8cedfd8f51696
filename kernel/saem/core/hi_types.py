"""How does a value that is no array, of a type that a program defines, go through programs?

A library derives a class from ``jax.experimental.hijax.HiType``: it says which arrays hold a value,
what its tangents are, how they are added.  In a jaxpr a variable has that type; before a program is
lowered each such variable becomes the variables of its arrays (``chapter``).

Read before: ``core.avals``.  Read after: ``experimental.hijax.types``.
Invariant: no program that is written for XLA has such a type; until a class is registered nothing
looks for one (tests/kernel/test_hijax.py).
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, ClassVar, NamedTuple, TypeGuard

from saem.core import dtypes
from saem.core.avals import ShapedArray, aval_of
from saem.core.jaxpr import ClosedJaxpr, once_per_program, sub_jaxprs


class HighDType(dtypes.ExtendedDType):
    """The dtype of values of ``ty``, which are no arrays."""

    type = dtypes.extended

    def __init__(self, ty: Any):
        self.ty = ty

    name = property(lambda self: str(self.ty))

    def __eq__(self, other: object) -> bool:
        return type(other) is HighDType and self.ty == other.ty

    def __hash__(self) -> int:
        return hash(self.ty)

    def zero(self) -> Any:
        """Return the tangent that is zero."""
        return chapter.zero_of(self.ty)


class AbstractHigh(ShapedArray):
    """The abstract value of a value of ``ty``, a type that a program defines."""

    __slots__ = ("ty",)
    # Whether there was ever one: until then no program is searched for them.
    used: ClassVar[bool] = False
    weak_type = False
    placement = None

    def __init__(self, ty: Any):
        AbstractHigh.used = True
        self.ty = ty
        self.dtype = HighDType(ty)

    @property
    def shape(self) -> tuple:
        """What the type calls its shape, if that is one: the engine puts no axes onto it."""
        shape = getattr(self.ty, "shape", ())
        return shape if type(shape) is tuple else ()

    def __eq__(self, other: object) -> bool:
        return type(other) is AbstractHigh and self.ty == other.ty

    def __hash__(self) -> int:
        return hash(self.ty)

    def update(self, **changes: Any) -> AbstractHigh:
        return self

    def strip_weak_type(self) -> AbstractHigh:
        return self

    def to_tangent_aval(self) -> ShapedArray:
        return as_aval(self.ty.to_tangent_aval())

    def str_short(self, short_dtypes: bool = False) -> str:
        return self.ty.str_short(short_dtypes)

    def __str__(self) -> str:
        return str(self.ty)

    __repr__ = __str__

    def __getattr__(self, name: str) -> Any:
        """Return what the type has under ``name``, for rules that are given this aval."""
        return getattr(self.ty, name)

    def held(self) -> list[ShapedArray]:
        """Return the types of the arrays that hold a value."""
        return [as_aval(aval) for aval in self.ty.lo_ty()]


class aval_property(NamedTuple):
    """A property that a type gives to its values."""

    fget: Callable[[Any], Any]


class aval_method(NamedTuple):
    """A method that a type gives to its values."""

    fun: Callable[..., Any]


def attribute_of(tracer: Any, name: str) -> Any:
    """Return the attribute ``name`` that the type of ``tracer`` gives to its values."""
    found = getattr(tracer.aval.ty, name)
    if isinstance(found, aval_property):
        return found.fget(tracer)
    return MethodType(found.fun, tracer) if isinstance(found, aval_method) else found


# What lowers programs with such values, and runs them; set by ``_wiring``.
chapter: Any = None


def is_high(aval: Any) -> TypeGuard[AbstractHigh]:
    """Return whether ``aval`` is of values that are no arrays."""
    return type(aval) is AbstractHigh


def as_aval(ty: Any) -> ShapedArray:
    """Return the abstract value of values of ``ty``, a type of arrays or of a program."""
    return ty if isinstance(ty, ShapedArray) else AbstractHigh(ty)


def typeof(x: Any) -> Any:
    """Return the type of ``x``: an array, tracer, NumPy value, Python number, or of another class.

    Raises: TypeError if ``x`` is nothing an array program can hold.

    >>> jax.typeof(jnp.ones((2, 3)))
    ShapedArray(float32[2,3])
    """
    return as_type(aval_of(x))


def as_type(aval: Any) -> Any:
    """Return ``aval`` as the program that defined it knows it."""
    return aval.ty if type(aval) is AbstractHigh else aval


@once_per_program
def works_on_high(closed: ClosedJaxpr) -> bool:
    """Return whether ``closed``, or a program inside it, has a value that is no array."""
    jaxpr = closed.jaxpr
    atoms = [*jaxpr.invars, *jaxpr.constvars, *(v for eqn in jaxpr.eqns for v in eqn.outvars)]
    return any(type(v.aval) is AbstractHigh for v in atoms) or any(
        works_on_high(inner) for eqn in jaxpr.eqns for _, inner in sub_jaxprs(eqn.operation)
        if isinstance(inner, ClosedJaxpr))
