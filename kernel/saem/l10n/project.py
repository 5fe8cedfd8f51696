"""Where do lessons lie, and in which languages do they exist?

Read before: nothing.  Read after: ``saem.l10n.source``.
Invariant: settings come from ``notebooks/lessons.toml`` alone, so a build depends on nothing else.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from filelock import FileLock, Timeout

from saem.core.files import write_whole

SETTINGS = "notebooks/lessons.toml"
COLAB = "https://colab.research.google.com/"
# What GitHub takes for owner/name, and what of git's branch names needs no escape in an address.
REPOSITORY = re.compile(
    r"(?!.*--.*/)[A-Za-z0-9][A-Za-z0-9-]{0,38}(?<!-)/(?!\.{1,2}$)[\w.-]{1,100}", re.A)
# What git writes at the start of a line where two changes did not go together.
_CONFLICT = re.compile(r"(?m)^(?:<{7}|\|{7}|={7}|>{7})(?: .*)?$")
# Ends of a line that no editor shows as one; PO readers end a text there and lose the rest.
HIDDEN_ENDS = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")
# How many seconds a change of a translation waits for another one.
PATIENCE = 20.0
_BRANCH = re.compile(r"(?!.*(?:\.\.|//|\.lock$))[\w][\w./-]*(?<![./])", re.A)


@dataclasses.dataclass(frozen=True)
class Project:
    """A tree of lessons: its root, source language, other languages, and where it is published."""

    root: Path
    source_language: str
    languages: tuple[str, ...]
    repository: str
    branch: str

    def __post_init__(self) -> None:
        if self.repository and not REPOSITORY.fullmatch(self.repository):
            raise ValueError(f"a public repository is named owner/name, as on GitHub, but got "
                             f"{self.repository!r}. Leave it empty while there is none.")
        if not _BRANCH.fullmatch(self.branch):
            raise ValueError(f"a branch is named as main or docs/2.x, but got {self.branch!r}.")

    @property
    def notebooks(self) -> Path:
        """The folder of lesson sources."""
        return self.root / "notebooks"

    @property
    def glossary(self) -> Path:
        """The file of terms."""
        return self.notebooks / "glossary.yml"

    def lessons(self) -> list[Path]:
        """Lesson sources, in order."""
        return sorted(self.notebooks.glob("[0-9][0-9]-*.md"))

    def pages(self) -> list[Path]:
        """Sources of pages of prose that are no lessons, in order."""
        return sorted(set(self.notebooks.glob("*.md")) - set(self.lessons()))

    def lesson(self, name: str) -> Path:
        """The lesson or page whose name is or starts with ``name``, such as ``01``.

        Raises FileNotFoundError if there is not exactly one.
        """
        known = (*self.lessons(), *self.pages())
        found = [p for p in known if p.stem == name or p.stem.startswith(f"{name}-")]
        if len(found) != 1:
            names = ", ".join(p.stem for p in known)
            raise FileNotFoundError(f"lesson {name!r} is not one of: {names}.")
        return found[0]

    def check_language(self, code: str, translation: bool = False) -> None:
        """Raises ValueError unless lessons exist in ``code``, by translation if that is asked."""
        known = self.languages if translation else (self.source_language, *self.languages)
        if code not in known:
            kind = "languages that lessons are translated into" if translation else "languages"
            raise ValueError(f"{code!r} is not one of the {kind}: {', '.join(known)}. "
                             "`saem l10n new CODE` begins one.")

    def catalog(self, lesson: str, language: str) -> Path:
        """The PO file of a lesson."""
        return self.notebooks / "locale" / language / f"{lesson}.po"

    def chosen(self, names: Sequence[str]) -> list[Path]:
        """The lessons and pages called ``names``; all lessons if there are none."""
        return [self.lesson(name) for name in names] or self.lessons()

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the translations from their reading to their writing: other processes wait.

        Raises OSError where another one holds them for ``PATIENCE`` seconds, or none may write.
        """
        held = self.root / ".saem" / "l10n.lock"
        try:
            held.parent.mkdir(exist_ok=True)
            lock = FileLock(held, timeout=PATIENCE, is_singleton=True)
            lock.acquire()
        except Timeout as error:
            raise OSError("another command is changing the translations; nothing was written. "
                          f"Try again when it has ended (it holds {held}).") from error
        except (OSError, NotImplementedError) as error:  # the latter where a disk knows no locks
            raise OSError(f"{held} cannot be locked; nothing was written: {error}") from error
        try:
            yield
        finally:
            lock.release()

    def built(self, lesson: str, language: str) -> Path:
        """The built notebook of a lesson."""
        return self.root / language / f"{lesson}.ipynb"

    def stored(self, lesson: str, language: str) -> nbformat.NotebookNode | None:
        """The built notebook of a lesson as it is now, None if it is not built."""
        path = self.built(lesson, language)
        return nbformat.read(path, as_version=4) if path.is_file() else None

    def colab(self, lesson: str, language: str) -> str:
        """The address at which Colab opens a built lesson; '' while no repository is known."""
        if not self.repository:
            return ""
        return f"{COLAB}github/{self.repository}/blob/{self.branch}/{language}/{lesson}.ipynb"

    def strings(self, language: str) -> Path:
        """The translated strings that the lessons' code looks up at run time."""
        return self.root / "kernel" / "saem" / "lesson" / "strings" / f"{language}.json"


