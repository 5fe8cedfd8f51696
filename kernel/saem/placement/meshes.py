"""How are devices given coordinates?

A ``Mesh`` is an array of devices whose axes have names; an ``AbstractMesh`` is its shape without
the devices.  A mesh may be in force for a stretch of program (``with set_mesh(mesh):``), so that
a ``PartitionSpec`` alone says where an array lies.

Read before: ``placement.devices``.  Read after: ``placement.shardings``.
Invariant: equal meshes have the same devices in the same order, the same names and axis types.
Source: the documentation of jax.sharding.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import functools
import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from saem import _jaxlib
from saem.core import config, errors
from saem.core.placement_types import Seen
from saem.core.record import Record
from saem.core.trace import eval_trace, state
from saem.placement import devices as device_module


class AxisType(enum.Enum):
    """Who decides along a mesh axis: the partitioner, the types, or the program by hand."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


def _axis_types(given: Any, names: Sequence[Any], default: AxisType) -> tuple[AxisType, ...]:
    """Return the type of each axis of a new mesh.  Raises: TypeError, ValueError."""
    count = len(names)
    if count:
        _Axes.in_use = True
    if given is None:
        return (default,) * count
    types = (given,) * count if isinstance(given, AxisType) else \
        tuple(given) if isinstance(given, Iterable) else (given,)
    if AxisType.Explicit in types:
        Seen.placements = True
    if not all(isinstance(t, AxisType) for t in types):
        raise TypeError("axis_types passed to Mesh must be of type `jax.sharding.AxisType`. Got "
                        f"{types} of type {tuple(map(type, types))}")
    if len(types) != count:
        raise ValueError("Number of axis names should match the number of axis_types. Got "
                         f"axis_names={tuple(names)} and axis_types={types}")
    return types


class _Axes:
    """What meshes with and without devices have in common."""

    # Whether there has been a mesh with an axis: until then no program is asked for one.
    in_use: ClassVar[bool] = False
    axis_names: tuple
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, "_hash"):  # which is computed last, when a mesh is made
            raise AttributeError(f"cannot assign to field {name!r}: a mesh never changes, since "
                                 "programs and arrays share it. Make another one, for example "
                                 "with mesh.update().")
        object.__setattr__(self, name, value)

    @property
    def shape(self) -> collections.OrderedDict:
        return collections.OrderedDict(zip(self.axis_names, self.axis_sizes))

    @property
    def shape_tuple(self) -> tuple:
        return tuple(zip(self.axis_names, self.axis_sizes))

    @property
    def size(self) -> int:
        return math.prod(self.axis_sizes) if self.axis_sizes else 0

    @property
    def empty(self) -> bool:
        return not self.axis_names or 0 in self.axis_sizes

    def _of_type(self, kind: AxisType) -> tuple:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types) if t is kind)

    auto_axes = property(lambda self: self._of_type(AxisType.Auto))
    explicit_axes = property(lambda self: self._of_type(AxisType.Explicit))
    manual_axes = property(lambda self: self._of_type(AxisType.Manual))
    are_all_axes_auto = property(lambda self: len(self.auto_axes) == len(self.axis_names))
    are_all_axes_explicit = property(lambda self: len(self.explicit_axes) == len(self.axis_names))
    are_all_axes_manual = property(lambda self: len(self.manual_axes) == len(self.axis_names))

    def _described(self) -> str:
        if self.empty:
            return ""
        return ", ".join([f"'{n}': {s}" for n, s in self.shape_tuple]
                         + [f"axis_types={self.axis_types}"])


class AbstractDevice(Record):
    """A kind of device that need not be there."""

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return f"AbstractDevice({self.described()})"

    def described(self) -> str:
        """Return what meshes and devices print of it."""
        return (f"device_kind={self.device_kind}, num_cores={self.num_cores}, "
                f"platform={self.platform}")


