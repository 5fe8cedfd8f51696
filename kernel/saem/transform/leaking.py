"""Did a traced function let a tracer out?

Asked, if ``checking_leaks`` is on, when a trace has ended: a tracer of it that something with a
name still holds was leaked.  Without the setting a leak is found where the tracer is used.

Read before: ``core.leaks``, ``transform.staging``.
Invariant: a trace whose tracers only the engine still holds passes (tests/kernel/test_leaks.py).
Source: the documentation of jax.checking_leaks.
"""

from __future__ import annotations

import functools
import gc

from saem.core import config, errors, leaks, paths
from saem.core.trace import Trace, Tracer

checking_leaks = functools.partial(config.check_tracer_leaks, True)


def check_leaks(trace: Trace) -> None:
    """Refuse a finished ``trace`` of which tracers are still held.

    Raises: Exception that names each of them and what holds it.
    """
    gc.collect()
    lines = []
    for tracer in gc.get_referrers(trace):
        if isinstance(tracer, Tracer) and tracer._trace is trace:
            held = leaks.holder(tracer)
            if held:
                made = paths.origin(tracer)
                place = f", made in {errors.place_and_line(made)}" if made is not None else ""
                lines.append(f"{tracer!r} is held by {held}{place}")
    if lines:
        raise errors.explained(
            Exception, "trace.leaked",
            f"Leaked trace {type(trace).__name__}. Leaked tracer(s):\n\n" + "\n".join(lines) + "\n",
            advice="Return values from the traced function instead of storing them.")
