"""Can each step between a function and machine code be taken, read and used by itself, as in JAX?

Read before: ``jit.stages``.
Invariant: expected answers and sentences are JAX's.
"""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from both import ours, same, same_error, source_of

import saem as jax
import saem.numpy as jnp
from saem import stages
from saem.compile import executables as compiler
from saem.core import events
from saem.core.events import bus
from saem.experimental import layout
from saem.experimental.layout import Layout
from saem.experimental.layout import with_layout_constraint as with_layout

X, Y = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
x, y = jnp.asarray(X), jnp.asarray(Y)


def f(x, y, *, k=2):
    return {"a": x @ y, "b": k * 1.0}


j = jax.jit(f, static_argnames="k")


def types_inside(x):
    """The types of a function that is traced inside another and closes over a value of that."""
    def outer(v):
        traced = jax.jit(lambda d: d["a"] + v[0, 0]).trace({"a": 1.0})
        seen.extend([repr(traced.args_info), repr(traced.in_avals)])
        return v

    seen = []
    jax.make_jaxpr(outer)(x)
    return seen


@pytest.mark.parametrize("expression", [
    "[str(v) for t in [j.trace(x, y, k=3)] for v in (t.fun_name, t.in_tree, t.out_tree)]",
    "str(j.trace(x, y, k=3).jaxpr)",
    "repr(j.trace(x, y, k=3).args_info)",
    "repr(j.trace(x, y, k=3).in_avals)",
    "repr(j.trace(x, y, k=3).out_avals)",
    "repr(j.trace(x, y, k=3).out_info)",
    "repr(j.eval_shape(x, y))",
    "repr(j.lower(x, y).args_info)",
    "repr(j.lower(x, y).in_avals)",
    "str(j.lower(x, y).in_tree) + str(j.lower(x, y).out_tree)",
    "repr(j.lower(x, y).compile().args_info)",
    "repr(j.lower(x, y).compile().input_shardings)",
    "repr(j.lower(x, y).compile().output_shardings)",
    "repr(j.lower(x, y).compile().input_formats)",
    "repr(j.lower(x, y).compile().output_formats)",
    "jax.jit(f, donate_argnums=(0,)).lower(x, y).donate_argnums",
    "repr(jax.jit(f, donate_argnames='y').lower(x, y).args_info)",
    "types_inside(x)",
    "j.lower(x, y).cost_analysis()",
    "j.lower(x, y).compile().cost_analysis()",
    "j.lower(x, y).compile().memory_analysis().argument_size_in_bytes",
    "repr(j.trace(jax.ShapeDtypeStruct((3, 4), np.float64), y).in_avals)",
    "isinstance(j, jax.stages.Wrapped)",
    "isinstance(f, jax.stages.Wrapped)",
    "[isinstance(s, c) for s, c in zip((j.trace(x, y), j.lower(x, y), j.lower(x, y).compile()),"
    " (jax.stages.Traced, jax.stages.Lowered, jax.stages.Compiled))]",
])
def test_what_a_stage_tells_is_what_jaxs_tells(jax_oracle, expression):
    wanted = jax_oracle.run(source_of(expression, __name__)).value
    assert ours(expression, __name__) == wanted


@pytest.mark.parametrize("expression", [
    "j.lower(x, y).compile()(x, y)",
    "j.lower(x, y, k=5).compile()(X, Y)",
    "j.lower(jax.ShapeDtypeStruct((3, 4), 'float32'), y).compile()(x, y)",
    "[jax.jit(lambda x: x * 2).lower(1.0).compile()(v)"
    " for v in (2.0, np.float32(2), jnp.float32(2))]",
    "jax.jit(lambda x: x * 2).lower(np.float32(1)).compile()(2.0)",
    "jax.jit(lambda *a, **k: (a, k)).lower(x, y=y).compile()(x, y=y)",
    "jax.jit(lambda k: jax.random.normal(k)).lower(jax.random.key(0)).compile()(jax.random.key(0))",
    "j.lower(x, y).compile({'xla_embed_ir_in_executable': True})(x, y)",
    "j.lower(x, y).compile({'xla_embed_ir_in_executable': 'True'})(x, y)",
    "jax.jit(f, compiler_options={'xla_embed_ir_in_executable': True})(x, y)",
])
def test_a_compiled_program_answers_as_jaxs(jax_oracle, expression):
    same(jax_oracle, expression, within=__name__)


