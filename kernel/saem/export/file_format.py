"""What is in the bytes of an exported program?

A line that names the format and its version, a SHA-256 of all that follows, a line of JSON with the
types and structures, and the portable StableHLO of the program and of its derivatives.  Nothing in
it is code of Python: to read one runs nothing.

Containers of a program's own stand by the names under which they were registered here.

Read before: ``core.tree``.  Read after: ``export.exported``.
Invariant: what is read is what was written, or a ValueError with the reason
(tests/kernel/test_export.py).
Source: the documentation of jax.export (register_pytree_node_serialization).
"""

from __future__ import annotations

import base64
import collections
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.core import dtypes, tree
from saem.core.avals import ShapedArray
from saem.core.dimensions import Dim
from saem.core.record import Record
from saem.export.symbolic import Parser, SymbolicScope
from saem.generators.counter_based import GENERATORS
from saem.ops.keys import KeyDType, key_dtype
from saem.placement.meshes import AbstractMesh, AxisType
from saem.placement.partition_spec import PartitionSpec
from saem.placement.shardings import NamedSharding

MAGIC = b"saem export "
# Files of the version before this one have no programs that take the index of their platform.
VERSIONS = 2, 3
LEAF = tree.structure(0)


# -- containers of a program's own ----------------------------------------------------------------


class Registered(Record):
    """How a container is written: its name in the file, its metadata as bytes and back."""

    kind: type
    name: str
    write: Callable[[Any], bytes | bytearray]
    read: Callable[[bytes], Any]
    build: Callable[[Any, Sequence[Any]], Any] | None


_by_kind: dict[type, Registered] = {}
_by_name: dict[str, Registered] = {}


