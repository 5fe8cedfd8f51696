"""What are the decompositions under ``saem.numpy.linalg``?  (``jax.lax.linalg``)

The public names of that namespace; each is defined in ``saem.ops.linalg``, the place to read.

Read before: ``saem.lax``.
Invariant: nothing is defined here but other names for what the ops room has.
"""

# ruff: noqa: F401 - every import here is a public name

from __future__ import annotations

from typing import Any

from saem.core.handles import primitive_called
from saem.lax.polar import qdwh
from saem.ops.linalg.algebra import symmetric_product
from saem.ops.linalg.cholesky import cholesky, cholesky_update
from saem.ops.linalg.eigen import EighImplementation, EigImplementation, eig, eigh
from saem.ops.linalg.lu import lu, lu_pivots_to_permutation
from saem.ops.linalg.qr import householder_product, ormqr, qr
from saem.ops.linalg.reduction import hessenberg, schur
from saem.ops.linalg.svd import SvdAlgorithm, svd
from saem.ops.linalg.triangular import triangular_solve
from saem.ops.linalg.tridiagonal import tridiagonal, tridiagonal_solve


def __getattr__(name: str) -> Any:
    """Return the primitive ``linalg.cholesky_p`` by its name (see ``saem.core.handles``)."""
    handle = primitive_called(name) if name.endswith("_p") else None
    if handle is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return handle
