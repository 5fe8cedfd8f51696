"""Does machine code, written and read, do what it did, and refuse what it refused?

Read before: ``export.executable_file``.
Invariant: expected answers are JAX's or those of the compiled program itself.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem.experimental import serialize_executable
from saem.export import executable_file

X = np.asarray([0.5, 1.5, -2.0], np.float32)
SETUP = """
try:
    import jax.experimental.serialize_executable
except ImportError:  # Saem, which finds it by name
    pass
jnp = jax.numpy
se = jax.experimental.serialize_executable
K = jnp.asarray(X) * 3
c = jax.jit(lambda x, *, y: {'a': x * y + K, 'b': y}).lower(X, y=2.).compile()
d = se.deserialize_and_load(*se.serialize(c), execution_devices=jax.devices()[:1])
x = jnp.asarray(X)
result = """


@pytest.mark.parametrize("expression", [
    "d(x, y=3.)", "d(X, y=jnp.float32(2))", "[d(x, y=float(n))['a'] for n in range(3)]"])
def test_a_loaded_program_answers_as_in_jax(jax_oracle, expression):
    same(jax_oracle, SETUP + expression, X=X)


@pytest.mark.parametrize(("expression", "sentence"), [
    ("d(jnp.ones(4), y=3.)", "Argument 'x' compiled with float32[3] and called with float32[4]"),
    ("d(x)", "Function compiled with input pytree does not match the input pytree"),
    ("jax.vmap(lambda x: d(x, y=1.))(jnp.ones((2, 3)))", "Cannot apply JAX transformations to a "
     "function lowered and compiled for a particular signature."),
])
def test_a_loaded_program_refuses_as_in_jax(jax_oracle, expression, sentence):
    same_error(jax_oracle, SETUP + expression, sentence, X=X)


def loaded(fun, *args, **options):
    compiled = jax.jit(fun, **options).lower(*args).compile()
    return compiled, serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(compiled))


def test_it_tells_what_the_compiled_one_tells():
    one, two = loaded(lambda p, k, n: (p["w"] * n, jax.random.split(k)), {"w": X},
                      jax.random.key(0), 3, donate_argnums=0)
    for name in ("in_tree", "out_tree", "in_avals", "args_info", "donate_argnums", "out_info",
                 "input_shardings", "output_shardings", "input_formats", "output_formats"):
        assert getattr(one, name) == getattr(two, name), name
    assert two.as_text().split(",")[0] == one.as_text().split(",")[0]
    key = jax.random.key(7)
    for a, b in zip(one({"w": X}, key, 2), two({"w": X}, key, 2)):
        assert a.dtype == b.dtype
        if a.dtype == key.dtype:
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b)


def test_donation_and_unused_arguments_survive():
    _, two = loaded(lambda x, unused: x + 1, X, X, donate_argnums=0)
    x = jnp.asarray(X)
    np.testing.assert_array_equal(two(x, X), X + 1)
    assert x.is_deleted()


SPREAD = """
try:
    import jax.experimental.serialize_executable
except ImportError:  # Saem, which finds it by name
    pass
jnp, P, NS = jax.numpy, jax.sharding.PartitionSpec, jax.sharding.NamedSharding
se = jax.experimental.serialize_executable
kind = getattr(jax.sharding.AxisType, KIND)
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))
put = lambda value, *spec: jax.device_put(value, NS(mesh, P(*spec)))
def again(compiled):
    return se.deserialize_and_load(*se.serialize(compiled), execution_devices=jax.devices()[:8])
def seen(tree):
    return jax.tree.map(lambda x: (str(x.sharding.spec), x.committed, x, str(jax.typeof(x))), tree)
