"""Which axes of a convolution are which, and what shape does its result have?

Dimension numbers say which axes are examples, features and space: as three strings of letters, such
as ("NHWC", "HWIO", "NHWC"), or as axes in a fixed order, a ``ConvDimensionNumbers``.

Read before: ``signal.pooling``.  Read after: ``signal.convolve``.
Invariant: dimension numbers only reorder axes: a shape is computed with batch and features first
(tests/kernel/test_convolve.py).
Source: the documentation of jax.lax.conv_general_dilated; Dumoulin & Visin, "A guide to convolution
arithmetic for deep learning" (2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from saem.core import errors
from saem.signal.pooling import Sliding, padtype_to_pads

Axes = tuple[int, ...]


class ConvDimensionNumbers(NamedTuple):
    """Which axes are which: (batch, feature, spatial axes …) of the operand and of the result,
    (output feature, input feature, spatial axes …) of the kernel.

    >>> lax.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2)).lhs_spec
    (0, 1, 2)
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


# What ``dimension_numbers`` may be.
ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None


def in_order(items: Sequence[Any], spec: Sequence[int]) -> tuple[Any, ...]:
    """Return ``items``, of batch, feature and spatial axes, in the order of the axes ``spec``."""
    return tuple(items[spec.index(axis)] for axis in range(len(spec)))


def refuse(number: int, sentence: str, advice: str = "See the documentation of "
           "jax.lax.conv_general_dilated.", kind: type = errors.ArgumentError) -> Any:
    return errors.explained(kind, f"conv_general_dilated.C{number}", sentence, advice=advice)


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Axes, Axes, Axes]:
    """Return the axes that the letters of three strings name: N, C; O, I; and spatial ones.

    Raises: TypeError for letters that are missing, double or unknown.

    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lhs, rhs, out = dimension_numbers
    pairs = (("N", "C"), ("O", "I"), ("N", "C"))
    for number, (text, pair) in enumerate(zip((lhs, rhs, out), pairs)):
        if any(text.count(letter) != 1 for letter in pair):
            raise refuse(13, "convolution dimension_numbers[{}] must contain the characters "
                         "'{}' and '{}' exactly once, got {}.".format(number, *pair, text),
                         kind=errors.ArgumentTypeError)
        if len(set(text)) != len(text):
            raise refuse(14, f"convolution dimension_numbers[{number}] cannot have duplicate "
                         f"characters, got {text}.", kind=errors.ArgumentTypeError)
    spatial = [set(text) - set(pair) for text, pair in zip((lhs, rhs, out), pairs)]
    if not spatial[0] == spatial[1] == spatial[2]:
        raise refuse(15, "convolution dimension_numbers elements must each have the same set of "
                     f"spatial characters, got {tuple(dimension_numbers)}.",
                     kind=errors.ArgumentTypeError)
    order = [letter for letter in rhs if letter not in "OI"]

    def spec(text: str, pair: tuple[str, str]) -> Axes:
        return tuple(text.index(letter) for letter in (*pair, *order))

    return spec(lhs, pairs[0]), spec(rhs, pairs[1]), spec(out, pairs[2])


def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                           dimension_numbers: Any) -> ConvDimensionNumbers:
    """Return ``dimension_numbers``, None or three strings, as a ``ConvDimensionNumbers``.

    None means batch and features (of the kernel: output, input features) first.
    Raises: TypeError for ranks or letters that do not fit.

    >>> lax.conv_dimension_numbers((1, 5, 3), (2, 3, 4), ("NWC", "WIO", "NWC")).lhs_spec
    (0, 2, 1)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    wrong = errors.ArgumentTypeError
    if len(lhs_shape) != len(rhs_shape):
        raise refuse(2, "convolution requires lhs and rhs ndim to be equal, got "
                     f"{len(lhs_shape)} and {len(rhs_shape)}.", kind=wrong)
    if dimension_numbers is None:
        whole = tuple(range(len(lhs_shape)))
        return ConvDimensionNumbers(whole, whole, whole)
    if not isinstance(dimension_numbers, (list, tuple)):
        raise refuse(16, "convolution dimension_numbers must be tuple/list or None, got "
                     f"{type(dimension_numbers)}.", kind=wrong)
    if len(dimension_numbers) != 3:
        raise refuse(16, "convolution dimension_numbers list/tuple must be length 3, got "
                     f"{len(dimension_numbers)}.", kind=wrong)
    if not all(isinstance(text, str) for text in dimension_numbers):
        shown = tuple(map(type, dimension_numbers))
        raise refuse(16, f"convolution dimension_numbers elements must be strings, got {shown}.",
                     kind=wrong)
    for number, text in enumerate(dimension_numbers):
        if len(text) != len(lhs_shape):
            raise refuse(17, f"convolution dimension_numbers[{number}] must have len equal to the "
                         f"ndim of lhs and rhs, got {len(text)} for lhs and rhs shapes "
                         f"{tuple(lhs_shape)} and {tuple(rhs_shape)}.", kind=wrong)
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def conv_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int],
                     pads: Any, batch_group_count: int = 1) -> tuple[int, ...]:
    """Return the shape of the convolution of operands with batch and features first.

    >>> lax.conv_shape_tuple((1, 3, 5), (4, 3, 3), (1,), [(0, 0)])
    (1, 4, 3)
    """
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise refuse(18, "Wrong number of explicit pads for convolution: expected "
                     f"{len(lhs_shape) - 2}, got {len(pads)}.", kind=errors.ArgumentTypeError)
    ones = (1,) * len(pads)
    how = Sliding(tuple(rhs_shape[2:]), tuple(strides), tuple(pads), ones, ones)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *how.out_shape(lhs_shape[2:]))


