"""What does a function keep for its backward pass?

``saved_residuals`` linearizes a function without running it and says of each value that the linear
part uses where it came from: an argument, a constant, or an operation on a line of the user's.

Read before: ``transform.linearize``, ``derivatives.checkpoint``.
Invariant: what is listed is what ``vjp`` at these arguments would hold in memory; scalars written
into the program are not listed.
Source: the documentation of jax.ad_checkpoint.print_saved_residuals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saem.core import errors, tree
from saem.core.arguments import Parameters
from saem.core.avals import ShapedArray, aval_of
from saem.core.jaxpr import Eqn, Literal
from saem.derivatives.policies import Name
from saem.jit.call import JitCall
from saem.ops.convert import ReducePrecision
from saem.transform.derivatives import is_differentiable
from saem.transform.linear_maps import without_dead_code
from saem.transform.linearize import linearize_flat
from saem.transform.staging import trace_flat


def saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> list[tuple[ShapedArray, str]]:
    """Return (type, where it came from) of every value kept for the backward pass of ``f``."""
    leaves, in_tree = tree.flatten((args, kwargs))
    avals = [aval_of(x) for x in leaves]

    def flat(*values: Any) -> list[Any]:
        inner_args, inner_kwargs = in_tree.unflatten(values)
        return tree.leaves(f(*inner_args, **inner_kwargs))

    def kept(*values: Any) -> list[Any]:
        _, linear = linearize_flat(flat, values, [is_differentiable(a) for a in avals])
        return without_dead_code(linear).consts

    jaxpr = trace_flat(kept, avals, name="saved_residuals").jaxpr
    names = Parameters(f, None, None, None, None).leaf_names(dict(enumerate(args)), kwargs)
    arguments = {v: name for v, (name, _) in zip(jaxpr.invars, names)}
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    for eqn in jaxpr.eqns:
        if isinstance(eqn.operation, Name) and eqn.invars[0] in makers:
            makers[eqn.invars[0]] = eqn
    found = list(dict.fromkeys(v for v in jaxpr.outvars if not isinstance(v, Literal)))
    listed = [(v.aval, f"from the argument {name}") for v, name in arguments.items() if v in found]
    listed += [(v.aval, "from a constant") for v in jaxpr.constvars if v in found]
    order = {id(eqn): number for number, eqn in enumerate(jaxpr.eqns)}
    for v in sorted((v for v in found if v in makers), key=lambda v: order[id(makers[v])]):
        eqn = makers[v]
        if isinstance(eqn.operation, ReducePrecision) and eqn.invars[0] in makers:
            eqn = makers[eqn.invars[0]]
        listed.append((v.aval, described(eqn)))
    return listed


def described(eqn: Eqn) -> str:
    """Return what made a value: ``output of sin from cell 3:2:5 (f)``."""
    prim = eqn.operation
    if isinstance(prim, Name):
        what = f"named {prim.label!r}"
    elif isinstance(prim, JitCall):
        what = f"output of jitted function {prim.jaxpr_name!r}"
    else:
        what = f"output of {prim.name}"
    where = eqn.position()
    if where is None:
        return what
    place = f"{errors.file_name(where.file)}:{where.line}:{where.column}"
    return f"{what} from {place} ({where.function})"


def print_saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> None:
    """Print what ``saved_residuals`` returns, a line each."""
    for aval, source in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short(True)} {source}")
