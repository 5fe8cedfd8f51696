"""Does a program do on each platform what it was told to do there?"""

from __future__ import annotations

import re

import numpy as np
import pytest
from both import same, same_error
from scipy.linalg import lapack as scipy_lapack

import saem as jax
import saem.numpy as jnp
from saem import export, lax
from saem.compile.lowering import lower
from saem.linalg.eigen import unpacked_vectors
from saem.linalg.polar import svd_by_polar
from saem.linalg.qr import Ormqr, geqrf
from saem.linalg.tridiagonal import by_elimination

pytestmark = pytest.mark.usefixtures("little_effort")

M = np.array([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 2]], np.float32)
PLATFORMS = ("cuda", "cpu", "tpu")


def by_platform(x):
    return lax.platform_dependent(x, cpu=lambda x: x + x, cuda=lambda x: x * x * x,
                                  default=lambda x: x - 3)


def targets(f, platforms):
    text = jax.jit(f).trace(M).lower(lowering_platforms=platforms).as_text()
    return sorted(set(re.findall(r"custom_call @((?:lapack|cu|hip)\w+)", text)))


def open_in(f, shape):
    return exported(f, jax.ShapeDtypeStruct(export.symbolic_shape(shape), np.float32),
                    platforms=("cuda", "cpu"))


def exported(f, *args, platforms=PLATFORMS):
    return export.export(jax.jit(f), platforms=platforms)(*args)


def test_the_branch_of_this_platform(jax_oracle):
    def program():
        f = lambda x: lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x * 2)
        g = lambda x: lax.platform_dependent(x, tpu=lambda x: x + 1, default=lambda x: x**2)
        h = lambda x: lax.platform_dependent(x, tpu=jnp.sin, cpu=lambda x: x - 1)
        x = jnp.arange(3.0)
        return [
            (
                k(x),
                jax.jit(k)(x),
                jax.vmap(k)(x),
                jax.jit(jax.vmap(jax.grad(k)))(x),
                jax.jvp(k, (x,), (x,)),
                str(jax.make_jaxpr(k)(x)),
                jax.jit(jax.vmap(jax.grad(jax.checkpoint(k))))(x),
            )
            for k in (f, g, h)
        ]

    same(jax_oracle, program)
    same_error(jax_oracle, "jax.jit(lambda x: lax.platform_dependent(x, tpu=jnp.sin, "
               "cuda=jnp.cos))(1.0)", "'platform_index(platforms=((\'tpu\',), (\'cuda\',)))' not "
               "found for platform cpu")


@pytest.mark.parametrize(("platform", "there", "not_there"), [
    ("cpu", "sine", "cosine"), ("tpu", "cosine", "sine"), ("cuda", "exponential", "sine")])
def test_only_the_branch_of_the_platform_is_written(platform, there, not_there):
    closed = jax.make_jaxpr(jax.vmap(lambda x: lax.platform_dependent(
        x, cpu=lax.sin, tpu=lax.cos, default=lax.exp)))(lax.iota("float32", 3))
    text = lower(closed, platform=platform).text
    assert f"stablehlo.{there}" in text and f"stablehlo.{not_there}" not in text
    assert "stablehlo.case" not in text


def test_small_names_of_lax(jax_oracle):
    def program():
        x = jnp.array([2**31 - 1, -(2**31), 12345, -1], jnp.int32)
        f = lambda a, b: lax.broadcast_like(a, b)
        return [
            lax.mulhi(x, x),
            lax.mulhi(x.astype(jnp.uint32), x.astype(jnp.uint32)),
            lax.mulhi(x, jnp.int32(7)),
            str(jax.make_jaxpr(lax.mulhi)(x, x)),
            jax.jit(jax.vmap(lax.mulhi, (0, None)))(x, x),
            f(jnp.arange(3.0), jnp.ones((2, 3))),
            f(1.5, jnp.ones((2, 3))),
            str(jax.make_jaxpr(f)(jnp.arange(3.0), jnp.ones((2, 3)))),
            lax.empty((2, 3), jnp.float32).shape,
        ]

    same(jax_oracle, program)

    def wide():
        with jax.enable_x64(True):
            x = jnp.array([2**63 - 1, -(2**63), 123456789012345678, -1, 0], jnp.int64)
            y = x[::-1] + 3
            u = x.astype(jnp.uint64), y.astype(jnp.uint64)
            return [np.asarray(lax.mulhi(x, y)).tolist(), np.asarray(lax.mulhi(*u)).tolist()]

    same(jax_oracle, wide)


