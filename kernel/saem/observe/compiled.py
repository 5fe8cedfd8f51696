"""What did XLA make of a program, and at what cost?

Read before: ``saem.observe.programs``.  Read after: ``saem.lens.views``.
Invariant: the shares of kernels add up to one (tests/lens/test_views.py).
"""

from __future__ import annotations

import time
from typing import Any

from saem.compile import executables
from saem.compile.device_assignment import devices_of
from saem.core.jaxpr import ClosedJaxpr
from saem.observe import schema
from saem.observe.environment import environment
from saem.observe.jaxpr_model import jaxpr_model
from saem.observe.programs import executable_of, flops, kernels, lowered, program_lines
from saem.observe.schema import CompiledModel, Cost


def compiled_model(closed: ClosedJaxpr, title: str, where: Any) -> CompiledModel:
    """Compile a program for where it runs and describe the result; of several devices, one's."""
    program = lowered(closed, title, where)
    begin = time.perf_counter()
    executable = executable_of(program, where)
    seconds = time.perf_counter() - begin
    model = jaxpr_model(closed, title, program_lines(program), kernels(executable), flops(closed))
    cost = Cost(**executables.costs(executable))
    return CompiledModel("compiled", schema.VERSION, model, cost, seconds, environment(),
                         len(devices_of(where)))
