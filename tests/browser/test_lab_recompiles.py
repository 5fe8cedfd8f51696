"""Does JupyterLab's panel name each change between two calls, as the design's table wants it?

Each row is two cells: a call, and a call after one change.  The panel must show one record of the
second that names the argument in the caller's words, the old and the new value, the cost and what
to do, in both languages.  All rows run once in one notebook per language; each has its own test.

Read before: ``jupyter.py``, ``tests/lens/observe/test_recompile_table.py`` (the same table, without
a browser).  Read after: nothing.
Invariant: what is expected is written here, from the table; nothing is taken from the panel.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator

import pytest
from jupyter import Lab
from kept_pages import KeptPages
from playwright.sync_api import Locator, Page, expect

PANEL = "#saem-lens-panel"
SETUP = """%load_ext saem.lens
import numpy as np, saem as jax, saem.numpy as jnp
jax.config.update("jax_num_cpu_devices", 2)
P, NamedSharding = jax.sharding.PartitionSpec, jax.sharding.NamedSharding
cpus = jax.devices()
mesh = jax.sharding.Mesh(np.array(cpus), ("d",))
A, B = np.ones(8, "float32"), np.ones(4, "float32")
class Config:
    def __init__(self, rate): self.rate = rate
    def __repr__(self): return f"Config({self.rate})"
"""
# Every row has its own function and its own number in it, so that no program is found by content.
DEFINE = """def {name}(x, y=1., mode="foo", cfg=None):
    return x * y + {number}.
{name} = jax.jit({name}, static_argnames=("mode", "cfg"))
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """Two calls of the function ``f``, and what must be read of the second.

    ``change``: argument, old and new value beside each other (None: only in the sentence).
    ``kind``: compile, found (traced again, same program) or hit.  ``en`` and ``ko`` are in the
    sentence, ``mend_en`` and ``mend_ko`` in the advice.
    """

    before: str
    after: str
    tag: str
    change: tuple[str | None, str, str] | None
    en: str
    ko: str
    mend_en: str
    mend_ko: str
    kind: str = "compile"
    define: str = DEFINE


