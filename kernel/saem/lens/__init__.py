"""How does a notebook see what the engine does?

``%load_ext saem.lens`` starts the recorder, teaches Jupyter to show jaxprs and compile histories,
names the cells that code comes from, and serves the live panel::

    %load_ext saem.lens
    saem.lens.recompiles()     # what was compiled, and why
    saem.lens.explain(f)       # why f was traced the last time
    saem.lens.jaxpr(f)(x)      # its jaxpr, graph, StableHLO and fusions
    saem.lens.tracers(f)(x)    # what each line sees while it is traced
    saem.lens.steps(f)(x)      # its jaxpr on numbers, equation by equation
    saem.lens.bench(f)(x)      # before and after transformations
    saem.lens.autodiff(f)(x)   # forward, backward, and what is kept between
    saem.lens.compiled(f)(x)   # what XLA made of it
    saem.lens.keys()  saem.lens.devices()  saem.lens.gates("folder")
    saem.lens.live()           # a history that grows as cells run
    saem.lens.as_widget(view)  # any view by the front end's widget manager
    saem.lens.language("ko")

Read before: ``saem.observe``.  Read after: ``lens.extension``, ``lens.display``, ``lens.panel``.
Invariant: this is the only room that imports IPython, anywidget and graphviz (import-linter).
"""

from saem.lens.display import digraph
from saem.lens.extension import load_ipython_extension, unload_ipython_extension
from saem.lens.notebook import devices, gates
from saem.lens.views import (
    JaxprView,
    View,
    autodiff,
    compiled,
    jaxpr,
    keys,
    recompiles,
    steps,
    tracers,
)
from saem.lens.widget import Bench, JaxprWidget, LiveHistory, ViewWidget, as_widget, bench, live
from saem.observe.language import choose as language
from saem.observe.report import explain, history

__all__ = [
    "Bench",
    "JaxprView",
    "JaxprWidget",
    "LiveHistory",
    "View",
    "ViewWidget",
    "as_widget",
    "autodiff",
    "bench",
    "compiled",
    "devices",
    "digraph",
    "explain",
    "gates",
    "history",
    "jaxpr",
    "keys",
    "language",
    "live",
    "load_ipython_extension",
    "recompiles",
    "steps",
    "tracers",
    "unload_ipython_extension",
]
