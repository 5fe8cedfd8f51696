"""Does an exported program mean, here and in another process, what the function meant?

Read before: ``export.exported``, ``export.file_format``.
Invariant: expected answers are JAX's or those of the function that was exported.
"""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from both import ours, same, same_error, source_of

import saem as jax
import saem.numpy as jnp
from saem import export
from saem.core.infer import check_jaxpr
from saem.export import file_format
from saem.export.exported import CallExported, check_custom_calls

X = np.asarray([0.5, -1.0, 2.0], np.float32)


K = np.arange(3.0, dtype=np.float32)
x = jnp.asarray(X)


def f(x, *, y):
    return {"a": jnp.sin(x) * y + K, "b": (y, 1)}


e = export.export(jax.jit(f))(jnp.ones(3), y=2.0)


@pytest.mark.parametrize("expression", [
    "[e.fun_name, e.platforms, e.nr_devices, e.calling_convention_version, e.module_kept_var_idx]",
    "str(e.in_tree) + str(e.out_tree)",
    "repr(e.in_avals) + repr(e.out_avals)",
    "[e.ordered_effects, e.unordered_effects, e.disabled_safety_checks, e.uses_global_constants]",
    "[e.in_shardings_hlo, e.out_shardings_hlo]",
    "[e.has_vjp(), str(e), e.vjp().fun_name, str(e.vjp().in_tree), str(e.vjp().out_tree)]",
    "[[(a.shape, str(np.dtype(a.dtype) if a.dtype.names is None else 'float0')) for a in v]"
    " for v in (e.vjp().in_avals, e.vjp().out_avals)]",
    "[export.minimum_supported_calling_convention_version,"
    " export.maximum_supported_calling_convention_version, export.default_export_platform()]",
    "export.export(jax.jit(f), platforms=['tpu', 'cpu'])(x, y=1.).platforms",
    "[str(export.DisabledSafetyCheck.platform()), str(export.DisabledSafetyCheck.custom_call('a')),"
    " export.DisabledSafetyCheck.platform() == export.DisabledSafetyCheck.platform(),"
    " export.DisabledSafetyCheck.custom_call('a').is_custom_call(),"
    " export.DisabledSafetyCheck.platform().is_custom_call()]",
    "repr(export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((2,), np.float32)).in_avals)",
    "export.export(jax.jit(lambda x, y: x))(1, 2).module_kept_var_idx",
    "repr(export.export(jax.jit(lambda k: jax.random.normal(k)))(jax.random.key(0)).in_avals)",
    "export.symbolic_shape('2, 3')",
    "export.is_symbolic_dim(3)",
    "str(jax.make_jaxpr(lambda x: e.call(x, y=2.)['a'])(x))",
])
def test_an_exported_program_tells_what_jaxs_tells(jax_oracle, expression):
    wanted = jax_oracle.run(source_of(expression, __name__)).value
    assert ours(expression, __name__) == wanted


@pytest.mark.parametrize("expression", [
    "e.call(x, y=2.)",
    "e.call(x, y=jnp.float32(2.))",
    "jax.jit(lambda x: e.call(x, y=2.)['a'] + 1)(x)",
    "jax.grad(lambda x: e.call(x, y=2.)['a'].sum())(x)",
    "jax.grad(lambda x: jax.grad(lambda x: e.call(x, y=2.)['a'].sum())(x).sum())(x)",
    "jax.jit(jax.grad(lambda x, y: e.call(x, y=y)['a'].sum(), argnums=(0, 1)))(x, 3.)",
    "jax.grad(lambda x: export.export(jax.jit(lambda x, n: x * n))(1., 2).call(x, 2))(3.)",
    "export.export(jax.jit(lambda x, n: x * n, static_argnums=1))(1., 2).call(3.)",
    "jax.lax.cond(True, lambda x: e.call(x, y=2.)['a'], lambda x: x, x)",
    "jax.lax.fori_loop(0, 3, lambda i, x: e.call(x, y=2.)['a'], x)",
    "export.export(jax.jit(lambda x: e.call(x, y=2.)['a'] * 2))(x).call(x)",
    "export.export(jax.jit(f), platforms=['tpu'], disabled_checks="
    "[export.DisabledSafetyCheck.platform()])(x, y=2.).call(x, y=2.)",
])
def test_calling_it_is_calling_the_function(jax_oracle, expression):
    same(jax_oracle, expression, within=__name__)


