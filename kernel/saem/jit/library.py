"""How is a library function one compiled call outside programs, and primitives inside?

``jnp.where`` outside programs is one compiled call, made once, and ``vmap`` and ``jvp`` there are
given this call.  In a program that is written down are its primitives, so a jaxpr shows
``select_n`` and no call.

Read before: ``jit.jitted``.  Read after: ``saem.numpy``.
Invariant: both forms compute the same (tests/kernel/numpy, tests/kernel/test_library_calls.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from saem.compile.quick import SameRounding
from saem.jit.jitted import make_jit


def library_function(fun: Callable | None = None, *, static_argnums: Any = None,
              static_argnames: Any = None, accepts: Callable[..., bool] | None = None,
              same_rounding: SameRounding = False, whole: bool = False) -> Any:
    """Make a library function one compiled call outside programs; inside, its primitives inline.

    Use as a decorator on functions of ``saem.numpy`` and its like.  Arguments that ``accepts``
    does not accept are answered with NotImplemented, as Python's operators must.

    ``same_rounding``: both code generators of XLA round its products and sums the same way, at
    all shapes and parameters, as tests/kernel/test_quick.py compares; so it is compiled quickly.
    "scalars": where its results are scalars.

    ``whole``: it is one compiled call also where ``grad`` linearizes outside programs: for
    functions of many operations, each of which would be linearized at each call.
    """
    if fun is None:
        return functools.partial(library_function, static_argnums=static_argnums,
                                 static_argnames=static_argnames, accepts=accepts,
                                 same_rounding=same_rounding, whole=whole)
    fast = make_jit(fun, static_argnums=static_argnums, static_argnames=static_argnames,
                    inline=True, library=True)
    fast.info.accepts = accepts
    fast.info.same_rounding = same_rounding
    fast.info.whole = whole
    return fast
