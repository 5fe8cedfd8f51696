"""Which settings change what the engine does, and who may change them?

Every setting is one row of ``DECLARED`` and becomes one ``Setting``: a thread-local value over a
global one over the environment over the default.  ``setting.value`` reads it, ``with setting(v):``
sets it for this thread, ``config.update("jax_<name>", v)`` sets it for the process.  The same
object is jaxlib's own ``Config``, so the C++ fast path of ``jit`` sees a change without asking us.

Read before: ``saem._jaxlib``.  Read after: ``core.dtypes``, ``core.trace``.
Invariant: two traces that could differ because of a setting have different ``trace_key()``s
(tests/kernel/test_config.py).
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from saem import _jaxlib
from saem.core import flags, unread_options
from saem.core.lazy import later
from saem.core.record import Record

difflib: Any = later("difflib")  # only a misspelt setting needs it
importlib_util: Any = later("importlib.util")

RANK_PROMOTION = ("allow", "warn", "raise")
DTYPE_PROMOTION = ("standard", "strict")
PLATFORM_NAMES = ("cpu", "gpu", "tpu")  # that stand for the first device of their kind
EXPLICIT_X64 = ("warn", "error", "allow")
TRANSFER_GUARD = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
PRNG_IMPLS = (
    "threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32")
TRACEBACK_FILTERING = ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto")
GARBAGE_GUARD = ("allow", "log", "fatal")
EFFORT_LEVELS = ("UNKNOWN", "O0", "O1", "O2", "O3")
MATMUL_PRECISIONS = (
    "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
    "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16",
    "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
    "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64",
)  # fmt: skip

TRUE_WORDS = ("y", "yes", "t", "true", "on", "1")
FALSE_WORDS = ("n", "no", "f", "false", "off", "0")


class Declared(Record):
    """One setting as data.

    ``kind`` is ``bool``, ``int``, ``float``, ``str`` or ``device``; ``choices`` limits a ``str``;
    ``optional`` allows None.  ``in_key``: a trace made under one value must not answer under
    another.  ``in_call``: nor must the C++ fast path, though the trace may.  ``process``: read
    once for the whole process, so it has no ``with`` form.
    """

    name: str
    default: Any
    kind: str
    help: str
    choices: tuple[str, ...] = ()
    optional: bool = False
    in_key: bool = False
    process: bool = False
    in_call: bool = False


def cores() -> int:
    """Return on how many processor cores this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


