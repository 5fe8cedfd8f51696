"""Does a program that calls Python get what JAX's gets, and do effects keep their order?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
from both import ours, same, same_error, source_of
from printing import both_print

import saem as jax
import saem.numpy as jnp
from saem import debug, errors, lax
from saem.core import effects
from saem.core.events import Callback, bus
from saem.core.infer import check_jaxpr
from saem.experimental import io_callback

X = np.arange(3.0, dtype=np.float32)
F3 = jax.ShapeDtypeStruct((3,), np.float32)
F0 = jax.ShapeDtypeStruct((), np.float32)

x = jnp.arange(3.0)


def F(*shape, dtype=np.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def sine(v):
    return np.sin(v)


# -- values ----------------------------------------------------------------------------------------

VALUES = [
    "jax.pure_callback(sine, F(3), x)",
    "jax.jit(lambda x: jax.pure_callback(sine, F(3), x) + 1)(x)",
    "jax.jit(lambda x: jax.pure_callback(lambda a, *, b: {'s': a + b, 't': (a[0],)}, "
    "{'s': F(3), 't': (F(),)}, x, b=2 * x))(x)",
    "jax.jit(lambda x: jax.pure_callback(lambda v: [v, v], (F(3), F(3)), x))(x)",
    "jax.jit(lambda x: jax.pure_callback(lambda v: np.zeros(3), F(3), x))(x)",  # f64 becomes f32
    "jax.jit(lambda x: jax.pure_callback(lambda v: v > 1, F(3, dtype=bool), x))(x)",
    "jax.jit(lambda x: jax.pure_callback(lambda v: v.astype(ml_dtypes.bfloat16), "
    "F(3, dtype=jnp.bfloat16), x))(x)",
    "jax.jit(lambda x: jax.pure_callback(lambda v: v * 1j, F(3, dtype=np.complex64), x))(x)",
    "jax.jit(lambda x: jax.pure_callback(lambda v: np.zeros((0, 2), np.float32), F(0, 2), x))(x)",
    "jax.jit(lambda x: io_callback(sine, F(3), x))(x)",
    "jax.jit(lambda x: io_callback(sine, F(3), x, ordered=True))(x)",
    "io_callback(lambda v: None, None, x)",
    *(f"jax.vmap(lambda x: jax.pure_callback(sine, F(), x, vmap_method={m!r}))(x)"
      for m in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all")),
    *(f"jax.jit(jax.vmap(lambda x, y: jax.pure_callback(lambda a, b: a + np.sum(b, -1), F(), x, y, "
      f"vmap_method={m!r}), in_axes=(0, None)))(x, x)"
      for m in ("sequential", "expand_dims", "broadcast_all")),
    "jax.vmap(lambda x: jax.pure_callback(lambda v: np.sin(v), F(), x, "
    "vmap_method='legacy_vectorized'))(x)",
    "jax.vmap(lambda x: jax.pure_callback(sine, F(2), x, vmap_method='sequential'), in_axes=1, "
    "out_axes=1)(jnp.arange(6.).reshape(2, 3))",
    "jax.vmap(jax.vmap(lambda x, y: jax.pure_callback(lambda a, b: np.asarray(a * b), F(), x, y, "
    "vmap_method='expand_dims'), (0, None)), (None, 0))(x, x)",
    "jax.vmap(lambda x: io_callback(sine, F(), x))(x)",
    "jax.vmap(lambda x: jax.lax.cond(x > 0, lambda x: jax.pure_callback(sine, F(), x, "
    "vmap_method='sequential'), lambda x: x, x))(x)",
]


@pytest.mark.parametrize("program", VALUES)
def test_values_are_those_of_jax(jax_oracle, program):
    same(jax_oracle, program, within=__name__)


SHAPES = {}


def printing(function):
    """Take one more program, named after its function."""
    SHAPES[function.__name__.replace("_", " ")] = function
    return function


@printing
def which_shapes_each_method_shows():
    def show(a, b):
        print(np.shape(a), np.shape(b), flush=True)
        return np.asarray(a) + np.asarray(b)

    F = jax.ShapeDtypeStruct((), np.float32)
    for method in ("sequential", "expand_dims", "broadcast_all", "legacy_vectorized"):
        f = lambda x, y, how=method: jax.pure_callback(show, F, x, y, vmap_method=how)
        jax.vmap(f, (0, None))(x, 1.0)
        if method != "legacy_vectorized":
            jax.vmap(jax.vmap(f, (0, None)), (None, 0))(x[:2], x)


@printing
def a_result_that_nobody_needs():
    F = jax.ShapeDtypeStruct((3,), np.float32)

    def f(x):
        jax.pure_callback(lambda v: (print("pure"), v)[1], F, x)
        jax.experimental.io_callback(lambda v: (print("io"), v)[1], F, x)
        return x

    jax.jit(f)(x)


@printing
def io_in_order():
    seen = []

    def note(v):
        seen.append(int(v))
        return np.float32(len(seen))

    F = jax.ShapeDtypeStruct((), np.float32)
    call = lambda v: jax.experimental.io_callback(note, F, v, ordered=True)

    def f(n):
        a = call(n)
        b = jax.lax.fori_loop(0, 3, lambda i, c: c + call(i), 0.0)
        return a + b + jax.jit(call)(n + 100)

    f = jax.jit(f)
    print([float(f(i)) for i in (10, 20, 30)], seen)


def test_calls_are_those_of_jax(jax_oracle):
    for name, (here, there) in both_print(jax_oracle, SHAPES, __name__).items():
        assert here == there and "raised" not in there, name


# -- jaxprs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [
    "lambda x: jax.pure_callback(sine, F(3), x)",
    "jax.vmap(lambda x, y: jax.pure_callback(sine, F(2), x, y, vmap_method='sequential'), "
    "(1, None))",
    "jax.vmap(lambda x, y: jax.pure_callback(sine, F(), x, y, vmap_method='broadcast_all'), "
    "(0, None))",
    "lambda x: io_callback(sine, F(3), x, ordered=True)",
])
def test_jaxprs_print_as_those_of_jax(jax_oracle, source):
    def without_address(text):
        return re.sub(r"0x\w+", "0x", text)

    two_arguments = "x, y" in source
    args = (np.ones((2, 3), np.float32), np.float32(1)) if "F(2)" in source else \
        (X, np.float32(1)) if two_arguments else (X,)
    closed = jax.make_jaxpr(ours(source, __name__))(*args)
    check_jaxpr(closed)
    asked = source_of(f"str(jax.make_jaxpr({source})(*args))", __name__, ["args"])
    theirs = jax_oracle.run(asked, args=args).value
    assert without_address(str(closed)) == without_address(theirs)


def test_effects_are_listed_by_the_jaxpr():
    def f(x):
        debug.print("{}", x)
        debug.print("{}", x, ordered=True)
        io_callback(lambda v: None, None, x)
        return x

    found = jax.make_jaxpr(lambda x: jax.jit(f)(x))(X).effects
    assert found == {effects.DEBUG, effects.ORDERED_DEBUG, effects.IO}


def test_a_program_in_order_is_well_formed():
    def f(x):
        debug.print("{}", x, ordered=True)
        return lax.scan(lambda c, y: (debug.print("{}", c, ordered=True), (c + y, c))[1], 0.0, x)

    check_jaxpr(effects.in_order(jax.make_jaxpr(jax.jit(f))(X)))


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("program", "words"), [
    ("jax.pure_callback(sine, F(3), x, vmap_method='all')",
     "vmap_method must be on of the allowed"),
    ("jax.vmap(lambda x: jax.pure_callback(sine, F(), x))(x)",
     "vmap is only supported for the pure_callback primitive when vmap_method is one of"),
    ("jax.grad(lambda x: jax.pure_callback(sine, F(), x))(1.)",
     "Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks"),
    ("jax.grad(lambda x: io_callback(sine, F(), x))(1.)", "IO callbacks do not support JVP."),
    ("jax.vmap(lambda x: io_callback(sine, F(), x, ordered=True))(x)",
     "Cannot `vmap` ordered IO callback."),
    ("jax.pure_callback(sine, F(3, dtype=np.float64), x)", "cannot specify 64-bit types"),
    ("jax.pure_callback(sine, 3, x)", "'int' object has no attribute 'dtype'"),
    ("jax.jit(lambda x: jax.pure_callback(sine, F(3), 'a'))(x)", "Error interpreting argument to"),
    ("jax.jit(lambda x: jax.pure_callback(lambda v: v[:2], F(3), x))(x)",
     "Incorrect output shape for return value #0: Expected: (3,), Actual: (2,)"),
    ("jax.jit(lambda x: jax.pure_callback(lambda v: np.zeros(3, np.int32), F(3), x))(x)",
     "Incorrect output dtype for return value #0: Expected: float32, Actual: int32"),
    ("jax.jit(lambda x: jax.pure_callback(lambda v: (v, v), F(3), x))(x)",
     "Mismatched number of outputs from callback. Expected: 1, Actual: 2"),
    ("jax.jit(lambda x: jax.pure_callback(lambda v: 1 / 0, F(3), x))(x)",
     "ZeroDivisionError: division by zero"),
    ("jax.debug.callback(lambda v: 1 / 0, x)", "division by zero"),
])
def test_errors_are_those_of_jax(jax_oracle, program, words):
    same_error(jax_oracle, program, words, within=__name__)


def broken(v):
    raise LookupError("this one")


@pytest.mark.parametrize("call", [
    lambda x: jax.pure_callback(broken, F3, x),
    lambda x: io_callback(broken, F3, x),
    lambda x: io_callback(broken, F3, x, ordered=True),
    lambda x: (debug.callback(broken, x), x)[1],
    lambda x: (debug.callback(broken, x, ordered=True), x)[1],
], ids=["pure", "io", "ordered io", "debug", "ordered debug"])
def test_a_callback_that_raises_is_named_and_the_engine_goes_on(call):
    with pytest.raises(errors.JaxRuntimeError) as caught:
        jax.block_until_ready(jax.jit(call)(X))
    text = str(caught.value)
    assert "`broken`" in text and "LookupError: this one" in text and __file__ in text
    assert 'raise LookupError("this one")' in text
    assert isinstance(caught.value.__cause__, LookupError)
    seen = []
    after = jax.jit(lambda x: (debug.callback(seen.append, x, ordered=True), x + 1)[1])
    np.testing.assert_array_equal(after(X), X + 1)
    jax.effects_barrier()
    assert len(seen) == 1


def test_a_failure_in_the_background_is_heard_at_the_barrier_and_only_once():
    late = jax.jit(lambda x: debug.callback(broken, jnp.cumsum(jnp.sin(x)), ordered=True))
    big = jnp.ones(1_000_000)
    with pytest.raises(errors.JaxRuntimeError, match="LookupError: this one"):
        (late(big), jax.effects_barrier())  # whichever hears of it
    jax.effects_barrier()
    assert float(jax.jit(lambda x: x + 1)(1.0)) == 2.0
    pure = jax.jit(lambda x: jax.pure_callback(broken, F0, jnp.sum(jnp.sin(x))))
    with pytest.raises(errors.JaxRuntimeError, match="LookupError: this one"):
        jax.block_until_ready(pure(big))
    jax.effects_barrier()  # whoever used the result has heard of it already


# -- order, threads, events ------------------------------------------------------------------------


def test_ordered_effects_keep_the_order_of_calls_though_work_differs():
    seen = []

    def note(n):
        return jax.jit(lambda x: debug.callback(lambda v: seen.append(int(v)),
                                                jnp.sum(jnp.cumsum(x)) * 0 + n, ordered=True))

    programs = [note(n) for n in range(6)]
    for n, program in enumerate(programs):
        program(jnp.ones(600_000 if n % 2 == 0 else 3))
    jax.effects_barrier()
    assert seen == list(range(6))


def test_each_thread_has_its_own_order():
    seen = {}

    def work(name):
        f = jax.jit(lambda i: debug.callback(
            lambda v: seen.setdefault(name, []).append(int(v)), i, ordered=True))
        for i in range(20):
            f(i)
        jax.effects_barrier()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == {n: list(range(20)) for n in range(4)}


def test_a_callback_may_use_the_engine():
    g = jax.jit(lambda v: jnp.sin(v) + 1)

    def host(v):
        return np.asarray(g(v)) * 2

    big = np.linspace(0, 1, 300_000, dtype=np.float32)
    shape = jax.ShapeDtypeStruct(big.shape, big.dtype)
    got = jax.jit(lambda x: jax.pure_callback(host, shape, jnp.cos(x)))(big)
    np.testing.assert_allclose(got, 2 * (np.sin(np.cos(big)) + 1), rtol=1e-5)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("state", [(), 7, (np.float32(2), 3)])
def test_a_loop_may_carry_nothing_but_ask_python(transform, ordered, state):
    """The answer ends the loop; without a carry XLA's compiler crashes (JAX 0.10.2 there, too)."""
    asked, ran = [], []

    def more():
        asked.append(1)
        return np.bool_(len(asked) < 4)

    def body(carry):
        io_callback(lambda: ran.append(1), None, ordered=ordered)
        return carry

    def loop():
        return lax.while_loop(lambda carry: io_callback(
            more, jax.ShapeDtypeStruct((), bool), ordered=ordered), body, state)

    assert jax.tree.map(float, transform(loop)()) == jax.tree.map(float, state)
    jax.effects_barrier()
    assert (len(asked), len(ran)) == (4, 3)


