"""What must hold for every primitive, whatever it computes?

Cases are data: a primitive and specs of its operands (``cases/<subject>.py``).  Each check below
takes a case and asks one question of the primitive's six rules.  The rules never judge themselves:
``lower`` is held against ``evaluate``, ``jvp`` against finite differences of ``evaluate`` in double
precision, ``transpose`` against ``jvp`` by inner products, ``batch`` against a Python loop.

Programs that the transformations make are run on NumPy by ``core.jaxpr.evaluate`` (fast: nothing is
compiled); each case compiles two: the primitive alone, and its derivative on a stack.

Read before: ``saem.core.primitive``.  Read after: ``cases``, ``test_matrix``.
Invariant: operands depend only on the case, so a failure repeats.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
import pkgutil
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import cases as all_cases
import ml_dtypes
import numpy as np

from saem import _wiring  # noqa: F401 - lets operations run
from saem.compile import arrays as _arrays  # noqa: F401 - gives results their methods
from saem.compile.dispatch import build, put
from saem.core import dtypes
from saem.core.avals import ShapedArray
from saem.core.infer import check_jaxpr
from saem.core.jaxpr import ClosedJaxpr, evaluate
from saem.core.trace import bind
from saem.ops import contract, maths, windows
from saem.placement.devices import default_device
from saem.transform.jvp import instantiate, jvp_flat
from saem.transform.linearize import linearize_flat
from saem.transform.staging import trace_flat
from saem.transform.vmap import match_dim, vmap_flat

# Relative tolerance (also absolute, near zero) by dtype, of one operation computed two ways.
TOLERANCE = {"bfloat16": 2e-2, "float16": 4e-3, "float32": 2e-5, "complex64": 4e-5}
# ... and of a derivative in that dtype against differences in double precision.
DERIVATIVE = {"bfloat16": 1e-1, "float16": 2e-2, "float32": 1e-3, "complex64": 1e-3}
ROUGH_STEP = {"bfloat16": 0.5, "float16": 0.1}
MOST_COMBINATIONS = 12


# -- loading the cases -----------------------------------------------------------------------------


def load_cases() -> list[all_cases.Case]:
    """Return the cases of every module in ``cases``."""
    found = []
    for module in sorted(m.name for m in pkgutil.iter_modules(all_cases.__path__)):
        found += importlib.import_module(f"cases.{module}").CASES
    return found


# -- operands --------------------------------------------------------------------------------------

_SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 2.5, -2.5, 1.5, -1.5,
            7.25, -7.25]


def _uniform(low: float, high: float) -> Callable:
    return lambda rng, shape: rng.uniform(low, high, shape)


def _distinct(rng, shape):
    n = int(np.prod(shape))
    return (rng.permutation(n) * 0.5 - n / 4 + rng.uniform(0, 0.2, n)).reshape(shape)


FLOATS: dict[str, Callable] = {
    "any": lambda rng, shape: rng.normal(size=shape) * 1.5,
    "positive": _uniform(0.3, 3.0),
    "unit": _uniform(-0.9, 0.9),
    "open01": _uniform(0.05, 0.95),
    "above1": _uniform(1.2, 4.0),
    "nonzero": lambda rng, shape: rng.uniform(0.4, 3.0, shape) * rng.choice([-1, 1], shape),
    "non-integer": lambda rng, shape: rng.integers(-3, 4, shape) + rng.uniform(0.2, 0.4, shape)
    + 0.4 * rng.integers(0, 2, shape),
    "distinct": _distinct,
    "integral": lambda rng, shape: rng.integers(-4, 5, shape).astype(float),
    "special": lambda rng, shape: np.resize(rng.permutation(_SPECIAL), shape),
}


def _integers(dtype: np.dtype, domain: str, rng, shape) -> np.ndarray:
    info = ml_dtypes.iinfo(dtype)
    if domain.startswith("below:"):
        return rng.integers(0, int(domain.removeprefix("below:")), shape)
    if domain == "edges":
        low, high = int(info.min), int(info.max)
        values = [0, 1, 2, 3, 5, 7, high, high - 1, low, low + 1]
        values += [-1, -2, -7] if low else []
        order = rng.permutation(len(values))
        return np.resize(np.asarray([values[i] for i in order], dtype), shape)
    low, high = max(-9, int(info.min)), min(9, int(info.max))
    if domain in ("positive", "nonzero", "above1"):
        low = 1
    if domain == "distinct":
        return np.asarray(rng.permutation(int(np.prod(shape)))).reshape(shape)
    return rng.integers(low, high + 1, shape)


def operand(spec: all_cases.Spec, rng: np.random.Generator,
            shape: Sequence[int] | None = None) -> np.ndarray:
    """Return an array of ``spec``, of ``shape`` if given (a stack of operands)."""
    shape = tuple(spec.shape if shape is None else shape)
    dtype, domain = spec.dtype, spec.domain
    if callable(domain):
        return np.asarray(domain(rng, shape)).astype(dtype)
    if not isinstance(domain, str):
        value = np.asarray(domain)
        return np.array(np.broadcast_to(value, shape)).astype(dtype)
    kind = dtypes.scalar_kind(dtype)
    with np.errstate(all="ignore"):
        if kind == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if kind in ("int", "uint"):
            return _integers(dtype, domain, rng, shape).astype(dtype)
        make = FLOATS[domain]
        if kind == "complex":
            out = np.empty(shape, dtype)
            out.real, out.imag = make(rng, shape), make(rng, shape)
            return out
        return np.asarray(make(rng, shape)).astype(dtype)


class Operands:
    """The numbers of one case: operands, tangents, cotangents, stacks; always the same ones."""

    def __init__(self, case: all_cases.Case):
        self.case = case
        self.rng = np.random.default_rng(zlib.crc32(str(case).encode()))
        self.arrays = [operand(s, self.rng) for s in case.specs]
        self.avals = [ShapedArray(s.shape, s.dtype, s.weak) for s in case.specs]

    def like(self, aval: Any) -> np.ndarray:
        """Return random numbers of ``aval``, for a tangent or cotangent."""
        return operand(all_cases.Spec(aval.shape, aval.dtype, "any"), self.rng)

    def stack(self, size: int, dims: Sequence[int | None]) -> list[np.ndarray]:
        """Return operands, those with a dim stacked ``size`` times along it."""
        out = []
        for spec, x, d in zip(self.case.specs, self.arrays, dims):
            if d is None:
                out.append(x)
            elif size:
                parts = [operand(spec, self.rng) for _ in range(size)]
                out.append(np.stack(parts, d))
            else:
                out.append(np.zeros((*spec.shape[:d], 0, *spec.shape[d:]), spec.dtype))
        return out


# -- running ---------------------------------------------------------------------------------------


def as_list(prim: Any, out: Any) -> list[Any]:
    return list(out) if prim.multiple_results else [out]


def typed(case: all_cases.Case, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    return as_list(case.prim, case.prim.typing(*avals))


def reference(case: all_cases.Case, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs of the ``evaluate`` rule in the dtypes of the typing rule."""
    avals = typed(case, [ShapedArray(x.shape, x.dtype) for x in arrays])
    with np.errstate(all="ignore"):
        outs = as_list(case.prim, case.prim.evaluate(*arrays))
        return [np.asarray(o).astype(a.dtype) for o, a in zip(outs, avals)]


