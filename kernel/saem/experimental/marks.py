"""How does a program give XLA attributes for its operations?

They are written beside operations in the text of a program, and XLA passes them on as they are:
where to compute (``compute_on``), what belongs together (``scheduling_group``), or what a user's
own pass reads (``set_xla_metadata``).  A mark on the stack of transformations gives them to
every operation that is recorded under it; as attributes of a call they are for the call alone.

Read before: ``core.scopes``, ``jit.call``.  Read after: ``jit.stages``.
Invariant: a mark changes the text of a program, never its values.
Source: observed behaviour of jax.experimental.compute_on, xla_metadata and scheduling_groups.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from saem.compile import lowering
from saem.core import config, errors, tree
from saem.core.avals import aval_of
from saem.core.jaxpr import ClosedJaxpr, eval_jaxpr
from saem.core.memory_spaces import MemorySpace, placed, space_of
from saem.core.primitive import Primitive, primitive
from saem.core.trace import Mark, bind, eval_trace, state
from saem.jit.call import JitCall, ProgramCall
from saem.jit.transfers import DevicePut
from saem.ops import sharding_rules, sum_rules
from saem.ops.constraints import prefix
from saem.ops.linear import Identity
from saem.transform.nested import Nested
from saem.transform.staging import move_tracer_consts, trace_flat

# The marks in force are part of the key of every trace.
_in_force = config.UserContext(())


@contextlib.contextmanager
def marking(attributes: dict[str, str | None], replaces: frozenset = frozenset()
            ) -> Iterator[None]:
    """Give every operation that is recorded inside these attributes."""
    Mark.used = True
    mark = Mark(attributes, replaces)
    trace = state.trace
    own, stack = trace.stack, state.stack
    state.stack = (*stack, mark)
    if trace is not eval_trace:  # interpreters that start inside go on from its stack
        trace.stack = (*own, mark)
    key = (tuple(sorted(attributes.items(), key=str)), replaces)
    try:
        with _in_force((*_in_force.value, key)):
            yield
    finally:
        state.stack = stack
        if trace is not eval_trace:
            trace.stack = own


class marked(contextlib.ContextDecorator):
    """``with marked(attributes):``, or ``@marked(attributes)``: as ``marking``, and again."""

    def __init__(self, attributes: dict[str, str | None], replaces: frozenset = frozenset()):
        self.given = attributes, replaces
        self.open: list[Any] = []

    def __enter__(self) -> None:
        self.open.append(marking(*self.given))
        self.open[-1].__enter__()

    def __exit__(self, *exc: Any) -> None:
        self.open.pop().__exit__(*exc)


class marked_with_stages(marked):
    """The same; of a jitted function also its stages are under the marks."""

    def __call__(self, fun: Callable) -> Callable:
        """Return ``fun`` under these marks."""
        made = super().__call__(fun)
        for name in ("lower", "trace", "eval_shape") if hasattr(fun, "lower") else ():
            setattr(made, name, super().__call__(getattr(fun, name)))
        return made


# -- metadata --------------------------------------------------------------------------------------


def words(metadata: dict[str, Any]) -> dict[str, str | None]:
    """Return metadata as the text says it: 2 as '2', True as 'true', None as nothing."""
    return {name: None if value is None else str(value).lower() if isinstance(value, bool)
            else str(value) for name, value in metadata.items()}


@primitive("xla_metadata_value")
class MetadataValue(Identity):
    """The value itself; the operation that made it gets attributes."""

    xla_metadata_kvs: tuple[tuple[str, Any], ...]

    shard_results = sharding_rules.unchanged
    sum_results = sum_rules.unchanged

    def lower(self, ctx, x):
        attributes = {k: v for k, v in words(dict(self.xla_metadata_kvs)).items() if v is not None}
        for operation in ctx.operations:
            if operation.result == x.split("#")[0]:
                operation.add_frontend(attributes)
        ctx.results.clear()  # one of them carries attributes now
        return x

    def jvp(self, primals, tangents):
        return bind(self, *primals), tangents[0]

    def transpose(self, ct, x):
        return [ct]


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Give attributes to operations: of pytree ``x``, to those that made its arrays.

    Without ``x``, a context manager and decorator: to all operations that are traced inside.

    Raises: TypeError if a leaf of ``x`` is no array.
    """
    if x is None:
        return marked_with_stages(words(kwargs))
    if not kwargs:
        return x
    pairs = tuple(kwargs.items())

    def one(leaf: Any) -> Any:
        try:
            aval_of(leaf)
        except TypeError:
            raise errors.explained(
                errors.ArgumentTypeError, "xla_metadata.C1",
                "Error interpreting argument to xla_metadata_value as a JAX value. The problematic "
                f"value is of type {type(leaf)} and was passed to xla_metadata_value at position "
                "0.", advice="Give arrays, or write it as a decorator: "
                "@set_xla_metadata(name=value).") from None
        return bind(MetadataValue(pairs), leaf)

    return tree.map_(one, x)


