"""Does each rule catch what is wrong, and let pass what is right?

``BAD`` and ``GOOD`` are the fixtures; a rule without both fails ``test_every_rule_has_fixtures``.
"""

from __future__ import annotations

import copy
import sys
import unicodedata

import pytest
from click.testing import CliRunner
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

from saem.l10n import catalog, team
from saem.l10n.assemble import SETUP
from saem.l10n.build import planned
from saem.l10n.commands import l10n
from saem.l10n.glossary import Glossary, Term
from saem.l10n.lint import RULES, check_pair, fix, fixed, lint, spacing
from saem.l10n.lint.base import Pair
from saem.l10n.lint.glyphs import KOREAN, drawable
from saem.l10n.lint.hangul import final, final_of_number, right
from saem.l10n.lint.spacing import SPACING
from saem.l10n.lint.structure import differences
from saem.l10n.merge import merge
from saem.l10n.review import sign, signature
from saem.l10n.source import read
from saem.l10n.units import units

GLOSSARY = Glossary(
    (
        Term("side effect", ("부수 효과",), ("부작용",)),
        Term("gradient", ("그래디언트",), ("기울기",)),
        Term("slope", ("기울기",)),
        Term("loss", ("손실",), ("로스",)),
    ),
    {"vmap": "브이맵", "grad": "그래드", "set": "셋", "model": "모델", "NumPy": "넘파이",
     "Python": "파이썬", "theta": "세타"},
)

