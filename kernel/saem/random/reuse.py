"""Is a PRNG key used twice?

A key is used up by ``split`` and by drawing from it; ``fold_in``, ``clone`` and looking at its
words leave it.  Under ``debug_key_reuse`` (and for listeners) every key array has its ``Family``:
by what its keys were made, of which key, and which of them were used where.  A view of keys (an
index, a reshape) is of the same family, so one key is one place in it, whatever object holds it.

Read before: ``random.key_flow``, which finds what a traced program uses.  Read after: nothing.
Invariant: a program that uses every key once is never refused (tests/kernel/test_key_reuse.py).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem.core import config, errors, source
from saem.core.events import KeyEvent, bus
from saem.core.jaxpr import ClosedJaxpr
from saem.core.trace import Tracer, eval_trace, state
from saem.ops.keys import PRNGKeyArray, key_watch
from saem.random.key_flow import Creation, Flow, Use, flow_of, how_to_avoid
from saem.transform import staging

# Of one array of keys, so many are published.
MOST_PUBLISHED = 64


class Family:
    """Keys that were made together: how, of which key, where; and the uses of each, by place."""

    __slots__ = ("creation", "parent", "parent_place", "uses")

    def __init__(self, creation: Creation, parent: Family | None, parent_place: int):
        self.creation = creation
        self.parent = parent
        self.parent_place = parent_place
        self.uses: dict[int, Use] = {}

    def path(self, place: int) -> list[str]:
        """Return the line of descent of the key at ``place``, oldest first."""
        above = self.parent.path(self.parent_place) if self.parent is not None else []
        return [*above, self.creation.text(place)]


def family_of(keys: PRNGKeyArray) -> tuple[Family, np.ndarray]:
    """Return the family of ``keys`` and the place of each in it."""
    family = getattr(keys, "_family", None)
    if family is None:
        return begin_family(keys, "a key made earlier", None, where=None)
    return family, keys._places


def begin_family(keys: PRNGKeyArray, action: str, parent: Any, *, where: Any = 0
         ) -> tuple[Family, np.ndarray]:
    """Begin the family of new ``keys``, made by ``action`` of ``parent``."""
    where = source.capture() if where == 0 else where
    above, place = None, 0
    if type(parent) is PRNGKeyArray:
        above, places = family_of(parent)
        place = int(places.flat[0]) if places.size else 0
    keys._family = Family(Creation(action, keys.shape, where), above, place)
    keys._places = np.arange(math.prod(keys.shape)).reshape(keys.shape)
    return keys._family, keys._places


def use(keys: PRNGKeyArray, mask: Any, what: str, index: int, made: Use) -> None:
    """Mark ``keys`` (those of ``mask``) as used by ``what``, its argument ``index``.

    Raises: KeyReuseError if one of them was used before.
    """
    family, places = family_of(keys)
    for place in places[mask].reshape(-1).tolist():
        before = family.uses.get(place)
        if before is not None:
            if bus.active:
                publish("reused", keys, keys)
            if config.debug_key_reuse.value:
                raise reused(f"Previously-consumed key passed to {what} at index {index}.", before,
                             family.path(place))
        family.uses[place] = made


def reused(sentence: str, before: Use, path: Sequence[str]) -> Exception:
    """Return the error for a key used again, with its first use and its descent."""
    return errors.explained(errors.KeyReuseError, "key.reused", sentence,
                            advice=how_to_avoid(before, path))


# -- outside traces --------------------------------------------------------------------------------


def watching() -> bool:
    """Return whether uses of keys are checked or published."""
    return config.debug_key_reuse.value or bus.active


def sampled(key: Any) -> None:
    """Note that the sampler that calls draws from ``key``; inside traces its primitives show it."""
    if state.trace is not eval_trace or isinstance(key, Tracer):
        return
    if bus.active:
        publish("used", key, None)
    if type(key) is PRNGKeyArray:
        what = sys._getframe(2).f_code.co_name
        use(key, ..., what, 0, Use(what, source.capture(2)))


def created(keys: Any, action: str) -> None:
    """Note that ``keys`` were made of a number or of words."""
    if bus.active:
        publish("created", keys, None)
    if type(keys) is PRNGKeyArray:
        begin_family(keys, action, None)


def derived(action: str, key: Any, make: Callable[[], Any]) -> Any:
    """Return the keys that ``make`` makes of ``key``; ``action`` is split, folded or cloned.

    Raises: KeyReuseError if ``key`` was used before and is used up by this.
    """
    if state.trace is not eval_trace or isinstance(key, Tracer):
        return make()
    name = {"folded": "fold_in", "cloned": "clone"}.get(action, action)
    if action == "split" and type(key) is PRNGKeyArray:
        use(key, ..., "random_split", 0, Use(name, source.capture()))
    made = make()
    if type(made) is PRNGKeyArray:
        begin_family(made, name, key)
    if bus.active:
        publish(action, made, key)
    return made


def applied(prim: Any, call: Callable[..., Any], keys: Any, *more: Any) -> Any:
    """Run a primitive on keys outside traces, under every transformation that is not a jit."""
    if type(keys) is not PRNGKeyArray or not watching() or staging.again.depth:
        return call(keys, *more)
    action = PAST.get(prim.makes_keys, "used")
    if action in ("used", "split"):
        use(keys, ..., prim.name, 0, Use(prim.name, source.capture()))
    out = call(keys, *more)
    if action != "used":
        begin_family(out, action.removesuffix("ed"), keys)
    if bus.active:
        publish(action, keys if action == "used" else out, keys)
    return out


# How events name that keys were made, by the function that makes them.
PAST = {"split": "split", "fold_in": "folded", "clone": "cloned"}


# -- traced programs -------------------------------------------------------------------------------


def check(closed: ClosedJaxpr) -> None:
    """Refuse a traced program that uses a key twice.

    Raises: KeyReuseError naming both uses.
    """
    flow = flow_of(closed)
    if flow is not None and flow.refusal is not None:
        raise flow.refusal.error()


def call(closed: ClosedJaxpr, leaves: Sequence[Any], name: str, run: Callable[[], list[Any]]
         ) -> list[Any]:
    """Run a jitted program, noting which of its keys (arguments and constants) it uses.

    Raises: KeyReuseError if one was used before.
    """
    flow = flow_of(closed)
    if flow is None:
        return run()
    if flow.refusal is not None and config.debug_key_reuse.value:  # a loop outside of any trace
        raise flow.refusal.error()
    given = [*closed.consts, *leaves]
    for number, taken in enumerate(flow.uses):
        keys = given[number]
        if taken is None or type(keys) is not PRNGKeyArray:
            continue
        mask, first = taken
        index = max(number - len(closed.consts), 0)
        use(keys, mask, name, index, first._replace(by=f"{name}: {first.by}"))
        if bus.active:
            publish("used", PRNGKeyArray(keys._base[mask], keys.dtype), keys)
    outs = run()
    _returned(flow, given, outs, name)
    return outs


def _returned(flow: Flow, given: Sequence[Any], outs: Sequence[Any], name: str) -> None:
    """Give the keys that a program returned their families."""
    for out, origin in zip(outs, flow.outs):
        if origin is None or type(out) is not PRNGKeyArray:
            continue
        parent = given[origin.number] if origin.number is not None else None
        if origin.places is not None and type(parent) is PRNGKeyArray:
            family, places = family_of(parent)
            out._family, out._places = family, places.reshape(-1)[origin.places]
            continue
        family, places = begin_family(out, f"returned by {name}", parent)
        family.uses.update(dict.fromkeys(places[origin.used].tolist(), origin.first))
        if bus.active:
            publish("returned" if type(parent) is PRNGKeyArray else "created", out, parent)


key_watch.traced = check
key_watch.called = call
key_watch.applied = applied


# -- listeners -------------------------------------------------------------------------------------


def ids(keys: Any) -> list[str]:
    """Return the words of each key in hexadecimal, of at most 64 keys; none of tracers."""
    held = keys._base if type(keys) is PRNGKeyArray else keys
    if isinstance(held, Tracer):
        return []
    words = np.asarray(held)
    rows = words.reshape(-1, words.shape[-1]) if words.ndim else words.reshape(0, 2)
    return ["".join(f"{int(word):08x}" for word in row) for row in rows[:MOST_PUBLISHED]]


def publish(action: str, keys: Any, parent: Any) -> None:
    """Publish that ``action`` happened to ``keys``, and the key that they came from."""
    if isinstance(keys, Tracer) or isinstance(parent, Tracer):
        return
    above = ids(parent) if parent is not None and parent is not keys else []
    came_from = above[0] if len(above) == 1 else None
    caller = source.here()
    for number, one in enumerate(ids(keys)):
        own = above[number * len(above) // len(ids(keys))] if len(above) > 1 else came_from
        bus.publish(KeyEvent(action=action, key=one, parent=own, caller=caller))
