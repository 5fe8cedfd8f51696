"""Are the derivatives of a function those of the function?

``check_grads`` compares jvp and vjp with central differences along one random direction, and their
own derivatives likewise, up to an order.

Read before: ``saem.transform.derivatives``.
Invariant: the points, the directions and the tolerances are those of JAX, so that what its users'
tests hold to holds here (tests/kernel/test_custom_closure.py).
Source: the documentation of jax.test_util, and what it calls a function with.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from saem.core import dtypes, errors, tree
from saem.core.avals import aval_of
from saem.transform.derivatives import jvp, vjp

# One tolerance, one for each dtype, or None: the usual one of the dtype.
Tolerance = float | Mapping[Any, float] | None

# By the bits of the real dtype: how far apart derivative and differences may be, relative to their
# size and absolutely, for one number (for an array that many times as much: differences of float32
# are noisy, and tests are written for what JAX allows); and the step of the differences.  It is
# JAX's, 1e-4, for dtypes that resolve it; in the others JAX compares with noise.
_TOLERANCE = {8: 1e-1, 16: 1e-1, 32: 2e-3, 64: 1e-5}
_STEP = {8: 0.5, 16: 0.1, 32: 1e-4, 64: 1e-4}


def check_grads(f: Callable, args: Sequence[Any], order: int,
                modes: Sequence[str] = ("fwd", "rev"), atol: Tolerance = None,
                rtol: Tolerance = None, eps: float | None = None) -> None:
    """Check derivatives of ``f`` at ``args`` up to ``order``, in forward and reverse mode.

    Raises: AssertionError naming the mode and order that disagrees with differences; TypeError for
    arguments of which no derivative moves any.
    """
    if not any(map(_moves, tree.leaves(tuple(args)))):
        raise errors.explained(
            errors.ArgumentTypeError, "check_grads.dtype",
            "check_grads needs a floating point or complex argument, got "
            f"{', '.join([_dtype(x).name for x in tree.leaves(tuple(args))]) or 'none'}.",
            advice="Convert one: check_grads(f, (x.astype(jnp.float32),), order=1).")
    _check(f, tuple(args), order, tuple(modes), atol, rtol, eps, "")


def _check(f: Callable, args: tuple, order: int, modes: tuple[str, ...], atol: Tolerance,
           rtol: Tolerance, eps: float | None, of: str) -> None:
    if "fwd" in modes:
        message = f"JVP{of}"
        pushed = functools.partial(jvp, f)
        check_jvp(f, pushed, args, atol, rtol, eps, message)
        if order > 1:
            tangents = tuple(tree.map_(_own_tangent, args))
            _check(pushed, (args, tangents), order - 1, modes, atol, rtol, eps, f" of {message}")
    if "rev" in modes:
        message = f"VJP{of}"
        check_vjp(f, functools.partial(vjp, f), args, atol, rtol, eps, message)
        if order > 1:
            def pulled(*primals: Any) -> Any:
                out, pullback = vjp(f, *primals)
                return pullback(tree.map_(_own_tangent, out))

            _check(pulled, args, order - 1, modes, atol, rtol, eps, f" of {message}")


def _own_tangent(x: Any) -> Any:
    """Return ``x`` as a tangent of itself: second derivatives are taken along the point."""
    return x if _moves(x) else _zero(x)


def check_jvp(f: Callable, f_jvp: Callable, args: Sequence[Any], atol: Tolerance = None,
              rtol: Tolerance = None, eps: float | None = None, err_msg: str = "") -> None:
    """Check ``f_jvp(primals, tangents)`` against differences of ``f`` at ``args``.

    Raises: AssertionError if they are apart.
    """
    args = tuple(args)
    tangents, = _directions(args)
    out, out_tangent = f_jvp(args, tangents)
    _compare(out, f(*args), atol, rtol, f"{err_msg} primal")
    moved = differences(f, args, tangents, out, eps)
    _compare(out_tangent, moved, atol, rtol, f"{err_msg} tangent")


def check_vjp(f: Callable, f_vjp: Callable, args: Sequence[Any], atol: Tolerance = None,
              rtol: Tolerance = None, eps: float | None = None, err_msg: str = "") -> None:
    """Check ``f_vjp(*args)`` against differences: ct applied to J v is v applied to the pullback.

    Raises: AssertionError if they are apart.
    """
    args = tuple(args)
    out, pullback = f_vjp(*args)
    _compare(out, f(*args), atol, rtol, f"{err_msg} primal")
    tangents, ct = _directions(args, out)
    moved = differences(f, args, tangents, out, eps)
    pulled = tree.map_(_conjugate, pullback(tree.map_(_conjugate, ct)))
    _compare(_inner(tangents, pulled), _inner(moved, ct), atol, rtol,
             f"{err_msg} cotangent projection", of=(args, out))


def differences(f: Callable, args: tuple, tangents: tuple, out: Any, eps: float | None = None
                ) -> Any:
    """Return the central difference of ``f``, which gives ``out``, at ``args`` along ``tangents``.
    """
    step = eps or max(_STEP[_bits(x)] for x in [*tree.leaves((args, out)), np.float32(0)])

    def at(sign: int) -> Any:
        return f(*tree.map_(lambda x, t: _moved(x, t, sign * step), args, tangents))

    return tree.map_(
        lambda a, b: (_wide(a) - _wide(b)) / (2 * step) if _moves(a) else _zero(a), at(1), at(-1))


def _moved(x: Any, tangent: Any, step: float) -> Any:
    if not _moves(x):
        return x
    return np.asarray(_wide(x) + step * _wide(tangent)).astype(_dtype(x))


def _directions(*values: Any) -> tuple:
    """Return random tangents of ``values``, drawn in turn: always the same for the same shapes."""
    rng = np.random.RandomState(0)

    def direction(x: Any) -> Any:
        shape, dtype = np.shape(x), _dtype(x)
        if not _moves(x):
            return _zero(x)
        drawn = rng.standard_normal(shape)
        if dtypes.scalar_kind(dtype) == "complex":
            drawn = drawn + 1j * rng.standard_normal(shape)
        return np.asarray(drawn).astype(dtype)

    return tuple(tree.map_(direction, value) for value in values)


def _dtype(x: Any) -> Any:
    own = getattr(x, "dtype", None)
    return own if own == dtypes.float0 else aval_of(x).dtype


def _moves(x: Any) -> bool:
    dtype = _dtype(x)
    return dtype != dtypes.float0 and dtypes.is_inexact(dtype)


def _zero(x: Any) -> np.ndarray:
    return np.zeros(np.shape(x), dtypes.float0)


def _wide(x: Any) -> np.ndarray:
    kind = dtypes.scalar_kind(_dtype(x))
    return np.asarray(x).astype(np.complex128 if kind == "complex" else np.float64)


def _bits(x: Any) -> int:
    return ml_dtypes.finfo(_dtype(x)).bits if _moves(x) else 64


def _conjugate(x: Any) -> Any:
    return np.conj(x) if _moves(x) else x


def _inner(xs: Any, ys: Any) -> np.ndarray:
    """Return the real part of the inner product, in the real dtype of the numbers."""
    pairs = [(x, y) for x, y in zip(tree.leaves(xs), tree.leaves(ys)) if _moves(y)]
    total = sum(np.sum(_wide(x).conj() * _wide(y)).real for x, y in pairs)
    dtype = np.result_type(*[_dtype(y) for _, y in pairs]) if pairs else np.float64
    return np.asarray(total).astype(np.real(np.empty(0, dtype)).dtype)


def _compare(got: Any, wanted: Any, atol: Tolerance, rtol: Tolerance, message: str,
             of: Any = None) -> None:
    assert tree.structure(got) == tree.structure(wanted), f"{message}: structures differ"
    for g, w in zip(tree.leaves(got), tree.leaves(wanted)):
        if not _moves(g):
            continue
        usual = max(_TOLERANCE[_bits(x)] for x in tree.leaves(of) or [g])
        np.testing.assert_allclose(
            _wide(g), _wide(w), atol=_chosen(atol, g, usual), rtol=_chosen(rtol, g, usual),
            err_msg=message)


def _chosen(given: Tolerance, value: Any, usual: float) -> float:
    """Return the tolerance for ``value``: one for all, that of its dtype, or the usual one."""
    if isinstance(given, Mapping):
        given = {np.dtype(kind): size for kind, size in given.items()}.get(_dtype(value))
    return (usual if given is None else given) * np.size(value)
