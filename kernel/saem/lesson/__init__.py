"""How does a lesson ask before it explains, in the learner's language?

A lesson cell asks a question (:mod:`saem.lesson.predict`), a later cell runs the code and lets the
engine's own events, or a computed value, be the judge.  In an exercise the learner writes a
function, and a check judges what it does (:mod:`saem.lesson.exercise`).  ``t("…")`` gives a string
of the lesson in the language of the notebook.  The setup cell that the build writes into every
notebook says which lesson and which language that is: ``begin("01-arrays", language="ko")``.

Read before: ``saem.core.events``.  Read after: ``saem.l10n``, which builds the notebooks.
Invariant: a gate without an answer never fails a run (tests/notebooks/test_gates.py).
"""

from saem.lesson import exercise, predict
from saem.lesson.words import begin, language, t

__all__ = ["begin", "exercise", "language", "predict", "t"]
