"""How does Jupyter learn that there is a kernel "Saem"?

By a folder with a file ``kernel.json``.  The wheel installs the one beside this file, which starts
the Python that runs Jupyter; ``saem kernel install`` writes one that names this Python, for a
Jupyter that runs in another environment.

Read before: ``dropin.kernel``.
Invariant: both state the same but for the Python they start (tests/lens/test_dropin_shell.py).
Source: Jupyter Client's documentation, "Kernel specs".
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager


def specification(python: str = "python", display_name: str = "Saem") -> dict[str, Any]:
    """Return the content of ``kernel.json`` for a kernel that ``python`` runs.

    ``"python"`` stands for the Python that runs Jupyter.
    """
    stated = json.loads(Path(__file__).with_name("kernel.json").read_text())
    return {**stated, "argv": [python, *stated["argv"][1:]], "display_name": display_name}


def install(*, user: bool = False, prefix: Path | None = None, name: str = "saem",
            display_name: str = "Saem") -> str:
    """Write the kernelspec where Jupyter looks; return the folder.

    Without ``user`` and ``prefix`` it is installed for this Python's environment.

    Raises: OSError when the folder cannot be written; ValueError for a name Jupyter refuses, and
    for ``user`` with a ``prefix``.
    """
    if not name:  # Jupyter would take the name of the temporary folder
        raise ValueError("a kernel needs a name, such as saem.")
    if not display_name.strip():  # the launcher would show a card without a text
        raise ValueError("a kernel needs a display name, such as Saem.")
    if user and prefix is not None:
        raise ValueError("it goes to one place: give --user or --prefix, not both.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.json"
        path.write_text(json.dumps(specification(sys.executable, display_name), indent=1) + "\n")
        Path(folder).chmod(0o755)  # the installed folder has its mode, and is for all
        where = None if user else str(prefix or sys.prefix)
        return str(KernelSpecManager().install_kernel_spec(folder, name, user=user, prefix=where))
