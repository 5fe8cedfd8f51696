"""Is everything that JupyterLab offers reached by clicking: launcher, menus, settings, exports?

Read before: ``jupyter.py``, ``extension/src/lab/index.ts``.  Read after: nothing.
Invariant: nothing is done by a command where a reader would click.
"""

from __future__ import annotations

import csv
import json
import pathlib
import shutil
from collections.abc import Callable

import pytest
from jupyter import Lab
from playwright.sync_api import expect

ROOT = pathlib.Path(__file__).parents[2]
PANEL = "#saem-lens-panel"
SETUP = "%load_ext saem.lens\nimport saem as jax, saem.numpy as jnp"
MODEL = "def double(x):\n    y = x * 2\n    return y\nstep = jax.jit(double)\nstep(jnp.ones(3))"
ASKS = "jax.jit(lambda x: 1 if x > 0 else 2)(1.0)"


@pytest.fixture(params=["en", "ko"])
def lab(request, labs: Callable[[str], Lab]) -> Lab:
    """JupyterLab in each language, with the lessons in their folders."""
    lab = labs(request.param)
    for language in ("en", "ko"):
        (lab.notebooks / language).mkdir(exist_ok=True)
        for lesson in ("01-arrays", "06-control-flow"):
            shutil.copy(ROOT / language / f"{lesson}.ipynb", lab.notebooks / language)
    return lab


def test_launcher_card_and_a_lesson_from_an_error(lab: Lab, lab_page, picture) -> None:
    """The card opens the first lesson of the reader's language, an error's link its own."""
    lab.write("asks.ipynb", SETUP, ASKS)
    page = lab_page(lab, 1500)
    lab.open(page, "asks.ipynb")
    lab.run_all(page)
    card = page.locator(".jp-OutputArea-output .saem-error")
    card.locator(".saem-lesson").click()
    title = page.locator(".lm-TabBar-tab.lm-mod-current .lm-TabBar-tabLabel")
    expect(title.filter(has_text="06-control-flow.ipynb")).to_have_count(1)
    assert page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path"
                         ) == f"{lab.language}/06-control-flow.ipynb"
    lab.command(page, "launcher:create")
    name = {"en": "Saem Lessons", "ko": "Saem 수업"}[lab.language]
    launched = page.locator(".jp-LauncherCard", has_text=name).first
    expect(launched).to_be_visible()
    picture(page, f"lab-launcher-{lab.language}")
    launched.click()
    expect(title.filter(has_text="01-arrays.ipynb")).to_have_count(1)
    assert page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path"
                         ) == f"{lab.language}/01-arrays.ipynb"


def test_context_menu_exports_and_settings(lab: Lab, lab_page, picture) -> None:
    """A cell's menu shows its jaxpr; the panel saves JSON and CSV; a setting turns badges off."""
    lab.write("clicks.ipynb", SETUP, MODEL)
    page = lab_page(lab, 1500)
    lab.open(page, "clicks.ipynb")
    lab.run_all(page)
    cell = page.locator(".jp-NotebookPanel .jp-CodeCell").nth(1)
    expect(cell.locator("> .saem-badge")).to_be_visible()
    with page.expect_download() as saved:
        page.locator(f"{PANEL} .saem-tools button").nth(0).click()
    model = json.loads(pathlib.Path(saved.value.path()).read_text(encoding="utf-8"))
    assert [f["summary"]["name"] for f in model["functions"]] == ["double"]
    with page.expect_download() as saved:
        page.locator(f"{PANEL} .saem-tools button").nth(1).click()
    text = pathlib.Path(saved.value.path()).read_text(encoding="utf-8")
    (row,) = csv.DictReader(text.splitlines())
    assert (row["function"], row["kind"], row["signature"]) == ("double", "compile", "x: f32[3]")
    assert float(row["compile_s"]) > 0
    cell.locator(".cm-content").click(button="right")
    names = {"en": "Show the Jaxpr", "ko": "Jaxpr로 보기"}
    item = page.locator(".lm-Menu-item", has_text=names[lab.language])
    expect(item).to_be_visible()
    picture(page, f"lab-context-{lab.language}")
    item.click()
    shown = page.locator(".jp-MainAreaWidget > .saem-output .saem-jaxpr")
    expect(shown.locator(".saem-t-primitive", has_text="mul").first).to_be_visible()
    page.evaluate("() => window.jupyterapp.commands.execute('settingeditor:open',"
                  " {query: 'Saem'})")
    page.locator(".jp-PluginList-entry", has_text="Saem lens").first.click()
    box = page.get_by_label("Badges on cells", exact=False).first
    box.uncheck()
    picture(page, f"lab-settings-{lab.language}")
    expect(page.locator(".jp-NotebookPanel .saem-badge")).to_have_count(0)
    box.check()
    # The setting is kept by the server: other tests want it as it was.
    expect(page.locator(".jp-NotebookPanel .saem-badge")).not_to_have_count(0)
