"""What is a primitive, and which six rules must it have?

A primitive is one operation the engine knows by itself; everything else is made of them.  It is a
``Record``: static parameters are fields, rules are methods, always these six in this order:

- ``typing(*avals)``: avals in, aval (or list of avals) out; refuses what does not fit;
- ``evaluate(*arrays)``: the operation in NumPy, the executable specification;
- ``lower(ctx, *operands)``: the operation in StableHLO text;
- ``jvp(primals, tangents)``: output and its tangent; a tangent of None is a symbolic zero;
- ``transpose(ct, *args)``: cotangents of the linear arguments, which come as ``UndefinedPrimal``;
- ``batch(size, xs, dims)``: the operation on a stack of inputs; a dim of None is not batched.

There is no vjp rule: reverse mode is linearize + transpose.  A rule that cannot exist is stated
(``transpose = NOT_LINEAR``).  A class with a rule missing is refused when it is made.

Whatever else a part of the engine may need to know of a primitive is declared on ``Primitive`` with
a default: facts, places it names, and rules that most primitives do not need.  No other file keeps
a table of primitives, compares their names, or looks for a method that is not declared here.

Read before: ``core.avals``, ``core.record``.  Read after: ``core.trace`` (bind), ``saem.ops``.
Invariant: equal primitives on equal avals are the same computation (they are cache keys).
Guarded by tests/kernel/test_primitives.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from saem.core import containers, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.record import Record

RULES = ("typing", "evaluate", "lower", "jvp", "transpose", "batch")

registry: dict[str, type[Primitive]] = {}


class Absent:
    """A rule that cannot exist, with the reason: calling it raises that reason."""

    wording = "{} has no {} rule"

    def __init__(self, reason: str, error: type[Exception] = TypeError):
        self.reason = reason
        self.error = error
        self.name = ""
        self.rule = ""

    def __set_name__(self, owner: type, rule: str) -> None:
        self.rule = rule

    def __get__(self, instance: Any, owner: type) -> Callable:
        if instance is None:
            return self

        def refuse(*args, **kwargs):
            raise self.error(
                f"{self.wording.format(instance.name, self.rule)}: {self.reason}")

        return refuse

    def __repr__(self) -> str:
        return f"Absent({self.reason!r})"


def absent(reason: str, error: type[Exception] = TypeError) -> Any:
    """Return a placeholder for a rule that cannot exist: calling it raises ``error``."""
    return Absent(reason, error)


class _NotLinear(Absent):
    wording = "Transpose rule (for reverse-mode differentiation) for '{}' not implemented"

    def __init__(self) -> None:
        super().__init__("it is not linear in any argument, so it is never transposed",
                         NotImplementedError)


NOT_LINEAR: Any = _NotLinear()


class UndefinedPrimal:
    """A linear argument in a transpose rule: its aval is known, and its value is not."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval.str_short(True)})"

    @property
    def shape(self):
        return self.aval.shape

    @property
    def dtype(self):
        return self.aval.dtype

    @property
    def ndim(self):
        return len(self.aval.shape)


# In the arguments of a rule, which libraries map over as pytrees, it is a container of nothing.
containers.register_pytree_node(UndefinedPrimal, lambda x: ((), x.aval),
                          lambda aval, _: UndefinedPrimal(aval))


def remembered(typing: Callable) -> Callable:
    """Cache a typing rule: programs apply the same primitive to the same avals many times.

    Equal results are then one object, which later look-ups find without comparing.
    """
    return functools.lru_cache(8192)(typing)


