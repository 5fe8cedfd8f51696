"""Does every example in a docstring do what it shows?

Each public function and class shows one.  What an example prints came from real JAX.  Names that
an example does not import are those that users give: ``jax`` and ``jnp`` for Saem, ``np`` for
NumPy, ``lax``, ``sparse``, and whatever its own module defines.

Invariant: numbers may differ by rounding from what is written, all other text may not.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import math
import re
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import saem
import saem.numpy as jnp
from saem import lax
from saem.experimental import sparse

SPACES = [
    "saem", "saem.ad_checkpoint", "saem.custom_batching", "saem.custom_derivatives",
    "saem.debug", "saem.dlpack", "saem.dtypes", "saem.experimental",
    "saem.experimental.checkify", "saem.experimental.jet", "saem.experimental.ode",
    "saem.experimental.rnn",
    "saem.experimental.sparse", "saem.export", "saem.flatten_util", "saem.image", "saem.lax",
    "saem.lax.linalg", "saem.monitoring", "saem.nn", "saem.nn.initializers", "saem.numpy",
    "saem.numpy.fft", "saem.numpy.linalg", "saem.ops", "saem.random", "saem.scipy.cluster.vq",
    "saem.scipy.fft", "saem.scipy.integrate", "saem.scipy.interpolate", "saem.scipy.linalg",
    "saem.scipy.ndimage", "saem.scipy.optimize", "saem.scipy.signal", "saem.scipy.sparse.linalg",
    "saem.scipy.special", "saem.scipy.stats", "saem.sharding", "saem.stages", "saem.tree",
    "saem.tree_util",
]
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
USUAL = {"jax": saem, "jnp": jnp, "np": np, "lax": lax, "sparse": sparse}


class Checker(doctest.OutputChecker):
    """Compares the text between numbers word for word, and numbers to float32's rounding."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        text, other = ("".join(NUMBER.sub("#", part).split()) for part in (want, got))
        if text != other:
            return False
        pairs = zip(NUMBER.findall(want), NUMBER.findall(got), strict=True)
        return all(math.isclose(float(a), float(b), rel_tol=2e-6, abs_tol=1e-6) for a, b in pairs)


def public() -> Iterator[tuple[str, Any]]:
    """Yield every public function and class with the name by which a user finds it."""
    seen: set[int] = set()
    for space in SPACES:
        module = importlib.import_module(space)
        for name in getattr(module, "__all__", None) or dir(module):
            if name.startswith("_"):
                continue
            value = getattr(module, name, None)
            home = getattr(inspect.unwrap(value), "__module__", None) or ""
            if callable(value) and home.startswith("saem") and id(value) not in seen:
                seen.add(id(value))
                yield f"{space}.{name}", value


EXAMPLES = [(name, value) for name, value in public() if ">>>" in (inspect.getdoc(value) or "")]


def names_for(value: Any) -> dict[str, Any]:
    """Return the names that the example of ``value`` may use."""
    module = sys.modules.get(getattr(inspect.unwrap(value), "__module__", "") or "")
    own = dict(vars(module)) if isinstance(module, types.ModuleType) else {}
    return {**own, **USUAL}


@pytest.mark.parametrize(("name", "value"), [
    pytest.param(name, value, id=name,
                 marks=[pytest.mark.clears_caches] if name.endswith("clear_caches") else [])
    for name, value in EXAMPLES])
@pytest.mark.usefixtures("little_effort")
def test_example(name: str, value: Any) -> None:
    text = inspect.getdoc(value) or ""
    test = doctest.DocTestParser().get_doctest(text, names_for(value), name, None, 0)
    told: list[str] = []
    runner = doctest.DocTestRunner(Checker(), verbose=False)
    runner.run(test, out=told.append)
    assert not told, "".join(told)


def test_most_of_the_public_names_show_an_example() -> None:
    """New public functions come with an example."""
    assert len(EXAMPLES) > 900
