"""Where may a command write a page?

In a file whose name ends with ``.html``: a slip of the hand must not write over a lesson, a PO file
or a learner's notebook.

Read before: nothing.  Read after: ``saem.l10n.commands``, ``saem.cli.overview``.
"""

from __future__ import annotations

from pathlib import Path

import click


def check(path: Path) -> None:
    """Refuse a path of another kind of file.

    Raises: BadParameter.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter(
            f"A page is written to a file whose name ends with .html, got {path}. "
            f"Try {path.with_suffix('.html').name}.")
