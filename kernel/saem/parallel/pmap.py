"""How does a function run on each device with an example of its own?

``pmap(f, axis_name="i")`` is ``vmap`` whose examples lie on different devices: a ``shard_map`` over
a mesh of one axis, inside a ``jit``, that takes the mapped axis off every argument and puts it back
on every result.

Where several processes compute together, each gives the examples of its own devices, and the mesh
spans the devices of all.

Read before: ``parallel.shard_map``, ``jit.jitted``.
Invariant: a mesh is made of the first devices, as many as there are examples; across processes,
of all devices (tests/kernel/test_processes.py).
Source: the documentation of jax.pmap.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from saem.core import errors, tree
from saem.core.arguments import wraps
from saem.core.avals import aval_of
from saem.core.frames import boundary
from saem.core.record import Record
from saem.core.trace import eval_trace, state
from saem.jit.decorator import jit
from saem.jit.transfers import device_put
from saem.ops.shape import canonical_axis, expand_dims, squeeze
from saem.parallel.shard_map import Site
from saem.placement.devices import backend as backend_of
from saem.placement.devices import process_index
from saem.placement.meshes import Mesh
from saem.placement.partition_spec import PartitionSpec
from saem.placement.shardings import NamedSharding
from saem.placement.spread import make_array_from_single_device_arrays, own_part
from saem.transform.derivatives import as_array
from saem.transform.mapping import is_none

P = PartitionSpec
UNNAMED = "_internal_pmap_axis_name"


def pmap(fun: Callable, axis_name: Any = None, *, in_axes: Any = 0, out_axes: Any = 0,
         static_broadcasted_argnums: int | Iterable[int] = (),
         devices: Sequence[Any] | None = None, backend: str | None = None,
         axis_size: int | None = None, donate_argnums: int | Iterable[int] = ()) -> Any:
    """Return ``fun`` run on several devices at once, each on one example along ``in_axes``.

    Results stack along ``out_axes``, each on its device; a result with None is that of the first.

    With several processes, each calls it with the examples of its own devices and gets their
    results; collectives and ``axis_size`` count those of all processes.  Inside ``jit`` and other
    transformations a process maps over its own devices alone.

    Raises: ValueError when called, if nothing is mapped, sizes differ, or devices do not suffice.

    >>> jax.pmap(lambda x: x * 2)(jnp.ones((1, 3)))  # one example, on one device
    Array([[2., 2., 2.]], dtype=float32)
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, (int, tuple))):
        raise TypeError("pmap in_axes must be an int, None, or (nested) container with those types "
                        f"as leaves, but got {in_axes}.")
    if devices is not None and not len(devices):
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    numbers = static_broadcasted_argnums
    static = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    mapping = Mapping(fun, UNNAMED if axis_name is None else axis_name, in_axes, out_axes, static,
                      donate_argnums, devices, backend, axis_size)

    @wraps(fun, "pmap")
    @boundary
    def pmap_f(*args: Any, **kwargs: Any) -> Any:
        return mapping.ready(args, kwargs)(*args, **kwargs)

    def lower(*args: Any, **kwargs: Any) -> Any:
        """Return the StableHLO of this call, as ``jit(f).lower`` does."""
        return mapping.ready(args, kwargs).lower(*args, **kwargs)

    pmap_f.lower = lower
    return pmap_f


