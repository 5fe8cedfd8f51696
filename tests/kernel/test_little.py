"""Does the small engine keep the laws of the real one, and print and compute as that does?"""

from __future__ import annotations

import ast
import doctest
import itertools
import pathlib

import numpy as np
import pytest

import saem
import saem.numpy as jnp
from saem import lax, little

A = np.linspace(-1.0, 1.5, 6, dtype=np.float32).reshape(2, 3)
B = np.linspace(0.5, 2.0, 6, dtype=np.float32).reshape(2, 3)
V = np.array([0.3, -0.7, 1.1], np.float32)
W = np.array([1.5, 0.2, -0.4], np.float32)
X = np.float32(0.7)

# The operations of an engine under the names that programs below use for both engines.


class Little:
    sin, cos, exp = staticmethod(little.sin), staticmethod(little.cos), staticmethod(little.exp)
    jit, grad, vmap = staticmethod(little.jit), staticmethod(little.grad), staticmethod(little.vmap)
    jvp, make_jaxpr = staticmethod(little.jvp), staticmethod(little.make_jaxpr)
    broadcast = staticmethod(little.broadcast_in_dim)
    total = staticmethod(little.reduce_sum)


class Real:
    sin, cos, exp = staticmethod(jnp.sin), staticmethod(jnp.cos), staticmethod(jnp.exp)
    jit, grad, vmap = staticmethod(saem.jit), staticmethod(saem.grad), staticmethod(saem.vmap)
    jvp, make_jaxpr = staticmethod(saem.jvp), staticmethod(saem.make_jaxpr)
    broadcast = staticmethod(lax.broadcast_in_dim)

    @staticmethod
    def total(x, axes):
        return lax.reduce_sum_p.bind(x, axes=tuple(axes), out_sharding=None)


def product_of_waves(e):
    return lambda x: e.sin(x) * x + 2.0


def chain(e):
    return lambda x: -e.exp(e.cos(x))


def norm(e):
    return lambda x: e.total(x * x, (0,))


def scaled(e):
    return lambda x: e.total(e.sin(x) * 3.0, (0,))


def outer(e):
    def fun(x):
        rows, columns = e.broadcast(x, (3, 3), (0,)), e.broadcast(x, (3, 3), (1,))
        return e.total(e.exp(rows) * columns, (0, 1))

    return fun


def two_arguments(e):
    return lambda x, y: e.exp(x * y) + e.cos(y)


def shared_number(e):
    return lambda x: e.total(e.sin(x) * e.exp(e.total(x, (0,))), (0,))


ON_NUMBERS = [product_of_waves, chain]
TO_NUMBERS = [norm, scaled, outer, shared_number]
ids = {"ids": lambda value: getattr(value, "__name__", None)}

# One case for each primitive: operands on which its six rules are compared.
CASES = {
    "add": (little.Add(), [A, B]), "add number": (little.Add(), [A, X]),
    "add_any": (little.AddAny(), [A, B]),
    "mul": (little.Mul(), [A, B]), "mul number": (little.Mul(), [X, B]),
    "neg": (little.Neg(), [A]), "sin": (little.Sin(), [A]), "cos": (little.Cos(), [A]),
    "exp": (little.Exp(), [A]),
    "broadcast_in_dim": (little.BroadcastInDim((4, 2, 3), (1, 2)), [A]),
    "broadcast_in_dim turned": (little.BroadcastInDim((3, 4), (0,)), [V]),
    "reduce_sum": (little.ReduceSum((1,)), [A]), "reduce_sum all": (little.ReduceSum((0, 1)), [A]),
    "jit": (little.JitCall(little.make_jaxpr(
        lambda x, y: (little.sin(x) * y, little.exp(y)))(A, B), "f"), [A, B]),
}
cases = pytest.mark.parametrize(("prim", "args"), CASES.values(), ids=CASES)


def applied(prim):
    """Return ``prim`` as a function whose result is one array: the sum of several."""

    def fun(*args):
        out = little.bind(prim, *args)
        return little.add(*out) if prim.multiple_results else out

    return fun


def slope(fun, args, tangents):
    """Return the derivative of ``fun`` along ``tangents`` by central differences."""
    h = 1e-2
    ends = [np.asarray(fun(*[x + s * h * t for x, t in zip(args, tangents)]), np.float64)
            for s in (1.0, -1.0)]
    return (ends[0] - ends[1]) / (2 * h)


