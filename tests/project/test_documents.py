"""Do the files and names that the project's pages mention exist, and do their links lead somewhere?

A page is right only as long as what it names is there: a renamed file or function fails here.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/decisions.md",
         "docs/differences.md"]
SOURCES = {".py", ".ts", ".js", ".mjs", ".toml", ".txt", ".calls", ".yml", ""}
FILE = re.compile(r"[\w.*/-]*[\w*-]\.(?:py|pyi|md|ts|txt|yml|toml|calls|po|ipynb)")
# Names of what is made, or belongs to others: a learner's folder, a name to fill in, flags of XLA.
ELSEWHERE = {
    "saem-lessons/", "XDG_CACHE_HOME/saem", "notebooks/NN-name.md", "01-….new.ipynb",
    "notebooks/locale/ko/NN-name.po", "train.py", "xla_llvm_disable_expensive_passes",
}  # fmt: skip


@cache
def tracked() -> tuple[str, ...]:
    done = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                          cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git clone")
    return tuple(name for name in done.stdout.split("\0") if name and (ROOT / name).is_file())


@cache
def words() -> frozenset[str]:
    """Return every word of the sources, without these pages and the kept replies of JAX."""
    found: set[str] = set()
    for name in tracked():
        path = Path(name)
        if path.suffix in SOURCES and not name.startswith("tests/kernel/answers/") \
                and name != "tests/project/test_documents.py":
            found.update(re.findall(r"\w+", (ROOT / name).read_text("utf-8", "replace")))
    return frozenset(found)


def exists(name: str) -> bool:
    """Return whether a file or folder is in the tree: by its full path, or by the end of one."""
    wanted = "/" + name.rstrip("/")
    pattern = re.compile(re.escape(wanted).replace(r"\*", "[^/]*") + "(/|$)")
    return any(pattern.search("/" + path) for path in tracked())


def missing(text: str) -> list[str]:
    """Return what ``text`` has in backticks and is neither a file nor a word of the sources."""
    found = []
    for name in re.findall(r"`([^`\n]+)`", text):
        if name in ELSEWHERE:
            continue
        if FILE.fullmatch(name) or re.fullmatch(r"[\w./-]+/", name):
            found += [] if exists(name) else [name]
        else:
            found += [word for word in re.findall(r"[A-Za-z_]\w{3,}", name) if word not in words()]
    return found


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_exists(page):
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text("utf-8"), flags=re.S | re.M)
    assert missing(text) == []


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_somewhere(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        aim = (path.parent / name) if name else path
        assert aim.exists(), target
        assert not anchor or anchor in anchors(aim.read_text("utf-8")), target


def test_a_file_and_a_function_that_do_not_exist_are_found():
    gone = "tests/kernel/test_go" + "ne.py"
    lost = "no_such_fun" + "ction"
    assert missing(f"`{gone}` and `core/trace.py` and `core.trace.{lost}`") == [gone, lost]
