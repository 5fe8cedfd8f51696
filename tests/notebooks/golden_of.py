"""How are the golden outputs of a lesson made anew?

``python tests/notebooks/golden_of.py 02-pure`` hands the lesson's cells to the real JAX
(``SAEM_JAX_PYTHON``) and keeps what it prints.

Read before: ``make_golden.py``.  Read after: ``test_lessons.py``.
Invariant: this process, which may load Saem, decides nothing about the outputs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from saem.l10n import project
from saem.l10n.source import read

HERE = Path(__file__).parent


def main() -> None:
    tree = project.find(HERE)
    for name in sys.argv[1:]:
        lesson = read(tree.lesson(name))
        cells = [[c.id, list(c.tags), c.source] for c in lesson.cells if c.kind == "code"]
        with tempfile.TemporaryDirectory() as folder:
            given = Path(folder) / "cells.json"
            given.write_text(json.dumps(cells), encoding="utf-8")
            done = subprocess.run(
                [os.environ["SAEM_JAX_PYTHON"], str(HERE / "make_golden.py"), lesson.name, given],
                stdout=subprocess.PIPE, text=True, check=True,
                env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            )
        (HERE / "golden" / f"{lesson.name}.json").write_text(done.stdout, encoding="utf-8")
        print(f"wrote golden/{lesson.name}.json")


if __name__ == "__main__":
    main()
