"""orbax-checkpoint: its first example, its manager of steps, flax's checkpoints, and arrays over
devices that are saved with one sharding and read with another."""

import tempfile
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from curves import record
from flax import nnx
from flax.training import checkpoints
from jax.experimental.array_serialization import serialization
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

warnings.simplefilter("ignore")
jax.config.update("jax_num_cpu_devices", 4)
mesh = jax.make_mesh((4,), ("x",))
rows, columns = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "x"))
state = {
    "count": jnp.arange(3),
    "inner": {"half": jnp.ones((2, 2), jnp.bfloat16)},
    "spread": jax.device_put(jnp.arange(16.0).reshape(4, 4), rows),
    "numpy": np.arange(2), "number": 3,
}


def recorded(name, tree):
    for path, leaf in jax.tree.leaves_with_path(tree):
        record(f"{name}{jax.tree_util.keystr(path)}", np.asarray(leaf, np.float32))


with tempfile.TemporaryDirectory() as folder:
    saver = ocp.StandardCheckpointer()
    saver.save(f"{folder}/first", state)
    saver.wait_until_finished()
    recorded("as it was", saver.restore(f"{folder}/first"))
    wanted = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
    back = saver.restore(f"{folder}/first", wanted)
    recorded("as wanted", back)
    assert back["spread"].sharding == rows

    options = ocp.CheckpointManagerOptions(max_to_keep=2)
    with ocp.CheckpointManager(f"{folder}/steps", options=options) as manager:
        for step in range(4):
            manager.save(step, args=ocp.args.StandardSave({"w": jnp.ones(3) * step}))
        manager.wait_until_finished()
        record("steps kept", manager.all_steps())
        recorded("latest", manager.restore(
            manager.latest_step(), args=ocp.args.StandardRestore({"w": jnp.zeros(3)})))

    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    graph, parameters = nnx.split(model)
    saver.save(f"{folder}/model", parameters)
    saver.wait_until_finished()
    abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, parameters)
    again = nnx.merge(graph, saver.restore(f"{folder}/model", abstract))
    record("a model", again(jnp.ones((1, 2))))

    path = checkpoints.save_checkpoint(folder, target={"a": jnp.arange(3)}, step=0, prefix="flax_")
    recorded("flax", checkpoints.restore_checkpoint(path, target=None))

    asynchronous = serialization.GlobalAsyncCheckpointManager()
    done = []
    paths = [f"{folder}/spread", f"{folder}/scalar"]
    asynchronous.serialize_with_paths(
        [state["spread"], jnp.float32(3)], paths, on_commit_callback=lambda: done.append(1))
    asynchronous.wait_until_finished()
    single = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    spread, scalar = asynchronous.deserialize_with_paths([columns, single], paths)
    assert spread.sharding == columns and done == [1]
    recorded("another sharding", [spread, scalar])
    recorded("another shape", asynchronous.deserialize_with_paths(
        [columns], paths[:1], [(5, 8)], [jnp.float16]))
