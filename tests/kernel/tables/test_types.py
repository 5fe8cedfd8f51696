"""Do functions of random, special and stats give JAX's types and errors for every kind of operand?

Read before: ``kinds.py``.
Invariant: what a row gives is asked from JAX.  ``SAEM_SWEEP=all`` runs every row (an eighth else).
"""

from __future__ import annotations

import re

import pytest
from kinds import GROUPS, LOOKED
from library import failures
from variations import MORE, OPERANDS, RANDOM, chosen

# Rows that differ, found by a pattern, and why.
REASONS = {
    r"random\..*\b1j\b": "JAX drops the imaginary part of a Python number where it is traced",
    r"random\.f\(key\(0\), W3, 3\., \((2|1), 3\)": "JAX's own steps do not stretch dfnum",
    r"random\.multinomial\(key\(0\), (W3|10\.), P2, shape=(\(2\.,\)|\(\(2|jnp|np\.array\(3)":
        "a shape that holds no integers is refused by another class",
    r"random\.uniform\(key\(0\), (\(\)|True), None, W3|random\.uniform\(.*W3\[:, None\]":
        "JAX traces a program that it then cannot compile",
    r"sp\.owens_t\(.*(complex64|1j)":
        "JAX computes with complex numbers, for which T has no meaning",
    r"st\.norm\.(ppf|isf)\(X, (loc|scale)=(1j|cast\(X, 'complex64')":
        "JAX drops the imaginary part of the place",
}


@pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])
@pytest.mark.parametrize("group", GROUPS)
def test_types(jax_oracle, group, x64):
    rows = list(dict.fromkeys(GROUPS[group]()))
    if x64:  # what 64 bits change is seen in fewer
        rows = rows[::4]
    cases = [case for case in chosen(rows)
             if not any(re.search(pattern, case) for pattern in REASONS)]
    wrong = []
    for at in range(0, len(cases), 1000):
        wrong += failures(jax_oracle, cases[at:at + 1000], 0.0, x64, MORE + LOOKED,
                          **{**OPERANDS, **RANDOM})
    print(f"{group}: {len(cases)} cases of {len(rows)}")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)} differ", *wrong])


def test_reasons_are_needed():
    """Each pattern finds rows, so that none outlives what it excuses."""
    rows = [case for make in GROUPS.values() for case in make()]
    for pattern in REASONS:
        assert any(re.search(pattern, case) for case in rows), pattern
