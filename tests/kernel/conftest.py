"""How do tests that compile many programs save XLA's time?

A test that uses the fixture ``little_effort`` has its programs compiled without LLVM's
optimisations, in half the time.  Which tests do:

- Those that ask what a program *means*, within a tolerance: transformations against each other,
  nested programs, rules, references, errors; large programs of one subject, such as solvers.
- Not those that ask what compiled code *does*: JAX's digits to the bit, quick settings, caches,
  speed, memory, exports, faults of XLA.  Nor those through which each operation and each
  transformation is compiled as for everybody: every case of the matrix on XLA, each function's
  values (``tests/kernel/numpy``, ``test_elementwise_oracle.py``, the special functions' beside
  SciPy's), and whole programs as users write them (``small_programs.txt``, the documentation's, the
  lessons').

With ``SAEM_FULL_EFFORT=1`` the fixture changes nothing: every test compiles as for everybody.

Read before: ``saem.compile.executables``.
Invariant: no other test meets a program that was compiled so: the effort is part of the key of
every trace, and the options are part of the key of every program.
"""

from __future__ import annotations

import os

import pytest

from saem import _jaxlib
from saem.compile import executables
from saem.core import config

LITTLE = {**_jaxlib.QUICK_OPTIONS, "xla_backend_optimization_level": 0}
effort = _jaxlib.Config("saem_test_effort", None, include_in_jit_key=True,
                        include_in_trace_context=True)


@pytest.fixture
def little_effort(monkeypatch):
    """Compile this test's programs for the CPU with little optimisation."""
    if os.environ.get("SAEM_FULL_EFFORT"):
        yield
        return
    usual = executables.quick_options

    def options(program, devices, same_rounding=False):
        little = devices[0].platform == "cpu"
        return LITTLE if little else usual(program, devices, same_rounding)

    monkeypatch.setattr(executables, "quick_options", options)
    with config.holding(effort, "little"):
        yield
