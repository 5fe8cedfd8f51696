"""Cases of ``special/functions.py`` and ``special/incomplete.py``."""

from __future__ import annotations

from cases import case, each, spec
from saem.special import functions as s
from saem.special import incomplete as i

# Values on which XLA and the definitions agree; infinity and NaN among them.
LINE = (0.0, -0.0, 0.5, -0.5, 1.5, -2.5, 3.0, 7.25, 20.0, float("inf"), float("nan"))

CASES = []
for _prim, _domain in (
    (s.Erf(), "any"), (s.Erfc(), "any"), (s.ErfInv(), "unit"), (s.Lgamma(), "positive"),
    (s.Digamma(), "positive"), (s.BesselI0e(), "any"), (s.BesselI1e(), "any"),
):  # fmt: skip
    CASES += [
        *each(_prim, "f32", "bf16", "f16", domain=_domain),
        *each(_prim, "f32", shape="", domain=_domain),
        *each(_prim, "f32", shape="0,2", domain=_domain),
        case(_prim, spec("f32[11]", LINE), differentiable=False, batchable=False, tolerance=1e-4),
    ]
CASES += [
    case(s.Lgamma(), spec("f32[3,4]", "non-integer"), tolerance=1e-4),
    case(s.Digamma(), spec("f32[3,4]", "non-integer"), tolerance=1e-4),
    case(s.BesselI0e(), spec("f32[6]", (3.9, 4.1, 7.99, 8.01, 100.0, -600.0))),
    case(s.BesselI1e(), spec("f32[6]", (3.9, 4.1, 7.99, 8.01, 100.0, -600.0))),
    case(s.BesselI1e(), spec("f32[]", 0.0)),
    case(s.ErfInv(), spec("f32[6]", (0.999, -0.9999, 0.99999, 1.0, -1.0, 1.5)),
         differentiable=False, batchable=False, tolerance=1e-4),
    case(s.Zeta(), spec("f32[3,4]", "above1"), spec("f32[3,4]", "positive"), wrt=(1,),
         derivative_tolerance=3e-3),
    case(s.Zeta(), spec("f32[]", "above1"), spec("f32[4]", "positive"), differentiable=False),
    case(s.Zeta(), spec("f32[0]", "above1"), spec("f32[0]", "positive"), differentiable=False),
    case(s.Zeta(), spec("f32[4]", (1.0, 0.5, 2.0, 3.0)), spec("f32[4]", (2.0, 1.0, -1.0, -2.0)),
         differentiable=False, batchable=False),
    *[case(s.Polygamma(), spec("f32[3,4]", float(m)), spec("f32[3,4]", "positive"),
           wrt=(1,), tolerance=1e-4) for m in (0, 1, 2, 4)],
    case(s.Polygamma(), spec("f32[]", 1.0), spec("f32[3]", "positive"), differentiable=False),
]
for _prim in (i.Igamma(), i.Igammac(), i.IgammaGradA(), i.RandomGammaGrad()):
    _moves = _prim.name in ("igamma", "igammac")
    CASES += [
        case(_prim, *[spec("f32[3,4]", "positive")] * 2, differentiable=_moves, tolerance=1e-4),
        case(_prim, *[spec("bf16[5]", "positive")] * 2, differentiable=False),
        case(_prim, spec("f32[4]", "positive"), spec("f32[4]", (0.1, 2.0, 5.0, 9.0)),
             differentiable=_moves, tolerance=1e-4),
        case(_prim, spec("f32[]", "positive"), spec("f32[3]", "above1"), differentiable=_moves,
             tolerance=1e-4),
        case(_prim, spec("f32[2,1]", "positive"), spec("f32[1,3]", "above1"),
             differentiable=_moves, tolerance=1e-4),
        case(_prim, spec("f32[]", "positive"), spec("f32[]", "above1"), differentiable=_moves,
             tolerance=1e-4),
        case(_prim, spec("f32[0]", "positive"), spec("f32[0]", "positive"), differentiable=_moves),
        case(_prim, spec("f32[6]", (30.0, 100.0, 100.0, 0.01, 50.0, 0.2)),
             spec("f32[6]", (31.0, 90.0, 120.0, 0.001, 20.0, 30.0)), differentiable=_moves,
             tolerance=2e-3, derivative_tolerance=5e-3),
        case(_prim, spec("f32[7]", (1.0, 0.0, 0.0, -1.0, 1.0, 2.0, float("nan"))),
             spec("f32[7]", (0.0, 0.0, 2.0, 1.0, -1.0, float("inf"), 1.0)), differentiable=False,
             batchable=False),
    ]
_beta = i.RegularizedIncompleteBeta()
CASES += [
    case(_beta, *[spec("f32[3,4]", "positive")] * 2, spec("f32[3,4]", "open01"), wrt=(2,),
         tolerance=1e-4),
    case(_beta, *[spec("f32[]", "positive")] * 2, spec("f32[5]", "open01"), wrt=(2,),
         tolerance=1e-4),
    case(_beta, spec("f32[4]", (20.0, 0.3, 5.0, 40.0)), spec("f32[4]", (30.0, 0.2, 90.0, 2.0)),
         spec("f32[4]", (0.4, 0.6, 0.01, 0.99)), differentiable=False, tolerance=1e-3),
    case(_beta, *[spec("bf16[3]", "positive")] * 2, spec("bf16[3]", "open01"),
         differentiable=False),
    case(_beta, spec("f32[5]", (1.0, 1.0, -1.0, 2.0, 2.0)), spec("f32[5]", (2.0,)),
         spec("f32[5]", (0.0, 1.0, 0.5, -0.1, float("nan"))), differentiable=False,
         batchable=False),
    case(_beta, *[spec("f32[0]", "positive")] * 3, differentiable=False),
]
