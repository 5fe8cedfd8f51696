"""Which vectors does a matrix only stretch, and by how much?

``eigh`` is for Hermitian matrices: real values in ascending order, orthonormal vectors.  ``eig`` is
for any square matrix: complex values, in no order, with right and left vectors.

Read before: ``linalg.families``.  Read after: ``saem.numpy.linalg``.
Invariant: A V = V Λ and Wᴴ A = Λ Wᴴ; each vector has length 1.
Source: Golub & Van Loan, Matrix Computations (4th ed.), chapters 7 and 8; Giles, "An extended
collection of matrix derivative results" (2008), 3.1; LAPACK, syevd and geev.
"""

from __future__ import annotations

import enum
from typing import Any, ClassVar

import numpy as np

from saem.compile.text import strong_aval
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import NOT_LINEAR, primitive
from saem.core.trace import bind
from saem.linalg.algebra import (
    adjoint,
    columns_scaled,
    conjugate,
    diagonal,
    dtype_of,
    eye,
    is_complex,
    matmul,
    number,
    shape_of,
)
from saem.linalg.cholesky import mean_with_adjoint
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
    xla_call,
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
from saem.linalg.lu import solve
from saem.ops.arithmetic import add, div, mul, sub
from saem.ops.compare import ne
from saem.ops.convert import convert_element_type
from saem.ops.cumulative import cumsum
from saem.ops.linear import reduce_sum
from saem.ops.numbers import complex as complex_of
from saem.ops.numbers import imag, ones_like, real, rem
from saem.ops.shape import concatenate, expand_dims
from saem.ops.slicing import slice_in_dim
from saem.placement import plugins
from saem.transform.staging import write_function
from saem.typing import Array, ArrayLike


class EighImplementation(enum.Enum):
    """By which method the eigenvalues of Hermitian matrices are computed."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(enum.Enum):
    """By which library the eigenvalues of any matrix are computed on a GPU."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


