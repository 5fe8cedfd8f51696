"""tensorflow-probability on JAX: distributions, bijectors, a process, chains, minimizers."""

import jax
import jax.numpy as jnp
from curves import record
from tensorflow_probability.substrates import jax as tfp

tfd, tfb, kernels = tfp.distributions, tfp.bijectors, tfp.math.psd_kernels
key = jax.random.PRNGKey(0)

for d in (
        tfd.Gamma(2., 3.), tfd.StudentT(3., 0., 1.), tfd.Categorical(logits=[0., 1., 2.]),
        tfd.MultivariateNormalTriL(jnp.zeros(3), jnp.eye(3) * 2),
        tfd.MixtureSameFamily(tfd.Categorical(probs=[.3, .7]), tfd.Normal([0., 3.], [1., 1.])),
        tfd.TransformedDistribution(tfd.Normal(0., 1.), tfb.Exp())):
    drawn = d.sample(2, seed=key)
    record(f"drawn: {d.name}", drawn)
    record(f"log_prob: {d.name}", d.log_prob(drawn))
    if jnp.issubdtype(drawn.dtype, jnp.floating):
        record(f"slope: {d.name}", jax.grad(lambda v, d=d: d.log_prob(v).sum())(drawn))

weather = tfd.HiddenMarkovModel(
    tfd.Categorical(probs=[0.8, 0.2]), tfd.Categorical(probs=[[0.7, 0.3], [0.2, 0.8]]),
    tfd.Normal([0., 15.], [5., 10.]), num_steps=5)
degrees = jnp.array([-2., 0., 2., 14., 20.])
record("weather: mean", weather.mean())
record("weather: likely", weather.posterior_mode(degrees))
record("weather: marginals", weather.posterior_marginals(degrees).probs_parameter())

x = jnp.linspace(-1., 1., 6).reshape(2, 3)
for b in (tfb.Softplus(), tfb.FillScaleTriL(), tfb.Chain([tfb.Shift(1.), tfb.Scale(2.)])):
    moved = b.forward(x)
    record(f"forward: {b.name}", moved)
    record(f"back: {b.name}", b.inverse(moved + 0.))
    record(f"volume: {b.name}", b.forward_log_det_jacobian(x))

times = jnp.linspace(0., 1., 8)[:, None]
heights = jnp.sin(6 * times[:, 0])


def loss(p):
    kernel = kernels.ExponentiatedQuadratic(jnp.exp(p[0]), jnp.exp(p[1]))
    return -tfd.GaussianProcess(kernel, times, observation_noise_variance=.01).log_prob(heights)


record("process", jax.value_and_grad(loss)(jnp.zeros(2))[1])
rosenbrock = jax.value_and_grad(lambda v: (1 - v[0])**2 + 10 * (v[1] - v[0]**2)**2)
found = tfp.optimizer.bfgs_minimize(rosenbrock, jnp.zeros(2), max_iterations=8)
record("bfgs", found.position)

observed = jnp.array([1., 2., 1.5])
joint = tfd.JointDistributionSequential([
    tfd.Normal(0., 1.), lambda m: tfd.Independent(tfd.Normal(m * jnp.ones(3), 1.), 1)])
kernel = tfp.mcmc.HamiltonianMonteCarlo(lambda m: joint.log_prob([m, observed]), .3, 3)
record("chain", jax.jit(lambda key: tfp.mcmc.sample_chain(
    6, 0.5, kernel=kernel, num_burnin_steps=2, trace_fn=None, seed=key))(key))
record("effective size", tfp.mcmc.effective_sample_size(jnp.sin(jnp.arange(8.))))
record("percentile", tfp.stats.percentile(heights, 30.))
record("bessel", tfp.math.bessel_kve(.5, jnp.array([1., 2.])))
