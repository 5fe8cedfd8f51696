"""Do derivatives agree with JAX's and with finite differences, and are their arguments checked?"""

from __future__ import annotations

import numpy as np
import pytest
from both import ours, same, same_error
from oracle import JaxError

import saem as jax
import saem.numpy as jnp
from saem import lax, test_util
from saem.core.infer import check_jaxpr

pytestmark = pytest.mark.usefixtures("little_effort")

X = np.asarray([0.3, -1.2, 2.5], np.float32)
V = np.asarray([1.0, 0.5, -2.0], np.float32)


def g(x):
    return lax.mul(lax.sin(lax.mul(x, x)), lax.exp(lax.neg(x)))


def wave(x):
    return lax.reduce_sum(g(x), (0,))


f = wave


def differences(f, x, step=1e-4):
    """Central differences in float64, of a float64 function on NumPy."""
    x = np.asarray(x, np.float64)
    grad = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[i] = step
        grad[i] = (f(x + e) - f(x - e)) / (2 * step)
    return grad


def wave_np(x):
    return np.sum(np.sin(x * x) * np.exp(-x))


def test_gradient_is_that_of_differences():
    np.testing.assert_allclose(jax.grad(wave)(X), differences(wave_np, X), rtol=1e-4)


def test_second_derivatives_are_differences_of_the_gradient():
    wanted = np.stack([differences(lambda x, i=i: differences(wave_np, x)[i], X, 1e-3)
                       for i in range(3)])
    np.testing.assert_allclose(jax.hessian(wave)(X), wanted, rtol=1e-3, atol=1e-3)


NESTINGS = [
    "jax.grad(f)(x)",
    "jax.jit(jax.grad(f))(x)",
    "jax.grad(jax.jit(f))(x)",
    "jax.value_and_grad(jax.jit(f))(x)",
    "jax.vmap(jax.grad(g))(x)",
    "jax.jit(jax.vmap(jax.grad(g)))(x)",
    "jax.vmap(jax.jit(jax.grad(g)))(x)",
    "jax.vmap(jax.grad(jax.jit(g)))(x)",
    "jax.grad(lambda x: lax.reduce_sum(jax.vmap(g)(x), (0,)))(x)",
    "jax.grad(lambda x: lax.reduce_sum(jax.vmap(jax.jit(g))(x), (0,)))(x)",
    "jax.jvp(jax.grad(f), (x,), (v,))",
    "jax.grad(lambda y: jax.jvp(f, (y,), (v,))[1])(x)",
    "jax.jit(lambda x, v: jax.jvp(jax.grad(jax.jit(f)), (x,), (v,)))(x, v)",
    "jax.vmap(lambda v: jax.jvp(jax.grad(f), (x,), (v,))[1])(np.eye(3, dtype=np.float32))",
    "jax.grad(jax.grad(jax.grad(g)))(np.float32(0.7))",
    "jax.grad(jax.jit(jax.grad(jax.jit(jax.grad(g)))))(np.float32(0.7))",
    "jax.vmap(jax.grad(jax.grad(jax.grad(g))))(x)",
    "jax.jvp(lambda x: jax.jvp(lambda x: jax.jvp(g, (x,), (v,))[1], (x,), (v,))[1], (x,), (v,))",
    "jax.linearize(g, x)[1](v)",
    "jax.jit(lambda x, v: jax.linearize(jax.jit(g), x)[1](v))(x, v)",
    "jax.vjp(g, x)[1](v)",
    "jax.vmap(lambda a: jax.vjp(jax.jit(g), a)[1](np.float32(2)))(x)",
    "jax.vmap(jax.vmap(jax.grad(g)))(lax.broadcast_in_dim(x, (2, 3), (1,)))",
    "jax.vmap(jax.vmap(lambda a, b: lax.mul(g(a), b), (None, 0)), (0, None))(x, v)",
    "jax.hessian(f)(x)",
    "jax.jacfwd(g)(x)",
    "jax.jacrev(g)(x)",
    "jax.jacfwd(jax.jacrev(g))(x)",
    "jax.jacrev(jax.jacfwd(jax.jit(g)))(x)",
    "jax.jit(jax.hessian(f))(x)",
    # Closing over tracers of every interpreter around.
    "jax.grad(lambda a: lax.reduce_sum(jax.vmap(jax.jit(lambda y: lax.mul(y, g(a))))(x), (0,)))"
    "(np.float32(1.5))",
    "jax.vmap(lambda a: jax.grad(lambda b: jax.jit(lambda c: lax.mul(lax.mul(a, b), c))(b))(a))(x)",
    "jax.jit(lambda a: jax.vmap(lambda b: jax.grad(lambda c: lax.mul(lax.mul(c, c), b))(a))(x))"
    "(np.float32(1.5))",
    "jax.grad(lambda a: jax.jvp(lambda b: lax.mul(lax.mul(a, b), lax.sin(a)), (a,), "
    "(np.float32(1),))[1])(np.float32(0.4))",
    "jax.jit(lambda a: jax.jit(lambda b: jax.jit(lambda c: lax.add(lax.add(a, b), c))(b))(a))(x)",
]


