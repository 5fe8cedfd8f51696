"""Are solutions differentiated by the implicit function theorem, as JAX does it?

Read before: ``both.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.core.infer import check_jaxpr

pytestmark = pytest.mark.usefixtures("little_effort")


def newton(f, guess):
    slope = jax.grad(f)
    return lax.while_loop(lambda s: jnp.abs(f(s)) > 1e-5, lambda s: s - f(s) / slope(s), guess)


def cube_root(a):
    return lax.custom_root(lambda v: v**3 - a, 1.0, newton, lambda g, y: y / g(1.0))


def cg(matvec, b):
    """Solve a positive definite system by a fixed number of steps of conjugate gradients."""
    def step(i, s):
        x, r, p = s
        ap = matvec(p)
        rr = r @ r
        alpha = rr / jnp.where(rr > 0, p @ ap, 1.0)
        left = r - alpha * ap
        beta = (left @ left) / jnp.where(rr > 0, rr, 1.0)
        return x + alpha * p, left, left + beta * p

    return lax.fori_loop(0, 3, step, (jnp.zeros_like(b), b, b))[0]


def substitute(matvec, c):
    """Solve a triangular system by as many steps as it has rows."""
    m = jax.jacfwd(matvec)(jnp.zeros(3))
    d = jnp.diagonal(m)
    x = c / d
    for _ in range(3):
        x = (c - (m - jnp.diag(d)) @ x) / d
    return x


def positive(A, b):
    return lax.custom_linear_solve(lambda v: A @ v, b, cg, symmetric=True)


def triangular(U, b):
    return lax.custom_linear_solve(lambda v: U @ v, b, substitute, substitute)


POSITIVE = np.array([[4, 1, 0], [1, 3, 0.5], [0, 0.5, 2]], np.float32)
TRIANGULAR = np.array([[2, 1, 0], [0, 3, 1], [0, 0, 4]], np.float32)
RIGHT = np.array([1, -2, 0.5], np.float32)


def strong(tree):
    """Return the leaves as arrays without a weak type."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) * 1, tree)


def test_roots(jax_oracle):
    def program():
        f = cube_root
        starts = jnp.asarray([1.0, 2.0, 8.0])
        return strong([
            f(2.0),
            jax.grad(f)(2.0),
            jax.jit(jax.grad(jax.grad(f)))(2.0),
            jax.jvp(f, (2.0,), (1.0,)),
            jax.vmap(f)(starts),
            jax.vmap(jax.grad(f))(starts),
            jax.grad(lambda a: lax.fori_loop(0, 2, lambda i, c: f(c + a), a))(1.5),
        ])

    same(jax_oracle, program, rtol=1e-3)


def test_roots_of_trees_with_more_results(jax_oracle):
    def program():
        def root(a):
            return lax.custom_root(
                lambda v: {"p": v["p"] ** 2 - a, "q": v["q"] - 2 * a},
                {"p": 1.0, "q": 1.0},
                lambda f, g: ({"p": jnp.sqrt(a), "q": 2 * a}, 3.0),
                lambda g, y: {"p": y["p"] / g({"p": 1.0, "q": 0.0})["p"], "q": y["q"]},
                has_aux=True,
            )

        a = jnp.float32(4.0)
        first = lambda a: root(a)[0]
        return strong([root(a), jax.jacrev(first)(a), jax.jvp(first, (a,), (a,))])

    same(jax_oracle, program)


def solved(solve, M, b):
    """Return solutions and their derivatives, in M and b, of one system and of several."""
    def ways(M, b):
        f = lambda M, b: (solve(M, b) ** 2).sum()
        bs, Ms = jnp.stack([b, 2 * b]), jnp.stack([M, M + jnp.eye(3)])
        return [
            solve(M, b),
            jax.grad(f, (0, 1))(M, b),
            jax.jvp(f, (M, b), (M, b)),
            jax.hessian(f, 1)(M, b),
            jax.vmap(solve, (None, 0))(M, bs),
            jax.vmap(jax.grad(f, (0, 1)))(Ms, bs),
            jax.grad(lambda M: jax.vmap(f, (None, 0))(M, bs).sum())(M),
        ]

    return jax.jit(ways)(M, b)


