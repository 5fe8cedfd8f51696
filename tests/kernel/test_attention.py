"""Is jax.nn.dot_product_attention what real JAX computes, with every parameter?

Read before: ``library.py``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from library import check

import saem as jax
from saem import nn
from saem import numpy as jnp
from saem.placement import plugins

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


# -- cuDNN's kernel: the calls that JAX 0.11.2 wrote on an H200 ------------------------------------

CALLS_OF_JAX = json.loads(Path(__file__).with_name("cudnn_calls.json").read_text())


def attend(q, *kv, **how):
    return nn.dot_product_attention(q, *(kv or (q, q)), implementation="cudnn", **how)


def total(q, **how):
    return attend(q, **how).astype("float32").sum()


def calls_of_saem(kind):
    """Return what the same program calls here, from its text for an NVIDIA GPU."""
    q, bias = jnp.ones((2, 64, 4, 64), "bfloat16"), jnp.ones((1, 4, 64, 64), "bfloat16")
    lengths = dict.fromkeys(("query_seq_lengths", "key_value_seq_lengths"),
                            jnp.array([30, 64], "int32"))
    f, *xs = {
        "window": (lambda q: attend(q, is_causal=True, local_window_size=(8, 0)), q),
        "mask": (lambda q, m: attend(q, mask=m), q, bias > 0),
        "grouped": (lambda q: attend(q, q[:, :, :2], q[:, :, :2]), q),
        "vmap": (jax.vmap(attend), jnp.stack([q, q])),
        "gradient": (jax.grad(lambda q: total(q, is_causal=True)), q),
        "gradient of a bias": (jax.grad(lambda b: total(q, bias=b)), bias),
        "gradient with lengths": (jax.grad(lambda q: total(q, **lengths)), q),
        "residual": (lambda q: attend(q, return_residual=True), q),
    }[kind]
    text = jax.jit(f).trace(*xs).lower(lowering_platforms=("cuda",)).as_text()
    found = re.findall(
        r'custom_call @(\S+?)\(.*?backend_config = "(.*?)", .*?operand_layouts = \[(.*?)\], '
        r"result_layouts = \[(.*?)\]\}.*? : (\(.*?\) -> .*)", text)
    return [{"target": target,
             "config": json.loads(config.replace(r"\22", '"'))["cudnn_fmha_backend_config"],
             "operand_layouts": plain(ins), "result_layouts": plain(outs), "types": types}
            for target, config, ins, outs, types in found]


def plain(layouts):
    return re.sub(r"\[(\d+)\]", r"\1", re.sub(r"\s", "", layouts))


@pytest.mark.parametrize("kind", CALLS_OF_JAX)
def test_calls_of_cudnn_are_those_of_jax(kind, monkeypatch):
    """JAX asks for no logsumexp where nobody reads it; it is one number for a row of weights."""
    monkeypatch.setattr(plugins, "has_cudnn", lambda: True)
    mine, theirs = calls_of_saem(kind), CALLS_OF_JAX[kind]
    if kind in ("window", "mask", "grouped", "vmap"):
        theirs[0]["types"] = re.sub(r"-> \((tensor<(\d+x\d+x\d+)x\d+xbf16>), ",
                                    r"-> (\1, tensor<\2xf32>, ", theirs[0]["types"])
        theirs[0]["result_layouts"] = theirs[0]["result_layouts"].replace(
            ",dense<0>", ",dense<[2,1,0]>:tensor<3xindex>,dense<0>")
    assert mine == theirs


@pytest.mark.parametrize(("how", "sentence"), [
    ({"query": "float32"}, "cuDNN computes attention of float16 and bfloat16, not of float32"),
    ({"local_window_size": 3}, "cuDNN has no window with places to the right"),
])
def test_what_cudnn_does_not_compute_is_refused(how, sentence, monkeypatch):
    monkeypatch.setattr(plugins, "has_cudnn", lambda: True)
    q = jnp.ones((2, 8, 4, 16), how.pop("query", "float16"))
    with pytest.raises(NotImplementedError, match=sentence):
        attend(q, **how)