def test_every_primitive_has_a_case_and_six_rules():
    classes = [c for c in vars(little).values() if isinstance(c, type)
               and issubclass(c, little.Primitive) and "name" in vars(c)]
    assert {c.name for c in classes} == {prim.name for prim, _ in CASES.values()}
    for cls in classes:
        missing = [rule for rule in ("typing", "evaluate", "lower", "jvp", "batch")
                   if getattr(cls, rule) is getattr(little.Primitive, rule)]
        assert not missing, (cls.name, missing)


@cases
def test_typing_agrees_with_evaluate(prim, args):
    out = prim.evaluate(*args)
    typed = prim.typing(*map(little.aval_of, args))
    outs, avals = (out, typed) if prim.multiple_results else ([out], [typed])
    assert [np.shape(o) for o in outs] == [a.shape for a in avals]


@cases
def test_xla_agrees_with_numpy(prim, args):
    got = little.jit(lambda *xs: little.bind(prim, *xs))(*args)
    expected = prim.evaluate(*args)
    if not prim.multiple_results:
        got, expected = [got], [expected]
    for g, e in zip(got, expected, strict=True):
        # XLA's and NumPy's sin and exp differ in the last bits.
        np.testing.assert_allclose(g, e, rtol=2e-6, atol=1e-7)


@cases
def test_jvp_is_the_derivative(prim, args):
    fun = applied(prim)
    tangents = [np.cos(3 * x + 1).astype(np.float32) for x in args]
    _, got = little.jvp(fun, args, tangents)
    # Second-order differences with h = 1e-2 in float32 are good to about 1e-4 of the size of f'''.
    np.testing.assert_allclose(got, slope(fun, args, tangents), rtol=2e-3, atol=2e-3)


@cases
def test_transpose_is_the_adjoint(prim, args):
    fun = applied(prim)
    tangents = [np.cos(3 * x + 1).astype(np.float32) for x in args]
    out, forward = little.jvp(fun, args, tangents)
    _, pullback = little.vjp(fun, *args)
    ct = np.sin(np.arange(out.size) + 1).reshape(out.shape).astype(np.float32)
    pulled = pullback(ct)
    left = np.sum(np.float64(ct) * forward)
    right = sum(np.sum(np.float64(t) * c) for t, c in zip(tangents, pulled))
    np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)


def stack(x, number):
    return np.stack([x + 0.1 * i for i in range(number)]).astype(np.float32)


@cases
def test_batch_is_a_loop(prim, args):
    fun = applied(prim)
    for stacks in itertools.product((True, False), repeat=len(args)):
        if not any(stacks):
            continue
        values = [stack(x, 4) if s else x for x, s in zip(args, stacks)]
        got = little.vmap(fun, tuple(0 if s else None for s in stacks))(*values)
        loop = [fun(*[v[i] if s else v for v, s in zip(values, stacks)]) for i in range(4)]
        np.testing.assert_allclose(got, np.stack(loop), rtol=1e-6, atol=1e-6)


@cases
def test_jvp_and_vmap_commute(prim, args):
    fun = applied(prim)
    stacks = [stack(x, 3) for x in args]
    tangents = [np.cos(x) for x in stacks]
    one = little.jvp(little.vmap(fun), stacks, tangents)
    other = little.vmap(lambda xs, ts: little.jvp(fun, xs, ts))(tuple(stacks), tuple(tangents))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@cases
def test_a_program_runs_as_its_function(prim, args):
    fun = lambda *xs: little.bind(prim, *xs)
    closed = little.make_jaxpr(fun)(*args)
    out = fun(*args)
    outs = out if prim.multiple_results else [out]
    for got, expected in zip(little.evaluate(closed, *args), outs, strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-7)


# --- programs ------------------------------------------------------------------------------------


def texts(make, *args):
    """Return what a program prints on both engines; ``make(engine)`` gives the function."""
    return [str(e.make_jaxpr(make(e))(*args)) for e in (Little, Real)]


def values(make, *args):
    """Return what a program computes on both engines, leaf by leaf."""
    return [[np.asarray(x) for x in saem.tree.leaves(make(e)(*args))] for e in (Little, Real)]