# Rule → pairs (English, Korean); a third item is the kind, a fourth the state.
BAD = {
    "untranslated": [
        ("Hello.", "", "text", "missing"),
        ("Hello.", "안녕하십니까.", "text", "stale"),
        ("Hello.", "안녕하십니까.", "text", "draft"),
    ],
    "emphasis": [
        ("**pure functions** are", "**순수 함수(pure)**는 좋습니다."),
        ("*new* one", "*'새'*것입니다."),
        ("**`f`** is", "함수**`f`**는 좋습니다."),
        ("_so_ it is", "_강조_는 그렇습니다."),
    ],
    "particle": [
        ("`vmap`", "`vmap`를 씁니다."),
        ("`vmap`", "`vmap`는 좋습니다."),
        ("`jax.grad(f)`", "`jax.grad(f)`을 씁니다."),
        ("`x.at[i].set(v)`", "`x.at[i].set(v)`로 씁니다."),
        ("NumPy", "NumPy은 좋습니다."),
        ("Python", "Python가 기다립니다."),
        ("GPU", "GPU을 씁니다."),
        ("XLA", "XLA과 같습니다."),
        ("side effect", "부수 효과(side effect)을 봅니다."),
        ("an array", "배열를 봅니다."),
        ("10", "10를 더합니다."),
        ("$f$", "$f$과 같습니다."),
        ("`model`", "`model`으로 예측합니다."),
        ("tangents", "탄젠트으로 밉니다."),
        ("GPUs", "장치으로부터 옮깁니다."),
        ("examples", "예를 들어 *스칼라*으로만 씁니다."),
        ("a tool", "도구를 연필으로 바꿉니다."),
        ("JIT", "\"컴파일\"으로는 느립니다."),
        ("`f32[3]`", "`f32[3]`는 벡터입니다."),
        ("`f32[1000,2]`", "`f32[1000,2]`으로 바뀝니다."),
        ("`(3, 2)`", "`(3, 2)`이 됩니다."),
        ("`axes=(None, 0)`", "`axes=(None, 0)`로 줍니다."),
        ("`theta[0]`", "`theta[0]`는 기울기입니다."),
        ("`jax.grad(f)(-1.0)`", "`jax.grad(f)(-1.0)`은 무엇입니까?"),
        ('`name="set"`', '`name="set"`를 줍니다.'),
        ("`enable_x64(True)`", "`enable_x64(True)`을 씁니다."),
        ("`__set__`", "`__set__`와 같습니다."),
        ("`my_model`", "`my_model`를 봅니다."),
        ("`if x > 0:`", "`if x > 0:`는 됩니다."),
        ("$c = 3$", "$c = 3$를 곱합니다."),
        ("$f(x)$", "$f(x)$과 같습니다."),
    ],
    "dual-form": [
        ("x is", "x은(는) 그렇습니다."),
        ("y", "값을(를) 봅니다."),
        ("z", "벡터(으)로 봅니다."),
        ("z", "은/는 씁니다."),
    ],
    "register": [
        ("It is.", "배열은 변하지 않는다."),
        ("It is.", "배열은 변하지 않아요."),
        ("Is it?", "무엇일까?"),
        ("Look.", "결과를 보자."),
        ("- It is.", "- 값을 돌려준다.\n- 값을 받습니다.", "list"),
    ],
    "nfc": [("Array.", unicodedata.normalize("NFD", "배열입니다."))],
    "glossary": [
        ("A side effect.", "부작용입니다."),
        ("No side effects.", "영향이 없습니다."),
        ("The gradient.", "기울기입니다."),
    ],
    "code-kept": [
        ("Use `f`.", "`g`를 씁니다."),
        ("Use `f`.", "함수를 씁니다."),
        ("Use `f` and `f`.", "`f`를 씁니다."),
        ("Use `f`.", "`f`는 `f`입니다."),
        ("Here $x$ and $x$.", "여기 $x$입니다."),
        ("Here $x^2$.", "여기 $x^3$입니다."),
        ("{n} times", "{m}번", "string"),
        ("{:.2f} ms", "{:.3f} ms", "string"),
        ("{n} times", "{n!r}번", "string"),
        ("{:.2f} ms, {:.0f} %", "{:.0f} %, {:.2f} ms", "string"),
        ("{n} times", "{n번", "string"),
    ],
    "links-kept": [("See [it](http://a.b/c).", "[여기](http://a.b/d)를 보십시오.")],
    "numbers-kept": [
        ("It takes 30 steps.", "40단계가 걸립니다."),
        ("From 1 to 10.", "1에서 시작합니다."),
        ("A 1.5 and a 1.5.", "1.5입니다."),
        ("Some steps.", "3단계입니다."),
        ("1,000 points", "10,000개의 점"),
    ],
    "glyphs": [("data", "데이터 🎉", "string"), ("mean", "平均", "string")],
    "blocks-kept": [
        ("## Arrays", "배열", "heading"),
        ("## Arrays", "# 배열", "heading"),
        ("## Arrays", "##배열", "heading"),
        ("One. Two.", "하나입니다.\n\n둘입니다."),
        ("It is.", "- 그렇습니다."),
        ("- one\n- two", "1. 하나\n2. 둘", "list"),
        ("| a |\n|---|\n| b |", "| 가 |\n| 나 |", "table"),
    ],
    "html-kept": [
        ("H<sub>2</sub>O", "H2O입니다."),
        ("Water.", "물<br>입니다."),
        ('A <a href="x.html">page</a>.', '<a href="y.html">페이지</a>입니다.'),
        ("- a <b>b</b>", "- 가 <i>나</i>", "list"),
    ],
    "direction-marks": [
        ("It is.", "그렇\u202e습니다."), ("# It is", "\u2066그렇습니다", "comment"),
    ],
}
GOOD = {
    "untranslated": [("Hello.", "안녕하십니까.")],
    "emphasis": [
        ("**pure functions** are", "**순수 함수**(pure)는 좋습니다."),
        ("*new* one", "*새* 것입니다."),
        ("2 * 3 * 4", "2 * 3 * 4는 24입니다."),
        ("`**kwargs`", "`**kwargs`를 씁니다."),
        ("$x_i * y_i$ and *z*", "$x_i * y_i$와 *z*입니다."),
        ("name snake_case", "이름 snake_case입니다."),
        (r"\*", r"별표는 \*입니다."),
        ("x**2", "x**2의 미분입니다.", "comment"),
    ],
    "particle": [
        ("`vmap`", "`vmap`을 쓰고 `vmap`은 좋으며 `vmap`으로 바꿉니다."),
        ("`jax.grad(f)`", "`jax.grad(f)`를 씁니다. `jax.grad`는 함수입니다."),
        ("`x.at[i].set(v)`", "`x.at[i].set(v)`을 씁니다."),
        ("NumPy", "NumPy는 NumPy와 같고 NumPy로 씁니다."),
        ("Python", "Python이 기다리고 Python은 빠릅니다."),
        ("`model`", "`model`로 예측하고 `model`을 봅니다."),
        ("`unknown`", "`unknown`을 쓰고 `unknown`를 씁니다."),
        ("side effect", "부수 효과(side effect)를 봅니다. 값(value)이 있습니다."),
        ("10", "10을 더하고 2를 빼고 1.5로 바꿉니다. 0으로 나눕니다."),
        ("GPU", "GPU이고, GPU에서 돌고, GPU로 갑니다."),
        ("**`vmap`**", "**`vmap`** 을 쓰고 *jaxpr*라는 말을 씁니다."),
        ("$f$", "$f$와 $w$를 봅니다. $2x$입니다."),
        ("autumn", "마을과 가을을 봅니다."),
        ("`f32[3]`", "`f32[3]`은 벡터이고 `f32[]`는 스칼라입니다. `f32[2]`가 됩니다."),
        ("`jax.grad(f)(x)`", "`jax.grad(f)(x)`는 수이고 `set(f)(x)`은 셋입니다."),
        ("`my_unknown`", "`my_unknown`을 쓰고 `my_unknown`를 씁니다. `==`로 봅니다."),
        ("$x^2$, $1/3$", "$x^2$를 보고 $x^2$을 봅니다. $f(x)$와 $c = 3$을 봅니다."),
        ("XLA", "XLA가 XLA와 함께 있습니다."),
        ("forward", "앞으로 밉니다. 탄젠트로, 연필로, 값으로, 손으로도 씁니다.."),
        ("therefore", "그러므로 크므로, 이 길로 갑니다. 대체로 **역방향**으로부터 시작합니다."),
    ],
    "dual-form": [
        ("x is", "값(value)은 그렇습니다. 은은한 빛입니다."),
        ("`은(는)`", "`은(는)`은 쓰지 않습니다."),
    ],
    "register": [
        ("It is.", "배열은 변하지 않습니다."),
        ("Look.", "결과를 봅시다. 적어 주십시오. 무엇입니까?"),
        ("Title", "## 정리한다.", "heading"),
        ("quote", '"어떻게 변하는가?"라는 물음입니다.'),
        ("needed", "- 크기: 3.5배. 이것이 필요.", "list"),
        ("`한다.`", "`한다.` 라고 출력합니다."),
    ],
    "nfc": [("Array.", "배열입니다.")],
    "glossary": [
        ("No side effects.", "부수 효과가 없습니다."),
        ("The slope and the gradient.", "기울기와 그래디언트입니다."),
        ("`loss.backward()`", "`loss.backward()`입니다."),
        ("the glossary", "용어집입니다."),
        ("a blossom", "꽃입니다."),
    ],
    "code-kept": [
        ("Use `f`, then `g`, then `f`.", "`g`의 앞뒤로 `f`와 `f`를 씁니다."),
        ("Costs $5 or $6.", "$5 또는 $6입니다."),
        ("`f` then $x$", "$x$ 다음에 `f`입니다."),
        ("{n} times", "{n}번", "string"),
        ("{:.2f} ms, {:.0f} %", "{1:.0f} %, {0:.2f} ms", "string"),
        ("{ of a set", "집합의 {", "string"),
    ],
    "links-kept": [("See [it](http://a.b/c).", "[여기](http://a.b/c)를 보십시오.")],
    "numbers-kept": [
        ("It takes 30 steps, 1,000 at most.", "30단계, 많아야 1000단계가 걸립니다."),
        ("Three of them, and nothing else.", "3개뿐이고 나머지는 0입니다."),
        ("Read lesson 03.", "3강을 읽으십시오."),
        ("`x[0]` is 2.", "`x[0]`은 2입니다. `x[1]`도 그렇습니다."),
        ("See [it](http://a.b/2024).", "[여기](http://a.b/2024)를 보십시오."),
    ],
    "glyphs": [
        ("data · w ≈ 3", "데이터 · w ≈ 3 → ‘값’", "string"), ("party", "잔치 🎉", "text"),
    ],
    "blocks-kept": [
        ("## Arrays", "## 배열", "heading"),
        ("One.\nTwo.", "하나입니다. 둘입니다."),
        ("- one\n- two", "* 하나\n\n  더 있습니다.\n* 둘", "list"),
        ("one", "하나\n\n둘", "comment"),
    ],
    "html-kept": [
        ('<img src="a.png" alt="An array"> and `<b>`', '<img src="a.png" alt="배열">과 `<b>`'),
        ("a < b", "a < b입니다.", "comment"),
    ],
    "direction-marks": [("It is.", "그렇\u200b습니다.")],
}
# What --fix makes of a translation.
FIXED = [
    ("`vmap`를 쓰고 `jax.grad(f)`을 씁니다.", "`vmap`을 쓰고 `jax.grad(f)`를 씁니다."),
    ("부수 효과(side effect)을 배열를 봅니다.", "부수 효과(side effect)를 배열을 봅니다."),
    ("탄젠트으로 밀고 *컴파일*으로는 늦습니다.", "탄젠트로 밀고 *컴파일*로는 늦습니다."),
    ("`vmap`은(는) 값을(를) GPU(으)로 옮깁니다.", "`vmap`은 값을 GPU로 옮깁니다."),
    ("알 수 없는 `unknown`을(를) 봅니다.", "알 수 없는 `unknown`을(를) 봅니다."),
    (unicodedata.normalize("NFD", "배열입니다."), "배열입니다."),
    ("맞는 문장은 `은(는)`까지 그대로입니다.", "맞는 문장은 `은(는)`까지 그대로입니다."),
]