def test_callbacks_that_compute_do_not_wait_for_each_other():
    """Each would occupy a thread that the other's computation needs (JAX stands still here)."""
    def host(v):
        return np.asarray(jnp.cumsum(jnp.sin(v)))

    big = np.ones(200_000, np.float32)
    shape = jax.ShapeDtypeStruct(big.shape, big.dtype)
    f = jax.jit(lambda x: jax.pure_callback(host, shape, jnp.cos(x)))
    results = [f(big * n) for n in range(24)]
    for n, result in enumerate(results):
        np.testing.assert_allclose(result[-1], 200_000 * np.sin(np.cos(n)), rtol=1e-3)


def test_a_callback_may_run_a_program_with_callbacks():
    seen = []
    inner = jax.jit(lambda v: (debug.callback(lambda u: seen.append(float(u)), jnp.sum(v)), v)[1])
    outer = jax.jit(lambda x: jax.pure_callback(
        lambda v: np.asarray(inner(v)) + 1, jax.ShapeDtypeStruct(x.shape, x.dtype), x))
    big = np.ones(200_000, np.float32)
    np.testing.assert_array_equal(outer(big), big + 1)
    jax.effects_barrier()
    assert seen == [200_000.0]


def test_what_a_callback_keeps_stays_as_it_was():
    kept = []
    f = jax.jit(lambda x: debug.callback(kept.append, x * 2, ordered=True))
    for n in range(5):
        f(X + n)
    jax.effects_barrier()
    np.testing.assert_array_equal(np.stack(kept), np.stack([2 * (X + n) for n in range(5)]))


