"""Does the first lesson work from end to end: run, guess, be judged, and see the compile?

Read before: ``jupyter.py``, ``notebooks/01-arrays.md``.  Read after: nothing.
Invariant: nothing here stands in for the engine or the lens; all that is shown is theirs.
"""

from __future__ import annotations

import pathlib
import shutil

import pytest
from playwright.sync_api import Page, expect

ROOT = pathlib.Path(__file__).parents[2]
PANEL = "#saem-lens-panel"
GRAPH = ".jp-OutputArea-output .saem-jaxpr svg.saem-graph"
# What calculus says about the gradient of x₁² + … + x₄² at (1, 2, 3, 4).
GRADIENT = "[2. 4. 6. 8.]"
FIRST_CALL = {"en": "first call", "ko": "첫"}


def scroll_to_cell(page: Page, text: str) -> None:
    """Bring the cell that contains ``text`` to the top: JupyterLab draws only cells in sight."""
    page.evaluate(
        """async text => {
          const {content} = window.jupyterapp.shell.currentWidget;
          const at = content.widgets.findIndex(c => c.model.sharedModel.source.includes(text));
          content.activeCellIndex = at;
          await content.scrollToItem(at, 'start');
        }""",
        text,
    )


@pytest.mark.parametrize("language", ["ko", "en"])
def test_first_lesson(language: str, labs, lab_page, picture) -> None:
    """Saved outputs show; cells run; a gate is answered; the panel lists the compile and why."""
    lab = labs(language)
    shutil.copy(ROOT / language / "01-arrays.ipynb", lab.notebooks)
    page = lab_page(lab)
    lab.open(page, "01-arrays.ipynb")
    # A copied notebook is not trusted, and yet what it saved is drawn.
    scroll_to_cell(page, "jax.make_jaxpr(jax.grad(sum_of_squares))(x)")
    expect(page.locator(GRAPH).first).to_be_visible()
    picture(page, f"lesson-{language}-saved")
    lab.run_all(page)
    scroll_to_cell(page, "gradient_guess = predict.choice(")
    gate = page.locator(".saem-gate").first
    gate.locator(".saem-gate-option label", has_text=GRADIENT).click()
    gate.locator(".saem-gate-commit").click()
    expect(gate.locator(".saem-gate-verdict")).to_have_attribute("data-state", "right")
    picture(page, f"lesson-{language}-gate")
    row = page.locator(f"{PANEL} .saem-row", has=page.locator(".saem-name >> text=/^update$/"))
    expect(row.locator(".saem-count-compiles b")).to_have_text("1")
    row.locator(".saem-mark.saem-kind-compile").click()
    expect(row.locator("[data-tag='first_call']")).to_contain_text(FIRST_CALL[language])
    scroll_to_cell(page, "jax.make_jaxpr(jax.grad(sum_of_squares))(x)")
    expect(page.locator(GRAPH).first).to_be_visible()
    picture(page, f"lesson-{language}-jaxpr")
    scroll_to_cell(page, "saem.lens.history()")
    history = page.locator(".jp-OutputArea-output .saem-history")
    expect(history.locator(".saem-name", has_text="update")).to_be_visible()
    picture(page, f"lesson-{language}-panel")
