"""Do cg, gmres and bicgstab solve, and are their derivatives those of the solution?

Read before: ``tests/kernel/library.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from library import check

import saem.numpy as jnp
from saem.scipy.sparse import linalg

pytestmark = pytest.mark.usefixtures("little_effort")

METHODS = {"cg": "S", "gmres": "B", "bicgstab": "B"}


def operands():
    draw = np.random.RandomState(0)
    A = draw.randn(6, 6)
    return {"A": A.astype("f"), "S": (A @ A.T + 6 * np.eye(6)).astype("f"),
            "B": (A + 4 * np.eye(6)).astype("f"), "b": draw.randn(6).astype("f")}


@pytest.mark.parametrize("name", METHODS)
def test_solutions(jax_oracle, name):
    f, a = f"sparse.{name}", METHODS[name]
    rows = [
        f"{f}({a}, b)[0]", f"{f}({a}, b, tol=1e-6)[0]",
        f"{f}(lambda x: {a} @ x, b, x0=b, maxiter=50)[0]",
        f"{f}({a}, b, M=lambda x: x / jnp.diag({a}))[0]",
        f"{f}(lambda t: dict(u=2 * t['u'], v=3 * t['v']), dict(u=b, v=b[:2]))[0]",
        f"{f}(A[:3], b)", f"{f}('a', b)", f"{f}({a}, b, x0=(b,))",
        f"grads(lambda a, b: {f}(a, b, tol=1e-6)[0], {a}, b)",
        f"mapped(lambda b: {f}({a}, b, tol=1e-6)[0], A)", f"jax.jit(lambda b: {f}({a}, b)[0])(b)",
        f"jax.jvp(lambda b: {f}({a}, b, tol=1e-6)[0], (b,), (b,))", f"{f}({a} + 0j, b * 1j)[0]",
        f"{f}({a}, b)[1]"]
    check(jax_oracle, rows, rtol=3e-4, **operands())


def test_gmres(jax_oracle):
    check(jax_oracle, [
        "sparse.gmres(B, b, solve_method='incremental')[0]",
        "sparse.gmres(B, b, restart=3, maxiter=30)[0]", "sparse.gmres(B, b, solve_method='other')",
    ], rtol=3e-4, **operands())


def test_gmres_says_what_it_did_not_reach():
    names = operands()
    assert int(linalg.gmres(names["B"], jnp.asarray(names["b"]), restart=2, maxiter=1)[1]) == 1


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int32"])
@pytest.mark.parametrize("solve_method", ["batched", "incremental"])
def test_gmres_computes_in_the_dtype_of_a_wider_matrix(dtype, solve_method):
    matrix = np.array([[4, 1, 0], [1, 3, 0], [0, 0, 2]], np.float32)
    x, missed = linalg.gmres(jnp.asarray(matrix), jnp.arange(3).astype(dtype),
                             solve_method=solve_method)
    assert (x.dtype, missed) == (np.float32, 0)
    np.testing.assert_allclose(x, np.linalg.solve(matrix, np.arange(3.0)), rtol=1e-5)
