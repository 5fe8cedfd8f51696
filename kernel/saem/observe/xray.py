"""What does each line of a traced function see: numbers, or only types, and transformed by what?

While ``Xray`` is on, every function of the user's that runs under a trace is followed line by line
(``sys.settrace``): after a line, the locals that it assigned are described.  Python's questions to
tracers (``bool``, ``int``, ``item`` …) are noted with their answers (by
``core.trace.state.watcher``), and loops that a trace unrolls are counted with the equations they
wrote.

Read before: ``core.trace``, ``saem.observe.schema.views``.  Read after: ``saem.lens.views``.
Invariant: outside the ``with`` block nothing is watched or traced, however it ends
(tests/lens/test_xray.py).
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import reprlib
import sys
import sysconfig
import types
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.core import paths, source, tree
from saem.core.avals import aval_of
from saem.core.trace import Trace, Tracer, eval_trace, is_concrete, state
from saem.observe import cards, words
from saem.observe.environment import environment
from saem.observe.messages import fill
from saem.observe.places import Places, places
from saem.observe.schema import (
    VERSION,
    Attempt,
    SeenFunction,
    SeenLine,
    SeenLoop,
    SeenValue,
    TracersModel,
)
from saem.transform.staging import Recorder
from saem.transform.vmap import BatchTrace, BatchTracer

# How many leaves of a container are looked at, and how many containers.
_MOST = 64
_SHOWN = (bool, int, float, complex, str, bytes, np.generic)
_NOT_VALUES = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)


def stack_of(tracer: Tracer) -> tuple[str, ...]:
    """The transformations that watch a tracer, outermost first, with batch axes and sizes."""
    batched: dict[int, BatchTracer] = {}
    value: Any = tracer
    while isinstance(value, Tracer):
        if isinstance(value, BatchTracer):
            batched[id(value._trace)] = value
        value = value.val if isinstance(value, BatchTracer) else getattr(value, "primal", None)
    return _names(list(tracer._trace.ancestors())[::-1], batched)


def _names(traces: list[Trace], batched: dict[int, BatchTracer] | None) -> tuple[str, ...]:
    """Names of interpreters; of a batch, along which axis the value in question is stacked."""
    names: list[str] = []
    for trace in traces:
        if not trace.stack:
            continue
        name = str(trace.stack[-1])
        if isinstance(trace, BatchTrace):
            name = f"{name}[{_mapped(trace, batched)}]"
        if name == "jvp" and names and names[-1] == "linearize":
            names[-1] = "grad"
        else:
            names.append(name)
    return tuple(names)


def _mapped(trace: BatchTrace, batched: dict[int, BatchTracer] | None) -> str:
    """The size of a batch and the axis of a value, in the notation of jaxprs; None: not mapped."""
    size = f"size={trace.size}"
    if batched is None:
        return size
    stack = batched.get(id(trace))
    return f"axis={None if stack is None else stack.dim} {size}"


def watchers() -> tuple[str, ...]:
    """The transformations in force now, outermost first."""
    return _names(list(state.trace.ancestors())[::-1], None)


# Python's own files and those of installed packages are not the learner's.
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


@functools.cache
def is_users(file: str) -> bool:
    """Whether code of this file is the learner's: neither the engine's nor a library's."""
    return not source.is_internal(file) and not file.startswith((*_LIBRARIES, "<string>"))


def describe(name: str, value: Any) -> SeenValue | None:
    """What a local variable holds; None for modules, functions and classes.

    Whatever a class of the learner's answers when it is asked, their program goes on.
    """
    try:
        return _describe(name, value)
    except Exception:
        return SeenValue(name, "plain", type(value).__name__, ())


def _describe(name: str, value: Any) -> SeenValue | None:
    if isinstance(value, Tracer):
        kind = "concrete" if is_concrete(value) else "abstract"
        seen = value.aval.str_short(True)
        return SeenValue(name, kind, seen, stack_of(value))  # type: ignore[arg-type]
    if isinstance(value, _jaxlib.Array):
        return SeenValue(name, "array", aval_of(value).str_short(True), ())
    if isinstance(value, np.ndarray):
        shape = ",".join(map(str, value.shape))
        return SeenValue(name, "plain", f"numpy {value.dtype}[{shape}]", ())
    if isinstance(value, _NOT_VALUES) or callable(value):
        return None
    if _inside(value) is not None:
        return _of_container(name, value)
    shown = f" {reprlib.repr(value)[:24]}" if isinstance(value, _SHOWN) else ""
    return SeenValue(name, "plain", f"{type(value).__name__}{shown}", ())


def _of_container(name: str, value: Any) -> SeenValue:
    """A container is what the least known of its leaves is."""
    described = [describe(name, leaf) for leaf in _leaves(value)]
    seen = [leaf for leaf in described if leaf is not None]
    order = ("abstract", "concrete", "array", "plain")
    kind = next((k for k in order if any(s.kind == k for s in seen)), "plain")
    types_seen = ", ".join(s.type for s in seen[:3]) + (", …" if len(seen) > 3 else "")
    stack = next((s.stack for s in seen if s.kind == kind), ())
    return SeenValue(name, kind, f"{type(value).__name__}({types_seen})", stack)  # type: ignore[arg-type]


