"""How does a function get a backward rule of its own?

``custom_vjp(f)`` with ``f.defvjp(fwd, bwd)``: where ``f`` is differentiated, ``fwd`` runs in its
place and keeps residuals; its tangent is one linear equation, ``custom_lin``, which cannot
be computed forward, but whose transpose is ``bwd``.

Read before: ``derivatives.custom_jvp``.  Read after: ``derivatives.closure_conversion``.
Invariant: ``bwd`` is the only thing that ever turns a cotangent of ``f`` into those of its inputs.
Source: the documentation of jax.custom_vjp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from saem.core import errors, tree
from saem.core.arguments import name_of
from saem.core.avals import ShapedArray, aval_of, is_array_like
from saem.core.dtypes import PYTHON_SCALARS
from saem.core.frames import boundary
from saem.core.jaxpr import ClosedJaxpr, with_nones
from saem.core.primitive import Primitive, UndefinedPrimal, absent, primitive
from saem.core.record import Record
from saem.core.sharded import same_sharding
from saem.core.trace import Tracer, bind
from saem.core.tree import map_
from saem.derivatives import optimize_remat as remat_opt
from saem.derivatives.custom_rule import (
    Arguments,
    Batch,
    Call,
    FlatPrimal,
    RuledCall,
    RuledFunction,
    SymbolicZero,
    WrappedPrimal,
    WrappedRule,
    apply,
    none_for_zeros,
    pair,
    stage,
)
from saem.derivatives.further_results import FurtherVJP
from saem.ops import sharding_rules, sum_rules
from saem.ops.linear import reduce_sum, zeros_of
from saem.transform.derivatives import as_array, is_differentiable
from saem.transform.linear_maps import is_float0
from saem.transform.vmap import match_dim

# A backward rule on flat lists: residuals and cotangents of the outputs (None is zero) to one
# cotangent per input, None where it is zero.
Backward = Callable[[Sequence[Any], Sequence[Any]], list[Any]]
# A forward rule on flat lists: inputs, and which of them have a tangent, to outputs, residuals and
# the backward rule for these residuals.
Forward = Callable[[Sequence[Any], Sequence[bool]], tuple[list[Any], list[Any], Backward]]


class custom_vjp(RuledFunction):
    """A function whose backward pass is the pair of rules given to ``defvjp``.

    Arguments in ``nondiff_argnums`` or ``nondiff_argnames`` may be any Python value but a tracer;
    ``fwd`` gets them in place, ``bwd`` before its own: ``bwd(*nondiff, residuals, ct)``.

    >>> clipped = jax.custom_vjp(lambda x: x)
    >>> clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1, 1),))
    >>> jax.grad(lambda x: 5 * clipped(x))(3.)
    Array(1., dtype=float32, weak_type=True)
    """

    _inner_rules = ("def_vmap", "defjvp", "defjvps")
    fwd: Callable | None = None
    bwd: Callable | None = None
    optimize_remat = False

    def defvjp(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False,
               optimize_remat: bool = False) -> None:
        """Make ``fwd(*args) -> (out, residuals)`` and ``bwd(residuals, ct) -> cts`` the rules.

        ``bwd`` returns a tuple with one cotangent per argument; None stands for zero.  With
        ``symbolic_zeros`` the leaves ``fwd`` gets are ``CustomVJPPrimal``, and cotangents that are
        zero come as ``SymbolicZero``.  With ``optimize_remat`` the function runs in the place
        of ``fwd`` where a program is written down and nothing reads the residuals.

        Raises: NotImplementedError if both are asked for.
        """
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError("remat optimization for custom_vjp does not support symbolic "
                                      "zeros: a program has none. Ask for one of them.")
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros
        self.optimize_remat = optimize_remat

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {name_of(self.fun)} using defvjp.")
        arguments = self.signature.split(self.signature.resolve(args, kwargs))
        for value in arguments.static.values():
            for leaf in tree.leaves(value):
                if isinstance(leaf, Tracer):
                    raise nondiff_tracer(leaf)
        fun = FlatPrimal(self.fun, arguments)
        rule = VJPRule(self.fwd, self.bwd, fun, arguments, self.symbolic_zeros,
                       self.optimize_remat)
        outs = apply(PythonCall(fun, fun, rule), arguments.leaves)
        return fun.out_tree.unflatten(outs)


def nondiff_tracer(leaf: Tracer) -> Exception:
    """Return the error for a traced value among the arguments that are not differentiable."""
    return errors.explained(
        errors.UnexpectedTracerError, "custom_vjp.C2",
        "Found a JAX Tracer object passed as an argument to a custom_vjp function in a position "
        f"indicated by nondiff_argnums as non-differentiable: {leaf}.",
        advice="nondiff_argnums is for functions, strings and numbers known to Python. Take the "
        "argument out of it, and return None (zero) for its cotangent.")


class CustomVJPPrimal:
    """What ``fwd`` gets for a leaf with ``symbolic_zeros``: its value, and whether it varies."""

    def __init__(self, value: Any, perturbed: bool):
        self.value = value
        self.perturbed = perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Return the pytree ``tree`` with each ``CustomVJPPrimal`` replaced by its value."""
    return map_(lambda leaf: leaf.value if isinstance(leaf, CustomVJPPrimal) else leaf,
                tree, is_leaf=lambda leaf: isinstance(leaf, CustomVJPPrimal))


