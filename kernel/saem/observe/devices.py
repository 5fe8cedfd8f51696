"""Where are arrays, what moved between places, and what was donated?

Arrays are those of the names one gives (a notebook's variables); transfers and donations are those
the recorder saw.

Read before: ``saem.observe.recorder``.  Read after: ``saem.lens.views``.
Invariant: the shards of an array cover it (tests/lens/test_views.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saem import _jaxlib
from saem.core import tree
from saem.core.avals import aval_of
from saem.core.trace import Tracer
from saem.observe import schema
from saem.observe.environment import environment
from saem.observe.recorder import Recorder, recorder
from saem.observe.schema import Device, DevicesModel, HeldArray, Shard
from saem.placement import devices as placement

_MOST = 60


def devices_model(names: Mapping[str, Any], of: Recorder = recorder) -> DevicesModel:
    """The devices of this process, the arrays held by ``names``, transfers and donations."""
    found: list[Any] = []
    for name, value in names.items():
        if name.startswith("_"):
            continue
        for path, leaf in _arrays(name, value):
            if len(found) < _MOST:
                found.append(_held(path, leaf))
    listed = tuple(Device(d.id, d.platform, str(d)) for d in placement.devices())
    moved, donated = of.moves()
    return DevicesModel("devices", schema.VERSION, listed, tuple(found), moved, donated,
                        environment())


def _arrays(name: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, _jaxlib.Array):
        return [] if isinstance(value, Tracer) or value.is_deleted() else [(name, value)]
    if not isinstance(value, (dict, list, tuple)) or len(value) > 1000:
        return []
    try:
        leaves = tree.flatten_with_path(value)[0]
    except TypeError:  # keys that cannot be ordered
        return []
    return [(name + tree.keystr(path), leaf) for path, leaf in leaves
            if isinstance(leaf, _jaxlib.Array) and not isinstance(leaf, Tracer)
            and not leaf.is_deleted()]


def _held(name: str, array: Any) -> HeldArray:
    base = getattr(array, "_base", array)
    kind = aval_of(array).str_short(True)
    size = int(getattr(base, "nbytes", 0))
    sharding = base.sharding
    spec = getattr(sharding, "spec", None)
    return HeldArray(name, kind, size, bool(base.committed), str(spec) if spec is not None else "",
                     _shards(base))


def _shards(array: Any) -> tuple[Shard, ...]:
    """Rectangles of the first two axes and the devices that hold them."""
    shape = tuple(array.shape)
    held: dict[tuple[float, float, float, float], list[int]] = {}
    for device, index in array.sharding.devices_indices_map(shape).items():
        spans = [_span(part, size) for part, size in zip(index, shape)][:2]
        (top, height), (left, width) = ([(0.0, 1.0)] * (2 - len(spans)) + spans)[:2]
        held.setdefault((top, left, height, width), []).append(device.id)
    return tuple(Shard(*where, tuple(sorted(ids))) for where, ids in held.items())


def _span(part: slice, size: int) -> tuple[float, float]:
    start, stop = part.start or 0, size if part.stop is None else part.stop
    return (start / size, (stop - start) / size) if size else (0.0, 1.0)
