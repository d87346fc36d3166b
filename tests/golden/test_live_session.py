"""A recorded live session is spoken today too, by the client and by the server."""

import asyncio
import io
import json
from collections.abc import Iterator
from threading import Condition

import PIL.Image
import pytest
from websockets.exceptions import ConnectionClosedError

from headstart.answers.answer import Answer
from headstart.answers.preview import Confirmed, Preview, Retracted
from headstart.answers.timeline import Span, Stage, Timeline
from headstart.live.window_question import WindowAnswer
from headstart.media.annex_b import Codec, can_begin
from headstart_client import live_client
from headstart_client.live_client import LiveAnswer
from headstart_client.wire import Media, MediaKind, pack_events, unpack_events
from headstart_server.limits import Limits
from headstart_server.live.answer_buffer import UnacknowledgedAnswers
from headstart_server.live.messages import (
    answer_message,
    error_message,
    read_message,
    words_message,
)
from headstart_server.refusal import bad_request
from rig.waiting import PATIENCE_S
from tests.golden.live_session import (
    NUM_SLOTS,
    SENSOR,
    SESSIONS,
    SLOT_US,
    Frame,
    agreed,
    media_in,
    read,
    session_of,
    texts_in,
)
from tests.serve.test_live_socket import socket_of

KEPT = read()
FROM_CLIENT = texts_in(KEPT, "client")
FROM_SERVER = texts_in(KEPT, "server")
MEDIA = media_in(KEPT)
WORDS = {kind.__name__.lower(): kind for kind in (Preview, Confirmed, Retracted)}


def of_type(*types: str) -> list[str]:
    """What the server said in messages of these types."""
    return [text for text in FROM_SERVER if json.loads(text)["type"] in types]


def frames_of(lines) -> Iterator[Frame]:
    """What the client was given to send."""
    events = None
    for message in media_in(lines):
        media = Media.parse(message)
        if media.kind is MediaKind.EVENTS:
            events = unpack_events(media.payload, SENSOR, 1000)
        else:
            yield Frame(media.time_us, media.payload, events)
            events = None


class Played:
    """In place of a connection: the server's part, said as soon as the client has said its own."""

    def __init__(self, lines) -> None:
        self._lines = lines
        self._place = 0
        """Of the line that is next."""
        self._moved = Condition()
        self._is_closed = False
        self.close_code = None

    def connect(self, address: str, key: str, stream: str) -> "Played":
        return self

    def send(self, message: str | bytes) -> None:
        with self._moved:
            line = self._next({"client", "client_media"})
            (kept,) = media_in([line]) or [line.get("client")]
            assert message == kept, f"line {self._place}: kept {kept!r}, now {message!r}"
            self._move_on()

    def _next(self, by: set[str]):
        """The next line, once it is of one of these; nothing after the last one."""

        def is_due() -> bool:
            return self._place == len(self._lines) or not self._lines[
                self._place
            ].keys().isdisjoint(by)

        assert self._moved.wait_for(is_due, PATIENCE_S), f"{by} waits: {self._lines[self._place]}"
        return self._lines[self._place] if self._place < len(self._lines) else {}

    def _move_on(self) -> None:
        self._place += 1
        self._moved.notify_all()

    def recv(self, timeout: float) -> str:
        return next(iter(self))

    def __iter__(self) -> Iterator[str]:
        while True:
            with self._moved:
                line = self._next({"server", "cut"})
                self._move_on()
            if "cut" in line:
                raise ConnectionClosedError(None, None)
            if not line:
                return
            yield line["server"]

    def close(self) -> None:
        with self._moved:
            self._is_closed = True
            self._moved.notify_all()


@pytest.mark.parametrize("name", SESSIONS)
def test_the_client_says_the_same_and_hears_what_it_heard(name, monkeypatch):
    lines = session_of(KEPT, name)
    played = Played(lines)
    monkeypatch.setattr(live_client, "connect_to", played.connect)
    heard = SESSIONS[name](frames_of(lines), lambda live: None)
    said = [json.loads(text) for text in texts_in(lines, "server")]
    answers = [LiveAnswer.parse(one) for one in said if one["type"] == "answer"]
    assert heard.answers == [answer for answer in answers if answer.number]
    assert heard.asked == [answer for answer in answers if not answer.number]
    assert heard.words == [one for one in said if one["type"] in WORDS]
    assert heard.errors == [one["message"] for one in said if one.get("is_last")]
    assert played._place >= len(lines)


