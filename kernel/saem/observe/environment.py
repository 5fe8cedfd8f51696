"""What ran: which engine, which jaxlib, which devices?

Read before: ``saem.observe.schema``.  Read after: ``saem.observe.recorder``.
Invariant: asking never starts a backend (tests/lens/test_recorder.py).
"""

from __future__ import annotations

import importlib.metadata
import platform

from saem.observe.schema import Device, Environment
from saem.placement import devices as xla_devices


def _devices() -> tuple[Device, ...]:
    """The devices of the default backend, none while no backend was started."""
    if not xla_devices.started():
        return ()
    return tuple(Device(d.id, d.platform, str(d)) for d in xla_devices.devices())


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def environment() -> Environment:
    """The versions and devices of this process."""
    return Environment(
        engine=_version("saem"),
        jaxlib=_version("jaxlib"),
        python=platform.python_version(),
        devices=_devices(),
    )
