"""How does an array lie in the memory of its devices?

A ``Layout`` says in which order the axes lie in memory, a ``Format`` is a layout with a sharding.

Read before: ``xla.shardings``.  Read after: ``control.stages``.
Invariant: a layout is what the compiler said; nothing here changes one.
Source: the documentation of jax.experimental.layout.
"""

from __future__ import annotations

from typing import Any

from saem.core.record import Record


class Layout(Record):
    """The order of axes in memory, the slowest first, and how the fastest are tiled."""

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    @classmethod
    def from_xla(cls, layout: Any) -> Layout:
        """Return the layout that a compiled program tells of."""
        layout = layout._xla_layout()
        return cls(tuple(layout.minor_to_major())[::-1], tuple(layout.tiling()),
                   layout.element_size_in_bits())


class Format(Record):
    """A layout with the sharding of the devices it holds on."""

    layout: Layout | None = None
    sharding: Any = None

    @property
    def device_local_layout(self) -> Layout | None:
        return self.layout
