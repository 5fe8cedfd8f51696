"""How do tests that compile large programs save XLA's time?

A test that uses the fixture ``little_effort`` has its programs compiled without LLVM's
optimisations, in half the time.  It is for tests that compare within a wide tolerance, with NumPy,
SciPy, finite differences or another of the engine's own results; where JAX's digits are expected,
XLA compiles as for everybody.

Read before: ``saem.compile.executables``.
Invariant: no other test meets a program that was compiled so: the effort is part of the key of
every trace, and the options are part of the key of every program.
"""

from __future__ import annotations

import pytest

from saem import _jaxlib
from saem.compile import executables

LITTLE = {**_jaxlib.QUICK_OPTIONS, "xla_backend_optimization_level": 0}
effort = _jaxlib.Config("saem_test_effort", None, include_in_jit_key=True,
                        include_in_trace_context=True)


@pytest.fixture
def little_effort(monkeypatch):
    """Compile this test's programs for the CPU with little optimisation."""
    usual = executables.quick_options

    def options(program, devices, same_rounding=False):
        little = len(devices) == 1 and devices[0].platform == "cpu"
        return LITTLE if little else usual(program, devices, same_rounding)

    monkeypatch.setattr(executables, "quick_options", options)
    before = effort.swap_local("little")
    yield
    effort.set_local(before)
