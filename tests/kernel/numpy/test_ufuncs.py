"""Do methods of ufuncs, functions made from Python's, r_ and c_, gcd and lcm do as JAX's?

Read before: ``agreement.py``.
"""

from __future__ import annotations

import io

import numpy as np
import pytest
from agreement import check

import saem as jax
from saem import numpy as jnp

A = "jnp.arange(6).reshape(2, 3)"
MASK = "jnp.array([True, False, True])"
REDUCED = [
    *(f"jnp.{f}.reduce({A}, axis={axis})" for f in (
        "add", "multiply", "maximum", "logical_and", "logical_or", "bitwise_and", "bitwise_xor",
        "subtract", "logaddexp") for axis in (0, -1, None) if not (f == "logaddexp")),
    "jnp.logaddexp.reduce(jnp.arange(6.).reshape(2, 3), axis=1, keepdims=True)",
    f"jnp.add.reduce({A}, axis=1, keepdims=True)", "jnp.add.reduce(jnp.arange(6.), dtype='int32')",
    f"jnp.add.reduce({A}, axis=1, initial=10, where={MASK})",
    f"jnp.subtract.reduce({A}, axis=1, initial=10, where={MASK})",
    f"jnp.subtract.reduce({A}, axis=1, where={MASK})", f"jnp.subtract.reduce({A}, axis=(0, 1))",
    f"jnp.maximum.reduce({A}, axis=(0, 1))", "jnp.subtract.reduce(jnp.arange(3), keepdims=True)",
    "jnp.subtract.reduce(jnp.zeros(0))", "jnp.logaddexp.reduce(jnp.zeros(0))",
    "jnp.maximum.reduce(jnp.zeros(0))", "jnp.maximum.reduce(jnp.arange(3), initial=7)",
    "jnp.add.reduce([1, 2])", "jnp.add.reduce(3)", "jnp.subtract.reduce(3)",
    "jnp.subtract.reduce(jnp.arange(3), out=3)", "jnp.negative.reduce(jnp.arange(3))",
    "jnp.subtract.reduce(jnp.arange(3), initial=jnp.arange(2))",
    "jnp.subtract.reduce(jnp.arange(3, dtype='int8'))",
]
STEPS = [
    *(f"jnp.{f}.accumulate({A}, axis=1)" for f in (
        "add", "multiply", "subtract", "maximum", "logical_and")),
    f"jnp.add.accumulate({A}, axis=None)", f"jnp.subtract.accumulate({A}, axis=None)",
    "jnp.add.accumulate(3)", "jnp.subtract.accumulate(3)", "jnp.add.accumulate(jnp.ones(2, bool))",
    "jnp.logaddexp.accumulate(jnp.arange(3.), dtype='float16')",
    "jnp.negative.accumulate(jnp.arange(3))",
    *(f"jnp.{f}.at(jnp.ones(3), jnp.array([0, 0, 1]), 5., inplace=False)"
      for f in ("add", "multiply", "subtract", "maximum", "logaddexp")),
    "jnp.negative.at(jnp.ones(3), jnp.array([0, 0, 1]), inplace=False)",
    "jnp.add.at(jnp.zeros(3), 1, 2.)", "jnp.add.at(jnp.zeros(3), 1, inplace=False)",
    f"jnp.add.outer({A}, jnp.arange(2))", "jnp.negative.outer(1, 2)",
    *(f"jnp.{f}.reduceat(jnp.arange(8), jnp.array([0, 4, 1, 5]))"
      for f in ("add", "multiply", "maximum", "subtract")),
    f"jnp.add.reduceat({A}, jnp.array([0, 2]), axis=1)",
    "jnp.add.reduceat(jnp.arange(8), jnp.array([[0, 4]]))",
    "jnp.add.reduceat(jnp.arange(8), [0, 4])",
]
MADE = [
    "jnp.frompyfunc(lambda x, y: x * y + 1, 2, 1)(jnp.arange(3), 2)",
    "jnp.frompyfunc(lambda x, y: x * y + 1, 2, 1).reduce(jnp.arange(3))",
    "jnp.frompyfunc(lambda x, y: x * y, 2, 1, identity=1).reduce(jnp.zeros((0, 2)))",
    "jnp.frompyfunc(lambda x, y: x * y, 2, 1).outer(jnp.arange(1, 4), jnp.arange(2))",
    "jnp.frompyfunc(lambda x, y: x * y, 2, 1).accumulate(jnp.arange(1, 4))",
    "jnp.frompyfunc(lambda x: (x, x + 1), 1, 2)(jnp.arange(3))",
    "jnp.frompyfunc(lambda x: x, 1, 1).reduce(jnp.arange(3))",
    "jnp.frompyfunc(lambda x, y: x, 2, 1)(1)", "jnp.frompyfunc(lambda x: x, 1, 1)(1, out=2)",
    "repr(jnp.frompyfunc(lambda x: x, 1, 1))",
    "[(f.nin, f.nout, f.nargs, f.identity, f.__name__) for f in (jnp.add, jnp.negative,"
    " jnp.logaddexp, jnp.bitwise_and, jnp.maximum, jnp.logical_and)]",
    "isinstance(jnp.add, jnp.ufunc), isinstance(jnp.sin, jnp.ufunc)",
]
WHOLE = [
    "jnp.gcd(np.int32([4, 6, 0, -8]), np.int32([6, 9, 0, 12]))", "jnp.gcd(12, jnp.uint8(8))",
    "jnp.lcm(np.int32([4, 6, 0, -8]), np.int32([6, 9, 0, 12]))", "jnp.gcd(12, 18)",
    "jnp.lcm(np.uint8([4, 200]), np.uint8(7))", "jnp.gcd(jnp.arange(6).reshape(2, 3), 4)",
    "jnp.gcd(True, False)", "jnp.gcd(1.5, 2)", "jnp.lcm(1.5, 2)",
    "jnp.gcd(jnp.ones((2, 3), int), jnp.ones(4, int))", "jnp.gcd(np.zeros(0, int), 3)",
]
JOINED = [
    "jnp.r_[1:4, 5, jnp.array([1, 2])]", "jnp.r_[1:4.]", "jnp.r_[0:1:5j]", "jnp.r_[0:1:0.25]",
    "jnp.r_['-1', jnp.ones((2, 2)), jnp.zeros((2, 2))]", "jnp.r_['0,2', [1, 2, 3], [4, 5, 6]]",
    *(f"jnp.r_['{d}', [1, 2, 3], [4, 5, 6]]" for d in (
        "0,2,0", "1,2,0", "1,3,0", "0,3,-1", "0,3,1", "0,3,-2", "0,3,2", "r", "c", "q")),
    "jnp.r_[()]", "jnp.r_[[1, 2], 'r', [3]]", "jnp.r_[1]", "jnp.r_[1, 2.5, 3]", "jnp.r_[:3]",
    "jnp.r_[jnp.ones((2, 2)), jnp.zeros((1, 2))]", "jnp.c_[jnp.arange(3), jnp.arange(3)]",
    "jnp.c_[jnp.ones((3, 2)), jnp.arange(3)]", "jnp.c_[1:4, 5:8]", "jnp.c_[1]", "len(jnp.r_)",
    "jnp.c_['0', [1, 2], [3, 4]]", "jnp.r_['r', jnp.ones((2, 2)), jnp.zeros((1, 2))]",
]


@pytest.mark.parametrize("cases", [REDUCED, STEPS, MADE, WHOLE, JOINED],
                         ids=["reduce", "steps", "made", "whole", "joined"])
def test_as_in_jax(jax_oracle, cases):
    check(jax_oracle, cases)


def test_inside_traces():
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    slope = jax.jit(jax.grad(lambda x: jnp.subtract.reduce(x, axis=1).sum()))(x)
    np.testing.assert_array_equal(slope, [[1, -1, -1]] * 2)
    pairs = np.int32([[12, 18], [7, 21], [5, 9]])
    np.testing.assert_array_equal(jax.vmap(lambda p: jnp.gcd(*p))(pairs), np.gcd(*pairs.T))
    np.testing.assert_array_equal(jax.jit(jnp.lcm)(*pairs.T), np.lcm(*pairs.T))


@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16"])
def test_what_is_saved_is_loaded(dtype):
    x = jnp.arange(6).reshape(2, 3).astype(dtype)
    file = io.BytesIO()
    jnp.save(file, x)
    file.seek(0)
    back = jnp.load(file)
    assert isinstance(back, jax.Array) and back.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(back, "float32"), np.asarray(x, "float32"))
