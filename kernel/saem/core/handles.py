"""By which names do users and readers of jaxprs know primitives?

Inside the engine an operation is a record with its parameters (``core.primitive``).  Users know it
by one object for all parameters: ``lax.exp_p`` is ``eqn.primitive``, is a key of their registries,
and ``lax.reduce_sum_p.bind(x, axes=(0,))`` makes the record and binds it.  A ``Handle`` without a
record class is a primitive the user defines: its rules are in tables filled by ``def_impl``,
``def_abstract_eval`` and ``saem.interpreters``.

Read before: ``core.primitive``, ``core.trace``.  Read after: ``saem.extend.core``.
Invariant: one handle per primitive, so ``is`` decides; no handle is in an equation or a cache.
Source: the documentation of JAX, "Writing custom Jaxpr interpreters" and "JAX primitives".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem.core import containers, errors
from saem.core.avals import aval_of
from saem.core.literals import typed
from saem.core.primitive import Primitive, UndefinedPrimal, registry
from saem.core.trace import Trace, bind, current


class Handle:
    """A primitive by name: ``handle.bind(*args, **params)`` applies it.

    A class that a library derives from it may define ``impl``, ``abstract_eval`` and
    ``multiple_results`` itself.
    """

    call_primitive = False
    map_primitive = False
    multiple_results: bool = False

    def __init__(self, name: str, record: type[Primitive] | None = None):
        self.name = name
        self.record = record
        if record is not None:
            self.multiple_results = record.multiple_results
        self.abstract: Callable = _missing(self, "Abstract evaluation")
        # The effects that a rule of its own has named so far.
        self.effects: frozenset = frozenset()

    def __repr__(self) -> str:
        return self.name

    def operation(self, params: dict[str, Any]) -> Primitive:
        """Return the record of this primitive with ``params``.

        A parameter of JAX's that records do not have may be None, which means its default.
        Raises: TypeError naming parameters that are missing or unknown.
        """
        if self.record is None:
            return UserOperation(self, params)
        fields = self.record.renamed
        given = {fields.get(name, name): value for name, value in params.items()}
        for name in self.record.derived_params:  # these follow from the operands
            given.pop(name, None)
        names = self.record._names
        return self.record(**{k: as_python(v) for k, v in given.items()
                              if k in names or v is not None})

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive to ``args`` under the current interpreter.

        A function with rules is one of its primitives with ``subfuns``: the function and the rules,
        which have ``call_wrapped``.
        """
        if "subfuns" in params and self.record is not None:
            return self.record.bind_functions(args, **params)
        out = bind(self.operation(params), *args)
        return list(out) if self.multiple_results else out

    def bind_with_trace(self, trace: Trace, args: Sequence[Any], avals: Sequence[Any],
                        params: dict[str, Any]) -> Any:
        """Apply the primitive to ``args``, of types ``avals``, under the interpreter ``trace``."""
        if "subfuns" in params:
            with current(trace):
                return self.bind(*args, **params)
        return trace.process_primitive(self, tuple(args), params)

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return what ``bind`` takes for an equation with ``params``."""
        return dict(params)

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, frozenset]:
        """Return the aval (or avals) of the result and the effects."""
        if self.record is None:
            return self.abstract(*avals, **params), self.effects
        operation = self.operation(params)
        return operation.typing(*avals), operation.effects

    def impl(self, *args: Any, **params: Any) -> Any:
        """Return what the primitive gives on arrays; ``def_impl`` replaces it.

        Raises: NotImplementedError until then.
        """
        return _missing(self, "Evaluation rule")(*args, **params)

    def def_impl(self, impl: Callable) -> Callable:
        """Let ``impl(*args, **params)`` compute the primitive outside all traces."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, rule: Callable) -> Callable:
        """Let ``rule(*avals, **params)`` give the aval of the result."""
        self.abstract = rule
        return rule

    def def_effectful_abstract_eval(self, rule: Callable) -> Callable:
        """Let ``rule(*avals, **params)`` give the aval of the result, and a set of effects."""

        self.abstract_eval = rule
        return rule


handles: dict[type, Handle] = {}


def handle_of(operation: Primitive) -> Handle:
    """Return the handle by which users know the primitive of ``operation``."""
    if isinstance(operation, UserOperation):
        return operation.handle
    kind = type(operation)
    found = handles.get(kind)
    if found is None:
        found = handles.setdefault(kind, Handle(operation.name, kind))
    return found


def handle_named(name: str) -> Handle | None:
    """Return the handle of the primitive registered as ``name``, None if there is none."""
    record = registry.get(name)
    if record is None:
        return None
    return handles.get(record) or handles.setdefault(record, Handle(name, record))


def as_python(param: Any) -> Any:
    """Return ``param`` with integers of NumPy's as Python's, of which programs are written."""
    if type(param) is tuple:
        return tuple([as_python(part) for part in param])
    return int(param) if isinstance(param, np.integer) else param


