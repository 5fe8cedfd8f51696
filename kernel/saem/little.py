"""How does a JAX-style engine work, if one leaves out all that can be left out?

This file is a whole engine: jvp, vmap, jaxprs, reverse mode, StableHLO and jit, for arrays of one
dtype (float32) and a handful of operations.  Read it from top to bottom, as a chapter of a book:

1. Types               what is known of a value before it is computed
2. Primitives          what an operation is: a record with six rules
3. Interpreters        who interprets an operation: ``bind`` and ``Trace.process``
4. Operations          nine primitives, and the functions that a user calls
5. Pytrees             functions of containers become functions of lists
6. Forward mode        ``jvp``
7. Batching            ``vmap``
8. Programs            jaxprs, how they are recorded, run and printed
9. Reverse mode        ``linearize``, ``vjp``, ``grad``: forward mode with unknown tangents
10. Programs transformed   jvp, vmap and the parts of reverse mode, applied to a jaxpr
11. StableHLO          a jaxpr becomes text, the text becomes an executable
12. jit                a program that is called is one more primitive

Names mean here what they mean in the real engine, where ``saem.core`` holds sections 1, 2, 3, 5 and
8, ``saem.ops`` section 4, ``saem.transform`` sections 6, 7, 9 and 10, ``saem.compile`` section 11
and ``saem.jit`` section 12.  What is left out: other dtypes, batch axes other than 0, control flow,
devices.  Outside ``jit`` this engine computes with NumPy; the real one compiles each operation.

    >>> from saem import little
    >>> float(little.grad(lambda x: x * x)(3.0))
    6.0
    >>> little.make_jaxpr(little.grad(lambda x: x * x))(3.0)
    { lambda ; a:f32[]. let
        _:f32[] = mul a a
        b:f32[] = mul a 1.0:f32[]
        c:f32[] = mul 1.0:f32[] a
        d:f32[] = add_any b c
      in (d,) }

Read before: nothing.  Read after: ``saem.core.primitive``, where the real engine begins.
Invariant: every rule agrees with every other one, and programs print and compute as those of the
real engine do (tests/kernel/test_little.py).
Source: autodidax (JAX's documentation) for the design with one current interpreter; Radul, Paszke,
Frostig, Johnson and Maclaurin 2022, "You Only Linearize Once", for reverse mode.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from saem import _jaxlib

# --- 1. Types ------------------------------------------------------------------------------------
# A tracer stands for an array whose numbers are not known yet.  What is known is its abstract
# value, in short *aval*: here the shape alone, because every array is of dtype float32.


@dataclasses.dataclass(frozen=True)
class ShapedArray:
    """The abstract value of an array."""

    shape: tuple[int, ...]
    dtype: ClassVar[np.dtype] = np.dtype(np.float32)

    def str_short(self) -> str:
        return f"f32[{','.join(map(str, self.shape))}]"


def aval_of(x: Any) -> ShapedArray:
    """Return the abstract value of a tracer, an array or a number."""
    if isinstance(x, (Tracer, UndefinedPrimal)):
        return x.aval
    if isinstance(x, (int, float, np.ndarray, np.generic, _jaxlib.ArrayImpl)):
        return ShapedArray(np.shape(x))
    raise TypeError(f"needed a number or an array, got {x!r} of type {type(x).__name__}")


def avals_of(values: Sequence[Any]) -> list[ShapedArray]:
    """Return the abstract values of ``values``."""
    return list(map(aval_of, values))


def as_array(x: Any) -> np.ndarray:
    """Return ``x`` as a NumPy array of the only dtype of this engine."""
    return np.asarray(x, np.float32)


# --- 2. Primitives -------------------------------------------------------------------------------
# A primitive is an operation that the engine knows by itself.  It is a record: its parameters are
# fields, and its rules are methods.  There is no rule for reverse mode, which section 9 makes of
# the rules jvp and transpose.


class Primitive:
    """One operation: its name, its parameters and its six rules."""

    name: ClassVar[str]
    multiple_results: ClassVar[bool] = False  # then rules return lists in place of one result

    def typing(self, *avals: ShapedArray) -> Any:
        """Return the aval of the result for operands of ``avals``; refuse what does not fit."""
        raise NotImplementedError

    def evaluate(self, *arrays: np.ndarray) -> Any:
        """Compute the result with NumPy: this defines what the operation means."""
        raise NotImplementedError

    def lower(self, ctx: Writer, *operands: str) -> Any:
        """Write the operation in StableHLO; operands and results are names such as ``%0``."""
        raise NotImplementedError

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the result and its tangent; a tangent of None is zero."""
        raise NotImplementedError

    def transpose(self, ct: Any, *args: Any) -> list[Any]:
        """Return the cotangent of each operand that is an ``UndefinedPrimal``, None for others."""
        raise NotImplementedError(f"{self.name} is not linear, so it is never transposed")

    def batch(self, size: int, xs: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, Any]:
        """Return the result for stacks ``xs`` and its batch axis; None means not batched."""
        raise NotImplementedError

    def execute(self, *arrays: np.ndarray) -> Any:
        """Compute the result outside all transformations; only ``jit`` does it by a compiler."""
        return self.evaluate(*arrays)

    def partial_eval(self, trace: PartialTrace, args: Sequence[Any]) -> Any:
        """Interpret the operation where some of ``args`` are unknown; section 9 explains it."""
        return trace.emit(self, args)

    def printed_params(self) -> dict[str, Any]:
        """Return the parameters that a printed jaxpr shows."""
        return dict(vars(self))


class UndefinedPrimal:
    """A linear operand in a transpose rule: it has an aval and no value."""

    def __init__(self, aval: ShapedArray):
        self.aval = aval


# --- 3. Interpreters -----------------------------------------------------------------------------
# Every operation goes through ``bind``, which hands it to the current interpreter of this thread.
# An interpreter has a parent.  While it works on an operation its parent is current, so the rules
# of primitives are ordinary programs one level down, and transformations nest.


