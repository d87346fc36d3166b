"""Cameras that send without end what is no picture, and how little of it they get to send."""

import itertools
import socket
import struct
import threading
import tracemalloc
from contextlib import suppress

import pytest

from headstart.errors import SourceError
from headstart.live.sources.address import Address
from headstart.live.sources.confined.shares import MAX_SAVED_S, Shares
from headstart.live.sources.http_stream import HttpStream
from headstart.live.sources.rtsp.stream import RtspStream
from headstart.live.sources.rtsp.track import MAX_UNITS, Pictures, VideoTrack
from headstart.live.sources.rtsp.wire import Packet
from headstart.live.sources.tcp_line import Flow
from headstart.media.annex_b import Codec
from tests.live.sources.cameras import HEAD, http_camera
from tests.live.sources.test_rtsp_parts import DESCRIPTION, h264_track, packet, taken, wire_of


def h264_aggregate(units):
    return packet(b"\x78" + units, 0)


def h265_aggregate(units):
    return packet(b"\x60\x01" + units, 0)


H265 = VideoTrack(Codec.H265, 96, 90_000, "rtsp://camera/", ())


@pytest.mark.parametrize(
    ("aggregate", "track"), [(h264_aggregate, h264_track()), (h265_aggregate, H265)]
)
def test_units_without_a_byte_take_no_room(aggregate, track):
    pictures, empty = Pictures(track), aggregate(bytes(60_000))
    tracemalloc.start()
    for _ in range(3):
        assert list(pictures.take(empty)) == []
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 10_000
    # Nor is the picture that comes one of them.
    (picture,) = [content for _, content in pictures.take(packet(b"\x26\x01xyz", 0, marker=True))]
    assert picture == b"\0\0\0\1\x26\x01xyz"


def test_a_picture_of_too_many_units_is_refused():
    units = h264_aggregate(b"\x00\x01\x61" * 100)
    with pytest.raises(SourceError, match="without end"):
        taken(*[units] * (MAX_UNITS // 100 + 1))
    ended = [units, packet(b"\x61ab", 0, marker=True)]
    assert len(taken(*ended * 100)) == 100


def test_empty_lines_without_end_are_refused():
    wire = wire_of(b"\r\n" * 20 + b"$\x00\x00\x01a" + b"\r\n" * (1 << 20))
    assert wire.receive() == Packet(0, b"a")
    with pytest.raises(SourceError, match="empty lines"):
        wire.receive()


class Hostile:
    """A camera that answers as it must, and then sends one thing for ever."""

    def __init__(self, flood):
        self._flood, self.num_bytes = flood, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address.parse(f"rtsp://127.0.0.1:{self._listener.getsockname()[1]}/x")
        self._thread = threading.Thread(target=self._serve, name="test server")

    def _serve(self):
        connection, _ = self._listener.accept()
        with connection, suppress(OSError):
            for body in (DESCRIPTION, "", ""):
                asked = connection.recv(1 << 16).decode()
                number = asked.partition("CSeq: ")[2].split()[0]
                head = f"RTSP/1.0 200 OK\r\nCSeq: {number}\r\nContent-Length: {len(body)}\r\n\r\n"
                connection.sendall((head + body).encode())
            while True:
                connection.sendall(self._flood)
                self.num_bytes += len(self._flood)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._listener.close()
        self._thread.join()


def interleaved(channel, content):
    return struct.pack(">cBH", b"$", channel, len(content)) + content


@pytest.mark.parametrize(
    "flood",
    [
        b"\r\n" * 10_000,
        interleaved(5, bytes(1000)) * 100,
        interleaved(1, bytes(40)) * 100,
        b"RTSP/1.0 200 OK\r\n\r\n" * 100,
    ],
    ids=["empty lines", "another channel", "reports", "answers"],
)
def test_a_camera_that_sends_everything_but_video_is_not_read_for_long(flood):
    """Its end does not wait until it has been silent for long enough."""
    with Hostile(flood) as hostile:
        stream = RtspStream(hostile.address, silent_s=600)
        with pytest.raises(SourceError, match=r"without end|everything but"):
            for _ in stream.chunks():
                pass


def test_a_camera_is_read_no_faster_than_its_bound():
    now_s, waits = [0.0], []

    def wait(seconds):
        waits.append(seconds)
        now_s[0] += seconds
        return False

    flow = Flow(wait, max_bytes_s=1000, clock=lambda: now_s[0])
    flow.passed(1000)  # a second's worth may come at once
    assert waits == []
    for _ in range(50):
        flow.passed(100)
    assert sum(waits) == pytest.approx(5)
    now_s[0] += 3600
    waits.clear()
    flow.passed(1500)
    assert waits == [pytest.approx(0.5)]


def test_a_thread_that_has_used_its_share_rests_until_there_is_more():
    now_s, used_s, waits = [0.0], [0.0], []

    def wait(seconds):
        waits.append(seconds)
        now_s[0] += seconds
        return False

    share = Shares(0.5, lambda: now_s[0]).share()
    flow = Flow(wait, share, clock=lambda: now_s[0], thread_clock=lambda: used_s[0])
    for _ in range(1000):
        used_s[0] += 0.02
        now_s[0] += 0.02
        flow.passed(1)
    assert used_s[0] <= 0.5 * now_s[0] + MAX_SAVED_S + 0.1
    assert share.spend(0)
    # One that is closed rests no longer.
    flow = Flow(lambda _: True, share, thread_clock=lambda: used_s[0])
    flow.passed(1)
    used_s[0] += 100
    flow.passed(1)


def test_rtsp_and_http_cameras_tell_how_much_they_read(monkeypatch):
    passed = []
    monkeypatch.setattr(Flow, "passed", lambda _, num_bytes: passed.append(num_bytes))
    video = interleaved(0, packet(b"\x65abc", 0, marker=True))
    with Hostile(video) as hostile:
        stream = RtspStream(hostile.address, silent_s=5)
        assert len(list(itertools.islice(stream.chunks(), 100))) == 100
        stream.close()
    assert sum(passed) > 99 * len(video)
    passed.clear()
    before, body = b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000, bytes(100_000)

    def serve(connection, _):
        connection.sendall(before + HEAD + body)

    with http_camera(serve) as server, suppress(SourceError):
        for _ in HttpStream(Address.parse(server.url), silent_s=5).chunks():
            pass
    assert sum(passed) == len(before + HEAD + body)