class Primitive(Record):
    """Base of all primitives; subclasses are abstract families until given a ``name``."""

    name: ClassVar[str] = ""
    # Then rules take and return lists of results in place of one result.
    multiple_results: ClassVar[bool] = False
    # The only object of a primitive without parameters, once it was made.
    _instance: ClassVar[Primitive]
    __slots__ = ()

    # -- facts of mathematics --
    # Whether its results are linear in all operands together, and whether in each of two.
    linear: ClassVar[bool] = False
    bilinear: ClassVar[bool] = False
    # Whether it is a matrix product or a convolution, which checkpoint policies call dots.
    is_product: ClassVar[bool] = False
    # The number of the operand by which it divides, None if it does not divide.
    divisor: ClassVar[int | None] = None
    # Whether a NaN among its results was among its operands (so that it never makes the first one).
    passes_nan: ClassVar[bool] = False

    # -- facts that interpreters ask for --
    # What it does besides computing its results (``core.effects``).
    effects: ClassVar[Any] = frozenset()
    # Whether the jvp rule reads no numbers and calls no function of a user, so that outside jit the
    # operation and its tangent may run as one compiled call (``transform.jvp.WithTangent``).
    joint_jvp: ClassVar[bool] = False
    # Whether every interpreter must see it, also where none of its operands is the interpreter's
    # own: an operation on references, which are made once for all that happens to them.
    touches_refs: ClassVar[bool] = False
    # Whether partial evaluation records it although its operands are known.
    waits: ClassVar[Any] = False
    # Whether partial evaluation looks into its program, so that a result waits only if it must.
    splits_by_result: ClassVar[bool] = False
    # Whether its typing rule gives the varying axes, or the memories, of its results.
    types_varying: ClassVar[bool] = False
    types_memory: ClassVar[bool] = False
    # Whether it uses up the PRNG key it is given.
    consumes_key: ClassVar[bool] = False
    # The function by which users make keys with it ("split", "fold_in" …), "" if it makes none.
    makes_keys: ClassVar[str] = ""

    # Whether a number among its operands becomes reduced as the others are (``core.sums``).
    joins_reduced: ClassVar[bool] = False
    # Whether its results may be unreduced or reduced although no operand is.
    starts_sums: ClassVar[bool] = False

    # -- facts of the code that XLA makes --
    # Whether XLA's quick settings make code of it that gives the same bits (``compile.quick``).
    quick_code: ClassVar[bool] = True
    # Whether XLA rounds it alone as in a program in which it joins no operations: not if it is
    # written as several (``transform.pullbacks``).
    separate_code: ClassVar[bool] = True
    # Whether of two NaNs among its operands the compiler chooses the one that it returns.
    chooses_nan: ClassVar[bool] = False
    # Whether it adds or multiplies many numbers, in an order that the compiler chooses.
    folds_many: ClassVar[bool] = False
    # Whether it multiplies two numbers, or adds two: of a product and a sum that it goes into, the
    # compiler may round the sum alone.
    multiplies: ClassVar[bool] = False
    adds: ClassVar[bool] = False
    # Whether LAPACK works on its operands, matrix by matrix.
    takes_matrices: ClassVar[bool] = False
    # ``written_as(avals)``: the program that is written in its place, where no parameter holds it.
    written_as: ClassVar[Callable | None] = None

    # -- its parameters --
    # Parameters that equations show but records do not hold.
    derived_params: ClassVar[tuple[str, ...]] = ()
    # Parameters whose names are those of rules: from each to the field of the record that holds it.
    renamed: ClassVar[dict[str, str]] = {}
    # The parameters that say how it is computed (accuracy, precision, what is known of indices):
    # its derivative, transpose and batch pass them to every operation that has such a parameter.
    handed_on: ClassVar[tuple[str, ...]] = ()

    # -- what its parameters name --
    # The name of the function that it calls, "" if it is not a plain call of one.
    called: ClassVar[Any] = ""
    # Its name in the paths of a program's text, which profiles show; by default ``name``.
    path_name: ClassVar[Any] = ""
    # The layout that it gives to its operand.
    layout: ClassVar[Any] = None
    # The mesh on which it must run.
    mesh: ClassVar[Any] = None
    # The shardings to one device that its parameters name: it must run there.
    named_devices: ClassVar[Any] = ()
    # The sharding that a parameter requests of the result.
    requested_sharding: ClassVar[Any] = None
    # The shardings of its operands and results where it runs alone, () if the compiler chooses.
    in_shardings: ClassVar[Any] = ()
    out_shardings: ClassVar[Any] = ()
    # For each operand whether its buffer may become a result's where it runs alone, () if none may.
    donated_invars: ClassVar[Any] = ()
    # The named axes along which it communicates; None: those of the programs inside.
    collective_axes: ClassVar[Any] = None

    # -- the programs inside --
    # Which programs they are, and which operands and results are theirs
    # (``transform.nested.Nested``); None if there are none, or if it does more than run them.
    nested: ClassVar[Any] = None
    # ``rebuilt(nested, operands, results)``: the primitive made of other programs.  The lists give
    # for each operand and result the number of the one it was, or accompanies; None: it is new.
    rebuilt: ClassVar[Callable[..., Any]]
    # ``of_stacks(nested, dims, out_dims)``: the primitive made of programs of stacks along ``dims``
    # that give stacks along ``out_dims``: ``rebuilt``, but for what it says of axes.
    of_stacks: ClassVar[Callable[..., Any]]

    # -- the six rules --
    typing: ClassVar[Callable]
    evaluate: ClassVar[Callable]
    lower: ClassVar[Callable]
    jvp: ClassVar[Callable]
    transpose: ClassVar[Callable]
    batch: ClassVar[Callable]

    # -- rules with a default: None where there is nothing special to do --
    # ``eager(*args)``: run outside traces; by default as one compiled call.
    eager: ClassVar[Callable | None] = None
    # ``shard_results(case)``: entries of shardings of results (``ops.sharding_rules``); by default
    # those of the programs inside, or a refusal.
    shard_results: ClassVar[Callable | None] = None
    # ``sum_results(case)``: the axes along which results are unreduced and reduced
    # (``ops.sum_rules``); by default those of the programs inside, or a refusal.
    sum_results: ClassVar[Callable | None] = None
    # ``varies(*vmas)``: the mesh axes along which results vary; by default all of the operands'.
    varies: ClassVar[Callable | None] = None
    # ``memory(spaces)``: the memory of each result; by default that of the operands.
    memory: ClassVar[Callable | None] = None
    # ``params_for(avals)``: the parameters that follow from the operands (``derived_params``).
    params_for: ClassVar[Callable | None] = None
    # ``physical(in_avals, out_avals)``: the same operation on the arrays that hold keys.
    physical: ClassVar[Callable | None] = None
    # ``partial_eval(trace, args)``: split by what is known; by default all of it is recorded.
    partial_eval: ClassVar[Callable | None] = None
    # ``wait(trace, args)``: record it in the linear program of ``trace``, where ``waits`` is true.
    wait: ClassVar[Callable | None] = None
    # ``trimmed(needed)``: (primitive, operands kept, results kept) without unneeded results.
    trimmed: ClassVar[Callable | None] = None
    # ``with_token()``: (primitive, place of the operand) that takes and returns an effects token.
    with_token: ClassVar[Callable | None] = None
    # ``window(values)``: (starts, axes, sizes) of the parts of operand 0 that it reads or writes.
    window: ClassVar[Callable | None] = None
    # ``print_equation(eqn, namer)``: its form in a jaxpr; by default name, parameters, operands.
    print_equation: ClassVar[Callable | None] = None

    def hand_to(self, interpreter: Any, handle: Any, args: Sequence[Any]) -> Any:
        """Let an interpreter of ``extend.interpreters`` process this, as it does ``handle``."""
        params = self.params
        if self.derived_params:
            params = {**params, **self.params_for([aval_of(x) for x in args])}
        return interpreter.process_primitive(handle, args, params)

    @classmethod
    def bind_functions(cls, args: Sequence[Any], subfuns: Sequence[Any], **params: Any) -> Any:
        """Call a function that has rules (``subfuns``), as ``custom_jvp_call`` does.

        Raises: TypeError for a primitive that takes no functions.
        """
        raise TypeError(f"{cls.name} takes no functions; custom_jvp_call and custom_vjp_call do.")

    @property
    def params(self) -> dict[str, Any]:
        """The static parameters by name, as readers of jaxprs expect them."""
        found = {name: getattr(self, name) for name in self._names}
        for name, field in self.renamed.items():
            found[name] = found.pop(field)
        return found

    def printed_params(self) -> dict[str, Any]:
        """The parameters a printed jaxpr shows, in alphabetical order."""
        return dict(sorted(self.params.items()))

    def __str__(self) -> str:
        return self.name


