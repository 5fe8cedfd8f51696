"""What numbers does each equation of a jaxpr give, and which one makes the first NaN?

Runs a jaxpr on NumPy by the ``evaluate`` rules, equation by equation, and keeps of each result a
small picture: statistics and a grid of at most 12 × 24 numbers.

Read before: ``core.jaxpr`` (evaluate), ``saem.observe.jaxpr_model``.  Read after: ``saem.lens``.
Invariant: what is shown of an equation is what NumPy computes for it (tests/lens/test_views.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.core import dtypes
from saem.core.jaxpr import Atom as CoreAtom
from saem.core.jaxpr import ClosedJaxpr, Eqn, as_numpy, evaluate
from saem.observe import schema
from saem.observe.environment import environment
from saem.observe.jaxpr_model import jaxpr_model, numbered
from saem.observe.schema import Picture, Step, StepsModel

ROWS, COLUMNS = 12, 24
_FIRST = 6


def picture(name: str, variable: str | None, kind: str, value: np.ndarray) -> Picture:
    """The small picture of an array: statistics of all numbers, a grid of some."""
    value = np.asarray(value)
    numbers = _as_numbers(value)
    finite = numbers[np.isfinite(numbers)]
    shown = np.array2string(value.ravel()[:_FIRST], precision=4, separator=", ")
    more = " …" if value.size > _FIRST else ""
    return Picture(
        name=name, variable=variable, type=kind, grid=_grid(numbers),
        minimum=float(finite.min()) if finite.size else None,
        maximum=float(finite.max()) if finite.size else None,
        mean=float(finite.mean()) if finite.size else None,
        deviation=float(finite.std()) if finite.size else None,
        nans=int(np.isnan(numbers).sum()), infs=int(np.isinf(numbers).sum()),
        size=int(value.size), text=shown + more,
    )


def _as_numbers(value: np.ndarray) -> np.ndarray:
    """The array as float64: the magnitude of complex numbers, 0 and 1 for booleans.

    Tangents of integers (float0) are zero.
    """
    if value.dtype == dtypes.float0:
        return np.zeros(value.shape)
    if np.iscomplexobj(value):
        return np.abs(value)
    return np.asarray(value, np.float64)


def _grid(numbers: np.ndarray) -> tuple[tuple[float | None, ...], ...]:
    """The last two axes of the first slice, thinned out to fit."""
    if numbers.size == 0:
        return ()
    while numbers.ndim > 2:
        numbers = numbers[0]
    numbers = np.atleast_2d(numbers)
    rows, columns = (_thinned(n, most) for n, most in zip(numbers.shape, (ROWS, COLUMNS)))
    return tuple(
        tuple(float(f"{x:.4g}") if np.isfinite(x) else None for x in row)
        for row in numbers[np.ix_(rows, columns)])


def _thinned(size: int, most: int) -> list[int]:
    if size <= most:
        return list(range(size))
    return [int(i) for i in np.linspace(0, size - 1, most)]


def steps_model(closed: ClosedJaxpr, args: Sequence[Any], title: str = "") -> StepsModel:
    """Run ``closed`` on ``args`` (flat) and show what each top-level equation gave.

    ``born`` are the equations, nested ones too, that gave a NaN or an infinity though none of their
    operands had one.
    """
    model = jaxpr_model(closed, title)
    ids: dict[int, str] = {}  # of equations, by the objects that the evaluator reports
    for name, eqn in numbered(closed.jaxpr):
        ids.setdefault(id(eqn), name)
    bad: set[int] = set()
    born: dict[str, None] = {}
    given: list[tuple[Eqn, list[np.ndarray]]] = []
    top = {id(eqn) for eqn in closed.jaxpr.eqns}
    for var, value in zip(closed.jaxpr.invars, args):
        _mark(bad, var, as_numpy(value, var.aval))

    def on_step(eqn: Eqn, values: list[np.ndarray]) -> None:
        clean = not any(id(a) in bad for a in eqn.invars)
        ill = [_mark(bad, var, value) for var, value in zip(eqn.outvars, values)]
        name = ids.get(id(eqn), "")
        if any(ill) and clean and not any(b.startswith(f"{name}.") for b in born):
            born[name] = None
        if id(eqn) in top:
            given.append((eqn, values))

    evaluate(closed, *args, on_step=on_step)
    atoms = {e.id: e.outputs for e in model.body.equations}
    steps = []
    for eqn, values in given:
        name = ids[id(eqn)]
        steps.append(Step(name, tuple(
            picture(atom.text, atom.id, atom.type, value)
            for atom, value in zip(atoms[name], values))))
    inputs = tuple(
        picture(atom.text, atom.id, atom.type, as_numpy(value, var.aval))
        for atom, var, value in zip(
            (*model.body.constants, *model.body.inputs),
            (*closed.jaxpr.constvars, *closed.jaxpr.invars), (*closed.consts, *args)))
    return StepsModel("steps", schema.VERSION, model, inputs, tuple(steps), tuple(born),
                      environment())


def _mark(bad: set[int], atom: CoreAtom, value: np.ndarray) -> bool:
    """Note whether a variable holds a NaN or an infinity."""
    ill = bool(value.size) and value.dtype.kind in "fcV" and not bool(
        np.isfinite(_as_numbers(value)).all())
    if ill:
        bad.add(id(atom))
    return ill
