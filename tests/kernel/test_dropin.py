"""Does ``import jax`` give Saem where it was asked to, and nowhere else?

Every program runs in its own process: which modules a process has cannot be undone.
"""

from __future__ import annotations

import copy
import importlib
import json
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from saem.dropin import private_names, run

KERNEL = Path(__file__).resolve().parents[2] / "kernel"


def python(*words: str, folder: Path | None = None, text: str = "", more_path: Path | None = None,
           **environment: str) -> subprocess.CompletedProcess:
    path = os.pathsep.join(str(p) for p in (KERNEL, more_path) if p is not None)
    return subprocess.run([sys.executable, *words], cwd=folder, input=text, text=True,
                          capture_output=True, check=False, timeout=120,
                          env={**os.environ, "PYTHONPATH": path, **environment})


def output(*words: str, **options) -> str:
    done = python(*words, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def dropped_in(code: str, **options) -> str:
    return output("-m", "saem", "run", "-c", textwrap.dedent(code), **options)


def test_modules_reached_by_attribute_are_in_sys_modules_under_their_names_in_jax():
    assert dropped_in("""
        import sys
        import jax
        for path in ("core", "experimental", "ops", "random", "scipy.special", "tree", "tree_util",
                     "typing", "numpy.linalg", "lax", "version"):
            module = jax
            for name in path.split("."):
                module = getattr(module, name)
            assert sys.modules[f"jax.{path}"] is module and module.__name__ == f"jax.{path}", path
            assert module.__spec__.name == f"saem.{path}"
        print(jax.tree_util.SequenceKey.__name__)
    """) == "SequenceKey"


def test_every_form_of_import_gives_the_same_module_object():
    assert dropped_in("""
        import jax
        import jax.numpy as jnp
        import jax.experimental.multihost_utils as utils
        from jax import lax, numpy, random as jr
        from jax.experimental import checkify, io_callback
        from jax.tree_util import tree_map
        import importlib, sys, saem
        assert jax is saem and jnp is numpy is saem.numpy and lax is saem.lax and jr is saem.random
        assert utils is saem.experimental.multihost_utils is jax.experimental.multihost_utils
        assert importlib.import_module("jax.random") is jr
        for name, module in list(sys.modules.items()):
            if name.startswith("jax.") and not name.startswith("jax._src"):
                assert module is sys.modules["saem" + name[3:]], name
                assert module.__spec__.name == "saem" + name[3:], name
                assert module.__name__ == name
        assert jax.__name__ == "jax" and jnp.ones(2).__array_namespace__().__name__ == "jax.numpy"
        assert importlib.reload(jax.experimental) is saem.experimental
        assert len([m for m in sys.modules.values()
                    if getattr(m, "__file__", "") == saem.numpy.__file__]) == 2  # one, two names
        print(tree_map(lambda x: x + 1, {"a": jnp.float32(1)})["a"])
    """) == "2.0"


NAMES = """
import importlib
import types

import jax

result = {}
for name in ("", ".lax", ".nn", ".numpy", ".numpy.linalg", ".ops", ".random", ".scipy.special",
             ".scipy.stats", ".tree_util", ".core", ".extend.core.primitives"):
    module = importlib.import_module("jax" + name)
    result[name] = [name for name, value in vars(module).items()
                    if name[0] != "_" and not isinstance(value, types.ModuleType)]
"""
# What holds modules there, and what is left out.
NOT_SEEN = {
    "": {"ad", "memory", "jax2tf_associative_scan_reductions",
         "remove_size_one_mesh_axis_from_type"},
    ".lax": {"stage_p"},
    ".extend.core.primitives": {"empty2_p"},
}


def test_vars_of_a_module_holds_what_it_holds_in_jax(jax_oracle):
    """Here some of it is loaded later: libraries that wrap all functions look in ``vars``."""
    expected = jax_oracle.run(NAMES).value
    found = json.loads(dropped_in(f"{NAMES}\nimport json\nprint(json.dumps(result))"))
    assert {name: set(expected[name]) - set(found[name]) for name in expected} == {
        name: NOT_SEEN.get(name, set()) for name in expected}


def test_dir_of_a_module_loads_little_and_vars_leaves_an_ordinary_module():
    assert dropped_in("""
        import sys, types
        import jax.numpy as jnp
        assert "unique" in dir(jnp) and "saem.numpy.sets" not in sys.modules
        assert vars(jnp)["unique"] is jnp.unique and type(jnp) is types.ModuleType
        assert vars(jnp) is vars(jnp) is jnp.__dict__
        print(jnp.unique(jnp.array([1, 1])))
    """) == "[1]"


def test_modules_are_sent_to_other_processes(tmp_path):
    """As cloudpickle does with those that a function names; it knows others by their class."""
    sent = tmp_path / "sent"
    assert dropped_in(f"""
        import pickle
        import jax.numpy as jnp
        from jax import lax
        from jax._src import dtypes
        from jax.experimental import pallas
        with open({str(sent)!r}, "wb") as file:
            pickle.dump([jnp, lax, dtypes, pallas], file)
        print(type(jnp) is type(lax))
    """) == "True"
    assert dropped_in(f"""
        import pickle
        with open({str(sent)!r}, "rb") as file:
            jnp, lax, *others = pickle.load(file)
        print(*(other.__name__ for other in others), jnp.sin(0.0) + lax.cos(0.0))
    """) == "jax._src.dtypes jax.experimental.pallas 1.0"


def test_versions_and_metadata():
    assert dropped_in("""
        import importlib.metadata as metadata
        import jax, jax.version, saem
        assert jax.__version__ == jax.version.__version__ == metadata.version("jax") == "0.10.2"
        assert (0, 4, 36) <= jax.__version_info__ < (0, 11) and jax.version.__version_info__
        assert metadata.version("jaxlib") and metadata.version("JAX")
        assert "Saem" in metadata.metadata("jax")["Summary"]
        assert metadata.requires("jax") == [f"saem (=={jax.__saem_version__})"]
        assert "jax" in [d.metadata["Name"] for d in metadata.distributions()]
        print(jax.__saem__, jax.__saem_version__ == saem.__saem_version__)
    """) == "True True"


def test_saem_alone_keeps_its_own_version_and_refuses_jax():
    done = python("-c", "import saem; print(saem.__version__ == saem.__saem_version__); import jax")
    assert done.stdout.strip() == "True"
    assert "ImportError: jax cannot be imported into a process where saem already runs" \
        in done.stderr


@pytest.fixture
def pretended(tmp_path):
    """A folder on the path with an installed package that calls itself jax, version 0.3."""
    package = tmp_path / "installed" / "jax"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '0.3'\nprint('the real one')\n")
    (package / "numpy.py").write_text("")
    info = tmp_path / "installed" / "jax-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: jax\nVersion: 0.3\n")
    return tmp_path / "installed"


