"""What can a learner ask the lens to show?

Each function here takes a function (or nothing) and shows one view of it::

    lens.jaxpr(f)(x)        text, graph, StableHLO and fusions, linked
    lens.tracers(f)(x)      the source, with what each line sees while it is traced
    lens.steps(f)(x)        the jaxpr on real numbers, equation by equation
    lens.bench(f, "grad")(x)  before and after each transformation
    lens.autodiff(f)(x)     forward, backward, and what is kept between
    lens.compiled(f)(x)     what XLA made of it
    lens.recompiles()  lens.keys()  lens.devices()  lens.gates(folder)

A view is shown in every front end and prints as text; ``view.save("page.html")`` keeps it.

Read before: ``saem.observe``.  Read after: ``saem.lens.display``, ``saem.lens.magics``.
Invariant: looking at a function leaves no mark in the recorded history (tests/lens/test_views.py).
"""

from __future__ import annotations

import errno
import functools
import inspect
import pathlib
import reprlib
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import graphviz

from saem.core import tree
from saem.core.files import write_whole
from saem.core.jaxpr import ClosedJaxpr
from saem.jit.decorator import jit
from saem.lens.page import document
from saem.observe import language, report, words
from saem.observe.compiled import compiled_model
from saem.observe.devices import devices_model
from saem.observe.graph import dot
from saem.observe.jaxpr_model import jaxpr_model
from saem.observe.look import looking
from saem.observe.programs import (
    executable_of,
    flops,
    kernels,
    lowered,
    program,
    program_lines,
    with_statics,
)
from saem.observe.schema import JaxprModel, Model
from saem.observe.steps import steps_model
from saem.observe.texts import text_of
from saem.observe.transformed import autodiff_model
from saem.observe.xray import Xray
from saem.placement.devices import default_device
from saem.transform.programs import make_jaxpr

# Programs of more equations are shown without what XLA makes of them, which takes long.
_COMPILED = 400


