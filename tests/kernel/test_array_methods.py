"""Does a traced array have every method that an array has?

Read before: ``saem.numpy.methods``.
"""

from __future__ import annotations

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp

FOLDS = ("all", "any", "max", "mean", "min", "prod", "std", "sum", "var")


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("transform", [jax.jit, jax.vmap])
def test_a_fold_is_a_method_inside_a_transformation(name, transform):
    x = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
    expected = [getattr(row, name)() for row in x]
    traced = transform(lambda x: getattr(x, name)(axis=-1))(jnp.array(x))
    np.testing.assert_allclose(traced, expected, rtol=1e-6)


def test_the_variance_is_a_method_while_a_gradient_is_linearized():
    x = np.array([1.0, 2.0, 4.0], np.float32)
    gradient = jax.grad(jax.jit(lambda x: x.var()))(jnp.array(x))
    np.testing.assert_allclose(gradient, 2 * (x - x.mean()) / 3, rtol=1e-6)


CLASS = """
import inspect
from unittest import mock
import jax, jax.numpy as jnp

def told(ask, x):
    try:
        return str(ask(x))
    except Exception as error:
        return f"{type(error).__mro__[-4:-2]} {error}"

result = [told(ask, x) for x in (jnp.arange(3), jax.random.key(0)) for ask in (
    lambda x: jax.Array.sum(x), lambda x: jax.Array.__getitem__(x, 0),
    lambda x: jax.Array.__add__(x, x), lambda x: jax.Array.T.__get__(x),
    lambda x: [isinstance(vars(jax.Array)[name], property)
               for name in ("shape", "dtype", "ndim", "size", "T", "at", "real", "imag",
                            "addressable_shards", "committed", "device", "global_shards", "nbytes",
                            "is_fully_addressable", "is_fully_replicated", "itemsize", "sharding")],
    lambda x: jax.Array.nbytes.__get__(x), lambda x: jax.Array.itemsize.__get__(x),
    lambda x: list(inspect.signature(jax.Array.addressable_data).parameters)[1:],
    lambda x: hasattr(mock.create_autospec(jax.Array), "sharding"),
    lambda x: list(inspect.signature(jax.Array.sum).parameters)[1:],
    lambda x: hasattr(mock.create_autospec(jax.Array), "astype"),
    lambda x: jax.Array.item(x), lambda x: jax.Array.__contains__(x, 0),
    lambda x: hasattr(jax.Array, "__len__") or hasattr(jax.Array, "__iter__"))]
keys = jax.random.split(jax.random.key(0), 3)
result += [told(ask, keys) for ask in (
    lambda keys: keys.sum(), lambda keys: keys.astype(int), lambda keys: keys.mT,
    lambda keys: keys.argsort(), lambda keys: keys.T.shape)]
refused = []
for ask in (lambda k: k + 1, lambda k: 1 - k, lambda k: k * k, lambda k: k < k, lambda k: -k,
            lambda k: ~k, lambda k: k & 1, lambda k: divmod(k, 2), lambda k: 2 ** k):
    try:
        ask(keys)
    except TypeError as error:
        refused.append(str(error).split(" does not accept")[0].split(": ")[-1])
print(result[0])
"""


def test_the_class_of_arrays_has_their_names(jax_oracle):
    here: dict = {"__name__": "asked"}
    code = CLASS.replace("print(result[0])", "")
    exec(code.replace("import jax, jax.numpy as jnp", "import saem as jax, saem.numpy as jnp"),
         here)
    assert len(here["refused"]) == 9
    assert here["result"] == jax_oracle.run(
        code + "\nassert len(refused) == 9\nresult = [str(line) for line in result]").value


CONTAINS = """
import copy
import numpy as np
import jax, jax.numpy as jnp

def told(ask):
    try:
        return str(ask())
    except TypeError as error:
        return "TypeError"
    except ValueError as error:
        return str(error).split(".  ")[0].split(". ")[0].rstrip(".")

line, table = jnp.array([1., 2., jnp.nan]), jnp.ones((2, 2))
keys = jax.random.split(jax.random.key(0), 2)
result = [told(ask) for ask in (
    lambda: 1 in line, lambda: 5 in line, lambda: jnp.nan in line, lambda: np.float64(2) in line,
    lambda: True in line, lambda: 1j in line, lambda: jnp.array(2) in line,
    lambda: jnp.ones(3) in line, lambda: [1] in line, lambda: "a" in line, lambda: None in line,
    lambda: 1 in table, lambda: 1 in jnp.ones(()), lambda: 1 in jnp.zeros(0),
    lambda: line.__contains__(1), lambda: keys[0] in keys, lambda: "a" in keys,
    lambda: keys in keys,
    lambda: jax.vmap(lambda row: row.__contains__(1.))(table),
    lambda: jax.make_jaxpr(lambda x: x.__contains__(1))(line),
    lambda: jax.make_jaxpr(copy.copy)(line), lambda: jax.make_jaxpr(copy.deepcopy)(line),
    lambda: copy.copy(line) is line, lambda: copy.copy(keys).shape)]
"""


def test_elements_are_searched_by_in_and_arrays_copied_by_copy(jax_oracle):
    here: dict = {}
    exec(CONTAINS.replace("import jax, jax.numpy as jnp",
                          "import saem as jax, saem.numpy as jnp"), here)
    assert here["result"] == jax_oracle.run(CONTAINS).value
