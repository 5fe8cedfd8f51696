"""Does the StableHLO text depend on the program alone, and are hostile names harmless in it?"""

from __future__ import annotations

import re

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.compile.executables import content_key
from saem.compile.lowering import lower
from saem.core.events import Compile, bus

X = np.asarray([1.0, 2.0, 3.0], np.float32)


def lowered(fun, *args, **options):
    return lower(jax.make_jaxpr(fun)(*args), **options)


def key(fun, *args):
    return content_key(lowered(fun, *args).text, jax.devices()[:1], {})


def compiled_by(call):
    """The Compile events of ``call()``."""
    seen = []
    end = bus.subscribe(seen.append)
    try:
        call()
    finally:
        end()
    return [e for e in seen if isinstance(e, Compile)]


def test_names_and_places_do_not_change_the_key():
    def one(x):
        return lax.sin(lax.mul(x, x))

    def another_name(argument):
        squared = lax.mul(argument, argument)

        return lax.sin(
            squared)

    assert key(one, X) == key(another_name, X)
    assert lowered(one, X, name="a").text == lowered(one, X, name="b").text
    assert lowered(one, X).located_text() != lowered(another_name, X).located_text()


@pytest.mark.parametrize("other", [
    lambda x: lax.cos(lax.mul(x, x)), lambda x: lax.sin(lax.mul(x, 2.0)),
    lambda x: (lax.sin(lax.mul(x, x)), x)])
def test_another_program_has_another_key(other):
    assert key(lambda x: lax.sin(lax.mul(x, x)), X) != key(other, X)


def test_types_devices_and_options_are_in_the_key():
    f = lambda x: lax.mul(x, x)
    assert key(f, X) != key(f, X[:2]) and key(f, X) != key(f, X.astype(np.float16))
    text, device = lowered(f, X).text, jax.devices()[0]
    assert content_key(text, [device], {}) != content_key(text, [device], {"xla_x": True})


def test_the_numbers_of_array_constants_are_not_in_the_text():
    with_table = lambda table: lambda x: lax.add(lax.mul(x, table), table)
    a, b = lowered(with_table(X), X), lowered(with_table(X + 1), X)
    assert a.text == b.text and len(a.consts) == len(b.consts) == 1
    first, second = jax.jit(with_table(X)), jax.jit(with_table(X + 1))
    np.testing.assert_array_equal(first(X), X * X + X)
    events = compiled_by(lambda: np.testing.assert_array_equal(second(X), X * (X + 1) + X + 1))
    assert [e.found for e in events] == [True]


def test_a_repeated_inner_program_is_written_once_and_called():
    inner = jax.jit(lambda y: lax.mul(lax.sin(y), y))
    text = lowered(lambda x: inner(inner(inner(x))), X).text
    assert len(re.findall(r"func\.func private @", text)) == 1
    assert len(re.findall(r"= call @", text)) == 3
    assert text.count("stablehlo.sine") == 1
    np.testing.assert_allclose(jax.jit(lambda x: inner(inner(x)))(X), inner(inner(X)), rtol=1e-6)


def test_private_functions_of_one_name_stay_apart():
    def f(x):
        g = jax.jit(lambda y: lax.sin(y))
        h = jax.jit(lambda y: lax.cos(y))
        return lax.add(g(x), h(x))

    names = re.findall(r"func\.func private @(\w+)", lowered(f, X).text)
    assert len(names) == len(set(names)) == 2
    np.testing.assert_allclose(jax.jit(f)(X), np.sin(X) + np.cos(X), rtol=1e-6)


def test_inner_constants_reach_the_inner_function():
    table = np.asarray([3.0, 1.0, 2.0], np.float32)
    inner = jax.jit(lambda y: lax.mul(y, table))
    np.testing.assert_array_equal(jax.jit(lambda x: inner(inner(x)))(X), X * table * table)


def test_unused_arguments_and_dead_code_are_left_out():
    program = lowered(lambda x, y: (lax.exp(y), lax.sin(x))[1], X, X)
    assert program.kept == (True, False) and "exponential" not in program.text
    assert lowered(lambda x, y: x, X, X, keep_unused=True).kept == (True, True)
    np.testing.assert_allclose(jax.jit(lambda x, y: lax.sin(x))(X, X), np.sin(X), rtol=1e-6)