# Where JAX's name of the object is not that of the primitive.
_CALLED = {"add_jaxvals": "add_any", "linear_solve": "custom_linear_solve", "remat": "remat2"}


def primitive_called(name: str) -> Handle | None:
    """Return the primitive that JAX's namespaces call ``name`` (``exp_p``), None if none is."""
    if not name.endswith("_p"):
        return None
    stem = _CALLED.get(name[:-2], name[:-2])
    return handle_named(stem) or handle_named(stem.replace("_", "-"))


def primitive_names() -> list[str]:
    """Return the names, such as ``exp_p``, of the primitives that are loaded."""
    named = [name.replace("-", "_") for name in registry if handle_named(name)]
    named += [name for name, called in _CALLED.items() if called in registry]
    return sorted(f"{name}_p" for name in named)


# -- primitives that users define ------------------------------------------------------------------

# What makes arrays of numbers for the rules; set by ``_wiring``.
linear_maps: Any = None

jvps: dict[Handle, Callable] = {}
transposes: dict[Handle, Callable] = {}
batchers: dict[Handle, Callable] = {}
# ``rule(needed, eqn)``: (operands kept, the equation without unneeded results, None if it is gone).
dce_rules: dict[Handle, Callable] = {}
lowerings: dict[tuple[Handle, str | None], Callable] = {}


class Zero:
    """A tangent or cotangent that is zero, as the rules of users meet it."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval})"

    def instantiate(self) -> Any:
        """Return the array of zeros that it stands for."""
        return linear_maps.zeros_of(self.aval)


# What a rule returns may go through ``vmap`` and ``jit``: to them it is a container of nothing.
containers.register_pytree_node(Zero, lambda x: ((), x.aval), lambda aval, _: Zero(aval))


def _missing(handle: Handle, rule: str) -> Callable:
    def refuse(*_args: Any, **_params: Any) -> Any:
        raise errors.explained(
            NotImplementedError, "primitive.C1", f"{rule} for '{handle.name}' not implemented",
            advice="Define it: p.def_impl, p.def_abstract_eval, ad.primitive_jvps[p], "
            "ad.primitive_transposes[p], batching.primitive_batchers[p], "
            "mlir.register_lowering(p, mlir.lower_fun(fun, multiple_results=False)).")

    return refuse


def _or_none(value: Any) -> Any:
    return None if isinstance(value, Zero) else value


class UserOperation(Primitive):
    """A primitive that a user defined, with its parameters: the six rules call the user's."""

    handle: Handle
    given: dict[str, Any]

    quick_code = False

    @property
    def name(self):
        return self.handle.name

    @property
    def multiple_results(self):
        return self.handle.multiple_results

    @property
    def effects(self):
        return self.handle.effects

    @property
    def params(self):
        return dict(self.given)

    def typing(self, *avals):
        out, effects = self.handle.abstract_eval(*avals, **self.given)
        self.handle.effects |= frozenset(effects)
        return list(out) if self.multiple_results else out

    def evaluate(self, *xs):
        return self.handle.impl(*map(typed, xs), **self.given)

    def eager(self, *xs):
        return self.evaluate(*xs)

    def lower(self, ctx, *xs):
        platform = ctx.module.platform
        rule = lowerings.get((self.handle, platform)) or lowerings.get((self.handle, None))
        if rule is None:
            raise errors.explained(
                NotImplementedError, "primitive.C2",
                f"MLIR translation rule for primitive '{self.name}' not found for platform "
                f"{platform}", advice="Define it by mlir.register_lowering(p, "
                "mlir.lower_fun(fun, multiple_results=False)), fun being made of jax functions.")
        out = list(rule(ctx, *xs, **self.given))
        return out if self.multiple_results else out[0]

    def jvp(self, primals, tangents):
        rule = jvps.get(self.handle) or _missing(self.handle, "Differentiation rule")
        tangents = [Zero(aval_of(x).to_tangent_aval()) if t is None else t
                    for x, t in zip(primals, tangents)]
        out, moved = rule(tuple(map(typed, primals)), tuple(tangents), **self.given)
        if self.multiple_results:
            return list(out), [_or_none(t) for t in moved]
        return out, _or_none(moved)

    def transpose(self, ct, *args):
        rule = transposes.get(self.handle) or _missing(
            self.handle, "Transpose rule (for reverse-mode differentiation)")
        if self.multiple_results:
            avals = self.typing(*[x.aval if isinstance(x, UndefinedPrimal) else aval_of(x)
                                  for x in args])
            ct = [Zero(a) if c is None else linear_maps.as_array(c) for a, c in zip(avals, ct)]
        else:
            ct = linear_maps.as_array(ct)
        return [_or_none(x) for x in rule(ct, *map(typed, args), **self.given)]

    def batch(self, size: int, xs: Sequence[Any], dims: Sequence[int | None]):
        rule = batchers.get(self.handle) or _missing(self.handle, "Batching rule")
        return rule(tuple(map(typed, xs)), tuple(dims), **self.given)
