"""Does a GPU compute what a CPU does?

Each call runs on the GPU that is there and on its host, both times by Saem.  Families whose
programs differ between the two are here: linear algebra (cuSOLVER and LAPACK), Fourier transforms
(cuFFT), convolutions and attention (cuDNN), random bits, callbacks, memories of the host, exports.

The matrix of primitives holds on a GPU, too: ``SAEM_PLATFORMS=cuda pytest test_matrix.py -k xla``.

Read before: ``saem.placement.plugins``.
Invariant: none that a machine without a GPU could break; there all of it is skipped.
"""

from __future__ import annotations

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import export, lax, random
from saem.experimental import io_callback, sparse
from saem.placement import plugins
from saem.placement.devices import all_backends


def gpu():
    """Return the first GPU, None where there is none."""
    if plugins.cuda_library() is None or "cuda" not in all_backends():
        return None
    return jax.devices("cuda")[0]


GPU = gpu()
if GPU is None:
    pytest.skip("no GPU here, or no plugin: pip install 'saem[cuda13]'", allow_module_level=True)

draw = np.random.RandomState(0)
A = draw.randn(6, 6).astype("f") + 6 * np.eye(6, dtype="f")
C = A + 1j * draw.randn(6, 6).astype("f")
M = draw.randn(7, 4).astype("f")
S = draw.randn(3, 5, 5).astype("f")
V = draw.randn(12).astype("f")
W = np.array([0.5, -0.0, 2, np.nan, -np.inf], "f")
Z = np.array([[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 2, 1], [0, 0, -1, 2]], "f")
IMAGE = draw.randn(2, 8, 8, 3).astype("f")
KERNEL = draw.randn(3, 3, 3, 4).astype("f")
Q = draw.randn(2, 16, 4, 8).astype("f")


def rebuilt(u, s, vh):
    """Return the product of a decomposition, whose vectors are free to turn."""
    return (u * s[..., None, :]) @ vh


def sorted_values(w):
    return jnp.sort_complex(jnp.round(w, 4))


def grads(f):
    return lambda x: jax.vmap(jax.grad(f))(x)


