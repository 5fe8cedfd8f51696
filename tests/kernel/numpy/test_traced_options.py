"""Do numeric options work as traced numbers: compiled, mapped and differentiated, as on JAX?"""

from __future__ import annotations

import numpy as np
import pytest
from both import same

import saem.numpy as jnp
from saem.flatten_util import ravel_pytree

OPTIONS = {
    "extract": "lambda f: jnp.extract(c, a, size=4, fill_value=f)",
    "compress": "lambda f: jnp.compress(c, m, size=4, axis=1, fill_value=f)",
    "compress of whole numbers": "lambda f: jnp.compress(c, jnp.arange(6), size=4, fill_value=f)",
    "kaiser": "lambda f: jnp.kaiser(5, f)",
    "kaiser of one point": "lambda f: jnp.kaiser(1, f)",
    "dot_product_attention": "lambda f: jax.nn.dot_product_attention(q, k, v, scale=f)",
    "attention in 16 bits": "lambda f: jax.nn.dot_product_attention("
                            "*(x.astype(jnp.bfloat16) for x in (q, k, v)), scale=f)",
    "histogram_bin_edges": "lambda f: jnp.histogram_bin_edges(a, 3, range=(0., f))",
    "histogram": "lambda f: jnp.histogram(a, 3, range=[0., f])[0] * f",
    "histogram of an array": "lambda f: jnp.histogram(a, 3, range=jnp.stack([0., f]))[1]",
    "lstsq": "lambda f: jnp.linalg.lstsq(m[:, :2], jnp.ones(2), rcond=f / 30)[0] * f",
    "lstsq below zero": "lambda f: jnp.linalg.lstsq(m[:, :2], jnp.ones(2), rcond=-f)[0] * f",
}
NAMES = """
a, m, c = jnp.arange(1., 7.), jnp.arange(12.).reshape(2, 6), np.arange(6) > 3
q = jnp.ones((1, 2, 1, 2)); k = q * jnp.arange(2.)[None, :, None, None]
v = jnp.arange(4.).reshape(1, 2, 1, 2)
"""


@pytest.mark.parametrize("name", OPTIONS)
def test_as_an_array_compiled_mapped_and_differentiated(jax_oracle, name):
    rtol = 1e-2 if "16 bits" in name else 2e-5
    same(jax_oracle, f"""{NAMES}
f = {OPTIONS[name]}
total = lambda x: f(x).astype(jnp.float32).sum()
result = [f(2.5), f(jnp.float32(2.5)), jax.jit(f)(2.5), jax.vmap(f)(jnp.array([2., 3.])),
          jax.jit(jax.vmap(f))(jnp.ones(2))]
x = jnp.float32(2.5)
if f(2.5).dtype != int:
    result += [jax.grad(total)(x), jax.jvp(total, (x,), (x,))]""", rtol=rtol)


def test_arange_counts_to_a_number_that_is_differentiated(jax_oracle):
    same(jax_oracle, """[
        jax.jvp(lambda f: jnp.arange(0., f), (2.5,), (1.,)), jax.jvp(jnp.arange, (2.5,), (1.,)),
        jax.grad(lambda f: f * jnp.arange(f).sum())(3.),
        jax.jvp(lambda f: jnp.arange(f, 5.), (2.5,), (1.,)),
        jax.jvp(lambda f: jnp.arange(0., 5., f), (2.5,), (1.,))]""")


def test_the_way_back_from_a_vector_does_not_depend_on_weak_types(jax_oracle):
    def program():
        ways = [ravel_pytree(x)[1] for x in (
            [1., 2.], [jnp.float32(1), jnp.float32(2)], [jnp.ones(1), jnp.float32(2)], (1., 2.),
            [1, 2.], [jnp.float32(1), np.float32(2)], [1., jnp.bfloat16(2)])]
        return [[a == b for a in ways] for b in ways], hash(ways[0]) == hash(ways[1]), [
            way(jnp.arange(2.)) for way in ways[:3]]

    same(jax_oracle, program)
