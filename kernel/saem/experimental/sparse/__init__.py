"""How does one compute with arrays that are mostly zeros?  (``jax.experimental.sparse``)

``BCOO`` and ``BCSR`` arrays are pytrees that ``jit``, ``grad`` and ``vmap`` take; their operators
do what they do on dense arrays, and ``sparsify`` lets a function written for dense arrays take
them::

    m = sparse.BCOO.fromdense(x)
    m @ v, m.T, m[2:], m.sum(0), sparse.sparsify(f)(m)

Read before: ``sparse.bcoo_format`` (start there), ``sparse.transform``.
Invariant: every function gives the array that the dense operation gives on ``todense()``
(tests/kernel/test_sparse.py).
"""

# ruff: noqa: F401 - every import here is a public name

from typing import Any

from saem.core import lazy as _lazy
from saem.experimental.sparse import (
    ad,
    api,
    bcoo,
    bcsr,
    coo,
    csr,
    linalg,
    random,
    transform,
    util,
)
from saem.experimental.sparse import (
    operators as _operators,
)
from saem.experimental.sparse.ad import grad, jacfwd, jacobian, jacrev, value_and_grad
from saem.experimental.sparse.api import empty, eye
from saem.experimental.sparse.base import (
    CuSparseEfficiencyWarning,
    JAXSparse,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
)
from saem.experimental.sparse.bcoo import (
    BCOO,
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_conv_general_dilated,
    bcoo_dot_general,
    bcoo_dot_general_sampled,
    bcoo_dynamic_slice,
    bcoo_extract,
    bcoo_fromdense,
    bcoo_gather,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_sort_indices,
    bcoo_squeeze,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
    bcoo_update_layout,
)
from saem.experimental.sparse.bcsr import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_fromdense,
    bcsr_sum_duplicates,
    bcsr_todense,
)
from saem.experimental.sparse.coo import (
    COO,
    CSC,
    CSR,
    coo_fromdense,
    coo_fromdense_p,
    coo_matmat,
    coo_matmat_p,
    coo_matvec,
    coo_matvec_p,
    coo_todense,
    coo_todense_p,
    csr_fromdense,
    csr_fromdense_p,
    csr_matmat,
    csr_matmat_p,
    csr_matvec,
    csr_matvec_p,
    csr_todense,
    csr_todense_p,
)
from saem.experimental.sparse.random import random_bcoo
from saem.experimental.sparse.transform import sparsify, todense, todense_p

__getattr__ = _lazy.says_what_is_left_out(__name__)


def __dir__() -> list[Any]:
    return [name for name in globals() if name[0] != "_"]
