"""Why was it traced again?  The same table as in test_reasons, from real calls."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import saem._wiring  # noqa: F401  (operations outside traces need it)
from saem.compile.dispatch import put
from saem.core import config
from saem.jit.jitted import clear_caches, make_jit
from saem.observe.places import Places
from saem.observe.recorder import Recorder
from saem.ops.arithmetic import add, mul, neg
from saem.placement.devices import devices, placement_name

A, B = np.ones(3, "float32"), np.ones(4, "float32")


@pytest.fixture
def recorder():
    clear_caches()
    made = Recorder(named=Places())
    made.start()
    yield made
    made.stop()


def last(recorder):
    """The last record that is no hit."""
    records = [r for f in recorder.snapshot().functions for r in f.records if r.kind != "hit"]
    return max(records, key=lambda r: r.id)


def told(recorder):
    return [(r.tag, r.path, r.old, r.new) for r in last(recorder).reasons]


@dataclasses.dataclass(frozen=True)
class Config:
    rate: int


def step(x, y, mode="foo", cfg=None):
    return add(x, y)


ROWS = {
    "shape": (lambda f: (f(A, A), f(B, A[:1])),
              [("shape", "x", "f32[3]", "f32[4]"), ("shape", "y", "f32[3]", "f32[1]")]),
    "dtype": (lambda f: (f(A, A), f(A.astype("int32"), A.astype("int32"))),
              [("dtype", "x", "f32[3]", "i32[3]"), ("dtype", "y", "f32[3]", "i32[3]")]),
    "weak type": (lambda f: (f(A[0], np.float32(1)), f(A[0], 1.0)),
                  [("weak_type", "y", "f32[]", "~f32[]")]),
    "static value": (lambda f: (f(A, A, "foo"), f(A, A, "bar")),
                     [("static_value", "mode", "'foo'", "'bar'")]),
    "static by keyword": (lambda f: (f(A, A, mode="foo"), f(A, A, mode="bar")),
                          [("static_value", "mode", "'foo'", "'bar'")]),
    "keyword": (lambda f: (f(A, A), f(A, y=A)),
                [("position_keyword", "y", "position", "keyword")]),
    "static given": (lambda f: (f(A, A), f(A, A, "foo")),
                     [("structure", "mode", None, "'foo'")]),
    "frozen dataclass": (lambda f: (f(A, A, cfg=Config(1)), f(A, A, cfg=Config(2))),
                         [("static_value", "cfg", "Config(rate=1)", "Config(rate=2)")]),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_changed_call_names_the_change(recorder, row):
    calls, expected = ROWS[row]
    calls(make_jit(step, static_argnames=("mode", "cfg")))
    assert told(recorder) == expected


def test_first_call(recorder):
    make_jit(lambda x: neg(x))(A)
    assert told(recorder) == [("first_call", None, None, None)]
    assert last(recorder).kind == "compile"


def test_structure_of_a_tree(recorder):
    f = make_jit(lambda params: neg(params["w"]))
    f({"w": A})
    f({"w": A, "b": A})
    assert told(recorder) == [("structure", "params", "params['w']", "params['b'], params['w']")]


def test_list_and_tuple(recorder):
    f = make_jit(lambda xs: neg(xs[0]))
    f([A])
    f((A,))
    ((tag, *_),) = told(recorder)
    assert tag == "structure"


def test_committed(recorder):
    f = make_jit(lambda x: neg(x))
    plain = f(A)
    f(plain)
    f(put(plain, devices()[0], committed=True))
    ((tag, path, _, new),) = told(recorder)
    assert (tag, path, new) == ("committed", "x", placement_name(devices()[0]))
    assert last(recorder).kind in ("compile", "found")
    assert last(recorder).seconds.trace is None


def test_a_lambda_made_anew_is_traced_and_not_compiled(recorder):
    for _ in range(3):
        make_jit(lambda x: mul(x, x))(A)
    (row,) = recorder.snapshot().functions
    assert (row.summary.versions, row.summary.traces) == (3, 3)
    assert (row.summary.compiles, row.summary.found) == (1, 2)
    record = last(recorder)
    assert [r.tag for r in record.reasons] == ["redefinition"]
    assert record.kind == "found"
    assert "nothing was compiled" in record.headline.en


def test_a_setting(recorder):
    f = make_jit(lambda x: neg(x))
    f(A)
    with config.enable_x64(True):
        f(A)
    assert ("config", "jax_enable_x64", "False", "True") in told(recorder)


def test_a_numpy_array_instead_of_an_engines_compiles_nothing(recorder):
    f = make_jit(lambda x: neg(x))
    f(f(A))
    f(A)
    (row,) = recorder.snapshot().functions
    assert row.summary.traces == 1
    assert row.summary.compiles + row.summary.found == 1


def test_a_repeated_call_is_a_hit(recorder):
    f = make_jit(lambda x: neg(x))
    for _ in range(4):
        f(A)
    (row,) = recorder.snapshot().functions
    assert (row.summary.hits, row.summary.calls) == (3, 4)


def test_a_cleared_cache(recorder):
    f = make_jit(lambda x: neg(x))
    f(A)
    clear_caches()
    f(A)
    assert told(recorder) == [("dropped", None, None, None)]


def test_an_inner_function_then_called_alone(recorder):
    inner = make_jit(lambda x: mul(x, neg(x)))
    make_jit(lambda x: add(inner(x), x))(A)
    inner(A)
    assert told(recorder) == [("nested", None, None, None)]
    assert last(recorder).kind == "compile"


def test_a_trace_that_raised_has_failed(recorder):
    def bad(x):
        raise KeyError("no")

    with pytest.raises(KeyError):
        make_jit(bad)(A)
    recorder.settle()
    assert last(recorder).kind == "failed"
