"""Can a learner go through a whole Korean lesson by clicks, answer all it asks, and be judged?

The learner presses *run* in the toolbar again and again, answers each question when it appears,
writes the exercise, and reads on.

Read before: ``test_lesson.py``, ``notebooks/03-jit-and-jaxprs.md``.  Read after: nothing.
Invariant: cells run by the toolbar's button only; no command runs them.
"""

from __future__ import annotations

import pathlib

import nbformat
from jupyter import POLLING, Lab
from playwright.sync_api import Locator, Page, expect

ROOT = pathlib.Path(__file__).parents[2]
LESSON = "03-jit-and-jaxprs.ipynb"
# The run button of the notebook's toolbar, which also goes to the next cell.
RUN = "jp-button[data-command='notebook:run-cell-and-select-next'], \
button[data-command='notebook:run-cell-and-select-next']"
# From a piece of the cell that asks to the answer: an option to click, or a text to type.
ANSWERS = {
    "equations_guess = predict": "4",
    "algebra_guess = predict": "로그와 곱셈",
    "digits_guess = predict": "100.0",
}
EXERCISE = """def mystery(a, b):
return jnp.log(jnp.sum(jnp.exp(a - b)))"""
CELLS = """() => window.jupyterapp.shell.currentWidget.content.widgets.map(cell => {
  const {type, sharedModel} = cell.model;
  const outputs = type === 'code' ? cell.model.outputs.toJSON() : [];
  return {
    type, id: sharedModel.id, source: sharedModel.source,
    tags: cell.model.getMetadata('tags') ?? [],
    ran: type === 'code' ? sharedModel.execution_count : null,
    errors: outputs.filter(o => o.output_type === 'error').map(o => o.ename),
    html: outputs.map(o => [o.data?.['text/html'] ?? ''].flat().join('')).join(''),
  };
})"""
ACTIVE = "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex"


def cell_at(page: Page, index: int) -> Locator:
    """The cell with this place in the notebook, while it is in sight."""
    return page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{index}']")


def answer(gate: Locator, text: str) -> None:
    """Commit a guess: click the option, or type where there are none."""
    expect(gate).to_be_visible()
    options = gate.locator(".saem-gate-option label", has_text=text)
    if options.count():
        options.first.click()
    else:
        gate.locator("input[type=text]").fill(text)
    gate.locator(".saem-gate-commit").click()


def test_a_whole_lesson_by_clicks(labs, lab_page, picture) -> None:
    """Every cell runs, fails where it is meant to, and every answer is judged right."""
    lab: Lab = labs("ko")
    notebook = nbformat.read(ROOT / "ko" / LESSON, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, lab.notebooks / LESSON)
    page = lab_page(lab)
    page.set_default_timeout(15_000)
    lab.open(page, LESSON)
    before = page.evaluate(CELLS)
    assert all(cell["ran"] is None for cell in before)
    cell_at(page, 0).click()
    for index, cell in enumerate(before):
        if cell["id"] == "exercise-answer":
            cell_at(page, index).locator(".cm-content").click()
            page.keyboard.press("Control+a")
            # The editor indents what follows a colon by itself, so the lines are typed.
            page.keyboard.type(EXERCISE)
        if page.evaluate(ACTIVE) != index:  # an answer was clicked in the cell before
            cell_at(page, index).click(position={"x": 30, "y": 8})
        assert page.evaluate(ACTIVE) == index
        page.locator(RUN).first.click()
        if cell["type"] == "code":
            page.wait_for_function(
                f"at => ({CELLS})()[at].ran !== null", arg=index, timeout=60_000,
                polling=POLLING)
        for piece, guess in ANSWERS.items():
            if piece in cell["source"]:
                answer(cell_at(page, index).locator(".saem-gate").first, guess)
                picture(page, f"whole-ko-{piece.split('_')[0]}")
    lab.rest(page)
    # Going on from the last cell makes an empty one, which is no part of the lesson.
    after = [cell for cell in page.evaluate(CELLS)[: len(before)] if cell["type"] == "code"]
    assert {cell["id"]: cell["ran"] for cell in after} == {
        cell["id"]: count for count, cell in enumerate(after, 1)}
    for cell in after:
        assert bool(cell["errors"]) == ("raises-exception" in cell["tags"]), cell["id"]
    shown = "".join(cell["html"] for cell in after)
    for name in ("equations", "algebra", "digits", "mystery"):
        assert f'data-gate="{name}" data-state="right"' in shown, name
    picture(page, "whole-ko-end")
