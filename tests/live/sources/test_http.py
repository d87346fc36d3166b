"""HTTP cameras, real ones on loopback: sound, lost, silent, lying and hostile."""

import io
import os
import signal
import socket
import threading
import time
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from headstart.errors import SourceError
from headstart.live.sources.address import Address
from headstart.live.sources.confined.boxed_stream import StreamLimits
from headstart.live.sources.opening import camera, open_source
from headstart.media.stream import StreamBounds
from rig.footage import (
    children,
    is_increasing,
    nothing_left,
    number_of,
    numbered,
    write_camera_video,
)
from tests.live.sources.cameras import HEAD, http_camera, send_slowly, wait_for_end

pytestmark = pytest.mark.slow

QUICK = StreamLimits(silent_s=2.0)


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    """Two seconds as MPEG-TS, which can be joined anywhere."""
    return write_camera_video(tmp_path_factory.mktemp("http") / "live.ts", 50)


def refusal(script, limits=QUICK):
    """What is said of a camera that never gives a frame."""
    with http_camera(script) as server, nothing_left():
        with pytest.raises(SourceError) as said:
            list(camera(Address.parse(server.url), limits).arrivals())
        return str(said.value)


def test_a_camera_is_read_as_it_sends(video):
    def script(connection, number):
        connection.sendall(HEAD)
        send_slowly(connection, video, 2.0)
        wait_for_end(connection)

    with http_camera(script) as server, nothing_left():
        source = open_source(server.url)
        arrivals = list(islice(source.arrivals(), 30))
    numbers = [number_of(arrival.frame) for arrival in arrivals]
    assert is_increasing(numbers)
    steps = {later.time_us - sooner.time_us for sooner, later in pairwise(arrivals)}
    dropped = source.counts.dropped
    assert dropped or steps == {40_000}
    assert source.name == server.url


def test_a_camera_that_sends_jpegs_in_parts():
    """As many web cameras do; no times are stated, so arrival counts."""

    def script(connection, number):
        connection.sendall(
            b"HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n"
        )
        for frame in numbered(50):
            file = io.BytesIO()
            PIL.Image.fromarray(frame).save(file, "JPEG")
            head = f"Content-Type: image/jpeg\r\nContent-Length: {len(file.getvalue())}\r\n\r\n"
            connection.sendall(b"--frame\r\n" + head.encode() + file.getvalue() + b"\r\n")
            time.sleep(0.05)  # plays: the camera's pace
        wait_for_end(connection)

    with http_camera(script) as server, nothing_left():
        source = open_source(server.url)
        arrivals = list(islice(source.arrivals(), 20))
    assert is_increasing([number_of(arrival.frame) for arrival in arrivals])
    assert len({b.time_us - a.time_us for a, b in pairwise(arrivals)}) > 5  # measured, not made up


def test_a_stream_that_stops_midway_is_taken_up_again(video):
    def script(connection, number):
        connection.sendall(HEAD)
        if number == 1:
            return  # and once more nothing but a head
        send_slowly(connection, video[: len(video) * 3 // 4 if number == 0 else None], 1.0)

    seen = []
    with http_camera(script) as server, nothing_left():
        source = camera(Address.parse(server.url), QUICK)
        for arrival in source.arrivals():
            seen.append(arrival)
            if source.counts.reconnects >= 1 and len(seen) > 60:
                break
        assert len(server.requests) >= 3
    assert is_increasing([arrival.time_us for arrival in seen])
    numbers = [number_of(arrival.frame) for arrival in seen]
    assert not is_increasing(numbers)  # the second connection begins the video again
    again = next(i for i in range(1, len(numbers)) if numbers[i] < numbers[i - 1])
    assert seen[again].time_us - seen[again - 1].time_us > 200_000  # the pauses are in the clock
    assert source.counts.reconnects == 1


def test_a_camera_that_falls_silent_counts_as_gone(video):
    def script(connection, number):
        connection.sendall(HEAD)
        connection.sendall(video)
        wait_for_end(connection)

    with http_camera(script) as server, nothing_left():
        source = camera(Address.parse(server.url), QUICK)
        for _ in source.arrivals():
            if source.counts.reconnects:
                break
        assert len(server.requests) == 2


def test_a_file_over_http_plays_at_its_pace_and_ends(video, paced):
    def script(connection, number):
        connection.sendall(
            HEAD.replace(b"\r\n\r\n", f"\r\nContent-Length: {len(video)}\r\n\r\n".encode())
        )
        connection.sendall(video)

    with http_camera(script) as server, nothing_left():
        source = open_source(server.url)
        arrivals = list(source.arrivals())
    assert [number_of(arrival.frame) for arrival in arrivals] == list(range(50))
    assert sum(paced.waits_s) == pytest.approx(49 / 25)
    assert source.counts.dropped == 0


def test_a_file_whose_declared_size_is_a_lie_is_lost_not_waited_for(video):
    def script(connection, number):
        connection.sendall(
            HEAD.replace(b"\r\n\r\n", b"\r\nContent-Length: 999999999999999\r\n\r\n")
        )
        connection.sendall(video)

    with http_camera(script) as server, nothing_left():
        source = camera(Address.parse(server.url), QUICK)
        for _ in source.arrivals():
            if source.counts.reconnects:
                break
        assert len(server.requests) == 2


def test_a_camera_that_sends_nothing_is_an_error_at_first():
    assert "came for 2 s" in refusal(lambda c, n: (c.sendall(HEAD), wait_for_end(c)))


def test_a_camera_that_never_answers_is_an_error_at_first():
    assert "came for 2 s" in refusal(lambda c, n: wait_for_end(c))


def test_rubbish_is_no_video():
    rubbish = np.random.default_rng(1).bytes(200_000)
    assert "no video" in refusal(lambda c, n: c.sendall(HEAD + rubbish))


def test_a_page_is_no_video():
    assert "not of a page" in refusal(lambda c, n: c.sendall(HEAD + b"<html>Log in</html>" * 99))


def test_bytes_that_trickle_are_no_video():
    def script(connection, number):
        connection.sendall(HEAD)
        while True:
            connection.sendall(b"\x47")
            time.sleep(0.2)  # plays: a trickle

    assert "no picture came" in refusal(script)


def test_what_is_no_http_is_said():
    assert "no HTTP" in refusal(lambda c, n: c.sendall(b"SSH-2.0-OpenSSH_9\r\n"))


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n", "NAME:PASSWORD"),
        (b"HTTP/1.1 404 Not Match\r\n\r\n", "camera's manual"),
        (b"HTTP/1.1 302 Match\r\nLocation: http://169.254.169.254/\r\n\r\n", "not followed"),
        (b"HTTP/1.1 503 Busy\r\n\r\n", "answers with 503"),
    ],
)
def test_a_refusal_says_what_to_do(head, said):
    with http_camera(lambda c, n: c.sendall(head)) as server, nothing_left():
        with pytest.raises(SourceError, match=said):
            list(open_source(server.url).arrivals())
        assert len(server.requests) == 1


