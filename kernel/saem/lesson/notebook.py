"""What does a gate look like where a learner can click it?

An ipywidgets box: the question, radio buttons or a text field, a button that commits, a verdict.
The classes ``saem-gate``, ``saem-gate-option``, ``saem-gate-commit`` and ``saem-gate-verdict`` are
what browser tests hold on to.

The button is linked, in the browser, to an attribute ``pressed`` of the field beside it.  A front
end sends the state of one widget in order, but a message of another widget may overtake it: a click
that was a message of the button could be read before the last letters of the guess.

Read before: ``saem.lesson.render``.  Read after: nothing.
Invariant: the widgets only report to the gate and draw it; they keep no state of their own; a guess
that is committed is the one in sight (tests/browser/test_journeys.py, ``hurry``).
"""

from __future__ import annotations

import sys
from typing import Any

import anywidget
import ipywidgets
import traitlets
from IPython.display import HTML, display

from saem.lesson.gates import Choice, Gate, Number, Shape
from saem.lesson.render import STYLE, heading, shape_html, verdict_html
from saem.lesson.words import say
from saem.observe.markup import code_spans


class Options(ipywidgets.RadioButtons):
    """The options of a choice; ``pressed`` changes with each press of the button beside them."""

    pressed = traitlets.Bool(False).tag(sync=True)


class Field(ipywidgets.Text):
    """A field to write in; ``pressed`` changes with each press of the button beside it."""

    pressed = traitlets.Bool(False).tag(sync=True)


class OwnKeys(anywidget.AnyWidget):
    """Keeps the arrow keys in the gate around it: they choose an option, where a notebook would
    go to another cell.  Jupyter heeds the attribute, others that the keys go no further."""

    _esm = """export default { render({ el }) {
      let waits = true;
      const keep = () => {
        const gate = el.closest(".saem-gate");
        if (!gate && waits) requestAnimationFrame(keep);
        gate?.addEventListener("focusin", ({ target }) => {
          if (target.type === "radio") target.setAttribute("data-lm-suppress-shortcuts", "true");
        });
        gate?.addEventListener("keydown", event => {
          if (event.key.startsWith("Arrow")) event.stopPropagation();
        });
      };
      keep();
      return () => { waits = false; };
    } };"""


def box(gate: Gate) -> ipywidgets.VBox:
    """The widget for ``gate``: heading, options, commit button, verdict, in this order."""
    head = ipywidgets.HTML(f"<style>{STYLE}</style>{heading(gate)}")
    options = _options(gate)
    options.add_class("saem-gate-option")
    # It changes its value with each press; the style of ``saem-gate-commit`` hides which it has.
    commit = ipywidgets.ToggleButton(
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

    def press(_: object) -> None:
        answer = _answer(gate, options)
        if answer is None or str(answer).strip() == "":
            verdict.value = f"<div>{code_spans(say('empty'))}</div>"
            return
        try:
            gate.answer(answer)
        except ValueError:
            key = {Number: "not_a_number", Shape: "not_a_shape"}.get(type(gate.kind), "empty")
            verdict.value = f"<div>{code_spans(say(key))}</div>"

    def sketch(_: object) -> None:
        try:
            sizes: Any = gate.kind.read(options.value)
            drawn.value = shape_html(sizes)
        except ValueError:
            drawn.value = ""

    if isinstance(gate.kind, Shape):
        options.observe(sketch, names="value")
    ipywidgets.jsdlink((commit, "value"), (options, "pressed"))
    options.observe(press, names="pressed")
    again.on_click(lambda _: gate.reset())
    gate.changed.append(draw)
    draw(gate)
    # In Colab, which asks before it shows another library's widget, each output is a page.
    own = [] if "google.colab" in sys.modules else [OwnKeys(layout={"display": "none"})]
    outer = ipywidgets.VBox([head, options, commit, verdict, drawn, again, *own])
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


def _answer(gate: Gate, options: Options | Field) -> object:
    """The guess in sight; None if nothing is chosen."""
    if not isinstance(gate.kind, Choice):
        return options.value
    # ``value`` follows ``index`` only after a message with ``index`` and ``pressed`` was taken in.
    return None if options.index is None else list(gate.kind.options)[options.index]


def _options(gate: Gate) -> Options | Field:
    wide = {"width": "auto"}
    if isinstance(gate.kind, Choice):
        # Labels of radio buttons are plain text; code marks would show as backticks.
        pairs = [(label.replace("`", ""), value) for value, label in gate.kind.options.items()]
        return Options(options=pairs, value=None, layout=wide)
    sketch = isinstance(gate.kind, Shape)
    return Field(
        placeholder="(3, 4)" if sketch else say("placeholder"), continuous_update=sketch)
