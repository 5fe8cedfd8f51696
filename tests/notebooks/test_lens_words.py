"""Does the lens use the words that the lessons use?"""

from __future__ import annotations

import pytest

from saem.l10n import glossary, project
from saem.l10n.lint import check_pair
from saem.l10n.lint.base import Pair
from saem.observe.words import WORDS

TERMS = glossary.load(project.find().glossary)
RULES = {"glossary", "particle", "dual-form", "emphasis", "nfc"}
# "Commit a guess" has nothing to do with committed arrays; a label need not repeat its subject.
OTHER_SENSE = {"gate.commit"}


@pytest.mark.parametrize("name", sorted(set(WORDS) - OTHER_SENSE))
def test_korean_words_obey_the_glossary(name):
    pair = Pair("string", WORDS[name].en, WORDS[name].ko, "translated", TERMS)
    found = [f for f in check_pair(pair) if f.rule in RULES and (f.rule != "glossary" or f.wrong)]
    assert [f.message for f in found] == []