@pytest.mark.parametrize(("expression", "sentence"), [
    ("j.lower(x, y).compile()(x)", "Function compiled with input pytree does not match the input "
     "pytree it was called with."),
    ("j.lower(x, y).compile()(x, y=y)", "Function compiled with input pytree does not match"),
    ("j.lower(x, y).compile()(x, y, k=2)", "Function compiled with input pytree does not match"),
    ("j.lower(x, y).compile()(x, jnp.ones((4, 3)))",
     "Argument types differ from the types for which this computation was compiled. Perhaps you "
     "are calling the compiled executable with a different enable_x64 mode than when it was AOT "
     "compiled? The mismatches are:\n"
     "Argument 'y' compiled with float32[4,2] and called with float32[4,3]"),
    ("j.lower(x, y).compile()(x.astype('int32'), jnp.ones((4, 3), 'float16'))",
     "Argument 'x' compiled with float32[3,4] and called with int32[3,4]\n"
     "Argument 'y' compiled with float32[4,2] and called with float16[4,3]"),
    ("jax.jit(lambda k: jax.random.normal(k)).lower(jax.random.key(0)).compile()(jnp.uint32(3))",
     "Argument 'k' compiled with key<fry>[] and called with uint32[]"),
    *[(source, "Cannot apply JAX transformations to a function lowered and compiled for a "
       "particular signature. Detected argument of Tracer type <class '") for source in (
        "jax.grad(lambda x: j.lower(X, Y).compile()(x, y)['a'].sum())(x)",
        "jax.jvp(lambda x: j.lower(X, Y).compile()(x, y)['a'], (x,), (x,))",
        "jax.vmap(lambda x: j.lower(X, Y).compile()(x, y))(jnp.ones((2, 3, 4)))",
        "jax.jit(lambda x: j.lower(X, Y).compile()(x, y))(x)",
        "jax.make_jaxpr(j.lower(X, Y).compile())(x, y)")],
    ("j.lower(x, y).as_text('foo')", "unknown dialect: foo"),
    ("j.lower(x, y).compiler_ir('mhlo')", "unknown dialect: mhlo"),
    ("j.trace(x, y).lower(foo=1)", "got an unexpected keyword argument 'foo'"),
    ("j.lower(x, y).compile({'xla_no_such': True})", "No such compile option: 'xla_no_such'"),
    ("jax.jit(f, compiler_options={'xla_no_such': True})(x, y)", "No such compile option"),
    ("j.lower(x, y).compile({'xla_embed_ir_in_executable': 'maybe'})",
     "'maybe' is not a valid bool value"),
    ("jax.jit(lambda x: jax.jit(f, compiler_options={'xla_embed_ir_in_executable': True})(x, y))"
     "(x)", "`compiler_options` can only be passed to top-level `jax.jit`. Got compiler_options="
     "{'xla_embed_ir_in_executable': True} specified on a nested jit with name: f"),
    ("j.lower('a', y)", "as an abstract array. The problematic value is of type <class 'str'> and "
     "was passed to the function at path x."),
    ("j(jax.ShapeDtypeStruct((3, 4), 'float32'), y)", "is not a valid JAX type"),
    ("jnp.sin(jax.ShapeDtypeStruct((3, 4), 'float32'))", "is not a valid JAX type"),
    ("jax.ShapeDtypeStruct((3,), 'float32', sharding=3)", "sharding should be an instance of "
     "`jax.sharding.Sharding`, `jax.sharding.PartitionSpec` or `jax.experimental.layout.Format`. "
     "Got 3 of type <class 'int'>."),
    ("jax.ShapeDtypeStruct((3,), None)", "dtype must be specified"),
    ("jax.ShapeDtypeStruct((3,), 'float32', vma={'i'})", "unexpected keyword argument 'vma'"),
])
def test_what_jax_refuses_is_refused_in_its_words(jax_oracle, expression, sentence):
    same_error(jax_oracle, expression, sentence, within=__name__)