HOSTILE = ['quote".py', "back\\slash.py", "new\nline.py", "tab\t.py", 'x") : () loc("y.py',
           "한글 <cell 3>.py", "nul\x01.py", "<script>alert(1)</script>", "emoji🌊.py",
           "no utf-8 \udce9.py", ""]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_names_are_escaped_in_locations(name):
    names = {"lax": lax}
    exec(compile("def f(x):\n    return lax.sin(lax.mul(x, x))\n", name, "exec"), names)
    np.testing.assert_allclose(jax.jit(names["f"])(X), np.sin(X * X), rtol=1e-6)
    program = lowered(names["f"], X)
    located = program.located_text().split("\n")
    assert len(located) == len(program.text.split("\n"))
    written = [line.split('/sin"("')[1].split('":2:')[0] for line in located if '/sin"' in line]
    unescaped = re.sub(r"\\([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), written[0])
    assert unescaped == name.encode("utf-8", "backslashreplace").decode()
    assert not set(written[0]) & set('"\n\t')


def test_equal_functions_of_two_files_keep_their_own_places():
    places = []
    for file in ("cell 3", "cell 4"):
        names = {"lax": lax}
        exec(compile("def f(x):\n    return lax.sin(x)\n", file, "exec"), names)
        places.append(jax.make_jaxpr(names["f"])(X).eqns[0].position().file)
    assert places == ["cell 3", "cell 4"]


@pytest.mark.parametrize("name", ["<lambda>", 'a"b', "함수", "a b\n", "", "main", "0"])
def test_hostile_function_names_are_legal_symbols(name):
    def f(x):
        return lax.neg(x)

    f.__name__ = name
    inner = jax.jit(f)
    np.testing.assert_array_equal(jax.jit(lambda x: inner(inner(x)))(X), X)
    np.testing.assert_array_equal(inner(X), -X)


def test_places_in_user_code_are_in_the_located_text():
    def f(x):
        return lax.sin(x)

    line = f.__code__.co_firstlineno + 1
    text = jax.jit(f).lower(X).as_text(debug_info=True)
    (place,) = re.findall(rf'(#loc\d*) = loc\(".*test_lowering\.py":{line}:\d+\)', text)
    assert f'loc("jit(f)/sin"({place}))' in text


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4028235e38, 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_constants_keep_every_bit(value, dtype):
    with np.errstate(over="ignore"):
        scalar = np.asarray(value, dtype)[()]
    out = np.asarray(jax.jit(lambda x: lax.select(True, scalar, x))(dtype(1)))
    assert out.tobytes() == scalar.tobytes()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32",
                                   "float16", "float32", "complex64"])
def test_array_constants_of_inner_functions_keep_every_bit(dtype):
    table = np.asarray([0, 1, 1, 0, 1, 0, 0, 1, 1, 1]) * (1 if dtype == "bool" else 7)
    table = table.astype(dtype)
    inner = jax.jit(lambda: lax.rev(table, (0,)))
    np.testing.assert_array_equal(jax.jit(lambda: inner())(), table[::-1])


def test_cells_run_again_find_their_program():
    source = "def f(x):\n    return lax.tanh(lax.mul(x, 1.2345))\n"

    def run(comment):
        names = {"lax": lax}
        exec(compile(comment + source, "<cell>", "exec"), names)
        jax.jit(names["f"])(X)

    assert [e.found for e in compiled_by(lambda: run(""))] == [False]
    assert [e.found for e in compiled_by(lambda: run("# edited\n"))] == [True]


def test_places_inside_loops_reach_the_text_but_not_the_key():
    def looped(x):
        return lax.scan(lambda c, v: (lax.sin(c) * v, c), x, np.arange(3, dtype=np.float32))[0]

    made = jax.jit(looped).lower(np.float32(1))
    located = made.as_text(debug_info=True)
    (place,) = re.findall(r'loc\("jit\(looped\)/while/body/sin"\((#loc\d*)\)', located)
    assert re.search(rf'{place} = loc\(".*test_lowering\.py":\d+:\d+\)', located)
    assert "loc(" not in made.as_text() and "\1" not in made.as_text()
    assert any("sine" in row and "op_name" in row
               for row in made.compile().as_text().splitlines())


def stencil(key):
    """Return numbers that each read their neighbours: the random ones are read four times."""
    x = jax.random.uniform(key, (16, 16))
    return sum(jnp.roll(x, n, axis) for n in (1, -1) for axis in (0, 1))


def test_random_numbers_are_computed_once_for_all_that_read_them():
    key = jax.random.key(0)
    compiled = jax.jit(stencil).lower(key).compile()
    assert compiled.as_text().count("random_bits") and len(
        re.findall(r" call\(.*to_apply=%?random_bits", compiled.as_text())) == 1
    with jax.disable_jit():
        np.testing.assert_array_equal(compiled(key), stencil(key))
    two = jax.jit(lambda a, b: (jax.random.bits(a), jax.random.bits(b)))
    text = two.lower(key, key).as_text()
    assert text.count("call @random_bits(") == 2 and text.count("func.func private") == 1