def _leaves(value: Any) -> list[Any]:
    """The first leaves of a container.

    Unlike a pytree it may have keys that cannot be sorted, hold itself, or millions of others.
    """
    leaves: list[Any] = []
    entered: dict[int, Any] = {}
    waiting = [value]
    while waiting and len(leaves) < _MOST and len(entered) < _MOST:
        part = waiting.pop()
        inside = _inside(part)
        if inside is None:
            leaves.append(part)
        elif id(part) not in entered:
            entered[id(part)] = part
            waiting.extend([*islice(inside, _MOST)][::-1])
    return leaves


def _inside(value: Any) -> Iterable[Any] | None:
    """What a container holds; None for a value that is none, or cannot be asked."""
    if issubclass(type(value), dict):
        return value.values()
    if issubclass(type(value), (list, tuple)):
        return value
    try:
        return None if tree.all_leaves([value]) else tree.flatten_one_level(value)[0]
    except Exception:
        return None


class _Function:
    """What was seen of one function under one list of transformations, over all its calls."""

    def __init__(self, code: types.CodeType, stack: tuple[str, ...]) -> None:
        self.code = code
        self.stack = stack
        self.calls = 0
        self.arguments: dict[str, SeenValue] = {}
        self.lines: dict[int, dict[str, SeenValue]] = {}
        self.runs: Counter[int] = Counter()
        # The most often that a line ran in one call, and the equations it wrote there.
        self.most: Counter[int] = Counter()
        self.wrote: Counter[int] = Counter()
        self.whole = 0
        self.attempts: dict[tuple[int, str], Attempt] = {}
        self.result: SeenValue | None = None


class _Frame:
    """Follows one call of a function."""

    def __init__(self, function: _Function, frame: types.FrameType) -> None:
        self.function = function
        self.line = frame.f_lineno
        self.known = dict(frame.f_locals)
        self.runs: Counter[int] = Counter()
        self.wrote: Counter[int] = Counter()
        self.recorder = _recorder()
        self.count = self.first = _length(self.recorder)
        self.started = False
        function.calls += 1
        for name, value in self.known.items():
            seen = describe(name, value)
            if seen is not None:
                function.arguments[name] = seen

    def event(self, frame: types.FrameType, event: str, argument: Any) -> Callable | None:
        """Take in one event of the frame."""
        if event == "line":
            self.end_line(frame)
            self.line, self.started = frame.f_lineno, True
            self.function.runs[self.line] += 1
            self.runs[self.line] += 1
        elif event == "return":
            self.end_line(frame)
            if argument is not None:
                self.function.result = describe("return", argument)
            for line, count in self.runs.items():
                self.function.most[line] = max(self.function.most[line], count)
            for line, count in self.wrote.items():
                self.function.wrote[line] = max(self.function.wrote[line], count)
            self.function.whole = max(self.function.whole, self.count - self.first)
        return self.event

    def end_line(self, frame: types.FrameType) -> None:
        """Describe what the line that just ran has assigned, and count what it wrote."""
        if not self.started:
            return
        now = dict(frame.f_locals)
        assigned = self.function.lines.setdefault(self.line, {})
        for name, value in now.items():
            if name not in self.known or self.known[name] is not value:
                seen = describe(name, value)
                if seen is not None:
                    assigned[name] = seen
        self.known = now
        length = _length(self.recorder)
        self.wrote[self.line] += length - self.count
        self.count = length


def _recorder() -> Recorder | None:
    """The innermost interpreter that writes equations down."""
    return next((t for t in state.trace.ancestors() if isinstance(t, Recorder)), None)


def _length(recorder: Recorder | None) -> int:
    return 0 if recorder is None else len(recorder.eqns)


