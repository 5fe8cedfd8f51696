"""How does a jaxpr become a StableHLO module?

Equation by equation, by the ``lower`` rules.  Array constants become extra arguments (so the text,
and with it the compile cache, does not depend on their numbers); unused arguments are dropped;
nested programs that repeat become one private function.

Read before: ``xla.text``.  Read after: ``xla.compile``.
Invariant: ``Lowering.text`` depends only on the program; tests/kernel/test_lowering.py.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import dtypes
from saem.core.avals import ShapedArray, aval_of
from saem.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from saem.core.source import Source, position
from saem.core.trace import Tracer
from saem.xla.text import Module, Writer, symbol, tensor_type


@dataclasses.dataclass(frozen=True)
class Lowering:
    """A program as text, and how to call it.

    ``kept`` says which arguments it takes; before them come ``consts``.  ``donated`` marks kept
    arguments whose buffers it may reuse.
    """

    text: str
    module: Module
    in_avals: tuple[ShapedArray, ...]
    out_avals: tuple[ShapedArray, ...]
    kept: tuple[bool, ...]
    consts: tuple[Any, ...]
    donated: tuple[bool, ...]
    name: str

    def located_text(self) -> str:
        """Return the text XLA compiles: named after the function, with places in user code."""
        return self.module.text(True, self.symbol())

    def plain_text(self) -> str:
        """Return the text a person reads: named after the function, without places."""
        return self.module.text(False, self.symbol())

    def symbol(self) -> str:
        return "jit_" + symbol(self.name)


def needed_equations(jaxpr: Jaxpr) -> tuple[list[Eqn], set[Var]]:
    """Return the equations that outputs or effects need, and every variable that is read."""
    live: set[Var] = {v for v in jaxpr.outvars if type(v) is not Literal}
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if not live.isdisjoint(eqn.outvars) or eqn.effects:
            eqns.append(eqn)
            live.update([a for a in eqn.invars if type(a) is not Literal])
    return eqns[::-1], live


def lower(closed: ClosedJaxpr, *, name: str = "fn", keep_unused: bool = False,
          donated: Sequence[bool] = ()) -> Lowering:
    """Write ``closed`` as a module whose ``main`` takes its constants, then its kept inputs.

    Raises: TypeError if a constant is a tracer (it must have been moved to the inputs).
    """
    jaxpr = closed.jaxpr
    eqns, live = needed_equations(jaxpr)
    kept = [keep_unused or v in live for v in jaxpr.invars]
    donated = donated or (False,) * len(kept)
    inputs = [v for v, k in zip(jaxpr.invars, kept) if k]
    gives = tuple(d for d, k in zip(donated, kept) if k)
    consts, hoisted, inline = [], [], []
    for var, value in zip(jaxpr.constvars, closed.consts):
        if var not in live:
            continue
        if isinstance(value, Tracer):
            raise TypeError(f"lower: the constant {value} is a tracer; close over it as an input")
        if var.aval.shape or isinstance(var.aval.dtype, dtypes.ExtendedDType):
            hoisted.append(var)
            consts.append(value)
        else:
            inline.append((var, value))
    module = Module(name)
    writer = Writer(module)
    env: dict[Var, str] = {}
    arguments = []
    given = (*(False for _ in hoisted), *gives)
    for number, (var, gives_buffer) in enumerate(zip([*hoisted, *inputs], given)):
        env[var] = f"%arg{number}"
        writer.avals[env[var]] = var.aval
        gift = " {jax.buffer_donor = true}" if gives_buffer else ""
        arguments.append(f"%arg{number}: {tensor_type(var.aval)}{gift}")
    for var, value in inline:
        env[var] = writer.constant(np.asarray(value), var.aval)
    results = write_equations(writer, eqns, jaxpr.outvars, env)
    write_function(writer, "public", "main", arguments, results)
    return Lowering(
        text=module.text(False), module=module,
        in_avals=tuple(v.aval for v in inputs), out_avals=tuple(closed.out_avals),
        kept=tuple(kept), consts=tuple(consts), donated=gives, name=name)


def write_function(writer: Writer, visibility: str, name: str, arguments: Sequence[str],
                   results: Sequence[str]) -> None:
    """Put the lines of ``writer`` into a function of the module."""
    types = writer.type_of(*results) if results else ""
    head = f"  func.func {visibility} @{name}({', '.join(arguments)}) -> ({types}) {{"
    ending = f"    return {', '.join(results)} : {types}" if results else "    return"
    lines = [head, *writer.lines, ending, "  }"]
    writer.module.functions.append((lines, ["", *writer.locs, "", ""]))


@functools.lru_cache(16384)
def location(source: Source | None, name: str) -> str:
    """Return the MLIR location of an equation: the primitive, at the user's line and column."""
    where = position(source)
    if where is None:
        return f'loc("{name}")'
    file = where.file.encode("utf-8", "backslashreplace").decode()  # bytes that are no UTF-8
    file = "".join(f"\\{ord(c):02X}" if c < " " or c in '"\\\x7f' else c for c in file)
    return f'loc("{name}"("{file}":{where.line}:{where.column + 1}))'


