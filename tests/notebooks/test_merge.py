"""Is no translation ever lost, and is every one in the state it should be in?"""

from __future__ import annotations

import copy

import polib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saem.l10n import catalog, glossary
from saem.l10n.carry import TOKEN, carry
from saem.l10n.merge import merge
from saem.l10n.units import Unit


def unit(text, cell="a", kind="text", index=0):
    return Unit(cell, kind, index, text)


def translated(found, translations):
    po, _ = merge(found, catalog.empty("ko"))
    for entry, translation in zip(po, translations, strict=True):
        entry.msgstr = translation
    return po


def only(po):
    (entry,) = po
    return entry


def test_an_unchanged_unit_stays():
    po = translated([unit("Hello.")], ["안녕하세요."])
    merged, report = merge([unit("Hello.")], po)
    assert catalog.text(merged) == catalog.text(po)
    assert report.kept == 1


def test_a_changed_unit_is_stale_with_its_old_source():
    po = translated([unit("Arrays never change at all.")], ["배열은 변하지 않습니다."])
    entry = only(merge([unit("Arrays hardly ever change at all.")], po)[0])
    assert catalog.state(entry) == "stale"
    assert entry.msgstr == "배열은 변하지 않습니다."
    assert entry.previous_msgid == "Arrays never change at all."


def test_a_stale_unit_changed_again_keeps_the_source_it_translates():
    first = translated([unit("Arrays never change at all.")], ["배열은 변하지 않습니다."])
    second, _ = merge([unit("Arrays hardly ever change at all.")], first)
    third, _ = merge([unit("Arrays may never change at all.")], second)
    assert only(third).previous_msgid == "Arrays never change at all."


def test_a_change_taken_back_leaves_no_trace():
    first = translated([unit("Arrays never change at all.")], ["배열은 변하지 않습니다."])
    second, _ = merge([unit("Arrays hardly ever change at all.")], first)
    third, _ = merge([unit("Arrays never change at all.")], second)
    assert catalog.text(third) == catalog.text(first)


def test_a_moved_block_takes_its_translation_along():
    po = translated([unit("One."), unit("Two.", index=1)], ["하나.", "둘."])
    new = [unit("New first."), unit("Two.", index=1), unit("One.", cell="b")]
    merged, report = merge(new, po)
    assert {e.msgid: e.msgstr for e in merged} == {"New first.": "", "Two.": "둘.", "One.": "하나."}
    assert (report.kept, report.new, report.stale) == (2, 1, 0)


def test_a_removed_block_is_kept_as_obsolete_and_comes_back():
    po = translated([unit("One.")], ["하나."])
    gone, report = merge([], po)
    assert (only(gone).obsolete, only(gone).msgstr, report.obsolete) == (True, "하나.", 1)
    back, _ = merge([unit("One.")], catalog.parse(catalog.text(gone)))
    assert catalog.text(back) == catalog.text(po)


def test_notes_of_a_removed_block_without_a_translation_stay():
    po = translated([unit("One."), unit("Two.", index=1)], ["", "둘."])
    catalog.active(po)["a|text|0"].tcomment = "note (minsu): how is this said?"
    merged, _ = merge([unit("Two.", index=1)], po)
    again, _ = merge([unit("Two.", index=1)], catalog.parse(catalog.text(merged)))
    (kept,) = [entry for entry in again if entry.obsolete]
    assert (kept.msgid, kept.tcomment) == ("One.", "note (minsu): how is this said?")
    back, _ = merge([unit("One."), unit("Two.", index=1)], again)
    assert catalog.active(back)["a|text|0"].tcomment == "note (minsu): how is this said?"


def test_a_plural_that_some_editor_made_is_kept():
    po = translated([unit("One.")], ["하나."])
    po.append(polib.POEntry(msgid="{} file", msgid_plural="{} files",
                            msgstr_plural={0: "파일 {}개"}))
    merged, _ = merge([unit("One.")], po)
    assert "파일 {}개" in catalog.text(catalog.parse(catalog.text(merged)))