@primitive("eigh")
class Eigh(MatrixOperation):
    """Vectors (n, n) and values (n,) of the Hermitian matrix whose ``lower`` triangle is read."""

    lower_half: bool
    sort_eigenvalues: bool
    subset_by_index: tuple[int, int] | None = None
    algorithm: EighImplementation | None = None

    multiple_results = True
    renamed: ClassVar[dict[str, str]] = {"lower": "lower_half"}

    @weak_as_operands
    def typing(self, x):
        leading = self.check(x)
        n = self.check_square(x)
        start, stop = part_of(self, n)
        count = max(0, stop - start)
        return [ShapedArray((*leading, n, count), x.dtype), real_aval((*leading, count), x.dtype)]

    @each_matrix(2)
    def evaluate(self, x):
        w, v = np.linalg.eigh(x, "L" if self.lower_half else "U")
        asked = slice(*part_of(self, len(x)))
        return [v[:, asked], w[asked]]

    def lower(self, ctx, x):
        aval = ctx.avals[x]
        if not aval.size:
            return identities(ctx, ctx.out_avals)
        leading = aval.ndim - 2
        if on_tpu(ctx):
            return self.by_rotations(ctx, x)
        refuse_part(self, aval.shape[-1], "subset_by_index not supported on CPU and GPU")
        lower = "L" if self.lower_half else "U"
        if self.algorithm is EighImplementation.QDWH:
            raise errors.explained(
                NotImplementedError, "eigh.algorithm",
                "QDWH implementation is only supported on TPU",
                advice="Leave the implementation out.")
        if on_gpu(ctx):
            jacobi = self.algorithm is EighImplementation.JACOBI
            target = "cusolver_syevd_ffi"
            config = {"algorithm": f"{2 if jacobi else 0} : ui8",
                      "lower": str(self.lower_half).lower()}
        elif ctx.module.platform == "cpu":
            if self.algorithm is EighImplementation.JACOBI:
                raise errors.explained(
                    NotImplementedError, "eigh.algorithm",
                    "Jacobi implementation is not supported on CPU",
                    advice="Leave the implementation out.")
            target = lapack("syevd", aval.dtype)
            config = {"mode": character("V"), "uplo": character(lower)}
        else:
            raise refuse_platform(ctx, "eigh")
        outs = [*ctx.out_avals, status(aval.shape[:leading])]
        v, w, info = custom_call(ctx, target, [x], outs, leading=leading, config=config,
                                 reuse={0: 0})
        return nan_unless(ctx, info, [v, w])

    def by_rotations(self, ctx: Any, x: str) -> list[str]:
        """Write the call of XLA's routine for a TPU, by Jacobi rotations: 100 sweeps at most."""
        if self.algorithm is EighImplementation.QR:
            raise errors.explained(
                NotImplementedError, "eigh.algorithm", "QR algorithm is not supported on TPU",
                advice="Leave the implementation out.")
        aval = ctx.avals[x]
        n = aval.shape[-1]
        outs = [strong_aval(aval.shape, aval.dtype),
                strong_aval(aval.shape[:-1], ctx.out_avals[1].dtype)]
        ordered = self.sort_eigenvalues or self.subset_by_index is not None
        config = f"{int(self.lower_half)},{int(ordered)},100,1e-6"
        v, w = xla_call(ctx, "Eigh", [x], outs, config)
        start, stop = checked_part(self, n)
        if (start, stop) == (0, n):
            return [v, w]
        none = [0] * (aval.ndim - 1)
        return [ctx.slice(y, [*none[:len(shape) - 1], start], [*shape[:-1], stop])
                for y, shape in ((v, outs[0].shape), (w, outs[1].shape))]

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        refuse_part(self, shape_of(x)[-1],
                    "Derivatives not defined for partial eigen decomposition.")
        v, w = bind(self, x)
        if t is None:
            return [v, w], [None, None]
        inner = matmul(adjoint(v), matmul(t, v))
        dv = matmul(v, mul(reciprocal_gaps(w, dtype_of(v)), inner))
        return [v, w], [dv, diagonal(real(inner) if is_complex(inner) else inner)]

    transpose = NOT_LINEAR


def reciprocal_gaps(w: Any, dtype: Any) -> Any:
    """Return 1 / (w[j] - w[i]) at (i, j), 0 on the diagonal, in ``dtype``."""
    rank = len(shape_of(w))
    row, column = expand_dims(w, (rank - 1,)), expand_dims(w, (rank,))
    between = sub(row, column)
    ones = eye(shape_of(between), dtype_of(w), aval_of(between).explicit)
    gaps = sub(div(number(w, 1), add(between, ones)), ones)
    return convert_element_type(gaps, dtype)


