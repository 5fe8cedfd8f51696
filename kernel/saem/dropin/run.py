"""How does ``python -m saem run script.py`` run a program written for JAX on Saem?

The drop-in is installed; then the program runs as Python itself would run it: as the module
``__main__``, with its own ``sys.argv`` and ``sys.path[0]``::

    python -m saem run train.py --epochs 3
    python -m saem run -m pytest tests
    python -m saem run -c 'import jax; print(jax.__version__)'

Read before: ``saem.dropin``.
Invariant: but for ``import jax``, a program cannot tell the difference from ``python script.py``:
arguments, exit status, ``__main__``, standard input (tests/kernel/test_dropin.py).  The traceback
of an error that ends it begins in the program too, and leaves out the engine's frames.
"""

from __future__ import annotations

import builtins
import importlib.util
import io
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import BuiltinImporter, PathFinder, SourceFileLoader
from types import ModuleType

from saem import dropin

USAGE = """\
usage: python -m saem run (script.py | -m module | -c code | -) [arguments]

Run a Python program with `import jax` answered by Saem. The rest of the line is the program's own.
"""


def main(arguments: Sequence[str]) -> None:
    """Run the program that ``arguments`` name; what it raises, SystemExit included, goes on."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        raise SystemExit(0 if arguments else 2)
    first, rest = arguments[0], list(arguments[1:])
    if first in ("-m", "-c") and not rest:
        print(f"saem run: {first} needs {'a module' if first == '-m' else 'code'}.\n{USAGE}",
              end="", file=sys.stderr)
        raise SystemExit(2)
    dropin.install()
    if first == "-m":
        _set(["-m", *rest[1:]], os.getcwd())
        sys.argv[0] = rest[0]  # runpy replaces it by the module's file
        _run_module(rest[0])
    elif first == "-c":
        _set(["-c", *rest[1:]], "")
        _run_code(rest[0], "<string>")
    elif first == "-":
        _set(["-", *rest], "")
        _run_code(sys.stdin.read(), "<stdin>")
    elif os.path.isdir(first) or first.endswith((".zip", ".pyz")):
        if os.path.isdir(first) and PathFinder.find_spec("__main__", [first]) is None:
            print(f"saem run: {first!r} is a folder without a __main__.py. Name the script in it.",
                  file=sys.stderr)
            raise SystemExit(1)
        _set([first, *rest], None)
        runpy.run_path(first, run_name="__main__")
    else:
        _set([first, *rest], os.path.dirname(os.path.realpath(first)))
        _run_script(first)


def _set(argv: list[str], folder: str | None) -> None:
    """Give the program its arguments, and ``folder`` as the first place of imports."""
    sys.argv[:] = argv
    if folder is not None and not sys.flags.safe_path:
        sys.path[0] = folder


def _run_module(name: str) -> None:
    """Run a module as ``__main__``; exits with status 1 if there is none, as Python does."""
    try:
        found = importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:  # a package above it is missing
        print(f"saem run: no module named {name!r}: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    if not found:
        print(f"saem run: no module named {name!r} in {sys.path[0]!r} or among those installed in "
              f"{sys.executable}", file=sys.stderr)
        raise SystemExit(1)
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _run_script(path: str) -> None:
    """Run the file at ``path`` as ``__main__``; exits with status 2 if it cannot be read."""
    try:
        with io.open_code(os.path.abspath(path)) as file:
            code = file.read()
    except OSError as error:
        print(f"saem run: can't open file {os.path.abspath(path)!r}: [Errno {error.errno}] "
              f"{error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None
    _run_code(code, os.path.abspath(path))


def _run_code(code: str | bytes, filename: str) -> None:
    """Run ``code`` as the module ``__main__``, which stays in ``sys.modules`` until the end."""
    main = ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __annotations__={}, __file__=filename,
                         __cached__=None, __loader__=SourceFileLoader("__main__", filename))
    if filename.startswith("<"):
        del main.__file__
        main.__loader__ = BuiltinImporter
    sys.modules["__main__"] = main
    exec(compile(code, filename, "exec", dont_inherit=True), main.__dict__)
