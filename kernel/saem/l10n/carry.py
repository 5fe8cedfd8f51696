"""Can a translation follow a change of its source without a translator?

Yes, if only code spans, numbers or URLs changed: they mean the same in every language.

Read before: nothing.  Read after: ``saem.l10n.merge``.
Invariant: words are never changed, in either language (tests/notebooks/test_merge.py).
"""

from __future__ import annotations

import re
from collections import Counter

# Code spans, the target of a link, bare URLs, numbers that stand alone.
TOKEN = re.compile(
    r"`[^`\n]+`|(?<=\]\()[^)\s]+(?=\))|https?://[^\s)>\]]+|(?<![\w.])-?\d+(?:[.,]\d+)*(?![\d])"
)


def tokens(text: str) -> list[str]:
    """What is the same in every language, in order."""
    return TOKEN.findall(text)


def carry(old: str, new: str, translation: str) -> str | None:
    """The translation of ``old`` made one of ``new``; None if a person must look."""
    if TOKEN.sub("\0", old) != TOKEN.sub("\0", new):
        return None
    was, now = tokens(old), tokens(new)
    becomes: dict[str, str] = {}
    for before, after in zip(was, now, strict=True):
        if becomes.setdefault(before, after) != after:
            return None
    changed = {before for before, after in becomes.items() if before != after}
    had, have = Counter(was), Counter(tokens(translation))
    if any(had[token] != have[token] for token in changed):
        return None
    return TOKEN.sub(lambda m: becomes.get(m[0], m[0]), translation)
