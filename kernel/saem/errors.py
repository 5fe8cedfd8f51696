"""Which errors can a program catch?  The public names of ``saem.core.errors``, as in jax.errors.

Read before: ``saem.core.errors``.  Read after: nothing.
Invariant: every public name of jax.errors is here (tests/kernel/test_errors.py).
"""

from saem.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    ConcretizationTypeError,
    DTypeError,
    InconclusiveDimensionOperation,
    JAXIndexError,
    JaxprTypeError,
    JaxRuntimeError,
    JAXTypeError,
    KeyReuseError,
    NonConcreteBooleanIndexError,
    ShapeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "ConcretizationTypeError",
    "DTypeError",
    "InconclusiveDimensionOperation",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KeyReuseError",
    "NonConcreteBooleanIndexError",
    "ShapeError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
]
