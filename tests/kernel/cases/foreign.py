"""Cases of ``control/foreign.py``: LAPACK's Cholesky factorisation, which jaxlib brings along."""

from __future__ import annotations

import numpy as np
from jaxlib.cpu import _lapack

import saem as jax
from cases import case, spec
from saem.core.avals import ShapedArray
from saem.effects.foreign_calls import FfiCall

_lapack.initialize()
for _name, _capsule in _lapack.registrations().items():
    if _name == "lapack_spotrf_ffi":
        jax.ffi.register_ffi_target("test_spotrf", _capsule, platform="cpu", api_version=1)


def _definite(rng, shape):
    """Return a stack of symmetric, positive definite matrices."""
    a = rng.normal(size=shape).astype(np.float32)
    return a @ np.swapaxes(a, -1, -2) + 3 * np.eye(shape[-1], dtype=np.float32)


def _call(method: str, shape: tuple[int, ...] = (3, 3)) -> FfiCall:
    whole, batch = tuple(range(len(shape)))[::-1], tuple(range(len(shape) - 2))[::-1]
    return FfiCall((("uplo", np.uint8(ord("L"))),), 4, False, (whole,), ((0, 0),), None,
                   (whole, batch), (ShapedArray(shape, np.dtype(np.float32)),
                                    ShapedArray(shape[:-2], np.dtype(np.int32))),
                   "test_spotrf", method)


CASES = [
    *(case(_call(method), spec("f32[3,3]", _definite), differentiable=False)
      for method in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
                     "legacy_vectorized")),
    case(_call("broadcast_all", (2, 3, 3)), spec("f32[2,3,3]", _definite), differentiable=False),
]
