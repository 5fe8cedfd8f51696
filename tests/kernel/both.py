"""Do Saem and JAX give one answer to a program?

A program is an expression as text, or a function of the test.  It runs here on Saem; its source is
sent to a second process, where the names ``jax``, ``jnp``, ``lax`` and ``np`` mean the real ones.
Values, dtypes, weak types and errors are compared; what differs is named by its path in the result
and by the expression that computes it.

Read before: ``oracle.py``, ``sources.py``.  Read after: ``test_derivatives.py``.
Invariant: every expected value comes from JAX.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from oracle import FLOAT0, JaxError, Oracle
from sources import GIVEN, definitions, function_text

import saem as jax
import saem.numpy as jnp
from saem import lax

Program = str | Callable[..., Any]
Module = types.ModuleType | str  # a module, or the name of one


def source_of(program: Program, within: Module | None = None,
              arguments: Iterable[str] = ()) -> str:
    """Return the text to send to JAX, with the definitions of the tests that it needs before it.

    A program may use ``jax``, ``jnp``, ``lax``, ``np``, its ``arguments``, and what the module of
    its function, or the module ``within``, defines or imports.  A function is sent with a
    call of it.
    """
    if isinstance(program, str):
        if within is None:
            return program
        call = f"result = ({program.strip()})"
        return "\n".join([*definitions(call, loaded(within), GIVEN.union(arguments)), call])
    text = function_text(program)
    names = inspect.signature(program).parameters
    call = f"result = {program.__name__}({', '.join(f'{name}={name}' for name in names)})"
    return "\n".join([*definitions(text, loaded(program.__module__)), text, call])


def leaves_agree(got: Any, answer: Any, rtol: float = 0.0) -> None:
    """Assert that a value is that of JAX: structure, dtypes and numbers, and all else equal."""
    assert jax.tree.structure(got) == jax.tree.structure(answer)
    for mine, wanted in zip(jax.tree.leaves(got), jax.tree.leaves(answer)):
        if isinstance(wanted, np.ndarray):
            assert mine.dtype == wanted.dtype
            np.testing.assert_allclose(np.asarray(mine), wanted, rtol=rtol)
        else:
            assert mine == wanted


def loaded(module: Module) -> types.ModuleType:
    """Return a loaded module, which may be given by name."""
    return sys.modules[module] if isinstance(module, str) else module


def ours(program: Program, within: Module | None = None, **arguments: Any) -> Any:
    """Return what a program gives on Saem.

    As text it is an expression, or statements that set ``result``; it may use the names of the
    module ``within``.
    """
    if not isinstance(program, str):
        return program(**arguments)
    names = dict(vars(loaded(within))) if within is not None else {}
    names |= {"jax": jax, "jnp": jnp, "lax": lax, "np": np, "ml_dtypes": ml_dtypes, **arguments}
    source = textwrap.dedent(program).strip()
    try:
        code = compile(source, "<both>", "eval")
    except SyntaxError:
        exec(compile(source, "<both>", "exec"), names)
        return names["result"]
    return eval(code, names)


def same(oracle: Oracle, program: Program, rtol: float = 2e-6, within: Module | None = None,
         **arguments: Any) -> None:
    """Assert that Saem and JAX give one value: structure, numbers, shapes, dtypes, weak types."""
    source = source_of(program, within, arguments)
    answer = oracle.run(source, **arguments)
    got = ours(program, within, **arguments)
    try:
        agree(got, answer.value, answer.weak, rtol)
    except Differs as found:
        raise AssertionError(
            f"result{found.where} differs: {found}\n  it is  {expression_at(source, found.path)}"
        ) from None


class Differs(AssertionError):
    """Two results are not one; ``path`` leads to the place in them."""

    def __init__(self, text: str, path: tuple[Any, ...]):
        super().__init__(text)
        self.path = path

    @property
    def where(self) -> str:
        return "".join(f"[{step!r}]" for step in self.path)


def agree(got: Any, wanted: Any, weak: Any, rtol: float, path: tuple[Any, ...] = ()) -> None:
    """Assert that ``got`` is what JAX gave.  Raises: Differs, which names the place."""
    def need(holds: bool, what: str) -> None:
        if not holds:
            raise Differs(f"{what}\n  Saem:  {got!r}\n  JAX:   {wanted!r}", path)

    if isinstance(wanted, (list, tuple)):
        need(type(got) is type(wanted) and len(got) == len(wanted), "type or length")
        for i, (g, w, k) in enumerate(zip(got, wanted, weak)):
            agree(g, w, k, rtol, (*path, i))
    elif isinstance(wanted, dict):
        need(isinstance(got, dict) and set(got) == set(wanted), "keys")
        for key in wanted:
            agree(got[key], wanted[key], weak[key], rtol, (*path, key))
    elif isinstance(wanted, np.ndarray):
        need(getattr(got, "dtype", None) == wanted.dtype and got.shape == wanted.shape,
             "dtype or shape")
        need(bool(getattr(got, "weak_type", False)) == weak, "weak type")
        if wanted.dtype != FLOAT0:
            try:
                np.testing.assert_allclose(np.asarray(got), wanted, rtol=rtol, atol=rtol)
            except AssertionError as told:
                raise Differs(str(told).strip(), path) from None
    elif isinstance(wanted, (float, complex)) and hasattr(got, "weak_type"):
        # Where JAX hands a Python number through, Saem may return the array it stands for.
        need(got.weak_type and got.shape == () and got.item() == wanted, "number")
    else:
        need(type(got) is type(wanted) and got == wanted, "value")


def expression_at(source: str, path: tuple[Any, ...]) -> str:
    """Return the text in ``source`` that computes the part of its result at ``path``.

    As far as lists, tuples and dicts written out lead to it; from there on the whole is shown.
    """
    tree = ast.parse(textwrap.dedent(source).strip())
    found: ast.AST = tree.body[-1]
    if isinstance(found, (ast.Assign, ast.Expr)):
        found = found.value
    called = tree.body[-2] if len(tree.body) > 1 else None
    if isinstance(called, ast.FunctionDef) and _is_plain_call(found, called.name):
        returns = [node for node in called.body if isinstance(node, ast.Return)]
        found = (returns[-1].value if returns else None) or found
    for step in path:
        if isinstance(found, (ast.List, ast.Tuple)) and isinstance(step, int):
            before = found.elts[:step + 1]
            if len(before) <= step or any(isinstance(part, ast.Starred) for part in before):
                break
            found = found.elts[step]
        elif isinstance(found, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in found.keys]
            if step not in keys:
                break
            found = found.values[keys.index(step)]
        else:
            break
    text = ast.unparse(found)
    return text if len(text) < 300 else text[:297] + "..."


def _is_plain_call(node: ast.AST, name: str) -> bool:
    """Return whether ``node`` is the call of a program that ``source_of`` writes."""
    return (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            and node.func.id == name and not node.args
            and all(isinstance(k.value, ast.Name) and k.arg == k.value.id for k in node.keywords))


def same_error(oracle: Oracle, program: Program, sentence: str, within: Module | None = None,
               **arguments: Any) -> None:
    """Assert that both refuse ``program`` with ``sentence``, caught by one ``except``."""
    try:
        value = oracle.run(source_of(program, within, arguments), **arguments).value
    except JaxError as error:
        theirs = error
    else:
        raise AssertionError(f"JAX did not refuse: {value!r}")
    assert sentence in theirs.message, theirs
    with pytest.raises(Exception) as caught:
        ours(program, within, **arguments)
    assert sentence in str(caught.value), f"{caught.value!r}\nJAX: {theirs}"
    names = [cls.__name__ for cls in caught.type.__mro__]
    caught_by = next(name for name in theirs.bases
                     if hasattr(builtins, name) or hasattr(jax.errors, name))
    assert caught_by in names, f"JAX raises {theirs.kind}, Saem {names}"
