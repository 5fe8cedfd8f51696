"""How does a reviewer see both languages side by side?

One page a lesson: English on the left, the translation on the right, code with its outputs between
them.  Written to a file it is complete in itself and asks nothing of the network, so it can be
attached to a pull request; served by ``review_server`` the same page has a script and buttons.

Read before: ``saem.l10n.rows``.  Read after: ``saem.l10n.review_server``.
Invariant: everything shown is escaped (tests/notebooks/test_review.py).
"""

from __future__ import annotations

import html
import subprocess
from pathlib import Path

import nbformat
import polib

from saem.l10n import catalog
from saem.l10n.execute import error_text
from saem.l10n.figures import text_of
from saem.l10n.glossary import Glossary
from saem.l10n.rows import SAY, Context, row
from saem.l10n.source import Cell, Lesson
from saem.l10n.units import Unit, units

_STATIC = Path(__file__).parent / "static"


def page(lesson: Lesson, po: polib.POFile, glossary: Glossary, say: str, *,
         before: dict[str, str] | None = None, notebook: nbformat.NotebookNode | None = None,
         live: bool = False) -> str:
    """The review page of a lesson, worded in ``say``.

    ``before`` has the translations with which to compare, ``notebook`` the outputs.  A ``live``
    page belongs to a server.
    """
    code = po.metadata.get("Language", "")
    context = Context(glossary, say, before or {}, live, code)
    entries = catalog.active(po)
    by_cell: dict[str, list[Unit]] = {}
    for unit in units(lesson):
        by_cell.setdefault(unit.cell, []).append(unit)
    outputs = {c.id: c.get("outputs", ()) for c in notebook.cells} if notebook else {}
    body = "".join(
        "".join(row(u, entries.get(u.context), context) for u in by_cell.get(cell.id, ()))
        + _code(cell, outputs.get(cell.id, ())) for cell in lesson.cells)
    language = html.escape(code)
    title = html.escape(f"{lesson.name} · en → {language}")
    words = SAY[say]
    bar = (f'<header><h1>{title}</h1><span id="left" data-left="{html.escape(words["left"])}" '
           f'data-done="{html.escape(words["done"])}"></span><p>{html.escape(words["help"])}</p>'
           '<p id="message" role="status"></p></header>') if live else f"<h1>{title}</h1>"
    labels = " ".join(f'data-{key}="{html.escape(words[key])}"' for key in (
        "save", "cancel", "unsaved", "unreachable"))
    script = '<script src="review.js"></script>' if live else ""
    style = (_STATIC / "review.css").read_text(encoding="utf-8")
    return (
        f'<!doctype html><html lang="{say}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{style}</style></head>"
        f'<body data-language="{language}" {labels}>'
        f"{bar}<main>{body}</main>{script}</body></html>\n"
    )


def earlier(path: Path, revision: str) -> dict[str, str]:
    """The translations of a PO file in a git revision, by context; none if it was not there.

    Where there is no git, nothing was committed, and ``HEAD`` has none.
    Raises ValueError if git does not know another revision.
    """
    shown = _git(path.parent, "show", "--end-of-options", f"{revision}:./{path.name}")
    if shown is not None:
        return {context: entry.msgstr for context, entry
                in catalog.active(catalog.parse(shown, f"{revision}:{path.name}")).items()}
    if revision != "HEAD" and _git(path.parent, "rev-parse", "--verify", "--end-of-options",
                                   f"{revision}^{{commit}}") is None:
        raise ValueError(f"git has no revision {revision!r} here. `git log` shows those that there "
                         "are; a branch, a tag or HEAD~3 will do, too.")
    return {}


def _git(folder: Path, *words: str) -> str | None:
    """What git prints, None if it fails or is not there."""
    try:
        run = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True,
                             encoding="utf-8")
    except FileNotFoundError:
        return None
    return None if run.returncode else run.stdout


def _code(cell: Cell, outputs: list) -> str:
    """A code cell with what it shows."""
    if cell.kind != "code":
        return ""
    shown = "".join(_output(output) for output in outputs)
    shown = f'<div class="outputs">{shown}</div>' if shown else ""
    return f'<details class="code"><summary><code>{html.escape(cell.id)}</code></summary>' \
           f"<pre>{html.escape(cell.source)}</pre>{shown}</details>"


def _output(output: nbformat.NotebookNode) -> str:
    if output.output_type == "stream":
        return f"<pre>{html.escape(output.text)}</pre>"
    if output.output_type == "error":
        return f'<pre class="error">{html.escape(error_text(output))}</pre>'
    picture = output.data.get("image/png")
    if picture:
        data = html.escape("".join(picture.split()))
        alt = html.escape(text_of(output))
        return f'<img alt="{alt}" src="data:image/png;base64,{data}">'
    return f"<pre>{html.escape(output.data.get('text/plain', ''))}</pre>"
