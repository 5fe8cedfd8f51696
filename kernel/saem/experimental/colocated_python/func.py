"""How is a function run where its arrays are?

``colocated_python(f)`` is called like ``f``.  It wants to know devices: those of the arrays among
its arguments, or those it was specialized with.  Specialized with the types of its results, it
checks that they are what ``f`` returns.

Read before: ``experimental.colocated_python``.
Invariant: a call without arrays and devices is refused, as JAX refuses it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem import _jaxlib, tree
from saem.core.avals import ShapeDtypeStruct, aval_of
from saem.jit.transfers import device_put
from saem.placement.devices import devices
from saem.placement.meshes import Mesh


def colocated_cpu_devices(devices_or_mesh: Sequence[Any] | Mesh) -> Any:
    """Return the CPU devices of the machines that have these devices: a list, or a mesh for a mesh.

    >>> len(jax.experimental.colocated_python.colocated_cpu_devices(jax.devices()[:1]))
    1
    """
    if isinstance(devices_or_mesh, Mesh):
        mesh = devices_or_mesh
        flat = colocated_cpu_devices(list(mesh.devices.flat))
        placed = np.empty(mesh.devices.shape, object)
        placed.flat = flat
        return Mesh(placed, mesh.axis_names, mesh.axis_types)
    local = devices("cpu")
    return [d if d.platform == "cpu" else local[d.local_hardware_id % len(local)]
            for d in devices_or_mesh]


def structs_of(values: Any) -> Any:
    """Return the types and places of a pytree of arrays."""
    return tree.map_(ShapeDtypeStruct.like, values)


def checked(values: Any, wanted: Any) -> Any:
    """Return the results ``values``, placed as the structs ``wanted`` say.

    Raises: ValueError if they have another structure, shape or dtype.
    """
    leaves, structure = tree.flatten(values)
    specs, expected = tree.flatten(wanted)
    if structure != expected:
        raise ValueError("colocated_python: the function returned another structure than "
                         f"out_specs_fn promised: {structure} for {expected}.")
    found = []
    for value, spec in zip(leaves, specs):
        aval = aval_of(value)
        if aval.shape != spec.shape or aval.dtype != spec.dtype:
            raise ValueError("colocated_python: the function returned a result of type "
                             f"{aval.str_short()}, but out_specs_fn promised "
                             f"{aval_of(spec).str_short()}.")
        found.append(value if spec.sharding is None else device_put(value, spec.sharding))
    return structure.unflatten(found)


def specialized(fun: Callable, in_specs: Any, out_specs_fn: Callable | None,
                places: Sequence[Any] | None) -> Callable:
    """Return ``fun`` as it is called: with known types of arguments and results, and devices."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if places is None and not any(
                isinstance(x, _jaxlib.Array) for x in tree.leaves((args, kwargs))):
            raise ValueError("No devices found. colocated_python function without input arguments "
                             "must be first specialized with devices.")
        if in_specs is not None and structs_of((args, kwargs)) != in_specs:
            raise ValueError("colocated_python: the input types differ from those that the "
                             f"function was specialized with: {in_specs}.")
        out = fun(*args, **kwargs)
        if out_specs_fn is None:
            return out
        return checked(out, out_specs_fn(*structs_of(args), **structs_of(kwargs)))

    def specialize(in_specs: Any = in_specs, out_specs_fn: Callable | None = out_specs_fn,
                   devices: Sequence[Any] | None = places) -> Callable:
        return specialized(fun, in_specs, out_specs_fn, devices)

    call.specialize = specialize  # type: ignore[attr-defined]
    return call


def colocated_python(fun: Callable[..., Any]) -> Any:
    """Return ``fun`` as a function that runs on the machines that hold its array arguments.

    ``.specialize(in_specs=, out_specs_fn=, devices=)`` gives it the types of its arguments, of its
    results (a function of those of the arguments), or the devices; then it may take no arrays.

    Raises: ValueError if no device is known.

    >>> jax.experimental.colocated_python.colocated_python(lambda x: x + 1)(jnp.array([1, 2]))
    Array([2, 3], dtype=int32)
    """
    return specialized(fun, None, None, None)
