"""Cases of ``control``: functions with rules of their own, as the equations they become."""

from __future__ import annotations

import numpy as np

from cases import case, each, spec
from saem.core.avals import ShapedArray
from saem.core.jaxpr import ClosedJaxpr
from saem.derivatives.checkpoint import Remat
from saem.derivatives.closure_conversion import LinearCall
from saem.derivatives.custom_jvp import CustomJVPCall
from saem.derivatives.custom_vjp import CustomVJPCall
from saem.derivatives.custom_vmap import CustomVmapCall
from saem.derivatives.optimize_remat import RematOpt
from saem.derivatives.policies import Name, everything_saveable
from saem.effects.barrier import OptimizationBarrier
from saem.ops.arithmetic import add, div, mul
from saem.ops.linear import broadcast_new_dim
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

class ProductOfStacks:
    """What vmap makes of ``product``: the same on stacks, one of which may be no stack."""

    def __call__(self, size, batched, xs):
        from_front = [x if b else broadcast_new_dim(x, size, 0) for x, b in zip(xs, batched)]
        return product(*from_front), [True]

    def __repr__(self):
        return "ProductOfStacks()"


class Divide:
    """The transpose of dividing by the first operand, which is the same."""

    def __call__(self, residuals, cts):
        return [div(ct, residuals[0]) for ct in cts]

    def __repr__(self):
        return "Divide()"


PRODUCT = program(product, (2, 3), (2, 3))
SINES = program(lambda x: [sin(sin(x)), cos(x)], (3,))

CASES = [
    *(case(Remat(PRODUCT, prevent, twice, policy), "f32[2,3]", "f32[2,3]")
      for prevent in (True, False, (True, False)) for twice in (False, True)
      for policy in (None, everything_saveable)),
    case(Remat(SINES), "f32[3]"),
    *each(Name("a"), "f32", "i32", "c64"),
    case(OptimizationBarrier(), "f32[2,3]"),
    case(OptimizationBarrier(), "f32[2,3]", "i32[2]", "f32[]"),
    case(CustomVmapCall(PRODUCT, ProductOfStacks()), "f32[2,3]", "f32[2,3]", reversible=False),
    case(LinearCall(program(lambda r, x: [div(x, r)], (3,), (3,)), Divide(), 1),
         spec("f32[3]", "nonzero"), "f32[3]", wrt=(1,)),
    case(CustomJVPCall(program(product, (2, 3), (2, 3)), ProductRule()), "f32[2,3]", "f32[2,3]"),
    case(CustomJVPCall(program(product, (), (3,)), ProductRule()), "f32[]", "f32[3]"),
    case(RematOpt(program(lambda x, y: [cos(x), *product(x, y)], (2, 3), (2, 3)), PRODUCT, 0, 1),
         "f32[2,3]", "f32[2,3]"),
    case(CustomVJPCall(program(product, (2, 3), (2, 3)), NoRule()), "f32[2,3]", "f32[2,3]",
         differentiable=False),
]
