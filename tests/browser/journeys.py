"""What does a person do in each view, in whatever page shows it?

``PROGRAMS`` has one cell for each view; every shell (JupyterLab, Notebook 7, a page with the
widgets' manager alone) runs the same cells.  ``USE`` has one function for each view: it clicks,
points and types in the output of that cell as a person would, and asserts what must change.

Read before: ``jupyter.py``.  Read after: ``test_journeys.py``.
Invariant: what is expected follows from the program in the cell and from NumPy's rules, never from
what the lens said before.
"""

from __future__ import annotations

import csv
import json
import math
import pathlib
import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

AXE = pathlib.Path(__file__).parents[2] / "extension/node_modules/axe-core/axe.min.js"
FAULTS = """async root => (await axe.run(root, {resultTypes: ['violations']})).violations
.filter(v => ['serious', 'critical'].includes(v.impact))
.map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200)).join(' | '))"""

# What every program below stands on.  ``shown`` is how the shell shows a view.
SETUP = """%load_ext saem.lens
import numpy as np, saem as jax, saem.numpy as jnp, saem.lens as lens
from saem.lesson import predict
jax.config.update("jax_num_cpu_devices", 2)
def loss(w, x):
    h = x
    for i in range(3):
        h = jnp.tanh(w * h)
    return jnp.sum(h)
w, x = jnp.ones(3), jnp.linspace(0.0, 1.0, 3)
"""
GATES = """def double(x, factor): return x * factor
def asks(x):
    y = x * 2
    if y > 0:
        return y
    return -y
chosen = predict.choice("chosen", "What is the gradient of x**2 at 3?", ["3", "6", "9"])
counted = predict.number("counted", "How many times does double compile?")
named = predict.text("named", "Which primitive writes x * 2?")
which = predict.argument("which", "Which argument compiles it again?", of=double)
where = predict.line("where", "Which line needs a number?", of=asks)
drawn = predict.shape("drawn", "What shape has x[None] * y?")"""
# The kernel reads each letter so slowly that the last ones still wait when the button is pressed.
HURRY = """import time
hurried = predict.shape("hurried", "What shape has x[None] * y?")
class Slow(type(hurried.kind)):
    def read(self, answer):
        time.sleep(0.4)
        return super().read(answer)
hurried.kind = Slow()"""
JUDGE = """chosen.judge(str(int(jax.grad(lambda x: x ** 2)(3.0))))
step = jax.jit(double)
with counted.watch("compiles", of="double"), which.watch("argument"):
    step(jnp.ones(3), 2.0); step(jnp.ones(4), 2.0)
named.judge(jax.make_jaxpr(lambda x: x * 2)(1.0).eqns[0].primitive.name)
try:
    with where.watch("line"): jax.jit(asks)(1.0)
except jax.errors.TracerBoolConversionError: pass
drawn.judge((jnp.ones(4)[None] * jnp.ones((3, 1))).shape)"""
PROGRAMS: dict[str, str] = {
    "explorer": "shown(lens.jaxpr(jax.jit(jax.grad(loss)))(w, x))",
    "autodiff": "shown(lens.autodiff(loss)(w, x))",
    "bench": "lens.bench(loss, 'grad')(jnp.ones((2, 3)), jnp.ones((2, 3)))",
    "steps": """def ill(x):
    shifted = x - 1.0
    scaled = shifted * 2.0
    return jnp.sum(jnp.log(scaled) + 1.0)
shown(lens.steps(ill)(jnp.linspace(0.0, 2.0, 6)))""",
    "tracers": """def branching(x, n):
    total = x * n
    for i in range(4):
        total = total + x
    size = int(n)
    if total > size:
        return total
    return -total
shown(lens.tracers(jax.jit(branching, static_argnums=1))(1.0, 2))""",
    "recompiles": """@jax.jit
def step(x): return x * 3.0
for n in (3, 4, 5, 6, 6): step(jnp.ones(n))
shown(lens.recompiles(step))""",
    "keys": """key = jax.random.key(7)
one, two = jax.random.split(key)
jax.random.normal(one, (2,))
jax.random.uniform(one, (2,))
shown(lens.keys())""",
    "devices": """cpus = jax.devices()
mesh = jax.sharding.Mesh(np.array(cpus), ("d",))
P = jax.sharding.PartitionSpec
rows = jax.device_put(jnp.ones((4, 4)), jax.sharding.NamedSharding(mesh, P("d")))
moved = jax.device_put(jnp.ones(5), cpus[1])
kept = jax.jit(lambda x: x + 1, donate_argnums=0)(jnp.arange(6.0))
shown(lens.devices())""",
    "compiled": "shown(lens.compiled(jax.grad(loss))(w, x))",
    "error": """def needs_number(x):
    z = x * 2
    if z > 0:
        return z
    return -z
jax.jit(needs_number)(1.0)""",
    "live": "lens.live()",
    "calls": """@jax.jit
def later(x): return x - 2.0
for n in (3, 4): later(jnp.ones(n))""",
    "gates": GATES,
    "judge": JUDGE,
    "overview": "shown(lens.gates(FOLDER))",
    "hurry": HURRY,
}


