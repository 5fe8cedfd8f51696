"""Does ``jax.numpy`` keep the Python array API standard, version 2024.12?

Names, keyword arguments and special cases stand here as the standard has them; NumPy, which keeps
the standard too, gives the values at special points.

Read before: ``saem.numpy.array_api``.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp

UNARY = (
    "abs acos acosh asin asinh atan atanh ceil conj cos cosh exp expm1 floor isfinite "
    "isinf isnan log log1p log2 log10 negative positive reciprocal round sign signbit sin "
    "sinh square sqrt tan tanh trunc"
).split()
BINARY = (
    "add atan2 copysign divide equal floor_divide greater greater_equal hypot less "
    "less_equal logaddexp maximum minimum multiply nextafter not_equal pow remainder "
    "subtract"
).split()
OTHERS = (
    "bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift "
    "bitwise_xor clip imag logical_and logical_not logical_or logical_xor real arange "
    "asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones "
    "ones_like tril triu zeros zeros_like astype broadcast_arrays broadcast_to can_cast "
    "finfo iinfo isdtype result_type cumulative_sum cumulative_prod max mean min prod std "
    "sum var take take_along_axis matmul matrix_transpose tensordot vecdot concat "
    "expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile "
    "unstack argmax argmin count_nonzero nonzero searchsorted where unique_all "
    "unique_counts unique_inverse unique_values argsort sort all any diff e inf nan "
    "newaxis pi bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 "
    "complex64 complex128"
).split()
LINALG = (
    "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power "
    "matrix_rank matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace "
    "vecdot vector_norm"
).split()
FFT = (
    "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift "
    "ifftshift"
).split()
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0], np.float32)
# The standard gives several functions keyword-only arguments.
KEYWORDS = {
    "sum": "axis dtype keepdims", "prod": "axis dtype keepdims", "mean": "axis keepdims",
    "std": "axis correction keepdims", "var": "axis correction keepdims",
    "max": "axis keepdims", "min": "axis keepdims", "all": "axis keepdims", "any": "axis keepdims",
    "argmax": "axis keepdims", "argmin": "axis keepdims", "count_nonzero": "axis keepdims",
    "argsort": "axis descending stable", "sort": "axis descending stable", "concat": "axis",
    "stack": "axis", "flip": "axis", "roll": "axis", "repeat": "axis", "unstack": "axis",
    "cumulative_sum": "axis dtype include_initial", "cumulative_prod": "axis dtype include_initial",
    "searchsorted": "side sorter", "reshape": "copy", "tensordot": "axes", "vecdot": "axis",
    "take": "axis", "take_along_axis": "axis", "clip": "min max", "diff": "axis n prepend append",
    "astype": "copy device", "asarray": "dtype device copy", "arange": "step dtype device",
    "linspace": "dtype device endpoint", "full": "dtype device", "full_like": "dtype device",
    "ones": "dtype device", "zeros": "dtype device", "eye": "k dtype device",
    "meshgrid": "indexing", "tril": "k", "triu": "k", "squeeze": "axis", "expand_dims": "axis",
    "from_dlpack": "device copy", "nonzero": "", "matmul": "", "broadcast_to": "",
}


def test_what_a_program_can_ask(jax_oracle):
    same(jax_oracle, "jnp.__array_api_version__")
    same(jax_oracle, "jnp.__array_namespace_info__().capabilities()")
    same(jax_oracle, "str(jnp.__array_namespace_info__().default_device())")
    for x64 in (False, True):
        for call in ("default_dtypes()", "default_dtypes(device=jax.devices()[0])", "dtypes()",
                     "dtypes(device='any')",
                     *(f"dtypes(kind={kind!r})" for kind in (
                         "bool", "signed integer", "unsigned integer", "integral", "real floating",
                         "complex floating", "numeric", ("bool", "integral"), ()))):
            same(jax_oracle, f"names_of({x64}, lambda info: info.{call})", within=__name__)
    assert jnp.__array_namespace_info__().devices() == [None, *jax.devices()]
    same_error(jax_oracle, "jnp.__array_namespace_info__().dtypes(kind='foo')", "foo")
    same_error(jax_oracle, "jnp.ones(3).__array_namespace__(api_version='2022.12')",
               "api_version='2022.12' is not available")


def names_of(x64, ask):
    """Return by their keys the names of the dtypes that the namespace gives, with 32 or 64 bits."""
    with jax.enable_x64(x64):
        return {name: str(d) for name, d in ask(jnp.__array_namespace_info__()).items()}


def test_an_array_leads_to_its_namespace():
    x = jnp.ones(3)
    assert x.__array_namespace__() is jnp is x.__array_namespace__(api_version="2024.12")
    out = jax.jit(lambda x: x.__array_namespace__().sin(x))(x)
    np.testing.assert_allclose(out, np.sin(np.ones(3)), rtol=1e-6)
    assert x.to_device(x.device).device == x.device


@pytest.mark.parametrize("name", [*UNARY, *BINARY, *OTHERS])
def test_every_name_is_there(name):
    assert hasattr(jnp, name)


@pytest.mark.parametrize(("space", "names"), [("linalg", LINALG), ("fft", FFT)])
def test_every_extension_is_there(space, names):
    assert not [name for name in names if not hasattr(getattr(jnp, space), name)]


@pytest.mark.parametrize("name", sorted(KEYWORDS))
def test_keywords_are_taken(name):
    have = inspect.signature(getattr(jnp, name)).parameters
    assert not [word for word in KEYWORDS[name].split() if word not in have]


def at_special_points(name, *operands):
    """Return what Saem and NumPy give, signs of zeros included."""
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(*operands)
    got = np.asarray(getattr(jnp, name)(*operands))
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=3e-6, atol=1e-7, err_msg=name)
    numbers = ~np.isnan(wanted) if wanted.dtype.kind == "f" else np.zeros(wanted.shape, bool)
    return got, wanted, numbers


@pytest.mark.parametrize("name", UNARY)
def test_special_points_of_one_operand(name):
    got, wanted, numbers = at_special_points(name, SPECIAL)
    if name == "sign":  # of a zero it is a zero; which, the standard leaves open
        numbers &= wanted != 0
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(wanted[numbers]))


@pytest.mark.parametrize("name", BINARY)
def test_special_points_of_two_operands(name):
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    at_special_points(name, x, y)