# -- one program for several platforms ------------------------------------------------------------


def test_one_text_chooses_by_the_index_of_the_platform():
    lowered = jax.jit(by_platform, donate_argnums=0).trace(M).lower(lowering_platforms=PLATFORMS)
    text = lowered.as_text()
    head = next(line for line in text.split("\n") if "public @main" in line)
    assert head.count("%arg") == 2 and head.count("tf.aliasing_output = 0") == 1
    assert '@main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"}' in head
    functions = [text.index(f"@main_{platform}(%arg0") for platform in PLATFORMS]
    assert functions == sorted(functions) and text.count("stablehlo.case") == 1
    assert text.index("stablehlo.multiply") < text.index("@main_cpu(%arg0") < text.index(
        "stablehlo.add") < text.index("@main_tpu(%arg0") < text.index("stablehlo.subtract")
    assert lowered.as_text("hlo").count("conditional(") == 1


def test_an_array_constant_is_handed_to_the_function_of_each_platform():
    table = np.arange(100, dtype=np.float32)
    traced = jax.jit(lambda x: by_platform(x) + table).trace(table)
    lowered = traced.lower(lowering_platforms=PLATFORMS)
    heads = [line for line in lowered.as_text().splitlines() if "func.func" in line]
    assert [head.count("%arg") - head.count("_platform_index") for head in heads] == [2] * 4
    np.testing.assert_array_equal(lowered.compile()(table), 3 * table)


def test_a_program_that_is_the_same_everywhere_is_written_once():
    plain = exported(jnp.sin, M)
    assert not plain.uses_global_constants and "stablehlo.case" not in plain.mlir_module()


@pytest.mark.parametrize("expression", [
    "[exported(by_platform, M).call(M), exported(by_platform, M).platforms,"
    " exported(by_platform, M).uses_global_constants,"
    " exported(by_platform, M).module_kept_var_idx]",
    "exported(lambda x, y: by_platform(y), 1., M).module_kept_var_idx",
    "exported(lambda x, y: by_platform(y), 1., M).call(1., M)",
    "exported(lambda x: (), M).call(M)",
    "exported(jnp.linalg.cholesky, M).call(M)",
    "exported(lambda x: jnp.linalg.qr(x)[1], M, platforms=('cpu', 'cuda')).call(M)",
    "exported(jnp.linalg.svdvals, M, platforms=('cpu', 'cuda')).call(M)",
    "exported(jnp.linalg.eigvalsh, M, platforms=('cpu', 'cuda')).call(M)",
    "exported(jnp.linalg.solve, M, M[0], platforms=('cuda', 'cpu')).call(M, M[0])",
    "exported(jax.scipy.linalg.solve_triangular, M, M[0]).call(M, M[0])",
    "exported(lambda k: jax.random.normal(k, (3,)) + by_platform(1.), jax.random.key(0))"
    ".call(jax.random.key(0))",
    "jax.grad(lambda x: exported(by_platform, M).call(x).sum())(M)",
    "jax.grad(jax.grad(lambda x: exported(lambda x: by_platform(x)**2, 1.).call(x)))(2.)",
    "jax.jit(jax.grad(lambda x: exported(jnp.linalg.cholesky, M).call(x).sum()))(M)",
    "exported(by_platform, 1.).vjp().platforms",
    "exported(lambda x: exported(by_platform, M).call(x) * 2, M, platforms=('cpu', 'tpu')).call(M)",
    "jax.jit(lambda x: exported(by_platform, M).call(x) + exported(by_platform, M).call(M))(M)",
    "lax.fori_loop(0, 3, lambda i, x: exported(by_platform, M).call(x), M)",
    "export.export(jax.jit(by_platform), platforms=('tpu', 'cuda'), disabled_checks="
    "[export.DisabledSafetyCheck.platform()])(M).call(M)",
])
def test_it_runs_the_program_of_the_platform_here(jax_oracle, expression):
    same(jax_oracle, expression, within=__name__)