def staged(fun: Callable, arrays: Sequence[np.ndarray]) -> ClosedJaxpr:
    """Return ``fun`` (flat to flat) as a checked program for arguments like ``arrays``."""
    closed = trace_flat(fun, [ShapedArray(x.shape, x.dtype) for x in arrays])
    check_jaxpr(closed)
    return closed


def on_numpy(closed: ClosedJaxpr, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return evaluate(closed, *arrays)


def on_xla(closed: ClosedJaxpr, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    program = build(closed, default_device(), False, name="matrix")
    return [np.asarray(x) for x in program.run([put(x) for x in arrays])]


def wide(x: np.ndarray) -> np.ndarray:
    """Return ``x`` in double precision if it is inexact."""
    kind = dtypes.scalar_kind(x.dtype)
    return x.astype(np.complex128 if kind == "complex" else np.float64) \
        if dtypes.is_inexact(x.dtype) else x


def close(got: Any, want: Any, dtype: np.dtype, tolerance: float | None = None,
          what: str = "") -> None:
    """Assert that two arrays agree as far as ``dtype`` can; exactly if it is discrete."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, needed {want.shape}"
    if dtypes.is_inexact(dtype):
        tolerance = TOLERANCE.get(dtype.name, 1e-2) if tolerance is None else tolerance
        scale = max(1.0, float(np.max(np.abs(wide(want)[np.isfinite(wide(want))]), initial=0.0)))
        np.testing.assert_allclose(wide(got), wide(want), rtol=tolerance,
                                   atol=tolerance * min(scale, 10.0), err_msg=what)
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)


# -- check: typing ---------------------------------------------------------------------------------


def check_typing(case: all_cases.Case) -> None:
    """The typing rule foretells the shapes and kinds of what ``evaluate`` returns."""
    data = Operands(case)
    assert dataclasses.replace(case.prim) == case.prim
    hash(case.prim)
    avals = typed(case, data.avals)
    with np.errstate(all="ignore"):
        outs = as_list(case.prim, case.prim.evaluate(*data.arrays))
    assert len(outs) == len(avals)
    for out, aval in zip(outs, avals):
        out = np.asarray(out)
        assert out.shape == aval.shape
        assert dtypes.scalar_kind(out.dtype) == dtypes.scalar_kind(aval.dtype)
    staged(lambda *xs: as_list(case.prim, bind(case.prim, *xs)), data.arrays)


# -- check: XLA ------------------------------------------------------------------------------------


def check_xla(case: all_cases.Case) -> None:
    """XLA computes what ``evaluate`` says, to the rounding of the dtype, NaN included."""
    data = Operands(case)
    got = as_list(case.prim, bind(case.prim, *[put(x) for x in data.arrays]))
    want = reference(case, data.arrays)
    if case.settle is not None:
        got = case.settle([np.asarray(g) for g in got])
        want = case.settle(want)
    for number, (g, w) in enumerate(zip(got, want, strict=True)):
        assert g.dtype == w.dtype
        close(g, w, w.dtype, case.tolerance, f"output {number} on XLA")
        if any(s.domain == "special" for s in case.specs) and dtypes.is_float(w.dtype):
            zero = w == 0
            np.testing.assert_array_equal(np.signbit(np.asarray(g)[zero]), np.signbit(w[zero]),
                                          err_msg=f"output {number}: sign of zero")


# -- check: jvp ------------------------------------------------------------------------------------


def moving(case: all_cases.Case) -> list[tuple[bool, ...]]:
    """Return which operands get a tangent: every subset, or each alone and all together."""
    free = [i for i, s in enumerate(case.specs)
            if dtypes.is_inexact(s.dtype) and (case.wrt is None or i in case.wrt)]
    if not free or not case.differentiable:
        return []
    sizes = range(1, len(free) + 1) if len(free) <= 3 else (1, len(free))
    subsets = itertools.chain.from_iterable(itertools.combinations(free, n) for n in sizes)
    return [tuple(i in subset for i in range(len(case.specs))) for subset in subsets]


def with_tangents(case: all_cases.Case, nonzero: Sequence[bool]) -> Callable:
    """Return the function of operands and tangents to outputs and tangents."""

    def both(*flat: Any) -> list[Any]:
        xs, rest = flat[: len(nonzero)], iter(flat[len(nonzero):])
        tangents = [next(rest) if nz else None for nz in nonzero]
        outs, ts = jvp_flat(lambda *args: as_list(case.prim, bind(case.prim, *args)), xs, tangents)
        return [*outs, *(instantiate(t, o) for t, o in zip(ts, outs))]

    return both


def differences(case: all_cases.Case, xs: Sequence[np.ndarray], ts: Sequence[np.ndarray | None],
                ) -> tuple[list[np.ndarray], bool]:
    """Return central differences of ``evaluate`` along ``ts``, and whether they are only rough."""

    def at(step: float) -> list[np.ndarray]:
        moved = [x if t is None else wide(x) + step * wide(t) for x, t in zip(xs, ts)]
        moved = [wide(x) if any(t is not None for t in ts) else x for x in moved]
        with np.errstate(all="ignore"):
            return [np.asarray(o) for o in as_list(case.prim, case.prim.evaluate(*moved))]

    narrow = [o.dtype for o in at(0.0) if dtypes.real_dtype(o.dtype) != np.float64
              and dtypes.is_inexact(o.dtype)]
    # An output pinned to a narrow dtype rounds, so its differences need a longer step.
    rough = bool(narrow)
    step = max((ROUGH_STEP.get(d.name, 1e-2) for d in narrow), default=1e-6)
    return [(wide(a) - wide(b)) / (2 * step) if dtypes.is_inexact(a.dtype) else np.zeros(a.shape)
            for a, b in zip(at(step), at(-step))], rough


def check_jvp(case: all_cases.Case) -> None:
    """The jvp rule's tangent is the limit of differences; its primal output is the output."""
    data = Operands(case)
    for nonzero in moving(case):
        ts = [data.like(a) if nz else None for a, nz in zip(data.avals, nonzero)]
        if case.tangent is not None:
            ts = [t if t is None else case.tangent(t).astype(t.dtype) for t in ts]
        flat = [*data.arrays, *(t for t in ts if t is not None)]
        closed = staged(with_tangents(case, nonzero), flat)
        avals = typed(case, data.avals)
        for got, aval in zip(closed.out_avals[len(avals):], avals):
            assert got.strip_weak_type() == aval.to_tangent_aval().strip_weak_type()
        outs = on_numpy(closed, flat)
        want, rough = differences(case, data.arrays, ts)
        for g, w in zip(outs, reference(case, data.arrays)):
            close(g, w, w.dtype, case.tolerance, "primal output of jvp")
        for g, w, aval in zip(outs[len(avals):], want, avals):
            if dtypes.is_inexact(aval.dtype):
                tolerance = max(DERIVATIVE.get(aval.dtype.name, 0.2), *(
                    DERIVATIVE.get(s.dtype.name, 0.0) for s in case.specs), 3e-2 if rough else 0)
                close(g, w, aval.dtype, case.derivative_tolerance or tolerance,
                      f"tangent for operands {nonzero}")


# -- check: transpose ------------------------------------------------------------------------------


def inner(xs: Sequence[np.ndarray], ys: Sequence[np.ndarray]) -> float:
    """Return the real part of the sum of products, the pairing that transposition keeps."""
    return float(sum(np.sum(wide(x) * wide(y)).real for x, y in zip(xs, ys)
                     if dtypes.is_inexact(x.dtype)))


def check_transpose(case: all_cases.Case) -> None:
    """The derivative is linear, and pulling back is its transpose: <ct, J t> = <J' ct, t>."""
    if not case.reversible:
        return
    data = Operands(case)
    outs = typed(case, data.avals)
    cts = [data.like(a) if dtypes.is_inexact(a.dtype) else np.zeros(a.shape, dtypes.float0)
           for a in outs]
    for nonzero in moving(case):
        if not any(dtypes.is_inexact(a.dtype) for a in outs):
            continue
        n = len(data.arrays)
        ins = [a for a, nz in zip(data.avals, nonzero) if nz]
        first, second = ([data.like(a) for a in ins] for _ in range(2))

        def maps(*flat: Any, nonzero=nonzero, n=n, count=len(ins)) -> list[Any]:
            _, linear = linearize_flat(
                lambda *xs: as_list(case.prim, bind(case.prim, *xs)), flat[:n], nonzero)
            rest = iter(flat[n: n + count])
            forward = linear.forward([next(rest) if nz else None for nz in nonzero])
            some = [ct if dtypes.is_inexact(a.dtype) else None
                    for ct, a in zip(flat[n + count:], outs)]
            back = linear.backward(some)
            return [*forward, *(instantiate(ct, x) for ct, x, nz in zip(back, flat, nonzero) if nz)]

        closed = staged(maps, [*data.arrays, *first, *cts])
        for got, aval in zip(closed.out_avals[len(outs):], ins):
            assert got.strip_weak_type() == aval.strip_weak_type(), "cotangent of another type"

        def run(ts, closed=closed):
            got = on_numpy(closed, [*data.arrays, *ts, *cts])
            return got[: len(outs)], got[len(outs):]

        (jt, back), (ju, _) = run(first), run(second)
        worst = max(DERIVATIVE.get(a.dtype.name, 0.2) for a in (*ins, *outs)
                    if dtypes.is_inexact(a.dtype))
        size = sum(float(np.sum(np.abs(wide(x) * wide(y)))) for x, y in zip(cts, jt)
                   if dtypes.is_inexact(x.dtype))
        left, right = inner(cts, jt), inner(back, first)
        assert abs(left - right) <= worst * max(size, 1.0), (
            f"transpose for operands {nonzero}: <ct, J t> = {left}, <J' ct, t> = {right}")
        mixed = [(wide(a) + 2 * wide(b)).astype(a.dtype) for a, b in zip(first, second)]
        for got, a, b in zip(run(mixed)[0], jt, ju):
            if dtypes.is_inexact(got.dtype):
                close(got, wide(a) + 2 * wide(b), got.dtype, 4 * worst, "linearity")


# -- check: batch ----------------------------------------------------------------------------------


def combinations(case: all_cases.Case) -> list[tuple[int | None, ...]]:
    """Return batch axes to try: every axis of every combination of operands, at most a dozen."""
    options = [(None, *range(len(s.shape) + 1)) for s in case.specs]
    every = [c for c in itertools.islice(itertools.product(*options), 2000)
             if any(d is not None for d in c)]
    if len(every) <= MOST_COMBINATIONS:
        return every
    alone = [tuple(0 if i == j else None for i in range(len(options)))
             for j in range(len(options))]
    rng = np.random.default_rng(len(every))
    picked = rng.choice(len(every), MOST_COMBINATIONS - min(len(alone), 6), replace=False)
    return [*alone[:6], *(every[i] for i in picked)]


def on_stack(case: all_cases.Case, dims: Sequence[int | None], size: int) -> Callable:
    """Return the function of stacks to stacks of outputs, batch axis 0."""

    def mapped(*xs: Any) -> list[Any]:
        outs, out_dims = vmap_flat(
            lambda *args: as_list(case.prim, bind(case.prim, *args)), size, xs, dims)
        return [match_dim(x, d, 0, size) for x, d in zip(outs, out_dims)]

    return mapped


def check_batch(case: all_cases.Case) -> None:
    """On a stack, the batch rule gives what a Python loop gives, along every axis."""
    data = Operands(case)
    if not case.batchable or not case.specs:
        return
    for dims in combinations(case):
        stacks = data.stack(2, dims)
        closed = staged(on_stack(case, dims, 2), stacks)
        got = on_numpy(closed, stacks)
        loop = [reference(case, [x if d is None else np.take(x, i, d)
                                 for x, d in zip(stacks, dims)]) for i in range(2)]
        for number, g in enumerate(got):
            want = np.stack([outs[number] for outs in loop])
            close(g, want, want.dtype, case.tolerance, f"batch axes {dims}, output {number}")
    empty = tuple(0 for _ in case.specs)
    closed = staged(on_stack(case, empty, 0), data.stack(0, empty))
    for aval, one in zip(closed.out_avals, typed(case, data.avals)):
        assert aval.shape == (0, *one.shape)


# -- check: jvp and batch together -----------------------------------------------------------------


def check_commute(case: all_cases.Case) -> None:
    """Derivatives of a stack are the stack of derivatives, on NumPy and on XLA."""
    if not moving(case) or not case.batchable:
        return
    data = Operands(case)
    nonzero = moving(case)[-1]
    all_dims = tuple(0 for _ in case.specs)
    singles = [tuple(0 if i == j else None for i in range(len(case.specs)))
               for j in range(len(case.specs))] if len(case.specs) > 1 else []
    for dims in [*singles[:3], all_dims]:
        stacks = data.stack(2, dims)
        moves = [i for i, nz in enumerate(nonzero) if nz]
        ts = [operand(all_cases.Spec(stacks[i].shape, stacks[i].dtype, "any"), data.rng)
              for i in moves]
        flat_dims = [*dims, *(dims[i] for i in moves)]

        def map_of_jvp(*flat: Any, flat_dims=flat_dims) -> list[Any]:
            outs, out_dims = vmap_flat(with_tangents(case, nonzero), 2, flat, flat_dims)
            return [match_dim(x, d, 0, 2) if dtypes.is_inexact(x.dtype) else x
                    for x, d in zip(outs, out_dims)]

        def jvp_of_map(*flat: Any, dims=dims) -> list[Any]:
            xs, rest = flat[: len(dims)], iter(flat[len(dims):])
            tangents = [next(rest) if nz else None for nz in nonzero]
            outs, out_ts = jvp_flat(on_stack(case, dims, 2), xs, tangents)
            return [*outs, *(instantiate(t, o) for t, o in zip(out_ts, outs))]

        first = staged(map_of_jvp, [*stacks, *ts])
        second = staged(jvp_of_map, [*stacks, *ts])
        got = on_numpy(first, [*stacks, *ts])
        for g, w in zip(got, on_numpy(second, [*stacks, *ts]), strict=True):
            if dtypes.is_inexact(w.dtype):
                close(g, w, w.dtype, case.derivative_tolerance, f"vmap(jvp), jvp(vmap) at {dims}")
    real = [dtypes.is_inexact(x.dtype) for x in got]
    if case.settle is not None:
        return  # XLA may choose other signs, and tangents turn with them
    if not any(real) or any(s.dtype.name in ("bfloat16", "float16") for s in case.specs):
        return
    for x, w, inexact in zip(on_xla(first, [*stacks, *ts]), got, real):
        if inexact:
            tolerance = case.derivative_tolerance or 5 * TOLERANCE.get(w.dtype.name, 1e-2)
            close(x, w, w.dtype, max(tolerance, case.tolerance or 0), "vmap(jvp) on XLA")


# -- check: parameters -----------------------------------------------------------------------------

# For each parameter that is handed on, a value that no case has by itself.
OTHER_VALUES: dict[str, Any] = {
    "accuracy": maths.AccuracyMode.HIGHEST,
    "precision": (contract.Precision.HIGH, contract.Precision.HIGHEST),
    "unique_indices": True,
    "indices_are_sorted": True,
    "mode": windows.GatherScatterMode.CLIP,
    "is_stable": False,
}


def derived_programs(case: all_cases.Case) -> dict[str, ClosedJaxpr]:
    """Return the programs of the derivative, its transpose and the stack of a case, by name."""
    data = Operands(case)
    found = {}
    for nonzero in moving(case)[-1:]:  # all operands that can move, together
        ts = [data.like(a) for a, nz in zip(data.avals, nonzero) if nz]
        found["jvp"] = staged(with_tangents(case, nonzero), [*data.arrays, *ts])
        outs = typed(case, data.avals)
        if case.reversible and any(dtypes.is_inexact(a.dtype) for a in outs):
            cts = [data.like(a) if dtypes.is_inexact(a.dtype) else None for a in outs]
            found["transpose"] = staged(pulled_back(case, nonzero, cts), data.arrays)
    if case.batchable and case.specs:
        dims = [0] * len(case.specs)
        found["batch"] = staged(on_stack(case, dims, 2), data.stack(2, dims))
    return found


def pulled_back(case: all_cases.Case, nonzero: Sequence[bool], cts: Sequence[Any]) -> Callable:
    """Return the function of operands to their cotangents, those that are not zero."""

    def back(*xs: Any) -> list[Any]:
        _, linear = linearize_flat(
            lambda *args: as_list(case.prim, bind(case.prim, *args)), xs, nonzero)
        return [ct for ct in linear.backward(cts) if ct is not None]

    return back


def check_params(case: all_cases.Case) -> None:
    """What a parameter says of how to compute is said by every operation derived from it."""
    for name in case.prim.handed_on:
        if name not in case.prim.params:
            continue
        value = OTHER_VALUES[name]
        told = dataclasses.replace(case, prim=dataclasses.replace(case.prim, **{name: value}))
        for kind, program in derived_programs(told).items():
            for eqn in program.jaxpr.eqns:
                if name in eqn.operation.handed_on and name in eqn.operation.params:
                    got = eqn.operation.params[name]
                    reversed_too = isinstance(value, tuple) and got == value[::-1]
                    assert got == value or reversed_too, (
                        f"{kind}: {eqn.operation.name} has {name}={got}, not {value}")


CHECKS: dict[str, Callable[[all_cases.Case], None]] = {
    "typing": check_typing, "xla": check_xla, "jvp": check_jvp, "transpose": check_transpose,
    "batch": check_batch, "commute": check_commute,
    "params": check_params,
}


@functools.cache
def case_ids() -> dict[str, all_cases.Case]:
    """Return every case under a name that is its own."""
    named: dict[str, all_cases.Case] = {}
    for case in load_cases():
        base = re.sub(r" at 0x\w+|\s+", "", str(case))
        name, number = base, 1
        while name in named:
            number += 1
            name = f"{base}-{number}"
        named[name] = case
    return named
