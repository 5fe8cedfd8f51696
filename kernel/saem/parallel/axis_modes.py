"""How does a part of a program choose between sharding by the partitioner and by types?

``auto_axes`` and ``explicit_axes`` mark such a stretch: inside, the axes of the mesh in force are
of another type, and values cross over by ``reshard``.

Read before: ``ops.constraints``, ``ops.reshard``.
Invariant: a mark changes where values lie, never their numbers.
Source: the documentation of jax.sharding.auto_axes and explicit_axes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from saem.core import errors, tree
from saem.core.axes import as_names
from saem.ops.constraints import is_place, prefix, with_sharding_constraint
from saem.ops.reshard import crossing, mesh_of, retyped, under
from saem.placement.meshes import AxisType


def _wanted(name: str, given: Any, kwargs: dict[str, Any]) -> Any:
    found = kwargs.pop(name, given)
    if found is None:
        raise errors.explained(
            errors.ArgumentTypeError, "axes.C1", f"Missing required keyword argument: '{name}'",
            advice=f"Say it where the function is marked or where it is called: {name}=P(...).")
    return found


def _names(axes: Any, mesh: Any) -> frozenset:
    """Return which axes of ``mesh`` change their type.

    Raises: KeyError for an axis that it does not have.
    """
    if axes is None:
        return frozenset(mesh.axis_names)
    names = frozenset(as_names(axes))
    for name in names.difference(mesh.axis_names):
        raise KeyError(f"{name!r} is no axis of the mesh: its axes are {mesh.axis_names}")
    return names


def _crossed(values: Any, before: Any, after: Any, what: str = "", given: Any = None) -> Any:
    """Return pytree ``values`` of a program under one mesh in one under another.

    ``given``, a prefix of them, has their shardings there.
    """
    leaves, structure = tree.flatten(values)
    specs: Sequence[Any] = [None] * len(leaves)
    if given is not None:
        specs = [getattr(s, "spec", s) for s in prefix(what, given, values)]
    return structure.unflatten([
        crossing(x, before, after, s) for x, s in zip(leaves, specs)])


def auto_axes(f: Callable | None = None, /, *, axes: Any = None, out_sharding: Any = None
              ) -> Callable:
    """Let the partitioner place what ``f`` computes along ``axes`` (all if None).

    Results have the sharding ``out_sharding``.
    Raises: TypeError when called, if ``out_sharding`` is given neither here nor then.
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    def marked(*args: Any, **kwargs: Any) -> Any:
        wanted = _wanted("out_sharding", out_sharding, kwargs)
        before = mesh_of(tree.leaves((args, kwargs)), *tree.leaves(wanted, is_leaf=is_place))
        if not before.explicit_axes:
            return with_sharding_constraint(f(*args, **kwargs), wanted)
        after = retyped(before, _names(axes, before), AxisType.Auto)
        with under(after):
            args, kwargs = _crossed((args, kwargs), before, after)
            outs = f(*args, **kwargs)
        with under(before):
            return _crossed(outs, after, before, "auto_axes out_sharding", wanted)

    return marked


def explicit_axes(f: Callable | None = None, /, *, axes: Any = None, in_sharding: Any = None
                  ) -> Callable:
    """Let types decide how results inside ``f`` are sharded along ``axes`` (all if None).

    Arguments have the sharding ``in_sharding``.
    Raises: TypeError when called, if ``in_sharding`` is given neither here nor then.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f)
    def marked(*args: Any, **kwargs: Any) -> Any:
        wanted = _wanted("in_sharding", in_sharding, kwargs)
        before = mesh_of(tree.leaves((args, kwargs)), *tree.leaves(wanted, is_leaf=is_place))
        after = retyped(before, _names(axes, before), AxisType.Explicit)
        if is_place(wanted):
            wanted = (wanted,) * len(args)
        with under(after):
            args = _crossed(args, before, after, "explicit_axes in_sharding", wanted)
            outs = f(*args, **kwargs)
        with under(before):
            return _crossed(outs, after, before)

    return marked
