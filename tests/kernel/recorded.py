"""What did real JAX say when it was last asked?

JAX compiles slowly, and its answers do not change while its version does not.  So each question of
the tests is kept with the reply, and a question asked again, word for word, is answered from there;
a new or changed one goes to JAX.  Last bits depend on the processor and on the kernels that
OpenBLAS chooses for it: replies made on another kind of processor, or with other kernels, are not
used.

    SAEM_ASK_JAX=1       ask JAX every question, whatever is kept
    SAEM_KEEP_ANSWERS=1  also keep each question of this run and its reply under .answers/
    python tests/kernel/recorded.py    pack .answers/ into tests/kernel/answers/

Read before: ``oracle.py``.
Invariant: a reply is JAX's own, to the very bytes of its question; ``test_oracle.py`` asks some of
them again.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import platform
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".answers"
REPLIES = Path(__file__).resolve().parent / "answers" / "replies.xz"
QUESTIONS = REPLIES.with_name("questions.xz")
HEAD = struct.Struct("<16sQ")
# How a question begins that is a whole program: tests/programs runs it in a process of its own.
PROGRAM = b"program\n"
# The key under which the packed replies say on which processor they were made.
PROCESSOR = bytes(16)


def key(question: bytes) -> bytes:
    """Return the 16 bytes by which a question is found."""
    return hashlib.sha256(question).digest()[:16]


def load(path: Path) -> dict[bytes, bytes]:
    """Return what a packed file holds, by key; nothing if there is no file."""
    if not path.exists():
        return {}
    data = memoryview(lzma.decompress(path.read_bytes()))
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        name, size = HEAD.unpack_from(data, at)
        at += HEAD.size
        found[name] = bytes(data[at:at + size])
        at += size
    return found


def save(path: Path, entries: dict[bytes, bytes]) -> None:
    """Write a packed file, aside first."""
    body = b"".join(HEAD.pack(k, len(entries[k])) + entries[k] for k in sorted(entries))
    aside = path.with_suffix(".new")
    aside.write_bytes(lzma.compress(body, preset=9))
    aside.replace(path)


def processor() -> bytes:
    """Return what the choice of instructions by XLA and by OpenBLAS depends on, in words."""
    wanted = {"avx", "avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile", "fma"}
    info = Path("/proc/cpuinfo")
    words = info.read_text(encoding="utf-8").split() if info.exists() else []
    blas = os.environ.get("OPENBLAS_CORETYPE", "")
    return " ".join([platform.machine(), *sorted(wanted.intersection(words)), blas]).encode()


class Recorded:
    """The replies kept from earlier runs; none if every question is to be asked (``live``)."""

    def __init__(self, live: bool = False) -> None:
        live = live or bool(os.environ.get("SAEM_ASK_JAX"))
        self.replies = {} if live else load(REPLIES)
        if self.replies.pop(PROCESSOR, b"") != processor():
            self.replies = {}
        self.keeping = bool(os.environ.get("SAEM_KEEP_ANSWERS"))

    def find(self, question: bytes) -> bytes | None:
        """Return the reply to ``question``, None if it was never asked."""
        reply = self.replies.get(key(question))
        if reply is not None and self.keeping:
            self.keep(question, reply)
        return reply

    def keep(self, question: bytes, reply: bytes) -> None:
        """Keep a reply for packing, if this run keeps them."""
        if not self.keeping:
            return
        KEPT.mkdir(exist_ok=True)
        name = key(question).hex()
        for kind, content in ((".question", question), (".reply", reply)):
            aside = KEPT / f"{name}{kind}.{os.getpid()}"
            aside.write_bytes(content)
            aside.replace(KEPT / f"{name}{kind}")


def is_portable(reply: bytes) -> bool:
    """Return whether a reply names no folder of this machine."""
    return not any(word in reply for word in (str(ROOT).encode(), b"site-packages", b"/tmp/"))


def pack() -> None:
    """Pack what was kept; what is packed already and was not asked again is left out."""
    for kind, path in ((".question", QUESTIONS), (".reply", REPLIES)):
        entries = {bytes.fromhex(p.stem): p.read_bytes() for p in sorted(KEPT.glob(f"*{kind}"))
                   if is_portable(p.with_suffix(".reply").read_bytes())}
        if not entries:
            sys.exit("nothing was kept: run the tests with SAEM_KEEP_ANSWERS=1 first")
        entries[PROCESSOR] = processor()
        save(path, entries)
        print(f"{path.relative_to(ROOT)}: {len(entries)} entries, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    pack()
