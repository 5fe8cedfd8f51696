"""Do errors derive as JAX's do, and does each say what, where and what to try?"""

from __future__ import annotations

import builtins
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from both import source_of

import saem as jax
import saem.errors as public
import saem.numpy as jnp
from saem import lax
from saem.core import errors
from saem.core.events import ErrorRaised, Position, bus

HERE = Position(__file__, 1, 0, 1, 3, "f")
FIRST_LINE = '"""Do errors derive as JAX\'s do, and does each say what, where and what to try?"""'


def test_classes_derive_as_in_jax(jax_oracle):
    theirs = jax_oracle.run(
        "{n: [c.__name__ for c in getattr(jax.errors, n).__mro__ if c.__name__[0] != '_']"
        " for n in dir(jax.errors) if isinstance(getattr(jax.errors, n), type)}"
    ).value
    assert len(theirs) == 12
    ours = {
        name: [c.__name__ for c in getattr(public, name).__mro__ if c.__name__[0] != "_"]
        for name in theirs
    }
    ours = {name: [c for c in bases if c != "Explained"] for name, bases in ours.items()}
    assert ours == theirs


def test_a_message_has_tag_sentence_line_and_advice():
    error = errors.explained(
        public.ShapeError,
        "add.C1",
        "operands must have one shape, but got f32[3] and f32[4].",
        advice="To stretch y along a new axis,\nuse jnp.add.",
        where=HERE,
    )
    assert str(error).splitlines() == [
        "add.C1: operands must have one shape, but got f32[3] and f32[4].",
        f"  in {__file__}, line 1:   {FIRST_LINE}",
        "  To stretch y along a new axis,",
        "  use jnp.add.",
    ]
    assert (error.tag, error.where) == ("add.C1", HERE)
    assert isinstance(error, TypeError)
    assert isinstance(error, ValueError)


def test_the_place_is_the_callers_unless_given():
    error = errors.explained(public.DTypeError, "x.C1", "no.")
    assert error.where.file == __file__
    assert 'errors.explained(public.DTypeError, "x.C1", "no.")' in str(error)


def test_a_place_is_said_once():
    error = public.DTypeError("no.", tag="x.C1")
    assert str(error) == "x.C1: no."
    assert error.place(None) is error.place(HERE)
    assert FIRST_LINE in str(error)
    error.place(Position("elsewhere.py", 9, 0, 9, 0, "g"))
    assert error.where == HERE


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("<ipython-input-7-abc>", "cell 7"),
        ("/tmp/ipykernel_42/123.py", "a notebook cell"),
        ("/tmp/ipykernel_42/named.py", "cell 3"),
        ("model.py", "model.py"),
    ],
)
def test_files_are_called_what_a_person_calls_them(file, name, monkeypatch):
    monkeypatch.setitem(errors.cell_names, "/tmp/ipykernel_42/named.py", "cell 3")
    where = Position(file, 2, 0, 2, 1, "f")
    assert errors.place_and_line(where) == f"{name}, line 2"


def test_any_exception_class_can_be_explained():
    error = errors.explained(OverflowError, "int.C1", "too large.", advice="Use a float.")
    assert type(error) is OverflowError
    assert str(error).startswith("int.C1: too large.")
    assert str(error).endswith("Use a float.")


def test_listeners_hear_of_errors():
    heard = []
    unsubscribe = bus.subscribe(heard.append)
    try:
        error = errors.explained(public.ShapeError, "add.C1", "no.", where=HERE)
    finally:
        unsubscribe()
    (event,) = heard
    assert isinstance(event, ErrorRaised)
    assert (event.tag, event.error, event.where) == ("add.C1", "ShapeError", HERE)
    assert event.message == str(error)


def test_errors_can_be_pickled():
    error = errors.explained(public.TracerBoolConversionError, "bool.C1", "no.", advice="Try.")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.tag) == (type(error), str(error), "bool.C1")


QUESTIONS = {
    "TracerBoolConversionError": ("jax.jit(lambda x: bool(x))(True)", np.bool_(True)),
    "ConcretizationTypeError": ("jax.jit(lambda x: float(x))(3)", np.int32(3)),
    "TracerArrayConversionError": ("jax.jit(lambda x: np.sin(x))(1.0)", np.float32(1)),
    "TracerIntegerConversionError": ("jax.jit(lambda x: [1, 2][x])(1)", np.int32(1)),
    "NonConcreteBooleanIndexError": ("jax.jit(lambda x: x[x > 0])(jnp.ones(3))", np.zeros(3, bool)),
}


def refusal(call):
    """Return the class and the words of the error that ``call`` raises."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_error_about_a_tracer_opens_with_the_words_of_jax(jax_oracle, name):
    source, stand_in = QUESTIONS[name]
    theirs = jax_oracle.run(source_of(f"refusal(lambda: {source})", __name__)).value
    assert theirs[0] == name
    ours = str(getattr(public, name)(stand_in))
    assert ours.splitlines()[0].rstrip(".") == theirs[1].splitlines()[0].rstrip(".")


def test_context_follows_the_sentence():
    error = public.ConcretizationTypeError(np.float32(1), "while summing")
    assert str(error).splitlines()[1] == "while summing"


# What is refused, one program a line, in sections of one question each.
REFUSED = {part.split(" ===\n")[0]: part.split(" ===\n")[1].strip().splitlines() for part in
           (Path(__file__).parent / "refusals.txt").read_text(encoding="utf-8").split("=== ")[1:]}

# This text runs in both processes: the classes and the words of the error of each program.
REFUSE = """
def refused(program):
    try:
        exec(program, dict(jax=jax, jnp=jnp, lax=lax, np=np))
    except Exception as error:
        return [cls.__name__ for cls in type(error).__mro__], str(error)
    return ["nothing"], ""

result = [refused(program) for program in programs]
"""


def plain(message):
    """Return a message without addresses, and with JAX's name for the library."""
    return re.sub(r"0x[0-9a-f]+", "0x", message).replace("saem", "jax")


def first_sentence(message):
    """Return the first sentence of a message: up to a line's end, or to a point and a capital."""
    sentences = re.split(r"\n|(?<=[a-z0-9)\]}'`])\. +(?=[A-Z(])", plain(message).strip())
    return sentences[0].rstrip(" .,;:")


@pytest.mark.parametrize("section", REFUSED)
@pytest.mark.filterwarnings("ignore")
def test_a_refusal_has_the_first_sentence_of_jax(jax_oracle, section):
    programs = REFUSED[section]
    names = {"jax": jax, "jnp": jnp, "lax": lax, "np": np, "programs": programs}
    exec(REFUSE, names)
    theirs = jax_oracle.run(REFUSE, programs=programs).value
    wrong = [f"{program}\n  JAX : {says}\n  here: {said}"
             for program, (classes, said), (wanted, says)
             in zip(programs, names["result"], theirs, strict=True)
             if wanted[0] == "nothing" or first_sentence(says) not in plain(said)
             or next(name for name in wanted if hasattr(builtins, name) or name in public.__dict__)
             not in classes]
    assert not wrong, f"{len(wrong)} of {len(programs)} differ\n" + "\n".join(wrong)
