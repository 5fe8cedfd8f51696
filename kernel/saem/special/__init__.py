"""Special functions: error, gamma, beta, Bessel and zeta functions.

Read before: ``ops.maths``.  Read after: ``saem.scipy.special``.
"""
