"""Do arrays lie on eight devices as their shardings say, and do programs keep them there?

Slices, shardings of results, messages and values are JAX's own, from the second process; the text
of programs is compared with what Shardy's reference says.
"""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.experimental import multihost_utils
from saem.placement.shardings import named_from_xla
from saem.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from saem.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))


def place(a, *spec):
    return jax.device_put(a, NamedSharding(mesh, P(*spec)))


a = place(np.arange(32.0, dtype=np.float32).reshape(8, 4), "x", "y")


def said(function):
    try:
        return repr(function())
    except Exception as error:
        return [type(error).__name__, str(error).splitlines()[0].split("C1: ")[-1]]


SPECS = [(), ("x",), (None, "y"), ("x", "y"), ("y", "x"), (("x", "y"),), (("y", "x"), None),
         (None, ("x",))]


def agree(oracle, question):
    same(oracle, question, within=__name__)


def test_meshes_and_specs_print_and_compare_as_in_jax(jax_oracle):
    agree(jax_oracle, """[repr(mesh), str(mesh), repr(mesh.shape), mesh.size,
        repr(P("x", None)), repr(P()), repr(P(("x", "y"), None, "z")), P("x") == P("x"),
        P("x") == P("x", None), P(("x",)) == P("x"), repr(NamedSharding(mesh, P("x", None))),
        str(mesh.abstract_mesh.shape), mesh == jax.make_mesh((4, 2), ("x", "y"), axis_types=(
            AxisType.Auto,) * 2), len(P("x", None)), list(P("x", None)), repr(P("x") + P("y"))]""")


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_every_device_holds_the_slice_jax_gives_it(jax_oracle, spec):
    agree(jax_oracle, f"""(lambda s: [
        [(d.id, str(i)) for d, i in s.devices_indices_map((8, 8)).items()],
        list(s.shard_shape((8, 8))), s.is_fully_replicated, s.num_devices,
        [(p.device.id, p.replica_id, p.data) for p in jax.device_put(
            np.arange(64., dtype=np.float32).reshape(8, 8), s).addressable_shards]])(
        NamedSharding(mesh, P{spec!r}))""".replace("P(())", "P()"))


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_what_xla_is_told_it_says_back(spec):
    sharding = NamedSharding(mesh, P(*spec))
    back = named_from_xla(sharding._to_xla_hlo_sharding(2), [mesh], 2)
    assert back.mesh == mesh
    assert back.devices_indices_map((8, 8)) == sharding.devices_indices_map((8, 8))


def test_what_the_mesh_cannot_say_gets_a_mesh_of_its_own():
    other = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
    across = NamedSharding(other, P("d"))
    turned = jax.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
    for wanted in (across, NamedSharding(turned, P("b", None)), NamedSharding(turned, P("a"))):
        back = named_from_xla(wanted._to_xla_hlo_sharding(2), [mesh], 2)
        assert back.devices_indices_map((8, 8)) == wanted.devices_indices_map((8, 8))


def test_results_lie_where_jax_puts_them(jax_oracle):
    agree(jax_oracle, """[repr(r.sharding) for r in (
        a + 1, jnp.sin(a), a.T, a[0], a.reshape(-1), a.sum(), a.sum(0), a @ a.T, jnp.dot(a, a.T),
        jax.jit(lambda x: x * 2)(a), jax.grad(lambda x: (x ** 2).sum())(a),
        jax.vmap(lambda r: r * 2)(a), jnp.concatenate([a, a]), a + np.ones((8, 4), np.float32),
        place(a, None, "x"), jax.device_put(a, jax.devices()[3]))]""")


def test_values_survive_every_move():
    value = np.arange(64.0, dtype=np.float32).reshape(8, 8)
    shardings = [NamedSharding(mesh, P(*spec)) for spec in SPECS]
    shardings.append(SingleDeviceSharding(jax.devices()[5]))
    for before in shardings:
        x = jax.device_put(value, before)
        assert x.sharding == before and x.is_fully_addressable
        for after in shardings:
            moved = jax.device_put(x, after)
            assert moved.sharding == after
            np.testing.assert_array_equal(np.asarray(moved), value)


def test_jit_places_arguments_and_results(jax_oracle):
    agree(jax_oracle, """(lambda s, t: [
        (lambda f: [repr(f(a, np.ones((4, 8), np.float32)).sharding),
                    f(a, np.ones((4, 8), np.float32)),
                    repr(f.lower(a, np.ones((4, 8), np.float32)).compile().output_shardings)])(
            jax.jit(lambda x, y: x @ y, in_shardings=(s, None), out_shardings=t)),
        repr(jax.jit(lambda x: (x, x.T), out_shardings=(s, t))(a)[1].sharding),
        repr(jax.jit(lambda x: x + 1, in_shardings=s)(np.ones((8, 4), np.float32)).sharding),
        repr(jax.jit(lambda x: lax.with_sharding_constraint(x + 1, t))(a).sharding),
        ])(NamedSharding(mesh, P("x", "y")), NamedSharding(mesh, P(None, "y")))""")


