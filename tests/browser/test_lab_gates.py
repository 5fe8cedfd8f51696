"""Are the gates that ask for an argument, a line and a shape answered by mouse and keyboard?

Read before: ``jupyter.py``, ``saem.lesson.predict``.  Read after: nothing.
Invariant: the engine's events judge; the test knows the right answers from what jit is.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

SETUP = """%load_ext saem.lens
import saem as jax, saem.numpy as jnp
from saem.lesson import predict
from saem.observe import language
language.choose({language!r})
def scaled(x, factor):
    y = x * factor
    if y.sum() > 0:
        return y
    return -y
def double(x, factor): return x * factor"""
ASK = """which = predict.argument("which", "Which argument compiles it again?", of=double)
where = predict.line("where", "Which line refuses?", of=scaled)
drawn = predict.shape("drawn", "What shape has x[None] * y?")"""
JUDGE = """step = jax.jit(double)
with which.watch("argument"):
    step(jnp.ones(3), 2.0)
    step(jnp.ones(4), 2.0)
try:
    with where.watch("line"): jax.jit(scaled)(jnp.ones(3), 2.0)
except jax.errors.TracerBoolConversionError: pass
drawn.judge((jnp.ones(4)[None] * jnp.ones((3, 1))).shape)"""


@pytest.mark.parametrize("language", ["en", "ko"])
def test_argument_line_and_shape(language, labs: Callable, new_page, picture) -> None:
    """Two right guesses and a wrong one, each with its verdict; the shape is drawn as written."""
    lab = labs(language)
    lab.write("gates.ipynb", SETUP.format(language=language), ASK, JUDGE)
    page: Page = new_page(width=1440)
    lab.open(page, "gates.ipynb")
    for at in (0, 1):
        page.evaluate("i => { const {content} = window.jupyterapp.shell.currentWidget;"
                      " content.activeCellIndex = i; content.deselectAll(); }", at)
        lab.command(page, "notebook:run-cell")
        lab.rest(page)
    gates = page.locator(".jp-OutputArea-output .saem-gate:has(.saem-gate-commit)")
    expect(gates).to_have_count(3)
    gates.nth(0).locator(".saem-gate-option label", has_text="x").first.click()
    gates.nth(0).locator(".saem-gate-commit").click()
    gates.nth(1).locator(".saem-gate-option label", has_text="return y").click()
    gates.nth(1).locator(".saem-gate-commit").click()
    box = gates.nth(2).locator("input[type='text']")
    box.fill("(3, 4)")
    box.press("Tab")
    expect(gates.nth(2).locator(".saem-box")).to_have_count(12)
    gates.nth(2).locator(".saem-gate-commit").click()
    page.evaluate("() => { const {content} = window.jupyterapp.shell.currentWidget;"
                  " content.activeCellIndex = 2; content.deselectAll(); }")
    lab.command(page, "notebook:run-cell")
    lab.rest(page)
    for at, state in enumerate(("right", "wrong", "right")):
        expect(gates.nth(at).locator(".saem-gate-verdict")).to_have_attribute("data-state", state)
    picture(page, f"lab-gates-{language}")
    lab.close_all()
