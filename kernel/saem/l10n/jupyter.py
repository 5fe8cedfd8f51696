"""How is the review page reached from JupyterLab?

An extension of Jupyter's server, for a server that runs in a clone: ``saem/review/`` lists the
lessons, ``saem/review/ko/01/`` is the page of one.  Jupyter itself says who may come in (its login,
its cookies, its check of the cookie in each request that changes something), so the page needs no
token of its own, and it works wherever Jupyter's address works, behind JupyterHub too.

Read before: ``saem.l10n.reviewing``.  Read after: nothing.
Invariant: without Jupyter's login nothing is shown or changed (tests/notebooks/test_jupyter.py).
"""

from __future__ import annotations

import contextlib
import html
import json
from http import HTTPStatus
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, urlencode

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

from saem.l10n import catalog, project
from saem.l10n.desk import Desk
from saem.l10n.project import Project
from saem.l10n.review import ReviewError
from saem.l10n.reviewing import POLICY, SCRIPT, Reviewing
from saem.l10n.rows import SAY
from saem.l10n.source import read
from saem.l10n.units import units

PREFIX = "saem/review"
_STYLE = ("body{font:16px/1.6 system-ui,'Noto Sans KR',NanumGothic,sans-serif;max-width:44rem;"
          "margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
          "td,th{padding:.2rem .8rem;text-align:left;border-bottom:1px solid #8886}"
          "input,button{font:inherit;padding:.2rem .6rem}")
_WORDS = {
    "en": {"title": "Review of the translations", "name": "Your name", "go": "Go on",
           "lesson": "lesson", "left": "to review",
           "who": "A review is signed. Write your name (letters, digits and . @ + - _):"},
    "ko": {"title": "번역 검토", "name": "이름", "go": "계속", "lesson": "수업",
           "left": "검토할 문단",
           "who": "검토에는 이름이 남습니다. 이름을 적으십시오(문자, 숫자, . @ + - _)."},
}


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "saem.l10n.jupyter"}]


def _load_jupyter_server_extension(app: Any) -> None:
    """Add the pages to a Jupyter server."""
    settings = app.web_app.settings
    base = url_path_join(settings["base_url"], PREFIX)
    folder = Path(settings.get("server_root_dir", app.root_dir)).expanduser()
    root = {"root": folder}
    one = rf"{base}/([a-zA-Z-]+)/([\w-]+)"
    app.web_app.add_handlers(".*$", [
        (rf"{base}/?", _Lessons, root),
        (rf"{one}/", _Page, root),
        (rf"{one}/(review\.js)", _Script, root),
        (rf"{one}/(\w+)", _Action, root),
    ])
    with contextlib.suppress(FileNotFoundError):
        project.find(folder)
        # JupyterLab's command for this page shows itself only where there is one.
        settings.setdefault("page_config_data", {})["saemReview"] = "true"


class _Handler(JupyterHandler):
    def initialize(self, root: Path) -> None:
        self.root = root

    @property
    def content_security_policy(self) -> str:
        return POLICY.replace("form-action 'none'", "form-action 'self'")

    @property
    def say(self) -> str:
        """The language of the page itself."""
        said = self.get_query_argument("say", "en")
        return said if said in SAY else "en"

    def tree(self) -> Project:
        try:
            return project.find(self.root)
        except FileNotFoundError as error:
            self.refuse(HTTPStatus.NOT_FOUND, str(error))

    def reviewing(self, language: str, lesson: str) -> Reviewing:
        """The page that was asked for, for the reviewer that it names."""
        tree = self.tree()
        if language not in tree.languages:
            self.refuse(HTTPStatus.NOT_FOUND, SAY[self.say]["language"].format(language))
        try:
            desk = Desk(tree, lesson, language, self.get_query_argument("by", ""))
        except FileNotFoundError:
            self.refuse(HTTPStatus.NOT_FOUND, SAY[self.say]["lesson"].format(lesson))
        except ReviewError as error:
            self.refuse(HTTPStatus.BAD_REQUEST, error.said[self.say])
        return Reviewing(desk, self.say)

    def refuse(self, status: HTTPStatus, message: str) -> NoReturn:
        self.set_status(status)
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps({"message": message}, ensure_ascii=False))
        raise web.Finish

    def show(self, text: str) -> None:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(text)


class _Lessons(_Handler):
    @web.authenticated
    def get(self) -> None:
        """The lessons, with how much of each waits for a review."""
        tree = self.tree()
        by, words = self.get_query_argument("by", ""), _WORDS[self.say]
        rows = "".join(self._row(tree, path, language, by)
                       for language in tree.languages for path in (*tree.lessons(), *tree.pages()))
        title = html.escape(words["title"])
        table = (f"<table><tr><th>{words['lesson']}</th><th>{words['left']}</th></tr>{rows}</table>"
                 if by else "")
        self.show(
            f'<!doctype html><html lang="{self.say}"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>"
            f'<form><label>{html.escape(words["who"])} '
            f'<input name="by" required pattern="[\\w.@+\\-]+" value="{html.escape(by)}" '
            f'aria-label="{html.escape(words["name"])}"></label>'
            f'<input type="hidden" name="say" value="{self.say}"> '
            f'<button>{html.escape(words["go"])}</button></form>{table}</body></html>\n')

    def _row(self, tree: Project, path: Path, language: str, by: str) -> str:
        file = tree.catalog(path.stem, language)
        if not file.is_file():
            return ""
        states = catalog.states(units(read(path)), catalog.load(file, language))
        left = sum(state != "reviewed" for state in states.values())
        query = urlencode({"by": by, "say": self.say})
        link = f"{language}/{quote(path.stem)}/?{query}"
        return (f'<tr><td><a href="{html.escape(link)}">{html.escape(f"{language}/{path.stem}")}'
                f"</a></td><td>{left} / {len(states)}</td></tr>")


class _Page(_Handler):
    @web.authenticated
    def get(self, language: str, lesson: str) -> None:
        status, text = self.reviewing(language, lesson).page()
        self.set_status(status)
        self.show(text)


class _Script(_Handler):
    @web.authenticated
    def get(self, language: str, lesson: str, name: str) -> None:
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.finish(SCRIPT.read_text(encoding="utf-8"))


class _Action(_Handler):
    @web.authenticated
    def post(self, language: str, lesson: str, action: str) -> None:
        """What a button asks.  Jupyter's server compares the cookie with the header before."""
        status, said = self.reviewing(language, lesson).answer(action, self.request.body)
        self.set_status(status)
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(said, ensure_ascii=False))
