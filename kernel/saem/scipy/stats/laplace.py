"""How likely are values of a Laplace distribution?

Read before: ``stats.families``.
"""

from __future__ import annotations

import math

from saem import numpy as jnp
from saem.scipy.stats.families import Continuous

laplace = Continuous(
    "laplace", "a Laplace distribution: exponential on both sides of ``loc``",
    real="logpdf pdf cdf",
    logpdf=lambda y: -jnp.abs(y) - math.log(2),
    cdf=lambda y: jnp.where(y < 0, jnp.exp(jnp.minimum(y, 0)), 2 - jnp.exp(-jnp.maximum(y, 0))) / 2)
logpdf, pdf, cdf = laplace.functions("logpdf pdf cdf")
