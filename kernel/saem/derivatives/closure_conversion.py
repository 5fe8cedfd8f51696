"""How do closed-over values become arguments, and how is a linear function transposed?

``closure_convert`` makes what a function closes over into arguments, ``custom_gradient`` takes a
function that returns its own pullback, ``linear_transpose`` runs a linear function backwards, and
``linear_call`` states the transpose of one function.

Read before: ``derivatives.custom_vjp``, ``transform.linearize``.
Invariant: transposing twice gives back the linear function.
Source: the documentation of jax.closure_convert, custom_gradient, linear_transpose, linear_call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from saem.core import containers, dtypes, errors, tree
from saem.core.arguments import check_callable, name_of
from saem.core.avals import ShapedArray, ShapeDtypeStruct, aval_of, is_array_like
from saem.core.frames import boundary
from saem.core.jaxpr import ClosedJaxpr, eval_jaxpr, pick
from saem.core.primitive import UndefinedPrimal, primitive
from saem.core.sharded import plain
from saem.core.trace import Tracer, bind, run_under, state
from saem.derivatives.custom_rule import Batch, SymbolicZero, pair
from saem.derivatives.custom_vjp import BatchedBackward, custom_vjp
from saem.jit.call import ProgramCall
from saem.ops.linear import zeros_of
from saem.placement.shardings import off_mesh
from saem.transform.derivatives import as_array
from saem.transform.jvp import instantiate
from saem.transform.linearize import PartialTrace, backward_pass
from saem.transform.programs import trace_function
from saem.transform.restructure import open_consts
from saem.transform.staging import trace_flat
from saem.transform.vmap import batch_jaxpr, fronted


@boundary
def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list[Any]]:
    """Return ``fun`` with its closure as further arguments, and the values of these.

    Only traced values of float type are taken out: others cannot be differentiated.  The function
    returned takes arguments of the types of ``example_args``.
    Raises: TypeError if ``fun`` has no hash.

    >>> scale = 2.
    >>> converted, consts = jax.closure_convert(lambda x: scale * x, 1.)
    >>> converted(3., *consts)
    Array(6., dtype=float32, weak_type=True)
    """
    check_callable(fun)
    hash(fun)
    in_tree = tree.structure(example_args)
    closed, out_tree = trace_function(fun, example_args, {}, name="closure_convert")
    moved = [isinstance(c, Tracer) and dtypes.is_inexact(aval_of(c).dtype) for c in closed.consts]
    values = pick(closed.consts, moved)

    def converted(*args: Any) -> Any:
        count = len(args) - len(values)
        leaves, got = tree.flatten(tuple(args[:count]))
        if got != in_tree:
            raise errors.explained(
                errors.ArgumentTypeError, "closure_convert.C1",
                "The inputs to the closure produced by closure_convert must have the same "
                "Pytree structure as the example arguments passed when closure_convert was "
                f"called. Expected {in_tree}, but got {got}.",
                advice=f"Pass the arguments, then the {len(values)} values that closure_convert "
                "returned.")
        given = iter(args[count:])
        consts = [next(given) if m else c for c, m in zip(closed.consts, moved)]
        return out_tree.unflatten(eval_jaxpr(closed.jaxpr, consts, *leaves))

    return converted, values


def custom_gradient(fun: Callable) -> Callable:
    """Return ``fun``, which returns ``(out, pullback)``, as a function of ``out`` with that rule.

    ``pullback(ct)`` returns the cotangents of the arguments, a tuple if there are several.

    >>> double = jax.custom_gradient(lambda x: (x * x, lambda g: 10. * g))
    >>> jax.grad(double)(3.)
    Array(10., dtype=float32, weak_type=True)
    """
    check_callable(fun)

    def both(*args: Any) -> Any:
        return pair(f"custom_gradient function {name_of(fun)}",
                    "representing its value and its gradient function, but got", fun(*args))

    def alone(*args: Any) -> Any:
        return both(*args)[0]

    # Its parameters stay ``*args``: the rule gives cotangents of what is passed, not of defaults.
    functools.update_wrapper(alone, fun)
    vars(alone).pop("__wrapped__")
    wrapped = custom_vjp(alone)

    def fwd(*args: Any) -> tuple[Any, Any]:
        out, pullback = both(*args)
        cts = tree.map_(lambda x: zeros_of(aval_of(x).to_ct_aval()), out)
        closed, out_tree = trace_function(pullback, (cts,), {}, name="custom_gradient")
        return out, Kept(closed, out_tree)

    def bwd(kept: Kept, ct: Any) -> Any:
        return kept.pull(ct)

    wrapped.defvjp(fwd, bwd)
    return wrapped


class Kept:
    """The pullback a ``custom_gradient`` function returned: a pytree of what it closes over."""

    def __init__(self, closed: ClosedJaxpr, out_tree: Any):
        self.closed = closed
        self.out_tree = out_tree

    def pull(self, ct: Any) -> tuple:
        outs = eval_jaxpr(self.closed.jaxpr, self.closed.consts, *tree.leaves(ct))
        cts = self.out_tree.unflatten(outs)
        return tuple(cts) if isinstance(cts, (tuple, list)) else (cts,)

    def _flatten(self):
        return tuple(self.closed.consts), (self.closed.jaxpr, self.out_tree)

    @staticmethod
    def _unflatten(static, consts):
        jaxpr, out_tree = static
        return Kept(ClosedJaxpr(jaxpr, list(consts)), out_tree)


containers.register_pytree_node(Kept, Kept._flatten, Kept._unflatten)


# -- transposition ---------------------------------------------------------------------------------


def stands_for_array(x: Any) -> bool:
    """Return whether ``x`` is no array but has a shape and a dtype."""
    return not is_array_like(x) and hasattr(x, "shape") and hasattr(x, "dtype")


@boundary
def linear_transpose(fun: Callable, *primals: Any, reduce_axes: Sequence = ()) -> Callable:
    """Return the transpose of ``fun``, which must be linear, at arguments (or avals) like these.

    It takes one cotangent like the output and returns a tuple with one like each argument; it is
    a pytree of what the function needs.

    Raises: TypeError unless all types are inexact, or all are integers; NotImplementedError for
    ``reduce_axes``, which JAX has withdrawn too.
    """
    check_callable(fun)
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to linear_transpose is deprecated")
    leaves, in_tree = tree.flatten(primals)
    avals = [x if isinstance(x, ShapedArray) else aval_of(
        ShapeDtypeStruct(x.shape, x.dtype) if stands_for_array(x) else x) for x in leaves]
    partial = PartialTrace(state.trace, "linear_transpose")
    outs, out_tree = run_under(partial, lambda *args: tree.flatten(fun(*in_tree.unflatten(args))),
                               [partial.new_unknown(a) for a in avals])
    known = [partial.is_known(x) for x in outs]
    out_avals = [aval_of(x) for x in outs]
    check_linear_types(avals, out_avals)
    closed = partial.close([partial.as_atom(x) for x, k in zip(outs, known) if not k])

    def transposed(consts: Sequence[Any], ct: Any) -> Any:
        cts, got = tree.flatten(ct)
        if got != out_tree:
            raise TypeError(
                f"cotangent tree does not match function output, expected {out_tree} but got {got}")
        wanted = [aval.strip_weak_type() for aval in out_avals]
        if any((given := aval_of(x).strip_weak_type()) != aval
               and not (off_mesh(x) and given == plain(aval)) for x, aval in zip(cts, wanted)):
            raise TypeError("cotangent type does not match function output, expected "
                            f"{tuple(out_avals)} but got {cts}")
        found = backward_pass(closed.jaxpr, consts, [
            x for x, k in zip(cts, known) if not k])
        return in_tree.unflatten([
            as_array(zeros_of(a)) if x is None else as_array(x) for x, a in zip(found, avals)])

    return containers.Partial(transposed, tuple(closed.consts))


def check_linear_types(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> None:
    """Refuse functions between types for which linearity has no meaning."""
    def all_of(test: Callable) -> bool:
        return all(test(a.dtype) for a in (*ins, *outs))

    if not all_of(dtypes.is_inexact) and not all_of(dtypes.is_integer):
        given = [[a.dtype for a in avals] for avals in (ins, outs)]
        raise errors.explained(
            errors.ArgumentTypeError, "linear_transpose.C1",
            "linear_transpose only supports [float or complex] -> [float or complex], and integer "
            f"-> integer functions, but got {given[0]} -> {given[1]}.",
            advice="Convert the arguments.")


@primitive("linear_call")
class LinearCall(ProgramCall):
    """Call a program, linear in all but its first ``num_res`` inputs, whose transpose is given.

    ``backward(residuals, cts)`` is the flat transpose, of cotangents all present.
    """

    callee: ClosedJaxpr
    backward: Callable[[Sequence[Any], Sequence[Any]], list[Any]]
    num_res: int

    holds = "callee"
    # Its transpose is given with it.
    nested = None

    def printed_params(self):
        return {"callee": self.callee, "num_res": self.num_res}

    def jvp(self, primals, tangents):
        n = self.num_res
        if any(t is not None for t in tangents[:n]):
            raise NotImplementedError(
                "linear_call cannot be differentiated in its residual arguments: write the "
                "derivative in them with custom_jvp around it.")
        outs = bind(self, *primals)
        moving = [instantiate(t, x) for t, x in zip(tangents[n:], primals[n:])]
        return outs, bind(self, *primals[:n], *moving)

    def transpose(self, cts, *args):
        n = self.num_res
        linear = [a.aval if isinstance(a, UndefinedPrimal) else aval_of(a) for a in args[n:]]
        given = [zeros_of(a) if ct is None else ct for ct, a in zip(cts, self.callee.out_avals)]
        program = trace_flat(
            lambda *flat: self.backward(flat[:n], flat[n:]),
            [aval_of(x) for x in (*args[:n], *given)], name="transpose",
            debug_name=self.callee.jaxpr.debug_name)
        program, consts = open_consts(program)
        check_transpose_types(program.out_avals, linear)
        outs = bind(LinearCall(program, self.forward(len(consts)), n + len(consts)),
                    *consts, *args[:n], *given)
        return [*[None] * n, *outs]

    def forward(self, skipped: int) -> Callable:
        """Return this call as the transpose of its transpose, which has more residuals."""
        return lambda residuals, xs: bind(self, *residuals[skipped:], *xs)

    def batch(self, size, xs, dims):
        n = self.num_res
        flags = tuple(d is not None for d in dims)
        count = len(self.callee.out_avals)
        program, _ = batch_jaxpr(self.callee, size, flags, (True,) * count)
        stacked = [0 if f else None for f in flags]
        backward = BatchedBackward(self.backward, Batch(size, []), stacked[:n], [0] * count,
                                   stacked[n:])
        return bind(LinearCall(program, backward, n), *fronted(xs, dims)), [0] * count


@boundary
def linear_call(fun: Callable, fun_transpose: Callable, residual_args: Any, linear_args: Any
                ) -> Any:
    """Return ``fun(residual_args, linear_args)``, whose transpose is ``fun_transpose``.

    ``fun_transpose(residual_args, ct)`` returns cotangents like ``linear_args``.
    """
    residuals, residual_tree = tree.flatten(residual_args)
    linears, linear_tree = tree.flatten(linear_args)
    n = len(residuals)
    out_trees: list[Any] = []

    def callee(*flat: Any) -> list[Any]:
        outs, out_tree = tree.flatten(
            fun(residual_tree.unflatten(flat[:n]), linear_tree.unflatten(flat[n:])))
        out_trees.append(out_tree)
        return outs

    closed, consts = open_consts(trace_flat(
        callee, [aval_of(x) for x in (*residuals, *linears)], name="linear_call",
        debug_name=name_of(fun)))
    out_tree, skipped = out_trees[0], len(consts)

    def backward(given: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        outs, got = tree.flatten(fun_transpose(
            residual_tree.unflatten(given[skipped:]), out_tree.unflatten(cts)))
        if got != linear_tree:
            raise errors.explained(
                errors.ArgumentTypeError, "linear_call.C1",
                "transpose output pytree structure must match that of linear inputs, got output "
                f"structure {got} and input structure {linear_tree}.",
                advice="Return one cotangent for every linear argument.")
        return outs

    outs = bind(LinearCall(closed, backward, n + skipped), *consts, *residuals, *linears)
    return out_tree.unflatten(outs)


def check_transpose_types(got: Sequence[ShapedArray], wanted: Sequence[ShapedArray]) -> None:
    """Refuse a transpose whose results are not of the types of the linear inputs."""
    for mine, theirs in zip(got, wanted):
        if mine.strip_weak_type() != theirs.strip_weak_type():
            raise errors.explained(
                errors.ShapeError, "linear_call.C2",
                f"transpose outputs must have the types of the linear inputs: got "
                f"{mine.str_short(True)} for {theirs.str_short(True)}.",
                advice="Sum over stretched axes, convert dtypes.")


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Return the zero tangent of each leaf of ``val``, symbolic if asked for."""
    return tree.map_(SymbolicZero.from_primal_value if symbolic_zeros else
                     lambda x: as_array(zeros_of(aval_of(x).to_tangent_aval())), val)
