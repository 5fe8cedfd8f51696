"""Which functions compiled elsewhere can a program call?  (``jax.ffi``)

Write one in C++ with the headers in ``include_dir()``, load it with ``ctypes``, register it under a
name, and call that with ``ffi_call``:

    library = ctypes.cdll.LoadLibrary("./librms_norm.so")
    jax.ffi.register_ffi_target("rms_norm", jax.ffi.pycapsule(library.RmsNorm), platform="cpu")
    y = jax.ffi.ffi_call("rms_norm", jax.ShapeDtypeStruct(x.shape, x.dtype))(x, eps=np.float32(0))

Read before: ``effects.foreign_calls``.
Invariant: what is registered here is kept by XLA until the process ends.
Source: the documentation of jax.ffi.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any

from saem import _jaxlib
from saem.core import errors
from saem.effects.foreign_calls import FfiCall, checked_aliases, ffi_call, frozen
from saem.interpreters.mlir import LoweringRule


def pycapsule(funcptr: Any) -> Any:
    """Return the capsule that holds a function loaded with ``ctypes``."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(ctypes.cast(funcptr, ctypes.c_void_p), None, None)


def include_dir() -> str:
    """Return the folder of the headers ``xla/ffi/api/ffi.h`` and ``c_api.h``."""
    return os.path.join(os.path.dirname(_jaxlib.jaxlib.__file__), "include")


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1,
                        **kwargs: Any) -> None:
    """Let programs on ``platform`` call ``fn`` by ``name``.

    ``fn`` is a capsule (see ``pycapsule``), or a dict of them by stage: instantiate, prepare,
    initialize, execute.  ``api_version`` 0 is XLA's older interface.

    Raises: JaxRuntimeError for a non-capsule, or another function under the same name.
    """
    _jaxlib.register_call_target(name, fn, platform, api_version, **kwargs)


def register_ffi_type(name: str, type_registration: Mapping[str, Any], platform: str = "cpu"
                      ) -> None:
    """Let functions keep state of a type of their own between calls.

    ``type_registration`` holds capsules: 'type_id', and 'type_info' with how to delete it.
    """
    _jaxlib.register_custom_type(name, type_registration, platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Refuse: jaxlib has no such registration any more.

    Raises: ValueError.
    """
    raise errors.explained(
        errors.ArgumentError, "ffi.C1",
        "register_ffi_type_id is not supported after jaxlib version 381.",
        advice="Use jax.ffi.register_ffi_type(name, {'type_id': …, 'type_info': …}).")


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Say that ``name`` treats slices along leading axes apart, so that they may be divided among
    devices.
    """
    _jaxlib.register_as_batch_partitionable(name)


class ForeignRule(LoweringRule):
    """The lowering rule of a primitive that is one call of a registered function."""

    def __init__(self, target: str, operand_layouts: Any, result_layouts: Any, config: Any,
                 has_side_effect: bool, api_version: int, aliases: Mapping[int, int] | None):
        self.target = target
        self.layouts = operand_layouts, result_layouts
        self.config = config
        self.has_side_effect = has_side_effect
        self.api_version = api_version
        self.aliases = aliases

    def written(self, writer: Any, *operands: str, **params: Any) -> list[str]:
        """Write the call: ``params`` of the primitive are attributes of it."""
        legacy = self.config if isinstance(self.config, str) else None
        named = {} if legacy is not None else {**(self.config or {}), **params}
        orders = [tuple(tuple(range(len(a.shape)))[::-1] if o is None else tuple(o)
                        for o, a in zip(given or (None,) * len(avals), avals))
                  for given, avals in zip(self.layouts, (writer.in_avals, writer.out_avals))]
        call = FfiCall(
            tuple(sorted((k, frozen(k, v)) for k, v in named.items())), self.api_version,
            self.has_side_effect, orders[0],
            checked_aliases(self.aliases, writer.in_avals, writer.out_avals), legacy, orders[1],
            tuple(writer.out_avals), self.target, None)
        return call.lower(writer, *operands)


def ffi_lowering(call_target_name: str, *, operand_layouts: Sequence[Any] | None = None,
                 result_layouts: Sequence[Any] | None = None,
                 backend_config: Mapping[str, Any] | str | None = None,
                 skip_ffi_layout_processing: bool = False, has_side_effect: bool = False,
                 api_version: int = 4, operand_output_aliases: Mapping[int, int] | None = None
                 ) -> ForeignRule:
    """Return the lowering rule, for a primitive of one's own, that calls a registered function.

    Layouts are tuples, minor to major.  Give it to ``jax.interpreters.mlir.register_lowering``.
    """
    return ForeignRule(call_target_name, operand_layouts, result_layouts, backend_config,
                       has_side_effect, api_version, operand_output_aliases)


build_ffi_lowering_function = ffi_lowering

__all__ = ["build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir", "pycapsule",
           "register_ffi_target", "register_ffi_target_as_batch_partitionable",
           "register_ffi_type", "register_ffi_type_id"]
