"""Do mutable arrays read, write, print and refuse as JAX's, outside programs and in them?

Read before: ``referring.py``, ``saem.refs.arrays``.  Read after: ``test_refs_transforms.py``.
"""

from __future__ import annotations

import copy
import importlib
import pickle

import numpy as np
import pytest
from both import same, same_error
from referring import Programs, m, same_programs, v

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.core.events import CacheMiss, bus
from saem.core.infer import check_jaxpr
from saem.core.refs import AccumEffect, ReadEffect, WriteEffect

pytestmark = pytest.mark.usefixtures("little_effort")

READS = Programs()


@READS
def reads_whole():
    return [jax.new_ref(m)[...], jax.new_ref(m)[:], jax.ref.get(jax.new_ref(m))]


@READS
def reads_parts():
    r = jax.new_ref(m)
    return [r[0], r[-1], r[1, 2], r[:, 1], r[0:1], r[..., -2:], r[0, ::2], r[1, 0:3:2], r[()]]


@READS
def reads_arrays():
    r = jax.new_ref(jnp.arange(24.0).reshape(2, 3, 4))
    i = jnp.array([0, 1])
    return [
        r[i],
        r[i, 0],
        r[0, :, i],
        r[i, :, i],
        r[:, i, i],
        r[i, i[:, None]],
        r[i, 1:, i],
        r[:, 1, i],
        r[jnp.array([[0, 1], [1, 1]]), 2],
    ]


@READS
def reads_and_writes_by_methods():
    def f(r, i):
        read = [r.get(), r.get(i), r.get(idx=slice(1, 2)), r.swap(v * 2), r.swap(v[:2], idx=i)]
        r.set(5.0, i[0])
        r.set(jnp.zeros(1), idx=slice(0, 1))
        r.addupdate(v)
        r.addupdate(jnp.ones(2), i)
        return read

    r = jax.new_ref(v)
    return [jax.jit(f)(r, jnp.array([2, 1])), r[...], hasattr(v, "addupdate"),
            jax.jit(lambda x: [hasattr(x, n) for n in ("get", "set", "swap", "addupdate")])(v)]


@READS
def reads_outside():
    r = jax.new_ref(v)
    f = jax.jit(lambda r, i: r[i])
    return [
        f(r, 7),
        f(r, -1),
        f(r, -9),
        f(r, jnp.array([5, -1, -7, 1])),
        f(r, jnp.uint8(2)),
        jax.jit(lambda r: r[7])(r),
    ]


@READS
def reads_attributes():
    r = jax.new_ref(m)
    return [
        r.shape,
        r.dtype,
        r.ndim,
        r.size,
        len(r),
        isinstance(r, jax.Ref),
        isinstance(m, jax.Ref),
        str(jax.typeof(r)),
    ]


@READS
def reads_weak():
    return [
        jax.new_ref(1.0)[...],
        jax.new_ref(2)[...],
        jax.new_ref(True)[...],
        jax.new_ref(np.float32(3))[...],
        jax.new_ref(np.arange(2))[...],
    ]


WRITES = Programs()


@WRITES
def writes_parts():
    r = jax.new_ref(m)
    r[0] = jnp.ones(3)
    r[1, 2] = 9.0
    r[:, 1] = jnp.array([7.0, 8.0])
    r[1, 0] += 4.0
    r[0, ::2] = jnp.array([-1.0, -2.0])
    return [r[...], jax.ref.swap(r, (0, 0), 5.0), r[...], jax.freeze(r)]


@WRITES
def writes_added():
    r = jax.new_ref(v)
    jax.ref.addupdate(r, 2, 10.0)
    jax.ref.addupdate(r, ..., v)
    r.addupdate(1.0, (0,))
    jax.ref.addupdate(r, jnp.array([0, 0, 1]), v)
    return r[...]


@WRITES
def writes_arrays():
    r = jax.new_ref(m)
    i = jnp.array([1, 0])
    r[i, 0] = jnp.array([5.0, 6.0])
    r[:, jnp.array([1, 2])] = jnp.ones((2, 2))
    jax.ref.addupdate(r, (i, i), jnp.ones(2))
    return [r[...], jax.ref.swap(r, i, m), r[...]]


