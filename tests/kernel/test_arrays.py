"""Does a concrete array show, convert, copy and refuse as JAX's does?"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from both import same, same_error, source_of

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.compile import dlpack
from saem.core.avals import ShapedArray
from saem.core.config import shortcuts as switch

SHOWN = {
    "scalar": "np.float32(1.5)", "weak scalar": "1.5", "weak int": "3", "bool": "True",
    "weak complex": "1.5 + 2j", "empty": "np.zeros((0,), np.float32)",
    "empty matrix": "np.zeros((0, 3), np.float32)", "row": "np.arange(3)",
    "wide": "np.arange(40)", "very wide": "np.arange(5000)",
    "floats": "np.linspace(0, 1, 20, dtype=np.float32)",
    "matrix": "np.arange(6, dtype=np.float32).reshape(2, 3)",
    "wide matrix": "np.arange(60).reshape(3, 20)",
    "big matrix": "np.arange(4000).reshape(40, 100)",
    "cube": "np.arange(24).reshape(2, 3, 4)", "bools": "np.asarray([True, False])",
    "half": "np.asarray([1.5, 2.25], np.float16)",
    "bfloat": "np.asarray([1.5, 2.25], ml_dtypes.bfloat16)",
    "small ints": "np.asarray([1, -2], np.int8)", "unsigned": "np.asarray([1, 2], np.uint16)",
    "complex": "np.asarray([1 + 2j, 3.5], np.complex64)",
    "specials": "np.asarray([np.nan, np.inf, -0.0, 1e-30], np.float32)",
    "just too long": "np.arange(17)", "long": "np.arange(15)",
    "shorter": "np.arange(14)", "short": "np.arange(13)",
    "float8": "np.asarray([1.5], ml_dtypes.float8_e4m3fn)",
    "column": "np.arange(3, dtype=np.float32)[:, None]",
}


def made(source):
    import ml_dtypes  # noqa: PLC0415 - named in the sources above

    return jax.device_put(eval(source, {"np": np, "ml_dtypes": ml_dtypes}))


@pytest.mark.parametrize("name", SHOWN)
def test_it_prints_as_in_jax(jax_oracle, name):
    source = SHOWN[name]
    same(jax_oracle, f"(lambda x: [repr(x), str(x), f'{{x}}', x.weak_type])"
         f"(jax.device_put({source}))")


def shown_in(width):
    """Return what arrays of many lengths show where a line is so wide."""
    shown = []
    with np.printoptions(linewidth=width):
        for n in range(40):
            shown += [repr(jnp.arange(n)), repr(1.5 * jnp.ones((2, n))), repr(jnp.zeros((0, n)))]
    return shown


@pytest.mark.parametrize("width", [30, 75, 76, 120])
def test_where_the_dtype_is_shown_depends_on_the_line(jax_oracle, width):
    same(jax_oracle, f"shown_in({width})", within=__name__)


def test_it_formats_like_a_number():
    assert f"{made('np.float32(1.25)'):.1f}" == "1.2"
    assert f"{made('3'):04d}" == "0003"


@pytest.mark.parametrize("name", ["scalar", "weak scalar", "matrix", "bfloat", "empty matrix"])
def test_pickling_and_copying_keep_value_and_type(name):
    x = made(SHOWN[name])
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert type(y) is type(x) and y.dtype == x.dtype and y.weak_type == x.weak_type
        assert np.asarray(y).tobytes() == np.asarray(x).tobytes() and y.shape == x.shape


def pickled():
    return pickle.loads(pickle.dumps(jax.device_put(1.5)))


def test_a_pickle_does_not_move_a_weak_type_into_numpy(jax_oracle):
    weak = jax_oracle.run(source_of(pickled))
    assert pickled().weak_type == weak.weak


def test_it_iterates_and_counts():
    x = jax.device_put(np.arange(6).reshape(2, 3))
    assert len(x) == 2 and x.ndim == 2 and x.size == 6 and x.nbytes == 24 and x.itemsize == 4
    with pytest.raises(TypeError, match="len"):
        len(made("1.5"))
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        iter(made("1.5"))


ROWS = [((0,), "float32"), ((0, 3), "int8"), ((1,), "float32"), ((2, 0), "float32"),
        ((3,), "bool"), ((16,), "bfloat16"), ((17, 2), "int32"), ((50, 2, 3), "complex64"),
        ((128,), "uint8"), ((3, 40, 500), "float32"), ((4,), "float16")]


@pytest.mark.parametrize(("shape", "dtype"), ROWS, ids=str)
@pytest.mark.parametrize("shortcuts", [True, False])
def test_iteration_gives_the_rows(shape, dtype, shortcuts):
    numbers = np.arange(np.prod(shape)).reshape(shape).astype(jnp.dtype(dtype))
    x = jnp.asarray(numbers)
    with switch(shortcuts):
        rows = list(x)
    assert len(rows) == shape[0] and all(isinstance(row, jax.Array) for row in rows)
    for i, row in enumerate(rows):
        assert row.aval == x[i].aval and np.asarray(row).tobytes() == numbers[i].tobytes()


def test_rows_are_weak_and_committed_as_their_array():
    weak = jnp.broadcast_to(jnp.asarray(2.), (20,))
    assert all(row.weak_type for row in weak)
    committed = jax.device_put(np.arange(20), jax.devices()[0])
    assert all(row.committed and row.devices() == {jax.devices()[0]} for row in committed)
    assert not any(row.committed for row in jnp.arange(20))


def test_rows_of_a_sharded_array_come_from_the_host_and_those_of_a_replicated_one_do_not():
    """As in JAX (``result_places.txt``, ``test_explicit.py``)."""
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    for spec in (jax.P("x", "y"), jax.P(None, "y"), jax.P("x"), jax.P()):
        x = jax.device_put(np.arange(64.).reshape(8, 8), jax.NamedSharding(mesh, spec))
        for i, row in enumerate(x):
            here = x[i].sharding if x.is_fully_replicated else jnp.zeros(()).sharding
            assert row.sharding == here and row.committed == x.is_fully_replicated
            assert row.tolist() == list(range(8 * i, 8 * i + 8))


def test_an_array_on_several_devices_is_not_handed_over():
    x = jax.device_put(np.arange(4.), jax.NamedSharding(jax.make_mesh((2,), ("i",)), jax.P("i")))
    for hand_over in (x.__dlpack__, x.__dlpack_device__, lambda: np.from_dlpack(x),
                      lambda: jnp.from_dlpack(x), lambda: jax.dlpack.from_dlpack(x)):
        with pytest.raises(BufferError, match="one device"):
            hand_over()


def test_an_iterator_ends_where_its_array_is_deleted_before_it():
    x = jnp.arange(3.)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        list(x)


def test_it_gives_python_numbers():
    assert made("np.float32(1.5)").item() == 1.5 and type(made("3").item()) is int
    assert made("np.arange(6).reshape(2, 3)").item(1, 2) == 5
    assert made("np.arange(4).reshape(2, 2)").tolist() == [[0, 1], [2, 3]]
    assert (int(made("3.7")), float(made("3")), complex(made("1.5")), bool(made("0"))) == (
        3, 3.0, 1.5 + 0j, False)
    assert [10, 20, 30][made("1")] == 20
    assert np.arange(3, dtype=np.int32).tobytes() == made("np.arange(3, dtype=np.int32)").tobytes()


@pytest.mark.parametrize(("source", "sentence"), [
    ("bool(jax.device_put(np.ones(2)))", "The truth value of an array with more than one element"),
    ("float(jax.device_put(np.ones(2)))", "Only scalar arrays can be converted to Python scalars"),
    ("int(jax.device_put(np.ones((1, 1))))", "Only scalar arrays can be converted"),
    ("[1, 2][jax.device_put(1.5)]", "Only integer scalar arrays can be converted to a"),
    ("hash(jax.device_put(1.5))", "unhashable type"),
    ("iter(jax.device_put(1.5))", "iteration over a 0-d array"),
    ("jax.device_put(np.ones(2)).item()", ""),
    ("jax.device_put('text')", "is not a valid JAX type"),
    ("jax.device_put(np.ones(2)).__setitem__(0, 1)", "immutable"),
])
def test_refusals_are_those_of_jax(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence)


def test_numpy_sees_a_view_it_cannot_write_to():
    x = jax.device_put(np.arange(3, dtype=np.float32))
    view = np.asarray(x)
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 9
    own = np.array(x)
    own[0] = 9
    np.testing.assert_array_equal(x, [0, 1, 2])
    assert np.asarray(x, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        x.__array__(np.float64, copy=False)


def test_the_callers_numpy_array_may_change_afterwards():
    mine = np.arange(3, dtype=np.float32)
    x = jax.device_put(mine)
    mine[0] = 9
    np.testing.assert_array_equal(x, [0, 1, 2])


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "bool", "complex64", "float16",
                                   "bfloat16", "float8_e5m2", "float8_e4m3fn"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 3), (2, 3)])
def test_a_capsule_tells_its_type(dtype, shape):
    capsule = jnp.zeros(shape, dtype).__dlpack__()
    assert dlpack.aval_in(capsule) == ShapedArray(shape, np.dtype(jnp.dtype(dtype)))


def test_dlpack_shares_both_ways():
    x = jax.device_put(np.arange(4, dtype=np.float32))
    there = np.from_dlpack(x)
    np.testing.assert_array_equal(there, [0, 1, 2, 3])
    assert x.__dlpack_device__() == (1, 0)


def aligned(dtype="float32", offset=0, count=64):
    """NumPy's numbers in memory that begins ``offset`` bytes after a multiple of 64."""
    size = count * np.dtype(dtype).itemsize
    memory = np.zeros(size + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    numbers = memory[start:start + size].view(dtype)
    numbers[...] = np.arange(count)
    return numbers


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "bool", "complex64", "float16"])
def test_memory_of_other_libraries_is_shared(dtype):
    theirs = aligned(dtype)
    x = jnp.from_dlpack(theirs)
    assert x.unsafe_buffer_pointer() == theirs.ctypes.data and x.dtype == theirs.dtype
    before = np.asarray(x + x)
    np.testing.assert_array_equal(before, theirs + theirs)
    copied = jnp.from_dlpack(theirs, copy=True)
    theirs[0] = 1
    assert x[0] == 1 and copied[0] == 0
    there = jnp.from_dlpack(aligned(dtype).reshape(4, 16).T, copy=False)
    np.testing.assert_array_equal(jax.jit(lambda x: x + x)(there), before.reshape(4, 16).T)


