"""What stands in a DLPack capsule: how many numbers, of which dtype, and where in memory?

jaxlib makes an array of a capsule's memory, but its type only with JAX's own classes.  A capsule
holds a pointer to a structure of C, which is read here.

Read before: ``core.avals``.  Read after: ``compile.arrays``.
Invariant: a capsule is read, never taken: its reader comes after (tests/kernel/test_arrays.py).
Source: the DLPack specification, dlpack.h.
"""

from __future__ import annotations

import ctypes
from typing import Any

from saem.core import dtypes
from saem.core.avals import ShapedArray


class Tensor(ctypes.Structure):
    """DLTensor, with which a managed tensor begins."""

    _fields_ = (("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64))


# Kinds of numbers by their code: those that end in a number of bits, and others.
KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
OTHERS = {6: "bool", 7: "float8_e3m4", 8: "float8_e4m3", 9: "float8_e4m3b11fnuz",
          10: "float8_e4m3fn", 11: "float8_e4m3fnuz", 12: "float8_e5m2", 13: "float8_e5m2fnuz",
          14: "float8_e8m0fnu", 17: "float4_e2m1fn"}


def _tensor_in(capsule: Any) -> Tensor:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return Tensor.from_address(pointer(capsule, b"dltensor"))


def address_in(capsule: Any) -> int:
    """Return where in memory the numbers of ``capsule`` begin."""
    tensor = _tensor_in(capsule)
    return (tensor.data or 0) + tensor.byte_offset


def order_in(capsule: Any) -> list[int] | None:
    """Return the axes longer than 1 of ``capsule``, that with the widest steps first.

    It is None if the numbers do not lie side by side.
    """
    tensor = _tensor_in(capsule)
    sizes = tensor.shape[:tensor.ndim]
    axes = [axis for axis, size in enumerate(sizes) if size > 1]
    if not tensor.strides or 0 in sizes:
        return axes
    axes.sort(key=lambda axis: -tensor.strides[axis])
    step = 1
    for axis in reversed(axes):
        if tensor.strides[axis] != step:
            return None
        step *= sizes[axis]
    return axes


def aval_in(capsule: Any) -> ShapedArray:
    """Return the type of the array in ``capsule``.

    Raises: BufferError for numbers that no array has.
    """
    tensor = _tensor_in(capsule)
    kind = KINDS.get(tensor.code)
    name = OTHERS.get(tensor.code, "") if kind is None else f"{kind}{tensor.bits}"
    dtype = next((d for d in dtypes.ARRAY_DTYPES if d.name == name), None)
    if dtype is None or tensor.lanes != 1:
        raise BufferError(f"the capsule holds numbers of code {tensor.code} with {tensor.bits} "
                          f"bits in {tensor.lanes} lanes, which no array has")
    return ShapedArray(tuple(tensor.shape[:tensor.ndim]), dtype)
