"""Is an ``out_sharding`` that cannot be followed refused by every function, as in JAX?

Classes of errors and the beginning of their words are JAX's own, from the second process.
"""

from __future__ import annotations

import re

import pytest
from both import same

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.sharding import AxisType, NamedSharding, SingleDeviceSharding
from saem.sharding import PartitionSpec as P

FUNCTIONS = {
    "dot_general": "lax.dot_general(a, a, (((1,), (0,)), ((), ())), out_sharding=s)",
    "einsum": "jnp.einsum('ij,jk->ik', a, a, out_sharding=s)",
    "matmul": "jnp.matmul(a, a, out_sharding=s)",
    "dot": "jnp.dot(a, a, out_sharding=s)",
    "tensordot": "jnp.tensordot(a, a, 1, out_sharding=s)",
    "broadcasted_iota": "lax.broadcasted_iota(float, (4, 4), 1, out_sharding=s)",
    "reshape": "jnp.reshape(a, (4, 4), out_sharding=s)",
    "reshape in another order": "jnp.reshape(a, (4, 4), 'F', out_sharding=s)",
    "lax.reshape": "lax.reshape(a, (4, 4), out_sharding=s)",
    "ravel": "jnp.ravel(a, out_sharding=s)",
    "broadcast_in_dim": "lax.broadcast_in_dim(a, (4, 4), (0, 1), out_sharding=s)",
    "broadcast": "lax.broadcast(a, (2,), out_sharding=s)",
    "broadcast_to": "jnp.broadcast_to(a, (4, 4), out_sharding=s)",
    "reduce_sum": "lax.reduce_sum(a, (0,), out_sharding=s)",
    "reduce": "lax.reduce(a, 0., lax.add, (0,), out_sharding=s)",
    "zeros": "jnp.zeros((4, 4), out_sharding=s)",
    "full": "jnp.full((4, 4), 2., out_sharding=s)",
    "ones_like": "jnp.ones_like(a, out_sharding=s)",
    "array": "jnp.array([1., 2.], out_sharding=s)",
    "arange": "jnp.arange(4, out_sharding=s)",
    "repeat": "jnp.repeat(a, 2, axis=0, out_sharding=s)",
    "normal": "jax.random.normal(jax.random.key(0), (4, 4), out_sharding=s)",
    "bits": "jax.random.bits(jax.random.key(0), (4, 4), out_sharding=s)",
    "rng_bit_generator":
        "lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (4, 4), out_sharding=s)[1]",
    "convolution":
        "lax.conv_general_dilated(a[None, None], a[None, None], (1, 1), 'SAME', out_sharding=s)",
    "reshard": "jax.sharding.reshard(a, s)",
}
SEGMENTS = {f"segment_{how}":
            f"jax.ops.segment_{how}(a, jnp.array([0, 1, 1, 0]), 4, out_sharding=s)"
            for how in ("sum", "prod", "max", "min")}
# JAX asserts there that it is a sharding or a spec.
INDEXED = {
    "get": "a.at[jnp.array([0, 1])].get(out_sharding=s)",
    "set": "a.at[jnp.array([0, 1])].set(1., out_sharding=s)",
    "add": "a.at[jnp.array([0, 1])].add(1., out_sharding=s)",
}
NO_SHARDING = {"a text": "'x'", "a number": "3", "a tuple": "('x',)",
               "a device": "jax.devices()[0]",
               "one device": "SingleDeviceSharding(jax.devices()[0])"}
KINDS = {"auto": (AxisType.Auto, AxisType.Auto), "mixed": (AxisType.Auto, AxisType.Explicit),
         "explicit": (AxisType.Explicit, AxisType.Explicit)}
UNUSABLE = [
    ("no mesh", "P('x')"), ("no mesh", "P()"), ("auto", "P('x')"), ("mixed", "P('x')"),
    ("mixed", "P(('x', 'y'))"), ("no mesh", "NamedSharding(mesh_of('auto'), P('x'))"),
    ("auto", "NamedSharding(mesh_of('auto'), P('x'))"),
    ("mixed", "NamedSharding(mesh_of('mixed'), P(None, 'x'))"),
]
ELSEWHERE = [
    ("explicit", "NamedSharding(mesh_of('auto'), P())"),
    ("explicit", "NamedSharding(mesh_of('mixed'), P('y'))"),
    ("auto", "NamedSharding(mesh_of('explicit'), P('x'))"),
    ("explicit", "NamedSharding(jax.make_mesh((4,), ('x',), axis_types=(AxisType.Explicit,)),"
                 " P('x'))"),
]


def mesh_of(kind):
    return jax.make_mesh((2, 2), ("x", "y"), axis_types=KINDS[kind], devices=jax.devices()[:4])


