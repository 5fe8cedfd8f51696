"""Do programs of the kind that JAX's documentation shows mean here what they mean there?

They were written after the pages on control flow, jaxprs, derivatives, pooling, named axes, random
keys, debugging and shardings, some five hundred of them; those kept here once told a difference.
Each group is one question to JAX.

Read before: ``both.py``.
Invariant: every expected value comes from JAX.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.experimental import io_callback
from saem.sharding import Mesh
from saem.sharding import PartitionSpec as P

x = jnp.arange(16.0).reshape(4, 4)


def shown(fun, *args):
    """Return a program without the places of functions, and with plain numbers for NumPy's."""
    text = re.sub(r"np\.int64\((-?\d+)\)", r"\1", str(jax.make_jaxpr(fun)(*args)))
    return re.sub(r"<function (?:[\w<>]*\.)*(\w+) at 0x\w+>", r"<function \1>", text)


least = -jnp.inf


def pool(x):
    return lax.reduce_window(x, least, lax.max, (2, 2), (2, 2), "SAME")


def total(x):
    return lax.reduce_window(x, 0.0, lax.add, (3, 3), (2, 1), "SAME_LOWER", (2, 1), (1, 2))


def product(x):
    return lax.reduce_window(x, 1.0, lax.mul, (2, 2))


def sum_and_product(x):
    return lax.reduce_window((x, x), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (2, 1))


def test_windows_are_folded(jax_oracle):
    def program():
        folds = pool, total, product, sum_and_product
        return [
            *(shown(f, x) for f in folds),
            shown(jax.vmap(lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (2,)), 1), x),
            *(f(x) for f in folds),
            lax.reduce_window_shape_tuple((4, 5), (2, 2), (2, 1), ((0, 0), (1, 1))),
            lax.padtype_to_pads((4, 5), (2, 2), (2, 1), "SAME"),
        ]

    same(jax_oracle, program)


def test_folds_of_windows_are_differentiated(jax_oracle):
    def program():
        weights = jnp.arange(4.0).reshape(2, 2)

        def weighted(x):
            return (pool(x) * weights).sum()

        def smallest(x):
            return lax.reduce_window(x, jnp.inf, lax.min, (3,), (2,)).sum()

        def greatest(x):
            return lax.reduce_window(x, least, lax.max, (2,), (1,))

        with_nan = jnp.array([jnp.nan, 1.0, 2.0])
        return [
            shown(lambda x: jax.jvp(pool, (x,), (x,)), x),
            shown(lambda x: jax.jvp(product, (x,), (x,)), x),
            jax.grad(weighted)(x),
            jax.grad(weighted)(x * 0),
            jax.grad(lambda x: (total(x) ** 2).sum())(x),
            *jax.jvp(product, (x,), (x,)),
            jax.hessian(lambda x: (pool(x.reshape(4, 4)) ** 3).sum())(x.ravel()),
            jax.vmap(jax.grad(smallest))(-x),
            jax.jvp(greatest, (with_nan,), (jnp.arange(3.0),))[1],
        ]

    same(jax_oracle, program)


REFUSED_WINDOWS = {
    "wrong number of window_dimensions": "lax.reduce_window(jnp.ones((4, 4)), 0.0, lax.add, (2,))",
    "strictly positive": "lax.reduce_window(jnp.ones(4), 0.0, lax.add, (2,), (0,))",
    "Unrecognized padding type":
        "lax.reduce_window(jnp.ones(4), 0.0, lax.add, (2,), padding='FOO')",
    "inconsistent dtypes": "lax.reduce_window(jnp.ones(4), 0, lambda a, b: a + b, (2,))",
    "VJP not implemented": "jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,), (1,), "
                           "'VALID', None, (2,)).sum())(jnp.ones(4))",
}


@pytest.mark.parametrize("words", REFUSED_WINDOWS)
def test_windows_that_are_refused(jax_oracle, words):
    same_error(jax_oracle, REFUSED_WINDOWS[words], words)