def pair(english, korean, kind="text", state="translated"):
    return Pair(kind, english, korean, state, GLOSSARY)


def cases(fixtures):
    return [pytest.param(rule, case, id=f"{rule}-{i}")
            for rule, found in fixtures.items() for i, case in enumerate(found)]


def test_every_rule_has_fixtures():
    assert {r.id for r in RULES} == set(BAD) == set(GOOD)
    for rule in (*RULES, SPACING):
        assert set(rule.message) == set(rule.reason) == {"en", "ko"}


@pytest.mark.parametrize(("rule", "case"), cases(BAD))
def test_known_bad_is_caught(rule, case):
    for say in ("en", "ko"):
        assert rule in {f.rule for f in check_pair(pair(*case), say)}


@pytest.mark.parametrize(("rule", "case"), cases(GOOD))
def test_known_good_passes(rule, case):
    assert [f for f in check_pair(pair(*case)) if f.rule == rule] == []


@pytest.mark.parametrize(("before", "after"), FIXED)
def test_fix_changes_what_needs_no_judgement(before, after):
    assert fixed(pair("x", before)) == after
    assert fixed(pair("x", after)) == after


def test_fix_writes_the_catalog_and_voids_the_signature(tree):
    lesson = read(tree.lesson("01"))
    po, _ = merge(units(lesson), catalog.empty("ko"))
    for entry in po:
        first = entry.msgctxt == "title|text|0"
        entry.msgstr = "`code`과 3을(를) 봅니다." if first else "값입니다."
        sign(entry, "jiwon")
    path = tree.catalog("01-small", "ko")
    catalog.save(po, path)
    CliRunner().invoke(l10n, ["--root", str(tree.root), "lint", "--fix"])
    entry = catalog.active(catalog.load(path, "ko"))["title|text|0"]
    assert entry.msgstr == "`code`와 3을 봅니다."
    assert signature(entry) is None
    assert fix(tree, lesson, "ko")[1] == 0