def test_the_text_carries_shardys_annotations():
    s, t = NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P("y", "x"))
    f = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, t), in_shardings=s,
                out_shardings=s)
    text = f.lower(np.ones((8, 4), np.float32)).as_text()
    assert "mhlo.num_partitions = 8" in text
    assert 'sdy.mesh @mesh = <["x"=4, "y"=2]>' in text
    assert '%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}' in text
    assert 'sdy.sharding_constraint %1 <@mesh, [{"y"}, {"x"}]>' in text or (
        '<@mesh, [{"y"}, {"x"}]> : tensor<8x4xf32>' in text)
    assert ('(tensor<8x4xf32> {jax.result_info = "result", '
            'sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})' in text)


def test_mistakes_are_told_as_jax_tells_them(jax_oracle):
    agree(jax_oracle, """[said(f) for f in (
        lambda: place(np.ones((3, 2)), "x"),
        lambda: place(np.ones(8), "x", "y"),
        lambda: NamedSharding(mesh, P("x", "x")),
        lambda: jax.sharding.Mesh(np.array(jax.devices()), ("a", "b")),
        )]""")
    for mistake, words in (
            (lambda: NamedSharding(jax.make_mesh((8,), "d"), P("z")), "Resource axis: z"),
            (lambda: jax.make_mesh((16,), "d"), "num_cpu_devices"),
            (lambda: jax.device_put(1.0, P("x")), "set_mesh")):
        with pytest.raises(ValueError, match=words):
            mistake()


def test_arrays_on_different_devices_are_not_mixed():
    x = jax.device_put(np.ones(8, np.float32), NamedSharding(mesh, P("x")))
    y = jax.device_put(np.ones(8, np.float32), jax.devices()[1])
    with pytest.raises(ValueError, match="Received incompatible devices"):
        jnp.add(x, y)

    def named(alpha, beta):
        return alpha + beta

    with pytest.raises(ValueError, match=r"argument alpha of named and argument beta of named"):
        jax.jit(named)(x, y)
    other = NamedSharding(mesh, P("y"))
    for value in (x, y):
        with pytest.raises(ValueError, match="Sharding passed to jit does not match"):
            jax.jit(named, in_shardings=other)(value, np.ones(8, np.float32))
    constrained = jax.jit(lambda v: jax.lax.with_sharding_constraint(v, other))
    assert constrained(x).sharding == other
    with pytest.raises(ValueError, match="Received incompatible devices"):
        constrained(y)


backward = jax.sharding.Mesh(line.devices[::-1], ("d",), axis_types=(AxisType.Auto,))
forth, back = (jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(m, P("d")))
               for m in (line, backward))


def refused(function):
    """Return the class and first sentence of the error of ``function``."""
    try:
        return function()
    except ValueError as error:
        return str(error).split("C1: ")[-1].split(".")[0]


def test_the_same_devices_in_another_order_are_refused_or_moved_to_as_in_jax(jax_oracle):
    agree(jax_oracle, """[refused(f) for f in (
        lambda: forth + back,
        lambda: forth + jax.device_put(1., NamedSharding(backward, P())),
        lambda: jnp.concatenate([forth, back]),
        lambda: jax.jit(lambda x, y: (x, y * 2))(forth, back),
        lambda: jax.jit(lambda x: x * 2, out_shardings=back.sharding)(forth),
        lambda: jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, back.sharding))(forth),
        lambda: jax.jit(lambda x: jax.device_put(x * 2, back.sharding))(forth),
        lambda: jax.shard_map(jnp.sin, mesh=backward, in_specs=P("d"), out_specs=P("d"))(forth),
        lambda: jax.jit(lambda x: jax.lax.with_sharding_constraint(
            jax.lax.with_sharding_constraint(x * 2, back.sharding) + 1, forth.sharding))(1.),
        lambda: jax.grad(lambda x: (x * back).sum())(forth),
        lambda: jax.jit(lambda x: x * 2, in_shardings=back.sharding)(forth),
        lambda: [p.device.id for p in jax.jit(
            lambda x: x * 2, in_shardings=back.sharding)(forth).addressable_shards],
        lambda: jax.jit(lambda x: x + back)(forth),
        lambda: jax.device_put(forth, back.sharding))]""")


def test_in_shardings_move_what_they_divide_alike_among_other_devices(jax_oracle):
    agree(jax_oracle, """[refused(lambda: [(o, repr(o.sharding)) for o in [
        jax.jit(lambda x: x * 2, in_shardings=wanted)(x)]]) for x in (
            jax.device_put(np.ones(8), jax.devices()[1]), forth, back,
            jax.device_put(np.ones(8), NamedSharding(line, P())))
        for wanted in (NamedSharding(line, P()), forth.sharding, back.sharding,
                       SingleDeviceSharding(jax.devices()[2]))]""")


