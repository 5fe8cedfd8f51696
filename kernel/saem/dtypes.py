"""Which dtypes are there, beyond NumPy's?  The public names of jax.dtypes.

Read before: ``saem.core.dtypes``, ``saem.core.promotion``.  Read after: nothing.
Invariant: every public name of jax.dtypes is here (tests/kernel/test_dtypes.py).
"""

from saem.core.dtypes import (
    bfloat16,
    canonicalize_dtype,
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
    itemsize_bits,
    prng_key,
)
from saem.core.errors import TypePromotionError
from saem.core.promotion import result_type, scalar_type_of

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]
