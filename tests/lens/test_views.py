"""Views: what they show is what NumPy, the jaxpr and the recorder say; looking leaves no mark."""

from __future__ import annotations

import functools
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
import traitlets
from IPython.core import interactiveshell

import saem as jax
import saem.lens as lens
import saem.numpy as jnp
from saem.core import source
from saem.lens import extension, views
from saem.lens.notebook import gates
from saem.lens.page import document
from saem.observe import language, report, schema
from saem.observe.jaxpr_model import jaxpr_model
from saem.observe.recorder import Recorder, recorder
from saem.observe.texts import text_of
from saem.observe.transformed import bench_model, transformation
from saem.observe.typed_json import from_json, to_json

W, X = jnp.arange(6.0).reshape(2, 3), jnp.ones(3)


def f(w, x):
    return jnp.sum(jnp.tanh(w @ x) ** 2)


def ill(x):
    y = x - 1.0
    z = jnp.log(y)
    return jnp.sum(z)


@pytest.fixture
def recording():
    recorder.clear()
    recorder.start()
    yield recorder
    recorder.stop()
    recorder.clear()


MADE = {
    "jaxpr": lambda: views.jaxpr(jax.grad(f))(W, X),
    "tracers": lambda: views.tracers(f)(W, X),
    "steps": lambda: views.steps(f)(W, X),
    "bench": lambda: views.View(
        bench_model(f, ["grad", "vmap(in_axes=(None, 0))"], (W, jnp.ones((4, 3))))),
    "autodiff": lambda: views.autodiff(f)(W, X),
    "compiled": lambda: views.compiled(f)(W, X),
    "devices": lambda: views.devices({"w": W, "tree": {"x": X}}),
}


@pytest.mark.parametrize("name", MADE)
def test_each_view_has_a_text_a_page_and_json_that_comes_back(name):
    view = MADE[name]()
    for lang in language.LANGUAGES:
        assert text_of(view.model, lang)
        assert "saem-data" in document(view.model, lang, "t")
    assert from_json(schema.Model, json.loads(json.dumps(to_json(view.model)))) == view.model


def test_looking_leaves_no_mark(recording):
    fast = jax.jit(f)
    fast(W, X)
    before = recording.snapshot()
    for name in ("jaxpr", "tracers", "steps", "compiled"):
        getattr(views, name)(fast)(W, X)
    entries = len(fast.info.entries)
    assert recording.snapshot().functions == before.functions
    assert entries == 1
    fast(W, X)
    assert recording.snapshot().functions[0].summary.hits == 1


def test_every_equation_has_its_stablehlo_and_its_kernel():
    model = views.jaxpr(jax.grad(f))(W, X).model
    written = {e for line in model.program for e in line.equations}
    needed = {a.id for a in model.body.outputs}
    for equation in reversed(model.body.equations):
        # What gives nothing to the result is not lowered.
        live = not needed.isdisjoint(a.id for a in equation.outputs)
        assert (equation.id in written) == live
        needed |= {a.id for a in equation.inputs if a.id} if live else set()
    tanh = next(e for e in model.body.equations if e.primitive == "tanh")
    assert any("stablehlo.tanh" in line.text and tanh.id in line.equations
               for line in model.program)
    assert any(tanh.id in kernel.equations for kernel in model.kernels)
    assert math.isclose(sum(kernel.share for kernel in model.kernels), 1.0)
    dot = next(e for e in model.body.equations if e.primitive == "dot_general")
    assert dot.flops == 2 * 2 * 3  # multiply and add
    assert dot.bytes == 4 * (6 + 3 + 2)


def test_steps_are_numpys_numbers():
    model = views.steps(f)(W, X).model
    product = np.asarray(W) @ np.asarray(X)
    first = model.steps[0].outputs[0]
    assert first.grid == (tuple(float(f"{v:.4g}") for v in product),)
    assert math.isclose(first.mean, product.mean(), rel_tol=1e-6)
    total = model.steps[-1].outputs[0]
    assert math.isclose(total.minimum, np.sum(np.tanh(product) ** 2), rel_tol=1e-5)


def test_arguments_may_be_named():
    def scaled(x, factor):
        return (x * factor).sum()

    x = jnp.array([1.0, 2.0])
    last = views.steps(scaled)(x, factor=3.0).model.steps[-1].outputs[0]
    assert last.minimum == 9.0
    assert "mul" in text_of(views.autodiff(scaled)(x, factor=3.0).model, "en")


def test_frames_of_ipython_are_not_the_users():
    assert extension  # which excludes them
    assert source.is_internal(interactiveshell.__file__)
    assert not source.is_internal(__file__)


