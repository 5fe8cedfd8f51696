"""How are errors reported?

Every message has one form: a stable tag, what was needed and what came, the user's own line, and
what to try::

    ShapeError: add.C1: operands must have one shape, but got f32[3] and f32[4].
      in cell 7, line 2:   z = x + y
      To stretch y along a new axis, use jnp.add or lax.broadcast_in_dim.

Raise with ``raise explained(ShapeError, "add.C1", "operands must …", advice="To stretch …")``.
The classes derive as those of ``jax.errors`` do, so programs that catch them keep working.

Read before: ``core.events``, ``core.source``.  Read after: nothing.
Invariant: ``str(error)`` starts with its tag, and an error that knows its place shows that line
(tests/kernel/test_errors.py).
"""

from __future__ import annotations

import re
from typing import Any

from saem import _jaxlib
from saem.core import paths, source
from saem.core.events import ErrorRaised, Position, bus

# What a person calls a file: {"/tmp/ipykernel_9/123.py": "cell 7"}.  The lens fills it.
cell_names: dict[str, str] = {}

_IPYTHON_INPUT = re.compile(r"<ipython-input-(\d+)-")


class Explained(Exception):
    """Base of all errors with a tag, a sentence, a place and advice.

    ``path`` is how the value in question came about: names, each with the line that made it.
    """

    path: tuple[paths.Step, ...] = ()

    def __init__(
        self,
        sentence: str = "",
        *,
        tag: str = "",
        where: Position | None = None,
        advice: str = "",
    ):
        self.tag = tag
        self.sentence = sentence
        self.where = where
        self.advice = advice
        super().__init__(compose(tag, sentence, where, advice))

    def place(self, where: Position | None) -> Explained:
        """Note where it happened, unless that is known already, and return this error."""
        if self.where is None and where is not None:
            self.where = where
            self.args = (compose(self.tag, self.sentence, where, self.advice),)
        return self


def compose(tag: str, sentence: str, where: Position | None, advice: str) -> str:
    """Return the message of the given parts, in the one form."""
    lines = [f"{tag}: {sentence}" if tag else sentence]
    if where is not None:
        lines.append("  in " + place_and_line(where))
    if advice:
        lines.extend("  " + line for line in advice.splitlines())
    return "\n".join(lines)


def file_name(file: str) -> str:
    """Return what a person calls ``file``: ``cell 7``, ``this notebook``, or the path."""
    name = cell_names.get(file)
    if name is not None:
        return name
    numbered = _IPYTHON_INPUT.match(file)
    if numbered:
        return f"cell {numbered.group(1)}"
    if "ipykernel_" in file:
        return "a notebook cell"
    return file


def place_and_line(where: Position) -> str:
    """Return ``cell 7, line 2:   z = x + y``: the place and, where it can be read, its source."""
    text = source.source_line(where)
    place = f"{file_name(where.file)}, line {where.line}"
    return f"{place}:   {text}" if text else place


def explained(
    error: type[Exception],
    tag: str,
    sentence: str,
    *,
    advice: str = "",
    where: Position | None = None,
    path: tuple[paths.Step, ...] = (),
) -> Any:
    """Return an ``error`` with its message composed, published on the event bus.

    ``where`` is the nearest caller outside the engine unless given.  ``error`` is a class of this
    module, or any exception class: then the message alone is composed.
    """
    where = where or source.here()
    made: Exception
    if issubclass(error, Explained):
        made = error(sentence, tag=tag, where=where, advice=advice)
        made.path = path
    else:
        made = error(compose(tag, sentence, where, advice))
        vars(made).update(saem_tag=tag, saem_where=where)
    if bus.active:
        bus.publish(ErrorRaised(tag=tag, error=error.__name__, message=str(made), where=where))
    return made


# -- errors of shapes, dtypes and arguments --------------------------------------------------------


class ShapeError(Explained, TypeError, ValueError):
    """Shapes do not fit.  JAX raises TypeError in lax and ValueError in numpy; this is both."""


class DTypeError(Explained, TypeError):
    """A dtype cannot be used here."""


class ArgumentError(Explained, ValueError):
    """An argument has a value that cannot be used here."""


class AxisError(Explained, ValueError, IndexError):
    """An axis or place does not exist.  JAX raises one or the other; as NumPy's, this is both."""


class ArgumentTypeError(Explained, TypeError):
    """An argument has a type that cannot be used here."""


