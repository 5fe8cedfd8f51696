"""How likely are angles of a von Mises distribution?

Read before: ``stats.families``.
"""

from __future__ import annotations

import math

from saem import lax
from saem import numpy as jnp
from saem.scipy.stats.families import Continuous

von_mises = Continuous(
    "vonmises", "a von Mises distribution of angles of concentration ``kappa``", ("kappa",),
    placed=False, weak="logpdf pdf", valid=lambda kappa: kappa > 0,
    logpdf=lambda x, kappa: (kappa * (jnp.cos(x) - 1)
                             - jnp.log(2 * math.pi * lax.bessel_i0e(kappa))))
logpdf, pdf = von_mises.functions("logpdf pdf")
