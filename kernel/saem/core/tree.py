"""How does the engine see a list of dicts of arrays as a flat list, and put it back together?

A *pytree* is a nest of containers; a value that is not a known container is a leaf.  ``flatten``
gives the leaves in order and a ``PyTreeDef`` that remembers the nest.  The work is done by jaxlib's
C++ registry, the same one the fast path of ``jit`` uses; this file adds key paths, and errors that
name the place where two trees differ.

Read before: ``saem._jaxlib``.  Read after: ``core.containers``, ``transform`` (all transformations
flatten arguments).
Invariant: ``unflatten(structure(t), leaves(t))`` equals ``t``; None, tuple, list, dict,
namedtuple, OrderedDict and defaultdict are containers (tests/kernel/test_tree.py).
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from saem import _jaxlib
from saem.core.errors import ArgumentError, ArgumentTypeError, explained

if TYPE_CHECKING:  # jaxlib gives no types for its C++ classes
    PyTreeDef = Any
else:
    PyTreeDef = _jaxlib.PyTreeDef
default_registry = _jaxlib.registry
# Under this name a pickled tree definition finds it again.
default_registry.__name__, default_registry.__module__ = "default_registry", __name__

SequenceKey = _jaxlib.pytree.SequenceKey
DictKey = _jaxlib.pytree.DictKey
GetAttrKey = _jaxlib.pytree.GetAttrKey
FlattenedIndexKey = _jaxlib.pytree.FlattenedIndexKey

KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath = tuple[KeyEntry, ...]
IsLeaf = Callable[[Any], bool] | None

_registry_flatten = default_registry.flatten
_registry_flatten_with_path = default_registry.flatten_with_path

_MISSING = object()


# -- taking apart and putting together -------------------------------------------------------------


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Return the leaves of ``tree``, in order, and its structure.

    ``is_leaf(node)`` true stops the descent there.  Dicts are ordered by sorted key.

    >>> jax.tree.flatten({"b": 2, "a": [1, 3]})
    ([1, 3, 2], PyTreeDef({'a': [*, *], 'b': *}))
    """
    return _registry_flatten(tree, is_leaf)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of ``tree``, in order.

    >>> jax.tree.leaves({"b": 2, "a": [1, 3]})
    [1, 3, 2]
    """
    return _registry_flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """Return the structure of ``tree``: what remains when its leaves are taken out.

    >>> jax.tree.structure({"b": 2, "a": [1, 3]})
    PyTreeDef({'a': [*, *], 'b': *})
    """
    return _registry_flatten(tree, is_leaf)[1]


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Return the tree with structure ``treedef`` and the given leaves.

    Raises: ValueError for too few or too many leaves.

    >>> jax.tree.unflatten(jax.tree.structure({"a": 0, "b": 0}), [1, 2])
    {'a': 1, 'b': 2}
    """
    return treedef.unflatten(leaves)


