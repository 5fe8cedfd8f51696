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

import pytest

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


EXCHANGES = textwrap.dedent("""
    import sys
    import numpy as np
    import saem as jax
    from saem import lax, P

    number, address = int(sys.argv[1]), sys.argv[2]
    jax.distributed.initialize(address, num_processes=2, process_id=number)
    here, everyone = jax.local_devices(), jax.devices()
    utils = jax.experimental.multihost_utils
    auto = (jax.sharding.AxisType.Auto,)

    def same(x, whole):
        # Whatever lies in this process is the part of ``whole`` that the sharding names.
        assert x.shape == np.shape(whole)
        for shard in x.addressable_shards:
            np.testing.assert_allclose(np.asarray(shard.data), whole[shard.index], rtol=1e-6)

    def refused(f, *words):
        try:
            f()
        except ValueError as error:
            assert all(word in str(error) for word in words), error
        else:
            raise AssertionError("not refused")

    # An array moves among the same devices, eagerly: each process needs parts of the other.
    mesh = jax.make_mesh((4,), ("d",), axis_types=auto)
    two = jax.make_mesh((2, 2), ("p", "l"), axis_types=auto * 2)
    whole = np.arange(24, dtype=np.float32).reshape(8, 3)
    x = jax.device_put(whole, jax.NamedSharding(mesh, P("d")))
    for other in (jax.NamedSharding(mesh, P()), jax.NamedSharding(two, P("l")),
                  jax.NamedSharding(two, P(("l", "p"))), jax.NamedSharding(two, P("p"))):
        moved = jax.device_put(x, other)
        assert moved.sharding == other
        same(moved, whole)
        same(lax.with_sharding_constraint(x, other), whole)
    pinned = jax.device_put(x, jax.NamedSharding(mesh, P(), memory_kind="pinned_host"))
    assert pinned.sharding.memory_kind == "pinned_host"
    same(pinned, whole)
    explicit = jax.make_mesh((4,), ("e",), axis_types=(jax.sharding.AxisType.Explicit,))
    typed = jax.device_put(whole, jax.NamedSharding(explicit, P("e")))
    same(jax.sharding.reshard(typed, jax.NamedSharding(explicit, P())), whole)
    turned = jax.NamedSharding(jax.sharding.Mesh(everyone[::-1], "q"), P("q"))
    same(jax.device_put(x, turned), whole)
    same(jax.device_put(jax.device_put(x, turned), x.sharding), whole)
    same(jax.device_put(moved, turned), whole)
    ours = jax.NamedSharding(jax.sharding.Mesh(here, "q"), P("q"))
    refused(lambda: jax.device_put(x, ours), "other processes", "process_allgather")
    same(jax.device_put(jax.device_put(x, jax.NamedSharding(mesh, P())), ours), whole)

    # pmap: each process gives the examples of its devices; collectives count all.
    mine = np.arange(4, dtype=np.float32).reshape(2, 2) + 10 * number
    rows = np.concatenate([np.arange(4, dtype=np.float32).reshape(2, 2) + 10 * n for n in (0, 1)])
    total = rows.sum(0)
    add = jax.pmap(lambda a: lax.psum(a, "i"), axis_name="i")
    for given in (mine, jax.device_put(mine), add(mine) - total + mine):
        found = add(given)
        assert found.is_fully_addressable
        np.testing.assert_allclose(found, [total, total])
    np.testing.assert_allclose(add(jax.device_put(rows, jax.NamedSharding(mesh, P("d")))),
                               [total, total])
    numbers = jax.pmap(lambda a, k: lax.axis_index("i") * k + lax.axis_size("i"), axis_name="i",
                       in_axes=(0, None))(mine, 10)
    np.testing.assert_array_equal(numbers, 4 + 10 * (2 * number + np.arange(2)))
    a, b = jax.pmap(lambda a: (a, lax.pmax(a, "i")), axis_name="i", in_axes=1,
                    out_axes=(1, None))(mine)
    np.testing.assert_array_equal(a, mine)
    np.testing.assert_array_equal(b, [11, 13])  # the greatest of each row over all columns
    ring = jax.pmap(lambda a: lax.ppermute(a, "i", [(n, (n + 1) % 4) for n in range(4)]),
                    axis_name="i", axis_size=4, static_broadcasted_argnums=())(mine)
    np.testing.assert_array_equal(ring, np.roll(rows, 1, 0)[2 * number:2 * number + 2])
    back = jax.pmap(lambda a: lax.axis_index("i"), axis_name="i", devices=everyone[::-1])(mine)
    np.testing.assert_array_equal(back, np.arange(2) + 2 * (1 - number))
    alone = jax.pmap(lambda a: lax.psum(a, "i"), axis_name="i", devices=here)(mine)
    np.testing.assert_array_equal(alone, [mine.sum(0)] * 2)
    inside = jax.jit(add)(mine)
    np.testing.assert_array_equal(inside, [mine.sum(0)] * 2)
    keys = jax.random.split(jax.random.key(number), 2)
    drawn = jax.pmap(lambda key: jax.random.uniform(key))(keys)
    np.testing.assert_array_equal(drawn, [jax.random.uniform(key) for key in keys])
    refused(lambda: add(mine[:1]), "each of the 2 devices", "got 1")
    refused(lambda: jax.pmap(lambda a: a, axis_size=3)(mine), "axis_size 3", "axis_size 4")
    assert add.lower(mine).compile()(jax.device_put(rows, jax.NamedSharding(
        jax.sharding.Mesh(everyone, "i"), P("i")))).shape == (4, 2)

    # A process that holds every other part gives them in their order; and gets them so.
    odd = jax.NamedSharding(two, P(("l", "p")))
    made = jax.make_array_from_process_local_data(odd, np.arange(4.0) + 10 * number, (8,))
    want = np.array([0, 1, 10, 11, 2, 3, 12, 13], np.float32)
    same(made, want)
    got = utils.global_array_to_host_local_array(made, two, P(("l", "p")))
    np.testing.assert_array_equal(got, np.arange(4.0) + 10 * number)
    refused(lambda: jax.make_array_from_process_local_data(odd, np.arange(3.0), (8,)),
            "3 elements", "4 elements")
    refused(lambda: jax.make_array_from_process_local_data(odd, np.arange(4.0), (8, 2)),
            "2 dimensions")

    # With a size given, nothing is read on the way.
    np.testing.assert_array_equal(jax.numpy.extract(x > 20, x, size=4), [21, 22, 23, 0])

    # Callbacks see arrays of their own process.
    parts = jax.shard_map(lambda a: jax.pure_callback(
        lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct(a.shape, a.dtype), a),
        mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)
    same(parts, 2 * whole)

    # What lies on one device of another process is known by its type alone.
    far = jax.device_put(whole, everyone[2 * (1 - number)])
    assert far.shape == (8, 3) and not far.is_fully_addressable
    assert not far.addressable_shards and not far.sharding.addressable_devices
    assert "shape=(8, 3)" in repr(far) and f"{x}" == str(x)
    assert utils.broadcast_one_to_all(np.float32(number)).shape == ()
    jax.distributed.shutdown()
    print("agreed", number)
""")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("program", [PROGRAM, EXCHANGES], ids=["whole", "exchanges"])
def test_two_processes_compute_as_one(program):
    address = f"127.0.0.1:{free_port()}"
    environment = {**os.environ, "SAEM_NUM_CPU_DEVICES": "2",
                   "PYTHONPATH": os.pathsep.join(sys.path)}
    running = [subprocess.Popen([sys.executable, "-c", program, str(n), address], text=True,
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