def test_programs_with_different_callbacks_are_different_programs():
    results = [jax.jit(lambda x, n=n: jax.pure_callback(lambda v: v * n, F3, x))(X)
               for n in range(4)]
    np.testing.assert_array_equal(np.stack(results), np.stack([X * n for n in range(4)]))


def test_keys_pass_through_callbacks():
    key = jax.random.key(7)
    out = jax.ShapeDtypeStruct((), key.dtype)
    got = jax.jit(lambda k: io_callback(lambda v: v, out, k))(key)
    np.testing.assert_array_equal(jax.random.key_data(got), jax.random.key_data(key))


def test_each_call_is_told_to_listeners():
    events = []
    stop = bus.subscribe(events.append)
    try:
        jax.jit(lambda x: jax.pure_callback(np.sin, F3, x))(X)
    finally:
        stop()
    calls = [e for e in events if isinstance(e, Callback)]
    assert len(calls) == 1 and "sin" in calls[0].name and calls[0].seconds >= 0


def test_the_numpy_evaluator_calls_too():
    closed = jax.make_jaxpr(lambda x: jax.pure_callback(lambda v: np.sin(v), F3, x) + 1)(X)
    np.testing.assert_allclose(jax.evaluate(closed, X)[0], np.sin(X) + 1, rtol=1e-6)