def same(make, *args, text=True):
    """Assert that a program prints and computes on the small engine as on the real one."""
    if text:
        mine, real = texts(make, *args)
        assert mine == real
    mine, real = values(make, *args)
    for a, b in zip(mine, real, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", ON_NUMBERS, **ids)
def test_programs_of_numbers(program):
    same(program, X)
    same(lambda e: e.grad(program(e)), X)
    same(lambda e: e.grad(e.grad(program(e))), X)
    same(lambda e: e.vmap(program(e)), V)
    same(lambda e: e.vmap(e.grad(program(e))), V)
    same(lambda e: lambda x, t: e.jvp(program(e), (x,), (t,)), X, X)
    same(lambda e: e.jit(program(e)), X)
    same(lambda e: lambda x: e.jit(program(e))(x) + 1.0, X)
    same(lambda e: e.vmap(e.jit(program(e))), V)
    same(lambda e: lambda x, t: e.jvp(e.jit(program(e)), (x,), (t,)), X, X)
    same(lambda e: e.jit(e.grad(program(e))), X)
    # What a derivative keeps of a jitted call differs: the real engine hands inputs round it.
    same(lambda e: e.grad(e.jit(program(e))), X, text=False)
    same(lambda e: e.jit(e.grad(e.jit(e.grad(e.jit(program(e)))))), X, text=False)


@pytest.mark.parametrize("program", TO_NUMBERS, **ids)
def test_programs_of_arrays(program):
    same(program, V)
    same(lambda e: e.grad(program(e)), V)
    same(lambda e: lambda x, t: e.jvp(program(e), (x,), (t,)), V, W)
    same(lambda e: e.jit(program(e)), V)
    stacks = np.stack([V, W])
    # Where a number for each example meets an array the real engine repeats it later.
    same(lambda e: e.vmap(program(e)), stacks, text=program is not shared_number)
    same(lambda e: e.vmap(e.grad(program(e))), stacks, text=False)
    same(lambda e: e.jit(e.vmap(e.grad(e.jit(program(e))))), stacks, text=False)
    hessian_product = lambda e: lambda x, t: e.jvp(e.grad(program(e)), (x,), (t,))
    same(hessian_product, V, W)
    # The real engine prints long programs in front of the one that calls them.
    same(lambda e: e.jit(hessian_product(e)), V, W, text=False)


def test_programs_of_two_arguments():
    same(two_arguments, X, X + 1)
    same(lambda e: e.grad(two_arguments(e)), X, X + 1)
    same(lambda e: e.vmap(two_arguments(e), (0, None)), V, X)
    same(lambda e: e.vmap(e.vmap(two_arguments(e), (None, 0)), (0, None)), V, W, text=False)
    same(lambda e: lambda x: e.vmap(lambda y: e.grad(two_arguments(e))(x, y))(V), X, text=False)


def test_long_programs_and_closures_print_alike():
    def long(e):
        def fun(x, y):
            for _ in range(15):
                x, y = e.sin(x * y), x + y
            return x, y

        return fun

    same(long, X, X)
    same(lambda e: lambda x: x * V + W * V, V)
    same(lambda e: lambda x: (x, 2.0), X)


def test_nested_derivatives_are_those_of_sin():
    fun = little.sin
    for expected in (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin, np.cos):
        fun = little.grad(fun)
        np.testing.assert_allclose(fun(X), expected(X), rtol=1e-6)
    np.testing.assert_allclose(little.jit(fun)(X), np.cos(X), rtol=1e-6)


def test_inner_and_outer_derivatives_are_kept_apart():
    # d/dx (x * d/dy (x + y)) = 1, by hand; engines that confuse the two levels give 2.
    inner = lambda x: x * little.grad(lambda y: x + y)(1.0)
    assert little.grad(inner)(2.0) == 1.0
    assert little.jvp(lambda x: x * little.jvp(lambda y: x + y, (1.0,), (1.0,))[1],
                      (2.0,), (1.0,))[1] == 1.0
    assert little.grad(little.jit(inner))(2.0) == 1.0


def test_linearize_is_jvp_and_pytrees_pass_through():
    tree = {"w": A, "b": (V, X)}
    fun = lambda t: {"out": little.reduce_sum(t["w"] * t["w"], (0,)) * t["b"][0] + t["b"][1]}
    tangents = {"w": B, "b": (W, np.float32(2.0))}
    value, push = little.linearize(fun, tree)
    expected = little.jvp(fun, (tree,), (tangents,))
    np.testing.assert_allclose(value["out"], expected[0]["out"])
    np.testing.assert_allclose(push(tangents)["out"], expected[1]["out"], rtol=1e-6)
    gradient = little.grad(lambda t: little.reduce_sum(fun(t)["out"], (0,)))(tree)
    np.testing.assert_allclose(gradient["w"], 2 * A * V, rtol=1e-6)
    np.testing.assert_allclose(gradient["b"][0], np.sum(A * A, 0), rtol=1e-6)
    assert gradient["b"][1] == 3.0


def test_results_that_do_not_depend_have_zero_derivatives():
    _, tangent = little.jvp(lambda x: (x, V), (X,), (X,))
    assert tangent[0] == X and not np.any(tangent[1]) and tangent[1].shape == (3,)
    np.testing.assert_array_equal(little.grad(lambda x: 3.0 * X)(V), np.zeros(3))
    np.testing.assert_array_equal(little.vmap(lambda x: 2.0)(V), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(little.vmap(lambda x: W)(V), [W, W, W])
    assert little.grad(little.jit(lambda x: (lambda y: 5.0)(x)))(X) == 0.0


# --- jit -----------------------------------------------------------------------------------------


def test_a_signature_is_traced_once_and_a_text_compiled_once():
    traced = []

    @little.jit
    def fun(x):
        traced.append(x)
        return little.sin(x) * 1.25

    little.find_or_compile.cache_clear()
    fun(V), fun(W), fun(A)
    assert len(traced) == len(fun.programs) == 2
    assert little.find_or_compile.cache_info().misses == 2
    little.jit(lambda x: little.sin(x) * 1.25)(V)  # another function, the same text
    assert little.find_or_compile.cache_info().misses == 2


def test_what_a_jitted_function_closes_over_does_not_stay():
    @little.jit
    def plain(x):
        return x * V

    np.testing.assert_allclose(plain(W), W * V)

    def outer(y):
        return little.reduce_sum(little.jit(lambda x: x * y)(W), (0,))

    np.testing.assert_allclose(little.grad(outer)(V), W)

    holder = {}
    shared = little.jit(lambda x: x * holder["y"])

    def through(y):
        holder["y"] = y
        return little.reduce_sum(shared(W), (0,))

    np.testing.assert_allclose(little.grad(through)(V), W)
    np.testing.assert_allclose(little.grad(through)(W), W)
    assert not shared.programs


def test_numbers_that_are_not_finite_reach_xla():
    for number in (np.inf, -np.inf):
        assert little.jit(lambda x, n=number: x + n)(X) == number
    assert np.isnan(little.jit(lambda x: x + np.nan)(X))


def test_text_is_stablehlo_that_names_each_operation():
    text = little.lower(little.make_jaxpr(
        lambda x: little.reduce_sum(little.exp(-little.cos(x) * 2.0), (0,)))(V))
    for operation in ("cosine", "negate", "multiply", "exponential", "reduce", "constant"):
        assert f"stablehlo.{operation}" in text
    assert "func.func public @main(%arg0: tensor<3xf32>) -> (tensor<f32>)" in text


# --- errors --------------------------------------------------------------------------------------


def test_errors_tell_what_was_needed():
    with pytest.raises(TypeError, match=r"add: needed operands of one shape, got f32\[3\], f32\[2"):
        little.jit(little.add)(V, A)
    with pytest.raises(TypeError, match="needed a number or an array, got 'x'"):
        little.make_jaxpr(little.sin)("x")
    with pytest.raises(TypeError, match="no truth value"):
        little.jit(lambda x: x if x else -x)(X)
    with pytest.raises(TypeError, match="one scalar result"):
        little.grad(little.sin)(V)
    with pytest.raises(TypeError, match="reduce_sum needs distinct axes"):
        little.jit(lambda x: little.reduce_sum(x, (1,)))(V)
    with pytest.raises(TypeError, match="broadcast_in_dim cannot put"):
        little.jit(lambda x: little.broadcast_in_dim(x, (2, 2), (0,)))(V)
    with pytest.raises(ValueError, match="stacks of one size"):
        little.vmap(little.add)(V, A)


def test_leaked_tracers_are_found():
    leaked = []
    little.jit(lambda x: leaked.append(x) or x)(X)
    with pytest.raises(TypeError, match="leaked"):
        little.sin(leaked[0])
    with pytest.raises(TypeError, match="leaked"):
        little.make_jaxpr(lambda x: x * leaked[0])(X)


def test_after_an_error_the_ground_level_is_current():
    for transform in (little.jit, little.grad, little.vmap):
        with pytest.raises(ZeroDivisionError):
            transform(lambda x: 1 / 0)(V)
        assert isinstance(little.state.trace, little.EvalTrace)


# --- the file ------------------------------------------------------------------------------------


def test_examples_run():
    assert doctest.testmod(little).failed == 0


def test_it_imports_jaxlib_by_one_file_and_nothing_else_of_the_engine():
    tree = ast.parse(pathlib.Path(little.__file__).read_text())
    imported = [(node.module, [a.name for a in node.names]) for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom)]
    assert [names for module, names in imported if module.startswith("saem")] == [["_jaxlib"]]


def test_every_class_and_function_begins_with_a_sentence():
    tree = ast.parse(pathlib.Path(little.__file__).read_text())
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            assert ast.get_docstring(node), node.name
