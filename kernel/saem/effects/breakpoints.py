"""How does one look around in the middle of a compiled program?

``breakpoint()`` notes the frames it is called from; the traced values in their variables become
operands of a debug callback, which puts them back and reads commands, in a terminal or a notebook
until the command to go on.

Read before: ``effects.callbacks``.  Read after: ``saem.debug``.
Invariant: no variable of a frame is changed, and without a breakpoint nothing here runs.
Source: the documentation of jax.debug.breakpoint.
"""

from __future__ import annotations

import cmd
import functools
import linecache
import os
import pprint
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from saem.core import errors, source, tree
from saem.core.trace import Tracer
from saem.effects.callbacks import debug_callback

_AROUND = 5
_RUNS_CELLS = f"{os.sep}IPython{os.sep}"


class DebuggerQuit(RuntimeError):
    """The user left a breakpoint by ``q``: the program was given up."""


class Frame:
    """One frame of the user's code: where it stands and its variables."""

    def __init__(self, frame: FrameType):
        self.file = frame.f_code.co_filename
        self.line = frame.f_lineno
        lines = [line for _, _, line in frame.f_code.co_lines() if line]
        self.lines = range(min(lines), max(lines) + 1)
        self.function = frame.f_code.co_name
        self.globals = frame.f_globals
        at_module = frame.f_locals is frame.f_globals
        self.variables: dict[str, Any] = {} if at_module else dict(frame.f_locals)

    def context(self) -> str:
        """Return the lines around, the current one marked."""
        shown = [f"> {errors.file_name(self.file)}({self.line})"]
        for number in range(self.line - _AROUND, self.line + _AROUND + 1):
            text = linecache.getline(self.file, number).rstrip()
            if number in self.lines and (text or number == self.line):
                shown.append(f"{'->' if number == self.line else '  '}  {text}")
        return "\n".join(shown)


def user_frames(frame: FrameType | None, filtered: bool, count: int | None) -> list[Frame]:
    """Return the frames from ``frame`` outwards, without the engine's if ``filtered``.

    What runs a notebook's cells is not the user's either: the cell is the outermost frame.
    """
    found: list[Frame] = []
    while frame is not None and (count is None or len(found) < count):
        if filtered and _RUNS_CELLS in frame.f_code.co_filename:
            break
        if not (filtered and source.is_internal(frame.f_code.co_filename)):
            found.append(Frame(frame))
        frame = frame.f_back
    return found


class Stop:
    """The callback of one breakpoint: puts values into the frames and opens the debugger."""

    __name__ = "breakpoint"

    def __init__(self, frames: list[Frame], open_debugger: Callable[[list[Frame]], None]):
        self.open_debugger = open_debugger
        self.frames = frames
        self.tracers: list[Tracer] = []
        self.places: list[tuple[dict[str, Any], str, Any, list[Any]]] = []
        for frame in frames:
            for name, value in frame.variables.items():
                self.note(frame.variables, name, value)

    def note(self, variables: dict[str, Any], name: str, value: Any) -> None:
        """Remember a variable that holds traced values, alone or in a pytree."""
        try:
            if not is_tree(value):
                return
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of values that are none of the program's
                leaves, structure = tree.flatten(value)
        except Exception:  # keys that are not sorted, or a node that needs more than is there
            return
        if any(isinstance(x, Tracer) and x._trace.live for x in leaves):
            numbers: list[Any] = []
            for x in leaves:
                if isinstance(x, Tracer) and x._trace.live:
                    numbers.append((len(self.tracers),))
                    self.tracers.append(x)
                else:
                    numbers.append(x)
            self.places.append((variables, name, structure, numbers))

    def __call__(self, *values: Any) -> None:
        for variables, name, structure, leaves in self.places:
            variables[name] = structure.unflatten(
                [values[x[0]] if isinstance(x, tuple) else x for x in leaves])
        self.open_debugger(self.frames)


def is_tree(x: Any, around: tuple = ()) -> bool:
    """Return whether no container in ``x`` is inside itself, and all keys of dicts can be sorted.

    A frame may hold anything.  Each level of a container that jaxlib gives up lowers for good how
    many calls Python allows, so it is not asked.
    """
    if not isinstance(x, (list, tuple, dict)):
        return True
    if any(x is outer for outer in around):
        return False
    if isinstance(x, dict):
        sorted(x)
    inside = x.values() if isinstance(x, dict) else x
    return all(is_tree(child, (*around, x)) for child in inside)


