"""Do loops and branches give JAX's values, types and errors?

Read before: ``both.py``.  Read after: ``test_control_derivatives.py``.
"""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from both import ours, same, same_error, source_of

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.compile import executables as compiling

pytestmark = pytest.mark.usefixtures("little_effort")

x = jnp.arange(3.0)
y = jnp.asarray([2.0, -1.0, 0.5])
W = jnp.asarray(np.linspace(-1, 1, 9, dtype="float32").reshape(3, 3))
n = jnp.int32(4)
s = jnp.float32(1.5)

VALUES = {
    "cond": """[
        lax.cond(True, lambda a: a * y, lambda a: a + 1, x),
        lax.cond(x.sum() > 5, lambda a: a * y, lambda a: a + 1, x),
        lax.cond(s > 0, lambda: x, lambda: y),
        lax.cond(2, lambda a: a, lambda a: -a, s), lax.cond(0.0, lambda a: a, lambda a: -a, s),
        lax.cond(jnp.int8(0), lambda a: a, lambda a: -a, s),
        lax.cond(True, lambda a, b: {'p': a, 'q': (b, 1)}, lambda a, b: {'p': b, 'q': (a, 2)},
                 x, y),
        lax.cond(False, lambda a: (a, None), lambda a: (a * 2, None), operand=s),
        lax.cond(True, 3., lambda a: a + 1, 4., lambda a: -a),
        lax.cond(True, lambda a: a, lambda a: 2., s), lax.cond(True, lambda a: 2., lambda a: a, s),
        lax.cond(True, lambda a: 1, lambda a: 2, s),
        jax.jit(lambda p, a: lax.cond(p, jnp.sin, jnp.cos, a))(True, x)]""",
    "switch": """[
        [lax.switch(i, [lambda a: a, lambda a: a * 2, lambda a: -a], x) for i in (-7, 0, 1, 2, 9)],
        [jax.jit(lambda i: lax.switch(i, [lambda a: a, lambda a: a * 2], s))(np.uint8(i))
         for i in (0, 1, 200)],
        lax.switch(n, [lambda: x, lambda: y]), lax.switch(5, [lambda a: a + 1], x)]""",
    "while": """[
        lax.while_loop(lambda c: c < 10, lambda c: c + 3, 0),
        lax.while_loop(lambda c: c.sum() < 20, lambda c: c + x, y),
        lax.while_loop(lambda c: c < 3, lambda c: c + 1., 0),
        lax.while_loop(lambda c: c < 3, lambda c: 2 * c + np.float32(1), 0.),
        lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] @ W, c[2]), (0, x, y)),
        lax.while_loop(lambda c: False, lambda c: c * 2, x),
        lax.while_loop(lambda c: c['i'] < 3, lambda c: {'i': c['i'] + 1, 'k': c['k']},
                       {'i': 0, 'k': W}),
        lax.while_loop(lambda c: c < 1., lambda c: 1., np.float32(0))]""",
    "fori": """[
        lax.fori_loop(0, 5, lambda i, c: c + i, 0), lax.fori_loop(3, 0, lambda i, c: c + 1, x),
        lax.fori_loop(0, 5, lambda i, c: c + i, 0.), lax.fori_loop(0, n, lambda i, c: c * y, x),
        lax.fori_loop(0, 3, lambda i, c: c * 2., 1), lax.fori_loop(2, 7, lambda i, c: c + i, x),
        lax.fori_loop(0, 5, lambda i, c: c + x[i % 3], s, unroll=2),
        lax.fori_loop(0, 5, lambda i, c: c + x[i % 3], s, unroll=True),
        jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: (c[0] + i, c[1] * 2), (0, x)))(4),
        jax.jit(lambda n: lax.fori_loop(jnp.int8(1), n, lambda i, c: c + i, jnp.int8(0)))(
            jnp.int8(5)),
        lax.fori_loop(np.int8(0), 3, lambda i, c: c + i, 1),
        lax.fori_loop(0., 3., lambda i, c: c + i, 1)]""",
    "scan": """[
        lax.scan(lambda c, a: (c + a, c * 2), 0., x), lax.scan(lambda c, a: (c + a, c), 0, x),
        lax.scan(lambda c, a: (c + 1, c), 0, x), lax.scan(lambda c, a: (c, a), x, W),
        lax.scan(lambda c, a: (c + a, c), s, x, reverse=True),
        [lax.scan(lambda c, a: (c * a + s, c), s, W.reshape(9), unroll=u)
         for u in (0, 2, 4, 20, True, False)],
        [lax.scan(lambda c, a: (c * a + s, c), s, W.reshape(9), unroll=u, reverse=True)
         for u in (2, True)],
        lax.scan(lambda c, _: (c * 2, None), s, None, length=5),
        lax.scan(lambda c, _: (c * 2, c), s, length=0),
        lax.scan(lambda c, a: (c + a['k'] @ a['v'], (c, a['k'])), x, {'k': jnp.stack([W, W]),
                                                                     'v': jnp.stack([x, y])}),
        lax.scan(lambda c, a: (1.0, a), np.float32(0), x), lax.scan(lambda c, a: [c, a], s, x),
        lax.scan(lambda c, a: (c | (a > 1), ~c), False, x),
        lax.scan(lambda c, a: (c + a, a.astype('bfloat16')), s, np.arange(4, dtype='float32')),
        lax.scan(lambda c, a: (c, a), (), x), lax.scan(lambda c, a: (c + a, None), 0, np.arange(5)),
        jax.jit(lambda v: lax.scan(lambda c, a: (c + a, c), 0., v))(x)]""",
    "map": """[
        lax.map(lambda a: a * 2, x), lax.map(lambda a: (a['p'] @ W, a['q']), {'p': W, 'q': x}),
        [lax.map(lambda a: a @ y, jnp.arange(21.).reshape(7, 3), batch_size=b)
         for b in (2, 7, 10)]]""",
    "associative": """jax.jit(lambda x, y, W: [
        [lax.associative_scan(jnp.add, jnp.arange(float(m))) for m in (0, 1, 2, 5, 8)],
        lax.associative_scan(jnp.maximum, W, axis=1),
        lax.associative_scan(jnp.multiply, W + 2, axis=-2),
        lax.associative_scan(jnp.logical_or, jnp.asarray([False, True, False, False])),
        lax.associative_scan(jnp.matmul, jnp.stack([W + i for i in range(5)]), reverse=True),
        lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x + 1, y)),
        lax.associative_scan(lambda a, b: {"z": a[0] * b[0], "a": a[1] + b[1]}, [x + 1, y])])(
            x, y, W)""",
    "vmap": """[
        jax.vmap(lambda a: lax.cond(a > 0, jnp.sin, lambda a: a * a, a))(y),
        jax.vmap(lambda a, b: lax.cond(s > 0, lambda: a, lambda: b), (0, None))(W, y),
        jax.vmap(lambda i, a: lax.switch(i, [lambda a: a, lambda a: W @ a], a))(
            jnp.asarray([0, 1, 5]), W),
        jax.vmap(lambda a: lax.while_loop(lambda c: c < 10, lambda c: c + a, a))(x + 1),
        jax.vmap(lambda m: lax.while_loop(lambda c: c[0] < m, lambda c: (c[0] + 1, c[1] @ W, c[2]),
                                          (0, x, y)))(jnp.asarray([0, 3, 1])),
        jax.vmap(lambda m: lax.fori_loop(0, m, lambda i, c: c + i, 0))(jnp.asarray([0, 3, 1])),
        jax.vmap(jax.vmap(lambda a: lax.while_loop(lambda c: c < 2, lambda c: c + a, a)))(W + 1.5),
        jax.vmap(lambda a: lax.scan(lambda c, b: (c + a * b, c), 0., x))(y),
        jax.vmap(lambda a: lax.scan(lambda c, b: (c + b, s), 0., a), 1)(W),
        jax.vmap(lambda a, b: lax.scan(lambda c, r: (c @ r, c), a, b), (0, None))(
            W, jnp.stack([W, W])),
        jax.vmap(lambda a: lax.map(lambda b: a * b, x), out_axes=1)(y),
        jax.vmap(lambda a: lax.associative_scan(jnp.add, a))(W)]""",
    "nested": """[
        jax.jit(lambda a: lax.scan(lambda c, r: lax.cond(r > 0, lambda: (c + r, c),
                                   lambda: (c, lax.fori_loop(0, 3, lambda i, d: d + r, c))),
                                   0., a))(y),
        lax.while_loop(lambda c: lax.cond(c > 5, lambda: False, lambda: True),
                       lambda c: lax.scan(lambda d, r: (d + r, None), c, x)[0], s),
        lax.map(lambda r: lax.while_loop(lambda c: c < r, lambda c: c * 2 + 1, 0.), x)]""",
    "keys": """[
        jax.random.key_data(lax.scan(lambda k, _: (jax.random.split(k)[0], jax.random.uniform(k)),
                                     jax.random.key(0), length=3)[0]),
        lax.scan(lambda c, k: (c + jax.random.uniform(k), jax.random.key_data(k)), 0.,
                 jax.random.split(jax.random.key(1), 4)),
        jax.random.key_data(lax.cond(True, lambda k: jax.random.split(k)[1], lambda k: k,
                                     jax.random.key(2))),
        jax.random.key_data(jax.vmap(lambda m, k: lax.while_loop(
            lambda c: c[0] < m, lambda c: (c[0] + 1, jax.random.split(c[1])[0]), (0, k))[1])(
                jnp.asarray([0, 2]), jax.random.split(jax.random.key(3), 2)))]""",
}


