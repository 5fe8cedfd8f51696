"""What does a cell show when its value is a jaxpr, a history or another view?

One mime bundle: plain text, and HTML that needs neither kernel nor network, so that nothing is
lost when the notebook is saved and opened elsewhere.  A front end shows the richest it can.  The
live widget is asked for by name (``saem.lens.live()``), since a widget's view ends with its kernel.

Read before: ``saem.lens.page``.  Read after: ``saem.lens.widget``.
Invariant: a bundle always has ``text/plain`` and ``text/html`` (tests/lens/test_ipython.py).
"""

from __future__ import annotations

from typing import Any

import graphviz
from IPython.core.interactiveshell import InteractiveShell

from saem.core.jaxpr import ClosedJaxpr, Jaxpr
from saem.lens.page import carrier, page
from saem.lens.views import JaxprView, View
from saem.observe import language
from saem.observe.graph import dot
from saem.observe.jaxpr_model import jaxpr_model
from saem.observe.language import Language
from saem.observe.report import Explanation, History, Keys
from saem.observe.schema import Model
from saem.observe.typed_json import to_json

SHOWN: tuple[type, ...] = (ClosedJaxpr, Jaxpr, History, Explanation, Keys, View, JaxprView)


# JupyterLab's extension draws this one itself: no script that a notebook would have to be trusted
# for, and what only JupyterLab can add.
MODEL_MIME = "application/vnd.saem.lens.v2+json"


def bundle_of(value: Any) -> dict[str, Any]:
    """The mime bundle of a jaxpr, a history or another view."""
    if isinstance(value, (History, Keys, View)):
        return bundle(value.model, repr(value), value.lang)
    return bundle(jaxpr_model(value), str(value), language.current())


def bundle(model: Model, text: str, locale: Language) -> dict[str, Any]:
    """The mime bundle of a model."""
    shown = page(model, locale, carry=carrier.takes())
    return {"text/plain": text, "text/html": shown, MODEL_MIME: to_json(model)}


def install(shell: InteractiveShell) -> None:
    """Teach the shell to show jaxprs and histories."""
    formatter = _formatter(shell)
    if formatter is not None:
        for kind in SHOWN:
            formatter.for_type(kind, lambda value, *_include_exclude: bundle_of(value))


def remove(shell: InteractiveShell) -> None:
    """Let the shell show them as it would without the lens."""
    formatter = _formatter(shell)
    if formatter is not None:
        for kind in SHOWN:
            formatter.pop(kind, None)


def _formatter(shell: InteractiveShell) -> Any:
    display = shell.display_formatter
    return None if display is None else display.mimebundle_formatter


def digraph(program: ClosedJaxpr | Jaxpr) -> graphviz.Source:
    """The graph of a jaxpr as a ``graphviz`` object, to be rendered where Graphviz is installed."""
    return graphviz.Source(dot(jaxpr_model(program).body))
