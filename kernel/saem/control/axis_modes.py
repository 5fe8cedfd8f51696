"""Who decides how arrays are cut: the partitioner, or the types of a stretch of program?

``auto_axes`` and ``explicit_axes`` mark such a stretch.  Here the partitioner decides along both
kinds of axes, so what remains of them is where results, or arguments, are asked to lie.

Read before: ``control.placing``.
Invariant: a mark changes where values lie, never their numbers.
Source: the documentation of jax.sharding.auto_axes and explicit_axes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from saem.control.placing import with_sharding_constraint
from saem.core import errors
from saem.core.record import Record


class AbstractDevice(Record):
    """A kind of device that need not be there."""

    device_kind: str
    num_cores: int | None
    platform: str


class ManualAxisType(Record):
    """Along which manual axes a value varies, and along which it waits for a sum."""

    varying: frozenset = frozenset()
    unreduced: frozenset = frozenset()
    reduced: frozenset = frozenset()

    def __init__(self, *, varying: Any = (), unreduced: Any = (), reduced: Any = ()):
        super().__init__(frozenset(varying), frozenset(unreduced), frozenset(reduced))


def _wanted(name: str, given: Any, kwargs: dict[str, Any]) -> Any:
    found = kwargs.pop(name, given)
    if found is None:
        raise errors.explained(
            errors.ArgumentTypeError, "axes.C1", f"Missing required keyword argument: '{name}'",
            advice=f"Say it where the function is marked or where it is called: {name}=P(...).")
    return found


def auto_axes(f: Callable | None = None, /, *, axes: Any = None, out_sharding: Any = None
              ) -> Callable:
    """Let the partitioner place what ``f`` computes; its results lie as ``out_sharding`` says.

    Raises: TypeError when called, if ``out_sharding`` is given neither here nor then.
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    def marked(*args: Any, **kwargs: Any) -> Any:
        wanted = _wanted("out_sharding", out_sharding, kwargs)
        return with_sharding_constraint(f(*args, **kwargs), wanted)

    return marked


def explicit_axes(f: Callable | None = None, /, *, axes: Any = None, in_sharding: Any = None
                  ) -> Callable:
    """Let ``f`` take its arguments placed as ``in_sharding`` says.

    Raises: TypeError when called, if ``in_sharding`` is given neither here nor then.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f)
    def marked(*args: Any, **kwargs: Any) -> Any:
        wanted = _wanted("in_sharding", in_sharding, kwargs)
        return f(*with_sharding_constraint(args, wanted), **kwargs)

    return marked
