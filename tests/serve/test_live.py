"""Live cameras over real sockets of a real server."""

import contextlib
import json
import threading
import time
from collections import Counter

import numpy as np
import psutil
import pytest

from headstart.errors import LiveError
from headstart.media.events import Events, SensorSize
from headstart_client.live_client import LiveClient
from headstart_client.wire import (
    KEY_PREFIX,
    SUBPROTOCOL,
    Media,
    MediaKind,
    pack_events,
)
from headstart_server.live.socket_camera import MAX_ASKS, PAUSE_S
from rig.live_camera import (
    MAX_TOKENS,
    NUM_SLOTS,
    QUESTION,
    SLOT_US,
    START,
    WINDOW_S,
    LiveCamera,
    answers_of,
    jpegs,
    said_over_http,
)
from rig.servers import MAX_TENANT_LIVE, metric

pytestmark = pytest.mark.engine
MAX_REPEATS = 20


def test_a_window_is_answered_as_the_same_pictures_are_over_http(server):
    shown = [jpegs(NUM_SLOTS, seed) for seed in range(3)]
    with LiveCamera(server) as camera:
        started = camera.start(stream="equal")
        assert (started["num_frames"], started["resumed"]) == (NUM_SLOTS, False)
        said = []
        for number, pictures in enumerate([*shown, *[shown[2]] * MAX_REPEATS]):
            camera.show_window(pictures, number)
            answer = camera.wait_for("answer")
            camera.ack(answer)
            assert answer["number"] == number + 1
            assert answer["start_us"] == number * NUM_SLOTS * SLOT_US
            assert answer["stop_us"] == (number + 1) * NUM_SLOTS * SLOT_US
            assert (answer["num_frames"], answer["num_tokens"]) == (NUM_SLOTS, MAX_TOKENS)
            assert 0 < answer["first_token_s"] <= answer["wait_s"]
            said.append(answer)
            # The last scene again and again: what the stream said of it is its draft. Whether it
            # is checked depends on what drafts have cost so far.
            if number >= len(shown) and answer["accepted"]:
                break
        camera.say({"type": "ask", "id": "how many", "question": "How many?", "max_tokens": 24})
        asked = camera.wait_for("answer")
        camera.say({"type": "end"})
        rest, code = camera.rest()
    for pictures, answer in zip(shown, said, strict=False):
        assert answer["text"] == said_over_http(server, pictures)
    assert len({answer["text"] for answer in said[:3]}) == 3, "each window is another scene"
    assert {answer["text"] for answer in said[3:]} == {said[2]["text"]}
    assert said[-1]["accepted"] > 0
    assert said[-1]["num_passes"] < said[2]["num_passes"]
    assert asked["id"] == "how many"
    assert "number" not in asked
    assert asked["text"] == said_over_http(server, shown[2], "How many?")
    assert (rest[-1], code) == ({"type": "ended"}, 1000)
    assert rest[-2]["frames"] == {"taken": len(said) * NUM_SLOTS}
    assert rest[-2]["windows"]["asked"] == rest[-2]["windows"]["ended"] == len(said)


def test_who_asks_too_much_is_answered_again_only_after_a_pause(server):
    with LiveCamera(server) as camera:
        camera.start(stream="curious", max_tokens=4)
        camera.show_window(jpegs(NUM_SLOTS, seed=160), 0)
        camera.ack(camera.wait_for("answer"))
        for number in range(60):  # ten at once, and more for longer than the first four take
            camera.say({"type": "ask", "id": str(number), "question": "How many?", "max_tokens": 4})
            time.sleep(0.0 if number < 10 else 0.05)  # plays: ten at once, then a pace
        time.sleep(PAUSE_S + 0.5)  # plays: a client that waits as long as it has to
        camera.say({"type": "ask", "id": "patient", "question": "How many?", "max_tokens": 4})
        told: dict[str, list[str]] = {"answer": [], "error": []}
        while "patient" not in told["answer"]:
            message = camera.hear()
            if message["type"] in told and "id" in message:
                told[message["type"]].append(message["id"])
        assert len(told["answer"]) == MAX_ASKS + 1
        assert len(told["error"]) == 60 - MAX_ASKS