@primitive("eig")
class Eig(MatrixOperation):
    """Values (n,), and as asked left and right vectors (n, n), all complex."""

    compute_left_eigenvectors: bool
    compute_right_eigenvectors: bool
    enable_eigvec_derivs: bool = False
    implementation: EigImplementation | None = None

    multiple_results = True

    @weak_as_operands
    def typing(self, x):
        leading = self.check(x)
        n = self.check_square(x)
        dtype = dtypes.complex_dtype(x.dtype)
        count = self.compute_left_eigenvectors + self.compute_right_eigenvectors
        return [ShapedArray((*leading, n), dtype)] + [ShapedArray(x.shape, dtype)] * count

    @each_matrix(2)
    def evaluate(self, x):
        w, v = np.linalg.eig(x.astype(np.result_type(x, np.float32)))
        outs = [w]
        if self.compute_left_eigenvectors:
            left = np.linalg.inv(v).conj().T
            outs.append(left / np.linalg.norm(left, axis=0))
        if self.compute_right_eigenvectors:
            outs.append(v)
        dtype = dtypes.complex_dtype(x.dtype)
        return [out.astype(dtype) for out in outs]

    def lower(self, ctx, x):
        aval = ctx.avals[x]
        if not aval.size:
            return identities(ctx, ctx.out_avals)
        leading = aval.ndim - 2
        dtype = ctx.out_avals[0].dtype
        matrix = strong_aval(aval.shape, dtype)
        values = strong_aval(aval.shape[:-1], aval.dtype)
        split = not dtypes.is_complex(aval.dtype)
        left, right = self.compute_left_eigenvectors, self.compute_right_eigenvectors
        if self.on_device(ctx):
            packed = strong_aval(aval.shape, aval.dtype)
            whole = [packed, ctx.out_avals[0], packed, packed, status(aval.shape[:leading])]
            _, w, _, vr, info = custom_call(ctx, "cusolver_geev_ffi", [x], whole, leading=leading,
                                            config={"left": "false", "right": str(right).lower()})
            if right and split:
                vr, = write_function(ctx, unpacked_vectors, w, vr)
            return nan_unless(ctx, info, [w] + [vr] * right)
        if on_gpu(ctx):
            target = "cuhybrid_eig_real" if split else "cuhybrid_eig_comp"
            magma = {None: "auto", EigImplementation.MAGMA: "on"}.get(self.implementation, "off")
            config = {"left": str(left).lower(), "magma": f'"{magma}"',
                      "right": str(right).lower()}
        elif ctx.module.platform == "cpu":
            if self.implementation not in (None, EigImplementation.LAPACK):
                raise errors.explained(
                    errors.ArgumentError, "eig.implementation",
                    "Only the lapack implementation is supported on CPU.",
                    advice="Leave the implementation out.")
            target = lapack("geev", aval.dtype)
            config = {"compute_left": character("V" if left else "N"),
                      "compute_right": character("V" if right else "N")}
        else:
            raise refuse_platform(ctx, "eig")
        outs = [values] * (1 + split) + [matrix, matrix, status(aval.shape[:leading])]
        *parts, vl, vr, info = custom_call(ctx, target, [x], outs, leading=leading,
                                           config=config)
        w = parts[0]
        if split:
            w = ctx.emit(f"stablehlo.complex {parts[0]}, {parts[1]}", *parts,
                         out=ctx.out_avals[0])
        return nan_unless(ctx, info, [w] + [vl] * left + [vr] * right)

    def on_device(self, ctx):
        """Return whether cuSOLVER works on the GPU.  Otherwise LAPACK does on the GPU's host."""
        if self.implementation == EigImplementation.CUSOLVER and on_gpu(ctx):
            if self.compute_left_eigenvectors:
                raise errors.explained(
                    NotImplementedError, "eig.cusolver",
                    "Left eigenvectors are not supported by cusolver.",
                    advice="Leave the implementation out, or compute the right ones alone.")
            return True
        return (self.implementation is None and not self.compute_left_eigenvectors
                and ctx.module.platform == "cuda" and plugins.has_geev())

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        if t is None:
            outs = bind(self, x)
            return outs, [None] * len(outs)
        left, right = self.compute_left_eigenvectors, self.compute_right_eigenvectors
        if (left or right) and not self.enable_eigvec_derivs:
            raise errors.explained(
                NotImplementedError, "eig.jvp",
                "Derivatives of non-symmetric eigenvectors are only valid under assumptions on the "
                "input that JAX cannot check (see the enable_eigvec_derivs argument to "
                "jax.lax.linalg.eig).",
                advice="Differentiate the values alone (eigvals), or eigh for Hermitian matrices.")
        # What follows depends on the vectors in ways that no phase can change.
        whole = Eig(left, True, True, self.implementation)
        w, *vectors = bind(whole, x)
        v = vectors[-1]
        moved = matmul(convert_element_type(t, dtype_of(v)), v)
        inner = solve(v, moved)
        outs, tangents = [w], [diagonal(inner)]
        if left:
            # The left vectors are the right ones of the adjoint, whose values are conjugate.
            u = vectors[0]
            back = solve(u, matmul(adjoint(convert_element_type(t, dtype_of(v))), u))
            outs.append(u)
            tangents.append(vector_tangents(u, conjugate(w), back))
        if right:
            outs.append(v)
            tangents.append(vector_tangents(v, w, inner))
        return outs, tangents

    transpose = NOT_LINEAR


