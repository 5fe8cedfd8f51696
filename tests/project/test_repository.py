"""Is the tree as its own pages say: rooms, versions, dependencies, lock files, openings?

These tests read files and run nothing of the engine.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from budget import over_budget, sources

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
TOP_LEVEL = {
    "pyproject.toml", "Makefile", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md",
    "CHANGELOG.md", "LICENSE", ".ci", ".github", ".gitignore", "kernel", "extension", "notebooks",
    "docs", "en", "ko", "tests",
}  # fmt: skip


def tracked() -> list[str]:
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("not a git clone")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_the_top_level_holds_the_rooms_and_nothing_else():
    assert {name.split("/")[0] for name in tracked()} <= TOP_LEVEL


def test_one_version_everywhere():
    version = PROJECT["project"]["version"]
    package = json.loads((ROOT / "extension/package.json").read_text("utf-8"))
    assert package["version"] == version
    init = (ROOT / "kernel/saem/__init__.py").read_text("utf-8")
    stated = re.search(r'^__version__ = "(.*)"$', init, re.MULTILINE)
    assert stated is None or stated[1] == version
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_extension_asks_for_the_oldest_jupyterlab_that_saem_takes():
    needs = PROJECT["project"]["optional-dependencies"]["lab"]
    oldest = next(m[1] for need in needs if (m := re.match(r"jupyterlab>=([\d.]+)", need)))
    package = json.loads((ROOT / "extension/package.json").read_text("utf-8"))
    ranges = {name: asked for name, asked in package["dependencies"].items()
              if name.startswith("@jupyterlab/")}
    assert ranges["@jupyterlab/application"] == f"^{oldest}.0"
    # JupyterLab numbers some packages on their own: 4.2 has apputils 4.3, services 7.2 …
    own = {name: asked for name, asked in ranges.items() if asked != f"^{oldest}.0"}
    assert set(own) == {f"@jupyterlab/{name}" for name in (
        "apputils", "coreutils", "rendermime-interfaces", "services")}
    assert own["@jupyterlab/services"] == f"^7.{oldest.split('.')[1]}.0"


def test_no_file_names_a_package_registrys_host():
    hosts = ["registry.npm" + "js", "pypi" + ".org", "python" + "hosted", "deb.deb" + "ian"]
    pattern = re.compile("|".join(map(re.escape, hosts)))
    guilty = []
    for name in tracked():
        data = (ROOT / name).read_bytes()
        if b"\0" not in data[:4096] and pattern.search(data.decode("utf-8", "replace")):
            guilty.append(name)
    assert guilty == []


def test_the_engine_asks_for_four_packages_only():
    names = [re.split(r"[<>=\[ ]", need)[0] for need in PROJECT["project"]["dependencies"]]
    assert names == ["jaxlib", "ml_dtypes", "numpy", "opt_einsum"]


def test_the_lens_asks_for_what_it_imports():
    project = PROJECT["project"]
    needs = [*project["dependencies"], *project["optional-dependencies"]["lens"]]
    asked = {re.split(r"[<>=\[ ]", need)[0].lower() for need in needs}
    imported = set()
    for room in ("lens", "lesson", "observe"):
        for file in (ROOT / "kernel/saem" / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0].lower() for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    imported.add(node.module.split(".")[0].lower())
    ipythons_own = {"traitlets"}
    assert imported - sys.stdlib_module_names - {"saem"} <= asked | ipythons_own


def test_every_room_is_in_the_layers_contract():
    layers = next(
        contract
        for contract in PROJECT["tool"]["importlinter"]["contracts"]
        if contract["id"] == "layers"
    )
    named = set(re.findall(r"\w+", " ".join(layers["layers"])))
    rooms = {
        path.stem
        for path in (ROOT / "kernel/saem").iterdir()
        if (path.is_dir() and any(path.glob("*.py"))) or path.suffix == ".py"
    }
    ignored = {"__init__", *layers.get("exhaustive_ignores", [])}
    assert rooms - ignored <= named


def test_no_source_is_left_unfinished():
    marks = re.compile("TO" + "DO|FIX" + "ME|XX" + "X")
    guilty = [
        path.relative_to(ROOT).as_posix()
        for path in sources(ROOT)
        if marks.search(path.read_text("utf-8"))
    ]
    assert guilty == []


def test_every_module_opens_with_a_question():
    """A package may open with a plain sentence; its modules ask."""
    silent = []
    for path in (ROOT / "kernel/saem").rglob("*.py"):
        opening = re.match(r'r?"""(.*?)(\n\n|""")', path.read_text("utf-8"), re.DOTALL)
        if opening is None or ("?" not in opening[1] and path.name != "__init__.py"):
            silent.append(path.relative_to(ROOT).as_posix())
    assert sorted(silent) == []


def test_the_tests_that_sources_name_are_there():
    """An invariant names the test that holds it; a renamed test takes its mentions along."""
    named = re.compile(r"\b(tests/[\w/]+\.py)\b|\((test/[\w./]+\.ts)\)")
    missing = {}
    for path in sources(ROOT):
        folder = ROOT / "extension" if path.suffix == ".ts" else ROOT
        for python, script in named.findall(path.read_text("utf-8")):
            if not ((ROOT / python) if python else (folder / script)).is_file():
                missing.setdefault(python or script, path.relative_to(ROOT).as_posix())
    assert missing == {}


@pytest.mark.parametrize(
    ("text", "excess"),
    [
        ("x = 1\n" * 600, []),
        ("x = 1\n" * 601, ["a.py:601: 601 lines, at most 600"]),
        ("#" * 101, ["a.py:1: 101 characters, at most 100"]),
        ("def f():\n" + "    x = 1\n" * 59, []),
        ("def f():\n" + "    x = 1\n" * 60, ["a.py:1: f has 61 lines, at most 60"]),
    ],
)
def test_the_budget_counts_right(text, excess):
    assert list(over_budget("a.py", text)) == excess


def test_no_two_test_modules_have_one_name():
    """Test folders are no packages, so pytest knows a module by its name alone."""
    names = [Path(name).name for name in tracked() if name.startswith("tests/")
             and name.endswith(".py") and "/scripts/" not in name and "/benchmarks/" not in name]
    twice = {name for name in names if names.count(name) > 1} - {"conftest.py"}
    assert twice == set()
