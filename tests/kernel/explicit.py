"""What do Saem and JAX say of one program over a mesh with Explicit axes?

A program is an expression; both sides evaluate it with the mesh in force and give its value as
plain text and numbers: types, specs of shardings, values; or the class and first words of an error.

Read before: ``both.py``.  Read after: ``test_explicit.py``, ``test_explicit_transforms.py``.
Invariant: every expected answer comes from JAX.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from both import ours
from oracle import Oracle

SETUP = '''
import re
P, NS = jax.sharding.PartitionSpec, jax.sharding.NamedSharding
AT = jax.sharding.AxisType
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AT.Explicit,) * 2)

def A(shape, *spec):
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 4 + 1
    return jax.device_put(values, NS(mesh, P(*spec)))

x, xr, xc, v = A((8, 4), "x", "y"), A((8, 4), "x"), A((8, 4), None, "y"), A((8,), "x")
rep = A((8, 4))
Z = lambda shape, *spec: jnp.zeros(shape, out_sharding=P(*spec))
D = lambda shape, *spec, dtype=np.float32, **sums: jax.ShapeDtypeStruct(
    shape, dtype, sharding=NS(mesh, P(*spec, **sums)))
SM = lambda f, ins, outs, **rest: jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **rest)
t = lambda *xs: [str(jax.typeof(x)) for x in jax.tree.leaves(xs)]
T = lambda f, *xs: [str(a) for a in jax.make_jaxpr(f)(*xs).out_avals]
J = lambda f, *xs: str(jax.make_jaxpr(f)(*xs))
S = lambda *xs: [repr(x.sharding.spec) for x in jax.tree.leaves(xs)]
V = lambda *xs: [[str(jax.typeof(x)), repr(x.sharding.spec), np.asarray(x)]
                 for x in jax.tree.leaves(xs)]

def over(kinds, f):
    """Return what ``f`` gives for a mesh with axes of other types, in force."""
    other = jax.make_mesh((4, 2), ("x", "y"), axis_types=kinds)
    with jax.set_mesh(other):
        return f(other)

def plain(value):
    """Leave out the memory of a sharding, which only one side prints."""
    if isinstance(value, str):
        return value.replace(", memory_kind=device", "")
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value

def answer(program):
    with jax.set_mesh(mesh):
        try:
            return plain(eval(program, globals()))
        except Exception as error:
            kind = next(c.__name__ for c in type(error).__mro__
                        if c.__module__ == "builtins" or c.__name__ == "ShardingTypeError")
            words = re.sub(r"^[-.A-Za-z0-9_]+: ", "", str(error).splitlines()[0])
            return ["refused", kind, re.split(r"\\. |:", words)[0][:45].rstrip(".")]
'''


def agree(oracle: Oracle, programs: Sequence[str]) -> None:
    """Assert that both answer every one of ``programs`` alike."""
    question = f"{SETUP}\nresult = [answer(p) for p in {list(programs)!r}]"
    answers = zip(ours(question), oracle.run(question).value)
    for program, (mine, theirs) in zip(programs, answers, strict=True):
        check(program, mine, theirs)


def check(program: str, mine: Any, theirs: Any) -> None:
    if isinstance(theirs, (list, tuple)):
        assert len(mine) == len(theirs), (program, mine, theirs)
        for m, t in zip(mine, theirs):
            check(program, m, t)
    elif hasattr(theirs, "dtype"):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape, program
        difference = abs(mine.astype("float64") - theirs.astype("float64"))
        assert (difference <= 1e-5 * (1 + abs(theirs.astype("float64")))).all(), program
    else:
        assert mine == theirs, f"{program}\nSaem: {mine}\nJAX:  {theirs}"