# -- calls with attributes -------------------------------------------------------------------------


class MarkedCall(ProgramCall):
    """A call that has attributes in the text of a program."""

    __slots__ = ()
    jaxpr: ClassVar[ClosedJaxpr]
    # It is split as any call is.
    partial_eval = JitCall.partial_eval
    _run_known = JitCall._run_known

    def attributes(self) -> dict[str, str]:
        """Return the attributes of the call."""
        raise NotImplementedError(f"{self.name} does not say its attributes")

    def lower(self, ctx, *xs):
        begin = len(ctx.operations)
        outs = lowering.call(ctx, self.jaxpr, xs, self.name)
        if outs:
            for operation in ctx.operations[begin:]:
                operation.add_frontend(self.attributes())
        return outs


def traced_call(make: Callable[[ClosedJaxpr, Any], Primitive], f: Callable, name: str,
                args: tuple, kwargs: dict[str, Any]) -> Any:
    """Trace ``f`` and bind ``make(program, structure of its result)``; returns what it returns."""
    leaves, in_tree = tree.flatten((args, kwargs))
    structure: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        inner_args, inner_kwargs = in_tree.unflatten(values)
        outs, out_tree = tree.flatten(f(*inner_args, **inner_kwargs))
        structure.append(out_tree)
        return outs

    closed = trace_flat(flat, [aval_of(x) for x in leaves], name=name,
                        debug_name=getattr(f, "__name__", "<unnamed>"))
    closed, moved = move_tracer_consts(closed)
    return structure[0].unflatten(bind(make(closed, structure[0]), *moved, *leaves))


@primitive("xla_metadata_call")
class MetadataCall(MarkedCall):
    """Call ``jaxpr``; the call, not what is inside, gets attributes."""

    jaxpr: ClosedJaxpr
    meta: tuple[tuple[str, Any], ...]

    @property
    def params(self):
        return {"jaxpr": self.jaxpr, **dict(self.meta)}

    def printed_params(self):
        return dict(sorted(self.params.items()))

    def with_program(self, closed):
        return MetadataCall(closed, self.meta)

    def attributes(self):
        return {k: v for k, v in sorted(words(dict(self.meta)).items()) if v is not None}


def xla_metadata_call(f: Callable | None = None, **meta: Any) -> Callable:
    """Return ``f`` as one call with attributes; without ``f``, a decorator."""
    if f is None:
        return lambda g: xla_metadata_call(g, **meta)
    pairs = tuple(sorted(meta.items()))

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return traced_call(lambda closed, _: MetadataCall(closed, pairs), f, "xla_metadata_call",
                           args, kwargs)

    return wrapped


def scheduling_group(name: str) -> Callable:
    """Return a decorator: what its functions compute is scheduled together, as group ``name``."""
    return xla_metadata_call(scheduling_group=name)


# -- where to compute ------------------------------------------------------------------------------

_COMPUTE = {"device_host": "host", "device": "dense", "tpu_sparsecore": "sparseoffload"}
_NAMES = frozenset({"_xla_compute_type", "_xla_stream_annotation", "inlineable"})