def map_(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Return ``tree`` with ``f(leaf, *subtrees)`` in place of each leaf.

    Each tree of ``rest`` has ``tree``'s structure, or more below its leaves.
    Raises: ValueError where structures differ, naming the path and what differs.

    >>> jax.tree.map(lambda x, y: x + y, {"a": 1, "b": 2}, {"a": 10, "b": 20})
    {'a': 11, 'b': 22}
    """
    flat, treedef = _registry_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten(f(x) for x in flat)  # map would end where f raises StopIteration
    others = [_flatten_up_to("tree_map tree", treedef, other) for other in rest]
    return treedef.unflatten(f(*xs) for xs in zip(flat, *others))


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Return (key path, leaf) for each leaf, and the structure.

    With ``is_leaf_takes_path``, ``is_leaf(path, node)``.

    >>> jax.tree.flatten_with_path({"a": [1, 3]})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 1), ((DictKey(key='a'), SequenceKey(idx=1)), 3)]
    """
    if is_leaf is None or is_leaf_takes_path:
        return _registry_flatten_with_path(tree, is_leaf)
    return _registry_flatten_with_path(tree, lambda _, node: is_leaf(node))


def leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Return (key path, leaf) for each leaf.

    >>> jax.tree.leaves_with_path({"a": [1, 3]})
    [((DictKey(key='a'), SequenceKey(idx=0)), 1), ((DictKey(key='a'), SequenceKey(idx=1)), 3)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Return ``tree`` with ``f(path, leaf, *subtrees)`` in place of each leaf.

    Raises: ValueError where structures differ, naming the path and what differs.

    >>> jax.tree.map_with_path(lambda path, x: jax.tree_util.keystr(path), {"a": [1, 3]})
    {'a': ["['a'][0]", "['a'][1]"]}
    """
    flat, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [_flatten_up_to("tree_map_with_path tree", treedef, other) for other in rest]
    return treedef.unflatten(f(path, leaf, *xs) for (path, leaf), *xs in zip(flat, *others))


def all_(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Return whether every leaf is true.

    >>> jax.tree.all({"a": True, "b": [True, False]})
    False
    """
    return all(_registry_flatten(tree, is_leaf)[0])


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Return whether every element of ``iterable`` is a leaf.

    >>> jax.tree_util.all_leaves([1, 2.0])
    True
    """
    if is_leaf is None:
        return _jaxlib.pytree.all_leaves(default_registry, iterable)
    items = list(iterable)
    flat = leaves(items, is_leaf)
    return len(flat) == len(items) and all(a is b for a, b in zip(flat, items, strict=True))


def reduce_(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _MISSING,
    is_leaf: IsLeaf = None,
) -> Any:
    """Combine the leaves from left to right, starting with ``initializer`` if given.

    >>> jax.tree.reduce(lambda x, y: x + y, {"a": 1, "b": [2, 3]})
    6
    """
    start = () if initializer is _MISSING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *start)


def reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _MISSING,
    is_leaf: IsLeaf = None,
) -> Any:
    """Combine the leaves pairwise in a balanced tree: depth log₂(number of leaves).

    Raises: TypeError for a tree without leaves when no ``identity`` is given.

    >>> jax.tree.reduce_associative(lambda x, y: x + y, {"a": 1, "b": [2, 3]})
    6
    """
    flat = leaves(tree, is_leaf)
    if flat:
        return _combine_halves(operation, flat)
    if identity is _MISSING:
        raise explained(
            ArgumentTypeError,
            "tree.C4",
            "Must specify identity for parallel reduction of empty sequence.",
            advice="Try: reduce_associative(operation, tree, identity=...)",
        )
    return identity


def _combine_halves(operation: Callable[[Any, Any], Any], items: list[Any]) -> Any:
    if len(items) == 1:
        return items[0]
    middle = len(items) // 2
    left, right = items[:middle], items[middle:]
    return operation(_combine_halves(operation, left), _combine_halves(operation, right))


def transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None,
              pytree_to_transpose: Any) -> Any:
    """Return an ``outer`` of ``inner``s as an ``inner`` of ``outer``s.

    ``inner_treedef`` None: that of the first.  Leaves are taken in order, whatever holds them.
    Raises: TypeError when there are not as many as in such a nest.

    >>> jax.tree.transpose(jax.tree.structure([0, 0]), jax.tree.structure((0, 0)), [(1, 2), (3, 4)])
    ([1, 3], [2, 4])
    """
    flat, treedef = flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    size = inner_treedef.num_leaves
    # Only counted: data that a user's node keeps may hold the structure of what was inside it.
    if treedef.num_leaves != outer_treedef.num_leaves * size:
        raise explained(
            ArgumentTypeError,
            "tree.C3",
            "Mismatch: transpose needs a tree with structure\n"
            f"    {outer_treedef.compose(inner_treedef)}\n"
            f"  but got one with structure\n    {treedef}",
            advice="Outermost must be outer_treedef, with an inner_treedef at each of its leaves.",
        )
    return inner_treedef.unflatten(outer_treedef.unflatten(flat[i::size]) for i in range(size))


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None, *,
                     name: str = "broadcast_prefix prefix_tree") -> list[Any]:
    """Return, for each leaf of ``full_tree``, the leaf of ``prefix_tree`` above it.

    ``is_leaf`` is called on nodes of ``prefix_tree`` only.  ``name`` is what errors call that.
    Raises: ValueError where ``prefix_tree`` is not a prefix, naming the path and what differs.
    """
    flat, treedef = _registry_flatten(prefix_tree, is_leaf)
    below = _flatten_up_to(name, treedef, full_tree)
    result: list[Any] = []
    for leaf, subtree in zip(flat, below, strict=True):
        result.extend([leaf] * structure(subtree).num_leaves)
    return result


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Return ``full_tree`` with each leaf replaced by the leaf of ``prefix_tree`` above it.

    Raises: ValueError where ``prefix_tree`` is not a prefix, naming the path and what differs.

    >>> jax.tree.broadcast(1, [(0, 0), 0])
    [(1, 1), 1]
    """
    return unflatten(structure(full_tree), broadcast_prefix(prefix_tree, full_tree, is_leaf))


# -- one level, and structures ---------------------------------------------------------------------


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """Return the children of the topmost container and what else it remembers.

    Raises: ValueError for a leaf.

    >>> jax.tree_util.flatten_one_level([1, [2, 3]])[0]
    [1, [2, 3]]
    """
    return _container(tree, default_registry.flatten_one_level(tree))


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """Return (key, child) for the children of the topmost container, and what else it remembers.

    Raises: ValueError for a leaf.
    """
    pairs, aux = _container(tree, default_registry.flatten_one_level_with_keys(tree))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        # The registry names every field of a namedtuple by the first one.
        names = map(GetAttrKey, tree._fields)
        pairs = [(name, child) for name, (_, child) in zip(names, pairs, strict=True)]
    return pairs, aux


def _container(tree: Any, level: tuple[Any, Any] | None) -> tuple[Any, Any]:
    if level is None:
        raise explained(
            ArgumentError,
            "tree.C2",
            f"can't tree-flatten type: {type(tree)}",
            advice="It is a leaf. register_pytree_node makes a class a container.",
        )
    return level


def is_tree_node(typ: type) -> bool:
    """Return whether instances of ``typ`` are containers."""
    return default_registry.is_node(typ)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the children of the topmost container.

    >>> jax.tree_util.treedef_children(jax.tree.structure([1, (2, 3)]))
    [PyTreeDef(*), PyTreeDef((*, *))]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return whether ``treedef`` is a single node: a leaf, or an empty container such as None.

    >>> jax.tree_util.treedef_is_leaf(jax.tree.structure(1))
    True
    """
    return treedef.num_nodes == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple whose elements have the given structures.

    >>> jax.tree_util.treedef_tuple([jax.tree.structure(1), jax.tree.structure([1, 2])])
    PyTreeDef((*, [*, *]))
    """
    return _jaxlib.pytree.treedef_tuple(default_registry, list(treedefs))


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Return a key path as text: ``['w'][0].bias``, or with ``simple`` and '/' ``w/0/bias``.

    >>> jax.tree_util.keystr((jax.tree_util.DictKey("a"), jax.tree_util.SequenceKey(0)))
    "['a'][0]"
    """
    return separator.join(_key_name(key) if simple else str(key) for key in keys)


def _key_name(key: Any) -> str:
    if isinstance(key, (DictKey, FlattenedIndexKey)):
        return str(key.key)
    if isinstance(key, SequenceKey):
        return str(key.idx)
    return key.name if isinstance(key, GetAttrKey) else str(key)


# -- where two trees differ ------------------------------------------------------------------------


def _flatten_up_to(name: str, treedef: PyTreeDef, other: Any) -> list[Any]:
    """Return the subtrees of ``other`` at the leaves of ``treedef``, which errors call ``name``.

    Raises: ValueError where ``other`` lacks one of its containers, naming the path.
    """
    try:
        return treedef.flatten_up_to(other)
    except ValueError:
        found = difference(treedef, other)
        if found is None:  # jaxlib refuses it for a reason of its own
            raise
        path, what = found
        kind = what.partition(":")[0]
        raise explained(
            ArgumentError,
            "tree.C1",
            f"pytree structure error: {kind} at key path\n    {name}{keystr(path)}\n{what}",
            advice=f"first tree:  {treedef}\nother tree:  {structure(other)}\n"
            "The other tree must have the first one's containers; it may go deeper at its leaves.",
        ) from None


def difference(treedef: PyTreeDef, other: Any) -> tuple[KeyPath, str] | None:
    """Return the first key path where ``other`` lacks a container of ``treedef``, and what differs.

    Returns None when ``treedef`` is a prefix of ``other``.
    """
    node = treedef.node_data()
    if node is None:
        return None
    wanted, memory = node
    if type(other) is not wanted:
        return (), f"different types: {_kind(wanted)} and {_kind(type(other))}"
    pairs, other_memory = flatten_one_level_with_keys(other)
    pairs = list(pairs)
    children = treedef.children()
    if isinstance(other, dict):
        # The structure of a defaultdict remembers its factory besides its keys.
        with_factory = isinstance(other, collections.defaultdict)
        memories: tuple[Any, Any] = (memory, other_memory)
        mine, theirs = (list(m[1] if with_factory else m) for m in memories)
        if mine != theirs:
            what = "pytree metadata" if len(mine) == len(theirs) else "numbers of pytree children"
            return (), f"different {what}: {_different_keys(mine, theirs)}"
    if len(children) != len(pairs):
        lengths = f"{len(children)} and {len(pairs)}"
        return (), f"different lengths of {wanted.__name__}: {lengths}"
    if not isinstance(other, (list, tuple)) and type(other) is not dict and memory != other_memory:
        return (), f"different pytree metadata: {memory!r} and {other_memory!r}"
    for child, (key, value) in zip(children, pairs, strict=True):
        below = difference(child, value)
        if below is not None:
            return (key, *below[0]), below[1]
    return None


def _kind(typ: type) -> str:
    return "None" if typ is type(None) else typ.__name__


def _different_keys(mine: list[Any], theirs: list[Any]) -> str:
    """Return how the keys of two dicts differ, in words."""
    missing = [repr(key) for key in mine if key not in theirs]
    extra = [repr(key) for key in theirs if key not in mine]
    parts = []
    if missing:
        parts.append(f"only the first tree has {', '.join(missing)}")
    if extra:
        parts.append(f"only the other tree has {', '.join(extra)}")
    if not parts:
        parts.append(f"the same, but ordered {mine} and {theirs}")
    return "different keys: " + "; ".join(parts)
