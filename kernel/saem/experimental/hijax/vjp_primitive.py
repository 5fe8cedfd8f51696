"""How does a program define an operation in Python, with its types and its derivatives?

A class derived from ``VJPHiPrimitive`` sets ``in_avals``, ``out_aval`` (pytrees of types) and
``params``, and defines ``expand``, what it computes.  In a jaxpr an object of it is one equation;
what it computes is written out when that is lowered.  The class says the rest by methods that it
needs: ``vjp_fwd`` with ``vjp_bwd`` or ``vjp_bwd_retval`` for reverse mode, ``jvp`` for forward
mode, ``lin`` with ``linearized`` for ``jax.linearize``, ``batch`` or ``batch_dim_rule`` for
``vmap``, ``transpose`` if it is linear.

Read before: ``jit.call``, ``transform.linearize``..
Invariant: a rule runs where JAX runs it; one that is missing is an error that names it, and only
where it is needed (tests/kernel/test_hijax.py).
Source: observed behaviour of jax.experimental.hijax.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from saem.compile.lowering import lower_block
from saem.core import axes, config, containers, errors, tree
from saem.core.avals import ShapedArray, aval_of
from saem.core.axes import Axis
from saem.core.handles import Zero
from saem.core.hi_types import as_aval, as_type, is_high
from saem.core.jaxpr import ClosedJaxpr, evaluate, split_list, with_nones
from saem.core.primitive import Primitive, UndefinedPrimal, primitive
from saem.core.record import Record
from saem.core.trace import beneath, bind, state
from saem.interpreters.batching import AxisData
from saem.jit.call import JitCall, ProgramCall
from saem.ops import sharding_rules
from saem.ops.linear import add_cotangents, reduce_sum, zeros_of
from saem.transform.derivatives import as_array, is_differentiable
from saem.transform.jvp import jvp_flat
from saem.transform.linearize import PartialTrace
from saem.transform.staging import StagingTrace, trace_flat
from saem.transform.vmap import match_dim, vmap_flat


class Accumulator:
    """Where a backward rule puts the cotangent of an argument; it drops that of one with none."""

    def __init__(self, aval: Any, wanted: bool = True):
        self.aval = aval
        self.wanted = wanted
        self.ct: Any = None

    def __repr__(self) -> str:
        return f"{'ValAccum' if self.wanted else 'NullAccum'}({self.aval.str_short()})"

    def accum(self, ct: Any) -> None:
        """Add ``ct``, an array, a ``Zero`` or None, to what was accumulated."""
        if self.wanted and ct is not None and not isinstance(ct, Zero):
            self.ct = add_cotangents(self.ct, ct)

    def freeze(self) -> Any:
        """Return what was accumulated."""
        return Zero(self.aval.to_tangent_aval()) if self.ct is None else self.ct


class VJPHiPrimitive:
    """Base of operations that are defined in Python and bring their own derivatives.

    >>> class Twice(jax.experimental.hijax.VJPHiPrimitive):
    ...     def __init__(self, aval):
    ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return x * 2
    >>> x = jnp.float32(3)
    >>> Twice(jax.typeof(x))(x)
    Array(6., dtype=float32)
    """

    in_avals: tuple
    out_aval: Any
    params: dict[str, Any]
    effects: Any = frozenset()

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if name not in vars(self):
                raise AttributeError(f"subclass __init__ should set `self.{name}`. Set it before "
                                     "super().__init__() is called.")
        in_types, self.in_tree = tree.flatten(self.in_avals)
        out_types, self.out_tree = tree.flatten(self.out_aval)
        self.in_avals_flat = [as_aval(ty) for ty in in_types]
        self.out_avals_flat = [as_aval(ty) for ty in out_types]
        vars(self).update(self.params)

    def __call__(self, *args: Any) -> Any:
        leaves, in_tree = tree.flatten(args)
        if in_tree != self.in_tree:
            raise TypeError(f"{self} takes arguments of the structure {self.in_tree}, got "
                            f"{in_tree}. Try: pass what `in_avals` describes.")
        return self.out_tree.unflatten(bind(CallHiPrimitive(self), *leaves))

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    def _key(self) -> tuple:
        return (type(self), self.in_tree, self.out_tree, *self.in_avals_flat,
                *self.out_avals_flat, *sorted(self.params.items()))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    # -- what a subclass defines --

    def check(self, *arg_tys: Any) -> None:
        """Refuse arguments of wrong types, by an exception; by default all are taken."""

    def expand(self, *args: Any) -> Any:
        """Return what the operation computes."""
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> tuple[Any, Any]:
        """Return the result, and residuals; ``nzs_in`` says which arguments have a cotangent."""
        raise self._lacks("grad", "`vjp_fwd`")

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        """Put cotangents into ``arg_accums``, by default those that ``vjp_bwd_retval`` returns."""
        found = self.vjp_bwd_retval(res, outgrad)
        for accumulator, ct in zip(tree.leaves(arg_accums),
                                   tree.broadcast_prefix(found, arg_accums, is_leaf=is_zero)):
            accumulator.accum(ct)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        """Return a cotangent for each argument; None is zero."""
        raise self._lacks("grad", "`vjp_bwd` or `vjp_bwd_retval`")

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        """Return the result and its tangent; tangents may be ``Zero``."""
        raise self._lacks("jvp", "`jvp`")

    def lin(self, nzs_in: Any, *primals: Any) -> tuple[Any, Any]:
        """Return the result, and residuals for ``linearized``."""
        raise self._lacks("linearize", "`lin` and `linearized`")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """Return the tangent of the result."""
        raise self._lacks("linearize", "`lin` and `linearized`")

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        """Put cotangents into accumulators, which stand for the linear arguments."""
        raise self._lacks("transpose", "`transpose`")

    def batch_dim_rule(self, axis_data: AxisData, dims: Any, /) -> Any:
        """Return the batch axes of the result, for arguments with batch axes ``dims``."""
        raise self._lacks("vmap", "`batch` or `batch_dim_rule`")

    def batch(self, axis_data: AxisData, args: Any, dims: Any) -> tuple[Any, Any]:
        """Return the result for stacks and its batch axes; by default ``expand`` is mapped."""
        out_dims = self.batch_dim_rule(axis_data, dims)
        return VmapOf(self, axis_data, dims, out_dims)(*args), out_dims

    def _lacks(self, what: str, rules: str) -> NotImplementedError:
        return NotImplementedError(
            f"for {what} support, subclass {type(self)} must implement {rules}")

    def _defines(self, rule: str) -> bool:
        return vars(VJPHiPrimitive)[rule] is not getattr(type(self), rule)


def leaves_like(values: Any, like: Any, name: str) -> list[Any]:
    """Return for each leaf of ``like`` what ``values``, a prefix of it, has there.

    None and ``Zero`` are leaves.
    Raises: ValueError naming the place where ``values`` is no prefix.
    """
    return tree.broadcast_prefix(values, like, is_leaf=is_zero, name=name)


def is_zero(x: Any) -> bool:
    """Return whether ``x``, a tangent or cotangent of a rule, stands for zeros."""
    return x is None or isinstance(x, Zero)


@primitive("call_hi_primitive")
class CallHiPrimitive(ProgramCall):
    """Apply an object of a class that a program derived from ``VJPHiPrimitive``."""

    hi: VJPHiPrimitive

    renamed: ClassVar[dict[str, str]] = {"_prim": "hi"}

    @property
    def params(self):
        return {"_prim": self.hi}

    def printed_params(self):
        return self.params

    @property
    def effects(self):
        return self.hi.effects

    @property
    def program(self) -> ClosedJaxpr:
        return expanded(self.hi, config.trace_key())

    def with_program(self, closed: ClosedJaxpr) -> Primitive:
        return JitCall(closed, type(self.hi).__name__)

    def typing(self, *avals):
        hi = self.hi
        hi.check(*hi.in_tree.unflatten(map(as_type, avals)))
        for got, needed in zip(avals, hi.in_avals_flat):
            if got.shape != needed.shape or got.dtype != needed.dtype:
                raise errors.explained(
                    errors.ArgumentTypeError, "call_hi_primitive.C1",
                    f"{hi} takes arguments of types {hi.in_avals}, got {got} for {needed}.",
                    advice="Make it for the types of these arguments, by jax.typeof.")
        return list(hi.out_avals_flat)

    def eager(self, *xs):
        return results_of(self.hi, self.hi.expand(*self.hi.in_tree.unflatten(xs)))

    def jvp(self, primals, tangents):
        """Run the rule for forward mode at once, unless it may be reverse mode that asks."""
        hi, nonzero = self.hi, tuple([t is not None for t in tangents])
        if not isinstance(state.trace, (PartialTrace, StagingTrace)):
            return moved(hi, primals, tangents)
        outs, found = split_list(
            bind(WithRule(hi, nonzero), *primals, *[t for t in tangents if t is not None]),
            len(hi.out_avals_flat))
        return outs, with_nones(moving(hi), found)

    def transpose(self, cts, *args):
        hi = self.hi
        found = [Accumulator(x.aval) if isinstance(x, UndefinedPrimal) else x for x in args]
        hi.transpose(hi.out_tree.unflatten(with_zeros(cts, hi.out_avals_flat)),
                     *hi.in_tree.unflatten(found))
        return [x.ct if isinstance(x, Accumulator) else None for x in found]

    def batch(self, size, xs, dims):
        hi, axis = self.hi, axes.batching()
        data = AxisData(None if axis is None else axis.name, size,
                        None if axis is None else axis.spmd, None)
        out, out_dims = hi.batch(data, hi.in_tree.unflatten(xs), hi.in_tree.unflatten(dims))
        outs = results_of(hi, out)
        return outs, leaves_like(out_dims, out, "the batch axes of a result")


@functools.lru_cache(1024)
def expanded(hi: VJPHiPrimitive, key: Any) -> ClosedJaxpr:
    """Return the program of what ``hi`` computes, under the settings of ``key``."""
    return trace_flat(lambda *xs: results_of(hi, hi.expand(*hi.in_tree.unflatten(xs))),
                      hi.in_avals_flat, name="expand", debug_name=type(hi).__name__)


def results_of(hi: VJPHiPrimitive, out: Any) -> list[Any]:
    """Return the leaves of a result of ``hi``.  Raises: TypeError if its structure is another."""
    leaves, out_tree = tree.flatten(out)
    if out_tree != hi.out_tree:
        raise TypeError(f"{hi} returned a result of the structure {out_tree}, but `out_aval` has "
                        f"{hi.out_tree}. Return what `out_aval` describes.")
    return leaves


def moving(hi: VJPHiPrimitive) -> list[bool]:
    """Return which results of ``hi`` have tangents."""
    return [is_differentiable(aval) for aval in hi.out_avals_flat]


def with_zeros(values: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Return tangents or cotangents of values of ``avals`` as rules get them: ``Zero`` for None."""
    return [Zero(aval.to_tangent_aval()) if x is None else x for x, aval in zip(values, avals)]


