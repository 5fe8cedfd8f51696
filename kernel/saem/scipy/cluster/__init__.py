"""The public namespace ``jax.scipy.cluster``."""

from saem.core import lazy as _lazy

__getattr__, __dir__ = _lazy.namespace(__name__, {"saem.scipy.cluster.vq": ""})