def test_the_texts_are_those_of_the_stages():
    lowered = jax.jit(lambda x: jnp.sin(x) * 2, keep_unused=True).lower(X)
    text = lowered.as_text()
    assert text == lowered.as_text("stablehlo") and "loc(" not in text
    assert "stablehlo.sine" in text and "stablehlo.multiply" in text
    assert "test_stages.py" in lowered.as_text(debug_info=True)
    assert lowered.as_text("hlo").startswith("HloModule jit__lambda")
    assert "sine(" in lowered.as_text("hlo")
    assert str(lowered.compiler_ir()).count("stablehlo.sine") == 1  # a module of its own, parsed
    assert lowered.compiler_ir("hlo").program_shape().parameter_shapes()[0].dimensions() == (3, 4)
    optimised = lowered.compile().as_text()
    assert "is_scheduled=true" in optimised and "fusion" in optimised


def twice(x):
    return x * 2


twice = jax.jit(twice)


def scaled(n):
    @jax.jit
    def one(x):
        return x * n
    return one


def tree_to_tree(x, y, *rest, n=1, **kw):
    return {"a": jnp.sin(x) + y["hi"],
            "b": (twice(x), twice(x * n), kw["k"] if kw else None), "c": rest}


def texts(case):
    """What a program is as text, and what its inputs are called in the text with places."""
    three = jnp.ones(3)
    fun, args, kwargs = {
        "a tree": (jax.jit(tree_to_tree), (three, {"hi": three}, 1.), {"k": three}),
        "static": (jax.jit(tree_to_tree, static_argnames="n"), (three, {"hi": three}), {"n": 3}),
        "a value": (jax.jit(twice), (1.,), {}),
        "nothing": (jax.jit(lambda x: ()), (1.,), {}),
        "unused": (jax.jit(lambda x, y: [x + 1]), (1., 2), {}),
        "kept": (jax.jit(lambda x, y: [x + 1], keep_unused=True), (1., 2), {}),
        "donated": (jax.jit(lambda x, y: (x + 1, y), donate_argnums=0), (three, 2), {}),
        "partial": (jax.jit(functools.partial(lambda a, b: a * b, 2.)), (three,), {}),
        "three of one name": (jax.jit(lambda x: [scaled(n)(x) for n in range(3)]), (three,), {}),
    }[case]
    lowered = fun.lower(*args, **kwargs)
    text = lowered.as_text()
    assert text == str(lowered.compiler_ir()) == lowered.as_text("stablehlo")
    (head,) = [line for line in lowered.as_text(debug_info=True).splitlines() if "@main" in line]
    return text, head


@pytest.mark.oracle
@pytest.mark.parametrize("case", [
    "a tree", "static", "a value", "nothing", "unused", "kept", "donated", "partial",
    "three of one name"])
def test_a_lowered_program_is_written_as_jax_writes_it(jax_oracle, case):
    same(jax_oracle, texts, case=case)


class Layer:
    def __call__(self, x, *, scale=1., **more):
        return x * scale + sum(more.values())


def named_inputs():
    """What the text with places calls the inputs of functions with keywords of all kinds."""
    def positional(x, /, y=0., *rest, **x_and_more):
        return x + y + sum(rest) + sum(x_and_more.values())

    def without(x, *, z):
        return x + z

    calls = [(positional, (1., 2., 3.), {"k": 5.}), (positional, (1.,), {"rest": 1.}),
             (without, (1.,), {"z": 2.}), (Layer(), (1.,), {"scale": 2., "a": 3., "b": 4.}),
             (functools.partial(positional, 1.), (2.,), {"k": 3.}),
             (functools.partial(without, z=1.), (2.,), {}),
             (Layer().__call__, (1.,), {"b": 2.})]
    heads = [line for fun, args, kwargs in calls
             for line in jax.jit(fun).lower(*args, **kwargs).as_text(debug_info=True).splitlines()
             if "@main" in line]
    return [re.findall(r'loc\("([^"]*)"\)', head) for head in heads]


