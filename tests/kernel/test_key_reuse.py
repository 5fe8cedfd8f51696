"""Is a key that is used twice found, and a program that uses each key once left alone?

Every program runs under ``debug_key_reuse`` on Saem and on real JAX.  Where JAX misses a reuse that
is one (two views of one key), or refuses a program that has none, the row says so.

Read before: ``saem.random.reuse``, ``saem.random.key_flow``.
"""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from both import source_of

import saem as jax
from saem.core.events import KeyEvent, bus
from saem.random.key_flow import flow_of
from saem.transform.staging import trace_flat

pytestmark = pytest.mark.usefixtures("little_effort")

R, lax = jax.random, jax.lax

# Program → whether it is refused, by both.  Rows are sessions of a line: as text each is its own
# name, and is seen in one glance beside the next.
SAME = {
    "R.normal(k); R.normal(k)": True,
    "R.split(k); R.normal(k)": True,
    "R.normal(k); R.split(k)": True,
    "R.permutation(k, 3); R.choice(k, 3)": True,
    "R.fold_in(k, 1); R.fold_in(k, 2); R.normal(k)": False,
    "R.normal(k); R.fold_in(k, 2)": False,
    "R.normal(R.clone(k)); R.normal(k)": False,
    "R.normal(k); R.normal(R.clone(k))": False,
    "R.normal(k); R.key_data(k); repr(k); k == k": False,
    "R.normal(R.wrap_key_data(R.key_data(k))); R.normal(k)": False,
    "a = R.key(0); R.normal(a); R.normal(k)": False,
    "R.normal(ks[0]); R.normal(ks[1])": False,
    "R.normal(ks[0]); R.normal(ks[0])": True,
    "a, b, c = ks; R.normal(a); R.normal(b)": False,
    "a, b, c = ks; R.normal(a); R.normal(a)": True,
    "jax.vmap(R.normal)(ks); jax.vmap(R.normal)(ks)": True,
    "jax.vmap(R.normal)(ks); R.normal(ks[0])": True,
    "R.normal(ks[0]); jax.vmap(R.normal)(ks)": True,
    "jax.vmap(R.normal)(ks); R.normal(k)": False,
    "p = R.PRNGKey(0); R.normal(p); R.normal(p)": False,
    "f = jax.jit(lambda k: R.normal(k)); f(k); f(k)": True,
    "f = jax.jit(lambda k: R.normal(k)); [f(a) for a in ks]": False,
    "jax.jit(lambda k: R.normal(k) + R.normal(k))(k)": True,
    "jax.jit(lambda k: R.normal(k) + R.normal(R.fold_in(k, 1)))(k)": False,
    "jax.jit(lambda k: R.normal(k) + R.normal(R.clone(k)))(k)": False,
    "jax.jit(lambda k: R.normal(k) + R.normal(k.reshape(1)[0]))(k)": True,
    "f = jax.jit(lambda k: k); f(k); R.normal(f(k))": False,
    "f = jax.jit(lambda k: R.key_data(k)); f(k); R.normal(k); f(k)": False,
    "f = jax.jit(lambda k: (R.normal(k), k)); R.normal(f(k)[1])": True,
    "f = jax.jit(lambda k: (R.normal(k), k)); f(k); R.normal(k)": True,
    "f = jax.jit(lambda k: R.split(k)); a, b = f(k); R.normal(a); R.normal(b)": False,
    "f = jax.jit(lambda k: R.split(k)); a, b = f(k); R.normal(k)": True,
    "f = jax.jit(lambda: R.normal(k)); f(); f()": True,
    "jax.jit(lambda k: jax.jit(R.normal)(k) + jax.jit(R.normal)(k))(k)": True,
    "jax.checkpoint(lambda k: R.normal(k))(k); R.normal(k)": True,
    "f = jax.checkpoint(lambda x, k: x * R.normal(k)); f(1., k); f(1., k)": True,
    "f = jax.checkpoint(lambda x, k: x * R.normal(k)); jax.jit(lambda k: f(1., k) + f(2., k))(k)":
        True,
    "f = jax.custom_jvp(lambda x, k: x * R.normal(k)); f.defjvp(lambda p, t: (f(*p), t[0]));"
    " jax.jit(f)(1., k)": False,
    "f = jax.custom_jvp(lambda x, k: x * R.normal(k)); f.defjvp(lambda p, t: (f(*p), t[0]));"
    " f(1., k); R.normal(k)": True,
    "jax.jit(jax.grad(jax.checkpoint(lambda x, k: jax.numpy.sin(x * R.normal(k)))))(1., k)": False,
    "s = R.split(k, 8); f = jax.pmap(lambda k: R.normal(k)); f(s); f(s)": True,
    "jax.jit(lambda s: R.normal(s[0]) + R.normal(s[1]))(ks)": False,
    "jax.jit(lambda s: R.normal(s[0]) + R.normal(s[0]))(ks)": True,
    "jax.jit(lambda s: [R.normal(a) for a in s])(ks)": False,
    "jax.jit(lambda k: jax.vmap(R.normal)(jax.numpy.stack([k, k])))(k)": True,
    "jax.jit(lambda s, i: R.normal(s[i]) + R.normal(s[i]))(ks, 0)": True,
    "jax.jit(lambda s: R.normal(s[0]) + jax.vmap(R.normal)(s).sum())(ks)": True,
    "f = jax.jit(lambda s: R.normal(s[1])); f(ks); R.normal(ks[1])": True,
    "f = jax.jit(lambda s: R.normal(s[1])); f(ks); R.normal(ks[0])": False,
    "jax.grad(lambda x, k: x * R.normal(k))(1., k)": False,
    "jax.grad(lambda x, k: x * R.normal(k))(1., k); R.normal(k)": True,
    "jax.jit(jax.grad(lambda x, k: x * R.normal(k) + R.normal(k)))(1., k)": True,
    "jax.vmap(lambda i: R.normal(k))(np.arange(3))": False,
    "jax.jit(jax.vmap(lambda i: R.normal(k)))(np.arange(3)); R.normal(k)": True,
    "jax.make_jaxpr(lambda k: R.normal(k) + R.normal(k))(k)": True,
    "lax.cond(True, lambda k: R.normal(k), lambda k: R.normal(k) * 2, k)": False,
    "lax.cond(True, lambda k: R.normal(k), lambda k: R.normal(k) * 2, k); R.normal(k)": True,
    "lax.cond(True, lambda k: 0., lambda k: R.normal(k), k); R.normal(k)": True,
    "lax.cond(True, lambda k: R.normal(k) + R.normal(k), lambda k: 0., k)": True,
    "jax.jit(lambda k: lax.cond(True, lambda: R.normal(k), lambda: 0.) + R.normal(k))(k)": True,
    "f = jax.jit(lambda k: lax.cond(True, lambda: R.normal(k), lambda: 0.)); f(k); f(k)": True,
    "lax.scan(lambda c, _: (c + R.normal(k), None), 0., None, length=3)": True,
    "lax.scan(lambda k, _: (k, R.normal(k)), k, None, length=3)": True,
    "lax.scan(lambda k, _: (R.split(k)[0], R.normal(k)), k, None, length=3)": True,
    "lax.scan(lambda k, _: (R.split(k)[0], 1.), k, None, length=3); R.normal(k)": True,
    "lax.scan(lambda k, _: tuple(R.split(k)), k, None, length=3)": False,
    "lax.scan(lambda c, k: (c, R.normal(k)), 0., ks)": False,
    "lax.scan(lambda c, k: (c, R.normal(k)), 0., ks); R.normal(ks[0])": True,
    "jax.jit(lambda k: lax.scan(lambda c, _: (c + R.normal(k), None), 0., None, length=3))(k)":
        True,
    "lax.map(R.normal, ks)": False,
    "lax.fori_loop(0, 3, lambda i, c: c + R.normal(k), 0.)": True,
    "lax.fori_loop(0, 3, lambda i, c: c + R.normal(R.fold_in(k, i)), 0.)": False,
    "lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, k))": False,
    "lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, R.split(c[1])[0]), (0, k))": False,
    "lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, R.split(c[1])[0]), (0, k));"
    " R.normal(k)": True,
    "lax.while_loop(lambda c: c < 3, lambda c: c + R.normal(k), 0.)": True,
    "R.poisson(k, np.array([3., 100.], 'f'))": False,
    "R.poisson(k, 3.); R.normal(k)": True,
    "jax.jit(lambda k: R.poisson(k, 3.))(k)": False,
    "R.binomial(k, 10, .3)": False,
    "jax.jit(lambda k: R.binomial(k, 10, .3) + R.normal(k))(k)": True,
    "R.multinomial(k, 5., np.ones(3, 'f') / 3)": False,
    "R.multinomial(k, 5., np.ones(3, 'f') / 3); R.split(k)": True,
    **{f"jax.jit(lambda k: R.{draw})(k)": False for draw in (
        "gamma(k, 2.)", "beta(k, 2., 3.)", "dirichlet(k, np.ones(3, 'f'))", "geometric(k, .3)",
        "t(k, 3.)", "f(k, 3., 4.)", "categorical(k, np.zeros(3, 'f'))", "permutation(k, 5)",
        "choice(k, 5)", "choice(k, 5, replace=False)", "truncated_normal(k, 0., 1.)", "ball(k, 3)",
        "generalized_normal(k, 2.)", "wald(k, 1.)", "orthogonal(k, 3)", "triangular(k, 0., .5, 1.)",
        "double_sided_maxwell(k, 0., 1.)", "multivariate_normal(k, np.zeros(2), np.eye(2))")},
}
# Two names of one key, which JAX does not see.
ONLY_SAEM_REFUSES = [
    "a, b, c = ks; R.normal(ks[0]); R.normal(a)",
    "f = jax.jit(lambda k: k); R.normal(f(k)); R.normal(k)",
    "jax.jit(lambda k, j: R.normal(k) + R.normal(j))(k, k)",
    "a, b = jax.jit(lambda k: (k, k))(k); R.normal(a); R.normal(b)",
    "a = k.reshape(1); R.normal(k); R.normal(a[0])",
]
# No key is used twice: two indices may differ, and one turn is no repetition.
ONLY_JAX_REFUSES = [
    "jax.jit(lambda s, i, j: R.normal(s[i]) + R.normal(s[j]))(ks, 0, 1)",
    "lax.scan(lambda c, _: (c + R.normal(k), None), 0., None, length=1)",
    "a = ks[0]; b = ks[0]; R.normal(a)",
    "jax.grad(jax.checkpoint(lambda x: np.float32(2) * x * R.normal(k)))(1.)",
    "jax.jit(lambda s: lax.fori_loop(0, 3, lambda i, c: c + R.normal(s[i]), 0.))(ks)",
]