@pytest.mark.parametrize("donated", [(), (0,)], ids=["kept", "donated"])
def test_each_call_moves_what_comes_in_another_order(donated):
    moved = jax.jit(lambda x: x * 2, in_shardings=back.sharding, donate_argnums=donated)
    for given in (forth, forth, back, forth, back, forth):
        out = moved(given + 0)
        assert out.sharding.is_equivalent_to(back.sharding, 1)
        np.testing.assert_array_equal(out, np.arange(8) * 2)


rows = jax.device_put(np.arange(32, dtype=np.float32).reshape(8, 4), NamedSharding(line, P("d")))


def test_results_of_arrays_on_two_meshes_have_their_values_and_lie_as_in_jax(jax_oracle):
    agree(jax_oracle, """[[(np.asarray(o), [(d.id, str(part)) for d, part in
        o.sharding.devices_indices_map(o.shape).items()]) for o in jax.jit(
        lambda x, y: (x * 2, y + 1, x + y, y.T))(x, y)]
        for x, y in [(rows, a), (a, rows), (rows, place(rows, None, "y")),
                     (place(rows, "y"), rows)]]""")


def test_a_sharding_that_the_mesh_cannot_express_keeps_the_order_of_its_devices():
    # XLA may choose one along axes that only another mesh of the same devices has.
    for spec in (P(None, "y"), P("y"), P("y", None), P(("y", "x"))):
        hlo = NamedSharding(mesh, spec)._to_xla_hlo_sharding(2)
        found = named_from_xla(hlo, [line], 2)
        assert found._device_assignment == line._flat
        assert found._to_xla_hlo_sharding(2) == hlo


@pytest.mark.parametrize("target", [
    NamedSharding(mesh, P()), NamedSharding(mesh, P("x", "y")), NamedSharding(line, P()),
    NamedSharding(line, P("d")), NamedSharding(backward, P("d")), jax.devices()[0],
    jax.devices()[1], NamedSharding(jax.sharding.Mesh(jax.devices()[1:2], ("o",)), P())],
    ids=lambda target: str(getattr(target, "spec", target)))
@pytest.mark.parametrize("source", [
    NamedSharding(mesh, P()), NamedSharding(mesh, P("x", "y")), NamedSharding(line, P("d")),
    jax.devices()[0], jax.devices()[1], None],
    ids=lambda source: str(getattr(source, "spec", source)))
def test_a_donated_array_leaves_its_value_where_it_is_put(source, target):
    values = np.arange(32, dtype=np.float32).reshape(8, 4)
    given = jax.device_put(values, source)
    given = given if source is None else given + 0
    np.testing.assert_array_equal(jax.device_put(given, target, donate=True), values)


@pytest.mark.parametrize("shape", [(), (3,), (8, 4), (2, 8, 4)], ids=str)
def test_an_array_like_one_on_each_device_is_on_each_device_whatever_its_rank(shape):
    whole = place(np.ones((8, 4), np.float32), None, None)
    for made in (jnp.zeros_like(whole, shape=shape), jnp.full_like(whole, 2, shape=shape),
                 jax.lax.full_like(whole, 2, shape=shape)):
        assert made.shape == shape and made.committed
        assert made.sharding.is_equivalent_to(NamedSharding(mesh, P()), len(shape))


def test_arrays_are_made_of_parts(jax_oracle):
    agree(jax_oracle, """(lambda s, v: [(m, repr(m.sharding), m.committed) for m in (
        jax.make_array_from_callback((8, 4), s, lambda i: v[i]),
        jax.make_array_from_single_device_arrays((8, 4), s, [p.data for p in a.addressable_shards]),
        jax.make_array_from_process_local_data(s, v))] + [len(a.global_shards)])(
        NamedSharding(mesh, P("x", "y")), np.arange(32., dtype=np.float32).reshape(8, 4))""")
    sharding = NamedSharding(jax.make_mesh((8,), ("d",)), P("d"))
    with pytest.raises(ValueError, match="shape"):
        jax.make_array_from_callback((8,), sharding, lambda i: np.ones(3, np.float32))


def test_a_mesh_in_force_gives_specs_their_meaning():
    with jax.set_mesh(mesh):
        x = jax.device_put(np.arange(8.0, dtype=np.float32), P("x"))
        assert x.sharding == NamedSharding(mesh, P("x"))
        y = jax.jit(lambda x: x + 1, out_shardings=P("y"))(x)
        assert y.sharding == NamedSharding(mesh, P("y"))
        assert jax.sharding.get_mesh() == mesh
    assert jax.sharding.get_mesh().empty


