"""Which libraries must be loaded before a program that calls their routines is compiled or loaded?

XLA finds a routine by the name in a custom call, ``lapack_spotrf_ffi``, among those registered with
it.  LAPACK takes 0.4 s to register, so that is done for the first program that calls it.  A routine
is named after its library, up to the first underscore.

Read before: ``compile.text``.  Read after: ``compile.executables``, ``export.executable_file``.
Invariant: a program finds its routines in a process that has not lowered it, too
(tests/kernel/test_libraries.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from saem import _jaxlib
from saem.placement import plugins

# By the name of a library: the platform whose programs call it, and what loads it.
LOADERS: dict[str, tuple[str, Callable[[], None]]] = {
    "lapack": ("cpu", _jaxlib.load_lapack),
    "cuhybrid": ("cuda", plugins.load_hybrid),
}


def libraries_of(targets: Iterable[str]) -> set[str]:
    """Return the libraries, of those that must be loaded, to which the routines ``targets`` belong.

    >>> libraries_of(["lapack_spotrf_ffi", "Sharding"])
    {'lapack'}
    """
    return LOADERS.keys() & {target.partition("_")[0] for target in targets}


def load(libraries: Iterable[str], platform: str) -> None:
    """Load those of ``libraries`` that programs for ``platform`` call."""
    for name in LOADERS.keys() & set(libraries):
        wanted, loader = LOADERS[name]
        if wanted == platform:
            loader()
