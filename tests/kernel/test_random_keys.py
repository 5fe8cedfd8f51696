"""Are keys of every generator those of JAX, and are key arrays arrays like any other?

Every expression is asked of Saem and of real JAX; answers must have the same bytes, or print alike.

Read before: ``test_random.py`` (Threefry and the samplers).
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from both import ours, same_error, source_of
from test_random import same_bytes

import saem as jax
from saem import lax
from saem.core.infer import check_jaxpr
from saem.core.jaxpr import evaluate
from saem.generators.counter_based import GENERATORS
from saem.generators.rng_bit_generator import RandomAlgorithm, rng_bit_generator
from saem.ops.random_bits import random_bits, random_fold_in, random_seed, random_split, random_wrap
from saem.transform.staging import trace_flat

R = jax.random
OTHERS = ("rbg", "unsafe_rbg", "threefry4x32", "philox2x32", "philox4x32")

BY_GENERATOR = [
    *(f"R.key_data(R.key({seed}, impl=I))" for seed in ("0", "-1", "2**32-1", "np.uint8(200)")),
    "R.key_data(R.split(k, 5))", "R.key_data(R.split(k, (2, 3)))", "R.key_data(R.split(k, 0))",
    "R.key_data(R.fold_in(k, 7))", "R.key_data(R.fold_in(k, 2**32-1))", "R.key_impl(k)",
    "R.bits(k, (), 'uint8')", "R.bits(k, (2, 3), 'uint16')", "R.bits(k, (1001,), 'uint32')",
    "R.bits(k, (0,), 'uint32')", "R.normal(k, (40,))", "R.randint(k, (5,), 0, 10)",
    "R.permutation(k, 10)",
    "R.PRNGKey(7, impl=I)", "R.key_data(R.wrap_key_data(R.key_data(k), impl=I))",
    "jax.vmap(lambda k: R.bits(k, (3,)))(R.split(k, 4))",
    "jax.vmap(jax.vmap(lambda k: R.bits(k, (3,))))(R.split(k, (2, 3)))",
    "jax.vmap(lambda k: R.key_data(R.split(k, 3)))(R.split(k, 4))",
    "jax.vmap(lambda k: R.key_data(R.split(k, (3, 2))))(R.split(k, 4))",
    "R.key_data(jax.vmap(R.fold_in)(R.split(k, 4), np.arange(4)))",
    "R.key_data(jax.vmap(R.fold_in, (None, 0))(k, np.arange(4)))",
    "R.key_data(jax.vmap(R.fold_in, (0, None))(R.split(k, 4), 3))",
    "R.key_data(jax.jit(lambda s: R.key(s, impl=I))(11))",
    "jax.jit(lambda k: R.normal(R.split(k, 3)[1], (4,)))(k)",
    "[R.normal(R.PRNGKey(1)), R.key_data(R.key(3)), R.split(R.PRNGKey(2)),"
    " R.key_impl(R.PRNGKey(0)), R.uniform(R.fold_in(R.PRNGKey(2), 3), (2,))]",
]


def under_generator(impl, f):
    """Return what ``f`` gives of a key, with ``impl`` as the default generator."""
    with jax.default_prng_impl(impl):
        return f(R.key(42), impl)


def in_setting(expression: str, impl: str) -> str:
    """Return the program that evaluates ``expression``, of a key k and its generator's name I."""
    return f"under_generator({impl!r}, lambda k, I: {expression})"


@pytest.mark.parametrize("impl", OTHERS)
def test_other_generators_are_those_of_jax(jax_oracle, impl):
    text = in_setting(f"[{', '.join(BY_GENERATOR)}]", impl)
    wanted = jax_oracle.run(source_of(text, __name__)).value
    for asked, got, want in zip(BY_GENERATOR, ours(text, __name__), wanted):
        for g, w in zip(got, want) if isinstance(want, list) else [(got, want)]:
            try:
                same_bytes(g, w)
            except AssertionError as error:
                raise AssertionError(f"{asked}: {error}") from None


@pytest.mark.parametrize("impl", OTHERS)
def test_other_generators_in_64_bits(jax_oracle, impl):
    text = in_setting("[R.bits(k, (5,)), R.normal(k, (5,)), R.key_data(R.key(2**40 + 5))]", impl)
    want = jax_oracle.run(source_of(text, __name__), x64=True).value
    with jax.enable_x64(True):
        for g, w in zip(ours(text, __name__), want):
            same_bytes(g, w)


