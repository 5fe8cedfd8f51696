"""Do transformations, control flow and shard_map keep how types say values are cut, as in JAX?

Types, values, shardings and refusals of grad, jit, vmap, scan, while, cond, custom rules,
checkpoint, shard_map, auto_axes and mixed meshes, each compared with JAX on eight CPU devices.

Invariant: every expected answer comes from JAX (``explicit.py``), but where a test says otherwise.
"""

from __future__ import annotations

import numpy as np
import pytest
from both import ours
from explicit import agree, check

import saem as jax
import saem.numpy as jnp
from saem.core.infer import check_jaxpr
from saem.sharding import AxisType, NamedSharding
from saem.sharding import PartitionSpec as P

pytestmark = pytest.mark.usefixtures("little_effort")

GROUPS = {
    "derivatives": [
        "V(jax.grad(lambda x: (jnp.sin(x) * 2).sum())(x))",
        "V(jax.grad(lambda a, b: (a * b).sum(), (0, 1))(x, xr))",
        "V(jax.grad(lambda a: (x + a[:, None]).sum())(v), jax.grad(lambda a: (x * "
        "a).sum())(A((4,), 'y')))",
        "V(jax.grad(lambda w: ((xr @ w) ** 2).sum())(A((4, 8), None, 'y')))",
        "V(jax.jit(jax.grad(lambda w: ((xr @ w) ** 2).sum()))(A((4, 8))))",
        "V(jax.grad(lambda a: jnp.dot(a, a.T, out_sharding=P('x')).sum())(x))",
        "t(jax.grad(lambda a, b: jnp.einsum('bij,bjk->bik', a, b).sum(), (0, 1))"
        "(A((8, 4, 2), 'x'), A((8, 2, 3), 'x')))",
        "t(jax.grad(lambda a: a.reshape(4, 2, 4).sum())(x), jax.grad(lambda a: jnp.max(a))(x))",
        "t(jax.grad(lambda a: jnp.concatenate([a, a]).sum())(x), jax.grad(lambda a: a[:, "
        "0].sum())(xr))",
        "t(jax.grad(lambda a: jnp.cumsum(a, 1).sum())(xr), jax.grad(lambda a: a.T.sum())(x))",
        "V(jax.grad(lambda a: jnp.where(a > 3, a, 0.).sum())(x))",
        "V(jax.grad(lambda a: (a.at[jnp.array([0, 2])].get(out_sharding=P(None, 'y')) ** "
        "2).sum())(x))",
        "V(jax.grad(lambda a: (jax.reshard(a, P('y')) ** 2).sum())(v))",
        "V(jax.jvp(jnp.tanh, (x,), (x,)))", "V(jax.vjp(jnp.tanh, x)[1](x))",
        "jax.vjp(jnp.tanh, x)[1](rep)", "jax.linearize(jnp.tanh, x)[1](rep)",
        "V(jax.jacfwd(jnp.sin)(v), jax.jacrev(jnp.sin)(v))", "V(jax.hessian(lambda x: "
        "jnp.sin(x).sum())(v))",
    ],
    "jit": [
        "V(jax.jit(lambda x: x * 2)(x), jax.jit(lambda x: x * 2)(rep), jax.jit(lambda x: x * "
        "2)(np.ones(8)))",
        "J(jax.jit(lambda x: x * 2), x)", "V(jax.jit(lambda: jnp.ones((8, 4)))())",
        "V(jax.jit(lambda x, y: x + y)(x, jnp.ones((8, 4))))",
        "S(jax.jit(lambda x: x * 2, out_shardings=P('y', 'x'))(x))",
        "V(jax.jit(lambda x: x * 2, in_shardings=NS(mesh, P('x')))(np.ones((8, 4))))",
        "jax.jit(lambda x: x * 2, in_shardings=P('y', 'x'))(x)",
        "S(jax.jit(lambda x: x * 2, donate_argnums=0)(x + 0))",
        "str(jax.eval_shape(lambda x: x.T * 2, x))",
        "J(lambda x: x * 2, jax.ShapeDtypeStruct((8, 4), np.float32, sharding=NS(mesh, P('x'))))",
        "J(lambda x: x * 2, jax.ShapeDtypeStruct((8, 4), np.float32, sharding=P('x')))",
        "repr(jax.jit(lambda x: x * 2).lower(jax.ShapeDtypeStruct((8, 4), np.float32, "
        "sharding=P('x'))).compile().output_shardings.spec)",
    ],
    "cotangents that were never put on the mesh": [
        "V(jax.vjp(jnp.sin, xr)[1](np.ones((8, 4), np.float32))[0])",
        "V(jax.linearize(jnp.sin, xr)[1](np.ones((8, 4), np.float32)))",
        "V(jax.linear_transpose(lambda x: x * 2, xr)(np.ones((8, 4), np.float32))[0])",
        "V(*jax.vjp(lambda x, w: x @ w, xr, jax.reshard(jnp.ones((4, 3)), P()))[1]("
        "np.ones((8, 3), np.float32)))",
        "jax.vjp(jnp.sin, xr)[1](xc)"],
    "unstacked values": [
        "V(jax.grad(lambda y: jnp.unstack(y, axis=-1)[0].sum())(xr))",
        "V(jax.jit(jax.grad(lambda y: (jnp.unstack(y, axis=1)[2] ** 2).sum()))(xr))"],
    "vmap": [
        "T(lambda x: jax.vmap(lambda r: r.sum())(x), x)",
        "V(jax.vmap(lambda r: r * 2 + jnp.arange(4.))(x), jax.vmap(jax.grad(lambda r: "
        "jnp.sin(r).sum()))(x))",
        "[str(a) for a in jax.make_jaxpr(jax.vmap(lambda r: r + 1, in_axes=1, "
        "out_axes=1))(x).out_avals]",
        "V(jax.vmap(lambda r: r @ jnp.ones((4, 3)))(xr))",
        "V(jax.vmap(jnp.sin, in_axes=1)(xr), jax.vmap(jnp.sin, in_axes=1, out_axes=1)(xr))",
        "V(jax.vmap(lambda r: jnp.where(jnp.isfinite(r), r, 0.), in_axes=1)(xr))",
        "jax.vmap(lambda r, s: r + s)(x, rep)", "jax.vmap(lambda r, s: r + s, (0, 1))(xr, A((4, "
        "8), None, 'y'))",
        "t(jax.vmap(lambda a, b: a @ b)(A((8, 2, 3), 'x'), A((8, 3, 2), 'x')))",
        "t(jax.vmap(lambda r: jnp.where(r > 0, r, 0.))(x), jax.vmap(jax.jit(lambda r: r * 2))(x))",
        "t(jax.vmap(jnp.sort)(xr), jax.vmap(lambda r: jax.reshard(r, P('y')))(xr))",
        "t(jax.vmap(lambda r: jnp.concatenate([r, jnp.ones(2)]))(xr))",
        "t(jax.vmap(lambda r: lax.scan(lambda c, a: (c + a, a), r[0], r)[0])(xr))",
        "t(jax.vmap(lambda r: lax.while_loop(lambda c: c[0] < 3, lambda c: c + 1, r))(xr))",
        "V(jax.vmap(lambda k: jax.random.normal(k, (2,)))(jax.device_put(jax.random.split("
        "jax.random.key(0), 8), P('x'))))",
    ],
    "control flow": [
        "V(lax.scan(lambda c, a: (c + a, a * 2), jnp.zeros(4, out_sharding=P('y')), xc))",
        "V(jax.grad(lambda x: lax.scan(lambda c, a: (c * a, a), jnp.ones(4, "
        "out_sharding=P('y')), x)"
        "[0].sum())(xc[:3]))",
        "J(lambda x: lax.scan(lambda c, a: (c + a, a * 2), jnp.zeros(4, out_sharding=P('y')), "
        "x), xc)",
        "lax.scan(lambda c, a: (c + a, a), jnp.zeros(4), xc)", "lax.scan(lambda c, a: (c, a), "
        "0., x)",
        "V(lax.while_loop(lambda c: c.sum() < 3000, lambda c: c * 2, x))",
        "J(lambda x: lax.while_loop(lambda c: c.sum() < 3, lambda c: c * 2, x), x)",
        "lax.while_loop(lambda c: c.sum() < 3, lambda c: c * 2 + x, rep)",
        "V(jax.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x).sum())(x))",
        "V(jax.grad(lambda x: lax.cond(x.sum() > 0, lambda a: a * 2, lambda a: a, x).sum())(x))",
        "J(lambda x: lax.cond(x.sum() > 0, lambda a: a * 2, lambda a: a, x), x)",
        "lax.cond(x.sum() > 0, lambda a: a * 2, lambda a: jax.reshard(a, P('x')), x)",
        "t(lax.map(lambda r: r * 2, xc), lax.associative_scan(jnp.add, xc))",
    ],
    "custom rules and checkpoint": [
        "V(jax.grad(lambda x: jax.checkpoint(lambda a: jnp.sin(jnp.sin(a)))(x).sum())(x))",
        "J(lambda x: jax.checkpoint(jnp.sin)(x), x)",
        "(lambda f: [f.defjvps(lambda t, out, x: t * jnp.cos(x)), "
        "V(jax.grad(lambda x: f(x).sum())(x))])(jax.custom_jvp(lambda x: jnp.sin(x)))[1]",
        "(lambda f: [f.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * x,)), "
        "V(jax.grad(lambda x: f(x).sum())(x))])(jax.custom_vjp(lambda x: jnp.sin(x)))[1]",
        "(lambda f: [f.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (jax.reshard(g, P(None, "
        "None)),)), "
        "V(jax.grad(lambda x: f(x).sum())(x))])(jax.custom_vjp(lambda x: jnp.sin(x)))[1]",
    ],
    "shard_map": [
        "V(jax.shard_map(lambda x: x * 2, in_specs=P('x', 'y'), out_specs=P('x', 'y'))(x))",
        "V(jax.shard_map(lambda x: lax.psum(x, 'x'), out_specs=P(None, 'y'))(x))",
        "V(jax.jit(jax.shard_map(lambda x: x * 2, in_specs=P('x'), out_specs=P('x'), "
        "axis_names={'x'}))(x))",
        "V(jax.jit(jax.shard_map(lambda x: lax.psum(x, 'x'), in_specs=P('x'), out_specs=P(), "
        "axis_names={'x'}))(x))",
        "V(jax.grad(lambda x: jax.shard_map(jnp.sin, in_specs=P('x'), out_specs=P('x'), "
        "axis_names={'x'})(x).sum())(x))",
        "jax.shard_map(lambda x: lax.psum(x, 'x'), in_specs=P('x'), out_specs=P())(x)",
        "jax.shard_map(lambda x: x, in_specs=P('x'), out_specs=P('x'))(rep)",
        "jax.shard_map(lambda x: x, in_specs=P('x'), out_specs=P('x'))(np.ones(8))",
        "jax.jit(jax.shard_map(lambda x: x, in_specs=P('x'), out_specs=P('x')))(jnp.ones(8))",
        "[np.asarray(jax.shard_map(lambda x: x * 2, in_specs=P(), out_specs=P())(np.ones(8, "
        "'f'))), np.asarray(jax.shard_map(lambda x: x * 2, out_specs=P())(np.ones(8, 'f')))]",
        "V(jax.shard_map(lambda x: x, in_specs=P('x'), out_specs=P('x'), axis_names={'x'})("
        "jnp.ones(8)))",
        "over((AT.Auto, AT.Explicit), lambda m: np.asarray(jax.shard_map(lambda x: x, "
        "in_specs=P('x'), out_specs=P('x'))(jnp.ones(8))))",
        "str(jax.make_jaxpr(jax.shard_map(lambda x: jnp.sin(x), in_specs=P('x'), out_specs=P('x'), "
        "axis_names={'x'}))(x).eqns[0].params['jaxpr'])",
        "(lambda seen: [jax.make_jaxpr(jax.shard_map(lambda x: (seen.append(str("
        "jax.sharding.get_abstract_mesh())), x)[1], in_specs=P('x'), out_specs=P('x'), "
        "axis_names={'x'}))(x), seen])([])[1]",
    ],
    "who decides": [
        "V(jax.sharding.auto_axes(lambda x: x.T.reshape(8, 4))(x, out_sharding=P('x', 'y')))",
        "J(jax.sharding.auto_axes(lambda x: x * 2, out_sharding=P('x', 'y')), x)",
        "J(jax.sharding.auto_axes(lambda x: x * 2, axes='y', out_sharding=P('x', 'y')), x)",
        "V(jax.grad(lambda x: jax.sharding.auto_axes(lambda x: x.T.reshape(8, 4) ** 2)"
        "(x, out_sharding=P('x', 'y')).sum())(x))",
        "J(jax.sharding.explicit_axes(lambda x: x * 2, in_sharding=P('x', 'y')), rep)",
        "jax.sharding.auto_axes(lambda x: x)(x)", "str(jax.sharding.get_abstract_mesh())",
        "S(jax.jit(lambda x: jax.sharding.auto_axes(lambda x: x @ x.T)(x, "
        "out_sharding=P('x')))(x))",
    ],
    "meshes of several types": [
        "over((AT.Explicit, AT.Auto), lambda m: (lambda a: [V(a, a * 2), t(a.sum(0), a.T)])("
        "jax.device_put(np.ones((8, 4)), NS(m, P('x', 'y')))))",
        "over((AT.Explicit, AT.Auto), lambda m: T(lambda a: lax.with_sharding_constraint("
        "a * 2, P(None, 'y')), jax.device_put(np.ones((8, 4)), NS(m, P('x')))))",
        "over((AT.Explicit, AT.Auto), lambda m: lax.with_sharding_constraint(jnp.ones((8, 4)), "
        "P('x')))",
        "over((AT.Explicit, AT.Auto), lambda m: S(jax.jit(lambda a: lax.with_sharding_constraint("
        "a * 2, P(None, 'y')))(jax.device_put(np.ones((8, 4)), NS(m, P('x'))))))",
        "over((AT.Auto, AT.Auto), lambda m: t(jax.device_put(np.ones((8, 4)), NS(m, P('x', "
        "'y')))))",
        "over((AT.Auto, AT.Auto), lambda m: J(jax.sharding.explicit_axes(lambda b: b * 2, "
        "in_sharding=P('x')), jax.device_put(np.ones((8, 4)), NS(m, P('x', 'y')))))",
        "over((AT.Auto, AT.Explicit), lambda m: V(jnp.ones((8, 4), out_sharding=P(None, 'y')) + "
        "1))",
    ],
}


