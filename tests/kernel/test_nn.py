"""Do jax.nn's functions give what real JAX gives: values, types, derivatives, refusals?

Read before: ``library.py``.  Read after: ``test_attention.py``, ``test_initializers.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from library import check

EDGES = "np.array([-100., -3., -1., -0.5, .1, 0.5, 1., 3., 6., 100., np.inf, -np.inf, np.nan], 'f')"
# Where a program is differentiated no operand is NaN: its slope is NaN there, or any number.
FINITE = EDGES.replace(", np.nan", "")
INNER = "np.array([-4., -1.3, -0.4, 0.2, 0.9, 2.5, 7.], 'f')"
ACTIVATIONS = ("celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu "
               "log_sigmoid mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus "
               "sparse_sigmoid squareplus swish tanh").split()
OPERANDS = [EDGES, "jnp.arange(-3, 4)", "0.5", "2", "jnp.array([True, False])", "[1., 2.]",
            "jnp.zeros((0, 3))", "jnp.array([-1, .5, 9], jnp.bfloat16)",
            "jnp.array([-1, .5, 9], np.float16)", "jnp.array([1, -4], np.int8)",
            "jnp.array([1, 4], np.uint8)", "jnp.array([1. + 2j, -1j])"]
PARAMETERS = [
    "nn.celu(x, 0.5)", "nn.elu(x, 0.5)", "nn.leaky_relu(x, 0.3)", "nn.squareplus(x, 2.)",
    "nn.celu(x, alpha=np.float32(2))", "nn.elu(x, alpha=x)", "nn.leaky_relu(x, x)",
    "nn.squareplus(x, b=np.arange(7))", "grads(lambda x, a: nn.celu(x, a), x, 0.7)",
    "grads(lambda x, a: nn.elu(x, a), x, 0.7)", "nn.celu(jnp.arange(3), 2)",
    "grads(lambda x, a: nn.leaky_relu(x, a), x, 0.7)", "nn.leaky_relu(jnp.arange(3), 2)",
    "nn.gelu(x, approximate=False)", "nn.gelu(x, False)", "nn.gelu(1, False)",
    "grads(lambda x: nn.gelu(x, False), x)", "nn.gelu(jnp.arange(3), False)",
    "nn.gelu(x.astype(jnp.bfloat16), False)", "nn.gelu(x.astype('float16'), True)"]
AXES = ("-1", "0", "None", "(0, 1)", "(0,)", "1", "(-1,)", "()")
ALONG_AXES = ("softmax", "log_softmax", "standardize", "logsumexp", "logmeanexp")


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(jax_oracle, name):
    rows = [f"nn.{name}({x})" for x in OPERANDS]
    rows += [f"grads(nn.{name}, {FINITE})", f"second(nn.{name}, {INNER})",
             f"mapped(nn.{name}, {INNER})", f"jax.jit(nn.{name})({INNER})"]
    check(jax_oracle, rows)


@pytest.mark.parametrize("name", ["relu", "relu6"])
def test_kinks_have_slope_zero(jax_oracle, name):
    check(jax_oracle, [f"grads(nn.{name}, np.array([0., -0., 6.], 'f'))"])


def test_parameters_of_activations(jax_oracle):
    check(jax_oracle, PARAMETERS, x=np.array([-4., -1.3, -0.4, 0.2, 0.9, 2.5, 7.], "f"))


def test_glu(jax_oracle):
    rows = [f"nn.glu(x, {axis})" for axis in (0, 1, -1)]
    rows += ["nn.glu(x[:, :3])", "nn.glu([1., 2.])", "nn.glu(jnp.arange(4))", "nn.glu(1.)",
             "grads(lambda x: nn.glu(x), x)", "mapped(lambda x: nn.glu(x), x)"]
    check(jax_oracle, rows, x=np.linspace(-2, 2, 24, dtype="f").reshape(4, 6))


def table():
    """Return the arguments of the rows below: numbers, a mask with an empty row, weights."""
    x = np.linspace(-2, 2, 24, dtype="f").reshape(4, 6)
    w = np.arange(24).reshape(4, 6) % 3 > 0
    w[1] = False
    return {"x": x, "w": w, "b": np.cos(np.arange(24, dtype="f")).reshape(4, 6)}


@pytest.mark.usefixtures("little_effort")
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", ALONG_AXES)
def test_along_axes(jax_oracle, name, axis):
    f = f"nn.{name}"
    rows = [f"{f}(x, axis={axis})", f"{f}(x, axis={axis}, where=w)",
            f"grads(lambda x: {f}(x, axis={axis}), x)", f"jax.jit(lambda x: {f}(x, {axis}))(x)"]
    if name != "standardize":
        rows.append(f"grads(lambda x: {f}(x, axis={axis}, where=w), x)")
    if name == "standardize":
        rows.append(f"nn.standardize(x, {axis}, algorithm='stable')")
    if name == "logsumexp":
        rows += [f"{f}(x, {axis}, keepdims=True)", f"{f}(x, {axis}, b)",
                 f"{f}(x, {axis}, b, return_sign=True)",
                 f"{f}(x, {axis}, b=b, return_sign=True, where=w, keepdims=True)",
                 f"grads(lambda x, b: {f}(x, {axis}, b, return_sign=True), x, b)"]
    if name == "logmeanexp":
        rows.append(f"{f}(x, {axis}, keepdims=True, where=w)")
    check(jax_oracle, rows, **table())


@pytest.mark.parametrize("name", [*ALONG_AXES[:2], *ALONG_AXES[3:], "log1mexp"])
def test_operands(jax_oracle, name):
    operands = [*OPERANDS[1:], "jnp.array([np.inf, 1.])", "jnp.array([-np.inf, -np.inf])",
                "jnp.array([np.nan, 1.])", "x > 0", "1."]
    if "softmax" in name:  # JAX subtracts unsigned integers, which wraps; here they become floats
        operands.remove("jnp.array([1, 4], np.uint8)")
    check(jax_oracle, [f"nn.{name}({x})" for x in operands], **table())


def test_corners(jax_oracle):
    check(jax_oracle, [
        "nn.logsumexp(jnp.array([1 + 2j, -1j]), return_sign=True)", "nn.logsumexp(x, b=2)",
        "nn.logsumexp(x, b=jnp.arange(6))", "nn.logsumexp(jnp.arange(3), b=jnp.arange(3))",
        "nn.logsumexp(x, b=-1)", "nn.log1mexp(np.array([0, 1e-10, .3, .69, 1., 50, -1], 'f'))",
        "grads(nn.log1mexp, np.array([1e-10, .3, .6931, 1., 50], 'f'))",
        "nn.standardize(x, mean=0., variance=1.)", "nn.standardize(x, algorithm='other')",
        "nn.standardize(x, mean=x.mean(-1, keepdims=True), epsilon=1)",
        "nn.standardize(x, where=w)", "nn.softmax(x, where=True)", "nn.softmax(x, where=w[0])",
        "nn.softmax(x, where=w * 1)"], **table())


def test_rule_of_softmax(jax_oracle):
    check(jax_oracle, [
        "[jax.config.update('jax_softmax_custom_jvp', True), nn.softmax(x),"
        " grads(lambda x: nn.softmax(x, where=w), x), grads(lambda x: nn.softmax(x, 0), x),"
        " second(lambda x: nn.softmax(x, 0), x),"
        " jax.config.update('jax_softmax_custom_jvp', False)]"], **table())


@pytest.mark.parametrize("x", ["jnp.arange(4)", "2", "jnp.array([[0, 2], [-1, 5]])", "[0, 1]",
                               "True", "jnp.arange(3.)", "jnp.arange(3, dtype='uint8')",
                               "jnp.zeros((0,), int)", "np.arange(3)"])
def test_one_hot(jax_oracle, x):
    check(jax_oracle, [f"nn.one_hot({x}, 3)", f"nn.one_hot({x}, 3, axis=0)",
                       f"nn.one_hot({x}, 3, axis=1, dtype=int)",
                       f"nn.one_hot({x}, 3, dtype='bfloat16')", f"nn.one_hot({x}, 0)"])


def test_one_hot_of_other_kinds(jax_oracle):
    named = "jax.vmap(lambda i: nn.one_hot(i, {n}, axis='k'), axis_name='k')(jnp.array([0, 1, 1]))"
    check(jax_oracle, [
        "nn.one_hot(jnp.arange(3), 3.)", "jax.jit(nn.one_hot)(jnp.arange(3), 3)",
        "nn.one_hot(jnp.arange(3), jnp.array(3))", "nn.one_hot(jnp.arange(3), 300, dtype=bool)",
        "nn.one_hot(jnp.arange(3, dtype='int8'), 100)", named.format(n=3), named.format(n=4)])
