"""Where is the compiler library?  (``jax.lib``)

JAX has emptied this module; what programs used of it is in ``saem.extend`` and ``saem.devices``.
"""

__all__: list[str] = []