class Mapping:
    """A function with how it is mapped, and a jitted form for each number of examples."""

    def __init__(self, fun: Callable, name: Any, in_axes: Any, out_axes: Any,
                 static: tuple[int, ...], donated: Any, devices: Sequence[Any] | None,
                 backend: str | None, axis_size: int | None):
        self.fun = fun
        self.name = name
        self.in_axes = in_axes
        self.out_axes = out_axes
        self.static = static
        self.donated = donated
        self.devices = devices
        self.backend = backend
        self.axis_size = axis_size
        self.runs: dict[int, Any] = {}

    def ready(self, args: tuple, kwargs: dict) -> Any:
        """Return the jitted function for as many examples as these arguments hold."""
        if state.trace is eval_trace and self.across is not None:
            return self.across
        run = self.known(args)
        if run is None:
            _, dynamic, axes = self.split(args)
            size = self.size([*tree.leaves(dynamic), *tree.leaves(kwargs)], axes)
            run = self.runs.get(size)
            if run is None:
                run = self.runs[size] = self.make(self.mesh(size))
        return run.fast if state.trace is eval_trace and not kwargs else run.plain

    @functools.cached_property
    def across(self) -> Across | None:
        """The function over the devices of all processes, None if all are of this one."""
        devices = self.devices if self.devices is not None \
            else backend_of(self.backend).devices()
        here = [d for d in devices if d.process_index == process_index(self.backend)]
        return Across(self, devices, here) if 0 < len(here) < len(devices) else None

    def known(self, args: tuple) -> Run | None:
        """Return the jitted function by the size of the first argument alone, if that decides.

        Whether the others agree is asked where it is traced for them.
        """
        axis = self.in_axes
        if type(axis) is not int or self.static:
            return None
        leaves = tree.leaves(args)
        shape = getattr(leaves[0], "shape", ()) if leaves else ()
        return self.runs.get(shape[axis]) if -len(shape) <= axis < len(shape) else None

    def check_static(self, args: tuple) -> None:
        """Refuse static arguments that are not among ``args``, or cannot be hashed.

        Raises: ValueError.
        """
        for n in self.static:
            if n >= len(args):
                raise ValueError(
                    f"pmapped function has static_broadcasted_argnums={self.static} but was called "
                    f"with only {len(args)} positional argument{'s' * (len(args) != 1)}. All "
                    "static broadcasted arguments must be passed positionally.")
            try:
                hash(args[n])
            except TypeError:
                raise ValueError(
                    "Non-hashable static arguments are not supported, as this can lead to "
                    f"unexpected cache-misses. Static argument (index {n}) of type "
                    f"{type(args[n])} for function {self.fun.__name__} is non-hashable.") from None

    def split(self, args: tuple) -> tuple[set[int], tuple, list[int | None]]:
        """Return the numbers of the static arguments, the others, and the mapped axis of each leaf
        of those, then 0 as needed."""
        self.check_static(args)
        static = {n % len(args) for n in self.static} if args else set()
        dynamic = tuple(x for i, x in enumerate(args) if i not in static)
        axes = self.in_axes
        if isinstance(axes, tuple) and len(axes) == len(args):
            axes = tuple(a for i, a in enumerate(axes) if i not in static)
        try:
            return static, dynamic, Padded(tree.broadcast_prefix(axes, dynamic, is_leaf=is_none,
                                                               name="pmap in_axes"))
        except ValueError as error:
            raise ValueError(
                f"pmap in_axes must be a tree prefix of the tuple of arguments passed "
                f"positionally to the pmapped function, got {self.in_axes}: {error}") from None

    def size(self, leaves: Sequence[Any], axes: Sequence[int | None]) -> int:
        """Return the number of examples.

        Raises: ValueError if no argument is mapped, or they disagree.
        """
        found: dict[int, Any] = {}
        for x, d in zip(leaves, axes):
            shape = np.shape(x) if d is not None and not hasattr(x, "shape") else getattr(
                x, "shape", ())
            if d is not None and -len(shape) <= d < len(shape):
                found.setdefault(shape[d], (d, shape))
        if not found:
            raise errors.explained(
                errors.ArgumentError, "pmap.C1",
                "pmap requires at least one argument with a mapped axis.",
                advice="Give an array with a leading axis of one entry for each device.")
        size = next(iter(found))
        total = self.across.mesh.size if self.across else size
        if not size:
            raise errors.explained(
                errors.ArgumentError, "pmap.C10",
                "pmap got arguments of size 0 along the mapped axis.",
                advice="Give one example for each device that is to work.")
        if self.axis_size not in (None, size, total):
            raise errors.explained(
                errors.ArgumentError, "pmap.C2",
                f"Specified axis_size {self.axis_size} doesn't match received axis_size {total}.",
                advice="Leave axis_size out; it follows from the arguments.")
        if len(found) > 1:
            lines = ", ".join(f"axis {d} of shape {s} has size {n}" for n, (d, s) in found.items())
            raise errors.explained(
                errors.ArgumentError, "pmap.C3",
                f"pmap got inconsistent sizes for array axes to be mapped: {lines}.",
                advice="Map axes of one size, or share an argument by in_axes=None.")
        return size

    def mesh(self, size: int) -> Mesh:
        """Return the mesh of the first ``size`` devices.

        Raises: ValueError if there are fewer.
        """
        devices = self.devices if self.devices is not None \
            else backend_of(self.backend).local_devices()
        if size > len(devices):
            raise errors.explained(
                errors.ArgumentError, "pmap.C4",
                f"pmap over {size} examples requires {size} devices, but only {len(devices)} XLA "
                "devices are available.",
                advice="Set jax_num_cpu_devices before the first operation to have more CPU "
                "devices, or use vmap inside pmap for several examples on each.")
        return Mesh(devices[:size], (self.name,))

    def spec(self, x: Any, axis: int | None) -> Any:
        if axis is None:
            return P()
        return P(*[None] * canonical_axis(axis, len(aval_of(x).shape)), self.name)

    def make(self, mesh: Mesh) -> Run:
        """Return the jitted function over ``mesh``.

        Raises: TypeError if the function has no hash.
        """
        hash(self.fun)

        def _fun(*args: Any, **kwargs: Any) -> Any:
            fixed, dynamic, axes = self.split(args)
            leaves, in_tree = tree.flatten((dynamic, kwargs))
            leaves = [as_array(x) for x in leaves]
            self.size(leaves, axes)
            axes = [d if d is None else canonical_axis(d, len(aval_of(x).shape))
                    for x, d in zip(leaves, axes)]

            def one(*parts: Any) -> Any:
                values = [x if d is None else squeeze(x, (d,)) for x, d in zip(parts, axes)]
                inner, keywords = in_tree.unflatten(values)
                return self.stack(self.fun(*with_dynamic(args, fixed, inner), **keywords))

            one.__name__ = getattr(self.fun, "__name__", "pmap")
            site = Site(one, mesh, (), False)
            specs = [self.spec(x, d) for x, d in zip(leaves, axes)]
            site.check_arguments(specs, leaves, [f"[{i}]" for i in range(len(leaves))])
            in_flat = tree.structure(tuple(leaves))
            return site.call(in_flat, leaves, specs, self.out_specs)

        # Events name the function a person wrote, and its place.
        _fun.__wrapped__, _fun.__transform__ = self.fun, "pmap"  # type: ignore[attr-defined]
        options = {"static_argnums": self.static, "donate_argnums": self.donated}
        return Run(jit(_fun, **options, in_shardings=self.in_shardings(mesh)),
                   jit(_fun, **options))

    def in_shardings(self, mesh: Mesh) -> Any:
        """Return where arguments should lie, None if that depends on their rank."""
        axes = self.in_axes
        if isinstance(axes, int):
            return None if axes < 0 else NamedSharding(mesh, P(*[None] * axes, self.name))
        if any(isinstance(d, int) and d < 0 for d in tree.leaves(axes)) or self.static:
            return None
        return tree.map_(lambda d: NamedSharding(mesh, P() if d is None else P(
            *[None] * d, self.name)), axes, is_leaf=is_none)

    def out_axes_of(self, result: Any) -> list[int | None]:
        """Return the axis along which each leaf of ``result`` stacks."""
        try:
            return tree.broadcast_prefix(self.out_axes, result, is_leaf=is_none,
                                         name="pmap out_axes")
        except ValueError as error:
            raise ValueError("pmap out_axes must be a tree prefix of the result, got "
                             f"{self.out_axes}: {error}") from None

    def stack(self, result: Any) -> Any:
        """Return one device's result with an axis of size 1 where results stack."""
        leaves, treedef = tree.flatten(result)
        return treedef.unflatten([
            x if d is None else expand_dims(as_array(x), (d,))
            for x, d in zip(leaves, self.out_axes_of(result))])

    def out_specs(self, result: Any) -> list[Any]:
        return [self.spec(x, d) for x, d in zip(tree.leaves(result), self.out_axes_of(result))]