class VJPRule(Record, eq=False):
    """A user's pair of rules as a ``Forward`` rule."""

    fwd: Callable
    bwd: Callable
    fun: FlatPrimal
    arguments: Arguments
    symbolic_zeros: bool
    optimize_remat: bool = False

    def __call__(self, primals: Sequence[Any], perturbed: Sequence[bool]
                 ) -> tuple[list[Any], list[Any], Backward]:
        if not (self.optimize_remat and remat_opt.is_written_down()):
            return self.forward(primals, perturbed)
        made: list[Any] = []

        def residuals_first(*xs: Any) -> list[Any]:
            outs, residuals, backward = self.forward(xs, perturbed)
            made[:] = [len(residuals), backward]
            return [*residuals, *outs]

        values = remat_opt.either(residuals_first, self.fun, primals, lambda: made[0],
                                  name_of(self.fun.fun))
        count, backward = made
        return values[count:], values[:count], backward

    def forward(self, primals: Sequence[Any], perturbed: Sequence[bool]
                ) -> tuple[list[Any], list[Any], Backward]:
        """Run the user's forward rule."""
        primals = [as_array(x) for x in primals]
        in_avals = [aval_of(x) for x in primals]
        given = [CustomVJPPrimal(x, p) for x, p in zip(primals, perturbed)] \
            if self.symbolic_zeros else primals
        out = self.fwd(*self.arguments.all(given))
        who = f"Custom VJP fwd rule {name_of(self.fwd)} for function {name_of(self.fun.fun)}"
        out, residual = pair(
            who, "where the first element represents the primal output (equal to those of the "
            f"custom_vjp-decorated function {name_of(self.fun.fun)}) and the second element "
            "represents residuals (i.e. values stored from the forward pass for use on the "
            "backward pass), but instead of a pair the fwd rule "
            f"{name_of(self.fwd)} produced", out)
        outs, out_tree = tree.flatten(out)
        self.fun.check_outputs(who, outs, out_tree)
        residuals, residual_tree = tree.flatten(residual)
        check_residuals(who, residuals)
        # A Python number goes to bwd as it is, which may branch on it.
        numbers = {i: x for i, x in enumerate(residuals) if type(x) in PYTHON_SCALARS}
        backward = UserBackward(self, in_avals, [aval_of(x) for x in outs], out_tree,
                                residual_tree, numbers)
        return outs, [x for i, x in enumerate(residuals) if i not in numbers], backward


def check_residuals(who: str, residuals: Sequence[Any]) -> None:
    """Refuse residuals that are no arrays: they pass through programs."""
    for x in residuals:
        if not is_array_like(x):
            raise errors.explained(
                errors.ArgumentTypeError, "custom_vjp.C9",
                f"{who}: Argument {x!r} of type {type(x)} is not a valid JAX type. Residuals are "
                "arrays.",
                advice="Keep arrays and numbers only. What else bwd needs to know, mark with "
                "nondiff_argnums.")


def zero_cotangent(aval: ShapedArray, symbolic: bool) -> Any:
    """Return the cotangent of type ``aval`` that is zero, as a rule gets it."""
    return SymbolicZero(aval) if symbolic else as_array(zeros_of(aval))