def test_previewed_words_are_confirmed_or_taken_back(server):
    pictures = jpegs(NUM_SLOTS, seed=11)
    # Words, where the untrained target would say single bytes that are no text yet.
    scene = "a red car waits on the left and a bus comes along the road to the right"
    schema = {"enum": [{"scene": scene}]}
    with LiveCamera(server) as camera:
        camera.start(stream="previews", previews=True, schema=schema, max_tokens=64)
        for number in range(3):
            camera.show_window(pictures, number)
            camera.ack(camera.wait_for("answer"))
    certain, unsure, foreseen = {}, {}, 0
    for message in camera.heard:
        number, text = message.get("number", 0), message.get("text", "")
        match message["type"]:
            case "preview":
                unsure[number] = unsure.get(number, "") + text
                assert message["source"] in ("memory", "ngram")
            case "retracted":
                assert unsure.pop(number) == text
            case "confirmed":
                shown = unsure.get(number, "")
                foreseen += bool(shown) and (shown.startswith(text) or text.startswith(shown))
                unsure[number] = shown.removeprefix(text) if shown.startswith(text) else ""
                certain[number] = certain.get(number, "") + text
            case "answer":
                assert certain[number] == message["text"]
                assert not unsure.get(number)
    assert list(certain) == [1, 2, 3]
    assert foreseen > 0