def on_circle(square):
    """Return a point whose square has this length: of a function from two numbers to one."""
    def newton_step(_, v, f):
        value, slope = jax.value_and_grad(f)(v)
        return v - value * slope / jnp.sum(slope**2)

    def tangent_solve(g, y):
        slope = jax.jacrev(g)(y)
        return y * slope / jnp.sum(slope**2)

    return lax.custom_root(
        lambda v: jnp.sum(v**2) - square, jnp.array([1.0, 2.0]),
        lambda f, v: lax.fori_loop(0, 20, lambda i, v: newton_step(i, v, f), v), tangent_solve)


def test_a_root_of_a_function_of_fewer_results(jax_oracle):
    same(jax_oracle, on_circle, square=np.float32(3.0))
    same(jax_oracle, "jax.vmap(on_circle)(s)", within=__name__,
         s=np.array([3.0, 4.0], np.float32))
    with pytest.raises(TypeError, match="of the same shape"):
        jax.grad(lambda s: on_circle(s)[0])(3.0)


@pytest.mark.parametrize(("name", "M"), [("positive", POSITIVE), ("triangular", TRIANGULAR)],
                         ids=["positive", "triangular"])
def test_linear_systems(jax_oracle, name, M):
    same(jax_oracle, f"strong(solved({name}, M, b))", rtol=2e-3, within=__name__, M=M, b=RIGHT)


def test_more_results_of_a_linear_solver(jax_oracle):
    def program():
        def f(b):
            solve = lambda mv, c: (c / mv(jnp.ones(3)), {"n": 7})
            x, aux = lax.custom_linear_solve(lambda v: v * 2.0, b, solve, solve, has_aux=True)
            return x.sum(), aux

        return strong([f(jnp.arange(3.0)), jax.grad(f, has_aux=True)(jnp.arange(3.0))])

    same(jax_oracle, program)


def test_solvers_are_checked():
    """The derivative of a solution solves the differentiated system, in double precision."""
    with jax.enable_x64(True):
        A, b = POSITIVE.astype(np.float64), RIGHT.astype(np.float64)
        slope = jax.jacrev(positive)(A, b)
        x = np.linalg.solve(A, b)
        want = -np.einsum("ik,l->ikl", np.linalg.inv(A), x)
        np.testing.assert_allclose(slope, want, rtol=1e-6)
        closed = jax.make_jaxpr(jax.grad(lambda A: (positive(A, b) ** 2).sum()))(A)
        check_jaxpr(closed)
        np.testing.assert_allclose(jax.evaluate(closed, A)[0],
                                   2 * np.einsum("ikl,i->kl", want, x), rtol=1e-6)


@pytest.mark.parametrize(("source", "sentence"), [
    ("lax.custom_linear_solve(lambda v: (v, v), x, lambda mv, b: b)",
     "matvec() output shapes must match b, got [(3,), (3,)] and [(3,)]"),
    ("lax.custom_linear_solve(lambda v: v[:2], x, lambda mv, b: b)",
     "matvec() output shapes must match b, got [(2,)] and [(3,)]"),
    ("jax.grad(lambda b: lax.custom_linear_solve(lambda v: v * 2, b, lambda mv, b: b / 2).sum())("
     "x)", "transpose_solve required for backwards mode automatic differentiation of "
     "custom_linear_solve"),
    ("lax.custom_root(lambda v: (v, v), 1., lambda f, g: g, lambda g, y: y)",
     "f() output pytree structure must match initial_guess, got PyTreeDef((*, *)) and "
     "PyTreeDef(*)."),
    ("lax.custom_root(lambda v: v, 1., lambda f, g: (g, g), lambda g, y: y)",
     "solve() output pytree structure must match initial_guess, got PyTreeDef((*, *)) and "
     "PyTreeDef(*)."),
])
def test_errors(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence, x=np.arange(3, dtype=np.float32))
