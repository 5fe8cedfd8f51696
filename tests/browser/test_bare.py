"""Do the views work where there is no JupyterLab: with a widget manager alone, and with none?

Colab and VS Code show anywidgets by a manager of their own and put each HTML output in a frame of
its own.  Neither can run here.  In their place stands a page with the Jupyter widgets' HTML manager
and a real kernel (``extension/test/bare.ts``), and frames that may run scripts and nothing else.

Read before: ``jupyter.py``, ``extension/src/shells``.  Read after: nothing.
Invariant: the page has none of our extension; it asks nothing outside this machine.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterator

import pytest
from jupyter import Lab
from playwright.sync_api import FrameLocator, Page, expect

EXTENSION = pathlib.Path(__file__).parents[2] / "extension"
ANYWIDGET = pathlib.Path(sysconfig.get_path("data")) / "share/jupyter/nbextensions/anywidget"
START = """
import saem as jax, saem.numpy as jnp, saem.lens as lens
from saem.lens.widget import JaxprWidget
from saem.observe import language, recorder
language.choose({language!r})
recorder.start()
def loss(w, x):
    h = x
    for i in range(2):
        h = jnp.tanh(w * h)
    return jnp.sum(h)
"""


@pytest.fixture(scope="session")
def bare_script() -> pathlib.Path:
    """The page's script, built from ``extension/test/bare.ts``."""
    node = shutil.which("node")
    if node is None or not (EXTENSION / "node_modules/@jupyter-widgets/html-manager").is_dir():
        pytest.skip("the widgets' manager is not installed: run `npm ci` in extension")
    subprocess.run([node, "scripts/build-bare.mjs"], cwd=EXTENSION, check=True, timeout=120)
    return EXTENSION / "build/bare.js"


@pytest.fixture
def bare(labs: Callable[[str], Lab], new_page, bare_script) -> Iterator[Callable[..., Page]]:
    """Opens the page beside a server that runs kernels."""
    lab = labs("en")

    def open_page(language: str, scheme: str = "light", width: int = 1180) -> Page:
        page: Page = new_page(f"{language}-{language.upper()}", scheme, width)
        html = ('<!doctype html><meta charset="utf-8"><title>bare</title>'
                "<style>:root{color-scheme:light dark}body{margin:20px}</style>")
        page.route(f"{lab.address}/bare.html", lambda route: route.fulfill(
            body=html, content_type="text/html"))
        page.route(f"{lab.address}/anywidget.js", lambda route: route.fulfill(
            path=ANYWIDGET / "index.js", content_type="text/javascript"))
        page.goto(f"{lab.address}/bare.html")
        page.add_script_tag(path=bare_script)
        page.evaluate("([a, t, m]) => bare.start(a, t, m)",
                      [lab.address, lab.token, f"{lab.address}/anywidget.js"])
        run(page, START.format(language=language))
        return page

    yield open_page
    lab.close_all()


def run(page: Page, code: str) -> list[str]:
    """Run code in the page's kernel."""
    said: list[str] = page.evaluate("code => bare.run(code)", code)
    assert not any("Error: " in text for text in said), said
    return said


@pytest.mark.parametrize(("language", "scheme"), [("en", "light"), ("ko", "dark")])
def test_widgets_by_a_manager_alone(language, scheme, bare, picture) -> None:
    """A jaxpr folds and searches, a bench answers to its chips, a history grows."""
    page: Page = bare(language, scheme)
    run(page, "display(JaxprWidget(jax.make_jaxpr(jax.jit(jax.grad(loss)))(2., jnp.ones(3))))")
    jaxpr = page.locator(".saem-jaxpr")
    expect(jaxpr.locator("g.saem-node")).not_to_have_count(0)
    jaxpr.locator(".saem-search").fill("tanh")
    expect(jaxpr.locator(".saem-hit-now")).to_have_count(1)
    inside = jaxpr.locator(".saem-pane-text .saem-line", has_text="tanh").first
    expect(inside).to_be_visible()
    jaxpr.locator(".saem-fold").first.click()
    expect(inside).to_be_hidden()
    picture(page, f"bare-jaxpr-{language}")
    run(page, "display(lens.live())")
    history = page.locator(".saem-history")
    run(page, "step = jax.jit(loss)\nfor n in (3, 4): step(2., jnp.ones(n))")
    mark = history.locator(".saem-row", has_text="loss").locator(".saem-mark")
    expect(mark).to_have_count(3)  # the first is the trace of make_jaxpr
    mark.last.click()
    says = {"en": "argument x: f32[3] → f32[4]", "ko": "인자 x: f32[3] → f32[4]"}[language]
    expect(history.locator(".saem-detail .saem-says")).to_contain_text(says)
    run(page, "display(lens.bench(loss, 'grad')(jnp.ones((2, 3)), jnp.ones((2, 3))))")
    bench = page.locator(".saem-bench")
    expect(bench.locator(".saem-stage")).to_have_count(1)
    bench.get_by_role("button", name="+ vmap", exact=True).click()
    expect(bench.locator(".saem-stage")).to_have_count(2, timeout=15_000)
    expect(bench.locator("th").last).to_have_text("vmap(grad(loss))")
    picture(page, f"bare-widgets-{language}")
    page.evaluate("() => bare.end()")


VIEWS = """
import sys, types
from IPython.display import HTML
from saem.lens.page import page
google = types.ModuleType("google"); google.colab = types.ModuleType("google.colab")
sys.modules["google.colab"] = google.colab
shown = lens.jaxpr(jax.jit(jax.grad(loss)))(2., jnp.ones(3)), lens.tracers(loss)(2., jnp.ones(3))
for view in shown:
    from saem.lens.page import carrier
    display(HTML(page(view.model, view.lang, carry=carrier.takes())))
"""


@pytest.mark.parametrize(("language", "scheme"), [("en", "dark"), ("ko", "light")])
def test_each_output_in_a_frame_of_its_own(language, scheme, bare, picture) -> None:
    """Without a widget manager each output brings all it needs: it folds, links and searches."""
    page: Page = bare(language, scheme)
    run(page, VIEWS)
    frames = page.locator("iframe[sandbox='allow-scripts']")
    expect(frames).to_have_count(2)
    first: FrameLocator = page.frame_locator("iframe >> nth=0")
    expect(first.locator(".saem-fallback")).to_be_hidden()
    line = first.locator(".saem-pane-text .saem-line", has_text="tanh").first
    line.hover()
    expect(first.locator("g.saem-node.saem-on")).to_have_count(1)
    expect(first.locator(".saem-pane-source .saem-on")).to_contain_text("jnp.tanh(w * h)")
    line.click()
    frame = first.locator(".saem-frames li").first
    expect(frame).to_contain_text("jax.grad(loss)")
    first.locator(".saem-search").fill("tanh")
    expect(first.locator(".saem-hit-now")).to_have_count(1)
    picture(page, f"bare-frames-{language}")
    first.locator(".saem-fold").first.click()
    expect(line).to_be_hidden()
    second: FrameLocator = page.frame_locator("iframe >> nth=1")
    expect(second.locator(".saem-unrolled")).to_be_visible()
    page.evaluate("() => bare.end()")
