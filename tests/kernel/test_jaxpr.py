"""Is a jaxpr what JAX would print, well formed, and the same program on NumPy as on XLA?"""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from both import ours, same

import saem as jax
from saem import lax
from saem import numpy as jnp
from saem.core.errors import JaxprTypeError
from saem.core.infer import check_jaxpr
from saem.core.jaxpr import ClosedJaxpr, Literal, Var

X = np.asarray([0.5, 1.5, 2.5], np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3)
I = np.asarray([1, 2, 3], np.int32)

# Functions without a jit inside JAX's own lax, so that the two texts must be equal to the letter.
PRINTED = {
    "nothing": ("lambda: ()", ()),
    "identity": ("lambda x: x", (X,)),
    "constant": ("lambda x: 3.0", (X,)),
    "unused": ("lambda x, y: x", (X, M)),
    "one": ("lambda x: lax.sin(x)", (X,)),
    "two": ("lambda x, y: lax.mul(lax.sin(x), y)", (X, X)),
    "literal": ("lambda x: lax.mul(x, 2.0)", (X,)),
    "integer literal": ("lambda x: lax.add(x, 2)", (I,)),
    "several results": ("lambda x: (x, lax.sin(x), {'b': lax.cos(x), 'a': 1})", (X,)),
    "a long chain": ("lambda x: lax.exp(lax.log(lax.tanh(lax.sqrt(lax.abs(lax.neg(x))))))", (X,)),
    "scalars": ("lambda x, y: lax.add(x, y)", (1.0, 2.0)),
    "array constant": ("lambda x: lax.add(x, np.ones(3, np.float32))", (X,)),
    "pow": ("lambda x: lax.integer_pow(x, 3)", (X,)),
    "convert": ("lambda x: lax.convert_element_type(x, np.int32)", (X,)),
    "compare": ("lambda x, y: lax.gt(x, y)", (X, X)),
    "select": ("lambda p, x, y: lax.select_n(p, x, y)", (X > 1, X, X)),
    "clamp": ("lambda x: lax.clamp(0.0, x, 1.0)", (X,)),
    "dot": ("lambda x, y: lax.dot(x, y)", (M, X)),
    "dot_general": ("lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((0,), (0,))))", (M, M)),
    "transpose": ("lambda x: lax.transpose(x, (1, 0))", (M,)),
    "reshape": ("lambda x: lax.reshape(x, (3, 2))", (M,)),
    "broadcast": ("lambda x: lax.broadcast_in_dim(x, (2, 3), (1,))", (X,)),
    "squeeze": ("lambda x: lax.squeeze(lax.expand_dims(x, (0,)), (0,))", (X,)),
    "concatenate": ("lambda x, y: lax.concatenate([x, y], 0)", (X, X)),
    "slice": ("lambda x: lax.slice(x, (0, 1), (2, 3))", (M,)),
    "strided": ("lambda x: lax.slice(x, (0, 1), (2, 3), (1, 2))", (M,)),
    "pad": ("lambda x: lax.pad(x, 0.0, [(1, 2, 0)])", (X,)),
    "rev": ("lambda x: lax.rev(x, (0,))", (X,)),
    "max": ("lambda x: lax.reduce_max(x, (0,))", (M,)),
    "argmax": ("lambda x: lax.argmax(x, 1, np.int32)", (M,)),
    "cumsum": ("lambda x: lax.cumsum(x, axis=0)", (X,)),
    "sort": ("lambda x: lax.sort(x)", (X,)),
    "iota": ("lambda x: lax.add(x, lax.iota(np.float32, 3))", (X,)),
    "stop": ("lambda x: lax.stop_gradient(x)", (X,)),
    "is_finite": ("lambda x: lax.is_finite(x)", (X,)),
    "bits": ("lambda x, y: lax.bitwise_and(lax.bitwise_not(x), y)", (I, I)),
    "complex": ("lambda x: lax.real(lax.conj(lax.complex(x, x)))", (X,)),
    "a value nobody reads": ("lambda x: (lax.sin(lax.cos(x)), lax.neg(x))[1]", (X,)),
    "unread inside": ("jax.jit(lambda x: (lax.sin(x), lax.cos(x), lax.neg(x))[2])", (X,)),
    "grad": ("jax.grad(lambda x: lax.mul(lax.sin(x), 2.0))", (np.float32(1),)),
    "nested": ("jax.jit(lambda x: lax.add(x, np.ones(3, np.float32)))", (X,)),
    "nested, short": ("jax.jit(lambda x: lax.mul(lax.sin(x), x))", (X,)),
    "nested twice": (
        "lambda x: lax.neg(jax.jit(lambda x: jax.jit(lambda y: lax.mul(y, y))(lax.cos(x)))(x))",
        (X,)),
    "nested identity": ("jax.jit(lambda x: x)", (X,)),
    "jvp": ("lambda x: jax.jvp(lax.sin, (x,), (x,))", (X,)),
    "vmap": ("jax.vmap(lambda x: lax.mul(lax.sin(x), 2.0))", (M,)),
    "vmap of dot": ("jax.vmap(lambda x, y: lax.dot(x, y))", (M, M)),
    "scalars of a value": (
        "lambda: [jnp.zeros(()), jnp.full((), 2.), lax.full((), 1.), jnp.ones((), np.int8), "
        "lax.full_like(np.float32(1), 2), jnp.zeros_like(1.), lax.broadcast(1., ()), "
        "lax.convert_element_type(1., np.int32)]", ()),
    "names beyond z": (
        "lambda x: (" + "lax.sin(" * 30 + "x" + ")" * 30 + ",)", (X,)),
}


