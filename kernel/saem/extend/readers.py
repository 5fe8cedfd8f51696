"""What do programs that read, check or change jaxprs use besides the jaxprs themselves?

The smaller names of ``jax.core`` and ``jax.extend.core``: programs inside parameters, avals with an
axis more or less, the interpreter that is current, values that must be known.

Read before: ``core.jaxpr``, ``core.trace``.
Invariant: nothing in the engine stands on this file.
Source: the documentation of jax.core and jax.extend.core; observed behaviour of JAX 0.10.2.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from saem.core import axes, config, dimensions, dtypes
from saem.core.avals import ShapedArray, aval_functions, is_array_like
from saem.core.handles import Handle
from saem.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var
from saem.core.trace import Trace, concrete_or_none, current, eval_trace, state
from saem.transform.staging import StagingTrace

AbstractValue = ShapedArray
# From a class to what gives the aval of its values: libraries add classes that stand for arrays.
pytype_aval_mappings = aval_functions
Value = Any
ParamDict = dict[str, Any]
Effects = frozenset
no_effects: frozenset = frozenset()
array_types: set[type] = {
    np.ndarray, np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
    np.uint64, np.longlong, np.float16, np.float32, np.float64, np.complex64, np.complex128,
    *(kind for kind in vars(ml_dtypes).values()
      if isinstance(kind, type) and issubclass(kind, np.generic)),
}


class set_current_trace:
    """``with set_current_trace(trace):`` makes ``trace`` the interpreter inside the block."""

    def __init__(self, trace: Trace, check_leaks: bool = False):
        self.context = current(trace)
        # Whether every call must come to Python, as one that C++ answered would pass it by.
        self.staging = any(t.sees_all for t in trace.ancestors()) or None

    def __enter__(self) -> Trace:
        self.outside = config.staging.swap_local(self.staging)
        return self.context.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self.context.__exit__(*exc)
        config.staging.set_local(self.outside)


class take_current_trace:
    """``with take_current_trace() as trace:`` gives the current interpreter; none is inside."""

    def __enter__(self) -> Trace:
        trace = state.trace
        self.context = set_current_trace(eval_trace)
        self.context.__enter__()
        return trace

    def __exit__(self, *exc: Any) -> None:
        self.context.__exit__(*exc)


@contextlib.contextmanager
def eval_context() -> Iterator[None]:
    """Compute at once what is inside, also while a function is being traced."""
    with set_current_trace(eval_trace):
        yield


def is_concrete(x: Any) -> bool:
    """Return whether the numbers of ``x`` are known: it is no tracer, or one that has them."""
    return concrete_or_none(x) is not None


def is_constant_dim(d: Any) -> bool:
    """Return whether the size ``d`` of an axis is an int rather than a symbol."""
    return isinstance(d, (int, np.integer))


def is_constant_shape(s: Sequence[Any]) -> bool:
    """Return whether each axis of the shape ``s`` has an int as its size."""
    return all(map(is_constant_dim, s))


def find_top_trace(_: Any) -> Trace:
    """Return the interpreter that is current."""
    return state.trace


class OpaqueTraceState:
    """Which interpreter is current, whatever the settings; equal only to that of the same one."""

    __slots__ = ("trace",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: Trace):
        self.trace = trace

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, OpaqueTraceState) and self.trace is other.trace


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """Return what can be compared to learn whether tracing goes on in the same place."""
    return OpaqueTraceState(state.trace)


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Return whether a function is being traced into a program, that of a loop, say."""
    return any(isinstance(trace, StagingTrace) for trace in state.trace.ancestors())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Return whether a function is being mapped."""
    return any("vmap" in trace.stack for trace in state.trace.ancestors())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """Return the names of the axes in force."""
    return [axis.name for axis in axes.state.env]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Return whether there are named axes in force."""
    return bool(axes.state.env)


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Yield the programs inside the equations of ``jaxpr``, not those inside these."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def jaxprs_in_params(params: Mapping[str, Any]) -> Iterator[Jaxpr]:
    """Yield the programs among the parameters of an equation."""
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, Jaxpr):
                yield item
            elif isinstance(item, ClosedJaxpr):
                yield item.jaxpr


def new_jaxpr_eqn(invars: Sequence[Atom], outvars: Sequence[Var], primitive: Handle,
                  params: dict[str, Any], effects: Any, source_info: Any = None,
                  ctx: Any = None) -> Eqn:
    """Return the equation of ``primitive`` with ``params``; its effects are the primitive's own."""
    where, stack = (None, ()) if source_info is None else (source_info.source, source_info.stack)
    return Eqn(primitive.operation(params), list(invars), list(outvars), where, stack)


class _Equations(type):
    """Every equation is an instance, not only those that were made by the class."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Eqn)


class JaxprEqn(metaclass=_Equations):
    """An equation of a jaxpr; called, it does what ``new_jaxpr_eqn`` does."""

    def __new__(cls, invars: Sequence[Atom], outvars: Sequence[Var], primitive: Handle,
                params: dict[str, Any], effects: Any, source_info: Any, ctx: Any) -> Any:
        return new_jaxpr_eqn(invars, outvars, primitive, params, effects, source_info, ctx)


def gensym() -> Callable[[ShapedArray], Var]:
    """Return a function that makes a new variable of an aval."""
    return Var


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the aval of one example of a stack ``aval`` along ``axis``."""
    if axis is None:
        return aval
    shape = list(aval.shape)
    assert shape.pop(axis) == size
    return aval.update(shape=tuple(shape))


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None
                  ) -> ShapedArray:
    """Return the aval of a stack of ``size`` examples ``aval`` along ``axis``."""
    if axis is None:
        return aval
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """Return the dtype of tangents: ``float0`` for integers and booleans."""
    return dtypes.to_tangent_dtype(np.dtype(primal_dtype))


def valid_jaxtype(x: Any) -> bool:
    """Return whether ``x`` is an array or can stand for one."""
    return is_array_like(x)


def max_dim(d1: Any, d2: Any) -> Any:
    """Return the larger of two sizes of an axis."""
    return dimensions.larger(d1, d2)


def min_dim(d1: Any, d2: Any) -> Any:
    """Return the smaller of two sizes of an axis."""
    return dimensions.smaller(d1, d2)

