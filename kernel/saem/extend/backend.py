"""Which clients of XLA are there?  (``jax.extend.backend``)

Read before: ``placement.devices``.
Invariant: nothing is started twice; a client lives as long as the process.
Source: the documentation of jax.extend.backend.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saem.compile import dispatch
from saem.compile.executables import compile_options
from saem.core import errors
from saem.placement import devices


def backends() -> dict[str, Any]:
    """Return the clients by platform, the default one first."""
    return devices.all_backends()


def get_backend(platform: Any = None) -> Any:
    """Return the client of ``platform``, or the default one.

    Raises: RuntimeError naming the platforms there are.
    """
    return devices.backend(platform)


def get_default_device() -> Any:
    """Return the device where values without a place of their own go."""
    return devices.default_device()


def backend_xla_version(platform: Any = None) -> int | None:
    """Return the version of XLA that the client of ``platform`` gives, if it does."""
    return getattr(devices.backend(platform), "xla_version", None)


def get_compile_options(num_replicas: int, num_partitions: int, device_assignment: Any = None,
                        env_options_overrides: dict[str, str] | None = None, **_ignored: Any
                        ) -> Any:
    """Return XLA's options for a program on this many devices.

    Raises: ValueError for several replicas, which the engine has none of.
    """
    if num_replicas != 1:
        raise errors.explained(
            errors.ArgumentError, "backend.C1",
            f"get_compile_options: programs have one replica here, got {num_replicas}.",
            advice="Use num_partitions; replication is a sharding.")
    chosen = device_assignment if device_assignment is not None else [
        d.id for d in devices.devices()[:num_partitions]]
    numbers = [int(n) for row in chosen for n in (row if hasattr(row, "__iter__") else [row])]
    known = {d.id: d for d in devices.devices()}
    return compile_options([known[n] for n in numbers], env_options_overrides or {})


def clear_in_memory_compilation_cache() -> None:
    """Forget every executable."""
    dispatch.clear_executables()


def clear_backends() -> None:
    """Refuse: arrays of a client that is gone would end the process.

    Raises: RuntimeError.
    """
    raise errors.explained(
        RuntimeError, "backend.C2", "clear_backends: a client lives as long as the process.",
        advice="Start a new process, or set devices before the first operation.")


_caches: list[tuple[Any, str]] = []


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Remember a cache that stands on a client; clients stay, so it is never cleared."""
    _caches.append((cache, for_what))


def register_backend_factory(name: str, factory: Callable[[], Any], **_ignored: Any) -> None:
    """Let ``factory()`` make the client of platform ``name``, when that is first used.

    Raises: RuntimeError if the clients run already.
    """
    devices.add_maker(name, factory)


__all__ = [
    "backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache",
    "get_backend", "get_compile_options", "get_default_device", "register_backend_cache",
    "register_backend_factory",
]
