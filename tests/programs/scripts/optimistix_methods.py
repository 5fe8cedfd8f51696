"""optimistix: every solver on its kind of problem, over trees, with derivatives and failures."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import lineax as lx
import optax
import optimistix as optx
from curves import record

key = jr.key(0)
ts = jnp.linspace(0, 2, 12)
data = 2.5 * jnp.exp(-1.3 * ts) + 0.01 * jr.normal(key, (12,))


def residuals(params, args):
    ts, data = args
    return params["a"] * jnp.exp(-params["rate"] * ts) - data


start = {"a": jnp.array(1.), "rate": jnp.array(0.5)}
fit = lambda solver, **kw: optx.least_squares(residuals, solver, start, args=(ts, data), **kw)
for solver in (optx.GaussNewton(1e-5, 1e-6), optx.LevenbergMarquardt(1e-5, 1e-6),
               optx.IndirectLevenbergMarquardt(1e-5, 1e-6), optx.Dogleg(1e-5, 1e-6)):
    sol = fit(solver)
    record(type(solver).__name__, jnp.stack([sol.value["a"], sol.value["rate"]]))
    record(f"{type(solver).__name__} steps", int(sol.stats["num_steps"]))
record("through the fit", jax.jacfwd(lambda d: optx.least_squares(
    residuals, optx.LevenbergMarquardt(1e-6, 1e-6), start, args=(ts, d)).value["rate"])(data))
record("gradient through the fit", jax.grad(lambda d: optx.least_squares(
    residuals, optx.GaussNewton(1e-6, 1e-6), start, args=(ts, d)).value["rate"])(data))
record("auxiliary", optx.least_squares(
    lambda p, a: (residuals(p, a), p["a"] * 2), optx.LevenbergMarquardt(1e-5, 1e-5), start,
    args=(ts, data), has_aux=True).aux)

rosenbrock = lambda y, a: (1 - y[0]) ** 2 + a * (y[1] - y[0] ** 2) ** 2
w0 = jnp.array([-1.2, 1.])
for solver in (optx.BFGS(1e-4, 1e-4), optx.LBFGS(1e-4, 1e-4), optx.DFP(1e-4, 1e-4),
               optx.NonlinearCG(1e-4, 1e-4), optx.GradientDescent(1e-3, 1e-3, 1e-3),
               optx.NelderMead(1e-3, 1e-3), optx.OptaxMinimiser(optax.adam(0.05), 1e-4, 1e-4)):
    sol = optx.minimise(rosenbrock, solver, w0, args=10., max_steps=12, throw=False)
    record(type(solver).__name__, sol.value)
system = lambda y, a: (jnp.sin(y[0]) + y[1] - a, y[0] * y[1] ** 2 - 0.1)
for solver in (optx.Newton(1e-6, 1e-6), optx.Chord(1e-6, 1e-6), optx.Dogleg(1e-6, 1e-6),
               optx.LevenbergMarquardt(1e-6, 1e-6)):
    root = lambda a, solver=solver: jnp.stack(optx.root_find(
        system, solver, (jnp.array(0.5), jnp.array(0.5)), args=a, max_steps=200).value)
    record(f"root {type(solver).__name__}", root(1.))
    record(f"its jacobian {type(solver).__name__}", jax.jacrev(root)(1.))
record("batch of roots", jax.vmap(lambda a: optx.root_find(
    lambda y, a: y ** 3 + y - a, optx.Newton(1e-6, 1e-6), jnp.array(1.), a).value)(jnp.arange(5.)))
record("fixed point", optx.fixed_point(
    lambda y, a: jnp.cos(a * y), optx.FixedPointIteration(1e-5, 1e-5), jnp.array(0.5), 0.9,
    max_steps=500).value)
failed = optx.root_find(lambda y, a: y ** 2 + 1, optx.Newton(1e-6, 1e-6), jnp.array(1.),
                        max_steps=5, throw=False)
record("failed", failed.result == optx.RESULTS.successful)
try:
    optx.root_find(lambda y, a: y ** 2 + 1, optx.Newton(1e-6, 1e-6), jnp.array(1.), max_steps=5)
    raise SystemExit("no error")
except eqx.EquinoxRuntimeError as error:
    record("refused", "maximum number of" in str(error))
compiled = eqx.filter_jit(fit)(optx.LevenbergMarquardt(1e-5, 1e-6), max_steps=50)
record("compiled", compiled.value["a"])


class Net(eqx.Module):
    layers: list
    scale: float = eqx.field(static=True)

    def __call__(self, x):
        return self.scale * self.layers[1](jnp.tanh(self.layers[0](x)))


k1, k2 = jr.split(key)
net = Net([eqx.nn.Linear(1, 5, key=k1), eqx.nn.Linear(5, 1, key=k2)], 2.0)
params, static = eqx.partition(net, eqx.is_inexact_array)
sol = optx.least_squares(
    lambda p, a: jax.vmap(eqx.combine(p, static))(ts[:, None])[:, 0] - data,
    optx.LevenbergMarquardt(1e-3, 1e-3, linear_solver=lx.QR()), params, max_steps=3, throw=False)
record("network by least squares", jax.vmap(eqx.combine(sol.value, static))(ts[:, None]))