EACH_SHAPE = ("Pad to one shape", "패딩으로 한 형상에")
ROWS = {
    "shape": Row("f(A)", "f(B)", "shape", ("x", "f32[8]", "f32[4]"),
                 "argument x: f32[8] → f32[4]", "인자 x: f32[8] → f32[4]", *EACH_SHAPE),
    "dtype": Row("f(A)", "f(A.astype('int32'))", "dtype", ("x", "f32[8]", "i32[8]"),
                 "argument x: f32[8] → i32[8]", "인자 x: f32[8] → i32[8]",
                 "a Python scalar, which adapts", "Python 스칼라를"),
    "weak_type": Row("f(np.float32(1))", "f(1.)", "weak_type", ("x", "f32[]", "~f32[]"),
                     "which a Python scalar has", "Python 스칼라의 타입",
                     "always an array with an explicit dtype", "자료형을 밝힌 배열을", "found"),
    "static_argument": Row("f(A, mode='foo')", "f(A, mode='bar')", "static_value",
                           ("mode", "'foo'", "'bar'"),
                           "static argument mode: 'foo' → 'bar'", "정적 인자 mode: 'foo' → 'bar'",
                           "Each value of a static argument compiles once", "값마다 한 번씩",
                           "found"),
    "keyword": Row("f(A, 2.)", "f(A, y=2.)", "position_keyword", ("y", "position", "keyword"),
                   "y was passed by position, now by keyword",
                   "인자 y: 이전에는 위치로, 이제는 키워드로",
                   "the same way each time", "매번 같은 방식으로", "found"),
    "committed": Row("f(jnp.asarray(A))", "f(jax.device_put(A, cpus[0]))", "committed",
                     ("x", "cpu:0", "cpu:0"),
                     "arrays were last moved there by cell {after}",
                     "마지막으로 옮긴 곳: 셀 {after}",
                     "Place it always, or never", "항상 놓거나 전혀 놓지", "found"),
    "device": Row("f(jax.device_put(A, cpus[0]))", "f(jax.device_put(A, cpus[1]))", "device",
                  ("x", "cpu:0", "cpu:1"),
                  "argument x was on cpu:0, now on cpu:1", "인자 x의 위치: cpu:0 → cpu:1",
                  "Keep the array where it was", "배열을 있던 곳에"),
    "sharding": Row("f(jax.device_put(A, NamedSharding(mesh, P('d'))))",
                    "f(jax.device_put(A, NamedSharding(mesh, P())))", "sharding",
                    ("x", "P('d',)", "P()"),
                    "argument x was spread as P('d',), now as P()", "인자 x의 샤딩: P('d',) → P()",
                    "Place arguments the same way", "인자를 매번 같은 방식으로 놓으십시오"),
    "same_cell": Row("f(A)", "# run again", "redefinition", None,
                     "you redefined same_cell (cell {before}, line 1, run 2)",
                     "same_cell: 다시 정의했습니다 (셀 {before} 1행, 2번째 실행)",
                     "only a changed program is compiled", "프로그램이 바뀐 때에만", "found"),
    "comment": Row("f(A)", "# edit the comment, run again", "redefinition", None,
                   "you redefined comment (cell {before}",
                   "comment: 다시 정의했습니다 (셀 {before}",
                   "only a changed program is compiled", "프로그램이 바뀐 때에만", "found"),
    "<lambda>": Row("# a loop, in the next cell",
                    "for i in range(2): jax.jit(lambda x: x * 3. + {number}.)(A)", "redefinition",
                    None, "is a new function object made at the same place",
                    "같은 곳에서 새로 만든 함수 객체입니다",
                    "Make it once, outside the loop", "루프 밖에서 한 번만", "found", ""),
    "closure": Row("make_closure(2.)(A)", "make_closure(3.)(A)", "closure",
                   ("scale", "2.0", "3.0"),
                   "closes over another scale: 2.0 → 3.0",
                   "새 함수가 클로저로 쓰는 scale: 2.0 → 3.0",
                   "belongs among the arguments", "바뀌는 값은 인자로", "compile",
                   "def make_closure(scale):\n    def closure(x): return x * scale + {number}.\n"
                   "    return jax.jit(closure)\n"),
    "mutated": Row("cfg = Config(1)\nf(A, cfg=cfg)", "cfg.rate = 2\nf(A, cfg=cfg)",
                   "static_mutated", ("cfg", "Config(1)", "Config(2)"),
                   "the static cfg changed after it was hashed",
                   "정적 인자 cfg: 해시된 뒤에 바뀌었습니다",
                   "make a new object instead", "새 객체를 만드십시오", "hit"),
    "x64": Row("f(A)", "with jax.enable_x64(True): f(A)", "config",
               ("jax_enable_x64", "False", "True"),
               "setting jax_enable_x64: False → True", "설정 jax_enable_x64: False → True",
               "Choose settings once", "첫 호출 전에 한 번만", "found"),
    "precision": Row("f(A)", "with jax.default_matmul_precision('float32'): f(A)", "config",
                     ("jax_default_matmul_precision", "None", "'float32'"),
                     "setting jax_default_matmul_precision", "설정 jax_default_matmul_precision",
                     "Choose settings once", "첫 호출 전에 한 번만", "found"),
    "donated": Row("f(A)", "donated = jax.jit(f.__wrapped__, static_argnames=('mode', 'cfg'),"
                   " donate_argnums=0)\ndonated(jnp.asarray(A))", "donation", (None, "-", "x"),
                   "donated arguments: - → x", "넘겨준(donated) 인자: - → x",
                   "Donate the same arguments", "매번 같은 인자의 메모리를 넘겨주"),
    "structure": Row("f({'w': A})", "f({'w': A, 'b': A})", "structure",
                     ("p", "p['w']", "p['b'], p['w']"),
                     "argument p has other leaves", "인자 p의 잎이 다릅니다",
                     "Keep the same keys and lengths", "같은 키와 길이를", "found",
                     "@jax.jit\ndef {name}(p): return p['w'] * 2. + {number}.\n"),
    "numpy_array": Row("f(jnp.asarray(A))", "f(A)", "", None,
                       "nothing to do: the program was there",
                       "할 일이 없었습니다", "", "", "hit"),
}
NAMES = list(ROWS)


def cells(row: str) -> tuple[str, str]:
    """The two cells of a row."""
    made = ROWS[row]
    number = str(NAMES.index(row) + 1)

    def filled(text: str) -> str:
        text = re.sub(r"\bf\(", f"{row}(", text) if row.isidentifier() else text
        return text.replace("f.__wrapped__", f"{row}.__wrapped__").replace("{name}", row).replace(
            "{number}", number)

    return filled(made.define + made.before), filled(made.after)


LEAK = """held = []
@jax.jit
def leaks(x):
    doubled = x * 2
    held.append(doubled)
    return doubled
leaks(1.)
held[0] + 1"""
QUESTION = """@jax.jit
def asks(x):
    z = x * 2
    w = z + 1
    if w: return z
asks(1.)"""
REUSE = """key = jax.random.key(7)
jax.random.normal(key, (2,))
jax.random.uniform(key, (2,))
%lens keys"""


