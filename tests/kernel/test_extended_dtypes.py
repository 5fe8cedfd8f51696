"""Do dtypes that a program defines mean what they mean on JAX: conversions, derivatives, structure?

Read before: ``both.py``, ``saem.ops.extended``.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

import saem as jax
from saem import core, lax
from saem import numpy as jnp
from saem.core import dtypes
from saem.core.infer import check_jaxpr
from saem.core.jaxpr import evaluate

# A dtype whose derivatives are added by their maximum, as flax's ``fp32_max_grad``, one of which
# an element is two numbers, and one that nothing is converted to.
DEFINITIONS = '''
class scalar(dtypes.extended):
    pass

class Rules:
    @staticmethod
    def physical_element_aval(dtype):
        return core.ShapedArray(dtype.element, jnp.float32)
    @staticmethod
    def convert_to(other, dtype):
        return other == jnp.float32 and dtype.name != "closed"
    @staticmethod
    def convert_from(dtype, other):
        return other == jnp.float32
    @staticmethod
    def tangent_dtype(dtype):
        return dtype
    @staticmethod
    def zero(dtype):
        return lax.convert_element_type(np.float32(-np.inf), dtype)
    @staticmethod
    def add(dtype, x, y):
        return to(lax.max(back(x), back(y)), dtype)
    @staticmethod
    def full(shape, value, dtype):
        return to(lax.full((*shape, *dtype.element), value, jnp.float32), dtype)

class Made(dtypes.ExtendedDType):
    type = scalar
    _rules = Rules
    def __init__(self, name, element=()):
        self.name, self.element = name, element
    def __repr__(self):
        return self.name
    def __eq__(self, other):
        return isinstance(other, Made) and self.name == other.name
    def __hash__(self):
        return hash(self.name)

most, pair, closed = Made("most"), Made("pair", (2,)), Made("closed")

def to(x, dtype=most):
    return lax.convert_element_type(x, dtype)

def back(x):
    return lax.convert_element_type(x, jnp.float32)

@jax.custom_vjp
def scaled(x, s):
    return x * back(s)

scaled.defvjp(lambda x, s: (scaled(x, s), (x, s)),
              lambda kept, ct: (ct * back(kept[1]), to(ct * kept[0])))

def reused(x, s):
    s = to(s)
    return scaled(x, s) + scaled(2 * x, s)

def scanned(x, s):
    s = to(s)
    return lax.scan(lambda c, _: (scaled(c, s), None), x, None, length=3)[0]

def branching(x, s):
    s = to(s)
    return lax.cond(x > 0, lambda: scaled(x, s), lambda: x)

x = jnp.arange(3.0)
two, three = jnp.float32(2), jnp.float32(3)
'''

JAXPRS = [
    "(lambda x: back(to(x)), x)",
    "(lambda x: jnp.stack([to(x), to(x)]).reshape(3, 2).T[0], x)",
    "(lambda x: jnp.concatenate([to(x), to(x)])[1:5], x)",
    "(lambda x: (to(x) == to(x), to(x) != to(x)), x)",
    "(lambda x: lax.scan(lambda c, y: (to(back(c) + y), c), to(two), x), x)",
    "(lambda x: back(to(jnp.stack([x, x], -1), pair)[1:].reshape(2, 1)), x)",
    "(lambda: (jnp.zeros((3,), most), jnp.full((2,), 3.0, pair), lax.full((2,), 2.0, most)),)",
    "(lambda x: (jnp.zeros_like(to(x)), jnp.ones_like(to(x)), x.astype(most)), x)",
    "(lambda x, dx: jax.jvp(lambda x: 2 * back(x) * back(x), (to(x),), (to(dx),)), x, x)",
    "(lambda x: jax.linearize(lambda x: 2 * back(x), to(x))[1](to(x)), x)",
    "(jax.grad(reused, (0, 1)), three, two)",
    "(lambda x: jax.jvp(lambda y: y, (to(x),),"
    " (jax.custom_derivatives.zero_from_primal(to(x)),)), two)",
]

VALUES = {
    "eager": "(to(x).shape, repr(to(x).dtype), back(to(x)), to(x).ndim, to(x).size)",
    "repr": "[repr(to(x)), str(to(1.0)), repr(jax.jit(to)(x).copy())]",
    "jit": "jax.jit(lambda x: back(to(x)[1:]))(x)",
    "jit in and out": "jax.jit(back)(jax.jit(lambda x: to(x + 1))(x))",
    "vmap": "jax.vmap(lambda x: back(to(x)))(x)",
    "vmap of pairs": "jax.vmap(lambda x: back(to(x, pair)))(jnp.ones((2, 3)).T * x[:, None])",
    "transposed pairs": "jax.jit(lambda x: back(to(x, pair).T))(jnp.arange(12.).reshape(3, 2, 2))",
    "compared": "jax.jit(lambda x: [to(x) == to(x[::-1]), to(x) != to(x[::-1])])(x)",
    "compared pairs": "jax.jit(lambda x: to(x, pair) == to(x[::-1], pair))"
                      "(x[:2][None] + x[:, None])",
    "chosen": "jax.jit(lambda x: back(jnp.where(x > 1, to(x), to(-x))))(x)",
    "chosen pairs": "jax.jit(lambda x: back(jnp.where(x[:, 0] > 1, to(x, pair), to(-x, pair))))"
                    "(x[:2][None] + x[:, None])",
    "branch": "jax.jit(lambda x: back(lax.cond(x[0] > 0, lambda: to(x), lambda: to(x + 1))))(x)",
    "summed by the rule": "jax.jit(jax.grad(reused, (0, 1)))(three, two)",
    "in a loop": "jax.jit(jax.grad(scanned, (0, 1)))(three, two)",
    "in a branch": "[jax.jit(jax.grad(branching, (0, 1)))(k, two) for k in (three, -three)]",
    "under remat": "jax.jit(jax.grad(jax.checkpoint(reused), (0, 1)))(three, two)",
    "in a call": "jax.jit(jax.grad(lambda x, s: jax.jit(lambda x, s: scaled(x, s) + "
                 "scaled(2 * x, s))(x, to(s)), (0, 1)))(three, two)",
    "unused": "jax.jit(jax.grad(lambda x, s: (to(s), 2 * x)[1], (0, 1)))(three, two)",
    "kinds": "[jnp.issubdtype(most, scalar), jnp.issubdtype(most, jax.dtypes.extended),"
             " jnp.issubdtype(most, np.inexact), str(jax.eval_shape(to, x)), most == pair]",
}

ERRORS = {
    "(to(x.astype(jnp.int32)))": "Cannot convert_element_type from int32 to most",
    "jax.jit(lambda x: lax.convert_element_type(to(x), jnp.float16))(x)":
        "Cannot convert_element_type from most to float16",
    "to(x, closed)": "Cannot convert_element_type from float32 to closed",
    "to(x, pair)": "can only convert to extended dtype from an array of its representation type",
    "jax.jit(lambda x: to(x) + to(x))(x)": "add does not accept dtype most at position 0",
    "jax.jit(lambda x: -to(x))(x)": "neg does not accept dtype most",
    "jax.make_jaxpr(lambda x: jax.grad(lambda x: back(x)[0])(to(x)))(x)":
        "grad requires real- or complex-valued inputs",
}

# The same of ``jax.experimental.primal_tangent_dtype``; JAX has no such values outside of programs.
OWN_TANGENTS = '''
from jax.experimental import primal_tangent_dtype
counts = primal_tangent_dtype("int8", "float32")
halves = primal_tangent_dtype(jnp.float16, jnp.float32, "halves")

@jax.custom_vjp
def read(q, s):
    return lax.convert_element_type(q, jnp.int8).astype(jnp.float32) * s

read.defvjp(lambda q, s: (read(q, s), (q, s)),
            lambda kept, ct: (ct * kept[1], jnp.sum(ct * read(kept[0], 1.0))))
n = jnp.arange(3, dtype="int8")
h = jnp.arange(3, dtype="float16")

def gradients(q):
    return jax.vjp(lambda q: read(q, 2.0) + read(q[::-1], 3.0), q)[1](jnp.array([1., 2., 4.]))

def repeated(q):
    return lax.scan(lambda c, _: (c[::-1], read(c, 2.0)), q, None, length=3)[1]
'''

OWN_VALUES = {
    "types": "[repr(counts), str(halves), counts == primal_tangent_dtype(jnp.int8, float),"
             " hash(counts) == hash(primal_tangent_dtype(jnp.int8, float)),"
             " str(counts.primal_dtype), str(counts.tangent_dtype), halves == counts]",
    "vjp": "jax.jit(lambda n: gradients(lax.convert_element_type(n, counts)))(n)",
    "scan": "jax.jit(lambda n: jax.vjp(repeated, lax.convert_element_type(n, counts))[1]("
            "jnp.ones((3, 3))))(n)",
    "through halves": "jax.jit(jax.grad(lambda h: jnp.sum(lax.convert_element_type("
                      "lax.convert_element_type(h, halves), jnp.float16))))(h)",
    "jaxpr": "str(jax.make_jaxpr(lambda h: jax.jvp(lambda h: lax.convert_element_type(h, halves),"
             " (h,), (h,)))(h))",
    "wrong": "[str(jax.eval_shape(lambda n: lax.convert_element_type(n, counts), n)),"
             " jnp.issubdtype(counts, jax.dtypes.extended)]",
}


def names(program: str) -> dict:
    """Return what Saem gives to the names that ``program`` defines."""
    found = {"jax": jax, "jnp": jnp, "lax": lax, "np": np, "dtypes": dtypes, "core": core}
    exec(program.replace("from jax.", "from saem."), found)
    return found


MADE = names(DEFINITIONS)


# What JAX needs beyond that, to make arrays of such dtypes.
ARRAYS = '''
from jax._src import core, dtypes, earray
from jax._src.interpreters import pxla

def handler(aval, sharding, committed):
    held = core.ShapedArray(aval.shape, jnp.float32)
    make = pxla.global_result_handlers[core.ShapedArray](held, sharding, committed)
    return lambda buffers: earray.EArray(aval, make(buffers))
'''


def theirs(expression: str, program: str = DEFINITIONS) -> str:
    program = program.replace("class Rules:", "class Rules:\n    global_sharded_result_handler = "
                              "staticmethod(handler)")
    return f"{ARRAYS}\n{program}\nresult = {expression}"


def agree(oracle, expression, program=DEFINITIONS, found=MADE):
    answer = oracle.run(theirs(expression, program)).value
    got = eval(expression, dict(found))
    assert jax.tree.structure(got) == jax.tree.structure(answer)
    for mine, wanted in zip(jax.tree.leaves(got), jax.tree.leaves(answer)):
        if isinstance(wanted, np.ndarray):
            assert mine.dtype == wanted.dtype
            np.testing.assert_array_equal(np.asarray(mine), wanted)
        else:
            assert mine == wanted


@pytest.mark.parametrize("case", JAXPRS)
def test_programs_print_as_jaxs(jax_oracle, case):
    agree(jax_oracle, f"(lambda f, *xs: str(jax.make_jaxpr(f)(*xs)))(*{case})")


@pytest.mark.parametrize("case", JAXPRS)
def test_programs_are_well_formed_and_run_on_numpy(case):
    fun, *xs = eval(case, dict(MADE))
    closed = jax.make_jaxpr(fun)(*xs)
    check_jaxpr(closed.jaxpr)
    compiled = jax.tree.leaves(jax.jit(fun)(*xs))
    for mine, wanted in zip(evaluate(closed, *xs), compiled):
        held = MADE["back"](wanted) if dtypes.is_extended(wanted.dtype) else wanted
        np.testing.assert_array_equal(mine, held)


@pytest.mark.parametrize("case", VALUES)
def test_values(jax_oracle, case):
    agree(jax_oracle, VALUES[case])


@pytest.mark.parametrize("case", ERRORS)
def test_refusals(jax_oracle, case):
    caught = f'''
try:
    {case}
except Exception as error:
    result = str(error)
'''
    told = jax_oracle.run(f"{theirs('None')}\n{caught}").value
    assert ERRORS[case] in told
    with pytest.raises((TypeError, ValueError)) as refused:
        eval(case, dict(MADE))
    assert ERRORS[case] in str(refused.value)


@pytest.mark.parametrize("case", OWN_VALUES)
def test_tangents_of_another_dtype(jax_oracle, case):
    agree(jax_oracle, OWN_VALUES[case], OWN_TANGENTS, names(OWN_TANGENTS))


def test_outside_of_programs_they_do_what_they_do_inside():
    """JAX's arrays of such dtypes fail in most of this by internal errors."""
    to, back, most = MADE["to"], MADE["back"], MADE["most"]
    grads = jax.grad(MADE["reused"], (0, 1))(3.0, 2.0)
    assert [g.item() for g in grads] == [6.0, 6.0]
    x = to(jnp.arange(3.0))
    assert (x.itemsize, x.nbytes, len(x), x.weak_type) == (4, 12, 3, False)
    assert isinstance(x, jax.Array) and isinstance(x, jax.experimental.EArray)
    assert copy.deepcopy(x).dtype == most and x.addressable_shards[0].data.shape == (3,)
    np.testing.assert_array_equal(back(jax.device_put(x)), [0, 1, 2])
    with pytest.raises(TypeError, match="extended dtype most cannot be converted to a NumPy"):
        np.asarray(x)
    found = names(OWN_TANGENTS)
    counts = lax.convert_element_type(found["n"], found["counts"])
    assert counts.dtype == found["counts"]
    np.testing.assert_array_equal(found["gradients"](counts)[0], [14, 10, 11])
    with pytest.raises(TypeError, match="has no number of its own"):
        jnp.zeros_like(counts)
    with pytest.raises(TypeError, match="needs NumPy dtypes"):
        jax.experimental.primal_tangent_dtype(most, "float32")