class UserBackward(Record, eq=False):
    """A user's backward rule as a ``Backward`` rule."""

    rule: VJPRule
    in_avals: Sequence[ShapedArray]
    out_avals: Sequence[ShapedArray]
    out_tree: Any
    residual_tree: Any
    numbers: dict[int, Any]

    @property
    def __name__(self) -> str:
        return name_of(self.rule.bwd)

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        rule = self.rule
        given = (as_array(x) for x in residuals)
        kept = [self.numbers[i] if i in self.numbers else next(given)
                for i in range(self.residual_tree.num_leaves)]
        leaves = [zero_cotangent(aval.to_ct_aval(), rule.symbolic_zeros) if ct is None
                  else as_array(ct) for aval, ct in zip(self.out_avals, cts)]
        out = rule.bwd(*rule.arguments.nondiff(), self.residual_tree.unflatten(kept),
                       self.out_tree.unflatten(leaves))
        found = cotangents_per_leaf(out, rule.arguments.in_tree)
        return [self.checked(i, ct) for i, ct in enumerate(found)]

    def checked(self, number: int, ct: Any) -> Any:
        """Return the cotangent of input leaf ``number``, None if that has none.

        A zero becomes numbers, since rules that go on from here run for all that has a cotangent.
        """
        aval = self.in_avals[number]
        if is_float0(ct) or not is_differentiable(aval):
            return None
        needed = aval.to_ct_aval()
        if ct is None or isinstance(ct, SymbolicZero):
            return None if aval.changes else as_array(zeros_of(needed))
        got = aval_of(ct)
        differ = "shapes" if got.shape != needed.shape else (
            "manual axis types" if not got.vma <= needed.vma else
            "" if same_sharding(got, needed) else "shardings")
        if differ:
            arguments = self.rule.arguments
            path, _ = tree.flatten_with_path(
                arguments.dynamic(range(len(self.in_avals))))[0][number]
            raise errors.explained(
                errors.ArgumentError, "custom_vjp.C6",
                "Custom VJP bwd rule must produce an output with the same type as the args tuple "
                f"of the primal function, but at output{tree.keystr(path)} the bwd rule produced "
                f"an output of type {got.str_short()} corresponding to an input "
                f"of type {aval.str_short()}, so the {differ} do not match",
                advice="Sum the cotangent over axes along which the input was stretched"
                " (over devices that share the input: lax.psum).")
        return ct


def cotangents_per_leaf(out: Any, in_tree: Any) -> list[Any]:
    """Return one cotangent per leaf of the arguments; a None above several leaves is for all.

    Raises: TypeError if ``out`` is not structured like the arguments.
    """
    count = in_tree.num_leaves
    if isinstance(out, (tuple, list)):
        try:
            found = tree.broadcast_prefix(tuple(out), in_tree.unflatten(range(count)),
                                          is_leaf=lambda x: x is None)
        except ValueError:
            found = None
        if found is not None and sum(x is not None for x in found) == len(tree.leaves(out)):
            return found
    raise errors.explained(
        errors.ArgumentTypeError, "custom_vjp.C7",
        "Custom VJP bwd rule must produce an output with the same container (pytree) structure as "
        "the args tuple of the primal function, and in particular must produce a tuple of length "
        "equal to the number of arguments to the primal function, but got bwd output structure "
        f"{tree.structure(out)} for primal input structure {in_tree}.",
        advice="Return a tuple with one cotangent per argument (nondiff_argnums excepted); for one "
        "argument that is (ct,).")


