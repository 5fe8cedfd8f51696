"""Does every interpreter go through programs inside a primitive by their description alone?

A loop that exists only here, with the six rules and a description, gets derivatives, batches,
Taylor series, checks, references and ordered effects for nothing; and the engine's own primitives
are described truly.

Read before: ``saem.transform.nested``.
"""

from __future__ import annotations

import numpy as np
import pytest

import saem
import saem.numpy as jnp
from saem import lax
from saem.compile.lowering import lower_block
from saem.core import jaxpr as jaxpr_module
from saem.core.jaxpr import ClosedJaxpr, sub_jaxprs
from saem.core.primitive import primitive, registry
from saem.core.trace import bind
from saem.experimental import checkify
from saem.experimental.jet import jet
from saem.transform.nested import HigherOrder, Nested, carry_fixpoint
from saem.transform.restructure import split_list
from saem.transform.staging import trace_flat

pytestmark = pytest.mark.usefixtures("little_effort")


class RepeatBase(HigherOrder):
    """Apply ``jaxpr`` to (constants, carry) so many ``times``."""

    __slots__ = ()
    jaxpr: ClosedJaxpr
    times: int
    num_consts: int

    @property
    def nested(self):
        return Nested((self.jaxpr,), 0, self.num_consts, len(self.jaxpr.out_avals), rows=True)

    @property
    def effects(self):
        return self.jaxpr.effects

    def rebuilt(self, nested, operands, results):
        return type(self)(nested.programs[0], self.times, nested.consts)

    def typing(self, *avals):
        return self.jaxpr.out_avals

    def evaluate(self, *args):
        consts, carry = split_list(args, self.num_consts)
        for _ in range(self.times):
            carry = jaxpr_module.evaluate(self.jaxpr, *consts, *carry)
        return carry

    def lower(self, ctx, *args):
        consts, carry = split_list(args, self.num_consts)
        for _ in range(self.times):
            carry = lower_block(ctx, self.jaxpr, [*consts, *carry])
        return carry


@pytest.fixture
def repeat():
    """Return ``repeat(f, times, consts, carry)``, one equation of a primitive made for the test."""
    made = primitive("repeat_for_test")(type("Repeat", (RepeatBase,), {}))

    def run(f, times, consts, carry):
        program = trace_flat(f, [saem.typeof(x) for x in (*consts, *carry)], name="repeat")
        return bind(made(ClosedJaxpr(program.jaxpr.replace(
            constvars=[], invars=[*program.jaxpr.constvars, *program.jaxpr.invars])),
            times, len(program.consts) + len(consts)), *program.consts, *consts, *carry)

    yield run
    registry.pop("repeat_for_test")


def step(k, x, n):
    """Return a next carry: a value that moves from the second step on, and a counter."""
    return [jnp.sin(x) * k + x, n + 1.0]


def by_hand(k, x):
    n = 0.0
    for _ in range(3):
        x, n = step(k, x, n)
    return x, n


K, X = np.float32(0.7), np.arange(1.0, 4.0, dtype=np.float32)


def test_a_new_loop_has_a_derivative(repeat):
    def f(k, x):
        return tuple(repeat(step, 3, (k,), (x, jnp.float32(0.0))))

    text = str(saem.make_jaxpr(lambda k, x: saem.jvp(f, (k, x), (k, x)))(K, X))
    assert text.count("repeat_for_test") == 1
    for got, want in zip(saem.jvp(f, (K, X), (K, X)), saem.jvp(by_hand, (K, X), (K, X))):
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_new_loop_is_batched(repeat):
    def f(k, x):
        return repeat(step, 3, (k,), (x, jnp.float32(0.0)))

    ks = np.array([0.1, 0.7], np.float32)
    for axes, args in (((0, None), (ks, X)), ((None, 0), (K, X)), ((0, 0), (ks, X[:2]))):
        got = saem.vmap(f, axes)(*args)
        count = 3 if axes == (None, 0) else 2
        rows = [f(*(a[i] if d == 0 else a for a, d in zip(args, axes))) for i in range(count)]
        for number in range(2):
            np.testing.assert_allclose(got[number], np.stack([r[number] for r in rows]), rtol=1e-6)


