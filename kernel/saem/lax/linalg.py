"""What are the decompositions under ``saem.numpy.linalg``?  (``jax.lax.linalg``)

The public names of that namespace; each is defined in ``saem.linalg``, the place to read.

Read before: ``saem.lax``.
Invariant: nothing is defined here but other names for what the rooms of operations have.
"""

# ruff: noqa: F401 - every import here is a public name

from __future__ import annotations

from typing import Any

from saem.core.handles import primitive_called
from saem.lax.polar import qdwh
from saem.linalg.algebra import symmetric_product
from saem.linalg.cholesky import cholesky, cholesky_update
from saem.linalg.eigen import EighImplementation, EigImplementation, eig, eigh
from saem.linalg.lu import lu, lu_pivots_to_permutation
from saem.linalg.qr import householder_product, ormqr, qr
from saem.linalg.reduction import hessenberg, schur
from saem.linalg.svd import SvdAlgorithm, svd
from saem.linalg.triangular import triangular_solve
from saem.linalg.tridiagonal import tridiagonal, tridiagonal_solve


def __getattr__(name: str) -> Any:
    """Return the primitive ``linalg.cholesky_p`` by its name (see ``saem.core.handles``)."""
    handle = primitive_called(name) if name.endswith("_p") else None
    if handle is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return handle
