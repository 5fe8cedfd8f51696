"""Which tools are there to take programs apart?  (``jax.interpreters.partial_eval``)

Read before: ``transform.staging``.
Invariant: nothing here changes the program it is given.
"""

from __future__ import annotations

from collections.abc import Sequence

from saem.core.jaxpr import Jaxpr, Literal
from saem.transform.linearize import PartialTracer as JaxprTracer
from saem.transform.staging import StagingTracer as DynamicJaxprTracer
from saem.transform.staging import dead_code_free


def dce_jaxpr(jaxpr: Jaxpr, used_outputs: Sequence[bool],
              instantiate: bool | Sequence[bool] = False) -> tuple[Jaxpr, list[bool]]:
    """Return ``jaxpr`` without what ``used_outputs`` do not need, and which inputs it keeps."""
    small = dead_code_free(jaxpr, list(used_outputs))
    read = {a for eqn in small.eqns for a in eqn.invars if not isinstance(a, Literal)}
    read.update(a for a in small.outvars if not isinstance(a, Literal))
    forced = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else instantiate
    kept = [v in read or force for v, force in zip(jaxpr.invars, forced)]
    return small.replace(invars=[v for v, keep in zip(jaxpr.invars, kept) if keep]), kept


__all__ = ["DynamicJaxprTracer", "JaxprTracer", "dce_jaxpr"]
