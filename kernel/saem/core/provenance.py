"""Which function, places and names does a program come from?

A jaxpr has the function that was traced and the names of its arguments and results; an equation has
the line and the named scopes in which it was written.  The engine keeps little of that (a code
object, structures, a stack of names); what is here is computed on request.

Read before: ``core.source``.  Read after: ``core.jaxpr``, ``core.pretty``.
Invariant: reading changes nothing, and nothing here keeps a traced function alive.
Source: observed behaviour of JAX 0.10.2 (``jaxpr.debug_info``, ``eqn.source_info``, ``eqn.ctx``).
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from saem.core import config, errors, source, tree
from saem.core.record import Record
from saem.core.trace import Scope as ScopeName
from saem.core.trace import Wrapping, inside_program


class DebugInfo(NamedTuple):
    """Where a traced function came from, and what its arguments and results are called."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str | None, ...] | None
    result_paths: Any

    @property
    def func_name(self) -> str:
        return self.func_src_info.split(" at ")[0]

    @property
    def func_filename(self) -> str | None:
        place = self.func_src_info.partition(" at ")[2]
        return place.rpartition(":")[0] or None

    @property
    def func_lineno(self) -> int | None:
        line = self.func_src_info.rpartition(":")[2]
        return int(line) if line.isdigit() else None

    def safe_arg_names(self, count: int) -> tuple[str | None, ...]:
        """Return the names of ``count`` arguments, empty ones if they are not known."""
        return names_for(self.arg_names, count)

    def safe_result_paths(self, count: int) -> tuple[str | None, ...]:
        """Return the paths of ``count`` results, empty ones if they are not known."""
        return names_for(self.result_paths, count)

    def filter_arg_names(self, keep: Iterable[bool]) -> tuple[str | None, ...]:
        """Return the names of the arguments that are kept."""
        return tuple(n for n, k in zip(self.arg_names or (), keep) if k)

    def filter_result_paths(self, keep: Iterable[bool]) -> tuple[str | None, ...]:
        """Return the paths of the results that are kept."""
        return tuple(n for n, k in zip(self.result_paths or (), keep) if k)

    def with_unknown_names(self) -> DebugInfo:
        return self._replace(arg_names=None, result_paths=None)

    def resolve_result_paths(self) -> DebugInfo:
        return self


def names_for(names: Sequence[Any] | None, count: int) -> tuple:
    """Return ``names`` if they are as many as ``count``; what came before them has none."""
    if names is None or len(names) > count:
        return ("",) * count
    return (None,) * (count - len(names)) + tuple(names)


def info_of(jaxpr: Any) -> DebugInfo:
    """Return what is known of the origin of ``jaxpr``, in full."""
    origin = jaxpr.origin
    if isinstance(origin, DebugInfo):
        return origin
    if origin is None:
        count, results = len(jaxpr.invars), len(jaxpr.outvars)
        return DebugInfo("unknown", jaxpr.debug_name or "<unknown>", ("",) * count,
                         ("",) * results)
    code = origin.code
    place = "" if code is None else (
        f" at {errors.file_name(code.co_filename)}:{code.co_firstlineno}")
    names = origin.arg_names
    if names is None and origin.in_tree is not None:
        names = names_from_tree(code, origin.in_tree)
    return DebugInfo(
        origin.traced_for, f"{origin.name}{place}", names_for(names, len(jaxpr.invars)),
        names_for([f"result{path}" for path in paths_of(origin.out_tree)], len(jaxpr.outvars)))


def names_from_tree(code: types.CodeType | None, in_tree: Any) -> list[str]:
    """Return the names of the leaves of a tuple of positional arguments."""
    known = () if code is None else code.co_varnames[:code.co_argcount]
    known = known[1:] if known[:1] == ("self",) else known
    found = []
    for path, _ in tree.flatten_with_path(in_tree.unflatten(range(in_tree.num_leaves)))[0]:
        number = path[0].idx
        name = known[number] if number < len(known) else f"args[{number}]"
        found.append(name + tree.keystr(path[1:]))
    return found


def paths_of(treedef: Any) -> list[str]:
    """Return how each leaf of ``treedef`` is written behind the name of the whole."""
    leaves = tree.flatten_with_path(treedef.unflatten(range(treedef.num_leaves)))[0]
    return [tree.keystr(path) for path, _ in leaves]


# -- of an equation --------------------------------------------------------------------------------


class Scope(Record):
    """A name on a stack that the user gave: ``with jax.named_scope(name)``."""

    name: str


class Transform(Record):
    """A name on a stack that a transformation left: ``jvp``, ``vmap``, ``transpose``."""

    name: str


_SHOWN = ("jvp", "vmap", "transpose")


