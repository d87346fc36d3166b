"""RTSP in parts: descriptions, logins, packets, and what a hostile camera sends."""

import hashlib
import socket
import struct
import threading
import time
from contextlib import suppress

import pytest

from headstart.errors import SourceError
from headstart.live.sources.address import Address
from headstart.live.sources.confined.boxed_stream import StreamLimits
from headstart.live.sources.opening import camera
from headstart.live.sources.rtsp.stream import Login
from headstart.live.sources.rtsp.track import MAX_PICTURE_BYTES, Pictures, VideoTrack
from headstart.live.sources.rtsp.wire import Message, Packet, Wire
from headstart.live.sources.tcp_line import Flow
from headstart.media.annex_b import Codec
from rig.footage import nothing_left

DESCRIPTION = """v=0
o=- 1 1 IN IP4 127.0.0.1
s=camera
a=control:*
m=audio 0 RTP/AVP 0
a=control:trackID=0
m=video 0 RTP/AVP 96
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z0IAKeKQFAe2AtwEBAaQeJEV,aM48gA==
a=control:trackID=1
"""


def test_a_description_names_the_video():
    track = VideoTrack.parse(DESCRIPTION.replace("\n", "\r\n"), "rtsp://camera/live/")
    assert (track.codec, track.payload_type, track.clock_hz) == (Codec.H264, 96, 90_000)
    assert track.url == "rtsp://camera/live/trackID=1"
    assert [each[0] & 0x1F for each in track.parameter_sets] == [7, 8]


@pytest.mark.parametrize(
    ("control", "url"),
    [
        ("trackID=1", "rtsp://camera/live/trackID=1"),
        ("rtsp://other/x", "rtsp://other/x"),
        ("/whole/path", "rtsp://camera/whole/path"),
        ("*", "rtsp://camera/live"),
    ],
)
def test_where_the_track_is(control, url):
    text = DESCRIPTION.replace("a=control:trackID=1", f"a=control:{control}")
    assert VideoTrack.parse(text, "rtsp://camera/live").url == url


@pytest.mark.parametrize("text", ["", "v=0\n", DESCRIPTION.replace("H264", "JPEG")])
def test_a_description_without_a_video_we_read_is_refused(text):
    with pytest.raises(SourceError, match=r"H\.264"):
        VideoTrack.parse(text, "rtsp://camera/")


def test_a_digest_login_is_what_the_standard_says():
    login = Login(Address.parse("rtsp://Mufasa:Circle%20Of%20Life@camera/x"))
    assert login.headers("DESCRIBE", "rtsp://camera/x") == {}
    login.challenged(['Basic realm="b"', 'Digest realm="r", nonce="n", qop="auth", opaque="o"'])
    said = login.headers("DESCRIBE", "rtsp://camera/x")["Authorization"]
    fields = dict(part.split("=", 1) for part in said.removeprefix("Digest ").split(", "))
    fields = {key: value.strip('"') for key, value in fields.items()}

    def md5(text):
        return hashlib.md5(text.encode()).hexdigest()

    secret, request = md5("Mufasa:r:Circle Of Life"), md5("DESCRIBE:rtsp://camera/x")
    own, count = fields["cnonce"], fields["nc"]
    assert fields["response"] == md5(f"{secret}:n:{count}:{own}:auth:{request}")
    assert (fields["opaque"], fields["qop"], count) == ("o", "auth", "00000001")
    with pytest.raises(SourceError, match="not these"):
        login.challenged(['Basic realm="b"'])


def packet(payload, timestamp, marker=False, payload_type=96):
    head = struct.pack(">BBHII", 0x80, marker << 7 | payload_type, 0, timestamp, 1)
    return head + payload


def h264_track(parameter_sets=()):
    return VideoTrack(Codec.H264, 96, 90_000, "rtsp://camera/", parameter_sets)


def taken(*packets, track=None):
    pictures = Pictures(track or h264_track())
    return [picture for each in packets for picture in pictures.take(each)]


