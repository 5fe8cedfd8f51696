"""optax: more optimizers, groups of parameters, schedules, losses, projections, line search."""

import jax
import jax.numpy as jnp
import optax
from curves import line_search, record
from optax import contrib, losses, projections

key = jax.random.key(0)
xs = jax.random.normal(key, (24, 3))
ys = jnp.tanh(xs @ jnp.array([[0.5], [-1.], [2.]])) + 0.1
params0 = {"hidden": {"w": jax.random.normal(key, (3, 4)) / 2, "b": jnp.zeros(4)},
           "out": {"w": jax.random.normal(key, (4, 1)) / 2, "b": jnp.zeros(1)}}


def predict(params, x):
    h = jnp.tanh(x @ params["hidden"]["w"] + params["hidden"]["b"])
    return h @ params["out"]["w"] + params["out"]["b"]


def loss_of(params, x=xs, y=ys):
    return optax.squared_error(predict(params, x), y).mean()


def fit(optimizer, steps=4, with_value=False, at=lambda state, params: params):
    @jax.jit
    def step(params, state):
        loss, grads = jax.value_and_grad(loss_of)(params)
        extra = {"value": loss} if with_value else {}
        updates, state = optimizer.update(grads, state, params, **extra)
        return optax.apply_updates(params, updates), state, loss

    params, state = params0, optimizer.init(params0)
    curve = []
    for _ in range(steps):
        params, state, loss = step(params, state)
        curve.append(loss)
    return [*curve, loss_of(at(state, params))]


for name in ("adan", "lars", "novograd", "rprop", "sm3"):
    record(name, fit(getattr(optax, name)(0.05)))
record("noisy sgd", fit(optax.noisy_sgd(0.05, key=1)))
for name in ("cocob", "prodigy"):
    record(f"contrib {name}", fit(getattr(contrib, name)()))
record("muon", fit(contrib.muon(0.05)))
record("schedule free", fit(contrib.schedule_free_adamw(0.05, warmup_steps=2),
                            at=contrib.schedule_free_eval_params))
record("sam", fit(contrib.sam(optax.sgd(0.05), contrib.normalize() if hasattr(
    contrib, "normalize") else optax.sgd(0.01), sync_period=2)))
plateau = optax.chain(optax.sgd(0.1), contrib.reduce_on_plateau(factor=0.5, patience=1,
                                                                accumulation_size=1))
record("plateau", fit(plateau, with_value=True))

labels = {"hidden": "fast", "out": {"w": "slow", "b": "fixed"}}
record("partition", fit(optax.partition(
    {"fast": optax.adam(0.1), "slow": optax.sgd(0.01, momentum=0.9), "fixed": optax.set_to_zero()},
    labels)))
record("masked", fit(optax.chain(optax.masked(optax.add_decayed_weights(0.1), jax.tree.map(
    lambda p: p.ndim > 1, params0)), optax.sgd(0.1))))
record("steps gathered", fit(optax.MultiSteps(optax.adam(0.1), every_k_schedule=2), steps=5))
record("clipped", fit(optax.chain(optax.adaptive_grad_clip(0.1), optax.clip_by_block_rms(0.5),
                                  optax.centralize(), optax.trace(0.9), optax.scale(-0.1))))
record("averaged", optax.tree.norm(optax.ema(0.9).update(params0, optax.ema(0.9).init(params0))[0]))

for name, schedule in {
        "cosine": optax.cosine_decay_schedule(1., 10, 0.1),
        "exponential": optax.exponential_decay(1., 3, 0.5, transition_begin=2, staircase=True),
        "one cycle": optax.cosine_onecycle_schedule(10, 1.), "polynomial":
        optax.polynomial_schedule(1., 0.1, 2, 8), "sgdr": optax.sgdr_schedule([{
            "init_value": 0., "peak_value": 1., "warmup_steps": 2, "decay_steps": 5,
            "end_value": 0.}] * 2),
        "piecewise": optax.piecewise_interpolate_schedule("cosine", 1., {4: 0.5, 8: 0.1}),
        "joined": optax.join_schedules([optax.linear_schedule(0., 1., 4),
                                        optax.constant_schedule(0.3)], [4])}.items():
    record(name, jax.vmap(schedule)(jnp.arange(12)))

logits = jax.random.normal(key, (5, 4))
target = jnp.array([0, 1, 3, 2, 1])
onehot = jax.nn.one_hot(target, 4)
loss_values = {
    "focal": losses.sigmoid_focal_loss(logits, onehot, alpha=0.3),
    "poly": losses.poly_loss_cross_entropy(logits, onehot),
    "kl": losses.kl_divergence(jax.nn.log_softmax(logits), onehot),
    "log cosh": losses.log_cosh(logits), "hinge": losses.multiclass_hinge_loss(logits, target),
    "perceptron": losses.multiclass_perceptron_loss(logits, target),
    "sparsemax": losses.multiclass_sparsemax_loss(logits, target),
    "fenchel young": losses.make_fenchel_young_loss(jax.scipy.special.logsumexp)(
        logits[0], onehot[0]),
    "ranking": losses.ranking_softmax_loss(logits, onehot),
    "triplet": losses.triplet_margin_loss(logits, logits[::-1], -logits),
    "ctc": losses.ctc_loss(jax.random.normal(key, (2, 6, 4)), jnp.zeros((2, 6)), jnp.array(
        [[1, 2, 3], [2, 2, 0]]), jnp.array([[0., 0., 0.], [0., 0., 1.]]))}
for name, value in loss_values.items():
    record(name, value)
record("gradient of ctc", jax.grad(lambda z: losses.ctc_loss(
    z, jnp.zeros((2, 6)), jnp.array([[1, 2, 3], [2, 2, 0]]), jnp.zeros((2, 3))).sum())(
    jax.random.normal(key, (2, 6, 4))))
v = jnp.array([0.5, -2., 1.5, 3.])
for name in ("projection_simplex", "projection_l1_ball", "projection_l1_sphere"):
    record(f"jacobian of {name}", jax.jacrev(getattr(projections, name))(v))
record("perturbed", optax.perturbations.make_perturbed_fun(
    lambda x: jax.nn.one_hot(jnp.argmax(x), 4), num_samples=20, sigma=0.5)(key, v))
record("assignment", jnp.stack(optax.assignment.hungarian_algorithm(
    jax.random.uniform(key, (4, 4)))))
search = optax.chain(optax.sgd(0.5), optax.scale_by_backtracking_linesearch(
    10, store_grad=True))
record("line search", line_search(search, loss_of, params0, 3))
private = contrib.dpsgd(0.1, 1., 0.5, 3)
per_example = jax.vmap(jax.grad(lambda p, x, y: loss_of(p, x[None], y[None])), (None, 0, 0))(
    params0, xs, ys)
record("private", optax.tree.norm(private.update(per_example, private.init(params0), params0)[0]))
