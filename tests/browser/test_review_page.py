"""Can a reviewer correct and accept a translation in the browser, with the keyboard alone?"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from drawn import NewPage, Picture

from saem.l10n import catalog, project
from saem.l10n.desk import Desk
from saem.l10n.review import sign, signature
from saem.l10n.review_server import ReviewServer

ROOT = Path(__file__).parents[2]
UNIT = "title|text|1"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A copy of the first lesson, all of it signed by jiwon, one particle wrong."""
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    (tmp_path / "ko").mkdir()
    shutil.copy(ROOT / "ko" / "01-arrays.ipynb", tmp_path / "ko")
    tree = project.find(tmp_path)
    path = tree.catalog("01-arrays", "ko")
    po = catalog.load(path, "ko")
    entries = catalog.active(po)
    entries[UNIT].msgstr = entries[UNIT].msgstr.replace("NumPy를", "NumPy을")
    assert "NumPy을" in entries[UNIT].msgstr
    for entry in entries.values():
        entry.tcomment = ""
        sign(entry, "jiwon")
    catalog.save(po, path)
    for words in (["init", "-q"], ["add", "-A"],
                  ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return Desk(tree, "01", "ko", "minsu")


@contextlib.contextmanager
def serving(desk: Desk) -> Iterator[ReviewServer]:
    server = ReviewServer(desk, "ko")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def entry(desk: Desk, unit: str = UNIT):
    return catalog.active(desk.read())[unit]


def test_a_unit_is_corrected(desk: Desk, new_page: NewPage, picture: Picture) -> None:
    with serving(desk) as server:
        page = new_page("ko-KR", width=1280)
        page.goto(server.address)
        row = page.locator(f'[id="{UNIT}"]')
        assert "particle" in row.locator(".finding").inner_text()

        # A browser that fills in a form sends an event without a key: no error.
        page.evaluate("document.body.dispatchEvent(new Event('keydown', {bubbles: true}))")

        # The page begins at the first unit that waits; j goes on, e edits.
        page.keyboard.press("j")
        page.keyboard.press("j")
        assert page.locator(".row.current").get_attribute("id") == UNIT
        page.keyboard.press("e")
        area = row.locator("textarea")
        # The lint judges what is being typed, before anything is saved.
        area.fill(area.input_value().replace("NumPy을", "NumPy를"))
        row.locator(".findings:empty").wait_for(state="attached")
        area.fill(area.input_value().replace("NumPy를", "NumPy은(는)"))
        row.locator(".finding", has_text="dual").wait_for()
        area.fill(area.input_value().replace("NumPy은(는)", "NumPy를"))
        row.locator(".findings:empty").wait_for(state="attached")
        assert "NumPy을" in entry(desk).msgstr
        picture(page, "review-editing")
        page.keyboard.press("Control+Enter")
        row.locator("textarea").wait_for(state="detached")
        assert row.locator(".finding").count() == 0
        assert "NumPy를" in entry(desk).msgstr
        assert signature(entry(desk)).translator == "minsu"
        assert row.locator(".change del").inner_text() == "NumPy을"
        assert row.locator(".change ins").inner_text() == "NumPy를"

        # Who edited it cannot accept it; n goes on to another unit.
        page.keyboard.press("a")
        page.locator("#message", has_text="다른 사람이 검토합니다").wait_for()
        assert signature(entry(desk)).reviewer is None
        page.keyboard.press("n")
        assert page.locator(".row.current").get_attribute("id") not in (None, UNIT)


def test_a_unit_is_accepted_and_remarked_on(
        desk: Desk, new_page: NewPage, picture: Picture) -> None:
    with serving(desk) as server:
        page = new_page("ko-KR", width=1280)
        page.goto(server.address)
        left = page.locator("#left")
        total = len(catalog.active(desk.read()))
        assert left.inner_text() == f"검토할 문단 {total}개"
        page.keyboard.press("n")
        other = page.locator(".row.current").get_attribute("id")
        assert other is not None
        page.keyboard.press("a")
        page.locator(f'[id="{other}"][data-state="reviewed"]').wait_for()
        assert signature(entry(desk, other)).reviewer == "minsu"
        assert left.inner_text() == f"검토할 문단 {total - 1}개"

        page.keyboard.press("c")
        page.keyboard.insert_text("이 문장을 다시 봅시다.")
        page.keyboard.press("Control+Enter")
        page.locator(".note", has_text="이 문장을 다시 봅시다.").wait_for()
        picture(page, "review")


def test_what_was_typed_is_not_lost(desk: Desk, new_page: NewPage) -> None:
    """Accepting beside an open editor, and a server that ended; keys of an input method."""
    with serving(desk) as server:
        page = new_page("ko-KR", width=1280)
        page.goto(server.address)
        page.locator(f'[id="{UNIT}"]').click()
        for key, code in (("ㄷ", "KeyE"), ("Process", "KeyE")):
            page.evaluate("(pressed) => document.dispatchEvent("
                          "new KeyboardEvent('keydown', { ...pressed, bubbles: true }))",
                          {"key": key, "code": code})
        area = page.locator(f'[id="{UNIT}"] textarea')
        assert area.count() == 1
        area.fill("새로 쓴 문장입니다.")
        page.locator(f'[id="{UNIT}"] [data-do="accept"]').click()
        page.locator("#message", has_text="먼저 저장하거나 취소하세요").wait_for()
        assert area.input_value() == "새로 쓴 문장입니다."
        assert signature(entry(desk)).reviewer is None
    area.press("Control+Enter")
    page.locator("#message", has_text="서버가 응답하지 않아").wait_for()
    assert area.input_value() == "새로 쓴 문장입니다."


def test_a_change_of_somebody_else_is_shown_and_not_overwritten(
        desk: Desk, new_page: NewPage, picture: Picture) -> None:
    with serving(desk) as server:
        page = new_page("ko-KR", width=1280)
        page.goto(server.address)
        first, second = page.locator(".row").nth(0), page.locator(".row").nth(1)
        second.click()
        page.keyboard.press("e")
        second.locator("textarea").fill("내가 쓴 문장입니다.")
        po = desk.read()
        for row in (first, second):
            catalog.active(po)[row.get_attribute("id")].msgstr = "# 다른 사람이 고친 글"
        catalog.save(po, desk.path)
        text = desk.path.read_text()
        first.click()
        page.keyboard.press("a")
        page.locator("#message", has_text="다른 사람이 바꾸어").wait_for()
        assert "다른 사람이 고친 글" in first.inner_text()

        # Beside what somebody else wrote, what was typed stays, and may be saved over it.
        second.locator("textarea").press("Control+Enter")
        second.locator(".translation", has_text="다른 사람이 고친 글").wait_for()
        assert second.locator("textarea").input_value() == "내가 쓴 문장입니다."
        assert desk.path.read_text() == text
        picture(page, "review-changed")
        second.locator("textarea").press("Control+Enter")
        second.locator("textarea").wait_for(state="detached")
        assert entry(desk, second.get_attribute("id")).msgstr == "내가 쓴 문장입니다."


def test_what_was_typed_outlives_escape_and_a_page_loaded_again(
        desk: Desk, new_page: NewPage) -> None:
    with serving(desk) as server:
        page = new_page("ko-KR", width=1280)
        page.goto(server.address)
        area = page.locator(f'[id="{UNIT}"] textarea')
        page.locator(f'[id="{UNIT}"]').click()
        page.keyboard.press("e")
        before = area.input_value()
        area.fill("새로 쓴 문장입니다.")
        area.press("Escape")
        assert area.count() == 0
        page.keyboard.press("e")
        assert area.input_value() == "새로 쓴 문장입니다."
        page.reload()
        assert area.input_value() == "새로 쓴 문장입니다."
        page.locator(f'[id="{UNIT}"] button', has_text="취소").click()
        page.keyboard.press("e")
        assert area.input_value() == before
        area.fill("다시 쓴 문장입니다.")
        area.press("Control+Enter")
        area.wait_for(state="detached")
        page.reload()
        assert area.count() == 0
        assert "다시 쓴 문장입니다." in page.locator(f'[id="{UNIT}"] .translation').inner_text()


def test_a_narrow_page_stands_in_one_column_and_in_the_dark(
        desk: Desk, new_page: NewPage, picture: Picture) -> None:
    with serving(desk) as server:
        page = new_page("ko-KR", "dark", 400)
        page.goto(server.address)
        page.locator(".row").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        picture(page, "review-phone")


def test_the_static_page_stands_alone(desk: Desk, new_page: NewPage, tmp_path: Path) -> None:
    made = tmp_path / "page.html"
    subprocess.run([sys.executable, "-m", "saem", "l10n", "--root", str(desk.project.root), "page",
                    "01", str(made)], check=True, capture_output=True)
    asked = []
    page = new_page("ko-KR")
    page.on("request", lambda request: asked.append(request.url))
    page.goto(made.as_uri())
    assert page.locator(".row").count() == len(catalog.active(desk.read()))
    assert page.locator("button").count() == page.locator("script").count() == 0
    page.locator("details.code").evaluate_all("all => all.forEach(d => d.open = true)")
    assert page.locator(".outputs img").count() >= 1
    assert {url.split(":")[0] for url in asked} <= {"file", "data"}
