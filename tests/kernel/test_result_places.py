"""Do results lie, and are they committed, where JAX has them?  (``result_places.txt``)"""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path

import numpy as np
from both import source_of

import saem as jax
import saem.numpy as jnp

CALLS = [line for line in (Path(__file__).with_name("result_places.txt").read_text().splitlines())
         if not line.startswith("#")]


def places(calls):
    """Return for each call the devices or specs of its arrays, on one device and on a mesh."""
    P, NS = jax.sharding.PartitionSpec, jax.sharding.NamedSharding
    d, (d1, d2) = jax.devices()[1], jax.devices()[1:3]
    mesh = jax.make_mesh((2, 2), ("a", "b"), devices=jax.devices()[:4],
                         axis_types=(jax.sharding.AxisType.Auto,) * 2)
    fixed = {"jax": jax, "jnp": jnp, "np": np, "copy": copy, "pickle": pickle, "P": P, "NS": NS,
             "d": d, "d1": d1, "mesh": mesh,
             "x1": jax.device_put(np.ones(8, "f"), d1), "x2": jax.device_put(np.ones(8, "f"), d2),
             "xm": jax.device_put(np.ones(8, "f"), NS(mesh, P("a")))}

    def shown(result):
        return [f"{getattr(leaf.sharding, 'spec', sorted(k.id for k in leaf.devices()))} "
                f"{leaf.committed}" if isinstance(leaf, jax.Array) else type(leaf).__name__
                for leaf in jax.tree.leaves(result)]

    def on(put):
        names = {"x": np.linspace(.1, 2, 8, dtype="f"), "b": np.arange(8) % 3 == 0,
                 "i": np.arange(8, dtype="i4") % 4, "m": np.arange(16, dtype="f").reshape(4, 4),
                 "s": np.float32(3), "n": np.int32(3)}
        names = {**fixed, **{name: put(value) for name, value in names.items()}}
        found = {}
        for call in calls:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found[call] = shown(eval(call, names))
            except Exception as error:
                found[call] = [type(error).__mro__[-3].__name__]
        return found

    return [on(lambda v: jax.device_put(v, d)),
            on(lambda v: jax.device_put(v, NS(mesh, P("a") if np.ndim(v) else P())))]


def test_results_lie_where_jax_has_them(jax_oracle, little_effort):
    program = "import jax.flatten_util\n" + source_of(places)
    theirs = jax_oracle.run(program, calls=CALLS).value
    mine = places(CALLS)
    for here, there in zip(mine, theirs, strict=True):
        assert {c: here[c] for c in CALLS} == {c: there[c] for c in CALLS}


def test_a_program_gets_its_mesh_from_an_argument_that_it_does_not_use():
    """JAX refuses these outside of ``set_mesh``: it drops the argument that has the mesh."""
    mesh = jax.make_mesh((2,), ("a",), devices=jax.devices()[:2],
                         axis_types=(jax.sharding.AxisType.Explicit,))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("a"))
    x = jax.device_put(np.ones(8, np.float32), sharding)
    for result in (jax.jit(jnp.zeros_like)(x), jnp.imag(x),
                   jax.jit(jax.grad(lambda a: (a * 2).sum()))(x)):
        assert result.sharding == sharding and result.committed
