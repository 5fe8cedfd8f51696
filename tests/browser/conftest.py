"""How do browser tests get a browser, pages and a running JupyterLab?

Chromium is the system's (``chromium``, ``chromium-browser`` or ``google-chrome`` on the path, or
named by ``SAEM_CHROMIUM``); Playwright drives it.  ``SAEM_PICTURES=1`` saves what the tests see in
``tests/browser/output``, which takes a tenth more of the time.

Read before: ``jupyter.py``.  Read after: any test.
Invariant: a test leaves no process behind, and no page asks anything outside this machine.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
from collections.abc import Callable, Iterator

import pytest
from drawn import OUTPUT, NewPage, Picture
from jupyter import Lab
from kept_pages import KeptPages, Lend
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Locator,
    Page,
    expect,
    sync_playwright,
)

STATIC = pathlib.Path(__file__).parents[2] / "kernel" / "saem" / "lens" / "static"
LABEXTENSION = pathlib.Path(__file__).parents[2] / "kernel" / "saem" / "labextension"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # A page that a test answers itself (``route.fulfill``) may speak to the test's own server.
    "--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets",
    # No page finds another machine, by name or by number.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]


# Kernels and pages share a few cores with whatever else runs.
expect.set_options(timeout=20_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this room ``browser``, so that ``-m 'not browser'`` leaves it out."""
    for item in items:
        if pathlib.Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One headless Chromium for the whole session."""
    named = os.environ.get("SAEM_CHROMIUM")
    path = named or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser: install one of {', '.join(NAMES)}, or set SAEM_CHROMIUM")
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS + root)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def windows(browser: Browser) -> Iterator[Callable[[str], BrowserContext]]:
    """Gives the window of a language: to open one for each page takes a quarter of a second."""
    opened: dict[str, BrowserContext] = {}

    def window(locale: str) -> BrowserContext:
        if locale not in opened:
            opened[locale] = browser.new_context(locale=locale)
            opened[locale].new_page()  # Chromium closes a window that has no page
        return opened[locale]

    yield window
    for context in opened.values():
        context.close()


@contextlib.contextmanager
def pages(windows: Callable[[str], BrowserContext]) -> Iterator[NewPage]:
    """Makes pages by language and colour scheme; an error on a page is one of the test.

    What a page stored in the browser is gone when it is closed.
    """
    made: list[Page] = []
    problems: list[str] = []

    def make(locale: str = "en-US", scheme: str = "light", width: int = 1180,
             known: str | None = None) -> Page:
        page = windows(locale).new_page()
        made.append(page)
        page.set_viewport_size({"width": width, "height": 860})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        # ``known`` is part of an error that the application itself makes, without us.
        page.on("pageerror", lambda error: None if known and known in str(error)
                else problems.append(str(error)))
        return page

    yield make
    for page in made:
        if not page.is_closed():
            forget(page)
            page.close()
    assert not problems, f"errors on the page: {problems}"


def forget(page: Page) -> None:
    """Clear cookies and what the page's origin stored."""
    page.context.clear_cookies()
    with contextlib.suppress(Error):  # a page made of data, or in a sandbox, has no storage
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")


@pytest.fixture
def new_page(windows: Callable[[str], BrowserContext]) -> Iterator[NewPage]:
    """Makes the pages of one test."""
    with pages(windows) as make:
        yield make


@pytest.fixture(scope="module")
def shared_page(windows: Callable[[str], BrowserContext]) -> Iterator[NewPage]:
    """Makes pages that the tests of a module share."""
    with pages(windows) as make:
        yield make


@pytest.fixture(scope="session")
def kept_pages(browser: Browser) -> Iterator[KeptPages]:
    """The pages of JupyterLab that stay loaded."""
    kept = KeptPages(browser)
    yield kept
    kept.close()


@pytest.fixture
def lab_page(kept_pages: KeptPages, request: pytest.FixtureRequest) -> Iterator[Lend]:
    """Lends one test the loaded page of a JupyterLab."""
    with kept_pages.lent(request.session) as lend:
        yield lend


@pytest.fixture
def picture() -> Picture:
    """Saves what a page, or one element of it, shows; does nothing without ``SAEM_PICTURES``."""
    if not os.environ.get("SAEM_PICTURES"):
        return lambda seen, name: None
    OUTPUT.mkdir(exist_ok=True)

    def save(seen: Page | Locator, name: str) -> None:
        whole = {"full_page": True} if isinstance(seen, Page) else {}
        try:
            seen.screenshot(path=OUTPUT / f"{name}.png", **whole)
        except Error:  # Chromium may have no frame to give while it makes another
            seen.screenshot(path=OUTPUT / f"{name}.png", **whole)

    return save


@pytest.fixture(scope="session")
def labs(
    tmp_path_factory: pytest.TempPathFactory, labextension: pathlib.Path
) -> Iterator[Callable[[str], Lab]]:
    """Gives the one JupyterLab in a language, started when first asked for."""
    started: dict[str, Lab] = {}
    with contextlib.ExitStack() as running:

        def lab(language: str) -> Lab:
            if language not in started:
                home = tmp_path_factory.mktemp(f"lab-{language}")
                started[language] = running.enter_context(Lab(home, labextension, language))
            return started[language]

        yield lab


@pytest.fixture(scope="session")
def static_files() -> pathlib.Path:
    """Where the built widget and static renderer are."""
    if not (STATIC / "renderer.js").is_file():
        pytest.fail("the lens is not built: run `make` (or `npm ci && npm run build` in extension)")
    return STATIC


@pytest.fixture(scope="session")
def labextension() -> pathlib.Path:
    """Where the built JupyterLab extension is."""
    if not (LABEXTENSION / "package.json").is_file():
        pytest.fail("the extension is not built: run `npm ci && npm run build` in extension")
    return LABEXTENSION