class Shell:
    """A page that runs the cells: each of the three shells is one."""

    name: str
    language: str
    page: Page
    answered: bool = False  # whether the questions of "gates" have answers

    def show(self, name: str) -> Locator:
        """Run the cell of a view and return the output that it made, scrolled into sight."""
        raise NotImplementedError

    def run(self, name: str) -> None:
        """Run a cell whose output is not looked at."""
        raise NotImplementedError

    def rest(self) -> None:
        """Wait until the kernel has answered everything."""
        raise NotImplementedError

    def say(self, en: str, ko: str) -> str:
        """The one that this page's language asks for."""
        return {"en": en, "ko": ko}[self.language]


def faults(seen: Locator) -> list[str]:
    """Serious accessibility faults that axe-core finds in a view."""
    if not AXE.is_file():
        return []
    if not seen.evaluate("() => 'axe' in window"):
        seen.evaluate(f"() => {{ {AXE.read_text(encoding='utf-8')} }}")
    return seen.evaluate(FAULTS)  # type: ignore[no-any-return]


def lit(root: Locator, where: str) -> Locator:
    return root.locator(f"{where} .saem-on, {where}.saem-on")


def use_explorer(shell: Shell, root: Locator) -> None:
    """Point at a tanh, choose it, fold, search, colour, zoom, and choose in the graph."""
    lines = tanh_lines(root)
    expect(lines).to_have_count(3)
    expect(root.locator("g.saem-node[data-eqn]")).not_to_have_count(0)
    point_at_an_equation(root, lines.first)
    read_the_card(root, lines.first)
    fold_by_mouse(shell, root)
    fold_by_keyboard(root)
    search_the_text(root)
    change_what_the_text_shows(root)
    choose_in_the_graph(root)
    zoom(root)


def tanh_lines(root: Locator) -> Locator:
    return root.locator(".saem-pane-text .saem-line", has_text=re.compile(r"\btanh\b"))


def point_at_an_equation(root: Locator, line: Locator) -> None:
    """The same computation lights up in the source, the graph, the StableHLO and the kernels."""
    for summary in root.locator(".saem-program > summary").all():
        summary.click()
    line.hover()
    expect(lit(root, ".saem-pane-source")).to_contain_text("jnp.tanh(w * h)")
    expect(root.locator("g.saem-node-equation.saem-on")).to_have_count(1)
    expect(root.locator(".saem-program .saem-line.saem-on", has_text="stablehlo.tanh")
           ).to_have_count(1)
    expect(root.locator(".saem-kernel.saem-on")).to_have_count(1)


