"""Do PO files survive being read and written, and tell the state of each entry?"""

from __future__ import annotations

import re

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saem.l10n import catalog, review

# Ends of lines that cannot be seen (Zl, Zp) never come in: test_desk.py.
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"))
               | st.sampled_from('\n\t"\\`*가'), max_size=40)


@st.composite
def entries(draw):
    entry = polib.POEntry(
        msgctxt=f"{draw(st.integers(0, 99))}|text|0",
        msgid=draw(TEXT.filter(bool)),
        msgstr=draw(TEXT),
        obsolete=draw(st.booleans()),
    )
    if draw(st.booleans()):
        entry.flags = ["fuzzy"]
        # An obsolete entry has none (merge sees to it).
        entry.previous_msgid = None if entry.obsolete else draw(TEXT) or None
    return entry


WITHOUT_MSGSTR = """\
msgid ""
msgstr "Language: ko\\n"

{first}

# note (minsu): here
msgctxt "b|text|0"
msgid "Two"
msgstr "둘"
"""


@pytest.mark.parametrize("first", [
    '# saem: x\nmsgctxt "a|text|0"\nmsgid "One"', 'msgid "One"',
    'msgid "One"\nmsgid_plural "Ones"', '#~ msgid "One"'])
def test_an_entry_without_its_translation_line_gives_nothing_to_the_next(first):
    text = WITHOUT_MSGSTR.format(first=first)
    with pytest.raises(ValueError, match=r"ends before line \d+ has no msgstr"):
        catalog.parse(text)
    ended = "#~ msgstr" if first.startswith("#~") else "msgstr"
    plural = "[0]" if "plural" in first else ""
    catalog.parse(WITHOUT_MSGSTR.format(first=f'{first}\n{ended}{plural} ""'))
    with pytest.raises(ValueError, match="has no msgstr"):
        catalog.parse(text.removesuffix('msgstr "둘"\n'))


@given(st.lists(entries(), max_size=4, unique_by=lambda entry: entry.msgctxt))
def test_reading_what_was_written_changes_no_byte(found):
    po = catalog.empty("ko")
    for entry in sorted(found, key=lambda entry: entry.obsolete):
        po.append(entry)
    text = catalog.text(po)
    again = catalog.parse(text)
    assert catalog.text(again) == text
    assert [(e.msgctxt, e.msgid, e.msgstr, bool(e.obsolete)) for e in again] == [
        (e.msgctxt, e.msgid, e.msgstr, bool(e.obsolete)) for e in po
    ]


def test_no_dates_no_line_numbers_no_wrapping():
    po = catalog.empty("ko")
    po.append(polib.POEntry(msgctxt="a|text|0", msgid="word " * 60, msgstr="말 " * 60))
    text = catalog.text(po)
    assert not re.search(r"\d\d\d\d-\d\d|^#:", text, re.M)
    assert f'msgid "{"word " * 60}"' in text


def entry(**changes):
    return polib.POEntry(**{"msgctxt": "a|text|0", "msgid": "Yes", "msgstr": "네", **changes})


def test_states():
    assert catalog.state(None) == "missing"
    assert catalog.state(entry(msgstr="")) == "missing"
    assert catalog.state(entry(flags=["fuzzy"])) == "draft"
    assert catalog.state(entry(flags=["fuzzy"], previous_msgid="No")) == "stale"
    assert catalog.state(entry()) == "translated"
    signed = entry()
    review.sign(signed, "jiwon")
    assert catalog.state(signed) == "translated"
    review.review(signed, "minsu")
    assert catalog.state(signed) == "reviewed"


def test_a_file_that_is_no_po_is_refused():
    with pytest.raises(ValueError, match="not a PO file"):
        catalog.parse("this is\nno PO file\n")


@pytest.mark.parametrize("line", [
    'msgstr "끝나지 않은 글', 'msgstr "a "b" c"', 'msgstr 글', '"글\\"'])
def test_a_text_without_its_marks_is_refused(line):
    head = 'msgid ""\nmsgstr ""\n"Language: ko\\n"\n\n'
    with pytest.raises(ValueError, match=r"line 6 .* mark"):
        catalog.parse(f'{head}msgid "text"\n{line}\n')
