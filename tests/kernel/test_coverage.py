"""Is what `saem coverage` counts true, and does a name left out give its reason?

Read before: ``saem.cli.coverage``, ``saem.core.left_out``.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from saem.cli.commands import saem as command
from saem.cli.coverage import counts, find, parameters, survey
from saem.core import left_out


@pytest.fixture(scope="module")
def rows():
    return list(survey())


def test_no_name_is_left_out_that_exists():
    for module, names in left_out.REASONS.items():
        for name in names:
            with pytest.raises((AttributeError, ModuleNotFoundError)):
                find(f"saem.{module}".rstrip("."), name)


@pytest.mark.parametrize("module", [
    name for name in left_out.REASONS if importlib.util.find_spec(f"saem.{name}".rstrip("."))])
def test_a_name_left_out_gives_its_reason(module):
    for name, reason in left_out.REASONS[module].items():
        with pytest.raises(AttributeError, match=f"{name}': left out, because {re.escape(reason)}"):
            getattr(importlib.import_module(f"saem.{module}".rstrip(".")), name)


@pytest.mark.parametrize("module", ["jax.numpy", "jax.lax", "jax.random", "jax.nn", "jax.tree",
                                    "jax.tree_util", "jax.nn.initializers", "jax.scipy.special",
                                    "jax.scipy.stats", "jax.image", "jax.ops", "jax.scipy.signal"])
def test_goal(rows, module):
    count = counts(rows)[module]
    assert count.percent == 100, [row.name for row in rows
                                  if row.module == module and not row.present and not row.reason]


def test_every_name_is_here_or_left_out_with_its_reason(rows):
    assert [f"{row.module}.{row.name}" for row in rows
            if not row.present and row.reason is None] == []


def test_a_primitive_is_found_before_what_applies_it_is_loaded(rows):
    names = [row.name for row in rows
             if row.module == "jax.lax" and row.name.endswith("_p") and not row.reason]
    program = "from saem import lax; print([n for n in names if getattr(lax, n).name is None])"
    done = subprocess.run([sys.executable, "-c", f"names = {names}; {program}"], check=False,
                          capture_output=True, text=True)
    assert len(names) > 140 and done.stdout == "[]\n", done.stderr


def test_signatures_are_jaxs_or_have_their_reason(rows):
    other = {f"{row.module}.{row.name}".removeprefix("jax.") for row in rows
             if row.same_signature is False}
    assert other == set(left_out.SIGNATURES)


def test_parameters_are_written_as_in_the_inventory():
    def f(a, b=1, /, c=2, *, d, e=3, **rest): ...
    assert parameters(f) == "a,b=,/,c=,*,d,e=,**rest"
    assert parameters(lambda *xs, y=1: xs) == "*xs,y="


def test_command():
    done = CliRunner().invoke(command, ["coverage", "jax.lax", "--names"])
    assert done.exit_code == 0
    assert "jax.lax.stage_p: it is an internal of JAX" in done.output
    done = CliRunner().invoke(command, ["coverage", "jax.tree", "--json"])
    found = json.loads(done.output)
    assert {row["name"] for row in found if row["module"] == "jax.tree"} >= {"map", "leaves"}


def test_a_module_that_jax_does_not_have_is_refused():
    done = CliRunner().invoke(command, ["coverage", "jax.nmpy"])
    assert done.exit_code == 1 and "'jax.nmpy'" in done.output and "jax.numpy" in done.output