@WRITES
def writes_outside():
    r = jax.new_ref(v)

    def put(r, i, x):
        r[i] = x

    jax.jit(put)(r, 7, 9.0)
    a = r[...]
    jax.jit(put)(r, -5, 8.0)
    b = r[...]
    jax.jit(put)(r, jnp.array([5, -1, 1]), jnp.array([1.0, 2.0, 3.0]))
    return [a, b, r[...]]


@WRITES
def writes_old_values_stay():
    r = jax.new_ref(v)
    before = r[...]
    r[0] = 77.0
    after = r[...]
    jax.jit(lambda r: jax.ref.set(r, 1, 3.0))(r)
    return [v, before, after, r[...], jax.freeze(r)]


@WRITES
def writes_types():
    r, h, w = (jax.new_ref(jnp.int32(0)), jax.new_ref(jnp.float16(0)), jax.new_ref(0))
    r[...] = 3
    h[...] = 3.0
    w[...] = jnp.int32(4)
    return [r[...], h[...], w[...]]


@WRITES
def writes_keys():
    r = jax.new_ref(jax.random.key(0))
    key, sub = jax.random.split(r[...])
    r[...] = key
    rs = jax.new_ref(jax.random.split(key, 3))
    rs[0] = jax.random.key(5)
    return [
        jax.random.normal(sub),
        jax.random.key_data(r[...]),
        jax.random.key_data(rs[...]),
        jax.jit(lambda r: jax.random.normal(r[1]))(rs),
    ]


@WRITES
def writes_texts():
    r = jax.new_ref(m)
    result = [repr(r), str(jax.new_ref(1)), repr(jax.new_ref(jax.random.key(0)))]
    r[1] = v
    result.append(repr(r))
    return result


PRINTED = Programs()


@PRINTED
def printed_made_inside():

    def f(x):
        r = jax.new_ref(x)
        r[0] = jnp.ones(3)
        r[0, 1] += 2.0
        r[...] = x * 2
        a = r[0:1]
        b = r[:, 1]
        r[1:2, 0] = jnp.ones(1)
        jax.ref.addupdate(r, 0, jnp.ones(3))
        jax.ref.addupdate(r, (0, 1), 1.0)
        c = jax.ref.swap(r, (0, 1), 5.0)
        return jax.freeze(r), a, b, c

    return str(jax.make_jaxpr(f)(m))


@PRINTED
def printed_indices():

    def f(r, i):
        return r[i], r[i, i], r[-1], r[0, -2:], r[:, i], r[()], r[:], r[jnp.array([0, 1])]

    return str(jax.make_jaxpr(f)(jax.new_ref(m), 1))


@PRINTED
def printed_views():

    def f(x):
        r = jax.new_ref(x)
        w = r.at[0].at[1:]
        w[0] = 7.0
        w[...] += 1.0
        jax.ref.addupdate(w, 0, 1.0)
        return r[...], jax.ref.swap(w, ..., jnp.zeros(2))

    return str(jax.make_jaxpr(f)(m))


@PRINTED
def printed_argument():

    def f(r, y):
        r[...] += y
        jax.ref.addupdate(r, 0, jnp.ones(3))
        return r[0]

    r = jax.new_ref(m)
    return [str(jax.make_jaxpr(f)(r, 1.0)), str(jax.make_jaxpr(jax.jit(f))(r, 1.0))]


@PRINTED
def printed_closed_over():
    r = jax.new_ref(m)

    def f(y):
        r[0] = y * jnp.ones(3)
        return r[1]

    inner = lambda x: jax.jit(lambda y: r[0] + x + y)(2.0)
    nested = jax.jit(lambda x: jax.jit(lambda: r[0] + x)())
    return [str(jax.make_jaxpr(g)(1.0)) for g in (f, jax.jit(f), inner, nested)]


@PRINTED
def printed_kinds():
    f = lambda x: (jax.free_ref(jax.new_ref(x)), jax.new_ref(x, kind="no_grad_no_remat")[...])
    return str(jax.make_jaxpr(f)(m))


@PRINTED
def printed_after_freeze():

    def f(x):
        r = jax.new_ref(x)
        jax.freeze(r)
        return r[...]

    return [str(jax.make_jaxpr(f)(m)), f(m), jax.jit(f)(m)]


