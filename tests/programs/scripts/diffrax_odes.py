"""diffrax: its README's equation, a stiff one, a controlled step size, an SDE, a neural ODE."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from curves import record
from diffrax import Dopri5, ODETerm, diffeqsolve


def f(t, y, args):
    return -y


solution = diffeqsolve(ODETerm(f), Dopri5(), t0=0, t1=1, dt0=0.1, y0=jnp.array([2., 3.]))
record("readme", solution.ys)

lotka = ODETerm(lambda t, y, args: jnp.stack([
    args[0] * y[0] - args[1] * y[0] * y[1], args[2] * y[0] * y[1] - args[3] * y[1]]))


def solve(args, solver=diffrax.Tsit5()):
    return diffeqsolve(
        lotka, solver, t0=0, t1=4, dt0=0.1, y0=jnp.array([10.0, 10.0]), args=args,
        saveat=diffrax.SaveAt(ts=jnp.linspace(0, 4, 5)),
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-6))


args = jnp.array([0.1, 0.02, 0.02, 0.4])
out = jax.jit(solve)(args)
record("lotka volterra", out.ys)
record("steps", [int(out.stats["num_accepted_steps"]), int(out.stats["num_rejected_steps"])])
record("gradient", jax.jit(jax.grad(lambda a: solve(a).ys[-1].sum()))(args))
record("implicit", jax.jit(lambda a: solve(a, diffrax.Kvaerno5()).ys[-1])(args))

brownian = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(), key=jr.key(1))
terms = diffrax.MultiTerm(ODETerm(f), diffrax.ControlTerm(lambda t, y, a: 0.1, brownian))
record("sde", diffeqsolve(terms, diffrax.Euler(), 0, 1, dt0=0.1, y0=1.0,
                          saveat=diffrax.SaveAt(ts=jnp.linspace(0, 1, 4))).ys)


class Field(eqx.Module):
    mlp: eqx.nn.MLP

    def __call__(self, t, y, args):
        return self.mlp(y)


field = Field(eqx.nn.MLP(2, 2, 8, 1, activation=jnp.tanh, key=jr.key(2)))
ts = jnp.linspace(0, 1, 5)
target = jnp.stack([jnp.cos(ts), jnp.sin(ts)], 1)
optimizer = optax.adam(1e-2)
state = optimizer.init(eqx.filter(field, eqx.is_inexact_array))


@eqx.filter_jit
def step(field, state):
    def loss_fn(field):
        ys = diffeqsolve(ODETerm(field), diffrax.Heun(), 0, 1, 0.1, target[0],
                         saveat=diffrax.SaveAt(ts=ts)).ys
        return jnp.mean((ys - target) ** 2)

    loss, grads = eqx.filter_value_and_grad(loss_fn)(field)
    updates, state = optimizer.update(grads, state)
    return loss, eqx.apply_updates(field, updates), state


losses = []
for _ in range(4):
    loss, field, state = step(field, state)
    losses.append(loss)
record("neural ode", losses)
