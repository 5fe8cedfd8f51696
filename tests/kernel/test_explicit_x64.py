"""Which arrays have 64 bits while ``enable_x64`` is off?

Where ``jax_explicit_x64_dtypes`` is 'allow', those of which a 64-bit dtype is requested, and what
is computed of them; else those that were made while it was on.  Oracle: the real JAX says dtypes
and values; where it cannot compute them, the same program with ``enable_x64``.
"""

from __future__ import annotations

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.core.config import enable_x64, explicit_x64_dtypes
from saem.extend.core import jaxpr_as_fun

pytestmark = pytest.mark.usefixtures("little_effort")

REQUESTED = """
import numpy as np
import jax, jax.numpy as jnp
from jax import lax

def asked():
    return [
        jnp.zeros(3, F), jnp.zeros(3, float), jnp.zeros(3, int), jnp.zeros(3), jnp.ones((), F),
        jnp.asarray(np.ones(3)), jnp.asarray(np.ones(3), dtype=F), jnp.array([1, 2], dtype=I),
        jax.device_put(np.ones(3)), jnp.sin(np.float64(1)),
        jnp.full(3, 1 / 3, F), jnp.full((2, 1), jnp.pi, dtype=np.complex128),
        jnp.eye(2, dtype=F), jnp.arange(3, dtype=I), jnp.arange(1, 9, 3, dtype=F),
        jnp.linspace(0, 1, 7, dtype=F), lax.iota(I, 3), lax.full((2,), 0.1, F),
        jnp.float64(0.1), jnp.int64(3), jnp.uint64(3), jnp.complex128(0.1j),
        jnp.ones(3).astype(F), jnp.ones(3).astype(I), jnp.ones(3).astype(float),
        lax.convert_element_type(jnp.ones(3), F), jnp.ones(4, np.float32).view(F),
        jnp.tri(2, dtype=F),
        lax.bitcast_convert_type(jnp.ones((2, 2), np.float32), F), jnp.ones(3).sum(dtype=F),
        jnp.ones(3).mean(dtype=F), jnp.arange(3).cumsum(dtype=I), jnp.arange(3).sum(),
        jax.random.uniform(jax.random.key(0), (3,), F), jax.nn.one_hot(jnp.array([1]), 3, dtype=F),
        jax.random.bits(jax.random.key(0), (3,), np.uint64),
        jnp.einsum("i,i", jnp.ones(3), jnp.ones(3), preferred_element_type=F),
        lax.dot(jnp.ones(3), jnp.ones(3), preferred_element_type=F),
        jnp.full_like(jnp.ones(2), 2, F),
        jax.grad(lambda x: x.astype(F).sum())(jnp.ones(3)), jnp.zeros_like(jnp.ones(2), dtype=I)]

F, I = np.dtype("float64"), np.dtype("int64")
"""
COMPUTED = """
def computed(x, n):
    return [
        x + 1, x + 1., x + jnp.ones(3), x + np.ones(3), 0.5 * x, jnp.sin(x), x.sum(), x.mean(),
        x.std(), x.max(), jnp.sort(x), x[0], x[jnp.arange(2)], x[n], x.at[0].set(3.),
        x.at[n].add(0.5), x // 2, x ** 2, 2 ** x, x ** 0.5, jnp.round(x), (x > 0) + x,
        jnp.where(x > 0, x, 0.), jnp.stack([x, jnp.ones(3)]), jnp.concatenate([x, np.ones(3)]),
        jnp.array([x[0], 1.]), jnp.cumsum(x), jnp.clip(x, 0.5, 0.75), jnp.full_like(x, 2),
        jnp.zeros_like(x), jnp.reshape(x, (3, 1)), jnp.pad(x, 1, constant_values=0.5),
        jnp.nonzero(x)[0], jnp.searchsorted(x, 0.5), jnp.quantile(x, 0.25), jnp.interp(x, x, x),
        jnp.histogram(x)[1], jax.nn.softmax(x), jax.nn.relu(x), jax.nn.gelu(x), jnp.diff(x),
        jax.scipy.special.erf(x), jax.scipy.special.gammaln(x), jax.scipy.stats.norm.logpdf(x),
        n + 1, n.sum(), n / 2, n * x, n.mean(), n % 2, n << 3, jnp.cumprod(n + 1),
        jax.jit(lambda x: 0.5 * x)(x), jax.vmap(lambda x: 0.5 * x)(x), x.astype(int),
        jax.grad(lambda x: (0.5 * x * x).sum())(x), jax.jacfwd(lambda x: 0.5 * x * x)(x),
        jax.jacrev(jnp.sin)(x), jax.hessian(lambda x: jnp.sin(x).sum())(x),
        jax.jvp(jnp.tanh, (x,), (x,))[1], jax.linearize(jnp.exp, x)[1](x), jnp.unique(x, size=2),
        lax.scan(lambda c, y: (c + y, c), 0 * x[0], x)[1], jnp.tile(x, 2),
        jnp.roll(x, 1), jnp.angle(x * 1j),
        jax.checkpoint(lambda x: 0.5 * x)(x), jnp.vander(x)]
"""
ALLOWED = COMPUTED.replace("]\n", """,
        x @ x, jnp.convolve(x, x), jnp.outer(x, x), jnp.fft.fft(x), jnp.fft.irfft(x, 5),
        jnp.linalg.inv(jnp.diag(x)), jnp.linalg.norm(x), jnp.linalg.svd(jnp.diag(x))[1],
        lax.cond(True, lambda x: 0.5 * x, lambda x: x * 2, x), jnp.trapezoid(x),
        x[n[1]], jnp.sqrt(n), lax.while_loop(lambda c: c[0] < 3, lambda c: c + 1, x),
        lax.fori_loop(0, 3, lambda i, c: (0.5 * c).astype(c.dtype), x), jnp.polyfit(x, x, 1) + 1,
        jax.scipy.special.logsumexp(x), jnp.var(x, ddof=1), jnp.median(x), jnp.argsort(x)]
""")
TRY = """
try:
    jax.config.update("jax_explicit_x64_dtypes", "allow")
    result = ASK
finally:
    jax.config.update("jax_explicit_x64_dtypes", "warn")
"""
OPERANDS = "jnp.arange(1, 4, dtype=F) / 7, jnp.arange(3, dtype=I)"


