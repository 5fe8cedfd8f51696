"""Cases of ``ops/gather.py``: windows read and windows added, inside and outside the operand."""

from __future__ import annotations

import dataclasses

from cases import case, spec
from saem.ops.gather import Gather, ScatterAdd
from saem.ops.windows import GatherDimensionNumbers as Numbers
from saem.ops.windows import GatherScatterMode

CLIP, FILL, PROMISE, ONE_HOT = GatherScatterMode
REALS = ("f32", "bf16", "i32", "u8")


@dataclasses.dataclass(frozen=True)
class Around:
    """Numbers from -2 to 1 past ``size``: some of them lie outside."""

    size: int

    def __call__(self, rng, shape):
        return rng.integers(-2, self.size + 2, shape)


@dataclasses.dataclass(frozen=True)
class Distinct:
    """Places along an axis of ``size`` that do not repeat."""

    size: int

    def __call__(self, rng, shape):
        count = 1
        for n in shape:
            count *= n
        return rng.permutation(self.size)[:count].reshape(shape)


ROWS = Numbers((1,), (0,), (0,))  # x[i] for a list of i
PLACES = Numbers((), (0, 1), (0, 1))  # x[i, j]
COLUMNS = Numbers((0,), (1,), (1,))  # x[:, i]
PARTS = Numbers((1, 2), (), (0, 1))  # x[i:i+2, j:j+3]
SWAPPED = Numbers((0, 2), (), (1, 0))
TOGETHER = Numbers((2,), (1,), (1,), (0,), (0,))  # x[b, i[b]]
WHOLE = Numbers((0, 1), (), ())

# (numbers, window sizes, operand, indices, which numbers lie outside)
READS = [
    (ROWS, (1, 4), "[3,4]", "i32[2,1]", 3),
    (ROWS, (1, 4), "[3,4]", "i32[5,1]", 3),
    (ROWS, (1, 2), "[3,4]", "i32[2,2,1]", 3),
    (PLACES, (1, 1), "[3,4]", "i32[5,2]", 3),
    (COLUMNS, (3, 1), "[3,4]", "i8[6,1]", 4),
    (PARTS, (2, 3), "[3,4]", "i32[4,2]", 2),
    (SWAPPED, (2, 3), "[3,4]", "i32[4,2]", 2),
    (TOGETHER, (1, 1, 2), "[2,3,2]", "i32[2,4,1]", 3),
    (Numbers((), (), ()), (), "[]", "i32[3,0]", 1),
    (WHOLE, (2, 3), "[2,3]", "i32[0]", 1),
    (ROWS, (1, 4), "[3,4]", "i32[0,1]", 3),
]


def zero_of(mode):
    """Return a fill value that has a derivative, None where nothing is filled."""
    return 0 if mode is FILL else None


def read_cases():
    found = []
    for mode in (CLIP, FILL):
        for numbers, sizes, operand, indices, size in READS:
            found.append(case(Gather(numbers, sizes, mode=mode, fill_value=zero_of(mode)),
                              f"f32{operand}", spec(indices, Around(size))))
    for dtype in ("f32", "bf16", "i32", "u8", "bool", "c64"):
        # What is read outside is NaN, whose derivative is zero: no difference can show that.
        found.append(case(Gather(ROWS, (1, 4), mode=FILL), f"{dtype}[3,4]",
                          spec("i32[7,1]", Around(3)), differentiable=False))
    for index in ("u8", "i8", "u32", "i32"):
        for mode in (CLIP, FILL):
            found.append(case(Gather(ROWS, (1, 2), mode=mode, fill_value=zero_of(mode)),
                              "f32[300,2]", spec(f"{index}[9,1]", "edges")))
    found += [
        case(Gather(ROWS, (1, 4), mode=FILL, fill_value=7), "f32[3,4]",
             spec("i32[7,1]", Around(3))),
        case(Gather(ROWS, (1, 4), mode=FILL, fill_value=-1), "i32[3,4]",
             spec("i32[7,1]", Around(3))),
        case(Gather(ROWS, (1, 4), mode=PROMISE), "f32[3,4]", spec("i32[7,1]", "below:3")),
        case(Gather(ROWS, (1, 4), True, True, PROMISE), "f32[3,4]",
             spec("i32[3,1]", [[0], [1], [2]])),
        case(Gather(ROWS, (1, 0), mode=FILL), "f32[3,0]", spec("i32[2,1]", "below:3")),
    ]
    return found


WRITES = [  # numbers, operand, indices, updates, size
    (ROWS, "[3,4]", "i32[2,1]", "[2,4]", 3),
    (ROWS, "[3,4]", "i32[5,1]", "[5,4]", 3),
    (Numbers((2,), (0,), (0,)), "[3,4]", "i32[2,2,1]", "[2,2,3]", 3),
    (PLACES, "[3,4]", "i32[5,2]", "[5]", 3),
    (COLUMNS, "[3,4]", "i8[6,1]", "[3,6]", 4),
    (PARTS, "[3,4]", "i32[4,2]", "[4,2,3]", 2),
    (SWAPPED, "[3,4]", "i32[4,2]", "[2,4,3]", 2),
    (TOGETHER, "[2,3,2]", "i32[2,4,1]", "[2,4,2]", 3),
    (Numbers((), (), ()), "[]", "i32[3,0]", "[3]", 1),
    (WHOLE, "[2,3]", "i32[0]", "[2,3]", 1),
    (ROWS, "[3,4]", "i32[0,1]", "[0,4]", 3),
    (ROWS, "[3,0]", "i32[2,1]", "[2,0]", 3),
]


def write_cases(kind, dtypes=REALS, differentiable=True, domain="any", unique=False):
    """Return the cases of one scatter."""
    found = []
    for mode in (CLIP, FILL):
        for numbers, operand, indices, updates, size in WRITES:
            found.append(case(kind(numbers.as_scatter(), mode=mode), spec(f"f32{operand}", domain),
                              spec(indices, Around(size)), spec(f"f32{updates}", domain),
                              differentiable=differentiable))
    found.append(case(kind(ROWS.as_scatter(), mode=ONE_HOT), spec("f32[3,4]", domain),
                      spec("i32[5,1]", Around(3)), spec("f32[5,4]", domain),
                      differentiable=differentiable))
    for dtype in dtypes:
        found.append(case(kind(ROWS.as_scatter(), mode=FILL), spec(f"{dtype}[3,4]", domain),
                          spec("i32[3,1]", Around(3)), spec(f"{dtype}[3,4]", domain),
                          differentiable=differentiable))
    for index in ("u8", "i8", "u32", "i32"):
        for mode in (CLIP, FILL):
            found.append(case(kind(ROWS.as_scatter(), mode=mode), spec("f32[300,2]", domain),
                              spec(f"{index}[9,1]", "edges"), spec("f32[9,2]", domain),
                              differentiable=differentiable))
    if unique:
        found += [
            case(kind(ROWS.as_scatter(), False, True, mode), "f32[5,2]",
                 spec("i32[3,1]", Distinct(5)), "f32[3,2]") for mode in GatherScatterMode]
    return found


CASES = [*read_cases(), *write_cases(ScatterAdd, (*REALS, "c64"), unique=True)]
