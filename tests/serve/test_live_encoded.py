"""Cameras that send H.264 and H.265 over real sockets of a real server."""

import base64
import contextlib
import io
import json
from pathlib import Path

import numpy as np
import PIL.Image
import psutil
import pytest

from headstart.media.annex_b import Codec
from headstart_client.live_client import LiveClient
from headstart_client.wire import Media, MediaKind
from headstart_server.limits import Limits
from rig.live_camera import (
    MAX_TOKENS,
    NUM_SLOTS,
    QUESTION,
    SLOT_US,
    WINDOW_S,
    LiveCamera,
    answers_of,
    said_over_http,
)
from rig.servers import MAX_TENANT_LIVE
from tests.media.encoded import decode, encode, street

pytestmark = pytest.mark.engine


def pngs(frames: list[np.ndarray]) -> list[bytes]:
    """The same frames as files, without a loss."""
    made = []
    for frame in frames:
        content = io.BytesIO()
        PIL.Image.fromarray(frame).save(content, "PNG")
        made.append(content.getvalue())
    return made


def show(camera: LiveCamera, packet: bytes, slot: int) -> None:
    camera.socket.send(Media(MediaKind.ENCODED, slot * SLOT_US, packet).pack())


def show_window(camera: LiveCamera, packets: list[bytes], number: int) -> None:
    for slot in range(number * NUM_SLOTS, (number + 1) * NUM_SLOTS):
        show(camera, packets[slot], slot)


def said_of(server, packets: list[bytes], number: int, codec: Codec = Codec.H264) -> str:
    """What the target says over HTTP of a window's frames, decoded here."""
    frames = decode(packets, codec)[number * NUM_SLOTS : (number + 1) * NUM_SLOTS]
    return said_over_http(server, pngs(frames))


@pytest.mark.parametrize("codec", list(Codec))
def test_a_window_is_answered_as_its_decoded_frames_are_over_http(server, codec):
    packets = encode(street(3 * NUM_SLOTS, seed=5), codec, gop=NUM_SLOTS + 2)
    with LiveCamera(server) as camera:
        camera.start(stream=f"encoded {codec}", codec=codec)
        for number in range(3):
            show_window(camera, packets, number)
            camera.ack(camera.wait_for("answer"))
        camera.say({"type": "end"})
        rest, code = camera.rest()
    said = [answer["text"] for answer in answers_of(camera.heard)]
    assert said == [said_of(server, packets, number, codec) for number in range(3)]
    assert len(set(said)) == 3, "each window is another scene"
    assert (rest[-1], code) == ({"type": "ended"}, 1000)
    assert rest[-2]["frames"] == {"taken": 3 * NUM_SLOTS}
    assert rest[-2]["lost_for"] == {}


