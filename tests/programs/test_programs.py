"""Do programs that nobody here wrote compute on Saem what they compute on JAX?

Each program of ``scripts/`` uses other people's libraries as their documentation shows.  It runs in
one environment twice: by ``python -m saem run``, and with the real JAX on its path.  Every list of
numbers that it records, a loss curve for one, must be the same to rounding.

What JAX computes is kept like its other replies (``tests/kernel/recorded.py``), for a program and
the versions of the libraries: only a changed program, and two others in every run, run on JAX.

The environment is ``.venv-programs`` (``make programs`` makes it), or the Python that
``$SAEM_PROGRAMS_PYTHON`` names.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from oracle import find_python
from recorded import PROGRAM, Recorded

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).parent / "scripts"
PYTHON = Path(os.environ.get("SAEM_PROGRAMS_PYTHON", ROOT / ".venv-programs" / "bin" / "python"))

PROGRAMS = sorted(path.stem for path in SCRIPTS.glob("*.py") if path.stem != "curves")
ASKED_AGAIN = random.Random(len(PROGRAMS)).sample(PROGRAMS, 2)

# Relative to the largest number of a list; a curve may grow what rounding begins.
TOLERANCE = 2e-5
LOOSER = {
    # A chain multiplies rounding by what its leapfrog steps stretch, fifteen of them here.
    ("numpyro_schools", "nuts: mu"): 2e-3,
    ("numpyro_schools", "nuts: energy"): 2e-3,
    ("numpyro_schools", "predicted"): 2e-3,
    ("numpyro_schools", "two chains"): 2e-3,
}

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not PYTHON.exists(), reason=f"{PYTHON} is missing; try: make programs"),
]


@pytest.fixture(scope="session")
def real_jax(tmp_path_factory):
    """Return a folder with nothing but the package jax, for an environment that has none."""
    python, looked = find_python()
    if python is None:
        pytest.skip(f"the real JAX is missing ({looked}); try: make test")
    ask = "import jax, sys; print(jax.__path__[0]); print(sys.version_info[:2])"
    where, version = subprocess.run([python, "-c", ask], capture_output=True, text=True,
                                    check=True).stdout.splitlines()
    mine = subprocess.run([PYTHON, "-c", "import sys; print(sys.version_info[:2])"],
                          capture_output=True, text=True, check=True).stdout.strip()
    if mine != version:
        pytest.skip(f"{PYTHON} is Python {mine}, and the real JAX is in Python {version}")
    folder = tmp_path_factory.mktemp("jax")
    site = Path(where).parent
    for path in (Path(where), *site.glob("jax-*.dist-info")):
        (folder / path.name).symlink_to(path)
    return folder


def environment(path: Path) -> dict[str, str]:
    """Return this process's environment without its settings of engines, for programs on ``path``.
    """
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("JAX_", "SAEM_", "PYTEST_", "PYTHON"))}
    return {**kept, "PYTHONPATH": str(path), "JAX_PLATFORMS": "cpu"}


def start(words: list[str], path: Path) -> subprocess.Popen:
    settings = {**environment(path), "PYTHONWARNINGS": "ignore",
                "SAEM_ENABLE_COMPILATION_CACHE": "0"}
    return subprocess.Popen([PYTHON, *words], cwd=SCRIPTS, env=settings, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def output(process: subprocess.Popen, who: str) -> bytes:
    """Return the lines that the program recorded.

    Raises: AssertionError with its stderr if it failed.
    """
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, f"on {who}:\n{err[-4000:]}"
    return "".join(line + "\n" for line in out.splitlines()
                   if line.startswith('{"name"')).encode()


def numbers(lines: bytes) -> dict[str, np.ndarray]:
    found = map(json.loads, lines.decode().splitlines())
    return {line["name"]: np.array(line["values"]).reshape(line["shape"]) for line in found}


@pytest.fixture(scope="session")
def replies():
    return Recorded()


def question(name: str) -> bytes:
    """Return what JAX's numbers depend on: the program, and the versions of the libraries.

    Libraries of one program alone stand beside it (``name.txt``): the other programs keep theirs.
    """
    script = SCRIPTS / name
    own = [path for path in [script.with_suffix(".txt")] if path.exists()]
    parts = Path(__file__).with_name("requirements.txt"), SCRIPTS / "curves.py", script, *own
    return PROGRAM + b"".join(path.read_bytes() for path in parts)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, replies, request):
    script = f"{name}.py"
    kept = None if name in ASKED_AGAIN else replies.find(question(script))
    if kept is None:
        there = start([script], request.getfixturevalue("real_jax"))
    here = start(["-m", "saem", "run", script], ROOT / "kernel")
    mine = numbers(output(here, "Saem"))
    if kept is None:
        kept = output(there, "JAX")
        replies.keep(question(script), kept)
    theirs = numbers(kept)
    assert list(mine) == list(theirs)
    for what, expected in theirs.items():
        assert mine[what].shape == expected.shape, what
        scale = max(1e-3, float(np.max(np.abs(expected), initial=0)))
        difference = float(np.max(np.abs(mine[what] - expected), initial=0)) / scale
        assert difference <= LOOSER.get((name, what), TOLERANCE), (
            f"{what}: {difference:.1e} apart\n{mine[what].ravel()[:6]}\n{expected.ravel()[:6]}")
    print(f"{name}: {len(theirs)} lists of numbers agree")
