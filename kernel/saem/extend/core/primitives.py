"""Where are the primitives themselves?  (``jax.extend.core.primitives``)

``primitives.exp_p`` and all others, by JAX's names, as ``saem.lax`` has them.

Read before: ``core.handles``.
Invariant: a primitive has one handle, whichever namespace gives it.
"""

from __future__ import annotations

from typing import Any

# Those that ``saem.lax`` does not load are registered by these imports.
from saem import lax, random  # noqa: F401
from saem.core.handles import primitive_called, primitive_names
from saem.derivatives import checkpoint, custom_vjp  # noqa: F401
from saem.extend.core.calls import call_p, closed_call_p  # noqa: F401
from saem.lax import linalg  # noqa: F401
from saem.linalg import ragged_products, scaled_products  # noqa: F401
from saem.loops import select_and_scatter  # noqa: F401
from saem.ops import approx_top_k  # noqa: F401
from saem.signal import convolve, fft  # noqa: F401


def __getattr__(name: str) -> Any:
    handle = primitive_called(name)
    if handle is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return handle


def __dir__() -> list[str]:
    return sorted({*primitive_names(), "call_p", "closed_call_p"})
