"""Which rows test one call?  Its operands in every dtype and rank, its derivatives, its maps.

A table names calls on operands with fixed letters.  Each call becomes rows: as it stands; with its
operands of other dtypes, empty, of rank 0, Python numbers and text; its derivatives of first and
second order; mapped over its operands.  What a row means is asked from JAX.

    X Y Z   (3, 4) in (-2, 2)      Q   (3, 4) in (0.1, 0.9)     V   (4,)       W   (3,)
    M       (3, 3)                 P   (3, 3) positive definite  T   (2, 3, 4)  S   ()
    R       (4, 3)                 I J   indices, never varied

Read before: ``library.py``.  Read after: the tests beside this file.
Invariant: rows depend on the call's text alone.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from library import BEGIN, failures

MORE = BEGIN + """
import ml_dtypes
la, ops, fft = Later("lax.linalg"), Later("ops"), Later("scipy.fft")
jl, jf, sla = Later("numpy.linalg"), Later("numpy.fft"), Later("scipy.linalg")

def derivatives(f, *args):
    "Tangents forwards, gradients backwards, and the tangents of the gradients."
    ones = tuple(np.ones_like(a) for a in args)
    tangents = jax.jvp(f, args, ones)[1]
    return (jax.tree.leaves(tangents), *jax.jvp(lambda *a: grads(f, *a), args, ones))

def stacked(x):
    return np.stack([x, x * np.float32(.5)])

def mapped_last(f, x):
    "f mapped over the last axis of x, which is stacked along axis 0; results are stacked there."
    return jax.vmap(f, -1, -1)(np.moveaxis(x, 0, -1))

def cast(x, dtype):
    "x as an array of another dtype, with values that it can tell apart."
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if dtype.kind == "c":
        return jnp.asarray((x + 1j * x[::-1] if x.ndim else x + 1j * x).astype(dtype))
    if dtype == bool:
        return jnp.asarray(x > 0.3)
    if dtype.name.startswith(("int", "uint")):
        x = np.rint(x * 3).clip(-8, 7)
        x = abs(x) if dtype.name.startswith("u") else x
    return jnp.asarray(x.astype(dtype))
"""

# What the rows of one table may name besides.
WIDE = """
def wide(f, *args):
    "What f gives where 64-bit types are on, for operands of 64 bits."
    with jax.enable_x64(True):
        return f(*[a.astype("complex128" if a.dtype.kind == "c" else "float64") for a in args])

def jitted(f, *args):
    return jax.jit(f)(*args)
"""
SOLVERS = WIDE + """
def res(found):
    return [found.x, found.fun, found.success, found.status, found.nit, found.nfev, found.njev,
            found.jac]
"""
SPARSE = WIDE + """
es = Later("experimental.sparse")
A = np.array([[0, 1.5, 0, -2], [0, 0, 0, 0], [3, 0, .5, 1]], "f")
B = np.array([[[1], [0], [1]], [[0], [1], [1]]], "f")
C, D = es.BCOO.fromdense(A), es.BCSR.fromdense(A)

def parts(m):
    "Of what a sparse matrix consists."
    return [list(m.tree_flatten()[0]), tuple(m.shape), m.nse, type(m).__name__,
            bool(getattr(m, "indices_sorted", 0)), bool(getattr(m, "unique_indices", 0))]

def dense(x):
    "The arrays of a result, those of sparse matrices dense."
    if isinstance(x, (list, tuple)):
        return [dense(each) for each in x]
    return x.todense() if hasattr(x, "todense") else x
"""
TREE = """
import collections, dataclasses, functools

pair = collections.namedtuple("pair", "x y")
tu = module("tree_util")

class Plain:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __repr__(self):
        return f"{type(self).__name__}({self.x!r}, {self.y!r})"
    def tree_flatten(self):
        return (self.x, self.y), None
    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)

@tu.register_pytree_node_class
class Point(Plain):
    pass

class Named(collections.namedtuple("Named", "x y")):
    pass

@tu.register_pytree_with_keys_class
class Shown(Plain):
    def tree_flatten_with_keys(self):
        return ((tu.GetAttrKey("x"), self.x), ("mine", self.y)), None

class Coded(Plain):
    pass

