"""How does each view read as plain text?

Read before: ``saem.observe.schema``.  Read after: ``saem.lens.page``, ``saem.lens.views``.
Invariant: every model has a text in both languages (tests/lens/test_views.py).
"""

from __future__ import annotations

import functools

from saem.observe import xray
from saem.observe.language import Language, duration, quantity
from saem.observe.report import cost_text, history_text, keys_text
from saem.observe.schema import (
    AutodiffModel,
    BenchModel,
    CompiledModel,
    DevicesModel,
    ErrorModel,
    GatesModel,
    HistoryModel,
    JaxprModel,
    KeysModel,
    Model,
    Picture,
    Residual,
    StepsModel,
    TracersModel,
)
from saem.observe.words import WORDS, in_language, plain, say


@functools.singledispatch
def text_of(model: Model, lang: Language) -> str:
    """The model as plain text."""
    raise TypeError(f"text_of: no text for {type(model).__name__}")


@text_of.register
def _(model: JaxprModel, lang: Language) -> str:
    return "\n".join(" " * line.indent + "".join(t.text for t in line.tokens)
                     for line in model.lines)


@text_of.register
def _(model: HistoryModel, lang: Language) -> str:
    return history_text(model, lang)


@text_of.register
def _(model: KeysModel, lang: Language) -> str:
    return keys_text(model, lang)


@text_of.register
def _(model: TracersModel, lang: Language) -> str:
    return xray.text(model, lang) or plain(WORDS["xray.none"], lang)


@text_of.register
def _(model: StepsModel, lang: Language) -> str:
    lines = [_numbers(picture) for picture in model.inputs]
    for step in model.steps:
        born = f"  ! {say('steps.born', lang)}" if step.equation in model.born else ""
        lines += [f"{step.equation}: {_numbers(picture)}{born}" for picture in step.outputs]
    return "\n".join(lines)


def _numbers(picture: Picture) -> str:
    ill = "".join(f", {name} {count}" for name, count in (("NaN", picture.nans),
                                                          ("Inf", picture.infs)) if count)
    return f"{picture.name}:{picture.type} = {picture.text}{ill}"


@text_of.register
def _(model: AutodiffModel, lang: Language) -> str:
    kept = _residuals(model.saved, lang)
    total = say("autodiff.total", lang, bytes=quantity(model.bytes, "B"))
    return "\n".join([text_of(model.jaxpr, lang), total, *kept])


def _residuals(saved: tuple[Residual, ...], lang: Language) -> list[str]:
    return [f"  {r.name}:{r.type} {quantity(r.bytes, 'B')} ← {r.maker or '·'} → "
            f"{', '.join(r.readers)}" for r in saved]


@text_of.register
def _(model: BenchModel, lang: Language) -> str:
    blocks = []
    for stage in model.stages:
        if stage.error is not None:
            blocks.append(f"{stage.label}\n{in_language(stage.error, lang)}")
        elif stage.jaxpr is not None:
            total = say("autodiff.total", lang, bytes=quantity(stage.bytes, "B"))
            tail = [total] if stage.saved else []
            blocks.append("\n".join([stage.label, text_of(stage.jaxpr, lang), *tail]))
    return "\n\n".join(blocks)


@text_of.register
def _(model: CompiledModel, lang: Language) -> str:
    lines = [cost_text(model.cost, lang)]
    if model.seconds is not None:
        lines.append(f"{say('seconds.compile', lang)} {duration(model.seconds)}")
    if model.devices > 1:
        lines.append(say("compiled.devices", lang, n=model.devices))
    lines += [f"{k.share:4.0%}  {k.name} = {k.kind}({', '.join(k.operations)}) {k.type} "
              f"{quantity(k.bytes, 'B')} ← {', '.join(k.equations)}"
              for k in model.jaxpr.kernels or ()]
    return "\n".join(lines)


@text_of.register
def _(model: DevicesModel, lang: Language) -> str:
    lines = [f"{d.description}" for d in model.devices]
    lines += [f"{a.name}: {a.type} {quantity(a.bytes, 'B')} {a.sharding} "
              f"{sorted({d for s in a.shards for d in s.devices})}"
              + (f" {say('devices.committed', lang)}" if a.committed else "")
              for a in model.arrays]
    if model.moved:
        lines.append(f"{say('devices.moved', lang)}:")
        lines += [f"  {m.source} → {m.target}: ×{m.count}, {quantity(m.bytes, 'B')}"
                  for m in model.moved]
    if model.donated:
        lines.append(f"{say('devices.donated', lang)}:")
        lines += [f"  {d.function}({d.path}): ×{d.count}, {quantity(d.bytes, 'B')}"
                  for d in model.donated]
    return "\n".join(lines)


@text_of.register
def _(model: ErrorModel, lang: Language) -> str:
    lines = [f"{model.name}: {plain(model.title, lang)}", f"  {plain(model.needed, lang)}"]
    lines += [f"  {got}" for got in model.got]
    if model.path:
        lines.append("  " + " → ".join(step.name for step in model.path))
    lines += [f"  {number}. {plain(mend, lang)}" for number, mend in enumerate(model.mends, 1)]
    lines.append(f"  {plain(model.lesson.label, lang)} ({model.lesson.file})")
    return "\n".join(lines)


@text_of.register
def _(model: GatesModel, lang: Language) -> str:
    return "\n".join(
        f"{row.notebook}  {row.gate}  {say(f'gates.{row.state}', lang)}  "
        f"{row.guess} / {row.truth}" for row in model.rows)
