"""Does `saem cache` show what is kept, and do `clear` and `move` lose nothing but programs?

Read before: ``saem.cli.cache``, ``test_cache_folder.py``.
Invariant: what a command says is what is on disk afterwards.
"""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from saem.cli.commands import saem
from saem.cli.server import make_environment
from saem.core import config
from saem.disk import cache_folder

NAMES = ("jax_compilation_cache_dir", "jax_compilation_cache_max_size")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with three programs in its cache folder."""
    for name in ("SAEM_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in NAMES:
        monkeypatch.setattr(config.SETTINGS[name], "was_set", False)
    folder = cache_folder.base()[0] / "programs"
    for number in range(3):
        cache_folder.write(folder / (f"{number:064}" + cache_folder.ENDING), bytes(1000))
    cache_folder.append(folder, hits=7, saved=1.25)
    with config.enable_compilation_cache(True):
        yield tmp_path


def run(*arguments, status=0):
    done = CliRunner().invoke(saem, ["cache", *map(str, arguments)])
    assert done.exit_code == status, done.output
    return done.output


def test_show_tells_what_is_there(home):
    folder = cache_folder.base()[0] / "programs"
    for arguments in ((), ("show",)):
        text = run(*arguments).replace("\n", "")
        for part in ("programs", "3", "2.9 kB", "limit 256.0 MB", "7 times", "1.2 s"):
            assert part in text
        assert "problem" not in text
        assert json.loads(run(*arguments, "--json")) == {
            "folder": str(folder), "chosen_by": "default", "programs": 3, "bytes": 3000,
            "limit": 256 * 2**20, "hits": 7, "saved_seconds": 1.2, "problem": ""}
    assert run("--json", "show") == run("show", "--json")
    assert run("--json", "where") == run("where", "--json")
    assert run("where") == f"{folder}\n"
    assert json.loads(run("where", "--json")) == str(folder)


def test_show_of_an_empty_home_makes_nothing(home, monkeypatch):
    (home / "new").mkdir()
    monkeypatch.setenv("HOME", str(home / "new"))
    told = json.loads(run("--json"))
    assert told["programs"] == 0 and told["problem"] == ""
    assert list((home / "new").iterdir()) == []


def test_what_is_wrong_is_told(home, monkeypatch):
    def problem():
        return json.loads(run("--json"))["problem"]

    folder = cache_folder.base()[0] / "programs"
    folder.chmod(0o777)
    assert "others may write" in problem() and "others may write" in run("clear", status=1)
    folder.chmod(0o700)
    with config.enable_compilation_cache(False):
        assert "SAEM_ENABLE_COMPILATION_CACHE" in problem()
        assert run("where", status=1) == ""
        assert "turned off" in run("clear", status=1)
    with config.compilation_cache_max_size(0):
        assert "max_size" in problem()
    with config.compilation_cache_dir(None):
        assert "jax_compilation_cache_dir" in problem()
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK and real(path, mode))
    assert "may not be written to" in problem()
    monkeypatch.undo()


def test_clear_removes_programs_alone(home):
    folder = cache_folder.base()[0] / "programs"
    (folder / "mine.txt").write_text("mine")
    assert run("clear") == f"Removed 3 programs (2.9 kB) from {folder}.\n"
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    assert json.loads(run("clear", "--json")) == {
        "folder": str(folder), "removed": 0, "bytes": 0, "left": 0}


def test_move_leaves_a_link_and_can_be_taken_back(home):
    folder = cache_folder.base()[0] / "programs"
    before = {path.name: path.read_bytes() for path in folder.glob("*-cache")}
    old = {path.name: path.stat().st_mtime for path in folder.glob("*-cache")}

    def same(place):
        assert {path.name: path.read_bytes() for path in place.glob("*-cache")} == before
        assert {path.name: pytest.approx(path.stat().st_mtime)
                for path in place.glob("*-cache")} == old

    output = run("move", home / "large")
    assert "Moved 3 programs" in output and "is a link" in output
    assert folder.is_symlink() and folder.resolve() == home / "large" / "programs"
    same(folder)
    assert json.loads(run("--json"))["hits"] == 7
    assert "Moved 0 programs" in run("move", home / "large")
    assert json.loads(run("move", home / "larger", "--json"))["linked"] is True
    same(home / "larger" / "programs")
    assert not (home / "large" / "programs").exists()
    run("move", folder.parent)
    assert not folder.is_symlink()
    same(folder)


def test_move_of_a_folder_that_a_variable_names(home, monkeypatch):
    monkeypatch.setenv("SAEM_CACHE_DIR", str(cache_folder.base()[0]))
    output = run("move", home / "large")
    assert f"set SAEM_CACHE_DIR={home / 'large'}" in output
    assert len(list((home / "large" / "programs").glob("*-cache"))) == 3


def test_move_goes_nowhere_unsafe(home):
    (home / "theirs" / "programs").mkdir(parents=True)
    (home / "theirs" / "programs").chmod(0o777)
    assert "others may write" in run("move", home / "theirs", status=1)
    (home / "file").write_text("mine")
    assert "Cannot move" in run("move", home / "file" / "below", status=1)
    assert json.loads(run("--json"))["programs"] == 3
    with config.compilation_cache_dir(str(home)):
        assert "Change that setting" in run("move", home / "large", status=1)


def test_lab_leaves_the_cache_to_the_kernels(home):
    """`saem lab` warms nothing: it sets no variable of the cache and compiles nothing."""
    environment = make_environment(home / "lessons", "ko", {})
    assert not [name for name in environment if "CACHE" in name]
    folder = cache_folder.base()[0] / "programs"
    before = sorted(folder.iterdir())
    CliRunner().invoke(saem, ["lab", "--port", "70000", str(home / "lessons")])
    assert sorted(folder.iterdir()) == before
