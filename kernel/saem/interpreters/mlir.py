"""How is a primitive of the user's compiled?  (``jax.interpreters.mlir``)

By a function of other operations: ``register_lowering(p, lower_fun(fun, multiple_results=False))``.
Or by a rule that builds MLIR operations of its operands.  The engine itself writes StableHLO as
text, so such a rule builds a function in a module of its own, whose text then joins the program.
What the rule asks the engine to write (``lower_fun`` inside it, a call of Python, or of a
registered function) becomes a function that it calls.

Read before: ``core.handles``, ``compile.lowering``, ``compile.embedded``.
Invariant: what a rule raises, the caller of the program sees.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from saem.compile.embedded import embed
from saem.compile.lowering import embed_constants, inline, one_equation, write_function
from saem.compile.mlir import context_to_build
from saem.compile.mlir import new_context as make_ir_context
from saem.compile.text import Writer, tensor_type
from saem.core import errors, lazy, tree
from saem.core.avals import ShapedArray
from saem.core.handles import Handle, lowerings
from saem.core.lazy import later
from saem.effects.callbacks import IoCallback, PureCallback
from saem.effects.host_calls import FlatCallback
from saem.interpreters.mlir_objects import (
    aval_to_ir_type,
    aval_to_ir_types,
    dense_int_array,
    dense_int_elements,
    dtype_to_ir_type,
    flatten_ir_types,
    flatten_ir_values,
    i32_attr,
    i64_attr,
    ir_attribute,
    ir_constant,
    ir_constants,
    ir_type_to_aval,
    shape_tensor,
    unflatten_ir_values_like_types,
)
from saem.transform.staging import trace_flat

ir: Any = later("jaxlib.mlir.ir")
func: Any = later("jaxlib.mlir.dialects.func")


class ModuleContext:
    """The whole program, for a rule: the kind of device it is for, and what must live with it.

    A program for several kinds is written once for each, so ``platforms`` has one name always.
    ``module`` is the rule's own, into which it may put further functions.
    """

    __slots__ = ("kept", "module", "platforms")

    def __init__(self, kept: list[Any], platform: str, module: Any = None):
        self.kept = kept
        self.platforms = (platform,)
        self.module = module

    @property
    def context(self) -> Any:
        """The MLIR context in which the rule builds."""
        return self.module.context

    @property
    def ip(self) -> Any:
        """Where functions of the rule's own are put."""
        return ir.InsertionPoint(self.module.body)

    @property
    def symbol_table(self) -> Any:
        """The functions of the rule's module by their symbols."""
        return ir.SymbolTable(self.module.operation)

    def add_keepalive(self, thing: Any) -> None:
        """Let ``thing`` live as long as the program."""
        self.kept.append(thing)


