"""Does every setting do what it says, by ``with``, for the process and from the environment?

Read before: ``core.config``, ``placement.transfer_guards``, ``transform.compile_time``.
Invariant: expected answers and sentences are JAX's.
"""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from both import ours, same, same_error, source_of

import saem as jax
import saem.numpy as jnp
from saem import _jaxlib, lax
from saem.compile import executables
from saem.core import config as settings
from saem.core.config import SETTINGS
from saem.core.errors import JaxprTypeError
from saem.extend.core import Primitive

X = np.asarray([1.0, 2.0, 3.0], np.float32)
cpu = jax.devices()[0]
x = jnp.asarray(X)
f = jax.jit(lambda x: x * 2)


def under(scope, body):
    """Return what ``body`` gives under a setting, where what it calls ran before without it."""
    f(x), x + x, x + 1
    with scope():
        return body()


@pytest.fixture(autouse=True)
def _restore():
    before = {name: setting.get_global() for name, setting in SETTINGS.items()}
    yield
    for name, value in before.items():
        if SETTINGS[name].get_global() != value:
            SETTINGS[name].set_global(value)
            SETTINGS[name].notify()


def asked(scope, body):
    """Return the expression that gives ``body`` under ``scope``, both as text."""
    return f"under(lambda: {scope}, lambda: {body})"


def run_python(code, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "SAEM_"))}
    clean.update(PYTHONPATH=os.pathsep.join(filter(None, sys.path)),
                 SAEM_ENABLE_COMPILATION_CACHE="0")
    done = subprocess.run([sys.executable, "-c", "import saem as jax, saem.numpy as jnp\n" + code],
                          env={**clean, **environment}, capture_output=True, text=True, timeout=120)
    return done.stdout.strip(), done.stderr, done.returncode


# -- what a program computes ----------------------------------------------------------------------


@pytest.mark.parametrize(("scope", "body"), [
    ("jax.enable_x64(True)", "(jnp.arange(3), jax.jit(lambda: jnp.ones(3))(), f(1.0), f(x))"),
    ("jax.enable_x64(True)", "[jnp.asarray(np.float64(0.1)), jnp.zeros(2, 'int64'), x + 1.5]"),
    ("jax.numpy_dtype_promotion('strict')", "x + 1"),
    ("jax.numpy_rank_promotion('raise')", "jnp.ones((2, 3)) + 1"),
    ("jax.numpy_rank_promotion('allow')", "jnp.ones((2, 3)) + x"),
    ("jax.disable_jit()", "jax.jit(lambda x: x if x.sum() > 0 else -x)(x)"),
    ("jax.allow_f16_reductions(False)",
     "(jnp.sum(jnp.ones(3, 'float16')), lax.reduce_sum(x, (0,)))"),
    ("jax.default_device(cpu)", "jnp.ones(3)"),
    ("jax.default_device('cpu')", "jnp.arange(4)"),
])
def test_values_are_jaxs(jax_oracle, scope, body):
    same(jax_oracle, asked(scope, body), within=__name__)


@pytest.mark.parametrize(("scope", "body", "sentence"), [
    ("jax.numpy_dtype_promotion('strict')", "x + jnp.ones(3, 'int32')",
     "have no available implicit dtype promotion path when jax_numpy_dtype_promotion=strict"),
    ("jax.numpy_rank_promotion('raise')", "jnp.ones((2, 3)) + x",
     "Operands could not be broadcast together for add on shapes (2, 3) (3,) and with the config "
     "option jax_numpy_rank_promotion='raise'."),
    ("jax.allow_f16_reductions(False)", "lax.reduce_sum(jnp.ones(3, 'float16'), (0,))",
     "reduce_sum on operand f16[3] is not allowed when jax_allow_f16_reductions=False."),
    ("jax.default_device(3)", "jnp.ones(3)", "jax.default_device must be passed either a Device "
     "object (e.g. `jax.devices('cpu')[0]`) or a platform name string like 'cpu' or 'gpu', got: 3"),
    ("jax.no_tracing()", "jax.jit(lambda x: x - 3)(x)", "re-tracing function <lambda>"),
    ("jax.no_tracing()", "f(jnp.ones((2, 2)))", "but 'no_tracing' is set"),
    ("jax.no_tracing()", "jax.make_jaxpr(lambda x: x)(x)", "but 'no_tracing' is set"),
    ("jax.no_execution()", "f(x)", "JAX tried to execute function jit(<lambda>), but the "
     "no_execution config option is set"),
    ("jax.no_execution()", "x + x", "JAX tried to execute function jit(add), but the no_execution "
     "config option is set"),
    ("jax.no_execution()", "f.lower(x).compile()(x)", "but the no_execution config option is set"),
])
def test_refusals_are_jaxs(jax_oracle, scope, body, sentence):
    same_error(jax_oracle, asked(scope, body), sentence, within=__name__)


