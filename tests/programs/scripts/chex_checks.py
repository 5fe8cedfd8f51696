"""chex: its README: dataclasses, assertions, variants, checks inside compiled functions."""

import chex
import jax
import jax.numpy as jnp
from curves import record


@chex.dataclass
class Parameters:
    x: chex.ArrayDevice
    y: chex.ArrayDevice


parameters = Parameters(x=jnp.ones((2, 2)), y=jnp.ones((1, 2)))
doubled = jax.tree_util.tree_map(lambda x: 2.0 * x, parameters)
record("dataclass", doubled.x)
chex.assert_equal_shape([doubled.x, parameters.x])
chex.assert_rank([doubled.x, jnp.ones((1, 1, 1))], [2, {3, 4}])
chex.assert_shape([jnp.float32(1), jnp.ones((2, 3))], [(), (2, 3)])
chex.assert_type([1, jnp.ones(2)], [int, float])
chex.assert_trees_all_close(doubled, jax.tree.map(lambda x: x + x, parameters))
chex.assert_tree_all_finite(doubled)
chex.assert_numerical_grads(lambda x, y: jnp.sum(jnp.sin(x) * y), (jnp.ones(3), jnp.ones(3)), 1)


@chex.chexify
@jax.jit
def logp1_abs_safe(x):
    chex.assert_tree_all_finite(x)
    return jnp.log(jnp.abs(x) + 1)


record("chexify", logp1_abs_safe(jnp.ones(2)))
logp1_abs_safe.wait_checks()
failed = 0
try:
    logp1_abs_safe(jnp.array([jnp.nan, 3]))
    logp1_abs_safe.wait_checks()
except AssertionError as error:
    failed = "finite" in str(error)
record("a check that fails", failed)


@jax.jit
@chex.assert_max_traces(n=1)
def fn_sum_jitted(x, y):
    return x + y


record("traced once", fn_sum_jitted(jnp.zeros(3), jnp.ones(3)))
try:
    fn_sum_jitted(jnp.zeros([6, 7]), jnp.zeros([6, 7]))
    raise SystemExit("traced twice")
except AssertionError:
    pass

with chex.fake_pmap():
    record("fake pmap", jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(jnp.arange(4.0)))
with chex.fake_jit():
    record("fake jit", jax.jit(lambda x: x + 1)(1.0))
try:
    with chex.restrict_backends(forbidden=["cpu"]):
        jax.jit(lambda x: x * 77 + 5)(jnp.ones(77))
    raise SystemExit("compiled all the same")
except RuntimeError as error:
    assert "forbidden" in str(error), error

dims = chex.Dimensions(B=2, T=3)
chex.assert_shape(jnp.ones((2, 3)), dims["BT"])


class Variants(chex.TestCase):
    @chex.all_variants
    def test(self):
        @self.variant
        def add(x, y):
            return x + y
        self.assertEqual(add(1, 2), 3)


import unittest  # noqa: E402

result = unittest.TextTestRunner(verbosity=0).run(
    unittest.defaultTestLoader.loadTestsFromTestCase(Variants))
record("variants", [result.testsRun, len(result.failures) + len(result.errors)])
