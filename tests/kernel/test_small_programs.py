"""Do small programs give here what they give on JAX?

``small_programs.txt`` holds the programs, in sections of one question each: tutorials, errors that
learners meet, pytrees, loops, derivatives, settings, references, shardings.

Read before: ``small_programs.py``.
Invariant: an error here is of every class that JAX's is of (it may be of more).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from small_programs import SOURCE

HERE = Path(__file__).parent
SECTIONS = dict(part.split(" ===\n", 1) for part in
                (HERE / "small_programs.txt").read_text(encoding="utf-8").split("=== ")[1:])

# As a process of its own, in which ``import jax`` is Saem.
RUN = """
import json, sys
import saem.dropin
saem.dropin.install()
names = {"programs": json.load(sys.stdin)}
import jax, numpy
names.update(jax=jax, np=numpy)
exec(sys.argv[1], names)
print(json.dumps(names["result"]))
"""


def programs(section):
    return [p.strip("\n") for p in SECTIONS[section].split("\n---\n")]


def same(mine: str, theirs: str) -> bool:
    if theirs.startswith("raised ") and mine.startswith("raised "):
        return set(theirs.split()) <= set(mine.split())
    return mine == theirs


@pytest.mark.parametrize("section", sorted(SECTIONS))
def test_programs_give_what_they_give_on_jax(jax_oracle, section):
    given = programs(section)
    done = subprocess.run([sys.executable, "-c", RUN, SOURCE], input=json.dumps(given),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    mine = json.loads(done.stdout.splitlines()[-1])
    theirs = jax_oracle.run(SOURCE, programs=given).value
    wrong = [f"{program}\n  JAX : {b}\n  here: {a}"
             for program, a, b in zip(given, mine, theirs, strict=True) if not same(a, b)]
    assert not wrong, f"{len(wrong)} of {len(given)} differ\n" + "\n".join(wrong)
