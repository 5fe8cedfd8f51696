"""Is every kind of fault in a translation caught, and by the rule that is about it?

Thirty kinds of faults are put, one at a time, into a copy of the first lessons, at places that
a seeded generator picks.  Without a fault the copy is clean, so whatever is found is the fault.
"""

from __future__ import annotations

import random
import re
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from saem.l10n import build as building
from saem.l10n import catalog, glossary, project
from saem.l10n.lint import lint
from saem.l10n.lint.base import prose
from saem.l10n.merge import merge
from saem.l10n.review import review, sign, signature
from saem.l10n.source import read
from saem.l10n.units import units

ROOT = Path(__file__).parents[2]
LESSONS = ("01-arrays", "02-pure-functions", "09-random")
SEEDS = (1, 2, 3)
TERMS = glossary.load(ROOT / "notebooks" / "glossary.yml")


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """The first lessons that are there, as they are in this tree."""
    root = tmp_path_factory.mktemp("clean")
    (root / "notebooks" / "locale" / "ko").mkdir(parents=True)
    for name in ("lessons.toml", "glossary.yml"):
        shutil.copy(ROOT / "notebooks" / name, root / "notebooks")
    for lesson in LESSONS:
        if (ROOT / "notebooks" / f"{lesson}.md").is_file():
            shutil.copy(ROOT / "notebooks" / f"{lesson}.md", root / "notebooks")
            po = Path("notebooks/locale/ko") / f"{lesson}.po"
            shutil.copy(ROOT / po, root / po)
            for language in ("en", "ko"):
                (root / language).mkdir(exist_ok=True)
                shutil.copy(ROOT / language / f"{lesson}.ipynb", root / language)
    for language in ("en", "ko"):  # the glossary has no source but glossary.yml
        shutil.copy(ROOT / language / "glossary.md", root / language)
    tree = project.find(root)
    building.write_texts(tree)
    assert lint(tree) == []
    assert building.check(tree) == []
    return root


@pytest.fixture
def tree(clean, tmp_path):
    shutil.copytree(clean, tmp_path / "copy")
    return project.find(tmp_path / "copy")


# --- faults in a translation: what the unit becomes, None where the fault does not fit ------------

Change = Callable[[str, str, str, random.Random], str | None]


def replaced(pattern, by):
    """Replace one match of ``pattern``, picked by the generator, where there is one."""

    def change(kind, english, korean, rng):
        places = list(re.finditer(pattern, korean))
        if not places:
            return None
        place = rng.choice(places)
        new = by(place) if callable(by) else by
        return korean[:place.start()] + new + korean[place.end():]

    return change


def in_prose(change, kinds=("text", "list")):
    return lambda kind, english, korean, rng: (
        change(kind, english, korean, rng) if kind in kinds else None)


def other_word(kind, english, korean, rng):
    fitting = [t for t in TERMS.terms if t.rejected and t.occurs(prose(english))
               and t.accepted[0] in prose(korean)]
    if not fitting:
        return None
    term = rng.choice(fitting)
    for word in term.accepted:
        korean = korean.replace(word, term.rejected[0])
    return korean


def lost_word(kind, english, korean, rng):
    fitting = [t for t in TERMS.terms if t.occurs(prose(english))]
    for word in rng.choice(fitting).accepted if fitting else ():
        korean = korean.replace(word, "것")
    return korean if fitting else None


IN_TRANSLATION: dict[str, tuple[str, Change]] = {
    "particle after code": ("particle", replaced(r"(?<=`)을(?= )|(?<=`)를(?= )", lambda m: {
        "을": "를", "를": "을"}[m[0]])),
    "particle after Hangul": ("particle", replaced(r"(?<=[각-힣])을(?= )", lambda m: "를")),
    "particle after Latin": ("particle", replaced(
        r"(?<=NumPy)와|(?<=Python)은|(?<=Saem)은", lambda m: {"와": "과", "은": "는"}[m[0]])),
    "dual form": ("dual-form", replaced(r"(?<=[가-힣])[을를](?= )", "을(를)")),
    "plain register": ("register", in_prose(replaced(r"습니다\.(?=\s|$)", "다."), ("text",))),
    "spoken register": ("register", in_prose(replaced(r"합니다\.(?=\s|$)", "해요."), ("text",))),
    "decomposed Hangul": ("nfc", replaced(r"[가-힣]{2,}", lambda m: unicodedata.normalize(
        "NFD", m[0]))),
    "emphasis that does not close": ("emphasis", in_prose(replaced(
        r"(?<= )([가-힣]+)(은|는|을|를)(?= )", lambda m: f"**{m[1]}(x)**{m[2]}"))),
    "rejected word": ("glossary", in_prose(other_word)),
    "term left out": ("glossary", in_prose(lost_word)),
    "changed code span": ("code-kept", replaced(r"`([^`\n]+)`", lambda m: f"`{m[1]}_x`")),
    "lost code span": ("code-kept", lambda kind, english, korean, rng: (
        korean.replace(f"`{m[1]}`", m[1]) if (m := re.search(r"`([^`\n]+)`", korean)) else None)),
    "changed formula": ("code-kept", replaced(r"\$([^$\n]+)\$(?!\d)", lambda m: f"${m[1]}+1$")),
    "changed number": ("numbers-kept", lambda kind, english, korean, rng: replaced(
        r"(?<![\w.`$])(\d+)(?=[가-힣 ])", lambda m: str(int(m[1]) + 17))(
            kind, english, korean, rng) if korean == prose(korean) else None),
    "changed link": ("links-kept", replaced(r"\]\(([^)\s]+)\)", lambda m: f"]({m[1]}x)")),
    "lost link": ("links-kept", replaced(r"\[([^\]]+)\]\([^)\s]+\)", lambda m: m[1])),
    "glyph that no font has": ("glyphs", lambda kind, english, korean, rng: (
        korean + "🎲" if kind == "string" else None)),
    "lost heading mark": ("blocks-kept", lambda kind, english, korean, rng: (
        korean.lstrip("# ") if kind == "heading" else None)),
    "heading of another level": ("blocks-kept", lambda kind, english, korean, rng: (
        f"#{korean}" if kind == "heading" else None)),
    "two paragraphs": ("blocks-kept", in_prose(replaced(r"(?<=니다\.) ", "\n\n"), ("text",))),
    "HTML that was added": ("html-kept", in_prose(replaced(r" ", " <br> "), ("text",))),
    "turned direction": ("direction-marks", replaced(r" ", " \u202e")),
    "no translation": ("untranslated", lambda kind, english, korean, rng: ""),
}


