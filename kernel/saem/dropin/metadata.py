"""What do libraries learn that ask which version of ``jax`` is installed?

Some compare ``jax.__version__``, some ask ``importlib.metadata.version("jax")``.  In a process
where ``jax`` is Saem both give the version of JAX whose interface Saem offers, and the metadata
names Saem.  ``jaxlib`` is the real one, so questions about it need nothing from us.

Read before: ``dropin.finder``.
Invariant: the metadata of an installed ``jax`` is not what a program sees, and it is not changed
(tests/kernel/test_dropin.py).
Source: the Core metadata specifications of PyPA; ``importlib.metadata``, "Extending the search".
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterable
from importlib.metadata import Distribution, DistributionFinder
from typing import Any

import saem

JAX_VERSION = "0.10.2"
JAX_VERSION_INFO = (0, 10, 2)

ANY = DistributionFinder.Context()

_METADATA = f"""\
Metadata-Version: 2.1
Name: jax
Version: {JAX_VERSION}
Summary: Saem {saem.__saem_version__}, which answers for JAX's public interface in this process
License: Apache-2.0
Requires-Dist: saem (=={saem.__saem_version__})
Provides-Dist: jax ({JAX_VERSION})

`import jax` gives Saem here: see saem.dropin.
"""


class SaemAsJax(Distribution):
    """The distribution ``jax`` in this process: no files, only metadata that name Saem."""

    def read_text(self, filename: str) -> str | None:
        """Return the text of a metadata file, None where there is no such file."""
        return {"METADATA": _METADATA, "top_level.txt": "jax\n", "INSTALLER": "saem\n"}.get(
            str(filename))

    def locate_file(self, path: Any) -> pathlib.Path:
        """Return where a file of Saem's package is."""
        return pathlib.Path(saem.__file__).parent / path


def distributions(name: str | None) -> Iterable[Distribution]:
    """Return Saem's ``jax`` if ``name`` asks for it; None asks for all distributions."""
    if name is None or re.sub(r"[-_.]+", "-", name).lower() == "jax":
        return [SaemAsJax()]
    return []
