"""Static pages: hostile names and values are shown and never run, nothing is loaded."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import html.parser
import json
import re
import sys

import made
import pytest

import saem as jax
import saem.numpy as jnp
from saem.core.events import Bus
from saem.lens import page as page_module
from saem.lens.page import Carrier, document, packed, page
from saem.observe.jaxpr_model import jaxpr_model
from saem.observe.markup import code_spans
from saem.observe.places import Places
from saem.observe.recorder import Recorder
from saem.observe.typed_json import dumps, to_json

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]></div></table>--><svg/onload=alert(1)>",
    "`</code><b>`",
    "\u2028\u2029'\"&amp;",
    "\u202egnp.exe\u2066",
]


class Reader(html.parser.HTMLParser):
    """Collects elements, attributes and the packed model as a browser would."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.data = [], [], []
        self.inside_data = False

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.inside_data = tag == "script" and ("class", "saem-data") in attrs

    def handle_data(self, data):
        if self.inside_data:
            self.data.append(data)
            self.inside_data = False

    def model(self):
        return json.loads(gzip.decompress(base64.b64decode("".join(self.data), validate=True)))


def hostile_history(text):
    bus, recorder = Bus(), Recorder(named=Places())
    recorder.start(bus)
    fun = made.function(text, file=text)
    for value in (1, 2):
        static = (made.dataclasses.replace(made.static(text, value), value=text * value),)
        made.whole_call(bus, fun, made.signature(made.argument(text), static=static))
    assert bus.failures == []
    return recorder.snapshot()


@pytest.fixture(params=["with the renderer", "without"])
def renderer(request, monkeypatch):
    script = "/* renderer */" if request.param == "with the renderer" else None
    monkeypatch.setattr(page_module, "bundle", lambda name: script)
    return script


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_adds_no_element(text, renderer):
    model = hostile_history(text)
    reader = Reader()
    reader.feed(page(model, "en"))
    assert set(reader.tags) <= {
        "div", "table", "thead", "tbody", "tr", "th", "td", "code", "br", "script", "p", "small"}
    assert set(reader.attributes) <= {"class", "data-locale", "lang", "type", "style", "scope",
                                      "colspan", "data-digest"}
    assert reader.tags.count("script") == (1 if renderer is None else 3)
    assert reader.model() == to_json(model)


def test_the_page_works_without_the_bundle_and_says_how_to_build_it(monkeypatch):
    monkeypatch.setattr(page_module, "bundle", lambda name: None)
    shown = page(hostile_history("x"), "ko")
    assert "make extension" in shown
    assert "인자 <code>" in shown or "정적 인자 <code>x</code>" in shown


def test_a_document_loads_nothing():
    shown = document(hostile_history("x"), "en", "<title>")
    assert "&lt;title&gt;" in shown
    for loading in ("src=", "<link", "@import", "url(http", "import("):
        assert loading not in shown.split("<script>")[0]


@pytest.mark.parametrize("text", ["</script>", "</SCRIPT >", "<!--"])
def test_every_script_ends_where_it_should(text):
    shown = page(hostile_history(text), "en").lower()
    assert shown.count("</script") == shown.count("<script")
    assert "<!--" not in shown


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_an_output_costs_little_beyond_its_model(lang):
    """The renderer is carried by one output; another has a loader and the model, compressed."""
    if page_module.bundle("renderer.js") is None:
        pytest.skip("the extension is not built")
    model = hostile_history("x")
    alone = page(model, lang, carry=False)
    assert len(alone) - len(dumps(model)) < 15_000
    assert "saem-renderer" not in alone.split("<script>")[0]
    digest = re.search('data-digest="(\\w+)"', page(model, lang)).group(1)
    assert digest in alone


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_a_long_program_costs_little_beyond_its_model_too(lang):
    def long(x):
        for _ in range(600):
            x = jnp.sin(x) + 1
        return x

    model = jaxpr_model(jax.make_jaxpr(long)(jnp.ones(3)))
    html = page(model, lang, carry=False)
    assert len(html.encode()) - len(packed(dumps(model))) <= 15_000
    assert re.search(r"… \(\+\d{3,}\)</pre>", html)


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_a_long_history_costs_little_beyond_its_model_too(lang):
    history = hostile_history("name")
    (row, *_) = history.functions
    rows = tuple(dataclasses.replace(row, records=row.records[:1] * 50) for _ in range(40))
    model = dataclasses.replace(history, functions=rows)
    html = page(model, lang, carry=False)
    assert len(html.encode()) - len(packed(dumps(model))) <= 15_000
    assert {"en": "1400 older marks", "ko": "이전 표시 1400개"}[lang] in html


def test_the_renderer_is_carried_once_and_again_when_its_cell_runs_again():
    named = Places()
    carrier = Carrier(named)
    named.announce("a", 1, "one")
    assert carrier.takes()
    named.announce("b", 2, "two")
    carrier.began(named.current())
    assert not carrier.takes()
    named.announce("c", 3, "one")
    carrier.began(named.current())
    assert carrier.takes()
    assert not carrier.takes()


def test_in_colab_each_output_carries_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", sys)
    carrier = Carrier(Places())
    assert carrier.takes()
    assert carrier.takes()


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a `b` c", "a <code>b</code> c"), ("a ` c", "a ` c"),
     ("`<b>`", "<code>&lt;b&gt;</code>")],
)
def test_code_spans(text, shown):
    assert code_spans(text) == shown


def test_marks_of_direction_are_shown_by_their_codes():
    shown = page_module.fallback(hostile_history("step\u202e"), "en")
    assert "step⟨U+202E⟩" in shown
    assert "\u202e" not in shown
