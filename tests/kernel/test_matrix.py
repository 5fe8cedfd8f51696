"""Does every rule of every primitive hold?

One test for each case and check of ``matrix``; a primitive without cases fails.

Read before: ``matrix``.
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import matrix
import pytest

from saem import generators, linalg, ops, signal, special
from saem.core.primitive import registry

ROOT = Path(__file__).resolve().parents[2]

# Higher-order primitives take programs, which a spec cannot describe; their own tests hold them.
ELSEWHERE: dict[str, str] = {
    "jit": "tests/kernel/test_jit.py",
    "device_put": "tests/kernel/test_devices.py",
    "shard_map": "tests/kernel/test_shard_map.py",
    "sharding_constraint": "tests/kernel/test_shardings.py",
    "call_exported": "tests/kernel/test_export.py",
    # Its tangent is zero by definition, whatever finite differences say.
    "stop_gradient": "tests/kernel/test_stop_gradient.py",
    # It has a value only where an exported program is called.
    "dim_as_value": "tests/kernel/test_export_symbolic.py",
    # It has no value: only its transpose means something.
    "custom_lin": "tests/kernel/test_custom_rules.py",
    # Their operands are references, which no spec describes.
    **dict.fromkeys(("addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "swap"),
                    "tests/kernel/test_refs.py"),
    # The NumPy evaluator sees one participant only.
    **dict.fromkeys(
        ("all_gather", "all_gather_invariant", "all_to_all", "axis_index", "ppermute",
         "psum_invariant", "pvary", "reduce_scatter"), "tests/kernel/test_axes.py"),
    **dict.fromkeys(
        ("all_gather_reduced", "preduced", "reduced_vary_cast_p", "unreduced_psum",
         "unreduced_reduce_scatter", "vary_unreduced_cast_p"), "tests/kernel/test_unreduced.py"),
    # Keys are no NumPy arrays.
    **dict.fromkeys(
        ("random_bits", "random_clone", "random_fold_in", "random_seed", "random_split",
         "random_unwrap", "random_wrap"), "tests/kernel/test_random.py"),
    **dict.fromkeys(("from_edtype", "to_edtype"), "tests/kernel/test_extended_dtypes.py"),
    # What they compute is a program's own.
    **dict.fromkeys(("call_hi_primitive", "call_hi_primitive_jvp", "call_hi_primitive_lin",
                     "raise_val"), "tests/kernel/test_hijax.py"),
    "random_gamma": "tests/kernel/test_random_rejection.py",
    # Tokens have no numbers.
    **dict.fromkeys(("after_all", "create_token", "precv", "psend", "ragged_all_to_all"),
                    "tests/kernel/test_documented.py"),
    # Its numbers differ from call to call.
    "rng_uniform": "tests/kernel/test_random_keys.py",
}

for _room in (ops, generators, linalg, signal, special):
    for _module in pkgutil.iter_modules(_room.__path__):
        importlib.import_module(f"{_room.__name__}.{_module.name}")

NAMED = matrix.case_ids()


@pytest.fixture(scope="module", autouse=True)
def _numbers(request):
    """Say at the end how many primitives and cases there were."""
    yield
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        used = {c.prim.name for c in NAMED.values()}
        reporter.write_line(
            f"\ntest matrix: {len(used)} primitives, {len(NAMED)} cases, "
            f"{len(matrix.CHECKS)} checks each")


@pytest.mark.parametrize("name", sorted(registry))
def test_every_primitive_has_cases(name):
    if name in ELSEWHERE:
        assert (ROOT / ELSEWHERE[name]).is_file()
    else:
        assert name in {c.prim.name for c in NAMED.values()}, (
            f"{name} has no case: add one to tests/kernel/cases, or its test file to ELSEWHERE")


@pytest.mark.parametrize("check", sorted(matrix.CHECKS))
@pytest.mark.parametrize("name", sorted(NAMED))
def test_case(request, name, check):
    if check == "commute":  # whether the code is XLA's usual one is for the check "xla"
        request.getfixturevalue("little_effort")
    matrix.CHECKS[check](NAMED[name])