@pytest.mark.parametrize(("scope", "body"), [
    *[(f"jax.default_matmul_precision('{p}')", "str(jax.make_jaxpr(lambda x: x @ x)(x))")
      for p in ("default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
                "BF16_BF16_F32", "F32_F32_F32", "TF32_TF32_F32_X3")],
    ("jax.default_matmul_precision('highest')",
     "str(jax.make_jaxpr(lambda x: jnp.dot(x, x, precision='high'))(x))"),
    ("jax.default_matmul_precision('highest')",
     "'precision = [HIGHEST, HIGHEST]' in jax.jit(lambda x: x @ x).lower(x).as_text()"),
    ("jax.default_matmul_precision('BF16_BF16_F32')",
     "'lhs_precision_type = bf16' in jax.jit(lambda x: x @ x).lower(x).as_text()"),
    ("jax.allow_f16_reductions(False)", "str(jax.make_jaxpr(jnp.sum)(jnp.ones(3, 'float16')))"),
    ("jax.no_tracing()", "[f(x).tolist(), jax.vmap(lambda x: x)(x).tolist()]"),
    ("jax.no_execution()", "[str(jax.make_jaxpr(lambda x: x + 1)(x)), "
     "np.asarray(x).tolist(), np.asarray(jax.device_put(X)).tolist()]"),
    ("jax.no_execution()", "type(f.lower(x).compile()).__name__"),
    ("jax.default_device(cpu)", "(jnp.ones(3).committed, str(jnp.ones(3).devices()))"),
    ("jax.memory and jax.enable_checks(False)",
     "[str(jax.memory.Space.Host), str(list(jax.memory.Space)),"
     " str(jax.device_put(x, jax.memory.Space.Host).sharding),"
     " jax.device_put(x, jax.memory.Space.Host).tolist(),"
     " str(jax.device_put(x, jax.sharding.SingleDeviceSharding(cpu, memory_kind='pinned_host'))"
     ".sharding), cpu.memory_stats()]"),
])
def test_what_is_told_is_what_jax_tells(jax_oracle, scope, body):
    wanted = jax_oracle.run(source_of(asked(scope, body), __name__)).value
    assert ours(asked(scope, body), __name__) == wanted


def test_rank_promotion_warns_in_jaxs_words(jax_oracle):
    source = asked("jax.numpy_rank_promotion('warn')", "(jnp.ones((2, 3)) + x).shape")
    (wanted,) = jax_oracle.run(source_of(source, __name__)).warnings
    with pytest.warns(UserWarning, match="rank promotion") as caught:
        ours(source, __name__)
    assert str(caught[0].message) == wanted


def test_x64_reaches_functions_that_were_traced_before():
    f = jax.jit(lambda x: x * jnp.ones(2))
    assert f(np.float64(1.5)).dtype == np.float32
    with jax.enable_x64(True):
        assert f(np.float64(1.5)).dtype == np.float64
        with jax.enable_x64(False):
            assert f(np.float64(1.5)).dtype == np.float32
    jax.config.update("jax_enable_x64", True)
    assert f(np.float64(1.5)).dtype == np.float64 and jnp.arange(2).dtype == np.int64
    jax.config.update("jax_enable_x64", False)
    assert f(np.float64(1.5)).dtype == np.float32


def test_checks_find_a_primitive_whose_types_change():
    kinds = itertools.cycle(["float32", "int32"])
    changing = Primitive("changing")
    changing.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, np.dtype(next(kinds))))
    jax.make_jaxpr(changing.bind)(1.0)
    next(kinds)
    with jax.enable_checks(True), pytest.raises(JaxprTypeError, match="but bound as float32"):
        jax.make_jaxpr(changing.bind)(1.0)


