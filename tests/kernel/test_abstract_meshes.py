"""Can programs be typed, lowered and exported for a mesh whose devices are not here, as in JAX?

Read before: ``compile.device_assignment``, ``transform.programs``.
Invariant: expected answers are JAX's, but for the words of refusals.
"""

from __future__ import annotations

import numpy as np
import pytest
from both import same, same_error

import saem as jax
import saem.numpy as jnp
from saem.sharding import AxisType
from saem.sharding import PartitionSpec as P

TYPES = {"Explicit": "(AxisType.Explicit, AxisType.Explicit)",
         "Auto": "(AxisType.Auto, AxisType.Auto)",
         "both": "(AxisType.Explicit, AxisType.Auto)"}


def shapes_inside(mesh, checked):
    """What eval_shape says in shard_map, and what is made like it."""
    seen = []

    def f(x):
        struct = jax.eval_shape(lambda x: x.sum(-1), x)
        again = jax.eval_shape(lambda s: s * 2, struct)
        constant = jax.eval_shape(lambda: jnp.ones(3))
        summed = jax.eval_shape(lambda x: jax.lax.psum(x, "b"), x)
        seen.extend([repr(s) for s in (struct, again, constant, summed)])
        seen.append([struct == jax.ShapeDtypeStruct(struct.shape, struct.dtype),
                     repr(jax.jit(lambda x: x * 2).eval_shape(x)),
                     repr(jax.jit(lambda x: x * 2).trace(x).out_info),
                     repr(jax.make_jaxpr(lambda x: x * 2, return_shape=True)(x)[1])])
        seen.extend([str(jax.typeof(y)) for y in (
            jnp.full_like(struct, 1.), jnp.zeros_like(struct, dtype=int), jnp.ones_like(struct),
            jnp.empty_like(struct), jax.lax.full_like(struct, 2.), jnp.zeros(struct.shape),
            jnp.broadcast_to(jnp.zeros_like(struct), (3, *struct.shape)))])
        return x

    x = jax.device_put(jnp.arange(8.).reshape(4, 2), jax.NamedSharding(mesh, P("b")))
    jax.shard_map(f, mesh=mesh, in_specs=P("b"), out_specs=P("b"), check_vma=checked)(x)
    return seen


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("types", ["Explicit", "Auto"])
def test_eval_shape_inside_shard_map(jax_oracle, types, checked):
    """Structs name the manual axes along which a value varies, so what is made like them does."""
    same(jax_oracle, f"shapes_inside(jax.make_mesh((2, 2), ('b', 'c'), {TYPES[types]}), {checked})",
         within=__name__)


def varying_loop(x):
    """A loop that starts from zeros like the struct of what it adds."""
    struct = jax.eval_shape(lambda x: x.sum(-1), x)
    return jax.lax.fori_loop(0, 3, lambda i, c: c + x.sum(-1) * i, jnp.zeros_like(struct))


def test_loops_that_start_from_a_struct(jax_oracle):
    same(jax_oracle, "jax.shard_map(varying_loop, in_specs=P('b'), out_specs=P('b'), "
                     "mesh=jax.make_mesh((2,), ('b',), (AxisType.Auto,)))"
                     "(jnp.arange(8.).reshape(4, 2))",
         within=__name__)


def shapes_under(mesh):
    x = jax.device_put(jnp.arange(8.), jax.NamedSharding(mesh, P("b")))
    seen = [jax.eval_shape(lambda x: x + 1, x), jax.jit(lambda x: x + 1).trace(x).out_info]
    with jax.set_mesh(mesh):
        seen += [jax.eval_shape(lambda x: x + 1, x), jax.eval_shape(lambda x: x + 1, jnp.arange(8)),
                 jax.jit(lambda x: x + 1).eval_shape(jnp.arange(8)),
                 jax.jit(lambda x: x + 1).trace(jnp.arange(8)).out_info]
    return list(map(repr, seen))


@pytest.mark.parametrize("types", list(TYPES))
def test_eval_shape_under_a_mesh(jax_oracle, types):
    same(jax_oracle, f"shapes_under(jax.make_mesh((2, 2), ('b', 'c'), {TYPES[types]}))",
         within=__name__)


