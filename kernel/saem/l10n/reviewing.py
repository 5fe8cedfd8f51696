"""What does the review page ask of Python, from either server?

The page is served by ``saem l10n review`` (a server of its own) and by JupyterLab's server.  Both
hand what the page asks to a ``Reviewing``, which answers with a status and JSON.

Read before: ``saem.l10n.desk``, ``saem.l10n.page``.  Read after: ``saem.l10n.review_server``,
``saem.l10n.jupyter``.
Invariant: judging a draft (``lint``) writes nothing (tests/notebooks/test_desk.py).
"""

from __future__ import annotations

import html
import json
from http import HTTPStatus
from pathlib import Path
from typing import Any

from saem.l10n import catalog, glossary
from saem.l10n.desk import ChangedError, Desk
from saem.l10n.page import earlier, page
from saem.l10n.review import ReviewError
from saem.l10n.rows import SAY, Context, findings, row
from saem.l10n.units import Unit, units

ACTIONS = ("edit", "accept", "comment", "lint")
LARGEST = 200_000  # bytes of a request; the longest unit of a lesson has some thousands
POLICY = ("default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; "
          "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
SCRIPT = Path(__file__).parent / "static" / "review.js"


class Reviewing:
    """The page of one desk, worded in ``say``; changes are shown against a git revision."""

    def __init__(self, desk: Desk, say: str, against: str = "HEAD"):
        self.desk, self.say = desk, say
        self.before = earlier(desk.path, against)

    def page(self) -> tuple[HTTPStatus, str]:
        """The whole page, as the files are now; the reason, if one of them cannot be read."""
        desk = self.desk
        try:
            return HTTPStatus.OK, page(
                desk.lesson(), desk.read(), glossary.load(desk.project.glossary), self.say,
                before=self.before, live=True,
                notebook=desk.project.stored(desk.source.stem, desk.language))
        except (OSError, ValueError) as error:
            reason = html.escape(SAY[self.say]["file"].format(error))
            return HTTPStatus.CONFLICT, (
                f'<!doctype html><html lang="{self.say}"><head><meta charset="utf-8"><title>Saem'
                f'</title></head><body><p role="alert">{reason}</p></body></html>\n')

    def row(self, context: str) -> str:
        """One unit, as the files are now."""
        entries = catalog.active(self.desk.read())
        return row(self._unit(context), entries.get(context), self._shared())

    def findings(self, context: str, text: str) -> str:
        """What the lint would find if ``text`` were the translation."""
        return findings(self._unit(context), text, "translated", self._shared())

    def answer(self, action: str, body: bytes) -> tuple[HTTPStatus, dict[str, Any]]:
        """Do what the page asks; a refusal answers with its reason.

        A change answers with the new row, and so does a refusal because of somebody else's change.
        """
        say = SAY[self.say]
        if action not in ACTIONS:
            return HTTPStatus.NOT_FOUND, {"message": say["action"]}
        try:
            unit, text, seen = _asked(body)
        except (KeyError, TypeError, ValueError):
            return HTTPStatus.BAD_REQUEST, {"message": say["request"].format(LARGEST)}
        try:
            if action == "lint":
                return HTTPStatus.OK, {"findings": self.findings(unit, text)}
            self._change(action, unit, text, seen)
            return HTTPStatus.OK, {"row": self.row(unit)}
        except ChangedError as error:
            return HTTPStatus.CONFLICT, {"message": error.said[self.say], "row": self.row(unit)}
        except ReviewError as error:
            return HTTPStatus.CONFLICT, {"message": error.said[self.say]}
        except KeyError:
            return HTTPStatus.BAD_REQUEST, {"message": say["request"].format(LARGEST)}
        except (OSError, ValueError) as error:  # somebody edits a file beside the page
            return HTTPStatus.CONFLICT, {"message": say["file"].format(error)}

    def _change(self, action: str, unit: str, text: str, seen: str) -> None:
        if action == "edit":
            self.desk.edit(unit, text, seen)
        elif action == "comment":
            self.desk.comment(unit, text, seen)
        else:
            self.desk.accept(unit, seen)

    def _unit(self, context: str) -> Unit:
        for unit in units(self.desk.lesson()):
            if unit.context == context:
                return unit
        raise KeyError(context)

    def _shared(self) -> Context:
        terms = glossary.load(self.desk.project.glossary)
        return Context(terms, self.say, self.before, True, self.desk.language)


def _asked(body: bytes) -> tuple[str, str, str]:
    """The unit, the text and the version seen.  Raises KeyError, TypeError, ValueError."""
    if len(body) > LARGEST:
        raise ValueError(f"{len(body)} bytes")
    asked = json.loads(body)
    unit, text, seen = asked["unit"], asked.get("text", ""), asked.get("seen", "")
    if not all(isinstance(value, str) for value in (unit, text, seen)):
        raise TypeError("unit, text and seen are texts")
    return unit, text, seen
