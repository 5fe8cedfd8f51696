"""How are arrays over many devices saved to disk, and read back elsewhere?
(``jax.experimental.array_serialization.serialization``)

Each array is one zarr array of the tensorstore package, which must be installed: every process
writes the parts that its devices hold, a thread does so while the program goes on, and a
reader takes only the parts that its own devices need, however they were spread when written.

Read before: ``placement.spread``.
Invariant: what is read is what was saved, whatever the two shardings (tests/programs, the program
``orbax_and_checkpoints``).
Source: the documentation of jax.experimental.array_serialization and of TensorStore.
"""

from __future__ import annotations

import abc
import importlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from saem.core.dtypes import canonicalize
from saem.placement.spread import make_array_from_callback


def _tensorstore() -> Any:
    """Return the package tensorstore.  Raises: ModuleNotFoundError if it is not installed."""
    return importlib.import_module("tensorstore")


def get_tensorstore_spec(ckpt_path: str | os.PathLike[str], *, ocdbt: bool = False,
                         process_idx: int | None = None, arr: Any = None, driver: str = "zarr"
                         ) -> dict[str, Any]:
    """Return what names a saved array to tensorstore: its format, and where it is.

    With ``ocdbt`` the arrays of one folder share a database.

    Raises: ValueError for a relative path, or with ``process_idx`` or ``arr``, which are for
    processes that save folders of their own and for typed formats.

    >>> from saem.experimental.array_serialization.serialization import get_tensorstore_spec
    >>> get_tensorstore_spec("/tmp/x")["kvstore"]
    {'driver': 'file', 'path': '/tmp/x'}
    """
    if process_idx is not None or arr is not None:
        raise ValueError("get_tensorstore_spec: process_idx and arr are not accepted here.")
    path = os.fspath(ckpt_path)
    remote = path.startswith("gs://")
    if not remote and not os.path.isabs(path):
        raise ValueError(f"Checkpoint path must be absolute, got {path!r}.")

    def store(path: str) -> dict[str, Any]:
        if not remote:
            return {"driver": "file", "path": path}
        bucket, _, inside = path.removeprefix("gs://").partition("/")
        return {"driver": "gcs", "bucket": bucket, "path": inside}

    if not ocdbt:
        return {"driver": driver, "kvstore": store(path)}
    folder, _, name = path.rpartition("/")
    return {"driver": driver, "kvstore": {"driver": "ocdbt", "base": store(folder), "path": name}}


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """What can begin to save arrays, wait until they are saved, and read them back."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise what went wrong while arrays were saved, if anything did."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Return when everything begun is saved."""

    @abc.abstractmethod
    def serialize(self, arrays: Any, tensorstore_specs: Any, *,
                  on_commit_callback: Callable[[], None]) -> None:
        """Begin to save arrays, and call ``on_commit_callback`` when that is done."""

    @abc.abstractmethod
    def deserialize(self, shardings: Sequence[Any], tensorstore_specs: Sequence[dict[str, Any]],
                    global_shapes: Sequence[Any] | None = None,
                    dtypes: Sequence[Any] | None = None) -> Any:
        """Return saved arrays, placed as ``shardings`` say."""


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """Saves arrays in a thread of its own; a second save waits for the first."""

    def __init__(self, timeout_secs: float = 300):
        self._timeout = timeout_secs
        self._thread = ThreadPoolExecutor(1)
        self._running: Future | None = None

    def check_for_errors(self) -> None:
        if self._running is not None and self._running.done():
            self.wait_until_finished()

    def wait_until_finished(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.result(self._timeout)

    def serialize(self, arrays: Any, tensorstore_specs: Any, *,
                  on_commit_callback: Callable[[], None] | None = None,
                  transaction: Any = None) -> None:
        """Copy the parts of ``arrays`` that are here, and begin to save them."""
        self.wait_until_finished()
        # Copied before this returns: the program may donate the arrays.
        parts = [(a.shape, a.dtype, a.sharding.shard_shape(a.shape),
                  [(s.index, np.array(s.data)) for s in a.addressable_shards
                   if s.replica_id == 0]) for a in arrays]

        def save() -> None:
            for spec, (shape, dtype, chunk, pieces) in zip(tensorstore_specs, parts):
                _write(spec, shape, dtype, chunk, pieces, transaction)
            if on_commit_callback is not None:
                on_commit_callback()

        self._running = self._thread.submit(save)

    def serialize_with_paths(self, arrays: Sequence[Any], paths: Sequence[str], *,
                             on_commit_callback: Callable[[], None] | None = None,
                             transaction: Any = None) -> None:
        """Begin to save each array at its path."""
        self.serialize(arrays, [get_tensorstore_spec(path) for path in paths],
                       on_commit_callback=on_commit_callback, transaction=transaction)

    def deserialize(self, shardings: Sequence[Any], tensorstore_specs: Sequence[dict[str, Any]],
                    global_shapes: Sequence[Any] | None = None,
                    dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32) -> list[Any]:
        """Return the saved arrays, placed as ``shardings`` say.

        With ``global_shapes`` and ``dtypes`` they are cut, or filled up with zeros, and converted.
        """
        self.wait_until_finished()
        count = len(tensorstore_specs)
        return [_read(*row) for row in zip(
            shardings, tensorstore_specs, global_shapes or [None] * count,
            dtypes or [None] * count)]

    def deserialize_with_paths(self, shardings: Sequence[Any], paths: Sequence[str],
                               global_shapes: Sequence[Any] | None = None,
                               dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32
                               ) -> list[Any]:
        """Return the arrays saved at ``paths``, placed as ``shardings`` say."""
        return self.deserialize(shardings, [get_tensorstore_spec(path) for path in paths],
                                global_shapes, dtypes, concurrent_gb)


def _write(spec: dict[str, Any], shape: tuple[int, ...], dtype: Any, chunk: tuple[int, ...],
           pieces: Sequence[tuple[tuple[slice, ...], np.ndarray]], transaction: Any) -> None:
    """Save the pieces of one array, in chunks of the size of a device's part."""
    ts = _tensorstore()
    store = ts.open(spec, create=True, open=True, dtype=ts.dtype(dtype), shape=list(shape),
                    chunk_layout=ts.ChunkLayout(chunk_shape=[max(n, 1) for n in chunk]),
                    transaction=transaction).result()
    for index, data in pieces:
        store[index].write(data).result()


def _read(sharding: Any, spec: dict[str, Any], shape: Sequence[int] | None, dtype: Any) -> Any:
    """Return one saved array, of which each device reads its own part."""
    store = _tensorstore().open(spec, open=True).result()
    saved = tuple(store.shape)
    wanted = saved if shape is None else tuple(shape)
    kind = canonicalize(store.dtype.numpy_dtype if dtype is None else np.dtype(dtype))

    def part(index: tuple[slice, ...]) -> np.ndarray:
        bounds = [s.indices(n)[:2] for s, n in zip(index, wanted)]
        out = np.zeros([stop - start for start, stop in bounds], kind)
        there = tuple(slice(min(start, n), min(stop, n)) for (start, stop), n in zip(bounds, saved))
        here = tuple(slice(0, s.stop - s.start) for s in there)
        out[here] = store[there].read().result().astype(kind)
        return out

    return make_array_from_callback(wanted, getattr(sharding, "sharding", sharding), part)


__all__ = ["GlobalAsyncCheckpointManager", "GlobalAsyncCheckpointManagerBase",
           "get_tensorstore_spec"]