@pytest.fixture(scope="module")
def translated(clean):
    """Every unit of the lessons with its translation: the lesson, the unit, the Korean."""
    tree = project.find(clean)
    found = []
    for path in tree.lessons():
        entries = catalog.active(catalog.load(tree.catalog(path.stem, "ko"), "ko"))
        found += [(path.stem, unit, entries[unit.context].msgstr) for unit in units(read(path))]
    return found


def faulty(translated, change, rng):
    """Return where a fault fits: the lesson, the unit's context, and the faulty Korean."""
    changed = [(lesson, unit, korean, change(unit.kind, unit.text, korean, rng))
               for lesson, unit, korean in translated]
    return [(lesson, unit.context, text) for lesson, unit, korean, text in changed
            if text is not None and text != korean]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", IN_TRANSLATION)
def test_a_fault_in_a_translation_is_caught(tree, translated, fault, seed):
    rule, change = IN_TRANSLATION[fault]
    rng = random.Random(seed)
    lesson, context, text = rng.choice(faulty(translated, change, rng))
    po = catalog.load(tree.catalog(lesson, "ko"), "ko")
    catalog.active(po)[context].msgstr = text
    catalog.save(po, tree.catalog(lesson, "ko"))
    found = lint(tree)
    assert rule in {f.rule for f in found}, text
    assert {(f.file, f.unit) for f in found} == {(f"ko/{lesson}", context)}


def test_every_fault_has_a_place(translated):
    """So that each fault above is tried."""
    without = [fault for fault, (_, change) in IN_TRANSLATION.items()
               if not faulty(translated, change, random.Random(0))]
    assert without == []


# --- faults in sources and built notebooks -------------------------------------------------------


def lesson_text(tree, change):
    source = tree.lesson("01")
    text = change(source.read_text())
    assert text != source.read_text()
    source.write_text(text)


def test_an_english_that_changed_without_a_merge_is_caught(tree):
    lesson_text(tree, lambda text: text.replace("You need to know", "You have to know"))
    assert [f.rule for f in lint(tree)] == ["untranslated"]


def test_a_stale_unit_is_caught_after_a_merge(tree):
    lesson_text(tree, lambda text: text.replace("You need to know", "You have to know"))
    path = tree.catalog("01-arrays", "ko")
    po, report = merge(units(read(tree.lesson("01"))), catalog.load(path, "ko"))
    catalog.save(po, path)
    assert report.stale == 1
    (found,) = lint(tree)
    assert (found.rule, "stale" in found.message) == ("untranslated", True)


@pytest.mark.parametrize("change", [
    lambda nb: nb.cells.insert(5, nb.cells.pop(8)),
    lambda nb: nb.cells.pop(7),
    lambda nb: next(c for c in nb.cells if c.id == "arange").update(source="x = jnp.arange(11)"),
    lambda nb: next(c for c in nb.cells if c.id == "devices").metadata.update(tags=[]),
    lambda nb: nb.cells[2].update(source=nb.cells[2].source + "\n\n덧붙인 말입니다."),
], ids=["swapped cells", "lost cell", "changed code", "lost tag", "edited by hand"])
def test_a_fault_in_a_built_notebook_is_caught(tree, change):
    path = tree.built("01-arrays", "ko")
    notebook = nbformat.read(path, as_version=4)
    change(notebook)
    nbformat.write(notebook, path)
    (problem,) = building.check(tree)
    assert problem.startswith("ko/01-arrays.ipynb differs from its source or was edited by hand")


def test_an_edit_after_the_review_is_caught(tree):
    path = tree.catalog("01-arrays", "ko")
    po = catalog.load(path, "ko")
    entry = catalog.active(po)["title|text|0"]
    entry.tcomment = ""
    sign(entry, "jiwon")
    review(entry, "minsu")
    assert catalog.state(entry) == "reviewed"
    entry.msgstr += " 그렇습니다."
    assert signature(entry) is None
    assert catalog.state(entry) == "translated"
