"""Does the team see how far it is, who does what, and why a word was chosen?"""

from __future__ import annotations

import datetime
import json

import pytest
from click.testing import CliRunner

from saem.l10n import catalog, glossary, team, terms
from saem.l10n.commands import l10n
from saem.l10n.glossary import GlossaryError
from saem.l10n.merge import merge
from saem.l10n.review import ReviewError, review, sign
from saem.l10n.source import read
from saem.l10n.units import units

TERMS = """\
# What we agreed on.
terms:
- term: array
  accepted: [배열]
  reading: 어레이
# A comment between entries.
- term: loss
  accepted: [손실]
  rejected: [로스]
  reason: {en: A plain word., ko: 쉬운 말입니다.}

readings: {code: 코드}
"""


def command(tree, *words):
    return CliRunner().invoke(l10n, ["--root", str(tree.root), *words])


@pytest.fixture
def translated(tree):
    """The small lesson, translated but for its second paragraph, one unit of it reviewed."""
    po, _ = merge(units(read(tree.lesson("01"))), catalog.empty("ko"))
    for entry in po:
        if entry.msgctxt != "maths|text|0":
            entry.msgstr = "번역"
    entries = catalog.active(po)
    sign(entries["title|text|0"], "jiwon")
    review(entries["title|text|0"], "minsu")
    catalog.save(po, tree.catalog("01-small", "ko"))
    return tree


def test_words_are_those_of_the_prose():
    assert team.words("First paragraph with `some code` and $x y$ 3 numbers.") == 5
    assert team.words("See [the page](http://a.b/c).") == 3


def test_status_counts_units_and_words(translated):
    (row,) = team.progress(translated)
    assert (row["units"], row["missing"], row["translated"], row["reviewed"]) == (7, 1, 5, 1)
    missing = team.words("Second paragraph.")
    assert row["words"] - row["words_translated"] == missing == 2


@pytest.mark.parametrize(("columns", "some"), [
    (120, ("lesson", "units", "words", "by", "01-small")),
    (80, ("missing", "reviewed", "01-small")),
])
def test_status_can_be_read_in_a_narrow_terminal(translated, monkeypatch, columns, some):
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = CliRunner().invoke(l10n, ["--root", str(translated.root), "status"]).output
    assert "…" not in shown
    assert all(word in shown for word in some)


def test_a_unit_that_the_file_lacks_is_missing_and_not_done(translated):
    path = translated.catalog("01-small", "ko")
    po = catalog.load(path, "ko")
    po[:] = [entry for entry in po if entry.msgctxt != "maths|text|0"]
    catalog.save(po, path)
    source = translated.lesson("01")
    long = "First paragraph" + " and more" * 200
    source.write_text(source.read_text().replace("First paragraph", long))
    for entry in po:
        entry.msgid = entry.msgid.replace("First paragraph", long)
    catalog.save(po, path)
    (row,) = team.progress(translated)
    assert (row["units"], row["missing"]) == (7, 1)
    table = command(translated, "status").output
    assert "99%" in table and "100%" not in table


def test_owners_are_kept_by_a_merge_and_are_two_people(translated):
    given = command(translated, "assign", "01", "--to", "jiwon", "--reviewer", "minsu")
    assert given.exit_code == 0
    command(translated, "merge")
    assert team.owners(translated, "01-small", "ko") == ("jiwon", "minsu")
    with pytest.raises(ReviewError, match="cannot review"):
        team.assign(translated, "01-small", "ko", "jiwon", "Jiwon")
    refused = command(translated, "assign", "01", "--to", "jiwon", "--reviewer", "jiwon")
    assert refused.exit_code == 1
    assert team.owners(translated, "01-small", "ko") == ("jiwon", "minsu")
    given = command(translated, "assign", "01", "--reviewer", "hana")
    assert "jiwon translates, hana reviews" in given.output
    assert command(translated, "assign", "01", "--reviewer", "JIWON").exit_code == 1
    assert team.owners(translated, "01-small", "ko") == ("jiwon", "hana")
    command(translated, "assign", "01", "--to", "", "--reviewer", "")
    assert team.owners(translated, "01-small", "ko") == ("", "")


def test_a_run_is_noted_and_grows_old(translated):
    assert command(translated, "status", "--max-age", "7").exit_code == 1
    done = command(translated, "run", "01", "--lang", "ko")
    assert (done.exit_code, done.output) == (0, "ko/01-small: green\n")
    assert command(translated, "status", "--max-age", "7").exit_code == 0

    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=8)
    (row,) = team.progress(translated, later)
    assert row["run_days"] == pytest.approx(8, abs=0.01)

    source = translated.lesson("01")
    source.write_text(source.read_text().replace("1 + 1", "1 + 2"))
    (row,) = team.progress(translated)
    assert row["run_days"] is None  # what ran is not what is there now
    late = command(translated, "status", "--max-age", "7")
    assert late.exit_code == 1
    assert "saem l10n run 01-small" in late.output