DECLARED = (
    # -- what a program computes: part of every trace's key --
    Declared("enable_x64", False, "bool", "64-bit dtypes stay 64-bit; else they become 32-bit",
             in_key=True),
    Declared("explicit_x64_dtypes", "warn", "str",
             "what an explicitly requested 64-bit dtype gets while enable_x64 is off",
             EXPLICIT_X64, in_key=True),
    Declared("numpy_rank_promotion", "allow", "str",
             "whether operands of different rank are broadcast silently", RANK_PROMOTION,
             in_key=True),
    Declared("numpy_dtype_promotion", "standard", "str",
             "'strict' promotes weak types only", DTYPE_PROMOTION, in_key=True),
    Declared("default_matmul_precision", None, "str",
             "precision of matrix products and convolutions that ask for none",
             MATMUL_PRECISIONS, optional=True, in_key=True),
    Declared("disable_jit", False, "bool", "run jitted functions and control flow as plain Python",
             in_key=True),
    Declared("default_device", None, "device",
             "device (or platform name) where uncommitted values are put", optional=True,
             in_key=True),
    Declared("allow_f16_reductions", True, "bool",
             "sums of 16-bit floats may be accumulated in 16 bits", in_key=True),
    Declared("auto_pcast", True, "bool",
             "values in shard_map are made to vary alike where an operation needs it",
             in_key=True),
    Declared("threefry_partitionable", True, "bool",
             "random bits that are the same however an array is sharded", in_key=True),
    Declared("random_seed_offset", 0, "int", "added to every seed that makes a key", in_key=True),
    Declared("softmax_custom_jvp", False, "bool",
             "differentiate softmax by its own rule", in_key=True),
    Declared("high_dynamic_range_gumbel", False, "bool",
             "use more random bits for gumbel samples", in_key=True),
    Declared("use_shardy_partitioner", True, "bool", "partition programs with Shardy",
             in_key=True),
    Declared("debug_key_reuse", False, "bool", "raise when a PRNG key is used twice", in_key=True),
    Declared("default_prng_impl", "threefry2x32", "str", "generator of keys that name none",
             PRNG_IMPLS, in_key=True),
    Declared("enable_custom_prng", False, "bool", "PRNGKey returns a new-style typed key",
             in_key=True),
    Declared("legacy_prng_key", "allow", "str", "whether raw uint32 keys are accepted",
             ("allow", "warn", "error")),
    Declared("shortcuts", True, "bool",
             "take the quick paths before the general ones; off: the general ones alone, slowly",
             in_key=True),
    # -- checks --
    Declared("enable_checks", False, "bool", "check every jaxpr that is made", in_key=True),
    Declared("debug_nans", False, "bool", "raise FloatingPointError where a NaN first appears",
             in_call=True),
    Declared("debug_infs", False, "bool", "raise FloatingPointError where an infinity appears",
             in_call=True),
    Declared("check_tracer_leaks", False, "bool", "raise when a tracer outlives its trace"),
    Declared("transfer_guard", None, "str", "what to do on transfers between host and devices",
             TRANSFER_GUARD, optional=True),
    Declared("transfer_guard_host_to_device", None, "str", "the same, host to device",
             TRANSFER_GUARD, optional=True),
    Declared("transfer_guard_device_to_host", None, "str", "the same, device to host",
             TRANSFER_GUARD, optional=True),
    Declared("transfer_guard_device_to_device", None, "str", "the same, device to device",
             TRANSFER_GUARD, optional=True),
    Declared("array_garbage_collection_guard", None, "str",
             "what to do when an array dies by garbage collection, in a reference cycle",
             GARBAGE_GUARD, optional=True),
    Declared("thread_guard", False, "bool",
             "programs on several processes may run only in the thread that set it"),
    Declared("no_tracing", False, "bool", "raise when a function would be traced"),
    Declared("no_execution", False, "bool", "raise when a program would run", in_call=True),
    # -- what it logs --
    Declared("log_compiles", False, "bool", "log each trace and compile at WARNING"),
    Declared("explain_cache_misses", False, "bool", "log why a jitted call was traced again"),
    Declared("traceback_filtering", "auto", "str", "hide the engine's frames in tracebacks",
             TRACEBACK_FILTERING),
    Declared("tracer_error_num_traceback_frames", 5, "int", "frames shown in a tracer's error"),
    # -- the process: devices and the compile cache on disk --
    Declared("platforms", None, "str", "comma-separated platforms to use, in order",
             optional=True, process=True),
    Declared("platform_name", "", "str", "one platform to use", process=True),
    Declared("num_cpu_devices", -1, "int", "how many CPU devices to make", process=True),
    Declared("cpu_enable_async_dispatch", cores() > 2, "bool",
             "CPU programs run in the background; by default where there are more than two cores",
             process=True),
    # -- how XLA compiles: programs compiled before a change stay as they are --
    Declared("disable_most_optimizations", False, "bool",
             "XLA compiles sooner and programs run longer; the last bits of results may differ"),
    Declared("compiler_enable_remat_pass", True, "bool",
             "XLA may compute a value twice to save memory"),
    Declared("exec_time_optimization_effort", 0.0, "float",
             "XLA's effort to make programs fast, from -1 to 1", optional=True),
    Declared("memory_fitting_effort", 0.0, "float",
             "XLA's effort to make programs fit in memory, from -1 to 1", optional=True),
    Declared("optimization_level", "UNKNOWN", "str",
             "how much XLA optimises for time: from O0 to O3", choices=EFFORT_LEVELS),
    Declared("memory_fitting_level", "O2", "str",
             "how much XLA does to save memory: from O0 to O3", choices=EFFORT_LEVELS),
    # The defaults of the next four are in disk/cache_folder.py.
    Declared("enable_compilation_cache", True, "bool",
             "keep compiled programs on disk; off: nothing is read or written there"),
    Declared("compilation_cache_dir", None, "str",
             "where compiled programs are kept on disk, instead of the user's own cache folder",
             optional=True),
    Declared("compilation_cache_max_size", -1, "int", "bytes the cache may grow to; -1: any"),
    Declared("persistent_cache_min_compile_time_secs", 1.0, "float",
             "programs compiled faster are not kept on disk"),
    Declared("persistent_cache_min_entry_size_bytes", 0, "int",
             "smaller programs are not kept on disk"),
    Declared("raise_persistent_cache_errors", False, "bool",
             "raise when the cache on disk cannot be read or written; else it is said once"),
)  # fmt: skip


