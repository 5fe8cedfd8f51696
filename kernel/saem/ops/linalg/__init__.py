"""Which decompositions and solvers of matrices does the engine know by itself?

Each file is one family of primitives with its six rules; ``custom_calls`` writes the calls of
LAPACK (on CPU) and cuSOLVER (on GPU), ``algebra`` has the few matrix operations that derivative
rules are written with.

Read before: ``ops.contract``.  Read after: ``saem.lax.linalg``, ``saem.numpy.linalg``.
Invariant: a primitive works on the last axes of its operands, side by side over the leading ones.
"""

from saem.ops.linalg import (  # noqa: F401 - importing registers the primitives
    cholesky,
    eigen,
    lu,
    qr,
    reduction,
    svd,
    triangular,
    tridiagonal,
)