def test_a_build_that_runs_is_a_run(translated):
    assert command(translated, "build", "01", "--no-run").exit_code == 0
    assert team.progress(translated)[0]["run_days"] is None
    built = command(translated, "build", "01", "--lang", "ko")
    assert built.exit_code == 0, built.output
    assert team.progress(translated)[0]["run_days"] == pytest.approx(0, abs=0.01)


def test_pages_of_prose_are_counted_and_never_too_old(translated):
    (translated.notebooks / "rules.md").write_text(
        translated.lesson("01").read_text().split("```{code-cell}")[0])
    command(translated, "merge")
    command(translated, "run", "01", "--lang", "ko")
    lesson, page = team.progress(translated)
    assert (lesson["runs"], page["lesson"], page["runs"]) == (True, "rules", False)
    assert page["missing"] == page["units"] > 0
    assert command(translated, "status", "--max-age", "7").exit_code == 0


def test_a_run_that_fails_is_not_green(translated):
    source = translated.lesson("01")
    source.write_text(source.read_text().replace("1 + 1", "1 / 0"))
    failed = command(translated, "run", "01", "--lang", "ko")
    assert failed.exit_code == 1
    assert "ZeroDivisionError" in failed.output
    assert team.progress(translated)[0]["run_days"] is None


def test_a_term_shows_where_it_is_used(translated):
    translated.glossary.write_text(TERMS)
    source = translated.lesson("01")
    source.write_text(source.read_text().replace("Second paragraph.", "Two arrays."))
    command(translated, "merge")
    shown = json.loads(command(translated, "term", "show", "array", "--json").output)
    (use,) = shown["uses"]
    assert (use["unit"], use["english"], use["words"]) == ("maths|text|0", "Two arrays.", [])
    assert "maths|text|0: ?" in command(translated, "term", "show", "array").output


def test_a_term_is_proposed_then_decided_by_somebody_else(translated):
    path = translated.glossary
    path.write_text(TERMS)
    assert command(translated, "term", "propose", "loss", "손실값", "--by", "jiwon",
                   "--why", "함수와 구별하려고").exit_code == 0
    own = command(translated, "term", "decide", "loss", "손실값", "--by", "jiwon",
                  "--why-en", "x", "--why-ko", "y")
    assert own.exit_code == 1
    assert "someone else decides" in own.output
    terms.decide(path, "loss", "손실값", "minsu", "Apart from the function.", "함수와 구별합니다.")
    loss = terms.find(glossary.load(path), "loss")
    assert loss.accepted == ("손실값",)
    assert loss.rejected == ("로스", "손실")
    assert loss.reason == {"en": "Apart from the function.", "ko": "함수와 구별합니다."}
    assert loss.proposed == ()
    assert dict(loss.decided[0]) == {"word": "손실값", "instead of": "손실", "by": "minsu",
                                     "proposed by": "jiwon"}
    text = path.read_text()
    assert text.startswith(TERMS[:TERMS.index("- term: loss")])  # comments stay
    assert text.endswith("\nreadings: {code: 코드}\n")


@pytest.mark.parametrize(
    ("name", "word", "why", "complaint"),
    [("arrays", "열", "x", "no term 'arrays'; it has array"), ("array", "배열", "x", "accepted or"),
     ("array", "열", " ", "needs a reason"), ("array", " ", "x", "needs a word")],
)
def test_a_proposal_that_says_nothing_is_refused(translated, name, word, why, complaint):
    translated.glossary.write_text(TERMS)
    with pytest.raises(GlossaryError, match=complaint):
        terms.propose(translated.glossary, name, word, "jiwon", why)
    assert translated.glossary.read_text() == TERMS


def test_lint_fixes_and_prints_json(translated):
    path = translated.catalog("01-small", "ko")
    po = catalog.load(path, "ko")
    catalog.active(po)["title|text|0"].msgstr = "첫 문단의 `code`과 3입니다."
    catalog.save(po, path)
    before = json.loads(command(translated, "lint", "--json").output)
    particle = next(f for f in before if f["rule"] == "particle")
    assert (particle["file"], particle["unit"]) == ("ko/01-small", "title|text|0")
    assert particle["suggestion"] == "`code`와"
    fixed = command(translated, "lint", "--fix")
    assert "ko/01-small: changed 1 unit(s)" in fixed.output
    assert "particle" not in fixed.output
    assert catalog.active(catalog.load(path, "ko"))["title|text|0"].msgstr == (
        "첫 문단의 `code`와 3입니다.")
