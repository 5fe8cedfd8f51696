"""Why was it traced again?  Every row of the table, on signatures made by hand."""

from __future__ import annotations

import dataclasses

import made
import pytest

from saem.core.events import Position
from saem.observe.places import Places
from saem.observe.reasons import Earlier, why

X = made.argument("x")
BASE = made.signature(X)
STATIC = made.signature(X, static=(made.static("mode", "foo"),))


def reasons_for(old, new, same_identity=True, **more):
    earlier = [Earlier(old, 1, True, None)]
    return why("step", new, 1 if same_identity else 2, None, earlier, **more)


ROWS = {
    "shape": (BASE, made.signature(made.argument(shape=(4,))),
              ("shape", "x", "f32[3]", "f32[4]")),
    "dtype": (BASE, made.signature(made.argument(dtype="i32")),
              ("dtype", "x", "f32[3]", "i32[3]")),
    "weak type": (BASE, made.signature(made.argument(weak_type=True)),
                  ("weak_type", "x", "f32[3]", "~f32[3]")),
    "a number, which lies nowhere, and an array": (
        made.signature(made.argument(shape=(), placement="")), BASE,
        ("shape", "x", "f32[]", "f32[3]")),
    "static value of the same hash": (
        made.signature(X, static=(made.static("on", 1),)),
        made.signature(X, static=(made.static("on", True),)), ("static_value", "on", "1", "True")),
    "static value": (STATIC, made.signature(X, static=(made.static("mode", "bar"),)),
                     ("static_value", "mode", "'foo'", "'bar'")),
    "to keyword": (made.signature(X, made.argument("y")),
                   made.signature(X, made.argument("y", given="keyword"), structure="other"),
                   ("position_keyword", "y", "position", "keyword")),
    "to position": (made.signature(made.argument("y", given="keyword")),
                    made.signature(made.argument("y"), structure="other"),
                    ("position_keyword", "y", "keyword", "position")),
    "static to keyword": (STATIC,
                          made.signature(X, static=(made.static("mode", "foo", "keyword"),)),
                          ("position_keyword", "mode", "position", "keyword")),
    "committed": (BASE, made.signature(made.argument(committed=True)),
                  ("committed", "x", "cpu:0", "cpu:0")),
    "not committed": (made.signature(made.argument(committed=True)), BASE,
                      ("committed", "x", "cpu:0", "cpu:0")),
    "device": (made.signature(made.argument(committed=True)),
               made.signature(made.argument(committed=True, placement="cpu:1")),
               ("device", "x", "cpu:0", "cpu:1")),
    "given": (BASE, made.signature(X, made.argument("y", (2,)), structure="other"),
              ("structure", "y", None, "f32[2]")),
    "omitted": (made.signature(X, made.argument("y", (2,))), made.signature(X, structure="other"),
                ("structure", "y", "f32[2]", None)),
    "other leaves": (made.signature(made.argument("p['a']")),
                     made.signature(made.argument("p['a']"), made.argument("p['b']"),
                                    structure="other"),
                     ("structure", "p", "p['a']", "p['a'], p['b']")),
    "other leaves of many": (
        made.signature(*(made.argument(f"p[{i}]['weights']") for i in range(9))),
        made.signature(*(made.argument(f"p[{i}]['weights']") for i in range(1, 9)),
                       made.argument("p[9]['weights']"), structure="other"),
        ("structure", "p", "p[0]['weights']", "p[9]['weights']")),
    "other container": (BASE, dataclasses.replace(BASE, structure="([*],)"),
                        ("structure", None, "((*,), {})", "([*],)")),
    "config": (BASE, dataclasses.replace(BASE, config=(("enable_x64", "True"),)),
               ("config", "enable_x64", "False", "True")),
    "donation": (BASE, dataclasses.replace(BASE, donated=("x",)), ("donation", None, "-", "x")),
    "dropped": (BASE, BASE, ("dropped", None, None, None)),
}


@pytest.mark.parametrize("row", ROWS)
def test_one_difference_gives_one_reason_in_the_callers_words(row):
    old, new, expected = ROWS[row]
    (reason,) = reasons_for(old, new)
    assert (reason.tag, reason.path, reason.old, reason.new) == expected
    for text in (reason.says.en, reason.says.ko):
        for word in expected[1:]:
            hidden = word in ("position", "keyword") or (reason.tag == "committed")
            assert word is None or hidden or word in text
    assert reason.advice.en
    assert reason.advice.ko


