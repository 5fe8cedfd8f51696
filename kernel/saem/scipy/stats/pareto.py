"""How likely are values of a Pareto distribution?

Read before: ``stats.families``.
"""

from __future__ import annotations

import numpy as np

from saem import numpy as jnp
from saem.scipy.stats.families import Continuous, complement, log_complement

pareto = Continuous(
    "pareto", "a Pareto distribution, whose tail falls as x**-b", ("b",), support=(1, np.inf),
    anchor=2.0, real="logpdf pdf logcdf cdf logsf sf", weak="logcdf",
    logpdf=lambda y, b: jnp.log(b) - (b + 1) * jnp.log(y),
    logsf=lambda y, b: -b * jnp.log(y), cdf=lambda y, b: complement(-b * jnp.log(y)),
    logcdf=lambda y, b: log_complement(-b * jnp.log(y)),
    ppf=lambda q, b: jnp.exp(-jnp.log1p(-q) / b))
logpdf, pdf, logcdf, cdf, logsf, sf, ppf = pareto.functions("logpdf pdf logcdf cdf logsf sf ppf")