def moved(hi: VJPHiPrimitive, primals: Sequence[Any], tangents: Sequence[Any]
          ) -> tuple[list[Any], list[Any]]:
    """Return the results of ``hi`` and their tangents, None for zero, by its rule ``jvp``."""
    given = with_zeros(tangents, [aval_of(x) for x in primals])
    out, tangent = hi.jvp(hi.in_tree.unflatten(primals), hi.in_tree.unflatten(given))
    found = leaves_like(tangent, out, "the tangent of a result")
    return results_of(hi, out), [None if isinstance(t, Zero) else t for t in found]


def pulled(hi: VJPHiPrimitive, nonzero: Sequence[bool], residuals: Any, cts: Sequence[Any]
           ) -> list[Any]:
    """Return cotangents of the arguments that are ``nonzero``, of all results' (None is zero)."""
    found = [Accumulator(aval, nz) for aval, nz in zip(hi.in_avals_flat, nonzero)]
    given = [None if ct is None else as_array(ct) for ct in cts]
    hi.vjp_bwd(residuals, hi.out_tree.unflatten(with_zeros(given, hi.out_avals_flat)),
               *hi.in_tree.unflatten(found))
    return [x.ct for x, nz in zip(found, nonzero) if nz]


@primitive("call_hi_primitive_jvp")
class WithRule(ProgramCall):
    """The results of ``hi`` and their tangents, where forward or reverse mode may ask.

    Operands are all primals, then the tangents that are ``nonzero``.
    """

    hi: VJPHiPrimitive
    nonzero: tuple[bool, ...]

    @property
    def program(self) -> ClosedJaxpr:
        return ruled(self, config.trace_key())

    def with_program(self, closed: ClosedJaxpr) -> Primitive:
        return JitCall(closed, f"jvp_{type(self.hi).__name__}")

    effects = property(lambda self: self.hi.effects)

    def typing(self, *avals):
        outs = self.hi.out_avals_flat
        return [*outs, *(a.to_tangent_aval() for a, m in zip(outs, moving(self.hi)) if m)]

    def eager(self, *xs):
        return self.both(*xs)

    def both(self, *flat: Any) -> list[Any]:
        """Return the results and the tangents of those that have some, by the rule ``jvp``."""
        primals, tangents = split_list(flat, len(self.nonzero))
        outs, found = moved(self.hi, primals, with_nones(self.nonzero, tangents))
        return [*outs, *(zeros_of(a.to_tangent_aval()) if t is None else t for t, a, m in
                         zip(found, self.hi.out_avals_flat, moving(self.hi)) if m)]

    def partial_eval(self, trace: PartialTrace, args: Sequence[Any]) -> list[Any]:
        """Reverse mode: run the forward rule, and record what gives tangents by its residuals."""
        hi = self.hi
        primals, tangents = split_list(args, len(self.nonzero))
        if not all(map(trace.is_known, primals)):
            return trace.emit(self, args)
        pulls, given = hi._defines("vjp_fwd"), hi.in_tree.unflatten(primals)
        forward_rule = hi.lin if hi._defines("lin") and not pulls else hi.vjp_fwd
        with beneath(trace):
            out, kept = forward_rule(hi.in_tree.unflatten(self.nonzero), *given)
            # A rule for tangents begins anew with the arguments, if tangents are ever asked for.
            residuals, residual_tree = tree.flatten(
                (kept, given) if pulls and hi._defines("lin") else (kept, None))
        linear = HiLinear(hi, self.nonzero, residual_tree)
        return [*results_of(hi, out), *trace.emit(linear, [*residuals, *tangents])]

    def transpose(self, cts, *args):
        """Where the primals were not known before: both passes, now that they are."""
        hi, count = self.hi, len(self.nonzero)
        _, residuals = hi.vjp_fwd(hi.in_tree.unflatten(self.nonzero),
                                  *hi.in_tree.unflatten(args[:count]))
        found = with_nones(moving(hi), cts[len(hi.out_avals_flat):])
        return [*[None] * count, *pulled(hi, self.nonzero, residuals, found)]