def write_equations(writer: Writer, eqns: Sequence[Eqn], outvars: Sequence, env: dict[Var, str]
                    ) -> list[str]:
    """Lower ``eqns`` with ``env`` naming the variables; returns the names of ``outvars``."""
    literals: dict[Any, str] = {}

    def name_of(atom) -> str:
        if type(atom) is not Literal:
            return env[atom]
        val = atom.val
        key = (atom.aval.dtype, val.tobytes() if isinstance(val, np.generic) else repr(val))
        if key not in literals:
            literals[key] = writer.constant(np.asarray(atom.val), atom.aval)
        return literals[key]

    for eqn in eqns:
        prim = eqn.primitive
        writer.loc = location(eqn.source, prim.name)
        operands = [name_of(a) for a in eqn.invars]
        outs = lower_primitive(writer, prim, operands, [a.aval for a in eqn.invars],
                               [v.aval for v in eqn.outvars])
        env.update(zip(eqn.outvars, outs))
    writer.loc = ""
    return [name_of(atom) for atom in outvars]


def lower_primitive(writer: Writer, prim: Any, operands: Sequence[str],
                    in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]
                    ) -> Sequence[str]:
    """Lower one primitive; on extended dtypes, the primitive that does the same to their arrays."""
    for aval in (*in_avals, *out_avals):
        if isinstance(aval.dtype, dtypes.ExtendedDType):
            physical = getattr(prim, "physical", None)
            prim = prim if physical is None else physical(in_avals, out_avals)
            break
    saved = writer.in_avals, writer.out_avals
    writer.in_avals, writer.out_avals = in_avals, out_avals
    out = prim.lower(writer, *operands)
    writer.in_avals, writer.out_avals = saved
    return out if prim.multiple_results else (out,)


def call(writer: Writer, closed: ClosedJaxpr, operands: Sequence[str], name: str) -> list[str]:
    """Call a nested program as a private function, written once however often it is called.

    Its array constants are written into it, since a function cannot see the caller's values.
    """
    module = writer.module
    symbol = module.memo.get(id(closed))
    if symbol is None:
        inner = Writer(module)
        symbol = module.memo[id(closed)] = module.unique_name(name)
        module.keepalive.append(closed)
        env: dict[Var, str] = {}
        arguments = []
        for number, var in enumerate(closed.jaxpr.invars):
            env[var] = f"%arg{number}"
            inner.avals[env[var]] = var.aval
            arguments.append(f"%arg{number}: {tensor_type(var.aval)}")
        results = inline(inner, closed, env)
        write_function(inner, "private", symbol, arguments, results)
    return writer.emit_many(f"call @{symbol}({', '.join(operands)})", *operands,
                            outs=closed.out_avals)


def inline(writer: Writer, closed: ClosedJaxpr, env: dict[Var, str]) -> list[str]:
    """Write the equations of ``closed`` here, its inputs named by ``env``; returns its results."""
    eqns, live = needed_equations(closed.jaxpr)
    for var, value in zip(closed.jaxpr.constvars, closed.consts):
        if var in live:
            env[var] = writer.constant(np.asarray(value), var.aval)
    return write_equations(writer, eqns, closed.jaxpr.outvars, env)


def lower_block(writer: Writer, closed: ClosedJaxpr, names: Sequence[str]) -> list[str]:
    """Write ``closed`` inside a region whose arguments are ``names``."""
    loc = writer.loc
    writer.loc = ""
    results = inline(writer, closed, dict(zip(closed.jaxpr.invars, names)))
    writer.loc = loc
    return results


def one_equation(prim: Any, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """Return the program that applies ``prim`` once to arguments of ``avals``."""
    invars = [Var(a) for a in avals]
    typed = prim.typing(*avals)
    outvars = [Var(a) for a in typed] if prim.multiple_results else [Var(typed)]
    return ClosedJaxpr(Jaxpr([], invars, outvars, [Eqn(prim, invars, outvars, None, ())],
                             prim.name))


def avals_of(values: Sequence[Any]) -> tuple[ShapedArray, ...]:
    return tuple([aval_of(v) for v in values])
