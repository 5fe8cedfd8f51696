"""Are random numbers those of JAX, bit for bit, and are keys values like any other?

Every expression below is asked of Saem and of real JAX; the answers must have the same bytes.  What
no JAX is needed for: Threefry's published test vectors, the NumPy rules against XLA, keys under
every transformation, and what listeners are told.

Read before: ``saem.random``.  Source of the vectors: Random123 1.14, kat_vectors (threefry2x32 20).
"""

from __future__ import annotations

import numpy as np
import pytest
from oracle import JaxError

import saem as jax
from saem.core.events import KeyEvent, bus
from saem.core.infer import check_jaxpr
from saem.core.jaxpr import evaluate
from saem.ops.keys import THREEFRY, PRNGKeyArray
from saem.ops.random_bits import (
    random_bits,
    random_fold_in,
    random_seed,
    random_split,
    random_unwrap,
    random_wrap,
    threefry2x32,
)
from saem.transform.staging import trace_flat

R = jax.random
FLOATS = ("float16", "bfloat16", "float32", "float64")
LOGITS = "np.float32([[.1, 2, .3], [1, .5, 3]])"
WEIGHTS = "np.float32([.1, .2, .3, .4])"

SEEDS = ["0", "1", "-1", "2**31-1", "2**32-1", "2**40", "-2**40", "np.uint32(2**32-1)",
         "np.int8(-3)", "True", "np.int64(2**40)"]
BITS = [f"R.bits(k, {shape}, '{dtype}')" for dtype in ("uint8", "uint16", "uint32")
        for shape in ("()", "(3,)", "(2, 3)", "(0,)", "(1001,)")]
