"""Cases of ``ops/random_bits.py`` on plain arrays; primitives on keys are in test_random.py."""

from __future__ import annotations

from cases import case, spec
from saem.ops.random_bits import Threefry2x32

WORD = spec("u32[]", "edges")
WORDS = spec("u32[3,4]", "edges")

CASES = [
    case(Threefry2x32(), WORD, WORD, WORDS, WORDS),
    case(Threefry2x32(), WORDS, WORDS, WORDS, WORDS),
    case(Threefry2x32(), WORD, WORD, WORD, WORD),
    case(Threefry2x32(), WORD, WORD, "u32[0]", "u32[0]"),
]
