"""How does Python run beside the devices that hold its arrays?
(``jax.experimental.colocated_python``)

JAX offers this for clusters in which the devices of one program belong to other machines: a
function is sent to the CPUs of the machines that hold its arguments.  Here the devices of a
process belong to the machine it runs on, so the function runs in this process, on its arrays.

Read before: ``placement.devices``, ``placement.meshes``.
Invariant: what comes back is what the function returned, checked against its promised types
(tests/kernel/test_small_programs.py, tests/programs).
Source: the documentation of jax.experimental.colocated_python; observed behaviour of JAX 0.10.2.
"""

from saem.experimental.colocated_python import func, serialization
from saem.experimental.colocated_python.func import colocated_cpu_devices, colocated_python
from saem.experimental.colocated_python.obj import colocated_python_class

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class", "func",
           "serialization"]
