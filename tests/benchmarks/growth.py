"""How does time grow with the size of the work?

Each row is one kind of work in several sizes: programs of 1,000 … 100,000 equations, scans of up to
10^6 steps, trees of up to 10^5 leaves, up to 10^4 functions, arrays of up to 10^8 numbers.  The
exponent is the slope of a line fitted to the logarithms of times and sizes, the smallest size left
out, since small work has a constant cost: 1 is in proportion, 2 would be quadratic.  Times are the
seconds of all cores together, which other programs on the machine disturb least.  Python's
collector rests meanwhile, as in ``worker.py``: it walks through all that lives again and again
while that grows, which about doubles the time of the largest programs.

    python tests/benchmarks/growth.py [--jax .venv-jax/bin/python] [--only trace]

Read before: ``rows.py``.  Read after: README.md, which holds the figures.
Invariant: both libraries run the same text, without a compile cache on disk.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

KERNEL = Path(__file__).resolve().parents[2] / "kernel"
EQUATIONS = (1_000, 3_000, 10_000, 30_000, 100_000)


@dataclass(frozen=True)
class Growth:
    """One kind of work: `prepare` is not timed; both see the size as `n`.

    `worst` is the largest exponent that counts as proportion (with its noise and caches).
    """

    name: str
    sizes: tuple[int, ...]
    statement: str
    prepare: str = ""
    worst: float = 1.25


LONG = """
def long(x, n=n):
    for _ in range(n // 2):
        x = jnp.sin(x) * 1.5
    return x
x = jnp.arange(8, dtype=jnp.float32)
"""
TREE = "tree = {f'layer{i}': (np.float32(i), [np.float32(1), None]) for i in range(n // 2)}"
CALLS = """
@jax.jit
def inner(x): return jnp.sin(x) * 1.5
def calls(x, n=n):
    for _ in range(n): x = inner(x)
    return x
x = jnp.arange(8, dtype=jnp.float32)
"""

ROWS = (
    Growth("trace n equations", EQUATIONS, "jax.make_jaxpr(long)(x)", LONG),
    Growth("lower n equations", EQUATIONS, "traced.lower()",
           LONG + "traced = jax.jit(long).trace(x)"),
    Growth("trace the gradient of n equations", EQUATIONS[:-1],
           "jax.make_jaxpr(jax.grad(lambda x: long(x).sum()))(x)", LONG),
    Growth("trace vmap of jvp of n equations", EQUATIONS[:-1],
           "jax.make_jaxpr(jax.vmap(lambda x: jax.jvp(long, (x,), (x,))))(x)", LONG),
    Growth("print n equations", EQUATIONS, "str(closed)",
           LONG + "closed = jax.make_jaxpr(long)(x)"),
    Growth("trace n calls of one function", EQUATIONS[:-1], "jax.make_jaxpr(calls)(x)", CALLS),
    Growth("scan of n steps, first call", (1_000, 10_000, 100_000, 1_000_000),
           "jax.block_until_ready(jax.lax.scan(lambda c, a: (c * 0.5 + a, c), 0., xs))",
           "xs = jnp.ones(n)"),
    Growth("gradient of a scan of n steps", (1_000, 10_000, 100_000, 1_000_000),
           "jax.block_until_ready(jax.grad(lambda xs: jax.lax.scan("
           "lambda c, a: (jnp.sin(c) * 0.5 + a, None), 0., xs)[0])(xs))", "xs = jnp.ones(n)"),
    Growth("tree of n leaves: map, flatten, paths", (1_000, 10_000, 100_000),
           "jax.tree.map(lambda a: a, tree); jax.tree.leaves(tree); "
           "jax.tree_util.tree_flatten_with_path(tree)", TREE,
           worst=1.4),  # large trees do not fit the processor's caches
    Growth("eval_shape with n leaves", (1_000, 10_000, 100_000),
           "jax.eval_shape(lambda t: jax.tree.map(lambda a: a * 2, t), tree)", TREE),
    Growth("n functions, each jitted, traced and run", (100, 1_000, 10_000),
           "fs = [jax.jit(lambda a: a * 2) for _ in range(n)]\nfor f in fs: f(x)",
           "x = jnp.ones(3)"),
    Growth("n eager operations", (1_000, 10_000, 100_000),
           "for _ in range(n): x = x + 1.0\njax.block_until_ready(x)", "x = jnp.ones(3); x + 1.0"),
    Growth("n numbers: sum(sin(x) * 2), run again", (10**5, 10**6, 10**7, 10**8),
           "jax.block_until_ready(f(x))",
           "x = jnp.ones(n); f = jax.jit(lambda x: jnp.sum(jnp.sin(x) * 2)); "
           "jax.block_until_ready(f(x))"),
    Growth("n numbers to the device and back", (10**5, 10**6, 10**7, 10**8),
           "np.asarray(jnp.asarray(x) + 1)", "x = np.ones(n, np.float32); jnp.asarray(x) + 1"),
)

WORKER = """
import gc, json, sys, time
import numpy as np
import {module} as jax, {module}.numpy as jnp
jax.block_until_ready(jax.grad(lambda x: jnp.sum(jnp.sin(x) * 1.5))(jnp.ones(8)))
for line in sys.stdin:
    prepare, statement, n = json.loads(line)
    names = dict(jax=jax, jnp=jnp, np=np, n=n)
    try:
        exec(prepare, names)
        code = compile(statement, "statement", "exec")
        gc.collect()
        gc.disable()
        begin = time.process_time()
        exec(code, names)
        print(json.dumps(time.process_time() - begin), flush=True)
        gc.enable()
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"), flush=True)
    del names
    jax.clear_caches()
"""


def exponent(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """The slope of the line fitted to the logarithms, without the smallest sizes."""
    start = 1 if len(sizes) > 2 else 0
    points = [(math.log(n), math.log(t)) for n, t in zip(sizes, seconds, strict=False)][start:]
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return (sum((x - mean_x) * (y - mean_y) for x, y in points)
            / sum((x - mean_x) ** 2 for x, _ in points))


def measure(row: Growth, library: str, python: str, longest: float) -> list[float] | str:
    """Seconds for each size, the better of two; sizes stop when one took ``longest`` seconds."""
    environment = dict(os.environ, SAEM_ENABLE_COMPILATION_CACHE="0")
    if library == "saem":
        environment["PYTHONPATH"] = str(KERNEL)
    process = subprocess.Popen([python, "-c", WORKER.replace("{module}", library)], text=True,
                               env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    seconds: list[float] = []
    try:
        for n in row.sizes:
            turns: list[float] = []
            for _ in range(2):
                process.stdin.write(json.dumps([row.prepare, row.statement, n]) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
                answer = json.loads(line) if line else "the process ended"
                if isinstance(answer, str):
                    return answer
                turns.append(answer)
                if answer > longest / 4:
                    break
            seconds.append(min(turns))
            if seconds[-1] > longest:
                break
    finally:
        process.stdin.close()
        process.wait()
    return seconds


def time_text(seconds: float) -> str:
    """Three digits with the unit that suits."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def main() -> None:
    """Print the table, in Markdown; exit with status 1 if Saem grows faster than it should."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--saem", default=sys.executable, help="Python that has Saem's packages")
    parser.add_argument("--jax", default="", help="Python that has real JAX; none: Saem alone")
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    parser.add_argument("--longest", type=float, default=20.0,
                        help="no larger size after one that took so many seconds")
    options = parser.parse_args()
    pythons = {"saem": options.saem, **({"jax": options.jax} if options.jax else {})}
    print("| work | library | times for growing n | exponent |\n| --- | --- | --- | --- |")
    bad = []
    for row in ROWS:
        if options.only.lower() not in row.name.lower():
            continue
        for library, python in pythons.items():
            seconds = measure(row, library, python, options.longest)
            if isinstance(seconds, str):
                print(f"| {row.name} | {library} | {seconds} | |", flush=True)
                bad += [row.name] if library == "saem" else []
                continue
            sizes = row.sizes[:len(seconds)]
            slope = exponent(sizes, seconds) if len(sizes) > 1 else math.nan
            times = ", ".join(f"{n:,}: {time_text(t)}" for n, t in zip(sizes, seconds, strict=True))
            print(f"| {row.name} | {library} | {times} | {slope:.2f} |", flush=True)
            if library == "saem" and slope > row.worst:
                bad.append(row.name)
    if bad:
        raise SystemExit(f"Grows faster than in proportion, or failed: {', '.join(bad)}")


if __name__ == "__main__":
    main()
