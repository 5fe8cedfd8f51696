"""Which devices are there, and where does an array live?

Backends start when first needed.  A sharding says on which devices an array lies; with one device
it is a ``SingleDeviceSharding``.

Read before: ``_jaxlib``.  Read after: ``compile.arrays``.
Invariant: a device object is the same object for the life of the process.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from saem import _jaxlib
from saem.core import config
from saem.core.lazy import later
from saem.core.record import Record
from saem.placement import plugins

logging: Any = later("logging")  # only platforms that fail to start need it

# Each CPU device that waits for others in a collective holds a thread of XLA's.  Programs that do
# not wait for each other may begin in another order on each device; were all threads to wait, none
# could go on, and after a minute XLA would end the process.
THREADS_PER_DEVICE = 8
_THREADS = ("PJRT_NPROC", "NPROC")  # where XLA looks for the number of its threads

T = TypeVar("T")
_lock = threading.RLock()
_backends: dict[str, Any] = {}
# Names under which a platform is also known.
_ALSO = {"gpu": "cuda"}


class Processes(Record):
    """This process among those that compute together: its number, how many, and their runtime."""

    client: Any
    node_id: int
    num_nodes: int


# Set by ``saem.distributed`` before the backends start.
processes: list[Processes] = []


def backend(platform: str | None = None) -> Any:
    """Return the PJRT client of ``platform`` ('cpu', 'gpu', …), or of the default one.

    Raises: RuntimeError naming the platforms there are.
    """
    if not _backends:
        _start()
    if platform is None:
        return next(iter(_backends.values()))
    if not isinstance(platform, str):
        return platform
    name = platform.lower()
    found = _backends.get(name) or _backends.get(_ALSO.get(name, ""))
    if found is None:
        missing = (f"Unknown backend: {platform!r} requested, but no platforms that are instances "
                   f"of {platform} are present. Platforms present are: {','.join(_backends)}"
                   if name == "gpu" else
                   f"Unknown backend {platform}. Available backends are {list(_backends)}")
        raise RuntimeError(
            f"{missing}. The extra saem[cuda13] drives NVIDIA GPUs, the wheel libtpu "
            "TPUs.")
    return found


def all_backends() -> dict[str, Any]:
    """Return the clients by platform, the default one first."""
    backend()
    return dict(_backends)


def add_maker(name: str, make: Callable[[], Any]) -> None:
    """Let ``make`` start the client of platform ``name``.

    Raises: RuntimeError if the clients run already.
    """
    check_before_start(f"the maker of {name}")
    plugins.MAKERS[name] = lambda _processes: make()


def started() -> bool:
    """Return whether a backend runs already."""
    return bool(_backends)


def _start() -> None:
    with _lock:
        if _backends:
            return
        named = config.platforms.value or config.platform_name.value or ""
        wanted = [p.strip().lower() for p in named.split(",") if p.strip()]
        made: dict[str, Any] = {}
        for platform in wanted or [*plugins.available(), "cpu"]:
            if platform == "cuda" and len(wanted) > 1 and plugins.cuda_library() is None:
                continue  # as in JAX, "cuda,cpu" means a GPU where there is a plugin for it
            try:
                made[_ALSO.get(platform, platform)] = _client_of(platform)
            except (RuntimeError, ValueError) as error:
                if wanted:
                    raise RuntimeError(
                        f"Unable to initialize backend {platform!r}: {error} (JAX_PLATFORMS, "
                        "SAEM_PLATFORMS and jax.config name the platforms; unset them to take "
                        "what there is.)") from None
                logging.getLogger("saem").warning(
                    "A %s plugin is installed but could not be started: %s", platform, error)
        if "cpu" not in made:
            made["cpu"] = make_cpu_client()  # the host is always there, last
        _backends.update(made)
        _watch_forks()


@functools.cache
def _watch_forks() -> None:
    """Let a fork warn from now on; a system without forks has nothing to watch."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_warn_of_fork)


# Parts of Python's library that fork to run another program at once (IPython's ``!ls``).
_OTHER_PROGRAMS = ("pty", "subprocess")


