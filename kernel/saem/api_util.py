"""What do libraries use that wrap functions as jit does?  (``jax.api_util``)

Read before: ``core.tree``, ``core.avals``.
Invariant: nothing in the engine stands on this file.
Source: observed behaviour of jax.api_util.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from saem.core import tree
from saem.core.avals import aval_of


def flatten_axes(name: str, treedef: Any, axis_tree: Any) -> list[Any]:
    """Return one entry of the prefix pytree ``axis_tree`` (None is an entry) for each leaf.

    Raises: ValueError naming ``name`` if it is no prefix.
    """
    like = treedef.unflatten([0] * treedef.num_leaves)
    try:
        return tree.broadcast_prefix(axis_tree, like, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ValueError(f"{name} specification must be a tree prefix of the corresponding value, "
                         f"got specification {axis_tree} for value tree {treedef}.") from error


def rebase_donate_argnums(donate_argnums: Iterable[int], static_argnums: Iterable[int]
                          ) -> tuple[int, ...]:
    """Return the numbers of the donated arguments once the static ones are taken out."""
    static = sorted(set(static_argnums))
    return tuple(sorted(n - sum(s < n for s in static) for n in set(donate_argnums)))


def safe_map(f: Callable, *args: Sequence[Any]) -> list[Any]:
    """Return ``f`` of the elements side by side.  Raises: ValueError for unequal lengths."""
    for number, xs in enumerate(args[1:], 2):
        if len(xs) != len(args[0]):
            how = "longer" if len(xs) > len(args[0]) else "shorter"
            raise ValueError(f"safe_map() argument {number} is {how} than argument 1")
    return [f(*xs) for xs in zip(*args)]


def shaped_abstractify(x: Any) -> Any:
    """Return the aval of ``x``."""
    return aval_of(x)


__all__ = ["flatten_axes", "rebase_donate_argnums", "safe_map", "shaped_abstractify"]
