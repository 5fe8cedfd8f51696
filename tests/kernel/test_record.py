"""Is a Record what a frozen dataclass is?  The standard library's decorator is the oracle."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import pickle

import pytest

from saem.core.record import Record

_numbers = itertools.count(1)


class Base(Record):
    a: int
    b: tuple = (1, 2)


class Point(Base):
    c: float = 0.5
    kind = "no field, since it has no annotation"


class Stamped(Record, kw_only=True):
    number: int = dataclasses.field(default_factory=lambda: next(_numbers))
    name: str


@dataclasses.dataclass(frozen=True)
class Standard:
    a: int
    b: tuple = (1, 2)
    c: float = 0.5


CALLS = [((1,), {}), ((1, (3,)), {}), ((1, (3,), 2.0), {}), ((), {"c": 1.0, "a": 7}),
         ((4,), {"c": 1.0})]


@pytest.mark.parametrize(("args", "kwargs"), CALLS)
def test_it_holds_prints_and_compares_as_a_dataclass_does(args, kwargs):
    record, standard = Point(*args, **kwargs), Standard(*args, **kwargs)
    assert dataclasses.asdict(record) == dataclasses.asdict(standard)
    assert repr(record) == repr(standard).replace("Standard", "Point")
    assert record == Point(*args, **kwargs) and hash(record) == hash(Point(*args, **kwargs))
    for other in CALLS:
        assert (record == Point(*other[0], **other[1])) == (
            standard == Standard(*other[0], **other[1]))
    assert record != standard
    assert dataclasses.replace(record, b=()) == Point(record.a, (), record.c)
    copies = copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))
    assert all(each == record for each in copies)


@pytest.mark.parametrize(("args", "kwargs", "said"), [
    ((), {}, "needs a"), ((), {"b": ()}, "needs a"),
    ((1, 2, 3, 4), {}, "takes 3 values, but got 4"),
    ((1,), {"a": 2}, "got 'a' twice"), ((1,), {"d": 2}, "has no field 'd'; it has a, b, c"),
])
def test_a_call_that_does_not_fit_is_refused_as_by_a_dataclass(args, kwargs, said):
    with pytest.raises(TypeError):
        Standard(*args, **kwargs)
    with pytest.raises(TypeError, match=said):
        Point(*args, **kwargs)


def test_it_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Point(1).a = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del Point(1).a


def test_what_dataclasses_reads_of_it():
    assert dataclasses.is_dataclass(Point)
    described, standard = dataclasses.fields(Point), dataclasses.fields(Standard)
    assert [(f.name, f.type, f.default) for f in described] == [
        (f.name, f.type, f.default) for f in standard]
    assert [f.name for f in dataclasses.fields(Base)] == ["a", "b"]
    match Point(1, (2,), 3.0):
        case Point(a, b, c):
            assert (a, b, c) == (1, (2,), 3.0)


def test_a_default_made_anew_is_made_for_each():
    first, second = Stamped(name="x"), Stamped(name="x")
    assert second.number == first.number + 1
    assert Stamped(name="x", number=9) == Stamped(name="x", number=9)
