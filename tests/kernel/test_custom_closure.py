"""Do closures, own gradients and linear maps behave as JAX's, and does check_grads find mistakes?

Read before: ``both.py``, ``saem.derivatives.closure_conversion``, ``saem.test_util``.
"""

from __future__ import annotations

import functools
from functools import partial

import numpy as np
import pytest
from both import same, same_error

import saem as jax
from saem import numpy as jnp
from saem import test_util
from saem.test_util import check_grads, check_jvp, check_vjp

X = np.linspace(.1, 1, 6, dtype=np.float32).reshape(2, 3)


def test_custom_gradient(jax_oracle):
    def program(x):
        jnp = jax.numpy
        g = jax.custom_gradient
        square = g(lambda x: (x**2, lambda ct: ct * 7 * x))
        tupled = g(lambda x: (x**2, lambda ct: (ct * 7 * x,)))
        two = g(lambda x, y: (x * y, lambda ct: (ct * y * 3, ct * x)))
        listed = g(lambda x, y: (x * y, lambda ct: [ct * y * 3, ct * x]))
        tree = g(lambda d: ({"o": d["a"] * d["b"]}, lambda ct: ({"a": ct["o"], "b": 7 * ct["o"]},)))
        shared = g(lambda x: (jnp.exp(x), (lambda e: lambda ct: ct * e * 2)(jnp.exp(x))))
        x = jnp.asarray(x)[0]
        results = []
        for h in (square, tupled, shared):
            results += [
                h(x),
                jax.grad(h)(x[0]),
                jax.vmap(jax.grad(h))(x),
                jax.jit(jax.grad(h))(x[1]),
                jax.grad(lambda x, h=h: jax.vmap(jax.jit(h))(x).sum())(x),
            ]
        for h in (two, listed):
            results += [
                h(3.0, 4.0),
                jax.grad(h, (0, 1))(3.0, 4.0),
                jax.jit(jax.grad(h, (0, 1)))(3.0, 4.0),
            ]
        d = {"a": x, "b": 2 * x}
        return [
            *results,
            jax.grad(lambda d: tree(d)["o"].sum())(d),
            tree(d),
            jax.grad(jax.grad(square))(2.0),
        ]

    same(jax_oracle, program, x=X)
    same_error(jax_oracle, "jax.grad(jax.custom_gradient(lambda x: (x, lambda g: (g, g))))(1.)",
               "Custom VJP bwd rule must produce an output with the same container")


def test_closure_convert(jax_oracle):
    def program():
        jnp = jax.numpy
        counts = []

        def outer(y, arr=jnp.arange(3.0)):
            g, extra = jax.closure_convert(
                lambda x: {"o": x["a"] * y * arr.sum() + arr}, {"a": 1.0}
            )
            counts.append(len(extra))
            return g({"a": 2.0}, *extra)["o"]

        return [
            outer(3.0),
            jax.jacrev(outer)(3.0),
            jax.jit(outer)(3.0),
            jax.jit(jax.jacfwd(outer))(3.0),
            counts,
        ]

    same(jax_oracle, program)
    same_error(jax_oracle, "jax.closure_convert(lambda x: x, 1.)[0]((1., 2.))",
               "The inputs to the closure produced by closure_convert must have the same Pytree")


def test_closure_convert_gives_rules_what_a_function_closes_over():
    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def apply(f, x, *extra):
        return f(x, *extra)

    def fwd(f, x, *extra):
        return apply(f, x, *extra), (x, extra)

    def bwd(f, residuals, ct):
        x, extra = residuals
        return jax.vjp(f, x, *extra)[1](ct)

    apply.defvjp(fwd, bwd)

    def outer(y):
        f, extra = jax.closure_convert(lambda x: x * jnp.sin(y), 1.)
        return apply(f, 2., *extra)

    for h in (jax.grad(outer), jax.jit(jax.grad(outer))):
        np.testing.assert_allclose(h(3.), 2 * np.cos(3.), rtol=1e-6)


def test_linear_transpose(jax_oracle):
    def program(x):
        jnp = jax.numpy
        t = jax.linear_transpose
        x = jnp.asarray(x)
        return [
            t(lambda x, y: 3 * x + y.sum(), 1.0, x)(2.0),
            t(lambda x: {"a": 2 * x, "b": x}, x)({"a": x, "b": -x}),
            t(lambda x: x[0] * 2, jax.ShapeDtypeStruct((2, 3), jnp.float32))(x[1]),
            t(lambda x: 2 * x, 1)(3),
            t(lambda x: (2 * x, 3.0), 1.0)((1.0, 1.0)),
            jax.jit(lambda y: t(jax.jit(lambda x: jnp.sin(y) * x), y)(y))(2.0),
            jax.vmap(lambda y: t(lambda x: jnp.sin(y) * x, y)(y))(x[0]),
            jax.grad(lambda y: t(lambda x: jnp.sin(y) * x, y)(y)[0])(2.0),
            t(lambda x: t(lambda z: 3 * z, 1.0)(x)[0], 1.0)(5.0),
        ]

    same(jax_oracle, program, x=X)
    for source, sentence in (
            ("jax.linear_transpose(lambda x: x.astype(float), jax.numpy.int32(1))(1.)",
             "linear_transpose only supports [float or complex] -> [float or complex], and int"),
            ("jax.linear_transpose(lambda x: (x, x), 1.)(1.)",
             "cotangent tree does not match function output, expected PyTreeDef((*, *)) but got"),
            ("jax.linear_transpose(lambda x: 2 * x, x)(1.)",
             "cotangent type does not match function output, expected")):
        same_error(jax_oracle, source, sentence, x=X)


