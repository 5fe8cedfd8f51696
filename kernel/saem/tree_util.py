"""How do I make my own class a pytree?  The public names of jax.tree_util.

Read before: ``saem.core.tree``.  Read after: nothing.
Invariant: every public name of jax.tree_util is here (tests/kernel/test_tree.py).
"""

from saem.core import tree
from saem.core.containers import (
    Partial,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from saem.core.naming import called
from saem.core.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    PyTreeDef,
    SequenceKey,
    all_leaves,
    default_registry,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    keystr,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)

tree_all = called("tree_all", tree.all_)
tree_broadcast = called("tree_broadcast", tree.broadcast)
tree_flatten = called("tree_flatten", tree.flatten)
tree_flatten_with_path = called("tree_flatten_with_path", tree.flatten_with_path)
tree_leaves = called("tree_leaves", tree.leaves)
tree_leaves_with_path = called("tree_leaves_with_path", tree.leaves_with_path)
tree_map = called("tree_map", tree.map_)
tree_map_with_path = called("tree_map_with_path", tree.map_with_path)
tree_reduce = called("tree_reduce", tree.reduce_)
tree_reduce_associative = called("tree_reduce_associative", tree.reduce_associative)
tree_structure = called("tree_structure", tree.structure)
tree_transpose = called("tree_transpose", tree.transpose)
tree_unflatten = called("tree_unflatten", tree.unflatten)

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