def test_a_finding_tells_all_that_there_is_to_tell():
    (found,) = check_pair(pair("`vmap`", "`vmap`를 씁니다."), "ko", "ko/01-x", "a|text|0")
    assert (found.file, found.unit, found.where) == ("ko/01-x", "a|text|0", "ko/01-x a|text|0")
    assert (found.wrong, found.suggestion, found.mechanical) == ("`vmap`를", "`vmap`을", True)
    assert "끝소리" in found.reason


def test_spacing_hints_come_from_the_analyser():
    pytest.importorskip("kiwipiepy")
    hits = list(SPACING.check(pair("x", "배열은변하지 않습니다. `x`는 값을 돌려줍니다.")))
    assert [(h.wrong, h.right, h.mechanical) for h in hits] == [
        ("배열은변하지", "배열은 변하지", False)]


def test_spacing_hints_name_the_package_that_they_need(monkeypatch):
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    spacing._analyser.cache_clear()
    with pytest.raises(ValueError, match="saem\\[spacing\\]"):
        list(SPACING.check(pair("x", "배열은 변하지 않습니다.")))


def test_korean_punctuation_is_in_the_font_that_plots_use():
    fonts = [f for f in font_manager.fontManager.ttflist if f.name == "NanumGothic"]
    if not fonts:
        pytest.skip("NanumGothic is not installed")
    have = FT2Font(fonts[0].fname).get_charmap()
    assert [c for c in KOREAN if ord(c) not in have] == []
    assert all(code in have and drawable(chr(code)) for code in range(ord("가"), ord("힣") + 1))


