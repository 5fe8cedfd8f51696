"""How do I see which device holds which part of an array?

``inspect_array_sharding`` hands the sharding of a value to a function: outside jit at once, inside
when the partitioner has decided, that is while the program is compiled.  ``visualize_sharding``
draws a sharding of one or two dimensions as a table of devices.

Read before: ``placement.shardings``, ``effects.callbacks``.  Read after: ``saem.debug``.
Invariant: looking changes no placement (tests/kernel/test_inspecting.py).
Source: the documentation of jax.debug.inspect_array_sharding and visualize_array_sharding.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

from saem import _jaxlib
from saem.compile import dispatch
from saem.compile.device_assignment import hold
from saem.compile.text import physical_aval
from saem.core import effects, errors, tree
from saem.core.avals import aval_of
from saem.core.lazy import later
from saem.core.primitive import primitive
from saem.core.trace import bind
from saem.effects.callbacks import Debugging
from saem.effects.host_calls import host_call_numbers
from saem.ops import sharding_rules, sum_rules
from saem.placement import devices
from saem.placement.shardings import named_from_xla

console: Any = later("rich.console")
rich_text: Any = later("rich.text")

# Styles of rich, each readable on a light and on a dark page.
STYLES = ("white on blue", "white on green", "white on magenta", "white on red",
          "black on cyan", "black on yellow", "black on white", "white on bright_black")


class Decided:
    """What the partitioner calls with its decision about one value."""

    def __init__(self, callback: Callable[[Any], None], mesh: Any, ndim: int):
        self.number = next(host_call_numbers)
        self.callback = callback
        self.mesh = mesh
        self.ndim = ndim

    def __call__(self, sharding: Any) -> None:
        self.callback(named_from_xla(sharding, [self.mesh], self.ndim))


@primitive("inspect_sharding")
class InspectSharding(Debugging):
    """Hand the sharding of a value to ``callback``."""

    callback: Callable[[Any], None]

    threaded = False
    effects = frozenset({effects.DEBUG})

    shard_results = sharding_rules.unchanged
    sum_results = sum_rules.unchanged

    def host_name(self):
        return getattr(self.callback, "__name__", repr(self.callback))

    def evaluate(self, x):
        self.callback(devices.single_device(devices.default_device()))
        return []

    def lower(self, ctx, x):
        module = ctx.module
        if len(module.devices) < 2:
            self.callback(devices.single_device(devices.default_device()))
            return []
        aval = physical_aval(ctx.avals[x])
        decided = Decided(self.callback, next(iter(module.meshes)), len(aval.shape))
        # As one of its callbacks it lives as long as the program, which is compiled each time: one
        # found again would not be asked.
        module.callback(decided)
        address = "".join(f"\\{byte:02X}" for byte in
                          _jaxlib.encode_inspect_sharding_callback(decided))
        ctx.emit(f'"stablehlo.custom_call"({x}) <{{call_target_name = "InspectSharding", '
                 f'backend_config = "{address}", has_side_effect = true}}>', x, out=aval)
        return []

    def batch(self, size, xs, dims):
        bind(self, *xs)
        return [], []

    def eager(self, x: Any) -> list[Any]:
        self.callback(hold(dispatch.put(x)).sharding)
        return []


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Call ``callback`` with the sharding of each array in the pytree ``value``.

    Inside jit it is called when the program is compiled, once for each time that happens.
    """
    prim = InspectSharding(callback)
    for leaf in tree.leaves(value):
        bind(prim, leaf)


# -- drawing ---------------------------------------------------------------------------------------

Cells = dict[tuple[int, int], str]


