"""How likely are the smallest of many values? (Gumbel's distribution, skewed left)

Read before: ``stats.families``.
"""

from __future__ import annotations

import numpy as np

from saem import numpy as jnp
from saem.scipy.stats.families import Continuous, complement, log_complement

gumbel = Continuous(
    "gumbel_l", "a Gumbel distribution of minima of mode ``loc``", quantile="p",
    real="logpdf pdf logcdf cdf logsf sf ppf", weak="logpdf pdf logcdf cdf logsf sf ppf",
    logpdf=lambda y: jnp.where(y == np.inf, -np.inf, y - jnp.exp(y)), logsf=lambda y: -jnp.exp(y),
    cdf=lambda y: complement(-jnp.exp(y)), logcdf=lambda y: log_complement(-jnp.exp(y)),
    ppf=lambda p: jnp.log(-jnp.log1p(-p)))
logpdf, pdf, logcdf, cdf, logsf, sf, ppf = gumbel.functions("logpdf pdf logcdf cdf logsf sf ppf")
