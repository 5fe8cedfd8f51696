"""Which calls does a signature allow?  Rows made of every parameter's kinds of values.

A function's parameters are read from its signature.  The call with its required arguments is varied
one parameter at a time over the kinds of values that its name stands for (an axis: none, negative,
a tuple, a list, out of range, …), and one operand at a time over dtypes, ranks and empty arrays.

Read before: ``library.py``.  Read after: ``test_sweep.py``.
Invariant: rows depend on names and signatures alone, so a new parameter is swept without a line
here; what a row means is asked from JAX.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

# Operands: of each dtype, rank, and of no elements.
OPERANDS = ("A", "A[0]", "A[:, :0]", "A[0, 0]", "I", "B", "C", "H", "F16", "U", "2", "1.5", "T")
FIRST = {"A": "A", "x": "A", "a": "A", "arr": "A", "m": "A", "array": "A", "x1": "A", "x2": "A + 1",
         "v": "V", "y": "A", "ary": "A", "b": "A + 2", "p": "V", "f": "A", "q": "0.3",
         "arrays": "[A, A]", "tup": "[A, A]", "seq": "[A, A]", "repeats": "2", "reps": "2",
         "shape": "(2, 3)", "newshape": "(4, 3)", "indices": "I[0] % 3", "axis": "1", "shift": "1",
         "condition": "A > 0", "N": "3", "n": "3", "M": "3", "fill_value": "2", "element": "I",
         "test_elements": "V", "ar1": "I", "ar2": "I + 1", "bins": "4", "values": "V",
         "indices_or_sections": "1", "obj": "1", "source": "0", "destination": "1", "axis1": "0",
         "axis2": "1", "axes": "None", "kth": "1", "pad_width": "1", "xp": "V", "fp": "V * 2",
         "start": "0", "stop": "5", "array_shape": "(3, 4)", "object": "A", "sorted_arr": "V",
         "val": "1", "values_": "V", "num": "4", "k": "1", "deg": "2", "c": "V", "u": "V"}
VALUES = {
    "axis": ["None", "0", "-1", "(0, 1)", "[0]", "(0, -1)", "2", "(0, 0)", "()"],
    "keepdims": ["True"], "dtype": ["'float32'", "'int8'", "'complex64'", "bool", "'bfloat16'"],
    "where": ["A > 0", "W"], "initial": ["2", "1.5"], "ddof": ["1", "2"], "correction": ["1"],
    "k": ["-1", "0", "2"], "offset": ["-1", "1"], "axis1": ["0", "-1"], "axis2": ["0", "-1"],
    "weights": ["abs(A)", "V"], "n": ["0", "2"], "side": ["'right'", "'left'", "'other'"],
    "mode": ["'clip'", "'wrap'", "'fill'", "'same'", "'valid'", "'reflect'", "'edge'"],
    "decimals": ["1", "-1"], "order": ["'C'", "'F'"], "kind": ["'stable'"], "stable": ["False"],
    "descending": ["True"], "method": ["'lower'", "'nearest'", "'midpoint'", "'other'"],
    "size": ["3", "40"], "fill_value": ["7"], "return_index": ["True"], "return_inverse": ["True"],
    "return_counts": ["True"], "assume_unique": ["True"], "invert": ["True"], "equal_nan": ["True"],
    "prepend": ["0", "A[:, :1]"], "append": ["0"], "period": ["2."], "rowvar": ["False"],
    "bias": ["True"], "density": ["True"], "range": ["(0., 1.)"], "right": ["True"],
    "minlength": ["6"], "length": ["4"], "endpoint": ["False"], "retstep": ["True"],
    "base": ["2."], "num": ["0", "1", "7"], "nan": ["3."], "posinf": ["4."], "neginf": ["-4."],
    "returned": ["True"], "promote_integers": ["False"], "include_initial": ["True"],
    "total_repeat_length": ["5"], "reps": ["(2, 1)", "()"], "repeats": ["0", "[1, 2, 0]"],
    "shift": ["(1, 2)", "-2"], "indexing": ["'ij'"], "sparse": ["True"], "rtol": ["1."],
    "shape": ["(4,)", "()", "5"], "index_dtype": ["'int16'"], "trim": ["'f'"], "deg": ["2"],
    "kth": ["-1", "0"], "increasing": ["True"], "overwrite_input": ["True"], "to_end": ["9"],
    "to_begin": ["9"], "discont": ["2."], "left": ["-9."], "wrap": ["True"], "copy": ["True"],
    "unique_indices": ["True"], "indices_are_sorted": ["True"], "interpolation": ["'lower'"],
    "dx": ["2."], "x": ["A - 1"], "a_min": ["0."], "min": ["0."], "max": ["1."],
    "edge_order": ["1"],
    "axes": ["(1, 0)", "None", "1", "(0, 1)"], "strip_zeros": ["False"], "ndmin": ["3"], "M": ["2"],
}


def required(signature: inspect.Signature) -> list[inspect.Parameter]:
    """Return the parameters without a default that take one argument."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p for p in signature.parameters.values() if p.default is p.empty
            and p.kind not in kinds]


def rows(path: str, function: Callable) -> Iterator[str]:
    """Yield calls of ``function``, which rows call ``path``, that vary each parameter.

    Nothing is yielded for a function with a required parameter whose name is not known here.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:
        return
    needed = required(signature)
    if not needed or any(p.name not in FIRST for p in needed):
        return
    base = [FIRST[p.name] for p in needed]
    plain = ", ".join(base)
    yield f"{path}({plain})"
    if base[0] == "A":
        for operand in OPERANDS[1:]:
            yield f"{path}({', '.join([operand, *base[1:]])})"
        if len(base) > 1 and base[1].startswith("A"):
            for operand in OPERANDS[1:]:
                yield f"{path}({', '.join([operand, operand, *base[2:]])})"
    for parameter in signature.parameters.values():
        for value in VALUES.get(parameter.name, ()):
            if parameter in needed:
                at = needed.index(parameter)
                yield f"{path}({', '.join([*base[:at], value, *base[at + 1:]])})"
            elif parameter.kind is not parameter.POSITIONAL_ONLY:
                yield f"{path}({plain}, {parameter.name}={value})"
    names = signature.parameters
    for pair in (("axis", "keepdims"), ("axis", "where"), ("axis", "dtype")):
        if all(n in names and names[n] not in needed for n in pair):
            second = {"keepdims": "True", "where": "W", "dtype": "'float32'"}[pair[1]]
            more = ", initial=0" if pair[1] == "where" and "initial" in names else ""
            for axis in VALUES["axis"][:6]:
                yield f"{path}({plain}, axis={axis}, {pair[1]}={second}{more})"
