"""The messages of the live protocol without a server: what is taken, what is refused."""

import contextlib
import inspect
import json
import random
import string

import numpy as np
import pytest

from headstart.cli.watch import watch
from headstart.errors import MediaError
from headstart.media.events import Events, SensorSize
from headstart_client.live_client import LiveClient
from headstart_client.wire import EVENT, HEADER, Media, MediaKind, pack_events, unpack_events
from headstart_server.limits import Limits
from headstart_server.live.messages import (
    Ack,
    Ask,
    End,
    Registration,
    Resume,
    Start,
    read_message,
    read_registration,
)
from headstart_server.refusal import RefusedError
from rig.live_camera import START

LIMITS = Limits(max_text_characters=1000, max_grammar_bytes=500)
SENSOR = SensorSize(96, 64)


def read(**fields):
    return read_message(json.dumps(fields), LIMITS)


VALID = {
    "stream": ["front", "x" * 128, "\U0001f600"],
    "window_s": [0.01, 1, 2.5, 86_400],
    "step_s": [0.5, None],
    "question": ["?", None, "x" * 1000],
    "schema": [{"type": "object"}, {}, None],
    "system": ["", "Be brief."],
    "max_tokens": [1, 4096],
    "previews": [True, False],
    "compare": [True, False],
    "simulate_events": [True, False],
}
INVALID = {
    "stream": ["", "x" * 129, None, 1, ["front"]],
    "window_s": [0, -1, 86_401, "2", None, True, [1]],
    "step_s": [0, -1, 90_000, "1", 3.0],
    "question": ["", 1, ["?"], "x" * 1001],
    "schema": ["{}", 1, [], {"x": "y" * 500}, {"x": 10**30}],
    "system": [None, 1, "x" * 1000],
    "max_tokens": [0, -1, 4097, 1.5, "16", None, 10**400],
    "when": ["never", None, "changed"],  # the last one without events
    "at_least_s": [0, -1, "1", 5],  # the last one without "changed"
    "previews": [1, "true", None],
    "compare": [1, "true", None],
    "simulate_events": [1, "yes", None],
    "sensor": ["", "640", "0x480", "99999x99999", 640, "6 40x480"],
    "other": [1],
    "type": ["stop", None, 1],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in VALID.items() for v in vs])
def test_valid_values_are_taken(name, value):
    given = {**START, "window_s": 2, name: value}
    if given["question"] is None:
        given |= {"previews": False}
    if name == "step_s" and value is None:
        given.pop("step_s")
    if isinstance(given["window_s"], float):
        given.pop("step_s", None)
    assert isinstance(read(**given), Start)


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in INVALID.items() for v in vs])
def test_invalid_values_are_refused_by_name(name, value):
    if value == 10**400:
        text = json.dumps({**START, name: 0}).replace(f'"{name}": 0', f'"{name}": 1' + "0" * 400)
    else:
        text = json.dumps({**START, name: value})
    with pytest.raises(RefusedError) as refused:
        read_message(text, LIMITS)
    assert len(refused.value.message) < 300
    if name not in ("type", "other"):
        assert name in refused.value.message or "window" in refused.value.message


def test_events_need_one_source_and_changes_need_events():
    assert read(**START, when="changed", simulate_events=True, at_least_s=5).at_least_s == 5
    assert read(**START, when="changed", sensor="346x260").sensor_size == SensorSize(346, 260)
    with pytest.raises(RefusedError, match="sensor"):
        read(**START, simulate_events=True, sensor="346x260")
    with pytest.raises(RefusedError, match="standing question"):
        read(type="start", stream="x", window_s=1, previews=True)
    with pytest.raises(RefusedError, match="standing question"):
        read(type="start", stream="x", window_s=1, compare=True)


def test_the_other_messages():
    assert read(type="resume", token="x", number=0) == Resume(type="resume", token="x", number=0)
    assert isinstance(read(type="ask", id="1", question="?"), Ask)
    assert read(type="ack", number=3) == Ack(type="ack", number=3)
    assert isinstance(read(type="end"), End)
    for wrong in ({"type": "ack", "number": 1.0}, {"type": "ack"}, {"type": "end", "x": 1}):
        with pytest.raises(RefusedError):
            read(**wrong)