def test_a_mesh_of_no_device_is_empty():
    for shape in ((0,), (0, 2), (2, 0)):
        none = Mesh(np.empty(shape, dtype=object), tuple("ab"[:len(shape)]))
        assert none.empty and none.size == 0 and none.axis_sizes == shape
    assert jax.sharding.AbstractMesh((0,), ("a",)).empty
    assert not mesh.empty and not mesh.abstract_mesh.empty


def test_donation_across_devices_deletes_the_argument():
    x = jax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("x")))
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    y = step(x)
    assert x.is_deleted() and y.sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2)
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        step(x)


def test_keys_lie_on_devices_too():
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), NamedSharding(mesh, P("x")))
    assert keys.sharding == NamedSharding(mesh, P("x"))
    drawn = jax.vmap(jax.random.normal)(keys)
    alone = jax.vmap(jax.random.normal)(jax.random.split(jax.random.key(0), 8))
    np.testing.assert_array_equal(np.asarray(drawn), np.asarray(alone))


def test_a_mesh_of_known_devices_is_another_than_one_of_names(jax_oracle):
    def program():
        again = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
        of_names = jax.sharding.AbstractMesh((4, 2), ("x", "y"))
        return [mesh.abstract_mesh == other for other in (again.abstract_mesh, of_names)]

    same(jax_oracle, program)


def test_shardings_are_pickled():
    for value in (NamedSharding(mesh, P("x", ("y",))), SingleDeviceSharding(jax.devices()[2]),
                  P("x", None), P(unreduced={"y"}), mesh.abstract_mesh, jax.P):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(value, protocol)) == value
        assert copy.copy(value) == copy.deepcopy(value) == value


def test_constants_of_inner_functions_are_spread_too():
    table = np.arange(32.0, dtype=np.float32).reshape(8, 4)
    inner = jax.jit(lambda x: x + table)
    x = jax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("x", "y")))
    np.testing.assert_array_equal(np.asarray(jax.jit(lambda x: inner(x) * 2)(x)), (1 + table) * 2)


def test_an_abstract_mesh_stands_for_the_mesh_of_the_value_or_in_force(jax_oracle):
    def program():
        mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
        kind = jax.NamedSharding(mesh.abstract_mesh, jax.P("x", "y"))
        value = jax.device_put(jnp.ones((4, 2)), jax.NamedSharding(mesh, jax.P("y")))
        outs = [jax.lax.with_sharding_constraint(value, kind)]
        with jax.set_mesh(mesh):
            outs += [jax.lax.with_sharding_constraint(value, kind),
                     jax.jit(lambda x: x + 1, out_shardings=kind)(value)]
        return [str(x.sharding) for x in outs], outs

    same(jax_oracle, program)
    same_error(
        jax_oracle, "jax.lax.with_sharding_constraint(jnp.ones(4), jax.NamedSharding("
        "jax.sharding.AbstractMesh((4,), ('x',)), jax.P('x')))",
        "The sharding on the input must be a")


def where(x):
    """Return where ``x`` lies, and whether it must stay there."""
    sharding = x.sharding
    if isinstance(sharding, jax.NamedSharding):
        return str(sharding.spec), sharding.memory_kind, x.committed
    return sorted(d.id for d in sharding.device_set), sharding.memory_kind, x.committed


def test_an_array_made_like_another_is_sharded_like_it(jax_oracle):
    def program():
        mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
        plain = jnp.ones((4, 4))
        found = []
        for place in (jax.NamedSharding(mesh, jax.P("x", "y")), jax.NamedSharding(mesh, jax.P()),
                      jax.devices()[1], None):
            x = plain if place is None else jax.device_put(plain, place)
            found += [where(y) for y in (
                jnp.zeros_like(x), jnp.ones_like(x), jnp.full_like(x, 2), jnp.empty_like(x),
                jax.lax.full_like(x, 1), jnp.zeros_like(x, dtype="int32"),
                jnp.zeros_like(x, shape=(4, 4)), jnp.zeros_like(x, shape=(8,)),
                jax.lax.full_like(x, 1, shape=(4, 8)), jnp.full_like(x, jnp.ones(4)),
                jnp.zeros_like(x, device=jax.devices()[3]), jnp.zeros_like(x.T),
                jax.tree.map(jnp.zeros_like, [x])[0],
                jax.lax.full((4, 2), 1., sharding=x.sharding))]
        return found

    same(jax_oracle, program)