@PRINTED
def printed_branches():
    r = jax.new_ref(v)

    def f(p):
        return lax.cond(p, lambda: r[0], lambda: (jax.ref.set(r, 0, 1.0), r[1])[1])

    def g(r, p):
        return lax.cond(p, lambda r: r[0], lambda r: jax.ref.swap(r, 1, 2.0), r)

    def h(i):
        return lax.switch(
            i, [lambda: r[0], lambda: jax.ref.addupdate(r, 0, 1.0) or r[1], lambda: 0.0]
        )

    return [
        str(jax.make_jaxpr(f)(True)),
        str(jax.make_jaxpr(g)(r, True)),
        str(jax.make_jaxpr(h)(1)),
    ]


@PRINTED
def printed_loops():
    r = jax.new_ref(v)

    def body(i, c):
        r[i] = c
        jax.ref.addupdate(r, 0, 1.0)
        return c + r[0]

    def asks(n):
        return lax.while_loop(lambda i: r[0] < n, lambda i: i + 1, 0)

    return [
        str(jax.make_jaxpr(lambda: lax.fori_loop(0, 3, body, 1.0))()),
        str(jax.make_jaxpr(lambda n: lax.fori_loop(0, n, body, 1.0))(3)),
        str(jax.make_jaxpr(asks)(3)),
    ]


@PRINTED
def printed_scans():
    r = jax.new_ref(v)

    def f(x):

        def body(c, x):
            r[0] = x
            return c + r[1], r[0]

        return lax.scan(body, 0.0, x)

    def g(r):

        def body(c, x):
            x[0] += 1.0
            return c + x[1], None

        return lax.scan(body, 0.0, r, reverse=True)

    def h(x):
        return lax.map(lambda y: jax.ref.addupdate(r, 0, y), x)

    return [
        str(jax.make_jaxpr(f)(v)),
        str(jax.make_jaxpr(g)(jax.new_ref(m))),
        str(jax.make_jaxpr(h)(v)),
    ]


@PRINTED
def printed_calls():
    r = jax.new_ref(v)

    def f(x):
        r = jax.new_ref(x)
        jax.jit(lambda r: jax.ref.set(r, 0, 8.0))(r)
        return r[...]

    def g(x):
        r[...] = lax.stop_gradient(x)
        return jnp.sum(jnp.sin(x) * r[...])

    return [str(jax.make_jaxpr(f)(v)), str(jax.make_jaxpr(jax.checkpoint(g))(v))]


COMPILED = Programs()


@COMPILED
def compiled_argument():
    r = jax.new_ref(v)

    @jax.jit
    def f(r, y):
        r[0] = y
        r[1] += y
        return r[...].sum()

    return [f(r, 1.0), f(r, 2.0), r[...], f(jax.new_ref(v), 5.0), r[...]]


@COMPILED
def compiled_closed_over():
    r = jax.new_ref(v)

    @jax.jit
    def f(y):
        r[0] = y
        return r[...]

    a = f(3.0)
    r[1] = 100.0
    return [a, f(4.0), r[...]]


@COMPILED
def compiled_read_only():
    r = jax.new_ref(v)
    return [jax.jit(lambda r: r[...] * 2)(r), r[...]]


@COMPILED
def compiled_nested():
    r = jax.new_ref(v)
    f = jax.jit(lambda x: jax.jit(lambda: jax.ref.addupdate(r, 0, x))())
    f(1.0)
    f(2.0)
    return [r[...], jax.jit(lambda c: jax.new_ref(c)[1])(v)]


@COMPILED
def compiled_several():
    a, b = (jax.new_ref(v), jax.new_ref(m))

    @jax.jit
    def f(refs, i):
        refs["a"][i], refs["b"][0] = (refs["b"][1, i], refs["a"][...])

    f({"a": a, "b": b}, 1)
    return [a[...], b[...]]


@COMPILED
def compiled_branches():
    r = jax.new_ref(v)

    def f(r, p):
        return lax.cond(p, lambda: r[0], lambda: (jax.ref.set(r, 0, 1.0), r[1])[1])

    def g(i):
        return lax.switch(
            i, [lambda: r[0], lambda: jax.ref.addupdate(r, 0, 5.0) or r[1], lambda: 0.0]
        )

    return [
        f(r, True),
        r[...],
        f(r, False),
        r[...],
        jax.jit(f)(r, False),
        g(0),
        g(1),
        jax.jit(g)(1),
        g(2),
        r[...],
    ]


