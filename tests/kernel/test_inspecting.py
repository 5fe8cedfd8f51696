"""Does one see where the parts of an array lie, outside jit and inside?"""

from __future__ import annotations

import contextlib
import io
import itertools

import numpy as np
import pytest
from both import same

import saem as jax
import saem.numpy as jnp
from saem import debug, lax
from saem.sharding import NamedSharding
from saem.sharding import PartitionSpec as P

pytestmark = pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")


@pytest.fixture
def x():
    """An array of 8 rows and 4 columns, cut into four by two."""
    mesh = jax.make_mesh((4, 2), ("d", "e"))
    return jax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("d", "e")))


def specs(fun, *args):
    """Return the specs that ``fun(seen.append)`` reports on ``args``."""
    seen = []
    jax.block_until_ready(fun(seen.append)(*args))
    return [s.spec if isinstance(s, NamedSharding) else s for s in seen]


def look(value, callback):
    debug.inspect_array_sharding(value, callback=callback)
    return value


CASES = {
    "as it is": (lambda see: lambda x: look(x, see), [P("d", "e")]),
    "transposed": (lambda see: lambda x: look(x.T, see), [P("e", "d")]),
    "summed": (lambda see: lambda x: look(jnp.sum(x), see), [P()]),
    "in a loop": (lambda see: lambda x: lax.fori_loop(0, 2, lambda i, c: look(c * 2, see), x),
                  [P("d", "e")]),
    "a pytree": (lambda see: lambda x: look({"a": x, "b": x.T}, see), [P("d", "e"), P("e", "d")]),
    "under grad": (lambda see: jax.grad(lambda x: jnp.sum(look(x, see))), [P("d", "e")]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_sharding_is_told_when_the_program_is_compiled(x, name):
    fun, wanted = CASES[name]
    assert specs(lambda see: jax.jit(fun(see)), x) == wanted


def test_the_partitioner_decides_alike_in_jax(jax_oracle):
    def program():
        types = (jax.sharding.AxisType.Auto,) * 2
        mesh = jax.make_mesh((4, 2), ("d", "e"), axis_types=types)
        place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d", "e"))
        x = jax.device_put(np.ones((8, 4), np.float32), place)
        seen = []

        def f(x):
            for y in (x, x.T, jax.numpy.sum(x), x @ x.T, x * 2 + 1):
                jax.debug.inspect_array_sharding(
                    y, callback=lambda s: seen.append([str(axis) for axis in s.spec])
                )
            return x

        jax.jit(f)(x)
        return sorted(seen)

    same(jax_oracle, program)


def test_outside_jit_it_is_told_at_once_and_each_program_is_asked(x):
    assert specs(lambda see: lambda x: look(x, see), x) == [P("d", "e")]
    for _ in range(2):  # the same program made anew is compiled anew: it is asked again
        assert specs(lambda see: jax.jit(lambda x: look(x, see)), x) == [P("d", "e")]
    one = specs(lambda see: jax.jit(lambda x: look(x, see)), np.ones(3, np.float32))
    assert len(one) == 1 and one[0].num_devices == 1


def drawn(fun, *args, **kwargs):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        fun(*args, **kwargs)
    return out.getvalue().splitlines()


@pytest.mark.parametrize(("spec", "rows"), [
    (P("d", "e"), [["CPU 0", "CPU 1"], ["CPU 2", "CPU 3"], ["CPU 4", "CPU 5"], ["CPU 6", "CPU 7"]]),
    (P("e", "d"), [["CPU 0", "CPU 2", "CPU 4", "CPU 6"], ["CPU 1", "CPU 3", "CPU 5", "CPU 7"]]),
    (P(None, "d"), [["CPU 0,1", "CPU 2,3", "CPU 4,5", "CPU 6,7"]]),
    (P(), [["CPU 0,1,2,3,4,5,6,7"]]),
])
def test_a_drawing_names_the_devices_of_every_part(spec, rows):
    mesh = jax.make_mesh((4, 2), ("d", "e"))
    y = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh, spec))
    for color in (False, True):
        lines = drawn(debug.visualize_array_sharding, y, use_color=color)
        got = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines
               if "CPU" in line]
        assert got == rows
        assert len({len(line) for line in lines}) == 1, "the frame is straight"
        index = y.sharding.devices_indices_map(y.shape)
        numbers = {int(n) for row in got for cell in row for n in cell.split()[1].split(",")}
        assert numbers == {d.id for d in index}


