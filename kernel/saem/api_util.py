"""What do libraries use that wrap functions as jit does?  (``jax.api_util``)

Read before: ``core.tree``, ``core.avals``.
Invariant: nothing in the engine stands on this file.
Source: observed behaviour of jax.api_util.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from saem.core import source, tree
from saem.core.arguments import Parameters, as_numbers
from saem.core.avals import ShapedArray, aval_of
from saem.core.provenance import DebugInfo
from saem.extend.linear_util import Store, WrappedFun, transformation2, transformation_with_aux2


def flatten_axes(name: str, treedef: Any, axis_tree: Any, *, kws: bool = False,
                 tupled_args: bool = False) -> list[Any]:
    """Return one entry of the prefix pytree ``axis_tree`` (None is an entry) for each leaf.

    With ``kws``, ``treedef`` is a pair of arguments and named arguments; with ``tupled_args`` it is
    a tuple of arguments, which the message says.
    Raises: ValueError naming ``name`` if it is no prefix.
    """
    like = treedef.unflatten([0] * treedef.num_leaves)
    try:
        return tree.broadcast_prefix(axis_tree, like, is_leaf=lambda x: x is None, name=name)
    except ValueError as error:
        raise ValueError(f"{name} specification must be a tree prefix of the corresponding value, "
                         f"got specification {axis_tree} for value tree {treedef}."
                         + (" A specification for several arguments is a tuple."
                            if kws or tupled_args else "")) from error


def rebase_donate_argnums(donate_argnums: Iterable[int], static_argnums: Iterable[int]
                          ) -> tuple[int, ...]:
    """Return the numbers of the donated arguments once the static ones are taken out."""
    static = sorted(set(static_argnums))
    return tuple(sorted(n - sum(s < n for s in static) for n in set(donate_argnums)))


def safe_map(f: Callable, *args: Sequence[Any]) -> list[Any]:
    """Return ``map(f, *args)`` as a list, for sequences of one length.

    Raises: ValueError if a sequence is longer or shorter than the first.

    >>> safe_map(lambda x, y: x + y, [1, 2], [10, 20])
    [11, 22]
    """
    for number, xs in enumerate(args[1:], 2):
        if len(xs) != len(args[0]):
            how = "longer" if len(xs) > len(args[0]) else "shorter"
            raise ValueError(f"safe_map() argument {number} is {how} than argument 1")
    return [f(*xs) for xs in zip(*args)]


def shaped_abstractify(x: Any) -> Any:
    """Return the aval of ``x``, which may be one itself.  Raises: TypeError for another object."""
    return x if isinstance(x, ShapedArray) else aval_of(x)


@transformation_with_aux2
def flatten_fun(call: Callable, store: Store, in_tree: Any, *leaves: Any) -> list[Any]:
    """Take the leaves of ``(args, kwargs)``, return those of the result, whose structure is kept.

    Given a ``WrappedFun`` and ``in_tree``, it returns the flat function and its result's structure.
    """
    args, kwargs = in_tree.unflatten(leaves)
    results, out_tree = tree.flatten(call(*args, **kwargs))
    store.store(out_tree)
    return results


@transformation_with_aux2
def flatten_fun_nokwargs(call: Callable, store: Store, in_tree: Any, *leaves: Any) -> list[Any]:
    """Do as ``flatten_fun`` where ``in_tree`` is the structure of the arguments by position."""
    results, out_tree = tree.flatten(call(*in_tree.unflatten(leaves)))
    store.store(out_tree)
    return results


class _Fixed:
    """An argument that stays as it is, compared as static arguments of jit are."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Fixed) and type(other.value) is type(self.value) \
            and bool(other.value == self.value)

    def __hash__(self) -> int:
        return hash(self.value)


@transformation2
def _with_fixed(call: Callable, numbers: tuple[int, ...], fixed: tuple[_Fixed, ...],
                *dynamic: Any, **kwargs: Any) -> Any:
    rest, given = iter(fixed), dict(zip(numbers, dynamic))
    count = len(numbers) + len(fixed)
    return call(*[given[n] if n in given else next(rest).value for n in range(count)], **kwargs)


def argnums_partial(f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any],
                    require_static_args_hashable: bool = True) -> tuple[WrappedFun, list[Any]]:
    """Return ``f`` as a function of the arguments ``dyn_argnums`` alone, and these arguments.

    Raises: ValueError for another argument without a hash, if one is required.
    """
    numbers = tuple(n + len(args) if n < 0 else n for n in as_numbers(dyn_argnums))
    fixed = tuple(_Fixed(x) for n, x in enumerate(args) if n not in numbers)
    if require_static_args_hashable:
        for box in fixed:
            try:
                hash(box)
            except TypeError:
                raise ValueError(
                    "Non-hashable static arguments are used: a static argument of type "
                    f"{type(box.value).__name__} cannot be hashed ({box.value!r}). Pass a tuple "
                    "instead of a list, for example.") from None
    return (_with_fixed(f, tuple(sorted(numbers)), fixed),
            [args[n] for n in sorted(numbers)])


def donation_vector(donate_argnums: Iterable[int], donate_argnames: Iterable[str], in_tree: Any,
                    kws: bool = True) -> tuple[bool, ...]:
    """Return of each leaf of ``(args, kwargs)`` (of ``args`` without ``kws``) if it is donated."""
    value = in_tree.unflatten([0] * in_tree.num_leaves)
    args, kwargs = value if kws else (value, {})
    numbers, names = set(donate_argnums), set(donate_argnames)
    found: list[bool] = []
    for number, arg in enumerate(args):
        found += [number in numbers] * len(tree.leaves(arg))
    for name, arg in sorted(kwargs.items()):
        found += [name in names] * len(tree.leaves(arg))
    return tuple(found)


def debug_info(traced_for: str, fun: Callable, args: Sequence[Any], kwargs: dict[str, Any], *,
               static_argnums: Sequence[int] = (), static_argnames: Sequence[str] = (),
               result_paths_thunk: Any = None, sourceinfo: str | None = None,
               signature: Any = None) -> DebugInfo:
    """Return what is known of a function that is to be traced for ``args`` and ``kwargs``."""
    if sourceinfo is None:
        reference = source.function_ref(fun)
        sourceinfo = f"{reference.name} at {reference.file}:{reference.line}"
    dynamic = {n: x for n, x in enumerate(args) if n not in set(static_argnums)}
    named = {k: x for k, x in kwargs.items() if k not in set(static_argnames)}
    names = Parameters(fun, None, None, None, None).leaf_names(dynamic, named)
    return DebugInfo(traced_for, sourceinfo, tuple(name for name, _ in names), result_paths_thunk)


__all__ = [
    "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun",
    "flatten_fun_nokwargs", "rebase_donate_argnums", "safe_map", "shaped_abstractify",
]