class WrappedVJP(Record, eq=False):
    """Rules that an interpreter of a library binds, as a ``Forward`` rule.

    ``out_trees()`` gives, once ``fwd`` has run, the structures of results and residuals, and for
    each residual the operand that it is, or None.
    """

    fwd: WrappedRule
    bwd: WrappedRule
    out_trees: Callable
    symbolic_zeros: bool

    def __call__(self, primals: Sequence[Any], perturbed: Sequence[bool]
                 ) -> tuple[list[Any], list[Any], Backward]:
        flat = self.fwd(*[x for pair in zip(primals, perturbed) for x in pair])
        places = self.out_trees()[2]
        count = places.count(None)
        made, outs = iter(flat[:count]), flat[count:]
        types = [aval_of(x).to_ct_aval() for x in outs]

        def backward(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            given = [zero_cotangent(aval, self.symbolic_zeros) if ct is None else ct
                     for aval, ct in zip(types, cts)]
            return [None if ct is None or is_float0(ct) else ct
                    for ct in none_for_zeros(self.bwd(*residuals, *given))]

        return outs, [next(made) if i is None else primals[i] for i in places], backward


class PythonCall(Call):
    """A call of a custom_vjp function before it is an equation."""

    name = "custom_vjp_call"

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
        return forward(self.rule, primals, tangents)

    def batched(self, batch: Batch) -> PythonCall:
        return PythonCall(self.flat, lambda *xs: batch.settle(*batch.run(self.run, xs)),
                          BatchedForward(self.rule, batch))

    def staged(self, args: Sequence[Any]) -> list[Any]:
        closed, consts = stage(self.flat, args, self.name, self.run)
        return bind(CustomVJPCall(closed, self.rule, len(consts)), *consts, *args)


def forward(rule: Forward, primals: Sequence[Any], tangents: Sequence[Any]
            ) -> tuple[list[Any], list[Any]]:
    """Run a forward rule; returns outputs and tangents that only ``bwd`` can make sense of."""
    nonzero = tuple(t is not None for t in tangents)
    outs, residuals, backward = rule(primals, nonzero)
    avals = [aval_of(x) for x in outs]
    moving = [is_differentiable(aval) for aval in avals]
    linear = CustomLin(backward, len(residuals), nonzero, tuple(moving), tuple(
        aval.to_tangent_aval() for aval, m in zip(avals, moving) if m))
    given = [t for t in tangents if t is not None]
    if not given or not any(moving):
        return outs, [None] * len(outs)
    return outs, with_nones(moving, bind(linear, *residuals, *given))


class BatchedForward:
    """A forward rule on stacks."""

    def __init__(self, rule: Forward, batch: Batch):
        self.rule = rule
        self.batch = batch

    def __call__(self, primals: Sequence[Any], perturbed: Sequence[bool]
                 ) -> tuple[list[Any], list[Any], Backward]:
        batch = self.batch
        made: list[Any] = []

        def one(*xs: Any) -> list[Any]:
            outs, residuals, backward = self.rule(xs, perturbed)
            made[:] = [len(outs), backward]
            return [*outs, *residuals]

        values, dims = batch.run(one, primals)
        n, backward = made
        outs = batch.settle(values[:n], dims[:n])
        flags = batch.out_batched or []
        return outs, values[n:], BatchedBackward(
            backward, batch, dims[n:], [0 if b else None for b in flags], batch.dims)


class BatchedBackward(Record, eq=False):
    """A backward rule on stacks of residuals and cotangents along given axes.

    An input that was the same for all examples gets the sum of their cotangents, unless the rule
    made one for all.  The cotangent of an output that all share is given to each, undivided:
    both as in JAX, which looks at what is a stack and not at how often something was used.
    """

    backward: Backward
    batch: Batch
    residual_dims: Sequence[int | None]
    out_dims: Sequence[int | None]
    in_dims: Sequence[int | None]

    @property
    def __name__(self) -> str:
        return name_of(self.backward)

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        count, has_ct = len(residuals), [ct is not None for ct in cts]
        reached: list[bool] = []

        def one(*flat: Any) -> list[Any]:
            found = self.backward(flat[:count], with_nones(has_ct, flat[count:]))
            reached[:] = [ct is not None for ct in found]
            return [ct for ct in found if ct is not None]

        dims = [*self.residual_dims, *(d for d, has in zip(self.out_dims, has_ct) if has)]
        given = [ct for ct in cts if ct is not None]
        outs, out_dims = self.batch.run(one, [*residuals, *given], dims)
        found = with_nones(reached, zip(outs, out_dims))
        return [None if ct is None else self.settle(*ct, d) for ct, d in zip(found, self.in_dims)]

    def settle(self, ct: Any, dim: int | None, wanted: int | None) -> Any:
        if wanted is not None:
            return match_dim(ct, dim, wanted, self.batch.size)
        return ct if dim is None else reduce_sum(ct, (dim,))


@primitive("custom_vjp_call")
class CustomVJPCall(RuledCall):
    """Call a program whose backward pass is a rule; the first ``num_consts`` inputs have none."""

    call_jaxpr: ClosedJaxpr
    fwd_jaxpr_thunk: Forward
    num_consts: int = 0

    rule_parameter = "fwd_jaxpr_thunk"
    batched_rule = BatchedForward
    further = FurtherVJP
    transpose = absent("it is made of rules for its derivative, not a linear function",
                       NotImplementedError)

    @property
    def rule(self) -> Any:
        """The user's pair of rules, under however many vmaps."""
        rule: Any = self.fwd_jaxpr_thunk
        while isinstance(rule, BatchedForward):
            rule = rule.rule
        return rule

    def printed_params(self):
        rule = self.rule
        shown = {"name": self.call_jaxpr.jaxpr.debug_name, "bwd": rule.bwd,
                 "call_jaxpr": self.call_jaxpr, "fwd": rule.fwd}
        if self.num_consts:
            shown["num_consts"] = self.num_consts
        return {**shown, "symbolic_zeros": rule.symbolic_zeros}

    @classmethod
    def bind_functions(cls, args, subfuns, out_trees, symbolic_zeros=False):
        fun, fwd, bwd = subfuns
        rule = WrappedVJP(WrappedRule(fwd), WrappedRule(bwd), out_trees, symbolic_zeros)
        return list(apply(PythonCall(WrappedPrimal(fun), fun.call_wrapped, rule), args))

    def hand_to(self, interpreter, handle, args):
        count = self.num_consts
        made: list[Any] = []

        def fwd(*pairs: Any) -> list[Any]:
            outs, residuals, backward = self.fwd_jaxpr_thunk(pairs[::2], pairs[1::2])
            made[:] = [len(residuals), backward, len(outs)]
            return [*residuals, *outs]

        def bwd(*flat: Any) -> list[Any]:
            residuals, backward, _ = made
            cts = backward(flat[:residuals], none_for_zeros(flat[residuals:]))
            return [zeros_of(aval_of(x).to_ct_aval()) if ct is None else ct
                    for ct, x in zip(cts, args[count:])]

        def out_trees() -> tuple[Any, Any, list[None]]:
            residuals, _, outs = made
            return tree.structure([0] * outs), tree.structure([0] * residuals), [None] * residuals

        return interpreter.process_custom_vjp_call(
            handle, *map(interpreter.wrapped, (self.function(args[:count]), fwd, bwd)),
            args[count:], out_trees=out_trees, symbolic_zeros=self.rule.symbolic_zeros)

    def jvp(self, primals, tangents):
        return forward(self.fwd_jaxpr_thunk, primals[self.num_consts:],
                       self.of_explicit(tangents))


def forward_mode() -> Exception:
    """Return the error for computing the tangent of a custom_vjp function."""
    return errors.explained(
        errors.ArgumentTypeError, "custom_vjp.C8",
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function.",
        advice="A backward rule gives no tangents. Use grad, vjp or jacrev; or give the "
        "function a custom_jvp rule, which serves both modes.")


@primitive("custom_lin")
class CustomLin(Primitive):
    """The derivative of a custom_vjp function: residuals and tangents to tangents, backwards only.

    ``nonzero`` marks the inputs that have a tangent, ``moving`` the outputs that can have one.
    """

    bwd: Backward
    num_res: int
    nonzero: tuple[bool, ...]
    moving: tuple[bool, ...]
    tangent_avals: tuple[ShapedArray, ...]

    multiple_results = True
    types_varying = True

    shard_results = sharding_rules.unchanged
    sum_results = sum_rules.each_unchanged

    def printed_params(self):
        rule: Any = self.bwd
        while isinstance(rule, BatchedBackward):
            rule = rule.backward
        return {"bwd": rule, "in_zeros": [not nz for nz in self.nonzero],
                "num_res": self.num_res, "symbolic_zeros": rule.rule.symbolic_zeros}

    def typing(self, *avals):
        return list(self.tangent_avals)

    def evaluate(self, *xs):
        raise forward_mode()

    def lower(self, ctx, *xs):
        raise forward_mode()

    def jvp(self, primals, tangents):
        raise forward_mode()

    def transpose(self, cts, *args):
        n = self.num_res
        if any(isinstance(x, UndefinedPrimal) for x in args[:n]):
            raise forward_mode()
        found = self.bwd(args[:n], with_nones(self.moving, cts))
        return [*[None] * n, *(ct for ct, nz in zip(found, self.nonzero) if nz)]

    def batch(self, size, xs, dims):
        n = self.num_res
        batch = Batch(size, [])
        in_dims = with_nones(self.nonzero, dims[n:])
        backward = BatchedBackward(self.bwd, batch, dims[:n], [0] * len(self.moving), in_dims)
        avals = tuple(a.update(shape=(size, *a.shape)) for a in self.tangent_avals)
        prim = CustomLin(backward, n, self.nonzero, self.moving, avals)
        return bind(prim, *xs), [0] * len(avals)

    def eager(self, *args: Any) -> Any:
        raise forward_mode()


