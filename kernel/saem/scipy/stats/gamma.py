"""How likely are values of a gamma distribution?

Read before: ``stats.families``.
"""

from __future__ import annotations

import numpy as np

from saem import lax
from saem.scipy.special import gammainc, gammaincc, xlogy
from saem.scipy.stats.families import Continuous

gamma = Continuous(
    "gamma", "a gamma distribution of shape ``a``", ("a",), support=(0, np.inf),
    weak="logsf sf",
    logpdf=lambda y, a: xlogy(a - 1, y) - y - lax.lgamma(a), cdf=lambda y, a: gammainc(a, y),
    sf=lambda y, a: gammaincc(a, y))
logpdf, pdf, logcdf, cdf, logsf, sf = gamma.functions("logpdf pdf logcdf cdf logsf sf")
