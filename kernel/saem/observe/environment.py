"""What ran: which engine, which jaxlib, which devices?

Read before: ``saem.observe.schema``.  Read after: ``saem.observe.recorder``.
Invariant: asking never starts a device; the engine that is running tells of its devices
(tests/lens/test_recorder.py).
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable

from saem.observe.schema import Device, Environment

_devices: list[Callable[[], tuple[Device, ...]]] = []


def provide_devices(ask: Callable[[], tuple[Device, ...]]) -> None:
    """Say how to list the devices in use."""
    _devices[:] = [ask]


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
        devices=_devices[0]() if _devices else (),
    )
