"""How is the solution of an equation differentiated without the steps that found it?

The implicit function theorem: where ``f(x, p) = 0``, a small change of ``p`` moves ``x`` so that
the equation still holds, which is a linear equation for the movement.  ``custom_root`` and
``custom_linear_solve`` take any solver and get its derivative from that; the iterations of the
solver are never differentiated.

Read before: ``derivatives.custom_jvp``, ``loops.carry``.
Invariant: everything the user's functions close over is an operand, so derivatives find it.
Source: the documentation of jax.lax.custom_root and jax.lax.custom_linear_solve; Griewank and
Walther 2008, chapter 15 (implicit differentiation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from saem.compile.lowering import lower_block
from saem.core import errors, tree
from saem.core import jaxpr as jaxpr_module
from saem.core.avals import ShapedArray, aval_of
from saem.core.effects import in_order
from saem.core.frames import boundary
from saem.core.jaxpr import ClosedJaxpr, Var, eval_jaxpr, split_list
from saem.core.primitive import Primitive, UndefinedPrimal, primitive
from saem.core.record import Record
from saem.core.trace import bind, eval_trace, state
from saem.derivatives.custom_jvp import CustomJVPCall
from saem.loops.carry import (
    Body,
    Types,
    check_callable,
    check_operands,
    run_at_once,
    trace_body,
)
from saem.ops.arithmetic import neg, sub
from saem.ops.linear import varying_as, zeros_of
from saem.transform.derivatives import linearize
from saem.transform.jvp import instantiate, jvp_flat
from saem.transform.linearize import transpose_jaxpr
from saem.transform.restructure import fill_zeros, open_consts, rearranged
from saem.transform.vmap import batch_jaxpr, match_dim


def _trace(fun: Callable, name: str, *args: Types) -> Body:
    """Trace a function made here, of arguments of those types; nothing of it is kept."""
    in_tree = tree.treedef_tuple([arg.treedef for arg in args])
    return trace_body(fun, in_tree, [a for arg in args for a in arg.avals], name)


def _check_like(what: str, got: Any, name: str, needed: Any) -> None:
    """Refuse a result with other containers than it needs.

    Raises: TypeError.
    """
    if got != needed:
        raise errors.explained(
            errors.ArgumentTypeError, "solve.C1",
            f"{what} output pytree structure must match {name}, got {got} and {needed}.",
            advice=f"Return a pytree like {name}.")


def _shapes(avals: Sequence[ShapedArray]) -> list[tuple]:
    return [a.shape for a in avals]


def _check_shapes(what: str, body: Body, name: str, types: Types) -> None:
    got, needed = _shapes(body.out_avals), _shapes(types.avals)
    if got != needed:
        raise errors.explained(
            errors.ArgumentError, "solve.C2",
            f"{what} output shapes must match {name}, got {got} and {needed}.",
            advice=f"{what} maps values like {name} to values like {name}.")


# -- roots -----------------------------------------------------------------------------------------


class RootRule(Record, eq=False):
    """The derivative of a root by all that ``f`` closes over."""

    f: ClosedJaxpr
    move: ClosedJaxpr
    program: ClosedJaxpr
    counts: tuple[int, int, int]
    size: int

    __name__ = "root_jvp"

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]
                 ) -> tuple[list[Any], list[Any]]:
        outs = bind(CustomJVPCall(self.program, self), *primals)
        root = outs[:self.size]
        f_consts, _, move_consts, _ = split_list(primals, *self.counts)
        given = tangents[:len(f_consts)]
        nothing: list[Any] = [None] * len(outs)
        if all(t is None for t in given):
            return outs, nothing
        values, rates = jvp_flat(
            lambda *consts: eval_jaxpr(self.f.jaxpr, self.f.consts, *consts, *root),
            f_consts, given)
        if all(r is None for r in rates):
            return outs, nothing
        shapes = [_shapes(map(aval_of, leaves)) for leaves in (root, values)]
        if shapes[0] != shapes[1]:
            raise errors.explained(
                errors.ShapeError, "solve.C3",
                f"The root of a function from shapes {shapes[0]} to {shapes[1]} has no "
                "derivative by custom_root.",
                advice="f maps a value like initial_guess to one of the same shape.")
        sides = [neg(instantiate(r, v)) for r, v in zip(rates, values)]
        moves = eval_jaxpr(self.move.jaxpr, self.move.consts, *move_consts, *root, *sides)
        return outs, [*moves, *nothing[self.size:]]


@boundary
def custom_root(f: Callable, initial_guess: Any, solve: Callable, tangent_solve: Callable,
                has_aux: bool = False) -> Any:
    """Return a root of ``f``, found by ``solve(f, initial_guess)``.

    It is differentiated by what ``f`` closes over: ``tangent_solve(g, y)`` solves ``g(x) = y`` for
    the linear ``g``, the derivative of ``f`` at the root.  With ``has_aux``, ``solve`` returns
    (root, what else), and so does this.
    Raises: TypeError for results that are not like ``initial_guess``.

    >>> solve = lambda f, guess: lax.fori_loop(0, 8, lambda _, x: x - f(x) / (2 * x), guess)
    >>> lax.custom_root(lambda x: x * x - 2., 1., solve, lambda g, y: y / g(1.))
    Array(1.4142135, dtype=float32, weak_type=True)
    """
    check_callable("custom_root", "f, solve and tangent_solve arguments", f, solve, tangent_solve)
    leaves, guess_tree = tree.flatten(initial_guess)
    given = Types(guess_tree, [aval_of(x) for x in leaves])
    f_body = _trace(lambda x: f(x), "custom_root", given)
    _check_like("f()", f_body.out_tree, "initial_guess", guess_tree)
    solve_body = _trace(lambda x: solve(f, x), "custom_root", given)
    root_tree = solve_body.out_tree
    if has_aux:
        root_tree = tree.treedef_children(root_tree)[0]
    _check_like("solve()", root_tree, "initial_guess", guess_tree)

    def move(x: Any, y: Any) -> Any:
        _, slope = linearize(f, x)
        return tangent_solve(slope, y)

    root = Types(guess_tree, solve_body.out_avals[:len(leaves)])
    move_body = _trace(move, "custom_root", root, root)
    _check_like("tangent_solve()", move_body.out_tree, "x", guess_tree)
    counts = (len(f_body.consts), len(solve_body.consts), len(move_body.consts))
    own, guess = split_list(solve_body.closed.jaxpr.invars, counts[1])
    solver = rearranged(
        solve_body.closed, [*_unread(f_body), *own, *_unread(move_body), *guess],
        solve_body.closed.jaxpr.outvars)
    solver.jaxpr.debug_name = "custom_root"
    rule = RootRule(f_body.closed, move_body.closed, solver, counts, len(leaves))
    prim, operands = CustomJVPCall(solver, rule), [
        *f_body.consts, *solve_body.consts, *move_body.consts, *leaves]
    if state.trace is eval_trace:
        outs = run_at_once((solver,), (), prim, operands)
    else:
        outs = bind(prim, *operands)
    return solve_body.out_tree.unflatten(outs)


def _unread(body: Body) -> list[Var]:
    """Return inputs for the constants of ``body`` in a program that does not read them."""
    return [Var(aval) for aval in body.closed.in_avals[:len(body.consts)]]


# -- linear equations ------------------------------------------------------------------------------


class Four(NamedTuple):
    """The four programs of a linear solve, or something of each of them."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transposed(self) -> Four:
        return Four(self.vecmat, self.matvec, self.transpose_solve, self.solve)


