"""How is a primitive of the user's differentiated?  (``jax.interpreters.ad``)

A jvp rule takes primals and tangents, a zero tangent being a ``Zero``; a transpose rule takes the
cotangent and the arguments, the linear ones being ``UndefinedPrimal``.

Read before: ``core.handles``.
Invariant: only primitives made by ``extend.core.Primitive`` take rules from here; those of the
engine have their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saem.core import lazy
from saem.core.avals import aval_of
from saem.core.handles import Handle, Zero, handle_of
from saem.core.handles import jvps as primitive_jvps
from saem.core.handles import transposes as primitive_transposes
from saem.core.primitive import UndefinedPrimal
from saem.core.trace import bind
from saem.ops.linear import add_any_p, zeros_of
from saem.transform.jvp import JVPTrace, JVPTracer

add_jaxvals_p = handle_of(add_any_p)


def is_undefined_primal(x: Any) -> bool:
    """Return whether ``x`` stands for a linear argument in a transpose rule."""
    return isinstance(x, UndefinedPrimal)


def zeros_like_aval(aval: Any) -> Any:
    """Return zeros of ``aval``."""
    return zeros_of(aval)


def instantiate_zeros(tangent: Any) -> Any:
    """Return ``tangent``, as an array of zeros if it is a ``Zero``."""
    return zeros_of(tangent.aval) if isinstance(tangent, Zero) else tangent


def add_tangents(x: Any, y: Any) -> Any:
    """Return the sum of two tangents or cotangents, either of which may be a ``Zero``."""
    if isinstance(x, Zero):
        return y
    return x if isinstance(y, Zero) else bind(add_any_p, x, y)


add_jaxvals = add_tangents


def defjvp(primitive: Handle, *jvprules: Callable | None) -> None:
    """Give ``primitive`` one rule ``(tangent, *primals, **params)`` per argument, None for zero."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        total = None
        for rule, t in zip(jvprules, tangents):
            if rule is not None and not isinstance(t, Zero):
                part = rule(t, *primals, **params)
                total = part if total is None else add_tangents(total, part)
        return out, total

    primitive_jvps[primitive] = jvp


def defjvp2(primitive: Handle, *jvprules: Callable | None) -> None:
    """Do as ``defjvp``, with rules ``(tangent, result, *primals, **params)``."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        total: Any = Zero(aval_of(out).to_tangent_aval())
        for rule, t in zip(jvprules, tangents):
            if rule is not None and not isinstance(t, Zero):
                total = add_tangents(total, rule(t, out, *primals, **params))
        return out, total

    primitive_jvps[primitive] = jvp


def defbilinear(primitive: Handle, lhs_rule: Callable, rhs_rule: Callable) -> None:
    """Register that ``primitive`` is linear in each of two arguments, with the transposes for each.

    ``lhs_rule(ct, x, y, **params)`` gets the linear ``x`` as UndefinedPrimal; ``rhs_rule`` ``y``.
    """
    defjvp(primitive, lambda t, x, y, **params: primitive.bind(t, y, **params),
           lambda t, x, y, **params: primitive.bind(x, t, **params))

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        if is_undefined_primal(x):
            return (ct if isinstance(ct, Zero) else lhs_rule(ct, x, y, **params)), None
        return None, (ct if isinstance(ct, Zero) else rhs_rule(ct, x, y, **params))

    primitive_transposes[primitive] = transpose


def get_primitive_transpose(primitive: Handle) -> Callable:
    """Return the transpose rule of ``primitive``.  Raises: NotImplementedError if it has none."""
    try:
        return primitive_transposes[primitive]
    except KeyError:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for '{primitive}' not implemented. "
            "Define it: ad.primitive_transposes[p] = rule.") from None


def deflinear2(primitive: Handle, transpose_rule: Callable) -> None:
    """Register that ``primitive`` is linear in all arguments, with its transpose."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        return (primitive.bind(*primals, **params),
                primitive.bind(*map(instantiate_zeros, tangents), **params))

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose_rule


def deflinear(primitive: Handle, transpose_rule: Callable) -> None:
    """Register that ``primitive`` is linear; its transpose needs the cotangent alone."""
    deflinear2(primitive, lambda ct, *_, **params: transpose_rule(ct, **params))


__getattr__, __dir__ = lazy.namespace(__name__, {})

__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p",
    "add_tangents", "defbilinear", "defjvp", "defjvp2", "deflinear", "deflinear2",
    "get_primitive_transpose", "instantiate_zeros", "is_undefined_primal", "primitive_jvps",
    "primitive_transposes", "zeros_like_aval",
]
