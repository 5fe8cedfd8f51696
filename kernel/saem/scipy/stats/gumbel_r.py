"""How likely are the largest of many values? (Gumbel's distribution, skewed right)

Read before: ``stats.families``.
"""

from __future__ import annotations

import numpy as np

from saem import numpy as jnp
from saem.scipy.stats.families import Continuous, complement, log_complement

gumbel = Continuous(
    "gumbel_r", "a Gumbel distribution of maxima of mode ``loc``", quantile="p",
    real="logpdf pdf logcdf cdf logsf sf ppf", weak="logpdf pdf logcdf cdf logsf ppf",
    logpdf=lambda y: jnp.where(y == -np.inf, -np.inf, -y - jnp.exp(-y)),
    logcdf=lambda y: -jnp.exp(-y), sf=lambda y: complement(-jnp.exp(-y)),
    logsf=lambda y: log_complement(-jnp.exp(-y)),
    ppf=lambda p: -jnp.log(-jnp.log(p)))
logpdf, pdf, logcdf, cdf, logsf, sf, ppf = gumbel.functions("logpdf pdf logcdf cdf logsf sf ppf")
