"""With debug_nans or debug_infs on, is the first operation that gives such a number named?"""

from __future__ import annotations

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem import lax

X = np.arange(3.0, dtype=np.float32)


def f(x):
    y = x * 2
    z = jnp.log(y - 10)
    return jnp.sum(z)


def watched(setting, program):
    with setting(True):
        return program()


@pytest.mark.parametrize(("program", "sentence"), [
    ("jax.numpy.log(-1.)", "invalid value (nan) encountered in log"),
    ("jax.numpy.arange(3.) / 0", "invalid value (nan) encountered in div"),
    ("jax.jit(lambda x: jax.numpy.sum(jax.numpy.log(x * 2 - 10)))(x)",
     "invalid value (nan) encountered in log"),
    ("jax.jit(lambda x: jax.jit(lambda x: jax.numpy.sqrt(x))(x) + 1)(-2.)",
     "invalid value (nan) encountered in sqrt"),
])
def test_the_operation_is_named_as_jax_names_it(jax_oracle, program, sentence):
    same_error(jax_oracle, f"watched(jax.debug_nans, lambda: {program})", sentence,
               within=__name__, x=X)


def test_infinities_are_looked_for_apart_from_nans(jax_oracle):
    same_error(jax_oracle, "watched(jax.debug_infs, lambda: 1 / jax.numpy.zeros(()))",
               "invalid value (inf) encountered in div", within=__name__)
    same(jax_oracle, "watched(jax.debug_infs, lambda: jax.numpy.log(-np.float32(1)))",
         within=__name__)
    same(jax_oracle, "watched(jax.debug_nans, lambda: jax.numpy.log(np.float32(0)))",
         within=__name__)


def test_the_line_is_named_inside_jit():
    jitted = jax.jit(f)
    for _ in range(2):  # the second call would be answered by C++
        assert np.isnan(jitted(X))
    with jax.debug_nans(True):
        for _ in range(2):
            with pytest.raises(FloatingPointError, match=r"z = jnp\.log\(y - 10\)"):
                jitted(X)
        assert np.isfinite(jitted(X + 20))
        with pytest.raises(FloatingPointError, match="It is inside `f`"):
            jax.jit(f).lower(X).compile()(X)
    assert np.isnan(jitted(X))


@pytest.mark.parametrize(("program", "name"), [
    (lambda: lax.scan(lambda c, y: (jnp.log(c) * y, c), 1.0, X), "log"),
    (lambda: jax.jit(lambda x: lax.cond(x > 0, lambda x: x, jnp.sqrt, x))(-1.0), "sqrt"),
    (lambda: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.arccosh(c[1])), (0, 2.0)),
     "acosh"),
    (lambda: jax.jit(jax.vmap(jax.grad(lambda x: jnp.sqrt(x) * 0)))(X), "mul"),
])
def test_it_is_found_inside_loops_branches_and_derivatives(program, name):
    program()
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match=rf"in {name}\n"):
        program()


def test_a_nan_that_reaches_no_result_is_nobodys_business():
    g = jax.jit(lambda x: jnp.where(x > 0, jnp.log(x), 0.0))
    with jax.debug_nans(True):
        np.testing.assert_array_equal(g(np.float32([-1, 0, 1])), [0, 0, 0])


def test_when_the_arguments_are_gone_the_error_says_so():
    g = jax.jit(lambda x: jnp.log(x), donate_argnums=0)
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="is not known"):
        g(-jnp.ones(3))


def test_for_the_process_too_and_no_longer_when_turned_off():
    jax.config.update("jax_debug_nans", True)
    try:
        with pytest.raises(FloatingPointError):
            jax.jit(f)(X)
    finally:
        jax.config.update("jax_debug_nans", False)
    assert np.isnan(jax.jit(f)(X))


def test_half_precision_and_complex_numbers_are_looked_at():
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError):
            jnp.log(-jnp.ones(2, jnp.bfloat16))
        with pytest.raises(FloatingPointError):
            jnp.ones(2, jnp.complex64) * np.nan
        jax.random.normal(jax.random.key(0), (3,))