def _from_word(declared: Declared, word: str, variable: str) -> Any:
    """Read an environment variable's text as a value of this setting.

    Raises: ValueError, naming the variable, when the text is no such value.
    """
    if declared.optional and word == "":
        return None
    if declared.kind == "bool":
        lowered = word.lower()
        if lowered not in TRUE_WORDS + FALSE_WORDS:
            raise ValueError(
                f"environment variable {variable} needs a truth value, got {word!r}. "
                f"Use one of {', '.join(TRUE_WORDS + FALSE_WORDS)}."
            )
        return lowered in TRUE_WORDS
    if declared.kind in ("int", "float"):
        try:
            return int(word) if declared.kind == "int" else float(word)
        except ValueError:
            needed = "an integer" if declared.kind == "int" else "a number"
            raise ValueError(
                f"environment variable {variable} needs {needed}, got {word!r}."
            ) from None
    return _checked(declared, word, f"environment variable {variable}")


def _checked(declared: Declared, value: Any, where: str) -> Any:
    """Return ``value`` as this setting stores it.

    Raises: ValueError for a value outside ``choices`` or of another kind.
    """
    if value is None and declared.optional:
        return value
    if declared.kind == "device":
        if not isinstance(value, _jaxlib.Device) and value not in PLATFORM_NAMES:
            raise ValueError(
                "jax.default_device must be passed either a Device object (e.g. "
                "`jax.devices('cpu')[0]`) or a platform name string like 'cpu' or 'gpu', got: "
                f"{value!r}")
        return value
    if declared.choices:
        word = getattr(value, "value", value)  # an enum member stands for its value
        if word not in declared.choices:
            none = "None or " if declared.optional else ""
            raise ValueError(
                f"{where}: new enum value must be {none}in {list(declared.choices)}, "
                f"got {value} of type {type(value)}."
            )
        return word
    if declared.kind == "bool":
        return bool(value)  # of a text as Python has it: 'False' is true
    accepted, kind = {"int": (int, int), "float": ((int, float), float),
                      "str": (str, str)}[declared.kind]
    if not isinstance(value, accepted):
        raise ValueError(f"{where} needs a value of type {declared.kind}, got {value!r}.")
    return kind(value)


class _Scope(contextlib.ContextDecorator):
    """What ``with setting(value):`` enters: the thread's value, put back at the end."""

    def __init__(self, setting: Setting, value: Any):
        self._setting = setting
        self._value = value
        self._before: list[Any] = []  # a stack: one scope may be entered again inside itself

    def __enter__(self) -> None:
        setting = self._setting
        self._before.append(setting.swap_local(self._value))
        if setting.follower is not None:
            setting.follower()

    def __exit__(self, *exc: object) -> None:
        setting = self._setting
        setting.set_local(self._before.pop())
        if setting.follower is not None:
            setting.follower()


class Setting(_jaxlib.Config):
    """One setting: ``value``, ``name``, and jaxlib's ``get_local``, ``swap_local``, ``set_global``.

    ``value`` is C++ and costs one attribute read.  Calling the setting gives a context manager
    (also a decorator) that sets it for the current thread.
    """

    was_scoped = False  # whether its ``with`` form was used in this process

    def __init__(self, declared: Declared):
        super().__init__(
            "jax_" + declared.name,
            environment_value(declared),
            include_in_jit_key=declared.in_key or declared.in_call,
            include_in_trace_context=declared.in_key,
        )
        self.declared = declared
        self.__name__ = declared.name
        self.__doc__ = f"The setting {self.name}: {declared.help}."
        # Called after each change, for settings that have an effect elsewhere.
        self.follower: Callable[[], None] | None = None
        self.word = environment_word(declared)
        self.was_set = self.word is not None
        self._unset = self.get_local()  # what C++ returns where no scope holds

    @property
    def __signature__(self) -> inspect.Signature:
        """What ``inspect.signature`` shows of a call: its one parameter."""
        name = "disable" if self.name == "jax_disable_jit" else "new_val"
        default = True if self.declared.kind == "bool" else inspect.Parameter.empty
        return inspect.Signature([inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)])

    def __call__(self, *value: Any, **named: Any) -> _Scope:
        """Return a context manager under which this thread sees ``value`` (a bool: True).

        The value may be named: ``new_val``, for ``disable_jit`` also ``disable``.
        """
        declared = self.declared
        unknown = named.keys() - {"new_val", "disable" if self is disable_jit else "new_val"}
        if unknown:
            raise TypeError(f"{declared.name} got an unexpected keyword argument {min(unknown)!r}.")
        value += tuple(named.values())
        if declared.process:
            raise TypeError(
                f"{declared.name} holds for the whole process, so it has no `with` form. "
                f"Try: config.update({self.name!r}, value) before the first computation."
            )
        if not value and declared.kind == "bool":
            value = (True,)
        if len(value) != 1:
            raise TypeError(
                f"{declared.name} needs one new value: with {declared.name}(value): ..."
            )
        self.was_scoped = True
        return _Scope(self, _checked(declared, value[0], declared.name))

    def __reduce__(self) -> str:
        return self.declared.name  # ``pickle`` and ``copy`` find it in this module

    @property
    def is_chosen(self) -> bool:
        """Whether the environment, ``config.update`` or a scope of this thread set it."""
        return self.was_set or self.get_local() is not self._unset

    def notify(self) -> None:
        """Call the follower of this setting, after a change."""
        if self.follower is not None:
            self.follower()

    def __bool__(self) -> bool:
        raise TypeError(
            f"the setting {self.declared.name} has no truth value itself. "
            f"Try: {self.declared.name}.value, or config.{self.name}"
        )

    def __repr__(self) -> str:
        return f"Setting({self.name}={self.value!r})"