def read_the_card(root: Locator, line: Locator) -> None:
    """The card of a chosen equation has its facts, and moves nothing under the pointer."""
    line.click()
    card = root.locator(".saem-card")
    expect(card.locator(".saem-primitive")).to_have_text("tanh")
    expect(card).to_contain_text("f32[3]")
    expect(card.locator(".saem-source-line").first).to_contain_text("jnp.tanh(w * h)")
    expect(card).to_contain_text("24 B")  # three numbers of four bytes read, three written
    below = ("node => node.querySelector('.saem-kernels').getBoundingClientRect().top"
             " - node.getBoundingClientRect().top")
    where = root.evaluate(below)
    root.locator(".saem-pane-text .saem-line").last.hover()
    assert root.evaluate(below) == where


def fold_by_mouse(shell: Shell, root: Locator) -> None:
    """A folded call hides its equations in the text and in the graph."""
    text, lines = root.locator(".saem-pane-text"), tanh_lines(root)
    nodes = root.locator("g.saem-node[data-eqn]")
    many = nodes.count()
    fold = text.locator(".saem-fold[data-fold]").first
    fold.click()
    expect(lines).to_have_count(0)
    assert nodes.count() < many
    expect(text.locator(".saem-folded")).to_contain_text(shell.say("folded", "접"))
    fold.click()
    expect(lines).to_have_count(3)
    expect(nodes).to_have_count(many)


def fold_by_keyboard(root: Locator) -> None:
    """The arrow keys fold and move, though a notebook has its own use for them."""
    lines = tanh_lines(root)
    head = root.locator(".saem-pane-text .saem-line[data-head]").first
    head.focus()
    head.press("ArrowLeft")
    expect(lines).to_have_count(0)
    head.press("ArrowRight")
    expect(lines).to_have_count(3)
    lines.first.focus()
    lines.first.press("ArrowDown")
    expect(root.locator(".saem-card .saem-primitive")).not_to_have_text("tanh")


def search_the_text(root: Locator) -> None:
    """Enter goes from one place that was found to the next; no words, no places."""
    search = root.locator("input[type='search']")
    search.fill("tanh")
    expect(root.locator(".saem-found")).to_contain_text("3")
    found = root.locator(".saem-hit-now")
    expect(found).to_have_count(1)
    before = found.get_attribute("data-eqn")
    search.press("Enter")
    expect(found).not_to_have_attribute("data-eqn", before or "")
    search.fill("")
    expect(root.locator(".saem-hit, .saem-hit-now")).to_have_count(0)


def change_what_the_text_shows(root: Locator) -> None:
    """Columns of types, and the colours of transformations where there are several."""
    text = root.locator(".saem-pane-text")
    root.locator(".saem-tab[data-mode='columns']").click()
    expect(text.locator(".saem-col-type").first).to_contain_text("f32[")
    root.locator(".saem-tab[data-mode='text']").click()
    stacks = root.locator(".saem-bar .saem-button[aria-pressed]")
    if stacks.count():
        stacks.first.click()
        expect(text.locator("[class*='saem-stack-']").first).to_be_visible()
        stacks.first.click()


def choose_in_the_graph(root: Locator) -> None:
    """A node that is clicked is the equation of the card and of one line of the text."""
    equations = "g.saem-node-equation[data-eqn]"
    node = root.locator(equations, has_text="cos").or_(
        root.locator(equations, has_text="mul")).first
    node.click()
    expect(root.locator(".saem-card .saem-primitive")).to_have_text(
        node.locator(".saem-node-label").text_content() or "")
    expect(root.locator(".saem-pane-text .saem-line.saem-on")).to_have_count(1)


def zoom(root: Locator) -> None:
    """The graph grows, and goes back to its size."""
    scale = root.locator(".saem-zoom-scale")
    was = scale.inner_text()
    root.locator(".saem-zoom-tools button").nth(1).click()
    expect(scale).not_to_have_text(was)
    root.locator(".saem-zoom-tools button").last.click()
    expect(scale).to_have_text(was)