def test_sizes_may_be_open(jax_oracle):
    def program():
        n, = export.symbolic_shape("n")
        square = jax.ShapeDtypeStruct((n, n), np.float32)
        one = exported(lambda x: jnp.linalg.cholesky(x) + by_platform(x).sum() + x.shape[0], square)
        two = exported(lambda x: one.call(x) * 2, square, platforms=("tpu", "cpu"))
        return [one.call(M), one.call(M[:2, :2]), two.call(M), jax.jit(two.call)(M[:1, :1]),
                jax.grad(lambda x: one.call(x).sum())(M)]

    same(jax_oracle, program, within=__name__)


@pytest.mark.parametrize("function", [
    "lambda a: jnp.linalg.qr(a)[1]", "jnp.linalg.svdvals", "jnp.linalg.eigvalsh",
    "lambda a: jnp.linalg.solve(a, a * 2)", "jnp.linalg.det",
    "lambda a: jax.scipy.linalg.lu_factor(a)"])
def test_sizes_of_linear_algebra_may_be_open(jax_oracle, function):
    same(jax_oracle, f"[open_in({function}, 'n, n').call(M),"
         f" open_in({function}, 'b, n, n').call(np.stack([M, M[::-1]])),"
         f" open_in({function}, 'b, 3, 3').call(np.stack([M, M[::-1]]))]", within=__name__)


def test_small_matrices_of_open_size_are_decomposed_by_jacobi_rotations():
    for shape, constraint, target in (("n, n", "n >= 2", "gesvd"), ("n, n", "n <= 1000", "gesvdj"),
                                      ("n, n, n", "n <= 1024", "gesvdj"),
                                      ("n, 2000, 2000", "n <= 5", "gesvd"),
                                      ("n, 9, 9", "n >= 2000", "gesvdj")):
        sizes = export.symbolic_shape(shape, constraints=[constraint])
        text = exported(jnp.linalg.svd, jax.ShapeDtypeStruct(sizes, np.float32),
                        platforms=("cuda",)).mlir_module()
        assert f"@cusolver_{target}_ffi" in text


@pytest.mark.parametrize("function", [
    "jnp.linalg.cholesky", "jnp.linalg.qr", "lambda a: jax.scipy.linalg.qr(a, pivoting=True)",
    "jnp.linalg.svd", "jnp.linalg.eigh", "jnp.linalg.eig", "lambda a: jnp.linalg.solve(a, a[0])",
    "lax.linalg.tridiagonal", "lambda a: lax.linalg.tridiagonal_solve(a[0], a[1], a[2], a)",
    "lambda a: lax.linalg.cholesky_update(a, a[0])",
])
def test_each_platform_calls_its_own_library(jax_oracle, function):
    same(jax_oracle, f"[targets({function}, (platform,)) for platform in ('cuda', 'rocm')]",
         within=__name__)
    same(jax_oracle, f"targets({function}, ('cpu', 'cuda'))", within=__name__)


