"""How are shapes written whose sizes are not known yet?  (``jax.export.symbolic_shape``)

A specification is the text of a tuple of dimension expressions: ``"(a, 2*b, mod(a, 3), ...)"``.
Variables of one ``SymbolicScope`` may be computed with each other, under its constraints.

Read before: ``core.dimensions``.  Read after: ``export.polymorphic``.
Invariant: variables of two scopes are never computed with each other
(tests/kernel/test_export_symbolic.py).
Source: the documentation of jax.export (shape polymorphism, the grammar of specifications).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from saem.core import tree
from saem.core.avals import ShapeDtypeStruct, aval_of
from saem.core.dimensions import Dim, Scope, Size, larger, smaller
from saem.export import dimension  # noqa: F401 - makes arrays of dimensions

ARITHMETIC: dict[type, Callable] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
    ast.Pow: lambda a, b: a ** b}
FUNCTIONS: dict[str, Callable] = {
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "max": larger, "min": smaller}
RELATIONS = ("==", ">=", "<=")


class SymbolicScope(Scope):
    """The constraints under which the dimension variables made in it are compared.

    >>> scope = SymbolicScope(["a >= 4"])
    >>> a, = symbolic_shape("a", scope=scope)
    >>> a >= 3
    True
    """

    def __init__(self, constraints_str: Sequence[str] = ()):
        super().__init__()
        if isinstance(constraints_str, str):
            raise ValueError("The symbolic constraints should be a sequence of strings. Got "
                             f"{constraints_str!r}")
        for text in constraints_str:
            relation = next((r for r in RELATIONS if r in text), None)
            if relation is None:
                raise ValueError("Constraint parsing error: must contain one of '==' or '>=' or "
                                 f"'<=', got {text!r}")
            left, right = (Parser(part, self).one() for part in text.split(relation, 1))
            if relation == "<=":
                left, right = right, left
            self.add(text, left, right, relation == "==")


class Parser:
    """Reads one specification in a scope."""

    def __init__(self, text: str | None, scope: Scope):
        if text is not None and not isinstance(text, str):
            raise ValueError("polymorphic shape spec should be None or a string. Found "
                             f"{text!r}.")
        self.shown = repr(text)
        self.scope = scope
        plain = "..." if text is None else text.strip()
        if plain.startswith("(") and plain.endswith(")") and balanced(plain[1:-1]):
            plain = plain[1:-1].strip()
        plain = plain.rstrip().removesuffix(",")
        try:
            found = ast.parse(f"({plain},)" if plain else "()", mode="eval").body
        except SyntaxError as error:
            raise self.wrong(str(error.msg)) from None
        assert isinstance(found, ast.Tuple)
        self.entries = found.elts

    def wrong(self, why: str, number: int | None = None) -> ValueError:
        place = "" if number is None else f" in dimension {number}"
        return ValueError(f"syntax error in symbolic shape {self.shown}{place}: {why}. A dimension "
                          "is an integer, a name, e1 + e2, e1 - e2, e1 * e2, floordiv(e1, e2), "
                          "mod(e1, e2), max(e1, e2), min(e1, e2), '_' or, at the end, '...'.")

    def one(self) -> Size:
        if len(self.entries) != 1:
            raise self.wrong("needed one dimension expression")
        return self.size(self.entries[0])

    def shape(self, like: Sequence[int | None] | None) -> tuple[Size, ...]:
        """Return the shape; ``like`` gives the sizes of ``_`` and ``...``."""
        sizes: list[Size] = []
        for number, entry in enumerate(self.entries):
            rest = isinstance(entry, ast.Constant) and entry.value is ...
            if not rest and not (isinstance(entry, ast.Name) and entry.id == "_"):
                sizes.append(self.size(entry))
                continue
            if like is None:
                raise self.wrong("spec contains ... but no 'like' shape was given", number)
            if rest and number != len(self.entries) - 1:
                raise self.wrong("... can be used only at the end")
            found = list(like[number:] if rest else like[number:number + 1])
            if any(n is None for n in found) or (not rest and not found):
                raise self.wrong(f"no known size for it in like={tuple(like)}")
            sizes += [n for n in found if n is not None]
        for number, (size, known) in enumerate(zip(sizes, like or ())):
            if isinstance(size, int) and known is not None and size != known:
                raise self.wrong(f"different size {size} for known dimension; "
                                 f"like={tuple(like or ())}", number)
        return tuple(sizes)

    def size(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Constant):
            if type(node.value) is not int:
                raise self.wrong(f"expecting integer, found {node.value!r}")
            return node.value
        if isinstance(node, ast.Name) and node.id != "_":
            return Dim.variable(node.id, self.scope)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self.size(node.operand)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.BitXor):
                return self.size(node.left) ** self.size(node.right)
            apply = ARITHMETIC.get(type(node.op))
            if apply is not None:
                return apply(self.size(node.left), self.size(node.right))
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                and node.func.id in FUNCTIONS and len(node.args) == 2 and not node.keywords):
            return FUNCTIONS[node.func.id](*map(self.size, node.args))
        raise self.wrong(f"cannot read {ast.unparse(node)!r}")


def balanced(text: str) -> bool:
    """Return whether no parenthesis of ``text`` closes before it was opened."""
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return True


def chosen_scope(constraints: Sequence[str], scope: SymbolicScope | None) -> SymbolicScope:
    if scope is not None and constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    return SymbolicScope(constraints) if scope is None else scope


def symbolic_shape(shape_spec: str | None, *, constraints: Sequence[str] = (),
                   scope: SymbolicScope | None = None, like: Sequence[int | None] | None = None
                   ) -> tuple[Any, ...]:
    """Return the shape that ``shape_spec`` describes.

    ``like`` is a shape that gives the sizes for ``_`` and ``...``; ``constraints`` hold in a new
    scope, if none is given.

    Raises: ValueError for text that is no shape.

    >>> symbolic_shape("a, 2*b + 1, ...", like=(None, None, 3))
    (a, 2*b + 1, 3)
    """
    return Parser(shape_spec, chosen_scope(constraints, scope)).shape(like)


def symbolic_args_specs(args: Any, shapes_specs: Any, constraints: Sequence[str] = (),
                        scope: SymbolicScope | None = None) -> Any:
    """Return ShapeDtypeStructs like ``args``, with the shapes that ``shapes_specs`` describe.

    ``shapes_specs`` is a pytree prefix of ``args``: one specification, or None for the shape of the
    argument, for each argument or group of them.

    Raises: ValueError for text that is no shape, or does not fit an argument.

    >>> import numpy as np
    >>> symbolic_args_specs((np.ones((2, 3)), np.ones(2)), ("a, 3", "a"))[1].shape
    (a,)
    """
    inside = chosen_scope(constraints, scope)
    leaves, structure = tree.flatten(args)
    if isinstance(shapes_specs, (list, tuple)) and type(args) in (list, tuple):
        shapes_specs = type(args)(shapes_specs)
    specs = tree.broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None)
    made = []
    for leaf, spec in zip(leaves, specs, strict=True):
        if not hasattr(leaf, "dtype"):
            leaf = aval_of(leaf)
        shape = symbolic_shape(spec, scope=inside, like=tuple(leaf.shape))
        made.append(ShapeDtypeStruct(shape, leaf.dtype))
    return structure.unflatten(made)


def is_symbolic_dim(p: Any) -> bool:
    """Return whether ``p`` is a dimension whose size is not known.

    >>> is_symbolic_dim(symbolic_shape("a, 3")[0])
    True
    """
    return isinstance(p, Dim)