SHAPES = {"RNG_DEFAULT": ("()", "(5,)", "(2, 3)", "(2, 0)", "(1000,)"),
          "RNG_THREE_FRY": ("()", "(1,)", "(6,)", "(2, 3)", "(3, 5)", "(5, 3, 3)", "(3, 4, 6)"),
          "RNG_PHILOX": ("(7,)",)}


@pytest.mark.parametrize(("algorithm", "dtype"), [
    ("RNG_DEFAULT", "uint32"), ("RNG_DEFAULT", "uint8"), ("RNG_THREE_FRY", "uint32"),
    ("RNG_THREE_FRY", "uint16"), ("RNG_PHILOX", "uint32")])
def test_bits_of_xla_are_those_of_jax_and_of_numpy(jax_oracle, algorithm, dtype):
    calls = ", ".join(f"lax.rng_bit_generator(s, {shape}, '{dtype}', lax.RandomAlgorithm."
                      f"{algorithm})" for shape in SHAPES[algorithm])
    text = f"[z for s in states for pair in [{calls}] for z in pair]"
    states = np.random.default_rng(5).integers(0, 2**32, (2, 4), dtype=np.uint32)
    states[1, 2:] = 0xFFFFFFFE, 0xFFFFFFFF  # the counter carries
    want = jax_oracle.run(text, states=states).value
    got = ours(text, states=states)
    for g, w in zip(got, want):
        same_bytes(g, w)
    number = getattr(RandomAlgorithm, algorithm)
    closed = trace_flat(
        lambda s: [*rng_bit_generator(s, (3, 4), dtype, number)], [jax.typeof(states[0])])
    for mine, xla in zip(evaluate(closed, states[1]), jax.jit(
            lambda s: rng_bit_generator(s, (3, 4), dtype, number))(states[1])):
        same_bytes(xla, mine)


def test_a_stack_of_states_is_run_by_the_first(jax_oracle):
    text = "jax.vmap(lambda s: lax.rng_bit_generator(s, (5,)))(np.arange(8, dtype='uint32')" \
        ".reshape(2, 4))"
    for got, want in zip(ours(text), jax_oracle.run(text).value):
        same_bytes(got, want)
    with jax.enable_x64(True):
        text = "lax.rng_bit_generator(np.arange(2, dtype='uint64'), (3,), 'uint64')"
        for got, want in zip(ours(text), jax_oracle.run(text, x64=True).value):
            same_bytes(got, want)


def test_rng_programs_print_as_those_of_jax(jax_oracle):
    state = np.arange(4, dtype=np.uint32)
    for text, args in (("lambda k: jax.lax.rng_bit_generator(k, (5,))", (state,)),
                       ("lambda a, b: jax.lax.rng_uniform(a, b, (5,))", (0.0, 1.0))):
        mine = str(jax.make_jaxpr(eval(text, {"jax": jax}))(*args))
        assert mine == jax_oracle.jaxpr(text, *args)


def test_rng_uniform_draws_other_numbers_within_bounds_each_time():
    one, two = (np.asarray(jax.lax.rng_uniform(2.0, 3.0, (1000,))) for _ in range(2))
    assert not np.array_equal(one, two)
    for x in (one, two):
        assert 2 <= x.min() < 2.1 and 2.9 < x.max() < 3
    whole = np.asarray(jax.lax.rng_uniform(0, 10, (1000,)))
    assert set(whole.tolist()) == set(range(10))


@pytest.mark.parametrize(("source", "sentence"), [
    ("lax.rng_uniform(np.float32(0), np.float16(1), (5,))",
     "Arguments to rng_uniform must have identical dtypes, got float32 and float16."),
    ("lax.rng_uniform(np.zeros(3), 1., (3,))",
     "Arguments to rng_uniform must be scalars; got shapes (3,) and ()."),
    ("lax.rng_bit_generator(np.arange(4, dtype='uint32'), (3,), 'int32')",
     "rng_bit_generator: unsupported dtype int32"),
    ("jax.random.key(0, impl='rbg') == jax.random.key(0)",
     "equal does not accept dtypes key<rbg>, key<fry>."),
    ("jax.grad(lambda k: 1.0)(jax.random.key(0))",
     "grad requires real- or complex-valued inputs"),
    ("jax.random.key(0) == 1", "equal does not accept dtypes key<fry>, int32."),
    ("jax.random.wrap_key_data(np.zeros(2, 'uint32'), impl='rbg')",
     "expected key_data.shape to end with (4,); got shape=(2,)"),
    ("jax.random.normal(jax.random.PRNGKey(0, impl='rbg'))",
     "expected key_data.shape to end with (2,); got shape=(4,)"),
    ("with jax.legacy_prng_key('error'): jax.random.normal(jax.random.PRNGKey(0))",
     "Legacy uint32 key array passed as key to jax.random function."),
])
def test_refusals_are_those_of_jax(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence)