def test_linear_call(jax_oracle):
    def program():
        call = jax.custom_derivatives.linear_call

        def divided(x, d):
            return x + call(lambda r, x: x / r, lambda r, ct: ct / r * 5, d, x)

        def one(x):
            return call(lambda _, x: x, lambda _, ct: 7.0 * ct, (), x)

        def transpose(f, x):
            return lambda y: jax.linear_transpose(f, x)(y)[0]

        back = transpose(one, 1.0)
        return [
            divided(9.0, 3.0),
            transpose(partial(divided, d=3.0), 1.0)(18.0),
            jax.grad(divided)(9.0, 3.0),
            jax.jit(jax.grad(divided))(9.0, 3.0),
            [
                one(1.0),
                back(1.0),
                transpose(back, 1.0)(1.0),
                transpose(transpose(back, 1.0), 1.0)(1.0),
            ],
            jax.jvp(one, (1.0,), (2.0,)),
            jax.grad(one)(1.0),
        ]

    same(jax_oracle, program)
    same_error(jax_oracle, "jax.grad(lambda x: jax.custom_derivatives.linear_call("
               "lambda _, x: x, lambda _, t: (t, t), (), x))(1.)",
               "transpose output pytree structure must match that of linear inputs")


def test_linear_call_on_stacks():
    """JAX has no batching rule for it; the loop says what it must be."""
    def f(x, d):
        return jax.custom_derivatives.linear_call(
            lambda r, x: x / r, lambda r, ct: ct / r * 5, d, x)

    xs, ds = jnp.arange(3.), jnp.arange(1., 4.)
    np.testing.assert_allclose(jax.vmap(f)(xs, ds), xs / ds)
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(xs, ds), 5 / ds)
    shared = jax.grad(lambda x: jax.vmap(f, (None, 0))(x, ds).sum())(2.)
    np.testing.assert_allclose(shared, np.sum(5 / np.arange(1., 4.)), rtol=1e-6)


def test_zeros(jax_oracle):
    def program(x):
        zero = jax.custom_derivatives.zero_from_primal
        return [zero(1.0), zero(jax.numpy.arange(3)), repr(zero(x, symbolic_zeros=True))]

    same(jax_oracle, program, x=X)


def test_derivatives_of_integers_are_float0(jax_oracle):
    def program(x):
        jnp = jax.numpy
        f = lambda x, i: (x * i, i + 1)
        zero, i = np.zeros((), jax.dtypes.float0), jnp.int32(3)
        return [
            jax.jvp(f, (2.0, i), (1.0, zero)),
            jax.jvp(lambda i: i * 2, (i,), (zero,)),
            jax.jit(lambda: jax.jvp(f, (2.0, i), (1.0, zero))[1][0])(),
            jax.vjp(f, 2.0, i)[1]((1.0, zero)),
            jax.jvp(jnp.floor, (x,), (x,)),
            jax.grad(lambda x, i: x * i, (0, 1), allow_int=True)(2.0, i),
            jax.jvp(lambda b: b & True, (jnp.bool_(True),), (zero,)),
        ]

    same(jax_oracle, program, x=X)
    same_error(jax_oracle, "jax.jvp(lambda i: i, (3,), (1,))",
               "dtypes must be equal, or in case of int/bool primal dtype the tangent dtype must")


@pytest.mark.parametrize("function", [
    jnp.sin, jax.jit(jnp.tanh), lambda x: jnp.tanh(x @ x.T), lambda x: jnp.prod(x, 0),
    lambda x: {"a": jnp.exp(x), "i": 3}, jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))],
    ids=range(6))
def test_check_grads_accepts_what_is_right(function):
    check_grads(function, (X,), 2)


def test_check_grads_takes_half_precision():
    check_grads(lambda x: x.astype("float16"), (X,), 1)


def test_check_grads_takes_trees_integers_and_complex_numbers():
    # A derivative of up to 6: at JAX's step its differences round by as much as the tolerance.
    check_grads(lambda d, i: d["a"] * jnp.exp(d["b"]) * i, ({"a": X, "b": X}, 2), 2, eps=1e-3)
    check_grads(lambda z: z * z, (X + 1j * X,), 2)
    check_grads(lambda z: jnp.abs(z) ** 2, (X + 1j * X,), 1)
    check_grads(lambda x: x ** 3, (2.,), 3)
    check_jvp(jnp.sin, functools.partial(jax.jvp, jnp.sin), (X,))
    check_vjp(jnp.sin, functools.partial(jax.vjp, jnp.sin), (X,))


