"""Are the derivatives of a function those of the function?

``check_grads`` compares jvp and vjp with central differences along one random direction, and their
own derivatives likewise, up to an order.

Read before: ``saem.transform.derivatives``.
Invariant: the directions are the same in every run, so a failure repeats.
Source: the documentation of jax.test_util.
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
# size and absolutely, and the step of the differences.  It is JAX's, 1e-4, for dtypes that resolve
# it; in the others JAX compares with noise.
_TOLERANCE = {8: 1e-1, 16: 5e-2, 32: 2e-3, 64: 1e-5}
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
           rtol: Tolerance, eps: float | None, path: str) -> None:
    if "fwd" in modes:
        message = f"jvp of f{path}" if path else "jvp of f"
        check_jvp(f, functools.partial(jvp, f), args, atol, rtol, eps, message)
        if order > 1:
            def pushed(*primals: Any) -> Any:
                return jvp(f, primals, _directions(primals, 2 + path.count(".")))

            _check(pushed, args, order - 1, modes, atol, rtol, eps, f"{path}.jvp")
    if "rev" in modes:
        message = f"vjp of f{path}" if path else "vjp of f"
        check_vjp(f, functools.partial(vjp, f), args, atol, rtol, eps, message)
        if order > 1:
            def pulled(*primals: Any) -> Any:
                out, pullback = vjp(f, *primals)
                return out, pullback(_directions(out, 2 + path.count(".")))

            _check(pulled, args, order - 1, modes, atol, rtol, eps, f"{path}.vjp")


def check_jvp(f: Callable, f_jvp: Callable, args: Sequence[Any], atol: Tolerance = None,
              rtol: Tolerance = None, eps: float | None = None, err_msg: str = "") -> None:
    """Check ``f_jvp(primals, tangents)`` against differences of ``f`` at ``args``.

    Raises: AssertionError if they are apart.
    """
    args = tuple(args)
    tangents = _directions(args)
    out, out_tangent = f_jvp(args, tangents)
    _compare(out, f(*args), atol, rtol, f"{err_msg}: primal output")
    moved = differences(f, args, tangents, out, eps)
    _compare(out_tangent, moved, atol, rtol, f"{err_msg}: tangent")


def check_vjp(f: Callable, f_vjp: Callable, args: Sequence[Any], atol: Tolerance = None,
              rtol: Tolerance = None, eps: float | None = None, err_msg: str = "") -> None:
    """Check ``f_vjp(*args)`` against differences: ct applied to J v is v applied to the pullback.

    Raises: AssertionError if they are apart.
    """
    args = tuple(args)
    out, pullback = f_vjp(*args)
    _compare(out, f(*args), atol, rtol, f"{err_msg}: primal output")
    ct, tangents = _directions(out, 1), _directions(args)
    moved = differences(f, args, tangents, out, eps)
    _compare(np.float64(_inner(pullback(ct), tangents)), np.float64(_inner(ct, moved)), atol, rtol,
             f"{err_msg}: inner products", of=(args, out))


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


def _directions(values: Any, seed: int = 0) -> Any:
    """Return a random tangent for every leaf, always the same for the same structure."""
    rng = np.random.RandomState(seed)

    def direction(x: Any) -> Any:
        shape, dtype = np.shape(x), _dtype(x)
        if not _moves(x):
            return _zero(x)
        drawn = rng.standard_normal(shape)
        if dtypes.scalar_kind(dtype) == "complex":
            drawn = drawn + 1j * rng.standard_normal(shape)
        return np.asarray(drawn).astype(dtype)

    return tree.map_(direction, values)


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


def _inner(xs: Any, ys: Any) -> float:
    """Return the real part of the sum of products, without conjugates, as pullbacks pair."""
    return float(sum(np.sum(_wide(x) * _wide(y)).real
                     for x, y in zip(tree.leaves(xs), tree.leaves(ys)) if _moves(x)))


def _compare(got: Any, wanted: Any, atol: Tolerance, rtol: Tolerance, message: str,
             of: Any = None) -> None:
    assert tree.structure(got) == tree.structure(wanted), f"{message}: structures differ"
    for g, w in zip(tree.leaves(got), tree.leaves(wanted)):
        if not _moves(g):
            continue
        scale = [_TOLERANCE[_bits(x)] for x in tree.leaves(of) or [g]]
        usual = max(scale)
        np.testing.assert_allclose(
            _wide(g), _wide(w), atol=_chosen(atol, g, usual), rtol=_chosen(rtol, g, usual),
            err_msg=message)


def _chosen(given: Tolerance, value: Any, usual: float) -> float:
    """Return the tolerance for ``value``: one for all, that of its dtype, or the usual one."""
    if isinstance(given, Mapping):
        return {np.dtype(kind): size for kind, size in given.items()}.get(_dtype(value), usual)
    return usual if given is None else given
