"""Are programs compiled for the layouts that are asked for, and arrays laid out as they say?

Formats, jaxprs, values and refusals are JAX's own, from the second process; what ``jit`` is told of
layouts stands in the text of its programs.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem.experimental.layout import Format, Layout
from saem.experimental.layout import with_layout_constraint as constrained

sharding = jax.sharding
device = jax.devices()[0]
s = sharding.SingleDeviceSharding(device)
mesh = sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
n = sharding.NamedSharding(mesh, sharding.PartitionSpec("x"))
L, A = Layout((1, 0)), Layout.AUTO
x = jnp.arange(6.0).reshape(2, 3)
y = jax.device_put(x, Format(L, s))
sds = jax.ShapeDtypeStruct((2, 3), np.float32)


def said(v):
    return [np.asarray(v), v.format.layout.major_to_minor, v.committed]


def orders(formats):
    return [f.layout.major_to_minor for f in jax.tree.leaves(formats)]


def modes(lowered):
    return re.findall('layout_mode = "([^"]*)"', lowered.as_text())


ARRAYS = ["x", "y", "jax.device_put(np.asarray(x), Format(L, s))",
          "jax.device_put(x, Format(L, n))",
          "jax.device_put(y, Format(Layout((0, 1)), s))", "jax.device_put(x, Format())",
          "y * 2", "y + x", "y.T", "y[0]", "jnp.sum(y)", "jnp.copy(y)", "jnp.array(y)",
          "jax.jit(lambda a: a * 2)(y)", "jax.jit(lambda a: a * 2, in_shardings=Format(L, s))(x)",
          "jax.jit(lambda a: a * 2, in_shardings=Format(L, s))(y)",
          "jax.jit(lambda a: a * 2, in_shardings=Format(L, s))(np.asarray(x))",
          "jax.jit(lambda a: a * 2, out_shardings=Format(L, s))(x)",
          "jax.jit(lambda a: a * 2, out_shardings=y.format)(x)",
          "jax.jit(lambda a: constrained(a * 2, L))(x)", "constrained(x, L)",
          "jax.jit(lambda a: constrained(a * 2, L) + 1)(x)",
          "jax.jit(lambda a: a * 2, donate_argnums=0, out_shardings=Format(L, s))(x * 1)",
          "jnp.float32(1)"]
LOWERED = ["jax.jit(lambda a: a * 2, in_shardings=Format(L, s)).lower(x)",
           "jax.jit(lambda a: a * 2, out_shardings=Format(L, s)).lower(x)",
           "jax.jit(lambda a: a.T @ a, in_shardings=Format(A), out_shardings=Format(A)).lower(x)",
           "jax.jit(lambda a: a * 2).lower(y)", "jax.jit(lambda a: a * 2).lower(x)",
           "jax.jit(lambda a: constrained(a * 2, L)).lower(x)",
           "jax.jit(lambda a: (constrained(a * 2, L) + 1, a)).lower(x)",
           "jax.jit(lambda a: a * 2).lower(jax.ShapeDtypeStruct((2, 3), np.float32, "
           "sharding=Format(L, s)))"]
REFUSED = {
    "jax.device_put(x, Format(A, s))": "sharding and layout in `Layout` instance should be "
        "concrete. Got layout: Format(layout=AUTO",
    "Format(L)": "Sharding has to be concrete when layout is of type",
    "Format('a')": "Invalid value received for the layout argument. Expected values are `None`, "
        "`Layout.AUTO` or an instance of `Layout`. Got a of type",
    "Format(L, 'a')": "Invalid value received for the sharding argument.",
    "jax.device_put(jnp.arange(3.), Format(L, s))": "is incompatible with its layout annotation "
        "Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0): Length of "
        "major_to_minor and the rank of the value should match. Got major_to_minor=(1, 0) and "
        "shape=(3,)",
    "jax.jit(lambda a: a * 2).lower(sds).compile()(y)": "Computation was compiled for input "
        "layouts that disagree with the layouts of arguments passed to it. Here are the 1",
}


def test_formats_print_and_compare_as_in_jax(jax_oracle):
    def program():
        tiled = Layout((0, 1), ((8, 128),))
        shown = (A, L, tiled, Format(L, s), Format(A), Format(), x.format, y.format)
        return [
            *map(repr, shown),
            L == Layout((1, 0)),
            hash(L) == hash(Layout((1, 0))),
            Format(L, s) == Format(L, s),
            x.format == y.format,
            Format(A, s).layout is A,
            repr(L.update(tiling=((8, 128),))),
            L.update(major_to_minor=(0, 1)) == Layout((0, 1)),
            s.has_addressable_devices,
            n.has_addressable_devices,
        ]

    same(jax_oracle, program)


def test_arrays_lie_as_they_were_asked_to(jax_oracle):
    same(jax_oracle, f"[said(v) for v in ({', '.join(ARRAYS)})]", within=__name__)


def test_programs_are_told_of_layouts(jax_oracle):
    same(jax_oracle, f"[modes(v) for v in ({', '.join(LOWERED)})]", within=__name__)


def test_the_compiler_chooses_layouts_where_it_may(jax_oracle):
    def program():
        c = (
            jax.jit(lambda a: a.T * 2, in_shardings=Format(A), out_shardings=Format(A))
            .lower(sds)
            .compile()
        )
        d = jax.jit(lambda a: a.T * 2, in_shardings=Format(L, s)).lower(sds).compile()
        return [
            orders(c.input_formats),
            orders(c.output_formats),
            orders(d.input_formats),
            orders(d.output_formats),
            said(c(jax.device_put(x, c.input_formats[0][0]))),
            said(d(x)),
            said(d(y)),
            jax.jit(lambda a: a.T @ a, in_shardings=Format(A))(x),
        ]

    same(jax_oracle, program)


def test_jaxprs_show_formats(jax_oracle):
    def program():
        return [
            str(jax.make_jaxpr(f)(x))
            for f in (
                lambda a: jax.device_put(a, Format(L, s)),
                lambda a: constrained(a * 2, L),
                jax.grad(lambda a: constrained(a * 2, L).sum()),
            )
        ]

    same(jax_oracle, program)


@pytest.mark.parametrize("source", REFUSED)
def test_refusals_are_jaxs(jax_oracle, source):
    same_error(jax_oracle, source, REFUSED[source], within=__name__)


def test_a_kept_program_looks_how_its_arguments_lie():
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    x = jnp.arange(6.0).reshape(2, 3)
    turned = jax.device_put(x, Format(Layout((1, 0)), device))
    for f in (jax.jit(lambda a: a * 2), lambda a: a * 2):
        for value in (x, x, turned, x, turned, turned):
            np.testing.assert_array_equal(f(value), 2 * np.arange(6.0).reshape(2, 3))
    # Results whose layout XLA chose, and nobody committed to, are copied where that is unusual.
    free = jax.jit(lambda a: a.T, out_shardings=Format(Layout.AUTO))(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(free + np.ones((3, 2), np.float32), np.full((3, 2), 2.0))


def test_layouts_hold_on_several_devices():
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spread = jax.NamedSharding(mesh, jax.P("x"))
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    wanted = Format(Layout((1, 0)), spread)
    out = jax.jit(lambda a: a + 1, out_shardings=wanted)(jax.device_put(x, spread))
    assert out.sharding == spread and out.format.layout.major_to_minor == (1, 0)
    np.testing.assert_array_equal(out, x + 1)
    np.testing.assert_array_equal(jax.jit(lambda a: a * 2)(out), 2 * (x + 1))
    placed = jax.device_put(x, wanted)
    assert placed.format.layout.major_to_minor == (1, 0)
    np.testing.assert_array_equal(placed, x)


quad = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
PLACES = {"on its device": None, "on another": jax.devices()[1],
          "on each": jax.NamedSharding(quad, jax.P()),
          "divided": jax.NamedSharding(quad, jax.P("x"))}
compiled = jax.jit(lambda a: a + 1)
USES = {
    "eager": lambda a: a + 1, "jit": compiled, "given away": jax.jit(compiled, donate_argnums=0),
    "compiled ahead": lambda a: compiled.lower(a).compile()(a),
    "put on a device": lambda a: jax.device_put(a, jax.devices()[2]),
    "put on a mesh": lambda a: jax.device_put(a, jax.NamedSharding(quad, jax.P(None, "x"))),
    "laid out": lambda a: jax.device_put(a, Format(L, a.sharding)),
    "read": np.asarray, "sorted": jnp.sort, "copied": jnp.copy, "derived": jax.grad(jnp.sum),
    "parts": lambda a: a.addressable_shards[0].data + 1,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("where", PLACES)
def test_a_deleted_array_says_so_where_layouts_are_in_use(where, use):
    assert y.format.layout.major_to_minor == (1, 0)  # from here on all programs look at layouts
    gone = jax.device_put(np.ones((4, 4), np.float32), PLACES[where])
    gone.delete()
    with pytest.raises(RuntimeError, match="Array has been deleted with shape=float32"):
        jax.block_until_ready(USES[use](gone))
