"""What does a notebook print, without what differs from one run to the next?

Read before: ``saem.l10n.assemble``.  Read after: ``saem.l10n.build``.
Invariant: a cell raises if and only if it is tagged ``raises-exception``
(tests/notebooks/test_lessons.py).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

RAISES, NONDETERMINISTIC = "raises-exception", "nondeterministic"
# What a lesson shows must not depend on what this machine compiled before, nor on a kernel: gates
# are HTML.
ENVIRONMENT = {"SAEM_LESSON_STATIC": "1", "SAEM_ENABLE_COMPILATION_CACHE": "0"}
_PACKAGES = Path(__file__).resolve().parents[2]

_NORMAL = (
    (re.compile(re.escape(str(_PACKAGES)) + r"/"), ""),
    (re.compile(r"(?:~|/)[^\s\"'<>:]*/(?:site|dist)-packages/"), ""),
    (re.compile(r"/(?:tmp|var)/[^\s\"'<>]*ipykernel_\d+/(\d+)\.py"), r"<cell \1>"),
    (re.compile(r"\b0x[0-9a-f]{6,}"), "0x…"),
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
# The model of a view in its HTML, which a page without a kernel unpacks.
_PACKED = re.compile(r'(<script type="application/gzip" class="saem-data">)([^<]*)')


class ExecutionError(RuntimeError):
    """A lesson did not run as it says it does."""


class Client(NotebookClient):
    """Runs a notebook in a kernel of its own; Ctrl-C ends that kernel and the run.

    nbclient alone takes the signal for itself, ends the kernel, and fails on its absence.
    """

    interrupted = False

    async def async_start_new_kernel(self, **kwargs: Any) -> None:
        """Start the kernel, and from now on stop this run when Ctrl-C is pressed."""
        running = asyncio.current_task()

        def stop() -> None:
            self.interrupted, self.shutdown_kernel = True, "immediate"
            if running is not None:
                running.cancel()

        with contextlib.suppress(RuntimeError):  # Windows, or not the main thread
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop)
        await super().async_start_new_kernel(**kwargs)

    def run(self, environment: dict[str, str]) -> None:
        """Run all cells.  Raises KeyboardInterrupt, and what ``execute`` raises."""
        try:
            self.execute(env=environment)
        except (asyncio.CancelledError, Exception):
            if self.interrupted:
                raise KeyboardInterrupt from None
            raise


def execute(notebook: nbformat.NotebookNode, timeout: int = 300) -> None:
    """Run every cell and put the normalised outputs into ``notebook``.  Raises ExecutionError."""
    saem_facts = notebook.metadata["saem"]
    where = f"{saem_facts['language']}/{saem_facts['lesson']}"
    environment = dict(os.environ, **ENVIRONMENT)
    paths = [str(_PACKAGES), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
    client = Client(
        notebook, timeout=timeout, kernel_name="python3", record_timing=False,
        allow_errors=False, store_widget_state=False, coalesce_streams=True,
        # Without its warning, for each notebook, that the loopback interface is not encrypted.
        extra_arguments=["--log-level=ERROR"],
    )
    metadata = dict(notebook.metadata)
    try:
        client.run(environment)
    except CellExecutionError as error:
        raise ExecutionError(f"{where}: {error}") from error
    notebook.metadata = nbformat.from_dict(metadata)
    for number, cell in enumerate(_code(notebook), start=1):
        raised = any(out.output_type == "error" for out in cell.outputs)
        if not raised and RAISES in cell.metadata.get("tags", ()):
            raise ExecutionError(f"{where}, cell {cell.id}: tagged {RAISES}, but nothing raised.")
        cell.execution_count = number
        cell.outputs = [_normal(out, number) for out in cell.outputs]


def is_card(output: nbformat.NotebookNode) -> bool:
    """Whether this is the card of an error: it says in the reader's language what the error
    beside it says."""
    models = (v for k, v in output.get("data", {}).items() if k.startswith("application/vnd.saem."))
    return any(isinstance(model, dict) and model.get("kind") == "error" for model in models)


def _code(notebook: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
    return (cell for cell in notebook.cells if cell.cell_type == "code")


def _normal(output: nbformat.NotebookNode, number: int) -> nbformat.NotebookNode:
    if "execution_count" in output:
        output.execution_count = number
    if output.output_type == "stream":
        output.text = normal_text(output.text)
    elif output.output_type == "error":
        output.evalue = normal_text(output.evalue)
        output.traceback = [normal_text(line) for line in output.traceback]
    else:
        for mime, value in output.data.items():
            if mime == "text/html":
                value = _PACKED.sub(_normal_packed, value)
            if mime.startswith("text/") or mime.endswith("json"):
                output.data[mime] = _normal_value(value)
    return output


def _normal_value(value: Any) -> Any:
    """A text, or all texts in a JSON value, without what is of this machine or process."""
    if isinstance(value, str):
        return normal_text(value)
    if isinstance(value, dict):
        return type(value)((key, _normal_value(item)) for key, item in value.items())
    if isinstance(value, list):
        return [_normal_value(item) for item in value]
    return value


def _normal_packed(found: re.Match[str]) -> str:
    text = normal_text(gzip.decompress(base64.b64decode(found[2])).decode())
    return found[1] + base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def error_text(output: nbformat.NotebookNode) -> str:
    """The traceback of an output of type error, without the colours of terminals."""
    return _ANSI.sub("", "\n".join(output.traceback))


def normal_text(text: str) -> str:
    """Text without paths of this machine and addresses of this process."""
    for pattern, replacement in _NORMAL:
        text = pattern.sub(replacement, text)
    return text
