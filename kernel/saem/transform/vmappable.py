"""How are objects mapped that are neither arrays nor pytrees of arrays?

Their class is registered with two functions.  One makes the element, the object for one example,
from a stack and what ``in_axes`` has for it; the other makes the stack from an element that the
mapped function returned and what ``out_axes`` has for it.  ``vmap`` puts each such object into a
``Box``, which is one leaf: the engine sees no batch axis in it, only in the arrays inside.

Read before: ``transform.vmap``.  Read after: ``transform.mapping``.
Invariant: while no class is registered, ``vmap`` costs what it costs without this file.
Source: observed behaviour of jax.interpreters.batching.register_vmappable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from saem.core import dtypes, tree
from saem.core.avals import aval_of, is_array_like
from saem.core.trace import current, state
from saem.ops.filling import iota
from saem.ops.shape import canonical_axis
from saem.transform.derivatives import as_array
from saem.transform.vmap import BatchTrace


class Rules(NamedTuple):
    """What was registered for a class."""

    to_elt: Callable
    from_elt: Callable
    make_iota: Callable[[int], Any]


vmappables: dict[type, Rules] = {}


def register_vmappable(data_type: type, spec_type: type, axis_size_type: type, to_elt: Callable,
                       from_elt: Callable, make_iota: Callable | None) -> None:
    """Let ``vmap`` map over objects of the class ``data_type``.

    ``to_elt(element_of, index, stack, spec)`` makes an element: ``element_of(x, axis)`` is an
    array for one example, ``index()`` the number of the example.  ``from_elt(stack_of, size,
    element, spec)`` makes a stack of an element: ``stack_of(size, x, axis)`` is a stacked array.
    ``make_iota(size)`` gives the numbers of all examples, by default those of ``arange``.  A spec
    is an int here, and so is the size of an axis.
    """
    for kind, what in ((spec_type, "spec_type"), (axis_size_type, "axis_size_type")):
        if kind is not int:
            raise NotImplementedError(f"register_vmappable takes {what}=int only, got {kind}.")
    vmappables[data_type] = Rules(to_elt, from_elt,
                                  make_iota or (lambda size: iota(dtypes.default_dtype(int), size)))


def unregister_vmappable(data_type: type) -> None:
    """Let ``vmap`` see objects of the class ``data_type`` as it did before."""
    vmappables.pop(data_type, None)


class Box:
    """A leaf that holds an object of a registered class."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


def is_registered(x: Any) -> bool:
    """Return whether ``vmap`` maps over ``x`` by rules registered for its class."""
    return type(x) in vmappables


def boxed(values: Any) -> Any:
    """Return the pytree ``values`` with a box around each object of a registered class."""
    return tree.map_(lambda x: Box(x) if is_registered(x) else x, values, is_leaf=is_registered)


def boxing(fun: Callable) -> Callable:
    """Return ``fun`` with its result ``boxed``."""
    return lambda *args, **kwargs: boxed(fun(*args, **kwargs))


def on_elements(flat: Callable[..., list[Any]], specs: Sequence[Any], size: int,
                out_specs: Callable[[list[Any]], Sequence[Any]], place: Callable[..., Any]
                ) -> Callable[..., list[Any]]:
    """Return ``flat``, a function of leaves, on leaves whose boxes hold stacks, as its results do.

    ``specs`` belong to the arguments, ``out_specs(results)`` to the results; ``place(array, axis,
    spec, size)`` moves axes.
    """

    def run(*leaves: Any) -> list[Any]:
        outs = flat(*[element(x, spec, size) for x, spec in zip(leaves, specs)])
        return [stack(x, spec, size, place) if type(x) is Box else x
                for x, spec in zip(outs, out_specs(outs))]

    return run


def element(x: Any, spec: int | None, size: int) -> Any:
    """Return the element of the leaf ``x`` for one example of the batch trace that is current."""
    if type(x) is not Box:
        return x
    trace = state.trace
    assert isinstance(trace, BatchTrace)
    rules = vmappables[type(x.value)]

    def element_of(inner: Any, axis: int | None) -> Any:
        if is_registered(inner):
            return element(Box(inner), axis, size)
        if axis is None:
            return inner
        ndim = len(aval_of(inner).shape) if is_array_like(inner) else 0
        return trace.wrap(as_array(inner), canonical_axis(axis, ndim))

    def index() -> Any:
        with current(trace.parent):
            numbers = rules.make_iota(size)
        return trace.wrap(numbers, 0)

    return rules.to_elt(element_of, index, x.value, spec)


def stack(x: Box, spec: int | None, size: int, place: Callable[..., Any]) -> Box:
    """Return the stack of an element, in a box; ``place(array, axis, spec, size)`` moves axes.

    Runs while the batch trace of ``size`` examples is current.
    """
    trace = state.trace
    assert isinstance(trace, BatchTrace)

    def stack_of(count: int, inner: Any, spec: int | None) -> Any:
        if is_registered(inner):
            return stack(Box(inner), spec, count, place).value
        value, axis = trace.split(inner)
        with current(trace.parent):
            return place(value, axis, spec, count)

    return Box(vmappables[type(x.value)].from_elt(stack_of, size, x.value, spec))
