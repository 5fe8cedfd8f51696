"""How does text from a program enter HTML?

Read before: nothing.  Read after: ``saem.lens.page``, ``saem.lesson.render``.
Invariant: no text makes an element or turns the direction of the text around it
(tests/lens/test_page.py, tests/notebooks/test_gates.py).
"""

from __future__ import annotations

import html
import re

# Unicode's marks of direction: a name or a source line with one could show what it is not.
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    """The text as HTML; each mark of direction is shown by its code."""
    return _DIRECTIONS.sub(lambda mark: f"⟨U+{ord(mark[0]):04X}⟩", html.escape(text))


def code_spans(text: str) -> str:
    """Escaped HTML in which words between backticks are code."""
    pieces = escaped(text).split("`")
    if len(pieces) % 2 == 0:
        return "`".join(pieces)
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
