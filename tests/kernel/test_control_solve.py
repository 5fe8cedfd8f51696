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

ROOT = """
def newton(f, guess):
    slope = jax.grad(f)
    return lax.while_loop(lambda s: jnp.abs(f(s)) > 1e-5, lambda s: s - f(s) / slope(s), guess)

def cube_root(a, **more):
    return lax.custom_root(lambda v: v ** 3 - a, 1.0, newton, lambda g, y: y / g(1.0))
"""

# A positive definite system solved by a fixed number of steps of conjugate gradients.
SYSTEM = """
def cg(matvec, b):
    def step(i, s):
        x, r, p = s
        ap = matvec(p)
        rr = r @ r
        alpha = rr / jnp.where(rr > 0, p @ ap, 1.)
        left = r - alpha * ap
        beta = (left @ left) / jnp.where(rr > 0, rr, 1.)
        return x + alpha * p, left, left + beta * p
    return lax.fori_loop(0, 3, step, (jnp.zeros_like(b), b, b))[0]

A = jnp.asarray([[4., 1., 0.], [1., 3., 0.5], [0., 0.5, 2.]])
U = jnp.asarray([[2., 1., 0.], [0., 3., 1.], [0., 0., 4.]])
b = jnp.asarray([1., -2., 0.5])
explicit = lambda mv, c: jnp.linalg.inv(jax.jacfwd(mv)(jnp.zeros(3))) @ c
def substitute(mv, c):
    m = jax.jacfwd(mv)(jnp.zeros(3))
    d = jnp.diagonal(m)
    x = c / d
    for _ in range(3):
        x = (c - (m - jnp.diag(d)) @ x) / d
    return x
def positive(A, b):
    return lax.custom_linear_solve(lambda v: A @ v, b, cg, symmetric=True)
def triangular(U, b):
    return lax.custom_linear_solve(lambda v: U @ v, b, substitute, substitute)
"""


def test_roots(jax_oracle):
    same(jax_oracle, f"""{ROOT}
f = cube_root
result = [f(2.), jax.grad(f)(2.), jax.jit(jax.grad(jax.grad(f)))(2.), jax.jvp(f, (2.,), (1.,)),
          jax.vmap(f)(jnp.asarray([1., 2., 8.])), jax.vmap(jax.grad(f))(jnp.asarray([1., 2., 8.])),
          jax.grad(lambda a: lax.fori_loop(0, 2, lambda i, c: f(c + a), a))(1.5)]
result = [jax.tree.map(lambda r: jnp.asarray(r) * 1, r) for r in result]""", rtol=1e-3)


def test_roots_of_trees_with_more_results(jax_oracle):
    same(jax_oracle, """
a = jnp.float32(4.)
def root(a):
    return lax.custom_root(lambda v: {'p': v['p'] ** 2 - a, 'q': v['q'] - 2 * a},
                           {'p': 1., 'q': 1.}, lambda f, g: ({'p': jnp.sqrt(a), 'q': 2 * a}, 3.),
                           lambda g, y: {'p': y['p'] / g({'p': 1., 'q': 0.})['p'], 'q': y['q']},
                           has_aux=True)
result = [root(a), jax.jacrev(lambda a: root(a)[0])(a), jax.jvp(lambda a: root(a)[0], (a,), (a,))]
result = jax.tree.map(lambda r: jnp.asarray(r) * 1, result)""")


@pytest.mark.parametrize("name", ["positive", "triangular"])
def test_linear_systems(jax_oracle, name):
    same(jax_oracle, f"""{SYSTEM}
f = lambda M, b: ({name}(M, b) ** 2).sum()
M = {'A' if name == 'positive' else 'U'}
bs, Ms = jnp.stack([b, 2 * b]), jnp.stack([M, M + jnp.eye(3)])
result = jax.jit(lambda M, b: [
    {name}(M, b), jax.grad(f, (0, 1))(M, b), jax.jvp(f, (M, b), (M, b)), jax.hessian(f, 1)(M, b),
    jax.vmap({name}, (None, 0))(M, bs), jax.vmap(jax.grad(f, (0, 1)))(Ms, bs),
    jax.grad(lambda M: jax.vmap(f, (None, 0))(M, bs).sum())(M)])(M, b)
result = jax.tree.map(lambda r: jnp.asarray(r) * 1, result)""", rtol=2e-3)


def test_more_results_of_a_linear_solver(jax_oracle):
    same(jax_oracle, """
def f(b):
    solve = lambda mv, c: (c / mv(jnp.ones(3)), {'n': 7})
    x, aux = lax.custom_linear_solve(lambda v: v * 2., b, solve, solve, has_aux=True)
    return x.sum(), aux
result = [f(jnp.arange(3.)), jax.grad(f, has_aux=True)(jnp.arange(3.))]
result = jax.tree.map(lambda r: jnp.asarray(r) * 1, result)""")


def test_solvers_are_checked():
    """The derivative of a solution solves the differentiated system, in double precision."""
    with jax.enable_x64(True):
        names = {"jax": jax, "jnp": jnp, "lax": lax}
        exec(SYSTEM, names)
        A, b = np.asarray(names["A"]), np.asarray(names["b"])
        slope = jax.jacrev(names["positive"])(A, b)
        x = np.linalg.solve(A, b)
        want = -np.einsum("ik,l->ikl", np.linalg.inv(A), x)
        np.testing.assert_allclose(slope, want, rtol=1e-6)
        closed = jax.make_jaxpr(jax.grad(lambda A: (names["positive"](A, b) ** 2).sum()))(A)
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
    same_error(jax_oracle, f"x = jnp.arange(3.)\nresult = {source}", sentence)
