"""What does one do with mutable arrays?  (``jax.ref``)"""

from saem.control.refs import Ref, addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap
from saem.core.refs import AbstractRef

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref",
           "set", "swap"]
