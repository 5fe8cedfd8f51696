"""What do ``+ - * / ** @``, indexing and ``sum`` do to sparse arrays?

What ``sparsify`` makes of the functions of ``numpy`` that they stand for on dense arrays.

Read before: ``sparse.transform``.
Invariant: the operators of all sparse classes are set here, once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import saem.numpy as jnp
from saem.experimental.sparse.base import JAXSparse
from saem.experimental.sparse.bcoo_format import BCOO
from saem.experimental.sparse.transform import sparsify


def _binary(fun: Callable) -> tuple[Callable, Callable]:
    """Return the operator and the reflected operator of ``fun``."""
    sparse = sparsify(fun)

    def plain(self: Any, other: Any) -> Any:
        if isinstance(other, (int, float)):  # a number that is known: x ** 2 is an integer power
            return sparsify(lambda x: fun(x, other))(self)
        return sparse(self, other)

    return plain, lambda self, other: sparse(other, self)


def _indexed(self: Any, idx: Any) -> Any:
    return sparsify(lambda x: x[idx])(self)


def _iterated(self: Any) -> Any:
    return (self[i] for i in range(len(self)))


def _sum(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the sum along axes, as ``jnp.sum`` takes them."""
    return sparsify(lambda x: jnp.sum(x, *args, **kwargs))(self)


def _astype(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Return it with elements of another dtype."""
    return sparsify(lambda x: x.astype(*args, **kwargs))(self)


def _reshape(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Return it with another shape, as ``x.reshape`` takes it."""
    return sparsify(lambda x: x.reshape(*args, **kwargs))(self)


for _name, _fun in (("add", jnp.add), ("sub", jnp.subtract), ("mul", jnp.multiply),
                    ("truediv", jnp.divide), ("pow", jnp.power), ("matmul", jnp.matmul)):
    _plain, _reflected = _binary(_fun)
    setattr(JAXSparse, f"__{_name}__", _plain)
    setattr(JAXSparse, f"__r{_name}__", _reflected)
for _name, _fun in (("neg", jnp.negative), ("pos", jnp.positive), ("abs", jnp.abs)):
    setattr(JAXSparse, f"__{_name}__", sparsify(_fun))
for _name, _fun in (("eq", jnp.equal), ("ne", jnp.not_equal), ("lt", jnp.less),
                    ("le", jnp.less_equal), ("gt", jnp.greater), ("ge", jnp.greater_equal)):
    setattr(BCOO, f"__{_name}__", _binary(_fun)[0])
for _kind, _name, _fun in ((JAXSparse, "__getitem__", _indexed), (JAXSparse, "__iter__", _iterated),
                           (JAXSparse, "sum", _sum), (BCOO, "astype", _astype),
                           (BCOO, "reshape", _reshape)):
    setattr(_kind, _name, _fun)
