"""What are the steps between a Python function and machine code, one at a time?

``jit(f).trace(...)`` gives the jaxpr, ``.lower()`` the StableHLO, ``.compile()`` the executable;
each stage can be read and handed on.

Read before: ``control.jit``.
Invariant: a ``Compiled`` never recompiles: it refuses arguments it was not made for.
Source: the documentation of jax.stages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from saem.control.jit import (
    Bound,
    Entry,
    Jitted,
    check_shardings,
    make_jit,
    warn_unusable_donations,
)
from saem.core import errors, tree
from saem.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from saem.core.jaxpr import ClosedJaxpr
from saem.core.record import Record
from saem.xla import devices, dispatch
from saem.xla.compile import find_or_compile
from saem.xla.lowering import Lowering, lower


class ArgInfo(Record):
    """What is known of one argument leaf: its aval and whether it is donated."""

    _aval: ShapedArray
    donated: bool

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)


class Call(Record):
    """One call of a jitted function, traced: what every stage carries on."""

    info: Jitted
    bound: Bound
    entry: Entry

    @property
    def in_tree(self) -> Any:
        return self.bound.in_tree

    @property
    def out_tree(self) -> Any:
        return self.entry.out_tree

    @property
    def in_avals(self) -> Any:
        return self.in_tree.unflatten(self.entry.closed.in_avals)

    def place(self) -> tuple[Any, bool]:
        """Return where the program runs, by its arguments or the shardings of their structs."""
        if self.info.device is not None:
            return self.info.device, True
        leaves = self.bound.leaves
        demands = self.entry.demands
        said = [getattr(x, "sharding", None) if isinstance(x, ShapeDtypeStruct) else None
                for x in leaves]
        if any(s is not None for s in said):
            ins = demands.ins or (None,) * len(leaves)
            demands = demands._replace(ins=tuple(a if a is not None else b
                                                 for a, b in zip(ins, said)))
        return dispatch.placement(leaves, demands)

    @property
    def args_info(self) -> Any:
        return self.in_tree.unflatten(
            [ArgInfo(a, d) for a, d in zip(self.entry.closed.in_avals, self.entry.donated)])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        return tuple(i for i, d in enumerate(self.entry.donated) if d)

    @property
    def out_info(self) -> Any:
        return self.out_tree.unflatten(
            [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)
             for a in self.entry.closed.out_avals])


class Stage:
    """Base of the stages: what they know of the call."""

    def __init__(self, call: Call):
        self._call = call

    in_tree = property(lambda self: self._call.in_tree)
    out_tree = property(lambda self: self._call.out_tree)
    in_avals = property(lambda self: self._call.in_avals)
    args_info = property(lambda self: self._call.args_info)
    donate_argnums = property(lambda self: self._call.donate_argnums)
    out_info = property(lambda self: self._call.out_info)


class Traced(Stage):
    """A function traced at given types: its jaxpr."""

    @property
    def jaxpr(self) -> ClosedJaxpr:
        return self._call.entry.closed

    @property
    def fun_name(self) -> str:
        return self._call.info.name

    def lower(self, *, lowering_platforms: Any = None, **_unused: Any) -> Lowered:
        """Return the program as StableHLO."""
        if lowering_platforms not in (None, ("cpu",), ["cpu"]):
            raise ValueError(f"lower: lowering for {lowering_platforms} needs that platform")
        info, entry = self._call.info, self._call.entry
        where, committed = self._call.place()
        spread = where if isinstance(where, dispatch.Spread) else None
        check_shardings(entry)
        lowered = lower(entry.closed, name=info.name, keep_unused=info.keep_unused,
                        donated=entry.donated, spread=spread)
        return Lowered(self._call, lowered, where, committed)


class Lowered(Stage):
    """A program as StableHLO text."""

    def __init__(self, call: Call, lowered: Lowering, where: Any, committed: bool):
        super().__init__(call)
        self._lowered = lowered
        self._where = where
        self._committed = committed

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """Return the StableHLO text; ``debug_info`` adds places in user code.

        Raises: ValueError for a dialect other than 'stablehlo'.
        """
        if dialect not in (None, "stablehlo"):
            raise ValueError(f"as_text: dialect {dialect!r} is not written; only 'stablehlo' is. "
                             "For optimised HLO, call .compile().as_text().")
        return self._lowered.located_text() if debug_info else self._lowered.plain_text()

    def compiler_ir(self, dialect: str | None = None) -> str:
        """Return the StableHLO text (the module in its readable form)."""
        return self.as_text(dialect)

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimate of the program's cost."""
        return self.compile().cost_analysis()

    def compile(self, compiler_options: dict[str, Any] | None = None) -> Compiled:
        """Return the executable program."""
        info, where = self._call.info, self._where
        spread = isinstance(where, dispatch.Spread)
        warn_unusable_donations(self._call.entry)
        executable = find_or_compile(self._lowered, where.devices if spread else (where,),
                                     info.reference, {**info.options, **(compiler_options or {})})
        return Compiled(self._call, dispatch.Program(executable, self._lowered, where,
                                                     self._committed))


