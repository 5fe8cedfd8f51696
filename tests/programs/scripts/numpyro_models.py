"""numpyro: a hierarchy, guides, a process, mixtures, samplers, handlers, bijections."""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from curves import record
from jax import random
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.distributions import constraints, transforms
from numpyro.infer import (
    MCMC,
    NUTS,
    SVI,
    Predictive,
    Trace_ELBO,
    TraceMeanField_ELBO,
    autoguide,
    init_to_median,
    log_likelihood,
)
from numpyro.infer.reparam import LocScaleReparam
from numpyro.infer.util import log_density

key = random.key(0)
group = jnp.arange(24) % 4
x = random.normal(key, (24, 2))
y = x @ jnp.array([1., -2.]) + jnp.array([0., 1., -1., 2.])[group] + 0.1 * random.normal(key, (24,))


def hierarchy(group, x, y=None):
    mu = numpyro.sample("mu", dist.Normal(0., 2.))
    tau = numpyro.sample("tau", dist.HalfNormal(2.))
    with numpyro.plate("groups", 4):
        offset = numpyro.sample("offset", dist.Normal(mu, tau))
    weights = numpyro.sample("weights", dist.Normal(jnp.zeros(2), 1.).to_event(1))
    sigma = numpyro.sample("sigma", dist.Exponential(1.))
    mean = numpyro.deterministic("mean", offset[group] + x @ weights)
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(mean, sigma), obs=y)


# Chains are compared while rounding has not grown.
noncentered = handlers.reparam(hierarchy, config={"offset": LocScaleReparam(0)})
mcmc = MCMC(NUTS(noncentered, init_strategy=init_to_median, max_tree_depth=3), num_warmup=2,
            num_samples=3, progress_bar=False)
mcmc.run(random.key(1), group, x, y, extra_fields=("num_steps", "accept_prob"))
samples = mcmc.get_samples()
record("hierarchy", samples["offset"])
record("steps", mcmc.get_extra_fields()["num_steps"])
record("log likelihood", log_likelihood(noncentered, samples, group, x, y)["y"].sum(-1))
record("predicted", Predictive(noncentered, samples)(random.key(2), group, x)["mean"])
for guide, loss in (
        (autoguide.AutoMultivariateNormal(hierarchy), TraceMeanField_ELBO()),
        (autoguide.AutoIAFNormal(hierarchy, num_flows=1, hidden_dims=[9, 9]), Trace_ELBO())):
    svi = SVI(hierarchy, guide, numpyro.optim.ClippedAdam(0.02), loss)
    result = svi.run(random.key(4), 5, group, x, y, progress_bar=False)
    record(f"{type(guide).__name__} {type(loss).__name__}", result.losses)
    draws = guide.sample_posterior(random.key(5), result.params, group, x, sample_shape=(2,))
    record(f"drawn from {type(guide).__name__}", draws["weights"])


def walk(steps):
    def step(carry, t):
        now = numpyro.sample("x", dist.Normal(0.9 * carry, 0.5))
        numpyro.sample("seen", dist.Normal(now, 0.1), obs=steps[t])
        return now, now

    first = numpyro.sample("first", dist.Normal(0., 1.))
    return scan(step, first, jnp.arange(len(steps)))[1]


steps = jnp.sin(jnp.arange(6.))
walked = handlers.trace(handlers.seed(walk, 6)).get_trace(steps)
record("random walk", walked["x"]["value"])
record("density of a walk", log_density(handlers.seed(walk, 7), (steps,), {}, {
    "first": jnp.array(0.3), "x": walked["x"]["value"]})[0])


def mixture(data):
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(2)))
    with numpyro.plate("components", 2):
        means = numpyro.sample("means", dist.Normal(0., 3.))
    with numpyro.plate("data", len(data)):
        numpyro.sample("x", dist.MixtureSameFamily(
            dist.Categorical(weights), dist.Normal(means, 1.)), obs=data)


data = jnp.concatenate([random.normal(key, (5,)) - 2, random.normal(key, (5,)) + 2])
record("density of a mixture", log_density(mixture, (data,), {}, {
    "weights": jnp.array([0.3, 0.7]), "means": jnp.array([-2., 2.])})[0])
seeded = handlers.seed(mixture, 1)
trace = handlers.trace(handlers.condition(seeded, {"means": jnp.array([1., 2.])})).get_trace(data)
record("trace", trace["x"]["fn"].log_prob(data))
record("masked", handlers.trace(handlers.mask(handlers.seed(hierarchy, 2), mask=False)).get_trace(
    group, x)["mean"]["value"])
with handlers.seed(rng_seed=3), handlers.scale(scale=2.), handlers.block(hide=["hidden"]):
    numpyro.sample("hidden", dist.Normal(0, 1))
    with numpyro.plate("sub", 10, subsample_size=4) as picked:
        record("subsample", picked)
for d, value in (
        (dist.OrderedLogistic(0.3, jnp.array([-1., 0., 1.])), 2),
        (dist.GammaPoisson(2., 1.), 3),
        (dist.LKJ(3, 1.5), None),
        (dist.MatrixNormal(jnp.zeros((2, 2)), jnp.eye(2), jnp.eye(2)), None),
        (dist.Multinomial(5, jnp.array([0.2, 0.8])), None),
        (dist.Wishart(4., scale_matrix=jnp.eye(2)), None),
        (dist.LowRankMultivariateNormal(jnp.zeros(3), jnp.ones((3, 1)), jnp.ones(3)), None),
        (dist.Independent(dist.Laplace(jnp.zeros(2), 1.), 1), None)):
    value = d.sample(random.key(8)) if value is None else value
    record(type(d).__name__, jnp.append(jnp.ravel(d.log_prob(value)), jnp.ravel(value)))
for constraint, size in (
        (constraints.simplex, 3), (constraints.ordered_vector, 3), (constraints.corr_cholesky, 3),
        (constraints.positive_definite, 6), (constraints.zero_sum(1), 3)):
    move = dist.biject_to(constraint)
    u = random.normal(random.key(9), (size,))
    v = move(u)
    record(f"to {type(constraint).__name__}", jnp.append(jnp.ravel(v), jnp.ravel(
        move.log_abs_det_jacobian(u, v))))
flow = transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(1., 2.)])
record("composed", flow.inv(flow(jnp.arange(3.))))
record("kl", dist.kl_divergence(dist.Normal(0., 1.), dist.Normal(1., 2.)))
