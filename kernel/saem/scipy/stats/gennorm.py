"""How likely are values of a generalized normal distribution?

Read before: ``stats.families``.
"""

from __future__ import annotations

from saem import lax
from saem import numpy as jnp
from saem.scipy.special import gammainc
from saem.scipy.stats.families import Continuous

generalized = Continuous(
    "gennorm", "a generalized normal distribution, whose density is exp(-|x|**beta)", ("beta",),
    placed=False, weak="logpdf pdf cdf",
    logpdf=lambda x, beta: (jnp.log(beta / 2) - lax.lgamma(1 / beta) - jnp.abs(x) ** beta),
    cdf=lambda x, beta: 0.5 + 0.5 * jnp.sign(x) * gammainc(1 / beta, jnp.abs(x) ** beta))
logpdf, pdf, cdf = generalized.functions("logpdf pdf cdf")
