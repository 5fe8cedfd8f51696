"""Do slices whose start is traced (``jax.ds``) mean what they mean on JAX?

Read before: ``saem.core.dynamic_slices``, ``library.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from library import check

ROWS = [
    "[repr(jax.ds(None)), repr(jax.ds(5)), repr(jax.ds(1, 3, 2)), repr(jax.ds(1, None))]",
    "jax.ds(1, 3, -1)", "jax.ds(1, 3) == jax.ds(1, 3)", "hash(jax.ds(1, 3))",
    "len(jax.tree.leaves(jax.ds(1, 3)))",
    *(f"v[jax.ds({i})]" for i in ("4, 2", "8, 5", "1, 4, 2", "-3, 2", "jnp.int32(-3), 2",
                                  "jnp.int32(8), 5", "np.int32(3), 2", "3", "None", "2, 0")),
    "v[jax.ds(1, jnp.int32(3))]", "np.arange(4)[jax.ds(1, 2)]",
    "jax.jit(lambda v, i: v[jax.ds(i, 2)])(v, 4)", "jax.jit(lambda v, i: v[jax.ds(i, 2, 3)])(v, 1)",
    "jax.jit(lambda v, n: v[jax.ds(1, n)])(v, 3)",
    "[x[jax.ds(1, 2), jax.ds(1, 2)], x[jax.ds(jnp.int32(1), 2), 1], x[:, jax.ds(jnp.int32(1), 2)]]",
    "x[None, jax.ds(jnp.int32(1), 2), ..., None]", "x[jax.ds(jnp.int32(1), 2), jnp.array([0, 1])]",
    "[x.at[jax.ds(jnp.int32(1), 2)].set(0), x.at[jax.ds(1, 2), 1].add(5)]",
    "x.at[jax.ds(jnp.int32(1), 2), 1:3].get()", "x.at[jax.ds(jnp.int32(2), 2)].set(0)",
    "jax.grad(lambda v: (v[jax.ds(jnp.int32(1), 2)] ** 2).sum())(v.astype('float32'))",
    "mapped(lambda x, i: x[jax.ds(i, 2)], x, jnp.array([0, 1, 2]))",
]
REFS = [
    "jax.new_ref(v)[jax.ds(2, 3)]", "jax.new_ref(v)[jax.ds(jnp.int32(2), 3)]",
    "jax.jit(lambda r, i: r[jax.ds(i, 3)])(jax.new_ref(v), 2)",
    "[jax.new_ref(x)[jax.ds(1, 2), 2], jax.new_ref(x)[0, jax.ds(1, 2)]]",
    "jax.jit(lambda r, i: r[0, jax.ds(i, 2)])(jax.new_ref(x), 1)",
    "jax.jit(lambda r, i: r[jax.ds(i, 2), jax.ds(i, 3)])(jax.new_ref(x), 1)",
    "written(lambda r, i: r.__setitem__(jax.ds(i, 2), jnp.zeros((2, 4), int)), jax.new_ref(x), 1)",
    "written(lambda r, i: r.__setitem__((slice(None), jax.ds(i, 2)), jnp.zeros((3, 2), int)),"
    " jax.new_ref(x), 1)",
]
BEGIN = ("(lambda v, x, written: %s)(jnp.asarray(v), jnp.asarray(x),"
         " lambda f, r, i: (jax.jit(f)(r, i), r[...])[1])")


def test_slices(jax_oracle):
    check(jax_oracle, [BEGIN % row for row in [*ROWS, *REFS]],
          v=np.arange(10, dtype=np.int32), x=np.arange(12, dtype=np.int32).reshape(3, 4))