# Two arrays on meshes of their own, both Explicit, and one on a mesh of an Auto axis.
TWO_MESHES_SETUP = '''
P, NS, AT = jax.sharding.PartitionSpec, jax.sharding.NamedSharding, jax.sharding.AxisType
m1 = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AT.Explicit,) * 2)
m2 = jax.make_mesh((8,), ("d",), axis_types=(AT.Explicit,))
a, b, auto = (jax.device_put(np.arange(32.0, dtype=np.float32).reshape(8, 4) / 4, s) for s in (
    NS(m1, P("a", "b")), NS(m2, P("d")), NS(jax.make_mesh((8,), ("q",), axis_types=(AT.Auto,)),
                                            P("q"))))

def M(call, f, **options):
    """Return types, places and values of ``call(jit(f))``, which is called three times."""
    f = jax.jit(f, **options)
    try:
        return [[(str(jax.typeof(x)), repr(x.sharding).replace(", memory_kind=device", ""),
                  np.asarray(x)) for x in jax.tree.leaves(call(f))] for _ in range(3)]
    except ValueError as error:
        return str(error).split("meshes: ")[-1].split(":")[0]
'''

TWO_MESHES = [
    "M(lambda f: f(a, b), lambda a, b: (a * 2, b + 1))",
    "M(lambda f: f(a, b), lambda a, b: (a.sum(0), b.sum(1), a.T))",
    "M(lambda f: f(b, a), lambda b, a: (jax.jit(jnp.sin)(a), b @ jnp.ones((4, 3))))",
    "M(lambda f: f(a, b), lambda a, b: a + jax.sharding.reshard(b, NS(m1, P('a', 'b'))))",
    "M(lambda f: f(a), lambda a: (a * 2, jax.sharding.reshard(a, NS(m2, P('d')))))",
    "M(lambda f: f(a), lambda a: jax.sharding.reshard(a, NS(m2, P('d'))) + 1)",
    "M(lambda f: f(a, b), lambda a, b: jax.vjp(lambda a, b: (jnp.sin(a), b * b), a, b)[1](("
    "a, b)))",
    "M(lambda f: f(a), jax.grad(lambda a: (jax.sharding.reshard(a, NS(m2, P('d'))) ** 2"
    ").sum()))",
    "M(lambda f: f(a, b), lambda a, b: jax.lax.scan(lambda c, _: ((c[0] * 2, c[1] + 1), None), "
    "(a, b), None, length=3)[0])",
    "M(lambda f: f(a, b), lambda a, b: jax.lax.cond(True, lambda a, b: (a * 2, b + 1), "
    "lambda a, b: (a, b), a, b))",
    "M(lambda f: f(a, b), lambda a, b: (a * 2, b + 1), out_shardings=(NS(m1, P()), None))",
    "M(lambda f: f(a, b), lambda a, b: (a * 2, b + 1), out_shardings=(None, NS(m2, P())))",
    "M(lambda f: f(a, b), lambda a, b: (a * 2, b + 1), in_shardings=(NS(m1, P('a', 'b')), "
    "NS(m2, P('d'))))",
    "M(lambda f: f.lower(a, b).compile()(a, b), lambda a, b: (a * 2, b + 1))",
    "M(lambda f: f(a + 0, b), lambda a, b: (a * 2, b + 1), donate_argnums=0)",
    "M(lambda f: f(auto, b), lambda a, b: (a * 2, b + 1))",
    "M(lambda f: f(a, b), lambda a, b: a + b)",
]


