"""Do the tools for tests of libraries pass, fail and count as JAX's?"""

from __future__ import annotations

from test_dropin import dropped_in

BEGIN = """
import io
import unittest
import jax, jax.numpy as jnp, numpy as np
from jax._src import test_util as jtu

seen = []

def note(f):
    try:
        seen.append(f())
    except Exception as error:
        kinds = (AssertionError, AttributeError, TypeError, ValueError, Exception)
        seen.append(next(kind.__name__ for kind in kinds if isinstance(error, kind)))

def run(case):
    suite = jtu.JaxTestLoader().loadTestsFromTestCase(case)
    done = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
    seen.append((done.testsRun, len(done.errors), len(done.failures)))
"""

COMPARED = BEGIN + """
ones = np.ones(3, np.float32)
CLOSE = [
    (jnp.ones(3, jnp.bfloat16), ones, dict(check_dtypes=False)),
    (jnp.ones(3, jnp.bfloat16) * 1.005, ones, dict(check_dtypes=False)),
    (jnp.ones(3, jnp.bfloat16) * 1.05, ones, dict(check_dtypes=False)),
    (jnp.ones(3, jnp.bfloat16), ones, {}), (np.inf, np.inf, {}), (np.nan, np.nan, {}),
    (1 + 1e-3, 1., dict(atol={np.float64: 1e-2, np.float32: 1e-2}, rtol=0)),
    (1 + 1e-3, 1., dict(rtol=1e-2)), (1 + 1e-3, 1., dict(rtol=1e-4)), ((1, 2), [1, 2], {}),
    (True, 1, {}), (jnp.zeros(0), np.zeros(0, np.float64), {}), ({}, {}, {}), ([1], [1, 2], {}),
    ({'a': 1}, {'b': 1}, {}), ({'a': 1}, {'a': 1}, {}), (None, None, {}),
    (ones, np.ones(3), dict(canonicalize_dtypes=False)), (ones, np.ones(3), {}),
    (ones, np.ones((1, 3)), {}), (ones, np.ones(2, np.float32), {}), (1., 1 + 1e-14, {}),
    (1., 1 + 1e-16, {}), (np.float32(1), np.float32(1 + 3e-6), {}),
    (np.float32(1), np.float32(1 + 1e-6), {}), (1., jnp.float32(1), {}), (1, jnp.float32(1), {}),
    ([1, (2,)], (1, [2]), {}), ({'a': 1}, [1], {})]
EQUAL = [
    (jnp.ones(3), np.ones(3), {}), (jnp.ones(3), ones, {}), (jnp.ones(3), 2 * np.ones(3), {}),
    (jnp.ones(3), np.ones((), np.int32), dict(check_dtypes=False)), (1, 1, {}), (1, 1., {}),
    (jnp.ones(3), np.ones((1, 3)), {}), (jnp.ones(3), ones.astype(int), {}),
    (jnp.ones(3), ones.astype(int), dict(check_dtypes=False))]

class Case(jtu.JaxTestCase):
    def test_arrays(self):
        for x, y, options in CLOSE:
            note(lambda: self.assertAllClose(x, y, **options))
            note(lambda: self.assertArraysAllClose(x, y, **options)
                 if isinstance(x, np.ndarray) and 'canonicalize_dtypes' not in options else None)
        for x, y, options in EQUAL:
            note(lambda: self.assertArraysEqual(x, y, **options))
        note(lambda: self.assertMultiLineStrippedEqual(' a\\n b', 'a\\n  b '))

    def test_functions(self):
        operands = lambda: [ones]
        wide = lambda x: np.sin(x.astype(np.float64))
        sizes = iter(range(1, 9))
        for check in [
                lambda: self._CheckAgainstNumpy(np.sin, jnp.sin, operands),
                lambda: self._CheckAgainstNumpy(np.sin, jnp.cos, operands),
                lambda: self._CheckAgainstNumpy(np.sin, lambda x: x, operands, tol=1e-1),
                lambda: self._CheckAgainstNumpy(np.sin, lambda x: x, operands, tol=1.),
                lambda: self._CheckAgainstNumpy(wide, jnp.sin, operands),
                lambda: self._CheckAgainstNumpy(wide, jnp.sin, operands, canonicalize_dtypes=False),
                lambda: self._CompileAndCheck(jnp.sin, operands),
                lambda: self._CompileAndCheck(lambda x: x * np.random.rand(), operands),
                lambda: self._CompileAndCheck(lambda x, y: x * y, lambda: [ones, 2.]),
                lambda: self._CompileAndCheck(np.sin, operands),
                lambda: self._CompileAndCheck(jnp.sum, lambda: [jnp.ones(next(sizes))]),
                lambda: jnp.float32(1) + jnp.arange(1),   # strict settings
                lambda: jnp.ones((2, 3)) + jnp.ones(3),
                lambda: jax.random.normal(jax.random.PRNGKey(0)) and None]:
            note(check)

run(Case)
settings = [jax.config.jax_enable_checks, jax.config.jax_numpy_dtype_promotion == 'standard',
            jax.config.jax_numpy_rank_promotion == 'allow']
result = str([seen, settings])
"""

