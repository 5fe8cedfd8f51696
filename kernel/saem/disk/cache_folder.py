"""In which folder are compiled programs kept, by which rules, and can it be trusted?

Each user has one folder, ``programs`` in the first of

- ``SAEM_CACHE_DIR``,
- ``saem`` in ``XDG_CACHE_HOME``,
- ``~/.cache/saem`` (macOS: ``~/Library/Caches/saem``; Windows: ``%LOCALAPPDATA%\\saem\\cache``).

There every program is kept, however quickly it was compiled, until the folder holds 256 MB; then
those used least recently are removed.  Only its owner may read or write it, and a folder that
others own or may write to is not used.  What does not work is noted quietly (``explanation``).

``jax_enable_compilation_cache`` (``SAEM_ENABLE_COMPILATION_CACHE=0``) turns all of it off.  The
other settings are JAX's, and mean what they mean there if they are set: a folder named by
``jax_compilation_cache_dir`` is used in place of the user's own, with the limits of those settings
and with warnings; ``None`` means that nothing is kept.

``saem cache`` shows, clears and moves the folder.

Read before: ``core.config``.  Read after: ``disk.disk_cache``.
Invariant: nothing outside the folder's own files (``*-cache``, ``*.part``, ``journal``) is ever
removed or overwritten (tests/kernel/test_cache_folder.py).
Source: the XDG Base Directory Specification 0.8.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

from saem.core import config
from saem.core.lazy import later
from saem.core.record import Record

json: Any = later("json")
tempfile: Any = later("tempfile")

LIMIT = 256 * 2**20
PROGRAMS = "programs"
ENDING = "-cache"
ASIDE = ".part"
JOURNAL = "journal"
# A file written aside that is older than this belongs to a process that was killed.
ABANDONED_SECONDS = 3600.0
# After this share of its limit was written, a folder is looked through; without one, so many bytes.
SHARE = 16
UNLIMITED_BYTES = 64 * 2**20
JOURNAL_BYTES = 64 * 2**10
WINDOWS = sys.platform == "win32"

log = logging.getLogger("saem")
_noted: dict[str, None] = {}


class Place(Record):
    """A folder for programs, who chose it, and what is kept there.

    ``personal``: it is the user's own folder, so files of other users are not read.
    """

    folder: Path
    chosen_by: str
    personal: bool
    limit: int
    least_seconds: float
    least_bytes: int


def base() -> tuple[Path, str] | None:
    """Return the user's cache folder and what chose it; None where there is no home."""
    named = os.environ.get("SAEM_CACHE_DIR")
    if named:
        return Path(named).expanduser().absolute(), "SAEM_CACHE_DIR"
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(xdg):  # the specification: a relative one is ignored
        return Path(xdg) / "saem", "XDG_CACHE_HOME"
    if WINDOWS and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "saem" / "cache", "default"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if not home.is_absolute():
        return None
    inside = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return home / inside / "saem", "default"


def place() -> Place | None:
    """Return where programs are kept as the settings are; None if they are not kept."""
    if not config.enable_compilation_cache.value:
        return None
    chosen = config.compilation_cache_dir.is_chosen
    folder: Path | None
    if chosen:
        named = config.compilation_cache_dir.value
        if not named:
            return None
        if "://" in named:
            note(f"The compile cache must be a folder of this machine, got {named}; nothing is "
                 "kept.", loud=True)
            return None
        folder, by = Path(named), "jax_compilation_cache_dir"
    else:
        found = base()
        if found is None:
            return None
        folder, by = found[0] / PROGRAMS, found[1]

    def value(setting: config.Setting, default: Any) -> Any:
        return setting.value if chosen or setting.is_chosen else default

    limit = value(config.compilation_cache_max_size, LIMIT)
    if limit == 0:
        return None
    return Place(folder, by, not chosen, limit,
                 value(config.persistent_cache_min_compile_time_secs, 0.0),
                 value(config.persistent_cache_min_entry_size_bytes, 0))


def refusal(where: Place) -> str:
    """Return why the folder of ``where`` must not be used: '' if it may be, or is not there yet."""
    if not where.personal or WINDOWS:
        return ""
    try:
        found = os.lstat(where.folder)
        if stat.S_ISLNK(found.st_mode):
            if found.st_uid != os.geteuid():
                return f"the link {where.folder} belongs to another user"
            found = os.stat(where.folder)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{where.folder} cannot be looked at: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return f"{where.folder} is not a folder"
    if found.st_uid != os.geteuid():
        return f"{where.folder} belongs to another user"
    if found.st_mode & 0o022:
        return f"others may write to {where.folder} (chmod go-w would cure it)"
    return ""


def read(path: Path, personal: bool) -> tuple[bytes, float]:
    """Return the bytes of a file of the cache, and when it was used last.

    Raises: FileNotFoundError; OSError if it cannot be read; PermissionError if ``personal`` and the
    file is a link or another user's.
    """
    flags = os.O_RDONLY
    if not WINDOWS:
        flags |= os.O_CLOEXEC | os.O_NONBLOCK | (os.O_NOFOLLOW if personal else 0)
    handle = os.open(path, flags)
    with open(handle, "rb", buffering=0) as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise PermissionError(1, "it is not a plain file", str(path))
        if personal and not WINDOWS and found.st_uid != os.geteuid():
            raise PermissionError(1, "it belongs to another user", str(path))
        return file.readall(), found.st_mtime