def test_a_nan_is_born_where_the_logarithm_is_taken():
    model = views.steps(ill)(jnp.array([0.5, 2.0])).model
    (born,) = model.born
    assert next(e for e in model.jaxpr.body.equations if e.id == born).primitive == "log"


def test_what_reverse_mode_keeps_and_its_bytes():
    model = views.autodiff(f)(W, X).model
    assert model.bytes == sum(r.bytes for r in model.saved) > 0
    equations = {e.id: e for e in model.jaxpr.body.equations}
    for value in model.saved:
        assert value.maker is None or equations[value.maker].colour == "forward"
        assert {equations[r].colour for r in value.readers} == {"backward"}
    assert any(value.maker is None for value in model.saved)  # w needs x


def test_a_diff_holds_each_equation_once():
    model = bench_model(f, ["grad"], (W, X))
    before, after = model.stages
    left = [row.left for row in after.rows if row.left]
    right = [row.right for row in after.rows if row.right]
    assert left == [e.id for e in before.jaxpr.body.equations]
    assert right == [e.id for e in after.jaxpr.body.equations]
    assert before.bytes == 0 < after.bytes


def test_a_transformation_that_does_not_fit_is_told():
    model = bench_model(f, ["vmap(in_axes=(5, None))", "grad"], (W, X))
    assert model.stages[-1].error
    assert len(model.stages) == 2 or model.stages[1].error
    with pytest.raises(ValueError, match="one of"):
        transformation("__import__('os')")
    with pytest.raises(ValueError, match="one of"):
        transformation("vmap(in_axes=open('x'))")


def test_an_error_on_the_bench_is_told_in_both_languages():
    wrong = bench_model(f, ["open('x')"], (W, X)).stages[-1].error
    assert "needs to be one of grad, " in wrong.en
    assert "중 하나이고" in wrong.ko
    refused = bench_model(lambda w: w * 2, ["grad"], (W,)).stages[-1].error
    assert "scalar-output" in refused.en
    assert refused.ko.startswith("함수가 수 하나가 아니라 배열을 돌려줍니다.")


@pytest.mark.parametrize("chips", [3, ["grad", 3], [["jit"]], None])
def test_a_bad_message_to_the_bench_is_refused_and_changes_nothing(chips):
    bench = lens.bench(f, "grad")(W, X)
    before = bench.model
    with pytest.raises(traitlets.TraitError):
        bench.set_state({"chips": chips})
    assert bench.chips == ["grad"]
    assert bench.model is before
    bench.set_state({"chips": ["grad", "jit"]})
    assert bench.model["chips"] == ["grad", "jit"]


@pytest.mark.parametrize("make", [
    lambda: views.jaxpr(f)(W, X), lambda: jax.make_jaxpr(f)(W, X), lens.keys, lens.recompiles,
    lambda: views.devices({"w": W})])
def test_any_view_is_a_widget_too(make, recording):
    widget = lens.as_widget(make())
    assert widget.model["kind"] in ("jaxpr", "keys", "history", "devices")
    data, _ = widget._repr_mimebundle_()
    assert {"text/plain", "text/html"} <= set(data)


def test_devices_show_shards_and_containers():
    model = views.devices({"w": W, "tree": {"x": X}, "_hidden": X, "n": 3}).model
    assert [a.name for a in model.arrays] == ["w", "tree['x']"]
    assert model.arrays[0].bytes == 24
    (shard,) = model.arrays[0].shards
    assert (shard.height, shard.width) == (1.0, 1.0)


def test_gates_of_a_folder(tmp_path):
    verdict = '<div class="saem-gate-verdict" data-gate="g" data-state="{}"></div>'
    for name, state in (("a", "right"), ("b", "wrong")):
        cell = {"cell_type": "code", "outputs": [{"data": {"text/html": verdict.format(state)}}]}
        (tmp_path / f"{name}.ipynb").write_text(json.dumps({"cells": [cell]}))
    (tmp_path / "c.ipynb").write_text("{")
    model = gates(tmp_path).model
    assert [(r.notebook, r.gate, r.state) for r in model.rows] == [
        ("a.ipynb", "g", "right"), ("b.ipynb", "g", "wrong")]
    assert model.unreadable == ("c.ipynb",)