def test_what_is_made_while_a_mesh_is_in_force_lies_on_it(jax_oracle):
    def program():
        found = []
        for kind in jax.sharding.AxisType.Auto, jax.sharding.AxisType.Explicit:
            mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind,) * 2)
            with jax.set_mesh(mesh):
                found += [where(x) for x in (
                    jnp.zeros((4, 4)), jnp.ones(3), jnp.full(3, 2.), jnp.empty(3), jnp.arange(3),
                    jnp.linspace(0, 1, 3), jnp.eye(3), jnp.tri(3), jnp.array([1, 2]), jnp.array(3.),
                    jnp.array(np.ones(3)), jnp.asarray(np.ones(3)), jnp.asarray(3),
                    jnp.float32(1), jnp.zeros_like(np.ones(3)), jnp.array([jnp.float32(1), 2]),
                    jnp.zeros(3, device=jax.devices()[1]), jax.device_put(np.ones(2)),
                    jax.device_put(1.))]
        return found

    same(jax_oracle, program)


def test_a_compiled_program_takes_what_lies_where_it_was_compiled_for(jax_oracle):
    def program():
        mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
        x, y = (jax.device_put(jnp.ones(8), jax.NamedSharding(mesh, jax.P(n))) for n in "xy")
        z = jax.device_put(jnp.ones(8), jax.devices()[3])
        step = jax.jit(lambda a, b: a + b)
        found = []
        for compiled in (
                step.lower(x, x).compile(), step.lower(jnp.ones(8), jnp.ones(8)).compile(),
                jax.jit(lambda a, b: a + b, in_shardings=jax.NamedSharding(mesh, jax.P("x"))).lower(
                    jnp.ones(8), jnp.ones(8)).compile(),
                jax.jit(lambda a, b: a * 2).lower(x, x).compile()):
            for given in ((x, x), (x, y), (y, y), (z, z), (jnp.ones(8), x),
                          (np.ones(8, "float32"), jnp.ones(8)), (x, z)):
                try:
                    found.append(where(compiled(*given)))
                except ValueError as error:
                    words = str(error).splitlines()
                    found.append([words[0].split("s: ")[-1], sum("Passed" in w for w in words)])
        return found

    same(jax_oracle, program)


def test_jit_shards_values_whose_type_names_no_explicit_mesh(jax_oracle):
    def program():
        mesh = jax.make_mesh((4, 2), ("x", "y"))
        s, t = (jax.NamedSharding(mesh, jax.P(n)) for n in "xy")
        return [where(f(np.ones(8, "float32"))) + (str(f(jnp.ones(8)).sharding.spec),) for f in (
            jax.jit(lambda a: a * 2, in_shardings=s), jax.jit(lambda a: a * 2, out_shardings=s),
            jax.jit(lambda a: a * 2, in_shardings=s, out_shardings=t))]

    same(jax_oracle, program)


def test_what_is_made_at_a_place_is_not_weak(jax_oracle):
    def program():
        there = NamedSharding(mesh, P("x"))
        weak = jax.jit(lambda: 3)()
        made = [jnp.full((8,), 3, device=there), jnp.full((), 3.0, device=jax.devices()[1]),
                jnp.full((8,), weak, device=there), lax.full((8,), 3, sharding=there),
                lax.full((8,), weak, sharding=NamedSharding(line, P())), lax.full((8,), 3),
                jnp.full((8,), 3), jnp.full_like(weak, 3, device=jax.devices()[1])]
        return made, [x.committed for x in made]

    same(jax_oracle, program)


def test_a_sharding_on_another_mesh(jax_oracle):
    def program():
        there = NamedSharding(mesh, P("x"))
        return [repr(there.update(mesh=line, spec=P("d"))), repr(there.update(spec=P("y"))),
                said(lambda: there.update(mesh=line))]

    same(jax_oracle, program)


def test_process_local_data_go_to_devices_and_shardings(jax_oracle):
    def program():
        here = np.arange(8.0, dtype=np.float32)
        made = jax.make_array_from_process_local_data(
            [jax.devices()[1], NamedSharding(line, P("d"))], [here, here])
        return made, [sorted(d.id for d in x.sharding.device_set) for x in made], [
            said(lambda: jax.make_array_from_process_local_data("x", here))[0],
            said(lambda: jax.make_array_from_process_local_data(P("x"), here))[0]]

    same(jax_oracle, program)


def test_shardings_of_too_high_a_rank_and_empty_meshes_are_refused():
    wide = NamedSharding(mesh, P("x", "y"))
    with pytest.raises(ValueError, match="only valid for values of rank at least 2, but is_equiv"):
        wide.is_equivalent_to(NamedSharding(mesh, P("x")), 1)
    assert NamedSharding(mesh, P("x", None)).is_equivalent_to(NamedSharding(mesh, P("x")), 1)
    with pytest.raises(ValueError, match=r"one device along each axis, got the sizes .2, "):
        jax.make_mesh((2, 0), ("x", "y"))