@pytest.mark.parametrize("name", VALUES)
def test_values(jax_oracle, name):
    same(jax_oracle, VALUES[name], rtol=1e-5, within=__name__)


def without_jit(f):
    with jax.disable_jit():
        return f()


@pytest.mark.parametrize("name", ["cond", "switch", "while", "fori"])
def test_values_without_jit(jax_oracle, name):
    """With jit disabled the user's functions run as Python, with the same results."""
    source = VALUES[name].replace("lax.cond(True, lambda a: 1, lambda a: 2, s),", "")
    program = f"without_jit(lambda: {source})"
    answer = jax_oracle.run(source_of(program, __name__)).value
    got, tree = jax.tree.flatten(ours(program, __name__))
    wanted, wanted_tree = jax.tree.flatten(answer)
    assert tree == wanted_tree
    for g, w in zip(got, wanted):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-5)


def test_disabled_jit_runs_python():
    seen = []
    with jax.disable_jit():
        lax.scan(lambda c, a: (seen.append(float(c)) or c + a, None), 0., jnp.arange(3.))
        lax.fori_loop(0, 2, lambda i, c: seen.append(i) or c, 0)
    assert seen == [0., 0., 1., 0, 1]


SAME = "must have the same pytree structure, but they differ"
TYPES = "body function carry input and carry output must have equal types, but they differ"
ERRORS = [
    ("lax.cond(x, lambda a: a, lambda a: a, s)", "Pred must be a scalar, got"),
    ("lax.cond('s', lambda a: a, lambda a: a, s)", "Pred must be a scalar, got s of type"),
    ("lax.cond(None, lambda a: a, lambda a: a, s)", "cond predicate is None"),
    ("lax.cond(1j, lambda a: a, lambda a: a, s)", "Pred type must be either boolean or number"),
    ("lax.cond(True, 1, lambda a: a, s)", "true_fun and false_fun arguments should be callable"),
    ("lax.cond(True, lambda a: a, lambda a: (a, a), s)", f"cond branch outputs {SAME}"),
    ("lax.cond(True, lambda a: None, lambda a: 2, s)", f"cond branch outputs {SAME}"),
    ("lax.cond(True, lambda a: {'q': a, 'r': x}, lambda a: {'q': a, 'r': x[:2]}, s)",
     "The output of true_fun at path ['r'] has type float32[3] but the corresponding output of "
     "false_fun has type float32[2], so the shapes do not match"),
    ("lax.cond(True, lambda a: a, lambda a: 1, s)", "so the dtypes do not match"),
    ("lax.cond(True, lambda a: 's', lambda a: 's', s)", "which is not a valid JAX type"),
    ("lax.switch(0, [lambda a: a, lambda a: a + x], s)",
     "switch branches must have equal output types but they differ"),
    ("lax.switch(0, [lambda a: a, lambda a: (a, a)], s)", f"switch branch outputs {SAME}"),
    ("lax.switch(1, [], s)", "Empty branch sequence"),
    ("lax.switch(1., [lambda a: a, lambda a: a], s)", "Index type must be an integer, got 1.0 as"),
    ("lax.switch(x, [lambda a: a, lambda a: a], s)", "Branch index must be scalar, got"),
    ("lax.switch('s', [lambda a: a, lambda a: a], s)", "Index type must be an integer, got s"),
    ("lax.while_loop(lambda c: c, lambda c: c + 1, 0)",
     "cond_fun must return a boolean scalar, but got output type(s) [ShapedArray(int32[], "
     "weak_type=True)]"),
    ("lax.while_loop(lambda c: (c < 1, c), lambda c: c + 1, 0)",
     "cond_fun must return a boolean scalar, but got pytree PyTreeDef((*, *))"),
    ("lax.while_loop(lambda c: c < 1, lambda c: c + 1, x)", "[ShapedArray(bool[3])]"),
    ("lax.while_loop(lambda c: c < 1, lambda c: (c, c), 0)",
     f"while_loop body function carry input and carry output {SAME}"),
    ("lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0], x[:2]), (0, x))", "The input carry "
     "component c[1] has type float32[3] but the corresponding output carry component has type "
     "float32[2], so the shapes do not match"),
    ("lax.while_loop(lambda c: c < 3, lambda c: c + np.float32(1), np.int32(0))",
     "The input carry c has type int32[] but the corresponding output carry component has type "
     "float32[], so the dtypes do not match"),
    ("lax.while_loop(1, lambda c: c, 0)", "body_fun and cond_fun arguments should be callable"),
    ("jax.grad(lambda a: lax.while_loop(lambda c: c < 10., lambda c: c * 2, a))(1.)",
     "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic "
     "start/stop values"),
    ("jax.jit(jax.grad(lambda a, m: lax.fori_loop(0, m, lambda i, c: c * 2, a)))(1., 3)",
     "Reverse-mode differentiation does not work"),
    ("lax.fori_loop(0, 3, lambda i, c: (c, c), 1)",
     f"body function carry input and carry output {SAME}"),
    ("lax.fori_loop(0, 3, lambda i, c: c.astype('int32'), x)",
     "has type float32[3] but the corresponding output carry component has type int32[3]"),
    ("lax.fori_loop(np.int8(0), np.int16(3), lambda i, c: c, 1)",
     "lower and upper arguments to fori_loop must have equal types, got int8 and int16"),
    ("lax.fori_loop(0., 3, lambda i, c: c, 1)", "must have equal types, got float32 and int32"),
    ("lax.fori_loop(0, 3, 3, x)", "lax.fori_loop: body_fun argument should be callable"),
    ("jax.jit(lambda m: lax.fori_loop(0, m, lambda i, c: c, x, unroll=2))(3)",
     "Can only use `unroll` in `fori_loop` if the loop bounds are statically known."),
    ("lax.scan(lambda c, a: (c + a, c), n, x)", f"scan {TYPES}"),
    ("lax.scan(lambda c, a: (c + a, c), n, x)", "The input carry c has type int32[] but the "
     "corresponding output carry component has type float32[], so the dtypes do not match"),
    ("lax.scan(lambda c, a: ({'a': c['a'], 'b': x[:2]}, a), {'a': x, 'b': x}, x)",
     "The input carry component c['b'] has type float32[3] but the corresponding output carry "
     "component has type float32[2], so the shapes do not match"),
    ("lax.scan(lambda c, a: ((c, c), c), 0., x)",
     f"scan body function carry input and carry output {SAME}"),
    ("lax.scan(lambda c, a: (({'a': c[0]['a']},), a), ({'a': x, 'b': x},), x)", SAME),
    ("lax.scan(lambda c, a: c, 0., x)", "scan body output must be a pair, got"),
    ("lax.scan(lambda c, a: (c, c), 0., (x, jnp.ones(4)))",
     "scan got values with different leading axis sizes: 3, 4."),
    ("lax.scan(lambda c, a: (c, c), 0., x, length=5)",
     "scan got `length` argument of 5 which disagrees with leading axis sizes [3]."),
    ("lax.scan(lambda c, a: (c, c), 0., None)",
     "scan got no values to scan over and `length` not provided."),
    ("lax.scan(lambda c, a: (c, c), 0., 3.)",
     "scan got value with no leading axis to scan over: 3.0."),
    ("lax.scan(lambda c, a: (c, 's'), 0., x)", "at output component [1], which is not a valid JAX"),
    ("lax.scan(lambda c, a: (c, c), 's', x)", "is not a valid JAX type"),
    ("lax.scan(3, 0., x)", "lax.scan: f argument should be"),
    ("lax.scan(lambda c, a: (c, c), 0., x, unroll=-1)",
     "`unroll` must be a `bool` or a non-negative `int`"),
    ("jax.jit(lambda m: lax.scan(lambda c, a: (c, c), 0., length=m))(3)", "`length` argument"),
    ("lax.associative_scan(3, x)", "lax.associative_scan: fn argument should be callable"),
    ("lax.associative_scan(jnp.add, x, axis=3)", "axis 3 is out of bounds"),
    ("lax.associative_scan(jnp.add, (x, jnp.ones(4)))",
     "Array inputs to associative_scan must have the same first dimension. (saw: [(3,), (4,)])"),
    ("lax.associative_scan(lambda a, b: a[:1], (x, x))", "Too few leaves for PyTreeDef"),
    ("lax.associative_scan(lambda a, b: (*a, a[0]), (x, x))", "Too many leaves for PyTreeDef"),
]


