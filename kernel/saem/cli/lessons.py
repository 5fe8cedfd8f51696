"""How are lessons copied into a learner's folder without changing the learner's work?

``copy_lessons`` writes the built notebooks into a working folder and remembers, in
``.saem/manifest.json``, the digest of each file as written.  A file that still has that digest is
ours and may be renewed.  Any other file is the learner's: it stays as it is, and a newer lesson is
placed beside it as ``01-name.new.ipynb``.

Read before: nothing.  Read after: ``saem.cli.server``.
Invariant: a file whose bytes we did not write is never changed, moved or removed
(``tests/kernel/test_cli.py``, with files, edits and new versions made by hypothesis).
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from saem.core.files import write_whole

LANGUAGES = ("ko", "en")
PRIVATE = ".saem"  # our own folder inside the working folder

Kind = Literal["written", "renewed", "same", "kept", "beside"]


class LessonError(Exception):
    """The lessons cannot be found or written; the message says what to try."""


@dataclass(frozen=True)
class Outcome:
    """What was done about one lesson file.

    `kind` is "written" (new), "renewed" (an older lesson of ours, untouched by the learner),
    "same" (nothing to do), "kept" (the learner's, and no newer lesson) or "beside" (the learner's;
    the newer lesson is at `beside`).
    """

    kind: Kind
    path: Path
    beside: Path | None = None


@dataclass
class Manifest:
    """What we wrote into one working folder: path inside it → SHA-256."""

    written: dict[str, str] = field(default_factory=dict)  # as we last wrote the file itself
    offered: dict[str, str] = field(default_factory=dict)  # the lesson last placed there or beside

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The folder's manifest; an unreadable one counts as empty, so every file is kept."""
        try:
            stored = json.loads((folder / PRIVATE / "manifest.json").read_text("utf-8"))
            return cls(_digests(stored["written"]), _digests(stored["offered"]))
        except (OSError, ValueError, KeyError, TypeError):
            return cls()

    def write(self, folder: Path) -> None:
        """Store the manifest in the folder."""
        stored = {"version": 1, "written": self.written, "offered": self.offered}
        text = json.dumps(stored, indent=1, sort_keys=True) + "\n"
        write_whole(folder / PRIVATE / "manifest.json", text.encode())


def _digests(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError("a manifest maps paths to digests")
    return {str(path): str(digest) for path, digest in value.items()}


def digest_of(data: bytes) -> str:
    """SHA-256 of `data`, in hex."""
    return hashlib.sha256(data).hexdigest()


def find_lessons() -> Path:
    """The folder that holds en/ and ko/: inside the installed package, else the clone itself.

    Raises: LessonError when neither has a lesson.
    """
    package = Path(__file__).resolve().parents[1]
    for place in (package / "lessons", package.parents[1]):
        if any(any((place / language).glob("*.ipynb")) for language in LANGUAGES):
            return place
    raise LessonError(
        "No built lessons were found beside the installed package. "
        "In a clone, try: saem l10n build. "
        "Else reinstall: pip install --force-reinstall 'saem[lab]'"
    )


def copy_lessons(source: Path, folder: Path) -> list[Outcome]:
    """Bring the lessons of `source` into `folder`; returns one outcome per file.

    Raises: LessonError when the folder cannot be made or written.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise LessonError(
                f"{folder} is a file, but a folder is needed. Try: saem lab OTHER_NAME"
            )
        folder.mkdir(parents=True, exist_ok=True)
        manifest = Manifest.read(folder)
        outcomes = [
            _bring(path.read_bytes(), folder, path.relative_to(source), manifest)
            for language in LANGUAGES
            for path in sorted((source / language).rglob("*"))
            if path.is_file() and not any(part.startswith(".") for part in path.parts[-2:])
        ]
        manifest.write(folder)
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise LessonError(
            f"Cannot write lessons into {folder}: {error.strerror} ({error.filename}). "
            "Try another folder: saem lab ~/saem-lessons"
        ) from error
    except OSError as error:
        raise LessonError(f"Cannot write lessons into {folder}: {error}.") from error
    return outcomes


def _bring(data: bytes, folder: Path, inside: Path, manifest: Manifest) -> Outcome:
    """Bring one lesson file into the folder and note it in the manifest."""
    path, key, new = folder / inside, inside.as_posix(), digest_of(data)
    if not os.path.lexists(path):
        write_whole(path, data)
        manifest.written[key] = manifest.offered[key] = new
        return Outcome("written", path)
    mine = path.is_file() and not path.is_symlink()
    now = digest_of(path.read_bytes()) if mine else None
    if now == new:
        manifest.written[key] = manifest.offered[key] = new
        return Outcome("same", path)
    if now is not None and now == manifest.written.get(key):
        write_whole(path, data)
        manifest.written[key] = manifest.offered[key] = new
        return Outcome("renewed", path)
    if manifest.offered.get(key) == new:
        return Outcome("kept", path)
    beside = _place_beside(data, folder, inside, manifest)
    manifest.offered[key] = new
    return Outcome("beside", path, beside)


def _place_beside(data: bytes, folder: Path, inside: Path, manifest: Manifest) -> Path:
    """Write a newer lesson next to the learner's file, under a name that is free or ours."""
    count = 1
    while True:
        middle = ".new" if count == 1 else f".new{count}"
        name = inside.with_name(f"{inside.stem}{middle}{inside.suffix}")
        path, key = folder / name, name.as_posix()
        free = not os.path.lexists(path)
        if not free and path.is_file() and not path.is_symlink():
            free = digest_of(path.read_bytes()) in (manifest.written.get(key), digest_of(data))
        if free:
            write_whole(path, data)
            manifest.written[key] = digest_of(data)
            return path
        count += 1


def first_lesson(source: Path, language: str) -> Path:
    """The path, inside the working folder, of the first lesson in a language.

    Raises: LessonError when that language has no lesson.
    """
    lessons = sorted(path.name for path in (source / language).glob("*.ipynb"))
    if not lessons:
        raise LessonError(f"There are no lessons in {language!r}. Try: saem lab --lang en")
    return Path(language) / lessons[0]
