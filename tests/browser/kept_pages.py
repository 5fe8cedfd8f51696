"""How do tests share one page of JupyterLab, and yet begin with a clean one each?

To load JupyterLab takes Chromium 3.5 seconds of processor time, which is half of what many a test
takes.  So a page stays loaded and is lent to one test after the other: before it is kept again,
what the test opened on it is closed unsaved (once its kernel runs), its kernels are ended, and the
theme is light again.
Where a test failed, or the page cannot be cleaned, it is closed and the next test loads another.

A test that loads the page again, or whose subject is what a page does when it is loaded, takes a
``new_page``: above all, that the panel opens by itself, which it does once in the life of a page.
On a lent page it is open.

Read before: ``jupyter.py``.  Read after: ``conftest.py``, ``test_lab_views.py``.
Invariant: nobody else has a lent page; an error on it is one of the test that has it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol

import pytest
from jupyter import POLLING, Lab
from playwright.sync_api import Browser, Error, Page, expect

LANGUAGES = {"en": "en-US", "ko": "ko-KR"}
LIGHT = "JupyterLab Light"
CLEAN = """async light => {
  const {shell, commands} = window.jupyterapp;
  const pause = milliseconds => new Promise(done => setTimeout(done, milliseconds));
  const widgets = [...shell.widgets('main')];
  const starting = ({sessionContext}) => sessionContext
    && ['initializing', 'starting', 'connecting'].includes(sessionContext.kernelDisplayStatus);
  for (let tries = 50; tries && widgets.some(starting); tries--) await pause(100);
  for (const widget of widgets) {
    if (widget.context) widget.context.model.dirty = false;
    widget.dispose();
  }
  if (document.body.dataset.jpThemeName !== light) {
    await commands.execute('apputils:change-theme', {theme: light});
  }
  await new Promise(requestAnimationFrame);
}"""
# JupyterLab and its widget manager fail where a document is closed that is still being drawn or
# connected; of the errors of closing only those from our extension count.
OURS = "/extensions/saem-lens/"
# A dialog, a menu or a document is still there.
UNCLEAN = ".jp-Dialog, .lm-Menu, .jp-Document, .jp-CodeConsole"


class Lend(Protocol):
    """Lends the page of a JupyterLab, with the panel open."""

    def __call__(self, lab: Lab, width: int = 1440, scheme: str = "light") -> Page: ...


class KeptPages:
    """For each JupyterLab a page that stays loaded."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: dict[Lab, Page] = {}
        self._problems: dict[Page, list[str]] = {}

    @contextlib.contextmanager
    def lent(self, session: pytest.Session) -> Iterator[Lend]:
        """Lends pages until the block is left; a page that is lent already has a new one beside."""
        failed = session.testsfailed
        problems: list[str] = []
        taken: list[tuple[Lab, Page]] = []

        def lend(lab: Lab, width: int = 1440, scheme: str = "light") -> Page:
            page = self._free.pop(lab, None) or self._loaded(lab)
            taken.append((lab, page))
            self._problems[page].clear()
            page.set_viewport_size({"width": width, "height": 860})
            page.emulate_media(color_scheme=scheme)
            page.set_default_timeout(30_000)
            page.evaluate("() => { window.jupyterapp.shell.activateById('saem-lens-panel'); }")
            return page

        yield lend
        for lab, page in taken:
            problems += self._problems[page]
            self._problems[page].clear()
            if session.testsfailed == failed and self._cleaned(page):
                self._free[lab] = page
            else:
                page.context.close()
            lab.close_all()
            problems += [error for error in self._problems[page] if OURS in error]
        assert not problems, f"errors on the page: {problems}"

    def _loaded(self, lab: Lab) -> Page:
        context = self._browser.new_context(
            locale=LANGUAGES[lab.language], viewport={"width": 1440, "height": 860})
        page = context.new_page()
        problems = self._problems[page] = []
        page.on("pageerror", lambda error: problems.append(error.stack or str(error)))
        page.goto(f"{lab.address}/lab?token={lab.token}&reset")
        expect(page.locator(".jp-Launcher")).to_be_visible(timeout=60_000)
        return page

    def _cleaned(self, page: Page) -> bool:
        try:
            page.evaluate(CLEAN, LIGHT)
            page.wait_for_function(
                "([light, unclean]) => document.body.dataset.jpThemeName === light"
                " && !document.querySelector(unclean)", arg=[LIGHT, UNCLEAN],
                polling=POLLING, timeout=10_000)
        except Error:
            return False
        return not self._problems[page]

    def close(self) -> None:
        """Close all pages that are kept."""
        for page in self._free.values():
            page.context.close()
