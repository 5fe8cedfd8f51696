"""The extension in a real IPython shell and in a real kernel."""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.manager import start_new_kernel

import saem.lens
from saem.core.errors import cell_names
from saem.core.events import bus
from saem.jit.jitted import clear_caches
from saem.lens.display import MODEL_MIME
from saem.lens.widget import LiveHistory
from saem.observe import language
from saem.observe.recorder import recorder
from saem.observe.schema import VERSION

KERNEL = pathlib.Path(__file__).parents[2] / "kernel"
SETUP = """
import numpy as np, saem._wiring
from saem.jit.jitted import make_jit
from saem.ops.arithmetic import mul
"""


@pytest.fixture
def shell():
    made = InteractiveShell.instance()
    made.reset()
    made.run_cell(SETUP, store_history=True)
    clear_caches()
    recorder.clear()
    yield made
    saem.lens.unload_ipython_extension(made)
    recorder.clear()
    InteractiveShell.clear_instance()


def run(shell, code, cell_id=None):
    result = shell.run_cell(code, store_history=True, cell_id=cell_id)
    result.raise_error()
    return result.result


def test_load_twice_and_unload(shell):
    before = bus._listeners
    run(shell, "%load_ext saem.lens")
    saem.lens.load_ipython_extension(shell)
    assert len(bus._listeners) == len(before) + 1
    run(shell, "%unload_ext saem.lens")
    assert bus._listeners == before
    assert saem.lens.display.ClosedJaxpr not in shell.display_formatter.mimebundle_formatter


def test_cells_are_named(shell):
    run(shell, "%load_ext saem.lens")
    run(shell, "def step(x):\n    return mul(x, x)\nf = make_jit(step)\nf(np.ones(3))", "a")
    run(shell, "f(np.ones(4))", "b")
    (row,) = recorder.snapshot().functions
    count = shell.execution_count
    assert row.summary.place.label.en == f"cell {count - 2}, line 1"
    assert row.records[0].caller.label.ko == f"셀 {count - 2} 4행"
    assert (row.records[1].caller.cell, row.records[1].caller.cell_id) == (count - 1, "b")
    assert f"cell {count - 1}" in cell_names.values()


def test_an_edited_cell_redefines_its_function(shell):
    run(shell, "%load_ext saem.lens")
    for body in ("mul(x, x)", "mul(x, x)  # edited", "mul(mul(x, x), x)"):
        run(shell, f"@make_jit\ndef step(x):\n    return {body}\nstep(np.ones(3))", "edited")
    (row,) = recorder.snapshot().functions
    assert [record.kind for record in row.records] == ["compile", "found", "compile"]
    assert row.records[1].reasons[0].tag == "redefinition"
    count = shell.execution_count - 2
    says = row.records[1].reasons[0].says.en
    assert says == f"you redefined `step` (cell {count}, line 1, run 2)"


def test_what_a_history_and_a_jaxpr_show(shell):
    run(shell, "%load_ext saem.lens")
    run(shell, "make_jit(lambda x: mul(x, x))(np.ones(3))")
    values = [
        run(shell, "import saem.lens; saem.lens.history(lang='ko')"),
        run(shell, "from saem.core.avals import ShapedArray\n"
                   "from saem.transform.staging import trace_flat\n"
                   "trace_flat(lambda x: [mul(x, x)], "
                   "[ShapedArray((3,), np.dtype('float32'))], name='jit')"),
    ]
    for value in values:
        data, _ = shell.display_formatter.format(value)
        assert set(data) == {"text/plain", "text/html", MODEL_MIME}
        assert data["text/plain"] == repr(value)
        assert 'class="saem-data"' in data["text/html"]
    assert "첫 호출" in repr(values[0])


def test_a_widget_keeps_html_beside_it(shell):
    run(shell, "%load_ext saem.lens")
    view = saem.lens.live()
    made = view._repr_mimebundle_()
    if made is not None:
        assert {"text/plain", "text/html"} <= set(made[0])
    run(shell, "make_jit(lambda x: mul(x, x))(np.ones(3))")
    view._pulse.flush()
    assert len(view.model["functions"]) == 1
    view.close()


def test_a_failed_trace_is_told_after_the_cell(shell):
    run(shell, "%load_ext saem.lens")
    shell.run_cell("make_jit(lambda x: 1 / 0)(np.ones(3))", store_history=True)
    (row,) = recorder.snapshot().functions
    assert row.records[0].kind == "failed"


def frames_shown(shell, code, capsys):
    """The files and cells that a cell's traceback shows, and the whole traceback as text."""
    shell.run_line_magic("colors", "nocolor")
    assert not shell.run_cell(code, store_history=True).success
    shown = capsys.readouterr().out
    heads = [line for line in shown.splitlines() if re.match(r"(File|Cell) \S", line)]
    return heads, shown