class LoweringRuleContext:
    """The context of a rule: the types of its arguments and results, and where it writes."""

    __slots__ = ("writer", "primitive", "avals_in", "avals_out", "module")
    # The sizes of a shape-polymorphic program are in its types alone.
    dim_var_values = ()

    def __init__(self, writer: Any, primitive: Handle | None, avals_in: Sequence[ShapedArray],
                 avals_out: Sequence[ShapedArray], module: Any = None):
        self.writer = writer
        self.primitive = primitive
        self.avals_in = avals_in
        self.avals_out = avals_out
        self.module = module

    @property
    def module_context(self) -> ModuleContext:
        module = self.writer.module
        return ModuleContext(module.keepalive, module.platform, self.module)

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platform the program is written for."""
        return self.module_context.platforms

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """Return this context with other ``avals_in``, ``avals_out`` or ``primitive``.

        Raises: TypeError for anything else.
        """
        fields = {"primitive": self.primitive, "avals_in": self.avals_in,
                  "avals_out": self.avals_out}
        if not changes.keys() <= fields.keys():
            raise errors.explained(
                errors.ArgumentTypeError, "primitive.C6",
                f"ctx.replace got {', '.join(sorted(changes.keys() - fields.keys()))}.",
                advice=f"A lowering rule can replace {', '.join(fields)}.")
        return LoweringRuleContext(self.writer, **{**fields, **changes}, module=self.module)

    def called(self, write: Callable[..., Sequence[str]], operands: Sequence[Any],
               name: str) -> list[Any]:
        """Let the engine ``write`` a function of ``operands``; return the results of its call.

        Their types are ``avals_in``, or what MLIR knows of values of other types.
        """
        module = self.writer.module
        symbol = module.unique_name(name)
        function = module.function("private", symbol)
        inner = Writer(module)
        inner.path, inner.place = self.writer.path, self.writer.place
        inner.in_avals = [
            aval if aval is not None and aval_to_ir_type(None, aval) == x.type
            else ir_type_to_aval(x.type)
            for x, aval in itertools.zip_longest(operands, self.avals_in[:len(operands)])]
        inner.out_avals = self.avals_out
        names = [f"%arg{number}" for number in range(len(operands))]
        inner.avals.update(zip(names, inner.in_avals))
        results = list(write(inner, *names))
        embed_constants(inner)
        write_function(function, inner, [f"{n}: {tensor_type(inner.avals[n])}" for n in names],
                       results)
        types = [aval_to_ir_type(None, inner.avals[x]) for x in results]
        return list(func.CallOp(types, ir.FlatSymbolRefAttr.get(symbol), list(operands)).results)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"lowering rules have no ctx.{name} here, only avals_in, avals_out, "
                             "module_context, platforms, primitive and replace")


class LoweringRule:
    """How a primitive is written down: by the program of ``fun``."""

    def __init__(self, fun: Callable, multiple_results: bool):
        self.fun = fun
        self.multiple_results = multiple_results

    def __call__(self, ctx: Any, *operands: Any, **params: Any) -> list[Any]:
        """Write the program: here, or as a function where a rule builds operations."""
        if not isinstance(ctx, LoweringRuleContext):
            return self.written(ctx, *operands, **params)
        return ctx.called(lambda writer, *names: self.written(writer, *names, **params), operands,
                          "lowered")

    def written(self, writer: Writer, *operands: str, **params: Any) -> list[str]:
        """Write the program for values of these names; return those of its results."""
        def flat(*xs: Any) -> list[Any]:
            out = self.fun(*xs, **params)
            return tree.leaves(out) if self.multiple_results else [out]

        closed = trace_flat(flat, [writer.avals[x] for x in operands], name="lower_fun",
                            debug_name=getattr(self.fun, "__name__", "fun"))
        return inline(writer, closed, dict(zip(closed.jaxpr.invars, operands)))


class BuiltRule:
    """A rule that is a function of a context and MLIR's values, and builds operations of them."""

    def __init__(self, prim: Handle, rule: Callable):
        self.prim = prim
        self.rule = rule

    def __call__(self, writer: Writer, *operands: str, **params: Any) -> list[str]:
        avals_in = [writer.avals[x] for x in operands]
        typed = self.prim.operation(params).typing(*avals_in)
        avals_out = list(typed) if self.prim.multiple_results else [typed]
        text = self.built(writer, avals_in, avals_out, params)
        symbol = embed(text, writer.module, self.prim.name)
        return writer.emit_many(f"func.call @{symbol}({', '.join(operands)})", *operands,
                                outs=avals_out)

    def built(self, writer: Writer, avals_in: list[ShapedArray], avals_out: list[ShapedArray],
              params: dict[str, Any]) -> str:
        """Return the text of a module whose ``main`` is what the rule builds."""
        with context_to_build(), ir.Location.unknown():
            module = ir.Module.create()
            ins = [aval_to_ir_type(None, a) for a in avals_in]
            outs = [aval_to_ir_type(None, a) for a in avals_out]
            with ir.InsertionPoint(module.body):
                main = func.FuncOp("main", (ins, outs), visibility="private")
            ctx = LoweringRuleContext(writer, self.prim, avals_in, avals_out, module)
            block = main.add_entry_block()
            with ir.InsertionPoint(block):
                made = flatten_ir_values(self.rule(ctx, *block.arguments, **params))
                self.check(made, outs)
                func.ReturnOp(made)
            return module.operation.get_asm(assume_verified=True)

    def check(self, made: list[Any], wanted: list[Any]) -> None:
        """Refuse what is not one value for each result.

        Raises: TypeError.
        """
        if len(made) == len(wanted) and all(isinstance(x, ir.Value) for x in made) and all(
                x.type == kind for x, kind in zip(made, wanted)):
            return
        found = [str(x.type) if isinstance(x, ir.Value) else repr(x) for x in made]
        raise errors.explained(
            errors.ArgumentTypeError, "primitive.C3",
            f"the lowering rule of '{self.prim.name}' returned [{', '.join(found)}], which are not "
            f"{len(wanted)} values of types [{', '.join(map(str, wanted))}].",
            advice="Return a list of ir.Value, one for each result of the abstract evaluation; or "
            "say the rule in jax functions: mlir.lower_fun(fun, multiple_results=False).")


