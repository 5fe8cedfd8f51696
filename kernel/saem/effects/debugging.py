"""How does a program print?

``debug.print`` is an equation that carries a format string; its text is made in Python when the
values are known.  The string is checked when the call is traced, where the mistake was written.

Read before: ``effects.callbacks``.  Read after: ``effects.breakpoints``, ``saem.debug``.
Invariant: what is printed under a transformation are the primal values, once per example
(tests/kernel/test_debugging.py).
Source: the documentation of jax.debug.print; Python's "Format String Syntax".
"""

from __future__ import annotations

import copy
import functools
import logging
import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from saem.core import effects, errors, source, tree
from saem.core.primitive import primitive
from saem.core.trace import bind
from saem.effects.callbacks import Debugging, call_now, separate
from saem.effects.host_calls import with_static
from saem.ops import sharding_rules, sum_rules

logger = logging.getLogger("saem.debug")


@primitive("debug_print")
class DebugPrint(Debugging):
    """Print values by a format string."""

    fmt: str
    has_placeholders: bool
    in_tree: Any
    logging_record: logging.LogRecord | None = None
    np_printoptions: tuple[tuple[str, Any], ...] = ()
    ordered: bool = False
    partitioned: bool = False
    static_args: tuple[tuple[int, Any], ...] = ()
    threaded: bool = False

    eager = call_now
    shard_results = sharding_rules.elsewhere
    sum_results = sum_rules.elsewhere

    @property
    def effects(self):
        return frozenset({effects.ORDERED_DEBUG if self.ordered else effects.DEBUG})

    def host(self, *arrays):
        args, kwargs = self.in_tree.unflatten(with_static(arrays, self.static_args))
        with np.printoptions(**dict(self.np_printoptions)):
            text = self.fmt.format(*args, **kwargs) if self.has_placeholders else \
                " ".join([self.fmt, *map(str, args)])
        if self.logging_record is None:
            print(f"{text}\n", end="")  # in one piece: several devices may print at once
        elif logger.isEnabledFor(self.logging_record.levelno):
            record = copy.copy(self.logging_record)
            record.msg = text
            logger.handle(record)

    def host_name(self):
        return repr(self.fmt)


class _Checker(string.Formatter):
    """Formats nothing, and finds placeholders without arguments and arguments without use."""

    def __init__(self, fmt: str):
        self.fmt = fmt
        self.where = source.here()  # asked now: Python's own formatter will stand between

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        # Only whether the argument exists: indexing a traced array would be an operation.
        first = re.split(r"[.\[]", field_name, maxsplit=1)[0]
        key: int | str = int(first) if first.isdigit() else first
        return self.get_value(key, args, kwargs), key

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        return value

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [x for i, x in enumerate(args) if i not in used_args]
        if unused:
            raise errors.explained(
                errors.ArgumentError, "debug_print.C1",
                f"Unused positional arguments to `jax.debug.print`: {unused}",
                advice=f"The format string {self.fmt!r} has fewer placeholders than arguments.",
                where=self.where)
        missed = [k for k in kwargs if k not in used_args]
        if missed:
            raise errors.explained(
                errors.ArgumentError, "debug_print.C2",
                f"Unused keyword arguments to `jax.debug.print`: {missed}. You may be passing an "
                'f-string (i.e, `f"{x}"`) into `jax.debug.print` and instead should pass in a '
                "regular string.",
                advice=f"The format string {self.fmt!r} does not name them.", where=self.where)


def has_placeholders(fmt: str) -> bool:
    """Return whether ``fmt`` asks for an argument.

    Raises: ValueError if it is no format string.
    """
    return any(name is not None for _, name, _, _ in string.Formatter().parse(fmt))


def debug_print(fmt: str | None = None, *args: Any, ordered: bool = False,
                partitioned: bool = False, skip_format_check: bool = False,
                _use_logging: bool = False, **kwargs: Any) -> Any:
    """Print ``fmt.format(*args, **kwargs)`` when the program runs; returns None.

    With ``ordered``, prints appear in the order of the program.  Without ``fmt`` it returns a
    function that takes it.

    Raises: TypeError if ``fmt`` is no string; IndexError, KeyError or ValueError if it does not fit
        the arguments.

    >>> jax.debug.print("x is {x}", x=jnp.array([1, 2]))
    x is [1 2]
    """
    if fmt is None:
        return functools.partial(
            debug_print, ordered=ordered, partitioned=partitioned,
            skip_format_check=skip_format_check, _use_logging=_use_logging)
    if not isinstance(fmt, str):
        raise errors.explained(
            errors.ArgumentTypeError, "debug_print.C3",
            f"expected str, got {type(fmt).__name__}",
            advice='The first argument is a format string: jax.debug.print("x = {}", x).')
    formats = has_placeholders(fmt)
    if not skip_format_check:
        _Checker(fmt).vformat(fmt, args, kwargs)
    leaves, in_tree = tree.flatten((args, kwargs))
    arrays, static = separate(leaves)
    prim = DebugPrint(fmt, formats, in_tree, log_record() if _use_logging else None,
                      tuple(np.get_printoptions().items()), ordered, partitioned, static)
    bind(prim, *arrays)
    return None


def log_record() -> logging.LogRecord:
    """Return the record of a message from the nearest line of user code."""
    where = source.here()
    file, line = (where.file, where.line) if where is not None else ("", 0)
    return logging.LogRecord(logger.name, logging.INFO, file, line, "", (), None)


log = functools.partial(debug_print, _use_logging=True)