@functools.lru_cache(8192, typed=True)
def equal_one(cls: type[Primitive], *params: Any) -> Any:
    """Return ``cls(*params)``: one object for equal parameters.

    Where eager programs make the same primitive again and again, caches find it by identity.
    """
    return cls(*params)


P = TypeVar("P", bound=type)


def primitive(name: str) -> Callable[[P], P]:
    """Make a class a primitive called ``name``: check its six rules, register it.

    Raises: TypeError if a rule is missing or the name is taken.
    """

    def decorate(cls: Any) -> Any:
        missing = [rule for rule in RULES if getattr(cls, rule, None) is None]
        if missing:
            raise errors.explained(
                errors.ArgumentTypeError, "primitive.rules",
                f"primitive {name!r} has no {', '.join(missing)} rule.",
                advice="Write it, or say why it cannot exist: transpose = NOT_LINEAR, or "
                "rule = absent('reason').")
        taken = registry.get(name)
        if taken is not None and taken.__qualname__ != cls.__qualname__:
            raise errors.explained(
                errors.ArgumentTypeError, "primitive.name",
                f"primitive name {name!r} is already taken by {taken.__qualname__}",
                advice="Choose another name.")
        cls.name = name
        cls.path_name = cls.path_name or name
        if not cls._names:
            # Without parameters there is one object, so identity is equality: cheap cache keys.
            cls.__new__ = functools.partial(_single, cls)
            cls.__init__, cls.__eq__, cls.__hash__ = (
                object.__init__, object.__eq__, object.__hash__)
        registry[name] = cls
        return cls

    return decorate


@functools.cache
def _single(cls: type[Primitive], *_ignored: Any) -> Any:
    instance = cls.__dict__.get("_instance")
    if instance is None:
        instance = object.__new__(cls)
        cls._instance = instance
    return instance
