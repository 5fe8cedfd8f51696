"""Are the places of diagonals and triangles those that JAX gives?

Every line of the list is an expression that both answer: places, dtypes, classes of errors.
"""

from __future__ import annotations

import numpy as np
import pytest
from agreement import check

from saem import jit
from saem import numpy as jnp
from saem.core import errors

WIDE = np.ones((3, 4), np.float32)
VECTOR = np.array([1.0, 2.5, -1.0, 4.0, 0.5], np.float32)

PLACES = """
jnp.diag_indices(3)
jnp.diag_indices(0)
jnp.diag_indices(2,3)
jnp.diag_indices(2,0)
jnp.diag_indices(-1)
jnp.diag_indices(2,-1)
jnp.diag_indices(2.)
jnp.diag_indices_from(jnp.ones((3,3)))
jnp.diag_indices_from(jnp.ones((2,2,2)))
jnp.diag_indices_from(w)
jnp.diag_indices_from(f)
jnp.diag_indices_from([[1]])
jnp.tril_indices(3)
jnp.tril_indices(3,1,4)
jnp.tril_indices(3,-1)
jnp.tril_indices(0)
jnp.tril_indices(2,9)
jnp.triu_indices(3)
jnp.triu_indices(3,1)
jnp.triu_indices(3,-5,2)
jnp.triu_indices(2,9)
jnp.triu_indices(2.)
jnp.triu_indices(-2)
jnp.tril_indices_from(w)
jnp.tril_indices_from(w,-1)
jnp.triu_indices_from(w,1)
jnp.tril_indices_from(f)
jnp.mask_indices(3,jnp.triu)
jnp.mask_indices(3,jnp.triu,1)
jnp.mask_indices(3,jnp.tril,-1,size=5)
"""

TRACED_SIZES = """
jax.jit(jnp.unravel_index)(np.array([0,5,11,30,-1,-40]), (3,4))
jax.jit(jnp.unravel_index)(np.array([0,5,11,30,-1,-40]), np.array([3,4]))
jax.jit(jnp.unravel_index)(np.array([0,5,11,30,-1,-40]), 12)
jax.jit(jnp.unravel_index)(7, (jnp.int8(3),jnp.int8(4)))
jax.jit(lambda n: jnp.unravel_index(jnp.arange(3,dtype=jnp.uint8),(3,n)))(4)
jax.jit(jnp.unravel_index)(jnp.array([[1,2],[7,8]]), (2,1,np.int32(4)))
jnp.unravel_index(3, np.array([[3,4]]))
jax.jit(jnp.unravel_index)(3, np.array([[3,4]]))
"""
FILLED = """
jnp.fill_diagonal(w,5,inplace=False)
jnp.fill_diagonal(w,f[:3],inplace=False)
jnp.fill_diagonal(w,f[:2],inplace=False)
jnp.fill_diagonal(w,f[:4].reshape(2,2),inplace=False)
jnp.fill_diagonal(jnp.ones((5,2)),f,inplace=False)
jnp.fill_diagonal(jnp.ones((5,2)),7.,wrap=True,inplace=False)
jnp.fill_diagonal(jnp.ones((2,2,2)),7.,inplace=False)
jnp.fill_diagonal(jnp.ones((2,2,3)),7.,inplace=False)
jnp.fill_diagonal(f,7.,inplace=False)
jnp.fill_diagonal(w,5)
jnp.fill_diagonal([[1]],5,inplace=False)
"""


def test_places_and_filled_diagonals_are_jaxs(jax_oracle):
    check(jax_oracle, (PLACES + FILLED).split(), w=WIDE, f=VECTOR)


def test_sizes_of_places_may_be_traced(jax_oracle):
    check(jax_oracle, TRACED_SIZES.strip().splitlines())


def test_places_need_no_values_inside_a_trace():
    def upper(x):
        return x[jnp.triu_indices_from(x, 1)], x[jnp.diag_indices(2)]

    x = np.arange(9.0, dtype=np.float32).reshape(3, 3)
    above, first = jit(upper)(x)
    np.testing.assert_array_equal(above, x[np.triu_indices(3, 1)])
    np.testing.assert_array_equal(first, [0.0, 4.0])
    filled = jit(lambda x, v: jnp.fill_diagonal(x, v, inplace=False))(x, np.float32(7))
    np.fill_diagonal(x, 7)
    np.testing.assert_array_equal(filled, x)


def test_a_mask_of_unknown_size_says_what_to_do():
    def inside(k):
        return jnp.mask_indices(3, lambda ones, _: ones * k)

    with pytest.raises(errors.ConcretizationTypeError, match="size"):
        jit(inside)(1.0)