def programs(impl):
    """Yield (program on words, words) of every primitive on keys."""
    words = np.random.default_rng(2).integers(0, 2**32, (3, *impl.key_shape), dtype=np.uint32)
    yield lambda s: random_seed(s, impl), np.arange(3, dtype=np.int32)
    yield lambda w: random_split(random_wrap(w, impl), (2, 3)), words
    yield lambda w: random_fold_in(random_wrap(w, impl), np.uint32(7)), words
    for width in (8, 16, 32, 64):
        yield lambda w, n=width: random_bits(random_wrap(w, impl), n, (2, 3)), words


@pytest.mark.parametrize("impl", GENERATORS)
def test_numpy_and_xla_agree_on_keys_and_on_stacks_of_keys(impl):
    for program, words in programs(GENERATORS[impl]):
        for x in (words[0], words):
            def run(w, program=program):
                out = program(w)
                return jax.random.key_data(out) if jax.dtypes.issubdtype(
                    out.dtype, jax.dtypes.prng_key) else out

            closed = trace_flat(lambda w, run=run: [run(w)], [jax.typeof(x)])
            check_jaxpr(closed)
            want = evaluate(closed, x)[0]
            same_bytes(run(x), want)
            same_bytes(jax.jit(run)(x), want)


def keys_made(setting, value):
    """Return the words of keys that are made under a setting."""
    with setting(value):
        return [*[R.key_data(R.key(s)) for s in (0, -1, 2**40, np.uint8(255), True)], R.PRNGKey(1),
                R.key_data(jax.jit(lambda s: R.key(s))(3)), R.key_impl(R.PRNGKey(4))]


@pytest.mark.parametrize(("name", "value"), [
    ("random_seed_offset", 5), ("random_seed_offset", 0), ("default_prng_impl", "rbg"),
    ("default_prng_impl", "unsafe_rbg")])
def test_settings_that_make_keys(jax_oracle, name, value):
    # JAX has the first setting in a private module only.
    theirs = f"keys_made({'jax._src.config' if 'offset' in name else 'jax'}.{name}, {value!r})"
    mine = f"keys_made({'jax.core.config' if 'offset' in name else 'jax'}.{name}, {value!r})"
    wanted = jax_oracle.run(source_of(theirs, __name__)).value
    for got, want in zip(ours(mine, __name__), wanted, strict=True):
        same_bytes(got, want)


def test_typed_keys_from_prngkey_and_warnings_for_raw_ones():
    with jax.enable_custom_prng(True):
        assert str(R.PRNGKey(0).dtype) == "key<fry>"
    raw = R.PRNGKey(0)
    with jax.legacy_prng_key("warn"):
        with pytest.warns(UserWarning, match="Legacy uint32 key array") as found:
            R.normal(raw)
        assert found[0].filename == __file__
        R.normal(R.key(0))  # typed keys: no warning, which would be an error here


