"""Do attributes for XLA stand by the operations they are meant for?

Which operation has which attributes, jaxprs, values and refusals are JAX's own, from the second
process.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem.experimental import scheduling_groups as groups
from saem.experimental.compute_on import compute_on, compute_on2
from saem.experimental.xla_metadata import set_xla_metadata

Host, Device = jax.memory.Space.Host, jax.memory.Space.Device
x = jnp.arange(3.0)
h = jax.device_put(x, Host)

OPS = "call|sine|cosine|multiply|add|negate|case|custom_call"


def marks(f, *args):
    found = []
    for line in jax.jit(f).lower(*args).as_text().splitlines():
        op = re.search(r"(?:stablehlo[.]|(?:func[.])?)(" + OPS + r")\b", line)
        said = re.search(r"frontend_attributes = {([^}]*)}", line)
        ending = line.strip().startswith("})")
        if (said and (op or ending)) or (op and op[1] in ("sine", "cosine", "multiply")):
            found.append((op[1] if op else "end") + (": " + said[1] if said else ""))
    return sorted(found)


def jaxpr(f, *args):
    return str(jax.make_jaxpr(f)(*args))


def nested(a):
    with set_xla_metadata(k="v", n=2, b=True):
        b = jnp.sin(a)
        with set_xla_metadata(k="w"):
            b = jnp.cos(b)
    return b * 3


@set_xla_metadata(k="v")
def decorated(a):
    return jnp.sin(a) * 2


def jitted(a):
    with set_xla_metadata(k="v"):
        return jax.jit(lambda b: jnp.sin(b))(a)


def branch(a):
    with set_xla_metadata(k="v"):
        return jax.lax.cond(a.sum() > 0, lambda b: jnp.sin(b), lambda b: jnp.cos(b), a)


def value(a):
    return set_xla_metadata(jnp.sin(a), k="v") * 2


def host(a):
    with compute_on("device_host"):
        b = jnp.sin(a)
    return jnp.cos(b)


def hosts(a):
    with compute_on("device_host"):
        with compute_on("gpu_stream:3"):
            b = jnp.sin(a)
        b = jnp.cos(b)
    with compute_on("device"):
        return b * 2


@compute_on("device_host")
@jax.jit
def whole(a):
    return jnp.sin(a) * 2


def sparse(a):
    return compute_on("tpu_sparsecore")(jnp.sin)(a)


two = compute_on2(
    lambda a, b: (jnp.sin(a) * b, b), compute_type="device_host", out_memory_spaces=Device
)
away = compute_on2(
    lambda a: (jnp.sin(a), a * 2), compute_type="device_host", out_memory_spaces=(Device, Host)
)
near = compute_on2(compute_type="device", out_memory_spaces=Device, compiler_options={"a": "b"})(
    lambda a: jnp.sin(a)
)
group = groups.scheduling_group("grp")(lambda a, b=2: jnp.sin(a) * b)
meta = groups.xla_metadata_call(k="v", q="w")(lambda a: {"s": jnp.sin(a)})

MARKED = ["nested, x", "decorated, x", "jitted, x", "branch, x", "value, x", "host, x", "hosts, x",
          "whole, x", "sparse, x", "two, x, x", "away, x", "near, x", "group, x", "meta, x",
          "jax.grad(lambda a: nested(a).sum()), x", "jax.vmap(decorated), x"]
PRINTED = ["nested, x", "value, x", "lambda a: set_xla_metadata((a, a * 2), k='v'), x",
           "jax.grad(lambda a: value(a).sum()), x", "jax.vmap(value), x", "host, x", "two, x, x",
           "away, x", "near, x", "two, x, 2.", "compute_on2(lambda a: a * 2, compute_type='device',"
           " out_memory_spaces=Host), h", "jax.vmap(near), x",
           "jax.grad(lambda a: near(a).sum()), x", "group, x", "lambda a: group(a, b=a), x",
           "jax.grad(lambda a: group(a).sum()), x", "jax.vmap(group), x", "meta, x"]
VALUES = ["nested(x)", "jax.jit(nested)(x)", "jax.jit(value)(x)", "jax.jit(hosts)(x)", "whole(x)",
          "two(x, x)", "jax.jit(near)(x)", "group(x)", "jax.jit(meta)(x)",
          "jax.jit(jax.grad(lambda a: near(a).sum()))(x)", "set_xla_metadata(x, k='v')",
          "jax.jit(jax.vmap(two))(x, x)", "away(x)[0]",
          "[str(jax.typeof(y).str_short(True)) for y in jax.jit(away)(x)]"]
REFUSED = {
    "compute_on('bogus')(jnp.sin)(x)": "Invalid compute type bogus. Current supported values are "
        "`device_host`, `device`, `tpu_sparsecore`, and `gpu_stream:#`.",
    "compute_on2(lambda a: a, compute_type='bogus', out_memory_spaces=Host)(x)":
        "Invalid compute type bogus",
    "compute_on2(lambda a: a, compute_type='device')(x)":
        "missing 1 required keyword-only argument: 'out_memory_spaces'",
    "compute_on2(lambda a: a, compute_type='device', out_memory_spaces=(Device,))(x)":
        "compute_on out_memory_spaces",
    "set_xla_metadata(jnp.sin, k='v')":
        "Error interpreting argument to xla_metadata_value as a JAX value.",
}


def test_operations_have_the_attributes_of_their_marks(jax_oracle):
    same(jax_oracle, f"[{', '.join(f'marks({p})' for p in MARKED)}]", within=__name__)


def test_jaxprs_show_calls_and_values_with_attributes(jax_oracle):
    same(jax_oracle, f"[{', '.join(f'jaxpr({p})' for p in PRINTED)}]", within=__name__)


def test_attributes_change_no_value(jax_oracle):
    same(jax_oracle, f"[{', '.join(VALUES)}]", within=__name__)


@pytest.mark.parametrize("source", REFUSED)
def test_refusals_are_jaxs(jax_oracle, source):
    same_error(jax_oracle, source, REFUSED[source], within=__name__)


def test_derivatives_pass_through_results_in_the_hosts_memory():
    f = jax.experimental.compute_on.compute_on2(
        lambda a: a**3, compute_type="device_host", out_memory_spaces=jax.memory.Space.Host)
    g = lambda a: jax.device_put(f(a), jax.memory.Space.Device).sum()
    x = jnp.arange(3.0)
    for run in (jax.grad(g), jax.jit(jax.grad(g))):
        np.testing.assert_allclose(run(x), 3 * np.arange(3.0) ** 2)
    np.testing.assert_allclose(jax.vmap(f)(x), np.arange(3.0) ** 3)


def test_a_trace_made_under_a_mark_does_not_answer_outside():
    f = jax.jit(lambda a: jnp.sin(a) * 2)
    plain = f.lower(1.0).as_text()
    with set_xla_metadata(k="v"):
        assert 'k = "v"' in f.lower(1.0).as_text()
        f(1.0)
    with compute_on("device_host"):
        assert '_xla_compute_type = "host"' in f.lower(1.0).as_text()
    assert f.lower(1.0).as_text() == plain and f(1.0) == np.float32(2 * np.sin(1.0))
