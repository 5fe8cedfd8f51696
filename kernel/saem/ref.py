"""What does one do with mutable arrays?  (``jax.ref``)"""

from saem.core.refs import AbstractRef
from saem.refs.arrays import Ref, addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref",
           "set", "swap"]