Four.__name__ = "_LinearSolveTuple"  # what JAX's printed programs call it


@primitive("custom_linear_solve")
class LinearSolve(Primitive):
    """Solve ``matvec(x) = b``; linear in ``b``, the last operands.

    The others are the constants of the four programs.
    """

    const_lengths: Four
    jaxprs: Four

    multiple_results = True

    @property
    def effects(self):
        return self.jaxprs.solve.effects

    def with_token(self):
        before = self.const_lengths
        after = before._replace(solve=before.solve + 1)
        jaxprs = self.jaxprs._replace(solve=in_order(self.jaxprs.solve))
        return LinearSolve(after, jaxprs), before.matvec + before.vecmat

    def parts(self, items: Sequence[Any]) -> tuple[Four, list[Any]]:
        """Return operands as the constants of each program, and ``b``."""
        *consts, b = split_list(items, *self.const_lengths)
        return Four(*consts), b

    def typing(self, *avals):
        consts, b = self.parts(avals)
        check_operands(self, self.jaxprs.solve.in_avals, [*consts.solve, *b])
        return self.jaxprs.solve.out_avals

    def evaluate(self, *args):
        consts, b = self.parts(args)
        return jaxpr_module.evaluate(self.jaxprs.solve, *consts.solve, *b)

    def lower(self, ctx, *args):
        consts, b = self.parts(args)
        return lower_block(ctx, self.jaxprs.solve, [*consts.solve, *b])

    def jvp(self, primals, tangents):
        """Differentiate A x = b: A dx = db - dA x, with the same solver."""
        outs = bind(self, *primals)
        consts, b = self.parts(primals)
        const_ts, b_ts = self.parts(tangents)
        x, moving = outs[:len(b)], const_ts.matvec
        matvec = self.jaxprs.matvec
        sides = b_ts
        if any(t is not None for t in moving):
            _, shifts = jvp_flat(
                lambda *cs: eval_jaxpr(matvec.jaxpr, matvec.consts, *cs, *x),
                consts.matvec, moving)
            sides = [_difference(t, s) for t, s in zip(b_ts, shifts)]
        if all(t is None for t in sides):
            return outs, [None] * len(outs)
        sides = [instantiate(t, v) for t, v in zip(sides, b)]
        dx = bind(self, *(c for part in consts for c in part), *sides)[:len(b)]
        return outs, [*dx, *[None] * (len(outs) - len(b))]

    def transpose(self, cts, *args):
        """Solve with the transposed matrix: x = A^-1 b pulls ct back to A^-T ct."""
        consts, b = self.parts(args)
        if self.jaxprs.transpose_solve is None:
            raise errors.explained(
                errors.ArgumentTypeError, "custom_linear_solve.C3",
                "transpose_solve required for backwards mode automatic differentiation of "
                "custom_linear_solve.",
                advice="Pass transpose_solve, or symmetric=True if the matrix is.")
        avals = [x.aval if isinstance(x, UndefinedPrimal) else aval_of(x) for x in b]
        given = [zeros_of(a) if ct is None else ct for ct, a in zip(cts, avals)]
        turned = LinearSolve(self.const_lengths.transposed(), self.jaxprs.transposed())
        pulled = bind(turned, *(c for part in consts.transposed() for c in part), *given)
        return [*[None] * (len(args) - len(b)), *pulled[:len(b)]]

    def batch(self, size, xs, dims):
        """Solve for a stack of systems: the right-hand sides and solutions are all stacks."""
        flags, _ = self.parts([d is not None for d in dims])
        n = len(xs) - sum(self.const_lengths)
        programs: list[Any] = []
        for program, batched in zip(self.jaxprs, flags):
            if program is not None:
                force = (True,) * len(program.out_avals)
                program, _ = batch_jaxpr(program, size, (*batched, *[True] * n), force)
            programs.append(program)
        wanted = [*(flag for part in flags for flag in part), *[True] * n]
        stacks = [match_dim(x, d, 0, size) if w else x for x, d, w in zip(xs, dims, wanted)]
        outs = bind(LinearSolve(self.const_lengths, Four(*programs)), *stacks)
        return outs, [0] * len(outs)

    def eager(self, *args: Any) -> list[Any]:
        return run_at_once((self.jaxprs.solve,), tuple(self.const_lengths), self, args)


