"""How is an executable found that was compiled before?

Executables are found by content: the text without locations, with options and device, is the key.
A function traced again (a lambda made anew, a cell run again) whose program is the same is not
compiled again.

Read before: ``compile.lowering``.  Read after: ``compile.dispatch``.
Invariant: while a program is kept, one compilation per key, whatever the number of threads
(tests/kernel/test_jit.py).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile import libraries
from saem.compile.faults import sound_options
from saem.compile.lowering import Lowering
from saem.compile.mlir import parse
from saem.compile.quick import SameRounding, quick_options
from saem.core import config, errors
from saem.core.dimensions import Dim, variables
from saem.core.events import Compile, FunctionRef, OperationLoaded, bus
from saem.core.events import Lowering as LoweringEvent
from saem.core.jaxpr import ClosedJaxpr
from saem.core.lazy import later

hashlib: Any = later("hashlib")  # no program, no key
logging: Any = later("logging")  # only settings that log need it

disk_cache: Any = None  # the chapter on programs kept on disk (saem._wiring)

CAPACITY = 4096

_executables: OrderedDict[str, Any] = OrderedDict()
_costs: dict[str, dict[str, Any]] = {}
_locks: dict[str, threading.Lock] = {}
# Numbers (``id``) of executables that were read from disk, and perhaps of some that were not.
_read: set[int] = set()
_lock = threading.Lock()


def content_key(text: str, devices: Sequence[Any], options: dict[str, Any],
                callbacks: Sequence[Any] = ()) -> str:
    """Return the hex key of a program: its text, where it runs and how it is compiled.

    Programs that call Python are the same only if they call the same functions.
    """
    digest = hashlib.sha256(text.encode())
    where = devices[0].platform, tuple(d.id for d in devices)
    digest.update(repr((where, sorted(options.items()))).encode())
    if callbacks:
        digest.update(repr([function.number for function in callbacks]).encode())
    return digest.hexdigest()[:32]


# Options that are fields of XLA's own record; all others are its flags.
BUILD_OPTIONS = ("exec_time_optimization_effort", "memory_fitting_effort", "optimization_level",
                 "memory_fitting_level", "fdo_profile")


# XLA's numbers for the levels that settings name (xla.proto, ``ExecutionOptions.EffortLevel``).
_LEVELS = {"UNKNOWN": 0, "O0": 9, "O1": 19, "O2": 29, "O3": 39}


def settings_options() -> dict[str, Any]:
    """Return the compile options that settings ask for, of all programs."""
    found: dict[str, Any] = {}
    if config.disable_most_optimizations.value:
        found = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    if not config.compiler_enable_remat_pass.value:
        found["xla_disable_hlo_passes"] = "rematerialization"
    for setting in (config.exec_time_optimization_effort, config.memory_fitting_effort,
                    config.optimization_level, config.memory_fitting_level):
        value = setting.value
        if value is not None and value != setting.declared.default:
            found[setting.declared.name] = _LEVELS.get(value, value)
    return found


def compile_options(devices: Sequence[Any], options: dict[str, Any]) -> Any:
    """Return XLA's options for ``devices``, with ``options`` by name."""
    made = _jaxlib.CompileOptions()
    made.num_replicas = 1
    made.num_partitions = len(devices)
    # Without it the program is loaded on this device but runs on the first one.
    made.device_assignment = _jaxlib.DeviceAssignment.create(
        np.array([[d.id for d in devices]], np.int32))
    build = made.executable_build_options
    build.memory_fitting_level = _LEVELS["O2"]
    # On one device, too: without it XLA refuses sums over a mesh of arrays of several ranks.
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = True
    if len(devices) > 1:
        build.num_partitions = len(devices)
        build.device_assignment = made.device_assignment
        build.allow_spmd_sharding_propagation_to_output = [True]
    flags = []
    for name, value in options.items():
        if name in BUILD_OPTIONS:
            if not hasattr(build, name):  # newer ones have levels alone
                raise errors.explained(
                    errors.ArgumentError, "compile.option",
                    f"No such compile option: '{name}' is none of jaxlib {_jaxlib.__version__}'s.",
                    advice="Leave it out, or choose a level: optimization_level, "
                    "memory_fitting_level.")
            setattr(build, name, value)
        else:
            flags.append((name, _option_text(value)))
    made.env_option_overrides = flags
    return made