def test_what_a_program_still_has_to_print_appears_before_python_ends():
    code = """
import saem as jax, saem.numpy as jnp
big = jnp.ones(2_000_000)
def broken(v):
    raise LookupError("at the end")
jax.jit(lambda x: jax.debug.print("last words {}", jnp.sum(jnp.cumsum(x)) > 0))(big)
jax.jit(lambda x: jax.debug.callback(broken, jnp.sum(jnp.cumsum(x))))(big)
"""
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(jax.__file__))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=environment, check=False)
    assert done.stdout == "last words True\n"
    assert "LookupError: at the end" in done.stderr


# -- several devices -------------------------------------------------------------------------------

several = pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")


@pytest.fixture
def spread():
    """Sixteen numbers on eight devices."""
    mesh = jax.make_mesh((8,), ("d",))
    return jax.device_put(np.arange(16, dtype=np.float32),
                          jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d")))


@several
@pytest.mark.parametrize("ordered", [False, True])
def test_a_callback_of_a_program_on_several_devices_runs_once_with_whole_arrays(spread, ordered):
    seen = []

    def host(v):
        seen.append(np.asarray(v))
        return np.sin(v)

    shape = jax.ShapeDtypeStruct((16,), np.float32)
    f = jax.jit(lambda x: io_callback(host, shape, x * 2, ordered=ordered) + 1)
    for _ in range(2):
        np.testing.assert_allclose(f(spread), np.sin(np.arange(16.0) * 2) + 1, rtol=1e-5, atol=1e-6)
    jax.effects_barrier()
    assert len(seen) == 2
    np.testing.assert_array_equal(seen[0], np.arange(16.0) * 2)
    eager = jax.pure_callback(np.sin, shape, spread)
    np.testing.assert_allclose(eager, np.sin(np.arange(16.0)), rtol=1e-5, atol=1e-6)


@several
def test_partitioned_and_inside_shard_map_each_device_calls(spread):
    seen = []
    jax.jit(lambda x: debug.callback(lambda v: seen.append(np.asarray(v).tolist()), x,
                                     partitioned=True))(spread)
    jax.effects_barrier()
    wanted = [[2.0 * i, 2.0 * i + 1] for i in range(8)]
    assert sorted(seen) == wanted
    seen.clear()
    spec = jax.sharding.PartitionSpec("d")
    f = jax.shard_map(
        lambda x: (debug.callback(lambda v: seen.append(np.asarray(v).tolist()), x), x)[1],
        mesh=spread.sharding.mesh, in_specs=spec, out_specs=spec)
    np.testing.assert_array_equal(jax.jit(f)(spread), np.arange(16.0))
    jax.effects_barrier()
    assert sorted(seen) == wanted


def seen_in_parts(names, body):
    """Return what a callback sees in a shard_map over the axes ``names`` of a mesh of 4 x 2."""
    P = jax.sharding.PartitionSpec
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    x = jax.device_put(np.arange(16, dtype=np.float32).reshape(8, 2),
                       jax.sharding.NamedSharding(mesh, P("x", "y")))
    seen = []

    def see(*values):
        seen.append([np.asarray(v).tolist() for v in values])

    names_of_body = {"see": see, "jax": jax, "first": names[0]}
    f = jax.jit(jax.shard_map(eval(body, names_of_body), mesh=mesh, in_specs=P(names[0]),
                              out_specs=P(names[0]), axis_names=set(names)))
    out = np.asarray(f(x)).tolist()
    jax.effects_barrier()
    return out, sorted(seen)


@several
@pytest.mark.parametrize("names", ["x", "y", "xy"])
@pytest.mark.parametrize("body", [
    "lambda x: (jax.debug.callback(see, x), x * 2)[1]",
    "lambda x: (jax.debug.callback(see, jax.lax.psum(x.sum(), first), x[0]), x)[1]",
    "lambda x: jax.lax.fori_loop(0, 2, lambda i, x: (jax.debug.callback(see, x[0], i), x + 1)[1], "
    "x)"])
def test_with_axes_left_to_the_partitioner_it_calls_once_for_each_part(jax_oracle, names, body):
    wanted = jax_oracle.run(source_of(seen_in_parts), names=names, body=body).value
    assert seen_in_parts(names, body) == tuple(wanted)


@several
def test_values_of_effects_need_all_axes(jax_oracle):
    same_error(jax_oracle, "jax.jit(jax.shard_map(lambda x: jax.experimental.io_callback("
               "np.sin, x, x), mesh=jax.make_mesh((4, 2), ('x', 'y'), axis_types=("
               "jax.sharding.AxisType.Auto,) * 2), in_specs=jax.sharding.PartitionSpec('x'), "
               "out_specs=jax.sharding.PartitionSpec('x'), axis_names={'x'}))(np.ones(8, 'f'))",
               "callbacks are only supported in spmd computations when all mesh axes are "
               "partitioned manually")


@several
def test_order_holds_from_one_device_to_many_and_back(spread):
    seen = []

    def note(x, name):
        debug.callback(lambda v: seen.append(name), x, ordered=True)
        return x + 1

    one = jax.jit(lambda x: note(x, "one"))
    many = jax.jit(lambda x: note(jnp.sum(x), "many"))
    other = jax.device_put(np.float32(0), jax.devices()[5])
    for _ in range(3):
        one(1.0), many(spread), one(other)
    jax.effects_barrier()
    assert seen == ["one", "many", "one"] * 3


class Late:
    """A result or token of a program that a GPU still runs, whose callback fails."""

    def __init__(self, text):
        self.text = text

    def block_until_ready(self):
        raise errors.JaxRuntimeError(f"INTERNAL: error calling callback: Traceback …\n{self.text} "
                                     "[executable_name='jit_f']")


@pytest.mark.parametrize("waited", [True, False])
def test_a_failure_that_is_known_late_is_heard_once_with_its_cause(waited):
    cause = LookupError("this one")
    text = str(effects.failed(RuntimeError(f"{effects.CALLBACK}: `late` raised it"), cause))
    program = jax.make_jaxpr(lambda x: debug.callback(broken, x))(X)
    effects.started(Late(text), program)
    with pytest.raises(errors.JaxRuntimeError, match="`late` raised it") as caught:
        jax.block_until_ready([Late(text)]) if waited else jax.effects_barrier()
    assert caught.value.__cause__ is cause
    jax.effects_barrier()
