"""How do the worker processes of a program get the drop-in too?

A worker that is started anew (``spawn``, ``forkserver``, joblib's) imports the program's module
again, and with it ``jax``.  Before that it unpickles what its parent sends: the module to import,
the path.  The drop-in adds one more object to that, whose unpickling installs it.

Read before: ``dropin.finder``.
Invariant: a pool of spawned workers runs what the program runs (tests/kernel/test_dropin.py).
Source: Python's documentation of multiprocessing, "Contexts and start methods".
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

# Modules whose ``get_preparation_data`` gives what is sent to a worker, as a dict.
SPAWNERS = ("multiprocessing.spawn", "joblib.externals.loky.backend.spawn", "loky.backend.spawn")


class Installed:
    """An object that installs the drop-in where it is unpickled."""

    def __init__(self, install: Callable[[], None]):
        self.install = install

    def __reduce__(self) -> tuple[Callable[[], None], tuple]:
        return self.install, ()


class _Spawner(Loader):
    """A loader of a module of ``SPAWNERS``, whose workers install the drop-in."""

    def __init__(self, usual: Any, finder: WorkerFinder):
        self.usual = usual
        self.finder = finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.usual.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.usual.exec_module(module)
        self.finder.extend(module)


class WorkerFinder(MetaPathFinder):
    """Watches for the modules that start workers."""

    def __init__(self, install: Callable[[], None]):
        self.installed = Installed(install)

    def start(self) -> None:
        """Let all workers from now on install the drop-in; no module needs to be loaded yet."""
        sys.meta_path.insert(0, self)
        for name in SPAWNERS:
            if name in sys.modules:
                self.extend(sys.modules[name])

    def extend(self, module: Any) -> None:
        """Let each worker that ``module`` starts install the drop-in."""
        usual = module.get_preparation_data

        def get_preparation_data(*args: Any, **kwargs: Any) -> dict[str, Any]:
            return {"saem": self.installed, **usual(*args, **kwargs)}

        module.get_preparation_data = get_preparation_data

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None
                  ) -> ModuleSpec | None:
        if fullname not in SPAWNERS:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Spawner(spec.loader, self)
        return spec
