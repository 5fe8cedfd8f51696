"""What do libraries use that read programs or define primitives?  (``jax.extend.core``)

``Primitive("name")`` is a new primitive: give it ``def_impl``, ``def_abstract_eval``, and rules by
``saem.interpreters``.

Read before: ``core.handles``, ``extend.readers``.
Invariant: nothing is defined here but names of the core room.
"""

# ruff: noqa: F401 - every import here is a public name

from __future__ import annotations

from saem.core.effects import Effect
from saem.core.errors import InconclusiveDimensionOperation, JaxprTypeError
from saem.core.handles import Handle as Primitive
from saem.core.infer import check_jaxpr
from saem.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, Literal, Var, jaxpr_as_fun
from saem.core.provenance import DebugInfo
from saem.core.trace import concrete_or_error
from saem.effects.tokens import AbstractToken, Token
from saem.extend.core import primitives
from saem.extend.core.calls import CallPrimitive, TraceTag, call_impl
from saem.extend.readers import (
    Effects,
    JaxprEqn,
    array_types,
    find_top_trace,
    gensym,
    get_opaque_trace_state,
    jaxprs_in_params,
    mapped_aval,
    new_jaxpr_eqn,
    no_effects,
    nonempty_axis_env_DO_NOT_USE,
    primal_dtype_to_tangent_dtype,
    set_current_trace,
    subjaxprs,
    take_current_trace,
    unmapped_aval,
    unsafe_am_i_under_a_jit_DO_NOT_USE,
    unsafe_am_i_under_a_vmap_DO_NOT_USE,
    unsafe_get_axis_names_DO_NOT_USE,
    valid_jaxtype,
)
