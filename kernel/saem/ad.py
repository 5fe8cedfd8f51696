"""How does one say where gradients of a pullback go?  (``jax.ad``)

``vjp_fun.with_refs(...)`` takes, for each argument, a reference to which the gradient is added, or
one of these marks; ``GradRef`` and ``DidntWant`` stand in its result.
"""

from saem.transform.linear_maps import DidntWant, DontWant, GradRef, GradValue

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]
