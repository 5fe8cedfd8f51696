"""Is the user's own cache folder used by default, and left alone when anything is wrong with it?

Faults are put into a folder that another process filled; each program must then run with the same
answer, without a word on the way, and the folder must be used again as soon as it can be.

Read before: ``disk.cache_folder``, ``test_disk_cache.py``.
Invariant: no fault of the folder is an error, a warning or a wrong answer.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem.compile import executables as compiler
from saem.core import config, events
from saem.core.events import bus
from saem.disk import cache_folder, disk_cache, disk_writer
from saem.observe.recorder import Recorder
from saem.observe.report import history_text

CHOSEN = ("jax_compilation_cache_dir", "jax_compilation_cache_max_size",
          "jax_persistent_cache_min_compile_time_secs",
          "jax_persistent_cache_min_entry_size_bytes")

PROGRAM = """
import json, sys
import saem as jax, saem.numpy as jnp
from saem.core import events
from saem.core.events import bus
from saem.compile import executables as compiler
from saem.disk import disk_cache
told = []
bus.subscribe(lambda e: told.append(e) if isinstance(e, events.Compile) else None)
{before}
x = jnp.arange(8.0)
y = [jax.jit(lambda x: jnp.sum(jnp.tanh(x) * 3.0))(x).item(),
     jnp.sort(x)[::-1][0].item(), (x @ x).item(), jnp.linalg.norm(x).item()]
{after}
print(json.dumps({{"answer": y, "disk": [e.disk for e in told], "hits": disk_cache.hits()}}))
"""
EIGHT = np.arange(8, dtype=np.float32)
ANSWER = [np.sum(np.tanh(EIGHT) * 3), 7.0, 140.0, np.sqrt(np.float32(140))]


def start(base, before="", after="", **environment):
    """Run ``PROGRAM`` with the cache folder ``base``, everything else as a user has it."""
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("JAX_", "SAEM_", "XDG_CACHE"))}
    clean["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    if base is not None:
        clean["SAEM_CACHE_DIR"] = str(base)
    text = PROGRAM.format(before=before, after=after)
    return subprocess.Popen([sys.executable, "-c", text], env={**clean, **environment},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    """Return what the process told; its answers are right and it wrote nothing to stderr."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert err == ""
    told = json.loads(out.splitlines()[-1])
    np.testing.assert_allclose(told["answer"], ANSWER, rtol=1e-6)
    return told


def entries(base):
    return sorted(path for path, _ in cache_folder.programs(Path(base) / "programs"))


@pytest.fixture
def base(tmp_path, monkeypatch):
    """This process uses its own folder by default, as a user's does."""
    monkeypatch.setenv("SAEM_CACHE_DIR", str(tmp_path / "cache"))
    for name in CHOSEN:
        monkeypatch.setattr(config.SETTINGS[name], "was_set", False)
    cache_folder.forget_notes()
    with config.enable_compilation_cache(True):
        yield tmp_path / "cache"
    assert disk_cache.flush()
    compiler.clear()


def compiled(number=1.0):
    """Compile a program that differs with ``number``; returns what the disk had."""
    compiler.clear()
    told = []
    end = bus.subscribe(lambda e: told.append(e.disk) if isinstance(e, events.Compile) else None)
    try:
        y = jax.jit(lambda x: jnp.sin(x) + number)(np.float32(0.5))
    finally:
        end()
    np.testing.assert_allclose(y, np.sin(np.float32(0.5)) + number, rtol=1e-6)
    assert disk_cache.flush()
    (disk,) = told
    return disk


@pytest.fixture
def quiet(caplog):
    """Nothing is said loudly."""
    caplog.set_level(logging.WARNING, "saem")
    yield
    assert caplog.records == []


# -- by default -----------------------------------------------------------------------------------


