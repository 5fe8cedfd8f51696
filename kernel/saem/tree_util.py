"""How do I make my own class a pytree?  The public names of jax.tree_util.

Read before: ``saem.core.tree``.  Read after: nothing.
Invariant: every public name of jax.tree_util is here (tests/kernel/test_tree.py).
"""

from saem.core.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    Partial,
    PyTreeDef,
    SequenceKey,
    all_leaves,
    default_registry,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)
from saem.core.tree import all_ as tree_all
from saem.core.tree import broadcast as tree_broadcast
from saem.core.tree import flatten as tree_flatten
from saem.core.tree import flatten_with_path as tree_flatten_with_path
from saem.core.tree import leaves as tree_leaves
from saem.core.tree import leaves_with_path as tree_leaves_with_path
from saem.core.tree import map_ as tree_map
from saem.core.tree import map_with_path as tree_map_with_path
from saem.core.tree import reduce_ as tree_reduce
from saem.core.tree import reduce_associative as tree_reduce_associative
from saem.core.tree import structure as tree_structure
from saem.core.tree import transpose as tree_transpose
from saem.core.tree import unflatten as tree_unflatten

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]