def test_everything_that_can_be_said_was_said():
    assert {json.loads(text)["type"] for text in FROM_CLIENT} == {
        "start",
        "resume",
        "ask",
        "ack",
        "end",
    }
    assert {json.loads(text)["type"] for text in FROM_SERVER} == {
        "started",
        "answer",
        "preview",
        "confirmed",
        "retracted",
        "counts",
        "error",
        "ended",
    }
    assert {Media.parse(message).kind for message in MEDIA} == set(MediaKind)


def test_both_ends_agree_on_what_they_agreed_on():
    assert agreed() == KEPT[0]


def test_the_server_reads_every_text_of_the_client():
    *texts, refused = FROM_CLIENT
    for text in texts:
        message = read_message(text, Limits())
        assert message.model_dump(by_alias=True, exclude_unset=True) == json.loads(text)
    assert refused == texts_in(session_of(KEPT, "refused"), "client")[0]


def test_the_server_reads_every_picture_packet_and_event():
    for message in MEDIA:
        media = Media.parse(message)
        assert media.pack() == message
        match media.kind:
            case MediaKind.EVENTS:
                events = unpack_events(media.payload, SENSOR, 1000)
                assert len(events) == 3
                assert pack_events(events) == media.payload
            case MediaKind.PICTURE if media.payload != b"no picture":
                assert PIL.Image.open(io.BytesIO(media.payload)).size == (
                    SENSOR.width,
                    SENSOR.height,
                )
            case MediaKind.ENCODED:
                starts_window = media.time_us % (NUM_SLOTS * SLOT_US) == 0
                assert can_begin(Codec.H264, media.payload) == starts_window


def answered(said) -> WindowAnswer:
    """What an engine may have answered where the server said this."""
    timeline = Timeline(0.0, said["wait_s"], (Span(Stage.PREFILL, 0.0, said["first_token_s"]),))
    answer = Answer(
        said["text"],
        (7,) * said["num_tokens"],
        said["finish_reason"],
        num_prompt_tokens=9,
        num_cached_tokens=0,
        timeline=timeline,
        accepted_histogram=(said["accepted"], *[0] * (said["num_passes"] - 1)),
    )
    times = {name: said[name] for name in ("start_us", "stop_us", "num_frames")}
    return WindowAnswer("front", "What?", **times, landed_s=0.0, asked_s=0.0, answer=answer)


def test_the_server_writes_the_same_answers():
    for text in of_type("answer"):
        said = json.loads(text)
        message = answer_message(answered(said))
        if "id" in said:
            message |= {"id": said["id"]}
        else:
            kept = UnacknowledgedAnswers()
            kept.number = said["number"] - 1
            message = kept.add(message)
        assert json.dumps(message) == text


def test_the_server_writes_the_same_words():
    for text in of_type(*WORDS):
        said = json.loads(text)
        fields = {name: said[name] for name in ("text", "source") if name in said}
        assert json.dumps(words_message(WORDS[said["type"]](**fields), said["number"])) == text


def test_the_server_writes_the_same_errors():
    for text in of_type("error"):
        said = json.loads(text)
        assert said["code"] == "bad_request"
        message = error_message(bad_request(said["message"]), is_last=said["is_last"])
        assert json.dumps(message) == text


def test_a_refusal_is_the_same_from_the_first_byte_to_the_last():
    lines, sent = session_of(KEPT, "refused"), []

    async def receive():
        return {"type": "websocket.receive", "text": texts_in(lines, "client")[0]}

    async def send(message):
        sent.append(message)

    async def run():
        await socket_of(receive, send).serve(lambda: None)

    asyncio.run(run())
    assert sent == [
        {"type": "websocket.accept", "subprotocol": KEPT[0]["subprotocol"]},
        {"type": "websocket.send", "text": texts_in(lines, "server")[0]},
        {"type": "websocket.close", "code": KEPT[0]["close_codes"]["refused"]},
    ]