@pytest.mark.parametrize("function", [
    "jnp.linalg.qr", "lambda a: jnp.linalg.qr(a[:, :2], mode='complete')", "jnp.linalg.eigh",
    "lambda a: lax.linalg.eigh(a, lower=False, sort_eigenvalues=False, symmetrize_input=False)",
    "lambda a: lax.linalg.eigh(a + 1j, implementation=lax.linalg.EighImplementation.JACOBI)",
    "lambda a: lax.linalg.eigh(a, subset_by_index=(1, 3))", "jax.scipy.linalg.lu_factor",
    "lambda a: jnp.linalg.solve(a, a[0])", "jnp.linalg.inv", "jnp.linalg.det",
    "jnp.linalg.cholesky", "lambda a: lax.linalg.householder_product(a, a[0])",
    "lambda a: lax.linalg.tridiagonal_solve(a[0], a[1], a[2], a)",
    "lambda a: lax.linalg.lu_pivots_to_permutation(jnp.array([2, 1, 2]), 3)",
    "lambda a: lax.linalg.cholesky_update(a, a[0])",
])
def test_a_tpu_has_routines_of_xla(jax_oracle, function):
    same(jax_oracle, f"routines({function})", within=__name__)


@pytest.mark.parametrize("function", [
    "jnp.linalg.svd", "lambda a: jnp.linalg.svd(a[:2], full_matrices=False)", "jnp.linalg.pinv",
    "lambda a: lax.linalg.svd(a, subset_by_index=(0, 2), full_matrices=False)",
    "lambda a: lax.linalg.svd(a, algorithm=lax.linalg.SvdAlgorithm.POLAR)"])
def test_singular_values_on_a_tpu(jax_oracle, function):
    """JAX has Eigh leave its values in any order and sorts those of another program."""
    same(jax_oracle, f"routines({function}, told=False)", within=__name__)


def routines(f, told=True):
    """The routines of XLA that a program for a TPU calls, with what it tells them; its results."""
    traced = jax.jit(f).trace(M)
    text = traced.lower(lowering_platforms=("tpu",)).as_text()
    config = 'backend_config = "'
    calls = [(line.split("custom_call @")[1].split("(")[0],
              line.split(config)[1].split('"')[0] if told and config in line else "")
             for line in text.split("\n") if "custom_call @" in line]
    return sorted(set(calls)), [x.shape for x in jax.tree.leaves(traced.out_info)]


@pytest.mark.parametrize(("function", "sentence"), [
    ("jnp.linalg.eig", "primitive 'eig' not found for platform tpu"),
    ("lambda a: jax.scipy.linalg.qr(a, pivoting=True)", "primitive 'geqp3' not found"),
    ("jax.scipy.linalg.schur", "primitive 'schur' not found for platform tpu"),
    ("lambda a: lax.linalg.svd(a, algorithm=lax.linalg.SvdAlgorithm.QR)", "Only the POLAR"),
    ("lambda a: lax.linalg.eigh(a, implementation=lax.linalg.EighImplementation.QR)",
     "QR algorithm is not supported on TPU"),
    ("lambda a: lax.linalg.tridiagonal_solve(a[0], a[1], a[2], a, perturb_singular=True)",
     "perturb_singular=True is not supported on this platform."),
])
def test_a_tpu_has_no_others(jax_oracle, function, sentence):
    same_error(jax_oracle, f"routines({function})", sentence, within=__name__)


@pytest.mark.parametrize("function", [
    "lambda a: jnp.linalg.qr(a)[1]", "jnp.linalg.svdvals", "jnp.linalg.eigvalsh", "jnp.linalg.inv",
    "jax.scipy.linalg.lu_factor", "lambda a: lax.linalg.tridiagonal_solve(a[0], a[1], a[2], a)"])
def test_one_export_for_all_three(jax_oracle, function):
    same(jax_oracle, f"exported({function}, M).call(M)", within=__name__)


