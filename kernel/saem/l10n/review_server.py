"""How does the review page come into a browser, and only into the reviewer's own?

A server on the loopback interface, on a free port, with a token made for this run.  Without the
token nothing is shown and nothing can be changed; a page of another site cannot reach it either,
because its requests carry another host or no token.

Read before: ``saem.l10n.desk``, ``saem.l10n.page``.  Read after: ``saem.l10n.commands``.
Invariant: a request without the token changes nothing (tests/notebooks/test_desk.py).
"""

from __future__ import annotations

import hmac
import json
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import nbformat

from saem.l10n import catalog, glossary
from saem.l10n.desk import ChangedError, Desk
from saem.l10n.page import earlier, page
from saem.l10n.review import ReviewError
from saem.l10n.rows import Context, row
from saem.l10n.units import units

_STATIC = Path(__file__).parent / "static"
_LARGEST = 200_000  # characters of a request; the longest unit of a lesson has some thousands
_POLICY = ("default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; "
           "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


class ReviewServer(ThreadingHTTPServer):
    """Serves the page of one desk.  ``address`` is what a browser opens."""

    daemon_threads = True

    def __init__(self, desk: Desk, say: str, against: str = "HEAD", port: int = 0):
        super().__init__(("127.0.0.1", port), _Handler)
        self.desk, self.say = desk, say
        self.token = secrets.token_urlsafe(24)
        self.host = f"127.0.0.1:{self.server_port}"
        self.before = earlier(desk.path, against)

    @property
    def address(self) -> str:
        return f"http://{self.host}/?token={self.token}"

    def page(self) -> str:
        """The whole page, as the files are now."""
        desk = self.desk
        po, version = desk.read()
        built = desk.project.built(desk.source.stem, desk.language)
        notebook = nbformat.read(built, as_version=4) if built.is_file() else None
        return page(desk.lesson(), po, glossary.load(desk.project.glossary), self.say,
                    before=self.before, notebook=notebook, live=version)

    def row(self, context: str) -> str:
        """One unit, as the files are now."""
        desk = self.desk
        po, _ = desk.read()
        unit = next(u for u in units(desk.lesson()) if u.context == context)
        shared = Context(glossary.load(desk.project.glossary), self.say, self.before, True,
                         desk.language)
        return row(unit, catalog.active(po).get(context), shared)

    def change(self, action: str, asked: dict[str, str]) -> str:
        """Do what the page asks; returns the new version."""
        unit, text, seen = asked["unit"], asked.get("text", ""), asked["seen"]
        if action == "edit":
            return self.desk.edit(unit, text, seen)
        if action == "comment":
            return self.desk.comment(unit, text, seen)
        return self.desk.accept(unit, seen)


class _Handler(BaseHTTPRequestHandler):
    server: ReviewServer
    actions: ClassVar[tuple[str, ...]] = ("/edit", "/accept", "/comment")

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if asked.path == "/review.js":
            script = (_STATIC / "review.js").read_text(encoding="utf-8")
            self._answer(HTTPStatus.OK, script, "text/javascript")
        elif asked.path != "/":
            self._answer(HTTPStatus.NOT_FOUND, "not here", "text/plain")
        elif self._allowed(parse_qs(asked.query).get("token", [""])[0]):
            self._answer(HTTPStatus.OK, self.server.page(), "text/html")

    def do_POST(self) -> None:
        if not self._allowed(self.headers.get("X-Saem-Token", "")):
            return
        size = int(self.headers.get("Content-Length", "0"))
        if self.path not in self.actions or size > _LARGEST:
            self._json(HTTPStatus.NOT_FOUND, {"message": "there is no such action"})
            return
        try:
            asked = json.loads(self.rfile.read(size))
            version = self.server.change(self.path[1:], asked)
            self._json(HTTPStatus.OK, {"version": version, "row": self.server.row(asked["unit"])})
        except (ChangedError, ReviewError) as error:
            self._json(HTTPStatus.CONFLICT, {"message": str(error)})
        except (KeyError, ValueError) as error:
            message = f"a request needs unit and seen: {error}"
            self._json(HTTPStatus.BAD_REQUEST, {"message": message})

    def _allowed(self, token: str) -> bool:
        same_host = self.headers.get("Host") == self.server.host
        if same_host and hmac.compare_digest(token.encode(), self.server.token.encode()):
            return True
        self._answer(HTTPStatus.FORBIDDEN, "open the address that `saem l10n review` printed",
                     "text/plain")
        return False

    def _json(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        self._answer(status, json.dumps(content, ensure_ascii=False), "application/json")

    def _answer(self, status: HTTPStatus, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(status)
        for name, value in (("Content-Type", f"{kind}; charset=utf-8"),
                            ("Content-Length", str(len(data))), ("Cache-Control", "no-store"),
                            ("Content-Security-Policy", _POLICY),
                            ("Referrer-Policy", "no-referrer"),
                            ("X-Content-Type-Options", "nosniff")):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: the terminal belongs to the reviewer."""