@COMPILED
def compiled_while():

    def f(n):
        r = jax.new_ref(jnp.float32(0))

        def body(i):
            r[...] += 1.0
            return i + 1

        lax.while_loop(lambda i: i < n, body, 0)
        return r[...]

    r = jax.new_ref(v)
    g = lambda n: lax.while_loop(lambda i: i < n + r[1], lambda i: i + 1, 0)
    return [f(3), jax.jit(f)(3), jax.jit(g)(4), g(3), r[...]]


@COMPILED
def compiled_fori():
    r = jax.new_ref(v)

    def f(n):

        def body(i, c):
            r[i] = c
            jax.ref.addupdate(r, 0, 1.0)
            return c + r[0]

        return lax.fori_loop(0, n, body, 1.0)

    result = [f(3), r[...], jax.jit(f)(3), r[...]]
    lax.fori_loop(0, 3, lambda i, _: jax.ref.addupdate(r, i, 1.0), None)
    result.append(r[...])
    return result


@COMPILED
def compiled_scan():
    r, s = (jax.new_ref(v), jax.new_ref(m))

    def f(x):

        def body(c, x):
            r[0] += x
            return c + r[0], r[1] + r[0]

        return lax.scan(body, 0.0, x)

    def g(s, reverse):

        def body(c, x):
            x[0] += c
            x[1:] = x[1:] * 2.0
            return c + x[1], x[...]

        return lax.scan(body, 0.0, s, reverse=reverse)

    return [
        f(v),
        r[...],
        jax.jit(f)(v),
        r[...],
        g(s, False),
        s[...],
        jax.jit(g, static_argnums=1)(s, True),
        s[...],
    ]


@COMPILED
def compiled_scan_of_new_ones():

    def body(c, x):
        r = jax.new_ref(c)
        r[...] = r[...] * 2 + x
        return r[...], jax.freeze(r)

    return [
        lax.scan(body, jnp.float32(0), v),
        jax.jit(lambda: lax.scan(body, jnp.float32(0), v, unroll=2))(),
    ]


@COMPILED
def compiled_map():
    r = jax.new_ref(v)
    lax.map(lambda y: jax.ref.addupdate(r, 0, y), v)
    return r[...]


@COMPILED
def compiled_without_jit():
    r = jax.new_ref(v)
    with jax.disable_jit():
        a = jax.jit(lambda r: r[...] * 2)(r)
        lax.scan(lambda c, y: (jax.ref.addupdate(r, 0, y), (c, None))[1], 0.0, v)
        lax.cond(True, lambda: jax.ref.set(r, 1, 9.0), lambda: None)
    return [a, r[...]]


@COMPILED
def compiled_ahead_of_time():
    r = jax.new_ref(v)

    def f(r, y):
        r[0] += y
        return r[1]

    compiled = jax.jit(f).lower(r, 1.0).compile()
    return [compiled(r, 2.0), compiled(r, 3.0), r[...]]


@COMPILED
def compiled_shapes_only():
    r, s = (jax.new_ref(m), jax.ShapeDtypeStruct((2, 3), "float32", is_ref=True))
    f = lambda r: r[0]
    return [
        jax.eval_shape(f, r).shape,
        jax.eval_shape(f, s).shape,
        repr(s),
        s.is_ref,
        str(jax.make_jaxpr(f)(s)),
        jax.jit(f).lower(s).compile()(r),
    ]


@COMPILED
def compiled_checkpoint():
    r = jax.new_ref(v)

    def f(x):
        r[...] = x * 2
        return jnp.sum(jnp.sin(x) * r[...])

    return [jax.checkpoint(f)(v), jax.jit(jax.checkpoint(f))(v + 1), r[...]]


@COMPILED
def compiled_custom_rules():

    @jax.custom_vjp
    def f(x):
        r = jax.new_ref(x)
        r[0] = 1.0
        return r[...]

    f.defvjp(lambda x: (f(x), None), lambda _, g: (g,))

    @jax.custom_jvp
    def h(x):
        r = jax.new_ref(x)
        r[0] = 1.0
        return r[...]

    h.defjvp(lambda p, t: (h(*p), t[0] * 2))
    return [f(v), jax.jit(f)(v), h(v), str(jax.make_jaxpr(f)(v)), str(jax.make_jaxpr(h)(v))]


