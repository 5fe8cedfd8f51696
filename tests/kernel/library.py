"""Do many expressions of a namespace mean the same on Saem and on JAX?

A table of expressions goes to JAX in one question; both sides run the same beginning, so that a
row may name any namespace, a gradient (``grads``) or a mapped call (``mapped``).

Read before: ``tests/kernel/oracle.py``, ``numpy/agreement.py``.  Read after: ``test_nn.py``.
Invariant: every expected value comes from JAX; values, dtypes, weak types, shapes and the builtin
classes of errors must agree.
"""

from __future__ import annotations

import builtins
import sys
import warnings
from pathlib import Path
from typing import Any

import saem

sys.path.insert(0, str(Path(__file__).resolve().parent / "numpy"))

from agreement import asks_nothing, unlike

BEGIN = """
import importlib
import numpy as np

def module(path):
    return importlib.import_module(jax.__name__ + "." + path)

class Later:
    "A namespace that is imported when a row first names something of it."
    def __init__(self, path):
        self.path = path
    def __getattr__(self, name):
        return getattr(module(self.path), name)

jnp, lax, nn, random = Later("numpy"), Later("lax"), Later("nn"), Later("random")
ini, sp, st = Later("nn.initializers"), Later("scipy.special"), Later("scipy.stats")
sig, image, vq = Later("scipy.signal"), Later("image"), Later("scipy.cluster.vq")
ndi, interp = Later("scipy.ndimage"), Later("scipy.interpolate")
integrate, optimize = Later("scipy.integrate"), Later("scipy.optimize")
sparse, spatial = Later("scipy.sparse.linalg"), Later("scipy.spatial.transform")
key = lambda seed=0: random.key(seed)

def total(f):
    "The sum of the real parts of all floating results of f, weighted so that signs matter."
    def summed(*args):
        leaves = [x for x in jax.tree.leaves(f(*args)) if jnp.issubdtype(x.dtype, np.inexact)]
        return sum(jnp.sum(jnp.real(x) * jnp.cos(jnp.arange(x.size)).reshape(x.shape))
                   for x in leaves)
    return summed

def grads(f, *args):
    return jax.grad(total(f), tuple(range(len(args))))(*map(jnp.asarray, args))

def second(f, *args):
    return jax.jvp(lambda *a: grads(f, *a), args, tuple(jnp.ones_like(a) for a in args))[1]

def mapped(f, *args):
    return jax.vmap(f)(*args)

def plain(value):
    "Namedtuples as tuples, which the oracle can send."
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value
"""

ASK_ALL = """
import warnings
warnings.simplefilter("ignore")
result = []
for case in cases:
    try:
        result.append(("value", plain(eval(case))))
    except Exception as error:
        result.append(("error", [cls.__name__ for cls in type(error).__mro__]))
"""


def ours(jax: Any = saem, begin: str = BEGIN) -> dict[str, Any]:
    """Return the names that rows may use, on this side."""
    names: dict[str, Any] = {"jax": jax}
    exec(begin, names)
    return names


def failures(oracle: Any, cases: list[str], rtol: float = 1e-5, x64: bool = False,
             begin: str = BEGIN, **arguments: Any) -> list[str]:
    """Return what differs between Saem and JAX, a line for each case; both run ``begin`` first."""
    asked = oracle.run(begin + ASK_ALL, cases=cases, x64=x64, **arguments)
    names, wrong = {**ours(begin=begin), **arguments}, []
    with saem.enable_x64(x64), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case, wanted, weak in zip(cases, asked.value, asked.weak, strict=True):
            said = asks_nothing(wanted) or difference(case, wanted, weak, rtol, names)
            if said:
                wrong.append(f"{case}: {said}")
    return wrong


def check(oracle: Any, cases: list[str], rtol: float = 1e-5, x64: bool = False,
          **arguments: Any) -> None:
    """Assert that each of ``cases`` gives the same here as on JAX; reports all that do not."""
    wrong = failures(oracle, cases, rtol, x64, **arguments)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)} differ", *wrong])


def difference(case: str, wanted: Any, weak: Any, rtol: float, names: dict[str, Any]) -> str:
    """Return in words how the answer to one case differs from JAX's, '' if it does not."""
    try:
        got = names["plain"](eval(case, names))
    except Exception as error:
        if wanted[0] == "value":
            return f"raised {error!r}, JAX gives {wanted[1]!r}"
        above = [cls.__name__ for cls in type(error).__mro__]
        caught = next(name for name in wanted[1] if hasattr(builtins, name))
        return "" if caught in above else f"raised {error!r}, JAX {wanted[1]}"
    if wanted[0] == "error":
        return f"gave {got!r}, JAX raises {wanted[1][0]}"
    return unlike(got, wanted[1], weak[1], rtol)