def lower_fun(fun: Callable, multiple_results: bool = True) -> LoweringRule:
    """Return the rule that writes a primitive as ``fun(*args, **params)`` computes it."""
    return LoweringRule(fun, multiple_results)


def emit_python_callback(ctx: LoweringRuleContext, callback: Callable, token: None,
                         operands: Sequence[Any], operand_avals: Sequence[ShapedArray],
                         result_avals: Sequence[ShapedArray], *, has_side_effect: bool,
                         returns_token: bool = True, partitioned: bool = False,
                         sharding: Any = None) -> tuple[list[Any], None, Callable]:
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
    structure = tree.flatten((tuple(range(len(operands))), {}))[1]
    flat = FlatCallback(callback, structure)
    prim = IoCallback(flat, tuple(result_avals), sharding) if has_side_effect else PureCallback(
        flat, tuple(result_avals), sharding)
    closed = one_equation(prim, operand_avals)

    def write(writer: Writer, *names: str) -> list[str]:
        return inline(writer, closed, dict(zip(closed.jaxpr.invars, names)))

    outs = ctx.replace(avals_in=operand_avals, avals_out=result_avals).called(
        write, operands, getattr(callback, "__name__", "callback"))
    return outs, None, callback


def register_lowering(prim: Handle, rule: Callable, platform: str | None = None,
                      inline: bool = True, cacheable: bool = True) -> None:
    """Let ``rule`` compile ``prim`` (for ``platform``, None for all).

    ``rule(ctx, *values, **params)`` returns the values of the results, which it builds of MLIR
    operations; ``lower_fun`` makes one of a function of arrays.
    Source: the tutorial "JAX primitives" of JAX's documentation.

    Raises: TypeError if it cannot be called; when a program is compiled, for other results.
    """
    if not callable(rule):
        raise errors.explained(
            errors.ArgumentTypeError, "primitive.C4",
            f"register_lowering: the rule of '{prim.name}' must be a function, got {rule!r}.",
            advice="Say it in jax functions: mlir.lower_fun(fun, multiple_results=False).")
    lowerings[prim, platform] = (
        rule if isinstance(rule, LoweringRule) else BuiltRule(prim, rule))


def module_to_string(module: Any, enable_debug_info: bool = True) -> str:
    """Return the text of an MLIR module, with the places in user code that it comes from."""
    return module.operation.get_asm(enable_debug_info=enable_debug_info)


def module_to_bytecode(module: Any) -> bytes:
    """Return the bytes that MLIR writes a module as."""
    into = io.BytesIO()
    module.operation.write_bytecode(file=into)
    return into.getvalue()


# From a module to the names it offers here ("" for the module itself).
__getattr__, __dir__ = lazy.namespace(__name__, {"jaxlib.mlir.ir": "Value"})

__all__ = ["LoweringRule", "LoweringRuleContext", "ModuleContext", "aval_to_ir_type",
           "aval_to_ir_types", "dense_int_array", "dense_int_elements", "dtype_to_ir_type",
           "emit_python_callback", "flatten_ir_types", "flatten_ir_values", "i32_attr", "i64_attr",
           "ir_attribute", "ir_constant", "ir_constants", "lower_fun", "make_ir_context",
           "module_to_bytecode", "module_to_string", "register_lowering", "shape_tensor",
           "unflatten_ir_values_like_types"]
