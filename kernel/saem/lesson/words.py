"""In which language does a lesson speak, and what does it say?

The language is, in this order: what the notebook's setup cell gave to ``begin``; the environment
variable ``SAEM_LANG``; English.  It is the same one that the lens speaks.  Strings of lessons are
looked up in ``strings/<language>.json``, which ``saem l10n build`` writes from the PO files; what
the gates themselves say is below.

Read before: ``saem.observe.language``.  Read after: ``saem.lesson.gates``.
Invariant: every key of ``_UI`` exists in every language (tests/notebooks/test_gates.py).
"""

from __future__ import annotations

import functools
import importlib.resources
import json

from saem.observe.language import choose, current

_UI = {
    "en": {
        "title": "Predict",
        "commit": "Commit my guess",
        "committed": "You guessed {guess}. Now run the next cells.",
        "how_to_answer": "To answer here: predict.answer({name!r}, …)",
        "run_to_answer": "Run this cell to answer.",
        "unanswered": "No guess was made. Make one first, then open this.",
        "reveal": "Show what happened",
        "truth": "What happened: {truth}",
        "right": "Right! You guessed {guess}.",
        "wrong": "You guessed {guess}; it was {truth}.",
        "after": "(This guess was made after the result was known.)",
        "rerun": "This time it was {truth}; the guess is judged by the first run.",
        "not_a_number": "Please give a number, such as 2 or 0.5.",
        "empty": "Choose or write an answer first.",
        "compiled": "{function}({signature}): compiled",
        "found": "{function}({signature}): traced, and the same program was found",
        "first": "first call",
        "nothing": "nothing changed",
        "static": "static argument {path}: {old} → {new}",
        "argument": "argument {path}: {old} → {new}",
        "structure": "structure of the arguments",
        "redefined": "the function was defined anew",
        "placeholder": "your guess",
        "exercise": "Exercise",
        "todo": "Write your answer in place of exercise.todo(), then run this cell again.",
        "exercise_unanswered": "No answer yet. Write one above, run that cell, then this one.",
        "exercise_right": "Right! Your function does all that was asked.",
        "exercise_wrong": "Not yet.",
        "raised": "Your code raised `{error}`",
    },
    "ko": {
        "title": "예측해 봅시다",
        "commit": "예측 확정하기",
        "committed": "예측: {guess}. 이제 다음 셀을 실행해 보십시오.",
        "how_to_answer": "여기에서 답하려면: predict.answer({name!r}, …)",
        "run_to_answer": "이 셀을 실행하면 답할 수 있습니다.",
        "unanswered": "아직 예측하지 않았습니다. 먼저 예측한 다음 펼쳐 보십시오.",
        "reveal": "실제 결과 보기",
        "truth": "실제 결과: {truth}",
        "right": "맞았습니다! 예측: {guess}.",
        "wrong": "예측: {guess}, 실제 결과: {truth}.",
        "after": "(결과가 나온 뒤에 한 예측입니다.)",
        "rerun": "이번 결과: {truth}. 예측은 첫 실행의 결과로 판정합니다.",
        "not_a_number": "2 또는 0.5 같은 수를 적어 주십시오.",
        "empty": "먼저 답을 고르거나 적어 주십시오.",
        "compiled": "{function}({signature}): 컴파일함",
        "found": "{function}({signature}): 다시 추적했지만 같은 프로그램을 찾음",
        "first": "첫 호출",
        "nothing": "달라진 것 없음",
        "static": "정적 인자 {path}: {old} → {new}",
        "argument": "인자 {path}: {old} → {new}",
        "structure": "인자의 구조",
        "redefined": "함수가 새로 정의됨",
        "placeholder": "예측한 값",
        "exercise": "연습 문제",
        "todo": "exercise.todo() 자리에 답을 적고 이 셀을 다시 실행해 주십시오.",
        "exercise_unanswered": "아직 답이 없습니다. 위 셀에 답을 적고 두 셀을 차례로 실행하십시오.",
        "exercise_right": "맞았습니다! 함수가 요구한 대로 동작합니다.",
        "exercise_wrong": "아직 아닙니다.",
        "raised": "실행 중에 난 오류: `{error}`",
    },
}

_lesson: str | None = None


def begin(lesson: str, language: str | None = None) -> None:
    """Say which lesson this notebook is, and in which language it and the lens speak.

    Raises ValueError for a language that no lesson is written in.
    """
    global _lesson
    if language is not None:
        choose(language)
    _lesson = lesson


def language() -> str:
    """The language of this process: from ``begin``, else ``SAEM_LANG``, else English."""
    return current()


def t(text: str) -> str:
    """The string ``text`` of the current lesson in the learner's language; as it is if unknown."""
    return _strings(language()).get(_lesson or "", {}).get(text, text)


def say(key: str, **values: object) -> str:
    """One of the gates' own sentences, filled in."""
    return _UI[language()][key].format(**values)


@functools.cache
def _strings(language: str) -> dict[str, dict[str, str]]:
    """All lessons' strings in one language: ``{lesson: {English: translation}}``."""
    file = importlib.resources.files("saem.lesson") / "strings" / f"{language}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
