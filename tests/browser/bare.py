"""How does a test get a page with the widgets' HTML manager and a kernel, and nothing else?

Such a page stands in the place of Colab and VS Code: ``extension/test/bare.ts`` is its script.

Read before: ``jupyter.py``.  Read after: ``test_bare.py``, ``test_journeys.py``.
Invariant: the page has none of our extension; it asks nothing outside this machine.
"""

from __future__ import annotations

import functools
import pathlib
import shutil
import subprocess
import sysconfig

import pytest
from jupyter import Lab
from playwright.sync_api import Page

EXTENSION = pathlib.Path(__file__).parents[2] / "extension"
ANYWIDGET = pathlib.Path(sysconfig.get_path("data")) / "share/jupyter/nbextensions/anywidget"


@functools.cache
def script() -> pathlib.Path:
    """The page's script, built from ``extension/test/bare.ts``."""
    node = shutil.which("node")
    if node is None or not (EXTENSION / "node_modules/@jupyter-widgets/html-manager").is_dir():
        pytest.skip("the widgets' manager is not installed: run `npm ci` in extension")
    subprocess.run([node, "scripts/build-bare.mjs"], cwd=EXTENSION, check=True, timeout=120)
    return EXTENSION / "build/bare.js"


def start(page: Page, lab: Lab) -> None:
    """Make ``page`` such a page, with a kernel of its own from ``lab``."""
    built = script()
    html = ('<!doctype html><meta charset="utf-8"><title>bare</title>'
            "<style>:root{color-scheme:light dark}body{margin:20px;"
            "background:light-dark(#fff,#14191c);color:light-dark(#111,#eee)}</style>")
    page.route(f"{lab.address}/bare.html", lambda route: route.fulfill(
        body=html, content_type="text/html"))
    page.route(f"{lab.address}/anywidget.js", lambda route: route.fulfill(
        path=ANYWIDGET / "index.js", content_type="text/javascript"))
    page.goto(f"{lab.address}/bare.html")
    page.add_script_tag(path=built)
    page.evaluate("([a, t, m]) => bare.start(a, t, m)",
                  [lab.address, lab.token, f"{lab.address}/anywidget.js"])


def run(page: Page, code: str, fails: bool = False) -> list[str]:
    """Run code in the page's kernel; returns what it displayed as text."""
    said: list[str] = page.evaluate("code => bare.run(code)", code)
    assert fails or not any("Error: " in text for text in said), said
    return said
