"""How is a matrix written as U Σ Vᴴ?

Read before: ``linalg.families``.  Read after: ``saem.numpy.linalg``.
Invariant: singular values fall; U and V have orthonormal columns.
Source: Golub & Van Loan, Matrix Computations (4th ed.), 2.4; Giles, "An extended collection of
matrix derivative results" (2008), 3.2; LAPACK, gesdd and gesvd.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from saem.compile.text import strong_aval
from saem.core import errors, lazy
from saem.core.avals import ShapedArray, aval_of
from saem.core.dimensions import is_nonnegative, is_static, smaller
from saem.core.primitive import NOT_LINEAR, primitive
from saem.core.trace import bind
from saem.linalg.algebra import (
    adjoint,
    columns_scaled,
    diagonal,
    diagonal_part,
    dtype_of,
    eye,
    is_complex,
    matmul,
    number,
    rows_scaled,
    shape_of,
)
from saem.linalg.custom_calls import (
    character,
    custom_call,
    identities,
    lapack,
    nan_unless,
    on_gpu,
    on_tpu,
    refuse_platform,
    status,
    transposed,
)
from saem.linalg.families import (
    MatrixOperation,
    checked_part,
    each_matrix,
    part_of,
    real_aval,
    refuse_part,
    weak_as_operands,
)
from saem.ops.arithmetic import add, div, mul, sub
from saem.ops.convert import convert_element_type
from saem.ops.numbers import real
from saem.ops.shape import expand_dims
from saem.ops.slicing import slice_in_dim
from saem.transform.staging import write_function
from saem.typing import Array, ArrayLike


class SvdAlgorithm(enum.Enum):
    """By which method a singular value decomposition is computed."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


DEFAULT = (None, SvdAlgorithm.DEFAULT)
# The algorithms that LAPACK has.
ON_CPU = (*DEFAULT, SvdAlgorithm.QR, SvdAlgorithm.DIVIDE_AND_CONQUER)
# The decomposition of the platforms that have no routine for it.
by_polar: Any = lazy.later("saem.linalg.polar")