def test_files_and_answers_that_no_page_can_hold_hide_no_others(tmp_path):
    """Nested too deep, a byte order mark, half a letter, another encoding, a long word."""
    said = '<div data-gate="g" data-state="right" data-guess="{}"></div>'

    def notebook(guess):
        cell = {"cell_type": "code", "outputs": [{"data": {"text/html": said.format(guess)}}]}
        return json.dumps({"cells": [cell]})

    (tmp_path / "deep.ipynb").write_text("[" * 200_000 + "]" * 200_000)
    (tmp_path / "mark.ipynb").write_text(notebook("6"), encoding="utf-8-sig")
    (tmp_path / "half.ipynb").write_text(notebook("\ud800"))
    (tmp_path / "long.ipynb").write_text(notebook("x" * 100_000))
    other = os.fsencode(tmp_path) + b"/\xb1\xe8.ipynb"
    with open(other, "w") as file:
        file.write(notebook("7"))
    view = gates(tmp_path)
    guesses = {row.notebook: row.guess for row in view.model.rows}
    assert view.model.unreadable == ("deep.ipynb",)
    assert guesses == {"mark.ipynb": "6", "half.ipynb": "?", "long.ipynb": "x" * 199 + "…",
                       "??.ipynb": "7"}
    assert "long.ipynb" in view.save(tmp_path / "page.html").read_text(encoding="utf-8")


def test_an_answer_counts_whatever_an_earlier_cell_still_shows(tmp_path):
    """The question was answered after the cell that judges it ran."""
    said = ('<div data-gate="g" data-state="{}" data-guess="6"></div>',
            '<div data-gate="g" data-state="unanswered"></div>')
    cells = [{"cell_type": "code", "outputs": [{"data": {"text/html": html.format("right")}}]}
             for html in said]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    (row,) = gates(tmp_path).model.rows
    assert (row.state, row.guess) == ("right", "6")


def test_a_view_is_saved_as_a_page(tmp_path):
    target = MADE["steps"]().save(tmp_path / "steps.html")
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def rnn(w, xs):
    def step(state, x):
        state = jnp.tanh(state @ w + x)
        return state, jnp.sum(state)

    final, sums = jax.lax.scan(step, jnp.zeros(3), xs)
    return jnp.sum(final) + jnp.sum(sums)


