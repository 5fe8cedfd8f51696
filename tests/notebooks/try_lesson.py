"""What do a lesson's gates and exercises reply to given answers?

Runs in the lesson's kernel, after its last cell (``ran_lessons.py``).

``answers/<lesson>.toml`` holds right and wrong guesses for every gate (of ``measured`` ones, whose
truth is what a clock said in that run, one is right), and right and wrong code for every exercise.
Each guess meets a new gate with the truth that was found when the lesson ran, and each piece of
code is run in the lesson's names before the exercise's check.

Read before: ``saem.lesson.gates``, ``saem.lesson.exercise``.  Read after: ``ran_lessons.py``.
Invariant: nothing here knows what is right; the lesson's own checks do.
"""

from __future__ import annotations

import contextlib
import io
import json
import tomllib
import traceback
from pathlib import Path

from saem import dropin
from saem.l10n import pycode
from saem.lesson import exercise, predict
from saem.lesson.gates import Gate

HERE = Path(__file__).parent


def magic(text: str) -> None:
    """Do what of IPython's magics matters to code: ``import jax`` may mean Saem."""
    if text == "%load_ext saem.jax":
        dropin.install()


def run(source: str, names: dict, where: str) -> None:
    """Run one cell."""
    exec(compile(pycode.python(source), where, "exec"), names)


def judged(gate: Gate, guess: object) -> bool | None:
    """Whether ``guess`` is right, by what happened when the lesson ran."""
    again = Gate(gate.name, gate.question, gate.kind)
    again.answer(guess)
    again.judge(gate.truth.value)
    return again.right


def tried(names: dict, source: str, check: str, name: str) -> dict:
    """How the code ``source`` does as the answer to the exercise ``name``."""
    names = {**names, "_magic_": magic}
    try:
        run(source, names, "<answer>")
        run(check, names, "<check>")
    except Exception:
        return {"state": "crashed", "hint": "", "details": [traceback.format_exc()]}
    result = exercise.results[name]
    return {"state": result.state, "hint": result.hint, "details": list(result.details)}


def replies(lesson: str, names: dict, checks: dict[str, str]) -> str:
    """All replies as JSON; ``checks`` are the cells that check an exercise, by its name."""
    answers = tomllib.loads((HERE / "answers" / f"{lesson}.toml").read_text("utf-8"))
    with contextlib.redirect_stdout(io.StringIO()):
        gates = {
            name: {kind: [judged(gate, guess) for guess in given]
                   for kind, given in answers["gates"].get(name, {}).items()}
            for name, gate in list(predict._asked.items())
        }
        untried = dict(exercise.results)
        exercises = {
            name: {"untried": untried[name].state,
                   "right": [tried(names, a["code"], check, name)
                             for a in answers.get("right", []) if a["exercise"] == name],
                   "wrong": [{"expected": a["hint"], **tried(names, a["code"], check, name)}
                             for a in answers.get("wrong", []) if a["exercise"] == name]}
            for name, check in checks.items()
        }
    return json.dumps({"gates": gates, "exercises": exercises})
