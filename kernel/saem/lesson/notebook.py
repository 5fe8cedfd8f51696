"""What does a gate look like where a learner can click it?

An ipywidgets box: the question, radio buttons or a text field, a button that commits, a verdict.
The classes ``saem-gate``, ``saem-gate-option``, ``saem-gate-commit`` and ``saem-gate-verdict`` are
what browser tests look for.

The button is linked, in the browser, to an attribute ``pressed`` of the field beside it.  A front
end sends the state of one widget in order, but a message of another widget may overtake it: a click
that was a message of the button could be read before the last letters of the guess.

Read before: ``saem.lesson.render``.  Read after: nothing.
Invariant: the widgets only report to the gate and draw it; they keep no state of their own; a guess
that is committed is the one in sight (tests/browser/test_journeys.py, ``hurry``).
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

import anywidget
import ipywidgets
import traitlets
from IPython.display import HTML, display

from saem.lesson.gates import Choice, Gate, Number, Shape
from saem.lesson.render import (
    STYLE,
    heading,
    question_html,
    question_text,
    shape_html,
    verdict_html,
)
from saem.lesson.words import say
from saem.observe import language
from saem.observe.markup import code_spans


class Options(ipywidgets.RadioButtons):
    """The options of a choice; ``pressed`` changes with each press of the button beside them."""

    pressed = traitlets.Bool(False).tag(sync=True)


class Field(ipywidgets.Text):
    """A field to write in; ``pressed`` changes with each press of the button beside it."""

    pressed = traitlets.Bool(False).tag(sync=True)


class OwnKeys(anywidget.AnyWidget):
    """Keeps the arrow keys in the gate around it: they choose an option, where a notebook would
    go to another cell.  Jupyter obeys the attribute; for others the keys' events are stopped."""

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


# The gates that are shown, so that they can be shown in another language.
_boxes: weakref.WeakSet[GateBox] = weakref.WeakSet()


def _speak(_chosen: language.Language) -> None:
    for box in list(_boxes):
        box.speak()


language.when_changed.append(_speak)


class GateBox:
    """The widgets of one gate, and what happens when they are used."""

    def __init__(self, gate: Gate):
        self.gate = gate
        self.options = _options(gate)
        self.options.add_class("saem-gate-option")
        self.head = ipywidgets.HTML()
        self.commit = _commit_button()
        self.again = ipywidgets.Button(layout={"width": "max-content"})
        self.again.add_class("saem-gate-reset")
        self.drawn = ipywidgets.HTML()
        self.verdict = ipywidgets.HTML()
        if isinstance(gate.kind, Shape):
            self.options.observe(self.sketch, names="value")
        ipywidgets.jsdlink((self.commit, "value"), (self.options, "pressed"))
        self.options.observe(self.press, names="pressed")
        self.again.on_click(lambda _: gate.reset())
        gate.changed.append(self.draw)
        _boxes.add(self)
        self.speak()

    def whole(self) -> ipywidgets.VBox:
        """Return the box of all widgets, below the heading."""
        # In Colab, which asks before it shows another library's widget, each output is a page.
        own = [] if "google.colab" in sys.modules else [OwnKeys(layout={"display": "none"})]
        outer = ipywidgets.VBox([self.head, self.options, self.commit, self.verdict, self.drawn,
                                 self.again, *own])
        outer.add_class("saem-gate")
        return outer

    def speak(self) -> None:
        """Write all words in the language of the moment: a page may say its own later."""
        self.head.value = f"<style>{STYLE}</style>{heading(self.gate)}"
        self.commit.description, self.again.description = say("commit"), say("reset")
        if isinstance(self.options, Field) and not isinstance(self.gate.kind, Shape):
            self.options.placeholder = say("placeholder")
        self.draw(self.gate)

    def draw(self, gate: Gate) -> None:
        """Show the state of the gate."""
        self.options.disabled = self.commit.disabled = gate.guess is not None
        self.again.layout.display = None if gate.guess is not None else "none"
        # Before a guess the box must not give the result away: the judged cell folds it.
        self.verdict.value = verdict_html(gate) if gate.guess is not None else ""

    def press(self, _: object) -> None:
        """Commit the guess in sight, or say why it is not one."""
        answer = _answer(self.gate, self.options)
        if answer is None or str(answer).strip() == "":
            self.verdict.value = f"<div>{code_spans(say('empty'))}</div>"
            return
        try:
            self.gate.answer(answer)
        except ValueError:
            key = {Number: "not_a_number", Shape: "not_a_shape"}.get(type(self.gate.kind), "empty")
            self.verdict.value = f"<div>{code_spans(say(key))}</div>"

    def sketch(self, _: object) -> None:
        """Draw the shape that is written in the field, if it is one."""
        try:
            sizes: Any = self.gate.kind.read(self.options.value)
            self.drawn.value = shape_html(sizes)
        except ValueError:
            self.drawn.value = ""


def box(gate: Gate) -> ipywidgets.VBox:
    """The widget for ``gate``: heading, options, commit button, verdict, in this order."""
    return GateBox(gate).whole()


def _commit_button() -> ipywidgets.ToggleButton:
    # It changes its value with each press; the style of ``saem-gate-commit`` hides which it has.
    commit = ipywidgets.ToggleButton(
        button_style="primary",
        layout={"width": "max-content", "align_self": "flex-start"},
    )
    commit.add_class("saem-gate-commit")
    return commit


def show(gate: Gate) -> None:
    """Display the gate below the current cell, and the guess as what is saved with the notebook.

    A page without this kernel shows the question as text and HTML in place of the widget.
    """
    seen = box(gate)._repr_mimebundle_()
    display({**seen, "text/plain": question_text(gate), "text/html": question_html(gate)}, raw=True)
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
    return Field(placeholder="(3, 4)" if sketch else "", continuous_update=sketch)
