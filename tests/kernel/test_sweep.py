"""Do calls made from signatures give what real JAX gives?

Every parameter of a function is varied over the kinds of values that its name stands for.

Read before: ``sweep.py``, ``library.py``.
Invariant: no row is left out for a function that is named here; `NAMES` grows as functions agree.
"""

from __future__ import annotations

import numpy as np
import pytest
from library import check
from sweep import rows

import saem.numpy as jnp

NAMES = ("amax", "any", "argsort", "broadcast_to", "clip", "copysign", "count_nonzero",
         "diff", "diag", "sum", "prod", "max", "min", "ptp", "nansum", "sort",
         "roll", "trace", "tril", "squeeze", "expand_dims")


@pytest.mark.parametrize("name", NAMES)
def test_rows(jax_oracle, name):
    draw = np.random.RandomState(0)
    A = draw.randn(3, 4).astype("f")
    check(jax_oracle, list(rows(f"jnp.{name}", getattr(jnp, name))), rtol=3e-5, A=A, B=A > 0,
          I=draw.randint(-4, 9, (3, 4)).astype("i"), C=A + 1j * A[::-1], H=A.astype("float16"),
          F16=A.astype("float16"), U=draw.randint(0, 9, (3, 4)).astype("uint8"),
          T=draw.randn(2, 3, 4).astype("f"), V=np.array([0.5, 1.0, 2.0, 3.5], "f"),
          W=np.arange(12).reshape(3, 4) % 3 > 0)
