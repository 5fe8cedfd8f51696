"""What is shown of PRNG keys?

Read before: ``schema.common``.  Read after: ``saem.observe.lineage``.
Invariant: parents come before their children.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from saem.observe.schema.common import Environment, Place

KeyAction = Literal["created", "split", "folded", "returned", "used", "unknown"]


@dataclasses.dataclass(frozen=True)
class KeyUse:
    """One use of a key: ``action`` is used (a sampler drew from it) or split.

    ``reused``: the key had been used before, so the same random numbers come again.
    """

    action: KeyAction
    place: Place | None
    reused: bool


@dataclasses.dataclass(frozen=True)
class KeyNode:
    """One PRNG key.  ``id`` is unique in the model; ``key`` are its words in hexadecimal.

    ``action`` is how it was made: created (of a seed), split or folded (of ``parent``), returned
    (by a jitted function that took ``parent``), or unknown (before the recording).  ``number``
    counts the children of one parent.
    """

    id: str
    key: str
    action: KeyAction
    parent: str | None
    number: int
    place: Place | None
    uses: tuple[KeyUse, ...]
    reused: bool


@dataclasses.dataclass(frozen=True)
class KeysModel:
    """The family trees of PRNG keys, parents before children; ``reused`` counts keys used again.

    ``dropped`` older keys were forgotten to save memory.
    """

    kind: Literal["keys"]
    version: int
    keys: tuple[KeyNode, ...]
    reused: int
    dropped: int
    environment: Environment