tu.register_pytree_with_keys(
    Coded, lambda c: (((tu.DictKey("x"), c.x), (tu.SequenceKey(5), c.y)), "aux"),
    lambda aux, children: Coded(*children), lambda c: ((c.x, c.y), "aux"))

@tu.register_dataclass
@dataclasses.dataclass
class Data:
    x: int
    y: int
    name: str = dataclasses.field(metadata=dict(static=True))

@dataclasses.dataclass
class Unregistered:
    a: int
    b: int

@tu.register_static
@dataclasses.dataclass(frozen=True)
class Fixed:
    value: int

def known(x):
    "What the other process can send of x: containers and numbers, else its type and text."
    if isinstance(x, (list, tuple)) and not isinstance(x, (Point, Named)):
        return type(x)(map(known, x)) if type(x) in (list, tuple) else [
            type(x).__name__, *map(known, x)]
    if isinstance(x, dict):
        return [type(x).__name__, *[[known(k), known(v)] for k, v in x.items()]]
    if isinstance(x, (set, collections.deque)):
        return [type(x).__name__, *map(known, x)]
    if x is None or isinstance(x, (bool, int, float, str)) or hasattr(x, "dtype"):
        return x
    if isinstance(x, type):
        return x.__name__
    return text(x)

def text(x):
    "How x prints, without addresses and the names of modules."
    import re
    return re.sub(r" at 0x[0-9a-f]+|jaxlib[.\\w]*[.]|saem[.\\w]*[.]|jax[.\\w]*[.]", "", str(x))

def said(f):
    "The first words of the message with which f refuses."
    try:
        return ["nothing", known(f())]
    except Exception as error:
        import re
        words = re.sub(r"^[a-z]+[.][A-Z][0-9]+: ", "", text(error)).split()
        builtin = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        return [builtin.__name__, " ".join(words[:4])]

plain = known
"""
LAYERS = WIDE + """
opt, stax = Later("example_libraries.optimizers"), Later("example_libraries.stax")
K = np.random.RandomState(5).randn(2, 3, 4, 5).astype("f")
G = K[:, :, :2] * 2
EDGES = np.array([0., -0., 1., -1., 30., -30., 200., np.inf, -np.inf, np.nan], "f")

def bias(*shape):
    return np.random.RandomState(7).randn(*shape).astype("f")

def f8(shape):
    return jnp.asarray(np.random.RandomState(8).randn(*shape).astype(ml_dtypes.float8_e4m3fn))

def e8(shape):
    return jnp.asarray(np.full(shape, 2., "f").astype(ml_dtypes.float8_e8m0fnu))

def steps(optimizer, params):
    "What an optimizer makes of parameters in three steps."
    init, update, get = optimizer
    state, found = init(params), []
    for i in range(3):
        gradient = jax.tree.map(lambda p: jnp.sin(p) + i, get(state))
        state = update(i, gradient, state)
        found += jax.tree.leaves(get(state))
    return found

def layer(pair, x):
    "The shape, parameters and output of a layer of stax."
    init, apply = pair
    shape, params = init(key(5), x.shape)
    shape = jax.tree.map(int, shape)
    return [shape, jax.tree.leaves(params), apply(params, x, rng=key(7))]
"""
# Rows of "wide" run with 64-bit types on.
SETTINGS = """
def looked(f):
    "The type of the result of f, which is only traced."
    found = jax.eval_shape(f)
    return tuple(found.shape), str(found.dtype), bool(found.weak_type)

def warned(f):
    "How the warnings of f begin where 64-bit types are off."
    import warnings
    with jax.enable_x64(False), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f()
    return sorted({" ".join([w.category.__name__, *str(w.message).split()[:5]]) for w in caught})

def strictly(f):
    "What f gives where types do not promote; it ran before where they do."
    f()
    with jax.numpy_dtype_promotion("strict"):
        return f()

def of_one_rank(f):
    "What f gives where operands of different ranks are refused."
    with jax.numpy_rank_promotion("raise"):
        return f()

def unmixed(f):
    "What f gives where neither types nor ranks are mixed."
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        return f()

def narrow_after(make, f):
    "What jitted f gives of an array made before 64-bit types were turned off."
    x = make()
    with jax.enable_x64(False):
        return jax.jit(f)(x)
