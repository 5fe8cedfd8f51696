"""Where may arrays lie?  The public names of shardings."""

from __future__ import annotations

from saem._jaxlib import Sharding
from saem.xla.devices import SingleDeviceSharding

__all__ = ["Sharding", "SingleDeviceSharding"]