def device_table(shape: Sequence[int], sharding: Any) -> tuple[list[int], list[int], Cells]:
    """Return where rows of parts start, where columns start, and the devices of each part.

    Raises: ValueError unless the array has one or two dimensions.
    """
    if len(shape) not in (1, 2):
        raise errors.explained(
            errors.ArgumentError, "visualize_sharding.C1",
            f"`visualize_sharding` only works for shapes with 1 and 2 dimensions, got {shape}.",
            advice="Reshape the array, or look at x.sharding.")
    held: dict[tuple[int, int], list[Any]] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        starts = [part.start or 0 for part in index]
        row, column = (0, *starts) if len(starts) == 1 else starts
        held.setdefault((row, column), []).append(device)
    cells = {}
    for place, there in held.items():
        numbers = ",".join(str(d.id) for d in sorted(there, key=lambda d: d.id))
        cells[place] = f"{there[0].platform.upper()} {numbers}"
    return sorted({r for r, _ in cells}), sorted({c for _, c in cells}), cells


def cell_sizes(shape: Sequence[int], rows: int, labels: Sequence[int], scale: float,
               min_width: int, max_width: int) -> tuple[list[int], int]:
    """Return the widths of columns and the height of a row, shaped as the array is.

    At ``scale`` 1 a table is ten lines high; a character is 2.5 times as high as wide.  An array of
    one dimension counts as a column, and is drawn as one line.  ``labels`` are the lengths that
    must fit; a table that is wider than ``max_width`` has cells as narrow as they allow.
    """
    high, columns = int(10 * scale), len(labels)
    wide = 2.5 * int(high * (shape[1] if len(shape) == 2 else 1) / max(1, shape[0]))
    width = int(max(min(wide / columns, max_width), min_width)) - 2
    width = min(width, (max_width - columns - 1) // columns)
    return [max(width, label) for label in labels], \
        max(1, high // rows - 1) if len(shape) == 2 else 1


def lines_of(rows: Sequence[int], columns: Sequence[int], cells: Cells, widths: Sequence[int],
             height: int) -> list[tuple[str, list[str]]]:
    """Return lines of text; with each, the label of every cell it crosses (none: a border)."""

    def border(left: str, middle: str, right: str) -> tuple[str, list[str]]:
        return left + middle.join("─" * w for w in widths) + right, []

    lines = [border("┌", "┬", "┐")]
    for number, row in enumerate(rows):
        if number:
            lines.append(border("├", "┼", "┤"))
        labels = [cells[row, column] for column in columns]
        for line in range(height):
            shown = [" " * ((w - len(label)) // 2) + label if line == (height - 1) // 2 else ""
                     for label, w in zip(labels, widths)]
            lines.append(("│" + "│".join(map(str.ljust, shown, widths)) + "│", labels))
    return [*lines, border("└", "┴", "┘")]


def visualize_sharding(shape: Sequence[int], sharding: Any, *, use_color: bool = True,
                       scale: float = 1.0, min_width: int = 9, max_width: int = 80,
                       color_map: Any = None) -> None:
    """Print a table of the devices on which the parts of an array of ``shape`` lie.

    Cells are coloured by device if the package rich is installed.
    Raises: ValueError unless there are one or two dimensions.
    """
    rows, columns, cells = device_table(shape, sharding)
    labels = [max(len(cells[row, column]) for row in rows) for column in columns]
    widths, height = cell_sizes(shape, len(rows), labels, scale, min_width, max_width)
    lines = lines_of(rows, columns, cells, widths, height)
    if not (use_color and importlib.util.find_spec("rich")):
        print("\n".join(text for text, _ in lines))
        return
    names = sorted(set(cells.values()))
    styles = {name: f"on {color_map(number)}" if callable(color_map)
              else STYLES[number % len(STYLES)] for number, name in enumerate(names)}
    colored = rich_text.Text()
    for text, crossed in lines:
        line = rich_text.Text(text + "\n")
        start = 1
        for label, width in zip(crossed, widths):
            line.stylize(styles[label], start, start + width)
            start += width + 1
        colored.append_text(line)
    console.Console(width=max(max_width, sum(widths) + len(widths) + 1)).print(colored, end="")


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print a table of the devices on which the parts of ``arr`` lie; see visualize_sharding.

    Inside jit it is printed when the program is compiled.
    """
    shape = aval_of(arr).shape
    inspect_array_sharding(arr, callback=lambda s: visualize_sharding(shape, s, **kwargs))
