"""How is an array folded by any function of two values?

``lax.reduce`` folds axes, ``lax.reduce_window`` windows; both may fold several arrays together.  A
function the engine knows, with its neutral value, becomes the primitive of that name
(``reduce_sum``, ``reduce_window_max``, …); any other is traced once, for scalars, and stands in the
equation.  Its derivative: axes are folded again as a tree of halves, whose steps are ordinary
operations; windows are folded by the function with its tangent.

Read before: ``ops.reduce``, ``signal.pooling``, ``loops.carry``.
Invariant: the function is associative and the start neutral; else results depend on the compiler.
Source: the documentation of jax.lax.reduce and reduce_window; StableHLO specification.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem._jaxlib import ArrayImpl
from saem.compile.lowering import lower_apart
from saem.core import dtypes, errors, tree
from saem.core.avals import ShapedArray, aval_of, is_array_like
from saem.core.dimensions import as_size
from saem.core.frames import boundary
from saem.core.jaxpr import ClosedJaxpr, eval_jaxpr, evaluate, with_nones
from saem.core.primitive import NOT_LINEAR, Primitive, primitive
from saem.core.trace import Tracer, bind
from saem.loops.carry import trace_body
from saem.ops import reduce as folds
from saem.ops import sharding_rules
from saem.ops.arithmetic import add, mul
from saem.ops.compare import bitwise_and, bitwise_or, bitwise_xor
from saem.ops.convert import convert_element_type
from saem.ops.filling import full
from saem.ops.linear import dim_after_reduce, permute, reduce_sum, reduced_shape, stacked
from saem.ops.numbers import max as larger
from saem.ops.numbers import min as smaller
from saem.ops.reshard import reshard_to
from saem.ops.scatter import Scatter
from saem.ops.shape import broadcast, reshape, squeeze
from saem.ops.slicing import pad, slice_in_dim
from saem.ops.windows import GatherScatterMode, ScatterDimensionNumbers
from saem.placement.shardings import requested_sharding
from saem.signal.pooling import (
    Padding,
    ReduceWindowMax,
    ReduceWindowMin,
    ReduceWindowSum,
    Sizes,
    Window,
    laid_out,
    padtype_to_pads,
    window_places,
)
from saem.transform.jvp import instantiate, jvp_flat
from saem.transform.staging import trace_flat
from saem.transform.vmap import batch_jaxpr, vmap_flat
from saem.typing import Array


def fold_numpy(program: ClosedJaxpr, held: Sequence[np.ndarray], new: Sequence[np.ndarray]
               ) -> list[np.ndarray]:
    """Return ``program(*held, *new)`` element by element."""
    shape, size = held[0].shape, held[0].size
    if not size:
        return list(held)
    many, _ = batch_jaxpr(program, size, (True,) * (2 * len(held)), (True,) * len(held))
    outs = evaluate(many, *[x.reshape(-1) for x in (*held, *new)])
    return [o.reshape(shape) for o in outs]


def region_of(ctx: Any, program: ClosedJaxpr) -> Any:
    """Return ``program`` as the region of a fold."""
    return ctx.region(program.in_avals, lambda *names: lower_apart(ctx, program, names))


def check_starts(name: str, dtype_sentence: str, operands: Sequence[ShapedArray],
                 starts: Sequence[ShapedArray]) -> None:
    """Refuse starting values that are no scalars of the operands' dtypes.

    Raises: ValueError, TypeError.
    """
    if any(s.shape for s in starts):
        shapes = [s.shape for s in starts]
        if name == "reduce":
            raise errors.explained(
                errors.ArgumentError, "reduce.C2",
                f"reduce found non-scalar initial value: {shapes}",
                advice="Start with a number for each operand.")
        raise errors.explained(
            errors.ArgumentTypeError, f"{name}.C2",
            f"{name} expected init_values to be scalars but init_values have shapes {shapes}.",
            advice="Start with a number for each operand.")
    if any(x.dtype != s.dtype for x, s in zip(operands, starts)):
        raise errors.explained(
            errors.ArgumentTypeError, f"{name}.C3", dtype_sentence,
            advice="Convert the starting value, for example with np.float32(0).")


class GeneralFold(Primitive):
    """What reduce and reduce_window share: operands come first, then as many starting values."""

    __slots__ = ()
    multiple_results = True
    quick_code = False
    transpose = NOT_LINEAR

    def varies(self, *vmas):
        """Results are types of this rule, not of the program, whose arguments are scalars."""
        return frozenset().union(*vmas)

    def pairs(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return operands and starting values."""
        half = len(args) // 2
        return list(args[:half]), list(args[half:])

    def batched(self, size: int, xs: Sequence[Any], dims: Sequence[int | None]
                ) -> tuple[list[Any], list[Any]]:
        """Return operands as stacks in front, and the starting values.

        Raises: NotImplementedError for starting values that differ between examples.
        """
        operands, starts = self.pairs(xs)
        wheres, fixed = self.pairs(dims)
        if any(d is not None for d in fixed):
            raise errors.explained(
                NotImplementedError, f"{self.name}.batch",
                f"{self.name} batching is not implemented for initial values",
                advice="Start with the neutral value and combine the result with the other.")
        return stacked(size, operands, wheres), starts


