"""How does a compiled program call back into Python?

A callback is an equation.  XLA calls a Python function (``HostCall``) with NumPy views of the
operands and takes NumPy arrays back; outside any trace the function is called directly.  What
differs between the kinds is what the engine may assume: a pure callback may be dropped, repeated or
moved, an io callback happens once where it stands, a debug callback also follows the primal values
through every transformation.

Read before: ``effects.host_calls``.  Read after: ``effects.debugging``.
Invariant: a callback that raises leaves the engine usable, and the error names it
(tests/kernel/test_callbacks.py).
Source: the documentation of jax.pure_callback, jax.experimental.io_callback and jax.debug.callback.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile import dispatch
from saem.compile.device_assignment import hold, placement
from saem.core import dtypes, effects, errors, finite, tree
from saem.core.avals import ShapedArray, aval_of
from saem.core.effects import Effect
from saem.core.primitive import Primitive, absent, primitive
from saem.core.trace import bind
from saem.effects.host_calls import Callback, FlatCallback, as_value, name_of, run
from saem.loops.scan import Scan
from saem.ops import sharding_rules, sum_rules
from saem.ops.linear import broadcast_in_dim, moveaxis
from saem.ops.slicing import index_in_dim
from saem.transform.staging import trace_flat
from saem.transform.vmap import fronted

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
                "legacy_vectorized", None)


def check_vmap_method(tag: str, method: Any) -> None:
    """Refuse what is not a ``vmap_method``.  Raises: ValueError."""
    if method not in VMAP_METHODS:
        raise errors.explained(
            errors.ArgumentError, tag,
            f"vmap_method must be on of the allowed methods {list(VMAP_METHODS)}, but got: "
            f"{method}", advice="'sequential' is the safe choice: one call per example.")


def refuse(error: type[Exception], tag: str, sentence: str, advice: str) -> Callable:
    """Return a rule that raises the reason why it cannot exist."""

    def rule(self: Any, *_args: Any) -> Any:
        raise errors.explained(error, tag, sentence, advice=advice)

    return rule


def one_by_one(prim: Callback, size: int, xs: Sequence[Any], dims: Sequence[int | None]
               ) -> list[list[Any]]:
    """Call ``prim`` on each example in turn; returns the outputs of each."""
    return [bind(prim, *[x if d is None else index_in_dim(x, i, d, keepdims=False)
                         for x, d in zip(xs, dims)]) for i in range(size)]


def batch_sequentially(prim: Callback, size: int, xs: Sequence[Any], dims: Sequence[int | None],
                       unroll: int = 1) -> tuple[list[Any], list[int]]:
    """Call ``prim`` on each example in turn, in a loop, and stack the outputs."""
    same = [i for i, d in enumerate(dims) if d is None]
    order = same + [i for i, d in enumerate(dims) if d is not None]
    stacks = fronted(xs, dims)
    avals = [a if d is None else a.update(shape=a.shape[1:])
             for a, d in zip(map(aval_of, stacks), dims)]

    def body(*row: Any) -> list[Any]:
        given = dict(zip(order, row))
        return bind(prim, *(given[i] for i in range(len(order))))

    program = trace_flat(body, [avals[i] for i in order], name="vmap", debug_name=prim.name)
    outs = bind(Scan(program, size, len(same), 0, unroll=unroll), *(stacks[i] for i in order))
    return outs, [0] * len(outs)


def stacked(method: str, size: int, x: Any, dim: int | None) -> Any:
    """Return an operand with its batch axis in front, as the vmap method needs it."""
    if dim is not None:
        return moveaxis(x, dim, 0)
    if method == "legacy_vectorized":
        return x
    shape = aval_of(x).shape
    return broadcast_in_dim(x, (size if method == "broadcast_all" else 1, *shape),
                            tuple(range(1, len(shape) + 1)))


def batch_by_method(prim: Any, tag: str, size: int, xs: Sequence[Any], dims: Sequence[int | None],
                    on_stacks: Callable[[list[Any]], Primitive]) -> tuple[list[Any], list[int]]:
    """Call ``prim`` on a batch by its ``vmap_method``: in turn, or once on whole stacks.

    ``on_stacks`` gives the call for stacks.  Raises: NotImplementedError if there is no method.
    """
    method = prim.vmap_method
    if method is None:
        raise errors.explained(
            NotImplementedError, tag,
            f"vmap is only supported for the {prim.name} primitive when vmap_method is one of "
            "'sequential', 'sequential_unrolled', 'expand_dims', 'broadcast_all', or "
            "'legacy_vectorized'. Got vmap_method=None.",
            advice="'sequential' calls the function once per example; with 'expand_dims' or "
            "'broadcast_all' it is called once and must handle a leading axis.")
    if method.startswith("sequential"):
        return batch_sequentially(
            prim, size, xs, dims, size if method == "sequential_unrolled" else 1)
    stacks = [stacked(method, size, x, d) for x, d in zip(xs, dims)]
    outs = bind(on_stacks(stacks), *stacks)
    return outs, [0] * len(outs)


def call_now(prim: Callback, *args: Any) -> list[Any]:
    """Call the Python function now: there is no program to run it in.

    Raises: JaxRuntimeError, caused by what a pure or io callback raised.
    """
    if effects.is_ordered(prim.effects):
        effects.wait_for_token()
    where, committed = placement(args)
    arrays = [dispatch.put(x) for x in args]
    if not isinstance(prim, Debugging):  # of keys these get the numbers, as inside a program
        arrays = list(map(hold, arrays))
    try:
        outs = run(prim, arrays)
    except RuntimeError as error:
        effects.failure_in(str(error))
        cause = error.__cause__
        if isinstance(prim, Debugging) and cause is not None:
            raise cause from None
        raise _jaxlib.JaxRuntimeError(str(error)) from cause
    made = dispatch.put_results(outs, where, committed)
    if finite.wanted():
        for x in made:
            finite.check_made(x, prim.name)
    return [as_value(x, a) for x, a in zip(made, prim.out_avals)]


class ForValues(Callback):
    """A callback of ``callback`` for the sake of what it returns, of types ``result_avals``."""

    callback: FlatCallback
    result_avals: tuple[ShapedArray, ...]
    sharding: Any = None

    passes_nan = True
    out_avals = property(lambda self: self.result_avals)

    eager = call_now
    shard_results = sharding_rules.elsewhere
    sum_results = sum_rules.elsewhere
    requested_sharding = property(operator.attrgetter("sharding"))

    def host(self, *arrays):
        return self.callback(*arrays)

    def host_name(self):
        return name_of(self.callback.callback_func)

    transpose = absent("it is not differentiated, so it is never transposed", ValueError)


@primitive("pure_callback")
class PureCallback(ForValues):
    """Values computed by a Python function that depends on its arguments alone."""

    vmap_method: str | None = None
    threaded: bool = False

    jvp = refuse(errors.ArgumentError, "pure_callback.jvp",
                 "Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks "
                 "while taking gradients.",
                 "The engine cannot see into the Python function: give its derivative yourself.")

    def batch(self, size, xs, dims):
        avals = tuple(a.update(shape=(size, *a.shape)) for a in self.result_avals)
        return batch_by_method(
            self, "pure_callback.C1", size, xs, dims,
            lambda _: PureCallback(self.callback, avals, self.sharding, self.vmap_method))


@primitive("io_callback")
class IoCallback(ForValues):
    """Values from a Python function that also does something."""

    ordered: bool = False
    threaded: bool = False

    @property
    def effects(self):
        return frozenset({effects.ORDERED_IO if self.ordered else effects.IO})

    jvp = refuse(errors.ArgumentError, "io_callback.jvp", "IO callbacks do not support JVP.",
                 "Call it on lax.stop_gradient of its arguments, or give a derivative with "
                 "jax.custom_jvp.")

    def batch(self, size, xs, dims):
        if self.ordered:
            raise errors.explained(
                errors.ArgumentError, "io_callback.C1", "Cannot `vmap` ordered IO callback.",
                advice="Under vmap there is no first example. Use ordered=False, or lax.map.")
        return batch_sequentially(self, size, xs, dims)


class Debugging(Callback):
    """A callback that shows values, and changes none."""

    def jvp(self, primals, tangents):
        bind(self, *primals)
        return [], []

    transpose = absent("Transpose doesn't support debugging callbacks", ValueError)

    def batch(self, size, xs, dims):
        one_by_one(self, size, xs, dims)
        return [], []


@primitive("debug_callback")
class DebugCallback(Debugging):
    """Show values to a Python function."""

    callback: FlatCallback
    effect: Effect
    partitioned: bool = False
    threaded: bool = False

    eager = call_now
    shard_results = sharding_rules.elsewhere
    sum_results = sum_rules.elsewhere

    @property
    def effects(self):
        return frozenset({self.effect})

    def host(self, *arrays):
        self.callback(*arrays)

    def host_name(self):
        return name_of(self.callback.callback_func)


# -- public ----------------------------------------------------------------------------------------


def result_avals(name: str, wanted: Sequence[Any]) -> tuple[ShapedArray, ...]:
    """Return the avals of the results promised by objects with shape and dtype.

    Raises: ValueError for 64-bit types while they are off; AttributeError for other objects.
    """
    avals = []
    for x in wanted:
        dtype = x.dtype if isinstance(x.dtype, dtypes.ExtendedDType) else np.dtype(x.dtype)
        if dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True) != dtype:
            raise errors.explained(
                errors.ArgumentError, f"{name}.C2",
                "result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled",
                advice=f"Promise a 32-bit dtype instead of {dtype}, or turn on jax_enable_x64.")
        avals.append(ShapedArray(x.shape, dtype))
    return tuple(avals)


def check_arrays(name: str, leaves: Sequence[Any]) -> None:
    """Refuse arguments that are no arrays.

    Raises: TypeError naming the position of the first.
    """
    for number, x in enumerate(leaves):
        try:
            aval_of(x)
        except TypeError:
            raise errors.explained(
                errors.ArgumentTypeError, f"{name}.argument",
                f"Error interpreting argument to {name} as a JAX value. The problematic value is "
                f"of type {type(x)} and was passed to {name} at position {number}.",
                advice="Close over values that are no arrays: functools.partial(callback, value)."
            ) from None


def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any,
                  sharding: Any = None, vmap_method: str | None = None, **kwargs: Any) -> Any:
    """Return ``callback(*args, **kwargs)``, a Python function of arrays, called when the program
    runs.

    ``result_shape_dtypes`` is a pytree of objects with shape and dtype: the promised results.  The
    function must depend on its arguments alone: it may be called never, once or several times.

    Raises: ValueError for an unknown ``vmap_method``; TypeError for arguments that are no arrays.
    """
    hash(callback)
    check_vmap_method("pure_callback.C3", vmap_method)
    return promised("pure_callback", callback, result_shape_dtypes, args, kwargs,
                    lambda call, avals: PureCallback(call, avals, sharding, vmap_method))


def io_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any,
                sharding: Any = None, ordered: bool = False, **kwargs: Any) -> Any:
    """Return ``callback(*args, **kwargs)``, called exactly once each time the program gets here.

    With ``ordered``, it happens after every ordered callback before it in the program.

    Raises: TypeError for arguments that are no arrays.

    >>> from saem.experimental import io_callback
    >>> io_callback(lambda x: np.sin(x), jax.ShapeDtypeStruct((), jnp.float32), 0.)
    Array(0., dtype=float32)
    """
    return promised("io_callback", callback, result_shape_dtypes, args, kwargs,
                    lambda call, avals: IoCallback(call, avals, sharding, ordered))


def promised(who: str, callback: Callable[..., Any], result_shape_dtypes: Any, args: Any,
             kwargs: Any, make: Callable[..., Callback]) -> Any:
    """Bind the call of ``callback`` that ``make`` makes; its results are of the promised types."""
    leaves, in_tree = tree.flatten((args, kwargs))
    check_arrays(who, leaves)
    wanted, out_tree = tree.flatten(result_shape_dtypes)
    prim = make(FlatCallback(callback, in_tree), result_avals(who, wanted))
    return out_tree.unflatten(bind(prim, *leaves))


def separate(leaves: Sequence[Any]) -> tuple[list[Any], tuple[tuple[int, Any], ...]]:
    """Return the leaves that are arrays, and (position, value) of those that are not."""
    arrays: list[Any] = []
    static: list[tuple[int, Any]] = []
    for position, x in enumerate(leaves):
        try:
            aval_of(x)
            arrays.append(x)
        except TypeError:
            static.append((position, x))
    return arrays, tuple(static)


def debug_callback(callback: Callable[..., None] | None = None, *args: Any, ordered: bool = False,
                   partitioned: bool = False, **kwargs: Any) -> Any:
    """Call ``callback(*args, **kwargs)`` for its effect when the program runs; returns None.

    It follows the primal values: under vmap it is called once per example, under grad in the
    forward pass.  Arguments that are no arrays are passed as they are.  Without ``callback`` it
    returns a function that takes it.

    >>> jax.debug.callback(lambda x: print(f"x is {x}"), jnp.array([1, 2]))
    x is [1 2]
    """
    if callback is None:
        return functools.partial(debug_callback, ordered=ordered, partitioned=partitioned)
    if not callable(callback):
        raise TypeError("first argument to jax.debug.callback must be callable, but got an object "
                        f"of type {type(callback)}")
    leaves, in_tree = tree.flatten((args, kwargs))
    arrays, static = separate(leaves)
    effect = effects.ORDERED_DEBUG if ordered else effects.DEBUG
    bind(DebugCallback(FlatCallback(callback, in_tree, static), effect, partitioned), *arrays)
    return None
