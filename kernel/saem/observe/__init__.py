"""What did the engine do, and why?

Observation without Jupyter: a recorder of the engine's events, explanations of every compile, and
the JSON models that views are made of::

    saem.observe.start()
    f(x)
    print(saem.observe.explain(f))

Read before: ``saem.core.events``.  Read after: ``observe.recorder``, ``observe.reasons``.
Invariant: nothing here imports Jupyter (import-linter).
"""

from saem.observe.jaxpr_model import jaxpr_model
from saem.observe.recorder import Recorder, recorder
from saem.observe.report import Explanation, History, Keys, explain, history, keys

start = recorder.start
stop = recorder.stop
clear = recorder.clear

__all__ = [
    "Explanation",
    "History",
    "Keys",
    "Recorder",
    "clear",
    "explain",
    "history",
    "jaxpr_model",
    "keys",
    "recorder",
    "start",
    "stop",
]