def refused(programs):
    """Return by program whether it is refused for using a key twice."""
    found = {}
    for program in programs:
        with jax.debug_key_reuse(True):
            k, ks = R.key(0), R.split(R.key(1), 3)
            try:
                exec(program, {"jax": jax, "np": np, "R": R, "lax": lax, "k": k, "ks": ks})
            except jax.errors.KeyReuseError:
                found[program] = True
            else:
                found[program] = False
    return found


@pytest.fixture(scope="module")
def jax_says(jax_oracle):
    return jax_oracle.run(source_of(refused), programs=[
        *SAME, *ONLY_SAEM_REFUSES, *ONLY_JAX_REFUSES]).value


@pytest.mark.parametrize("program", SAME)
def test_reuse_is_found_where_jax_finds_it(jax_says, program):
    assert jax_says[program] == SAME[program], "the row is wrong about JAX"
    assert refused([program]) == {program: SAME[program]}


@pytest.mark.parametrize("program", ONLY_SAEM_REFUSES)
def test_two_names_of_one_key_are_one_key(jax_says, program):
    assert not jax_says[program], "JAX refuses it, too: move the row"
    assert refused([program]) == {program: True}


@pytest.mark.parametrize("program", ONLY_JAX_REFUSES)
def test_what_may_be_two_keys_is_not_refused(jax_says, program):
    assert jax_says[program], "JAX allows it, too: move the row"
    assert refused([program]) == {program: False}


