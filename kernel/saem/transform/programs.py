"""How does one look at the program behind a function?

``make_jaxpr`` traces and returns the jaxpr, ``eval_shape`` only the types of the results.

Read before: ``transform.staging``.
Invariant: neither runs anything on a device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from saem.core import source, tree
from saem.core.avals import ShapeDtypeStruct, aval_of
from saem.core.axes import Axis, bound
from saem.core.events import bus
from saem.core.jaxpr import ClosedJaxpr
from saem.transform.staging import trace_flat


def trace_function(fun: Callable, args: tuple, kwargs: dict[str, Any],
                   static_argnums: Iterable[int] = (), name: str = "make_jaxpr"
                   ) -> tuple[ClosedJaxpr, Any]:
    """Return the jaxpr of ``fun`` at ``args`` and ``kwargs``, and the structure of its result."""
    static = {n % len(args) for n in static_argnums} if args else set()
    dynamic = [x for i, x in enumerate(args) if i not in static]
    leaves, in_tree = tree.flatten((dynamic, kwargs))
    out_trees: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        given, keywords = in_tree.unflatten(values)
        rest = iter(given)
        full = [x if i in static else next(rest) for i, x in enumerate(args)]
        outs, out_tree = tree.flatten(fun(*full, **keywords))
        out_trees.append(out_tree)
        return outs

    reference = source.function_ref(fun) if bus.active else None
    closed = trace_flat(flat, [aval_of(x) for x in leaves], name=name, function=reference,
                        debug_name=getattr(fun, "__name__", ""))
    return closed, out_trees[0]


def make_jaxpr(fun: Callable, static_argnums: int | Iterable[int] = (), axis_env: Any = None,
               return_shape: bool = False, abstracted_axes: Any = None) -> Callable:
    """Return the function that, given example arguments, returns the jaxpr of ``fun``.

    ``axis_env`` names axes, as pairs of name and size, of which collectives may speak.
    With ``return_shape`` it returns (jaxpr, result types as ShapeDtypeStructs).
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r} of type {type(fun)}")
    if abstracted_axes:
        raise ValueError("make_jaxpr: abstracted_axes is not accepted; use concrete shapes.")
    named = [Axis(name, size) for name, size in axis_env or ()]
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @functools.wraps(fun)
    def make_jaxpr_f(*args: Any, **kwargs: Any) -> Any:
        with bound(*named):
            closed, out_tree = trace_function(fun, args, kwargs, numbers)
        if return_shape:
            return closed, out_tree.unflatten([_struct(a) for a in closed.out_avals])
        return closed

    return make_jaxpr_f


def _struct(aval: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """Return the result of ``fun`` with a ShapeDtypeStruct for each array, computing nothing."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r} of type {type(fun)}")
    closed, out_tree = trace_function(fun, args, kwargs, name="eval_shape")
    return out_tree.unflatten([_struct(a) for a in closed.out_avals])