def test_axes_are_folded_by_any_function(jax_oracle):
    def program():
        def affine(p, q):
            return p[0] + q[0], p[1] * q[1]

        def two(x):
            return lax.reduce((x, x), (0.0, 1.0), affine, (0,))

        return [
            shown(lambda x: lax.reduce(x, 0, lax.add, (0,)), x),
            shown(lambda x: lax.reduce(x, -jnp.inf, lax.max, (1,)), x),
            shown(lambda x: lax.reduce(x, 1.0, lax.mul, (0, 1)), x),
            shown(lambda x: lax.reduce(x > 1, True, lax.bitwise_and, (1,)), x),
            shown(lambda x: lax.reduce(x, 1.0, lax.add, (0,)), x),
            shown(lambda x: lax.reduce(x, jnp.float32(0), lax.add, (0,)), x),
            shown(two, x),
            *two(x),
            shown(lambda x: jax.jvp(two, (x,), (x,)), x[:3]),
            *jax.jvp(two, (x,), (x,))[1],
            jax.grad(lambda x: sum(v.sum() for v in two(x)))(x),
            jax.vmap(lambda x: lax.reduce(x, 0.0, lambda a, b: a + b, (0,)), 1)(x),
            jax.grad(lambda x: lax.reduce(x, 0.0, lambda a, b: a + b, (0, 1)))(x[:3]),
            jax.jit(lambda x: lax.reduce(x, 0.0, lambda a, b: jnp.maximum(a, b), (0, 1)))(x),
        ]

    same(jax_oracle, program)
    for source, words in (
            ("lax.reduce(jnp.ones(4), jnp.zeros(2), lambda a, b: a, (0,))", "non-scalar"),
            ("lax.reduce(jnp.ones(4), 0, lambda a, b: a + b, (0,))", "dtypes should match"),
            ("lax.reduce(jnp.ones(4), 0.0, lax.add, (1,))", "out-of-bounds"),
            ("lax.reduce(jnp.ones(4), (0.0, 0.0), lax.add, (0,))", "same tree structure"),
            ("jax.jit(lambda x, y: lax.reduce(x, 0.0, lambda a, b: a + y * b, (0,)))"
             "(jnp.ones(4), 1.0)", "can't close over Tracers"),
            ("jax.vmap(lambda x, i: lax.reduce_window(x, i, lambda a, b: a + b, (2,)))"
             "(jnp.ones((4, 4)), jnp.ones(4))", "not implemented for initial values"),
            ("jax.jvp(lambda i: lax.reduce(jnp.ones(4), i, lambda a, b: a + b, (0,)), (0.0,), "
             "(1.0,))", "non-zero tangents")):
        same_error(jax_oracle, source, words)
    assert lax.reduce(jnp.ones(4), 0.0, lambda a, b: a + jnp.arange(3.0)[1] * b, (0,)) == 4


def test_stacks(jax_oracle):
    def program():
        def stacked(x):
            return lax.stack([x, x * 2])

        return [
            shown(lambda x, y: lax.stack([x, y, x], 1), x, x),
            shown(lambda x: lax.unstack(x, 1), x),
            shown(lambda x: jnp.stack([x, x], -1), x),
            shown(jnp.unstack, x),
            shown(jax.grad(lambda x: (stacked(x) ** 2).sum()), x),
            shown(jax.vmap(stacked, 1), x),
            shown(jax.vmap(lambda x, y: lax.stack([x, y]), (1, None)), x, x[0]),
            shown(jax.vmap(lax.unstack, 1), x),
            *lax.unstack(lax.stack([x, x + 1], 2), 1),
        ]

    same(jax_oracle, program)
    same_error(jax_oracle, "lax.stack([jnp.ones(2), jnp.ones((2, 1))])", "Cannot stack arrays")


def test_composites(jax_oracle):
    def program():
        tangent = lax.composite(lambda x: jnp.sin(x) / jnp.cos(x), "mine.tan")

        def scaled(x, y, *, scale, other=None):
            return x * scale + y, y

        two = lax.composite(scaled, "mine.two", version=3)
        return [
            shown(tangent, x),
            tangent(x),
            jax.jit(tangent)(x),
            shown(lambda x: two(x, x, scale=2.0), x),
            *jax.jit(lambda x: two(x, x, scale=np.float32(2), other=(1, "a", np.ones(2))))(x),
        ]

    same(jax_oracle, program)