class Across:
    """A mapping over the devices of all processes, of which this one has ``here``."""

    def __init__(self, mapping: Mapping, devices: Sequence[Any], here: Sequence[Any]):
        self.mapping = mapping
        self.mesh = Mesh(devices, (mapping.name,))
        self.here = Mesh(here, (mapping.name,))
        self.jitted = mapping.make(self.mesh).plain

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = self.arguments(args, kwargs)
        return tree.map_(lambda x: own_part(x, NamedSharding(self.here, x.sharding.spec)),
                         self.jitted(*args, **kwargs))

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = self.arguments(args, kwargs)
        return self.jitted.lower(*args, **kwargs)

    def arguments(self, args: tuple, kwargs: dict) -> tuple[list[Any], dict]:
        """Return the arguments as arrays over all processes."""
        fixed, dynamic, axes = self.mapping.split(args)
        leaves, structure = tree.flatten((dynamic, kwargs))
        self.mapping.size(leaves, axes)
        inner, keywords = structure.unflatten([
            self.spread(x, d) for x, d in zip(leaves, axes)])
        return with_dynamic(args, fixed, inner), keywords

    def spread(self, x: Any, axis: int | None) -> Any:
        """Return the array over all processes of which ``x`` is what lies in this one, or all.

        Raises: ValueError if it does not hold one example for each device of this process.
        """
        spec = self.mapping.spec(x, axis)
        everywhere = NamedSharding(self.mesh, spec)
        shape = list(np.shape(x))
        is_part = getattr(x, "is_fully_addressable", True)
        if axis is not None:
            size = shape[axis]
            if size != (self.here if is_part else self.mesh).size:
                raise errors.explained(
                    errors.ArgumentError, "pmap.C4",
                    f"pmap across processes requires one example for each of the {self.here.size} "
                    f"devices of this process, but got {size}.",
                    advice="Give in each process as many examples as jax.local_device_count(), or "
                    "name the devices of this process alone: devices=jax.local_devices().")
            shape[axis] = self.mesh.size
        if not is_part:
            return device_put(x, everywhere)
        parts = device_put(x, NamedSharding(self.here, spec)).addressable_shards
        return make_array_from_single_device_arrays(
            shape, everywhere, [part.data for part in parts])


def with_dynamic(args: Sequence[Any], fixed: set[int], dynamic: Iterable[Any]) -> list[Any]:
    """Return ``args`` with those that are not at the places ``fixed`` replaced by ``dynamic``."""
    rest = iter(dynamic)
    return [x if i in fixed else next(rest) for i, x in enumerate(args)]


class Run(Record):
    """A jitted function over a mesh; ``plain``, for traces and for calls with keywords, does not
    say where arguments lie."""

    fast: Any
    plain: Any


class Padded(list):
    """The mapped axes of positional leaves; those of keyword arguments, which follow, are 0."""

    def __iter__(self):
        yield from super().__iter__()
        while True:
            yield 0


__all__ = ["pmap"]
