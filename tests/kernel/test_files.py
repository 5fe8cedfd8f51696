"""Is a file written whole or not at all?

Read before: ``core.files``.
Invariant: after a failure the file is as it was, and nothing lies beside it.
"""

from __future__ import annotations

import os
import stat

import pytest

from saem.core import files


def test_it_writes_and_replaces(tmp_path):
    path = tmp_path / "new" / "page.html"
    for data in (b"one", b"two"):
        files.write_whole(path, data)
        assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o644 or os.name == "nt"
    assert os.listdir(path.parent) == ["page.html"]


@pytest.mark.parametrize("step", ["fdopen", "fsync", "chmod", "replace"])
def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch, step):
    def fail(*_):
        raise KeyboardInterrupt  # or a full disk

    path = tmp_path / "page.html"
    path.write_bytes(b"one")
    monkeypatch.setattr(files.os, step, fail)
    with pytest.raises(KeyboardInterrupt):
        files.write_whole(path, b"two")
    monkeypatch.undo()
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["page.html"]


def test_an_error_names_the_file(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match=r"page.html cannot be written: "):
        files.write_whole(tmp_path / "file" / "page.html", b"")