def test_pictures_are_put_together_from_packets():
    whole, first, last = b"\x65abc", b"\x7c\x85def", b"\x7c\x45ghi"
    several = b"\x78" + b"\x00\x03\x67AB" + b"\x00\x03\x68CD"
    start = b"\0\0\0\1"
    got = taken(
        packet(several, 0),
        packet(whole, 0, marker=True),
        packet(first, 9000),
        packet(last, 9000, marker=True),
        packet(b"\x41xyz", 18000),  # without a marker: the next time ends it
        packet(b"\x41uvw", 27000, marker=True),
        packet(b"\x41audio", 27000, payload_type=0),
        track=h264_track((b"\x67sps",)),
    )
    assert got == [
        (0, start + b"\x67sps" + start + b"\x67AB" + start + b"\x68CD" + start + whole),
        (100_000, start + b"\x65defghi"),
        (200_000, start + b"\x41xyz"),
        (300_000, start + b"\x41uvw"),
    ]


def test_pictures_of_h265_are_put_together_too():
    several = b"\x60\x01" + b"\x00\x04\x40\x01AB" + b"\x00\x04\x42\x01CD"
    first, middle, last = b"\x62\x01\x93def", b"\x62\x01\x13ghi", b"\x62\x01\x53jkl"
    start = b"\0\0\0\1"
    got = taken(
        packet(several, 0),
        *(packet(part, 0) for part in (first, middle)),
        packet(last, 0, marker=True),
        packet(b"\x02\x01xyz", 3000, marker=True),
        track=VideoTrack(Codec.H265, 96, 90_000, "rtsp://camera/", ()),
    )
    assert got == [
        (0, start + b"\x40\x01AB" + start + b"\x42\x01CD" + start + b"\x26\x01defghijkl"),
        (33_333, start + b"\x02\x01xyz"),
    ]


def test_timestamps_wrap():
    times = [
        time_us
        for time_us, _ in taken(
            packet(b"\x41abc", 2**32 - 9000, marker=True), packet(b"\x41abc", 0, marker=True)
        )
    ]
    assert times == [0, 100_000]


def test_packets_that_make_no_sense_are_passed_over():
    rubbish = [b"", b"\x80", b"\xff" * 40, packet(b"", 0), packet(b"\x7c\x45end", 0, marker=True)]
    rubbish.append(packet(b"\x78\xff\xff", 0))  # an aggregate longer than its packet
    assert all(len(content) < 20 for _, content in taken(*rubbish))


@pytest.mark.parametrize("payload", [b"\x41" + bytes(60_000), b"\x7c\x05" + bytes(60_000)])
def test_a_picture_without_end_is_refused(payload):
    packets = [packet(b"\x7c\x85start", 0)]
    packets += [packet(payload, 0)] * (MAX_PICTURE_BYTES // 60_000 + 1)
    assert taken(*packets[:10]) == []
    with pytest.raises(SourceError, match="without end"):
        taken(*packets)


def wire_of(content):
    ours, theirs = socket.socketpair()

    def send():
        with suppress(OSError), theirs:  # the reader may have had enough
            theirs.sendall(content)

    threading.Thread(target=send).start()
    ours.settimeout(5)
    return Wire(ours, Flow(lambda _: False))


def test_messages_and_packets_share_the_line():
    answer = b"RTSP/1.0 200 OK\r\nCSeq: 4\r\nContent-Length: 2\r\n\r\nhi"
    wire = wire_of(b"$\x00\x00\x03abc\r\n" + answer + b"$\x01\x00\x00")
    assert wire.receive() == Packet(0, b"abc")
    said = wire.receive()
    assert isinstance(said, Message)
    assert (said.status, said.headers["cseq"], said.body) == (200, "4", "hi")
    assert wire.receive() == Packet(1, b"")
    with pytest.raises(SourceError, match="closed"):
        wire.receive()


def test_a_head_without_end_is_not_waited_for():
    with pytest.raises(SourceError, match="does not speak RTSP"):
        wire_of(b"HTTP " * 10_000).receive()


@pytest.mark.parametrize(
    "content",
    [
        b"RTSP/1.0 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"RTSP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"\r\n" * 100,
    ],
)
def test_a_line_that_speaks_something_else_is_refused(content):
    with pytest.raises(SourceError):
        wire_of(content).receive()


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer", [b"", b"\xff" * 100_000, b"$\x00\xff\xff", b"RTSP/1.0 x y\r\n\r\n"]
)
def test_a_hostile_camera_is_an_error_and_leaves_nothing(answer):
    def serve():
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(answer)
            time.sleep(0.3)  # plays: a camera that says no more, and hangs up

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, name="test server")
        server.start()
        address = Address.parse(f"rtsp://127.0.0.1:{listener.getsockname()[1]}/x")
        with nothing_left(), pytest.raises(SourceError):
            list(camera(address, StreamLimits(silent_s=2)).arrivals())
        server.join()
