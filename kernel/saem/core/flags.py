"""How does a command line set what ``saem.config`` holds?

``--jax_enable_x64`` and ``--jax_platforms=cpu`` can be read at once from ``sys.argv``, or become
flags of ``absl``, whose ``app.run(main)`` reads the command line of a program and refuses unknown
flags.

Read after: ``core.config``.
Invariant: both ways set the same values, and neither touches what the command line does not name
(tests/kernel/test_flags.py).
Source: the documentation of absl.flags and absl.app; observed behaviour of JAX 0.10.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saem.core.lazy import later

flags: Any = later("absl.flags")
app: Any = later("absl.app")


def assignments(settings: dict[str, Any], words: list[str]) -> dict[str, str | bool]:
    """Return the values that ``words`` of a command line give ``settings``: text by name, or bools.

    A truth value is also taken from ``--nojax_…``; other words are the program's own.
    """
    return dict(filter(None, (_assignment(settings, word) for word in words)))


def _assignment(settings: dict[str, Any], word: str) -> tuple[str, str | bool] | None:
    name, given, value = word.removeprefix("-").removeprefix("-").partition("=")
    if not word.startswith("-"):
        return None
    if name in settings and (given or settings[name].declared.kind == "bool"):
        return name, value if given else True
    if name.startswith("no") and name[2:] in settings and not given:
        return name[2:], False
    return None


def parse(settings: dict[str, Any], words: list[str]) -> None:
    """Give flags of absl that are ``settings`` what a command line names, if nothing did before.

    The program's own flags keep their defaults: it reads them itself.
    """
    if not flags.FLAGS.is_parsed():
        flags.FLAGS([words[0], *(word for word in words[1:] if _assignment(settings, word))])


def define(settings: dict[str, Any], update: Callable[[str, Any], None]) -> None:
    """Make each setting a flag of absl; when ``app.run`` has read them, ``update`` those given.

    Raises: ModuleNotFoundError where absl is not installed.
    """
    if "jax_enable_x64" in flags.FLAGS:
        return
    makers = {"bool": flags.DEFINE_bool, "int": flags.DEFINE_integer, "float": flags.DEFINE_float}
    for name, setting in settings.items():
        declared = setting.declared
        if declared.choices:
            flags.DEFINE_enum(name, setting.value, list(declared.choices), declared.help)
        elif declared.kind == "device":
            flags.DEFINE_string(name, None, declared.help)
        else:
            makers.get(declared.kind, flags.DEFINE_string)(name, setting.value, declared.help)

    def take() -> None:
        for name in settings:
            if flags.FLAGS[name].present:
                update(name, flags.FLAGS[name].value)

    if flags.FLAGS.is_parsed():
        take()
    else:
        app.call_after_init(take)
