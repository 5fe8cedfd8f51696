"""Do products of arrays (dot, matmul, tensordot, einsum, …) give what NumPy and JAX give?"""

from __future__ import annotations

import random

import numpy as np
import pytest
from both import same, same_error

import saem
from saem import lax
from saem import numpy as jnp

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7
B = np.sin(np.arange(40, dtype=np.float32)).reshape(2, 4, 5)
V = np.cos(np.arange(4, dtype=np.float32))

PRODUCTS = {
    "dot": [(A, V), (V, V), (A[0], B[0]), (2.0, V), (V, A[0].T)],
    "matmul": [(A, B), (A[0], V), (V, B), (V, V), (A[:, None], B[None])],
    "inner": [(A[0], V), (A, A[0]), (3.0, V)],
    "outer": [(V, V), (A[0], V)],
    "vdot": [(V, V), (A, A)],
    "vecdot": [(A, A), (A, V)],
    "matvec": [(A, V), (A, V[None])],
    "vecmat": [(V, B), (V[None], B)],
    "kron": [(A[0], V), (V, V), (A[0], B[0])],
}


# NumPy has these two from 2.2 on.
MATVEC = getattr(np, "matvec", lambda a, b: np.einsum("...ij,...j->...i", a, b))
VECMAT = getattr(np, "vecmat", lambda a, b: np.einsum("...i,...ij->...j", a, b))


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_numpy_s(name):
    numpys = {"matvec": MATVEC, "vecmat": VECMAT}.get(name) or getattr(np, name)
    for a, b in PRODUCTS[name]:
        got, wanted = getattr(jnp, name)(a, b), numpys(a, b)
        assert got.shape == np.shape(wanted), (np.shape(a), np.shape(b))
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize(("axes", "shape"), [
    (0, (5,)), (1, (4, 5)), (2, (3, 4)), (3, (2, 3, 4)), (([1], [0]), (3, 5)), ((2, 1), (2, 4)),
    (([0, 2], [0, 1]), (2, 4, 5)), (((2, 0), (1, 0)), (2, 4, 5)), ((-1, 0), (4,))])
def test_tensordot_is_numpy_s(axes, shape):
    b = np.cos(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)
    got, wanted = jnp.tensordot(A, b, axes), np.tensordot(A, b, axes)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize(("subscripts", "shapes"), [
    ("ij,jk->ik", [(3, 4), (4, 5)]), ("ij,jk", [(3, 4), (4, 5)]), ("ij->ji", [(3, 4)]),
    ("ii", [(4, 4)]), ("ii->i", [(4, 4)]), ("ijk->k", [(2, 3, 4)]), ("i,j->ij", [(3,), (4,)]),
    ("i,i->", [(3,), (3,)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]), ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("bqhd,bkhd->bhqk", [(2, 3, 4, 5), (2, 6, 4, 5)]), ("ijj,jk->ik", [(2, 3, 3), (3, 4)]),
    ("a,b,c->abc", [(2,), (3,), (4,)]), ("ij,ij->ij", [(3, 4), (3, 4)]), ("ij->", [(3, 4)]),
    ("...a->...", [(2, 3)]), ("ij,k->kj", [(2, 3), (4,)]), ("iji->j", [(3, 4, 3)]),
], ids=lambda v: v if isinstance(v, str) else "")
def test_einsum_is_numpy_s(subscripts, shapes):
    values = [np.sin(np.arange(np.prod(s), dtype=np.float32) + n).reshape(s)
              for n, s in enumerate(shapes)]
    wanted = np.einsum(subscripts, *values)
    for optimize in ("auto", "optimal", "greedy", True, False):
        got = jnp.einsum(subscripts, *values, optimize=optimize)
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)