def test_first_call():
    (reason,) = why("step", BASE, 1, None, [])
    assert reason.tag == "first_call"


def test_several_differences_give_several_reasons():
    old = made.signature(X, made.argument("y"), static=(made.static("n", 1),))
    new = made.signature(made.argument(shape=(4,)), made.argument("y", dtype="i32"),
                         static=(made.static("n", 2),))
    found = {(reason.tag, reason.path) for reason in reasons_for(old, new)}
    assert found == {("shape", "x"), ("dtype", "y"), ("static_value", "n")}


def test_shape_and_dtype_of_one_argument_are_two_reasons():
    found = reasons_for(BASE, made.signature(made.argument(shape=(4,), dtype="i32")))
    assert [reason.tag for reason in found] == ["shape", "dtype"]


def test_redefinition_comes_first_and_differences_follow():
    found = reasons_for(BASE, made.signature(made.argument(shape=(4,))), same_identity=False)
    assert [reason.tag for reason in found] == ["redefinition", "shape"]


def test_redefinition_names_cell_and_run():
    places = Places()
    made_at = Position("f.py", 1, 0, 1, 0, "step")
    places.announce("f.py", 4, "id-a")
    before = places.place(made_at)
    places.announce("f.py", 5, "id-a")
    now = places.place(made_at)
    (reason,) = why("step", BASE, 2, now, [Earlier(BASE, 1, True, before)])
    assert reason.says.en == "you redefined `step` (cell 5, line 1, run 2)"
    assert "셀 5 1행, 2번째 실행" in reason.says.ko


def test_function_made_anew_by_one_run_is_told_from_a_redefinition():
    place = Places().place(Position("f.py", 7, 0, 7, 0, "<lambda>"))
    (reason,) = why("<lambda>", BASE, 2, place, [Earlier(BASE, 1, True, place)])
    assert reason.tag == "redefinition"
    assert "new function object" in reason.says.en


@pytest.mark.parametrize(("was", "now", "said"), [
    ((), ("grad",), "`-` → `grad`"), (("vmap", "grad"), ("grad",), "`vmap ▸ grad` → `grad`")])
def test_a_function_under_another_transformation_is_not_called_redefined(was, now, said):
    place = Places().place(Position("f.py", 7, 0, 7, 0, "step"))
    earlier = [Earlier(BASE, 1, True, place, was)]
    (reason,) = why("step", BASE, 2, place, earlier, transforms=now)
    assert reason.tag == "redefinition"
    assert reason.says.en == f"`step` is under other transformations: {said}"


def test_compared_with_the_nearest_earlier_call():
    far = made.signature(made.argument(shape=(9,), dtype="i32"))
    near = made.signature(made.argument(shape=(5,)))
    earlier = [Earlier(near, 1, True, None), Earlier(far, 1, True, None)]
    (reason,) = why("step", BASE, 1, None, earlier)
    assert (reason.old, reason.new) == ("f32[5]", "f32[3]")


def test_traced_inside_another_function_before():
    (reason,) = why("step", BASE, 1, None, [Earlier(BASE, 1, False, None)])
    assert reason.tag == "nested"


def test_many_leaves_of_one_argument_are_one_reason():
    def call(size):
        return made.signature(*[made.argument(f"params['{i}']", (size,)) for i in range(12)])

    (reason,) = reasons_for(call(3), call(4))
    assert reason.says.en.startswith("argument `params['0']` and 11 more of `params`")
    assert "11개" in reason.says.ko


def test_object_known_by_address_is_advised_to_compare_by_value():
    old = made.signature(X, static=(dataclasses.replace(
        made.static("cfg", 1), value="<Config object at 0x7f01>"),))
    new = made.signature(X, static=(dataclasses.replace(
        made.static("cfg", 2), value="<Config object at 0x7f02>"),))
    (reason,) = reasons_for(old, new)
    assert reason.tag == "static_value"
    assert "__eq__" in reason.advice.en


def test_where_an_array_was_moved_is_told():
    place = Places().place(made.position(line=4))
    new = made.signature(made.argument(committed=True))
    (reason,) = reasons_for(BASE, new, moved={"cpu:0": place})
    assert "model.py, line 4" in reason.says.en