CALLS = {
    "arithmetic": lambda: jnp.sin(V) * 2 + V ** 2,
    "product": lambda: (A @ A, jnp.einsum("bij,bjk->ik", S, S), C @ C),
    "product of bytes": lambda: lax.dot_general(
        np.arange(256, dtype="i1").reshape(16, 16) // 9, np.ones((16, 16), "i1"),
        (((1,), (0,)), ((), ())), preferred_element_type=np.int32),
    "reductions": lambda: (S.sum(1), jnp.var(S, 0), jnp.argmax(V), jnp.cumsum(V), lax.cummax(V)),
    "sort": lambda: (jnp.sort(W), jnp.argsort(V), lax.top_k(V, 3), jnp.median(V)),
    "scatter": lambda: (jnp.zeros(5).at[np.array([1, 1, 2])].add(1.),
                        jnp.ones(5).at[np.array([1, 3])].max(3.)),
    "loops": lambda: lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, c[1] * 1.1), (0, 1.)),
    "scan": lambda: jax.grad(lambda v: lax.scan(
        lambda c, x: (jnp.sin(c) * 0.9 + x, c), 0., v)[0])(V),
    "cholesky": lambda: jnp.linalg.cholesky(A @ A.T),
    "cholesky of complex numbers": lambda: jnp.linalg.cholesky(C @ C.conj().T),
    "lu": lambda: jax.scipy.linalg.lu(A),
    "solve": lambda: (jnp.linalg.solve(A, A[:, :2]), jnp.linalg.inv(C), jnp.linalg.slogdet(S)),
    "qr": lambda: jnp.abs(jnp.linalg.qr(M)[1]),
    "eigh": lambda: jnp.linalg.eigh(A + A.T)[0],
    "eigh of a stack": lambda: jnp.linalg.eigh(S + S.mT)[0],
    "svd": lambda: (jnp.linalg.svd(M, compute_uv=False),
                    rebuilt(*jnp.linalg.svd(M, full_matrices=False)),
                    rebuilt(*jnp.linalg.svd(S, full_matrices=False))),
    "eigvals": lambda: [sorted_values(jnp.linalg.eigvals(x)) for x in (A, C, Z)],
    "eig": lambda: [rebuilt(v, w, jnp.linalg.inv(v)) for w, v in map(jnp.linalg.eig, (A, C, Z))],
    "eig with left vectors": lambda: [
        sorted_values(lax.linalg.eig(x)[0]) for x in (A, C)],
    "triangular": lambda: [jax.scipy.linalg.solve_triangular(np.tril(A), V[:6], lower=True, trans=t)
                           for t in range(3)],
    "tridiagonal": lambda: [lax.linalg.tridiagonal_solve(
        *(jnp.asarray(V[:n] + k) for k in range(3)), jnp.ones((n, 2))) for n in (1, 2, 3, 9)],
    "expm": lambda: jax.scipy.linalg.expm(A / 9),
    "derivatives of decompositions": lambda: [grads(f)(S) for f in (
        jnp.linalg.det, lambda a: jnp.linalg.inv(a + 5 * jnp.eye(5)).sum(),
        lambda a: jnp.linalg.eigh(a + a.T)[0][0],
        lambda a: jnp.linalg.svd(a, compute_uv=False)[0])],
    "fft": lambda: (jnp.fft.fft(V), jnp.fft.rfft(S), jnp.fft.irfft(C), jnp.fft.fftn(S)),
    "convolution": lambda: [lax.conv_general_dilated(
        IMAGE, KERNEL, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        jnp.convolve(V, W[:3], "same")],
    "derivatives of a convolution": lambda: jax.grad(lambda k: (lax.conv_general_dilated(
        IMAGE, k, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2).sum())(KERNEL),
    "pooling": lambda: jax.grad(lambda x: lax.reduce_window(
        x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum())(IMAGE),
    "attention": lambda: jax.nn.dot_product_attention(Q, Q, Q, is_causal=True),
    "random bits": lambda: [random.bits(random.key(3), (7,)), random.permutation(random.key(3), 9),
                            random.key_data(random.split(random.key(3), 3))],
    "distributions": lambda: [random.normal(random.key(3), (9,)), random.gamma(random.key(3), 2.),
                              random.poisson(random.key(3), 3.), random.choice(random.key(3), 9)],
    "special functions": lambda: (jax.scipy.special.gammainc(2., np.abs(V)),
                                  jax.scipy.special.betainc(2., 3., 1 / (1 + np.abs(V))),
                                  jax.scipy.special.erfinv(np.tanh(V))),
    "small floats": lambda: (jnp.asarray(V, "bfloat16") * 3, jnp.asarray(V, "float8_e5m2") + 0),
    "pure_callback": lambda: jax.jit(lambda x: jax.pure_callback(
        np.sin, jax.ShapeDtypeStruct((12,), "float32"), x))(V),
    "sparse": lambda: sparse.BCOO.fromdense(jnp.asarray(M)) @ jnp.ones((4, 2)),
    "double precision": lambda: in_double(lambda: (
        jnp.linalg.svd(M.astype("d"), compute_uv=False), jnp.fft.fft(V.astype("d")))),
}


def in_double(f):
    with jax.enable_x64(True):
        return f()


@pytest.mark.parametrize("name", CALLS)
def test_a_gpu_computes_what_its_host_does(name):
    results = []
    for device in (GPU, jax.devices("cpu")[0]):
        with jax.default_device(device), jax.default_matmul_precision("highest"):
            leaves = jax.tree.leaves(CALLS[name]())
            assert all(x.devices() == {device} for x in leaves if isinstance(x, jax.Array))
            results.append(leaves)
    for there, here in zip(*results, strict=True):
        assert (there.dtype, there.shape) == (here.dtype, here.shape)
        if jnp.issubdtype(here.dtype, jnp.inexact):
            there, here = (np.asarray(x, "complex128") for x in (there, here))
            np.testing.assert_allclose(there, here, rtol=3e-4, atol=3e-4)
        else:
            np.testing.assert_array_equal(there, here)


def test_callbacks_with_effects_come_in_order():
    seen = []
    see = lambda x: io_callback(lambda v: seen.append(float(v)), None, x, ordered=True)
    lax.fori_loop(0, 4, lambda i, c: (see(i), c)[1], 0)
    jax.jit(see)(7.)
    jax.effects_barrier()
    assert seen == [0, 1, 2, 3, 7]


def test_what_a_callback_computes_is_computed_on_the_host():
    """The GPU waits for it."""
    def host(v):
        x = jnp.sin(jnp.ones(3)) + v
        assert x.devices() == {jax.devices("cpu")[0]}
        return np.asarray(x)

    kind = jax.ShapeDtypeStruct((3,), "float32")
    out = jax.jit(lambda x: jax.pure_callback(host, kind, x))(V[:3])
    np.testing.assert_allclose(out, np.sin(np.float32(1)) + V[:3], rtol=1e-5)
    assert out.devices() == {GPU}


def test_values_move_to_the_memory_of_the_host_and_back():
    pinned = jax.sharding.SingleDeviceSharding(GPU, memory_kind="pinned_host")
    x = jax.device_put(V, pinned)
    assert x.sharding.memory_kind == "pinned_host"
    back = jax.jit(lambda x: jax.device_put(x, jax.memory.Space.Device) * 2)(x)
    assert back.sharding.memory_kind == "device"
    np.testing.assert_array_equal(back, V * 2)


def test_memory_that_is_given_away_is_taken_over():
    x = jnp.arange(8.)
    where = x.unsafe_buffer_pointer()
    y = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted() and y.unsafe_buffer_pointer() == where


def test_an_export_for_two_platforms_runs_here():
    made = export.export(jax.jit(lambda x: jnp.sin(x) @ x.T), platforms=("cuda", "cpu"))(M)
    there = export.deserialize(made.serialize()).call(jax.device_put(M, GPU))
    np.testing.assert_allclose(there, np.sin(M) @ M.T, rtol=3e-3, atol=3e-3)
    assert there.devices() == {GPU}


def test_memory_is_shared_with_other_libraries_on_the_gpu():
    cupy = pytest.importorskip("cupy", reason="cupy is not installed here")
    x = jnp.arange(6.) * 2
    np.testing.assert_array_equal(cupy.asnumpy(cupy.from_dlpack(x)), x)
    there = cupy.arange(5, dtype="f") * 3
    shared = jnp.from_dlpack(there)
    assert shared.devices() == {GPU} and shared.unsafe_buffer_pointer() == there.data.ptr
    np.testing.assert_array_equal(shared + 1, np.arange(5) * 3 + 1)
    copied = jnp.from_dlpack(there, copy=True)
    assert copied.unsafe_buffer_pointer() != there.data.ptr
    here = jnp.from_dlpack(there, device=jax.devices("cpu")[0])
    assert here.devices() == {jax.devices("cpu")[0]}


def places(*shape):
    return jnp.asarray(draw.randn(*shape), "bfloat16")


QKV = places(2, 64, 4, 32), places(2, 128, 2, 32), places(2, 128, 2, 32)
EVEN = places(2, 64, 4, 32), places(2, 64, 4, 32), places(2, 64, 4, 32)
KINDS = {
    "plain": {}, "causal": {"is_causal": True}, "scale": {"scale": 0.3},
    "window": {"is_causal": True, "local_window_size": (8, 0)},
    "left window": {"local_window_size": (8, 0)},
    "mask": {"mask": jnp.asarray(draw.rand(2, 1, 64, 128) > 0.3)},
    "shared bias": {"bias": places(1, 1, 64, 128)},
    "bias of each": {"bias": places(2, 4, 64, 128), "is_causal": True},
    "bias and mask": {"bias": places(1, 4, 64, 128),
                      "mask": jnp.asarray(draw.rand(1, 1, 64, 128) > 0.3)},
    "lengths": {"query_seq_lengths": jnp.array([30, 64]), "key_value_seq_lengths":
                jnp.array([50, 128]), "return_residual": True},
    "lengths of keys": {"key_value_seq_lengths": jnp.array([50, 128]), "is_causal": True},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mapped", [False, True], ids=["", "vmap"])
def test_cudnn_pays_attention_as_xla_does(kind, mapped):
    how = dict(KINDS[kind])
    bias = how.pop("bias", jnp.zeros(()))
    operands = EVEN if "window" in kind else QKV

    def attend(implementation, q, k, v, bias):
        given = {"bias": bias} if bias.ndim else {}
        out = jax.nn.dot_product_attention(q, k, v, **how, **given, implementation=implementation)
        out, residual = out if "return_residual" in how else (out, jnp.zeros(()))
        weighted = out.astype("float32") * jnp.cos(jnp.arange(out.size).reshape(out.shape))
        return weighted.sum(), (out, residual)

    def all_of(implementation):
        f = jax.value_and_grad(lambda *xs: attend(implementation, *xs), (0, 1, 2, 3), has_aux=True)
        if mapped:
            return jax.jit(jax.vmap(f, (0, None, 0, None)))(
                *(jnp.stack([x, -x]) if place in (0, 2) else x
                  for place, x in enumerate((*operands, bias))))
        return jax.jit(f)(*operands, bias)

    ((_, mine), shares), ((_, theirs), expected) = all_of("cudnn"), all_of("xla")
    if "query_seq_lengths" in how:  # places that are not in use have any logsumexp
        mine, theirs = (jax.tree.map(lambda x: x[..., :30, :] if x.ndim == 3 + mapped else x, xs)
                        for xs in (mine, theirs))
    for a, b in zip(jax.tree.leaves((mine, shares)), jax.tree.leaves((theirs, expected)),
                    strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        a, b = np.asarray(a, "d"), np.asarray(b, "d")
        assert np.linalg.norm(a - b) <= 0.03 * np.linalg.norm(b) + 1e-3
