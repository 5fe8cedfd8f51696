"""Do settings hold where they should: this thread, this process, this trace's key?"""

from __future__ import annotations

import enum
import os
import subprocess
import sys
import threading

import pytest
from both import source_of

import saem as jax
from saem.core import config as settings
from saem.core import declared, unread_options
from saem.core.config import SETTINGS, config, enable_x64
from saem.core.declared import DECLARED


@pytest.fixture(autouse=True)
def _restore():
    before = {name: setting.get_global() for name, setting in SETTINGS.items()}
    yield
    for name, value in before.items():
        SETTINGS[name].set_global(value)


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "SAEM_"))}
    clean.update(PYTHONPATH=os.pathsep.join(sys.path), SAEM_ENABLE_COMPILATION_CACHE="0")
    return subprocess.run(
        [sys.executable, "-c", code], env={**clean, **environment}, capture_output=True, text=True
    )


def test_a_scope_ends_and_nests():
    assert not enable_x64.value
    with enable_x64(True):
        assert config.jax_enable_x64
        with enable_x64(False):
            assert not config.jax_enable_x64
        assert config.jax_enable_x64
    assert not config.jax_enable_x64


def test_a_scope_ends_when_its_body_raises():
    with pytest.raises(KeyError), enable_x64(True):
        raise KeyError
    assert not enable_x64.value


def test_one_scope_object_may_be_entered_again_and_decorate():
    scope = enable_x64(True)
    with scope, scope:
        assert enable_x64.value
    assert not enable_x64.value

    @scope
    def inside():
        return enable_x64.value

    assert inside()
    assert not enable_x64.value


def test_a_scope_is_of_one_thread_and_update_of_all():
    seen = []

    def look():
        seen.append((config.jax_enable_x64, config.jax_debug_nans))

    config.update("jax_debug_nans", True)
    with enable_x64(True):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [(False, True)]


def test_a_thread_inside_a_scope_keeps_its_value():
    with enable_x64(False):
        config.update("jax_enable_x64", True)
        assert not enable_x64.value
    assert enable_x64.value


def different(row):
    """Return some value of the setting other than its present one."""
    if row.choices:
        return next(c for c in row.choices if c != SETTINGS["jax_" + row.name].value)
    value = SETTINGS["jax_" + row.name].value
    return {"bool": not value, "int": 7, "float": 2.5, "str": "x", "device": "cpu"}[row.kind]


@pytest.mark.parametrize("row", [r for r in DECLARED if not r.process], ids=lambda r: r.name)
def test_the_trace_key_follows_exactly_what_is_declared(row):
    before, named = settings.trace_key(), settings.trace_context_named()
    with SETTINGS["jax_" + row.name](different(row)):
        assert (settings.trace_key() != before) == row.in_key
        assert (settings.trace_context_named() != named) == row.in_key
    assert settings.trace_key() == before


def test_an_unknown_name_is_refused_with_the_nearest():
    for ask in (lambda: config.update("jax_enable_x65", True), lambda: config.jax_enable_x65):
        with pytest.raises(AttributeError, match="Did you mean 'jax_enable_x64'"):
            ask()
    with pytest.raises(AttributeError, match="Did you mean 'jax_debug_nans'"):
        config.read("debug_nans")


def test_a_test_of_a_program_may_replace_update(monkeypatch):
    heard = []
    with monkeypatch.context() as patch:
        patch.setattr(config, "update", lambda *change: heard.append(change))
        config.update("jax_debug_nans", True)
    assert heard == [("jax_debug_nans", True)] and not config.jax_debug_nans
    config.update("jax_debug_nans", False)
    assert len(heard) == 1


def test_values_are_checked():
    with pytest.raises(ValueError, match="'allow', 'warn', 'raise'"):
        config.update("jax_numpy_rank_promotion", "sometimes")
    with pytest.raises(ValueError, match="new enum value must be None or in"):
        config.update("jax_default_matmul_precision", "best")
    with settings.debug_nans("False"):  # a text that is not empty is true, as in Python and in JAX
        assert config.jax_debug_nans is True
    with pytest.raises(ValueError, match="needs a value of type int"):
        config.update("jax_random_seed_offset", "3")
    config.update("jax_default_matmul_precision", None)
    assert config.jax_numpy_rank_promotion == "allow"


def test_misuse_is_explained():
    with pytest.raises(AttributeError, match=r"config\.update"):
        config.jax_enable_x64 = True
    with pytest.raises(TypeError, match="no truth value"):
        bool(enable_x64)
    with pytest.raises(TypeError, match="whole process"):
        SETTINGS["jax_platforms"]("cpu")
    with pytest.raises(TypeError, match="one new value"):
        SETTINGS["jax_default_device"]()
    with pytest.raises(TypeError, match="unexpected keyword argument 'enabled'"):
        enable_x64(enabled=False)


