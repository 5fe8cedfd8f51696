"""What does each change between two calls of a jitted function cost, and what is said of it?

The table of the design, row by row: two real calls, and the record that must name the argument in
the caller's words, the old and the new value, the cost and what to do.  Beside it what real JAX
says of the same program under ``explain_cache_misses``: of some rows nothing at all.

Read before: ``saem.observe.reasons``, ``saem.jit.signature``.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import numpy as np
import pytest

import saem as jax
from saem.observe.places import Places
from saem.observe.recorder import Recorder
from saem.observe.report import record_text

HEAD = """
import dataclasses
jnp, devices = jax.numpy, jax.devices()
A, B = np.ones(8, 'float32'), np.ones(4, 'float32')
P, Mesh, Spread = jax.sharding.PartitionSpec, jax.sharding.Mesh, jax.sharding.NamedSharding
mesh = Mesh(np.array(devices), ('d',))
square = Mesh(np.array(devices).reshape(2, 4), ('a', 'b'))
@dataclasses.dataclass(frozen=True)
class Frozen:
    rate: int
class Plain:
    def __init__(self, rate): self.rate = rate
class ByValue(Plain):
    def __hash__(self): return hash(self.rate)
    def __eq__(self, other): return self.rate == other.rate
def step(x, y=1., mode='foo', cfg=None):
    return x * y
f = jax.jit(step, static_argnames=('mode', 'cfg'))
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """Two calls; what Saem must say (tag, argument, old, new); what the second call cost.

    ``kind``: compile (a new program), found (traced again, the same program), hit (neither).
    ``jax``: whether JAX says anything of the second call.
    """

    before: str
    after: str
    said: tuple[tuple[str, str | None, str | None, str | None], ...]
    kind: str = "compile"
    jax: bool = True


TABLE = {
    "shape": Row("f(A)", "f(B)", (("shape", "x", "f32[8]", "f32[4]"),)),
    "dtype": Row("f(A)", "f(A.astype('int32'))", (("dtype", "x", "f32[8]", "i32[8]"),)),
    "weak type": Row("f(np.float32(1))", "f(1.)",
                     (("weak_type", "x", "f32[]", "~f32[]"),), "found"),
    "static value": Row("f(A, mode='foo')", "f(A, mode='bar')",
                        (("static_value", "mode", "'foo'", "'bar'"),), "found"),
    "static dataclass": Row("f(A, cfg=Frozen(1))", "f(A, cfg=Frozen(2))",
                            (("static_value", "cfg", "Frozen(rate=1)", "Frozen(rate=2)"),),
                            "found"),
    "by keyword": Row("f(A, 2.)", "f(A, y=2.)",
                      (("position_keyword", "y", "position", "keyword"),), "found"),
    "committed": Row("f(jnp.asarray(A))", "f(jax.device_put(A, devices[0]))",
                     (("committed", "x", "cpu:0", "cpu:0"),), "found", jax=False),
    "not committed": Row("f(jax.device_put(A, devices[0]))", "f(jnp.asarray(A))",
                         (("committed", "x", "cpu:0", "cpu:0"),), "found", jax=False),
    "another device": Row("f(jax.device_put(A, devices[0]))", "f(jax.device_put(A, devices[1]))",
                          (("device", "x", "cpu:0", "cpu:1"),), jax=False),
    "one device, then eight": Row(
        "f(jax.device_put(A, devices[0]))", "f(jax.device_put(A, Spread(mesh, P('d'))))",
        (("device", "x", "cpu:0", "cpu:0..7"),)),
    "another sharding": Row(
        "f(jax.device_put(A, Spread(mesh, P('d'))))", "f(jax.device_put(A, Spread(mesh, P())))",
        (("sharding", "x", "P('d',)", "P()"),), jax=False),
    "another mesh": Row(
        "f(jax.device_put(A, Spread(mesh, P('d'))))",
        "f(jax.device_put(A, Spread(square, P(('a', 'b')))))",
        (("mesh", "x", "d=8", "a=2, b=4"),)),
    "lambda made anew": Row(
        "for i in range(1): jax.jit(lambda x: x * 3.)(A)",
        "for i in range(2): jax.jit(lambda x: x * 3.)(A)",
        (("redefinition", None, None, None),), "found"),
    "x64": Row("f(A)", "with jax.enable_x64(True): f(A)",
               (("config", "jax_enable_x64", "False", "True"),), "found"),
    "precision": Row("f(A)", "with jax.default_matmul_precision('float32'): f(A)",
                     (("config", "jax_default_matmul_precision", "None", "'float32'"),), "found"),
    "donated": Row("f(A)", "jax.jit(step, static_argnames=('mode', 'cfg'), donate_argnums=0)(A)",
                   (("donation", None, "-", "x"),), jax=False),
    "options": Row("f(A)",
                   "jax.jit(step, static_argnames=('mode', 'cfg'), keep_unused=True)(A)",
                   (("options", "keep_unused", "-", "True"),), "found", jax=False),
    "structure": Row("g = jax.jit(lambda p: p['w'] * 2.); g({'w': A})", "g({'w': A, 'b': A})",
                     (("structure", "p", "p['w']", "p['b'], p['w']"),), "found"),
    "container": Row("g = jax.jit(lambda p: p[0] * 2.); g([A])", "g((A,))",
                     (("structure", None, "", ""),), "found"),
    "static mutated, equal by value": Row(
        "cfg = ByValue(1); f(A, cfg=cfg)", "cfg.rate = 2; f(A, cfg=cfg)",
        (("static_mutated", "cfg", "ByValue(rate=1)", "ByValue(rate=2)"),), "found", jax=False),
    "static mutated, equal by identity": Row(
        "cfg = Plain(1); f(A, cfg=cfg)", "cfg.rate = 2; f(A, cfg=cfg)",
        (("static_mutated", "cfg", "Plain(rate=1)", "Plain(rate=2)"),), "hit", jax=False),
    "a global changed": Row(
        "scale = 2.\ndef g(x): return x * scale\ng = jax.jit(g); g(A)", "scale = 3.; g(A)",
        (("closure", "scale", "2.0", "3.0"),), "hit", jax=False),
    "closure over a new object": Row(
        "def make(scale):\n    return jax.jit(lambda x: x * scale)\nmake(2.)(A)",
        "make(3.)(A)",
        (("redefinition", None, None, None), ("closure", "scale", "2.0", "3.0"))),
    "NumPy instead": Row("f(jnp.asarray(A))", "f(A)", (), "hit", jax=False),
    "the same again": Row("f(A)", "f(A)", (), "hit", jax=False),
}


