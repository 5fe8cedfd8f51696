"""How likely are values spread evenly over an interval?

Read before: ``stats.families``.
"""

from __future__ import annotations

from saem import lax
from saem import numpy as jnp
from saem.scipy.stats.families import Continuous

uniform = Continuous(
    "uniform", "numbers spread evenly over [loc, loc + scale]", support=(0, 1),
    real="logpdf pdf cdf", weak="logpdf pdf ppf",
    logpdf=lambda y: jnp.zeros_like(y), ppf=lambda q: q,
    cdf=lambda y: lax.convert_element_type(y, y.dtype))  # never weak
logpdf, pdf, cdf, ppf = uniform.functions("logpdf pdf cdf ppf")
