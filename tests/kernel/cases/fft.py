"""Cases of ``signal/fft.py``: each kind, odd and even lengths, one to three axes, none."""

from __future__ import annotations

from cases import case
from saem.signal.fft import Fft, FftType

FFT, IFFT, RFFT, IRFFT = FftType

CASES = [
    *(case(Fft(kind, (n,)), f"c64[{n}]") for kind in (FFT, IFFT) for n in (1, 4, 5)),
    *(case(Fft(RFFT, (n,)), f"f32[{n}]") for n in (1, 2, 4, 5)),
    *(case(Fft(IRFFT, (n,)), f"c64[{n // 2 + 1}]") for n in (1, 2, 4, 5)),
    case(Fft(FFT, (3, 4)), "c64[2,3,4]"),
    case(Fft(IFFT, (2, 3, 4)), "c64[2,3,4]"),
    case(Fft(RFFT, (3, 4)), "f32[2,3,4]"),
    case(Fft(RFFT, (2, 3, 5)), "f32[2,3,5]"),
    case(Fft(IRFFT, (3, 4)), "c64[2,3,3]"),
    case(Fft(IRFFT, (2, 3, 5)), "c64[2,3,3]"),
    case(Fft(FFT, ()), "c64[3]"),
    case(Fft(FFT, (4,)), "c64[0,4]"),
]
