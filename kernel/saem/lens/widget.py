"""How is a view shown as a widget, and how does it change while cells run?

``as_widget`` shows any view by the widget manager of the front end; ``live()`` is a compile
history that grows; ``bench()`` shows a function under transformations that can be changed.  All
run the same renderer (``static/widget.js``, built by the extension) in anywidget.

Read before: ``saem.lens.page``, whose HTML is sent with the widget for front ends without any.
Read after: nothing.
Invariant: no change is lost, and at most one is sent in ``_PAUSE`` seconds (tests/lens).
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anywidget
import traitlets

from saem.core.jaxpr import ClosedJaxpr, Jaxpr
from saem.lens.page import bundle, carrier, page
from saem.lens.pulse import Pulse
from saem.lens.views import View, of_function
from saem.observe import language
from saem.observe.jaxpr_model import jaxpr_model
from saem.observe.look import looking
from saem.observe.programs import with_statics
from saem.observe.recorder import Recorder, recorder
from saem.observe.report import History, Keys
from saem.observe.schema import Model
from saem.observe.texts import text_of
from saem.observe.transformed import bench_model
from saem.observe.typed_json import to_json

Shown = View | History | Keys | ClosedJaxpr | Jaxpr
_PAUSE = 0.25
_MOST_CHIPS = 12
# Shown by anywidget where the extension was not built; the HTML beside it says so in words.
_NO_BUNDLE = "export default { render({ el }) { el.textContent = 'make extension'; } };"


# The views that are shown, so that they can be shown in another language.
_views: weakref.WeakSet[ViewWidget] = weakref.WeakSet()


def _speak(chosen: language.Language) -> None:
    for view in list(_views):
        view.locale = chosen


language.when_changed.append(_speak)


class ViewWidget(anywidget.AnyWidget):
    """A view's model, shown by the renderer wherever there is a widget manager."""

    _esm = bundle("widget.js") or _NO_BUNDLE
    _css = bundle("saem.css") or ""
    model = traitlets.Dict().tag(sync=True)
    locale = traitlets.Unicode("en").tag(sync=True)

    def __init__(self, model: Model) -> None:
        self._shown = model
        super().__init__(model=to_json(model), locale=language.current())
        _views.add(self)

    def show(self, model: Model) -> None:
        """Show another model in the same place."""
        self._shown = model
        self.model = to_json(model)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        made = super()._repr_mimebundle_(**kwargs)
        if made is None:
            return None
        data, metadata = made if isinstance(made, tuple) else (made, {})
        shown = page(self._shown, language.current(), carry=carrier.takes())
        plain = {"text/plain": text_of(self._shown, language.current()), "text/html": shown}
        return {**data, **plain}, metadata


def as_widget(view: Shown) -> ViewWidget:
    """Show a view, or a jaxpr, as a widget; ``lens.as_widget(lens.keys())``."""
    if isinstance(view, (ClosedJaxpr, Jaxpr)):
        return JaxprWidget(view)
    return ViewWidget(view.model)


class JaxprWidget(ViewWidget):
    """A jaxpr as a widget."""

    def __init__(self, program: ClosedJaxpr | Jaxpr, title: str = "") -> None:
        super().__init__(jaxpr_model(program, title))


class LiveHistory(ViewWidget):
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


class Bench(ViewWidget):
    """A function under transformations that the learner adds, removes and reorders.

    The page sends the list of chips in the trait ``chips``; the model that answers is made here.
    """

    chips = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(self, fun: Callable, chips: Sequence[str], args: Sequence[Any],
                 named: Mapping[str, Any] = {}) -> None:
        self._title = getattr(fun, "__name__", "")
        given, self._args, rest = with_statics(fun, args, dict(named))
        self._fun = functools.partial(given, **rest) if rest else given
        super().__init__(bench_model(self._fun, chips, self._args, self._title))
        self.chips = list(chips)
        self.observe(self._changed, names="chips")

    def _changed(self, change: Any) -> None:
        with looking():
            chips = change["new"][:_MOST_CHIPS]
            self.show(bench_model(self._fun, chips, self._args, self._title))


@of_function
def bench(fun: Callable, *chips: str) -> Callable[..., Bench]:
    """Return a function that shows ``fun`` under transformations that can be changed in the page.

    A chip is ``"grad"``, ``"vmap(in_axes=(None, 0))"``, ``"jit"`` …, the innermost first.
    """
    return lambda *args, **named: Bench(fun, chips, args, named)


def live() -> LiveHistory:
    """A compile history that grows as cells run."""
    return LiveHistory()