def of_saem(code: str) -> list:
    here: dict = {"__name__": "asked"}
    exec(code.replace("import jax, jax.numpy as jnp", "import saem as jax, saem.numpy as jnp")
         .replace("from jax import", "from saem import"), here)
    return here["result"]


def same(found: list, wanted: list, rtol: float) -> None:
    assert len(found) == len(wanted)
    for number, (x, y) in enumerate(zip(found, wanted)):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.dtype, x.shape) == (y.dtype, y.shape), number
        np.testing.assert_allclose(x, y, rtol, atol=rtol, err_msg=str(number))


@pytest.mark.parametrize(("code", "asked"), [
    pytest.param(REQUESTED, "asked()", id="requested"),
    pytest.param(REQUESTED + ALLOWED, f"computed({OPERANDS})", id="computed"),
])
def test_requested_dtypes_of_64_bits_are_kept_where_that_is_allowed(code, asked, jax_oracle):
    """JAX says the dtypes; it has rounded some constants to 32 bits, so its values are near."""
    ask = code + TRY.replace("ASK", asked)
    wanted = [np.asarray(x) for x in jax_oracle.run(ask).value]
    exact = of_saem(f"{code}\nwith jax.enable_x64(True): result = {asked}")
    for _ in range(2):  # once traced, once from what is kept
        found = of_saem(ask)
        same(found, wanted, 1e-6)
        wide = [i for i, x in enumerate(found) if x.dtype.itemsize >= 8 and x.dtype.kind in "fiu"]
        assert len(wide) >= 30
        same([found[i] for i in wide], [exact[i] for i in wide], 4e-15)


# Values of 32 bits that are put into one of 64 say that an error will be made of it, as in JAX.
@pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types:FutureWarning")
def test_arrays_made_while_64_bits_were_on_can_be_used_after(jax_oracle):
    code = REQUESTED + COMPUTED + f"""
with jax.enable_x64(True):
    operands = {OPERANDS}
result = computed(*operands)
"""
    wanted = [np.asarray(x) for x in jax_oracle.run(code).value]
    for _ in range(2):
        same(of_saem(code), wanted, 1e-6)