class Trace:
    """An interpreter of primitives."""

    parent: Trace | None = None

    def process(self, prim: Primitive, args: tuple) -> Any:
        """Interpret ``prim`` on ``args``."""
        raise NotImplementedError

    def is_below(self, other: Trace | None) -> bool:
        """Return whether ``other`` was started inside this interpreter and may use its tracers."""
        return other is self or (other is not None and self.is_below(other.parent))


class EvalTrace(Trace):
    """The ground level: operations are computed."""

    def process(self, prim: Primitive, args: tuple) -> Any:
        for x in args:
            if isinstance(x, Tracer):
                raise leaked(x)
        out = prim.execute(*map(as_array, args))
        return list(map(as_array, out)) if prim.multiple_results else as_array(out)


class _State(threading.local):
    """The current interpreter of one thread."""

    trace: Trace = EvalTrace()


state = _State()


def bind(prim: Primitive, *args: Any) -> Any:
    """Apply ``prim`` to ``args`` under the current interpreter."""
    return state.trace.process(prim, args)


@contextlib.contextmanager
def current(trace: Trace) -> Iterator[None]:
    """Make ``trace`` the current interpreter inside a ``with`` block."""
    saved, state.trace = state.trace, trace
    try:
        yield
    finally:
        state.trace = saved


class Tracer:
    """A value that an interpreter follows through a function."""

    _trace: Trace
    aval: ShapedArray
    __array_ufunc__ = None  # so that array + tracer comes to our __radd__

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    def __add__(self, other):
        return add(self, other)

    def __radd__(self, other):
        return add(other, self)

    def __mul__(self, other):
        return mul(self, other)

    def __rmul__(self, other):
        return mul(other, self)

    def __neg__(self):
        return neg(self)

    def __bool__(self):
        raise TypeError(f"{self!r} has no truth value while it is traced: its numbers are not "
                        "known, so Python's if and while cannot ask for them")

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.aval.str_short()}>"


def leaked(tracer: Tracer) -> TypeError:
    """Return the error for a tracer that is used outside its transformation."""
    return TypeError(f"{tracer!r} leaked: it was used after its transformation had finished. "
                     "Return it from the function instead of storing it elsewhere")


# --- 4. Operations -------------------------------------------------------------------------------
# Two families (operations element by element, operations that are linear in one operand), then
# their members.  A member states only what sets it apart.


class Elementwise(Primitive):
    """One result element from the operand elements at the same place; rank 0 is stretched."""

    hlo: ClassVar[str]
    numpy: ClassVar[Callable]

    def typing(self, *avals):
        shapes = {aval.shape for aval in avals if aval.shape}
        if len(shapes) > 1:
            raise TypeError(f"{self.name}: needed operands of one shape, got "
                            f"{', '.join(a.str_short() for a in avals)}. Use broadcast_in_dim")
        return ShapedArray(shapes.pop() if shapes else ())

    def evaluate(self, *xs):
        return type(self).numpy(*xs)

    def lower(self, ctx, *xs):
        return ctx.elementwise(f"stablehlo.{self.hlo}", *xs)

    def batch(self, size, xs, dims):
        shape = max((example_shape(x, d) for x, d in zip(xs, dims)), key=len)
        return bind(self, *[stacked(x, d, (size, *shape)) for x, d in zip(xs, dims)]), 0


def example_shape(x: Any, dim: int | None) -> tuple[int, ...]:
    """Return the shape of one example of ``x``."""
    return aval_of(x).shape if dim is None else aval_of(x).shape[1:]


def stacked(x: Any, dim: int | None, shape: tuple[int, ...]) -> Any:
    """Return ``x`` as a stack of ``shape``; a number that all examples share stays a number."""
    rank = len(example_shape(x, dim))
    if dim is None and rank == 0:
        return x
    return broadcast_in_dim(x, shape, [*([] if dim is None else [0]), *range(1, rank + 1)])


@dataclasses.dataclass(frozen=True)
class Add(Elementwise):
    """The sum of x and y."""

    name, hlo, numpy = "add", "add", staticmethod(np.add)

    def jvp(self, primals, tangents):
        out = bind(self, *primals)
        dx, dy = tangents
        if dx is not None and dy is not None:
            return out, bind(self, dx, dy)
        return out, stretch(dy if dx is None else dx, aval_of(out).shape)

    def transpose(self, ct, x, y):
        return [unbroadcast(ct, a.aval) if isinstance(a, UndefinedPrimal) else None for a in (x, y)]


@dataclasses.dataclass(frozen=True)
class AddAny(Add):
    """The sum of two cotangents, or tangents, of one value; named apart so that it can be seen."""

    name = "add_any"