@COMPILED
def compiled_generator():
    er = importlib.import_module(jax.__name__ + ".experimental.random")
    g = er.stateful_rng(42)
    f = jax.jit(g.uniform)
    c = er.stateful_rng(123)
    return [
        g.uniform(),
        g.uniform(),
        f(),
        f(),
        g.normal(3.0, 2.0, (2,)),
        g.integers(10, size=3),
        g.random((2,)),
        jax.random.key_data(g.key()),
        jax.random.key_data(g.key((2,))),
        repr(g),
        jax.vmap(lambda r, x: x + r.uniform())(c.split(3), v),
        [k.integers(0, 10, 2) for k in c.spawn(2)],
        jax.jit(lambda s: er.stateful_rng(s).normal())(7),
    ]


REFUSED = [
    ("jax.new_ref(jnp.zeros(3)).__setitem__(0, jnp.zeros(5))", "Invalid shape for `swap`"),
    ("jax.new_ref(jnp.zeros((2, 3))).__setitem__(..., 2.)", "Invalid shape for `swap`"),
    ("jax.ref.addupdate(jax.new_ref(jnp.zeros(3)), ..., 1.)", "Invalid shape for `addupdate`"),
    ("jax.new_ref(jnp.arange(3)).__setitem__(0, 1.5)", "Invalid dtype for `swap`"),
    ("jax.new_ref(jnp.float32(0)).__setitem__(..., 3)", "Invalid dtype for `swap`"),
    ("jax.new_ref(jnp.zeros(2))[5]", "Out of bound indexer: idx=5, dim=2."),
    ("jax.new_ref(jnp.zeros(2))[0, 0]", "`indices` must not be longer than `shape`"),
    ("jax.new_ref(jnp.zeros(2))[::-1]", "slice must have a step >= 1"),
    ("jax.new_ref(jnp.zeros(2))[..., ...]", "Only one ellipsis is supported."),
    ("jax.jit(lambda mask: jax.new_ref(jnp.zeros(2))[mask])(jnp.array([True, False]))",
     "boolean indices must be concrete"),
    ("jax.jit(lambda r, i: r[i:])(jax.new_ref(jnp.zeros(3)), 1)",
     "Attempted boolean conversion of traced array"),
    ("jax.new_ref((1., 2.))", "Error interpreting argument to new_ref as a JAX value"),
    ("jax.ref.get(jnp.zeros(3), 0)", "Can only call `ref_get` on a `Ref`"),
    ("jax.ref.swap(jnp.zeros(3), 0, 1.)", "Can only call `ref_swap` on a `Ref`"),
    ("jax.ref.set(jax.new_ref(jnp.zeros(3)), ..., [1., 2., 3.])", "is not a valid JAX type"),
    ("jnp.sum(jax.new_ref(jnp.zeros(3)))", "requires ndarray or scalar arguments"),
    ("jnp.sin(jax.new_ref(jnp.zeros(3)))", "requires ndarray or scalar arguments"),
    ("jax.new_ref(1.) + 1", "unsupported operand type"),
    ("jax.jit(lambda r: r)(jax.new_ref(1.))", "mutable array references cannot be returned"),
    ("jax.jit(lambda: jax.new_ref(1.))()", "mutable array references cannot be returned"),
    ("lax.cond(True, lambda r: r, lambda r: r, jax.new_ref(1.))", "cannot be returned"),
    ("lax.scan(lambda c, x: (c, None), jax.new_ref(1.), jnp.zeros(2))", "cannot be returned"),
    ("lax.scan(lambda c, x: (c, x), 0., jax.new_ref(jnp.zeros(2)))", "cannot be returned"),
    ("(lambda r: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, r), (0, r)))("
     "jax.new_ref(1.))", "mutable array references cannot be returned"),
    ("(lambda r: jax.jit(lambda a, b: a[...] + b[...])(r, r))(jax.new_ref(1.))",
     "only one reference to a mutable array may be passed"),
    ("(lambda r: jax.make_jaxpr(lambda a, b: a[...] + b[...])(r, r))(jax.new_ref(1.))",
     "only one reference to a mutable array may be passed"),
    ("(lambda r: jax.jit(lambda a: a[...] + r[...])(r))(jax.new_ref(1.))",
     "was both closed over and passed as the argument"),
    ("jax.new_ref(jnp.zeros(3), memory_space='a')", "only works inside of a `jit`"),
]


