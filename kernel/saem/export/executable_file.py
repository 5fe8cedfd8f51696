"""How does a user keep a compiled program in a file?

``serialize`` gives the machine code of a ``Compiled`` as bytes, which the same jaxlib on the same
kind of machine loads without compiling.  Loading runs what the bytes hold: load only your own.

Read before: ``jit.stages``, ``export.file_format``.
Invariant: a loaded program answers and refuses as the one that was compiled
(tests/kernel/test_executables.py).
Source: the documentation of jax.experimental.serialize_executable.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile import dispatch
from saem.compile.executables import compile_options
from saem.compile.lowering import Lowering
from saem.compile.text import Module
from saem.core.avals import ShapedArray
from saem.core.record import Record
from saem.export.file_format import aval_from_json, aval_to_json, seal, unseal
from saem.jit.stages import Compiled, Types
from saem.placement import devices

MAGIC = b"saem executable "
VERSION = 1


class Loaded(Types, Record):
    """The types of a program that was read from bytes."""

    name: str
    in_tree: Any
    out_tree: Any
    flat_in: tuple[ShapedArray, ...]
    flat_out: tuple[ShapedArray, ...]
    donated: tuple[bool, ...]
    named: tuple[str, ...]

    def paths(self) -> list[str]:
        return list(self.named)


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """Return a compiled program as bytes, and the structures of its arguments and results.

    Raises: ValueError if it runs on several devices or calls Python; JaxRuntimeError if the
    platform cannot write programs.
    """
    program, call = compiled._program, compiled._call
    if program.device is None:
        raise ValueError(f"serialize: {call.name} runs on several devices, and only programs on "
                         "one can be written. Use jax.export, which takes several.")
    if program.lowered.module.callbacks:
        raise ValueError(f"serialize: {call.name} calls Python (a callback or debug.print), which "
                         "cannot be written. Leave the calls out of the compiled function.")
    consts = [np.asarray(c) for c in program.consts]
    code = program.executable.serialize()
    head = json.dumps({
        "name": call.name, "jaxlib": _jaxlib.__version__,
        "platform": program.device.platform, "device": program.device.id,
        "in": [typed(a) for a in call.flat_in], "out": [typed(a) for a in call.flat_out],
        "donated": list(call.donated), "kept": list(program.kept), "paths": call.paths(),
        "committed": program.committed, "code": len(code),
        "consts": [aval_to_json(ShapedArray(c.shape, c.dtype)) for c in consts],
    })
    body = head.encode() + b"\n" + code + b"".join(c.tobytes() for c in consts)
    return seal(MAGIC, VERSION, body), call.in_tree, call.out_tree


def deserialize_and_load(serialized: bytes, in_tree: Any, out_tree: Any,
                         backend: Any = None, execution_devices: Sequence[Any] | None = None
                         ) -> Compiled:
    """Return the program that ``serialize`` wrote, loaded on one device.

    That is the first of ``execution_devices``, else the one it was compiled for if it is here.

    Raises: ValueError for other bytes, or those of another jaxlib or platform.
    """
    body = unseal(MAGIC, VERSION, bytes(serialized), "executable", "serialize_executable.serialize")
    text, _, rest = body.partition(b"\n")
    head = json.loads(text)
    here = execution_devices or devices.local_devices(backend=backend)
    device = here[0] if execution_devices else next(
        (d for d in here if d.id == head["device"]), here[0])
    for what, have in (("jaxlib", _jaxlib.__version__), ("platform", device.platform)):
        if head[what] != have:
            raise ValueError(f"deserialize_and_load: {head['name']} was compiled for {what} "
                             f"{head[what]}, but here is {have}. Compile it again, or use "
                             "jax.export, which lasts longer.")
    code, rest = rest[:head["code"]], rest[head["code"]:]
    consts = []
    for form in head["consts"]:
        aval = aval_from_json(form)
        size = math.prod(aval.shape) * aval.dtype.itemsize
        consts.append(np.frombuffer(rest[:size], aval.dtype).reshape(aval.shape))
        rest = rest[size:]
    call = Loaded(head["name"], in_tree, out_tree, tuple(map(from_typed, head["in"])),
                  tuple(map(from_typed, head["out"])), tuple(head["donated"]),
                  tuple(head["paths"]))
    executable = device.client.deserialize_executable(
        code, _jaxlib.DeviceList((device,)), compile_options([device], {}))
    kept = tuple(head["kept"])
    lowered = Lowering(
        module=Module(call.name), out_avals=call.flat_out, kept=kept,
        in_avals=tuple(a for a, k in zip(call.flat_in, kept) if k), consts=tuple(consts),
        donated=tuple(d for d, k in zip(call.donated, kept) if k), name=call.name)
    return Compiled(call, dispatch.Program(executable, lowered, device, head["committed"]))


def typed(aval: ShapedArray) -> list[Any]:
    return [aval_to_json(aval), aval.weak_type]


def from_typed(form: list[Any]) -> ShapedArray:
    return aval_from_json(form[0]).update(weak_type=form[1])
