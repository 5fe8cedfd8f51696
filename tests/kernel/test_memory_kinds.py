"""Do values lie in the memory they were put into, and do their types say so?

Types, jaxprs, places, values and refusals are JAX's own, from the second process.

Read before: ``test_devices.py``.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem.ad_checkpoint import checkpoint_name
from saem.memory import Space

sharding = jax.sharding
device = jax.devices()[0]
Host, Device = jax.memory.Space.Host, jax.memory.Space.Device
usual = sharding.SingleDeviceSharding(device)
pinned = usual.with_memory_kind("pinned_host")
mesh = sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
named = sharding.NamedSharding(mesh, sharding.PartitionSpec("x"))
x = jnp.arange(3.0)
h = jax.device_put(x, pinned)


def where(y):
    return [np.asarray(y), jax.typeof(y).str_short(True), y.sharding.memory_kind, y.committed]


def jaxpr(f, *args):
    return str(jax.make_jaxpr(f)(*args))


def typed(f, *args):
    return [a.str_short(True) for a in jax.make_jaxpr(f)(*args).out_avals]


PLACES = ["pinned", "usual.with_memory_kind('unpinned_host')", "usual", "Host", "Device",
          "named.with_memory_kind('pinned_host')"]
# What is computed of a value in the host's memory stays there, but for scalars.
OPERATIONS = ["h + h", "h + 1", "h * 2 - h", "jnp.sin(h)", "h.sum()", "h.sum() * 2", "h @ h",
              "h[1]", "h.reshape(1, 3).T", "h.astype(int)", "jnp.cumsum(h)", "h[::-1]", "h > 1",
              "jnp.concatenate([h, h])", "h.at[0].set(1.)",
              "jnp.broadcast_to(h.sum(), (3,))", "jax.device_put(h)",
              "jax.jit(lambda a: a * 2)(h)", "jax.vmap(lambda a: a * 2)(h)",
              "jax.jvp(lambda a: a * 2, (h,), (h,))[1]", "jax.checkpoint(lambda a: a * 2)(h)",
              "jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, h))[1]",
              "jax.lax.cond(True, lambda a: a + 1, lambda a: a * 2, h)",
              "jax.jit(lambda a: jax.device_put(a, Host))(x)",
              "jax.jit(lambda a: jax.device_put(a, Device) * 2)(h)",
              "jax.jit(lambda a: a * 2, out_shardings=pinned)(x)",
              "jax.jit(lambda a: a * 2, out_shardings=named.with_memory_kind('pinned_host'))(x)",
              "jax.jit(lambda a: a * 2, out_shardings=named.with_memory_kind('pinned_host'))"
              "(x) + 1",
              "jax.jit(lambda a: a * 2, in_shardings=pinned)(h)",
              "jax.jit(lambda a: a * 2, in_shardings=pinned)(np.arange(3.))",
              "jax.jit(lambda a: a * 2, out_shardings=usual)(h)",
              "jax.jit(lambda a: jax.device_put(a, Device) * 2, in_shardings=pinned, "
              "out_shardings=usual)(h)",
              "jax.grad(lambda a: (jax.device_put(a, Device) ** 2).sum())(h)"]
PROGRAMS = ["lambda a: jax.device_put(a, Host) * 2", "lambda a: jax.device_put(a, pinned)",
            "lambda a: jax.device_put(a, device)",
            "lambda a: jax.device_put((a, a), (device, Host))",
            "lambda a: jax.device_put(a)", "lambda a: jax.device_put(a, named)",
            "lambda a: jax.device_put(a, device, may_alias=False)",
            "lambda a: jax.device_put(a, device, donate=True)",
            "lambda a: jax.device_put(a, device, src=named)",
            "jax.grad(lambda a: jax.device_put(a, device).sum())",
            "jax.vmap(lambda a: jax.device_put(a, Host))",
            "lambda b: jax.vmap(lambda a: jax.device_put(a, named), 1)(jnp.ones((3, 2)) * b[0])"]
REFUSED = {
    "h + x": "memory_space of all inputs passed to `add` must be the same. Got one operand with "
             "type: float32<host>[3] and another operand with type: float32[3]",
    "jnp.concatenate([h, x])": "memory_space of all inputs passed to `concatenate` must be the",
    "jnp.where(h > 0, x, x)": "memory_space of all inputs passed to `select_n` must be the same",
    "h @ x": "memory_space of all inputs passed to `dot_general` must be the same",
    "h[jnp.arange(2)]": "memory_space of all inputs passed to `gather` must be the same",
    "jax.jit(lambda a: a, in_shardings=pinned)(x)":
        "Memory kinds passed to jax.jit does not match memory kind on the respective arg. Got jit "
        "memory kind: pinned_host, arg memory kind: device for arg type: float32[3]",
    "usual.with_memory_kind('bogus')": "Could not find memory addressable by device cpu. Device "
        "cpu can address the following memory kinds: device, pinned_host, unpinned_host. Got "
        "memory kind: bogus",
}


def agree(oracle, question):
    same(oracle, question, within=__name__)


def test_a_device_tells_its_memories(jax_oracle):
    agree(jax_oracle, """[[m.kind for m in device.addressable_memories()],
        device.default_memory().kind, repr(usual), repr(pinned), repr(named),
        repr(named.with_memory_kind("pinned_host")), usual == usual.with_memory_kind("device"),
        named == named.with_memory_kind("pinned_host"), x.sharding.memory_kind, repr(Host),
        [repr(s) for s in jax.memory.Space]]""")


def test_values_are_put_into_memories(jax_oracle):
    agree(jax_oracle, f"[where(jax.device_put(v, p)) for v in (x, np.arange(3.)) "
                      f"for p in ({', '.join(PLACES)})]")


def test_what_is_computed_stays_in_the_memory_of_its_operands(jax_oracle):
    agree(jax_oracle, f"[where(f()) for f in ({', '.join('lambda: ' + o for o in OPERATIONS)})]")


def test_types_name_the_memory_also_in_traces(jax_oracle):
    agree(jax_oracle, """[typed(f, h, x) for f in (
        lambda a, b: a.sum() * 2, lambda a, b: a + b.sum(), lambda a, b: a.sum() + b,
        lambda a, b: jax.lax.dynamic_slice(a, (0,), (2,)), lambda a, b: jnp.exp(h) + 1,
        lambda a, b: jax.lax.sort((a, b), num_keys=1), lambda a, b: jax.lax.pad(a, 0., [(1, 1, 0)]),
        lambda a, b: a.at[0].set(b[0]), lambda a, b: jnp.zeros_like(a))]""")


def test_jaxprs_show_where_values_go(jax_oracle):
    agree(jax_oracle, f"[jaxpr(f, x) for f in ({', '.join(PROGRAMS)})]")


@pytest.mark.parametrize("source", REFUSED)
def test_refusals_are_jaxs(jax_oracle, source):
    same_error(jax_oracle, source, REFUSED[source], within=__name__)


def test_placements_are_written_for_other_platforms(jax_oracle):
    def program():
        f = jax.jit(lambda a: jax.device_put(jax.device_put(a * 2, Host), Device) + 1)
        g = jax.jit(lambda a: a * 2, out_shardings=pinned)
        texts = [
            f.trace(x).lower(lowering_platforms=(p,)).as_text() for p in ("cpu", "cuda", "tpu")
        ]
        texts.append(g.lower(x).as_text())
        return [
            [
                line.split("@")[1].split("(")[0] + line.split("{")[1]
                for line in text.splitlines()
                if "custom_call" in line
            ]
            for text in texts
        ]

    same(jax_oracle, program)


def test_policies_that_offload_keep_values_in_the_hosts_memory(jax_oracle):
    def program():
        policies = jax.checkpoint_policies
        policy = policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[], names_which_can_be_offloaded=["u"],
            offload_src="device", offload_dst="pinned_host")
        dots = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
        w = jnp.ones((3, 3))
        f = jax.checkpoint(lambda a: jnp.sin(checkpoint_name(jnp.cos(a), "u")).sum(), policy=policy)
        g = jax.checkpoint(lambda a: jnp.sin(jnp.sin(a) @ w).sum(), policy=dots)

        def body(c, _):
            return jnp.sin(checkpoint_name(jnp.cos(c), "u")), None

        def loop(c):
            return jax.lax.scan(jax.checkpoint(body, policy=policy), c, None, length=3)[0].sum()

        def printed(h, x):
            return re.sub("policy=.*", "policy", str(jax.make_jaxpr(jax.grad(h))(x)))

        return [
            printed(f, x),
            printed(g, w),
            printed(loop, x),
            jax.grad(f)(x),
            jax.jit(jax.grad(f))(x),
            jax.grad(g)(w),
            jax.jit(jax.grad(loop))(x),
        ]

    same(jax_oracle, program)


def test_derivatives_pass_through_the_hosts_memory():
    # JAX 0.10.2 refuses this: it makes the first cotangent in the device's memory.
    x = jnp.arange(3.0)
    f = lambda a: (jax.device_put(a, Space.Host) ** 2).sum()
    np.testing.assert_array_equal(jax.grad(f)(x), [0, 2, 4])
    np.testing.assert_array_equal(jax.jit(jax.grad(f))(x), [0, 2, 4])
    assert jax.grad(f)(x).sharding.memory_kind == "device"


def test_arrays_on_several_devices_lie_in_the_hosts_memory_too():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("x",))
    spread = jax.sharding.NamedSharding(mesh, jax.P("x"), memory_kind="pinned_host")
    x = np.arange(8, dtype=np.float32)
    placed = jax.device_put(x, spread)
    assert jax.typeof(placed).str_short(True) == "f32<host>[8]"
    assert {s.data.sharding.memory_kind for s in placed.addressable_shards} == {"pinned_host"}
    doubled = jax.jit(lambda a: a * 2)(placed)
    assert doubled.sharding == spread
    np.testing.assert_array_equal(doubled, x * 2)
    back = jax.jit(lambda a: jax.device_put(a, Space.Device))(doubled)
    assert back.sharding == spread.with_memory_kind("device")
    np.testing.assert_array_equal(back, x * 2)


def test_any_memory_is_no_place():
    with pytest.raises(ValueError, match=r"MemorySpace\.Any is no place"):
        jax.device_put(1.0, Space.Any)
