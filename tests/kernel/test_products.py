"""Do ragged, scaled and described matrix products mean what they mean on JAX?

Rules are checked by the matrix (``cases/ragged_products.py``); here: values, errors, programs and
text for other platforms.

Read before: ``library.py``, ``saem.linalg.ragged_products``, ``saem.ops.dot_algorithms``.
"""

from __future__ import annotations

import functools
import itertools
import re

import numpy as np
import pytest
from both import same, same_error, source_of
from library import check

import saem as jax
import saem.numpy as jnp

NUMBERS = "lax.RaggedDotDimensionNumbers"
RAGGED = [
    "lax.ragged_dot(x, r, jnp.array([2, 4]))", "lax.ragged_dot(x, r, jnp.array([1, 2]))",
    "lax.ragged_dot(x, r, jnp.array([5, 5]))", "lax.ragged_dot(x, r, jnp.array([-1, 5]))",
    "lax.ragged_dot(x, r, jnp.array([2, 4], 'uint8'), preferred_element_type=jnp.bfloat16)",
    "lax.ragged_dot(x.astype('bfloat16'), r, jnp.array([2, 4]), precision='highest')",
    "lax.ragged_dot(x.astype(int), r.astype(int), jnp.array([2, 4]))",
    "grads(lambda x, r: lax.ragged_dot(x, r, jnp.array([2, 4])), x, r)",
    "mapped(lambda x, r, g: lax.ragged_dot(x, r, g), x[None], r[None], jnp.array([[2, 3]]))",
    # Sizes that differ along batch, free and contracting axes.
    f"lax.ragged_dot_general(a, b, jnp.array(%s), {NUMBERS}((([2], [2]), ([0], [1])), [1], [0]))"
    % "[1, 2, 0, 3]",
    f"lax.ragged_dot_general(a, b, jnp.array(%s), {NUMBERS}((([2], [2]), ([0], [1])), [1], [0]))"
    % "[[1, 2, 0, 3], [3, 1, 1, 1]]",
    f"lax.ragged_dot_general(a, b[:, 0], jnp.array([[1, 2, 0, 3], [3, 1, 1, 1]]), {NUMBERS}("
    "(([2], [1]), ([], [])), [1], [0]))",
    f"lax.ragged_dot_general(a, c, jnp.array([1, 2, 0, 3]), {NUMBERS}((([1, 0], [0, 1]),"
    " ([], [])), [1], []))",
    f"lax.ragged_dot_general(c, c, jnp.array([[1], [2]]), {NUMBERS}((([1, 0], [1, 0]),"
    " ([], [])), [0], []))",
    f"lax.ragged_dot_general(c, c, jnp.array([1, 2]), {NUMBERS}((([2], [2]), ([0], [0])), [0],"
    " []))",
    # What does not fit.
    "lax.ragged_dot(x, r, jnp.array([1., 2.]))", "lax.ragged_dot(x, r, jnp.array([1, 2, 3]))",
    "lax.ragged_dot(x[0], r, jnp.array([1, 2]))", "lax.ragged_dot(x, r[0], jnp.array([1, 2]))",
    "lax.ragged_dot(x, r[:, :2], jnp.array([1, 2]))",
    "lax.ragged_dot(x, r, jnp.array([2, 4]), group_offset=jnp.array([0]))",
    *(f"lax.ragged_dot_general(x, r, jnp.array([1, 2]), {NUMBERS}((([1], [1]), ([], [])), {lhs},"
      f" {rhs}))" for lhs, rhs in (("[]", "[0]"), ("[0, 1]", "[0]"), ("[9]", "[0]"), ("[0]", "[]"),
                                   ("[0]", "[0, 2]"), ("[0]", "[1]"), ("[0]", "[7]"))),
    f"repr({NUMBERS}((([2], [1]), ([0], [0])), [1], []))",
]
SCALED = [
    "lax.scaled_dot(u, v, lhs_scale=s, rhs_scale=t, preferred_element_type=jnp.float32)",
    "lax.scaled_dot(u.astype('float8_e4m3fn'), v.astype('float8_e4m3fn'),"
    " lhs_scale=s.astype('float8_e8m0fnu'), rhs_scale=t.astype('float8_e8m0fnu'),"
    " preferred_element_type=jnp.float32)",
    "lax.scaled_dot(jnp.round(u), v, rhs_scale=t).dtype", "lax.scaled_dot(u[None], v[None]).dtype",
    "lax.scaled_dot(jnp.ones((2, 4), int), jnp.ones((4, 3), int),"
    " preferred_element_type='float16')",
    "lax.scaled_dot(u, v, lhs_scale=jnp.ones((2, 3)))",
    "lax.scaled_dot(u, v, lhs_scale=jnp.ones((3, 2)))",
    "lax.scaled_dot(u, v, lhs_scale=jnp.ones((2, 8)))", "lax.scaled_dot(u[0], v[:, 0])",
    "lax.scaled_dot(u, v[:6])",
    "jax.grad(lambda u: lax.scaled_dot(u, v).astype('float32').sum())(u)",
]
ALGORITHMS = [
    "lax.dot(x, x.T, precision=lax.DotAlgorithmPreset.F32_F32_F32)",
    "lax.dot(x, x.T, precision='F16_F16_F16')", "lax.dot(x, x.T, precision='F16_F16_F32')",
    "lax.dot(x, x.T, precision=lax.DotAlgorithm(np.float32, np.float32, np.float32))",
    "lax.dot(x, x.T, precision=(lax.DotAlgorithm(np.float32, np.float32, np.float32),) * 2)",
    "jnp.matmul(x, x.T, precision='BF16_BF16_F32_X3')",
    "[(p.name, p.value,"
    " None if p.accumulation_type is None else np.dtype(p.accumulation_type).name,"
    " None if p.supported_lhs_types is None else [np.dtype(t).name for t in p.supported_lhs_types])"
    " for p in lax.DotAlgorithmPreset]",
    "repr(lax.DotAlgorithm('float16', 'float16', 'float32'))",
    *(f"[None if p.supported_output_types(np.dtype({d!r}), np.dtype({d!r})) is None else "
      f"[np.dtype(t).name for t in p.supported_output_types(np.dtype({d!r}), np.dtype({d!r}))]"
      " for p in lax.DotAlgorithmPreset]" for d in ("float32", "float16")),
]