def test_no_execution_reaches_calls_that_cpp_answers():
    f = jax.jit(lambda x: x + 5)
    x = jnp.asarray(X)
    for _ in range(3):
        f(x)
    with jax.no_execution(), pytest.raises(RuntimeError, match="no_execution"):
        f(x)
    np.testing.assert_array_equal(f(x), X + 5)


@pytest.mark.parametrize(("variable", "code", "said"), [
    ("ENABLE_X64", "print(jnp.arange(3).dtype)", "int64"),
    ("DEFAULT_MATMUL_PRECISION=highest", "print('HIGHEST' in jax.jit(lambda x: x @ x).lower("
     "jnp.ones(3)).as_text())", "True"),
    ("NUMPY_RANK_PROMOTION=raise", "jnp.ones((2, 3)) + jnp.ones(3)", "rank_promotion='raise'"),
    ("NUMPY_DTYPE_PROMOTION=strict", "jnp.ones(3) + jnp.ones(3, int)", "dtype_promotion=strict"),
    ("DISABLE_JIT", "print(jax.jit(lambda x: type(x).__name__ == 'ArrayImpl')(jnp.ones(3)))",
     "True"),
    ("TRANSFER_GUARD=disallow", "jnp.sin(1.0)", "Disallowed host-to-device transfer"),
    ("TRANSFER_GUARD_HOST_TO_DEVICE=log", "print(jnp.sin(1.0))", "host-to-device transfer"),
    ("NO_TRACING", "jax.jit(lambda x: x)(1.0)", "'no_tracing' is set"),
    ("NO_EXECUTION", "jax.jit(lambda x: x)(1.0)", "no_execution config option is set"),
    ("PLATFORMS=cuda,cpu", "print(len(jax.devices()) > 0)", "True"),
    ("NUM_CPU_DEVICES=3", "print(len(jax.devices()))", "3"),
    ("ALLOW_F16_REDUCTIONS=0", "jax.lax.reduce_sum(jnp.ones(3, 'float16'), (0,))",
     "is not allowed when jax_allow_f16_reductions=False"),
    ("DEFAULT_DEVICE=cpu", "print(jnp.ones(3).devices())", "{CpuDevice(id=0)}"),
    ("THREAD_GUARD", "print(jnp.ones(3).sum())", "3.0"),
    ("ARRAY_GARBAGE_COLLECTION_GUARD=log", "import gc\na = [jnp.ones(3) + 1]\na.append(a)\n"
     "del a\ngc.collect()", "arbage collect"),
])
def test_the_environment_sets_it(variable, code, said):
    name, _, value = variable.partition("=")
    out, err, _ = run_python(code, **{"JAX_" + name: value or "1", "TF_CPP_MIN_LOG_LEVEL": "0"})
    assert said in out + err, (out, err)


def test_the_command_line_sets_it(monkeypatch):
    monkeypatch.setattr(sys, "argv", [
        "train.py", "--jax_enable_x64", "--steps=3", "-jax_numpy_rank_promotion=raise",
        "--jax_default_matmul_precision=high", "--nojax_threefry_partitionable", "jax_debug_nans"])
    assert not jax.config.x64_enabled
    jax.config.parse_flags_with_absl()
    assert jax.config.x64_enabled and jnp.arange(2).dtype == np.int64
    assert jax.config.jax_numpy_rank_promotion == "raise"
    assert jax.config.jax_default_matmul_precision == "high"
    assert not jax.config.jax_threefry_partitionable and not jax.config.jax_debug_nans
    monkeypatch.setattr(sys, "argv", ["train.py", "--jax_enable_x64=maybe"])
    with pytest.raises(ValueError, match="needs a truth value, got 'maybe'"):
        jax.config.parse_flags_with_absl()


# -- transfers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["transfer_guard", "transfer_guard_host_to_device"])
@pytest.mark.parametrize(("level", "body", "refused"), [
    ("disallow", "f(X)", True),
    ("disallow", "f(2.0)", True),
    ("disallow", "jnp.asarray(X)", True),
    ("disallow", "x + 1", True),
    ("disallow", "x + X", True),
    ("disallow", "jax.device_put(X)", False),
    ("disallow", "f(x)", False),
    ("disallow", "np.asarray(x + x)", False),
    ("disallow_explicit", "jax.device_put(X)", True),
    ("disallow_explicit", "f(x)", False),
    ("allow", "f(X)", False),
])
def test_transfers_are_refused_where_jax_refuses_them(jax_oracle, name, level, body, refused):
    source = asked(f"jax.{name}('{level}')", body)
    if refused:
        same_error(jax_oracle, source, "Disallowed host-to-device transfer: aval=ShapedArray(",
                   within=__name__)
    else:
        same(jax_oracle, source, within=__name__)