@dataclasses.dataclass(frozen=True)
class Mul(Elementwise):
    """The product of x and y, which is linear in x and linear in y, but not in both."""

    name, hlo, numpy = "mul", "multiply", staticmethod(np.multiply)

    def jvp(self, primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        out = bind(self, x, y)
        parts = [None if dx is None else mul(dx, y), None if dy is None else mul(x, dy)]
        shape = aval_of(out).shape
        return out, add_tangents(*[None if t is None else stretch(t, shape) for t in parts])

    def transpose(self, ct, x, y):
        if isinstance(x, UndefinedPrimal):
            return [unbroadcast(mul(ct, y), x.aval), None]
        return [None, unbroadcast(mul(x, ct), y.aval)]


class Unary(Elementwise):
    """Elementwise of one operand; a member gives its derivative by ``tangent``."""

    def tangent(self, dx: Any, x: Any, out: Any) -> Any:
        """Return the tangent of ``out`` where ``dx`` is that of ``x``."""
        raise NotImplementedError

    def jvp(self, primals, tangents):
        (x,), (dx,) = primals, tangents
        out = bind(self, x)
        return out, None if dx is None else self.tangent(dx, x, out)


@dataclasses.dataclass(frozen=True)
class Neg(Unary):
    """The negative of x."""

    name, hlo, numpy = "neg", "negate", staticmethod(np.negative)

    def tangent(self, dx, x, out):
        return neg(dx)

    def transpose(self, ct, x):
        return [neg(ct)]


@dataclasses.dataclass(frozen=True)
class Sin(Unary):
    """The sine of x."""

    name, hlo, numpy = "sin", "sine", staticmethod(np.sin)

    def tangent(self, dx, x, out):
        return mul(dx, cos(x))


@dataclasses.dataclass(frozen=True)
class Cos(Unary):
    """The cosine of x."""

    name, hlo, numpy = "cos", "cosine", staticmethod(np.cos)

    def tangent(self, dx, x, out):
        return neg(mul(dx, sin(x)))


@dataclasses.dataclass(frozen=True)
class Exp(Unary):
    """e to the power x, which is its own derivative."""

    name, hlo, numpy = "exp", "exponential", staticmethod(np.exp)

    def tangent(self, dx, x, out):
        return mul(dx, out)


class Linear(Primitive):
    """Linear in its one operand: the tangent goes through the same operation."""

    def jvp(self, primals, tangents):
        (x,), (dx,) = primals, tangents
        return bind(self, x), None if dx is None else bind(self, dx)


@dataclasses.dataclass(frozen=True)
class BroadcastInDim(Linear):
    """Put operand axis i at result axis ``broadcast_dimensions[i]``; repeat along the others."""

    name = "broadcast_in_dim"
    shape: tuple[int, ...]
    broadcast_dimensions: tuple[int, ...] = ()

    def typing(self, x):
        if x.shape != tuple(self.shape[d] for d in self.broadcast_dimensions):
            raise TypeError(f"broadcast_in_dim cannot put {x.str_short()} along the axes "
                            f"{self.broadcast_dimensions} of {self.shape}")
        return ShapedArray(self.shape)

    def evaluate(self, x):
        others = [i for i in range(len(self.shape)) if i not in self.broadcast_dimensions]
        return np.broadcast_to(np.expand_dims(x, others), self.shape)

    def lower(self, ctx, x):
        return ctx.emit(
            f"stablehlo.broadcast_in_dim {x}, dims = {list(self.broadcast_dimensions)}", x)

    def transpose(self, ct, x):
        others = [i for i in range(len(self.shape)) if i not in self.broadcast_dimensions]
        return [reduce_sum(ct, others)]

    def batch(self, size, xs, dims):
        placed = [d + 1 for d in self.broadcast_dimensions]
        return broadcast_in_dim(xs[0], (size, *self.shape), [0, *placed]), 0

    def printed_params(self):
        dims = self.broadcast_dimensions  # the shape stands in the type of the result
        return {"broadcast_dimensions": dims} if dims else {}


@dataclasses.dataclass(frozen=True)
class ReduceSum(Linear):
    """Sum over ``axes``."""

    name = "reduce_sum"
    axes: tuple[int, ...]
    out_sharding: None = None  # printed as in the real engine, which places arrays on devices

    def typing(self, x):
        if len(set(self.axes)) < len(self.axes) or not set(self.axes) <= {*range(len(x.shape))}:
            raise TypeError(f"reduce_sum needs distinct axes of {x.str_short()}, got {self.axes}")
        return ShapedArray(tuple(n for i, n in enumerate(x.shape) if i not in self.axes))

    def evaluate(self, x):
        return np.sum(x, self.axes)

    def lower(self, ctx, x):
        zero = ctx.constant(0.0)
        return ctx.emit(f"stablehlo.reduce({x} init: {zero}) applies stablehlo.add across "
                        f"dimensions = {list(self.axes)}", x, zero)

    def transpose(self, ct, x):
        kept = tuple(i for i in range(len(x.aval.shape)) if i not in self.axes)
        return [broadcast_in_dim(ct, x.aval.shape, kept)]

    def batch(self, size, xs, dims):
        return reduce_sum(xs[0], [a + 1 for a in self.axes]), 0


# What a user calls, and what rules are written with.


def add(x: Any, y: Any) -> Any:
    """Return x + y."""
    return bind(Add(), x, y)


def mul(x: Any, y: Any) -> Any:
    """Return x * y."""
    return bind(Mul(), x, y)


def neg(x: Any) -> Any:
    """Return -x."""
    return bind(Neg(), x)


def sin(x: Any) -> Any:
    """Return the sine of x."""
    return bind(Sin(), x)


def cos(x: Any) -> Any:
    """Return the cosine of x."""
    return bind(Cos(), x)


def exp(x: Any) -> Any:
    """Return e to the power x."""
    return bind(Exp(), x)


def broadcast_in_dim(x: Any, shape: Sequence[int], dims: Sequence[int] = ()) -> Any:
    """Return ``x`` with its axes at ``dims`` of ``shape``; ``x`` itself if that changes nothing."""
    same = aval_of(x).shape == tuple(shape) and len(dims) == len(shape)
    return x if same else bind(BroadcastInDim(tuple(shape), tuple(dims)), x)


def reduce_sum(x: Any, axes: Sequence[int]) -> Any:
    """Return the sum of ``x`` over ``axes``; ``x`` itself if there are none."""
    return bind(ReduceSum(tuple(axes)), x) if axes else x


def stretch(x: Any, shape: tuple[int, ...]) -> Any:
    """Return ``x``, of ``shape`` or of rank 0, with ``shape``."""
    return x if aval_of(x).shape == shape else broadcast_in_dim(x, shape)


def unbroadcast(ct: Any, aval: ShapedArray) -> Any:
    """Return the cotangent of an operand of ``aval`` that was stretched to the shape of ``ct``."""
    return ct if aval == aval_of(ct) else reduce_sum(ct, range(len(aval_of(ct).shape)))


def add_tangents(a: Any, b: Any) -> Any:
    """Return the sum of two tangents or cotangents, either of which may be None (zero)."""
    return b if a is None else a if b is None else bind(AddAny(), a, b)


def zeros_of(aval: ShapedArray) -> Any:
    """Return zeros of ``aval``."""
    return stretch(0.0, aval.shape)


def instantiate(tangents: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Return ``tangents`` with zeros of ``avals`` in place of None."""
    return [zeros_of(aval) if t is None else t for t, aval in zip(tangents, avals)]


# --- 5. Pytrees ----------------------------------------------------------------------------------
# Users write functions of tuples, lists and dicts.  All that follows works on flat lists of values,
# so each public function flattens its arguments and puts the results together again.


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Return the leaves of nested containers, and their structure."""
    return _jaxlib.registry.flatten(tree)


def flatten_fun(fun: Callable, in_tree: Any) -> tuple[Callable, Callable]:
    """Return ``fun`` from leaves to leaves, and what returns the structure of its last result."""
    seen: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        out_leaves, out_tree = flatten(fun(*in_tree.unflatten(leaves)))
        seen[:] = [out_tree]
        return out_leaves

    return flat, lambda: seen[0]


# --- 6. Forward mode -----------------------------------------------------------------------------
# A JVPTracer carries a primal and its tangent.  An operation on it runs the primitive's jvp rule
# one interpreter down, where primals and tangents are ordinary values.


class JVPTracer(Tracer):
    """A primal with its tangent."""

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any):
        self._trace, self.primal, self.tangent = trace, primal, tangent
        self.aval = aval_of(primal)


class JVPTrace(Trace):
    """Runs the jvp rule of each primitive in the parent."""

    def __init__(self, parent: Trace):
        self.parent = parent

    def process(self, prim: Primitive, args: tuple) -> Any:
        primals, tangents = zip(*map(self.split, args))
        with current(self.parent):
            if all(t is None for t in tangents):
                return bind(prim, *primals)
            out, out_tangent = prim.jvp(primals, tangents)
        if prim.multiple_results:
            return [self.wrap(o, t) for o, t in zip(out, out_tangent)]
        return self.wrap(out, out_tangent)

    def wrap(self, primal: Any, tangent: Any) -> Any:
        return primal if tangent is None else JVPTracer(self, primal, tangent)

    def split(self, x: Any) -> tuple[Any, Any]:
        mine = isinstance(x, JVPTracer) and x._trace is self
        return (x.primal, x.tangent) if mine else (x, None)


def jvp_flat(fun: Callable, primals: Sequence[Any], tangents: Sequence[Any],
             parent: Trace | None = None) -> tuple[list[Any], list[Any]]:
    """Run ``fun`` on primals and tangents (None is zero); return those of its results."""
    trace = JVPTrace(parent or state.trace)
    with current(trace):
        outs = fun(*map(trace.wrap, primals, tangents))
    pairs = list(map(trace.split, outs))
    return [p for p, _ in pairs], [t for _, t in pairs]


def jvp(fun: Callable, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return the value of ``fun`` at ``primals`` and its derivative along ``tangents``.

    >>> value, slope = jvp(sin, (0.0,), (1.0,))
    >>> float(value), float(slope)
    (0.0, 1.0)
    """
    leaves, in_tree = flatten(tuple(primals))
    flat, out_tree = flatten_fun(fun, in_tree)
    outs, out_tangents = jvp_flat(flat, leaves, flatten(tuple(tangents))[0])
    out_tangents = instantiate(out_tangents, avals_of(outs))
    return out_tree().unflatten(outs), out_tree().unflatten(out_tangents)


# --- 7. Batching ---------------------------------------------------------------------------------
# A BatchTracer is one example of a stack: inside the function its shape lacks the batch axis.  An
# operation on it runs the primitive's batch rule one interpreter down, on the whole stack.


class BatchTracer(Tracer):
    """One example of the stack ``val``, whose axis 0 is the batch axis."""

    def __init__(self, trace: BatchTrace, val: Any):
        self._trace, self.val = trace, val
        self.aval = ShapedArray(aval_of(val).shape[1:])


class BatchTrace(Trace):
    """Runs the batch rule of each primitive in the parent."""

    def __init__(self, parent: Trace, size: int):
        self.parent, self.size = parent, size

    def process(self, prim: Primitive, args: tuple) -> Any:
        xs, dims = zip(*map(self.split, args))
        with current(self.parent):
            if all(d is None for d in dims):
                return bind(prim, *xs)
            out, out_dim = prim.batch(self.size, xs, dims)
        if prim.multiple_results:
            return [self.wrap(o, d) for o, d in zip(out, out_dim)]
        return self.wrap(out, out_dim)

    def wrap(self, val: Any, dim: int | None) -> Any:
        return val if dim is None else BatchTracer(self, val)

    def split(self, x: Any) -> tuple[Any, int | None]:
        return (x.val, 0) if isinstance(x, BatchTracer) and x._trace is self else (x, None)


def vmap_flat(fun: Callable, size: int, xs: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Run ``fun`` once on the stacks among ``xs``; return the stacks of its results."""
    trace = BatchTrace(state.trace, size)
    with current(trace):
        outs = fun(*map(trace.wrap, xs, dims))
    return [repeated(x, size) if d is None else x for x, d in map(trace.split, outs)]


def repeated(x: Any, size: int) -> Any:
    """Return ``x`` repeated ``size`` times along a new axis 0."""
    shape = aval_of(x).shape
    return broadcast_in_dim(x, (size, *shape), range(1, len(shape) + 1))


def vmap(fun: Callable, in_axes: Any = 0) -> Callable:
    """Return ``fun`` for stacks of examples along axis 0; results are stacks.

    ``in_axes`` has 0 for each argument that is a stack and None for each that is shared.

    >>> vmap(lambda x, y: x * y, in_axes=(0, None))(np.arange(3.0), 2.0)
    array([0., 2., 4.], dtype=float32)
    """

    @functools.wraps(fun)
    def mapped(*args: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        leaves, in_tree = flatten(args)
        dims = [axis for arg, axis in zip(args, axes) for _ in flatten(arg)[0]]
        sizes = {aval_of(x).shape[0] for x, d in zip(leaves, dims) if d is not None}
        if len(sizes) != 1:
            raise ValueError(f"vmap needs stacks of one size, got sizes {sorted(sizes)}")
        flat, out_tree = flatten_fun(fun, in_tree)
        outs = vmap_flat(flat, sizes.pop(), leaves, dims)
        return out_tree().unflatten(outs)

    return mapped


# --- 8. Programs ---------------------------------------------------------------------------------
# A jaxpr is a program as data: inputs, a flat list of equations, outputs.  It is recorded by
# running a Python function once on tracers that know their shapes alone.


class Var:
    """A variable of a program; it gets a letter when it is printed."""

    def __init__(self, aval: ShapedArray):
        self.aval = aval


class Literal:
    """A number written into an equation."""

    aval = ShapedArray(())

    def __init__(self, val: Any):
        self.val = val


Atom = Var | Literal


@dataclasses.dataclass(frozen=True, eq=False)
class Eqn:
    """One equation: ``outvars = operation invars``."""

    operation: Primitive
    invars: list[Atom]
    outvars: list[Var]


@dataclasses.dataclass(frozen=True, eq=False)
class Jaxpr:
    """A program whose constants are variables; their values are kept elsewhere."""

    constvars: list[Var]
    invars: list[Var]
    outvars: list[Atom]
    eqns: list[Eqn]

    def __repr__(self) -> str:
        return jaxpr_text(self)


@dataclasses.dataclass(frozen=True, eq=False)
class ClosedJaxpr:
    """A program with the values of its constants."""

    jaxpr: Jaxpr
    consts: list[Any]

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.jaxpr.outvars]

    def __repr__(self) -> str:
        return jaxpr_text(self.jaxpr)


class Recorder(Trace):
    """An interpreter that records equations: what staging and linearization share."""

    def __init__(self, parent: Trace):
        self.parent = parent
        self.eqns: list[Eqn] = []
        self.invars: list[Var] = []
        self.consts: dict[int, tuple[Var, Any]] = {}  # by identity, so that each is there once

    def new_arg(self, aval: ShapedArray) -> RecordedTracer:
        """Return a tracer for a new input of the program."""
        self.invars.append(Var(aval))
        return RecordedTracer(self, self.invars[-1])

    def atom(self, x: Any) -> Atom:
        """Return the variable or literal that stands for ``x``; arrays become constants."""
        if isinstance(x, RecordedTracer) and x._trace is self:
            return x.var
        if isinstance(x, Tracer) and not x._trace.is_below(self):
            raise leaked(x)
        if not isinstance(x, Tracer) and aval_of(x).shape == ():
            return Literal(x)
        return self.consts.setdefault(id(x), (Var(aval_of(x)), x))[0]

    def emit(self, prim: Primitive, args: Sequence[Any]) -> Any:
        """Record one equation; return tracers of its results."""
        invars = [self.atom(x) for x in args]
        typed = prim.typing(*[atom.aval for atom in invars])
        outvars = [Var(aval) for aval in (typed if prim.multiple_results else [typed])]
        self.eqns.append(Eqn(prim, invars, outvars))
        outs = [RecordedTracer(self, var) for var in outvars]
        return outs if prim.multiple_results else outs[0]

    def close(self, outs: Sequence[Any]) -> ClosedJaxpr:
        """End recording; return the program whose outputs are ``outs``."""
        outvars = [self.atom(x) for x in outs]
        constvars = [var for var, _ in self.consts.values()]
        return ClosedJaxpr(Jaxpr(constvars, self.invars, outvars, self.eqns),
                           [value for _, value in self.consts.values()])


class RecordedTracer(Tracer):
    """A variable of a program that is being recorded."""

    def __init__(self, trace: Recorder, var: Var):
        self._trace, self.var, self.aval = trace, var, var.aval


class StagingTrace(Recorder):
    """Records every operation, also those on known values."""

    def process(self, prim: Primitive, args: tuple) -> Any:
        return self.emit(prim, args)


def trace_flat(fun: Callable, in_avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """Run ``fun`` on tracers of ``in_avals``; return what it did as a program."""
    trace = StagingTrace(state.trace)
    with current(trace):
        return trace.close(fun(*map(trace.new_arg, in_avals)))


def make_jaxpr(fun: Callable) -> Callable[..., ClosedJaxpr]:
    """Return a function that returns the program of ``fun`` for its arguments.

    >>> make_jaxpr(lambda x: sin(x) * 2.0)(np.ones(3))
    { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }
    """

    def made(*args: Any) -> ClosedJaxpr:
        leaves, in_tree = flatten(args)
        return trace_flat(flatten_fun(fun, in_tree)[0], avals_of(leaves))

    return made


def run_jaxpr(apply: Callable, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]
              ) -> list[Any]:
    """Run a program, each operation by ``apply(prim, *values)``."""
    env: dict[Var, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args]))

    def read(atom: Atom) -> Any:
        return atom.val if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns:
        out = apply(eqn.operation, *map(read, eqn.invars))
        env.update(zip(eqn.outvars, out if eqn.operation.multiple_results else [out]))
    return list(map(read, jaxpr.outvars))


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Run a program under the current interpreter."""
    return run_jaxpr(bind, jaxpr, consts, args)


def as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """Return the Python function that runs ``closed``."""
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)


def evaluate(closed: ClosedJaxpr, *args: Any) -> list[np.ndarray]:
    """Run a program by the ``evaluate`` rules alone: NumPy, without a compiler."""
    return run_jaxpr(lambda prim, *xs: prim.evaluate(*map(as_array, xs)),
                     closed.jaxpr, closed.consts, args)


class Namer:
    """Gives the variables of a program their letters: a, b, …, z, ba, …"""

    def __init__(self, jaxpr: Jaxpr):
        read = {a for eqn in jaxpr.eqns for a in eqn.invars} | {*jaxpr.outvars}
        self.unread = {v for eqn in jaxpr.eqns for v in eqn.outvars} - read
        self.names: dict[Var, str] = {}
        self.numbers = itertools.count()

    def name(self, var: Var) -> str:
        if var in self.unread:
            return "_"
        if var not in self.names:
            self.names[var] = letters(next(self.numbers))
        return self.names[var]

    def atom(self, atom: Atom) -> str:
        if isinstance(atom, Literal):
            return f"{float(atom.val)}:{atom.aval.str_short()}"
        return self.name(atom)

    def binders(self, variables: Sequence[Var]) -> str:
        return " ".join(f"{self.name(v)}:{v.aval.str_short()}" for v in variables)


def letters(n: int) -> str:
    """Return the number ``n`` written with the digits a to z."""
    return (letters(n // 26) if n >= 26 else "") + chr(ord("a") + n % 26)


def jaxpr_text(jaxpr: Jaxpr, namer: Namer | None = None, indent: int = 0, before: int = 0) -> str:
    """Return a program in JAX's notation: on one line if it fits in 80 columns.

    Lines after the first are indented by ``indent``; the first begins ``before`` columns later.
    """
    namer = namer or Namer(jaxpr)
    pad = " " * indent
    head = f"{{ lambda {namer.binders(jaxpr.constvars)}; {namer.binders(jaxpr.invars)}. let"
    body = [eqn_text(eqn, namer, indent + 4) for eqn in jaxpr.eqns]
    outs = [namer.atom(a) for a in jaxpr.outvars]
    tail = f"in ({outs[0]},) }}" if len(outs) == 1 else f"in ({', '.join(outs)}) }}"
    line = f"{head} {'; '.join(body)} {tail}"
    if "\n" not in line and indent + before + len(line) <= 80:
        return line
    return "\n".join([head, *(f"{pad}    {line}" for line in body or [""]), f"{pad}  {tail}"])


def eqn_text(eqn: Eqn, namer: Namer, indent: int) -> str:
    """Return one equation; a program among its parameters is printed inside it."""
    name_call(eqn, namer)
    head = f"{namer.binders(eqn.outvars)} = {eqn.operation.name}"
    params = []
    for name, value in eqn.operation.printed_params().items():
        if isinstance(value, ClosedJaxpr):
            value = jaxpr_text(value.jaxpr, namer, indent + 2, len(name) + 1)
        params.append(f"{name}={value}")
    if params:
        line = f"{head}[{' '.join(params)}]"
        pad = "\n" + " " * indent
        wide = "\n" in line or indent + len(line) > 80
        head = f"{head}[{pad}  {f'{pad}  '.join(params)}{pad}]" if wide else line
    return f"{head} {' '.join(map(namer.atom, eqn.invars))}"


def name_call(eqn: Eqn, namer: Namer) -> None:
    """Let inputs and outputs of a program that ``eqn`` calls have the letters of ``eqn``."""
    namer.binders(eqn.outvars)
    for value in eqn.operation.printed_params().values():
        if isinstance(value, ClosedJaxpr):
            inside = [*value.jaxpr.invars, *value.jaxpr.outvars]
            for inner, outer in zip(inside, [*eqn.invars, *eqn.outvars]):
                if isinstance(inner, Var) and isinstance(outer, Var) and namer.name(outer) != "_":
                    namer.names.setdefault(inner, namer.name(outer))


# --- 9. Reverse mode -----------------------------------------------------------------------------
# Run the jvp of a function on known primals and *unknown* tangents.  What is known is computed at
# once; the rest is recorded.  The recorded program is linear in the tangents, and running it
# backwards by the transpose rules turns cotangents of results into cotangents of arguments.


class PartialTrace(Recorder):
    """Computes operations on known values in the parent and records the others."""

    def process(self, prim: Primitive, args: tuple) -> Any:
        if all(map(self.is_known, args)):
            with current(self.parent):
                return bind(prim, *args)
        return prim.partial_eval(self, args)

    def is_known(self, x: Any) -> bool:
        return not (isinstance(x, RecordedTracer) and x._trace is self)


def linearize_flat(fun: Callable, primals: Sequence[Any]) -> tuple[list[Any], ClosedJaxpr]:
    """Run ``fun`` at ``primals``; return its results and the program from tangents to tangents."""
    partial = PartialTrace(state.trace)
    tangents = [partial.new_arg(aval_of(x)) for x in primals]
    with current(partial):
        outs, out_tangents = jvp_flat(fun, primals, tangents, partial)
        out_tangents = instantiate(out_tangents, avals_of(outs))
    return outs, partial.close(out_tangents)


def backward_pass(jaxpr: Jaxpr, consts: Sequence[Any], cts_out: Sequence[Any]) -> list[Any]:
    """Run a linear program backwards: cotangents of its outputs to those of its inputs."""
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, consts))
    cts: dict[Any, Any] = {}
    for var, ct in zip(jaxpr.outvars, cts_out):
        cts[var] = add_tangents(cts.get(var), ct)
    for eqn in reversed(jaxpr.eqns):
        eqn_cts = [cts.pop(v, None) for v in eqn.outvars]
        if all(ct is None for ct in eqn_cts):
            continue
        args = [a.val if isinstance(a, Literal) else known[a] if a in known
                else UndefinedPrimal(a.aval) for a in eqn.invars]
        prim = eqn.operation
        pulled = prim.transpose(eqn_cts if prim.multiple_results else eqn_cts[0], *args)
        for var, arg, ct in zip(eqn.invars, args, pulled):
            if isinstance(arg, UndefinedPrimal):
                cts[var] = add_tangents(cts.get(var), ct)
    return instantiate([cts.get(v) for v in jaxpr.invars], [v.aval for v in jaxpr.invars])


def linearize(fun: Callable, *primals: Any) -> tuple[Any, Callable]:
    """Return the value of ``fun`` and the function of tangents that is its derivative."""
    leaves, in_tree = flatten(primals)
    flat, out_tree = flatten_fun(fun, in_tree)
    outs, linear = linearize_flat(flat, leaves)
    return out_tree().unflatten(outs), lambda *tangents: out_tree().unflatten(
        as_fun(linear)(*flatten(tangents)[0]))


def vjp(fun: Callable, *primals: Any) -> tuple[Any, Callable]:
    """Return the value of ``fun`` and the function of a cotangent that pulls it back.

    >>> _, pullback = vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> [float(ct) for ct in pullback(1.0)]
    [3.0, 2.0]
    """
    leaves, in_tree = flatten(primals)
    flat, out_tree = flatten_fun(fun, in_tree)
    outs, linear = linearize_flat(flat, leaves)
    return out_tree().unflatten(outs), lambda ct: in_tree.unflatten(
        backward_pass(linear.jaxpr, linear.consts, flatten(ct)[0]))


def grad(fun: Callable) -> Callable:
    """Return the function that computes the gradient of ``fun`` by its first argument.

    >>> grad(lambda x: reduce_sum(x * x, (0,)))(np.arange(3.0))
    array([0., 2., 4.], dtype=float32)
    """

    @functools.wraps(fun)
    def gradient(x: Any, *rest: Any) -> Any:
        value, pullback = vjp(lambda x: fun(x, *rest), x)
        if aval_of(value).shape:
            raise TypeError(f"grad needs a function with one scalar result, got "
                            f"{aval_of(value).str_short()}")
        (ct,) = pullback(1.0)
        return ct

    return gradient


# --- 10. Programs transformed --------------------------------------------------------------------
# Each transformation also maps a program to a program: trace the transformed run of it.  The
# results are kept, so that a program is transformed, and later compiled, once.


@functools.lru_cache
def jvp_jaxpr(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program from primals and tangents to results and their tangents."""

    def both(*flat: Any) -> list[Any]:
        half = len(flat) // 2
        outs, out_tangents = jvp_flat(as_fun(closed), flat[:half], flat[half:])
        return [*outs, *instantiate(out_tangents, avals_of(outs))]

    return trace_flat(both, closed.in_avals * 2)


