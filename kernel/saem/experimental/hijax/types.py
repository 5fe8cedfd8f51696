"""How does a program define types of values that are no arrays, and operations on them?

A class derived from ``HiType`` is a type: ``lo_ty`` gives the types of the arrays that hold a
value, ``lower_val`` these arrays, ``raise_val`` the value that they hold; ``to_tangent_aval``,
``vspace_zero`` and ``vspace_add`` say what its derivatives are.  ``register_hitype`` gives it to
the values of a class.  An operation is an object of a class derived from ``HiPrimitive``, with the
methods ``abstract_eval``, ``to_lojax`` (what it does, as a function of values that hold arrays),
``jvp`` and ``transpose``.

Values of a ``MutableHiType`` change: ``cur_qdd`` of one is its state, which says which arrays hold
it now, and ``abstract_eval`` of an operation that changes it replaces that (``mutable_qdd``).

Read before: ``core.hi_types``, ``core.handles``.  Read after: ``experimental.hijax.lowered``.
Invariant: a program shows such values and operations until it is lowered
(tests/kernel/test_hijax.py).
Source: observed behaviour of jax.experimental.hijax.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from saem.core.avals import ShapedArray, aval_functions, aval_of
from saem.core.handles import Handle, UserOperation, Zero
from saem.core.hi_types import AbstractHigh, as_aval, as_type, is_mutable
from saem.core.primitive import NOT_LINEAR, Primitive, UndefinedPrimal, absent, primitive
from saem.core.trace import Tracer, bind


class HiType:
    """Base of the types of values that are no arrays."""

    is_high = True
    has_qdd = False

    def lo_ty(self) -> list[Any]:
        """Return the types of the arrays that hold a value."""
        raise NotImplementedError(f"subclass {type(self)} must implement `lo_ty`")

    def lower_val(self, hi_val: Any) -> list[Any]:
        """Return the arrays that hold ``hi_val``."""
        raise NotImplementedError(f"subclass {type(self)} must implement `lower_val`")

    def raise_val(self, *lo_vals: Any) -> Any:
        """Return the value that arrays hold."""
        raise NotImplementedError(f"subclass {type(self)} must implement `raise_val`")

    def to_tangent_aval(self) -> Any:
        """Return the type of tangents."""
        raise NotImplementedError(f"subclass {type(self)} must implement `to_tangent_aval`")

    def to_ct_aval(self) -> Any:
        """Return the type of cotangents, by default that of tangents."""
        return self.to_tangent_aval()

    def vspace_zero(self) -> Any:
        """Return the zero of this type, as a type of tangents."""
        raise NotImplementedError(f"subclass {type(self)} must implement `vspace_zero`")

    def vspace_add(self, x: Any, y: Any) -> Any:
        """Return the sum of two values of this type, as a type of tangents."""
        raise NotImplementedError(f"subclass {type(self)} must implement `vspace_add`")

    def leading_axis_spec(self) -> Any:
        """Return what names the axis along which ``scan`` takes values apart and stacks them."""
        raise NotImplementedError(f"subclass {type(self)} must implement `leading_axis_spec`")

    def dec_rank(self, size: int, spec: Any) -> Any:
        """Return the type of one of ``size`` values of which this is the type of a stack."""
        raise NotImplementedError(f"subclass {type(self)} must implement `dec_rank`")

    def inc_rank(self, size: int, spec: Any) -> Any:
        """Return the type of a stack of ``size`` values of this type."""
        raise NotImplementedError(f"subclass {type(self)} must implement `inc_rank`")

    def str_short(self, short_dtypes: bool = False, **_options: Any) -> str:
        """Return how a jaxpr shows this type."""
        return str(self)


class MutableHiType:
    """Base of the types of values that are no arrays and change while a program runs.

    The *state* of a value says which arrays it holds now, as the value's method ``cur_qdd`` returns
    it: an object of a class of the program's own, with ``==`` and a hash.
    """

    is_high = True
    has_qdd = True

    def lo_ty(self) -> list[Any]:
        """Raise: AssertionError, since which arrays hold a value depends on its state."""
        raise AssertionError("mutable hitypes should use lo_ty_qdd instead: which arrays hold a "
                             "value follows from its state")

    def lo_ty_qdd(self, state: Any) -> list[Any]:
        """Return the types of the arrays that hold a value in ``state``."""
        raise _lacks(self, "lo_ty_qdd")

    def new_from_loval(self, state: Any, *lo_vals: Any) -> Any:
        """Return a value in ``state`` that arrays hold."""
        raise _lacks(self, "new_from_loval")

    def read_loval(self, state: Any, val: Any) -> list[Any]:
        """Return the arrays that hold ``val``, which is in ``state``."""
        raise _lacks(self, "read_loval")

    def update_from_loval(self, state: Any, val: Any, *lo_vals: Any) -> None:
        """Let ``val`` be in ``state``, held by other arrays."""
        raise _lacks(self, "update_from_loval")

    def to_tangent_aval(self) -> Any:
        """Return the type of tangents."""
        raise _lacks(self, "to_tangent_aval")

    def to_ct_aval(self) -> Any:
        """Return the type of cotangents, by default that of tangents."""
        return self.to_tangent_aval()

    def str_short(self, short_dtypes: bool = False, **_options: Any) -> str:
        """Return how a jaxpr shows this type."""
        return str(self)


def _lacks(ty: Any, method: str) -> AssertionError:
    return AssertionError(f"must override: the type {type(ty).__name__} has no method `{method}`")


class AvalQDD(NamedTuple):
    """The type of a value that changes, and the state in which it begins."""

    aval: Any
    qdd: Any

    has_qdd = True
    is_high = True

    def lo_ty(self) -> list[Any]:
        """Return the types of the arrays that hold the value."""
        return self.aval.lo_ty_qdd(self.qdd)

    def to_tangent_aval(self) -> AvalQDD:
        """Return the type of tangents, and their state."""
        return AvalQDD(self.aval.to_tangent_aval(), self.qdd.to_tangent_qdd())


class StateCell:
    """The state of an operand, which ``update`` replaces: an operation changes it."""

    __slots__ = ("_aval",)

    def __init__(self, aval: AbstractHigh):
        self._aval = aval

    @property
    def init_val(self) -> Any:
        """The state at the beginning of the program."""
        return self._aval.began

    @property
    def cur_val(self) -> Any:
        """The state now."""
        return self._aval.state

    def update(self, new: Any) -> None:
        """Let the operand be in the state ``new`` after the operation."""
        self._aval.state = new

    def __repr__(self) -> str:
        return f"StateCell(init_val={self.init_val}, cur_val={self.cur_val})"


class AvalMutableQDD(NamedTuple):
    """The type of an operand that changes, as ``abstract_eval`` gets it, and its state."""

    aval: Any
    mutable_qdd: StateCell


class HiPspec:
    """Base of how values of a ``HiType`` are sharded."""


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Let values of ``val_cls`` have the type ``typeof_fn(value)``.

    Of a ``MutableHiType`` a value needs a method ``cur_qdd`` that returns its state.
    """

    def type_of(value: Any) -> ShapedArray:
        ty = typeof_fn(value)
        return AbstractHigh(ty, value.cur_qdd()) if getattr(ty, "has_qdd", False) else as_aval(ty)

    aval_functions[val_cls] = type_of


