"""Which devices are there, and where does an array live?

Backends start when first needed.  A sharding says on which devices an array lies; with one device
it is a ``SingleDeviceSharding``.

Read before: ``_jaxlib``.  Read after: ``xla.arrays``.
Invariant: a device object is the same object for the life of the process.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

from saem import _jaxlib
from saem.core import config

_lock = threading.RLock()
_backends: dict[str, Any] = {}


def backend(platform: str | None = None) -> Any:
    """Return the PJRT client of ``platform`` ('cpu', …), or of the default one.

    Raises: RuntimeError naming the platforms there are.
    """
    if not _backends:
        _start()
    if platform is None:
        return next(iter(_backends.values()))
    if not isinstance(platform, str):
        return platform
    try:
        return _backends[platform.lower()]
    except KeyError:
        raise RuntimeError(
            f"Unknown backend: {platform!r} requested, but only platforms that are present are "
            f"{sorted(_backends)}. This version of saem drives CPUs."
        ) from None


def started() -> bool:
    """Return whether a backend runs already."""
    return bool(_backends)


def _start() -> None:
    with _lock:
        if _backends:
            return
        wanted = config.platforms.value or os.environ.get("SAEM_PLATFORMS") or ""
        unknown = [p for p in wanted.split(",") if p and p != "cpu"]
        if unknown:
            raise RuntimeError(
                f"Unable to initialize backend {unknown[0]!r}: only 'cpu' is built in. "
                "Unset JAX_PLATFORMS (or SAEM_PLATFORMS), or set it to cpu.")
        client = _jaxlib.make_cpu_client()
        _backends["cpu"] = client


def default_backend() -> str:
    """Return the platform name of the default backend: 'cpu', 'gpu' or 'tpu'."""
    return backend().platform


def devices(platform: str | None = None) -> list[Any]:
    """Return all devices of ``platform`` (the default one if None)."""
    return backend(platform).devices()


def local_devices(process_index: int | None = None, backend: Any = None) -> list[Any]:
    """Return the devices attached to this process."""
    client = _client(backend)
    if process_index is None:
        return client.local_devices()
    return [d for d in client.devices() if d.process_index == process_index]


def _client(platform: Any) -> Any:
    return backend(platform)


def device_count(backend: Any = None) -> int:
    """Return the number of devices over all processes."""
    return len(_client(backend).devices())


def local_device_count(backend: Any = None) -> int:
    """Return the number of devices of this process."""
    return len(_client(backend).local_devices())


def process_index(backend: Any = None) -> int:
    """Return the number of this process among all."""
    return _client(backend).process_index()


def process_count(backend: Any = None) -> int:
    """Return the number of processes."""
    return max((d.process_index for d in _client(backend).devices()), default=0) + 1


def default_device() -> Any:
    """Return the device where values without a place of their own go."""
    chosen = config.default_device.value
    if chosen is None:
        return _first_device()
    if isinstance(chosen, str):
        return backend(chosen).local_devices()[0]
    return chosen


@functools.cache
def _first_device() -> Any:
    return backend().local_devices()[0]


class SingleDeviceSharding(_jaxlib.SingleDeviceSharding):
    """The whole array lies on one device."""

    def __init__(self, device: Any, *, memory_kind: str | None = None):
        super().__init__(device, memory_kind)
        self._hash = hash((device, memory_kind))

    @property
    def device_set(self) -> set:
        return {self._device}

    @property
    def _device_assignment(self) -> tuple:
        return (self._device,)

    @property
    def memory_kind(self) -> str | None:
        return self._memory_kind

    @property
    def num_devices(self) -> int:
        return 1

    @property
    def addressable_devices(self) -> set:
        return {self._device}

    is_fully_replicated = True
    is_fully_addressable = True

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return _jaxlib.HloSharding.replicate()

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict:
        """Return which part of the array each device holds: here, all of it."""
        return {self._device: (slice(None),) * len(global_shape)}

    addressable_devices_indices_map = devices_indices_map

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(global_shape)

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        return self == other or (
            getattr(other, "device_set", None) == {self._device}
            and getattr(other, "memory_kind", None) == self.memory_kind)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is SingleDeviceSharding
            and other._device is self._device
            and other._memory_kind == self._memory_kind)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self):
        return (_sharding_on, (self._device.platform, self._device.id, self._memory_kind))

    def __repr__(self) -> str:
        kind = f", memory_kind={self._memory_kind}" if self._memory_kind else ""
        return f"SingleDeviceSharding(device={self._device!r}{kind})"


def _sharding_on(platform: str, number: int, memory_kind: str | None) -> SingleDeviceSharding:
    device = next(d for d in devices(platform) if d.id == number)
    return SingleDeviceSharding(device, memory_kind=memory_kind)


@functools.cache
def single_device(device: Any) -> SingleDeviceSharding:
    """Return the one sharding object for ``device``."""
    return SingleDeviceSharding(device)


def placement_name(device: Any) -> str:
    """Return ``cpu:0``, as events and messages name a device."""
    return f"{device.platform}:{device.id}"
