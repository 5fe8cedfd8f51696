"""Do Python's operators on arrays and tracers mean what jax.numpy's functions mean?"""

from __future__ import annotations

import operator
from collections import Counter

import numpy as np
import pytest
from both import same, source_of

import saem as jax
from saem import _jaxlib, _wiring, lax  # noqa: F401 - lets operations run
from saem import numpy as jnp
from saem.core.jaxpr import evaluate
from saem.core.trace import Tracer
from saem.numpy.operators import OPERATORS
from saem.transform.programs import make_jaxpr

F = np.array([1.5, -2.0, 0.5], np.float32)
I = np.array([5, -2, 3], np.int32)
INTEGERS_ONLY = ("and", "or", "xor", "lshift", "rshift")
PLAIN = {"divmod": divmod, "truediv": operator.truediv}


def on_both(name, x, y):
    """Return the value by the array's function, and by the tracer's under a trace."""
    row = OPERATORS[f"__{name}__"]
    x = jnp.asarray(x)
    eager = row.array(x, y)
    closed = make_jaxpr(lambda x: row.tracer(x, y))(x)
    outs = evaluate(closed, np.asarray(x))
    return [np.asarray(e) for e in (eager if isinstance(eager, tuple) else (eager,))], outs


@pytest.mark.parametrize("name", [n.strip("_") for n in OPERATORS if n not in (
    "__neg__", "__pos__", "__abs__", "__invert__")])
@pytest.mark.parametrize("other", [2, np.array([2, 1, 3], np.int32)], ids=["scalar", "array"])
def test_arrays_and_tracers_agree_with_numpy(name, other):
    swapped = name.startswith("r") and name not in ("rshift",)
    plain = name[1:] if swapped else name
    if swapped and plain in ("lshift", "rshift", "pow"):
        x = np.array([2, 1, 3], np.int32)
    else:
        x = I if plain in INTEGERS_ONLY or isinstance(other, np.ndarray) else F
    if plain == "pow" and isinstance(other, np.ndarray):
        x = np.abs(x)
    if plain == "matmul" and not isinstance(other, np.ndarray):
        pytest.skip("a matrix product needs axes")
    fun = PLAIN.get(plain) or getattr(operator, f"__{plain}__")
    wanted = fun(other, x) if swapped else fun(x, other)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    eager, traced = on_both(name, x, other)
    for got in (eager, traced):
        for g, w in zip(got, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-6)


@pytest.mark.parametrize("name", ["add", "radd", "eq", "lt", "pow", "truediv"])
def test_what_is_no_array_gets_its_turn(name):
    x = jnp.asarray(F)
    row = OPERATORS[f"__{name}__"]
    for other in (None, "a", object()):
        assert row.array(x, other) is NotImplemented
        assert row.array(x, other) is NotImplemented  # and again, once C++ has seen it
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for"):
        row.array(x, [1.0])

    def traced(x):
        assert row.tracer(x, None) is NotImplemented
        with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for"):
            row.tracer(x, [1.0])
        return x

    make_jaxpr(traced)(F)


def test_objects_that_stand_for_arrays_are_operands():
    class Wrapped:
        def __jax_array__(self):
            return jnp.asarray(F)

    np.testing.assert_array_equal(np.asarray(OPERATORS["__add__"].array(jnp.asarray(F), Wrapped())),
                                  F + F)


def test_a_constant_exponent_is_part_of_the_program():
    x = jnp.asarray(I)
    with pytest.raises(TypeError, match="Integers cannot be raised to negative powers"):
        OPERATORS["__pow__"].array(x, -1)
    power = OPERATORS["__pow__"].tracer
    (eqn,) = make_jaxpr(lambda x: power(x, 2))(F).jaxpr.eqns
    assert eqn.primitive.name == "integer_pow"
    assert eqn.params["y"] == 2


