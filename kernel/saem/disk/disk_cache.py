"""How is a program found that an earlier process compiled?

An executable is kept in the folder that ``disk.cache_folder`` names as one file, and the next
process that needs the same program on the same kind of machine loads it.  The file's name is a
SHA-256 of all that the machine code depends on: the program's text, XLA's options with all flags
in force, the versions of jaxlib and of this format, the processor's model and features, and the
devices.  The file is a SHA-256 of all that follows, a line of JSON that repeats the name, and the
compressed executable.  It is written aside, later and in another thread, and renamed, so that a
reader finds it whole or not at all.  A damaged file is found, compiled again and replaced.

Loading an executable runs what it holds, so the folder must be one that no other user writes to;
``cache_folder`` sees to that for the user's own.  Nothing is unpickled.

Read before: ``compile.executables``, ``disk.cache_folder``, ``disk.disk_writer``.
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
from saem.disk import cache_folder
from saem.disk.cache_folder import ABANDONED_SECONDS, ASIDE, ENDING, Place
from saem.disk.disk_writer import Writer

hashlib: Any = later("hashlib")  # needed only where programs are kept on disk
json: Any = later("json")
platform: Any = later("platform")
subprocess: Any = later("subprocess")
zlib: Any = later("zlib")

__all__ = ["ABANDONED_SECONDS", "ASIDE", "ENDING", "Damaged", "Entry", "entry", "flush", "pack",
           "unpack"]

FORMAT = 2
# The time of last use is written no more often than this.
TOUCH_SECONDS = 60.0
# Environment variables that change what the compiler makes, besides those in XLA's options.
FLAGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "TF_XLA_FLAGS", "TF_ENABLE_ONEDNN_OPTS", "NPROC",
         "PJRT_NPROC", "NVIDIA_TF32_OVERRIDE")

log = logging.getLogger("saem")


class Damaged(Exception):
    """A file of the cache is not what was written."""


class Entry(Record):
    """One program's place in the cache: its file, and how it is loaded."""

    place: Place
    digest: str
    name: str
    devices: tuple[Any, ...]
    options: Any

    @property
    def path(self) -> Path:
        """The program's file."""
        return self.place.folder / (self.digest + ENDING)

    def load(self) -> tuple[Any, str]:
        """Return the executable, and ``found``; or None, and ``absent`` or ``damaged``."""
        begin = time.perf_counter()
        try:
            if (waiting := _unwritten.get(self.path)) is not None:
                return self.deserialized(waiting), "found"
            data, used = cache_folder.read(self.path, self.place.personal)
        except FileNotFoundError:
            return None, "absent"
        except (OSError, _jaxlib.JaxRuntimeError) as error:
            self.note_failure(f"The compile cache {self.place.folder} cannot be read: "
                              f"{getattr(error, 'strerror', error)}.", error)
            return None, "absent"
        try:
            head, serialized = unpack(data)
            if head.get("key") != self.digest:
                raise Damaged("it was made for another program or machine")
            executable = self.deserialized(serialized)
        except (Damaged, _jaxlib.JaxRuntimeError) as error:
            self.note_failure(f"The compile cache entry {self.path} of {self.name} is damaged "
                              f"({error}). The program is compiled again and the entry replaced.",
                              error)
            return None, "damaged"
        if abs(time.time() - used) > TOUCH_SECONDS:
            try:
                os.utime(self.path)  # the time of its last use, by which entries are removed
            except OSError:
                pass  # in a folder that may only be read nothing is removed
        seconds = time.perf_counter() - begin
        _found.add(self.place.folder, head.get("seconds", 0.0) - seconds)
        log.log(logging.WARNING if config.log_compiles.value else logging.DEBUG,
                "Persistent compilation cache hit for '%s' with key %s, loaded in %.6f sec",
                self.name, self.path.name, seconds)
        return executable, "found"

    def deserialized(self, serialized: bytes) -> Any:
        """Return the executable of these bytes, loaded on the devices.

        Raises: JaxRuntimeError if they are not an executable.
        """
        client = self.devices[0].client
        return client.deserialize_executable(
            serialized, _jaxlib.DeviceList(self.devices), self.options)

    def store(self, executable: Any, seconds: float, replace: bool = False) -> None:
        """Keep ``executable``, which took ``seconds``, if the settings want it kept.

        In the user's own folder it is written later, unless errors are to be raised; in one that
        was chosen by JAX's setting at once, as programs that use the setting expect.  With
        ``replace`` it is kept in any case: a damaged file must not stay.
        """
        if seconds < self.place.least_seconds and not replace:
            return
        raising = config.raise_persistent_cache_errors.value
        try:
            serialized = executable.serialize()  # now: a sort that has run cannot be serialized
        except _jaxlib.JaxRuntimeError as error:
            self.note(f"Programs of the platform {self.devices[0].platform} cannot be kept in the "
                      f"compile cache: {error}.")
            return

        def job() -> None:
            try:
                self._store(serialized, seconds, replace, raising)
            finally:
                _unwritten.pop(self.path, None)

        if raising or not self.place.personal:
            job()
        else:
            _unwritten[self.path] = serialized
            _writer.add(job)

    def _store(self, serialized: bytes, seconds: float, replace: bool, raising: bool) -> None:
        where, limit = self.place.folder, self.place.limit
        data = pack(serialized, self.name, seconds, self.digest)
        if len(data) < self.place.least_bytes and not replace:
            return
        if 0 < limit < len(data):
            self.note(f"The program {self.name} takes {len(data)} bytes, more than the compile "
                      f"cache may hold ({limit}), so it is not kept.")
            return
        try:
            cache_folder.write(self.path, data)
            cache_folder.grown(where, limit, len(data))
        except OSError as error:
            if raising:
                raise
            self.note(f"The program {self.name} could not be kept in the compile cache {where}: "
                      f"{error.strerror}.")

    def note_failure(self, sentence: str, error: Exception) -> None:
        """Note that the cache does not work; raise ``error`` if the settings want that."""
        if config.raise_persistent_cache_errors.value:
            raise error
        self.note(sentence)

    def note(self, sentence: str) -> None:
        """Note it: as a warning for a folder that was chosen by JAX's setting, else quietly."""
        cache_folder.note(sentence, loud=not self.place.personal)


