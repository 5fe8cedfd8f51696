"""How likely are sums of squares of normal numbers?

Read before: ``stats.families``.
"""

from __future__ import annotations

import math

import numpy as np

from saem import lax
from saem.scipy.special import gammainc, gammaincc, xlogy
from saem.scipy.stats.families import Continuous

chi2 = Continuous(
    "chi2", "a chi-squared distribution with ``df`` degrees of freedom", ("df",),
    support=(0, np.inf),
    logpdf=lambda y, df: (xlogy(df / 2 - 1, y / 2) - y / 2 - math.log(2) - lax.lgamma(df / 2)),
    cdf=lambda y, df: gammainc(df / 2, y / 2), sf=lambda y, df: gammaincc(df / 2, y / 2))
logpdf, pdf, logcdf, cdf, logsf, sf = chi2.functions("logpdf pdf logcdf cdf logsf sf")
