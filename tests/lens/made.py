"""Events and signatures made by hand, as the engine would publish them."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from saem.core import events


def function(name: str = "step", file: str = "model.py", identity: int = 1, line: int = 3):
    return events.FunctionRef(name, name, "__main__", file, line, identity)


def argument(path: str = "x", shape: tuple[int, ...] = (3,), **changes: Any) -> events.Argument:
    plain = events.Argument(path, shape, "f32", False, False, "cpu:0", "array", "position")
    return dataclasses.replace(plain, **changes)


def static(path: str, value: Any, given: str = "position") -> events.StaticArgument:
    return events.StaticArgument(path, repr(value), hash(value), given)


def signature(*arguments: events.Argument, **changes: Any) -> events.Signature:
    plain = events.Signature(arguments, (), "((*,), {})", (), (("enable_x64", "False"),))
    return dataclasses.replace(plain, **changes)


def position(file: str = "model.py", line: int = 9) -> events.Position:
    return events.Position(file, line, 4, line, 12, "<module>")


def miss(fun: events.FunctionRef, called_with: events.Signature, **base: Any) -> events.CacheMiss:
    return events.CacheMiss(function=fun, signature=called_with, caller=position(), **base)


def trace_end(fun: events.FunctionRef, seconds: float = 0.002, **base: Any) -> events.TraceEnd:
    return events.TraceEnd(function=fun, transform="jit", seconds=seconds, equations=5, **base)


def compiled(fun: events.FunctionRef, found: bool = False, **base: Any) -> events.Compile:
    return events.Compile(
        function=fun,
        program="abc",
        found=found,
        seconds=0.0 if found else 0.03,
        flops=12.0,
        bytes_accessed=48.0,
        code_bytes=None,
        argument_bytes=24,
        output_bytes=12,
        temp_bytes=0,
        **base,
    )


def whole_call(bus: events.Bus, fun: events.FunctionRef, called_with: events.Signature,
               found: bool = False) -> None:
    """Publish the events of one call that missed, was traced and compiled (or found)."""
    bus.publish(miss(fun, called_with, time=time.time()))
    bus.publish(trace_end(fun))
    bus.publish(events.Lowering(function=fun, seconds=0.001, characters=200, program="abc"))
    bus.publish(compiled(fun, found))
