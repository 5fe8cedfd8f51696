"""How is a density estimated from a sample?

A normal distribution stands on each point of the sample, all of one covariance: that of the sample,
shrunk by a factor that falls with its size.

Read before: ``stats.multivariate_normal``, ``saem.numpy.linalg``.
Invariant: the estimate integrates to 1, and its arrays are leaves of a pytree
(tests/kernel/scipy/test_stats_density.py).
Source: Scott 2015, "Multivariate Density Estimation", chapter 6; Silverman 1986.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from saem import lax, random
from saem import numpy as jnp
from saem.core import errors
from saem.nn.logarithms import logsumexp
from saem.numpy.promote import check_arraylike, promote_dtypes_inexact
from saem.random.matrices import multivariate_normal
from saem.scipy.special import ndtr
from saem.tree_util import register_pytree_node
from saem.typing import Array, ArrayLike


def _refused(tag: str, message: str, advice: str) -> Exception:
    return errors.explained(errors.ArgumentError, f"gaussian_kde.{tag}", message, advice=advice)


@dataclasses.dataclass(frozen=True, init=False, eq=False)
class gaussian_kde:
    """An estimate of the density from which the points ``dataset`` [d, n] were drawn.

    bw_method: the factor of the bandwidth: 'scott' (None), 'silverman', a number, or a function of
    the estimate.  weights: [n], how often each point counts.

    >>> estimate = gaussian_kde(jnp.array([0., 1., 2.]))
    >>> estimate(jnp.array([1.0])).shape
    (1,)
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(self, dataset: ArrayLike,
                 bw_method: str | Array | Callable[[Any], Array] | None = None,
                 weights: ArrayLike | None = None):
        check_arraylike("gaussian_kde", dataset)
        points = jnp.atleast_2d(jnp.asarray(dataset))
        if jnp.issubdtype(points.dtype, jnp.complexfloating):
            raise errors.explained(NotImplementedError, "gaussian_kde.C1",
                                   "gaussian_kde does not support complex data",
                                   advice="Stack real and imaginary parts as two rows.")
        if not points.size > 1:
            raise _refused("C2", "`dataset` input should have multiple elements.",
                           "One point has no covariance.")
        n = points.shape[1]
        if weights is not None:
            points, weights = promote_dtypes_inexact(points, jnp.atleast_1d(jnp.asarray(weights)))
            if weights.ndim != 1:
                raise _refused("C3", "`weights` input should be one-dimensional.",
                               "One weight for each point.")
            if len(weights) != n:
                raise _refused("C4", "`weights` input should be of length n",
                               f"There are {n} points and {len(weights)} weights.")
            weights = weights / jnp.sum(weights)
        else:
            (points,) = promote_dtypes_inexact(points)
            weights = jnp.full(n, 1 / n, points.dtype)
        self._set(dataset=points, weights=weights, neff=1 / jnp.sum(jnp.square(weights)))
        factor = self._factor(bw_method)
        whole = jnp.atleast_2d(jnp.cov(points, rowvar=True, bias=False, aweights=weights))
        inverse = jnp.linalg.inv(whole)
        self._set(covariance=whole * factor ** 2, inv_cov=inverse / factor ** 2)

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _factor(self, bw_method: Any) -> Any:
        if bw_method is None or bw_method == "scott":
            return jnp.power(self.neff, -1 / (self.d + 4))
        if bw_method == "silverman":
            return jnp.power(self.neff * (self.d + 2) / 4, -1 / (self.d + 4))
        if jnp.isscalar(bw_method) and not isinstance(bw_method, str):
            return bw_method
        if callable(bw_method):
            return bw_method(self)
        raise _refused("bw_method",
                       "`bw_method` should be 'scott', 'silverman', a scalar, or a callable.",
                       f"Got {bw_method!r}.")

    def __repr__(self) -> str:
        """Show the size of the sample."""
        return f"gaussian_kde(d={self.d}, n={self.n}, dtype={self.dataset.dtype})"

    @property
    def d(self) -> int:
        """Return the number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """Return the number of points of the sample."""
        return self.dataset.shape[1]

    def evaluate(self, points: ArrayLike) -> Array:
        """Return the density at ``points`` [d, m], as [m].

        Raises: ValueError for points of another dimension.
        """
        return jnp.exp(self.logpdf(points))

    __call__ = pdf = evaluate

    def logpdf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the density at the points x [d, m], as [m]."""
        (scaled, at), volume = self._scaled(self.covariance, self.dataset, self._points(x))
        distance = jnp.sum((at[:, :, None] - scaled[:, None]) ** 2, 0)
        return logsumexp(-distance / 2, axis=1, b=self.weights[None]) - volume

    def _scaled(self, cov: Array, *vectors: Array) -> tuple[list[Array], Array]:
        """Return ``vectors`` [d, n] as multiples of the deviations that ``cov`` gives, and the
        logarithm of the integral of exp(-distance² / 2)."""
        root = jnp.linalg.cholesky(cov)
        volume = self.d * math.log(2 * math.pi) / 2 + jnp.sum(jnp.log(jnp.diagonal(root)))
        return [lax.linalg.triangular_solve(root, x, left_side=True, lower=True)
                for x in vectors], volume

    def _points(self, points: ArrayLike) -> Array:
        points = jnp.asarray(points)
        if jnp.issubdtype(points.dtype, jnp.complexfloating):
            raise errors.explained(NotImplementedError, "gaussian_kde.C5",
                                   "gaussian_kde does not support complex coordinates",
                                   advice="Stack real and imaginary parts as two rows.")
        points = jnp.atleast_2d(points)
        d, m = points.shape
        if d != self.d:
            if d != 1 or m != self.d:
                raise _refused("C6", f"points have dimension {d}, dataset has dimension {self.d}",
                               "Dimensions are the first axis.")
            points = jnp.reshape(points, (self.d, 1))
        return promote_dtypes_inexact(points, self.dataset)[0]

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """Return the integral of the density times a normal density of ``mean`` and ``cov``."""
        mean, cov = jnp.atleast_1d(jnp.squeeze(jnp.asarray(mean))), jnp.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise _refused("mean", f"mean does not have dimension {self.d}", f"Got {mean.shape}.")
        if cov.shape != (self.d, self.d):
            raise _refused("cov", f"covariance does not have dimension {self.d}",
                           f"Got {cov.shape}.")
        mean, cov = promote_dtypes_inexact(mean, cov)
        return self._overlap(mean[:, None], cov) @ self.weights

    def _overlap(self, points: Array, cov: Array) -> Array:
        """Return the normal densities of self.dataset [d, n] around each of ``points``, [n]."""
        (scaled,), volume = self._scaled(self.covariance + cov, self.dataset - points)
        return jnp.exp(-jnp.sum(scaled * scaled, 0) / 2 - volume)

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Return the probability of the interval from ``low`` to ``high``, in one dimension."""
        if self.d != 1:
            raise _refused("box", "integrate_box_1d() only handles 1D pdfs",
                           f"This one has {self.d} dimensions.")
        if jnp.ndim(low) or jnp.ndim(high):
            raise _refused(
                "bounds", "the limits of integration in integrate_box_1d must be scalars",
                "Map it over several intervals.")
        scale = jnp.squeeze(jnp.sqrt(self.covariance))
        low, high = ((jnp.asarray(x) - self.dataset[0]) / scale for x in (low, high))
        return jnp.sum(self.weights * (ndtr(high) - ndtr(low)))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """Return the integral of the product of two densities."""
        if other.d != self.d:
            raise _refused("kde", "KDEs are not the same dimensionality",
                           f"Got {self.d} and {other.d} dimensions.")
        small, large = (self, other) if self.n < other.n else (other, self)
        parts = jnp.stack([large._overlap(small.dataset[:, i:i + 1], small.covariance)
                           @ large.weights for i in range(small.n)])
        return jnp.sum(parts * small.weights)

    def resample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Return points drawn from the density, [d, *shape]."""
        first, second = random.split(key)
        chosen = random.choice(first, self.n, shape=shape, p=self.weights)
        noise = multivariate_normal(
            second, jnp.zeros(self.d, self.covariance.dtype), self.covariance, shape,
            self.dataset.dtype)
        return self.dataset[:, chosen] + jnp.moveaxis(noise, -1, 0)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any:
        """Raise NotImplementedError: a box of several dimensions has no closed form."""
        raise errors.explained(NotImplementedError, "gaussian_kde.integrate_box",
                               "only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Raise NotImplementedError: an estimate does not change."""
        raise errors.explained(NotImplementedError, "gaussian_kde.set_bandwidth",
                               "dynamically changing the bandwidth method is not supported",
                               advice="Make a new estimate.")


FIELDS = tuple(field.name for field in dataclasses.fields(gaussian_kde))


def _unflatten(_: None, arrays: tuple[Any, ...]) -> gaussian_kde:
    """Return an estimate of its arrays, which are not computed again."""
    made = object.__new__(gaussian_kde)
    made._set(**dict(zip(FIELDS, arrays)))
    return made


register_pytree_node(
    gaussian_kde, lambda k: (tuple(getattr(k, name) for name in FIELDS), None), _unflatten)
