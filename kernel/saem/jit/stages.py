"""What are the steps between a Python function and machine code, one at a time?

``jit(f).trace(...)`` gives the jaxpr, ``.lower()`` the StableHLO, ``.compile()`` the executable;
each stage can be read and handed on.

Read before: ``jit.decorator``.
Invariant: a ``Compiled`` never recompiles: it refuses arguments it was not made for.
Source: the documentation of jax.stages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from saem import _jaxlib
from saem.compile import dispatch
from saem.compile.device_assignment import Demands, Spread, devices_of, placement
from saem.compile.donation import warn_wasted
from saem.compile.executables import as_bytes, find_or_compile
from saem.compile.lowering import Lowering, lower
from saem.compile.mlir import name_values, parse
from saem.core import errors, tree
from saem.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from saem.core.hi_types import is_high
from saem.core.jaxpr import ClosedJaxpr, pick, with_nones
from saem.core.placement_types import Seen
from saem.core.record import Record
from saem.core.trace import Tracer
from saem.jit.jitted import (
    Bound,
    Entry,
    Jitted,
)
from saem.ops.constraints import place_of, split_formats
from saem.placement import devices
from saem.placement.layouts import Format, Layout, Terms, terms_of, unusual_layout
from saem.transform.programs import struct_of


class ArgInfo(Record):
    """What is known of one argument leaf: its aval and whether it is donated."""

    _aval: ShapedArray
    donated: bool

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)


class Types:
    """What every stage has of a call, from its flat types."""

    name: str
    in_tree: Any
    out_tree: Any
    flat_in: Sequence[ShapedArray]
    flat_out: Sequence[ShapedArray]
    donated: Sequence[bool]
    # The references that the function closes over.
    refs: Sequence[Any] = ()

    @property
    def in_avals(self) -> Any:
        return self.in_tree.unflatten(self.flat_in)

    @property
    def args_info(self) -> Any:
        return self.in_tree.unflatten([ArgInfo(a, d) for a, d in zip(self.flat_in, self.donated)])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        return tuple(i for i, d in enumerate(self.donated) if d)

    def out_info(self, shardings: Sequence[Any] | None = None, weak: bool = False) -> Any:
        shardings = shardings or [None] * len(self.flat_out)
        return self.out_tree.unflatten(
            struct_of(aval, where, weak) for aval, where in zip(self.flat_out, shardings))

    def asked_of_results(self) -> Sequence[Any]:
        """Return the shardings that were requested for results, () if none were."""
        return ()

    def paths(self) -> list[str]:
        """Return the arguments' names, as the caller would write them."""
        raise NotImplementedError(f"{type(self).__name__} does not name its arguments")


class Call(Types, Record):
    """One call of a jitted function, traced: what every stage carries on."""

    info: Jitted
    bound: Bound
    entry: Entry

    name = property(lambda self: self.info.name)
    in_tree = property(lambda self: self.bound.in_tree)
    out_tree = property(lambda self: self.entry.out_tree)
    flat_in = property(lambda self: self._given(self.entry.closed.in_avals))
    flat_out = property(lambda self: self.entry.closed.out_avals)
    donated = property(lambda self: self._given(self.entry.donated))
    refs = property(lambda self: self.entry.refs or ())

    def _given(self, of_inputs: Sequence[Any]) -> Sequence[Any]:
        """Return what belongs to arguments: tracers that were closed over are the first inputs."""
        start = len(self.entry.moved)
        return of_inputs[start:start + self.in_tree.num_leaves]

    def paths(self) -> list[str]:
        return self.info.paths(self.bound)

    def asked_of_results(self) -> Sequence[Any]:
        return self.entry.demands.outs

    def place(self) -> tuple[Any, bool]:
        """Return where the program runs, by its arguments or the shardings of their structs."""
        return placement(self.bound.leaves, self.demands(), self.info.used(self.entry.closed))

    def demands(self) -> Demands:
        """Return what the call requires, by jit's shardings or those of its structs."""
        leaves = self.bound.leaves
        demands = self.entry.demands
        said = [(x.sharding if x._layout is None else x.format) if isinstance(x, ShapeDtypeStruct)
                else None
                for x in leaves]
        if not any(s is not None for s in said):
            return demands
        named, layouts = split_formats([place_of(s, "ShapeDtypeStruct") for s in said])
        ins = demands.ins or (None,) * len(leaves)
        return demands._replace(
            ins=tuple(a if a is not None else b for a, b in zip(ins, named)),
            in_layouts=demands.in_layouts or tuple(layouts))

    def terms(self) -> Terms | None:
        """Return how arguments and results are to lie, None if as usual."""
        if not Seen.storage:
            return None
        return terms_of(self.entry.closed, self.bound.leaves, self.demands())

    def lower(self, where: Any, platform: str | tuple[str, ...], embed: bool = False) -> Lowering:
        """Return the program's text for a platform, or one for several, of each its own program.
        """
        info, entry = self.info, self.entry
        return lower(entry.closed, name=info.name, keep_unused=info.keep_unused,
                     donated=entry.donated, spread=where if isinstance(where, Spread) else None,
                     platform=platform, embed=embed, terms=self.terms())


