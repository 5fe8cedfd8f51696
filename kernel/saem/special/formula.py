"""How is one formula run on NumPy, written as StableHLO, and differentiated?

Functions without an operation of their own (incomplete gamma, Bessel) are formulas of others.  Such
a formula is written once, on ``Value``s, which wrap an array of NumPy (``OnNumpy``) or of the
engine (``OnArrays``); Python's operators on them compute.  Run on tracers it is a program, which is
written in place of the primitive.

Read before: ``transform.staging``.  Read after: ``special.incomplete``.
Invariant: both give the same number to the rounding of their dtype (tests/kernel/test_matrix.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from saem.core import dtypes
from saem.core.avals import ShapedArray, aval_of
from saem.core.infer import infer
from saem.core.primitive import NOT_LINEAR
from saem.loops.while_loop import while_loop
from saem.ops import arithmetic, compare, maths, numbers
from saem.ops.convert import convert
from saem.ops.families import Nary, stretch
from saem.ops.linear import broadcast_in_dim, literal
from saem.ops.reduce import reduce_or
from saem.ops.select import select_n
from saem.transform.staging import write_function


class Value:
    """A number, or a truth, of a formula."""

    __slots__ = ("of", "raw")

    def __init__(self, of: Any, raw: Any):
        self.of = of
        self.raw = raw

    def _with(self, name: str, other: Any, swap: bool = False) -> Value:
        other = other if isinstance(other, Value) else self.of.number(other)
        a, b = (other, self) if swap else (self, other)
        return Value(self.of, self.of.apply(name, a.raw, b.raw))

    def __neg__(self):
        return Value(self.of, self.of.apply("negate", self.raw))

    def __invert__(self):
        return Value(self.of, self.of.apply("not", self.raw))

    __add__ = functools.partialmethod(_with, "add")
    __radd__ = functools.partialmethod(_with, "add", swap=True)
    __sub__ = functools.partialmethod(_with, "subtract")
    __rsub__ = functools.partialmethod(_with, "subtract", swap=True)
    __mul__ = functools.partialmethod(_with, "multiply")
    __rmul__ = functools.partialmethod(_with, "multiply", swap=True)
    __truediv__ = functools.partialmethod(_with, "divide")
    __rtruediv__ = functools.partialmethod(_with, "divide", swap=True)
    __and__ = functools.partialmethod(_with, "and")
    __or__ = functools.partialmethod(_with, "or")
    __lt__ = functools.partialmethod(_with, "LT")
    __le__ = functools.partialmethod(_with, "LE")
    __gt__ = functools.partialmethod(_with, "GT")
    __ge__ = functools.partialmethod(_with, "GE")

    def equals(self, other: Any) -> Value:
        """Return where this equals ``other``; never where either is NaN."""
        return self._with("EQ", other)

    def __getattr__(self, name: str) -> Callable[[], Value]:
        """Return the unary operation ``name``: ``x.log()``, ``x.lgamma()``."""
        if name not in self.of.unary:
            raise AttributeError(name)
        return lambda: Value(self.of, self.of.apply(name, self.raw))


class OnValues:
    """Runs a formula at once, by ``unary`` and ``others``; ``functions`` adds to the unary."""

    unary: ClassVar[dict[str, Callable]]
    others: ClassVar[dict[str, Callable]]

    def __init__(self, dtype: np.dtype, shape: Sequence[int], functions: dict[str, Callable]):
        self.dtype = dtype
        self.shape = shape
        self.operations = {**self.unary, **self.others, **functions}
        self.unary = {**self.unary, **functions}

    def apply(self, name: str, *xs: Any) -> Any:
        return self.operations[name](*xs)

    def number(self, value: float) -> Value:
        """Return ``value`` as an array of the formula's dtype and shape."""
        raise NotImplementedError

    def where(self, which: Value, x: Any, y: Any) -> Value:
        x, y = (v if isinstance(v, Value) else self.number(v) for v in (x, y))
        return Value(self, self.apply("select", which.raw, y.raw, x.raw))


