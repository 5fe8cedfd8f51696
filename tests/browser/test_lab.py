"""Does JupyterLab's panel follow the active notebook's kernel, and say so when it cannot?

Read before: ``jupyter.py``, ``fake_publisher.py``, ``extension/src/lab``.
Read after: ``test_lesson.py``.
Invariant: the panel is judged by what it shows for data whose content this test wrote itself.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator

import pytest
from jupyter import Lab
from playwright.sync_api import Page, expect

HERE = pathlib.Path(__file__).parent
SAMPLES = HERE.parents[1] / "extension" / "test" / "samples"
PANEL = "#saem-lens-panel"
PUBLISH = (
    "# saem\nimport sys\nsys.path.insert(0, {here!r})\nimport fake_publisher\n"
    "fake_publisher.publish({history!r}, version={version})"
)


def publishing(history: pathlib.Path, version: int = 2) -> str:
    """The code of a cell that publishes a history."""
    return PUBLISH.format(here=str(HERE), history=str(history), version=version)


@pytest.fixture
def lab(labs: Callable[[str], Lab]) -> Iterator[Lab]:
    """The JupyterLab in English."""
    yield labs("en")
    labs("en").close_all()


@pytest.fixture
def history(tmp_path: pathlib.Path) -> pathlib.Path:
    """The sample history, its cells named as those of the notebooks here."""
    text = (SAMPLES / "history.json").read_text(encoding="utf-8")
    for name, number in {"three": 1, "four": 2, "five": 3, "six": 4}.items():
        text = text.replace(f"cell-{name}", f"cell-{number}")
    target = tmp_path / "history.json"
    target.write_text(text, encoding="utf-8")
    return target


def test_panel_follows_the_kernel(lab: Lab, new_page, picture, history) -> None:
    """Snapshot, appended record, link to a cell, badge, clearing, and a restart."""
    step = json.loads(history.read_text(encoding="utf-8"))["functions"][0]
    record = {**step["records"][2], "id": 99}
    summary = {**step["summary"], "compiles": 3}
    append = f"import json\nfake_publisher.append(*json.loads({json.dumps([summary, record])!r}))"
    lab.write("follow.ipynb", publishing(history), "1 + 1", "2 + 2", "\n3 + 3", append)
    page: Page = new_page(width=1440)
    lab.open(page, "follow.ipynb")
    page.locator(".jp-Notebook .jp-Cell").first.click()
    lab.command(page, "notebook:run-cell-and-select-next")
    expect(page.locator(f"{PANEL} [data-state='live']")).to_be_visible()
    expect(page.locator(f"{PANEL} .saem-name")).to_have_text(["step", "normalize"])
    lab.run_all(page)
    expect(page.locator(f"{PANEL} [data-record='99']")).to_be_visible()
    expect(page.locator(f"{PANEL} .saem-count-compiles b").first).to_have_text("3")
    page.locator(f"{PANEL} [data-record='4']").click()
    expect(page.locator(f"{PANEL} .saem-old")).to_have_text("f32[4,3]")
    picture(page, "lab-panel")
    page.locator(f"{PANEL} .saem-detail .saem-place").click()
    expect(page.locator(".jp-Cell.jp-mod-active")).to_contain_text("3 + 3")
    expect(page.locator(".jp-Cell.saem-visited > .saem-badge")).to_have_text("2")
    page.locator(f"{PANEL} .saem-clear").click()
    expect(page.locator(f"{PANEL} .saem-waiting")).to_be_visible()
    expect(page.locator(".saem-badge")).to_have_count(0)
    page.evaluate("""() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()""")
    expect(page.locator(f"{PANEL} [data-state='absent']")).to_be_visible(timeout=30_000)


def test_the_panel_that_opens_by_itself_leaves_the_keys_to_the_notebook(
        lab: Lab, new_page, history) -> None:
    """Who runs cell after cell with Shift+Enter goes on."""
    lab.write("keys.ipynb", publishing(history), "print('second')", "print('third')")
    page: Page = new_page(width=1440)
    lab.open(page, "keys.ipynb")
    page.locator(".jp-Notebook .jp-Cell").first.click()
    page.keyboard.press("Shift+Enter")
    expect(page.locator(f"{PANEL} [data-state='live']")).to_be_visible()
    for word in ("second", "third"):
        page.keyboard.press("Shift+Enter")
        expect(page.locator(".jp-OutputArea-output", has_text=word)).to_be_visible()
    lab.command(page, "saem-lens:toggle")
    lab.command(page, "saem-lens:toggle")  # whoever asks for the panel gets its keys
    page.wait_for_function(f"() => document.querySelector({PANEL!r}).contains("
                           "document.activeElement)")


def test_the_panel_leaves_a_narrow_notebook_its_room(lab: Lab, new_page, history) -> None:
    """At 200% zoom it does not open by itself; the status bar opens it."""
    lab.write("narrow.ipynb", publishing(history))
    page: Page = new_page(width=640)
    lab.open(page, "narrow.ipynb")
    lab.run_all(page)
    item = page.locator("#jp-main-statusbar .saem-status")
    expect(item).to_be_visible()
    expect(page.locator(".saem-badge")).not_to_have_count(0)
    expect(page.locator(PANEL)).to_be_hidden()
    item.click()
    expect(page.locator(PANEL)).to_be_visible()


def test_panel_says_what_is_missing(lab: Lab, lab_page, picture, history) -> None:
    """Another version, a kernel without the lens, and no notebook: each in words."""
    lab.write("version.ipynb", publishing(history, version=999))
    lab.write("plain.ipynb", "1 + 1")
    page = lab_page(lab)
    lab.open(page, "version.ipynb")
    lab.run_all(page)
    lab.command(page, "saem-lens:toggle")
    expect(page.locator(PANEL)).to_be_hidden()
    lab.command(page, "saem-lens:toggle")
    expect(page.locator(f"{PANEL} [data-state='version']")).to_contain_text("999")
    lab.open(page, "plain.ipynb")
    expect(page.locator(f"{PANEL} [data-state='absent']")).to_contain_text("%load_ext saem.lens")
    picture(page, "lab-absent")


def test_panel_speaks_korean_in_the_dark(labs, lab_page, picture, history) -> None:
    """JupyterLab's language is the panel's, and its dark theme too."""
    lab = labs("ko")
    lab.write("follow.ipynb", publishing(history), "1 + 1", "2 + 2", "\n3 + 3")
    page = lab_page(lab)
    lab.open(page, "follow.ipynb")
    page.evaluate(
        "() => window.jupyterapp.commands.execute('apputils:change-theme',"
        " {theme: 'JupyterLab Dark'})"
    )
    lab.run_all(page)
    expect(page.locator(f"{PANEL} h3")).to_have_text("Saem 렌즈")
    page.locator(f"{PANEL} [data-record='4']").click()
    expect(page.locator(PANEL)).to_contain_text("형상이 바뀌었습니다")
    picture(page, "lab-ko-dark")


OUTPUTS = """
import json, pathlib
from IPython.display import display
model = json.loads(pathlib.Path({jaxpr!r}).read_text(encoding="utf-8"))
display({{"application/vnd.saem.lens.v2+json": model, "text/plain": "as text"}}, raw=True)
"""
WIDGET = """
import anywidget, traitlets
class View(anywidget.AnyWidget):
    _esm = pathlib.Path({static!r}, "widget.js").read_text(encoding="utf-8")
    _css = pathlib.Path({static!r}, "saem.css").read_text(encoding="utf-8")
    model = traitlets.Dict().tag(sync=True)
    locale = traitlets.Unicode("ko").tag(sync=True)