def test_a_text_of_any_kind_is_taken_or_refused():
    chance = random.Random(5)
    whole = json.dumps({**START, "schema": {"type": "object"}})
    for _ in range(3000):
        text = list(whole)
        for _ in range(chance.randrange(1, 6)):
            place = chance.randrange(len(text))
            text[place : place + chance.randrange(3)] = chance.choice(string.printable)
        with contextlib.suppress(RefusedError):  # and no other error
            read_message("".join(text), LIMITS)
    for depth in (10, 1000, 100_000):
        with pytest.raises(RefusedError):
            read_message('{"type": "start", "schema": ' + '{"a":' * depth, LIMITS)


def test_media_are_a_kind_a_time_and_a_payload():
    media = Media(MediaKind.PICTURE, 1_234_567, b"jpeg")
    assert media.pack() == b"\x01" + (1_234_567).to_bytes(8, "big") + b"jpeg"
    assert Media.parse(media.pack()) == media
    for wrong in (
        b"",
        media.pack()[:9],  # no payload
        b"\x00" + media.pack()[1:],
        b"\x04" + media.pack()[1:],
        HEADER.pack(1, -1) + b"x",
        HEADER.pack(1, 2**62) + b"x",
    ):
        with pytest.raises(MediaError):
            Media.parse(wrong)


def test_events_are_packed_in_13_bytes_and_checked():
    columns = ([1, 95], [2, 63], [10, 20], [0, 1])
    events = Events.checked(*map(np.array, columns), SENSOR)
    packed = pack_events(events)
    assert packed[:13] == (10).to_bytes(8, "little") + b"\x01\x00\x02\x00\x00"
    assert unpack_events(packed, SENSOR, 10).digest() == events.digest()
    assert len(unpack_events(b"", SENSOR, 10)) == 0
    for name, value in (("x", 96), ("y", 64), ("p", 2), ("t", 5), ("t", 2**62), ("t", -(2**63))):
        rows = np.frombuffer(packed, EVENT).copy()
        rows[name][1] = value
        with pytest.raises(MediaError):
            unpack_events(rows.tobytes(), SENSOR, 10)
    for wrong in (packed[:-1], packed[:14]):
        with pytest.raises(MediaError, match="whole number"):
            unpack_events(wrong, SENSOR, 10)
    with pytest.raises(MediaError, match="at most"):
        unpack_events(packed, SENSOR, 1)
    chance = np.random.default_rng(3)
    for _ in range(500):  # any bytes at all: events in order on the sensor, or an error
        content = chance.integers(0, 256, 13 * chance.integers(1, 4), dtype=np.uint8).tobytes()
        try:
            found = unpack_events(content, SENSOR, 10)
        except MediaError:
            continue
        assert found.x.max() < 96
        assert (np.diff(found.t) >= 0).all()


REGISTRATION = {
    "source": "rtsp://camera/street",
    "stream": "front",
    "window_s": 2,
    "question": "What is happening?",
}


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n in VALID if n in Registration.names for v in VALID[n]]
)
def test_a_registration_takes_what_a_start_takes(name, value):
    given = {**REGISTRATION, name: value}
    if given["question"] is None:
        with pytest.raises(RefusedError, match="question must be a text"):
            read_registration(json.dumps(given).encode(), LIMITS)
        return
    read = read_registration(json.dumps(given).encode(), LIMITS)
    assert read.model_dump(by_alias=True)[name] == value


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b"\xff",
        b'{"stream": ' + b"[" * 500,
        b" " * 4000 + b"{}",
        *(
            json.dumps({**REGISTRATION, name: value}).encode()
            for name, values in {
                **INVALID,
                "source": ["", "rtsp://a b/", "rtsp://\u00e4/", "rtsp://a/\n", 1, None, "x" * 2049],
                "hook": ["", "http://a b/", 1, ["http://a/"]],
                "sensor": ["96x64"],
                "type": ["start"],
            }.items()
            for value in values
        ),
    ],
)
def test_a_registration_with_a_mistake_is_refused(body):
    with pytest.raises(RefusedError) as refused:
        read_registration(body, LIMITS)
    assert refused.value.status == 400


def test_a_camera_without_a_window_has_that_of_watching():
    said = read(type="start", stream="front")
    registered = read_registration(
        json.dumps(
            {"source": "rtsp://camera/street", "stream": "front", "question": "What?"}
        ).encode(),
        LIMITS,
    )
    defaults = {
        name: parameter.default
        for function in (watch, LiveClient.__init__)
        for name, parameter in inspect.signature(function).parameters.items()
    }
    assert said.window_s == registered.window_s == defaults["window_s"] == defaults["window"] == 2