def test_guards_of_other_directions_let_it_pass():
    for scope in (jax.transfer_guard_device_to_host, jax.transfer_guard_device_to_device):
        with scope("disallow"):
            np.testing.assert_array_equal(jnp.asarray(X) + 1, X + 1)
            np.testing.assert_array_equal(jax.device_get(jnp.asarray(X)), X)


def test_the_innermost_guard_holds():
    refused = pytest.raises(jax.errors.JaxRuntimeError, match="Disallowed host-to-device")
    with jax.transfer_guard("disallow"):
        with jax.transfer_guard_host_to_device("allow"):
            jnp.asarray(X)
        with refused:
            jnp.asarray(X)
    with jax.transfer_guard_host_to_device("allow"):
        with jax.transfer_guard("disallow"), refused:
            jnp.asarray(X)
        jnp.asarray(X)
    jnp.asarray(X)


def test_a_guard_is_of_one_thread_and_update_of_all():
    seen = []

    def try_it():
        try:
            seen.append(jnp.asarray(X).shape)
        except jax.errors.JaxRuntimeError:
            seen.append("refused")

    def elsewhere():
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()

    with jax.transfer_guard("disallow"):
        elsewhere()
    jax.config.update("jax_transfer_guard", "disallow")
    elsewhere()
    try_it()
    jax.config.update("jax_transfer_guard", "allow")
    try_it()
    jax.config.update("jax_transfer_guard_host_to_device", "disallow")
    try_it()
    jax.config.update("jax_transfer_guard_host_to_device", None)
    elsewhere()
    assert seen == [(3,), "refused", "refused", (3,), "refused", (3,)]


def test_transfers_between_devices_are_guarded():
    out, err, code = run_python(
        "a, b = jax.devices()\nx = jax.device_put(jnp.ones(3), a)\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "f = jax.jit(lambda x: x * 2, device=b)\nf(x)\n"
        "with jax.transfer_guard_device_to_device('disallow'):\n"
        "    y = jax.device_put(x, b)\n    print(y.devices())\n"
        "with jax.transfer_guard_device_to_device('disallow_explicit'):\n"
        "    jax.device_put(x, b)\n", SAEM_NUM_CPU_DEVICES="2")
    assert out == "{CpuDevice(id=1)}" and code == 1
    assert "Disallowed device-to-device transfer" in err


# -- what is computed while tracing ---------------------------------------------------------------


def known_factor(x):
    with jax.ensure_compile_time_eval():
        return jnp.sin(x) * jnp.sum(jnp.arange(3.0))


def known_condition(x):
    with jax.ensure_compile_time_eval():
        if jnp.all(jnp.arange(3) >= 0):
            return jax.jit(jnp.cos)(2.0) * x


def known(x):
    with jax.ensure_compile_time_eval():
        return jax.grad(jnp.sin)(2.0), lax.cond(True, lambda: 1.0, lambda: 2.0)


@pytest.mark.parametrize("body", [
    "(lambda g: (jax.jit(g)(1.), jax.grad(g)(1.), jax.vmap(g)(x), g(2.)))(known_factor)",
    "jax.jit(known_condition)(1.)",
    "jax.jit(lambda x: known(x))(1.)",
    "jax.vmap(lambda x: known(x), out_axes=None)(x)",
    "jax.jit(lambda x: lax.cond(True, known, lambda x: (x, x), x))(1.)",
])
def test_what_is_known_is_computed_at_once(jax_oracle, body):
    same(jax_oracle, body, within=__name__)


def test_what_is_known_leaves_no_equation():
    def f(x):
        with jax.ensure_compile_time_eval():
            y = jnp.sum(jnp.sin(jnp.asarray(X)))
            assert float(y) == pytest.approx(np.sin(X).sum())
        return x + y

    names = [e.primitive.name for e in jax.make_jaxpr(f)(1.0).eqns]
    assert "sin" not in names and "reduce_sum" not in names and names[-1] == "add"
    with pytest.raises(KeyError):
        jax.jit(lambda x: raising(x))(1.0)
    assert jax.make_jaxpr(lambda x: jnp.sin(x))(1.0).eqns  # tracing goes on as before