@pytest.mark.parametrize("theirs", [
    aligned(offset=4), aligned()[::2], aligned()[::-1], aligned().reshape(8, 8)[:, :4],
    np.broadcast_to(aligned(count=1), (3, 1, 2)), np.frombuffer(bytes(range(64)), np.uint8)],
    ids=["not aligned", "gaps", "backwards", "part", "broadcast", "only read"])
def test_what_no_array_can_share_is_copied(theirs):
    np.testing.assert_array_equal(jnp.from_dlpack(theirs), theirs)
    np.testing.assert_array_equal(jnp.from_dlpack(theirs, copy=True), theirs)
    with pytest.raises(ValueError, match="Set copy=True or copy=None"):
        jnp.from_dlpack(theirs, copy=False)


def test_capsules_of_what_cannot_be_shared_in_part():
    for theirs in (aligned()[:0], aligned(count=1).reshape(()), aligned().reshape(1, 64, 1)):
        np.testing.assert_array_equal(jnp.from_dlpack(theirs, copy=False), theirs)
    with jax.enable_x64(False):
        narrowed = jnp.from_dlpack(aligned("int64"))
    assert narrowed.dtype == np.int32 and narrowed.tolist() == list(range(64))


class Theirs:
    """An array of a library that has numbers that NumPy has not."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **kw):
        return self.x.__dlpack__(**kw)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_numbers_that_numpy_has_not_are_shared(dtype):
    theirs = jnp.arange(8).astype(dtype)
    x = jnp.from_dlpack(Theirs(theirs), copy=False)
    assert x.dtype == theirs.dtype and x.tolist() == list(range(8))
    assert x.unsafe_buffer_pointer() == theirs.unsafe_buffer_pointer()


def test_a_deleted_array_says_so():
    x = jax.device_put(np.arange(3))
    x.delete()
    assert x.is_deleted() and x.shape == (3,) and x.dtype == np.int32
    for use in (lambda: repr(x), lambda: np.asarray(x), lambda: x.tolist(), lambda: lax.add(x, x),
                lambda: x.item(), lambda: x.devices(), lambda: x.__dlpack__()):
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=int32\[3\]"):
            use()


def test_numpy_operators_leave_the_array_in_charge():
    assert jax.device_put(np.ones(2)).__array_priority__ > np.ones(2).__array_priority__


@pytest.mark.parametrize("value", [2**31, -2**31 - 1, 2**70])
def test_an_integer_that_does_not_fit_is_refused(jax_oracle, value):
    same_error(jax_oracle, f"jax.device_put({value})", "too large")


def test_wide_numpy_types_become_the_default_ones():
    assert jax.device_put(np.float64(1)).dtype == np.float32
    assert jax.device_put(np.arange(3)).dtype == np.int32
    with jax.enable_x64(True):
        assert jax.device_put(np.float64(1)).dtype == np.float64