@pytest.mark.parametrize(("source", "sentence"), ERRORS)
def test_errors(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence, within=__name__)


def test_an_empty_scan_needs_jit(jax_oracle):
    same_error(jax_oracle, "without_jit(lambda: lax.scan(lambda c, a: (c, a), 0., x[:0]))",
               "zero-length scan is not supported in disable_jit() mode", within=__name__)


def test_an_error_shows_the_users_line():
    with pytest.raises(TypeError) as caught:
        lax.scan(lambda c, a: (c.astype("int32"), None), jnp.ones(2), jnp.ones(3))
    assert 'lax.scan(lambda c, a: (c.astype("int32"), None)' in str(caught.value)
    assert str(caught.value).startswith("scan.C3: scan body function carry input")


def test_an_error_inside_a_body_names_its_arguments():
    with pytest.raises(jax.errors.TracerBoolConversionError, match="row → bool"):
        lax.scan(lambda total, row: (total if row else 0.0, None), 0.0, jnp.ones(3))


@pytest.mark.clears_caches
def test_a_function_is_traced_once_for_one_signature():
    """As in JAX; another signature, another setting or a fresh function traces again."""
    traced = []

    def body(carry, a):
        traced.append(a.shape)
        return carry + a.sum(), None

    for _ in range(3):
        assert lax.scan(body, 0.0, jnp.ones(3))[0] == 3
    assert traced == [()]
    lax.scan(body, 0.0, jnp.ones((2, 4)))
    jax.clear_caches()
    lax.scan(body, 0.0, jnp.ones(3))
    assert traced == [(), (4,), ()]