def test_parts_of_decompositions_are_for_a_tpu(jax_oracle):
    def program():
        x = jax.ShapeDtypeStruct((4, 3), np.float32)
        shapes = [jax.eval_shape(f, x) for f in (
            lambda x: lax.linalg.svd(x, subset_by_index=(0, 2), full_matrices=False),
            lambda x: lax.linalg.eigh(x[:3], subset_by_index=(1, 3)))]
        whole = [lax.linalg.svd(jnp.asarray(M), subset_by_index=(0, 3), compute_uv=False),
                 lax.linalg.eigh(jnp.asarray(M), subset_by_index=(0, 3))[1]]
        return jax.tree.map(lambda x: (x.shape, str(x.dtype)), shapes), whole

    same(jax_oracle, program, within=__name__)
    for call in ("lax.linalg.svd(M, subset_by_index=(0, 2), full_matrices=False)",
                 "lax.linalg.svd(M, subset_by_index=(0, 2), compute_uv=False, full_matrices=False)",
                 "lax.linalg.svd(M, subset_by_index=(0, 5), full_matrices=False)",
                 "lax.linalg.eigh(jnp.asarray(M), subset_by_index=(0, 2))"):
        same_error(jax_oracle, call, "subset_by_index not", within=__name__)
    same_error(jax_oracle, "lax.linalg.svd(M, subset_by_index=(0, 2))",
               "full_matrices and subset_by_index cannot both be set", within=__name__)
    for call in (lambda a: lax.linalg.eigh(a, subset_by_index=(2, 5)),
                 lambda a: lax.linalg.svd(a, subset_by_index=(0, 4), full_matrices=False)):
        with pytest.raises(ValueError, match=r"must be within 0\.\.3"):
            routines(call)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("rank", [0, 1, None])
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (5, 5), (2, 6, 3), (1, 1), (7, 1)])
def test_singular_values_without_lapack(shape, rank, dtype):
    """On a TPU they are computed so; the same program is run here, with `eigh` of LAPACK."""
    numbers = np.random.default_rng(0)
    x = numbers.standard_normal(shape) + 1j * numbers.standard_normal(shape)
    if rank is not None:
        x = x[..., :, :rank] @ numbers.standard_normal((*shape[:-2], rank, shape[-1]))
    x = (x if dtype is np.complex64 else x.real).astype(dtype)
    k = min(shape[-2:])
    for full in (False, True):
        s, u, vh = map(np.asarray, svd_by_polar(jnp.asarray(x), full, True))
        m, n = shape[-2:] if full else (k, k)
        assert u.shape == (*shape[:-1], m) and vh.shape == (*shape[:-2], n, shape[-1])
        close = {"rtol": 0, "atol": 3e-5}
        np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, **close)
        np.testing.assert_allclose(s, np.linalg.svd(x, compute_uv=False), **close)
        for q in (u, np.swapaxes(vh, -1, -2).conj()):
            gram = np.swapaxes(q, -1, -2).conj() @ q
            np.testing.assert_allclose(gram, np.broadcast_to(np.eye(q.shape[-1]), gram.shape),
                                       **close)


def test_three_diagonals_without_lapack():
    numbers = np.random.default_rng(1)
    dl, d, du = (numbers.standard_normal((2, 6)).astype(np.float32) for _ in range(3))
    d += 4
    dl[:, 0] = du[:, -1] = np.nan  # not read
    b = numbers.standard_normal((2, 6, 3)).astype(np.float32)
    (x,) = by_elimination(*map(jnp.asarray, (dl, d, du, b)))
    a = np.stack([np.diag(d[i]) + np.diag(dl[i, 1:], -1) + np.diag(du[i, :-1], 1)
                  for i in range(2)])
    np.testing.assert_allclose(a @ x, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_products_with_q_without_lapack(left, transpose):
    a, taus = map(np.asarray, geqrf(jnp.asarray(np.concatenate([M, 2 * M[::-1]])) + 1j))
    c = np.random.default_rng(2).standard_normal((6, 6)).astype(np.complex64)
    (made,) = Ormqr(left, transpose).by_product(a, taus, c)
    np.testing.assert_allclose(
        made, lax.linalg.ormqr(a, taus, c, left=left, transpose=transpose), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("expression", "sentence"), [
    ("exported(by_platform, M, platforms=('tpu', 'cuda')).call(M)",
     "Function 'by_platform' was exported for platforms '('tpu', 'cuda')' but it is used on "
     "'('cpu',)'."),
    ("exported(lambda x: exported(by_platform, M).call(x), M, platforms=('cpu', 'rocm'))",
     "Function 'by_platform' was exported for platforms '('cuda', 'cpu', 'tpu')' but it is used "
     "on '("),
    ("exported(lambda x: lax.platform_dependent(x, cpu=lax.sin, cuda=lax.cos), M)",
     "MLIR translation rule for primitive 'platform_index(platforms=(('cpu',), ('cuda',)))' not "
     "found for platform"),
    ("exported(jnp.linalg.eigvals, M, platforms=('cpu', 'cuda'))",
     "Cannot serialize code with custom calls whose targets have no compatibility guarantees"),
])
def test_a_platform_without_a_program_is_refused(jax_oracle, expression, sentence):
    same_error(jax_oracle, expression, sentence, within=__name__)


def test_it_comes_back_with_its_derivative():
    f = lambda x: by_platform(x)**2 + jnp.linalg.cholesky(M)
    back = export.deserialize(exported(f, M).serialize(vjp_order=1))
    assert back.platforms == back.vjp().platforms == PLATFORMS
    assert back.uses_global_constants and back.vjp().uses_global_constants
    np.testing.assert_allclose(back.call(M), 4 * M**2 + np.linalg.cholesky(M), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: back.call(x).sum())(M), 8 * M, rtol=1e-6)


