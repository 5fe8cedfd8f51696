"""How does a value that is no array, of a type that a program defines, go through programs?

A library derives a class from ``jax.experimental.hijax.HiType``: it says which arrays hold a value,
what its tangents are, how they are added.  In a jaxpr a variable has that type; before a program is
lowered each such variable becomes the variables of its arrays (``chapter``).

A value of a ``MutableHiType`` changes while a program runs: it then holds other arrays, also of
other types.  Which these are is its *state*, of a class of the program's own.  A variable's type
keeps two of them: the one at the beginning and, as tracing goes on, the one now.

Read before: ``core.avals``.  Read after: ``experimental.hijax.types``.
Invariant: no program that is written for XLA has such a type; until a class is registered nothing
looks for one (tests/kernel/test_hijax.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, ClassVar, NamedTuple, TypeGuard

from saem.core import dtypes
from saem.core.avals import ShapedArray, aval_of
from saem.core.jaxpr import ClosedJaxpr, once_per_program, sub_jaxprs
from saem.core.placement_types import Seen
from saem.core.primitive import Primitive


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

    __slots__ = ("ty", "began", "state")
    # Whether there was ever one: until then no program is searched for them.
    used: ClassVar[bool] = False
    weak_type = False
    placement = None

    def __init__(self, ty: Any, state: Any = None):
        AbstractHigh.used = True
        self.ty = ty
        self.dtype = HighDType(ty)
        self.began = self.state = state
        if state is not None:
            Seen.states = Seen.placements = True

    @property
    def changes(self) -> bool:
        """Whether values change."""
        return self.began is not None

    @property
    def shape(self) -> tuple:
        """What the type calls its shape, if that is one: the engine puts no axes onto it."""
        shape = getattr(self.ty, "shape", ())
        return shape if type(shape) is tuple else ()

    def __eq__(self, other: object) -> bool:
        return type(other) is AbstractHigh and (self.ty, self.began) == (other.ty, other.began)

    def __hash__(self) -> int:
        return hash((self.ty, self.began))

    def update(self, **changes: Any) -> AbstractHigh:
        return self

    def strip_weak_type(self) -> AbstractHigh:
        return self

    def to_tangent_aval(self) -> ShapedArray:
        ty = self.ty.to_tangent_aval()
        return as_aval(ty) if self.began is None else AbstractHigh(ty, self.began.to_tangent_qdd())

    def stacked(self, size: int, axis: Any = None) -> ShapedArray:
        """Return the type of ``size`` values along ``axis``, by default that which leads."""
        axis = self.ty.leading_axis_spec() if axis is None else axis
        return as_aval(self.ty.inc_rank(size, axis))

    def row(self, size: int, axis: Any = None) -> ShapedArray:
        """Return the type of one of ``size`` values along ``axis``, by default that which leads."""
        axis = self.ty.leading_axis_spec() if axis is None else axis
        return as_aval(self.ty.dec_rank(size, axis))

    def str_short(self, short_dtypes: bool = False) -> str:
        return self.ty.str_short(short_dtypes)

    def __str__(self) -> str:
        return str(self.ty)

    __repr__ = __str__

    def __getattr__(self, name: str) -> Any:
        """Return what the type has under ``name``, for rules that are given this aval."""
        return getattr(self.ty, name)

    def held(self) -> list[ShapedArray]:
        """Return the types of the arrays that hold a value, at the beginning if they change."""
        found = self.ty.lo_ty() if self.began is None else self.ty.lo_ty_qdd(self.began)
        return [as_aval(aval) for aval in found]

    def at_first(self) -> AbstractHigh:
        """Return the type of a value in the state in which one of this type begins."""
        return AbstractHigh(self.ty, self.began)

    def now(self) -> AbstractHigh:
        """Return the type of a value that begins in the state in which this one is now."""
        return AbstractHigh(self.ty, self.state)


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


def array_of(x: Any) -> Any:
    """Return the array that the type of ``x`` says it stands for (``__jax_array__``), or ``x``."""
    aval = getattr(x, "aval", None)
    if is_high(aval) and hasattr(aval.ty, "__jax_array__"):
        return attribute_of(x, "__jax_array__")()
    return x


def operator_of(aval: AbstractHigh, name: str) -> Callable[..., Any]:
    """Return what Python's operator ``name`` (``__add__``) does on values of ``aval``.

    Raises: AttributeError if their type has no such method (``_add``), TypeError for a length.
    """
    found = getattr(aval.ty, name[1:-2], None)
    if found is None:
        error = TypeError if name in ("__len__", "__iter__") else AttributeError
        raise error(f"a value of type {aval} has no operator {name}. Define {name[1:-2]} in "
                    f"the class {type(aval.ty).__name__}.")
    return found


# What lowers programs with such values, and runs them; set by ``_wiring``.
chapter: Any = None


def is_high(aval: Any) -> TypeGuard[AbstractHigh]:
    """Return whether ``aval`` is of values that are no arrays."""
    return type(aval) is AbstractHigh


def is_mutable(aval: Any) -> TypeGuard[AbstractHigh]:
    """Return whether ``aval`` is of values that are no arrays and change."""
    return type(aval) is AbstractHigh and aval.began is not None


def as_aval(ty: Any) -> ShapedArray:
    """Return the abstract value of values of ``ty``, a type of arrays or of a program."""
    return ty if isinstance(ty, ShapedArray) else AbstractHigh(ty)


def carry_states(prim: Primitive, avals: Sequence[ShapedArray]) -> None:
    """Let operands of ``prim``, of ``avals``, be in the states in which its programs leave them.

    Raises: TypeError if branches leave an operand in several states, or a loop in another one.
    """
    changing = [(number, aval) for number, aval in enumerate(avals) if is_mutable(aval)]
    nested = prim.nested if changing else None
    for number, aval in changing:
        if nested is None or number < nested.before:
            continue
        left = [p.jaxpr.invars[number - nested.before].aval.state for p in nested.programs]
        if nested.repeats:
            if normal(left[0]) != normal(aval.state):
                raise TypeError(f"a step of `{prim.name}` leaves a value of {aval} in the state "
                                f"{left[0]}, but found it in {aval.state}. Let each step leave "
                                "arrays of the types that it found.")
        elif any(normal(state) != normal(left[0]) for state in left):
            raise TypeError(f"the branches of `{prim.name}` leave a value of {aval} in several "
                            f"states: {', '.join(map(str, left))}. Let each leave arrays of the "
                            "same types.")
        else:
            aval.state = left[0]


def normal(state: Any) -> Any:
    """Return ``state`` as loops and branches compare it: without weak types, if it says how."""
    return state.normalize() if hasattr(state, "normalize") else state


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
