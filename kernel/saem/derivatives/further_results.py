"""How does a user's rule apply to a function that was changed to return further results?

An interpreter may add results to a program that a rule belongs to: the errors that checkify found
in it.  The further results come first.  They are computed by the program itself; the rule gives the
others, as before.  What the function closes over, the first ``consts`` operands, the program takes
and the rule does not.

Read before: ``derivatives.custom_rule``.  Read after: ``derivatives.custom_jvp``.
Invariant: the other results and their derivatives are those of the rule
(tests/kernel/test_checkify_nested.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saem.core.jaxpr import ClosedJaxpr, eval_jaxpr
from saem.core.record import Record
from saem.derivatives.custom_rule import closure_differentiated
from saem.transform.vmap import match_dim, vmap_flat


class FurtherResults(Record, eq=False):
    """A rule of kind ``kind`` for ``program``, whose first ``count`` results are further ones."""

    kind = ""

    rule: Any
    program: ClosedJaxpr
    count: int
    consts: int

    def __getattr__(self, name: str) -> Any:  # what printed programs show of the rule
        return getattr(self.rule, name)

    def computed(self, *operands: Any) -> list[Any]:
        """Return the further results."""
        return eval_jaxpr(self.program.jaxpr, self.program.consts, *operands)[:self.count]

    def beside(self, operands: Sequence[Any], moving: Sequence[bool]) -> list[Any]:
        """Return the further results of operands some of which are ``moving``.

        Raises: UnexpectedTracerError if what the function closes over is differentiated.
        """
        if any(moving[:self.consts]):
            raise closure_differentiated(self.kind)
        return self.computed(*operands)


class FurtherJVP(FurtherResults):
    """Such a rule of a custom_jvp function; the further results do not move."""

    kind = "custom_jvp"

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]
                 ) -> tuple[list[Any], list[Any]]:
        further = self.beside(primals, [t is not None for t in tangents])
        outs, out_tangents = self.rule(primals[self.consts:], tangents[self.consts:])
        return [*further, *outs], [*[None] * self.count, *out_tangents]


class FurtherVJP(FurtherResults):
    """Such a rule of a custom_vjp function."""

    kind = "custom_vjp"

    def __call__(self, primals: Sequence[Any], perturbed: Sequence[bool]
                 ) -> tuple[list[Any], list[Any], Any]:
        further = self.beside(primals, perturbed)
        outs, residuals, backward = self.rule(primals[self.consts:], perturbed[self.consts:])
        return [*further, *outs], residuals, FurtherBackward(backward, self.count, self.consts)


class FurtherBackward(Record, eq=False):
    """A backward rule that is not given the cotangents of further results."""

    backward: Any
    count: int
    consts: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backward, name)

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        return [*[None] * self.consts, *self.backward(residuals, cts[self.count:])]


class FurtherBatch(FurtherResults):
    """Such a rule of a custom_vmap function."""

    kind = "custom_vmap"

    def __call__(self, size: int, batched: Sequence[bool], xs: Sequence[Any]
                 ) -> tuple[list[Any], list[bool]]:
        further, dims = vmap_flat(self.computed, size, xs, [0 if b else None for b in batched])
        stacks = [x if d is None else match_dim(x, d, 0, size) for x, d in zip(further, dims)]
        outs, flags = self.rule(size, batched[self.consts:], xs[self.consts:])
        return [*stacks, *outs], [*(d is not None for d in dims), *flags]