def test_what_one_process_compiled_the_next_finds(tmp_path):
    first, second = (finish(start(tmp_path)) for _ in range(2))
    assert set(first["disk"]) == {"absent"} and first["hits"] == 0
    assert set(second["disk"]) == {"found"}
    assert second["hits"] == len(entries(tmp_path)) > 3  # eager operations, too
    assert first["answer"] == second["answer"]
    folder = tmp_path / "programs"
    assert cache_folder.journal(folder)["hits"] == second["hits"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@pytest.mark.clears_caches
def test_eager_operations_are_found_too(base):
    for found in (False, True):
        compiler.clear()
        jax.clear_caches()
        before, x = disk_cache.hits(), jnp.asarray(np.float32([3, 1, 2]))
        y = jnp.sort(x) * 2 + x
        assert y.tolist() == [5.0, 5.0, 8.0]
        assert disk_cache.flush()
        assert disk_cache.hits() - before == (len(entries(base)) if found else 0)
    assert len(entries(base)) == 3


@pytest.mark.clears_caches
def test_the_lens_tells_of_operations_found_on_disk(base):
    watcher = Recorder()
    told = []
    watcher.watch(lambda summary, record: told.append((summary.name, record.count)))
    for found in (False, True):
        compiler.clear()
        jax.clear_caches()
        x = jnp.asarray(np.float32([3, 1, 2]))
        watcher.start()
        try:
            assert (jnp.sort(x) * 2 + x).tolist() == [5.0, 5.0, 8.0]
            jax.jit(lambda x: jnp.cos(x) - 9)(x)
        finally:
            watcher.stop()
        assert disk_cache.flush()
        if not found:
            assert [row.summary.compiles for row in watcher.snapshot().functions] == [1]
            watcher.clear()
    operations, jitted = watcher.snapshot().functions
    assert jitted.summary.compiles == 0 and "cache on disk" in jitted.records[-1].headline.en
    assert operations.summary.found == 3 and operations.summary.name == "eager operations"
    (record,) = operations.records
    assert "3 loaded from the cache on disk" in record.headline.en
    assert "3개를 디스크 캐시에서" in record.headline.ko
    assert ("eager operations", 3) in told
    for language, name in (("en", "eager operations"), ("ko", "라이브러리 연산")):
        lines = history_text(watcher.snapshot(), language).splitlines()
        assert lines[0].startswith(f"{name}: ")
        assert "3" in lines[1]


def test_import_neither_looks_at_the_folder_nor_loads_the_cache(tmp_path):
    code = ("import sys; seen = []\n"
            "sys.addaudithook(lambda n, a: seen.append(str(a[0])) if n in ('open', 'os.scandir', "
            "'os.listdir', 'os.mkdir') else None)\n"
            "import saem.numpy\n"
            f"assert not [s for s in seen if {str(tmp_path)!r} in s], seen\n"
            "loaded = {'saem.disk.disk_cache', 'saem.disk.cache_folder'} & set(sys.modules)\n"
            "assert not loaded, loaded")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "SAEM_"))}
    environment.update(PYTHONPATH=os.pathsep.join(filter(None, sys.path)),
                       SAEM_CACHE_DIR=str(tmp_path))
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


def test_the_first_of_several_places_is_taken(monkeypatch, tmp_path):
    for name in ("SAEM_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder.base() == (tmp_path / ".cache" / "saem", "default")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the specification: ignored
    assert cache_folder.base() == (tmp_path / ".cache" / "saem", "default")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder.base() == (tmp_path / "xdg" / "saem", "XDG_CACHE_HOME")
    monkeypatch.setenv("SAEM_CACHE_DIR", "~/own")
    assert cache_folder.base() == (tmp_path / "own", "SAEM_CACHE_DIR")
    monkeypatch.delenv("SAEM_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder.base() == (tmp_path / "Library" / "Caches" / "saem", "default")
    monkeypatch.setattr(cache_folder, "WINDOWS", True)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "Local"))
    assert cache_folder.base() == (tmp_path / "Local" / "saem" / "cache", "default")


