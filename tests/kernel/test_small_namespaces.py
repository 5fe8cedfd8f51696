"""Do the small public namespaces do what JAX's do: flatten_util, dlpack, ops?"""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp

RAVEL = """
import importlib
ravel = importlib.import_module(jax.__name__ + ".flatten_util").ravel_pytree
"""


def test_a_pytree_as_one_vector(jax_oracle):
    same(jax_oracle, RAVEL + """
result = []
for t in ({"a": jnp.ones((2, 3)), "b": (1, 2.5)}, [], jnp.arange(3), 1, [True, 2],
          {"i": jnp.arange(3), "f": jnp.ones(2, jnp.float16)}):
    vector, back = ravel(t)
    result += [vector, back(vector), jax.jit(lambda t: ravel(t)[0])(t)]
vector, back = ravel({"w": jnp.ones((2, 2)), "b": jnp.arange(2.)})
loss = lambda v: (back(v)["w"] @ back(v)["b"] ** 2).sum()
result += [jax.grad(loss)(vector), jax.jit(jax.hessian(loss))(vector)]
""")
    same_error(jax_oracle, RAVEL + "result = ravel((1, 2.5))[1](jnp.ones(2, int))",
               "unravel function given array of dtype int32, but expected dtype float32")
    same_error(jax_oracle, RAVEL + "result = ravel((1., 2.5))[1](jnp.ones(3))",
               "Sum of sizes 2 must be equal to dimension 0 of the operand shape [3]")


@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_max", "segment_min"])
def test_segments(jax_oracle, name):
    same(jax_oracle, f"""
    f = jax.ops.{name}
    d, i = jnp.arange(5.) + 1, jnp.array([0, 0, 1, 3, -1])
    result = [
        f(d, i), f(d, i, 3), f(d, i, 6, bucket_size=2), f(d.astype(int), i, 4, mode="clip"),
        f(jnp.ones((5, 2, 3)), i, 4), jax.jit(f, static_argnums=2)(d, i, 4),
        jax.vmap(lambda d: f(d, i, 4))(jnp.stack([d, 2 * d])),
        [e.primitive.name for e in jax.make_jaxpr(lambda d, i: f(d, i, 3))(d, i).eqns],
    ]
    """)


@pytest.mark.parametrize("name", ["segment_sum", "segment_max", "segment_min"])
def test_segments_have_derivatives(jax_oracle, name):
    same(jax_oracle, f"""
    f = lambda d: jax.ops.{name}(d, jnp.array([0, 0, 1, 3, -1]), 4)
    result = jax.grad(lambda d: jnp.where(jnp.isfinite(f(d)), f(d), 0).sum())(jnp.arange(5.) + 1)
    """)


def test_segments_are_counted(jax_oracle):
    same_error(jax_oracle, "result = jax.ops.segment_sum(jnp.ones(2), jnp.arange(2), -1)",
               "num_segments must be non-negative.")
    same_error(jax_oracle, "result = jax.jit(jax.ops.segment_sum)(jnp.ones(2), jnp.arange(2))",
               "segment_sum() `num_segments` argument.")


def test_dlpack(jax_oracle):
    def program():
        dlpack = importlib.import_module(jax.__name__ + ".dlpack")
        return [
            dlpack.from_dlpack(np.arange(3)),
            dlpack.from_dlpack(np.ones(2, np.float32)),
            [
                dlpack.is_supported_dtype(d)
                for d in (
                    jnp.bfloat16,
                    "bool",
                    "int4",
                    "complex64",
                    "float8_e4m3fn",
                    "float64",
                    "int8",
                )
            ],
        ]

    same(jax_oracle, program)
    same_error(jax_oracle, """
    import importlib
    result = importlib.import_module(jax.__name__ + ".dlpack").from_dlpack(3)
    """, "must have __dlpack__ and __dlpack_device__ methods")
    x = jnp.arange(4.0)
    np.testing.assert_array_equal(np.from_dlpack(jax.dlpack.from_dlpack(x)), [0, 1, 2, 3])


def test_two_passes(jax_oracle):
    same(jax_oracle, """
    x, w = jnp.arange(4.).reshape(2, 2), jnp.ones((2, 2))
    result = []
    for jitted in (True, False):
        fwd, bwd = jax.fwd_and_bwd(lambda x, w: jnp.sin(x @ w), (0, 1), jitted=jitted)
        y, kept = fwd(x, w)
        result += [y, bwd(kept, y)]
    fwd, bwd = jax.fwd_and_bwd(lambda x, w: (x @ w, 3), 0, has_aux=True)
    y, kept, aux = fwd(x, w)
    result += [y, bwd(kept, y), int(aux)]
    """)


def test_api_util(jax_oracle):
    def program():
        util = importlib.import_module(jax.__name__ + ".api_util")
        return [
            util.flatten_axes("in_axes", jax.tree.structure((1, (2, 3))), (0, None)),
            util.rebase_donate_argnums((3, 4), (0, 1)),
            util.safe_map(max, [1, 5], [2, 3]),
            util.shaped_abstractify(3).weak_type,
        ]

    same(jax_oracle, program)
    same_error(jax_oracle, """
    import importlib
    result = importlib.import_module(jax.__name__ + ".api_util").safe_map(max, [1], [2, 3])
    """, "safe_map() argument 2 is longer than argument 1")


MARKS = """
P = jax.sharding.PartitionSpec
mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.{kind},))
with jax.set_mesh(mesh):
    x = jax.device_put(jnp.arange(4.), P("x"))
"""


def test_marks_of_axes(jax_oracle):
    same(jax_oracle, MARKS.format(kind="Explicit") + """
    f = jax.sharding.auto_axes(lambda x: jnp.sin(x) * 2, axes="x", out_sharding=P("x"))
    g = jax.sharding.auto_axes(lambda x: x * 2)
    result = [f(x), f(x).sharding.spec == P("x"), g(x, out_sharding=P("x")), jax.jit(f)(x)]
""")
    same(jax_oracle, MARKS.format(kind="Auto") + """
    h = jax.sharding.explicit_axes(lambda x: x * 2, axes="x", in_sharding=P("x"))
    result = [h(x),
              repr(jax.sharding.ManualAxisType(varying={"i"})),
              jax.sharding.AbstractDevice("h", 2, "cpu").num_cores]
""")
    same_error(jax_oracle, MARKS.format(kind="Explicit") +
               "    result = jax.sharding.auto_axes(lambda x: x)(x)",
               "Missing required keyword argument: 'out_sharding'")
