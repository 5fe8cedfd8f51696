"""What does an array answer after it was donated or deleted, and who may still use its numbers?

Read before: ``compile.dispatch``, ``compile.arrays``.
Invariant: answers and sentences are JAX's; where its process ends, ours has the same sentence.
"""

from __future__ import annotations

import gc
import math
import warnings

import numpy as np
import pytest
from both import ours, same, same_error, source_of
from oracle import JaxError

import saem as jax
import saem.numpy as jnp
from saem.compile import dispatch
from saem.sharding import NamedSharding
from saem.sharding import PartitionSpec as P


def o(*shape, dtype="float32"):
    return jnp.arange(1, 1 + math.prod(shape)).reshape(shape).astype(dtype)


def donate(f, *args, **options):
    """Return which arguments a call of ``f`` took."""
    jax.jit(f, **options)(*args)
    return [a.is_deleted() for a in jax.tree.leaves(args)]


def used_after(use, shape=(3,)):
    """Return what ``use`` gives of a donated array."""
    x = o(*shape)
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    return use(x)


def used_before_and_after(use):
    """Return what ``use`` gives of a donated array, after three uses that C++ may remember."""
    x = o(3)
    for _ in range(3):
        use(x)
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    return use(x)


@pytest.mark.parametrize("body", [
    "donate(lambda x: x + 1, o(3), donate_argnums=0)",
    "donate(lambda x: x.sum(), o(3), donate_argnums=0)",
    "donate(lambda x, y: (x.sum(), y + 1), o(3), o(2, 2), donate_argnums=(0, 1))",
    "donate(lambda x, y: 0., o(3), o(2, 2, dtype='int32'), donate_argnums=(0, 1),"
    " keep_unused=True)",
    "donate(lambda x, y: y + 1, o(3), o(2), donate_argnums=0)",
    "donate(lambda x, y: y + 1, o(3), o(2), donate_argnums=0, keep_unused=True)",
    "donate(lambda x, y: y + 1, o(2), o(2), donate_argnums=0, keep_unused=True)",
    "donate(lambda p, g: jax.tree.map(lambda a, b: a - b, p, g), {'a': o(2), 'b': (o(3),)},"
    " {'a': o(2), 'b': (o(3),)}, donate_argnums=0)",
    "donate(lambda x: x.astype('int32'), o(3), donate_argnums=0)",
    "donate(lambda x: x.astype('float16'), o(3), donate_argnums=0)",
    "donate(lambda x: x.reshape(3), o(1, 3), donate_argnums=0)",
    "donate(lambda x, y: (x + y).astype('int32'), o(3), o(3) * 2, donate_argnums=(0, 1))",
    "donate(lambda y, x: x + y, o(3, dtype='int32'), o(3), donate_argnums=(0, 1))",
    "donate(lambda x: jnp.concatenate([x, x]), o(3), donate_argnums=0)",
    "donate(lambda x, y: y + 1, o(2), o(2), donate_argnames='y')",
    "[jax.jit(jax.grad(lambda y: (y * y).sum()), donate_argnums=0)(o(3)).tolist()]",
    "[jax.jit(lambda x: jax.jit(lambda y: y + 1, donate_argnums=0)(x) * x)(o(3)).tolist()]",
    "(lambda x: [jax.device_put(x, jax.devices()[0], donate=True).tolist(), x.is_deleted()])(o(3))",
])
def test_donation_takes_and_warns_as_jaxs(jax_oracle, body):
    answer = jax_oracle.run(source_of(body, __name__))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = ours(body, __name__)
    assert got == answer.value
    first = [w.split("\n")[0] for w in answer.warnings]
    assert [str(w.message).split("\n")[0] for w in caught] == first


# No other test has arrays of this shape: JAX's words are those of a first call.
@pytest.mark.parametrize("use", [
    "jax.jit(lambda x: x * 3)(x)", "jax.vmap(lambda y: y + 1)(x)", "list(x)",
    "jax.grad(lambda y: (y * 2).sum())(x)", "jax.device_put(x, jax.devices()[0])",
    "jax.jit(lambda: x)()", "jax.jit(jax.grad(lambda y: (x * y).sum()))(1.)"])
def test_a_donated_array_is_refused_in_jaxs_words(jax_oracle, use):
    same_error(jax_oracle, f"used_after(lambda x: {use}, (3, 1, 2, 1, 2))",
               "Array has been deleted with shape=float32[3,1,2,1,2].", within=__name__)


