"""jax alone on eight host devices: shardings, collectives, callbacks, programs ahead of time."""

import functools

import jax

jax.config.update("jax_num_cpu_devices", 8)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from curves import record  # noqa: E402
from jax import export, lax  # noqa: E402
from jax.experimental import io_callback  # noqa: E402
from jax.sharding import AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
x = jax.random.normal(jax.random.key(0), (8, 6))
w1, w2 = (jax.random.normal(jax.random.key(i), s) / 3 for i, s in ((1, (6, 4)), (2, (4, 2))))
put = lambda a, *spec: jax.device_put(a, NamedSharding(mesh, P(*spec)))


@jax.jit
def loss(params, x):
    w1, w2 = params
    h = jax.nn.relu(x @ w1)
    h = lax.with_sharding_constraint(h, NamedSharding(mesh, P("data", "model")))
    return jnp.mean((h @ w2) ** 2)


params = put(w1, None, "model"), put(w2, "model")
batch = put(x, "data")
curve = []
for _ in range(4):
    value, grads = jax.value_and_grad(loss)(params, batch)
    params = jax.tree.map(lambda p, g: p - 0.3 * g, params, grads)
    curve.append(value)
record("tensor parallel", curve)
assert params[0].sharding.spec == P(None, "model"), params[0].sharding
record("shards", [s.data.size for s in params[0].addressable_shards])
record("replicas", sorted({s.index[1].start or 0 for s in params[0].addressable_shards}))


# The same with the collectives written by hand.
@functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("data", "model"), P("model", None)),
                   out_specs=P("data", None))
def matmul(a, b):
    return lax.psum(a @ b, "model")


a = jnp.arange(32.).reshape(8, 4)
record("psum", matmul(a, w2))
record("grad of shard_map", jax.grad(lambda b: (matmul(a, b) ** 2).mean())(w2))


@jax.jit
@functools.partial(jax.shard_map, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
def ring(block):
    n = lax.axis_size("data")
    shift = [(i, (i + 1) % n) for i in range(n)]

    def step(carry, _):
        block, total = carry
        return (lax.ppermute(block, "data", shift), total + block * lax.axis_index("data")), None

    return lax.scan(step, (block, lax.pcast(jnp.zeros_like(block), (), to="varying")), None,
                    length=n)[0][1]


record("ring", ring(jnp.arange(16.)))
one = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))
sm = functools.partial(jax.shard_map, mesh=one)
record("all_gather", sm(lambda x: lax.all_gather(x, "i", tiled=True) * 1., in_specs=P("i"),
                        out_specs=P("i"))(jnp.arange(8.)))
record("psum_scatter", sm(lambda x: lax.psum_scatter(x, "i", tiled=True), in_specs=P(None, "i"),
                          out_specs=P("i"))(jnp.arange(64.).reshape(8, 8)))
record("all_to_all", sm(lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True), in_specs=P("i"),
                        out_specs=P(None, "i"))(jnp.arange(64.).reshape(8, 8)))
record("pmean and pmax", sm(lambda x: (x - lax.pmean(x, "i")) / lax.pmax(x, "i"), in_specs=P("i"),
                            out_specs=P("i"))(jnp.arange(16.)))
record("pmap", jax.pmap(lambda x, y: lax.psum(x * y, "i"), "i", in_axes=(0, None))(
    jnp.arange(8.), 2.))
record("keys over devices", sm(
    lambda k: jax.vmap(lambda k: jax.random.normal(k, (2,)))(k), in_specs=P("i"),
    out_specs=P("i"))(jax.random.split(jax.random.key(3), 8)))

explicit = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
with jax.set_mesh(explicit):
    left = jax.reshard(jnp.arange(32.).reshape(8, 4), P("x", "y"))
    right = jax.reshard(jnp.arange(8.).reshape(4, 2), P("y", None))
    product = jax.jit(lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=P("x", None)))
    out = product(left, right)
    assert str(jax.typeof(out)) == "float32[8@x,2]", jax.typeof(out)
    record("explicit", out)
    record("explicit sum", jax.jit(lambda a: jnp.sin(a).sum(0))(left))

# Python from inside of compiled programs.
seen = []


@jax.jit
def with_callbacks(x):
    y = jax.pure_callback(lambda a: np.cumsum(np.asarray(a)).astype(np.float32),
                          jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential")
    io_callback(lambda a: seen.append(float(a)), None, y.sum(), ordered=True)
    io_callback(lambda a: seen.append(float(a)), None, y[0], ordered=True)
    return y * 2


record("callbacks", with_callbacks(jnp.arange(4.)))
record("vmapped callback", jax.vmap(lambda x: jax.pure_callback(
    lambda a: np.sort(np.asarray(a)), jax.ShapeDtypeStruct((3,), jnp.float32), x,
    vmap_method="expand_dims"))(jnp.array([[3., 1., 2.], [6., 5., 4.]])))
jax.effects_barrier()
record("seen", seen)

# Ahead of time: lowered, compiled, exported with an open size.
lowered = jax.jit(lambda x, n: x ** n, static_argnums=1).lower(
    jax.ShapeDtypeStruct((3,), jnp.float32), 3)
compiled = lowered.compile()
record("compiled", compiled(jnp.arange(3.)))
assert "stablehlo" in lowered.as_text() and compiled.cost_analysis() is not None
n, = export.symbolic_shape("n")
exported = export.export(jax.jit(lambda x: jnp.sin(x) / x.shape[0]))(
    jax.ShapeDtypeStruct((n, 2), jnp.float32))
record("exported", exported.call(jnp.ones((3, 2))))
record("its gradient", jax.grad(lambda x: exported.call(x).sum())(jnp.ones((5, 2))))