def _option_text(value: Any) -> Any:
    return value if isinstance(value, (str, bool, int, float)) else str(value)


def all_options(lowered: Lowering, devices: Sequence[Any], options: dict[str, Any] | None,
                same_rounding: SameRounding = False) -> dict[str, Any]:
    """Return the options by which ``lowered`` is compiled: those given, else quick ones or none."""
    options = options or ({} if lowered.module.callbacks else
                          quick_options(lowered.closed, devices, same_rounding))
    return {**sound_options(lowered.closed, devices), **settings_options(), **options}


def check_sizes(closed: ClosedJaxpr | None) -> None:
    """Refuse a program of sizes that have no value.  Raises: ArgumentError."""
    avals = [] if closed is None else [*closed.in_avals, *closed.out_avals]
    sizes = [size for aval in avals for size in getattr(aval, "shape", ()) if type(size) is Dim]
    if sizes:
        names = ", ".join(f"'{name}'" for name in sorted(set().union(*map(variables, sizes))))
        raise errors.explained(
            errors.ArgumentError, "compile.symbolic",
            f"A program of symbolic sizes cannot run: no argument says what {names} stands for.",
            advice="jax.export, jax.eval_shape and jax.make_jaxpr take symbolic sizes; to run, "
            "give numbers.")


def find_or_compile(lowered: Lowering, devices: Sequence[Any], function: FunctionRef | None = None,
                    options: dict[str, Any] | None = None, lowering_seconds: float = 0.0,
                    same_rounding: SameRounding = False) -> Any:
    """Return the loaded executable of ``lowered`` on ``devices``.

    ``same_rounding``: all code generators of XLA round its products and sums the same way.
    Raises: JaxRuntimeError if XLA refuses the program; ArgumentError if a size has no value.
    """
    check_sizes(lowered.closed)
    options = all_options(lowered, devices, options, same_rounding)
    key = content_key(lowered.text, devices, options, lowered.module.callbacks)
    watched = bus.active and function is not None
    if watched:
        bus.publish(LoweringEvent(function=function, seconds=lowering_seconds,
                                  characters=len(lowered.text), program=key))
    begin = time.perf_counter()
    executable = _executables.get(key)
    found, disk = executable is not None, ""
    if not found:
        executable, found, disk = made_once(key, lowered, devices, options)
    seconds = time.perf_counter() - begin
    if config.log_compiles.value:
        _log(lowered, seconds, lowering_seconds, found)
    if bus.active and function is None and disk == "found":
        bus.publish(OperationLoaded(name=lowered.name, seconds=seconds))
    if watched:
        bus.publish(Compile(function=function, program=key, found=found, seconds=seconds, disk=disk,
                            **kept_costs(key, executable)))
    return executable


def made_once(key: str, lowered: Lowering, devices: Sequence[Any], options: dict[str, Any]
              ) -> tuple[Any, bool, str]:
    """Return an executable, whether it was compiled before, and what the cache on disk had.

    A thread that needs a program which another one compiles waits for it.
    """
    with _lock:
        lock = _locks.setdefault(key, threading.Lock())
    try:
        with lock:
            executable = _executables.get(key)
            found, disk = executable is not None, ""
            if not found:
                executable, disk = load_or_compile(key, lowered, devices, options)
                _executables[key] = executable
                if len(_executables) > CAPACITY:
                    _executables.popitem(last=False)
    finally:
        _locks.pop(key, None)
    return executable, found or disk == "found", disk


def load_or_compile(key: str, lowered: Lowering, devices: Sequence[Any], options: dict[str, Any]
                    ) -> tuple[Any, str]:
    """Return an executable, and what the cache on disk had: '' if it was not used."""
    libraries.load(lowered.module.libraries, lowered.module.platform)
    entry = None
    if config.enable_compilation_cache.value and not lowered.module.callbacks:
        entry = disk_cache.entry(key, lowered.symbol(), devices, compile_options(devices, options))
    if entry is None:
        return _compile(lowered, devices, options), ""
    executable, disk = entry.load()
    if executable is not None:
        _read.add(id(executable))
    else:
        begin = time.perf_counter()
        executable = _compile(lowered, devices, options)
        entry.store(executable, time.perf_counter() - begin, replace=disk == "damaged")
    return executable, disk


