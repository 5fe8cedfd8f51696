"""Does a view work in a page with no server: shown, folded, linked, in both languages?

Read before: ``conftest.py``, ``extension/src/shells/static.ts``.  Read after: ``test_lab.py``.
Invariant: the page asks the network for nothing (``conftest.FLAGS`` would starve it).
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from saem.lens import page as pages
from saem.observe import schema
from saem.observe.typed_json import from_json

SAMPLES = pathlib.Path(__file__).parents[2] / "extension" / "test" / "samples"
COMBINATIONS = [("en", "light"), ("ko", "light"), ("en", "dark"), ("ko", "dark")]


def sample(name: str) -> dict[str, Any]:
    """A model kept for tests."""
    return json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))


def write(path: pathlib.Path, locale: str, *models: dict) -> str:
    """Write a page with the views of some models, of which the last carries the renderer."""
    shown = [from_json(schema.Model, model) for model in models]
    views = [pages.page(m, locale, carry=m is shown[-1]) for m in shown]  # type: ignore[arg-type]
    text = (
        f'<!doctype html><html lang="{locale}"><meta charset="utf-8"><title>Saem</title>'
        "<style>:root{color-scheme:light dark}body{margin:24px}hr{margin:24px 0;opacity:.2}"
        f"</style>{'<hr>'.join(views)}</html>"
    )
    target = path / "page.html"
    target.write_text(text, encoding="utf-8")
    return target.as_uri()


@pytest.mark.parametrize(("locale", "scheme"), COMBINATIONS)
def test_both_views_in_every_language_and_light(
    locale: str, scheme: str, new_page, picture, static_files, tmp_path
) -> None:
    """All text is there in the wished language, and the graph has a node for every equation."""
    page = new_page(scheme=scheme)
    page.goto(write(tmp_path, locale, sample("history"), sample("jaxpr")))
    says = {"en": "changed its shape", "ko": "형상이 바뀌었습니다"}[locale]
    page.locator("[data-record='4']").click()
    expect(page.locator(".saem-says").get_by_text(says)).to_be_visible()
    expect(page.locator(".saem-fallback").first).to_be_hidden()
    expect(page.locator("svg.saem-graph g.saem-node[data-eqn]")).to_have_count(10)
    page.locator(".saem-pane-text .saem-line[data-eqn='e0.0.5']").hover()
    expect(page.locator("g.saem-node.saem-on")).to_have_attribute("data-eqn", "e0.0.5")
    picture(page, f"static-{locale}-{scheme}")


def test_a_page_for_texts_leaves_views_alone(new_page, static_files, tmp_path) -> None:
    """Bullets and grounds of code, which nbconvert's page has for its texts, are not in a view."""
    address = pathlib.Path(write(tmp_path, "en", sample("keys"))[len("file://"):])
    text = address.read_text(encoding="utf-8")
    style = (".jp-RenderedHTMLCommon ul ul { list-style: square } "
             ".jp-RenderedHTMLCommon :not(pre) > code { background: red }</style>"
             '<div class="jp-RenderedHTMLCommon jp-RenderedHTML">')
    address.write_text(text.replace("</style>", style, 1), encoding="utf-8")
    page: Page = new_page()
    page.goto(address.as_uri())
    expect(page.locator(".saem-keys .saem-keys li").first).to_have_css("list-style-type", "none")
    expect(page.locator(".saem-keys code").first).not_to_have_css(
        "background-color", "rgb(255, 0, 0)")


def test_marks_by_keyboard(new_page, static_files, tmp_path) -> None:
    """Arrow keys walk along a row's marks, Escape closes the details."""
    page: Page = new_page()
    page.goto(write(tmp_path, "en", sample("history")))
    page.locator("[data-record='7']").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-record='5']")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("[data-record='5']")).to_be_focused()
    page.keyboard.press("Home")
    expect(page.locator("[data-detail='1']")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".saem-detail")).to_have_count(0)


def test_folding_text_and_graph_together(new_page, picture, static_files, tmp_path) -> None:
    """Folding a nested jaxpr hides its lines and its nodes, and says how many."""
    page: Page = new_page(width=620)
    page.goto(write(tmp_path, "en", sample("jaxpr")))
    inside = page.locator(".saem-pane-text .saem-line[data-eqn='e0.0.1']")
    expect(inside).to_be_visible()
    page.locator(".saem-fold[data-fold='e0']").click()
    expect(inside).to_be_hidden()
    expect(page.locator(".saem-folded")).to_have_text("8 equations folded")
    expect(page.locator("g.saem-node[data-eqn]")).to_have_count(2)
    picture(page, "static-folded")
    page.keyboard.press("ArrowRight")
    expect(inside).to_be_visible()


def test_source_line_lights_its_equations(new_page, picture, static_files, tmp_path) -> None:
    """Pointing at a Python line lights the equations written by it, in text and graph."""
    page: Page = new_page()
    page.goto(write(tmp_path, "en", sample("jaxpr")))
    page.locator(".saem-pane-source .saem-line", has_text="jnp.tanh").hover()
    written = {"e0.0.0", "e0.0.1", "e0.0.2", "e0.0.3", "e0.0.6", "e0.0.7"}
    lit = page.locator(".saem-pane-text .saem-on").evaluate_all(
        "nodes => nodes.map(n => n.dataset.eqn)"
    )
    nodes = page.locator("g.saem-node.saem-on").evaluate_all(
        "nodes => nodes.map(n => n.dataset.eqn)"
    )
    assert set(lit) == set(nodes) == written
    picture(page, "static-linked")


def test_inside_a_sandboxed_frame(new_page, static_files, tmp_path) -> None:
    """The view works in an output frame that may run scripts and nothing else."""
    address = write(tmp_path, "ko", sample("history"))
    outer = tmp_path / "outer.html"
    outer.write_text(f'<iframe sandbox="allow-scripts" width="800" height="600" src="{address}">')
    page: Page = new_page()
    page.goto(outer.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("[data-record='1']").click()
    expect(frame.locator(".saem-says", has_text="첫 호출입니다")).to_be_visible()


def test_a_newer_model_says_what_to_do(new_page, static_files, tmp_path) -> None:
    """Data of another version is not misread: the page says what to update."""
    page: Page = new_page()
    page.goto(write(tmp_path, "en", {**sample("history"), "version": 999}))
    expect(page.locator(".saem-notice")).to_contain_text("999")
    expect(page.locator(".saem-notice")).to_contain_text("pip install -U saem")