def raising(x):
    with jax.ensure_compile_time_eval():
        raise KeyError


# -- parts of arrays ------------------------------------------------------------------------------


def test_nothing_varies_by_itself_without_auto_pcast(jax_oracle):
    source = "plainly(lambda x: x * BODY)"
    same_error(jax_oracle, source.replace("BODY", "2."),
               "Primitive mul requires varying manual axes to match, but got [frozenset({'i'}), "
               "frozenset()].", within=__name__)
    same(jax_oracle, source.replace("BODY", "lax.pcast(2., ('i',), to='varying')"),
         within=__name__)


def plainly(f):
    """Return what ``f`` gives on each device of a mesh if nothing varies by itself."""
    P = jax.sharding.PartitionSpec
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    with jax.auto_pcast(False):
        return jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(X)


# -- the rest -------------------------------------------------------------------------------------


def test_a_context_of_ones_own_is_part_of_the_key():
    context = jax.make_user_context("outside")
    traced = []

    @jax.jit
    def f(x):
        traced.append(context.value)
        return x * (2 if context.value == "inside" else 1)

    for _ in range(2):
        assert f(3.0) == 3.0
        with context("inside"):
            assert f(3.0) == 6.0
    assert traced == ["outside", "inside"]


def test_processes_are_named_as_before_and_as_now():
    assert jax.process_indices() == [0]
    for old, new in ((jax.host_id, 0), (jax.host_ids, [0]), (jax.host_count, 1)):
        with pytest.warns(UserWarning, match="has been renamed"):
            assert old() == new
    with pytest.warns(UserWarning, match="has been renamed"):
        assert jax.local_devices(host_id=0) == jax.local_devices()


def test_the_environment_is_told(capsys):
    text = jax.print_environment_info(return_string=True)
    assert all(word in text for word in ("saem:", "jaxlib: ", "numpy: ", "python: ", "cpu-"))
    assert jax.print_environment_info() is None
    assert capsys.readouterr().out.strip() == text
    assert ".".join(map(str, jax.version.__version_info__)) == jax.__version__
    assert jax.__version_info__ == jax.version.__version_info__


@pytest.mark.clears_caches
def test_clear_caches_forgets_every_program():
    traced = []
    f = jax.jit(lambda x: traced.append(0) or x + 7)
    f(1.0), f(2.0)
    jax.clear_caches()
    f(3.0)
    assert len(traced) == 2


def test_live_arrays_are_those_alive():
    gc.collect()  # so that none of other tests' arrays goes in between
    before = len(jax.live_arrays())
    kept = [jnp.asarray(X) + n for n in range(3)]
    assert len(jax.live_arrays()) >= before + 3
    ids = {id(a) for a in jax.live_arrays()}
    assert all(id(a) in ids for a in kept)
    kept[0].delete()
    assert id(kept[0]) not in {id(a) for a in jax.live_arrays()}


def test_every_scope_of_a_setting_restores_it():
    values = {"bool": True, "int": 3, "float": 2.5}
    for name, setting in SETTINGS.items():
        declared = setting.declared
        if declared.process or declared.name in ("thread_guard",):
            continue
        value = declared.choices[-1] if declared.choices else values.get(declared.kind, "cpu")
        before = setting.value
        with setting(value):
            assert setting.value == value, name
        assert setting.value == before, name
    assert settings.transfer_guard.value is None


# What JAX 0.10.2 hands to XLA under each setting: read from the options of its compile calls.
COMPILED_AS = [
    ({}, (29, 0, 0.0, 0.0), {}),
    ({"jax_optimization_level": "O0"}, (29, 9, 0.0, 0.0), {}),
    ({"jax_optimization_level": "O1"}, (29, 19, 0.0, 0.0), {}),
    ({"jax_memory_fitting_level": "O0"}, (9, 0, 0.0, 0.0), {}),
    ({"jax_memory_fitting_level": "O3", "jax_optimization_level": "O3"}, (39, 39, 0.0, 0.0), {}),
    ({"jax_exec_time_optimization_effort": 0.5}, (29, 0, 0.5, 0.0), {}),
    ({"jax_memory_fitting_effort": 0.25}, (29, 0, 0.0, 0.25), {}),
    ({"jax_compiler_enable_remat_pass": False}, (29, 0, 0.0, 0.0),
     {"xla_disable_hlo_passes": "rematerialization"}),
    ({"jax_disable_most_optimizations": True}, (29, 0, 0.0, 0.0),
     {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}),
]


