"""Which warnings and errors do sparse arrays raise?  (``jax.experimental.sparse.util``)

Read before: ``sparse.base``, which defines them.
"""

from saem.experimental.sparse.base import (
    CuSparseEfficiencyWarning,
    Shape,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    SparseInfo,
    nfold_vmap,
)

__all__ = ["CuSparseEfficiencyWarning", "Shape", "SparseEfficiencyError",
           "SparseEfficiencyWarning", "SparseInfo", "nfold_vmap"]