class Debugger(cmd.Cmd):
    """Reads commands about ``frames`` (innermost first) until the command to go on."""

    prompt = "(jdb) "
    nohelp = "No help on %s: commands are p, pp, u, d, l, bt, c, q."

    def __init__(self, frames: list[Frame], stdin: Any = None, stdout: Any = None):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames = frames
        self.at = 0

    def write(self, *lines: str) -> None:
        print(*lines, sep="\n", file=self.stdout)

    def show(self, expression: str, form: Callable[[Any], str]) -> None:
        """Print the value of ``expression`` in the current frame, or why it has none."""
        frame = self.frames[self.at]
        try:
            value = eval(expression, frame.globals, dict(frame.variables))
        except Exception as error:
            self.write(f"*** {type(error).__name__}: {error}")
        else:
            self.write(form(value))

    def do_p(self, expression: str) -> None:
        """p expression: print its value in the current frame."""
        self.show(expression, repr)

    def do_pp(self, expression: str) -> None:
        """pp expression: print its value over several lines."""
        self.show(expression, pprint.pformat)

    def do_u(self, _: str) -> None:
        """u(p): go to the caller's frame."""
        if self.at == len(self.frames) - 1:
            self.write("At topmost frame.")
        self.at = min(self.at + 1, len(self.frames) - 1)
        self.do_l("")

    def do_d(self, _: str) -> None:
        """d(own): go back towards the breakpoint."""
        if self.at == 0:
            self.write("At bottommost frame.")
        self.at = max(self.at - 1, 0)
        self.do_l("")

    def do_l(self, _: str) -> None:
        """l(ist): show the lines around."""
        self.write(self.frames[self.at].context())

    def do_bt(self, _: str) -> None:
        """bt, w(here): show the frames, the breakpoint's last."""
        self.write("Traceback:")
        for frame in reversed(self.frames):
            self.write(f"  File {errors.file_name(frame.file)!r}, line {frame.line}, "
                     f"in {frame.function}",
                     f"    {linecache.getline(frame.file, frame.line).strip()}")

    def do_c(self, _: str) -> bool:
        """c(ont), continue: let the program run on."""
        return True

    def do_q(self, _: str) -> bool:
        """q(uit), exit: give the program up."""
        raise DebuggerQuit("the program was given up at a breakpoint (command q)")

    do_print = do_p
    do_up, do_down, do_list = do_u, do_d, do_l
    do_w = do_where = do_bt
    do_cont = do_continue = do_c
    do_quit = do_exit = do_EOF = do_q

    def default(self, line: str) -> None:
        """Take a non-command as an expression."""
        self.do_p(line)

    def emptyline(self) -> bool:
        return False


def read_commands(frames: list[Frame], stdin: Any = None, stdout: Any = None) -> None:
    """Open the debugger on ``frames``, with input from where Python's ``input`` reads.

    A file given as ``stdin`` or ``stdout`` takes the place of the terminal.
    """
    debugger = Debugger(frames, stdin, stdout)
    debugger.write("Entering jdb:")
    debugger.stdout.flush()
    debugger.cmdloop()


def breakpoint(*, backend: str | None = None, filter_frames: bool = True,
               num_frames: int | None = None, ordered: bool = False, token: Any = None,
               **kwargs: Any) -> None:
    """Stop here when the program runs, and read commands: p, up, down, c, q (help lists them).

    Variables that hold traced arrays show their values.  ``num_frames`` limits the frames,
    ``ordered`` keeps several breakpoints in the order of the program; commands are read from the
    files ``stdin`` and answers written to ``stdout`` where these are given.

    Raises: ValueError for an unknown backend; DebuggerQuit, as the failure of a callback, after q.
    """
    if backend not in (None, "cli"):
        raise errors.explained(
            errors.ArgumentError, "breakpoint.C1",
            f"Debugger backend {backend!r} is not there.",
            advice="Leave it out, or use 'cli': it reads commands in a terminal and in a notebook.")
    commands = functools.partial(read_commands, **kwargs) if kwargs else read_commands
    stop = Stop(user_frames(sys._getframe(1), filter_frames, num_frames), commands)
    debug_callback(stop, *stop.tracers, ordered=ordered)
