"""How do dataclasses become JSON, JSON Schema and TypeScript, and JSON become dataclasses again?

Read before: nothing.  Read after: ``saem.observe.schema``, whose models these functions serve.
Invariant: the four functions know the same few types (str, int, float, bool, None, tuples of one
type, unions, Literal, dataclasses), and any other type is refused (tests/lens/test_schema.py).
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import types
import typing
from typing import Any

_SCALARS = {str: "string", int: "number", float: "number", bool: "boolean"}


class SchemaError(ValueError):
    """JSON does not fit its model."""


def fields_of(cls: type) -> dict[str, Any]:
    """The fields of a dataclass with their resolved types."""
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _parts(kind: Any) -> tuple[str, tuple[Any, ...]]:
    """Sort a type: ('class' | 'tuple' | 'union' | 'literal' | 'scalar', its parts)."""
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return "class", ()
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return "tuple", (arguments[0],)
    if origin in (types.UnionType, typing.Union):
        return "union", arguments
    if origin is typing.Literal:
        return "literal", arguments
    if kind in _SCALARS or kind is type(None):
        return "scalar", (kind,)
    raise TypeError(f"a model's field needs a plain type, but got {kind!r}")


def to_json(model: Any) -> Any:
    """The model as JSON values: objects, arrays, strings, numbers, true, false and null.

    An infinite or undefined number becomes null, since JSON has none.
    """
    if dataclasses.is_dataclass(model) and not isinstance(model, type):
        fields = dataclasses.fields(model)
        return {field.name: to_json(getattr(model, field.name)) for field in fields}
    if isinstance(model, tuple):
        return [to_json(item) for item in model]
    if isinstance(model, float) and not math.isfinite(model):
        return None
    if model is None or type(model) in _SCALARS:
        return model
    raise TypeError(f"a model holds plain values, but got {type(model).__name__}")


def dumps(model: Any) -> str:
    """The model as JSON text, in one line."""
    return json.dumps(to_json(model), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def from_json(kind: Any, value: Any, where: str = "$") -> Any:
    """The model that ``value`` stands for.

    Raises: SchemaError naming the place where ``value`` does not fit.
    """
    sort, parts = _parts(kind)
    if sort == "class":
        return _object_from_json(kind, value, where)
    if sort == "tuple":
        if not isinstance(value, list):
            raise SchemaError(f"{where} needs an array, but got {_shown(value)}")
        return tuple(from_json(parts[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if sort == "union":
        errors = []
        for part in parts:
            try:
                return from_json(part, value, where)
            except SchemaError as error:
                errors.append((_is_of_kind(part, value), error))
        raise next((error for named, error in errors if named), errors[-1][1])
    if sort == "literal":
        if any(value == part and type(value) is type(part) for part in parts):
            return value
        raise SchemaError(f"{where} needs one of {list(parts)}, but got {_shown(value)}")
    return _scalar_from_json(parts[0], value, where)


def _is_of_kind(part: Any, value: Any) -> bool:
    """Whether ``value`` names the class ``part`` in its field ``kind``."""
    if not (dataclasses.is_dataclass(part) and isinstance(part, type) and isinstance(value, dict)):
        return False
    fields = fields_of(part)
    return "kind" in fields and value.get("kind") in _parts(fields["kind"])[1]


def _object_from_json(kind: type, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise SchemaError(f"{where} needs an object, but got {_shown(value)}")
    fields = fields_of(kind)
    missing = [name for name in fields if name not in value]
    unknown = [name for name in value if name not in fields]
    if missing or unknown:
        raise SchemaError(
            f"{where} does not fit {kind.__name__}: missing {missing}, unknown {unknown[:5]}"
        )
    return kind(**{n: from_json(t, value[n], f"{where}.{n}") for n, t in fields.items()})


def _scalar_from_json(kind: type, value: Any, where: str) -> Any:
    if kind is float and type(value) is int:
        return float(value)
    if kind is type(None) and value is None:
        return None
    if type(value) is not kind:
        raise SchemaError(f"{where} needs {kind.__name__}, but got {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def reachable(roots: tuple[type, ...]) -> list[type]:
    """All dataclasses that the roots hold, each after those it holds where that is possible."""
    found: dict[type, None] = {}
    opened: set[type] = set()

    def visit(kind: Any) -> None:
        sort, parts = _parts(kind)
        if sort in ("tuple", "union"):
            for part in parts:
                visit(part)
        if sort == "class" and kind not in opened:
            opened.add(kind)
            for field in fields_of(kind).values():
                visit(field)
            found[kind] = None

    for root in roots:
        visit(root)
    return list(found)


def json_schema(roots: tuple[type, ...], title: str) -> dict[str, Any]:
    """One JSON Schema (2020-12) whose ``$defs`` describe the roots and all that they hold."""

    def describe(kind: Any) -> dict[str, Any]:
        sort, parts = _parts(kind)
        if sort == "class":
            return {"$ref": f"#/$defs/{kind.__name__}"}
        if sort == "tuple":
            return {"type": "array", "items": describe(parts[0])}
        if sort == "union":
            return {"anyOf": [describe(part) for part in parts]}
        if sort == "literal":
            return {"enum": list(parts)}
        if parts[0] is type(None):
            return {"type": "null"}
        return {"type": "integer" if parts[0] is int else _SCALARS[parts[0]]}

    definitions = {}
    for cls in reachable(roots):
        fields = fields_of(cls)
        definitions[cls.__name__] = {
            "type": "object",
            "description": inspect.getdoc(cls),
            "properties": {name: describe(kind) for name, kind in fields.items()},
            "required": list(fields),
            "additionalProperties": False,
        }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "oneOf": [describe(root) for root in roots],
        "$defs": definitions,
    }


def typescript(roots: tuple[type, ...]) -> str:
    """TypeScript interfaces of the roots and all that they hold."""

    def describe(kind: Any) -> str:
        sort, parts = _parts(kind)
        if sort == "class":
            return kind.__name__
        if sort == "tuple":
            return f"ReadonlyArray<{describe(parts[0])}>"
        if sort == "union":
            return " | ".join(describe(part) for part in parts)
        if sort == "literal":
            return " | ".join(json.dumps(part) for part in parts)
        return "null" if parts[0] is type(None) else _SCALARS[parts[0]]

    blocks = []
    for cls in reachable(roots):
        doc = (inspect.getdoc(cls) or "").replace("*/", "* /").splitlines()
        lines = ["/**", *(f" * {line}".rstrip() for line in doc), " */"]
        lines += [f"export interface {cls.__name__} {{"]
        lines += [f"  readonly {name}: {describe(t)};" for name, t in fields_of(cls).items()]
        blocks.append("\n".join([*lines, "}"]))
    return "\n\n".join(blocks) + "\n"