def with_devices_found(mesh):
    """Programs of structs and demands on an abstract mesh get its devices where there are some."""
    on_none = jax.NamedSharding(mesh.abstract_mesh, P("b"))
    struct = jax.ShapeDtypeStruct((8,), np.float32, sharding=on_none)
    x = jax.device_put(np.arange(8, dtype=np.float32), jax.NamedSharding(mesh, P("b")))
    f = jax.jit(lambda x: x * 2)
    with jax.set_mesh(mesh):
        compiled = f.lower(struct).compile()
        found = [compiled.input_shardings, compiled(x).sharding, f.lower(struct).out_info]
    found += [jax.jit(lambda x, y: x + y).lower(struct, x).compile().input_shardings,
              jax.jit(lambda x: x * 2, out_shardings=on_none)(x).sharding]
    return list(map(repr, found))


@pytest.mark.parametrize("types", ["Explicit", "Auto"])
def test_devices_are_those_of_the_mesh_in_force_or_of_an_argument(jax_oracle, types):
    same(jax_oracle, f"with_devices_found(jax.make_mesh((2, 2), ('b', 'c'), {TYPES[types]}))",
         within=__name__)


def summed(x):
    return jax.lax.psum(x, "b")


def exported_for(mesh, abstract):
    """Exported for a mesh without devices, and called on one that has them."""
    struct = jax.ShapeDtypeStruct((8,), np.float32, sharding=jax.NamedSharding(abstract, P("b")))
    x = jax.device_put(np.arange(8, dtype=np.float32), jax.NamedSharding(mesh, P("b")))
    found = []
    total = jax.shard_map(summed, mesh=abstract, in_specs=P("b"), out_specs=P())
    for f in (lambda x: x * 2, total):
        one = jax.export.export(jax.jit(f))(struct)
        several = jax.export.export(jax.jit(f), platforms=("cpu", "tpu"))(struct)
        y = jax.jit(one.call)(x)
        found.append([one.nr_devices, several.nr_devices, several.platforms, y,
                      [str(shard.index) for shard in y.addressable_shards]])
    return found


@pytest.mark.parametrize("abstract", ["mesh.abstract_mesh",
                                      "jax.sharding.AbstractMesh((2, 2), ('b', 'c'), types)"])
@pytest.mark.parametrize("types", ["Explicit", "Auto"])
def test_export(jax_oracle, types, abstract):
    same(jax_oracle, f"[exported_for(mesh, {abstract}) for types in [{TYPES[types]}] "
                     "for mesh in [jax.make_mesh((2, 2), ('b', 'c'), types)]]", within=__name__)


def test_an_exported_program_is_written_and_read():
    mesh = jax.make_mesh((2, 2), ("b", "c"))
    on_none = jax.NamedSharding(mesh.abstract_mesh, P("b"))
    exported = jax.export.export(jax.jit(lambda x: x * 2))(
        jax.ShapeDtypeStruct((8,), np.float32, sharding=on_none))
    read = jax.export.deserialize(exported.serialize())
    x = jax.device_put(np.arange(8, dtype=np.float32), jax.NamedSharding(mesh, P("b")))
    assert read.nr_devices == 4
    np.testing.assert_array_equal(jax.jit(read.call)(x), 2 * np.arange(8))


def exported_with_demands(mesh, pulled):
    """What an exported program says of shardings that were demanded, and what its vjp gives."""
    x = jax.device_put(np.ones((4, 2), np.float32), jax.NamedSharding(mesh, P("b")))
    f = jax.jit(lambda x: jnp.sin(x) * 2, out_shardings=jax.NamedSharding(mesh, P("c")))
    exported = jax.export.export(f)(x)
    taken = jax.export.export(jax.jit(f, in_shardings=jax.NamedSharding(mesh, P("b"))))(
        jax.ShapeDtypeStruct((4, 2), np.float32))
    made = [jax.jit(exported.call)(x),
            *([jax.jit(exported.vjp().call)(x, f(x))[0],
               jax.jit(jax.grad(lambda x: exported.call(x).sum()))(x)] if pulled else []),
            jax.jit(exported.call, in_shardings=jax.NamedSharding(mesh, P("b")))(np.asarray(x))]
    return [str(exported.in_avals), str(exported.out_avals), str(taken.in_avals),
            repr(exported.in_shardings_jax(mesh)), repr(exported.out_shardings_jax(mesh)),
            [(y, [str(shard.index) for shard in y.addressable_shards]) for y in made]]


@pytest.mark.parametrize("types", ["Explicit", "Auto"])
def test_exported_programs_keep_demanded_shardings(jax_oracle, types):
    """JAX refuses the vjp along Explicit axes: it takes the result for sharded as the argument."""
    same(jax_oracle, f"exported_with_demands(jax.make_mesh((2, 2), ('b', 'c'), {TYPES[types]}), "
                     f"{types == 'Auto'})", within=__name__)


