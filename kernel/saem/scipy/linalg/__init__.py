"""What is the linear algebra of SciPy?  (``jax.scipy.linalg``)

This file only lists; decompositions are in ``factors``, systems of equations in ``equations``,
functions of matrices in ``functions``, matrices with a name in ``special_matrices``.

Read before: ``saem.numpy.linalg``.
Invariant: values are SciPy's, types those of jax.scipy.linalg (tests/kernel/test_scipy_linalg.py).
"""

# ruff: noqa: F401 - every import here is a public name

from saem.scipy.linalg.equations import (
    cho_factor,
    cho_solve,
    det,
    inv,
    lu_factor,
    lu_solve,
    solve,
    solve_sylvester,
    solve_triangular,
)
from saem.scipy.linalg.factors import (
    cholesky,
    eigh,
    eigh_tridiagonal,
    hessenberg,
    lu,
    polar,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    svd,
)
from saem.scipy.linalg.functions import expm, expm_frechet, funm, sqrtm
from saem.scipy.linalg.special_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
