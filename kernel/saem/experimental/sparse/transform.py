"""How does a function written for dense arrays compute with sparse ones?  ``sparsify``

The function is traced as if its arguments were dense; then its equations are computed one by one.
An equation with a sparse operand has a *rule*: what it does to the stored elements.  The rules are
chosen by the class of the operation, below by subject; an operation without one would need a dense
result, and that is an error rather than a surprise.

Read before: ``bcoo_format``, ``bcoo_products``, ``bcoo_structure``.  Read after: ``operators``.
Invariant: ``sparsify(f)(x).todense()`` is ``f(x.todense())`` (tests/kernel/test_sparse.py).
Source: the documentation of jax.experimental.sparse.sparsify.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import saem.numpy as jnp
from saem import lax
from saem.core import lazy, tree
from saem.core.avals import ShapeDtypeStruct
from saem.core.frames import boundary
from saem.core.handles import UserOperation
from saem.core.jaxpr import ClosedJaxpr, Eqn, interpret
from saem.core.primitive import Primitive
from saem.core.trace import bind, bind_list
from saem.experimental.sparse import bcoo_structure as structure
from saem.experimental.sparse.base import JAXSparse
from saem.experimental.sparse.bcoo_format import BCOO, bcoo_extract, bcoo_sum_duplicates
from saem.experimental.sparse.bcoo_products import (
    bcoo_dot_general,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
)
from saem.experimental.sparse.bcsr import BCSR
from saem.extend.core import Primitive as UserPrimitive
from saem.interpreters import ad, batching, mlir
from saem.jit.call import ProgramCall
from saem.loops.conditional import Cond
from saem.loops.scan import Scan
from saem.loops.while_loop import While
from saem.ops import arithmetic, convert, linear, maths, numbers, shape, slicing
from saem.ops.contract import DotGeneral
from saem.ops.dynamic_slicing import DynamicSlice
from saem.ops.gather import Gather
from saem.ops.stacking import Stack
from saem.signal.convolve import ConvGeneralDilated
from saem.transform.programs import make_jaxpr

# Values by the numbers of their buffers stand on ``sparsify``; they are found here, as in JAX.
__getattr__, __dir__ = lazy.namespace(__name__, {
    "saem.experimental.sparse.held": "SparsifyEnv SparsifyValue arrays_to_spvalues sparsify_raw "
                                     "spvalues_to_arrays spvalues_to_avals",
})


# -- the marker by which a traced function requests a dense array ----------------------------------

todense_p = UserPrimitive("todense")
todense_p.def_impl(lambda x: x)
todense_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(todense_p, mlir.lower_fun(lambda x: x, multiple_results=False))
ad.deflinear(todense_p, lambda ct: [ct])
batching.defvectorized(todense_p)


def todense(arr: Any) -> Any:
    """Return ``arr`` as a dense array; inside ``sparsify`` too, where it looks dense already.

    >>> sparse.todense(sparse.BCOO.fromdense(jnp.array([0., 2.])))
    Array([0., 2.], dtype=float32)
    """
    return arr.todense() if isinstance(arr, JAXSparse) else todense_p.bind(jnp.asarray(arr))


# -- evaluation ------------------------------------------------------------------------------------


def is_sparse(x: Any) -> bool:
    """Return whether ``x`` is a sparse array."""
    return isinstance(x, JAXSparse)


def sparsify(f: Callable, use_tracer: bool = False) -> Callable:
    """Return ``f``, which takes dense arrays, as a function that takes sparse arrays as well.

    Results are sparse where sparse operands give sparse ones.  ``use_tracer`` is accepted and
    changes nothing: ``f`` is always traced first.

    Raises: NotImplementedError, when called, for an operation whose result would be dense.

    >>> import saem.numpy as jnp
    >>> from saem.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0., 1.], [2., 0.]]))
    >>> sparse.sparsify(lambda a, x: jnp.sum(a.T @ x))(m, jnp.ones(2)).item()
    3.0
    """

    @functools.wraps(f)
    @boundary
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, treedef = tree.flatten((args, kwargs), is_leaf=is_sparse)
        values = _apart([_as_bcoo(x) for x in leaves])

        def on_leaves(*dense: Any) -> Any:
            inner_args, inner_kwargs = treedef.unflatten(dense)
            return f(*inner_args, **inner_kwargs)

        stand_ins = [ShapeDtypeStruct(x.shape, x.dtype) if is_sparse(x) else x for x in values]
        closed, out_shapes = make_jaxpr(on_leaves, return_shape=True)(*stand_ins)
        outs = evaluate(closed, values)
        return tree.structure(out_shapes).unflatten(
            [_like(out, leaves) for out in outs])

    return wrapped


def _apart(values: Sequence[Any]) -> list[Any]:
    """Return the arguments, no two of which share their indices.

    So what shares indices inside the function was computed from one argument.
    """
    seen: set[int] = set()
    out = []
    for x in values:
        if is_sparse(x) and id(x.indices) in seen:
            x = _same_places(x, x.data, jnp.array(x.indices, copy=True))
        if is_sparse(x):
            seen.add(id(x.indices))
        out.append(x)
    return out


def _as_bcoo(x: Any) -> Any:
    """Return a sparse array as BCOO, for which the rules are; anything else as it is."""
    if not is_sparse(x) or isinstance(x, BCOO):
        return x
    return x.to_bcoo()


def _like(out: Any, operands: Sequence[Any]) -> Any:
    """Return a sparse result by rows where all sparse operands were stored by rows."""
    formats = [x for x in operands if is_sparse(x)]
    by_rows = formats and all(isinstance(x, BCSR) for x in formats)
    if isinstance(out, BCOO) and by_rows and out.n_sparse == 2:
        return BCSR.from_bcoo(out)
    return out


def evaluate(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Compute the program on dense arrays and BCOO."""

    def step(eqn: Eqn, values: list[Any]) -> list[Any]:
        operation = eqn.operation
        if not any(map(is_sparse, values)):
            return bind_list(operation, values)
        outs = rule(operation, *values)
        return list(outs) if operation.multiple_results else [outs]

    return interpret(closed, args, step)