# Programs are JAX's, primitive by primitive, when its nested calls are opened.
PROGRAMS = """
jnp.add(f, m)|jnp.multiply(f, 2)|jnp.multiply(i, 2.0)|jnp.add(b, b)|jnp.add(b, 1)|jnp.divide(i, 2)
jnp.floor_divide(i, i)|jnp.floor_divide(f, f)|jnp.remainder(f, f)|jnp.remainder(i, i)
jnp.power(f, 2)|jnp.power(f, 0.5)|jnp.power(b, 2)|jnp.power(f, f)|jnp.less(c, c)|jnp.sqrt(i)
jnp.where(f > 0, f, m)|jnp.where(f > 0, 1, 2)|jnp.where(i, f, m)|jnp.where(True, f, m)
jnp.maximum(f, 0)|jnp.logical_and(f, i)|jnp.logical_not(f)|jnp.isinf(f)|jnp.isinf(c)|jnp.fmax(f, f)
jnp.hypot(c.real, f)|jnp.heaviside(f, f)|jnp.angle(c)|jnp.trunc(f)|jnp.rint(f)
jnp.round(f, 2)|jnp.modf(f)|jnp.nan_to_num(f)
jnp.signbit(f)|jnp.bitwise_count(i)|jnp.eye(3) + f|jnp.tril(m)|jnp.triu(m, 1)|jnp.diag(f, 1)
jnp.linspace(f[0], 5, 4)|jnp.arange(2, 9, 3) + i|jnp.zeros(3) + f|jnp.array([f, f])|jnp.array(f)
jnp.full_like(i, 2.5)|jnp.zeros_like(f)|jnp.meshgrid(f, i)|jnp.vander(f)|jnp.deg2rad(f)
""".replace("\n", "|").strip("|").split("|")


def primitives(cases, f, i, b, c, m):
    """Return of each expression the names of its primitives, those inside calls among them."""
    def opened(jaxpr):
        for eqn in jaxpr.eqns:
            inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
            if eqn.primitive.name in ("jit", "pjit", "custom_jvp_call"):
                yield from opened(getattr(inner, "jaxpr", inner))
            else:
                yield eqn.primitive.name

    functions = [eval("lambda f, i, b, c, m: " + case, {"jnp": jnp}) for case in cases]
    return [list(opened(jax.make_jaxpr(fun)(f, i, b, c, m).jaxpr)) for fun in functions]


def test_programs_are_those_of_jax(jax_oracle):
    operands = {"f": F, "i": I, "b": I > 0, "c": F.astype(np.complex64),
                "m": np.ones((2, 3), np.float32)}
    cases = [c for c in PROGRAMS if "c.real" not in c and " + " not in c and " > " not in c
             and "[0]" not in c]
    wanted = jax_oracle.run(source_of(primitives), cases=cases, **operands).value
    for case, names in zip(cases, wanted, strict=True):
        fun = eval("lambda f, i, b, c, m: " + case, {"jnp": jnp})
        ours = [e.primitive.name for e in make_jaxpr(fun)(*operands.values()).jaxpr.eqns]
        # JAX converts the Python numbers inside its nested calls; here they are converted before.
        ours, names = Counter(ours), Counter(names)
        for counter in (ours, names):
            counter.pop("convert_element_type", None)
        assert ours == names, case


def test_the_table_names_methods_python_knows():
    for name in OPERATORS:
        assert hasattr(int, name) or hasattr(np.ndarray, name), name
    assert issubclass(Tracer, _jaxlib.Array)


class Wrapped:
    """An object that stands for an array and shows its attributes, as a parameter of flax does."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "value"), name)


def test_what_stands_for_an_array_is_that_array_under_every_transformation(jax_oracle):
    def program():
        x, v = jnp.float32(2.), jnp.arange(1., 4.)
        functions = [
            lambda x: x + Wrapped(x), lambda x: x * Wrapped(x) * 2., lambda x: v @ (v * Wrapped(x)),
            lambda x: v.at[0].set(Wrapped(x)).sum(), lambda x: v.at[1].add(Wrapped(x)).sum(),
            lambda x: jnp.einsum("i,i->", Wrapped(x * v), v),
            lambda x: lax.convert_element_type(Wrapped(x), "float32"),
            lambda x: jnp.stack([Wrapped(x), x]).sum(), lambda x: v[0] ** Wrapped(x)]
        return [[f(x), jax.grad(f)(x), jax.jit(f)(x), jax.vmap(f)(v)] for f in functions]

    same(jax_oracle, program)