REFUSED_COMPOSITES = {
    "JVP rule for composite": "jax.grad(lax.composite(jnp.sin, 'm.s'))(1.0)",
    "Batching rule": "jax.vmap(lax.composite(jnp.sin, 'm.s'))(jnp.ones(2))",
    "as a constant in the decomposition":
        "jax.jit(lambda x, y: lax.composite(lambda x: x * y, 'm.s')(x))(1.0, 2.0)",
    "as an attribute in the decomposition":
        "jax.jit(lambda x, y: lax.composite(lambda x, k: x, 'm.s')(x, k=y))(1.0, 2.0)",
}


@pytest.mark.parametrize("words", REFUSED_COMPOSITES)
def test_composites_that_are_refused(jax_oracle, words):
    same_error(jax_oracle, REFUSED_COMPOSITES[words], words)


def test_what_is_applied_in_place(jax_oracle):
    def program():
        apply = lax.ScatterDimensionNumbers((), (0,), (0,))
        row = jnp.arange(5.0)
        return [
            shown(lambda x: x.at[jnp.array([1, 2])].apply(jnp.sin), row).replace(
                "    _:f32[2] = broadcast_in_dim 0.0:f32[]\n", ""
            ),
            lax.scatter_apply(
                row, jnp.array([[1], [2], [2]]), lambda v: v * 10 + 1, apply, update_shape=(3,)
            ),
            lax.index_take(x, (jnp.array([0, -1]), jnp.array([1, 2])), (0, 1)),
        ]

    same(jax_oracle, program)
    same_error(jax_oracle, "jax.grad(lambda x: x.at[0].apply(jnp.sin).sum())(jnp.ones(2))",
               "scatter_apply JVP")


def test_values_that_are_kept_staged_or_named(jax_oracle):
    def program():
        return [
            shown(lambda x, y: jax.jvp(lambda a, b: (a + b, a - b), (x, y), (y, x)), x, x),
            shown(lambda x: (lax.dce_sink(x * 2), x)[1], x),
            shown(lambda: lax.stage(2.0)),
            shown(jax.grad(lambda x: (lax.dce_sink(jnp.sin(x)), x)[1]), 1.0),
            jnp.asarray(lax.shape_as_value((2, 3))),
        ]

    same(jax_oracle, program)


def test_what_printing_a_traced_value_shows(jax_oracle):
    def program():
        seen = []

        def see(x):
            seen.append(str(x))
            return x * 2

        jax.jit(see)(1.0)
        jax.vmap(see)(jnp.stack([1.0, 2.0]))
        jax.grad(see)(1.0)
        jax.jvp(see, (1.0,), (1.0,))
        jax.jit(jax.grad(see))(1.0)
        jax.jit(jax.vmap(see))(jnp.ones(2))
        jax.jvp(jax.grad(see), (1.0,), (1.0,))
        jax.vmap(jax.grad(see))(jnp.ones(2))
        jax.grad(lambda x: jax.jvp(see, (x,), (x,))[1])(1.0)
        return [
            *seen,
            str(jax.typeof(1.0)),
            str(jax.typeof(jnp.ones((2, 3)))),
            jax.jit(lambda x: (x.nbytes, x.itemsize))(jnp.ones(3)),
        ]

    same(jax_oracle, program)
    for source, words in (
            ("jax.jit(lambda x: x.devices())(1.0)", "Abstract tracer value encountered"),
            ("jax.jit(lambda x: x.addressable_shards)(1.0)", "Abstract tracer value encountered"),
            ("jax.jit(lambda x: x.sharding)(1.0)", "attribute is not available on traced array"),
            ("jax.random.key(0)[0]", "Too many indices"),
            ("jax.local_devices(process_index=3)", "Unknown process_index"),
            ("lax.fori_loop(0, jnp.uint8(3), lambda i, c: c, 0)", "must have equal types")):
        same_error(jax_oracle, source, words)


