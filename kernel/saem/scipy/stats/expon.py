"""How likely are values of an exponential distribution?

Read before: ``stats.families``.
"""

from __future__ import annotations

import numpy as np

from saem import numpy as jnp
from saem.scipy.stats.families import Continuous, complement, log_complement

exponential = Continuous(
    "expon", "an exponential distribution of mean ``scale``, from ``loc`` on",
    support=(0, np.inf), real="logpdf pdf logcdf cdf logsf sf",
    weak="logpdf pdf logcdf cdf logsf sf ppf",
    logpdf=lambda y: -y, logsf=lambda y: -y,
    cdf=lambda y: complement(-y), logcdf=lambda y: log_complement(-y),
    ppf=lambda q: -jnp.log1p(-q))
logpdf, pdf, logcdf, cdf, logsf, sf, ppf = exponential.functions(
    "logpdf pdf logcdf cdf logsf sf ppf")
