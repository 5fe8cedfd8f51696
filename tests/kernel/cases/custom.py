"""Cases of ``control``: functions with rules of their own, as the equations they become."""

from __future__ import annotations

import numpy as np

from cases import case
from saem.control.custom_jvp import CustomJVPCall
from saem.control.custom_vjp import CustomVJPCall
from saem.core.avals import ShapedArray
from saem.core.jaxpr import ClosedJaxpr
from saem.ops.arithmetic import add, mul
from saem.ops.maths import cos, sin
from saem.transform.staging import trace_flat


def program(fun, *shapes) -> ClosedJaxpr:
    """Return the program of ``fun`` (flat to flat) for float32 arguments of ``shapes``."""
    return trace_flat(fun, [ShapedArray(shape, np.dtype("float32")) for shape in shapes])


def product(x, y):
    return [mul(sin(x), y)]


class ProductRule:
    """The derivative of ``product``; an object, so that its name in a case is always the same."""

    def __call__(self, primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        parts = [mul(mul(cos(x), y), dx)] if dx is not None else []
        parts += [mul(sin(x), dy)] if dy is not None else []
        return product(x, y), [add(*parts) if len(parts) == 2 else parts[0]]

    def __repr__(self):
        return "ProductRule()"


class NoRule:
    """The rules of a case that is never differentiated."""

    fwd = bwd = symbolic_zeros = None

    def __repr__(self):
        return "NoRule()"

CASES = [
    case(CustomJVPCall(program(product, (2, 3), (2, 3)), ProductRule()), "f32[2,3]", "f32[2,3]"),
    case(CustomJVPCall(program(product, (), (3,)), ProductRule()), "f32[]", "f32[3]"),
    case(CustomVJPCall(program(product, (2, 3), (2, 3)), NoRule()), "f32[2,3]", "f32[2,3]",
         differentiable=False),
]
