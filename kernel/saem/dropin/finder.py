"""How does ``import jax.numpy`` give the module ``saem.numpy``, and not a second copy of it?

Python asks the finders in ``sys.meta_path`` for every module that is not in ``sys.modules`` yet.
``AliasFinder`` is first there and answers for ``jax`` and everything below it: the loader it
returns imports the module of the same name in ``saem`` and gives that very object.  Without
it, Python would find the file through ``saem.__path__`` and execute it a second time.  The first
``import jax`` reads the environment again, for programs set variables of JAX before it.

Read before: ``dropin``.  Read after: ``dropin.private_names``, ``dropin.metadata``.
Invariant: for each name, ``sys.modules["jax.X"] is sys.modules["saem.X"]``; a module keeps its own
``__spec__``, and its ``__name__`` is the one that it was imported under, ``"jax.X"``, for libraries
choose by it what they do with an array (tests/kernel/test_dropin.py).
Source: Python's documentation of the import system, "The meta path".
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType

from saem.core import lazy
from saem.core.config import read_environment
from saem.dropin import metadata, private_names, unoffered_modules

# Modules that get their names in JAX with ``jax`` itself: private ones, those that are loaded with
# ``saem``, and those that were found before; the others get theirs when they are found.
_found = {f"saem.{name}": None for name in (
    "_src", "core", "experimental", "numpy", "ops", "tree", "typing", "version")}


def name_in_jax(module: str) -> str:
    """Return the name by which a namespace imports ``module``: JAX's once ``jax`` is imported."""
    package, _, rest = module.partition(".")
    if package != "saem":
        return module
    if "jax" not in sys.modules:
        _found[module] = None
        return module
    return f"jax.{rest}" if rest else "jax"


class RealJaxError(ImportError):
    """The real JAX was imported before Saem was to take its place."""


def refuse_real_jax() -> None:
    """Raise: RealJaxError when a module of the real JAX is loaded in this process."""
    for name, module in list(sys.modules.items()):
        if name != "jax" and not name.startswith("jax."):
            continue
        spec = getattr(module, "__spec__", None)
        if spec is None or not spec.name.startswith("saem"):
            where = getattr(module, "__file__", None) or "an unknown place"
            raise RealJaxError(
                "Saem was asked to answer for `import jax`, but the real JAX is already imported "
                f"here ({name} from {where}). Both put methods on jaxlib's one array class, so "
                "they cannot share a process. Restart the kernel or process, and load Saem before "
                "anything that imports jax: `%load_ext saem.jax` in the first cell, or "
                "`python -m saem run script.py`.", name=name)


class _SameModule(Loader):
    """A loader whose module exists already, or is imported under its own name."""

    def __init__(self, name: str):
        self.name = name
        self.own_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.name)
        self.own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # Python has just put the alias's spec on the module, which is complete; undo that.
        module.__spec__ = self.own_spec
        if self.name.startswith("saem"):
            module.__name__ = "jax" + self.name.removeprefix("saem")
            if "__dir__" in lazy.loaded(module):
                module.__class__ = lazy.Whole


class _Jax(_SameModule):
    """The loader of ``jax`` itself, at the first ``import jax`` of a process."""

    def exec_module(self, module: ModuleType) -> None:
        read_environment()
        super().exec_module(module)
        # Libraries look modules up in sys.modules, and as attributes, that they never imported.
        for name in _found:
            importlib.import_module(name_in_jax(name))


class _MadeModule(Loader):
    """A loader of a module that is not a file: it holds listed names, or none."""

    def __init__(self, module: ModuleType):
        self.module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Refused(Loader):
    """A loader of a module that is left out: importing it gives the reason.

    The error has the name of the package: one with the module's own name would be taken, by ``from
    package import module``, for the answer that there is no such module, and the reason be lost.
    """

    def __init__(self, why: str):
        self.why = why

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        raise ModuleNotFoundError(f"No module named {spec.name!r}: {self.why}", name=spec.parent)

    def exec_module(self, module: ModuleType) -> None:
        pass


class AliasFinder(MetaPathFinder):
    """Answer for ``jax`` and its submodules with Saem's, and for its metadata."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """Return where ``fullname`` comes from; None for modules that are not JAX's.

        Raises: ModuleNotFoundError that gives the reason, for a module that Saem does not offer.
        """
        if fullname == "jax":
            return ModuleSpec("jax", _Jax("saem"))
        if not fullname.startswith("jax."):
            return None
        if unoffered_modules.is_listed(fullname):
            return ModuleSpec(fullname, _MadeModule(unoffered_modules.make_module(fullname)),
                              is_package=True)
        if private_names.is_private(fullname):
            return ModuleSpec(fullname, _MadeModule(private_names.make_module(fullname)),
                              is_package=True)
        own = "saem" + fullname.removeprefix("jax")
        package, _, last = fullname.rpartition(".")
        known = lazy.loaded(sys.modules[package]).get(last, sys)
        if not isinstance(known, ModuleType):
            # ``jax.jit`` is a function; importing Saem's room of that name would hide it.
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: it is a {type(known).__name__}.", name=fullname)
        if unoffered_modules.is_listed(package) or (
                own not in sys.modules and importlib.util.find_spec(own) is None):
            return _offered_elsewhere(fullname)
        return ModuleSpec(fullname, _SameModule(own))

    def find_distributions(self, context: DistributionFinder.Context = metadata.ANY
                           ) -> Iterable[Distribution]:
        """Return the distribution ``jax`` as this process has it, when it is asked for."""
        return metadata.distributions(context.name)


def _offered_elsewhere(fullname: str) -> ModuleSpec | None:
    """Return where the module of another package, such as jaxlib, is that ``fullname`` means.

    What is left out on purpose says so when it is imported; what is not there is None.
    """
    package, _, last = fullname.rpartition(".")
    try:
        found = getattr(sys.modules[package], last)
    except (lazy.LeftOut, ImportError) as error:
        return ModuleSpec(fullname, _Refused(f"Saem does not offer it. {error}"))
    except AttributeError:
        return None
    if isinstance(found, ModuleType):
        return ModuleSpec(fullname, _SameModule(found.__name__))
    return ModuleSpec(fullname, _Refused("in Saem this name is no module."))
