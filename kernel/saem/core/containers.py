"""How does a class become a container?

``register_pytree_node`` says to jaxlib's registry how instances of a class are taken apart and put
together; the functions after it are written with it.  Python's OrderedDict and defaultdict are
registered here, and ``Partial``.

Read before: ``core.tree``.
Invariant: a container comes back equal from flatten and unflatten, whichever way its class was
registered (tests/kernel/test_tree.py).
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from saem.core.errors import ArgumentError, ArgumentTypeError, explained
from saem.core.tree import DictKey, default_registry

Class = TypeVar("Class", bound=type)


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Any, Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Any, Hashable]] | None = None,
) -> None:
    """Make ``nodetype`` a container: ``flatten_func(x) -> (children, aux)`` and back.

    ``aux`` is part of the structure: hashable and comparable.
    Raises: TypeError for functions that cannot be called; ValueError for a type known already.

    >>> class Pair(list): pass
    >>> jax.tree_util.register_pytree_node(Pair, lambda p: (list(p), None), lambda _, c: Pair(c))
    >>> jax.tree.map(lambda x: x + 1, Pair([1, 2]))
    [2, 3]
    """
    for name, function in (("flatten_func", flatten_func), ("unflatten_func", unflatten_func)):
        if not callable(function):
            raise explained(
                ArgumentTypeError,
                "tree.C5",
                f"register_pytree_node needs a function as {name}, got {function!r}.",
            )
    default_registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_node_class(cls: Any) -> Any:
    """Make a class with ``tree_flatten`` and classmethod ``tree_unflatten`` a container."""
    register_pytree_node(cls, cls.tree_flatten, cls.tree_unflatten)
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Make ``nodetype`` a container whose children have keys.

    ``flatten_with_keys(x) -> (pairs of key and child, aux)``; ``flatten_func`` may give the
    children alone, faster.
    """

    def children_alone(tree: Any) -> tuple[Iterable[Any], Hashable]:
        pairs, aux = flatten_with_keys(tree)
        return [child for _, child in pairs], aux

    register_pytree_node(
        nodetype, flatten_func or children_alone, unflatten_func, flatten_with_keys
    )


def register_pytree_with_keys_class(cls: Any) -> Any:
    """Make a class with ``tree_flatten_with_keys`` and ``tree_unflatten`` a container."""
    register_pytree_with_keys(
        cls, operator.methodcaller("tree_flatten_with_keys"), cls.tree_unflatten,
        getattr(cls, "tree_flatten", None)
    )
    return cls


def register_dataclass(
    nodetype: Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Class:
    """Make a dataclass a container: ``data_fields`` are children, ``meta_fields`` are structure.

    By default a field is data unless made by ``tree.static`` (metadata ``static=True``).
    Raises: TypeError when fields must be named but are not; ValueError for missing, unknown or
    doubly named fields.
    """
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if (data_fields is None) != (meta_fields is None):
        raise explained(
            ArgumentTypeError,
            "tree.C6",
            "register_dataclass: data_fields and meta_fields must both be specified when either "
            f"is specified. Got data_fields={data_fields} meta_fields={meta_fields}.",
        )
    if data_fields is None or meta_fields is None:
        if not is_dataclass:
            raise explained(
                ArgumentTypeError,
                "tree.C7",
                "register_dataclass: data_fields and meta_fields are required when nodetype is "
                f"not a dataclass. Got nodetype={nodetype}.",
            )
        fields = dataclasses.fields(nodetype)
        data_fields = [f.name for f in fields if not f.metadata.get("static", False)]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
    _check_fields(nodetype if is_dataclass else None, data_fields, meta_fields, drop_fields)
    default_registry.register_dataclass_node(nodetype, list(data_fields), list(meta_fields))
    return nodetype


def _check_fields(
    nodetype: type | None, data: Sequence[str], meta: Sequence[str], dropped: Sequence[str]
) -> None:
    twice = set(data) & set(meta)
    if twice:
        raise explained(
            ArgumentError,
            "tree.C8",
            f"data_fields and meta_fields must not overlap. Overlapping fields: {twice}.",
        )
    if nodetype is None:
        return
    needed = {f.name for f in dataclasses.fields(nodetype) if f.init} - set(dropped)
    given = set(data) | set(meta)
    needs = "data_fields and meta_fields must include all dataclass fields with ``init=True`` "
    if needed - given:
        raise explained(
            ArgumentError,
            "tree.C9",
            f"{needs}and only them. Missing fields: {needed - given}. "
            "Add them to drop_fields to suppress this error.",
        )
    if given - needed:
        raise explained(
            ArgumentError,
            "tree.C9",
            f"{needs}and only them. Unexpected fields: {given - needed}.",
        )


def register_static(cls: Class) -> Class:
    """Make a class a container without children: its instances are part of the structure.

    Instances must be hashable and comparable.
    """
    register_pytree_node(cls, lambda x: ([], x), lambda aux, _: aux)
    return cls


def static(**kwargs: Any) -> Any:
    """Return a dataclass field (arguments as ``dataclasses.field``) that is structure, not data."""
    metadata = {**(kwargs.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=metadata, **kwargs)


class _Whole:
    """A partial function taken as one function: functools would merge it into the outer one."""

    def __init__(self, function: functools.partial):
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Whole) and self.function == other.function

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)


class Partial(functools.partial):
    """``functools.partial`` as a container: arguments are children, the function is structure."""

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Partial:
        function = _Whole(func) if isinstance(func, functools.partial) else func
        return super().__new__(cls, function, *args, **kwargs)


Partial.__module__ = "saem.tree_util"

register_pytree_node(
    collections.OrderedDict,
    lambda d: (list(d.values()), tuple(d)),
    lambda keys, values: collections.OrderedDict(zip(keys, values, strict=True)),
    lambda d: ([(DictKey(k), v) for k, v in d.items()], tuple(d)),
)
register_pytree_node(
    collections.defaultdict,
    lambda d: ([d[k] for k in sorted(d)], (d.default_factory, tuple(sorted(d)))),
    lambda aux, values: collections.defaultdict(aux[0], zip(aux[1], values, strict=True)),
    lambda d: ([(DictKey(k), d[k]) for k in sorted(d)], (d.default_factory, tuple(sorted(d)))),
)
register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