def test_inside_jit_it_is_drawn_when_the_program_is_compiled(x):
    outside = drawn(debug.visualize_array_sharding, x)
    inside = drawn(lambda: jax.jit(lambda x: (debug.visualize_array_sharding(x), x)[1])(x))
    assert inside == outside and len(outside) == 9


# The shape, the spec on a mesh of 4 x 2 and the options; the widths of columns, the heights of rows
# and the line that has the first name, as JAX 0.10.2 draws them where rich 14 is installed.
DRAWN = [
    ((8, 8), P("d", "e"), {}, [10, 10], [1] * 4, "  CPU 0   "),
    ((8, 8), P("d", "e"), {"scale": 2.0}, [23, 23], [4] * 4, "         CPU 0         "),
    ((8, 8), P("d", "e"), {"scale": 0.5}, [7, 7], [1] * 4, " CPU 0 "),
    ((8, 8), P("d", "e"), {"min_width": 20}, [18, 18], [1] * 4, "      CPU 0       "),
    ((8, 8), P("e", "d"), {}, [7] * 4, [4, 4], " CPU 0 "),
    ((8, 8), P("e"), {}, [23], [4, 4], "      CPU 0,2,4,6      "),
    ((8, 64), P("d"), {}, [78], [1] * 4, " " * 35 + "CPU 0,1" + " " * 36),
    ((16, 8), P("e"), {}, [11], [4, 4], "CPU 0,2,4,6"),
    ((64, 8), P(), {}, [19], [9], "CPU 0,1,2,3,4,5,6,7"),
    ((8, 8), P(), {"scale": 1.7}, [40], [16], " " * 10 + "CPU 0,1,2,3,4,5,6,7" + " " * 11),
    ((8, 12), P(None, "e"), {"scale": 0.95, "max_width": 150}, [14, 14], [8],
     " CPU 0,2,4,6  "),
    ((16,), P("d"), {}, [7] * 4, [1], "CPU 0,1"),
    ((8,), P(), {"scale": 10.0}, [28], [1], "    CPU 0,1,2,3,4,5,6,7     "),
]


@pytest.mark.parametrize(("shape", "spec", "options", "widths", "heights", "first"), DRAWN)
def test_cells_have_the_sizes_that_jax_draws(shape, spec, options, widths, heights, first):
    sharding = NamedSharding(jax.make_mesh((4, 2), ("d", "e")), spec)
    lines = drawn(debug.visualize_sharding, shape, sharding, use_color=False, **options)
    assert lines[0] == "┌" + "┬".join("─" * w for w in widths) + "┐"
    between = [i for i, line in enumerate(lines) if line[0] in "┌├└"]
    assert [b - a - 1 for a, b in itertools.pairwise(between)] == heights
    assert lines[1 + (heights[0] - 1) // 2].split("│")[1] == first


def test_a_table_is_no_wider_than_asked_and_keeps_its_names():
    sharding = NamedSharding(jax.make_mesh((4, 2), ("d", "e")), P("d", "e"))
    lines = drawn(debug.visualize_sharding, (8, 64), sharding, use_color=False, max_width=40)
    assert {len(line) for line in lines} == {39}, "two columns of one width, three borders"
    assert next(line.split() for line in lines if "CPU" in line)[1:3] == ["CPU", "0"]


def test_a_drawing_has_one_or_two_dimensions():
    sharding = NamedSharding(jax.make_mesh((8,), ("d",)), P("d"))
    with pytest.raises(ValueError, match="1 and 2 dimensions"):
        debug.visualize_sharding((2, 2, 2), sharding)