@pytest.mark.parametrize("variable", ["JAX_ENABLE_X64", "SAEM_ENABLE_X64"])
@pytest.mark.parametrize(("word", "value"), [("1", True), ("True", True), ("off", False)])
def test_the_environment_sets_the_default(variable, word, value):
    code = "from saem.core.config import config; print(config.jax_enable_x64)"
    assert run_python(code, **{variable: word}).stdout.strip() == str(value)


def test_a_bad_environment_variable_is_named():
    ended = run_python("import saem.core.config", JAX_ENABLE_X64="maybe")
    assert "environment variable JAX_ENABLE_X64 needs a truth value, got 'maybe'" in ended.stderr


def test_every_setting_is_one_of_jax_with_the_same_default(jax_oracle):
    def defaults():
        def plain(v):
            if isinstance(v, enum.IntEnum):
                return v.name.lower()
            return v.value if isinstance(v, enum.Enum) else v

        return {k: plain(v) for k, v in jax.config.values.items()}

    theirs = jax_oracle.run(source_of(defaults)).value
    # Told by the oracle's own start, not by JAX's default.
    theirs["jax_platforms"] = None
    theirs["jax_num_cpu_devices"] = -1
    # Where there are two cores or fewer; the next test says more.
    theirs["jax_cpu_enable_async_dispatch"] = declared.cores() > 2
    ours = {"jax_" + row.name: row.default for row in DECLARED}
    assert ours.pop("jax_shortcuts") is True and "jax_shortcuts" not in theirs  # of our own
    assert ours == {name: theirs[name] for name in ours}


@pytest.mark.parametrize(("cores", "chosen", "expected"), [
    (2, {}, False), (3, {}, True), (2, {"JAX_CPU_ENABLE_ASYNC_DISPATCH": "1"}, True),
    (8, {"JAX_CPU_ENABLE_ASYNC_DISPATCH": "0"}, False)])
def test_cpu_programs_run_in_the_background_from_three_cores_on(cores, chosen, expected):
    """On two cores handing a program to a thread takes longer than most programs."""
    done = run_python(
        f"import os; os.sched_getaffinity = lambda pid: range({cores}); import saem\n"
        "print(saem.config.jax_cpu_enable_async_dispatch, saem.numpy.arange(3).sum())", **chosen)
    assert done.stdout.split() == [str(expected), "3"], done.stderr


def test_options_that_nothing_reads_have_names_and_defaults_of_jax(jax_oracle):
    theirs = jax_oracle.run(
        "import jax\n"
        "result = {n: getattr(v, 'value', v) for n, v in jax.config.values.items() if n in names}",
        names=sorted(unread_options.DEFAULTS)).value
    assert theirs == unread_options.DEFAULTS
    assert not set(unread_options.DEFAULTS) & set(SETTINGS)


def test_no_option_of_jax_is_unknown(jax_oracle):
    theirs = jax_oracle.run("import jax\nresult = sorted(jax.config.values)").value
    assert [n for n in theirs if n.startswith("jax_") and n not in config.values] == []


def test_an_option_that_nothing_reads_is_kept_and_says_so_once():
    name = "jax_enable_pgle"
    with pytest.warns(UserWarning, match="jax_enable_pgle changes nothing in Saem"):
        config.update(name, True)
    assert config.jax_enable_pgle and config.values[name] and name in dir(config)
    config.update(name, True)
    config.update(name, False)
    assert config.read(name) is False


def test_the_environment_sets_options_that_nothing_reads():
    # JAX 0.10.2 reads these words so, and refuses JAX_LOGGING_LEVEL=x with a ValueError.
    names = "jax_logging_level jax_pprint_use_color jax_traceback_in_locations_limit".split()
    done = run_python(f"import saem\nprint(*map(saem.config.read, {names}))",
                      JAX_LOGGING_LEVEL="DEBUG", JAX_PPRINT_USE_COLOR="0",
                      JAX_TRACEBACK_IN_LOCATIONS_LIMIT="3")
    assert done.stdout.split() == ["DEBUG", "False", "3"]
    assert "jax_logging_level changes nothing in Saem" in done.stderr
    done = run_python("import saem", JAX_LOGGING_LEVEL="x")
    assert "ValueError: jax_logging_level: new enum value must be" in done.stderr


def test_the_platforms_that_were_made_may_be_named_again():
    jax.devices()
    config.update("jax_platforms", "cpu")
    assert config.jax_platforms == "cpu"
    with pytest.raises(RuntimeError, match="before backends are initialized"):
        config.update("jax_platforms", "tpu")