def test_numbers_bounds_and_specs(jax_oracle):
    def program():
        P = jax.sharding.PartitionSpec
        return [
            lax.fori_loop(0, jnp.int8(3), lambda i, c: c + i, 0),
            jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, jnp.int8(0)))(jnp.int8(3)),
            jax.jit(lambda n: lax.fori_loop(n, 3, lambda i, c: c + i, jnp.int16(0)))(jnp.int16(0)),
            repr(P(unreduced={"x"})),
            repr(P("x", unreduced={"y"})),
            round(jnp.float32(2.7)),
            round(jnp.array([1.5, 2.5])),
            round(jnp.float32(2.75), 1),
            jnp.ones(2).__array_namespace__() is jnp,
            jax.grad(lambda z: z**2, holomorphic=True)(1 + 2j),
        ]

    same(jax_oracle, program)
    for source, words in (  # the example of ConcretizationTypeError, and its kin
            ("jax.jit(lambda x, axis: x.min(axis))(jnp.arange(4), 0)", "Abstract tracer value"),
            ("jax.jit(lambda n: jnp.linspace(0, 1, n))(3)", "Abstract tracer value"),
            ("jax.jit(lambda n: jnp.sum(jnp.ones(2), axis=n))(0)", "Abstract tracer value"),
            ("lax.transpose(jnp.ones((2, 3)), (0,))", "isn't a permutation")):
        same_error(jax_oracle, source, words)
    for source, kind in (("jax.jit(lambda x: x, in_shardings=P('x'))(1.0)", RuntimeError),
                         ("jax.device_put(1.0, P('x'))", ValueError),
                         ("jax.device_put(1.0, 3)", ValueError)):
        with pytest.raises(kind):
            eval(source, {"jax": jax, "P": P})