def register_pytree_node_serialization(
        nodetype: type, *, serialized_name: str, serialize_auxdata: Callable[[Any], bytes],
        deserialize_auxdata: Callable[[bytes], Any],
        from_children: Callable[[Any, Sequence[Any]], Any] | None = None) -> type:
    """Let exported programs take and return ``nodetype``, a registered pytree container.

    ``serialize_auxdata`` writes its metadata, ``deserialize_auxdata`` reads it.

    Raises: ValueError if the type or the name is taken, or the type is no container.
    """
    known = _by_kind.get(nodetype)
    if known is not None:
        raise ValueError(f"Duplicate serialization registration for type `{nodetype}`. Previous "
                         f"registration was with serialized_name `{known.name}`.")
    known = _by_name.get(serialized_name)
    if known is not None:
        raise ValueError(f"Duplicate serialization registration for serialized_name "
                         f"`{serialized_name}`. Previous registration was for type "
                         f"`{known.kind}`.")
    if from_children is None and not tree.is_tree_node(nodetype):
        raise ValueError("If `from_children` is not present, you must call first "
                         f"`jax.tree_util.register_pytree_node` for `{nodetype}`")
    made = Registered(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata,
                      from_children)
    _by_kind[nodetype] = _by_name[serialized_name] = made
    return nodetype


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Let exported programs take and return the named tuple ``nodetype``.

    Raises: ValueError if it is none, or the type or the name is taken.
    """
    if not is_namedtuple(nodetype):
        raise ValueError("Use `jax.export.register_pytree_node_serialization` for types other than "
                         "`collections.namedtuple`.")
    return register_pytree_node_serialization(
        nodetype, serialized_name=serialized_name, serialize_auxdata=lambda _: b"",
        deserialize_auxdata=lambda _: None, from_children=lambda _, xs: nodetype(*xs))


def is_namedtuple(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


# -- structures -----------------------------------------------------------------------------------


def tree_to_json(structure: Any) -> Any:
    """Return a pytree structure as JSON: ``"*"`` for a leaf, else its kind and children.

    Raises: ValueError for a container that was not registered for this.
    """
    node = structure.node_data()
    if node is None:
        return "*"
    kind, metadata = node
    children = [tree_to_json(child) for child in structure.children()]
    if kind is type(None):
        return ["none"]
    if kind in (tuple, list):
        return [kind.__name__, children]
    if kind is dict:
        if any(type(key) not in (str, int) for key in metadata):
            raise ValueError("Cannot serialize PyTreeDef containing a dict whose keys are not "
                             f"strings or integers: {metadata}")
        return ["dict", children, list(metadata)]
    known = _by_kind.get(kind)
    if known is None:
        raise ValueError(
            f"Cannot serialize PyTreeDef containing an unregistered type `{kind}`. Use "
            "`export.register_pytree_node_serialization` or "
            "`export.register_namedtuple_serialization`.")
    written = base64.b64encode(bytes(known.write(metadata))).decode()
    return ["registered", children, known.name, written]


def tree_from_json(form: Any) -> Any:
    """Return the structure that ``tree_to_json`` wrote.

    Raises: ValueError for a container that is not registered here.
    """
    return tree.structure(filled(form))


def filled(form: Any) -> Any:
    """Return a pytree of the structure ``form``, with 0 in its leaves."""
    if form == "*":
        return 0
    kind, *rest = form
    if kind == "none":
        return None
    children = [filled(child) for child in rest[0]]
    if kind == "dict":
        return dict(zip(rest[1], children))
    if kind in ("tuple", "list"):
        return tuple(children) if kind == "tuple" else children
    known = _by_name.get(rest[1])
    if known is None:
        raise ValueError(
            f"Cannot deserialize a PyTreeDef with the type named {rest[1]!r}, which is not "
            "registered here. Use `export.register_pytree_node_serialization` or "
            "`export.register_namedtuple_serialization` as the program that wrote it did.")
    metadata = known.read(base64.b64decode(rest[2]))
    if known.build is not None:
        return known.build(metadata, children)
    level = _jaxlib.PyTreeDef.from_node_data_and_children(
        _jaxlib.registry, (known.kind, metadata), [LEAF] * len(children))
    return level.unflatten(children)


register_pytree_node_serialization(
    collections.OrderedDict, serialized_name="collections.OrderedDict",
    serialize_auxdata=lambda keys: json.dumps(list(keys)).encode(),
    deserialize_auxdata=lambda data: tuple(json.loads(data)))


# -- types and shardings --------------------------------------------------------------------------


def aval_to_json(aval: ShapedArray) -> Any:
    dtype = aval.dtype
    key = isinstance(dtype, KeyDType) and dtype.impl.listed
    if isinstance(dtype, dtypes.ExtendedDType) and not key:
        raise ValueError(f"Cannot serialize values of dtype {dtype}.")
    name = dtype.impl.name if key else "float0" if dtype == dtypes.float0 else dtype.name
    shape = [str(n) if isinstance(n, Dim) else n for n in aval.shape]
    return [shape, "key" if key else "dtype", name]


def aval_from_json(form: Any, scope: SymbolicScope | None = None) -> ShapedArray:
    """Return the type that ``form`` stands for; without a ``scope`` all its sizes are numbers."""
    sizes, kind, name = form
    if scope is None and not all(type(n) is int for n in sizes):
        raise ValueError(f"a type of known sizes is needed, but the file has {sizes}")
    shape = [Parser(n, scope).one() if isinstance(n, str) else n for n in sizes]
    if kind == "key":
        return ShapedArray(tuple(shape), key_dtype(GENERATORS[name]))
    known = dtypes.float0 if name == "float0" else getattr(dtypes, name, None)
    return ShapedArray(tuple(shape), np.dtype(known if known is not None else name))


def sharding_to_json(sharding: Any) -> Any:
    if sharding is None:
        return None
    mesh = sharding.mesh
    spec = [list(e) if isinstance(e, tuple) else e for e in sharding.spec.partitions]
    if any(e is PartitionSpec.UNCONSTRAINED for e in spec):
        raise ValueError("Cannot serialize a sharding with unconstrained axes.")
    sums = [sorted(sharding.spec.unreduced), sorted(sharding.spec.reduced)]
    kinds = [kind.name for kind in mesh.axis_types]  # of which only sums need to know
    return [list(mesh.axis_sizes), list(mesh.axis_names), spec,
            *((*sums, kinds) if any(sums) else ())]


def sharding_from_json(form: Any) -> Any:
    if form is None:
        return None
    sizes, names, spec, *more = form
    unreduced, reduced, kinds = more or ((), (), None)
    types = None if kinds is None else tuple(AxisType[kind] for kind in kinds)
    return NamedSharding(AbstractMesh(sizes, names, types), PartitionSpec(
        *(tuple(e) if isinstance(e, list) else e for e in spec), unreduced=frozenset(unreduced),
        reduced=frozenset(reduced)))


# -- the whole ------------------------------------------------------------------------------------


def write(chain: Sequence[Any]) -> bytearray:
    """Return a program, then its derivatives (``Exported``s all), as bytes."""
    head = [{
        "fun_name": e.fun_name,
        "in_tree": tree_to_json(e.in_tree), "out_tree": tree_to_json(e.out_tree),
        "in_avals": [aval_to_json(a) for a in e.in_avals],
        "out_avals": [aval_to_json(a) for a in e.out_avals],
        "in_shardings": [sharding_to_json(s) for s in e.in_named_shardings],
        "out_shardings": [sharding_to_json(s) for s in e.out_named_shardings],
        "constraints": [c.text for c in e.scope.constraints] if e.scope is not None else [],
        "platforms": list(e.platforms), "nr_devices": e.nr_devices,
        "uses_global_constants": e.uses_global_constants,
        "kept": list(e.module_kept_var_idx),
        "disabled": [str(check) for check in e.disabled_safety_checks],
        "calling_convention_version": e.calling_convention_version,
        "bytes": len(e.mlir_module_serialized),
    } for e in chain]
    rest = json.dumps(head).encode() + b"\n" + b"".join(e.mlir_module_serialized for e in chain)
    return bytearray(seal(MAGIC, VERSIONS[-1], rest))


def seal(magic: bytes, version: int, body: bytes) -> bytes:
    """Return ``body`` under a line that identifies it, and its checksum."""
    return magic + b"%d\n" % version + hashlib.sha256(body).digest() + body


def unseal(magic: bytes, versions: Sequence[int], data: bytes, what: str, maker: str) -> bytes:
    """Return the body that ``seal`` was given.

    Raises: ValueError for bytes that are something else, of none of the versions, or damaged.
    """
    line, _, rest = data.partition(b"\n")
    if not line.startswith(magic):
        raise ValueError(f"deserialize: these {len(data)} bytes are no {what} of saem. They must "
                         f"be what {maker} returned.")
    if line[len(magic):] not in [b"%d" % version for version in versions]:
        known = " and ".join(map(str, versions))
        raise ValueError(f"deserialize: the {what} is of format {line[len(magic):].decode()!r}, "
                         f"but this version of saem reads format {known}.")
    digest, body = rest[:32], rest[32:]
    if hashlib.sha256(body).digest() != digest:
        raise ValueError(f"deserialize: the {what} is damaged: its checksum is not that of its "
                         f"{len(body)} bytes. Make it again, or copy it again.")
    return body


def read(data: bytes) -> list[dict[str, Any]]:
    """Return what ``write`` was given, as the arguments of ``Exported``.

    Raises: ValueError for other bytes.
    """
    body = unseal(MAGIC, VERSIONS, data, "exported program", "Exported.serialize()")
    text, _, modules = body.partition(b"\n")
    programs = []
    for form in json.loads(text):
        size = form["bytes"]
        programs.append(_parts(form, modules[:size]))
        modules = modules[size:]
    return programs


def _parts(form: dict[str, Any], module: bytes) -> dict[str, Any]:
    scope = SymbolicScope(form["constraints"])
    return {
        "fun_name": form["fun_name"],
        "in_tree": tree_from_json(form["in_tree"]), "out_tree": tree_from_json(form["out_tree"]),
        "in_avals": tuple(aval_from_json(a, scope) for a in form["in_avals"]),
        "out_avals": tuple(aval_from_json(a, scope) for a in form["out_avals"]),
        "in_shardings": tuple(map(sharding_from_json, form["in_shardings"])),
        "out_shardings": tuple(map(sharding_from_json, form["out_shardings"])),
        "platforms": tuple(form["platforms"]), "nr_devices": form["nr_devices"],
        "uses_global_constants": form.get("uses_global_constants", False),
        "module_kept_var_idx": tuple(form["kept"]), "disabled": form["disabled"],
        "calling_convention_version": form["calling_convention_version"],
        "mlir_module_serialized": module,
    }
