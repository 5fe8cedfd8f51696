"""Cases of ``control/platforms.py``."""

from __future__ import annotations

from cases import case
from saem.loops.platforms import PlatformIndex

CASES = [
    case(PlatformIndex((("cpu",), None))),
    case(PlatformIndex((("tpu",), ("cpu",)))),
]
