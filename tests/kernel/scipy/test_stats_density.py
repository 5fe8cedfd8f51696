"""Are normal vectors, density estimates and orthogonal weights those of real JAX?

Read before: ``tests/kernel/library.py``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from library import check

WEIGHTS = [
    "ini.orthogonal(2.)(key(), (3, 4))", "ini.orthogonal()(key(), (5, 3, 4))",
    "ini.orthogonal(column_axis=0)(key(), (5, 3, 4))", "ini.delta_orthogonal()(key(), (3, 2, 4))",
    "ini.delta_orthogonal()(key(), (3, 3, 2, 4))",
]
ESTIMATES = [
    "kde(x)(p)", "kde(x, 'silverman')(p)", "kde(x, .4).logpdf(p)", "kde(x, weights=w)(p)",
    "kde(x, lambda k: k.neff ** -.2).pdf(p)", "kde(x, 'other')", "kde(x[:1])", "kde(x * 1j)",
    "kde(y)(y[:, :3])", "kde(y).d", "kde(y)(p[:2])", "kde(x, weights=w[:2])", "kde(y)(y[:1])",
    "kde(x).integrate_box_1d(-1., .5)", "kde(y).integrate_box_1d(-1., .5)",
    "kde(x).integrate_gaussian(.3, 2.)", "kde(y).integrate_gaussian(jnp.ones(2), jnp.eye(2))",
    "kde(x).integrate_kde(kde(p))", "kde(y).integrate_kde(kde(x))", "kde(x).set_bandwidth()",
    "kde(x).resample(key(), (4,))", "kde(y).resample(key())", "kde(x).covariance", "kde(x).neff",
    "[type(leaf).__name__ for leaf in jax.tree.leaves(kde(x))]", "kde(x).integrate_box(0, 1)",
    "grads(lambda x: kde(x)(p), x)", "jax.jit(lambda k, p: k(p))(kde(x), p)",
]
VECTORS = [
    "mvn.logpdf(0., 0., 1.)", "mvn.logpdf(y[:, 0], jnp.zeros(2), c)",
    "mvn.pdf(y.T, 0. * y[:, 0], c)",
    "mvn.logpdf(y.T, jnp.zeros(2), 2.)", "mvn.logpdf(y.T[:, None], y.T[:3], c)",
    "mvn.logpdf(y[:, 0], jnp.zeros(3), c)", "mvn.logpdf(0., 0., 1., allow_singular=True)",
    "mvn.logpdf(y.T[:2], jnp.zeros(2), jnp.stack([c, 2 * c]))",
    "grads(lambda x, m, c: mvn.logpdf(x, m, c), y[:, 0], jnp.ones(2), c)",
]


def operands():
    draw = np.random.RandomState(0)
    return {"c": np.array([[2, .5], [.5, 1]], "f"), "x": draw.randn(6).astype("f"),
            "y": draw.randn(2, 5).astype("f"), "p": np.array([-1, 0, .7], "f"),
            "w": np.array([1, 2, 1, .5, 3, 1], "f")}


def test_orthogonal_weights(jax_oracle):
    check(jax_oracle, WEIGHTS, rtol=2e-5)


def test_density_estimates(jax_oracle):
    check(jax_oracle, [re.sub(r"\bkde\(", "st.gaussian_kde(", row) for row in ESTIMATES], rtol=1e-4,
          **operands())


def test_normal_vectors(jax_oracle):
    check(jax_oracle, [row.replace("mvn.", "st.multivariate_normal.") for row in VECTORS],
          rtol=2e-5, **operands())
