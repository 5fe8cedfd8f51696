"""Do the views work where there is no widget manager, each output in a frame of its own?

Colab puts each HTML output in a frame of its own.  In its place stands a page with a real kernel
(``extension/test/bare.ts``) and frames that may run scripts and nothing else.  What the widgets do
by a manager alone is in ``test_journeys.py``.

Read before: ``bare.py``, ``extension/src/shells``.  Read after: nothing.
Invariant: the page has none of our extension; it asks nothing outside this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import bare
import pytest
from jupyter import Lab
from playwright.sync_api import FrameLocator, Page, expect

START = """
import saem as jax, saem.numpy as jnp, saem.lens as lens
from saem.observe import language, recorder
language.choose({language!r})
recorder.start()
def loss(w, x):
    h = x
    for i in range(2):
        h = jnp.tanh(w * h)
    return jnp.sum(h)
"""


@pytest.fixture
def bare_page(labs: Callable[[str], Lab], new_page) -> Iterator[Callable[..., Page]]:
    """Opens the page beside a server that runs kernels."""
    lab = labs("en")

    def open_page(language: str, scheme: str = "light", width: int = 1180) -> Page:
        page: Page = new_page(f"{language}-{language.upper()}", scheme, width)
        bare.start(page, lab)
        bare.run(page, START.format(language=language))
        return page

    yield open_page
    lab.close_all()


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
def test_each_output_in_a_frame_of_its_own(language, scheme, bare_page, picture) -> None:
    """Without a widget manager each output brings all it needs: it folds, links and searches."""
    page: Page = bare_page(language, scheme)
    bare.run(page, VIEWS)
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