def test_the_python_client_sends_packets_and_after_a_break_needs_a_key_picture(server):
    # Key pictures are 0, 8, 20, 32: the break is in the middle of window 1, and the next key
    # picture in the middle of window 2.
    frames = street(5 * NUM_SLOTS, seed=6)
    first, rest = encode(frames[:8]), encode(frames[8:], gop=12)
    packets = first + rest
    with LiveClient(
        server.url,
        key="key-north",
        stream="encoded client",
        window_s=WINDOW_S,
        question=QUESTION,
        max_tokens=MAX_TOKENS,
        codec="h264",
    ) as live:
        for slot in range(NUM_SLOTS + 3):
            assert live.send_encoded(packets[slot], slot * SLOT_US)
        answers = [next(live)]
        live._connection.socket.shutdown(2)
        server.wait_until(lambda: live.num_resumed == 1, "resumed")
        for slot in range(NUM_SLOTS + 4, 4 * NUM_SLOTS):
            assert live.send_encoded(packets[slot], slot * SLOT_US)
        answers.append(next(live))
        live.end()
        answers += list(live)
        counts = live.counts
    # What had come of window 1 before the break is lost with what could not be decoded after it,
    # unless the clock had ended the window by then.
    whole = [answer for answer in answers if answer.num_frames == NUM_SLOTS]
    assert [answer.start_us // (NUM_SLOTS * SLOT_US) for answer in whole] == [0, 3]
    for answer, number in zip(whole, (0, 3), strict=True):
        frames_of = decode(first) + decode(rest)
        shown = frames_of[number * NUM_SLOTS : (number + 1) * NUM_SLOTS]
        assert answer.text == said_over_http(server, pngs(shown))
    assert counts["lost_for"] == {"key": 2}
    assert counts["windows"]["lost"] + counts["windows"]["ended"] == 4


@pytest.mark.parametrize(
    ("codec", "kind"), [("h264", MediaKind.PICTURE), (None, MediaKind.ENCODED)]
)
def test_a_camera_is_either_of_pictures_or_of_encoded_video(server, codec, kind):
    with LiveCamera(server) as camera:
        camera.start(stream="either", codec=codec)
        camera.socket.send(Media(kind, 0, b"\0\0\1 anything").pack())
        rest, code = camera.rest()
    assert (rest[-1]["code"], rest[-1]["is_last"], code) == ("bad_request", True, 1008)
    assert "codec" in rest[-1]["message"]


def decoders(server) -> dict[int, psutil.Process]:
    """The confined processes of the server, those that wait for work among them."""
    fork_server = next(
        child
        for child in server.children()
        if "headstart_server.sandbox.fork_server" in child.cmdline()
    )
    return {child.pid: child for child in fork_server.children()}


def test_hostile_video_harms_its_own_camera_only(server):
    bomb = encode(np.zeros((1, 4096, 4096, 3), np.uint8))[0]  # more pixels than the server takes
    packets = encode(street(6 * NUM_SLOTS, seed=7), gop=NUM_SLOTS)
    with LiveCamera(server) as hostile, LiveCamera(server, "key-south") as other:
        hostile.start(stream="hostile", codec="h264")
        other.start(stream="other", codec="h264")
        show_window(hostile, packets, 0)
        assert hostile.wait_for("answer")["text"] == said_of(server, packets, 0)
        for number, bad in enumerate(
            (bomb, packets[NUM_SLOTS][:-40], b"\0\0\1\x65" * 1000, b"\xff\xd8\xff rubbish"), 1
        ):
            show(hostile, bad, number * NUM_SLOTS)
            error = hostile.wait_for("error")
            assert (error["code"], error["is_last"]) == ("bad_request", False)
            show_window(other, packets, number - 1)
            answer = other.wait_for("answer")
            other.ack(answer)
            assert answer["text"] == said_of(server, packets, number - 1)
        show_window(hostile, packets, 5)
        answer = hostile.wait_for("answer")
        assert answer["start_us"] == 5 * NUM_SLOTS * SLOT_US
        assert answer["text"] == said_of(server, packets, 5)


def test_each_camera_has_a_decoder_that_ends_with_it(server):
    (packet,) = encode(street(1))
    num_waiting = Limits().max_decoders + 1
    """The most that wait for other media, and for the next camera."""
    keys = ["key-north"] * MAX_TENANT_LIVE + ["key-south"] * MAX_TENANT_LIVE
    with contextlib.ExitStack() as block:
        for number, key in enumerate(keys):
            camera = block.enter_context(LiveCamera(server, key))
            camera.start(stream=f"camera {number}", codec="h264", question=None)
            show(camera, packet, 0)
            while camera.wait_for("counts")["frames"] != {"taken": 1}:
                pass
        assert len(decoders(server)) >= len(keys) > num_waiting
    server.wait_until(lambda: len(decoders(server)) <= num_waiting, "the decoders have ended")


def test_a_killed_decoder_costs_its_window(server):
    packets = encode(street(3 * NUM_SLOTS, seed=8), gop=NUM_SLOTS)
    with LiveCamera(server) as camera:
        camera.start(stream="killed", codec="h264")
        show_window(camera, packets, 0)
        camera.ack(camera.wait_for("answer"))
        killed = list(decoders(server).values())
        for process in killed:
            process.kill()
        psutil.wait_procs(killed, 120)
        for slot in range(NUM_SLOTS + 1, 3 * NUM_SLOTS):  # without the key picture of window 1
            show(camera, packets[slot], slot)
            if slot == NUM_SLOTS + 1:
                assert "cannot be read" in camera.wait_for("error")["message"]
        answer = camera.wait_for("answer")
        assert answer["start_us"] == 2 * NUM_SLOTS * SLOT_US
        assert answer["text"] == said_of(server, packets, 2)
    assert server.client().get("/ready").json()["ready"]


def test_a_browser_sends_encoded_chunks_and_leaves_out_what_builds_on_a_lost_one(server, browser):
    packets = encode(street(3 * NUM_SLOTS, seed=9), gop=NUM_SLOTS)
    start = {
        "stream": "encoded browser",
        "codec": "h264",
        "window_s": WINDOW_S,
        "question": QUESTION,
        "max_tokens": MAX_TOKENS,
    }
    chunks = [base64.b64encode(packet).decode() for packet in packets]
    page_file = Path(__file__).parents[2] / "examples" / "live_camera.html"
    with browser.open(page_file.as_uri()) as page:
        page.evaluate(f"window.chunks = {json.dumps(chunks)}; window.answers = [];")
        page.evaluate(
            f"window.camera = new LiveCamera('ws://127.0.0.1:{server.port}', 'key-north',"
            f" {json.dumps(start)});"
            " camera.onanswer = (answer) => answers.push(answer);"
        )
        page.wait_for("camera.started !== null")
        page.evaluate(
            "window.show = (slot) => camera.sendEncoded(new EncodedVideoChunk({"
            f" type: slot % {NUM_SLOTS} ? 'delta' : 'key', timestamp: slot * {SLOT_US},"
            " data: Uint8Array.from(atob(chunks[slot]), (char) => char.charCodeAt(0)) }));"
        )

        def sent(start: int, stop: int) -> list[bool]:
            return page.evaluate(f"chunks.map((_, slot) => slot).slice({start}, {stop}).map(show)")

        assert sent(1, 3) == [False, False], "before a key picture"
        assert sent(0, NUM_SLOTS) == [True] * NUM_SLOTS
        page.wait_for("answers.length === 1")
        page.evaluate("camera.socket.close()")
        assert sent(NUM_SLOTS, NUM_SLOTS + 1) == [False]
        page.wait_for("camera.started.resumed")
        assert sent(NUM_SLOTS + 1, 2 * NUM_SLOTS) == [False] * (NUM_SLOTS - 1)
        assert sent(2 * NUM_SLOTS, 3 * NUM_SLOTS) == [True] * NUM_SLOTS
        page.wait_for("answers.length === 2")
        page.evaluate("camera.end()")
        page.wait_for("camera.isOver")
        answers = page.evaluate("answers")
        assert page.complaints == []
    assert [answer["text"] for answer in answers] == [
        said_of(server, packets, number) for number in (0, 2)
    ]
