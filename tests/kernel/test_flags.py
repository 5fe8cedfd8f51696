"""Do flags of the command line set ``saem.config`` as they set JAX's?

A stand-in of absl would prove nothing, so these tests need the package absl-py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("absl", reason="the package absl-py is not installed")
KERNEL = Path(__file__).resolve().parents[2] / "kernel"
PROGRAM = """
from absl import app, flags
import saem as jax
{first}
STEPS = flags.DEFINE_integer("steps", 1, "how often")
def main(words):
    print(STEPS.value, words[1:], jax.config.jax_enable_x64, jax.config.jax_numpy_rank_promotion,
          jax.config.jax_threefry_partitionable, jax.config.jax_platforms)
app.run(main)
"""


def run(first: str, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(first=first), *words], text=True, check=False,
        capture_output=True, timeout=60,
        env={"PYTHONPATH": str(KERNEL), "JAX_PLATFORMS": "cpu",
             "SAEM_ENABLE_COMPILATION_CACHE": "0"})


@pytest.mark.parametrize("first", ["jax.config.config_with_absl()",
                                   "jax.config.parse_flags_with_absl()"])
def test_absl_reads_them(first):
    done = run(first, "--steps=3", "--jax_enable_x64", "--jax_numpy_rank_promotion=raise",
               "--nojax_threefry_partitionable", "word")
    assert done.stdout == "3 ['word'] True raise False cpu\n", done.stderr


def test_flags_of_programs_are_left_to_them():
    done = run("flags.DEFINE_integer('rate', 1, ''); jax.config.parse_flags_with_absl(); "
               "print(flags.FLAGS.is_parsed(), flags.FLAGS.rate, jax.config.jax_enable_x64)",
               "-v", "1", "--rate=5", "--steps=3", "--jax_enable_x64")
    assert done.stdout.startswith("True 1 True\n3 "), (done.stdout, done.stderr)


def test_absl_refuses_what_is_no_flag():
    done = run("", "--jax_enable_x64")
    assert done.returncode != 0 and "Unknown command line flag 'jax_enable_x64'" in done.stderr
    done = run("jax.config.config_with_absl()", "--jax_numpy_rank_promotion=maybe")
    assert done.returncode != 0 and "should be one of <allow|warn|raise>" in done.stderr