PRINTED = [
    "keys.swapaxes(0, 1)", "keys.take(0)", "keys.at[0].get()", "keys.at[0, 0].set(keys[1, 1])",
    "keys.addressable_data(0)", "keys.addressable_shards[0].data", "keys.global_shards[0].data",
    "keys.on_device_size_in_bytes()", "jax.device_get(keys)", "jax.device_put(keys)",
    "jax.jit(lambda k: k == k[::-1])(keys)", "jnp.equal(keys, keys)",
    "jnp.not_equal(keys, keys.T.T)",
    "jnp.array_equal(keys, keys)", "keys == keys[0, 0]", "keys[0, 0] in [keys[0, 0]]",
    "jnp.tile(keys[0], 2)", "jnp.roll(keys, 1, 0)", "jnp.broadcast_to(keys[0, 0], (2,))",
    "jnp.take(keys, np.array([0, 1]), axis=1)", "jnp.repeat(keys, 2, axis=0)",
    "lax.dynamic_slice(keys, (0, 1), (1, 2))", "lax.rev(keys, (1,))", "keys.is_fully_addressable",
    "jax.eval_shape(jax.random.key, 0)", "jax.typeof(keys)", "keys.nbytes", "keys.itemsize",
    "jax.ShapeDtypeStruct((3,), keys.dtype)", "jnp.vstack([keys, keys])", "jnp.unstack(keys)[1]",
    "jnp.zeros((2,), keys.dtype)", "jnp.ones_like(keys)", "jnp.empty_like(keys, shape=(2,))",
    "jnp.full((2,), keys[0, 1])", "jnp.full_like(keys, keys[0, 1])", "lax.full_like(keys, 0)",
    "jnp.full((2,), 3, keys.dtype)", "lax.full((2,), 1, keys.dtype)",
    "jax.jit(lambda k: jnp.zeros_like(k))(keys)", "jax.jit(lambda i: keys[i])(1)",
    "jax.make_jaxpr(lambda i: [keys[1], keys[0, 2], keys.reshape(3, 2)])(0)",
    "jax.vmap(lambda i: keys[1, i])(np.arange(3))",
    "jax.vmap(lambda k: k)(keys)", "jax.tree.map(lambda x: x.shape, {'a': keys})",
    "jnp.select([np.array([True, False, True])], [keys], keys[::-1])", "list(keys)[1]",
]


@pytest.mark.parametrize("impl", GENERATORS)
def test_arrays_of_keys_print_as_in_jax(jax_oracle, impl):
    keys = f"jax.random.split(jax.random.key(0, impl='{impl}'), (2, 3))"
    text = f"(lambda keys: [repr(x) for x in [{', '.join(PRINTED)}]])({keys})"
    want = jax_oracle.run(text).value
    for asked, got, expected in zip(PRINTED, ours(text), want, strict=True):
        assert got == expected, asked


def in_programs(impl):
    """Return keys and numbers that loops, branches and maps carry and make, outside and in jit."""
    def split(key, _):
        key, sub = R.split(key)
        return key, (key, R.bits(sub, (2,)))

    def programs(k, ks):
        last, (row, bits) = lax.scan(split, k, None, length=3)
        back, seen = lax.scan(lambda c, key: (key, R.bits(key)), ks[0], ks, reverse=True)
        picked = lax.cond(True, lambda a, b: a, lambda a, b: R.fold_in(b, 1), ks[1], ks[2])
        chosen = lax.switch(2, [lambda q: q, lambda q: R.clone(q), lambda q: R.split(q)[1]], ks[0])
        looped = lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, R.split(c[1])[0]), (0, k))[1]
        counted = lax.fori_loop(0, 3, lambda i, key: R.fold_in(key, i), k)
        mapped = lax.map(lambda key: R.bits(key, (2,)), ks)
        stacked = jax.vmap(lambda i, key: lax.cond(
            i > 0, lambda q: q, lambda q: R.fold_in(q, 2), key))(np.arange(3), ks)

        def total(x):
            return lax.scan(lambda c, key: (c + x * R.normal(key), None), 0.0, ks)[0]

        keys = [last, row, back, picked, chosen, looped, counted, stacked]
        return [R.key_data(q) for q in keys] + [bits, seen, mapped, jax.grad(total)(2.0)]

    k = R.key(5, impl=impl)
    ks = R.split(k, 3)
    return programs(k, ks) + list(jax.jit(programs)(k, ks))


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_pass_through_loops_and_branches_as_in_jax(jax_oracle, impl):
    wanted = jax_oracle.run(source_of(in_programs), impl=impl).value
    for got, want in zip(in_programs(impl), wanted, strict=True):
        if want.dtype == np.float32:  # a sum, in XLA's order
            np.testing.assert_allclose(got, want, rtol=1e-6)
        else:
            same_bytes(got, want)


@pytest.mark.parametrize("impl", GENERATORS)
def test_keys_are_pickled_and_copied(impl):
    keys = R.split(R.key(3, impl=impl), 4)
    for again in (pickle.loads(pickle.dumps(keys)), copy.copy(keys), copy.deepcopy(keys),
                  keys.copy()):
        assert type(again) is type(keys) and again.dtype == keys.dtype
        assert bool((again == keys).all())
        same_bytes(R.normal(again[1], (3,)), R.normal(keys[1], (3,)))
