"""What do small programs, of the kind that documentation shows, give?

This text runs in both processes (here and in the one of JAX): it executes programs one by one and
describes what each gives: its last expression or ``result``, what it prints, or the classes of its
error.  ``programs`` is the list of texts; ``result`` the list of descriptions.

Read before: ``oracle.py``.  Read after: ``test_small_programs.py``, ``small_programs.txt``.
"""

SOURCE = r'''
import ast, contextlib, io, re, warnings

CLASSES = ("TypeError ValueError IndexError KeyError AttributeError RuntimeError "
           "NotImplementedError "
           "AssertionError OverflowError ZeroDivisionError ImportError ModuleNotFoundError "
           "FloatingPointError UnexpectedTracerError TracerBoolConversionError "
           "TracerArrayConversionError TracerIntegerConversionError ConcretizationTypeError "
           "NonConcreteBooleanIndexError KeyReuseError JaxRuntimeError").split()
BEGIN = """
import jax, numpy as np
import jax.numpy as jnp
from jax import lax, random, tree_util
from functools import partial
import functools, math, operator
"""


def described(value, depth=0):
    if value is None or isinstance(value, (bool, int, float, complex, str)) or depth > 6:
        return repr(value)
    if isinstance(value, dict):
        return str({repr(k): described(v, depth + 1) for k, v in value.items()})
    if type(value) in (list, tuple):
        return type(value).__name__ + str([described(v, depth + 1) for v in value])
    if hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, type):
        try:
            kind = "numpy" if isinstance(value, (np.ndarray, np.generic)) else "array"
            weak = " weak" if getattr(getattr(value, "aval", None), "weak_type", False) else ""
            if "key" in str(value.dtype):
                return f"{kind} {value.dtype}{value.shape}"
            numbers = np.asarray(value)
            numbers = numbers if numbers.dtype.kind in "biufc" else numbers.astype("float32")
            return f"{kind} {value.dtype}{weak}{tuple(value.shape)} " + np.array2string(
                numbers, precision=3, suppress_small=True, threshold=60)
        except Exception as error:
            return type(error).__name__
    return plain_text(repr(value))


def plain_text(text):
    text = re.sub("0x[0-9a-f]+", "0x", text)
    text = re.sub("<(function|class|module|built-in function|bound method) '?[^>]*>",
                  lambda found: found.group(0).split(".")[-1], text)
    return re.sub(r"\b(saem|jax)(\._src)?(\.\w+)*\.", "", text)


def outcome(program):
    names, printed = {}, io.StringIO()
    exec(BEGIN, names)
    try:
        tree = ast.parse(program)
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            last = None
            if tree.body and isinstance(tree.body[-1], ast.Expr):
                last = ast.Expression(tree.body.pop().value)
            exec(compile(tree, "<program>", "exec"), names)
            value = names.get("result") if last is None else eval(
                compile(last, "<program>", "eval"), names)
            names["jax"].effects_barrier()
            said = described(value)
    except Exception as error:
        return "raised " + " ".join(c.__name__ for c in type(error).__mro__
                                    if c.__name__ in CLASSES)
    return said + (" printed " + plain_text(printed.getvalue()) if printed.getvalue() else "")


result = [outcome(program) for program in programs]
'''
