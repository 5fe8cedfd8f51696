"""Do the small namespaces for libraries answer as JAX's?"""

from __future__ import annotations

import re  # noqa: F401 - expressions use it

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem.experimental import topologies
from saem.extend import backend, random, sharding
from saem.extend import source_info_util as info


def test_generators_and_their_keys_are_those_of_jax(jax_oracle):
    def program():
        words = jnp.array([1, 2], jnp.uint32)
        keys = [
            random.seed_with_impl(random.threefry_prng_impl, 3),
            random.random_seed(4, random.rbg_prng_impl),
            random.random_seed(5, random.unsafe_rbg_prng_impl),
        ]
        return [
            [jax.random.key_data(k) for k in keys],
            [random.threefry_2x32(words, jnp.arange(n, dtype=jnp.uint32)) for n in (1, 4, 5)],
            random.threefry_2x32(words, jnp.arange(6, dtype=jnp.uint32).reshape(2, 3)),
            [(impl.name, impl.tag, impl.key_shape)
             for impl in (random.threefry_prng_impl, random.rbg_prng_impl)],
        ]

    same(jax_oracle, program)


def test_clients_and_devices_are_told(jax_oracle):
    def program():
        return [
            list(backend.backends()),
            backend.get_backend().platform,
            backend.get_backend("cpu").platform,
            backend.get_default_device() == jax.devices()[0],
            backend.backend_xla_version(),
            backend.get_compile_options(1, 1).num_replicas,
            backend.get_compile_options(1, 2).num_partitions,
            topologies.get_attached_topology().devices == jax.devices(),
            str(topologies.make_mesh(topologies.get_attached_topology("cpu"), (2, 4), ("x", "y"))),
        ]

    same(jax_oracle, program)
    same_error(jax_oracle, "backend.get_backend('bogus')", "Unknown backend", within=__name__)
    same_error(jax_oracle, "topologies.get_topology_desc('', 'cpu')",
               "topology not implemented for cpu", within=__name__)


def test_shardings_are_read_back_from_bytes():
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    for spec in (jax.P(), jax.P("x"), jax.P("y", "x"), jax.P(("x", "y"))):
        hlo = jax.NamedSharding(mesh, spec)._to_xla_hlo_sharding(2)
        written = sharding.get_serialized_proto_from_hlo_sharding(hlo)
        assert sharding.get_hlo_sharding_from_serialized_proto(written) == hlo


def test_what_cannot_be_is_said():
    with pytest.raises(RuntimeError, match="a client lives as long as the process"):
        backend.clear_backends()
    with pytest.raises(RuntimeError, match="before backends are initialized"):
        backend.register_backend_factory("mine", lambda: None)
    with pytest.raises(TypeError, match="requires uint32"):
        random.threefry_2x32(np.zeros(2, np.int32), np.zeros(2, np.uint32))
    with pytest.raises(AttributeError, match=r"no attribute 'fused'. Instead: compile the"):
        _ = jax.experimental.fused
    with pytest.raises(NotImplementedError, match="topology not implemented"):
        topologies.get_topology_desc()
    backend.register_backend_cache({}, "a test")
    f = jax.jit(lambda x: x + 1)
    assert f(1) == 2
    backend.clear_in_memory_compilation_cache()
    assert f(1) == 2


def test_calls_of_other_libraries_compute_their_program():
    primitives = jax.extend.core.primitives
    closed = jax.make_jaxpr(lambda x, y: (x * y, x + 1))(2.0, 3.0)
    for primitive in (primitives.call_p, primitives.closed_call_p):
        assert isinstance(primitive, jax.extend.core.CallPrimitive) and primitive.call_primitive
        assert [float(x) for x in primitive.bind(2.0, 3.0, call_jaxpr=closed)] == [6.0, 3.0]
        assert [float(x) for x in primitive.bind(2.0, 3.0, call_jaxpr=closed.jaxpr)] == [6.0, 3.0]
    wrapped = jax.extend.linear_util.wrap_init(lambda x: x + 1)
    assert jax.extend.core.call_impl(wrapped, 2) == 3
    assert jax.extend.core.TraceTag() != jax.extend.core.TraceTag()


# -- where equations come from --------------------------------------------------------------------


def named(x):
    with info.extend_name_stack("outer") as names:
        y = jnp.sin(x)
        with info.transform_name_stack("mine"):
            y = jnp.cos(y)
            with jax.named_scope("deep"):
                y = jnp.tan(y)
    with info.set_name_stack(info.new_name_stack("set").extend("in")):
        y = y * 2
    with jax.named_scope("scope"), info.reset_name_stack():
        y = y + 1
    assert str(names).endswith(("outer", "outer)"))
    return y


