"""What everything else stands on: avals, primitives, the trace context, jaxprs, events.

It is also the public namespace ``jax.core``, whose few names are loaded when first named.
"""

from saem.core import lazy as _lazy

__getattr__, __dir__ = _lazy.namespace(__name__, {
    "saem.core.avals": "ShapedArray",
    "saem.core.jaxpr": "Atom eval_jaxpr",
    "saem.extend.readers": "AbstractValue ParamDict Value eval_context max_dim min_dim "
                         "pytype_aval_mappings",
    "saem.core.trace": "Tracer",
    "saem.extend.interpreters": "Trace",
    "saem.transform.compile_time": "ensure_compile_time_eval",
})