def test_check_grads_asks_for_the_values_that_jax_asks_for(jax_oracle):
    def program(x):
        asked = []

        def f(x, y):
            if not isinstance(x, jax.core.Tracer):
                asked.append((np.asarray(x), np.asarray(y["b"])))
            return jnp.sum(x) * y["b"]

        for dtype in ("float32", "complex64"):
            for mode in ("fwd", "rev"):
                for eps in (None, 1.0):
                    test_util.check_grads(f, (jnp.asarray(x, dtype), {"b": jnp.ones(3, dtype)}), 1,
                                          modes=[mode], eps=eps, rtol=9, atol=9)
        return asked

    same(jax_oracle, program, x=X)


def test_check_grads_of_derivatives_asks_for_the_values_that_jax_asks_for(jax_oracle):
    def program(x):
        asked = []

        def known(*values):
            if not any(isinstance(v, jax.core.Tracer) for v in values):
                asked.append([np.asarray(v) for v in values])

        @jax.custom_jvp
        def pushed(x, y):
            return jnp.sin(x) * jnp.sum(y)

        @pushed.defjvp
        def rule(primals, tangents):
            known(*primals, *tangents)
            (x, y), (dx, dy) = primals, tangents
            return pushed(x, y), jnp.cos(x) * jnp.sum(y) * dx + jnp.sin(x) * jnp.sum(dy)

        @jax.custom_vjp
        def pulled(x, y):
            return jnp.sin(x) * jnp.sum(y)

        def backward(saved, ct):
            known(*saved, ct)
            x, y = saved
            return ct * jnp.cos(x) * jnp.sum(y), jnp.full_like(y, ct * jnp.sin(x))

        pulled.defvjp(lambda x, y: (pulled(x, y), (x, y)), backward)
        args = jnp.float32(0.7), jnp.float32(x[0])
        test_util.check_grads(pushed, args, 2, modes=["fwd"], rtol=9, atol=9)
        test_util.check_vjp(pulled, lambda *args: jax.vjp(pulled, *args), args, rtol=9, atol=9)
        test_util.check_grads(pulled, args, 2, modes=["rev"], rtol=9, atol=9)
        return asked

    same(jax_oracle, program, x=X)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_check_grads_lets_pass_what_jax_lets_pass(mode, size, dtype, jax_oracle):
    def program(mode, size, dtype):
        def passes(error):
            @jax.custom_jvp
            def twice(x):
                return x * 2

            twice.defjvp(lambda p, t: (twice(*p), t[0] * jnp.asarray(2 + error, t[0].dtype)))
            try:
                test_util.check_grads(twice, (jnp.ones(size, dtype),), 1, modes=[mode], eps=0.125)
            except AssertionError:
                return False
            return True

        with jax.enable_x64(True):
            return [passes(1e-5 * 1.3 ** n) for n in range(1, 44)]

    same(jax_oracle, program, mode=mode, size=size, dtype=dtype)


def test_check_grads_finds_the_tolerance_of_a_dtype(jax_oracle):
    def program(dtype, mode):
        @jax.custom_jvp
        def twice(x):
            return x * 2

        twice.defjvp(lambda p, t: (twice(*p), t[0] * jnp.asarray(2.5, t[0].dtype)))

        def passes(of):
            try:
                test_util.check_grads(twice, (jnp.ones(3, dtype),), 1, modes=[mode], eps=0.125,
                                      atol={np.dtype(of): 10.}, rtol={np.dtype(of): 0.})
            except AssertionError:
                return False
            return True

        return [passes(of) for of in ("float32", "complex64", "float64")]

    for dtype in ("float32", "complex64"):
        for mode in ("fwd", "rev"):
            same(jax_oracle, program, dtype=dtype, mode=mode)


def test_check_grads_finds_mistakes():
    @jax.custom_jvp
    def twice(x):
        return jnp.sin(x)

    twice.defjvp(lambda p, t: (twice(*p), 2 * jnp.cos(p[0]) * t[0]))

    @jax.custom_vjp
    def backwards(x):
        return jnp.sin(x)

    backwards.defvjp(lambda x: (backwards(x), x), lambda x, ct: (ct * jnp.cos(x) * 1.1,))

    @jax.custom_jvp
    def first_order(x):
        return jnp.sin(x)

    first_order.defjvp(lambda p, t: (first_order(*p), t[0] * jax.lax.stop_gradient(jnp.cos(p[0]))))
    for function, order, modes in ((twice, 1, ("fwd",)), (twice, 1, ("rev",)),
                                   (backwards, 1, ("rev",)), (first_order, 2, ("fwd",)),
                                   (first_order, 2, ("rev",))):
        with pytest.raises(AssertionError):
            check_grads(function, (X,), order, modes)
    check_grads(first_order, (X,), 1)
    check_grads(twice, (X,), 1, atol=10, rtol=10)
    with pytest.raises(TypeError, match="forward-mode"):
        check_grads(backwards, (X,), 1)
