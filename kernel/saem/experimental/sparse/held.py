"""How are sparse arrays held by the numbers of their buffers?

An environment is a list of buffers; a value says by their numbers which of them are its elements
and its indices.  So two values that share indices show it, and an interpreter can pass values on
without touching buffers.

Read before: ``bcoo_format``, ``bcsr``, ``transform``.
Invariant: ``spvalues_to_arrays(env, arrays_to_spvalues(env, x))`` is ``x``.
Source: the documentation of jax.experimental.sparse.sparsify; what JAX's functions return.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import saem.numpy as jnp
from saem.core import errors, tree
from saem.core.avals import ShapedArray, aval_of
from saem.experimental.sparse.bcoo_format import BCOO
from saem.experimental.sparse.bcsr import BCSR
from saem.experimental.sparse.transform import is_sparse, sparsify
from saem.typing import Array


class SparsifyValue(NamedTuple):
    """An array of ``shape``: the numbers of its buffers, and what is known of its indices."""

    shape: tuple[int, ...]
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool | None = False
    unique_indices: bool | None = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def is_sparse(self) -> bool:
        return self.indices_ref is not None

    def is_dense(self) -> bool:
        return self.indices_ref is None

    def is_bcoo(self) -> bool:
        return self.is_sparse() and self.indptr_ref is None

    def is_bcsr(self) -> bool:
        return self.is_sparse() and self.indptr_ref is not None


class SparsifyEnv:
    """The buffers of sparse and dense values.

    >>> env = SparsifyEnv()
    >>> env.data(env.dense(jnp.array([1., 2.])))
    Array([1., 2.], dtype=float32)
    """

    def __init__(self, bufs: Iterable[Any] = ()):
        self._buffers: list[Any] = list(bufs)

    def _push(self, buffer: Any) -> int:
        """Add a buffer; returns its number."""
        self._buffers.append(jnp.asarray(buffer))
        return len(self._buffers) - 1

    def _number(self, buffer: Any) -> int:
        """Return the number of ``buffer``, which is added if it is not there."""
        for number, known in enumerate(self._buffers):
            if known is buffer:
                return number
        return self._push(buffer)

    def _read(self, what: str, ref: int | None) -> Array:
        if ref is None:
            raise errors.explained(
                RuntimeError, "sparse.ref",
                f"requested {what} of a value that has none.",
                advice="Ask is_sparse() and is_bcsr() first.")
        return self._buffers[ref]

    def data(self, spvalue: SparsifyValue) -> Array:
        """Return the elements of a value; all of them if it is dense."""
        return self._read("data", spvalue.data_ref)

    def indices(self, spvalue: SparsifyValue) -> Array:
        """Return the indices of a sparse value.  Raises: RuntimeError if it is dense."""
        return self._read("indices", spvalue.indices_ref)

    def indptr(self, spvalue: SparsifyValue) -> Array:
        """Return where rows begin.  Raises: RuntimeError unless the value is stored by rows."""
        return self._read("indptr", spvalue.indptr_ref)

    def dense(self, data: Any) -> SparsifyValue:
        """Add a dense array; returns its value."""
        return SparsifyValue(aval_of(data).shape, self._push(data))

    def sparse(self, shape: tuple[int, ...], data: Any = None, indices: Any = None,
               indptr: Any = None, *, data_ref: int | None = None, indices_ref: int | None = None,
               indptr_ref: int | None = None, indices_sorted: bool = False,
               unique_indices: bool = False) -> SparsifyValue:
        """Add a sparse array, of buffers or of numbers of buffers; returns its value.

        Raises: ValueError for a buffer that is given in both ways, in neither, or is not there.
        """
        data_ref = self._of("data", data, data_ref)
        indices_ref = self._of("indices", indices, indices_ref)
        if indptr is not None or indptr_ref is not None:
            indptr_ref = self._of("indptr", indptr, indptr_ref)
        return SparsifyValue(tuple(shape), data_ref, indices_ref, indptr_ref, indices_sorted,
                             unique_indices)

    def _of(self, what: str, buffer: Any, ref: int | None) -> int:
        if (buffer is None) == (ref is None) or (ref is not None
                                                 and not 0 <= ref < len(self._buffers)):
            raise errors.explained(
                errors.ArgumentError, "sparse.buffer",
                f"sparse() needs {what}, or {what}_ref below {len(self._buffers)}; got "
                f"{'both' if buffer is not None and ref is not None else ref}.",
                advice="A buffer that is there already has a number; a new one has none.")
        return self._push(buffer) if ref is None else ref

    def value_of(self, x: Any, number: Callable[[Any], int] | None = None) -> SparsifyValue:
        """Return the value of an array; ``number`` numbers its buffers, which are new if None.

        Raises: NotImplementedError for sparse formats that ``sparsify`` does not know.
        """
        number = number or self._push
        if not is_sparse(x):
            return SparsifyValue(aval_of(x).shape, number(x))
        if isinstance(x, BCOO):
            return SparsifyValue(x.shape, number(x.data), number(x.indices), None,
                                 x.indices_sorted, x.unique_indices)
        if isinstance(x, BCSR):
            return SparsifyValue(x.shape, number(x.data), number(x.indices), number(x.indptr),
                                 x.indices_sorted, x.unique_indices)
        raise NotImplementedError(f"no value for a sparse array of type {type(x).__name__}. "
                                  "Convert it: x.to_bcoo().")

    def array_of(self, spvalue: SparsifyValue) -> Any:
        """Return the array that a value stands for."""
        if spvalue.is_dense():
            return self.data(spvalue)
        known: Any = {"shape": spvalue.shape, "indices_sorted": spvalue.indices_sorted,
                      "unique_indices": spvalue.unique_indices}
        if spvalue.is_bcoo():
            return BCOO((self.data(spvalue), self.indices(spvalue)), **known)
        return BCSR((self.data(spvalue), self.indices(spvalue), self.indptr(spvalue)), **known)


def is_value(x: Any) -> bool:
    return isinstance(x, SparsifyValue)


def arrays_to_spvalues(spenv: SparsifyEnv, args: Any) -> Any:
    """Return the values of a pytree of arrays, whose buffers are added to ``spenv``.

    >>> arrays_to_spvalues(SparsifyEnv(), [sparse.BCOO.fromdense(jnp.eye(2))])[0].indices_ref
    1
    """
    return tree.map_(spenv.value_of, args, is_leaf=is_sparse)


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """Return the arrays of a pytree of values."""
    return tree.map_(spenv.array_of, spvalues, is_leaf=is_value)


def spvalues_to_avals(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """Return the types of the arrays of a pytree of values, as if all were dense."""
    return tree.map_(lambda value: ShapedArray(value.shape, spenv.data(value).dtype), spvalues,
                     is_leaf=is_value)


def sparsify_raw(f: Callable) -> Callable:
    """Return ``f``, written for dense arrays, as a function of an environment and of values.

    It returns the values of the leaves of the result, whose new buffers are added, and the
    structure of the result.  Keyword arguments are handed to ``f``.
    """

    @functools.wraps(f)
    def wrapped(spenv: SparsifyEnv, *spvalues: SparsifyValue, **params: Any) -> tuple[list, Any]:
        out = sparsify(functools.partial(f, **params))(*spvalues_to_arrays(spenv, spvalues))
        leaves, treedef = tree.flatten(out, is_leaf=is_sparse)
        return [spenv.value_of(x, spenv._number) for x in leaves], treedef

    return wrapped
