"""How likely are values of a normal distribution?

Read before: ``stats.families``.
"""

from __future__ import annotations

import math

from saem.scipy.special import log_ndtr, ndtr, ndtri
from saem.scipy.stats.families import Continuous

normal = Continuous(
    "norm", "a normal distribution of mean ``loc`` and deviation ``scale``", floating=True,
    even=True,
    logpdf=lambda y: -(y * y + math.log(2 * math.pi)) / 2, cdf=ndtr, sf=lambda y: ndtr(-y),
    logcdf=log_ndtr, logsf=lambda y: log_ndtr(-y), ppf=ndtri, isf=lambda q: -ndtri(q))
logpdf, pdf, logcdf, cdf, logsf, sf, ppf, isf = normal.functions(
    "logpdf pdf logcdf cdf logsf sf ppf isf")
