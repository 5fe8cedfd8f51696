"""What does a gate look like where a learner can click it?

An ipywidgets box: the question, radio buttons or a text field, a button that commits, a verdict.
The classes ``saem-gate``, ``saem-gate-option``, ``saem-gate-commit`` and ``saem-gate-verdict`` are
what browser tests hold on to.

Read before: ``saem.lesson.render``.  Read after: nothing.
Invariant: the widgets only report to the gate and draw it; they keep no state of their own.
"""

from __future__ import annotations

import ipywidgets
from IPython.display import display

from saem.lesson.gates import Choice, Gate, Number
from saem.lesson.render import STYLE, code, heading, verdict_html
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
    verdict = ipywidgets.HTML()

    def draw(gate: Gate) -> None:
        options.disabled = commit.disabled = gate.guess is not None
        # Before a guess the box must not give the result away: the judged cell folds it.
        verdict.value = verdict_html(gate) if gate.guess is not None else ""

    def press(_: ipywidgets.Button) -> None:
        if options.value is None or str(options.value).strip() == "":
            verdict.value = f"<div>{code(say('empty'))}</div>"
            return
        try:
            gate.answer(options.value)
        except ValueError:
            key = "not_a_number" if isinstance(gate.kind, Number) else "empty"
            verdict.value = f"<div>{code(say(key))}</div>"

    commit.on_click(press)
    gate.changed.append(draw)
    outer = ipywidgets.VBox([head, options, commit, verdict])
    outer.add_class("saem-gate")
    return outer


def show(gate: Gate) -> None:
    """Display the gate below the current cell."""
    display(box(gate))


def _options(gate: Gate) -> ipywidgets.DOMWidget:
    wide = {"width": "auto"}
    if isinstance(gate.kind, Choice):
        # Labels of radio buttons are plain text; code marks would show as backticks.
        pairs = [(label.replace("`", ""), value) for value, label in gate.kind.options.items()]
        return ipywidgets.RadioButtons(options=pairs, value=None, layout=wide)
    return ipywidgets.Text(placeholder=say("placeholder"))