def test_an_installed_jax_is_neither_seen_nor_imported(pretended):
    assert dropped_in("""
        import importlib.metadata, jax, jax.numpy
        print(importlib.metadata.version("jax"), jax.__version__)
    """, more_path=pretended) == "0.10.2 0.10.2"
    before = "import importlib.metadata as m; print(m.version('jax'))"
    assert output("-c", before, more_path=pretended) == "0.3"


def test_refuses_after_the_real_jax(pretended):
    done = python("-c", "import jax; import saem.dropin", more_path=pretended)
    assert "ImportError: saem cannot share a process with jax" in done.stderr
    late = """
        import saem, sys, types
        import saem.dropin
        sys.modules["jax._src"] = types.ModuleType("jax._src")
        saem.dropin.install()
    """
    done = python("-c", textwrap.dedent(late))
    assert "RealJaxError: Saem was asked to answer for `import jax`, but the real JAX is already " \
           "imported here (jax._src from" in done.stderr
    assert "python -m saem run script.py" in done.stderr


def test_the_environment_is_read_when_jax_is_imported():
    assert dropped_in("""
        import os
        os.environ.update(JAX_ENABLE_X64="1", SAEM_NUM_CPU_DEVICES="3")
        import saem
        saem.config.update("jax_debug_nans", True)
        saem.scipy.special
        import jax, sys
        os.environ["JAX_ENABLE_X64"] = "0"
        import jax.numpy as jnp
        assert sys.modules["jax.scipy.special"] is saem.scipy.special
        print(jnp.ones(1).dtype, jax.device_count(), jax.config.jax_debug_nans)
    """, JAX_ENABLE_X64="0") == "float64 3 True"
    late = """
        import os
        import saem
        saem.device_count()
        os.environ["SAEM_NUM_CPU_DEVICES"] = "3"
        import jax
    """
    done = python("-m", "saem", "run", "-c", textwrap.dedent(late))
    assert done.returncode and "should be updated before backends are initialized" in done.stderr


def test_a_missing_module_gives_its_reason():
    assert dropped_in("""
        for name in ("jax.experimental.jax2tf", "jax.nonsense", "jax._src.mosaic", "jax.jit.x"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                assert error.name in (name, name.rpartition(".")[0]), error.name
                print(error)
        try:
            from jax.experimental import mosaic
        except ImportError as error:
            print(error)
        try:
            from jax.lax import stage_p
        except ImportError as error:
            print(str(error).split(" attribute")[0])
    """).splitlines() == [
        "No module named 'jax.experimental.jax2tf': Saem does not offer it. module "
        "'jax.experimental' has no attribute 'jax2tf'. Instead: write StableHLO with jax.export.",
        "No module named 'jax.nonsense'",
        "Saem does not offer jax._src.mosaic: private modules of JAX are no interface. The few "
        "names that widely used libraries need are listed in saem.dropin.private_names; if a "
        "library that you use needs this one, please report it.",
        "No module named 'jax.jit': it is a function.",
        "No module named 'jax.experimental.mosaic': Saem does not offer it. module "
        "'jax.experimental' has no attribute 'mosaic'. Instead: write the kernel in C++ and call "
        "it with jax.ffi.",
        "No module named 'jax.lax.stage_p': Saem does not offer it. module 'jax.lax' has no",
    ]


@pytest.mark.parametrize("row", private_names.TABLE, ids=lambda row: f"{row.module}.{row.name}")
def test_every_private_name_of_the_table_is_found(row):
    home, _, attribute = row.source.partition(":")
    if row.source.startswith("saem.dropin.test_tools:"):
        pytest.importorskip("absl", reason="absl-py, on which test cases are built, is not there")
    assert hasattr(importlib.import_module(home), attribute)
    assert row.needed_by


def test_a_private_name_that_a_test_replaces_is_put_back():
    assert dropped_in("""
        from unittest import mock
        from jax._src import traceback_util
        from saem.dropin import stand_ins
        assert vars(traceback_util)["api_boundary"] is stand_ins.api_boundary
        usual = traceback_util.filter_traceback
        with mock.patch.object(traceback_util, "filter_traceback", return_value=3):
            assert traceback_util.filter_traceback() == stand_ins.filter_traceback() == 3
        print(traceback_util.filter_traceback is stand_ins.filter_traceback is usual)
    """) == "True"