@pytest.mark.parametrize(("expression", "sentence"), [
    ("e.call(jnp.ones(4), y=2.)", "Shape mismatch for args[0].shape[0] (expected same constant): "
     "expected (3,) and called with (4,)"),
    ("e.call(jnp.ones((3, 1)), y=2.)", "Rank mismatch for args[0]"),
    ("e.call(jnp.ones(3, 'int32'), y=2.)", "Dtype mismatch for args[0]: expected float32 and "
     "called with int32"),
    ("e.call(jnp.ones(3), y=2)", "Dtype mismatch for kwargs['y']: expected float32 and called "
     "with int32"),
    ("e.call(x)", "The invocation args and kwargs must have the same pytree structure as when the "
     "function 'f' was exported, but they have the following structural differences:\n   - "),
    ("export.export(f)(1)", "Function to be exported must be the result of `jit` but is: <function "
     "f at"),
    ("export.export(jax.jit(f), platforms=['tpu'])(x, y=2.).call(x, y=2.)",
     "Function 'f' was exported for platforms '('tpu',)' but it is used on '('cpu',)'."),
    ("jax.vmap(lambda x: e.call(x, y=2.))(jnp.ones((2, 3)))",
     "Batching rule for 'call_exported' not implemented"),
    ("jax.jvp(lambda x: e.call(x, y=2.)['a'], (x,), (x,))",
     "can't apply forward-mode autodiff (jvp) to a custom_vjp function."),
    ("export.export(jax.jit(lambda x: jax.pure_callback(np.sin, x, x)))(x)",
     "serialization of host_callbacks is not yet implemented"),
    ("export.export(jax.jit(lambda x: [jax.debug.print('{}', x), x][1]))(x)",
     "serialization of host_callbacks is not yet implemented"),
    ("export.register_namedtuple_serialization(tuple, serialized_name='T')",
     "Use `jax.export.register_pytree_node_serialization` for types other than "
     "`collections.namedtuple`."),
    ("[export.register_namedtuple_serialization(P, serialized_name=n) for P in "
     "[collections.namedtuple('P', 'a')] for n in ('one', 'two')]",
     "Duplicate serialization registration for type `<class '"),
    ("[export.register_namedtuple_serialization(collections.namedtuple(n, 'a'), "
     "serialized_name='same') for n in 'PQ']",
     "Duplicate serialization registration for serialized_name `same`. Previous registration was "
     "for type `<class '"),
    ("export.register_pytree_node_serialization(int, serialized_name='I', serialize_auxdata=bytes, "
     "deserialize_auxdata=bytes)", "If `from_children` is not present, you must call first"),
])
def test_what_jax_refuses_is_refused_in_its_words(jax_oracle, expression, sentence):
    same_error(jax_oracle, expression, sentence, within=__name__)


# -- bytes ----------------------------------------------------------------------------------------


def step(params, batch, scale=2.0):
    return {"loss": jnp.sum((batch @ params["w"] - params["b"]) ** 2) * scale, "n": batch.shape[0]}


