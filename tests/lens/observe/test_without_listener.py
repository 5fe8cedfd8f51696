"""Does the engine work harder where nobody listens than where nobody ever did?

A process counts each step that Python takes (every bytecode instruction, and every call of a
function in Python or C) in a call that hits, an eager operation, a gradient and a mapped function:
first before the lens is imported, then after it recorded and stopped.  The counts are the same, so
what is left is at most the one attribute test that asks whether somebody listens.

Read before: ``saem.core.events``.  Read after: ``test_what_calls_tell.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

PROGRAM = '''
import gc, json, sys
import saem as jax
import saem.numpy as jnp

gc.disable()
x = jnp.arange(100.0)
f = jax.jit(lambda x: x * 2)
calls = {
    "hit": lambda: f(x),
    "operation": lambda: jnp.sin(x) + x,
    "gradient": lambda: jax.grad(lambda x: jnp.sum(x ** 2))(x),
    "mapped": lambda: jax.vmap(lambda a: a * 2)(x),
}


def steps(call):
    """Count the instructions and the calls of ``call``."""
    counts = {"instructions": 0, "calls": 0}

    def trace(frame, event, arg):
        frame.f_trace_opcodes = True
        counts["instructions"] += event == "opcode"
        return trace

    def profile(frame, event, arg):
        counts["calls"] += event in ("call", "c_call")

    sys.settrace(trace)
    call()
    sys.settrace(None)
    sys.setprofile(profile)
    call()
    sys.setprofile(None)
    return counts


def counted():
    for call in calls.values():
        for _ in range(5):
            call()
    return {name: steps(call) for name, call in calls.items()}


before = counted()
from saem import observe
observe.start()
recorded = counted()
observe.stop()
print(json.dumps([before, recorded, counted()]))
'''


def test_nothing_is_done_for_nobody():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True,
                          env=environment, check=True)
    before, recorded, after = json.loads(done.stdout)
    assert after == before
    assert all(counts["instructions"] > 0 for counts in before.values())
    # The measure sees work where there is some: a recording is told of eager operations.
    assert recorded["operation"]["instructions"] > before["operation"]["instructions"]
