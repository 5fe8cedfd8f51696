"""Does ``saem check`` see every way in which a notebook can stop showing what it shows?"""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time

import nbformat
import pytest
from click.testing import CliRunner
from nbformat.v4 import new_code_cell, new_notebook, new_output

from saem.cli.commands import saem
from saem.l10n import check as checking

COUNT = itertools.count()


def stream(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def value(text, **more):
    return new_output("execute_result", {"text/plain": text, **more}, execution_count=1)


def cell(source, *outputs, tags=(), run=True):
    return new_code_cell(source, id=f"c{next(COUNT)}", outputs=list(outputs),
                         execution_count=1 if run else None, metadata={"tags": list(tags)})


def notebook(path, *cells):
    nbformat.write(new_notebook(cells=list(cells)), path)
    return path


GOOD = [
    cell("import os\nprint('a'); print('b')", stream("a\nb\n")),
    cell("1 / 3", value("0.333333")),
    cell("object()", value("<object at 0x7f00aa00bb>")),
    cell("1 / 0", new_output("error", ename="ZeroDivisionError", evalue="division by zero"),
         tags=["raises-exception"]),
    cell("os.getpid()", value("1"), tags=["nondeterministic"]),
    cell("undefined", value("1"), tags=["skip-execution"]),
    cell("'never run'", run=False),
    cell("open('beside.txt').read()", value("'here'")),
]
BAD = [
    ("stdout differs", cell("print(1)", stream("2\n"))),
    ("value differs", cell("0.5", value("0.6"))),
    ("value differs", cell("'a'", value("'b'"))),
    ("other kinds", cell("print(1)", value("1"))),
    ("other kinds", cell("1", run=True)),
    ("other kinds", cell("1;", value("1"))),
    ("raised ZeroDivisionError", cell("1 / 0", value("1"))),
    ("nothing raised", cell("1", value("1"), tags=["raises-exception"])),
    ("error differs", cell("1 / 0", new_output("error", ename="TypeError", evalue="x"),
                           tags=["raises-exception"])),
    ("other kinds", cell("import sys\nprint(1, file=sys.stderr)", stream("1\n"))),
]


def test_a_good_notebook_passes_and_is_not_written(tmp_path):
    (tmp_path / "beside.txt").write_text("here")
    path = notebook(tmp_path / "good.ipynb", *GOOD)
    before = path.read_bytes()
    assert checking.check(path) == []
    assert path.read_bytes() == before


def test_every_fault_is_found_in_its_cell(tmp_path):
    path = notebook(tmp_path / "bad.ipynb", *(c for _, c in BAD))
    found = checking.check(path)
    assert [d.number for d in found] == list(range(1, len(BAD) + 1))
    for difference, (what, _) in zip(found, BAD, strict=True):
        assert what in str(difference)


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [("1.00001 2", "1.00002 2", True), ("1.0 2", "1.0 3", False), ("[1. 2.]", "[1.  2.]", True),
     ("1.5e-07", "1.6e-07", True), ("1.5", "1.6", False), ("x 1.5", "y 1.5", False)],
)
def test_numbers_have_a_tolerance(one, two, same):
    assert checking.same_text(one, two, 2e-5) is same


def test_a_long_line_and_one_that_was_written_over(tmp_path):
    path = notebook(
        tmp_path / "long.ipynb",
        cell("print('x' * 2_000_000)", stream("x" * 2_000_000 + "\n")),
        cell("for i in range(3): print(i, end='\\r')\nprint('done')", stream("done\n")),
        cell("print('a\\r\\nb')", stream("a\nb\n")))
    assert checking.check(path, timeout=60) == []


def test_a_notebook_in_another_language_is_refused(tmp_path):
    path = notebook(tmp_path / "julia.ipynb", cell("1", value("1")))
    stored = nbformat.read(path, as_version=4)
    stored.metadata = nbformat.from_dict({"kernelspec": {"name": "julia-1.10", "display_name": "J"},
                                          "language_info": {"name": "julia"}})
    nbformat.write(stored, path)
    with pytest.raises(ValueError, match=r"needs the kernel 'julia-1\.10'"):
        checking.check(path)


def test_a_cell_that_takes_too_long_is_named(tmp_path):
    path = notebook(tmp_path / "slow.ipynb", cell("1", value("1")),
                    cell("import time; time.sleep(300)"))
    (found,) = checking.check(path, timeout=2)
    assert "took more than 2 s" in str(found)