@functools.lru_cache
def batch_jaxpr(closed: ClosedJaxpr, size: int, dims: tuple[int | None, ...]) -> ClosedJaxpr:
    """Return the program for stacks; ``dims`` has None for inputs that are none."""
    avals = [aval if d is None else ShapedArray((size, *aval.shape))
             for aval, d in zip(closed.in_avals, dims)]
    return trace_flat(lambda *xs: vmap_flat(as_fun(closed), size, xs, dims), avals)


@functools.lru_cache
def partial_eval_jaxpr(closed: ClosedJaxpr, unknown: tuple[bool, ...]
                       ) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool]]:
    """Split a program into what needs no unknown input, and the rest.

    The first program maps known inputs to known results, then residuals; the second maps residuals,
    then unknown inputs, to unknown results.  The list marks the results that are unknown.
    """
    out_unknown: list[bool] = []
    rest: list[ClosedJaxpr] = []

    def known_part(*known: Any) -> list[Any]:
        values = iter(known)
        partial = PartialTrace(state.trace)
        args = [partial.new_arg(aval) if u else next(values)
                for aval, u in zip(closed.in_avals, unknown)]
        with current(partial):
            outs = as_fun(closed)(*args)
        out_unknown[:] = [not partial.is_known(x) for x in outs]
        tail = partial.close([x for x, u in zip(outs, out_unknown) if u])
        rest[:] = [consts_to_inputs(tail)]
        return [*(x for x, u in zip(outs, out_unknown) if not u), *tail.consts]

    known_avals = [aval for aval, u in zip(closed.in_avals, unknown) if not u]
    return trace_flat(known_part, known_avals), rest[0], out_unknown


