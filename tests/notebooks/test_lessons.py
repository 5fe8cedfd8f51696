"""Does every lesson run, in every language, and show what the real JAX shows?

Each lesson is executed once a language.  What it shows is compared with the notebook in the tree,
with the other language, and with the golden outputs that the real JAX made (``make_golden.py``).

Read before: ``make_golden.py``, ``ran_lessons.py``.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import nbformat
import pytest
from ran_lessons import TREE, executed

import saem  # noqa: F401 - its errors are looked up
from saem.l10n import build as building
from saem.l10n import pycode
from saem.l10n.execute import NONDETERMINISTIC, RAISES, is_card, normal_text
from saem.l10n.figures import text_of
from saem.l10n.lint import lint
from saem.l10n.lint.structure import differences
from saem.l10n.source import read

LANGUAGES = (TREE.source_language, *TREE.languages)
LESSONS = [path.stem for path in TREE.lessons()]
GOLDEN = Path(__file__).parent / "golden"
# What float32 sums may differ by between machines and thread counts.
TOLERANCE = 2e-5
# A cell whose error is of JAX's class, but names other functions or values than JAX's does, because
# the engine knows the caller's and JAX its own.
OWN_MESSAGE = "own-message"
_NUMBER = re.compile(r"[-+]?\d+\.\d*(?:e[-+]?\d+)?|[-+]?\d+e[-+]?\d+")

every_lesson = pytest.mark.parametrize("lesson", LESSONS)
every_notebook = pytest.mark.parametrize(
    ("lesson", "language"), [(name, code) for name in LESSONS for code in LANGUAGES]
)


def stored(lesson, language):
    """The notebook in the tree."""
    return nbformat.read(TREE.built(lesson, language), as_version=4)


def code_cells(notebook, without=NONDETERMINISTIC):
    return [c for c in notebook.cells
            if c.cell_type == "code" and without not in c.metadata.get("tags", ())]


def is_gate(output):
    return "saem-gate" in output.get("data", {}).get("text/html", "")


def shown(cell):
    """What a cell shows, without what may differ between languages: kinds and texts."""
    found = []
    for output in cell.outputs:
        if is_card(output):
            continue  # it says what the error beside it says (test_errors_bring_their_card)
        if is_gate(output):
            text = output.data["text/html"]
            found.append(("gate", "".join(re.findall(r'data-(?:gate|state)="[^"]*"', text))))
        elif output.output_type == "stream":
            found.append((output.name, output.text))
        elif output.output_type == "error":
            found.append((output.ename, without_place(output.evalue)))
        else:
            found.append(("mimes", " ".join(sorted(output.data))))
            if "image/png" not in output.data:
                found.append(("text", output.data.get("text/plain", "")))
    return found


def without_place(message):
    """An error's message without the line that names the cell, which each language does its way."""
    return "\n".join(line for line in message.splitlines() if not line.startswith("  in "))


def is_a(name, expected):
    """Whether the error called ``name`` is caught where JAX's ``expected`` is."""
    return any(expected in [parent.__name__ for parent in kind.__mro__]
               for kind in known_errors(Exception) if kind.__name__ == name)


def known_errors(base):
    """All classes of errors, of Python, jaxlib and the engine."""
    yield base
    for kind in base.__subclasses__():
        yield from known_errors(kind)


def assert_same_text(one, two, where):
    """Equal texts, but for what floats may differ by."""
    assert _NUMBER.sub("#", one).split() == _NUMBER.sub("#", two).split(), where
    for a, b in zip(_NUMBER.findall(one), _NUMBER.findall(two), strict=True):
        assert abs(float(a) - float(b)) <= TOLERANCE * max(1.0, abs(float(b))), (where, a, b)


def in_english(text, lesson, language):
    """A text that a lesson printed, with the lesson's own strings in English again."""
    file = TREE.strings(language)
    strings = json.loads(file.read_text(encoding="utf-8"))[lesson] if file.is_file() else {}
    for english, other in sorted(strings.items(), key=lambda pair: -len(pair[1])):
        text = text.replace(other, english)
    return text


def assert_same_outputs(one, two, lesson="", language=TREE.source_language):
    for a, b in zip(code_cells(one), code_cells(two), strict=True):
        left, right = shown(a), shown(b)
        if language != TREE.source_language:
            right = [(kind, in_english(text, lesson, language)) for kind, text in right]
        assert [kind for kind, _ in left] == [kind for kind, _ in right], a.id
        for (_, text), (_, other) in zip(left, right, strict=True):
            assert_same_text(text, other, a.id)


def test_the_built_notebooks_are_up_to_date():
    assert building.check(TREE) == []


def test_lint_is_clean():
    assert lint(TREE) == []


