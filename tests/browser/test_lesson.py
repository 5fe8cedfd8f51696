"""Does the first lesson work from end to end: run, guess, be judged, and see the compile?

Read before: ``jupyter.py``, ``notebooks/01-arrays.md``.  Read after: nothing.
Invariant: nothing here stands in for the engine or the lens; all that is shown is theirs.
"""

from __future__ import annotations

import pathlib
import shutil

import pytest
from jupyter import Lab
from playwright.sync_api import Page, expect

ROOT = pathlib.Path(__file__).parents[2]
PANEL = "#saem-lens-panel"
# What calculus says about the gradient of x₁² + … + x₄² at (1, 2, 3, 4).
GRADIENT = "[2. 4. 6. 8.]"
FIRST_CALL = {"en": "first call", "ko": "첫"}


@pytest.mark.parametrize("language", ["ko", "en"])
def test_first_lesson(language: str, new_page, picture, labextension, tmp_path) -> None:
    """Cells run, a gate is answered in the page, the panel lists the compile and its reason."""
    with Lab(tmp_path / "lab", labextension, language) as lab:
        shutil.copy(ROOT / language / "01-arrays.ipynb", lab.notebooks)
        page: Page = new_page(width=1440)
        lab.open(page, "01-arrays.ipynb")
        lab.run_all(page)
        gate = page.locator(".saem-gate").first
        gate.scroll_into_view_if_needed()
        gate.locator(".saem-gate-option label", has_text=GRADIENT).click()
        gate.locator(".saem-gate-commit").click()
        expect(gate.locator(".saem-gate-verdict")).to_be_visible()
        picture(page, f"lesson-{language}-gate")
        row = page.locator(f"{PANEL} .saem-row", has=page.locator(".saem-name >> text=/^update$/"))
        expect(row.locator(".saem-count-compiles b")).to_have_text("1")
        row.locator(".saem-mark.saem-kind-compile").click()
        expect(row.locator("[data-tag='first_call']")).to_contain_text(FIRST_CALL[language])
        picture(page, f"lesson-{language}-panel")
        graph = page.locator(".jp-OutputArea-output .saem-jaxpr svg.saem-graph")
        graph.first.scroll_into_view_if_needed()
        expect(graph.first).to_be_visible()
        picture(page, f"lesson-{language}-jaxpr")
