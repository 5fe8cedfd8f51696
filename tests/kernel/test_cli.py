"""Does `saem lab` keep a learner's work safe, and does it start the right server?

The safety of the learner's files is checked as a history: hypothesis makes new versions of the
lessons, edits, deletions and files that stand in the way, and a plain dictionary of what the
learner wrote is the judge.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saem.cli import commands, doctor, main, server
from saem.cli.lessons import (
    LessonError,
    Manifest,
    copy_lessons,
    digest_of,
    first_lesson,
)
from saem.core.files import write_whole

LESSONS = ("ko/01-arrays.ipynb", "en/01-arrays.ipynb", "en/images/lens.png")
IN_THE_WAY = ("ko/01-arrays.new.ipynb", "ko/01-arrays.new2.ipynb", "ko/own.ipynb")


def make_lessons(folder: Path, version: int) -> Path:
    for name in LESSONS:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"lesson {name} version {version}".encode())
    return folder


# --- copying -------------------------------------------------------------------------------------

actions = st.lists(
    st.one_of(
        st.tuples(st.just("publish")),
        st.tuples(st.just("copy")),
        st.tuples(st.just("edit"), st.sampled_from(LESSONS + IN_THE_WAY), st.integers(0, 9)),
        st.tuples(st.just("delete"), st.sampled_from(LESSONS + IN_THE_WAY)),
        st.tuples(st.just("forget")),  # the manifest is lost or broken
    ),
    max_size=14,
)


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(history=actions)
def test_no_file_of_the_learners_is_ever_changed(history, tmp_path_factory):
    base = tmp_path_factory.mktemp("history")
    version = 1
    source, folder = make_lessons(base / "source", version), base / "work"
    learners: dict[str, bytes] = {}
    for action, *detail in [*history, ("copy",)]:
        if action == "publish":
            version += 1
            make_lessons(source, version)
        elif action == "copy":
            copy_lessons(source, folder)
        elif action == "edit":
            path = folder / detail[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(f"the learner's own {detail[1]}".encode())
            learners[detail[0]] = path.read_bytes()
        elif action == "delete":
            (folder / detail[0]).unlink(missing_ok=True)
            learners.pop(detail[0], None)
        elif (folder / ".saem").is_dir():
            (folder / ".saem" / "manifest.json").write_text("{broken")
        for name, data in learners.items():
            assert (folder / name).read_bytes() == data
    for name in set(LESSONS) - set(learners):  # and what is not the learner's is there
        assert (folder / name).is_file()
    assert not list(folder.rglob("*.part"))


def test_an_untouched_lesson_is_renewed_and_a_changed_one_gets_a_neighbour(tmp_path):
    source, folder = make_lessons(tmp_path / "source", 1), tmp_path / "work"
    assert {outcome.kind for outcome in copy_lessons(source, folder)} == {"written"}
    assert {outcome.kind for outcome in copy_lessons(source, folder)} == {"same"}
    korean = folder / "ko/01-arrays.ipynb"
    korean.write_text("answers")
    assert [o.kind for o in copy_lessons(source, folder)] == ["kept", "same", "same"]
    make_lessons(source, 2)
    changed, *others = copy_lessons(source, folder)
    assert changed.kind == "beside"
    assert changed.beside == folder / "ko/01-arrays.new.ipynb"
    assert changed.beside.read_text() == "lesson ko/01-arrays.ipynb version 2"
    assert korean.read_text() == "answers"
    assert {outcome.kind for outcome in others} == {"renewed"}
    assert (folder / "en/01-arrays.ipynb").read_text().endswith("version 2")
    # the same version is not offered twice, not even when its copy was thrown away
    changed.beside.unlink()
    assert copy_lessons(source, folder)[0].kind == "kept"
    assert not changed.beside.exists()


def test_a_neighbour_that_the_learner_changed_is_kept_too(tmp_path):
    source, folder = make_lessons(tmp_path / "source", 1), tmp_path / "work"
    copy_lessons(source, folder)
    (folder / "ko/01-arrays.ipynb").write_text("answers")
    (folder / "ko/01-arrays.new.ipynb").write_text("notes")
    make_lessons(source, 2)
    assert copy_lessons(source, folder)[0].beside == folder / "ko/01-arrays.new2.ipynb"
    assert (folder / "ko/01-arrays.new.ipynb").read_text() == "notes"


def test_a_link_in_a_lessons_place_is_not_followed(tmp_path):
    source, folder = make_lessons(tmp_path / "source", 1), tmp_path / "work"
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (folder / "ko").mkdir(parents=True)
    (folder / "ko/01-arrays.ipynb").symlink_to(precious)
    assert copy_lessons(source, folder)[0].kind == "beside"
    assert precious.read_text() == "mine"
    assert (folder / "ko/01-arrays.ipynb").is_symlink()


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "work").write_text("a file")
    with pytest.raises(LessonError, match="is a file, but a folder is needed"):
        copy_lessons(make_lessons(tmp_path / "source", 1), tmp_path / "work")
    with pytest.raises(LessonError, match="Try another folder"):
        copy_lessons(make_lessons(tmp_path / "source", 1), tmp_path / "work" / "inside")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions work differently here")
def test_a_folder_without_permission_is_refused(tmp_path):
    source = make_lessons(tmp_path / "source", 1)
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    me = os.geteuid()
    if me == 0:  # root may write anywhere, so become nobody for a moment
        os.seteuid(65534)
    try:
        with pytest.raises(LessonError, match=r"Cannot write lessons into .*Permission denied"):
            copy_lessons(source, locked / "work")
    finally:
        os.seteuid(me)


@pytest.mark.parametrize("text", ["", "[]", '{"written": 3, "offered": {}}', "\udcff"])
def test_a_broken_manifest_counts_as_empty(tmp_path, text):
    (tmp_path / ".saem").mkdir()
    (tmp_path / ".saem" / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert Manifest.read(tmp_path) == Manifest()


def test_a_manifest_is_read_as_it_was_written(tmp_path):
    manifest = Manifest({"ko/01.ipynb": digest_of(b"a")}, {"ko/01.ipynb": digest_of(b"b")})
    manifest.write(tmp_path)
    assert Manifest.read(tmp_path) == manifest


# --- language, port, settings --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "environment", "language"),
    [
        ("en", {"LANG": "ko_KR.UTF-8"}, "en"),
        (None, {"LANG": "ko_KR.UTF-8"}, "ko"),
        (None, {"LC_ALL": "en_US.UTF-8", "LANG": "ko_KR.UTF-8"}, "en"),
        (None, {"LC_ALL": "", "LANG": "ko"}, "ko"),
        (None, {"LANG": "C.UTF-8"}, "en"),
        (None, {"LANG": "fr_FR.UTF-8"}, "en"),
        (None, {"LANG": "kok_IN"}, "en"),
        (None, {"LANG": "Korean_Korea.949"}, "ko"),
        (None, {"SAEM_LANG": "ko", "LANG": "C"}, "ko"),
    ],
)
def test_the_language_is_the_one_asked_for_else_the_locales(wanted, environment, language):
    assert server.choose_language(wanted, environment) == language


def test_a_port_in_use_is_said(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(server.ServerError, match=rf"Port {port} .* is in use"):
            server.choose_port(port)
    assert server.choose_port(None) >= 8888


def test_the_first_lesson_is_that_of_the_language(tmp_path):
    source = make_lessons(tmp_path, 1)
    assert first_lesson(source, "ko") == Path("ko/01-arrays.ipynb")
    (source / "ko/01-arrays.ipynb").unlink()
    with pytest.raises(LessonError, match="no lessons in 'ko'"):
        first_lesson(source, "ko")


def test_the_environment_keeps_what_the_user_set(tmp_path):
    inherited = {"JUPYTER_CONFIG_PATH": "/etc/lab", "HOME": "/home/ann", "SAEM_LANG": "en"}
    made = server.make_environment(tmp_path, "ko", inherited)
    assert made["JUPYTER_CONFIG_PATH"].split(os.pathsep)[1:] == ["/etc/lab"]
    assert made["HOME"] == "/home/ann"
    assert made["SAEM_LANG"] == "ko"


# --- the command ---------------------------------------------------------------------------------


def test_missing_packages_are_named_with_their_extra(monkeypatch, capsys):
    monkeypatch.setattr(main, "NEEDED", {"click": "click", "no_such_module": "no-such-package"})
    with pytest.raises(SystemExit) as stopped:
        main.main(["--version"])
    assert stopped.value.code == 1
    message = capsys.readouterr().err
    assert "no-such-package" in message
    assert "pip install 'saem[lab]'" in message


def test_every_package_that_the_command_imports_is_looked_for():
    """In another process: which packages do the modules import that the command loads?"""
    code = (
        "import ast, sys; from pathlib import Path; import saem.cli.commands, saem.l10n.commands\n"
        "files = [Path(module.__file__) for name, module in sys.modules.items()\n"
        "         if name.startswith(('saem.cli', 'saem.l10n'))]\n"
        "for node in [n for file in files for n in ast.walk(ast.parse(file.read_text()))]:\n"
        "    names = [a.name for a in node.names] if isinstance(node, ast.Import) else []\n"
        "    names += [node.module] if isinstance(node, ast.ImportFrom) else []\n"
        "    print(*(name.split('.')[0] for name in names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split()) - sys.stdlib_module_names - {"saem"}
    assert {"click", "polib"} <= imported <= set(main.NEEDED)


def test_main_imports_nothing_from_the_extra():
    code = (
        "import sys, saem.cli.main; "
        "print([m for m in ('click', 'rich', 'IPython', 'scipy') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == "[]"


def test_a_failure_is_one_message_and_status_1(tmp_path, monkeypatch):
    source = make_lessons(tmp_path / "source", 1)
    monkeypatch.setattr(commands, "find_lessons", lambda: source)
    (tmp_path / "work").write_text("a file")
    result = CliRunner().invoke(commands.saem, ["lab", str(tmp_path / "work")])
    assert result.exit_code == 1
    assert "is a file, but a folder is needed" in result.output
    assert "Traceback" not in result.output


def test_the_learner_is_told_what_was_kept(tmp_path, monkeypatch):
    source = make_lessons(tmp_path / "source", 1)
    started = []
    monkeypatch.setattr(commands, "find_lessons", lambda: source)
    monkeypatch.setattr(commands, "run_server", lambda command, env: started.append(command) or 0)
    arguments = ["lab", "--lang", "ko", "--no-browser", str(tmp_path / "work")]
    assert "3 new" in CliRunner().invoke(commands.saem, arguments).output
    (tmp_path / "work/ko/01-arrays.ipynb").write_text("answers")
    make_lessons(source, 2)
    result = CliRunner().invoke(commands.saem, arguments)
    assert result.exit_code == 0, result.output
    assert "ko/01-arrays.ipynb has your changes and stays as it is" in result.output
    assert "the new version is ko/01-arrays.new.ipynb" in result.output
    assert "--LabApp.default_url=/lab/tree/ko/01-arrays.ipynb" in started[-1]
    assert "--ServerApp.ip=127.0.0.1" in started[-1]


def test_the_translators_tools_are_there():
    result = CliRunner().invoke(commands.saem, ["l10n", "--help"])
    assert result.exit_code == 0, result.output
    assert "build" in result.output


def test_a_command_that_is_loaded_later_is_described_as_it_describes_itself():
    later = [c for c in commands.saem.commands.values() if isinstance(c, commands.Later)]
    assert [c.name for c in later] == ["check", "l10n"]
    for command in later:
        itself = command.load()
        assert itself.name == command.name
        assert itself.get_short_help_str(100) == command.short_help
        result = CliRunner().invoke(commands.saem, [command.name, "--help"])
        assert result.output.startswith(f"Usage: saem {command.name} [OPTIONS]"), result.output


@pytest.mark.parametrize(("words", "unloaded"), [
    (["--help"], "nbformat jupytext jupyter_client nbclient polib"),
    (["cache"], "nbformat jupytext jupyter_client nbclient polib"),
    (["l10n", "--help"], "rfc3987_syntax"),  # what takes a second and no notebook needs
])
def test_a_command_loads_what_it_needs_alone(words, unloaded):
    code = ("import sys, click\n"
            "from saem.cli.commands import saem\n"
            f"saem({words}, standalone_mode=False)\n"
            f"print('loaded', [m for m in {unloaded.split()} if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    assert done.stdout.splitlines()[-1] == "loaded []"


def test_the_overview_of_a_session_says_what_it_cannot_do(tmp_path):
    none = CliRunner().invoke(commands.saem, ["gates", str(tmp_path)])
    assert none.exit_code == 0 and "No notebook with a question" in none.output
    page = tmp_path / "missing" / "page.html"
    unwritable = CliRunner().invoke(commands.saem, ["gates", "--page", str(page), str(tmp_path)])
    assert unwritable.exit_code == 1 and f"Cannot write the page {page}" in unwritable.output
    (tmp_path / "half.ipynb").write_text("{")
    half = CliRunner().invoke(commands.saem, ["gates", str(tmp_path)])
    assert half.exit_code == 0 and "half.ipynb cannot be read as a notebook" in half.output


@pytest.mark.parametrize("words", [["gates", ".", "--page"], ["l10n", "page", "03"]])
def test_a_page_is_not_written_over_a_notebook(tmp_path, words):
    own = tmp_path / "01-arrays.ipynb"
    own.write_text("what a learner wrote", encoding="utf-8")
    done = CliRunner().invoke(commands.saem, [*words, str(own)])
    assert done.exit_code == 2 and "ends with .html" in done.output
    assert own.read_text(encoding="utf-8") == "what a learner wrote"


def test_a_terminal_of_few_letters_gets_the_others_as_question_marks():
    done = subprocess.run([sys.executable, "-m", "saem", "l10n", "status"], capture_output=True,
                          check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and not done.stderr, done.stderr
    total = done.stdout.decode("ascii").splitlines()[-1]
    assert total.startswith("all") and "?" in total


def test_a_reader_that_has_seen_enough_is_no_error():
    with subprocess.Popen([sys.executable, "-m", "saem", "l10n", "extract"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()  # as `head` does
        assert not process.stderr.read()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [["doctor"], ["cache"], ["l10n", "status"]])
def test_a_full_disk_is_one_line(words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "saem", *words], stdout=full, text=True,
                              stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1 and "No space left" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("words", "said"), [
    (["--name", ""], "needs a name"),
    (["--display-name", " "], "needs a display name"),
    (["--user"], "give --user or --prefix, not both"),
])
def test_a_kernel_needs_a_name_and_one_place(tmp_path, words, said):
    done = CliRunner().invoke(commands.saem, ["kernel", "install", "--prefix", str(tmp_path),
                                              *words])
    assert done.exit_code == 1 and said in done.output
    assert not list(tmp_path.iterdir())


def test_a_table_in_a_pipe_has_one_line_for_each_row(monkeypatch):
    path = "/" + "/".join(["a folder with a long name"] * 6)
    found = [doctor.Finding("cache", f"51594 programs in {path}"), doctor.Finding("next", "1")]
    monkeypatch.setattr(commands, "examine", lambda: found)
    lines = CliRunner().invoke(commands.saem, ["doctor"], env={"COLUMNS": ""}).output.splitlines()
    assert len(lines) == 3 and path in lines[1]


def test_the_doctor_names_what_is_missing(monkeypatch):
    monkeypatch.setattr("saem.cli.doctor.LAB", ("no-such-package",))
    result = CliRunner().invoke(commands.saem, ["doctor"], terminal_width=200)
    assert "no-such-package" in result.output
    assert "pip" in result.output


@pytest.mark.parametrize("driver", [None, "/usr/bin/nvidia-smi"])
def test_the_doctor_sees_a_gpu_that_is_not_used(monkeypatch, driver):
    monkeypatch.setattr("saem.cli.doctor.shutil.which", lambda name: driver)
    finding = doctor._devices()
    assert finding.found.startswith("cpu:0")
    assert ("GPU is not used" in finding.found) == bool(driver)
    assert finding.cure == ("pip install 'saem[cuda13]'" if driver else "")


def test_the_doctor_knows_a_list_of_fonts_that_is_older_than_the_font(monkeypatch):
    fonts = pytest.importorskip("matplotlib.font_manager")
    monkeypatch.setattr(fonts.fontManager, "ttflist", [])
    monkeypatch.setattr(fonts, "findSystemFonts", lambda: ["/fonts/NanumGothic.ttf"])
    assert "delete" in doctor._korean_font().cure
    monkeypatch.setattr(fonts, "findSystemFonts", lambda: [])
    assert "fonts-nanum" in doctor._korean_font().cure


@pytest.mark.skipif(os.name == "nt", reason="signals work differently there")
def test_a_stopped_command_leaves_no_server_behind(tmp_path):
    code = (
        "import sys; from saem.cli.server import run_server; import os; "
        "sys.exit(run_server([sys.executable, '-c', "
        "\"import os, time; print(os.getpid(), flush=True); time.sleep(60)\"], os.environ))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    ) as command:
        assert command.stdout is not None
        child = int(command.stdout.readline())
        command.terminate()
        assert command.wait(timeout=20) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


# --- the server itself ---------------------------------------------------------------------------


def ask(url: str, token: str | None = None) -> tuple[int, str]:
    request = urllib.request.Request(url)
    if token is not None:
        request.add_header("Authorization", f"token {token}")
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""


def wait_for_server(runtime: Path, process: subprocess.Popen, log: Path) -> dict:
    """What the server wrote of itself (url, token) once it answers."""
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        for path in runtime.glob("jpserver-*.json"):
            about = json.loads(path.read_text() or "{}")
            if about and not server.is_free(about["port"]):
                return about
        time.sleep(0.2)
    raise AssertionError(f"the server did not come up:\n{log.read_text()}")


def test_the_server_listens_on_loopback_with_a_token_and_speaks_korean(tmp_path):
    folder = tmp_path / "work"
    notebook = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    write_whole(folder / "ko/01-arrays.ipynb", json.dumps(notebook).encode())
    server.write_settings(folder, "ko")
    home, runtime, log = tmp_path / "home", tmp_path / "runtime", tmp_path / "log"
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")
    }
    inherited |= {"HOME": str(home), "JUPYTER_RUNTIME_DIR": str(runtime)}
    # Another program takes the port after it was chosen: the server goes on to a later one.
    taken = socket.create_server(("127.0.0.1", server.choose_port(None)))
    port = taken.getsockname()[1]
    command = server.make_command(
        folder, Path("ko/01-arrays.ipynb"), port, browser=False, retry=True
    )
    environment = server.make_environment(folder, "ko", inherited)
    with open(log, "wb") as stream:
        process = subprocess.Popen(command, env=environment, stdout=stream, stderr=stream)
    try:
        about = wait_for_server(runtime, process, log)
        url, token = about["url"], about["token"]
        assert url.startswith("http://127.0.0.1:") and about["port"] != port
        assert len(token) >= 32
        assert ask(f"{url}api/contents/ko")[0] == 403
        status, listing = ask(f"{url}api/contents/ko", token)
        assert status == 200
        assert [entry["name"] for entry in json.loads(listing)["content"]] == ["01-arrays.ipynb"]
        status, setting = ask(
            f"{url}lab/api/settings/@jupyterlab/translation-extension:plugin", token
        )
        assert json.loads(setting)["schema"]["properties"]["locale"]["default"] == "ko_KR"
        status, page = ask(f"{url}lab/tree/ko/01-arrays.ipynb", token)
        assert status == 200
        assert "jupyter-config-data" in page
    finally:
        taken.close()
        process.terminate()
        process.wait(timeout=30)
    assert not (home / ".jupyter" / "lab" / "user-settings").exists()
