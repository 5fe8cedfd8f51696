"""Does a program find its routines in a process that has called none of that library before?

Read before: ``compile.libraries``.
Invariant: expected values are NumPy's.
"""

from __future__ import annotations

import numpy as np
from test_executables import in_another_process

import saem as jax
import saem.numpy as jnp
from saem.compile.libraries import libraries_of

MATRIX = np.asarray([[4, 2], [2, 5]], np.float32)
START = """
import sys, numpy as np
import saem as jax
x = np.asarray([[4, 2], [2, 5]], np.float32)
"""


def factor(printed):
    return np.asarray(printed.split(), np.float32).reshape(2, 2)


def test_an_exported_program(tmp_path):
    (tmp_path / "file").write_bytes(jax.export.export(jax.jit(jnp.linalg.cholesky))(
        MATRIX).serialize())
    printed = in_another_process(START + """
exported = jax.export.deserialize(open(sys.argv[1], "rb").read())
print(*np.asarray(jax.jit(exported.call)(x)).ravel())
""", tmp_path / "file")
    np.testing.assert_allclose(factor(printed), np.linalg.cholesky(MATRIX), rtol=1e-6)


def test_a_call_by_name():
    printed = in_another_process(START + """
call = jax.ffi.ffi_call(
    "lapack_spotrf_ffi", (jax.ShapeDtypeStruct((2, 2), "float32"),
                          jax.ShapeDtypeStruct((), "int32")),
    input_layouts=[(1, 0)], output_layouts=[(1, 0), ()], input_output_aliases={0: 0})
print(*np.tril(call(x, uplo=np.uint8(ord("L")))[0]).ravel())
""")
    np.testing.assert_allclose(factor(printed), np.linalg.cholesky(MATRIX), rtol=1e-6)


def test_which_they_are():
    assert libraries_of(["Sharding", "xla_python_cpu_callback"]) == set()
    lowered = jax.jit(jnp.linalg.cholesky).lower(MATRIX)
    assert lowered._lowered.module.libraries == {"lapack"}
    for_gpu = jax.jit(jnp.linalg.eig).trace(MATRIX).lower(lowering_platforms=("cuda",))
    assert for_gpu._lowered.module.libraries <= {"cuhybrid"}
    assert not jax.jit(jnp.sin).lower(MATRIX)._lowered.module.libraries
