"""How are random programs drawn?

Read before: ``programs.py``.  Read after: ``test_laws.py``.
Invariant: what is drawn ends in a value of the type it began with.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from programs import BINARY, CONTROL, SHAPES, UNARY, Program, Step

small = st.integers(0, 7)
unary = st.builds(Step, st.just("unary"), st.sampled_from(sorted(UNARY)), small)
binary = st.builds(Step, st.just("binary"), st.sampled_from(sorted(BINARY)), small, small)
reshape = st.builds(Step, st.just("reshape"), st.just(""), small, st.just(0),
                    st.sampled_from(SHAPES))


@st.composite
def control(draw, depth: int, kinds: tuple[str, ...]):
    """Draw a step of control flow whose inner programs are ``depth - 1`` deep."""
    kind = draw(st.sampled_from(kinds))
    shape = (3,) if kind in ("scan", "vmap") else draw(st.sampled_from(SHAPES))
    count = {"cond": 2, "switch": 3}.get(kind, 1)
    inner = tuple(draw(programs(depth - 1, kinds, shape, 3)) for _ in range(count))
    return Step(kind, "", draw(small), draw(small), shape, inner)


@st.composite
def programs(draw, depth: int = 2, kinds: tuple[str, ...] = CONTROL, shape: tuple | None = None,
             length: int = 5):
    """Draw a program; ``depth`` is how deep control flow nests."""
    shape = draw(st.sampled_from(SHAPES[1:])) if shape is None else shape
    plain = st.one_of(unary, unary, binary, reshape)
    choice = plain if depth == 0 else st.one_of(plain, control(depth, kinds))
    return Program(shape, tuple(draw(st.lists(choice, min_size=1, max_size=length))))


def inputs(program: Program, count: int | None = None):
    """Draw an input of ``program``, or a stack of ``count``."""
    shape = program.shape if count is None else (count, *program.shape)
    number = st.integers(-96, 96).map(lambda n: n / 64)
    return st.lists(number, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))).map(
        lambda xs: np.asarray(xs, np.float32).reshape(shape))