def write(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, even if the process ends meanwhile.

    It may be read by those who may read its folder; a new folder is its owner's alone.
    """
    folder = path.parent
    if not folder.is_dir():
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    handle, aside = tempfile.mkstemp(suffix=ASIDE, prefix=path.name[:16], dir=folder)
    try:
        with open(handle, "wb", buffering=0) as file:
            left = memoryview(data)
            while left:
                left = left[file.write(left):]
        readers = folder.stat().st_mode & 0o044
        if readers and not WINDOWS:
            os.chmod(aside, 0o600 | readers)
        os.replace(aside, path)
    except BaseException:
        _remove(aside)
        raise


def _remove(path: str | Path) -> int:
    """Remove a file; returns how many were removed: 0 if it was gone or may not be removed."""
    try:
        os.unlink(path)
    except OSError:
        return 0
    return 1


# -- the journal: what all processes kept and found since the folder was looked through ------------


def append(folder: Path, **facts: Any) -> bool:
    """Add a line to the folder's journal; returns whether it could be added."""
    line = json.dumps(facts).encode() + b"\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    if not WINDOWS:
        flags |= os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        handle = os.open(folder / JOURNAL, flags, 0o600)
    except OSError:
        return False
    try:
        return os.write(handle, line) == len(line)
    except OSError:
        return False
    finally:
        os.close(handle)


def journal(folder: Path) -> dict[str, Any]:
    """Return the sums of the folder's journal: ``kept`` bytes since the folder was ``looked``
    through with ``limit``, and ``hits`` and the ``saved`` seconds since it was made."""
    sums: dict[str, Any] = {"kept": 0, "hits": 0, "saved": 0.0, "limit": None, "size": 0}
    try:
        data, _ = read(folder / JOURNAL, personal=not WINDOWS)
    except OSError:
        return sums
    sums["size"] = len(data)
    for line in data.splitlines():
        try:
            facts = json.loads(line)
            if "limit" in facts:
                sums.update(kept=0, limit=int(facts["limit"]))
            for name, kind in (("kept", int), ("hits", int), ("saved", float)):
                sums[name] += kind(facts.get(name, 0))
        except (ValueError, TypeError, AttributeError, OverflowError):
            continue  # a damaged line counts for nothing
    return sums


def grown(folder: Path, limit: int, size: int) -> None:
    """Count ``size`` new bytes; look through the folder if so many came that it may be too large.

    Between two looks at most a sixteenth of the limit is written, and each leaves room for it.
    """
    counted = append(folder, kept=size)
    sums = journal(folder)
    room = limit // SHARE if limit > 0 else UNLIMITED_BYTES
    if not counted or sums["limit"] != limit or sums["kept"] > room or sums["size"] > JOURNAL_BYTES:
        total = tidy(folder, limit)
        line = {"limit": limit, "kept": 0, "total": total, "hits": sums["hits"],
                "saved": round(sums["saved"], 3)}
        write(folder / JOURNAL, json.dumps(line).encode() + b"\n")


def tidy(folder: Path, limit: int) -> int:
    """Remove what killed processes left, and the entries used longest ago beyond ``limit`` bytes.

    Returns the bytes that remain.  Other processes may do the same at the same time; a file that is
    gone already does not matter.
    """
    now = time.time()
    kept = []
    with os.scandir(folder) as items:
        for item in items:
            try:
                found = item.stat(follow_symlinks=False)
            except OSError:
                continue
            if item.name.endswith(ASIDE) and now - found.st_mtime > ABANDONED_SECONDS:
                _remove(item.path)
            elif item.name.endswith(ENDING):
                kept.append((found.st_mtime_ns, found.st_size, item.path))
    total = sum(size for _, size, _ in kept)
    for _, size, name in sorted(kept) if limit > 0 else ():
        if total <= limit - limit // SHARE:
            break
        total -= size * _remove(name)
    return total


def programs(folder: Path) -> list[tuple[Path, int]]:
    """Return the files of the programs in ``folder`` with their sizes, in any order."""
    found = []
    try:
        with os.scandir(folder) as items:
            for item in items:
                if item.name.endswith(ENDING):
                    try:
                        found.append((Path(item.path), item.stat(follow_symlinks=False).st_size))
                    except OSError:
                        continue
    except OSError:
        return []
    return found


def clear(folder: Path) -> tuple[int, int]:
    """Remove all programs in ``folder`` and its journal; returns their number and bytes."""
    count = total = 0
    for path, size in programs(folder):
        gone = _remove(path)
        count, total = count + gone, total + gone * size
    try:
        rest = [name for name in os.listdir(folder) if name == JOURNAL or name.endswith(ASIDE)]
    except OSError:
        rest = []
    for name in rest:
        _remove(folder / name)
    return count, total


# -- warnings, each given once -------------------------------------------------------------------


def note(sentence: str, loud: bool) -> None:
    """Note once that something of the cache does not work: a warning if ``loud``."""
    if sentence not in _noted:
        if len(_noted) < 100:
            _noted[sentence] = None
        log.log(logging.WARNING if loud else logging.DEBUG, "%s", sentence)


def explanation() -> str:
    """Return what does not work in this process, the newest; '' if all does."""
    return next(reversed(_noted), "")


def forget_notes() -> None:
    """Give each warning again that was given once."""
    _noted.clear()
