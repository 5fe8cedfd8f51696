"""Which numbers weight the samples of a segment, so that its spectrum leaks little?

A window is known by a name, or by a name with parameters, as in ``scipy.signal.get_window``.  All
are periodic: the first ``size`` of ``size + 1`` symmetric numbers.

Read before: nothing.  Read after: ``scipy.signal``.
Invariant: each window has SciPy's numbers (tests/kernel/scipy/test_windows.py).
Source: Harris 1978, "On the use of windows for harmonic analysis with the discrete Fourier
transform"; Heinzel, Rüdiger, Schilling 2002, "Spectrum and spectral density estimation by the
discrete Fourier transform"; Doerry 2017, "Catalog of window taper functions for sidelobe control".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem.core import errors

Numbers = np.ndarray


def centred(n: int) -> Numbers:
    """Return ``n`` places from -1 to 1."""
    return np.linspace(-1, 1, n)


def cosines(n: int, parts: Sequence[float]) -> Numbers:
    """Return the sum of cosines of 0, 1, … periods with weights ``parts``, from the middle."""
    turns = np.pi * centred(n)
    return sum((a * np.cos(k * turns) for k, a in enumerate(parts)), np.zeros(n))


def sum_of(*parts: float) -> Callable[[int], Numbers]:
    """Return the window of a fixed sum of cosines."""
    return lambda n: cosines(n, parts)


def triang(n: int) -> Numbers:
    """Return a triangle that would reach 0 half a sample outside (odd ``n``: a whole one)."""
    places = np.abs(np.arange(n) - (n - 1) / 2)
    return 1 - places / ((n + 1) / 2 if n % 2 else n / 2)


def bohman(n: int) -> Numbers:
    """Return two half cosines convolved with each other."""
    x = np.abs(centred(n))
    found = (1 - x) * np.cos(np.pi * x) + np.sin(np.pi * x) / np.pi
    found[[0, -1]] = 0
    return found


def parzen(n: int) -> Numbers:
    """Return four rectangles convolved with each other."""
    x = np.abs(np.arange(n) - (n - 1) / 2) / (n / 2)
    return np.where(x <= (n - 1) / 4 / (n / 2), 1 - 6 * x ** 2 * (1 - x), 2 * (1 - x) ** 3)


def tukey(n: int, alpha: float = 0.5) -> Numbers:
    """Return ones with cosine slopes over the share ``alpha``."""
    if alpha <= 0:
        return np.ones(n)
    edge = 1 - np.abs(centred(n))  # distance from the nearer end, in half windows
    return (1 - np.cos(np.pi * np.minimum(edge / min(alpha, 1), 1))) / 2


def exponential(n: int, center: float | None = None, tau: float = 1.0) -> Numbers:
    """Return what decays by e in ``tau`` samples on both sides of the middle."""
    middle = (n - 1) / 2 if center is None else center
    return np.exp(-np.abs(np.arange(n) - middle) / tau)


def general_gaussian(n: int, p: float, sig: float) -> Numbers:
    """Return exp(-|x / sig|^(2 p) / 2)."""
    return np.exp(-np.abs((np.arange(n) - (n - 1) / 2) / sig) ** (2 * p) / 2)


def kaiser(n: int, beta: float) -> Numbers:
    """Return the Bessel window of Kaiser."""
    return np.i0(beta * np.sqrt(np.maximum(1 - centred(n) ** 2, 0))) / np.i0(beta)


def taylor(n: int, nbar: int = 4, sll: float = 30, norm: bool = True) -> Numbers:
    """Return Taylor's window: ``nbar`` side lobes of nearly the same height, ``sll`` dB down."""
    a = math.acosh(10 ** (sll / 20)) / math.pi
    dilated = nbar ** 2 / (a ** 2 + (nbar - 0.5) ** 2)
    orders = np.arange(1, nbar)
    parts = []
    for m in orders:
        above = np.prod(1 - m ** 2 / dilated / (a ** 2 + (orders - 0.5) ** 2))
        below = 2 * np.prod([1 - m ** 2 / j ** 2 for j in orders if j != m])
        parts.append((-1) ** (m + 1) * above / below)

    def at(x: Any) -> Any:
        return 1 + 2 * sum(f * np.cos(2 * np.pi * m * (x - n / 2 + 0.5) / n)
                           for f, m in zip(parts, orders))

    return at(np.arange(n)) / (at((n - 1) / 2) if norm else 1)


