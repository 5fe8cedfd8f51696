"""Does a program written for one device mean what JAX means by it?

Values, derivatives and jaxprs on a mesh of eight CPU devices are JAX's; the NumPy evaluator, which
runs all devices as one stack, is a third opinion.
"""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from both import same, same_error, source_of
from oracle import JaxError

import saem as jax
from saem import lax
from saem import numpy as jnp
from saem.core import axes
from saem.core.infer import check_jaxpr
from saem.sharding import Mesh, NamedSharding
from saem.sharding import PartitionSpec as P
from saem.test_util import check_grads

pytestmark = pytest.mark.usefixtures("little_effort")

X = np.random.RandomState(0).randn(8, 4).astype(np.float32)
W = np.random.RandomState(1).randn(4, 6).astype(np.float32)


def device_mesh():
    return Mesh(np.array(jax.devices()).reshape(4, 2), ("i", "j"))


def sm(f, i, o, **options):
    return jax.shard_map(f, mesh=device_mesh(), in_specs=i, out_specs=o, **options)


COLLECTIVES = [
    "sm(lambda x: x * 2, P('i', 'j'), P('i', 'j'))(x)",
    "sm(lambda x: lax.psum(x, 'i'), P('i'), P())(x)",
    "sm(lambda x: lax.psum(x, ('i', 'j')), P('i', 'j'), P())(x)",
    "sm(lambda x: lax.psum(x, 'j'), P('i'), P('i'))(x)",
    "sm(lambda x: lax.pmean(x, 'i'), P('i'), P())(x)",
    "sm(lambda x: lax.pmax(x, 'i') - lax.pmin(x, 'i'), P('i'), P())(x)",
    "sm(lambda x: lax.all_gather(x, 'i'), P('i'), P(None, 'i'))(x)",
    "sm(lambda x: lax.all_gather(x, ('i', 'j'), axis=1, tiled=True), P(('i', 'j')), P('i'), "
    "check_vma=False)(x)",
    "sm(lambda x: lax.all_gather(x, ('j', 'i')), P(('i', 'j')), P(None, 'i'), "
    "check_vma=False)(x)",
    "sm(lambda x: lax.all_gather(x, 'i', to='invarying'), P('i'), P())(x)",
    # along axes of which it varies along some only
    "sm(lambda x: lax.all_gather(x, ('i', 'j')), P('i'), P(('i', 'j')))(x)",
    "sm(lambda x: lax.all_gather(x, ('j', 'i'), axis=1, tiled=True), P('i'), P(('i', 'j')))(x)",
    "sm(lambda x: lax.all_to_all(x, ('i', 'j'), 0, 0, tiled=True), P(None, 'j'), "
    "P('i', 'j'))(x)",
    "sm(lambda x: lax.ppermute(x, ('i', 'j'), [(0, 7), (6, 1)]), P('i'), P(('i', 'j')))(x)",
    "sm(lambda x: lax.psum_scatter(x, 'i', tiled=True), P(None, 'i'), P('i'))(x)",
    "sm(lambda x: lax.psum_scatter(x[:4], 'i'), P(None, 'j'), P(('i', 'j')))(x)",
    "sm(lambda x: lax.psum_scatter(x, ('i', 'j')), P(), P(('i', 'j')))(x)",
    "sm(lambda x: lax.all_to_all(x, 'i', 1, 0, tiled=True), P('i'), P('i'))(x)",
    "sm(lambda x: lax.all_to_all(x, 'j', 1, 0), P('i', None), P('i', 'j'))(x[:, :2])",
    "sm(lambda x: lax.ppermute(x, 'i', [(0, 1), (1, 2), (3, 0)]), P('i'), P('i'))(x)",
    "sm(lambda x: lax.ppermute(x, ('i', 'j'), [(0, 7), (6, 1)]), P(('i', 'j')), P(('i', 'j')))(x)",
    "sm(lambda x: lax.ppermute(x, ('j', 'i'), [(0, 7), (6, 1), (1, 2)]), P(('i', 'j')), "
    "P(('i', 'j')))(x)",
    "sm(lambda x: lax.pshuffle(x, ('j', 'i'), [1, 2, 3, 4, 5, 6, 7, 0]), P(('j', 'i')), "
    "P(('j', 'i')))(x)",
    "sm(lambda x: lax.pshuffle(x, 'j', [1, 0]), P(None, 'j'), P(None, 'j'))(x)",
    "sm(lambda x: x + lax.axis_index('i') * 10 + lax.axis_index('j'), P('i', 'j'), "
    "P('i', 'j'))(x)",
    "sm(lambda: lax.axis_index(('j', 'i'))[None], (), P(('i', 'j')))()",
    "sm(lambda x: lax.psum(x, 'i', axis_index_groups=[[0, 1], [2, 3]]), P('i'), P('i'), "
    "check_vma=False)(x)",
    "sm(lambda x: x * lax.axis_size('i') + lax.psum(1, ('i', 'j')), P('i'), P('i'))(x)",
    "sm(lambda x: lax.psum(x > 0, 'i'), P('i'), P())(x)",
]
PROGRAMS = [
    "sm(lambda x, w: x @ w, (P('i'), P(None, 'j')), P('i', 'j'))(x, w)",
    "sm(lambda x, w: lax.psum(x @ w, 'j'), (P('i', 'j'), P('j')), P('i'))(x, w)",
    "sm(lambda d: {'s': d['a'] + d['b']}, ({'a': P('i'), 'b': P()},), {'s': P('i')})"
    "({'a': x, 'b': x[:2]})",
    "sm(lambda x: (x, 2.0), P('i'), (P('i'), P()))(x)[0]",
    "sm(lambda x: jax.jit(lambda y: lax.psum(jnp.sin(y) * np.arange(4.0, dtype=np.float32), 'i'))"
    "(x), P('i'), P())(x)",
    "sm(lambda y: y + jnp.asarray(x)[:2], P('i'), P('i'))(x)",
    "jax.jit(lambda x, w: sm(lambda y: y @ w, P('i'), P('i'))(x))(x, w)",
    "sm(lambda x: lax.scan(lambda c, y: (c + y, c), x[0], x), P('i'), (P('i'), P('i')))(x)",
    "sm(lambda x: lax.cond(lax.axis_index('i') > 1, lambda y: y * 2, lambda y: -y, x), "
    "P('i'), P('i'))(x)",
    "sm(lambda x: lax.fori_loop(0, 3, lambda k, c: lax.psum(c, 'i') * jnp.float32(0.1) + x, x), "
    "P('i'), P('i'))(x)",
    "sm(lambda x: jax.vmap(lambda r: lax.psum(r, 'i'))(x), P(None, 'i'), P())(x)",
    "sm(lambda x: lax.psum(x, 'i'), P('i'), P(), axis_names={'i'})(x)",
    "jax.jit(sm(lambda x: lax.psum(jnp.sin(x), 'i'), P('i'), P(), axis_names={'i'}))(x)",
    "jax.jit(sm(lambda x: x + lax.axis_index('i'), P('i'), P('i'), axis_names={'i'}))(x)",
]


