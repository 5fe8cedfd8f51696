"""How do I see the program that a function traces to?

``make_jaxpr`` traces and returns the jaxpr, ``eval_shape`` only the types of the results.

Read before: ``transform.staging``.
Invariant: neither runs anything on a device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from saem.core import source, tree
from saem.core.arguments import (
    Parameters,
    abstract,
    abstract_arguments,
    check_callable,
    check_outputs,
)
from saem.core.avals import ShapeDtypeStruct
from saem.core.axes import Axis, bound
from saem.core.events import bus
from saem.core.jaxpr import ClosedJaxpr, Origin
from saem.core.refs import check_references, is_ref
from saem.core.sharded import sharding_of
from saem.transform.staging import trace_flat


def trace_function(fun: Callable, args: tuple, kwargs: dict[str, Any],
                   static_argnums: Iterable[int] = (), name: str = "make_jaxpr"
                   ) -> tuple[ClosedJaxpr, Any]:
    """Return the jaxpr of ``fun`` at ``args`` and ``kwargs``, and the structure of its result."""
    numbers = tuple(static_argnums)
    if numbers:
        Parameters(fun, numbers, None, None, None)  # refuses numbers that the function lacks
    static = {n % len(args) for n in numbers if -len(args) <= n < len(args)}
    dynamic = [x for i, x in enumerate(args) if i not in static]
    leaves, in_tree = tree.flatten((dynamic, kwargs))
    out_trees: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        given, keywords = in_tree.unflatten(values)
        rest = iter(given)
        full = [x if i in static else next(rest) for i, x in enumerate(args)]
        outs, out_tree = tree.flatten(fun(*full, **keywords))
        check_outputs(name, fun, outs, out_tree)
        out_trees.append(out_tree)
        return outs

    def names() -> list[tuple[str, str]]:
        positions = {i: x for i, x in enumerate(args) if i not in static}
        return Parameters(fun, None, None, None, None).leaf_names(positions, kwargs)

    reference = source.function_ref(fun) if bus.active else None
    avals = abstract_arguments(fun, leaves, names, abstract)
    if any(map(is_ref, avals)):
        check_references(getattr(fun, "__name__", "function"), name, leaves,
                         lambda: [path for path, _ in names()])
    closed = trace_flat(flat, avals, name=name, function=reference,
                        debug_name=getattr(fun, "__name__", ""))
    closed.jaxpr.origin = Origin("jit", fun, out_trees[0], arg_names=[n for n, _ in names()])
    return closed, out_trees[0]


def make_jaxpr(fun: Callable, static_argnums: int | Iterable[int] = (),
               axis_env: Iterable[tuple[Hashable, int]] | None = None,
               return_shape: bool = False) -> Callable[..., Any]:
    """Return the function that traces ``fun`` on example arguments and returns its jaxpr.

    Nothing is computed, so ShapeDtypeStructs will do as arguments.  Those in ``static_argnums`` are
    passed on as they are.  ``axis_env`` lists named axes, (name, size), that collectives may use.
    With ``return_shape`` the function returns (jaxpr, ShapeDtypeStructs of the results).

    >>> jax.make_jaxpr(lambda x: x * 2 + 1)(3.)
    { lambda ; a:f32[]. let
        b:f32[] = mul a 2.0:f32[]
        c:f32[] = add b 1.0:f32[]
      in (c,) }
    """
    check_callable(fun)
    named = [Axis(name, size) for name, size in axis_env or ()]
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @functools.wraps(fun)
    def make_jaxpr_f(*args: Any, **kwargs: Any) -> Any:
        with bound(*named):
            closed, out_tree = trace_function(fun, args, kwargs, numbers)
        if return_shape:
            return closed, out_tree.unflatten([_struct(a) for a in closed.out_avals])
        return closed

    name = f"make_jaxpr({getattr(fun, '__name__', fun)})"
    make_jaxpr_f.__name__ = make_jaxpr_f.__qualname__ = name
    return make_jaxpr_f


def _struct(aval: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type,
                            sharding=sharding_of(aval))


def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """Return the result of ``fun`` with a ShapeDtypeStruct for each array, computing nothing.

    >>> jax.eval_shape(lambda x: x @ x, jnp.ones((2, 2)))
    ShapeDtypeStruct(shape=(2, 2), dtype=float32)
    """
    check_callable(fun)
    closed, out_tree = trace_function(fun, args, kwargs, name="eval_shape")
    return out_tree.unflatten([_struct(a) for a in closed.out_avals])