class AbstractMesh(_Axes):
    """A mesh of which only names and sizes are known.

    >>> jax.sharding.AbstractMesh((2, 4), ("x", "y")).size
    8
    """

    __slots__ = ("axis_sizes", "axis_names", "axis_types", "abstract_device", "_hash")
    abstract_device: Any
    _hash: int
    _internal_device_list = None  # jaxlib asks every mesh of a sharding

    def __new__(cls, axis_sizes: Sequence[int], axis_names: Any,
                axis_types: Any = None, *, abstract_device: Any = None) -> AbstractMesh:
        self = object.__new__(cls)  # made at once, since a pickle of JAX calls no __init__
        self.axis_sizes = tuple(axis_sizes)
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError("AbstractMesh: the number of axis_sizes must be that of axis_names, "
                             f"got {self.axis_sizes} and {self.axis_names}")
        self.axis_types = _axis_types(axis_types, self.axis_names, AxisType.Auto)
        self.abstract_device = abstract_device
        self._hash = hash((self.axis_sizes, self.axis_names, self.axis_types, abstract_device))
        return self

    def __reduce__(self) -> tuple:
        whole = functools.partial(AbstractMesh, abstract_device=self.abstract_device)
        return whole, (self.axis_sizes, self.axis_names, self.axis_types)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    def _refuse(self, what: str) -> Any:
        raise ValueError(f"AbstractMesh does not implement {what}. Use a jax.sharding.Mesh, which "
                         f"has devices, in place of {self}.")

    devices = property(lambda self: self._refuse("devices"))
    device_ids = property(lambda self: self._refuse("device_ids"))
    is_multi_process = property(lambda self: self._refuse("is_multi_process"))
    local_devices = property(lambda self: self._refuse("local_devices"))
    local_mesh = property(lambda self: self._refuse("local_mesh"))

    @property
    def _flat(self) -> tuple:
        raise ValueError(f"{self} has no devices: use a sharding on a jax.sharding.Mesh")

    def update_axis_types(self, changes: dict[Any, AxisType]) -> AbstractMesh:
        """Return this mesh with other types for some axes."""
        types = tuple(changes.get(n, t) for n, t in zip(self.axis_names, self.axis_types))
        return AbstractMesh(self.axis_sizes, self.axis_names, types,
                            abstract_device=self.abstract_device)

    def update(self, axis_sizes: Sequence[int] | None = None, axis_names: Any = None,
               axis_types: Any = None) -> AbstractMesh:
        """Return this mesh with other sizes, names or types of its axes.

        >>> jax.sharding.AbstractMesh((2, 4), ("x", "y")).update(axis_sizes=(1, 2)).size
        2
        """
        return AbstractMesh(self.axis_sizes if axis_sizes is None else axis_sizes,
                            self.axis_names if axis_names is None else axis_names,
                            self.axis_types if axis_types is None else axis_types,
                            abstract_device=self.abstract_device)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, AbstractMesh) and (
            (self.axis_sizes, self.axis_names, self.axis_types, self.abstract_device)
            == (other.axis_sizes, other.axis_names, other.axis_types, other.abstract_device)))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        kind = self.abstract_device
        more = f", {kind.described()}" if kind is not None else ""
        return f"AbstractMesh({self._described() or '(), axis_types=()'}{more})"


