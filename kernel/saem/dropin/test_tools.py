"""What do the tests of libraries find in place of the tools of JAX's own tests?

``jax._src.test_util`` is a private module, and tests of libraries use it nevertheless: a test case
that compares arrays under strict settings, random operands, products of parameters, counts of what
was lowered.

Read before: ``dropin.private_names``.
Invariant: each passes, fails and counts as JAX's does (tests/kernel/test_test_tools.py).  Random
operands have its distributions, not its numbers.
Source: what JAX's tools do when they are called.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from saem.core import dtypes as scalar_types
from saem.core.config import config
from saem.core.events import CacheMiss, Event, Lowering, bus
from saem.dropin.stand_ins import dtype_of, tolerance
from saem.jit.decorator import jit
from saem.placement.devices import default_backend, devices

try:
    from absl.testing import absltest, parameterized
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("jax._src.test_util needs absl-py, on which JAX's test cases are "
                              "built. Try: pip install absl-py", name="absl") from error

# How many cases of a product are run at most.
MOST_CASES = int(os.environ.get("JAX_NUM_GENERATED_CASES", "10"))
# The settings of each test.
STRICT = {"jax_enable_checks": True, "jax_numpy_dtype_promotion": "strict",
          "jax_numpy_rank_promotion": "raise", "jax_legacy_prng_key": "error"}


# -- which cases -----------------------------------------------------------------------------------

_FLOATING, _COMPLEX = (np.float32, np.float64), (np.complex64, np.complex128)
_ALL_FLOATING = (scalar_types.bfloat16, np.float16, *_FLOATING)
_INTEGER, _UNSIGNED = (np.int32, np.int64), (np.uint32, np.uint64)
_ALL_INTEGER = (np.int8, np.int16, *_INTEGER)
_ALL_UNSIGNED = (np.uint8, np.uint16, *_UNSIGNED)

KINDS: dict[str, tuple[Any, ...]] = {
    "floating": _FLOATING,
    "all_floating": _ALL_FLOATING,
    "custom_floats": (scalar_types.bfloat16,),
    "complex": _COMPLEX,
    "integer": _INTEGER,
    "all_integer": _ALL_INTEGER,
    "unsigned": _UNSIGNED,
    "all_unsigned": _ALL_UNSIGNED,
    "boolean": (np.bool_,),
    "inexact": (*_FLOATING, *_COMPLEX),
    "all_inexact": (*_ALL_FLOATING, *_COMPLEX),
    "numeric": (*_FLOATING, *_INTEGER, *_UNSIGNED, *_COMPLEX),
    "all": (*_ALL_FLOATING, *_ALL_INTEGER, *_ALL_UNSIGNED, *_COMPLEX, np.bool_),
}


class Dtypes:
    """Lists of dtypes by the names of ``KINDS``, without those that the settings do not allow."""

    def __getattr__(self, name: str) -> list[Any]:
        if name not in KINDS:
            raise AttributeError(f"There is no list of dtypes {name!r}. There are: "
                                 f"{', '.join(KINDS)}.")
        return self.supported(KINDS[name])

    def supported(self, kinds: Sequence[Any]) -> list[Any]:
        """Return those of ``kinds`` that arrays can have under the settings in force."""
        return [kind for kind in kinds if scalar_types.canonicalize(np.dtype(kind)) == kind]


dtypes = Dtypes()


def sample_product(*groups: Sequence[Mapping[str, Any]], **choices: Sequence[Any]
                   ) -> Callable[[Callable], Callable]:
    """Run a test on combinations of keyword arguments, and of groups of these.

    Of more than ``MOST_CASES`` as many are drawn, by the name of the test alone.
    """
    single = [[{name: value} for value in values] for name, values in choices.items()]
    parts: list[Sequence[Any]] = [*groups, *single]
    sizes = [len(part) for part in parts]
    count = int(np.prod(sizes, dtype=np.int64))

    def decorate(test: Callable) -> Callable:
        numbers = np.arange(count)
        if count > MOST_CASES:
            numbers = np.sort(_generator(test.__name__).choice(count, MOST_CASES, replace=False))
        cases = []
        for number in numbers:
            case: dict[str, Any] = {}
            for part, place in zip(parts, np.unravel_index(number, sizes), strict=True):
                case |= part[int(place)]
            cases.append(case)
        return parameterized.parameters(cases)(test)

    return decorate


def _generator(name: str) -> np.random.RandomState:
    return np.random.RandomState(zlib.crc32(name.encode()))


def rand_default(rng: np.random.RandomState, scale: float = 3) -> Callable[[Any, Any], Any]:
    """Return the function that draws normal numbers of a shape and dtype.

    Integers are rounded towards zero, unsigned ones are not negative.
    """
    def draw(shape: int | tuple[int, ...], dtype: Any) -> Any:
        dtype = np.dtype(dtype)
        drawn = np.asarray(rng.normal(0, scale, shape))
        if dtype.kind == "c":
            drawn = drawn + 1j * rng.normal(0, scale, shape)
        return (abs(drawn) if dtype.kind == "u" else drawn).astype(dtype)

    return draw


# -- the test case ---------------------------------------------------------------------------------


class JaxTestLoader(absltest.TestLoader):
    """A loader for ``absltest.main(testLoader=…)``."""


class JaxTestCase(parameterized.TestCase):
    """A test case that compares arrays, and whose tests run under strict settings."""

    _settings: Mapping[str, Any] = {}

    def setUp(self) -> None:
        """Take the settings, to be given back when the test ends; make a new generator."""
        super().setUp()
        for name, value in {**STRICT, **self._settings}.items():
            self.addCleanup(config.update, name, getattr(config, name))
            config.update(name, value)
        self._rng = _generator(self._testMethodName)

    def rng(self) -> np.random.RandomState:
        """Return this test's random generator, seeded by the name of the test."""
        return self._rng

    def assertDtypesMatch(self, actual: Any, desired: Any, *, canonicalize_dtypes: bool = True
                          ) -> None:
        """Check that dtypes are equal, as they are without 64 bits or as they were given."""
        mine, theirs = (_dtype(x, canonicalize_dtypes) for x in (actual, desired))
        self.assertEqual(mine, theirs)

    def assertArraysEqual(self, actual: Any, desired: Any, *, check_dtypes: bool = True,
                          err_msg: str = "") -> None:
        """Check that two arrays have equal dtypes and elements."""
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)
        np.testing.assert_array_equal(_compared(actual), _compared(desired), err_msg=err_msg)

    def assertArraysAllClose(self, actual: Any, desired: Any, *, check_dtypes: bool = True,
                             atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
        """Check that two arrays have equal shapes, dtypes and close elements.

        A tolerance is one number, one for each dtype, or None: what rounding may change.
        """
        self.assertEqual(np.shape(actual), np.shape(desired))
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)
        kinds = [_dtype(x, False) for x in (actual, desired)]
        sizes = [max(tolerance(given, kind) for kind in kinds) for given in (atol, rtol)]
        np.testing.assert_allclose(_compared(actual), _compared(desired), atol=sizes[0],
                                   rtol=sizes[1], err_msg=err_msg)

    def assertAllClose(self, actual: Any, desired: Any, *, check_dtypes: bool = True,
                       atol: Any = None, rtol: Any = None, canonicalize_dtypes: bool = True,
                       err_msg: str = "") -> None:
        """Check two trees of dicts and sequences leaf by leaf: ``assertArraysAllClose``."""
        def inner(mine: Any, theirs: Any) -> None:
            self.assertAllClose(mine, theirs, check_dtypes=check_dtypes, atol=atol, rtol=rtol,
                                canonicalize_dtypes=canonicalize_dtypes, err_msg=err_msg)

        if isinstance(actual, Mapping):
            self.assertIsInstance(desired, Mapping)
            self.assertEqual(set(actual), set(desired))
            for key, value in actual.items():
                inner(value, desired[key])
        elif isinstance(actual, (list, tuple)):
            self.assertIsInstance(desired, (list, tuple))
            self.assertEqual(len(actual), len(desired))
            for pair in zip(actual, desired, strict=True):
                inner(*pair)
        elif actual is not None or desired is not None:
            if check_dtypes:
                self.assertDtypesMatch(actual, desired, canonicalize_dtypes=canonicalize_dtypes)
            self.assertArraysAllClose(actual, desired, check_dtypes=False, atol=atol, rtol=rtol,
                                      err_msg=err_msg)

    def assertMultiLineStrippedEqual(self, expected: str, what: str) -> None:
        """Check two texts, without white space around each of their lines."""
        texts = ("\n".join(line.strip() for line in text.strip().splitlines())
                 for text in (expected, what))
        self.assertMultiLineEqual(*texts)

    def _CheckAgainstNumpy(self, reference: Callable, op: Callable, args_maker: Callable[[], Any],
                           check_dtypes: bool = True, tol: Any = None, atol: Any = None,
                           rtol: Any = None, canonicalize_dtypes: bool = True) -> None:
        """Check that ``op`` gives for operands what NumPy's function gives."""
        args = args_maker()
        self.assertAllClose(op(*args), reference(*args), check_dtypes=check_dtypes,
                            atol=atol or tol, rtol=rtol or tol,
                            canonicalize_dtypes=canonicalize_dtypes)

    def _CompileAndCheck(self, fun: Callable, args_maker: Callable[[], Any], *,
                         check_dtypes: bool = True, tol: Any = None, rtol: Any = None,
                         atol: Any = None, check_cache_misses: bool = True) -> None:
        """Check that ``fun`` gives the same when it is called and from a compiled program.

        The program serves two sets of operands.  It may not be traced for the second, whatever
        ``check_cache_misses`` is, which in JAX counts entries of its caches.
        """
        traces: list[int] = []

        @jit
        def compiled(*args: Any) -> Any:
            traces.append(1)
            return fun(*args)

        for _ in range(2):
            args = args_maker()
            self.assertAllClose(compiled(*args), fun(*args), check_dtypes=check_dtypes,
                                atol=atol or tol, rtol=rtol or tol)
            self.assertLen(traces, 1, "traced again for operands of the same kind")


