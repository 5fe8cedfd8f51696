"""How long do the functions that programs call most take outside jit, beside the real JAX?

    python tests/benchmarks/functions.py --jax .venv-jax/bin/python [--only sort]

Functions of ``numpy``, ``nn`` and ``linalg`` and the samplers of ``random`` are called on small
arrays, where what Python does is most of the time.  Two processes, one for each library, are asked
in turns; a ratio is that of the shortest times, which other work on the machine disturbs least.

Read before: ``bench.py``.
Invariant: a call returns to the caller as it does in a program: the result is not waited for.
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
"""
FUNCTIONS = """
jnp.where(x > 1, x, y); jnp.asarray(x); jnp.zeros((8, 8)); jnp.ones((8, 8)); jnp.arange(100)
jnp.full((8, 8), 2.0); jnp.zeros_like(x); jnp.ones_like(x); jnp.eye(8); jnp.linspace(0.0, 1.0, 50)
jnp.sum(x); jnp.mean(x); jnp.max(x); jnp.min(x); jnp.argmax(x); jnp.std(x); jnp.var(x)
jnp.any(x > 1); jnp.all(x > 1); jnp.prod(x); jnp.cumsum(x); jnp.sort(x); jnp.argsort(x)
jnp.median(x); jnp.exp(x); jnp.log(x); jnp.sqrt(x); jnp.sin(x); jnp.tanh(x); jnp.abs(x)
jnp.square(x); jnp.sign(x); jnp.maximum(x, y); jnp.minimum(x, 1.0); jnp.clip(x, 0.5, 1.0)
jnp.power(x, 2); jnp.isnan(x); jnp.floor(x); jnp.round(x); jnp.logical_and(x > 1, y > 1)
jnp.dot(x, y); jnp.matmul(m, m); jnp.einsum("ij,jk->ik", m, m); jnp.outer(x, y)
jnp.tensordot(m, m, 1); jnp.concatenate([x, y]); jnp.stack([x, y]); jnp.reshape(x, (10, 10))
jnp.transpose(m); jnp.expand_dims(x, 0); jnp.squeeze(x); jnp.broadcast_to(x, (4, 100))
jnp.tile(x, 2); jnp.repeat(x, 2); jnp.take(x, i); jnp.split(x, 4); jnp.pad(x, 2); jnp.roll(x, 1)
jnp.flip(x); jnp.diag(m); jnp.triu(m); jnp.searchsorted(x, y); jnp.interp(x, x, y); jnp.unique(i)
jnp.meshgrid(x, y); jnp.allclose(x, x); jnp.nan_to_num(x); jax.nn.relu(x); jax.nn.gelu(x)
jax.nn.softmax(logits); jax.nn.log_softmax(logits); jax.nn.sigmoid(x); jax.nn.silu(x)
jax.nn.softplus(x); jax.nn.one_hot(labels, 10); jax.nn.logsumexp(logits); jnp.linalg.norm(x)
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


def serve(library: str) -> None:
    """Time an expression per line of stdin until it ends; answer with seconds per call."""
    module = importlib.import_module(library)
    names: dict[str, Any] = {"jax": module, "jnp": importlib.import_module(f"{library}.numpy"),
                             "clock": time.perf_counter}
    exec(SETUP, names)
    loops: dict[str, tuple[Any, int]] = {}
    for line in sys.stdin:
        call = json.loads(line)
        if call not in loops:
            space = dict(names)
            exec(f"def loop(n):\n start = clock()\n for _ in range(n):\n  {call}\n"
                 " return clock() - start", space)
            space["loop"](3)
            once = max(space["loop"](10) / 10, 1e-7)
            loops[call] = space["loop"], max(3, min(2000, int(0.004 / once)))
        loop, repeat = loops[call]
        print(json.dumps(loop(repeat) / repeat), flush=True)


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

    def time(self, call: str) -> float:
        """Return the seconds that one evaluation of ``call`` takes, the mean of a batch."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def table(title: str, rows: list[str], saem: Worker, real: Worker, rounds: int) -> None:
    """Measure and print one table, with its median and worst ratio."""
    ratios = {}
    print(f"\n{title}\n{'call':58} {'Saem':>8} {'JAX':>8}  ratio")
    for call in rows:
        pairs = [(saem.time(call), real.time(call)) for _ in range(rounds)]
        ours, theirs = (min(times) * 1e6 for times in zip(*pairs, strict=True))
        ratios[call] = ours / theirs
        print(f"{call:58} {ours:6.1f}µs {theirs:6.1f}µs  {ratios[call]:.2f}", flush=True)
    worst = max(ratios, key=lambda call: ratios[call])
    print(f"{len(rows)} calls: median {statistics.median(ratios.values()):.2f}, "
          f"worst {ratios[worst]:.2f} ({worst})")


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
    for title, text in (("Functions outside jit", FUNCTIONS), ("Samplers", SAMPLERS)):
        rows = [call for call in calls(text) if wanted.only in call]
        if rows:
            table(title, rows, *workers, wanted.rounds)


if __name__ == "__main__":
    main()
