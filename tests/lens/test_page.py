"""Static pages: hostile names and values are shown and never run, nothing is loaded."""

from __future__ import annotations

import html.parser
import json

import made
import pytest

from saem.core.events import Bus
from saem.lens import page as page_module
from saem.lens.page import code_spans, data_script, document, inline_script, page
from saem.observe.places import Places
from saem.observe.recorder import Recorder
from saem.observe.typed_json import to_json

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]></div></table>--><svg/onload=alert(1)>",
    "`</code><b>`",
    "\u2028\u2029'\"&amp;",
]


class Reader(html.parser.HTMLParser):
    """Collects elements, attributes and the data of JSON scripts as a browser would."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.data = [], [], []
        self.inside_data = False

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.inside_data = tag == "script" and ("type", "application/json") in attrs

    def handle_data(self, data):
        if self.inside_data:
            self.data.append(data)
            self.inside_data = False


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
                                      "colspan"}
    assert reader.tags.count("script") == (1 if renderer is None else 2)
    assert json.loads("".join(reader.data)) == to_json(model)


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


@pytest.mark.parametrize("code", ["'</script>'", "'</SCRIPT >'", "'<!--'"])
def test_a_script_cannot_be_ended_by_its_strings(code):
    shown = inline_script(code)
    assert shown.lower().count("</script") == 1
    assert "<!--" not in shown


def test_data_cannot_end_its_element():
    shown = data_script(hostile_history("</script><!--"))
    assert shown.count("<") == 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a `b` c", "a <code>b</code> c"), ("a ` c", "a ` c"),
     ("`<b>`", "<code>&lt;b&gt;</code>")],
)
def test_code_spans(text, shown):
    assert code_spans(text) == shown
