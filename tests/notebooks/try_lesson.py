"""What do a lesson's gates and exercises reply to given answers?

Run in a process of its own (lessons change settings), which is given the lesson's code cells as
rows of id, source and whether it may raise, so that it need not import what reads notebooks::

    python tests/notebooks/try_lesson.py 01-arrays < CELLS.json > REPLIES.json

``answers/<lesson>.toml`` holds right and wrong guesses for every gate, and right and wrong code for
every exercise.  The lesson runs once as a script; then each guess meets a new gate with the truth
found in that run, and each piece of code is run in the lesson's names before the exercise's check.

Read before: ``saem.lesson.gates``, ``saem.lesson.exercise``.  Read after: ``test_answers.py``.
Invariant: nothing here knows what is right; the lesson's own checks do.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tomllib
import traceback
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

from saem import dropin
from saem.l10n import pycode
from saem.lesson import exercise, predict
from saem.lesson.gates import Gate
from saem.observe import recorder

HERE = Path(__file__).parent
CHECK = "exercise.check("


def magic(text: str) -> None:
    """Do what of IPython's magics matters to code: ``import jax`` may mean Saem."""
    if text == "%load_ext saem.jax":
        dropin.install()


def run_lesson(cells: list) -> dict:
    """Run every code cell and return the names that they define."""
    names: dict = {"_magic_": magic, "display": print, "__name__": "__main__"}
    for name, source, may_raise in cells:
        run(source, names, f"<{name}>", may_raise)
        plt.close("all")
    return names


def run(source: str, names: dict, where: str, may_raise: bool = False) -> None:
    """Run one cell."""
    try:
        exec(compile(pycode.python(source), where, "exec"), names)
    except Exception:
        if not may_raise:
            raise


def judged(gate: Gate, guess: object) -> bool | None:
    """Whether ``guess`` is right, by what happened when the lesson ran."""
    again = Gate(gate.name, gate.question, gate.kind)
    again.answer(guess)
    again.judge(gate.truth.value)
    return again.right


def tried(names: dict, source: str, check: str, name: str) -> dict:
    """How the code ``source`` does as the answer to the exercise ``name``."""
    names = dict(names)
    try:
        run(source, names, "<answer>")
        run(check, names, "<check>")
    except Exception:
        return {"state": "crashed", "hint": "", "details": [traceback.format_exc()]}
    result = exercise.results[name]
    return {"state": result.state, "hint": result.hint, "details": list(result.details)}


def main() -> None:
    matplotlib.use("Agg")
    recorder.start()
    cells = json.load(sys.stdin)
    answers = tomllib.loads((HERE / "answers" / f"{sys.argv[1]}.toml").read_text("utf-8"))
    with contextlib.redirect_stdout(io.StringIO()):
        names = run_lesson(cells)
        gates = {
            name: {kind: [judged(gate, guess) for guess in given]
                   for kind, given in answers["gates"].get(name, {}).items()}
            for name, gate in predict._asked.items()
        }
        untried = dict(exercise.results)
        checks = {source.split(CHECK)[1].split('"')[1]: source
                  for _, source, _ in cells if CHECK in source}
        exercises = {
            name: {"untried": untried[name].state,
                   "right": [tried(names, a["code"], check, name)
                             for a in answers.get("right", []) if a["exercise"] == name],
                   "wrong": [{"expected": a["hint"], **tried(names, a["code"], check, name)}
                             for a in answers.get("wrong", []) if a["exercise"] == name]}
            for name, check in checks.items()
        }
    json.dump({"gates": gates, "exercises": exercises}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
