"""Does a review mean that somebody else read exactly this?"""

from __future__ import annotations

import polib
import pytest

from saem.l10n import catalog, glossary
from saem.l10n.merge import merge
from saem.l10n.page import page
from saem.l10n.review import ReviewError, review, sign, signature
from saem.l10n.source import read
from saem.l10n.units import units


@pytest.fixture
def entry():
    return polib.POEntry(msgctxt="a|text|0", msgid="Yes", msgstr="네", tcomment="a remark")


def test_signed_then_reviewed(entry):
    sign(entry, "jiwon")
    review(entry, "minsu")
    assert (signature(entry).translator, signature(entry).reviewer) == ("jiwon", "minsu")
    assert entry.tcomment.startswith("a remark\n")


@pytest.mark.parametrize("field", ["msgid", "msgstr", "msgctxt"])
def test_any_edit_voids_the_review(entry, field):
    sign(entry, "jiwon")
    review(entry, "minsu")
    setattr(entry, field, getattr(entry, field) + "!")
    assert signature(entry) is None


@pytest.mark.parametrize("name", ["jiwon", "Jiwon"])
def test_nobody_reviews_their_own(entry, name):
    sign(entry, "jiwon")
    with pytest.raises(ReviewError, match="someone else"):
        review(entry, name)


def test_what_nobody_signed_cannot_be_reviewed(entry):
    with pytest.raises(ReviewError, match="no valid translator's signature"):
        review(entry, "minsu")


def test_a_stale_translation_cannot_be_signed(entry):
    entry.flags = ["fuzzy"]
    with pytest.raises(ReviewError, match="translate it first"):
        sign(entry, "jiwon")


def test_a_review_is_not_taken_over_by_another_translator(entry):
    sign(entry, "jiwon")
    review(entry, "minsu")
    with pytest.raises(ReviewError, match="jiwon"):
        sign(entry, "eve")


def test_a_name_cannot_forge_a_line(entry):
    with pytest.raises(ReviewError, match="a name needs"):
        sign(entry, "x reviewer=y")


def test_the_page_escapes_everything(tree):
    source = tree.lesson("01")
    source.write_text(source.read_text().replace("Second paragraph.", "a <script>1</script> b"))
    po, _ = merge(units(read(source)), catalog.empty("ko"))
    for entry in po:
        entry.msgstr = "<img src=x onerror=alert(1)>"
    text = page(read(source), po, glossary.load(tree.glossary), "ko")
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;" in text