@pytest.mark.parametrize(("program", "sentence"), [
    ("jax.export.export(f)(x).in_shardings_jax(jax.make_mesh((2, 2), ('u', 'v')))",
     "does not match the mesh used for export"),
    ("jax.export.export(f)(x).call(np.ones(8, 'float32'))",
     "Function f was exported for 4 devices and is called in a context with 1 devices, which is "
     "not allowed."),
])
def test_exported_programs_refuse_other_meshes(jax_oracle, program, sentence):
    same_error(jax_oracle, f"""
def f(x): return x * 2
f = jax.jit(f)
mesh = jax.make_mesh((2, 2), ('b', 'c'), (jax.sharding.AxisType.Auto,) * 2)
x = jax.device_put(np.ones(8, 'float32'), jax.NamedSharding(mesh, jax.P('b')))
result = {program}""", sentence)


def compiled_for(mesh):
    struct = jax.ShapeDtypeStruct(
        (8,), np.float32, sharding=jax.NamedSharding(mesh.abstract_mesh, P("b")))
    lowered = jax.jit(lambda x: x * 2).trace(struct).lower(lowering_platforms=("cpu",))
    compiled = lowered.compile(device_assignment=tuple(mesh.devices.flat))
    x = jax.device_put(np.arange(8, dtype=np.float32), jax.NamedSharding(mesh, P("b")))
    return [compiled(x), repr(compiled.input_shardings), lowered.cost_analysis()["flops"] > 0,
            'sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>' in lowered.as_text(),
            "num_partitions = 4" in lowered.as_text()]


@pytest.mark.parametrize("types", ["Explicit", "Auto"])
def test_a_lowered_program_gets_its_devices_when_it_is_compiled(jax_oracle, types):
    same(jax_oracle, f"compiled_for(jax.make_mesh((2, 2), ('b', 'c'), {TYPES[types]}))",
         within=__name__)


@pytest.mark.parametrize("types", ["Explicit", "Auto"])
def test_without_devices_there_is_text_alone(types):
    mesh = jax.make_mesh((2, 2), ("b", "c"), (getattr(AxisType, types),) * 2)
    on_none = jax.NamedSharding(mesh.abstract_mesh, P("b"))
    struct = jax.ShapeDtypeStruct((8,), np.float32, sharding=on_none)
    f = jax.jit(lambda x: x * 2)
    for run in (lambda: f.lower(struct), lambda: jax.jit(f, in_shardings=on_none)(np.ones(8)),
                lambda: jax.jit(f, out_shardings=on_none)(np.ones(8))):
        with pytest.raises(ValueError, match=r"which has no devices: put it under jax\.set_mesh"):
            run()
    lowered = f.trace(struct).lower(lowering_platforms=("cpu",))
    with pytest.raises(RuntimeError, match="device_assignment cannot be `None` during compilation"):
        lowered.compile()
    with pytest.raises(ValueError, match="places for 4 devices, and got 2"):
        lowered.compile(device_assignment=tuple(jax.devices()[:2]))
    with pytest.raises(ValueError, match=r"device_assignment passed to .* must match"):
        f.lower(np.ones(8)).compile(device_assignment=tuple(jax.devices()[1:2]))


def said_of_manual_axes(mesh):
    seen = []

    def f(x):
        manual = jax.typeof(x).manual_axis_type
        seen.append([sorted(manual.invarying(jax.sharding.get_abstract_mesh())),
                     sorted(manual.vur), manual.empty])
        return x

    jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("b"), out_specs=P("b")))(jnp.arange(4.))
    made = jax.sharding.ManualAxisType(varying={"a"}, unreduced={"b"}, reduced={"c"})
    return [*seen, sorted(made.vur), made.empty, repr(made.to_ct_mat()),
            repr(made.update(varying={"z"})), repr(made.update(unreduced=set())),
            jax.sharding.ManualAxisType().empty]


def test_manual_axes_are_asked(jax_oracle):
    same(jax_oracle, f"said_of_manual_axes(jax.make_mesh((2, 2), ('b', 'c'), {TYPES['Auto']}))",
         within=__name__)


@pytest.mark.parametrize("name", ["device_ids", "is_multi_process", "local_devices", "local_mesh"])
def test_a_mesh_without_devices_says_so(jax_oracle, name):
    same_error(jax_oracle, f"jax.sharding.AbstractMesh((2,), ('b',)).{name}",
               f"AbstractMesh does not implement {name}")