def test_private_names_in_a_process():
    assert dropped_in("""
        import atexit, jax
        import jax._src.traceback_util as traceback_util
        from jax._src import core, compiler
        from jax._src.tree_util import _registry
        assert jax._src.dispatch.wait_for_tokens and not jax._src.xla_bridge._backends
        assert not jax._src.xla_bridge.backends_are_initialized()
        assert core.trace_state_clean() and not jax.jit(lambda x: core.trace_state_clean())(1.)
        assert not jax.vmap(lambda x: core.trace_state_clean())(jax.numpy.ones(2)).any()
        assert list in _registry and tuple in _registry and int not in _registry
        for container in ({"b": 1, "a": 2}, [1, 2], (1,), ()):
            kind = _registry[type(container)]
            children, rest = kind.to_iter(container)
            again = kind.from_iter(rest, [jax.numpy.ones(2) if c == 2 else c for c in children])
            assert jax.tree.structure(again) == jax.tree.structure(container)
        try:
            _registry[int]
            raise SystemExit("found int")
        except KeyError:
            pass
        assert "cpu" in jax._src.xla_bridge._backends
        assert jax._src.xla_bridge.backends_are_initialized()
        try:
            core.leaked_tracer_error
            raise SystemExit("found leaked_tracer_error")
        except AttributeError as error:
            assert "Saem does not offer jax._src.core.leaked_tracer_error" in str(error)
        inner = compiler.backend_compile_and_load
        seen = []
        def patched(backend, *args):
            seen.append(backend.platform)
            return inner(backend, *args)
        compiler.backend_compile_and_load = patched
        jax.jit(lambda x: x * 3.5)(jax.numpy.ones(7))
        compiler.backend_compile_and_load = inner
        print(seen[0])
    """) == "cpu"


def test_arrays_and_specs_that_jax_pickled_are_read(jax_oracle):
    written = jax_oracle.run("""
import pickle
result = np.frombuffer(pickle.dumps([jnp.arange(3.), jnp.asarray(2.), jnp.ones(2, jnp.bfloat16),
                                     jnp.ones((2, 0), bool), jnp.int8(3),
                                     jax.P("x", None), jax.P(("x", "y"), unreduced={"z"}),
                                     jax.sharding.AbstractMesh((2, 1), ("x", "y"))]),
                       np.uint8)""").value
    assert dropped_in(f"""
        import pickle, jax
        read = pickle.loads(bytes({written.tolist()}))
        print([str(jax.typeof(x)) + str(x.weak_type)[0] for x in read[:5]], read[0].sum())
        print(read[5:] == [jax.P("x", None), jax.P(("x", "y"), unreduced={{"z"}}),
                           jax.sharding.AbstractMesh((2, 1), ("x", "y"))])
    """) == "['float32[3]F', '~float32[]T', 'bfloat16[2]F', 'bool[2,0]F', 'int8[]F'] 3.0\nTrue"


def test_private_names_for_primitives_of_libraries():
    assert dropped_in("""
        import jax
        from jax._src import core, literals, pjit
        from jax._src.dispatch import apply_primitive
        twice = jax.extend.core.Primitive("twice")
        twice.def_impl(lambda *xs: apply_primitive(twice, *xs))
        twice.def_abstract_eval(lambda x: x)
        jax.interpreters.mlir.register_lowering(
            twice, jax.interpreters.mlir.lower_fun(lambda x: 2 * x, multiple_results=False))
        assert twice.bind(jax.numpy.ones(2)).sum() == 4.
        assert pjit.jit_p is jax.extend.core.primitives.jit_p
        assert issubclass(literals.TypedInt, int) and core.full_lower(3) == 3
        print(jax.jit(lambda x: core.full_lower(x) * 2)(1.))
    """) == "2.0"


INTERPRETERS = """
import jax
import jax.numpy as jnp
from jax._src import sharding_impls, source_info_util
from jax._src.core import JaxprEqnContext, trace_ctx
from jax._src.interpreters.batching import BatchTrace, BatchTracer, make_iota, to_elt
from jax.api_util import shaped_abstractify

def with_further_inputs(x):  # as brainstate finds the states that a function reads
    state = [trace_ctx.trace.new_arg(shaped_abstractify(y), source_info=source_info_util.current())
             for y in (jnp.ones(3), 2)]
    return x * state[0] + state[1]

closed = jax.make_jaxpr(with_further_inputs)(jnp.ones(3))
seen = []

def row(x, y):
    trace = trace_ctx.trace
    assert isinstance(trace, BatchTrace)
    seen.extend((isinstance(x, BatchTracer) and x.batch_dim, isinstance(y, BatchTracer)))
    return x + to_elt(trace, None, jnp.arange(6.).reshape(2, 3), 1) + to_elt(trace, None, y, None)

mapped = jax.vmap(row, in_axes=(-1, None))(jnp.ones((2, 3)), 1.)
jitted = jax.jit(lambda x: x, in_shardings=sharding_impls.UNSPECIFIED)(1.)
context = JaxprEqnContext()
with context.manager:
    result = [[str(v.aval) for v in closed.jaxpr.invars],
              jax.core.eval_jaxpr(closed.jaxpr, closed.consts, jnp.ones(3), jnp.ones(3), 2),
              mapped, seen, jitted, make_iota(3), str(make_iota(3).dtype)]
result = str(result)
"""


def test_private_names_for_tracing_by_libraries(jax_oracle):
    expected = jax_oracle.run(INTERPRETERS).value
    assert dropped_in(f"{INTERPRETERS}\nprint(result)") == expected


READ = """
import traceback
import jax.numpy as jnp
from jax._src import literals, traceback_util

numbers = [literals.TypedInt(5, dtype=jnp.dtype("int32")),
           literals.TypedFloat(2.5, jnp.dtype("float16")),
           literals.TypedComplex(1j, jnp.dtype("complex64"))]
result = [[repr(n), str(n.dtype), str(n + n)] for n in numbers]

def fails(x):
    return jnp.add(x, "a")

try:
    fails(1.)
except TypeError as error:
    shown = traceback_util.filter_traceback(error.__traceback__)
    result += ["fails" in [frame.name for frame in traceback.extract_tb(shown)]]
result = str([*result, traceback_util.filter_traceback(None)])
"""


def test_private_names_for_libraries_that_print_programs(jax_oracle):
    expected = jax_oracle.run(READ).value
    assert dropped_in(f"{READ}\nprint(result)") == expected