def test_nothing_is_refused_by_default_nor_in_other_threads():
    key = R.key(0)
    with jax.debug_key_reuse(True):
        R.normal(key)
    np.testing.assert_array_equal(R.normal(key), R.normal(key))


def test_a_program_compiled_before_is_checked_under_the_setting():
    f = jax.jit(lambda k: R.normal(k))
    key = R.key(0)
    f(key)
    f(key)
    with jax.debug_key_reuse(True):
        f(key)
        with pytest.raises(jax.errors.KeyReuseError):
            f(key)
    f(key)


def message_of(program: str) -> str:
    """Return the message of the KeyReuseError of a program, written as a file of its own."""
    source = textwrap.dedent(program).strip()
    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError) as caught:
        exec(compile(source, "model.py", "exec"), {"jax": jax})
    return str(caught.value)


def test_the_error_names_both_lines_and_the_family():
    message = message_of("""
        root = jax.random.key(7)
        keys = jax.random.split(root, 3)
        first = jax.random.fold_in(keys[1], 5)
        a = jax.random.normal(first, (2,))
        b = jax.random.uniform(first, (2,))
    """)
    lines = [line.strip() for line in message.splitlines()]
    assert lines[:6] == [
        "key.reused: Previously-consumed key passed to uniform at index 0.",
        "in model.py, line 5",
        "It was used first by normal in model.py, line 4",
        "Its family:",
        "key(7) in model.py, line 1",
        "└─ split[1] in model.py, line 2",
    ]
    assert lines[6] == "└─ fold_in in model.py, line 3"
    assert "jax.random.split(key)" in lines[7]


