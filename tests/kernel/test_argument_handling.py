"""Do transformations take, and refuse, the arguments that JAX's do?

Many short calls, sent to JAX in a few questions: numbers out of range, wrong types, texts where
arrays belong, results that are none, keywords, defaults, methods, partials, copies.

Read before: ``both.py``.  Read after: ``test_derivatives.py``, ``test_jit.py``.
Invariant: every expected value, and every class of an error, comes from JAX.
"""

from __future__ import annotations

import builtins
import copy
import functools
import inspect
import pickle
import warnings

import numpy as np
import pytest
from both import agree, same, source_of

import saem as jax
import saem.numpy as jnp
from saem import lax

f = lambda x, y: x * y


def g(x, y=2.0, *, k=3):
    return x * y * k


def gen():
    yield 1


class Method:
    k = 2.0

    def m(self, x):
        return self.k * x

    __call__ = m

    @classmethod
    def c(cls, x):
        return x * 3

    @staticmethod
    def s(x):
        return x * 4

    @functools.partial(jax.jit, static_argnums=0)
    def j(self, x):
        return self.k * x


class Described:
    shape, dtype = (2, 3), np.dtype("float32")


@jax.custom_jvp
def cj(x, y):
    return x * y


cj.defjvp(lambda p, t: (cj(*p), t[0]))


@jax.custom_vjp
def cv(x, y):
    return x * y


cv.defvjp(lambda x, y: (x * y, (x, y)), lambda r, c: (c * r[1], c * r[0]))


def answers(cases):
    """Return for each expression its value, or the builtin class and the words of its error."""
    names = {
        "f": f, "g": g, "gen": gen, "Method": Method, "a": Method(), "Described": Described,
        "cj": cj, "cv": cv, "float0": np.zeros((), jax.dtypes.float0), "plain": lambda x: x,
        "pull": jax.vjp(lambda x, y: (x * y, x > 0), 2.0, 3)[1],
        "both": jax.vjp(lambda x, y: x * jnp.sin(y), jnp.ones(3), jnp.ones(3))[1],
        "push": jax.linearize(lambda x: jnp.sin(x) * 2, 1.0)[1],
        "jax": jax, "jnp": jnp, "np": np, "lax": lax, "functools": functools,
    }
    found = []
    for case in cases:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(["value", eval(case, names)])
        except Exception as error:
            kinds = [c.__name__ for c in type(error).__mro__ if hasattr(builtins, c.__name__)]
            found.append([kinds[0], str(error)])
    return found


VALUES = {
    "grad": """
jax.grad(f, argnums=(0,))(1., 2.)
jax.grad(f, argnums=[0, 1])(1., 2.)
jax.grad(f, argnums=(0, -1))(1., 2.)
jax.grad(f, argnums=np.int32(1))(1., 2.)
jax.grad(f)(1., y=2.)
jax.grad(lambda x: jnp.real(x))(1. + 2j)
jax.grad(lambda x: jnp.imag(x))(1. + 2j)
jax.grad(lambda x: (x, x * 2), has_aux=True)(1.)
jax.grad(functools.partial(f, y=3.))(1.)
jax.grad(a)(1.)
jax.grad(a.m)(1.)
jax.jacfwd(lambda x: (x, 2), has_aux=True)(1.)
jax.jacrev(lambda x: (x, 2), has_aux=True)(1.)
jax.hessian(lambda x: (x * x, 2), has_aux=True)(1.)
jax.jacfwd(lambda x, y: (x, y), argnums=(0, 1))(1., 2.)
""",
    "vjp, linearize": """
pull((1., 2.))[0]
pull((1., float0))[0]
both.args_res[0]
both.opaque_residuals
len(jax.tree.leaves(both))
jax.jit(lambda v: v(jnp.ones(3)))(both)
jax.tree.map(lambda x: x * 2, both)(jnp.ones(3))
jax.tree.leaves(push)[0]
jax.jit(lambda l: l(1.))(push)
jax.linear_transpose(push, 1.)(2.)
jax.vjp(lambda: 1.)[1](1.)
""",
    "vmap": """
jax.vmap(lambda x: x, sum_match=True)(jnp.ones(3))
jax.vmap(lambda x: x * 2, sum_match=True, out_axes=None)(jnp.ones(3))
jax.vmap(lambda x: x > 0, sum_match=True, out_axes=None)(jnp.ones(3))
jax.vmap(lambda x: (x, 3.), sum_match=True, out_axes=None)(jnp.ones(3))
jax.vmap(lambda x: x, sum_match=True, out_axes=None, in_axes=None, axis_size=3)(1.)
jax.vmap(lambda x: 3., out_axes=None)(jnp.ones(3))
jax.vmap(lambda x, y: x * y, in_axes=(0,))(jnp.ones(3), y=jnp.ones(3))
jax.vmap(lambda x, y=2.: x * y)(jnp.ones(3))
jax.vmap(lambda x: x, in_axes=[0])(jnp.ones(3))
jax.vmap(a)(jnp.arange(2.))
""",
    "jit": """
jax.jit(a.m)(1.)
jax.jit(a)(1.)
jax.jit(Method.c)(1.)
jax.jit(a.s)(1.)
a.j(2.)
Method.j(a, 2.)
jax.jit(functools.partial(lambda x, y: x - y, 3.))(1.)
jax.jit(functools.partial(f, y=3.), static_argnames="y")(1.)
jax.jit(lambda x, n: x * n, static_argnums=1)(1., n=2)
jax.jit(lambda x, n: x * n, static_argnums=1)(x=1., n=2)
jax.jit(lambda x, **k: x * k["a"], static_argnames="a")(1., a=3)
jax.jit(lambda x, *a: x * a[0], static_argnums=1)(1., 3)
jax.jit(static_argnums=0)(lambda x: x)(3)
jax.jit(lambda x, y=3: x * y, static_argnames="y")(1.)
str(jax.eval_shape(g, 1., k=jnp.ones(2)))
str(jax.eval_shape(lambda x: x.T, Described()))
str(jax.eval_shape(lambda x: {"a": (x, 2)}, 1.))
str(jax.make_jaxpr(g)(jax.ShapeDtypeStruct((3,), "float32")))
str(jax.make_jaxpr(functools.partial(lambda x, y: x - y, 3.))(1.))
jax.make_jaxpr(g).__name__
jax.checkpoint(lambda x, n: x * n[0], static_argnums=1)(jnp.float32(1.), [2])
""",
}

