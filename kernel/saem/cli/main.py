"""How does the `saem` command start, and what does it say when its packages are missing?

``pip install saem`` brings the engine alone.  The command is installed with it, so it must be able
to say which extra it needs before it imports anything from that extra.

Read before: ``saem.cli``.  Read after: ``saem.cli.commands``.
Invariant: importing this module imports nothing outside the standard library, the engine and what
the engine needs.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from saem.core.lazy import later
from saem.dropin import run

tracebacks: Any = later("saem.observe.tracebacks")  # only a program that fails needs it

NEEDED = {
    "click": "click",
    "rich": "rich",
    "filelock": "filelock",
    "polib": "polib",
    "markdown_it": "markdown-it-py",
    "yaml": "pyyaml",
    "jupytext": "jupytext",
    "nbformat": "nbformat",
    "nbclient": "nbclient",
    "jupyter_client": "jupyter_client",
}


def missing_packages() -> list[str]:
    """The distributions that the command needs and this Python does not have."""
    return [name for module, name in NEEDED.items() if importlib.util.find_spec(module) is None]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command, or exit with status 1 and the extra to install.

    ``saem run`` needs the engine alone.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["run"]:
        sys.excepthook = lambda *error: tracebacks.show(*error)
        try:
            run.main(words[1:])
        except KeyboardInterrupt:
            # Imported now: by an import in the hook Python forgets that it was interrupted, and
            # ends with status 1 instead of by the signal.
            tracebacks.show  # noqa: B018
            raise
        return
    missing = missing_packages()
    if missing:
        print(
            f"saem: the command needs {', '.join(missing)}, which this Python does not have "
            f"({sys.executable}).\n"
            "The engine alone was installed. For the lessons and the lens in JupyterLab, try:\n"
            "  pip install 'saem[lab]'",
            file=sys.stderr,
        )
        raise SystemExit(1)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # letters that a terminal lacks become '?'
            stream.reconfigure(errors="replace")
    try:
        # After the check, not at the top: these modules import what may be missing.
        importlib.import_module("saem.cli.commands").saem(arguments)
    except KeyboardInterrupt:  # while modules are loaded; a command ends by itself
        end_interrupted()


def end_interrupted() -> NoReturn:
    """End after Ctrl-C as a shell expects it: one line, and status 130."""
    print("Interrupted.", file=sys.stderr)
    raise SystemExit(130)


if __name__ == "__main__":
    main()
