"""What does a neural network need beside linear algebra?  Activations, normalizations, attention.

The public namespace ``jax.nn``.  This file only lists; each line names the module to read.

Read before: ``saem.numpy``.  Read after: ``nn.activations``.
Invariant: values, dtypes and derivatives are those of jax.nn 0.10.2 (tests/kernel/test_nn.py).
"""

from saem.core import lazy as _lazy
from saem.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
)
from saem.nn.normalization import log_softmax, one_hot, softmax, standardize

__getattr__, __dir__ = _lazy.namespace(__name__, {
    "saem.nn.attention": "dot_product_attention",
    "saem.nn.initializers": "",
    "saem.nn.logarithms": "log1mexp logmeanexp logsumexp",
    "saem.nn.scaled": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
})

__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "get_scaled_dot_general_config", "glu",
    "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "initializers",
    "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish",
    "one_hot", "relu", "relu6", "scaled_dot_general", "scaled_matmul", "selu", "sigmoid",
    "silu", "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus",
    "standardize", "swish", "tanh",
]
