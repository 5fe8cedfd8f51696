"""Does the text of a program hold what it needs of its module, and no more?

Read before: ``sources.py``.
"""

from __future__ import annotations

# ruff: noqa: F401 - texts below use these imports
import functools
import sys
from functools import partial
from math import hypot as length

import pytest
from both import source_of
from programs import SHAPES
from sources import definitions, function_text

import saem as jax
import saem.numpy as jnp
from saem.experimental import checkify as c

HERE = sys.modules[__name__]
BASE, HALF = 2.0, 0.5


@jax.custom_jvp
def scaled(x):
    return BASE * x


@scaled.defjvp
def scaled_rule(primals, tangents):
    return scaled(primals[0]), HALF * tangents[0]


def other(x):
    """Is used by none of the programs below."""
    return scaled(x)


def test_definitions_come_with_what_they_use_and_what_completes_them():
    def program(x):
        BASE = 3.0  # a name of the function's own
        return jax.grad(scaled)(x) * BASE

    scaled_text = "@jax.custom_jvp\ndef scaled(x):\n    return BASE * x"
    rule = ("@scaled.defjvp\ndef scaled_rule(primals, tangents):\n"
            "    return scaled(primals[0]), HALF * tangents[0]")
    assert definitions(function_text(program), HERE) == [
        "BASE, HALF = 2.0, 0.5", scaled_text, rule]
    assert source_of(program).endswith("\nresult = program(x=x)")


@pytest.mark.parametrize(("expression", "needed"), [
    ("jnp.sin(x)", []),
    ("functools.reduce(f, x)", ["import functools"]),
    ("partial(f, length(1, 2))",
     ["from functools import partial", "from math import hypot as length"]),
    ("c.checkify(lambda x: x)", ["from jax.experimental import checkify as c"]),
    pytest.param("[BASE for BASE in x]", [], marks=pytest.mark.skipif(
        sys.version_info >= (3, 12),
        reason="there the name of an inlined comprehension counts as the module's; a definition "
        "too many harms nothing")),
    ("SHAPES[0]", ["SHAPES = ((), (3,), (2, 3))"]),
], ids=["given", "module", "renamed", "engine", "own-name", "other-test"])
def test_imports_are_those_that_the_text_uses(expression, needed):
    assert definitions(expression, HERE) == needed


def test_a_name_that_is_given_brings_no_definition():
    assert definitions("jnp.sin(x) + BASE", HERE, frozenset({"jnp", "BASE"})) == []


def test_decorators_of_a_program_are_left_out():
    programs = []

    def collected(program):
        programs.append(program)
        return program

    @collected
    def program():
        return jnp.ones(3)

    assert programs == [program]
    assert function_text(program) == "def program():\n    return jnp.ones(3)\n"
