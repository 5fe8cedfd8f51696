"""How do programs written for JAX run on Saem, unchanged?

After ``install()`` the statements ``import jax``, ``from jax import …``, ``import jax.numpy as
jnp`` and imports of every deeper public module give Saem's modules in this process.  The same is
done by ``python -m saem run script.py``, by ``%load_ext saem.jax`` in a notebook, and by the
Jupyter kernel named Saem.

Read before: nothing.  Read after: ``dropin.finder`` (imports), ``dropin.private_names`` (what is
offered of ``jax._src``), ``dropin.metadata`` (versions), ``dropin.workers`` (processes),
``dropin.run``, ``dropin.kernel``.
Invariant: ``jax.X`` is the same module object as ``saem.X``; an installed ``jax`` is never
imported or changed; real JAX and Saem never meet in one process (tests/kernel/test_dropin.py).
"""

from __future__ import annotations

import logging
import sys

import saem
from saem import version
from saem.core import lazy
from saem.core.trace import Tracer
from saem.dropin.finder import AliasFinder, RealJaxError, name_in_jax, refuse_real_jax
from saem.dropin.metadata import JAX_VERSION, JAX_VERSION_INFO
from saem.dropin.workers import WorkerFinder
from saem.ops.keys import PRNGKeyArray

_finder = AliasFinder()


def install() -> None:
    """Make ``import jax`` give Saem in this process, until the process ends.

    Calling it again does nothing.  ``jax.__version__`` becomes the version of JAX whose interface
    Saem offers, because libraries compare it; ``jax.__saem_version__`` is Saem's own, and
    ``importlib.metadata.metadata("jax")["Summary"]`` names Saem.

    Raises: RealJaxError (an ImportError) when the real JAX was imported before.

    >>> import saem.dropin
    >>> saem.dropin.install()
    >>> import jax.numpy as jnp
    >>> jnp is saem.numpy
    True
    """
    if is_installed():
        return
    refuse_real_jax()
    sys.meta_path.insert(0, _finder)
    WorkerFinder(install).start()
    saem.__version__ = version.__version__ = JAX_VERSION
    saem.__version_info__ = version.__version_info__ = JAX_VERSION_INFO
    saem.__name__ = "jax"
    # What the engine logs also reaches the handlers that programs give to JAX's logger.
    logging.getLogger("saem").parent = logging.getLogger("jax")
    _name_after_jax(Tracer)
    _name_after_jax(PRNGKeyArray)
    lazy.public_name = name_in_jax


def _name_after_jax(cls: type) -> None:
    """Let ``cls`` and its subclasses, also later ones, name modules of jax as theirs.

    Libraries that compute with arrays of several packages choose by the class's module.
    """
    package, _, rest = cls.__module__.partition(".")
    if package == "saem":
        cls.__module__ = f"jax.{rest}"
    subclasses: list[type] = cls.__subclasses__()
    for subclass in subclasses:
        _name_after_jax(subclass)
    cls.__init_subclass__ = classmethod(_name_after_jax)  # type: ignore[assignment]


def is_installed() -> bool:
    """Return whether ``import jax`` gives Saem in this process.

    >>> import saem.dropin
    >>> saem.dropin.install()
    >>> saem.dropin.is_installed()
    True
    """
    return _finder in sys.meta_path and sys.modules.get("jax", saem) is saem


__all__ = ["JAX_VERSION", "RealJaxError", "install", "is_installed"]