READS = ["np.asarray(x)", "str(x)", "f'{x}'", "x.tolist()", "x.item()", "float(x[0])", "x[0]",
         "x[1:]", "x[None]", "x[np.array([0, 1])]", "jax.device_get(x)", "x.__reduce__()",
         "x.addressable_shards", "x.addressable_data(0)", "x.devices()"]


@pytest.mark.parametrize("use", READS)
def test_a_donated_array_is_refused_after_other_uses_too(jax_oracle, use):
    body = use if use != "x.item()" else "x[:1].item()"
    same_error(jax_oracle, f"used_before_and_after(lambda x: {body})",
               "Array has been deleted with shape=float32[3].", within=__name__)


@pytest.mark.parametrize("use", [
    list, lambda x: next(iter(x)), lambda x: list(reversed(x)), lambda x: x.is_ready(),
    lambda x: x.on_device_size_in_bytes()])
def test_a_deleted_array_is_refused_where_jaxlib_has_worse(use):
    # JAX has the client's words for the first two, and its process ends at the last two.
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]\."):
        used_before_and_after(use)


CLOSED_OVER = {
    "one device": lambda: o(4),
    "another device": lambda: jax.device_put(o(4), jax.devices()[2]),
    "parts": lambda: jax.device_put(o(4), NamedSharding(mesh_of_four(), P("x"))),
    "replicas": lambda: jax.device_put(o(4), NamedSharding(mesh_of_four(), P())),
    "four bits": lambda: o(4).astype("int4"),
    "bits": lambda: o(4) > 1,
    "no numbers": lambda: o(0, 4),
    "keys": lambda: jax.random.split(jax.random.key(3), 4),
    "turned": lambda: o(2, 3).T,
}


def mesh_of_four():
    return jax.make_mesh((4,), ("x",), (jax.sharding.AxisType.Auto,), devices=jax.devices()[:4])


def goes_on_after_deletion(case):
    """Return what programs that close over an array give before and after it is deleted."""
    x = CLOSED_OVER[case]()
    numbers = (lambda: jax.random.key_data(x)) if "key" in str(x.dtype) else (lambda: x)
    jitted = jax.jit(lambda y: (numbers(), y))
    compiled = jax.jit(lambda y: (y, numbers())).lower(1.).compile()
    runs = [lambda: jitted(1.)[0], lambda: compiled(1.)[1], jax.jit(numbers)]
    before = [np.asarray(run()).tolist() for run in runs for _ in range(3)]
    x.delete()
    return before, [np.asarray(run()).tolist() for run in runs]


@pytest.mark.parametrize("case", CLOSED_OVER)
def test_a_program_goes_on_after_what_it_closes_over_was_deleted(jax_oracle, case):
    before, after = goes_on_after_deletion(case)
    assert all(value == before[0] for value in [*before, *after])
    assert (before, after) == jax_oracle.run(
        source_of(f"goes_on_after_deletion({case!r})", __name__)).value


@pytest.mark.parametrize("body", [
    "(lambda x: jax.jit(lambda y: x + y, donate_argnums=0)(x))(o(3))",
    "(lambda x, f: [f(1.), f(1.), donate(lambda x: x * 2, x, donate_argnums=0), f(1.)])"
    "(*(lambda x: (x, jax.jit(lambda y: (x * y).sum())))(o(3)))"])
def test_what_a_program_closes_over_may_be_donated(jax_oracle, body):
    same(jax_oracle, body, within=__name__)


def test_a_copy_of_a_donated_array_is_refused(jax_oracle):
    # Who has copied such an array before is refused by the client, in its own words.
    with pytest.raises(JaxError, match="has been deleted or donated"):
        jax_oracle.run(source_of("used_after(lambda x: [o(3).copy(), x.copy()])", __name__))
    jax.clear_caches()
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]\."):
        used_after(lambda x: x.copy())
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        used_after(lambda x: [jnp.ones(3).copy(), x.copy()])


def test_programs_share_their_copy_of_what_they_close_over():
    gc.collect()
    known = len(dispatch._copies)
    x = jnp.arange(300.)

    def close_over(x):
        programs = [jax.jit(lambda y, i=i: (x * y + i).sum()) for i in range(3)]
        for program in programs:
            program(2.)
            program(2)
        return programs

    programs = close_over(x)
    assert len(dispatch._copies) == known + 1
    copy = dispatch._copies[id(x)]()
    assert copy is not None
    assert copy.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    del copy, programs, x
    gc.collect()
    assert len(dispatch._copies) == known


