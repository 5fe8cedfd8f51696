"""How are GPUs and TPUs driven?

By PJRT plugins: shared libraries in wheels of their own, which jaxlib loads by path.  The wheels'
own start-up code imports ``jax``, which cannot share a process with us, so it is not called: the
library is found, loaded and asked for a client here.

Read before: ``_jaxlib``.  Read after: ``placement.devices``.
Invariant: a platform whose wheel is not installed costs one lookup on the path and nothing else.
Source: the PJRT plugin documentation; the layout of the wheels jax-cuda13-pjrt and libtpu.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from saem import _jaxlib
from saem.core.lazy import later

importlib_util: Any = later("importlib.util")

# Platform as users write it, wheel folders under jax_plugins, library, extension package.
CUDA = (("xla_cuda13", "jax_cuda13_plugin"), ("xla_cuda12", "jax_cuda12_plugin"))
CUDA_LIBRARY = "xla_cuda_plugin.so"
# The extension modules of the CUDA wheel whose ``registrations()`` are custom calls.
EXTENSIONS = ("_linalg", "_prng", "_solver", "_sparse", "_rnn", "_triton", "_hybrid")


def folders(package: str) -> list[Path]:
    """Return the folders of ``package`` on the path, without importing it."""
    try:
        spec = importlib_util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return [Path(p) for p in spec.submodule_search_locations or ()] if spec else []


def cuda_plugin() -> tuple[Path, str] | None:
    """Return the CUDA library and the name of its extension package, None if not installed."""
    for folder, extension in CUDA:
        for root in folders("jax_plugins"):
            library = root / folder / CUDA_LIBRARY
            if library.exists():
                return library, extension
    return None


def tpu_library() -> Path | None:
    """Return libtpu's shared library, None if not installed."""
    named = os.environ.get("TPU_LIBRARY_PATH")
    if named:
        return Path(named)
    for root in folders("libtpu"):
        if (root / "libtpu.so").exists():
            return root / "libtpu.so"
    return None


def available() -> list[str]:
    """Return the accelerator platforms whose wheels are installed, best first."""
    found = []
    if tpu_library() is not None:
        found.append("tpu")
    if cuda_plugin() is not None:
        found.append("cuda")
    return found


def load_nvidia_libraries() -> None:
    """Load NVIDIA's libraries from their wheels, so that the plugin finds them.

    Those that need others not loaded yet are tried again once the rest are in.
    """
    waiting = sorted(lib for root in folders("nvidia") for lib in root.glob("**/lib/*.so*"))
    for _ in range(3):
        failed = []
        for library in waiting:
            try:
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
            except OSError:
                failed.append(library)
        if not failed or len(failed) == len(waiting):
            return
        waiting = failed


def make_cuda_client(distributed: Any = None) -> Any:
    """Return the client of NVIDIA GPUs.

    Raises: RuntimeError if the plugin is not installed or finds no GPU.
    """
    found = cuda_plugin()
    if found is None:
        raise RuntimeError("the CUDA plugin is not installed. Try: pip install 'saem[cuda13]'")
    library, extension = found
    load_nvidia_libraries()
    if not _jaxlib.pjrt_plugin_loaded("cuda"):
        capsule = _jaxlib.load_pjrt_plugin_dynamically("cuda", str(library))
        _jaxlib.initialize_pjrt_plugin("cuda")
        register_extensions(extension, capsule)
    options = _jaxlib.generate_pjrt_gpu_plugin_options()
    if distributed is not None:
        options["node_id"], options["num_nodes"] = distributed.node_id, distributed.num_nodes
    client = None if distributed is None else distributed.client
    return _jaxlib.make_c_api_client("cuda", options, client)


def register_extensions(package: str, capsule: Any) -> None:
    """Register the custom calls (linear algebra, random bits, callbacks) of the CUDA wheel.

    ``capsule`` is the loaded plugin's interface, to which the wheel's extension hands them on.
    """
    try:
        plugin = importlib.import_module(f"{package}.cuda_plugin_extension")
    except ImportError as error:
        raise RuntimeError(
            f"the CUDA plugin is installed, but its extension {package} is not: {error}. "
            "Try: pip install 'saem[cuda13]'") from None
    _jaxlib.register_custom_call_handler(
        "CUDA", functools.partial(plugin.register_custom_call_target, capsule))
    _jaxlib.register_custom_type_handler(
        "CUDA", functools.partial(plugin.register_custom_type, capsule))
    for name, kind in plugin.ffi_types().items():
        _jaxlib.register_custom_type(name, kind, platform="CUDA")
    found = dict(plugin.ffi_handlers())
    for part in EXTENSIONS:
        try:
            found.update(importlib.import_module(f"{package}.{part}").registrations())
        except ImportError:
            continue  # not every wheel has every extension
    for name, function in found.items():
        _jaxlib.register_call_target(name, function, platform="CUDA", api_version=1)


def make_tpu_client(distributed: Any = None) -> Any:
    """Return the client of TPUs.

    Raises: RuntimeError if libtpu is not installed or finds none.
    """
    library = tpu_library()
    if library is None:
        raise RuntimeError("libtpu is not installed. Try: pip install libtpu")
    if not _jaxlib.pjrt_plugin_loaded("tpu"):
        _jaxlib.load_pjrt_plugin_dynamically("tpu", str(library))
        _jaxlib.initialize_pjrt_plugin("tpu")
    client = None if distributed is None else distributed.client
    return _jaxlib.make_c_api_client("tpu", None, client)


MAKERS: dict[str, Callable[[Any], Any]] = {
    "cuda": make_cuda_client, "gpu": make_cuda_client, "tpu": make_tpu_client}