# Each refused by both, with these words.
REFUSED = {
    "grad": """
jax.grad(f, argnums=2)(1., 2.) | differentiating with respect to argnums=2 requires at least 3
jax.grad(f, argnums=-3)(1., 2.) | Positional argument indices, e.g. for `static_argnums`
jax.grad(f, argnums="x")(1., 2.) |
jax.grad(f, argnums=())(1., 2.) |
jax.grad(f, argnums=1.)(1., 2.) |
jax.grad(plain)("a") | Argument 'a' of type <class 'str'> is not a valid JAX type
jax.grad(lambda x: "a")(1.) | Argument 'a' of type <class 'str'> is not a valid JAX type
jax.grad(gen) | Expected a function, got a generator function
jax.grad(plain, reduce_axes=("i",)) | reduce_axes
jax.jacfwd(f, argnums=3)(1., 2.) | but got value 3 for len(args) == 2
jax.jacrev(f, argnums=-3)(1., 2.) | but got value -3 for len(args) == 2
jax.jacfwd(lambda x: "a")(1.) | Argument 'a' of type <class 'str'> is not a valid JAX type
jax.jacfwd(plain, has_aux=True)(1.) |
""",
    "jvp, vjp, linearize": """
jax.jvp(f, (1., 2.), [1., 1.]) | primal and tangent arguments to jax.jvp must have the same tree
jax.jvp(f, ({"a": 1.}, 2.), ({"b": 1.}, 2.)) | must have the same tree structure
jax.jvp(lambda x: "a", (1.,), (1.,)) | Argument 'a' of type <class 'str'> is not a valid JAX type
pull(1., 2.) | The function returned by `jax.vjp`
pull([1., 2.]) | unexpected tree structure
pull((1., None)) | unexpected tree structure
both(jnp.ones(2)) | unexpected JAX type (e.g. shape/dtype) for argument to VJP function
push(1., 2.) |
push("a") | Argument 'a' of type <class 'str'> is not a valid JAX type
jax.linear_transpose(lambda x: jnp.sin(x), 1.)(1.) | Transpose rule (for reverse-mode differe
jax.linear_transpose(plain, "a") | Argument 'a' of type <class 'str'> is not a valid JAX type
""",
    "vmap": """
jax.vmap(lambda x: x * 2, sum_match=False, out_axes=None)(jnp.ones(3)) | at vmap out_axes, got
jax.vmap(lambda x: "a")(jnp.ones(3)) | is not a valid JAX type
jax.vmap(plain)("a") | Argument 'a' of type <class 'str'> is not a valid JAX type
jax.vmap(gen) | Expected a function, got a generator function
jax.vmap(lambda: 1.)() | vmap wrapped function must be passed at least one argument
jax.vmap(plain, in_axes=(0, 0))(jnp.ones(3)) | vmap in_axes must be an int, None, or a tuple
""",
    "jit": """
jax.jit(plain, static_argnums=3)(1.) | Jitted function has static_argnums=(3,), but only accepts
jax.jit(plain, static_argnames="y")(1.) | Jitted function has invalid argnames {'y'} in static
jax.jit(f, donate_argnums=5) | Jitted function has donate_argnums=(5,), but only accepts
jax.jit(lambda x, n: x, static_argnums=1)(1., [2]) | Non-hashable static arguments
jax.jit(gen) | Expected a function, got a generator function
jax.jit(plain)("a") | The problematic value is of type <class 'str'> and was passed to
jax.jit(plain)(np.array("a")) | was passed to the function at path x
jax.jit(plain)(np.array([object()])) | was passed to the function at path x
jax.jit(plain)(2 ** 40) | An overflow was encountered while parsing an argument to a jitted comp
jax.jit(lambda x: "a")(1.) | returned a value of type <class 'str'>, which is not a valid JAX type
jax.jit(lambda x: (x, lambda: 1))(1.) | at output component [1], which is not a valid JAX type
jax.make_jaxpr(g)("a") | was passed to the function at path x
jax.make_jaxpr(lambda x: "a")(1.) | returned a value of type <class 'str'>, which is not a valid
jax.make_jaxpr(plain, static_argnums=5)(1., 2.) | Jitted function has static_argnums=(5,), but only
jax.eval_shape(g, "a") | was passed to the function at path x
jax.eval_shape(lambda x: "a", 1.) | returned a value of type <class 'str'>, which is not a valid
jax.checkpoint(lambda x: "a")(1.) | returned a value of type <class 'str'>, which is not a valid
""",
    "rules": """
cj("a", 2.) | Error interpreting argument to custom_jvp_call
jax.grad(cj)("a", 2.) | Argument 'a' of type <class 'str'> is not a valid JAX type
cv("a", 2.) | Argument 'a' of type <class 'str'> is not a valid JAX type
jax.jit(cv)(1.) |
cj(1.) |
""",
}
# Words in which Saem says the same more exactly.
OURS = {"cj(\"a\", 2.)": "was passed to the custom_jvp function cj"}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_those_of_jax(jax_oracle, name):
    cases = VALUES[name].strip().splitlines()
    asked = jax_oracle.run(source_of(answers), cases=cases)
    got = answers(cases)
    for case, mine, theirs, weak in zip(cases, got, asked.value, asked.weak, strict=True):
        assert mine[0] == theirs[0] == "value", (case, mine, theirs)
        try:
            agree(mine, theirs, weak, 2e-6)
        except AssertionError as error:
            raise AssertionError(f"{case}: {error}") from None


