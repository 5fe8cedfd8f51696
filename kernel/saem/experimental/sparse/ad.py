"""How is a function differentiated by the elements that sparse arrays store?

The derivative with respect to a sparse array is a sparse array with the same places: only what is
stored is a variable.

Read before: ``bcoo_format``.
Invariant: the gradient is that of the dense function, taken at the places stored
(tests/kernel/test_sparse.py).
Source: the documentation of jax.experimental.sparse.grad.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from saem.core import tree
from saem.core.arguments import as_numbers, check_callable, is_integer
from saem.experimental.sparse.base import JAXSparse
from saem.transform import derivatives, jacobians


def _on_data(transform: Callable, fun: Callable, argnums: int | Sequence[int], has_aux: bool,
             value: bool, options: dict[str, Any]) -> Callable:
    """Return ``transform`` of ``fun`` as a function of the data of its sparse arguments."""
    check_callable(fun)
    single = is_integer(argnums)
    numbers = as_numbers(argnums)

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        chosen = tuple(args[n] for n in numbers)
        leaves, treedef = tree.flatten(chosen, is_leaf=_is_sparse)
        variables = [x.data if _is_sparse(x) else x for x in leaves]

        def inner(variables: list[Any]) -> Any:
            rebuilt = treedef.unflatten([_with_data(x, v) for x, v in zip(leaves, variables)])
            full = list(args)
            for n, x in zip(numbers, rebuilt):
                full[n] = x
            return fun(*full, **kwargs)

        out = transform(inner, has_aux=has_aux, **options)(variables)
        if value:
            first, found = out
        elif has_aux:
            found, aux = out
        else:
            found = out
        found = tree.map_(lambda part: _assembled(part, leaves, treedef, single), found,
                          is_leaf=lambda part: isinstance(part, list))
        if value:
            return first, found
        return (found, aux) if has_aux else found

    return wrapped


def _assembled(part: list[Any], leaves: list[Any], treedef: Any, single: bool) -> Any:
    made = treedef.unflatten([_with_data(x, v) for x, v in zip(leaves, part)])
    return made[0] if single else made


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def _with_data(x: Any, data: Any) -> Any:
    """Return the sparse array ``x`` with other elements; ``data`` itself for a dense ``x``.

    A Jacobian has the axes of the result first: they become batch axes.
    """
    if not _is_sparse(x):
        return data
    children, static = x.tree_flatten()
    extra = data.ndim - children[0].ndim
    if not extra:
        return type(x).tree_unflatten(static, (data, *children[1:]))
    front = data.shape[:extra]
    others = [c.reshape((1,) * extra + c.shape) for c in children[1:]]
    static = {**static, "shape": (*front, *static["shape"])}
    return type(x).tree_unflatten(static, (data, *others))


def value_and_grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False,
                   **kwargs: Any) -> Callable:
    """Return the function that gives the value of ``fun`` and its gradient, sparse where its
    arguments are.

    >>> M = sparse.BCOO.fromdense(jnp.array([0., 2.]))
    >>> sparse.value_and_grad(lambda M: (M.todense() ** 2).sum())(M)[1].data
    Array([4.], dtype=float32)
    """
    return _on_data(derivatives.value_and_grad, fun, argnums, has_aux, True, kwargs)


def grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
         ) -> Callable:
    """Return the gradient of ``fun``, sparse where its arguments are.

    >>> import saem.numpy as jnp
    >>> from saem.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0., 1.], [2., 0.]]))
    >>> sparse.grad(lambda m, x: (m @ x).sum())(m, jnp.array([3., 4.])).data.tolist()
    [4.0, 3.0]
    """
    return _on_data(derivatives.grad, fun, argnums, has_aux, False, kwargs)


def jacfwd(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
           ) -> Callable:
    """Return the Jacobian of ``fun`` by forward mode, sparse where its arguments are.

    >>> sparse.jacfwd(lambda x: x * 2)(jnp.array([1., 2.]))
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    return _on_data(jacobians.jacfwd, fun, argnums, has_aux, False, kwargs)


def jacrev(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
           ) -> Callable:
    """Return the Jacobian of ``fun`` by reverse mode, sparse where its arguments are."""
    return _on_data(jacobians.jacrev, fun, argnums, has_aux, False, kwargs)


jacobian = jacrev
