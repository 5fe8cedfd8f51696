"""Is a primitive refused unless all its six rules are there?"""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

import saem
from saem.core.primitive import NOT_LINEAR, RULES, Primitive, absent, primitive, registry
from saem.ops.arithmetic import Add, IntegerPow
from saem.ops.linear import Transpose


def rules(*without: str) -> dict:
    given = {rule: (lambda self, *args: args) for rule in RULES if rule not in without}
    return {**given, "__slots__": ()}


@pytest.mark.parametrize("rule", RULES)
def test_a_missing_rule_is_named(rule):
    incomplete = type("Incomplete", (Primitive,), rules(rule))
    with pytest.raises(TypeError, match=f"'incomplete' has no {rule} rule"):
        primitive("incomplete")(incomplete)
    assert "incomplete" not in registry


def test_a_rule_that_cannot_exist_says_why():
    body = {**rules("transpose", "batch"), "transpose": NOT_LINEAR,
            "batch": absent("it has a side effect on one example")}
    try:
        made = primitive("refusing")(type("Refusing", (Primitive,), body))
        with pytest.raises(NotImplementedError, match="'refusing' not implemented: it is not"):
            made().transpose(1.0)
        with pytest.raises(TypeError, match="refusing has no batch rule: it has a side effect"):
            made().batch(1, (), ())
    finally:
        registry.pop("refusing")


def test_a_taken_name_is_refused():
    with pytest.raises(TypeError, match="'add' is already taken by Add"):
        primitive("add")(type("Other", (Primitive,), rules()))
    assert registry["add"] is Add


def test_equal_parameters_make_equal_primitives_and_none_make_one_object():
    assert IntegerPow(2) == IntegerPow(2)
    assert hash(IntegerPow(2)) == hash(IntegerPow(2))
    assert IntegerPow(2) != IntegerPow(3)
    assert Add() is Add()
    with pytest.raises(dataclasses.FrozenInstanceError):
        Transpose((0, 1)).permutation = (1, 0)


def test_params_are_those_of_the_equation():
    assert Transpose((1, 0)).params == {"permutation": (1, 0)}
    assert np.array_equal(Transpose((1, 0)).evaluate(np.eye(2)), np.eye(2))


def declared() -> set[str]:
    """The names that ``Primitive`` declares: rules, facts and their defaults."""
    return {name for cls in Primitive.__mro__ for name in (
        *vars(cls), *vars(cls).get("__annotations__", ())) if not name.startswith("__")}


@pytest.mark.parametrize("source", sorted((Path(saem.__file__).parent).rglob("*.py")),
                         ids=lambda p: str(p.relative_to(Path(saem.__file__).parent)))
def test_what_is_asked_of_a_primitive_is_declared(source):
    """No file looks a rule up by ``getattr``, compares names, or asks for what is not declared."""
    text = source.read_text()
    asked = {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)
             and isinstance(node.value, ast.Name) and node.value.id == "prim"
             and isinstance(node.ctx, ast.Load)}
    engine = source.relative_to(Path(saem.__file__).parent).parts[0] in (
        "core", "compile", "transform", "jit")
    if engine:
        assert not asked - declared() - {"record", "prim"}, source
    assert not re.search(r"(getattr|hasattr)\((prim|case\.prim|eqn\.operation),", text)
    assert not re.search(r"\bself\.name (==|!=|in) ", text) or source.stem == "config", source
    assert not re.search(r"\bprim\.name (==|!=|in|not in) |operation\.name (==|!=|in) ", text)
