"""Does an interpreter that a library writes see what it sees on JAX, and change nothing?"""

from __future__ import annotations

import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.extend import linear_util
from saem.extend.core import primitives, set_current_trace, take_current_trace


class WatchedTracer(jax.core.Tracer):
    """A value that ``Watch`` follows."""

    def __init__(self, trace, value):
        super().__init__(trace, jax.typeof(value))
        self.value = value


class Watch(jax.core.Trace):
    """Notes the name of every primitive, and whether its operands are its own."""

    def __init__(self, parent, seen):
        super().__init__()
        self.parent_trace = parent
        self.seen = seen

    def value(self, x):
        return x.value if isinstance(x, WatchedTracer) and x._trace is self else x

    def process_primitive(self, primitive, tracers, params):
        own = "".join("T" if isinstance(x, WatchedTracer) else "c" for x in tracers)
        self.seen.append(f"{primitive} {own}")
        values = [self.value(x) for x in tracers]
        with set_current_trace(self.parent_trace):
            out = primitive.bind(*values, **params)
        if primitive.multiple_results:
            return [WatchedTracer(self, x) for x in out]
        return WatchedTracer(self, out)


class WatchRules(Watch):
    """Applies the rules of functions that have some."""

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        values = [self.value(x) for x in tracers]
        with set_current_trace(self.parent_trace):
            flat = jvp.call_wrapped(*values, *values)
        self.seen.append((str(primitive), symbolic_zeros, [float(x) for x in flat]))
        return [WatchedTracer(self, x) for x in flat[:len(flat) // 2]]

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, out_trees,
                                symbolic_zeros):
        values = [self.value(x) for x in tracers]
        pairs = [y for x in values for y in (x, True)]
        with set_current_trace(self.parent_trace):
            flat = fwd.call_wrapped(*pairs)
            outs, count = out_trees()[0].num_leaves, len(flat)
            results = flat[count - outs:]
            residuals = [values[i] if i is not None else None for i in out_trees()[2]]
            rest = iter(flat)
            residuals = [next(rest) if r is None else r for r in residuals]
            cts = bwd.call_wrapped(*residuals, *results)
        self.seen.append((str(primitive), symbolic_zeros, [float(x) for x in cts]))
        return [WatchedTracer(self, x) for x in results]


class HandsDown(Watch):
    """Gives its own values to the interpreter below, where a function has rules."""

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        with set_current_trace(self.parent_trace):
            return fun.call_wrapped(*tracers)


@linear_util.transformation2
def watched_inside(fun, trace, *xs):
    """Run ``fun`` on values that an interpreter like ``trace`` follows."""
    zero = jax.custom_derivatives.SymbolicZero
    with take_current_trace() as parent:
        inner = type(trace)(parent, trace.seen)
        with set_current_trace(inner):
            out = fun(*[x if isinstance(x, (zero, bool)) else WatchedTracer(inner, x) for x in xs])
    return [inner.value(x) for x in out]


class HandsFunctionsDown(Watch):
    """Binds a function with rules below itself, as functions that it follows."""

    def inside(self, *funs):
        return tuple(watched_inside(fun, self) for fun in funs)

    def bind_below(self, primitive, tracers, params):
        values = tuple(self.value(x) for x in tracers)
        avals = tuple(map(jax.typeof, values))
        out = primitive.bind_with_trace(self.parent_trace, values, avals, params)
        return [WatchedTracer(self, x) for x in out]

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        return self.bind_below(primitive, tracers, {
            "subfuns": self.inside(fun, jvp), "symbolic_zeros": symbolic_zeros})

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, out_trees,
                                symbolic_zeros):
        return self.bind_below(primitive, tracers, {
            "subfuns": self.inside(fun, fwd, bwd), "out_trees": out_trees,
            "symbolic_zeros": symbolic_zeros})


class Silent(jax.core.Trace):
    """An interpreter that does not say what becomes of operations."""

    def __init__(self, parent, seen):
        super().__init__()

    def value(self, x):
        return x


def watch(fun, *xs, kind=Watch):
    """Return what ``fun`` gives, and what was seen."""
    seen = []
    with take_current_trace() as parent:
        trace = kind(parent, seen)
        with set_current_trace(trace):
            out = fun(*[WatchedTracer(trace, x) for x in xs])
        found = jax.tree.map(trace.value, out, is_leaf=lambda x: isinstance(x, WatchedTracer))
    return found, seen