@primitive("reduce")
class Reduce(GeneralFold):
    """Fold ``dimensions`` of several arrays by the program ``jaxpr``."""

    computation: Callable
    jaxpr: ClosedJaxpr
    dimensions: tuple[int, ...]

    axes = property(lambda self: self.dimensions)

    shard_results = sharding_rules.generic_reduction

    def printed_params(self):
        return {"computation": str(self.computation), "dimensions": self.dimensions,
                "jaxpr": self.jaxpr}

    def typing(self, *avals):
        operands, starts = self.pairs(avals)
        check_starts("reduce", "reduce operand dtypes should match corresponding initial value "
                     f"dtypes, got operands={operands} and initial_values={starts}",
                     operands, starts)
        return [ShapedArray(reduced_shape(self, x), x.dtype, x.weak_type) for x in operands]

    def evaluate(self, *xs):
        operands, starts = self.pairs(xs)
        shape = reduced_shape(self, operands[0])
        held = [np.full(shape, s, x.dtype) for x, s in zip(operands, starts)]
        kept = [i for i in range(operands[0].ndim) if i not in self.dimensions]
        count = math.prod(operands[0].shape[d] for d in self.dimensions)
        rows = [np.transpose(x, [*self.dimensions, *kept]).reshape(count, *shape)
                for x in operands]
        for new in zip(*rows):
            held = fold_numpy(self.jaxpr, held, new)
        return held

    def lower(self, ctx, *xs):
        dims = ", ".join(map(str, self.dimensions))
        half = len(xs) // 2
        xs = (*(ctx.unsharded(x, self.dimensions) for x in xs[:half]), *xs[half:])
        return ctx.emit_many(
            f'"stablehlo.reduce"({", ".join(xs)}) <{{dimensions = array<i64'
            f"{': ' if dims else ''}{dims}>}}>", *xs, outs=ctx.out_avals,
            regions=[region_of(ctx, self.jaxpr)])

    def jvp(self, primals, tangents):
        (operands, starts), (moving, fixed) = self.pairs(primals), self.pairs(tangents)
        if any(t is not None for t in fixed):
            raise errors.explained(
                NotImplementedError, "reduce.jvp",
                "Gradient of general lax.reduce with non-zero tangents for initial values to "
                "reduction not implemented", advice="Combine the result with the other value.")
        if all(t is None for t in moving):
            return bind(self, *primals), [None] * len(moving)
        return jvp_flat(lambda *xs: self.as_tree(xs, starts), operands, moving)

    def as_tree(self, operands: Sequence[Any], starts: Sequence[Any]) -> list[Any]:
        """Return the fold by halves, as ordinary operations."""
        shape = aval_of(operands[0]).shape
        kept = [i for i in range(len(shape)) if i not in self.dimensions]
        rows = (math.prod(shape[d] for d in self.dimensions), *(shape[i] for i in kept))
        order = (*self.dimensions, *kept)
        xs = [reshape(x if list(order) == sorted(order) else permute(x, order), rows)
              for x in operands]
        count = rows[0]
        if not count:
            return [broadcast(s, rows[1:]) for s in starts]
        while count > 1:
            half = (count + 1) // 2
            first = [slice_in_dim(x, 0, half) for x in xs]
            second = [slice_in_dim(x, half, count) for x in xs]
            if count % 2:
                edges = [(0, 1, 0), *((0, 0, 0) for _ in kept)]
                second = [pad(x, s, edges) for x, s in zip(second, starts)]
            xs, count = self.elementwise(first, second), half
        return [squeeze(x, (0,)) for x in xs]

    def elementwise(self, first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
        """Return the program of each pair of elements of two arrays."""
        def run(*xs: Any) -> list[Any]:
            return eval_jaxpr(self.jaxpr.jaxpr, self.jaxpr.consts, *xs)

        def over(fun: Callable, size: int) -> Callable:
            def mapped(*xs: Any) -> list[Any]:
                outs, dims = vmap_flat(fun, size, xs, [0] * len(xs))
                return stacked(size, outs, dims)

            return mapped

        for size in reversed(aval_of(first[0]).shape):
            run = over(run, size)
        return run(*first, *second)

    def batch(self, size, xs, dims):
        operands, starts = self.batched(size, xs, dims)
        shifted = Reduce(self.computation, self.jaxpr, tuple(d + 1 for d in self.dimensions))
        place = dim_after_reduce(shifted.dimensions, 0)
        return bind(shifted, *operands, *starts), [place] * len(operands)


@primitive("reduce_window")
class ReduceWindow(GeneralFold):
    """Fold each window of several arrays by the program ``jaxpr``."""

    jaxpr: ClosedJaxpr
    window_dimensions: Sizes
    window_strides: Sizes
    padding: Padding
    base_dilation: Sizes
    window_dilation: Sizes

    how = Window.how

    shard_results = sharding_rules.window

    def printed_params(self):
        return dict(sorted({**self.params, "consts": ()}.items()))

    def typing(self, *avals):
        operands, starts = self.pairs(avals)
        check_starts(
            "reduce_window", "reduce_window got inconsistent dtypes for operands and init_values: "
            f"got operand dtypes {[x.dtype for x in operands]} and init_value dtypes "
            f"{[s.dtype for s in starts]}.", operands, starts)
        if len({x.shape for x in operands}) > 1:
            raise errors.explained(
                errors.ArgumentTypeError, "reduce_window.C4",
                "reduce_window expected the same shape for all operands, got "
                f"{[x.shape for x in operands]}.", advice="All are folded by the same windows.")
        return [ShapedArray(self.how.out_shape(x.shape), x.dtype) for x in operands]

    def evaluate(self, *xs):
        operands, starts = self.pairs(xs)
        shape = self.how.out_shape(operands[0].shape)
        grids = [laid_out(x, self.how, s) for x, s in zip(operands, starts)]
        held = [np.full(shape, s, x.dtype) for x, s in zip(operands, starts)]
        for place in window_places(self.how, shape):
            held = fold_numpy(self.jaxpr, held, [grid[place] for grid in grids])
        return held

    def lower(self, ctx, *xs):
        return ctx.emit_many(
            f'"stablehlo.reduce_window"({", ".join(xs)}) <{{{self.how.attributes()}}}>',
            *xs, outs=ctx.out_avals, regions=[region_of(ctx, self.jaxpr)])

    def jvp(self, primals, tangents):
        if all(t is None for t in tangents):
            return bind(self, *primals), [None] * (len(primals) // 2)
        operands, starts = self.pairs(primals)
        moves = [dtypes.is_inexact(aval_of(x).dtype) for x in operands]
        moving, fixed = ([instantiate(t, x) for t, x, m in zip(ts, xs, moves) if m]
                         for ts, xs in zip(self.pairs(tangents), (operands, starts)))
        outs = bind(ReduceWindow(self.with_tangents(moves), *self.how),
                    *operands, *moving, *starts, *fixed)
        return outs[:len(moves)], with_nones(moves, outs[len(moves):])

    def with_tangents(self, moves: Sequence[bool]) -> ClosedJaxpr:
        """Return the program that folds values and the tangents of those that have one."""
        count, extra = len(moves), sum(moves)

        def both(*flat: Any) -> list[Any]:
            held, new = flat[:count + extra], flat[count + extra:]
            ts: list[Any] = []
            for part in (held, new):
                ts += with_nones(moves, part[count:])
            outs, moved = jvp_flat(
                lambda *xs: eval_jaxpr(self.jaxpr.jaxpr, self.jaxpr.consts, *xs),
                [*held[:count], *new[:count]], ts)
            return [*outs, *(instantiate(t, o) for t, o, m in zip(moved, outs, moves) if m)]

        avals = self.jaxpr.in_avals[:count]
        one = [*avals, *(a for a, m in zip(avals, moves) if m)]
        return self.jaxpr.derived(("with_tangents", tuple(moves)), lambda: trace_flat(
            both, [*one, *one], name="jvp"))

    def batch(self, size, xs, dims):
        operands, starts = self.batched(size, xs, dims)
        prim = ReduceWindow(self.jaxpr, *self.how.around(0))
        return bind(prim, *operands, *starts), [0] * len(operands)


# -- functions, with the names and signatures of jax.lax -------------------------------------------


KNOWN: dict[Callable, tuple[Callable[[Any], Any], Callable]] = {
    add: (lambda dtype: 0, lambda x, axes: reduce_sum(x, axes)),
    mul: (lambda dtype: 1, folds.reduce_prod),
    larger: (folds.lowest, folds.reduce_max),
    smaller: (folds.highest, folds.reduce_min),
    bitwise_and: (lambda dtype: folds.ReduceAnd.initial(dtype), folds.reduce_and),
    bitwise_or: (lambda dtype: 0, folds.reduce_or),
    bitwise_xor: (lambda dtype: 0, folds.reduce_xor),
}
WINDOWS = {add: ReduceWindowSum, larger: ReduceWindowMax, smaller: ReduceWindowMin}


def starts_neutral(computation: Callable, start: Any, dtype: Any) -> bool:
    """Return whether ``start`` is a number that ``computation`` leaves all as it is with.

    Of integers that is also the infinity beyond all of them.  A number in an array counts in its
    own dtype, which need not be ``dtype``.
    """
    try:
        known = KNOWN.get(computation)
    except TypeError:  # not hashable
        return False
    if known is not None and type(start) is ArrayImpl and start.is_fully_addressable:
        start, dtype = np.asarray(start)[()], start.dtype
    if known is None or not isinstance(start, dtypes.HOST_NUMBERS) or np.ndim(start):
        return False
    if np.isinf(start) and computation in (larger, smaller):
        dtype = np.dtype(np.float32)
    return bool(start == known[0](dtype))


def flat_operands(name: str, operands: Any, init_values: Any) -> tuple[list[Any], list[Any], Any]:
    """Return the leaves of both, and their structure.

    Raises: ValueError if the two differ in structure, or there is no operand.
    """
    xs, structure = tree.flatten(operands)
    starts, other = tree.flatten(init_values)
    if structure != other:
        raise errors.explained(
            errors.ArgumentError, f"{name}.C5",
            "Operands must have the same tree structure as init_values: "
            f"{structure} vs. {other}", advice="Give one starting value for each operand.")
    if not xs:
        raise errors.explained(
            errors.ArgumentError, f"{name}.C6", f"{name} must have at least one operand.",
            advice="Pass an array, or a pytree of arrays of one shape.")
    return xs, starts, structure


def program_of(name: str, computation: Callable, structure: Any, starts: Sequence[Any]
               ) -> ClosedJaxpr:
    """Return ``computation`` traced for two trees of scalars like ``starts``.

    Raises: NotImplementedError if it closes over a tracer; TypeError if it returns other types.
    """
    scalars = [aval_of(s).strip_weak_type() for s in starts]
    pair = tree.structure((structure.unflatten([0] * len(starts)),) * 2)
    body = trace_body(computation, pair, [*scalars, *scalars], name, owner=computation)
    if any(isinstance(c, Tracer) for c in body.consts):
        raise errors.explained(
            NotImplementedError, f"{name}.closure",
            "Reduction computations can't close over Tracers.",
            advice="Pass what varies as a further operand, or use lax.scan.")
    same = body.out_tree == structure and all(
        not out.shape and out.dtype == s.dtype for out, s in zip(body.out_avals, scalars))
    if not same:
        raise errors.explained(
            errors.ArgumentTypeError, f"{name}.C7",
            f"{name} computation must return what it is given, {', '.join(map(str, scalars))}, "
            f"but returned {', '.join(map(str, body.out_avals))}.",
            advice="A fold of two values is a value of the same type.")
    jaxpr, count = body.closed.jaxpr, len(body.consts)
    if not count:
        return body.closed
    return ClosedJaxpr(jaxpr.replace(constvars=jaxpr.invars[:count], invars=jaxpr.invars[count:]),
                       body.consts)


@boundary
def reduce(operands: Any, init_values: Any, computation: Callable[[Any, Any], Any],
           dimensions: Sequence[int], out_sharding: Any = None) -> Any:
    """Return ``operands`` folded along ``dimensions`` by ``computation``, from ``init_values``.

    Both may be pytrees of arrays and scalars; ``computation`` then takes and returns such trees of
    scalars.  It must be associative and ``init_values`` neutral.  ``out_sharding`` is how results
    are sharded along Explicit mesh axes.
    Raises: ValueError for axes that do not exist; TypeError for dtypes that do not fit.

    >>> lax.reduce(jnp.array([1, 2, 3]), 0, lax.add, (0,))
    Array(6, dtype=int32)
    """
    xs, starts, structure = flat_operands("reduce", operands, init_values)
    shapes = [aval_of(x).shape for x in xs]
    if any(shape != shapes[0] for shape in shapes):
        raise errors.explained(
            errors.ArgumentError, "reduce.C6",
            f"reduce needs operands of one shape, but got the shapes {shapes}",
            advice="Broadcast them first, for example with jnp.broadcast_arrays.")
    axes = tuple(int(d) for d in dimensions)
    axes = folds.checked_axes("reduce", xs[0], axes)
    sharding = requested_sharding(out_sharding, aval_of(xs[0]).ndim - len(axes), "reduce")
    if len(xs) == 1 and starts_neutral(computation, starts[0], aval_of(xs[0]).dtype):
        if computation is add:
            return structure.unflatten([reduce_sum(xs[0], axes, out_sharding=out_sharding)])
        outs = [KNOWN[computation][1](xs[0], axes)]
    else:
        check_starts("reduce", "", [], [aval_of(s) for s in starts])
        program = program_of("reduce", computation, structure, starts)
        outs = bind(Reduce(computation, program, axes), *xs, *starts)
    return structure.unflatten(
        outs if sharding is None else [reshard_to(x, sharding) for x in outs])


def window_of(operand: ShapedArray, window_dimensions: Sequence[int],
              window_strides: Sequence[int] | None, padding: Any,
              base_dilation: Sequence[int] | None, window_dilation: Sequence[int] | None) -> tuple:
    """Return the five parameters of a window, checked.

    Raises: TypeError for a wrong count, or a size, step or dilation that is not positive.
    """
    ones = (1,) * len(window_dimensions)
    given = {"window_dimensions": window_dimensions, "window_strides": window_strides or ones,
             "base_dilation": base_dilation or ones, "window_dilation": window_dilation or ones}
    made = {name: tuple(as_size(n) for n in values) for name, values in given.items()}
    for name, values in made.items():
        if len(values) != operand.ndim:
            raise errors.explained(
                errors.ArgumentTypeError, "reduce_window.C8",
                f"reduce_window got inconsistent {name} and window_dimensions: got {name} {values} "
                f"and window_dimensions {made['window_dimensions']}."
                if len(made["window_dimensions"]) == operand.ndim else
                f"reduce_window got the wrong number of {name} for operand: got operand shape "
                f"{operand.shape} with {name} {values}.",
                advice="Give one number for each axis of the operand.")
        if any(n <= 0 for n in values):
            raise errors.explained(
                errors.ArgumentTypeError, "reduce_window.C9",
                f"All dilations must be positive, got {values}." if "dilation" in name else
                f"reduce_window {name} must have every element be strictly positive, got "
                f"{values}.", advice="Use 1 along axes where nothing is folded.")
    dims, strides = made["window_dimensions"], made["window_strides"]
    if isinstance(padding, str) or not isinstance(padding, Sequence):
        wide = [(n - 1) * dil + 1 for n, dil in zip(dims, made["window_dilation"])]
        padding = padtype_to_pads(operand.shape, wide, strides, padding)
    if len(padding) != operand.ndim:
        raise errors.explained(
            errors.ArgumentError, "reduce_window.C10",
            f"reduce_window needs a pair of padding for each of {operand.ndim} axes, got "
            f"{padding}.", advice="Or name it: 'VALID', 'SAME'.")
    pads = tuple((as_size(low), as_size(high)) for low, high in padding)
    return dims, strides, pads, made["base_dilation"], made["window_dilation"]


@boundary
def reduce_window(operand: Any, init_value: Any, computation: Callable,
                  window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                  padding: str | Sequence[tuple[int, int]] = "VALID",
                  base_dilation: Sequence[int] | None = None,
                  window_dilation: Sequence[int] | None = None) -> Any:
    """Return each window of ``operand`` folded by ``computation``, from ``init_value``.

    ``padding`` is 'VALID', 'SAME', 'SAME_LOWER' or a pair of numbers for each axis.
    Raises: TypeError for windows that do not fit; NotImplementedError for a function that closes
    over tracers; RuntimeError for an unknown name of padding.

    >>> lax.reduce_window(jnp.array([1., 5., 2., 4.]), -jnp.inf, lax.max, (2,), (2,), "VALID")
    Array([5., 4.], dtype=float32)
    """
    xs, starts, structure = flat_operands("reduce_window", operand, init_value)
    if not aval_of(xs[0]).shape and not len(window_dimensions):  # no axis to slide along
        return structure.unflatten(xs)
    how = window_of(aval_of(xs[0]), window_dimensions, window_strides, padding, base_dilation,
                    window_dilation)
    if len(xs) == 1 and starts_neutral(computation, starts[0], aval_of(xs[0]).dtype):
        known = WINDOWS.get(computation)
        if known is not None:
            return structure.unflatten([bind(known(*how), xs[0])])
    check_starts("reduce_window", "", [], [aval_of(s) for s in starts])
    program = program_of("reduce_window", computation, structure, starts)
    return structure.unflatten(bind(ReduceWindow(program, *how), *xs, *starts))


# -- elements changed by a function ----------------------------------------------------------------


def element_program(func: Callable[[Any], Any], dtype: Any) -> ClosedJaxpr:
    """Return ``func``, of one scalar of ``dtype`` to one, as what a scatter applies in place.

    Raises: NotImplementedError if it closes over a tracer; ValueError if it gives no scalar.
    """

    def applied(x: Any, _: Any) -> list[Any]:
        out = func(x)
        if not is_array_like(out) or aval_of(out).shape:
            raise errors.explained(
                errors.ArgumentError, "scatter_apply.result",
                f"A function that is applied to elements must return one scalar, got {out}.",
                advice="It is given one element. To change several at once: x.at[i].set(f(x[i])).")
        return [convert_element_type(out, dtype)]

    scalar = ShapedArray((), dtype)
    program = trace_flat(applied, [scalar, scalar], name="apply")
    if any(isinstance(c, Tracer) for c in program.consts):
        raise errors.explained(
            NotImplementedError, "scatter_apply.closure",
            "Reduction computations can't close over Tracers.",
            advice="Write x.at[i].set(f(x[i])), if no place is named twice.")
    return program


def scatter_apply(operand: Array, scatter_indices: Array, func: Callable[[Any], Any],
                  dimension_numbers: ScatterDimensionNumbers, *, update_shape: Sequence[int] = (),
                  indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
                  ) -> Array:
    """Return ``operand`` with ``func`` applied to the elements at ``scatter_indices``.

    A place that is named several times is changed as often.
    Raises: NotImplementedError when differentiated, or if ``func`` closes over a tracer.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_apply(jnp.ones(3), jnp.array([[1]]), lambda x: x + 10, numbers, update_shape=(1,
    ...     ))
    Array([ 1., 11.,  1.], dtype=float32)
    """
    dtype = aval_of(operand).dtype
    numbers = ScatterDimensionNumbers(*(tuple(map(int, d)) for d in dimension_numbers))
    prim = Scatter(numbers, bool(indices_are_sorted), bool(unique_indices),
                   GatherScatterMode.from_any(mode), element_program(func, dtype))
    return bind(prim, operand, scatter_indices, full(tuple(update_shape), 0, dtype))
