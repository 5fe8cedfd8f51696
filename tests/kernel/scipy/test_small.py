"""Are the small parts of jax.scipy what real JAX computes: vq, trapezoid, map_coordinates, grids?

Where a grid does not fit, or descends, SciPy's behaviour stands: JAX gives NaN there.

Read before: ``tests/kernel/library.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from library import check

import saem.numpy as jnp
from saem.scipy.interpolate import RegularGridInterpolator

GRID = "interp.RegularGridInterpolator((jnp.array([0., 1., 3.]), jnp.array([0., .5, 1., 4.])), v"
PLACES = "[jnp.array([-1.6, -.5, .3, 1.2, 2.7, 5.5]), jnp.array([-1., .4, .5, 1.7, 3.6, 2.])]"
ROWS = {
    "vq": ["vq.vq(v[:, :, 0], v[:2, :, 1])", "vq.vq(b, b[:2])", "vq.vq(v, v)",
           "vq.vq(jnp.arange(3), jnp.arange(2))", "vq.vq(b, v[:, :, 0])"],
    "integrate": ["integrate.trapezoid(v)", "integrate.trapezoid(b, jnp.arange(6.))",
                  "integrate.trapezoid(v, dx=.5, axis=0)"],
    **{mode: [*(f"ndi.map_coordinates(v[:, :, 0], {PLACES}, {order}, {mode!r}, cval=9.)"
                for order in (0, 1, 2)),
              f"ndi.map_coordinates(jnp.arange(5), [jnp.array([-3.2, .5, 1.4, 7.3])], 1, {mode!r})"]
       for mode in ("constant", "nearest", "wrap", "mirror", "reflect", "other")},
    "places": ["ndi.map_coordinates(b, [jnp.array([.5])] * 2, 1)",
               "ndi.map_coordinates(b, [jnp.array([1, 2])], 1)",
               "grads(lambda x, c: ndi.map_coordinates(x, [c], 1), b, jnp.array([.3, 2.7]))"],
    "grids": [GRID + f"{more})(jnp.array({points}))" for more, points in (
        ("", "[[.5, .7], [2., 3.], [4., 1.], [0., 0.], [3., 4.]]"), (", 'nearest'", "[[.5, .7]]"),
        (", fill_value=None", "[[.5, .7], [2., 3.], [4., 1.]]"), ("", "[.5, .7]"),
        (", 'other'", "[[.5, .7]]"), ("", "[[.5, .7, 1.]]"),
        (", bounds_error=True", "[[.5, .7]]"))],
}


@pytest.mark.parametrize("kind", ROWS)
def test_rows(jax_oracle, kind):
    draw = np.random.RandomState(0)
    check(jax_oracle, ROWS[kind], v=draw.randn(3, 4, 2).astype("f"), b=draw.randn(6).astype("f"))


def test_descending_grid(jax_oracle):
    ticks, values, at = np.array([2.0, 1.0, 0.0]), np.array([1.0, 5.0, 2.0]), np.array([0.5, 1.2])
    wanted = jax_oracle.run("""
    import scipy.interpolate as s
    result = s.RegularGridInterpolator((ticks,), values)(at)
    """, ticks=ticks, values=values, at=at).value
    got = RegularGridInterpolator((jnp.asarray(ticks),), jnp.asarray(values))(jnp.asarray(at))
    np.testing.assert_allclose(got, wanted, 1e-6)
    with pytest.raises(ValueError, match="2 points and 3 values"):
        RegularGridInterpolator((jnp.arange(2.0),), jnp.asarray(values))