CHOSEN = BEGIN + """
@jtu.with_config(jax_numpy_rank_promotion='allow', jax_enable_x64=True)
class Case(jtu.JaxTestCase):
    @jtu.sample_product(a=[1, 2, 3], b=['x', 'y'])
    def test_all(self, a, b):
        cases.add((a, b))

    @jtu.sample_product(a=[{'one': 1}])
    def test_one(self, a):
        cases.add(str(a))

    @jtu.sample_product([dict(n=1, shape=(2, 3)), dict(n=2, shape=(4,))], dtype=[1, 2] * 10)
    def test_some(self, n, shape, dtype):
        cases.add(len(shape) == 3 - n)

    def test_settings(self):
        cases.add((str(jnp.arange(2).dtype), jax.config.jax_numpy_rank_promotion == 'allow',
                   jax.config.jax_numpy_dtype_promotion == 'strict'))

cases = set()
run(Case)
for name in ('floating', 'all', 'integer', 'inexact', 'all_floating', 'all_integer', 'complex',
             'all_unsigned', 'boolean', 'numeric', 'unsigned', 'all_inexact', 'custom_floats'):
    seen.append(sorted(np.dtype(kind).name for kind in getattr(jtu.dtypes, name)))
note(lambda: jtu.dtypes.nothing)
seen.append(len(jtu.dtypes.supported([np.float64, np.int8])))
draw = jtu.rand_default(np.random.RandomState(0))
for dtype in ('float32', 'int32', 'uint8', 'complex64', 'bool', 'bfloat16'):
    drawn = draw((100, 100), dtype)
    parts = [drawn.astype(complex).real, drawn.astype(complex).imag]
    seen.append([str(drawn.dtype), *[round(2 * float(part.std())) for part in parts],
                 bool((parts[0] < 0).any())])
seen.append([np.shape(draw(3, 'float32')), np.shape(draw((), 'float32'))])
result = str([seen, sorted(map(str, cases))])
"""

COUNTED = BEGIN + """
with jtu.count_pjit_cpp_cache_miss() as count:
    f = jax.jit(lambda x: x + 3.)
    f(1.), f(2.), f(np.float32(1))
seen.append(count())
for times in (1, 2, 3):
    def lowered():
        with jtu.assert_num_jit_and_pmap_compilations(times):
            jax.jit(lambda x: x + 1.5)(1.), jax.jit(lambda x: x + 1.5)(1.)
    note(lowered)
jtu.check_grads(jnp.sin, (1.,), 2)
note(lambda: jtu.check_close([1.], [1.1]))
result = str([seen, jtu.is_device_tpu_at_least(4)])
"""


def both(jax_oracle, program):
    assert dropped_in(f"{program}\nprint(result)") == jax_oracle.run(program).value


def test_comparisons_pass_and_fail_as_on_jax(jax_oracle):
    both(jax_oracle, COMPARED)


def test_cases_dtypes_and_operands_are_those_of_jax(jax_oracle):
    both(jax_oracle, CHOSEN)


def test_counts_are_those_of_jax(jax_oracle):
    both(jax_oracle, COUNTED)
