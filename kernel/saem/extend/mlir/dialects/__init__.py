"""Which languages of MLIR can a program be read in?  (``jax.extend.mlir.dialects``)

Programs are written in ``stablehlo``, ``chlo`` and ``func``, with ``sdy`` for shardings.

Read before: ``extend.mlir``.
"""

from saem.core import lazy as _lazy

__getattr__, __dir__ = _lazy.namespace(__name__, {
    f"jaxlib.mlir.dialects.{name}": "" for name in (
        "arith", "builtin", "chlo", "func", "math", "memref", "mpmd", "scf", "sdy",
        "sparse_tensor", "stablehlo", "vector")
})