def numbers(*shape):
    return np.random.RandomState(len(shape)).randn(*shape).astype("f")


def test_ragged_products(jax_oracle):
    check(jax_oracle, RAGGED, rtol=2e-5, x=numbers(6, 3), r=numbers(2, 3, 4), a=numbers(2, 6, 3),
          b=numbers(4, 2, 3, 5), c=numbers(6, 2, 5)[:, :, :4])


def test_scaled_products(jax_oracle):
    check(jax_oracle, SCALED, rtol=1e-2, u=numbers(2, 8), v=numbers(8, 3),
          s=np.abs(numbers(2, 2)), t=np.abs(numbers(4, 3)))


def test_algorithms(jax_oracle):
    check(jax_oracle, ALGORITHMS, rtol=2e-3, x=numbers(6, 3))


def texts(platform):
    """Return how the product of each preset and dtypes is written, or whether it is refused."""
    result = []
    for preset in jax.lax.DotAlgorithmPreset:
        for dtype in ("float32", "float16", "bfloat16", "float8_e4m3fn", "int8"):
            for out in (None, "float32", "bfloat16"):
                x = jnp.ones(3, dtype)
                product = jax.jit(functools.partial(
                    jax.lax.dot, precision=preset, preferred_element_type=out))
                try:
                    traced = product.trace(x, x)
                    text = traced.lower(lowering_platforms=(platform,)).as_text()
                except Exception as error:
                    result.append((preset.name, dtype, out, isinstance(error, ValueError)))
                    continue
                (line,) = [line for line in text.split("\n") if "dot_general" in line]
                result.append((preset.name, dtype, out, re.findall("algorithm = <.*>", line),
                               line.rsplit(" : ", 1)[1]))
    return result


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_algorithms_are_written_as_jax_does(jax_oracle, platform):
    theirs = jax_oracle.run(source_of(texts), platform=platform).value
    mine = texts(platform)
    # DEFAULT is no algorithm; no preset but those of F8 takes 8-bit floats; F64 needs x64.
    same = [(a, b) for a, b in zip(mine, theirs) if a[0] not in ("DEFAULT", "F64_F64_F64")
            and ("F8" in a[0] or "float8" not in a[1])]
    assert len(same) > 150
    for a, b in same:
        assert list(a) == list(b)


def test_a_ragged_program_prints_as_jaxs(jax_oracle):
    program = ("str(jax.make_jaxpr(lambda x, r: jax.lax.ragged_dot(x, r, jnp.array([2, 4])))"
               "(jnp.ones((6, 3)), jnp.ones((2, 3, 4))))")
    assert eval(program) == jax_oracle.run(program).value


KINDS = ("float8_e5m2 float8_e4m3fn float8_e4m3fnuz float8_e3m4 float8_e8m0fnu float4_e2m1fn "
         "bfloat16 float16 float32 int8 int4 uint8 int32 bool complex64").split()
PAIRS = [("float8_e5m2", "float8_e4m3fn"), ("float8_e4m3fnuz", "float8_e5m2"), ("int8", "uint8"),
         ("float8_e4m3fn", "bfloat16"), ("float16", "bfloat16"), ("int8", "float8_e5m2"),
         ("bool", "float8_e3m4"), ("complex64", "float8_e5m2")]


def product(asked):
    return lambda a, b: jax.lax.dot_general(
        a, b, (((1,), (0,)), ((), ())), preferred_element_type=asked)


def types_of_products(kinds):
    results = []
    for a, b, asked in itertools.product(kinds, kinds, (None, "float32", "bfloat16", "int32")):
        shapes = jax.ShapeDtypeStruct((2, 3), a), jax.ShapeDtypeStruct((3, 4), b)
        try:
            results.append(str(jax.eval_shape(product(asked), *shapes).dtype))
        except TypeError as error:
            results.append("lax.dot_general argument type error" in str(error)
                           or "must not be narrower" in str(error))
    return results


def products(pairs):
    x, y = np.arange(1, 7).reshape(2, 3) / 2, np.arange(2, 14).reshape(3, 4) / 4
    return [[jax.jit(product(asked))(jax.numpy.asarray(x).astype(a), jax.numpy.asarray(y).astype(b))
             for asked in (None, "float32")] for a, b in pairs]


def test_operands_of_two_dtypes(jax_oracle):
    same(jax_oracle, f"types_of_products({KINDS})", within=__name__)
    same(jax_oracle, f"products({PAIRS})", within=__name__, rtol=1e-5)


def test_a_precision_is_made_of_its_name(jax_oracle):
    same(jax_oracle, "[str(lax.Precision(name)) for name in ('highest', 'float32', 'high', "
         "'bfloat16_3x', 'tensorfloat32', 'default', 'bfloat16', 'fastest', None, 0, 2)]")
    for name in ("'HIGHEST'", "'x'"):
        same_error(jax_oracle, f"lax.Precision({name})", f"{name} is not a valid Precision")
