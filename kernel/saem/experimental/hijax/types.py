"""How does a program define types of values that are no arrays, and operations on them?

A class derived from ``HiType`` is a type: ``lo_ty`` gives the types of the arrays that hold a
value, ``lower_val`` these arrays, ``raise_val`` the value that they hold; ``to_tangent_aval``,
``vspace_zero`` and ``vspace_add`` say what its derivatives are.  ``register_hitype`` gives it to
the values of a class.  An operation is an object of a class derived from ``HiPrimitive``, with the
methods ``abstract_eval``, ``to_lojax`` (what it does, as a function of values that hold arrays),
``jvp`` and ``transpose``.

Read before: ``core.hi_types``, ``core.handles``.  Read after: ``experimental.hijax.lowered``.
Invariant: a program shows such values and operations until it is lowered
(tests/kernel/test_hijax.py).
Source: observed behaviour of jax.experimental.hijax.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from saem.core.avals import aval_functions, aval_of
from saem.core.handles import Handle, UserOperation, Zero
from saem.core.hi_types import as_aval, as_type
from saem.core.primitive import NOT_LINEAR, Primitive, UndefinedPrimal, absent, primitive
from saem.core.trace import Tracer, bind


def refuse_mutable(what: str) -> NoReturn:
    """Raise: NotImplementedError, since values of such types do not change here."""
    raise NotImplementedError(
        f"{what} needs the mutable types of hijax, which Saem does not have. Keep such state in "
        "arrays and pytrees, or in references (jax.new_ref); in flax.nnx leave "
        "flax_hijax_variable off.")


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

    def str_short(self, short_dtypes: bool = False, **_options: Any) -> str:
        """Return how a jaxpr shows this type."""
        return str(self)


class MutableHiType:
    """Base of the types of values that are no arrays and change; operations on them are refused."""


class HiPspec:
    """Base of how values of a ``HiType`` are sharded."""


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Let values of ``val_cls`` have the type ``typeof_fn(value)``."""
    aval_functions[val_cls] = lambda value: as_aval(typeof_fn(value))


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

    def typing(self, *avals):
        found, effects = self.handle.abstract_eval(*map(as_type, avals), **self.given)
        if effects:
            refuse_mutable(f"the operation {self.name!r}")
        return list(map(as_aval, found)) if self.multiple_results else as_aval(found)

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


def cur_qdd(x: Any) -> NoReturn:
    """Raise: NotImplementedError, since no value of Saem's has such a state."""
    refuse_mutable("cur_qdd")


@primitive("raise_val")
class RaiseVal(Primitive):
    """The value of ``ty`` that arrays hold; an operation, so that they may be traced."""

    ty: Any

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