class OnNumpy(OnValues):
    """Runs a formula on NumPy's arrays."""

    unary: ClassVar[dict[str, Callable]] = {
        "log": np.log, "exponential": np.exp, "log_plus_one": np.log1p,
        "exponential_minus_one": np.expm1, "sqrt": np.sqrt, "abs": np.abs,
    }
    others: ClassVar[dict[str, Callable]] = {
        "negate": np.negative, "not": np.logical_not, "add": np.add, "subtract": np.subtract,
        "multiply": np.multiply, "divide": np.divide, "and": np.logical_and, "or": np.logical_or,
        "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
        "EQ": np.equal, "select": lambda which, no, yes: np.where(which, yes, no),
    }

    def number(self, value: float) -> Value:
        return Value(self, np.full(self.shape, value, self.dtype))

    def loop(self, limit: int, body: Callable, state: Sequence[Value], active: Value
             ) -> list[Value]:
        """Repeat ``state, active = body(number, *state)`` where active, at most ``limit`` times."""
        state = list(state)
        for number in range(1, limit + 1):
            if not np.any(active.raw):
                break
            new, goes_on = body(self.number(number), *state)
            state = [self.where(active, n, s) for n, s in zip(new, state)]
            active = active & goes_on
        return state


class OnArrays(OnValues):
    """Runs a formula by the engine's operations, so that it has a derivative in forward mode."""

    unary: ClassVar[dict[str, Callable]] = {
        "log": maths.log, "exponential": maths.exp, "log_plus_one": maths.log1p,
        "exponential_minus_one": maths.expm1, "sqrt": maths.sqrt, "abs": numbers.abs,
    }
    others: ClassVar[dict[str, Callable]] = {
        "negate": arithmetic.neg, "not": compare.bitwise_not, "add": arithmetic.add,
        "subtract": arithmetic.sub, "multiply": arithmetic.mul, "divide": arithmetic.div,
        "and": compare.bitwise_and, "or": compare.bitwise_or, "LT": compare.lt, "LE": compare.le,
        "GT": compare.gt, "GE": compare.ge, "EQ": compare.eq,
        "select": select_n,
    }

    def __init__(self, dtype: np.dtype, aval: ShapedArray, functions: dict[str, Callable]):
        super().__init__(dtype, aval.shape, functions)
        self.sharding = aval.explicit

    def stretch(self, x: Any) -> Any:
        return broadcast_in_dim(x, self.shape, (), out_sharding=self.sharding)

    def number(self, value: float) -> Value:
        return Value(self, self.stretch(literal(value, self.dtype)))

    def loop(self, limit: int, body: Callable, state: Sequence[Value], active: Value
             ) -> list[Value]:
        """Repeat ``state, active = body(number, *state)`` where active, at most ``limit`` times."""
        axes = tuple(range(len(self.shape)))

        def condition(held: tuple[Any, ...]) -> Any:
            number, active, *_ = held
            some = reduce_or(active, axes) if axes else active
            return compare.bitwise_and(compare.le(number, literal(limit, self.dtype)), some)

        def step(held: tuple[Any, ...]) -> tuple[Any, ...]:
            number, active, *raws = held
            on, olds = Value(self, active), [Value(self, x) for x in raws]
            new, goes_on = body(Value(self, self.stretch(number)), *olds)
            kept = [self.where(on, n, s).raw for n, s in zip(new, olds)]
            return arithmetic.add(number, literal(1, self.dtype)), (on & goes_on).raw, *kept

        start = (literal(1, self.dtype), active.raw, *(s.raw for s in state))
        return [Value(self, x) for x in while_loop(condition, step, start)[2:]]


class Formula(Nary):
    """A primitive given by ``formula(of, *values)``.

    ``functions`` are what NumPy lacks for it, ``operations`` the engine's for the same names.
    """

    __slots__ = ()
    separate_code = False
    accepts, needs = staticmethod(dtypes.is_float), "floating"
    functions: ClassVar[dict[str, Callable]] = {}
    operations: ClassVar[dict[str, Callable]] = {}
    formula: ClassVar[Callable]
    transpose = NOT_LINEAR

    def evaluate(self, *xs):
        dtype = xs[0].dtype
        shape = np.broadcast_shapes(*(x.shape for x in xs))
        wide = [np.broadcast_to(np.asarray(x, np.float64), shape) for x in xs]
        of = OnNumpy(np.dtype(np.float64), shape, self.functions)
        with np.errstate(all="ignore"):
            out = type(self).formula(of, *[Value(of, x) for x in wide]).raw
            return np.asarray(out).astype(dtype)

    def lower(self, ctx, *xs):
        return write_function(ctx, self.on_arrays, *xs)[0]

    def on_arrays(self, *xs: Any) -> list[Any]:
        """Return the result of the formula, computed by the engine's operations."""
        aval = infer(self, [aval_of(x) for x in xs])
        dtype = np.dtype(np.float32) if aval.dtype.itemsize < 4 else aval.dtype
        of = OnArrays(dtype, aval, self.operations)
        values = [Value(of, stretch(convert(x, dtype), aval.shape)) for x in xs]
        return [convert(type(self).formula(of, *values).raw, aval.dtype)]
