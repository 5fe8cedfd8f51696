"""How is a case of the test matrix written?

    CASES = [case(Sin(), spec("f32[3,4]")), case(Log(), spec("bf16[5]", "positive"))]

Each module of this package holds such a list.  A spec names dtype and shape as jaxprs do, and a
domain from which numbers are drawn:

- floats: any, positive, unit (-1..1), open01, above1, nonzero, non-integer, distinct (no two are
  near), integral, special (zeros of both signs, infinities, NaN);
- integers: any (-9..9), positive, nonzero, distinct, ``below:5`` (0..4), edges (least, greatest…);
- of any dtype: numbers themselves (an array or list, stretched to the shape), or a function
  ``(rng, shape) -> array``.

Read before: nothing.  Read after: ``matrix``.
Invariant: every primitive of the registry has a case (test_matrix.py).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

_SPEC = re.compile(r"(\w+)\[([\d,]*)\]")
_LONG = {"f": "float", "bf": "bfloat", "i": "int", "u": "uint", "c": "complex"}


@dataclasses.dataclass(frozen=True)
class Spec:
    """What one operand is like."""

    shape: tuple[int, ...]
    dtype: np.dtype
    domain: Any = "any"
    weak: bool = False

    def __str__(self) -> str:
        digits = re.sub(r"\D*", "", self.dtype.name, count=1)
        name = {"bool": "bool"}.get(self.dtype.name) or (
            "bf16" if self.dtype.name == "bfloat16" else self.dtype.name[0] + digits)
        domain = self.domain if isinstance(self.domain, str) else "given"
        shape = ",".join(map(str, self.shape))
        return f"{name}[{shape}]" + ("" if domain == "any" else f":{domain}")


def dtype_of(name: str) -> np.dtype:
    """Return the dtype a jaxpr calls ``name``: f32, bf16, u8, bool, c64, f8_e4m3fn."""
    if name == "bool":
        return np.dtype(bool)
    letters, rest = re.fullmatch(r"([a-z]+)(\w+)", name).groups()
    long = _LONG[letters] + rest
    return np.dtype(getattr(ml_dtypes, long, None) or long)


def spec(text: str, domain: Any = "any", *, weak: bool = False) -> Spec:
    """Return the spec of ``text``, such as ``f32[3,4]``.

    Raises: ValueError for text of another form.
    """
    match = _SPEC.fullmatch(text)
    if match is None:
        raise ValueError(f"a spec looks like f32[3,4], got {text!r}")
    name, shape = match.groups()
    sizes = tuple(int(n) for n in shape.split(",") if n)
    return Spec(sizes, dtype_of(name), domain, weak)


@dataclasses.dataclass(frozen=True)
class Case:
    """A primitive and its operands.

    ``tolerance``: of XLA against NumPy, if the dtype's is too strict.  ``derivative_tolerance``: of
    derivatives.  ``differentiable`` is False where the derivative does not exist at the operands
    (or the primitive has none); ``batchable`` likewise; ``reversible`` is False
    where only forward mode exists.  ``wrt`` numbers the operands by which it
    can be differentiated, if not by all.  ``tangent`` makes of random numbers a tangent along which
    the operands stay what they must be (symmetric, say).  ``settle`` makes of the outputs what the
    definition fixes, where signs or phases are free.
    """

    prim: Any
    specs: tuple[Spec, ...]
    tolerance: float | None = None
    derivative_tolerance: float | None = None
    differentiable: bool = True
    batchable: bool = True
    wrt: tuple[int, ...] | None = None
    reversible: bool = True
    tangent: Callable[[np.ndarray], np.ndarray] | None = None
    settle: Callable[[list[np.ndarray]], list[np.ndarray]] | None = None

    def __str__(self) -> str:
        params = ",".join(f"{k}={v}" for k, v in self.prim.params.items() if v is not None)
        shown = f"{self.prim.name}<{params[:60]}>" if params else self.prim.name
        return f"{shown}({'_'.join(map(str, self.specs))})"


def case(prim: Any, *specs: Spec | str, **options: Any) -> Case:
    """Return a case; specs may be text.  ``special`` operands are not differentiated."""
    made = tuple(spec(s) if isinstance(s, str) else s for s in specs)
    if any(isinstance(s.domain, str) and s.domain == "special" for s in made):
        options.setdefault("differentiable", False)
    return Case(prim, made, **options)


def each(prim: Any, *dtypes: str, shape: str = "3,4", domain: Any = "any", arity: int = 1,
         **options: Any) -> list[Case]:
    """Return a case of ``prim`` for each dtype, on ``arity`` operands of one shape."""
    return [case(prim, *[spec(f"{d}[{shape}]", domain)] * arity, **options) for d in dtypes]
