"""By which name do libraries know a runtime's programs?  (``jax.extend.ifrt_programs``)

Read before: ``_jaxlib``.
Invariant: the names are jaxlib's own objects.
"""

from saem._jaxlib import ifrt_programs

__all__ = ["ifrt_programs"]
