"""In which order do independent operations run?  (``jax.experimental.control_deps``)

A dependency is a call with effects of a target that XLA's schedulers for GPU and TPU know.

Read before: ``effects.foreign_calls``.
Invariant: a dependency changes no value.
Source: the documentation of jax.experimental.control_deps.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from saem.effects.foreign_calls import ffi_call


def control_dep(src: Any, dst: Any) -> Any:
    """Let what makes ``dst`` wait for what makes ``src``."""
    return ffi_call("control_dep", (), has_side_effect=True)(src, dst)


def schedule(ops: Sequence[Any]) -> None:
    """Let each of ``ops`` wait for the one before it."""
    for src, dst in itertools.pairwise(ops):
        control_dep(src, dst)


__all__ = ["control_dep", "schedule"]
