"""Do lax's structural functions write the programs, give the dtypes and refuse what JAX does?

Each source text runs twice: here, and in real JAX in a second process.  Printed programs must be
equal to the letter, up to line breaks and how NumPy's numbers print; errors must hold JAX's own
sentence.
"""

from __future__ import annotations

import re
import types

import numpy as np
import oracle
import pytest

from saem import _wiring  # noqa: F401 - lets operations run
from saem.compile.dispatch import put
from saem.core.pretty import jaxpr_text
from saem.ops import dynamic_slicing, filling, gather, scatter, shape, slicing, stacking, windows
from saem.transform.staging import trace_flat

lax = types.SimpleNamespace(**{
    name: value for module in (windows, gather, scatter, shape, filling, slicing,
                                   dynamic_slicing)
    for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__})
NAMES = {"lax": lax, "np": np, "jnp": types.SimpleNamespace(asarray=put)}
X = np.arange(12, dtype=np.float32).reshape(3, 4)
I = np.int32(1)

PROGRAMS = [
    "lambda x, i: lax.reshape(x, (4, 3))",
    "lambda x, i: lax.squeeze(lax.slice(x, (1, 0), (2, 4)), (0,))",
    "lambda x, i: lax.concatenate([x, x], 1)",
    "lambda x, i: lax.pad(x, np.float32(0), [(1, -1, 0), (0, 0, 2)])",
    "lambda x, i: lax.rev(x, (0,))",
    "lambda x, i: lax.iota(np.int32, 5)",
    "lambda x, i: lax.broadcasted_iota(np.int32, (5, 3), 1)",
    "lambda x, i: lax.split(x, (1, 2))",
    "lambda x, i: lax.expand_dims(x, (0, 2))",
    "lambda x, i: lax.broadcast(x, (2,))",
    "lambda x, i: lax.collapse(x, 0, 2)",
    "lambda x, i: lax.full((2, 3), 1.5)",
    "lambda x, i: lax.full_like(x, 1)",
    "lambda x, i: lax.tile(x, (2, 1))",
    "lambda x, i: lax.slice(x, (0, 1), (2, 3), (1, 2))",
    "lambda x, i: lax.slice_in_dim(x, 1, -1, 2, 1)",
    "lambda x, i: lax.index_in_dim(x, -1, 1, False)",
    "lambda x, i: lax.dynamic_slice(x, (np.int32(1), np.int32(0)), (1, 4))",
    "lambda x, i: lax.dynamic_slice(x, (0, i), (1, 2))",
    "lambda x, i: lax.dynamic_slice(x, (lax.reshape(lax.full((1,), 1), ()), i), (1, 2))",
    "lambda x, i: lax.gather(x, np.zeros((2, 1), np.int32), lax.GatherDimensionNumbers((1,), (0,), "
    "(0,)), (1, 4))",
    "lambda x, i: lax.scatter(x, np.zeros((2, 1), np.int32), x[:2], lax.ScatterDimensionNumbers("
    "(1,), (0,), (0,)), mode='clip')",
]


def normal(text):
    """Return a program's text on one line, without the wrappers of NumPy's numbers."""
    text = re.sub(r"np\.int64\((-?\d+)\)", r"\1", text)
    return re.sub(r"\s*([\[\]])\s*", r"\1", re.sub(r"\s+", " ", text))


@pytest.mark.parametrize("source", PROGRAMS)
def test_programs_print_as_in_jax(jax_oracle, source):
    if "x[:2]" in source:
        source = source.replace("x[:2]", "lax.slice(x, (0, 0), (2, 4))")
    want = jax_oracle.jaxpr(source, X, I)
    fun = eval(source, dict(NAMES))  # the test's own text

    def flat(*args):
        out = fun(*args)
        return out if isinstance(out, (list, tuple)) else [out]

    got = jaxpr_text(trace_flat(flat, [put(X).aval, put(I).aval]).jaxpr)
    assert normal(got) == normal(want)


