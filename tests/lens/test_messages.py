"""The words: both languages say the same things."""

from __future__ import annotations

import pathlib
import re
import string
import typing

import pytest

from saem.observe import language
from saem.observe.messages import HEADLINES, REASONS, fill
from saem.observe.schema import Kind, Tag, Text
from saem.observe.words import WORDS

TEXTS = {
    **{f"reason {k}": t for k, (t, _) in REASONS.items()},
    **{f"headline {k}": t for k, t in HEADLINES.items()},
    **{f"label {k}": t for k, t in WORDS.items()},
}


def fields(template: str) -> set[str]:
    names = {name for _, name, _, _ in string.Formatter().parse(template) if name}
    return {name.removesuffix("_en").removesuffix("_ko") for name in names}


@pytest.mark.parametrize("key", TEXTS)
def test_both_languages_have_text(key):
    assert TEXTS[key].en.strip()
    assert TEXTS[key].ko.strip()


@pytest.mark.parametrize("tag", [t for t in REASONS if t not in ("static_value.object",)])
def test_both_languages_name_the_argument(tag):
    en, ko = (fields(text) for text in (REASONS[tag][0].en, REASONS[tag][0].ko))
    assert en == ko


def test_every_tag_and_kind_has_its_words():
    assert {variant.partition(".")[0] for variant in REASONS} == set(typing.get_args(Tag))
    for kind in typing.get_args(Kind):
        assert f"kind.{kind}" in WORDS
        assert kind in HEADLINES


def test_every_word_of_the_table_is_used():
    """Named in a source, or made of a beginning that is, such as ``f"kind.{kind}"``."""
    here = pathlib.Path(__file__).parents[2]
    sources = "".join(
        path.read_text(encoding="utf-8")
        for path in (*here.glob("kernel/saem/**/*.py"), *here.glob("extension/src/**/*.ts"))
        if path.name not in ("words.py", "schema.ts") or path.parent.name == "lesson")
    named = set(re.findall(r"[\"'`]([a-z][\w.]*)[\"'`]", sources))
    begun = tuple(re.findall(r"[\"'`]([a-z][\w.]*[.])(?:\{|\$\{)", sources))
    unused = [key for key in WORDS if key not in named and not key.startswith(begun)
              and key.removeprefix("gate.") not in named]
    assert unused == []


def test_values_with_braces_are_values():
    assert fill(Text("{a}", "{a}"), a="{b}{0}") == Text("{b}{0}", "{b}{0}")


@pytest.mark.parametrize(
    ("locale", "expected"), [("ko_KR", "ko"), ("ko-KR", "ko"), ("ko", "ko"), ("en", "en"),
                             ("kok_IN", "en"), ("Korean_Korea.949", "ko"), ("", "en"),
                             ("default", "en")],
)
def test_language_of_a_locale(locale, expected):
    assert language.from_locale(locale) == expected


def test_other_languages_are_refused():
    with pytest.raises(ValueError, match="'fr'"):
        language.checked("fr")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.00213, "2.13 ms"), (0.0009996, "1 ms"), (41.0, "41 s"), (5e-6, "5 µs"), (0.0, "0 µs")],
)
def test_durations(seconds, shown):
    assert language.duration(seconds) == shown


@pytest.mark.parametrize(("amount", "unit", "said"), [
    (999_999, "FLOP", "1 MFLOP"), (1480, "B", "1.48 kB"), (640, "B", "640 B"), (12, "", "12")])
def test_quantities_are_rounded_before_their_prefix_is_chosen(amount, unit, said):
    assert language.quantity(amount, unit) == said
