"""What does a gate look like where a learner can click it?

An ipywidgets box: the question, radio buttons or a text field, a button that commits, a verdict.
The classes ``saem-gate``, ``saem-gate-option``, ``saem-gate-commit`` and ``saem-gate-verdict`` are
what browser tests hold on to.

Read before: ``saem.lesson.render``.  Read after: nothing.
Invariant: the widgets only report to the gate and draw it; they keep no state of their own.
"""

from __future__ import annotations

from typing import Any

import ipywidgets
from IPython.display import HTML, display

from saem.lesson.gates import Choice, Gate, Number, Shape
from saem.lesson.render import STYLE, code, heading, shape_html, verdict_html
from saem.lesson.words import say


def box(gate: Gate) -> ipywidgets.VBox:
    """The widget for ``gate``: heading, options, commit button, verdict, in this order."""
    head = ipywidgets.HTML(f"<style>{STYLE}</style>{heading(gate)}")
    options = _options(gate)
    options.add_class("saem-gate-option")
    commit = ipywidgets.Button(
        description=say("commit"),
        button_style="primary",
        layout={"width": "max-content", "align_self": "flex-start"},
    )
    commit.add_class("saem-gate-commit")
    again = ipywidgets.Button(description=say("reset"), layout={"width": "max-content"})
    again.add_class("saem-gate-reset")
    drawn = ipywidgets.HTML()
    verdict = ipywidgets.HTML()

    def draw(gate: Gate) -> None:
        options.disabled = commit.disabled = gate.guess is not None
        again.layout.display = None if gate.guess is not None else "none"
        # Before a guess the box must not give the result away: the judged cell folds it.
        verdict.value = verdict_html(gate) if gate.guess is not None else ""

    def press(_: ipywidgets.Button) -> None:
        if options.value is None or str(options.value).strip() == "":
            verdict.value = f"<div>{code(say('empty'))}</div>"
            return
        try:
            gate.answer(options.value)
        except ValueError:
            key = {Number: "not_a_number", Shape: "not_a_shape"}.get(type(gate.kind), "empty")
            verdict.value = f"<div>{code(say(key))}</div>"

    def sketch(_: object) -> None:
        try:
            sizes: Any = gate.kind.read(options.value)
            drawn.value = shape_html(sizes)
        except ValueError:
            drawn.value = ""

    if isinstance(gate.kind, Shape):
        options.observe(sketch, names="value")
    commit.on_click(press)
    again.on_click(lambda _: gate.reset())
    gate.changed.append(draw)
    draw(gate)
    outer = ipywidgets.VBox([head, options, commit, verdict, drawn, again])
    outer.add_class("saem-gate")
    return outer


def show(gate: Gate) -> None:
    """Display the gate below the current cell, and the guess as what is saved with the notebook."""
    display(box(gate))
    kept = display(HTML(""), display_id=True)

    def keep(gate: Gate) -> None:
        if kept is not None:
            kept.update(HTML(f'<div hidden>{verdict_html(gate)}</div>' if gate.guess else ""))

    gate.changed.append(keep)


def _options(gate: Gate) -> ipywidgets.DOMWidget:
    wide = {"width": "auto"}
    if isinstance(gate.kind, Choice):
        # Labels of radio buttons are plain text; code marks would show as backticks.
        pairs = [(label.replace("`", ""), value) for value, label in gate.kind.options.items()]
        return ipywidgets.RadioButtons(options=pairs, value=None, layout=wide)
    sketch = isinstance(gate.kind, Shape)
    return ipywidgets.Text(
        placeholder="(3, 4)" if sketch else say("placeholder"), continuous_update=sketch)
