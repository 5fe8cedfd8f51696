"""Is a program compiled once for all processes, whatever happens to them and to the disk?

Here the folder is one that somebody chose by JAX's settings; the user's own is tried in
``test_cache_folder.py``.

Read before: ``disk.disk_cache``.
Invariant: a cache that is missing, damaged, full or closed changes no answer.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem.compile import executables as compiler
from saem.core import config, events
from saem.core.events import bus
from saem.disk import cache_folder, disk_cache
from saem.experimental.compilation_cache import compilation_cache
from saem.observe.recorder import Recorder

# What another process does: it tells, on its last line, its answer and each compilation.
PROGRAM = """
import json
import sys
import saem as jax, saem.numpy as jnp
from saem.core import events
from saem.core.events import bus
from saem.compile import executables as compiler
told = []
bus.subscribe(lambda e: told.append(e) if isinstance(e, events.Compile) else None)
{before}
x = jnp.arange(8.0)
{act}
print(json.dumps({{"answer": y, "found": [e.found for e in told],
                  "disk": [e.disk for e in told]}}))
"""
STEP = "y = jax.jit(lambda x: jnp.sum(jnp.tanh(x) * 3.0))(x).item()"
ANSWER = float(np.sum(np.tanh(np.arange(8, dtype=np.float32)) * 3))


def start(folder, before="", act=STEP, **settings):
    settings = {"PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", **settings}
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "SAEM_"))}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    environment["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    environment.update({"JAX_" + name: value for name, value in settings.items()})
    return subprocess.Popen([sys.executable, "-c", PROGRAM.format(before=before, act=act)],
                            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1]), err


def entries(folder):
    assert disk_cache.flush()
    return sorted(p for p in folder.iterdir() if p.name.endswith(disk_cache.ENDING))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache in this process that keeps every program, closed again at the end."""
    before = {name: jax.config.read(name) for name in (
        "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs",
        "jax_compilation_cache_max_size", "jax_persistent_cache_min_entry_size_bytes",
        "jax_enable_compilation_cache", "jax_raise_persistent_cache_errors")}
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    compilation_cache.set_cache_dir(tmp_path / "cache")
    compilation_cache.reset_cache()
    yield tmp_path / "cache"
    for name, value in before.items():
        jax.config.update(name, value)
    compiler.clear()


def compiled(number=1.0):
    """Compile a program that differs with ``number``; returns what the disk had."""
    assert disk_cache.flush()
    compiler.clear()
    told = []
    end = bus.subscribe(lambda e: told.append(e) if isinstance(e, events.Compile) else None)
    try:
        y = jax.jit(lambda x: jnp.sin(x) + number)(np.float32(0.5))
    finally:
        end()
    np.testing.assert_allclose(y, np.sin(np.float32(0.5)) + number, rtol=1e-6)
    assert len(told) == 1
    assert told[0].found == (told[0].disk == "found")
    assert disk_cache.flush()
    return told[0].disk


# -- several processes ----------------------------------------------------------------------------


def test_a_second_process_compiles_nothing(tmp_path):
    first, _ = finish(start(tmp_path))
    assert first["found"] == [False] and first["disk"] == ["absent"]
    no_compiler = "def refuse(*_): raise AssertionError('compiled')\ncompiler._compile = refuse"
    second, _ = finish(start(tmp_path, no_compiler))
    assert second["found"] == [True] and second["disk"] == ["found"]
    assert first["answer"] == second["answer"] == pytest.approx(ANSWER, rel=1e-6)


def test_a_process_killed_while_it_writes_leaves_nothing_that_counts(tmp_path):
    kill = "import os, signal\nos.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
    process = start(tmp_path, kill)
    process.communicate(timeout=120)
    assert process.returncode == -9
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(disk_cache.ASIDE)
    after, err = finish(start(tmp_path))
    assert after["disk"] == ["absent"] and "damaged" not in err
    assert after["answer"] == pytest.approx(ANSWER, rel=1e-6)
    assert len(entries(tmp_path)) == 1 and left.exists()  # it might have been alive
    long_ago = time.time() - 2 * disk_cache.ABANDONED_SECONDS
    os.utime(left, (long_ago, long_ago))
    cache_folder.tidy(tmp_path, -1)
    assert not left.exists() and len(entries(tmp_path)) == 1


