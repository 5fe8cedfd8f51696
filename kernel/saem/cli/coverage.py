"""How much of JAX's public API is here?

The names of JAX 0.10.2, with the parameters of its functions, are in a file beside this one; each
is looked up here.  A name counts as present, as left out on purpose (``core.left_out``), or as
missing.

Read before: ``core.left_out``.
Invariant: what is counted is what an import finds now (tests/kernel/test_coverage.py).
"""

from __future__ import annotations

import csv
import importlib
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saem.core import left_out

VERSION = "0.10.2"  # of the JAX whose names are counted
NAMES = Path(__file__).with_name("jax_names.tsv")

# What the tests of a namespace are compared with; real JAX 0.10.2 in a second process for all.
ORACLES = {
    "jax.numpy": "NumPy, JAX", "jax.numpy.linalg": "NumPy, JAX", "jax.numpy.fft": "NumPy, JAX",
    "jax.scipy": "SciPy, JAX", "jax.lax": "JAX, NumPy evaluator", "jax.random": "JAX (bits)",
    "jax.nn.initializers": "JAX (bits)",
}


@dataclass(frozen=True)
class Row:
    """One public name of JAX: where it is, and what became of it here."""

    module: str
    name: str
    present: bool
    reason: str | None
    same_signature: bool | None
    oracle: str


class _Default:
    """The default of every parameter: its text is empty."""

    def __repr__(self) -> str:
        return ""


_DEFAULT = _Default()


def parameters(function: Any) -> str | None:
    """Return the parameters of ``function``, with "=" after those that have a default."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    bare = [p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else _DEFAULT)
            for p in signature.parameters.values()]
    return str(inspect.Signature(bare))[1:-1].replace(" ", "")


def find(module: str, name: str) -> Any:
    """Return the object of this name here.  Raises: AttributeError or ImportError."""
    return getattr(importlib.import_module(module), name)


def oracle_of(module: str) -> str:
    """Return what tests of ``module`` are compared with."""
    return ORACLES.get(module, next((said for start, said in ORACLES.items()
                                     if module.startswith(start + ".")), "JAX"))


def survey(prefix: str = "") -> Iterator[Row]:
    """Yield a row for each public name of JAX whose module starts with ``prefix``."""
    with NAMES.open(encoding="utf-8") as lines:
        for entry in csv.DictReader(lines, delimiter="\t"):
            module, name = entry["module"], entry["name"]
            if not module.startswith(prefix):
                continue
            here = "saem" + module[len("jax"):]
            same = None
            try:
                found = find(here, name)
            except (AttributeError, ImportError):
                yield Row(module, name, False, left_out.reason(here, name), None, oracle_of(module))
                continue
            if entry["parameters"]:
                same = parameters(found) == entry["parameters"]
            yield Row(module, name, True, None, same, oracle_of(module))


@dataclass
class Count:
    """How many names of a namespace there are, by what became of them."""

    names: int = 0
    present: int = 0
    left_out: int = 0
    compared: int = 0
    same: int = 0

    @property
    def percent(self) -> float:
        """Return the share of names that are present, of those not left out."""
        wanted = self.names - self.left_out
        return 100 * self.present / wanted if wanted else 100.0


def counts(rows: Iterable[Row]) -> dict[str, Count]:
    """Return the counts of each namespace, in the order of ``rows``."""
    found: dict[str, Count] = {}
    for row in rows:
        count = found.setdefault(row.module, Count())
        count.names += 1
        count.present += row.present
        count.left_out += row.reason is not None
        count.compared += row.same_signature is not None
        count.same += bool(row.same_signature)
    return found