X = np.arange(16, dtype="f").reshape(8, 2)
with jax.set_mesh(mesh):
    x = put(X, "x", "y")
    K = put(X + 1, "y", None)
    d = again(jax.jit(lambda x, unused, *, y: {"a": jnp.sin(x) * y, "b": x.sum()}).lower(
        x, x, y=2.).compile())
    result = """


@pytest.mark.parametrize("expression", [
    "seen(d(x, x, y=3.))", "seen(d(X, X, y=jnp.float32(2)))", "d(put(X, 'y'), x, y=2.)",
    "d(put(X[:4], 'x'), x, y=2.)", "[[str(s.spec) for s in jax.tree.leaves(p)] for p in "
    "(d.input_shardings, d.output_shardings)]",
    "seen(again(jax.jit(lambda x: x + 1, in_shardings=NS(mesh, P('x')), out_shardings=NS(mesh, "
    "P(None, 'y'))).lower(X).compile())(X))",
    "seen(again(jax.jit(lambda k: jax.random.key_data(k)).lower(put(jax.random.split("
    "jax.random.key(0), 8), 'x')).compile())(put(jax.random.split(jax.random.key(1), 8), 'x')))",
    "seen(again(jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, 'x'), in_specs=P('x', 'y'), "
    "out_specs=P(None, 'y'))).lower(x).compile())(x))",
    "(lambda y: [seen(again(jax.jit(lambda y: y + 1, donate_argnums=0).lower(y).compile())(y)), "
    "y.is_deleted()])(x + 1)",
    "seen(again(jax.jit(lambda x: jax.reshard(x, P('y', None)) + K).lower(x).compile())(x))"
    " if KIND == 'Explicit' else None",
])
@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_a_loaded_program_of_several_devices_answers_as_in_jax(jax_oracle, kind, expression):
    source = SPREAD.replace("KIND", repr(kind)) + expression.replace("KIND", repr(kind))
    if expression.startswith("d(put"):
        same_error(jax_oracle, source, "that disagree with the shardings of arguments"
                   if "'y'" in expression else "Argument types differ from the types")
    else:
        same(jax_oracle, source)


def test_a_program_of_several_devices_is_loaded_on_others_and_refused_on_fewer():
    mesh = jax.make_mesh((4,), ("x",))
    x = jax.device_put(np.arange(8.), jax.NamedSharding(mesh, jax.P("x")))
    kept = serialize_executable.serialize(jax.jit(lambda x: x * 2).lower(x).compile())
    others = jax.devices()[4:8]
    there = jax.NamedSharding(jax.sharding.Mesh(np.array(others), ("x",)), jax.P("x"))
    out = serialize_executable.deserialize_and_load(*kept, execution_devices=others)(
        jax.device_put(np.arange(8.), there))
    np.testing.assert_array_equal(out, np.arange(8.) * 2)
    assert [s.device for s in out.addressable_shards] == others
    with pytest.raises(ValueError, match="was compiled for 4 devices, but got 3"):
        serialize_executable.deserialize_and_load(*kept, execution_devices=others[:3])


def in_another_process(program, *arguments, **environment):
    """Return what ``program`` prints in a new process that finds Saem where this one does."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                   **environment}
    done = subprocess.run([sys.executable, "-c", program, *map(str, arguments)], text=True,
                          env=environment, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_another_process_loads_it(tmp_path):
    compiled = jax.jit(lambda x: {"sum": jnp.sum(jnp.exp(x))}).lower(X).compile()
    code, *_ = serialize_executable.serialize(compiled)
    (tmp_path / "code").write_bytes(code)
    program = """
import sys, numpy as np
import saem as jax
from saem.experimental import serialize_executable
from saem.compile import executables as compiler
def refuse(*_): raise AssertionError("compiled")
compiler._compile = refuse
x = np.asarray([0.5, 1.5, -2.0], np.float32)
trees = jax.tree.structure(((x,), {})), jax.tree.structure({"sum": x})
f = serialize_executable.deserialize_and_load(open(sys.argv[1], "rb").read(), *trees)
print(f(x)["sum"].item())
"""
    found = float(in_another_process(program, tmp_path / "code"))
    assert found == pytest.approx(float(np.exp(X).sum()), rel=1e-6)


def test_another_process_loads_what_calls_lapack(tmp_path):
    matrix = np.asarray([[4, 2], [2, 5]], np.float32)
    compiled = jax.jit(jnp.linalg.cholesky).lower(matrix).compile()
    code, *_ = serialize_executable.serialize(compiled)
    (tmp_path / "code").write_bytes(code)
    program = """
import sys, numpy as np
import saem as jax
from saem.experimental import serialize_executable
x = np.asarray([[4, 2], [2, 5]], np.float32)
trees = jax.tree.structure(((x,), {})), jax.tree.structure(x)
f = serialize_executable.deserialize_and_load(open(sys.argv[1], "rb").read(), *trees)
again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(f))
print(*np.asarray(f(x)).ravel(), *np.asarray(again(x)).ravel())
"""
    found = [float(word) for word in in_another_process(program, tmp_path / "code").split()]
    np.testing.assert_allclose(found, [*np.linalg.cholesky(matrix).ravel()] * 2, rtol=1e-6)


def test_what_was_found_on_disk_is_written_whole(tmp_path):
    program = """
import pickle, sys
import saem as jax, saem.numpy as jnp
from saem.compile import executables as compiler
from saem.experimental import serialize_executable
compiled = jax.jit(lambda x: jnp.cumsum(jnp.exp(x)) * 3).lower(jnp.ones(3)).compile()
with open(sys.argv[1], "wb") as file:
    pickle.dump(serialize_executable.serialize(compiled), file)
print(len(compiler._read) > 0)
"""
    environment = {"SAEM_ENABLE_COMPILATION_CACHE": "1", "SAEM_CACHE_DIR": str(tmp_path / "cache")}
    for found in ("False", "True"):
        file = tmp_path / found
        assert in_another_process(program, file, **environment).strip() == found
        loaded = serialize_executable.deserialize_and_load(*pickle.loads(file.read_bytes()))
        np.testing.assert_allclose(loaded(X), np.cumsum(np.exp(X)) * 3, rtol=1e-6)


@pytest.mark.parametrize("fun", [
    jnp.sort, lambda x: jnp.cumsum(x) * x, lambda x: x.at[jnp.array([0, 2])].add(1.),
    lambda x: jax.lax.while_loop(lambda x: x[0] < 9, lambda x: x + 1, x), jnp.linalg.norm])
def test_what_has_run_or_was_loaded_is_written_again(fun):
    compiled = jax.jit(fun).lower(X).compile()
    expected = compiled(X)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(X), expected)
        compiled = serialize_executable.deserialize_and_load(
            *serialize_executable.serialize(compiled))


