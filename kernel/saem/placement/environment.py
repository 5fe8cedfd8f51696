"""What does this program run on?

Read before: ``placement.devices``.
Invariant: what is printed helps the reader of a report of a fault; it names no user or folder.
Source: the documentation of jax.print_environment_info.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys

import numpy as np

from saem import _jaxlib
from saem.placement import devices


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions and devices in use; with ``return_string`` return the text instead."""
    found = devices.devices()
    kinds = ", ".join(dict.fromkeys(d.device_kind for d in found))
    system = os.uname()
    try:
        version = importlib.metadata.version("saem")
    except importlib.metadata.PackageNotFoundError:
        version = "not installed as a distribution"
    text = "\n".join([
        f"saem:   {version}",
        f"jaxlib: {_jaxlib.__version__}",
        f"numpy:  {np.__version__}",
        f"python: {sys.version}".replace("\n", " "),
        f"device info: {kinds}-{len(found)}, {devices.local_device_count()} local devices",
        f"process_count: {devices.process_count()}",
        f"platform: {system.sysname} {system.release} {system.machine}",
    ])
    if return_string:
        return text
    print(text)
    return None
