"""Do programs of which XLA makes wrong code, or code that waits for ever, give right results?

Read before: ``compile.faults``.
Invariant: the numbers are NumPy's; programs of other kinds are compiled as XLA does by itself.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import _jaxlib, lax
from saem.compile.faults import MANY_COLUMNS, sound_options
from saem.placement.devices import default_device

wrong_code = pytest.mark.skipif(
    not _jaxlib.SOUND_OPTIONS, reason="this jaxlib is not known to make wrong code")


def options(fun, *shapes):
    closed = jax.make_jaxpr(fun)(*[jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes])
    return sound_options(closed, (default_device(),))


@wrong_code
@pytest.mark.parametrize(("fun", "fold"), [
    (lambda w, xs: jax.vmap(lambda x: (w @ x).sum())(xs), lambda rows: rows.sum(0)),
    (lambda w, xs: jax.vmap(lambda x: jnp.max(w @ x))(xs), lambda rows: rows.max(0)),
    (lambda w, xs: lax.map(lambda w: ((w @ xs.T) ** 2).sum(0), w[None])[0],
     lambda rows: (rows ** 2).sum(0)),
], ids=["sum", "max", "in a loop"])
def test_a_product_of_many_columns_folded_over_its_rows(fun, fold):
    rng = np.random.default_rng(0)
    w, xs = rng.uniform(1, 2, (3, 3)), rng.uniform(1, 2, (40_001, 3))
    w, xs = w.astype(np.float32), xs.astype(np.float32)
    rows = np.einsum("ij,nj->in", w, xs)
    np.testing.assert_allclose(jax.jit(fun)(w, xs), fold(rows), rtol=1e-5)


@wrong_code
def test_a_fold_of_an_array_with_eight_axes():
    def fold(row, table):
        return jnp.sum(row[..., None, None, None, None, None] * table, axis=2)

    shapes = (10, 4, 6), (10, 4, 6, 9, 9, 9, 9, 9)
    assert options(fold, *shapes)  # else this process might end
    found = jax.jit(fold)(*[np.ones(s, np.float32) for s in shapes])
    np.testing.assert_array_equal(found, np.full((10, 4, 9, 9, 9, 9, 9), 6, np.float32))


@wrong_code
def test_other_programs_are_compiled_as_usual():
    assert not options(lambda w, x: (w @ x).sum(0), (3, 3), (3, MANY_COLUMNS))
    assert options(lambda w, x: (w @ x).sum(0), (3, 3), (3, MANY_COLUMNS + 1))
    assert not options(lambda x: jnp.sin(x).sum(0), (3, 100_000))
    assert not options(lambda x: x.sum(2), (2,) * 6)
    assert options(lambda x: x.sum(2), (2,) * 7)


@wrong_code
def test_a_choice_of_the_user_is_kept(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_experimental_ynn_fusion_type=")
    assert not options(lambda x: x.sum(2), (2,) * 7)


MANY_STACKS = """
import saem as jax, saem.numpy as jnp
xs = [jax.random.normal(jax.random.key(i), (3, 256, 64 + i)) for i in range(12)]
f = jax.jit(lambda *xs: [jnp.linalg.qr(jnp.sin(x * 2 + 1)) for x in xs])
for _ in range(3):
    outs = jax.block_until_ready(f(*xs))
print(max(float(abs(q @ r - jnp.sin(x * 2 + 1)).max()) for (q, r), x in zip(outs, xs)) < 1e-4)
"""


def test_many_stacks_of_matrices_do_not_wait_for_each_other():
    # On two processors XLA's threads wait for one another at the first call.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", MANY_STACKS], env=environment,
                          capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "True", done.stderr


def test_stacks_of_matrices_are_worked_on_in_order(monkeypatch):
    def two(x, y):
        return jnp.linalg.cholesky(x), lax.cond(True, jnp.linalg.cholesky, lambda y: y, y)

    ordered = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
    assert options(two, (3, 4, 4), (2, 4, 4)) == ordered
    assert options(two, (1, 3, 4, 4), (1, 2, 4, 4)) == ordered
    assert options(lambda x: lax.map(jnp.linalg.eigh, x)[0] + jnp.linalg.det(x)[:, None],
                   (5, 4, 4)) == {}
    assert options(two, (4, 4), (2, 4, 4)) == options(two, (1, 4, 4), (4, 4)) == {}
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_DEFAULT")
    assert options(two, (3, 4, 4), (2, 4, 4)) == {}