def test_of_copies_that_differ_the_first_counts(jax_oracle):
    def program():
        def on_each(sharding, size):
            return jax.make_array_from_single_device_arrays((size,), sharding, [
                jax.device_put(jnp.ones(1) * d.id, d) for d in jax.devices()])

        made = [on_each(NamedSharding(mesh, P("x")), 4), on_each(NamedSharding(mesh, P("y")), 2),
                jax.shard_map(lambda x: x, mesh=mesh, in_specs=P(("x", "y")), out_specs=P("x"),
                              check_vma=False)(jnp.arange(8.0))]
        return [[np.asarray(x), x.tolist(), float(x[1]), jax.device_get(x), x + 1,
                 jax.device_put(x, jax.devices()[3])] for x in made]

    same(jax_oracle, program)


def test_elements_repeated_by_one_number_stay_where_they_are(jax_oracle):
    def program():
        explicit = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)

        def laid(shape, *spec):
            values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            return jax.device_put(values, NamedSharding(explicit, P(*spec)))

        v, rows, both = laid((8,), "x"), laid((8, 4), "x"), laid((8, 4), "x", "y")
        found = []
        for repeated in (lambda: jnp.repeat(v, 2), lambda: v.repeat(3), lambda: jnp.repeat(rows, 2),
                         lambda: jax.jit(lambda a: jnp.repeat(a, 2, axis=0))(rows),
                         lambda: jnp.repeat(both, np.int32(2), axis=1), lambda: jnp.repeat(both, 2),
                         lambda: jnp.repeat(rows, np.array([2]), axis=0),
                         lambda: jnp.repeat(rows, 2, axis=0, total_repeat_length=16)):
            try:
                found.append([str(jax.typeof(repeated())), np.asarray(repeated())])
            except ValueError:
                found.append("refused")
        return found

    same(jax_oracle, program)


def test_parts_of_one_process_are_the_whole_of_traced_values(jax_oracle):
    def program():
        def there(v):
            return multihost_utils.host_local_array_to_global_array(v, mesh, P("x"))

        def back(v):
            return multihost_utils.global_array_to_host_local_array(v, mesh, P("y"))

        x = np.arange(8, dtype=np.float32)
        return [jax.jit(there)(x), jax.jit(lambda v: back(there(v)) * 2)(x),
                jax.grad(lambda v: (there(v) ** 2).sum())(x), jax.vmap(there)(np.ones((3, 8)))]

    same(jax_oracle, program)


def test_eval_shape_tells_the_shardings_that_were_asked_for(jax_oracle):
    def program():
        there = NamedSharding(mesh, P("x"))
        struct = jax.ShapeDtypeStruct((8, 4), np.float32)
        some = jax.jit(lambda x: (x, x + 1), out_shardings=(there, None))
        one = jax.jit(lambda x: x, out_shardings=SingleDeviceSharding(jax.devices()[2]))
        return repr([jax.eval_shape(some, struct), jax.eval_shape(one, struct),
                     jax.eval_shape(jax.jit(lambda x: x), struct)])

    same(jax_oracle, program)


STAGES = """(lambda D, x, loss: {body})(
    jax.devices(), jnp.arange(8., dtype='float32'), lambda ws, v: [
    v := jnp.tanh(jax.device_put(v, jax.devices()[k]) @ w) for k, w in enumerate(ws)][-1].sum())"""


@pytest.mark.parametrize("body", [
    "(lambda g: (g, [d.id for d in g.devices()], g.committed))(jax.grad("
    "lambda v: (jax.device_put(v, D[1]) ** 2).sum())(jax.device_put(x, D[0])))",
    "(lambda g: (g, [d.id for d in g.devices()], g.committed))(jax.grad("
    "lambda v: jnp.sin(jax.device_put(jnp.sin(jax.device_put(v, D[1])), D[0])).sum())(x))",
    "(lambda g: (g, [d.id for d in g.devices()], g.committed))(jax.vjp("
    "lambda v: jax.device_put(jnp.cos(v), D[3]), x)[1](jax.device_put(x, D[3]))[0])",
    "(lambda g: (g, [d.id for v in g for d in v.devices()]))(jax.grad(loss)([jax.device_put("
    "jnp.eye(8) * (k + 1) / 3, D[k]) for k in range(3)], x[None]))",
    "(lambda g: (g[0], g[1], [d.id for d in g[1].devices()]))(jax.value_and_grad(loss, 1)(["
    "jax.device_put(jnp.eye(8) * (k + 1) / 3, D[k]) for k in range(3)], x[None]))",
], ids=["there", "there and back", "vjp", "weights of stages", "input of stages"])
def test_a_cotangent_goes_back_to_where_its_value_was(jax_oracle, body):
    agree(jax_oracle, STAGES.format(body=body))


def test_parts_lie_in_the_memory_of_the_whole(jax_oracle):
    agree(jax_oracle, """[(part, part.sharding.memory_kind) for kind in (
        "unpinned_host", "pinned_host", "device") for whole in [jax.device_put(
            jnp.arange(8.), NamedSharding(mesh, P("x"), memory_kind=kind))]
        for part in [whole.addressable_shards[1].data, whole.addressable_data(0)]]""")


