"""Was this program compiled by an earlier process?

With ``jax_compilation_cache_dir`` set, an executable that took long enough to compile is kept in
that folder as one file, and the next process that needs the same program on the same kind of
machine loads it.  A file is a SHA-256 of all that follows, a line of JSON, and the compressed
executable.  It is written aside, brought to the disk and renamed, so that a reader finds it whole
or not at all; what is damaged all the same is said, compiled again and replaced.

Loading an executable runs what it holds, so the folder is made readable by its owner alone and must
be one that nobody else writes to.

Read before: ``compile.executables``.
Invariant: the cache never changes an answer and never stops a program; at worst it saves nothing
(tests/kernel/test_disk_cache.py).
"""

from __future__ import annotations

import functools
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saem import _jaxlib
from saem.core import config
from saem.core.lazy import later
from saem.core.record import Record

hashlib: Any = later("hashlib")
json: Any = later("json")  # only who keeps programs on disk needs these three
tempfile: Any = later("tempfile")
zlib: Any = later("zlib")

FORMAT = 1
ENDING = "-cache"
ASIDE = ".part"
# A file written aside that is older than this belongs to a process that was killed.
ABANDONED_SECONDS = 3600.0
# Environment variables that change what the compiler makes.
FLAGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")

log = logging.getLogger("saem")
_said: set[str] = set()


class Damaged(Exception):
    """A file of the cache is not what was written."""


class Entry(Record):
    """One program's place in the cache: its file, and how it is loaded."""

    path: Path
    name: str
    devices: tuple[Any, ...]
    options: Any

    def load(self) -> tuple[Any, str]:
        """Return the executable, and ``found``; or None, and ``absent`` or ``damaged``."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None, "absent"
        except OSError as error:
            trouble(f"The compile cache {self.path.parent} cannot be read: {error.strerror}.",
                    error)
            return None, "absent"
        begin = time.perf_counter()
        try:
            executable = self.revive(unpack(data))
        except (Damaged, _jaxlib.JaxRuntimeError) as error:
            trouble(f"The compile cache entry {self.path} of {self.name} is damaged ({error}). The "
                    "program is compiled again and the entry replaced.", error)
            return None, "damaged"
        try:
            os.utime(self.path)  # the time of its last use, by which entries are thrown out
        except OSError:
            pass  # a folder that may only be read throws nothing out
        log.log(logging.WARNING if config.log_compiles.value else logging.DEBUG,
                "Persistent compilation cache hit for '%s' with key %s, loaded in %.6f sec",
                self.name, self.path.name, time.perf_counter() - begin)
        return executable, "found"

    def revive(self, serialized: bytes) -> Any:
        client = self.devices[0].client
        return client.deserialize_executable(
            serialized, _jaxlib.DeviceList(self.devices), self.options)

    def store(self, executable: Any, seconds: float, replace: bool = False) -> None:
        """Keep ``executable``, which took ``seconds``, if the settings want it kept.

        With ``replace`` it is kept in any case: a damaged file must not stay.
        """
        if seconds < config.persistent_cache_min_compile_time_secs.value and not replace:
            return
        try:
            data = pack(executable.serialize(), self.name, seconds)
        except _jaxlib.JaxRuntimeError as error:
            once(f"Programs of the platform {self.devices[0].platform} cannot be kept in the "
                 f"compile cache: {error}.")
            return
        if len(data) < config.persistent_cache_min_entry_size_bytes.value and not replace:
            return
        limit = config.compilation_cache_max_size.value
        if 0 < limit < len(data):
            once(f"The program {self.name} takes {len(data)} bytes, more than the compile cache "
                 f"may hold ({limit}), so it is not kept.")
            return
        try:
            write(self.path, data)
            tidy(self.path.parent, limit)
        except OSError as error:
            trouble(f"The program {self.name} could not be kept in the compile cache "
                    f"{self.path.parent}: {error.strerror}.", error)


def entry(key: str, name: str, devices: Sequence[Any], options: Any) -> Entry | None:
    """Return the place of the program with content ``key``; None if it is not to be kept."""
    folder = config.compilation_cache_dir.value
    if not folder or not config.enable_compilation_cache.value:
        return None
    if config.compilation_cache_max_size.value == 0:
        return None
    if "://" in folder:
        once(f"The compile cache must be a folder of this machine, got {folder}; nothing is kept.")
        return None
    client = devices[0].client
    if any(d.process_index != client.process_index() for d in devices):
        return None  # each process would load an executable that another made
    digest = hashlib.sha256(repr((FORMAT, key, machine(devices[0]))).encode()).hexdigest()
    return Entry(Path(folder) / (digest + ENDING), name, tuple(devices), options)


def machine(device: Any) -> tuple:
    """Return all, besides the program, that decides what the compiler makes of it."""
    flags = tuple(os.environ.get(name, "") for name in FLAGS)
    host = host_processor() if device.platform == "cpu" else ""
    return (_jaxlib.__version__, device.platform, device.client.platform_version,
            device.device_kind, host, flags)


@functools.cache
def host_processor() -> str:
    """Return what tells one kind of processor from another: programs use all its instructions."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    told = sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))})
    return hashlib.sha256("\n".join([os.uname().machine, *told]).encode()).hexdigest()


def pack(serialized: bytes, name: str, seconds: float) -> bytes:
    """Return the bytes of a file."""
    head = json.dumps({"format": FORMAT, "name": name, "seconds": seconds})
    rest = head.encode() + b"\n" + zlib.compress(serialized, 1)
    return hashlib.sha256(rest).digest() + rest


def unpack(data: bytes) -> bytes:
    """Return the serialized executable in the bytes of a file.

    Raises: Damaged if they are not what ``pack`` made.
    """
    digest, rest = data[:32], data[32:]
    if len(digest) < 32 or hashlib.sha256(rest).digest() != digest:
        raise Damaged(f"its {len(data)} bytes do not have the checksum they should have")
    return zlib.decompress(rest[rest.index(b"\n") + 1:])


def write(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, whatever happens meanwhile."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(suffix=ASIDE, prefix=path.name[:16], dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def tidy(folder: Path, limit: int) -> None:
    """Remove what killed processes left, and the entries used longest ago beyond ``limit`` bytes.

    Other processes may do the same at the same time; a file that is gone already is no matter.
    """
    now = time.time()
    kept = []
    for item in os.scandir(folder):
        try:
            told = item.stat()
        except FileNotFoundError:
            continue
        if item.name.endswith(ASIDE) and now - told.st_mtime > ABANDONED_SECONDS:
            Path(item.path).unlink(missing_ok=True)
        elif item.name.endswith(ENDING):
            kept.append((told.st_mtime_ns, told.st_size, item.path))
    total = sum(size for _, size, _ in kept)
    for _, size, name in sorted(kept) if limit > 0 else ():
        if total <= limit:
            break
        Path(name).unlink(missing_ok=True)
        total -= size


def trouble(sentence: str, error: Exception) -> None:
    """Say once that the cache does not work; raise ``error`` if the settings want that."""
    if config.raise_persistent_cache_errors.value:
        raise error
    once(sentence)


def once(sentence: str) -> None:
    if sentence not in _said:
        _said.add(sentence)
        log.warning("%s", sentence)


def forget_what_was_said() -> None:
    """Say everything again that was said once."""
    _said.clear()
