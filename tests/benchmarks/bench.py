"""How fast is Saem, compared with the real JAX on the same machine in the same minutes?

Three processes, one for each library, are asked in turns: round by round, the same row on Saem, on
JAX and, where it has the operation, on NumPy.  The ratio is the median over the rounds of (Saem's
time / JAX's time in that round), so a machine that slows down for a while slows both.  Every row
has processes of its own: XLA takes up to half longer to compile in one whose memory a big program
has left in pieces, and no row may depend on which came before.  A second table compares with
engines that run eagerly: MLX on the CPU, autograd and NumPy.  Both are printed, stored with every
figure under ``results/``, and drawn.

Read before: ``rows.py``, ``peers.py``, ``worker.py``.  Read after: ``draw.py``.
Invariant: the libraries never share a process, and a row whose values differ is not called faster.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from draw import draw
from peers import LIBRARIES as PEERS
from peers import PEER_ROWS, PeerRow
from rows import ROWS, Row

HERE = Path(__file__).resolve().parent
KERNEL = HERE.parents[1] / "kernel"
LIBRARIES = ("saem", "jax", "numpy")


class Worker:
    """A process that holds one library and times rows when asked."""

    def __init__(self, python: str, library: str):
        environment = dict(os.environ)
        if library == "saem":
            environment["PYTHONPATH"] = str(KERNEL)
            environment["SAEM_ENABLE_COMPILATION_CACHE"] = "0"  # compiling is measured
        self.process = subprocess.Popen(
            [python, str(HERE / "worker.py"), library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.about = self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"The worker {self.process.args} ended; its message is above.")
        return json.loads(line)

    def ask(self, **request: str) -> dict[str, Any]:
        """Send one request, wait for its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """Let the process end."""
        self.process.communicate()


@contextlib.contextmanager
def workers_of(pythons: dict[str, str]) -> Iterator[dict[str, Worker]]:
    """New processes of the libraries, for one row."""
    workers = {library: Worker(python, library) for library, python in pythons.items()}
    try:
        yield workers
    finally:
        for worker in workers.values():
            worker.close()


@dataclass
class Result:
    """What came out for one row: seconds of every round, by library."""

    name: str
    goal: float
    seconds: dict[str, list[float]] = field(default_factory=dict)
    note: str = ""
    beside: str = "jax"  # the library of the ratio

    def median(self, library: str) -> float | None:
        """The median time in seconds."""
        values = self.seconds.get(library)
        return statistics.median(values) if values else None

    def ratios(self) -> list[float]:
        """Saem / the library beside it, round by round."""
        pairs = zip(self.seconds.get("saem", []), self.seconds.get(self.beside, []), strict=False)
        return sorted(mine / theirs for mine, theirs in pairs)

    def ratio(self) -> float | None:
        """The median of the rounds' ratios."""
        ratios = self.ratios()
        return statistics.median(ratios) if ratios else None

    def middle_half(self) -> tuple[float, float] | None:
        """Between which values half of the rounds' ratios lie."""
        ratios = self.ratios()
        if len(ratios) < 4:
            return None
        low, _, high = statistics.quantiles(ratios, n=4)
        return low, high

    def verdict(self) -> str:
        """One of reached, missed, undecided (the goal lies in the middle half), or a reason."""
        ratio, half = self.ratio(), self.middle_half()
        if self.note or ratio is None:
            return self.note or "no figure"
        if half is not None and half[0] <= self.goal <= half[1]:
            return "undecided"
        return "reached" if ratio <= self.goal else "missed"


def agree(left: list[float] | None, right: list[float] | None) -> bool:
    """Whether two flat lists of numbers are equal but for rounding."""
    if left is None or right is None:
        return True
    return len(left) == len(right) and all(
        math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-4) or (math.isnan(a) and math.isnan(b))
        for a, b in zip(left, right, strict=True)
    )


def measure(row: Row, workers: dict[str, Worker], rounds: int) -> Result:
    """Time one row in turns on all libraries that have it."""
    result = Result(row.name, row.goal)
    answers = {}
    for library, worker in workers.items():
        if library == "numpy" and not row.numpy:
            continue
        answers[library] = worker.ask(do="prepare", row=row.name)
    for library in ("saem", "jax"):
        answer = answers.get(library, {})
        if "missing" in answer:
            result.note = f"not built ({', '.join(answer['missing'])})"
        elif "error" in answer:
            result.note = f"{library}: {answer['error']}"
    if not result.note and "saem" in answers and "jax" in answers:
        if not agree(answers["saem"]["value"], answers["jax"]["value"]):
            result.note = "the values differ"
    ready = [name for name, answer in answers.items() if "repetitions" in answer]
    return take_turns(result, ready, workers, min(rounds, row.rounds or rounds))


