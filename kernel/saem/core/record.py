"""How are small immutable values made?

A ``Record`` is what a frozen dataclass is: annotated fields, a constructor, equality, hash, repr,
and what ``dataclasses`` can read of it (``fields``, ``replace``, ``asdict``).  The standard
decorator writes and compiles several functions for each class, some 0.5 ms, and the engine has 150
such classes: that was a third of its import.  Here the functions are written once, for all.  They
are about as fast, because the dictionary of a record holds its fields and nothing else.

Read before: nothing.  Read after: ``core.primitive``, ``core.events``.
Invariant: a record's ``__dict__`` holds its fields, all of them, in their order; it never changes.
Source: the documentation of ``dataclasses``; PEP 681 (how type checkers know the constructor).
"""

from __future__ import annotations

import dataclasses
import functools
from types import SimpleNamespace
from typing import Any, ClassVar, dataclass_transform


class _Fields:
    """What ``dataclasses`` looks for on a class; made when first read."""

    def __get__(self, instance: Any, owner: type[Record]) -> dict[str, dataclasses.Field]:
        return _fields(owner)


@functools.cache
def _fields(cls: type[Record]) -> dict[str, dataclasses.Field]:
    given = cls._defaults
    described = [
        (name, cls._kinds[name],
         given[name] if type(given.get(name)) is dataclasses.Field
         else dataclasses.field(default=given.get(name, dataclasses.MISSING)))
        for name in cls._names
    ]
    made: Any = dataclasses.make_dataclass(cls.__name__, described, kw_only=True)
    return made.__dataclass_fields__


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
class Record:
    """Base of immutable values: subclasses annotate their fields, and may give defaults."""

    __slots__ = ()
    _names: ClassVar[tuple[str, ...]] = ()
    _kinds: ClassVar[dict[str, Any]] = {}
    _defaults: ClassVar[dict[str, Any]] = {}
    _endings: ClassVar[tuple[Any, ...]] = ()
    __dataclass_fields__: ClassVar[Any] = _Fields()
    __dataclass_params__: ClassVar[Any] = SimpleNamespace(frozen=True)
    __match_args__: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, kw_only: bool = False, eq: bool = True) -> None:
        """Collect the fields.  ``kw_only`` is for type checkers (defaults may come first).

        Without ``eq`` a record is equal to itself alone, whatever its fields hold.
        """
        if not eq:
            cls.__eq__, cls.__hash__ = object.__eq__, object.__hash__
        own = cls.__dict__
        new = {name: kind for name, kind in own.get("__annotations__", {}).items()
               if "ClassVar" not in str(kind)}
        if new:
            cls._kinds = {**cls._kinds, **new}
            cls._names = cls.__match_args__ = tuple(cls._kinds)
            cls._defaults = {**cls._defaults, **{n: own[n] for n in new if n in own}}
            cls._endings = tuple(_trailing_defaults(cls._names, cls._defaults))

    def __init__(self, *args: Any, **kwargs: Any):
        names, endings = self._names, self._endings
        values = args + endings[len(endings) + len(args) - len(names):]
        if kwargs or len(values) != len(names):
            values = complete(type(self), args, kwargs)
        self.__dict__.update(zip(names, values))

    def __eq__(self, other: Any) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        shown = ", ".join([f"{name}={value!r}" for name, value in self.__dict__.items()])
        return f"{type(self).__qualname__}({shown})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _trailing_defaults(names: tuple[str, ...], defaults: dict[str, Any]) -> list[Any]:
    """Return the defaults that a call by position may leave out."""
    found: list[Any] = []
    for name in reversed(names):
        value = defaults.get(name, dataclasses.MISSING)
        if value is dataclasses.MISSING or type(value) is dataclasses.Field:
            break
        found.insert(0, value)
    return found


def complete(cls: type[Record], args: tuple, kwargs: dict[str, Any]) -> tuple:
    """Return the values of all fields of ``cls``, in order, from a call's arguments and defaults.

    Raises: TypeError naming the fields that are missing, unknown, given twice, or too many.
    """
    names, defaults = cls._names, cls._defaults
    values = list(args)
    missing = []
    for name in names[len(args):]:
        if name in kwargs:
            values.append(kwargs.pop(name))
        elif name in defaults:
            value = defaults[name]
            if type(value) is dataclasses.Field:
                value = value.default_factory()  # type: ignore[operator]
            values.append(value)
        else:
            missing.append(name)
    if missing:
        raise TypeError(f"{cls.__name__}() needs {', '.join(missing)}")
    if len(args) > len(names):
        raise TypeError(f"{cls.__name__}() takes {len(names)} values, but got {len(args)}")
    for name in kwargs:
        raise TypeError(f"{cls.__name__}() got {name!r} twice" if name in names else
                        f"{cls.__name__}() has no field {name!r}; it has {', '.join(names)}")
    return tuple(values)