def test_effects_and_references_are_those_of_the_platform_here(capfd):
    kept = jax.new_ref(np.zeros(3, np.float32))

    def f(x):
        jax.debug.print("{}", by_platform(x).sum(), ordered=True)
        kept[...] = by_platform(x)
        return kept[...] + 1

    lowered = jax.jit(f).trace(M[0]).lower(lowering_platforms=PLATFORMS[:2])
    assert "stablehlo.case" in lowered.as_text()
    np.testing.assert_allclose(lowered.compile()(M[0]), 2 * M[0] + 1)
    jax.effects_barrier()
    np.testing.assert_allclose(kept[...], 2 * M[0])
    assert capfd.readouterr().out == "11.0\n"


def test_cusolver_finds_the_values_of_any_matrix_where_it_is_asked_to():
    def target(**how):
        return targets(lambda a: lax.linalg.eig(a, **how), ("cuda",))

    cusolver = lax.linalg.EigImplementation.CUSOLVER
    only_right = {"compute_left_eigenvectors": False, "implementation": cusolver}
    assert target(**only_right) == ["cusolver_geev_ffi"]
    assert target(implementation=lax.linalg.EigImplementation.LAPACK) == ["cuhybrid_eig_real"]
    with pytest.raises(NotImplementedError, match="Left eigenvectors are not supported"):
        target(implementation=cusolver)


@pytest.mark.parametrize("seed", range(5))
def test_vectors_of_conjugate_values_are_unpacked(seed):
    """LAPACK packs them as cuSOLVER does."""
    a = np.random.RandomState(seed).randn(7, 7).astype(np.float32)
    re, im, _, packed, info = scipy_lapack.sgeev(a)
    assert info == 0 and np.any(im)
    w = (re + 1j * im).astype(np.complex64)
    v, = jax.jit(unpacked_vectors)(w, packed)
    np.testing.assert_allclose(a @ np.asarray(v), np.asarray(v) * w, atol=2e-5)
    stacked, = unpacked_vectors(jnp.stack([w, w.conj()]), jnp.stack([packed, packed]))
    np.testing.assert_array_equal(stacked[0], v)


@pytest.mark.parametrize(("size", "calls"), [(1, 0), (2, 0), (3, 1), (9, 1)])
def test_systems_that_are_too_small_for_cusparse_are_eliminated(size, calls):
    d = np.ones(size, np.float32)
    text = jax.jit(lax.linalg.tridiagonal_solve).trace(d, d, d, d[:, None]).lower(
        lowering_platforms=("cuda",)).as_text()
    assert text.count("@cusparse_gtsv2_ffi") == calls