def environment_variable(declared: Declared) -> str | None:
    """Return which of SAEM_<NAME> and JAX_<NAME> is in the environment, the former first."""
    for prefix in ("SAEM_", "JAX_"):
        if prefix + declared.name.upper() in os.environ:
            return prefix + declared.name.upper()
    return None


def environment_word(declared: Declared) -> str | None:
    """Return what SAEM_<NAME> or JAX_<NAME> holds, None if the environment has neither."""
    variable = environment_variable(declared)
    return None if variable is None else os.environ[variable]


def environment_value(declared: Declared) -> Any:
    """Return the value from SAEM_<NAME> or JAX_<NAME>, else the default."""
    variable = environment_variable(declared)
    if variable is None:
        return declared.default
    return _from_word(declared, os.environ[variable], variable)


SETTINGS: dict[str, Setting] = {"jax_" + row.name: Setting(row) for row in DECLARED}


def keep_environment() -> None:
    """Keep what the environment says of options that nothing reads, with a warning."""
    for variable, word in os.environ.items():
        name = variable.lower()
        if name in unread_options.DEFAULTS:
            kind = type(unread_options.DEFAULTS[name]).__name__
            row = Declared(name, None, kind if kind in ("bool", "int", "float") else "str", "")
            unread_options.keep(name, _from_word(row, word, variable))


keep_environment()


def read_environment() -> None:
    """Set again what the environment says otherwise than when it was read last.

    A program under the name jax sets it before its ``import jax``, and Saem is there already.
    Raises: RuntimeError for what had to be known when the devices were made.
    """
    for setting in SETTINGS.values():
        word = environment_word(setting.declared)
        if word is not None and word != setting.word:
            config.update(setting.name, environment_value(setting.declared))
        setting.word = word
    keep_environment()


# Called with its name and value before a setting of the whole process changes:
# ``placement.devices`` refuses changes that come too late.
before_start: list[Any] = []


def _named(name: str) -> Setting:
    """Return the setting called ``jax_<name>``.

    Raises: AttributeError that suggests the nearest name.
    """
    setting = SETTINGS.get(name)
    if setting is None:
        near = difflib.get_close_matches(str(name), SETTINGS, n=1, cutoff=0.6)
        near = near or difflib.get_close_matches(f"jax_{name}", SETTINGS, n=1, cutoff=0.6)
        advice = f"Did you mean {near[0]!r}?" if near else "config.values lists every name."
        raise AttributeError(f"Unrecognized config option: {name}. {advice}")
    return setting