class NotAValue(ArgumentTypeError):
    """What was given, ``value``, is neither an array nor convertible to one."""

    value: Any

    def passed_to(self, name: str, args: tuple[Any, ...]) -> None:
        """Say that the value was an operand of the operation ``name``, if that is not yet said."""
        places = [i for i, x in enumerate(args) if x is self.value]
        if places and not self.tag:
            self.tag = f"{name}.operand"
            self.sentence = (
                f"Error interpreting argument to {name} as a JAX value. The problematic value is "
                f"of type {type(self.value)} and was passed to {name} at position {places[0]}.\n"
                f"{self.sentence}")
            self.place(source.here())


class TypePromotionError(Explained, ValueError):
    """Dtypes have no common dtype to which all of them promote by themselves."""


# -- the classes of jax.errors ---------------------------------------------------------------------


class JAXTypeError(Explained, TypeError):
    """Base of the engine's errors that are TypeErrors."""


class JAXIndexError(Explained, IndexError):
    """Base of the engine's errors that are IndexErrors."""


class _OfTracer(Explained):
    """Constructor shared by errors about one tracer: a sentence, or the tracer it is about."""

    about = "{}"

    def __init__(self, tracer: Any = "", context: str = "", **parts: Any):
        if isinstance(tracer, str):
            sentence = tracer
        else:
            sentence = self.about.format(tracer_type(tracer))
        super().__init__(f"{sentence}\n{context}" if context else sentence, **parts)


def tracer_type(tracer: Any) -> str:
    """Return ``float32[3]`` for a tracer (or anything with an aval), for use in a sentence."""
    aval = getattr(tracer, "aval", tracer)
    if hasattr(aval, "str_short"):
        return aval.str_short()
    shape = ",".join(map(str, getattr(aval, "shape", ())))
    return f"{getattr(aval, 'dtype', type(aval).__name__)}[{shape}]"


class ConcretizationTypeError(_OfTracer, JAXTypeError):
    """A concrete value is needed where only shape and dtype are known."""

    about = (
        "Abstract tracer value encountered where concrete value is expected: "
        "traced array with shape {}."
    )


def unknown(tag: str, x: Any, sentence: str, advice: str) -> Any:
    """Return the error for a traced ``x`` of which a function needs the numbers."""
    about = ConcretizationTypeError.about.format(tracer_type(x))
    return explained(ConcretizationTypeError, tag, f"{about}\n{sentence}", advice=advice)


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used as a Python condition (if, while, and, or, not, assert)."""

    about = "Attempted boolean conversion of traced array with shape {}."


class TracerArrayConversionError(_OfTracer, JAXTypeError):
    """A traced value was given to NumPy, which needs numbers."""

    about = (
        "The numpy.ndarray conversion method __array__() was called on traced array with shape {}."
    )


class TracerIntegerConversionError(_OfTracer, JAXTypeError):
    """A traced value was used where Python needs an integer, such as an index of a list."""

    about = "The __index__() method was called on traced array with shape {}."


class NonConcreteBooleanIndexError(_OfTracer, JAXIndexError):
    """A boolean index whose values are not known would give a result of unknown shape."""

    about = "Array boolean indices must be concrete; got {}."


class UnexpectedTracerError(JAXTypeError):
    """A tracer was used after its trace had ended: it leaked."""


class KeyReuseError(JAXTypeError):
    """A PRNG key was used twice."""


class JaxprTypeError(Explained, TypeError):
    """A jaxpr is not well formed."""


class InconclusiveDimensionOperation(Explained):
    """An operation on symbolic dimensions has no single answer."""


def finished_trace(name: str) -> UnexpectedTracerError:
    """Return the error for an operation recorded by a trace that has ended."""
    return explained(
        UnexpectedTracerError,
        "trace.finished",
        f"{name} was called in a trace that has already ended.",
        advice="A generator, thread or callback kept working inside a traced function after it "
        "returned. Finish that work inside the function.",
    )


JaxRuntimeError = _jaxlib.JaxRuntimeError

PUBLIC = (
    ConcretizationTypeError, InconclusiveDimensionOperation, JAXIndexError, JAXTypeError,
    JaxRuntimeError, JaxprTypeError, KeyReuseError, NonConcreteBooleanIndexError,
    TracerArrayConversionError, TracerBoolConversionError, TracerIntegerConversionError,
    UnexpectedTracerError, ShapeError, DTypeError, ArgumentError, ArgumentTypeError, NotAValue,
)  # fmt: skip
for _error in PUBLIC:
    if issubclass(_error, Explained):
        _error.__module__ = "saem.errors"
TypePromotionError.__module__ = "saem.dtypes"