KEYS = [
    *(f"R.key_data(R.key({seed}))" for seed in SEEDS), *(f"R.PRNGKey({seed})" for seed in SEEDS),
    "R.key_data(R.split(k, 5))", "R.key_data(R.split(k, (2, 3)))", "R.key_data(R.split(k, 0))",
    *(f"R.key_data(R.fold_in(k, {n}))" for n in ("0", "1", "2**32-1", "np.int8(-3)")),
    "R.split(R.PRNGKey(3))", "R.fold_in(R.PRNGKey(3), 4)", "R.uniform(R.PRNGKey(3), (2,))",
    "R.key_data(R.clone(k))", "R.key_impl(k)",
]
ROW, FEW = "np.float32([.2, 1., 3.3, 21.])", "(4,)"
CONTINUOUS = [
    f"R.{call}" for dtype in FLOATS for shape in ("(3,)", "(40, 5)") for call in (
        f"uniform(k, {shape}, '{dtype}')", f"uniform(k, {shape}, '{dtype}', -2., 3.5)",
        f"normal(k, {shape}, '{dtype}')", f"exponential(k, {shape}, '{dtype}')",
        f"laplace(k, {shape}, '{dtype}')", f"logistic(k, {shape}, '{dtype}')",
        f"cauchy(k, {shape}, '{dtype}')", f"gumbel(k, {shape}, '{dtype}')",
        f"gumbel(k, {shape}, '{dtype}', mode='high')",
        f"truncated_normal(k, -1., 2., {shape}, '{dtype}')",
        f"lognormal(k, .5, {shape}, '{dtype}')", f"pareto(k, 2., {shape}, '{dtype}')",
        f"rayleigh(k, 2., {shape}, '{dtype}')", f"weibull_min(k, 2., 1.5, {shape}, '{dtype}')",
        f"triangular(k, -1., 0.5, 2., {shape}, '{dtype}')", f"wald(k, 2., {shape}, '{dtype}')",
        f"rademacher(k, {shape}, '{dtype}')")
] + [
    "R.normal(k)", "R.uniform(k)", "R.uniform(k, 3)", "R.normal(k, (3,), 'complex64')",
    "R.uniform(k, (2,), minval=np.float32([0, 1]), maxval=5)",
    "R.uniform(k, (3, 2), minval=1, maxval=np.float32([2, 3]))",
    "R.uniform(k, (), minval=np.zeros(1), maxval=np.float32([2]))",
    "R.uniform(k, minval=np.zeros((1, 1)))", "R.uniform(k, (), 'float16', maxval=np.ones(1, int))",
    "jax.vmap(lambda a: R.uniform(k, maxval=a))(np.float32([[1], [2]]))",
    "R.normal(k, (1000,))",
    # Parameters whose quotients are rounded, alone and in arrays.
    *(f"R.{call}" for a, b in ((".3", "1.1"), ("7.1", ".7"), (ROW, "2.6"), (ROW, f"{ROW}[::-1]"))
      for call in (
        f"f(k, {a}, {b}, {FEW})", f"beta(k, {a}, {b}, {FEW})", f"gamma(k, {a}, {FEW})",
        f"loggamma(k, {b}, {FEW})", f"t(k, {a}, {FEW})", f"chisquare(k, {a}, {FEW})",
        f"pareto(k, {a}, {FEW})", f"wald(k, {a}, {FEW})", f"rayleigh(k, {b}, {FEW})",
        f"lognormal(k, {a}, {FEW})", f"weibull_min(k, {a}, {b}, {FEW})",
        f"triangular(k, -{a}, 0., {b}, {FEW})", f"uniform(k, {FEW}, 'float32', -{a}, {b})",
        f"truncated_normal(k, -{a}, {b}, {FEW})")),
]
INTEGERS = [
    f"R.randint(k, (3,), {bounds}, '{dtype}')"
    for dtype in ("int8", "uint8", "int16", "int32", "uint32", "int64")
    for bounds in ("0, 10", "3, 3", "5, 2", "-5, 5", "0, 2**31-1", "0, 300",
                   "np.int32([0, 1, 2]), np.int32([5, 1, 100])", "-2**31, 2**31-1",
                   "np.uint32(0), np.uint32(2**32-1)")
] + ["R.randint(k, (), 0, 10)", "R.randint(k, (2, 3), 0, np.int32([1, 2, 3]))"]
DISCRETE = [
    "R.bernoulli(k)", "R.bernoulli(k, 0.3, (5,))", "R.bernoulli(k, np.float32([.1, .5, .9]))",
    "R.bernoulli(k, 0.3, (50,), mode='high')", "R.bernoulli(k, np.float16(.3), (10,))",
    "R.rademacher(k, (5,))", "R.rademacher(k, (5,), 'int8')",
    "R.permutation(k, 10)", "R.permutation(k, 1)", "R.permutation(k, 0)",
    "R.permutation(k, 100000)", "R.permutation(k, np.arange(12).reshape(3, 4))",
    "R.permutation(k, np.arange(12).reshape(3, 4), axis=1)",
    "R.permutation(k, np.arange(12).reshape(3, 4), axis=-1, independent=True)",
    "R.permutation(k, np.float32([3, 1, 2]))", "R.permutation(k, np.int8(5))",
    "R.choice(k, 10)", "R.choice(k, 10, (3, 2))", "R.choice(k, 10, (3,), replace=False)",
    "R.choice(k, np.float32([5, 6, 7, 8]), (3,))",
    "R.choice(k, np.arange(24).reshape(2, 3, 4), (2, 2), axis=1)",
    f"R.choice(k, 4, (30,), p={WEIGHTS})", f"R.choice(k, 4, (2, 2), p={WEIGHTS}, replace=False)",
    "R.choice(k, 4, (0,))", "R.choice(k, np.arange(12).reshape(3, 4), (2,), replace=False)",
    "R.choice(k, np.int32([1, 2, 3]), (), p=np.float32([0, 0, 1]))",
    f"R.categorical(k, {LOGITS})", f"R.categorical(k, {LOGITS}, axis=0)",
    f"R.categorical(k, {LOGITS}, shape=(5, 2))", f"R.categorical(k, {LOGITS}[0])",
    f"R.categorical(k, {LOGITS}, axis=0, shape=(4, 5, 3))",
    f"R.categorical(k, {LOGITS}, shape=(2, 2), replace=False)",
    f"R.categorical(k, {LOGITS}, mode='high')",
    "R.geometric(k, .3, (10,))", "R.geometric(k, np.float32([.1, .9]))",
]
REFUSED = [
    "R.key(1.5)", "R.key(np.arange(3))", "R.key(0, impl='foo')", "R.split(3)",
    "R.split(np.zeros(3, 'uint32'))", "R.split(R.split(k))", "R.normal(R.split(k))",
    "R.normal(np.zeros((3, 2), 'uint32'))", "R.normal('a')", "R.fold_in(k, np.arange(3))",
    "R.fold_in(k, 2**33)", "R.fold_in(k, -1)", "R.bits(k, (3,), 'float32')",
    "R.uniform(k, (3,), 'int32')",
    "R.normal(k, (3,), 'int32')", "R.randint(k, (3,), 0, 5, 'float32')", "R.choice(k, 0, (3,))",
    "R.choice(k, 3, (5,), replace=False)", "R.wrap_key_data(np.zeros(3, 'uint32'))",
    "R.wrap_key_data(np.zeros(2, 'int32'))", "R.uniform(k, (2,), minval=np.zeros(3))",
    "R.bernoulli(k, np.zeros(3), (2,))", "R.permutation(k, 1.5)", "R.bernoulli(k, 1)",
]
WIDE = [e for e in (*KEYS, *CONTINUOUS, *DISCRETE) if "float16" not in e and "(40, 5)" not in e]
WIDE += ["R.bits(k, (3,), 'uint64')", "R.bits(k)", "R.randint(k, (3,), 0, 2**62)",
         "R.randint(k, (3,), -2**63, 2**63-1)", "R.key_data(R.key(np.uint64(2**63)))"]


