"""Is jax.nn.dot_product_attention what real JAX computes, with every parameter?

Read before: ``library.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from library import check

CALLS = {
    "plain": ["q, k, v", "q[0], k[0], v[0]", "q, k, v, implementation='xla'", "q, k, v, scale=.2"],
    "bias": ["q, k, v, b", "q, k, v, b[:1, :1]", "q, k, v, b[0]", "q, k, v, b[0, 0]",
             "q, k, v, b.astype(jnp.bfloat16)"],
    "mask": ["q, k, v, mask=m", "q, k, v, b, m[:, :1], scale=.2", "q, k, v, is_causal=True",
             "q, k, v, local_window_size=1", "q, k, v, local_window_size=(1, 2)"],
    "lengths": ["q, k, v, query_seq_lengths=n", "q, k, v, key_value_seq_lengths=n - 2",
                "q, k, v, mask=m, is_causal=True, query_seq_lengths=n, key_value_seq_lengths=n,"
                " return_residual=True"],
    "residual": ["q, k, v, return_residual=True", "q[0], k[0], v[0], return_residual=True"],
    "narrow": ["q.astype(jnp.bfloat16), k.astype(jnp.bfloat16), v.astype(jnp.bfloat16)",
               "q.astype('float16'), k.astype('float16'), v.astype('float16'), b"],
    "refused": ["q, k, v, mask=b", "q[0, 0], k, v", "q, k, v[:, :4]", "q, k[..., :7], v",
                "q, k[:, :, [0, 1, 2, 1]], v[:, :, [0, 1, 2, 1]]", "q, k.astype('bfloat16'), v",
                "q, k, v, bias=b[:, :5]", "q, k, v, query_seq_lengths=n * 1.",
                "q, k, v, query_seq_lengths=n[:1]", "q, k, v, implementation='cudnn'",
                "q, k, v, implementation='other'"],
}
PROGRAMS = [
    "grads(lambda q, k, v, b: A(q, k, v, b), q, k, v, b)",
    "grads(lambda q, k, v: A(q, k, v, is_causal=True, mask=m), q, k, v)",
    "grads(lambda q, k, v: A(q, k, v, query_seq_lengths=n, key_value_seq_lengths=n,"
    " return_residual=True), q, k, v)", "jax.jit(lambda q: A(q, k, v))(q)",
    "mapped(lambda q, k, v: A(q, k, v), q, k, v)",
]


def operands():
    """Return queries of six heads, keys and values of three, a bias, a mask and lengths."""
    draw = np.random.RandomState(0)
    q, k, v, b = (draw.randn(*shape).astype("f")
                  for shape in ((2, 4, 6, 8), (2, 5, 3, 8), (2, 5, 3, 8), (2, 6, 4, 5)))
    return {"q": q, "k": k, "v": v, "b": b, "m": draw.rand(2, 6, 4, 5) > 0.3,
            "n": np.array([2, 3], np.int32)}


@pytest.mark.parametrize("kind", CALLS)
def test_calls(jax_oracle, kind):
    check(jax_oracle, [f"nn.dot_product_attention({x})" for x in CALLS[kind]], **operands())


def test_programs(jax_oracle):
    check(jax_oracle, [p.replace("A(", "nn.dot_product_attention(") for p in PROGRAMS],
          rtol=2e-5, **operands())