def test_on_gpus_and_where_work_is_divided_random_numbers_are_written_in_place():
    key = jax.random.key(0)
    lowering = jax.jit(stencil).trace(key).lower(lowering_platforms=("cuda",))
    assert "call @" not in lowering.as_text()
    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices()[:2])
    whole = jax.NamedSharding(mesh, jax.P())
    assert "call @" not in jax.jit(stencil).lower(jax.device_put(key, whole)).as_text()


def test_in_shard_map_each_device_computes_random_numbers_once():
    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices()[:2],
                         axis_types=(jax.sharding.AxisType.Auto,))
    keys = jax.random.split(jax.random.key(0), 2)
    over = jax.jit(jax.shard_map(lambda keys: stencil(keys[0])[None], mesh=mesh,
                                 in_specs=jax.P("x"), out_specs=jax.P("x")))
    compiled = over.lower(keys).compile().as_text()
    assert len(re.findall(r" call\(.*to_apply=%?random_bits", compiled)) == 1
    np.testing.assert_array_equal(over(keys), jax.vmap(stencil)(keys))
    # Of two axes one is left to the partitioner.
    mesh = jax.make_mesh((2, 2), ("x", "y"), devices=jax.devices()[:4],
                         axis_types=(jax.sharding.AxisType.Auto,) * 2)
    over = jax.jit(jax.shard_map(lambda keys: stencil(keys[0])[None], mesh=mesh, axis_names={"x"},
                                 in_specs=jax.P("x"), out_specs=jax.P("x")))
    assert "call @random_bits" not in over.lower(keys).as_text()
    np.testing.assert_array_equal(over(keys), jax.vmap(stencil)(keys))


def count_of(verb, fun, *args):
    return len(re.findall(rf"stablehlo\.{verb}\b", lowered(fun, *args).text))


def in_a_loop(fun):
    return lambda x: lax.map(lambda _: fun(x), jnp.arange(3))


def test_in_a_loop_the_same_operation_on_the_same_values_is_written_once():
    twice = [("sine", lambda x: (jnp.sin(x), jnp.sin(x) + 1)),
             ("concatenate", lambda x: jnp.stack([x, x]) @ jnp.stack([x, x]).T)]
    for verb, fun in twice:
        assert count_of(verb, in_a_loop(fun), X) == 1
        assert count_of(verb, fun, X) == 2
    others = [("sine", lambda x: (jnp.sin(x), jnp.sin(x + 1))),
              ("convert", lambda x: (x.astype("int8"), x.astype("int16"))),
              # What a region made is not seen outside of it, nor in the next one.
              ("sine", lambda x: lax.cond(x[0] > 0, jnp.sin, lambda x: -jnp.sin(x), x))]
    for verb, fun in others:
        assert count_of(verb, in_a_loop(fun), X) == 2


def test_keys_and_the_numbers_that_hold_them_stay_apart():
    def both(key):
        data = jax.random.key_data(key)
        return key.reshape(1), data.reshape(1, 2), jax.random.key_data(key.reshape(1))

    out = [x[0] for x in lax.map(lambda _: both(jax.random.key(3)), jnp.arange(2))]
    assert jnp.issubdtype(out[0].dtype, jax.dtypes.prng_key) and out[1].dtype == np.uint32
    np.testing.assert_array_equal(out[1], out[2])


def test_what_has_an_effect_or_is_not_to_be_merged_is_written_each_time():
    def report(x):
        return jax.pure_callback(np.sin, x, x) + jax.pure_callback(np.sin, x, x)

    assert count_of("custom_call", in_a_loop(report), X) == 2
    rate = lambda: lax.rng_uniform(0.0, 1.0, (3,))
    assert count_of("rng", in_a_loop(lambda _: (rate(), rate())), X) == 2
    again = jax.value_and_grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum()))
    assert count_of("sine", in_a_loop(again), X) == 2 + 1  # the inner one again, for the derivative
    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices()[:2])
    here = jax.device_put(np.arange(4.0, dtype=np.float32), jax.NamedSharding(mesh, jax.P("x")))
    text = jax.jit(in_a_loop(lambda x: (jnp.sin(x), jnp.sin(x) + 1))).lower(here).as_text()
    assert text.count("stablehlo.sine") == 2


def test_a_loop_computes_once_what_several_parts_of_its_body_ask_for():
    """XLA moves ``stack`` out of the loop: were there two, it would no longer see one product."""
    def train(w, x):
        def step(w, _):
            def net(w):
                return jnp.tanh(jnp.stack([x, x + 1], 1) @ w)
            value, slope = jax.jvp(net, (w,), (w,))
            return w - slope.mean() * (value * net(w)).mean(), None
        return lax.scan(step, w, length=3)[0]

    compiled = jax.jit(train).lower(np.ones((2, 5), np.float32), X).compile()
    assert len(re.findall(r"\btanh\(", compiled.as_text())) == 1
