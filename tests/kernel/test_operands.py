"""Do operators and functions take every kind of operand in every context as JAX does?

``operands.py`` names functions, kinds of operands, ranks and contexts.  Here cases are chosen so
that each function meets every pair of the commonest kinds and every kind beside some of them, while
contexts and ranks change from pair to pair; dtype, shape and weakness of the results are compared,
or the class of the error.  Of a few cases of each function the numbers are compared, too.

``SAEM_OPERANDS=5`` makes five rounds of that, each with other contexts and ranks; ``all`` makes the
rounds in which each pair has met each context.

Read before: ``operands.py``, ``both.py``.
Invariant: every expected answer comes from JAX.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import ml_dtypes
import numpy as np
import operands
import pytest

import saem as jax
import saem.numpy as jnp
from saem import lax
from saem.core.config import shortcuts

SOURCE = Path(operands.__file__).read_text(encoding="utf-8")
TABLE: dict = {"jax": jax, "jnp": jnp, "lax": lax, "np": np, "ml_dtypes": ml_dtypes}
exec(compile(SOURCE, operands.__file__, "exec"), TABLE)

KINDS, CONTEXTS = TABLE["KINDS"], TABLE["CONTEXTS"]
BINARY, UNARY = list(TABLE["functions"]()), list(TABLE["unary_functions"]())
COMMON = ("bool", "int", "float", "complex", "weak int32", "weak float32", "array bool_",
          "array int32", "array uint8", "array float32", "array float16", "array complex64",
          "np float32", "np int32")
NARROW = ("int4", "float8")
RARE = tuple(kind for kind in KINDS if kind not in COMMON)
ROUNDS = os.environ.get("SAEM_OPERANDS", "1")
ROUNDS = len(CONTEXTS) if ROUNDS == "all" else int(ROUNDS)


def is_inexact(kind):
    return kind.split()[-1].startswith(("float", "complex", "bfloat"))


def contexts_for(left, right):
    """Return the contexts that mean something for these operands: derivatives need inexact ones."""
    needs = {"jvp_left": (left,), "grad_left": (left,), "jvp_right": (right,),
             "grad_right": (right,), "jvp_both": (left, right)}
    return [name for name in CONTEXTS if all(map(is_inexact, needs.get(name, ())))]


def pairs():
    """Return the pairs of kinds that each function meets."""
    found = list(itertools.product(COMMON, COMMON))
    for number, rare in enumerate(RARE):
        partners = [COMMON[(3 * number + 5 * step) % len(COMMON)] for step in range(2)]
        partners.append(RARE[(number + 7) % len(RARE)])
        found += [(rare, rare), *((rare, p) for p in partners), *((p, rare) for p in partners)]
    return found


def cases_of(name):
    """Return the cases of one function, always the same ones."""
    if name in UNARY:
        chosen = [(kind, "int") for kind in KINDS] * 4
        name, begin = f"{name}(x)", UNARY.index(name)
    else:
        chosen, begin = pairs(), BINARY.index(name)
    found = []
    for turn in range(ROUNDS):
        for number, (left, right) in enumerate(chosen):
            contexts = contexts_for(left, right)
            place = number + begin + turn + number // len(KINDS)
            ranks = f"{(number + begin + turn) % 3}{(number // 3 + turn) % 3}"
            found.append("|".join((contexts[place % len(contexts)], name, left, right, ranks)))
    return list(dict.fromkeys(found))


# Where Saem answers and JAX, by an oversight, does not.
MORE = {
    # JAX takes the dtype of a product of uint8 and a Python number for uint8, and then refuses it
    # as narrower than that of the operands.
    "narrower": lambda name, left, right: name in PRODUCTS and "array uint8" in (left, right),
    # Its program finds the largest of complex numbers when traced, but not when it is lowered;
    # NumPy and Saem order them by their parts.
    "complex": lambda name, left, right: name == "jnp.argmax(x)" and "complex" in left,
    # It calls an empty key the imaginary part of a key, and a key close to itself.
    "keys": lambda name, left, right: left == "key" and name in (
        "jnp.imag(x)", "jnp.isclose", "jnp.allclose", "jnp.full_like"),
}
PRODUCTS = ("jnp.dot", "jnp.vdot", "jnp.matmul", "jnp.vecdot", "jnp.inner", "matmul")
# The gradient of a weak operand is weak or strong by the steps of the transposed program, and our
# steps differ here; dtype and shape must agree.
OTHER_STEPS = (*PRODUCTS, "jnp.heaviside", "at.set", "jnp.median(x)", "jnp.roll(x)", "jnp.trace(x)",
               "jnp.nanmax(x)")
# Where the first operand reaches the function as it was given.
WITHOUT_LEFT = ("eager", "jit_right", "jit_closed", "jvp_right", "grad_right", "vmap_right",
                "scan_right")


def agree(case, ours, theirs):
    """Return whether two descriptions of a result, or of an error, are of one kind."""
    context, name, left, right, _ = case.split("|")
    if any(answers(name, left, right) for answers in MORE.values()):
        return True
    # NumPy alone computes x ** 0.5: float32 by ml_dtypes 0.6, bfloat16 by 0.7.
    if (name, left) == ("root(x)", "np bfloat16") and context in WITHOUT_LEFT:
        return True
    if context.startswith("grad") and name in OTHER_STEPS:
        ours, theirs = ours.replace("*", ""), theirs.replace("*", "")
    if theirs.startswith("!"):
        # Narrow numbers: JAX lacks some cases, by NotImplementedError or KeyError as it happens.
        if any(kind in case for kind in NARROW):
            return True
        # A key is refused by whichever step notices, with TypeError or ValueError.
        if "key" in case:
            return ours.startswith("!")
        return ours.startswith("!") and theirs[1:].split()[0] in ours[1:].split()
    # Where JAX hands a NumPy array on, Saem may have made an array of it.
    return ours == theirs or ours == theirs.replace("np ", "")


@pytest.mark.parametrize("name", BINARY + [f"{name} of one" for name in UNARY])
def test_types(jax_oracle, name):
    cases = cases_of(name.removesuffix(" of one"))
    theirs = jax_oracle.run(f"{SOURCE}\nresult = types(cases)", cases=cases).value
    ours = TABLE["types"](cases)
    wrong = [f"{case}: {o}, JAX {t}" for case, o, t in zip(
        cases, ours.split("\n"), theirs.split("\n"), strict=True) if not agree(case, o, t)]
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:30])


@pytest.mark.parametrize("name", BINARY + [f"{name} of one" for name in UNARY])
def test_the_long_way_gives_the_same_types(name):
    cases = cases_of(name.removesuffix(" of one"))
    cases = cases if ROUNDS > 1 else cases[len(name) % 3::3]
    with shortcuts(False):
        long_way = TABLE["types"](cases).split("\n")
    quick = TABLE["types"](cases).split("\n")
    assert [(c, a) for c, a, b in zip(cases, quick, long_way, strict=True) if a != b] == []


TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "complex64": 2e-5, "float32": 2e-5}


def close(case, ours, theirs):
    """Assert that two lists of arrays hold the same numbers, to the last bits of their dtype."""
    for x, y in zip(ours, theirs, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if y.dtype.names is not None or y.dtype.itemsize == 0:  # float0
            continue
        narrow = [t for t in ("float16", "bfloat16") if t in case]
        rtol = max(TOLERANCE.get(t, 0) for t in (y.dtype.name, *narrow)) if y.dtype.kind in "fc" \
            else 0
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol, err_msg=case)


@pytest.mark.usefixtures("little_effort")
@pytest.mark.parametrize("name", BINARY + [f"{name} of one" for name in UNARY])
def test_values(jax_oracle, name):
    """Four cases of each function, with numbers, the quick way and the long way by turns.

    In longer settings it is every eleventh case.
    """
    cases = [c for c in cases_of(name.removesuffix(" of one"))
             if "key" not in c and not any(kind in c for kind in NARROW)]
    step, begin = (len(cases) // 4, len(name)) if ROUNDS == 1 else (11, 0)
    cases = cases[begin % step::step]
    theirs = jax_oracle.run(f"{SOURCE}\nresult = values(cases)", cases=cases).value
    quick = TABLE["values"](cases[::2])
    with shortcuts(False):
        long_way = TABLE["values"](cases[1::2])
    mixed = [(quick, long_way)[i % 2][i // 2] for i in range(len(cases))]
    for case, (ours, numbers), (wanted, expected) in zip(cases, mixed, theirs, strict=True):
        assert agree(case, ours, wanted), f"{case}: {ours}, JAX {wanted}"
        if not wanted.startswith("!"):
            close(case, numbers, expected)
