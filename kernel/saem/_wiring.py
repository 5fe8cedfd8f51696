"""Which two wirings come late, and why?

Eager evaluation needs the compiler, which stands beside the core; array operators need promotion,
which stands above the primitives.  Both are joined here, once, when ``saem`` is imported.

Read before: ``core.trace``, ``xla.dispatch``.
"""

from __future__ import annotations

from saem.core.trace import eval_trace
from saem.xla.dispatch import apply_primitive

eval_trace.apply = apply_primitive