def test_inside_a_program_the_error_names_both_lines_too():
    message = message_of("""
        @jax.jit
        def f(key):
            x = jax.random.normal(key)
            y = jax.random.normal(key)
            return x + y
        f(jax.random.key(0))
    """)
    assert "In random_bits, argument 0 is already consumed." in message
    assert "in model.py, line 4" in message
    assert "first by random_bits in model.py, line 3" in message


def test_in_a_loop_the_error_says_how_to_draw_anew():
    message = message_of("""
        key = jax.random.key(0)
        def body(i, x):
            return x + jax.random.normal(key)
        jax.lax.fori_loop(0, 3, body, 0.)
    """)
    assert "function leads to key reuse when repeatedly executed" in message
    assert "model.py, line 3" in message and "fold_in the number of the turn" in message


def test_a_flow_says_which_keys_a_program_uses_and_returns():
    keys = R.split(R.key(0), 4)

    def program(ks, other):
        return R.bits(ks[2]), ks[1:3], R.fold_in(other, 1), R.split(ks[0])

    closed = trace_flat(lambda *xs: list(program(*xs)), [jax.typeof(keys), jax.typeof(keys[0])])
    flow = flow_of(closed)
    assert flow.uses[0][0].tolist() == [True, False, True, False] and flow.uses[1] is None
    plain, view, folded, made = flow.outs
    assert plain is None
    assert (view.number, view.places.tolist(), view.used.tolist()) == (0, [1, 2], [False, True])
    assert (folded.number, folded.places) == (1, None) and (made.number, made.places) == (0, None)
    assert flow_of(trace_flat(lambda x: [x], [jax.typeof(1.0)])) is None


def test_listeners_hear_of_reuse_without_the_setting():
    heard = []
    end = bus.subscribe(lambda e: heard.append(e) if isinstance(e, KeyEvent) else None)
    try:
        key = R.key(0)
        f = jax.jit(lambda k: R.split(k))
        R.normal(key)
        a, _ = f(key)
        jax.vmap(R.normal)(R.split(a, 3))
    finally:
        end()
    assert [e.action for e in heard] == [
        "created", "used", "reused", "used", "returned", "returned", "split", "split", "split",
        "used", "used", "used"]
    root = heard[0].key
    assert [e.parent for e in heard[4:6]] == [root, root]
    assert {e.parent for e in heard[6:9]} == {heard[4].key}
    assert [e.key for e in heard[9:]] == [e.key for e in heard[6:9]]
    assert all(e.caller.file == __file__ for e in heard)
