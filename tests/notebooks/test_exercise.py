"""Is an answer judged by what it does, and does each kind of failure get its hint?"""

from __future__ import annotations

import pytest

import saem as jax
import saem.numpy as jnp
from saem.core.events import bus
from saem.lesson import begin, exercise, render

pytestmark = pytest.mark.usefixtures("fresh")


def padded_sum_check(padded_sum):
    with exercise.check("padded-sum") as check:
        with check.hint("values"):
            assert padded_sum([1.0, 2.0]) == 3.0, "padded_sum([1.0, 2.0]) must be 3.0"
        with check.hint("compiles"), check.watch("compiles", of="total") as seen:
            for length in range(1, 4):
                padded_sum([1.0] * length)
            assert seen.count == 1, f"compiled {seen.count} times"
    return exercise.results["padded-sum"]


def padded(size):
    @jax.jit
    def total(x):
        return jnp.sum(x)

    return lambda values: total(jnp.array(values + [0.0] * (size - len(values))))


def test_a_right_answer_passes(capsys):
    result = padded_sum_check(padded(8))
    assert (result.state, result.hint, result.details) == ("right", "", ())
    assert "Right!" in capsys.readouterr().out


def test_another_right_answer_passes():
    def total(x):
        return jnp.sum(x)

    total = jax.jit(total)
    answer = lambda values: total(jnp.zeros(5).at[:len(values)].set(jnp.array(values)))
    assert padded_sum_check(answer).state == "right"


def test_the_first_failing_block_gives_its_hint_and_the_message_of_the_assertion(capsys):
    result = padded_sum_check(lambda values: 7.0)
    assert (result.state, result.hint) == ("wrong", "values")
    assert result.details[0] == "padded_sum([1.0, 2.0]) must be 3.0"
    assert "values" in capsys.readouterr().out


def test_a_misspelt_name_is_told_without_the_hint_of_the_block():
    result = padded_sum_check(lambda values: sums(values))  # noqa: F821
    assert (result.state, result.hint) == ("wrong", "")
    assert "name 'sums' is not defined" in result.details[0]


def test_a_later_block_gives_another_hint():
    def total(x):
        return jnp.sum(x)

    total = jax.jit(total)
    for _ in range(2):
        result = padded_sum_check(lambda values: total(jnp.array(values)))
        assert (result.hint, result.details[0]) == ("compiles", "compiled 3 times")


def test_an_error_of_the_learner_is_shown_with_the_hint():
    result = padded_sum_check(lambda values: jnp.sum(values))
    assert (result.state, result.hint) == ("wrong", "values")
    assert result.details[0].startswith("Your code raised `ArgumentTypeError: sum")


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, jax.vmap, jax.grad])
def test_todo_is_no_answer_under_any_transformation(transform, capsys):
    answer = transform(lambda x: exercise.todo())
    with exercise.check("later") as check, check.hint("never shown"):
        answer(jnp.ones(2))
    assert exercise.results["later"].state == "unanswered"
    assert "No answer yet" in capsys.readouterr().out


def test_todo_outside_a_check_says_what_to_do():
    with pytest.raises(exercise.NotAnswered, match="in place of"):
        exercise.todo()


def test_an_error_of_the_lesson_itself_is_raised():
    with pytest.raises(ZeroDivisionError), exercise.check("broken"):
        1 / 0  # noqa: B018


def test_the_watch_is_gone_after_a_failure():
    before = bus.active
    padded_sum_check(lambda values: 3.0 if len(values) == 2 else 1 / 0)
    assert bus.active == before


def test_the_result_speaks_korean(capsys):
    begin("01-x", language="ko")
    padded_sum_check(padded(8))
    assert "맞았습니다!" in capsys.readouterr().out


def test_html_is_escaped_and_carries_the_state():
    page = render.exercise_html("a", "wrong", "<b>`x`</b>", ("<i>",))
    assert "<b>" not in page
    assert "<i>" not in page
    assert "<code>x</code>" in page
    assert 'data-gate="a" data-state="wrong"' in page
