"""Which settings are there, and what may each be?

One row of ``DECLARED`` is one setting: its default, what it is for, which values it takes, and on
what it has an effect.  ``checked`` reads a value that a program gave, ``from_word`` the text of an
environment variable.

Read after: ``core.config``, which makes settings of the rows.
Invariant: settings that JAX has, too, have its default (tests/kernel/test_config.py).
"""

from __future__ import annotations

import os
from typing import Any

from saem import _jaxlib
from saem.core.record import Record

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
             "values in shard_map are made to vary along the same axes where an operation needs it",
             in_key=True),
    Declared("threefry_partitionable", True, "bool",
             "random bits that are the same however an array is sharded", in_key=True),
    Declared("random_seed_offset", 0, "int", "added to every seed that makes a key", in_key=True),
    Declared("softmax_custom_jvp", False, "bool",
             "differentiate softmax by its own rule", in_key=True),
    Declared("high_dynamic_range_gumbel", False, "bool",
             "use more random bits for gumbel samples", in_key=True),
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


def from_word(declared: Declared, word: str, variable: str) -> Any:
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
    return checked(declared, word, f"environment variable {variable}")


def checked(declared: Declared, value: Any, where: str) -> Any:
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
