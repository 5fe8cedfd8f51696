"""Are convolutions and approximate top-k the same here as on JAX?

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
from saem import lax
from saem import numpy as jnp
from saem.test_util import check_grads

# Their subject is what is computed, not how XLA optimises it.
pytestmark = pytest.mark.usefixtures("little_effort")

RNG = np.random.default_rng(3)
SHAPES = {
    "x": (2, 4, 7, 6), "k": (6, 4, 3, 2), "g": (6, 2, 3, 2), "n": (1, 5, 5, 3), "h": (3, 3, 3, 4),
    "s": (1, 2, 5), "f": (2, 2, 2), "t": (6, 24, 5, 5), "z": (1, 2, 4, 4, 4), "w": (3, 2, 2, 2, 2),
}
ARRAYS = {name: RNG.normal(size=shape).astype("f4") for name, shape in SHAPES.items()}
ARRAYS["i"] = np.arange(10).reshape(1, 2, 5)
HALF, LONG = "'bfloat16'", "preferred_element_type='float32'"

VALUES = """
jax.lax.conv(x,k,(1,1),'SAME')
jax.lax.conv(x,k,(2,1),'VALID')
jax.lax.conv(x,k,(2,3),'SAME_LOWER')
jax.lax.conv(s,f,(1,),'SAME')
jax.lax.conv(z,w,(1,2,1),'SAME')
jax.lax.conv(i,i[:,:,:2],(1,),'SAME')
jax.lax.conv(s+1j*s,f-2j*f,(1,),'SAME')
jax.lax.conv(x.astype('bfloat16'),k.astype('bfloat16'),(1,1),'SAME')
jax.lax.conv(x>0,k>0,(1,1),'SAME')
jax.lax.conv_general_dilated(x,k,(2,1),((1,2),(0,1)),(1,2),(2,1))
jax.lax.conv_general_dilated(x,g,(2,1),'VALID',feature_group_count=2)
jax.lax.conv_general_dilated(x,k,(1,1),'VALID',batch_group_count=2)
jax.lax.conv_general_dilated(x,k,(1,1),((-1,0),(0,3)))
jax.lax.conv_general_dilated(n,h,(1,1),'SAME',dimension_numbers=('NHWC','HWIO','NHWC'))
jax.lax.conv_general_dilated(n,h,(1,1),'SAME',dimension_numbers=('NHWC','WHIO','NCWH'))
jax.lax.conv_general_dilated(n,h,(1,1),'SAME',precision='highest',dimension_numbers=('NHWC','HWIO','NHWC'))
jax.lax.conv_general_dilated(np.ones((2,3),'f4'),np.ones((4,3),'f4'),(),())
jax.lax.conv_with_general_padding(x,k,(1,1),((0,0),(1,1)),None,(2,1))
jax.lax.conv_with_general_padding(x,k,(1,1),((0,0),(1,1)),(2,2),None)
jax.lax.conv_transpose(n,h,(2,2),'SAME')
jax.lax.conv_transpose(n,h,(2,3),'VALID')
jax.lax.conv_transpose(n,h,(4,1),'SAME',rhs_dilation=(2,1))
jax.lax.conv_transpose(n,h,(2,2),((1,2),(0,0)))
jax.lax.conv_transpose(n,h,(2,2),((1,2),(0,0)),use_consistent_padding=True)
jax.lax.conv_transpose(n,h.transpose(0,1,3,2),(2,2),'SAME',transpose_kernel=True)
jax.lax.conv_transpose(n,h,(2,2),'FOO')
jax.lax.conv_general_dilated_patches(x,(2,2),(1,1),'VALID')
jax.lax.conv_general_dilated_patches(n,(2,3),(1,2),'SAME',dimension_numbers=('NHWC','HWIO','NHWC'))
jax.lax.conv_general_dilated_patches(n,(2,3),(1,1),'VALID',dimension_numbers=('NHWC','OIHW','NCHW'))
jax.lax.conv_general_dilated_local(x,t,(1,1),'VALID',(3,2))
jax.lax.conv(x,k,(1,),'SAME')
jax.lax.conv(x,k[:,:2],(1,1),'SAME')
jax.lax.conv(x,k,(1,1),'FOO')
jax.lax.conv(x,k.astype('int32'),(1,1),'SAME')
jax.lax.conv(x[0],k,(1,1),'SAME')
jax.lax.conv(x,np.ones((6,4,9,9),'f4'),(1,1),'VALID')
jax.lax.conv_general_dilated(x,k,(1,1),'SAME',feature_group_count=3)
jax.lax.conv_general_dilated(x,k,(1,1),'SAME',batch_group_count=4)
jax.lax.conv_general_dilated(x,k,(1,1),'SAME',lhs_dilation=(2,2))
jax.lax.conv_general_dilated(x,k,(1,1),'SAME',dimension_numbers=('NCHW','OIHX','NHWC'))
jax.lax.conv_general_dilated(x,k,(1,1),'SAME',dimension_numbers=('NCH','OIHW','NHWC'))
jax.lax.conv_general_dilated(x,k,(1,1),'SAME',rhs_dilation=(0,1))
jax.lax.conv_general_dilated(x,k,(1,1),((1,1),))
tuple(map(tuple,jax.lax.conv_dimension_numbers((1,2,3,4),(1,2,3,4),('NHWC','HWIO','NHWC'))))
tuple(map(tuple,jax.lax.conv_dimension_numbers((1,2,3,4),(1,2,3,4),None)))
jax.lax.conv_dimension_numbers((1,2,3),(1,2,3,4),None)
jax.lax.conv_general_permutations(('NHWC','HWIO','NHWC'))
jax.lax.conv_general_permutations(('NHHC','HWIO','NHWC'))
tuple(map(int,jax.lax.conv_shape_tuple((1,2,5,5),(3,2,2,2),(1,1),'SAME')))
tuple(map(int,jax.lax.conv_shape_tuple((1,2,5,5),(3,2,2,2),(2,1),((0,0),(1,1)))))
tuple(map(int,jax.lax.conv_general_shape_tuple((1,5,5,2),(2,2,2,3),(1,1),'VALID',('NHWC','HWIO','NHWC'))))
tuple(map(int,jax.lax.conv_transpose_shape_tuple((1,5,5,2),(2,2,2,3),(2,1),'SAME',('NHWC','HWIO','NHWC'))))
jax.lax.approx_max_k(x,2)
jax.lax.approx_min_k(x,3,reduction_dimension=1)
jax.lax.approx_max_k(x,2,aggregate_to_topk=False)
jax.lax.approx_max_k(x,99)
jax.lax.approx_max_k(i,2)
jax.lax.approx_max_k(x,0)
jax.grad(lambda x: jax.lax.approx_max_k(x,2)[0].sum())(s)
jax.vmap(lambda x: jax.lax.approx_min_k(x,1),in_axes=1)(s)
""".strip().splitlines() + [
    f"jax.grad(lambda x: (jax.lax.conv(x.astype({HALF}),f.astype({HALF}),(1,),'SAME',{LONG})**2)"
    ".sum())(s)"]

PROGRAMS = """
jax.lax.conv(x,k,(1,1),'SAME')
jax.vjp(lambda *a: jax.lax.conv(*a,(2,1),'SAME'),x,k)[1](jnp.ones((2,6,4,6)))
jax.lax.conv_transpose(jnp.ones((1,5,5,3)),jnp.ones((3,3,3,4)),(2,2),'SAME')
jax.vmap(lambda x: jax.lax.conv(x,k,(1,1),'SAME'))(jnp.stack([x,x]))
jax.lax.conv_general_dilated_patches(x,(2,2),(1,1),'VALID')
jax.lax.approx_max_k(x,2)
""".strip().splitlines()


def test_as_on_jax(jax_oracle):
    check(jax_oracle, VALUES, rtol=3e-5, **ARRAYS)


def test_programs_print_as_on_jax(jax_oracle):
    shapes = "(jnp.ones((2,4,7,6)), jnp.ones((6,4,3,2)))"
    asked = jax_oracle.run(
        f"[str(jax.make_jaxpr(eval('lambda x,k: ' + body))(*{shapes})) for body in bodies]",
        bodies=PROGRAMS).value
    for body, wanted in zip(PROGRAMS, asked, strict=True):
        function = eval(f"lambda x,k: {body}", {"jax": jax, "jnp": jnp})
        assert str(jax.make_jaxpr(function)(*eval(shapes))) == wanted, body


@pytest.mark.parametrize("options", [
    {"lhs_dilation": (2, 1), "rhs_dilation": (1, 2), "padding": ((2, 1), (-1, 2))},
    {"feature_group_count": 2, "padding": "SAME"}, {"batch_group_count": 2, "padding": "VALID"}])
def test_derivatives_are_limits_of_differences(options):
    with jax.enable_x64(True):
        x = jnp.asarray(RNG.normal(size=(2, 4, 5, 4)))
        features = 2 if "feature_group_count" in options else 4
        k = jnp.asarray(RNG.normal(size=(4, features, 2, 3)))
        check_grads(lambda x, k: lax.conv_general_dilated(x, k, (2, 1), **options) ** 2, (x, k),
                    order=2, modes=("fwd", "rev"), rtol=1e-3)
