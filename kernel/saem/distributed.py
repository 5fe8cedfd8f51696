"""How do several processes compute as one?

Each calls ``initialize`` before its first computation: process 0 also runs the service at which
all meet.  Then ``devices()`` lists the devices of all processes, a program over a mesh of them is
called by each, and XLA moves data between them (on CPUs through Gloo, over TCP).

Read before: ``placement.devices``.
Invariant: without ``initialize`` nothing here runs and no port is opened.
Source: the documentation of jax.distributed.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from typing import Any

from saem import _jaxlib
from saem.placement import devices
from saem.placement.devices import Processes

_service: list[Any] = []


def initialize(coordinator_address: str | None = None, num_processes: int | None = None,
               process_id: int | None = None,
               local_device_ids: int | Sequence[int] | None = None,
               cluster_detection_method: str | None = None, initialization_timeout: int = 300,
               heartbeat_timeout_seconds: int = 100, shutdown_timeout_seconds: int = 300,
               coordinator_bind_address: str | None = None, slice_index: int | None = None,
               partition_index: int | None = None) -> None:
    """Join the other processes; ``coordinator_address`` is ``host:port`` of process 0.

    What is not given is read from JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID.
    ``slice_index`` and ``partition_index`` number parts of a TPU system and mean nothing elsewhere.

    Raises: RuntimeError if called twice or after the backends started; ValueError if something is
    missing.
    """
    if devices.processes:
        raise RuntimeError("distributed.initialize should only be called once.")
    if devices.started():
        raise RuntimeError("distributed.initialize() must be called before any JAX calls that "
                           "might initialise the XLA backend. This includes any computation.")
    address = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")
    count = _number(num_processes, "JAX_NUM_PROCESSES", "num_processes")
    number = _number(process_id, "JAX_PROCESS_ID", "process_id")
    if address is None:
        raise ValueError("coordinator_address should be defined: 'host:port' of process 0.")
    if number == 0:
        port = address.rsplit(":", 1)[1]
        loopback = address.startswith(("127.", "localhost"))
        bind = coordinator_bind_address or (address if loopback else f"[::]:{port}")
        _service.append(_jaxlib.get_distributed_runtime_service(
            bind, count, heartbeat_timeout=heartbeat_timeout_seconds,
            shutdown_timeout=shutdown_timeout_seconds))
    client = _jaxlib.get_distributed_runtime_client(
        address, number, init_timeout=initialization_timeout,
        heartbeat_timeout=heartbeat_timeout_seconds, shutdown_timeout=shutdown_timeout_seconds,
        use_compression=True)
    client.connect()
    devices.processes.append(Processes(client=client, node_id=number, num_nodes=count))
    atexit.register(shutdown)


def _number(given: int | None, variable: str, name: str) -> int:
    if given is not None:
        return given
    word = os.environ.get(variable)
    if word is None:
        raise ValueError(f"{name} should be defined: pass it, or set {variable}.")
    return int(word)


def is_initialized() -> bool:
    """Return whether ``initialize`` has been called."""
    return bool(devices.processes)


def shutdown() -> None:
    """Leave the other processes; nothing happens if they were never joined."""
    while devices.processes:
        devices.processes.pop().client.shutdown()
    while _service:
        _service.pop().shutdown()


__all__ = ["initialize", "is_initialized", "shutdown"]