@pytest.mark.parametrize("group", [READS, WRITES, PRINTED, COMPILED],
                         ids=["reads", "writes", "printed", "compiled"])
def test_programs(jax_oracle, group):
    same_programs(jax_oracle, group)


@pytest.mark.parametrize(("source", "sentence"), REFUSED, ids=[s for s, _ in REFUSED])
def test_refused(jax_oracle, source, sentence):
    same_error(jax_oracle, source.replace("jnp.", "jax.numpy.").replace("lax.", "jax.lax."),
               sentence)


def test_a_second_call_with_one_reference_twice_is_refused_too():
    f = jax.jit(lambda a, b: a[...] + b[...])
    r, s = jax.new_ref(1.), jax.new_ref(2.)
    assert f(r, s) == 3.
    with pytest.raises(ValueError, match="appeared at both a and b"):
        f(r, r)


def test_a_condition_sees_what_the_body_writes():
    """JAX 0.10.2 refuses this outside jit, and never ends inside."""
    def count(r, n):
        return lax.while_loop(lambda i: r[0] < n,
                              lambda i: (jax.ref.addupdate(r, 0, 2.), i + 1)[1], 0)

    r = jax.new_ref(jnp.zeros(2))
    assert count(r, 3.) == 2 and r[0] == 4.
    assert jax.jit(count)(r, 9.) == 3 and r[0] == 10.


    def fill(r):  # nothing is carried: what the body writes is all
        return lax.while_loop(lambda i: r[0] < 3., lambda i: (jax.ref.addupdate(r, 0, 2.), i)[1], 7)

    assert fill(jax.new_ref(jnp.zeros(2))) == jax.jit(fill)(s := jax.new_ref(jnp.zeros(2))) == 7
    assert s[0] == 4.
    with pytest.raises(NotImplementedError, match="condition of a while loop"):
        lax.while_loop(lambda i: (r.__setitem__(0, 1.), i < 3)[1], lambda i: i + 1, 0)


def test_views_write_through():
    """A view of a view is what NumPy's is."""
    ref, array = jax.new_ref(jnp.arange(24.).reshape(2, 3, 4)), np.arange(24.).reshape(2, 3, 4)
    view, part = ref.at[1].at[1:, ::2], array[1][1:, ::2]
    assert (view.shape, view.dtype, len(view)) == ((2, 2), np.float32, 2)
    view[0], part[0] = jnp.ones(2), 1
    view[1, 1] += 5.
    part[1, 1] += 5
    jax.jit(lambda r: jax.ref.addupdate(r.at[0].at[2], 3, 9.))(ref)
    array[0, 2, 3] += 9
    np.testing.assert_array_equal(ref[...], array)


MASK = np.array([True, False, True])
PLANE = np.arange(12).reshape(3, 4) % 3 == 0


@pytest.mark.parametrize("index", [
    (slice(None), PLANE[0]), (..., PLANE[0]), MASK, PLANE, (MASK, 1), (MASK, slice(1, 3)),
    (0, PLANE[0]), (MASK, np.array([3, 1])), (..., PLANE), np.zeros(3, bool), jnp.array(MASK),
], ids=str)
def test_a_known_mask_selects_as_numpys(index):
    whole = np.arange(12, dtype=np.float32).reshape(3, 4)
    at = np.asarray(index) if isinstance(index, jax.Array) else index
    part = whole[at]
    written = whole.copy()
    written[at] += 5

    def change(x):
        ref = jax.new_ref(x)
        first = ref[index]
        ref[index] += 2.
        ref.at[index][...] = ref[index] + 3.
        return first, ref[...]

    for run in (change, jax.jit(change)):
        first, last = run(whole)
        np.testing.assert_array_equal(first, part)
        np.testing.assert_array_equal(last, written)


