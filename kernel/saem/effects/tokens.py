"""What is a token, and how does it order effects?

A *token* is a value without numbers: an operation that takes it runs after the operation that
returned it.  ``create_token`` makes one, ``after_all`` joins several, and ``optimization_barrier``
ties one to arrays.  It is stored as one boolean that nothing reads.  ``psend`` returns one, which
``precv`` takes.

Read before: ``effects.barrier``, ``parallel.exchanges``.
Invariant: a token is the same for all examples, and has no derivative.
Source: the documentation of jax.lax.after_all, psend and precv.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.compile.device_assignment import held_as
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_functions
from saem.core.axes import as_names, size_of
from saem.core.primitive import NOT_LINEAR, Primitive, absent, primitive
from saem.core.trace import bind
from saem.ops.collectives import check_names


class TokenDType(dtypes.ExtendedDType):
    """The dtype of tokens."""

    type = dtypes.extended
    name = "token"
    physical = ((), np.dtype(bool))

    def wrap(self, base: Any) -> Token:
        """Return the token held by ``base``."""
        return Token(base)


TOKEN = TokenDType()


class AbstractToken(ShapedArray):
    """The abstract value of a token."""

    __slots__ = ()

    def __init__(self, *_ignored: Any):
        super().__init__((), TOKEN)

    def __eq__(self, other: object) -> bool:
        return type(other) is AbstractToken

    def __hash__(self) -> int:
        return hash(AbstractToken)

    def update(self, **changes: Any) -> AbstractToken:
        return self

    def str_short(self, short_dtypes: bool = False) -> str:
        return "Tok"

    def __repr__(self) -> str:
        return "AbstractToken()"


_TOKEN = AbstractToken()


class Token:
    """A token outside programs."""

    __slots__ = ("_base",)
    aval = _TOKEN

    def __init__(self, base: Any):
        self._base = base

    def block_until_ready(self) -> None:
        """Wait until what gave the token has happened."""
        self._base.block_until_ready()


aval_functions[Token] = lambda token: _TOKEN
held_as[Token] = lambda token: token._base


@primitive("create_token")
class CreateToken(Primitive):
    """A token that waits for nothing."""

    def typing(self):
        return _TOKEN

    def evaluate(self):
        return np.zeros((), bool)

    def lower(self, ctx):
        return constant(ctx)

    def jvp(self, primals, tangents):
        return bind(self), None

    transpose = NOT_LINEAR
    batch = absent("a token is the same for all examples")


def constant(ctx: Any) -> str:
    """Write a token that waits for nothing."""
    name = ctx.constant(False, ShapedArray((), bool))
    ctx.avals[name] = _TOKEN
    return name


@primitive("after_all")
class AfterAll(Primitive):
    """A token that waits for all of the operands."""

    def typing(self, *avals):
        if not all(isinstance(a, AbstractToken) for a in avals):
            raise errors.explained(
                errors.ArgumentTypeError, "after_all.C1", "Arguments to after_all must be tokens",
                advice="lax.create_token() makes one.")
        return _TOKEN

    def evaluate(self, *tokens):
        return np.zeros((), bool)

    def lower(self, ctx, *tokens):
        return ctx.barrier(tokens)[0] if tokens else constant(ctx)

    def jvp(self, primals, tangents):
        return bind(self, *primals), None

    transpose = NOT_LINEAR
    batch = absent("a token is the same for all examples")


class Transfer(Primitive):
    """One end of a transfer along the arrows ``perm`` of ``axis_name``."""

    __slots__ = ()
    axis_name: tuple
    perm: tuple[tuple[int, int], ...]

    @property
    def collective_axes(self):
        return as_names(self.axis_name)

    def varies(self, *vmas):
        return frozenset()

    def evaluate(self, *xs):
        raise NotImplementedError(f"{self.name} needs another participant.")

    def lower(self, ctx, *xs):
        raise errors.explained(
            NotImplementedError, f"{self.name}.lower",
            f"{self.name} is not implemented on {ctx.module.platform}.",
            advice="lax.ppermute sends and receives at once, on all platforms.")

    jvp = absent("a transfer in two halves has no derivative", NotImplementedError)
    transpose = NOT_LINEAR
    batch = absent("a transfer in two halves cannot be mapped", NotImplementedError)


@primitive("psend")
class PSend(Transfer):
    """Send the operand; the result is the token of having sent it."""

    axis_name: tuple
    perm: tuple[tuple[int, int], ...]

    def typing(self, x):
        return _TOKEN


@primitive("precv")
class PRecv(Transfer):
    """Receive a value of type ``out_shape`` after the token that is the operand."""

    axis_name: tuple
    perm: tuple[tuple[int, int], ...]
    out_shape: ShapedArray

    def printed_params(self):
        return dict(sorted({**self.params, "out_shape": str(self.out_shape)}.items()))

    def typing(self, token):
        return self.out_shape


def _arrows(caller: str, axis_name: Any, perm: Sequence) -> tuple[tuple, tuple]:
    names = check_names(axis_name, caller)
    size, arrows = size_of(names), tuple((int(a), int(b)) for a, b in perm)
    ends = [{a for a, _ in arrows}, {b for _, b in arrows}]
    if any(len(e) != len(arrows) or not e <= set(range(size)) for e in ends):
        raise errors.explained(
            errors.ArgumentError, f"{caller}.C1",
            f"{caller} needs distinct sources and targets in 0..{size - 1}, got {arrows}.",
            advice="Each participant sends once and receives once.")
    return names, arrows


def psend(x: Any, axis_name: Any, perm: Sequence) -> Any:
    """Return the token of sending ``x`` along the arrows ``perm``: (from, to).

    Raises: NameError for an axis that is not bound; NotImplementedError where it would run.
    """
    names, arrows = _arrows("psend", axis_name, perm)
    return bind(PSend(names, arrows), x)


def precv(token: Any, out_shape: Any, axis_name: Any, perm: Sequence) -> Any:
    """Return what is received, of ``out_shape``, after ``token``.

    Raises: as ``psend``.
    """
    names, arrows = _arrows("precv", axis_name, perm)
    return bind(PRecv(names, arrows, ShapedArray(out_shape.shape, out_shape.dtype)), token)


def create_token(_: Any = None) -> Any:
    """Return a token that waits for nothing; the argument is not looked at."""
    return bind(CreateToken())


def after_all(*operands: Any) -> Any:
    """Return a token that waits for all the tokens given.  Raises: TypeError for other values."""
    if not all(isinstance(getattr(x, "aval", None), AbstractToken) for x in operands):
        AfterAll().typing(ShapedArray((), bool))  # which refuses
    return bind(AfterAll(), *operands)
