"""How is JupyterLab started for a learner: where, in which language, and how safely?

The server listens on loopback only and keeps Jupyter's own token.  What we set (language, no news
pop-ups, a window layout of its own) is in ``.saem/`` inside the working folder and in the
environment of this one process; the learner's own Jupyter settings are neither read nor written
here, and where they differ, they win.

Read before: ``saem.cli.lessons``.  Read after: ``saem.cli.commands``.
Invariant: no file outside the working folder is written (``tests/kernel/test_cli.py``).
"""

from __future__ import annotations

import importlib.util
import json
import locale
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from saem.cli.lessons import PRIVATE
from saem.core.files import write_whole
from saem.core.lazy import later

locales: Any = later("saem.observe.language")  # its room takes 60 ms to import

LOOPBACK = "127.0.0.1"
FIRST_PORT = 8888
PORTS_TRIED = 50
# JupyterLab's own names for its display languages; English is its default.
DISPLAY_LANGUAGE = {"ko": "ko_KR"}


class ServerError(Exception):
    """JupyterLab cannot be started; the message says what to try."""


def choose_language(wanted: str | None, environment: Mapping[str, str]) -> str:
    """The language asked for, else that of the user's locale, else English."""
    if wanted is not None:
        return wanted
    for name in ("SAEM_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = environment.get(name, "")
        if value:
            break
    else:
        value = locale.getlocale()[0] or ""
    return locales.from_locale(value)


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        if os.name != "nt":  # there, this option would share a port that is in use
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def choose_port(wanted: int | None) -> int:
    """The port asked for, else the first free one from 8888 on.

    Raises: ServerError when the port is in use, or all those tried are.
    """
    if wanted is not None:
        if is_free(wanted):
            return wanted
        raise ServerError(
            f"Port {wanted} on {LOOPBACK} is in use or not allowed. "
            f"Try another (saem lab --port {min(wanted + 1, 65535)}), or leave --port out."
        )
    for port in range(FIRST_PORT, FIRST_PORT + PORTS_TRIED):
        if is_free(port):
            return port
    raise ServerError(
        f"Ports {FIRST_PORT} to {FIRST_PORT + PORTS_TRIED - 1} are all in use. "
        "Stop a running JupyterLab, or name a free port: saem lab --port 9999"
    )


def write_settings(folder: Path, language: str) -> None:
    """Store JupyterLab's defaults for this working folder: display language, no news pop-ups."""
    defaults: dict[str, dict[str, object]] = {
        "@jupyterlab/apputils-extension:notification": {
            "fetchNews": "false",
            "checkForUpdates": False,
        },
    }
    if language in DISPLAY_LANGUAGE:
        defaults["@jupyterlab/translation-extension:plugin"] = {
            "locale": DISPLAY_LANGUAGE[language]
        }
    path = folder / PRIVATE / "jupyter" / "labconfig" / "default_setting_overrides.json"
    write_whole(path, (json.dumps(defaults, indent=1) + "\n").encode())


def make_environment(folder: Path, language: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """The server's environment: the inherited one, our settings, and this Python's kernel."""
    private = folder.resolve() / PRIVATE
    config = [str(private / "jupyter")]
    if inherited.get("JUPYTER_CONFIG_PATH"):
        config.append(inherited["JUPYTER_CONFIG_PATH"])
    return {
        **inherited,
        "SAEM_LANG": language,
        "JUPYTER_CONFIG_PATH": os.pathsep.join(config),
        "JUPYTERLAB_WORKSPACES_DIR": str(private / "workspaces"),
        # A kernel named python3 in the user's home must not be found before this environment's own.
        "JUPYTER_PREFER_ENV_PATH": "1",
    }


def make_command(folder: Path, lesson: Path, port: int, browser: bool, retry: bool = False
                 ) -> list[str]:
    """The command line that starts JupyterLab on the lesson, for this machine only.

    With ``retry`` the server takes a later port if another program took this one in the meantime.
    """
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.ip={LOOPBACK}",
        f"--ServerApp.port={port}",
        f"--ServerApp.port_retries={PORTS_TRIED if retry else 0}",
        "--ServerApp.allow_remote_access=False",
        f"--ServerApp.root_dir={folder.resolve()}",
        f"--LabApp.default_url=/lab/tree/{quote(lesson.as_posix())}",
        f"--ServerApp.open_browser={browser}",
        "--Application.log_level=WARN",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # a container; the loopback and token hold all the same
    return command


def require_jupyterlab() -> None:
    """Raises ServerError, with the extra to install, when JupyterLab is missing."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise ServerError(
            f"JupyterLab is not installed in this Python ({sys.executable}). "
            "Try: pip install 'saem[lab]'"
        )


def run_server(command: list[str], environment: Mapping[str, str]) -> int:
    """Run JupyterLab until it ends; returns its exit status.

    Ctrl-C reaches the server by itself, and it asks before it stops. SIGTERM is passed to it, so
    that no server is left behind.
    """
    with subprocess.Popen(command, env=dict(environment)) as server:
        before = signal.signal(signal.SIGTERM, lambda number, frame: server.terminate())
        try:
            while True:
                try:
                    return server.wait()
                except KeyboardInterrupt:
                    continue
        finally:
            signal.signal(signal.SIGTERM, before)
