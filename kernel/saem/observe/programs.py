"""Which line of StableHLO, and which kernel of XLA's, did an equation become?

A program's text and XLA's optimised program both carry the name under which each operation was
written.  Before lowering, every equation gets a scope of its own (``~e2.0.1``), so names lead back
to equations, through fusions too.

Read before: ``saem.observe.jaxpr_model``.  Read after: ``saem.observe.compiled``.
Invariant: the program computes what it computed; only names differ (tests/lens/test_views.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from saem import _jaxlib
from saem.compile import executables
from saem.compile.device_assignment import Spread, devices_of
from saem.compile.lowering import Lowering, lower, one_equation
from saem.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from saem.core.trace import Scope
from saem.jit.decorator import jit
from saem.observe.jaxpr_model import nested_of, numbered
from saem.observe.schema import Kernel, ProgramLine
from saem.placement import devices
from saem.transform.programs import make_jaxpr

_LOCATION = re.compile(r' loc\("((?:[^"\\]|\\.)*)"(?:\("[^"]*":\d+:\d+\))?\)$')
_MARK = re.compile(r"~(e[\d.]+)[)/]")
_INSTRUCTION = re.compile(r"^\s*(ROOT )?%?([\w.\-]+) = (.+?) ([\w\-]+)\((.*)$")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_CALLED = re.compile(r"(?:calls|to_apply|body|condition)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_TYPE = re.compile(r"\b(pred|[su]\d+|bf16|f\d+\w*|c\d+)\[([\d,]*)\]")
_OPERAND = re.compile(r"%([\w.\-]+)")
# Instructions that compute nothing, and those that run other computations.
_SILENT = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast"))
_CONTROL = frozenset(("while", "conditional", "call"))
_BYTES = {"pred": 1, "s4": 1, "u4": 1, "bf16": 2, "c64": 8, "c128": 16}
# More distinct equations than this are not priced one by one.
_PRICED = 300


def anchored(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with each equation under a scope that names it, in nested programs too."""
    return ClosedJaxpr(_anchored(closed.jaxpr, ""), closed.consts)


def _anchored(jaxpr: Jaxpr, path: str) -> Jaxpr:
    return jaxpr.replace(eqns=[_equation(e, f"{path}{i}") for i, e in enumerate(jaxpr.eqns)])


def _equation(eqn: Eqn, path: str) -> Eqn:
    number = 0
    changes: dict[str, Any] = {}

    def inside(value: Any) -> Any:
        nonlocal number
        if isinstance(value, ClosedJaxpr):
            number += 1
            return ClosedJaxpr(_anchored(value.jaxpr, f"{path}.{number - 1}."), value.consts)
        if isinstance(value, Jaxpr):
            number += 1
            return _anchored(value, f"{path}.{number - 1}.")
        if isinstance(value, tuple) and any(isinstance(v, (ClosedJaxpr, Jaxpr)) for v in value):
            parts = map(inside, value)
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return value

    for name, value in eqn.operation.params.items():
        made = inside(value)
        if made is not value:
            changes[name] = made
    operation = dataclasses.replace(eqn.operation, **changes) if changes else eqn.operation
    return Eqn(operation, eqn.invars, eqn.outvars, eqn.source, (*eqn.stack, Scope(f"~e{path}")))


@contextlib.contextmanager
def _scopes() -> Iterator[None]:
    """Let lowering write the names of scopes."""
    saved, Scope.used = Scope.used, True
    try:
        yield
    finally:
        Scope.used = saved


def program(fun: Callable, args: Sequence[Any], named: dict[str, Any]) -> tuple[ClosedJaxpr, Any]:
    """What ``fun`` computes for these arguments, and where it runs: a device or a Spread."""
    asked = fun if isinstance(fun, _jaxlib.PjitFunction) else jit(fun)
    traced = asked.trace(*args, **named)
    where, _ = traced.placed()
    if with_statics(fun, args, named)[0] is not fun:
        return traced.jaxpr, where
    return make_jaxpr(fun)(*args, **named), where


def with_statics(fun: Callable, args: Sequence[Any], named: dict[str, Any]
                 ) -> tuple[Callable, tuple[Any, ...], dict[str, Any]]:
    """``fun`` as a function of its dynamic arguments alone, and these."""
    if not isinstance(fun, _jaxlib.PjitFunction):
        return fun, tuple(args), named
    numbers, names = fun.info.parameters.static_argnums, fun.info.parameters.static_argnames
    if not numbers and not names:
        return fun, tuple(args), named
    fixed = {at: value for at, value in enumerate(args)
             if at in numbers or at - len(args) in numbers}

    @functools.wraps(fun)
    def given(*dynamic: Any, **rest: Any) -> Any:
        values = iter(dynamic)
        filled = [fixed[at] if at in fixed else next(values) for at in range(len(args))]
        return fun(*filled, **{k: v for k, v in named.items() if k in names}, **rest)

    return (given, tuple(x for at, x in enumerate(args) if at not in fixed),
            {k: v for k, v in named.items() if k not in names})


def lowered(closed: ClosedJaxpr, name: str, where: Any) -> Lowering:
    """The program lowered for where it runs, its operations named after equations."""
    spread = where if isinstance(where, Spread) else None
    with _scopes():
        return lower(anchored(closed), name=name, keep_unused=True, spread=spread,
                     platform=devices.lowering_platform(devices_of(where)[0]))


