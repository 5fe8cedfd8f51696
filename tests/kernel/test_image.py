"""Are images resampled as on real JAX?

Read before: ``library.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from library import check

# Their subject is what is computed, not how XLA optimises it.
pytestmark = pytest.mark.usefixtures("little_effort")

METHODS = ("nearest", "linear", "bilinear", "trilinear", "cubic", "bicubic", "lanczos3", "lanczos5",
           "area", "other")
ROWS = [
    "image.resize(jnp.arange(4), (2,), 'nearest')", "image.resize(jnp.arange(4), (7,), 'linear')",
    "image.resize(x, (2,), 'linear')", "image.resize(x, (2, 2, 2), image.ResizeMethod.CUBIC)",
    "grads(lambda x: image.resize(x, (2, 5, 2), 'cubic'), x)",
    "mapped(lambda x: image.resize(x, (2, 5), 'linear'), x)",
    "image.resize(x.astype(jnp.bfloat16), (2, 4, 2), 'linear')",
    "[m.name + str(m.value) for m in image.ResizeMethod]",
    "[image.ResizeMethod.from_string(n).name for n in ('nearest', 'linear', 'bilinear',"
    " 'trilinear', 'triangle', 'cubic', 'bicubic', 'tricubic', 'lanczos3', 'lanczos5')]",
    "image.scale_and_translate(x, (2, 6, 2), (0, 1), jnp.array([.5]), jnp.array([.3]), 'linear')",
    "jax.grad(lambda s: image.scale_and_translate(x, (3, 6, 2), (1,), s, jnp.array([.3]),"
    " 'linear').sum())(jnp.array([1.3]))"]


def image():
    return np.random.RandomState(0).randn(3, 4, 2).astype("f")


@pytest.mark.parametrize("method", METHODS)
def test_resize(jax_oracle, method):
    check(jax_oracle, [f"image.resize(x, (5, 4, 2), {method!r})",
                       f"image.resize(x, (2, 7, 2), {method!r})",
                       f"image.resize(x, (2, 3, 2), {method!r}, antialias=False)"], x=image())


@pytest.mark.parametrize("method", ["linear", "cubic", "lanczos3", "nearest"])
def test_scale_and_translate(jax_oracle, method):
    call = "image.scale_and_translate(x, (%s, 6, 2), %s, jnp.array([%s]), jnp.array([%s]), %r%s)"
    check(jax_oracle, [call % (2, (0, 1), ".5, 1.3", ".3, -.4", method, ""),
                       call % (3, (1,), "1.3", ".3", method, ", antialias=False")],
          rtol=2e-5, x=image())


def test_calls(jax_oracle):
    check(jax_oracle, ROWS, x=image())
