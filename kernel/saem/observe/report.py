"""How can the user find out what was compiled, and why?

``history()`` gives everything recorded, ``explain(f)`` the last time that ``f`` was traced.  Both
print as plain text in either language; ``saem.lens`` shows the same models with pictures.

Read before: ``saem.observe.recorder``.  Read after: ``saem.lens.display``.
Invariant: the text says what the model says and nothing else (tests/lens/test_recorder.py).
"""

from __future__ import annotations

import dataclasses
from typing import Any

from saem.observe import language
from saem.observe.language import Language, duration, quantity
from saem.observe.messages import NOT_RECORDED
from saem.observe.recorder import Recorder, recorder
from saem.observe.schema import (
    OPERATIONS,
    Cost,
    FunctionHistory,
    FunctionSummary,
    HistoryModel,
    KeyNode,
    KeysModel,
    KeyUse,
    Record,
)
from saem.observe.words import in_language, say

_COST_UNITS = {"flops": "FLOP"}
# So deep is a tree of keys indented: a key may come of thousands of splits, one after the other.
_MOST_INDENT = 12


class History:
    """A compile history as it was when asked for; prints as text.

    ``model`` is its JSON model; ``lang`` the language it prints in.
    """

    def __init__(self, model: HistoryModel, lang: Language) -> None:
        self.model = model
        self.lang = lang

    def __repr__(self) -> str:
        return history_text(self.model, self.lang)

    def __len__(self) -> int:
        return len(self.model.functions)


class Explanation(History):
    """The last time a function was traced, and why; prints as text."""

    def __repr__(self) -> str:
        rows = [record_text(r, self.lang) for f in self.model.functions for r in f.records]
        return "\n".join(rows) or say("empty", self.lang)


def history(function: Any = None, lang: str | None = None, of: Recorder = recorder) -> History:
    """What was traced and compiled so far: of all functions, or of ``function``.

    Raises: RuntimeError if nothing was ever recorded, because recording was not started.
    """
    chosen = language.checked(lang)
    model = of.snapshot(function)
    if not model.functions and not of.recording:
        raise RuntimeError(in_language(NOT_RECORDED, chosen))
    return History(model, chosen)


def explain(
    function: Any = None, lang: str | None = None, of: Recorder = recorder
) -> Explanation:
    """Why ``function`` (or, without one, whatever was traced last) was traced the last time.

    Raises: RuntimeError if nothing was ever recorded, because recording was not started.
    """
    whole = history(function, lang, of)
    traces = [FunctionHistory(row.summary, (record,), 0) for row in whole.model.functions
              for record in row.records if record.kind != "hit"]
    rows = tuple(sorted(traces, key=lambda row: row.records[0].id)[-1:])
    model = HistoryModel("history", whole.model.version, rows, whole.model.environment)
    return Explanation(model, whole.lang)


class Keys:
    """The family trees of PRNG keys as they were when asked for; prints as text."""

    def __init__(self, model: KeysModel, lang: Language) -> None:
        self.model = model
        self.lang = lang

    def __repr__(self) -> str:
        return keys_text(self.model, self.lang)

    def __len__(self) -> int:
        return len(self.model.keys)


def keys(lang: str | None = None, of: Recorder = recorder) -> Keys:
    """Which PRNG keys were made so far, of which, and which of them were used twice.

    Raises: RuntimeError if nothing was ever recorded, because recording was not started.
    """
    chosen = language.checked(lang)
    model = of.keys()
    if not model.keys and not of.recording:
        raise RuntimeError(in_language(NOT_RECORDED, chosen))
    return Keys(model, chosen)