@pytest.mark.parametrize("name", PRINTED)
def test_a_jaxpr_prints_as_jax_prints_it(jax_oracle, name):
    source, args = PRINTED[name]
    printed = str(jax.make_jaxpr(ours(source))(*args))
    assert printed == jax_oracle.jaxpr(source, *args)


@jax.jit
def j(x):
    return lax.mul(lax.sin(x), x)


def s(x):
    return lax.reduce_sum(j(x), (0,))


NESTED = ["j", "jax.vmap(j)", "jax.grad(s)", "jax.jit(jax.grad(s))", "jax.hessian(s)",
          "lambda x: jax.jvp(j, (x,), (x,))", "lambda x: jax.linearize(j, x)[1](x)",
          "lambda x: jax.vjp(j, x)[1](x)", "jax.vmap(jax.vmap(j))",
          "lambda x: jax.jit(lambda y: lax.add(j(y), x))(x)", "jax.jacfwd(j)", "jax.jacrev(j)"]


@pytest.mark.parametrize("source", NESTED)
def test_programs_in_programs_are_well_formed(source):
    x = np.ones((2, 3), np.float32) if source.startswith("jax.vmap(jax.vmap") else X
    fun = ours(source, __name__)
    closed = jax.make_jaxpr(fun)(x)
    check_jaxpr(closed)
    assert str(closed).count("lambda") >= 1 and str(closed).count("{") == str(closed).count("}")
    on_xla = jax.tree.leaves(jax.jit(fun)(x))
    for a, b in zip(jax.evaluate(closed, x), on_xla, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_the_stepper_sees_every_equation_with_its_values():
    closed = jax.make_jaxpr(lambda x: lax.neg(lax.mul(x, 2.0)))(X)
    steps = []
    jax.evaluate(closed, X, on_step=lambda eqn, values: steps.append((eqn.primitive.name, values)))
    assert [name for name, _ in steps] == ["mul", "neg"]
    np.testing.assert_array_equal(steps[0][1][0], X * 2)
    np.testing.assert_array_equal(steps[1][1][0], -X * 2)


@pytest.mark.parametrize("make", [
    lambda: jnp.zeros(()), lambda: jnp.full((), 3), lambda: lax.full((), 1.),
    lambda: lax.full_like(np.float32(1), 2), lambda: lax.broadcast(1., ()),
    lambda: lax.reshape(1., ()), lambda: lax.convert_element_type(1, np.float32),
    lambda: lax.broadcast_in_dim(1, (), ()), lambda: jnp.zeros_like(1)])
def test_a_number_that_an_operation_gives_is_an_array_of_the_program(make):
    def use(*x):
        scalar = make()
        assert isinstance(scalar, jax.Array)
        return scalar.at[()].set(1).astype(np.float32).reshape(1)

    assert jax.jit(use)() == jax.vmap(use)(np.ones(2))[0] == jax.jit(jax.vmap(use))(X)[1] == 1
    jax.eval_shape(jax.grad(lambda x: x * use()[0]), 1.)


class Array(np.ndarray):
    """What some libraries make of NumPy's arrays."""


@pytest.mark.parametrize("of", [lambda x: x, lambda x: x.view(Array), lambda x: x[0, 0]])
@pytest.mark.parametrize("same", [
    lambda x: lax.reshape(x, np.shape(x)), lambda x: lax.convert_element_type(x, np.float32),
    lambda x: lax.broadcast(x, ()), lambda x: lax.squeeze(x, ()), lambda x: lax.rev(x, ()),
    lambda x: lax.broadcast_in_dim(x, np.shape(x), range(np.ndim(x)))])
def test_what_an_operation_leaves_as_it_is_is_an_array(same, of):
    x = of(np.ones((2, 3), np.float32))
    assert type(same(x)) is type(jnp.ones(1))
    assert isinstance(jax.jit(lambda: same(x))(), jax.Array)


def test_make_jaxpr_options():
    f = lambda x, n, flag=0.0: {"y": lax.integer_pow(x, n), "flag": flag}
    closed, shapes = jax.make_jaxpr(f, static_argnums=1, return_shape=True)(X, 3, flag=2.0)
    assert len(closed.in_avals) == 2
    assert shapes["y"] == jax.ShapeDtypeStruct((3,), np.float32)
    assert shapes["flag"].weak_type and shapes["flag"].dtype == np.float32
    assert jax.make_jaxpr(f, static_argnums=(-1,))(X, 3).eqns[0].params["y"] == 3
    with pytest.raises(TypeError, match="Expected a callable value"):
        jax.make_jaxpr(1)


def test_shapes_alone_are_enough():
    struct = jax.ShapeDtypeStruct((2, 3), np.float32)
    closed = jax.make_jaxpr(lambda x: lax.reduce_sum(x, (0,)))(struct)
    assert closed.out_avals[0].shape == (3,)
    out = jax.eval_shape(lambda x, y: {"dot": lax.dot(x, y)}, struct,
                         jax.ShapeDtypeStruct((3, 4), np.float32))
    assert out == {"dot": jax.ShapeDtypeStruct((2, 4), np.float32)}
    assert jax.jit(lambda x: lax.sin(x)).eval_shape(struct) == struct


def test_eval_shape_runs_nothing():
    huge = jax.ShapeDtypeStruct((1 << 20, 1 << 20), np.float32)
    assert jax.eval_shape(lambda x: lax.dot(x, x), huge).shape == (1 << 20, 1 << 20)


def test_printing_survives_nan_and_extremes():
    values = [float("nan"), float("inf"), -0.0, 1e-45, 3e38]
    closed = jax.make_jaxpr(lambda x: [lax.mul(x, v) for v in values])(np.float32(1))
    text = str(closed)
    assert "nan:f32[]" in text and "inf:f32[]" in text and "-0.0:f32[]" in text


def test_equations_know_their_line():
    def f(x):
        y = lax.sin(x)
        return lax.mul(
            y, x)

    first = f.__code__.co_firstlineno
    lines = [eqn.position().line for eqn in jax.make_jaxpr(f)(X).eqns]
    assert lines == [first + 1, first + 2]
    backward = jax.make_jaxpr(jax.grad(lambda x: lax.reduce_sum(f(x), (0,))))(X).eqns
    source = pathlib.Path(__file__).read_text().splitlines()
    here = next(n for n, line in enumerate(source, 1) if "backward = jax" in line)
    assert {eqn.position().line for eqn in backward} == {first + 1, first + 2, here}
    assert all(eqn.position().file == __file__ for eqn in backward)


def test_the_checker_finds_what_is_wrong():
    closed = jax.make_jaxpr(lambda x: lax.mul(lax.sin(x), x))(X)
    jaxpr = closed.jaxpr
    with pytest.raises(JaxprTypeError, match="before it is bound"):
        check_jaxpr(jaxpr.replace(eqns=jaxpr.eqns[::-1]))
    with pytest.raises(JaxprTypeError, match="bound twice"):
        check_jaxpr(jaxpr.replace(eqns=[jaxpr.eqns[0], *jaxpr.eqns]))
    with pytest.raises(JaxprTypeError, match="before it is bound"):
        check_jaxpr(jaxpr.replace(outvars=[Var(jaxpr.outvars[0].aval)]))
    wrong = jaxpr.eqns[0].replace(outvars=[Var(jax.make_jaxpr(lambda x: x)(M).in_avals[0])])
    with pytest.raises(JaxprTypeError, match="bound as"):
        check_jaxpr(jaxpr.replace(eqns=[wrong], outvars=wrong.outvars))


def test_a_closed_program_needs_its_constants():
    closed = jax.make_jaxpr(lambda x: lax.add(x, X))(X)
    with pytest.raises(ValueError, match="1 constvars, 0 consts"):
        ClosedJaxpr(closed.jaxpr, [])


def test_scalars_are_literals_and_arrays_are_not():
    closed = jax.make_jaxpr(lambda x: lax.add(lax.mul(x, np.float32(2)), X))(X)
    (mul, add) = closed.eqns
    assert isinstance(mul.invars[1], Literal) and not isinstance(add.invars[1], Literal)
    assert len(closed.consts) == 1


def test_captured_arrays_are_constants_and_numbers_are_literals(jax_oracle):
    """An array of rank 0 is a constant as any other, so a program has as many of them wherever
    the array came from; a number made inside is a literal."""
    same(jax_oracle, """
def shown(fun, *args): return str(jax.make_jaxpr(fun)(*args))
c, i = jnp.array(3.0), jnp.array(1)
made = [lambda: jnp.array(3), lambda: jnp.asarray(3.0), lambda: jnp.float32(2), lambda: jnp.int8(2),
        lambda: jnp.array(np.float32(3)), lambda: jnp.asarray(np.array(1)), lambda: jnp.array(1j),
        lambda: jnp.array(3, jnp.float32), lambda: jnp.array(True), lambda: jnp.asarray(i) + 1,
        lambda: lax.stage(2.0), lambda: jnp.stack([1, 2]), lambda: jnp.array([1, 2])]
result = [
    [shown(lambda x, f=f: f(), 1.0) for f in made],
    [shown(lambda x, f=f: isinstance(f(), jax.core.Tracer), 1.0) for f in made[:9]],
    shown(lambda x: x * c, 1.0), shown(lambda x: (c, 3, x), 1.0),
    shown(jax.jit(lambda x: x * i), 1.0),
    shown(jax.grad(lambda x: x * c * jnp.array(2.0)), 1.0),
    shown(jax.jit(jax.grad(lambda x: x * c * jnp.array(2.0))), 1.0),
    shown(jax.vmap(lambda x: x * c), jnp.ones(2)),
    shown(lambda x: lax.while_loop(lambda s: s < c, lambda s: s * c, x), 1.0),
    shown(lambda x: lax.fori_loop(0, 3, lambda i, s: s * c, x), 1.0),
    shown(lambda x: lax.cond(x > 0, lambda: i, lambda: i + 1), 1.0),
    shown(jax.checkpoint(lambda x: x * c), 1.0),
    shown(lambda x: jax.jit(lambda y: y * c)(x) * c, 1.0)]
""")


def test_a_program_has_as_many_constants_wherever_they_come_from():
    def consts():
        i, rows = jnp.array(0), jnp.zeros((3, 2))
        return len(jax.make_jaxpr(lambda y: y * rows[0] + rows[i % 3])(jnp.ones(2)).consts)

    inside = []
    jax.jit(lambda x: inside.append(consts()) or x)(1.0)
    jax.lax.scan(lambda c, _: (inside.append(consts()) or c, None), 0, None, 2)
    assert consts() == 2 and inside == [2, 2]