@pytest.mark.oracle
def test_inputs_are_called_as_jax_calls_them(jax_oracle):
    same(jax_oracle, named_inputs)


def test_what_else_main_takes_has_no_name():
    """A token, constants of the program and new values of references are not the function's."""
    table, ref = np.arange(100.), jax.new_ref(1.)

    def f(x):
        jax.debug.print("{}", x, ordered=True)
        ref[...] = x + ref[...]
        return x, x + table.sum() + table

    lowered = jax.jit(f).lower(1.)
    (head,) = [line for line in lowered.as_text(debug_info=True).splitlines() if "@main" in line]
    assert head.count('loc("x")') == 1 and head.count("%arg") == 4
    assert head.count("jax.result_info") == 2 and 'result_info = "result[1]"' in head
    assert jax.jit(f).lower(1.).compile()(1.)[1].shape == (100,)


def test_a_program_may_be_lowered_for_a_platform_that_is_not_here():
    traced = jax.jit(lambda x: jnp.sin(x) * 2).trace(X)
    here = traced.lower()
    there = traced.lower(lowering_platforms=("tpu",))
    assert here.as_text() == there.as_text() == traced.lower(
        lowering_platforms=("cpu", "tpu")).as_text()
    assert traced.lower(lowering_platforms=("cpu", "tpu")).compile()(X).shape == X.shape
    with pytest.raises(ValueError, match=r"was lowered for tpu, but would run on cpu"):
        there.compile()
    calls = jax.jit(lambda x: jax.pure_callback(np.sin, x, x)).trace(X)
    assert "gpu" in calls.lower(lowering_platforms=("cuda",)).as_text()
    both = calls.lower(lowering_platforms=("cuda", "cpu"))
    assert "gpu_callback" in both.as_text() and "cpu_callback" in both.as_text()
    np.testing.assert_array_equal(both.compile()(X), np.sin(X))
    with pytest.raises(ValueError, match=r"was lowered for cuda, tpu, but would run on cpu"):
        traced.lower(lowering_platforms=("cuda", "tpu")).compile()


def test_a_compiled_program_is_not_traced_or_compiled_again():
    count = 0

    def f(x):
        nonlocal count
        count += 1
        return jnp.cos(x) - 1

    compiled = jax.jit(f).lower(X).compile()
    told = []
    end = bus.subscribe(told.append)
    try:
        for _ in range(3):
            np.testing.assert_allclose(compiled(X), np.cos(X) - 1, rtol=1e-6)
    finally:
        end()
    assert count == 1
    assert not any(isinstance(e, (events.Compile, events.TraceBegin)) for e in told)


def test_a_compiled_program_checks_every_call():
    compiled = jax.jit(lambda x: x + 1).lower(np.float32(1)).compile()
    for _ in range(3):
        assert compiled(jnp.float32(1)) == 2
        with pytest.raises(TypeError, match="called with int32"):
            compiled(jnp.int32(1))
    assert compiled.call(jnp.float32(2)) == 3
    with jax.disable_jit():
        assert compiled(jnp.float32(4)) == 5


def test_a_donated_argument_is_gone():
    compiled = jax.jit(lambda x: x + 1, donate_argnums=0).lower(X).compile()
    for _ in range(2):
        x = jnp.asarray(X)
        assert compiled(x).shape == X.shape and x.is_deleted()


def test_the_engine_goes_on_after_a_failed_compile():
    f = jax.jit(lambda x: jnp.tanh(x) * 1.5)
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match="No such compile option"):
            f.lower(X).compile({"xla_no_such": 1})
    np.testing.assert_allclose(f(X), np.tanh(X) * 1.5, rtol=1e-6)
    np.testing.assert_allclose(f.lower(X).compile()(X), np.tanh(X) * 1.5, rtol=1e-6)