@primitive("svd")
class Svd(MatrixOperation):
    """Σ (k,), and with ``compute_uv`` U (m, m or k) and Vᴴ (n or k, n); k = smaller(m, n)."""

    full_matrices: bool
    compute_uv: bool
    subset_by_index: tuple[int, int] | None = None
    algorithm: SvdAlgorithm | None = None

    multiple_results = True

    @weak_as_operands
    def typing(self, x):
        leading = self.check(x)
        m, n = x.shape[-2:]
        start, stop = part_of(self, smaller(m, n))
        k = max(0, stop - start)
        if self.full_matrices and k != smaller(m, n):
            raise errors.explained(
                errors.ArgumentError, "svd.full_matrices",
                "full_matrices and subset_by_index cannot both be set",
                advice="Pass full_matrices=False: a part of the values has as many vectors.")
        sizes = real_aval((*leading, k), x.dtype)
        if not self.compute_uv:
            return [sizes]
        rows, columns = (m, n) if self.full_matrices else (k, k)
        return [sizes, ShapedArray((*leading, m, rows), x.dtype),
                ShapedArray((*leading, columns, n), x.dtype)]

    @each_matrix(2)
    def evaluate(self, x):
        asked = slice(*part_of(self, min(x.shape)))
        if not self.compute_uv:
            return [np.linalg.svd(x, compute_uv=False)[asked]]
        u, s, vh = np.linalg.svd(x, full_matrices=self.full_matrices)
        if self.full_matrices:
            return [s, u, vh]
        return [s[asked], u[:, asked], vh[asked]]

    def lower(self, ctx, x):
        aval = ctx.avals[x]
        if not aval.size:
            return identities(ctx, ctx.out_avals)
        lead, (m, n) = aval.shape[:-2], aval.shape[-2:]
        if on_tpu(ctx):
            return self.lower_on_tpu(ctx, x)
        refuse_part(self, smaller(m, n), "subset_by_index not implemented for CPU and GPU")
        if on_gpu(ctx):
            return self.lower_on_gpu(ctx, x)
        if ctx.module.platform != "cpu":
            raise refuse_platform(ctx, "svd")
        if self.algorithm not in ON_CPU:
            raise errors.explained(
                NotImplementedError, "svd.algorithm",
                "The SVD Jacobi and Polar algorithms are not implemented on CPU.",
                advice="Leave the algorithm out, or use QR or DIVIDE_AND_CONQUER.")
        routine = "gesvd" if self.algorithm is SvdAlgorithm.QR else "gesdd"
        mode = "N" if not self.compute_uv else "A" if self.full_matrices else "S"
        k = smaller(m, n)
        rows, columns = (m, n) if self.full_matrices else (k, k)
        outs = [aval, ctx.out_avals[0], strong_aval((*lead, m, rows), aval.dtype),
                strong_aval((*lead, columns, n), aval.dtype), status(lead)]
        _, s, u, vh, info = custom_call(
            ctx, lapack(routine, aval.dtype), [x], outs, leading=len(lead),
            config={"mode": character(mode)}, reuse={0: 0})
        return nan_unless(ctx, info, [s, u, vh] if self.compute_uv else [s])

    def lower_on_gpu(self, ctx: Any, x: str) -> list[str]:
        """Write the call of cuSOLVER: by Jacobi rotations for small matrices, else by QR."""
        aval = ctx.avals[x]
        lead, (m, n) = aval.shape[:-2], aval.shape[-2:]
        k = smaller(m, n)
        rows, columns = (m, n) if self.full_matrices else (k, k)
        small = all(is_nonnegative(1024 - size) for size in (m, n))
        target = {SvdAlgorithm.JACOBI: "gesvdj", SvdAlgorithm.POLAR: "gesvdp"}.get(
            self.algorithm, "gesvdj" if small and self.algorithm in DEFAULT else "gesvd")
        config = {"compute_uv": str(self.compute_uv).lower(),
                  "full_matrices": str(self.full_matrices).lower()}
        if target != "gesvd":
            outs = [aval, ctx.out_avals[0], strong_aval((*lead, m, rows), aval.dtype),
                    strong_aval((*lead, n, columns), aval.dtype), status(lead)]
            _, s, u, v, info = custom_call(ctx, f"cusolver_{target}_ffi", [x], outs,
                                           leading=len(lead), config=config, reuse={0: 0})
            vh = transposed(ctx, v, conjugated=True) if self.compute_uv else v
        else:
            # This routine needs at least as many rows as columns.
            flip = m < n
            config["transposed"] = str(flip).lower()
            if flip:
                x = transposed(ctx, x)
            work = ctx.avals[x]
            left = strong_aval((*lead, work.shape[-2], columns if flip else rows), aval.dtype)
            right = strong_aval((*lead, rows if flip else columns, work.shape[-1]), aval.dtype)
            _, s, a, b, info = custom_call(
                ctx, "cusolver_gesvd_ffi", [x],
                [work, ctx.out_avals[0], left, right, status(lead)], leading=len(lead),
                config=config, reuse={0: 0})
            u, vh = (transposed(ctx, b), transposed(ctx, a)) if flip else (a, b)
        return nan_unless(ctx, info, [s, u, vh] if self.compute_uv else [s])

    def lower_on_tpu(self, ctx: Any, x: str) -> list[str]:
        """Write the decomposition by a polar one: XLA has no routine for it there."""
        if self.algorithm not in (*DEFAULT, SvdAlgorithm.POLAR):
            raise errors.explained(
                NotImplementedError, "svd.algorithm",
                "Only the POLAR (which is also DEFAULT on TPU) SVD algorithm is supported on TPU.",
                advice="Leave the algorithm out.")
        shape = ctx.avals[x].shape[-2:]
        if not is_static(shape):
            raise errors.explained(
                NotImplementedError, "svd.open",
                f"On a TPU the sizes of matrices must be known for svd, got {shape}.",
                advice="Only leading axes may be open there.")
        start, stop = checked_part(self, min(shape))

        def svd(x: Any) -> list[Any]:
            s, *vectors = by_polar.svd_by_polar(x, self.full_matrices, self.compute_uv)
            if stop - start == shape_of(s)[-1]:
                return [s, *vectors]
            s = slice_in_dim(s, start, stop, axis=-1)
            if not vectors:
                return [s]
            u, vh = vectors
            return [s, slice_in_dim(u, start, stop, axis=-1),
                    slice_in_dim(vh, start, stop, axis=-2)]

        return write_function(ctx, svd, x)

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        if t is None:
            outs = bind(self, x)
            return outs, [None] * len(outs)
        m, n = shape_of(x)[-2:]
        if self.compute_uv and self.full_matrices and m != n:
            raise errors.explained(
                NotImplementedError, "svd.jvp",
                "Singular value decomposition JVP not implemented for full matrices",
                advice="With full_matrices=False all columns have a derivative.")
        refuse_part(self, smaller(m, n),
                    "Derivatives are not defined for a part of the singular values.")
        thin = Svd(False, True, None, self.algorithm)
        s, u, vh = bind(thin, x)
        inner = matmul(matmul(adjoint(u), t), adjoint(vh))
        ds = diagonal(real(inner) if is_complex(inner) else inner)
        if not self.compute_uv:
            return [s], [ds]
        du, dvh = turning(s, u, vh, inner, t)
        return [s, u, vh], [ds, du, dvh]

    transpose = NOT_LINEAR


