"""Does a jitted function trace once per signature, run what it should, and say what is wrong?"""

from __future__ import annotations

import functools
import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.compile import executables
from saem.core.events import CacheHit, CacheMiss, Compile, TraceEnd, bus
from saem.observe.look import looking


@pytest.fixture
def events():
    seen: list = []
    end = bus.subscribe(seen.append)
    yield seen
    end()


def kinds(events, kind):
    return [e for e in events if isinstance(e, kind)]


def arr(*values, dtype=np.float32):
    return np.asarray(values, dtype)


def test_traces_once_per_signature():
    traced = []

    @jax.jit
    def f(x, y):
        traced.append((x.shape, str(x.dtype)))
        return {"sum": lax.add(x, y)}

    for _ in range(3):
        np.testing.assert_array_equal(f(arr(1, 2), arr(3, 4))["sum"], [4, 6])
    assert len(traced) == 1
    f(arr(1, 2, 3), arr(1, 2, 3))
    f(arr(1, 2, dtype=np.int32), arr(1, 2, dtype=np.int32))
    assert traced == [((2,), "float32"), ((3,), "float32"), ((2,), "int32")]


def test_weak_types_are_part_of_the_signature():
    traced = []

    @jax.jit
    def f(x):
        traced.append(x.weak_type)
        return x

    assert f(1.0).weak_type
    assert not f(np.float32(1)).weak_type
    assert traced == [True, False]


def test_static_arguments_by_number_and_name():
    @functools.partial(jax.jit, static_argnums=1)
    def power(x, n):
        return lax.integer_pow(x, n)

    np.testing.assert_array_equal(power(arr(2, 3), 3), [8, 27])
    np.testing.assert_array_equal(power(arr(2, 3), n=2), [4, 9])

    @functools.partial(jax.jit, static_argnames="mode")
    def pick(x, mode):
        return lax.neg(x) if mode == "neg" else x

    np.testing.assert_array_equal(pick(arr(1), "neg"), [-1])
    np.testing.assert_array_equal(pick(arr(1), mode="id"), [1])


def test_static_arguments_must_be_hashable():
    f = jax.jit(lambda x, n: x, static_argnums=1)
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        f(arr(1), [1, 2])


def test_refusals_name_the_argument():
    f = jax.jit(lambda x, table: x)
    with pytest.raises(TypeError, match=r"of type <class 'str'>.*path table\['k'\]\[1\]"):
        f(arr(1), {"k": [arr(1), "text"]})
    with pytest.raises(TypeError, match="returned a value of type <class 'str'> at output"):
        jax.jit(lambda x: (x, "text"))(arr(1))
    with pytest.raises(ValueError, match="only accepts 1 positional"):
        jax.jit(lambda x: x, static_argnums=3)
    with pytest.raises(ValueError, match="'nope'"):
        jax.jit(lambda x: x, static_argnames="nope")
    with pytest.raises(TypeError, match="callable"):
        jax.jit(3)


def test_donated_buffers_are_gone():
    f = jax.jit(lambda x: lax.add(x, x), donate_argnums=0)
    x = jax.device_put(arr(1, 2))
    np.testing.assert_array_equal(f(x), [2, 4])
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        np.asarray(x)
    # XLA's own ValueError where C++ takes the call (jaxlib 0.10), ours where it hands it on.
    with pytest.raises((ValueError, RuntimeError), match="deleted"):
        f(x)


def test_useless_donation_warns():
    f = jax.jit(lambda x: lax.slice(x, (0,), (1,)), donate_argnums=0)
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[2\]"):
        f(jax.device_put(arr(1, 2)))


def test_nested_jit_is_one_equation_and_closes_over_tracers():
    inner = jax.jit(lambda y: lax.mul(y, y))

    def outer(x):
        scaled = jax.jit(lambda y: lax.mul(x, y))
        return lax.add(inner(x), scaled(x))

    closed = jax.make_jaxpr(outer)(arr(1, 2))
    assert [eqn.primitive.name for eqn in closed.eqns] == ["jit", "jit", "add"]
    np.testing.assert_array_equal(jax.jit(outer)(arr(1, 2)), [2, 8])


def test_the_same_program_is_found_not_compiled(events):
    for _ in range(3):
        jax.jit(lambda x: lax.sub(lax.mul(x, x), lax.neg(x)))(arr(1.25, 2.5, 7))
    compiles = kinds(events, Compile)
    assert [c.found for c in compiles][1:] == [True, True]
    assert len({c.program for c in compiles}) == 1
    assert len(kinds(events, TraceEnd)) == 3


def test_miss_describes_the_call_in_the_callers_words(events):
    f = jax.jit(lambda params, n, flag=None: lax.integer_pow(params["w"], n), static_argnums=1)
    f({"w": arr(1, 2)}, 2, flag=1.0)
    (miss,) = kinds(events, CacheMiss)
    weights, flag = miss.signature.arguments
    assert (weights.path, weights.shape, weights.dtype, weights.given) == (
        "params['w']", (2,), "f32", "position")
    assert (flag.path, flag.weak_type, flag.given, flag.kind) == ("flag", True, "keyword", "scalar")
    assert [(s.path, s.value) for s in miss.signature.static] == [("n", "2")]


def test_hits_are_counted_only_while_asked_for():
    f = jax.jit(lambda x: lax.add(x, x))
    f(arr(1))
    seen: list = []
    end = bus.subscribe(seen.append, hits=True)
    f(arr(1))
    f(arr(1))
    end()
    f(arr(1))
    assert len(kinds(seen, CacheHit)) == 2
    assert not kinds(seen, CacheMiss)


