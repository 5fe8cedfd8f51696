"""Is the glossary what the curriculum and the lint need?"""

from __future__ import annotations

from pathlib import Path

import pytest

from saem.l10n import glossary, project, terms
from saem.l10n.lint.hangul import final

GLOSSARY = project.find(Path(__file__)).glossary


def test_the_glossary_loads_and_is_large_enough():
    found = glossary.load(GLOSSARY)
    assert len(found.terms) >= 40


def test_readings_are_hangul():
    for name, reading in glossary.load(GLOSSARY).readings.items():
        assert final(reading) is not None, name


def test_no_word_is_both_accepted_and_rejected_for_a_term():
    for term in glossary.load(GLOSSARY).terms:
        assert not set(term.accepted) & set(term.rejected), term.term


def test_readers_see_words_and_no_stems():
    for term in glossary.load(GLOSSARY).terms:
        stem = term.accepted[0].split(",")[0]
        assert term.translation
        assert not term.translation.endswith(("당기", "당겨", "할 수 있", "지 않")), term.term
        if term.shown:
            assert any(word[:1] in term.shown for word in (stem, *term.accepted)), term.term


@pytest.mark.parametrize(
    ("term", "text", "occurs"),
    [
        ("array", "Two Arrays here", True),
        ("array", "a subarray", False),
        ("host", "the ghost", False),
        ("trace", "It is traced.", True),
        ("trace", "a tracer", False),
    ],
)
def test_occurs(term, text, occurs):
    found = {t.term: t for t in glossary.load(GLOSSARY).terms}
    assert found[term].occurs(text) is occurs


def test_a_rejection_without_a_reason_is_refused(tmp_path):
    path = tmp_path / "glossary.yml"
    path.write_text("terms:\n- {term: a, accepted: [b], rejected: [c]}\n")
    with pytest.raises(glossary.GlossaryError, match="reason"):
        glossary.load(path)


def test_a_term_is_found_by_its_translation_and_near_ones_are_named():
    words = glossary.load(GLOSSARY)
    side_effect = terms.find(words, "side effect")
    assert terms.find(words, "Side Effect") is side_effect
    assert terms.find(words, side_effect.accepted[0]) is side_effect
    for near in (side_effect.accepted[0][:2], side_effect.rejected[0]):
        with pytest.raises(glossary.GlossaryError, match="side effect"):
            terms.find(words, near)
    with pytest.raises(glossary.GlossaryError, match=r"glossary\.yml"):
        terms.find(words, "nothing like it")
