"""Do many expressions mean the same on Saem and on JAX?

All of them are sent to JAX in one question: values, dtypes, weak types, structures and the builtin
class of errors must agree.

Read before: ``tests/kernel/oracle.py``.  Read after: the tests beside it.
Invariant: every expected value comes from JAX.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

import saem as jax
from saem import numpy as jnp

ASK_ALL = """
import warnings
warnings.simplefilter("ignore")
result = []
for case in cases:
    try:
        result.append(("value", eval(case)))
    except Exception as error:
        result.append(("error", [cls.__name__ for cls in type(error).__mro__]))
"""
TOLERANCE = {"bfloat16": 2e-2, "float16": 3e-3, "float64": 1e-12, "complex128": 1e-12}


def check(oracle: Any, cases: list[str], rtol: float = 4e-6, x64: bool = False,
          **arguments: Any) -> None:
    """Assert that each of ``cases`` gives the same here as on JAX; tells all that do not."""
    asked = oracle.run(ASK_ALL, cases=cases, x64=x64, **arguments)
    wrong = []
    for case, wanted, weak in zip(cases, asked.value, asked.weak, strict=True):
        said = asks_nothing(wanted) or difference(case, wanted, weak, rtol, arguments)
        if said:
            wrong.append(f"{case}: {said}")
    assert not wrong, "\n".join(wrong)


def check_gradient(oracle: Any, body: str, x: Any, rtol: float) -> None:
    """Assert that the expression ``body`` of ``x`` has the same gradient here as on JAX."""
    ours = jax.grad(lambda x: eval(body, {"jnp": jnp, "x": x}))(x)
    wanted = oracle.run(f"jax.grad(lambda x: {body})(x)", x=x).value
    np.testing.assert_allclose(np.asarray(ours), wanted, rtol=rtol)


def asks_nothing(wanted: Any) -> str:
    """Return in words that JAX could not read a case, of which both sides would say the same."""
    unread = wanted[0] == "error" and {"SyntaxError", "NameError"} & set(wanted[1])
    return f"asks nothing: JAX raises {wanted[1][0]}" if unread else ""


def difference(case: str, wanted: Any, weak: Any, rtol: float, arguments: Any) -> str:
    """Return in words how the answer to one case differs from JAX's, '' if it does not."""
    try:
        got = eval(case, {"jax": jax, "jnp": jnp, "lax": jax.lax, "np": np, **arguments})
    except Exception as error:
        if wanted[0] == "value":
            return f"raised {error!r}, JAX gives {wanted[1]!r}"
        names = [cls.__name__ for cls in type(error).__mro__]
        caught = next(name for name in wanted[1] if hasattr(builtins, name))
        return "" if caught in names else f"raised {names}, JAX {wanted[1]}"
    if wanted[0] == "error":
        return f"gave {got!r}, JAX raises {wanted[1][0]}"
    return unlike(got, wanted[1], weak[1], rtol)


def unlike(got: Any, wanted: Any, weak: Any, rtol: float) -> str:
    """Return in words how a value differs from JAX's, '' if it does not."""
    if isinstance(wanted, (list, tuple)):
        if type(got) is not type(wanted) or len(got) != len(wanted):
            return f"gave {got!r}, JAX {wanted!r}"
        return "; ".join(filter(None, (unlike(*x, rtol) for x in zip(got, wanted, weak))))
    if isinstance(wanted, dict):
        if not isinstance(got, dict) or got.keys() != wanted.keys():
            return f"gave {got!r}, JAX {wanted!r}"
        return "; ".join(filter(None, (unlike(got[k], wanted[k], weak[k], rtol) for k in wanted)))
    if not isinstance(wanted, np.ndarray):
        if getattr(got, "shape", ()):
            return f"gave {got!r}, JAX {wanted!r}"
        same = got == wanted or (got != got and wanted != wanted)
        return "" if same else f"gave {got!r}, JAX {wanted!r}"
    if isinstance(got, (list, tuple, dict)):
        return f"gave {got!r}, JAX {wanted!r}"
    value = np.asarray(got)
    if value.dtype != wanted.dtype or value.shape != wanted.shape:
        return f"gave {value.dtype}{value.shape}, JAX {wanted.dtype}{wanted.shape}"
    if wanted.dtype != bool and bool(getattr(got, "weak_type", False)) != weak:
        return f"weak_type is {not weak}, JAX's {weak}"
    if wanted.dtype.names:  # float0, which has no values
        return ""
    if wanted.dtype.kind in "biu":
        close = np.array_equal(value, wanted)
    else:
        wide = complex if wanted.dtype.kind == "c" else float
        rtol = max(rtol, TOLERANCE.get(wanted.dtype.name, 0))
        with np.errstate(all="ignore"):
            close = np.allclose(value.astype(wide), wanted.astype(wide), rtol, rtol * 0.1,
                                equal_nan=True)
    return "" if close else f"gave {value!r}, JAX {wanted!r}"
