"""Are Fourier transforms the same here as on JAX: every kind, norm, length and axis?

Read before: ``tests/kernel/numpy/agreement.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "numpy"))

from agreement import check

import saem as jax
from saem import numpy as jnp
from saem.test_util import check_grads

# Their subject is what is computed, not how XLA optimises it.
pytestmark = pytest.mark.usefixtures("little_effort")

RNG = np.random.default_rng(2)
ARRAYS = {
    "v": RNG.normal(size=6).astype("f4"), "x": RNG.normal(size=(3, 4)).astype("f4"),
    "t": RNG.normal(size=(2, 3, 4)).astype("f4"), "i": np.arange(4),
    "c": (RNG.normal(size=(3, 5)) + 1j * RNG.normal(size=(3, 5))).astype("c8"),
    "q": RNG.normal(size=(2, 3, 2, 3, 2)).astype("f4"), "e": np.zeros((0, 3), "f4"),
}

SINGLE = [f"jnp.fft.{kind}({x}{more})" for kind in
          ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for x in ("v", "x", "c", "i", "e")
          for more in ("", ",n=3", ",n=8", ",axis=0", ",norm='ortho'", ",norm='forward'")]
SEVERAL = [f"jnp.fft.{kind}({x}{more})" for kind in
           ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
           for x in ("x", "t", "c") for more in
           ("", ",s=(2,6)", ",axes=(0,1)", ",axes=(-1,0)", ",norm='ortho'", ",norm='forward'")]
OTHER = """
jnp.fft.fftn(q)
jnp.fft.ifftn(q)
jnp.fft.rfftn(q)
jnp.fft.irfftn(q+0j)
jnp.fft.rfftn(q,axes=(0,1,2,3),norm='ortho')
jnp.fft.fftn(x,axes=())
jnp.fft.fft(v,0)
jnp.fft.fft(v,axis=1)
jnp.fft.fft(v,norm='foo')
jnp.fft.fft(1.)
jnp.fft.fft([1,2])
jnp.fft.fft2(v)
jnp.fft.fft2(x,axes=(0,))
jnp.fft.fftn(x,s=(2,2),axes=(0,))
jnp.fft.fftn(x,axes=(0,0))
jnp.fft.rfft(c)
jnp.fft.fft(v,axis=(0,))
jnp.fft.fft(v,n=2.)
jnp.fft.fft(v>0)
jnp.fft.fft(v.astype('bfloat16'))
jnp.fft.rfft(v.astype('float16'))
jnp.fft.fftfreq(5)
jnp.fft.fftfreq(4,.1)
jnp.fft.fftfreq(0)
jnp.fft.fftfreq([1])
jnp.fft.fftfreq(4,[1.])
jnp.fft.fftfreq(4,dtype='bfloat16')
jnp.fft.rfftfreq(5)
jnp.fft.rfftfreq(4,.1)
jnp.fft.fftshift(x)
jnp.fft.fftshift(c,axes=1)
jnp.fft.ifftshift(c,axes=(0,1))
jnp.fft.ifftshift(v)
jax.lax.fft(c,'FFT',(5,))
jax.lax.fft(c,'IFFT',(3,5))
jax.lax.fft(x,'RFFT',(4,))
jax.lax.fft(c,jax.lax.FftType.IRFFT,(8,))
jax.lax.fft(c,'IRFFT',(9,))
jax.lax.fft(x,'FFT',(4,))
jax.lax.fft(x,'FFT',(3,))
jax.lax.fft(c,'RFFT',(5,))
jax.lax.fft(c,'foo',(5,))
jax.lax.fft(c,0,(5,))
jax.lax.fft(i,'FFT',(4,))
jax.grad(lambda x: jnp.abs(jnp.fft.rfft2(x)).sum())(x)
jax.grad(lambda x: (jnp.fft.irfft(x*(1+2j))**3).sum())(x)
jax.vmap(lambda x: jnp.fft.fft(x,7),in_axes=1,out_axes=1)(x)
""".strip().splitlines()


@pytest.mark.parametrize("group", ["SINGLE", "SEVERAL", "OTHER"])
def test_as_on_jax(jax_oracle, group):
    check(jax_oracle, globals()[group], rtol=2e-5, **ARRAYS)


@pytest.mark.parametrize("function", [
    jnp.fft.fft, jnp.fft.ifft, jnp.fft.rfft, jnp.fft.irfft, jnp.fft.rfftn, jnp.fft.irfftn,
    lambda x: jnp.fft.fftn(x, (2, 7)), lambda x: jnp.fft.hfft(x, 5)], ids=range(8))
def test_derivatives_are_limits_of_differences(function):
    with jax.enable_x64(True):
        check_grads(function, (jnp.asarray(RNG.normal(size=(3, 4))),), order=2,
                    modes=("fwd", "rev"))


def test_programs_print_as_on_jax(jax_oracle):
    bodies = ["jax.lax.fft(x+0j,'FFT',(4,))", "jax.lax.fft(x,'RFFT',(3,4))"]
    asked = jax_oracle.run(
        "[str(jax.make_jaxpr(eval('lambda x: ' + body))(jnp.ones((3, 4)))) for body in bodies]",
        bodies=bodies).value
    for body, wanted in zip(bodies, asked, strict=True):
        lines = [line for line in wanted.splitlines() if " fft[" in line]
        ours = str(jax.make_jaxpr(eval(f"lambda x: {body}", {"jax": jax}))(jnp.ones((3, 4))))
        assert lines[0].split("= ")[1].split("]")[0] in ours


# Along these sharded axes XLA's partitioner refuses some transforms, or ends the process; the last
# one it divides.
SHARDED = [((4, 8), (None, "x"), {"n": 3}), ((8, 4), (None, "x"), {}),
           ((2, 3, 4), ("y",), {"axis": 0}), ((4, 4, 8), ("y", None, "x"), {"n": 5}),
           ((2, 2, 64), ("y", None, "x"), {})]


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize(("shape", "spec", "how"), SHARDED, ids=str)
def test_transforms_of_sharded_arrays_are_numpys(name, shape, spec, how):
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    values = np.random.default_rng(0).normal(size=shape).astype("f")
    placed = jax.device_put(values, jax.NamedSharding(mesh, jax.P(*spec)))
    wanted = getattr(np.fft, name)(values, **how)
    for program in (getattr(jnp.fft, name), jax.jit(getattr(jnp.fft, name), static_argnames=how)):
        np.testing.assert_allclose(program(placed, **how), wanted, rtol=2e-5, atol=2e-5)


# The places of ``fftfreq`` decide which waves a filter keeps, so no last bit may differ.
FREQUENCIES = """[np.asarray(getattr(jnp.fft, name)(n, kind(step), dtype=dtype)).tobytes().hex()
                  for name in ("fftfreq", "rfftfreq") for n in (1, 5, 9, 10, 41, 100)
                  for step in (1 / n, n / 7, 0.1, 2 * np.pi / n, 3)
                  for kind in (float, np.float32, np.float64, jnp.asarray)
                  for dtype in (None, "float16")]"""


@pytest.mark.parametrize("wide", [False, True])
def test_frequencies_are_those_of_jax_to_the_last_bit(jax_oracle, wide):
    wanted = jax_oracle.run(FREQUENCIES, x64=wide).value
    with jax.enable_x64(wide):
        assert eval(FREQUENCIES, {"np": np, "jnp": jnp}) == wanted


def test_samples_of_one_second_have_whole_frequencies():
    for n in range(1, 200):
        np.testing.assert_array_equal(jnp.fft.rfftfreq(n, 1 / n), np.arange(n // 2 + 1))
        np.testing.assert_array_equal(jnp.fft.fftfreq(n, 1 / n), np.fft.fftfreq(n, 1 / n).round())
