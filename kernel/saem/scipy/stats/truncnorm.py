"""How likely are normal values that were cut off outside of an interval?

Read before: ``stats.families``.
"""

from __future__ import annotations

import math

import numpy as np

from saem import numpy as jnp
from saem.scipy.special import log_ndtr
from saem.scipy.stats.families import Continuous, log_complement
from saem.typing import Array


def log_mass(low: Array, high: Array) -> Array:
    """Return the logarithm of the normal probability between ``low`` and ``high``.

    Both bounds are brought to one side of 0, where tails are exact.
    """
    flip = low > 0
    low, high = jnp.where(flip, -high, low), jnp.where(flip, -low, high)
    upper, lower = log_ndtr(high), log_ndtr(low)
    return upper + log_complement(jnp.minimum(lower - upper, 0))


def density(y: Array, a: Array, b: Array) -> Array:
    inside = -(y * y + math.log(2 * math.pi)) / 2 - log_mass(a, b)
    return jnp.where((y < a) | (y > b), -np.inf, inside)


def log_below(y: Array, a: Array, b: Array) -> Array:
    inside = (y > a) & (y < b)
    out = log_mass(a, jnp.where(inside, y, b)) - log_mass(a, b)
    return jnp.where(y <= a, -np.inf, jnp.where(y >= b, 0, out))


truncated = Continuous(
    "truncnorm", "normal numbers kept where (x - loc) / scale is between ``a`` and ``b``",
    ("a", "b"), valid=lambda a, b: a < b, logpdf=density, logcdf=log_below,
    logsf=lambda y, a, b: log_below(-y, -b, -a))
logpdf, pdf, logcdf, cdf, logsf, sf = truncated.functions("logpdf pdf logcdf cdf logsf sf")
