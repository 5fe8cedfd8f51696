"""How many of n trials succeed whose probability is itself random?

Read before: ``stats.families``.
"""

from __future__ import annotations

import numpy as np

from saem import numpy as jnp
from saem.scipy.special import betaln
from saem.scipy.stats.families import Discrete, log_choose, where_possible
from saem.typing import Array


def log_probability(k: Array, n: Array, a: Array, b: Array) -> Array:
    """Return the logarithm of the binomial coefficient times B(k + a, n - k + b) / B(a, b).

    A k that is not whole is rounded down, as in JAX; SciPy has no probability for it.
    """
    k = jnp.floor(k)
    possible = (k >= 0) & (k <= n)
    out = where_possible(possible, k, 0, lambda k: (
        log_choose(n, k) + betaln(k + a, n - k + b) - betaln(a, b)))
    return jnp.where((n >= 0) & (a > 0) & (b > 0), out, np.nan)


logpmf, pmf = Discrete(
    "betabinom", "``n`` trials whose probability of success has a beta distribution",
    ("n", "a", "b"), log_probability).functions()
