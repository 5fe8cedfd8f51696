"""First-order primitives, by subject; ``saem.ops.families`` says what members of each share.

It is also the public namespace ``jax.ops``, whose few names are loaded when first named.
"""

from saem.core import lazy as _lazy

__getattr__, __dir__ = _lazy.namespace(__name__, {
    "saem.numpy.segments": "segment_max segment_min segment_prod segment_sum",
})
