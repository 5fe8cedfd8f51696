"""Does a notebook still show what it shows?

``check(path)`` runs any notebook in a kernel of its own and compares what each cell shows now with
what is stored.  Numbers may differ within a tolerance, addresses and places of a machine are left
out, pictures only have to be there.  Tags of a cell: ``raises-exception`` (it must raise),
``nondeterministic`` (it runs, its outputs are not compared), ``skip-execution`` (it does not run).
A cell that was never run has nothing to compare.

Read before: ``saem.l10n.execute``.  Read after: ``saem.cli.commands``, ``saem.cli.pytest_plugin``.
Invariant: the file is never written (tests/notebooks/test_check.py).
"""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from saem.l10n.execute import (
    ENVIRONMENT,
    NONDETERMINISTIC,
    RAISES,
    Client,
    error_text,
    is_card,
    normal_text,
)

SKIP = "skip-execution"
TOLERANCE = 2e-5  # what float32 sums differ by between machines and thread counts
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=e))(?:e[-+]?\d+)?")


@dataclasses.dataclass(frozen=True)
class Difference:
    """One cell that did not show what it should; ``number`` counts cells from 1."""

    cell: str
    number: int
    what: str
    expected: str = ""
    got: str = ""

    def __str__(self) -> str:
        shown = [f"cell {self.number} ({self.cell}): {self.what}"]
        for label, text in (("expected", self.expected), ("got", self.got)):
            if text:
                shown += [f"  {label}:", *(f"    {line}" for line in text.splitlines()[:20])]
        return "\n".join(shown)


def check(path: Path, timeout: int = 300, tolerance: float = TOLERANCE, kernel: str = ""
          ) -> list[Difference]:
    """Run the notebook at ``path`` in its folder and return where it differs from what it stores.

    Raises ValueError if the file is no notebook, or no kernel can run it.
    """
    try:
        stored = nbformat.read(path, as_version=4)
    except AttributeError as error:  # a list has no ``get``
        raise ValueError(f"{path} is not a notebook: its JSON is not an object.") from error
    except Exception as error:  # nbformat raises what json and validators raise
        raise ValueError(f"{path} is not a notebook: {error}") from error
    run = nbformat.reads(nbformat.writes(stored), as_version=4)
    for cell in run.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = _client(run, path, timeout, kernel or _kernel(stored))
    try:
        # As a build runs them: a kernel that compiles all it runs, and gates that are HTML.
        client.run(dict(os.environ, **ENVIRONMENT))
    except CellTimeoutError:
        return [_ended(run, f"it or the cell after it took more than {timeout} s")]
    except DeadKernelError:
        return [_ended(run, "the kernel died in it or in the cell after it")]
    except NoSuchKernel as error:
        known = ", ".join(sorted(KernelSpecManager().find_kernel_specs()))
        raise ValueError(f"{path} needs the kernel {error.name!r}, which is not one of: {known}."
                         ) from error
    found = []
    for number, (one, two) in enumerate(zip(stored.cells, run.cells, strict=True), start=1):
        if one.cell_type == "code" and SKIP not in one.metadata.get("tags", ()):
            found += _compare(number, one, two, tolerance)
    return found


def _ended(run: nbformat.NotebookNode, why: str) -> Difference:
    """What is said of the last cell that began, as far as is known, where a run ended early."""
    last = max(range(len(run.cells)), key=lambda i: run.cells[i].get("execution_count") or 0)
    return Difference(run.cells[last].get("id", "?"), last + 1, why)


def _client(notebook: nbformat.NotebookNode, path: Path, timeout: int, kernel: str) -> Client:
    """What runs the notebook in the folder of ``path``."""
    return Client(
        notebook, timeout=timeout, allow_errors=True, record_timing=False, kernel_name=kernel,
        # Without a warning, for each notebook, that the loopback interface is not encrypted.
        extra_arguments=["--log-level=ERROR"] if kernel == "python3" else [],
        skip_cells_with_tag=SKIP, store_widget_state=False,
        resources={"metadata": {"path": str(path.parent.resolve())}},
    )


def _kernel(notebook: nbformat.NotebookNode) -> str:
    """The kernel that the notebook names if it is here, else ``python3``.

    Raises ValueError if a notebook of another language has no kernel here.
    """
    facts = notebook.metadata.get("kernelspec", {})
    written_in = notebook.metadata.get("language_info", {}).get("name", "python")
    if facts.get("name") in KernelSpecManager().find_kernel_specs():
        return facts["name"]
    if facts.get("language", written_in) != "python":
        raise ValueError(f"the notebook needs the kernel {facts.get('name')!r}, which is not here.")
    return "python3"


def _compare(number: int, stored: nbformat.NotebookNode, run: nbformat.NotebookNode,
             tolerance: float) -> list[Difference]:
    identity, tags = stored.get("id", "?"), stored.metadata.get("tags", ())
    errors = [o for o in run.outputs if o.output_type == "error"]
    if errors and RAISES not in tags:
        return [Difference(identity, number, f"it raised {errors[0].ename}", "",
                           error_text(errors[0]))]
    if RAISES in tags and not errors:
        return [Difference(identity, number, f"tagged {RAISES}, but nothing raised")]
    never_run = stored.execution_count is None and not stored.outputs
    if NONDETERMINISTIC in tags or never_run:
        return []
    before, now = shown(stored.outputs), shown(run.outputs)
    kinds = [[kind for kind, _ in found] for found in (before, now)]
    if kinds[0] != kinds[1]:
        return [Difference(identity, number, "it shows other kinds of outputs",
                           _text(before), _text(now))]
    return [Difference(identity, number, f"its {kind} differs", one, two)
            for (kind, one), (_, two) in zip(before, now, strict=True)
            if not same_text(one, two, tolerance)]


def shown(outputs: list) -> list[tuple[str, str]]:
    """What outputs show, as kinds with texts; streams of one name are one.

    The card of an error is left out: a kernel without the lens shows the error alone.
    """
    found: list[tuple[str, str]] = []
    for output in outputs:
        if is_card(output):
            continue
        if output.output_type == "stream":
            kind, text = output.name, output.text
            if found and found[-1][0] == kind:
                found[-1] = kind, found[-1][1] + text
                continue
        elif output.output_type == "error":
            kind, text = "error", f"{output.ename}: {output.evalue.splitlines()[:1]}"
        else:
            pictures = sorted(m for m in output.data if m.startswith("image/"))
            kind = " ".join(pictures) or "value"
            text = "" if pictures else output.data.get("text/plain", "")
        found.append((kind, text))
    return [(kind, normal_text(_as_seen(text))) for kind, text in found]


def _as_seen(text: str) -> str:
    """What a terminal shows in the end: a carriage return lets a line be written over."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def same_text(one: str, two: str, tolerance: float) -> bool:
    """Whether two texts are equal, spaces aside, and their decimal numbers within ``tolerance``."""
    if one == two:
        return True
    if _NUMBER.sub("#", one).split() != _NUMBER.sub("#", two).split():
        return False
    return all(abs(float(a) - float(b)) <= tolerance * max(1.0, abs(float(a)))
               for a, b in zip(_NUMBER.findall(one), _NUMBER.findall(two), strict=True))


def _text(found: list[tuple[str, str]]) -> str:
    return "\n".join(f"[{kind}] {text}".rstrip() for kind, text in found) or "(nothing)"
