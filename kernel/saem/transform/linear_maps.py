"""What functions do ``linearize`` and ``vjp`` return?

They are pytrees: their leaves are the residuals, so they may be returned from a jitted function, be
given to one, and be inspected.  Of a pullback ``args_res`` holds the arguments that the backward
pass reads, ``opaque_residuals`` all else that it keeps.

Read before: ``transform.linearize``.  Read after: ``transform.derivatives``.
Invariant: a residual is in one place, so replacing it there changes what is computed with.
Source: the documentation of jax.vjp and jax.linearize.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem._jaxlib import ArrayImpl
from saem.compile.dispatch import put_value
from saem.core import containers, dtypes, tree
from saem.core import refs as core_refs
from saem.core.avals import ShapedArray, aval_of
from saem.core.jaxpr import Jaxpr
from saem.core.record import Record
from saem.core.refs import is_ref
from saem.core.sharded import plain, same_sharding
from saem.core.trace import Tracer
from saem.ops.linear import varying_as, zeros_of
from saem.placement.shardings import off_mesh
from saem.transform.linearize import Linearized
from saem.transform.staging import dead_code_free


def as_array(x: Any) -> Any:
    """Return ``x`` as an array if it is a NumPy or Python number.

    Raises: TypeError for a non-array.
    """
    if type(x) is ArrayImpl or isinstance(x, Tracer):
        return x
    if not isinstance(x, dtypes.HOST_NUMBERS):
        aval_of(x)
        return x
    if isinstance(x, np.ndarray) and x.dtype == dtypes.float0:
        return x
    return put_value(x)


def is_float0(x: Any) -> bool:
    return getattr(x, "dtype", None) == dtypes.float0


def tangent_type(tangent: Any) -> ShapedArray:
    """Return the type of a tangent or cotangent as it is compared: weakness does not count."""
    if is_float0(tangent):
        return ShapedArray(np.shape(tangent), dtypes.float0)
    return aval_of(tangent).strip_weak_type()


class Recipe:
    """A linear map without its residuals, and the structures around it."""

    __slots__ = ("in_tree", "linear", "out_tree")

    def __init__(self, linear: Linearized, in_tree: Any, out_tree: Any):
        self.linear = linear._replace(consts=())
        self.in_tree = in_tree
        self.out_tree = out_tree

    def with_residuals(self, consts: Sequence[Any]) -> Linearized:
        """Return the linear map whose residuals are ``consts``."""
        return self.linear._replace(consts=consts)

    def __call__(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        """Push ``tangents`` forward."""
        dxs, got = tree.flatten(tangents)
        if got != self.in_tree:
            raise TypeError(
                f"expected {self.in_tree}, got {got}: the tangents of a linear map must be "
                "structured like its primals.")
        for aval, dx in zip(self.linear.in_avals, dxs):
            _check_linear_input(aval, dx)
        outs = self.with_residuals(residuals).forward(dxs)
        return self.out_tree.unflatten([
            t if moves else as_array(t) for t, moves in zip(outs, self.linear.nonzero_out)])


def linear_function(linear: Linearized, in_tree: Any, out_tree: Any) -> containers.Partial:
    """Return the function that pushes tangents forward; its leaves are the residuals it reads."""
    linear = without_dead_code(linear)
    return containers.Partial(Recipe(linear, in_tree, out_tree), linear.consts)


def without_dead_code(linear: Linearized) -> Linearized:
    """Return ``linear`` without equations and residuals that its results do not need."""
    jaxpr = dead_code_free(linear.jaxpr)
    read = jaxpr.reads()
    kept = [(v, c) for v, c in zip(jaxpr.constvars, linear.consts) if v in read]
    return linear._replace(jaxpr=jaxpr.replace(constvars=[v for v, _ in kept]),
                           consts=[c for _, c in kept])


def _check_linear_input(aval: ShapedArray, tangent: Any) -> None:
    wanted, got = aval.to_tangent_aval().strip_weak_type(), tangent_type(tangent)
    if got != wanted and not (off_mesh(tangent) and got == plain(wanted)):
        raise ValueError(
            "linearized function called on tangent values inconsistent with the original primal "
            f"values: got tangent {got.str_short()} for primal "
            f"{aval.str_short()}, but expected "
            f"{wanted.str_short()}.")


class NotNeeded(Record):
    """In ``args_res``: an argument that the backward pass does not read."""


@containers.register_static
class GradRef(Record):
    """Among gradients: one that was added to the contents of a reference."""


@containers.register_static
class GradValue(Record):
    """Among the arguments of ``with_refs``: a gradient that is to be returned."""


class DontWant(Record):
    """Among the arguments of ``with_refs``: a gradient that is not needed."""


@containers.register_static
class DidntWant(Record):
    """Among gradients: one that was not needed."""


class VJP:
    """The function ``vjp`` returns: cotangents of the outputs to cotangents of the inputs."""

    def __init__(self, recipe: Recipe, args_res: list[Any], opaque_residuals: list[Any],
                 plan: tuple[int | None, ...]):
        self.fun = recipe
        self.args_res = args_res
        self.opaque_residuals = opaque_residuals
        # For each constant of the program the argument that it is, None if it is none.
        self._plan = plan

    @property
    def jaxpr(self) -> Jaxpr:
        """The linear program that runs backwards."""
        return self.fun.linear.jaxpr

    @property
    def in_tree(self) -> Any:
        return self.fun.in_tree

    @property
    def out_tree(self) -> Any:
        return self.fun.out_tree

    def with_refs(self, *refs: Any) -> Callable[[Any], Any]:
        """Return this function with references for gradients, structured like the arguments.

        The gradient is added to the contents of its reference, and ``GradRef()`` is returned in its
        place; ``DontWant()`` gives ``DidntWant()``; for a non-reference the gradient is returned.
        Raises: ValueError for another structure.
        """
        wanted, got = tree.flatten(refs)
        if got != self.in_tree:
            raise ValueError(f"with_refs takes one reference for each leaf of {self.in_tree}, "
                             f"got {got}.")

        def pull(cotangents: Any) -> Any:
            found = []
            for ct, x in zip(tree.leaves(self(cotangents)), wanted):
                if isinstance(x, DontWant):
                    found.append(DidntWant())
                elif isinstance(x, (bool, GradValue)) or not is_ref(aval_of(x)):
                    found.append(ct)
                else:
                    core_refs.chapter.accumulate(x, ct)
                    found.append(GradRef())
            return self.in_tree.unflatten(found)

        return pull

    def __call__(self, *given: Any) -> Any:
        if len(given) != 1:
            raise TypeError(
                f"The function returned by `jax.vjp` was called with {len(given)} arguments, but "
                "functions returned by `jax.vjp` must be called with a single argument: the "
                "cotangent of what the function returned, in one tuple if that is a tuple.")
        cts, got = tree.flatten(given[0])
        if got != self.out_tree:
            raise ValueError(
                "unexpected tree structure. The argument to a VJP function returned by `jax.vjp` "
                "must match the pytree structure of what the differentiated function returned: "
                f"got {got}, but expected to match {self.out_tree}")
        for aval, ct in zip(self.fun.linear.out_avals, cts):
            _check_cotangent(aval, ct)
        rest = iter(self.opaque_residuals)
        consts = [next(rest) if i is None else self.args_res[i] for i in self._plan]
        pulled = self.fun.with_residuals(consts).backward(
            [None if is_float0(ct) else varying_as(ct, aval)
             for aval, ct in zip(self.fun.linear.out_avals, cts)])
        return self.in_tree.unflatten(
            [as_array(zeros_of(aval.to_ct_aval()) if ct is None else ct)
             for aval, ct in zip(self.fun.linear.in_avals, pulled)])

    def __repr__(self) -> str:
        return (f"VJP(in_tree={self.in_tree}, out_tree={self.out_tree}, args_res={self.args_res}, "
                f"opaque_residuals={self.opaque_residuals}, jaxpr={self.jaxpr})")


def pullback(linear: Linearized, in_tree: Any, out_tree: Any, args: Sequence[Any]) -> VJP:
    """Return the function that pulls cotangents back through ``linear`` at flat ``args``."""
    numbers = {id(x): i for i, x in enumerate(args)}
    plan = tuple([numbers.get(id(c)) for c in linear.consts])
    args_res = [x if i in plan else NotNeeded() for i, x in enumerate(args)]
    opaque = [c for c, i in zip(linear.consts, plan) if i is None]
    return VJP(Recipe(linear, in_tree, out_tree), args_res, opaque, plan)


def _check_cotangent(aval: ShapedArray, ct: Any) -> None:
    wanted, got = aval.to_ct_aval(), tangent_type(ct)
    if wanted.dtype == dtypes.float0 and got.shape == wanted.shape:
        return  # of an integer or boolean result: whatever it is, it is zero
    if got.dtype != wanted.dtype or got.shape != wanted.shape or not (
            got.vma <= wanted.vma and (same_sharding(got, wanted) or off_mesh(ct))):
        raise ValueError(
            "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
            f"{got.str_short()}, but expected "
            f"{wanted.str_short()} because the corresponding output of the "
            f"differentiated function had JAX type {aval.str_short()}")


containers.register_pytree_node(
    VJP, lambda v: ((v.args_res, v.opaque_residuals), (v.fun, v._plan)),
    lambda static, residuals: VJP(static[0], *residuals, static[1]))
containers.register_pytree_node(NotNeeded, lambda _: ((), None), lambda *_: NotNeeded())