"""
BEGINNINGS = {"wide": SETTINGS, "strict": SETTINGS, "linalg": WIDE, "grids": WIDE,
              "solvers": SOLVERS, "sparse": SPARSE, "tree": TREE, "layers": LAYERS}

FLOATING = "XYZQVWMPTSR"
LETTER = re.compile(rf"(?<!\.)\b([{FLOATING}])\b")  # not the T of X.T
CHOICE = re.compile(r"\{([^{}]*\|[^{}]*)\}")
# What the operands of a call are replaced by, most telling first.
KINDS = ("c8", "i4", "bf", "f2", "b1", "u1", "i1", "empty", "rank0", "two", "half", "text")
SMALL = ("int4", "uint4", "float8_e4m3fn", "float8_e5m2")
FEW = ("c8", "i4", "bf", "empty")

draw = np.random.RandomState(0)
SQUARE = draw.randn(3, 3).astype("f")
OPERANDS: dict[str, Any] = {
    "X": draw.uniform(-2, 2, (3, 4)).astype("f"), "Y": draw.uniform(-2, 2, (3, 4)).astype("f"),
    "Z": draw.uniform(-2, 2, (3, 4)).astype("f"), "Q": draw.uniform(.1, .9, (3, 4)).astype("f"),
    "V": np.array([0.5, 1.0, 2.0, 3.5], "f"), "W": np.array([1.0, -2.0, 0.5], "f"),
    "M": SQUARE, "P": SQUARE @ SQUARE.T + 2 * np.eye(3, dtype="f"),
    "T": draw.uniform(-2, 2, (2, 3, 4)).astype("f"), "S": np.float32(0.7).reshape(()),
    "R": draw.randn(4, 3).astype("f"),
    "I": np.array([2, 0, 1], "i"), "J": np.array([[0, 1], [2, 0]], "i"),
}
# Parameters of distributions.
RANDOM: dict[str, Any] = {
    "W3": np.array([1.0, 2.0, 3.5], "f"), "W4": np.array([1.0, 2.0, 3.5, 4.0], "f"),
    "L": np.random.RandomState(1).randn(2, 3).astype("f"), "P2": np.array([0.3, 0.7], "f"),
    "P5": np.array([0.1, 0.2, 0.3, 0.15, 0.25], "f"),
}
CASTS = {"c8": "complex64", "i4": "int32", "bf": "bfloat16", "f2": "float16", "b1": "bool",
         "u1": "uint8", "i1": "int8", **{name: name for name in SMALL}}
REPLACED = {"empty": r"\1[:0]", "rank0": r"\1.ravel()[1]", "two": "2", "half": "1.5",
            "text": "'text'"}


def varied(call: str, kind: str) -> str:
    """Return the call with its operands replaced by those of another kind."""
    if kind in CASTS:
        return LETTER.sub(rf"cast(\1, '{CASTS[kind]}')", call)
    return LETTER.sub(REPLACED[kind], call)


def drawn(call: str) -> Iterator[str]:
    """Yield the rows of a sampler, whose ``call`` names ``{key}`` and ``{shape}``."""
    for shape in ("()", "(3,)", "(2, 3)", "(0, 2)", "3", "[2]", "(-1,)", "None"):
        yield call.format(key="key(3)", shape=shape)
    for key in ("random.PRNGKey(7)", "key(0)", "random.key(5, impl='rbg')",
                "random.key(5, impl='unsafe_rbg')", "3", "W3", "random.split(key(3))",
                "random.PRNGKey(5, impl='rbg')", "np.array([0, 9], 'uint32')", "None"):
        yield call.format(key=key, shape="(3,)")
    for dtype in ("'float16'", "'bfloat16'", "'float32'", "'float64'", "float", "'int32'",
                  "'complex64'", "bool"):
        yield call.format(key="key(3)", shape="(2, 3)")[:-1] + f", dtype={dtype})"
    of_a_key = "lambda k: " + call.format(key="k", shape="(3,)")
    yield f"mapped({of_a_key}, random.split(key(1), 2))"
    yield f"jax.jit({of_a_key})(key(1))"


def rows(calls: list[str], first: tuple[str, ...] = KINDS, later: tuple[str, ...] = FEW,
         derivatives: bool = True, maps: bool = True, wide: bool = False) -> Iterator[str]:
    """Yield the rows of each call.  A function's first call has more kinds of operands.

    A call that starts with ``=`` is taken as it stands, one with ``~`` is not differentiated, one
    with ``*`` draws (``drawn``).  ``wide`` asks for rows of 64-bit types and of ``jit`` too.
    """
    seen: set[str] = set()
    for call in calls:
        if call.startswith("*"):
            yield from drawn(call[1:])
            continue
        plain = call.lstrip("=~")
        yield plain
        letters = ", ".join(sorted(set(LETTER.findall(plain))))
        if call.startswith("=") or not letters:
            continue
        name = plain.partition("(")[0]
        for kind in later if name in seen else first:
            yield varied(plain, kind)
        seen.add(name)
        if derivatives and not call.startswith("~"):
            yield f"derivatives(lambda {letters}: {plain}, {letters})"
        if maps:
            stacked = ", ".join(f"stacked({letter})" for letter in letters.split(", "))
            yield f"mapped(lambda {letters}: {plain}, {stacked})"
            yield f"mapped_last(lambda {letters[0]}: {plain}, stacked({letters[0]}))"
        if wide:
            yield f"wide(lambda {letters}: {plain}, {letters})"
            yield f"jitted(lambda {letters}: {plain}, {letters})"


def expanded(call: str) -> list[str]:
    """Return the calls that a line with choices like ``{sum|prod}`` stands for."""
    found = CHOICE.search(call)
    if found is None:
        return [call]
    return [whole for part in found.group(1).split("|")
            for whole in expanded(call[:found.start()] + part + call[found.end():])]


@dataclasses.dataclass
class Reasons:
    """Why rows differ: by the row, or by a pattern that the whole row fits."""

    rows: dict[str, str] = dataclasses.field(default_factory=dict)
    patterns: dict[re.Pattern[str], str] = dataclasses.field(default_factory=dict)

    def add(self, line: str, reason: str) -> None:
        """Take up a line of a table: a row, or a pattern behind a slash."""
        if line.startswith("/"):
            self.patterns[re.compile(line[1:])] = reason
        else:
            self.rows.update(dict.fromkeys(expanded(line), reason))

    def of(self, row: str) -> str:
        """Return why ``row`` differs, '' if nothing is known of it."""
        fitting = (reason for pattern, reason in self.patterns.items() if pattern.fullmatch(row))
        return self.rows.get(row) or next(fitting, "")

    def unneeded(self, rows: Iterable[str]) -> list[str]:
        """Return the rows that are not among ``rows``, and the patterns that none of them fits."""
        known = set(rows)
        return [row for row in self.rows if row not in known] + [
            pattern.pattern for pattern in self.patterns
            if not any(map(pattern.fullmatch, known))]


def read(name: str) -> tuple[dict[str, list[str]], Reasons]:
    """Return the calls of ``name.calls`` by group, and why some of their rows differ.

    ``# group`` begins a group, ``! reason`` the rows that differ for it; a line of these that
    begins with a slash is a pattern of rows.  ``{a|b}`` in a call stands for one call with ``a``
    and one with ``b``.
    """
    groups: dict[str, list[str]] = {}
    reasons = Reasons()
    group, reason = "", ""
    text = Path(__file__).with_name(f"{name}.calls").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("# "):
            group, reason = line[2:], ""
        elif line.startswith("! "):
            reason = line[2:]
        elif reason:
            reasons.add(line, reason)
        else:
            groups.setdefault(group, []).extend(expanded(line))
    return groups, reasons


def chosen(cases: list[str], part: int = 8) -> list[str]:
    """Return the rows of this run: all with ``SAEM_SWEEP=all``, else one of ``part``."""
    if os.environ.get("SAEM_SWEEP") == "all":
        return cases
    return [case for case in cases if zlib.crc32(case.encode()) % part == 0]


def differences(oracle: Any, cases: list[str], rtol: float = 1e-5, begin: str = "",
                x64: bool = False, **arguments: Any) -> list[str]:
    """Return what differs, a line for each row; asks in portions, so that one reply is small."""
    return [line for at in range(0, len(cases), 200)
            for line in failures(oracle, cases[at:at + 200], rtol, x64, MORE + begin, **OPERANDS,
                                 **arguments)]
