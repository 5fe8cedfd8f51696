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


def line_search(solver, loss, params, steps: int) -> list:
    """Return the losses at ``steps`` steps of an optax solver that searches along a line."""
    import optax  # noqa: PLC0415 - most programs run without it

    value_and_grad = optax.value_and_grad_from_state(loss)
    state, curve = solver.init(params), []
    for _ in range(steps):
        value, grad = value_and_grad(params, state=state)
        updates, state = solver.update(
            grad, state, params, value=value, grad=grad, value_fn=loss)
        params = optax.apply_updates(params, updates)
        curve.append(value)
    return curve
