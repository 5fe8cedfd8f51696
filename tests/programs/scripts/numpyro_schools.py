"""numpyro: its README's eight schools by NUTS, reparametrized and predicted; SVI; distributions."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from curves import record
from jax import random
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.reparam import TransformReparam

J = 8
y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
sigma = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def eight_schools(J, sigma, y=None):
    mu = numpyro.sample('mu', dist.Normal(0, 5))
    tau = numpyro.sample('tau', dist.HalfCauchy(5))
    with numpyro.plate('J', J):
        theta = numpyro.sample('theta', dist.Normal(mu, tau))
        numpyro.sample('obs', dist.Normal(theta, sigma), obs=y)


def eight_schools_noncentered(J, sigma, y=None):
    mu = numpyro.sample('mu', dist.Normal(0, 5))
    tau = numpyro.sample('tau', dist.HalfCauchy(5))
    with numpyro.plate('J', J):
        with numpyro.handlers.reparam(config={'theta': TransformReparam()}):
            theta = numpyro.sample('theta', dist.TransformedDistribution(
                dist.Normal(0., 1.), dist.transforms.AffineTransform(mu, tau)))
        numpyro.sample('obs', dist.Normal(theta, sigma), obs=y)


# Chains are compared while rounding has not grown: a step that is accepted here and refused there
# would make two chains differ that are both right.
mcmc = MCMC(NUTS(eight_schools_noncentered), num_warmup=3, num_samples=4, progress_bar=False)
mcmc.run(random.key(0), J, sigma, y=y, extra_fields=('potential_energy',))
record("nuts: mu", mcmc.get_samples()["mu"])
record("nuts: energy", mcmc.get_extra_fields()["potential_energy"])


def new_school():
    mu = numpyro.sample('mu', dist.Normal(0, 5))
    tau = numpyro.sample('tau', dist.HalfCauchy(5))
    return numpyro.sample('obs', dist.Normal(mu, tau))


record("predicted", Predictive(new_school, mcmc.get_samples())(random.key(1))["obs"])

svi = SVI(eight_schools, AutoNormal(eight_schools), numpyro.optim.Adam(0.05), Trace_ELBO())
result = svi.run(random.key(2), 20, J, sigma, y=y, progress_bar=False)
record("svi", result.losses)


def regression(x, y=None):
    weights = numpyro.sample("weights", dist.Normal(0, 1).expand([3]).to_event(1))
    noise = numpyro.sample("noise", dist.Exponential(1.0))
    numpyro.sample("obs", dist.Normal(x @ weights, noise), obs=y)


x = random.normal(random.key(3), (12, 3))
mcmc = MCMC(NUTS(regression), num_warmup=3, num_samples=2, num_chains=2,
            chain_method="vectorized", progress_bar=False)
mcmc.run(random.key(4), x, x @ jnp.array([1.0, -1.0, 0.5]))
record("two chains", mcmc.get_samples(group_by_chain=True)["weights"])

with numpyro.handlers.seed(rng_seed=0):
    p = numpyro.sample("p", dist.Beta(1, 1))
    record("seeded", [p, numpyro.sample("q", dist.Bernoulli(p))])
key = random.key(5)
for d in (dist.Gamma(2.0, 3.0), dist.StudentT(3.0), dist.Poisson(3.0), dist.Dirichlet(jnp.ones(3)),
          dist.MultivariateNormal(jnp.zeros(2), jnp.array([[2.0, 0.5], [0.5, 1.0]])),
          dist.Categorical(logits=jnp.arange(3.0)), dist.LKJCholesky(3, 1.0),
          dist.Binomial(5, 0.3), dist.VonMises(0.0, 2.0), dist.Weibull(1.0, 2.0)):
    value = d.sample(key, (2,))
    record(type(d).__name__, jnp.concatenate([jnp.ravel(value), jnp.ravel(d.log_prob(value))]))
record("hessian", jax.hessian(lambda m: dist.Normal(m, 1.0).log_prob(0.3))(0.1))