def unpacked_vectors(w: Any, packed: Any) -> list[Any]:
    """Return the complex vectors (…, n, n) of the values ``w`` (…, n) of a real matrix.

    ``packed`` has the vectors of real values, and for two conjugate values, which stand side by
    side, the real and the imaginary part of the first one's vector.
    """
    axis = len(shape_of(packed)) - 1
    dtype = dtype_of(packed)
    paired = convert_element_type(ne(imag(w), number(packed, 0)), dtype)
    first = rem(cumsum(paired, axis - 1), number(paired, 2))
    first = mul(first, paired)
    second = sub(paired, first)
    before = concatenate([slice_in_dim(packed, -1, None, axis=axis),
                          slice_in_dim(packed, 0, -1, axis=axis)], axis)
    after = concatenate([slice_in_dim(packed, 1, None, axis=axis),
                         slice_in_dim(packed, 0, 1, axis=axis)], axis)
    re = add(columns_scaled(packed, sub(ones_like(second), second)), columns_scaled(before, second))
    im = sub(columns_scaled(after, first), columns_scaled(packed, second))
    return [complex_of(re, im)]


def vector_tangents(v: Any, w: Any, inner: Any) -> Any:
    """Return the tangents of vectors ``v`` of length 1, where ``inner`` = v⁻¹ dA v."""
    moved = matmul(v, mul(reciprocal_gaps(w, dtype_of(v)), inner))
    along = reduce_sum(mul(conjugate(v), moved), (len(shape_of(v)) - 2,))
    return sub(moved, columns_scaled(v, along))


def eigh(x: Array, *, lower: bool = True, symmetrize_input: bool = True,
         sort_eigenvalues: bool = True, subset_by_index: tuple[int, int] | None = None,
         implementation: EighImplementation | None = None) -> tuple[Any, Any]:
    """Return the vectors (…, n, n) and values (…, n) of the Hermitian matrices ``x``.

    Column j of the vectors belongs to value j; values ascend.  ``lower`` names the triangle that is
    read, ``symmetrize_input`` takes the mean of ``x`` and its adjoint first.

    Raises: TypeError if ``x`` is not a stack of square matrices; NotImplementedError for a part of
    the values, or an implementation that the platform does not have.

    >>> v, w = lax.linalg.eigh(jnp.array([[2., 1.], [1., 2.]]))
    >>> w
    Array([1., 3.], dtype=float32)
    """
    if symmetrize_input:
        x = mean_with_adjoint(x, "eigh")
    v, w = bind(Eigh(bool(lower), bool(sort_eigenvalues), subset_by_index, implementation), x)
    return v, w


def eig(x: ArrayLike, *, compute_left_eigenvectors: bool = True,
        compute_right_eigenvectors: bool = True, enable_eigvec_derivs: bool = False,
        implementation: EigImplementation | None = None,
        use_magma: bool | None = None) -> list[Any]:
    """Return the values (…, n) of ``x`` (…, n, n), then left and right vectors as asked, complex.

    ``enable_eigvec_derivs``: let vectors be differentiated, each kept at length 1 without a turn of
    its phase; it is for you to see to it that no two values are equal.

    Raises: TypeError or ValueError if ``x`` is not a stack of square matrices.

    >>> lax.linalg.eig(jnp.array([[2., 1.], [0., 3.]]), compute_left_eigenvectors=False)[0]
    Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    if use_magma is not None and implementation is None:
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
    return bind(Eig(bool(compute_left_eigenvectors), bool(compute_right_eigenvectors),
                    bool(enable_eigvec_derivs), implementation), x)
