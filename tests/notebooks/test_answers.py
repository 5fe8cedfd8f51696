"""Does every gate and every exercise know right from wrong, and does each mistake get its hint?

Read before: ``try_lesson.py``, ``ran_lessons.py``.  Read after: nothing.
"""

from __future__ import annotations

import pytest
from ran_lessons import WITH_ANSWERS, replies

every_lesson = pytest.mark.parametrize("lesson", WITH_ANSWERS)


@every_lesson
def test_every_gate_tells_right_from_wrong(lesson):
    gates = replies(lesson)["gates"]
    assert len(gates) >= 3
    for name, verdicts in gates.items():
        if "measured" in verdicts:
            assert verdicts["measured"].count(True) == 1, (name, verdicts)
            assert verdicts["measured"].count(False) == len(verdicts["measured"]) - 1 > 0, name
            continue
        assert verdicts.get("right"), name
        assert verdicts.get("wrong"), name
        assert all(v is True for v in verdicts["right"]), (name, verdicts)
        assert all(v is False for v in verdicts["wrong"]), (name, verdicts)


@every_lesson
def test_every_exercise_takes_right_answers_and_waits_without_one(lesson):
    exercises = replies(lesson)["exercises"]
    assert exercises
    for name, got in exercises.items():
        assert got["untried"] == "unanswered", name
        assert got["right"], name
        assert [a for a in got["right"] if a["state"] != "right"] == [], name


@every_lesson
def test_every_mistake_gets_the_hint_that_was_written_for_it(lesson):
    for name, got in replies(lesson)["exercises"].items():
        assert [a for a in got["wrong"]
                if a["state"] != "wrong" or a["expected"] not in a["hint"]] == [], name
        assert len({a["hint"] for a in got["wrong"]}) >= 3, name
