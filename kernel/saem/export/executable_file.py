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
from saem.compile import dispatch, libraries
from saem.compile.device_assignment import Spread
from saem.compile.executables import compile_options
from saem.compile.lowering import Lowering
from saem.compile.text import Module
from saem.core.avals import ShapedArray
from saem.core.record import Record
from saem.export.file_format import (
    aval_from_json,
    aval_to_json,
    seal,
    sharding_from_json,
    sharding_to_json,
    unseal,
)
from saem.jit.stages import Compiled, Types
from saem.placement import devices
from saem.placement.meshes import AxisType, Mesh
from saem.placement.shardings import NamedSharding

MAGIC = b"saem executable "
VERSION = 2


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

    Raises: ValueError if it calls Python, or names memories or layouts; JaxRuntimeError if the
    platform cannot write programs.
    """
    program, call = compiled._program, compiled._call
    if program.lowered.terms is not None:
        raise ValueError(f"serialize: {call.name} names memories or layouts of arguments or "
                         "results, which cannot be written. Leave them out.")
    if program.lowered.module.callbacks:
        raise ValueError(f"serialize: {call.name} calls Python (a callback or debug.print), which "
                         "cannot be written. Leave the calls out of the compiled function.")
    consts = [np.asarray(c) for c in program.consts]
    code = compiled._code()
    used = program.executable.local_devices()
    head = json.dumps({
        "name": call.name, "jaxlib": _jaxlib.__version__, "platform": used[0].platform,
        "in": [typed(a) for a in call.flat_in], "out": [typed(a) for a in call.flat_out],
        "donated": list(call.donated), "kept": list(program.kept), "paths": call.paths(),
        "committed": program.committed, "libraries": sorted(program.lowered.module.libraries),
        "code": len(code), **place_to_json(program),
        "consts": [aval_to_json(ShapedArray(c.shape, c.dtype)) for c in consts],
    })
    body = head.encode() + b"\n" + code + b"".join(c.tobytes() for c in consts)
    return seal(MAGIC, VERSION, body), call.in_tree, call.out_tree


def place_to_json(program: dispatch.Program) -> dict[str, Any]:
    """Return the devices of a program; of several, the mesh and the shardings on it, too."""
    if program.device is not None:
        return {"devices": [program.device.id], "mesh": None}
    shardings: list[Any] = [*program.ins, *program.outs]
    mesh = shardings[0].mesh
    return {"devices": [d.id for d in mesh.devices.flat],
            "mesh": [list(mesh.axis_sizes), list(mesh.axis_names),
                     [kind.name for kind in mesh.axis_types]],
            "ins": [sharding_to_json(s) for s in program.ins],
            "outs": [sharding_to_json(s) for s in program.outs]}


def place_from_json(head: dict[str, Any], used: Sequence[Any]) -> Any:
    """Return the device or Spread that ``place_to_json`` wrote, on the devices ``used``."""
    if head["mesh"] is None:
        return used[0]
    sizes, names, kinds = head["mesh"]
    mesh = Mesh(np.array(used, object).reshape(sizes), tuple(names),
                axis_types=tuple(AxisType[kind] for kind in kinds))
    ins, outs = ([NamedSharding(mesh, sharding_from_json(form).spec) for form in head[which]]
                 for which in ("ins", "outs"))
    given = iter(ins)
    return Spread(mesh, tuple(next(given) if kept else None for kept in head["kept"]), tuple(outs))


def deserialize_and_load(serialized: bytes, in_tree: Any, out_tree: Any,
                         backend: Any = None, execution_devices: Sequence[Any] | None = None
                         ) -> Compiled:
    """Return the program that ``serialize`` wrote, loaded on as many devices as it was made for.

    Those are the first of ``execution_devices``, else the ones it was compiled for if they are
    here.

    Raises: ValueError for other bytes, those of another jaxlib or platform, or too few devices.
    """
    body = unseal(MAGIC, (VERSION,), bytes(serialized), "executable",
                  "serialize_executable.serialize")
    text, _, rest = body.partition(b"\n")
    head = json.loads(text)
    used = devices_for(head, execution_devices or devices.local_devices(backend=backend),
                       execution_devices is not None)
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
    libraries.load(head.get("libraries", ()), head["platform"])
    executable = used[0].client.deserialize_executable(
        code, _jaxlib.DeviceList(tuple(used)), compile_options(used, {}))
    kept = tuple(head["kept"])
    module = Module(call.name)
    module.libraries.update(head.get("libraries", ()))
    lowered = Lowering(
        module=module, out_avals=call.flat_out, kept=kept,
        in_avals=tuple(a for a, k in zip(call.flat_in, kept) if k), consts=tuple(consts),
        donated=tuple(d for d, k in zip(call.donated, kept) if k), name=call.name)
    program = dispatch.Program(executable, lowered, place_from_json(head, used),
                               head["committed"])
    return Compiled(call, program, lambda: code)


def devices_for(head: dict[str, Any], here: Sequence[Any], chosen: bool) -> list[Any]:
    """Return the devices on which a program is loaded: those ``chosen``, or those it was made for.

    Raises: ValueError for another jaxlib or platform, or too few devices.
    """
    for what, have in (("jaxlib", _jaxlib.__version__), ("platform", here[0].platform)):
        if head[what] != have:
            raise ValueError(f"deserialize_and_load: {head['name']} was compiled for {what} "
                             f"{head[what]}, but here is {have}. Compile it again, or use "
                             "jax.export, which lasts longer.")
    count = len(head["devices"])
    if len(here) < count:
        raise ValueError(f"deserialize_and_load: {head['name']} was compiled for {count} devices, "
                         f"but got {len(here)}. Compile it again for those.")
    known = {d.id: d for d in here}
    made_for = [known.get(number) for number in head["devices"]]
    return list(here[:count]) if chosen or None in made_for else made_for


def typed(aval: ShapedArray) -> list[Any]:
    return [aval_to_json(aval), aval.weak_type]


def from_typed(form: list[Any]) -> ShapedArray:
    return aval_from_json(form[0]).update(weak_type=form[1])
