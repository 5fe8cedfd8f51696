"""What does a transformation make of a program, and what does reverse mode keep?

``bench_model`` applies a list of transformations one after the other and sets each program beside
the one before, equation by equation; ``autodiff_model`` shows a gradient's program with the values
that its forward part keeps for its backward part.

Read before: ``saem.observe.jaxpr_model``.  Read after: ``saem.lens.views``.
Invariant: each row of a diff holds each equation once (tests/lens/test_views.py).
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Sequence
from typing import Any

from saem import ad_checkpoint
from saem.core import errors
from saem.core.jaxpr import ClosedJaxpr, Literal
from saem.jit.decorator import jit
from saem.observe import cards, schema
from saem.observe.environment import environment
from saem.observe.jaxpr_model import bytes_of, jaxpr_model
from saem.observe.schema import (
    AutodiffModel,
    BenchModel,
    BenchStage,
    DiffRow,
    JaxprModel,
    Residual,
    Text,
)
from saem.transform.derivatives import grad, jvp, value_and_grad
from saem.transform.mapping import vmap
from saem.transform.programs import make_jaxpr

OFFERED = ("grad", "value_and_grad", "vmap", "vmap(in_axes=1)", "jvp", "jit", "checkpoint")


def _forward(fun: Callable, **options: Any) -> Callable:
    """The jvp of ``fun`` along the arguments themselves, as a function of them alone."""
    return lambda *args: jvp(fun, args, args, **options)


_MADE: dict[str, Callable[..., Callable]] = {
    "grad": grad, "value_and_grad": value_and_grad, "vmap": vmap, "jvp": _forward, "jit": jit,
    "checkpoint": ad_checkpoint.checkpoint,
}  # fmt: skip


class UnknownTransformation(ValueError):
    """A chip that names no transformation; ``text`` is the message in both languages."""

    def __init__(self, chip: str) -> None:
        names = ", ".join(_MADE)
        self.text = Text(
            f"a transformation needs to be one of {names}, with literal keyword arguments, "
            f"but got {chip!r}",
            f"변환은 {names} 중 하나이고 키워드 인자는 Python 리터럴이어야 하는데, {chip!r} 값을 "
            "받았습니다")
        super().__init__(self.text.en)


def transformation(chip: str) -> Callable[[Callable], Callable]:
    """The transformation a chip names: ``grad``, ``vmap(in_axes=(0, None))``, ``jit``.

    Its keyword arguments are Python literals.
    Raises: UnknownTransformation, a ValueError, for anything else.
    """
    try:
        parsed = ast.parse(chip.strip(), mode="eval").body
        if isinstance(parsed, ast.Name):
            name, options = parsed.id, {}
        elif isinstance(parsed, ast.Call) and isinstance(parsed.func, ast.Name) and not parsed.args:
            name = parsed.func.id
            options = {k.arg or "": ast.literal_eval(k.value) for k in parsed.keywords}
        else:
            raise ValueError
        if "" in options:  # ``**options``
            raise ValueError
        make = _MADE[name]
    except (SyntaxError, ValueError, KeyError):
        raise UnknownTransformation(chip) from None
    return lambda fun: make(fun, **options)


def bench_model(fun: Callable, chips: Sequence[str], args: Sequence[Any], title: str = ""
                ) -> BenchModel:
    """The programs of ``fun`` and of ``fun`` under each further transformation."""
    name = title or getattr(fun, "__name__", "f")
    stages = [_stage(name, fun, args, None)]
    label = name
    for chip in chips:
        label = f"{chip}({label})" if "(" not in chip else f"{chip[:-1]})({label})"
        before = stages[-1].jaxpr
        try:
            fun = transformation(chip)(fun)
        except Exception as error:
            stages.append(BenchStage(label, None, (), (), 0, _said(error)))
            break
        stages.append(_stage(label, fun, args, before))
    return BenchModel("bench", schema.VERSION, name, tuple(chips), OFFERED, tuple(stages),
                      environment())


def _said(error: BaseException) -> Text:
    """What went wrong, in both languages; each has the engine's own sentence."""
    if isinstance(error, UnknownTransformation):
        return error.text
    message = str(error)
    # A library's line, such as that of the widget which asked, is not a line of the learner.
    if isinstance(error, errors.Explained) and error.where is not None \
            and "site-packages" in error.where.file:
        message = errors.compose(error.tag, error.sentence, None, error.advice)
    message = f"{type(error).__name__}: {message}"
    if not cards.is_engines(error):
        return Text(message, message)
    card = cards.card_of(error)
    return Text(message, f"{card.title.ko}. {card.needed.ko}\n{message}")