VECTORIZED = """
import jax.numpy as jnp
from jax._src import config
from jax._src.numpy import vectorize as v
from jax._src.numpy.index_tricks import CClass, RClass

def refused(call, *args):
    try:
        call(*args)
    except (TypeError, ValueError):
        return True
    return False

class Rows(RClass):
    def __getitem__(self, key):
        return super().__getitem__(key) * 2

class Columns(CClass):
    def __getitem__(self, key):
        return super().__getitem__(key) * 2

x = jnp.ones((2, 3, 4))
result = [v._parse_gufunc_signature("(n,m),(m)->(n),()"),
          v._parse_input_dimensions((x, jnp.ones((5, 1, 4))), [("n", "m"), ("m",)]),
          Rows()[1:4, 0], Columns()[jnp.arange(2), jnp.arange(2)],
          config.numpy_rank_promotion.value]
held, args, kwargs = v._apply_excluded(lambda a, b, c=0, d=0: (a, b, c, d), {1, "d"}, (1, 2, 3),
                                       {"d": 4})
result += [list(args), dict(kwargs), held(*args), held(7, 8)]
checked = v._check_output_dims(lambda x: (x, x.sum()), {"n": 3}, [("n",), ()], "here")
result += [checked(jnp.ones(3)), refused(checked, jnp.ones(2)),
           refused(v._parse_input_dimensions, (x,), [("n",), ()]),
           refused(v._parse_input_dimensions, (x, jnp.ones(5)), [("n",), ("n",)])]
result = str(result)
"""


def test_private_names_for_functions_that_are_vectorized(jax_oracle):
    """As quaxed and galax use them."""
    expected = jax_oracle.run(VECTORIZED).value
    assert dropped_in(f"{VECTORIZED}\nprint(result)") == expected


def test_private_modules_offer_what_is_public_in_others(jax_oracle):
    """The same objects, under names that JAX's private modules have."""
    asked = """
import importlib
import jax
asked = {
    "core": "ShapedArray Jaxpr ClosedJaxpr JaxprEqn Var Literal Primitive Tracer typeof",
    "api": "jit grad vmap jvp vjp linearize device_put eval_shape make_jaxpr",
    "tree_util": "tree_flatten tree_unflatten tree_map Partial keystr register_pytree_node",
    "lax.lax": "add_p dot_general_p add DotDimensionNumbers PrecisionLike convert_element_type_p",
    "lax.control_flow": "while_loop scan_p cond_p while_p", "lax.slicing": "gather_p slice_p",
    "lax.parallel": "psum_p all_gather_p psum", "lax.linalg": "cholesky_p eigh_p",
    "numpy.lax_numpy": "where asarray concatenate", "numpy.reductions": "sum mean",
    "numpy.ufuncs": "isfinite sqrt", "numpy.linalg": "norm", "numpy.util": "check_arraylike",
    "mesh": "Mesh AbstractMesh get_abstract_mesh", "sharding_impls": "NamedSharding",
    "partition_spec": "PartitionSpec", "typing": "ArrayLike DTypeLike",
    "interpreters.ad": "Zero primitive_jvps primitive_transposes defjvp deflinear2",
    "interpreters.batching": "primitive_batchers defvectorized",
    "interpreters.mlir": "register_lowering lower_fun ir_constant aval_to_ir_type",
    "callback": "io_callback_p pure_callback_p", "pjit": "jit_p sharding_constraint_p",
    "custom_derivatives": "custom_jvp_call_p custom_vjp_call_p closure_convert",
    "nn.functions": "softmax relu", "flatten_util": "ravel_pytree", "stages": "Lowered Compiled",
    "shard_map": "shard_map shard_map_p", "dtypes": "issubdtype result_type float0",
    "dispatch": "device_put_p", "xla_bridge": "get_backend", "random": "PRNGKey",
}
result = [f"{module}.{name}" for module, names in asked.items() for name in names.split()
          if not hasattr(importlib.import_module(f"jax._src.{module}"), name)]
"""
    assert jax_oracle.run(asked).value == []
    assert dropped_in(f"{asked}\nprint(result)") == "[]"
    assert dropped_in("""
        import jax
        from jax._src import core, api, tree_util
        from jax._src.lax import lax, slicing
        from jax._src.numpy import lax_numpy
        print(core.ShapedArray is jax.core.ShapedArray, api.jit is jax.jit,
              tree_util.Partial is jax.tree_util.Partial, lax.add_p is jax.lax.add_p,
              slicing.gather_p is jax.lax.gather_p, lax_numpy.where is jax.numpy.where)
    """) == " ".join(["True"] * 6)


