"""Does a program do on each platform what it was told to do there?"""

from __future__ import annotations

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.compile.lowering import lower


def test_the_branch_of_this_platform(jax_oracle):
    def program():
        f = lambda x: lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x * 2)
        g = lambda x: lax.platform_dependent(x, tpu=lambda x: x + 1, default=lambda x: x**2)
        h = lambda x: lax.platform_dependent(x, tpu=jnp.sin, cpu=lambda x: x - 1)
        x = jnp.arange(3.0)
        return [
            (
                k(x),
                jax.jit(k)(x),
                jax.vmap(k)(x),
                jax.jit(jax.vmap(jax.grad(k)))(x),
                jax.jvp(k, (x,), (x,)),
                str(jax.make_jaxpr(k)(x)),
                jax.jit(jax.vmap(jax.grad(jax.checkpoint(k))))(x),
            )
            for k in (f, g, h)
        ]

    same(jax_oracle, program)
    same_error(jax_oracle, "jax.jit(lambda x: lax.platform_dependent(x, tpu=jnp.sin, "
               "cuda=jnp.cos))(1.0)", "'platform_index(platforms=((\'tpu\',), (\'cuda\',)))' not "
               "found for platform cpu")


@pytest.mark.parametrize(("platform", "there", "not_there"), [
    ("cpu", "sine", "cosine"), ("tpu", "cosine", "sine"), ("cuda", "exponential", "sine")])
def test_only_the_branch_of_the_platform_is_written(platform, there, not_there):
    closed = jax.make_jaxpr(jax.vmap(lambda x: lax.platform_dependent(
        x, cpu=lax.sin, tpu=lax.cos, default=lax.exp)))(lax.iota("float32", 3))
    text = lower(closed, platform=platform).text
    assert f"stablehlo.{there}" in text and f"stablehlo.{not_there}" not in text
    assert "stablehlo.case" not in text


def test_small_names_of_lax(jax_oracle):
    def program():
        x = jnp.array([2**31 - 1, -(2**31), 12345, -1], jnp.int32)
        f = lambda a, b: lax.broadcast_like(a, b)
        return [
            lax.mulhi(x, x),
            lax.mulhi(x.astype(jnp.uint32), x.astype(jnp.uint32)),
            lax.mulhi(x, jnp.int32(7)),
            str(jax.make_jaxpr(lax.mulhi)(x, x)),
            jax.jit(jax.vmap(lax.mulhi, (0, None)))(x, x),
            f(jnp.arange(3.0), jnp.ones((2, 3))),
            f(1.5, jnp.ones((2, 3))),
            str(jax.make_jaxpr(f)(jnp.arange(3.0), jnp.ones((2, 3)))),
            lax.empty((2, 3), jnp.float32).shape,
        ]

    same(jax_oracle, program)

    def wide():
        with jax.enable_x64(True):
            x = jnp.array([2**63 - 1, -(2**63), 123456789012345678, -1, 0], jnp.int64)
            y = x[::-1] + 3
            u = x.astype(jnp.uint64), y.astype(jnp.uint64)
            return [np.asarray(lax.mulhi(x, y)).tolist(), np.asarray(lax.mulhi(*u)).tolist()]

    same(jax_oracle, wide)