VALUES = [
    *(f"lax.dynamic_slice_in_dim(x, jnp.asarray(np.int32({n})), 2)" for n in (-9, -2, 0, 5)),
    "lax.dynamic_index_in_dim(x, i, 1, False)", "lax.dynamic_index_in_dim(x, -1, 1)",
    "lax.dynamic_update_slice_in_dim(x, lax.slice_in_dim(x, 0, 1), i, 0)",
    "lax.dynamic_update_index_in_dim(x, lax.index_in_dim(x, 0, 0, False), -1, 0)",
    "lax.dynamic_update_slice(x, lax.slice(x, (0, 0), (2, 2)), (i, -1))",
    "lax.dynamic_slice(x, np.array([5, -2]), (2, 2))",
    "lax.pad(x, -1.0, [(2, -1, 1), (-1, 0, 2)])", "lax.full((2,), 3)", "lax.full((2,), 3, np.int8)",
    "lax.full_like(x, 2.7, np.int32)", "lax.tile(x, (2, 3))", "lax.iota(np.uint8, 300)",
]


@pytest.mark.parametrize("source", VALUES)
def test_values_and_weak_types_are_as_in_jax(jax_oracle, source):
    want = jax_oracle.run(f"(lambda x, i: {source})(jnp.asarray(x), jnp.asarray(i))", x=X, i=I)
    got = eval(source, {**NAMES, "x": put(X), "i": put(I)})
    assert (got.aval.dtype, got.aval.weak_type) == (want.value.dtype, want.weak)
    np.testing.assert_array_equal(np.asarray(got), want.value)


REFUSED = [
    "lax.reshape(x, (-1,))", "lax.squeeze(x, (0,))", "lax.squeeze(x, (5,))",
    "lax.concatenate([], 0)", "lax.concatenate([x, lax.reshape(x, (12,))], 0)",
    "lax.concatenate([x, lax.slice(x, (0, 0), (3, 2))], 0)", "lax.concatenate([x, x], 2)",
    "lax.concatenate([x, lax.full((3, 4), 1)], 0)",
    "lax.pad(x, 1, [(0, 0, 0)] * 2)", "lax.pad(x, 1.0, [(0, 0, 0)])",
    "lax.pad(x, x, [(0, 0, 0)] * 2)", "lax.pad(x, 0.0, [(0, 0, -1)] * 2)",
    "lax.pad(x, 0.0, [(-4, 0, 0)] * 2)", "lax.rev(x, (0, 0))", "lax.rev(x, (2,))",
    "lax.iota(int, -1)", "lax.iota(bool, 2)", "lax.broadcasted_iota(int, (2,), 1)",
    "lax.split(x, (1, 1))", "lax.split(x, (4, -1))", "lax.split(x, (3,), 4)",
    "lax.slice(x, (0, 0), (1, 4), (1,))", "lax.dynamic_slice(x, (0,), (1,))",
    "lax.dynamic_slice(x, (0.0, 0), (1, 1))", "lax.dynamic_slice(x, (0, np.int8(1)), (1, 1))",
    "lax.dynamic_slice(x, (np.uint8(0), 1), (1, 1))",
    "lax.dynamic_update_slice(x, lax.reshape(x, (12,)), (0, 0))",
    "lax.dynamic_update_slice(x, lax.full((4, 4), 1.0), (0, 0))",
    "lax.dynamic_update_slice(x, lax.full((3, 4), 1), (0, 0))",
    "lax.tile(x, (2,))", "lax.expand_dims(x, (0, 0))", "lax.expand_dims(x, (7,))",
    "lax.full((-1,), 0)", "lax.full((2,), x)",
    "lax.gather(x, np.zeros((2, 1), np.int32), lax.GatherDimensionNumbers((1,), (0,), (0,)), "
    "(1, 4), mode='foo')",
]


@pytest.mark.parametrize("source", REFUSED)
def test_what_jax_refuses_is_refused_with_its_words(jax_oracle, source):
    with pytest.raises(oracle.JaxError) as theirs:
        jax_oracle.run(f"(lambda x: {source})(jnp.asarray(x))", x=X)
    with pytest.raises(Exception) as ours:  # the type is compared below
        eval(source, {**NAMES, "x": put(X)})
    kinds = [cls.__name__ for cls in type(ours.value).__mro__]
    assert theirs.value.kind in kinds, (str(theirs.value), kinds)
    words = theirs.value.message.split(" (Tip")[0].split("\n")[0].rstrip(". ")
    assert words in str(ours.value)


def test_the_number_of_results_of_an_eager_operation_follows_its_operand():
    # Arrays of NumPy and of the engine are other signatures of one program.
    for x in (np.ones((3, 4), "f"), np.ones((0, 4), "f")):
        assert len(stacking.unstack(put(x))) == len(x)
    assert len(stacking.unstack(np.ones((3, 4), "f"))) == 3
