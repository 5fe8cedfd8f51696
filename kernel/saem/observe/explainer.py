"""Why was this call traced, in the log?

Under ``explain_cache_misses`` every miss of a jitted function is logged with its reasons, at
WARNING, whether or not anything is recorded.  Earlier calls are those since the setting was on.

Read before: ``saem.observe.recorder``.  Read after: nothing.
Invariant: the log says what ``observe.explain`` would (tests/lens/observe/test_recompile_table.py).
"""

from __future__ import annotations

import logging

from saem.core.events import CacheMiss
from saem.observe.recorder import Recorder

_seen = Recorder(records=1)


def log_miss(event: CacheMiss) -> None:
    """Log why ``event`` is a miss: each reason, and what would avoid it."""
    _seen.receive(event)
    _seen.settle(event.thread)
    model = _seen.of(event.function)
    (record,) = model.functions[0].records
    where = f" at {record.caller.label.en}" if record.caller else ""
    lines = [f"TRACING CACHE MISS of {event.function.name}{where} because:"]
    lines += [f"  {reason.says.en}" for reason in record.reasons]
    advice = dict.fromkeys(reason.advice.en for reason in record.reasons if reason.advice.en)
    lines += [f"    {text}" for text in advice]
    logging.getLogger("saem").warning("%s", "\n".join(lines))


def forget() -> None:
    """Forget earlier calls."""
    _seen.clear()
