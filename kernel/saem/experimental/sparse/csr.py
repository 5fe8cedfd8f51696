"""Where are the formats by rows and by columns?  (``jax.experimental.sparse.csr``)

Read before: ``sparse.coo``, which defines them.
"""

from saem.experimental.sparse.coo import (
    CSC,
    CSR,
    csr_fromdense,
    csr_matmat,
    csr_matvec,
    csr_todense,
)

__all__ = ["CSC", "CSR", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense"]