def find(start: Path | None = None) -> Project:
    """The project that ``start`` (by default the working folder) lies in.

    Raises FileNotFoundError if no folder above it has ``notebooks/lessons.toml``, ValueError if
    that file is not as it should be.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / SETTINGS).is_file():
            try:
                return _project(folder, tomllib.loads((folder / SETTINGS).read_text("utf-8")))
            except ValueError as error:
                raise ValueError(f"{folder / SETTINGS}: {error}") from error
    raise FileNotFoundError(
        f"no {SETTINGS} in {here} or above it. Run this inside a clone, or name one with --root."
    )


def _project(root: Path, data: dict[str, object]) -> Project:
    """The project that the settings describe.  Raises ValueError."""

    def text(name: str, default: str | None = None) -> str:
        value = data.get(name, default)
        if not isinstance(value, str):
            raise ValueError(f'a line such as {name} = "en" is needed, but got {value!r}.')
        return value

    languages = data.get("languages")
    if not isinstance(languages, list) or not all(isinstance(code, str) for code in languages):
        raise ValueError(f'a line such as languages = ["ko"] is needed, but got {languages!r}.')
    return Project(root, text("source_language"), tuple(languages), text("repository", ""),
                   text("branch", "main"))


def clean(text: str, name: str) -> str:
    """The text of a file without a byte order mark, which some editors put before it.

    Raises ValueError if the marks of a merge conflict, or ends of lines that cannot be seen, are
    in it.
    """
    text = text.removeprefix("\ufeff")
    hidden = HIDDEN_ENDS.search(text)
    if hidden is not None:
        called = unicodedata.name(hidden[0], "a control character")
        raise ValueError(
            f"{name}: line {text.count(chr(10), 0, hidden.start()) + 1} has the character "
            f"U+{ord(hidden[0]):04X} ({called}), which editors do not show, after "
            f"{text[:hidden.start()].rpartition(chr(10))[2][-20:]!r}. Remove it.")
    mark = _CONFLICT.search(text)
    if mark is not None:
        raise ValueError(
            f"{name}: line {text.count(chr(10), 0, mark.start()) + 1} is the mark of a merge "
            f"conflict ({mark[0][:40]}). Keep one of the two versions, or parts of both, and "
            "remove the lines that begin with <<<<<<<, ======= and >>>>>>>.")
    return text


def write(path: Path, text: str) -> None:
    """Put ``text`` into ``path`` whole or not at all.

    Raises OSError, which names ``path``.
    """
    write_whole(path, text.encode())
