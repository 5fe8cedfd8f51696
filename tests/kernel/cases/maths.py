"""Cases of ``ops/maths.py``: exponentials, logarithms, roots, circle and hyperbola."""

from __future__ import annotations

from cases import case, each
from saem.ops import maths as m

# The domain on which a function is defined, and far enough from its branch points.
DOMAINS = {
    m.Exp: "any", m.Exp2: "any", m.Expm1: "any", m.Log: "positive", m.Log1p: "unit",
    m.Sqrt: "positive", m.Rsqrt: "positive", m.Cbrt: "nonzero", m.Logistic: "any", m.Sin: "any",
    m.Cos: "any", m.Tan: "unit", m.Tanh: "any", m.Asin: "unit", m.Acos: "unit", m.Atan: "any",
    m.Sinh: "any", m.Cosh: "any", m.Asinh: "any", m.Acosh: "above1", m.Atanh: "unit",
    m.Square: "any",
}  # fmt: skip

CASES = []
for _kind, _domain in DOMAINS.items():
    _prim = _kind()
    CASES += [
        *each(_prim, "f32", domain=_domain),
        *each(_prim, "bf16", domain=_domain),
        *each(_prim, "f16", domain=_domain),
        *each(_prim, "f32", shape="", domain=_domain),
        *each(_prim, "f32", shape="0,2", domain=_domain),
        *each(_prim, "f32", shape="30", domain="special"),
    ]
    if _kind is not m.Cbrt:
        CASES += each(_prim, "c64", domain="nonzero" if _domain in ("positive", "above1")
                      else _domain, tolerance=2e-4)
CASES += [
    *each(m.Square(), "i32", "u8"),
    case(m.Exp(m.AccuracyMode.HIGHEST), "f32[3]"),
    case(m.Tanh(m.Tolerance(1e-5, 0.0, 0)), "f32[3]"),
    case(m.Logistic(m.AccuracyMode.HIGHEST), "f32[3]"),
    case(m.Exp2(m.AccuracyMode.DEFAULT), "f32[3]"),
]
