"""Does a person get through every view, in every shell, in both languages, light and dark?

JupyterLab, Notebook 7, and a page with nothing but the widgets' HTML manager run the cells of
``journeys.PROGRAMS``; each view has a test that uses it there as a person would.

Read before: ``journeys.py``, ``bare.py``.  Read after: nothing.
Invariant: each shell is opened once per language, and again where tests come in another order; a
test runs its own cell, so any may run alone.
JupyterLab is opened in both languages, Notebook 7 in English and the bare page in Korean; with
``SAEM_SWEEP=all`` all three in both.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import tempfile
from collections.abc import Callable, Iterator

import bare
import hostile
import journeys
import pytest
from drawn import NewPage
from jupyter import Lab
from kept_pages import KeptPages
from playwright.sync_api import Locator, Page, expect

PANEL = "#saem-lens-panel"
# Notebook 7 itself makes this error; we do not.
KNOWN = "reading 'schema'"
HINTED = """%%lens tracers
def hinted(x):
    for i in range(3):
        x = jnp.sin(x)
    return x
jax.jit(hinted)(1.0)"""
PROGRAMS = {
    **journeys.PROGRAMS, "hinted": HINTED,
    "hostile views": f"HERE = {str(pathlib.Path(__file__).parent)!r}\n" + hostile.VIEWS,
    "hostile program": hostile.PROGRAM, "hostile error": hostile.ERROR,
}  # fmt: skip
# Cells that need the results of others, and cells that end in an error or show one.
AFTER = {"judge": "gates", "overview": "judge", "hostile program": "hostile views",
         "hostile error": "hostile program"}
FAIL = {"error", "tracers", "hostile views", "hostile program", "hostile error"}
LOOKS = {"en": "light", "ko": "dark"}


class InNotebook(journeys.Shell):
    """JupyterLab or Notebook 7 with the notebook open."""

    def __init__(self, name: str, lab: Lab, page: Page) -> None:
        self.name, self.language, self.page, self._lab = name, lab.language, page, lab
        setup = journeys.SETUP + "shown = display\nFOLDER = '.'"
        cells = {"setup": setup, **PROGRAMS}
        self._at = {cell: number for number, cell in enumerate(cells)}
        self._ran: set[str] = set()
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"journey-{name}-", dir=lab.notebooks)).name
        lab.write(f"{folder}/journey.ipynb", *cells.values())
        lab.open(page, f"{folder}/journey.ipynb")
        theme = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}[LOOKS[lab.language]]
        page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme',"
                      " {theme})", theme)
        self.run("setup")

    def cell(self, name: str) -> Locator:
        """The cell of a view, while it is in sight."""
        return self.page.locator(
            f".jp-NotebookPanel:visible .jp-Cell[data-windowed-list-index='{self._at[name]}']")

    def run(self, name: str) -> None:
        before = AFTER.get(name)
        if before is not None and before not in self._ran:
            self.run(before)
        self._ran.add(name)
        self.page.evaluate(
            """async i => { const {content} = window.jupyterapp.shell.currentWidget;
               content.activeCellIndex = i; content.deselectAll();
               await content.scrollToItem(i, 'start'); }""", self._at[name])
        self._lab.command(self.page, "notebook:run-cell")
        self.rest()

    def rest(self) -> None:
        self._lab.rest(self.page)

    def show(self, name: str) -> Locator:
        if name == "overview":
            self.run("judge")
            self._lab.command(self.page, "docmanager:save")
        self.run(name)
        return self.cell(name).locator(".jp-OutputArea").first


class InBarePage(journeys.Shell):
    """A page with the widgets' manager alone: every view is a widget."""

    name = "bare"

    def __init__(self, lab: Lab, page: Page, language: str) -> None:
        self.language, self.page, self._lab = language, page, lab
        self._ran: set[str] = set()
        bare.start(page, lab)
        self.code(f"import saem.lens\nsaem.lens.language({language!r})")
        # As in Colab, each output that is no widget stands in a frame of its own.
        self.code("import sys, types\nsys.modules['google.colab'] = types.ModuleType('colab')")
        self.code(journeys.SETUP)
        folder = tempfile.mkdtemp(prefix=f"journey-bare-{language}-", dir=lab.home)
        self.code("shown = lambda view: display(lens.as_widget(view))\n"
                  f"FOLDER = {folder!r}")

    def code(self, text: str, fails: bool = False) -> int:
        """Run code; returns how many outputs it put on the page."""
        before = self.page.locator("body > .output").count()
        bare.run(self.page, text, fails)
        return self.page.locator("body > .output").count() - before

    def run(self, name: str) -> None:
        before = AFTER.get(name)
        if before is not None and before not in self._ran:
            self.run(before)
        self._ran.add(name)
        self._outputs = self.code(PROGRAMS[name], fails=name in FAIL)

    def rest(self) -> None:
        bare.run(self.page, "None")

    def show(self, name: str) -> Locator:
        if name == "overview":
            self.run("judge")
            self.code(KEEP)
        self.run(name)
        self.page.evaluate(
            """count => { const all = [...document.querySelectorAll('body > .output')];
               const home = document.createElement('div');
               home.className = 'cell';
               all[all.length - count].before(home);
               home.append(...all.slice(-count)); home.scrollIntoView(); }""", self._outputs)
        cell = self.page.locator("body > .cell").last
        if name in ("error", "hostile error"):  # what no widget shows stands in a frame of its own
            return cell.frame_locator("iframe").last.locator("body")
        return cell


# What a front end would save of the gates.
KEEP = """import nbformat
from saem.lesson import render
made = [nbformat.v4.new_output("display_data", {"text/html": render.verdict_html(gate)})
        for gate in (chosen, counted, named, which, where, drawn)]
nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=made)]),
               f"{FOLDER}/answered.ipynb")"""
