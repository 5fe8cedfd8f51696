"""How is a function mapped over an axis of its arguments?

By ``vmap`` with its ``in_axes`` and ``out_axes`` as prefixes of the argument and result pytrees.

Read before: ``transform.vmap``.
Invariant: ``vmap(f)(xs)`` equals the stack of ``f(x)`` (tests/kernel/test_laws.py).
Source: the documentation of jax.vmap.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from saem.core import dtypes, errors, sharded, tree
from saem.core.arguments import Parameters, check_callable, documented, wraps
from saem.core.avals import aval_of
from saem.core.axes import Axis
from saem.core.frames import boundary
from saem.core.placement_types import Seen
from saem.ops.convert import convert
from saem.ops.linear import reduce_sum
from saem.transform.derivatives import FlatFunction, as_array
from saem.transform.vmap import match_dim, vmap_flat
from saem.transform.vmappable import Box, boxed, boxing, on_elements, vmappables


def is_none(x: Any) -> bool:
    """Return whether ``x`` is None: among axes that is a leaf, not an empty container."""
    return x is None


def axes_per_leaf(name: str, axes: Any, full: Any) -> list[int | None]:
    """Return one axis per leaf of ``full`` from ``axes``, a prefix of its structure.

    Raises: ValueError if it is no prefix.
    """
    if isinstance(axes, int) and not isinstance(axes, bool):
        return [axes] * tree.structure(full).num_leaves
    try:
        found = tree.broadcast_prefix(axes, full, is_leaf=is_none, name=f"vmap {name}")
    except ValueError as error:
        raise ValueError(
            f"vmap {name} specification must be a tree prefix of the corresponding value, got "
            f"specification {axes} for value tree {tree.structure(full)}.\n{error}") from None
    for axis in found:
        _check_axis(name, axis, axes)
    return found


def _check_axis(name: str, axis: Any, axes: Any) -> None:
    if axis is not None and (not isinstance(axis, int) or isinstance(axis, bool)):
        raise TypeError(
            f"vmap {name} must be an int, None, or (nested) container with those types as "
            f"leaves, but got {axes}.")


def vmap(fun: Callable, in_axes: int | Sequence[Any] | None = 0, out_axes: Any = 0,
         axis_name: Hashable | None = None, axis_size: int | None = None,
         spmd_axis_name: Any = None, sum_match: bool = False) -> Callable:
    """Return ``fun`` mapped over axis ``in_axes`` of its arguments; results stack at ``out_axes``.

    ``fun`` is written for one example; the mapped function takes a stack of them and runs them in
    one program, without a loop.  ``in_axes`` is one axis for all arguments, or a tuple with an axis
    for each, None for what all examples share.

    Inside, ``axis_name`` names the axis for collectives; ``spmd_axis_name`` names the mesh axes
    that shard it where devices share the work.  With ``sum_match``, results whose axis in
    ``out_axes`` is None although they differ between examples are summed over these.
    Raises: ValueError when called, if sizes differ, nothing is mapped, or an axis does not exist.

    >>> jax.vmap(lambda x, y: x @ y, in_axes=(0, None))(jnp.ones((3, 2)), jnp.ones(2))
    Array([2., 2., 2.], dtype=float32)
    """
    check_callable(fun)
    in_axes = checked_axes(in_axes, out_axes)
    named = axis_name is not None or spmd_axis_name is not None

    @wraps(fun, "vmap")
    @boundary
    def vmap_f(*args: Any, **kwargs: Any) -> Any:
        if vmappables:
            args, kwargs = boxed((args, kwargs))
        xs, in_tree = tree.flatten((args, kwargs))
        dims = argument_axes(in_axes, args, kwargs, xs)
        inside = [None if type(x) is Box else d for x, d in zip(xs, dims)] if vmappables else dims
        size = mapped_size(fun, args, kwargs, xs, inside, axis_size)
        flat = FlatFunction(boxing(fun) if vmappables else fun, in_tree.unflatten)

        def targets(outs: list[Any]) -> list[Any]:
            return [out_axes] * len(outs) if type(out_axes) is int else axes_per_leaf(
                "out_axes", out_axes, flat.out_tree.unflatten(outs))

        of_leaves = on_elements(flat, dims, size, targets, place) if vmappables else flat
        values = [x if d is None else as_array(x) for x, d in zip(xs, inside)]
        axis = Axis(axis_name, size, spmd_axis_name) if named else None
        if Seen.placements:
            axis = along_mesh(axis, size, values, inside)
        outs, out_dims = vmap_flat(of_leaves, size, values, inside, axis)
        wanted = targets(outs)
        if None in wanted and not sum_match:
            refuse_unstacked(outs, out_dims, wanted, flat.out_tree)
        return flat.out_tree.unflatten([
            place(x, d, target, size, axis, sum_match)
            for x, d, target in zip(outs, out_dims, wanted)])

    return documented(vmap_f, fun, "Return what {0} gives for each example along mapped axes.")


_IN_AXES = ("vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            "positional arguments passed to the function")


def checked_axes(in_axes: Any, out_axes: Any) -> Any:
    """Return ``in_axes`` of ``vmap``, a list as a tuple.

    Raises: TypeError if one of ``in_axes`` and ``out_axes`` is no axis.
    """
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, (int, tuple))):
        raise TypeError(f"{_IN_AXES}, but got {in_axes}.")
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        for axis in tree.leaves(axes) if type(axes) is not int else ():
            _check_axis(name, axis, axes)
    return in_axes


def argument_axes(in_axes: Any, args: tuple, kwargs: dict, xs: Sequence[Any]) -> list[int | None]:
    """Return which axis of each leaf ``xs`` of the arguments is mapped; keywords map over axis 0.

    Raises: ValueError if ``in_axes`` does not fit the arguments, or an axis does not exist.
    """
    if type(in_axes) is int and not kwargs:  # the common case, without structures
        return [canonical_axis(x, in_axes) for x in xs]
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(f"{_IN_AXES}, but got len(in_axes)={len(in_axes)}, len(args)={len(args)}")
    dims = axes_per_leaf("in_axes", in_axes, args) + [0] * len(tree.leaves(kwargs))
    return [canonical_axis(x, d) for x, d in zip(xs, dims)]


def along_mesh(axis: Axis | None, size: int, xs: Sequence[Any], dims: Sequence[int | None]
               ) -> Axis | None:
    """Return the mapped axis as one that Explicit mesh axes shard, if they shard the arguments
    there.

    Raises: ValueError if they do not shard all arguments the same way.
    """
    found: list[Any] = []
    for x, dim in zip(xs, dims):
        if dim is not None:
            aval = aval_of(x)
            found.append((sharded.entries_of(aval)[dim], aval.explicit))
    for entry, _ in found:
        if entry != found[0][0]:
            raise errors.explained(
                errors.ArgumentError, "vmap.S1",
                "Mapped away dimension of inputs passed to vmap should be sharded the same. Got "
                f"inconsistent axis specs: {found[0][0]} vs {entry}",
                advice="Reshard the arguments so that the mapped axes are sharded the same way.")
    if not found or found[0][0] is None:
        return axis
    entry, like = found[0]
    sharding = sharded.entries_on(like, [entry])
    return (Axis(None, size) if axis is None else axis)._replace(sharding=sharding)


def refuse_unstacked(outs: list[Any], dims: Sequence[int | None], targets: list[Any],
                     out_tree: Any) -> None:
    """Refuse results that differ between examples where ``out_axes`` has None.

    Raises: ValueError that names the place of the first among the results.
    """
    for number, (x, dim, target) in enumerate(zip(outs, dims, targets)):
        if target is None and dim is not None and type(x) is not Box:
            path, _ = tree.flatten_with_path(out_tree.unflatten(range(len(outs))))[0][number]
            raise unstacked(dim, tree.keystr(path))


def unstacked(dim: int, path: str = "") -> ValueError:
    """Return the error of a result that differs between examples, where ``out_axes`` has None."""
    return ValueError(
        f"at vmap out_axes{path}, got axis spec None but output was batched on axis {dim}: this "
        "result differs between examples. Give it an axis in out_axes.")


def place(x: Any, dim: int | None, target: int | None, size: int, axis: Axis | None = None,
          summed: bool = False) -> Any:
    """Return a result with its batch axis at ``target``, or ``summed`` over it if that is None.

    What is in a box is a stack already.
    Raises: ValueError if ``target`` is no axis of the stacked result, or None for a result that
    differs between examples; TypeError for no array.
    """
    if type(x) is Box:
        return x.value
    if dim is not None and dim == target:
        return x
    if target is None:
        if dim is not None and summed:
            whole = dtypes.is_bool(aval_of(x).dtype)
            return reduce_sum(convert(x, dtypes.default_dtype(int)) if whole else x, (dim,))
        if dim is not None:
            raise unstacked(dim)
        return x
    try:
        rank = len(aval_of(x).shape) + (dim is None)
    except TypeError:
        raise errors.explained(
            errors.ArgumentTypeError, "vmap.output", f"Output from batched function {x!r} with "
            f"type {type(x)} is not a valid JAX type",
            advice="Return arrays, numbers, or pytrees of them.") from None
    if not -rank <= target < rank:
        raise ValueError(
            f"axis {target} is out of bounds for array of dimension {rank}: out_axes must name an "
            "axis of the stacked result.")
    return match_dim(as_array(x), dim, target, size, axis)


def canonical_axis(x: Any, dim: int | None) -> int | None:
    """Return ``dim`` counted from the front, or as it is for an object of a registered class."""
    if dim is None or type(x) is Box:
        return dim
    try:
        shape = aval_of(x).shape
    except TypeError:
        raise errors.explained(
            errors.ArgumentTypeError, "vmap.C1",
            f"Argument {x!r} of type {type(x)} is not a valid JAX type: vmap maps over arrays.",
            advice="Pass it with in_axes=None, or close over it.") from None
    if not -len(shape) <= dim < len(shape):
        raise ValueError(
            f"vmap was requested to map its argument along axis {dim}, which implies that its rank "
            f"should be at least {dim + 1 if dim >= 0 else -dim}, but is only {len(shape)} (its "
            f"shape is {shape})")
    return dim % len(shape)


def mapped_size(fun: Callable, args: tuple, kwargs: dict, xs: Sequence[Any],
                dims: Sequence[int | None], axis_size: int | None) -> int:
    """Return the one size of the mapped axes."""
    sizes = [aval_of(x).shape[d] for x, d in zip(xs, dims) if d is not None]
    if axis_size is not None:
        sizes.append(axis_size)
    if not sizes:
        if not xs:
            raise ValueError(
                "vmap wrapped function must be passed at least one argument containing an array or "
                f"axis_size must be specified, got empty *args={args} and **kwargs={kwargs}")
        raise ValueError("vmap must have at least one non-None value in in_axes or axis_size must "
                         "be specified")
    if len(set(sizes)) > 1:
        names = Parameters(fun, None, None, None, None).leaf_names(dict(enumerate(args)), kwargs)
        lines = [f"  * axis {d} of argument {path}, of shape {aval_of(x).shape}, has size "
                 f"{aval_of(x).shape[d]}"
                 for x, d, (path, _) in zip(xs, dims, names) if d is not None]
        if axis_size is not None:
            lines.append(f"  * axis_size is {axis_size}")
        raise errors.explained(
            errors.ArgumentError, "vmap.C2",
            "vmap got inconsistent sizes for array axes to be mapped:\n" + "\n".join(lines),
            advice="Map over axes of equal size, or pass in_axes=None to share.")
    return sizes[0]