def test_a_cut_connection_is_resumed_without_a_lost_or_doubled_answer(server, south):
    shown = [jpegs(NUM_SLOTS, seed) for seed in range(20, 24)]
    first = LiveCamera(server)
    started = first.start(stream="cut")
    first.show_window(shown[0], 0)
    known = first.wait_for("answer")
    # Its answer comes while nobody listens; the last picture of the next window is not sent.
    first.show_window(shown[1], 1)
    first.show_window(shown[2][:-1], 2)
    first.socket.ping().wait(60)  # all of it has arrived
    first.cut()
    resume = {"type": "resume", "token": started["token"], "number": known["number"]}
    with LiveCamera(server, "key-south") as stranger:
        stranger.say(resume)
        (refused,), code = stranger.rest()
        assert (refused["code"], code) == ("bad_request", 1008)
        assert "no such camera" in refused["message"]
    with LiveCamera(server) as again:
        again.say(resume)
        resumed = again.wait_for("started")
        assert (resumed["token"], resumed["resumed"]) == (started["token"], True)
        assert resumed["newest_us"] == (3 * NUM_SLOTS - 2) * SLOT_US
        unread = again.wait_for("answer")
        assert unread["text"] == said_over_http(server, shown[1])
        # The window that lost a picture to the break has the others.
        partial = again.wait_for("answer")
        assert (partial["number"], partial["num_frames"]) == (3, NUM_SLOTS - 1)
        again.show_window(shown[3], 3)
        going_on = again.wait_for("answer")
        assert going_on["text"] == said_over_http(server, shown[3])
        again.say({"type": "ack", "number": 4})
        again.say({"type": "end"})
        again.rest()
    given = [*answers_of(first.heard), *answers_of(again.heard)]
    assert [answer["number"] for answer in given] == [1, 2, 3, 4]
    assert [answer["start_us"] // (NUM_SLOTS * SLOT_US) for answer in given] == [0, 1, 2, 3]


def test_answers_stay_until_they_are_acknowledged_and_the_newest_connection_has_the_camera(
    server, north
):
    pictures = jpegs(NUM_SLOTS, seed=30)
    with LiveCamera(server) as first, LiveCamera(server) as second:
        token = first.start(stream="taken over")["token"]
        for number in range(2):
            first.show_window(pictures, number)
            first.wait_for("answer")
        first.say({"type": "ack", "number": 1})
        first.say({"type": "end"})
        first.wait_for("ended")
        second.say({"type": "resume", "token": token, "number": 0})
        second.wait_for("ended")
        heard = [message["type"] for message in second.heard]
        assert heard == ["started", "answer", "counts", "ended"]
        assert second.heard[1]["number"] == 2, "the first was acknowledged"
        second.socket.close()
    # The client knows of the close before the camera has ended.
    server.wait_until(lambda: metric(north, "headstart_tenant_live_cameras") == 0, "it ended")
    with LiveCamera(server) as third:  # it closed as one that has everything does
        third.say({"type": "resume", "token": token, "number": 0})
        assert third.hear()["code"] == "bad_request"


def test_a_client_that_acknowledges_nothing_gets_64_answers_and_the_rest_later(server):
    (picture,) = jpegs(1, seed=40)
    step_us = 50_000
    with LiveCamera(server) as camera:
        camera.start(stream="slow", window_s=step_us / 1e6, max_tokens=1)
        answers = []
        for number in range(65):  # a frame ends the window before it
            camera.show(picture, number * step_us)
            if number:
                answers.append(camera.wait_for("answer"))
        assert [answer["number"] for answer in answers] == list(range(1, 65))
        unread, number = 0, 65
        while not unread:
            camera.show(picture, number * step_us)
            number += 1
            time.sleep(0.0 if number < 10 else 0.05)  # plays: ten at once, then a pace
            assert number < 2000
            if number % 20 == 0:
                message = camera.wait_for("counts")
                assert not list(answers_of(camera.heard))[64:], "none before an acknowledgement"
                unread = message["windows"]["unread"]
        camera.say({"type": "ack", "number": 64})
        more = [camera.wait_for("answer")["number"] for _ in range(64)]
        assert more == list(range(65, 129))


def test_a_flood_loses_whole_windows_and_counts_them(server, operator):
    pictures, num_windows = jpegs(16, seed=50), 120
    before = psutil.Process(server.process.pid).memory_info().rss
    with LiveCamera(server) as camera:
        camera.start(stream="flood", max_tokens=4)
        heard = threading.Thread(target=camera.rest)
        heard.start()
        for number in range(num_windows):
            half = number % 2 * NUM_SLOTS
            camera.show_window(pictures[half : half + NUM_SLOTS], number)
        assert psutil.Process(server.process.pid).memory_info().rss - before < 200e6
        camera.say({"type": "end"})
        heard.join(300)
    answers, counts = list(answers_of(camera.heard)), camera.heard[-2]
    windows, frames = counts["windows"], counts["frames"]
    assert {answer["num_frames"] for answer in answers} == {NUM_SLOTS}, "no half window"
    assert all(answer["start_us"] % (NUM_SLOTS * SLOT_US) == 0 for answer in answers)
    assert windows["lost"] > 0
    assert set(counts["lost_for"]) == {"flood"}
    assert sum(frames.values()) == num_windows * NUM_SLOTS
    assert windows["ended"] + windows["lost"] == num_windows
    assert windows["asked"] == len(answers) > 0
    assert frames["taken"] >= NUM_SLOTS * windows["ended"]
    assert metric(operator, "headstart_live_windows_total") > 0
    server.wait_until(lambda: metric(operator, "headstart_media_bytes") == 0, "memory given back")


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"key": ""}, 401),
        ({"key": "wrong"}, 401),
        ({"key": "key-operator"}, 403),
        ({"key": "", "subprotocols": [SUBPROTOCOL, KEY_PREFIX + "wrong"]}, 401),
        ({"subprotocols": None}, 400),
        ({"subprotocols": ["headstart.live.v2"]}, 400),
    ],
)
def test_a_refused_handshake_says_why(server, options, status):
    from websockets.exceptions import InvalidStatus

    with pytest.raises(InvalidStatus) as refused:
        LiveCamera(server, **options)
    assert refused.value.response.status_code == status
    error = json.loads(refused.value.response.body)["error"]
    assert error["code"] == status
    assert "wrong" not in error["message"]


def test_a_browser_sends_its_key_as_a_subprotocol_which_is_not_repeated(server):
    options = {"subprotocols": [SUBPROTOCOL, KEY_PREFIX + "key-north-2"]}
    with LiveCamera(server, "", **options) as camera:
        assert camera.socket.subprotocol == SUBPROTOCOL
        assert "key-north" not in str(camera.socket.response.headers)
        camera.start(stream="browser")
    assert "key-north-2" not in server.log.read_text(errors="replace")