@pytest.mark.parametrize("name", REFUSED)
def test_what_jax_refuses_is_refused_by_the_same_class(jax_oracle, name):
    rows = [row.rsplit("|", 1) for row in REFUSED[name].strip().splitlines()]
    cases = [case.strip() for case, _ in rows]
    asked = jax_oracle.run(source_of(answers), cases=cases).value
    for (case, words), mine, theirs in zip(rows, answers(cases), asked, strict=True):
        assert mine[0] == theirs[0] != "value", (case, mine, theirs)
        assert words.strip() in theirs[1], (case, theirs)
        assert OURS.get(case.strip(), words.strip()) in mine[1], (case, mine)


def doubled(x):
    return x * 2


@jax.jit
def tripled(x):
    return x * 3


def test_jitted_functions_can_be_copied_and_pickled():
    """JAX makes copies that know no ``lower``, and refuses to pickle."""
    f = jax.jit(doubled, donate_argnums=(), static_argnames=())
    for made in (copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert made(3) == 6 and made.lower(1.).compile()(2.) == 4.
    assert copy.deepcopy({"f": tripled})["f"] is tripled
    assert pickle.loads(pickle.dumps(tripled))(2) == 6
    assert copy.deepcopy(jnp.sin)(0.) == 0.
    for method in (copy.copy(jnp.add), copy.deepcopy(jnp.add), pickle.loads(pickle.dumps(jnp.add))):
        assert method.reduce(jnp.arange(4)) == 6
    assert jax.nn.relu(-1.) == 0.  # called, it has programs
    ruled = copy.deepcopy({"activation": jax.nn.relu})["activation"]
    assert ruled(2.) == 2. and jax.grad(ruled)(0.) == jax.grad(jax.nn.relu)(0.)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(jax.jit(lambda x: x))


def test_a_pullback_computes_with_the_residuals_that_it_holds():
    x, w = jnp.arange(3.), jnp.ones((3, 2))
    _, pull = jax.vjp(lambda x, w: x @ w, x, w)
    assert pull.args_res[0] is x and pull.args_res[1] is w and pull.opaque_residuals == []
    pull.args_res[1] = 2 * w
    np.testing.assert_array_equal(pull(jnp.ones(2))[0], np.full(3, 4.))
    np.testing.assert_array_equal(pull(jnp.ones(2))[1], np.outer(np.arange(3.), np.ones(2)))


def test_signatures_have_the_parameters_of_those_of_jax(jax_oracle):
    names = ("grad value_and_grad jacfwd jacrev hessian jvp vjp linearize vmap pmap jit checkpoint "
             "eval_shape linear_transpose closure_convert custom_gradient fwd_and_bwd "
             "named_call").split()
    def program(names):
        return [[(p.name, str(p.kind)) for p in
                 inspect.signature(getattr(jax, n)).parameters.values()] for n in names]

    same(jax_oracle, program, names=names)
    for transform in (jax.jit, jax.grad, jax.vmap, jax.checkpoint, jax.custom_jvp, jax.custom_vjp):
        assert transform(doubled).__wrapped__ is doubled
        assert str(inspect.signature(transform(doubled))) == "(x)"