def use_autodiff(shell: Shell, root: Locator) -> None:
    """Both passes hold their equations; pointing at what is kept lights who makes and reads it."""
    forward, backward = root.locator(".saem-pass-forward"), root.locator(".saem-pass-backward")
    expect(forward.locator(".saem-line", has_text="tanh")).to_have_count(3)
    expect(backward.locator(".saem-line", has_text="tanh")).to_have_count(0)
    # Three numbers of four bytes each.
    expect(root.locator(".saem-residual", has_text="12 B")).not_to_have_count(0)
    made = root.locator(".saem-residual[data-eqn]:not([data-eqn=''])").first
    made.hover()
    expect(forward.locator(".saem-on").or_(backward.locator(".saem-on"))).not_to_have_count(0)
    line = forward.locator(".saem-line", has_text="tanh").first
    line.click()
    expect(root.locator(".saem-card .saem-primitive")).to_have_text("tanh")
    expect(root.locator(".saem-pane-text .saem-line.saem-on")).to_have_count(1)
    backward.locator(".saem-line").last.click()
    expect(root.locator(".saem-card .saem-primitive.saem-backward")).to_be_visible()


def use_bench(shell: Shell, root: Locator) -> None:
    """Add, reorder and remove transformations; a wrong one is answered in words."""
    stages, heads = root.locator(".saem-stage"), root.locator("th")
    expect(stages).to_have_count(1)
    root.get_by_role("button", name="+ vmap", exact=True).click()
    expect(stages).to_have_count(2)
    expect(heads.last).to_have_text("vmap(grad(loss))")
    expect(root.locator(".saem-diff-right")).not_to_have_count(0)
    chips = root.locator(".saem-chip")
    chips.nth(2).locator(".saem-chip-act").first.click()
    # The gradient of what is not a scalar: the engine refuses, in the reader's language.
    expect(root.locator("h4", has_text="grad(vmap(loss))")).to_be_visible()
    expect(root.locator(".saem-notice")).to_contain_text(shell.say("scalar", "실수 하나"))
    expect(root.locator(".saem-notice")).not_to_contain_text("traitlets")
    chips.nth(1).locator(".saem-chip-act").last.click()
    expect(stages).to_have_count(1)
    expect(root.locator(".saem-residual")).not_to_have_count(0)
    own = root.locator(".saem-chips .saem-search")
    own.fill("vmap(in_axes=1)")
    own.press("Enter")
    expect(heads.last).to_have_text("vmap(in_axes=1)(grad(loss))")
    root.locator(".saem-stage details.saem-program > summary").last.click()
    expect(root.locator(".saem-stage .saem-jaxpr g.saem-node").first).to_be_visible()
    own = root.locator(".saem-chips .saem-search")
    own.fill("__import__('os').system('true')")
    own.press("Enter")
    expect(root.locator(".saem-notice")).to_contain_text(
        shell.say("needs to be one of", "중 하나이고"))
    chips.last.locator(".saem-chip-act").last.click()
    expect(root.locator(".saem-notice")).to_have_count(0)


def use_steps(shell: Shell, root: Locator) -> None:
    """Move the slider, press the buttons, go to where the NaN is born, play to the end."""
    slider, at = root.locator(".saem-slider"), root.locator(".saem-stepper output")
    primitive = root.locator(".saem-card .saem-primitive")
    root.locator(".saem-stepper button").nth(1).click()
    expect(primitive).to_have_text("sub")
    expect(root.locator(".saem-heatmap rect")).to_have_count(6)
    slider.focus()
    slider.press("ArrowRight")
    expect(primitive).to_have_text("mul")
    # 2·(x − 1) from −2 to 2.
    numbers = root.locator(".saem-picture .saem-facts dd")
    expect(numbers.nth(0)).to_have_text("-2")
    expect(numbers.nth(1)).to_have_text("2")
    root.locator(".saem-born").click()
    expect(primitive).to_have_text("log")
    bad = [math.nan for number in range(6) if 2 * (number * 0.4 - 1) < 0]
    expect(root.locator(".saem-ill", has_text="NaN")).to_contain_text(str(len(bad)))
    expect(root.locator(".saem-cell-ill")).to_have_count(len(bad))
    expect(root.locator(".saem-born-note")).to_be_visible()
    expect(root.locator("g.saem-node-equation.saem-on")).to_contain_text("log")
    root.locator(".saem-stepper button").nth(2).click()
    expect(root.locator(".saem-card .saem-primitive")).to_have_text("add")
    last = slider.get_attribute("max") or ""
    expect(slider).to_have_js_property("value", last)
    expect(at).to_contain_text(last)


