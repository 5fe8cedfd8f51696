"""Cases of loops and branches: small programs whose derivatives exist.

The bodies are written here, traced for the operands of the case.
"""

from __future__ import annotations

import numpy as np

from cases import case, spec
from saem.core import tree
from saem.core.avals import ShapedArray
from saem.derivatives.implicit_solve import Four, LinearSolve
from saem.lax import add, broadcast_in_dim, div, integer_pow, lt, mul, reduce_sum, sin
from saem.loops.carry import trace_body
from saem.loops.conditional import Cond
from saem.loops.scan import Scan
from saem.loops.while_loop import While

_FEW = ShapedArray((3,), "float32")
_ONE = ShapedArray((), "float32")
_COUNT = ShapedArray((), "int32")


def program(fun, *avals):
    """Return ``fun`` traced for flat operands of ``avals``."""
    _, in_tree = tree.flatten((0,) * len(avals))
    return trace_body(fun, in_tree, avals, "case").closed


def _sine(x, w):
    return sin(mul(x, w)), w


def _cube(x, w):
    return integer_pow(x, 3), x


def _nothing(x, w):
    return x, w


def _affine(w, carry, x):
    return add(mul(carry, w), sin(x)), mul(carry, x)


def _power(w, carry, x):
    return mul(mul(carry, w), x), carry


def _counted(i, carry, x):
    return add(i, 1), add(mul(carry, x), 1.0), reduce_sum(carry, (0,))


def _spread(total, rows):
    return add(total, reduce_sum(rows, (0,))), broadcast_in_dim(total, (3,), ())


def _double(w, i, x):
    return add(i, 1), mul(sin(x), w)


def _until_three(i, x):
    return lt(i, 3)


def _scan(body, operands, length, consts, carry, **options):
    return Scan(program(body, *operands), length, consts, carry, **options)


_CHOICE = tuple(program(f, _FEW, _FEW) for f in (_sine, _cube, _nothing))
_AFFINE = (_FEW, _FEW, _FEW)
_LOOP = While(program(_until_three, _COUNT, _FEW), program(_double, _FEW, _COUNT, _FEW), 0, 1)

_TIMES = program(lambda w, x: (mul(x, w),), _FEW, _FEW)
_DIVIDED = program(lambda w, x: (div(x, w),), _FEW, _FEW)
_SOLVE = LinearSolve(Four(1, 1, 1, 1), Four(_TIMES, _TIMES, _DIVIDED, _DIVIDED))
# The four functions are of one matrix, so they are given the same one.
_NONZERO = [spec("f32[3]", lambda rng, shape: np.linspace(0.5, 1.5, 3))] * 4

CASES = [
    *(case(Cond(_CHOICE), spec("i32[]", number), "f32[3]", "f32[3]") for number in (0, 1, 2)),
    case(Cond(_CHOICE[:1]), spec("i32[]", 0), "f32[3]", "f32[3]"),
    case(_scan(_affine, _AFFINE, 4, 1, 1), "f32[3]", "f32[3]", "f32[4,3]"),
    case(_scan(_affine, _AFFINE, 5, 1, 1, reverse=True, unroll=2),
         "f32[3]", "f32[3]", "f32[5,3]"),
    case(_scan(_affine, _AFFINE, 3, 1, 1, unroll=3), "f32[3]", "f32[3]", "f32[3,3]"),
    case(_scan(_affine, _AFFINE, 0, 1, 1), "f32[3]", "f32[3]", "f32[0,3]"),
    case(_scan(_power, (_ONE, _ONE, _ONE), 3, 1, 1), "f32[]", "f32[]", "f32[3]"),
    case(_scan(_counted, (_COUNT, _FEW, _FEW), 3, 0, 2), spec("i32[]", 0), "f32[3]", "f32[3,3]"),
    case(_scan(_spread, (_ONE, _FEW), 4, 0, 1), "f32[]", "f32[4,3]"),
    case(_scan(lambda x, y: (mul(x, y),), (_ONE, _ONE), 4, 0, 0), "f32[4]", "f32[4]"),
    # A while loop has no reverse mode.
    case(_LOOP, "f32[3]", spec("i32[]", 0), "f32[3]", reversible=False),
    case(_LOOP, "f32[3]", spec("i32[]", 7), "f32[3]", reversible=False),
    case(_LOOP, "f32[3]", spec("i32[]", lambda rng, shape: rng.integers(0, 5, shape)), "f32[3]",
         reversible=False),
    # The derivative by what the matrix is made of is that of the solution, not of the solver: see
    # test_control_solve.py.
    case(_SOLVE, *_NONZERO, "f32[3]", wrt=(4,)),
]
