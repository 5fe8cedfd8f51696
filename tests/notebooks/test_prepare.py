"""Does the setup cell give Saem its jaxlib, and leave the real JAX the one that it needs?

Read before: ``saem.lesson.prepare``.  Read after: nothing.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from saem.lesson import prepare

JAXLIB = next(r for r in prepare.needed() if r.startswith("jaxlib"))


@pytest.fixture
def installed(monkeypatch):
    """What is installed, and a pip that notes what it is asked and changes ``installed``."""
    found = {"jaxlib": "0.7.2", "numpy": "2.0.2", "anywidget": None}
    asked = []
    news = {}

    def versions(requirements):
        names = [re.split("[<>=]", r)[0] for r in requirements]
        return {name: found.get(name, "1.0") for name in names}

    def install(*arguments):
        asked.append(arguments)
        found.update(news)

    monkeypatch.setattr(prepare, "versions", versions)
    return found, asked, news, install


def test_what_is_needed_is_what_the_distribution_and_its_extra_ask_for():
    names = {re.split("[<>=]", r)[0].replace("-", "_") for r in prepare.needed()}
    assert {"jaxlib", "numpy", "ml_dtypes", "opt_einsum", "anywidget", "matplotlib"} <= names
    assert "jupyterlab" not in names and "pytest" not in names


@pytest.mark.parametrize(("version", "answer"), [
    ("0.7.2", False), ("0.9.2", False), ("0.10.0", False), ("0.10.2", True),
    ("0.12.0.1", True), ("0.13.0", False), ("1.0", False),
])
def test_a_version_fits_as_a_requirement_says(version, answer):
    assert prepare.fits(version, "jaxlib>=0.10.2,<0.13") is answer


@pytest.mark.parametrize(("name", "version"), [
    ("ipython", "7.34.0"), ("ipywidgets", "7.7.1"), ("numpy", "2.0.2"), ("matplotlib", "3.10.0")])
def test_what_a_hosted_notebook_has_is_left_alone(name, version):
    """Colab's shell is made for its own IPython; another would break the page."""
    requirement = next(r for r in prepare.needed() if re.split("[<>=]", r)[0] == name)
    assert prepare.fits(version, requirement)


def test_an_older_jaxlib_stays_and_ours_goes_beside_the_package(
        installed, tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "jaxlib")  # as in a fresh kernel
    _, asked, _, install = installed
    prepare.prepare("ko", install, tmp_path / "saem")
    others, ours = asked
    assert not [a for a in others if a.startswith("jaxlib")]
    assert ours == ("--no-deps", "--target", str(tmp_path / "saem_jaxlib"), JAXLIB)
    assert "0.7.2" in capsys.readouterr().out


@pytest.mark.parametrize("version", [None, "0.10.2", "0.12.0.1"])
def test_without_another_jaxlib_all_is_installed_as_usual(installed, version, tmp_path, capsys):
    found, asked, _, install = installed
    found["jaxlib"] = version
    prepare.prepare("en", install, tmp_path / "saem")
    assert asked == [tuple(prepare.needed())]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("language", "words"), [("en", "Restart the kernel"), ("ko", "다시 시작")])
def test_it_says_when_the_kernel_must_be_restarted(installed, language, words, tmp_path):
    found, _, news, install = installed
    found["jaxlib"] = "0.10.2"
    news["numpy"] = "2.3.0"  # numpy is imported here, and pip replaces it
    with pytest.raises(prepare.RestartNeeded, match=words) as raised:
        prepare.prepare(language, install, tmp_path / "saem")
    assert "numpy" in str(raised.value)


def test_a_jaxlib_that_is_imported_already_needs_a_restart(installed, tmp_path):
    # The engine has imported jaxlib in this process, as a cell of the real JAX would have.
    assert "jaxlib" in sys.modules
    with pytest.raises(prepare.RestartNeeded, match="jaxlib"):
        prepare.prepare("en", installed[3], tmp_path / "saem")


def test_the_setup_cell_can_run_it_where_saem_cannot_be_imported():
    path = importlib.util.find_spec("saem").submodule_search_locations[0] + "/lesson/prepare.py"
    assert callable(runpy.run_path(path)["prepare"])
    source = Path(path).read_text(encoding="utf-8")
    assert not re.search(r"^\s*(?:import|from) saem", source, re.M)


def test_the_engine_uses_the_jaxlib_beside_it_and_leaves_the_other(tmp_path):
    real = Path(importlib.util.find_spec("jaxlib").origin).parent
    package = Path(importlib.util.find_spec("saem").origin).parent
    (tmp_path / "saem").symlink_to(package)
    (tmp_path / "saem_jaxlib").mkdir()
    (tmp_path / "saem_jaxlib" / "jaxlib").symlink_to(real)
    old = tmp_path / "old" / "jaxlib"
    old.mkdir(parents=True)
    (old / "__init__.py").write_text("raise ImportError('this is the jaxlib of JAX')\n")
    code = "import saem, jaxlib; print(saem._jaxlib.__version__, jaxlib.__file__)"
    places = os.pathsep.join(map(str, (tmp_path, tmp_path / "old")))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": places})
    assert done.returncode == 0, done.stderr
    version, place = done.stdout.split()
    assert version == importlib.metadata.version("jaxlib")
    assert place.startswith(str(tmp_path / "saem_jaxlib"))