def as_bytes(executable: Any, lowered: Lowering, devices: Sequence[Any],
             options: dict[str, Any] | None, same_rounding: SameRounding = False) -> bytes:
    """Return ``executable`` as bytes: what ``find_or_compile`` gave for the other arguments.

    XLA cannot write what it has read (the code would be missing), nor a sort that has run; such a
    program is compiled again.
    Raises: JaxRuntimeError if the platform cannot write programs.
    """
    if id(executable) not in _read:
        try:
            return executable.serialize()
        except _jaxlib.JaxRuntimeError:
            pass
    options = all_options(lowered, devices, options, same_rounding)
    return _compile(lowered, devices, options).serialize()


def _compile(lowered: Lowering, devices: Sequence[Any], options: dict[str, Any]) -> Any:
    mine = [d for d in devices if d.process_index == d.client.process_index()]
    client = (mine or devices)[0].client
    text, how, functions = (lowered.located_text(), compile_options(devices, options),
                            lowered.module.callbacks)
    if len(devices) == 1 and lowered.module.meshes and not functions:
        # XLA runs its passes for meshes on one device only over what it has parsed itself.
        return backend_compile_and_load(client, text, list(devices), how)
    return backend_compile_and_load(client, parse(text), _jaxlib.DeviceList(tuple(devices)), how,
                                    functions)


def backend_compile_and_load(backend: Any, program: Any, devices: Any, options: Any,
                             callbacks: Sequence[Any] = ()) -> Any:
    """Return ``program`` compiled by ``backend``, a client of XLA, and loaded on ``devices``."""
    if not callbacks:
        return backend.compile_and_load(program, devices, options)
    return backend.compile_and_load(program, devices, options, callbacks)


def _log(lowered: Lowering, seconds: float, lowering_seconds: float, found: bool) -> None:
    log = logging.getLogger("saem")
    types = tuple(lowered.in_avals)
    if not found:
        log.warning("Compiling jit(%s) with global shapes and types %s.", lowered.name, types)
    log.warning("Finished jaxpr to MLIR module conversion jit(%s) in %.9f sec, for arguments %s",
                lowered.name, lowering_seconds, types)
    if found:
        log.warning("Found the program of jit(%s): nothing was compiled", lowered.name)
    else:
        log.warning("Finished XLA compilation of jit(%s) in %.9f sec", lowered.name, seconds)


def kept_costs(key: str, executable: Any) -> dict[str, Any]:
    """Return the ``costs`` of the program whose content is ``key``, asking XLA once."""
    if key not in _costs:
        while len(_costs) >= CAPACITY:
            _costs.pop(next(iter(_costs)), None)
        _costs[key] = costs(executable)
    return _costs[key]


def costs(executable: Any) -> dict[str, Any]:
    """Return XLA's estimates for a program, None for what it does not give."""
    analysis: dict[str, Any] = {}
    try:
        analysis = executable.cost_analysis()
        memory = executable.get_compiled_memory_stats()
    except _jaxlib.JaxRuntimeError:
        memory = None
    return {
        "flops": _known(analysis.get("flops")),
        "bytes_accessed": _known(analysis.get("bytes accessed")),
        # On CPU the size of the code is not measured, and XLA gives 0.
        "code_bytes": getattr(memory, "generated_code_size_in_bytes", None) or None,
        "argument_bytes": getattr(memory, "argument_size_in_bytes", None),
        "output_bytes": getattr(memory, "output_size_in_bytes", None),
        "temp_bytes": getattr(memory, "temp_size_in_bytes", None),
    }


def _known(cost: float | None) -> float | None:
    """Return a cost, None for -1, by which XLA means that it is not known."""
    return None if cost is None or cost < 0 else cost


def clear() -> None:
    """Drop all executables."""
    _executables.clear()
    _costs.clear()