def test_a_body_that_closes_over_a_tracer_is_traced_anew():
    def total(scale):
        def body(carry, a):
            return carry + a * scale, None

        return lax.scan(body, 0.0, jnp.ones(3))[0] + lax.scan(body, 1.0, jnp.ones(3))[0]

    assert jax.jit(total)(2.0) == 13
    assert jax.grad(total)(2.0) == 6


def test_nothing_keeps_a_finished_loop_alive():
    array = jnp.ones(3)

    class Body:
        def __call__(self, carry, a):
            return carry + (a * array).sum(), None

    body = Body()
    lax.scan(body, 0.0, array)
    dead = weakref.ref(body)
    del body
    gc.collect()
    assert dead() is None


def test_fresh_lambdas_do_not_compile_again():
    def run():
        lax.cond(True, lambda a: a + 17, lambda a: a * 2, jnp.ones(3))
        lax.scan(lambda c, a: (c + a, c * 17), 0.0, jnp.ones(3))
        lax.fori_loop(0, 17, lambda i, a: a + 1, jnp.ones(3))
        lax.while_loop(lambda c: c.sum() < 17, lambda a: a + 1, jnp.ones(3))

    run()
    before = len(compiling._executables)
    for _ in range(3):
        run()
    assert len(compiling._executables) == before