@pytest.mark.parametrize(("index", "axis"), [(MASK[:2], 0), ((..., MASK), 1), ((0, MASK), 1)])
def test_a_mask_fits_its_axes(index, axis):
    with pytest.raises(IndexError, match=f"boolean index did not match .* in index {axis}"):
        jax.new_ref(jnp.zeros((3, 4)))[index]


def test_numpy_and_xla_agree():
    """The evaluator changes NumPy arrays in place; the pure form on XLA gives the same."""
    def f(ref, i, x):
        ref[i, 1:] = x
        jax.ref.addupdate(ref, (jnp.array([0, 0, 1]), i), jnp.ones(3))
        jax.ref.addupdate(ref, (jnp.array([7, -1]), 0), jnp.ones(2))  # 7 is dropped
        old = jax.ref.swap(ref, (slice(None), jnp.array([2, 0, 9])), jnp.full((2, 3), 4.))

        def body(c, row):
            row[0] = row[0] + c
            return c + ref[0, 0], row[...]

        own = jax.new_ref(ref[...])
        ref.at[1].at[::2][1] = 8.
        c, rows = lax.scan(body, 1., own)
        lax.while_loop(lambda _: ref[0, 1] < 20., lambda _: jax.ref.addupdate(ref, (0, 1), 7.),
                       None)
        lax.cond(i > 0, lambda: jax.ref.set(ref, (0, 0), -1.), lambda: None)
        return old, c, rows, jax.freeze(own)

    start = np.arange(6, dtype=np.float32).reshape(2, 3)
    for i in (0, 1):
        ref = jax.new_ref(start)
        closed = jax.make_jaxpr(f)(ref, i, jnp.array([50., 60.]))
        check_jaxpr(closed)
        held = start.copy()
        expected = jax.evaluate(closed, held, i, np.array([50, 60], np.float32))
        got = jax.jit(f)(ref, i, jnp.array([50., 60.]))
        for a, b in zip(got, expected):
            np.testing.assert_allclose(a, b)
        np.testing.assert_allclose(ref[...], held)


def test_effects_name_the_operand():
    r = jax.new_ref(jnp.zeros(3))

    def f(x, ref):
        r[0] = x
        jax.ref.addupdate(ref, 1, x)
        own = jax.new_ref(x)
        own[...] = 2.
        return r[1] + own[...]

    closed = jax.make_jaxpr(f)(1., jax.new_ref(jnp.zeros(2)))
    assert closed.effects == {WriteEffect(0), AccumEffect(2), ReadEffect(0)}  # constants first
    called = jax.make_jaxpr(jax.jit(f))(1., jax.new_ref(jnp.zeros(2)))
    (call,) = called.eqns
    assert {type(e) for e in called.effects} == {WriteEffect, AccumEffect, ReadEffect}
    assert called.effects == closed.effects and call.effects
    assert jax.make_jaxpr(lambda x: jax.new_ref(x)[...])(1.).effects == frozenset()

    def loop(n):
        return lax.while_loop(lambda i: i < n, lambda i: (r.__setitem__(0, 1.), i + 1)[1], 0)

    def choice(p):
        return lax.cond(p, lambda: r[0], lambda: 0.)

    assert jax.make_jaxpr(loop)(3).effects == {WriteEffect(0)}
    assert jax.make_jaxpr(choice)(True).effects == {ReadEffect(0)}


def test_buffers_are_reused_only_when_nobody_else_has_them():
    r = jax.new_ref(jnp.zeros(1000))
    f = jax.jit(lambda r: r.addupdate(1., (0,)) if hasattr(r, "addupdate") else
                jax.ref.addupdate(r, 0, 1.))
    f(r)
    where = r.unsafe_buffer_pointer()
    f(r)
    assert r.unsafe_buffer_pointer() == where  # written in place
    kept = r[...]
    f(r)
    assert kept[0] == 2. and r[0] == 3. and not kept.is_deleted()


def test_lowered_text_is_pure():
    text = jax.jit(lambda r, y: r.__setitem__(0, y)).lower(jax.new_ref(jnp.zeros(3)), 1.).as_text()
    assert "tf.aliasing_output" in text and "dynamic_update_slice" in text


