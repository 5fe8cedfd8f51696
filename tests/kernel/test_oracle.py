"""Does the oracle carry values, dtypes, weakness and errors through unchanged?"""

from __future__ import annotations

import io
import random
import shutil

import ml_dtypes
import numpy as np
import oracle
import pytest
import recorded
from both import same

import saem as jax
import saem.numpy as jnp

VALUES = [
    None,
    True,
    2**70,
    0.1,
    float("inf"),
    1 + 2j,
    "텍스트",
    [1, (2, {"a": None, 3: 4.0})],
]
ARRAYS = [
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.zeros((0, 3), ml_dtypes.bfloat16),
    np.array(1.5, ml_dtypes.float8_e4m3fn),
    np.array([1, -2], ml_dtypes.int4),
    np.array([True, False]),
    np.arange(6, dtype=np.complex64).reshape(2, 3).T,
]


@pytest.fixture(scope="module")
def jax_oracle(jax_oracle):
    """JAX itself, whatever is kept of its answers."""
    live = oracle.Oracle(jax_oracle._python, live=True)
    live._recorded.keeping = False  # some answers here are about the process that gives them
    yield live
    live.close()


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_values_come_back(jax_oracle, value):
    assert jax_oracle.run("v", v=value).value == value


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_arrays_come_back(jax_oracle, array):
    back = jax_oracle.run("v", v=array).value
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(back.astype(np.complex64), array.astype(np.complex64))


def test_weakness_and_warnings_are_told(jax_oracle):
    answer = jax_oracle.run("(jnp.asarray(1.0), {'a': jnp.zeros(3, 'float64')})")
    assert answer.weak == (True, {"a": False})
    assert answer.value[1]["a"].dtype == np.float32
    assert any("float64" in text for text in answer.warnings)
    assert jax_oracle.run("jnp.asarray(1.0)", x64=True).dtype == np.float64


def test_an_error_keeps_its_class_and_text(jax_oracle):
    with pytest.raises(oracle.JaxError, match="incompatible shapes") as caught:
        jax_oracle.run("lax.add(jnp.ones(3), jnp.ones(4))")
    assert caught.value.kind == "TypeError"
    assert "Exception" in caught.value.bases


def test_statements_and_jaxprs(jax_oracle):
    assert jax_oracle.run("print('aside')\nresult = 3").value == 3
    text = jax_oracle.jaxpr("lambda x: jnp.sin(x) + 1", np.float32(2))
    assert text.startswith("{ lambda ; a:f32[]. let")
    assert "sin a" in text


def test_a_failed_callback_disturbs_no_later_question(jax_oracle):
    jax_oracle.run("""
        def fail(x): raise ValueError("no")
        result = str(jax.pmap(lambda x: jax.debug.callback(fail, x))(jnp.arange(2.)))
        """)
    assert jax_oracle.run("jax.effects_barrier()").value is None


def test_errors_in_pytrees_take_no_calls_from_later_questions(jax_oracle):
    left = """
        def left(n=0):
            try: return left(n + 1)
            except RecursionError: return n
        """
    before = jax_oracle.run(left + "\n        result = left()").value
    taken = jax_oracle.run(left + """
        tree, before = [[{1: 2, "a": 3}]], left()
        for _ in range(200):
            try: jax.tree.leaves(tree)
            except ValueError: pass
        result = before - left()
        """).value
    assert taken >= 200
    after = jax_oracle.run(left + "\n        result = left()").value
    assert abs(after - before) < 10  # two processes may begin some calls apart


def test_what_a_question_leaves_behind_does_not_answer_a_later_one(jax_oracle):
    jax_oracle.run("""
        def without_end(x): return jnp.abs(x)
        jnp.abs = without_end
        result = None
        """)
    assert jax_oracle.run("jnp.abs(-1.0)").value == 1


def test_objects_are_refused():
    with pytest.raises(TypeError, match="cannot send"):
        oracle.encode(object(), [])


def test_kept_replies_are_what_jax_says(jax_oracle):
    kept, questions = recorded.all_replies(), recorded.load(recorded.QUESTIONS)
    replies = recorded.usable(kept, recorded.processor())
    if not replies:
        pytest.skip("no replies are kept that were made on this kind of processor")
    assert all(set(of_kind) <= set(questions) for of_kind in kept.values())
    names = sorted(name for name in replies
                   if not questions[name].startswith(recorded.PROGRAM))
    chosen = random.Random(len(names)).sample(names, 20)  # others after each packing
    for name in chosen:
        assert recorded.key(questions[name]) == name
        now, blobs = oracle.receive(io.BytesIO(jax_oracle.reply_to(questions[name])))
        then, kept = oracle.receive(io.BytesIO(replies[name]))
        assert set(now) == set(then), (now, then)
        if "error" in then:
            assert now["error"] == then["error"], (now, then)
        elif "0x" not in str(then["value"]):  # an address is another one each time
            agree_nearly(then["value"], now["value"], kept, blobs)