def test_the_cell_in_which_the_kernel_died_is_named(tmp_path):
    path = notebook(tmp_path / "dead.ipynb", cell("1", value("1")), cell("2", value("2")),
                    cell("import os; os._exit(1)"))
    (found,) = checking.check(path, timeout=60)
    assert found.number in (2, 3) and "the kernel died" in str(found)


def test_json_that_is_no_object_is_not_a_notebook(tmp_path):
    path = tmp_path / "list.ipynb"
    path.write_text("[1, 2]")
    with pytest.raises(ValueError, match="is not a notebook: its JSON is not an object"):
        checking.check(path)


def test_the_command_prints_and_fails(tmp_path):
    good = notebook(tmp_path / "good.ipynb", cell("1", value("1")))
    bad = notebook(tmp_path / "bad.ipynb", cell("1", value("2")))
    run = CliRunner().invoke(saem, ["check", str(good)])
    assert (run.exit_code, run.output) == (0, f"{good}: as stored\n")
    run = CliRunner().invoke(saem, ["check", str(bad), "--json"])
    assert run.exit_code == 1
    (row,) = json.loads(run.output)
    assert (row["file"], row["expected"], row["got"]) == (str(bad), "2", "1")


@pytest.mark.parametrize("arguments", [[], ["--kernel", "nobody-has-it"]])
def test_a_file_that_cannot_be_run_keeps_the_others_from_nothing(tmp_path, arguments):
    (tmp_path / "no.ipynb").write_text("no json")
    bad = notebook(tmp_path / "bad.ipynb", cell("1", value("2")))
    run = CliRunner().invoke(saem, ["check", str(tmp_path / "no.ipynb"), str(bad), "--json",
                                    *arguments])
    assert run.exit_code == 1
    first, second = json.loads(run.output)
    assert first["cell"] == "?" and "is not a notebook" in first["what"]
    assert second["got"] == "1" or "nobody-has-it" in second["what"]


def stopped(words, ready):
    """The exit status and the last line of a command that Ctrl-C stops once ``ready`` is there."""
    with subprocess.Popen([sys.executable, "-m", "saem", *words], text=True,
                          stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not ready.exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert "Traceback" not in said, said
    return process.returncode, said.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_ends_a_check_with_one_line(tmp_path):
    ready = tmp_path / "ready"
    slow = notebook(tmp_path / "a.ipynb",
                    cell(f"open({str(ready)!r}, 'w').close(); import time; time.sleep(60)"))
    assert stopped(["check", str(slow)], ready) == (130, "Interrupted.")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_leaves_no_half_built_notebook(tree, tmp_path):
    ready = tmp_path / "ready"
    source = tree.lesson("01")
    source.write_text(source.read_text().replace(
        "value = 1 + 1", f"open({str(ready)!r}, 'w').close(); import time; time.sleep(60)"))
    build = ["l10n", "--root", str(tree.root), "build", "01", "--lang", "en"]
    assert stopped(build, ready) == (130, "Interrupted.")
    assert [p.name for p in (tree.root / "en").iterdir()] == ["glossary.md"]


@pytest.mark.parametrize("arguments", [["--timeout", "0"], ["--timeout", "x"],
                                       ["--tolerance", "-1"], ["--tolerance", "nan"],
                                       ["--tolerance", "inf"]])
def test_settings_that_mean_nothing_are_refused(tmp_path, arguments):
    good = notebook(tmp_path / "good.ipynb", cell("1", value("1")))
    run = CliRunner().invoke(saem, ["check", str(good), *arguments])
    assert run.exit_code == 2 and arguments[0] in run.output


def test_the_pytest_plugin_runs_notebooks(tmp_path):
    notebook(tmp_path / "good.ipynb", cell("1", value("1")))
    notebook(tmp_path / "bad.ipynb", cell("1.5", value("1.6")))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "saem.cli.pytest_plugin", "-p",
               "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "cell 1" in done.stdout and "1.6" in done.stdout
    (tmp_path / "pytest.ini").write_text("[pytest]\nsaem_tolerance = 0.5\n")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "2 passed" in done.stdout
    for setting, refusal in (("saem_timeout = long", "saem_timeout: 'long' is not a valid"),
                             ("saem_timeout = 0", "saem_timeout: 0 is not in the range x>=1"),
                             ("saem_tolerance = nan", "saem_tolerance: nan is not finite")):
        (tmp_path / "pytest.ini").write_text(f"[pytest]\n{setting}\n")
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert refusal in done.stderr and done.returncode == 4, done.stderr