def test_constants_are_no_transfers():
    x = jnp.arange(3.)
    with jax.transfer_guard("disallow_explicit"):
        jitted = jax.jit(lambda: x)()
    assert jitted.tolist() == [0, 1, 2]


@pytest.mark.parametrize("read", ["str(x)", "x.tolist()", "np.asarray(x)[0]", "float(x[0])",
                                  "jax.device_get(x)[0]", "x.addressable_data(0)[0]"])
@pytest.mark.parametrize("size", [4, 5000])
def test_an_array_that_was_read_can_be_donated(jax_oracle, read, size):
    same(jax_oracle, f"(lambda x: [{read} and 1, donate(lambda x: x + 1, x, donate_argnums=0)])"
                     f"(o({size}))", within=__name__)


@pytest.mark.parametrize(("body", "sentence"), [
    ("jax.jit(lambda x, y: x + y, donate_argnums=0)(x, x)",
     "Attempt to use a buffer that was previously donated in the same call to Execute()"),
    ("jax.jit(lambda x, y: (x + 1, y + 1), donate_argnums=(0, 1))(x, x)",
     "Attempt to donate the same buffer twice in Execute()"),
    ("x.delete() or x.block_until_ready()", "called on deleted or donated buffer"),
])
def test_a_buffer_is_given_once(jax_oracle, body, sentence):
    same_error(jax_oracle, f"(lambda x: {body})(o(3))", sentence, within=__name__)


def test_a_donated_array_still_tells_its_type():
    x = jnp.arange(3.)
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert (x.shape, x.dtype, len(x), x.is_deleted()) == ((3,), np.float32, 3, True)
    assert jax.jit(lambda x: x * 2).lower(x).out_info.shape == (3,)


def used_up(make, body):
    """Return what a reference gives after ``body`` deleted one array that shares its history."""
    x = o(4)
    r = make(x)
    y = body(x, r)
    y.delete()
    first = np.asarray(r[...]).tolist()
    r[1] = 7.
    r[...] += 1
    return [first, np.asarray(r[...]).tolist(), np.asarray(jax.jit(lambda r: r[...])(r)).tolist(),
            x.is_deleted()]


@pytest.mark.parametrize("body", [
    "lambda x, r: x", "lambda x, r: r[...]", "lambda x, r: jax.ref.swap(r, ..., x + 1)",
    "lambda x, r: (jax.jit(lambda r: r.__setitem__(0, 5.))(r), x)[1]",
    "lambda x, r: (lambda z: (r.__setitem__(..., z), z)[1])(x * 3)",
    "lambda x, r: jax.jit(lambda r: r[...])(r)", "lambda x, r: r[1:]",
    "lambda x, r: (lambda z: (jax.ref.addupdate(r, ..., z), z)[1])(x * 3)"])
@pytest.mark.parametrize("make", ["jax.new_ref", "lambda x: jax.new_ref(x * 2)",
                                  "lambda x: jax.new_ref(np.asarray(x))"])
def test_a_reference_keeps_what_it_holds(jax_oracle, make, body):
    same(jax_oracle, f"used_up({make}, {body})", within=__name__)


def frozen_and_used(x):
    r = jax.new_ref(x)
    r[0] = 3.
    y = jax.freeze(r)
    y.delete()
    return x.is_deleted(), x.tolist()


def test_an_array_goes_on_after_its_reference_was_frozen(jax_oracle):
    same(jax_oracle, "frozen_and_used(o(3))", within=__name__)


@pytest.mark.parametrize("numbers", [(0, 1), 0, 1])
def test_on_several_devices_a_buffer_is_given_once(numbers):
    """There JAX's process ends with a segmentation fault."""
    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices()[:2])
    x = jax.device_put(np.arange(8.0, dtype=np.float32), jax.NamedSharding(mesh, jax.P("x")))
    both = jax.jit(lambda x, y: (x * 2, y + 1), donate_argnums=numbers)
    with pytest.raises(jax.errors.JaxRuntimeError, match="Attempt to donate the same buffer twice"):
        both(x, x)
    doubled, more = both(jnp.copy(x), jnp.copy(x))
    np.testing.assert_array_equal(doubled, x * 2)
    np.testing.assert_array_equal(more, x + 1)