class HiPrimitive(Handle):
    """Base of operations on values of a ``HiType``: ``operation.bind(*args, **params)``."""

    def __init__(self, name: str):
        super().__init__(name)

    def operation(self, params: dict[str, Any]) -> HiOperation:
        return HiOperation(self, params)

    def is_high(self, *avals: Any, **params: Any) -> bool:
        """Return True: it is lowered by ``to_lojax``."""
        return True

    def abstract_eval(self, *arg_avals: Any, **params: Any) -> tuple[Any, Any]:
        """Return the type (or types) of the result and the effects."""
        raise NotImplementedError(f"subclass {type(self)} must implement `abstract_eval`")

    def to_lojax(self, *values: Any, **params: Any) -> Any:
        """Return what the operation does with values that hold arrays."""
        raise NotImplementedError(f"subclass {type(self)} must implement `to_lojax`")

    def impl(self, *args: Any, **params: Any) -> Any:
        """Return what the operation gives outside of traces, by default what ``to_lojax`` does."""
        return self.to_lojax(*args, **params)

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        """Return the result and its tangent; tangents may be ``Zero``."""
        raise NotImplementedError(f"Differentiation rule for '{self.name}' not implemented")

    def transpose(self, *args: Any, **params: Any) -> Any:
        """Return cotangents of the operands, of which unknown ones are ``UndefinedPrimal``."""
        raise NotImplementedError(f"Transpose rule (for reverse-mode differentiation) for "
                                  f"'{self.name}' not implemented")


