"""Do the views live in JupyterLab: hints, commands, status, toolbar, progress, what to try next?

What a person does in each view is in ``test_journeys.py``.

Read before: ``jupyter.py``, ``extension/src/lab``.  Read after: nothing.
Invariant: all that is shown comes from the engine in a real kernel.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from jupyter import Lab
from playwright.sync_api import Page, expect

PANEL = "#saem-lens-panel"
SETUP = "%load_ext saem.lens\nimport saem as jax, saem.numpy as jnp"
MODEL = """def loss(w, x):
    h = x
    for i in range(3):
        h = jnp.tanh(w * h)
    return jnp.sum(h)
step = jax.jit(jax.grad(loss))
step(jnp.ones(3), jnp.ones(3))"""

# Runs code in the kernel of the notebook in sight, and returns what it prints.
ASK = """async code => {
  const {kernel} = window.jupyterapp.shell.currentWidget.sessionContext.session;
  let printed = '';
  const future = kernel.requestExecute({code, store_history: false});
  future.onIOPub = message => { printed += message.content.text ?? ''; };
  await future.done;
  return printed.trim();
}"""
COMMS = "import comm\nprint([c.target_name for c in comm.get_comm_manager().comms.values()])"


@pytest.fixture(params=["en", "ko"])
def lab(request, labs: Callable[[str], Lab]) -> Lab:
    """JupyterLab in each language."""
    return labs(request.param)


def opened(lab: Lab, page: Page, name: str, *cells: str) -> Page:
    """The page with a notebook of these cells, all of them run."""
    lab.write(name, *cells)
    lab.open(page, name)
    if lab.language == "ko":
        page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme',"
                      " {theme: 'JupyterLab Dark'})")
    lab.run_all(page)
    return page


def select(page: Page, index: int) -> None:
    page.evaluate("i => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = i; }",
                  index)


def test_the_xray_stands_in_the_cells_own_editor(lab: Lab, lab_page, picture) -> None:
    """Hints beside the lines after an X-ray, gone when the text changes; the source unchanged."""
    page = opened(lab, lab_page(lab, 1500), "xray.ipynb", SETUP, MODEL, "%%lens tracers\n" + MODEL)
    third = page.locator(".jp-Cell").nth(2)
    hints = third.locator(".saem-inlay")
    expect(hints.filter(has_text="h: f32[3]").first).to_be_visible()
    expect(hints.filter(has_text="↻ ×3")).to_have_count(1)
    expect(third.locator(".saem-tracers .saem-unrolled")).to_be_visible()
    source = page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets[2]"
                           ".model.sharedModel.source")
    assert source == "%%lens tracers\n" + MODEL
    picture(page, f"lab-xray-{lab.language}")
    lab.command(page, "saem-lens:hints")
    expect(hints.first).to_be_hidden()
    lab.command(page, "saem-lens:hints")
    expect(hints.first).to_be_visible()
    select(page, 1)
    lab.command(page, "saem-lens:xray")
    second = page.locator(".jp-NotebookPanel .jp-Cell").nth(1)
    expect(second.locator(".saem-inlay").first).to_be_visible(timeout=60_000)
    expect(page.locator(".jp-MainAreaWidget > .saem-output .saem-tracers")).to_be_visible()
    picture(page, f"lab-xray-command-{lab.language}")
    page.evaluate("() => { const n = [...window.jupyterapp.shell.widgets('main')]"
                  ".find(w => w.content?.widgets); n.content.widgets[1].model.sharedModel"
                  ".setSource('1'); }")
    expect(second.locator(".saem-inlay")).to_have_count(0)


def test_status_toolbar_badge_and_what_to_try_next(lab: Lab, new_page, picture) -> None:
    """One compile shows in the status bar, the toolbar, on the cell; a click adds a cell."""
    page = opened(lab, new_page(width=1500), "status.ipynb", SETUP, MODEL)
    name = {"en": "Saem: 1 compiled", "ko": "Saem: 컴파일 1"}[lab.language]
    expect(page.locator(".saem-status-button")).to_contain_text(name)
    expect(page.locator(".jp-NotebookPanel:visible .saem-toolbar-count")).to_have_text("1")
    badge = page.locator(".jp-NotebookPanel:visible .saem-toolbar-button")
    expect(badge).to_have_attribute("aria-label", re.compile(name))
    expect(badge).to_have_attribute("title", re.compile(name))
    expect(page.locator(".jp-Cell").nth(1).locator("> .saem-badge")).to_be_visible()
    picture(page, f"lab-panel-next-{lab.language}")
    page.locator(f"{PANEL} .saem-next-item").first.click()
    expect(page.locator(".jp-Cell.jp-mod-active")).to_contain_text("%%lens jaxpr")
    page.reload()
    expect(page.locator(f"{PANEL} .saem-name")).to_have_text(["loss"], timeout=60_000)
    assert page.evaluate(ASK, COMMS) == "['saem.lens']", "the comm before is closed"


def test_the_commands_on_a_cell_are_off_for_prose_and_without_a_kernel(labs, lab_page) -> None:
    """Neither *X-ray* nor *jaxpr* is offered where it would do nothing."""
    lab = labs("en")
    lab.write("ask.ipynb", "1 + 1")
    page = lab_page(lab)
    lab.open(page, "ask.ipynb")
    enabled = "name => window.jupyterapp.commands.isEnabled(name)"
    assert page.evaluate(enabled, "saem-lens:xray")
    lab.command(page, "notebook:change-cell-to-markdown")
    assert not page.evaluate(enabled, "saem-lens:xray")
    lab.command(page, "notebook:change-cell-to-code")
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    assert not page.evaluate(enabled, "saem-lens:jaxpr")


def test_what_runs_long_shows_on_cell_panel_and_status(lab: Lab, lab_page, picture) -> None:
    """A trace of some seconds is told while it runs, and no longer when it ended."""
    slow = ("import time\n@jax.jit\ndef crawl(x):\n    time.sleep(4)\n    return x\ncrawl(1.)")
    lab.write("slow.ipynb", SETUP, slow)
    page = lab_page(lab, 1500)
    lab.open(page, "slow.ipynb")
    page.locator(".jp-Notebook .jp-Cell").first.click()
    lab.command(page, "notebook:run-cell-and-select-next")
    expect(page.locator(f"{PANEL} [data-state='live']")).to_be_visible(timeout=20_000)
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell'); }")
    says = {"en": "Tracing crawl", "ko": "crawl 추적 중"}[lab.language]
    expect(page.locator(f"{PANEL} .saem-working")).to_contain_text(says, timeout=20_000)
    expect(page.locator(".saem-running")).to_contain_text(says)
    expect(page.locator(".saem-status-button")).to_contain_text(says)
    picture(page, f"lab-progress-{lab.language}")
    expect(page.locator(".saem-running")).to_have_count(0, timeout=20_000)
    expect(page.locator(f"{PANEL} .saem-name")).to_have_text(["crawl"])


def test_a_long_compile_names_the_constant_that_xla_computes(lab: Lab, lab_page, picture) -> None:
    """The size of the constant and its line, in the reader's language, on panel and cell."""
    soon = SETUP + "\nimport saem.observe.progress as progress\nprogress.WHY_AFTER = 0.3"
    # A hundred and sixty products take XLA some seconds on any machine.
    table = ("@jax.jit\ndef table(x):\n    steps = jnp.cumsum(jnp.ones(80_000_000))\n"
             "    for i in range(160):\n        x = jnp.sin(x @ x) + steps[i]\n"
             "    return x\ntable(jnp.ones((3, 3)))")
    lab.write("constant.ipynb", soon, table)
    page = lab_page(lab, 1500)
    lab.open(page, "constant.ipynb")
    page.locator(".jp-Notebook .jp-Cell").first.click()
    lab.command(page, "notebook:run-cell-and-select-next")
    expect(page.locator(f"{PANEL} [data-state='live']")).to_be_visible(timeout=20_000)
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell'); }")
    says = {"en": "A constant of 320 MB at cell 2, line 3", "ko": "셀 2 3행의 상수 320 MB"}
    expect(page.locator(f"{PANEL} .saem-working")).to_contain_text(says[lab.language])
    expect(page.locator(".saem-running")).to_contain_text(says[lab.language])
    picture(page, f"lab-constant-{lab.language}")
    expect(page.locator(".saem-running")).to_have_count(0, timeout=60_000)


