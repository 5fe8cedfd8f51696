"""Where is the cache of compiled programs on disk?  (``jax.experimental.compilation_cache``)"""

from saem.core import lazy as _lazy

__getattr__, __dir__ = _lazy.namespace(__name__, {
    "saem.experimental.compilation_cache.compilation_cache": ""})