def conv_general_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                             window_strides: Sequence[int], padding: Any, dimension_numbers: Any
                             ) -> tuple[int, ...]:
    """Return the shape of a convolution whose axes are ordered by ``dimension_numbers``.

    >>> lax.conv_general_shape_tuple((1, 5, 3), (3, 3, 4), (1,), "SAME", ("NWC", "WIO", "NWC"))
    (1, 5, 4)
    """
    ls, rs, os = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    made = conv_shape_tuple([lhs_shape[d] for d in ls], [rhs_shape[d] for d in rs], window_strides,
                            padding)
    return in_order(made, os)


def conv_transpose_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                               window_strides: Sequence[int], padding: Any,
                               dimension_numbers: Any) -> tuple[int, ...]:
    """Return the shape of a transposed convolution (see ``conv_transpose``).

    >>> lax.conv_transpose_shape_tuple((1, 2, 1), (2, 1, 1), (2,), "VALID", ("NWC", "WIO", "NWC"))
    (1, 4, 1)
    """
    ls, rs, os = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    lhs, rhs = [lhs_shape[d] for d in ls], [rhs_shape[d] for d in rs]
    if isinstance(padding, str):
        padding = [transposed_pads(k, s, padding) for k, s in zip(rhs[2:], window_strides)]
    sizes = [(n - 1) * s + 1 + low + high - k + 1 for n, s, (low, high), k in zip(
        lhs[2:], window_strides, padding, rhs[2:])]
    return in_order((lhs[0], rhs[0], *sizes), os)


def transposed_pads(k: int, stride: int, padding: str) -> tuple[int, int]:
    """Return the padding by which a convolution of dilated operands undoes the shape of another."""
    if padding == "SAME":
        total = k + stride - 2
        low = k - 1 if stride > k - 1 else -(-total // 2)
    elif padding == "VALID":
        total = k + stride - 2 + max(k - stride, 0)
        low = k - 1
    else:
        raise refuse(24, "Padding mode must be `SAME` or `VALID`.", f"Got {padding!r}.")
    return low, total - low