def test_without_a_home_nothing_is_kept(base, quiet, monkeypatch):
    monkeypatch.delenv("SAEM_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert compiled() == ""


@pytest.mark.parametrize(("name", "value"), [
    ("SAEM_ENABLE_COMPILATION_CACHE", "0"), ("JAX_ENABLE_COMPILATION_CACHE", "false"),
    ("JAX_COMPILATION_CACHE_DIR", ""), ("JAX_COMPILATION_CACHE_MAX_SIZE", "0"),
    ("XLA_FLAGS", "--xla_dump_hlo_as_text --xla_dump_to=/dev/null/nowhere"),
])
def test_one_setting_turns_it_off(tmp_path, name, value):
    process = start(tmp_path, **{name: value})
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert set(json.loads(out.splitlines()[-1])["disk"]) == {""}
    assert list(tmp_path.iterdir()) == []


def test_settings_that_somebody_made_hold_in_the_users_folder_too(base):
    with config.persistent_cache_min_compile_time_secs(1e6):
        assert compiled(1.0) == "absent"
    assert entries(base) == []
    with config.persistent_cache_min_entry_size_bytes(10**9):
        assert compiled(1.0) == "absent"
    assert entries(base) == []
    assert compiled(1.0) == "absent" and len(entries(base)) == 1
    with config.compilation_cache_dir(None):
        assert compiled(1.0) == ""
    with config.compilation_cache_dir(str(base / "other")):
        assert compiled(1.0) == "absent"
    assert compiled(1.0) == "found"


# -- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("harm", [
    pytest.param(lambda d: d[:40] + bytes([d[40] ^ 4]) + d[41:], id="a bit flipped in the head"),
    pytest.param(lambda d: d[:-9] + bytes([d[-9] ^ 1]) + d[-8:], id="a bit flipped in the code"),
    pytest.param(lambda d: d[: len(d) // 2], id="truncated"),
    pytest.param(lambda d: b"", id="empty"),
    pytest.param(lambda d: b"\0" * len(d), id="zeros, as after a power failure"),
    pytest.param(lambda d: b"\x80\x04cos\nsystem\n(S'false'\ntR.", id="a pickle"),
])
def test_damage_costs_one_compile_and_no_word(base, quiet, harm):
    assert compiled() == "absent"
    (path,) = entries(base)
    path.write_bytes(harm(path.read_bytes()))
    assert compiled() == "damaged" and compiled() == "found"
    said = cache_folder.explanation()
    assert str(path) in said and "compiled again" in said
    assert entries(base) == [path]


@pytest.mark.parametrize("other", ["processor", "processors", "jaxlib", "format", "flags",
                                   "devices"])
def test_what_another_machine_or_version_made_is_not_loaded(base, quiet, monkeypatch, other):
    assert compiled() == "absent" and compiled() == "found"
    (mine,) = entries(base)
    if other == "processor":
        monkeypatch.setattr(disk_cache, "host_processor", lambda: "another processor")
    elif other == "processors":
        monkeypatch.setattr(disk_cache, "processors", lambda: 1000)
    elif other == "jaxlib":
        monkeypatch.setattr(disk_cache._jaxlib, "__version__", "0.10.99")
    elif other == "format":
        monkeypatch.setattr(disk_cache, "FORMAT", -1)
    elif other == "flags":
        monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    else:
        real = disk_cache.machine
        monkeypatch.setattr(disk_cache, "machine", lambda d: (*real(d), "more devices"))
    assert compiled() == "absent"
    assert len(entries(base)) == 2
    # A file under the wrong name, as one that somebody copied and renamed, is not loaded either.
    (theirs,) = set(entries(base)) - {mine}
    theirs.write_bytes(mine.read_bytes())
    assert compiled() == "damaged" and compiled() == "found"


def test_options_of_one_program_are_part_of_its_key(base):
    def run(**options):
        compiler.clear()
        told = []
        end = bus.subscribe(
            lambda e: told.append(e.disk) if isinstance(e, events.Compile) else None)
        traced = jax.jit(lambda x: jnp.sin(x) * 2).trace(np.float32(1))
        traced.lower().compile(compiler_options=options)
        end()
        assert disk_cache.flush()
        return told

    assert run() == ["absent"]
    assert run(xla_backend_optimization_level=0) == ["absent"]
    assert run(xla_backend_optimization_level=0) == run() == ["found"]


def test_flags_that_xla_uses_are_in_the_key_not_those_that_came_too_late(tmp_path):
    """XLA reads ``XLA_FLAGS`` once; a notebook that sets them later must not spoil an entry."""
    late = "import os; jnp.ones(3); os.environ['XLA_FLAGS'] = '--xla_cpu_enable_fast_math=true'"
    finish(start(tmp_path, late))
    assert entries(tmp_path)
    assert finish(start(tmp_path, XLA_FLAGS="--xla_cpu_enable_fast_math=true"))["hits"] == 0


@pytest.mark.parametrize("number", [13, 30], ids=["no permission", "read-only file system"])
def test_a_folder_that_may_only_be_read_still_serves(base, quiet, monkeypatch, number):
    assert compiled(1.0) == "absent"

    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    for name in ("replace", "utime", "unlink"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr(cache_folder.tempfile, "mkstemp", refuse)
    monkeypatch.setattr(disk_cache, "TOUCH_SECONDS", -1)
    assert compiled(1.0) == "found" and compiled(2.0) == "absent"
    assert os.strerror(number) in cache_folder.explanation()


def test_a_folder_that_may_not_be_read_serves_not(base, quiet, monkeypatch):
    assert compiled(1.0) == "absent"
    real = os.open

    def refuse(path, *rest, **named):
        if str(path).endswith(cache_folder.ENDING):
            raise PermissionError(13, "Permission denied")
        return real(path, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)
    assert compiled(1.0) == "absent"
    assert "Permission denied" in cache_folder.explanation()


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_disk_that_is_full(tmp_path):
    """No file may grow beyond 1,000 bytes, so that each write stops in its midst."""
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    after = "import sys; print('Too large' in str(disk_cache.flush()), file=sys.stdout)"
    assert set(finish(start(tmp_path, full, after))["disk"]) == {"absent"}
    assert entries(tmp_path) == []
    assert not [p for p in (tmp_path / "programs").iterdir() if p.name != "journal"]
    assert set(finish(start(tmp_path))["disk"]) == {"absent"}
    assert set(finish(start(tmp_path))["disk"]) == {"found"}


def test_several_kernels_at_once(tmp_path):
    told = [finish(p) for p in [start(tmp_path) for _ in range(4)]]
    assert all(set(t["disk"]) <= {"absent", "found"} for t in told)
    assert {p.suffix for p in (tmp_path / "programs").iterdir()} <= {""}  # nothing aside
    assert set(finish(start(tmp_path))["disk"]) == {"found"}


@pytest.mark.parametrize("moment", [
    "tempfile.mkstemp", "os.replace", "cache_folder.append", "cache_folder.tidy"])
def test_a_kernel_killed_while_it_writes(tmp_path, moment):
    kill = ("import os, signal, tempfile\nfrom saem.disk import cache_folder\n"
            f"{moment} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)")
    process = start(tmp_path, kill)
    process.communicate(timeout=120)
    assert process.returncode == -9
    after = finish(start(tmp_path))
    assert set(after["disk"]) <= {"absent", "found"}
    assert set(finish(start(tmp_path))["disk"]) == {"found"}


def test_a_kernel_killed_before_it_writes(tmp_path):
    process = start(tmp_path, after="import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    process.communicate(timeout=120)
    assert process.returncode == -9
    assert set(finish(start(tmp_path))["disk"]) <= {"absent", "found"}


@pytest.mark.skipif(sys.platform == "win32", reason="owners of POSIX")
def test_another_users_folder_and_files_are_not_touched(base, quiet, monkeypatch):
    assert compiled(1.0) == "absent"
    others = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: others)
    assert compiled(1.0) == "" and compiled(2.0) == ""
    assert "belongs to another user" in cache_folder.explanation()
    assert len(entries(base)) == 1
    # A folder of ours with another's file in it
    monkeypatch.setattr(cache_folder, "refusal", lambda place: "")
    assert compiled(1.0) == "absent"


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
def test_a_folder_that_others_may_write_to_is_not_used(base, quiet):
    assert compiled(1.0) == "absent"
    (base / "programs").chmod(0o777)
    assert compiled(1.0) == ""
    assert "others may write" in cache_folder.explanation()
    (base / "programs").chmod(0o700)
    assert compiled(1.0) == "found"


@pytest.mark.parametrize("what", ["a link to a file elsewhere", "a named pipe", "a folder"])
def test_an_entry_that_is_no_plain_file(base, quiet, tmp_path, what):
    assert compiled() == "absent"
    (path,) = entries(base)
    path.rename(tmp_path / "elsewhere")
    if what == "a named pipe":
        os.mkfifo(path)
    elif what == "a folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    assert compiled() == "absent"
    assert (tmp_path / "elsewhere").read_bytes() == before
    assert compiled() == ("absent" if what == "a folder" else "found")


def test_a_file_where_the_folder_should_be(base, quiet):
    base.mkdir()
    (base / "programs").write_text("mine")
    assert compiled() == ""
    assert (base / "programs").read_text() == "mine"
    assert "is not a folder" in cache_folder.explanation()


def test_a_link_of_ours_to_a_folder_of_ours_is_followed(base, quiet, tmp_path):
    base.mkdir()
    (tmp_path / "large disk").mkdir(mode=0o700)
    (base / "programs").symlink_to(tmp_path / "large disk")
    assert compiled() == "absent" and compiled() == "found"
    (tmp_path / "large disk").rename(tmp_path / "away")  # a disk that is not there today
    assert compiled(2.0) == "absent"


# -- size -----------------------------------------------------------------------------------------


def test_the_folder_never_grows_beyond_its_limit(base, monkeypatch):
    compiled(0.0)
    size = entries(base)[0].stat().st_size
    limit = 8 * size
    monkeypatch.setattr(cache_folder, "LIMIT", limit)
    for number in range(1, 16):
        compiled(float(number))
        assert sum(p.stat().st_size for p in entries(base)) <= limit
        for path in entries(base):  # as if each had been compiled a minute after the other
            found = path.stat()
            os.utime(path, (found.st_atime, found.st_mtime - 60))
    assert compiled(15.0) == "found"
    assert compiled(0.0) == "absent"


def test_the_folder_is_looked_through_rarely(base, monkeypatch):
    looked = []
    real = cache_folder.tidy
    monkeypatch.setattr(cache_folder, "tidy", lambda *a: looked.append(a) or real(*a))
    for number in range(10):
        compiled(float(number))
    assert len(looked) == 1  # the first time; then 16 MB may come
    folder = base / "programs"
    cache_folder.append(folder, kept=cache_folder.LIMIT // cache_folder.SHARE)
    compiled(10.0)
    assert len(looked) == 2
    compiled(11.0)
    assert len(looked) == 2


def test_a_damaged_journal_counts_for_nothing(base, quiet):
    compiled(1.0)
    journal = base / "programs" / "journal"
    journal.write_bytes(b'{"kept": "many"}\n[]\n\xff\n{"hits": 3}\nnull\n{"limit": "x"}\n'
                        b'{"kept": 1e999}\n{"limit": 1e999}\n')
    assert cache_folder.journal(base / "programs")["hits"] == 3
    assert compiled(2.0) == "absent" and compiled(1.0) == "found"
    assert cache_folder.journal(base / "programs")["limit"] == cache_folder.LIMIT


def test_only_its_own_files_are_removed(base, tmp_path):
    compiled(1.0)
    mine = base / "programs" / "notes.txt"
    mine.write_text("mine")
    os.utime(mine, (0, 0))
    cache_folder.tidy(base / "programs", 1)
    assert entries(base) == []
    compiled(1.0)
    count, total = cache_folder.clear(base / "programs")
    assert count == 1 and total > 0
    assert [p.name for p in (base / "programs").iterdir()] == ["notes.txt"]


# -- the thread that writes -----------------------------------------------------------------------


def test_a_compile_does_not_wait_for_the_disk(base, monkeypatch):
    written = threading.Event()

    def slow(path, data, real=cache_folder.write):
        written.wait(60)
        real(path, data)

    compiled(1.0)
    monkeypatch.setattr(cache_folder, "write", slow)
    compiler.clear()
    f = jax.jit(lambda x: jnp.sin(x) + 2.0)
    f(np.float32(1)).block_until_ready()  # were the disk waited for, the file would be there
    assert len(entries(base)) == 1
    written.set()
    assert disk_cache.flush() and len(entries(base)) == 2


def test_jobs_run_once_in_order_and_the_thread_ends():
    done = []
    writer = disk_writer.Writer(at_end=lambda: done.append("end"))
    for n in range(100):
        writer.add(lambda n=n: done.append(n))
    assert writer.flush() and done == list(range(100))
    later = threading.Event()
    writer.add(lambda: (done.append("later"), later.set()))
    assert later.wait(60) and done[-1] == "later"
    writer.close()
    assert done[-1] == "end"


def test_a_job_that_fails_holds_up_no_other():
    def fail():
        raise MemoryError

    done = []
    writer = disk_writer.Writer(at_end=lambda: None)
    writer.add(fail)
    writer.add(lambda: done.append(1))
    assert writer.flush() and done == [1]
    writer.add(lambda: done.append(2))
    assert writer.flush() and done == [1, 2]


def test_without_threads_a_job_is_done_at_once(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(disk_writer.threading.Thread, "start", refuse)
    done = []
    writer = disk_writer.Writer(at_end=lambda: None)
    writer.add(lambda: done.append(1))
    writer.add(lambda: done.append(2))
    assert done == [1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork of POSIX")
def test_a_forked_child_writes_nothing_of_its_parent(tmp_path):
    code = f"""
import os, sys, time
from saem.disk.disk_writer import Writer
writer = Writer(at_end=lambda: None, in_child=lambda: print("child", flush=True))
writer.add(lambda: open({str(tmp_path / 'log')!r}, 'a').write(f'{{os.getpid()}}\\n'))
child = os.fork()
if child == 0:
    assert writer.flush(1)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert writer.flush()
print(os.getpid())
"""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment,
                          capture_output=True, text=True, timeout=60, check=True)
    said = done.stdout.splitlines()
    assert (tmp_path / "log").read_text().split() == said[1:] and said[0] == "child"
