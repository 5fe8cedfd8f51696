"""How does the review page come into a browser, and only into the reviewer's own?

A server on the loopback interface, on a free port, with a token made for this run.  Without the
token nothing is shown and nothing can be changed; a page of another site cannot reach it either,
because its requests carry another host or no token.

Read before: ``saem.l10n.reviewing``.  Read after: ``saem.l10n.commands``.
Invariant: a request without the token changes nothing (tests/notebooks/test_desk.py).
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from saem.l10n.desk import Desk
from saem.l10n.reviewing import LARGEST, POLICY, SCRIPT, Reviewing
from saem.l10n.rows import SAY


class ReviewServer(ThreadingHTTPServer):
    """Serves the page of one desk.  ``address`` is what a browser opens."""

    daemon_threads = True

    def __init__(self, desk: Desk, say: str, against: str = "HEAD", port: int = 0):
        super().__init__(("127.0.0.1", port), _Handler)
        self.reviewing = Reviewing(desk, say, against)
        self.token = secrets.token_urlsafe(24)
        self.host = f"127.0.0.1:{self.server_port}"

    @property
    def address(self) -> str:
        return f"http://{self.host}/?token={self.token}"


class _Handler(BaseHTTPRequestHandler):
    server: ReviewServer

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if asked.path == "/review.js":
            self._answer(HTTPStatus.OK, SCRIPT.read_text(encoding="utf-8"), "text/javascript")
        elif asked.path != "/":
            self._answer(HTTPStatus.NOT_FOUND, self._words["elsewhere"], "text/plain")
        elif self._allowed(parse_qs(asked.query).get("token", [""])[0]):
            self._answer(*self.server.reviewing.page(), "text/html")

    def do_POST(self) -> None:
        if not self._allowed(self.headers.get("X-Saem-Token", "")):
            return
        length = self.headers.get("Content-Length", "")
        size = min(int(length), LARGEST + 1) if re.fullmatch("[0-9]{1,9}", length) else 0
        action = urlsplit(self.path).path.removeprefix("/")
        status, content = self.server.reviewing.answer(action, self.rfile.read(size))
        self._answer(status, json.dumps(content, ensure_ascii=False), "application/json")

    def _allowed(self, token: str) -> bool:
        same_host = self.headers.get("Host") == self.server.host
        if same_host and hmac.compare_digest(token.encode(), self.server.token.encode()):
            return True
        self._answer(HTTPStatus.FORBIDDEN, self._words["address"], "text/plain")
        return False

    @property
    def _words(self) -> dict[str, str]:
        return SAY[self.server.reviewing.say]

    def _answer(self, status: HTTPStatus, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(status)
        for name, value in (("Content-Type", f"{kind}; charset=utf-8"),
                            ("Content-Length", str(len(data))), ("Cache-Control", "no-store"),
                            ("Content-Security-Policy", POLICY),
                            ("Referrer-Policy", "no-referrer"),
                            ("X-Content-Type-Options", "nosniff")):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: the terminal belongs to the reviewer."""
