"""How is one row timed, in a process that holds only one of the libraries?

``bench.py`` starts this file as ``worker.py saem|jax|numpy|mlx|autograd`` and talks to it in lines
of JSON over a pipe: *prepare* a row (its setup, and how many repetitions make a batch worth
timing), then *time* it as often as asked.  Only the texts in ``rows.py`` and ``peers.py`` are run.

Read before: ``rows.py``, ``peers.py``.  Read after: ``bench.py``.
Invariant: nothing but the statement, repeated, stands between the two readings of the clock.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from peers import PEER_ROWS, PeerRow
from rows import ROWS, Row

BATCH_SECONDS = 0.02
MOST_REPETITIONS = 20_000
BY_NAME: dict[str, Row | PeerRow] = {row.name: row for row in (*ROWS, *PEER_ROWS)}


class Bench:
    """One prepared row: `time()` gives seconds for one statement."""

    def __init__(self, row: Row | PeerRow, library: str, names: dict[str, Any]):
        setup, statement = row.text(library)
        self.names = dict(names)
        exec(setup, self.names)
        self.each = compile(row.each, "each", "exec") if row.each and library != "numpy" else None
        self.loop = self._loop(statement)
        self.repetitions = 1 if self.each is not None else self._calibrate()

    def _loop(self, statement: str) -> Callable[[int], float]:
        text = (
            "def loop(repetitions):\n"
            " steps = range(repetitions)\n"
            " start = clock()\n"
            " for _ in steps:\n"
            f"  {statement}\n"
            " return clock() - start\n"
        )
        # The row's names are the loop's globals, as in a cell of a notebook.
        self.names["clock"] = time.perf_counter
        exec(text, self.names)
        return self.names["loop"]

    def _calibrate(self) -> int:
        self.loop(3)  # the first calls compile
        repetitions = 1
        while repetitions < MOST_REPETITIONS and self.loop(repetitions) < BATCH_SECONDS:
            repetitions *= 2
        return repetitions

    def time(self) -> float:
        """Seconds for one statement, as the mean of one batch, with the collector at rest."""
        if self.each is not None:
            exec(self.each, self.names)
        gc.collect()
        gc.disable()
        try:
            return self.loop(self.repetitions) / self.repetitions
        finally:
            gc.enable()


def has(module: Any, path: str) -> bool:
    """Whether `module` offers an attribute such as "lax.cond"."""
    for name in path.split("."):
        module = getattr(module, name, None)
        if module is None:
            return False
    return True


def prepare(row: Row | PeerRow, library: str, names: dict[str, Any]
            ) -> tuple[Bench | None, dict[str, Any]]:
    """The prepared row, or None with what is missing."""
    value = row.values.get(library, "") if isinstance(row, PeerRow) else row.value
    module = names.get("jax")
    if module is None and isinstance(row, Row):
        value = ""
    elif isinstance(row, Row) and not all(has(module, path) for path in row.needs):
        return None, {"missing": [path for path in row.needs if not has(module, path)]}
    bench = Bench(row, library, names)
    bench.time()
    numbers = None
    if value:
        numbers = np.asarray(eval(value, bench.names), dtype=np.float64).ravel()[:1000].tolist()
    return bench, {"repetitions": bench.repetitions, "value": numbers}


def names_of(library: str) -> tuple[dict[str, Any], str]:
    """The names by which texts find a library, and its version."""
    if library == "numpy":
        return {"np": np}, np.__version__
    if library == "mlx":
        mx = importlib.import_module("mlx.core")
        mx.set_default_device(mx.cpu)
        return {"mx": mx}, mx.__version__
    if library == "autograd":
        ag = importlib.import_module("autograd")
        version = importlib.import_module("importlib.metadata").version("autograd")
        return {"np": importlib.import_module("autograd.numpy"), "onp": np, "ag": ag}, version
    module = importlib.import_module(library)
    jnp = importlib.import_module(f"{library}.numpy")
    return {"np": np, "jax": module, "jnp": jnp}, f"{getattr(module, '__version__', '?')}"


def serve(library: str) -> None:
    """Answer requests until the pipe closes."""
    names, version = names_of(library)
    say({"library": library, "version": version, "python": sys.version.split()[0]})
    bench: Bench | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "prepare":
                bench = None
                bench, answer = prepare(BY_NAME[request["row"]], library, names)
                say(answer)
            elif bench is None:
                say({"error": "no row is prepared"})
            else:
                say({"seconds": bench.time()})
        except Exception as error:  # a row that fails is a result, not the end of the run
            reason = str(error).strip().splitlines()
            say({"error": f"{type(error).__name__}: {reason[0] if reason else ''}"})


def say(answer: dict[str, Any]) -> None:
    """One answer, one line."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