def test_a_new_loop_has_a_taylor_series(repeat):
    def f(x):
        return repeat(step, 3, (K,), (x, jnp.float32(0.0)))[0]

    series = ((X, 0 * X, 0 * X),)
    value, terms = jet(f, (X,), series)
    wanted, nested = jet(lambda x: by_hand(K, x)[0], (X,), series)
    np.testing.assert_allclose(value, wanted, rtol=1e-6)
    for a, b in zip(terms, nested):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_new_loop_is_checked(repeat):
    def f(x):
        def body(x):
            checkify.check(x < 5, "grew to {x}", x=x)
            return [x * 2]

        return repeat(body, 3, (), (x,))[0]

    error, out = checkify.checkify(f)(jnp.float32(1.0))
    assert error.get() is None and out == 8
    error, out = checkify.checkify(f)(jnp.float32(2.0))
    assert error.get().startswith("grew to 8.0") and out == 16


def test_a_new_loop_writes_to_references(repeat):
    @saem.jit
    def f(x):
        ref = saem.new_ref(jnp.zeros(()))

        def body(x):
            ref[...] += x
            return [x * 2]

        return repeat(body, 3, (), (x,))[0], ref[...]

    assert [float(y) for y in f(jnp.float32(1.0))] == [8, 7]


def test_a_new_loop_keeps_the_order_of_effects(repeat, capfd):
    def body(x):
        saem.debug.print("{}", x, ordered=True)
        return [x * 2]

    saem.jit(lambda x: repeat(body, 3, (), (x,)))(jnp.int32(1))
    saem.effects_barrier()
    assert capfd.readouterr().out.split() == ["1", "2", "4"]


# -- the engine's own ------------------------------------------------------------------------------


def looped(x):
    def body(c, row):
        return (jnp.sin(c[0]) * x.sum(), c[1] + 1), c[0]

    return lax.scan(body, (row_sum(x), 0), x)


@saem.jit
def row_sum(x):
    return jnp.sum(x)


@saem.custom_jvp
def ruled(x):
    return jnp.sin(x)


ruled.defjvp(lambda primals, tangents: (ruled(*primals), tangents[0]))
PROGRAMS = {
    "jit": row_sum,
    "scan": looped,
    "while": lambda x: lax.while_loop(
        lambda c: c[0] < x[0], lambda c: (c[0] + 1, c[1] * 2), (0.0, x)),
    "cond": lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    "remat2": saem.checkpoint(jnp.sin, prevent_cse=(True,)),
    "custom_jvp_call": ruled,
    "shard_map": lambda x: saem.shard_map(
        jnp.sin, mesh=saem.make_mesh((1,), ("i",), axis_types=(saem.sharding.AxisType.Auto,)),
        in_specs=saem.sharding.PartitionSpec("i"),
        out_specs=saem.sharding.PartitionSpec("i"))(x),
}


def operations_of(closed):
    for eqn in closed.eqns:
        yield eqn
        for _, inner in sub_jaxprs(eqn.operation):
            yield from operations_of(inner)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_description_fits_its_primitive(name):
    found = [eqn for eqn in operations_of(saem.make_jaxpr(PROGRAMS[name])(X))
             if eqn.primitive.name == name]
    assert found
    for eqn in found:
        prim, nested = eqn.operation, eqn.operation.nested
        operands, results = nested.counts()
        assert (operands, results) == (len(eqn.invars), len(eqn.outvars))
        for program in nested.programs:
            assert len(program.jaxpr.invars) == operands - nested.before
            assert len(program.jaxpr.outvars) == results
        assert prim.rebuilt(nested, range(operands), range(results)) == prim


@pytest.mark.parametrize("reverse", [False, True])
def test_loops_of_one_body_and_several_lengths_do_not_share_what_depends_on_the_length(reverse):
    """The body is traced once, and so are its derivatives; the halves of a split loop are not."""
    def body(c, row):
        return c * row, c

    def f(x):
        return lax.scan(body, 2.0, x, reverse=reverse)[0]

    for x in (X, X[:2], np.arange(1.0, 6.0, dtype=np.float32)):
        np.testing.assert_allclose(saem.grad(f)(x), 2 * np.prod(x) / x, rtol=1e-6)


def test_a_fixpoint_sets_flags_and_never_clears_them():
    steps = []

    def follow(flags):
        steps.append(flags)
        return [False, flags[0], flags[1]], len(steps)

    carry, outs, made = carry_fixpoint(follow, [True, False, False])
    assert carry == [True, True, True] and outs == [False, True, True] and made == len(steps) == 3
