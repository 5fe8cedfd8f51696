"""Do corner cases give what they give in JAX: nothing at all, sizes, weights, modes, errors?

Read before: ``agreement.py``.
"""

from __future__ import annotations

import pytest
from agreement import check

SETS = [
    "jnp.setxor1d(jnp.array([1., jnp.nan]), jnp.array([jnp.nan, 2]))",
    "jnp.setxor1d(jnp.array([1, 2, 3]), jnp.array([2, 5]), size=4)",
    "jnp.setxor1d(jnp.array([1, 2, 3]), jnp.array([2, 5]), size=2)",
    "jnp.setxor1d(jnp.array([1, 2, 3]), jnp.array([2, 5]), size=4, fill_value=9)",
    "jnp.setxor1d(jnp.array([]), jnp.array([2, 5]))",
    "jnp.isin(jnp.array([1, 2, 3]), jnp.array([2, 5]), method='compare_all')",
    "jnp.isin(jnp.array([1, 2, 3]), jnp.array([2, 5]), method='binary_search')",
    "jnp.isin(jnp.array([1, 2, 3]), jnp.array([2, 5]), method='sort')",
    "jnp.isin(jnp.array([1, 2, 3]), jnp.array([2, 5]), method='foo')",
    "jnp.isin(jnp.array([1., jnp.nan]), jnp.array([jnp.nan]))",
    "jnp.isin(jnp.array([1., jnp.nan]), jnp.array([jnp.nan]), method='sort')",
    "jnp.isin(1, [1, 2])",
    "jnp.isin(jnp.array([]), jnp.array([1]))",
    "jnp.isin(jnp.array([1]), jnp.array([]))",
    "jnp.isin(jnp.array([1]), jnp.array([]), invert=True)",
    "jnp.unique(jnp.array([]))",
    "jnp.unique(jnp.array([]), return_index=True, return_inverse=True, return_counts=True)",
    "jnp.unique(jnp.array([]), size=3)",
    "jnp.unique(jnp.array([]), size=3, fill_value=2)",
    "jnp.unique(jnp.array([3, 1, 1]), size=4, return_index=True, return_inverse=True,"
    " return_counts=True)",
    "jnp.unique(jnp.array([3, 1, 1]), size=4, fill_value=0, return_index=True,"
    " return_inverse=True, return_counts=True)",
    "jnp.unique(jnp.array([3, 1, 1]), size=1, return_index=True, return_inverse=True,"
    " return_counts=True)",
    "jnp.unique(jnp.array([[3, 1], [3, 1], [0, 1]]), axis=0, return_index=True,"
    " return_inverse=True, return_counts=True)",
    "jnp.unique(jnp.array([[3, 1], [3, 1], [0, 1]]), axis=1, return_index=True,"
    " return_inverse=True, return_counts=True)",
    "jnp.unique(jnp.array([[3, 1], [3, 1], [0, 1]]), return_inverse=True)",
    "jnp.unique(jnp.array([[3, 1], [3, 1], [0, 1]]), axis=2)",
    "jnp.unique(jnp.array([1, jnp.nan, jnp.nan]), equal_nan=False)",
    "jnp.unique(jnp.array([1, jnp.nan, jnp.nan]))",
    "jnp.unique(jnp.zeros((0, 3)), axis=0)",
    "jnp.unique(jnp.zeros((3, 0)), axis=0)",
    "jnp.unique(jnp.zeros((0, 3)), axis=1)",
    "jnp.unique([1, 2])",
    "jnp.unique(3)",
    "jnp.unique(3, return_inverse=True)",
    "jnp.unique(jnp.array([3, 1, 1]), sorted=False)",
    "jnp.setxor1d(jnp.array([1, 2, 3]), jnp.array([1, 2, 3]), size=2)",
    "jnp.setxor1d(jnp.array([], int), jnp.array([], int), size=2)",
]
PLACED = [
    "jnp.put(jnp.zeros(3), 5, 1., inplace=False)",
    "jnp.put(jnp.zeros(3), -5, 1., inplace=False)",
    "jnp.put(jnp.zeros(3), jnp.array([5, 1]), 1., mode='clip', inplace=False)",
    "jnp.put(jnp.zeros(3), jnp.array([5, 1]), 1., mode='wrap', inplace=False)",
    "jnp.put(jnp.zeros(3), jnp.array([5, 1]), 1., mode='foo', inplace=False)",
    "jnp.put(jnp.zeros(3), jnp.array([0, 1, 2]), jnp.array([1., 2.]), inplace=False)",
    "jnp.put(jnp.zeros(3), jnp.array([0, 1, 2]), jnp.array([]), inplace=False)",
    "jnp.put(jnp.zeros(3), jnp.array([0, 1, 2]), 1.)",
    "jnp.place(jnp.arange(3), jnp.array([True, False, True]), jnp.array([]), inplace=False)",
    "jnp.place(jnp.arange(3), jnp.array([False, False, False]), jnp.array([]), inplace=False)",
    "jnp.place(jnp.arange(3), jnp.array([True, False, True]), jnp.array([7, 8, 9]),"
    " inplace=False)",
    "jnp.place(jnp.arange(3), jnp.array([True, False]), jnp.array([7, 8, 9]), inplace=False)",
    "jnp.put(jnp.zeros(3), -1, 1., inplace=False)",
    "jnp.put(jnp.zeros(3), -1, 1., mode='clip', inplace=False)",
    "jnp.place(jnp.arange(3), jnp.array([True]), jnp.array([7]), inplace=False)",
    "jnp.place(jnp.arange(6).reshape(2, 3), jnp.array([True]*6), jnp.array([7]), inplace=False)",
]
POLYNOMIALS = [
    "jnp.trim_zeros(jnp.array([0, 0, 1, 2, 0]))",
    "jnp.trim_zeros(jnp.array([0, 0, 1, 2, 0]), 'f')",
    "jnp.trim_zeros(jnp.array([[0, 0, 1, 2, 0], [0, 0, 0, 0, 0]]))",
    "jnp.trim_zeros(jnp.array([[0, 0, 1, 2, 0], [0, 0, 0, 0, 0]]), axis=1)",
    "jnp.trim_zeros(jnp.array([[0, 0, 1, 2, 0], [0, 0, 0, 0, 0]]), axis=0)",
    "jnp.trim_zeros(jnp.array([[0, 0, 1, 2, 0], [0, 0, 0, 0, 0]]), axis=-1)",
    "jnp.trim_zeros(jnp.array([0, 0]))",
    "jnp.trim_zeros(jnp.array([0, 1]), 'x')",
    "jnp.poly(jnp.array([]))",
    "jnp.poly(jnp.array([1., 2.]))",
    "jnp.poly(jnp.array([1, 2]))",
    "jnp.poly(3.)",
    "jnp.polydiv(jnp.array([0., 0, 1, 2]), jnp.array([0., 1]))",
    "jnp.polydiv(jnp.array([1., 2]), jnp.array([0., 1]))",
    "jnp.polydiv(jnp.array([1., 5, 2]), jnp.array([2., 1]), trim_leading_zeros=True)",
    "jnp.polydiv(jnp.array([1., 5, 2]), jnp.array([2., 1]))",
    "jnp.polydiv(jnp.array([1.]), jnp.array([2., 1]))",
    "jnp.polymul(jnp.array([0, 1]), jnp.array([0, 0, 2, 1]))",
    "jnp.polymul(jnp.array([0, 1]), jnp.array([0, 0, 2, 1]), trim_leading_zeros=True)",
    "jnp.polymul([1, 2], [3])",
    "jnp.trim_zeros(jnp.zeros((2, 3)))",
    "jnp.trim_zeros(jnp.zeros((2, 3)), axis=1)",
    "jnp.trim_zeros(jnp.zeros((2, 3)), axis=(0, 1))",
    "jnp.trim_zeros(jnp.array([[[0, 1], [0, 0]], [[0, 0], [0, 0]]]), axis=(0, 2))",
    "jnp.trim_zeros(jnp.array([[0, 0, 1, 2, 0], [0, 0, 0, 0, 0]]), 'f')",
    "jnp.trim_zeros(jnp.array(3))",
]
VECTORIZED = [
    "jnp.vectorize(lambda x, y: x+y)([1, 2], [3, 4])",
    "jnp.vectorize(lambda x, y: x+y)(jnp.arange(2), None)",
    "jnp.vectorize(lambda x, y: x if y is None else x+y)(jnp.arange(2), None)",
    "jnp.vectorize(lambda x, y: x+y, excluded={'y'})(jnp.arange(2), y=3)",
    "jnp.vectorize(lambda x, y: x+y, excluded={1})(jnp.arange(2), 3)",
    "jnp.vectorize(lambda x, y: x+y, excluded={1.5})(jnp.arange(2), 3)",
    "jnp.vectorize(lambda x: x, signature='(n)->(n)')(jnp.arange(2))",
    "jnp.vectorize(lambda x: x, signature='(n)->(n)')(1)",
    "jnp.vectorize(lambda x: x, signature='(n)->()')(jnp.arange(2))",
    "jnp.vectorize(lambda x: (x, x), signature='(n)->(n)')(jnp.arange(2))",
    "jnp.vectorize(lambda x: (x, x), signature='(n)->(n),(n)')(jnp.arange(2))",
    "jnp.vectorize(lambda x: [x, x], signature='(n)->(n),(n)')(jnp.arange(2))",
    "jnp.vectorize(lambda x, y: x, signature='(n),(n)->(n)')(jnp.arange(2), jnp.arange(3))",
    "jnp.vectorize(lambda x, y: x, signature='(n),(n)->(n)')(jnp.arange(2))",
    "jnp.vectorize(lambda x, y: x, signature='(n),(n)->(n)', excluded={1})(jnp.arange(2), 3)",
    "jnp.vectorize(lambda x: (x, None))(jnp.arange(2))",
    "jnp.vectorize(lambda x: x)(jnp.zeros((0, )))",
    "jnp.vectorize(lambda x, y: x+y)(jnp.arange(2), None, 3)",
    "jnp.vectorize(lambda x, y: x, signature='(n),()->(n)')(jnp.arange(2), None)",
    "jnp.vectorize(lambda x: x, signature='(n->(n)')(1)",
    "jnp.vectorize(lambda x: [x, x])(jnp.arange(2))",
]
QUANTILES = [
    "jnp.quantile(jnp.arange(5.), .3, weights=jnp.arange(5.), method='inverted_cdf')",
    "jnp.quantile(jnp.arange(5.), .3, weights=jnp.arange(5.))",
    "jnp.quantile(jnp.arange(5.), jnp.array([.3, .8]), weights=jnp.arange(5.),"
    " method='inverted_cdf')",
    "jnp.quantile(jnp.arange(6.).reshape(2, 3), .3, axis=1, weights=jnp.arange(3.),"
    " method='inverted_cdf')",
    "jnp.quantile(jnp.arange(6.).reshape(2, 3), .3, weights=jnp.ones((2, 3)),"
    " method='inverted_cdf', keepdims=True)",
    "jnp.percentile(jnp.arange(5.), 30, weights=jnp.arange(5.), method='inverted_cdf')",
    "jnp.quantile(jnp.arange(5.), .3, method='inverted_cdf')",
    "[jnp.quantile(jnp.arange(5.), .3, method=m) for m in ('lower', 'higher', 'midpoint',"
    " 'nearest', 'linear')]",
    "[jnp.quantile(jnp.arange(5.), .3, method=m) for m in ('hazen', )]",
    "[jnp.quantile(jnp.arange(5.), .3, method=m) for m in ('weibull', )]",
    "jnp.quantile(jnp.arange(5), 1.3)",
    "jnp.quantile(jnp.array([3., 1, 2]), jnp.array([0., 1.]), weights=jnp.array([0., 1,"
    " 2]), method='inverted_cdf')",
    "jnp.quantile(jnp.array([3., 1, jnp.nan]), .5, weights=jnp.array([0., 1, 2]),"
    " method='inverted_cdf')",
    "jnp.nanquantile(jnp.array([3., 1, jnp.nan]), .5, weights=jnp.array([0., 1, 2]),"
    " method='inverted_cdf')",
    "jnp.quantile(jnp.array([3., 1, 2]), .5, weights=jnp.array([0., 1]), method='inverted_cdf')",
    "jnp.quantile(jnp.ones((2, 3)), .5, weights=jnp.array([0., 1]), method='inverted_cdf')",
    "jnp.quantile(jnp.ones((2, 3)), .5, weights=jnp.array([0., 1]), method='inverted_cdf',"
    " axis=0)",
    "jnp.quantile(jnp.arange(3.), .5, weights=jnp.array([0, -1, 2.]), method='inverted_cdf')",
    "jnp.quantile(jnp.arange(3.), .5, weights=jnp.array([0, 0, 0.]), method='inverted_cdf')",
    "jnp.quantile(jnp.arange(3), .5, weights=jnp.array([1, 1, 1]), method='inverted_cdf')",
    "jnp.quantile(jnp.arange(3.), .5, weights=jnp.ones(3), method='lower')",
    "jnp.quantile(jnp.array([3., 1, 2]), jnp.array([0., .1, 1.]), weights=jnp.array([1., 0,"
    " 2]), method='inverted_cdf')",
    "jnp.quantile(jnp.ones((2, 3)), .5, weights=jnp.array([0., 1]), method='inverted_cdf',"
    " axis=1)",
    "jnp.quantile(jnp.ones((2, 3)), .5, weights=jnp.ones((2, 2)), method='inverted_cdf', axis=1)",
    "jnp.quantile(jnp.ones((2, 3)), .5, weights=jnp.ones((2, )), method='inverted_cdf',"
    " axis=(0, 1))",
    "jnp.quantile(jnp.arange(6.).reshape(2, 3), jnp.array([.5, .9]), weights=jnp.array([[1,"
    " 2, 3.], [3, 2, 1]]), method='inverted_cdf', axis=(0, 1))",
    "jnp.quantile(jnp.arange(6.).reshape(2, 3), jnp.array([.5, .9]), weights=jnp.array([[1,"
    " 2, 3.], [3, 2, 1]]), method='inverted_cdf', axis=0)",
    "jnp.quantile(jnp.arange(3.), .5, weights=jnp.array([1, -1, 2.]), method='inverted_cdf')",
    "jnp.quantile(jnp.arange(3.), .5, weights=jnp.array([1, jnp.nan, 2.]), method='inverted_cdf')",
]
STATISTICS = [
    "jnp.cov(jnp.arange(6.).reshape(2, 3), fweights=jnp.array([1, 2, 3]))",
    "jnp.cov(jnp.arange(6.).reshape(2, 3), aweights=jnp.array([1, 2, 3.]))",
    "jnp.cov(jnp.arange(6.).reshape(2, 3), fweights=jnp.array([1, 2, 3]),"
    " aweights=jnp.array([1, 2, 3.]), ddof=0)",
    "jnp.cov(jnp.arange(6.).reshape(2, 3), fweights=jnp.array([1, 2, 3.]))",
    "jnp.cov(jnp.arange(6.).reshape(2, 3), aweights=jnp.array([1, 2.]))",
    "jnp.cov(jnp.arange(3.), jnp.array([3., 1, 0]))",
    "jnp.cov(jnp.arange(3.))",
    "jnp.cov(1.)",
    "jnp.cov(jnp.arange(6).reshape(2, 3), rowvar=False, dtype='float16')",
    "jnp.interp(jnp.array([1., 370.]), jnp.array([10., 350.]), jnp.array([1., 2.]), period=360)",
    "jnp.interp(jnp.array([1., 370.]), jnp.array([10., 350.]), jnp.array([1., 2.]), period=0)",
    "jnp.interp(jnp.array([-1., 370.]), jnp.array([10., 350.]), jnp.array([1., 2.]),"
    " left=-5, right=7)",
    "jnp.interp(jnp.array([-1., 370.]), jnp.array([10., 350.]), jnp.array([1., 2.]),"
    " left='extrapolate')",
    "jnp.interp(1, jnp.array([0, 2]), jnp.array([1, 2]))",
    "jnp.interp(1, jnp.array([0, 2]), jnp.array([1, 2j]))",
    "jnp.histogram(jnp.arange(5))",
    "jnp.histogram(jnp.arange(5), bins=3, range=(0, 2), weights=jnp.arange(5.))",
    "jnp.histogram(jnp.arange(5), bins=3, density=True)",
    "jnp.histogram(jnp.arange(5), bins=jnp.array([0, 1, 4]))",
    "jnp.histogram(jnp.zeros(0))",
    "jnp.histogram(jnp.arange(5), bins=0)",
    "jnp.histogram_bin_edges(jnp.arange(5), bins='sturges')",
    "jnp.histogram2d(jnp.arange(5.), jnp.arange(5.)*2, bins=2)",
    "jnp.histogram2d(jnp.arange(5.), jnp.arange(5.)*2, bins=[2, jnp.array([0., 4, 8])],"
    " density=True)",
    "jnp.histogramdd(jnp.arange(6.).reshape(3, 2), bins=2)",
    "jnp.histogramdd(jnp.arange(6.).reshape(3, 2), bins=[2, 3], range=[(0, 4), (0, 5)],"
    " weights=jnp.arange(3.))",
    "[jnp.searchsorted(jnp.arange(5.), jnp.array([1.5, jnp.nan, -1, 2]),"
    " method=m) for m in ('scan', 'scan_unrolled', 'sort', 'compare_all')]",
    "jnp.searchsorted(jnp.arange(5.), 2., method='foo')",
    "jnp.searchsorted(jnp.array([3, 1, 2]), 2, sorter=jnp.array([1, 2, 0]))",
    "jnp.searchsorted(jnp.array([]), 2)",
    "jnp.searchsorted(jnp.ones((2, 2)), 2)",
    "jnp.bincount(jnp.array([1, 1, 3]), minlength=6)",
    "jnp.bincount(jnp.array([1, 1, 3]), length=2)",
    "jnp.bincount(jnp.array([1, -1, 3]))",
    "jnp.bincount(jnp.array([], int))",
    "jnp.cov(jnp.arange(6.).reshape(2, 3), fweights=jnp.array([[1, 2, 3]]))",
    "jnp.cov(jnp.arange(6.).reshape(2, 3), fweights=jnp.array([1, 2]))",
    "jnp.cov(jnp.arange(6.).reshape(2, 3), aweights=jnp.array([[1, 2, 3.]]))",
    "jnp.cov(jnp.arange(6.).reshape(2, 3), fweights=[1, 2, 3])",
    "jnp.cov(jnp.arange(6.).reshape(2, 3), ddof=1.5)",
]
SHAPES = [
    "jnp.size(jnp.ones((2, 3)), 1)", "jnp.size(jnp.ones((2, 3)), (0, -1))",
    "jnp.size(jnp.ones(3), 5)",
    "jnp.repeat(jnp.arange(4), jnp.array([[1, 2], [0, 3]]))",
    "jnp.repeat(jnp.arange(4), jnp.array([[1, 2]]))",
]
GROUPS = {"shapes": SHAPES, "sets": SETS, "placed": PLACED, "polynomials": POLYNOMIALS,
          "vectorized": VECTORIZED, "quantiles": QUANTILES, "statistics": STATISTICS}


@pytest.mark.parametrize("name", GROUPS)
def test_as_in_jax(jax_oracle, name):
    check(jax_oracle, GROUPS[name])
