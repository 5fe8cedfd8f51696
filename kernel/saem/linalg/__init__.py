"""Which decompositions, solvers and further products of matrices does the engine know by itself?

Each file is one family of primitives with its six rules; ``custom_calls`` writes the calls of
LAPACK (on CPU) and cuSOLVER (on GPU), ``algebra`` has the few matrix operations that derivative
rules are written with.  Products of groups of rows and of scaled blocks stand beside
``ops.contract``, the product that everything uses.

Read before: ``ops.contract``.  Read after: ``saem.lax.linalg``, ``saem.numpy.linalg``.
Invariant: a primitive works on the last axes of its operands, side by side over the leading ones.
"""
