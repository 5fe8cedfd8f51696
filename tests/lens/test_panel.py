"""The live panel's half of the protocol, on a comm that only writes down."""

from __future__ import annotations

import threading

import made
import pytest

from saem.core.events import Bus
from saem.lens.panel import Panel
from saem.lens.pulse import Pulse
from saem.observe import language
from saem.observe.language import _choice
from saem.observe.places import Places
from saem.observe.recorder import Recorder
from saem.observe.schema import KERNEL_MESSAGES, VERSION
from saem.observe.typed_json import from_json


class Comm:
    """Writes down what is sent."""

    def __init__(self, comm_id="one"):
        self.comm_id, self.sent, self.closed = comm_id, [], False

    def send(self, data):
        self.sent.append(data)
        kinds = {k.__name__.lower(): k for k in KERNEL_MESSAGES}
        name = {"error": "failure"}.get(data["type"], data["type"])
        from_json(kinds[name], data)

    def on_msg(self, callback):
        self.ask = lambda **data: callback({"content": {"data": data}})

    def on_close(self, callback):
        self.leave = lambda: callback({})

    def close(self):
        self.closed = True


@pytest.fixture
def setting():
    bus, recorder = Bus(), Recorder(named=Places())
    recorder.start(bus)
    panel = Panel(recorder)
    yield bus, recorder, panel
    panel.stop()


def opened(panel, comm, **changes):
    greeting = {"type": "hello", "version": VERSION, "locale": "en", "client": "",
                **changes}
    panel.opened(comm, {"content": {"data": greeting}})
    return comm


def test_a_greeting_is_answered_by_hello_and_all_so_far(setting):
    bus, _, panel = setting
    made.whole_call(bus, made.function(), made.signature(made.argument()))
    comm = opened(panel, Comm())
    assert [m["type"] for m in comm.sent] == ["hello", "snapshot"]
    assert comm.sent[1]["history"]["functions"][0]["summary"]["name"] == "step"


def test_records_are_appended_and_the_last_state_is_sent(setting):
    bus, _, panel = setting
    comm = opened(panel, Comm())
    made.whole_call(bus, made.function(), made.signature(made.argument()))
    panel.flush()
    last = comm.sent[-1]
    assert (last["type"], last["record"]["kind"]) == ("append", "compile")
    assert last["function"]["compiles"] == 1


def test_clear_forgets_for_every_panel(setting):
    bus, recorder, panel = setting
    first, second = (opened(panel, Comm(name)) for name in ("one", "two"))
    made.whole_call(bus, made.function(), made.signature(made.argument()))
    first.ask(type="request", what="clear")
    assert recorder.snapshot().functions == ()
    assert second.sent[-1]["history"]["functions"] == []


def test_another_version_is_told_and_not_served(setting):
    _, _, panel = setting
    comm = opened(panel, Comm(), version=VERSION + 1)
    assert [(m["type"], m["tag"]) for m in comm.sent] == [("error", "version")]


@pytest.mark.parametrize("data", [{}, {"type": "request", "what": "eval"}, {"type": "x"}])
def test_a_strange_request_is_answered_by_an_error(setting, data):
    _, _, panel = setting
    comm = opened(panel, Comm())
    comm.ask(**data)
    assert comm.sent[-1]["type"] == "error"


def test_a_panel_that_left_gets_nothing_more(setting):
    bus, _, panel = setting
    comm = opened(panel, Comm())
    comm.leave()
    count = len(comm.sent)
    made.whole_call(bus, made.function(), made.signature(made.argument()))
    panel.flush()
    assert len(comm.sent) == count


def test_a_page_that_is_loaded_again_takes_the_place_of_its_earlier_comm(setting):
    bus, _, panel = setting
    first, other, again = (opened(panel, Comm(name), client=client)
                           for name, client in (("one", "a"), ("two", "b"), ("three", "a")))
    first.leave()
    made.whole_call(bus, made.function(), made.signature(made.argument()))
    panel.flush()
    assert [c.closed for c in (first, other, again)] == [True, False, False]
    assert ["append" in [m["type"] for m in c.sent] for c in (first, other, again)] \
        == [False, True, True]


def test_the_locale_is_followed_until_a_person_chooses(setting, monkeypatch):
    _, _, panel = setting
    monkeypatch.setattr(_choice, "language", "en", raising=False)
    monkeypatch.setattr(_choice, "by_person", False, raising=False)
    assert opened(panel, Comm(), locale="ko_KR").sent[0]["language"] == "ko"
    language.choose("en")
    assert opened(panel, Comm(), locale="ko_KR").sent[0]["language"] == "en"


def test_pulse_joins_many_beats_and_never_loses_the_last():
    done = threading.Event()
    seen, state = [], {"n": 0}

    def action():
        seen.append(state["n"])
        if state["n"] == 1000:
            done.set()

    pulse = Pulse(action, 0.02)
    for number in range(1, 1001):
        state["n"] = number
        pulse.beat()
    assert done.wait(5)
    assert len(seen) < 100


def test_a_stopped_pulse_is_silent():
    seen = []
    pulse = Pulse(lambda: seen.append(1), 0.01)
    pulse.beat()
    pulse.stop()
    pulse.flush()
    pulse.beat()
    assert seen == []
