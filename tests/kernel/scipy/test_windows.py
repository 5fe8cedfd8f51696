"""Are windows SciPy's numbers?

Read before: ``saem.scipy.windows``.
Invariant: every expected value comes from SciPy, in the second process.
"""

from __future__ import annotations

import numpy as np
import pytest

from saem.scipy.windows import ALIASES, WINDOWS, periodic

PARAMETERS = {
    "general_cosine": [((0.5, 0.4, 0.1),)], "general_hamming": [(0.6,)], "kaiser": [(5.0,), (0.0,)],
    "gaussian": [(3.0,)], "general_gaussian": [(1.5, 3.0)], "chebwin": [(60.0,), (100.0,)],
    "dpss": [(2.5,), (3.0,)], "tukey": [(), (0.3,), (0.0,), (1.0,)], "taylor": [(), (5, 40.0)],
    "exponential": [(), (None, 3.0)],
}


@pytest.mark.parametrize("size", [1, 2, 7, 8, 16, 33])
def test_each_window(jax_oracle, size):
    asked = [(name, *parameters) for name in WINDOWS for parameters in PARAMETERS.get(name, [()])
             if name != "dpss" or size > 2 * parameters[0]]
    wanted = jax_oracle.run(
        "import scipy.signal as s\n"
        "result = [s.get_window(w, size) for w in asked]", asked=asked, size=size).value
    for window, want in zip(asked, wanted, strict=True):
        np.testing.assert_allclose(periodic(window, size), want, rtol=1e-9, atol=1e-12,
                                   err_msg=str(window))


def test_aliases(jax_oracle):
    names = [alias for more in ALIASES.values() for alias in more.split()]
    needing = {"ksr": (3.0,), "gauss": (3.0,), "gss": (3.0,), "cheb": (3.0,), "ggs": (1.5, 2.0)}
    asked = [(n, *needing[n]) if n in needing else n for n in names]
    wanted = jax_oracle.run("import scipy.signal as s\n"
                            "result = [s.get_window(w, 12) for w in asked]", asked=asked).value
    for window, want in zip(asked, wanted, strict=True):
        np.testing.assert_allclose(periodic(window, 12), want, rtol=1e-9, atol=1e-12,
                                   err_msg=str(window))


@pytest.mark.parametrize("window", ["other", "kaiser", ("general_gaussian", 1.0), ("other", 2)])
def test_refused(window):
    with pytest.raises(ValueError):
        periodic(window, 8)
