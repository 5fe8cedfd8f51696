"""How does a program of this folder give numbers to its test?  Each as one line of JSON."""

from __future__ import annotations

import json

import numpy as np


def record(name: str, values) -> None:
    """Print the numbers called ``name``: a loss curve, or any array."""
    numbers = np.asarray(values, np.float64)
    assert np.all(np.isfinite(numbers)), (name, numbers)
    print(json.dumps({"name": name, "shape": numbers.shape, "values": numbers.ravel().tolist()}),
          flush=True)