@pytest.mark.parametrize("count", [1, 2, 4])
def test_callbacks_inside_shard_map(count):
    mesh = Mesh(np.array(jax.devices()[:count]), ("i",))
    x = jnp.arange(8.0)
    heard: list[tuple[float, int]] = []

    def inside(x):
        for number in range(3):
            io_callback(lambda v, number=number: heard.append((float(v[0]), number)), None, x,
                        ordered=True)
        return x

    run = jax.jit(jax.shard_map(inside, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
    for _ in range(2):
        np.testing.assert_array_equal(run(x), x)
    jax.effects_barrier()
    firsts = {float(v) for v in np.arange(8.0)[::8 // count]}
    for first in firsts:  # each device keeps its order
        assert [n for v, n in heard if v == first] == [0, 1, 2, 0, 1, 2]
    assert len(heard) == 6 * count
    silent: list[int] = []
    jax.shard_map(lambda x: jax.debug.callback(silent.append, 4), mesh=mesh, in_specs=P("i"),
                  out_specs=P())(x)
    jax.effects_barrier()
    assert silent == [4]
    # What is the same along an axis has one greatest value there.
    both = Mesh(np.array(jax.devices()[:count]).reshape(count, 1), ("i", "j"))
    greatest = jax.shard_map(lambda x: lax.pmax(x, ("i", "j")), mesh=both, in_specs=P("i"),
                             out_specs=P())(x)
    np.testing.assert_array_equal(greatest, np.arange(8.0).reshape(count, -1).max(0))


def test_programs_that_exchange_ragged_parts(jax_oracle):
    def program():
        mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("i",))
        P = jax.sharding.PartitionSpec

        def inside(*xs):
            return lax.ragged_all_to_all(*(x[0] for x in xs), axis_name="i")[None]

        sharded = jax.shard_map(inside, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
        sent, kept, places = jnp.ones((2, 3)), jnp.ones((2, 4)), [jnp.ones((2, 2), int)] * 4
        return [
            str(jax.make_jaxpr(sharded)(sent, kept, *places)),
            str(
                jax.make_jaxpr(
                    lambda *xs: jax.jvp(lambda a, b: sharded(a, b, *xs[2:]), xs[:2], xs[:2])
                )(sent, kept, *places)
            ),
        ]

    same(jax_oracle, program)


# The example of the documentation of ragged_all_to_all.
SENT = np.array([[1, 2, 2], [3, 4, 0]], np.float32)
KEPT = np.full((2, 4), 9, np.float32)
PLACES = [np.array(v) for v in ([[0, 1], [0, 1]], [[1, 2], [1, 1]], [[0, 0], [1, 2]],
                                [[1, 1], [2, 1]])]
RECEIVED = [[1, 3, 9, 9], [2, 2, 4, 9]]


def exchange(sent, kept):
    return jax.vmap(lambda *xs: lax.ragged_all_to_all(*xs, axis_name="i"), axis_name="i")(
        sent, kept, *PLACES)


def test_ragged_parts_are_exchanged():
    np.testing.assert_array_equal(exchange(SENT, KEPT), RECEIVED)
    mesh = Mesh(np.array(jax.devices()[:2]), ("i",))
    sharded = jax.make_jaxpr(jax.shard_map(
        lambda *xs: lax.ragged_all_to_all(*(x[0] for x in xs), axis_name="i")[None],
        mesh=mesh, in_specs=P("i"), out_specs=P("i")))(SENT, KEPT, *PLACES)
    np.testing.assert_array_equal(jax.evaluate(sharded, SENT, KEPT, *PLACES)[0], RECEIVED)


def test_cotangents_of_ragged_parts_are_those_of_their_tangents():
    rng = np.random.default_rng(0)
    ts = [rng.normal(size=v.shape).astype(np.float32) for v in (SENT, KEPT)]
    ct = rng.normal(size=(2, 4)).astype(np.float32)
    _, forward = jax.jvp(exchange, (SENT, KEPT), tuple(ts))
    back = jax.vjp(exchange, SENT, KEPT)[1](ct)
    np.testing.assert_allclose((ct * forward).sum(), sum(
        (np.asarray(b) * t).sum() for b, t in zip(back, ts)), rtol=1e-5)


@pytest.mark.parametrize(("source", "words"), [
    ("lax.ragged_all_to_all(*[jnp.ones(2)] * 6, axis_name='i')", "within a mapped context"),
    ("lax.psend(jnp.ones(2), 'i', [(0, 1)])", "unbound axis name")], ids=["ragged", "psend"])
def test_axes_that_no_map_names_are_refused(jax_oracle, source, words):
    same_error(jax_oracle, source, words)


def test_tokens(jax_oracle):
    def program():
        def shown(fun, *args):
            return str(jax.make_jaxpr(fun)(*args))

        mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("i",))
        P, arrows = jax.sharding.PartitionSpec, [(0, 1), (1, 0)]

        def exchange(x):
            token = lax.psend(x, "i", arrows)
            return lax.precv(token, jax.ShapeDtypeStruct((2,), "float32"), "i", arrows)

        token, x = lax.create_token(), jnp.arange(4.0)
        return [
            shown(lambda x: lax.create_token(x), 1.0),
            shown(lambda: lax.after_all()),
            shown(lambda t: (lax.after_all(t, t), 1.0), token),
            shown(lambda t: t, token),
            shown(lambda x: lax.optimization_barrier((x, lax.create_token()))[0], x),
            shown(jax.shard_map(exchange, mesh=mesh, in_specs=P("i"), out_specs=P("i")), x),
            *(
                type(t).__name__
                for t in (
                    token,
                    lax.after_all(token),
                    jax.jit(lax.after_all)(token),
                    jax.block_until_ready(token),
                )
            ),
        ]

    same(jax_oracle, program)
    same_error(jax_oracle, "lax.after_all(1.0)", "must be tokens")
    x = jnp.arange(4.0)
    ordered = jax.jit(lambda t, x: lax.scan(lambda t, x: (lax.after_all(t), x * 2), t, x)[1])
    np.testing.assert_array_equal(ordered(lax.create_token(), x), x * 2)
    tied = jax.jit(lambda t, x: lax.optimization_barrier((x, t))[0])(lax.create_token(), x)
    np.testing.assert_array_equal(tied, x)
    np.testing.assert_array_equal(jax.evaluate(jax.make_jaxpr(
        lambda x: lax.optimization_barrier((x, lax.after_all(lax.create_token())))[0])(x), x)[0], x)
    mesh = Mesh(np.array(jax.devices()[:2]), ("i",))
    with pytest.raises(NotImplementedError, match="psend"):
        jax.shard_map(lambda x: lax.precv(lax.psend(x, "i", [(0, 1), (1, 0)]), x, "i",
                                          [(0, 1), (1, 0)]), mesh=mesh, in_specs=P("i"),
                      out_specs=P("i"))(x)