PROGRAM = recorded.PROGRAM + b"import optax"


def test_replies_are_kept_for_each_kind_of_processor(tmp_path, monkeypatch):
    asked, packed = tmp_path / "asked", tmp_path / "packed"
    packed.mkdir()

    def run_on(kind, **replies):
        shutil.rmtree(asked, ignore_errors=True)
        asked.mkdir()
        for question, reply in replies.items():
            name = recorded.key(question.encode()).hex()
            (asked / f"{name}.question").write_text(question)
            (asked / f"{name}.reply").write_text(reply)
        monkeypatch.setattr(recorded, "processor", lambda: kind)
        recorded.pack(asked, packed)

    def found_on(kind):
        replies = recorded.usable(recorded.all_replies(packed), kind)
        known = {recorded.key(q): q.decode() for q in (b"a", b"b", b"c", b"d", b"old", PROGRAM)}
        return {known[name]: reply.decode() for name, reply in replies.items()}

    run_on(b"x avx", a="1.111", b="2.222", old="0")
    assert found_on(b"x avx") == {"a": "1.111", "b": "2.222", "old": "0"}
    assert found_on(b"x avx amx") == {"old": "0"}  # exact: the same everywhere
    run_on(b"x avx amx Haswell", a="1.111", b="2.223", c="4", d="4.444")
    assert found_on(b"x avx amx Haswell") == {"a": "1.111", "b": "2.223", "c": "4", "d": "4.444"}
    assert found_on(b"x avx") == {"a": "1.111", "b": "2.222", "c": "4"}
    # Between both kinds, what they agree on; on others only what is exact.
    assert found_on(b"x avx vnni") == {"c": "4"}
    assert found_on(b"x amx avx") == found_on(b"x avx Haswell") == {"a": "1.111", "c": "4"}
    assert found_on(b"x") == found_on(b"x avx neon") == {"c": "4"}
    run_on(b"x avx", a="5.555", b="2.222")
    assert found_on(b"x avx") == {"a": "5.555", "b": "2.222"}
    assert found_on(b"x avx amx Haswell") == {"a": "1.111", "b": "2.223"}
    assert found_on(b"x amx avx") == {}

    run_on(b"x avx", a="5.555", **{PROGRAM.decode(): "trained"})
    run_on(b"x avx", a="6")  # without the programs of other libraries, which are run apart
    assert found_on(b"x avx") == {"a": "6", PROGRAM.decode(): "trained"}
    run_on(b"x avx", **{PROGRAM.decode(): "again"})
    assert found_on(b"x avx") == {PROGRAM.decode(): "again"}
    assert len(list(packed.iterdir())) == 3


def agree_nearly(then, now, kept, blobs):
    """Assert that two replies hold the same, but for the last bits of what threads add up."""
    assert in_order(then) == in_order(now)
    for form in arrays_in(then):
        a, b = (oracle.decode(form, blobs) for blobs in (kept, blobs))
        np.testing.assert_allclose(a.astype(np.complex128), b.astype(np.complex128), 1e-5, 1e-6)


def in_order(form):
    """Return ``form`` with the items of dicts sorted: some are made from sets, in any order."""
    if isinstance(form, list):
        return [in_order(item) for item in form]
    if not isinstance(form, dict):
        return form
    form = {name: in_order(part) for name, part in form.items()}
    return form | {"dict": sorted(form["dict"], key=repr)} if "dict" in form else form


def arrays_in(form):
    """Yield the forms of the numeric arrays inside ``form``."""
    if isinstance(form, dict) and "array" in form:
        if form["dtype"] != "float0":
            yield form
    elif isinstance(form, (dict, list)):
        for item in form.values() if isinstance(form, dict) else form:
            yield from arrays_in(item)


def test_a_difference_is_named_by_its_path_and_its_expression(jax_oracle):
    def program(x):
        twice = 2 * x
        mine = jax.__name__ == "saem"
        return [x + 1, {"sum": jnp.sum(twice), "pair": (x, jnp.sin(x) if mine else x * 3)}]

    with pytest.raises(AssertionError, match=r"result\[1\]\['pair'\]\[1\] differs") as told:
        same(jax_oracle, program, x=np.float32(1))
    assert "it is  jnp.sin(x) if mine else x * 3" in str(told.value)
    with pytest.raises(AssertionError, match=r"result\[0\] differs: dtype or shape") as told:
        same(jax_oracle, "[jnp.arange(3 + len(jax.__name__)), 1]")
    assert "it is  jnp.arange(3 + len(jax.__name__))" in str(told.value)
