"""Do operators of arrays leave objects of other classes to these, even where these are containers?

A class may be registered as a pytree, and have operators of its own: ``array @ matrix`` is then
the matrix's affair.
"""

from __future__ import annotations

import gc
import operator
import weakref

import numpy as np
import pytest
from both import same

import saem as jax
import saem.numpy as jnp


@jax.tree_util.register_pytree_node_class
class Matrix:
    """What it remembers beside its data is an array: two such containers cannot be compared."""

    def __init__(self, data, kind):
        self.data, self.kind = data, kind

    def tree_flatten(self):
        return (self.data,), {"kind": self.kind}

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(children[0], aux["kind"])

    def reflected(self, other):
        return self.data * other + self.kind

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rmatmul__ = __rpow__ = reflected
    __rmod__ = __rfloordiv__ = __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = reflected
    __gt__ = __lt__ = __ge__ = __le__ = __eq__ = __ne__ = reflected
    __hash__ = None


OPERATORS = ["add", "sub", "mul", "truediv", "matmul", "pow", "mod", "floordiv", "and_", "or_",
             "xor", "lshift", "rshift", "lt", "gt", "le", "ge", "eq", "ne"]


def applied(name):
    """Each operator with two such objects after each other, and inside of transformations."""
    apply = getattr(operator, name)
    x = jnp.arange(3.) + 1
    objects = [Matrix(jnp.ones(3), np.arange(3.)), Matrix(jnp.ones(3), np.arange(3.) + 1)]
    return [run for m in objects for run in (
        apply(x, m), apply(x, m), jax.jit(lambda x, m=m: apply(x, m))(x),
        jax.vmap(lambda x, m=m: apply(x, m))(jnp.stack([x, x])),
        jax.grad(lambda x, m=m: apply(x, m).sum())(x))]


@pytest.mark.oracle
@pytest.mark.parametrize("name", OPERATORS)
def test_the_object_answers(jax_oracle, name):
    same(jax_oracle, applied, name=name)


@pytest.mark.parametrize("fun", [
    jnp.sin, jnp.sum, lambda m: jnp.add(m, 1.), lambda m: jnp.dot(m, m)])
def test_functions_refuse_such_objects_each_time(fun):
    for kind in (np.arange(3.), np.arange(3.) + 1):
        with pytest.raises(TypeError):
            fun(Matrix(jnp.ones(3), kind))


def test_nothing_of_such_an_object_is_kept():
    class Kind:
        pass

    kind = Kind()
    kept = weakref.ref(kind)
    jnp.ones(3) * Matrix(jnp.ones(3), 1.)
    found = Matrix(jnp.ones(3), 2.)
    found.kind = kind
    found.reflected = lambda other: other
    with pytest.raises(TypeError):
        jnp.sin(found)
    with pytest.raises(TypeError):
        jnp.ones(3) * found
    del found, kind
    gc.collect()
    assert kept() is None
