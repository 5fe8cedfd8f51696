"""How is the cache of compiled programs on disk set?  See ``saem.disk.cache_folder``.

Source: the documentation of jax.experimental.compilation_cache and of its settings.
"""

from __future__ import annotations

import os
from typing import Any

from saem.core.config import config
from saem.disk import cache_folder

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: Any) -> None:
    """Keep compiled programs in the folder ``path``, from the next compilation on."""
    config.update("jax_compilation_cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Begin anew with the settings as they are; what is on disk stays.

    Every setting is read when a program is compiled, so a changed folder needs no reset; complaints
    that were made once will be made again.
    """
    cache_folder.forget_notes()
