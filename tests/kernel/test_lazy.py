"""Does a name that is loaded later look like any other, and is it really not loaded before?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import saem
import saem.numpy as jnp
from saem.core.lazy import later


def fresh(code: str) -> str:
    """What a new process prints."""
    here = {**os.environ, "PYTHONPATH": str(Path(saem.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env=here)
    return done.stdout.strip()


def test_import_loads_what_programs_use_and_no_more():
    loaded = fresh("import saem, sys; print(*sys.modules)").split()
    assert "saem.numpy.reductions" in loaded
    rare = ["saem.numpy.polynomials", "saem.numpy.sets", "saem.transform.jacobians", "opt_einsum",
            "IPython", "numpy.ma", "scipy"]
    # What a first operation needs, or the first of its kind.
    rare += ["jaxlib.xla_client", "logging", "fractions", "saem.core.pretty", "saem.derivatives",
             "saem.jit.call", "saem.jit.stages", "saem.loops", "saem.numpy.float_ufuncs",
             "saem.numpy.indexing", "saem.numpy.products", "saem.numpy.sorting",
             "saem.ops.collectives", "saem.ops.random_bits", "saem.ops.slicing", "saem.signal",
             "saem.special", "saem.transform.linearize", "saem.transform.vmap"]
    assert not [name for name in rare if name in loaded]


def test_numpy_is_imported_few_calls_deep():
    """Deeper, CPython 3.11 takes a piece of its stack from the system at each of many calls."""
    assert fresh("""
import sys, traceback

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print(*[frame.f_globals["__name__"] for frame, _ in traceback.walk_stack(None)
                    if frame.f_code.co_name == "<module>"])

sys.meta_path.insert(0, Finder())
import saem
""").split() == ["saem._jaxlib", "saem", "__main__"]


@pytest.mark.parametrize(("use", "said"), [
    ("import saem; print(saem.jacobian.__name__, saem.lax.add(1, 2))", "jacobian 3"),
    ("from saem import hessian, lax, random; print(hessian.__name__, lax.__name__)",
     "hessian saem.lax"),
    ("from saem import *; print(grad.__module__, vmap.__module__)",
     "saem.transform.derivatives saem.transform.mapping"),
    ("from saem.numpy import polyval; print(polyval.__name__)", "polyval"),
    ("from saem.numpy import *; print(polyval.__name__, sin.__name__)", "polyval sin"),
    ("import saem.numpy as jnp; print('unique' in dir(jnp), hasattr(jnp, 'unique'))", "True True"),
    ("import saem; print('hessian' in dir(saem), 'lax' in dir(saem), 'jit' in dir(saem))",
     "True True True"),
])
def test_a_later_name_is_like_any_other(use, said):
    assert fresh(use) == said


@pytest.mark.parametrize(("use", "said"), [
    ("print(x.sort(), x.sort is not None, 'sort' in vars(type(x)))", "[1. 2. 3.] True True"),
    ("print(jax.jit(lambda x: x.cumsum())(x), x.cumsum())", "[3. 4. 6.] [3. 4. 6.]"),
    ("print(x @ x, 2 * x @ x, jax.grad(lambda x: x @ x)(x))", "14.0 28.0 [6. 2. 4.]"),
    ("print(x[1], x.at[1].set(5.), jax.jit(lambda x: x[1])(x))", "1.0 [3. 5. 2.] 1.0"),
    ("print(type(x).take.__doc__ == jnp.take.__doc__, jax.core.Tracer.take.__name__)",
     "True take"),
    ("import inspect; print(inspect.signature(type(x).dot) == inspect.signature(jnp.dot))", "True"),
    ("print(jax.make_jaxpr(jax.jit(jnp.sin))(1.).jaxpr.eqns[0].primitive)", "jit"),
])
def test_a_later_method_is_like_any_other(use, said):
    start = "import saem as jax, saem.numpy as jnp; x = jnp.array([3., 1., 2.]); "
    assert fresh(start + use) == said


def test_a_named_name_stays():
    jnp.unique  # noqa: B018 - naming it is the test
    assert "unique" in vars(jnp)


def test_a_name_that_does_not_exist_is_refused_in_pythons_words():
    with pytest.raises(AttributeError, match=r"module 'saem.numpy' has no attribute 'nonesuch'"):
        jnp.nonesuch  # noqa: B018
    with pytest.raises(AttributeError, match="module 'saem' has no attribute 'nonesuch'"):
        saem.nonesuch  # noqa: B018


def test_star_import_gives_no_modules_and_nothing_private():
    names = jnp.__all__
    assert {"sin", "pad", "float32", "ndarray"} <= set(names)
    assert not [name for name in names if name.startswith("_")]


def test_a_later_module_is_that_module():
    colorsys = later("colorsys")
    assert colorsys.rgb_to_hsv(1.0, 0.0, 0.0) == (0.0, 1.0, 1.0)
    with pytest.raises(AttributeError, match="module 'colorsys' has no attribute 'nonesuch'"):
        colorsys.nonesuch  # noqa: B018