@pytest.mark.parametrize("language", ["en", "ko"])
def test_what_the_design_adds_below_the_table(language, labs, lab_page, picture) -> None:
    """A leak names who holds the tracer, ``bool`` the path with lines, reuse the key's family."""
    lab = labs(language)
    lab.write("below.ipynb", SETUP, LEAK, QUESTION, REUSE)
    page = lab_page(lab, 1500)
    lab.open(page, "below.ipynb")
    for at in range(4):
        page.evaluate("i => { const {content} = window.jupyterapp.shell.currentWidget;"
                      " content.activeCellIndex = i; content.deselectAll(); }", at)
        lab.command(page, "notebook:run-cell")
        lab.rest(page)
    cards = page.locator(".jp-OutputArea-output .saem-error")
    expect(cards).to_have_count(2)
    steps = cards.nth(0).locator(".saem-path-steps li")
    expect(steps.locator("b")).to_have_text(["x", "doubled", "held[0]"])
    expect(steps.nth(1).locator("code")).to_have_text("doubled = x * 2")
    expect(steps.nth(1).locator(".saem-place")).to_have_text(
        {"en": "cell 2, line 4", "ko": "셀 2 4행"}[language])
    steps = cards.nth(1).locator(".saem-path-steps li")
    expect(steps.locator("b")).to_have_text(["x", "z", "w", "bool"])
    expect(steps.nth(2).locator(".saem-place")).to_have_text(
        {"en": "cell 3, line 4", "ko": "셀 3 4행"}[language])
    reused = page.locator(".jp-OutputArea-output .saem-reuse")
    expect(reused).to_have_count(1)
    expect(page.locator(".saem-keys")).to_contain_text("normal")
    expect(page.locator(".saem-keys")).to_contain_text("uniform")
    picture(page, f"recompile-below-{language}")


@pytest.fixture(scope="module", params=["en", "ko"])
def ran(request, labs: Callable[[str], Lab], kept_pages: KeptPages) -> Iterator[tuple[Page, str]]:
    """A notebook in which every row has run, and the language."""
    lab = labs(request.param)
    texts = [SETUP, *(cell for row in NAMES for cell in cells(row))]
    lab.write("recompiles.ipynb", *texts)
    with kept_pages.lent(request.session) as lend:
        page = lend(lab, 1500)
        lab.open(page, "recompiles.ipynb")
        lab.run_all(page)
        for row in ("same_cell", "comment"):
            at = 1 + 2 * NAMES.index(row)
            page.evaluate(
                """([at, text]) => { const {content} = window.jupyterapp.shell.currentWidget;
                   content.activeCellIndex = at; content.deselectAll();
                   content.activeCell.model.sharedModel.setSource(text); }""",
                [at, texts[at] + ("# another comment" if row == "comment" else "")])
            lab.command(page, "notebook:run-cell")
            lab.rest(page)
        # Mutated values are looked at when a cell ends.
        expect(page.locator(f"{PANEL} .saem-row")).to_have_count(len(ROWS), timeout=30_000)
        yield page, request.param


def row_of(page: Page, name: str) -> Locator:
    """The panel's row of a function."""
    exact = re.compile(f"^{re.escape(name)}$")
    return page.locator(f"{PANEL} .saem-row", has=page.locator(".saem-name", has_text=exact))


@pytest.mark.parametrize("name", NAMES)
def test_the_panel_names_what_changed(name: str, ran, picture) -> None:
    """Argument, old and new value, cost, what to do, and the call that did it."""
    page, language = ran
    wanted = ROWS[name]
    row = row_of(page, name)
    expect(row).to_have_count(1)
    row.scroll_into_view_if_needed()  # marks are drawn where they are in sight
    row.locator(".saem-mark").last.click()
    detail = row.locator(".saem-detail")
    expect(detail).to_have_class(re.compile(f"saem-kind-{wanted.kind}"))
    # What stands in brackets behind an executed cell: both reruns came after all others.
    rerun = {"same_cell": 0, "comment": 1}.get(name)
    number = 2 + 2 * NAMES.index(name) if rerun is None else 2 + 2 * len(NAMES) + rerun
    sentence = (wanted.en if language == "en" else wanted.ko).replace("{before}", str(number))
    sentence = sentence.replace("{after}", str(number + 1))
    if wanted.tag:
        reason = detail.locator(f"[data-tag='{wanted.tag}']")
        expect(reason.locator(".saem-says")).to_contain_text(sentence)
        expect(reason.locator(".saem-advice")).to_contain_text(
            wanted.mend_en if language == "en" else wanted.mend_ko)
        if wanted.change is not None:
            path, old, new = wanted.change
            expect(reason.locator(".saem-old")).to_have_text(old)
            expect(reason.locator(".saem-new")).to_have_text(new)
            expect(reason.locator(".saem-path")).to_have_text([path] if path else [])
    else:
        expect(detail.locator(".saem-headline")).to_contain_text(sentence)
    headline = detail.locator(".saem-headline")
    compiles = row.locator(".saem-count-compiles b")
    if wanted.kind == "compile":
        expect(headline).to_contain_text(re.compile(r"\d(\.\d+)? ?m?s"))
        expect(detail.locator("li.saem-step-compile b")).to_have_text(re.compile(r"\d"))
        expect(compiles).to_have_text("2")
    else:
        expect(compiles).to_have_text("1")
        expect(detail.locator("li.saem-step-compile")).to_have_count(0)
    if wanted.kind == "found":
        expect(headline).to_contain_text(re.compile(
            {"en": "nothing was (traced or )?compiled", "ko": "컴파일(도 )?하지 않"}[language]))
    cell = number + 1 if rerun is None else number
    expect(detail.locator(".saem-place").first).to_contain_text(
        {"en": f"cell {cell}", "ko": f"셀 {cell}"}[language])
    row.scroll_into_view_if_needed()
    picture(row, f"recompile-{name.strip('<>')}-{language}")