def _difference(t: Any, s: Any) -> Any:
    """Return ``t - s``, either of which may be None (zero)."""
    return t if s is None else neg(s) if t is None else sub(t, s)


@boundary
def custom_linear_solve(matvec: Callable, b: Any, solve: Callable,
                        transpose_solve: Callable | None = None, symmetric: bool = False,
                        has_aux: bool = False) -> Any:
    """Return the solution ``x`` of ``matvec(x) = b``, found by ``solve(matvec, b)``.

    It is differentiated by ``b`` and all that ``matvec`` closes over, with the same solver; in
    reverse mode by ``transpose_solve(vecmat, ct)``, which with ``symmetric`` is ``solve``.  With
    ``has_aux`` the solvers return (solution, what else), and so does this.
    Raises: TypeError or ValueError for results that are not like ``b``.

    >>> lax.custom_linear_solve(lambda x: 2 * x, jnp.array([2., 6.]), lambda matvec, b: b / 2)
    Array([1., 3.], dtype=float32)
    """
    check_callable("custom_linear_solve", "matvec and solve arguments", matvec, solve)
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    forward, leaves = _forward(matvec, b)
    b_tree = tree.structure(b)
    types = Types(b_tree, [aval_of(x) for x in leaves])
    found = _solver(solve, matvec, "solve()", types, has_aux)
    if transpose_solve is None:
        bodies = [forward, None, found, None]
    elif symmetric:
        bodies = [forward, forward, found, _solver(
            transpose_solve, matvec, "transpose_solve()", types, has_aux)]
    else:
        back = _transposed(forward, b_tree)
        consts = back.consts

        def vecmat(ct: Any) -> Any:
            flat = tree.leaves(ct)
            return b_tree.unflatten(
                eval_jaxpr(back.closed.jaxpr, back.closed.consts, *consts, *flat))

        bodies = [forward, back, found, _solver(
            transpose_solve, vecmat, "transpose_solve()", types, has_aux)]
    programs = Four(*(body and body.closed for body in bodies))
    consts = [body.consts if body else [] for body in bodies]
    prim = LinearSolve(Four(*map(len, consts)), programs)
    outs = bind(prim, *(c for part in consts for c in part), *leaves)
    return found.out_tree.unflatten(outs)


