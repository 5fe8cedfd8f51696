"""Do programs call functions compiled elsewhere as JAX's do?

A small library is compiled by g++ with the headers that jaxlib brings; its results are compared
with NumPy.  Jaxprs, messages and texts, which need no library, are JAX's own.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import partial

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem import test_util
from saem.extend.core import Primitive
from saem.interpreters import mlir

LIBRARY = r"""
#include <cmath>
#include <cstdint>
#include <string_view>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
using F32 = ffi::Buffer<ffi::F32>;

static ffi::Error Norm(float eps, F32 x, ffi::ResultBuffer<ffi::F32> y) {
  auto dims = x.dimensions();
  if (dims.size() == 0) return ffi::Error::InvalidArgument("Norm needs an axis");
  int64_t n = dims.back(), total = x.element_count();
  for (int64_t i = 0; i < total; i += n) {
    float sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += x.typed_data()[i + j] * x.typed_data()[i + j];
    float scale = 1.0f / std::sqrt(sum / n + eps);
    for (int64_t j = 0; j < n; ++j) y->typed_data()[i + j] = scale * x.typed_data()[i + j];
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(norm, Norm, ffi::Ffi::Bind().Attr<float>("eps").Arg<F32>()
    .Ret<F32>());

static ffi::Error Attributes(bool b, int64_t i, int32_t i32, uint8_t u8, double d, float f,
    std::string_view s, ffi::Span<const float> fs, ffi::Span<const int64_t> is,
    ffi::Dictionary more, ffi::ResultBuffer<ffi::F64> y) {
  double* out = y->typed_data();
  double values[] = {double(b), double(i), double(i32), double(u8), d, f, double(s.size()),
                     fs[1], double(is[2]), double(*more.get<int64_t>("depth"))};
  for (int k = 0; k < 10; ++k) out[k] = values[k];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(attributes, Attributes, ffi::Ffi::Bind().Attr<bool>("b")
    .Attr<int64_t>("i").Attr<int32_t>("i32").Attr<uint8_t>("u8").Attr<double>("d").Attr<float>("f")
    .Attr<std::string_view>("s").Attr<ffi::Span<const float>>("fs")
    .Attr<ffi::Span<const int64_t>>("is").Attr<ffi::Dictionary>("more")
    .Ret<ffi::Buffer<ffi::F64>>());

static int64_t calls = 0;
static ffi::Error Count(F32 x) { calls += x.element_count(); return ffi::Error::Success(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(count, Count, ffi::Ffi::Bind().Arg<F32>());
extern "C" int64_t counted() { return calls; }

static ffi::Error AddTwo(F32 x, F32 y, ffi::ResultBuffer<ffi::F32> sum,
                         ffi::ResultBuffer<ffi::F32> product) {
  for (size_t i = 0; i < x.element_count(); ++i) {
    float a = x.typed_data()[i], b = y.typed_data()[i];
    sum->typed_data()[i] = a + b;
    product->typed_data()[i] = a * b;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(both, AddTwo, ffi::Ffi::Bind().Arg<F32>().Arg<F32>().Ret<F32>()
    .Ret<F32>());
"""
X = np.linspace(-0.5, 0.5, 12, dtype=np.float32).reshape(3, 4)


def like(x, shape=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype)


def norm(x, eps=1e-5, **options):
    return jax.ffi.ffi_call("test_norm", like(x), **options)(x, eps=np.float32(eps))


def expected(x, axis=-1):
    return x / np.sqrt(np.mean(np.square(x), axis, keepdims=True) + np.float32(1e-5))


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The library, compiled and registered: once in a process, since no name can be registered
    anew, and a worker may come back to this file for tests that it takes from another."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ to compile the library with")
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "lib.cc").write_text(LIBRARY)
    subprocess.run([compiler, "-O1", "-w", "-std=c++17", "-fPIC", "-shared", "-I",
                    jax.ffi.include_dir(), "-o", folder / "lib.so", folder / "lib.cc"], check=True)
    loaded = ctypes.cdll.LoadLibrary(str(folder / "lib.so"))
    loaded.counted.restype = ctypes.c_int64
    for name in ("norm", "attributes", "count", "both"):
        jax.ffi.register_ffi_target(f"test_{name}", jax.ffi.pycapsule(getattr(loaded, name)))
    return loaded


def test_a_function_is_called_from_programs_and_outside(library):
    for f in (norm, jax.jit(norm)):
        np.testing.assert_allclose(f(X), expected(X), rtol=1e-5)
    twice = jax.lax.scan(lambda c, _: (norm(c), None), jnp.asarray(X), None, length=2)[0]
    np.testing.assert_allclose(twice, expected(expected(X)), rtol=1e-5)
    np.testing.assert_allclose(norm(X, input_output_aliases={0: 0}), expected(X), rtol=1e-5)
    a, b = jax.ffi.ffi_call("test_both", (like(X), like(X)))(X, X)
    np.testing.assert_allclose(a, X + X)
    np.testing.assert_allclose(b, X * X)


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims",
                                    "broadcast_all", "legacy_vectorized"])
def test_examples_in_a_stack_are_treated_each_by_itself(library, method):
    f = jax.vmap(lambda x: norm(x, vmap_method=method))
    np.testing.assert_allclose(f(X), expected(X), rtol=1e-5)
    g = jax.jit(jax.vmap(lambda x: norm(x, vmap_method=method), 1, 1))
    np.testing.assert_allclose(g(X), expected(X, 0), rtol=1e-5)


def test_every_kind_of_attribute_arrives(library):
    with jax.enable_x64(True):
        call = jax.ffi.ffi_call("test_attributes", jax.ShapeDtypeStruct((10,), np.float64))
        got = call(**{
            "b": True, "i": -7, "i32": np.int32(11), "u8": np.uint8(200), "d": 0.1,
            "f": np.float32(0.25), "s": 'quo"te\n', "fs": np.array([1, 2.5], np.float32),
            "is": np.array([1, 2, 2**40]), "more": {"depth": 3}})
    np.testing.assert_array_equal(got, [1, -7, 11, 200, 0.1, 0.25, 7, 2.5, 2.0**40, 3])


def test_a_function_with_effects_is_not_dropped(library):
    @jax.jit
    def f(x, keep):
        jax.ffi.ffi_call("test_count", (), has_side_effect=True)(x)
        return keep + 1

    before = library.counted()
    jax.block_until_ready(f(X, 1))
    assert library.counted() - before == X.size
    dropped = jax.make_jaxpr(lambda x: jax.ffi.ffi_call("test_count", ())(x))(X)
    assert not dropped.effects and jax.make_jaxpr(f)(X, 1).effects


def test_layouts_say_how_the_function_sees_its_operands(library):
    columns = norm(X, input_layouts=[(1, 0)], output_layouts=(1, 0))
    # It takes rows of four where the memory holds columns of three.
    flat = X.T.reshape(3, 4)
    np.testing.assert_allclose(columns, expected(flat).reshape(4, 3).T, rtol=1e-5)
    layout = jax.experimental.layout.Layout((1, 0))
    np.testing.assert_array_equal(
        columns, norm(X, input_layouts=[layout], output_layouts=layout))


def test_a_custom_derivative_stands_around_a_call(library):
    @jax.custom_vjp
    def f(x):
        return norm(x)

    def forward(x):
        y = norm(x)
        return y, (x, y)

    def backward(kept, ct):
        x, y = kept
        scale = 1 / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-5)
        return (scale * (ct - y * jnp.mean(ct * y, -1, keepdims=True)),)

    f.defvjp(forward, backward)
    test_util.check_grads(f, (X + 1,), order=1, modes=["rev"], atol=2e-2, rtol=2e-2, eps=1e-2)


def test_what_the_function_refuses_is_said(library):
    for call, sentence in [
            (lambda: jax.ffi.ffi_call("test_norm", like(X, ()))(jnp.float32(1), eps=np.float32(1)),
             "Norm needs an axis"),
            (lambda: jax.ffi.ffi_call("test_norm", like(X))(X), "Wrong number of attributes"),
            (lambda: jax.ffi.ffi_call("test_norm", like(X))(X, eps=1.0), "F32 but got F64"),
            (lambda: jax.ffi.ffi_call("test_nowhere", like(X))(X), "test_nowhere")]:
        with pytest.raises(jax.errors.JaxRuntimeError, match=sentence):
            call()
    np.testing.assert_allclose(norm(X), expected(X), rtol=1e-5)


def test_a_primitive_of_ones_own_is_lowered_to_a_call(library):
    rule = jax.ffi.ffi_lowering("test_norm")

    def calls_it(ctx, x, **params):
        assert [a.shape for a in (*ctx.avals_in, *ctx.avals_out)] == [X.shape] * 2
        return rule(ctx, x, **params)

    for number, how in enumerate((rule, calls_it)):
        p = Primitive(f"my_norm_{number}")
        p.def_abstract_eval(lambda x, eps: jax.core.ShapedArray(x.shape, x.dtype))
        mlir.register_lowering(p, how)
        np.testing.assert_allclose(
            jax.jit(lambda x, p=p: p.bind(x, eps=np.float32(1e-5)))(X), expected(X), rtol=1e-5)


def test_a_function_that_treats_slices_apart_runs_on_several_devices(library):
    jax.ffi.register_ffi_target_as_batch_partitionable("test_norm")
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    placed = jax.device_put(np.tile(X, (4, 1)), jax.NamedSharding(mesh, jax.P("x")))
    f = jax.jit(norm, out_shardings=placed.sharding)
    got = f(placed)
    assert got.sharding == placed.sharding
    np.testing.assert_allclose(got, expected(np.tile(X, (4, 1))), rtol=1e-5)


x = np.linspace(-0.5, 0.5, 12, dtype=np.float32).reshape(3, 4)
S = jax.ShapeDtypeStruct(x.shape, x.dtype)


def call(a, **k):
    return jax.ffi.ffi_call("f", like(a), **k)(a, eps=np.float32(1))


def two(a, b, **k):
    return jax.ffi.ffi_call("f", like(a), **k)(a, b)


def jaxpr(f, *args):
    return str(jax.make_jaxpr(f)(*args))


def test_jaxprs_show_calls_as_in_jax(jax_oracle):
    def program():
        methods = ["broadcast_all", "expand_dims", "sequential", "sequential_unrolled"]
        return [
            jaxpr(call, x),
            jaxpr(lambda a: call(a, has_side_effect=True), x),
            jaxpr(lambda a: call(a, input_output_aliases={0: 0}), x),
            jaxpr(lambda a: call(a, input_layouts=[(0, 1)], output_layouts=(1, 0)), x),
            jaxpr(
                lambda a: jax.ffi.ffi_call("f", [S, S])(
                    a, n=1, s="t", b=True, a=np.arange(2, dtype=np.int8)
                ),
                x,
            ),
            jaxpr(
                lambda a: jax.ffi.ffi_call(
                    "f", (), custom_call_api_version=2, legacy_backend_config="c"
                )(a),
                x,
            ),
            *[jaxpr(jax.vmap(partial(call, vmap_method=m), 1), x) for m in methods],
            *[
                jaxpr(jax.vmap(partial(two, vmap_method=m), (0, None)), x, x)
                for m in methods
            ],
            jaxpr(
                jax.vmap(
                    lambda a: call(
                        a,
                        vmap_method="broadcast_all",
                        input_layouts=[(0, 1)],
                        output_layouts=(1, 0),
                    )
                ),
                np.ones((2, 3, 4)),
            ),
        ]

    same(jax_oracle, program)


def test_attributes_are_written_as_in_jax(jax_oracle):
    # The number formats differ; what the parser makes of them does not.

    def program():
        values = [
            3,
            True,
            2.5,
            "he'y",
            np.int8(3),
            np.uint16(7),
            np.float64(1.5),
            np.bool_(True),
            (1, 2),
            np.arange(3),
            np.array([True, False]),
            np.array([], np.float32),
            np.dtype("float32"),
            {"p": 1, "q": "r"},
            -1,
            np.uint8(200),
            b"x",
        ]

        def kinds(v):
            module = (
                jax.jit(lambda a: jax.ffi.ffi_call("f", S)(a, v=v))
                .lower(x)
                .compiler_ir("stablehlo")
            )
            for op in module.body.operations:
                for inner in op.regions[0].blocks[0].operations:
                    for name in ("mhlo.backend_config", "backend_config"):
                        if "custom_call" in inner.name and name in inner.attributes:
                            if str(inner.attributes[name]) != '""':
                                return str(inner.attributes[name])

        return [kinds(v) for v in values]

    same(jax_oracle, program)


REFUSED = {
    "jax.grad(lambda a: call(a).sum())(x)":
        "The FFI call to `f` cannot be differentiated. You can use `jax.custom_jvp`",
    "jax.vmap(call)(x)": "vmap is only supported for the ffi_call primitive when vmap_method is",
    "call(x, vmap_method='bogus')": "vmap_method must be on of the allowed methods",
    "call(x, input_output_aliases={1: 0})": "input_output_aliases contains the mapping '1:0' with "
        "input index 1 outside the range [0, 1).",
    "call(x, input_output_aliases={0: 1})": "with output index 1 outside the range [0, 1).",
    "jax.ffi.ffi_call('f', jax.ShapeDtypeStruct((2,), x.dtype), input_output_aliases={0: 0})(x)":
        "referring to an input with abstract value float32[3,4] and an output with a different "
        "abstract value float32[2].",
    "call(x, input_layouts=[(0, 1), (0, 1)])":
        "The number of input arguments (1) must equal the number of input layouts (2).",
    "call(x, input_layouts=[(0,)])": "incorrect layout",
    "jax.jit(lambda a: jax.ffi.ffi_call('f', S)(a, v=object()))(x)":
        "No attribute handler defined for type: <class 'object'>",
    "jax.jit(lambda a: jax.ffi.ffi_call('f', S)(a, v=[1]))(x)":
        "Non-hashable keyword argument to ffi_call v: [1]",
    "jax.ffi.ffi_call('f', S, custom_call_api_version=1)(x, v=1)":
        "The use of ffi_call attributes requires a custom call API version of at least 4; got "
        "api_version=1.",
    "jax.ffi.ffi_call('f', S, legacy_backend_config='c')(x)":
        "The use of the legacy_backend_config parameter requires custom_call_api_version < 4; got",
    "jax.ffi.ffi_call('f', S)([x])": "is not a valid JAX type",
    "jax.ffi.register_ffi_target('f', 3)": "Unsupported custom call target type for api_version=1",
    "jax.ffi.register_ffi_type('f', {'type_id': 3})": "requires handlers as PyCapsules",
    "jax.ffi.register_ffi_type_id('f', 3)": "register_ffi_type_id is not supported",
}


@pytest.mark.parametrize("source", REFUSED)
def test_refusals_are_jaxs(jax_oracle, source):
    same_error(jax_oracle, source, REFUSED[source], within=__name__)
