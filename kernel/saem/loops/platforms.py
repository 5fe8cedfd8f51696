"""How does a program do one thing on a GPU and another on a CPU?

``platform_dependent`` writes all ways into the program, as branches of a ``cond`` whose number is
the equation ``platform_index``; when the program is lowered for a platform, only the branch of that
platform is.

Read before: ``loops.conditional``.
Invariant: which way is taken is decided by where the program runs, not by where it was traced
(tests/kernel/test_platforms.py).
Source: the documentation of jax.lax.platform_dependent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saem._jaxlib import ArrayImpl
from saem.compile.arrays import devices
from saem.core import errors, tree
from saem.core.avals import ShapedArray
from saem.core.frames import boundary
from saem.core.primitive import NOT_LINEAR, Primitive, primitive
from saem.core.trace import bind, runs_at_once
from saem.loops.conditional import INDEX, Platforms, choose, platform_number
from saem.placement.devices import default_device, lowering_platform

_KNOWN = {"cpu": ("cpu",), "gpu": ("cuda", "rocm"), "cuda": ("cuda",), "rocm": ("rocm",),
          "tpu": ("tpu",)}


@primitive("platform_index")
class PlatformIndex(Primitive):
    """The number of the entry of ``platforms`` that names the platform; None names all others."""

    platforms: Platforms

    def typing(self):
        return ShapedArray((), INDEX)

    def evaluate(self):
        return np.asarray(platform_number(self.platforms, "cpu"), INDEX)

    def lower(self, ctx):
        number = platform_number(self.platforms, ctx.module.platform)
        return ctx.constant(np.asarray(number, INDEX), ShapedArray((), INDEX))

    def jvp(self, primals, tangents):
        return bind(self), None

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        return bind(self), None


def _platform_of(args: tuple) -> str:
    """Return the platform on which an operation on ``args`` runs now."""
    committed = [x for x in tree.leaves(args) if isinstance(x, ArrayImpl) and x._committed]
    device = next(iter(devices(committed[0]))) if committed else default_device()
    return lowering_platform(device)


@boundary
def platform_dependent(*args: Any, default: Callable | None = None,
                       **per_platform: Callable) -> Any:
    """Return what the function for this platform (``cpu=f, gpu=g``) makes of ``args``.

    On platforms that are not named it is ``default``.  Outside of programs, where the platform is
    known, its function is called with ``args`` as they are.
    Raises: NotImplementedError where nothing fits, TypeError for a branch that cannot be called.

    >>> lax.platform_dependent(jnp.array([1.]), cpu=lambda x: x + 1, default=lambda x: x)
    Array([2.], dtype=float32)
    """
    platforms: list[Any] = [_KNOWN.get(name, (name,)) for name in per_platform]
    branches = list(per_platform.values())
    if default is not None:
        platforms.append(None)
        branches.append(default)
    if not branches:
        raise errors.explained(
            NotImplementedError, "platform.C2", "platform_dependent needs a function.",
            advice="Pass default= or one named after a platform.")
    for name, branch in zip([*per_platform, "default"], branches):
        if not callable(branch):
            raise errors.explained(
                errors.ArgumentTypeError, "platform.C3",
                f"lax.platform_dependent: the '{name}' branch must be a callable.",
                advice=f"Pass a function of the operands, such as {name}=lambda x: x.")
    named = tuple(platforms)
    if runs_at_once():
        return branches[platform_number(named, _platform_of(args))](*args)
    return choose("platform_dependent", bind(PlatformIndex(named)), branches, args,
                  [*per_platform, *(["default"] if default else [])], range(len(branches)), named)


__all__ = ["PlatformIndex", "platform_dependent"]