# Finals and numbers as any Korean grammar gives them.
@pytest.mark.parametrize(
    ("word", "end"), [("배열", "ㄹ"), ("함수", ""), ("값", "ㅄ"), ("브이맵", "ㅂ"), ("JAX", None)]
)
def test_final(word, end):
    assert final(word) == end


@pytest.mark.parametrize(
    ("number", "reading"),
    [("1", "일"), ("3", "삼"), ("9", "구"), ("10", "십"), ("200", "백"), ("5000", "천"),
     ("20000", "만"), ("100000000", "억"), ("1.5", "오"), ("10.0", "영"), ("0", "영")],
)
def test_final_of_number(number, reading):
    assert final_of_number(number) == final(reading)


def test_right_particle():
    assert [right("을", e) for e in ("", "ㄹ", "ㅂ")] == ["를", "을", "을"]
    assert [right("로", e) for e in ("", "ㄹ", "ㅂ")] == ["로", "로", "으로"]


@pytest.fixture
def notebooks(tree):
    lesson = read(tree.lesson("01"))
    po, _ = merge(units(lesson), catalog.empty("ko"))
    for entry in po:
        entry.msgstr = {"run|comment|0": "설명\n세 줄\n입니다"}.get(entry.msgctxt, entry.msgid)
    catalog.save(po, tree.catalog("01-small", "ko"))
    return planned(tree, lesson, "en"), planned(tree, lesson, "ko")


def test_notebooks_that_differ_in_words_only_pass(notebooks):
    english, korean = notebooks
    assert list(differences(english, korean)) == []
    assert "설명" in "".join(c.source for c in korean.cells)


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("code", lambda cells: cells[4].update(source=cells[4].source.replace("1 + 1", "1 + 2"))),
        ("code", lambda cells: cells[4].update(source="def (")),
        ("code", lambda cells: cells[1].update(source=cells[1].source.replace("saem", "other"))),
        ("tags", lambda cells: cells[4].metadata.update(tags=["raises-exception"])),
        ("cells", lambda cells: cells[2].update(id="other")),
        ("cells", lambda cells: cells.reverse()),
        ("cells", lambda cells: cells.pop()),
    ],
)
def test_notebooks_that_differ_are_caught(notebooks, rule, change):
    english, korean = notebooks
    assert korean.cells[1].id == SETUP
    broken = copy.deepcopy(korean)
    change(broken.cells)
    assert rule in {found for found, _ in differences(english, broken)}


def test_lint_reports_what_is_not_translated(tree):
    findings = lint(tree, "ko")
    assert {f.rule for f in findings} == {"untranslated"}
    assert len(findings) == len(units(read(tree.lesson("01"))))


def test_before_a_merge_what_changed_is_stale_as_status_says(tree):
    source = tree.lesson("01")
    po, _ = merge(units(read(source)), catalog.empty("ko"))
    for entry in po:
        entry.msgstr = "번역입니다."
    catalog.save(po, tree.catalog("01-small", "ko"))
    source.write_text(source.read_text().replace("Second paragraph.", "Another paragraph."))
    found = [f.message for f in lint(tree, only=[source]) if f.rule == "untranslated"]
    assert len(found) == 1 and "stale" in found[0]
    (row,) = [row for row in team.progress(tree) if row["lesson"] == "01-small"]
    assert (row["stale"], row["missing"]) == (1, 0)


def test_lint_of_a_named_lesson_reads_that_alone(tree):
    (tree.notebooks / "02-other.md").write_text(tree.lesson("01").read_text())
    run = CliRunner().invoke(l10n, ["--root", str(tree.root), "lint", "02"])
    assert "ko/02-other" in run.output and "ko/01-small" not in run.output
    assert "in 1 lesson(s)" in run.output


def test_lint_looks_at_the_english_too(tree):
    source = tree.lesson("01")
    source.write_text(source.read_text().replace("Second paragraph.", 'Stray **"x"**y here.'))
    assert ("emphasis", "en/01-small maths|text|0") in {(f.rule, f.where) for f in lint(tree)}
