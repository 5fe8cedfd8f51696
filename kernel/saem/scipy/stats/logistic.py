"""How likely are values of a logistic distribution?

Read before: ``stats.families``.
"""

from __future__ import annotations

from saem import numpy as jnp
from saem.scipy.special import expit, logit
from saem.scipy.stats.families import Continuous

logistic = Continuous(
    "logistic", "a logistic distribution of mean ``loc``", quantile="x", weak="cdf sf",
    logpdf=lambda y: -2 * jnp.logaddexp(y / 2, -y / 2), cdf=expit, sf=lambda y: expit(-y),
    ppf=logit, isf=lambda q: -logit(q))
logpdf, pdf, cdf, sf, ppf, isf = logistic.functions("logpdf pdf cdf sf ppf isf")
