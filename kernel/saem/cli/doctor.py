"""What is installed here, what runs, and what is missing?

Every finding is a line with a name, what was found, and, when something is missing, what to try.

Read before: ``saem.cli.commands``.  Read after: nothing.
Invariant: the doctor never fails on what it examines; a broken part is a finding.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from saem.cli.cache import shown
from saem.cli.lessons import LANGUAGES, LessonError, find_lessons

ENGINE = ("numpy", "jaxlib", "ml_dtypes", "opt_einsum")
LENS = ("ipython", "ipywidgets", "anywidget", "graphviz", "matplotlib")
LAB = ("jupyterlab", "ipykernel", "jupyterlab-language-pack-ko-KR", "jupytext", "nbclient", "polib")


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report; `cure` is empty when all is well."""

    name: str
    found: str
    cure: str = ""
    needed: bool = False  # whether the engine itself cannot run without it


def version_of(distribution: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def examine() -> Iterator[Finding]:
    """All findings, engine first."""
    yield Finding("saem", version_of("saem") or "not installed (run from a clone)")
    yield Finding("Python", f"{platform.python_version()} at {sys.executable}")
    for extra, distributions in ((None, ENGINE), ("lens", LENS), ("lab", LAB)):
        for name in distributions:
            yield _package(name, extra)
    yield _jax()
    yield _devices()
    yield _compile_cache()
    yield _lessons()
    yield _extension()
    yield _graphviz()
    yield _korean_font()


def _package(name: str, extra: str | None) -> Finding:
    version = version_of(name)
    if version is not None:
        return Finding(name, version)
    wanted = "saem" if extra is None else f"saem[{extra}]"
    return Finding(name, "missing", f"pip install '{wanted}'", needed=extra is None)


def _jax() -> Finding:
    version = version_of("jax")
    if version is None:
        return Finding("jax", "not installed, and not needed")
    return Finding("jax", f"{version} (not used: saem and jax cannot share a process)")


def _devices() -> Finding:
    try:
        devices = importlib.import_module("saem").devices()
    except Exception as error:  # whatever is broken there is the finding
        reason = str(error).splitlines()[0] if str(error) else ""
        return Finding(
            "devices", f"{type(error).__name__}: {reason}", "pip install -U saem", needed=True
        )
    found = ", ".join(str(device) for device in devices)
    if shutil.which("nvidia-smi") and all(device.platform == "cpu" for device in devices):
        return Finding("devices", f"{found}; the NVIDIA GPU is not used",
                       "pip install 'saem[cuda13]'")
    return Finding("devices", found)


def _compile_cache() -> Finding:
    told = shown()
    found = f"{told.programs} programs in {told.folder}" if told.folder else "none"
    if not told.problem:
        return Finding("compile cache", found)
    return Finding("compile cache", f"{found}; {told.problem}", "saem cache --help")


def _lessons() -> Finding:
    try:
        place = find_lessons()
    except LessonError as error:
        return Finding("lessons", "missing", str(error))
    counts = [f"{len(list((place / name).glob('*.ipynb')))} {name}" for name in LANGUAGES]
    return Finding("lessons", f"{', '.join(counts)} in {place}")


def _extension() -> Finding:
    if importlib.util.find_spec("jupyter_core") is None:
        return Finding("JupyterLab panel", "missing", "pip install 'saem[lab]'")
    paths = importlib.import_module("jupyter_core.paths").jupyter_path("labextensions")
    for path in paths:
        if (Path(path) / "saem-lens" / "package.json").is_file():
            return Finding("JupyterLab panel", str(Path(path) / "saem-lens"))
    return Finding("JupyterLab panel", "missing", "pip install --force-reinstall 'saem[lab]'")


def _graphviz() -> Finding:
    dot = shutil.which("dot")
    if dot is not None:
        return Finding("graphviz program", dot)
    return Finding(
        "graphviz program",
        "not on PATH (only `Digraph` objects shown outside JupyterLab need it)",
        "apt-get install graphviz, or brew install graphviz",
    )


def is_korean(font: str) -> bool:
    """Return whether a font, by its name or its file, is one that lessons draw Korean with."""
    return any(part in font for part in ("Nanum", "CJK KR", "NotoSansCJK"))


def _korean_font() -> Finding:
    if importlib.util.find_spec("matplotlib") is None:
        return Finding("Korean font", "unknown without matplotlib", "pip install 'saem[lens]'")
    manager = importlib.import_module("matplotlib.font_manager")
    names = sorted({font.name for font in manager.fontManager.ttflist if is_korean(font.name)})
    if names:
        return Finding("Korean font", ", ".join(names[:3]))
    if any(map(is_korean, manager.findSystemFonts())):
        return Finding("Korean font", "installed after matplotlib made its list of fonts",
                       f"delete {importlib.import_module('matplotlib').get_cachedir()}/fontlist-*")
    return Finding(
        "Korean font", "none found for plots", "apt-get install fonts-nanum, or install NanumGothic"
    )