def at_once(sources: list[str]) -> str:
    """Return an expression for the values of ``sources``, of one jitted function."""
    return f"jax.jit(lambda x, w: [{', '.join(sources)}])(x, w)"


@pytest.mark.parametrize("sources", [COLLECTIVES, PROGRAMS], ids=["collectives", "programs"])
def test_values_are_jax_s(jax_oracle, sources):
    same(jax_oracle, at_once(sources), rtol=1e-5, within=__name__, x=X, w=W)


def test_values_outside_jit_are_jax_s(jax_oracle):
    sources = [*COLLECTIVES[:3], *(s for s in COLLECTIVES if "lambda:" in s), *PROGRAMS[:6]]
    same(jax_oracle, f"[{', '.join(sources)}]", rtol=1e-5, within=__name__, x=X, w=W)


def test_the_numpy_evaluator_agrees():
    names = dict(globals())
    # Groups have no meaning on a stack.
    sources = [s for s in (*COLLECTIVES, *PROGRAMS) if "axis_index_groups" not in s]
    f = eval(f"lambda x, w: [{', '.join(sources)}]", names)
    closed = jax.make_jaxpr(f)(X, W)
    check_jaxpr(closed)
    wanted = [np.asarray(x) for x in jax.tree.leaves(jax.jit(f)(X, W))]
    for got, want in zip(jax.evaluate(closed, X, W), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


LOSSES = [
    "lambda x: sm(lambda x: lax.psum((x ** 3).sum(), 'i'), P('i'), P())(x)",
    "lambda x: sm(lambda x, w: lax.psum(jnp.sin(x @ w).sum(), ('i', 'j')), (P('i', 'j'), P('j')), "
    "P())(x, w)",
    "lambda w: sm(lambda x, w: lax.psum(jnp.sin(x @ w).sum(), 'i'), (P('i'), P()), P())(x, w)",
    "lambda w: (sm(lambda x, w: jnp.sin(lax.psum(x @ w, 'j')), (P('i', 'j'), P('j')), P('i'))"
    "(x, w) ** 2).sum()",
    "lambda w: sm(lambda x: jnp.cos(x @ w), P('i'), P('i'))(x).sum()",
    "lambda x: (sm(lambda x: lax.all_gather(jnp.sin(x), 'i', tiled=True) * x.sum(), P('i'), "
    "P(None, 'i'))(x) ** 2).sum()",
    "lambda x: (sm(lambda x: lax.ppermute(x * x, 'i', [(0, 1), (1, 2), (2, 3), (3, 0)]), P('i'), "
    "P('i'))(x) * x).sum()",
    "lambda x: (sm(lambda x: lax.psum_scatter(jnp.sin(x), 'j', tiled=True), P('i'), "
    "P(('i', 'j')))(x) ** 2).sum()",
    "lambda x: (sm(lambda x: lax.all_to_all(jnp.sin(x), 'i', 1, 0, tiled=True), P('i'), P('i'))(x)"
    " ** 2).sum()",
    "lambda x: sm(lambda x: lax.scan(lambda c, y: (jnp.sin(c + y), c), x[0], x)[1], P('i'), "
    "P('i'))(x).sum()",
    "lambda x: sm(lambda x: x * lax.psum(jnp.float32(2.0) * lax.axis_index('i'), 'i'), P('j'), "
    "P('j'))(x).sum()",
]


@pytest.mark.parametrize("check", [True, False])
def test_gradients_are_jax_s(jax_oracle, check):
    sources = [f"jax.grad({s})({s[7]})" for s in LOSSES]
    text = at_once(sources)
    if not check:
        text = text.replace("out_specs=o,", "out_specs=o, check_vma=False,")
    same(jax_oracle, text, rtol=3e-5, within=__name__, x=X, w=W)


def test_gradients_inside_are_jax_s(jax_oracle):
    """With check_vma the gradient by a shared operand is summed; without, it is each device's."""
    sources = [
        "sm(jax.grad(lambda w, x: jnp.sin(x @ w).sum()), (P(), P('i')), P())(w, x)",
        "sm(jax.grad(lambda w, x: lax.psum(jnp.sin(x @ w).sum(), 'i')), (P(), P('i')), P())(w, x)",
        "sm(jax.grad(lambda w, x: lax.pmean(jnp.sin(x @ w).sum(), ('i', 'j'))), "
        "(P('j'), P('i', 'j')), P('j'))(w, x)",
        "sm(lambda w, x: jax.grad(lambda w: jnp.sin(x @ w).sum())(w)[None], (P(), P('i')), "
        "P('i'), check_vma=False)(w, x)",
        "sm(lambda w, x: jax.grad(lambda w: lax.psum(jnp.sin(x @ w).sum(), 'i'))(w)[None], "
        "(P(), P('i')), P('i'), check_vma=False)(w, x)",
        "sm(lambda x: jax.jvp(lambda x: lax.psum(x ** 2, 'i'), (x,), (x,)), P('i'), (P(), P()))(x)",
        "sm(jax.grad(lambda w, x: jax.jit(lambda v: jnp.sin(x @ v).sum())(w)), (P(), P('i')), "
        "P())(w, x)",
    ]
    same(jax_oracle, at_once(sources), rtol=3e-5, within=__name__, x=X, w=W)


@pytest.mark.parametrize("check", [True, False])
def test_derived_programs_are_well_formed_and_evaluate(check):
    names = dict(globals(), sm=functools.partial(sm, check_vma=check))
    sources = [f"jax.grad({s})({s[7]})" for s in LOSSES] + [s for s in WITHIN if "while" not in s]
    f = eval(f"lambda x, w: [{', '.join(sources)}]", names)
    closed = jax.make_jaxpr(f)(X, V)
    check_jaxpr(closed)
    wanted = [np.asarray(x) for x in jax.tree.leaves(jax.jit(f)(X, V))]
    for got, want in zip(jax.evaluate(closed, X, V), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_jvp_vmap_and_second_derivatives_are_jax_s(jax_oracle):
    f = "sm(lambda x: lax.psum(jnp.sin(x), 'i'), P('i'), P())"
    xs = "jnp.stack([x, x * 2, x + 1, x - 1])"
    same(jax_oracle, at_once([
        f"jax.jvp({f}, (x,), (x * x,))",
        f"jax.vmap({f})({xs})",
        f"jax.vmap({f}, in_axes=1, out_axes=1)({xs}.transpose(1, 0, 2))",
        f"jax.vmap({f}, spmd_axis_name='j')({xs})",
        f"jax.vmap(jax.grad(lambda x: {f}(x).sum()), spmd_axis_name='j')({xs})",
        f"jax.grad(lambda x: (jax.grad(lambda y: ({f}(y) ** 3).sum())(x) ** 2).sum())(x)",
        f"jax.grad(lambda x: jax.vmap({f})({xs}).sum())(x)",
    ]), rtol=5e-5, within=__name__, x=X, w=W)


@jax.custom_jvp
def cj(x):
    return jnp.sin(x)


cj.defjvp(lambda p, t: (jnp.sin(p[0]), t[0] * jnp.cos(p[0]) * 2))


def ruled(combine):
    """Return sin(x @ w) with a backward rule that combines what devices add to w's cotangent."""
    @jax.custom_vjp
    def f(x, w):
        return jnp.sin(x @ w)

    def back(saved, ct):
        x, w = saved
        ct = ct * jnp.cos(x @ w)
        return ct @ w.T, combine(x.T @ ct)

    f.defvjp(lambda x, w: (jnp.sin(x @ w), (x, w)), back)
    return f


cv = ruled(lambda ct: lax.psum(ct, "i"))
apart = ruled(lambda ct: ct)
V = W[:, :4]
WITHIN = [
    "jax.grad(lambda x: sm(cj, P('i'), P('i'))(x).sum())(x)",
    "sm(jax.grad(lambda w, x: cj(x @ w).sum()), (P(), P('i')), P())(w, x)",
    "sm(jax.grad(lambda w, x: cv(x, w).sum()), (P(), P('i')), P())(w, x)",
    "jax.grad(lambda w: sm(jax.checkpoint(lambda x, w: jnp.sin(jnp.sin(x @ w) @ w)), "
    "(P('i'), P()), P('i'))(x, w).sum())(w)",
    "jax.grad(lambda w: jax.checkpoint(sm(lambda x, w: jnp.sin(jnp.sin(x @ w) @ w), "
    "(P('i'), P()), P('i')))(x, w).sum())(w)",
    "sm(jax.grad(jax.checkpoint(lambda w, x: jnp.sin(jnp.sin(x @ w) @ w).sum())), (P(), P('i')), "
    "P())(w, x)",
    "sm(jax.grad(lambda w, x: lax.scan(lambda c, _: (jnp.sin(c @ w), None), x, None, length=3)[0]"
    ".sum()), (P(), P('i')), P())(w, x)",
    "jax.grad(lambda x: sm(lambda x: lax.scan(lambda c, y: (c + lax.psum(y * jnp.sin(y), 'i'), c), "
    "lax.psum(x[0], 'i'), x)[0], P('i'), P())(x).sum())(x)",
    "jax.grad(lambda x: sm(lambda x: lax.cond(lax.axis_index('i') > 1, jnp.sin, lambda y: y * y, x)"
    ", P('i'), P('i'))(x).sum())(x)",
    "sm(lambda x: lax.while_loop(lambda c: (c ** 2).sum() < 100, lambda c: c * 2, x), P('i'), "
    "P('i'))(x)",
    "jax.grad(lambda w: sm(jax.jit(lambda x, w: lax.psum(jnp.sin(x @ w), 'i')), (P('i'), P()), "
    "P())(x, w).sum())(w)",
    "sm(jax.vmap(jax.grad(lambda r: lax.psum(jnp.sin(r).sum(), 'i'))), P(None, 'i'), P(None, 'i'))"
    "(x)",
    "jax.hessian(sm(lambda v: lax.psum(jnp.sin(v * v).sum(), 'i'), P('i'), P()))(x[:, 0])",
    "jax.linearize(sm(jnp.sin, P('i'), P('i')), x)[1](x)",
    "jax.vmap(jax.grad(lambda x: sm(lambda x: lax.scan(lambda c, y: (jnp.sin(c + y), c), x[0], x)"
    "[1], P('i'), P('i'))(x).sum()))(jnp.stack([x, 2 * x]))",
    "sm(lambda x: lax.fori_loop(0, 3, lambda _, c: lax.ppermute(c[0] + c[1], 'i', "
    "[(k, (k + 1) % 4) for k in range(4)]) * jnp.stack([x, -x]), jnp.stack([x, x * 2])), P('i'), "
    "P(None, 'i'))(x)",
]


def test_with_every_other_transformation(jax_oracle):
    same(jax_oracle, at_once(WITHIN), rtol=5e-5, within=__name__, x=X, w=V)


@pytest.mark.parametrize("source", [
    "sm(jax.grad(lambda w, x: apart(x, w).sum()), (P(), P('i')), P())(w, x)",
    "jax.grad(lambda w: sm(lambda w, x: apart(x, w), (P(), P('i')), P('i'))(w, x).sum())(w)",
])
def test_a_backward_rule_must_sum_over_devices(jax_oracle, source):
    same_error(jax_oracle, source, "so the manual axis types do not match", within=__name__,
               x=X, w=V)


def test_a_name_mapped_outside_is_known_inside():
    """JAX refuses to sum over a mesh axis and a mapped one at once."""
    stack = np.stack([X, 2 * X, 3 * X])
    f = jax.shard_map(lambda x: lax.psum(x, ("i", "k")), mesh=device_mesh(), in_specs=P("i"),
                      out_specs=P())
    got = jax.vmap(f, axis_name="k")(stack)
    np.testing.assert_allclose(
        got, np.broadcast_to(6 * X.reshape(4, 2, 4).sum(0), (3, 2, 4)), rtol=1e-5)


def test_nested_by_axis():
    mesh = device_mesh()
    inner = jax.shard_map(lambda x: lax.psum(x, "j"), in_specs=P("j"), out_specs=P(),
                          axis_names={"j"})
    outer = jax.jit(jax.shard_map(lambda x: inner(x) + lax.psum(x, "i")[:1], mesh=mesh,
                                  in_specs=P("i"), out_specs=P("i"), axis_names={"i"}))
    blocks = X.reshape(4, 2, 4)
    want = blocks.sum(1, keepdims=True) + blocks.sum(0)[None, :1]
    np.testing.assert_allclose(outer(X), want.reshape(4, 4), rtol=1e-5)


def test_a_result_summed_over_axes_of_both_is_whole(jax_oracle):
    same(jax_oracle, """jax.jit(sm(lambda x: jax.shard_map(
        lambda x: lax.psum(x, ("i", "j")), in_specs=P("j"), out_specs=P(), axis_names={"j"})(x),
        P("i"), P(), axis_names={"i"}))(x)""", within=__name__, x=X, rtol=1e-5)


JAXPRS = [
    "sm(lambda x: x * 2, P('i'), P('i'), axis_names={'i'})",
    "sm(lambda x: lax.psum(x, 'i'), P('i'), P(), axis_names={'i'})",
    "sm(lambda x: lax.psum(x, 'i'), P('i'), P(), axis_names={'i'}, check_vma=False)",
    "sm(lambda x: lax.pmean(x, 'i'), P(), P(), axis_names={'i'})",
    "sm(lambda x: lax.pmax(x, 'i'), P('i'), P(), axis_names={'i'})",
    "sm(lambda x: lax.all_gather(x, 'i'), P('i'), P(None, 'i'), axis_names={'i'})",
    "sm(lambda x: lax.all_gather(x, 'i', to='invarying'), P('i'), P(), axis_names={'i'})",
    "sm(lambda x: x + lax.axis_index('i'), P('i'), P('i'), axis_names={'i'})",
    "sm(lambda x: lax.pcast(x, 'i', to='varying'), P(), P('i'), axis_names={'i'})",
    "sm(lambda x: x, P(), P('i'), axis_names={'i'})",
    "sm(lambda x: jax.jit(lambda y: y * 2)(x), P('i'), P('i'), axis_names={'i'})",
    "jax.vmap(sm(lambda x: lax.psum(x, 'i'), P('i'), P(), axis_names={'i'}), in_axes=0)",
    "sm(lambda x: jax.jvp(lambda x: lax.psum(x, 'i'), (x,), (x,)), P('i'), P(), axis_names={'i'})",
]


def test_jaxprs_print_as_jax_s(jax_oracle):
    text = [f"str(jax.make_jaxpr({s})({'np.stack([x, x])' if 'vmap' in s else 'x'}))"
            for s in JAXPRS]
    same(jax_oracle, f"[{', '.join(text)}]", within=__name__, x=X)


def test_the_text_between_devices_is_jax_s(jax_oracle):
    """The collective and its groups of devices are written as JAX writes them."""
    sources = [s for s in COLLECTIVES if "psum(x > 0" not in s and "lambda:" not in s]
    functions = ", ".join(f"lambda x, w: {source}" for source in sources)
    same(jax_oracle, f"[between_devices(f, x, w) for f in [{functions}]]", within=__name__,
         x=X, w=W)


def between_devices(f, x, w):
    """Return what the lowered text says of groups of devices, axes and shardings."""
    lowered = jax.jit(f).lower(x, w).as_text()
    return [*re.findall(r"(?:replica_groups|source_target_pairs) = dense<.*?>", lowered),
            *re.findall(r"(?:all_gather_dim|scatter_dimension|split_count|split_dimension|"
                        r"concat_dimension) = [0-9]+", lowered),
            *re.findall(r"(?:in_shardings|out_shardings|manual_axes)=.*? ", lowered)]


def types_inside(f, x):
    """Return the types of what ``f`` gives of a part of ``x``, and of its gradient there."""
    found = []

    def note(part):
        grads = jax.grad(lambda v: sum(jnp.sum(o) for o in jax.tree.leaves(f(v))))(part)
        found.extend(str(jax.typeof(o)) for o in jax.tree.leaves((f(part), grads)))
        return part

    jax.eval_shape(sm(note, P("i", "j"), P("i", "j")), x)
    return found


def test_folds_and_gradients_of_linear_functions_vary_as_their_operands(jax_oracle):
    functions = ", ".join([
        "lambda x: lax.reduce_window(lax.stop_gradient(x), 1., lax.mul, (1, 2), (1, 1), 'VALID')",
        "lambda x: lax.reduce(x, 1., lambda a, b: a * b, (1,))",
        "lambda x: lax.reduce(lax.stop_gradient((x, x)), (1., 0.),"
        " lambda a, b: (a[0] * b[0], a[1] + b[1]), (0,))",
        "lambda x: lax.reduce_precision(x, 5, 5)", "lambda x: jnp.pad(x, 1)",
        "lambda x: lax.dynamic_update_slice(jnp.zeros((3, 3)), x, (0, 0))",
        "lambda x: lax.rev(x, (0,))", "lambda x: lax.optimization_barrier(x)", "lambda x: x",
        "lambda x: x.sum(0)",
        "lambda x: jax.ops.segment_sum(x, jnp.array([0, 0]), 2)",
        "lambda x: lax.custom_root(lambda v: v - x, x, lambda f, v: v - f(v), lambda g, y: y)",
    ])
    same(jax_oracle, f"[types_inside(f, x) for f in [{functions}]]", within=__name__, x=X)


def test_second_derivatives_of_a_solution_are_each_device_s(jax_oracle):
    """Where the matrix differs between devices and the right side does not."""
    f = ("sm(lambda x: jnp.linalg.solve(x + 9 * jnp.eye(2), jnp.ones((2, 1))), P('i', 'j'), "
         "P('i', 'j'))")
    slope = f"jax.grad(lambda x: jnp.sin({f}(x)).sum())"
    same(jax_oracle, f"({slope}(x), *jax.jvp({slope}, (x,), (x,)), jax.vjp({slope}, x)[1](x))",
         within=__name__, rtol=2e-5, x=X + 2)


@pytest.mark.parametrize(("source", "sentence"), [
    ("sm(lambda x: x, P('i'), P())(x)", "was given out_specs which require replication which can't "
     "be statically inferred given the mesh"),
    ("sm(lambda x: x, P('i'), P())(x)", "which implies that the corresponding output value is only "
     "varying across mesh axes {} and not {i}, but it was inferred to be possibly varying over "
     "{i}"),
    ("sm(lambda x: lax.psum(x, ('i', 'j')), P('i'), P())(x)",
     "jax.lax.psum can only accept axis_name which corresponds to one of varying"),
    ("sm(lambda x: x, P('i', None, 'j'), P('i'))(x)", "in_specs is P('i', None, 'j') which has "
     "length 3, but the passed args[0]"),
    ("sm(lambda x: x.sum(), P('i'), P('i'))(x)", "out_specs is P('i',) which has length 1"),
    ("sm(lambda x: x, P('i', 'i'), P('i'))(x)", "has duplicate entries for `i`"),
    ("sm(lambda x: x, P('i'), P('i', 'i'))(x)", "has duplicate entries for `i`"),
    ("sm(lambda x: x, P('k'), P('i'))(x)", "shard_map in_specs argument must refer to an axis "
     "marked as manual"),
    ("sm(lambda x: x, P('i'), P('k'))(x)", "out_specs refers to 'k'"),
    ("sm(lambda x: x, P(None, 'i'), P('i'))(x[:, :3])", "maps array axis 1 (of size 3) to mesh "
     "axis 'i' (of size 4), but 4 does not evenly divide 3"),
    ("sm(lambda x: x, (P('i'), P()), P('i'))(x)", "pytree structure error"),
    ("sm(lambda x: x, 'i', P('i'))(x)",
     "shard_map in_specs argument must be a pytree of `jax.sharding.PartitionSpec` instances"),
    ("sm(lambda x: x, P('i'), P('i'), axis_names={'k'})(x)", "to be a subset of mesh.axis_names="),
    ("sm(lambda x: x, P('i'), P('i'), axis_names='i')(x)",
     "`axis_names` argument of shard_map should be of type `frozenset` or `set`"),
    ("sm(lambda x: lax.psum(x, 'k'), P('i'), P('i'), check_vma=False)(x)",
     "unbound axis name: k"),
    ("sm(lambda x: jax.vjp(lambda x: lax.psum(x, 'i'), x)[1](x)[0], P('i'), P('i'))(x)",
     "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got float32[2,4]{V:i}, "
     "but expected float32[2,4]"),
    ("sm(lambda x: lax.pcast(x, 'i', to='varying'), P('i'), P('i'))(x)",
     "Unsupported pcast from=varying, to='varying'"),
    ("jax.shard_map(lambda x: x, in_specs=P('i'), out_specs=P('i'))(x)",
     "The context mesh cannot be empty"),
])
def test_errors_are_jax_s(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence, within=__name__, x=X)
    assert axes.state.env == () and not axes.state.checked


def test_a_constraint_names_no_manual_axis(jax_oracle):
    question = """sm(lambda x: lax.with_sharding_constraint(
        x, NamedSharding(device_mesh(), P("i"))), P("i"), P("i"))(x)"""
    with pytest.raises(JaxError, match="ValueError: Axes mentioned in"):
        jax_oracle.run(source_of(question, __name__, "x"), x=X)
    with pytest.raises(ValueError, match=r"names the manual axes .'i'.: inside shard_map"):
        sm(lambda x: lax.with_sharding_constraint(x, NamedSharding(device_mesh(), P("i"))),
           P("i"), P("i"))(X)


def test_the_mesh_in_force_and_the_decorator():
    mesh = device_mesh()
    with jax.set_mesh(mesh):
        @jax.shard_map(in_specs=P("i"), out_specs=P())
        def f(x):
            return lax.psum(x, "i")

        np.testing.assert_allclose(f(X), X.reshape(4, 2, 4).sum(0), rtol=1e-5)


def test_results_lie_where_the_specs_say():
    mesh = device_mesh()
    double = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P("i", "j"), out_specs=P("i", "j"))
    for f in (double, jax.jit(double)):
        out = f(X)
        assert out.sharding.is_equivalent_to(NamedSharding(mesh, P("i", "j")), 2)
        np.testing.assert_array_equal(out.addressable_shards[3].data, X[2:4, 2:] * 2)


def test_types_say_where_values_vary():
    seen = []

    def f(x, w):
        seen.extend([jax.typeof(x).vma, jax.typeof(w).vma, jax.typeof(x @ w).vma,
                     jax.typeof(lax.psum(x, "i")).vma, jax.typeof(jnp.zeros(2)).vma])
        return x @ w

    jax.shard_map(f, mesh=device_mesh(), in_specs=(P("i", None), P(None, "j")),
                  out_specs=P("i", "j"))(X, W)
    assert seen == [{"i"}, {"j"}, {"i", "j"}, set(), set()]
    assert jax.typeof(X).vma == frozenset()


def test_a_constraint_lies_along_the_mapped_axis(jax_oracle):
    def program(x):
        place = NamedSharding(device_mesh(), P("j"))
        constrain = lambda x: lax.with_sharding_constraint(x, place)
        text = str(jax.make_jaxpr(jax.vmap(constrain, spmd_axis_name="i"))(x))
        return [line for line in text.splitlines() if "sharding=" in line]

    same(jax_oracle, program, x=X)


def test_a_carry_that_is_cast_starts_varying():
    start = lambda: lax.pcast(jnp.zeros(4), "i", to="varying")
    f = jax.shard_map(lambda x: lax.scan(lambda c, y: (c + y, c), start(), x),
                      mesh=device_mesh(), in_specs=P("i"), out_specs=(P("i"), P("i")))
    total, before = f(X)
    blocks = X.reshape(4, 2, 4)
    np.testing.assert_allclose(total, blocks.sum(1).reshape(16), rtol=1e-5)
    np.testing.assert_allclose(
        before, np.stack([np.zeros_like(blocks[:, 0]), blocks[:, 0]], 1).reshape(8, 4), rtol=1e-5)


def by_hand(f, out_specs=P("i"), **kwargs):
    """Return the jaxpr of ``f`` on parts along i, or the first words of the refusal."""
    try:
        return str(jax.make_jaxpr(jax.shard_map(
            f, mesh=device_mesh(), in_specs=P("i"), out_specs=out_specs, **kwargs))(X))
    except Exception as error:
        kind = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        words = [part.strip() for part in str(error).split("\n") if "manual axis types" in part]
        return [kind.__name__, *(w[:60] for w in words)]


CARRIES = [
    "lambda c: lax.scan(lambda s, r: (s + r, None), jnp.zeros(4), c)[0]",
    "lambda c: lax.scan(lambda s, r: ((s[0] + r, s[1]), None), (jnp.zeros(4), jnp.ones(3)), "
    "c)[0][0]",
    "lambda c: lax.scan(lambda s, _: (lax.psum(s, 'i'), None), c, None, length=2)[0]",
    "lambda c: lax.while_loop(lambda s: s.sum() < 2, lambda s: s + c.sum(), jnp.zeros(()))[None]",
    "lambda c: lax.scan(lambda s, _: (lax.scan(lambda u, r: (u + r, None), s, c)[0], None), "
    "jnp.zeros(4), None, length=2)[0]",
    "lambda c: lax.map(lambda r: r + c.sum(), jnp.ones(4))",
    "lambda c: lax.fori_loop(0, c.shape[0], lambda i, s: s + c.sum(), c.sum())[None]",
    "lambda c: lax.scan(lambda s, r: (s + r, None), lax.pcast(jnp.zeros(4), 'i', "
    "to='varying'), c)[0]",
]
BRANCHES = [
    "lambda c: lax.cond(True, lambda: c.sum(), lambda: 0.)[None]",
    "lambda c: lax.cond(True, lambda: (c.sum(), 1.), lambda: (c.sum(), c.sum()))[0][None]",
    "lambda c: lax.switch(1, [lambda: c.sum(), lambda: 0., lambda: c.sum()])[None]",
    "lambda c: lax.cond(True, lambda c: c * 2, lambda c: c + 1, c)",
]


def test_what_varies_is_said_as_jax_asks_for(jax_oracle):
    same(jax_oracle, f"[{', '.join(f'by_hand({f})' for f in CARRIES + BRANCHES)}]",
         within=__name__, X=X)


def test_loops_of_the_library_and_of_choices_start_varying():
    """Of users' loops alone it is asked what varies, and not where devices choose separately."""
    library = lambda c: jnp.searchsorted(c[0], c[1])
    chosen = lambda c: lax.fori_loop(
        0, 3, lambda i, s: lax.cond(c.sum() > 0, lambda: 1.0, lambda: 2.0), 0.0)[None]
    for f in (library, chosen):
        assert isinstance(by_hand(f), str), by_hand(f)


def test_the_mesh_in_force_is_the_mesh(jax_oracle):
    same(jax_oracle, "[refused(lambda: jax.shard_map(lambda c: c, mesh=jax.make_mesh(*shape, "
         "axis_types=(kind,) * len(shape[0])), in_specs=P('i'), out_specs=P('i'))(X)) for shape in "
         "(((4, 2), ('i', 'j')), ((4,), ('i',))) for kind in jax.sharding.AxisType "
         "if 'M' not in str(kind)]", within=__name__, X=X)


def refused(program):
    """Return the first words with which a program under the usual mesh is refused, "" if not."""
    with jax.set_mesh(device_mesh()):
        try:
            program()
        except ValueError as error:
            return re.sub("^[a-z_.]+: ", "", str(error))[:20]
    return ""


def test_a_branch_chosen_by_each_device_varies():
    """The branches are the same everywhere, but not which is taken: JAX calls that unvarying."""
    with pytest.raises(ValueError, match="can't be statically inferred"):
        jax.shard_map(lambda x: lax.cond(x[0, 0] > 0, lambda: 1.0, lambda: 2.0),
                      mesh=device_mesh(), in_specs=P("i"), out_specs=P())(X)


@pytest.mark.parametrize("choose", [
    lambda a, b: lax.cond(lax.axis_index("i") > 0, lambda u, w: u * w, lambda u, w: jnp.sin(u) + w,
                          a, b),
    lambda a, b: lax.cond(lax.axis_index("i") > 0, lambda: a * b, lambda: jnp.sin(a) + b),
    lambda a, b: lax.switch(
        lax.axis_index("i"), [lambda u: jnp.sin(u) + b, *[lambda u: u * b] * 3], a),
], ids=["operands", "closed-over", "switch"])
def test_devices_that_choose_a_branch_each_add_their_derivatives(choose):
    """JAX takes operands that are the same everywhere to have one derivative, and loses the others.

    So what is expected is of `where`, which computes both branches, and finite differences.
    """
    def by_where(a, b):
        return jnp.where(lax.axis_index("i") > 0, a * b, jnp.sin(a) + b)

    def loss(f):
        return lambda a, b: (sm(f, (P(), P("j")), P(("i", "j")))(a, b) ** 2).sum()

    args = X[0, :2], X[1]
    want = jax.grad(loss(by_where), (0, 1))(*args)
    for derived in (jax.grad(loss(choose), (0, 1)), jax.jit(jax.grad(loss(choose), (0, 1)))):
        for mine, theirs in zip(derived(*args), want):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5)
    check_grads(loss(choose), args, order=2, atol=0.05, rtol=0.05)
    inside = [sm(jax.grad(lambda a, b, f=f: f(a, b).sum()), (P(), P("j")), P())(*args)
              for f in (choose, by_where)]
    np.testing.assert_allclose(*inside, rtol=1e-5)


