"""Which frames does a program find in the traceback of an error that it catches?"""

from __future__ import annotations

import builtins
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from both import source_of

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.core import config, frames, source

MODES = ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto")
X = np.ones(3, np.float32)


def fails(*xs):
    raise ValueError("boom")


def user(*xs):
    return fails(*xs)


def of_one(x):
    return x


def caught(call):
    try:
        call()
    except Exception as error:
        return error
    return None


def names(error):
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return found


def ruled():
    @jax.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda primals, tangents: user())
    return f


def frames_left(call):
    return names(caught(call))


CALLS = {
    "jit": "jax.jit(user)(1.)",
    "jit of grad": "jax.jit(jax.grad(user))(1.)",
    "lower": "jax.jit(user).lower(1.)",
    "trace": "jax.jit(user).trace(1.)",
    "grad": "jax.grad(user)(1.)",
    "value_and_grad": "jax.value_and_grad(user)(1.)",
    "jvp": "jax.jvp(user, (1.,), (1.,))",
    "vjp": "jax.vjp(user, 1.)",
    "linearize": "jax.linearize(user, 1.)",
    "vmap": "jax.vmap(user)(X)",
    "pmap": "jax.pmap(lambda x: user(x))(X[:1])",
    "make_jaxpr": "jax.make_jaxpr(user)(1.)",
    "eval_shape": "jax.eval_shape(user, 1.)",
    "checkpoint": "jax.checkpoint(user)(1.)",
    "scan": "lax.scan(user, 0., X)",
    "while_loop": "lax.while_loop(user, user, 1.)",
    "fori_loop": "lax.fori_loop(0, 3, user, 1.)",
    "cond": "lax.cond(True, user, user, 1.)",
    "switch": "lax.switch(1, [user, user], 1.)",
    "map": "lax.map(user, X)",
    "custom_root": "lax.custom_root(user, 1., user, user)",
    "a rule": "jax.jvp(ruled(), (1.,), (1.,))",
    "nested": "jax.vmap(lambda x: jax.jit(user)(x))(X)",
    "grad of vmap": "jax.grad(lambda x: jax.vmap(user)(x).sum())(X)",
    "scan in jit": "jax.jit(lambda x: lax.scan(lambda c, x: user(c), 0., x))(X)",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_frames_that_are_left_are_those_of_jax(jax_oracle, call):
    own = eval(f"frames_left(lambda: {call})", globals())
    assert own[:2] == ["caught", "<lambda>"] and own[-2:] == ["user", "fails"]
    if call.startswith("jax.pmap"):  # JAX leaves a frame of its decorator
        assert own == ["caught", "<lambda>", "<lambda>", "user", "fails"]
    else:
        assert own == jax_oracle.run(source_of(f"frames_left(lambda: {call})", __name__)).value


@pytest.mark.parametrize("call", [
    "jax.jacfwd(user)(1.)", "jax.hessian(user)(1.)", "jax.value_and_grad(user, (0, 1))(1., 2.)",
    "jnp.vectorize(user)(X)", "lax.reduce(X, 0., user, (0,))", "lax.associative_scan(user, X)",
    "jnp.piecewise(X, [X > 0], [user])", "jnp.apply_along_axis(user, 0, X)",
    "jax.closure_convert(user, 1.)", "jax.linear_transpose(user, 1.)(1.)",
    "jax.custom_vjp(user)", "lax.composite(user, 'a.b')(1.)",
    "lax.platform_dependent(1., cpu=user, default=user)",
    "lax.custom_linear_solve(user, X, user)", "jax.fwd_and_bwd(user, 0)[0](1.)",
])
def test_functions_that_call_a_users_function_leave_their_own_frames_out(call):
    if call == "jax.custom_vjp(user)":
        f = jax.custom_vjp(user)
        f.defvjp(user, user)
        assert frames_left(lambda: f(1.0)) == ["caught", "<lambda>", "user", "fails"]
        assert frames_left(lambda: jax.grad(f)(1.0)) == ["caught", "<lambda>", "user", "fails"]
    else:
        own = eval(f"frames_left(lambda: {call})", globals())
        assert own == ["caught", "<lambda>", "user", "fails"]


def test_an_error_of_the_engine_names_its_line_and_has_no_frames():
    for call in (lambda: jax.grad(lambda x: x)(X), lambda: jax.vmap(user)(1.0),
                 lambda: jax.jit(lambda x: 1 if x > 0 else 2)(1.0)):
        error = caught(call)
        assert set(names(error)) == {"caught", "<lambda>"}, error
        assert error.__notes__ == [frames.NOTE]
    assert names(caught(lambda: jnp.dot(X, jnp.ones(4)))) == ["caught", "<lambda>"]


@pytest.mark.parametrize("call", [
    "jax.jit(of_one)(1., 2.)", "jax.jit(of_one)()", "jax.jit(of_one)(y=1.)",
    "jax.grad(of_one)(1., 2.)", "jax.vmap(of_one)(X, X)", "lax.scan(of_one, 0., X)",
    "lax.cond(True, of_one, of_one)", "jax.jvp(of_one, (1., 2.), (1., 2.))",
    "lax.fori_loop(0, 3, of_one, 0.)",
])
def test_that_a_function_takes_other_arguments_is_the_users_error(jax_oracle, call):
    own = eval(f"frames_left(lambda: {call})", globals())
    assert own == ["caught", "<lambda>"]
    assert own == jax_oracle.run(source_of(f"frames_left(lambda: {call})", __name__)).value


def test_an_error_that_python_raised_inside_the_engine_keeps_its_frames(monkeypatch):
    monkeypatch.setattr("saem.transform.mapping.vmap_flat", None)
    error = caught(lambda: jax.vmap(jnp.sin)(X))
    assert isinstance(error, TypeError) and names(error)[-1] == "vmap_f"
    assert not hasattr(error, "__notes__")


def chained(*xs):
    try:
        fails()
    except ValueError as error:
        raise TypeError("second") from error


def with_mode(mode, call):
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", mode)
    try:
        return caught(call)
    finally:
        jax.config.update("jax_traceback_filtering", before)


def held_by(mode, call):
    """What an error and those before it hold: class, frames, notes, whether a cause."""
    error, found = with_mode(mode, call), []
    # The question was no expression, so its own error comes before in the process that answers.
    while error is not None and not isinstance(error, SyntaxError):
        left = names(error) if mode not in ("off", "tracebackhide") else [
            name for name in names(error) if name in ("caught", "<lambda>", "chained", "fails")]
        if type(error).__name__ == "UnfilteredStackTrace":
            left = [name for name in left if name in ("chained", "user", "fails")]
        found.append([type(error).__name__, left, len(getattr(error, "__notes__", [])),
                      error.__cause__ is not None, error.__suppress_context__])
        error = error.__cause__ or error.__context__
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", ["jax.jit(user)(1.)", "jax.jit(chained)(1.)"])
def test_modes_change_an_error_and_its_causes_as_jaxs_do(jax_oracle, mode, call):
    question = f"held_by({mode!r}, lambda: {call})"
    own = eval(question, globals())
    assert own == jax_oracle.run(source_of(question, __name__)).value


def test_the_whole_traceback_that_is_kept_is_whole():
    call = "jax.jit(lambda x: jax.vmap(jax.grad(user))(x))(X)"
    whole = with_mode("off", lambda: eval(call, globals()))
    fewer = with_mode("remove_frames", lambda: eval(call, globals()))
    start = ["caught", "<lambda>", "<module>"]
    assert names(whole)[:3] == start and names(fewer) == [*start, "<lambda>", "user", "fails"]
    assert names(fewer.__cause__) == names(whole)[3:] and len(names(whole)) > 12


def hidden(error):
    found, trace = [], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_locals.get("__tracebackhide__"):
            found.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return found


def test_hidden_frames_are_those_of_the_engine():
    with config.traceback_filtering("tracebackhide"):
        error = caught(lambda: jax.jit(jax.grad(user))(1.0))
    found = hidden(error)
    assert len(found) > 5 and all(source.is_internal(file) for file in found)
    assert len(names(error)) == len(found) + 4  # caught, the lambda, user and fails


def test_in_ipython_frames_are_hidden_and_not_left_out(monkeypatch):
    monkeypatch.setattr(builtins, "__IPYTHON__", True, raising=False)
    error = caught(lambda: jax.jit(user)(1.0))
    assert len(hidden(error)) > 3 and not hasattr(error, "__notes__")


def test_the_note_is_written_once_however_deep_an_error_comes_from():
    def deep(x):
        return jax.jit(lambda x: jax.vmap(lambda x: lax.cond(True, user, user, x))(x))(x)

    error = caught(lambda: jax.jit(deep)(X))
    assert error.__notes__ == [frames.NOTE]
    error = caught(lambda: jax.jit(lambda x: reraised(error))(1.0))
    assert error.__notes__ == [frames.NOTE]


def reraised(error):
    raise error


def test_an_error_caught_on_the_way_leaves_the_engine_usable():
    def f(x):
        try:
            jax.grad(user)(x)
        except ValueError:
            return x * 2

    assert float(jax.jit(f)(3.0)) == 6.0 and float(jax.grad(f)(3.0)) == 2.0


def test_files_that_count_as_the_engines_are_left_out(monkeypatch):
    monkeypatch.setattr(source, "_excluded", [])
    monkeypatch.setattr(source, "_internal", {})
    space = {"lax": lax, "user": user}
    exec(compile("def library(x):\n    return lax.map(lambda x: user(x), x)", "library.py", "exec"),
         space)
    library = space["library"]
    assert names(caught(lambda: jax.jit(library)(X))) == [
        "caught", "<lambda>", "library", "<lambda>", "user", "fails"]
    source.exclude("library.py")
    assert names(caught(lambda: jax.jit(library)(X))) == ["caught", "<lambda>", "user", "fails"]


def test_boundaries_keep_name_signature_and_documentation():
    assert lax.scan.__name__ == "scan" and "length" in inspect.signature(lax.scan).parameters
    assert lax.cond.__doc__ and lax.cond.__module__ == "saem.loops.conditional"


def test_pytest_shows_a_programs_own_lines(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import saem as jax\n\ndef f(x):\n    raise ValueError('boom')\n\n"
        "def test_it():\n    jax.jit(jax.grad(f))(1.)\n")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                           str(tmp_path / "test_it.py")], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(Path(jax.__file__).parents[1])})
    places = re.findall(r"^(\S+\.py):(\d+):", done.stdout, re.MULTILINE)
    assert [line for _, line in places] == ["7", "4"] and done.returncode == 1
    assert "Frames inside Saem were left out" in done.stdout