LISTS = """
import functools
from jax._src import util
from jax._src.lax.lax import _const, _convert_element_type
from jax._src.numpy.util import ensure_arraylike, promote_args, promote_dtypes
import jax.numpy as jnp
import numpy as np

def given(make):
    try: return repr(make())
    except Exception as error: return type(error).__name__

def f(x): "doc"

calls = '''subs_list([0, None, 1, None], [10, 20], [1, 2]); subs_list([None], [], [1, 2])
split_list([1, 2, 3, 4, 5], [1, 2]); split_list((1, 2, 3), [1]); split_list((1, 2, 3), [4])
split_list_checked([1, 2, 3], [1, 1]); split_list_checked([1, 2, 3], [1, 2])
unflatten([1, 2, 3], [1, 2]); unflatten([1, 2, 3], [1, 1]); unflatten([1, 2, 3], [1, 3])
tuple_insert((1, 2), 1, 9); tuple_insert((1, 2), 2, 9); tuple_insert((1, 2), 3, 9)
tuple_insert((1, 2), -1, 9); tuple_delete((1, 2, 3), 1); tuple_delete((1, 2, 3), -1)
tuple_update((1, 2, 3), 0, 9); tuple_update((1, 2, 3), -1, 9); tuple_update((1, 2), 2, 9)
ceil_of_ratio(7, 3); fun_name(functools.partial(max, 1)); fun_name(3); fun_name(f)
fun_name(functools.partial(functools.partial(f))); partition_list([True, False, 1], [1, 2, 3])
partition_list([True], [1, 2, 3]); merge_lists([True, False], [1], [2])
merge_lists([True, False], [1, 2], [2]); merge_lists([True], [1], [2]); safe_zip([1], [2])
concatenate([[1], (2, 3)]); unzip2([(1, 2), (3, 4)]); unzip2([]); unzip2([(1, 2, 3)])
unzip3([(1, 2, 3)]); safe_zip([1], [1, 2])'''.replace("\\n", ";").split(";")
result = [given(lambda: eval(f"util.{call.strip()}", globals())) for call in calls]
seen = []

@util.wraps(f, namestr="jit({fun})", docstr="A {fun}: {doc} {k}", k=3)
def g(y): pass

@util.wraps(f)
def h(y): pass

@util.cache()
def kept(x, k=1):
    seen.append(x)
    return x + k

@util.weakref_lru_cache
def weakly(x, k):
    seen.append(k)
    return k

class Thing: pass
thing = Thing()
result += [g.__name__, g.__qualname__, g.__doc__, g.__wrapped__ is f, h.__name__, h.__doc__,
           kept(1), kept(1), kept(1, k=2), kept.cache_info().hits, weakly(thing, 1),
           weakly(thing, 1), weakly(thing, 2), list(seen)]
arrays = [*promote_dtypes(1, np.float32(2)), *promote_dtypes(1., jnp.arange(2)),
          *promote_args("f", jnp.arange(2.).reshape(2, 1), jnp.ones(3, int)),
          *ensure_arraylike("f", 1, np.arange(3)), ensure_arraylike("f", 2),
          _convert_element_type(3, np.dtype("float32")),
          _convert_element_type(jnp.arange(2), np.dtype("float32"), weak_type=True)]
result += [(np.asarray(x).tolist(), str(x.dtype), x.shape, x.weak_type) for x in arrays]
result += [_const(2, 3), float(_const(jnp.float32(1), 2)), str(_const(jnp.float32(1), 2).dtype),
           given(lambda: ensure_arraylike("f", [1]))]
result = str(result)
"""


def test_private_functions_of_lists_and_arrays(jax_oracle):
    expected = jax_oracle.run(LISTS).value
    found = dropped_in(f"{LISTS}\nprint(result)")
    assert found.replace("ArgumentTypeError", "TypeError") == expected


INDEXED = """
import jax.numpy as jnp
from jax._src.lax import linalg
from jax._src.numpy.array_methods import _IndexUpdateHelper, _IndexUpdateRef

class Helper(_IndexUpdateHelper):
    def __getitem__(self, index):
        return Ref(self.array, index)

class Ref(_IndexUpdateRef):
    def set(self, values, **options):
        return super().set(2 * values, **options)

result = str([Helper(jnp.zeros(3)).__getitem__(1).set(4.), Helper(jnp.arange(3.))[1:].get(),
              linalg.cholesky_p.name, linalg.svd_p.name, linalg.qr_p.name, linalg.lu_p.name])
"""


def test_private_names_for_quantities(jax_oracle):
    """As unxt changes what ``x.at[i]`` does."""
    expected = jax_oracle.run(INDEXED).value
    assert dropped_in(f"{INDEXED}\nprint(result)") == expected


CLOSE = """
import numpy as np
import jax.numpy as jnp
from jax._src.public_test_util import check_close

def refusal(x, y, **tolerances):
    try:
        check_close(x, y, **tolerances)
    except (AssertionError, ValueError) as error:
        return "values" if isinstance(error, AssertionError) else "structures"

def array(*values, dtype="float32"):
    return jnp.array(values, dtype)

one = array(1.)
result = [refusal(*pair) for pair in (
    (one, one), (one, array(1., 1.)), (array(1., 1.), 1.), (one, np.array([1.])),
    (array(1.1, .35), [1.1, .35]), (array(1., 2.), (1., 1.)), (one, [[1.]]),
    (array(1, dtype="int32"), array(2, dtype="int32")), ([one], (one,)),
    ({"a": one, "b": [one]}, {"a": one, "b": [one]}), (array(True, dtype=bool), array(False)),
    (array(np.nan), array(np.nan)), (array(1j, dtype="complex64"), array(2j, dtype="complex64")))]
result += [refusal(array(1., dtype=dtype), array(1. + gap, dtype=dtype))
           for dtype in ("float32", "float16", "bfloat16")
           for gap in (1e-7, 5e-6, 1e-3, 5e-3, 2e-2)]
result += [refusal(array(1., dtype=dtype), array(1. + gap, dtype=other), **tolerances)
           for dtype, other in (("float32", "float16"), ("float16", "float32"))
           for gap in (1e-7, 5e-6, 1e-3, 5e-3, 2e-2)
           for tolerances in ({}, {"rtol": {"float32": 1e-4, np.float16: 4e-3}})]
result += [refusal(one, array(1. + gap), atol={"float32": 5e-4}, rtol={"float32": 0.})
           for gap in (4e-4, 6e-4)] + [refusal(one, array(2.), atol=1.5)]
result += [refusal(jnp.ones(size), jnp.ones(size) + gap, **tolerances) for size in (10, 100)
           for gap in (5e-6, 5e-5, 5e-4) for tolerances in ({}, {"atol": 1e-6, "rtol": 0.})]
"""


def test_numbers_are_close_where_they_are_for_jax(jax_oracle):
    expected = jax_oracle.run(CLOSE).value
    assert dropped_in(f"{CLOSE}\nprint(result)") == str(expected)