def test_what_cannot_be_written_is_said():
    calls = jax.jit(lambda x: jax.pure_callback(np.sin, x, x)).lower(X).compile()
    with pytest.raises(ValueError, match="calls Python"):
        serialize_executable.serialize(calls)


@pytest.mark.parametrize(("change", "sentence"), [
    (lambda b: b[:-1], "the executable is damaged"),
    (lambda b: b[:200] + bytes([b[200] ^ 1]) + b[201:], "the executable is damaged"),
    (lambda b: b"", "these 0 bytes are no executable of saem"),
    (lambda b: pickle.dumps([1, 2]), "bytes are no executable of saem"),
    (lambda b: b.replace(b"executable 2", b"executable 9", 1), "of format '9'.*reads format 2"),
])
def test_other_bytes_are_refused(change, sentence):
    code, *trees = serialize_executable.serialize(jax.jit(lambda x: x - 1).lower(X).compile())
    with pytest.raises(ValueError, match=sentence):
        serialize_executable.deserialize_and_load(change(code), *trees)


def test_another_jaxlib_is_refused(monkeypatch):
    code, *trees = serialize_executable.serialize(jax.jit(lambda x: x - 1).lower(X).compile())
    monkeypatch.setattr(executable_file._jaxlib, "__version__", "0.99")
    with pytest.raises(ValueError, match=r"was compiled for jaxlib 0.*, but here is 0.99"):
        serialize_executable.deserialize_and_load(code, *trees)
