"""How does a view change while cells run, in any front end that shows widgets?

``live()`` is a compile history that grows; ``JaxprWidget`` shows one jaxpr.  Both are the same
renderer in anywidget's clothes (``static/widget.js``, built by the extension).

Read before: ``saem.lens.page``, whose HTML stands beside the widget for front ends without any.
Read after: nothing.
Invariant: no change is lost, and at most one is sent in ``_PAUSE`` seconds (tests/lens).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from saem.core.jaxpr import ClosedJaxpr, Jaxpr
from saem.lens.page import bundle, carrier, page
from saem.lens.pulse import Pulse
from saem.observe import language
from saem.observe.jaxpr_model import jaxpr_model
from saem.observe.recorder import Recorder, recorder
from saem.observe.report import history_text
from saem.observe.schema import HistoryModel, JaxprModel
from saem.observe.typed_json import to_json

_PAUSE = 0.25
# Shown by anywidget where the extension was not built; the HTML beside it says so in words.
_NO_BUNDLE = "export default { render({ el }) { el.textContent = 'make extension'; } };"


class _View(anywidget.AnyWidget):
    """A model shown by the renderer."""

    _esm = bundle("widget.js") or _NO_BUNDLE
    _css = bundle("saem.css") or ""
    model = traitlets.Dict().tag(sync=True)
    locale = traitlets.Unicode("en").tag(sync=True)

    def __init__(self, model: HistoryModel | JaxprModel) -> None:
        self._shown = model
        super().__init__(model=to_json(model), locale=language.current())

    def show(self, model: HistoryModel | JaxprModel) -> None:
        """Show another model in the same place."""
        self._shown = model
        self.model = to_json(model)

    def _text(self) -> str:
        shown = self._shown
        if isinstance(shown, HistoryModel):
            return history_text(shown, language.current())
        return "\n".join(
            " " * line.indent + "".join(t.text for t in line.tokens) for line in shown.lines
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        made = super()._repr_mimebundle_(**kwargs)
        if made is None:
            return None
        data, metadata = made if isinstance(made, tuple) else (made, {})
        shown = page(self._shown, language.current(), carry=carrier.takes())
        plain = {"text/plain": self._text(), "text/html": shown}
        return {**data, **plain}, metadata


class JaxprWidget(_View):
    """A jaxpr as a widget."""

    def __init__(self, program: ClosedJaxpr | Jaxpr, title: str = "") -> None:
        super().__init__(jaxpr_model(program, title))


class LiveHistory(_View):
    """The compile history as a widget that follows the recorder until ``close()``."""

    def __init__(self, of: Recorder = recorder) -> None:
        super().__init__(of.snapshot())
        self._pulse = Pulse(lambda: self.show(of.snapshot()), _PAUSE)
        self._end: Callable[[], None] = of.watch(lambda _summary, _record: self._pulse.beat())

    def close(self) -> None:
        """Follow no longer, and take the widget away."""
        self._end()
        self._pulse.stop()
        super().close()


def live() -> LiveHistory:
    """A compile history that grows as cells run."""
    return LiveHistory()
