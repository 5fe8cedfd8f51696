"""Which operations are there on mutable arrays?

``new_ref`` makes a reference, ``get`` reads a part of what it holds, ``swap`` replaces a part and
gives what was there, ``addupdate`` adds to it, ``freeze`` ends it and gives what it holds.  The
first operand of each but the first is the reference; the others are a value and index operands.

Under jvp a reference has a second one beside it that holds tangents; backwards, a third one
accumulates cotangents.  Under vmap it holds a stack.  For XLA each becomes a pure operation
(``discharge``), which ``refs.discharge`` threads through the program.

Read before: ``core.refs``, ``refs.parts``.  Read after: ``refs.discharge``.
Invariant: ``evaluate`` changes the NumPy array that represents the reference, and agrees with the
discharged program (tests/kernel/test_matrix.py, test_refs.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from saem.core import dtypes, errors, lazy
from saem.core.avals import ShapedArray, aval_of
from saem.core.primitive import NOT_LINEAR, Primitive, UndefinedPrimal, absent, primitive
from saem.core.refs import (
    OWN_REF,
    AbstractRef,
    AccumEffect,
    Indexer,
    LinearRef,
    ReadEffect,
    RefError,
    Span,
    WriteEffect,
    is_ref,
    split_indices,
)
from saem.core.trace import bind
from saem.core.varying import varying, vma_of
from saem.ops.convert import convert
from saem.ops.filling import broadcasted_iota
from saem.ops.linear import (
    BroadcastInDim,
    broadcast_in_dim,
    broadcast_new_dim,
    literal,
    moveaxis,
    permute,
    stacked,
    zeros_of,
)
from saem.refs.parts import add_rows, numpy_read, numpy_write, read, write

# What references are outside traces; that module is built on this one.
arrays = lazy.later("saem.refs.arrays")


def as_held(value: Any, aval: ShapedArray) -> Any:
    """Return ``value`` with the weak type of what a reference of ``aval`` holds."""
    if aval_of(value).weak_type == aval.weak_type or dtypes.is_extended(aval.dtype):
        return value
    return convert(value, aval.dtype, aval.weak_type)


class OnRef(Primitive):
    """What operations on references share."""

    __slots__ = ()
    touches_refs = True
    # Inside shard_map: a reference varies as what it holds, and so does what is read of it.
    types_varying = True
    # Whether it belongs to the linear program of a linearization, though all operands are known.
    waits: ClassVar[Any] = False

    lower = absent("XLA has no references: a program is discharged (``refs.discharge``) before it "
                   "is lowered")

    def discharge(self, *args: Any) -> tuple[Sequence[Any], Any]:
        """Return the results and the new array, for the array that the reference holds."""
        raise NotImplementedError(f"{self.name}: discharge")

    def print_equation(self, eqn: Any, namer: Any) -> str | None:
        """Return how an equation of this primitive prints, None if like any other."""
        return None


# -- beginning and end -----------------------------------------------------------------------------


@primitive("new_ref")
class NewRef(OnRef):
    """Make a reference to a new mutable array that holds ``x`` at first.

    One made for ``tangents`` is part of the linear program of a linearization, even if ``x`` is
    known.
    """

    memory_space: Any = None
    kind: str | None = None
    tangents: bool = False
    zeros: bool = False

    effects = frozenset({OWN_REF})

    @property
    def params(self):
        return {"memory_space": self.memory_space, "kind": self.kind}

    waits = property(lambda self: self.tangents)

    def wait(self, trace: Any, args: Sequence[Any]) -> Any:
        """Record this in the linear program of ``trace``, zeros by an equation of its own."""
        (x,) = args
        aval = aval_of(x)
        if self.zeros and aval.shape:
            zero = literal(0, aval.dtype)
            x = trace.emit(BroadcastInDim(aval.shape), [zero])
        return trace.emit(self, [x])

    def eager(self, x):
        return arrays.make(self, x)

    def typing(self, x):
        return AbstractRef(x, self.memory_space, self.kind)

    def evaluate(self, x):
        return np.array(x)

    def jvp(self, primals, tangents):
        (x,), (dx,) = primals, tangents
        aval = aval_of(x)
        ref = bind(NewRef(self.memory_space, self.kind), x)
        if self.kind is not None or not dtypes.is_inexact(aval.dtype):
            return ref, None
        zeros = dx is None
        dx = zeros_of(aval.to_tangent_aval()) if zeros else dx
        return ref, bind(NewRef(self.memory_space, self.kind, True, zeros), dx)

    def transpose(self, ct, x):
        ct = None if ct is None else bind(Freeze(), ct)
        return [None if self.zeros else ct]

    def batch(self, size, xs, dims):
        (x,), (dim,) = xs, dims
        x = broadcast_new_dim(x, size, 0) if dim is None else x
        return bind(self, x), dim or 0

    def discharge(self, x):
        return [], x


@primitive("empty_ref")
class EmptyRef(OnRef):
    """Make a reference to a mutable array of type ``ty`` in which nothing was written yet."""

    ty: ShapedArray
    memory_space: Any = None

    effects = frozenset({OWN_REF})

    def eager(self):
        return arrays.make_empty(self)

    def typing(self):
        return AbstractRef(self.ty, self.memory_space)

    def evaluate(self):
        return np.zeros(self.ty.shape, self.ty.dtype)

    def jvp(self, primals, tangents):
        return bind(self), bind(NewRef(None, None, True, True), zeros_of(self.ty.to_tangent_aval()))

    transpose = NOT_LINEAR

    def batch(self, size, xs, dims):
        return bind(EmptyRef(self.ty.update(shape=(size, *self.ty.shape)), self.memory_space)), 0

    def discharge(self):
        return [], zeros_of(self.ty)


@primitive("freeze")
class Freeze(OnRef):
    """End a reference and return the array that it holds."""

    effects = frozenset({OWN_REF, ReadEffect(0)})

    def eager(self, ref):
        return ref.value()

    def typing(self, ref):
        return ref.inner_aval

    def evaluate(self, ref):
        return np.array(ref)

    def jvp(self, primals, tangents):
        (ref,), (dref,) = primals, tangents
        return bind(self, ref), None if dref is None else bind(self, dref)

    def transpose(self, ct, ref):
        return Get(()).transpose(ct, ref)

    def batch(self, size, xs, dims):
        return bind(self, xs[0]), dims[0]

    def discharge(self, x):
        return [x], None


@primitive("free_ref")
class FreeRef(OnRef):
    """End a reference."""

    multiple_results = True
    effects = frozenset({OWN_REF})

    def eager(self, ref):
        return []

    def typing(self, ref):
        return []

    def evaluate(self, ref):
        return []

    def jvp(self, primals, tangents):
        bind(self, primals[0])
        return [], []

    def transpose(self, ct, ref):
        return [None]

    def batch(self, size, xs, dims):
        return bind(self, xs[0]), []

    def discharge(self, x):
        return [], None


def zeros_behind(aval: AbstractRef) -> Any:
    """Return a new reference of type ``aval`` that holds zeros."""
    return bind(NewRef(), zeros_of(aval.inner_aval))


# -- parts -----------------------------------------------------------------------------------------


class OnPart(OnRef):
    """An operation on the part that ``transforms`` select, one after the other."""

    __slots__ = ()
    transforms: tuple[Indexer, ...]
    # What the operation is called in messages, and how many values come before the indices.
    verb: ClassVar[str]
    values: ClassVar[int]

    def part(self, ref: Any, operands: Sequence[Any]) -> ShapedArray:
        """Return the type of the part, for the types of a reference and of index operands."""
        if not is_ref(ref):
            raise errors.explained(
                errors.ArgumentError, "ref.C2",
                f"Can only call `{self.verb}` on a `Ref`: {ref}.",
                advice="Make one with jax.new_ref(x).")
        aval = ref.inner_aval
        for indexer, indices in zip(self.transforms, split_indices(self.transforms, operands)):
            aval = aval.update(shape=indexer.result_shape(indices[0].shape if indices else ()))
        return aval

    def check_value(self, ref: AbstractRef, part: ShapedArray, value: ShapedArray) -> None:
        """Refuse a value that does not fill the part.  Raises: ShapeError or DTypeError."""
        if is_ref(value):
            raise errors.explained(
                errors.ArgumentError, "ref.C5",
                f"Attempting to store the Ref {value} in {ref}: a reference holds an array.",
                advice="Read it first: other[...].")
        if value.shape != part.shape:
            raise errors.explained(
                errors.ArgumentError, "ref.C3",
                f"Invalid shape for `{self.name}`. Ref shape: {ref.shape}. Expected shape: "
                f"{part.shape}. Value shape: {value.shape}.",
                advice="Nothing is stretched here: broadcast the value with jnp.broadcast_to or "
                "jnp.full_like.")
        if not vma_of(value) <= vma_of(part):
            raise errors.explained(
                errors.ArgumentError, "ref.C19",
                f"Invalid value for `{self.name}`: it differs along the mesh axes "
                f"{sorted(map(str, vma_of(value) - vma_of(part)))}, the reference {ref} does not.",
                advice="Begin the reference with a value that varies: jax.lax.pcast(x, axes, "
                "to='varying').")
        if value.dtype != part.dtype:
            raise errors.explained(
                errors.ArgumentError, "ref.C4",
                f"Invalid dtype for `{self.name}`. Ref dtype: {ref.dtype}. Value dtype: "
                f"{value.dtype}.",
                advice="Convert the value with .astype(ref.dtype).")

    def place(self, eqn: Any, namer: Any) -> str:
        """Return ``a[0,:]`` as the reference and the part of it print."""
        atoms = eqn.invars[1 + self.values:]
        words: Iterator[str] = iter([namer.atom(a).split(":")[0] for a in atoms])
        whole = "".join(indexer.text(words) for indexer in self.transforms)
        return f"{namer.atom(eqn.invars[0])}{whole or '[...]'}"

    def batched(self, size: int, dim: int | None, operands: Sequence[Any],
                dims: Sequence[int | None]) -> tuple[OnPart, list[Any], Layout]:
        """Return this operation on a stack along ``dim``, its index operands, and where the batch
        axis of the result is."""
        made: list[Indexer] = []
        indices: list[Any] = []
        layout = Layout(dim, None)
        pieces = zip(self.transforms, split_indices(self.transforms, operands),
                     split_indices(self.transforms, dims))
        for indexer, xs, ds in pieces:
            if layout.order is not None:
                raise NotImplementedError(
                    "vmap of a view (ref.at[…]) whose batch axis cannot stay where it is.")
            new, xs, layout = batch_indexer(indexer, size, layout.dim, xs, ds)
            made.append(new)
            indices += xs
        return type(self)(tuple(made)), indices, layout


class Layout:
    """Where the batch axis of a stack of parts is: at ``dim`` (None: not batched); or the axes
    ``order`` of the stack are those of (batch, one part)."""

    def __init__(self, dim: int | None, order: tuple[int, ...] | None):
        self.dim = dim
        self.order = order

    def out(self, x: Any) -> tuple[Any, int | None]:
        """Return a stack of parts that was read, and its batch axis."""
        return (x, self.dim) if self.order is None else (permute(x, self.order), 0)

    def fit(self, size: int, value: Any, dim: int | None) -> Any:
        """Return a value, batched along ``dim``, as the stack of parts to be written."""
        to = self.dim if self.order is None else 0
        (value,) = stacked(size, [value], [dim], to)
        if self.order is None:
            return value
        return permute(value, tuple(np.argsort(self.order).tolist()))


def batch_indexer(indexer: Indexer, size: int, dim: int | None, indices: Sequence[Any],
                  dims: Sequence[int | None]) -> tuple[Indexer, list[Any], Layout]:
    """Return the index into a stack along ``dim`` (None: the same array for all examples)."""
    shapes = [aval_of(x).shape[:d] + aval_of(x).shape[d + 1:] if d is not None else
              aval_of(x).shape for x, d in zip(indices, dims)]
    inner = shapes[0] if shapes else ()
    entries, shape = list(indexer.entries), list(indexer.shape)
    if dim is not None:
        entries.insert(dim, Span(0, size))
        shape.insert(dim, size)
    if all(d is None for d in dims) and not inner:
        new = Indexer(tuple(entries), tuple(shape))
        at = None if dim is None else sum(e is not None for e in entries[:dim])
        return new, list(indices), Layout(at, None)
    full = (size, *inner)
    stacks = [broadcast_in_dim(x, full, tuple(range(1, len(full)))) if d is None else
              moveaxis(x, d, 0) for x, d in zip(indices, dims)]
    if dim is not None:
        entries[dim] = None
        stacks.insert(sum(e is None for e in entries[:dim]), broadcasted_iota(np.int32, full, 0))
    new = Indexer(tuple(entries), tuple(shape))
    before, after = indexer.before(inner), new.before(full)
    if not inner or before == after:
        return new, stacks, Layout(after, None)
    spans = len(new.spans)
    block = [after + 1 + i for i in range(len(inner))]
    rest = [*range(after), *range(after + 1 + len(inner), spans + 1 + len(inner))]
    return new, stacks, Layout(None, (after, *rest[:before], *block, *rest[before:]))


@primitive("get")
class Get(OnPart):
    """Read a part of what a reference holds."""

    transforms: tuple[Indexer, ...]

    verb = "ref_get"
    values = 0
    effects = frozenset({ReadEffect(0)})

    def eager(self, ref, *indices):
        return arrays.read(self, ref, *indices)

    def typing(self, ref, *indices):
        part = self.part(ref, indices)
        chosen = frozenset().union(*map(vma_of, indices))
        return varying(part, vma_of(part) | chosen) if chosen else part

    def evaluate(self, ref, *indices):
        return numpy_read(ref, self.transforms, indices)

    def jvp(self, primals, tangents):
        (ref, *indices), (dref, *_) = primals, tangents
        out = bind(self, ref, *indices)
        return out, None if dref is None else bind(self, dref, *indices)

    def transpose(self, ct, ref, *indices):
        if ct is not None:
            add_to_cotangent(ref, ct, self.transforms, indices)
        return [None] * (1 + len(indices))

    def batch(self, size, xs, dims):
        (ref, *indices), (dim, *index_dims) = xs, dims
        prim, indices, layout = self.batched(size, dim, indices, index_dims)
        return layout.out(bind(prim, ref, *indices))

    def discharge(self, x, *indices):
        return [read(x, self.transforms, indices)], None

    def print_equation(self, eqn, namer):
        return f"{namer.binder(eqn.outvars[0])} <- {self.place(eqn, namer)}"


def add_to_cotangent(ref: LinearRef, ct: Any, transforms: Sequence[Indexer],
                     indices: Sequence[Any]) -> None:
    """Add ``ct`` to the part of the reference that collects the cotangent of ``ref``."""
    aval = ref.aval.inner_aval
    if ref.ct is None and not transforms:
        ref.ct = bind(NewRef(), as_held(ct, aval))
        return
    if ref.ct is None:
        ref.ct = bind(NewRef(), zeros_of(aval))
    bind(AddUpdate(tuple(transforms)), ref.ct, as_held(ct, aval), *indices)


@primitive("swap")
class Swap(OnPart):
    """Replace a part of what a reference holds, and give what was there."""

    transforms: tuple[Indexer, ...]

    verb = "ref_swap"
    values = 1
    effects = frozenset({WriteEffect(0)})

    def eager(self, ref, value, *indices):
        return arrays.change(self, True, ref, value, *indices)

    def typing(self, ref, value, *indices):
        part = self.part(ref, indices)
        self.check_value(ref, part, value)
        return part

    def evaluate(self, ref, value, *indices):
        old = numpy_read(ref, self.transforms, indices)
        numpy_write(ref, self.transforms, indices, lambda part: value)
        return old

    def jvp(self, primals, tangents):
        (ref, value, *indices), (dref, dvalue, *_) = primals, tangents
        if dref is None:
            refuse_tangent("a set/swap", ref, dvalue)
            return bind(self, ref, value, *indices), None
        if dvalue is None:
            dvalue = zeros_of(aval_of(value).to_tangent_aval())
        return bind(self, ref, value, *indices), bind(self, dref, dvalue, *indices)

    def transpose(self, ct, ref, value, *indices):
        none = [None] * len(indices)
        if ref.ct is None:
            if ct is not None:
                add_to_cotangent(ref, ct, self.transforms, indices)
            return [None, None, *none]
        if ct is None:
            ct = zeros_of(aval_of(value) if not isinstance(value, UndefinedPrimal) else value.aval)
        return [None, bind(self, ref.ct, ct, *indices), *none]

    def batch(self, size, xs, dims):
        (ref, value, *indices), (dim, value_dim, *index_dims) = xs, dims
        if dim is None:
            raise unbatched_ref("a set/swap", ref)
        prim, indices, layout = self.batched(size, dim, indices, index_dims)
        return layout.out(bind(prim, ref, layout.fit(size, value, value_dim), *indices))

    def discharge(self, x, value, *indices):
        new = write(x, self.transforms, indices, value)
        return [read(x, self.transforms, indices)], as_held(new, aval_of(x))

    def print_equation(self, eqn, namer):
        place = self.place(eqn, namer)
        value = namer.atom(eqn.invars[1])
        if namer.name(eqn.outvars[0]) == "_":
            return f"{place} <- {value}"
        return f"{namer.binder(eqn.outvars[0])}, {place} <- {place}, {value}"


@primitive("addupdate")
class AddUpdate(OnPart):
    """Add a value to a part of what a reference holds."""

    transforms: tuple[Indexer, ...]

    multiple_results = True
    verb = "ref_addupdate"
    values = 1
    effects = frozenset({AccumEffect(0)})

    def eager(self, ref, value, *indices):
        arrays.change(self, False, ref, value, *indices)
        return []

    def typing(self, ref, value, *indices):
        self.check_value(ref, self.part(ref, indices), value)
        return []

    def evaluate(self, ref, value, *indices):
        if self.transforms and self.transforms[-1].count and np.ndim(indices[-1]):
            add_rows(ref, self.transforms, indices, value)
        else:
            numpy_write(ref, self.transforms, indices, lambda part: part + value)
        return []

    def jvp(self, primals, tangents):
        (ref, value, *indices), (dref, dvalue, *_) = primals, tangents
        bind(self, ref, value, *indices)
        if dref is None:
            refuse_tangent("an addupdate", ref, dvalue)
        elif dvalue is not None:
            bind(self, dref, dvalue, *indices)
        return [], []

    def transpose(self, ct, ref, value, *indices):
        none = [None] * len(indices)
        if ref.ct is None:
            return [None, None, *none]
        return [None, bind(Get(self.transforms), ref.ct, *indices), *none]

    def batch(self, size, xs, dims):
        (ref, value, *indices), (dim, value_dim, *index_dims) = xs, dims
        if dim is None:
            raise unbatched_ref("an addupdate", ref)
        prim, indices, layout = self.batched(size, dim, indices, index_dims)
        bind(prim, ref, layout.fit(size, value, value_dim), *indices)
        return [], []

    def discharge(self, x, value, *indices):
        new = write(x, self.transforms, indices, value, adding=True)
        return [], as_held(new, aval_of(x))

    def print_equation(self, eqn, namer):
        return f"{self.place(eqn, namer)} += {namer.atom(eqn.invars[1])}"


def refuse_tangent(what: str, ref: Any, tangent: Any) -> None:
    """Refuse to write what has a tangent where none can be kept.  Raises: RefError."""
    aval = aval_of(ref)
    if tangent is None or getattr(aval, "kind", None) is not None:
        return
    raise errors.explained(
        RefError, "ref.grad",
        f"performing {what} operation with a differentiated value on a non-differentiated array "
        f"reference of type {aval}. Move the array reference to be an argument of the "
        "differentiated function?",
        advice="Or make the reference inside it; or write jax.lax.stop_gradient(value); or make it "
        "with new_ref(x, kind='no_grad_no_remat'), whose writes have no derivative.")


def unbatched_ref(what: str, ref: Any) -> Exception:
    return errors.explained(
        RefError, "ref.vmap",
        f"performing {what} operation with vmapped value on an unbatched array reference of type "
        f"{aval_of(ref)}. Move the array reference to be an argument to the vmapped function?",
        advice="All examples would write the same place. Give the reference an axis for examples "
        "and pass it as a mapped argument; or write what vmap returns.")


def accumulate(ref: Any, value: Any) -> None:
    """Add ``value`` to what ``ref`` holds."""
    bind(AddUpdate(()), ref, value)
