"""How are all first and second derivatives of a function laid out as arrays?

``jacfwd`` maps jvp over a basis of the inputs (cheap for few inputs), ``jacrev`` maps the pullback
over a basis of the outputs (cheap for few outputs); ``hessian`` is forward over reverse.

Read before: ``transform.derivatives``, ``transform.mapping``.
Invariant: the leaf for output o and input i has shape ``o.shape + i.shape``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem.core import dtypes, errors, tree
from saem.core.arguments import (
    as_numbers,
    check_callable,
    distinct_positions,
    documented,
    is_integer,
    wraps,
)
from saem.core.avals import ShapedArray, aval_of, kept
from saem.core.dimensions import is_static
from saem.core.frames import boundary
from saem.core.naming import called
from saem.core.trace import bind
from saem.ops.arithmetic import add
from saem.ops.compare import eq
from saem.ops.convert import ConvertElementType, convert
from saem.ops.filling import broadcasted_iota
from saem.ops.linear import broadcast_in_dim, zeros_of
from saem.ops.reshard import reshard_like
from saem.ops.shape import reshape
from saem.ops.slicing import slice_in_dim
from saem.transform.derivatives import as_array, jvp, vjp
from saem.transform.mapping import vmap


def _basis(avals: Sequence[ShapedArray]) -> list[Any]:
    """Return for each aval the standard basis of all of them together, stacked along axis 0."""
    sizes = [a.size for a in avals]
    total, offsets = sum(sizes), itertools.accumulate([0, *sizes])
    parts = [_ones_at(total, size, start, aval)
             for aval, size, start in zip(avals, sizes, offsets)]
    return [bind(ConvertElementType(aval.dtype, True), part) if aval.weak_type else part
            for aval, part in zip(avals, parts)]


def _ones_at(total: int, size: int, start: int, aval: ShapedArray) -> Any:
    """Return ``total`` arrays of ``aval``: the one at ``start`` + i has a one as element i."""
    if is_static((total, size)):
        eye = np.eye(total, size, -start, dtype=aval.dtype)
        return kept(eye.reshape(total, *aval.shape))
    rows, columns = (broadcasted_iota(np.dtype("int32"), (total, size), d) for d in (0, 1))
    if start != 0:
        columns = add(columns, broadcast_in_dim(convert(start, np.dtype("int32")), (total, size)))
    return reshape(convert(eq(rows, columns), aval.dtype), (total, *aval.shape))


def _check(kind: str, what: str, x: Any, holomorphic: bool, allow_int: bool) -> None:
    dtype = aval_of(x).dtype
    if holomorphic:
        if not dtypes.is_complex(dtype):
            raise TypeError(f"{kind} with holomorphic=True requires {what} with complex dtype, but "
                            f"got {dtype.name}.")
    elif kind == "jacrev" and what == "inputs":
        if not dtypes.is_inexact(dtype) and not allow_int:
            raise errors.explained(
                errors.ArgumentTypeError, "jacrev.C2",
                "jacrev requires real- or complex-valued inputs (input dtype that is a sub-dtype "
                f"of np.inexact), but got {dtype.name}.",
                advice="Use vjp or set allow_int to True; or convert with x.astype(float).")
    elif not dtypes.is_float(dtype):
        raise errors.explained(
            errors.ArgumentTypeError, f"{kind}.C1",
            f"{kind} requires real-valued {what} ({what[:-1]} dtype that is a sub-dtype of "
            f"np.floating), but got {dtype.name}.",
            advice="For holomorphic functions pass holomorphic=True; convert integers with "
            "x.astype(float).")


def _split(stacked: Any, avals: Sequence[ShapedArray], axis: int) -> list[Any]:
    """Cut the basis axis of ``stacked`` into one part for each aval, unrolled to its shape."""
    parts, start = [], 0
    for aval in avals:
        part = slice_in_dim(stacked, start, start + aval.size, axis=axis)
        start += aval.size
        shape = aval_of(part).shape
        parts.append(reshape(part, (*shape[:axis], *aval.shape, *shape[axis + 1:])))
    return parts


def _numbers(primal: Any, derivative: Any) -> Any:
    """Return ``derivative``, weak as ``primal`` is; zeros like that where it is a float0."""
    aval, dtype = aval_of(primal), aval_of(derivative).dtype
    return zeros_of(aval) if dtype == dtypes.float0 else convert(derivative, dtype, aval.weak_type)


def _chosen(fun: Callable, argnums: int | Sequence[int], args: tuple, kwargs: dict,
            ) -> tuple[Callable, tuple]:
    numbers = distinct_positions(as_numbers(argnums), len(args))

    def partial(*values: Any) -> Any:
        full = list(args)
        for n, value in zip(numbers, values):
            full[n] = value
        return fun(*full, **kwargs)

    return partial, tuple(tree.map_(as_array, args[n]) for n in numbers)


def jacfwd(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False,
           holomorphic: bool = False) -> Callable:
    """Return the function that computes the Jacobian of ``fun`` column by column (forward mode).

    >>> jax.jacfwd(lambda x: x ** 2)(jnp.array([1., 2.]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check_callable(fun)

    @wraps(fun, "jacfwd")
    @boundary
    def jacfun(*args: Any, **kwargs: Any) -> Any:
        partial, chosen = _chosen(fun, argnums, args, kwargs)
        leaves, in_tree = tree.flatten(chosen)
        for x in leaves:
            _check("jacfwd", "inputs", x, holomorphic, False)
        avals = [aval_of(x) for x in leaves]

        def push(*tangents: Any) -> Any:
            out, moved, *aux = jvp(partial, chosen, in_tree.unflatten(tangents), has_aux=has_aux)
            if holomorphic:
                for x in tree.leaves(out):
                    _check("jacfwd", "outputs", x, True, False)
            return tree.map_(_numbers, out, moved), *aux

        axes = (-1, None) if has_aux else (-1,)
        columns, *aux = vmap(push, out_axes=axes)(*_basis(avals))
        single = is_integer(argnums)

        def unroll(column: Any) -> Any:
            parts = _split(column, avals, axis=len(aval_of(column).shape) - 1)
            jacobian = in_tree.unflatten(parts)
            return jacobian[0] if single else jacobian

        out = tree.map_(unroll, columns)
        return (out, *aux) if has_aux else out

    return documented(jacfun, fun,
                      f"Return the Jacobian of {{0}} with respect to argument {argnums}.")


def jacrev(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False,
           holomorphic: bool = False, allow_int: bool = False) -> Callable:
    """Return the function that computes the Jacobian of ``fun`` row by row (reverse mode).

    >>> jax.jacobian(lambda x: x ** 2)(jnp.array([1., 2.]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    check_callable(fun)

    @wraps(fun, "jacrev")
    @boundary
    def jacfun(*args: Any, **kwargs: Any) -> Any:
        partial, chosen = _chosen(fun, argnums, args, kwargs)
        for x in tree.leaves(chosen):
            _check("jacrev", "inputs", x, holomorphic, allow_int)
        out, pullback, *aux = vjp(partial, *chosen, has_aux=has_aux)
        leaves, out_tree = tree.flatten(out)
        for x in leaves:
            _check("jacrev", "outputs", x, holomorphic, False)
        avals = [aval_of(x) for x in leaves]
        rows = vmap(lambda *cts: tree.map_(_numbers, chosen, pullback(out_tree.unflatten(
            [reshard_like(ct, a.to_ct_aval()) for ct, a in zip(cts, avals)]))))(*_basis(avals))
        row_leaves, in_tree = tree.flatten(rows)
        by_input = [_split(row, avals, axis=0) for row in row_leaves]
        single = is_integer(argnums)
        parts = []
        for number in range(len(avals)):
            jacobian = in_tree.unflatten([split[number] for split in by_input])
            parts.append(jacobian[0] if single else jacobian)
        result = out_tree.unflatten(parts)
        return (result, *aux) if has_aux else result

    return documented(jacfun, fun,
                      f"Return the Jacobian of {{0}} with respect to argument {argnums}.")


def hessian(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False,
            holomorphic: bool = False) -> Callable:
    """Return the function that computes the second derivatives of ``fun``.

    >>> jax.hessian(lambda x: (x ** 3).sum())(jnp.array([1., 2.]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    return jacfwd(jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic), argnums,
                  has_aux=has_aux, holomorphic=holomorphic)


jacobian = called("jacobian", jacrev)
