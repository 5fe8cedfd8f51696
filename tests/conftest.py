"""What do all tests share?  Eight CPU devices, and real JAX in a second process.

Read before: ``tests/kernel/oracle.py``.  Read after: any test.
Invariant: a test that needs JAX skips with the reason in words when JAX is not there.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest

# Both sides of every comparison have eight CPU devices, so that programs on several can be tested.
os.environ["SAEM_NUM_CPU_DEVICES"] = "8"
# Tests count compilations, so no test finds a program of another, and none writes to the user's own
# cache folder.  Tests of the cache turn it on, in a folder of theirs.
os.environ["SAEM_ENABLE_COMPILATION_CACHE"] = "0"
# Tests run in as many processes as there are cores, where programs that XLA divides into parts, to
# compile these in threads, take an eighth longer.
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_parallel_codegen_split_count=1".strip())

sys.path.insert(0, str(Path(__file__).resolve().parent / "kernel"))

import oracle as oracle_module


def pytest_itemcollected(item):
    """Mark every test that asks JAX, so that ``-m oracle`` and ``-m 'not oracle'`` choose."""
    if "jax_oracle" in getattr(item, "fixturenames", ()):
        item.add_marker("oracle")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Let tests that clear the caches go last: others would compile everything again."""
    items.sort(key=lambda item: item.get_closest_marker("clears_caches") is not None)


def pytest_collection_finish():
    """Leave what was collected, 700,000 objects that stay, out of all later garbage collections.

    Tests of leaks make many, each of which would take a third of a second.  And collect more
    rarely than Python does by default, at every 700 objects, which takes a twentieth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10)


@pytest.fixture(scope="module")
def holders_are_seen():
    """Let the search for who holds a leaked value see the modules of tests, too."""
    gc.unfreeze()
    yield
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Say plainly when nothing was compared with JAX."""
    python, looked = oracle_module.find_python()
    if python is None:
        terminalreporter.write_line(
            f"No comparison with real JAX was made: no interpreter at {looked}."
        )


@pytest.fixture(scope="session")
def jax_oracle():
    """Real JAX: ``jax_oracle.run("jnp.sin(x)", x=…).value``, ``jax_oracle.jaxpr("jnp.sin", x)``."""
    python, looked = oracle_module.find_python()
    if python is None:
        pytest.skip(f"real JAX is not there to compare with: no interpreter at {looked}")
    oracle = oracle_module.Oracle(python)
    yield oracle
    oracle.close()