def ask(expression: str, seed: int = 42):
    return eval(expression, {"R": R, "np": np, "k": R.key(seed), "jax": jax})


def same_bytes(got, want) -> None:
    if isinstance(want, str):
        assert got == want
        return
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert got.tobytes() == want.tobytes(), f"{got}\nbut JAX gives\n{want}"


def source(expression: str, seed: int = 42) -> str:
    """Return ``expression`` with the two names bound that ``ask`` gives it."""
    return f"R = jax.random; k = R.key({seed}); result = {expression}"


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
@pytest.mark.parametrize("expression", [*BITS, *KEYS, *CONTINUOUS, *INTEGERS, *DISCRETE])
def test_numbers_are_those_of_jax(jax_oracle, expression):
    same_bytes(ask(expression), jax_oracle.run(source(expression)).value)


@pytest.mark.parametrize("expression", WIDE)
def test_numbers_are_those_of_jax_in_64_bits(jax_oracle, expression):
    want = jax_oracle.run(source(expression), x64=True).value
    with jax.enable_x64(True):
        same_bytes(ask(expression), want)


@pytest.mark.parametrize("expression", [
    "R.maxwell(k, (40,))", "R.double_sided_maxwell(k, 1., 2., (40,))",
    "R.double_sided_maxwell(k, np.float32([1, 2, 3]), 2., (4,))"])
def test_sums_of_squares_are_those_of_jax_but_for_the_last_bit(jax_oracle, expression):
    got, want = np.asarray(ask(expression)), jax_oracle.run(source(expression)).value
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got, want, rtol=3e-7)


@pytest.mark.parametrize("expression", REFUSED)
def test_what_jax_refuses_is_refused_alike(jax_oracle, expression):
    with pytest.raises(JaxError) as theirs:
        jax_oracle.run(source(expression))
    with pytest.raises(Exception) as ours:
        ask(expression)
    assert theirs.value.kind in [c.__name__ for c in type(ours.value).__mro__], (
        theirs.value, ours.value)


@pytest.mark.parametrize("body", [
    "bits(k, (3,))", "bits(k, (3,), 'uint8')", "key_data(split(k, 3))", "key_data(fold_in(k, 3))",
    "key_data(clone(k))", "key_data(split(k, (2, 3)))"])
def test_programs_print_as_those_of_jax(jax_oracle, body):
    words = np.zeros(2, np.uint32)
    for name in ("split", "fold_in", "clone", "bits", "key_data"):
        body = body.replace(f"{name}(", f"jax.random.{name}(")
    text = f"lambda w: (lambda k: {body})(jax.random.wrap_key_data(w))"
    assert str(jax.make_jaxpr(eval(text, {"jax": jax}))(words)) == jax_oracle.jaxpr(text, words)


@pytest.mark.parametrize(("key", "block", "want"), [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
])
def test_threefry_gives_the_published_vectors(key, block, want):
    words = [np.uint32(w) for w in (*key, *block)]
    assert tuple(int(x) for x in threefry2x32(*words)) == want