def use_tracers(shell: Shell, root: Locator) -> None:
    """Each line shows its values and kinds, the unrolled loop and the question that was refused."""
    expect(root.locator(".saem-value", has_text="total")).not_to_have_count(0)
    expect(root.locator(".saem-value.saem-is-abstract", has_text="x").first).to_contain_text("f32[")
    expect(root.locator(".saem-value.saem-is-plain", has_text="size")).to_contain_text("int")
    expect(root.locator(".saem-unrolled")).to_contain_text("4")
    expect(root.locator(".saem-refused")).to_have_count(1)
    note = root.locator(".saem-failed-note")
    expect(note).to_contain_text("TracerBoolConversionError")
    expect(note).to_contain_text(shell.say("Python asked a traced value", "추적 중인 값에 참인지"))
    expect(note.locator(".saem-message")).to_be_hidden()
    never = root.locator(".saem-unrun", has_text="return -total")
    expect(never).to_have_count(1)
    expect(root.locator(".saem-legend li")).to_have_count(4)


def use_recompiles(shell: Shell, root: Locator) -> None:
    """Choose marks by mouse and keys, read old and new, and save both files."""
    row = root.locator(".saem-row", has_text="step")
    marks = row.locator(".saem-mark")
    expect(row.locator(".saem-count-compiles b")).to_have_text("4")
    expect(row.locator(".saem-warning")).to_contain_text("x")
    marks.nth(1).click()
    detail = row.locator(".saem-detail")
    expect(detail.locator(".saem-old")).to_have_text("f32[3]")
    expect(detail.locator(".saem-new")).to_have_text("f32[4]")
    expect(detail.locator(".saem-advice")).to_be_visible()
    marks.nth(1).press("ArrowRight")
    expect(detail.locator(".saem-new")).to_have_text("f32[5]")
    marks.nth(2).press("End")  # the fifth call, which hit
    expect(detail).to_have_class(re.compile("saem-kind-hit"))
    shell.page.keyboard.press("Escape")
    expect(detail).to_have_count(0)
    saves = root.locator(".saem-bar .saem-tools button")
    with shell.page.expect_download() as saved:
        saves.nth(0).click()
    model = json.loads(pathlib.Path(saved.value.path()).read_text(encoding="utf-8"))
    assert [f["summary"]["name"] for f in model["functions"]] == ["step"]
    with shell.page.expect_download() as saved:
        saves.nth(1).click()
    text = pathlib.Path(saved.value.path()).read_text(encoding="utf-8")
    kinds = [line["kind"] for line in csv.DictReader(text.splitlines())]
    assert kinds == ["compile"] * 4 + ["hit"]


def use_live(shell: Shell, root: Locator) -> None:
    """A history that was shown before grows when another cell runs, and answers as it stands."""
    row = root.locator(".saem-row", has_text="later")
    shell.run("calls")
    expect(row).to_have_count(1)
    # Rows are drawn where they are in sight.
    root.evaluate("node => [...node.querySelectorAll('.saem-row')].at(-1).scrollIntoView()")
    marks = row.locator(".saem-mark")
    expect(marks).to_have_count(2)
    marks.last.click()
    expect(row.locator(".saem-detail .saem-says")).to_contain_text(
        shell.say("argument x: f32[3] → f32[4]", "인자 x: f32[3] → f32[4]"))