@every_notebook
def test_it_shows_what_the_notebook_in_the_tree_shows(lesson, language):
    assert_same_outputs(executed(lesson, language), stored(lesson, language))


@every_lesson
@pytest.mark.parametrize("language", TREE.languages)
def test_languages_differ_in_words_only(lesson, language):
    english, other = stored(lesson, TREE.source_language), stored(lesson, language)
    assert list(differences(english, other)) == []
    assert_same_outputs(executed(lesson, TREE.source_language), executed(lesson, language),
                        lesson, language)


@every_lesson
def test_it_shows_what_jax_shows(lesson):
    kept = GOLDEN / f"{lesson}.json"
    assert kept.is_file(), f"CONTRIBUTING.md, Add a lesson: `golden_of.py {lesson}` makes it"
    golden = json.loads(kept.read_text(encoding="utf-8"))["cells"]
    cells = {c.id: c for c in code_cells(executed(lesson, TREE.source_language))}
    assert set(golden) == {c.id for c in read(TREE.lesson(lesson)).cells
                           if c.kind == "code" and NONDETERMINISTIC not in c.tags}
    for identity, expected in golden.items():
        outputs = [o for o in cells[identity].outputs if not is_gate(o)]
        errors = [o for o in outputs if o.output_type == "error"]
        assert len(errors) == bool(expected["error"]), identity
        assert all(is_a(e.ename, expected["error"][0]) for e in errors), identity
        if errors and OWN_MESSAGE not in cells[identity].metadata["tags"]:
            first_sentence = normal_text(expected["error"][1]).split(". ")[0].rstrip(".")
            assert errors[0].evalue.replace("Saem", "JAX").find(first_sentence) >= 0, identity
        printed = "".join(o.text for o in outputs if o.output_type == "stream")
        assert_same_text(printed, expected["printed"], identity)
        values = [o.data["text/plain"] for o in outputs if o.output_type == "execute_result"]
        if "lens" not in cells[identity].metadata.get("tags", ()):
            assert_same_text("".join(values), expected["value"] or "", identity)


@every_notebook
def test_cells_raise_exactly_where_they_say(lesson, language):
    for cell in code_cells(executed(lesson, language), without=None):
        raised = any(o.output_type == "error" for o in cell.outputs)
        assert raised == (RAISES in cell.metadata.get("tags", ())), cell.id


@every_notebook
def test_errors_bring_their_card(lesson, language):
    """Of the engine's errors, in the reader's language, after the traceback."""
    for cell in code_cells(executed(lesson, language), without=None):
        for at, output in enumerate(cell.outputs):
            if is_card(output):
                model = next(v for k, v in output.data.items() if k.startswith("application/"))
                before = cell.outputs[at - 1]
                assert (before.output_type, before.ename) == ("error", model["name"]), cell.id
                title = model["title"][language].replace("`", "")
                shown = re.sub(r"<[^>]*>", "", html.unescape(output.data["text/html"]))
                assert title in shown, cell.id
            elif output.output_type == "error" and output.ename.startswith("Tracer"):
                assert is_card(cell.outputs[at + 1]), cell.id


@every_notebook
def test_nothing_is_written_to_stderr(lesson, language):
    # matplotlib warns there of missing glyphs, and Python of everything else.
    for cell in code_cells(executed(lesson, language), without=None):
        assert [o.text for o in cell.outputs if o.get("name") == "stderr"] == [], cell.id


@every_notebook
def test_plots_are_there(lesson, language):
    for cell in code_cells(executed(lesson, language), without=None):
        if "plt.show()" in cell.source:
            assert any("image/png" in o.get("data", {}) for o in cell.outputs), cell.id


@every_notebook
def test_figures_are_described(lesson, language):
    for cell in code_cells(stored(lesson, language), without=None):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                assert text_of(output), cell.id


@every_notebook
def test_no_path_of_a_machine_is_stored(lesson, language):
    text = TREE.built(lesson, language).read_text(encoding="utf-8")
    assert re.findall(r"(?<![\w.])/(?:home|root|work|tmp|Users|opt|usr)/[^\s\"\\]*", text) == []


@every_lesson
def test_it_asks_at_least_three_times(lesson):
    source = "\n".join(c.source for c in read(TREE.lesson(lesson)).cells if c.kind == "code")
    asked = re.findall(r"predict\.(?:choice|number|text)\(", source)
    judged = re.findall(r"\.(?:judge|watch)\(", source)
    assert len(asked) >= 3
    assert len(judged) >= len(asked)


@every_lesson
def test_gate_names_are_unique(lesson):
    source = "\n".join(pycode.python(c.source) for c in read(TREE.lesson(lesson)).cells
                       if c.kind == "code")
    names = re.findall(r"predict\.(?:choice|number|text)\(\s*\"([^\"]+)\"", source)
    assert len(names) == len(set(names))