def _dtype(x: Any, canonical: bool) -> scalar_types.DType:
    dtype = getattr(x, "dtype", None) or dtype_of(x)
    return scalar_types.canonicalize(dtype) if canonical else dtype


def _compared(x: Any) -> np.ndarray:
    """Return ``x`` as an array of a dtype that NumPy's comparisons know."""
    array = np.asarray(x)
    return array.astype(np.float64) if array.dtype.kind == "V" else array


def with_config(**settings: Any) -> Callable[[type[JaxTestCase]], type[JaxTestCase]]:
    """Let each test of a class run under ``settings``."""
    def decorate(case: type[JaxTestCase]) -> type[JaxTestCase]:
        case._settings = {**case._settings, **settings}
        return case

    return decorate


# -- counts and devices ----------------------------------------------------------------------------


@contextlib.contextmanager
def _counted(kind: type[Event]) -> Iterator[Callable[[], int]]:
    seen: list[Event] = []

    def listener(event: Event) -> None:
        if isinstance(event, kind):
            seen.append(event)

    unsubscribe = bus.subscribe(listener)
    try:
        yield lambda: len(seen)
    finally:
        unsubscribe()


def count_pjit_cpp_cache_miss() -> contextlib.AbstractContextManager[Callable[[], int]]:
    """Count the calls of jitted functions that found no earlier call of their kind."""
    return _counted(CacheMiss)


@contextlib.contextmanager
def assert_num_jit_and_pmap_compilations(times: int) -> Iterator[None]:
    """Check that in its body ``times`` programs are lowered."""
    with _counted(Lowering) as count:
        yield
    if count() != times:
        raise AssertionError(f"Expected exactly {times} XLA compilations, but executed {count()}")


def is_device_tpu_at_least(version: int) -> bool:
    """Return whether this process has TPUs of generation ``version`` or later."""
    if default_backend() != "tpu":
        return False
    kind = devices()[0].device_kind
    return int("".join(filter(str.isdigit, kind)) or 0) >= version
