"""Which compiler library is it?  (``jax.lib``)

JAX has emptied this module but for the version of jaxlib; what programs used of it is in
``saem.extend`` and ``saem.devices``.
"""

from saem._jaxlib import __version__ as __version__

__all__: list[str] = []