def test_the_panel_follows_a_notebook_of_jax_in_the_kernel_saem(labs, lab_page, picture) -> None:
    """No cell names Saem; the kernel does, and the panel opens by itself."""
    lab = labs("en")
    lab.write("of_jax.ipynb", "import jax", "def step(x):\n    return x * 2\njax.jit(step)(1.)",
              kernel="saem")
    page = lab_page(lab, 1500)
    lab.open(page, "of_jax.ipynb")
    lab.run_all(page)
    expect(page.locator(f"{PANEL} .saem-name")).to_have_text(["step"], timeout=30_000)
    expect(page.locator(PANEL)).to_be_visible()
    picture(page, "lab-kernel-saem")


def test_the_panel_follows_a_console(labs, new_page, picture) -> None:
    """A console's functions show like a notebook's, until the reader turns to the notebook."""
    lab = labs("en")
    lab.write("plain.ipynb", "1 + 1")
    page = new_page(width=1500, known="reading 'promise'")  # JupyterLab: a console out of sight
    lab.open(page, "plain.ipynb")
    page.evaluate("() => window.jupyterapp.commands.execute('console:create',"
                  " {kernelPreference: {name: 'python3'}, activate: true})")
    prompt = page.locator(".jp-CodeConsole-promptCell .cm-content")
    expect(prompt).to_be_visible(timeout=30_000)
    for code in (SETUP, "jax.jit(lambda x: x * 2)(1.)"):
        page.evaluate("async code => { const w = window.jupyterapp.shell.currentWidget;"
                      " await w.sessionContext.ready; await w.console.inject(code); }", code)
    expect(page.locator(f"{PANEL} .saem-name")).to_have_text(["<lambda>"], timeout=30_000)
    picture(page, "lab-console")
    page.get_by_role("tab", name="plain.ipynb").click()
    expect(page.locator(f"{PANEL} .saem-name")).to_have_count(0)
