"""How likely are values of a Cauchy distribution?

Read before: ``stats.families``.
"""

from __future__ import annotations

import math

from saem import numpy as jnp
from saem.scipy.stats.families import Continuous
from saem.typing import Array


def below(y: Array) -> Array:
    """Return the probability of values up to y, exact in the lower tail."""
    return jnp.arctan2(1, -y) / math.pi


def quantile(q: Array) -> Array:
    """Return tan(pi (q - 1/2)), by the cotangent of the smaller tail where it is steep."""
    tail = jnp.minimum(q, 1 - q)
    steep = tail < 0.25
    side = jnp.where(q < 0.5, -1, 1)
    return jnp.where(steep, side / jnp.tan(math.pi * jnp.where(steep, tail, 0.25)),
                     jnp.tan(math.pi * (jnp.where(steep, 0.5, q) - 0.5)))


cauchy = Continuous(
    "cauchy", "a Cauchy distribution of median ``loc`` and half width ``scale``",
    logpdf=lambda y: -math.log(math.pi) - jnp.log1p(y * y), cdf=below, sf=lambda y: below(-y),
    ppf=quantile, isf=lambda q: -quantile(q))
logpdf, pdf, logcdf, cdf, logsf, sf, ppf, isf = cauchy.functions(
    "logpdf pdf logcdf cdf logsf sf ppf isf")
