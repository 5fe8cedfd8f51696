"""How is a program with open sizes called?

The shapes of the arguments give the dimension variables their values; every further size and every
constraint is checked against them.  With sizes that are all known the compiler's own pass refines
the program to plain types; with sizes of another exported program it is called as it is.

Read before: ``compile.sizes``, ``export.symbolic``.  Read after: ``export.exported``.
Invariant: a program that is called has no ``?`` unless its caller is exported, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saem import _jaxlib
from saem.compile import mlir
from saem.compile.sizes import open_sizes, solved
from saem.compile.text import physical_aval, tensor_type
from saem.core.avals import ShapedArray
from saem.core.dimensions import Scope, evaluated, is_static, lower

WRAPPER = "stablehlo.shape_refinement_operand_wrapper"


def scope_of(avals: Sequence[Any]) -> Scope | None:
    """Return the scope of the dimensions in the shapes of ``avals``, None if there are none.

    Raises: ValueError if they are of several.
    """
    scope = None
    for number, _, size in open_sizes([a.shape for a in avals]):
        scope = scope or size.scope
        if size.scope is not scope:
            raise ValueError(
                f"Invalid mixing of symbolic scopes when exporting: expected scope {scope} and "
                f"found for '{size}' (argument {number}) scope {size.scope}. Make all shapes in "
                "one scope: symbolic_shape(…, scope=scope).")
    return scope


def values_of(exported: Any, avals: Sequence[ShapedArray]) -> dict[str, Any]:
    """Return the values of the dimension variables of ``exported`` for arguments of ``avals``.

    Raises: ValueError if a size does not fit, or a constraint does not hold.
    """
    shapes = [a.shape for a in avals]
    wanted = [a.shape for a in exported.in_avals]

    def refuse(what: str, values: dict[str, Any],
               unmet: str = "polymorphic shapes specification") -> Exception:
        known = ", ".join(f"'{n}' = {v}" for n, v in values.items())
        shown = ", ".join(f"argument {i}: {tuple(s)}" for i, s in enumerate(wanted))
        return ValueError(
            f"Input shapes do not match the {unmet}. {what} Expected "
            f"shapes are {shown}; obtained dimension variables: {known or 'none'}.")

    values = solved(exported.steps, shapes, refuse)
    for name, value in values.items():
        if lower(value) < 1:
            raise refuse(f"Expected value >= 1 for dimension variable '{name}'.", values)
    for number, axis, size in open_sizes(wanted):
        found = evaluated(size, values)
        if found != shapes[number][axis]:
            raise refuse(f"Found inconsistency between dimension size of argument {number}, axis "
                         f"{axis} (= {shapes[number][axis]}) and the specification '{size}' (= "
                         f"{found}).", values)
    for constraint in exported.scope.constraints if exported.scope is not None else ():
        if constraint.difference.variables() <= set(values):
            found = evaluated(constraint.difference, values)
            holds = found == 0 if constraint.equal else lower(found) >= 0
            if not holds:
                wanted_sign = "equal" if constraint.equal else "greater or equal"
                raise refuse(f"Expected '{constraint.difference}' to be {wanted_sign} to 0, but "
                             f"found {found}.", values, f"symbolic shape constraint "
                             f"{constraint.text}")
    return values


def with_values(aval: ShapedArray, values: dict[str, Any]) -> ShapedArray:
    """Return ``aval`` with its open sizes replaced."""
    if is_static(aval.shape):
        return aval
    return ShapedArray(tuple(evaluated(n, values) for n in aval.shape), aval.dtype, aval.weak_type)


def refined(text: str, formal: Sequence[ShapedArray], actual: Sequence[ShapedArray],
            outs: Sequence[ShapedArray]) -> str:
    """Return the module ``text``, whose main takes ``formal``, for arguments of ``actual``."""
    lines, names = [], []
    for i, (wanted, given) in enumerate(zip(formal, actual)):
        names.append(f"%arg{i}")
        if is_static(wanted.shape):
            continue
        shape = physical_aval(given).shape
        vector = f"tensor<{len(shape)}xi64>"
        names[-1] = f"%w{i}"
        lines += [f"    %c{i} = stablehlo.constant dense<{list(shape)}> : {vector}",
                  f"    %w{i} = stablehlo.custom_call @{WRAPPER}(%arg{i}, %c{i}) "
                  "{indices_of_shape_operands = dense<1> : tensor<1xi64>} : "
                  f"({tensor_type(given)}, {vector}) -> {tensor_type(wanted)}"]
    results = ", ".join(map(tensor_type, outs))
    arguments = ", ".join(f"%arg{i}: {tensor_type(a)}" for i, a in enumerate(actual))
    gives = [f"%r#{i}" for i in range(len(outs))] if len(outs) > 1 else ["%r"] * len(outs)
    bound = f"%r{f':{len(outs)}' if len(outs) > 1 else ''} = " if outs else ""
    kinds = ", ".join(map(tensor_type, formal))
    main = [f"  func.func public @main({arguments}) -> ({results}) {{", *lines,
            f"    {bound}call @polymorphic_main({', '.join(names)}) : ({kinds}) -> ({results})",
            f"    return {', '.join(gives)}{' : ' if outs else ''}{results}", "  }"]
    renamed = text.replace("func.func public @main(", "func.func private @polymorphic_main(", 1)
    end = renamed.rindex("}")
    whole = renamed[:end] + "\n".join(main) + "\n" + renamed[end:]
    context = mlir.new_context()
    with context:
        blob = _jaxlib.refine_polymorphic_shapes(whole.encode(), True, True, True)
        return str(_jaxlib.ir.Module.parse(blob))
