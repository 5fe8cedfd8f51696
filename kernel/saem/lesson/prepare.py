"""How does Saem get what it needs into a Python where the real JAX already is, such as Colab's?

The setup cell of a lesson installs Saem without its dependencies and runs this file by its path,
since ``saem`` cannot be imported yet.  Everything that Saem needs is then installed as usual, but
for jaxlib: if the one that is there is of another version, the real JAX needs it, and replacing it
would break ``import jax``.  So Saem's own jaxlib goes into the folder ``saem_jaxlib`` beside the
package, where only ``saem._jaxlib`` looks.

Read before: nothing.  Read after: ``saem._jaxlib``, ``saem.l10n.assemble``.
Invariant: the jax and jaxlib that were there stay as they are (tests/notebooks/test_prepare.py).
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

FOLDER = "saem_jaxlib"
SAY = {
    "en": {
        "beside": "The jaxlib {found} here belongs to JAX and stays as it is. "
                  "Saem's own is in {folder}, and only Saem uses it.",
        "restart": "Saem is installed, but this kernel already uses the older {names}. "
                   "Restart the kernel (in Colab: Runtime > Restart session) and run this cell "
                   "again.",
    },
    "ko": {
        "beside": "여기에 있는 jaxlib({found})은 JAX가 쓰는 것이므로 그대로 둡니다. "
                  "Saem이 쓸 jaxlib은 {folder}에 따로 설치했고, Saem만 사용합니다.",
        "restart": "Saem을 설치했지만, 이 커널은 예전 버전을 이미 불러왔습니다({names}). "
                   "커널을 다시 시작하고(Colab에서는 런타임 > 세션 다시 시작) 이 셀을 다시 "
                   "실행해 주십시오.",
    },
}


class RestartNeeded(RuntimeError):
    """Everything is installed, and the kernel has to be started again to see it."""


Installer = Callable[..., None]


def needed(distribution: str = "saem", extra: str = "lens") -> list[str]:
    """What the installed distribution and its extra ask for, as pip is given it."""
    found = []
    for line in importlib.metadata.requires(distribution) or ():
        requirement, _, marker = (part.strip() for part in line.partition(";"))
        if not marker or re.fullmatch(rf"extra\s*==\s*['\"]{extra}['\"]", marker):
            found.append(requirement.replace(" ", ""))
    return found


def fits(version: str, requirement: str) -> bool:
    """Whether a version is one that the requirement (``name>=0.10.2,<0.13``) takes."""
    tests = {">=": tuple.__ge__, "<": tuple.__lt__, ">": tuple.__gt__, "<=": tuple.__le__}
    return all(tests[sign](_numbers(version), _numbers(bound))
               for sign, bound in re.findall(r"(>=|<=|<|>)([\d.]+)", requirement))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def versions(requirements: Iterable[str]) -> dict[str, str | None]:
    """The installed version of each required distribution; None if there is none."""
    found: dict[str, str | None] = {}
    for requirement in requirements:
        name = re.split(r"[^\w.-]", requirement)[0]
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def pip(*arguments: str) -> None:
    """Run pip for this Python.  Raises CalledProcessError."""
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet",
                    "--disable-pip-version-check", *arguments], check=True)


def prepare(language: str = "en", install: Installer = pip,
            package: Path = Path(__file__).parents[1]) -> None:
    """Install what Saem needs; ``package`` is the folder of the installed package.

    Raises RestartNeeded if this process has already imported something that was replaced, or a
    jaxlib that Saem cannot use.
    """
    say = SAY.get(language, SAY["en"])
    requirements = needed()
    jaxlib = next(r for r in requirements if r.startswith("jaxlib"))
    before = versions(requirements)
    found = before["jaxlib"]
    others = [r for r in requirements if r is not jaxlib]
    if found is None or fits(found, jaxlib):
        install(*requirements)
    else:
        install(*others)
        install("--no-deps", "--target", str(package.parent / FOLDER), jaxlib)
        print(say["beside"].format(found=found, folder=FOLDER))
    importlib.invalidate_caches()
    after = versions(others)
    stale = sorted(name for name, version in after.items()
                   if before[name] not in (None, version) and name in sys.modules)
    if "jaxlib" in sys.modules and found is not None and not fits(found, jaxlib):
        stale.append("jaxlib")
    if stale:
        raise RestartNeeded(say["restart"].format(names=", ".join(stale)))
