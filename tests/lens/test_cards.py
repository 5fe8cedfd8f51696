"""Every error of the engine has a card, which tells the way of the value and ways to mend it."""

from __future__ import annotations

from pathlib import Path

import nbformat
import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.core.primitive import Primitive, primitive
from saem.observe import cards, language

X = jnp.ones(3)


@pytest.mark.parametrize("error", jax.errors.__dict__.values())
def test_every_error_of_the_engine_has_a_card(error):
    if isinstance(error, type) and issubclass(error, Exception):
        made = error.__new__(error)
        assert cards.card_of(made) in cards.CARDS.values()


def test_a_card_tells_the_way_of_the_value():
    def asks(x):
        y = x * 2
        return 1 if y > 0 else 2

    with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
        jax.jit(asks)(1.0)
    model = cards.error_model(caught.value, caught.value.__traceback__)
    assert [step.name for step in model.path] == ["x", "y", "gt", "bool"]
    assert model.path[1].place.text == "y = x * 2"
    assert model.got == ("bool[]",)
    assert len(model.mends) == 2
    for lang in language.LANGUAGES:
        assert getattr(model.title, lang)


def test_a_card_of_a_gradient():
    with pytest.raises(TypeError) as caught:
        jax.grad(lambda x: x * 2)(X)
    assert cards.error_model(caught.value).tag == "grad.C4"


def static_list():
    power = jax.jit(lambda x, n: x, static_argnums=1)
    power(2.0, 2)  # from the second call on, the runtime looks at the arguments
    power(2.0, [1])


def guarded():
    with jax.transfer_guard("disallow"):
        jnp.sin(np.ones(3, np.float32))


@pytest.mark.parametrize(("provoke", "error", "tag"), [
    (lambda: jax.vmap(lambda a, b: a)(jnp.ones(3), jnp.ones(2)), ValueError, "vmap.C2"),
    (lambda: lax.psum(1.0, "people"), NameError, "axis.unbound"),
    (static_list, ValueError, "jit.static"),
    (guarded, jax.errors.JaxRuntimeError, "transfer.guard"),
    (lambda: primitive("incomplete")(type("Incomplete", (Primitive,), {})), TypeError,
     "primitive.rules"),
])
def test_an_error_that_a_lesson_provokes_is_known_by_its_tag_or_the_runtime_s_words(
        provoke, error, tag):
    with pytest.raises(error) as caught:
        provoke()
    assert cards.is_engines(caught.value)
    model = cards.error_model(caught.value, caught.value.__traceback__)
    assert model.tag == tag and cards.card_of(caught.value) is cards.CARDS[tag]
    assert model.place is not None


def test_an_error_of_somebody_else_has_no_card():
    for error in (ValueError("size must be positive"), NameError("name 'x' is not defined"),
                  IndexError("index 11 is out of bounds for axis 0 with size 10")):
        assert not cards.is_engines(error)


@pytest.mark.parametrize("path", sorted(
    (Path(__file__).parents[2] / "en").glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def test_the_errors_of_lessons_have_cards_of_their_own(path):
    general = cards.CARDS["Exception"].title.en
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            for mime, model in output.get("data", {}).items():
                if mime.startswith("application/vnd.saem") and model.get("kind") == "error":
                    assert model["title"]["en"] != general, cell.id


def test_the_lessons_that_cards_name_are_there():
    course = {path.stem for path in (Path(__file__).parents[2] / "notebooks").glob("*.md")}
    assert set(cards.LESSONS.values()) <= course
    assert {card.lesson for card in cards.CARDS.values()} <= set(cards.LESSONS)


def test_a_card_of_a_nan_names_the_line_that_made_it():
    @jax.jit
    def distance(x):
        below = x - 4.0
        return 1.0 + jnp.sqrt(below)

    with jax.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        distance(jnp.float32(1.0))
    model = cards.error_model(caught.value, caught.value.__traceback__)
    assert model.place.text == "return 1.0 + jnp.sqrt(below)"


def test_no_error_inside_the_engine_stands_before_the_learners():
    def root(x):
        return jax.lax.while_loop(lambda y: y * y < x, lambda y: y + 1.0, x)

    with pytest.raises(ValueError, match="Reverse-mode differentiation") as caught:
        jax.grad(root)(2.0)
    assert caught.value.__context__ is None


HELD = []


@pytest.mark.usefixtures("holders_are_seen")
def test_a_card_of_a_leak_tells_where_the_value_was_made_and_what_holds_it():
    def leaks(x):
        doubled = x * 2
        HELD.append(doubled)
        return doubled

    jax.jit(leaks)(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError) as caught:
        HELD[0] + 1
    model = cards.error_model(caught.value)
    assert [step.name for step in model.path] == ["x", "doubled", "HELD[0]"]
    assert model.path[1].place.text == "doubled = x * 2"
    assert model.place.text == "HELD[0] + 1"
    HELD.clear()


def test_a_way_through_two_functions_names_each_line():
    def inner(z):
        w = z + 1
        return w

    def outer(x):
        y = inner(x * 2)
        return int(y)

    with pytest.raises(jax.errors.ConcretizationTypeError) as caught:
        jax.jit(outer)(1.0)
    model = cards.error_model(caught.value)
    assert [(step.name, step.place and step.place.text) for step in model.path] == [
        ("x", None), ("y", "y = inner(x * 2)"), ("w", "w = z + 1"), ("int", None)]


def test_a_copy_that_a_guard_stopped_has_a_card_though_xla_raised_it():
    with jax.transfer_guard("disallow"), pytest.raises(jax.errors.JaxRuntimeError) as caught:
        X + np.ones(3, np.float32)
    assert cards.is_engines(caught.value)
    assert cards.error_model(caught.value, caught.value.__traceback__).tag == "transfer.guard"
    assert not cards.is_engines(jax.errors.JaxRuntimeError("INTERNAL: something else"))
