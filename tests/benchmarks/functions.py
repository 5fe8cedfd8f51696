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
key = jax.random.key(0)
logits = jnp.linspace(-1.0, 1.0, 40).reshape(4, 10)
labels = jnp.array([1, 2, 3, 4])
order = jnp.argsort(m, axis=1)
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
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", required=False, help="the Python that has the real JAX")
    parser.add_argument("--only", default="", help="part of a call's text")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.serve:
        serve(wanted.serve)
        return
    workers = Worker(sys.executable, "saem"), Worker(wanted.jax, "jax")
    for title, text in (("The sixty most used functions, outside jit", MOST_USED),
                        ("Other functions, outside jit", OTHERS), ("Samplers", SAMPLERS)):
        rows = [call for call in calls(text) if wanted.only in call]
        if rows:
            table(title, rows, *workers, wanted.rounds)


if __name__ == "__main__":
    main()
