"""Do functions give what real JAX gives, on every kind of operand and of argument?

The tables beside this file name calls; ``variations`` makes rows of them: other dtypes, empty and
rank-0 operands, wrong ones, derivatives of two orders, maps.  A row that differs stands in its
table under a reason; one whose reason begins with ``~`` must still agree to a few last bits.

Read before: ``variations.py``.
Invariant: what a row means is asked from JAX.  ``SAEM_SWEEP=all`` runs every row, else one of
``PART`` of each table.
"""

from __future__ import annotations

from typing import Any

import pytest
from variations import BEGINNINGS, RANDOM, chosen, differences, read, rows

LAST_BITS = 3e-6
HOW: dict[str, dict[str, Any]] = {
    "lax": {}, "nn": {}, "numpy": {}, "jnp": {},
    "always": {},  # calls that once differed: every run asks them
    "scipy": {"rtol": 3e-5},  # series, continued fractions, sums of logarithms
    "random": {"rtol": 0.0, **RANDOM},  # random numbers are JAX's to the bit
    **{name: {"begin": begin} for name, begin in BEGINNINGS.items()},
}
HOW["wide"]["x64"] = True  # 64-bit types are on
HOW["strict"]["rtol"] = 3e-5  # as of the tables where these calls come from
PART = {"lax": 16, "numpy": 32, "jnp": 64, "scipy": 64, "always": 1, "wide": 1, "strict": 1,
        "random": 16, "linalg": 288, "grids": 480, "solvers": 288, "sparse": 144, "layers": 720}
TABLES = [(name, group) for name in HOW for group in read(name)[0]]


def rows_of(name, calls):
    """Return the rows of calls of a table, each once."""
    if name == "strict":  # a function's own arithmetic does not mix what its caller may not mix
        return [f"unmixed(lambda: {call})" for call in calls]
    return list(dict.fromkeys(rows(calls, wide=name in BEGINNINGS)))


@pytest.mark.parametrize(("name", "group"), TABLES)
def test_rows(jax_oracle, request, name, group):
    if name != "random":  # whose numbers are compared to the bit
        request.getfixturevalue("little_effort")
    groups, reasons = read(name)
    cases = chosen(rows_of(name, groups[group]), PART.get(name, 8))
    plain = [case for case in cases if not reasons.of(case)]
    nearly = [case for case in cases if reasons.of(case).startswith("~")]
    wrong = differences(jax_oracle, plain, **HOW[name])
    wrong += differences(jax_oracle, nearly, **{**HOW[name], "rtol": LAST_BITS})
    print(f"{name}, {group}: {len(cases)} cases, {len(cases) - len(plain)} with a reason")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)} differ", *wrong])


@pytest.mark.parametrize("name", HOW)
def test_reasons_are_needed(name):
    """Each reason is a row's, so that none outlives what it excuses."""
    groups, reasons = read(name)
    assert reasons.unneeded(
        row for calls in groups.values() for row in rows_of(name, calls)) == []
