"""Which transfers and threads does a program allow itself?

``transfer_guard`` and related functions decide what happens when bytes move between host and
devices by themselves; jaxlib's C++ watches, here it gets the settings.  Which setting calls
which function is in ``_wiring``.

Read before: ``core.config``.  Read after: ``jit.transfers``.
Invariant: jaxlib's state is that of the settings, for the thread and for the process
(tests/kernel/test_config_effects.py).
Source: the documentation of jax.transfer_guard, jax.array_garbage_collection_guard.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from saem import _jaxlib
from saem.core import config
from saem.core.config import SETTINGS

DIRECTIONS = ("host_to_device", "device_to_device", "device_to_host")
_guards = _jaxlib.guard_lib


def _level(levels: Any, value: Any) -> Any:
    """Return jaxlib's form of a setting's value, None if nothing was set."""
    return None if value in (None, _jaxlib.unset) else getattr(levels, value.upper())


def set_transfer_guards() -> None:
    """Set in jaxlib which transfers are watched."""
    for state, value_of in (
            (_guards.thread_local_state(), lambda s: s.get_local()),
            (_guards.global_state(), lambda s: s.get_global())):
        for direction in DIRECTIONS:
            value = value_of(SETTINGS["jax_transfer_guard_" + direction])
            setattr(state, direction, _level(_guards.TransferGuardLevel, value))


def set_transfer_guard() -> None:
    """Set all directions for the process, when the setting for all of them was."""
    for direction in DIRECTIONS:
        SETTINGS["jax_transfer_guard_" + direction].set_global(config.transfer_guard.get_global())
    set_transfer_guards()


def set_garbage_guard() -> None:
    """Set in jaxlib what to do with arrays that die in reference cycles."""
    setting = config.array_garbage_collection_guard
    for state, value in ((_guards.thread_local_state(), setting.get_local()),
                         (_guards.global_state(), setting.get_global())):
        state.garbage_collect_array = _level(_guards.GarbageCollectionGuardLevel, value)


def set_thread_guard() -> None:
    _guards.update_thread_guard_global_state(config.thread_guard.value)


# The values of the environment.
if config.transfer_guard.value is not None:
    for _direction in DIRECTIONS:
        if SETTINGS["jax_transfer_guard_" + _direction].value is None:
            SETTINGS["jax_transfer_guard_" + _direction].set_global(config.transfer_guard.value)
if any(SETTINGS["jax_transfer_guard_" + _direction].value for _direction in DIRECTIONS):
    set_transfer_guards()
if config.array_garbage_collection_guard.value is not None:
    set_garbage_guard()
if config.thread_guard.value:
    set_thread_guard()


@contextlib.contextmanager
def transfer_guard(new_val: str) -> Iterator[None]:
    """Watch transfers in all directions: 'allow', 'log', 'disallow', or the last two '_explicit'.

    'log' and 'disallow' are of implicit transfers; with '_explicit' those of ``device_put``
    and ``device_get`` are meant too.
    """
    with contextlib.ExitStack() as scopes:
        for direction in DIRECTIONS:
            scopes.enter_context(SETTINGS["jax_transfer_guard_" + direction](new_val))
        yield


def explicitly(name: str, function: Callable, *args: Any) -> Any:
    """Return ``function(*args)``; transfers in it are explicit ones, as ``name`` says."""
    return _under({name: True}, function, *args)


def unwatched(function: Callable, *args: Any) -> Any:
    """Return ``function(*args)``, of whose transfers no guard hears: the engine's own.

    Such are the constants of a program, which are a part of it, and a buffer of an array that gets
    another array around it where it lies.
    """
    return _under(_UNWATCHED, function, *args)


_ALLOW = _guards.TransferGuardLevel.ALLOW
_UNWATCHED = {"host_to_device": _ALLOW, "device_to_device": _ALLOW}


def _under(settings: dict[str, Any], function: Callable, *args: Any) -> Any:
    """Return ``function(*args)``; jaxlib's state for this thread is ``settings`` as long.

    It is no context manager: where an interrupt comes as one is left, it would stay entered.
    """
    state = _guards.thread_local_state()
    before = {name: getattr(state, name) for name in settings}
    try:
        for name, value in settings.items():
            setattr(state, name, value)
        return function(*args)
    finally:
        for name, value in before.items():
            setattr(state, name, value)