def use_keys(shell: Shell, root: Locator) -> None:
    """The key that was used twice shows both places; a branch folds."""
    reused = root.locator(".saem-key-node.saem-reused")
    expect(reused).to_have_count(1)
    uses = reused.locator(".saem-uses li")
    expect(uses).to_have_count(2)
    expect(uses.nth(0)).to_contain_text("jax.random.normal(one")
    expect(uses.nth(1)).to_contain_text("jax.random.uniform(one")
    expect(uses.nth(1)).to_have_class("saem-reuse")
    fold = root.locator(".saem-key-fold").first
    fold.click()
    expect(reused).to_be_hidden()
    fold.click()
    expect(reused).to_be_visible()


def use_devices(shell: Shell, root: Locator) -> None:
    """Arrays are drawn in their shards, moved bytes and donated buffers are counted."""
    def held(name: str) -> Locator:
        return root.locator(".saem-array").filter(
            has=shell.page.locator(".saem-name", has_text=re.compile(f"^{name}$")))

    expect(root.locator(".saem-legend li")).to_have_count(2)
    expect(held("rows").locator(".saem-shards rect")).to_have_count(2)
    expect(held("rows")).to_contain_text("64 B")
    expect(held("moved").locator(".saem-shards")).to_have_attribute("aria-label", "1")
    expect(root.locator("li", has_text="cpu:0 → cpu:1").first).to_be_visible()
    expect(root.locator("li", has_text="<lambda>(x)").first).to_contain_text("24 B")


def use_compiled(shell: Shell, root: Locator) -> None:
    """Pointing at a kernel lights its equations; a search finds in the jaxpr beside it."""
    kernels = root.locator(".saem-kernel[data-eqn]")
    expect(kernels).not_to_have_count(0)
    expect(root.locator(".saem-memory dd")).not_to_have_count(0)
    kernels.first.hover()
    expect(root.locator(".saem-pane-text .saem-line.saem-on")).not_to_have_count(0)
    kernels.first.click()
    expect(root.locator(".saem-card .saem-primitive")).to_be_visible()
    root.locator("input[type='search']").fill("tanh")
    expect(root.locator(".saem-found")).to_contain_text("3")


def use_error(shell: Shell, root: Locator) -> None:
    """What was needed, the value's path, two ways to mend it, the message, the lesson."""
    card = root.locator(".saem-error")
    expect(card).to_contain_text(shell.say("need numbers", "수가 필요합니다"))
    expect(card.locator(".saem-path-steps li b")).to_have_text(["x", "z", "gt", "bool"])
    expect(card.locator(".saem-mends li")).to_have_count(2)
    message = card.locator(".saem-message")
    expect(message).to_be_hidden()
    card.locator("details > summary").click()
    expect(message).to_contain_text("bool")
    expect(card.locator(".saem-lesson")).to_contain_text(re.compile(r"6|06"))


def press(shell: Shell, gate: Locator) -> None:
    """Press a gate's button; while the kernel is busy its click would come before the value."""
    shell.rest()
    gate.locator(".saem-gate-commit").click()
    shell.rest()


def commit(shell: Shell, gate: Locator) -> None:
    """Commit a readable guess; on a busy machine the click may still overtake it."""
    press(shell, gate)
    try:
        expect(gate.locator(".saem-gate-commit")).to_be_disabled()
    except AssertionError:
        press(shell, gate)
        expect(gate.locator(".saem-gate-commit")).to_be_disabled()


def write(gate: Locator, words: str) -> None:
    gate.locator("input[type='text']").fill(words)


