"""How much memory does a kernel hold: after import, after a lesson, after 10,000 shapes?

Each library has a process of its own, which goes through the stages in order and tells after each
what it holds (the resident memory that it shares with nobody, after a collection of garbage), how
many objects Python's collector knows, and how many threads run.

    python tests/benchmarks/memory.py --jax .venv-jax/bin/python [--shapes 10000]

Read before: ``programs.py``.  Read after: README.md, which holds the figures.
Invariant: both libraries run the same text, without a compile cache on disk.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import programs

KERNEL = Path(__file__).resolve().parents[2] / "kernel"

MEASURE = """
import gc, json, os, threading, time
def tell(stage):
    for _ in range(3):
        gc.collect()
    private = sum(int(line.split()[1]) for line in open("/proc/self/smaps_rollup")
                  if line.startswith("Private_")) / 1024
    print(json.dumps([stage, round(private, 1), len(gc.get_objects()), threading.active_count(),
                      round(time.perf_counter() - begin, 1)]), flush=True)
begin = time.perf_counter()
import numpy as np
tell("numpy alone")
import {module} as jax, {module}.numpy as jnp
tell("import")
jnp.ones(3) + 1
tell("first operation")
"""

# An operation for each shape: XLA compiles it anew, and each program stays in the caches.
SHAPES = """
tell("introductory session")
x = np.ones({shapes}, np.float32)
step = jax.jit(lambda a: a * 2)
for n in range(1, {shapes} + 1):
    step(x[:n])
    if n in ({shapes} // 10, {shapes} // 2, {shapes}):
        tell(f"{{n:,}} shapes of one function")
del step
tell("that function deleted")
jax.clear_caches()
tell("clear_caches()")
"""

REDEFINED = """
x = jnp.arange(4.0)
for n in range({times}):
    jax.grad(jax.jit(lambda a: jnp.sum(jnp.sin(a))))(x)
    if n + 1 in ({times} // 10, {times}):
        tell(f"a lambda made and differentiated {{n + 1:,}} times")
"""


def text(module: str, shapes: int, times: int) -> str:
    """The program of a library's process."""
    return (MEASURE.replace("{module}", module) + programs.INTRODUCTION
            + SHAPES.format(shapes=shapes) + REDEFINED.format(times=times))


def run(library: str, python: str, program: str) -> dict[str, tuple]:
    """What the library's process told, by stage."""
    environment = dict(os.environ, SAEM_ENABLE_COMPILATION_CACHE="0")
    if library == "saem":
        environment["PYTHONPATH"] = str(KERNEL)
    process = subprocess.Popen([python, "-c", program], env=environment, text=True,
                               stdout=subprocess.PIPE)
    assert process.stdout is not None
    told = {}
    for line in process.stdout:
        stage, *figures = json.loads(line)
        told[stage] = tuple(figures)
        print(f"# {library}: {stage}: {figures}", file=sys.stderr, flush=True)
    if process.wait():
        raise SystemExit(f"{library} ended with status {process.returncode}")
    return told


def main() -> None:
    """Print the table, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--saem", default=sys.executable, help="Python that has Saem's packages")
    parser.add_argument("--jax", default="", help="Python that has real JAX; none: Saem alone")
    parser.add_argument("--shapes", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=300, help="how often a lambda is made anew")
    options = parser.parse_args()
    pythons = {"saem": options.saem, **({"jax": options.jax} if options.jax else {})}
    told = {library: run(library, python, text(library, options.shapes, options.times))
            for library, python in pythons.items()}
    print("| after | " + " | ".join(f"{name}, MiB | objects | seconds" for name in told) + " |")
    print("| --- |" + " --- | --- | --- |" * len(told))
    for stage in told["saem"]:
        cells = [f"{t[stage][0]:.0f} | {t[stage][1]:,} | {t[stage][3]:.0f}" for t in told.values()]
        print(f"| {stage} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
