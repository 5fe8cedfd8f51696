"""Do two processes compute as one?

Two real processes meet on loopback, each with two devices; every number is checked in both against
NumPy.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap

PROGRAM = textwrap.dedent("""
    import sys
    import numpy as np
    import saem as jax

    number, address = int(sys.argv[1]), sys.argv[2]
    assert not jax.distributed.is_initialized()
    jax.distributed.initialize(address, num_processes=2, process_id=number)
    assert (jax.process_index(), jax.process_count()) == (number, 2)
    assert (jax.device_count(), jax.local_device_count()) == (4, 2)
    mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    cut = jax.NamedSharding(mesh, jax.P("d"))
    whole = np.arange(8.0, dtype=np.float32)
    x = jax.make_array_from_process_local_data(cut, whole[4 * number:4 * number + 4])
    assert x.shape == (8,) and not x.is_fully_addressable
    for shard in x.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), whole[shard.index])
    total, doubled = jax.jit(lambda x: (x.sum(), x * 2))(x)
    assert float(total) == whole.sum() and total.is_fully_replicated
    for shard in doubled.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), 2 * whole[shard.index])
    turned = jax.jit(lambda x: x[::-1], out_shardings=jax.NamedSharding(mesh, jax.P()))(x)
    np.testing.assert_array_equal(np.asarray(turned), whole[::-1])
    gradient = jax.jit(jax.grad(lambda x: (x ** 3).sum()))(x)
    for shard in gradient.addressable_shards:
        np.testing.assert_allclose(np.asarray(shard.data), 3 * whole[shard.index] ** 2)
    utils = jax.experimental.multihost_utils
    np.testing.assert_array_equal(utils.process_allgather(np.float32(number)), [0, 1])
    np.testing.assert_array_equal(utils.process_allgather(x), whole)
    np.testing.assert_array_equal(
        utils.process_allgather(np.full(2, number), tiled=True), [0, 0, 1, 1])
    assert utils.broadcast_one_to_all({"seed": np.int32(7 + number)})["seed"] == 7
    utils.sync_global_devices("here")
    try:
        utils.assert_equal(np.int32(number), "processes disagree")
    except AssertionError as error:
        assert "processes disagree" in str(error)
    else:
        raise AssertionError("different values passed as equal")
    local = utils.global_array_to_host_local_array(x, mesh, jax.P("d"))
    np.testing.assert_array_equal(local, whole[4 * number:4 * number + 4])
    again = utils.host_local_array_to_global_array(local, mesh, jax.P("d"))
    assert again.shape == (8,) and again.sharding == cut
    try:
        np.asarray(x)
    except RuntimeError as error:
        assert "non-addressable" in str(error)
    else:
        raise AssertionError("half an array was handed out as the whole")
    jax.distributed.shutdown()
    print("agreed", number)
""")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_two_processes_compute_as_one():
    address = f"127.0.0.1:{free_port()}"
    environment = {**os.environ, "SAEM_NUM_CPU_DEVICES": "2",
                   "PYTHONPATH": os.pathsep.join(sys.path)}
    running = [subprocess.Popen([sys.executable, "-c", PROGRAM, str(n), address], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
               for n in range(2)]
    try:
        said = [process.communicate(timeout=120)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    for number, (process, text) in enumerate(zip(running, said)):
        assert process.returncode == 0 and f"agreed {number}" in text, text


def test_joining_too_late_is_refused():
    code = ("import saem as jax\njax.devices()\n"
            "try:\n    jax.distributed.initialize('127.0.0.1:1', 1, 0)\n"
            "except RuntimeError as error:\n    print(error)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert "must be called before" in done.stdout
