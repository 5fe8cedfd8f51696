"""Do SciPy's own tests of arrays that are not NumPy's pass on Saem?

SciPy tests its functions on any library that follows the array API standard, JAX among them.  Under
the drop-in its tests take Saem for JAX.

Read before: ``saem.dropin``.
Source: SciPy's developer documentation, "Support for the array API standard".
"""

from __future__ import annotations

import os
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from test_programs import PYTHON, ROOT, environment

# A package of SciPy and what one file of its tests is about.
SUITES = [
    ("differentiate", "differentiate"),
    ("optimize", "bracket"),
    ("optimize", "chandrupatla"),
    ("special", "basic"),
    ("special", "support_alternative_backends"),
]
# These fail on JAX 0.10.2, too: a result of float32 where NumPy's is of float64.
FAIL_ON_JAX = {f"test_support_alternative_backends_mismatched_dtypes[jax.numpy-{name}]"
               for name in ("boxcox", "boxcox1p")}


@pytest.mark.skipif(not PYTHON.exists(), reason=f"{PYTHON} is missing; try: make programs")
def test_scipys_tests_pass(tmp_path):
    where = subprocess.run([PYTHON, "-c", "import scipy; print(scipy.__path__[0])"],
                           capture_output=True, text=True, check=True).stdout.strip()
    folder, report = Path(where), tmp_path / "report.xml"
    files = [str(folder / package / "tests" / f"test_{subject}.py") for package, subject in SUITES]
    done = subprocess.run(
        [PYTHON, "-m", "saem", "run", "-m", "pytest", "-q", "-p", "no:cacheprovider",
         "-c", os.devnull, f"--rootdir={folder}", f"--junitxml={report}", "-m",
         "array_api_backends", *files],
        cwd=tmp_path, env={**environment(ROOT / "kernel"), "SCIPY_ARRAY_API": '["jax.numpy"]'},
        capture_output=True, text=True, check=False)
    assert report.exists(), (done.stdout + done.stderr)[-2000:]
    kinds: dict[str, list[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        what = next((part.tag for part in case if part.tag != "properties"), "passed")
        kinds.setdefault(what, []).append(case.get("name", ""))
    print({what: len(names) for what, names in kinds.items()})
    assert set(kinds.get("failure", [])) <= FAIL_ON_JAX, done.stdout[-4000:]
    assert not kinds.get("error")
    assert len(kinds["passed"]) > 1400
