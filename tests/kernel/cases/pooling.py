"""Cases of ``signal/pooling.py`` and ``loops/reduce_by_function.py``: windows and folds."""

from __future__ import annotations

from cases import case, each, spec
from saem.core import tree
from saem.core.avals import ShapedArray
from saem.core.handles import handle_of
from saem.lax import add, ge, lt, max, mul
from saem.loops.carry import trace_body
from saem.loops.reduce_by_function import Reduce, ReduceWindow
from saem.loops.select_and_scatter import SelectAndScatter
from saem.ops.compare import Ge, Le
from saem.signal.pooling import (
    ReduceWindowMax,
    ReduceWindowMin,
    ReduceWindowSum,
    SelectAndGatherAdd,
    SelectAndScatterAdd,
)

NONE, ONES = ((0, 0), (0, 0)), (1, 1)
PLAIN = ((2, 2), (2, 2), NONE, ONES, ONES)
OVERLAP = ((3, 2), (1, 2), ((1, 1), (0, 1)), ONES, ONES)
DILATED = ((2, 2), (2, 1), ((1, 0), (0, 2)), (1, 2), (2, 1))
# No window of it lies in padding and gaps alone.
FULL = ((2, 2), (2, 1), ((1, 0), (0, 0)), (1, 2), (2, 1))
CUT = ((2, 2), (1, 1), ((-1, 0), (0, -1)), ONES, ONES)
GREATER, SMALLER = handle_of(Ge()), handle_of(Le())


def program(fun, *dtypes):
    scalars = [ShapedArray((), d) for d in dtypes]
    pair = tree.structure((0,) * (2 * len(dtypes)))
    return trace_body(fun, pair, [*scalars, *scalars], "case").closed


ADD = program(lambda a, b: (add(a, b),), "float32")
BOTH = program(lambda a, m, b, n: (mul(a, b), max(m, n)), "float32", "int32")
LARGER, LESS = (program(lambda a, b, f=f: (f(a, b),), "float32").jaxpr for f in (ge, lt))
TWICE = program(lambda a, b: (add(add(a, a), b),), "float32").jaxpr
ZERO, ONE = spec("f32[]", 0.0), spec("f32[]", 1.0)
LEAST = spec("i32[]", -100)

CASES = [
    *each(ReduceWindowSum(*PLAIN), "f32", "bf16", "i32", "c64", shape="5,4"),
    *(case(ReduceWindowSum(*how), "f32[4,5]") for how in (OVERLAP, DILATED, CUT)),
    case(ReduceWindowSum((3, 1), ONES, NONE, ONES, ONES), "f32[2,3]"),
    *(case(make(*how), spec("f32[4,5]", "distinct"))
      for make in (ReduceWindowMax, ReduceWindowMin) for how in (PLAIN, OVERLAP, CUT)),
    *(case(make(*FULL), spec("f32[4,5]", "distinct"), reversible=False)
      for make in (ReduceWindowMax, ReduceWindowMin)),
    *(case(make(*PLAIN), spec(f"{d}[4,4]", "distinct"))
      for make in (ReduceWindowMax, ReduceWindowMin) for d in ("bf16", "i32")),
    case(ReduceWindowMax(*PLAIN), spec("f32[4,5]", "special")),
    # The second operand only chooses: what it chooses jumps, so there is no derivative by it.
    *(case(SelectAndGatherAdd(chosen, *how), "f32[4,5]", spec("f32[4,5]", "distinct"), wrt=(0,))
      for chosen in (GREATER, SMALLER) for how in (PLAIN, OVERLAP)),
    case(SelectAndGatherAdd(GREATER, *PLAIN), "f32[4,4]", spec("f32[4,4]", 1.0), wrt=(0,)),
    *(case(SelectAndScatterAdd(chosen, *PLAIN[:3]), "f32[2,2]", spec("f32[5,4]", "distinct"),
           wrt=(0,)) for chosen in (GREATER, SMALLER)),
    case(SelectAndScatterAdd(GREATER, *OVERLAP[:3]), "f32[4,3]", spec("f32[4,5]", "distinct"),
         wrt=(0,)),
    case(SelectAndScatterAdd(GREATER, *PLAIN[:3]), "f32[2,2]", spec("f32[4,4]", 1.0), wrt=(0,)),
    case(SelectAndScatterAdd(GREATER, (2, 2), (1, 1), ((-1, 0), (1, -1))), "f32[2,4]",
         spec("f32[4,5]", "distinct"), wrt=(0,)),
    *(case(SelectAndScatter(chosen, (), TWICE, (), *how), spec("f32[4,5]", values), source, ONE,
           wrt=(), batchable=False)
      for chosen in (LARGER, LESS) for values in ("distinct", 1.0)
      for how, source in ((PLAIN[:3], "f32[2,2]"), (OVERLAP[:3], "f32[4,3]"))),
    case(Reduce(None, ADD, (1,)), "f32[3,5]", ZERO, wrt=(0,), batchable=False),
    case(Reduce(None, ADD, (0, 2)), "f32[3,2,3]", ZERO, wrt=(0,), batchable=False),
    case(Reduce(None, ADD, (0,)), "f32[0,3]", ZERO, wrt=(0,), batchable=False),
    case(Reduce(None, BOTH, (0,)), "f32[3,2]", "i32[3,2]", ONE, LEAST, wrt=(0,), batchable=False),
    case(ReduceWindow(ADD, *OVERLAP), "f32[4,5]", ZERO, wrt=(0,), batchable=False,
         reversible=False),
    case(ReduceWindow(BOTH, *PLAIN), "f32[4,5]", "i32[4,5]", ONE, LEAST, wrt=(0,),
         batchable=False, reversible=False),
    case(ReduceWindow(ADD, *DILATED), "f32[4,5]", ZERO, wrt=(0,), batchable=False,
         reversible=False),
]
