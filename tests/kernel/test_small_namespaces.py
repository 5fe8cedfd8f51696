"""Do the small public namespaces do what JAX's do: flatten_util, dlpack, ops?"""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem import api_util, dlpack
from saem.flatten_util import ravel_pytree


def test_a_pytree_as_one_vector(jax_oracle):
    def program():
        result = []
        for t in ({"a": jnp.ones((2, 3)), "b": (1, 2.5)}, [], jnp.arange(3), 1, [True, 2],
                  {"i": jnp.arange(3), "f": jnp.ones(2, jnp.float16)}):
            vector, back = ravel_pytree(t)
            result += [vector, back(vector), jax.jit(lambda t: ravel_pytree(t)[0])(t)]
        vector, back = ravel_pytree({"w": jnp.ones((2, 2)), "b": jnp.arange(2.0)})
        loss = lambda v: (back(v)["w"] @ back(v)["b"] ** 2).sum()
        return [*result, jax.grad(loss)(vector), jax.jit(jax.hessian(loss))(vector)]

    same(jax_oracle, program)
    same_error(jax_oracle, "ravel_pytree((1, 2.5))[1](jnp.ones(2, int))",
               "unravel function given array of dtype int32, but expected dtype float32",
               within=__name__)
    same_error(jax_oracle, "ravel_pytree((1., 2.5))[1](jnp.ones(3))",
               "Sum of sizes 2 must be equal to dimension 0 of the operand shape [3]",
               within=__name__)


def segments(f):
    """Return what a function that combines segments gives, of vectors, stacks and in ``jit``."""
    d, i = jnp.arange(5.0) + 1, jnp.array([0, 0, 1, 3, -1])
    return [
        f(d, i),
        f(d, i, 3),
        f(d, i, 6, bucket_size=2),
        f(d.astype(int), i, 4, mode="clip"),
        f(jnp.ones((5, 2, 3)), i, 4),
        jax.jit(f, static_argnums=2)(d, i, 4),
        jax.vmap(lambda d: f(d, i, 4))(jnp.stack([d, 2 * d])),
        [e.primitive.name for e in jax.make_jaxpr(lambda d, i: f(d, i, 3))(d, i).eqns],
    ]


def slope_of_segments(f):
    def total(d):
        found = f(d, jnp.array([0, 0, 1, 3, -1]), 4)
        return jnp.where(jnp.isfinite(found), found, 0).sum()

    return jax.grad(total)(jnp.arange(5.0) + 1)


@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_max", "segment_min"])
def test_segments(jax_oracle, name):
    same(jax_oracle, f"segments(jax.ops.{name})", within=__name__)


@pytest.mark.parametrize("name", ["segment_sum", "segment_max", "segment_min"])
def test_segments_have_derivatives(jax_oracle, name):
    same(jax_oracle, f"slope_of_segments(jax.ops.{name})", within=__name__)


def test_segments_are_counted(jax_oracle):
    same_error(jax_oracle, "jax.ops.segment_sum(jnp.ones(2), jnp.arange(2), -1)",
               "num_segments must be non-negative.")
    same_error(jax_oracle, "jax.jit(jax.ops.segment_sum)(jnp.ones(2), jnp.arange(2))",
               "segment_sum() `num_segments` argument.")


def test_lib_tells_the_version_of_jaxlib():
    assert jax.lib.__version__ == version("jaxlib")


def test_dlpack(jax_oracle):
    def program():
        return [
            dlpack.from_dlpack(np.arange(3)),
            dlpack.from_dlpack(np.ones(2, np.float32)),
            [dlpack.is_supported_dtype(d) for d in (
                jnp.bfloat16, "bool", "int4", "complex64", "float8_e4m3fn", "float64", "int8")],
        ]

    same(jax_oracle, program)
    same_error(jax_oracle, "dlpack.from_dlpack(3)",
               "must have __dlpack__ and __dlpack_device__ methods", within=__name__)
    x = jnp.arange(4.0)
    np.testing.assert_array_equal(np.from_dlpack(jax.dlpack.from_dlpack(x)), [0, 1, 2, 3])


def test_two_passes(jax_oracle):
    def program():
        x, w = jnp.arange(4.0).reshape(2, 2), jnp.ones((2, 2))
        result = []
        for jitted in (True, False):
            fwd, bwd = jax.fwd_and_bwd(lambda x, w: jnp.sin(x @ w), (0, 1), jitted=jitted)
            y, kept = fwd(x, w)
            result += [y, bwd(kept, y)]
        fwd, bwd = jax.fwd_and_bwd(lambda x, w: (x @ w, 3), 0, has_aux=True)
        y, kept, aux = fwd(x, w)
        result += [y, bwd(kept, y), int(aux)]
        return result

    same(jax_oracle, program)


def test_api_util(jax_oracle):
    def program():
        return [
            api_util.flatten_axes("in_axes", jax.tree.structure((1, (2, 3))), (0, None)),
            api_util.rebase_donate_argnums((3, 4), (0, 1)),
            api_util.safe_map(max, [1, 5], [2, 3]),
            api_util.shaped_abstractify(3).weak_type,
            api_util.shaped_abstractify(jax.core.ShapedArray((2,), np.int8)).str_short(),
        ]

    same(jax_oracle, program)
    same_error(jax_oracle, "api_util.safe_map(max, [1], [2, 3])",
               "safe_map() argument 2 is longer than argument 1", within=__name__)


P = jax.sharding.PartitionSpec


def under(kind, f):
    """Return what ``f`` gives of an array along a mesh axis of a kind, which is in force."""
    mesh = jax.make_mesh((1,), ("x",), axis_types=(kind,))
    with jax.set_mesh(mesh):
        return f(jax.device_put(jnp.arange(4.0), P("x")))


def test_marks_of_axes(jax_oracle):
    def program():
        def explicit(x):
            f = jax.sharding.auto_axes(lambda x: jnp.sin(x) * 2, axes="x", out_sharding=P("x"))
            g = jax.sharding.auto_axes(lambda x: x * 2)
            return [f(x), f(x).sharding.spec == P("x"), g(x, out_sharding=P("x")), jax.jit(f)(x)]

        def auto(x):
            h = jax.sharding.explicit_axes(lambda x: x * 2, axes="x", in_sharding=P("x"))
            return [h(x), repr(jax.sharding.ManualAxisType(varying={"i"})),
                    jax.sharding.AbstractDevice("h", 2, "cpu").num_cores]

        kinds = jax.sharding.AxisType
        return [under(kinds.Explicit, explicit), under(kinds.Auto, auto)]

    def refused():
        return under(jax.sharding.AxisType.Explicit, jax.sharding.auto_axes(lambda x: x))

    same(jax_oracle, program)
    same_error(jax_oracle, refused, "Missing required keyword argument: 'out_sharding'")