def test_operations_and_calls_come_as_on_jax(jax_oracle):
    def program():
        x, v = jnp.float32(2.), jnp.arange(3.)
        return [
            watch(jnp.sin, x),
            watch(lambda x: lax.mul(x, x), x),
            watch(jnp.dot, v, v),
            watch(jax.jit(lambda x: jnp.sin(x) + 1), x),
            watch(lambda x: lax.scan(lambda c, _: (c * 2, c), x, None, length=3), x),
            watch(lambda x: lax.while_loop(lambda x: x < 10, lambda x: x * 2, x), x),
            watch(jnp.linalg.norm, v),
            watch(jax.checkpoint(jnp.sin), x),
            watch(lambda x: lax.broadcast_in_dim(lax.sin(v), (2, 3), (1,)) * 1, x)[0],
            watch(lambda x: 1.0, x),
            watch(lambda x: watch(jnp.sin, x)[0], x),
        ]

    same(jax_oracle, program)


def test_an_interpreter_works_under_and_over_transformations(jax_oracle):
    def program():
        x, v = jnp.float32(2.), jnp.arange(3.)

        def f(x):
            return watch(lambda x: jnp.sin(x) * x[..., None].sum(), x)[0]

        inside = [watch(jax.grad(jnp.sin), x), watch(lambda x: jax.jvp(jnp.sin, (x,), (x,)), x),
                  watch(jax.vmap(jnp.sin), v), watch(jax.jit(jax.grad(jnp.sin)), x)]
        return [jax.jit(f)(x), jax.grad(f)(x), jax.vmap(f)(v), jax.jit(jax.vmap(jax.grad(f)))(v),
                [found for found, _ in inside]]

    same(jax_oracle, program)


def test_functions_with_rules_hand_over_their_rules(jax_oracle):
    def program():
        @jax.custom_jvp
        def forward(x, y):
            return jnp.sin(x) * y

        forward.defjvp(lambda primals, tangents: (forward(*primals),
                                                  3 * tangents[0] + tangents[1]))

        @jax.custom_vjp
        def backward(x, y):
            return {"a": jnp.sin(x), "b": y}

        backward.defvjp(lambda x, y: (backward(x, y), (x * 2, y)),
                        lambda saved, ct: (ct["a"] * saved[0], ct["b"] + saved[1]))
        x, y = jnp.float32(2.), jnp.float32(5.)
        return [watch(lambda x, y: lax.neg(forward(x, y)), x, y, kind=WatchRules)[1],
                watch(lambda x, y: lax.neg(backward(x, y)["a"]), x, y, kind=WatchRules)[1]]

    same(jax_oracle, program)
    same_error(jax_oracle, "watch(jax.nn.relu, jnp.float32(1.))",
               "must override process_custom_jvp_call to handle custom_jvp primitives",
               within=__name__)


def test_an_interpreter_may_hand_down_its_own_values(jax_oracle):
    def program():
        ruled = jax.custom_jvp(lambda x: lax.neg(lax.sin(x)))
        ruled.defjvp(lambda primals, tangents: (ruled(*primals), tangents[0]))
        seen = []

        def f(x):
            value, names = watch(lambda x: lax.exp(ruled(lax.mul(x, x))), x, kind=HandsDown)
            seen.append(names)
            return value

        return [jax.eval_shape(f, jnp.ones((2, 3))).shape, str(jax.make_jaxpr(f)(1.)), seen]

    same(jax_oracle, program)


def with_forward_rule(symbolic_zeros, seen):
    """Return a function with a rule that notes which tangents are symbolic zeros."""
    @jax.custom_jvp
    def forward(x, y):
        return jnp.sin(x) * y, lax.exp(y)

    def rule(primals, tangents):
        zero = jax.custom_derivatives.SymbolicZero
        seen.append([type(t) is zero for t in tangents])
        x, y = [0. if type(t) is zero else t for t in tangents]
        out = forward(*primals)
        last = zero.from_primal_value(out[1]) if symbolic_zeros else 0. * out[1]
        return out, (3 * x + y * primals[0], last)

    forward.defjvp(rule, symbolic_zeros=symbolic_zeros)
    return forward