def chebwin(n: int, at: float) -> Numbers:
    """Return the Dolph-Chebyshev window, whose side lobes are all ``at`` dB down."""
    order, k = n - 1, np.arange(n)
    x = math.cosh(math.acosh(10 ** (abs(at) / 20)) / order) * np.cos(np.pi * k / n)
    spectrum = np.cosh(order * np.arccosh(x + 0j)).real  # the Chebyshev polynomial of that order
    # A Fourier transform whose origin is the middle of the window.
    found = np.fft.fft(spectrum * np.exp(1j * np.pi * order / n * k)).real
    return found / np.max(found)


def dpss(n: int, nw: float) -> Numbers:
    """Return the sequence that is most concentrated in the band of half width ``nw`` / n.

    Raises: ValueError if ``nw`` is not less than n / 2.
    """
    if nw >= n / 2:
        raise errors.explained(errors.ArgumentError, "signal.window.C3",
                               f"NW must be less than M/2, got {nw} for {n} samples.",
                               advice="Use longer segments.")
    places = np.arange(n)
    diagonal = ((n - 1 - 2 * places) / 2) ** 2 * math.cos(2 * np.pi * nw / n)
    beside = places[1:] * (n - places[1:]) / 2
    matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    found = np.abs(np.linalg.eigh(matrix)[1][:, -1])
    # With an even number the greatest value stands between two samples.
    return found / np.max(found) * (n ** 2 / (n ** 2 + nw) if n % 2 == 0 else 1)


# By name: the window, and how many parameters it must have.
WINDOWS: dict[str, tuple[Callable[..., Numbers], int]] = {
    "boxcar": (np.ones, 0), "triang": (triang, 0), "parzen": (parzen, 0), "bohman": (bohman, 0),
    "bartlett": (lambda n: 1 - np.abs(centred(n)), 0), "taylor": (taylor, 0),
    "cosine": (lambda n: np.sin(np.pi * (np.arange(n) + 0.5) / n), 0),
    "lanczos": (lambda n: np.sinc(centred(n)), 0), "tukey": (tukey, 0),
    "exponential": (exponential, 0), "hann": (sum_of(0.5, 0.5), 0),
    "hamming": (sum_of(0.54, 0.46), 0), "blackman": (sum_of(0.42, 0.50, 0.08), 0),
    "nuttall": (sum_of(0.3635819, 0.4891775, 0.1365995, 0.0106411), 0),
    "blackmanharris": (sum_of(0.35875, 0.48829, 0.14128, 0.01168), 0),
    "flattop": (sum_of(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368), 0),
    "barthann": (lambda n: 0.62 - 0.24 * np.abs(centred(n)) + 0.38 * np.cos(np.pi * centred(n)), 0),
    "general_cosine": (cosines, 1),
    "general_hamming": (lambda n, alpha: cosines(n, (alpha, 1 - alpha)), 1),
    "kaiser": (kaiser, 1), "gaussian": (lambda n, std: general_gaussian(n, 1, std), 1),
    "general_gaussian": (general_gaussian, 2), "chebwin": (chebwin, 1), "dpss": (dpss, 1),
}
ALIASES = {
    "barthann": "brthan bth", "bartlett": "bart brt", "blackman": "black blk",
    "blackmanharris": "blackharr bkh", "bohman": "bman bmn", "boxcar": "box ones rect rectangular",
    "chebwin": "cheb", "cosine": "halfcosine", "exponential": "poisson", "flattop": "flat flt",
    "gaussian": "gauss gss", "general_gaussian": "ggs", "hamming": "hamm ham", "hann": "han",
    "kaiser": "ksr", "lanczos": "sinc", "nuttall": "nutl nut", "parzen": "parz par",
    "taylor": "taylorwin", "triang": "triangle tri", "tukey": "tuk",
}
NAMES = {**{name: name for name in WINDOWS},
         **{alias: name for name, more in ALIASES.items() for alias in more.split()}}


def periodic(window: str | float | tuple[Any, ...], size: int) -> Numbers:
    """Return ``size`` numbers of the window called ``window``, a name or (name, parameters …).

    A number is the parameter of Kaiser's window.
    Raises: ValueError for an unknown name, or one without the parameters that it needs.
    """
    name, *parameters = window if isinstance(window, tuple) else \
        (window,) if isinstance(window, str) else ("kaiser", window)
    if name not in NAMES:
        raise errors.explained(
            errors.ArgumentError, "signal.window", f"Unknown window type: {name!r}",
            advice=f"Pass an array, or one of {', '.join(WINDOWS)}.")
    make, needed = WINDOWS[NAMES[name]]
    if len(parameters) < needed:
        raise errors.explained(
            errors.ArgumentError, "signal.window.C2",
            f"{name!r} must have parameters, but window={window!r}!",
            advice=f"Write ({name!r}, number).")
    if size <= 1:
        return np.ones(size)
    return make(size + 1, *parameters)[:-1]