def _warn_of_fork() -> None:
    if started() and sys._getframe(1).f_globals.get("__name__") not in _OTHER_PROGRAMS:
        warnings.warn(
            "os.fork() was called. The backends run threads, which the child process will not "
            "have, so it may wait for ever. Start processes anew: "
            "multiprocessing.get_context('spawn'), or num_workers=0 of a data loader.",
            RuntimeWarning, stacklevel=2)


def _client_of(platform: str) -> Any:
    if platform == "cpu":
        return make_cpu_client()
    maker = plugins.MAKERS.get(platform)
    if maker is None:
        raise RuntimeError(f"no such platform; there are cpu, {', '.join(plugins.MAKERS)}.")
    return maker(processes[0] if processes else None)


def make_cpu_client() -> Any:
    """Return the client of this host's CPU, with as many devices as settings or XLA_FLAGS say."""
    count = config.num_cpu_devices.value
    options: dict[str, Any] = {"asynchronous": config.cpu_enable_async_dispatch.value}
    if count > 0:
        options["num_devices"] = count
    if processes:
        options["distributed_client"] = processes[0].client
        options["node_id"] = processes[0].node_id
        options["num_nodes"] = processes[0].num_nodes
        options["collectives"] = _jaxlib.make_gloo_tcp_collectives(processes[0].client)
    with enough_threads():
        return _jaxlib.make_cpu_client(**options)


@contextlib.contextmanager
def enough_threads() -> Iterator[None]:
    """Let a CPU client that is made in the block have ``THREADS_PER_DEVICE``."""
    flag = re.search(r"--xla_force_host_platform_device_count=(\d+)",
                     os.environ.get("XLA_FLAGS", ""))
    count = config.num_cpu_devices.value
    count = count if count > 0 else int(flag[1]) if flag else 1
    if (count == 1 and not processes) or any(name in os.environ for name in _THREADS):
        yield  # no device waits for another, or the user has said how many
        return
    os.environ[_THREADS[0]] = str(max(os.cpu_count() or 1, THREADS_PER_DEVICE * count))
    try:
        yield
    finally:
        del os.environ[_THREADS[0]]


def check_before_start(name: str, value: Any = None) -> None:
    """Refuse to change a setting that the backends have read already.

    The platforms that were made may be named again. Raises: RuntimeError.
    """
    if name in ("jax_platforms", "jax_platform_name") and value and \
            value.split(",") == list(_backends):
        return
    if _backends:
        raise RuntimeError(
            f"{name} config should be updated before backends are initialized i.e. before any JAX "
            "operation is executed. You should initialize jax_num_cpu_devices and platforms right "
            "after the import.")


config.before_start.append(check_before_start)


# For functions that have a parameter of that name.
_client = backend


def default_backend() -> str:
    """Return the platform name of the default backend: 'cpu', 'gpu' or 'tpu'.

    >>> jax.default_backend() in ("cpu", "gpu", "tpu")
    True
    """
    return backend().platform


def devices(backend: Any = None) -> list[Any]:
    """Return all devices of the platform ``backend`` (the default one if None).

    >>> len(jax.devices()) == jax.device_count()
    True
    """
    return _client(backend).devices()


def local_devices(process_index: int | None = None, backend: Any = None,
                  host_id: int | None = None) -> list[Any]:
    """Return the devices attached to this process, or to the one of another number.

    Raises: ValueError if there is no such process.

    >>> len(jax.local_devices()) == jax.local_device_count()
    True
    """
    if host_id is not None:
        _renamed("The argument to jax.local_devices", "`host_id`", "`process_index`")
        process_index = host_id
    client = _client(backend)
    if process_index is None:
        return client.local_devices()
    found = [d for d in client.devices() if d.process_index == process_index]
    if not found:
        raise ValueError(f"Unknown process_index {process_index}")
    return found


def device_count(backend: Any = None) -> int:
    """Return the number of devices over all processes.

    >>> jax.device_count() >= 1
    True
    """
    return len(_client(backend).devices())


def local_device_count(backend: Any = None) -> int:
    """Return the number of devices of this process.

    >>> jax.local_device_count() >= 1
    True
    """
    return len(_client(backend).local_devices())


def process_index(backend: Any = None) -> int:
    """Return the number of this process among all.

    >>> jax.process_index()
    0
    """
    return _client(backend).process_index()