def _stage(label: str, fun: Callable, args: Sequence[Any], before: JaxprModel | None
           ) -> BenchStage:
    try:
        closed = make_jaxpr(fun)(*args)
    except Exception as error:  # a learner's function, or a transformation that does not fit it
        return BenchStage(label, None, (), (), 0, _said(error))
    model = jaxpr_model(closed, label)
    saved = residuals(closed, model)
    rows = () if before is None else diff(before, model)
    return BenchStage(label, model, rows, saved, sum(r.bytes for r in saved), None)


def diff(left: JaxprModel, right: JaxprModel) -> tuple[DiffRow, ...]:
    """Equations of two programs side by side: those that are the same in one row."""
    def key(equation: schema.Equation) -> tuple:
        return (equation.primitive, tuple(a.type for a in equation.outputs),
                tuple(a.type for a in equation.inputs), equation.colour)

    was, now = left.body.equations, right.body.equations
    matcher = difflib.SequenceMatcher(None, [key(e) for e in was], [key(e) for e in now], False)
    rows: list[DiffRow] = []
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            rows += [DiffRow(was[a + i].id, now[c + i].id, True) for i in range(b - a)]
        else:
            for i in range(max(b - a, d - c)):
                rows.append(DiffRow(was[a + i].id if a + i < b else None,
                                    now[c + i].id if c + i < d else None, False))
    return tuple(rows)


def autodiff_model(fun: Callable, args: Sequence[Any], title: str = "") -> AutodiffModel:
    """The program of the gradient of ``fun`` with what it keeps on the way forward."""
    name = title or f"grad({getattr(fun, '__name__', 'f')})"
    closed = make_jaxpr(value_and_grad(fun))(*args)
    model = jaxpr_model(closed, name)
    saved = residuals(closed, model)
    return AutodiffModel("autodiff", schema.VERSION, model, saved, sum(r.bytes for r in saved),
                         environment())


def residuals(closed: ClosedJaxpr, model: JaxprModel) -> tuple[Residual, ...]:
    """The values made on the way forward (or given) that equations on the way back read."""
    makers: dict[Any, int] = dict.fromkeys((*closed.jaxpr.constvars, *closed.jaxpr.invars), -1)
    readers: dict[Any, list[str]] = {}
    equations = model.body.equations
    for index, (eqn, equation) in enumerate(zip(closed.jaxpr.eqns, equations)):
        if equation.colour == "backward":
            for atom in eqn.invars:
                if not isinstance(atom, Literal) and atom in makers:
                    readers.setdefault(atom, []).append(equation.id)
        else:
            makers.update((v, index) for v in eqn.outvars)
    atoms = {a.id: a for a in (*model.body.constants, *model.body.inputs)}
    atoms.update((a.id, a) for e in equations for a in e.outputs)
    by_var = dict(zip((*closed.jaxpr.constvars, *closed.jaxpr.invars),
                      (*model.body.constants, *model.body.inputs)))
    for eqn, equation in zip(closed.jaxpr.eqns, equations):
        by_var.update(zip(eqn.outvars, equation.outputs))
    found = []
    for var, used in readers.items():
        shown, maker = by_var[var], makers[var]
        found.append(Residual(
            shown.id, shown.text, shown.type, bytes_of(var),
            None if maker < 0 else equations[maker].id, tuple(dict.fromkeys(used)),
            None if maker < 0 else equations[maker].place))
    return tuple(found)