@functools.lru_cache
def transpose_jaxpr(closed: ClosedJaxpr, linear: tuple[bool, ...]) -> ClosedJaxpr:
    """Return the program from residuals and cotangents to cotangents of the linear inputs."""
    jaxpr = closed.jaxpr
    residuals = [v for v, lin in zip(jaxpr.invars, linear) if not lin]
    opened = dataclasses.replace(jaxpr, constvars=residuals, invars=[
        v for v, lin in zip(jaxpr.invars, linear) if lin])

    def pull(*flat: Any) -> list[Any]:
        return backward_pass(opened, flat[:len(residuals)], flat[len(residuals):])

    return trace_flat(pull, [*(v.aval for v in residuals), *closed.out_avals])


def consts_to_inputs(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program that takes its constants as first inputs."""
    jaxpr = closed.jaxpr
    return ClosedJaxpr(dataclasses.replace(
        jaxpr, constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars]), [])


# --- 11. StableHLO -------------------------------------------------------------------------------
# A program becomes text, equation by equation, by the lower rules; XLA compiles the text.  The text
# depends on the program alone, so it is the key under which an executable is kept.


class Writer:
    """The text of one function while it is written: what ``lower`` rules get as ``ctx``."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.avals: dict[str, ShapedArray] = {}
        self.out: ShapedArray  # the aval of the result of the equation that is being written

    def emit(self, text: str, *operands: str, out: ShapedArray | None = None) -> str:
        """Write an operation with the types of its operands; return the name of its result."""
        types = ", ".join(tensor_type(self.avals[x]) for x in operands)
        return self.line(text, f"({types}) -> {tensor_type(out or self.out)}", out or self.out)

    def elementwise(self, op: str, *xs: str) -> str:
        """Write an operation whose operands, stretched if need be, have the type of its result."""
        stretched = [self.stretch(x) for x in xs]
        return self.line(f"{op} {', '.join(stretched)}", tensor_type(self.out), self.out)

    def stretch(self, x: str) -> str:
        rank = len(self.avals[x].shape)
        return x if self.avals[x] == self.out else self.emit(
            f"stablehlo.broadcast_in_dim {x}, dims = {list(range(rank))}", x)

    def constant(self, value: Any) -> str:
        """Write a number, by the bits of its float32, so that inf and nan are numbers too."""
        bits = as_array(value).view(np.uint32)
        aval = ShapedArray(())
        return self.line(f"stablehlo.constant dense<0x{int(bits):08X}>", tensor_type(aval), aval)

    def line(self, text: str, types: str, out: ShapedArray) -> str:
        name = f"%{len(self.lines)}"
        self.lines.append(f"{name} = {text} : {types}")
        self.avals[name] = out
        return name


def tensor_type(aval: ShapedArray) -> str:
    """Return how StableHLO spells the type of ``aval``."""
    return f"tensor<{'x'.join([*map(str, aval.shape), 'f32'])}>"


def write_program(ctx: Writer, jaxpr: Jaxpr, inputs: Sequence[str]) -> list[str]:
    """Write the equations of ``jaxpr`` on the names ``inputs``; return the names of its outputs."""
    env: dict[Var, str] = dict(zip(jaxpr.invars, inputs))

    def read(atom: Atom) -> str:
        return ctx.constant(atom.val) if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns:
        operands = list(map(read, eqn.invars))
        ctx.out = eqn.outvars[0].aval if eqn.outvars else ShapedArray(())
        out = eqn.operation.lower(ctx, *operands)
        env.update(zip(eqn.outvars, out if eqn.operation.multiple_results else [out]))
    return list(map(read, jaxpr.outvars))


@functools.lru_cache
def lower(closed: ClosedJaxpr) -> str:
    """Return a program without constants as a StableHLO module."""
    ctx = Writer()
    inputs = [f"%arg{i}" for i in range(len(closed.in_avals))]
    ctx.avals.update(zip(inputs, closed.in_avals))
    outs = write_program(ctx, closed.jaxpr, inputs)
    arguments = ", ".join(f"{x}: {tensor_type(ctx.avals[x])}" for x in inputs)
    types = ", ".join(map(tensor_type, closed.out_avals))
    end = f"return {', '.join(outs)} : {types}" if outs else "return"
    body = "\n".join(f"    {line}" for line in [*ctx.lines, end])
    return f"module {{\n  func.func public @main({arguments}) -> ({types}) {{\n{body}\n  }}\n}}\n"


@functools.cache
def device() -> Any:
    """Return the CPU, as XLA sees it."""
    client: Any = _jaxlib.make_cpu_client()
    return client.devices()[0]


@functools.cache
def find_or_compile(text: str) -> Any:
    """Return the executable of a StableHLO module; each text is compiled once."""
    return device().client.compile_and_load(text, [device()], _jaxlib.CompileOptions())


def run_compiled(closed: ClosedJaxpr, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run a program without constants on XLA."""
    executable = find_or_compile(lower(closed))
    place = _jaxlib.SingleDeviceSharding(device())
    handlers = [_jaxlib.array_result_handler(_Result(aval.shape), place, True)
                for aval in closed.out_avals]
    buffers = [_jaxlib.batched_device_put(_Result(x.shape), place, [x], [device()], True)
               for x in arrays]
    outs = executable.execute_sharded(buffers).consume_with_handlers(handlers)
    return list(map(as_array, outs))


@dataclasses.dataclass(frozen=True)
class _Result(ShapedArray):
    """An aval as jaxlib asks for it: every dtype says whether it came from a Python number."""

    weak_type: ClassVar[bool] = False


# --- 12. jit -------------------------------------------------------------------------------------
# A jitted function is traced once for each signature of its arguments.  Calling it is one
# primitive whose parameter is the program; its rules transform that program by section 10.


@dataclasses.dataclass(frozen=True)
class JitCall(Primitive):
    """Call the program ``jaxpr``, which has no constants."""

    name = "jit"
    multiple_results = True
    jaxpr: ClosedJaxpr
    jaxpr_name: str

    def typing(self, *avals):
        return self.jaxpr.out_avals

    def evaluate(self, *xs):
        return evaluate(self.jaxpr, *xs)

    def lower(self, ctx, *xs):
        return write_program(ctx, self.jaxpr.jaxpr, xs)

    def jvp(self, primals, tangents):
        outs = bind(self.call(jvp_jaxpr(self.jaxpr)), *primals,
                    *instantiate(tangents, self.jaxpr.in_avals))
        half = len(outs) // 2
        return outs[:half], outs[half:]

    def transpose(self, cts, *args):
        linear = tuple(isinstance(a, UndefinedPrimal) for a in args)
        program = transpose_jaxpr(self.jaxpr, linear)
        residuals = [a for a, lin in zip(args, linear) if not lin]
        pulled = iter(bind(self.call(program), *residuals,
                           *instantiate(cts, self.jaxpr.out_avals)))
        return [next(pulled) if lin else None for lin in linear]

    def batch(self, size, xs, dims):
        outs = bind(self.call(batch_jaxpr(self.jaxpr, size, tuple(dims))), *xs)
        return outs, [0] * len(outs)

    def execute(self, *arrays):
        return run_compiled(self.jaxpr, arrays)

    def partial_eval(self, trace, args):
        unknown = tuple(not trace.is_known(x) for x in args)
        first, second, out_unknown = partial_eval_jaxpr(self.jaxpr, unknown)
        with current(trace.parent):
            outs = bind(self.call(first), *(x for x, u in zip(args, unknown) if not u))
        split = len(out_unknown) - sum(out_unknown)
        known, residuals = iter(outs[:split]), outs[split:]
        waiting = [x for x, u in zip(args, unknown) if u]
        recorded = iter(trace.emit(self.call(second), [*residuals, *waiting]))
        return [next(recorded) if u else next(known) for u in out_unknown]

    def call(self, program: ClosedJaxpr) -> JitCall:
        """Return the call of a program made from this one."""
        return JitCall(program, self.jaxpr_name)

    def printed_params(self):
        return {"name": self.jaxpr_name, "jaxpr": self.jaxpr}


def jit(fun: Callable) -> Callable:
    """Return ``fun`` compiled; it is traced once for each structure and avals of its arguments.

    The attribute ``programs`` of what is returned shows what was traced.

    >>> double = jit(lambda x: x + x)
    >>> double(np.arange(3.0)), double(np.ones(3))
    (array([0., 2., 4.], dtype=float32), array([2., 2., 2.], dtype=float32))
    >>> len(double.programs)
    1
    """
    programs: dict[Any, Any] = {}

    @functools.wraps(fun)
    def jitted(*args: Any) -> Any:
        leaves, in_tree = flatten(args)
        key = in_tree, tuple(avals_of(leaves))
        if key in programs:
            closed, consts, out_tree = programs[key]
        else:
            flat, tree_of_result = flatten_fun(fun, in_tree)
            traced = trace_flat(flat, key[1])
            closed, consts, out_tree = consts_to_inputs(traced), traced.consts, tree_of_result()
            if not any(isinstance(c, Tracer) for c in consts):  # those belong to this call alone
                programs[key] = closed, consts, out_tree
        return out_tree.unflatten(bind(JitCall(closed, fun.__name__), *consts, *leaves))

    jitted.programs = programs  # type: ignore[attr-defined]
    return jitted