def keys_text(model: KeysModel, lang: Language) -> str:
    """The trees as plain text: a line for each key, its uses below it."""
    if not model.keys:
        return say("key.none", lang)
    depth: dict[str, int] = {}
    children: dict[str | None, list[KeyNode]] = {}
    known = {node.id for node in model.keys}
    for node in model.keys:
        children.setdefault(node.parent if node.parent in known else None, []).append(node)
    lines: list[str] = []
    waiting = list(reversed(children.get(None, [])))
    while waiting:
        node = waiting.pop()
        depth[node.id] = depth.get(node.parent or "", -1) + 1
        indent = "   " * min(depth[node.id], _MOST_INDENT)
        deeper = f"({depth[node.id]}) " if depth[node.id] > _MOST_INDENT else ""
        lines.append(f"{indent}{deeper}{_key_text(node, lang)}")
        lines += [f"{indent}   {_use_text(use, lang)}" for use in node.uses]
        waiting += reversed(children.get(node.id, []))
    if model.dropped:
        lines.append(f"… {model.dropped} {say('dropped', lang)}")
    return "\n".join(lines)


def _key_text(node: KeyNode, lang: Language) -> str:
    words = " ".join(node.key[i : i + 8] for i in range(0, len(node.key), 8))
    which = f"[{node.number}]" if node.action == "split" else ""
    where = f" @ {in_language(node.place.label, lang)}" if node.place else ""
    return f"• {words}  {say(f'key.{node.action}', lang)}{which}{where}"


def _use_text(use: KeyUse, lang: Language) -> str:
    name = "divided" if use.action == "split" else "used"
    says = say("key.reused" if use.reused else f"key.{name}", lang)
    mark = f"! {says}" if use.reused else says
    where = f" @ {in_language(use.place.label, lang)}" if use.place else ""
    return f"{mark}{where}"


def history_text(model: HistoryModel, lang: Language) -> str:
    """The history as plain text, a paragraph for each function."""
    if not model.functions:
        return say("empty", lang)
    rows = [_row_text(row, lang) for row in model.functions]
    return "\n\n".join([*rows, *([f"… {model.dropped} {say('dropped.functions', lang)}"]
                                  if model.dropped else [])])


def _row_text(row: FunctionHistory, lang: Language) -> str:
    lines = [summary_text(row.summary, lang)]
    if row.dropped:
        lines.append(f"  … {row.dropped} {say('dropped', lang)}")
    for record in row.records:
        lines += [f"  {line}" for line in record_text(record, lang).splitlines()]
    return "\n".join(lines)


def summary_text(summary: FunctionSummary, lang: Language) -> str:
    """``step (cell 5, line 1): versions 2, traces 3, compiles 1, found 2, time 41 ms``."""
    where = f" ({in_language(summary.place.label, lang)})" if summary.place else ""
    counts = [
        f"{say(name, lang).lower()} {getattr(summary, name)}"
        for name in ("versions", "traces", "compiles", "found", "hits")
        if name in ("traces", "compiles") or getattr(summary, name) > (name == "versions")
    ]
    spent = f"{say('seconds', lang).lower()} {duration(summary.seconds)}"
    name = say("operations", lang) if summary.key == OPERATIONS else summary.name
    return f"{name}{where}: {', '.join([*counts, spent])}"


def record_text(record: Record, lang: Language) -> str:
    """One record: headline, then each reason with its advice, then what the program costs."""
    call = f"  [{record.signature}]" if record.signature else ""
    where = f" @ {in_language(record.caller.label, lang)}" if record.caller else ""
    lines = [f"• {in_language(record.headline, lang)}{call}{where}"]
    lines += [f"    {in_language(reason.says, lang)}" for reason in record.reasons]
    told = dict.fromkeys(in_language(reason.advice, lang) for reason in record.reasons)
    lines += [f"      → {advice}" for advice in told if advice]
    cost = cost_text(record.cost, lang) if record.kind == "compile" else ""
    return "\n".join([*lines, *([f"    {cost}"] if cost else [])])


def cost_text(cost: Cost | None, lang: Language) -> str:
    """``FLOPs 12, arguments 48 B, …``: what XLA estimates, leaving out what it does not say."""
    words = []
    for field in dataclasses.fields(Cost) if cost is not None else ():
        amount = getattr(cost, field.name)
        if amount is not None:
            shown = quantity(amount, _COST_UNITS.get(field.name, "B"))
            words.append(f"{say(f'cost.{field.name}', lang)} {shown}")
    return ", ".join(words)
