"""How do programs read and write mutable arrays, and how do they become pure programs?

The names imported here are all that the spine calls of this chapter (``core.refs.chapter``).
"""

from saem.refs.arrays import addupdate, get, set, swap
from saem.refs.discharge import (
    batch_through_refs,
    exchange,
    pull_through_refs,
    pure_program,
    through_refs,
)
from saem.refs.operations import accumulate

__all__ = ["accumulate", "addupdate", "batch_through_refs", "exchange", "get", "pull_through_refs",
           "pure_program", "set", "swap", "through_refs"]
