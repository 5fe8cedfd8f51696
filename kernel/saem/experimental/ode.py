"""How does a state move that a differential equation drives?  (``jax.experimental.ode``)

``odeint`` follows dy/dt = func(y, t) by the Runge-Kutta pair of orders 5 and 4 of Dormand and
Prince, with Shampine's result of order 4: the difference of the two is the error of a step, by
which the next step's size is chosen; values between steps come from a polynomial of degree 4.  Its
derivative is another such equation, followed backwards (the continuous adjoint), so no step need be
kept.

Read before: ``loops.while_loop``, ``derivatives.custom_vjp``, ``flatten_util``.
Invariant: steps are chosen inside the program, so one program serves every equation of its shape.
Source: Dormand and Prince 1980, "A family of embedded Runge-Kutta formulae"; Shampine 1986, "Some
practical Runge-Kutta formulas" (the result of order 4); Hairer, Norsett and
Wanner 1993, "Solving Ordinary Differential Equations I", II.4 (step sizes, first step) and II.6
(values between steps); Chen, Rubanova, Bettencourt and Duvenaud 2018, "Neural Ordinary Differential
Equations" (the adjoint); the documentation of jax.experimental.ode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from saem import api_util as api_util  # found here by libraries (bijx)
from saem import lax, tree
from saem import numpy as jnp
from saem.core import dtypes, errors, lazy
from saem.core.avals import aval_of, is_array_like
from saem.core.frames import boundary
from saem.core.jaxpr import merge, pick
from saem.derivatives.closure_conversion import closure_convert
from saem.derivatives.custom_vjp import custom_vjp
from saem.flatten_util import ravel_pytree
from saem.transform.derivatives import vjp
from saem.transform.mapping import vmap

# The pair's tableau: when a stage is evaluated, of which stages it is made, the two results (order
# 5 less order 4 is the error), and by how much the value in the middle differs from a cubic's.
ALPHA = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0])
BETA = np.array([
    [1 / 5, 0, 0, 0, 0, 0, 0],
    [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
    [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
])
FIFTH = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0])
FOURTH = np.array(
    [1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60])
BETWEEN = np.array([
    -12715105075 / 11282082432, 0, 87487479700 / 32700410799, -10690763975 / 1880347072,
    701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423])
# Of the cubic through both ends with their slopes, plus what the stages know of the middle.
MIDDLE = FIFTH / 2 + np.array([1 / 8, 0, 0, 0, 0, 0, -1 / 8]) + BETWEEN / 16


def abs2(x: Any) -> Any:
    """Return the squared magnitude."""
    return x.real**2 + x.imag**2 if jnp.iscomplexobj(x) else x**2


def norm(x: Any) -> Any:
    """Return the Euclidean length of a vector."""
    return jnp.sqrt(jnp.sum(abs2(x)))


def ravel_first_arg(f: Callable, unravel: Callable, debug_info: Any) -> Callable:
    """Return ``f`` with its first argument and its result as vectors.

    ``unravel`` makes the argument of a vector, as ``ravel_pytree`` returns it; ``debug_info`` is
    not read.

    >>> flat, unravel = ravel_pytree({"y": jnp.ones(2)})
    >>> ravel_first_arg(lambda state, t: {"y": t * state["y"]}, unravel, None)(flat, 3.)
    Array([3., 3.], dtype=float32)
    """
    return lambda vector, *args: ravel_pytree(f(unravel(vector), *args))[0]


def weighted(coefficients: np.ndarray, k: Any) -> Any:
    """Return the sum of the stages ``k`` with constant weights."""
    return jnp.dot(jnp.asarray(coefficients, k.dtype), k, precision="highest")


def runge_kutta_step(func: Callable, y0: Any, f0: Any, t0: Any, dt: Any) -> tuple:
    """Return the state after a step of size ``dt``, its slope, the error and the seven stages."""
    k = jnp.zeros((7, *f0.shape), f0.dtype).at[0].set(f0)

    def stage(i: Any, k: Any) -> Any:
        ti = t0 + dt * jnp.asarray(ALPHA, jnp.result_type(dt))[i - 1]
        row = jnp.asarray(BETA, f0.dtype)[i - 1]
        yi = y0 + dt.astype(f0.dtype) * jnp.dot(row, k, precision="highest")
        return k.at[i].set(func(yi, ti))

    k = lax.fori_loop(1, 7, stage, k)
    step = dt.astype(f0.dtype)
    y1 = step * weighted(FIFTH, k) + y0
    return y1, k[-1], step * weighted(FIFTH - FOURTH, k), k


def fit_4th_order_polynomial(y0: Any, y1: Any, y_mid: Any, dy0: Any, dy1: Any, dt: Any) -> tuple:
    """Return the coefficients, the highest first, of the polynomial on 0..1 with these values at 0,
    1 and 1/2, and these slopes (with respect to time) at 0 and 1.
    """
    dt = dt.astype(y0.dtype)
    # What its middle has beyond the cubic of the ends, spread as 16 x^2 (1 - x)^2.
    more = 16 * (y_mid - (y0 + y1) / 2 - dt * (dy0 - dy1) / 8)
    d0, d1, rise = dt * dy0, dt * dy1, y1 - y0
    return (more, d0 + d1 - 2 * rise - 2 * more, 3 * rise - 2 * d0 - d1 + more, d0, y0)


def interp_fit_dopri(y0: Any, y1: Any, k: Any, dt: Any) -> Any:
    """Return the polynomial of a step: coefficients along the first axis, the highest first."""
    y_mid = y0 + dt.astype(y0.dtype) * weighted(MIDDLE, k)
    return jnp.asarray(fit_4th_order_polynomial(y0, y1, y_mid, k[0], k[-1], dt))


def initial_step_size(fun: Callable, t0: Any, y0: Any, order: int, rtol: float, atol: float,
                      f0: Any) -> Any:
    """Return a first step over which a method of this order should keep the tolerances."""
    dtype = y0.dtype
    scale = atol + jnp.abs(y0) * rtol
    d0 = norm(y0 / scale.astype(dtype))
    d1 = norm(f0 / scale.astype(dtype))
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
    f1 = fun(y0 + h0.astype(dtype) * f0, t0 + h0)
    d2 = norm((f1 - f0) / scale.astype(dtype)) / h0
    most = jnp.maximum(d1, d2)
    h1 = jnp.where(most <= 1e-15, jnp.maximum(1e-6, h0 * 1e-3),
                   (0.01 / most) ** (1.0 / (order + 1.0)))
    return jnp.minimum(100.0 * h0, h1)


def mean_error_ratio(error_estimate: Any, rtol: float, atol: float, y0: Any, y1: Any) -> Any:
    """Return the error of a step against what is tolerated: at most 1 if it may stand."""
    tolerated = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    ratio = error_estimate / tolerated.astype(error_estimate.dtype)
    return jnp.sqrt(jnp.mean(abs2(ratio)))


def optimal_step_size(last_step: Any, mean_error_ratio: Any, safety: float = 0.9,
                      ifactor: float = 10.0, dfactor: float = 0.2, order: float = 5.0) -> Any:
    """Return the size of the next step, between ``dfactor`` and ``ifactor`` times the last one.

    After a step that stands it is not smaller.
    """
    dfactor = jnp.where(mean_error_ratio < 1, 1.0, dfactor)
    factor = jnp.minimum(
        ifactor, jnp.maximum(mean_error_ratio ** (-1.0 / order) * safety, dfactor))
    return jnp.where(mean_error_ratio == 0, last_step * ifactor, last_step * factor)


@boundary
def odeint(func: Callable, y0: Any, t: Any, *args: Any, rtol: float = 1.4e-8, atol: float = 1.4e-8,
           mxstep: float = np.inf, hmax: float = np.inf) -> Any:
    """Return the states at times ``t`` that ``func(y, t, *args)``, their slope, makes of ``y0``.

    ``y0`` is a pytree of floats, the result one whose leaves have a first axis as long as ``t``,
    which increases.  The error of a step is kept below ``atol + rtol * |y|``; at most ``mxstep``
    steps of at most ``hmax`` lead from one time to the next.  Reverse mode differentiates it with
    respect to ``y0``, ``t``, ``args`` and what ``func`` closes over.

    Raises: TypeError if ``args`` hold a non-array, or ``t`` no floats.
    """
    for arg in tree.leaves(args):
        if not is_array_like(arg):
            raise errors.explained(
                errors.ArgumentTypeError, "odeint.C1",
                f"The contents of odeint *args must be arrays or scalars, but got {arg}.",
                advice="Close over what is no array: lambda y, t: func(y, t, thing).")
    t = jnp.asarray(t)
    if not dtypes.is_float(aval_of(t).dtype):
        raise errors.explained(
            errors.ArgumentTypeError, "odeint.C2",
            f"t must be an array of floats, but got {t}.", advice="Write t.astype(float).")
    converted, closed_over = closure_convert(func, y0, t[0], *args)
    flat, unravel = ravel_pytree(y0)
    if not dtypes.is_inexact(flat.dtype):
        raise errors.explained(
            errors.ArgumentTypeError, "odeint.C3",
            f"y0 must hold floats, since its slope does, but got {flat.dtype.name}.",
            advice="Write 1.0 for 1, or y0.astype(float).")

    def flat_func(y: Any, t: Any, *args: Any) -> Any:
        return ravel_pytree(converted(unravel(y), t, *args))[0]

    # What has no derivative is closed over.
    leaves, structure = tree.flatten((*args, *closed_over))
    moving = [dtypes.is_inexact(aval_of(leaf).dtype) for leaf in leaves]
    fixed = pick(leaves, moving, False)

    def of_moving(y: Any, t: Any, fixed: Any, *given: Any) -> Any:
        return flat_func(y, t, *structure.unflatten(merge(moving, given, fixed)))

    options = (float(rtol), float(atol), float(mxstep), float(hmax))
    out = _odeint(of_moving, options, flat, t, fixed,
                  pick(leaves, moving))
    return vmap(unravel)(out)


def steps_to(func: Callable, options: tuple, carry: tuple, target: Any) -> tuple[tuple, Any]:
    """Take steps from where ``carry`` stands until ``target`` is passed; returns the state there.

    The carry is [y, f, t, dt, start of the last step, its polynomial].
    """
    rtol, atol, mxstep, hmax = options

    def goes_on(state: tuple) -> Any:
        count, _, _, t, dt, _, _ = state
        return (t < target) & (count < mxstep) & (dt > 0)

    def step(state: tuple) -> tuple:
        count, y, f, t, dt, last, polynomial = state
        y1, f1, error, k = runge_kutta_step(func, y, f, t, dt)
        ratio = mean_error_ratio(error, rtol, atol, y, y1).astype(dt.dtype)
        stands = ratio <= 1.0
        new = y1, f1, t + dt, t, interp_fit_dopri(y, y1, k, dt)
        y, f, t, last, polynomial = (
            jnp.where(stands, n, o) for n, o in zip(new, (y, f, t, last, polynomial)))
        dt = jnp.clip(optimal_step_size(dt, ratio), 0.0, hmax).astype(dt.dtype)
        return count + 1, y, f, t, dt, last, polynomial

    _, *carry = lax.while_loop(goes_on, step, (0, *carry))
    y, _, t, _, last, polynomial = carry
    part = ((target - last) / (t - last)).astype(y.dtype)
    # Where no step was needed there is no polynomial; where no step could be taken, NaN.
    return tuple(carry), jnp.where(t == target, y, jnp.polyval(polynomial, part))


def states(func: Callable, options: tuple, y0: Any, ts: Any, fixed: Any, moving: Any) -> Any:
    """Return the flat states at ``ts``, the first of them being ``y0``."""
    slope = lambda y, t: func(y, t, fixed, *moving)
    f0 = slope(y0, ts[0])
    dt = jnp.clip(initial_step_size(slope, ts[0], y0, 4, options[0], options[1], f0), 0.0,
                  options[3]).astype(ts.dtype)
    start = (y0, f0, ts[0], dt, ts[0], jnp.stack([y0] * 5))
    _, ys = lax.scan(functools.partial(steps_to, slope, options), start, ts[1:])
    return jnp.concatenate([y0[None], ys])


@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _odeint(func: Callable, options: tuple, y0: Any, ts: Any, fixed: Any, moving: Any) -> Any:
    return states(func, options, y0, ts, fixed, moving)


def _forward(func: Callable, options: tuple, y0: Any, ts: Any, fixed: Any, moving: Any) -> tuple:
    ys = _odeint(func, options, y0, ts, fixed, moving)  # whose derivative is known in turn
    return ys, (ys, ts, fixed, moving)


def _backward(func: Callable, options: tuple, kept: tuple, cts: Any) -> tuple:
    """Follow the adjoint from the last time to the first.

    At each time the cotangent of the state there is added to that of the state.  The adjoint is
    such an equation itself, so its derivative is found in the same way.
    """
    ys, ts, fixed, moving = kept

    def reversed_slope(joint: tuple, t: Any, fixed: Any, moving: Any) -> tuple:
        y, ct, *_ = joint
        slope, pull = vjp(lambda y, t, m: func(y, t, fixed, *m), y, -t, moving)
        ct_y, ct_t, ct_moving = pull(ct)
        return -slope, ct_y, ct_t, ct_moving

    def back(carry: tuple, row: tuple) -> tuple[tuple, Any]:
        ct, ct_t0, ct_moving = carry
        y, t, before, ct_here, ct_before = row
        ct_t = jnp.vdot(func(y, t, fixed, *moving), ct_here).real.astype(ts.dtype)
        joint, unravel = ravel_pytree((y, ct, ct_t0 - ct_t, ct_moving))
        flat = lambda v, t, fixed, *moving: ravel_pytree(
            reversed_slope(unravel(v), t, fixed, moving))[0]
        out = _odeint(flat, options, joint, jnp.stack([-t, -before]), fixed, list(moving))
        _, ct, ct_t0, ct_moving = unravel(out[1])
        return (ct + ct_before, ct_t0, ct_moving), ct_t

    zeros = jnp.zeros((), ts.dtype), tree.map_(jnp.zeros_like, moving)
    rows = ys[1:], ts[1:], ts[:-1], cts[1:], cts[:-1]
    (ct, ct_t0, ct_moving), ct_ts = lax.scan(back, (cts[-1], *zeros), rows, reverse=True)
    return ct, jnp.concatenate([ct_t0[None], ct_ts]), None, ct_moving


_odeint.defvjp(_forward, _backward)

__getattr__ = lazy.says_what_is_left_out(__name__)

__all__ = [
    "abs2", "fit_4th_order_polynomial", "initial_step_size", "interp_fit_dopri",
    "mean_error_ratio", "odeint", "optimal_step_size", "runge_kutta_step",
]
