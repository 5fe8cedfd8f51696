"""How does a test run JupyterLab, with the built extension, for itself alone?

``Lab`` starts a server on loopback in a folder of its own: settings, data and runtime files are
apart from the user's, and the extension is found through ``JUPYTER_PATH`` without installing it.

Read before: nothing.  Read after: ``conftest.py``, ``test_lab.py``.
Invariant: leaving ``Lab`` ends the server and its kernels.
"""

from __future__ import annotations

import json
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from types import TracebackType
from typing import Any

import nbformat
from playwright.sync_api import Page, expect

KERNEL = pathlib.Path(__file__).parents[2] / "kernel"
LANGUAGES = {"ko": "ko_KR", "en": "default"}
# A page is asked again after so many milliseconds: by itself Playwright asks at every frame, for
# which the page then draws every frame.
POLLING = 100
# As when a page is loaded with a notebook: no launcher stands beside it.
OPEN = """async path => {
  const {shell, commands} = window.jupyterapp;
  await commands.execute('docmanager:open', {path});
  for (const widget of [...shell.widgets('main')]) {
    if (widget.id.startsWith('launcher')) widget.dispose();
  }
}"""


class Lab:
    """A running JupyterLab over a folder of notebooks."""

    def __init__(self, home: pathlib.Path, extension: pathlib.Path, language: str = "en",
                 app: str = "jupyterlab") -> None:
        self.home = home
        self.app = app
        self.notebooks = home / "notebooks"
        self.notebooks.mkdir(parents=True)
        self.token = secrets.token_hex(16)
        self.language = language
        share = home / "share" / "labextensions"
        share.mkdir(parents=True)
        shutil.copytree(extension, share / "saem-lens")
        self._process: subprocess.Popen[bytes] | None = None
        self.address = ""

    def __enter__(self) -> Lab:
        for plugin, values in self._settings().items():
            target = self.home / "settings" / "@jupyterlab" / f"{plugin}.jupyterlab-settings"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(json.dumps(values), encoding="utf-8")
        page = self.home / "config" / "labconfig" / "page_config.json"
        page.parent.mkdir(parents=True, exist_ok=True)
        # Else every page has the server start Node, to see whether JupyterLab must be built again.
        page.write_text(json.dumps({"buildCheck": False}), encoding="utf-8")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        command = [
            *(sys.executable, "-m", self.app, "--no-browser", "--ip=127.0.0.1"),
            *(f"--port={port}", "--ServerApp.port_retries=0", "--expose-app-in-browser"),
            *(f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={self.notebooks}"),
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--allow-root")
        with open(self.home / "server.log", "wb") as log:
            self._process = subprocess.Popen(
                command, env=self._environment(), cwd=self.home, stdout=log, stderr=log
            )
        self._wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _settings(self) -> dict[str, Any]:
        return {
            "translation-extension/plugin": {"locale": LANGUAGES[self.language]},
            "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
        }

    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [str(KERNEL), os.environ.get("PYTHONPATH")]))
        places = {
            "JUPYTER_PATH": "share",
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "IPYTHONDIR": "ipython",
        }
        own = {name: str(self.home / place) for name, place in places.items()}
        return {**os.environ, **own, "PYTHONPATH": path}

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self._process is not None
            if self._process.poll() is not None:
                break
            try:
                request = f"{self.address}/api?token={self.token}"
                with urllib.request.urlopen(request, timeout=5):
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.3)
        log = (self.home / "server.log").read_text(encoding="utf-8", errors="replace")
        raise RuntimeError(f"JupyterLab did not start:\n{log[-3000:]}")

    def write(self, name: str, *cells: str, kernel: str = "python3") -> None:
        """Write a notebook of code cells."""
        notebook = nbformat.v4.new_notebook(
            cells=[
                nbformat.v4.new_code_cell(source, id=f"cell-{i}")
                for i, source in enumerate(cells, start=1)
            ],
            metadata={"kernelspec": {"name": kernel, "display_name": kernel}},
        )
        nbformat.write(notebook, self.notebooks / name)

    def open(self, page: Page, name: str) -> None:
        """Open a notebook and wait until its kernel is at rest; a new page is loaded first."""
        if page.url.startswith(f"{self.address}/lab"):
            page.evaluate(OPEN, name)
        else:
            place = "notebooks" if self.app == "notebook" else "lab/tree"
            page.goto(f"{self.address}/{place}/{name}?token={self.token}&reset")
        expect(page.locator(".jp-NotebookPanel:visible")).to_be_visible(timeout=60_000)
        page.wait_for_function(
            "path => window.jupyterapp.shell.currentWidget?.context?.path === path",
            arg=name, timeout=60_000, polling=POLLING)
        self.rest(page)

    def close_all(self) -> None:
        """End all kernels, so that one test's do not slow the next."""
        for kind in ("sessions", "kernels"):
            for one in json.loads(self._ask("GET", kind)):
                self._ask("DELETE", f"{kind}/{one['id']}")

    def _ask(self, method: str, path: str) -> bytes:
        request = urllib.request.Request(
            f"{self.address}/api/{path}",
            method=method,
            headers={"Authorization": f"token {self.token}"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def rest(self, page: Page) -> None:
        """Wait until the visible notebook's kernel is idle."""
        page.wait_for_function(
            """() => {
              const {sessionContext} = window.jupyterapp.shell.currentWidget ?? {};
              return sessionContext?.isReady && sessionContext.session?.kernel?.status === 'idle';
            }""",
            timeout=60_000,
            polling=POLLING,
        )

    def command(self, page: Page, name: str) -> None:
        """Run a command of JupyterLab by its id."""
        page.evaluate("name => window.jupyterapp.commands.execute(name)", name)

    def run_all(self, page: Page) -> None:
        """Run all cells of the active notebook and wait for the last."""
        self.command(page, "notebook:run-all-cells")
        self.rest(page)
