"""How long do the functions that programs call most take outside jit, beside the real JAX?

    python tests/benchmarks/functions.py --jax .venv-jax/bin/python [--only sort]

Functions of ``numpy``, ``nn`` and ``linalg`` and the samplers of ``random`` are called on small
arrays, where what Python does is most of the time.  Two processes, one for each library, are asked
in turns; a ratio is that of the shortest times, which other work on the machine disturbs least.

Each call is timed twice: until it returns to the caller, as in a program that goes on, and until
its result is there, as at a prompt.

Read before: ``bench.py``.
Invariant: both libraries run the same text, on arrays of the same values.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
SETUP = """
x = jnp.linspace(0.1, 2.0, 100)
y = jnp.linspace(1.0, 3.0, 100)
i = jnp.arange(100)
m = jnp.linspace(0.1, 1.0, 64).reshape(8, 8) + 2 * jnp.eye(8)
spd = m @ m.T + jnp.eye(8)
batch = jnp.ones((4, 8, 8))
image = jnp.ones((1, 8, 8, 3))
b = x > 1
k = jnp.arange(4)
key = jax.random.key(0)
logits = jnp.linspace(-1.0, 1.0, 40).reshape(4, 10)
labels = jnp.array([1, 2, 3, 4])
order = jnp.argsort(m, axis=1)
keys = jax.random.split(key, 4)
"""
# The sixty functions of ``numpy``, ``nn`` and ``linalg`` that give arrays and that the libraries
# written for JAX (optax, flax, equinox, numpyro ...) use most, most used first.
MOST_USED = """
jnp.asarray(x); jnp.array([1.0, 2.0, 3.0]); jnp.zeros((8, 8)); jnp.concatenate([x, y])
jnp.where(x > 1, x, y); jnp.sqrt(x); jnp.ones((8, 8)); jnp.arange(100); jnp.sum(x)
jnp.zeros_like(x); jnp.expand_dims(x, 0); jnp.stack([x, y]); jnp.broadcast_to(x, (4, 100))
jnp.maximum(x, y); jnp.abs(x); jnp.mean(x); jnp.reshape(x, (10, 10)); jnp.clip(x, 0.5, 1.0)
jnp.ones_like(x); jnp.einsum("ij,jk->ik", m, m); jnp.max(x); jnp.exp(x); jnp.square(x)
jnp.dot(x, y); jnp.minimum(x, 1.0); jnp.isfinite(x); jnp.eye(8); jnp.logical_and(x > 1, y > 1)
jnp.all(x > 1); jnp.any(x > 1); jnp.squeeze(x); jnp.repeat(x, 2); jax.nn.softmax(logits)
jnp.split(x, 4); jnp.log(x); jnp.full((8, 8), 2.0); jnp.sign(x); jnp.pad(x, 2); jnp.power(x, 2)
jnp.matmul(m, m); jax.nn.relu(x); jax.nn.sigmoid(x); jnp.cos(x); jnp.take_along_axis(m, order, 1)
jnp.isnan(x); jnp.diag(m); jnp.moveaxis(batch, 0, 1); jnp.argmax(x); jnp.take(x, i); jnp.sin(x)
jnp.tile(x, 2); jnp.tanh(x); jnp.min(x); jnp.linalg.norm(x); jnp.cumsum(x)
jax.nn.one_hot(labels, 10); jnp.logical_not(x > 1); jnp.transpose(m); jnp.isinf(x); jnp.conj(x)
"""
OTHERS = """
jnp.linspace(0.0, 1.0, 50); jnp.std(x); jnp.var(x); jnp.prod(x); jnp.sort(x); jnp.argsort(x)
jnp.median(x); jnp.floor(x); jnp.round(x); jnp.outer(x, y); jnp.tensordot(m, m, 1); jnp.roll(x, 1)
jnp.flip(x); jnp.triu(m); jnp.searchsorted(x, y); jnp.interp(x, x, y); jnp.unique(i)
jnp.meshgrid(x, y); jnp.allclose(x, x); jnp.nan_to_num(x); jax.nn.gelu(x)
jax.nn.log_softmax(logits); jax.nn.silu(x); jax.nn.softplus(x); jax.nn.logsumexp(logits)
jnp.linalg.inv(m); jnp.linalg.solve(m, m); jnp.linalg.det(m); jnp.linalg.cholesky(spd)
jnp.linalg.eigh(spd); jnp.linalg.svd(m); jnp.linalg.qr(m)
"""
# Further functions of ``numpy``, ``nn`` and ``lax``, and operators and methods of arrays.
FURTHER = """
jnp.swapaxes(batch, 0, 1); jnp.rollaxis(batch, 2); jnp.flipud(m); jnp.fliplr(m); jnp.rot90(m)
jnp.ravel(m); jnp.atleast_2d(x); jnp.atleast_1d(x); jnp.vstack([x, y]); jnp.hstack([x, y])
jnp.dstack([x, y]); jnp.column_stack([x, y]); jnp.append(x, y); jnp.insert(x, 3, 1.0)
jnp.delete(x, 3); jnp.array_split(x, 3); jnp.hsplit(m, 2); jnp.vsplit(m, 2)
jnp.block([[m, m], [m, m]]); jnp.tril(m); jnp.triu(m, 1); jnp.tri(8); jnp.diagonal(m)
jnp.trace(m); jnp.kron(m, m); jnp.inner(x, y); jnp.vdot(x, y); jnp.outer(x, y)
jnp.cross(m[:, :3], m[:, :3]); jnp.matvec(m, m[0]); jnp.einsum("ij->i", m)
jnp.tensordot(m, m, 1); jnp.cumprod(x); jnp.diff(x); jnp.ediff1d(x); jnp.gradient(x)
jnp.trapezoid(x); jnp.nansum(x); jnp.nanmean(x); jnp.nanmax(x); jnp.nanstd(x); jnp.ptp(x)
jnp.average(x); jnp.average(x, weights=y); jnp.quantile(x, 0.5); jnp.percentile(x, 50)
jnp.nanmedian(x); jnp.cov(m); jnp.corrcoef(m); jnp.histogram(x); jnp.bincount(i)
jnp.digitize(x, y); jnp.count_nonzero(x); jnp.nonzero(b); jnp.argwhere(b); jnp.flatnonzero(b)
jnp.where(b); jnp.extract(b, x); jnp.compress(b, x); jnp.select([b, ~b], [x, y])
jnp.choose(k % 2, [k, k]); jnp.piecewise(x, [b], [1.0, 2.0]); jnp.take(m, k, axis=0)
jnp.lexsort((x, y)); jnp.partition(x, 3); jnp.argpartition(x, 3); jnp.sort(m, axis=0)
jnp.argmin(x); jnp.nanargmax(x); jnp.unravel_index(5, (3, 4))
jnp.ravel_multi_index((k, k), (5, 5)); jnp.indices((3, 4)); jnp.meshgrid(x, y); jnp.r_[x, y]
jnp.c_[x, y]; jnp.geomspace(1.0, 10.0, 20); jnp.logspace(0.0, 1.0, 20); jnp.identity(8)
jnp.full_like(x, 2.0); jnp.empty((3,)); jnp.empty_like(x); jnp.arange(0.0, 1.0, 0.1)
jnp.arange(2, 30, 3); jnp.vander(k); jnp.polyval(k, x); jnp.polyfit(x, y, 2)
jnp.roots(jnp.ones(4)); jnp.convolve(x, k); jnp.correlate(x, k); jnp.interp(x, x, y)
jnp.heaviside(x, 0.5); jnp.hypot(x, y); jnp.arctan2(x, y); jnp.copysign(x, y)
jnp.nextafter(x, y); jnp.ldexp(x, i); jnp.frexp(x); jnp.modf(x); jnp.divmod(x, y)
jnp.fmod(x, y); jnp.remainder(x, y); jnp.floor_divide(x, y); jnp.true_divide(x, y)
jnp.float_power(x, y); jnp.power(x, 2.5); jnp.exp2(x); jnp.expm1(x); jnp.log2(x); jnp.log10(x)
jnp.log1p(x); jnp.logaddexp(x, y); jnp.logaddexp2(x, y); jnp.sinc(x); jnp.i0(x)
jnp.deg2rad(x); jnp.rad2deg(x); jnp.degrees(x); jnp.unwrap(x); jnp.angle(x); jnp.real(x)
jnp.imag(x); jnp.cbrt(x); jnp.reciprocal(x); jnp.positive(x); jnp.invert(i)
jnp.bitwise_and(i, i); jnp.left_shift(i, 2); jnp.gcd(i, i); jnp.lcm(i, i); jnp.signbit(x)
jnp.trunc(x); jnp.rint(x); jnp.ceil(x); jnp.round(x, 2); jnp.around(x); jnp.isclose(x, y)
jnp.array_equal(x, y); jnp.array_equiv(x, y); jnp.allclose(x, y); jnp.isin(x, y)
jnp.intersect1d(i, k); jnp.union1d(i, k); jnp.setdiff1d(i, k); jnp.unique(k); jnp.equal(x, y)
jnp.greater(x, y); jnp.fft.fft(x); jnp.fft.rfft(x); jnp.fft.ifft(x); jnp.fft.fft2(m)
jnp.fft.fftfreq(8); jnp.fft.fftshift(x); jnp.linalg.matrix_power(m, 3); jnp.linalg.pinv(m)
jnp.linalg.eigvalsh(m); jnp.linalg.matrix_rank(m); jnp.linalg.multi_dot([m, m, m])
jnp.linalg.cond(m); jnp.linalg.trace(m); jnp.linalg.norm(m, axis=1); jnp.linalg.vector_norm(x)
jnp.linalg.matrix_norm(m); jnp.linalg.cross(m[:, :3], m[:, :3]); jnp.linalg.outer(x, y)
jnp.apply_along_axis(jnp.sum, 0, m); jnp.vectorize(jnp.sin)(x); jnp.squeeze(m[None])
jnp.flip(m, 0); jnp.astype(x, "int32"); jnp.copy(x); jnp.concat([x, y])
jnp.permute_dims(batch, (2, 0, 1)); jnp.matrix_transpose(m); jnp.unstack(k)
jnp.fill_diagonal(m, 0.0, inplace=False); jnp.place(x, b, k * 1.0, inplace=False)
jnp.resize(x, (5, 5)); jnp.trim_zeros(x); jnp.packbits(k > 1); jax.nn.relu6(x); jax.nn.elu(x)
jax.nn.selu(x); jax.nn.celu(x); jax.nn.leaky_relu(x); jax.nn.swish(x); jax.nn.mish(x)
jax.nn.hard_tanh(x); jax.nn.hard_sigmoid(x); jax.nn.hard_swish(x); jax.nn.glu(m)
jax.nn.soft_sign(x); jax.nn.log_sigmoid(x); jax.nn.squareplus(x); jax.nn.standardize(x)
jax.nn.tanh(x); jax.nn.logsumexp(x); jax.nn.logmeanexp(x); jax.nn.softmax(m, axis=0)
jax.nn.dot_product_attention(batch[None], batch[None], batch[None]); jax.nn.sparse_plus(x)
jax.lax.add(x, y); jax.lax.mul(x, y); jax.lax.exp(x); jax.lax.max(x, y)
jax.lax.select(b, x, y); jax.lax.dot(m, m)
jax.lax.dot_general(m, m, (((1,), (0,)), ((), ()))); jax.lax.reshape(x, (10, 10))
jax.lax.transpose(m, (1, 0)); jax.lax.broadcast_in_dim(x, (2, 100), (1,))
jax.lax.concatenate([x, y], 0); jax.lax.dynamic_slice(x, (3,), (4,))
jax.lax.dynamic_update_slice(x, y[:3], (3,)); jax.lax.dynamic_index_in_dim(m, 2, 0)
jax.lax.slice(x, (1,), (5,)); jax.lax.slice_in_dim(x, 1, 5); jax.lax.index_in_dim(m, 2)
jax.lax.iota("float32", 8); jax.lax.convert_element_type(x, "int32")
jax.lax.reduce_max(x, (0,)); jax.lax.top_k(x, 3); jax.lax.sort(x); jax.lax.cumsum(x)
jax.lax.clamp(0.0, x, 1.0); jax.lax.rsqrt(x); jax.lax.erf(x); jax.lax.stop_gradient(x)
jax.lax.pad(x, 0.0, ((1, 1, 0),)); jax.lax.rev(x, (0,)); jax.lax.expand_dims(x, (0,))
jax.lax.squeeze(m[None], (0,)); jax.lax.full((3,), 1.0)
jax.lax.conv(image.transpose(0, 3, 1, 2), jnp.ones((2, 3, 3, 3)), (1, 1), "SAME")
jax.lax.reduce_window(image, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
jax.lax.reduce(x, 0.0, jax.lax.add, (0,)); jax.lax.argmax(x, 0, "int32")
jax.lax.population_count(i); jax.lax.rng_uniform(0.0, 1.0, (3,)); jax.lax.split(x, (50, 50))
jax.lax.cond(True, jnp.sin, jnp.cos, x); x[3]; x[2:5]; x[i]; m[1]; m[:, 1]; m[1, 2]; x[None]
x[..., None]; x[-1]; x[::2]; m[k, k]; x.at[3].set(1.0); x.at[2:5].add(1.0); x.at[i].mul(2.0)
x.T; x.reshape(10, 10); x.astype("int32"); x.sum(); x.mean(); x.max(); x.min(); x.std()
x.argmax(); x.ravel(); x.flatten(); x.copy(); m.T; m @ m; x @ y; x + y; x - 1; x * 2.0; x / y
x ** 2; x ** 2.0; x // y; x % y; -x; abs(x); x == y; x < y; ~b; b & b; i >> 1
x.block_until_ready(); jax.device_put(1.0); jax.device_put(x); round(x, 1); x.clip(0, 1)
x.dot(y); x.take(i); x.sort(); x.cumsum(); x.prod(); x.any(); x.all(); x.round(); x.squeeze()
x.transpose(); m.diagonal(); m.trace(); x.var(); x.repeat(2); x.nonzero(); x.conj(); x.real
x.imag; jax.scipy.special.gammaln(x); jax.scipy.special.digamma(x); jax.scipy.special.erf(x)
jax.scipy.special.erfinv(x * 0.4); jax.scipy.special.expit(x)
jax.scipy.special.logit(x * 0.4); jax.scipy.special.logsumexp(x)
jax.scipy.special.xlogy(x, y); jax.scipy.special.entr(x); jax.scipy.special.betaln(x, y)
jax.scipy.special.gammainc(x, y); jax.scipy.special.ndtr(x); jax.scipy.special.log_ndtr(x)
jax.scipy.special.i0e(x); jax.scipy.special.zeta(y + 1, x); jax.scipy.stats.norm.logpdf(x)
jax.scipy.stats.norm.pdf(x); jax.scipy.stats.norm.cdf(x)
jax.scipy.stats.multivariate_normal.logpdf(m[0], m[0], jnp.eye(8))
jax.scipy.stats.poisson.logpmf(i, y); jax.scipy.stats.gamma.logpdf(x, y)
jax.scipy.stats.beta.logpdf(x * 0.4, x, y); jax.scipy.stats.t.logpdf(x, y)
jax.scipy.stats.expon.logpdf(x)
"""
SAMPLERS = """
jax.random.key(0); jax.random.PRNGKey(0); jax.random.split(key); jax.random.fold_in(key, 1)
jax.random.uniform(key, (10,)); jax.random.normal(key, (10,))
jax.random.bernoulli(key, 0.5, (10,)); jax.random.randint(key, (10,), 0, 9)
jax.random.permutation(key, 10); jax.random.choice(key, x, (5,))
jax.random.categorical(key, logits); jax.random.exponential(key, (10,))
jax.random.gumbel(key, (10,)); jax.random.truncated_normal(key, -1.0, 1.0, (10,))
jax.random.gamma(key, 2.0, (10,)); jax.random.beta(key, 2.0, 3.0, (10,))
jax.random.dirichlet(key, jnp.ones(3)); jax.random.poisson(key, 3.0, (10,))
jax.random.laplace(key, (10,)); jax.random.bits(key, (10,)); jax.random.rademacher(key, (10,))
jax.random.multivariate_normal(key, jnp.zeros(2), jnp.eye(2))
"""

# Functions under transformations that run them at once.
TRANSFORMED = """
jax.vmap(jnp.sin)(m); jax.vmap(jax.nn.softmax)(m); jax.vmap(jnp.median)(m)
jax.vmap(jnp.linalg.inv)(batch + 2 * jnp.eye(8)); jax.vmap(jnp.searchsorted)(m, m)
jax.vmap(lambda a: jnp.interp(a, x, y))(m); jax.vmap(jax.scipy.stats.norm.logpdf)(m)
jax.vmap(lambda k: jax.random.normal(k, (3,)))(keys)
jax.vmap(lambda k: jax.random.poisson(k, 3.0))(keys); jax.vmap(lambda i: x[i])(k)
jax.jvp(jnp.sin, (x,), (y,)); jax.jvp(jax.nn.softmax, (x,), (y,)); jax.jvp(jnp.median, (x,), (y,))
jax.jvp(jnp.linalg.inv, (m,), (m,)); jax.jvp(jax.scipy.stats.norm.logpdf, (x,), (y,))
jax.grad(lambda a: jnp.sum(a * a))(x); jax.grad(lambda a: jax.nn.softmax(a)[0])(x)
jax.grad(jnp.median)(x); jax.grad(jnp.prod)(x); jax.grad(jnp.linalg.det)(m)
jax.grad(lambda a: jnp.sum(jnp.linalg.solve(a, x[:8])))(m)
jax.grad(lambda a: jnp.sum(jnp.interp(a, x, y)))(x)
jax.grad(lambda a: jnp.sum(jax.scipy.stats.norm.logpdf(a)))(x)
jax.grad(lambda a: jnp.sum(jax.nn.relu(m @ a)))(x[:8])
jax.grad(lambda a: a * jnp.sum(jax.random.normal(key, (10,))))(1.0)
jax.vmap(jax.grad(lambda a: jnp.sum(jnp.sin(a) ** 2)))(m); jax.hessian(jnp.median)(x[:8])
jax.jacrev(jnp.linalg.inv)(m)
"""


def calls(text: str) -> list[str]:
    """Return the expressions of a table."""
    return [call.strip() for line in text.strip().splitlines() for call in line.split(";")]


class Loops:
    """The loops that time one call: until it returns, and until its result is there."""

    def __init__(self, call: str, names: dict[str, Any]):
        several = isinstance(eval(call, dict(names)), (list, tuple))
        wait = ("for part in result: part.block_until_ready()" if several
                else "result.block_until_ready()")
        self.loops = self.loop(call, "pass", names), self.loop(call, wait, names)
        for loop in self.loops:
            loop(3)
        self.repeats = [max(3, min(2000, int(0.004 / max(loop(10) / 10, 1e-7))))
                        for loop in self.loops]

    @staticmethod
    def loop(call: str, wait: str, names: dict[str, Any]) -> Any:
        """Return a function that makes ``n`` calls and returns the seconds that they took."""
        space = dict(names)
        exec(f"def loop(n):\n start = clock()\n for _ in range(n):\n  result = {call}\n"
             f"  {wait}\n return clock() - start", space)
        return space["loop"]

    def time(self) -> list[float]:
        """Return the seconds per call of each loop, the mean of a batch."""
        return [loop(n) / n for loop, n in zip(self.loops, self.repeats, strict=True)]


def serve(library: str) -> None:
    """Time an expression per line of stdin until it ends; answer with seconds per call."""
    module = importlib.import_module(library)
    names: dict[str, Any] = {"jax": module, "jnp": importlib.import_module(f"{library}.numpy"),
                             "clock": time.perf_counter}
    exec(SETUP, names)
    loops: dict[str, Loops] = {}
    for line in sys.stdin:
        call = json.loads(line)
        if call not in loops:
            loops[call] = Loops(call, names)
        print(json.dumps(loops[call].time()), flush=True)


class Worker:
    """A process that holds one library."""

    def __init__(self, python: str, library: str):
        environment = dict(os.environ)
        environment.pop("PYTHONPATH", None)
        if library == "saem":
            environment["PYTHONPATH"] = str(HERE.parents[2] / "kernel")
        self.process = subprocess.Popen([python, str(HERE), "--serve", library], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment)

    def time(self, call: str) -> list[float]:
        """Return the seconds until ``call`` returns, and until its result is there."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def table(title: str, rows: list[str], saem: Worker, real: Worker, rounds: int) -> None:
    """Measure and print one table, with its median and worst ratios."""
    columns = f"{'Saem':>8} {'JAX':>8}  ratio"
    print(f"\n{title}\n{'':62}{'until it returns':30}until its result is there"
          f"\n{'call':58} {columns}     {columns}")
    ratios: dict[str, list[float]] = {}
    for call in rows:
        pairs = [(saem.time(call), real.time(call)) for _ in range(rounds)]
        ours, theirs = ([min(times) * 1e6 for times in zip(*side, strict=True)]
                        for side in zip(*pairs, strict=True))
        ratios[call] = [mine / other for mine, other in zip(ours, theirs, strict=True)]
        print(f"{call:58} " + "    ".join(
            f"{mine:6.1f}µs {other:6.1f}µs  {mine / other:.2f} "
            for mine, other in zip(ours, theirs, strict=True)), flush=True)
    for at, until in enumerate(("it returns", "its result is there")):
        worst = max(ratios, key=lambda call: ratios[call][at])
        print(f"{len(rows)} calls, until {until}: "
              f"median {statistics.median(ratio[at] for ratio in ratios.values()):.2f}, "
              f"worst {ratios[worst][at]:.2f} ({worst})")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", required=False, help="the Python that has the real JAX")
    parser.add_argument("--only", default="", help="part of a call's text")
    parser.add_argument("--table", default="", help="part of a table's title")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.serve:
        serve(wanted.serve)
        return
    workers = Worker(sys.executable, "saem"), Worker(wanted.jax, "jax")
    for title, text in (("The sixty most used functions, outside jit", MOST_USED),
                        ("Other functions, outside jit", OTHERS), ("Samplers", SAMPLERS),
                        ("Functions under transformations, outside jit", TRANSFORMED),
                        ("Further functions, outside jit", FURTHER)):
        rows = [call for call in calls(text) if wanted.only in call]
        if rows and wanted.table in title:
            table(title, rows, *workers, wanted.rounds)


if __name__ == "__main__":
    main()
