"""What does a lowering rule build MLIR operations of?

Types, attributes and constants, made of avals and NumPy's arrays in the context that is entered,
as the functions of ``jax.interpreters.mlir`` make them.

Read before: ``compile.text``.  Read after: ``interpreters.mlir``.
Invariant: a constant has the bits of the array it is made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from saem import _jaxlib
from saem.compile.text import dense, element_type, physical_aval, tensor_type
from saem.core import dtypes, errors
from saem.core.avals import ShapedArray, aval_of
from saem.core.lazy import later

ir: Any = later("jaxlib.mlir.ir")
hlo: Any = later("jaxlib.mlir.dialects.stablehlo")


def dtype_to_ir_type(dtype: Any) -> Any:
    """Return the MLIR type of numbers of ``dtype``, in the context that is entered.

    >>> with make_ir_context():
    ...     str(dtype_to_ir_type(np.dtype("complex64")))
    'complex<f32>'
    """
    return _jaxlib.ir.Type.parse(element_type(np.dtype(dtype)))


def aval_to_ir_type(ctx: Any, aval: ShapedArray) -> Any:
    """Return the MLIR type of an array of ``aval``; ``ctx`` is the rule's module context."""
    return _jaxlib.ir.Type.parse(tensor_type(physical_aval(aval)))


def aval_to_ir_types(ctx: Any, aval: ShapedArray) -> tuple[Any, ...]:
    """Return the MLIR types of the values that an array of ``aval`` is held in: one."""
    return (aval_to_ir_type(ctx, aval),)


def ir_type_to_aval(kind: Any) -> ShapedArray:
    """Return the aval of an array whose MLIR type is ``kind``."""
    tensor = ir.RankedTensorType(kind)
    named = {element_type(dtype): dtype for dtype in dtypes.ARRAY_DTYPES - {dtypes.float0}}
    return ShapedArray(tuple(tensor.shape), named[str(tensor.element_type)])


def flatten_ir_values(xs: Iterable[Any]) -> list[Any]:
    """Return the values among ``xs``, which may hold sequences of them."""
    found: list[Any] = []
    for x in xs:
        found += x if isinstance(x, (tuple, list)) else [x]
    return found


flatten_ir_types = flatten_ir_values


def unflatten_ir_values_like_types(xs: Iterable[Any], ys: Sequence[Any]) -> list[Any]:
    """Return ``xs`` with a tuple of several where ``ys`` has a tuple of types."""
    left = iter(xs)
    return [tuple(next(left) for _ in y) if isinstance(y, (tuple, list)) else next(left)
            for y in ys]


def i32_attr(i: int) -> Any:
    """Return an attribute of the 32-bit integer ``i``."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> Any:
    """Return an attribute of the 64-bit integer ``i``."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def dense_int_elements(xs: Any) -> Any:
    """Return ``dense<[…]>``, an attribute of the 64-bit integers ``xs``."""
    return ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64))


def dense_int_array(xs: Any) -> Any:
    """Return ``array<i64: …>``, an attribute of the 64-bit integers ``xs``."""
    return ir.DenseI64ArrayAttr.get(np.asarray(xs, np.int64))


def _elements(x: np.ndarray) -> str:
    return f"{dense(x, x.dtype)} : {tensor_type(ShapedArray(x.shape, x.dtype))}"


def ir_attribute(val: Any) -> Any:
    """Return the attribute of a number, text, dtype or array, or of a list or dict of them.

    Raises: TypeError for anything else.

    >>> with make_ir_context():
    ...     str(ir_attribute({"axis": 1, "names": ["a", "b"]}))
    '{axis = 1 : i64, names = ["a", "b"]}'
    """
    if isinstance(val, ir.Attribute):
        return val
    if isinstance(val, (bool, np.bool_)):
        return ir.BoolAttr.get(bool(val))
    if isinstance(val, str):
        return ir.StringAttr.get(val)
    if isinstance(val, dict):
        return ir.DictAttr.get({name: ir_attribute(x) for name, x in val.items()})
    if isinstance(val, (list, tuple)):
        return ir.ArrayAttr.get([ir_attribute(x) for x in val])
    if isinstance(val, np.ndarray) and val.shape:
        return ir.Attribute.parse(_elements(val))
    if isinstance(val, np.dtype):
        return ir.TypeAttr.get(dtype_to_ir_type(val))
    if isinstance(val, (int, float, np.generic)):
        number = np.asarray(val)
        if number.dtype.kind in "iu":
            return ir.IntegerAttr.get(dtype_to_ir_type(number.dtype), int(number))
        if number.dtype.kind in "fV":
            return ir.FloatAttr.get(dtype_to_ir_type(number.dtype), float(number))
    raise errors.explained(
        errors.ArgumentTypeError, "mlir.C1",
        f"No attribute handler defined for type: {type(val)}",
        advice="Give ir_attribute a number, a text, a NumPy array, or a list or dict of them.")


def ir_constant(val: Any, *, const_lowering: Any = None, aval: ShapedArray | None = None) -> Any:
    """Write the array ``val`` as a constant, of ``aval`` if it is given; return its value."""
    held = physical_aval(aval_of(val) if aval is None and not isinstance(
        val, (np.ndarray, np.generic)) else aval or ShapedArray(np.shape(val), val.dtype))
    number = np.asarray(getattr(val, "_base", val), held.dtype)
    # From text, since of complex numbers MLIR makes no attribute in Python.
    made = ir.Operation.parse(f"stablehlo.constant {_elements(number)}")
    ir.InsertionPoint.current.insert(made)
    return made.results[0]


def ir_constants(val: Any, *, const_lowering: Any = None,
                 aval: ShapedArray | None = None) -> tuple[Any, ...]:
    """Write ``val`` as the constants it is held in: one."""
    return (ir_constant(val, aval=aval),)


def shape_tensor(ctx: Any, sizes: Sequence[Any]) -> Any:
    """Write ``sizes``, integers or values of one, as an array of 32-bit integers."""
    if not any(isinstance(n, ir.Value) for n in sizes):
        return ir_constant(np.asarray(sizes, np.int32))
    one = ir.RankedTensorType.get([1], dtype_to_ir_type(np.int32))
    parts = [hlo.reshape(one, hlo.convert(
        ir.RankedTensorType.get([], dtype_to_ir_type(np.int32)), n)) if isinstance(n, ir.Value)
        else ir_constant(np.asarray([n], np.int32)) for n in sizes]
    return hlo.concatenate(parts, 0)
