"""Does the engine stay usable when threads, interrupts and failures meet it?

After each mishap the same questions are asked: a trace starts from the ground, a jitted function
compiles and runs, a derivative is right.
"""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.core.trace import eval_trace, state


def usable(number: float = 2.0) -> None:
    """Assert that a fresh function is traced, compiled, run and differentiated."""
    assert state.trace is eval_trace and state.stack == ()
    f = jax.jit(lambda x: jnp.sin(x) * number + x.sum())
    x = np.linspace(-1, 1, 3, dtype=np.float32)
    np.testing.assert_allclose(f(x), np.sin(x) * number + x.sum(), rtol=1e-5)
    got = jax.grad(lambda x: (jnp.sin(x) * number).sum())(x)
    np.testing.assert_allclose(got, np.cos(x) * number, rtol=1e-5)


def one_round(x, a: float) -> None:
    """Trace, compile, run and print a few programs on ``x`` and ``a``; assert every number."""
    looped = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, v: jnp.tanh(v) + a, x))
    wanted = x
    for _ in range(3):
        wanted = np.tanh(wanted) + a
    np.testing.assert_allclose(looped(x), wanted, rtol=1e-5)
    xs = np.stack([x, 2 * x])
    np.testing.assert_allclose(
        jax.vmap(jax.grad(lambda x: (x * x * a).sum()))(xs), 2 * xs * a, rtol=1e-5)
    text = str(jax.make_jaxpr(lambda x: x * a)(x))
    assert f"mul a {a}:f32[]" in text and text.count("=") == 1


def worker(number: int, rounds: int, failures: list, counts: list) -> None:
    """Trace, compile and run programs of this thread alone, and check every number."""
    draw = np.random.default_rng(number)
    try:
        for _ in range(rounds):
            x = draw.normal(size=int(draw.integers(1, 5))).astype(np.float32)
            one_round(x, float(draw.integers(1, 100)))
            with jax.enable_x64(bool(number % 2)):
                assert jnp.asarray(1.0).dtype == (np.float64 if number % 2 else np.float32)
            counts[number] += 1
    except BaseException as error:
        failures.append((number, error))


def test_eight_threads_do_not_hear_each_other():
    failures: list = []
    counts, rounds = [0] * 8, 8
    threads = [threading.Thread(target=worker, args=(n, rounds, failures, counts))
               for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert counts == [rounds] * 8
    usable(3.0)


def test_threads_share_one_compile():
    shared = jax.jit(lambda x: jnp.cos(x) * 5 + 7)
    results: list = []
    barrier = threading.Barrier(8)

    def call():
        barrier.wait()
        results.append(np.asarray(shared(np.float32(0.5))))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and shared._cache_size() == 1
    np.testing.assert_allclose(results, np.cos(0.5) * 5 + 7, rtol=1e-6)


@pytest.fixture
def keyboard():
    """Let Ctrl-C interrupt, also where a shell started the tests in the background, deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("transform", [
    jax.jit, jax.grad, jax.vmap, jax.checkpoint, lambda f: jax.jit(jax.vmap(jax.grad(f))),
    lambda f: lambda x: lax.scan(lambda c, y: (f(c), y), x.sum(), x),
    lambda f: lambda x: lax.cond(x.sum() > 0, f, f, x),
    lambda f: lambda x: lax.while_loop(lambda v: v.sum() < 3, f, x)], ids=range(8))
def test_an_interrupt_inside_a_trace_leaves_nothing_behind(transform, keyboard):
    def interrupted(x):
        jnp.sin(x)
        signal.raise_signal(signal.SIGINT)
        return x.sum()

    with pytest.raises(KeyboardInterrupt):
        transform(interrupted)(np.ones(3, np.float32))
    usable()


def test_a_raising_callback_leaves_the_engine_usable():
    def refuse(x):
        raise RuntimeError("the host said no")

    result = jax.ShapeDtypeStruct((3,), np.float32)
    f = jax.jit(lambda x: jax.pure_callback(refuse, result, x) + 1)
    for _ in range(2):
        with pytest.raises(Exception, match="the host said no"):
            jax.block_until_ready(f(np.ones(3, np.float32)))
        usable()


def test_running_out_of_memory_leaves_the_engine_usable():
    huge = jax.jit(lambda x: jnp.broadcast_to(x, (2**21, 2**21)).at[0, 0].add(1))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"RESOURCE_EXHAUSTED|[Oo]ut of memory"):
        jax.block_until_ready(huge(np.float32(1)))
    usable()


def test_a_failed_compile_leaves_the_engine_usable():
    f = jax.jit(lambda x: x + 1, compiler_options={"xla_no_such_option": True})
    for _ in range(2):
        with pytest.raises(Exception, match="xla_no_such_option"):
            f(np.ones(3, np.float32))
        usable()


def test_an_error_in_a_trace_is_not_kept():
    fail = [True]

    @jax.jit
    def sometimes(x):
        if fail[0]:
            raise ValueError("not yet")
        return x + 1

    with pytest.raises(ValueError, match="not yet"):
        sometimes(np.float32(1))
    fail[0] = False
    assert float(sometimes(np.float32(1))) == 2.0
    usable()
