"""How is all that follows a function in its gradient one program, with the bits of the rules?

A *path* is what a function did: its inputs, and the operations taken, with their operands and
results.  From the values along it one program, the *pullback*, computes the gradients of the
inputs.  It is what the rules record of the same operations when each result is given.

XLA would fuse its operations and round them otherwise than one by one.  So it is compiled with
``_jaxlib.SEPARATE_OPTIONS``, only from operations that are rounded alone as among others
(``Primitive.separate_code``), and is compared with the rules before it is used: on the numbers at
hand, and on others, since a rounding that differs may not show on few or special numbers.

Read before: ``transform.linearize``.  Read after: ``transform.known_paths``.
Invariant: a pullback that is kept gives the types and bits of the rules
(tests/kernel/test_known_paths.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem._jaxlib import ArrayImpl
from saem.compile.device_assignment import placement
from saem.compile.dispatch import build, make_fast, put
from saem.compile.faults import is_faulty
from saem.compile.quick import generators_agree
from saem.core import config, dtypes, errors, tree
from saem.core.avals import ShapedArray, aval_of
from saem.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, eval_jaxpr
from saem.core.kept import Kept
from saem.core.primitive import Primitive
from saem.core.trace import Trace, bind, current, state
from saem.ops.arithmetic import Div, Mul
from saem.ops.linear import ones_of
from saem.placement.devices import devices
from saem.transform.jvp import JVPTracer
from saem.transform.linearize import linearize_flat
from saem.transform.staging import dead_code_free, trace_flat

# On how many further numbers a pullback is compared.
DRAWS = 4

_READS_NUMBERS = (errors.ConcretizationTypeError, errors.TracerArrayConversionError,
                  errors.TracerIntegerConversionError)

# An operation on a path, with its operands and its result.
Taken = tuple[Primitive, tuple, Any]


class NotSeparate(Exception):
    """A program that would not give the bits of its operations: it goes by the rules."""


class Given(Trace):
    """Hands operations on, but for those of which the result is known."""

    def __init__(self, parent: Trace):
        self.parent = parent
        self.stack = parent.stack
        self.results: dict[tuple, Any] = {}

    def process(self, prim: Primitive, args: tuple) -> Any:
        known = self.results.get((prim, *map(id, args)))
        if known is not None:
            return known
        with current(self.parent):
            return self.parent.process(prim, args)


class Pullback:
    """The program of the values along a path to the gradients of its inputs."""

    __slots__ = ("nonzero", "program", "sources")

    def __init__(self, program: Any, sources: list[tuple[int, int]], nonzero: list[bool]):
        self.program = program
        # Which values it takes: the number of the step, and of its operand (-1: its result).
        self.sources = sources
        self.nonzero = nonzero  # whether the gradient of each input is not zero

    def values(self, inputs: Sequence[Any], taken: Sequence[Taken]) -> list[Any] | None:
        """Return what the program takes, None if one is not on a single CPU."""
        found = []
        for step, place in self.sources:
            if step < 0:
                x = inputs[-1 - step]
            else:
                _, args, out = taken[step]
                x = out if place < 0 else args[place]
            if type(x) is JVPTracer:
                x = x.primal
            if type(x) is ArrayImpl and getattr(x._sharding, "_device", None) not in cpus():
                return None
            found.append(x)
        return found

    def gradients(self, values: Sequence[Any]) -> list[Any]:
        """Return the gradients of the inputs, None where they are zero."""
        got = iter(self.program(*values))
        return [next(got) if nz else None for nz in self.nonzero]


def pullback(inputs: Sequence[Any], taken: Sequence[Taken], result: int, gradients: Sequence[Any]
             ) -> Pullback | None:
    """Compile the pullback of a path that ends in the step ``result``.

    Returns None if it does not give ``gradients``, which are those by the rules, to the last bit.
    """
    try:
        closed, sources = pullback_program(inputs, taken, result)
    except (NotSeparate, *_READS_NUMBERS):
        return None
    found = Pullback(compiled(closed), sources, [ct is not None for ct in gradients])
    values = found.values(inputs, taken)
    if values is None:
        return None
    wanted = [ct for ct in gradients if ct is not None]
    try:
        same = gives(found.program, values, wanted) and agrees(found.program, closed, values)
    except _jaxlib.JaxRuntimeError:  # this XLA has no such options
        return None
    return found if same else None


def gives(program: Callable, values: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Return whether ``program`` gives the types and bits of ``wanted``."""
    got = program(*values)
    return same_types(got, wanted) and same_bits(got, wanted)


def agrees(program: Callable, closed: ClosedJaxpr, values: Sequence[Any]) -> bool:
    """Return whether ``program`` gives the bits of ``closed`` step by step, on other numbers."""
    random = np.random.default_rng(0)
    for _ in range(DRAWS):
        drawn = [near(x, random) for x in values]
        if not same_bits(program(*drawn), eval_jaxpr(closed.jaxpr, closed.consts, *drawn)):
            return False
    return True


def near(x: Any, random: np.random.Generator) -> Any:
    """Return a number or an array like ``x``: floats are between half of it and three halves."""
    dtype = aval_of(x).dtype
    if not dtypes.is_inexact(dtype):
        return x
    wide = np.asarray(x).astype(complex if dtypes.scalar_kind(dtype) == "complex" else float)
    factors = random.uniform(0.5, 1.5, wide.shape)
    drawn = np.where(wide == 0, factors, wide * factors).astype(dtype)
    if type(x) is ArrayImpl:
        return put(drawn)
    return drawn if type(x) is np.ndarray else type(x)(drawn[()])


