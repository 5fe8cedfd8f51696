"""How likely are values of Student's t distribution?

Read before: ``stats.families``.
"""

from __future__ import annotations

from saem import numpy as jnp
from saem.scipy.special import betaln
from saem.scipy.stats.families import Continuous
from saem.typing import Array


def student(y: Array, df: Array) -> Array:
    """Return the logarithm of the density of Student's distribution."""
    half = df / 2
    return -betaln(0.5, half) - jnp.log(df) / 2 - (half + 0.5) * jnp.log1p(y * y / df)


logpdf, pdf = Continuous("t", "Student's t distribution with ``df`` degrees of freedom", ("df",),
                         even=True, logpdf=student).functions("logpdf pdf")