def test_dtypes_and_weak_types_of_products_are_jax_s(jax_oracle):
    def program():
        a, b = jnp.arange(6).reshape(2, 3), jnp.linspace(0, 1, 3, dtype=jnp.bfloat16)
        return [
            a @ b,
            jnp.dot(a, 2),
            jnp.einsum("ij,j->i", a, b),
            jnp.vdot(a, a),
            jnp.dot(b, b, preferred_element_type=jnp.float32),
            jnp.einsum("ij,j", a, b, preferred_element_type=jnp.float32),
            jnp.tensordot(a, a.T, 1, precision="highest"),
            jnp.matmul(a > 1, a.T > 2),
            jnp.einsum(a, [0, 1], b, [1], [0]),
            jnp.inner(1j * b, b),
            jnp.kron(a, b),
        ]

    same(jax_oracle, program, rtol=1e-2)


@pytest.mark.parametrize(("source", "sentence"), [
    ("jnp.dot(jnp.ones(3), jnp.ones(4))", "dot_general requires contracting dimensions"),
    ("jnp.matmul(jnp.ones(3), 2.0)", "matmul"), ("jnp.ones((2, 3)) @ jnp.ones((2, 3))", ""),
    ("jnp.einsum('ij,jk', jnp.ones((2, 3)), jnp.ones((2, 3)))", ""),
    ("jnp.einsum('ij,jk', jnp.ones((2, 3)))", ""), ("jnp.dot([1], [2])", "dot requires"),
    ("jnp.tensordot(jnp.ones((2, 3)), jnp.ones((2, 3)), 1)", ""),
])
def test_what_does_not_fit_is_refused_as_in_jax(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence)


def test_einsum_contracts_by_the_function_it_is_given():
    seen = []

    def contract(a, b, dimension_numbers, precision, preferred_element_type=None):
        seen.append(dimension_numbers)
        return 2 * lax.dot_general(a, b, dimension_numbers, precision, preferred_element_type)

    got = jnp.einsum("ij,jk->ik", A[0], B[0], _dot_general=contract)
    np.testing.assert_allclose(got, 2 * A[0] @ B[0], rtol=1e-5)
    assert seen == [(((1,), (0,)), ((), ()))]


CONTRACTIONS = """
def steps(subscripts, optimize):
    sizes = dict(i=2, j=3, k=4, l=5, m=2)
    operands = [jnp.ones([sizes[c] for c in term])
                for term in subscripts.split("->")[0].split(",")]
    found = []

    def walk(jaxpr):
        for eqn in jaxpr.eqns:
            if eqn.primitive.name in ("jit", "pjit"):
                walk(eqn.params["jaxpr"].jaxpr)
            elif eqn.primitive.name == "dot_general":
                found.append(repr((eqn.params["dimension_numbers"],
                                   [v.aval.shape for v in eqn.invars])))
            else:
                found.append(eqn.primitive.name)

    walk(jax.make_jaxpr(lambda *xs: jnp.einsum(subscripts, *xs, optimize=optimize))(
        *operands).jaxpr)
    return found

result = [steps(*case) for case in cases]
"""


def random_subscripts(seed, repeated):
    """Return subscripts of one to four operands; ``repeated`` labels may stand in one of them."""
    draw = random.Random(seed)
    terms = [draw.choices("ijklm", k=draw.randint(1, 3)) if repeated
             else draw.sample("ijklm", draw.randint(1, 4)) for _ in range(draw.randint(1, 4))]
    labels = sorted({c for term in terms for c in term})
    result = draw.sample(labels, draw.randint(0, min(4, len(labels))))
    return ",".join(map("".join, terms)) + "->" + "".join(result)


def test_einsum_contracts_the_operands_in_jax_s_order(jax_oracle):
    """Which operand is first, and the order of labels, decide the last bits of a sum."""
    cases = [(random_subscripts(seed, repeated=False), optimize)
             for seed in range(60) for optimize in ("auto", False)]
    # Diagonals: only a single operand, as JAX sums labels of both operands before the first.
    cases += [("ijj,jk->ik", "auto"), ("iij,j->i", "auto"), ("iijj->ij", "auto"),
              ("iji->j", "auto"), ("iii->i", "auto"), ("iijk->", "auto"), ("kki->ik", "auto")]
    names = {"cases": cases, "jax": saem, "jnp": jnp}
    exec(CONTRACTIONS, names)
    wanted = jax_oracle.run(CONTRACTIONS, cases=cases).value
    assert [(case, *got) for case, got in zip(cases, names["result"])] == [
        (case, *steps) for case, steps in zip(cases, wanted, strict=True)]


