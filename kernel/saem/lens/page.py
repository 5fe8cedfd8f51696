"""How does a view work in a page that has no kernel and no network?

``page(model)`` is an HTML fragment: the model, compressed; a plain table or text for places where
no script may run; and a small loader.  The renderer that the extension builds
(``static/renderer.js``) is carried once per notebook, compressed too: ``carrier`` knows which cell
holds it, and the loader of every other output finds it there.  Where each output is a page of its
own (Colab), each carries it.

Read before: ``saem.observe.schema``.  Read after: ``saem.lens.display``.
Invariant: text from a program is escaped everywhere, and nothing is loaded from anywhere
(tests/lens/test_page.py).
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import pathlib
import sys

from saem.observe.language import Language
from saem.observe.markup import code_spans, escaped
from saem.observe.places import Places, places
from saem.observe.report import cost_text, summary_text
from saem.observe.schema import ErrorModel, FunctionHistory, HistoryModel, Model, Record, Text
from saem.observe.texts import text_of
from saem.observe.typed_json import dumps
from saem.observe.words import in_language, say

STATIC = pathlib.Path(__file__).parent / "static"
_NOT_BUILT = Text(
    "The interactive view is not built; `make extension` builds it.",
    "상호작용하는 화면이 빌드되어 있지 않습니다. `make extension`으로 빌드할 수 있습니다.",
)
# So much is seen without scripts: records of a history, and bytes of a text. Whoever runs
# scripts sees all; a notebook that is saved stays small.
_MARKS = 12
_TEXT = 8000
_PRE = "white-space:pre-wrap;font-family:monospace;line-height:1.4"
_CELL = "text-align:left;vertical-align:top;padding:0.2em 0.6em"
# Unpacks the model beside it and shows it, as soon as some output on the page brings the renderer.
_LOADER = """(async home => {
const unpack = node => new Response(new Blob([Uint8Array.from(atob(node.textContent),
 c => c.charCodeAt(0))]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
const key = "saem-DIGEST", all = 'script.saem-renderer[data-digest="DIGEST"]';
const renderer = () => {
 const node = document.querySelector(all);
 if (node) window[key] ??= unpack(node).then(code => {
  const script = document.createElement("script");
  script.textContent = code;
  document.head.append(script);
  return window.saemShow;
 });
 return window[key];
};
const homes = home ? [home] : [...document.querySelectorAll(".saem-static:not([data-shown])")];
for (const one of homes) one.setAttribute("data-shown", "");
const found = renderer() ?? await new Promise(done => {
 const watch = new MutationObserver(() => {
  if (renderer()) { watch.disconnect(); done(window[key]); }
 });
 watch.observe(document, { childList: true, subtree: true });
});
const show = await found;
for (const one of homes) show(one, await unpack(one.querySelector("script.saem-data")));
})(document.currentScript?.parentElement).catch(error => console.warn("saem:", error));"""


# A page of its own is as dark as the reader's system, around the view too.
_GROUND = ":root { color-scheme: light dark; background: light-dark(#fff, #14191c); }"


@functools.cache
def bundle(name: str) -> str | None:
    """A built file of the extension, as text; None if it was not built."""
    path = STATIC / name
    return path.read_text(encoding="utf-8") if path.is_file() else None


def packed(text: str) -> str:
    """The text compressed and in base64, which no HTML can be in."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


@functools.cache
def packed_renderer(code: str) -> tuple[str, str]:
    """The renderer as a page carries it, and the digest by which loaders find it."""
    return packed(code), hashlib.sha256(code.encode()).hexdigest()[:12]


class Carrier:
    """Which cell's output holds the renderer for the other outputs of a notebook."""

    def __init__(self, named: Places = places) -> None:
        self._places = named
        self._cell: str | None = None
        self._held = False

    def began(self, cell: str | None) -> None:
        """A cell begins to run: what it showed before goes away, and with it what it carried."""
        if cell is not None and cell == self._cell:
            self._held = False

    def forget(self) -> None:
        """Let the next output carry the renderer."""
        self._held = False

    def takes(self) -> bool:
        """Whether the output being made must carry the renderer; if so, it does from now on."""
        if "google.colab" in sys.modules:  # each output is a frame of its own
            return True
        if self._held:
            return False
        self._cell, self._held = self._places.current(), True
        return True


carrier = Carrier()


def page(model: Model, lang: Language, carry: bool = True) -> str:
    """An HTML fragment that shows the model, with or without scripts.

    Unless it is to ``carry`` the renderer, it is shown by the one that another output carries.
    """
    code = bundle("renderer.js")
    shown = [f'<div class="saem-static" data-locale="{lang}" lang="{lang}">']
    shown.append(f'<div class="saem-fallback">{fallback(model, lang)}')
    if code is None:
        shown.append(f"<p><small>{code_spans(in_language(_NOT_BUILT, lang))}</small></p>")
    shown.append("</div>")
    shown.append(f'<script type="application/gzip" class="saem-data">{packed(dumps(model))}'
                 "</script>")
    if code is not None:
        renderer, digest = packed_renderer(code)
        if carry:
            shown.append('<script type="application/gzip" class="saem-renderer" '
                         f'data-digest="{digest}">{renderer}</script>')
        shown.append(f"<script>{_LOADER.replace('DIGEST', digest)}</script>")
    return "".join([*shown, "</div>"])


def document(model: Model, lang: Language, title: str) -> str:
    """The same as a whole HTML document, to be opened from a file."""
    return (
        f'<!DOCTYPE html><html lang="{lang}"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title><style>{_GROUND}</style></head>"
        f"<body>{page(model, lang)}</body></html>\n"
    )


# ---- without scripts ----------------------------------------------------------------------------


def fallback(model: Model, lang: Language) -> str:
    """The model as plain HTML: a history as a table, an error as a card, all else as text."""
    if isinstance(model, ErrorModel):
        return _error(model, lang)
    if not isinstance(model, HistoryModel):
        return f'<pre style="{_PRE}">{escaped(_beginning(text_of(model, lang)))}</pre>'
    if not model.functions:
        return f"<p>{escaped(say('empty', lang))}</p>"
    heads = "".join(
        f'<th scope="col" style="{_CELL}">{escaped(say(name, lang))}</th>'
        for name in ("call", "what", "why", "advice", "cost")
    )
    newest = model.functions[-_MARKS:]
    each = _MARKS // len(newest)
    left = sum(len(row.records) for row in model.functions[:-_MARKS])
    rows = _older(left, lang) + "".join(_function(row, each, lang) for row in newest)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _beginning(text: str) -> str:
    """The first lines of a long text, and how many follow."""
    begun = text.encode()[:_TEXT].decode(errors="ignore")
    if begun == text:
        return text
    cut = begun.rfind("\n")
    cut = len(begun) if cut < 0 else cut
    return f"{text[:cut]}\n… (+{text.count(chr(10), cut + 1) + 1})"


def _error(model: ErrorModel, lang: Language) -> str:
    got = " ".join(f"<code>{escaped(text)}</code>" for text in model.got)
    mends = "".join(f"<li>{code_spans(in_language(mend, lang))}</li>" for mend in model.mends)
    path = " → ".join(escaped(step.name) for step in model.path)
    return (
        f"<p><b>{code_spans(in_language(model.title, lang))}</b></p>"
        f"<p>{code_spans(in_language(model.needed, lang))} {got}</p>"
        + (f"<p><code>{path}</code></p>" if path else "")
        + f"<p>{escaped(say('error.mends', lang))}</p><ol>{mends}</ol>"
        f"<p>{escaped(in_language(model.lesson.label, lang))} ({escaped(model.lesson.file)})</p>"
    )


def _older(count: int, lang: Language) -> str:
    """A row of the table for records that are not in it."""
    if count <= 0:
        return ""
    told = say("older", lang, n=count)
    return f'<tr><td colspan="5" style="{_CELL}">{told}</td></tr>'


def _function(row: FunctionHistory, marks: int, lang: Language) -> str:
    title = escaped(summary_text(row.summary, lang))
    head = f'<tr><th scope="rowgroup" colspan="5" style="{_CELL}">{title}</th></tr>'
    more = _older(len(row.records) - marks, lang)
    return head + more + "".join(_record(record, lang) for record in row.records[-marks:])


def _record(record: Record, lang: Language) -> str:
    where = in_language(record.caller.label, lang) if record.caller else ""
    call = f"<code>{escaped(record.signature)}</code> {escaped(where)}"
    says = "<br>".join(code_spans(in_language(reason.says, lang)) for reason in record.reasons)
    told = dict.fromkeys(in_language(reason.advice, lang) for reason in record.reasons)
    advice = "<br>".join(code_spans(text) for text in told if text)
    cost = escaped(cost_text(record.cost, lang)) if record.kind == "compile" else ""
    cells = (call, code_spans(in_language(record.headline, lang)), says, advice, cost)
    shown = "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells)
    return f"<tr>{shown}</tr>"
