"""diffrax: solvers, controllers, ways to save, adjoints, events, noise, controlled equations."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import lineax as lx
import optimistix as optx
from curves import record


def pendulum(t, y, args):
    return jnp.stack([y[1], -args * jnp.sin(y[0])])


term, y0 = dfx.ODETerm(pendulum), jnp.array([1.0, 0.0])
for solver in (dfx.Kvaerno3(), dfx.ReversibleHeun()):
    adaptive = isinstance(solver, dfx.Kvaerno3)
    control = dfx.PIDController(1e-4, 1e-4) if adaptive else dfx.ConstantStepSize()
    sol = dfx.diffeqsolve(term, solver, 0, 1, 0.1, y0, args=2.0, stepsize_controller=control)
    record(type(solver).__name__, sol.ys)
hamiltonian = dfx.ODETerm(lambda t, p, a: p), dfx.ODETerm(lambda t, q, a: -jnp.sin(q))
record("symplectic", jnp.stack(dfx.diffeqsolve(
    hamiltonian, dfx.SemiImplicitEuler(), 0, 1, 0.1, (jnp.array(1.), jnp.array(0.))).ys))

# What is saved, and how steps are chosen.
pid = dfx.PIDController(rtol=1e-5, atol=1e-5, pcoeff=0.3, icoeff=0.4, dtmax=0.3)
for name, saveat in {
        "steps": dfx.SaveAt(t0=True, t1=True, steps=True),
        "function": dfx.SaveAt(subs=[dfx.SubSaveAt(t1=True, fn=lambda t, y, a: y.sum()),
                                     dfx.SubSaveAt(ts=jnp.array([0.5, 1.5]))])}.items():
    sol = dfx.diffeqsolve(term, dfx.Tsit5(), 0, 2, 0.1, y0, args=2.0, saveat=saveat,
                          stepsize_controller=pid, max_steps=64)
    for i, leaf in enumerate(jax.tree.leaves(sol.ys)):
        record(f"save {name} {i}", jnp.where(jnp.isfinite(leaf), leaf, -1.))
dense = dfx.diffeqsolve(term, dfx.Dopri5(), 0, 2, None, y0, args=2.0, stepsize_controller=pid,
                        saveat=dfx.SaveAt(dense=True))
record("dense", jax.vmap(dense.evaluate)(jnp.linspace(0, 2, 7)))
record("steps at times", dfx.diffeqsolve(
    term, dfx.Tsit5(), 0, 2, None, y0, args=2.0, stepsize_controller=dfx.ClipStepSizeController(
        pid, step_ts=jnp.array([0.33, 1.2]), jump_ts=jnp.array([1.0]))).ys)

# Gradients by several adjoints.
for adjoint in (dfx.BacksolveAdjoint(), dfx.RecursiveCheckpointAdjoint(checkpoints=3)):
    def final(args, y0, adjoint=adjoint):
        return dfx.diffeqsolve(term, dfx.Heun(), 0, 1, 0.1, y0, args=args, adjoint=adjoint,
                               max_steps=16).ys.sum()

    record(f"adjoint {type(adjoint).__name__}",
           jnp.append(*jax.jit(jax.grad(final, (0, 1)))(2.0, y0)))
# A ball that hits the ground.
ball = dfx.ODETerm(lambda t, y, a: jnp.stack([y[1], -9.8 + 0. * y[0]]))
event = dfx.Event(lambda t, y, args, **kw: y[0], optx.Newton(1e-5, 1e-5))


def hits(height):
    sol = dfx.diffeqsolve(ball, dfx.Tsit5(), 0, jnp.inf, 0.1, jnp.stack([height, 0. * height]),
                          event=event)
    return sol.ts[0]


record("event", [hits(jnp.array(10.)), jax.grad(hits)(jnp.array(10.))])
# Noise.
path = dfx.VirtualBrownianTree(0., 1., 1e-3, (2,), jr.key(5), levy_area=dfx.SpaceTimeLevyArea)
drift, diffusion = (lambda t, y, a: -y), (lambda t, y, a: 0.3 * jnp.ones(2))
sde = dfx.MultiTerm(dfx.ODETerm(drift), dfx.ControlTerm(
    lambda t, y, a: lx.DiagonalLinearOperator(diffusion(t, y, a)), path))
for solver in (dfx.ShARK(),):
    record(f"noise {type(solver).__name__}", dfx.diffeqsolve(sde, solver, 0, 1, 0.1, y0).ys)
# A controlled equation, driven by data.
ts = jnp.linspace(0, 1, 6)
data = jnp.stack([ts, jnp.sin(5 * ts)], 1)
control = dfx.CubicInterpolation(ts, dfx.backward_hermite_coefficients(ts, data))
mlp = eqx.nn.MLP(3, 6, 8, 1, activation=jnp.tanh, final_activation=jnp.tanh, key=jr.key(7))


def controlled(mlp):
    terms = dfx.ControlTerm(lambda t, y, a: mlp(y).reshape(3, 2), control).to_ode()
    return dfx.diffeqsolve(terms, dfx.Heun(), 0, 1, 0.1, jnp.ones(3)).ys


record("controlled", eqx.filter_grad(lambda m: controlled(m).sum())(mlp).layers[0].weight)