def test_stages():
    traced = jax.jit(lambda x, y: lax.dot(x, y)).trace(
        jax.ShapeDtypeStruct((2, 3), np.float32), jax.ShapeDtypeStruct((3, 4), np.float32))
    assert traced.out_info.shape == (2, 4)
    lowered = traced.lower()
    assert "stablehlo.dot_general" in lowered.as_text()
    assert "loc(" not in lowered.as_text()
    assert 'test_jit.py"' in lowered.as_text(debug_info=True)
    compiled = lowered.compile()
    assert compiled.cost_analysis()["flops"] >= 2 * 2 * 3 * 4
    x, y = np.ones((2, 3), np.float32), np.full((3, 4), 2, np.float32)
    np.testing.assert_array_equal(compiled(x, y), x @ y)
    assert "HloModule" in compiled.as_text()
    with pytest.raises(TypeError, match=r"float32\[2,3\] and called with float32\[1,3\]"):
        compiled(np.ones((1, 3), np.float32), y)


@pytest.mark.parametrize("name", ["expn", "eigh_tridiagonal"])
def test_library_functions_with_loops_run_without_jit(name):
    x = np.asarray([0.5, 2.0], np.float32)
    with jax.disable_jit():
        found = {
            "expn": lambda: jax.scipy.special.expn(1, x),
            "eigh_tridiagonal": lambda: jax.scipy.linalg.eigh_tridiagonal(
                x[:1], x[:0], eigvals_only=True),
        }[name]()
    # Abramowitz and Stegun, table 5.1: E1(0.5), E1(2).
    wanted = {"expn": [0.5597735948, 0.0489005107], "eigh_tridiagonal": [0.5]}[name]
    np.testing.assert_allclose(found, wanted, rtol=2e-6)


def test_disable_jit_runs_python():
    seen = []

    @jax.jit
    def f(x):
        seen.append(type(x).__name__)
        return lax.add(x, x)

    f(arr(1))
    with jax.disable_jit():
        f(jax.device_put(arr(1)))
    assert seen == ["StagingTracer", "ArrayImpl"]


@pytest.mark.clears_caches
def test_clear_caches_forgets():
    traced = []

    @jax.jit
    def f(x):
        traced.append(1)
        return x

    f(arr(1))
    f.clear_cache()
    f(arr(1))
    jax.clear_caches()
    f(arr(1))
    assert len(traced) == 3


@pytest.mark.clears_caches
def test_caches_are_cleared_and_functions_looked_at_while_others_trace():
    failed, done = [], threading.Event()

    def trace_new_functions():
        while not done.is_set():
            kept = [jax.jit(lambda x, n=n: lax.mul(x, x)) for n in range(50)]
            try:
                assert [f.eval_shape(arr(1)).shape for f in kept] == [(1,)] * 50
            except Exception as error:
                failed.append(error)
                return

    others = [threading.Thread(target=trace_new_functions) for _ in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in others:
            thread.start()
        for _ in range(100):
            jax.clear_caches()
            with looking():
                jax.make_jaxpr(lambda x: lax.neg(x))(arr(1))
    finally:
        sys.setswitchinterval(before)
        done.set()
        for thread in others:
            thread.join()
    assert not failed


def test_a_function_is_not_kept_alive():
    def make():
        def local(x):
            return lax.add(x, x)

        jax.jit(local)(arr(1))
        return weakref.ref(local)

    reference = make()
    gc.collect()
    assert reference() is None


def test_eight_threads_do_not_mix():
    failures = []

    def work(seed):
        try:
            rng = np.random.RandomState(seed)
            for _ in range(15):
                x = rng.randn(rng.randint(1, 6)).astype(np.float32)
                scale = np.float32(seed)
                got = jax.jit(jax.grad(
                    lambda v, s=scale: lax.reduce_sum(lax.mul(lax.mul(v, v), s), (0,))))(x)
                np.testing.assert_allclose(got, 2 * scale * x, rtol=1e-6)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_that_need_one_program_compile_it_once():
    begin, found = threading.Barrier(8), []

    def work():
        f = jax.jit(lambda x: jnp.sin(x) * 7.25)
        begin.wait()
        f(np.float32(1))

    def keep(event):
        if isinstance(event, Compile):
            found.append(event.found)

    end = bus.subscribe(keep)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        end()
    assert sorted(found) == [False] + [True] * 7


def test_a_compilation_that_fails_leaves_no_lock():
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError):
            jax.jit(lambda x: x + 1, compiler_options={"no_such_option": 1})(1.0)
    assert not executables._locks


def test_an_interrupted_trace_leaves_the_engine_usable():
    def interrupted(x):
        lax.add(x, x)
        raise KeyboardInterrupt

    for transform in (jax.jit, jax.make_jaxpr, lambda f: jax.vmap(f), jax.grad):
        with pytest.raises(KeyboardInterrupt):
            transform(interrupted)(arr(1.0))
    np.testing.assert_array_equal(jax.jit(lambda x: lax.add(x, x))(arr(1)), [2])
    np.testing.assert_array_equal(lax.add(arr(1), arr(1)), [2])


def test_a_leaked_tracer_is_found_out():
    kept = []

    @jax.jit
    def f(x):
        kept.append(x)
        return x

    f(arr(1))
    with pytest.raises(jax.errors.UnexpectedTracerError, match="side effect"):
        lax.add(kept[0], kept[0])
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.jit(lambda y: lax.add(y, kept[0]))(arr(1))


@pytest.mark.parametrize(("first", "second"), [("jax", "saem"), ("saem", "jax")])
def test_jax_and_saem_refuse_to_share_a_process(first, second, tmp_path):
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("")
    code = f"import {first}\ntry:\n    import {second}\nexcept ImportError as e:\n    print(e)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": ":".join(
                              [str(tmp_path), *sys.path])}, check=True)
    assert "process" in done.stdout
    assert "jaxlib's one array class" in done.stdout
