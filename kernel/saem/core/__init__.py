"""What does everything else build on?  Avals, primitives, the trace context, jaxprs, events.

It is also the public namespace ``jax.core``, whose few names are loaded when first named.  Those
that moved to ``jax.extend.core`` are found here too, and as in JAX they are deprecated here.
"""

import importlib as _importlib
import warnings as _warnings
from typing import Any as _Any

from saem.core import lazy as _lazy

# From a name that moved, and is deprecated here, to what its warning advises.
_MOVED = {
    **{name: f" Use jax.extend.core.{name}." for name in (
        "CallPrimitive DebugInfo DropVar Effect Effects check_jaxpr concrete_or_error "
        "find_top_trace gensym get_opaque_trace_state jaxprs_in_params new_jaxpr_eqn no_effects "
        "primal_dtype_to_tangent_dtype valid_jaxtype").split()},
    **{name: f" Use jax.errors.{name}." for name in (
        "InconclusiveDimensionOperation", "JaxprTypeError")},
    **dict.fromkeys(["nonempty_axis_env_DO_NOT_USE", "unsafe_am_i_under_a_jit_DO_NOT_USE",
                     "unsafe_am_i_under_a_vmap_DO_NOT_USE", "unsafe_get_axis_names_DO_NOT_USE"],
                    ""),
}
# Names that are deprecated and did not move.
_LAST = ("is_concrete", "is_constant_dim", "is_constant_shape", "pytype_aval_mappings")

_find, __dir__ = _lazy.namespace(__name__, {
    "saem.core.avals": "ShapedArray",
    "saem.core.jaxpr": "Atom eval_jaxpr",
    "saem.extend.readers": "AbstractValue ParamDict Value eval_context max_dim min_dim",
    "saem.core.trace": "Tracer",
    "saem.extend.interpreters": "Trace",
    "saem.transform.compile_time": "ensure_compile_time_eval",
})


def __getattr__(name: str) -> _Any:
    if name not in _MOVED and name not in _LAST:
        return _find(name)
    _warnings.warn(f"jax.core.{name} is deprecated.{_MOVED.get(name, '')}", DeprecationWarning,
                   stacklevel=2)
    home = "saem.extend.core" if name in _MOVED else "saem.extend.readers"
    return getattr(_importlib.import_module(home), name)