def test_other_sockets_are_not_there(server):
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    for path in ("/v1/realtime", "/v1/live/", "/", "/v1/chat/completions"):
        with pytest.raises(InvalidStatus) as refused:
            connect(
                f"ws://127.0.0.1:{server.port}{path}",
                additional_headers={"Authorization": "Bearer key-north"},
                proxy=None,
            )
        assert refused.value.response.status_code == 404, path


RUBBISH = [
    "no json",
    "[]",
    "{}",
    json.dumps({"type": "stop"}),
    json.dumps({"type": "end"}),  # before start
    json.dumps({**START, "stream": ""}),
    json.dumps({**START, "stream": 7}),
    json.dumps({**START, "window_s": "2"}),
    json.dumps({**START, "window_s": 0.0001}),
    json.dumps({**START, "step_s": 0.01}),  # 80 windows at a time
    json.dumps({**START, "max_tokens": 0}),
    json.dumps({**START, "priority": 1}),
    json.dumps({**START, "compare": True}),  # no engine to compare with
    json.dumps({**START, "schema": {"type": "nothing"}}),
    json.dumps({**START, "schema": {"type": "object", "properties": 3}}),
    json.dumps({**START, "sensor": "0x0"}),
    json.dumps({**START, "question": "x" * 300_000}),
    json.dumps({"type": "resume", "token": "x", "number": -1}),
    Media(MediaKind.PICTURE, 0, b"before start").pack(),
    b"",
]


@pytest.mark.parametrize("first", RUBBISH, ids=lambda first: str(first)[:60])
def test_rubbish_at_the_start_is_refused_with_what_to_change(server, odd_key, first):
    with LiveCamera(server, odd_key) as camera:
        camera.socket.send(first)
        (error,), code = camera.rest()
    assert error["type"] == "error"
    assert error["is_last"]
    assert (error["code"], code) == ("bad_request", 1008)
    assert len(error["message"]) > 10


@pytest.mark.parametrize(
    "message",
    [
        b"\x01",
        b"\x00" + bytes(20),
        b"\x04" + bytes(20),  # a kind that there is not
        b"\x02" + bytes(20),  # encoded video, but started without a codec
        b"\xff" * 20,
        Media(MediaKind.EVENTS, 0, bytes(13)).pack(),  # started without a sensor
        json.dumps(START),
        json.dumps({"type": "ack", "number": 1}),  # none was given
        json.dumps({"type": "ask", "id": "", "question": "?"}),
    ],
    ids=lambda message: str(message)[:60],
)
def test_rubbish_on_the_way_is_refused_and_ends_the_camera(server, odd_key, message):
    with LiveCamera(server, odd_key) as camera:
        token = camera.start()["token"]
        camera.socket.send(message)
        rest, code = camera.rest()
    assert (rest[-1]["type"], rest[-1]["code"], code) == ("error", "bad_request", 1008)
    with LiveCamera(server, odd_key) as camera:
        camera.say({"type": "resume", "token": token, "number": 0})
        assert camera.hear()["type"] == "error"


@pytest.mark.parametrize(
    "fields",
    [
        {"question": "<video> <image> <video>"},
        {"question": "Who? " * 1000},  # longer than the model's context
        {"question": "</s><s>USER: \x00 \U0001f600"},
        {"system": "<video>"},
        {"system": "Be brief."},
        {"schema": {"enum": [{"scene": "a bus"}, {"scene": "a car"}]}},
        {"max_tokens": 4096},
        {"when": "changed", "simulate_events": True, "at_least_s": 0.1},
        {"step_s": WINDOW_S / 8},
        {"stream": "\x00/../\U0001f600" * 10},
    ],
    ids=str,
)
def test_valid_values_of_every_field_are_answered_or_refused_and_harm_nobody(server, fields):
    pictures = jpegs(NUM_SLOTS, seed=60)
    with LiveCamera(server) as camera:
        camera.start(**fields)
        camera.show_window(pictures, 0)
        while (message := camera.hear())["type"] not in ("answer", "error"):
            pass
        if message["type"] == "error":
            assert message["code"] == "bad_request", message
            assert "<video>" in str(fields) or "Who?" in str(fields), "all others are answered"
        elif "schema" in fields:
            assert json.loads(message["text"])["scene"] in ("a bus", "a car")
    assert server.client().get("/ready").json()["ready"]
    with LiveCamera(server, "key-south") as other:
        other.start()
        other.show_window(pictures, 0)
        assert other.wait_for("answer")["text"] == said_over_http(server, pictures)