def test_a_password_is_sent_and_not_shown(video):
    def script(connection, number):
        connection.sendall(HEAD + video)

    with http_camera(script) as server:
        source = open_source(server.url.replace("//", "//me:secret@"))
        next(source.arrivals())
        source.close()
        assert "Authorization: Basic bWU6c2VjcmV0" in server.requests[0]
    assert "secret" not in source.name


def test_pictures_too_large_are_refused(video):
    small = StreamLimits(bounds=StreamBounds(max_pixels=1000), silent_s=5.0)
    said = refusal(lambda c, n: (c.sendall(HEAD + video), wait_for_end(c)), small)
    assert "64x48, and 1000 pixels" in said


def test_a_bomb_of_declared_pixels_takes_no_memory(tmp_path):
    """A JPEG whose head declares 60,000 x 60,000 pixels: 10 GB of RGB."""
    path = tmp_path / "small.jpg"
    PIL.Image.new("RGB", (64, 48)).save(path)
    content = bytearray(path.read_bytes())
    frame = content.index(b"\xff\xc0")
    content[frame + 5 : frame + 9] = (60_000).to_bytes(2, "big") * 2
    said = refusal(lambda c, n: (c.sendall(HEAD + bytes(content) * 50), wait_for_end(c)))
    assert "came for 2 s" in said


@pytest.mark.parametrize("kind", ["playlist", "concat", "description"])
def test_a_stream_that_names_other_files_reaches_none(tmp_path, video, kind):
    secret = tmp_path / "secret.ts"
    secret.write_bytes(video)
    with http_camera(lambda c, n: c.sendall(HEAD + video)) as other:
        port = other.port
        content = {
            "playlist": f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nfile://{secret}\n"
            f"#EXTINF:2,\nhttp://127.0.0.1:{port}/x.ts\n#EXT-X-ENDLIST\n",
            "concat": f"ffconcat version 1.0\nfile '{secret}'\n",
            "description": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
            f"m=video {port} RTP/AVP 96\na=rtpmap:96 H264/90000\n",
        }[kind].encode()
        assert "no video" in refusal(lambda c, n: c.sendall(HEAD + content))
        assert other.requests == []


def test_the_process_that_decodes_is_confined_and_ends_with_the_source(video):
    def script(connection, number):
        connection.sendall(HEAD + video)
        wait_for_end(connection)

    before = children()
    with http_camera(script) as server, nothing_left():
        source = open_source(server.url)
        arrivals = source.arrivals()
        next(arrivals)
        (pid,) = children() - before
        status = Path(f"/proc/{pid}/status").read_text()
        limits = Path(f"/proc/{pid}/limits").read_text()
        source.close()
    assert "Seccomp:\t2" in status
    assert "NoNewPrivs:\t1" in status
    assert any(
        line.split()[3:5] == ["0", "0"] for line in limits.splitlines() if "open files" in line
    )


def test_a_decoder_that_is_killed_counts_as_a_lost_connection(video):
    def script(connection, number):
        connection.sendall(HEAD)
        send_slowly(connection, video, 2.0)
        wait_for_end(connection)

    before = children()
    with http_camera(script) as server, nothing_left():
        source = open_source(server.url)
        for count, _ in enumerate(source.arrivals()):
            if count == 1:
                (pid,) = children() - before
                os.kill(pid, signal.SIGKILL)
            if source.counts.reconnects:
                break
        assert len(server.requests) == 2


def test_closing_does_not_wait_for_a_host_that_does_not_answer():
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for one in (first, second):  # whoever comes after them is left waiting
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        source = open_source(f"http://127.0.0.1:{full.getsockname()[1]}/live.ts")
        with nothing_left():
            asked_to_close = threading.Event()

            def close():
                asked_to_close.set()
                source.close()

            closing = threading.Timer(0.5, close)
            closing.start()
            assert list(source.arrivals()) == []
            assert asked_to_close.is_set()
            closing.join()