def program_lines(lowering: Lowering) -> tuple[ProgramLine, ...]:
    """The StableHLO text without locations, each line with the equations it came from."""
    lines = []
    located = lowering.located_text().splitlines()
    for line, with_place in zip(lowering.plain_text().splitlines(), located):
        found = _LOCATION.search(with_place)
        marks = _MARK.findall(found.group(1)) if found else []
        lines.append(ProgramLine(line, tuple(marks[-1:])))
    return tuple(lines)


def executable_of(lowering: Lowering, where: Any) -> Any:
    """The executable of a program, compiled for its names' sake even if one like it is known."""
    return executables._compile(lowering, list(devices_of(where)), {})


def kernels(executable: Any) -> tuple[Kernel, ...]:
    """What XLA runs, in order: each instruction of the entry and of its loops and branches."""
    found: list[Kernel] = []
    for module in executable.hlo_modules():
        found += _kernels(module.to_string())
    total = sum(kernel.bytes for kernel in found) or 1
    return tuple(dataclasses.replace(k, share=k.bytes / total) for k in found)


def _kernels(text: str) -> list[Kernel]:
    """The kernels of an optimised program that its entry runs, in loops and branches too."""
    computations, entry = _computations(text)
    types = {m.group(2): m.group(3) for body in computations.values() for m in body}
    found: list[Kernel] = []
    for match in _instructions(entry, computations, set()):
        kind = match.group(4)
        if kind not in _SILENT and kind not in _CONTROL:
            inside = [m for c in _called(match.group(5)) for m in _below(c, computations)]
            found.append(_kernel(match, kind, inside, types))
    return found


def _computations(text: str) -> tuple[dict[str, list[re.Match[str]]], str]:
    """The instructions of each computation by its name, and the name of the entry."""
    computations: dict[str, list[re.Match[str]]] = {}
    entry, current = "", ""
    for line in text.splitlines():
        opened = _COMPUTATION.match(line)
        if opened:
            current = opened.group(2)
            computations[current] = []
            entry = current if opened.group(1) else entry
        elif current and (instruction := _INSTRUCTION.match(line)):
            computations[current].append(instruction)
    return computations, entry


def _instructions(name: str, computations: dict[str, list[re.Match[str]]], seen: set[str]
                  ) -> Iterator[re.Match[str]]:
    """Yield the instructions of a computation, those of loops and branches before the loop."""
    if name in seen:
        return
    seen.add(name)
    for match in computations.get(name, ()):
        if match.group(4) in _CONTROL:
            for inner in _called(match.group(5)):
                yield from _instructions(inner, computations, seen)
        yield match


def _called(rest: str) -> list[str]:
    branches = [name.strip(" %") for group in _BRANCHES.findall(rest) for name in group.split(",")]
    return [*_CALLED.findall(rest), *branches]


def _below(name: str, computations: dict[str, list[re.Match[str]]]) -> list[re.Match[str]]:
    """All instructions of a computation and of those it calls."""
    found = list(computations.get(name, ()))
    for match in list(found):
        for inner in _called(match.group(5)):
            found += _below(inner, computations)
    return found


def _kernel(match: re.Match[str], kind: str, inside: list[re.Match[str]], types: dict[str, str]
            ) -> Kernel:
    whole = [match, *inside]
    names = [n for m in whole for n in _OP_NAME.findall(m.group(5))]
    equations = dict.fromkeys(mark for name in names for mark in _MARK.findall(name)[-1:])
    operations = dict.fromkeys(m.group(4) for m in inside if m.group(4) not in _SILENT)
    operands = match.group(5).partition(")")[0]
    touched = _size(match.group(3)) + sum(
        _size(types.get(name, "")) for name in _OPERAND.findall(operands))
    text = re.sub(r", metadata=\{[^}]*\}|, backend_config=\{.*\}", "", match.group(0).strip())
    return Kernel(match.group(2), kind, tuple(operations), _shown(match.group(3)), touched, 0.0,
                  tuple(equations), text[:400])


def _shown(kind: str) -> str:
    return ", ".join(f"{dtype}[{sizes}]" for dtype, sizes in _TYPE.findall(kind))


def _size(kind: str) -> int:
    """The bytes of all arrays in an HLO type."""
    total = 0
    for dtype, sizes in _TYPE.findall(kind):
        bits = re.search(r"\d+", dtype)
        item = _BYTES.get(dtype) or max(int(bits.group()) // 8 if bits else 1, 1)
        count = 1
        for size in filter(None, sizes.split(",")):
            count *= int(size)
        total += item * count
    return total


def flops(closed: ClosedJaxpr) -> dict[str, float]:
    """XLA's estimate of the operations of each equation alone, by its id; nothing if there are
    too many different ones."""
    wanted: dict[Any, list[str]] = {}
    for name, eqn in numbered(closed.jaxpr):
        if not nested_of(eqn) and not eqn.effects:
            wanted.setdefault((eqn.operation, tuple(a.aval for a in eqn.invars)), []).append(name)
    if len(wanted) > _PRICED:
        return {}
    found: dict[str, float] = {}
    for key, ids in wanted.items():
        estimate = _price(*key)
        if estimate is not None:
            found.update(dict.fromkeys(ids, estimate))
    return found


def _price(operation: Any, avals: tuple) -> float | None:
    device = devices.default_device()
    try:
        program = lower(one_equation(operation, avals), name="one", keep_unused=True,
                        platform=devices.lowering_platform(device))
        module = _jaxlib.mlir_module_to_xla_computation(program.located_text()).get_hlo_module()
        cost = _jaxlib.hlo_module_cost_analysis(device.client, module)
    except (TypeError, ValueError, NotImplementedError, _jaxlib.JaxRuntimeError):
        return None
    counted = cost.get("flops", 0.0) + cost.get("transcendentals", 0.0)
    return counted if counted >= 0 else None
