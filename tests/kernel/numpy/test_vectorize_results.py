"""What may a function return that ``jnp.vectorize`` maps, and does the signature know its shape?"""

from __future__ import annotations

import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp


@jax.tree_util.register_pytree_node_class
class State:
    """A container that has the shape of its array, as quantum objects have."""

    def __init__(self, x):
        self.x = x

    def tree_flatten(self):
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, _aux, children):
        return cls(*children)

    shape = property(lambda self: self.x.shape)


def returned(results, signature, x):
    make = {
        "a state": lambda n: State(jnp.ones(3) * n),
        "a number": lambda n: 2,
        "a tuple of one": lambda n: (n,),
        "a list": lambda n: [n],
        "a dict": lambda n: (n, {"a": n}),
        "nothing": lambda n: (n, None),
        "two states": lambda n: (State(jnp.ones(3) * n), State(jnp.ones((3, 2)) * n)),
        "two numbers": lambda n: (n, n),
        "three numbers": lambda n: (n, n, n),
        "a list of two": lambda n: [n, n],
    }[results]
    return jax.tree.leaves(jnp.vectorize(make, signature=signature)(x))


@pytest.mark.oracle
@pytest.mark.parametrize(("results", "signature"), [
    ("a state", "()->(k)"), ("a number", "()->()"), ("a tuple of one", "()->()"),
    ("a list", "()->(k)"), ("a dict", "()->(),()"), ("nothing", "()->(),()"),
    ("two states", "()->(k),(k,l)")])
def test_results_of_all_kinds(jax_oracle, results, signature):
    same(jax_oracle, "returned(results, signature, 2.)", within=__name__, results=results,
         signature=signature)
    if results != "a list":  # inside of vmap JAX makes a NumPy array of it
        same(jax_oracle, "returned(results, signature, jnp.arange(2.))", within=__name__,
             results=results, signature=signature)


@pytest.mark.oracle
@pytest.mark.parametrize(("results", "signature", "sentence"), [
    ("two numbers", "()->(k)", "wrong number of output arguments: expected 1, got 2"),
    ("three numbers", "()->(),()", "wrong number of output arguments: expected 2, got 3"),
    ("a list of two", "()->(),()", "output must be a tuple when multiple outputs are expected"),
    ("a state", "()->(k,l)", "output shape (3,) does not match core dimensions ('k', 'l')"),
    ("a list", "()->()", "output shape (1,) does not match core dimensions ()"),
    ("two states", "()->(k),(l,k)", "inconsistent size for core dimension 'k': 2 vs 3")])
def test_results_that_do_not_fit(jax_oracle, results, signature, sentence):
    same_error(jax_oracle, "returned(results, signature, 2.)", sentence, within=__name__,
               results=results, signature=signature)