def test_constants_keep_all_their_digits():
    with explicit_x64_dtypes("allow"):
        for made, wanted in (
            (jnp.array([[1, 2**40]], dtype="int64"), np.array([[1, 2**40]])),
            (jnp.array([0.1, 1 / 3], dtype="float64"), np.array([0.1, 1 / 3])),
            (jnp.asarray(np.array([0.1]), dtype="float64"), np.array([0.1])),
            (jnp.int64(2**40), np.int64(2**40)), (jnp.uint64(2**63), np.uint64(2**63)),
            (jnp.float64(0.1), np.float64(0.1)), (jnp.complex128(0.1j), np.complex128(0.1j)),
            (jnp.full((2,), 2**40, dtype="int64"), np.full(2, 2**40)),
            (jax.jit(lambda: jnp.full((2,), 0.1, "float64"))(), np.full(2, 0.1)),
            (jax.jit(lambda: jnp.array([0.1, 0.2], "float64"))(), np.array([0.1, 0.2])),
        ):
            assert made.dtype == wanted.dtype
            np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("ask", [
    lambda: jax.random.normal(jax.random.key(1), (4,), "float64"),
    lambda: jax.random.randint(jax.random.key(0), (3,), 0, 9, "int64"),
    lambda: jax.scipy.special.betainc(*jnp.array([[0.3], [5.0], [0.2]], "float64")),
    lambda: jax.scipy.special.gammainc(*jnp.array([[0.3, 4.0], [5.0, 2.0]], "float64")),
    lambda: jax.scipy.special.i0e(jnp.array([0.3, 5.0], "float64")),
    lambda: jax.scipy.special.expi(jnp.array([0.3, 5.0], "float64")),
    lambda: jnp.frexp(jnp.array([0.3, 5.0], "float64"))[0],
    lambda: jax.grad(lambda x: jnp.fft.rfft(x).real.sum())(jnp.array([0.3, 5.0], "float64")),
    lambda: jax.grad(lambda x: jnp.fft.irfft(x).sum())(jnp.array([0.3, 5.0], "complex128")).real,
    lambda: jax.grad(jnp.prod)(jnp.array([0.3, 5.0], "float64")),
    lambda: jax.grad(lambda x: jax.scipy.special.gammainc(x, 2 * x).sum())(
        jnp.array([0.3, 5.0], "float64")),
    lambda: jax.random.binomial(jax.random.key(0), jnp.array([9.0, 99.0], "float64"),
                                jnp.array([0.5, 0.25], "float64"), dtype="float64"),
    lambda: jnp.argmax(jnp.array([1., 3., 2.], "float64")).astype("int64"),
    lambda: jax.nn.initializers.normal(dtype="float64")(jax.random.key(0), (2, 2)),
    lambda: lax.scan(lambda c, x: (c + x, c), 0., jnp.array([0.1, 0.2], "float64"))[0],
    lambda: jax.random.truncated_normal(jax.random.key(1), -1., 1., (3,), "float64"),
    lambda: jax.random.gamma(jax.random.key(1), jnp.array([0.3, 2.], "float64"), dtype="float64"),
])
def test_where_jax_gives_errors_they_are_as_with_64_bits_on(ask):
    with explicit_x64_dtypes("allow"):
        found = ask()
    with enable_x64(True):
        same([found], [ask()], 4e-15)


def test_a_literal_of_64_bits_keeps_them_wherever_its_program_is_run():
    def f(x):
        return 0.1 * x + jnp.ones(3, "float64")

    with explicit_x64_dtypes("allow"):
        x = jnp.array([1., 2., 3.], "float64")
        jaxpr = jax.make_jaxpr(f)(x)
        assert "0.1:f64[]" in str(jaxpr)
        for run in (jaxpr_as_fun(jaxpr), jax.jit(jaxpr_as_fun(jaxpr))):
            (out,) = run(x)
            assert out.dtype == np.float64
            np.testing.assert_array_equal(out, 0.1 * np.array([1., 2., 3.]) + 1)
        text = jax.jit(f).lower(x).as_text()
        assert "dense<1.000000e-01> : tensor<f64>" in text
        loaded = jax.export.deserialize(jax.export.export(jax.jit(f))(x).serialize())
        np.testing.assert_array_equal(loaded.call(x), 0.1 * np.array([1., 2., 3.]) + 1)


def test_numbers_of_numpy_have_32_bits_beside_arrays_of_32():
    with explicit_x64_dtypes("allow"):
        for x in (np.float64(0.1), np.ones(3), np.int64(3)):
            assert (jnp.ones(3) * x).dtype == np.float32
            assert jax.jit(lambda x: x)(x).dtype.itemsize == 4