def run(recorder: Recorder, row: Row) -> Any:
    """Run both calls; returns the records of the second."""
    names: dict[str, Any] = {"jax": jax, "np": np}
    for source in (HEAD, row.before):
        exec(compile(source, "model.py", "exec"), names)
    before = max((r.id for f in recorder.snapshot().functions for r in f.records), default=0)
    exec(compile(row.after, "later.py", "exec"), names)
    return [r for f in recorder.snapshot().functions for r in f.records
            if r.id > before or (r.kind == "hit" and r.count > 1)]


@pytest.mark.parametrize("name", TABLE)
def test_each_change_is_named_with_its_cost_and_advice(recorder, name):
    row = TABLE[name]
    records = run(recorder, row)
    record = records[-1]
    said = tuple((r.tag, r.path, r.old, r.new) for r in record.reasons)
    if name == "container":  # how structures print is jaxlib's
        said = tuple((tag, path, "", "") for tag, path, _, _ in said)
    assert said == row.said
    assert record.kind == row.kind
    # Calls that C++ answers are counted by cell; outside notebooks they have no place.
    assert record.caller.file == "later.py" if record.caller else row.kind == "hit"
    for reason in record.reasons:
        assert reason.advice.en and reason.advice.ko
        for word in (reason.path, reason.old, reason.new):
            quiet = (None, "position", "keyword")
            assert word in quiet or word in reason.says.en or reason.tag == "committed"
            assert word in quiet or word in reason.says.ko or reason.tag == "committed"
    if row.kind == "compile":
        assert record.seconds.compile > 0 and record.cost.argument_bytes is not None
    if row.kind == "found":
        assert record.seconds.compile is None
    if row.kind == "hit":
        assert record.seconds.trace is None and record.program is None
    text = record_text(record, "en")
    assert all(reason.says.en in text for reason in record.reasons)


