"""How does a new language begin?

``begin(project, "ja")`` writes untranslated PO files, one for each lesson and page and ``frame.po``
for what stands around lessons, and adds the code to ``lessons.toml``.  From then on every tool
knows the language.  Until something is translated its notebooks show the English, each unit with a
badge.

Read before: ``saem.l10n.merge``.  Read after: ``saem.l10n.commands``.
Invariant: what other languages have is not touched (tests/notebooks/test_languages.py).
"""

from __future__ import annotations

import re
from pathlib import Path

from saem.l10n import catalog
from saem.l10n.assemble import FRAME, frame_units
from saem.l10n.merge import merge
from saem.l10n.project import SETTINGS, Project, write
from saem.l10n.source import read
from saem.l10n.units import units

_CODE = re.compile(r"[a-z]{2,3}(?:-[A-Z][a-z]{3})?(?:-(?:[A-Z]{2}|\d{3}))?")
_SETTING = re.compile(r"^languages\s*=\s*\[(.*)\]", re.M)


def begin(project: Project, code: str) -> list[Path]:
    """Add a language; returns the PO files written: that of the frame, then one a lesson or page.

    Raises ValueError for a bad language code (BCP 47, such as ``ja`` or ``pt-BR``), or one
    that is there.
    """
    if not _CODE.fullmatch(code):
        raise ValueError(f"a language needs a code such as ja or pt-BR, but got {code!r}.")
    if code in (project.source_language, *project.languages):
        raise ValueError(f"{code} is there already.")
    settings = project.root / SETTINGS
    text = settings.read_text(encoding="utf-8")
    inside = _SETTING.search(text)
    if inside is None:
        raise ValueError(f"{settings} needs a line such as: languages = [\"ko\"]")
    listed = ", ".join(f'"{language}"' for language in (*project.languages, code))
    sources = (*project.lessons(), *project.pages())
    wanted = {FRAME: frame_units()} | {p.stem: units(read(p)) for p in sources}
    files = {}
    for name, found in wanted.items():
        path = project.catalog(name, code)
        files[path], _ = merge(found, catalog.load(path, code))
    for path, po in files.items():
        catalog.save(po, path)
    # Last: where a file could not be written, the same command can be given again.
    write(settings, text[:inside.start()] + f"languages = [{listed}]" + text[inside.end():])
    return list(files)
