"""Which containers FFmpeg may open, and that scripts which name other files or ports are none."""

import io
import os

import av
import numpy as np
import pytest

from headstart.errors import MediaError
from headstart.media.video import FORMATS, OPEN_OPTIONS, Video

CODECS = {
    ".mp4": "libx264",
    ".mov": "libx264",
    ".3gp": "mpeg4",
    ".mkv": "libx264",
    ".webm": "libvpx",
    ".avi": "mpeg4",
    ".ts": "libx264",
    ".mpg": "mpeg2video",
    ".flv": "flv",
    ".wmv": "wmv2",
    ".gif": "gif",
}


def write(path, codec):
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25)
        stream.width = stream.height = 64
        stream.pix_fmt = "rgb8" if codec == "gif" else "yuv420p"
        for level in range(6):
            picture = np.full((64, 64, 3), level * 20, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode(None))
    return path


@pytest.mark.parametrize("suffix", CODECS)
def test_ordinary_containers_are_read(tmp_path, suffix):
    codec = CODECS[suffix]
    if codec not in av.codecs_available:
        pytest.skip(f"this FFmpeg has no {codec}")
    assert len(Video.read(write(tmp_path / f"clip{suffix}", codec))) == 6


SCRIPTS = {
    "ffconcat": "ffconcat version 1.0\nfile secret.avi\n",
    "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nsecret.avi\n#EXT-X-ENDLIST\n",
    "dash": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static">'
    '<Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1">'
    '<BaseURL>secret.avi</BaseURL><SegmentList><SegmentURL media="secret.avi"/></SegmentList>'
    "</Representation></AdaptationSet></Period></MPD>",
    "text": "one line\nand another\n" * 100,
    "svg": '<svg xmlns="http://www.w3.org/2000/svg"><image href="secret.avi"/></svg>',
}


@pytest.mark.parametrize("suffix", [".mp4", ".ffconcat", ".m3u8", ".mpd", ".txt", ".svg"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_that_names_another_file_opens_nothing(tmp_path, script, suffix):
    secret = write(tmp_path / "secret.avi", "mpeg4")
    os.utime(secret, (0, secret.stat().st_mtime))  # never read: a reader would show
    path = tmp_path / f"clip{suffix}"
    path.write_text(SCRIPTS[script])
    with pytest.raises(MediaError, match="convert it with ffmpeg"):
        Video.read(path)
    assert secret.stat().st_atime == 0


def test_a_description_of_a_session_binds_no_port():
    description = (
        b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
        b"m=video 45454 RTP/AVP 96\na=rtpmap:96 H264/90000\n"
    )
    # Without the options FFmpeg binds the port, opens the session, and waits for a sender.
    with pytest.raises(av.FFmpegError):
        av.open(io.BytesIO(description), options=OPEN_OPTIONS)


def test_pictures_and_numbered_files_are_no_video(tmp_path):
    numbered = tmp_path / "frame-1.png"
    with av.open(str(numbered), "w") as container:
        stream = container.add_stream("png", rate=1)
        stream.width = stream.height = 16
        stream.pix_fmt = "rgb24"
        picture = np.zeros((16, 16, 3), np.uint8)
        container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode(None))
    with pytest.raises(MediaError):
        Video.read(numbered)


def test_every_format_is_one_that_ffmpeg_knows():
    known = {name for names in av.formats_available for name in names.split(",")}
    assert set(FORMATS) <= known
    assert not set(FORMATS) & {"concat", "hls", "dash", "sdp", "rtsp", "image2", "lavfi", "tty"}