def test_the_older_name_says_so():
    with pytest.warns(DeprecationWarning, match="Use jax.shard_map instead"):
        f = jax.experimental.shard_map.shard_map(
            lambda x: lax.psum(x, "i"), device_mesh(), in_specs=P("i"), out_specs=P())
    np.testing.assert_allclose(f(X), X.reshape(4, 2, 4).sum(0), rtol=1e-5)


def test_smap_maps_one_axis():
    mesh = device_mesh()
    with jax.set_mesh(mesh):
        f = jax.jit(jax.smap(lambda x: x - lax.pmean(x, "i"), in_axes=0, out_axes=0,
                             axis_name="i"))
        blocks = X.reshape(4, 2, 4)
        np.testing.assert_allclose(f(X), (blocks - blocks.mean(0)).reshape(8, 4), rtol=1e-5,
                                   atol=1e-6)


def test_a_jitted_shard_map_is_traced_once():
    seen = []

    def part(x):
        seen.append(x.shape)
        return lax.psum(x, "i")

    f = jax.jit(jax.shard_map(part, mesh=device_mesh(), in_specs=P("i"), out_specs=P()))
    for _ in range(3):
        f(X)
    assert seen == [(2, 4)]


def test_effects_of_what_is_known_are_kept_by_grad():
    seen: list = []

    def body(x, y):
        jax.debug.callback(lambda total: seen.append(int(total)), y.sum())
        return x * 2

    f = jax.shard_map(body, mesh=device_mesh(), in_specs=(P("i"), P("i")), out_specs=P("i"))
    got = jax.grad(lambda x: f(x, jnp.arange(8)).sum())(jnp.ones(8))
    jax.effects_barrier()
    np.testing.assert_array_equal(got, np.full(8, 2.0))
    assert sorted(set(seen)) == [1, 5, 9, 13]