def test_a_traceback_shows_the_cells_and_not_the_engine(shell, capsys):
    run(shell, "%load_ext saem.lens")
    run(shell, "import saem.numpy as jnp, saem")
    heads, shown = frames_shown(shell, "x = jnp.zeros(3)\nx[0] = 1.0", capsys)
    assert len(heads) == 1 and heads[0].startswith("Cell") and "x.at[idx].set(y)" in shown
    heads, _ = frames_shown(shell, "def f(x):\n    return 1 / 0\nsaem.jit(f)(2.0)", capsys)
    assert len(heads) == 2 and all(head.startswith("Cell") for head in heads)
    heads, _ = frames_shown(shell, "jnp.zeros(3).reshape(3, order='A')", capsys)
    assert len(heads) == 1
    # XLA raises this one, and a card explains it.
    guarded = "with saem.transfer_guard('disallow'):\n    x + numpy.ones(3, numpy.float32)"
    heads, _ = frames_shown(shell, f"import numpy\n{guarded}", capsys)
    assert len(heads) == 1 and heads[0].startswith("Cell")
    heads, shown = frames_shown(shell, "saem.tree.map(max, [1, 2], (3, 4))", capsys)
    assert len(heads) == 1 and "direct cause" not in shown
    run(shell, "%xmode Verbose")
    heads, _ = frames_shown(shell, "x[0] = 1.0", capsys)
    assert any("arrays.py" in head for head in heads)
    run(shell, "%xmode Context")
    run(shell, "saem.config.update('jax_traceback_filtering', 'off')")
    heads, _ = frames_shown(shell, "x[0] = 1.0", capsys)
    assert any("arrays.py" in head for head in heads)
    run(shell, "saem.config.update('jax_traceback_filtering', 'auto')")
    run(shell, "%unload_ext saem.lens")
    heads, _ = frames_shown(shell, "x[0] = 1.0", capsys)
    assert any("arrays.py" in head for head in heads)


def test_an_unforeseen_error_inside_the_engine_keeps_its_frames(shell, capsys, monkeypatch):
    run(shell, "%load_ext saem.lens")
    monkeypatch.setattr(saem.observe.language, "current", None)
    heads, _ = frames_shown(shell, "import saem.lens\nsaem.lens.history()", capsys)
    assert any("observe" in head for head in heads)


@pytest.fixture(scope="module")
def kernel():
    environment = {**os.environ, "PYTHONPATH": str(KERNEL)}
    environment.pop("SAEM_LANG", None)
    manager, client = start_new_kernel(kernel_name="python3", env=environment)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def execute(client, code, cell_id="c"):
    """Run code as JupyterLab does; returns the messages published."""
    message = client.session.msg(
        "execute_request",
        {"code": code, "silent": False, "store_history": True, "user_expressions": {},
         "allow_stdin": False, "stop_on_error": True},
        metadata={"cellId": cell_id},
    )
    client.shell_channel.send(message)
    found = []
    while True:
        got = client.get_iopub_msg(timeout=60)
        found.append(got)
        done = got["msg_type"] == "status" and got["content"]["execution_state"] == "idle"
        if done and got["parent_header"].get("msg_id") == message["header"]["msg_id"]:
            return found


def failures(found):
    return [m["content"]["evalue"] for m in found if m["msg_type"] == "error"]


@pytest.mark.skipif(sys.platform == "win32", reason="kernels start otherwise there")
def test_a_panel_follows_a_real_kernel(kernel):
    assert failures(execute(kernel, SETUP)) == []
    assert failures(execute(kernel, "%load_ext saem.lens", "load")) == []
    greeting = {"type": "hello", "version": VERSION, "locale": "ko_KR", "client": ""}
    opening = kernel.session.msg(
        "comm_open", {"comm_id": "panel", "target_name": "saem.lens", "data": greeting})
    kernel.shell_channel.send(opening)
    found = execute(kernel, "@make_jit\ndef step(x):\n    return mul(x, x)\nstep(np.ones(3))",
                    "cell-id-1")
    assert failures(found) == []
    sent = [m["content"]["data"] for m in found if m["msg_type"] == "comm_msg"]
    assert [m["type"] for m in sent[:2]] == ["hello", "snapshot"]
    assert sent[0]["language"] == "ko"
    records = [m for m in sent if m["type"] == "append"]
    assert records, json.dumps(sent)[:500]
    assert records[-1]["function"]["name"] == "step"
    place = records[-1]["function"]["place"]
    (count,) = [m["content"]["execution_count"] for m in found if m["msg_type"] == "execute_input"]
    assert (place["cell"], place["cell_id"], place["run"]) == (count, "cell-id-1", 1)


@pytest.mark.skipif(sys.platform == "win32", reason="kernels start otherwise there")
def test_a_saved_output_needs_no_kernel(kernel):
    execute(kernel, "%load_ext saem.lens")
    found = execute(kernel, "import saem.lens; saem.lens.history(lang='en')")
    (shown,) = [m["content"]["data"] for m in found if m["msg_type"] == "execute_result"]
    assert set(shown) == {"text/plain", "text/html", MODEL_MIME}


def test_views_speak_the_language_that_is_chosen_later(monkeypatch):
    before = language.current()
    view = LiveHistory()
    try:
        language.choose("ko")
        assert view.locale == "ko"
        language.choose("en")
        assert view.locale == "en"
    finally:
        language.choose(before)
        view.close()


def test_a_cell_that_ends_in_newlines_and_loads_the_lens_has_its_name(shell, monkeypatch):
    code = "%load_ext saem.lens\nkept = make_jit(lambda x: mul(x, x))\n\n"
    monkeypatch.setattr(shell, "get_parent", lambda: {"content": {"code": code}}, raising=False)
    run(shell, code)
    run(shell, "kept(np.ones(3))")
    (row,) = recorder.snapshot().functions
    assert row.summary.place.cell == shell.execution_count - 2


@pytest.mark.parametrize("line", ["%time f(1.0)", "!ls /nowhere", "x = 1", ""])
def test_a_cell_whose_last_line_is_no_call_is_not_shown(shell, line):
    shell.run_line_magic("load_ext", "saem.lens")
    found = shell.run_cell(f"%%lens jaxpr\nf = lambda x: x\n{line}")
    assert "needs to be a call, such as f(x)" in str(found.error_in_exec)
