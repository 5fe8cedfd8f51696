"""How do I flatten, map over and rebuild nested containers?  The public names of jax.tree.

Read before: ``saem.core.tree``.  Read after: ``saem.tree_util`` (the same, and registration).
Invariant: every public name of jax.tree is here (tests/kernel/test_tree.py).
"""

from saem.core.containers import static
from saem.core.naming import called
from saem.core.tree import (
    all_,
    broadcast,
    flatten,
    flatten_with_path,
    leaves,
    leaves_with_path,
    map_,
    map_with_path,
    reduce_,
    reduce_associative,
    structure,
    transpose,
    unflatten,
)

# The public names hide Python's own, so the core spells them with an underscore.
all = called("all", all_)
map = called("map", map_)
reduce = called("reduce", reduce_)

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]