class View:
    """Something the lens shows: ``model`` is its JSON model, ``lang`` the language it prints in."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.lang = language.current()

    def __repr__(self) -> str:
        return text_of(self.model, self.lang)

    def save(self, file: str | pathlib.Path) -> pathlib.Path:
        """Write the view as a page that needs neither kernel nor network; returns its path.

        Raises: FileNotFoundError if there is no such folder; OSError if it cannot be written.
        """
        target = pathlib.Path(file)
        if not target.parent.is_dir():  # a folder misspelt
            raise FileNotFoundError(errno.ENOENT, "There is no such folder", str(target.parent))
        title = getattr(self.model, "title", "") or words.say("panel.title", self.lang)
        write_whole(target, document(self.model, self.lang, title).encode())
        return target


class JaxprView(View):
    """A jaxpr; ``digraph()`` is its graph as a ``graphviz`` object."""

    model: JaxprModel

    def digraph(self) -> graphviz.Source:
        """The graph, to be rendered as ``.svg``, ``.png`` or ``.dot`` where Graphviz is
        installed."""
        return graphviz.Source(dot(self.model.body))


def _title(fun: Callable, before: str = "") -> str:
    name = getattr(fun, "__name__", None) or type(fun).__name__
    return f"{before}({name})" if before else name


class Waiting:
    """A view of a function that is shown when it is called with arguments of the function.

    What it traces leaves no mark in what is recorded.
    """

    def __init__(self, view: str, name: str, show: Callable[..., Any]) -> None:
        self._view, self._name, self._show = view, name, show

    def __call__(self, *args: Any, **named: Any) -> Any:
        with looking():
            return self._show(*args, **named)

    def __repr__(self) -> str:
        return words.say_plainly("view.waiting", view=self._view, name=self._name)


def of_function(view: Callable[..., Callable]) -> Callable[..., Any]:
    """Return ``view``, whose first argument is a function, with an error that says how to ask.

    Further arguments by position are texts.
    """
    @functools.wraps(view)
    def asked(fun: Any, *given: Any, **options: Any) -> Waiting:
        name = view.__name__
        if not callable(fun):
            raise TypeError(words.say_plainly("view.function", view=name, got=reprlib.repr(fun)))
        if not all(isinstance(x, str) for x in given):
            got = ", ".join(map(reprlib.repr, given))
            raise TypeError(words.say_plainly("view.arguments", view=name, got=got))
        return Waiting(name, _title(fun), view(fun, *given, **options))

    return asked


@of_function
def jaxpr(fun: Callable, **options: Any) -> Callable[..., JaxprView]:
    """Return a function that shows the jaxpr of ``fun`` for its arguments.

    With it come the StableHLO text and, of programs that are not very long, the kernels that XLA
    makes and the operations of each equation.  ``options`` are those of ``make_jaxpr``.
    """
    def show(*args: Any, **named: Any) -> JaxprView:
        if options:
            closed, where = make_jaxpr(fun, **options)(*args, **named), default_device()
        else:
            closed, where = program(fun, args, named)
        return JaxprView(linked(closed, _title(fun), where))

    return show


def linked(closed: ClosedJaxpr, title: str, where: Any) -> JaxprModel:
    """The model of a program with its StableHLO text and kernels, where it can be lowered alone."""
    count = len(str(closed).splitlines())
    try:
        text = lowered(closed, title, where)
        lines = program_lines(text)
        made = kernels(executable_of(text, where)) if count <= _COMPILED else None
    except Exception:  # a program for other devices or inside a mesh: shown without
        return jaxpr_model(closed, title)
    return jaxpr_model(closed, title, lines, made, flops(closed))


@of_function
def tracers(fun: Callable) -> Callable[..., View]:
    """Return a function that calls ``fun`` and shows what each line of each function of yours saw.

    ``fun`` is called as it is, under the transformations it has; one without any is traced by
    ``jit``.  An error of the call is shown at the end of the view, not raised.
    """
    called = jit(fun) if is_untransformed(fun) else fun

    def show(*args: Any, **named: Any) -> View:
        error: BaseException | None = None
        with Xray() as xray:
            try:
                called(*args, **named)
            except Exception as raised:
                error = raised
        return View(xray.model(_title(fun), error))

    return show


def is_untransformed(fun: Callable) -> bool:
    """Return whether ``fun`` is under no transformation yet.

    It is a function or method, an object with a method ``__call__``, or a ``partial`` of these.
    """
    if isinstance(fun, functools.partial):
        return is_untransformed(fun.func)
    if isinstance(fun, MethodType):
        return is_untransformed(fun.__func__)
    if isinstance(fun, FunctionType):
        return not hasattr(fun, "__wrapped__")
    return isinstance(inspect.getattr_static(type(fun), "__call__"), FunctionType)


@of_function
def steps(fun: Callable) -> Callable[..., View]:
    """Return a function that runs the jaxpr of ``fun`` on NumPy and shows every value.

    Equations that give the first NaN or infinity are marked.
    """
    def show(*args: Any, **named: Any) -> View:
        given = with_statics(fun, args, named)
        closed = make_jaxpr(given[0])(*given[1], **given[2])
        return View(steps_model(closed, tree.leaves(given[1:]), _title(fun)))

    return show


@of_function
def autodiff(fun: Callable) -> Callable[..., View]:
    """Return a function that shows the gradient of ``fun``: forward, backward, and what is kept."""
    def show(*args: Any, **named: Any) -> View:
        given, dynamic, rest = with_statics(fun, args, named)
        given = functools.partial(given, **rest) if rest else given
        return View(autodiff_model(given, dynamic, _title(fun, "grad")))

    return show


@of_function
def compiled(fun: Callable) -> Callable[..., View]:
    """Return a function that shows what XLA makes of ``fun``: kernels, costs, memory."""
    def show(*args: Any, **named: Any) -> View:
        closed, where = program(fun, args, named)
        return View(compiled_model(closed, _title(fun), where))

    return show


def keys() -> report.Keys:
    """Show the family trees of PRNG keys; a key used twice stands out."""
    return report.keys()


def recompiles(function: Any = None) -> report.History:
    """Show what was traced and compiled, when and why; of one function, if given."""
    return report.history(function)


def devices(names: dict[str, Any] | None = None) -> View:
    """Show where arrays are: of the notebook's variables, or of ``names``."""
    return View(devices_model(names or {}))
