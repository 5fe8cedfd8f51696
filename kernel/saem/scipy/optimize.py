"""Where is a function of many numbers smallest?

The public namespace ``jax.scipy.optimize``: quasi-Newton methods, which build up second derivatives
from gradients. BFGS keeps an inverse Hessian, L-BFGS the last few steps.

Read before: ``saem.numpy``, ``loops``.
Invariant: each step satisfies the strong Wolfe conditions, or the result has the failure
(tests/kernel/scipy/test_optimize.py).
Source: Nocedal and Wright 2006, "Numerical Optimization", algorithms 3.5 and 3.6 (line search), 6.1
(BFGS), 7.4 (L-BFGS).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import errors
from saem.core.dtypes import finfo
from saem.transform.derivatives import value_and_grad
from saem.typing import Array

__all__ = ["OptimizeResults", "minimize"]

# How a search stands: those of ``OptimizeResults``, -1 before its end, and 4 if a step hardly made
# the function smaller (``ftol``), which is a success.
RUNNING, SUCCESS, MANY_STEPS, MANY_CALLS, NO_ZOOM, FLAT, NO_STEP = range(-1, 6)
SUFFICIENT_DECREASE, CURVATURE = 1e-4, 0.9  # c1 and c2 of the Wolfe conditions
HISTORY = 10


class OptimizeResults(NamedTuple):
    """The place found, and how the search went.

    x: [n].  success: whether the gradient became small.  status: 0 for success, 1 for too many
    steps, 2 for too many calls, 3 for a zoom and 5 for a line search without result.  fun, jac:
    value and gradient at x.  hess_inv: [n, n] or None.  nfev, njev, nit: numbers of calls, of
    gradients and of steps.
    """

    x: Array
    success: bool | Array
    status: int | Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: int | Array
    njev: int | Array
    nit: int | Array


# -- line search -----------------------------------------------------------------------------------


class Point(NamedTuple):
    """A step along a line: its length, the value there, its slope along the line, its gradient."""

    a: Array
    f: Array
    slope: Array
    g: Array


class Search(NamedTuple):
    """The state of a line search.

    The bracket [low, high] holds steps that satisfy the conditions, once ``zooming``.
    """

    low: Point
    high: Point
    found: Point
    done: Array
    failed: Array
    zooming: Array
    calls: Array


def _choose(condition: Array, yes: Any, no: Any) -> Any:
    return type(yes)(*(jnp.where(condition, a, b) for a, b in zip(yes, no)))


def _interpolated(low: Point, high: Point) -> Array:
    """Return the minimum of the cubic through both ends, kept away from them."""
    width = high.a - low.a
    d1 = low.slope + high.slope - 3 * (high.f - low.f) / jnp.where(width == 0, 1, width)
    root = d1 * d1 - low.slope * high.slope
    d2 = jnp.sign(width) * jnp.sqrt(jnp.maximum(root, 0))
    bottom = high.slope - low.slope + 2 * d2
    cubic = high.a - width * (high.slope + d2 - d1) / jnp.where(bottom == 0, 1, bottom)
    left, right = jnp.minimum(low.a, high.a), jnp.maximum(low.a, high.a)
    margin = 0.1 * (right - left)
    usable = jnp.isfinite(cubic) & (root >= 0) & (bottom != 0) & (cubic > left + margin) & (
        cubic < right - margin)
    return jnp.where(usable, cubic, (low.a + high.a) / 2)


def line_search(at: Callable[[Array], Point], start: Point, first: Array, maxiter: int) -> Search:
    """Return a search for a step that satisfies the strong Wolfe conditions.

    ``at`` evaluates a step; ``start`` is the step 0, ``first`` the length to try first.
    """
    # Near the minimum values differ by rounding alone, and the slope decides.
    noise = 2 * float(finfo(start.f.dtype).eps) * jnp.abs(start.f)

    def unfinished(s: Search) -> Array:
        return ~s.done & ~s.failed

    def step(s: Search) -> Search:
        # While no bracket is known the step doubles; then it is interpolated inside.
        a = jnp.where(s.zooming, _interpolated(s.low, s.high),
                      jnp.where(s.calls == 0, first, 2 * s.low.a))
        p = at(a)
        armijo = p.f <= start.f + SUFFICIENT_DECREASE * a * start.slope + noise
        flat = jnp.abs(p.slope) <= -CURVATURE * start.slope
        bad = ~armijo | (p.f >= s.low.f + noise) & ((s.calls > 0) | s.zooming) | ~jnp.isfinite(p.f)
        done = ~bad & flat
        rising = p.slope * jnp.where(s.zooming, s.high.a - s.low.a, 1) >= 0
        # A bad point bounds the bracket; a good one is its better end.
        low = _choose(bad, s.low, p)
        high = _choose(bad, p, _choose(rising, s.low, s.high))
        zooming = s.zooming | bad | rising
        tight = zooming & (jnp.abs(high.a - low.a) <= 1e-12 * jnp.maximum(jnp.abs(low.a), 1e-8))
        calls = s.calls + 1
        failed = ~done & ((calls >= maxiter) | tight)
        return Search(low, high, _choose(done, p, s.found), done, failed, zooming, calls)

    false = jnp.asarray(False)
    out = lax.while_loop(unfinished, step, Search(
        start, start, start, false, false, false, jnp.asarray(0)))
    # Without a step that satisfies both conditions, take the best that decreases the function.
    return out._replace(found=_choose(out.done, out.found, out.low))


# -- quasi-Newton methods --------------------------------------------------------------------------


class State(NamedTuple):
    """The state of a method after ``k`` steps; ``memory`` approximates second derivatives."""

    x: Array
    f: Array
    g: Array
    f_before: Array
    memory: Any
    k: Array
    calls: Array
    status: Array


def _descend(fun: Callable, x0: Array, maxiter: int, gtol: float, norm: Any, ls_maxiter: int,
             memory: Any, direction: Callable, update: Callable, ftol: float = 0.0,
             maxfun: float = np.inf) -> OptimizeResults:
    """Return where the search ends that steps along ``direction(memory, gradient)``.

    After each step ``update(memory, step, change of the gradient)`` gives the next ``memory``, the
    last of which is returned as ``hess_inv``.
    """
    both = value_and_grad(fun)

    def small(g: Array) -> Array:
        return jnp.linalg.norm(g, ord=norm) < gtol

    def unfinished(s: State) -> Array:
        return (s.status == RUNNING) & ~small(s.g) & (s.k < maxiter) & (s.calls < maxfun)

    def step(s: State) -> State:
        p = direction(s.memory, s.g)

        def at(a: Array) -> Point:
            f, g = both(s.x + a * p)
            return Point(a, f, jnp.real(jnp.vdot(g, p)), g)

        slope = jnp.real(jnp.vdot(s.g, p))
        first = _first_length(s, slope)
        start = Point(jnp.zeros_like(first), s.f, slope.astype(s.f.dtype), s.g)
        search = line_search(at, start, first, ls_maxiter)
        new = search.found
        moved = new.a * p
        memory = update(s.memory, moved, new.g - s.g)
        stalled = search.failed & ~(new.f < s.f)
        still = ftol * jnp.maximum(jnp.maximum(jnp.abs(s.f), jnp.abs(new.f)), 1) >= s.f - new.f
        ended = (ftol > 0) & ~stalled & still
        status = jnp.where(stalled, jnp.where(search.zooming, NO_ZOOM, NO_STEP),
                           jnp.where(ended, FLAT, RUNNING))
        return State(s.x + moved, new.f, new.g, s.f, memory, s.k + 1, s.calls + search.calls,
                     status)

    f, g = both(x0)
    state = State(x0, f, g, f + jnp.linalg.norm(g) / 2, memory, jnp.asarray(0), jnp.asarray(1),
                  jnp.asarray(RUNNING))
    out = lax.while_loop(unfinished, step, state)
    return _result(out, small(out.g), maxfun)


def _result(out: State, small: Array, maxfun: float) -> OptimizeResults:
    """Return what the last state says; ``small`` is whether its gradient is."""
    limit = jnp.where(out.calls >= maxfun, MANY_CALLS, MANY_STEPS)
    status = jnp.where(small | (out.status == FLAT), SUCCESS,
                       jnp.where(out.status == RUNNING, limit, out.status))
    return OptimizeResults(out.x, status == SUCCESS, status, out.f, out.g, out.memory, out.calls,
                           out.calls, out.k)


def _first_length(s: State, slope: Array) -> Array:
    """Return the step to try first: as long as the last decrease suggests, at most 1."""
    guess = 1.01 * 2 * (s.f - s.f_before) / jnp.where(slope == 0, 1, slope)
    return jnp.where((guess > 0) & (guess < 1), guess, 1.0).astype(s.f.dtype)


def _bfgs(fun: Callable, x0: Array, maxiter: int | None = None, norm: Any = np.inf,
          gtol: float = 1e-5, line_search_maxiter: int = 10) -> OptimizeResults:
    n = x0.size

    def update(H: Array, s: Array, y: Array) -> Array:
        curvature = jnp.vdot(y, s)
        usable = curvature > 0
        rho = 1 / jnp.where(usable, curvature, 1)
        left = jnp.eye(n, dtype=H.dtype) - rho * jnp.outer(s, y)
        new = left @ H @ left.T + rho * jnp.outer(s, s)
        return jnp.where(usable & jnp.all(jnp.isfinite(new)), new, H)

    return _descend(fun, x0, n * 200 if maxiter is None else maxiter, gtol, norm,
                    line_search_maxiter, jnp.eye(n, dtype=x0.dtype), lambda H, g: -(H @ g), update)


def _lbfgs(fun: Callable, x0: Array, maxiter: float | None = None, norm: Any = np.inf,
           maxcor: int = HISTORY, ftol: float = 2.220446049250313e-09, gtol: float = 1e-05,
           maxfun: float | None = None, maxls: int = 20) -> OptimizeResults:
    n = x0.size
    rows = jnp.zeros((maxcor, n), x0.dtype)
    memory = (rows, rows, jnp.zeros(maxcor, x0.dtype))  # steps, changes of gradient, 1 / products

    def direction(memory: Any, g: Array) -> Array:
        steps, changes, rhos = memory
        alphas, q = jnp.zeros(maxcor, g.dtype), g
        for i in range(maxcor - 1, -1, -1):  # the newest is last; unused rows are 0
            alpha = rhos[i] * jnp.vdot(steps[i], q)
            alphas, q = alphas.at[i].set(alpha), q - alpha * changes[i]
        length = jnp.vdot(changes[-1], changes[-1])
        scale = jnp.where(length > 0, jnp.vdot(steps[-1], changes[-1]) / jnp.where(
            length > 0, length, 1), 1)
        q = scale * q
        for i in range(maxcor):
            q = q + (alphas[i] - rhos[i] * jnp.vdot(changes[i], q)) * steps[i]
        return -q

    def update(memory: Any, s: Array, y: Array) -> Any:
        curvature = jnp.vdot(y, s)
        usable = curvature > 0
        rho = 1 / jnp.where(usable, curvature, 1)
        pushed = [jnp.concatenate([old[1:], jnp.asarray(new)[None]])
                  for old, new in zip(memory, (s, y, rho))]
        return tuple(jnp.where(usable, new, old) for new, old in zip(pushed, memory))

    limit = n * 200 if maxiter is None else maxiter
    out = _descend(fun, x0, limit, gtol, norm, maxls, memory, direction, update, ftol,
                   n * 20000 if maxfun is None else maxfun)
    return out._replace(hess_inv=None)


METHODS: dict[str, Callable[..., OptimizeResults]] = {
    "bfgs": _bfgs, "l-bfgs-experimental-do-not-rely-on-this": _lbfgs}


def minimize(fun: Callable, x0: Array, args: tuple = (), *, method: str, tol: float | None = None,
             options: Mapping[str, Any] | None = None) -> OptimizeResults:
    """Return where ``fun(x, *args)`` is smallest, searching from ``x0`` [n].

    method: 'BFGS', or 'l-bfgs-experimental-do-not-rely-on-this'.
    tol: the size of the gradient at which the search ends, 1e-5 if None.
    options: maxiter, norm, gtol, line_search_maxiter (BFGS); maxiter, norm, maxcor, ftol, gtol,
    maxfun, maxls (L-BFGS).
    Raises: ValueError for another method; TypeError for ``args`` that are no tuple, or a function
    whose value is no scalar.

    >>> minimize(lambda x: jnp.sum((x - 1) ** 2), jnp.zeros(2), method='BFGS').x
    Array([1., 1.], dtype=float32)
    """
    options = dict(options or {})
    if not isinstance(args, tuple):
        raise errors.explained(
            errors.ArgumentTypeError, "minimize.args",
            f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}",
            advice="For one argument write (value,).")
    x0 = jnp.asarray(x0)
    if x0.ndim != 1:
        raise errors.explained(
            errors.ArgumentTypeError, "minimize.x0", f"x0 must be a vector, got shape {x0.shape}",
            advice="Ravel it, and reshape x inside of the function.")
    if method.lower() not in METHODS:
        raise errors.explained(errors.ArgumentError, "minimize.method",
                               f"Method {method} not recognized",
                               advice=f"Use one of {', '.join(METHODS)}.")
    if tol is not None:
        options.setdefault("gtol", tol)
    if not jnp.issubdtype(x0.dtype, jnp.inexact):
        x0 = x0.astype(float)
    return METHODS[method.lower()](lambda x: fun(x, *args), x0, **options)
