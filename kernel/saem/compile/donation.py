"""Which result takes over the buffer of a donated argument?

The first result of the same type; else the first with as many elements, if the compiler can use it.
A donated argument for which there is neither stays as it is, and a warning says so.

Read before: ``core.avals``.  Read after: ``compile.lowering``.
Invariant: every result takes at most one buffer, and only of an argument that was donated.
Source: the documentation of buffer donation in JAX's FAQ, and what JAX 0.10.2 was seen to write.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from saem.core.avals import ShapedArray

DONOR = "jax.buffer_donor = true"


def plan(avals: Sequence[ShapedArray], donated: Sequence[bool], outs: Sequence[ShapedArray],
         several: bool = False) -> list[str]:
    """Return for each argument the attribute that donates its buffer, '' for none.

    On ``several`` devices the compiler, which knows the shardings of results, chooses the result.
    """
    notes = [""] * len(avals)
    if not any(donated):
        return notes
    free = list(range(len(outs)))
    for number, (aval, gives) in enumerate(zip(avals, donated)):
        found = next((i for i in free if gives and outs[i].shape == aval.shape
                      and outs[i].dtype == aval.dtype), None)
        if found is not None:
            notes[number] = DONOR if several else f"tf.aliasing_output = {found} : i32"
            free.remove(found)
    for number, (aval, gives) in enumerate(zip(avals, donated)):
        found = next((i for i in free if gives and not notes[number]
                      and outs[i].size == aval.size), None)
        if found is not None:
            notes[number] = DONOR
            free.remove(found)
    return notes


def wasted(avals: Sequence[ShapedArray], donated: Sequence[bool], notes: Sequence[str]
           ) -> tuple[str, ...]:
    """Return the types of the donated arguments that no result can use."""
    return tuple(aval.str_short()
                 for aval, gives, note in zip(avals, donated, notes) if gives and not note)


def warn_wasted(types: Sequence[str]) -> None:
    """Warn, as JAX does, of donated buffers that no result can use."""
    if types:
        warnings.warn(
            f"Some donated buffers were not usable: {', '.join(types)}.\nA donated buffer is used "
            "for a result of the same type, or of as many elements; donate only those.",
            stacklevel=4)