@functools.lru_cache(1024)
def ruled(prim: WithRule, key: Any) -> ClosedJaxpr:
    """Return the program of the rule for forward mode, under the settings of ``key``."""
    avals = prim.hi.in_avals_flat
    return trace_flat(prim.both, [*avals, *(a.to_tangent_aval() for a, nz in
                                            zip(avals, prim.nonzero) if nz)], name="jvp")


@primitive("call_hi_primitive_lin")
class HiLinear(Primitive):
    """The derivative of ``hi`` at a point: residuals of its rules and tangents to tangents."""

    hi: VJPHiPrimitive
    nonzero: tuple[bool, ...]
    residuals: Any

    multiple_results = True
    shard_results = sharding_rules.unchanged

    def typing(self, *avals):
        return [a.to_tangent_aval() for a, m in zip(self.hi.out_avals_flat, moving(self.hi)) if m]

    def pushed(self, *xs: Any) -> list[Any]:
        """Return the tangents of the results, by the rule ``linearized``."""
        hi, count = self.hi, self.residuals.num_leaves
        tangents = with_zeros(with_nones(self.nonzero, xs[count:]), hi.in_avals_flat)
        residuals, primals = self.residuals.unflatten(xs[:count])
        if primals is not None:
            _, residuals = hi.lin(hi.in_tree.unflatten(self.nonzero), *primals)
        out = hi.linearized(residuals, *hi.in_tree.unflatten(tangents))
        found = leaves_like(out, hi.out_tree.unflatten(hi.out_avals_flat), "a tangent")
        return [zeros_of(a.to_tangent_aval()) if t is None or isinstance(t, Zero) else t
                for t, a, m in zip(found, hi.out_avals_flat, moving(hi)) if m]

    def eager(self, *xs):
        return self.pushed(*xs)

    def evaluate(self, *xs):
        return evaluate(trace_flat(self.pushed, [aval_of(x) for x in xs]), *xs)

    def lower(self, ctx, *xs):
        return lower_block(ctx, trace_flat(self.pushed, ctx.in_avals), xs)

    def jvp(self, primals, tangents):
        return jvp_flat(self.pushed, primals, tangents)

    def transpose(self, cts, *args):
        hi, count = self.hi, self.residuals.num_leaves
        if not hi._defines("vjp_fwd"):
            raise hi._lacks("grad", "`vjp_fwd`")
        residuals = self.residuals.unflatten(args[:count])[0]
        return [*[None] * count,
                *pulled(hi, self.nonzero, residuals, with_nones(moving(hi), cts))]

    def batch(self, size, xs, dims):
        return vmap_flat(self.pushed, size, xs, dims)