def with_backward_rule(symbolic_zeros, seen):
    """Return a function with rules that note what varies, and which cotangents are zeros."""
    @jax.custom_vjp
    def backward(x, y):
        return {"a": jnp.sin(x) * y, "b": lax.exp(y)}

    def fwd(x, y):
        if symbolic_zeros:
            seen.append([x.perturbed, y.perturbed])
            x, y = x.value, y.value
        return backward(x, y), (x * 2, y)

    def bwd(saved, ct):
        zero = jax.custom_derivatives.SymbolicZero
        seen.append([type(ct[name]) is zero for name in "ab"])
        a, b = [0. if type(ct[name]) is zero else ct[name] for name in "ab"]
        return a * saved[0] + 0. * saved[1], saved[1] * 7 + b

    backward.defvjp(fwd, bwd, symbolic_zeros=symbolic_zeros)
    return backward


@pytest.mark.parametrize("symbolic_zeros", [False, True])
def test_an_interpreter_may_hand_down_functions_with_rules(jax_oracle, symbolic_zeros):
    def program(symbolic_zeros):
        seen, found = [], []
        forward = with_forward_rule(symbolic_zeros, seen)
        backward = with_backward_rule(symbolic_zeros, seen)
        x, y, v = jnp.float32(2.), jnp.float32(5.), jnp.arange(3.)
        for ruled in (lambda x, y: lax.neg(forward(x, y)[0]),
                      lambda x, y: lax.mul(*forward(lax.sin(x), y)),
                      lambda x, y: lax.neg(backward(x, y)["a"]),
                      lambda x, y: lax.mul(*backward(lax.sin(x), y).values())):
            def f(x, y, ruled=ruled):
                return watch(ruled, x, y, kind=HandsFunctionsDown)[0]

            found += [f(x, y), jax.jit(f)(x, y), jax.grad(f)(x, y), jax.grad(f, 1)(x, y),
                      jax.jit(jax.grad(f, (0, 1)))(x, y), jax.vmap(f, (0, None))(v, y),
                      jax.vmap(jax.grad(f), (None, 0))(x, v), jax.grad(jax.jit(f))(x, y),
                      jax.vjp(jax.jit(f), x, y)[1](1.), jax.vmap(jax.jit(jax.grad(f)))(v, v)]
        return found, sorted(set(map(tuple, seen)))

    same(jax_oracle, program, symbolic_zeros=symbolic_zeros)


def test_a_value_of_a_function_inside_is_not_one_that_is_handed_down(jax_oracle):
    same_error(jax_oracle, "jax.jit(lambda x: [kept for kept in [[]] if [jax.jit(lambda y: "
               "kept.append(y))(x)]][0][0] + 1)(1.)", "unexpected tracer", within=__name__)


def test_what_an_interpreter_does_not_know_is_refused(jax_oracle):
    for source, message in (
            ("watch(lambda x: float(x), jnp.float32(1.))", "Abstract tracer value"),
            ("watch(lambda x: bool(x > 1), jnp.float32(1.))", "boolean conversion"),
            ("jnp.sin([watch(lambda x: kept.append(x), jnp.float32(1.)) and 0 or kept[0]"
             " for kept in [[]]][0])", "unexpected tracer")):
        same_error(jax_oracle, source, message, within=__name__)

    same_error(jax_oracle, "watch(jnp.sin, jnp.float32(1.), kind=Silent)", "must override",
               within=__name__)


def test_interpreters_of_the_engine_take_primitives_too(jax_oracle):
    def program():
        x = jnp.float32(2.)
        aval = jax.typeof(x)
        sin = primitives.sin_p
        with take_current_trace() as parent:
            at_once = [sin.bind_with_trace(parent, (x,), (aval,), {"accuracy": None}),
                       parent.process_primitive(sin, (x,), {"accuracy": None}),
                       parent.stage_value(x)]
        staged = jax.make_jaxpr(lambda x: sin.bind_with_trace(
            x._trace, (x,), (aval,), {"accuracy": None}))(x)
        parents = []

        def note(x):
            parents.append(type(x._trace.parent_trace).__name__)
            return x

        jax.vmap(note)(jnp.ones(2)), jax.jvp(note, (1.,), (1.,)), jax.jit(note)(1.)
        return at_once, str(staged), parents

    same(jax_oracle, program)


def test_a_layer_leaves_its_contexts_where_the_function_fails():
    left = []

    class Context:
        def __enter__(self):
            left.append("in")

        def __exit__(self, *exc):
            left.append("out")

    @linear_util.transformation
    def layer(*args):
        with Context():
            results = yield args, {}
            yield results

    def fails():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        layer(linear_util.wrap_init(fails)).call_wrapped()
    assert left == ["in", "out"] and caught.value is not None
