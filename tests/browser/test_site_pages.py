"""Does the static site work for a reader: language switch, search, live views, telephones?"""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from drawn import NewPage
from playwright.sync_api import Route, expect

from saem.l10n import project
from saem.l10n.site import build_site

PHONE = 390
WITH_VIEW = "01-arrays"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    build_site(project.find(Path(__file__)), out)
    return out


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("locale", "code"), [("ko-KR", "ko"), ("en-US", "en"), ("fr-FR", "en")])
def test_the_entrance_goes_to_the_reader_s_language(address, new_page: NewPage, locale, code):
    page = new_page(locale)
    page.goto(f"{address}/index.html")
    page.wait_for_url(f"**/{code}/index.html")
    assert page.locator(".lessons a").count() >= 3


def test_the_language_switch_keeps_the_place(address, new_page: NewPage):
    page = new_page("ko-KR")
    page.goto(f"{address}/ko/{WITH_VIEW}.html#grad-text")
    page.get_by_role("link", name="English").click()
    page.wait_for_url(f"**/en/{WITH_VIEW}.html#grad-text")
    expect(page.locator("#grad-text h2")).to_be_in_viewport()


def test_a_page_of_prose_keeps_the_place_too(address, new_page: NewPage):
    page = new_page("ko-KR")
    page.goto(f"{address}/ko/ground-rules.html#ground-rules-2")
    page.get_by_role("link", name="English").click()
    page.wait_for_url("**/en/ground-rules.html#ground-rules-2")


def test_a_term_that_was_found_stands_below_the_header(address, new_page: NewPage):
    page = new_page()
    page.goto(f"{address}/en/index.html")
    page.keyboard.press("/")
    page.keyboard.insert_text("jaxpr")
    page.locator("#results a[href^='glossary']").first.click()
    page.wait_for_url("**/en/glossary.html#term-*")
    header = page.locator("body > header").bounding_box()
    row = page.locator("tr:target").bounding_box()
    assert row["y"] >= header["y"] + header["height"]


@pytest.mark.parametrize(("code", "words", "found"), [
    ("en", "asynchronous dispatch", "stopwatches"), ("ko", "비동기 디스패치", "대기열")])
def test_search_finds_a_section_and_goes_there(
        address, new_page: NewPage, picture, code, words, found):
    page = new_page()
    page.goto(f"{address}/{code}/index.html")
    page.keyboard.press("/")
    page.keyboard.insert_text(words)
    first = page.locator("#results a").first
    expect(first.locator("mark").first).to_be_visible()
    picture(page, f"site-search-{code}")
    page.locator("#results a[href^='01-arrays']").first.click()
    page.wait_for_url(f"**/{code}/01-arrays.html#*")
    assert found in page.locator("main").inner_text()


def test_search_takes_nothing_for_html(address, new_page: NewPage):
    page = new_page()
    page.goto(f"{address}/en/index.html")
    page.get_by_role("banner").locator("input").fill("<img src=x onerror=alert(1)>")
    expect(page.locator("#results")).to_have_text("Nothing found.")


@pytest.mark.parametrize("code", ["en", "ko"])
def test_lens_views_live_without_a_kernel(
        address, new_page: NewPage, picture, static_files, code):
    page = new_page()
    page.goto(f"{address}/{code}/{WITH_VIEW}.html")
    view = page.locator(".saem-static").first
    view.scroll_into_view_if_needed()
    expect(view.locator(".saem-fallback")).to_be_hidden()
    picture(page, f"site-view-{code}")


def test_it_works_from_a_folder(site: Path, new_page: NewPage, static_files):
    page = new_page()
    page.goto((site / "ko" / f"{WITH_VIEW}.html").as_uri())
    expect(page.locator(".saem-static .saem-fallback").first).to_be_hidden()
    page.get_by_role("banner").locator("input").fill("그래디언트")
    expect(page.locator("#results a").first).to_be_visible()


@pytest.mark.parametrize("code", ["en", "ko"])
@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "light"), (1400, "dark")])
def test_no_page_is_wider_than_its_window(
        site, address, new_page: NewPage, picture, code, width, scheme):
    page = new_page(scheme=scheme, width=width)
    for path in sorted((site / code).glob("*.html")):
        page.goto(f"{address}/{code}/{path.name}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path.name
        if path.stem == WITH_VIEW:
            picture(page, f"site-{code}-{width}")


def test_on_a_telephone_the_menu_is_folded(address, new_page: NewPage, picture):
    page = new_page(width=PHONE)
    page.goto(f"{address}/ko/{WITH_VIEW}.html")
    menu = page.locator(".menu nav")
    expect(menu).to_be_hidden()
    page.locator(".menu summary").click()
    expect(menu).to_be_visible()
    picture(page, "site-menu-phone")


@pytest.mark.parametrize(("base", "repository"), [
    ("https://some-one.github.io/lessons", "some-one/lessons"),
    ("https://some-one.github.io/lessons/docs/latest", "some-one/lessons"),
    ("https://some-one.github.io", "some-one/some-one.github.io"),
])
def test_pages_of_github_know_their_repository(site, new_page: NewPage, base, repository):
    page = new_page()

    def answer(route: Route) -> None:
        route.fulfill(path=site / route.request.url.removeprefix(base).split("#")[0].lstrip("/"))

    page.route(f"{base}/**", answer)
    page.goto(f"{base}/ko/00-tour.html")
    link = page.get_by_role("link", name="Colab에서 열기")
    expect(link).to_have_attribute("href", f"https://colab.research.google.com/github/{repository}"
                                           "/blob/main/ko/00-tour.ipynb")
    expect(page.locator(".upload")).to_be_hidden()


@pytest.mark.parametrize("width", [PHONE, 1400])
def test_elsewhere_a_page_tells_how_to_open_it_in_colab(address, new_page: NewPage, picture, width):
    page = new_page(width=width)
    page.goto(f"{address}/ko/00-tour.html")
    link = page.get_by_role("link", name="Colab에서 열기")
    expect(link).to_have_attribute("href", "https://colab.research.google.com/")
    expect(page.locator(".upload")).to_contain_text("노트북 업로드")
    picture(page, f"site-colab-{width}")
