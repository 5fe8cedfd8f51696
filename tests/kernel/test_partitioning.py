"""Is a function divided among devices as its author says?

Rules, as Shardy's text, are compared with JAX's, from the second process; values with NumPy; and
the programs of eight devices are looked through for what the author wanted to avoid.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem.experimental.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)

made = custom_partitioning(lambda a: jnp.sin(a))
made.def_partition(lambda *_: None, sharding_rule="i -> i")


def rule_text(rule, shapes, out, **options):
    """Return the rule as it stands in the program for four devices."""
    f = custom_partitioning(lambda *xs: sum(x.sum() for x in xs) + jnp.zeros(out))
    f.def_partition(lambda *_: None, sharding_rule=rule, **options)
    row = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("x",))
    place = jax.sharding.NamedSharding(row, jax.sharding.PartitionSpec())
    args = [jax.device_put(np.zeros(s, np.float32), place) for s in shapes]
    return re.search(r"#sdy.op_sharding_rule<.*?>}", jax.jit(f).lower(*args).as_text())[0]


RULES = ["'i j -> i j', [(8, 4)], (8, 4)",
         "'i j, j k -> i k', [(8, 4), (4, 2)], (8, 2), reduction_factors=('j',)",
         "'... i -> ... i', [(2, 3, 4)], (2, 3, 4), need_replication_factors=('i',)",
         "'i (j k) -> i j k', [(8, 6)], (8, 2, 3)",
         "'(a b), c -> b c', [(8,), (2,)], (4, 2), a=2, reduction_factors=('a',)",
         "'i j -> i', [(8, 4)], (8,), permutation_factors=('j',)",
         "lambda mesh, ins, out: 'i -> i', [(8,)], (8,)",
         "SdyShardingRule((ArrayMapping(BATCHING, 'i'),), (ArrayMapping(BATCHING, 'i'),)), "
         "[(8, 4)], (8, 4)"]
REFUSED = {
    "rule_text(None, [(8,)], (8,), infer_sharding_from_operands=lambda *_: None)":
        "Need to provide sharding_rule to migrate to Shardy.",
    "rule_text('i j', [(8, 4)], (8, 4))": "There is no -> in",
    "jax.jvp(made, (jnp.ones(3),), (jnp.ones(3),))":
        "Differentiation rule for 'custom_partitioning' not implemented",
    "jax.vmap(made)(jnp.ones(3))": "Batching rule for 'custom_partitioning' not implemented",
}


@pytest.fixture(scope="module")
def mesh():
    return jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


def test_rules_are_written_as_in_jax(jax_oracle):
    same(jax_oracle, f"[{', '.join(f'rule_text({r})' for r in RULES)}]", within=__name__)


@pytest.mark.parametrize("source", REFUSED)
def test_refusals_are_jaxs(jax_oracle, source):
    same_error(jax_oracle, source, REFUSED[source], within=__name__)


def test_rules_print_and_are_built_by_hand():
    rule = SdyShardingRule((ArrayMapping(BATCHING, "i"),), (ArrayMapping(BATCHING, "i"),))
    assert repr(rule) == "SdyShardingRule((('…', 'i'),), (('…', 'i'),), {})"
    assert CompoundFactor("a", "b") == ("a", "b")
    with pytest.raises(ValueError, match="at least two factors"):
        CompoundFactor("a")


def test_each_device_computes_the_part_its_author_wrote(mesh):
    asked = []

    @custom_partitioning
    def rows(x):
        """Scale each row by its sum, which is easily told along rows alone."""
        return x / jnp.sum(x, 1, keepdims=True)

    def partition(mesh, arg_shapes, result_shape):
        asked.append((arg_shapes[0].sharding.spec, result_shape.shape))
        whole_rows = jax.NamedSharding(mesh, jax.P(arg_shapes[0].sharding.spec[0], None))
        return mesh, lambda x: x / jnp.sum(x, 1, keepdims=True), whole_rows, (whole_rows,)

    rows.def_partition(partition, sharding_rule="i j -> i j", need_replication_factors=("j",))
    x = np.arange(1, 33, dtype=np.float32).reshape(8, 4)
    wanted = x / x.sum(1, keepdims=True)
    np.testing.assert_allclose(rows(x), wanted, rtol=1e-6)
    assert not asked
    placed = jax.device_put(x, jax.NamedSharding(mesh, jax.P("x")))
    f = jax.jit(rows)
    np.testing.assert_allclose(f(placed), wanted, rtol=1e-6)
    assert asked == [(jax.P("x", None), (8, 4))]
    assert f(placed).sharding.spec == jax.P("x")
    assert "all-" not in f.lower(placed).compile().as_text()
    across = jax.device_put(x, jax.NamedSharding(mesh, jax.P("x", "y")))
    np.testing.assert_allclose(f(across), wanted, rtol=1e-6)


def test_devices_may_speak_to_each_other_and_results_may_be_several(mesh):
    @custom_partitioning
    def f(x, y):
        return jnp.sum(x), {"y": y * 2}

    def partition(mesh, args, results):
        cut, whole = jax.NamedSharding(mesh, jax.P("x")), jax.NamedSharding(mesh, jax.P())

        def part(x, y):
            return jax.lax.psum(jnp.sum(x), "x"), {"y": y * 2}

        return mesh, part, (whole, {"y": cut}), (cut, cut)

    f.def_partition(partition, sharding_rule="i, j -> , j", reduction_factors=("i",))
    x = jax.device_put(np.arange(8, dtype=np.float32), jax.NamedSharding(mesh, jax.P("x")))
    total, rest = jax.jit(f)(x, x)
    assert total == 28 and total.sharding.is_fully_replicated
    np.testing.assert_array_equal(rest["y"], 2 * np.arange(8))


def test_static_arguments_reach_the_rules(mesh):
    def power(x, n):
        return x**n

    power = custom_partitioning(power, static_argnums=(1,))

    def partition(n, mesh, args, result):
        return mesh, lambda x: x**n, args[0].sharding, (args[0].sharding,)

    power.def_partition(partition, sharding_rule="i -> i")
    x = jax.device_put(np.arange(8, dtype=np.float32), jax.NamedSharding(mesh, jax.P("x")))
    for n in (2, 3):
        np.testing.assert_allclose(jax.jit(lambda x, n=n: power(x, n))(x), np.arange(8.0) ** n)


def test_a_part_of_the_wrong_shape_is_refused(mesh):
    f = custom_partitioning(lambda x: x * 2)
    f.def_partition(lambda mesh, args, out: (mesh, lambda x: x[:1], out.sharding, (out.sharding,)),
                    sharding_rule="i -> i")
    x = jax.device_put(np.arange(8, dtype=np.float32), jax.NamedSharding(mesh, jax.P("x")))
    with pytest.raises(jax.errors.JaxRuntimeError, match="Mismatch in result shapes"):
        jax.jit(f)(x)
