"""How do the models reach the browser?

``python -m saem.observe.schema --typescript`` writes ``extension/src/schema.ts``;
``--json-schema`` prints the JSON Schema; ``--check`` fails if the written file is stale.

Read before: ``saem.observe.schema``.  Read after: ``extension/src/schema.ts``.
Invariant: the written file depends on the models and labels alone (tests/lens/test_schema.py).
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

from saem.observe.generate import JSON_SCHEMA, TYPESCRIPT


def main(arguments: list[str] | None = None) -> int:
    """Write, print or check the generated forms of the schema; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m saem.observe.schema")
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--typescript", action="store_true", help="write the TypeScript types")
    choice.add_argument("--check", action="store_true", help="fail if the types are stale")
    choice.add_argument("--json-schema", action="store_true", help="print the JSON Schema")
    default = pathlib.Path(__file__).parents[4] / "extension" / "src" / "schema.ts"
    parser.add_argument("--output", type=pathlib.Path, default=default)
    options = parser.parse_args(arguments)
    if options.json_schema:
        print(json.dumps(JSON_SCHEMA, indent=2, ensure_ascii=False))
        return 0
    target: pathlib.Path = options.output
    written = target.read_text(encoding="utf-8") if target.is_file() else None
    if options.check:
        if written == TYPESCRIPT:
            return 0
        print(f"{target} is stale: run python -m saem.observe.schema --typescript", file=sys.stderr)
        return 1
    if not target.parent.is_dir():
        print(f"{target.parent} does not exist: run this in a checkout", file=sys.stderr)
        return 1
    if written != TYPESCRIPT:
        target.write_text(TYPESCRIPT, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