def names_in(f, *args):
    return [(eqn.primitive.name, str(eqn.source_info.name_stack))
            for eqn in jax.make_jaxpr(f)(*args).jaxpr.eqns]


@pytest.mark.parametrize("expression", [
    "names_in(named, 1.)", "names_in(jax.vmap(named), jnp.ones(2))",
    "names_in(lambda x: jax.jvp(named, (x,), (x,)), 1.)",
    "sorted(set(re.findall(r'jit\\(named\\)/([^\"]*/[^\"]*)\"', jax.jit(named).lower(1.).as_text("
    "debug_info=True))))",
    "str(info.current_name_stack()), repr(info.new_name_stack('a').transform('jvp'))",
    "str(info.new_name_stack('a').extend('b').transform('jvp').transform('vmap').extend('c'))",
    "info.new_source_info().traceback, info.summarize(info.new_source_info())",
    "info.NameStack(info.new_name_stack('a').stack) == info.new_name_stack('a')",
    "str(info.new_name_stack('a') + info.new_name_stack('b').transform('jvp').extend('c'))",
    "info.new_name_stack('a') + info.new_name_stack() == info.new_name_stack('a')",
])
def test_names_of_equations(jax_oracle, expression):
    same(jax_oracle, expression, within=__name__)


def test_an_equation_is_written_on_behalf_of_another():
    first = jax.make_jaxpr(jnp.sin)(1.0).jaxpr.eqns[0].source_info

    def program(x):
        here = info.current()
        with info.user_context(first.traceback):
            y = jnp.cos(x)
        with info.user_context(first.traceback, name_stack=info.new_name_stack("there")):
            y = jnp.tan(y)
        with info.user_context(None):
            return jnp.exp(y), here

    here = []
    closed = jax.make_jaxpr(lambda x: here.append(program(x)[1]) or program(x)[0])(1.0)
    cos, tan, exp = (eqn.source_info for eqn in closed.jaxpr.eqns[-3:])
    assert info.summarize(cos) == info.summarize(tan) == info.summarize(first)
    assert first.traceback == cos.traceback and str(tan.name_stack) == "there"
    assert "program)" in info.summarize(here[0]) and "program)" in info.summarize(exp)
    assert info.SourceInfo(first.traceback, tan.name_stack).name_stack == tan.name_stack
    assert info.summarize(exp.replace(traceback=first.traceback)) == info.summarize(first)


N = np.int64
X = np.arange(77.0, dtype=np.float32).reshape(7, 11)  # a shape of no other test's programs


@pytest.mark.parametrize(("name", "params", "expected"), [
    ("reduce_sum_p", {"axes": (N(1),)}, X.sum(1)),
    ("reduce_prod_p", {"axes": (N(1),)}, X.prod(1)),
    ("reduce_max_p", {"axes": (N(0),)}, X.max(0)),
    ("argmax_p", {"axes": (N(1),), "index_dtype": np.dtype("int32")}, X.argmax(1)),
    ("cumsum_p", {"axis": N(1), "reverse": False}, X.cumsum(1)),
    ("transpose_p", {"permutation": (N(1), N(0))}, X.T),
    ("reshape_p", {"new_sizes": (N(11), N(7)), "dimensions": None}, X.reshape(11, 7)),
    ("broadcast_in_dim_p", {"shape": (N(2), N(7), N(11)),
                            "broadcast_dimensions": (N(1), N(2))}, np.stack([X, X])),
    ("slice_p", {"start_indices": (N(1), N(2)), "limit_indices": (N(5), N(9)),
                 "strides": (N(2), N(1))}, X[1:5:2, 2:9]),
    ("rev_p", {"dimensions": (N(0),)}, X[::-1]),
])
def test_parameters_may_be_integers_of_numpy(name, params, expected):
    """Programs are written with Python's; the texts of NumPy's are others."""
    np.testing.assert_allclose(getattr(jax.lax, name).bind(X, **params), expected, rtol=1e-5)


def test_parameters_of_several_operands_may_be_integers_of_numpy():
    lax = jax.lax
    product = lax.dot_general_p.bind(X, X, dimension_numbers=(((N(1),), (N(1),)), ((), ())),
                                     precision=None, preferred_element_type=None)
    np.testing.assert_allclose(product, X @ X.T, rtol=1e-5)
    padded = lax.pad_p.bind(X, np.float32(0), padding_config=((N(1), N(0), N(0)), (N(0),) * 3))
    np.testing.assert_array_equal(padded, np.pad(X, ((1, 0), (0, 0))))
    part = lax.dynamic_slice_p.bind(X, 1, 2, slice_sizes=(N(2), N(3)))
    np.testing.assert_array_equal(part, X[1:3, 2:5])
    np.testing.assert_allclose(lax.fft(X, "FFT", (N(11),)), np.fft.fft(X), rtol=1e-4, atol=1e-3)
