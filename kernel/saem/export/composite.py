"""How does a group of operations keep its name on the way to the compiler?

``lax.composite(f, "my.softmax")`` is ``f``; in a program it is one equation, and in StableHLO one
``composite`` operation that names the function it stands for.  A compiler that knows the name may
do better than that function; any other calls it.

Read before: ``loops.carry``, ``effects.foreign_calls`` (attributes).
Invariant: a composite computes what its decomposition does; it has no derivative of its own.
Source: the documentation of jax.lax.composite; StableHLO specification, composite.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from saem.compile import lowering
from saem.compile.operations import quoted
from saem.compile.text import dense, element_type
from saem.core import errors, tree
from saem.core import jaxpr as jaxpr_module
from saem.core.avals import aval_of
from saem.core.frames import boundary
from saem.core.jaxpr import ClosedJaxpr, eval_jaxpr
from saem.core.primitive import Primitive, absent, primitive
from saem.core.trace import Tracer, bind
from saem.effects.foreign_calls import HashableArray
from saem.loops.carry import trace_body

_NAMED = re.compile(r"[a-zA-Z]\w*(\.[\w$]+)+", re.ASCII)


# (name, leaves, structure) of each keyword argument.
Attributes = tuple[tuple[str, tuple, Any], ...]


@primitive("composite")
class Composite(Primitive):
    """Call the program ``jaxpr`` under the name ``label``."""

    label: str
    version: int
    attributes: Attributes
    jaxpr: ClosedJaxpr

    multiple_results = True

    @property
    def params(self):
        return {"attributes": self.attributes, "jaxpr": self.jaxpr, "name": self.label,
                "version": self.version}

    renamed: ClassVar[dict[str, str]] = {"name": "label"}

    @property
    def effects(self):
        return self.jaxpr.effects

    def eager(self, *args):
        return eval_jaxpr(self.jaxpr.jaxpr, self.jaxpr.consts, *args)

    def typing(self, *avals):
        return self.jaxpr.out_avals

    def evaluate(self, *xs):
        return jaxpr_module.evaluate(self.jaxpr, *xs)

    def lower(self, ctx, *xs):
        if _NAMED.fullmatch(self.label) is None:
            raise errors.explained(
                errors.ArgumentError, "composite.C1",
                f"Cannot lower a composite named {self.label!r}: its name must be a valid "
                "namespaced op name.", advice="Put a namespace before it: 'mine.softmax'.")
        symbol, consts = lowering.private_function(ctx.module, self.jaxpr, self.label)
        operands = [*xs, *(ctx.hoist(value, aval) for _, value, aval in consts)]
        shown = {"composite_attributes": self.attribute_text(), "decomposition": f"@{symbol}",
                 "version": f"{self.version} : i32" if self.version else ""}
        return ctx.emit_many(
            f"stablehlo.composite {attribute(self.label)} {', '.join(operands)}", *operands,
            outs=ctx.out_avals, attributes={name: text for name, text in shown.items() if text})

    def attribute_text(self) -> str:
        made = {name: structure.unflatten(leaves) for name, leaves, structure in self.attributes}
        return attribute(made) if made else ""

    def jvp(self, primals, tangents):
        raise errors.explained(
            ValueError, "composite.jvp", "JVP rule for composite not implemented. You can use "
            "`jax.custom_jvp` to add support.",
            advice="Its decomposition may have a derivative: differentiate that.")

    def batch(self, size, xs, dims):
        raise errors.explained(
            NotImplementedError, "composite.batch",
            "Batching rule for 'composite' not implemented.",
            advice="Map its decomposition, or give it a rule with jax.custom_batching.custom_vmap.")

    transpose = absent("it has no derivative of its own", NotImplementedError)


def attribute(value: Any) -> str:
    """Return ``value`` as an MLIR attribute.

    Raises: TypeError for what has none.
    """
    if isinstance(value, HashableArray):
        return attribute(value.val)
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, str):
        return f'"{quoted(value)}"'
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {attribute(value[name])}' for name in sorted(value))}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(attribute, value))}]"
    if isinstance(value, (int, float, np.generic)):
        number = np.asarray(value)
        return f"{dense(number, number.dtype)[6:-1]} : {element_type(number.dtype)}"
    if isinstance(value, np.ndarray):
        sizes = "".join(f"{n}x" for n in value.shape)
        return f"{dense(value, value.dtype)} : tensor<{sizes}{element_type(value.dtype)}>"
    raise errors.explained(
        errors.ArgumentTypeError, "composite.C2",
        f"An attribute of a composite cannot be a {type(value).__name__}: {value!r}.",
        advice="Use numbers, strings, NumPy arrays, and lists and dicts of them.")


def _unexpected(name: str, role: str, note: str = "") -> Exception:
    return errors.explained(
        errors.UnexpectedTracerError, f"composite.{role}",
        f"Found a JAX Tracer as {'an' if role[0] in 'aeiou' else 'a'} {role} in the decomposition "
        f"for the composite op '{name}'. This means that the decomposition function closes over a "
        "value that is involved in a JAX transformation.",
        advice=f"Pass it as an argument of the composite.{note}")


def _attributes(name: str, kwargs: dict[str, Any]) -> Attributes:
    made = []
    for key, value in kwargs.items():
        leaves, structure = tree.flatten(value)
        if any(hasattr(leaf, "aval") for leaf in leaves):
            raise _unexpected(name, "attribute", " Attributes are NumPy arrays, not JAX's.")
        made.append((key, tuple(HashableArray(leaf) if isinstance(leaf, np.ndarray) else leaf
                                for leaf in leaves), structure))
    return tuple(made)


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """Return ``decomposition`` as one operation called ``name`` in programs.

    Positional arguments are its operands, keyword arguments its attributes (those that are None
    are left out).  Raises: when called, UnexpectedTracerError if it closes over a traced value or
    has one as attribute.

    >>> twice = lax.composite(lambda x: x + x, name="my.twice")
    >>> twice(jnp.array([1, 2]))
    Array([2, 4], dtype=int32)
    """

    @functools.wraps(decomposition)
    @boundary
    def called(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree.flatten(args)
        avals = [aval_of(x) for x in leaves]
        given = {k: v for k, v in kwargs.items() if v is not None}
        attributes = _attributes(name, given)
        try:
            hash(attributes)
        except TypeError:
            static: tuple = (object(),)
        else:
            static = (attributes, tuple(kwargs))
        body = trace_body(functools.partial(decomposition, **kwargs), in_tree, avals, "composite",
                          decomposition, static)
        if any(isinstance(c, Tracer) for c in body.consts):
            raise _unexpected(name, "constant")
        prim = Composite(name, version, attributes, body.closed)
        return body.out_tree.unflatten(bind(prim, *body.consts, *leaves))

    return called
