"""Are convolutions and spectra those of jax.scipy.signal?

Read before: ``tests/kernel/library.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from library import check

CONVOLUTIONS = [
    *(f"sig.{f}({a}, {b}, {mode!r})" for f in ("convolve", "correlate", "fftconvolve")
      for a, b in (("x", "w"), ("w", "x"), ("m", "k")) for mode in ("full", "same", "valid")),
    *(f"sig.{f}(m, k, {mode!r})" for f in ("convolve2d", "correlate2d")
      for mode in ("full", "same", "valid")),
    "sig.convolve(x, w, method='fft')", "sig.convolve(x, w, method='other')",
    "sig.convolve(x, w, 'other')", "sig.convolve(x, m)", "sig.convolve(x, w[:0])",
    "sig.convolve(jnp.arange(4), jnp.arange(2))", "sig.convolve2d(m, k, boundary='wrap')",
    "sig.correlate(x + 1j, w * 1j)", "sig.convolve2d(x, w)", "sig.fftconvolve(m, k, axes=1)",
    "sig.fftconvolve(x + 1j, w)", "grads(lambda x, w: sig.convolve(x, w), x, w)",
]
TRENDS = ["sig.detrend(x)", "sig.detrend(m)", "sig.detrend(m, 0, 'constant')",
          "sig.detrend(x, bp=4)", "sig.detrend(x, type='other')", "sig.detrend(x, bp=[3, 6])"]
SPECTRA = [
    "sig.stft(s, nperseg=8)", "sig.stft(s, 10., 'hamming', 8, 2)",
    "sig.stft(s, nperseg=8, nfft=12)",
    "sig.stft(s, nperseg=8, boundary=None, padded=False)", "sig.stft(s, nperseg=8, boundary='odd')",
    "sig.stft(jnp.stack([s, 2 * s]), nperseg=8)", "sig.stft(s + 1j, nperseg=8)",
    "sig.stft(s, nperseg=8, return_onesided=False)",
    "sig.stft(jnp.stack([s, s], 1), nperseg=8, axis=0)",
    "sig.stft(s, nperseg=8, boundary='even', detrend='linear')",
    "sig.istft(sig.stft(s, nperseg=8)[2], nperseg=8)", "sig.istft(sig.stft(s, nperseg=8)[2])",
    "sig.istft(sig.stft(s, nperseg=8, noverlap=6)[2], nperseg=8, noverlap=6)",
    "sig.istft(sig.stft(s, nperseg=8, boundary=None)[2], nperseg=8, boundary=False)",
    "sig.welch(s, nperseg=8)", "sig.welch(s, 10., nperseg=8, scaling='spectrum')",
    "sig.welch(s, nperseg=8, average='median')", "sig.welch(s, nperseg=9)",
    "sig.welch(s, nperseg=8, detrend='linear')", "sig.csd(s, s[::-1], nperseg=8)",
    "sig.csd(s, s[:20], nperseg=8)", "sig.csd(s, None, nperseg=8, scaling='other')",
    "sig.csd(s, s[::-1], nperseg=8, average='median')",
    "sig.welch(s, nperseg=8, window=np.ones(8))",
]
COSINES = [f"module('scipy.fft').{f}({x}, norm={norm!r})" for f in ("dct", "idct", "dctn", "idctn")
           for x in ("x", "m") for norm in ("backward", "forward")]
ALONG_NOTHING = [f"sig.fftconvolve(m, m, {mode!r}, axes=())" for mode in ("full", "same", "valid")]


@pytest.mark.parametrize(
    "rows", [CONVOLUTIONS, TRENDS, SPECTRA, COSINES + ALONG_NOTHING],
    ids=["conv", "trend", "spectra", "cosines"])
def test_signals(jax_oracle, rows):
    draw = np.random.RandomState(0)
    names = {"x": draw.randn(9), "w": draw.randn(4), "m": draw.randn(5, 6), "k": draw.randn(2, 3),
             "s": draw.randn(40)}
    check(jax_oracle, rows, rtol=3e-4, **{k: v.astype("f") for k, v in names.items()})
