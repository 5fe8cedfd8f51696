"""Which settings change what the engine does, and who may change them?

Every setting is one row of ``declared.DECLARED`` and becomes one ``Setting``: a thread-local value
over a global one over the environment over the default.  ``setting.value`` reads it, ``with
setting(v):`` sets it for this thread, ``config.update("jax_<name>", v)`` sets it for the process.
The same object is jaxlib's own ``Config``, so the C++ fast path of ``jit`` sees a change without
asking us.

Read before: ``saem._jaxlib``, ``core.declared``.  Read after: ``core.dtypes``, ``core.trace``.
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
from saem.core.declared import DECLARED, Declared, checked, from_word
from saem.core.lazy import later

difflib: Any = later("difflib")  # only a misspelt setting needs it
importlib_util: Any = later("importlib.util")

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
        return _Scope(self, checked(declared, value[0], declared.name))

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
    return from_word(declared, os.environ[variable], variable)


SETTINGS: dict[str, Setting] = {"jax_" + row.name: Setting(row) for row in DECLARED}


def keep_environment() -> None:
    """Keep what the environment says of options that nothing reads, with a warning."""
    for variable, word in os.environ.items():
        name = variable.lower()
        if name in unread_options.DEFAULTS:
            kind = type(unread_options.DEFAULTS[name]).__name__
            row = Declared(name, None, kind if kind in ("bool", "int", "float") else "str", "")
            unread_options.keep(name, from_word(row, word, variable))


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
        value = checked(setting.declared, val, name)
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
                value = from_word(SETTINGS[name].declared, value, f"--{name}")
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