def turning(s: Any, u: Any, vh: Any, inner: Any, t: Any) -> tuple[Any, Any]:
    """Return the tangents of U and Vᴴ for a tangent ``t`` of x, ``inner`` = Uᴴ t V.

    Within the columns: dU = U (F ∘ (M Σ + Σ Mᴴ)), dV = V (F ∘ (Σ M + Mᴴ Σ)) with
    F[i, j] = 1 / (s[j]² - s[i]²); the phase of each pair of columns turns with U.  Across: the part
    of t outside of the columns, divided by s.
    """
    dtype, (m, n), k = dtype_of(u), (shape_of(u)[-2], shape_of(vh)[-1]), shape_of(s)[-1]
    wide = convert_element_type(s, dtype)
    ones = eye(shape_of(inner), dtype_of(s), aval_of(inner).explicit)
    row, column = (expand_dims(s, (len(shape_of(s)) - 1 + i,)) for i in (0, 1))
    gaps = mul(sub(row, column), add(row, column))
    f = convert_element_type(sub(div(number(s, 1), add(gaps, ones)), ones), dtype)
    scaled = columns_scaled(inner, wide)
    left = mul(f, add(scaled, adjoint(scaled)))
    scaled = rows_scaled(inner, wide)
    right = mul(f, add(scaled, adjoint(scaled)))
    if is_complex(u):
        turn = diagonal_part(sub(inner, adjoint(inner)))
        left = add(left, div(turn, convert_element_type(
            mul(number(s, 2), expand_dims(s, (len(shape_of(s)) - 1,))), dtype)))
    du, dvh = matmul(u, left), matmul(adjoint(right), vh)
    inverse = div(number(wide, 1), wide)
    if m > k:
        moved = matmul(t, adjoint(vh))
        du = add(du, columns_scaled(sub(moved, matmul(u, inner)), inverse))
    if n > k:
        moved = matmul(adjoint(u), t)
        dvh = add(dvh, rows_scaled(sub(moved, matmul(inner, vh)), inverse))
    return du, dvh


def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True,
        subset_by_index: tuple[int, int] | None = None,
        algorithm: SvdAlgorithm | None = None) -> Array | tuple[Array, Array, Array]:
    """Return U, the singular values, and Vᴴ; only the values unless ``compute_uv``.

    Shapes: x (…, m, n), U (…, m, m), values (…, k), Vᴴ (…, n, n), where k = smaller(m, n); unless
    ``full_matrices`` U is (…, m, k) and Vᴴ is (…, k, n).

    Raises: TypeError for dtypes or ranks that do not fit; ValueError for a part of the values with
    ``full_matrices``; NotImplementedError for a part of the values, or an algorithm that the
    platform does not have.

    >>> lax.linalg.svd(jnp.array([[3., 0.], [0., 4.]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    s, *vectors = bind(Svd(bool(full_matrices), bool(compute_uv), subset_by_index, algorithm), x)
    return (vectors[0], s, vectors[1]) if compute_uv else s
