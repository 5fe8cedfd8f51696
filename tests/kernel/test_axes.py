"""Do named axes and the collectives over them mean what JAX means, under vmap?

What JAX computes is asked of JAX; what it refuses under vmap (partial permutations, several names)
is computed in NumPy.  Collectives between devices are in test_shard_map.py.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from both import same, same_error

import saem as jax
from saem import lax
from saem import numpy as jnp
from saem.core import axes
from saem.core.infer import check_jaxpr

pytestmark = pytest.mark.usefixtures("little_effort")

X = np.random.RandomState(0).randn(4, 4, 3).astype(np.float32)
Y = np.random.RandomState(1).randn(3, 4, 8).astype(np.float32)
N = np.arange(12, dtype=np.int32).reshape(4, 3)

ONE_AXIS = [
    "lax.psum(x, 'i')", "lax.psum((x, {'a': x + 1}), 'i')", "lax.pmean(x, 'i')",
    "lax.pmax(x, 'i')", "lax.pmin(x, 'i')", "lax.psum(x, ('i',))", "lax.psum(x, 0)",
    "lax.psum(x, ('i', 0))", "lax.psum(1, 'i')", "lax.psum(2.5, 'i')", "lax.pmean(3, 'i')",
    "lax.psum(np.ones(3, np.float32), 'i')", "lax.pmax(np.ones(3, np.float32), 'i')",
    "lax.psum(x > 0, 'i')", "lax.psum(True, 'i')", "lax.pmax(x > 0, 'i')",
    "lax.all_gather(x, 'i')", "lax.all_gather(x, 'i', axis=1)", "lax.all_gather(x, 'i', axis=-1)",
    "lax.all_gather(x, 'i', axis=1, tiled=True)", "lax.all_gather(np.ones(3, np.int32), 'i')",
    "lax.all_to_all(x, 'i', 0, 0)", "lax.all_to_all(x, 'i', 0, 1)",
    "lax.all_to_all(x.T, 'i', 1, 0)", "lax.all_to_all(x, 'i', 0, 1, tiled=True)",
    "lax.all_to_all(x, 'i', 0, 0, tiled=True)",
    "lax.ppermute(x, 'i', [(0, 1), (1, 2), (2, 3), (3, 0)])", "lax.pshuffle(x, 'i', [2, 0, 1, 3])",
    "lax.psum_scatter(x, 'i')", "lax.psum_scatter(x, 'i', scatter_dimension=0, tiled=True)",
    "lax.psum_scatter(x.T, 'i', scatter_dimension=1)", "lax.pswapaxes(x, 'i', 0)",
    "lax.axis_index('i')", "x + lax.axis_index('i')", "lax.axis_size('i') * x",
    "lax.axis_index(('i',))",
    "jax.jit(lambda y: lax.psum(y, 'i'))(x)", "jax.jit(lambda: lax.axis_index('i'))()",
    "jax.jit(lambda y: y + lax.axis_index('i'))(np.ones(2, np.float32))",
]


def mapped(source: str, in_axes: object = 0, out_axes: object = 0, x: str = "x") -> str:
    return (f"jax.vmap(lambda x: ({source}), in_axes={in_axes}, out_axes={out_axes}, "
            f"axis_name='i')({x})")


def together(sources: list[str]) -> str:
    return f"[{', '.join(sources)}]"


@pytest.mark.parametrize("in_axes", [0, 1])
def test_collectives_under_vmap_are_jax_s(jax_oracle, in_axes):
    same(jax_oracle, together([mapped(s, in_axes) for s in ONE_AXIS]), x=X)


def test_an_unmapped_result_needs_no_axis(jax_oracle):
    unmapped = ["lax.psum(x, 'i')", "lax.pmax(x, 'i')", "lax.all_gather(x, 'i')",
                "lax.pmean(x, 'i')"]
    same(jax_oracle, together([mapped(s, 0, None) for s in unmapped]), x=X)


def test_integers(jax_oracle):
    sources = ["lax.psum(x, 'i')", "lax.pmean(x, 'i')", "lax.pmax(x, 'i')",
               "lax.psum(np.int32(3), 'i')", "lax.all_gather(x, 'i')"]
    same(jax_oracle, together([mapped(s) for s in sources]), x=N)


@pytest.mark.parametrize("source", [
    "lambda x: lax.psum(x, ('i', 'j'))", "lambda x: lax.psum(x, 'i')", "lambda x: lax.psum(x, 'j')",
    "lambda x: lax.pmax(x, ('j', 'i'))", "lambda x: lax.pmean(x, ('i', 'j'))",
    "lambda x: lax.axis_index(('i', 'j'))", "lambda x: lax.axis_index(('j', 'i'))",
    "lambda x: lax.axis_size(('i', 'j'))", "lambda x: lax.all_gather(x, 'i')",
    "lambda x: lax.all_gather(lax.all_gather(x, 'j'), 'i')",
    "lambda x: lax.psum(lax.axis_index('i') * x, 'j')",
    "lambda x: jax.jit(lambda y: lax.psum(y, ('i', 'j')))(x)",
    "lambda x: lax.ppermute(x, 'i', [(0, 1), (1, 2), (2, 0)])",
])
def test_nested_names(jax_oracle, source):
    same(jax_oracle,
         f"jax.vmap(jax.vmap({source}, axis_name='j'), axis_name='i')(y)", rtol=1e-5, y=Y)


def test_an_inner_name_hides_an_outer(jax_oracle):
    same(jax_oracle, "jax.vmap(jax.vmap(lambda x: (lax.psum(x, 'i'), lax.axis_size('i')), "
         "axis_name='i'), axis_name='i')(y)", rtol=1e-5, y=Y)


def test_an_unnamed_vmap_between(jax_oracle):
    same(jax_oracle, "jax.vmap(jax.vmap(lambda x: jax.jit(lambda z: lax.psum(z, 'i') + z)(x)), "
         "axis_name='i')(y)", rtol=1e-5, y=Y)
    same(jax_oracle, "jax.vmap(jax.vmap(lambda x: jax.jit(lambda z: lax.psum(z, 'i') + z)(x), "
         "axis_name='i'))(y)", rtol=1e-5, y=Y)


LINEAR = ["lax.psum(x, 'i')", "lax.pmean(x, 'i')", "lax.all_gather(x, 'i')",
          "lax.all_gather(x, 'i', axis=1, tiled=True)",
          "lax.ppermute(x, 'i', [(0, 1), (1, 2), (2, 3), (3, 0)])",
          "lax.psum_scatter(x, 'i')", "lax.psum_scatter(x, 'i', tiled=True)",
          "lax.all_to_all(x, 'i', 0, 0)", "lax.psum(x, ('i', 0))"]


def test_derivatives_are_jax_s(jax_oracle):
    w = "np.float32(0.5) * jax.numpy.sin(x)"
    grads = [f"jax.vmap(jax.grad(lambda x: jax.numpy.sum(jax.numpy.cos({s}))), axis_name='i')(x)"
             for s in (t.replace("(x,", f"({w},") for t in LINEAR)]
    same(jax_oracle, together(grads), rtol=1e-5, x=X)
    jvps = [f"jax.vmap(lambda x: jax.jvp(lambda x: {s}, (x,), (x * x,)), axis_name='i')(x)"
            for s in LINEAR]
    same(jax_oracle, together(jvps), rtol=1e-5, x=X)


@pytest.mark.parametrize("source", [
    "lax.all_to_all(x, 'i', 0, 1)", "lax.all_to_all(x, 'i', 0, 1, tiled=True)",
    "lax.ppermute(x, 'i', [(0, 2), (3, 1)])", "lax.all_gather(x, 'i', axis=2)", *LINEAR])
def test_transposes_keep_the_inner_product(source):
    f = eval(f"lambda x: {source}")
    forward = jax.vmap(f, axis_name="i")
    out = forward(X)
    ct = np.random.RandomState(2).randn(*out.shape).astype(np.float32)
    _, pull = jax.vjp(forward, X)
    np.testing.assert_allclose(np.sum(np.asarray(pull(ct)[0]) * X), np.sum(ct * np.asarray(out)),
                               rtol=1e-4)


def v(f, **options):
    return jax.vmap(f, axis_name="i", **options)


@jax.custom_jvp
def cj(x):
    return lax.psum(jnp.sin(x), "i")


cj.defjvp(lambda p, t: (cj(p[0]), lax.psum(t[0] * jnp.cos(p[0]) * 2, "i")))


@jax.custom_vjp
def cv(x):
    return lax.psum(jnp.sin(x), "i")


cv.defvjp(lambda x: (cv(x), x), lambda r, ct: (lax.psum(ct, "i") * jnp.cos(r) * 3,))
c0 = jnp.ones(3)
TRANSFORMED = [
    "v(lambda x: lax.scan(lambda c, y: (c + lax.psum(y, 'i'), c), 0., x))(x)",
    "v(lambda x: lax.scan(lambda c, y: (c + lax.axis_index('i'), c), 0, None, length=3))(x)",
    "v(lambda x: lax.scan(lambda c, y: (lax.psum(c, 'i'), c), c0, None, length=3)[0] + x)(x)",
    "v(lambda x: lax.cond(c0.sum() > 0, lambda y: lax.psum(y, 'i'), lambda y: y, x))(x)",
    "v(lambda x: lax.cond(c0.sum() > 0, lambda: lax.axis_index('i'), lambda: 0) + x)(x)",
    "v(lambda x: lax.while_loop(lambda c: lax.psum(c, 'i') < 100, lambda c: c * 2, 1.) + x)(x)",
    "v(lambda x: lax.while_loop(lambda c: lax.pmax(c.sum(), 'i') < 10, lambda c: c * 2, x * x))(x)",
    "v(lambda x: lax.fori_loop(0, 3, lambda i, c: c + lax.pmean(x, 'i'), x))(x)",
    "v(jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(lax.psum(x, 'i')).sum())(x)))(x)",
    "v(cj)(x)", "v(jax.grad(lambda x: cj(x).sum()))(x)", "jax.grad(lambda x: v(cj)(x).sum())(x)",
    "v(cv)(x)", "v(jax.grad(lambda x: cv(x).sum()))(x)",
    "jax.grad(lambda x: v(lambda x: lax.scan(lambda c, y: (c * lax.psum(y * y, 'i'), c), 1., x)[0])"
    "(x).sum())(x)",
    "v(jax.jit(lambda x: jax.jit(lambda y: y - lax.pmean(y, 'i'))(x) + lax.axis_index('i')))(x)",
    "jax.jacfwd(v(lambda x: lax.psum(x * x, 'i')))(x)",
    "jax.jacrev(v(lambda x: lax.psum(x * x, 'i')))(x)",
    "jax.hessian(lambda x: v(lambda x: lax.psum(x ** 3, 'i'))(x).sum())(x)",
]


def test_within_every_other_transformation(jax_oracle):
    same(jax_oracle, f"jax.jit(lambda x: {together(TRANSFORMED)})(x)", rtol=2e-5,
         within=__name__, x=X[:, 0])


def test_a_backward_rule_under_vmap_knows_the_name():
    """JAX has forgotten the axis by then."""
    @jax.custom_vjp
    def f(x):
        return lax.psum(jnp.sin(x), "i") + x  # one result for each example, so one cotangent

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (lax.psum(ct, "i") * jnp.cos(x) * 3,))
    got = jax.grad(lambda x: jnp.sum(jax.vmap(f, axis_name="i")(x)))(X)
    np.testing.assert_allclose(got, 12 * np.cos(X), rtol=1e-5)


def test_a_shared_output_s_cotangent_reaches_each_example_as_in_jax(jax_oracle):
    """Also where a loop over the examples would count it once: 3 + 20, and not 3 + 3 * 20."""
    def program():
        f = jax.custom_vjp(lambda x, w: (x * w, w * 2))
        f.defvjp(
            lambda x, w: (f(x, w), (x, w)),
            lambda saved, ct: (ct[0] * saved[1], ct[0] * saved[0] + 2 * ct[1]),
        )

        def loss(w):
            each, once = jax.vmap(f, in_axes=(0, None), out_axes=(0, None))(jnp.arange(3.0), w)
            return each.sum() + 10 * once

        return [jax.grad(loss)(1.5), jax.jit(jax.grad(loss))(1.5)]

    same(jax_oracle, program)


def test_a_partial_permutation_gives_zeros():
    got = jax.vmap(lambda x: lax.ppermute(x, "i", [(0, 2), (3, 1)]), axis_name="i")(X)
    want = np.zeros_like(X)
    want[2], want[1] = X[0], X[3]
    np.testing.assert_array_equal(got, want)
    got = jax.vmap(lambda x, c: lax.ppermute(c, "i", [(0, 2)]), (0, None), axis_name="i")(X, X[0])
    want = np.zeros_like(X)
    want[2] = X[0]
    np.testing.assert_array_equal(got, want)


def test_gather_and_scatter_over_two_names():
    """JAX refuses two names here; row-major order is what shard_map gives."""
    def both(f):
        return np.asarray(jax.vmap(jax.vmap(f, axis_name="j"), axis_name="i")(Y))

    flat = Y.reshape(12, 8)
    for names, rows in ((("i", "j"), flat), (("j", "i"), Y.transpose(1, 0, 2).reshape(12, 8))):
        got = both(lambda x, names=names: lax.all_gather(x, names))
        np.testing.assert_array_equal(got, np.broadcast_to(rows, (3, 4, 12, 8)))
        got = both(lambda x, names=names: lax.all_gather(x, names, axis=0, tiled=True))
        np.testing.assert_array_equal(got, np.broadcast_to(rows.reshape(96), (3, 4, 96)))

    z = np.random.RandomState(3).randn(3, 4, 12).astype(np.float32)
    total = z.sum((0, 1)).reshape(3, 4)
    got = jax.vmap(jax.vmap(lambda x: lax.psum_scatter(x, ("i", "j")), axis_name="j"),
                   axis_name="i")(z)
    np.testing.assert_allclose(got, total, rtol=1e-5)
    got = jax.vmap(jax.vmap(lambda x: lax.psum_scatter(x, ("j", "i"), tiled=True), axis_name="j"),
                   axis_name="i")(z)
    np.testing.assert_allclose(got, z.sum((0, 1)).reshape(4, 3).T[..., None], rtol=1e-5)


@pytest.mark.parametrize(("source", "sentence"), [
    ("lax.psum(x, 'k')", "unbound axis name: k"),
    ("lax.axis_index('k')", "Found an unbound axis name: k"),
    ("lax.all_gather(x, 'k')", "unbound axis name: k"),
    ("lax.axis_size('k')", "unbound axis name: k"),
    ("jax.vmap(lambda x: lax.psum(x, 'k'), axis_name='i')(x)", "Found an unbound axis name: k"),
    ("jax.jit(lambda x: lax.psum(x, 'k'))(x)", "Found an unbound axis name: k"),
    (mapped("lax.psum(x, 'i', axis_index_groups=[[0, 1], [2, 3]])"),
     "axis_index_groups not supported in vmap"),
    (mapped("lax.all_gather(x, 'i', axis_index_groups=[[0, 1], [2, 3]])"),
     "axis_index_groups not supported in vmap"),
    (mapped("lax.psum_scatter(x, 'i', axis_index_groups=[[0, 1, 2, 3]])"),
     "axis_index_groups not supported in vmap"),
    (mapped("lax.all_to_all(x, 'i', 1, 0)"),
     "all_to_all requires the size of the mapped axis axis_name to equal x.shape[split_axis]"),
    (mapped("jax.jvp(lambda y: lax.pmax(y, 'i'), (x,), (x,))"),
     "Differentiation rule for 'pmax' not implemented"),
    (mapped("lax.pshuffle(x, 'i', [0, 0, 1, 2])"), "`perm` does not represent a permutation"),
])
def test_errors_are_jax_s(jax_oracle, source, sentence):
    same_error(jax_oracle, source, sentence, x=X)


def test_what_one_holds_is_given_to_all():
    got = jax.vmap(lambda x: lax.pbroadcast({"a": x}, "i", 2)["a"], axis_name="i")(X)
    np.testing.assert_array_equal(got, np.broadcast_to(X[2], X.shape))


def test_sizes_must_fit_under_vmap_too():
    """JAX returns something for these."""
    for tiled in (False, True):
        with pytest.raises(ValueError, match="reduce_scatter operand scatter dimension size 3"):
            jax.vmap(lambda x, t=tiled: lax.psum_scatter(x.T, "i", tiled=t), axis_name="i")(X)
    with pytest.raises(ValueError, match="has to be divisible by the size of the named axis i"):
        jax.vmap(lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True), axis_name="i")(X)


def test_a_group_must_be_a_partition():
    with pytest.raises(ValueError, match="axis_index_groups must cover all indices exactly once"):
        jax.make_jaxpr(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [1, 2]]),
                       axis_env=[("i", 4)])(1.0)


JAXPRS = [
    "lax.psum(x, 'i')", "lax.psum(x, ('i', 'j'))", "lax.psum(1, 'i')", "lax.pmean(x, 'i')",
    "lax.pmin(x, ('i', 'j'))", "lax.all_gather(x, 'i')",
    "lax.all_gather(x, 'i', axis=1, tiled=True)", "lax.all_to_all(x, 'i', 0, 1)",
    "lax.all_to_all(x, 'i', 0, 1, tiled=True)", "lax.ppermute(x, 'i', [(0, 1), (1, 2)])",
    "lax.pshuffle(x, 'i', [1, 2, 3, 0])", "lax.psum_scatter(x, 'i')",
    "lax.psum_scatter(x, 'i', tiled=True)", "lax.axis_index('i')", "lax.axis_index(('i', 'j'))",
    "lax.axis_size(('i', 'j'))", "lax.psum(x, 'i', axis_index_groups=[[0, 1], [2, 3]])",
    "lax.psum(1, 'i', axis_index_groups=[[0, 1], [2, 3]])", "lax.psum(x > 0, 'i')",
]


def test_jaxprs_print_as_jax_s(jax_oracle):
    text = [f"str(jax.make_jaxpr(lambda x: {s}, axis_env=[('i', 4), ('j', 3)])(x))"
            for s in JAXPRS]
    text += [f"str(jax.make_jaxpr(lambda x: {mapped(s)})(x))"
             for s in ("x + lax.axis_index('i')", "jax.jit(lambda: lax.axis_index('i'))()")]
    same(jax_oracle, together(text), x=X[0])


def test_programs_are_well_formed_and_the_environment_is_restored():
    for source in LINEAR:
        f = eval(f"lambda x: {source}")
        check_jaxpr(jax.make_jaxpr(jax.vmap(jax.grad(lambda x, f=f: jnp.sum(f(x) ** 2)),
                                            axis_name="i"))(X))
    with pytest.raises(ZeroDivisionError):
        jax.vmap(lambda x: 1 / 0, axis_name="i")(X)
    assert axes.state.env == () and axes.state.batching is None


def test_names_are_the_thread_s():
    """Threads that give one name to axes of different sizes do not see each other's."""
    def sizes(n):
        ones = np.ones((n, 2), np.float32)
        return {int(jax.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(ones)[0, 0])
                for _ in range(20)}

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(sizes, range(2, 6))) == [{2}, {3}, {4}, {5}]


def test_a_traced_function_is_kept_for_each_size():
    f = jax.jit(lambda x: x * lax.axis_size("i"))
    for n in (2, 3, 2):
        np.testing.assert_array_equal(
            jax.vmap(f, axis_name="i")(np.ones((n, 2), np.float32)), np.full((n, 2), n))
    with pytest.raises(NameError):
        f(np.ones(2, np.float32))


def test_the_evaluator_says_that_it_sees_one_participant():
    closed = jax.make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 4)])(X)
    with pytest.raises(NotImplementedError, match="needs the values of all participants"):
        jax.evaluate(closed, X)
    closed = jax.make_jaxpr(jax.vmap(lambda x: lax.psum(x, "i"), axis_name="i"))(X)
    np.testing.assert_allclose(jax.evaluate(closed, X)[0][0], X.sum(0), rtol=1e-5)
