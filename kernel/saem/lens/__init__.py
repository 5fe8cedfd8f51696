"""How does a notebook see what the engine does?

``%load_ext saem.lens`` starts the recorder, teaches Jupyter to show jaxprs and compile histories,
names the cells that code comes from, and serves the live panel::

    %load_ext saem.lens
    saem.lens.history()      # what was compiled, and why
    saem.lens.explain(f)     # why f was traced the last time
    saem.lens.keys()         # which PRNG key came of which, and was one used twice
    saem.lens.live()         # a history that grows as cells run
    saem.lens.language("ko")

Read before: ``saem.observe``.  Read after: ``lens.extension``, ``lens.display``, ``lens.panel``.
Invariant: this is the only room that imports IPython, anywidget and graphviz (import-linter).
"""

from saem.lens.display import digraph
from saem.lens.extension import load_ipython_extension, unload_ipython_extension
from saem.lens.widget import JaxprWidget, LiveHistory, live
from saem.observe.language import choose as language
from saem.observe.report import explain, history, keys

__all__ = [
    "JaxprWidget",
    "LiveHistory",
    "digraph",
    "explain",
    "history",
    "keys",
    "language",
    "live",
    "load_ipython_extension",
    "unload_ipython_extension",
]
