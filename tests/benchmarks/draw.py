"""How do the figures of a run look at a glance?

``draw`` makes one picture of a stored run.  Above: Saem's time divided by JAX's, a dot for each
row, with the goal as a line beside it.  Below: seconds of Saem and of the eager engines.

Read before: ``bench.py``, which stores the figures.
Invariant: nothing is drawn but what the stored file says; ``python draw.py`` draws it again.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot as plt

COLOURS = {"saem": "#0b7285", "mlx": "#e8590c", "autograd": "#5f3dc4", "numpy": "#868e96"}
NAMES = {"saem": "Saem", "mlx": "MLX (CPU)", "autograd": "autograd", "numpy": "NumPy"}


def ratio(row: dict[str, Any]) -> float | None:
    """The median over the rounds of Saem's time divided by that of the library beside it."""
    pairs = list(zip(row["seconds"].get("saem", []), row["seconds"].get(row["beside"], [])))
    return statistics.median(mine / theirs for mine, theirs in pairs) if pairs else None


def draw(figures: Path, picture: Path) -> None:
    """Draw the run stored in ``figures`` as an SVG file."""
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "saem", "font.size": 8})
    stored = json.loads(figures.read_text("utf-8"))
    rows = [row for row in stored["rows"] if ratio(row) is not None]
    peers = [row for row in stored["peers"] if row["seconds"]]
    heights = [0.19 * len(rows) + 1, 0.55 * len(peers) + 1]
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(8, sum(heights)), height_ratios=heights, layout="constrained")

    places = range(len(rows))
    above.axvline(1, color="#adb5bd", linewidth=1)
    for place, row in zip(places, rows):
        value = ratio(row)
        colour = "#0b7285" if value <= row["goal"] else "#c92a2a"
        above.plot([row["goal"]] * 2, [place - 0.35, place + 0.35], color="#495057", linewidth=1.5)
        above.plot(value, place, "o", color=colour, markersize=5)
    above.set(xscale="log", yticks=list(places), yticklabels=[row["name"] for row in rows],
              title="Saem's time / JAX's time (a line is the goal; red: not reached)")
    above.invert_yaxis()
    above.grid(axis="x", alpha=0.3)

    for place, row in enumerate(peers):
        for offset, (library, seconds) in enumerate(row["seconds"].items()):
            below.barh(place + 0.19 * (offset - 1.5), 1e6 * statistics.median(seconds),
                       height=0.18, color=COLOURS[library])
    for library, name in NAMES.items():
        below.barh(0, 0, color=COLOURS[library], label=name)
    below.set(xscale="log", yticks=list(range(len(peers))), xlabel="microseconds",
              yticklabels=[row["name"] for row in peers],
              title="Eager, with the wait for the result")
    below.invert_yaxis()
    below.legend()
    below.grid(axis="x", alpha=0.3)
    about = stored["about"]
    figure.supxlabel(f"{about['date']}, {about['machine']}", fontsize=7)
    figure.savefig(picture, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    here = Path(__file__).resolve().parent / "results"
    draw(here / "latest.json", here / "latest.svg")
