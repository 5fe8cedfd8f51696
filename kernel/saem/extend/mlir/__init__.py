"""How does a tool read the StableHLO of a program as objects?  (``jax.extend.mlir``)

``jax.jit(f).lower(x).compiler_ir()`` is an ``ir.Module``; what it is made of, how it is walked and
how it is written down stands here.  The modules are jaxlib's own, loaded when first named.

Read before: ``core.lazy``, ``_jaxlib``.
Invariant: nothing here is a copy, so an operation of a lowered program is one of ``ir``
(tests/kernel/test_extend.py).
"""

from saem.core import lazy as _lazy

# From a module to the names it offers here ("" for the module itself).
__getattr__, __dir__ = _lazy.namespace(__name__, {
    "saem._jaxlib": "deserialize_portable_artifact hlo_to_stablehlo refine_polymorphic_shapes "
                    "serialize_portable_artifact",
    "saem.extend.mlir.dialects": "",
    "jaxlib.mlir.ir": "",
    "jaxlib.mlir.passmanager": "",
})
