"""Do Saem and JAX answer one piece of source alike?

The text runs here on Saem and in a second process on JAX; values, dtypes, weak types and errors are
compared.  The text is always the test's own.

Read before: ``oracle.py``.  Read after: ``test_derivatives.py``.
Invariant: every expected value comes from JAX.
"""

from __future__ import annotations

import builtins
import textwrap
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from oracle import FLOAT0, JaxError, Oracle

import saem as jax
import saem.numpy as jnp
from saem import lax


def ours(source: str, **arguments: Any) -> Any:
    """Return the value of ``source`` (an expression, or statements that set ``result``) on Saem."""
    names = {"jax": jax, "jnp": jnp, "lax": lax, "np": np, "ml_dtypes": ml_dtypes, **arguments}
    source = textwrap.dedent(source).strip()
    try:
        code = compile(source, "<both>", "eval")
    except SyntaxError:
        exec(compile(source, "<both>", "exec"), names)
        return names["result"]
    return eval(code, names)


def same(oracle: Oracle, source: str, rtol: float = 2e-6, **arguments: Any) -> None:
    """Assert that Saem and JAX give one value: structure, numbers, shapes, dtypes, weak types."""
    answer = oracle.run(source, **arguments)
    agree(ours(source, **arguments), answer.value, answer.weak, rtol)


def agree(got: Any, wanted: Any, weak: Any, rtol: float) -> None:
    if isinstance(wanted, (list, tuple)):
        assert type(got) is type(wanted) and len(got) == len(wanted), (got, wanted)
        for g, w, k in zip(got, wanted, weak):
            agree(g, w, k, rtol)
    elif isinstance(wanted, dict):
        assert set(got) == set(wanted)
        for key in wanted:
            agree(got[key], wanted[key], weak[key], rtol)
    elif isinstance(wanted, np.ndarray):
        assert got.dtype == wanted.dtype and got.shape == wanted.shape, (got, wanted)
        assert bool(getattr(got, "weak_type", False)) == weak, f"weak type of {got!r}"
        if wanted.dtype != FLOAT0:
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=rtol, atol=rtol)
    elif isinstance(wanted, (float, complex)) and hasattr(got, "weak_type"):
        # Where JAX hands a Python number through, Saem may return the array it stands for.
        assert got.weak_type and got.shape == () and got.item() == wanted, (got, wanted)
    else:
        assert got == wanted and type(got) is type(wanted), (got, wanted)


def same_error(oracle: Oracle, source: str, sentence: str, **arguments: Any) -> None:
    """Assert that both refuse ``source`` with ``sentence``, caught by one ``except``."""
    try:
        value = oracle.run(source, **arguments).value
    except JaxError as error:
        theirs = error
    else:
        raise AssertionError(f"JAX did not refuse: {value!r}")
    assert sentence in theirs.message, theirs
    with pytest.raises(Exception) as caught:
        ours(source, **arguments)
    assert sentence in str(caught.value), f"{caught.value!r}\nJAX: {theirs}"
    names = [cls.__name__ for cls in caught.type.__mro__]
    caught_by = next(name for name in theirs.bases
                     if hasattr(builtins, name) or hasattr(jax.errors, name))
    assert caught_by in names, f"JAX raises {theirs.kind}, Saem {names}"
