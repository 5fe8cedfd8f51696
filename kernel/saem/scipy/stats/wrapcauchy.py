"""How likely are angles of a wrapped Cauchy distribution?

Read before: ``stats.families``.
"""

from __future__ import annotations

import math

from saem import numpy as jnp
from saem.scipy.stats.families import Continuous

wrapped = Continuous(
    "wrapcauchy", "a Cauchy distribution wrapped around the circle, for 0 < c < 1", ("c",),
    placed=False, support=(0, 2 * math.pi), valid=lambda c: (c > 0) & (c < 1),
    real="logpdf pdf", weak="logpdf pdf",
    logpdf=lambda x, c: (jnp.log1p(-c * c) - math.log(2 * math.pi)
                         - jnp.log1p(c * c - 2 * c * jnp.cos(x))))
logpdf, pdf = wrapped.functions("logpdf pdf")
