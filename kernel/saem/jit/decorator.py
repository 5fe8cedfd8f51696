"""How does ``jit`` make a function that compiles itself?

The C++ callable in front of it, its options checked, and the methods that lead to the stages of
compilation, whose module is loaded when one of them is first called.

Read before: ``jit.jitted``.  Read after: ``jit.stages``.
Invariant: ``jit(f)(x)`` is ``jit(f).lower(x).compile()(x)``.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from saem import _jaxlib
from saem.core.frames import boundary
from saem.core.lazy import later
from saem.jit.jitted import make_jit
from saem.ops.constraints import refuse_devices
from saem.placement import devices
from saem.transform.programs import table_of

if TYPE_CHECKING:
    from saem.jit.stages import Lowered, Traced

stages: Any = later("saem.jit.stages")


_NOT_GIVEN: Any = object()


def jit(fun: Callable = _NOT_GIVEN, /, *, in_shardings: Any = None, out_shardings: Any = None,
        static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Sequence[str] | None = None,
        donate_argnums: int | Sequence[int] | None = None,
        donate_argnames: str | Sequence[str] | None = None, keep_unused: bool = False,
        device: Any = None, backend: str | None = None, inline: bool = False,
        compiler_options: dict[str, Any] | None = None) -> Any:
    """Return ``fun`` compiled by XLA: traced at the first call with new types, then only run.

    May be used as ``@jit`` or ``@jit(static_argnames=...)``.  ``fun`` runs in Python only while it
    is traced: what it prints or appends happens then and not at later calls.

    ``static_argnums``, ``static_argnames``: arguments that stay Python values (an axis, a name, a
    function); each new value is traced again.  ``donate_argnums``, ``donate_argnames``: arguments
    whose memory the results may take over; they must not be used afterwards.  ``in_shardings``,
    ``out_shardings``: how arguments and results are spread over devices.

    Raises: ValueError for argument numbers or names the function does not have, or a device with
    a backend.

    >>> jax.jit(lambda x: x * 2 + 1)(jnp.array([1, 2]))
    Array([3, 5], dtype=int32)
    >>> power = jax.jit(lambda x, n: x ** n, static_argnums=1)
    >>> power(jnp.array([1, 2]), 3)
    Array([1, 8], dtype=int32)
    """
    options = {
        "in_shardings": in_shardings, "out_shardings": out_shardings,
        "static_argnums": static_argnums, "static_argnames": static_argnames,
        "donate_argnums": donate_argnums, "donate_argnames": donate_argnames,
        "keep_unused": keep_unused, "device": device, "inline": inline,
        "compiler_options": compiler_options}
    if fun is _NOT_GIVEN:
        return functools.partial(jit, backend=backend, **options)
    for what, given in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
        if given is None:
            continue
        if backend is not None or device is not None:
            raise ValueError(f"If backend or device is specified on jit, then {what} should not be "
                             "specified. Leave backend and device out.")
        refuse_devices(what, given)
    if backend is not None or device is not None:
        warnings.warn(
            "backend and device argument on jit is deprecated. Place the arguments instead: "
            "jax.device_put(x, device).", DeprecationWarning, stacklevel=2)
    if backend is not None:
        if device is not None:
            raise ValueError("can't specify both a device and a backend for jit, got "
                             f"{device=} and {backend=}. A device has its backend.")
        options["device"] = devices.backend(backend).local_devices()[0]
    return make_jit(fun, **options)


@boundary
def _lower(fast: Any, *args: Any, **kwargs: Any) -> Lowered:
    """Return the StableHLO of a jitted function for these arguments."""
    return stages.trace_call(fast.info, args, kwargs).lower()


@boundary
def _trace(fast: Any, *args: Any, **kwargs: Any) -> Traced:
    """Return the program of a jitted function for these arguments."""
    return stages.trace_call(fast.info, args, kwargs)


@boundary
def _eval_shape(fast: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the types of the results of a jitted function for these arguments."""
    return stages.trace_call(fast.info, args, kwargs).out_info


def clear_one(fast: Any) -> None:
    """Forget what was traced and compiled for one jitted function."""
    table_of(fast.info.fun, "program").clear()
    fast.info.entries.clear()
    fast._clear_cache()


# Every jitted function has them, those of the library (``jnp.sin.lower``) included.
for _name, _method in (("lower", _lower), ("trace", _trace), ("eval_shape", _eval_shape),
                       ("clear_cache", clear_one)):
    setattr(_jaxlib.PjitFunction, _name, _method)


def remade(fun: Callable, given: dict[str, Any]) -> Any:
    """Return ``jit(fun, **given)``: a copy of a jitted function."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return jit(fun, **given)