JITS_OF_JITS = """(lambda x, put, f, g, tried: [tried(call, given) for given in (
        x, put(None, "d"), put(), jax.device_put(x, jax.devices()[1])) for call in (
    f, jax.grad(lambda a: f(a).sum()), lambda a: jax.jvp(f, (a,), (a,)), lambda a: jax.vjp(f, a)[0],
    lambda a: jax.vmap(f)(a[None]), jax.checkpoint(f), jax.jit(lambda a: f(a) + 0))]
    + [tried(call, x) for call in (g, jax.jit(g), jax.jit(jax.grad(lambda a: g(a).sum())),
       jax.vmap(lambda a: g(a)), lambda a: jax.eval_shape(g, a) and 1)])(
    jnp.arange(128.).reshape(16, 8),
    lambda *s: jax.device_put(jnp.arange(128.).reshape(16, 8), NamedSharding(line, P(*s))),
    jax.jit(lambda x: x * 2, in_shardings=NamedSharding(line, P(None, "d"))),
    jax.jit(lambda x: x.reshape(4, -1), out_shardings=NamedSharding(line, P("d"))), tried)"""


def tried(call, given):
    """Return the value of ``call(given)``, or how its refusal begins."""
    try:
        return call(given)
    except ValueError as error:
        words = str(error)
        return next((known for known in (
            "Sharding passed to jit does not match", "incompatible devices", "evenly divide")
            if known in words), words)


def test_what_jit_is_told_of_places_holds_where_its_call_is_a_part_of_others(jax_oracle):
    agree(jax_oracle, JITS_OF_JITS)


