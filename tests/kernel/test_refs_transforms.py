"""Do derivatives, batches and checkpoints of programs with references agree with JAX?

Where JAX 0.10.2 fails by itself (vmap of grad, checkpoint of a reference made outside, jacfwd), the
expected value comes from the same program written with arrays.

Read before: ``test_refs.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from both import same_error
from referring import Programs, m, same_programs, v

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.core.infer import check_jaxpr

pytestmark = pytest.mark.usefixtures("little_effort")

DERIVATIVES = Programs()


@DERIVATIVES
def derivatives_all_ways():

    def f(x):
        r = jax.new_ref(x)
        r[0] = x[1] * 2
        r[1] *= 3.0
        return jnp.sum(r[...] ** 2)

    return [
        jax.grad(f)(v),
        jax.jit(jax.grad(f))(v),
        jax.grad(jax.jit(f))(v),
        jax.jvp(f, (v,), (v,)),
        jax.vjp(f, v)[1](1.0),
        jax.linearize(f, v)[1](v),
        jax.linearize(jax.jit(f), v)[1](v),
        jax.value_and_grad(f)(v),
        str(jax.make_jaxpr(lambda x, t: jax.jvp(f, (x,), (t,)))(v, v)),
    ]


@DERIVATIVES
def derivatives_from_zeros():

    def f(x):
        r = jax.new_ref(jnp.zeros(3))
        r[0] = x[1] * 2
        r[1] = r[0] * 3.0
        return jnp.sum(r[...] ** 2)

    push = jax.linearize(f, v)[1]
    return [
        jax.grad(f)(v),
        jax.grad(jax.jit(f))(v),
        push(v),
        push(v),
        push(2 * v),
        jax.jvp(jax.grad(f), (v,), (v,)),
    ]


@DERIVATIVES
def derivatives_frozen():

    def f(x):
        r = jax.new_ref(x)
        r[0] = x[1] ** 2
        return jax.freeze(r)

    return [jax.jacrev(f)(v), jax.vjp(f, v)[1](v)]


@DERIVATIVES
def derivatives_added_and_swapped():

    def f(x):
        r = jax.new_ref(jnp.zeros(3))
        jax.ref.addupdate(r, ..., x**2)
        jax.ref.addupdate(r, 1, x[0] * x[2])
        old = jax.ref.swap(r, 2, x[0])
        return old * r[2] + r[...].sum()

    return [jax.grad(f)(v + 1), jax.jit(jax.grad(f))(v + 1), jax.jvp(f, (v,), (v + 1,))]


@DERIVATIVES
def derivatives_arrays_of_indices():

    def f(x, i):
        r = jax.new_ref(jnp.zeros((4, 3)))
        r[i] = x
        jax.ref.addupdate(r, (i, slice(1, 3)), x[:, :2])
        r[0] = r[1] * r[2]
        return (r[...] ** 2).sum() + r[i, i].sum()

    return [jax.grad(f)(m + 1, jnp.array([1, 2])), jax.jit(jax.grad(f))(m + 1, jnp.array([2, 0]))]


@DERIVATIVES
def derivatives_index_computed():

    def f(x, i):
        r = jax.new_ref(x)
        r[i + 1] = x[0] ** 2
        return r[i] * r[i + 1]

    return [jax.grad(f)(v + 1, 1), jax.jit(jax.grad(f))(v + 1, 0)]


@DERIVATIVES
def derivatives_dtypes():

    def count(x):
        n = jax.new_ref(0)
        n[...] = n[...] + 1
        return x * n[...]

    def turn(x):
        r = jax.new_ref(jnp.zeros(2, jnp.complex64))
        r[0] = x * 1j
        return jnp.abs(r[...]).sum()

    return [jax.grad(count)(3.0), jax.grad(turn)(3.0)]


@DERIVATIVES
def derivatives_closed_over():
    r = jax.new_ref(v)
    f = lambda x: jnp.sum(x * r[...])

    def g(x):
        r[...] = lax.stop_gradient(x) + 1
        return jnp.sum(x * r[...])

    log = jax.new_ref(v, kind="no_grad_no_remat")

    def h(x):
        log[...] = x * 2
        return jnp.sum(x**2) + log[0]

    return [
        jax.grad(f)(v),
        str(jax.make_jaxpr(jax.grad(f))(v)),
        jax.grad(g)(v),
        r[...],
        jax.grad(h)(v),
        log[...],
        jax.jit(jax.grad(h))(v + 1),
        log[...],
        jax.grad(lambda x, r: jnp.sum(r[...] ** 2 * x))(v, r),
    ]


@DERIVATIVES
def derivatives_reference_as_primal():
    r, t = (jax.new_ref(v), jax.new_ref(v + 1))

    def f(x, r):
        r[...] = r[...] * x
        return jnp.sum(r[...] ** 2)

    return [jax.jvp(f, (v + 1, r), (v, t)), r[...], t[...]]


@DERIVATIVES
def derivatives_calls():

    def f(x):
        r = jax.new_ref(jnp.zeros(3))
        jax.jit(lambda x: jax.ref.set(r, 0, x[1] * 2))(x)
        return jnp.sum(r[...] ** 2)

    def g(x):
        r = jax.new_ref(x)

        @jax.jit
        def inner(i):
            r[i] = r[i] * x[0]
            return r[i]

        return inner(0) + inner(1) + r[2]

    return [
        jax.grad(f)(v),
        jax.jit(jax.grad(f))(v),
        jax.grad(g)(v + 1),
        jax.jit(jax.grad(g))(v + 1),
        jax.jvp(jax.grad(g), (v + 1,), (v,)),
        jax.jacrev(lambda x: jnp.stack([g(x), x[0]]))(v + 1),
    ]


@DERIVATIVES
def derivatives_branches():

    def f(x, p):
        r = jax.new_ref(x)
        a = lax.cond(
            p,
            lambda: (jax.ref.set(r, 0, x[1] * x[2]), r[0] * 2)[1],
            lambda: (jax.ref.set(r, 1, x[0]), r[1])[1],
        )
        return a + r[...].sum()

    def g(x):
        r = jax.new_ref(x)
        lax.cond(x[0] > -1, lambda: jax.ref.set(r, 0, r[1] ** 2), lambda: None)
        return r[...].sum()

    def h(x, i):
        r = jax.new_ref(x)
        lax.switch(
            i,
            [
                lambda: jax.ref.set(r, 0, x[1]),
                lambda: jax.ref.addupdate(r, 1, x[0] * x[0]),
                lambda: None,
            ],
        )
        return (r[...] ** 2).sum()

    return [
        jax.grad(f)(v + 1, True),
        jax.grad(f)(v + 1, False),
        jax.jit(jax.grad(f))(v + 1, True),
        jax.grad(g)(v + 1),
        [jax.grad(h)(v + 1, i) for i in range(3)],
    ]


@DERIVATIVES
def derivatives_scans():

    def f(x):
        r = jax.new_ref(jnp.zeros(3))

        def body(c, y):
            r[0] += y * c
            return c + y, None

        lax.scan(body, 1.0, x)
        return r[0] ** 2

    def g(x):

        def body(c, y):
            r = jax.new_ref(c)
            r[...] *= y
            return r[...] + 1.0, None

        return lax.scan(body, 1.0, x)[0]

    def h(x):
        r = jax.new_ref(x)

        def body(c, xr):
            xr[...] = xr[...] ** 2
            return c + xr[...], None

        return lax.scan(body, 0.0, r)[0] + r[...].sum()

    def k(x):
        r = jax.new_ref(x)
        lax.fori_loop(0, 3, lambda i, _: jax.ref.set(r, i, r[i] ** 2 * x[0]), None)
        return r[...].sum()

    return [
        d(q)(v + 1)
        for q in (f, g, h, k)
        for d in (jax.grad, lambda q: jax.jit(jax.grad(q)), lambda q: jax.grad(jax.jit(q)))
    ]


@DERIVATIVES
def derivatives_while_forward():

    def f(x):
        r = jax.new_ref(x)
        lax.while_loop(lambda i: i < 2, lambda i: (jax.ref.set(r, 0, r[1] ** 2), i + 1)[1], 0)
        return r[...]

    return [jax.jvp(f, (v + 1,), (v,)), jax.jit(lambda x: jax.jvp(f, (x,), (x,)))(v)]


@DERIVATIVES
def derivatives_checkpoints():

    def f(x):
        r = jax.new_ref(x)
        r[0] = x[1] * 2
        r[1] *= 3.0
        return jnp.sum(r[...] ** 2)

    s, count = (jax.new_ref(v), jax.new_ref(jnp.zeros(1)))

    def g(x):
        s[...] = lax.stop_gradient(x) * 2
        return jnp.sum(jnp.sin(x) * s[...])

    def h(x):
        count[0] += 1.0
        return jnp.sum(jnp.sin(x) * count[0])

    log = jax.new_ref(v, kind="no_grad_no_remat")

    def k(x):
        log[0] = log[0] + 1.0
        return jnp.sum(jnp.sin(x))

    return [
        jax.grad(jax.checkpoint(f))(v),
        jax.jit(jax.grad(jax.checkpoint(f)))(v),
        jax.grad(jax.checkpoint(g))(v),
        s[...],
        jax.grad(jax.checkpoint(h))(v),
        count[...],
        jax.grad(jax.checkpoint(k))(v),
        log[...],
    ]


PLUMBING = Programs()


@PLUMBING
def plumbing_written_backwards():

    @jax.custom_vjp
    def tap(ref, x):
        return x

    def backward(ref, g):
        ref[...] = g
        return None, g

    tap.defvjp(lambda ref, x: (x, ref), backward)
    r = jax.new_ref(jnp.zeros(3))

    def f(x, r):
        return jnp.sum(tap(r, jnp.sin(x)) ** 2)

    def inside(x):
        r = jax.new_ref(jnp.zeros(3))
        return jax.grad(f)(x, r), r[...]

    def own(x):
        r = jax.new_ref(jnp.zeros(3))
        return jnp.sum(tap(r, jnp.sin(x)) ** 2) + r[...].sum()

    g = lambda x: f(x, r)
    return [
        jax.grad(f)(v, r),
        r[...],
        jax.jit(jax.grad(f))(v + 1, r),
        r[...],
        jax.grad(g)(v),
        r[...],
        jax.jit(jax.grad(g))(v + 1),
        r[...],
        inside(v),
        jax.jit(inside)(v),
        jax.grad(own)(v),
        str(jax.make_jaxpr(jax.grad(f))(v, r)),
        str(jax.make_jaxpr(f)(v, r)),
        str(jax.make_jaxpr(inside)(v)),
        str(jax.make_jaxpr(jax.jit(jax.grad(g)))(v)),
    ]


@PLUMBING
def plumbing_added_in_a_scan():

    @jax.custom_vjp
    def tap(ref, x):
        return x

    def backward(ref, g):
        ref[...] += g
        return None, g

    tap.defvjp(lambda ref, x: (x, ref), backward)
    r = jax.new_ref(jnp.zeros(3))

    def f(x):
        return jnp.sum(lax.scan(lambda c, _: (tap(r, jnp.sin(c)), None), x, None, length=3)[0])

    return [jax.grad(f)(v), r[...], jax.jit(jax.grad(f))(v), r[...]]


@PLUMBING
def plumbing_closed_over_backwards():
    r = jax.new_ref(jnp.zeros(3))

    @jax.custom_vjp
    def tap(x):
        return x

    tap.defvjp(lambda x: (x, None), lambda _, g: (jax.ref.addupdate(r, ..., g), (g,))[1])

    @jax.custom_vjp
    def told(x):
        r[...] = x
        return x

    told.defvjp(lambda x: (x, None), lambda _, g: (g,))
    f = lambda x: jnp.sum(tap(x) ** 2)
    return [
        jax.grad(f)(v),
        r[...],
        jax.jit(jax.grad(f))(v),
        r[...],
        told(v),
        r[...],
        jax.grad(lambda x: told(x).sum())(v),
    ]


@PLUMBING
def plumbing_custom_jvp():
    r = jax.new_ref(v)

    @jax.custom_jvp
    def f(ref, x):
        ref[0] = 1.0
        return x

    f.defjvp(lambda p, t: (f(*p), t[1] * 2))
    return [f(r, v), r[...], jax.grad(lambda x: f(r, x).sum())(v)]


@PLUMBING
def plumbing_with_refs():
    f = lambda x, y: jnp.sum(jnp.sin(x["a"]) * y)
    a, b = (jax.new_ref(v), jax.new_ref(jnp.ones(3)))
    pull = jax.vjp(f, {"a": v}, v)[1]
    out = pull.with_refs({"a": a}, b)(1.0)
    more = jax.vjp(f, {"a": v}, v)[1].with_refs({"a": a}, True)(2.0)

    def step(x, r):
        jax.vjp(lambda x: jnp.sum(jnp.sin(x)), x)[1].with_refs(r)(1.0)

    jax.jit(step)(v, b)
    return [str(out), a[...], b[...], str(more[0]), more[1], str(jax.make_jaxpr(step)(v, b))]


BATCHES = Programs()


@BATCHES
def batches_arguments():
    r, s = (jax.new_ref(v), jax.new_ref(m))

    def put(r, y):
        r[0] = y

    result = [jax.vmap(lambda r: r[...] * 2)(r)]
    jax.vmap(put)(s, jnp.array([10.0, 20.0]))
    result.append(s[...])
    jax.vmap(put, in_axes=(0, None))(s, 5.0)
    result.append(s[...])
    jax.vmap(put, in_axes=(1, 0))(s, v)
    result.append(s[...])
    jax.jit(jax.vmap(put))(s, jnp.array([1.0, 2.0]))
    result.append(s[...])
    jax.vmap(jax.jit(put))(s, jnp.array([3.0, 4.0]))
    result.append(s[...])
    result += [
        str(jax.make_jaxpr(jax.vmap(put, in_axes=axes))(s, x))
        for axes, x in ((0, jnp.array([10.0, 20.0])), ((0, None), jnp.float32(5)), ((1, 0), v))
    ]
    return result


@BATCHES
def batches_closed_over():
    r, s = (jax.new_ref(v), jax.new_ref(m))
    two = jnp.arange(2)
    fs = [lambda i: r[i], lambda i: s[i], lambda i: s[:, i], lambda i: s[i, i], lambda i: r[0]]
    result = [jax.vmap(f)(two) for f in fs[:4]]
    result += [str(jax.make_jaxpr(jax.vmap(f))(two)) for f in fs[:4]]
    result.append(jax.vmap(lambda y: r[0] + y)(v))
    return result


@BATCHES
def batches_made_inside():

    def f(y):
        r = jax.new_ref(y)
        r[0] = 1.0
        return r[...]

    def g(y):
        r = jax.new_ref(jnp.zeros(2))
        r[0] = y
        return r[...]

    def h(y):
        r = jax.new_ref(jnp.zeros(2))
        r[0] = 1.0
        return r[...] + y

    def k(y):
        return jax.freeze(jax.new_ref(jnp.zeros(2)))

    return [
        jax.vmap(f)(m),
        jax.vmap(g)(v),
        jax.vmap(h)(v),
        jax.vmap(k)(v),
        jax.vmap(jax.jit(g))(v),
        jax.jit(jax.vmap(g))(v),
    ]


@BATCHES
def batches_indices():
    s = jax.new_ref(m)
    i, x = (jnp.array([0, 1]), jnp.array([50.0, 60.0]))

    def put(r, i, y):
        r[i] = y

    get = lambda r, i: r[i]
    result = [jax.vmap(get)(s, i), jax.vmap(get, in_axes=(1, 0))(s, jnp.array([0, 1, 0]))]
    jax.vmap(put)(s, i, x)
    result.append(s[...])
    jax.vmap(lambda r, i, y: jax.ref.addupdate(r, i, y))(s, i, x)
    result.append(s[...])
    result.append(jax.vmap(lambda r, i, y: jax.ref.swap(r, i, y))(s, i, x))
    result += [
        s[...],
        jax.vmap(lambda r: r[1:])(s),
        jax.vmap(get)(s, jnp.array([[0, 1], [1, 1]])),
        jax.vmap(lambda r: r[jnp.array([0, 1])])(s),
    ]
    result += [
        str(jax.make_jaxpr(jax.vmap(get))(s, i)),
        str(jax.make_jaxpr(jax.vmap(put))(s, i, x)),
        str(jax.make_jaxpr(jax.vmap(get, in_axes=(1, 0)))(s, jnp.array([0, 1, 0]))),
    ]
    return result


@BATCHES
def batches_loops():
    s = jax.new_ref(m)

    def scan(r):

        def body(c, _):
            r[0] += 1.0
            return c + r[0], None

        return lax.scan(body, 0.0, None, length=2)[0]

    def loop(r, n):
        return lax.while_loop(
            lambda i: i < n, lambda i: (jax.ref.addupdate(r, 0, 1.0), i + 1)[1], 0
        )

    def own(x):

        def body(c, y):
            r = jax.new_ref(c)
            r[...] = r[...] * y
            return r[...], None

        return lax.scan(body, x.sum(), x)[0]

    return [
        jax.vmap(scan)(s),
        s[...],
        jax.vmap(loop, in_axes=(0, None))(s, 2),
        s[...],
        jax.vmap(loop)(s, jnp.array([1, 2])),
        s[...],
        jax.vmap(own)(m + 1),
        jax.jit(jax.vmap(own))(m + 1),
    ]

def write_of_an_example():
    r = jax.new_ref(jnp.zeros(3))
    return jax.vmap(lambda y: jax.ref.set(r, 0, y))(jnp.ones(2))


def write_by_each_example():
    r = jax.new_ref(jnp.zeros(3))
    return jax.vmap(lambda y: jax.ref.set(r, 0, 7.))(jnp.ones(2))


def addition_at_an_examples_place():
    r = jax.new_ref(jnp.zeros(3))
    return jax.vmap(lambda i: jax.ref.addupdate(r, i, 1.))(jnp.arange(2))


def write_in_a_call():
    r = jax.new_ref(jnp.zeros(3))
    return jax.vmap(jax.jit(lambda y: jax.ref.set(r, 0, y)))(jnp.ones(2))


def addition_in_a_scan():
    r = jax.new_ref(jnp.zeros(3))

    def body(c, _, y):
        jax.ref.addupdate(r, 0, y)
        return c, None

    return jax.vmap(lambda y: lax.scan(lambda c, x: body(c, x, y), y, None, length=2))(jnp.ones(2))


def differentiated_write():
    r = jax.new_ref(jnp.zeros(3))
    return jax.grad(lambda x: (jax.ref.set(r, 0, x), x)[1])(1.)


def differentiated_write_in_a_call():
    r = jax.new_ref(jnp.zeros(3))
    return jax.jit(jax.grad(lambda x: (jax.ref.set(r, 0, x), x)[1]))(1.)


SET_OF_STACK = "performing a set/swap operation with vmapped value on an unbatched array reference"
ADDED_STACK = "performing an addupdate operation with vmapped value on an unbatched array reference"
SET_OF_TANGENT = ("set/swap operation with a differentiated value on a non-differentiated array "
                  "reference")
REFUSED = [
    (write_of_an_example, SET_OF_STACK),
    (write_by_each_example, SET_OF_STACK),
    (addition_at_an_examples_place, ADDED_STACK),
    (write_in_a_call, SET_OF_STACK),
    (addition_in_a_scan, ADDED_STACK),
    (differentiated_write, SET_OF_TANGENT),
    (differentiated_write_in_a_call, SET_OF_TANGENT),
]


@pytest.mark.parametrize("group", [DERIVATIVES, PLUMBING, BATCHES],
                         ids=["derivatives", "plumbing", "batches"])
def test_programs(jax_oracle, group):
    same_programs(jax_oracle, group)


@pytest.mark.parametrize(("program", "sentence"), REFUSED)
def test_refused(jax_oracle, program, sentence):
    same_error(jax_oracle, program, sentence)


# -- what JAX 0.10.2 cannot do ---------------------------------------------------------------------

X = np.linspace(.5, 2, 6, dtype=np.float32).reshape(2, 3)


def with_ref(x, p=True):
    r = jax.new_ref(jnp.zeros(3))
    r[0] = x[0] * x[1]
    jax.ref.addupdate(r, slice(1, 3), x[1:] ** 2)

    def body(c, y):
        r[2] = r[2] * y
        return c + r[0], None

    c, _ = lax.scan(body, x[0], x)
    a = lax.cond(p, lambda: jax.ref.swap(r, 1, c * x[2]), lambda: r[1] * 2)
    return a + (r[...] * x).sum()


def with_array(x, p=True):
    r = jnp.concatenate([(x[0] * x[1])[None], x[1:] ** 2])
    c = x[0] + 3 * r[0]
    r = r.at[2].set(r[2] * x[0] * x[1] * x[2])
    a = jnp.where(p, r[1], r[1] * 2)
    r = r.at[1].set(jnp.where(p, c * x[2], r[1]))
    return a + (r * x).sum()


TRANSFORMED = {
    "itself": lambda f: jax.vmap(f),
    "vmap of grad": lambda f: jax.vmap(jax.grad(f)),
    "grad of vmap": lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum()),
    "jit of vmap of grad": lambda f: jax.jit(jax.vmap(jax.grad(f))),
    "vmap of grad of jit": lambda f: jax.vmap(jax.grad(jax.jit(f))),
    "grad of grad": lambda f: jax.vmap(jax.grad(lambda x: jax.grad(f)(x).sum())),
    "grad of jit of grad": lambda f: jax.vmap(
        jax.grad(lambda x: jax.jit(jax.grad(jax.jit(f)))(x).sum())),
    "forward over reverse": lambda f: jax.vmap(lambda x: jax.jvp(jax.grad(f), (x,), (x,))[1]),
    "jacfwd": lambda f: jax.vmap(jax.jacfwd(f)),
    "hessian": lambda f: jax.vmap(jax.hessian(f)),
    "jacrev of grad": lambda f: jax.vmap(jax.jacrev(jax.grad(f))),
    "checkpoint": lambda f: jax.vmap(jax.grad(jax.checkpoint(f))),
    "jit of grad of checkpoint": lambda f: jax.jit(jax.vmap(jax.grad(jax.checkpoint(f)))),
    "in a scan": lambda f: lambda xs: lax.scan(lambda c, x: (c + jax.grad(f)(x), f(x)), 0. * xs[0],
                                               xs),
    "grad of a scan": lambda f: jax.grad(lambda xs: lax.scan(
        lambda c, x: (c + f(x * c), None), jnp.float32(1), xs)[0]),
    "in a branch": lambda f: lambda xs: lax.cond(xs[0, 0] > 0, jax.grad(f), lambda x: x, xs[0]),
}


def test_computing_again_starts_from_what_a_reference_held_then():
    """JAX 0.10.2 loses the derivative of the first, and refuses the others."""
    def changed(x, y):
        r = jax.new_ref(x)
        jax.checkpoint(lambda: r.__setitem__(..., jnp.sin(r[...])))()
        return (r[...] * y).sum()

    def overwritten(x, y):
        r = jax.new_ref(x)
        r[...] = jax.checkpoint(lambda y: jnp.sin(r[...]) * y)(y)
        return r[...].sum()

    def passed(x, y):
        r = jax.new_ref(x)

        @jax.checkpoint
        def change(r, y):
            r[...] = jnp.sin(r[...])
            r[...] *= y

        jax.checkpoint(lambda r, y: change(r, y))(r, y)
        return r[...].sum()

    def in_a_loop(x, y):
        r = jax.new_ref(x)
        step = jax.checkpoint(lambda y: r.__setitem__(..., jnp.sin(r[...]) * y))
        lax.scan(lambda c, _: (step(y), (c, None))[1], 0, length=1)
        return r[...].sum()

    x, y = jnp.asarray(X[0]), jnp.float32(2)
    for f in (changed, overwritten, passed, in_a_loop):
        for grad in (jax.grad(f, (0, 1)), jax.jit(jax.grad(f, (0, 1)))):
            by_x, by_y = grad(x, y)
            np.testing.assert_allclose(by_x, np.cos(X[0]) * 2, rtol=1e-6)
            np.testing.assert_allclose(by_y, np.sin(X[0]).sum(), rtol=1e-6)


@pytest.mark.parametrize("name", TRANSFORMED)
def test_with_a_reference_as_with_an_array(name):
    transform = TRANSFORMED[name]
    for got, wanted in zip(jax.tree.leaves(transform(with_ref)(X)),
                           jax.tree.leaves(transform(with_array)(X))):
        np.testing.assert_allclose(got, wanted, rtol=2e-5)


def test_batched_predicates_choose_for_each_example():
    p = np.array([True, False])
    for f in (jax.vmap(with_ref), jax.jit(jax.vmap(with_ref)), jax.vmap(jax.jit(with_ref))):
        np.testing.assert_allclose(f(X, p), jax.vmap(with_array)(X, p), rtol=1e-5)
    got = jax.vmap(jax.grad(with_ref))(X, p)
    np.testing.assert_allclose(got, jax.vmap(jax.grad(with_array))(X, p), rtol=1e-5)
    s = jax.new_ref(jnp.zeros((2, 3)))
    jax.vmap(lambda r, p: lax.cond(p, lambda: r.__setitem__(0, 1.), lambda: None))(s, p)
    np.testing.assert_array_equal(s[...], [[1, 0, 0], [0, 0, 0]])


def test_rows_of_a_batched_reference_are_scanned():
    s = jax.new_ref(X)

    def total(r):
        def body(c, row):
            row[...] += 1.
            return c + row[...], None
        return lax.scan(body, 0., r)[0]

    np.testing.assert_allclose(jax.vmap(total)(s), (X + 1).sum(1), rtol=1e-6)
    np.testing.assert_allclose(s[...], X + 1)


def test_checkpoint_of_what_works_on_a_reference_outside():
    def f(x):
        r = jax.new_ref(jnp.zeros(3))

        @jax.checkpoint
        def inner(x):
            r[0] = x[1] * 2
            return r[0] * x[0]

        return inner(x) + r[...].sum()

    np.testing.assert_allclose(jax.grad(f)(X[0]), [2 * X[0, 1], 2 * X[0, 0] + 2, 0], rtol=1e-6)


def test_each_device_has_its_part_of_a_reference():
    mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("i")
    x = np.arange(8, dtype=np.float32)

    def on_devices(f):
        return jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)

    def own(x):
        r = jax.new_ref(x)
        r[0] = r[1] * 2
        return r[...]

    def given(r):
        r[0] = r[1] * 2
        return r[...] + 1

    wanted = np.repeat(x[1::2], 2) * np.tile([2, 1], 4)
    for f in (on_devices(own), jax.jit(on_devices(own))):
        np.testing.assert_array_equal(f(x), wanted)
    for f in (on_devices(given), jax.jit(on_devices(given))):
        ref = jax.new_ref(jax.device_put(x, jax.NamedSharding(mesh, spec)))
        np.testing.assert_array_equal(f(ref), wanted + 1)
        np.testing.assert_array_equal(ref[...], wanted)
    np.testing.assert_array_equal(
        jax.grad(lambda x: on_devices(own)(x).sum())(x), np.tile([0, 3], 4))
    np.testing.assert_array_equal(jax.pmap(own)(x.reshape(4, 2)), wanted.reshape(4, 2))


def test_derivatives_of_parts_with_gaps():
    def f(x):
        r = jax.new_ref(jnp.zeros((2, 6)))
        r[1, 1::2] = x ** 2
        r[:, ::3] = r[:, 1::4] * 2
        return (r[...] ** 2).sum() + r[1, ::2][1] * r[1, 5]

    def g(x):
        r = jnp.zeros((2, 6)).at[1, 1::2].set(x ** 2)
        r = r.at[:, ::3].set(r[:, 1::4] * 2)
        return (r ** 2).sum() + r[1, ::2][1] * r[1, 5]

    for d in (jax.grad, lambda f: jax.jit(jax.grad(f))):
        np.testing.assert_allclose(d(f)(X[0]), d(g)(X[0]), rtol=1e-5)


def test_programs_are_well_formed():
    for f in (jax.grad(with_ref), lambda x: jax.jvp(with_ref, (x,), (x,)),
              jax.grad(jax.checkpoint(with_ref)), jax.grad(jax.jit(with_ref))):
        check_jaxpr(jax.make_jaxpr(f)(X[0]))
        check_jaxpr(jax.make_jaxpr(jax.vmap(f))(X))


def test_evaluator_agrees_on_derivatives():
    for f in (with_ref, jax.grad(with_ref)):
        closed = jax.make_jaxpr(f)(X[0])
        np.testing.assert_allclose(jax.evaluate(closed, X[0])[0], f(X[0]), rtol=1e-5)


def test_gradient_of_a_reference_is_refused():
    with pytest.raises(ValueError, match="Expected cotangent type"):
        jax.grad(lambda r: jnp.sum(r[...] ** 2))(jax.new_ref(jnp.ones(3)))