class NameStack(Record):
    """The scopes and transformations an equation was written under, the outermost first."""

    stack: tuple[Any, ...] = ()

    def extend(self, name: str) -> NameStack:
        """Return the stack inside the scope ``name``."""
        return NameStack((*self.stack, Scope(name)))

    def transform(self, name: str) -> NameStack:
        """Return the stack under the transformation ``name``."""
        return NameStack((*self.stack, Transform(name)))

    def __add__(self, inner: NameStack) -> NameStack:
        """Return this stack with ``inner`` inside it."""
        return NameStack((*self.stack, *inner.stack)) if isinstance(inner, NameStack) \
            else NotImplemented

    def __str__(self) -> str:
        """Return the scopes as a path; a transformation encloses the first name inside it."""
        path: list[str] = []
        for entry in reversed(self.stack):
            if isinstance(entry, Scope):
                path.insert(0, entry.name)
            else:
                path[:1] = [f"{entry.name}({path[0] if path else ''})"]
        return "/".join(path)


def name_stack(stack: tuple[str, ...]) -> NameStack:
    """Return the names on an equation's stack inside its program.

    What is transposed is the linear part of a jvp, which is named even if it left long ago.
    """
    found: list[Any] = []
    named = (ScopeName, Wrapping)
    names = [name for name in inside_program(stack) if type(name) in named or name in _SHOWN]
    for name, inner in zip(names, [*names[1:], ""]):
        found.append(Scope(str(name)) if type(name) is ScopeName else Transform(str(name)))
        if name == "transpose" and inner != "jvp":
            found.append(Transform("jvp"))
    return NameStack(tuple(found))


def as_entries(names: NameStack) -> tuple[str, ...]:
    """Return how the stack of an equation holds ``names``."""
    return tuple([ScopeName(x.name) if isinstance(x, Scope) else Wrapping(x.name)
                  for x in names.stack])


class Frame(Record):
    """A place in a file, as a traceback shows it."""

    file_name: str
    function_name: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int

    @property
    def line_num(self) -> int:
        return self.start_line


def _own_frame() -> types.FrameType:
    return sys._getframe()


class Traceback(Record):
    """The place of an equation in user code: one frame, or none."""

    source: Any = None

    @property
    def frames(self) -> tuple[Frame, ...]:
        where = source.position(self.source)
        return () if where is None else (Frame(
            where.file, where.function, where.line, where.column, where.end_line,
            where.end_column),)

    def as_python_traceback(self) -> types.TracebackType | None:
        """Return it as the traceback of an exception that was raised there, None for no place."""
        found = None
        for frame in self.frames:
            code = _own_frame.__code__.replace(co_filename=frame.file_name,
                                               co_name=frame.function_name)
            found = types.TracebackType(found, types.FunctionType(code, globals())(), -1,
                                        frame.line_num)
        return found

    def __str__(self) -> str:
        return "\n".join(f"{f.file_name}:{f.line_num} ({f.function_name})" for f in self.frames)

    __repr__ = __str__


class SourceInfo:
    """Where an equation was written, and under which names."""

    __slots__ = ("source", "stack", "name_stack")

    def __init__(self, traceback: Traceback | None, name_stack: NameStack):
        self.source = None if traceback is None else traceback.source
        self.stack = as_entries(name_stack)
        self.name_stack = name_stack

    @classmethod
    def of(cls, where: source.Source | None, stack: tuple[str, ...]) -> SourceInfo:
        """Return that of an equation."""
        made = cls(Traceback(where), name_stack(stack))
        made.stack = stack
        return made

    @property
    def traceback(self) -> Traceback | None:
        return None if self.source is None else Traceback(self.source)

    def replace(self, *, traceback: Traceback | None = None, name_stack: NameStack | None = None
                ) -> SourceInfo:
        """Return this with another place or other names; the stack of transformations stays."""
        where = self.source if traceback is None else traceback.source
        made = SourceInfo.of(where, self.stack)
        if name_stack is not None:
            added = NameStack(name_stack.stack[len(self.name_stack.stack):])
            made.stack = (*self.stack, *as_entries(added))
            made.name_stack = name_stack
        return made

    def __repr__(self) -> str:
        return f"SourceInfo({summary(self.source)!r}, {str(self.name_stack)!r})"


def summary(where: source.Source | None) -> str:
    """Return ``file:line:column (function)``, nothing if it is not known."""
    place = source.position(where)
    if place is None:
        return ""
    return f"{errors.file_name(place.file)}:{place.line}:{place.column} ({place.function})"


class JaxprEqnContext(Record):
    """The settings an equation was written under; ``manager`` puts them in force again."""

    compute_type: str | None = None
    threefry_partitionable: bool = True
    xla_metadata: Any = None

    @property
    def manager(self) -> contextlib.AbstractContextManager:
        return contextlib.nullcontext()

    @staticmethod
    def now() -> JaxprEqnContext:
        """Return the settings in force."""
        return JaxprEqnContext(threefry_partitionable=bool(config.threefry_partitionable.value))