def use_gates(shell: Shell, root: Locator) -> None:
    """Every kind of question: an empty and an unreadable guess, right ones, wrong ones, a reset."""
    gates = root.locator(".saem-gate:has(.saem-gate-commit)")
    expect(gates).to_have_count(6)
    chosen, counted, named, which, where, drawn = (gates.nth(at) for at in range(6))
    choose_again(shell, chosen)
    write_a_number(shell, counted)
    write(named, "mul")
    commit(shell, named)
    which.get_by_text("x", exact=True).click()
    commit(shell, which)
    where.get_by_text("return y").click()
    commit(shell, where)
    write(drawn, "(3, 4)")
    drawn.locator("input[type='text']").press("Tab")
    expect(drawn.locator(".saem-box")).to_have_count(12)
    commit(shell, drawn)
    expect(drawn.locator(".saem-gate-verdict")).to_have_attribute("data-state", "waiting")
    shell.run("judge")
    # double compiles twice; `if y > 0` needs a number, not `return y`.
    states = ["right", "wrong", "right", "right", "wrong", "right"]
    for gate, state in zip((chosen, counted, named, which, where, drawn), states, strict=True):
        expect(gate.locator(".saem-gate-verdict")).to_have_attribute("data-state", state)
    expect(counted.locator(".saem-gate-verdict")).to_contain_text("2")
    shell.answered = True


def choose_again(shell: Shell, gate: Locator) -> None:
    """Nothing is chosen at first; a committed choice waits, is taken back and made anew."""
    press(shell, gate)
    expect(gate).to_contain_text(shell.say("Choose or write an answer", "먼저 답을 고르거나"))
    gate.get_by_text("9", exact=True).click()
    commit(shell, gate)
    expect(gate.locator(".saem-gate-verdict")).to_have_attribute("data-state", "waiting")
    gate.locator(".saem-gate-reset").click()
    expect(gate.locator(".saem-gate-verdict")).to_have_count(0)
    # By keys: from the first option, 3, to the second, 6.
    gate.locator("input[type='radio']").first.focus()
    shell.page.keyboard.press("ArrowDown")
    expect(gate.locator("input[type='radio']").nth(1)).to_be_checked()
    expect(gate.locator("input[type='radio']").nth(1)).to_be_focused()
    commit(shell, gate)


def write_a_number(shell: Shell, gate: Locator) -> None:
    """Words are no number: the gate tells so and commits nothing."""
    write(gate, "twice")
    press(shell, gate)
    expect(gate).to_contain_text(shell.say("Please give a number", "수를 적어 주십시오"))
    expect(gate.locator(".saem-gate-verdict")).to_have_count(0)
    write(gate, "1")
    commit(shell, gate)


def use_overview(shell: Shell, root: Locator) -> None:
    """The table of a folder of notebooks counts right and wrong answers."""
    rows = root.locator(".saem-gates tbody tr").filter(has_not_text="hurried")
    expect(rows).to_have_count(6)
    expect(root.locator("td.saem-gate-right")).to_have_count(4)
    expect(root.locator("td.saem-gate-wrong")).to_have_count(2)
    expect(rows.filter(has_text="counted").locator("td").nth(3)).to_have_text("2")


def use_hurry(shell: Shell, root: Locator) -> None:
    """A press right after the last letter commits what stands there, not what had arrived."""
    gate = root.locator(".saem-gate:has(.saem-gate-commit)")
    gate.locator("input[type='text']").press_sequentially("3,14")
    gate.locator(".saem-gate-commit").click()
    expect(gate.locator(".saem-gate-verdict")).to_contain_text("(3, 14)")
    expect(gate.locator(".saem-gate-commit")).to_be_disabled()


USE: dict[str, Callable[[Shell, Locator], None]] = {
    "explorer": use_explorer, "autodiff": use_autodiff, "bench": use_bench, "steps": use_steps,
    "tracers": use_tracers, "recompiles": use_recompiles, "live": use_live, "keys": use_keys,
    "devices": use_devices, "compiled": use_compiled, "error": use_error, "gates": use_gates,
    "overview": use_overview, "hurry": use_hurry,
}  # fmt: skip