def test_ordered_effects_happen_in_the_order_of_the_loop():
    seen = []

    def note(value):
        jax.debug.callback(lambda v: seen.append(int(v)), value, ordered=True)

    def program(x):
        def row(c, a):
            note(a)
            lax.cond(a > 1, lambda: note(10 * a), lambda: note(-a))
            return lax.while_loop(lambda d: d < a, lambda d: (note(100 + d), d + 1)[1], c), None

        return lax.fori_loop(0, 2, lambda i, c: (note(1000 + i), c)[1],
                             lax.scan(row, 0, x, reverse=True)[0])

    written_out = [3, 30, 100, 101, 102, 2, 20, 1, -1, 1000, 1001]
    for run in (program, jax.jit(program)):
        seen.clear()
        assert run(jnp.asarray([1, 2, 3])) == 3
        jax.effects_barrier()
        assert seen == written_out


def test_a_linearized_while_loop_shows_what_it_computes_twice(jax_oracle):
    """Its linear part runs the loop again, and so its effects, as JAX's does."""
    def program():
        seen = []

        def step(c):
            jax.debug.callback(lambda v: seen.append(float(v)), c)
            return c * 2

        out, linear = jax.linearize(lambda x: lax.while_loop(lambda c: c < 9, step, x), 2.0)
        slope = linear(1.0)
        jax.effects_barrier()
        return [out, slope, seen]

    same(jax_oracle, program)


def test_long_loops_run():
    assert lax.fori_loop(0, 100_000, lambda i, c: c + 1, 0) == 100_000
    carry, ys = lax.scan(lambda c, _: (c + 1, c), 0, length=50_000)
    assert carry == 50_000 and int(ys[-1]) == 49_999
