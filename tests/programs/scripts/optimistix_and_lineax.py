"""optimistix and lineax: their READMEs: fixed points, roots, minima, least squares, solves."""

import jax
import jax.numpy as jnp
import jax.random as jr
import lineax as lx
import optimistix as optx
from curves import record

y0, dt = jnp.array(1.), jnp.array(0.1)


def fn(y, args):
    return y0 + jnp.tanh(y) * dt


record("fixed point", optx.fixed_point(fn, optx.Newton(rtol=1e-5, atol=1e-5), y0).value)
record("root", optx.root_find(lambda y, a: y ** 3 - a, optx.Newton(1e-6, 1e-6), jnp.array(1.), 2.)
       .value)
record("root's gradient", jax.grad(lambda a: optx.root_find(
    lambda y, a: y ** 3 - a, optx.Newton(1e-6, 1e-6), jnp.array(1.), a).value)(2.))
rosenbrock = lambda y, args: jnp.stack([10 * (y[1] - y[0] ** 2), 1 - y[0]])
record("least squares", optx.least_squares(
    rosenbrock, optx.LevenbergMarquardt(rtol=1e-6, atol=1e-6), jnp.array([-1.2, 1.])).value)
record("minimum", optx.minimise(lambda y, a: jnp.sum((y - a) ** 2), optx.BFGS(1e-5, 1e-5),
                                jnp.zeros(3), jnp.arange(3.)).value)
record("bisection", optx.root_find(lambda y, a: jnp.cos(y) - y, optx.Bisection(1e-5, 1e-5), 0.5,
                                   options={"lower": 0.0, "upper": 1.0}).value)

matrix_key, vector_key = jr.split(jr.PRNGKey(0))
matrix = jr.normal(matrix_key, (10, 8))
vector = jr.normal(vector_key, (10,))
operator = lx.MatrixLinearOperator(matrix)
record("qr", lx.linear_solve(operator, vector, solver=lx.QR()).value)
record("svd", lx.linear_solve(operator, vector, solver=lx.SVD()).value)
square = matrix.T @ matrix
for name, solver, tags in (("lu", lx.LU(), ()),
                           ("cholesky", lx.Cholesky(), lx.positive_semidefinite_tag),
                           ("cg", lx.CG(1e-6, 1e-6), lx.positive_semidefinite_tag),
                           ("gmres", lx.GMRES(1e-6, 1e-6), ())):
    system = lx.MatrixLinearOperator(square, tags)
    record(name, lx.linear_solve(system, jnp.ones(8), solver).value)
    record(f"gradient through {name}", jax.grad(lambda b, s=system, solver=solver: lx.linear_solve(
        s, b, solver).value.sum())(jnp.ones(8)))
record("tridiagonal", lx.linear_solve(lx.TridiagonalLinearOperator(
    jnp.full(4, 3.0), jnp.ones(3), jnp.ones(3)), jnp.arange(4.), lx.Tridiagonal()).value)


def quadratic_fn(y, args):
    return jax.numpy.sum((y - 1) ** 2)


y = jax.random.normal(jax.random.PRNGKey(0), (10,))
gradient_fn = jax.grad(quadratic_fn)
hessian = lx.JacobianLinearOperator(gradient_fn, y, tags=lx.positive_semidefinite_tag)
out = lx.linear_solve(hessian, gradient_fn(y, args=None), lx.CG(rtol=1e-6, atol=1e-6))
record("readme", y - out.value)