@pytest.mark.parametrize("group", GROUPS, ids=lambda name: name.replace(" ", "-"))
def test_transformations_keep_types_as_jax_does(jax_oracle, group):
    agree(jax_oracle, GROUPS[group])


@pytest.mark.parametrize("program", TWO_MESHES)
def test_programs_of_arrays_on_two_meshes_leave_each_on_its_own(jax_oracle, program):
    question = f"{TWO_MESHES_SETUP}\nresult = {program}"
    check(program, ours(question), jax_oracle.run(question).value)


@pytest.fixture(scope="module")
def mesh():
    return jax.make_mesh((4, 2), ("x", "y"))


@pytest.fixture
def x(mesh):
    return jax.device_put(np.arange(32.0).reshape(8, 4), NamedSharding(mesh, P("x", "y")))


PROGRAMS = {
    "grad": lambda x: jax.grad(lambda a: jnp.sin(a * a.sum(1, keepdims=True)).sum())(x),
    "vmap": lambda x: jax.vmap(lambda r: jnp.sin(r) * r.sum())(x),
    "loop": lambda x: jax.grad(lambda a: jax.lax.fori_loop(
        0, 3, lambda i, c: jnp.sin(c) * 2, a).sum())(x),
    "cond": lambda x: jax.lax.cond(x.sum() > 1, lambda a: a * 2, lambda a: -a, x),
    "hessian": lambda x: jax.jvp(jax.grad(lambda a: jnp.sin(a).sum()), (x,), (x,))[1],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_do_not_depend_on_how_a_value_is_cut(mesh, x, name):
    alone = PROGRAMS[name](jnp.asarray(np.asarray(x)))
    with jax.set_mesh(mesh):
        spread = jax.jit(PROGRAMS[name])(x)
        closed = jax.make_jaxpr(PROGRAMS[name])(x)
    check_jaxpr(closed)
    np.testing.assert_allclose(spread, alone, rtol=1e-5)
    np.testing.assert_allclose(jax.evaluate(closed, np.asarray(x))[0], alone, rtol=1e-5)


def test_a_cut_function_is_traced_once_for_each_cut(mesh):
    seen = []

    @jax.jit
    def double(a):
        seen.append(str(jax.typeof(a)))
        return a * 2

    for spec in (P("x"), P("y"), P("x"), P()):
        double(jax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, spec)))
    assert seen == ["float32[8@x,4]", "float32[8@y,4]", "float32[8,4]"]


def test_one_mesh_of_each_kind_stands_beside_the_others(mesh, x):
    auto = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
    free = jax.device_put(np.arange(8.0), NamedSharding(auto, P("d")))
    assert str(jax.typeof(free * 2)) == "float32[8]"
    assert str(jax.typeof(x * 2)) == "float32[8@x,4@y]"
    np.testing.assert_array_equal(free * 2, np.arange(8) * 2)