def test_an_obsolete_translation_is_offered_again_where_it_nearly_fits():
    po = translated([unit("Arrays never change at all.")], ["배열은 변하지 않습니다."])
    gone, _ = merge([], po)
    later, report = merge([unit("An array can never change at all.", cell="z")], gone)
    assert catalog.state(only(later)) == "stale"
    assert only(later).msgstr == "배열은 변하지 않습니다."
    assert only(later).previous_msgid == "Arrays never change at all."
    assert (report.offered, report.stale) == (1, 1)
    other, report = merge([unit("Devices hold what they compute.", cell="z")], gone)
    assert [(e.obsolete, bool(e.msgstr)) for e in other] == [(0, False), (True, True)]
    assert report.offered == 0


def test_particles_follow_the_code_that_is_carried():
    words = glossary.Glossary((), {"vmap": "브이맵", "grad": "그래드", "jit": "짓"})
    po = translated([unit("Use `vmap` on 3.")], ["3에 `vmap`을 씁니다."])
    entry = only(merge([unit("Use `grad` on 4.")], po, words)[0])
    assert entry.msgstr == "4에 `grad`를 씁니다."
    entry = only(merge([unit("Use `jit` on 4.")], po, words)[0])
    assert entry.msgstr == "4에 `jit`을 씁니다."
    assert catalog.state(entry) == "translated"


@pytest.mark.parametrize(
    ("old", "new", "translation", "expected"),
    [
        ("Call `f` 3 times.", "Call `g` 4 times.", "`f`를 3번 부릅니다.", "`g`를 4번 부릅니다."),
        ("See [it](http://a.b).", "See [it](http://a.c).", "[여기](http://a.b).",
         "[여기](http://a.c)."),
        ("`a` then `b`", "`b` then `a`", "`b` 앞에 `a`", "`a` 앞에 `b`"),
        # Words changed too.
        ("Call `f` twice.", "Call `g` once.", "`f`를 두 번.", None),
        # The translation does not say the number in digits.
        ("Take 3.", "Take 4.", "셋을 고릅니다.", None),
        # One old token would have to become two new ones.
        ("`a` and `a`", "`a` and `b`", "`a`와 `a`", None),
    ],
)
def test_carry(old, new, translation, expected):
    assert carry(old, new, translation) == expected


def test_a_carried_unit_is_fresh_and_its_review_void():
    po = translated([unit("Run `f` now.")], ["이제 `f`를 실행합니다."])
    entry = only(merge([unit("Run `g` now.")], po)[0])
    assert (catalog.state(entry), entry.msgstr) == ("translated", "이제 `g`를 실행합니다.")


WORDS = st.sampled_from(["one", "two", "`f`", "`g`", "3", "44", "http://a.b", "three.", "Four"])
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
UNITS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["text", "comment"]), SENTENCES), max_size=6
).map(lambda rows: [Unit(cell, kind, i, text) for i, (cell, kind, text) in enumerate(rows)])


def words(translation):
    """A translation without what may be carried over."""
    return TOKEN.sub("", translation)


@settings(max_examples=200, deadline=None)
@given(st.lists(UNITS, min_size=2, max_size=4), st.data())
def test_merge_never_drops_a_translation(versions, data):
    po, _ = merge(versions[0], catalog.empty("ko"))
    for found in versions[1:]:
        for number, entry in enumerate(po):
            if not entry.msgstr and data.draw(st.booleans()):
                entry.msgstr = f"번역{number} {entry.msgid}"
        before = sorted(words(e.msgstr) for e in po if e.msgstr)
        kept = copy.deepcopy([(e.msgctxt, e.msgid, e.msgstr) for e in po])
        merged, _ = merge(found, po)
        assert sorted(words(e.msgstr) for e in merged if e.msgstr) == before
        assert [(e.msgctxt, e.msgid, e.msgstr) for e in po] == kept
        active = [(e.msgctxt, e.msgid) for e in merged if not e.obsolete]
        assert active == [(u.context, u.text) for u in found]
        for entry in merged:
            if entry.previous_msgid and not entry.obsolete:
                assert "fuzzy" in entry.flags
        po = catalog.parse(catalog.text(merged))
        assert isinstance(po, polib.POFile)
