"""einops and jaxtyping: their READMEs on arrays, inside jit, and under a checking decorator."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from curves import record
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, TypeCheckError, jaxtyped

x = jnp.arange(2 * 3 * 4 * 6.0).reshape(2, 3, 4, 6)
record("rearrange", rearrange(x, "b c h w -> b (h c) w"))
record("mean", reduce(x, "b c (h h2) (w w2) -> b h w c", "mean", h2=2, w2=2))
record("repeat", repeat(x[0, 0], "h w -> h w c", c=3))
packed, shapes = pack(
    [rearrange(x[:, :, 0, 0], "b c -> b 1 c"), rearrange(x[..., 0], "b c h -> b h c")], "b * c")
record("pack", packed)
record("unpack", unpack(packed, shapes, "b * c")[1])
record("einsum", einsum(x, x, "b c h w, b k h w -> b c k"))
record("in jit and grad", jax.jit(jax.grad(
    lambda x: reduce(x ** 2, "b c (h h2) w -> b h", "max", h2=2).sum()))(x))


def typechecker(function):
    """A small checker of annotations, of the kind that jaxtyping works with: isinstance alone."""
    @functools.wraps(function)
    def checked(*values, **named):
        kinds = function.__annotations__
        for name, value in {**dict(zip(kinds, values)), **named}.items():
            if kinds.get(name, Any) is not Any and not isinstance(value, kinds[name]):
                raise TypeError(f"{value} is no {kinds[name]}")
        return function(*values, **named)
    return checked


@jaxtyped(typechecker=typechecker)
def product(a: Float[Array, "n k"], b: Float[Array, "k m"]) -> Float[Array, "n m"]:
    return a @ b


record("product", product(jnp.ones((2, 3)), jnp.ones((3, 4))))
record("in jit", jax.jit(product)(jnp.ones((2, 3)), jnp.ones((3, 4))))
try:
    product(jnp.ones((2, 3)), jnp.ones((4, 3)))
    raise SystemExit("not found")
except (TypeCheckError, TypeError):
    pass
record("isinstance", [
    isinstance(jnp.ones(3), Float[Array, "3"]), isinstance(jnp.ones(3), Int[Array, "3"]),
    isinstance(jnp.ones(3, jnp.bfloat16), Float[Array, "..."]),
    isinstance({"a": jnp.ones(2)}, PyTree[Float[Array, "_"]]),
    isinstance(jax.random.key(0), PRNGKeyArray), isinstance(jax.random.PRNGKey(0), PRNGKeyArray),
    isinstance(jax.ShapeDtypeStruct((3,), jnp.float32), Float[jax.ShapeDtypeStruct, "3"])])