def test_processes_at_once_do_not_disturb_each_other(tmp_path):
    act = ("from saem.disk import disk_cache\n"
           f"for n in range(20):\n    compiler.clear()\n    {STEP}\n    disk_cache.flush()")
    told = [finish(p) for p in [start(tmp_path, act=act) for _ in range(3)]]
    for result, err in told:
        assert result["answer"] == pytest.approx(ANSWER, rel=1e-6)
        assert set(result["disk"][1:]) == {"found"} and "damaged" not in err
    assert len(entries(tmp_path)) == 1
    assert {p.name for p in tmp_path.iterdir()} == {entries(tmp_path)[0].name, "journal"}


def test_programs_on_several_devices_are_kept(tmp_path):
    act = """
mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
s = jax.NamedSharding(mesh, jax.P("d"))
x = jax.device_put(x, s)
z = jax.jit(lambda x: jnp.cumsum(x) * 2)(x)
y = [z.tolist(), str(z.sharding.spec)]
"""
    one, two = (finish(start(tmp_path, act=act, NUM_CPU_DEVICES="4"))[0] for _ in range(2))
    assert one["disk"][-1] == "absent" and two["disk"][-1] == "found"
    assert one["answer"] == two["answer"]
    assert one["answer"][0] == (np.cumsum(np.arange(8.0)) * 2).tolist()


def checked(rest):
    """What has the right checksum and nothing else."""
    return hashlib.sha256(rest).digest() + rest