class Compiled(Stage):
    """An executable program, called with arguments of exactly the types it was made for."""

    def __init__(self, call: Call, program: dispatch.Program):
        super().__init__(call)
        self._program = program

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self._call
        leaves, got = tree.flatten((args, kwargs))
        if got != call.in_tree:
            raise TypeError(
                "Function compiled with input pytree does not match the input pytree it was called "
                f"with. Compiled for {call.in_tree}, called with {got}. Static arguments are not "
                "passed again.")
        wrong = [
            f"Argument '{path}' compiled with {want.str_short(False)} and called with "
            f"{aval_of(x).str_short(False)}"
            for x, want, (path, _) in zip(leaves, call.entry.closed.in_avals,
                                          call.info.leaf_names(call.bound))
            if (aval_of(x).shape, aval_of(x).dtype) != (want.shape, want.dtype)]
        if wrong:
            raise errors.explained(
                errors.ArgumentTypeError, "compiled.types",
                "Argument types differ from the types for which this computation was compiled. The "
                "mismatches are:\n" + "\n".join(wrong),
                advice="Call the jitted function itself, which compiles again, or convert them.")
        return call.out_tree.unflatten(self._program.run(leaves))

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        return self(*args, **kwargs)

    def as_text(self) -> str:
        """Return the HLO after XLA's optimisations."""
        return "\n\n".join(m.to_string() for m in self._program.executable.hlo_modules())

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimates: 'flops', 'bytes accessed', …"""
        return self._program.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """Return the bytes of arguments, outputs, temporaries and code."""
        return self._program.executable.get_compiled_memory_stats()

    def runtime_executable(self) -> Any:
        return self._program.executable

    @property
    def input_shardings(self) -> Any:
        """The shardings of the arguments: of args, and of kwargs; None for unused ones."""
        given = iter(self._program.ins)
        return self.in_tree.unflatten([next(given) if k else None for k in self._program.kept])

    @property
    def output_shardings(self) -> Any:
        return self.out_tree.unflatten(self._program.outs)


def trace_call(info: Jitted, args: tuple, kwargs: dict[str, Any]) -> Traced:
    """Trace ``info.fun`` for arguments that may be ShapeDtypeStructs."""
    bound = info.bind_arguments(args, kwargs)
    return Traced(Call(info, bound, info.entry(bound, info.avals(bound))))


def jit(fun: Callable | None = None, /, *, in_shardings: Any = None, out_shardings: Any = None,
        static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Sequence[str] | None = None,
        donate_argnums: int | Sequence[int] | None = None,
        donate_argnames: str | Sequence[str] | None = None, keep_unused: bool = False,
        device: Any = None, backend: str | None = None, inline: bool = False,
        compiler_options: dict[str, Any] | None = None) -> Any:
    """Return ``fun`` compiled by XLA: traced at the first call with new types, then only run.

    May be used as ``@jit`` or ``@jit(static_argnames=...)``.

    Raises: ValueError for argument numbers or names the function does not have.
    """
    if fun is None:
        return functools.partial(
            jit, in_shardings=in_shardings, out_shardings=out_shardings,
            static_argnums=static_argnums, static_argnames=static_argnames,
            donate_argnums=donate_argnums, donate_argnames=donate_argnames,
            keep_unused=keep_unused, device=device, backend=backend, inline=inline,
            compiler_options=compiler_options)
    if backend is not None and device is None:
        device = devices.backend(backend).local_devices()[0]
    fast = make_jit(fun, static_argnums=static_argnums, static_argnames=static_argnames,
                    donate_argnums=donate_argnums, donate_argnames=donate_argnames,
                    keep_unused=keep_unused, inline=inline, device=device,
                    options=compiler_options, in_shardings=in_shardings,
                    out_shardings=out_shardings)
    info = fast.info
    fast.trace = lambda *args, **kwargs: trace_call(info, args, kwargs)
    fast.lower = lambda *args, **kwargs: trace_call(info, args, kwargs).lower()
    fast.eval_shape = lambda *args, **kwargs: trace_call(info, args, kwargs).out_info
    fast.clear_cache = functools.partial(clear_one, fast)
    return fast


def clear_one(fast: Any) -> None:
    """Forget what was compiled for one jitted function."""
    fast.info.entries.clear()
    fast._clear_cache()