def test_the_engine_goes_on_after_it_ran_out_of_memory():
    f = jax.jit(lambda n: jnp.zeros((1 << 46,), jnp.float32) + n)
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
            f(1.0)
    np.testing.assert_array_equal(jnp.asarray(X) + 1, X + 1)


def test_options_are_part_of_what_a_program_is():
    compiler.clear()
    told = []
    end = bus.subscribe(lambda e: told.append(e.found) if isinstance(e, events.Compile) else None)
    lowered = jax.jit(lambda x: jnp.tanh(x) * 2.5).lower(X)
    lowered.compile()
    lowered.compile({"xla_embed_ir_in_executable": True})
    lowered.compile({"xla_embed_ir_in_executable": True})
    end()
    assert told == [False, False, True]


def test_the_sharding_of_a_struct_places_the_program():
    device = jax.devices()[0]
    here = jax.sharding.SingleDeviceSharding(device)
    struct = jax.ShapeDtypeStruct((3, 4), np.float32, sharding=here)
    compiled = jax.jit(lambda x: x * 2).lower(struct).compile()
    assert compiled.input_shardings == ((here,), {}) and compiled.output_shardings == here
    assert compiled(jnp.asarray(X)).committed
    assert compiled.out_info.sharding == here and compiled.out_info.shape == (3, 4)


def column(x):
    return with_layout(x, Layout((1, 0)))


summed = jax.jit(lambda x: column(x * 2).sum(0))


@pytest.mark.parametrize("expression", [
    "summed(x)", "column(x)", "jax.vmap(column)(jnp.stack([x, x]))",
    "jax.vmap(column, 1, 2)(jnp.stack([x, x]))", "with_layout({'a': x}, Layout((1, 0)))",
    "jax.grad(lambda x: (column(x) ** 2).sum())(x)", "jax.jvp(column, (x,), (x,))"])
def test_a_layout_changes_no_number(jax_oracle, expression):
    same(jax_oracle, expression, within=__name__)


@pytest.mark.parametrize("expression", [
    "str(jax.make_jaxpr(summed)(x))",
    "[line.split('backend')[1].split(':')[0] for line in summed.lower(x).as_text().split('\\n')"
    " if 'LayoutConstraint' in line]",
    *[f"[str(e.params['layout']) for e in jax.make_jaxpr(jax.vmap(lambda x: with_layout("
      f"x, Layout({order}))))(jnp.ones((2, 3, 4))).eqns if 'layout' in e.params]"
      for order in ((1, 0), (0, 1))],
])
def test_a_layout_is_told_as_jax_tells_it(jax_oracle, expression):
    same(jax_oracle, expression, within=__name__)


@pytest.mark.parametrize(("expression", "sentence"), [
    ("with_layout(x, Layout((0, 1, 2)))", "Length of major_to_minor and the rank of the value "
     "should match. Got major_to_minor=(0, 1, 2) and shape=(3, 4)"),
    ("with_layout(x, 3)", "layouts passed to `with_layout_constraint` must be of type `Layout`. "
     "Got [<class 'int'>]"),
])
def test_a_layout_that_does_not_fit_is_refused(jax_oracle, expression, sentence):
    same_error(jax_oracle, expression, sentence, within=__name__)


def test_a_function_of_the_library_is_compiled_as_a_call_compiles_it():
    jnp.median(X)
    count = len(compiler._executables)
    compiled = jnp.median.lower(X).compile()
    assert len(compiler._executables) == count
    assert float(compiled(X)) == np.median(X)


def test_public_names_are_the_stages():
    traced = jax.jit(lambda x: x).trace(X)
    assert isinstance(traced, stages.Traced) and isinstance(traced.lower(), stages.Lowered)
    assert isinstance(traced.lower().compile().input_formats[0][0], layout.Format)
    info = traced.args_info[0][0]
    assert isinstance(info, stages.ArgInfo)
    assert (info.shape, info.dtype, info.donated) == ((3, 4), np.float32, False)
