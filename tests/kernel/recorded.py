"""What did real JAX say when it was last asked?

JAX compiles slowly, and its answers do not change while its version does not.  So each question of
the tests is kept with the reply, and a question asked again, word for word, is answered from there;
a new or changed one goes to JAX.  Last bits depend on the processor and on the kernels that
OpenBLAS chooses for it, so replies are kept for each kind of processor on which they were packed.
Where this kind has none, a reply of another kind is used if it holds no rounded numbers, or if
kinds with less and with more instructions gave the same.

    SAEM_ASK_JAX=1       ask JAX every question, whatever is kept
    SAEM_KEEP_ANSWERS=1  also keep each question of this run and its reply under .answers/
    python tests/kernel/recorded.py    pack .answers/ into tests/kernel/answers/, for this processor

Read before: ``oracle.py``.
Invariant: a reply is JAX's own, to the very bytes of its question; ``test_oracle.py`` asks some of
them again.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import platform
import re
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".answers"
REPLIES = Path(__file__).resolve().parent / "answers" / "replies.xz"
QUESTIONS = REPLIES.with_name("questions.xz")
HEAD = struct.Struct("<16sQ")
# What rounded numbers look like in a reply: the dtype of an array, a number in hexadecimal,
# decimals in a text.
ROUNDED = re.compile(rb'"dtype": "(b?float|complex)|0x[01]\.|[0-9]\.[0-9]{3}|[0-9]e[-+][0-9]')
# How a question begins that is a whole program: tests/programs runs it in a process of its own.
PROGRAM = b"program\n"
# The key under which packed replies say on which kind of processor they were made.
PROCESSOR = bytes(16)
# What stands for a reply that is the one in ``replies.xz``, which holds those packed last.
SAME = b""


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


def all_replies(folder: Path = REPLIES.parent) -> dict[bytes, dict[bytes, bytes]]:
    """Return all kept replies, by kind of processor."""
    latest = load(folder / REPLIES.name)
    found = {latest.pop(PROCESSOR, b""): latest}
    for path in sorted(folder.glob("replies-*.xz")):
        other = load(path)
        kind = other.pop(PROCESSOR)
        found[kind] = {name: latest[name] if reply == SAME else reply
                       for name, reply in other.items()}
    return found


def usable(kept: dict[bytes, dict[bytes, bytes]], kind: bytes) -> dict[bytes, bytes]:
    """Return the replies of ``kept`` that hold on a ``kind`` of processor.

    Those of this kind; those without rounded numbers; and those on which all kinds agree, if one of
    them has no instructions that this kind lacks, and one has all that this kind has.
    """
    found = dict(kept.get(kind, {}))
    here = instructions(kind)
    for name in {name for replies in kept.values() for name in replies} - found.keys():
        replies = {other: known[name] for other, known in kept.items() if name in known}
        reply, *others = replies.values()
        less = any(instructions(other) <= here for other in replies)
        more = any(instructions(other) >= here for other in replies)
        agreed = others and all(other == reply for other in others)
        if is_exact(reply) or (agreed and less and more):
            found[name] = reply
    return found


def instructions(kind: bytes) -> frozenset[bytes]:
    """Return the architecture and the instructions that a kind of processor has."""
    return frozenset(word for word in kind.split() if word.islower())


def is_exact(reply: bytes) -> bool:
    """Return whether no processor can make a reply differ: it holds no rounded numbers.

    They are arrays and numbers of floating point, and texts of those with many digits.
    """
    return not ROUNDED.search(reply)


class Recorded:
    """The replies kept from earlier runs; none if every question is to be asked (``live``)."""

    def __init__(self, live: bool = False) -> None:
        live = live or bool(os.environ.get("SAEM_ASK_JAX"))
        self.replies = {} if live else usable(all_replies(), processor())
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


def pack(kept: Path = KEPT, folder: Path = REPLIES.parent) -> None:
    """Pack what was kept; what is packed already and was not asked again is left out.

    Programs of other libraries are run apart: if none was asked, those that are packed stay.
    """
    before = all_replies(folder)
    packed = load(folder / QUESTIONS.name)
    replies, questions = ({bytes.fromhex(p.stem): p.read_bytes()
                           for p in sorted(kept.glob(f"*.{kind}"))
                           if is_portable(p.with_suffix(".reply").read_bytes())}
                          for kind in ("reply", "question"))
    if not replies:
        sys.exit("nothing was kept: run the tests with SAEM_KEEP_ANSWERS=1 first")
    if not any(question.startswith(PROGRAM) for question in questions.values()):
        mine = before.get(processor(), {})
        programs = {key: question for key, question in packed.items()
                    if question.startswith(PROGRAM) and key in mine}
        questions |= programs
        replies |= {key: mine[key] for key in programs}
    own = {PROCESSOR: processor()}
    save(folder / QUESTIONS.name, questions | own)
    save(folder / REPLIES.name, replies | own)
    for kind in before.keys() - {b"", processor()}:
        name = hashlib.sha256(kind).hexdigest()[:8]
        save(folder / f"replies-{name}.xz", {PROCESSOR: kind} | {
            key: SAME if reply == replies[key] else reply
            for key, reply in before[kind].items() if key in replies})
    own_name = hashlib.sha256(processor()).hexdigest()[:8]
    (folder / f"replies-{own_name}.xz").unlink(missing_ok=True)
    for path in sorted(folder.glob("*.xz")):
        print(f"{path.name}: {len(load(path)) - 1} entries, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    pack()