def same_types(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether two lists hold arrays of the same types, either committed or not."""
    return all(type(a) is type(b) is ArrayImpl and a.aval == b.aval
               and a._committed == b._committed for a, b in zip(some, others))


def same_bits(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether two lists of arrays hold the same bits, NaNs being all the same."""
    return all(bits(a) == bits(b) for a, b in zip(some, others))


def bits(x: Any) -> bytes:
    """Return the bytes of an array, with one NaN in the place of all."""
    x = np.asarray(x)
    return np.where(x != x, x.dtype.type(np.nan), x).tobytes() if dtypes.is_inexact(x.dtype) \
        else x.tobytes()


@functools.cache
def cpus() -> frozenset:
    """The devices that are CPUs."""
    return frozenset(d for d in devices("cpu") if d.platform == "cpu")


def sources_of(inputs: Sequence[Any], taken: Sequence[Taken]) -> list[list[tuple[int, int]]]:
    """Return for each step where its operands are from: (step, -1) is the result of a step,
    (-1 - i, 0) the input ``i``, and (step, place) an operand of this step that is none of them.
    """
    made = {id(x): (-1 - i, 0) for i, x in enumerate(inputs)}
    found = []
    for number, (_, args, out) in enumerate(taken):
        found.append([made.get(id(x), (number, place)) if type(x) is JVPTracer else (number, place)
                      for place, x in enumerate(args)])
        made[id(out)] = number, -1
    return found


def pullback_program(inputs: Sequence[Any], taken: Sequence[Taken], result: int
                     ) -> tuple[ClosedJaxpr, list[tuple[int, int]]]:
    """Return the program of the path that ends in the step ``result``, and the values it takes."""
    operands = sources_of(inputs, taken)
    values = {(-1 - i, 0): x for i, x in enumerate(inputs)}
    for number, ((_, args, out), sources) in enumerate(zip(taken, operands)):
        values.update({s: x for s, x in zip(sources, args) if s not in values})
        values[number, -1] = out
    values = {s: x.primal if type(x) is JVPTracer else x for s, x in values.items()}

    def pull(*flat: Any) -> list[Any]:
        given = Given(state.trace)
        value = dict(zip(values, flat))
        for number, ((prim, _, _), sources) in enumerate(zip(taken, operands)):
            key = prim, *[id(value[s]) for s in sources]
            value[number, -1] = given.results.setdefault(key, value[number, -1])

        def once_more(*xs: Any) -> list[Any]:
            now = {**value, **{(-1 - i, 0): x for i, x in enumerate(xs)}}
            for number, ((prim, _, out), sources) in enumerate(zip(taken, operands)):
                if type(out) is JVPTracer:
                    now[number, -1] = again = bind(prim, *[now[s] for s in sources])
                    if again.primal is not value[number, -1]:
                        raise NotSeparate  # its rule computes the result in another way
            return [now[result, -1] if result >= 0 else now[result, 0]]

        with current(given):
            nonzero = [type(x) is JVPTracer for x in inputs]
            _, linear = linearize_flat(once_more, flat[:len(nonzero)], nonzero)
            cts = linear.backward([ones_of(linear.out_avals[0])])
        return [ct for ct in cts if ct is not None]

    closed = trace_flat(pull, [aval_of(x) for x in values.values()], name="pullback")
    jaxpr = separated(dead_code_free(closed.jaxpr))
    read = jaxpr.reads()
    kept = [(s, v) for s, v in zip(values, jaxpr.invars) if v in read]
    return (ClosedJaxpr(jaxpr.replace(invars=[v for _, v in kept]), closed.consts),
            [s for s, _ in kept])


def separated(jaxpr: Jaxpr) -> Jaxpr:
    """Return ``jaxpr`` so that XLA, made to join no operations, rounds each as it does alone.

    Alone, a division by fewer numbers, which are stretched, is a product with their inverses.
    Raises: NotSeparate for operations of which it makes other code.
    """
    if is_faulty(jaxpr):
        raise NotSeparate
    eqns = []
    for eqn in jaxpr.eqns:
        prim, out = eqn.operation, eqn.outvars[0]
        dtypes_known = all(generators_agree(a.aval.dtype) for a in (*eqn.invars, out))
        if not prim.separate_code or not dtypes_known:
            raise NotSeparate
        if type(prim) is Div and eqn.invars[1].aval.size < out.aval.size:
            divided, divisor = eqn.invars
            inverse = Var(divisor.aval)
            one = Literal(divisor.aval.dtype.type(1), ShapedArray((), divisor.aval.dtype))
            eqns.append(eqn.replace(invars=[one, divisor], outvars=[inverse]))
            eqn = eqn.replace(operation=Mul(), invars=[divided, inverse])
        eqns.append(eqn)
    return jaxpr.replace(eqns=eqns)


def compiled(closed: ClosedJaxpr) -> Any:
    """Return the function that runs ``closed``, each operation rounded as it is alone."""
    programs = Kept()
    out_tree = tree.structure([0] * len(closed.out_avals))

    def miss(*args: Any) -> tuple:
        where, committed = placement(args)
        key = where, committed, config.trace_key()
        program = programs.get(key)
        if program is None:
            program = build(closed, where, committed, name="pullback",
                            options=_jaxlib.SEPARATE_OPTIONS)
            programs.keep(key, program)
        return program.run(args), program.fast_path(out_tree), False

    return make_fast("pullback", lambda *args: miss(*args)[0], miss)