PARAMETERS = """
import inspect
import jax
import numpy as np
from jax._src.api import _dtype
from jax._src.api_util import infer_argnums_and_argnames
from jax._src.numpy.util import promote_dtypes_complex

def f(a, b, c=1, *, d=2): pass
def g(a, /, b): pass
def h(*args, **kwargs): pass

result = [infer_argnums_and_argnames(inspect.signature(f), *given) for given in (
    (None, None), (1, None), ((0, 2), None), (None, "b"), (None, ("b", "d")), ((0,), ("b",)),
    ((-1,), None), ((), None))]
result += [infer_argnums_and_argnames(inspect.signature(fun), *given)
           for fun, *given in ((g, (0, 1), None), (g, None, ("a",)), (h, None, ("x",)),
                               (h, (3,), None))]
result += [str(promote_dtypes_complex(*xs)) for xs in (
    (1, 2.0), (jax.numpy.float16(1), ), (jax.numpy.int8(3), 1j), (np.ones(2), True))]
result += [str(_dtype(x)) for x in (1, 1.0, True, np.float64(1), np.zeros(2), jax.numpy.int8(1))]
"""
SHARDINGS = """
import jax
import jax.numpy as jnp
from jax._src.sharding_impls import canonicalize_sharding
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

def found(sharding):
    try:
        return str(canonicalize_sharding(sharding, "f"))
    except (TypeError, ValueError) as error:
        return isinstance(error, TypeError)

explicit = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Explicit,))
auto = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
asked = (None, P("x"), P("y"), P(), P(None), 3, jax.typeof(jnp.ones(3)).sharding)
result = [found(s) for s in (*asked, NamedSharding(explicit, P("x")))]
for mesh in (explicit, auto):
    with jax.set_mesh(mesh):
        result += [found(s) for s in (*asked[:-1], NamedSharding(mesh, P("x")),
                                      NamedSharding(mesh.abstract_mesh, P(None, "x")))]
"""

RULES = """
import functools
import jax
import jax.numpy as jnp
from jax._src import dispatch
from jax._src.ad_util import p2tz
from jax._src.interpreters import ad, batching, mlir
from jax.extend.core import Primitive
from jax.interpreters.mlir import lower_fun

scale_p = Primitive("scale")
scale_p.def_impl(functools.partial(dispatch.apply_primitive, scale_p))
scale_p.def_abstract_eval(lambda x, y: x)
seen = []

def lower(ctx, x, y):
    seen.append(ctx.module_context.platforms)
    return lower_fun(lambda x, y: x * y, multiple_results=False)(ctx, x, y)

def jvp(primals, tangents):
    assert type(primals) is tuple and type(tangents) is tuple  # libraries add others to them
    terms = [p2tz(primals[0])]
    for at, t in enumerate(tangents):
        if type(t) is not ad.Zero:
            args = list(primals)
            args[at] = t
            terms.append(scale_p.bind(*args))
    return scale_p.bind(*primals), functools.reduce(ad.add_tangents, terms)

def transpose(ct, x, y):
    assert ad.is_undefined_primal(x) != ad.is_undefined_primal(y)
    return (scale_p.bind(ct, y), None) if ad.is_undefined_primal(x) else (None, scale_p.bind(x, ct))

def batch(args, dims):
    x, y = (jnp.broadcast_to(v, (3, *v.shape)) if d is None else batching.moveaxis(v, d, 0)
            for v, d in zip(args, dims))
    return scale_p.bind(x, y), 0

mlir.register_lowering(scale_p, lower, platform="cpu")
ad.primitive_jvps[scale_p] = jvp
ad.primitive_transposes[scale_p] = transpose
batching.primitive_batchers[scale_p] = batch
xs = jnp.arange(6.0).reshape(2, 3)
result = [x.tolist() for x in (
    scale_p.bind(xs, xs), jax.jit(scale_p.bind)(xs, xs), *jax.jvp(scale_p.bind, (xs, xs), (xs, xs)),
    jax.grad(lambda x: scale_p.bind(x, xs).sum())(xs),
    jax.vmap(scale_p.bind, (1, None))(xs, xs[:, 0]))]
result += [sorted(set(seen)), str(p2tz(2.0)), str(p2tz(xs)), str(p2tz(jnp.arange(3)))]
"""

CONTRACTIONS = """
import jax
import jax.numpy as jnp
import numpy as np
import opt_einsum
from jax._src import config
from jax._src.mesh import get_concrete_mesh
from jax._src.numpy import einsum
from jax._src.pretty_printer import text
from jax._src.state.indexing import Slice

x = jnp.arange(6.0).reshape(2, 3)
asked = []

def dot(*args, **options):
    asked.append(args[2])
    return jax.lax.dot_general(*args, **options)

def contracted(subscripts, *operands):
    operands, steps = opt_einsum.contract_path(subscripts, *operands, einsum_call=True,
                                               use_blas=True, optimize="optimal")
    steps = tuple((places, frozenset(gone), terms) for places, gone, terms, *_ in steps)
    usual = einsum._einsum(list(operands), steps, None, None)
    given = einsum._einsum(operands, steps, None, None, dot, out_sharding=None)
    return usual.tolist(), given.tolist()

result = [contracted("ij,kj->ik", x, x), contracted("ij,jk,kl->il", x, x.T, x), str(asked)]

switch = config.bool_state("of_a_library", False, "what it does", include_in_jit_key=True,
                           include_in_trace_context=True)
f = jax.jit(lambda x: x + 1 if switch.value else x)
result.append([f(1), switch.value])
with switch(True):
    result.append([f(1), switch.value])
result.append(f(1))

result += [isinstance(jax.ds(1, 2), Slice), type(text("a")).__name__, get_concrete_mesh().empty]
with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    result.append(str(get_concrete_mesh()))
result = [str(r) for r in result]
"""