def test_an_argument_whose_results_lie_elsewhere_is_kept(jax_oracle):
    def program():
        line = jax.make_mesh((8,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
        s, whole = (jax.NamedSharding(line, jax.P(*n)) for n in (("d",), (None,)))
        f = jax.jit(lambda x: jnp.cumsum(x, 0), out_shardings=whole, donate_argnums=0)
        found = []
        for call in (f, lambda x: jax.grad(lambda x: f(x).sum())(x), lambda x: jax.vjp(f, x),
                     lambda x: jax.jvp(f, (x,), (x * 1,)), lambda x: jax.linearize(f, x)):
            x = jax.device_put(jnp.ones((8, 4)), s)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call(x)
            found.append(x.is_deleted())
        return found

    same(jax_oracle, program)


def placed_on(call, *given):
    """Return the results of ``call(*given)``, their devices, and whether they are committed."""
    try:
        leaves = jax.tree.leaves(call(*given))
    except ValueError as error:
        return "incompatible devices" in str(error) or "does not match" in str(error)
    return [(x, [d.id for d in sorted(x.devices(), key=lambda d: d.id)], x.committed)
            for x in leaves]


PLACED = {
    "in_shardings": "jax.jit(lambda x: x * 2, in_shardings=two)",
    "out_shardings": "jax.jit(lambda x: x * 2, out_shardings=two)",
    "device": "jax.jit(lambda x: x * 2, device=jax.devices()[2])",
    "constraint": "lambda x: jax.lax.with_sharding_constraint(x, two) * 2",
    "device_put": "lambda x: jax.device_put(x, two) * 2",
    "device_put to a device": "lambda x: jax.device_put(x, jax.devices()[2]) * 2",
    "zeros": "lambda x: x + jnp.zeros(8, device=two)",
    "arange": "lambda x: x + jnp.arange(8., device=two)",
    "asarray": "lambda x: x + jnp.asarray([1.] * 8, device=jax.devices()[2])",
    "full_like": "lambda x: x * jnp.full_like(x, 2., device=two)",
    "eye": "lambda x: jnp.eye(8, device=two) @ x",
    "eye on a device": "lambda x: jnp.eye(8, device=jax.devices()[2]) @ x",
}


@pytest.mark.filterwarnings("ignore:backend and device argument:DeprecationWarning")
@pytest.mark.parametrize("body", PLACED.values(), ids=PLACED)
def test_a_program_runs_where_a_part_of_it_is_to_be(jax_oracle, body):
    agree(jax_oracle, f"""(lambda f, three, x: [placed_on(call, given) for given in (
        x, jax.device_put(x, jax.devices()[3]),
        jax.device_put(x, NamedSharding(line, P("d")))) for call in (
        jax.jit(f), jax.jit(lambda x: three(f(x))), jax.jit(jax.grad(lambda x: f(x).sum())),
        lambda x: jax.lax.cond(True, f, lambda x: x, x),
        lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=2),
        jax.jit(lambda x: x + f(jnp.ones(8))),
        lambda x: jax.jit(f).lower(x).compile()(x), jax.jit(lambda x: (f(x), x + 1)[1]))])(
        {body.replace("two", "jax.sharding.SingleDeviceSharding(jax.devices()[2])")},
        jax.jit(lambda x: x * 3,
                out_shardings=jax.sharding.SingleDeviceSharding(jax.devices()[3])),
        jnp.arange(8.))""")


def test_calls_that_name_places_are_written_as_jaxs(jax_oracle):
    def program():
        line = jax.make_mesh((8,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
        s, whole = (jax.NamedSharding(line, jax.P(*n)) for n in (("d",), ()))
        x, lax = jnp.arange(8.0), jax.lax
        wave = lambda x: jnp.sin(x) * 2
        two = lambda x, y: (jnp.sin(x) * 2, y, jnp.cos(y))
        found = []
        for f, g in [
            (jax.jit(wave, in_shardings=s, out_shardings=whole),
             jax.jit(two, in_shardings=(s, None))),
            (jax.jit(wave, out_shardings=s),
             jax.jit(two, in_shardings=s, out_shardings=(None, whole, s), donate_argnums=0)),
        ]:
            for call in (
                    f, jax.jit(f), jax.grad(lambda x, f=f: f(x).sum()),
                    lambda x, f=f: jax.vmap(f)(x[None]),
                    lambda x, f=f: jax.jvp(f, (x,), (x,)), lambda x, f=f: jax.vjp(f, x)[1](x),
                    lambda x, f=f: jax.linearize(f, x)[1](x),
                    lambda x, f=f: lax.scan(lambda c, _: (f(c), None), x, None, 2)[0],
                    jax.grad(lambda x, f=f: jax.checkpoint(f)(x).sum()),
                    lambda x, g=g: g(x, x + 1), jax.grad(lambda x, g=g: g(x, x + 1)[0].sum()),
                    jax.grad(lambda x, g=g: g(x, x)[1].sum())):
                found.append(str(jax.make_jaxpr(call)(x)))
        along = jax.vmap(jax.vmap(f, 1))
        h = jax.jit(wave, in_shardings=whole, out_shardings=whole, inline=True)
        return [*found, str(jax.make_jaxpr(h)(x)), str(jax.make_jaxpr(along)(jnp.ones((2, 8, 3)))),
                str(jax.make_jaxpr(jax.vmap(h, spmd_axis_name="d"))(jnp.ones((2, 8, 3))))]

    same(jax_oracle, program)


def test_tangents_and_cotangents_that_lie_elsewhere_are_refused_as_arguments_are(jax_oracle):
    def program():
        line = jax.make_mesh((8,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
        s, whole = (jax.NamedSharding(line, jax.P(*n)) for n in (("d",), ()))
        split, repeated = (jax.device_put(jnp.arange(8.0), place) for place in (s, whole))
        f = jax.jit(lambda x: jnp.sin(x) * 2, in_shardings=s, out_shardings=whole)
        found = []
        for t in (split, repeated, jnp.arange(8.0)):
            for call in (lambda t: jax.vjp(f, split)[1](t), lambda t: jax.jvp(f, (split,), (t,)),
                         lambda t: jax.linearize(f, split)[1](t),
                         lambda t: jax.grad(lambda x: (f(x) * t).sum())(split),
                         lambda t: jax.grad(lambda x: (jax.checkpoint(f)(x) * t).sum())(split)):
                try:
                    found.append([(v, str(v.sharding.spec)) for v in jax.tree.leaves(call(t))])
                except ValueError as error:
                    found.append("does not match" in str(error))
        return found

    same(jax_oracle, program, rtol=1e-6)


def test_derivatives_of_a_jit_that_is_told_of_places_are_those_of_jax(jax_oracle):
    def program():
        line = jax.make_mesh((8,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
        found = []
        for spec in (("d",), (None, "d"), ()):
            place = jax.NamedSharding(line, jax.P(*spec))
            x = jax.device_put(jnp.arange(128.0).reshape(16, 8) / 100, place)
            for fun in (lambda x: x.sum(0), lambda x: x.T @ x, lambda x: x[::-1].cumsum(0)):
                for more in ({}, {"out_shardings": jax.NamedSharding(line, jax.P())}):
                    f = jax.jit(fun, in_shardings=place, **more)
                    square = lambda x, f=f: (f(x) ** 2).sum()
                    found.append((
                        jax.grad(square)(x), jax.vjp(f, x)[1](f(x)), jax.jvp(f, (x,), (x,))[1],
                        jax.linearize(f, x)[1](jnp.ones((16, 8))), jax.jacrev(f)(x).sum(),
                        jax.hessian(square)(x).sum(),
                        jax.grad(lambda x, f=f: (jax.checkpoint(f)(x) ** 2).sum())(x),
                        jax.grad(lambda y, f=f: (f(y * 2) ** 2).sum())(x)))
        return found

    same(jax_oracle, program, rtol=1e-5)