class Configuration:
    """The public ``saem.config``: every setting by its ``jax_…`` name."""

    def update(self, name: str, val: Any) -> None:
        """Set ``name`` to ``val`` for the whole process (a thread inside a ``with`` keeps its own).

        Raises: AttributeError for an unknown name; TypeError or ValueError for another value;
        RuntimeError where the devices were made already and the value is not what they were
        made with.
        """
        if name in unread_options.values:
            unread_options.keep(name, val)
            return
        setting = _named(name)
        value = _checked(setting.declared, val, name)
        if setting.declared.process and value != setting.value:
            for check in before_start:
                check(name, value)
        setting.set_global(value)
        setting.was_set = True
        setting.notify()

    def read(self, name: str) -> Any:
        """Return the value the current thread sees."""
        return self.__getattr__(name)

    def config_with_absl(self) -> None:
        """Make every setting a flag of absl, which ``absl.app.run(main)`` reads and sets here.

        Raises: ModuleNotFoundError where the package absl-py is not installed.
        """
        flags.define(SETTINGS, self.update)

    def parse_flags_with_absl(self) -> None:
        """Set now what the command line names: ``--jax_enable_x64``, ``--jax_platforms=cpu``.

        A truth value is also taken from ``--nojax_…``; other arguments are the program's own.
        Where absl is installed, the settings become its flags too; flags that programs defined may
        be asked for from then on, and have their defaults until the program reads them.
        """
        for name, value in flags.assignments(SETTINGS, sys.argv[1:]).items():
            if isinstance(value, str):
                value = _from_word(SETTINGS[name].declared, value, f"--{name}")
            self.update(name, value)
        if importlib_util.find_spec("absl") is not None:
            self.config_with_absl()
            flags.parse(SETTINGS, sys.argv)

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit dtypes stay 64-bit."""
        return enable_x64.value

    @property
    def values(self) -> dict[str, Any]:
        """Every setting's current value, by name, and those of options that nothing reads."""
        return {name: setting.value for name, setting in SETTINGS.items()} | unread_options.values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in unread_options.values:
            return unread_options.values[name]
        return _named(name).value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(Configuration):  # as tests of programs replace ``update``
            super().__setattr__(name, value)
            return
        _named(name)
        raise AttributeError(f"settings are not assigned. Try: config.update({name!r}, {value!r})")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *SETTINGS, *unread_options.values]

    def __repr__(self) -> str:
        changed = [
            f"{name}={setting.value!r}"
            for name, setting in SETTINGS.items()
            if setting.value != setting.declared.default
        ]
        return f"<config: {', '.join(changed) or 'all defaults'}>"


config = Configuration()


@contextlib.contextmanager
def holding(setting: _jaxlib.Config, value: Any) -> Iterator[None]:
    """Let ``setting``, one that no user sets, be ``value`` for this thread."""
    before = setting.swap_local(value)
    try:
        yield
    finally:
        setting.set_local(before)


# Set while a trace is recorded: it is part of the fast path's key, so a program compiled for values
# never answers a call made with tracers' surroundings.
staging = _jaxlib.Config("staging", None, include_in_jit_key=True, include_in_trace_context=False)
# Set inside ``ensure_compile_time_eval``: programs that are traced there, which hold what they
# computed of known values, are kept apart from others.
compile_time = _jaxlib.Config(
    "compile_time", None, include_in_jit_key=True, include_in_trace_context=True
)
# Set while a listener counts cache hits, so that calls leave the C++ fast path and are seen.
counting_hits = _jaxlib.Config(
    "counting_hits", None, include_in_jit_key=True, include_in_trace_context=False
)
# jaxlib calls this with every result of a program, when it is not None.
post_hook = _jaxlib.Config(
    "post_hook", None, include_in_jit_key=False, include_in_trace_context=False
)

