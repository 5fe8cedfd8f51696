"""How are the forward and the backward pass compiled separately?

Read before: ``transform.derivatives``.
Invariant: ``bwd`` on what ``fwd`` hands over gives what ``vjp`` gives.
Source: the documentation of jax.fwd_and_bwd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from saem.core.arguments import as_numbers, is_integer, positions
from saem.core.frames import boundary
from saem.jit.decorator import jit
from saem.transform.derivatives import vjp


@boundary
def fwd_and_bwd(fun: Callable, argnums: int | Sequence[int], has_aux: bool = False,
                jitted: bool = True) -> tuple[Callable, Callable]:
    """Return ``fwd(*args) -> (result, residuals)`` and ``bwd(residuals, ct)``, for ``argnums``.

    With ``has_aux`` the forward function returns the auxiliary value third.

    Raises: ValueError, when it is called, for a number in ``argnums`` that the call does not have.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    single = is_integer(argnums)
    numbers = as_numbers(argnums)

    def fwd(*args: Any, **kwargs: Any) -> tuple:
        places = positions(numbers, len(args))

        def chosen(*xs: Any) -> Any:
            full = list(args)
            for i, x in zip(places, xs):
                full[i] = x
            return fun(*full, **kwargs)

        return vjp(chosen, *(args[i] for i in places), has_aux=has_aux)

    def bwd(pullback: Callable, outgrad: Any) -> Any:
        grads = pullback(outgrad)
        return grads[0] if single else grads

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