def refused(source, given, kind):
    """Return the class and the beginning of the words with which ``source`` is refused."""
    names = {"jax": jax, "jnp": jnp, "lax": lax, "P": P, "NamedSharding": NamedSharding,
             "SingleDeviceSharding": SingleDeviceSharding, "AxisType": AxisType,
             "mesh_of": mesh_of, "a": jnp.ones((4, 4))}
    names["s"] = eval(given, names)
    context = jax.disable_jit(False) if kind == "no mesh" else jax.set_mesh(mesh_of(kind))
    try:
        with context:
            eval(source, names)
    except Exception as error:
        builtin = next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
        words = re.sub(r"^[\w.]+: ", "", str(error))
        # JAX names some with their module, and for two the functions by which it computes them.
        for name, other in (("jnp.", ""), ("reduce_sum", "reduce"),
                            ("conv_general_dilated", "dot_general")):
            words = words.replace(name, other)
        return f"{builtin}: {re.split(' Got | axis names| AbstractMesh| of the ', words)[0]}"
    return "taken"


@pytest.mark.parametrize("given", NO_SHARDING)
def test_what_is_no_sharding(jax_oracle, given):
    same(jax_oracle, f"{{name: refused(FUNCTIONS[name], {NO_SHARDING[given]!r}, 'explicit') "
         "for name in FUNCTIONS}", within=__name__)
    for name, source in INDEXED.items():
        assert refused(source, NO_SHARDING[given], "explicit") == (
            f"TypeError: `out_sharding` argument of .{name} only supports instances of "
            "`NamedSharding` or `PartitionSpec`.")


@pytest.mark.parametrize(("kind", "given"), UNUSABLE)
def test_specs_without_a_mesh_and_axes_that_are_not_explicit(jax_oracle, kind, given):
    same(jax_oracle, f"{{name: refused({{**FUNCTIONS, **INDEXED}}[name], {given!r}, {kind!r}) "
         "for name in [*FUNCTIONS, *INDEXED]}", within=__name__)


@pytest.mark.parametrize(("kind", "given"), ELSEWHERE)
def test_a_mesh_that_is_not_in_force(jax_oracle, kind, given):
    same(jax_oracle, f"{{name: refused({{**FUNCTIONS, **INDEXED}}[name], {given!r}, {kind!r}) "
         "for name in [*FUNCTIONS, *INDEXED] if name != 'reshard'}", within=__name__)


def test_sums_of_segments_are_sharded_as_requested(jax_oracle):
    def program():
        results = []
        with jax.set_mesh(mesh_of("explicit")):
            whole = jnp.arange(16.).reshape(8, 2)
            places = jnp.array([0, 0, 1, 2, 3, 3, 1, 0])
            for spec in (P("x"), P("x", "y"), P(), P(None, "y")):
                for rows, ids in ((whole, places), (jax.sharding.reshard(whole, P("x")), places),
                                  (whole, jax.sharding.reshard(places, P("y")))):
                    for fun in (jax.ops.segment_sum, jax.ops.segment_prod, jax.ops.segment_max,
                                jax.ops.segment_min):
                        found = fun(rows, ids, 4, out_sharding=spec)
                        results += [str(jax.typeof(found)), found]
                    results.append(jax.grad(lambda x, ids=ids, spec=spec: (jax.ops.segment_sum(
                        x, ids, 4, out_sharding=spec) ** 2).sum())(rows))
        return results

    same(jax_oracle, program, within=__name__)
    for given in NO_SHARDING.values():
        for name, source in SEGMENTS.items():
            assert refused(source, given, "explicit").startswith(
                f"TypeError: `out_sharding` argument of {name} only supports")


def test_lax_full_takes_shardings_and_specs_under_a_mesh():
    for given in ("'x'", "3", "jax.devices()[0]", "('x',)"):
        for source in ("lax.full((4, 4), 1., sharding=s)", "lax.full_like(a, 1., sharding=s)"):
            assert re.match("TypeError: sharding of (full|full_like) must be a jax.sharding",
                            refused(source, given, "explicit"))
    assert refused("lax.full((4, 4), 1., sharding=s)", "P('x')", "no mesh").startswith(
        "ValueError: Using PartitionSpec when you are not under a mesh context")
    with jax.set_mesh(mesh_of("explicit")):
        for given in (P("x"), NamedSharding(mesh_of("explicit"), P("x"))):
            assert jax.typeof(lax.full((4, 4), 1., sharding=given)).sharding.spec == P("x", None)


def test_what_broadcasting_does_not_change_is_sharded_as_requested(jax_oracle):
    same(jax_oracle, """(lambda context: [context.__enter__(), [
        str(jax.typeof(f(jnp.ones((4, 4)), P(*spec)))) for spec in (("x",), (None, "y"), ())
        for f in (lambda a, s: lax.broadcast_in_dim(a, (4, 4), (0, 1), out_sharding=s),
                  lambda a, s: jnp.broadcast_to(a, (4, 4), out_sharding=s),
                  lambda a, s: jnp.reshape(a, (4, 4), out_sharding=s),
                  lambda a, s: lax.broadcast(a, (), out_sharding=s))],
        context.__exit__(None, None, None)][1])(jax.set_mesh(mesh_of("explicit")))""",
         within=__name__)