NUMBERS = """
import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

scale_p = Primitive("scale")
result = []

def seen(rule, *values):
    result.append((rule, *(str(x.dtype) for x in values)))

def impl(x, y):
    seen("impl", x, y)
    return jnp.multiply(x, y)

def transpose(ct, x, y):
    seen("transpose", ct, y)
    return [ct.reshape(ct.shape) * y, None]

def batch(args, dims):
    seen("batch", *args)
    return scale_p.bind(*args), 0

scale_p.def_impl(impl)
scale_p.def_abstract_eval(lambda x, y: x)
mlir.register_lowering(scale_p, mlir.lower_fun(lambda x, y: x * y, multiple_results=False))
ad.primitive_jvps[scale_p] = lambda primals, tangents: (
    scale_p.bind(*primals), scale_p.bind(tangents[0], primals[1]))
ad.primitive_transposes[scale_p] = transpose
batching.primitive_batchers[scale_p] = batch
ys = [scale_p.bind(0.5, 2.0), scale_p.bind(3, 2), scale_p.bind(1j, jnp.complex64(2.0))]
ys += jax.jvp(lambda x: scale_p.bind(x, 2.0), (0.5,), (1.0,))
ys += [jax.vmap(lambda x: scale_p.bind(x, 2.0))(jnp.ones(2)).sum()]
for transformed in (jax.grad, lambda f: jax.jit(jax.grad(f)), lambda f: jax.grad(jax.jit(f))):
    ys += [transformed(lambda x: scale_p.bind(x, 2.0))(jnp.float32(3.0))]
result += [str(y) for y in ys]
"""

KEYS = """
import jax
import jax.numpy as jnp
from jax._src.random import threefry2x32

key = threefry2x32.threefry_seed(jnp.asarray(7))
keys = threefry2x32.threefry_split(key, (2, 3))
bits = [threefry2x32.threefry_random_bits(keys[1, 2], width, (4,)) for width in (8, 16, 32)]
result = [(x.tolist(), str(x.dtype)) for x in (key, keys, *bits,
                                               jax.jit(threefry2x32.threefry_seed)(123))]
"""


@pytest.mark.parametrize("program", [PARAMETERS, SHARDINGS, RULES, CONTRACTIONS, KEYS, NUMBERS],
                         ids=["parameters", "shardings", "rules", "contractions", "keys",
                              "numbers"])
def test_stand_ins_compute_what_their_originals_do(jax_oracle, program):
    expected = jax_oracle.run(program).value
    assert dropped_in(f"{program}\nprint(result)") == str(expected)


CLASSES = """
import jax
import jax.numpy as jnp
from jax.experimental.jet import jet

result = []

def f(x):
    result.append(type(x).__module__.partition(".")[0])
    return x * 2.0

f(jnp.ones(2)), jax.jit(f)(1.0), jax.vmap(f)(jnp.ones(2)), jax.grad(f)(1.0), jax.linearize(f, 1.0)
jet(f, (1.0,), ((1.0,),)), jax.jvp(f, (1.0,), (1.0,)), jax.vmap(jax.grad(f))(jnp.ones(2))
result.append(type(jax.random.key(0)).__module__.partition(".")[0])
result.append(jax.core.Tracer.__module__.partition(".")[0])
"""


def test_the_classes_of_arrays_and_tracers_are_of_the_packages_that_jax_says(jax_oracle):
    expected = jax_oracle.run(CLASSES).value
    assert dropped_in(f"{CLASSES}\nprint(result)") == str(expected)


def test_modules_that_are_imported_and_not_used():
    assert dropped_in("""
        import importlib, sys
        from jax.experimental import pallas
        import jax.experimental.pallas as again
        from saem.dropin.unoffered_modules import TABLE
        assert pallas is again is sys.modules["jax.experimental.pallas"]
        import jax
        assert pallas.ds(1, 2) == jax.ds(1, 2) and pallas.dslice is jax.ds
        for row in TABLE:
            module = importlib.import_module(f"jax.{row.name}")
            assert row.needed_by and row.instead in module.__doc__
            try:
                module.pallas_call
            except AttributeError as error:
                assert f"Instead: {row.instead}" in str(error)
            else:
                raise AssertionError(module)
            for name in row.taken:
                for use in (lambda: getattr(module, name)(), lambda: getattr(module, name).part):
                    try:
                        use()
                    except AttributeError as error:
                        assert f"Instead: {row.instead}" in str(error)
                    else:
                        raise AssertionError(name)
        try:
            from jax.experimental.pallas import fuser
        except ImportError as error:
            print(error)
    """).startswith("cannot import name 'fuser' from 'jax.experimental.pallas'")


PREFIXES = """
from jax._src.tree_util import prefix_errors

result = [
    [str(error("in_axes")).splitlines()[:2] for error in prefix_errors(prefix, full)]
    for prefix, full in (
        ((1, 2), (1, 2)), ((1, 2), (1, 2, 3)), ((1, 2), [1, 2]), ({"a": 1}, {"b": 1}),
        ({"a": (1, 2)}, {"a": (1, 2, 3)}), (None, 1), ([1, (2, 3)], [1, (2, (3, 4))]),
        (((1, 2), (3, 4)), ((1, 2, 3), [1, 2])), (1, (1, 2)), ((1, (2, 3)), (1, 2)),
        ([1, None], [1, 2]), ([None], [None]))]
"""


def test_places_where_a_prefix_is_none_are_those_of_jax(jax_oracle):
    expected = jax_oracle.run(PREFIXES).value
    assert dropped_in(f"{PREFIXES}\nprint(result)") == str(expected)


# -- running programs ------------------------------------------------------------------------------

SCRIPT = """
import pickle
import sys

import jax


class Point:
    x = 1


assert jax.__saem__
if __name__ == "__main__":
    assert sys.modules["__main__"].Point is Point and pickle.loads(pickle.dumps(Point)) is Point
    import beside
    print(sys.argv, beside.name, __file__, "annotations" in globals(), sys.stdin.read())
    print(type(__builtins__), type(__loader__), sorted(globals()), __spec__, __package__)
    raise SystemExit(7)
"""