@functools.singledispatch
def rule(operation: Primitive, *args: Any) -> Any:
    """Compute ``operation``, of which at least one operand is a BCOO array."""
    raise NotImplementedError(
        f"sparse rule for {operation.name} is not implemented because it would result in dense "
        "output. If this is your intent, use sparse.todense() to convert your arguments to dense "
        "matrices.")


def _same_places(mat: BCOO, data: Any, indices: Any = None) -> BCOO:
    return BCOO((data, mat.indices if indices is None else indices), shape=mat.shape,
                indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


# -- elementwise -----------------------------------------------------------------------------------


def _linear(operation: Primitive, mat: BCOO) -> BCOO:
    """A linear function of each element: elements of one place may stay apart."""
    return _same_places(mat, bind(operation, mat.data))


def _keeps_zero(operation: Primitive, mat: BCOO) -> BCOO:
    """A function with f(0) = 0: elements of one place are added first."""
    mat = mat if mat.unique_indices else bcoo_sum_duplicates(mat, nse=mat.nse)
    return _same_places(mat, bind(operation, mat.data))


for _kind in (arithmetic.Neg, numbers.Real, numbers.Imag, numbers.Conj, convert.Copy,
              convert.ReducePrecision):
    rule.register(_kind, _linear)
for _kind in (numbers.Abs, numbers.Sign, numbers.Floor, numbers.Ceil, numbers.Round, maths.Sqrt,
              maths.Cbrt, maths.Sin, maths.Tan, maths.Tanh, maths.Asin, maths.Atan, maths.Sinh,
              maths.Asinh, maths.Atanh, maths.Expm1, maths.Log1p, maths.Square):
    rule.register(_kind, _keeps_zero)


@rule.register
def _(operation: convert.ConvertElementType, mat: BCOO) -> BCOO:
    return _linear(operation, mat)


@rule.register
def _(operation: arithmetic.IntegerPow, mat: BCOO) -> BCOO:
    if operation.y <= 0:
        raise NotImplementedError(
            f"sparse rule for {operation.name} with exponent {operation.y} <= 0 is not implemented "
            "because it would result in dense output.")
    return _keeps_zero(operation, mat)


@rule.register(arithmetic.Add)
@rule.register(linear.AddAny)
def _add(_operation: Primitive, x: Any, y: Any) -> Any:
    if is_sparse(x) and is_sparse(y):
        return _same_places(x, x.data + y.data) if _share_places(x, y) else _sum_of(x, y)
    mat, dense = (x, jnp.asarray(y)) if is_sparse(x) else (y, jnp.asarray(x))
    if dense.shape != mat.shape and np.broadcast_shapes(mat.shape, dense.shape) != dense.shape:
        raise NotImplementedError(
            "Addition between a sparse array X and a dense array Y is not implemented when the "
            "output shape is larger than Y.shape. This is to prevent silent densification of a "
            "large sparse array. If this is your intent, you can explicitly cast the sparse array "
            "to a dense matrix.")
    return mat.todense() + dense


def _share_places(x: BCOO, y: BCOO) -> bool:
    """Return whether both have one array of indices and one layout."""
    return x.indices is y.indices and x.shape == y.shape and x.data.shape == y.data.shape


def _sum_of(x: BCOO, y: BCOO) -> BCOO:
    """Return the elements of both, side by side."""
    if x.shape != y.shape:
        raise NotImplementedError("Addition between sparse matrices of different shapes.")
    if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
        raise NotImplementedError("Addition between sparse matrices with different batch/dense "
                                  "dimensions.")
    return structure.side_by_side(x, y)


@rule.register
def _(_operation: arithmetic.Sub, x: Any, y: Any) -> Any:
    return _add(_operation, x, _same_places(y, -y.data) if is_sparse(y) else -jnp.asarray(y))


@rule.register
def _(_operation: arithmetic.Mul, x: Any, y: Any) -> BCOO:
    if is_sparse(x) and is_sparse(y):
        one_each = _share_places(x, y) and x.unique_indices
        return _same_places(x, x.data * y.data) if one_each else bcoo_multiply_sparse(x, y)
    mat, dense = (x, y) if is_sparse(x) else (y, x)
    return _same_places(mat, bcoo_multiply_dense(mat, dense))


@rule.register
def _(operation: arithmetic.Div, x: Any, y: Any) -> BCOO:
    if is_sparse(y):
        raise NotImplementedError("Division by a sparse array is not implemented because it would "
                                  "result in dense output.")
    return _same_places(x, bind(operation, x.data, bcoo_extract(
        x, jnp.broadcast_to(y, x.shape), assume_unique=True).data) if jnp.ndim(y)
        else bind(operation, x.data, jnp.asarray(y, x.dtype)))


# -- contraction and structure ---------------------------------------------------------------------


@rule.register
def _(operation: DotGeneral, x: Any, y: Any) -> Any:
    return bcoo_dot_general(x, y, dimension_numbers=operation.dimension_numbers,
                            preferred_element_type=operation.preferred_element_type)


@rule.register
def _(operation: linear.ReduceSum, mat: BCOO) -> Any:
    out = structure.bcoo_reduce_sum(mat, axes=operation.axes)
    return out if out.ndim else out.todense()


@rule.register
def _(operation: linear.Transpose, mat: BCOO) -> BCOO:
    return mat.transpose(operation.permutation)


@rule.register
def _(operation: linear.BroadcastInDim, mat: BCOO) -> BCOO:
    return structure.bcoo_broadcast_in_dim(
        mat, shape=operation.shape, broadcast_dimensions=operation.broadcast_dimensions)


@rule.register
def _(operation: shape.Reshape, mat: BCOO) -> BCOO:
    return structure.bcoo_reshape(mat, new_sizes=operation.new_sizes)


@rule.register
def _(operation: shape.Squeeze, mat: BCOO) -> BCOO:
    return structure.bcoo_squeeze(mat, dimensions=operation.dimensions)


@rule.register
def _(operation: ConvGeneralDilated, *operands: Any) -> BCOO:
    lhs, rhs = (x if is_sparse(x) else BCOO.fromdense(x, nse=x.size) for x in operands)
    return structure.bcoo_conv_general_dilated(lhs, rhs, **operation.params)


@rule.register
def _(operation: shape.Rev, mat: BCOO) -> BCOO:
    return structure.bcoo_rev(mat, operation.dimensions)


@rule.register
def _(operation: shape.Concatenate, *mats: Any) -> BCOO:
    if not all(map(is_sparse, mats)):
        raise NotImplementedError("concatenation of sparse with dense arrays would result in dense "
                                  "output. Make them all sparse, or all dense.")
    return structure.bcoo_concatenate(mats, dimension=operation.dimension)


@rule.register
def _(operation: Stack, *mats: Any) -> BCOO:
    if not all(map(is_sparse, mats)):
        raise NotImplementedError("stacking sparse with dense arrays would result in dense output. "
                                  "Make them all sparse, or all dense.")
    axis = operation.axis
    thin = [structure.bcoo_broadcast_in_dim(
        m, shape=(*m.shape[:axis], 1, *m.shape[axis:]),
        broadcast_dimensions=[a + (a >= axis) for a in range(m.ndim)]) for m in mats]
    return structure.bcoo_concatenate(thin, dimension=axis)


@rule.register
def _(operation: slicing.Slice, mat: BCOO) -> BCOO:
    return structure.bcoo_slice(mat, start_indices=operation.start_indices,
                                limit_indices=operation.limit_indices, strides=operation.strides)


@rule.register
def _(operation: DynamicSlice, mat: BCOO, *starts: Any) -> BCOO:
    return structure.bcoo_dynamic_slice(mat, starts, operation.slice_sizes)


@rule.register
def _(operation: Gather, mat: BCOO, starts: Any) -> BCOO:
    return structure.bcoo_gather(mat, starts, operation.dimension_numbers, operation.slice_sizes)


# -- programs inside programs ----------------------------------------------------------------------


@rule.register
def _(operation: ProgramCall, *args: Any) -> list[Any]:
    return evaluate(operation.program, args)


@rule.register
def _(operation: UserOperation, *args: Any) -> Any:
    if operation.handle is not todense_p:
        return rule.dispatch(Primitive)(operation, *args)
    return args[0].todense()


def _as_function(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    return lambda *args: evaluate(closed, args)


@rule.register
def _(operation: Cond, number: Any, *args: Any) -> list[Any]:
    if len(operation.branches) == 1 or operation.branches_platforms is not None:
        return rule.dispatch(Primitive)(operation, *args)
    return lax.switch(number, [_as_function(branch) for branch in operation.branches], *args)


@rule.register
def _(operation: While, *args: Any) -> list[Any]:
    cond_consts, body_consts, carry = operation.parts(args)
    return lax.while_loop(
        lambda carry: evaluate(operation.cond_jaxpr, [*cond_consts, *carry])[0],
        lambda carry: evaluate(operation.body_jaxpr, [*body_consts, *carry]), carry)


@rule.register
def _(operation: Scan, *args: Any) -> list[Any]:
    consts, carry, stacks = operation.parts(args)
    if any(is_sparse(x) and x.n_batch == 0 for x in stacks):
        raise NotImplementedError("scan over a sparse array needs its first axis to be a batch "
                                  "axis: update_layout(n_batch=1, on_inefficient=None).")

    def body(carry: Any, rows: Any) -> Any:
        outs = evaluate(operation.jaxpr, [*consts, *carry, *rows])
        return outs[:operation.num_carry], outs[operation.num_carry:]

    last, ys = lax.scan(body, list(carry), list(stacks), length=operation.length,
                        reverse=operation.reverse, unroll=operation.unroll)
    return [*last, *ys]

