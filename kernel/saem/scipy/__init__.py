"""What of SciPy computes on arrays here?  Special functions, distributions, signals and more.

The public namespace ``jax.scipy``; each part is loaded when it is first named.

Read before: ``saem.numpy``.  Read after: ``scipy.special``.
Invariant: names and signatures are those of jax.scipy 0.10.2, values SciPy's (tests/kernel/scipy/).
"""

from saem.core import lazy as _lazy

__getattr__, __dir__ = _lazy.namespace(__name__, {
    "saem.scipy.cluster": "",
    "saem.scipy.fft": "",
    "saem.scipy.integrate": "",
    "saem.scipy.interpolate": "",
    "saem.scipy.linalg": "",
    "saem.scipy.ndimage": "",
    "saem.scipy.optimize": "",
    "saem.scipy.signal": "",
    "saem.scipy.sparse": "",
    "saem.scipy.spatial": "",
    "saem.scipy.special": "",
    "saem.scipy.stats": "",
})
