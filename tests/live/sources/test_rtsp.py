"""RTSP cameras: GStreamer's server on loopback, killed and started again."""

from itertools import islice, pairwise

import pytest

from headstart.errors import SourceError
from headstart.live.sources.opening import open_source
from rig.footage import (
    LEVELS,
    is_increasing,
    nothing_left,
    number_of,
    write_camera_video,
)
from rig.gstreamer import HAS_SERVER, pipeline, rtsp_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not HAS_SERVER, reason="no RTSP server: make rtsp (as root)"),
]


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    """Files that the server sends: a path and a pipeline each."""
    folder = tmp_path_factory.mktemp("rtsp")
    write_camera_video(folder / "h264.mkv", 500)
    write_camera_video(folder / "h265.mkv", 100, codec="libx265")
    write_camera_video(folder / "short.mkv", 25)
    write_camera_video(folder / "mpeg4.mkv", 25, codec="mpeg4")

    return [
        *("/h264", pipeline(folder / "h264.mkv", "rtph264pay config-interval=-1")),
        *("/small-packets", pipeline(folder / "h264.mkv", "rtph264pay mtu=80 aggregate-mode=1")),
        *("/h265", pipeline(folder / "h265.mkv", "rtph265pay config-interval=-1 mtu=200")),
        *("/short", pipeline(folder / "short.mkv", "rtph264pay")),
        *("/mpeg4", pipeline(folder / "mpeg4.mkv", "rtpmp4vpay")),
    ]


@pytest.fixture(scope="module")
def port(videos):
    with rtsp_server(videos) as (port, _):
        yield port


@pytest.mark.parametrize("path", ["h264", "small-packets", "h265"])
def test_every_picture_comes_whole_and_at_its_time(port, path):
    with nothing_left():
        source = open_source(f"rtsp://127.0.0.1:{port}/{path}")
        arrivals = list(islice(source.arrivals(), 40))
    numbers = [number_of(arrival.frame) for arrival in arrivals]
    if not source.counts.dropped:
        assert numbers == list(range(40))
    for sooner, later in pairwise(arrivals):
        frames = (number_of(later.frame) - number_of(sooner.frame)) % LEVELS  # some were dropped
        assert later.time_us - sooner.time_us == pytest.approx(frames * 40_000, abs=2_000)


def test_a_camera_that_is_killed_and_started_again_goes_on(videos):
    with rtsp_server(videos) as (port, process), nothing_left():
        source = open_source(f"rtsp://127.0.0.1:{port}/h264")
        arrivals = source.arrivals()
        before = list(islice(arrivals, 20))
        process.kill()
        process.wait()
        with rtsp_server(videos, port=port):
            after = []
            for arrival in arrivals:
                after.append(arrival)
                if source.counts.reconnects and len(after) > 40:
                    break
        source.close()
    assert source.counts.reconnects == 1
    assert is_increasing([arrival.time_us for arrival in before + after])
    numbers = [number_of(arrival.frame) for arrival in before + after]
    assert any(later < sooner for sooner, later in pairwise(numbers))  # it began anew
    assert all(0 <= number < LEVELS for number in numbers)


def test_a_stream_that_says_goodbye_is_connected_to_again(port):
    with nothing_left():
        source = open_source(f"rtsp://127.0.0.1:{port}/short")
        times = [arrival.time_us for arrival in islice(source.arrivals(), 30)]
    assert is_increasing(times)
    assert max(after - before for before, after in pairwise(times)) < 8_000_000  # not by silence
    assert source.counts.reconnects == 1


def test_a_camera_with_a_password(videos):
    with rtsp_server(videos, "me", "secret") as (port, _), nothing_left():
        source = open_source(f"rtsp://me:secret@127.0.0.1:{port}/h264")
        assert len(list(islice(source.arrivals(), 3))) == 3
        assert "secret" not in source.name
        for wrong in ("", "me:wrong@"):
            with pytest.raises(SourceError, match="NAME:PASSWORD"):
                next(open_source(f"rtsp://{wrong}127.0.0.1:{port}/h264").arrivals())


@pytest.mark.parametrize(
    ("path", "said"), [("nothing", "manual"), ("mpeg4", "sends MP4V-ES; set it to H.264")]
)
def test_what_cannot_be_read_is_said(port, path, said):
    with nothing_left(), pytest.raises(SourceError, match=said):
        next(open_source(f"rtsp://127.0.0.1:{port}/{path}").arrivals())


def test_nothing_there_is_said():
    with pytest.raises(SourceError, match=r"nothing answers at 127\.0\.0\.1:9"):
        next(open_source("rtsp://127.0.0.1:9/").arrivals())