def compute_attributes(compute_type: str) -> dict[str, str]:
    """Return the attributes that say where to compute.

    Raises: ValueError for another place.
    """
    if compute_type in _COMPUTE:
        return {"_xla_compute_type": _COMPUTE[compute_type]}
    stream = re.fullmatch(r"gpu_stream:(\d+)", compute_type)
    if stream is None:
        raise errors.explained(
            errors.ArgumentError, "compute_on.C1",
            f"Invalid compute type {compute_type}. Current supported values are `device_host`, "
            "`device`, `tpu_sparsecore`, and `gpu_stream:#`.",
            advice="'device_host' computes on the CPU beside the device.")
    return {"_xla_stream_annotation": stream[1], "inlineable": "false"}


def compute_on(compute_type: str) -> Any:
    """Return a context manager and decorator: what is traced inside is computed there.

    Raises: ValueError for another place than device_host, device, tpu_sparsecore, gpu_stream:#.
    """
    return marked(dict(compute_attributes(compute_type)), _NAMES)


@primitive("compute_on")
class ComputeOn(MarkedCall):
    """Call ``jaxpr`` on another part of the machine; results come to ``out_memory_spaces``."""

    jaxpr: ClosedJaxpr
    compute_type: str
    out_memory_spaces: tuple[MemorySpace, ...]
    compiler_options_json: str | None = None

    types_memory = True

    @property
    def params(self):
        return {"compiler_options_json": self.compiler_options_json,
                "compute_type": self.compute_type, "jaxpr": self.jaxpr,
                "out_memory_spaces": self.out_memory_spaces}

    def printed_params(self):
        return self.params

    def with_program(self, closed):
        return ComputeOn(closed, self.compute_type,
                         tuple(space_of(a) for a in closed.out_avals), self.compiler_options_json)

    @property
    def nested(self):
        return Nested((self.settled().jaxpr,))

    def settled(self) -> ComputeOn:
        """Return this call with its results moved inside, so that their types say where they lie.

        Programs derived from it then know it too.
        """
        if all(space_of(a) is s for a, s in zip(self.jaxpr.out_avals, self.out_memory_spaces)):
            return self

        def move() -> ClosedJaxpr:
            def run(*xs: Any) -> list[Any]:
                outs = eval_jaxpr(self.jaxpr.jaxpr, self.jaxpr.consts, *xs)
                return [DevicePut((s,)).put(x) for x, s in zip(outs, self.out_memory_spaces)]

            return trace_flat(run, self.jaxpr.in_avals, name="compute_on")

        return self.with_program(self.jaxpr.derived(("settled", self.out_memory_spaces), move))

    def typing(self, *avals):
        return [placed(a, s) for a, s in zip(self.jaxpr.out_avals, self.out_memory_spaces)]

    def attributes(self):
        options = self.compiler_options_json
        return {**compute_attributes(self.compute_type),
                **({"backend_config": options} if options else {})}

    def lower(self, ctx, *xs):
        return [ctx.in_memory(x, "pinned_host" if s is MemorySpace.Host else "device")
                for x, s in zip(super().lower(ctx, *xs), self.out_memory_spaces)]

    def partial_eval(self, trace, args):
        return MarkedCall.partial_eval(self.settled(), trace, args)


def compute_on2(f: Callable | None = None, *, compute_type: str, out_memory_spaces: Any,
                compiler_options: dict[str, Any] | None = None) -> Callable:
    """Return ``f`` computed on ``compute_type``, its results in ``out_memory_spaces``, one space or
    a pytree prefix of them; without ``f``, a decorator.

    Raises: ValueError for another place, or spaces that do not fit the results.
    """
    if f is None:
        return functools.partial(compute_on2, compute_type=compute_type,
                                 out_memory_spaces=out_memory_spaces,
                                 compiler_options=compiler_options)
    attributes: dict[str, str | None] = dict(compute_attributes(compute_type))
    options = None if compiler_options is None else json.dumps(compiler_options, sort_keys=True)

    def make(closed: ClosedJaxpr, out_tree: Any) -> Primitive:
        like = out_tree.unflatten([0] * out_tree.num_leaves)
        spaces = prefix("compute_on out_memory_spaces", out_memory_spaces, like)
        return ComputeOn(closed, compute_type, tuple(spaces), options)

    def inside(*args: Any, **kwargs: Any) -> Any:
        with marking(attributes, _NAMES):
            return f(*args, **kwargs)

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return traced_call(make, inside, "compute_on", args, kwargs)

    return wrapped
