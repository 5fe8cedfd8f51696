"""How likely are values of a beta distribution?

Read before: ``stats.families``.
"""

from __future__ import annotations

from saem.scipy.special import betainc, betaln, xlog1py, xlogy
from saem.scipy.stats.families import Continuous

beta = Continuous(
    "beta", "a beta distribution of shapes ``a`` and ``b``", ("a", "b"), support=(0, 1),
    logpdf=lambda y, a, b: xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b),
    cdf=lambda y, a, b: betainc(a, b, y), sf=lambda y, a, b: betainc(b, a, 1 - y))
logpdf, pdf, logcdf, cdf, logsf, sf = beta.functions("logpdf pdf logcdf cdf logsf sf")