def measure_peers(row: PeerRow, workers: dict[str, Worker], rounds: int) -> Result:
    """Time one row of the second table in turns on all libraries that have it."""
    result = Result(row.name, row.goal, beside=row.beside)
    answers = {library: worker.ask(do="prepare", row=row.name)
               for library, worker in workers.items() if library in row.texts}
    for library, answer in answers.items():
        if "error" in answer:
            result.note = f"{library}: {answer['error']}"
        elif not agree(answers["saem"].get("value"), answer["value"]):
            result.note = f"{library} computes other values"
    ready = [name for name, answer in answers.items() if "repetitions" in answer]
    return take_turns(result, ready, workers, rounds)


def take_turns(result: Result, ready: list[str], workers: dict[str, Worker], rounds: int
               ) -> Result:
    """Time what the libraries ``ready`` have prepared, round by round."""
    for turn in range(rounds):
        # Who goes first changes every round, so that neither gains by its place.
        for library in ready if turn % 2 == 0 else reversed(ready):
            answer = workers[library].ask(do="time")
            if "error" in answer:
                result.note = f"{library}: {answer['error']}"
                return result
            result.seconds.setdefault(library, []).append(answer["seconds"])
    return result


def fresh_program(row: Row, library: str) -> str:
    """The program of a new process, which prints the seconds that the row's statement took."""
    statement, setup = row.statement, row.setup
    if library == "numpy":
        statement, setup = row.numpy, row.numpy_setup
    return (f"from time import perf_counter as t\n{setup}\ns = t()\n{statement}\n"
            "print(repr(t() - s))").replace("{module}", library)


def measure_fresh(row: Row, pythons: dict[str, str], rounds: int, folder: str) -> Result:
    """Time a row in a new process each time, in turns; the process times only the statement."""
    result = Result(row.name, row.goal)
    # The first round fills the caches on disk, of bytecode and of programs, and is thrown away.
    for turn in range(min(rounds, row.rounds or rounds) + 1):
        for library, python in pythons.items():
            if library == "numpy" and not row.numpy:
                continue
            code = fresh_program(row, library)
            environment = dict(os.environ)
            # An installed package has its bytecode on disk; so must the one measured here.
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            if library == "saem":
                environment["PYTHONPATH"] = str(KERNEL)
                kernel = "next" if row.cache == "next" else str(turn)
                environment["SAEM_CACHE_DIR"] = os.path.join(folder, kernel)
                environment["SAEM_ENABLE_COMPILATION_CACHE"] = "1" if row.cache else "0"
            done = subprocess.run(
                [python, "-c", code], capture_output=True, text=True, env=environment, check=False
            )
            if done.returncode != 0:
                result.note = f"{library}: {done.stderr.strip().splitlines()[-1]}"
                return result
            result.seconds.setdefault(library, []).append(float(done.stdout))
    for values in result.seconds.values():
        del values[0]
    return result


def seconds_text(seconds: float | None) -> str:
    """A time with a unit that suits it."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


HEADINGS = ("row", "Saem", "JAX", "NumPy", "Saem/JAX", "middle half", "goal", "verdict")


def cells(result: Result) -> tuple[str, ...]:
    """One line of the table."""
    ratio, half = result.ratio(), result.middle_half()
    spread = "" if half is None else f"{half[0]:.2f} – {half[1]:.2f}"
    return (
        result.name,
        *(seconds_text(result.median(library)) for library in LIBRARIES),
        "" if ratio is None else f"{ratio:.2f}",
        spread,
        f"≤ {result.goal:g}",
        result.verdict(),
    )


PEER_HEADINGS = ("row, with the wait", "Saem", "MLX (CPU)", "autograd", "NumPy", "ratio", "beside",
                 "goal", "verdict")


def peer_cells(result: Result) -> tuple[str, ...]:
    """One line of the second table."""
    ratio = result.ratio()
    known = ("", "", "", result.note) if ratio is None else (
        f"{ratio:.2f}", result.beside, f"≤ {result.goal:g}", result.verdict())
    return (result.name, *(seconds_text(result.median(library)) for library in PEERS), *known)


def summary(results: list[Result]) -> str:
    """How many goals were reached."""
    verdicts = [result.verdict() for result in results]
    known = {name: verdicts.count(name) for name in ("reached", "missed", "undecided")}
    known["without a ratio"] = len(verdicts) - sum(known.values())
    return "Goals: " + ", ".join(f"{count} {name}" for name, count in known.items()) + "."


def table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown, after an empty one."""
    return ["", "| " + " | ".join(headings) + " |", "|" + " --- |" * len(headings),
            *("| " + " | ".join(line) + " |" for line in lines)]


