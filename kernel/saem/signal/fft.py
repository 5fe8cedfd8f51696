"""How is a signal written as a sum of oscillations?

``fft`` transforms the last axes: complex to complex, forth or back, or real to the half of the
complex values that a real signal needs, and back.

Read before: ``ops.linear``.  Read after: ``saem.numpy.fft``.
Invariant: the transform back undoes the one forth, with the factor 1 / n; the transpose of a
transform is a transform, of which the half that is not stored counts twice.
Source: StableHLO specification, fft; the definition of the discrete Fourier transform.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of, kept
from saem.core.dimensions import as_shape, is_static
from saem.core.primitive import primitive
from saem.core.trace import bind
from saem.ops import sharding_rules, sum_rules
from saem.ops.arithmetic import mul
from saem.ops.convert import convert_element_type
from saem.ops.families import check_example
from saem.ops.linear import Linear, moveaxis
from saem.ops.numbers import conj


class FftType(enum.IntEnum):
    """Which transform: forth, back, from real numbers, to real numbers."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


@primitive("fft")
class Fft(Linear):
    """The discrete Fourier transform over the last ``len(fft_lengths)`` axes."""

    fft_type: FftType
    fft_lengths: tuple[int, ...]

    shard_results = sharding_rules.fft
    sum_results = sum_rules.unchanged

    @property
    def kept(self) -> int:
        """How many values of a real signal's transform are stored along its last axis."""
        return self.fft_lengths[-1] // 2 + 1 if self.fft_lengths[-1] else 0

    def typing(self, x):
        kind, lengths = self.fft_type, self.fft_lengths
        if len(lengths) > x.ndim:
            raise errors.explained(
                errors.ArgumentError, "fft.C1",
                f"FFT input shape {x.shape} must have at least as many input dimensions as "
                f"fft_lengths {lengths}.", advice="There is one length for each transformed axis.")
        if kind is FftType.RFFT and x.dtype not in (np.float32, np.float64):
            raise errors.explained(
                errors.ArgumentError, "fft.C2",
                f"RFFT input must be float32 or float64, got {x.dtype.name}",
                advice="Convert it first, x.astype(jnp.float32).")
        if kind is not FftType.RFFT and not dtypes.is_complex(x.dtype):
            raise errors.explained(
                errors.ArgumentError, "fft.C3",
                f"{kind.name} input must be complex64 or complex128, got {x.dtype.name}",
                advice="Convert it first, x.astype(jnp.complex64).")
        if not lengths:
            return ShapedArray(x.shape, x.dtype)
        needed = (*lengths[:-1], self.kept) if kind is FftType.IRFFT else lengths
        if x.shape[-len(lengths):] != needed:
            raise errors.explained(
                errors.ArgumentError, "fft.C4",
                f"{kind.name} input shape {x.shape} minor dimensions must be equal to fft_lengths "
                f"{lengths}" + (", except for the last one, which must be "
                                "fft_lengths[-1] // 2 + 1" if kind is FftType.IRFFT else ""),
                advice="Cut or pad the operand first; jnp.fft does so.")
        last = self.kept if kind is FftType.RFFT else lengths[-1]
        dtype = x.dtype
        if kind is FftType.RFFT:
            dtype = dtypes.complex_dtype(dtype)
        elif kind is FftType.IRFFT:
            dtype = dtypes.real_dtype(dtype)
        return ShapedArray((*x.shape[:-1], last), dtype)

    def evaluate(self, x):
        lengths = self.fft_lengths
        if not lengths:
            return x
        axes = tuple(range(x.ndim - len(lengths), x.ndim))
        if 0 in lengths:
            aval = self.typing(ShapedArray(x.shape, x.dtype))
            return np.zeros(aval.shape, aval.dtype)
        transforms: dict[FftType, Any] = {
            FftType.FFT: np.fft.fftn, FftType.IFFT: np.fft.ifftn,
            FftType.RFFT: np.fft.rfftn, FftType.IRFFT: np.fft.irfftn}
        return transforms[self.fft_type](x, lengths, axes)

    def lower(self, ctx, x):
        if not is_static(self.fft_lengths):
            raise NotImplementedError(
                "A Fourier transform whose length is a symbolic dimension is not exported: "
                "StableHLO's fft has a fixed length. Give n=, or export one program per length.")
        out = ctx.out_avals[0]
        if not self.fft_lengths:
            return x
        if not out.size or not ctx.avals[x].size:
            return ctx.constant(0, out)
        # What may be sharded unevenly XLA's partitioner refuses, and in stacks it ends the process.
        rank, count = out.ndim, len(self.fft_lengths)
        parts = len(ctx.module.devices) or 1
        sizes = (*ctx.avals[x].shape[-count:], *out.shape[-count:])
        divided = self.fft_type is FftType.FFT and rank > 2
        if any(n % parts ** (2 if divided else 1) for n in sizes):
            x = ctx.unsharded(x, range(rank - count, rank))
        return ctx.emit(f"stablehlo.fft {x}, type = {self.fft_type.name}, "
                        f"length = {list(self.fft_lengths)}", x)

    def transpose(self, ct, x):
        kind = self.fft_type
        if not self.fft_lengths or kind in (FftType.FFT, FftType.IFFT):
            return [bind(self, ct)]
        n, dtype = self.fft_lengths[-1], dtypes.complex_dtype(aval_of(ct).dtype)
        twice = np.full(self.kept, 2, dtype)
        twice[:1] = 1
        if n % 2 == 0:
            twice[-1:] = 1
        total = math.prod(self.fft_lengths)
        twice = twice.reshape((1,) * (len(x.shape) - 1) + (-1,))
        if kind is FftType.RFFT:
            half = mul(conj(ct), kept((total / twice).astype(dtype)))
            return [bind(Fft(FftType.IRFFT, self.fft_lengths), half)]
        half = bind(Fft(FftType.RFFT, self.fft_lengths), ct)
        return [conj(mul(half, kept((twice / total).astype(dtype))))]

    def batch(self, size, xs, dims):
        check_example(self, xs, dims)
        return bind(self, moveaxis(xs[0], dims[0], 0)), 0


