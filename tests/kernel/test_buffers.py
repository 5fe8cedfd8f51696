"""Does Python write into a program's buffers as in JAX?

Jaxprs, values and refusals are JAX's, from the second process.
"""

from __future__ import annotations

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem.experimental.buffer_callback import Buffer, ExecutionStage, buffer_callback

x = jnp.arange(3.0)
S = jax.ShapeDtypeStruct((3,), np.float32)


def twice(ctx, out, a):
    np.asarray(out)[...] = np.asarray(a) * 2


def both(ctx, out, a, b):
    np.asarray(out["sum"])[...] = np.asarray(a) + np.asarray(b["c"])
    np.asarray(out["more"])[...] = np.asarray(a) > 1


f = buffer_callback(twice, S)
g = buffer_callback(both, {"sum": S, "more": jax.ShapeDtypeStruct((3,), bool)})
REFUSED = {
    "jax.grad(lambda a: f(a).sum())(x)": "Buffer callbacks do not support JVP. Please use "
        "`jax.custom_jvp` to use callbacks while taking gradients.",
    "jax.vmap(f)(jnp.ones((2, 3)))": "vmap is only supported for the buffer_callback primitive",
    "buffer_callback(twice, S, input_output_aliases={1: 0})(x)": "input_output_aliases contains "
        "the mapping '1:0' with input index 1 outside the range [0, 1).",
    "jax.block_until_ready(jax.jit(buffer_callback(lambda ctx, out, a: 1 / 0, S))(x))":
        "ZeroDivisionError",
}


def test_programs_are_those_of_jax(jax_oracle):
    def program():
        def every(method):
            return jax.vmap(buffer_callback(twice, S, vmap_method=method), 1)

        methods = ["sequential", "expand_dims", "broadcast_all"]
        aliased = buffer_callback(twice, S, has_side_effect=True, input_output_aliases={0: 0})
        return [
            f(x),
            jax.jit(f)(x),
            g(x, {"c": x}),
            jax.jit(lambda a: g(a, {"c": a})["sum"] + 1)(x),
            str(jax.make_jaxpr(f)(x)),
            str(jax.make_jaxpr(lambda a: g(a, {"c": a}))(x)),
            str(jax.make_jaxpr(aliased)(x)),
            *[str(jax.make_jaxpr(every(m))(jnp.ones((3, 2)))) for m in methods],
            *[every(m)(jnp.arange(6.0).reshape(3, 2)) for m in methods],
        ]

    same(jax_oracle, program)


@pytest.mark.parametrize("source", REFUSED)
def test_refusals_are_jaxs(jax_oracle, source):
    same_error(jax_oracle, source, REFUSED[source], within=__name__)


def test_the_function_sees_buffers_and_their_stage():
    seen = []

    def look(context, out, x):
        seen.append((context.stage, type(x), x.shape, x.dtype, x.writeable, out.writeable))
        np.asarray(out)[...] = 1

    f = buffer_callback(look, jax.ShapeDtypeStruct((2,), np.float32))
    np.testing.assert_array_equal(f(np.arange(3, dtype=np.int32)), [1, 1])
    assert seen == [(ExecutionStage.EXECUTE, Buffer, (3,), np.dtype(np.int32), False, True)]
