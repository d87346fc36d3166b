"""Streams whose pictures come faster than they are taken: what is decoded, and what comes out."""

import io
from contextlib import suppress

import av
import numpy as np
import pytest

from headstart.errors import MediaError
from headstart.media import stream
from headstart.media.stream import StreamBounds, decode_stream

FPS, NUM_FRAMES = 240, 240
CODECS = {
    "libx264": {"bf": "3", "x264-params": "b-adapt=0:b-pyramid=none"},
    "libx265": {"x265-params": "bframes=3:b-adapt=0:b-pyramid=0:log-level=none"},
    "mjpeg": {},
}


def film(codec):
    file = io.BytesIO()
    with av.open(file, "w", format="matroska") as container:
        video = container.add_stream(codec, rate=FPS, options=CODECS[codec])
        video.width, video.height = 64, 48
        video.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        for number in range(NUM_FRAMES):
            picture = np.zeros((48, 64, 3), np.uint8)
            picture[:, number % 56 : number % 56 + 8] = 255
            container.mux(video.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(video.encode(None))
    return file.getvalue()


@pytest.mark.parametrize("codec", CODECS)
def test_what_comes_too_fast_is_left_out_before_it_is_decoded(codec, monkeypatch):
    content, num_decoded, decoded = film(codec), 0, stream._decoded

    def counted(*arguments):
        nonlocal num_decoded
        for frame in decoded(*arguments):
            num_decoded += 1
            yield frame

    monkeypatch.setattr(stream, "_decoded", counted)
    whole = dict(decode_stream(io.BytesIO(content), StreamBounds(max_fps=1e6)))
    assert num_decoded == len(whole) == NUM_FRAMES
    num_decoded = 0
    taken = list(decode_stream(io.BytesIO(content), StreamBounds(max_fps=60)))
    assert len(taken) == 60
    assert num_decoded < 0.7 * NUM_FRAMES  # each picture that others need is decoded
    # They are the pictures that they were: none was needed that is missing.
    for time_us, frame in taken:
        assert np.array_equal(frame, whole[time_us])


def test_pictures_without_times_are_left_out_before_they_are_decoded(monkeypatch):
    """A camera's JPEGs, all of which come at once."""
    file = io.BytesIO()
    with av.open(file, "w", format="mpjpeg") as container:
        video = container.add_stream("mjpeg", rate=25)
        video.width, video.height, video.pix_fmt = 64, 48, "yuvj420p"
        for _ in range(100):
            picture = av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")
            container.mux(video.encode(picture))
    num_decoded, decoded = 0, stream._decoded

    def counted(*arguments):
        nonlocal num_decoded
        for frame in decoded(*arguments):
            num_decoded += 1
            yield frame

    monkeypatch.setattr(stream, "_decoded", counted)
    monkeypatch.setattr(stream.time, "monotonic_ns", lambda: 10**9)
    bounds = StreamBounds()
    frames = []
    with suppress(MediaError):  # a stream of JPEGs has no end
        for each in decode_stream(io.BytesIO(file.getvalue()), bounds):
            frames.append(each)
    assert len(frames) == 1
    assert num_decoded == 1