SHELLS = [("lab", "en"), ("lab", "ko"), ("notebook", "en"), ("bare", "ko")]
if os.environ.get("SAEM_SWEEP") == "all":
    SHELLS += [("notebook", "ko"), ("bare", "en")]


@pytest.fixture(scope="module", params=SHELLS, ids=["-".join(pair) for pair in SHELLS])
def shell(request: pytest.FixtureRequest, labs: Callable[[str], Lab], labextension,
          kept_pages: KeptPages, tmp_path_factory, shared_page: NewPage
          ) -> Iterator[journeys.Shell]:
    """One of the three shells, with the notebook open, in a language and its scheme."""
    name, language = request.param
    with contextlib.ExitStack() as opened:
        if name == "lab":
            lab = labs(language)
            lend = opened.enter_context(kept_pages.lent(request.session))
            yield InNotebook(name, lab, lend(lab, 1440, LOOKS[language]))
            return
        if name == "notebook":
            home = tmp_path_factory.mktemp(f"notebook7-{language}")
            lab = opened.enter_context(Lab(home, labextension, language, app="notebook"))
        else:
            lab = labs("en")
            opened.callback(lab.close_all)
        page = shared_page(f"{language}-{language.upper()}", LOOKS[language], 1440,
                           known=KNOWN if name == "notebook" else None)
        page.set_default_timeout(20_000)
        yield InBarePage(lab, page, language) if name == "bare" else InNotebook(name, lab, page)
        page.close()


@pytest.mark.parametrize("view", journeys.USE)
def test_a_view_is_used(view: str, shell: journeys.Shell, picture) -> None:
    """It answers to what a person does, and axe-core finds no serious fault in it then."""
    if view == "overview" and not shell.answered:  # alone, or in another process than the gates
        journeys.use_gates(shell, shell.show("gates"))
    root = shell.show(view)
    journeys.USE[view](shell, root)
    picture(root, f"journey-{view}-{shell.name}-{shell.language}")
    seen = root.locator(".saem, .saem-gate").first
    seen.evaluate("node => node.getAnimations({subtree: true}).forEach(one => one.finish())")
    assert journeys.faults(seen) == []


def harm(root: Locator) -> list[dict[str, object]]:
    """What the views in ``root`` made of hostile text, each unfolded and its marks chosen."""
    for summary in root.locator(".saem summary").all():
        summary.evaluate("node => { node.parentElement.open = true; }")
    root.evaluate("""node => { for (let at = 0; at < 12; at += 1) {
        node.querySelectorAll('.saem-mark')[at]?.click(); } }""")
    return [one.evaluate(hostile.FOUND) for one in root.locator(".saem").all()]


@pytest.mark.parametrize(("cell", "count"), [
    ("hostile views", 10), ("hostile program", 3), ("hostile error", 1)])
def test_hostile_text_is_inert(cell: str, count: int, shell: journeys.Shell, picture) -> None:
    """Poisoned views of every kind, then a program and an error in which every name is hostile."""
    root = shell.show(cell)
    expect(root.locator(".saem")).to_have_count(count)
    shell.rest()
    picture(root, f"{cell.replace(' ', '-')}-{shell.name}-{shell.language}")
    found = harm(root)
    assert found == [hostile.HARMLESS] * count
    assert all("could not be read" not in text for text in root.locator(".saem").all_inner_texts())
    if isinstance(shell, InNotebook) and cell == "hostile program":
        panel = shell.page.locator(PANEL)
        shell.page.locator(".saem-toolbar-button").first.evaluate("node => node.click()")
        row = panel.locator(".saem-row", has_text="onerror").first
        expect(row).to_be_visible()
        row.locator(".saem-mark").last.click()
        expect(row.locator(".saem-detail")).to_be_visible()
        picture(panel, f"hostile-panel-{shell.name}-{shell.language}")
        assert harm(panel) == [hostile.HARMLESS] * panel.locator(".saem").count()
        frames = shell.page.locator(".saem-status, .saem-toolbar, .saem-badge").all()
        assert all(one.evaluate(hostile.FOUND) == hostile.HARMLESS for one in frames)


def test_hints_badge_and_panel(shell: journeys.Shell, picture) -> None:
    """Beside the views: hints in the cell's editor, a badge on it, the panel that leads back."""
    if not isinstance(shell, InNotebook):
        pytest.skip("a page with widgets alone has no editor, badge or panel")
    shell.run("hinted")
    cell = shell.cell("hinted")
    hints = cell.locator(".saem-inlay")
    expect(hints.filter(has_text="x: f32[]").first).to_be_visible()
    expect(hints.filter(has_text="↻ ×3")).to_have_count(1)
    root = shell.show("recompiles")
    expect(shell.cell("recompiles").locator("> .saem-badge")).to_be_visible()
    shell.cell("recompiles").locator("> .saem-badge").click()
    panel = shell.page.locator(PANEL)
    row = panel.locator(".saem-row", has=shell.page.locator(".saem-name >> text=/^step$/")).first
    expect(row.locator(".saem-detail")).to_be_visible()
    row.locator(".saem-mark").nth(1).click()
    expect(row.locator(".saem-new")).to_have_text("f32[4]")
    row.locator(".saem-detail .saem-place").first.click()
    expect(shell.cell("recompiles")).to_have_class(re.compile("saem-visited"))
    picture(shell.page, f"journey-panel-{shell.name}-{shell.language}")
    assert journeys.faults(panel.locator(".saem").first) == []
    expect(root.locator(".saem-row").first).to_be_visible()
