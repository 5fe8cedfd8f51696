"""How is a primitive of the user's compiled?  (``jax.interpreters.mlir``)

By a function of other operations: ``register_lowering(p, lower_fun(fun, multiple_results=False))``.
The engine writes StableHLO as text, so values are names in it, and a rule that builds MLIR objects
of them has nothing to build with.  A rule may also write a call of Python, by
``emit_python_callback``.

Read before: ``core.handles``, ``compile.lowering``, ``effects.callbacks``.
Invariant: a rule that cannot be followed is named, with what to write instead.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile.lowering import inline, one_equation
from saem.compile.mlir import new_context as make_ir_context
from saem.compile.text import element_type
from saem.core import errors, lazy, tree
from saem.core.avals import ShapedArray
from saem.core.handles import Handle, lowerings
from saem.effects.callbacks import IoCallback, PureCallback
from saem.effects.host_calls import FlatCallback
from saem.transform.staging import trace_flat


class ModuleContext:
    """The whole program, for a rule: the kind of device it is for, and what must live with it.

    A program for several kinds is written once for each, so ``platforms`` has one name always.
    """

    __slots__ = ("kept", "platforms")

    def __init__(self, kept: list[Any], platform: str):
        self.kept = kept
        self.platforms = (platform,)

    def add_keepalive(self, thing: Any) -> None:
        """Let ``thing`` live as long as the program."""
        self.kept.append(thing)


class LoweringRuleContext:
    """The context of a rule: the types of its arguments and results, and where it writes."""

    __slots__ = ("writer", "primitive", "avals_in", "avals_out")

    def __init__(self, writer: Any, primitive: Handle, avals_in: list[Any], avals_out: list[Any]):
        self.writer = writer
        self.primitive = primitive
        self.avals_in = avals_in
        self.avals_out = avals_out

    @property
    def module_context(self) -> ModuleContext:
        module = self.writer.module
        return ModuleContext(module.keepalive, module.platform)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"lowering rules have no ctx.{name} here, only avals_in, avals_out, "
                             "module_context and primitive")


def writer_of(ctx: Any) -> Any:
    """Return what writes the equation of a rule that was given ``ctx``."""
    return ctx.writer if isinstance(ctx, LoweringRuleContext) else ctx


class LoweringRule:
    """How a primitive is written down: by the program of ``fun``."""

    def __init__(self, fun: Callable, multiple_results: bool):
        self.fun = fun
        self.multiple_results = multiple_results

    def __call__(self, ctx: Any, *operands: str, **params: Any) -> list[str]:
        writer = writer_of(ctx)

        def flat(*xs: Any) -> list[Any]:
            out = self.fun(*xs, **params)
            return tree.leaves(out) if self.multiple_results else [out]

        closed = trace_flat(flat, [writer.avals[x] for x in operands], name="lower_fun",
                            debug_name=getattr(self.fun, "__name__", "fun"))
        return inline(writer, closed, dict(zip(closed.jaxpr.invars, operands)))


class WrittenRule:
    """A rule that is a function of a context and the names of values, as of ``lower_fun`` inside.
    """

    def __init__(self, prim: Handle, rule: Callable):
        self.prim = prim
        self.rule = rule

    def __call__(self, writer: Any, *operands: str, **params: Any) -> list[str]:
        avals_in = [writer.avals[x] for x in operands]
        typed = self.prim.operation(params).typing(*avals_in)
        avals_out = list(typed) if self.prim.multiple_results else [typed]
        ctx = LoweringRuleContext(writer, self.prim, avals_in, avals_out)
        try:
            outs = list(self.rule(ctx, *operands, **params))
        except (AttributeError, TypeError) as error:
            raise self.refusal(f"it raised {type(error).__name__}: {error}") from error
        if len(outs) != len(avals_out) or not all(
                isinstance(x, str) and x in writer.avals for x in outs):
            raise self.refusal(f"it returned {outs!r}, which are not {len(avals_out)} values")
        return outs

    def refusal(self, why: str) -> Exception:
        return errors.explained(
            errors.ArgumentTypeError, "primitive.C3",
            f"the lowering rule of '{self.prim.name}' cannot be followed: {why}.",
            advice="Programs are written as text here, so a rule cannot build MLIR operations. Say "
            "it in jax functions: mlir.lower_fun(fun, multiple_results=False).")


def lower_fun(fun: Callable, multiple_results: bool = True) -> LoweringRule:
    """Return the rule that writes a primitive as ``fun(*args, **params)`` computes it."""
    return LoweringRule(fun, multiple_results)


def emit_python_callback(ctx: LoweringRuleContext, callback: Callable, token: None,
                         operands: Sequence[str], operand_avals: Sequence[ShapedArray],
                         result_avals: Sequence[ShapedArray], *, has_side_effect: bool,
                         returns_token: bool = True, partitioned: bool = False,
                         sharding: Any = None) -> tuple[list[str], None, Callable]:
    """Write a call of the Python function ``callback``: arrays in, a sequence of arrays out.

    Returns the results, no token, and what ``ctx.module_context.add_keepalive`` is to keep.
    With ``has_side_effect`` it is called once each time the program gets there.

    Raises: TypeError for a token; ``io_callback(ordered=True)`` inside ``lower_fun`` keeps order.
    """
    if token is not None or partitioned:
        raise errors.explained(
            errors.ArgumentTypeError, "primitive.C5",
            "emit_python_callback writes a call without a token, of whole operands; got "
            f"token={token!r}, partitioned={partitioned!r}.",
            advice="Write the rule by mlir.lower_fun of a function that uses io_callback: with "
            "ordered=True calls keep their order, inside shard_map each device calls.")
    structure = tree.flatten((tuple(operands), {}))[1]
    flat = FlatCallback(callback, structure)
    prim = IoCallback(flat, tuple(result_avals), sharding) if has_side_effect else PureCallback(
        flat, tuple(result_avals), sharding)
    closed = one_equation(prim, operand_avals)
    outs = inline(ctx.writer, closed, dict(zip(closed.jaxpr.invars, operands)))
    return outs, None, callback


def register_lowering(prim: Handle, rule: Callable, platform: str | None = None,
                      inline: bool = True, cacheable: bool = True) -> None:
    """Let ``rule``, such as ``lower_fun`` makes, compile ``prim`` (for ``platform``, None for all).

    Raises: TypeError if it cannot be called; when a program is compiled, if it builds MLIR objects.
    """
    if not callable(rule):
        raise errors.explained(
            errors.ArgumentTypeError, "primitive.C4",
            f"register_lowering: the rule of '{prim.name}' must be a function, got {rule!r}.",
            advice="Say it in jax functions: mlir.lower_fun(fun, multiple_results=False).")
    lowerings[prim, platform] = (
        rule if isinstance(rule, LoweringRule) else WrittenRule(prim, rule))


def dtype_to_ir_type(dtype: Any) -> Any:
    """Return the MLIR type of numbers of ``dtype``, in the context that is entered.

    >>> with make_ir_context():
    ...     str(dtype_to_ir_type(np.dtype("complex64")))
    'complex<f32>'
    """
    return _jaxlib.ir.Type.parse(element_type(np.dtype(dtype)))


def module_to_string(module: Any, enable_debug_info: bool = True) -> str:
    """Return the text of an MLIR module, with the places in user code that it comes from."""
    return module.operation.get_asm(enable_debug_info=enable_debug_info)


def module_to_bytecode(module: Any) -> bytes:
    """Return the bytes that MLIR writes a module as."""
    into = io.BytesIO()
    module.operation.write_bytecode(file=into)
    return into.getvalue()


__getattr__, __dir__ = lazy.namespace(__name__, {})

__all__ = ["LoweringRule", "LoweringRuleContext", "ModuleContext", "dtype_to_ir_type",
           "emit_python_callback", "lower_fun", "make_ir_context", "module_to_bytecode",
           "module_to_string", "register_lowering"]