# -- damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("harm", [
    *[pytest.param(lambda d, n=n: d[:n] + bytes([d[n] ^ 1]) + d[n + 1:], id=f"flip {n}")
      for n in (0, 31, 32, 60, 300)],
    pytest.param(lambda d: d[:-1] + bytes([d[-1] ^ 0x80]), id="flip last"),
    pytest.param(lambda d: b"", id="empty"),
    pytest.param(lambda d: d[:20], id="cut in the checksum"),
    pytest.param(lambda d: d[:-100], id="cut"),
    pytest.param(lambda d: disk_cache.pack(b"none", "f", 1, disk_cache.unpack(d)[0]["key"]),
                 id="no executable"),
    pytest.param(lambda d: disk_cache.pack(disk_cache.unpack(d)[1], "f", 1.0, "0" * 64),
                 id="of another program"),
    pytest.param(lambda d: checked(b"no line of JSON"), id="no head"),
    pytest.param(lambda d: checked(b"{}\nnot compressed"), id="not compressed"),
])
def test_damage_is_said_once_compiled_again_and_replaced(folder, caplog, harm):
    assert compiled() == "absent"
    (path,) = entries(folder)
    path.write_bytes(harm(path.read_bytes()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 1e9)
    with caplog.at_level(logging.WARNING, "saem"):
        assert compiled() == "damaged"
        (said,) = [r.getMessage() for r in caplog.records if "damaged" in r.getMessage()]
        assert str(path) in said and "compiled again" in said
        assert compiled() == "found"
    assert entries(folder) == [path]


def test_errors_are_raised_if_wanted(folder):
    compiled()
    (path,) = entries(folder)
    path.write_bytes(b"damaged")
    jax.config.update("jax_raise_persistent_cache_errors", True)
    with pytest.raises(disk_cache.Damaged):
        compiled()
    jax.config.update("jax_raise_persistent_cache_errors", False)
    assert compiled() == "damaged"


def test_a_folder_that_cannot_be_used_is_said_once(folder, tmp_path, caplog):
    (tmp_path / "file").write_text("not a folder")
    compilation_cache.set_cache_dir(tmp_path / "file" / "cache")
    with caplog.at_level(logging.WARNING, "saem"):
        assert [compiled(n) for n in (1.0, 2.0, 3.0)] == ["absent"] * 3
    reads = [r for r in caplog.records if "cannot be read" in r.getMessage()]
    assert len(reads) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_only_be_read_still_serves(folder):
    assert compiled() == "absent"
    folder.chmod(0o500)
    try:
        assert compiled() == "found" and compiled(2.0) == "absent"
    finally:
        folder.chmod(0o700)
    assert len(entries(folder)) == 1


def test_a_full_disk_is_said_and_harms_nothing(folder, monkeypatch, caplog):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with caplog.at_level(logging.WARNING, "saem"):
        assert compiled() == "absent"
    assert "No space left" in caplog.text
    assert list(folder.iterdir()) == []
    monkeypatch.undo()
    assert compiled() == "absent" and compiled() == "found"


# -- settings -------------------------------------------------------------------------------------


def test_what_is_used_least_is_thrown_out(folder):
    compiled(1.0)
    (one,) = entries(folder)
    size = one.stat().st_size
    compiled(2.0)
    compiled(3.0)
    assert len(entries(folder)) == 3
    for age, path in enumerate(entries(folder)):  # all long ago
        os.utime(path, (age, age))
    assert compiled(1.0) == "found"  # and so used last
    jax.config.update("jax_compilation_cache_max_size", int(2.5 * size))
    assert compiled(4.0) == "absent"
    assert len(entries(folder)) == 2 and one in entries(folder)
    assert sum(p.stat().st_size for p in entries(folder)) <= 2.5 * size
    assert compiled(4.0) == "found"


def test_one_program_may_be_too_large(folder, caplog):
    jax.config.update("jax_compilation_cache_max_size", 100)
    with caplog.at_level(logging.WARNING, "saem"):
        compiled()
    assert not folder.exists() and "more than the compile cache may hold (100)" in caplog.text


@pytest.mark.parametrize(("name", "value", "disk"), [
    ("jax_persistent_cache_min_compile_time_secs", 1e6, "absent"),
    ("jax_persistent_cache_min_entry_size_bytes", 10**9, "absent"),
    ("jax_enable_compilation_cache", False, ""),
    ("jax_compilation_cache_max_size", 0, ""),
    ("jax_compilation_cache_dir", "gs://bucket/cache", ""),
    ("jax_compilation_cache_dir", None, ""),
])
def test_settings_keep_programs_off_the_disk(folder, name, value, disk):
    jax.config.update(name, value)
    assert compiled() == disk
    assert not folder.exists()


def test_in_a_folder_of_jaxs_setting_a_program_is_kept_at_once(folder):
    jax.jit(lambda x: jnp.sin(x) + 41)(np.float32(0.5))
    assert [p for p in folder.iterdir() if p.name.endswith(disk_cache.ENDING)]


def test_settings_have_a_scope(folder):
    with config.enable_compilation_cache(False):
        assert compiled() == ""
    assert compiled() == "absent"


def test_a_program_for_another_compiler_is_another_entry(folder, monkeypatch):
    compiled()
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    assert compiled() == "absent"
    monkeypatch.setattr(disk_cache, "host_processor", lambda: "another processor")
    assert compiled() == "absent"
    assert len(entries(folder)) == 3
    monkeypatch.undo()
    assert compiled() == "found"


def test_programs_that_call_python_are_not_kept(folder):
    compiler.clear()
    kind = jax.ShapeDtypeStruct((), np.float32)
    y = jax.jit(lambda x: jax.pure_callback(np.sin, kind, x))(np.float32(0.5))
    np.testing.assert_allclose(y, np.sin(np.float32(0.5)), rtol=1e-6)
    assert not folder.exists()


def test_donation_survives_the_disk(folder):
    told = []
    end = bus.subscribe(lambda e: told.append(e.disk) if isinstance(e, events.Compile) else None)
    for _ in range(2):
        compiler.clear()
        x = jnp.arange(4.0)
        y = jax.jit(lambda x: x * 2.5, donate_argnums=0)(x)
        assert x.is_deleted() and y.tolist() == [0.0, 2.5, 5.0, 7.5]
        assert disk_cache.flush()
    end()
    assert told == ["absent", "found"]


def test_the_folder_is_for_its_owner_alone(folder):
    compiled()
    assert folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())


def test_others_may_read_what_lies_in_a_folder_that_they_may_read(folder):
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    compiled()
    assert entries(folder)[0].stat().st_mode & 0o777 == 0o644


def test_a_found_program_is_logged_on_demand(folder, caplog):
    compiled()
    with caplog.at_level(logging.WARNING, "saem"), jax.log_compiles(True):
        assert compiled() == "found"
    assert "Persistent compilation cache hit for 'jit_" in caplog.text
    assert "Finished XLA compilation" not in caplog.text


def test_the_history_says_that_a_program_came_from_disk(folder):
    for said in ("compiled in", "loaded from the cache on disk in"):
        assert disk_cache.flush()
        compiler.clear()
        watcher = Recorder()
        watcher.start()
        try:
            jax.jit(lambda x: jnp.cos(x) - 9)(np.float32(1))
        finally:
            watcher.stop()
        (row,) = watcher.snapshot().functions
        (record,) = row.records
        assert said in record.headline.en
        assert ("디스크" in record.headline.ko) == ("disk" in said)