def test_derivatives_go_through_conversions():
    """JAX's own transposition of these conversions fails."""
    to, back = MADE["to"], MADE["back"]
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(jax.grad(lambda x: jnp.sum(back(to(x)) ** 2))(x), 2 * x)
    _, pull = jax.vjp(lambda x: 2 * back(x) + 3 * back(x), to(x))
    np.testing.assert_array_equal(back(pull(jnp.ones(3))[0]), 3 * np.ones(3))  # the larger of both


STRUCTURE = {
    "reshaped": lambda k: k.reshape(2, 3).T[1:],
    "chosen": lambda k: jnp.where(jnp.arange(6) > 2, k, k[::-1]),
    "chosen of three": lambda k: lax.select_n(jnp.arange(6) % 3, k, k[::-1], k),
    "chosen by one": lambda k: jnp.where(True, k, k[::-1]),
    "joined": lambda k: jnp.concatenate([jnp.roll(k, 2), k[jnp.array([3, 1])]]),
    "stacked": lambda k: jnp.stack([k, jnp.flip(k)], 1),
    "written": lambda k: k.at[jnp.array([3, 1])].set(k[0]),
    "written in a row": lambda k: lax.dynamic_update_slice(k, k[:2], (3,)),
    "stretched": lambda k: jnp.tile(jnp.broadcast_to(k, (2, 6)), 2),
    "split": lambda k: jnp.split(k, 3),
    "mapped": lambda k: jax.vmap(lambda i: k.at[i].set(k[0]))(jnp.arange(3)),
}


@pytest.mark.parametrize("case", STRUCTURE)
def test_the_evaluator_moves_keys_as_xla_does(case):
    keys = jax.random.split(jax.random.key(0), 6)
    closed = jax.make_jaxpr(STRUCTURE[case])(keys)
    wanted = jax.tree.leaves(jax.jit(STRUCTURE[case])(keys))
    for mine, compiled in zip(evaluate(closed, keys), wanted, strict=True):
        np.testing.assert_array_equal(mine, jax.random.key_data(compiled))
