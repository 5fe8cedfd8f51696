"""The protocol: JSON there and back, and the generated files."""

from __future__ import annotations

import inspect
import json
import pathlib

import jsonschema
import made
import pytest

from saem.core.events import Bus
from saem.observe import schema
from saem.observe.environment import environment
from saem.observe.generate import JSON_SCHEMA, TYPESCRIPT
from saem.observe.recorder import Recorder
from saem.observe.typed_json import SchemaError, dumps, from_json, json_schema, to_json

ROOT = pathlib.Path(__file__).parents[2]


def history() -> schema.HistoryModel:
    bus, recorder = Bus(), Recorder()
    recorder.start(bus)
    whole_calls = (made.signature(made.argument()), made.signature(made.argument(shape=(4,))))
    for called_with in whole_calls:
        made.whole_call(bus, made.function(), called_with)
    return recorder.snapshot()


def messages():
    whole = history()
    row = whole.functions[0]
    hello = schema.Hello("hello", schema.VERSION, "ko", environment())
    return [
        whole,
        hello,
        schema.Snapshot("snapshot", whole),
        schema.Append("append", row.summary, row.records[-1]),
        schema.Failure("error", "message", schema.Text("a", "가")),
        schema.Greeting("hello", 1, "ko_KR", "a"),
        schema.Request("request", "clear"),
    ]


@pytest.mark.parametrize("model", messages(), ids=lambda m: type(m).__name__)
def test_json_there_and_back(model):
    value = json.loads(dumps(model))
    assert from_json(type(model), value) == model
    jsonschema.validate(value, json_schema((type(model),), "one"))


def test_the_json_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(JSON_SCHEMA)


def test_the_typescript_is_up_to_date():
    written = (ROOT / "extension/src/schema.ts").read_text(encoding="utf-8")
    assert written == TYPESCRIPT, "run python -m saem.observe.schema --typescript"


def test_the_kernel_keeps_as_much_as_the_page():
    limits = inspect.signature(Recorder).parameters
    assert limits["functions"].default == schema.MOST_FUNCTIONS
    assert limits["records"].default == schema.MOST_RECORDS


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"type": "request", "what": "delete"}, "what"),
        ({"type": "request"}, "missing ['what']"),
        ({"type": "request", "what": "clear", "more": 1}, "unknown ['more']"),
        ([], "needs an object"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(value, told):
    with pytest.raises(SchemaError) as refused:
        from_json(schema.Request, value)
    assert told in str(refused.value)


def test_a_model_that_does_not_fit_is_refused_as_what_it_says_it_is():
    with pytest.raises(SchemaError, match="does not fit JaxprModel: missing"):
        from_json(schema.Model, {"kind": "jaxpr", "version": schema.VERSION})


def test_every_sample_of_the_extension_fits():
    samples = sorted((ROOT / "extension" / "test" / "samples").glob("*.json"))
    assert samples
    for sample in samples:
        from_json(schema.Model, json.loads(sample.read_text(encoding="utf-8")))


def test_a_model_of_other_things_is_refused():
    with pytest.raises(TypeError, match="plain values"):
        to_json(schema.Text(object(), ""))  # type: ignore[arg-type]


def test_infinite_numbers_become_null():
    assert to_json(schema.Seconds(float("inf"), float("nan"), 1.0)) == {
        "trace": None, "lower": None, "compile": 1.0,
    }