@pytest.mark.parametrize(("changes", "fields", "flags"), COMPILED_AS)
def test_programs_are_compiled_as_settings_say(monkeypatch, changes, fields, flags):
    given = []
    compile_ = executables.backend_compile_and_load

    def compile_and_note(backend, program, devices, options, *rest):
        given.append(options)
        return compile_(backend, program, devices, options, *rest)

    monkeypatch.setattr(executables, "backend_compile_and_load", compile_and_note)
    unchanged = {"jax_disable_most_optimizations": False, "jax_shortcuts": False}
    for name, value in {**unchanged, **changes}.items():
        jax.config.update(name, value)
    jax.clear_caches()
    f, numbers = jax.jit(lambda x: jnp.sort(x) + 1), np.asarray([3.0, 1.0, 2.0], np.float32)
    names = [name.removeprefix("jax_") for name in changes if "effort" in name]
    if not all(hasattr(_jaxlib.CompileOptions().executable_build_options, n) for n in names):
        with pytest.raises(ValueError, match=rf"No such compile option: '{names[0]}' is none of"):
            f(numbers)
        return
    np.testing.assert_array_equal(f(numbers), [2.0, 3.0, 4.0])
    build = given[-1].executable_build_options
    assert fields == (build.memory_fitting_level, build.optimization_level,
                      getattr(build, "exec_time_optimization_effort", 0.0),
                      getattr(build, "memory_fitting_effort", 0.0))
    assert dict(given[-1].env_option_overrides) == flags


def test_options_of_a_function_come_before_those_of_settings(monkeypatch):
    jax.config.update("jax_disable_most_optimizations", True)
    monkeypatch.setattr(executables, "load_or_compile", lambda key, lowered, devices, options: (
        (_ for _ in ()).throw(RuntimeError(str(options["xla_backend_optimization_level"])))))
    f = jax.jit(lambda x: x - 5, compiler_options={"xla_backend_optimization_level": 2})
    with pytest.raises(RuntimeError, match="2"):
        f(x)


def test_functions_that_turn_on_64_bits_inside_are_transformed(jax_oracle):
    def program():
        @jax.jit
        def total(x):
            with jax.enable_x64(True):
                return (x.astype(jnp.float64) * 3.0).sum().astype(jnp.float32)

        @jax.jit
        def folded(x):
            with jax.enable_x64(True):
                last, _ = lax.scan(lambda c, v: (c * 1.5 + v.astype(jnp.float64), None),
                                   jnp.float64(0), x)
                return jnp.sin(last).astype(jnp.float32)

        x = np.arange(3, dtype=np.float32)
        return [[f(x), jax.grad(f)(x), jax.jvp(f, (x,), (x,)), jax.hessian(f)(x),
                 jax.vmap(f)(np.stack([x, x + 1])), jax.jit(jax.grad(f))(x),
                 jax.vmap(jax.grad(f))(np.stack([x, x + 1])), jax.linearize(f, x)[1](x),
                 jax.grad(jax.checkpoint(f))(x)] for f in (total, folded)]

    same(jax_oracle, program, rtol=1e-5)


def test_choices_among_64_bits_inside_have_derivatives():
    """JAX refuses these: it makes numbers of 32 bits among them."""
    def chosen(x):
        with jax.enable_x64(True):
            y = jnp.where(x > 1, x.astype(jnp.float64) ** 2, 0.0)
            return lax.cond(jnp.argmax(y) > 0, lambda y: y.max(), lambda y: y.mean(), y
                            ).astype(jnp.float32)

    x = np.arange(3, dtype=np.float32)
    for f in (chosen, jax.jit(chosen)):
        np.testing.assert_array_equal(jax.grad(f)(x), [0, 0, 4])
        np.testing.assert_array_equal(jax.vmap(f)(np.stack([x, x + 1])), [4, 9])
