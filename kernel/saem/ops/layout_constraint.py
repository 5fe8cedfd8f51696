"""How does a program ask for the order of axes in memory?

``with_layout_constraint`` is an equation that asks the compiler for a layout.

Read before: ``placement.layouts``.  Read after: ``jit.stages``.
Invariant: a layout changes where numbers lie, never which they are (tests/kernel/test_stages.py).
Source: the documentation of jax.experimental.layout.
"""

from __future__ import annotations

from typing import Any

from saem.compile import dispatch
from saem.compile.text import physical_aval
from saem.core import tree
from saem.core.avals import Seen, aval_of
from saem.core.primitive import primitive
from saem.core.trace import bind
from saem.ops import sharding_rules
from saem.ops.linear import Identity
from saem.placement.layouts import Layout


@primitive("layout_constraint")
class LayoutConstraint(Identity):
    """The identity, on a value that lies in memory as ``layout`` says."""

    layout: Layout

    shard_results = sharding_rules.unchanged

    def lower(self, ctx, x):
        ndim = len(ctx.avals[x].shape)
        # Behind the axes of a value come those of the array that holds it, as of a PRNG key.
        held = len(physical_aval(ctx.avals[x]).shape)
        order = [*range(held - 1, ndim - 1, -1), *self.layout.major_to_minor[::-1]]
        axes = f"dense<{order}> : tensor<{held}xindex>"
        return ctx.emit(
            f"stablehlo.custom_call @LayoutConstraint({x})", x,
            attributes={"backend_config": '""', "operand_layouts": f"[{axes}]",
                        "result_layouts": f"[{axes}]"})

    def batch(self, size, xs, dims):
        (x,), (d,) = xs, dims
        order = tuple(a + (a >= d) for a in self.layout.major_to_minor)
        # One example after the other, each as it was.
        layout = Layout((d, *order), self.layout.tiling,
                        self.layout.sub_byte_element_size_in_bits)
        return bind(LayoutConstraint(layout), x), d

    def eager(self, x: Any) -> Any:
        """Return a value laid out, outside any program: in the memory where it lies."""
        held = dispatch.hold(dispatch.put(x))
        if held is not x:  # keys, whose words have further axes
            return dispatch.primitive_callable(self)(x)
        committed = dispatch.place_like(held, held._sharding)
        return dispatch.relaid(committed, self.layout)


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Return pytree ``x``, laid out in memory as ``layouts`` (a Layout, or a pytree of them) say.

    Raises: ValueError if a layout is none, or has another number of axes than its value.
    """
    Seen.storage = True
    leaves, structure = tree.flatten(x)
    alone = isinstance(layouts, Layout)
    wanted = [layouts] * len(leaves) if alone else tree.leaves(
        layouts, is_leaf=lambda v: isinstance(v, Layout))
    if not all(isinstance(layout, Layout) for layout in wanted) or len(wanted) != len(leaves):
        raise ValueError("layouts passed to `with_layout_constraint` must be of type `Layout`. Got "
                         f"{[type(layout) for layout in wanted]}: give one Layout, or one for each "
                         f"of the {len(leaves)} values.")
    for leaf, layout in zip(leaves, wanted):
        shape = aval_of(leaf).shape
        if len(layout.major_to_minor) != len(shape):
            raise ValueError(
                "One of with_layout_constraint arguments is incompatible with its layout "
                f"annotation {layout}: Length of major_to_minor and the rank of the value should "
                f"match. Got major_to_minor={layout.major_to_minor} and shape={shape}")
    return structure.unflatten([bind(LayoutConstraint(w), v) for v, w in zip(leaves, wanted)])
