"""Which PRNG key came from which, and was one used twice?

Listens to ``KeyEvent``s and keeps a tree: a key made of a seed is a root, ``split`` and ``fold_in``
give it children.  A key is identified by its words, since equal words give equal numbers.  It may
be used as often as it was made (a cell that is run again makes its key again); a use beyond that is
a reuse.

Read before: ``saem.core.events`` (KeyEvent).  Read after: ``saem.observe.report``.
Invariant: a snapshot is immutable, and memory is bounded by ``limit`` keys
(tests/lens/observe/test_lineage.py).
"""

from __future__ import annotations

from saem.core.events import KeyEvent
from saem.observe.environment import environment
from saem.observe.places import Places, places
from saem.observe.schema import VERSION, KeyAction, KeyNode, KeysModel, KeyUse

# Of one key, so many uses are kept.
_KEPT_USES = 32


class _Key:
    """One key while it is kept: where it came from, how often it was made, and its uses."""

    def __init__(self, node: KeyNode) -> None:
        self.node = node
        self.times_made = 0
        self.times_used = 0
        self.uses: list[KeyUse] = []
        self.children: dict[tuple[str, str], _Key] = {}

    def frozen(self) -> KeyNode:
        uses = tuple(self.uses)
        return KeyNode(**{**vars(self.node), "uses": uses,
                          "reused": any(use.reused for use in uses)})


class Lineage:
    """The family trees of the keys of one process; at most ``limit`` keys, the newest."""

    def __init__(self, limit: int = 10_000, named: Places = places) -> None:
        self._limit = limit
        self._places = named
        self._keys: dict[str, _Key] = {}
        self._latest: dict[str, _Key] = {}
        self._count = 0
        self._dropped = 0
        # The children of one split come one after another: of which split, those that came, and
        # whether it was allowed.
        self._splitting: tuple[object, ...] = ()
        self._split_into: set[str] = set()
        self._allowed = True

    def clear(self) -> None:
        """Forget all keys."""
        self.__init__(self._limit, self._places)  # type: ignore[misc]

    def snapshot(self) -> KeysModel:
        """All keys as they are now, parents before children."""
        nodes = tuple(key.frozen() for key in self._keys.values())
        return KeysModel("keys", VERSION, nodes, sum(node.reused for node in nodes),
                         self._dropped, environment())

    def receive(self, event: KeyEvent) -> None:
        """Take in what happened to one key."""
        if event.action == "used":
            self._use(self._known(event.key), event, "used")
        elif event.action == "created":
            self._make(event, "created", None).times_made += 1
        elif event.action == "cloned":
            parent = self._known(event.parent or event.key)
            parent.times_made += 1
        elif event.action == "folded":
            self._child(event, "folded", self._known(event.parent or "")).times_made = 1
        elif event.action == "returned":
            self._child(event, "returned", self._known(event.parent or "")).times_made += 1
        elif event.action == "split":
            self._split(event)
        elif event.action == "reused":
            self._reused(event)

    def _split(self, event: KeyEvent) -> None:
        parent = self._known(event.parent or "")
        split = (event.thread, event.parent, event.caller)
        if split != self._splitting or event.key in self._split_into:
            self._allowed = self._use(parent, event, "split")
            self._splitting, self._split_into = split, set()
        self._split_into.add(event.key)
        child = self._child(event, "split", parent)
        if self._allowed or not child.times_made:
            child.times_made += 1

    def _use(self, key: _Key, event: KeyEvent, action: KeyAction) -> bool:
        """Note a use; returns whether the key was made often enough for it."""
        key.times_used += 1
        allowed = key.times_used <= max(key.times_made, 1)
        self._splitting = ()
        if len(key.uses) < _KEPT_USES:
            key.uses.append(KeyUse(action, self._places.place(event.caller), not allowed))
        return allowed

    def _reused(self, event: KeyEvent) -> None:
        """The engine itself saw one key object used again: mark the last use, unless it is."""
        key = self._known(event.key)
        if key.uses and key.uses[-1].place == self._places.place(event.caller):
            last = key.uses[-1]
            key.uses[-1] = KeyUse(last.action, last.place, True)
            key.times_used = max(key.times_used, key.times_made + 1)

    def _known(self, words: str) -> _Key:
        """The newest key of these words; one of unknown origin if it was made before."""
        key = self._latest.get(words)
        return key if key is not None else self._add(words, "unknown", None, None)

    def _make(self, event: KeyEvent, action: KeyAction, parent: _Key | None) -> _Key:
        key = self._latest.get(event.key)
        if key is not None and key.node.action == action and parent is None:
            return key
        return self._add(event.key, action, parent, event)

    def _child(self, event: KeyEvent, action: KeyAction, parent: _Key) -> _Key:
        child = parent.children.get((action, event.key))
        if child is None:
            child = parent.children[action, event.key] = self._make(event, action, parent)
        return child

    def _add(self, words: str, action: KeyAction, parent: _Key | None, event: KeyEvent | None
             ) -> _Key:
        self._count += 1
        above = parent.node.id if parent is not None else None
        number = len(parent.children) if parent is not None else 0
        place = self._places.place(event.caller) if event is not None else None
        node = KeyNode(f"k{self._count}", words, action, above, number, place, (), False)
        key = self._keys[node.id] = self._latest[words] = _Key(node)
        while len(self._keys) > self._limit:
            oldest = self._keys.pop(next(iter(self._keys)))
            self._dropped += 1
            if self._latest.get(oldest.node.key) is oldest:
                del self._latest[oldest.node.key]
        return key
