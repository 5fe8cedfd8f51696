"""Can a translation be reviewed through Jupyter's server, and only by who is logged in?"""

from __future__ import annotations

import contextlib
import http.cookiejar
import json
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from saem.l10n import catalog
from saem.l10n.merge import merge
from saem.l10n.review import sign, signature
from saem.l10n.source import read
from saem.l10n.units import units

KERNEL = Path(__file__).parents[2] / "kernel"
UNIT = "title|text|0"


class Server:
    """A Jupyter server over a tree of lessons."""

    def __init__(self, address: str, token: str) -> None:
        self.address, self.token = address, token
        self.cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(self.cookies))

    def get(self, path: str) -> tuple[int, str]:
        return self._ask(urllib.request.Request(self.address + path))

    def post(self, path: str, asked: dict, xsrf: bool = True) -> tuple[int, str]:
        headers = {"Content-Type": "application/json"}
        if xsrf:
            headers["X-XSRFToken"] = next(c.value or "" for c in self.cookies if c.name == "_xsrf")
        body = json.dumps(asked).encode()
        return self._ask(urllib.request.Request(self.address + path, body, headers))

    def _ask(self, request: urllib.request.Request) -> tuple[int, str]:
        try:
            with self._opener.open(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


@contextlib.contextmanager
def serving(folder: Path, home: Path) -> Iterator[Server]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = home / "jupyter_server_config.d"
    settings.mkdir(parents=True)
    shutil.copy(KERNEL / "saem" / "l10n" / "jupyter.json", settings / "saem.json")
    server = Server(f"http://127.0.0.1:{port}", secrets.token_hex(16))
    environment = {
        "PATH": "", "HOME": str(home), "PYTHONPATH": str(KERNEL),
        "JUPYTER_CONFIG_PATH": str(home), "JUPYTER_PLATFORM_DIRS": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root",
         "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0",
         f"--IdentityProvider.token={server.token}", f"--ServerApp.root_dir={folder}"],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(1200):
            with contextlib.suppress(urllib.error.URLError):
                if Server(server.address, "").get("/api")[0] == 200:
                    break
            time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def translated(tree):
    """The small lesson, translated by jiwon."""
    po, _ = merge(units(read(tree.lesson("01"))), catalog.empty("ko"))
    for entry in po:
        entry.msgstr = "`code`와 3입니다." if entry.msgctxt == UNIT else "번역입니다."
        sign(entry, "jiwon")
    catalog.save(po, tree.catalog("01-small", "ko"))
    return tree


PAGE = "/saem/review/ko/01/"


def test_a_review_through_jupyter(translated, tmp_path):
    path = translated.catalog("01-small", "ko")
    with serving(translated.root, tmp_path / "home") as server:
        nobody_reads_or_writes_without_a_login(server, path)
        seen = the_page_is_shown(server)
        a_draft_is_judged_and_not_written(server, path)
        another_person_accepts(server, path, seen)
        a_unit_that_the_file_lacks_waits(server, path)
        what_is_not_there_is_refused(server)


def nobody_reads_or_writes_without_a_login(server, path):
    """The login page stands in place of the review page."""
    before = path.read_text()
    assert "번역입니다." not in server.get(f"{PAGE}?by=minsu")[1]
    server.get("/login")
    asked = {"unit": UNIT, "text": "x", "seen": ""}
    assert server.post(f"{PAGE}edit?by=minsu", asked)[0] in (403, 405)
    assert path.read_text() == before


def the_page_is_shown(server):
    """Log in and return what the page says that it shows of the unit."""
    status, text = server.get(f"/saem/review/?say=ko&token={server.token}")
    assert (status, "번역 검토" in text, "01-small" in text) == (200, True, False)
    status, text = server.get("/saem/review/?say=ko&by=minsu")
    assert (status, "ko/01-small/?by=minsu" in text) == (200, True)

    status, text = server.get(f"{PAGE}?by=minsu&say=ko")
    assert (status, "번역입니다." in text) == (200, True)
    assert server.get(f"{PAGE}review.js")[1].startswith("// The buttons")
    return text.split(f'id="{UNIT}"')[1].split('data-seen="')[1].split('"')[0]


def a_draft_is_judged_and_not_written(server, path):
    before = path.read_text()
    asked = {"unit": UNIT, "text": "`code`입니다."}
    status, text = server.post(f"{PAGE}lint?by=minsu&say=ko", asked)
    assert (status, "numbers-kept" in text) == (200, True)
    assert path.read_text() == before


def another_person_accepts(server, path, seen):
    """Neither a request without the cookie's token does, nor the translator."""
    before = path.read_text()
    asked = {"unit": UNIT, "seen": seen}
    assert server.post(f"{PAGE}accept?by=minsu", asked, xsrf=False)[0] == 403
    assert path.read_text() == before
    assert server.post(f"{PAGE}accept?by=jiwon", asked)[0] == 409
    status, text = server.post(f"{PAGE}accept?by=minsu", asked)
    assert (status, "row" in json.loads(text)) == (200, True)
    entry = catalog.active(catalog.load(path, "ko"))[UNIT]
    assert signature(entry) == signature(entry).__class__("jiwon", "minsu")


def a_unit_that_the_file_lacks_waits(server, path):
    """It counts among those to review, as the others do; one is reviewed."""
    po = catalog.load(path, "ko")
    po.remove(next(entry for entry in po if entry.msgctxt != UNIT))
    catalog.save(po, path)
    assert "6 / 7" in server.get("/saem/review/?by=minsu")[1]


def what_is_not_there_is_refused(server):
    assert server.get(f"{PAGE}?by=")[0] == 400
    assert "이름에는" in server.get(f"{PAGE}?by=&say=ko")[1]
    assert server.get("/saem/review/ko/77/?by=minsu")[0] == 404
    assert server.get("/saem/review/ja/01/?by=minsu")[0] == 404


def test_a_server_outside_a_clone_says_what_is_missing(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    with serving(folder, tmp_path / "home") as server:
        status, text = server.get(f"/saem/review/?token={server.token}")
        assert (status, "lessons.toml" in text) == (404, True)
