"""Are rotations SciPy's, in every description?

Read before: ``tests/kernel/oracle.py``.
"""

from __future__ import annotations

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem.scipy.spatial.transform import Rotation, Slerp

DRAW = np.random.RandomState(0)
QUATS, VECTORS = DRAW.randn(7, 4), DRAW.randn(7, 3)
SEQUENCES = ("xyz", "ZYX", "zxz", "XYX", "yxz", "ZXZ")
ASK = """
from scipy.spatial.transform import Rotation as R, Slerp as S
r, o = R.from_quat(q), R.from_quat(q[::-1])
result = {name: np.asarray(value) for name, value in dict(
    matrix=r.as_matrix(), rotvec=r.as_rotvec(), mrp=r.as_mrp(), canonical=r.as_quat(canonical=True),
    first=r.as_quat(scalar_first=True), magnitude=r.magnitude(), turned=r.apply(v),
    back=r.apply(v, inverse=True), product=(r * o).as_matrix(), inverse=r.inv().as_matrix(),
    mean=r.mean().as_matrix(), weighted=r.mean(np.arange(7.)).as_matrix(),
    degrees=r.as_rotvec(degrees=True), slerp=S(np.arange(7.), r)([0., .3, 2.5, 6.]).as_matrix(),
    **{s: r.as_euler(s) for s in seqs},
    **{s + '_': R.from_euler(s, v, degrees=True).as_matrix() for s in seqs},
    of_rotvec=R.from_rotvec(v).as_matrix(), of_mrp=R.from_mrp(v).as_matrix()).items()}
"""


def ours():
    r, o = Rotation.from_quat(QUATS), Rotation.from_quat(QUATS[::-1])
    return {
        "matrix": r.as_matrix(), "rotvec": r.as_rotvec(), "mrp": r.as_mrp(),
        "canonical": r.as_quat(canonical=True), "first": r.as_quat(scalar_first=True),
        "magnitude": r.magnitude(), "turned": r.apply(VECTORS),
        "back": r.apply(VECTORS, inverse=True), "product": (r * o).as_matrix(),
        "inverse": r.inv().as_matrix(), "mean": r.mean().as_matrix(),
        "weighted": r.mean(jnp.arange(7.0)).as_matrix(), "degrees": r.as_rotvec(degrees=True),
        "slerp": Slerp.init(jnp.arange(7.0), r)(jnp.array([0.0, 0.3, 2.5, 6.0])).as_matrix(),
        **{s: r.as_euler(s) for s in SEQUENCES},
        **{s + "_": Rotation.from_euler(s, VECTORS, degrees=True).as_matrix() for s in SEQUENCES},
        "of_rotvec": Rotation.from_rotvec(VECTORS).as_matrix(),
        "of_mrp": Rotation.from_mrp(VECTORS).as_matrix()}


def test_descriptions_are_scipys(jax_oracle):
    wanted = jax_oracle.run(ASK, q=QUATS, v=VECTORS, seqs=SEQUENCES).value
    with jax.enable_x64(True):
        got = ours()
    for name, want in wanted.items():
        np.testing.assert_allclose(np.asarray(got[name]), want, 1e-9, 1e-12, err_msg=name)


def test_there_and_back():
    with jax.enable_x64(True):
        r = Rotation.from_quat(QUATS)
        for again in (Rotation.from_matrix(r.as_matrix()), Rotation.from_mrp(r.as_mrp()),
                      Rotation.from_rotvec(r.as_rotvec()), r * Rotation.identity(7)):
            np.testing.assert_allclose(again.as_matrix(), r.as_matrix(), atol=1e-12)


def test_single_rotations():
    one = Rotation.from_euler("z", jnp.array(90.0), degrees=True)
    np.testing.assert_allclose(one.apply(jnp.array([1.0, 0, 0])), [0, 1, 0], atol=1e-6)
    assert one.single
    with pytest.raises(TypeError):
        len(one)
    with pytest.raises(TypeError):
        one[0]
    with pytest.raises(ValueError, match="consecutive"):
        Rotation.from_euler("xx", jnp.zeros(2))
    assert Rotation.random(jax.random.key(0), 3).quat.shape == (3, 4)