def test_a_script_runs_as_python_would_run_it(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "script.py").write_text(SCRIPT)
    (tmp_path / "inner" / "beside.py").write_text("name = __name__\n")
    (tmp_path / "jax.py").write_text("__saem__ = True\n")  # plain Python finds this one
    words = ("inner/script.py", "--flag", "-m", "x")
    plain = python(*words, folder=tmp_path, text="input", more_path=tmp_path)
    done = python("-m", "saem", "run", *words, folder=tmp_path, text="input")
    assert done.returncode == 7, done.stderr
    assert (done.stdout, done.returncode) == (plain.stdout, plain.returncode)


def test_modules_code_and_folders(tmp_path):
    (tmp_path / "program.py").write_text("import sys, jax; print(__name__, sys.argv[1:], jax)")
    said = output("-m", "saem", "run", "-m", "program", "a", "-b", folder=tmp_path)
    assert said.startswith("__main__ ['a', '-b'] <module 'saem'")
    (tmp_path / "__main__.py").write_text("import program")
    said = output("-m", "saem", "run", str(tmp_path), "c")
    assert said.startswith("program ['c'] <module 'saem'")
    done = python("-m", "saem", "run", "-", text="import jax; print(jax.__version__)")
    assert done.stdout == "0.10.2\n"


def test_pytest_runs_on_it(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import jax.numpy as jnp\n\ndef test(): assert jnp.ones(2).sum() == 2\n")
    said = output("-m", "saem", "run", "-m", "pytest", "-q", "-p", "no:cacheprovider",
                  folder=tmp_path)
    assert "1 passed" in said


FAILING = """
import jax, jax.numpy as jnp
@jax.jit
def inner(x): return {body}
def outer(x): return jax.vmap(inner)(x).sum()
jax.grad(outer)(jnp.ones((2, 3)))
"""


@pytest.mark.parametrize(("body", "modes"), [("jnp.dot(x, jnp.ones(5))", ("auto", "off")), (
    "1 / 0", ("quiet_remove_frames", "remove_frames"))])
def test_a_failing_program_shows_its_own_lines(tmp_path, body, modes):
    # JAX shows these lines: those of the program, then of the operation that failed.
    script = tmp_path / "script.py"
    script.write_text(FAILING.format(body=body))
    lines = [f'  File "{script}", line {line}, in {name}' for line, name in
             ((6, "<module>"), (5, "outer"), (4, "inner"))]
    shown = [python("-m", "saem", "run", str(script), JAX_TRACEBACK_FILTERING=mode).stderr
             for mode in modes]
    assert [line for line in shown[0].splitlines() if line.startswith("  File ")] == lines
    assert "JAX_TRACEBACK_FILTERING=off shows them" in shown[0]
    assert "derivatives.py" in shown[1] and run.__file__ not in shown[1]
    assert shown[1].count(lines[-1]) == 1 + ("remove_frames" in modes)


def test_what_caused_an_error_is_shortened_and_other_errors_are_as_pythons(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import jax\ndef f(x):\n  try: return [][1]\n"
                      "  except IndexError as e: raise ValueError from e\njax.jit(f)(1.)\n")
    shown = python("-m", "saem", "run", str(script)).stderr
    assert shown.count("  File ") == 3 and "direct cause" in shown and "left out" in shown
    for text in ("def f(x): return x.y\nf(1)\n", "def f(:\n"):
        script.write_text(text)
        assert python("-m", "saem", "run", str(script)).stderr == python(str(script)).stderr


def test_wrong_command_lines(tmp_path):
    done = python("-m", "saem", "run", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == (f"saem run: {str(tmp_path)!r} is a folder without a __main__.py. "
                           "Name the script in it.\n")
    done = python("-m", "saem", "run", "nowhere.py")
    assert done.returncode == 2 and "can't open file" in done.stderr
    for module in ("nowhere_at_all", "nowhere_at_all.inside"):
        done = python("-m", "saem", "run", "-m", module)
        assert done.returncode == 1 and f"no module named {module!r}" in done.stderr
        assert "Traceback" not in done.stderr
    interrupted = ("-c", "raise KeyboardInterrupt")
    ends = [python(*words, *interrupted).returncode for words in ((), ("-m", "saem", "run"))]
    assert ends[0] == ends[1] != 0
    assert python("-m", "saem", "run").returncode == 2
    assert "usage: python -m saem run" in output("-m", "saem", "run", "--help")
    done = python("-m", "saem", "run", "-m")
    assert done.returncode == 2 and "-m needs a module" in done.stderr


def test_optional_modules_are_looked_for_without_errors():
    assert dropped_in("""
        import importlib.util
        import jax
        for name in ("jax.nonsense", "jax.experimental.nonsense", "jax.numpy.linalg"):
            print(importlib.util.find_spec(name) is not None)
    """).split() == ["False", "False", "True"]


WORKERS = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import jax
import jax.numpy as jnp


def worker(n):
    return jax.__saem_version__ and float(jnp.ones(n).sum())


if __name__ == "__main__":
    for method in ("spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            print(list(pool.map(worker, [1, 2])))
"""


def test_workers_that_are_started_anew_run_on_it_too(tmp_path):
    (tmp_path / "program.py").write_text(WORKERS, "utf-8")
    done = python("-m", "saem", "run", str(tmp_path / "program.py"))
    assert done.stdout.splitlines() == ["[1.0, 2.0]"] * 2, done.stderr


def test_public_functions_are_pickled_by_their_names():
    for package, names in {
            "saem.tree": "all map reduce leaves structure", "saem.lax": "map",
            "saem.tree_util": "tree_all tree_map tree_leaves tree_reduce tree_structure",
            "saem.numpy": "conj degrees radians mod abs amax", "saem": "disable_jit"}.items():
        for name in names.split():
            value = getattr(importlib.import_module(package), name)
            assert pickle.loads(pickle.dumps(value)) is value, name
            assert copy.deepcopy(value) is value, name
