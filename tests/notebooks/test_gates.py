"""Is a guess judged fairly, in either order, and never in the way of a run?"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import saem as jax
import saem.numpy as jnp
from saem.core.events import (
    Argument,
    CacheMiss,
    Compile,
    FunctionRef,
    Signature,
    StaticArgument,
    TraceBegin,
    bus,
)
from saem.lesson import begin, notebook, predict, render, t, words
from saem.lesson.judge import changed_paths
from saem.observe import cards

pytestmark = pytest.mark.usefixtures("fresh")


def argument(path, shape=(3,), dtype="f32", **changes):
    given = {"weak_type": False, "committed": False, "placement": "cpu:0", "kind": "array",
             "given": "position"}
    return Argument(path=path, shape=shape, dtype=dtype, **(given | changes))


def signature(*arguments, static=()):
    return Signature(arguments, static, "*", (), ())


def call(name, *arguments, found=False, identity=1, static=(), disk=""):
    """What the engine publishes for a call that misses."""
    function = FunctionRef(name, name, "__main__", "cell", 1, identity)
    found_signature = signature(*arguments, static=static)
    bus.publish(CacheMiss(function=function, signature=found_signature, caller=None))
    if disk:
        bus.publish(TraceBegin(function=function, transform="jit"))
    bus.publish(
        Compile(function=function, program=str(found_signature), found=found, seconds=0.1,
                flops=None, bytes_accessed=None, code_bytes=None, argument_bytes=None,
                output_bytes=None, temp_bytes=None, disk=disk)
    )


def test_without_an_answer_the_run_goes_on_and_prints_the_truth(capsys):
    gate = predict.number("n", "How many?")
    gate.judge(2)
    out = capsys.readouterr().out
    assert "How many?" in out
    assert "What happened: 2" in out
    assert gate.right is None


def test_answer_then_run():
    gate = predict.number("n", "How many?")
    predict.answer("n", "2")
    gate.judge(2)
    assert gate.right is True
    assert gate.guess.after is False


def test_run_then_answer_is_judged_and_marked(capsys):
    gate = predict.number("n", "How many?")
    gate.judge(2)
    gate.answer(3)
    assert gate.right is False
    assert gate.guess.after is True
    assert "after the result was known" in capsys.readouterr().out


def test_asking_again_after_the_result_does_not_hide_that_it_was_seen():
    predict.number("n", "How many?").judge(2)
    again = predict.number("n", "How many?")
    again.answer(2)
    assert again.guess.after is True


def test_asking_again_before_any_result_is_a_fresh_start():
    predict.number("n", "How many?").answer(5)
    again = predict.number("n", "How many?")
    again.answer(2)
    assert (again.guess.value, again.guess.after) == (2.0, False)


def test_the_first_guess_and_the_first_run_count(capsys):
    gate = predict.number("n", "How many?")
    gate.answer(1)
    gate.answer(2)
    gate.judge(1)
    gate.judge(0)
    assert gate.right is True
    assert "This time: 0." in capsys.readouterr().out


def test_compiles_of_one_function_are_counted_and_explained(capsys):
    gate = predict.number("n", "How many?")
    gate.answer(2)
    with gate.watch("compiles", of="step"):
        call("step", argument("x"))
        call("other", argument("x"))
        call("step", argument("x", shape=(4,)))
    assert gate.right is True
    assert "argument `x`: `f32[3]` → `f32[4]`" in capsys.readouterr().out


def test_reasons_are_those_of_the_panel(capsys):
    gate = predict.number("n", "How many?")

    @jax.jit
    def double(x):
        return x * 2

    with gate.watch("compiles", of="double"):
        double(1.0)
        with jax.default_matmul_precision("float32"):
            double(1.0)
    said = capsys.readouterr().out
    assert "setting `jax_default_matmul_precision`: `None` → `'float32'`" in said


def test_a_program_found_again_counts_so_that_a_rerun_does_not_turn_the_verdict(capsys):
    gate = predict.number("n", "How many?")
    with gate.watch("compiles"):
        call("step", argument("x"), found=True)
    assert gate.truth.value == 1
    assert "not traced, since the same program was found" in capsys.readouterr().out


def test_a_program_is_counted_once_also_if_it_was_found():
    gate = predict.number("n", "How many?")
    first, second = jax.devices()[:2]
    numbers = jnp.arange(4.0)
    for _ in range(2):  # the cell is run again

        @jax.jit
        def triple(x):
            return x * 3

        with gate.watch("compiles", of=triple):
            for x in (numbers, jax.device_put(numbers, first), jax.device_put(numbers, second)):
                triple(x)
        assert gate.latest.value == 2


def test_a_program_from_the_cache_on_disk_is_said_to_be(capsys):
    gate = predict.number("n", "How many?")
    with gate.watch("compiles"):
        call("step", argument("x"), found=True, disk="found")
    assert gate.truth.value == 1
    assert "traced, and loaded from the cache on disk" in capsys.readouterr().out


def test_what_is_no_number_is_refused_in_words_and_a_number_may_mean_an_option():
    predict.number("n", "How many?")
    with pytest.raises(ValueError, match=r"such as 2 or 0[.]5, but got .six."):
        predict.answer("n", "six")
    gate = predict.choice("d", "How large?", ["6.0", "7.0"])
    predict.answer("d", 6.0)
    gate.judge("6.0")
    assert gate.right is True


def test_a_trace_is_named_only_where_there_was_one(capsys):
    gate = predict.number("n", "How many?")
    f = jax.jit(lambda x: x + 1)
    one = jnp.float32(1)
    with gate.watch("traces"):
        f(one)
        f(jax.device_put(one, jax.devices()[0]))
    assert gate.truth.value == 2
    out = capsys.readouterr().out
    assert "compiled — first call" in out
    assert "not traced, since the same program was found" in out


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"shape": (4,)}, "y"),
        ({"dtype": "int32"}, "y"),
        ({"weak_type": True}, "y"),
        ({"committed": True}, "y"),
        ({"placement": "cpu:1"}, "y"),
        ({"given": "keyword"}, "y"),
    ],
)
def test_the_argument_that_changed(changes, path):
    gate = predict.choice("n", "Which?", ["x", "y"])
    gate.answer("y")
    with gate.watch("argument"):
        call("step", argument("x"), argument("y"))
        call("step", argument("x"), argument("y", **changes))
    assert gate.truth.value == path
    assert gate.right is True


def test_a_static_argument_that_changed():
    old = signature(argument("x"), static=(StaticArgument("mode", "'a'", 1, "keyword"),))
    new = signature(argument("x"), static=(StaticArgument("mode", "'b'", 2, "keyword"),))
    assert changed_paths(old, new) == ["mode"]


def test_a_block_that_raises_leaves_the_question_open_and_the_bus_quiet():
    gate = predict.number("n", "How many?")
    listening = bus.active
    call_then_fail = lambda: (call("step", argument("x")), 1 / 0)
    with pytest.raises(ZeroDivisionError), gate.watch("compiles"):
        call_then_fail()
    assert gate.truth is None
    assert bus.active == listening


def test_choices_are_told_apart_by_value_not_by_language():
    gate = predict.choice("n", "Changed?", {True: "예", False: "아니요"})
    gate.answer("아니요")
    gate.judge(False)
    assert gate.right is True
    with pytest.raises(ValueError, match="choice needs one of"):
        gate.answer("maybe")


@pytest.mark.parametrize("answer", ["two", "nan", ""])
def test_what_is_no_number_is_refused(answer):
    with pytest.raises(ValueError):
        predict.number("n", "How many?").answer(answer)


def test_text_ignores_case_and_code_marks():
    gate = predict.text("n", "Which?")
    gate.answer(" `X` ")
    gate.judge("x")
    assert gate.right is True


def test_answering_what_was_never_asked_says_so():
    with pytest.raises(KeyError, match="asked before"):
        predict.answer("nothing", 1)


def test_all_text_is_escaped():
    evil = "<script>alert(1)</script> & `<b>` \u202e"
    gate = predict.choice('"><x', evil, [evil, "b"])
    gate.answer(evil)
    gate.judge(evil)
    for page in (render.question_html(gate), render.verdict_html(gate)):
        assert "<script" not in page
        assert "<b>" not in page
        assert '"><x' not in page
        assert "\u202e" not in page and "⟨U+202E⟩" in page


def test_a_verdict_ends_with_one_full_stop():
    gate = predict.choice("stop", "What happens?", ["It is an error.", "Nothing."])
    gate.answer("Nothing.")
    gate.judge("It is an error.")
    assert render.verdict_lines(gate) == [
        "You guessed: Nothing. What happened: It is an error."]


def test_of_many_arguments_the_report_names_the_first():
    many = jax.jit(lambda tree: sum(tree))
    gate = predict.number("many", "How many times?")
    with gate.watch("traces"):
        many([jnp.ones(n) for n in (1,) * 9])
    (line,) = gate.truth.lines
    assert "tree[5]: f32[1], … +3): compiled" in line and "tree[6]" not in line


def test_without_a_guess_the_html_folds_the_truth_away():
    gate = predict.number("n", "How many?")
    gate.judge(7)
    page = render.verdict_html(gate)
    assert page.index("<details>") < page.index("7") < page.index("</details>")


def test_the_language_comes_from_the_notebook(monkeypatch):
    monkeypatch.setattr(words, "_strings", lambda language: {"01-x": {"Hello": f"{language}!"}})
    assert t("Hello") == "Hello"
    begin("01-x", language="ko")
    assert t("Hello") == "ko!"
    assert t("unknown") == "unknown"
    assert words.say("commit") == "예측 확정하기"
    with pytest.raises(ValueError):
        begin("01-x", language="fr")


def press(options) -> None:
    """What the link in the browser does when the button is pressed."""
    options.pressed = not options.pressed


def test_a_widget_commits_and_shows_the_verdict():
    gate = predict.choice("n", "Which `x`?", ["a", "b"])
    box = notebook.box(gate)
    _, options, commit, verdict, *_rest = box.children
    assert "saem-gate" in box._dom_classes
    assert "saem-gate-option" in options._dom_classes
    assert "saem-gate-commit" in commit._dom_classes
    press(options)
    assert gate.guess is None
    assert "first" in verdict.value
    gate.judge("a")
    assert "What happened" not in verdict.value
    # As a front end sends it: one message with the choice and the press.
    options.set_state({"pressed": not options.pressed, "index": 0})
    assert gate.right is True
    assert 'data-state="right"' in verdict.value
    assert options.disabled
    assert commit.disabled


def test_a_page_without_a_kernel_shows_the_question_of_a_widget(monkeypatch):
    shown = []
    monkeypatch.setattr(notebook, "display", lambda *what, **how: shown.append((*what, how)))
    notebook.show(predict.choice("n", "Which `x`?", ["<a>", "b"]))
    bundle, how = shown[0]
    assert how == {"raw": True}
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"]
    assert bundle["text/plain"].splitlines()[:2] == ["[Predict] Which `x`?", "  ( ) <a>"]
    assert "Which <code>x</code>?" in bundle["text/html"]
    assert "&lt;a&gt;" in bundle["text/html"]


def test_a_widget_speaks_the_language_that_a_page_says_later():
    gate = predict.number("n", "How many?")
    box = notebook.box(gate)
    head, options, commit, *_rest = box.children
    assert commit.description == "Commit my guess" and "Predict" in head.value
    english = options.placeholder
    begin("01-x", language="ko")
    assert commit.description == "예측 확정하기" and "예측" in head.value
    assert options.placeholder not in ("", english)
    gate.answer(2)
    gate.judge(2)
    right = box.children[3].value
    begin("01-x", language="en")
    assert box.children[3].value != right and commit.description == "Commit my guess"


def test_a_number_widget_explains_what_it_needs():
    gate = predict.number("n", "How many?")
    _, options, _commit, verdict, *_rest = notebook.box(gate).children
    options.set_state({"pressed": not options.pressed, "value": "many"})
    assert "give a number" in verdict.value
    assert gate.guess is None


def test_a_script_loads_neither_ipython_nor_widgets():
    code = (
        "import sys; from saem.lesson import predict; predict.number('n', 'q').judge(1);"
        "print([m for m in ('IPython', 'ipywidgets') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_shape_is_read_as_people_write_it():
    gate = predict.shape("shape", "Which shape?")
    for text in ("(3, 4)", "3, 4", "f32[3,4]", " 3 × 4 ", "（３，４）"):
        assert gate.kind.read(text) == (3, 4)
    assert gate.kind.read("()") == ()
    with pytest.raises(ValueError, match="sizes such as"):
        gate.kind.read("three")
    gate.answer("3,4")
    gate.judge(np.zeros((3, 4)).shape)
    assert gate.right
    drawn = render.shape_html((2, 3))
    assert drawn.count("saem-box") == 6


def scaled(x, factor, mode="plain"):
    y = x * factor
    if y.sum() > 0:
        return y
    return -y


def test_which_argument_is_judged_by_the_engines_events():
    gate = predict.argument("argument", "Which argument?", of=scaled)
    assert list(gate.kind.options)[:3] == ["x", "factor", "mode"]
    gate.answer("x")
    double = jax.jit(lambda x, factor: x * factor)
    double.__name__ = "double"
    with gate.watch("argument"):
        double(np.ones(3, np.float32), 2.0)
        double(np.ones(4, np.float32), 2.0)
    assert gate.right


def test_which_line_is_judged_by_where_the_engine_raises():
    gate = predict.line("line", "Which line?", of=scaled)
    gate.answer("if y.sum() > 0:")
    with pytest.raises(jax.errors.TracerBoolConversionError), gate.watch("line"):
        jax.jit(scaled)(np.ones(3, np.float32), 2.0)
    assert gate.right
    (line,) = gate.truth.lines
    assert line == "`TracerBoolConversionError`: Python asked a traced value: true or false?"


def test_the_error_at_a_line_is_told_in_the_learners_language():
    begin("01-x", language="ko")
    gate = predict.line("line", "Which line?", of=scaled)
    with pytest.raises(jax.errors.TracerBoolConversionError), gate.watch("line"):
        jax.jit(scaled)(np.ones(3, np.float32), 2.0)
    card = cards.CARDS["TracerBoolConversionError"]
    assert gate.truth.lines == (f"`TracerBoolConversionError`: {card.title.ko}",)


def test_a_guess_taken_back_is_open_again_and_later_ones_are_marked():
    gate = predict.number("again", "How many?")
    gate.answer(2)
    predict.reset("again")
    assert gate.guess is None
    gate.answer(3)
    assert not gate.guess.after
    gate.judge(3)
    predict.reset()
    gate.answer(3)
    assert gate.guess.after


def test_an_overview_can_read_guess_and_truth():
    gate = predict.number("read", "How <many>?")
    gate.answer(2)
    gate.judge(3)
    shown = render.verdict_html(gate)
    assert 'data-guess="2"' in shown
    assert 'data-truth="3"' in shown
    assert 'data-question="How &lt;many&gt;?"' in shown
