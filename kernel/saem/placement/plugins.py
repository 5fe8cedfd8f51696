"""How are GPUs and TPUs driven?

By PJRT plugins: shared libraries in wheels of their own, which jaxlib loads by path.  The wheels'
own start-up code imports ``jax``, which cannot share a process with us, so it is not called: the
library is found, loaded and asked for a client here.

Read before: ``_jaxlib``.  Read after: ``placement.devices``.
Invariant: a platform whose wheel is not installed costs one lookup on the path and nothing else.
Source: the PJRT plugin documentation; the layout of the wheels jax-cuda13-pjrt and libtpu.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from saem import _jaxlib
from saem.core.lazy import later

importlib_util: Any = later("importlib.util")

# Folders under jax_plugins of the wheels that drive NVIDIA's GPUs, the newest first.
CUDA = ("xla_cuda13", "xla_cuda12")
CUDA_LIBRARY = "xla_cuda_plugin.so"
# NVIDIA's libraries that XLA opens by name, each after those that it needs.
NVIDIA = ("cudart", "nvrtc", "nvJitLink", "cublasLt", "cublas", "nccl", "cupti", "cusparse",
          "cusolver", "cufft", "nvshmem_host", "cudnn")
# The extension modules of the CUDA wheel whose ``registrations()`` are custom calls, and whether
# all of a part's calls work on stacks, so that a stack may be divided among devices.
EXTENSIONS = {"_linalg": True, "_solver": True, "_hybrid": True, "_prng": False, "_sparse": False,
              "_rnn": False, "_triton": False}
# The first cuSOLVER whose ``geev`` finds eigenvalues of any matrix on the GPU.
GEEV_SINCE = 11701


def folders(package: str) -> list[Path]:
    """Return the folders of ``package`` on the path, without importing it."""
    try:
        spec = importlib_util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return [Path(p) for p in spec.submodule_search_locations or ()] if spec else []


def cuda_library() -> Path | None:
    """Return the CUDA plugin, None if not installed."""
    libraries = (root / folder / CUDA_LIBRARY
                 for folder in CUDA for root in folders("jax_plugins"))
    return next((library for library in libraries if library.exists()), None)


def cuda_extension(part: str) -> Any:
    """Return a module of the CUDA wheel, None if the wheel is not installed.

    One that was made for another jaxlib is warned about and not used.
    """
    return _jaxlib.plugin_support.import_from_plugin("cuda", part)


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
    if cuda_library() is not None:
        found.append("cuda")
    return found


def load_nvidia_libraries() -> None:
    """Load NVIDIA's libraries from their wheels, so that XLA finds them by name.

    Those that are not in wheels, XLA looks for where the system has its libraries.
    """
    roots = folders("nvidia")
    for name in NVIDIA:
        for root in roots:
            for library in sorted(root.glob(f"*/lib/lib{name}.so.*")):
                with contextlib.suppress(OSError):
                    ctypes.CDLL(str(library))


def make_cuda_client(distributed: Any = None) -> Any:
    """Return the client of NVIDIA GPUs.

    Raises: RuntimeError if the plugin is not installed or finds no GPU.
    """
    library = cuda_library()
    if library is None:
        raise RuntimeError("the CUDA plugin is not installed. Try: pip install 'saem[cuda13]'")
    extension = cuda_extension("cuda_plugin_extension")
    if extension is None:
        raise RuntimeError(
            "the CUDA plugin is installed, but no extension of it that fits this jaxlib "
            f"({_jaxlib.__version__}). Try: pip install 'saem[cuda13]'")
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


def register_extensions(plugin: Any, capsule: Any) -> None:
    """Register the custom calls (linear algebra, random bits, callbacks) of the CUDA wheel.

    ``capsule`` is the loaded plugin's interface, to which the wheel's extension hands them on.
    """
    _jaxlib.register_custom_call_handler(
        "CUDA", functools.partial(plugin.register_custom_call_target, capsule))
    _jaxlib.register_custom_type_handler(
        "CUDA", functools.partial(plugin.register_custom_type, capsule))
    for name, kind in plugin.ffi_types().items():
        _jaxlib.register_custom_type(name, kind, platform="CUDA")
    for name, function in plugin.ffi_handlers().items():
        _jaxlib.register_call_target(name, function, platform="CUDA", api_version=1)
    for part, on_stacks in EXTENSIONS.items():
        module = cuda_extension(part)
        for name, function in module.registrations().items() if module else ():
            _jaxlib.register_call_target(name, function, platform="CUDA", api_version=1)
            if on_stacks or name.endswith("gtsv2_ffi"):
                _jaxlib.register_as_batch_partitionable(name, c_api=capsule)


@functools.cache
def load_hybrid() -> None:
    """Let routines that begin on a GPU and go on with LAPACK on its host find LAPACK.

    It takes 0.4 s, for SciPy, from which jaxlib takes the routines themselves.
    """
    cuda_extension("_hybrid").initialize()


@functools.cache
def library_version(name: str) -> int:
    """Return the version of NVIDIA's library ``name`` ("cudnn"), 0 if it is not installed."""
    versions = cuda_extension("_versions")
    if versions is None:
        return 0
    load_nvidia_libraries()
    try:
        return getattr(versions, f"{name}_get_version")()
    except RuntimeError:  # the wheel is there, and no library
        return 0


def has_geev() -> bool:
    """Return whether the cuSOLVER that is installed has ``geev``."""
    return library_version("cusolver") >= GEEV_SINCE


def has_cudnn() -> bool:
    """Return whether cuDNN is installed."""
    return library_version("cudnn") > 0


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