history = json.loads(pathlib.Path({history!r}).read_text(encoding="utf-8"))
view = View(model={{**history, "functions": history["functions"][:1]}})
view
"""


def test_outputs_by_mime_type_and_as_a_widget(
    lab: Lab, new_page, picture, history, static_files
) -> None:
    """JupyterLab draws our mime type with Graphviz; the widget follows its traits.

    The page is a new one: that Graphviz is loaded when it is needed is seen once in its life.
    """
    lab.write(
        "outputs.ipynb",
        OUTPUTS.format(jaxpr=str(SAMPLES / "jaxpr.json")),
        WIDGET.format(static=str(static_files), history=str(history)),
        "view.model = history; view.locale = 'en'",
    )
    page: Page = new_page(width=1440)
    lab.open(page, "outputs.ipynb")
    with page.expect_response(lambda r: "saem-lens/static" in r.url):
        lab.command(page, "notebook:run-cell-and-select-next")
    nodes = page.locator(".saem-output svg.saem-graph g.saem-node[data-eqn]")
    expect(nodes).to_have_count(10, timeout=20_000)
    picture(page, "lab-output")
    lab.command(page, "notebook:run-cell-and-select-next")
    widget = page.locator(".jp-OutputArea-output .saem-history")
    expect(widget.locator(".saem-name")).to_have_text(["step"])
    expect(widget).to_contain_text("셀 3")
    lab.command(page, "notebook:run-cell-and-select-next")
    expect(widget.locator(".saem-name")).to_have_text(["step", "normalize"])
    expect(widget).to_contain_text("cell 3")
    picture(page, "lab-widget")