def test_results_have_the_shardings_that_were_asked_for(jax_oracle):
    def program():
        seen = []
        for shape, names in (((8,), ("i",)), ((1,), ("i",)), ((4, 1), ("i", "j"))):
            devices = np.array(jax.devices()[:np.prod(shape)]).reshape(shape)
            mesh = jax.sharding.Mesh(devices, names)
            for spec in (P(), P(None), P("i"), P("i", None), P(None, names[-1]), P(None, None)):
                def place(spec, mesh=mesh):
                    return jax.sharding.NamedSharding(mesh, spec)

                def part(x, spec=spec):
                    return x if "i" in str(spec) else lax.psum(x, "i")

                x = jnp.ones((8, 8))
                f = jax.shard_map(part, mesh=mesh, in_specs=P("i"), out_specs=spec,
                                  check_vma=False)
                for y in (f(x), f(jax.device_put(x, place(P("i")))),
                          jax.jit(lambda x: x + 1, out_shardings=place(spec))(x),
                          jax.jit(lambda x: x, out_shardings=place(spec))(
                              jax.device_put(x, place(P("i"))))):
                    seen.append((str(shape), str(spec), str(y.sharding.spec)))
        return seen

    same(jax_oracle, program)


def made_like():
    """Return the types of what is made like a value that varies, and without one."""
    P = jax.sharding.PartitionSpec
    mesh = jax.make_mesh((2,), ("i",), devices=jax.devices()[:2],
                         axis_types=(jax.sharding.AxisType.Auto,))
    types = []

    def body(b):
        made = (jnp.zeros_like(b), jnp.ones_like(b, dtype="int32"), jnp.full_like(b, b[0]),
                jnp.empty_like(b), jnp.zeros_like(b, shape=(3,)), jax.lax.full_like(b, 1.0),
                jnp.imag(b), jnp.isreal(b), jnp.zeros(b.shape), jnp.nan_to_num(b))
        types.extend(str(jax.typeof(x)) for x in made)
        return b

    jax.make_jaxpr(jax.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i")))(jnp.ones(4))
    return types


def test_what_is_made_like_a_varying_value_varies(jax_oracle):
    assert made_like() == jax_oracle.run(source_of(made_like)).value


def test_tangents_and_cotangents_vary_as_their_values_do():
    """Else what a partial exchange makes of them would pass for the same on all devices.

    JAX 0.10.2 refuses all of these but the Jacobian.
    """
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    values = jnp.arange(8.).reshape(2, 4)

    def send(x):  # the first device along y receives zeros
        return lax.ppermute(x, "y", [(0, 1)])

    ones = jnp.ones((1, 2))
    derivatives = {
        "jvp": (lambda x: jax.jvp(send, (x,), (ones,))[1], [0, 0, 1, 1]),
        "vjp": (lambda x: jax.vjp(send, x)[1](ones)[0], [1, 1, 0, 0]),
        "jacfwd": (lambda x: jax.jacfwd(send)(x).sum((2, 3)), [0, 0, 1, 1]),
        "jacrev": (lambda x: jax.jacrev(send)(x).sum((2, 3)), [1, 1, 0, 0]),
        "scattered": (lambda x: jnp.repeat(jax.jvp(lambda x: lax.psum_scatter(
            x, "y", scatter_dimension=1, tiled=True), (x,), (jnp.array([[1., 5.]]),))[1], 2, 1),
            [2, 2, 10, 10]),
    }
    for name, (f, wanted) in derivatives.items():
        for run in (lambda f: f, jax.jit):
            got = run(jax.shard_map(f, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y")))
            np.testing.assert_array_equal(got(values), [wanted, wanted], err_msg=name)
        with pytest.raises(ValueError, match="can't be statically inferred"):
            jax.shard_map(f, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x"))(values)