class HiOperation(UserOperation):
    """An operation of a ``HiPrimitive`` with its parameters: the rules call its methods."""

    types_varying = True  # its types name shardings, too

    def typing(self, *avals):
        given = [AvalMutableQDD(a.ty, StateCell(a)) if is_mutable(a) else as_type(a) for a in avals]
        found, effects = self.handle.abstract_eval(*given, **self.given)
        self.handle.effects |= frozenset(effects)
        return list(map(with_state, found)) if self.multiple_results else with_state(found)

    def jvp(self, primals, tangents):
        given = [Zero(aval_of(x).to_tangent_aval()) if t is None else t
                 for x, t in zip(primals, tangents)]
        rules: Any = self.handle
        out, moved = rules.jvp(primals, given, **self.given)
        if self.multiple_results:
            return list(out), [None if isinstance(t, Zero) else t for t in moved]
        return out, None if isinstance(moved, Zero) else moved

    def transpose(self, ct, *args):
        if self.multiple_results:
            avals = self.typing(*[x.aval if isinstance(x, UndefinedPrimal) else aval_of(x)
                                  for x in args])
            ct = [Zero(a.to_tangent_aval()) if c is None else c for a, c in zip(avals, ct)]
        rules: Any = self.handle
        found = rules.transpose(ct, *args, **self.given)
        return [None if isinstance(x, Zero) else x for x in found]

    def evaluate(self, *xs):
        raise NotImplementedError(f"the NumPy evaluator knows no values as '{self.name}' takes: "
                                  "lower the program first.")

    def eager(self, *xs):
        return self.handle.impl(*xs, **self.given)

    def batch(self, size, xs, dims):
        raise NotImplementedError(f"Batching rule for '{self.name}' not implemented")


def with_state(ty: Any) -> ShapedArray:
    """Return the abstract value of results of the type ``ty``, which may name a state."""
    return AbstractHigh(*ty) if isinstance(ty, AvalQDD) else as_aval(ty)


@primitive("raise_val")
class RaiseVal(Primitive):
    """The value of ``ty`` that arrays hold; an operation, so that they may be traced."""

    ty: Any

    types_varying = True
    transpose = NOT_LINEAR
    lower = absent("it is lowered by `raise_val` of its type", NotImplementedError)
    evaluate = absent("the NumPy evaluator knows no such values", NotImplementedError)
    batch = absent("values of types that a program defines are not mapped", NotImplementedError)

    def typing(self, *avals):
        return as_aval(self.ty)

    def eager(self, *xs):
        return self.ty.raise_val(*xs)

    def jvp(self, primals, tangents):
        if any(t is not None for t in tangents):
            raise NotImplementedError(f"a value of {self.ty} that was made of arrays without an "
                                      "operation (HiPrimitive) has no derivative.")
        return bind(self, *primals), None


def zero_of(ty: Any) -> Any:
    """Return the zero of ``ty``."""
    zero = ty.vspace_zero()
    return zero if isinstance(zero, Tracer) else bind(RaiseVal(ty), *ty.lower_val(zero))
