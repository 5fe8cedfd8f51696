"""Is the family tree of keys right, and is reuse pointed out where it is, and only there?

Programs run for real; what the tree must say is plain from the program.

Read before: ``saem.observe.lineage``.
"""

from __future__ import annotations

import pytest

import saem as jax
from saem.observe import typed_json
from saem.observe.recorder import Recorder
from saem.observe.report import Keys, keys
from saem.observe.schema import KeysModel

R = jax.random


def run(source: str, times: int = 1) -> None:
    code = compile(source, "model.py", "exec")
    for _ in range(times):
        exec(code, {"jax": jax, "R": R})


def tree(recorder):
    """(action, parent's number in the list, uses with ! for reuse) of each key."""
    model = recorder.keys()
    order = {node.id: i for i, node in enumerate(model.keys)}
    return [(node.action, order.get(node.parent),
             [use.action + "!" * use.reused for use in node.uses]) for node in model.keys]


ROWS = {
    "once": ("k = R.key(0); R.normal(k)", [("created", None, ["used"])]),
    "twice": ("k = R.key(0); R.normal(k); R.uniform(k)", [("created", None, ["used", "used!"])]),
    "raw, twice": ("k = R.PRNGKey(0); R.normal(k); R.normal(k)",
                   [("created", None, ["used", "used!"])]),
    "split": ("a, b = R.split(R.key(0)); R.normal(a)",
              [("created", None, ["split"]), ("split", 0, ["used"]), ("split", 0, [])]),
    "split and used": ("k = R.key(0); R.split(k); R.normal(k)",
                       [("created", None, ["split", "used!"]), ("split", 0, []),
                        ("split", 0, [])]),
    "split twice": ("k = R.key(0); R.split(k)\nR.split(k)",
                    [("created", None, ["split", "split!"]), ("split", 0, []), ("split", 0, [])]),
    "folded": ("k = R.key(0)\nfor i in range(2): R.normal(R.fold_in(k, i))",
               [("created", None, []), ("folded", 0, ["used"]), ("folded", 0, ["used"])]),
    "folded twice alike": ("k = R.key(0)\nfor i in range(2): R.normal(R.fold_in(k, 7))",
                           [("created", None, []), ("folded", 0, ["used", "used!"])]),
    "cloned": ("k = R.key(0); R.normal(k); R.normal(R.clone(k))",
               [("created", None, ["used", "used"])]),
    "a view": ("ks = R.split(R.key(0)); R.normal(ks[1]); R.normal(ks[1])",
               [("created", None, ["split"]), ("split", 0, []),
                ("split", 0, ["used", "used!"])]),
    "vmap": ("ks = R.split(R.key(0)); jax.vmap(R.normal)(ks)",
             [("created", None, ["split"]), ("split", 0, ["used"]), ("split", 0, ["used"])]),
    "jit": ("f = jax.jit(lambda k: R.split(k)); a, b = f(R.key(0)); R.normal(b)",
            [("created", None, ["used"]), ("returned", 0, []), ("returned", 0, ["used"])]),
    "jit, twice": ("k = R.key(0); f = jax.jit(lambda k: R.normal(k)); f(k); f(k)",
                   [("created", None, ["used", "used!"])]),
    "grad": ("k = R.key(0); jax.grad(lambda x: x * R.normal(k))(1.)",
             [("created", None, ["used"])]),
    "scan": ("k = R.key(0); jax.lax.scan(lambda c, k: (c, R.normal(k)), 0., R.split(k))",
             [("created", None, ["split"]), ("split", 0, ["used"]), ("split", 0, ["used"])]),
}


@pytest.mark.parametrize("row", ROWS)
def test_the_tree_is_what_the_program_did(recorder, row):
    source, expected = ROWS[row]
    run(source)
    assert tree(recorder) == expected
    reused = sum(any(use.endswith("!") for use in uses) for _, _, uses in expected)
    assert recorder.keys().reused == reused


def test_a_cell_run_again_reuses_nothing(recorder):
    run("a, b = R.split(R.key(0)); R.normal(a); c, d = R.split(b); R.normal(d)", times=3)
    assert recorder.keys().reused == 0
    assert [uses for _, _, uses in tree(recorder)] == [
        ["split"] * 3, ["used"] * 3, ["split"] * 3, [], ["used"] * 3]


def test_a_reuse_names_both_lines(recorder):
    run("k = R.key(0)\nx = R.normal(k)\ny = R.normal(k)\n")
    (node,) = recorder.keys().keys
    assert [(use.place.line, use.reused) for use in node.uses] == [(2, False), (3, True)]
    assert node.place.line == 1
    text = repr(keys("en", of=recorder))
    assert "made of a seed @ model.py, line 1" in text
    assert "! used again: the same numbers come twice @ model.py, line 3" in text
    assert "다시 씀" in repr(keys("ko", of=recorder))


def test_the_model_survives_json_and_its_size_is_bounded(recorder):
    run("ks = R.split(R.key(0), 5); R.normal(ks[0])")
    model = recorder.keys()
    assert typed_json.from_json(KeysModel, typed_json.to_json(model)) == model
    recorder.lineage.clear()
    recorder.lineage._limit = 4
    run("for i in range(9): R.key(i)")
    small = recorder.keys()
    assert len(small.keys) == 4 and small.dropped == 5
    assert len(Keys(small, "en")) == 4


def test_without_a_recording_it_says_so():
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        keys("en", of=Recorder())