PROGRAMS = {
    "seed": lambda w: random_unwrap(random_seed(w, THREEFRY)),
    "split": lambda w: random_unwrap(random_split(random_wrap(w, THREEFRY), (2, 3))),
    "bits8": lambda w: random_bits(random_wrap(w, THREEFRY), 8, (5,)),
    "bits16": lambda w: random_bits(random_wrap(w, THREEFRY), 16, (5,)),
    "bits32": lambda w: random_bits(random_wrap(w, THREEFRY), 32, (2, 3)),
    "bits64": lambda w: random_bits(random_wrap(w, THREEFRY), 64, (3,)),
    "fold": lambda w: random_unwrap(random_fold_in(random_wrap(w, THREEFRY), np.uint32(7))),
    "row": lambda w: random_unwrap(jax.lax.squeeze(jax.lax.slice(
        random_split(random_wrap(w, THREEFRY), (4,)), (1,), (2,)), (0,))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_numpy_and_xla_agree_alone_and_on_stacks(name):
    words = np.random.default_rng(1).integers(0, 2**32, (3, 2), dtype=np.uint32)
    closed = trace_flat(lambda w: [PROGRAMS[name](w)], [jax.typeof(words[0])])
    check_jaxpr(closed)
    rows = [evaluate(closed, w)[0] for w in words]
    for w, row in zip(words, rows):
        same_bytes(PROGRAMS[name](w), row)
    same_bytes(jax.vmap(PROGRAMS[name])(words), np.stack(rows))
    same_bytes(jax.jit(jax.vmap(PROGRAMS[name], in_axes=1))(words.T), np.stack(rows))


def test_typed_keys_are_arrays_that_print_and_index_as_in_jax(jax_oracle):
    keys = R.split(R.key(0), (2, 3))
    assert isinstance(keys, jax.Array)
    assert keys.shape == (2, 3)
    assert str(keys.dtype) == "key<fry>"
    assert jax.dtypes.issubdtype(keys.dtype, jax.dtypes.prng_key)
    for text in ("keys", "keys[0]", "keys[1, 2]", "keys[:, 1]", "keys[..., -1]", "keys[0][0]",
                 "keys[np.array([1, 0])]", "keys.reshape(6)", "keys.T",
                 "keys.reshape(3, -1)", "keys.ravel()", "keys.flatten()", "keys[:1].squeeze(0)",
                 "keys.transpose(1, 0)", "keys.copy()", "keys == keys", "keys != keys[0]",
                 "jnp.stack([keys, keys])", "jnp.concatenate([keys, keys])",
                 "jnp.where(True, keys, keys[::-1])", "jnp.expand_dims(keys, 0)"):
        want = jax_oracle.run(f"keys = jax.random.split(jax.random.key(0), (2, 3)); "
                              f"result = repr({text})").value
        assert repr(eval(text, {"keys": keys, "np": np, "jnp": jax.numpy})) == want
    assert [repr(k) for k in keys[0]] == [repr(keys[0, i]) for i in range(3)]
    assert len(keys) == 2


@pytest.mark.parametrize("act", [bool, hash, len, iter, np.asarray, float])
def test_a_key_refuses_to_be_a_number(act):
    with pytest.raises(TypeError):
        act(R.key(0))


def test_keys_flow_through_jit_vmap_and_grad():
    key = R.key(7)
    same_bytes(jax.jit(lambda k: R.normal(k, (3,)))(key), R.normal(key, (3,)))
    same_bytes(jax.jit(lambda: R.normal(key, (3,)))(), R.normal(key, (3,)))
    keys = R.split(key, 4)
    each = np.stack([np.asarray(R.normal(k, (3,))) for k in keys])
    same_bytes(jax.vmap(lambda k: R.normal(k, (3,)))(keys), each)
    made = jax.jit(lambda k: R.split(k))(key)
    assert type(made) is PRNGKeyArray
    same_bytes(R.key_data(made), R.key_data(R.split(key)))
    slope = jax.grad(lambda x, k: (x * R.normal(k, (3,))).sum())(2.0, key)
    np.testing.assert_allclose(slope, np.asarray(R.normal(key, (3,))).sum(), rtol=1e-6)
    stacked = jax.vmap(R.fold_in, in_axes=(None, 0))(key, np.arange(3))
    same_bytes(R.key_data(stacked[2]), R.key_data(R.fold_in(key, 2)))
    same_bytes(R.key_data(jax.vmap(R.key)(np.arange(3))[2]), R.key_data(R.key(2)))


def test_a_key_is_made_once_however_many_draw_from_it():
    def scrambles(draws):
        def total(key):
            found = 0.0
            for size in range(100, 100 + draws):
                key, own = R.split(key)
                found += R.uniform(R.fold_in(own, size), (size,)).sum()
            return found
        return jax.jit(total).lower(R.key(0)).compile().as_text().count(" xor(")

    assert scrambles(6) < 2.2 * scrambles(3)


def test_bounds_have_derivatives():
    key = R.key(0)

    def total(low, high):
        return R.uniform(key, (5,), minval=low, maxval=high).sum()

    unit = np.asarray(R.uniform(key, (5,)), np.float64)
    by_low, by_high = jax.grad(total, (0, 1))(1.0, 3.0)
    np.testing.assert_allclose(by_high, unit.sum(), rtol=1e-5)
    np.testing.assert_allclose(by_low, (1 - unit).sum(), rtol=1e-5)


def test_listeners_hear_of_every_key_with_its_family():
    heard = []

    def listen(event):
        if isinstance(event, KeyEvent):
            heard.append((event.action, event.key, event.parent))

    unsubscribe = bus.subscribe(listen)
    try:
        key = R.key(0)
        R.split(key)
        R.fold_in(key, 3)
        R.normal(key, (2,))
    finally:
        unsubscribe()
    root = "0" * 16
    assert heard == [
        ("created", root, None),
        ("split", "6b20015999ba4efe", root), ("split", "375f238fcddb151d", root),
        ("folded", heard[3][1], root), ("used", root, None), ("reused", root, None)]
    assert heard[3][1] == "".join(f"{int(w):08x}" for w in np.asarray(
        R.key_data(R.fold_in(key, 3))))
