"""What a program of this folder tells its test: named lists of numbers, as one line of JSON each."""

from __future__ import annotations

import json

import numpy as np


def record(name: str, values) -> None:
    """Print the numbers called ``name``: a loss curve, or any array."""
    numbers = np.asarray(values, np.float64)
    assert np.all(np.isfinite(numbers)), (name, numbers)
    print(json.dumps({"name": name, "shape": numbers.shape, "values": numbers.ravel().tolist()}),
          flush=True)
