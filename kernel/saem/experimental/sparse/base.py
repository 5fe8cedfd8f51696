"""What do all sparse arrays have in common?

Read before: nothing.  Read after: ``sparse.bcoo_format``.
Invariant: a sparse array is a pytree of dense arrays; its shape and layout are static.
Source: the documentation of jax.experimental.sparse.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from saem.transform.mapping import vmap
from saem.typing import Array

Shape = tuple[int, ...]


class SparseEfficiencyError(ValueError):
    """An operation would store far more elements than its result has."""


class SparseEfficiencyWarning(UserWarning):
    """An operation stores more elements than its result has."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """An operation cannot use NVIDIA's library; Saem never uses it."""


class SparseInfo(NamedTuple):
    """What is static of a sparse array: its shape, and what is known of its indices."""

    shape: Shape
    indices_sorted: bool = False
    unique_indices: bool = False


class JAXSparse(abc.ABC):
    """Base of sparse arrays: ``shape``, ``dtype``, arithmetic, and the arrays that hold them.

    ``+ - * / ** @``, ``abs``, ``x[i]`` and ``sum`` follow ``sparsify`` (``sparse.operators``).
    """

    data: Array
    shape: Shape
    nse: property
    __hash__ = None
    __array_priority__ = 100

    def __init__(self, args: tuple[Any, ...], *, shape: Sequence[int]):
        self.shape = tuple(int(n) for n in shape)

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def size(self) -> int:
        """The number of elements, zeros included."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> JAXSparse:
        """The transpose."""
        return self.transpose()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            about = f"{self.dtype}{list(self.shape)}, nse={self.nse}"
        except (AttributeError, IndexError, ValueError):  # a tree with other leaves than arrays
            return f"{name}(<invalid>)"
        return f"{name}({about}{self._layout()})"

    def _layout(self) -> str:
        return ""

    def block_until_ready(self) -> JAXSparse:
        """Wait until the arrays that hold it are computed; return it."""
        for buffer in self._bufs:
            buffer.block_until_ready()
        return self

    @property
    @abc.abstractmethod
    def _bufs(self) -> tuple[Array, ...]:
        """The arrays that hold it."""

    @abc.abstractmethod
    def todense(self) -> Array:
        """Return the dense array."""

    @abc.abstractmethod
    def transpose(self, axes: Any = None) -> JAXSparse:
        """Return it with its axes in another order."""

    @abc.abstractmethod
    def tree_flatten(self) -> tuple[tuple[Array, ...], Any]:
        """Return its arrays and what is static."""

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Sequence[Any]) -> Any:
        """Return a sparse array of other leaves, which are not checked."""
        made = object.__new__(cls)
        made._fill(children, aux_data)
        return made

    def checked_batch(self, count: int) -> int:
        """Return ``count``, the number of batch axes.

        Raises: ValueError if it is negative: ``vmap`` has mapped an axis of the stored elements.
        """
        if count < 0:
            name = type(self).__name__
            raise ValueError(f"Cannot map an axis of a {name} array with n_batch=0. in_axes for "
                             f"batched {name} operations must correspond to a batch dimension.")
        return count

    @abc.abstractmethod
    def _fill(self, children: Sequence[Any], static: dict[str, Any]) -> None:
        """Take ``children`` as the arrays that hold it."""


def nfold_vmap(fun: Callable, N: int, *, broadcasted: bool = True, in_axes: Any = 0) -> Callable:
    """Return ``fun`` mapped over the ``N`` leading axes of its arguments."""
    for _ in range(N):
        fun = vmap(fun, in_axes=in_axes)
    return fun