class Mesh(contextlib.ContextDecorator, _Axes):
    """Devices in an array whose axes have names.

    Raises: ValueError if the number of names is not the rank of ``devices`` or a name repeats.

    >>> jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",)).shape["data"]
    1
    """

    def __init__(self, devices: Any, axis_names: Any, axis_types: Any = None):
        if not isinstance(devices, np.ndarray):
            devices = np.array(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if devices.ndim != len(names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of "
                f"its second argument (`axis_names`), but got devices.ndim == {devices.ndim} and "
                f"len(axis_names) == {len(names)}.")
        if None in names:
            raise ValueError(f"Mesh axis names cannot be None. Got: {names}")
        if len(set(names)) != len(names):
            raise ValueError(f"Mesh: axis names must differ, got {names}")
        self.devices = devices.copy()
        self.devices.flags.writeable = False
        self.axis_names = names
        self.axis_sizes = devices.shape
        self.axis_types = _axis_types(axis_types, names, AxisType.Auto)
        self._flat = tuple(self.devices.flat)
        self._hash = hash((self._flat, self.axis_sizes, names, self.axis_types))

    @functools.cached_property
    def _internal_device_list(self) -> Any:
        return _jaxlib.DeviceList(self._flat)

    @functools.cached_property
    def abstract_mesh(self) -> AbstractMesh:
        kind = None
        if self._flat:
            first = self._flat[0]
            kind = AbstractDevice(first.device_kind, getattr(first, "num_cores", None),
                                  first.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types,
                            abstract_device=kind)

    @functools.cached_property
    def device_ids(self) -> np.ndarray:
        return np.array([d.id for d in self._flat], np.int64).reshape(self.axis_sizes)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """Return this mesh with other devices, or other names or types of its axes.

        >>> jax.sharding.Mesh(np.array(jax.devices()[:1]), "x").update(axis_names="y").axis_names
        ('y',)
        """
        return Mesh(self.devices if devices is None else devices,
                    self.axis_names if axis_names is None else axis_names,
                    self.axis_types if axis_types is None else axis_types)

    @property
    def is_multi_process(self) -> bool:
        return len({d.process_index for d in self._flat}) > 1

    @property
    def local_devices(self) -> list[Any]:
        here = device_module.process_index()
        return [d for d in self._flat if d.process_index == here]

    @functools.cached_property
    def local_mesh(self) -> Mesh:
        """The part of the mesh whose devices belong to this process.

        Raises: ValueError if that part is no block.
        """
        here = device_module.process_index()
        mine = np.vectorize(lambda d: d.process_index == here, otypes=[bool])(self.devices)
        index = tuple(slice(int(w.min()), int(w.max()) + 1) for w in np.nonzero(mine))
        block = self.devices[index]
        if block.size != mine.sum():
            raise ValueError("local_mesh: the devices of this process are no block of the mesh")
        return Mesh(block, self.axis_names, self.axis_types)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Mesh) and self._hash == other._hash and self._flat == other._flat
            and self.axis_sizes == other.axis_sizes and self.axis_names == other.axis_names
            and self.axis_types == other.axis_types)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=())"
        return (f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, "
                f"axis_types={self.axis_types})")

    def __str__(self) -> str:
        return f"Mesh({self._described()})"

    def __reduce__(self) -> tuple:
        places = [(d.platform, d.id) for d in self._flat]
        return _mesh_on, (places, self.axis_sizes, self.axis_names, self.axis_types)

    def __enter__(self) -> Mesh:
        warnings.warn("`with mesh:` context manager has been deprecated. Please use "
                      "`with jax.set_mesh(mesh):` instead.", DeprecationWarning, stacklevel=2)
        _entered(self).append(mesh_entered.swap_local(self))
        return self

    def __exit__(self, *exc: Any) -> None:
        mesh_entered.set_local(_entered(self).pop())


def _entered(mesh: Mesh) -> list[Any]:
    return mesh.__dict__.setdefault("_before", [])


def _mesh_on(places: Sequence[tuple[str, int]], sizes: tuple, names: tuple, types: tuple) -> Mesh:
    found = {(d.platform, d.id): d for platform in {p for p, _ in places}
             for d in device_module.devices(platform)}
    flat = np.array([found[place] for place in places], dtype=object)
    return Mesh(flat.reshape(sizes), names, types)


# The mesh in force, part of every trace's key.
mesh_context = _jaxlib.Config(
    "mesh_context", None, include_in_jit_key=True, include_in_trace_context=True)
# Of these, the one that set_mesh put in force, whatever types its axes have now.
mesh_set = _jaxlib.Config("mesh_set", None, include_in_jit_key=True, include_in_trace_context=True)
# The mesh of ``with mesh:``: specs of ``with_sharding_constraint`` and ``pjit`` stand on it.
mesh_entered = _jaxlib.Config(
    "mesh_entered", None, include_in_jit_key=True, include_in_trace_context=True)
_NO_MESH = Mesh(np.empty((), object), ())


