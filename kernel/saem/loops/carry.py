"""How does a Python function become the body of a loop or a branch?

It is traced once for the types of its operands.  All it closes over becomes leading operands; what
a loop carries must come back as it went in: the same containers, shapes and dtypes.  A number whose
type is weak gives way: a carry that starts as ``0`` and comes back as float32 starts as float32.

Read before: ``transform.staging``, ``transform.restructure``.  Read after: ``loops.scan``.
Invariant: a body traced twice for one function and one signature is one program, so what was
derived from it or compiled of it is found again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from saem.compile import dispatch
from saem.compile.device_assignment import named_by, placement
from saem.compile.lowering import avals_of, one_equation
from saem.core import axes, config, dtypes, errors, promotion, source, tree
from saem.core.arguments import check_outputs, described
from saem.core.avals import ShapedArray, aval_of
from saem.core.events import bus
from saem.core.hi_types import is_mutable
from saem.core.jaxpr import ClosedJaxpr, Origin, Var, pick, split_list, sub_jaxprs
from saem.core.leaks import leaked_tracer
from saem.core.placement_types import Seen
from saem.core.primitive import Primitive
from saem.core.record import Record
from saem.core.sharded import same_sharding
from saem.core.trace import Tracer, bind
from saem.core.varying import vma_of
from saem.ops.convert import convert_element_type
from saem.ops.device_sums import PVary
from saem.ops.keys import key_watch
from saem.placement.layouts import terms_of
from saem.transform.programs import table_of
from saem.transform.restructure import open_consts, rearranged
from saem.transform.staging import trace_flat


class Types(Record):
    """A tree of types: its structure and its leaves, since not every container holds types."""

    treedef: Any
    avals: Sequence[ShapedArray]

    def child(self, number: int) -> Types:
        """Return the part that is in one of the outermost containers."""
        children = self.treedef.children()
        start = sum(child.num_leaves for child in children[:number])
        child = children[number]
        return Types(child, self.avals[start: start + child.num_leaves])

    def build(self) -> Any:
        """Return the containers with the types in them, for messages."""
        return self.treedef.unflatten(self.avals)

    def __str__(self) -> str:
        return str(self.treedef.unflatten(map(_Shown, self.avals)))


class Body(Record):
    """A traced function: its program without constants, their values, the shape of its result."""

    closed: ClosedJaxpr
    consts: list[Any]
    out_tree: Any

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.closed.out_avals

    @property
    def results(self) -> Types:
        return Types(self.out_tree, self.out_avals)


def trace_body(fun: Callable, in_tree: Any, avals: Sequence[ShapedArray], name: str,
               owner: Callable | None = None, static: tuple = ()) -> Body:
    """Trace ``fun`` for the flat operands ``avals`` of structure ``in_tree``.

    The trace is kept with ``owner``, the user's function, of which (and of the ``static`` values)
    ``fun`` may be made anew.

    Raises: TypeError for a result that is no array, and for a function without a hash.
    """
    hash(fun)
    key = (in_tree, tuple(avals), name, static, axes.state.env, config.trace_key())
    known = table_of(owner or fun, "bodies")
    body = known.get(key)
    if body is None:
        body = _trace(fun, in_tree, avals, name)
        if not any(isinstance(c, Tracer) or is_mutable(v.aval)  # whose state may be another then
                   for c, v in zip(body.consts, body.closed.jaxpr.invars)):
            known.keep(key, body)
    return body


def _trace(fun: Callable, in_tree: Any, avals: Sequence[ShapedArray], name: str) -> Body:
    out_trees: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        outs, out_tree = tree.flatten(fun(*in_tree.unflatten(leaves)))
        out_trees.append(out_tree)
        check_outputs(name, fun, outs, out_tree)
        return outs

    closed = trace_flat(flat, avals, name=name, arg_names=_argument_names(fun, in_tree),
                        debug_name=getattr(fun, "__name__", ""))
    closed.jaxpr.origin = Origin(name, fun, out_trees[0], in_tree=in_tree)
    closed, consts = open_consts(closed)
    return Body(closed, consts, out_trees[0])


def _argument_names(fun: Callable, in_tree: Any) -> list[str]:
    """Return the names of the parameters of ``fun`` if each of them is one array, for messages."""
    code = getattr(fun, "__code__", None)
    if code is None or in_tree.num_nodes != in_tree.num_leaves + 1 or hasattr(fun, "__self__"):
        return []
    return list(code.co_varnames[:min(code.co_argcount, in_tree.num_leaves)])


def paths_of(treedef: Any) -> list[Any]:
    """Return the key path of every leaf of ``treedef``."""
    return [path for path, _ in tree.leaves_with_path(treedef.unflatten([0] * treedef.num_leaves))]


def check_callable(name: str, what: str, *funs: Any, should: str = "callable") -> None:
    """Refuse what cannot be called; ``should`` says what ``what`` should be.

    Raises: TypeError.
    """
    for fun in funs:
        if not callable(fun):
            raise errors.explained(
                errors.ArgumentTypeError, f"{name}.C0",
                f"lax.{name}: {what} should be {should}.\nIt got {fun!r}.",
                advice="Pass a function, without calling it.")


# -- operands --------------------------------------------------------------------------------------


def union_consts(bodies: Sequence[Body], order: Sequence[int]
                 ) -> tuple[list[ClosedJaxpr], list[Any]]:
    """Return the programs of ``bodies`` with all their constants as operands of each.

    A value that several close over is passed once; those of ``bodies[order[0]]`` come first.
    """
    values = {id(c): c for number in order for c in bodies[number].consts}
    programs = []
    for body in bodies:
        jaxpr = body.closed.jaxpr
        own = dict(zip(map(id, body.consts), jaxpr.invars))
        if list(own) == list(values):
            programs.append(body.closed)
            continue
        leading = [own[number] if number in own else Var(aval_of(c))
                   for number, c in values.items()]
        rest = jaxpr.invars[len(body.consts):]
        programs.append(ClosedJaxpr(jaxpr.replace(invars=[*leading, *rest])))
    return programs, list(values.values())


def check_operands(prim: Primitive, wanted: Sequence[ShapedArray], got: Sequence[ShapedArray]
                   ) -> None:
    """Refuse operands of other shapes or dtypes than the program inside ``prim`` takes.

    Raises: TypeError.
    """
    same = len(wanted) == len(got) and all(
        w.shape == g.shape and w.dtype == g.dtype for w, g in zip(wanted, got))
    if not same:
        shown = [", ".join(map(str, avals)) for avals in (wanted, got)]
        raise errors.explained(
            errors.ArgumentTypeError, f"{prim.name}.C1",
            f"{prim.name} needs operands of types {shown[0]}, got {shown[1]}.",
            advice="The program inside was traced for other operands.")


# -- what goes around ------------------------------------------------------------------------------


def must_say(fun: Callable, *programs: ClosedJaxpr) -> bool:
    """Return whether ``fun``, of which ``programs`` were traced, says itself what varies.

    That is a user's inside shard_map, where ``lax.pcast`` says so.  What the library calls starts
    varying by itself, as does what devices choose separately, which in JAX does not vary.
    """
    return axes.state.checked and not source.is_internal(source.function_ref(fun).file) \
        and not any(map(_chooses_apart, programs))


def _chooses_apart(program: ClosedJaxpr) -> bool:
    """Return whether devices choose separately between branches, or how often to loop."""
    for eqn in program.eqns:
        inside = sub_jaxprs(eqn.operation)
        nested = eqn.operation.nested if inside else None
        if nested is not None and any(map(vma_of, nested.choosers([v.aval for v in eqn.invars]))):
            return True
        if any(_chooses_apart(inner) for _, inner in inside):
            return True
    return False


def trace_carry(trace: Callable[[list[ShapedArray]], Body], carry: Sequence[Any], fun: Callable,
                returned: Callable[[Body], Sequence[ShapedArray] | None]
                ) -> tuple[Body, list[Any]]:
    """Trace a body for ``carry``, weakly typed values of which take the dtype they come back with.

    ``trace(avals)`` traces that of the user's ``fun``; ``returned(body)`` gives the avals of the
    carry that comes back, or None if it has another structure.  Returns the body and the carry to
    start with.
    """
    avals = [aval_of(x) for x in carry]
    body = trace(avals)
    outs = returned(body)
    if outs is None or len(outs) != len(avals):
        return body, list(carry)
    start = list(carry)
    wanted = [_meeting(a, out) for a, out in zip(avals, outs)]
    if any(w is not None for w in wanted):
        start = [x if w is None else convert_element_type(x, w) for x, w in zip(carry, wanted)]
        body = trace([aval_of(x) for x in start])
    if not axes.state.checked or must_say(fun, body.closed):
        return body, start
    return _start_varying(trace, body, start, returned)


def _start_varying(trace: Callable[[list[ShapedArray]], Body], body: Body, start: list[Any],
                   returned: Callable[[Body], Sequence[ShapedArray] | None]
                   ) -> tuple[Body, list[Any]]:
    """Inside shard_map, let a carry that comes back varying along a mesh axis start so."""
    while True:
        outs = returned(body)
        if outs is None or len(outs) != len(start):
            return body, start
        missing = [vma_of(out) - vma_of(aval_of(x)) for x, out in zip(start, outs)]
        if not any(missing):
            return body, start
        start = [bind(PVary(tuple(sorted(m, key=str))), x) if m else x
                 for x, m in zip(start, missing)]
        body = trace([aval_of(x) for x in start])


def _meeting(start: ShapedArray, back: ShapedArray) -> Any:
    """Return the dtype a weak ``start`` must have to meet ``back``, None if it may stay."""
    if not start.weak_type or start.dtype == back.dtype:
        return None
    if dtypes.is_extended(back.dtype) or back.dtype == dtypes.float0:
        return None
    dtype, _ = promotion.join((start.dtype, True), (back.dtype, back.weak_type))
    return dtype if dtype != start.dtype else None


# How errors speak of a carry: the user's function, the number of the argument that is the carry,
# and which element of the loop's own state it is (None: all of it).
Spoken = tuple[Callable, int, int | None]


def check_carry(name: str, spoken: Spoken, start: Types, back: Types, program: ClosedJaxpr) -> None:
    """Refuse a carry that comes back otherwise than it went in.

    Raises: TypeError naming the leaf and what differs.
    """
    fun, argument, element = spoken
    strict = must_say(fun, program)
    if element is not None:
        start, back = start.child(element), back.child(element)
    if start.treedef == back.treedef:
        if any(differing(a, b, strict) for a, b in zip(start.avals, back.avals)):
            raise _carry_types(name, _argument_name(fun, argument), start, back, strict)
        return
    what = _structure_words(_argument_name(fun, argument), start.treedef, back.build())
    raise errors.explained(
        errors.ArgumentTypeError, f"{name}.C2",
        f"{name} body function carry input and carry output must have the same pytree structure, "
        f"but they differ: {what}",
        advice=f"{described(fun)} was given\n    {start}\nand returned\n    {back}\n"
        "Return the carry in the containers it came in.")


def _carry_types(name: str, carry: str, start: Types, back: Types, strict: bool) -> Exception:
    lines = []
    missing: frozenset = frozenset()
    for path, a, b in zip(paths_of(start.treedef), start.avals, back.avals):
        if differing(a, b, strict):
            missing |= vma_of(b) - vma_of(a)
            leaf = f"component {carry}{tree.keystr(path)}" if path else carry
            lines.append(
                f"The input carry {leaf} has type {a.str_short()} but the "
                "corresponding output carry component has type "
                f"{b.str_short()}, so {differing(a, b, strict)}.")
    return errors.explained(
        errors.ArgumentTypeError, f"{name}.C3",
        f"{name} body function carry input and carry output must have equal types, "
        "but they differ:\n  " + "\n  ".join(lines),
        advice=f"Apply `{pcast_of(missing)}` to the carry that it starts with." if missing else
        "Start with a value of the type that comes back, or convert what is returned, for "
        "example with .astype(c.dtype).")


def pcast_of(axes: frozenset) -> str:
    """Return the call that makes a value vary along ``axes``, for messages."""
    return f"jax.lax.pcast(..., {tuple(sorted(axes, key=str))}, to='varying')"


def differing(a: ShapedArray, b: ShapedArray, strict: bool) -> str:
    """Return what differs between two types, as the end of a sentence, "" if nothing does.

    If it is ``strict``, also along which axes the values vary.
    """
    parts = [f"the {part} do not match" for part, differ in
             (("shapes", a.shape != b.shape), ("dtypes", a.dtype != b.dtype),
              ("shardings", a.shape == b.shape and not same_sharding(a, b)),
              ("manual axis types", strict and vma_of(a) != vma_of(b))) if differ]
    return ", and ".join(parts)


class _Shown:
    """An aval that prints itself in full."""

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return self.aval.str_short()


def _argument_name(fun: Callable, number: int) -> str:
    try:
        return list(inspect.signature(fun).parameters)[number]
    except (TypeError, ValueError, IndexError):
        return "carry"


def _structure_words(carry: str, begin_tree: Any, back: Any) -> str:
    """Return where the carry that came back has other containers, and which, in words."""
    found = tree.difference(begin_tree, back)
    if found is None:  # it goes deeper somewhere: the first leaf that became a container
        for path, below in zip(paths_of(begin_tree), begin_tree.flatten_up_to(back)):
            if not isinstance(below, ShapedArray):
                found = path, f"an array went in, a {type(below).__name__} came back"
                break
    path, what = found if found is not None else ((), "")
    return f"at {carry}{tree.keystr(path)}: {what}."


def unchanged(closed: ClosedJaxpr, consts: int, carry: int) -> list[bool]:
    """Return which of the carried inputs come back as they went in."""
    inputs = closed.jaxpr.invars[consts: consts + carry]
    return [a is v for a, v in zip(closed.jaxpr.outvars, inputs)]


def fix_carry(closed: ClosedJaxpr, consts: list[Any], start: Sequence[Any],
              fixed: Sequence[bool]) -> tuple[ClosedJaxpr, list[Any]]:
    """Return a program with ``fixed`` values of the carry among its constants, if it reads them."""
    if not any(fixed):
        return closed, consts
    jaxpr = closed.jaxpr

    def make() -> tuple[ClosedJaxpr, list[bool]]:
        own, carry, rest = split_list(jaxpr.invars, len(consts), len(start))
        count = len(fixed)
        outs = [*pick(jaxpr.outvars[:count], fixed, False), *jaxpr.outvars[count:]]
        used = jaxpr.replace(outvars=outs).reads()
        read = [f and v in used for v, f in zip(carry, fixed)]
        inputs = [*own, *pick(carry, read), *pick(carry, fixed, False), *rest]
        return rearranged(closed, inputs, jaxpr.outvars), read

    program, read = closed.derived(("fixed", len(consts), tuple(fixed)), make)
    return program, [*consts, *pick(start, read)]


# -- running at once -------------------------------------------------------------------------------


def run_at_once(programs: tuple[ClosedJaxpr, ...], key: tuple, prim: Primitive,
                args: Sequence[Any]) -> list[Any]:
    """Run a loop or branch on concrete arguments; its executable is kept with its ``programs``.

    ``key`` identifies one of the primitives that are made of these.
    """
    for x in args:
        if isinstance(x, Tracer):
            raise leaked_tracer(x)
    avals = avals_of(args)
    owner, others = programs[0], programs[1:]
    demands = owner.derived(("demands", key), lambda: named_by(prim).demands(), others)
    where, committed = placement(args, demands)
    terms = terms_of(one_equation(prim, avals), args, demands) if Seen.storage else None
    program = owner.derived(
        ("run", key, avals, where, committed, config.trace_key(), terms),
        lambda: dispatch.build(one_equation(prim, avals), where, committed, name=prim.name,
                               terms=terms), others)
    if bus.active or config.debug_key_reuse.value:
        closed = owner.derived(("keys", key, avals), lambda: one_equation(prim, avals), others)
        return key_watch.called(closed, args, prim.name, lambda: program.run(args))
    return program.run(args)