class Xray:
    """``with Xray() as xray:`` follows traced functions; ``xray.model()`` is what was seen."""

    def __init__(self, named: Places = places) -> None:
        self._places = named
        # By code and by the transformations it ran under.
        self._functions: dict[tuple[types.CodeType, tuple[str, ...]], _Function] = {}
        self._before: tuple[Any, Any] = (None, None)

    def __enter__(self) -> Xray:
        self._before = sys.gettrace(), state.watcher
        state.watcher = self._note
        sys.settrace(self._call)
        return self

    def __exit__(self, *_exc: object) -> None:
        before, state.watcher = self._before
        sys.settrace(before)

    def _call(self, frame: types.FrameType, event: str, _argument: Any) -> Callable | None:
        code = frame.f_code
        if event != "call" or state.trace is eval_trace or not is_users(code.co_filename):
            return None
        if code.co_name.startswith("<") and code.co_name != "<lambda>":
            return None
        return _Frame(self._function(code), frame).event

    def _function(self, code: types.CodeType) -> _Function:
        stack = watchers()
        return self._functions.setdefault((code, stack), _Function(code, stack))

    def _note(self, tracer: Tracer, what: str, allowed: bool) -> None:
        """Take in that Python asked ``tracer`` for numbers, and whether it got them."""
        found = source.capture(2)
        where = source.position(found)
        if where is None or found is None:
            return
        if not is_users(found[2]):
            return
        steps, _ = paths.path(tracer)
        name = steps[-1][0] if steps else ""
        says = fill(
            words.WORDS["xray.allowed" if allowed else "xray.refused"], what=what,
            type=tracer.aval.str_short(True), stack=" ▸ ".join(stack_of(tracer)))
        attempt = Attempt(where.line, what, name, allowed, says)
        self._function(found[0]).attempts[where.line, what] = attempt

    # ---- what was seen ----

    def model(self, title: str = "", error: BaseException | None = None) -> TracersModel:
        """What was seen so far; ``error`` is how the call ended."""
        functions = tuple(self._seen(f) for f in self._functions.values() if f.calls)
        said = None if error is None else f"{type(error).__name__}: {error}"
        explained = None if error is None or not cards.is_engines(error) else \
            cards.error_model(error, error.__traceback__, self._places)
        return TracersModel("tracers", VERSION, title, functions, said, environment(), explained)

    def _seen(self, function: _Function) -> SeenFunction:
        code = function.code
        first, texts = _source(code)
        cell = self._places.cell(code.co_filename)
        return SeenFunction(
            name=code.co_name,
            file=code.co_filename,
            label=self._places.block_label(code.co_filename),
            cell_id=None if cell is None else cell.cell_id,
            calls=function.calls,
            stack=function.stack,
            arguments=tuple(function.arguments.values()),
            lines=tuple(
                SeenLine(number, text, function.runs[number],
                         tuple(function.lines.get(number, {}).values()))
                for number, text in enumerate(texts, first)),
            attempts=tuple(function.attempts.values()),
            loops=tuple(_loops(function, first, texts)),
            result=function.result,
        )


def _source(code: types.CodeType) -> tuple[int, list[str]]:
    """The number of the first line of a function, and its lines."""
    lines = linecache.getlines(code.co_filename)
    first = code.co_firstlineno
    last = max((line for _, _, line in code.co_lines() if line), default=first)
    block = lines[first - 1 : last]
    if code.co_name != "<lambda>":
        try:
            block = inspect.getblock(lines[first - 1 :])
        except (IndentationError, SyntaxError, IndexError):
            pass
    return first, [line.rstrip("\n") for line in block]


def _loops(function: _Function, first: int, texts: list[str]) -> list[SeenLoop]:
    """The Python loops of a function that ran more than once in a call and wrote equations."""
    try:  # a function may be indented: a line of our own makes it the body of a block
        whole = ast.parse("\n".join(["if True:", *[f" {t}" for t in texts]]))
    except SyntaxError:
        return []
    loops = []
    for node in ast.walk(whole):
        if not isinstance(node, (ast.For, ast.While)):
            continue
        shift = first - 2
        begin, end = node.body[0].lineno + shift, (node.end_lineno or node.lineno) + shift
        times = function.most[begin]
        wrote = sum(n for line, n in function.wrote.items()
                    if node.lineno + shift <= line <= end)
        if times > 1 and wrote:
            share = round(100 * wrote / max(function.whole, 1))
            says = fill(words.WORDS["xray.loop"], times=times, equations=wrote, share=share)
            loops.append(SeenLoop(node.lineno + shift, times, wrote, says))
    return loops


def text(model: TracersModel, language: words.Language) -> str:
    """The annotated source as plain text."""
    why = [] if model.explained is None else [
        words.in_language(said, language)
        for said in (model.explained.title, model.explained.needed)]
    return "\n\n".join([*(_text(f, language) for f in model.functions),
                        *(["\n".join([*why, model.error])] if model.error else [])])


def _text(function: SeenFunction, language: words.Language) -> str:
    where = words.in_language(function.label, language)
    rows = [f"{function.name} ({where}): {' ▸ '.join(function.stack)}"]
    width = min(60, max([len(line.text) for line in function.lines], default=0))
    arguments = [_brief(a, language) for a in function.arguments]
    for number, line in enumerate(function.lines):
        notes = [_brief(v, language) for v in line.values] or (arguments if number == 0 else [])
        said = [s.says for s in function.attempts if s.line == line.line]
        said += [s.says for s in function.loops if s.line == line.line]
        notes += [words.in_language(says, language) for says in said]
        shown = f"{line.text:<{width}}  # {'; '.join(notes)}" if notes else line.text
        rows.append(f"{line.line:>4}  {shown}")
    return "\n".join(rows)


def _brief(value: SeenValue, language: words.Language) -> str:
    kind = words.say(f"xray.{value.kind}", language)
    return f"{value.name}: {value.type} ({kind})"