def train(params, batch):
    def loss(p):
        hidden = jax.nn.relu(batch["x"] @ p["w"] + p["b"])
        return jnp.mean((hidden.sum(axis=1) - batch["y"]) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def orbit(position, velocity):
    def step(_, state):
        place, speed = state
        speed = speed - 0.01 * place / (jnp.sum(place**2) + 0.01) ** 1.5
        return place + 0.01 * speed, speed

    return jax.lax.fori_loop(0, 20, step, (position, velocity))[0]


def solved(a, b):
    return jax.scipy.sparse.linalg.cg(lambda x: a @ x, b)[0]


def edges(nodes, senders, receivers):
    return jnp.sum((nodes[senders] - nodes[receivers]) ** 2)


PROGRAMS = {
    "equations solved": (jax.grad(lambda a, b: jnp.sum(solved(a, b))), (2 * jnp.eye(3), X)),
    "rows by index": (jax.grad(edges), (W, jnp.array([0, 1]), jnp.array([1, 0]))),
    "tangents of integers": (jax.jit(lambda x, n: jax.grad(
        lambda n, x: x * n, (0, 1), allow_int=True)(n, x)), (2.0, 3)),
    "a scanned network": (jax.grad(rnn), (jnp.eye(3), jnp.ones((5, 3)))),
    "a training step": (jax.jit(train), (
        {"w": jnp.ones((4, 3)), "b": jnp.zeros(3)}, {"x": jnp.ones((2, 4)), "y": jnp.ones(2)})),
    "a mapped simulation": (jax.jit(jax.vmap(orbit)), (jnp.ones((6, 2)), jnp.ones((6, 2)))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_as_people_write_them(name):
    fun, args = PROGRAMS[name]
    model = views.jaxpr(fun)(*args).model
    ids = {e for kernel in model.kernels for e in kernel.equations}
    assert ids
    assert model.program
    traced = views.tracers(fun)(*args).model
    assert traced.error is None
    assert traced.functions
    stepped = views.steps(fun)(*args).model
    # NumPy's last value is what XLA gives.
    last = np.asarray(jax.tree.leaves(fun(*args))[-1]).ravel()
    assert stepped.born == ()
    if last.size == 1:
        assert math.isclose(stepped.steps[-1].outputs[-1].mean, last[0], rel_tol=1e-4)
    assert views.compiled(fun)(*args).model.cost.flops is not None


def test_equations_of_a_look_know_the_calls_that_led_to_them():
    def layer(x):
        return jnp.tanh(x)

    def network(x):
        for _ in range(2):
            x = layer(x)
        return x * 2

    model = views.jaxpr(jax.jit(network))(1.0).model
    (outer,) = model.body.equations
    tanh, again, mul = outer.nested[0].body.equations
    called = {e.primitive: [model.places[n].text for n in model.callers[e.place]][:1]
              for e in (tanh, mul)}
    assert called["tanh"] == ["x = layer(x)"]
    assert called["mul"][0].startswith("model = views.jaxpr(")
    assert tanh.place == again.place
    assert [block.file for block in model.sources] == [__file__]
    assert jaxpr_model(jax.make_jaxpr(network)(1.0)).callers == ((), ())


def test_the_costs_of_a_compiled_view_are_those_of_its_program():
    # Each program is gone before the next is made, and may leave it its place in memory.
    sizes = [views.compiled(jax.jit(lambda x: x.sum()))(np.ones(n, "f")).model.cost.argument_bytes
             for n in range(1, 13)]
    assert sizes == [4 * n for n in range(1, 13)]


def test_the_compiled_view_is_of_the_devices_that_the_arguments_are_on():
    """As ``jit`` compiles it: a part of the work for each device, and what they exchange."""
    code = """
import numpy as np
import saem as jax, saem.numpy as jnp, saem.lens as lens
from saem.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("d",))
x = jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, P("d")))
w = jnp.ones((4, 4))
def f(x, w):
    return jnp.tanh(x @ w).sum()
w = jax.device_put(w, NamedSharding(mesh, P()))
shown = lens.compiled(f)(x, w).model
memory = jax.jit(f).lower(x, w).compile().memory_analysis()
assert shown.devices == 4
assert shown.cost.argument_bytes == memory.argument_size_in_bytes == 96
assert shown.cost.temp_bytes == memory.temp_size_in_bytes
assert any(k.kind == "all-reduce" for k in shown.jaxpr.kernels), shown.jaxpr.kernels
assert any("sdy.sharding" in line.text for line in lens.jaxpr(f)(x, w).model.program)
rows = NamedSharding(mesh, P("d"))
asked = jax.jit(f, in_shardings=(rows, NamedSharding(mesh, P())))
assert lens.compiled(asked)(np.ones((8, 4), "f"), np.ones((4, 4), "f")).model.devices == 4
"""
    environment = {**os.environ, "SAEM_NUM_CPU_DEVICES": "4"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_a_jitted_function_with_static_arguments_can_be_seen():
    @functools.partial(jax.jit, static_argnames="times")
    def power(x, times):
        for _ in range(times):
            x = x * x
        return x

    assert len(lens.jaxpr(power)(2.0, times=3).model.body.equations) == 3
    assert lens.compiled(power)(2.0, 3).model.devices == 1
    assert power._cache_size() == 0
    assert "[256.]" in str(lens.steps(power)(2.0, 3))
    assert "[256.]" in str(lens.steps(power)(2.0, times=3))
    assert lens.autodiff(power)(2.0, 3).model.saved
    last = jax.jit(lambda x, times: x**times, static_argnums=-1)
    assert "[8.]" in str(lens.steps(last)(2.0, 3))
    benches = [lens.bench(power, "grad")(2.0, 3), lens.bench(power, "grad")(2.0, times=3)]
    for bench in benches:
        assert [stage["error"] for stage in bench.model["stages"]] == [None, None]


def test_a_long_chain_of_keys_is_drawn_in_a_text_as_long_as_it():
    mine = Recorder()
    mine.start(hits=False)
    key = jax.random.key(0)
    for _ in range(300):
        key, _ = jax.random.split(key)
    text = str(report.keys(of=mine))
    mine.stop()
    assert max(map(len, text.splitlines())) < 200
    assert "(300) •" in text


@pytest.mark.parametrize("name", ["jaxpr", "tracers", "steps", "autodiff", "compiled", "bench"])
def test_a_view_says_how_it_is_asked(name):
    view = getattr(lens, name)
    for wrong in (jnp.sin(2.0), 3, "f", None):
        said = rf"lens\.{name} needs a function, but got .*\(f\)\(x\)"
        with pytest.raises(TypeError, match=said):
            view(wrong)
    with pytest.raises(TypeError, match=rf"lens\.{name} takes a function alone, but got more: "):
        view(f, W, X)
    waiting = view(f)
    assert repr(waiting) == ("A view that waits for the arguments of the function: "
                             f"lens.{name}(f)(x)")
    assert waiting(W, X).model is not None
    assert view.__doc__


class Scaled:
    def __call__(self, x):
        return x * 2.0

    def method(self, x):
        return x * 3.0


@pytest.mark.parametrize(("asked", "name"), [
    (Scaled(), "__call__"), (Scaled().method, "method"), (functools.partial(f, W), "f"),
    (functools.partial(Scaled().method), "method"), (jax.vmap(Scaled()), "__call__"),
    (functools.partial(jax.jit(f), W), "f"),
])
def test_an_xray_sees_what_python_calls(asked, name):
    seen = lens.tracers(asked)(X).model
    assert [x.name for x in seen.functions] == [name]
    assert seen.error is None


def test_gates_of_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*none"):
        gates(tmp_path / "none")