class Stage:
    """Base of the stages: what they know of the call."""

    def __init__(self, call: Any):
        self._call = call

    in_tree = property(lambda self: self._call.in_tree)
    out_tree = property(lambda self: self._call.out_tree)
    in_avals = property(lambda self: self._call.in_avals)
    args_info = property(lambda self: self._call.args_info)
    donate_argnums = property(lambda self: self._call.donate_argnums)
    out_info = property(lambda self: self._call.out_info(self._call.asked_of_results(), True))


class Traced(Stage):
    """A function traced at given types: its jaxpr.

    >>> jax.jit(lambda x: x + 1).trace(1.).jaxpr
    { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }
    """

    @property
    def jaxpr(self) -> ClosedJaxpr:
        return self._call.entry.closed

    @property
    def fun_name(self) -> str:
        return self._call.info.name

    @property
    def out_avals(self) -> Any:
        return self.out_tree.unflatten(self._call.flat_out)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compile the program and run it on arguments of the types it was traced at."""
        return self.lower().compile()(*args, **kwargs)

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """Return the program as StableHLO, for the platforms named or the one its arguments are on.

        For several platforms there is one text; where the program differs, its first argument is
        the index of the platform among those named.
        """
        lowered, where, committed = self.written(lowering_platforms)
        return Lowered(self._call, lowered, where, committed,
                       tuple(lowering_platforms or (lowered.module.platform,)))

    def placed(self) -> tuple[Any, bool]:
        """Return where the program runs, a device or a Spread, and if that was demanded."""
        where, committed = self._call.place()
        return (where.as_typed(self.jaxpr) if isinstance(where, Spread) else where,
                committed)

    def written(self, platforms: Sequence[str] | None = None, embed: bool = False
                ) -> tuple[Lowering, Any, bool]:
        """Return the program's text, where it runs, and if that was demanded.

        With ``embed`` its constants are in the text, else they are further arguments.
        """
        where, committed = self.placed()
        platforms = platforms or (devices.lowering_platform(devices_of(where)[0]),)
        write = functools.partial(self._call.lower, where, embed=embed)
        made = [write(platform) for platform in platforms]
        if any(other.text != made[0].text for other in made[1:]):
            return write(tuple(platforms)), where, committed
        return made[0], where, committed


class Lowered(Stage):
    """A program as StableHLO.

    >>> "sine" in jax.jit(jnp.sin).lower(1.).as_text()
    True
    """

    def __init__(self, call: Call, lowered: Lowering, where: Any, committed: bool,
                 platforms: tuple[str, ...]):
        super().__init__(call)
        self._lowered = lowered
        self._where = where
        self._committed = committed
        self._platforms = platforms

    @property
    def out_info(self) -> Any:
        where = self._where
        typed = where.outs if isinstance(where, Spread) else ()
        return self._call.out_info(typed or self._call.asked_of_results())

    @property
    def _devices(self) -> tuple[Any, ...]:
        return devices_of(self._where)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """Return the program as text: 'stablehlo' (the default), or 'hlo' before optimisation.

        Results are named after their places in what the function returns; ``debug_info`` adds
        places in user code, and the names of arguments.

        Raises: ValueError for another dialect.
        """
        if dialect == "hlo":
            program = self.compiler_ir("hlo")
            if not debug_info:
                return program.as_hlo_text()
            options = _jaxlib.hlo.HloPrintOptions.short_parsable()
            options.print_metadata = True
            return program.get_hlo_module().to_string(options)
        return self.compiler_ir(dialect).operation.get_asm(enable_debug_info=debug_info)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """Return the program in memory: an MLIR module, or an XlaComputation for 'hlo'.

        Raises: ValueError for another dialect.
        """
        if dialect == "hlo":
            return _jaxlib.mlir_module_to_xla_computation(self._lowered.located_text())
        check_dialect(dialect)
        module = parse(self._lowered.located_text())
        name_values(module, *self._names())
        return module

    def _names(self) -> tuple[list[str], list[str]]:
        """Return what the arguments and results of the program are in the user's function."""
        lowered, call = self._lowered, self._call
        if any(map(is_high, [*call.flat_in, *call.flat_out])):
            return [], []  # what it takes and gives are the arrays that such values are made of
        results = ["result" + tree.keystr(path)
                   for path, _ in tree.leaves_with_path(call.out_info())]

        def with_others(names: list[str], count: int) -> list[str]:
            """Put a token before the names, and references behind them."""
            names = [""] * lowered.ordered + names
            return (names + [""] * count)[:count]

        return (pick(with_others(call.paths(), len(lowered.kept)), lowered.kept),
                with_others(results, len(lowered.out_avals)))

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimate of what the program costs before it is optimised."""
        placed = not isinstance(self._where, Spread) or self._where.has_devices
        device = self._devices[0] if placed else devices.default_device()
        return _jaxlib.hlo_module_cost_analysis(
            device.client, self.compiler_ir("hlo").get_hlo_module())

    def compile(self, compiler_options: dict[str, Any] | None = None, *,
                device_assignment: tuple[Any, ...] | None = None) -> Compiled:
        """Return the executable program; ``compiler_options`` are XLA's flags by name.

        Of a program lowered for several platforms it is that of the platform it would run on.
        ``device_assignment`` are the devices of a program that was lowered for a mesh without any.

        Raises: JaxRuntimeError if XLA knows no such option or refuses the program; ValueError if it
        was lowered for other platforms than the one it would run on, or for other devices;
        RuntimeError if it has no devices.
        """
        info, where = self._call.info, self._placed(device_assignment)
        devices_ = devices_of(where)
        here = devices.lowering_platform(devices_[0])
        if here not in self._platforms:
            raise ValueError(
                f"compile: {info.name} was lowered for {', '.join(self._platforms)}, but would run "
                f"on {here}. Lower it without lowering_platforms, or read its text.")
        lowered = self._lowered
        if lowered.platforms:
            lowered = self._call.lower(where, here)
        warn_wasted(lowered.wasted)
        options = {**info.compiler_options, **(compiler_options or {})}
        executable = find_or_compile(lowered, devices_, info.reference, options,
                                     same_rounding=info.same_rounding)
        dispatch.keep_within_limit()
        program = dispatch.Program(executable, lowered, where, self._committed)
        return Compiled(self._call, program,
                        lambda: as_bytes(executable, lowered, devices_, options,
                                         info.same_rounding))


    def _placed(self, given: tuple[Any, ...] | None) -> Any:
        """Return where the program runs, with the devices ``given`` if it has none itself."""
        where = self._where
        if isinstance(where, Spread) and not where.has_devices:
            if given is None:
                raise RuntimeError(
                    f"device_assignment cannot be `None` during compilation: the program was "
                    f"lowered for {where.mesh}, which has no devices. Name them: "
                    f".compile(device_assignment=tuple(jax.devices()[:{where.mesh.size}]))")
            return where.on(given)
        here = devices_of(where)
        if given is not None and tuple(given) != here:
            raise ValueError(
                "device_assignment passed to `.compile` must match the device_assignment "
                "calculated from array shardings and out_shardings. Got device ids passed to "
                f"compile {[d.id for d in given]} and devices ids calculated from array shardings "
                f"and out_shardings as {[d.id for d in here]}.")
        return where


def check_dialect(dialect: str | None) -> None:
    if dialect not in (None, "stablehlo"):
        raise ValueError(f"unknown dialect: {dialect}. A lowered program is read as 'stablehlo' or "
                         "'hlo'; the optimised HLO is that of .compile().as_text().")


def _refuse(what: str, wrong: list[str], remedy: str) -> None:
    """Refuse arguments of a compiled program, if there are ``wrong`` ones, for their ``what``."""
    if wrong:
        raise errors.explained(
            errors.ArgumentError, f"compiled.{what}",
            f"Computation was compiled for input {what} that disagree with the {what} of "
            f"arguments passed to it. Here are the {len(wrong)} mismatches:\n" + "\n".join(wrong),
            advice=f"Put them as it wants them: {remedy}.")


class Compiled(Stage):
    """An executable program, called with arguments of exactly the types it was made for.

    >>> jax.jit(lambda x: x + 1).lower(1.).compile()(2.)
    Array(3., dtype=float32, weak_type=True)
    """

    def __init__(self, call: Types, program: dispatch.Program, code: Callable[[], bytes]):
        """``code`` gives the machine code."""
        super().__init__(call)
        self._program = program
        self._code = code
        # C++ answers a call like the one before by itself; any other comes to ``_miss``.
        self._fast = dispatch.make_fast(
            call.name, lambda *args, **kwargs: self._miss(*args, **kwargs)[0], self._miss)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fast(*args, **kwargs)

    call = __call__

    def _miss(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """Check the arguments of a call, and run."""
        call = self._call
        leaves, got = tree.flatten((args, kwargs))
        for x in leaves:
            if isinstance(x, Tracer):
                raise under_transformation(x)
        if got != call.in_tree:
            raise other_structure(call.in_tree, (args, kwargs))
        wrong = [
            f"Argument '{path}' compiled with {want.str_short()} and called with "
            f"{aval_of(x).str_short()}"
            for x, want, path in zip(leaves, call.flat_in, call.paths())
            if (aval_of(x).shape, aval_of(x).dtype) != (want.shape, want.dtype)]
        if wrong:
            raise errors.explained(
                errors.ArgumentTypeError, "compiled.types",
                "Argument types differ from the types for which this computation was compiled. "
                "Perhaps you are calling the compiled executable with a different enable_x64 mode "
                "than when it was AOT compiled? The mismatches are:\n" + "\n".join(wrong),
                advice="Call the jitted function itself, which compiles again, or convert them.")
        if Seen.storage:
            self.check_layouts(leaves)
        self.check_places(leaves)
        outs = call.out_tree.unflatten(self._program.run([*leaves, *call.refs]))
        return outs, self._program.fast_path(call.out_tree), False

    def check_places(self, leaves: Sequence[Any]) -> None:
        """Refuse committed arguments that are sharded otherwise than they were compiled for.

        Raises: ValueError.
        """
        wanted = tree.leaves(self.input_shardings, is_leaf=lambda v: v is None)
        wrong = []
        for x, want, aval, path in zip(leaves, wanted, self._call.flat_in, self._call.paths()):
            if want is None or type(x) is not _jaxlib.ArrayImpl or not x._committed \
                    or want.is_equivalent_to(x._sharding, len(aval.shape)):
                continue
            wrong.append(f"Argument {path} with shape {aval.str_short()}:\n"
                         f"  Passed sharding: {x._sharding}\n  Required sharding: {want}")
        _refuse("shardings", wrong, "device_put(x, compiled.input_shardings[0][0])")

    def check_layouts(self, leaves: Sequence[Any]) -> None:
        """Refuse committed arguments whose axes lie in another order than they were compiled for.

        Raises: ValueError.
        """
        wanted = tree.leaves(self.input_formats, is_leaf=lambda v: v is None)
        wrong = []
        for x, want, aval, path in zip(leaves, wanted, self._call.flat_in, self._call.paths()):
            if want is None or type(x) is not _jaxlib.ArrayImpl or not x.committed:
                continue
            have = unusual_layout(x)
            if have is not None and not have.same_order(want.layout):
                wrong.append(f"Argument {path} with shape {aval.str_short()}:\n"
                             f"  Passed layout: {have}\n  Required layout: {want.layout}")
        _refuse("layouts", wrong, "device_put(x, compiled.input_formats[0][0])")

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
        """Return jaxlib's object of the loaded program."""
        return self._program.executable

    @property
    def out_info(self) -> Any:
        return self._call.out_info(self._formats_of_results())

    @property
    def input_shardings(self) -> Any:
        """The shardings of the arguments: of args, and of kwargs; None for unused ones."""
        return self._of_arguments(self._program.ins)

    def _of_arguments(self, kept: Iterable[Any]) -> Any:
        """Return what is said of kept operands in the arguments' structure; None for unused ones.

        References that the function closes over come after the arguments.
        """
        given = with_nones(self._program.kept, kept)
        return self.in_tree.unflatten(given[:self.in_tree.num_leaves])

    def _of_results(self, outs: Sequence[Any]) -> Any:
        """Return what is said of results in their structure; written references come after them."""
        return self.out_tree.unflatten(outs[:self.out_tree.num_leaves])

    @property
    def output_shardings(self) -> Any:
        return self._of_results(self._program.outs)

    @property
    def input_formats(self) -> Any:
        """How the arguments lie in memory and on devices; None for unused ones."""
        layouts = self._program.executable.get_parameter_layouts()[len(self._program.consts):]
        return self._of_arguments(formats(layouts, self._program.ins))

    @property
    def output_formats(self) -> Any:
        return self._of_results(self._formats_of_results())

    def _formats_of_results(self) -> list[Format]:
        return formats(self._program.executable.get_output_layouts(), self._program.outs)