def test_answers_after_a_hidden_change_are_the_old_ones_as_in_jax_and_are_called_so(recorder):
    for name in ("static mutated, equal by identity", "a global changed"):
        record = run(recorder, TABLE[name])[-1]
        assert "computes with the old value" in record.reasons[0].says.en
        assert "이전 값으로 계산" in record.reasons[0].says.ko
        assert "has changed" in record.headline.en


CELL = "y = 1\ndef step(x):\n    return x * 2.  # {}\nstep = jax.jit(step)\n"


def test_a_cell_run_again_with_another_comment_is_traced_and_not_compiled():
    named = Places()
    recorder = Recorder(named=named)
    jax.clear_caches()
    recorder.start()
    try:
        names = {"jax": jax}
        for count, comment in ((1, "first"), (2, "edited")):
            file = f"cell_{count}.py"
            named.announce(file, count, "id-5")
            exec(compile(CELL.format(comment), file, "exec"), names)
            names["step"](np.ones(3, "float32"))
    finally:
        recorder.stop()
    (row,) = [f for f in recorder.snapshot().functions if f.summary.name == "step"]
    assert (row.summary.versions, row.summary.traces) == (2, 2)
    assert (row.summary.compiles, row.summary.found) == (1, 1)
    record = row.records[-1]
    assert record.kind == "found"
    assert record.reasons[0].says.en == "you redefined `step` (cell 2, line 2, run 2)"
    assert "nothing was compiled" in record.headline.en and record.seconds.trace > 0


ASK = """
import logging
heard = []
class Listen(logging.Handler):
    def emit(self, record): heard.append(record.getMessage())
listener, logger = Listen(), logging.getLogger("jax")
result = {}
logger.addHandler(listener)
saved, logger.propagate = logger.propagate, False
try:
    for name, (before, after) in rows.items():
        names = {"jax": jax, "np": np}
        exec(head, names)
        with jax.explain_cache_misses(True):
            exec(before, names)
            heard.clear()
            exec(after, names)
        result[name] = any("TRACING CACHE MISS" in text for text in heard)
finally:
    logger.removeHandler(listener)
    logger.propagate = saved
"""


def test_what_jax_says_of_the_same_rows(jax_oracle):
    """The rows of which JAX says nothing are those marked so."""
    rows = {name: (row.before, row.after) for name, row in TABLE.items()}
    said = jax_oracle.run(ASK, rows=rows, head=HEAD).value
    assert said == {name: row.jax for name, row in TABLE.items()}


def test_the_log_explains_each_miss_without_a_recorder(caplog):
    jax.clear_caches()
    names: dict[str, Any] = {"jax": jax, "np": np}
    exec(compile(HEAD, "model.py", "exec"), names)
    with caplog.at_level(logging.WARNING, "saem"), jax.explain_cache_misses(True):
        exec(compile("f(A)\nf(B)\nf(B)\nf(B, 2.)", "later.py", "exec"), names)
    texts = [r.getMessage() for r in caplog.records]
    assert len(texts) == 3 and all(t.startswith("TRACING CACHE MISS of step at ") for t in texts)
    assert "first call of `step`" in texts[0]
    assert "at later.py, line 2" in texts[1] and "`f32[8]` → `f32[4]`" in texts[1]
    assert "Pad to one shape" in texts[1]
    assert "argument `y` was None or not given, and now is `~f32[]`" in texts[2]


def test_log_compiles_tells_of_every_step(caplog):
    jax.clear_caches()
    x = np.ones(3, "float32")
    with caplog.at_level(logging.WARNING, "saem"), jax.log_compiles(True):
        for _ in range(2):
            def step(x):
                return x * 5.0

            jax.jit(step)(x)
    texts = [r.getMessage().split(" in ")[0] for r in caplog.records]
    assert texts == [
        "Finished tracing step for jit",
        "Compiling jit(step) with global shapes and types (ShapedArray(float32[3]),).",
        "Finished jaxpr to MLIR module conversion jit(step)",
        "Finished XLA compilation of jit(step)", "Finished tracing step for jit",
        "Finished jaxpr to MLIR module conversion jit(step)",
        "Found the program of jit(step): nothing was compiled"]