def markdown(results: list[Result], peers: list[Result], about: dict[str, str]) -> str:
    """Both tables and where they were measured, in Markdown."""
    lines = ["# Saem compared with JAX", ""]
    lines += [f"- {name}: {value}" for name, value in about.items()]
    lines += table(HEADINGS, map(cells, results))
    lines += table(PEER_HEADINGS, map(peer_cells, peers)) if peers else []
    lines += [
        "",
        "Times are medians of the rounds; a ratio is the median of the rounds' ratios, and half of "
        "them lie in the middle half. The libraries ran in turns, each in its own process.",
        "",
    ]
    return "\n".join(lines)


def store(results: list[Result], peers: list[Result], about: dict[str, str], folder: Path) -> None:
    """Write latest.json (every figure), latest.md (the tables) and latest.svg (the picture)."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = {"about": about, "rows": [rounded(result) for result in results],
              "peers": [rounded(result) for result in peers]}
    texts = {
        "latest.json": json.dumps(stored, indent=1, ensure_ascii=False) + "\n",
        "latest.md": markdown(results, peers, about),
    }
    for name, text in texts.items():
        aside = folder / f".{name}.part"
        aside.write_text(text, "utf-8")
        aside.replace(folder / name)
    draw(folder / "latest.json", folder / "latest.svg")


def rounded(result: Result) -> dict[str, Any]:
    """A result as data, its times with four digits."""
    stored = asdict(result)
    stored["seconds"] = {name: [float(f"{s:.4g}") for s in times]
                         for name, times in result.seconds.items()}
    return stored


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare Saem with the real JAX and others.")
    parser.add_argument("--saem", default=sys.executable, help="Python that has Saem's packages")
    parser.add_argument("--jax", default=".venv-jax/bin/python", help="Python that has real JAX")
    parser.add_argument("--peers", default="", help="Python that has MLX and autograd")
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-store", action="store_true", help="print only")
    return parser.parse_args(arguments)


def show(texts: Sequence[str], widths: Sequence[int]) -> None:
    """Print one line of a table."""
    pairs = zip(texts, widths, strict=True)
    print("  ".join(text.ljust(width) for text, width in pairs).rstrip(), flush=True)


def has_peers(python: str) -> bool:
    """Whether MLX and autograd are there; says so where they are not."""
    probe = [python, "-c", "import mlx.core, autograd"]
    if not Path(python).is_file() or subprocess.run(probe, capture_output=True).returncode:
        print("Skipped: the table of MLX and autograd, which `make bench` installs in .venv-peers "
              "where their packages can be had.")
        return False
    return True


def versions(pythons: dict[str, str]) -> dict[str, str]:
    """Which version of each library is measured, on which Python."""
    with workers_of(pythons) as workers:
        return {library: f"{worker.about['version']} on Python {worker.about['python']}"
                for library, worker in workers.items()}


def main() -> None:
    """Measure the rows asked for, print each as it is done, store the table."""
    options = parse()
    chosen = [row for row in ROWS if options.only.lower() in row.name.lower()]
    peer_rows = [row for row in PEER_ROWS if options.only.lower() in row.name.lower()]
    if not chosen and not peer_rows:
        raise SystemExit(f"No row's name contains {options.only!r}.")
    if not Path(options.jax).exists():
        raise SystemExit(f"There is no {options.jax}. Try: make bench, which installs JAX there.")
    pythons = {"saem": options.saem, "jax": options.jax, "numpy": options.saem}
    about = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "rounds": str(options.rounds),
        **versions(pythons),
    }
    widths = (38, 9, 9, 9, 9, 15, 7, 8)
    results = []
    show(HEADINGS, widths)
    for row in chosen:
        if row.fresh:
            with tempfile.TemporaryDirectory() as folder:
                results.append(measure_fresh(row, pythons, options.rounds, folder))
        else:
            with workers_of(pythons) as workers:
                results.append(measure(row, workers, options.rounds))
        show(cells(results[-1]), widths)
    print(summary(results))
    peers = []
    if peer_rows and has_peers(options.peers):
        of_peers = {"mlx": options.peers, "autograd": options.peers}
        about |= versions(of_peers)
        pythons = {"saem": options.saem, "numpy": options.saem, **of_peers}
        widths_of_peers = (41, 9, 9, 9, 9, 6, 8, 6, 8)
        show(PEER_HEADINGS, widths_of_peers)
        for peer_row in peer_rows:
            with workers_of(pythons) as workers:
                peers.append(measure_peers(peer_row, workers, options.rounds))
            show(peer_cells(peers[-1]), widths_of_peers)
    if not options.no_store and not options.only:
        store(results, peers, about, HERE / "results")
        print(f"Stored in {os.path.relpath(HERE / 'results')}/latest.md and latest.json")


if __name__ == "__main__":
    main()