PARAMS = {"w": np.arange(6, dtype=np.float32).reshape(3, 2) / 7, "b": np.ones(2, np.float32)}
BATCH = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def test_another_process_runs_and_differentiates_it(tmp_path):
    made = export.export(jax.jit(step))(PARAMS, BATCH)
    (tmp_path / "step").write_bytes(made.serialize(vjp_order=1))
    np.savez(tmp_path / "values", batch=BATCH, **PARAMS)
    code = """
import json, sys, numpy as np
import saem as jax
from pathlib import Path
folder = Path(sys.argv[1])
values = np.load(folder / "values.npz")
params = {"w": values["w"], "b": values["b"]}
step = jax.export.deserialize((folder / "step").read_bytes())
out = step.call(params, values["batch"])
g = jax.jit(jax.grad(lambda p: step.call(p, values["batch"])["loss"]))(params)
print(json.dumps([out["loss"].item(), out["n"].item(), g["w"].tolist(), g["b"].tolist()]))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    loss, n, gw, gb = json.loads(done.stdout.splitlines()[-1])
    error = BATCH @ PARAMS["w"] - PARAMS["b"]
    np.testing.assert_allclose(loss, 2 * np.sum(error**2), rtol=1e-5)
    assert n == 4
    np.testing.assert_allclose(gw, 4 * BATCH.T @ error, rtol=1e-5)
    np.testing.assert_allclose(gb, -4 * error.sum(0), rtol=1e-5)


def test_orders_of_derivatives_are_kept_as_wanted():
    made = export.export(jax.jit(lambda x: jnp.sin(x) * x))(np.float32(1))
    x = np.float32(0.7)
    none, one, two = (export.deserialize(made.serialize(vjp_order=n)) for n in range(3))
    np.testing.assert_allclose(none.call(x), np.sin(x) * x, rtol=1e-6)
    for program, order in ((none, 0), (one, 1), (two, 2)):
        for _ in range(order):
            assert program.has_vjp()
            program = program.vjp()
        assert not program.has_vjp()
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(none.call)(x)
    np.testing.assert_allclose(jax.grad(one.call)(x), np.cos(x) * x + np.sin(x), rtol=1e-6)
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(jax.grad(one.call))(x)
    np.testing.assert_allclose(
        jax.grad(jax.grad(two.call))(x), 2 * np.cos(x) - np.sin(x) * x, rtol=1e-5)


def back(fun, *args):
    """Return the answer of ``fun``, exported, written, read and called."""
    return export.deserialize(export.export(jax.jit(fun))(*args).serialize()).call(*args)


def test_structures_and_dtypes_come_back():
    tree = {"a": [np.int8(1), (None, np.float16(2))], "c": (np.bool_(True),), "b": {}}
    got = back(lambda t: (t, jnp.asarray(1, jnp.bfloat16)), tree)
    assert jax.tree.structure(got[0]) == jax.tree.structure(tree)
    assert [x.dtype.name for x in jax.tree.leaves(got)] == ["int8", "float16", "bool", "bfloat16"]
    numbered = {2: X, 1: X * 2}
    assert set(back(lambda t: {k + 1: v for k, v in t.items()}, numbered)) == {2, 3}
    ordered = collections.OrderedDict(z=X, a=X + 1)
    got = back(lambda t: t, ordered)
    assert list(got) == ["z", "a"] and type(got) is collections.OrderedDict
    np.testing.assert_array_equal(back(lambda z: z * 1j, np.complex64(1 + 2j)), -2 + 1j)


def test_weak_types_end_at_the_file():
    # So does real JAX 0.10.2, which the oracle cannot show: its files need another package.
    assert not back(lambda x: x * 2, 3.0).weak_type
    assert export.export(jax.jit(lambda x: x * 2))(3.0).call(3.0).weak_type


def test_keys_come_back():
    key = jax.random.key(3)
    got = back(jax.random.split, key)
    assert got.dtype == key.dtype
    np.testing.assert_array_equal(
        jax.random.key_data(got), jax.random.key_data(jax.random.split(key)))


def test_containers_of_a_program_need_a_name_in_the_file():
    pair = collections.namedtuple("pair", "one two")

    class Box:
        def __init__(self, x, label):
            self.x, self.label = x, label

    jax.tree_util.register_pytree_node(
        Box, lambda b: ((b.x,), b.label), lambda label, xs: Box(xs[0], label))
    make = export.export(jax.jit(lambda p, b: (pair(p.two, p.one), Box(b.x * 2, b.label))))
    made = make(pair(X, X + 1), Box(X, "kept"))
    with pytest.raises(ValueError, match="Cannot serialize PyTreeDef containing an unregistered"):
        made.serialize()
    export.register_namedtuple_serialization(pair, serialized_name="test_export.pair")
    export.register_pytree_node_serialization(
        Box, serialized_name="test_export.Box", serialize_auxdata=str.encode,
        deserialize_auxdata=bytes.decode)
    blob = made.serialize()
    turned, box = export.deserialize(blob).call(pair(X, X + 1), Box(X, "kept"))
    assert type(turned) is pair and box.label == "kept"
    np.testing.assert_array_equal(turned.one, X + 1)
    np.testing.assert_array_equal(box.x, X * 2)
    with pytest.raises(ValueError, match=r"same pytree structure.*\n.*args\[1\]"):
        export.deserialize(blob).call(pair(X, X), Box(X, "another"))
    forgotten = file_format._by_name.pop("test_export.Box")
    try:
        with pytest.raises(ValueError, match=r"'test_export.Box', which is not registered here"):
            export.deserialize(blob)
    finally:
        file_format._by_name["test_export.Box"] = forgotten


@pytest.fixture(scope="module")
def blob():
    return bytes(export.export(jax.jit(jnp.sin))(X).serialize())


@pytest.mark.parametrize("place", [14, 40, 46, 80, 300, -1])
def test_a_flipped_bit_is_noticed(blob, place):
    harmed = bytearray(blob)
    harmed[place] ^= 4
    with pytest.raises(ValueError, match="the exported program is damaged"):
        export.deserialize(harmed)


@pytest.mark.parametrize(("change", "sentence"), [
    (lambda b: b"", "these 0 bytes are no exported program of saem"),
    (lambda b: b"\x80\x04]" + b, "are no exported program of saem"),
    (lambda b: b[:50], "is damaged"),
    (lambda b: b[:-1], "is damaged"),
    (lambda b: b.replace(b"export 3", b"export 4", 1), "of format '4'.*reads format 2 and 3"),
])
def test_other_bytes_are_refused(blob, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        export.deserialize(change(blob))


def test_a_file_of_the_format_before_is_read(blob):
    form, module = blob.split(b"\n", 1)[1][32:].split(b"\n", 1)
    (head,) = json.loads(form)
    del head["uses_global_constants"]  # came with format 3
    before = file_format.seal(file_format.MAGIC, 2, json.dumps([head]).encode() + b"\n" + module)
    np.testing.assert_array_equal(export.deserialize(before).call(X), jnp.sin(X))


def test_reading_runs_nothing(blob):
    # No pickle: the container is JSON and MLIR bytecode, whatever it claims.
    assert b"pickle" not in blob and json.loads(blob.split(b"\n", 1)[1][32:].split(b"\n", 1)[0])


# -- inside other programs ------------------------------------------------------------------------


def test_one_program_called_twice_is_written_once():
    made = export.export(jax.jit(lambda x: jnp.tanh(x) * 3))(X)
    other = export.export(jax.jit(lambda x: jax.jit(jnp.cos)(x)))(X)
    fun = jax.jit(lambda x: made.call(made.call(x)) + other.call(x))
    text = fun.lower(X).as_text()
    assert text.count("stablehlo.tanh") == 1 and text.count("call @_lambda_(") == 2
    np.testing.assert_allclose(fun(X), np.tanh(np.tanh(X) * 3) * 3 + np.cos(X), rtol=1e-5)


def test_symbols_in_strings_are_left_alone():
    made = export.export(jax.jit(lambda x: x + x))(X)
    note = 'stablehlo.add %arg0, %arg0 {mhlo.frontend_attributes = {note = "@main \\22 @main"}} :'
    made._module = made.mlir_module().replace("stablehlo.add %arg0, %arg0 :", note)
    fun = jax.jit(made.call)
    assert note in fun.lower(X).as_text() and "call @_lambda_(" in fun.lower(X).as_text()
    np.testing.assert_array_equal(fun(X), X + X)


def test_the_equation_is_well_formed_and_evaluates():
    made = export.export(jax.jit(lambda x: (jnp.exp(x), x.sum())))(X)
    closed = jax.make_jaxpr(made.call)(X)
    check_jaxpr(closed)
    got = jax.evaluate(closed, X)
    np.testing.assert_allclose(got[0], np.exp(X), rtol=1e-6)
    np.testing.assert_allclose(got[1], X.sum(), rtol=1e-6)
    assert CallExported(made) == CallExported(made)
    assert CallExported(made) != CallExported(export.export(jax.jit(jnp.exp))(X))


def test_a_donated_argument_of_an_exported_function_stays():
    made = export.export(jax.jit(lambda x: x * 2, donate_argnums=0))(X)
    assert "tf.aliasing_output = 0" in made.mlir_module()
    x = jnp.asarray(X)
    np.testing.assert_array_equal(jax.jit(made.call)(x), X * 2)
    np.testing.assert_array_equal(made.call(x), X * 2)
    assert not x.is_deleted()


def test_a_custom_call_without_promise_needs_leave():
    text = 'stablehlo.custom_call @my_target(%0) : (tensor<f32>) -> tensor<f32>'
    with pytest.raises(ValueError, match="no compatibility guarantees: my_target"):
        check_custom_calls(text, ())
    check_custom_calls(text, (export.DisabledSafetyCheck.custom_call("my_target"),))
    check_custom_calls(text.replace("my_target", "lapack_spotrf_ffi"), ())


SEVERAL = """
import numpy as np
import saem as jax, saem.numpy as jnp
from saem import export
mesh = jax.make_mesh((4,), ("d",))
s = jax.NamedSharding(mesh, jax.P("d"))
x = jax.device_put(jnp.arange(8.0), s)
f = jax.jit(lambda x: jnp.sin(x) * x.sum(), in_shardings=s, out_shardings=s)
made = export.export(f)(x)
assert made.nr_devices == 4 and made.in_shardings_hlo[0].is_tiled()
read = export.deserialize(made.serialize(vjp_order=1))
assert read.nr_devices == 4 and read.in_shardings_jax(mesh) == (s,)
v = np.arange(8.0)
for program in (made, read):
    y = program.call(x)
    np.testing.assert_allclose(y, np.sin(v) * v.sum(), rtol=1e-5)
    assert y.sharding.is_equivalent_to(s, 1), y.sharding
    g = jax.jit(jax.grad(lambda x: program.call(x).sum()))(x)
    np.testing.assert_allclose(g, np.cos(v) * v.sum() + np.sin(v).sum(), rtol=1e-4, atol=1e-4)
try:
    read.call(jnp.arange(8.0))
except ValueError as error:
    print(error)
"""


def test_a_program_on_several_devices_comes_back():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                   "SAEM_NUM_CPU_DEVICES": "4"}
    done = subprocess.run([sys.executable, "-c", SEVERAL], env=environment, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "was exported for 4 devices and is called in a context with 1 devices" in done.stdout