def formats(layouts: Sequence[Any], shardings: Sequence[Any]) -> list[Format]:
    return [Format(Layout.from_xla(layout), s) for layout, s in zip(layouts, shardings)]


def under_transformation(x: Tracer) -> Exception:
    """Return the error for a compiled program called with a traced value."""
    return errors.explained(
        errors.ArgumentTypeError, "compiled.traced",
        "Cannot apply JAX transformations to a function lowered and compiled for a particular "
        f"signature. Detected argument of Tracer type {type(x)}.",
        advice="Machine code cannot be differentiated, batched or traced. Transform first, then "
        "compile: jit(grad(f)).lower(x).compile().")


def other_structure(wanted: Any, given: Any) -> Exception:
    """Return the error for a compiled program called with another structure of arguments."""
    found = tree.difference(wanted, given)
    where, what = found if found is not None else ((), "a container stands where a leaf was")
    names = ("args", "kwargs")
    place = names[where[0].idx] + tree.keystr(where[1:]) if where else "the arguments"
    return errors.explained(
        errors.ArgumentTypeError, "compiled.structure",
        "Function compiled with input pytree does not match the input pytree it was called with. "
        f"At {place}: {what} (compiled for the first, called with the second).",
        advice="Static arguments are part of the program and are not passed again; all others are "
        "passed as in the call that was lowered, by position or by keyword.")


def trace_call(info: Jitted, args: tuple, kwargs: dict[str, Any]) -> Traced:
    """Trace ``info.fun`` for arguments that may be ShapeDtypeStructs or types."""
    bound = info.bind_arguments(args, kwargs)
    bound.leaves = [struct_of(x) if type(x) is ShapedArray else x for x in bound.leaves]
    entry = info.entry(bound, info.avals(bound))
    if entry.refs is not None:
        info.add_references(bound, entry)
    return Traced(Call(info, bound, entry))


class _Jitted(type):
    """Makes ``isinstance`` test what an object can do."""

    def __instancecheck__(cls, x: Any) -> bool:
        return callable(x) and all(hasattr(x, n) for n in ("trace", "lower", "eval_shape", "info"))


class Wrapped(metaclass=_Jitted):
    """What ``jit`` returns: callable, with ``trace``, ``lower``, ``eval_shape``, ``clear_cache``.

    For ``isinstance`` only; ``jit`` makes these.

    >>> jax.jit(jnp.sin).lower(1.).compile()(0.)
    Array(0., dtype=float32, weak_type=True)
    """

    trace: Callable[..., Traced]
    lower: Callable[..., Lowered]
    eval_shape: Callable[..., Any]