def entry(key: str, name: str, devices: Sequence[Any], options: Any) -> Entry | None:
    """Return the place of the program with content ``key``; None if it is not to be kept."""
    place = cache_folder.place()
    if place is None or "--xla_dump" in os.environ.get("XLA_FLAGS", ""):
        return None  # a dump is of programs that are compiled
    why = cache_folder.refusal(place)
    if why:
        cache_folder.note(f"The compile cache is not used: {why}.", loud=False)
        return None
    client = devices[0].client
    if any(d.process_index != client.process_index() for d in devices):
        return None  # each process would load an executable that another made
    digest = hashlib.sha256(repr((FORMAT, key, options.SerializeAsString(), machine(devices[0])))
                            .encode()).hexdigest()
    return Entry(place, digest, name, tuple(devices), options)


def machine(device: Any) -> tuple:
    """Return all, besides program and options, that decides what the compiler makes of it."""
    flags = tuple(os.environ.get(name, "") for name in FLAGS)
    host = (host_processor(), processors()) if device.platform == "cpu" else ()
    return (_jaxlib.__version__, device.platform, device.client.platform_version,
            device.device_kind, len(device.client.devices()), host, flags)


@functools.cache
def processors() -> int:
    """Return for how many processors XLA shares work out."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not on macOS and Windows
        return os.cpu_count() or 1


@functools.cache
def host_processor() -> str:
    """Return a key for this kind of processor, since programs use all its instructions."""
    facts = {platform.machine()}
    try:
        with open("/proc/cpuinfo", "rb") as file:
            text = file.read(2**16)
    except OSError:
        facts |= {platform.processor(), os.environ.get("PROCESSOR_IDENTIFIER", ""), *_apple()}
    else:
        # A block for each processor; of very many the first, without the one that was cut.
        blocks = text.decode(errors="replace").split("\n\n")
        for block in blocks[:-1] or blocks:
            facts.update(line for line in block.splitlines() if line.startswith(
                ("flags", "Features", "model name", "cpu family", "model\t", "stepping", "CPU ")))
    return hashlib.sha256("\n".join(sorted(facts)).encode()).hexdigest()


def _apple() -> list[str]:
    """Return what macOS calls its processor and its features; nothing elsewhere."""
    if platform.system() != "Darwin":
        return []
    done = subprocess.run(["/usr/sbin/sysctl", "machdep.cpu.brand_string", "hw.optional"],
                          capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def pack(serialized: bytes, name: str, seconds: float, key: str) -> bytes:
    """Return the bytes of a file."""
    head = json.dumps({"format": FORMAT, "key": key, "name": name, "seconds": round(seconds, 6),
                       "jaxlib": _jaxlib.__version__})
    rest = head.encode() + b"\n" + zlib.compress(serialized, 1)
    return hashlib.sha256(rest).digest() + rest


def unpack(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the head and the serialized executable in the bytes of a file.

    Raises: Damaged if they are not what ``pack`` made.
    """
    digest, rest = data[:32], memoryview(data)[32:]
    if len(digest) < 32 or hashlib.sha256(rest).digest() != digest:
        raise Damaged(f"its {len(data)} bytes do not have the checksum they should have")
    try:
        end = data.index(b"\n", 32)
        return json.loads(data[32:end]), zlib.decompress(memoryview(data)[end + 1:])
    except (ValueError, zlib.error) as error:
        raise Damaged(f"it has another form: {error}") from error


class Found:
    """How often programs were found on disk, in this process and not yet in the journal."""

    def __init__(self) -> None:
        self.hits = 0
        self._unwritten: dict[Path, tuple[int, float]] = {}

    def add(self, folder: Path, saved: float) -> None:
        """Count one program, which saved so many seconds of compiling."""
        self.hits += 1
        hits, seconds = self._unwritten.get(folder, (0, 0.0))
        self._unwritten[folder] = hits + 1, seconds + max(saved, 0.0)
        _writer.open()

    def write(self) -> None:
        """Add what was counted to the journals."""
        unwritten, self._unwritten = self._unwritten, {}
        for folder, (hits, seconds) in unwritten.items():
            cache_folder.append(folder, hits=hits, saved=round(seconds, 3))

    def forget(self) -> None:
        """In a child process: the parent writes what was counted, and what waits to be written."""
        self._unwritten = {}
        _unwritten.clear()


_found = Found()
_unwritten: dict[Path, bytes] = {}  # what a program that was forgotten in memory is found in
_writer = Writer(at_end=_found.write, in_child=_found.forget)


def flush() -> bool:
    """Write now what waits to be written; returns whether all of it is."""
    return _writer.flush()


def hits() -> int:
    """Return how many programs this process found on disk."""
    return _found.hits