enable_x64 = SETTINGS["jax_enable_x64"]
explicit_x64_dtypes = SETTINGS["jax_explicit_x64_dtypes"]
numpy_rank_promotion = SETTINGS["jax_numpy_rank_promotion"]
numpy_dtype_promotion = SETTINGS["jax_numpy_dtype_promotion"]
default_matmul_precision = SETTINGS["jax_default_matmul_precision"]
disable_jit = SETTINGS["jax_disable_jit"]
default_device = SETTINGS["jax_default_device"]
threefry_partitionable = SETTINGS["jax_threefry_partitionable"]
random_seed_offset = SETTINGS["jax_random_seed_offset"]
softmax_custom_jvp = SETTINGS["jax_softmax_custom_jvp"]
high_dynamic_range_gumbel = SETTINGS["jax_high_dynamic_range_gumbel"]
use_shardy_partitioner = SETTINGS["jax_use_shardy_partitioner"]
debug_key_reuse = SETTINGS["jax_debug_key_reuse"]
default_prng_impl = SETTINGS["jax_default_prng_impl"]
enable_custom_prng = SETTINGS["jax_enable_custom_prng"]
legacy_prng_key = SETTINGS["jax_legacy_prng_key"]
shortcuts = SETTINGS["jax_shortcuts"]
enable_checks = SETTINGS["jax_enable_checks"]
debug_nans = SETTINGS["jax_debug_nans"]
debug_infs = SETTINGS["jax_debug_infs"]
auto_pcast = SETTINGS["jax_auto_pcast"]
no_tracing = SETTINGS["jax_no_tracing"]
no_execution = SETTINGS["jax_no_execution"]
thread_guard = SETTINGS["jax_thread_guard"]
allow_f16_reductions = SETTINGS["jax_allow_f16_reductions"]
array_garbage_collection_guard = SETTINGS["jax_array_garbage_collection_guard"]
check_tracer_leaks = SETTINGS["jax_check_tracer_leaks"]
transfer_guard = SETTINGS["jax_transfer_guard"]
transfer_guard_host_to_device = SETTINGS["jax_transfer_guard_host_to_device"]
transfer_guard_device_to_host = SETTINGS["jax_transfer_guard_device_to_host"]
transfer_guard_device_to_device = SETTINGS["jax_transfer_guard_device_to_device"]
log_compiles = SETTINGS["jax_log_compiles"]
explain_cache_misses = SETTINGS["jax_explain_cache_misses"]
traceback_filtering = SETTINGS["jax_traceback_filtering"]
tracer_error_num_traceback_frames = SETTINGS["jax_tracer_error_num_traceback_frames"]
platforms = SETTINGS["jax_platforms"]
platform_name = SETTINGS["jax_platform_name"]
num_cpu_devices = SETTINGS["jax_num_cpu_devices"]
cpu_enable_async_dispatch = SETTINGS["jax_cpu_enable_async_dispatch"]
disable_most_optimizations = SETTINGS["jax_disable_most_optimizations"]
compiler_enable_remat_pass = SETTINGS["jax_compiler_enable_remat_pass"]
exec_time_optimization_effort = SETTINGS["jax_exec_time_optimization_effort"]
memory_fitting_effort = SETTINGS["jax_memory_fitting_effort"]
optimization_level = SETTINGS["jax_optimization_level"]
memory_fitting_level = SETTINGS["jax_memory_fitting_level"]
enable_compilation_cache = SETTINGS["jax_enable_compilation_cache"]
compilation_cache_dir = SETTINGS["jax_compilation_cache_dir"]
compilation_cache_max_size = SETTINGS["jax_compilation_cache_max_size"]
persistent_cache_min_compile_time_secs = SETTINGS["jax_persistent_cache_min_compile_time_secs"]
persistent_cache_min_entry_size_bytes = SETTINGS["jax_persistent_cache_min_entry_size_bytes"]
raise_persistent_cache_errors = SETTINGS["jax_raise_persistent_cache_errors"]

_jaxlib.jax_jit.set_enable_x64_state(enable_x64)
_jaxlib.jax_jit.set_disable_jit_state(disable_jit)
_jaxlib.jax_jit.set_post_hook_state(post_hook)

# trace_key() -> the current values of every setting that is part of a trace's key.
# It is jaxlib's own function: a fifth of a microsecond.
trace_key = _jaxlib.trace_context


# What else is part of ``trace_key()`` and has a scope but no setting, such as the mesh in force.
contexts: dict[str, _jaxlib.Config] = {}


class UserContext(_jaxlib.Config):
    """A value of a program's own that traces depend on: ``with context(v):`` sets ``value``."""

    follower = None

    def __init__(self, default: Any):
        name = f"user_context_{len(contexts)}"
        super().__init__(name, default, include_in_jit_key=True, include_in_trace_context=True)
        contexts[name] = self

    def __call__(self, value: Any) -> _Scope:
        """Return a context manager under which this thread sees ``value``, which is hashable."""
        return _Scope(self, value)


def make_user_context(default_value: Any = None) -> UserContext:
    """Return a new context whose value is part of every trace's key."""
    return UserContext(default_value)


def trace_context_named() -> tuple[tuple[str, str], ...]:
    """Return (name, repr of value) of all that is part of ``trace_key()``, for explanations."""
    named = [(n, s) for n, s in SETTINGS.items() if s.declared.in_key]
    return tuple((name, repr(s.value)) for name, s in (*named, *contexts.items()))
