"""Does one see where the parts of an array lie, outside jit and inside?"""

from __future__ import annotations

import contextlib
import io

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
               if line.startswith("│")]
        assert got == rows
        assert len({len(line) for line in lines}) == 1, "the frame is straight"
        index = y.sharding.devices_indices_map(y.shape)
        numbers = {int(n) for row in got for cell in row for n in cell.split()[1].split(",")}
        assert numbers == {d.id for d in index}


def test_inside_jit_it_is_drawn_when_the_program_is_compiled(x):
    outside = drawn(debug.visualize_array_sharding, x)
    inside = drawn(lambda: jax.jit(lambda x: (debug.visualize_array_sharding(x), x)[1])(x))
    assert inside == outside and len(outside) == 9


def test_one_dimension_and_sizes():
    mesh = jax.make_mesh((8,), ("d",))
    sharding = NamedSharding(mesh, P("d"))
    lines = drawn(debug.visualize_sharding, (16,), sharding, use_color=False)
    assert len(lines) == 3 and lines[1].count("CPU") == 8
    tall = drawn(debug.visualize_sharding, (16,), sharding, use_color=False, scale=3.0)
    assert len(tall) == 5
    with pytest.raises(ValueError, match="1 and 2 dimensions"):
        debug.visualize_sharding((2, 2, 2), sharding)