@pytest.mark.parametrize("num_bytes", [2 << 20, 64 << 20])
def test_a_message_that_is_too_long_is_not_read_and_ends_the_camera(server, north, num_bytes):
    from websockets.exceptions import ConnectionClosed

    before = psutil.Process(server.process.pid).memory_info().rss
    with LiveCamera(server) as camera:
        camera.start(stream="long")
        with contextlib.suppress(OSError, ConnectionClosed):  # before all of it is sent
            camera.show(bytes(num_bytes), 0)
        _, code = camera.rest()
        assert code in (1009, 1006)  # the second if the reset overtakes the close
    server.wait_until(lambda: metric(north, "headstart_tenant_live_cameras") == 0, "it ended")
    assert psutil.Process(server.process.pid).memory_info().rss - before < 32 << 20


def test_pictures_that_cannot_be_read_lose_their_window_and_no_more(server):
    good = jpegs(NUM_SLOTS, seed=70)
    hostile = [
        good[0][:200],
        b"\xff\xd8\xff" + bytes(5000),
        b"GIF89a" + bytes(100),
        b"\x89PNG\r\n\x1a\n" + bytes(64),
        b"RIFF\x00\x00\x00\x00WEBPVP8 " + bytes(64),
    ]
    with LiveCamera(server) as camera:
        camera.start(stream="hostile")
        for number, bad in enumerate(hostile):
            pictures = [*good[:3], bad, *good[4:]]
            camera.show_window(pictures, number)
            error = camera.wait_for("error")
            assert (error["code"], error["is_last"]) == ("bad_request", False)
        camera.show_window(good, len(hostile))
        answer = camera.wait_for("answer")
        assert answer["start_us"] == len(hostile) * NUM_SLOTS * SLOT_US
        assert answer["text"] == said_over_http(server, good)
        camera.say({"type": "end"})
        rest, _ = camera.rest()
        assert rest[-2]["windows"]["lost"] == len(hostile)
        assert rest[-2]["lost_for"] == {"unreadable": len(hostile)}
        assert rest[-2]["windows"]["asked"] == 1
        # Frames after a bad one are not even decoded.
        assert rest[-2]["frames"]["unreadable"] == len(hostile)
        assert rest[-2]["frames"]["discarded"] == len(hostile) * 4


def test_a_client_that_sends_nothing_but_rubbish_is_ended(server):
    with LiveCamera(server) as camera:
        camera.start(stream="rubbish", window_s=SLOT_US / 1e6)
        for number in range(20):
            camera.show(b"\xff\xd8\xff rubbish", number * SLOT_US)
        rest, code = camera.rest()
    assert (rest[-1]["is_last"], code) == (True, 1008)
    assert "in a row" in rest[-1]["message"]


