"""Which functions are there for BCOO arrays?  (``jax.experimental.sparse.bcoo``)

Read before: ``bcoo_format`` (the format), ``bcoo_products``, ``bcoo_structure``.
Invariant: nothing is defined here.
"""

from saem.core import lazy
from saem.experimental.sparse.base import (
    CuSparseEfficiencyWarning,
    JAXSparse,
    Shape,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    SparseInfo,
    nfold_vmap,
)
from saem.experimental.sparse.bcoo_format import (
    BCOO,
    BCOOProperties,
    bcoo_eliminate_zeros,
    bcoo_extract,
    bcoo_fromdense,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
    bcoo_update_layout,
)
from saem.experimental.sparse.bcoo_products import (
    DotDimensionNumbers,
    bcoo_dot_general,
    bcoo_dot_general_sampled,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
)
from saem.experimental.sparse.bcoo_structure import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_conv_general_dilated,
    bcoo_dynamic_slice,
    bcoo_gather,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
)

__getattr__ = lazy.says_what_is_left_out(__name__)

__all__ = [
    "BCOO", "BCOOProperties", "CuSparseEfficiencyWarning", "DotDimensionNumbers", "JAXSparse",
    "Shape", "SparseEfficiencyError", "SparseEfficiencyWarning", "SparseInfo",
    "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_conv_general_dilated", "bcoo_dot_general",
    "bcoo_dot_general_sampled", "bcoo_dynamic_slice", "bcoo_eliminate_zeros", "bcoo_extract",
    "bcoo_fromdense", "bcoo_gather", "bcoo_multiply_dense", "bcoo_multiply_sparse",
    "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices",
    "bcoo_squeeze", "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose", "bcoo_update_layout",
    "nfold_vmap",
]
