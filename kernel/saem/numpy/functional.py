"""How does a function of vectors or numbers become one of whole arrays?

``vectorize`` reads which axes the function takes itself (its signature) and maps over the others,
which broadcast; ``frompyfunc`` and ``select`` live elsewhere.

Read before: ``transform.mapping``.
Invariant: mapped axes broadcast by NumPy's rules (tests/kernel/numpy/test_calculus.py).
Source: the NumPy reference of vectorize and of generalized ufunc signatures.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from saem.core import errors
from saem.core.frames import boundary
from saem.numpy.creation import asarray
from saem.numpy.promote import broadcast_shapes, refuse_rank_promotion
from saem.ops import shape
from saem.transform.mapping import vmap

CoreDims = list[tuple[str, ...]]

_NAME = r"\w+"
_CORE = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_SIGNATURE = re.compile(rf"^{_CORE}(?:,{_CORE})*->{_CORE}(?:,{_CORE})*$")


def parse_signature(signature: str) -> tuple[CoreDims, CoreDims]:
    """Return the core axes of each input and output of '(n),(n,m)->(m)'.

    Raises: ValueError for another form.
    """
    compact = re.sub(r"\s", "", signature)
    if not _SIGNATURE.match(compact):
        raise errors.explained(
            errors.ArgumentError, "vectorize.C1", f"not a valid gufunc signature: {signature}",
            advice="For example '(n),(n,m)->(m)'.")
    left, right = compact.split("->")
    sides = [[tuple(re.findall(_NAME, core)) for core in re.findall(_CORE, side)]
             for side in (left, right)]
    return sides[0], sides[1]


def vectorize(pyfunc: Callable, *, excluded: Collection[int | str] = frozenset(),
              signature: str | None = None) -> Callable:
    """Return ``pyfunc`` mapped over the leading axes of its arguments, which broadcast.

    ``signature`` names the trailing axes it takes and returns itself; ``excluded`` arguments, by
    number or name, are passed as they are.
    Raises: ValueError if shapes or results do not fit the signature.

    >>> jnp.vectorize(lambda x, y: x @ y, signature="(n),(n)->()")(jnp.ones((3, 2)), jnp.ones(2))
    Array([2., 2., 2.], dtype=float32)
    """
    if not all(isinstance(key, (int, str)) for key in excluded):
        raise TypeError("jax.numpy.vectorize can only exclude integer or string arguments, "
                        f"but excluded={excluded!r}")
    if any(isinstance(key, int) and key < 0 for key in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")
    which = f"on vectorized function with {excluded=!r} and {signature=!r}"

    @functools.wraps(pyfunc)
    @boundary
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        cores = None if signature is None else parse_signature(signature)
        names = sorted(k for k in kwargs if k not in excluded)
        numbers = [i for i, x in enumerate(args) if i not in excluded and x is not None]
        arrays = [asarray(x) for x in [*(args[i] for i in numbers), *(kwargs[k] for k in names)]]
        ins, outs = [()] * len(arrays), None
        if cores is not None:  # an argument that is None keeps its place in the signature
            missing = [i for i, x in enumerate(args) if x is None and i not in excluded]
            ins, outs = [core for i, core in enumerate(cores[0]) if i not in missing], cores[1]
        if len(ins) != len(arrays):
            raise errors.explained(
                errors.ArgumentTypeError, "vectorize.C2",
                f"wrong number of positional arguments: expected {len(ins)}, got {len(arrays)} "
                f"{which}", advice="An argument fits each part before the arrow.")
        return _map(others_as_given(pyfunc, args, kwargs, numbers, names), arrays, ins, outs, which,
                    signature)

    return vectorized


def others_as_given(fun: Callable, args: Sequence[Any], kwargs: dict[str, Any],
                    numbers: Sequence[int], names: Sequence[str]) -> Callable:
    """Return ``fun`` as a function of the arguments of these numbers, then of those names."""

    def call(*values: Any) -> Any:
        filled = list(args)
        for i, value in zip(numbers, values):
            filled[i] = value
        return fun(*filled, **{**kwargs, **dict(zip(names, values[len(numbers):]))})

    return call


def _map(call: Callable, arrays: list[Any], ins: CoreDims, outs: CoreDims | None,
         which: str, signature: str | None) -> Any:
    """Call a function of core dimensions once per place of the leading axes, broadcast together."""
    sizes: dict[str, int] = {}
    leads = [leading_axes(x, core, sizes, which) for x, core in zip(arrays, ins)]
    joined = broadcast_shapes(*leads)
    shapes = [x.shape for x in arrays]
    if len({len(lead) for lead, whole in zip(leads, shapes) if whole}) > 1:
        refuse_rank_promotion(
            f"operands with shapes {shapes} require rank promotion for jnp.vectorize function with "
            f"signature {signature}.")
    mapped = call if outs is None else checked_results(call, outs, sizes, which)
    # An argument that lacks an axis, or has size 1 there while others have more, is shared.
    mapped_axes = []
    squeezed = []
    for x, lead in zip(arrays, leads):
        missing = len(joined) - len(lead)
        thin = [i for i, n in enumerate(lead) if n == 1 and joined[missing + i] != 1]
        squeezed.append(shape.squeeze(x, thin) if thin else x)
        mapped_axes.append([0 if i >= missing and i - missing not in thin else None
                            for i in range(len(joined))])
    for axes in reversed(list(zip(*mapped_axes))):  # the innermost axis first
        mapped = vmap(mapped, in_axes=axes) if any(a is not None for a in axes) else mapped
    return mapped(*squeezed)


def leading_axes(x: Any, core: tuple[str, ...], sizes: dict[str, int], which: str
                 ) -> tuple[int, ...]:
    """Return the shape before the core dimensions of ``x``, noting the sizes of those."""
    if x.ndim < len(core):
        raise errors.explained(
            errors.ArgumentError, "vectorize.C3",
            f"input with shape {x.shape} does not have enough dimensions for all core "
            f"dimensions {core} {which}",
            advice="Add axes to the argument.")
    split = x.ndim - len(core)
    _record(sizes, core, x.shape[split:], which)
    return x.shape[:split]


def _record(sizes: dict[str, int], core: tuple[str, ...], shape_part: tuple[int, ...],
            which: str) -> None:
    """Note the size of each named axis.

    Raises: ValueError if it differs from what was noted.
    """
    for name, n in zip(core, shape_part):
        if sizes.setdefault(name, n) != n:
            raise errors.explained(
                errors.ArgumentError, "vectorize.C4",
                f"inconsistent size for core dimension {name!r}: {n} vs {sizes[name]} {which}",
                advice="Axes of one name have one size.")


def checked_results(call: Callable, outs: CoreDims, sizes: dict[str, int], which: str
                    ) -> Callable:
    """Return ``call`` with its results held to the signature."""

    def checked(*values: Any) -> Any:
        result = call(*values)
        if len(outs) > 1 and not isinstance(result, tuple):
            raise errors.explained(
                errors.ArgumentTypeError, "vectorize.C7",
                f"output must be a tuple when multiple outputs are expected, got: {result!r}",
                advice="Return one result for each part after the arrow.")
        parts = result if isinstance(result, tuple) else (result,)
        if len(parts) != len(outs):
            raise errors.explained(
                errors.ArgumentTypeError, "vectorize.C5",
                f"wrong number of output arguments: expected {len(outs)}, got {len(parts)} {which}",
                advice="Return one result for each part after the arrow.")
        known = dict(sizes)
        for part, core in zip(parts, outs):
            have = _shape_of(part)
            if len(have) != len(core):
                raise errors.explained(
                    errors.ArgumentError, "vectorize.C6",
                    f"output shape {have} does not match core dimensions {core} {which}",
                    advice="The function returns other axes than its signature has.")
            _record(known, core, have, which)
        return result

    return checked


def _shape_of(result: Any) -> tuple[int, ...]:
    """Return the shape that a result says it has, or a list of such results has."""
    if isinstance(result, (list, tuple)) and not hasattr(result, "shape"):
        return (len(result), *(_shape_of(result[0]) if result else ()))
    return tuple(getattr(result, "shape", ()))