class VmapOf(VJPHiPrimitive):
    """``prim`` on stacks of ``axis_data.size`` values along ``in_dims``: its rules are mapped."""

    prim: VJPHiPrimitive
    axis_data: AxisData
    in_dims: Any
    out_dim: Any

    def __init__(self, prim: VJPHiPrimitive, axis_data: AxisData, in_dims: Any, out_dim: Any):
        self.params = {"prim": prim, "axis_data": axis_data, "in_dims": in_dims, "out_dim": out_dim}
        self.ins = leaves_like(in_dims, prim.in_avals, "batch axes")
        self.outs = leaves_like(out_dim, prim.out_aval, "batch axes")
        size = axis_data.size
        self.in_avals = prim.in_tree.unflatten(
            [with_axis(a, size, d) for a, d in zip(prim.in_avals_flat, self.ins)])
        self.out_aval = prim.out_tree.unflatten(
            [with_axis(a, size, d) for a, d in zip(prim.out_avals_flat, self.outs)])
        super().__init__()

    def _key(self) -> tuple:
        return VmapOf, self.prim, self.axis_data, *self.ins, None, *self.outs

    def mapped(self, fun: Callable[..., Any], ins: Sequence[int | None], xs: Sequence[Any]
               ) -> tuple[list[Any], list[int | None]]:
        """Return the leaves that ``fun`` gives for stacks ``xs``, and their batch axes."""
        name, size, spmd, _ = self.axis_data
        return vmap_flat(fun, size, xs, ins, None if name is None else Axis(name, size, spmd))

    def stacks(self, xs: Sequence[Any], dims: Sequence[int | None], at: Sequence[int | None]
               ) -> list[Any]:
        """Return ``xs`` with batch axes ``at``."""
        return [x if d == to else match_dim(x, d, to, self.axis_data.size)
                for x, d, to in zip(xs, dims, at)]

    def expand(self, *args: Any) -> Any:
        hi = self.prim
        outs, dims = self.mapped(
            lambda *xs: results_of(hi, hi.expand(*hi.in_tree.unflatten(xs))), self.ins,
            tree.leaves(args))
        return self.out_tree.unflatten(self.stacks(outs, dims, self.outs))

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> tuple[Any, Any]:
        hi = self.prim
        trees: list[Any] = []

        def forward(*xs: Any) -> list[Any]:
            out, residuals = hi.vjp_fwd(nzs_in, *hi.in_tree.unflatten(xs))
            leaves, residual_tree = tree.flatten(residuals)
            trees[:] = [residual_tree]
            return [*results_of(hi, out), *leaves]

        found, dims = self.mapped(forward, self.ins, tree.leaves(args))
        count = len(self.outs)
        out = self.stacks(found[:count], dims[:count], self.outs)
        residuals = self.stacks(found[count:], dims[count:], [0] * (len(found) - count))
        return self.out_tree.unflatten(out), (Residuals(trees[0]), residuals)

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        hi, (residuals, leaves) = self.prim, res
        cts = [None if isinstance(ct, Zero) else ct for ct in tree.leaves(outgrad, is_zero)]
        accumulators = tree.leaves(arg_accums)
        wanted = [x.wanted for x in accumulators]

        def backward(*xs: Any) -> list[Any]:
            kept, given = split_list(xs, len(leaves))
            found = pulled(hi, wanted, residuals.structure.unflatten(kept),
                           with_nones([ct is not None for ct in cts], given))
            avals = [a for a, w in zip(hi.in_avals_flat, wanted) if w]
            return [zeros_of(a.to_tangent_aval()) if ct is None else ct
                    for ct, a in zip(found, avals)]

        ins = [*[0] * len(leaves), *(d for d, ct in zip(self.outs, cts) if ct is not None)]
        found, dims = self.mapped(backward, ins, [*leaves, *(ct for ct in cts if ct is not None)])
        pairs = [(x, to) for x, to in zip(accumulators, self.ins) if x.wanted]
        for (accumulator, to), ct, d in zip(pairs, found, dims):  # shared arguments get the sum
            (ct,) = self.stacks([ct], [d], [to or 0])
            accumulator.accum(reduce_sum(ct, (0,)) if to is None else ct)

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        hi, leaves = self.prim, tree.leaves(primals)
        given = [None if isinstance(t, Zero) else t for t in tree.leaves(tangents, is_zero)]
        has = [t is not None for t in given]

        def both(*xs: Any) -> list[Any]:
            values, moves = split_list(xs, len(leaves))
            outs, found = moved(hi, values, with_nones(has, moves))
            return [*outs, *(zeros_of(a.to_tangent_aval()) if t is None else t
                             for t, a in zip(found, hi.out_avals_flat))]

        found, dims = self.mapped(
            both, [*self.ins, *(d for d, h in zip(self.ins, has) if h)],
            [*leaves, *(t for t in given if t is not None)])
        found = self.stacks(found, dims, [*self.outs, *self.outs])
        count = len(self.outs)
        return self.out_tree.unflatten(found[:count]), self.out_tree.unflatten(found[count:])

    def batch_dim_rule(self, axis_data: AxisData, dims: Any, /) -> Any:
        """Ask ``prim`` for the axes of one example of this map, and count this map's axis again."""
        ins = leaves_like(dims, self.in_avals, "batch axes")
        below = [None if d is None else d - (own is not None and d > own)
                 for d, own in zip(ins, self.ins)]
        found = leaves_like(self.prim.batch_dim_rule(axis_data, self.in_tree.unflatten(below)),
                            self.out_aval, "batch axes")
        return self.out_tree.unflatten([None if d is None else d + (own is not None and d > own)
                                        for d, own in zip(found, self.outs)])


class Residuals(Record):
    """The structure of residuals, which are kept as a flat list of stacks."""

    structure: Any


containers.register_pytree_node(Residuals, lambda x: ((), x.structure), lambda s, _: Residuals(s))


def with_axis(aval: ShapedArray, size: int, dim: int | None) -> ShapedArray:
    """Return the type of a stack of ``size`` values along ``dim``; of one value if that is None.

    Raises: NotImplementedError for values that are no arrays.
    """
    if dim is None:
        return aval
    if is_high(aval):
        raise NotImplementedError(f"values of {aval} are not mapped. Map over the arrays that hold "
                                  "them.")
    return aval.update(shape=(*aval.shape[:dim], size, *aval.shape[dim:]))
