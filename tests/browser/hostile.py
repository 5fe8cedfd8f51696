"""What would a hostile notebook show?  Views in which every text is one that means harm.

``TEXTS`` are such texts; ``poisoned`` puts them in every free string of a model; ``program`` is a
cell whose names, reprs, docstring, source, key paths and error message are hostile, by which the
real engine and the real panel are tried.

Read before: ``saem.observe.schema``.  Read after: ``test_lens_views.py``, ``test_journeys.py``.
Invariant: whatever of it runs sets ``window.hit``.
"""

from __future__ import annotations

import dataclasses
import itertools
import typing
from collections.abc import Iterator
from typing import Any

TEXTS = (
    "<img src=x onerror=window.hit=1>",
    "</script><script>window.hit=1</script>",
    "javascript:window.hit=1",
    "\u202egnp.exe\u2066",
    "`</code><svg/onload=window.hit=1>`",
)
# What links one part of a model to another; a renderer that finds nothing shows nothing.
_LINKS = ("id", "parent", "variable", "maker", "equation", "equations", "readers", "key", "left",
          "right", "born")
# Runs in the page: what hostile text made of itself, and marks of direction that are still there.
FOUND = """root => ({
  hit: window.hit ?? null,
  made: root.querySelectorAll('img, script:not([type]), iframe, [onerror], [onload]').length,
  links: [...root.querySelectorAll('a')].filter(a => /^javascript:/i.test(a.href)).length,
  turned: [...root.innerText].filter(c => /[\\u202a-\\u202e\\u2066-\\u2069]/.test(c)).length,
})"""
HARMLESS = {"hit": None, "made": 0, "links": 0, "turned": 0}


def poisoned(model: Any, *texts: str) -> Any:
    """The model with ``texts``, in turns, in every free string; what is chosen of a list stays."""
    return _poisoned(model, itertools.cycle(texts or TEXTS))


def _poisoned(model: Any, texts: Iterator[str]) -> Any:
    hints = typing.get_type_hints(type(model))
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(model):
        value = getattr(model, field.name)
        if field.name in _LINKS or "Literal" in str(hints[field.name]):
            continue
        if isinstance(value, tuple):
            changes[field.name] = tuple(
                _poisoned(each, texts) if dataclasses.is_dataclass(each)
                else next(texts) if isinstance(each, str) else each for each in value)
        elif isinstance(value, str):
            changes[field.name] = next(texts)
        elif dataclasses.is_dataclass(value):
            changes[field.name] = _poisoned(value, texts)
    return dataclasses.replace(model, **changes)


# Every kind of view, poisoned; ``shown`` is how the shell shows a view.
VIEWS = '''
import sys
sys.path.insert(0, HERE)
import hostile
from saem.lens.views import View
from saem.observe import cards
from saem.observe.transformed import bench_model
def failed():
    try: jax.jit(lambda x: 1 if x > 0 else 2)(1.0)
    except Exception as error: return cards.error_model(error, error.__traceback__)
jax.random.normal(jax.random.key(1), (2,))
made = [lens.jaxpr(jax.grad(loss))(w, x), lens.autodiff(loss)(w, x), lens.steps(loss)(w, x),
        View(bench_model(loss, ["grad"], (w, x))), lens.tracers(jax.jit(loss))(w, x),
        lens.recompiles(), lens.keys(), lens.devices(), lens.compiled(loss)(w, x), View(failed())]
for view in made:
    shown(View(hostile.poisoned(view.model)))
'''
# A program of which everything that a program can name is hostile.
PROGRAM = '''
TEXTS = hostile.TEXTS
class Rate:
    "<img src=x onerror=window.hit=1>"
    def __init__(self, text): self.text = text
    def __hash__(self): return hash(self.text)
    def __eq__(self, other): return self.text == other.text
    def __repr__(self): return self.text
def named(text):
    def harm(rate, tree):
        "</script><script>window.hit=1</script>"
        leaf = list(tree.values())[0]  # <img src=x onerror=window.hit=1> \u202e
        return leaf * len(str(rate))
    harm.__name__ = harm.__qualname__ = text
    return jax.jit(harm, static_argnums=0)
for text in TEXTS:
    harm = named(text)
    for other in TEXTS[:2]:
        harm(Rate(other), {text: jnp.ones(3)})
shown(lens.recompiles())
shown(lens.tracers(harm)(Rate(TEXTS[0]), {TEXTS[1]: jnp.ones(3)}))
shown(lens.jaxpr(lambda tree: harm(Rate(TEXTS[1]), tree))({TEXTS[0]: jnp.ones(3)}))
'''
ERROR = '''
def asks(tree):
    if tree[TEXTS[0]] > 0:  # </script><script>window.hit=1</script>
        return "\u202e"
asks.__name__ = TEXTS[0]
jax.jit(asks)({TEXTS[0]: 1.0, TEXTS[1]: 2.0})
'''
