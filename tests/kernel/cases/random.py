"""Cases of ``ops/random_bits.py`` on plain arrays; primitives on keys are in test_random.py.

The state of ``rng_bit_generator`` cannot be batched as a loop would: the first makes all bits.
"""

from __future__ import annotations

import numpy as np

from cases import case, spec
from saem.generators.rng_bit_generator import RandomAlgorithm, RngBitGenerator
from saem.ops.random_bits import Threefry2x32

WORD = spec("u32[]", "edges")
WORDS = spec("u32[3,4]", "edges")

CASES = [
    case(Threefry2x32(), WORD, WORD, WORDS, WORDS),
    case(Threefry2x32(), WORDS, WORDS, WORDS, WORDS),
    case(Threefry2x32(), WORD, WORD, WORD, WORD),
    case(Threefry2x32(), WORD, WORD, "u32[0]", "u32[0]"),
    *(case(RngBitGenerator((3, 5), np.dtype(dtype), algorithm), spec("u32[4]", "edges"),
           batchable=False)
      for algorithm in RandomAlgorithm for dtype in ("uint8", "uint32")),
]
