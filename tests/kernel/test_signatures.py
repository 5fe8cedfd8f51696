"""Do public functions show their true signature and documentation?"""

from __future__ import annotations

import functools
import importlib
import inspect
import pydoc
import types

import pytest
from both import source_of

import saem as jax
import saem.numpy as jnp

ROOMS = {"numpy": jnp, "lax": jax.lax, "random": jax.random}
NAMED_AS_IN_JAX = ("", "numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "random", "nn",
                   "nn.initializers", "tree", "tree_util", "scipy.special", "scipy.linalg",
                   "scipy.signal", "image", "ops")
# JAX shows a function inside another one here.
SHOWN_OTHERWISE = {"lax.random_gamma_grad"}
# These take whatever NumPy's function of the same name takes.
PASS_ON = {"numpy.printoptions"}


def functions():
    for room, module in ROOMS.items():
        for name in dir(module):
            value = getattr(module, name)
            if name[0] != "_" and callable(value) \
                    and not isinstance(value, (type, types.GenericAlias)):
                yield f"{room}.{name}"


@pytest.mark.parametrize("name", sorted(functions()))
def test_a_public_function_shows_its_signature_and_documentation(name):
    room, _, function = name.partition(".")
    value = getattr(ROOMS[room], function)
    signature = inspect.signature(value)
    assert str(signature).partition(" ->")[0] != "(*args, **kwargs)" or name in PASS_ON
    assert (inspect.getdoc(value) or "").strip()
    home = getattr(value, "__module__", "") or ""
    assert home.startswith(("saem", "numpy"))
    if home.startswith("saem"):
        assert [p.name for p in signature.parameters.values() if p.annotation is p.empty] == []


@pytest.mark.parametrize("name", ["saem", "saem.numpy", "saem.lax", "saem.random", "saem.nn",
                                  "saem.sharding", "saem.tree", "saem.errors", "saem.little"])
def test_help_shows_a_module(name):
    module = importlib.import_module(name)
    text = pydoc.render_doc(module, renderer=pydoc.plaintext)
    assert (module.__doc__ or "?").split("\n")[0] in text


def test_signatures_are_jaxs(jax_oracle):
    names = ["where", "sum", "mean", "clip", "concatenate", "linspace", "einsum", "sort", "take",
             "pad", "var", "argmax", "cumsum", "reshape", "full", "arange", "quantile", "unique"]

    def parameters(names):
        return [str([(p.name, p.kind.name) for p in
                     inspect.signature(getattr(jnp, n)).parameters.values()]) for n in names]

    theirs = jax_oracle.run(source_of(parameters), names=names).value
    mine = parameters(names)
    assert dict(zip(names, mine)) == dict(zip(names, theirs))


def test_a_function_is_shown_under_its_public_name(jax_oracle):
    def shown(rooms):
        found = {}
        for room in rooms:
            module = functools.reduce(getattr, filter(None, room.split(".")), jax)
            for name in dir(module):
                value = getattr(module, name, None)
                if name[0] != "_" and callable(value) and not isinstance(value, type):
                    found[f"{room}.{name}".strip(".")] = str(getattr(value, "__name__", None))
        return found

    program = "import functools\nimport jax.scipy\nimport jax.image\n" + source_of(shown)
    theirs = jax_oracle.run(program, rooms=NAMED_AS_IN_JAX).value
    mine = shown(NAMED_AS_IN_JAX)
    common = mine.keys() & theirs.keys() - SHOWN_OTHERWISE
    assert len(common) > 900
    assert {n: mine[n] for n in common if theirs[n] != "None"} \
        == {n: theirs[n] for n in common if theirs[n] != "None"}
