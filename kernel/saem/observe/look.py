"""How is a function looked at without leaving marks in what is recorded?

Looking traces a function again, also the jitted functions inside that were traced before: the trace
context holds a token that no earlier trace knows.  The recorder does not listen meanwhile, and what
was kept for the token is forgotten.  Equations of such a trace know the calls that led to them.

Read before: ``core.config``, ``saem.observe.recorder``.  Read after: ``saem.lens.views``.
Invariant: after a look the recorder's history and the functions' programs are what they were
(tests/lens/test_views.py).
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

from saem import _jaxlib
from saem.core import config, source
from saem.observe.recorder import Recorder, recorder
from saem.transform import programs

_token = _jaxlib.Config(
    "saem_look", None, include_in_jit_key=True, include_in_trace_context=True
)
_numbers = itertools.count(1)


@contextlib.contextmanager
def looking(of: Recorder = recorder) -> Iterator[None]:
    """Trace everything anew inside the block, unseen by the recorder."""
    with config.holding(_token, next(_numbers)):
        context = config.trace_key()
        try:
            with of.paused(), source.callers_kept():
                yield
        finally:
            _forget(context)


def _forget(context: object) -> None:
    """Drop the traces that were made for one look."""
    for table in programs.tables():
        for key in [key for key in list(table) if key[-1] == context]:
            table.pop(key, None)
