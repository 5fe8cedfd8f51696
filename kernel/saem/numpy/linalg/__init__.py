"""What is the linear algebra of NumPy?  (``jax.numpy.linalg``)

This file only lists.  Decompositions are in ``decompositions``, systems of equations in
``equations``, single numbers that describe a matrix in ``measures``.

Read before: ``saem.linalg``.
Invariant: values are NumPy's, types those of jax.numpy.linalg (tests/kernel/test_linalg.py).
"""

# ruff: noqa: F401 - every import here is a public name

from saem.numpy.linalg.decompositions import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from saem.numpy.linalg.equations import (
    inv,
    lstsq,
    matrix_power,
    pinv,
    solve,
    tensorinv,
    tensorsolve,
)
from saem.numpy.linalg.measures import (
    cond,
    det,
    matrix_norm,
    matrix_rank,
    norm,
    slogdet,
    trace,
    vector_norm,
)
from saem.numpy.linalg.products import (
    cross,
    diagonal,
    matmul,
    matrix_transpose,
    multi_dot,
    outer,
    tensordot,
    vecdot,
)