def process_count(backend: Any = None) -> int:
    """Return the number of processes.

    >>> jax.process_count()
    1
    """
    return max((d.process_index for d in _client(backend).devices()), default=0) + 1


def process_indices(backend: Any = None) -> list[int]:
    """Return the numbers of all processes."""
    return sorted({d.process_index for d in _client(backend).devices()})


def _renamed(what: str, old: str, new: str) -> None:
    warnings.warn(f"{what} has been renamed from {old} to {new}. This alias will eventually be "
                  "removed; please update your code.", stacklevel=3)


def host_id(backend: Any = None) -> int:
    """Return ``process_index()``, whose older name it is."""
    _renamed("The function", "jax.host_id", "jax.process_index")
    return process_index(backend)


def host_ids(backend: Any = None) -> list[int]:
    """Return ``process_indices()``, whose older name it is."""
    _renamed("The function", "jax.host_ids", "jax.process_indices")
    return process_indices(backend)


def host_count(backend: Any = None) -> int:
    """Return ``process_count()``, whose older name it is."""
    _renamed("The function", "jax.host_count", "jax.process_count")
    return process_count(backend)


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


def onto(target: type) -> Callable[[T], T]:
    """Put the methods of a class body onto ``target``, a class of jaxlib, and return that.

    C++ hashes and compares its own classes by itself; of a subclass it would ask Python, for
    every argument of every call.
    """

    def decorate(body: Any) -> Any:
        for name, value in vars(body).items():
            if name not in ("__dict__", "__weakref__"):
                setattr(target, name, value)
        return target

    return decorate


@onto(_jaxlib.SingleDeviceSharding)
class SingleDeviceSharding:
    """The whole array lies on one device: ``SingleDeviceSharding(device, memory_kind=None)``.

    >>> jax.sharding.SingleDeviceSharding(jax.devices()[0]).is_fully_replicated
    True
    """

    _device: Any
    _memory_kind: str | None

    @property
    def device_set(self) -> set:
        return {self._device}

    @property
    def _device_assignment(self) -> tuple:
        return (self._device,)

    @property
    def memory_kind(self) -> str | None:
        return self._memory_kind

    def with_memory_kind(self, kind: str | None) -> SingleDeviceSharding:
        """Return this sharding in another memory of its device."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    @property
    def num_devices(self) -> int:
        return 1

    is_fully_replicated = True

    @property
    def is_fully_addressable(self) -> bool:
        return self._internal_device_list.is_fully_addressable

    has_addressable_devices = is_fully_addressable

    # Checkpoint libraries ask for the devices of this process in their order.
    @property
    def _addressable_device_assignment(self) -> tuple:
        return (self._device,) if self.is_fully_addressable else ()

    @property
    def addressable_devices(self) -> set:
        return set(self._addressable_device_assignment)

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return _jaxlib.HloSharding.replicate()

    @property
    def _internal_device_list(self) -> Any:
        return device_list(self._device)

    def check_compatible_aval(self, shape: Any) -> None:
        """Accept every shape: nothing is sharded."""

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict:
        """Return which part of the array each device holds: here, all of it."""
        return {self._device: (slice(None),) * len(global_shape)}

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> dict:
        """Return what ``devices_indices_map`` does, of the devices of this process."""
        return self.devices_indices_map(global_shape) if self.is_fully_addressable else {}

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
        return hash((self._device, self._memory_kind))

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


def make_single_device_sharding(device: Any, *, memory_kind: str | None = None
                                ) -> SingleDeviceSharding:
    """Return the sharding of an array that is whole on ``device``, in the memory of that kind."""
    return single_device(device) if memory_kind is None else SingleDeviceSharding(
        device, memory_kind=memory_kind)


@functools.cache
def device_list(device: Any) -> Any:
    """Return the list of one device, as jaxlib wants lists of devices."""
    return _jaxlib.DeviceList((device,))


def lowering_platform(device: Any) -> str:
    """Return the platform for which programs on ``device`` are written: 'cpu', 'cuda', …"""
    if device.platform != "gpu":
        return device.platform
    return "rocm" if "rocm" in device.client.platform_version.lower() else "cuda"


def placement_name(device: Any) -> str:
    """Return ``cpu:0``, as events and messages name a device."""
    return f"{device.platform}:{device.id}"
