"""GPJax: regression, classification, inducing points and natural gradients, a state space."""

import gpjax as gpx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from curves import record
from gpjax.likelihoods import Bernoulli, Gaussian
from gpjax.mean_functions import Constant, Zero

jax.config.update("jax_enable_x64", True)
key = jr.key(42)
x = jr.uniform(key, (24, 1), minval=-3., maxval=3.)
signal = jnp.sin(4 * x) + jnp.cos(2 * x)
data = gpx.Dataset(X=x, y=signal + 0.3 * jr.normal(key, (24, 1)))
test = jnp.linspace(-3.5, 3.5, 8).reshape(-1, 1)
prior = gpx.gps.Prior(mean_function=Constant(), kernel=gpx.kernels.RBF())
model = prior * Gaussian()


def minus(objective):
    return lambda model, data: -objective(model, data)


mll = minus(gpx.objectives.conjugate_mll)
fitted, curve = gpx.fit(model=model, objective=mll, train_data=data, optim=optax.adam(0.1),
                        num_iters=10, verbose=False, key=key)
record("adam", curve)
predicted = (fitted | data).predict(test)
record("mean", predicted.mean)
record("covariance", predicted.covariance())
record("left out", gpx.objectives.conjugate_loocv(model, data))
record("draws", prior(test).sample(key=key, sample_shape=(2,)))
for kernel in (gpx.kernels.Matern52(), gpx.kernels.Periodic(), gpx.kernels.ArcCosine(),
               gpx.kernels.RationalQuadratic() + gpx.kernels.Linear(),
               gpx.kernels.Matern12() * gpx.kernels.Periodic()):
    record(type(kernel).__name__, kernel.cross_covariance(x[:4], test))

labels = gpx.Dataset(X=x, y=(jnp.sign(signal) + 1) / 2)
judge, curve = gpx.fit(
    model=prior * Bernoulli(), objective=minus(gpx.objectives.log_posterior_density),
    train_data=labels, optim=optax.adamw(0.01), num_iters=5, verbose=False, key=key)
record("classification", curve)
record("probabilities", (judge | labels).predict(test).mean)

places = jnp.linspace(-3, 3, 5).reshape(-1, 1)
family = gpx.variational_families.VariationalGaussian(model=model, inducing_inputs=places)
record("inducing points", gpx.fit(
    model=family, objective=minus(gpx.objectives.elbo), train_data=data, optim=optax.adam(0.05),
    num_iters=5, batch_size=8, verbose=False, key=key)[1])

states = gpx.state_space
ordered = jnp.sort(x, axis=0)
series = gpx.Dataset(X=ordered, y=jnp.sin(4 * ordered))
chain = states.StateSpacePrior(mean_function=Zero(), kernel=gpx.kernels.Matern32()) * Gaussian()
record("state space", states.state_space_mll(chain, series))
record("filtered", (chain | series).predict(test).mean)
