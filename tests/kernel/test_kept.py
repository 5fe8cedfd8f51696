"""Does a session that meets ever new shapes stay within bounds, and lose nothing but time?

Read before: ``core.kept``.
Invariant: what was dropped is made again with the same result.
"""

from __future__ import annotations

import collections
import functools
import gc
import itertools
import weakref

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem.compile import dispatch, executables, mappings
from saem.core import kept
from saem.core.jaxpr import ClosedJaxpr
from saem.core.kept import Kept


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Tables of other tests do not count, nor what they added."""
    monkeypatch.setattr(kept, "_tables", weakref.WeakValueDictionary())
    monkeypatch.setattr(kept, "_added", itertools.count(1))
    monkeypatch.setattr(executables, "_executables", collections.OrderedDict())


def test_the_largest_table_loses_its_older_half(monkeypatch):
    monkeypatch.setattr(kept, "CAPACITY", 100)
    large, medium, small = Kept(), Kept(), Kept()
    for table, count in ((small, 8), (medium, 30), (large, 90)):
        for n in range(count):
            table.keep(n, str(n))
    kept.shrink()
    assert list(large) == list(range(45, 90)) and len(medium) == 30 and len(small) == 8
    kept.shrink()
    assert len(large) == 45  # there is room again


def test_small_tables_are_left_alone(monkeypatch):
    monkeypatch.setattr(kept, "CAPACITY", 10)
    tables = [Kept() for _ in range(20)]
    for table in tables:
        for n in range(kept.SMALL):
            table.keep(n, n)
    kept.shrink()
    assert all(len(table) == kept.SMALL for table in tables)


def test_a_table_goes_with_its_function():
    f = jax.jit(lambda x: x + 1)
    f(np.float32(1))
    assert sum(map(len, kept._tables.values())) >= 1
    del f
    gc.collect()
    assert sum(map(len, kept._tables.values())) == 0


def test_many_shapes_stay_within_bounds_and_are_right(monkeypatch):
    monkeypatch.setattr(kept, "CAPACITY", 16)
    monkeypatch.setattr(kept, "ROUND", 4)
    monkeypatch.setattr(executables, "CAPACITY", 16)
    step = jax.jit(lambda x: x[::-1])
    for _ in range(2):
        for n in range(1, 41):
            x = np.arange(n, dtype=np.float32)
            assert step(x).tolist() == x[::-1].tolist()
            assert jax.lax.neg(jnp.asarray(x)).tolist() == (-x).tolist()
            assert sum(map(len, kept._tables.values())) <= 16 + 2 * 4 + 3 * kept.SMALL
            assert len(executables._executables) <= 16
    assert len(step.info.entries) < 40


def test_bodies_of_loops_are_bounded_too(monkeypatch):
    monkeypatch.setattr(kept, "CAPACITY", 16)
    monkeypatch.setattr(kept, "ROUND", 1)

    def body(c, a):
        return c + a.sum(), a

    for n in range(1, 41):
        out = jax.make_jaxpr(lambda xs: jax.lax.scan(body, 0.0, xs))(np.ones((2, n), np.float32))
        assert out.out_avals[1].shape == (2, n)
    assert sum(map(len, kept._tables.values())) <= 17


@pytest.fixture
def usual_collections():
    """Python collects garbage as often as it does where no test has changed that."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


@pytest.mark.skipif(not mappings.MAPPINGS.exists(), reason="only Linux limits memory mappings")
@pytest.mark.usefixtures("usual_collections")
@pytest.mark.parametrize("how", ["jitted", "operations", "ahead of time"])
def test_programs_stay_within_the_memory_mappings_of_a_process(monkeypatch, how):
    # Tables of operations that other tests ran are not among those that are emptied here.
    tables = functools.lru_cache(dispatch.primitive_callable.__wrapped__)
    monkeypatch.setattr(dispatch, "primitive_callable", tables)
    gc.collect()
    limit = mappings.count() + 240
    monkeypatch.setattr(mappings, "limit", lambda: limit)
    monkeypatch.setattr(mappings, "SHARE", (limit - 160) / limit)
    monkeypatch.setattr(mappings, "ROUND", 4)
    monkeypatch.setattr(mappings, "watch", mappings.Watch())
    made, most = [], 0
    for n in range(100):
        x = np.arange(n % 10 + 1, dtype=np.float32)
        if how == "jitted":  # each held, none in a table that shrinks
            made.append(jax.jit(lambda x, n=n: x[::-1] * n))
            got = made[-1](x)
        elif how == "operations":
            got = jax.lax.pad(x, np.float32(0), [(0, n, 0)])[:x.size][::-1] * n
        else:
            got = jax.jit(lambda x, n=n: x[::-1] * n).lower(x).compile()(x)
        assert got.tolist() == (x[::-1] * np.float32(n)).tolist()
        most = max(most, mappings.count())
    assert limit - 200 < most < limit, (most, limit)
    for n, again in enumerate(made[:10]):
        assert again(np.float32([1, 2])).tolist() == [2 * n, n]


def test_programs_of_others_do_not_make_each_round_drop_all(monkeypatch):
    monkeypatch.setattr(mappings, "ROUND", 1)
    monkeypatch.setattr(mappings, "limit", lambda: 1000)
    counted = [900]
    monkeypatch.setattr(mappings, "count", lambda: counted[0])
    watch = mappings.Watch()
    assert watch.too_many()
    watch.dropped()
    assert not watch.too_many()
    counted[0] = 960
    assert watch.too_many()


def test_programs_of_new_functions_beside_old_ones_stay_within_bounds(monkeypatch):
    monkeypatch.setattr(kept, "CAPACITY", 16)
    monkeypatch.setattr(kept, "ROUND", 4)
    x = jnp.ones(3)

    def double(a):
        return a * 2

    def step(carry):
        return carry[0] + 1, carry[1]

    def programs_after(times):
        for _ in range(times):
            jax.lax.cond(True, lambda a: a + 1, double, x)
            jax.grad(lambda y: jax.lax.cond(True, lambda a: a + 1, double, y).sum())(x)
            jax.lax.while_loop(lambda carry: carry[0] < 2, step, (0, x))
        gc.collect()
        return sum(type(thing) is ClosedJaxpr for thing in gc.get_objects())

    first = programs_after(40)
    assert programs_after(80) < first + 40