@pytest.mark.parametrize("source", NESTINGS)
def test_interpreters_nest_in_any_order(jax_oracle, source):
    same(jax_oracle, source, rtol=1e-4, within=__name__, x=X, v=V)


@pytest.mark.parametrize("source", [s for s in NESTINGS if "linearize" not in s])
def test_nested_programs_are_well_formed_and_run_on_numpy(source):
    closed = ours(f"jax.make_jaxpr(lambda x, v: {source})(x, v)", __name__, x=X, v=V)
    check_jaxpr(closed)
    steps = []
    on_numpy = jax.evaluate(closed, X, V, on_step=lambda eqn, values: steps.append(eqn))
    assert steps == closed.eqns
    on_xla = jax.jit(lambda x, v: jax.tree.leaves(
        ours(source, __name__, x=x, v=v)))(X, V)
    for a, b in zip(on_numpy, on_xla, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("source", [
    "jax.grad(lambda x, y: lax.mul(lax.mul(x, x), y), argnums=-1)(2., 3.)",
    "jax.grad(lambda x, y: lax.mul(lax.mul(x, x), y), argnums=(1, 0))(2., 3.)",
    "jax.grad(lambda x, y: lax.mul(lax.mul(x, x), y), argnums=(-1,))(2., 3.)",
    "jax.value_and_grad(lambda x, y: lax.mul(lax.mul(x, x), y), (0, -1))(2., 3.)",
    "jax.grad(lambda p: lax.mul(p['a'], p['b'][0]))({'a': 2., 'b': [3., 4.]})",
    "jax.grad(lambda x, *, k: lax.mul(x, k))(2., k=3.)",
    "jax.grad(lambda x: (lax.mul(x, x), {'name': 'text', 'y': lax.sin(x)}), has_aux=True)(2.)",
    "jax.value_and_grad(lambda x: (lax.mul(x, x), ('text', x)), has_aux=True)(2.)",
    "jax.jvp(lambda x: (lax.sin(x), lax.mul(x, x)), (2.,), (1.,), has_aux=True)",
    "jax.vjp(lambda x: (lax.sin(x), 'aux'), 2., has_aux=True)[2]",
    "jax.vjp(lambda x: (lax.sin(x), 'aux'), 2., has_aux=True)[1](1.)",
    "jax.linearize(lambda x: (lax.sin(x), lax.cos(x)), 2., has_aux=True)[2]",
    "jax.grad(lambda x, n: lax.mul(x, lax.convert_element_type(n, np.float32)), argnums=(0, 1), "
    "allow_int=True)(2., 3)",
    "jax.vjp(lambda x, n: lax.mul(x, lax.convert_element_type(n, np.float32)), 2., 3)[1](1.)",
    "jax.jvp(lambda x, n: lax.mul(x, lax.convert_element_type(n, np.float32)), (2., 3), "
    "(1., np.zeros((), jax.float0)))",
    "jax.jvp(lambda x: lax.convert_element_type(x, np.int32), (2.,), (1.,))",
    "jax.grad(lambda z: lax.mul(lax.mul(z, z), z), holomorphic=True)(1. + 2j)",
    "jax.grad(lambda z: lax.real(lax.mul(z, lax.conj(z))))(np.complex64(1 + 2j))",
    "jax.jacrev(lambda z: lax.mul(z, z), holomorphic=True)(np.asarray([1 + 2j], np.complex64))",
    "jax.jacfwd(lambda z: lax.mul(z, z), holomorphic=True)(np.asarray([1 + 2j], np.complex64))",
    "jax.grad(lambda x: 3.)(2.)",
    "jax.grad(lambda x: x)(2.)",
    "jax.grad(lambda x: lax.stop_gradient(x))(2.)",
    "jax.grad(lambda x, y: y)(2., 3.)",
    "jax.jvp(lambda x: 3., (2.,), (1.,))",
    "jax.vjp(lambda x: (x, 3.), 2.)[1]((1., 1.))",
    "jax.grad(lambda x: lax.convert_element_type(x, np.float16))(np.float16(2))",
    "jax.grad(lambda x: lax.convert_element_type(x, np.float32))(np.float16(2))",
    "jax.grad(lambda x: lax.convert_element_type(x, ml_dtypes.bfloat16))(np.float32(2))",
    "jax.jacrev(lambda p: {'s': lax.mul(p[0], p[1]), 't': p[0]})((np.ones(2, np.float32),) * 2)",
    "jax.jacfwd(lambda p: {'s': lax.mul(p[0], p[1]), 't': p[0]})((np.ones(2, np.float32),) * 2)",
    "jax.jacfwd(lambda x, y: lax.mul(x, y), argnums=(0, 1))(np.ones(2, np.float32),"
    " np.ones(2, np.float32))",
    "jax.jacrev(lambda x: (lax.mul(x, x), 'aux'), has_aux=True)(np.ones(2, np.float32))",
    "jax.jacrev(lambda x: lax.mul(x, x))(3.)",
    "jax.hessian(lambda p: lax.mul(lax.mul(p['a'], p['a']), p['b']))({'a': 2., 'b': 3.})",
    "jax.grad(lambda x: x if x > 1 else lax.neg(x))(2.)",
])
def test_arguments_results_and_types_are_those_of_jax(jax_oracle, source):
    same(jax_oracle, source)


@pytest.mark.parametrize(("source", "sentence"), [
    ("jax.grad(3)", "Expected a callable value, got 3"),
    ("jax.grad(lambda x: x)(3)", "grad requires real- or complex-valued inputs"),
    ("jax.grad(lambda x: x)('text')", "is not a valid JAX type"),
    ("jax.grad(lambda x: x)(np.ones(2, np.float32))",
     "Gradient only defined for scalar-output functions. Output had shape: (2,)."),
    ("jax.grad(lambda x: (x, x))(2.)", "Gradient only defined for scalar-output functions. Output"),
    ("jax.grad(lambda x: None)(2.)", "Gradient only defined for scalar-output functions. Output"),
    ("jax.grad(lambda x: 3)(2.)", "grad requires real-valued outputs"),
    ("jax.grad(lambda x: lax.complex(x, x))(2.)", "grad requires real-valued outputs"),
    ("jax.grad(lambda x: x, holomorphic=True)(2.)", "grad with holomorphic=True requires inputs"),
    ("jax.grad(lambda x: lax.real(x), holomorphic=True)(2.j)",
     "grad with holomorphic=True requires outputs with complex dtype"),
    ("jax.grad(lambda x: x, argnums=1)(2.)",
     "differentiating with respect to argnums=1 requires at least 2 positional arguments"),
    ("jax.grad(lambda x: x, argnums=(0, -3))(2., 1.)",
     "must have value greater than or equal to -len(args)"),
    ("jax.grad(lambda x: x, has_aux=True)(2.)",
     "expected function with aux output to return a two-element tuple"),
    ("jax.jvp(lambda x: x, 2., 1.)",
     "primal and tangent arguments to jax.jvp must be tuples or lists; found float and float."),
    ("jax.jvp(lambda x: x, (2.,), (1., 2.))",
     "primal and tangent arguments to jax.jvp must have the same tree structure"),
    ("jax.jvp(lambda x: x, (2.,), (np.ones(2, np.float32),))",
     "jvp called with different primal and tangent shapes"),
    ("jax.jvp(lambda x: x, (np.float32(2),), (np.float16(1),))",
     "primal and tangent arguments to jax.jvp do not match; dtypes must be equal"),
    ("jax.jvp(lambda x: x, (3,), (1,))", "tangent dtype must be float0"),
    ("jax.vjp(lambda x: x, 2.)[1]((1.,))", "tree structure"),
    ("jax.vjp(lambda x: x, 2.)[1](np.ones(2, np.float32))", "for argument to VJP function: got"),
    ("jax.vjp(lambda x: x, 2.)[1](np.int32(1))", "for argument to VJP function: got"),
    ("jax.linearize(lambda x: x, 2.)[1](1., 2.)",
     "expected PyTreeDef((*,)), got PyTreeDef((*, *))"),
    ("jax.linearize(lambda x: x, 2.)[1](np.ones(2, np.float32))",
     "linearized function called on tangent values inconsistent with the original primal values"),
    ("jax.jacfwd(lambda x: x)(3)", "jacfwd requires real-valued inputs"),
    ("jax.jacrev(lambda x: x)(3)", "jacrev requires real- or complex-valued inputs"),
    ("jax.jacrev(lambda x: lax.convert_element_type(x, np.int32))(3.)",
     "jacrev requires real-valued outputs"),
])
def test_refusals_are_those_of_jax(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence)


def test_backward_equations_say_so():
    closed = jax.make_jaxpr(jax.vmap(jax.grad(lambda x: lax.sin(lax.mul(x, x)))))(X)
    stacks = [eqn.stack for eqn in closed.eqns]
    forward = [s for s in stacks if s[-1] == "jvp"]
    backward = [s for s in stacks if s[-1] == "transpose"]
    assert len(forward) >= 3 and len(backward) >= 3 and len(forward) + len(backward) == len(stacks)
    assert all("vmap" in s for s in stacks)
    assert stacks == forward + backward
    assert not any("transpose" in e.stack for e in jax.make_jaxpr(lax.sin)(X).eqns)


def test_a_failing_pullback_leaves_no_trace_of_itself():
    _, pullback = jax.vjp(lax.sin, X)
    with pytest.raises(ValueError, match="VJP function"):
        pullback(np.ones(2, np.float32))
    assert jax.make_jaxpr(lax.sin)(X).eqns[0].stack == ("make_jaxpr",)


def test_a_pullback_is_a_pytree_and_leaves_a_jitted_function():
    value, pullback = jax.jit(lambda x: jax.vjp(wave, x))(X)
    np.testing.assert_allclose(pullback(np.float32(1))[0], jax.grad(wave)(X), rtol=1e-6)
    np.testing.assert_allclose(value, wave(X), rtol=1e-6)


def test_the_function_runs_once_for_value_and_grad():
    calls = []

    def f(x):
        calls.append(1)
        return lax.mul(x, x)

    jax.value_and_grad(f)(2.0)
    assert len(calls) == 1


def test_a_linear_map_is_reused_without_running_the_function():
    calls = []

    def f(x):
        calls.append(1)
        return lax.sin(x)

    _, push = jax.linearize(f, X)
    np.testing.assert_allclose(push(V), np.cos(X) * V, rtol=1e-6)
    np.testing.assert_allclose(push(2 * V), 2 * np.cos(X) * V, rtol=1e-6)
    assert len(calls) == 1


def test_check_grads_refuses_what_no_derivative_moves(jax_oracle):
    for args in ("(jnp.arange(3),)", "(jnp.arange(3), {'i': jnp.arange(3)})"):
        same_error(jax_oracle, f"test_util.check_grads(lambda *xs: 1., {args}, 1)", "",
                   within=__name__)
    with pytest.raises(TypeError, match="got int32, bool"):
        test_util.check_grads(lambda *xs: 1.0, (jnp.arange(3), {"i": True}), 1)


@pytest.mark.parametrize("numbers", [(0, 0), (0, -2)])
@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jacfwd", "jacrev", "hessian"])
def test_an_argument_named_twice_is_refused(jax_oracle, name, numbers):
    call = f"jax.{name}(lambda a, b: a * b, argnums={numbers})(1.0, 2.0)"
    with pytest.raises(JaxError, match="TypeError"):
        jax_oracle.run(call)
    with pytest.raises(TypeError, match="name an argument twice, of 2 positional arguments"):
        getattr(jax, name)(lambda a, b: a * b, argnums=numbers)(1.0, 2.0)