def _forward(matvec: Callable, b: Any) -> tuple[Body, list[Any]]:
    """Trace ``matvec``; check that it gives something like ``b``; return it and ``b``'s leaves.

    Inside ``shard_map`` ``b`` is made to vary as the products do, since its cotangents will.
    """
    leaves, b_tree = tree.flatten(b)
    while True:
        types = Types(b_tree, [aval_of(x) for x in leaves])
        body = _trace(lambda x: matvec(x), "custom_linear_solve", types)
        _check_shapes("matvec()", body, "b", types)
        _check_like("matvec()", body.out_tree, "b", b_tree)
        if all(out.vma <= aval.vma for aval, out in zip(types.avals, body.out_avals)):
            return body, leaves
        leaves = [varying_as(x, out) for x, out in zip(leaves, body.out_avals)]


def _solver(solve: Callable, matvec: Callable, name: str, b: Types, has_aux: bool) -> Body:
    """Trace ``solve(matvec, b)`` and check that it gives something like ``b``."""
    body = _trace(lambda side: solve(matvec, side), "custom_linear_solve", b)
    solution = tree.treedef_children(body.out_tree)[0] if has_aux else body.out_tree
    _check_like(name, solution, "b", b.treedef)
    if not has_aux:
        _check_shapes(name, body, "b", b)
    return body


def _transposed(body: Body, structure: Any) -> Body:
    """Return the transpose of a linear program in all but its constants."""
    closed, n = body.closed, len(body.consts)
    avals = closed.in_avals[n:]
    linear = (*[False] * n, *[True] * len(avals))
    program, reached = transpose_jaxpr(closed, linear, (True,) * len(closed.out_avals))
    program = fill_zeros(program, 0, reached, [True] * len(avals), avals)
    program, extra = open_consts(program)
    return Body(program, [*extra, *body.consts], structure)