def test_events_decide_when_to_ask_and_are_checked(server):
    pictures, sensor = jpegs(1, seed=80) * NUM_SLOTS, SensorSize(96, 64)

    def events(start_us: int, count: int) -> bytes:
        t = np.linspace(start_us, start_us + SLOT_US - 1, count).astype(np.int64)
        x, y = np.arange(count) % 96, np.arange(count) // 96 % 64
        return pack_events(Events.checked(x, y, t, np.ones(count, np.uint8), sensor))

    with LiveCamera(server) as camera:
        camera.start(stream="events", sensor="96x64", when="changed")
        for slot in range(6 * NUM_SLOTS):
            if slot // NUM_SLOTS == 3:
                sent = events(slot * SLOT_US, 500)
                camera.socket.send(Media(MediaKind.EVENTS, (slot + 1) * SLOT_US, sent).pack())
            camera.show(pictures[0], (slot + 1) * SLOT_US)
            if slot % NUM_SLOTS == NUM_SLOTS - 1 and slot // NUM_SLOTS in (0, 3):
                camera.ack(camera.wait_for("answer"))
        bad = (
            events(0, 3),  # earlier than those before
            events(60 * SLOT_US, 3)[:-1],  # cut short
            pack_events(Events.checked(*(np.full(1, 99),) * 2, np.full(1, 10**10),
                        np.ones(1, np.uint8), SensorSize(640, 480))),  # outside the sensor
        )  # fmt: skip
        for one in bad:
            camera.socket.send(Media(MediaKind.EVENTS, 60 * SLOT_US, one).pack())
            error = camera.wait_for("error")
            assert "the events cannot be read" in error["message"]
            assert not error["is_last"]
        camera.say({"type": "end"})
        rest, _ = camera.rest()
    asked = [answer["start_us"] // (NUM_SLOTS * SLOT_US) for answer in answers_of(camera.heard)]
    assert asked[:2] == [0, 3], "the first one, and the one with the change"
    assert rest[-2]["windows"]["skipped"] >= 2


def test_a_tenant_has_so_many_cameras_and_takes_none_from_another(server, north):
    from websockets.exceptions import InvalidStatus

    server.wait_until(lambda: metric(north, "headstart_tenant_live_cameras") == 0, "room")
    with contextlib.ExitStack() as block:
        cameras = [block.enter_context(LiveCamera(server)) for _ in range(MAX_TENANT_LIVE)]
        with pytest.raises(InvalidStatus) as refused:  # nobody has said which camera it is
            LiveCamera(server)
        assert refused.value.response.status_code == 429
        for number, camera in enumerate(cameras):
            camera.start(stream=f"camera {number}")
        assert metric(north, "headstart_tenant_live_cameras") == MAX_TENANT_LIVE
        with LiveCamera(server) as one_more:
            one_more.say(START)
            (error,), code = one_more.rest()
        assert (error["code"], code) == ("too_many_requests", 1013)
        assert error["retry_after_s"] > 0
        with LiveCamera(server, "key-south") as other:
            other.start()
        cameras[0].leave()
        server.wait_until(
            lambda: metric(north, "headstart_tenant_live_cameras") == MAX_TENANT_LIVE - 1, "room"
        )
        with LiveCamera(server) as again:
            again.start()


def test_tenants_share_no_frame(server, operator):
    pictures = jpegs(NUM_SLOTS, seed=85)

    def num_new() -> float:
        """Frames that vLLM had not preprocessed before."""
        queries = metric(operator, "vllm:mm_cache_queries_total")
        return queries - metric(operator, "vllm:mm_cache_hits_total")

    for key in ("key-north", "key-south"):
        for expected in (NUM_SLOTS, 0):  # a tenant finds its own again
            before = num_new()
            with LiveCamera(server, key) as camera:
                camera.start(stream="shared")
                camera.show_window(pictures, 0)
                camera.wait_for("answer")
            assert num_new() - before == expected, key


def test_the_python_client_resumes_by_itself(server):
    shown = [jpegs(NUM_SLOTS, seed) for seed in range(90, 93)]
    words = Counter()
    with LiveClient(
        server.url,
        key="key-north",
        stream="client",
        window_s=WINDOW_S,
        question=QUESTION,
        max_tokens=MAX_TOKENS,
        on_words=lambda message: words.update([message["type"]]),
    ) as live:
        for number, pictures in enumerate(shown):
            for slot, picture in enumerate(pictures):
                assert live.send(picture, (number * NUM_SLOTS + slot) * SLOT_US)
            answer = next(live)
            assert answer.number == number + 1
            assert answer.text == said_over_http(server, pictures)
            if number == 1:
                live._connection.socket.shutdown(2)
                server.wait_until(lambda: live.num_resumed == 1, "resumed")
        assert live.ask(QUESTION, max_tokens=MAX_TOKENS).text == answer.text
        live.end()
        assert list(live) == []
        assert live.counts["windows"]["asked"] == len(shown)
    assert words["confirmed"] > 0
    with pytest.raises(LiveError, match="give a key"):
        LiveClient(server.url, stream="client", window_s=1.0)
    with pytest.raises(LiveError, match="cannot be reached"):
        LiveClient("ws://127.0.0.1:9", stream="client", window_s=1.0)