@pytest.mark.parametrize("seed", range(40))
def test_random_subscripts_give_numpy_s_numbers(seed):
    subscripts = random_subscripts(seed, repeated=seed % 2 == 0)
    sizes = {"i": 2, "j": 3, "k": 4, "l": 5, "m": 2}
    values = [np.sin(np.arange(np.prod([sizes[c] for c in term])) + n).astype("f").reshape(
        [sizes[c] for c in term]) for n, term in enumerate(subscripts.split("->")[0].split(","))]
    for optimize in ("auto", False):
        np.testing.assert_allclose(jnp.einsum(subscripts, *values, optimize=optimize),
                                   np.einsum(subscripts, *values), rtol=2e-5, atol=2e-5)


PRODUCTS_OF_TWO_DTYPES = """
def steps(call, *operands):
    f = eval("lambda *xs: " + call)
    jaxpr = jax.make_jaxpr(f)(*[jnp.ones(shape, dtype) for shape, dtype in operands]).jaxpr
    found = []

    def walk(jaxpr):
        for eqn in jaxpr.eqns:
            if eqn.primitive.name in ("jit", "pjit"):
                walk(eqn.params["jaxpr"].jaxpr)
            else:
                found.append([eqn.primitive.name, *(v.aval.str_short() for v in eqn.invars)])

    walk(jaxpr)
    return repr(found)

result = [steps(*case) for case in cases]
"""


def test_operands_of_two_dtypes_are_multiplied_as_they_are(jax_oracle):
    """No copy of the narrower operand in the wider type is made before, as none is on JAX."""
    dtypes = ("int32", "bfloat16", "bool", "int8", "complex64", "float32")
    cases = [(call, ((2, 3), "float32"), ((3, 4), dtype)) for dtype in dtypes for call in (
        "jnp.dot(*xs)", "xs[0] @ xs[1]", "jnp.einsum('ij,jk->ik', *xs)", "jnp.tensordot(*xs, 1)",
        "jnp.inner(xs[0], xs[1].T)", "jnp.vdot(xs[0][0], xs[1][:, 0])",
        "jnp.linalg.multi_dot([*xs, xs[1].T])", "jnp.einsum('ij,kl->i', *xs)")]
    cases += [(f"jnp.{name}(*xs)", (a, "float32"), (b, dtype))
              for dtype in ("int8", "float32") for name, a, b in (
        ("matvec", (2, 3), (3,)), ("matvec", (4, 2, 3), (3,)), ("matvec", (2, 3), (4, 3)),
        ("matvec", (5, 1, 2, 3), (4, 3)), ("vecmat", (2,), (2, 3)), ("vecmat", (4, 2), (4, 2, 3)),
        ("vecmat", (4, 2), (5, 1, 2, 3)), ("vecdot", (2, 3), (3,)), ("vecdot", (4, 1, 3), (2, 3)),
        ("matmul", (1, 2, 3), (4, 3, 2)), ("matmul", (3,), (4, 3, 2)))]
    names = {"cases": cases, "jax": saem, "jnp": jnp}
    exec(PRODUCTS_OF_TWO_DTYPES, names)
    wanted = jax_oracle.run(PRODUCTS_OF_TWO_DTYPES, cases=cases).value
    for case, got, there in zip(cases, names["result"], wanted, strict=True):
        assert got == there, case


def test_numbers_are_converted_to_the_type_in_which_they_meet():
    """A weak number may be of a wider type than the result; JAX refuses these."""
    for dtype in ("int8", "uint8", "int16", "int4"):
        x = jnp.ones((2, 2), dtype)
        for got in (jnp.dot(x, 2), jnp.dot(x, jnp.asarray(2)), jnp.inner(x, 2)):
            assert got.dtype == dtype
            assert np.asarray(got.astype("int32")).tolist() == [[2, 2], [2, 2]]
    assert jnp.inner(jnp.ones(2, "int8"), 300, preferred_element_type="int32").tolist() == [300] * 2
