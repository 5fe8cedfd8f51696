"""By which algorithm does a backend multiply matrices?

``precision=`` of a matrix product takes, besides a ``Precision``, an algorithm: in which dtypes
operands are rounded, in which dtype sums are kept, and of how many products of parts one product is
made.  ``DotAlgorithmPreset`` names those that some backend has; ``DotAlgorithm`` describes any.

Read before: ``compile.text``.  Read after: ``ops.contract``.
Invariant: an algorithm that a platform does not have is refused when a program is lowered for it
(tests/kernel/test_products.py).
Source: StableHLO specification, dot_general (algorithm); the documentation of jax.lax.DotAlgorithm.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from saem.compile.text import element_type
from saem.core import dtypes, errors

_TYPES: dict[str, Any] = {"F16": np.float16, "BF16": ml_dtypes.bfloat16, "F32": np.float32,
                          "F64": np.float64, "TF32": np.float32}
# The dtypes in which 8-bit products may be returned.
_F8_RESULTS = (np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
               ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e4m3fnuz,
               ml_dtypes.float8_e4m3b11fnuz)


class DotAlgorithm(NamedTuple):
    """How a matrix product is computed: dtypes of rounding and summing, and numbers of parts.

    >>> import saem as jax
    >>> import saem.numpy as jnp
    >>> half = jax.lax.DotAlgorithm(jnp.float16, jnp.float16, jnp.float32)
    >>> half.num_primitive_operations
    1
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False

    def operand_types(self, _x: Any, _y: Any) -> tuple[Any, Any]:
        """Return the dtypes in which operands are handed to the backend."""
        return np.dtype(self.lhs_precision_type), np.dtype(self.rhs_precision_type)

    def result_type(self, _x: Any, _y: Any, _wanted: Any) -> Any:
        """Return the dtype in which the backend gives the product."""
        return np.dtype(self.accumulation_type)

    def attribute(self, _x: Any, _y: Any) -> str:
        """Return the attribute of StableHLO's dot_general."""
        return _attribute(element_type(np.dtype(self.lhs_precision_type)),
                          element_type(np.dtype(self.rhs_precision_type)),
                          element_type(np.dtype(self.accumulation_type)), *self[3:])

    def runs_on(self, platform: str) -> bool:
        """Return whether XLA has descriptions of algorithms, besides presets, on ``platform``."""
        return platform != "cpu"


class DotAlgorithmPreset(enum.Enum):
    """Named algorithms ``LHS_RHS_ACCUMULATION[_Xn]``: n products of parts stand for one."""

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def _parts(self) -> list[str]:
        return self.name.removeprefix("ANY_").replace("_ANY_F8", "_F8").split("_")

    @property
    def takes_f8(self) -> bool:
        return self.name.startswith("ANY_F8")

    @property
    def accumulation_type(self) -> Any:
        """The dtype in which sums are kept; None where the backend decides."""
        return None if self is DotAlgorithmPreset.DEFAULT else _TYPES.get(self._parts[2])

    @property
    def supported_lhs_types(self) -> tuple[Any, ...] | None:
        """The dtypes in which operands may be handed over; None for any."""
        if self is DotAlgorithmPreset.DEFAULT or self.takes_f8:
            return None
        kind, count = self._parts[0], len(self._parts)
        if kind == "BF16":
            return (np.float32,) if count > 3 else (ml_dtypes.bfloat16, np.float32)
        return (_TYPES[kind],)

    @property
    def supported_rhs_types(self) -> tuple[Any, ...] | None:
        """The dtypes in which operands may be handed over; None for any."""
        return self.supported_lhs_types

    def supported_output_types(self, lhs_dtype: Any, rhs_dtype: Any) -> tuple[Any, ...] | None:
        """Return the dtypes in which the backend may give the product; None for any."""
        total = self.accumulation_type
        if total is None:
            return None
        if self.takes_f8:
            return _F8_RESULTS
        narrow = _TYPES[self._parts[0]]
        both = len(self._parts) == 3 and narrow is not total and total is np.float32 \
            and np.dtype(lhs_dtype) == np.dtype(rhs_dtype) == np.dtype(narrow)
        return (total, narrow) if both else (total,)

    def operand_types(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return the dtypes in which operands of dtypes ``x`` and ``y`` are handed over.

        Raises: ValueError for operands that this algorithm does not take.
        """
        if self.takes_f8:
            if not all(dtypes.is_float(d) and d.itemsize == 1 for d in (x, y)):
                raise errors.explained(
                    errors.ArgumentError, "dot_general.C9",
                    f"The dot algorithm '{self}' requires both inputs to have float8 dtypes. Got "
                    f"{x.name} and {y.name} instead.", advice="Convert them first.")
            return x, y
        allowed = [np.dtype(d) for d in self.supported_lhs_types or ()]
        return tuple(d if d in allowed else allowed[0] for d in (x, y))

    def result_type(self, x: Any, y: Any, wanted: Any) -> Any:
        """Return the dtype in which the backend gives the product of ``x`` and ``y``."""
        allowed = self.supported_output_types(x, y)
        if allowed is None or wanted in [np.dtype(d) for d in allowed]:
            return wanted
        return np.dtype(allowed[0])

    def attribute(self, x: Any, y: Any) -> str:
        """Return the attribute of StableHLO's dot_general."""
        if self.takes_f8:
            fast = self is DotAlgorithmPreset.ANY_F8_ANY_F8_F32_FAST_ACCUM
            return _attribute(element_type(x), element_type(y), "f32", 1, 1, 1, fast)
        lhs, rhs, total, *count = (part.lower() for part in self._parts)
        return _attribute(lhs, rhs, total, 1, 1, int(count[0][1:]) if count else 1, False)

    def runs_on(self, platform: str) -> bool:
        """Return whether XLA has this algorithm on ``platform``."""
        return platform != "cpu" or self in _ON_CPU


# The presets that XLA has on CPU.
_ON_CPU = {
    DotAlgorithmPreset.F16_F16_F16, DotAlgorithmPreset.F32_F32_F32, DotAlgorithmPreset.F64_F64_F64,
    DotAlgorithmPreset.BF16_BF16_F32, DotAlgorithmPreset.BF16_BF16_F32_X3,
    DotAlgorithmPreset.BF16_BF16_F32_X6,
}


def _attribute(lhs: str, rhs: str, total: str, lhs_parts: int, rhs_parts: int, products: int,
               imprecise: bool) -> str:
    return (f", algorithm = <lhs_precision_type = {lhs}, rhs_precision_type = {rhs}, "
            f"accumulation_type = {total}, lhs_component_count = {lhs_parts}, "
            f"rhs_component_count = {rhs_parts}, num_primitive_operations = {products}, "
            f"allow_imprecise_accumulation = {str(bool(imprecise)).lower()}>")


def check_platform(algorithm: DotAlgorithm | DotAlgorithmPreset, platform: str) -> None:
    """Refuse an algorithm that XLA does not have on ``platform``.  Raises: ValueError."""
    if not algorithm.runs_on(platform):
        raise errors.explained(
            errors.ArgumentError, "dot_general.C8",
            f"The precision '{algorithm}' is not supported by dot_general on CPU",
            advice=f"Use one of {', '.join(sorted(p.name for p in _ON_CPU))}, or none.")