def fft_type_of(given: Any) -> FftType:
    """Return the transform that ``given``, an FftType or its name, means."""
    if isinstance(given, FftType):
        return given
    if isinstance(given, str):
        if given.upper() in FftType.__members__:
            return FftType[given.upper()]
        raise errors.explained(errors.ArgumentError, "fft.type", f"Unknown FFT type '{given}'",
                               advice="Use FFT, IFFT, RFFT or IRFFT.")
    raise errors.explained(errors.ArgumentTypeError, "fft.type",
                           f"Unknown FFT type value '{given}'",
                           advice="Use lax.FftType.FFT, or the name 'FFT'.")


def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Any:
    """Return the discrete Fourier transform of ``x`` over its last ``len(fft_lengths)`` axes.

    RFFT takes real numbers and stores n // 2 + 1 values along the last axis; IRFFT is its inverse.

    Raises: ValueError for sizes that are not ``fft_lengths``, or complex operands of RFFT.

    >>> lax.fft(jnp.array([1., 0., 0., 0.]), "RFFT", (4,))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    kind = fft_type_of(fft_type)
    dtype = aval_of(x).dtype
    wide = dtypes.computed(np.dtype("float64"))
    real = wide if dtype.itemsize == 8 else np.dtype(np.float32)
    if kind is FftType.RFFT:
        if dtypes.is_complex(dtype):
            raise errors.explained(
                errors.ArgumentError, "fft.C2", "only real valued inputs supported for rfft",
                advice="Use FFT for complex numbers, or take x.real.")
        if not dtypes.is_float(dtype):
            x = convert_element_type(x, real)
    elif not dtypes.is_complex(dtype):
        x = convert_element_type(x, dtypes.complex_dtype(real))
    return bind(Fft(kind, as_shape(fft_lengths)), x)
