"""How does a view live in a page that has no kernel and no network?

``page(model)`` is an HTML fragment that holds all it needs: the model as JSON, the renderer that
the extension builds (``static/renderer.js``), and, for places where no script may run, a plain
table or text made here.  GitHub, nbconvert and a file opened from disk all show one of the two.

Read before: ``saem.observe.schema``.  Read after: ``saem.lens.display``.
Invariant: text from a program is escaped wherever it stands, and nothing is loaded from anywhere
(tests/lens/test_page.py).
"""

from __future__ import annotations

import functools
import html
import pathlib
import re

from saem.observe.language import Language
from saem.observe.messages import LABELS
from saem.observe.report import cost_text, summary_text
from saem.observe.schema import FunctionHistory, HistoryModel, JaxprModel, Record, Text
from saem.observe.typed_json import dumps

STATIC = pathlib.Path(__file__).parent / "static"
_NOT_BUILT = Text(
    "The interactive view is not built; `make extension` builds it.",
    "상호작용하는 화면이 빌드되어 있지 않습니다. `make extension`으로 빌드할 수 있습니다.",
)
_PRE = "white-space:pre-wrap;font-family:monospace;line-height:1.4"
_CELL = "text-align:left;vertical-align:top;padding:0.2em 0.6em"


@functools.cache
def bundle(name: str) -> str | None:
    """A built file of the extension, as text; None if it was not built."""
    path = STATIC / name
    return path.read_text(encoding="utf-8") if path.is_file() else None


def data_script(model: HistoryModel | JaxprModel) -> str:
    """The model as an inert script element that no text in it can end."""
    text = dumps(model)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json">{text}</script>'


def inline_script(code: str) -> str:
    """JavaScript as a script element; its strings may not end the element."""
    code = re.sub(r"</(?=script)", r"<\\/", code, flags=re.IGNORECASE)
    code = code.replace("<!--", r"<\!--")
    return f"<script>{code}</script>"


def page(model: HistoryModel | JaxprModel, lang: Language) -> str:
    """A self-contained HTML fragment that shows the model, with or without scripts."""
    renderer = bundle("renderer.js")
    shown = [f'<div class="saem-static" data-locale="{lang}" lang="{lang}">']
    shown.append(f'<div class="saem-fallback">{fallback(model, lang)}')
    if renderer is None:
        shown.append(f"<p><small>{code_spans(_pick(_NOT_BUILT, lang))}</small></p>")
    shown.append("</div>")
    shown.append(data_script(model))
    if renderer is not None:
        shown.append(inline_script(renderer))
    return "".join([*shown, "</div>"])


def document(model: HistoryModel | JaxprModel, lang: Language, title: str) -> str:
    """The same as a whole HTML document, to be opened from a file."""
    return (
        f'<!DOCTYPE html><html lang="{lang}"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title></head><body>{page(model, lang)}</body></html>\n"
    )


# ---- without scripts ----------------------------------------------------------------------------


def fallback(model: HistoryModel | JaxprModel, lang: Language) -> str:
    """The model as plain HTML: a jaxpr as text, a history as a table."""
    if isinstance(model, JaxprModel):
        return _jaxpr(model)
    if not model.functions:
        return f"<p>{html.escape(_label('empty', lang))}</p>"
    heads = "".join(
        f'<th scope="col" style="{_CELL}">{html.escape(_label(name, lang))}</th>'
        for name in ("call", "what", "why", "advice", "cost")
    )
    rows = "".join(_function(row, lang) for row in model.functions)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _jaxpr(model: JaxprModel) -> str:
    lines = (" " * line.indent + "".join(t.text for t in line.tokens) for line in model.lines)
    return f'<pre style="{_PRE}">{html.escape(chr(10).join(lines))}</pre>'


def _function(row: FunctionHistory, lang: Language) -> str:
    title = html.escape(summary_text(row.summary, lang))
    head = f'<tr><th scope="rowgroup" colspan="5" style="{_CELL}">{title}</th></tr>'
    return head + "".join(_record(record, lang) for record in row.records)


def _record(record: Record, lang: Language) -> str:
    where = _pick(record.caller.label, lang) if record.caller else ""
    call = f"<code>{html.escape(record.signature)}</code> {html.escape(where)}"
    says = "<br>".join(code_spans(_pick(reason.says, lang)) for reason in record.reasons)
    told = dict.fromkeys(_pick(reason.advice, lang) for reason in record.reasons)
    advice = "<br>".join(code_spans(text) for text in told if text)
    cost = html.escape(cost_text(record.cost, lang)) if record.kind == "compile" else ""
    cells = (call, code_spans(_pick(record.headline, lang)), says, advice, cost)
    shown = "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells)
    return f"<tr>{shown}</tr>"


def code_spans(text: str) -> str:
    """Escaped HTML in which words between backticks are code."""
    pieces = html.escape(text).split("`")
    if len(pieces) % 2 == 0:
        return "`".join(pieces)
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))


def _pick(text: Text, lang: Language) -> str:
    return text.ko if lang == "ko" else text.en


def _label(name: str, lang: Language) -> str:
    return _pick(LABELS[name], lang)