class set_mesh:
    """Put ``mesh`` in force: for a ``with`` block, or from now on if called by itself.

    Source: the documentation of jax.set_mesh.
    """

    def __init__(self, mesh: Mesh | None):
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}")
        if config.staging.value:
            raise ValueError("`set_mesh` can only be used outside of `jax.jit`.")
        self.mesh = mesh
        self.before = [setting.get_global() for setting in (mesh_context, mesh_set)]
        mesh_context.set_global(mesh)
        mesh_set.set_global(mesh)

    def __enter__(self) -> Mesh | None:
        mesh_context.set_global(self.before[0])
        mesh_set.set_global(self.before[1])
        self.before = [setting.swap_local(self.mesh) for setting in (mesh_context, mesh_set)]
        return self.mesh

    def __exit__(self, *exc: Any) -> None:
        mesh_context.set_local(self.before[0])
        mesh_set.set_local(self.before[1])


class use_abstract_mesh:
    """``with use_abstract_mesh(mesh):`` puts a mesh without devices in force."""

    def __init__(self, mesh: AbstractMesh):
        if not isinstance(mesh, AbstractMesh):
            raise ValueError("Expected mesh of type `jax.sharding.AbstractMesh`. Got type: "
                             f"{type(mesh)}")
        self.mesh = mesh

    def __enter__(self) -> AbstractMesh:
        self.before = mesh_context.swap_local(self.mesh)
        return self.mesh

    def __exit__(self, *exc: Any) -> None:
        mesh_context.set_local(self.before)


def concrete_mesh() -> Mesh:
    """Return the mesh in force, an empty one if there is none."""
    mesh = mesh_context.value
    return mesh if isinstance(mesh, Mesh) else _NO_MESH


def get_mesh() -> Mesh:
    """Return the mesh in force, an empty one if there is none.

    Raises: ArgumentError inside a transformed function, which is traced for any devices.

    >>> jax.sharding.get_mesh().empty
    True
    """
    if state.trace is not eval_trace:
        raise errors.explained(
            errors.ArgumentError, "get_mesh.traced",
            "`get_mesh` can only be used outside of `jax.jit`. Maybe you want "
            "`jax.sharding.get_abstract_mesh()`?",
            advice="Or ask for the mesh before, and let the function close over it.")
    return concrete_mesh()


def get_abstract_mesh() -> AbstractMesh:
    """Return the mesh in force without its devices, an empty one if there is none.

    >>> jax.sharding.get_abstract_mesh().empty
    True
    """
    mesh = mesh_context.value
    return AbstractMesh((), ()) if mesh is None else mesh.abstract_mesh


def make_mesh(axis_shapes: Sequence[int], axis_names: Any, axis_types: Any = None, *,
              devices: Sequence[Any] | None = None) -> Mesh:
    """Return a mesh of ``axis_shapes`` over ``devices`` (the first ones of the default backend).

    Raises: ValueError if there are too few devices.
    """
    sizes = tuple(axis_shapes)
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    if len(sizes) != len(names):
        raise ValueError(
            "Mesh requires the ndim of its first argument (`devices`) to equal the length of its "
            f"second argument (`axis_names`), but got devices.ndim == {len(sizes)} and "
            f"len(axis_names) == {len(names)}. make_mesh was given {sizes} and {names}.")
    if not all(isinstance(n, (int, np.integer)) for n in sizes):
        raise ValueError("`axis_shapes` passed to `make_mesh` should be a sequence of ints. Got "
                         f"{sizes}")
    if 0 in sizes:
        raise ValueError(f"A mesh has at least one device along each axis, got the sizes {sizes}.")
    have = list(device_module.devices() if devices is None else devices)
    need = math.prod(sizes)
    if any(n < 0 for n in sizes):
        raise ValueError(f"Number of devices {len(have)} must equal the product of mesh_shape "
                         f"{sizes}. Sizes are not negative.")
    if need > len(have):
        raise ValueError(
            f"Number of devices {len(have)} must be >= the product of mesh_shape {sizes}. On CPU, "
            f"ask for more before the first computation: "
            f"jax.config.update('jax_num_cpu_devices', {need}).")
    if devices is not None and need != len(have):
        raise ValueError(f"make_mesh: {len(have)} devices do not fill a mesh of {sizes}")
    return Mesh(np.array(have[:need], dtype=object).reshape(sizes), names,
                _axis_types(axis_types, names, AxisType.Explicit))