def test_stages_know_references_closed_over():
    r = jax.new_ref(jnp.arange(3.))

    def f(y):
        r[0] += y
        return r[1]

    lowered = jax.jit(f).lower(1.)
    compiled = lowered.compile()
    assert [compiled(2.), compiled(3.)] == [1., 1.] and r[0] == 5.
    (aval,), _ = lowered.in_avals
    assert aval.shape == () and len(jax.tree.leaves(compiled.args_info)) == 1


def test_copies_and_pickles_are_references_of_their_own():
    r = jax.new_ref(jnp.arange(3.))
    for other in (copy.copy(r), copy.deepcopy(r), pickle.loads(pickle.dumps(r))):
        other[0] = 9.
        assert other[0] == 9. and r[0] == 0.


def test_events_and_checks_pass_references_by():
    """Listeners, leak checks and finite checks see programs with references."""
    r = jax.new_ref(jnp.zeros(3))
    with jax.checking_leaks():
        jax.jit(lambda y: jax.ref.addupdate(r, 0, y))(1.)
    with jax.debug_nans(True):
        jax.jit(lambda y: jax.ref.addupdate(r, 1, y))(1.)
        with pytest.raises(FloatingPointError):
            jax.jit(lambda r: r[2] / r[2])(r)
    found = []
    end = bus.subscribe(found.append)
    try:
        f = jax.jit(lambda r, y: jax.ref.addupdate(r, 2, y))
        f(r, 1.)
        f(r, 2.)
    finally:
        end()
    (miss,) = [e for e in found if isinstance(e, CacheMiss)]
    ref, _ = miss.signature.arguments
    assert (ref.path, ref.shape, ref.dtype) == ("r", (3,), "f32")
    np.testing.assert_array_equal(r[...], [1, 1, 3])


def test_empty_ref_is_written_before_it_is_read():
    def f(x):
        r = jax.empty_ref(jax.ShapeDtypeStruct((3,), "float32"))
        r[...] = x
        return r[...] * 2

    np.testing.assert_array_equal(jax.jit(f)(jnp.arange(3.)), [0, 2, 4])
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(jnp.arange(3.)), [2, 2, 2])


def test_arrays_are_made_like_a_reference_without_reading_it(jax_oracle):
    def program(x):
        jnp = jax.numpy
        ways = [
            jnp.zeros_like, jnp.ones_like, lambda r: jnp.full_like(r, 2),
            lambda r: jnp.full_like(r, 2.5, dtype=jnp.int32), lambda r: jnp.empty_like(r).shape,
            lambda r: jnp.zeros_like(r, shape=(3,)), lambda r: jax.lax.full_like(r, 7),
            lambda r: jax.lax.full_like(r, 1, jnp.float16), lambda r: str(jnp.result_type(r)),
            lambda r: str(jnp.result_type(r, jnp.complex64))]
        out = [way(jax.new_ref(v)) for way in ways for v in (x, jnp.int8(3), jnp.arange(2))]
        traced = [jax.jit(way)(jax.new_ref(x)) for way in ways[:4]]
        mapped = [jax.vmap(way)(jax.new_ref(x)) for way in ways[:4]]
        pulled = jax.grad(lambda x: (jnp.zeros_like(jax.new_ref(x)) + x * x).sum())(x)
        return out, traced, mapped, pulled, str(jax.make_jaxpr(jnp.zeros_like)(jax.new_ref(x)))

    same(jax_oracle, program, x=np.arange(6, dtype=np.float32).reshape(2, 3))


def test_iterating_over_a_reference_is_refused_after_its_rows_in_a_trace_too(jax_oracle):
    same_error(jax_oracle, "list(jax.new_ref(x))", "Out of bound indexer", x=np.ones((2, 3)))
    ref = jax.new_ref(jnp.arange(6.).reshape(2, 3))
    rows = iter(ref)
    assert [next(rows).tolist(), next(rows).tolist()] == [[0, 1, 2], [3, 4, 5]]
    for asked in (lambda: list(ref), jax.jit(lambda: jnp.stack(list(ref))),
                  lambda: jnp.all(ref, axis=ref)):
        with pytest.raises(ValueError, match="Out of bound indexer: idx=2, dim=2"):
            asked()
    with pytest.raises(TypeError):
        list(jax.new_ref(1.0))
