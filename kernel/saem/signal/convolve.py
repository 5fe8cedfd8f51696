"""How does a kernel slide over an array, with a sum of products at each place?

``conv_general_dilated`` is every convolution: operand and kernel may be dilated (have gaps between
their elements), the operand padded, windows stepped; features and examples may be split into groups
that do not mix.  It is bilinear, so its transposes are convolutions again: by the operand, with the
kernel reversed; by the kernel, with examples and features exchanged.

Read before: ``ops.contract``, ``signal.convolution_shapes``.  Read after: ``saem.lax``.
Invariant: the kernel is not reversed (what signal processing calls correlation), except in
transposes by the operand.
Source: StableHLO specification, convolution; Dumoulin & Visin, "A guide to convolution arithmetic
for deep learning" (2016).
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from saem.compile.text import strong_aval
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.dimensions import is_static
from saem.core.primitive import Primitive, UndefinedPrimal, primitive
from saem.core.sharded import like_type
from saem.core.trace import bind
from saem.linalg.algebra import eye
from saem.ops import sharding_rules
from saem.ops.contract import Precision, canonicalize_precision, dot_general
from saem.ops.convert import convert_element_type
from saem.ops.linear import (
    add_cotangents,
    broadcast_in_dim,
    moveaxis,
    permute,
    zeros_of,
)
from saem.ops.shape import reshape, rev
from saem.placement.shardings import requested_sharding
from saem.signal.convolution_shapes import (
    Axes,
    ConvDimensionNumbers,
    conv_dimension_numbers,
    in_order,
    refuse,
    transposed_pads,
)
from saem.signal.pooling import Sliding, laid_out, padtype_to_pads, stretched, window_places
from saem.typing import Array, ArrayLike, DTypeLike

Pads = tuple[tuple[int, int], ...]


@primitive("conv_general_dilated")
class ConvGeneralDilated(Primitive):
    """The sums of products of a kernel ``rhs`` with the windows of ``lhs``."""

    window_strides: Axes
    padding: Pads
    lhs_dilation: Axes
    rhs_dilation: Axes
    dimension_numbers: ConvDimensionNumbers
    feature_group_count: int
    batch_group_count: int
    precision: Any = None
    preferred_element_type: Any = None
    out_sharding: Any = None

    folds_many = True
    bilinear = True
    is_product = True
    handed_on = ("precision",)
    shard_results = sharding_rules.convolution
    requested_sharding = property(operator.attrgetter("out_sharding"))

    def changed(self, **fields: Any) -> ConvGeneralDilated:
        return ConvGeneralDilated(**{**self.params, **fields})

    def typing(self, lhs, rhs):
        check(self, lhs, rhs)
        numbers = self.dimension_numbers
        (n, _, *room), (o, _, *window) = ([x.shape[d] for d in spec] for x, spec in zip(
            (lhs, rhs), numbers))
        how = Sliding(tuple(window), self.window_strides, self.padding, self.lhs_dilation,
                      self.rhs_dilation)
        sizes = (n // self.batch_group_count, o, *how.out_shape(room))
        return ShapedArray(in_order(sizes, numbers.out_spec),
                           self.preferred_element_type or lhs.dtype,
                           lhs.weak_type and rhs.weak_type)

    def evaluate(self, lhs, rhs):
        aval = self.typing(ShapedArray(lhs.shape, lhs.dtype), ShapedArray(rhs.shape, rhs.dtype))
        numbers = self.dimension_numbers
        wide = np.result_type(*(
            np.int64 if dtypes.is_bool(d) else np.float32
            if dtypes.is_float(d) and dtypes.itemsize_bits(d) < 32 else d
            for d in (lhs.dtype, rhs.dtype)))
        x = np.transpose(lhs, numbers.lhs_spec).astype(wide)
        k = np.transpose(rhs, numbers.rhs_spec).astype(wide)
        strides, window = self.window_strides, k.shape[2:]
        whole = Sliding((1, 1, *window), (1, 1, *strides), ((0, 0), (0, 0), *self.padding),
                        (1, 1, *self.lhs_dilation), (1, 1, *self.rhs_dilation))
        grid = laid_out(x, whole, 0)
        out = tuple(aval.shape[d] for d in numbers.out_spec)
        b, f = self.batch_group_count, self.feature_group_count
        groups, total = b * f, np.zeros((out[1], out[0], *out[2:]), wide)
        for place, there in zip(window_places(whole, (*grid.shape[:2], *out[2:])),
                                itertools.product(*map(range, window))):
            part = grid[place]  # examples, input features, places
            per = k[(slice(None), slice(None), *there)]
            for g in range(groups):
                rows = slice(g * out[1] // groups, (g + 1) * out[1] // groups)
                examples = part[g * out[0]:(g + 1) * out[0]] if b > 1 else part
                features = part.shape[1] // f
                inputs = slice(g * features, (g + 1) * features) if f > 1 else slice(None)
                total[rows] += np.tensordot(per[rows], examples[:, inputs], (1, 1))
        made = np.moveaxis(total, 0, 1)
        made = np.transpose(made, np.argsort(numbers.out_spec))
        return made != 0 if aval.dtype == bool else made.astype(aval.dtype)

    def lower(self, ctx, lhs, rhs):
        out = ctx.out_avals[0]
        if not out.size or not ctx.avals[lhs].size or not ctx.avals[rhs].size:
            return ctx.constant(0, out)
        if not dtypes.is_complex(out.dtype):
            return self.write(ctx, lhs, rhs, out)
        # Three real products: (a + ib)(c + id) = (k1 - k3) + i (k1 + k2).
        part = out.update(dtype=dtypes.real_dtype(out.dtype))
        a, b, c, d = (ctx.emit(f"stablehlo.{op} {x}", x,
                               out=ctx.avals[x].update(dtype=part.dtype))
                      for x in (lhs, rhs) for op in ("real", "imag"))

        def op(name: str, x: str, y: str) -> str:
            return ctx.elementwise(f"stablehlo.{name}", x, y, out=ctx.avals[x])

        k1 = self.write(ctx, op("add", a, b), c, part)
        k2 = self.write(ctx, a, op("subtract", d, c), part)
        k3 = self.write(ctx, b, op("add", c, d), part)
        real, imag = op("subtract", k1, k3), op("add", k1, k2)
        return ctx.emit(f"stablehlo.complex {real}, {imag}", real, imag, out=out)

    def write(self, ctx: Any, lhs: str, rhs: str, out: ShapedArray) -> str:
        """Write one convolution of real numbers."""
        numbers = self.dimension_numbers

        def places(spec: Sequence[int], *letters: str) -> str:
            return f"[{', '.join(in_order([*letters, *map(str, range(len(spec) - 2))], spec))}]"

        names = ", ".join(f"#stablehlo<precision {p.name}>"
                          for p in self.precision or (Precision.DEFAULT,) * 2)
        count = len(self.window_strides)
        padding, dilation = self.padding, self.lhs_dilation
        if not is_static([n for pair in padding for n in pair]):
            lhs = self.padded(ctx, lhs)
            padding, dilation = ((0, 0),) * count, (1,) * count
        window = (f"stride = {list(self.window_strides)}, pad = "
                  f"{[list(pair) for pair in padding]}, lhs_dilate = {list(dilation)}, "
                  f"rhs_dilate = {list(self.rhs_dilation)}, "
                  f"reverse = [{', '.join(['false'] * count)}]") if count else ""
        return ctx.emit(
            f"stablehlo.convolution({lhs}, {rhs}) dim_numbers = "
            f"{places(numbers.lhs_spec, 'b', 'f')}x{places(numbers.rhs_spec, 'o', 'i')}->"
            f"{places(numbers.out_spec, 'b', 'f')}, window = {{{window}}}",
            lhs, rhs, out=out, attributes={
                "batch_group_count": f"{self.batch_group_count} : i64",
                "feature_group_count": f"{self.feature_group_count} : i64",
                "precision_config": f"[{names}]"})

    def padded(self, ctx: Any, x: str) -> str:
        """Write the operand with its padding and gaps, whose sizes are not all known."""
        aval = ctx.avals[x]
        config = [(0, 0, 0)] * aval.ndim
        axes = self.dimension_numbers.lhs_spec[2:]
        for axis, (low, high), dilation in zip(axes, self.padding, self.lhs_dilation):
            config[axis] = (low, high, dilation - 1)
        shape = [n + low + high + (n - 1) * gap
                 for n, (low, high, gap) in zip(aval.shape, config)]
        zero = ctx.constant(0, strong_aval((), aval.dtype))
        low, high, gaps = zip(*config)
        return ctx.pad(x, zero, low, high, strong_aval(tuple(shape), aval.dtype), gaps)

    def jvp(self, primals, tangents):
        (x, k), (tx, tk) = primals, tangents
        from_x = None if tx is None else bind(self, tx, k)
        from_k = None if tk is None else bind(self, x, tk)
        return bind(self, x, k), add_cotangents(from_x, from_k)

    def transpose(self, ct, lhs, rhs):
        known = rhs if isinstance(lhs, UndefinedPrimal) else lhs
        wanted = lhs if isinstance(lhs, UndefinedPrimal) else rhs
        if not aval_of(ct).size:
            made = zeros_of(wanted.aval)
        else:
            dtype = aval_of(ct).dtype
            if aval_of(known).dtype != dtype:  # the result was wider than the operands
                known = convert_element_type(known, dtype)
            pull = self.pull_lhs if wanted is lhs else self.pull_rhs
            made = pull(ct, known, wanted.aval)
            if aval_of(made).dtype != wanted.dtype:
                made = convert_element_type(made, wanted.dtype)
        return [made, None] if wanted is lhs else [None, made]

    def pull_lhs(self, ct: Any, rhs: Any, lhs: ShapedArray) -> Any:
        """Return the cotangent of the operand: ct convolved with the kernel reversed."""
        ls, rs, os = self.dimension_numbers
        shape, cts = aval_of(rhs).shape, aval_of(ct).shape
        groups = max(self.feature_group_count, self.batch_group_count)
        o, i = rs[0], rs[1]
        kernel = regrouped(rhs, o, i, groups) if groups > 1 else rhs
        kernel = rev(kernel, rs[2:])
        pads = []
        for axis, size in enumerate(shape[d] for d in rs[2:]):
            window = stretched(size, self.rhs_dilation[axis])
            n = stretched(lhs.shape[ls[2 + axis]], self.lhs_dilation[axis])
            out = stretched(cts[os[2 + axis]], self.window_strides[axis])
            low = self.padding[axis][0]
            pads.append((window - 1 - low, n + low - out))
        back = self.changed(
            window_strides=self.lhs_dilation, padding=tuple(pads),
            lhs_dilation=self.window_strides, feature_group_count=groups, batch_group_count=1,
            dimension_numbers=ConvDimensionNumbers(os, (i, o, *rs[2:]), ls),
            out_sharding=like_type(lhs, aval_of(ct)) if self.batch_group_count == 1 else None)
        made = bind(back, ct, kernel)
        if self.batch_group_count > 1:
            made = regrouped(made, ls[1], ls[0], self.batch_group_count)
        return made

    def pull_rhs(self, ct: Any, lhs: Any, rhs: ShapedArray) -> Any:
        """Return the cotangent of the kernel: the operand convolved with ct."""
        ls, rs, os = self.dimension_numbers
        shape, cts = aval_of(lhs).shape, aval_of(ct).shape
        pads = []
        for axis, size in enumerate(shape[d] for d in ls[2:]):
            window = stretched(rhs.shape[rs[2 + axis]], self.rhs_dilation[axis])
            n = stretched(size, self.lhs_dilation[axis])
            out = stretched(cts[os[2 + axis]], self.window_strides[axis])
            low = self.padding[axis][0]
            pads.append((low, window - 1 + out - n - low))
        numbers = ConvDimensionNumbers((ls[1], ls[0], *ls[2:]), (os[1], os[0], *os[2:]),
                                       (rs[1], rs[0], *rs[2:]))
        back = self.changed(
            window_strides=self.rhs_dilation, padding=tuple(pads),
            rhs_dilation=self.window_strides, dimension_numbers=numbers,
            feature_group_count=self.batch_group_count,
            batch_group_count=self.feature_group_count, out_sharding=like_type(rhs, aval_of(ct)))
        return bind(back, lhs, ct)

    def batch(self, size, xs, dims):
        (lhs, rhs), (dl, dr) = xs, dims
        ls, rs, os = self.dimension_numbers
        b, f = self.batch_group_count, self.feature_group_count
        if dr is None:  # more examples
            out = bind(self, merged(lhs, dl, ls[0], b), rhs)
            return parted(out, os[0], size), 0
        if dl is None:  # more output features
            out = bind(self, lhs, merged(rhs, dr, rs[0], max(b, f)))
            return parted(out, os[1], size, max(b, f)), 0
        if not size:
            one = self.typing(without(lhs, dl), without(rhs, dr))
            return zeros_of(one.update(shape=(0, *one.shape))), 0
        kernel = merged(rhs, dr, rs[0])
        if b > 1:  # each example is a group of examples
            out = bind(self.changed(batch_group_count=b * size), merged(lhs, dl, ls[0]), kernel)
        else:  # each example is a group of features
            out = bind(self.changed(feature_group_count=f * size), merged(lhs, dl, ls[1]), kernel)
        return parted(out, os[1], size), 0


def without(x: Any, dim: int) -> ShapedArray:
    """Return the aval of one example of a stack."""
    aval = aval_of(x)
    return ShapedArray((*aval.shape[:dim], *aval.shape[dim + 1:]), aval.dtype)


def regrouped(x: Any, source: int, target: int, groups: int) -> Any:
    """Return ``x`` whose axis ``source`` = (groups, rest) has the groups moved to ``target``."""
    shape = aval_of(x).shape
    x = reshape(x, (*shape[:source], groups, shape[source] // groups, *shape[source + 1:]))
    axes = [d for d in range(len(shape) + 1) if d != source]
    axes.insert(target, source)  # axis ``target`` of the rest now stands behind the groups
    x = permute(x, tuple(axes))
    sizes = aval_of(x).shape
    return reshape(x, (*sizes[:target], groups * sizes[target + 1], *sizes[target + 2:]))


def merged(x: Any, dim: int, axis: int, groups: int = 1) -> Any:
    """Return ``x`` with its batch axis ``dim`` in front of each group of its example's ``axis``."""
    x = moveaxis(x, dim, axis)
    shape = aval_of(x).shape
    size, n = shape[axis], shape[axis + 1]
    if groups > 1:
        x = reshape(x, (*shape[:axis + 1], groups, n // groups, *shape[axis + 2:]))
        x = moveaxis(x, axis, axis + 1)
    return reshape(x, (*shape[:axis], size * n, *shape[axis + 2:]))


def parted(x: Any, axis: int, size: int, groups: int = 1) -> Any:
    """Return ``x`` with the batch axis, which stands in each group of ``axis``, in front."""
    shape = aval_of(x).shape
    n = shape[axis] // (size * groups) if size else 0
    if groups == 1:
        return moveaxis(reshape(x, (*shape[:axis], size, n, *shape[axis + 1:])), axis, 0)
    x = reshape(x, (*shape[:axis], groups, size, n, *shape[axis + 1:]))
    x = moveaxis(x, axis + 1, 0)
    return reshape(x, (size, *shape[:axis], groups * n, *shape[axis + 1:]))


# -- what fits -------------------------------------------------------------------------------------


def check_preferred(dtype: Any, preferred: Any) -> None:
    """Refuse a ``preferred`` type that does not hold sums of products of ``dtype``."""
    whole, real = dtypes.is_integer, dtypes.is_float
    fits = (dtype == preferred or dtypes.is_bool(dtype)
            or (whole(dtype) and (whole(preferred) or real(preferred)))
            or (real(dtype) and real(preferred))
            or (dtypes.is_complex(dtype) and dtypes.is_complex(preferred)))
    wrong = errors.ArgumentTypeError
    if not fits:
        raise refuse(21, "Input type is incompatible with `preferred_element_type`. It is "
                     f"{dtype.name}, not {preferred.name}.", "Integers give integers or "
                     "floats, floats give floats, complex numbers give complex numbers.", wrong)
    if dtypes.itemsize_bits(preferred) < dtypes.itemsize_bits(dtype):
        raise refuse(22, "`preferred_element_type` must not be narrower than the original type, "
                     f"got {preferred.name} for {dtype.name}.", "Convert the result.", wrong)
    if whole(dtype) and dtypes.is_unsigned(preferred) and not dtypes.is_unsigned(dtype):
        raise refuse(23, "`preferred_element_type` must have the same signedness as the original "
                     f"type, got {preferred.name} for {dtype.name}.", "Convert the result.", wrong)


def check(prim: ConvGeneralDilated, lhs: ShapedArray, rhs: ShapedArray) -> None:
    """Refuse operands that do not fit ``prim`` or each other.

    Raises: TypeError for ranks and dtypes, ValueError for sizes.
    """
    name = "conv_general_dilated"
    wrong = errors.ArgumentTypeError
    if lhs.dtype != rhs.dtype:
        raise refuse(1, f"lax.{name} requires arguments to have the same dtypes, got "
                     f"{lhs.dtype.name}, {rhs.dtype.name}.", "Convert one of them.", wrong)
    if lhs.ndim != rhs.ndim:
        raise refuse(2, f"{name} requires lhs and rhs ndim to be equal, got {lhs.ndim} and "
                     f"{rhs.ndim}.", "A stack of examples has a batch axis.", wrong)
    count = lhs.ndim - 2
    for what, values in (("window_strides", prim.window_strides),
                         ("padding", prim.padding), ("lhs_dilation", prim.lhs_dilation),
                         ("rhs_dilation", prim.rhs_dilation)):
        if len(values) != count:
            raise refuse(3, f"{name} window and {what} must have the same number of dimensions, "
                         f"but got {count} and {len(values)}", "One entry for each spatial axis.")
    if any(s < 1 for s in prim.window_strides):
        raise refuse(4, f"{name}: expects window to have positive stride, got "
                     f"{prim.window_strides}.")
    for dilation in (prim.lhs_dilation, prim.rhs_dilation):
        if any(d < 1 for d in dilation):
            raise refuse(5, f"All dilations must be positive, got {dilation}.",
                         "1 means no gaps.", wrong)
    check_padding(prim, lhs)
    check_groups(prim, lhs, rhs)


def check_padding(prim: ConvGeneralDilated, lhs: ShapedArray) -> None:
    """Refuse negative padding that takes away more than there is.

    Raises: ValueError.
    """
    room = tuple(stretched(lhs.shape[d], gaps) for d, gaps in zip(
        prim.dimension_numbers.lhs_spec[2:], prim.lhs_dilation))
    if is_static(room) and any(n + low + high < 0 for n, (low, high) in zip(room, prim.padding)):
        raise refuse(26, "Negative padding is larger than the size of the corresponding "
                     f"dimension: got padding={prim.padding} for lhs_shape[2:]={room}.",
                     "A negative entry removes so many elements at that end.")


def check_groups(prim: ConvGeneralDilated, lhs: ShapedArray, rhs: ShapedArray) -> None:
    """Refuse numbers of groups that do not divide examples and channels.

    Raises: ValueError.
    """
    name = "conv_general_dilated"
    ls, rs, _ = prim.dimension_numbers
    n, c = lhs.shape[ls[0]], lhs.shape[ls[1]]
    o, i = rhs.shape[rs[0]], rhs.shape[rs[1]]
    f, b = prim.feature_group_count, prim.batch_group_count
    for what, count in (("feature_group_count", f), ("batch_group_count", b)):
        if count < 1:
            raise refuse(6, f"{name} {what} must be a positive integer, got {count}.")
    if c % f:
        raise refuse(7, f"{name} feature_group_count must divide lhs feature dimension size, but "
                     f"{f} does not divide {c}.")
    if c // f != i:
        raise refuse(8, f"{name} lhs feature dimension size divided by feature_group_count must "
                     f"equal the rhs input feature dimension size, but {c} // {f} != {i}.",
                     f"The operands are {lhs.str_short(True)} and {rhs.str_short(True)}.")
    if o % f:
        raise refuse(9, f"{name} rhs output feature dimension size must be a multiple of "
                     f"feature_group_count, but {o} is not a multiple of {f}.")
    if n % b:
        raise refuse(10, f"{name} batch_group_count must divide lhs batch dimension size, but {b} "
                     f"does not divide {n}.")
    if o % b:
        raise refuse(11, f"{name} rhs output feature dimension size must be a multiple of "
                     f"batch_group_count, but {o} is not a multiple of {b}.")
    if f > 1 and b > 1:
        raise refuse(12, f"At most one of batch_group_count and feature_group_count may be > 1, "
                     f"got batch_group_count={b} and feature_group_count={f}")


# -- functions, with the names and signatures of jax.lax -------------------------------------------


def _ints(values: Any, count: int) -> Axes:
    return (1,) * count if values is None else tuple(int(v) for v in values)


def _given_pads(padding: Sequence[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """Return the pairs that a user gave for ``count`` spatial axes.

    Raises: ValueError for what are no pairs, TypeError for another number of them.
    """
    try:
        pads = [(int(low), int(high)) for low, high in padding]
    except (ValueError, TypeError) as error:
        raise refuse(20, "padding argument to conv_general_dilated should be a string or a "
                     f"sequence of (low, high) pairs, got {padding}") from error
    if len(pads) != count:
        raise refuse(18, "Wrong number of explicit pads for convolution: expected "
                     f"{count}, got {len(pads)}.", kind=errors.ArgumentTypeError)
    return pads


def conv_general_dilated(
        lhs: Array, rhs: Array, window_strides: Sequence[int],
        padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None,
        rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None,
        feature_group_count: int = 1, batch_group_count: int = 1, precision: Any = None,
        preferred_element_type: DTypeLike | None = None, out_sharding: Any = None) -> Array:
    """Return the sums of products of the kernel ``rhs`` with the windows of ``lhs``.

    ``padding``: 'SAME', 'SAME_LOWER', 'VALID', or a pair for each spatial axis; negative numbers
    cut.  ``dimension_numbers``: None for (N, C, …), (O, I, …), (N, C, …), or three strings such as
    ('NHWC', 'HWIO', 'NHWC').  ``feature_group_count``: features are split into groups, each with
    its own part of the kernel; ``batch_group_count``: examples are.

    Raises: TypeError for ranks and dtypes, ValueError for sizes that do not fit.

    >>> x = jnp.arange(4.).reshape(1, 1, 4)
    >>> lax.conv_general_dilated(x, jnp.ones((1, 1, 2)), (1,), "VALID")
    Array([[[1., 3., 5.]]], dtype=float32)
    """
    x, k = aval_of(lhs), aval_of(rhs)
    numbers = conv_dimension_numbers(x.shape, k.shape, dimension_numbers)
    numbers = ConvDimensionNumbers(*(tuple(map(int, spec)) for spec in numbers))
    count = len(numbers.lhs_spec) - 2
    left, right = _ints(lhs_dilation, count), _ints(rhs_dilation, count)
    strides = _ints(window_strides, count)
    if not isinstance(padding, str):
        pads = _given_pads(padding, count)
    elif any(d != 1 for d in left):
        raise refuse(19, "String padding is not implemented for transposed convolution using "
                     "this op. Please either exactly specify the required padding or use "
                     "conv_transpose.")
    elif len(strides) == count and len(right) == count and 0 not in strides:
        window = [stretched(k.shape[d], r) for d, r in zip(numbers.rhs_spec[2:], right)]
        pads = padtype_to_pads([x.shape[d] for d in numbers.lhs_spec[2:]], window, strides, padding)
    else:  # the operation refuses these strides or dilations
        pads = [(0, 0)] * count
    preferred = None if preferred_element_type is None else dtypes.canonicalize(
        preferred_element_type, explicit=True, where="conv_general_dilated")
    if preferred is not None:
        check_preferred(aval_of(lhs).dtype, preferred)
    return bind(ConvGeneralDilated(
        strides, tuple(pads), left, right, numbers, int(feature_group_count),
        int(batch_group_count), canonicalize_precision(precision), preferred,
        requested_sharding(out_sharding, aval_of(lhs).ndim, "conv_general_dilated")),
        lhs, rhs)


def conv(lhs: Array, rhs: Array, window_strides: Sequence[int], padding: str, precision: Any = None,
         preferred_element_type: DTypeLike | None = None) -> Array:
    """Return the convolution of ``lhs`` (N, C, …) with ``rhs`` (O, I, …).

    >>> lax.conv(jnp.ones((1, 1, 3, 3)), jnp.ones((1, 1, 2, 2)), (1, 1), "VALID")
    Array([[[[4., 4.],
             [4., 4.]]]], dtype=float32)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_with_general_padding(
        lhs: Array, rhs: Array, window_strides: Sequence[int],
        padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None,
        rhs_dilation: Sequence[int] | None, precision: Any = None,
        preferred_element_type: DTypeLike | None = None) -> Array:
    """Return the convolution of ``lhs`` (N, C, …) with ``rhs`` (O, I, …), both dilated.

    >>> lax.conv_with_general_padding(jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2)), (1,), [(1, 0)],
    ...     None, None)
    Array([[[1., 2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
                                precision=precision,
                                preferred_element_type=preferred_element_type)


def _features_last(count: int) -> tuple[str, str, str]:
    """Return dimension numbers with ``count`` spatial axes before the features, at most three."""
    if not 0 <= count <= 3:
        raise refuse(25, f"No 4+ dimensional dimension_number defaults, got {count} spatial "
                     "axes.", "Give dimension_numbers.")
    letters = "HWD"[:count]
    return f"N{letters}C", f"{letters}IO", f"N{letters}C"


def conv_transpose(lhs: Array, rhs: Array, strides: Sequence[int],
                   padding: str | Sequence[tuple[int, int]],
                   rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None,
                   transpose_kernel: bool = False, precision: Any = None,
                   preferred_element_type: DTypeLike | None = None,
                   use_consistent_padding: bool = False) -> Array:
    """Return the transposed convolution, by which the operand grows by ``strides``.

    ``padding``: 'SAME' (the result is ``strides`` times as long), 'VALID', or pairs, which are
    those of the dilated operand, or with ``use_consistent_padding`` those of the convolution of
    which this is the transpose.  ``dimension_numbers``: None for ('NHWC', 'HWIO', 'NHWC') with as
    many spatial axes as there are.  ``transpose_kernel``: reverse the kernel and exchange its
    features, so that the result is the gradient of a convolution.

    >>> lax.conv_transpose(jnp.ones((1, 2, 1)), jnp.ones((2, 1, 1)), (2,), "VALID").ravel()
    Array([1., 1., 1., 1.], dtype=float32)
    """
    x, k = aval_of(lhs), aval_of(rhs)
    count = x.ndim - 2
    numbers = conv_dimension_numbers(
        x.shape, k.shape, _features_last(count) if dimension_numbers is None else dimension_numbers)
    dilation = _ints(rhs_dilation, count)
    sizes = [stretched(k.shape[d], r) for d, r in zip(numbers.rhs_spec[2:], dilation)]
    if isinstance(padding, str):
        pads: Any = [transposed_pads(n, s, padding) for n, s in zip(sizes, strides)]
    elif use_consistent_padding:
        pads = [(n - 1 - low, n - 1 - high) for n, (low, high) in zip(sizes, padding)]
    else:
        pads = padding
    if transpose_kernel:
        o, i, *spatial = numbers.rhs_spec
        for d in spatial:
            rhs = rev(rhs, (d,))
        axes = list(range(k.ndim))
        axes[o], axes[i] = axes[i], axes[o]
        rhs = permute(rhs, tuple(axes))
    return conv_general_dilated(lhs, rhs, (1,) * count, pads, tuple(strides), dilation, numbers,
                                precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_general_dilated_patches(
        lhs: ArrayLike, filter_shape: Sequence[int], window_strides: Sequence[int],
        padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None,
        rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None,
        precision: Any = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """Return the windows of ``lhs`` laid along its features: feature by feature, then by place.

    Raises: ValueError if features are not floating point numbers; as ``conv_general_dilated``.

    >>> lax.conv_general_dilated_patches(jnp.arange(4.).reshape(1, 1, 4), (2,), (1,), "VALID")
    Array([[[0., 1., 2.],
            [1., 2., 3.]]], dtype=float32)
    """
    x = aval_of(lhs)
    window = tuple(int(n) for n in filter_shape)
    numbers = conv_dimension_numbers(x.shape, (1, 1, *window), dimension_numbers)
    features, size = x.shape[numbers.lhs_spec[1]], math.prod(window)
    kernel = broadcast_in_dim(eye((size, size), x.dtype), (features, size, size), (1, 2))
    kernel = reshape(kernel, (features * size, 1, *window))
    kernel = permute(kernel, tuple(int(d) for d in np.argsort(numbers.rhs_spec)))
    return conv_general_dilated(
        lhs, kernel, window_strides, padding, lhs_dilation, rhs_dilation, numbers,
        feature_group_count=features, precision=precision,
        preferred_element_type=preferred_element_type)


def conv_general_dilated_local(
        lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
        padding: str | Sequence[tuple[int, int]], filter_shape: Sequence[int],
        lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
        dimension_numbers: Any = None, precision: Any = None) -> Array:
    """Return a convolution whose kernel is another at each place.

    ``rhs`` has the result's spatial axes, its input features are those of
    ``conv_general_dilated_patches``.

    >>> x, kernels = jnp.ones((1, 1, 3)), jnp.ones((1, 2, 2))
    >>> lax.conv_general_dilated_local(x, kernels, (1,), "VALID", filter_shape=(2,))
    Array([[[2., 2.]]], dtype=float32)
    """
    both = canonicalize_precision(precision)
    first = both[0] if isinstance(both, tuple) else both
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
        precision=first)
    _, rs, os = conv_dimension_numbers(
        aval_of(lhs).shape, (1, 1, *filter_shape), dimension_numbers)
    made = dot_general(patches, rhs, (((os[1],), (rs[1],)), (tuple(os[2:]), tuple(rs[2:]))), both)
    # It has the spatial axes first, then examples and features.
    count = len(os) - 2
    have = (*os[2:], os[0], os[1])
    return permute(made, tuple(have.index(d) for d in range(count + 2)))
